"""The numbers a check compares with: inputs, expected outputs and the outputs of known mistakes.

They are written when the course is built and carry no code: neither a solution nor a mistake can be read from them.
"""

import json
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import device
from . import values
from .observe import Failure, Outcome

# A build reads the answers that it is about to write.
FOLDER = Path(os.environ.get("ATTENTION_ANSWERS") or Path(__file__).resolve().parents[1] / "answers")


class UnknownExercise(LookupError):
    """A check was asked for by a name that the installed answers do not have."""


@dataclass
class Case:
    """One situation in which an exercise is tried, and what comes out when it is right.

    ``shows`` says what a right answer has shown here; ``dims`` names the axes' lengths; ``outcome`` is what to expect.
    """

    shows: str
    args: dict[str, Any]
    init: dict[str, Any]
    state: dict[str, Any]
    dims: dict[str, int]
    outcome: Outcome
    differentiate: bool = True


@dataclass
class Mistake:
    """A known wrong implementation: what it does, what helps, and what it gives in each case."""

    name: str
    gives: str
    hint: str
    outcomes: list[Outcome]


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


def exercises(lesson: str) -> dict[str, dict[str, Any]]:
    """Every exercise of a lesson by name, in the order in which they are met, as plain data."""
    return _read(lesson)[0]["exercises"]


def title(lesson: str) -> str:
    """The lesson's name."""
    return _read(lesson)[0]["title"]


def load(lesson: str, name: str) -> Exercise:
    """The exercise ``name`` of ``lesson``, with fresh tensors on the device that the lesson runs on."""
    content, arrays = _read(lesson)
    if name not in content["exercises"]:
        known = ", ".join(content["exercises"])
        raise UnknownExercise(f"Lesson {lesson} has no exercise called {name!r}. Its exercises are: {known}.")
    data = content["exercises"][name]
    where = device.pick()

    def value(tree: Any) -> Any:
        return values.unpack(tree, arrays, where)

    def outcome(tree: dict[str, Any]) -> Outcome:
        return Outcome(
            value=value(tree["value"]),
            failure=Failure(tree["failure"], "") if tree["failure"] else None,
            changed=tree["changed"],
            gradients=None if tree["gradients"] is None else {k: value(v) for k, v in tree["gradients"].items()},
        )

    cases = [
        Case(
            shows=c["shows"],
            args={k: value(v) for k, v in c["args"].items()},
            init={k: value(v) for k, v in c["init"].items()},
            state={k: value(v) for k, v in c["state"].items()},
            dims=c["dims"],
            outcome=outcome(c["outcome"]),
            differentiate=c["differentiate"],
        )
        for c in data.get("cases", [])
    ]
    mistakes = [
        Mistake(m["name"], m["gives"], m["hint"], [outcome(o) for o in m["outcomes"]]) for m in data.get("mistakes", [])
    ]
    return Exercise(
        lesson=lesson,
        name=name,
        label=data["label"],
        kind=data["kind"],
        inputs=data["inputs"],
        outputs=data["outputs"],
        tolerance=data["tolerance"],
        random=data["random"],
        cases=cases,
        mistakes=mistakes,
    )


@cache
def _read(lesson: str) -> tuple[dict[str, Any], values.Arrays]:
    text = FOLDER / f"{lesson}.json"
    if not text.exists():
        raise UnknownExercise(
            f"The installed attention-course has no answers for lesson {lesson}. "
            "The lesson is newer than the package: install the package again, as the setup cell does."
        )
    with np.load(text.with_suffix(".npz"), allow_pickle=False) as file:
        return json.loads(text.read_text(encoding="utf-8")), dict(file)
