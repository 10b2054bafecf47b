"""What a learner reads: every rung of the ladder breaks with a message that names the exercise and what to do."""

import contextlib
import io

import numpy as np
import pytest
import torch
from conftest import message, namespace
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attention_course import check
from attention_course.check import answers, limit, messages, observe, values


@pytest.fixture(autouse=True)
def lesson_01(capsys):
    check.start("01")
    capsys.readouterr()


def _dot(q, k):
    return q @ k.transpose(-2, -1)


def _loop(q, k):
    while True:
        with contextlib.suppress(Exception):
            pass


def _not_written(q, k):
    raise NotImplementedError


def _in_place(q, k):
    scores = q @ k.transpose(-2, -1)
    q -= 1
    return scores


def _nan(q, k):
    return _dot(q, k) * float("nan")


def _raises(q, k):
    return q @ k.transpose(-2, -1)[:, 1:]  # the inner axes do not meet


BAD = {
    "the wrong shape": (
        lambda q, k: _dot(k, q),
        ["scores has shape (2, 5, 3) = (B, Tk, Tq)", "expected (2, 3, 5) = (B, Tq, Tk)"],
    ),
    "a shape of another rank": (lambda q, k: _dot(q, k)[0], ["scores has shape (3, 5) = (Tq, Tk)"]),
    "the wrong dtype": (lambda q, k: _dot(q, k).half(), ["scores is torch.float16", "torch.float32"]),
    "the wrong device": (
        lambda q, k: _dot(q, k).to("meta"),
        ["where the input is", "scores is on meta", "expected cpu"],
    ),
    "a NumPy array": (lambda q, k: _dot(q, k).detach().numpy(), ["scores is a NumPy array", "cuts the gradient"]),
    "numpy() on a tensor with a graph": (lambda q, k: _dot(q, k).numpy(), ["cuts the gradient"]),
    "nothing": (lambda q, k: None, ["nothing (None)", "`return` line"]),
    "a list": (lambda q, k: [_dot(q, k)], ["scores is a list", "torch.stack"]),
    "a string": (lambda q, k: "scores", ["scores is a str", "it should return a tensor"]),
    "an exception": (_raises, ["your code raised RuntimeError", "return q @ k", "which axes should meet"]),
    "a name that is not there": (lambda q, k: qq @ k, ["NameError", "qq"]),  # noqa: F821
    "too few parameters": (lambda q: q, ["TypeError", "Keep the parameters as the exercise names them"]),
    "an infinite loop": (_loop, ["did not finish", "stopped after 1 seconds", "A loop that never ends?"]),
    "a stub": (_not_written, ["not written yet", "Replace the line `raise NotImplementedError`"]),
    "an input changed in place": (_in_place, ["it changed its own input q", "as x = x - 1 does"]),
    "NaN": (_nan, ["scores has NaN values"]),
    "a number in place of a function": (3, ["this should be a function", "dot_scores is an int"]),
    "a cut graph": (lambda q, k: _dot(q, k).detach(), ["no gradient arrives at q and k", ".detach()"]),
    "a gradient cut for one input": (lambda q, k: _dot(q, k.detach()), ["no gradient arrives at k"]),
    "numbers that are off": (lambda q, k: _dot(q, k) + 1, ["not the right numbers yet", "Work it out by hand for q ="]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_a_message(name, monkeypatch):
    attempt, expected = BAD[name]
    monkeypatch.setenv("ATTENTION_CHECK_SECONDS", "1")
    text = message(lambda: check.exercise("dot_scores", attempt))
    assert text.startswith("dot_scores (exercise 1.2): ")
    for words in expected:
        assert words in text, text


class _WrongSize(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q = self.W_k = self.W_v = nn.Linear(d_model, d_model, bias=False)


class _NoSuper(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        self.W_q = nn.Linear(d_model, d_k)


class _HalfWritten(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (_WrongSize, ["its parameters are W_q.weight (5, 5)", "they should be W_q.weight (3, 5)"]),
        (_NoSuper, ["AttributeError", "Call super().__init__() first"]),
        (_HalfWritten, ["not written yet"]),
        (nn.Linear(2, 2), ["should be a class that derives from nn.Module"]),
        (nn.Linear, ["TypeError", "Keep the parameters"]),
    ],
)
def test_a_wrong_module_gets_a_message(attempt, expected):
    text = message(lambda: check.exercise("SelfAttention", attempt))
    assert text.startswith("SelfAttention (exercise 1.7): ")
    for words in expected:
        assert words in text, text


def test_no_bad_input_prints_a_traceback():
    for attempt, _ in BAD.values():
        if attempt is _loop:
            continue
        with pytest.raises(check.CheckFailed) as caught:
            check.exercise("dot_scores", attempt)
        shown = "\n".join(caught.value._render_traceback_())
        assert "Traceback" not in shown
        assert len(shown.split("\n")) <= 12
        assert max(map(len, shown.split("\n"))) <= 110


def test_success_says_what_holds_and_progress_counts(capsys):
    check.exercise("dot_scores", _dot)
    said = capsys.readouterr().out
    assert said.startswith("✓ dot_scores (exercise 1.2) is right.")
    assert "scores has shape (B, Tq, Tk)" in " ".join(said.split())
    check.progress()
    said = capsys.readouterr().out
    assert "1 of 10 exercises" in said
    assert "weighted_context (1.1)" in said
    assert "dot_scores (1.2)" not in said


def test_the_inputs_of_a_check_are_fresh_every_time():
    first = answers.load("01", "dot_scores").cases[-1].args["q"]
    first.zero_()
    assert answers.load("01", "dot_scores").cases[-1].args["q"].abs().sum() > 0


def test_an_unknown_exercise_or_lesson_is_a_sentence():
    with pytest.raises(check.UnknownExercise, match="Its exercises are: weighted_context, dot_scores"):
        check.exercise("dotscores", _dot)
    with pytest.raises(check.UnknownExercise, match="install the package again"):
        check.start("99")


def test_the_time_limit_ends_a_loop_that_swallows_exceptions(monkeypatch):
    outcome = observe.call(_loop, {"q": torch.ones(1), "k": torch.ones(1)}, seconds=0.3)
    assert outcome.failure.kind == "TookTooLong"
    with limit.time_limit(5):
        pass  # the alarm is off again and does not reach the code that follows


# What graded tests ask ------------------------------------------------------------


def test_gradients_are_those_of_the_weighted_sum():
    x = torch.tensor([1.0, 2.0, 3.0])
    (gradient,) = check.gradients(lambda t: t * t, x)
    torch.testing.assert_close(gradient, 2 * x * torch.cos(torch.arange(3.0)))
    assert check.gradients(lambda t: t.detach() * 2, x) == [None]


def test_unchanged_notices_a_change_in_place():
    assert check.unchanged(lambda t: t + 1, torch.ones(2))
    assert not check.unchanged(lambda t: t.add_(1), torch.ones(2))


def test_source_uses_finds_names_and_attributes():
    def uses(x):
        return torch.softmax(x, dim=-1)

    assert check.source_uses(uses, ["softmax", "einsum", "torch"]) == {"softmax", "torch"}


def test_rejects_names_what_a_test_rejects():
    def test(implementation):
        assert implementation(2) == 4

    assert check.rejects(test, {"square": lambda x: x * x, "double plus one": lambda x: 2 * x + 1}) == {
        "double plus one"
    }


def test_what_only_the_grader_can_judge_is_not_called_right(capsys):
    def test(implementation):
        assert implementation(2) == 4

    check.start("02")
    sides = {"right": {"square": lambda x: x * x}, "wrong": {"double plus one": lambda x: 2 * x + 1}}
    check.test_of("test_softmax", test, **sides, later="9 more")
    assert "✓" not in capsys.readouterr().out
    assert "test_softmax" not in check._passed["02"]
    check.test_of("test_softmax", test, **sides)
    assert "✓" in capsys.readouterr().out
    assert "test_softmax" in check._passed["02"]


# Values ------------------------------------------------------------

_trees = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, width=32) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(_trees)
def test_what_is_packed_comes_back(tree):
    arrays = {}
    assert values.unpack(values.pack(tree, arrays), arrays) == tree


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int64, torch.bool])
def test_tensors_come_back_with_their_dtype(dtype):
    tensor = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    arrays = {}
    back = values.unpack(values.pack([tensor, (tensor.numpy(), 3)], arrays), arrays)
    assert back[0].dtype == dtype
    assert torch.equal(back[0], tensor)
    assert isinstance(back[1], tuple)
    assert np.array_equal(back[1][0], tensor.numpy())
    assert len(arrays) == 1


