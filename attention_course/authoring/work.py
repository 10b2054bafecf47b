"""A learner's own copies of the lessons, in ``work/``: made on first use, later updated around the work in them.

``work/.released/`` has each lesson as it was when the copy was made. A notebook that holds anything of a learner's is
only written after the file as it was has been put beside it.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import guard, merge, seal
from .seal import Notebook, Seal

Say = Callable[[str], None]
STUB = "raise NotImplementedError"


class NoCopyError(RuntimeError):
    """A learner has no copy of any lesson, and none could be made; the message says why."""


@dataclass
class Copy:
    """One lesson as it is released, ``released``, and the learner's own, ``place``, which need not exist yet."""

    root: Path
    released: Path

    @property
    def lesson(self) -> str:
        return self.released.parent.name

    @property
    def place(self) -> Path:
        return self.root / "work" / self.released.relative_to(self.root / "course")

    @property
    def base(self) -> Path:
        """What the learner's was made from."""
        return self.root / "work" / ".released" / self.released.relative_to(self.root / "course")

    def beside(self, what: str) -> Iterator[Path]:
        """Names beside the learner's, for the file as it was."""
        return guard.numbered(self.place.with_name(f"{self.place.stem}-{what}.ipynb"))

    def renew(self, fresh: Notebook, notebook: Notebook | None = None) -> None:
        """Write the learner's, the release itself if nothing else is given, and note what it was made from."""
        guard.write(self.place, seal.dump(notebook or fresh))
        guard.write(self.base, seal.dump(fresh))


@dataclass
class Done:
    """What is said in one sentence about several lessons."""

    made: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def update(root: Path, say: Say = print) -> None:
    """Bring ``work/`` up to date with ``course/``, with a sentence for each thing done, and none where nothing was.

    Raises:
        NoCopyError: if there is no copy at all and none could be made. A single one that could not be made is said.
    """
    done = Done()
    lessons = [Copy(root, path) for path in sorted((root / "course").glob("[!.]*/*.ipynb")) if _is_lesson(path)]
    _adopt_others(root, {each.released for each in lessons}, say)
    for each in lessons:
        try:
            fresh = _released(each, say)
            if fresh is not None:
                _bring(each, fresh, done, say)
        except OSError as error:
            why = error.strerror or str(error)
            if each.place.exists():
                say(f"{_shown(root, each.place)} is as it was: it could not be brought up to date ({why}).")
            else:
                done.failed.append(f"{each.lesson} ({why})")
    if done.made:
        say(f"work/ has your own copy of {_several(done.made)} now; git ignores it.")
    if done.replaced:
        say(f"work/ has the new release of {_several(done.replaced)}; nothing there was yours yet.")
    if done.failed:
        words = f"work/ could not be given a copy of {_several(done.failed)}. Mend that and run the command again."
        if first_unfinished(root) is None:
            raise NoCopyError(words)
        say(words)


def first_unfinished(root: Path) -> Path | None:
    """The learner's copy of the first lesson with an exercise to write, else of the first lesson, if there is one."""
    copies = [path for path in sorted((root / "work").glob("[!.]*/*.ipynb")) if _is_lesson(path)]
    return next((path for path in copies if _unfinished(path)), copies[0] if copies else None)


def _several(lessons: list[str]) -> str:
    return ", ".join(lessons) if len(lessons) < 4 else f"{lessons[0]} and {len(lessons) - 1} more lessons"


def _is_lesson(path: Path) -> bool:
    return path.stem == path.parent.name


def _unfinished(path: Path) -> bool:
    notebook = _read_if_there(path) or {"cells": []}
    answers = [cell for cell in notebook["cells"] if seal.nbgrader(cell).get("solution")]
    return any(STUB in seal.text(cell) for cell in answers)


