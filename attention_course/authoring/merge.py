"""A new release of a lesson, put around what a learner wrote into the old one.

Three notebooks meet: the one that the learner has (*mine*), the one it was made from (*base*, of which a seal is
enough), and the one that is released now (*fresh*). What the learner changed or added stays; all else is as in *fresh*.
"""

import copy
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from . import seal
from .seal import Cell, Notebook, Piece

# Prose has ids made of the lesson's number and the cell's place, which another release gives to another cell.
BY_PLACE = re.compile(r"\d+-\d+")
ALIKE = 0.6
# What the release says about a cell, and a learner's file does not.
RELEASED = ("nbgrader", "deletable", "editable", "cellView", "jupyter")


@dataclass
class Merged:
    """The notebook with the new release around the learner's work, and what to tell the learner about single cells."""

    notebook: Notebook
    both: list[str] = field(default_factory=list)  # changed by the learner and by the release: the learner's stands
    given: list[str] = field(default_factory=list)  # given cells that the learner changed: the learner's stands
    locked: list[str] = field(default_factory=list)  # locked cells that the learner changed: as released again
    back: list[str] = field(default_factory=list)  # deleted by the learner, but a grade depends on them
    gone: list[str] = field(default_factory=list)  # no longer in the lesson: kept as cells of the learner's own

    def remarks(self) -> list[str]:
        """One sentence for each kind of cell that the learner may want to look at."""
        words = {
            "Yours stands where the release changed the same cell (its text is in course/)": self.both,
            "Given cells that you changed stay yours": self.given,
            "Locked cells are as released": self.locked,
            "Back, because the lesson needs them": self.back,
            "No longer in the lesson, kept as cells of your own": self.gone,
        }
        return [f"{what}: {', '.join(cells)}." for what, cells in words.items() if cells]


def merge(mine: Notebook, base: Sequence[Piece] | None, fresh: Notebook, texts: dict[str, str]) -> Merged:
    """Put ``fresh`` around the work in ``mine``.

    Args:
        mine: the learner's notebook.
        base: the cells of the release that ``mine`` was made from; None if nobody knows any more. Then a cell counts as
            changed by the learner only where it is an answer, or holds all that the release says and more.
        fresh: the notebook that is released now.
        texts: what the cells of ``base`` said, by id, as far as it is known; it tells likeness from accident.
    """
    known = list(base) if base is not None else seal.make(fresh).pieces
    if base is None:
        texts = {cell["id"]: seal.text(cell) for cell in fresh["cells"]}
    was, sure = _recognise(mine["cells"], known, texts)
    sure = sure and base is not None
    theirs = {place: known[old] for place, old in was.items()}
    now = _followers(mine["cells"], known, was, fresh["cells"], texts)
    merged = Merged({"cells": [], "metadata": {**mine["metadata"], **fresh["metadata"]}, "nbformat": 4})
    merged.notebook["nbformat_minor"] = 5

    old_of = {new: old for old, new in now.items()}
    mine_of = {old: place for place, old in was.items()}
    placed: dict[int, Cell] = {}  # by the place in `fresh`
    for new, cell in enumerate(fresh["cells"]):
        old = old_of.get(new)
        if old is None:
            placed[new] = copy.deepcopy(cell)
        elif old in mine_of:
            yours = mine["cells"][mine_of[old]]
            was_so = known[old] if base is not None else None
            placed[new] = _blend(yours, was_so, cell, texts.get(known[old].id, ""), merged)
        elif not sure or _needed(cell):
            placed[new] = copy.deepcopy(cell)
            if sure:
                merged.back.append(name(cell))

    own: dict[int, list[Cell]] = {}
    above = -1
    for place, cell in enumerate(mine["cells"]):
        if place in was and was[place] in now:
            above = now[was[place]]
        elif place not in was or seal.digest(cell) != theirs[place].digest:
            if place in was:
                merged.gone.append(name(cell))
            own.setdefault(above, []).append(_own(cell))
    cells = [*own.get(-1, [])]
    for new in range(len(fresh["cells"])):
        cells += [placed[new]] if new in placed else []
        cells += own.get(new, [])
    merged.notebook["cells"] = _with_ids(cells, {id(cell) for cell in placed.values()})
    return merged


