"""A lesson's folder: the text it is written as, the notebook that follows from it, and the data beside it."""

import copy
import importlib.util
import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest import mock

import jupytext
import nbformat
from nbformat import NotebookNode

from ..place import course_root

if TYPE_CHECKING:  # these import PyTorch, and a save in JupyterLab need not wait for that
    from .spec import Exercise, Known

EDITORS = {  # what editors note down about a cell; a lesson's text has no use for it
    "ExecuteTime", "cellView", "cell_id", "collapsed", "colab", "deletable", "editable", "execution",
    "heading_collapsed", "hidden", "id", "jp-MarkdownHeadingCollapsed", "jupyter", "lines_to_next_cell", "outputId",
    "scrolled", "slideshow", "trusted", "vscode",
}  # fmt: skip


class LessonError(ValueError):
    """A lesson's files do not fit together; the message says which file and what to change.

    ``details``, such as a traceback, are for whoever asks.
    """

    def __init__(self, sentence: str, details: str = ""):
        super().__init__(sentence)
        self.details = details


class Lesson:
    """One folder under ``solutions/``, such as ``01_attention_scoring``."""

    def __init__(self, folder: Path):
        self.folder = folder.resolve()
        self.name = self.folder.name
        self.number = self.name.split("_")[0]
        self.source = self.folder / f"{self.name}.py"
        self.notebook = self.folder / f"{self.name}.ipynb"
        if not self.source.exists():
            raise LessonError(f"{self.folder} has no {self.source.name}: a lesson's text has the name of its folder.")

    def __repr__(self) -> str:
        return f"Lesson({self.name})"

    @cached_property
    def title(self) -> str:
        """The title in words, from the first heading: ``# 01 · Attention scoring`` gives ``attention scoring``."""
        for cell in self.read().cells:
            heading = re.search(r"^# \d+ · (.+)$", cell.source, re.MULTILINE)
            if cell.cell_type == "markdown" and heading:
                return heading[1].strip().lower()
        raise LessonError(f"{self.source}: the first heading should read `# {self.number} · Title`.")

    def read(self) -> NotebookNode:
        """The lesson as a notebook without outputs, every cell with its lasting id. Each call gives a copy."""
        return copy.deepcopy(self._read)

    @cached_property
    def _read(self) -> NotebookNode:
        return self.parse(self.source.read_text(encoding="utf-8"))

    def parse(self, text: str) -> NotebookNode:
        """What :meth:`read` gives, for a ``text`` that is not written yet."""
        notebook = jupytext.reads(text, fmt="py:percent")
        taken: set[str] = set()
        for place, cell in enumerate(notebook.cells):
            mark(cell)
            cell.id = cell_id(cell, self.number, place)
            if cell.id in taken:
                raise LessonError(f"{self.source}: two cells have the grade_id {cell.id!r}.")
            taken.add(cell.id)
            cell.metadata.pop("lines_to_next_cell", None)  # jupytext's note to itself about blank lines
            if cell.cell_type == "code":
                cell.source = cell.source.rstrip()
        notebook.metadata = nbformat.from_dict(
            {
                "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
                "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
            }
        )
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        return notebook

    def namespace(self) -> dict[str, Any]:
        """Run what tests may build on, the locked cells and the solutions, and return the names they define."""
        from .. import check
        from ..cells import run_cell

        names: dict[str, Any] = {"__name__": self.name}
        # The setup cell opens the lesson's answers, which for a new lesson are only about to be written.
        with mock.patch.object(check, "start"), redirect_stdout(io.StringIO()):
            for cell in self.read().cells:
                info = cell.metadata.get("nbgrader", {})
                if cell.cell_type == "code" and info and not info.get("grade"):
                    run_cell(cell.id, cell.source, names)
        return names

    def tests(self, exercise: str) -> list[NotebookNode]:
        """The graded test cells of an exercise: those whose grade_id is ``test-NAME`` or ``test-NAME-...``."""
        wanted = f"test-{exercise}"
        return [
            cell
            for cell in self.read().cells
            if cell.metadata.get("nbgrader", {}).get("grade") and re.fullmatch(rf"{wanted}(-.*)?", cell.id)
        ]

    @cached_property
    def exercises(self) -> "list[Exercise]":
        """What ``cases.py`` declares."""
        return list(self._module("cases").EXERCISES)

    @cached_property
    def mistakes(self) -> "list[Known]":
        """What ``mistakes.py`` declares."""
        return self._known("mistakes", "known_mistake")

    @cached_property
    def alternatives(self) -> "list[Known]":
        """What ``alternatives.py`` declares."""
        return self._known("alternatives", "known_alternative")

    def _known(self, file: str, mark: str) -> "list[Known]":
        found = [getattr(x, mark) for x in vars(self._module(file)).values() if hasattr(x, mark)]
        names = {e.name for e in self.exercises}
        for each in found:
            if each.exercise not in names:
                raise LessonError(
                    f"{self.folder / file}.py: {each.name} is for {each.exercise!r}, not an exercise here."
                )
        return found

    def _module(self, file: str) -> ModuleType:
        path = self.folder / f"{file}.py"
        spec = importlib.util.spec_from_file_location(f"{self.name}_{file}", path)
        if spec is None or spec.loader is None or not path.exists():
            raise LessonError(f"{self.folder} has no {file}.py.")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def all_lessons(root: Path) -> list[Lesson]:
    """Every lesson under ``root/solutions``, in order."""
    return [Lesson(folder) for folder in sorted((root / "solutions").glob("[0-9][0-9]_*")) if folder.is_dir()]