def _bring(each: Copy, fresh: Notebook, done: Done, say: Say) -> None:
    """Make one learner's copy, or put the release around what is in it."""
    if not each.place.exists():
        each.renew(fresh)
        done.made.append(each.lesson)
        return
    mine, base = seal.read(each.place), _read_if_there(each.base)
    shown = _shown(each.root, each.place)
    if mine is None:
        kept, _ = guard.put(each.place, each.beside("unreadable"))
        each.renew(fresh)
        say(f"{shown} cannot be read as a notebook. It is {kept.name} beside it now, and a fresh copy is in its place.")
        return
    known = _made_from(mine, base)
    if known and known.release == seal.make(fresh).release:
        if base is None or seal.make(base) != known:
            guard.write(each.base, seal.dump(fresh))
        return
    if known and not seal.holds_work(mine, known.pieces):
        each.renew(fresh)
        done.replaced.append(each.lesson)
        return
    texts = {cell.get("id", ""): seal.text(cell) for cell in base["cells"]} if base and seal.make(base) == known else {}
    merged = merge.merge(mine, known.pieces if known else None, fresh, texts)
    kept, _ = guard.put(each.place, each.beside("before-update"))
    each.renew(fresh, merged.notebook)
    words = [f"{shown} has the new release around your work; {kept.name} beside it is the file as it was."]
    if known is None:
        words.append("Which release it was made from is not known, so please look through it once.")
    say(" ".join([*words, *merged.remarks()]))


def _made_from(mine: Notebook, base: Notebook | None) -> Seal | None:
    """The seal of the release that a notebook was made from: its own, else that of ``base``; None if nobody knows."""
    return seal.stored(mine) or (seal.make(base) if base else None)


def _released(each: Copy, say: Say) -> Notebook | None:
    """The lesson as it is released, with its seal.

    Where somebody worked in ``course/``, that becomes the learner's copy, if there is none with work in it yet; it is
    kept in ``my-work/`` too, and ``course/`` gets the release back. None if the release is nowhere to be found: then
    the learner's copy stays as it is.
    """
    if guard.is_released(each.root, each.released):
        return _with_seal(seal.read(each.released))
    fresh = _release_behind(each)
    worked = seal.read(each.released)
    kept, new = guard.keep(each.root, each.released)
    adopted = worked is not None and not _has_work(each)
    if adopted:
        guard.write(each.place, each.released.read_bytes())
        if seal.stored(worked) is None and fresh is not None:
            guard.write(each.base, seal.dump(_with_seal(fresh)))
    if fresh is not None:
        guard.write(each.released, seal.dump(fresh))
    shown, where = _shown(each.root, each.released), _shown(each.root, kept)
    if adopted:
        say(f"{shown} had work in it. That is your copy in work/ now, and {where} is the same.")
    elif new:
        say(f"{shown} was not as released; what was there is {where} now.")
    if fresh is None:
        if not each.place.exists():
            raise OSError(f"{shown} is damaged: get it anew from where you got the course")
        return None
    return _with_seal(fresh)


def _release_behind(each: Copy) -> Notebook | None:
    """The release that a changed notebook in ``course/`` took the place of: from git, or from ``work/.released/``."""
    worked = seal.read(each.released)
    wanted = seal.stored(worked) if worked else None
    found = [guard.in_git(each.root, each.released), _read_if_there(each.base)]
    sound = [x for x in found if x and (not (about := seal.stored(x)) or not seal.holds_work(x, about.pieces))]
    same = [notebook for notebook in sound if wanted and seal.make(notebook).release == wanted.release]
    return next(iter([*same, *sound]), None)


def _adopt_others(root: Path, lessons: set[Path], say: Say) -> None:
    """Files that somebody put into ``course/``, a renamed notebook say: to ``my-work/``, and a copy into ``work/``."""
    for path in sorted(guard.files(root / "course")):
        if path in lessons or path.is_symlink() or guard.CHECKPOINTS in path.parts:
            continue
        place = root / "work" / path.relative_to(root / "course")
        shown = _shown(root, path)
        try:
            if not place.exists():
                guard.write(place, path.read_bytes())
            kept = guard.move(root, path)
            say(f"{shown} is no part of the release. It is in work/ now, and {_shown(root, kept)} is the same.")
        except OSError as error:
            say(f"{shown} is no part of the release, and could not be moved ({error.strerror or error}).")


def _has_work(each: Copy) -> bool:
    """Does the learner have a copy that is not as it was released?"""
    if not each.place.exists():
        return False
    mine = seal.read(each.place)
    known = mine and _made_from(mine, _read_if_there(each.base))
    return not known or seal.holds_work(mine, known.pieces)


def _read_if_there(path: Path) -> Notebook | None:
    try:
        return seal.read(path)
    except OSError:
        return None


def _with_seal(notebook: Notebook) -> Notebook:
    """A released notebook that knows what it is, even where it is older than seals."""
    notebook = copy.deepcopy(notebook)
    if seal.stored(notebook) is None:
        seal.write(notebook)
    return notebook


def _shown(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
