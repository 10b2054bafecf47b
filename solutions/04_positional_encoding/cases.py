"""The inputs on which a check of lesson 04 climbs: one mechanism at a time, then all dimensions different."""

import torch

from attention_course.authoring import Case, Exercise, numbers

_gap = {"inputs": {"model": "", "x": "B T d", "order": "T"}, "outputs": {"gap": ""}}
_bug = {"inputs": {"x": "B T d", "positions": "T"}, "outputs": {"placed": "B T d"}}

EXERCISES = [
    Exercise(
        "equivariance_gap",
        "4.1",
        **_gap,
        double=False,
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "model": "running mean",
                    "x": torch.tensor([[[2.0], [4.0], [0.0]]]),
                    "order": torch.tensor([2, 0, 1]),
                },
                differentiate=False,
            ),
            Case(
                "a model that treats each token alone has no gap",
                {"model": "each alone", "x": numbers(1, 1, 4, 2), "order": torch.tensor([1, 3, 0, 2])},
                differentiate=False,
            ),
            Case(
                "attention has no gap",
                {"model": "attention", "x": numbers(2, 1, 5, 6), "order": torch.tensor([1, 2, 4, 0, 3])},
                differentiate=False,
            ),
            Case(
                "a model that looks at the left neighbour has one",
                {"model": "left neighbour", "x": numbers(3, 2, 4, 3), "order": torch.tensor([1, 3, 0, 2])},
                differentiate=False,
            ),
            Case(
                "it is the largest difference in a whole batch",
                {"model": "running mean", "x": numbers(4, 2, 5, 6), "order": torch.tensor([3, 0, 4, 1, 2])},
                differentiate=False,
            ),
        ],
    ),
    Exercise(
        "sinusoidal",
        "4.2",
        inputs={"T": "", "d": ""},
        outputs={"table": "T d"},
        double=False,
        cases=[
            Case("place 0 has sines of 0 and cosines of 1", {"T": 1, "d": 4}),
            Case("two numbers are one hand, with rate 1", {"T": 4, "d": 2}),
            Case("the table worked by hand comes out", {"T": 4, "d": 4}),
            Case("for odd d the last cosine is left out", {"T": 4, "d": 3}),
            Case("a single number is a sine", {"T": 3, "d": 1}),
            Case("every hand has its own rate", {"T": 9, "d": 6}),
        ],
    ),
    Exercise(
        "shift_matrix",
        "4.3",
        inputs={"n": "", "d": ""},
        outputs={"M": "d d"},
        double=False,
        cases=[
            Case("the example worked by hand comes out", {"n": 1, "d": 2}),
            Case("no place on is the identity", {"n": 0, "d": 4}),
            Case("every hand has its own angle", {"n": 3, "d": 4}),
            Case("a negative n goes back", {"n": -2, "d": 4}),
            Case("it holds for more hands", {"n": 5, "d": 8}),
        ],
    ),
    Exercise(
        "add_positions",
        "4.4",
        inputs={"x": "B T d", "table": "T_max d"},
        outputs={"placed": "B T d"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "x": torch.tensor([[[1.0, 1.0], [2.0, 2.0]]]),
                    "table": torch.tensor([[0.0, 1.0], [5.0, 6.0], [7.0, 8.0]]),
                },
            ),
            Case("a sentence may be as long as the table", {"x": numbers(5, 2, 3, 4), "table": numbers(6, 3, 4)}),
            Case("as many sentences as tokens", {"x": numbers(7, 3, 3, 2), "table": numbers(8, 6, 2)}),
            Case(
                "it holds for a batch in which all lengths differ",
                {"x": numbers(9, 2, 4, 5), "table": numbers(10, 7, 5)},
            ),
        ],
    ),
    Exercise(
        "LearnedPositions",
        "4.5",
        kind="module",
        inputs={"x": "B T d_model"},
        outputs={"placed": "B T d_model"},
        cases=[
            Case(
                "a single token gets the first row",
                {"x": numbers(11, 1, 1, 2)},
                init={"max_length": 3, "d_model": 2},
                state={"table.weight": numbers(12, 3, 2)},
            ),
            Case(
                "a sentence may be as long as the table",
                {"x": numbers(13, 2, 3, 4)},
                init={"max_length": 3, "d_model": 4},
                state={"table.weight": numbers(14, 3, 4)},
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"x": numbers(15, 2, 4, 5)},
                init={"max_length": 7, "d_model": 5},
                state={"table.weight": numbers(16, 7, 5)},
            ),
        ],
    ),
    Exercise(
        "rope",
        "4.6",
        inputs={"x": "B H T d", "positions": "T"},
        outputs={"turned": "B H T d"},
        cases=[
            Case(
                "the vectors turned by hand come out",
                {"x": torch.tensor([[1.0, 0.0]] * 3), "positions": torch.tensor([0, 1, 2])},
            ),
            Case(
                "the second entry of a pair is turned too",
                {"x": torch.tensor([[0.0, 1.0]]), "positions": torch.tensor([1])},
            ),
            Case(
                "every pair is turned by its own angle",
                {"x": torch.tensor([[1.0, 0.0, 1.0, 0.0]]), "positions": torch.tensor([20])},
            ),
            Case(
                "a token is turned by the place that is passed in",
                {"x": numbers(17, 1, 3, 4), "positions": torch.tensor([7, 2, 30])},
            ),
            Case(
                "it holds for heads and a batch, with all lengths different",
                {"x": numbers(18, 2, 3, 5, 6), "positions": torch.tensor([4, 5, 6, 7, 8])},
            ),
        ],
    ),
    Exercise("counterexample", "4.7", kind="counterexample"),
    Exercise(
        "repaired_positions",
        "4.8",
        **_bug,
        cases=[
            Case(
                "tokens of two numbers still come out right",
                {"x": torch.zeros(1, 3, 2), "positions": torch.tensor([0, 1, 2])},
            ),
            Case(
                "the second hand turns by 0.01 a place",
                {"x": torch.zeros(1, 2, 4), "positions": torch.tensor([0, 100])},
            ),
            Case(
                "the places that are passed in count",
                {"x": numbers(19, 1, 3, 4), "positions": torch.tensor([40, 3, 11])},
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"x": numbers(20, 2, 3, 8), "positions": torch.tensor([5, 6, 7])},
            ),
        ],
    ),
]
