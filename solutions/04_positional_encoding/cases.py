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
            Case("far places are places like any other", {"T": 1100, "d": 2}),
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
        "LearnedPositions",
        "4.4",
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
                "every sentence begins with the first row",
                {"x": numbers(7, 3, 2, 2)},
                init={"max_length": 6, "d_model": 2},
                state={"table.weight": numbers(8, 6, 2)},
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
        "4.5",
        inputs={"x": "B H T d", "positions": "T"},
        outputs={"turned": "B H T d"},
        cases=[
            Case(
                "the vectors turned by hand come out",
                {"x": torch.tensor([[1.0, 0.0]] * 3), "positions": torch.tensor([0, 1, 2])},
            ),
            Case(
                "the second entry of a pair is turned too",
                {"x": torch.tensor([[0.0, 1.0]] * 3), "positions": torch.tensor([0, 1, 2])},
            ),
            Case(
                "every pair is turned by its own angle",
                {"x": torch.tensor([[1.0, 0.0, 1.0, 0.0]] * 3), "positions": torch.tensor([0, 1, 2])},
            ),
            Case(
                "a token is turned by the place that is passed in",
                {"x": numbers(17, 1, 3, 4), "positions": torch.tensor([7, 2, 30])},
            ),
            Case(
                "a batch may come without heads",
                {"x": numbers(21, 3, 2, 4), "positions": torch.tensor([3, 1])},
            ),
            Case(
                "it holds for heads and a batch, with all lengths different",
                {"x": numbers(18, 2, 3, 5, 6), "positions": torch.tensor([4, 5, 6, 7, 8])},
            ),
        ],
    ),
    Exercise(
        "breaking_slope",
        "4.6",
        inputs={"lead": "", "place": "", "a": "", "b": ""},
        outputs={"slope": ""},
        double=False,
        cases=[
            Case(
                "the example comes out: on, itself and mat",
                {"lead": 3.0, "place": 3, "a": 3, "b": 5},
                differentiate=False,
            ),
            Case("a counts with its own distance", {"lead": 2.0, "place": 0, "a": 1, "b": 6}, differentiate=False),
            Case("keys may stand to the left", {"lead": 3.0, "place": 5, "a": 5, "b": 2}, differentiate=False),
            Case("one to the left, one to the right", {"lead": 1.5, "place": 4, "a": 3, "b": 8}, differentiate=False),
            Case(
                "keys as far to the left as to the right never change places",
                {"lead": 1.0, "place": 4, "a": 2, "b": 6},
                differentiate=False,
            ),
            Case(
                "nor does a key win that is further away",
                {"lead": 1.0, "place": 2, "a": 7, "b": 3},
                differentiate=False,
            ),
            Case("it holds for other numbers", {"lead": 2.4, "place": 6, "a": 8, "b": 1}, differentiate=False),
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
                {"x": torch.zeros(1, 3, 4), "positions": torch.tensor([0, 1, 2])},
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
