"""The command ``attention-course``: what the Makefile calls and an instructor types."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    from .authoring.lesson import Lesson

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Run the command line; without the instructor's packages, say how to get them."""
    try:
        import typer
        from rich.console import Console
    except ImportError:
        sys.exit("This command is for instructors; their packages are missing. In the course's folder, run: make setup")

    app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)
    console = Console(soft_wrap=True, highlight=False, markup=False)

    @app.command()
    def build(
        lesson: Annotated[list[str] | None, typer.Argument(help="Lessons such as 01; all by default.")] = None,
        check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a build would.")] = False,
        force: Annotated[bool, typer.Option("--force", help="Build all of it; the texts win.")] = False,
    ) -> None:
        """Regenerate what changed of the answers, the executed solutions and course/ from the lessons' texts."""
        from .authoring.build import build as run
        from .authoring.build import drift
        from .authoring.lesson import LessonError
        from .authoring.show import bars

        lessons = _chosen(lesson)
        try:
            if not check:
                _report(run(ROOT, lessons, console.print, force=force, bars=bars(console)), len(lessons), console.print)
                return
            found = drift(ROOT, lessons)
        except LessonError as error:
            sys.exit(str(error))
        except KeyboardInterrupt:
            sys.exit("Stopped. Lessons that were said to be written are; the others are as they were.")
        for line in found:
            console.print(line)
        if found:
            sys.exit("What is stored differs from what the build makes. Run `make build` and commit what it changes.")
        console.print(f"{len(lessons)} lessons: nothing drifted.")

    @app.command()
    def text(
        lesson: Annotated[list[str] | None, typer.Argument(help="Lessons such as 01; all by default.")] = None,
        force: Annotated[
            bool, typer.Option("--force", help="Also where the text was edited; the notebook wins.")
        ] = False,
    ) -> None:
        """Bring what was edited in a solution's notebook back into the lesson's text."""
        from .authoring.lesson import LessonError
        from .authoring.text import notebook_to_text

        failed = 0
        for each in _chosen(lesson):
            try:
                changed = notebook_to_text(each, force=force)
                console.print(
                    f"{each.number}: {'in the text now: ' + ', '.join(changed) if changed else 'nothing to bring'}"
                )
            except LessonError as error:
                console.print(str(error) if str(error).startswith(each.name) else f"{each.name}: {error}")
                failed += 1
        if failed:
            sys.exit(1)

    @app.command()
    def release() -> None:
        """Write dist/: what students get, to publish as it is. COURSE_URL=https://... says where it will be."""
        from .authoring.release import ReleaseError
        from .authoring.release import release as run

        try:
            run(ROOT, console.print)
        except ReleaseError as error:
            sys.exit(str(error))

    @app.command()
    def work() -> None:
        """Make your own copies of the lessons in work/, or bring them up to date around what you wrote."""
        from .authoring.work import NoCopyError, update

        try:
            update(ROOT, console.print)
        except NoCopyError as error:
            sys.exit(str(error))

    @app.command()
    def kernels() -> None:
        """Install the kernels attention-cpu and attention-gpu into this virtual environment."""
        from .authoring.kernels import install_kernels

        for folder in install_kernels():
            console.print(f"kernel {folder.name} is in {folder}")

    @app.command()
    def doctor() -> None:
        """Say what this machine offers for grading, and what is missing."""
        from .grading.doctor import examine_machine

        findings = examine_machine()
        for well, what, words in findings:
            console.print(f"{'ok ' if well else '-- '} {what:15} {words}")
        if any(not well and what in ("sandbox", "kernel", "trial", "Python") for well, what, _ in findings):
            sys.exit("This machine cannot grade yet; see the lines that begin with --.")

    app()


def _chosen(names: list[str] | None) -> list["Lesson"]:
    """The lessons of these numbers or names, all if there are none."""
    from .authoring.lesson import LessonError, all_lessons

    try:
        lessons = all_lessons(ROOT)
    except LessonError as error:
        sys.exit(str(error))
    known = {x.number for x in lessons} | {x.name for x in lessons}
    if unknown := [name for name in names or [] if name not in known]:
        sys.exit(f"No lesson is called {' or '.join(unknown)} under solutions/. There are {', '.join(sorted(known))}.")
    if not lessons:
        sys.exit("There is no lesson under solutions/.")
    return [x for x in lessons if not names or x.number in names or x.name in names]


def _report(failed: list[str], lessons: int, say: Callable[[str], None]) -> None:
    """How a build ended, in its last line."""
    if not failed:
        say(f"{lessons} {'lesson is' if lessons == 1 else 'lessons are'} up to date.")
        return
    names = ", ".join(sentence.split(":")[0] for sentence in failed)
    sys.exit(f"{lessons - len(failed)} of {lessons} lessons are up to date. Not built, and as they were: {names}.")


if __name__ == "__main__":
    main()
