"""nbgrader as an instructor runs it, for tests: its commands in a folder, and the scores from its gradebook."""

import os
import subprocess
import sys
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry


def nbgrader(root: Path, *args: str, **environment: str) -> subprocess.CompletedProcess:
    """Run ``nbgrader ARGS`` in ``root``. It calls helpers by name, so this interpreter's programs come first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {"PATH": path, "ATTENTION_CHECK_SECONDS": "2"} | environment
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *args],
        cwd=root, env=os.environ | settings, capture_output=True, text=True, check=False,
    )  # fmt: skip


def scores(root: Path, student: str, lesson: str) -> dict[str, tuple[float, float]]:
    """Score and maximum of each graded cell; empty if the gradebook has nothing of this student."""
    with Gradebook(f"sqlite:///{root / 'grading' / 'gradebook.db'}") as gradebook:
        try:
            found = gradebook.find_submission_notebook(lesson, lesson, student)
        except MissingEntry:
            return {}
        return {grade.name: (grade.score, grade.max_score) for grade in found.grades}
