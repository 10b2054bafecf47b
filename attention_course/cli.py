"""The command ``attention-course``: what the Makefile calls and an instructor types."""

import sys
from pathlib import Path
from typing import Annotated

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Run the command line; without the instructor's packages, say how to get them."""
    try:
        import typer
        from rich.console import Console
    except ImportError:
        sys.exit("This command is for instructors. Install its packages first: pip install 'attention-course[grading]'")

    app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)
    console = Console(soft_wrap=True, highlight=False, markup=False)

    @app.command()
    def build(
        lesson: Annotated[list[str] | None, typer.Argument(help="Lessons such as 01; all by default.")] = None,
        check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a build would.")] = False,
    ) -> None:
        """Regenerate the answers, the executed solutions and course/ from the lessons' texts."""
        from .authoring.build import build as run
        from .authoring.build import drift
        from .authoring.lesson import LessonError, all_lessons

        lessons = [x for x in all_lessons(ROOT) if not lesson or x.number in lesson or x.name in lesson]
        if not lessons:
            sys.exit(f"No lesson is called {' or '.join(lesson) if lesson else 'anything'} under solutions/.")
        try:
            if not check:
                run(ROOT, lessons, console.print)
                console.print(f"{len(lessons)} lessons are up to date.")
                return
            found = drift(ROOT, lessons)
        except LessonError as error:
            sys.exit(str(error))
        for line in found:
            console.print(line)
        if found:
            sys.exit("What is stored differs from what the build makes. Run `make build` and commit what it changes.")
        console.print(f"{len(lessons)} lessons: nothing drifted.")

    @app.command()
    def release() -> None:
        """Write dist/: what an instructor hands to students."""
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


if __name__ == "__main__":
    main()
