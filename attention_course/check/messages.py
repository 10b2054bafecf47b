"""The one short message a learner gets, and the exception that carries it."""

import re
import textwrap
from typing import Any

import numpy as np

from . import values
from .observe import Failure

WIDTH = 88


class CheckFailed(AssertionError):
    """A check that did not pass. Jupyter shows its message alone, without a traceback; a grader sees an error.

    Args:
        exercise: the exercise as a learner knows it, such as ``dot_scores (exercise 1.2)``.
        headline: what is the matter in a few words.
        checked, given, observed, expected, holds, cause: the parts of a message; each may be left out.
        rung: which step of the ladder broke (see :mod:`attention_course.check.ladder`).
        known: the names of the known mistakes that give the same. relation: how the numbers are off, in words.
    """

    def __init__(
        self,
        exercise: str,
        headline: str,
        *,
        checked: str = "",
        given: str = "",
        observed: str = "",
        expected: str = "",
        holds: str = "",
        cause: str = "",
        rung: str = "",
        known: tuple[str, ...] = (),
        relation: str = "",
    ):
        self.exercise, self.headline, self.rung = exercise, headline, rung
        self.known, self.relation = known, relation
        self.parts = {
            "checked": checked,
            "given": given,
            "observed": observed,
            "expected": expected,
            "right": holds,
            "look at": cause,
        }
        super().__init__("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        lines = textwrap.wrap(f"{self.exercise}: {self.headline}", WIDTH, break_on_hyphens=False)
        for label, text in self.parts.items():
            if text:
                lines += _block(label, text)
        return lines

    def _render_traceback_(self) -> list[str]:
        first, *rest = self._lines()
        return [f"\x1b[1m{first}\x1b[0m", *rest]


def _block(label: str, text: str) -> list[str]:
    indent = "  " + " " * 10
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines += textwrap.wrap(paragraph, WIDTH - len(indent), break_on_hyphens=False) or [""]
    return [f"  {label:<10}{lines[0]}", *(indent + line for line in lines[1:])]


def failed_call(
    failure: Failure, given: str = "", labels: dict[str, str] | None = None, dims: dict[str, int] | None = None
) -> dict[str, str]:
    """The parts of the message about a call that raised, hung or is not written.

    ``given`` are the shapes of the inputs on which it happened. ``labels`` are those of the lesson's other exercises:
    where the line that failed stands in one of them, that one is named. ``dims`` are the lengths of the axes by name.
    """
    place = failure.inside[0] if failure.inside else ""
    elsewhere = f"{place}, exercise {labels[place]}" if labels and place in labels else ""
    if failure.kind == "NotImplementedError" and elsewhere:
        return {
            "rung": "written",
            "headline": f"it uses {elsewhere}, which is not written yet.",
            "cause": f"Write {place} first; its own check tells you when it is right.",
        }
    if failure.kind == "NotImplementedError":
        return {
            "rung": "written",
            "headline": "not written yet.",
            "cause": "Replace the line `raise NotImplementedError` below `# TODO` by your own, run that cell, then run "
            "this one again.",
        }
    if failure.kind == "TookTooLong":
        return {
            "rung": "runs",
            "headline": f"it did not finish: stopped after {failure.message}.",
            "given": given,
            "cause": "A loop that never ends? Each `while` needs something that makes its condition false.",
        }
    cell = f"the cell of {elsewhere}" if elsewhere else "your cell"
    line = f"line {failure.number} of {cell}: {failure.line}" if failure.line else ""
    there = ", ".join(f"{name} is {shape(tuple(size), dims or {})}" for name, size in failure.shapes.items())
    headline = f"your code raised {failure.kind}."
    if failure.kind == "WrongParameters":
        headline = "its parameters are not the ones asked for."
    elif elsewhere:
        headline = f"{elsewhere}, which it uses, raised {failure.kind}."
    first = f"Look at {place} first, or at what it is handed here." if elsewhere else ""
    return {
        "rung": "runs",
        "headline": headline,
        "given": given,
        "observed": "\n".join(x for x in (_cut(failure.message.strip()), line, there and f"there {there}") if x),
        "cause": " ".join(x for x in (first, _advice(failure)) if x),
    }


def _cut(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def shape(shape: tuple[int, ...], dims: dict[str, int], like: list[str] | None = None) -> str:
    """A shape with the names of its axes: ``(2, 5, 3) = (B, Tk, Tq)``. A length that has no name shows as itself.

    ``like`` are the names expected at each place; they decide where two axes happen to be equally long. If there are
    more or fewer axes than names, as where an exercise takes tensors of several kinds, no name is given.
    """
    dims = dims if like is None or len(like) == len(shape) else {}
    names = []
    for place, length in enumerate(shape):
        known = [name for name, n in dims.items() if n == length]
        wanted = like[place] if like and place < len(like) else None
        names.append(wanted if wanted in known else known[0] if known else str(length))
    plain = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    named = f"({', '.join(names)}{',' if len(shape) == 1 else ''})"
    return plain if plain == named else f"{plain} = {named}"


def numbers(value: Any, most: int = 12) -> str:
    """A small value written out, rounded to four digits; an empty string if it is larger than ``most`` numbers."""
    array = values.as_array(value)
    if array is None:
        if isinstance(value, list | tuple | dict):
            text = _written(value)
            return text if text and len(text) <= 160 else ""
        return repr(value)
    if array.size > most:
        return ""
    rounded = np.round(array.astype(float), 4) + 0.0 if array.dtype.kind == "f" else array
    return str(rounded.tolist())


def _written(value: Any) -> str:
    """A list, tuple or dict of numbers and words in one line; an empty string if it holds anything else."""
    if isinstance(value, list | tuple):
        parts = [_written(each) for each in value]
        inside = ", ".join(parts)
        return "" if "" in parts else f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if isinstance(value, dict):
        parts = [_written(each) for each in value.values()]
        return "" if "" in parts else "{" + ", ".join(f"{k!r}: {v}" for k, v in zip(value, parts, strict=True)) + "}"
    if isinstance(value, float):
        return f"{round(value, 4) + 0.0}"
    return repr(value) if isinstance(value, bool | int | str | None) else ""


def largest_difference(got: Any, expected: Any, axes: list[str]) -> str:
    """Where two arrays differ most: ``2 of 9 numbers differ; at [0, 2] of (Tq, Tk) it is 0.82 instead of 0.51``."""
    a, b = values.as_array(got), values.as_array(expected)
    if a is None or b is None or a.shape != b.shape or a.size == 0:
        return ""
    with np.errstate(invalid="ignore"):
        gap = np.nan_to_num(np.abs(a.astype(float) - b.astype(float)), nan=np.inf)
    where = np.unravel_index(int(gap.argmax()), gap.shape)
    wrong = int((~np.isclose(a.astype(float), b.astype(float), rtol=1e-4, atol=1e-5, equal_nan=True)).sum())
    place = f"[{', '.join(map(str, where))}] of ({', '.join(axes)})" if axes else ""
    pair = f"{a[where]:.4g} instead of {b[where]:.4g}"
    return f"{wrong} of {a.size} numbers differ; at {place or 'the only place'} it is {pair}"


def listing(names: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nothing"


def _advice(failure: Failure) -> str:
    text = failure.message
    if failure.kind == "WrongParameters":
        have, _, wanted = text.partition("\n")
        bias = " A layer has a bias unless you say bias=False." if have.count(".bias") > wanted.count(".bias") else ""
        bare = [
            name for name in re.findall(r"[\w.]+(?= \()", wanted) if wanted.startswith("missing") and "." not in name
        ]
        own = f" A tensor of one's own is learned only as nn.Parameter(tensor): {', '.join(bare)}." if bare else ""
        return f"The docstring names the layers and their sizes.{own}{bias}"
    if "can't call numpy()" in text.lower():
        return "Stay in PyTorch: a detour over .numpy() cuts the gradient."
    if "leaf Variable that requires grad" in text:
        return "x -= 1 writes into the input; x = x - 1 makes a new tensor."
    if "mat1 and mat2" in text or "must match the size" in text or "size of tensor" in text or "Expected size" in text:
        return "Write the shape of each tensor beside the line: which axes should meet?"
    if "values to unpack" in text:
        return (
            "A value has another number of parts than the names it is taken apart into; x.shape has one for each axis."
        )
    if failure.kind == "NameError":
        return "Is the name spelled as in the signature, and was the cell that defines it run?"
    if failure.kind == "TypeError" and "argument" in text and not failure.line:  # raised by the call itself
        return "Keep the parameters as the exercise names them, in that order."
    if failure.kind == "AttributeError" and "cannot assign" in text:
        return "Call super().__init__() first."
    return ""