def implementations(number: str, exercise: str) -> tuple[dict[str, Callable], dict[str, Callable]]:
    """The right and the wrong implementations of an exercise, each by a name: what a learner's own test is judged by.

    For hidden tests alone: they run on the instructor's machine, and nothing of this reaches a student.
    """
    lesson = next((x for x in all_lessons(course_root()) if x.number == number), None)
    if lesson is None:
        raise LessonError(f"There is no lesson {number} under {course_root() / 'solutions'}.")
    right = {x.name: x.implementation for x in lesson.alternatives if x.exercise == exercise}
    return right, {x.gives: x.implementation for x in lesson.mistakes if x.exercise == exercise}


def dump(notebook: NotebookNode) -> str:
    """The notebook's text: sorted keys, one space, a newline at the end."""
    return re.sub(r"\n*\Z", "\n", nbformat.writes(notebook))


def mark(cell: NotebookNode) -> None:
    """Turn the short header of a cell in a lesson's text into the metadata that nbgrader, JupyterLab and Colab read.

    ``exercise="NAME"`` is a cell that the learner fills in, ``test="NAME" points=N`` the graded cell below it, and
    ``given="NAME"`` a locked one that both use. A cell whose first line is ``# @title ...`` only draws, and is folded.
    """
    about = cell.metadata
    if exercise := about.pop("exercise", None):
        about["nbgrader"] = _nbgrader(exercise, solution=True)
    elif test := about.pop("test", None):
        about["nbgrader"] = _nbgrader(f"test-{test}", grade=True, locked=True, points=about.pop("points"))
    elif given := about.pop("given", None):
        about["nbgrader"] = _nbgrader(given, locked=True)
    if cell.cell_type == "code" and cell.source.startswith("# @title "):
        about["cellView"] = "form"  # Colab
        about["jupyter"] = {"source_hidden": True}  # JupyterLab


def unmark(cell: NotebookNode) -> dict[str, Any]:
    """The short header of a notebook's cell, as :func:`mark` reads it: the way back, without what editors note down.

    Raises:
        LessonError: if nbgrader's panel made of the cell what no short header says; the message names the cell.
    """
    about = {k: v for k, v in sorted(cell.metadata.items()) if k not in EDITORS and v != []}
    grader = about.pop("nbgrader", {})
    name, points = grader.get("grade_id", ""), grader.get("points")
    roles = tuple(bool(grader.get(role)) for role in ("solution", "grade", "locked", "task"))
    if not any(roles):
        return about
    if cell.cell_type != "code":
        raise LessonError(f"cell {name or cell.id}: it is {cell.cell_type}, and nbgrader has a role for it. {_ROLES}")
    if grader.get("schema_version", 3) != 3:
        raise LessonError(f"cell {name}: nbgrader's notes on it have another version than 3; run `nbgrader update .`.")
    if not name:
        raise LessonError(f"cell {cell.id}: give it a name, the ID in nbgrader's panel.")
    if roles == (True, False, False, False):
        return {"exercise": name} | about
    if roles == (False, False, True, False):
        return {"given": name} | about
    if roles == (False, True, True, False):
        if not name.startswith("test-"):
            raise LessonError(f"cell {name}: it is graded, so its ID is test-NAME, NAME being the exercise it tests.")
        return {"test": name.removeprefix("test-"), "points": points or 0} | about
    raise LessonError(f"cell {name}: {_kind(*roles)}. {_ROLES}")


_ROLES = (
    "A lesson's code cells are exercises (autograded answer), tests (autograder tests, locked) or given (read-only); "
    "other cells have no role."
)


def _kind(solution: bool, grade: bool, locked: bool, task: bool) -> str:
    if task:
        return "it is a manually graded task"
    if solution and grade:
        return "it is a manually graded answer"
    return "it is an answer that is locked" if solution else "it holds tests that are not locked"


def _nbgrader(
    name: str, *, solution: bool = False, grade: bool = False, locked: bool = False, **more: int
) -> dict[str, Any]:
    about = {"grade_id": name, "solution": solution, "grade": grade, "locked": locked} | more
    return about | {"cell_type": "code", "schema_version": 3, "task": False}


def cell_id(cell: NotebookNode, number: str, place: int) -> str:
    """A cell's lasting id: its grade_id, else the lesson's number and the cell's place in it."""
    return cell.metadata.get("nbgrader", {}).get("grade_id") or f"{number}-{place:03d}"
