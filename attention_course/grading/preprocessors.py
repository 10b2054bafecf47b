"""Where the examiner meets nbgrader: two preprocessors that ``nbgrader_config.py`` puts into ``Autograde``.

:class:`Rebuild` takes the place of the sanitizing ones, :class:`Examine` that of ``Execute``. Gradebook, formgrader and
feedback stay nbgrader's.
"""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Float

from ..place import course_root
from . import launch, sandbox

MOST_SOURCE = 100_000
HIDDEN_TESTS = re.compile(r"^### BEGIN HIDDEN TESTS$.*?(?:^### END HIDDEN TESTS$\n?|\Z)", re.DOTALL | re.MULTILINE)


class Rebuild(NbGraderPreprocessor):
    """Puts a student's answers into the master copy; everything else of the submission counts for nothing.

    The master copy is the instructor's notebook, with graded and locked cells as the gradebook has them.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        about = resources["nbgrader"]
        master = nbformat.read(
            course_root() / "solutions" / about["assignment"] / f"{about['notebook']}.ipynb", as_version=4
        )
        with Gradebook(about["db_url"]) as gradebook:
            kept = {c.name: c.source for c in gradebook.find_notebook(about["notebook"], about["assignment"]).source_cells}
        return rebuild(master, nb, kept), resources


def rebuild(master: NotebookNode, submission: NotebookNode, kept: dict[str, str]) -> NotebookNode:
    """The notebook that is graded: ``master`` with the sources of the student's cells.

    Args:
        master: the instructor's notebook, solutions and all.
        submission: whatever a student handed in.
        kept: the gradebook's sources of graded and locked cells, which win over the master's.
    """
    theirs: dict[str, str] = {}
    added: dict[str, list[str]] = {}
    known = {c.id for c in master.cells}
    above = master.cells[0].id
    for cell in submission.get("cells", []):
        about = cell.get("metadata", {}).get("nbgrader", {})
        name = about.get("grade_id") if isinstance(about, dict) else None
        name = name if name in known else cell.get("id")
        source = cell.get("source", "")
        source = _clean(source[:MOST_SOURCE]) if isinstance(source, str) else ""
        if name in known:
            above = name
            theirs.setdefault(name, source)  # of a duplicated cell the first counts, as in the notebook's own order
        elif cell.get("cell_type") == "code":
            added.setdefault(above, []).append(source)
    cells = []
    for cell in master.cells:
        about = cell.metadata.get("nbgrader", {})
        fresh = nbformat.from_dict(json.loads(json.dumps(cell)))
        if cell.cell_type == "code":
            fresh.outputs, fresh.execution_count = [], None
            fresh.source = _source(cell, about, theirs, kept)
        cells.append(fresh)
        for number, source in enumerate(added.get(cell.id, [])):
            new = nbformat.v4.new_code_cell(source, id=f"added-{number}-{cell.id}"[:64])
            cells.append(new)
    rebuilt = nbformat.v4.new_notebook(cells=cells, metadata=json.loads(json.dumps(master.metadata)))
    return rebuilt


def _clean(value: Any) -> Any:
    """Texts without what no file can hold: half of a character, as ``"\\ud800"`` is."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_clean(k): _clean(v) for k, v in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list) else value


def _source(cell: NotebookNode, about: dict[str, Any], theirs: dict[str, str], kept: dict[str, str]) -> str:
    if about.get("solution"):
        return theirs.get(cell.id, "raise NotImplementedError  # this cell is missing from the submission")
    if about:
        return kept.get(cell.id, cell.source)
    return theirs.get(cell.id, "")


class Examine(NbGraderPreprocessor):
    """Examines a rebuilt notebook: student cells in the sandbox, graded cells in the examiner."""

    sandboxed = Bool(True, help="Run student code in the sandbox. Turn it off only for code that you trust.").tag(config=True)
    cell_seconds = Float(60, help="How long one cell, or one call from a test, may take.").tag(config=True)
    total_seconds = Float(300, help="How long a whole notebook may take.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        if self.sandboxed and (problems := sandbox.missing()):
            raise sandbox.SandboxMissing(
                "Student code is not run without the sandbox. "
                + " ".join(problems)
                + " To grade code that you trust all the same: --Examine.sandboxed=False"
            )
        cells = [
            {"id": cell.id, "role": _role(cell), "source": cell.source}
            for cell in nb.cells
            if cell.cell_type == "code" and (cell.source.strip() or _role(cell) == "test")
        ]
        outputs = self._examine(cells)
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs = [nbformat.from_dict(o) for o in outputs.get(cell.id, [])]
        if not self.sandboxed:
            nb.metadata["examined_without_sandbox"] = True
        return nb, resources

    def _examine(self, cells: list[dict[str, str]]) -> dict[str, list[dict[str, Any]]]:
        with tempfile.TemporaryDirectory(prefix="examine-") as name:
            job, result, log = (Path(name, each) for each in ("job.json", "result.json", "log.txt"))
            settings = {"cell_seconds": self.cell_seconds, "total_seconds": self.total_seconds, "sandboxed": self.sandboxed}
            job.write_text(json.dumps({"cells": cells} | settings), encoding="utf-8")
            process = launch.start(job, result, log)
            process.join(self.total_seconds + 60)
            if process.is_alive():
                process.kill()
                process.join()
            if result.exists():
                return _clean(json.loads(result.read_text(encoding="utf-8")))
            self.log.error("The examiner did not finish: %s", log.read_text(errors="replace")[-2000:] if log.exists() else "")
            reason = "The examiner did not finish; your instructor has its log."
            failed = {"output_type": "error", "ename": "NotExamined", "evalue": reason, "traceback": [reason]}
            return {cell["id"]: [failed] for cell in cells if cell["role"] == "test"}


class DropAuthoring(NbGraderPreprocessor):
    """Takes out of a released notebook what is noted in it for who edits the lesson's text."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        for name in ("agreed", "jupytext"):
            nb.metadata.pop(name, None)
        return nb, resources


class HideHiddenTests(NbGraderPreprocessor):
    """Takes hidden tests out of a notebook that is about to become feedback."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.source = HIDDEN_TESTS.sub("", cell.source).rstrip()
        return nb, resources


def _role(cell: NotebookNode) -> str:
    about = cell.metadata.get("nbgrader", {})
    if about.get("grade") and not about.get("solution"):
        return "test"
    return "given" if about.get("locked") else "student"
