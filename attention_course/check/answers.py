"""The numbers a check compares with: inputs, expected outputs, and what tells a known mistake by its outputs.

They are written when the course is built and carry no code. Of what is expected the numbers are stored; of what a known
mistake gives, only a fingerprint: enough to recognise it, and a tenth of the size. This module writes and reads the two
files of a lesson, ``NN.json`` and ``NN.npz``.
"""

import json
import os
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import device
from . import values
from .observe import Outcome

Content = tuple[dict[str, Any], values.Arrays]
# A build reads the answers that it is about to write.
FOLDER = Path(os.environ.get("ATTENTION_ANSWERS") or Path(__file__).resolve().parents[1] / "answers")


class UnknownExercise(LookupError):
    """A check was asked for by a name that the installed answers do not have."""


@dataclass
class Case:
    """One situation in which an answer is tried.

    Args:
        shows: what an answer that is right here has shown, as the learner reads it.
        args: the inputs by name, in the order of the signature.
        init: a module's constructor arguments.
        state: the parameters that the module is given before it is called.
        differentiate: also compare gradients.
        dims: the axes' lengths by name. outcome: what comes out when it is right. The build computes both.
    """

    shows: str
    args: dict[str, Any] = field(default_factory=dict)
    init: dict[str, Any] = field(default_factory=dict)
    state: dict[str, torch.Tensor] = field(default_factory=dict)
    differentiate: bool = True
    dims: dict[str, int] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)


@dataclass
class Mistake:
    """A known wrong implementation: what it does, what helps, and the fingerprint of what it gives in each case.

    A fingerprint of None stands for what the right answer gives.
    """

    name: str
    gives: str
    hint: str
    prints: list[dict[str, Any] | None]


@dataclass
class Exercise:
    """What a check knows about one exercise. The last case is the one in which all dimensions differ."""

    lesson: str
    name: str
    label: str
    kind: str
    inputs: dict[str, list[str]]
    outputs: list[dict[str, Any]]
    tolerance: float
    random: bool = False
    cases: list[Case] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)


# Reading ----------------------------------------------------------------------------------------------------------


def exercises(lesson: str) -> dict[str, dict[str, Any]]:
    """Every exercise of a lesson by name, in the order in which they are met, as plain data."""
    return _read(lesson)[0]["exercises"]


def given(lesson: str) -> list[str]:
    """The functions and classes that the lesson gives, by name."""
    return _read(lesson)[0]["given"]


def title(lesson: str) -> str:
    """The lesson's name."""
    return _read(lesson)[0]["title"]


def load(lesson: str, name: str) -> Exercise:
    """The exercise ``name`` of ``lesson``, with fresh tensors on the device that the lesson runs on."""
    content, arrays = _read(lesson)
    if name not in content["exercises"]:
        known = ", ".join(content["exercises"])
        raise UnknownExercise(f"Lesson {lesson} has no exercise called {name!r}. Its exercises are: {known}.")
    data = dict(content["exercises"][name])
    where = device.pick()

    def value(tree: Any) -> Any:
        return values.unpack(tree, arrays, where)

    def named(trees: dict[str, Any]) -> dict[str, Any]:
        return {key: value(tree) for key, tree in trees.items()}

    cases = []
    for stored in data.pop("cases", []):
        right = stored["outcome"]
        gradients = None if right["gradients"] is None else named(right["gradients"])
        parts = stored | {part: named(stored[part]) for part in ("args", "init", "state")}
        cases.append(Case(**parts | {"outcome": Outcome(value(right["value"]), gradients=gradients)}))
    mistakes = [
        Mistake(m["name"], m["gives"], m["hint"], _resolve(m["prints"], arrays)) for m in data.pop("mistakes", [])
    ]
    return Exercise(lesson=lesson, name=name, cases=cases, mistakes=mistakes, **data)


@cache
def _read(lesson: str) -> Content:
    text = FOLDER / f"{lesson}.json"
    if not text.exists():
        raise UnknownExercise(
            f"The installed attention-course has no answers for lesson {lesson}. "
            "The lesson is newer than the package: install the package again, as the setup cell does."
        )
    return read(text)


