"""What a student may read of a test that they cannot see."""

import pytest
import torch

from attention_course import check
from attention_course.cells import run_cell
from attention_course.check import observe
from attention_course.grading import examiner


def said(source: str, **names) -> str:
    """The message of a hidden cell that fails."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        run_cell("test-x-hidden", source, {"torch": torch} | names)
    return examiner._hidden_error(caught.value)["evalue"]


def test_what_the_author_wrote_behind_an_assert_is_shown():
    assert "it rejects 3 of 9 wrong implementations" in said("assert False, 'it rejects 3 of 9 wrong implementations'")


@pytest.mark.parametrize(
    "source",
    [
        "assert 41 + 1 == 43",
        "torch.testing.assert_close(torch.full((1,), 42.0), torch.full((1,), 43.0))",
        "_expected = {}; _expected['42']",
        "raise ValueError('42')",
    ],
)
def test_nothing_else_of_a_hidden_test_is(source):
    shown = said(source)
    assert "42" not in shown
    assert "_expected" not in shown
    assert "the result is not right" in shown


def test_what_the_students_own_code_raised_is_shown():
    def theirs():
        raise examiner.StudentError(observe.Failure("IndexError", "index 7 is out of range", "x[7]"))

    assert "IndexError: index 7 is out of range (x[7])" in said("theirs()", theirs=theirs)


class _Line:
    """The student's end of the line: it hands each implementation it is given a 2, and rejects what does not give 4."""

    def __init__(self):
        self.heard: list[dict] = []

    def send(self, operation, target, implementations, **request):
        self.heard.append(request | {"order": [f.__name__ for _, f in implementations]})
        verdicts = [None if f(2) == 4 else {"kind": "AssertionError"} for _, f in implementations]
        return {str(number): verdict for number, verdict in enumerate(verdicts)}


def test_a_students_test_hears_no_name_and_meets_no_order():
    def square(x):
        return x * x

    def double(x):
        return 2 * x

    def half(x):
        return x / 2

    line = _Line()
    for _ in range(30):
        rejected = check.rejects(
            examiner.Proxy(line, {"name": "test"}), {f.__name__: f for f in (square, double, half)}
        )
        assert rejected == {"half"}
    assert {tuple(sorted(request)) for request in line.heard} == {("count", "order", "seconds")}
    assert len({tuple(request["order"]) for request in line.heard}) > 1
