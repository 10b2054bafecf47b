"""How a released notebook knows that it is as it was released, and which of its cells somebody changed since.

nbgrader's release step writes a seal into the notebook's own metadata: a digest of the whole and one of each cell. It
travels with the file, so it says the same after a clone, a download as a zip, a pull, or a copy to another folder.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

KEY = "attention_course"
Notebook = dict[str, Any]
Cell = dict[str, Any]


class Piece(NamedTuple):
    """One cell as it was released: its id, and the digest of what it says."""

    id: str
    digest: str


class Seal(NamedTuple):
    """Which release a notebook is of (a digest of all that it holds), and its cells in order."""

    release: str
    pieces: list[Piece]


def read(path: Path) -> Notebook | None:
    """The notebook in a file, or None if it is not one.

    Raises:
        OSError: if the file cannot be opened.
    """
    return parse(path.read_bytes())


def parse(data: bytes) -> Notebook | None:
    """The notebook that ``data`` is, or None: no JSON, half a file, a format from before 2015."""
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):  # neither JSON nor UTF-8, or made to do harm
        return None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    sound = isinstance(cells, list) and all(_is_cell(cell) for cell in cells)
    return notebook if sound and isinstance(notebook.get("metadata"), dict) else None


def dump(notebook: Notebook) -> bytes:
    """The bytes that nbgrader and the build write for a notebook: sorted keys, one space, a newline at the end."""
    import nbformat  # takes a second, and most starts of `make lab` have nothing to write

    return (nbformat.writes(nbformat.from_dict(notebook)).rstrip("\n") + "\n").encode("utf-8")


def text(cell: Cell) -> str:
    """A cell's source, which a file may hold as one text or as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def nbgrader(cell: Cell) -> dict[str, Any]:
    """What nbgrader says about a cell; nothing for prose and for cells of a learner's own."""
    about = cell["metadata"].get("nbgrader")
    return about if isinstance(about, dict) else {}


def digest(cell: Cell) -> str:
    """What a cell says, in 12 digits: its kind, source and attached pictures. Not its outputs, tags and folding."""
    return _short([cell["cell_type"], text(cell), cell.get("attachments") or {}])


def make(notebook: Notebook) -> Seal:
    """The seal of a notebook as it is now."""
    cells = notebook["cells"]
    whole = [[cell.get("id", ""), digest(cell), cell["metadata"]] for cell in cells]
    return Seal(_short(whole), [Piece(cell.get("id", ""), digest(cell)) for cell in cells])


def write(notebook: Notebook) -> None:
    """Put the seal of ``notebook`` as it is now into its metadata."""
    made = make(notebook)
    notebook["metadata"][KEY] = {"release": made.release, "cells": [f"{p.id} {p.digest}" for p in made.pieces]}


def stored(notebook: Notebook) -> Seal | None:
    """The seal that ``notebook`` carries from its release; None where there is none that can be read."""
    try:
        about = notebook["metadata"][KEY]
        pairs = [line.rsplit(" ", 1) for line in about["cells"]]
        return Seal(str(about["release"]), [Piece(name, value) for name, value in pairs])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def has_run(notebook: Notebook) -> bool:
    """Has any cell an output, or a number that says it was run?"""
    return any(cell.get("outputs") or cell.get("execution_count") is not None for cell in notebook["cells"])


def holds_work(notebook: Notebook, pieces: list[Piece]) -> bool:
    """Does a notebook hold more or less than the released ``pieces``: other text, cells, order, or an output?"""
    return has_run(notebook) or make(notebook).pieces != pieces


def _is_cell(cell: Any) -> bool:
    return (
        isinstance(cell, dict)
        and isinstance(cell.get("cell_type"), str)
        and isinstance(cell.get("metadata"), dict)
        and isinstance(cell.get("source", ""), str | list)
        and all(isinstance(line, str) for line in cell.get("source", ""))
        and isinstance(cell.get("id", ""), str)
    )


def _short(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
