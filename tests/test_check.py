"""What a learner reads: every rung of the ladder breaks with a message that names the exercise and what to do."""

import contextlib
import io

import numpy as np
import pytest
import torch
from conftest import LESSONS, message, namespace
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from torch import nn

from attention_course import check
from attention_course.cells import run_cell
from attention_course.check import answers, limit, messages, observe, values
from attention_course.check.ladder import Climb


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
    return q @ k  # the inner axes do not meet


def _product(q, k):
    return q @ k


def _cut(q, k):
    return _dot(q, k).detach()


def _constant(q, k):
    return torch.zeros(q.shape[0], q.shape[1], k.shape[1])


def _overwritten(q, k):
    weights = torch.exp(_dot(q, k))
    weights /= weights.sum(-1, keepdim=True)
    return weights


def _backward(q, k):
    scores = _dot(q, k)
    scores.sum().backward()
    return scores


def _places(q, k):
    return _dot(q, k).argsort(-1)


def _made(q, k):
    scores = torch.zeros(q.shape[0], q.shape[1], k.shape[1], dtype=torch.float64)
    return scores + _dot(q, k)


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
    "an exception": (
        _raises,
        [
            "your code raised RuntimeError",
            "return q @ k",
            "there q is (2, 3, 4) = (B, Tq, d)",
            "turn the last two of k",
        ],
    ),
    "a name that is not there": (lambda q, k: qq @ k, ["NameError", "qq"]),  # noqa: F821
    "too few parameters": (lambda q: q, ["TypeError", "Keep the parameters as the exercise names them"]),
    "an infinite loop": (_loop, ["did not finish", "stopped after 1 seconds", "A loop that never ends?"]),
    "a stub": (_not_written, ["not written yet", "Replace the line `raise NotImplementedError`"]),
    "an input changed in place": (_in_place, ["it changed its own input q", "as x = x - 1 does"]),
    "NaN": (_nan, ["scores has NaN values"]),
    "a number in place of a function": (3, ["this should be a function", "dot_scores is an int"]),
    "a cut graph": (_cut, ["no gradient arrives at q and k", "Your code has .detach()"]),
    "a graph that never was": (_constant, ["no gradient arrives at q and k", "no step that PyTorch can differentiate"]),
    "a tensor that backward needs and that is overwritten": (
        _overwritten,
        [
            "PyTorch cannot compute its gradient",
            "modified by an inplace operation",
            "exp(_dot(q, k))",
            "written over later",
        ],
    ),
    "a backward pass of one's own": (
        _backward,
        ["cannot compute its gradient", "backward through the graph a second time"],
    ),
    "places for values": (_places, ["these are whole numbers", "amax and .values"]),
    "a dtype of one's own": (_made, ["the dtype should follow the input", "What zeros makes has PyTorch's own dtype"]),
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
    assert "○ open   1.1 weighted_context" in said
    assert "✓ right  1.2 dot_scores" in said


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
    arrays = values.Arrays()
    assert values.unpack(values.pack(tree, arrays), arrays) == tree


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int64, torch.bool])
def test_tensors_come_back_with_their_dtype(dtype):
    tensor = torch.tensor([[0, 1], [1, 0]]).to(dtype)
    arrays = values.Arrays()
    back = values.unpack(values.pack([tensor, (tensor.numpy(), 3)], arrays), arrays)
    assert back[0].dtype == dtype
    assert torch.equal(back[0], tensor)
    assert isinstance(back[1], tuple)
    assert np.array_equal(back[1][0], tensor.numpy())
    assert len(arrays) == 1


def test_objects_are_not_packed():
    with pytest.raises(TypeError):
        values.pack(object(), values.Arrays())


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


def test_an_error_in_an_earlier_exercise_is_blamed_on_it():
    names = {}
    run_cell("dot_scores", "def dot_scores(q, k):\n    return q @ k", names)
    run_cell(
        "scaled_dot_scores", "def scaled_dot_scores(q, k):\n    return dot_scores(q, k) / q.shape[-1] ** 0.5", names
    )
    text = message(lambda: check.exercise("scaled_dot_scores", names["scaled_dot_scores"]))
    assert "dot_scores, exercise 1.2, which it uses, raised RuntimeError" in text
    assert "line 2 of the cell of dot_scores, exercise 1.2: return q @ k" in text
    assert "Look at dot_scores first" in text


def test_an_exercise_that_is_not_written_is_named_by_the_one_that_uses_it():
    names = {}
    run_cell("dot_scores", "def dot_scores(q, k):\n    raise NotImplementedError", names)
    run_cell("scaled_dot_scores", "def scaled_dot_scores(q, k):\n    return dot_scores(q, k) / 2", names)
    text = message(lambda: check.exercise("scaled_dot_scores", names["scaled_dot_scores"]))
    assert "it uses dot_scores, exercise 1.2, which is not written yet" in text


