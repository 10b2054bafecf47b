"""A learner's own copies of the lessons, in ``work/``: made on first use, and brought up to date around the work in them.

``work/.released/`` keeps each lesson as it was when the copy was made. Nothing that is generated goes into a learner's
notebook without the old file being kept beside it, unless there is nothing of the learner's in it.
"""

import copy
from collections.abc import Callable
from pathlib import Path

from . import guard, merge, seal
from .seal import Notebook

Say = Callable[[str], None]
STUB = "raise NotImplementedError"


class NoCopyError(RuntimeError):
    """A learner has no copy of any lesson, and none could be made; the message says why."""


def update(root: Path, say: Say = print) -> None:
    """Bring ``work/`` up to date with ``course/``, with a sentence for each thing done, and none where nothing was.

    Raises:
        NoCopyError: if there is no copy at all and none could be made. A single one that could not be made is said.
    """
    made: list[str] = []
    replaced: list[str] = []
    failed: list[str] = []
    _adopt_others(root, say)
    for released in _lessons(root):
        place = root / "work" / released.relative_to(root / "course")
        try:
            fresh = _adopt(root, released, place, say)
            if fresh is not None:
                _bring(root, released, place, fresh, made, replaced, say)
        except OSError as error:
            why = str(error) if isinstance(error, guard.NotKeptError) else error.strerror or str(error)
            if place.exists():
                say(f"{_shown(root, place)} is as it was; it could not be brought up to date ({why}).")
            else:
                failed.append(f"{released.parent.name} ({why})")
    if made:
        say(f"work/ holds your own {'copy' if len(made) == 1 else 'copies'} of {', '.join(made)} now. Git ignores it.")
    if replaced:
        say(f"New release in work/, where nothing was yours yet: {', '.join(replaced)}.")
    if failed:
        words = f"No copy of {', '.join(failed)} could be made in work/. Nothing was lost. Mend that and run this again."
        if first_unfinished(root) is None:
            raise NoCopyError(words)
        say(words)


def first_unfinished(root: Path) -> Path | None:
    """The learner's copy of the first lesson with an exercise still to write; the first of all if none has; else None."""
    copies = sorted(path for path in (root / "work").glob("[0-9]*/*.ipynb") if path.stem == path.parent.name)
    return next((path for path in copies if _unfinished(path)), copies[0] if copies else None)


def _lessons(root: Path) -> list[Path]:
    return sorted(path for path in (root / "course").glob("[!.]*/*.ipynb") if path.stem == path.parent.name)


def _unfinished(path: Path) -> bool:
    try:
        notebook = seal.read(path)
    except OSError:
        return False
    exercises = [c for c in (notebook or {"cells": []})["cells"] if c["metadata"].get("nbgrader", {}).get("solution")]
    return any(STUB in seal.text(cell) for cell in exercises)


def _adopt(root: Path, released: Path, place: Path, say: Say) -> Notebook | None:
    """The lesson as it is released. Work that somebody did in ``course/`` becomes the learner's copy first.

    None if the release is nowhere to be found; then the copy in ``work/`` is all there is, and stays as it is.
    """
    if guard.is_released(root, released):
        return seal.read(released)
    fresh = _release_of(root, released)
    worked = seal.read(released)
    kept, new = guard.keep(root, released)
    adopted = worked is not None and not _has_work(root, place)
    if adopted:
        guard.write(place, released.read_bytes())
        if seal.stored(worked) is None and fresh is not None:
            guard.write(_base(root, place), _sealed(fresh))
    if fresh is not None:
        guard.write(released, seal.dump(fresh))
    if new or adopted:
        say(
            f"{_shown(root, released)} had work in it. "
            + (f"It is your copy in work/ now, and kept in {_shown(root, kept)}." if adopted else f"It is in {_shown(root, kept)} now.")
        )  # fmt: skip
    if fresh is None and not place.exists():
        raise OSError(f"{_shown(root, released)} is damaged: get it anew from where you got the course")
    return fresh


