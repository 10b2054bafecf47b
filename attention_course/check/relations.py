"""How wrong numbers are off, where no known mistake gives them: times a half, shifted by a place, right in one row.

Each relation looks at what came and what was expected in one case. It gives the phrases that hold there, none if it
does not hold, and None where the case cannot show it. A phrase is said only if it holds in every case that can show it.
Nothing of the learner's is run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from . import values


@dataclass
class View:
    """One case: what came, what was expected, the names of the axes, and the inputs."""

    got: np.ndarray
    want: np.ndarray
    axes: Sequence[str]
    args: Mapping[str, Any]
    dims: Mapping[str, int]
    tolerance: float

    def same(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Are two arrays the same, as far as the check asks?"""
        return a.shape == b.shape and values.close(a, b, self.tolerance)

    @property
    def right(self) -> bool:
        """Is there nothing off in this case?"""
        return self.same(self.got, self.want)

    def axis(self, *names: str) -> int | None:
        """The place of the first axis that has one of these names, where every axis has one."""
        if len(self.axes) != self.want.ndim:
            return None
        return next((i for i, name in enumerate(self.axes) if name in names), None)


Verdict = set[str] | None
Relation = Callable[[View], Verdict]


def describe(cases: Sequence[View]) -> str:
    """The first relation that holds in every case that can show it, as a phrase; an empty string if there is none."""
    fitting = all(case.got.shape == case.want.shape for case in cases)
    for relation in RELATIONS if fitting else (_axes_exchanged,):
        with np.errstate(all="ignore"):
            verdicts = [v for v in map(relation, cases) if v is not None]
        if verdicts and (held := set.intersection(*verdicts)):
            return sorted(held, key=lambda phrase: (any(c.isdigit() for c in phrase), len(phrase), phrase))[0]
    return ""


def _factor(case: View) -> Verdict:
    """The right numbers times a constant, which may be the length of an axis or its root."""
    want, got = case.want.astype(float), case.got.astype(float)
    if case.want.dtype.kind == "b" or not np.any(want):
        return None if case.right else set()
    ratio = float((got * want).sum() / (want * want).sum())
    if not np.isfinite(ratio) or ratio == 0 or not case.same(got, ratio * want):
        return set()
    found = {"the right numbers with the sign turned"} if np.isclose(ratio, -1, rtol=1e-3) else set()
    if not np.isclose(ratio, 1, rtol=1e-3):
        found.add(f"the right numbers times {ratio:.3g}")
    for name, length in case.dims.items():
        for words, size in ((name, length), (f"√{name}", length**0.5)):
            found |= {f"the right numbers times {words}"} if np.isclose(ratio, size, rtol=1e-3) else set()
            found |= {f"the right numbers divided by {words}"} if np.isclose(ratio * size, 1, rtol=1e-3) else set()
    return found


def _offset(case: View) -> Verdict:
    if case.want.dtype.kind == "b":
        return None if case.right else set()
    gap = case.got.astype(float) - case.want.astype(float)
    if gap.size < 2:
        return None
    constant = float(gap.mean())
    holds = case.same(case.got.astype(float), case.want.astype(float) + constant) and abs(constant) > case.tolerance
    return (
        {f"the right numbers plus {constant:.3g}" if constant > 0 else f"the right numbers minus {-constant:.3g}"}
        if holds
        else set()
    )


def _opposite(case: View) -> Verdict:
    if case.want.dtype.kind != "b" or case.got.dtype.kind != "b":
        return None if case.right else set()
    return {"the opposite in every place"} if case.same(case.got, ~case.want) else set()


def _axes_exchanged(case: View) -> Verdict:
    found: set[str] = set()
    telling = False
    for i, j in combinations(range(case.want.ndim), 2):
        turned = np.swapaxes(case.want, i, j)
        if turned.shape == case.want.shape and case.same(turned, case.want):
            continue  # the same either way round
        telling = True
        if case.same(case.got, turned) and len(case.axes) == case.want.ndim:
            found.add(f"the right numbers with the axes {case.axes[i]} and {case.axes[j]} exchanged")
    return found if telling else None if case.right else set()


def _shifted(case: View) -> Verdict:
    place = case.axis("Tk", "T", "V", "C")
    place = case.want.ndim - 1 if place is None else place
    if case.want.ndim == 0 or case.want.shape[place] < 3:
        return None if case.right else set()
    name = case.axes[place] if place < len(case.axes) else "the last axis"
    got, want = np.moveaxis(case.got, place, 0), np.moveaxis(case.want, place, 0)
    if case.same(want[1:], want[:-1]):
        return None if case.right else set()
    if case.same(got[1:], want[:-1]):
        return {f"the right numbers one place too late along {name}"}
    return {f"the right numbers one place too early along {name}"} if case.same(got[:-1], want[1:]) else set()