def name(cell: Cell) -> str:
    """What to call a cell in a sentence: its exercise, or how it begins."""
    if title := _graded_name(cell):
        return title
    first = next((line.strip("# ").strip() for line in seal.text(cell).split("\n") if line.strip("# ").strip()), "")
    return f"“{first[:40].strip()}{'…' if len(first) > 40 else ''}”" if first else "an empty cell"


def _recognise(cells: list[Cell], known: Sequence[Piece], texts: dict[str, str]) -> tuple[dict[int, int], bool]:
    """The place in ``known`` of each of a learner's cells that came from the release, and whether that is sure.

    By grade_id and by id; where a tool dropped the ids, by what the cells say, and that is not sure. Of cells with the
    same id the first that was changed counts, and the others are the learner's own.
    """
    places = {piece.id: old for old, piece in enumerate(known)}
    found: dict[int, list[int]] = {}
    for place, cell in enumerate(cells):
        names = (_graded_name(cell), cell.get("id"), cell["metadata"].get("id"))  # the last is where Colab puts ids
        if (old := next((places[n] for n in names if isinstance(n, str) and n in places), None)) is not None:
            found.setdefault(old, []).append(place)
    was = {}
    for old, candidates in found.items():
        changed = [p for p in candidates if seal.digest(cells[p]) != known[old].digest]
        was[(changed or candidates)[0]] = old
    by_place = {old for old, piece in enumerate(known) if BY_PLACE.fullmatch(piece.id)}
    if not by_place or by_place & set(was.values()):
        return was, True
    left = [_Side(known[was[p]].id if p in was else None, seal.digest(c), seal.text(c)) for p, c in enumerate(cells)]
    return _pair(left, [_side(piece.id, piece.digest, texts.get(piece.id, "")) for piece in known]), False


def _followers(
    cells: list[Cell], known: Sequence[Piece], was: dict[int, int], fresh: list[Cell], texts: dict[str, str]
) -> dict[int, int]:
    """The place in ``fresh`` of each old cell that is still there, changed or not."""
    said = {known[old].id: seal.text(cells[place]) for place, old in was.items()} | texts
    left = [_side(piece.id, piece.digest, said.get(piece.id, "")) for piece in known]
    return _pair(left, [_side(cell["id"], seal.digest(cell), seal.text(cell)) for cell in fresh])


@dataclass
class _Side:
    """A cell as it is compared: its lasting name if it has one, else the digest of what it says, and the text."""

    lasting: str | None
    digest: str
    text: str

    @property
    def key(self) -> str:
        return f"={self.lasting}" if self.lasting else self.digest


def _side(cell_id: str, digest: str, text: str) -> _Side:
    return _Side(None if BY_PLACE.fullmatch(cell_id) else cell_id, digest, text)


def _pair(left: list[_Side], right: list[_Side]) -> dict[int, int]:
    """Which of ``left`` is which of ``right``: by lasting name, by equal text in order, between those by likeness."""
    named = {side.lasting: place for place, side in enumerate(right) if side.lasting}
    pairs = {place: named[side.lasting] for place, side in enumerate(left) if side.lasting in named}
    blocks = SequenceMatcher(None, [x.key for x in left], [x.key for x in right], autojunk=False).get_opcodes()
    for kind, a, b, c, d in blocks:
        if kind == "equal":
            pairs |= dict(zip(range(a, b), range(c, d), strict=True))
    taken = set(pairs.values())
    for kind, a, b, c, d in blocks:
        if kind == "replace":
            start = c
            for place in (p for p in range(a, b) if p not in pairs and not left[p].lasting):
                free = [n for n in range(start, d) if n not in taken and not right[n].lasting]
                likeness, best = max(((_alike(left[place].text, right[n].text), -n) for n in free), default=(0.0, 0))
                if likeness >= ALIKE:
                    best = -best
                    pairs[place] = best
                    taken.add(best)
                    start = best + 1
    return pairs


