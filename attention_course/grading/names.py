"""Before nbgrader looks for notebooks: a submission counts whatever its file is called.

nbgrader grades ``LESSON/LESSON.ipynb`` and scores anything else 0 without a word. Browsers, learning platforms and Colab
rename files ("Copy of …", "… (1)", "….ipynb.txt"), so the lesson is recognised by the name's letters, else by the cells.
"""

import json
import logging
import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any

from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter, NbGraderException

from ..place import course_root
from .intake import MOST_BYTES

_EXTENSION = re.compile(r"\.ipynb(\.(txt|json))?$|\.(txt|json)$", re.IGNORECASE)
_LEAST_CELLS = 3  # cells of a lesson that a notebook has to have before it is taken for that lesson

log = logging.getLogger("attention_course.grading")


@dataclass(frozen=True)
class Candidate:
    """A file of a submission that may be the notebook. The better one is the larger one."""

    path: Path
    readable: bool
    when: int
    named: bool

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """What can be read before what cannot, then the newest, then the one with the right name."""
        return (self.readable, self.when, self.named)


def settle(submission: Path, lesson: str, older: Path) -> list[str]:
    """Give a submission's notebook the name that nbgrader looks for. Returns what was done, a sentence each.

    Of several the newest that can be read is taken; the others move to ``older``, and none is ever overwritten.

    Args:
        submission: the folder ``submitted/STUDENT/LESSON``.
        lesson: the lesson's name, such as ``01_attention_scoring``.
        older: the folder that keeps the other attempts.
    """
    found = sorted(candidates(submission, lesson), key=lambda each: each.rank, reverse=True)
    if not found:
        return []
    said, wanted = [], f"{lesson}.ipynb"
    for each in found[1:]:
        kept = _free(older / each.path.name)
        kept.parent.mkdir(parents=True, exist_ok=True)
        each.path.rename(kept)
        said.append(f"{each.path.name} is another attempt at the same lesson; it is kept as {kept}")
    if found[0].path.name != wanted:
        found[0].path.rename(submission / wanted)
        said.append(f"{found[0].path.name} is graded as {wanted}")
    return said


def candidates(submission: Path, lesson: str) -> list[Candidate]:
    """The files of a submission that are this lesson's notebook, by their names or by what is in them."""
    found = []
    for path in sorted(submission.iterdir()):
        about = path.lstat()
        if stat.S_ISDIR(about.st_mode):
            continue
        named, notebook = _says(path.name, lesson), _read(path, about)
        by_name = named and path.name.lower().removesuffix(".txt").removesuffix(".json").endswith(".ipynb")
        if by_name or (notebook and (named or recognise(notebook) == lesson)):
            found.append(Candidate(path, notebook is not None, about.st_mtime_ns, path.name == f"{lesson}.ipynb"))
    return found


def recognise(notebook: dict[str, Any]) -> str | None:
    """The lesson that a notebook's cells are from: the one with which it shares most names of cells."""
    names = _names(notebook)
    shared = sorted(((len(names & ids), lesson) for lesson, ids in _lessons().items()), reverse=True)
    if not shared or shared[0][0] < _LEAST_CELLS or (len(shared) > 1 and shared[0][0] == shared[1][0]):
        return None
    return shared[0][1]


def _says(file: str, lesson: str) -> bool:
    """Is the lesson's name in the file's, whatever is around it, in capitals or not, with spaces for underscores?"""
    return bool(_EXTENSION.search(file)) and _letters(lesson) in _letters(_EXTENSION.sub("", file))


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text).casefold())


def _read(path: Path, about: os.stat_result) -> dict[str, Any] | None:
    """The notebook in a plain file of a sensible size, as JSON; None if there is none. A link is not followed."""
    if not (stat.S_ISREG(about.st_mode) and about.st_size <= MOST_BYTES and _EXTENSION.search(path.name)):
        return None
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("cells", found.get("worksheets")), list) else None


def _names(notebook: dict[str, Any]) -> set[str]:
    """What a notebook's cells are called: by nbgrader, by the notebook format, or by Colab."""
    found: set[str] = set()
    cells = notebook.get("cells")
    for cell in cells if isinstance(cells, list) else []:
        about = cell.get("metadata") if isinstance(cell, dict) else None
        about = about if isinstance(about, dict) else {}
        graded = about.get("nbgrader")
        graded = graded if isinstance(graded, dict) else {}
        names = (graded.get("grade_id"), cell.get("id") if isinstance(cell, dict) else None, about.get("id"))
        found |= {name for name in names if isinstance(name, str)}
    return found


@cache
def _lessons() -> dict[str, set[str]]:
    """The names of the cells of every lesson."""
    found = {}
    for path in sorted((course_root() / "solutions").glob("*/*.ipynb")):
        if path.stem == path.parent.name:
            found[path.stem] = _names(json.loads(path.read_bytes()))
    return found


def _free(path: Path) -> Path:
    """``path``, or with a number behind its name where that is taken."""
    number, free = 1, path
    while free.exists() or free.is_symlink():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def settle_before_autograding() -> None:
    """Let ``nbgrader autograde`` and the formgrader's button settle the names first. ``nbgrader_config.py`` calls this.

    nbgrader offers no seat before it looks for notebooks, so its look is preceded by ours.
    """
    Autograde.init_notebooks = _init_notebooks
    Autograde.convert_notebooks = _convert_notebooks


def _init_notebooks(self: Autograde) -> None:
    self.not_recognised = []
    lesson = self.coursedir.assignment_id
    folders = [Path(each) for each in glob(self._format_source(lesson, self.coursedir.student_id))]
    for folder in sorted(each for each in folders if each.is_dir()):
        student = folder.parent.name
        try:
            said = settle(folder, lesson, folder.parents[2] / "older" / student / lesson)
        except OSError as error:
            said = [f"its files cannot be renamed ({error.strerror}: {error.filename})"]
        for words in said:
            self.log.warning("%s: %s", student, words)
        if not os.path.lexists(folder / f"{lesson}.ipynb"):
            self.not_recognised.append(student)
            there = ", ".join(sorted(each.name for each in folder.iterdir())) or "nothing"
            self.log.error(
                "%s was not graded: no notebook of %s was handed in. The folder holds: %s", student, lesson, there
            )
    if folders and len(self.not_recognised) == len(folders):
        raise NbGraderException(_not_graded(self))
    BaseConverter.init_notebooks(self)
    # nbgrader would score these 0; they have no score.
    for folder in [each for each in self.assignments if not os.path.lexists(Path(each, f"{lesson}.ipynb"))]:
        del self.assignments[folder]


def _convert_notebooks(self: Autograde) -> None:
    BaseConverter.convert_notebooks(self)
    if self.not_recognised:
        raise NbGraderException(_not_graded(self))


def _not_graded(self: Autograde) -> str:
    words = f"Not graded, as there was no notebook: {', '.join(self.not_recognised)}"
    self.log.error(words)  # the command ends without saying why
    return words
