"""What the graded cells of an exercise say of an answer: in one process, for answers that are trusted."""

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode

from .. import check
from ..cells import run_cell
from ..check import CheckFailed


@dataclass
class Verdict:
    """What the graded cells raised; none of them raised anything where the answer is right."""

    raised: list[BaseException] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        return not self.raised

    @property
    def failures(self) -> list[CheckFailed]:
        """The messages that a learner reads."""
        return [error for error in self.raised if isinstance(error, CheckFailed)]

    @property
    def known(self) -> bool:
        """Is it recognised as a known mistake?"""
        return any(error.known for error in self.failures)

    @property
    def related(self) -> bool:
        """Is it said how its numbers are off?"""
        return any(error.relation for error in self.failures)

    @property
    def located(self) -> bool:
        """Is the line that failed shown with the shapes that met there?"""
        return any("there " in error.parts["observed"] for error in self.failures if error.rung == "runs")

    @property
    def rung(self) -> str:
        """The step of the ladder that broke; ``hidden`` for a test that the check does not show."""
        return self.failures[0].rung if self.failures else "hidden" if self.raised else ""


def judge(tests: Sequence[NotebookNode], lesson: str, names: dict[str, Any], solved: Sequence[str] = ()) -> Verdict:
    """Run graded cells, visible and hidden part, on the answers in ``names``.

    Args:
        tests: the graded cells. lesson: its number.
        names: what the lesson and the answer define; the cells run in it.
        solved: the exercises that count as solved already.
    """
    verdict = Verdict()
    with contextlib.redirect_stdout(io.StringIO()):
        check.start(lesson)
        check.passed(*solved)
        for cell in tests:
            try:
                run_cell(cell.id, cell.source, names)
            except Exception as error:
                verdict.raised.append(error)
    return verdict
