"""What crosses between the examiner and a student's kernel: values, within bounds, and nothing else."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention_course.grading import protocol

_leaves = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=5)
_trees = st.recursive(
    _leaves, lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=4), x, max_size=4), max_leaves=12
)


@given(_trees)
def test_values_come_back(tree):
    assert protocol.decode(protocol.encode(tree)) == tree


def test_tensors_and_tuples_come_back():
    value = (torch.randn(2, 3), [np.arange(4), torch.tensor(True)], {"a": torch.zeros(0, 2, dtype=torch.float16)})
    back = protocol.decode(protocol.encode(value))
    assert isinstance(back, tuple)
    assert torch.equal(back[0], value[0])
    assert np.array_equal(back[1][0], value[1][0])
    assert back[2]["a"].shape == (0, 2)
    assert back[2]["a"].dtype == torch.float16


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0,), (2, 3)], ids=str)
def test_a_shape_comes_back(shape):
    for one in (
        torch.ones(shape),
        torch.ones(shape, dtype=torch.bool),
        torch.ones(shape).mT if len(shape) > 1 else torch.ones(shape),
    ):
        back = protocol.decode(protocol.encode(one))
        assert back.shape == one.shape
        assert back.dtype == one.dtype
    assert protocol.decode(protocol.encode(np.ones(shape))).shape == shape


def test_an_object_does_not_cross():
    with pytest.raises(TypeError):
        protocol.encode(object())


@pytest.mark.parametrize(
    "value",
    [torch.zeros(30_000_000), list(range(30_000)), ["x" * 40_000_000]],
    ids=["bytes", "parts", "text"],
)
def test_too_much_does_not_cross(value):
    with pytest.raises(protocol.ProtocolError):
        protocol.encode(value)


def test_too_deep_does_not_cross():
    value = []
    for _ in range(60):
        value = [value]
    with pytest.raises(protocol.ProtocolError):
        protocol.encode(value)


HOSTILE = {
    "no JSON": "{",
    "another JSON": "[1, 2]",
    "nothing inside": "{}",
    "no tree": json.dumps({"arrays": ""}),
    "a kind that is none": json.dumps({"tree": {"code": "print(1)"}, "arrays": ""}),
    "two kinds at once": json.dumps({"tree": {"list": [], "dict": {}}, "arrays": ""}),
    "a tensor that is not there": json.dumps({"tree": {"tensor": "a9"}, "arrays": ""}),
    "arrays that are none": json.dumps({"tree": None, "arrays": "AAAA"}),
    "arrays in no base64": json.dumps({"tree": None, "arrays": "\u2713"}),
    "a header that lies": json.dumps({"tree": None, "arrays": "/////////////w=="}),
    "a number of a million digits": '{"tree": ' + "9" * 1_000_000 + ', "arrays": ""}',
    "a hundred thousand brackets": '{"tree": ' + "[" * 100_000 + "]" * 100_000 + ', "arrays": ""}',
    "an object where none is expected": json.dumps({"tree": {"object": {"handle": 1}}, "arrays": ""}),
    "far too long": "x" * (protocol.MOST_BYTES + 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_message_is_refused(name):
    with pytest.raises(protocol.ProtocolError):
        protocol.decode(HOSTILE[name])