def test_a_known_mistake_that_raises_is_known_by_what_it_raises_and_where():
    exercise = answers.load("01", "dot_scores")
    case = exercise.cases[-1]
    stored = answers.prints(observe.call(_product, case.args))
    assert answers.recognises(stored, observe.call(_raises, case.args), 1e-4)
    assert not answers.recognises(stored, observe.call(lambda q, k: torch.bmm(q, k), case.args), 1e-4)
    assert not answers.recognises(stored, observe.call(_dot, case.args), 1e-4)


def test_what_is_right_is_said_beside_what_is_not():
    def right_by_hand_alone(q, k):
        return _dot(q, k) if q.shape[1] == 1 else _dot(q, k) + torch.arange(k.shape[1])

    text = message(lambda: check.exercise("dot_scores", right_by_hand_alone))
    assert "right the example worked by hand comes out" in text
    assert "checked rows are queries and columns are keys" in text


def _judge_a_test(test):
    wrong = {"doubles": lambda x, dim: 2 * torch.softmax(x, dim), "crashes": lambda x, dim: x @ x @ torch.zeros(7)}
    check.start("02")
    check.test_of("test_softmax", test, right={"torch.softmax": torch.softmax}, wrong=wrong)


def test_a_learners_test_rejects_by_an_assertion_or_because_the_implementation_crashed(capsys):
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])

    def asserts(implementation):
        assert torch.allclose(implementation(x, 1), torch.softmax(x, 1))

    def raises_another(implementation):
        if not torch.allclose(implementation(x, 1), torch.softmax(x, 1)):
            raise ValueError("no softmax")

    _judge_a_test(asserts)
    assert "test_softmax (exercise 2.6) is right" in capsys.readouterr().out
    text = message(lambda: _judge_a_test(raises_another))
    assert "it rejects with ValueError, where an AssertionError is asked for" in text
    assert "for: doubles" in text


def test_two_mistakes_that_give_the_same_are_both_named(monkeypatch):
    exercise = answers.load("01", "dot_scores")
    first = exercise.mistakes[0]
    twin = answers.Mistake("twin", "doing it another way", "Another hint.", first.prints)
    monkeypatch.setattr(exercise, "mistakes", [first, twin])
    implementation = next(m for m in LESSONS[0].mistakes if m.name == first.name).implementation
    text = message(lambda: Climb(exercise, implementation).run())
    assert f"comes of {first.gives.rstrip(',')}, and of doing it another way." in text
    assert "Another hint." in text


def test_what_fails_is_named_by_the_case_that_shows_it(monkeypatch):
    """A missing scale is reported where the scale is checked, not where a mask happens to be tried too."""
    check.start("03")
    right = namespace("03_multi_head_attention")["scaled_dot_product_attention"]

    def unscaled(q, k, v, mask=None, dropout=None):
        return right(q * q.shape[-1] ** 0.5, k, v, mask, dropout)

    monkeypatch.setattr(Climb, "diagnose", lambda climb: [])
    text = message(lambda: check.exercise("scaled_dot_product_attention", unscaled))
    assert "checked scores are divided by the root of d_k" in text


@settings(max_examples=40, deadline=None)
@given(array_shapes(min_dims=1, max_dims=3, max_side=6), st.integers(0, 2**31), st.integers(0, 200))
def test_a_fingerprint_knows_its_numbers_and_no_others(shape, seed, place):
    numbers = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    tensor = torch.from_numpy(numbers)
    stored = answers.prints(observe.Outcome(tensor))
    assert answers.recognises(stored, observe.Outcome(tensor * (1 + 1e-6)), 1e-4)
    other = tensor.clone()
    other.view(-1)[place % other.numel()] += 0.05 * max(1.0, float(tensor.abs().max()))
    assert not answers.recognises(stored, observe.Outcome(other), 1e-4)
    assert not answers.recognises(stored, observe.Outcome(tensor.double()), 1e-4)
    assert not answers.recognises(stored, observe.Outcome(tensor[None]), 1e-4)


def test_a_lessons_file_of_answers_gives_back_what_was_written(tmp_path):
    arrays = values.Arrays()
    numbers = [
        torch.randn(2, 3),
        torch.randn(4, dtype=torch.float64),
        torch.tensor(3),
        np.array([True]),
        torch.zeros(0, 2),
    ]
    content = ({"exercises": {"a": values.pack(numbers, arrays)}}, arrays)
    answers.write(tmp_path / "01.json", content)
    text, again = answers.read(tmp_path / "01.json")
    for before, after in zip(numbers, values.unpack(text["exercises"]["a"], again), strict=True):
        assert type(before) is type(after)
        assert before.dtype == after.dtype
        assert np.array_equal(np.asarray(before), np.asarray(after))
    assert answers.same(tmp_path / "01.json", content)


def test_packing_keeps_minus_zero_and_is_quick():
    arrays = values.Arrays()
    tree = values.pack([torch.tensor(0.0), torch.tensor(-0.0)], arrays)
    back = values.unpack(tree, arrays)
    assert str(float(back[1])) == "-0.0"
    many = values.pack([torch.tensor(float(i)) for i in range(4000)], values.Arrays())
    assert len(many["list"]) == 4000


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
