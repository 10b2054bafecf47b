"""Before a generated notebook is written over: what somebody did in it is kept."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import nbformat

Say = Callable[[str], None]
STUB = "raise NotImplementedError"


def set_aside(root: Path, targets: Iterable[Path], say: Say) -> None:
    """Before ``targets`` are written anew: move each in which a learner worked to ``my-work/``, and say so."""
    for target in targets:
        _set_aside(root, target, say)


def _set_aside(root: Path, target: Path, say: Say) -> None:
    if not target.exists() or is_untouched(target):
        return
    place = root / "my-work" / target.name
    number = 1
    while place.exists():
        number += 1
        place = root / "my-work" / f"{target.stem}-{number}.ipynb"
    place.parent.mkdir(exist_ok=True)
    shutil.move(target, place)
    say(f"{target.relative_to(root)} had work in it; that is now {place.relative_to(root)}")


def is_untouched(path: Path) -> bool:
    """Is this a student notebook as it was released: nothing run, every exercise still a stub?"""
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception:
        return False  # whatever cannot be read might be somebody's work
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if cell.outputs or cell.execution_count is not None:
            return False
        if cell.metadata.get("nbgrader", {}).get("solution") and STUB not in cell.source:
            return False
    return True
