"""Compute the numbers that a student's checks compare with.

The solution and every known mistake run on the inputs of ``cases.py``; what they return is stored, and nothing of how.
"""

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import device
from ..check import answers as stored
from ..check import values
from ..check.answers import Case, Content, same
from ..check.ladder import observe_case
from ..check.observe import Outcome
from .lesson import Lesson, LessonError
from .spec import Exercise

__all__ = ["compute", "same", "write"]


def compute(lesson: Lesson) -> Content:
    """Run the lesson's solutions and mistakes on its cases. Returns the text and the arrays to store.

    Raises:
        LessonError: if a solution fails on one of its own cases, or a name in ``cases.py`` is not defined.
    """
    names = lesson.namespace()
    arrays = values.Arrays()
    exercises = {e.name: _exercise(lesson, e, names, arrays) for e in lesson.exercises}
    about = {"lesson": lesson.number, "title": lesson.title, "given": _given(lesson)}
    return about | {"exercises": exercises}, arrays


def _given(lesson: Lesson) -> list[str]:
    """The functions and classes that the lesson's locked cells define."""
    found = []
    for cell in lesson.read().cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and about.get("locked") and not about.get("grade"):
            tree = ast.parse(cell.source)
            found += [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return found


def write(lesson: Lesson, folder: Path) -> bool:
    """Write ``NN.json`` and ``NN.npz`` into ``folder``, unless what is there says the same. True if it wrote."""
    content = compute(lesson)
    target = folder / f"{lesson.number}.json"
    if same(target, content):
        return False
    stored.write(target, content)
    return True


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
    ready = stored.Exercise(lesson=lesson.number, name=exercise.name, **content)
    content["cases"], content["mistakes"] = [], []
    cases = [_solved(lesson, ready, case, names[exercise.name]) for case in _with_double(exercise)]
    for case in cases:
        content["cases"].append(
            {
                "shows": case.shows,
                **{part: _packed(getattr(case, part), arrays) for part in ("args", "init", "state")},
                "differentiate": case.differentiate,
                "dims": case.dims,
                "outcome": {
                    "value": _pack(case.outcome.value, arrays),
                    "gradients": case.outcome.gradients and _packed(case.outcome.gradients, arrays),
                },
            }
        )
    for known in lesson.mistakes:
        if known.exercise != exercise.name or known.says:
            continue
        prints = [_print(ready, case, known.implementation, arrays) for case in cases]
        content["mistakes"].append({"name": known.name, "gives": known.gives, "hint": known.hint, "prints": prints})
    return content


def _solved(lesson: Lesson, exercise: stored.Exercise, case: Case, solution: Callable) -> Case:
    """The case with what the solution gives in it."""
    outcome = _observe(exercise, case, solution)
    if outcome.failure:
        raise LessonError(
            f"{lesson.source}: {exercise.name} raised {outcome.failure.kind}: {outcome.failure.message} "
            f"where {case.shows!r} is tried."
        )
    return replace(case, outcome=stored.rounded(outcome), dims=_dims(exercise, case, outcome.value))


def _print(exercise: stored.Exercise, case: Case, mistake: Callable, arrays: values.Arrays) -> dict[str, Any] | None:
    """The fingerprint of what a mistake gives in a case; None where that is what the right answer gives."""
    outcome = _observe(exercise, case, mistake)
    if stored.recognises(stored.prints(case.outcome), outcome, exercise.tolerance):
        return None
    return stored.fingerprint(stored.rounded(outcome), arrays)


def _packed(parts: dict[str, Any], arrays: values.Arrays) -> dict[str, Any]:
    return {key: _pack(value, arrays) for key, value in parts.items()}


def _pack(value: Any, arrays: values.Arrays) -> Any:
    try:
        return values.pack(value, arrays)
    except TypeError:
        return type(value).__name__


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


def _observe(exercise: stored.Exercise, case: Case, implementation: Callable) -> Outcome:
    device.seed(0)  # an exercise that measures something random gives the same numbers in every build
    return observe_case(exercise, case, implementation)


def _dims(exercise: stored.Exercise, case: Case, value: Any) -> dict[str, int]:
    dims: dict[str, int] = {}
    results = value if len(exercise.outputs) > 1 else [value]
    pairs = [(exercise.inputs.get(name, []), x) for name, x in case.args.items()]
    pairs += [(output["axes"], x) for output, x in zip(exercise.outputs, results, strict=False)]
    for axes, x in pairs:
        for axis, length in zip(axes, getattr(x, "shape", ()), strict=False):
            dims.setdefault(axis, int(length))
    return dims