def test_objects_are_not_packed():
    with pytest.raises(TypeError):
        values.pack(object(), {})


def test_the_line_that_is_shown_is_the_learners_own():
    """An error inside PyTorch is reported at the learner's line, not at PyTorch's."""
    layer = namespace("01_attention_scoring")["SelfAttention"]

    class Broken(layer):
        def forward(self, x):
            return self.W_q(x), self.W_missing(x)

    text = message(lambda: check.exercise("SelfAttention", Broken))
    assert "of your cell: return self.W_q(x), self.W_missing(x)" in text
    assert "given x (" in text


def test_an_answer_is_sent_to_the_open_exercise_that_it_uses():
    dot_scores = lambda q, k: q @ k.mT / 2  # noqa: E731

    def scaled(q, k):
        return dot_scores(q, k) / q.shape[-1] ** 0.5

    text = message(lambda: check.exercise("scaled_dot_scores", scaled))
    assert "It uses dot_scores, whose own check (exercise 1.2) has not passed in this session" in text


def test_a_measurement_that_is_not_measured_is_noticed():
    assert "two calls gave exactly the same number" in message(
        lambda: check.exercise("score_variance", lambda d, n: float(d))
    )


def test_the_copy_in_double_precision_is_tried_last():
    """A wrong axis is reported where the axis is checked, not as a matter of precision."""

    def by_queries(q, k):
        return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=1)

    assert "double precision" not in message(lambda: check.exercise("repaired_weights", by_queries))


def test_a_solution_passes_from_inside_another_thread():
    """Where there is no alarm (a worker thread, Windows) a check still works."""
    import threading

    said = io.StringIO()

    def run():
        with contextlib.redirect_stdout(said):
            check.exercise("dot_scores", namespace("01_attention_scoring")["dot_scores"])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "is right" in said.getvalue()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([[4, 6], []], "[[4, 6], []]"),
        (([5], -0.34061), "([5], -0.3406)"),
        ({"le": [0, 1]}, "{'le': [0, 1]}"),
        (["chat", None, True], "['chat', None, True]"),
        ([torch.ones(2)], ""),
        (list(range(100)), ""),
    ],
)
def test_a_short_list_is_written_out(value, text):
    assert messages.numbers(value) == text


def test_axes_are_named_only_where_the_names_fit():
    dims = {"B": 3, "S": 2, "d": 4}
    assert messages.shape((3, 2, 4), dims, ["B", "S", "d"]) == "(3, 2, 4) = (B, S, d)"
    assert messages.shape((3, 2, 4, 5), dims, ["B", "S", "d"]) == "(3, 2, 4, 5)"
    assert messages.shape((2, 3), dims) == "(2, 3) = (S, B)"