def read(path: Path) -> Content:
    """What ``NN.json`` and the file of arrays beside it hold."""
    text = json.loads(path.read_text(encoding="utf-8"))
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
        pools = {kind: file[kind] for kind in file.files}
    arrays, begin = values.Arrays(), dict.fromkeys(pools, 0)
    for number, (dtype, pool, *shape) in enumerate(text.pop("arrays")):
        size = int(np.prod(shape))
        arrays[f"a{number}"] = pools[pool][begin[pool] :][:size].astype(dtype).reshape(shape)
        begin[pool] += size
    return text, arrays


# Writing ----------------------------------------------------------------------------------------------------------


def write(path: Path, content: Content) -> None:
    """Write ``NN.json`` and, beside it, the arrays: the numbers of each kind one after the other in one long array.

    Not compressed: the bytes then depend on NumPy's format alone, not on the zlib of the machine; a wheel compresses.
    """
    text, arrays = content
    table: list[list[Any]] = []
    pools: dict[str, list[np.ndarray]] = {}
    for array in arrays.values():
        # Double precision costs double; what single precision holds exactly is stored so.
        small = array.dtype == np.float64 and np.array_equal(array, array.astype(np.float32), equal_nan=True)
        pool = "float32" if small else array.dtype.name
        table.append([array.dtype.name, pool, *array.shape])
        pools.setdefault(pool, []).append(array.astype(pool).reshape(-1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_dump(text | {"arrays": table}), encoding="utf-8")
    np.savez(path.with_suffix(".npz"), **{kind: np.concatenate(each) for kind, each in pools.items()})


def same(path: Path, content: Content) -> bool:
    """Does ``path`` (and the arrays beside it) hold ``content``, up to the last digits of a float?

    Processors round differently in the last place; without this grace a build on another machine would change bytes.
    """
    if not path.exists() or not path.with_suffix(".npz").exists():
        return False
    try:
        old = read(path)
    except (ValueError, KeyError, TypeError):  # written by an older version of the course
        return False
    return _equal(_resolve(*old), _resolve(*content))


def _dump(text: dict[str, Any]) -> str:
    """JSON with a line for each case and each mistake: a change is seen where it is."""
    lines = json.dumps(text, ensure_ascii=False, separators=(",", ":"))
    for start in ('{"shows":', '{"name":', '"mistakes":', '"arrays":'):
        lines = lines.replace(start, "\n" + start)
    return lines + "\n"


def _resolve(tree: Any, arrays: values.Arrays) -> Any:
    if isinstance(tree, list):
        return [_resolve(v, arrays) for v in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        k: arrays[v] if k in ("tensor", "array", "print") and isinstance(v, str) else _resolve(v, arrays)
        for k, v in tree.items()
    }


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and values.close(a, b, 1e-5)
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_equal(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return values.close(a, b, 1e-5)
    return type(a) is type(b) and a == b


def rounded(outcome: Outcome) -> Outcome:
    """An outcome as it is stored: to the seven digits of single precision, which is more than any check asks for."""

    def to_single(x: torch.Tensor | np.ndarray) -> torch.Tensor | np.ndarray:
        if isinstance(x, torch.Tensor):
            return x.float().double() if x.dtype == torch.float64 else x
        return x.astype(np.float32).astype(np.float64) if x.dtype == np.float64 else x

    gradients = outcome.gradients and {k: values.transform(g, to_single) for k, g in outcome.gradients.items()}
    return Outcome(values.transform(outcome.value, to_single), outcome.failure, outcome.changed, gradients)


# Fingerprints -----------------------------------------------------------------------------------------------------

PROJECTIONS = 4


def fingerprint(outcome: Outcome, arrays: values.Arrays) -> dict[str, Any]:
    """What recognises an outcome: its kinds and shapes, a few sums over its numbers, or what it raised and where."""
    if outcome.failure:
        failure = outcome.failure
        return {"failure": [failure.kind, failure.message, sorted(operations(failure.line))]}
    gradients = None
    if outcome.gradients is not None:
        gradients = {name: _print(g, arrays) for name, g in outcome.gradients.items()}
    return {"value": _print(outcome.value, arrays), "changed": sorted(outcome.changed), "gradients": gradients}


def prints(outcome: Outcome) -> dict[str, Any]:
    """The fingerprint of ``outcome`` with its numbers in it, as it is when it has been read."""
    arrays = values.Arrays()
    return _resolve(fingerprint(outcome, arrays), arrays)


def recognises(stored: dict[str, Any], outcome: Outcome, tolerance: float) -> bool:
    """Has ``outcome`` the fingerprint ``stored``, with numbers that are off by no more than ``tolerance``?"""
    if failure := outcome.failure:
        if "failure" not in stored:
            return False
        kind, message, used = stored["failure"]
        return failure.kind == kind and failure.message == message and set(used) <= operations(failure.line)
    if "failure" in stored or stored["changed"] != sorted(outcome.changed):
        return False
    if not _matches(stored["value"], outcome.value, tolerance):
        return False
    theirs, mine = stored["gradients"] or {}, outcome.gradients or {}
    names = theirs.keys() | mine.keys()
    return all(_matches(theirs.get(name), mine.get(name), 10 * tolerance) for name in names)


def operations(line: str) -> set[str]:
    """The operators and functions that stand in one line of code: ``return q @ k.mT`` has ``@`` and ``mT``."""
    code = re.sub(r"#.*|\"[^\"]*\"|'[^']*'", "", line)
    return set(re.findall(r"@|\*\*|\*|/|(?<=\.)\w+", code))


def _print(value: Any, arrays: values.Arrays) -> Any:
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        kind, array = _kind(value), np.asarray(values.as_array(value))
        numbers = np.asarray(_sums(array), np.float32)
        return {"kind": kind, "shape": list(array.shape), "print": arrays.store(numbers)}
    if isinstance(value, list | tuple):
        return {"items": [_print(v, arrays) for v in value]}
    if isinstance(value, dict):
        return {"dict": {str(k): _print(v, arrays) for k, v in value.items()}}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return {"object": type(value).__name__}


def _matches(stored: Any, value: Any, tolerance: float) -> bool:
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        if not isinstance(stored, dict) or stored.get("kind") != _kind(value):
            return False
        array = np.asarray(values.as_array(value))
        if list(array.shape) != stored["shape"]:
            return False
        mine, theirs = _sums(array), stored["print"].astype(np.float64)
        if len(mine) != len(theirs) or array.size <= PROJECTIONS:
            return values.close(mine, theirs, tolerance)
        finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.abs(array.astype(np.float64))
        scale = min(max(float(finite.max()) if finite.size else 0.0, 0.1), 10.0)
        return bool(np.all(np.abs(mine - theirs) <= tolerance * np.maximum(np.abs(theirs), scale)))
    if isinstance(value, list | tuple):
        items = stored.get("items") if isinstance(stored, dict) else None
        return (
            items is not None
            and len(items) == len(value)
            and all(_matches(s, v, tolerance) for s, v in zip(items, value, strict=True))
        )
    if isinstance(value, dict):
        inside = stored.get("dict") if isinstance(stored, dict) else None
        mine = {str(k): v for k, v in value.items()}
        return (
            inside is not None
            and inside.keys() == mine.keys()
            and all(_matches(inside[k], mine[k], tolerance) for k in inside)
        )
    if isinstance(value, bool | int | float) and isinstance(stored, bool | int | float):
        return type(value) is type(stored) and values.close(value, stored, tolerance)
    if value is None or isinstance(value, str):
        return type(value) is type(stored) and value == stored
    return isinstance(stored, dict) and stored.get("object") == type(value).__name__


def _kind(value: torch.Tensor | np.ndarray | np.generic) -> str:
    return str(value.dtype) if isinstance(value, torch.Tensor) else f"numpy.{value.dtype}"


def _sums(array: np.ndarray) -> np.ndarray:
    """A few numbers themselves; of more, sums weighted by waves that do not repeat, and where they are not finite."""
    if array.dtype.kind not in "fiub":
        return np.zeros(0)
    flat = array.astype(np.float64).reshape(-1)
    if flat.size <= PROJECTIONS:
        return flat
    place = np.arange(flat.size)
    waves = np.stack([np.cos(place * (j + 1) * 1.2345678 + j * j) for j in range(PROJECTIONS)])  # (4, n)
    finite = np.isfinite(flat)
    found = waves @ np.where(finite, flat, 0.0)
    if finite.all():
        return found / np.sqrt(flat.size)
    strange = np.where(np.isnan(flat), 3.0, np.where(finite, 0.0, np.sign(np.nan_to_num(flat))))
    return np.concatenate([found / np.sqrt(flat.size), 100 * (waves[:2] @ strange)])