def _adopt_others(root: Path, say: Say) -> None:
    """Files that somebody put into ``course/``, a renamed notebook say: to ``my-work/``, and a copy into ``work/``."""
    ours = set(_lessons(root))
    for path in sorted(guard.files(root / "course")):
        if path in ours or path.is_symlink() or guard.CHECKPOINTS in path.parts:
            continue
        place = root / "work" / path.relative_to(root / "course")
        try:
            if not place.exists():
                guard.write(place, path.read_bytes())
            kept = guard.move(root, path)
        except OSError as error:
            say(f"{_shown(root, path)} is no part of the release and could not be moved to work/ ({error}).")
            continue
        say(f"{_shown(root, path)} is no part of the release. It is in work/ now, and kept in {_shown(root, kept)}.")


def _release_of(root: Path, released: Path) -> Notebook | None:
    """The release that a changed notebook in ``course/`` stands in the way of: git has it, or ``work/.released/`` has."""
    worked = seal.read(released)
    about = seal.stored(worked) if worked else None
    found = []
    for notebook in (guard.in_git(root, released), _read_if_there(_base(root, root / "work" / released.relative_to(root / "course")))):
        if notebook is None:
            continue
        told = seal.stored(notebook)
        if told is None or not seal.holds_work(notebook, told.pieces):
            found.append(notebook)
    same = [each for each in found if about and seal.make(each).release == about.release]
    return next(iter([*same, *found]), None)


def _bring(
    root: Path, released: Path, place: Path, fresh: Notebook, made: list[str], replaced: list[str], say: Say
) -> None:
    """Make or update one learner's copy, ``place``, of one released lesson."""
    base_file = _base(root, place)
    if not place.exists():
        guard.write(place, _sealed(fresh))
        guard.write(base_file, _sealed(fresh))
        made.append(released.parent.name)
        return
    mine = seal.read(place)
    if mine is None:
        kept, _ = guard.put(place, guard.numbered(place.with_name(f"{place.stem}-unreadable.ipynb")))
        guard.write(place, _sealed(fresh))
        guard.write(base_file, _sealed(fresh))
        say(f"{_shown(root, place)} cannot be read as a notebook. It is kept as {kept.name}, and a fresh copy is in its place.")
        return
    base = _read_if_there(base_file)
    known = seal.stored(mine) or (seal.make(base) if base else None)
    if known is not None and known.release == seal.make(fresh).release:
        if base is None or seal.make(base).release != known.release:
            guard.write(base_file, _sealed(fresh))
        return
    if known is not None and not seal.holds_work(mine, known.pieces):
        guard.write(place, _sealed(fresh))
        guard.write(base_file, _sealed(fresh))
        replaced.append(released.parent.name)
        return
    texts = {c.get("id", ""): seal.text(c) for c in base["cells"]} if base and known == seal.make(base) else {}
    merged = merge.merge(mine, known.pieces if known else None, _with_seal(fresh), texts)
    kept, _ = guard.put(place, guard.numbered(place.with_name(f"{place.stem}-before-update.ipynb")))
    guard.write(place, seal.dump(merged.notebook))
    guard.write(base_file, _sealed(fresh))
    say(
        " ".join([
            f"{_shown(root, place)} has the new release around your work; the file as it was is {kept.name} beside it.",
            *([] if known else ["Which release it was made from is not known, so look through it once."]),
            *merged.remarks(),
        ])
    )  # fmt: skip


def _has_work(root: Path, place: Path) -> bool:
    """Is there a copy in ``work/`` that is not as it was released?"""
    if not place.exists():
        return False
    mine, base = seal.read(place), _read_if_there(_base(root, place))
    known = mine and (seal.stored(mine) or (seal.make(base) if base else None))
    return mine is None or known is None or seal.holds_work(mine, known.pieces)


def _base(root: Path, place: Path) -> Path:
    return root / "work" / ".released" / place.relative_to(root / "work")


def _read_if_there(path: Path) -> Notebook | None:
    try:
        return seal.read(path)
    except OSError:
        return None


def _with_seal(notebook: Notebook) -> Notebook:
    """A released notebook that knows what it is, even where the release did not say so."""
    notebook = copy.deepcopy(notebook)
    if seal.stored(notebook) is None:
        seal.write(notebook)
    return notebook


def _sealed(notebook: Notebook) -> bytes:
    return seal.dump(_with_seal(notebook))


def _shown(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
