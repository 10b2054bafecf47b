"""The inputs on which a check of lesson 02 climbs: one mechanism at a time, then all dimensions different."""

import torch

from attention_course.authoring import Case, Exercise, numbers

_six = torch.tensor([0.0, 3.0, 0.0, 1.0, 0.0, 2.0])  # what "sat" gives to the six tokens
_square = torch.tensor([[0.0, 3.0], [0.0, 0.0]])
_extreme = torch.tensor([[1e6, 0.0, -1e6], [-1e6, -1e6, -1000001.0]])
_axes = {"inputs": {"x": "B Tq Tk", "dim": ""}, "outputs": {"weights": "B Tq Tk"}}
_inf = float("inf")
_lowest = torch.finfo(torch.float32).min
_rows_apart = torch.tensor([[300.0, 301.0], [0.0, 2.0]])


def _step(maximum: list, denominator: list, chunk: list) -> dict[str, torch.Tensor]:
    """The arguments of one online step, from plain numbers."""
    return {
        "maximum": torch.tensor(maximum),
        "denominator": torch.tensor(denominator),
        "chunk": torch.tensor(chunk),
    }


EXERCISES = [
    Exercise(
        "softmax",
        "2.1",
        **_axes,
        cases=[
            Case("the six tokens' weights come out", {"x": _six, "dim": 0}),
            Case("dim = 0 makes every column sum to 1", {"x": _square, "dim": 0}),
            Case("large scores do not overflow", {"x": torch.tensor([100.0, 102.0, 101.0]), "dim": 0}),
            Case("scores far below 0 do not underflow", {"x": torch.tensor([-1000.0, -1001.0, -1003.0]), "dim": -1}),
            Case("rows 300 apart each have their own maximum", {"x": _rows_apart, "dim": 1}),
            Case("scores of a million and minus a million in one tensor are fine", {"x": _extreme, "dim": 1}),
            Case("any axis of three can be named", {"x": numbers(1, 2, 3, 4), "dim": -2}),
        ],
    ),
    Exercise(
        "log_softmax",
        "2.2",
        inputs=_axes["inputs"],
        outputs={"logarithms": "B Tq Tk"},
        cases=[
            Case("the logarithms of the six tokens' weights come out", {"x": _six, "dim": 0}),
            Case("dim = 0 runs down the columns", {"x": _square, "dim": 0}),
            Case("a weight of e^-200 has the logarithm -200", {"x": torch.tensor([0.0, 200.0]), "dim": 0}),
            Case("rows 300 apart each have their own maximum", {"x": _rows_apart, "dim": 1}),
            Case("scores of 10000 and -10000 in one tensor are fine", {"x": _extreme / 100, "dim": 1}),
            Case("a weight may be as small as e to the minus million", {"x": torch.tensor([0.0, 1e6]), "dim": 0}),
            Case("any axis of three can be named", {"x": numbers(2, 2, 3, 4), "dim": -2}),
        ],
    ),
    Exercise(
        "softmax_with_temperature",
        "2.3",
        inputs={"x": "B Tq Tk", "temperature": "", "dim": ""},
        outputs={"weights": "B Tq Tk"},
        cases=[
            Case("T = 1 is softmax as it was", {"x": _six, "temperature": 1.0, "dim": 0}),
            Case("T = 0.5 sharpens", {"x": _six, "temperature": 0.5, "dim": 0}),
            Case("T = 4 flattens", {"x": _six, "temperature": 4.0, "dim": 0}),
            Case("scores may be negative", {"x": torch.tensor([-3.0, 1.0, -0.5]), "temperature": 2.0, "dim": 0}),
            Case(
                "near 0 the largest scores share all the weight",
                {"x": torch.tensor([50.0, 50.0, 49.0]), "temperature": 0.01, "dim": 0},
            ),
            Case(
                "a low temperature makes much of a small difference",
                {"x": torch.tensor([1.0, 1.0, 0.99]), "temperature": 0.01, "dim": 0},
            ),
            Case("dim = 0 runs down the columns", {"x": _square, "temperature": 2.0, "dim": 0}),
            Case(
                "any axis of three can be named",
                {"x": numbers(3, 2, 3, 4, scale=2.0), "temperature": 1.6, "dim": -2},
            ),
        ],
    ),
    Exercise(
        "softmax_jvp",
        "2.4",
        inputs={"p": "B Tq Tk", "g": "B Tq Tk"},
        outputs={"product": "B Tq Tk"},
        # Nobody asks for the derivative of a derivative, and a right answer by way of autograd has none.
        cases=[
            Case(
                "the example worked by hand comes out",
                {"p": torch.tensor([0.8, 0.2]), "g": torch.tensor([1.0, 0.0])},
                differentiate=False,
            ),
            Case(
                "g may be large, above 0 and below",
                {"p": torch.tensor([0.8, 0.2]), "g": torch.tensor([-100.0, 300.0])},
                differentiate=False,
            ),
            Case(
                "where g is the same for all, nothing comes through",
                {"p": torch.tensor([0.5, 0.3, 0.2]), "g": torch.tensor([4.0, 4.0, 4.0])},
                differentiate=False,
            ),
            Case(
                "where one token has all the weight, nothing comes through",
                {"p": torch.tensor([0.0, 1.0, 0.0]), "g": torch.tensor([1.0, 2.0, 3.0])},
                differentiate=False,
            ),
            Case(
                "each row has its own average",
                {"p": torch.softmax(numbers(4, 3, 3), -1), "g": numbers(5, 3, 3)},
                differentiate=False,
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"p": torch.softmax(numbers(6, 2, 3, 5), -1), "g": numbers(7, 2, 3, 5)},
                differentiate=False,
            ),
        ],
    ),
    Exercise(
        "online_step",
        "2.5",
        inputs={"maximum": "B Tq 1", "denominator": "B Tq 1", "chunk": "B Tq n"},
        outputs={"maximum": "B Tq 1", "denominator": "B Tq 1"},
        # The largest of equal numbers may pass its gradient to one of them or to all: nothing to compare here.
        cases=[
            Case(
                "a chunk below the maximum only adds to the sum",
                _step([2.0], [1.5], [1.0, 0.0]),
                differentiate=False,
            ),
            Case(
                "when the maximum rises, the old sum is scaled down",
                _step([2.0], [1.5], [3.0, 0.0]),
                differentiate=False,
            ),
            Case(
                "a million scores 50 below the new maximum no longer count",
                _step([2.0], [1e6], [52.0, 0.0]),
                differentiate=False,
            ),
            Case(
                "before the first chunk there is nothing to scale",
                _step([_lowest], [0.0], [2.0, 0.0]),
                differentiate=False,
            ),
            Case("all scores may be below 0", _step([-5.0], [1.5], [-7.0, -4.0]), differentiate=False),
            Case("large scores do not overflow", _step([1001.0], [1.5], [1003.0, 1000.0]), differentiate=False),
            Case(
                "each row keeps its own maximum",
                _step([[501.0], [1.0]], [[1.5], [1.5]], [[499.0, 502.0], [2.0, 0.0]]),
                differentiate=False,
            ),
            Case("a chunk of -inf changes nothing", _step([2.0], [1.5], [-_inf, -_inf]), differentiate=False),
            Case(
                "the first chunk may be -inf throughout", _step([_lowest], [0.0], [-_inf, -_inf]), differentiate=False
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {
                    "maximum": numbers(8, 2, 3, 1),
                    "denominator": 1 + numbers(9, 2, 3, 1) ** 2,
                    "chunk": 2 * numbers(10, 2, 3, 4),
                },
                differentiate=False,
            ),
        ],
    ),
    Exercise("test_softmax", "2.6", kind="test"),
    Exercise("counterexample", "2.7", kind="counterexample"),
    Exercise(
        "repaired_attention",
        "2.8",
        inputs={"scores": "B Tq Tk", "v": "B Tk d_v"},
        outputs={"context": "B Tq d_v"},
        cases=[
            Case(
                "ordinary scores come out right, as the author tried it",
                {"scores": torch.tensor([[[0.0, 3.0], [1.0, 1.0]]]), "v": torch.tensor([[[1.0], [2.0]]])},
            ),
            Case(
                "a query may have scores 20 below those of another",
                {"scores": torch.tensor([[[0.0, 1.0], [20.0, 21.0]]]), "v": torch.tensor([[[1.0], [2.0]]])},
            ),
            Case(
                "a query may have scores 300 below those of another",
                {"scores": torch.tensor([[[0.0, 1.0], [300.0, 301.0]]]), "v": torch.tensor([[[1.0], [2.0]]])},
            ),
            Case(
                "an example may have scores 2000 below those of another",
                {"scores": torch.tensor([[[0.0, 1.0]], [[2000.0, 2001.0]]]), "v": torch.tensor([[[1.0], [2.0]]] * 2)},
            ),
            Case(
                "all scores of a query may lie far below 0",
                {"scores": torch.tensor([[[-500.0, -501.0]]]), "v": torch.tensor([[[1.0], [2.0]]])},
            ),
            Case(
                "the scores of one query may lie 600 apart",
                {"scores": torch.tensor([[[300.0, 0.0, -300.0]]]), "v": torch.tensor([[[1.0], [2.0], [3.0]]])},
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"scores": numbers(11, 2, 3, 4), "v": numbers(12, 2, 4, 5)},
            ),
        ],
    ),
]
