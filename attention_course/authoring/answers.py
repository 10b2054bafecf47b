"""Write the numbers that a student's checks compare with.

The solution and every known mistake run on the inputs of ``cases.py``; what they return is stored, and nothing of how.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import device
from ..check import answers as stored
from ..check import values
from ..check.ladder import observe_case
from ..check.observe import Outcome
from .lesson import Lesson, LessonError
from .spec import Case, Exercise

Content = tuple[dict[str, Any], values.Arrays]


def compute(lesson: Lesson) -> Content:
    """Run the lesson's solutions and mistakes on its cases. Returns the text and the arrays to store.

    Raises:
        LessonError: if a solution fails on one of its own cases, or a name in ``cases.py`` is not defined.
    """
    names = lesson.namespace()
    arrays: values.Arrays = {}
    exercises = {e.name: _exercise(lesson, e, names, arrays) for e in lesson.exercises}
    return {"lesson": lesson.number, "title": lesson.title, "exercises": exercises}, arrays


def write(lesson: Lesson, folder: Path) -> bool:
    """Write ``NN.json`` and ``NN.npz`` into ``folder``, unless what is there says the same. True if it wrote."""
    text, arrays = compute(lesson)
    target = folder / f"{lesson.number}.json"
    if same(target, (text, arrays)):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(_dump(text), encoding="utf-8")
    # Not compressed: the bytes then depend on NumPy's format alone, not on the zlib of the machine.
    np.savez(target.with_suffix(".npz"), **arrays)
    return True


def same(target: Path, content: Content) -> bool:
    """Does ``target`` (and the arrays beside it) hold ``content``, up to the last digit of a float?

    Processors round differently in the last place; without this grace a build on another machine would change bytes.
    """
    if not target.exists() or not target.with_suffix(".npz").exists():
        return False
    with np.load(target.with_suffix(".npz"), allow_pickle=False) as file:
        old = _resolve(json.loads(target.read_text(encoding="utf-8")), dict(file))
    text, arrays = content
    return _equal(old, _resolve(text, arrays))


def _resolve(tree: Any, arrays: values.Arrays) -> Any:
    if isinstance(tree, list):
        return [_resolve(v, arrays) for v in tree]
    if not isinstance(tree, dict):
        return tree
    return {k: arrays[v] if k in ("tensor", "array") and v in arrays else _resolve(v, arrays) for k, v in tree.items()}


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


def _dump(text: dict[str, Any]) -> str:
    return json.dumps(text, indent=1, ensure_ascii=False) + "\n"


def _exercise(lesson: Lesson, exercise: Exercise, names: dict[str, Any], arrays: values.Arrays) -> dict[str, Any]:
    content: dict[str, Any] = {
        "label": exercise.label,
        "kind": exercise.kind,
        "inputs": {name: axes.split() for name, axes in exercise.inputs.items()},
        "outputs": [{"name": name, "axes": axes.split()} for name, axes in exercise.outputs.items()],
        "tolerance": exercise.tolerance,
        "random": exercise.random,
    }
    if exercise.name not in names:
        raise LessonError(f"{lesson.source}: no cell defines {exercise.name}, which cases.py names.")
    if not exercise.cases:
        return content
    cases = _with_double(exercise)
    ready = stored.Exercise(
        lesson.number, exercise.name, exercise.label, exercise.kind, content["inputs"], content["outputs"],
        exercise.tolerance,
    )  # fmt: skip
    prepared = [stored.Case(c.shows, c.args, c.init, c.state, {}, Outcome(), c.differentiate) for c in cases]
    content["cases"] = []
    for case in prepared:
        outcome = _observe(ready, case, names[exercise.name])
        if outcome.failure:
            raise LessonError(
                f"{lesson.source}: {exercise.name} raised {outcome.failure} where {case.shows!r} is tried."
            )
        content["cases"].append(
            {
                "shows": case.shows,
                "args": {k: values.pack(v, arrays) for k, v in case.args.items()},
                "init": {k: values.pack(v, arrays) for k, v in case.init.items()},
                "state": {k: values.pack(v, arrays) for k, v in case.state.items()},
                "dims": _dims(content, case, outcome.value),
                "differentiate": case.differentiate,
                "outcome": _outcome(outcome, arrays),
            }
        )
    content["mistakes"] = [
        {
            "name": m.name,
            "gives": m.gives,
            "hint": m.hint,
            "outcomes": [_outcome(_observe(ready, case, m.implementation), arrays) for case in prepared],
        }
        for m in lesson.mistakes
        if m.exercise == exercise.name and not m.says
    ]
    return content


def _with_double(exercise: Exercise) -> list[Case]:
    *simple, full = exercise.cases
    if not exercise.double:
        return exercise.cases

    def to_double(x: torch.Tensor | np.ndarray) -> torch.Tensor | np.ndarray:
        if isinstance(x, torch.Tensor):
            return x.double() if x.is_floating_point() else x
        return x.astype(np.float64) if x.dtype.kind == "f" else x

    double = Case(
        "double precision stays double precision",
        values.transform(full.args, to_double),
        full.init,
        values.transform(full.state, to_double),
        full.differentiate,
    )
    return [*simple, double, full]


def _observe(exercise: stored.Exercise, case: stored.Case, implementation: Callable) -> Outcome:
    device.seed(0)  # an exercise that measures something random gives the same numbers in every build
    return observe_case(exercise, case, implementation)


def _dims(content: dict[str, Any], case: stored.Case, value: Any) -> dict[str, int]:
    dims: dict[str, int] = {}
    results = value if len(content["outputs"]) > 1 else [value]
    pairs = [(content["inputs"].get(name, []), x) for name, x in case.args.items()]
    pairs += [(output["axes"], x) for output, x in zip(content["outputs"], results, strict=False)]
    for axes, x in pairs:
        for axis, length in zip(axes, getattr(x, "shape", ()), strict=False):
            dims.setdefault(axis, int(length))
    return dims


def _outcome(outcome: Outcome, arrays: values.Arrays) -> dict[str, Any]:
    try:
        value = values.pack(outcome.value, arrays)
    except TypeError:
        value = type(outcome.value).__name__
    gradients = outcome.gradients
    return {
        "value": value,
        "failure": outcome.failure.kind if outcome.failure else None,
        "changed": outcome.changed,
        "gradients": None if gradients is None else {k: values.pack(v, arrays) for k, v in gradients.items()},
    }
