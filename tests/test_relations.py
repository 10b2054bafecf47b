"""How wrong numbers are off: each relation is said where it holds in every case, and only there."""

import numpy as np
import pytest
import torch
from conftest import message, namespace
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from attention_course import check
from attention_course.check import relations
from attention_course.check.relations import View

AXES = ("B", "Tq", "Tk")
SHAPES = ((1, 4, 4), (3, 5, 7))


def view(got, want, args=None) -> View:
    return View(got, want, AXES, args or {}, dict(zip(AXES, want.shape, strict=True)) | {"d": 16}, 1e-4)


def wanted(shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).normal(size=shape)


def softmax(x, axis):
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def first_alone(x):
    y = x.copy()
    y[1:] += np.random.default_rng(1).normal(size=y[1:].shape)
    return y


def off_in(place):
    def change(x):
        y = x.copy()
        y[place] = y[place] * 3 + 1 + np.arange(y[place].size).reshape(y[place].shape) ** 2
        return y

    return change


SAID = {
    "the right numbers times 0.5": lambda x: 0.5 * x,
    "the right numbers with the sign turned": lambda x: -x,
    "the right numbers divided by d": lambda x: x / 16,
    "the right numbers divided by √d": lambda x: x / 4,
    "the right numbers times √Tk": lambda x: x * x.shape[2] ** 0.5,
    "the right numbers plus 0.7": lambda x: x + 0.7,
    "the right numbers minus 2": lambda x: x - 2,
    "the right numbers one place too late along Tk": lambda x: np.roll(x, 1, 2),
    "the right numbers one place too early along Tk": lambda x: np.roll(x, -1, 2),
    "right in the last row, and wrong in the others": off_in(np.s_[:, :-1]),
    "right but for the first row": off_in(np.s_[:, :1]),
    "right but for the last column": off_in(np.s_[:, :, -1:]),
    "the same row again and again": lambda x: np.broadcast_to(
        x.mean(1, keepdims=True) + np.arange(x.shape[2]), x.shape
    ),
    "the absolute values of the right numbers": np.abs,
    "the squares of the right numbers": np.square,
    "e to the power of the right numbers": np.exp,
    "a softmax over the right numbers": lambda x: softmax(x, -1),
    "the same numbers in another order": lambda x: x[:, ::-1, ::-1],
}


@pytest.mark.parametrize("words", SAID)
def test_a_relation_is_said(words):
    assert relations.describe([view(SAID[words](wanted(s)), wanted(s)) for s in SHAPES]) == words


@pytest.mark.parametrize("words", SAID)
def test_a_relation_that_one_case_contradicts_is_not_said(words):
    cases = [view(SAID[words](wanted(s)), wanted(s)) for s in SHAPES]
    cases.append(view(wanted((3, 4, 5), 9), wanted((3, 4, 5), 3)))
    assert relations.describe(cases) == ""


def test_the_first_example_alone():
    cases = [view(x, x) for x in [wanted((1, 4, 4))]] + [view(first_alone(x), x) for x in [wanted((3, 4, 5))]]
    assert relations.describe(cases) == "right in the first example of the batch, and wrong in the others"


def test_axes_that_are_exchanged_are_named_also_where_the_shape_tells():
    square, oblong = wanted((1, 4, 4)), wanted((3, 4, 5))
    words = "the right numbers with the axes Tq and Tk exchanged"
    assert relations.describe([view(square.swapaxes(1, 2), square)]) == words
    assert relations.describe([view(oblong.swapaxes(1, 2), oblong)]) == words


def test_right_where_the_mask_keeps():
    x = wanted((3, 4, 5))
    keep = np.tril(np.ones((4, 5), bool))
    got = np.where(keep, x, x + 1 + np.arange(5) ** 2)
    assert relations.describe([view(got, x, {"mask": torch.from_numpy(keep)})]) == (
        "right where the mask keeps, and wrong where it hides"
    )


def test_columns_that_sum_to_one():
    cases = [view(softmax(wanted(s), 1), softmax(wanted(s), 2)) for s in SHAPES]
    assert relations.describe(cases) == "numbers whose columns sum to 1, where the rows should"


def test_a_mask_that_is_turned_around():
    x = wanted((3, 4, 5)) > 0
    assert relations.describe([view(~x, x)]) == "the opposite in every place"


_numbers = st.floats(-1e6, 1e6, width=32) | st.just(float("nan")) | st.just(float("inf"))
_any = arrays(np.float64, array_shapes(min_dims=0, max_dims=4, max_side=4), elements=_numbers)


@settings(max_examples=60, deadline=None)
@given(_any, _any)
def test_any_two_arrays_can_be_compared(got, want):
    dims = {"B": 2, "Tk": 3}
    assert isinstance(relations.describe([View(got, want, AXES[: want.ndim], {}, dims, 1e-4)]), str)


def test_a_learner_reads_the_relation():
    check.start("01")
    right = namespace("01_attention_scoring")["scaled_dot_scores"]
    text = message(lambda: check.exercise("scaled_dot_scores", lambda q, k: right(q, k) * 0.3))
    assert "What came is the right numbers times 0.3." in text
