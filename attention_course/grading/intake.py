"""What happens before nbgrader opens a submission: the gradebook is backed up, and only plain files are let in.

A link would be followed by this side, before any sandbox; a pipe would be waited on for ever.
"""

import logging
import os
import sqlite3
import stat
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path

MOST_BYTES = 32 * 2**20
KEPT_BACKUPS = 20

log = logging.getLogger("attention_course.grading")
_backed_up: set[Path] = set()


def before_autograding(assignment: str, student: str, notebooks: Iterable[str]) -> None:
    """nbgrader calls this before it touches one submission. ``notebooks`` are the paths of its notebooks."""
    folders = {Path(notebook).parent for notebook in notebooks}
    for folder in folders:
        grading = folder.parents[2]
        backup(grading / "gradebook.db")
        refuse(folder, grading / "refused")


def backup(gradebook: Path) -> Path | None:
    """Copy the gradebook to ``backups/`` beside it, once for each run. Returns the copy, or None if there was nothing to do.

    SQLite's own backup is used, which is right even while somebody writes.
    """
    if gradebook in _backed_up or not gradebook.exists():
        return None
    _backed_up.add(gradebook)
    folder = gradebook.parent / "backups"
    folder.mkdir(exist_ok=True)
    copy = folder / f"gradebook-{datetime.now():%Y%m%d-%H%M%S-%f}.db"
    with closing(sqlite3.connect(gradebook)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    for old in sorted(folder.glob("gradebook-*.db"))[:-KEPT_BACKUPS]:
        old.unlink()
    return copy


def refuse(submission: Path, refused: Path) -> list[str]:
    """Move everything out of a submission that is not a plain file of a sensible size. Returns what was moved, and why.

    Where a notebook was, an empty file stays behind: nbgrader reports that by the student's name, where it would score
    a missing file 0 in silence. What was moved is kept under ``refused``.
    """
    found = []
    for base, folders, files in os.walk(submission):
        for name in [*folders, *files]:
            path = Path(base, name)
            problem = _problem(path.lstat())
            if problem is None:
                continue
            place = refused / submission.parent.name / submission.name / path.relative_to(submission)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.rename(place)
            if path.suffix == ".ipynb":
                path.touch()
            found.append(f"{path.relative_to(submission)}: {problem}")
            log.error("%s/%s: %s was not let in: %s", submission.parent.name, submission.name, name, problem)
    return found


def _problem(about: os.stat_result) -> str | None:
    if stat.S_ISLNK(about.st_mode):
        return "it is a link to another place"
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
        return "it is not a file"
    if stat.S_ISREG(about.st_mode) and about.st_size > MOST_BYTES:
        return f"it is larger than {MOST_BYTES // 2**20} MB"
    return None
