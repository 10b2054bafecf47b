"""How far a build is, for whoever watches: bars in a terminal, nothing where output is read later."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


class Bars:
    """Shows nothing: the lines that the build says are enough for a file."""

    @contextmanager
    def over(self, lessons: list[tuple[str, float]]) -> Iterator[None]:
        """Around the whole build: the lessons, and the seconds each is likely to take."""
        yield

    def starts(self, lesson: str) -> None:
        """This lesson is being built."""

    def moves(self, lesson: str, seconds: float) -> None:
        """A cell of it that was taken to need so many seconds is through."""

    def ends(self, lesson: str) -> None:
        """It is built, or has failed."""


class RichBars(Bars):
    """A bar for each lesson that is being built and one for all of them, with the time left."""

    def __init__(self, console: "Console"):
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
            console=console, transient=True, speed_estimate_period=600,
        )  # fmt: skip

    @contextmanager
    def over(self, lessons: list[tuple[str, float]]) -> Iterator[None]:
        if not lessons:
            yield
            return
        self.left = dict(lessons)
        with self.progress:
            self.all = self.progress.add_task("all lessons", total=sum(self.left.values()))
            self.tasks = {name: self.progress.add_task(name, total=s, visible=False) for name, s in lessons}
            yield

    def starts(self, lesson: str) -> None:
        self.progress.update(self.tasks[lesson], visible=True)

    def moves(self, lesson: str, seconds: float) -> None:
        self.left[lesson] -= seconds
        self.progress.advance(self.tasks[lesson], seconds)
        self.progress.advance(self.all, seconds)

    def ends(self, lesson: str) -> None:
        self.progress.advance(self.all, self.left[lesson])  # what was not executed took no time
        self.progress.update(self.tasks[lesson], visible=False)


def bars(console: "Console") -> Bars:
    """Bars where ``console`` is a terminal, else none."""
    return RichBars(console) if console.is_terminal else Bars()
