"""The vocabulary of ``cases.py``, ``mistakes.py`` and ``alternatives.py``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch

from ..check.answers import Case

__all__ = ["Case", "Exercise", "Known", "alternatives_of", "mistakes_of", "numbers"]

Kind = Literal["function", "module", "counterexample", "test"]


@dataclass
class Exercise:
    """What a check needs to know about one exercise.

    Args:
        name: the name the learner defines. label: its number in the lesson, such as ``1.2``.
        inputs: the axes of each input, as in ``{"q": "B Tq d_k"}``; an empty string where it has none.
        outputs: the same for each thing that is returned.
        cases: from the simplest to the last, in which all dimensions differ. A copy of the last one in double precision
            is tried as well, unless ``double`` is False.
        random: two calls must differ, because something is measured on fresh draws.
        tolerance: how far numbers may be off, relative to the largest.
        kind: ``counterexample`` and ``test`` have no cases; ``check.counterexample`` and ``check.test_of`` judge them.
    """

    name: str
    label: str
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)
    kind: Kind = "function"
    tolerance: float = 1e-4
    double: bool = True
    random: bool = False


@dataclass
class Known:
    """A marked implementation from ``mistakes.py`` (with what it gives and what helps) or ``alternatives.py``."""

    exercise: str
    implementation: Callable
    gives: str = ""
    hint: str = ""
    says: str = ""

    @property
    def name(self) -> str:
        return self.implementation.__name__


def mistakes_of(exercise: str) -> Callable[..., Callable[[Callable], Callable]]:
    """The decorator for wrong implementations of ``exercise``, as in ``wrong = mistakes_of("dot_scores")``.

    ``@wrong(gives, hint)`` marks one: ``gives`` continues the sentence *the same numbers come of ...*, which the
    learner who makes this mistake reads, and ``hint`` follows it. ``says`` is for a mistake that a rule catches rather
    than its numbers (a hang, a counterexample that is none): words that the message must contain.
    """

    def wrong(gives: str, hint: str = "", *, says: str = "") -> Callable[[Callable], Callable]:
        def mark(implementation: Callable) -> Callable:
            implementation.known_mistake = Known(exercise, implementation, gives, hint, says)
            return implementation

        return mark

    return wrong


def alternatives_of(exercise: str) -> Callable[[Callable], Callable]:
    """The decorator for other right ones, as in ``right = alternatives_of("dot_scores")``."""

    def right(implementation: Callable) -> Callable:
        implementation.known_alternative = Known(exercise, implementation)
        return implementation

    return right


def numbers(seed: int, *shape: int, scale: float = 1.0) -> torch.Tensor:
    """Normal random numbers of ``shape`` that are the same with every version of every library."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * np.float32(scale))