def _alone(place: Callable[[View], int | None], index: int, words: str, *, right: bool) -> Relation:
    """Right (or wrong) at one index of an axis and nowhere else."""

    def relation(case: View) -> Verdict:
        axis = place(case)
        if axis is None or case.want.ndim <= axis or case.want.shape[axis] < 2:
            return None if case.right else set()
        if case.right:
            return set()
        at = [case.same(np.take(case.got, i, axis), np.take(case.want, i, axis)) for i in range(case.want.shape[axis])]
        wanted = [not right] * len(at)
        wanted[index] = right
        return {words} if at == wanted else set()

    return relation


def _rows(case: View) -> int | None:
    return (
        case.axis("Tq", "T")
        if case.axis("Tq", "T") is not None
        else (case.want.ndim - 2 if case.want.ndim > 1 else None)
    )


def _columns(case: View) -> int | None:
    place = case.axis("Tk")
    return place if place is not None else case.want.ndim - 1 if case.want.ndim else None


def _where_kept(case: View) -> Verdict:
    """Right where a mask among the inputs keeps, wrong where it hides."""
    for arg in case.args.values():
        mask = values.as_array(arg)
        if mask is None or mask.dtype.kind != "b" or mask.ndim == 0 or mask.all():
            continue
        try:
            keep = np.broadcast_to(mask, case.want.shape)
        except ValueError:
            continue
        if case.right:
            return set()
        inside = case.same(case.got[keep], case.want[keep])
        outside = case.same(case.got[~keep], case.want[~keep])
        if inside and not outside:
            return {"right where the mask keeps, and wrong where it hides"}
        return {"right where the mask hides, and wrong where it keeps"} if outside and not inside else set()
    return None if case.right else set()


def _every_row_the_same(case: View) -> Verdict:
    if case.want.ndim < 2 or case.want.shape[-2] < 2:
        return None
    if case.same(case.want, np.broadcast_to(case.want[..., :1, :], case.want.shape)):
        return None if case.right else set()
    return (
        {"the same row again and again"}
        if case.same(case.got, np.broadcast_to(case.got[..., :1, :], case.got.shape))
        else set()
    )


def _columns_sum_to_one(case: View) -> Verdict:
    if case.want.ndim < 2 or case.want.dtype.kind != "f":
        return None
    ones = [
        case.same(x.sum(axis), np.ones_like(x.sum(axis)))
        for x, axis in ((case.want, -1), (case.got, -2), (case.got, -1))
    ]
    if not ones[0] or case.want.shape[-1] < 2:
        return None
    return {"numbers whose columns sum to 1, where the rows should"} if ones[1] and not ones[2] else set()


def _another_order(case: View) -> Verdict:
    if case.right or case.want.size < 2:
        return None if case.right else set()
    ordered = case.want.dtype.kind in "fiu" and case.same(np.sort(case.got, axis=None), np.sort(case.want, axis=None))
    return {"the same numbers in another order"} if ordered else set()


def _transformed(change: Callable[[np.ndarray], np.ndarray], words: str) -> Relation:
    def relation(case: View) -> Verdict:
        if case.want.dtype.kind not in "fiu" or not np.isfinite(case.want.astype(float)).all():
            return None if case.right else set()
        with np.errstate(all="ignore"):
            changed = change(case.want.astype(float))
        if not np.isfinite(changed).all() or case.same(changed, case.want.astype(float)):
            return None if case.right else set()
        return {words} if case.same(case.got.astype(float), changed) else set()

    return relation


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True)) if x.ndim else x * np.nan
    return e / e.sum(-1, keepdims=True) if x.ndim else e


def _batch(case: View) -> int | None:
    return case.axis("B")


RELATIONS: tuple[Relation, ...] = (
    _opposite,
    _factor,
    _offset,
    _axes_exchanged,
    _shifted,
    _alone(_batch, 0, "right in the first example of the batch, and wrong in the others", right=True),
    _alone(_batch, -1, "right in the last example of the batch, and wrong in the others", right=True),
    _where_kept,
    _alone(_rows, -1, "right in the last row, and wrong in the others", right=True),
    _alone(_rows, 0, "right in the first row, and wrong in the others", right=True),
    _alone(_rows, -1, "right but for the last row", right=False),
    _alone(_rows, 0, "right but for the first row", right=False),
    _alone(_columns, 0, "right but for the first column", right=False),
    _alone(_columns, -1, "right but for the last column", right=False),
    _every_row_the_same,
    _columns_sum_to_one,
    _transformed(np.abs, "the absolute values of the right numbers"),
    _transformed(np.square, "the squares of the right numbers"),
    _transformed(np.sqrt, "the roots of the right numbers"),
    _transformed(np.exp, "e to the power of the right numbers"),
    _transformed(np.log, "the logarithms of the right numbers"),
    _transformed(_softmax, "a softmax over the right numbers"),
    _transformed(lambda x: 1 - x, "one minus the right numbers"),
    _another_order,
)