def _alike(one: str, other: str) -> float:
    """How much two texts have in common, 0 to 1; 1 where one holds the other, as when a note was added to it."""
    one, other = one.strip(), other.strip()
    if not one or not other:
        return float(one == other)
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) >= 20 and shorter in longer:
        return 1.0
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= ALIKE else 0.0


def _blend(mine: Cell, was: Piece | None, fresh: Cell, said: str, merged: Merged) -> Cell:
    """One cell that both sides have. ``was`` is None where the old release is not known; ``said`` is its text or ""."""
    cell = copy.deepcopy(fresh)
    extras = {k: v for k, v in mine["metadata"].items() if k not in RELEASED and k not in fresh["metadata"]}
    cell["metadata"] = extras | cell["metadata"]
    about = seal.nbgrader(fresh)
    ours, now = seal.digest(mine), seal.digest(fresh)
    if was is None:
        changed = ours != now and (about.get("solution") or seal.text(fresh).strip() in seal.text(mine))
    else:
        changed = ours not in (was.digest, now)
    if changed and _locked(fresh):
        merged.locked.append(name(fresh))
    elif changed and was is not None and (noted := _with_note(mine, said, fresh)):
        cell["source"] = noted
    elif changed:
        cell["source"] = seal.text(mine)
        if not about.get("solution"):
            cell["cell_type"] = mine["cell_type"]
        if was is not None and was.digest != now:
            merged.both.append(name(fresh))
        elif not about.get("solution"):
            merged.given.append(name(fresh))
        for key in ("attachments", "outputs", "execution_count"):
            cell.pop(key, None)
            if key in mine:
                cell[key] = copy.deepcopy(mine[key])
    elif ours == now:
        for key in ("outputs", "execution_count"):
            if key in mine and cell["cell_type"] == "code":
                cell[key] = copy.deepcopy(mine[key])
    return _in_shape(cell)


def _with_note(mine: Cell, said: str, fresh: Cell) -> str | None:
    """The new prose with what a learner wrote below or above the old; None if they changed the prose itself."""
    text = seal.text(mine)
    if not said or mine["cell_type"] != "markdown" or fresh["cell_type"] != "markdown" or mine.get("attachments"):
        return None
    if text.startswith(said):
        return seal.text(fresh) + text[len(said) :]
    return text[: -len(said)] + seal.text(fresh) if text.endswith(said) else None


def _in_shape(cell: Cell) -> Cell:
    """A cell with the fields of its kind and no others."""
    if cell["cell_type"] == "code":
        cell.setdefault("outputs", [])
        cell.setdefault("execution_count", None)
        cell.pop("attachments", None)
    else:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)
    return cell


def _own(cell: Cell) -> Cell:
    """A learner's own cell: nothing in it is locked or graded, whatever it was copied from."""
    own = copy.deepcopy(cell)
    own["metadata"] = {k: v for k, v in own["metadata"].items() if k not in ("nbgrader", "deletable", "editable")}
    return _in_shape(own)


def _with_ids(cells: list[Cell], released: set[int]) -> list[Cell]:
    """``cells``, each with an id that no other has. Released cells keep theirs; an id made by place is theirs alone."""
    taken = Counter(cell["id"] for cell in cells if id(cell) in released)
    for cell in cells:
        if id(cell) in released:
            continue
        wanted = cell.get("id", "")
        if not re.fullmatch(r"[\w-]{1,64}", wanted, re.ASCII) or BY_PLACE.fullmatch(wanted) or taken[wanted]:
            stem, number = f"own-{seal.digest(cell)}", 1
            wanted = stem
            while taken[wanted]:
                number += 1
                wanted = f"{stem}-{number}"
        cell["id"] = wanted
        taken[wanted] += 1
    return cells


def _graded_name(cell: Cell) -> str | None:
    found = seal.nbgrader(cell).get("grade_id")
    return found if isinstance(found, str) else None


def _locked(cell: Cell) -> bool:
    return bool(seal.nbgrader(cell).get("locked"))


def _needed(cell: Cell) -> bool:
    return bool(seal.nbgrader(cell))
