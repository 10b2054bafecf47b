"""The inputs on which a check of lesson 01 climbs: one mechanism at a time, then all dimensions different."""

import torch

from attention_course.authoring import Case, Exercise, numbers

_q, _k = numbers(1, 2, 3, 4), numbers(2, 2, 5, 4)
_square = {"q": numbers(3, 1, 4, 4), "k": numbers(4, 1, 4, 4)}
_hand = {"q": torch.tensor([[[1.0, 2.0]]]), "k": torch.tensor([[[1.0, 2.0], [2.0, -1.0], [-1.0, -2.0]]])}
_large = {"q": torch.tensor([[[100.0, 0.0]]]), "k": torch.tensor([[[100.0, 1.0], [-100.0, 2.0], [0.0, 3.0]]])}
_scores = {"inputs": {"q": "B Tq d", "k": "B Tk d"}, "outputs": {"scores": "B Tq Tk"}}

# 1.8: the queries and keys that section 5 makes of its six tokens by hand, four channels each.
_asks = [[0, 0, 6, 0], [0, 0, 0, 6], [6, 0, 0, 0], [0, 6, 0, 0], [0, 0, 6, 0], [0, 0, 0, 6]]
_is = [[0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0]]
_cat_sat_on_the_mat = {"q": torch.tensor([_asks], dtype=torch.float32), "k": torch.tensor([_is], dtype=torch.float32)}
_same_queries = {"q": numbers(43, 1, 1, 3).expand(1, 4, 3).contiguous(), "k": numbers(44, 1, 2, 3)}
_one_entry = {"q": torch.tensor([[[0.0], [1.0]]]), "k": torch.tensor([[[0.0], [1.0], [2.0]]])}

EXERCISES = [
    Exercise(
        "weighted_context",
        "1.1",
        inputs={"weights": "B Tq Tk", "v": "B Tk d_v"},
        outputs={"context": "B Tq d_v"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "weights": torch.tensor([[[0.5, 0.5, 0.0]]]),
                    "v": torch.tensor([[[2.0, 0.0], [0.0, 4.0], [9.0, 9.0]]]),
                },
            ),
            Case(
                "weight 1 in one place is a look-up",
                {"weights": torch.eye(3)[[2, 0]][None], "v": numbers(5, 1, 3, 2)},
            ),
            Case(
                "queries with different weights get different contexts",
                {"weights": torch.softmax(numbers(6, 2, 4, 4), -1), "v": numbers(7, 2, 4, 4)},
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"weights": torch.softmax(numbers(8, 2, 3, 5), -1), "v": numbers(9, 2, 5, 6)},
            ),
        ],
    ),
    Exercise(
        "dot_scores",
        "1.2",
        **_scores,
        cases=[
            Case("the example worked by hand comes out", _hand),
            Case("scores may be large, above 0 and below", _large),
            Case("rows are queries and columns are keys", _square),
            Case("it holds for a batch in which all lengths differ", {"q": _q, "k": _k}),
        ],
    ),
    Exercise(
        "score_variance",
        "1.3",
        inputs={"d": "", "n": ""},
        outputs={"variance": ""},
        tolerance=0.15,
        double=False,
        random=True,
        cases=[
            Case("it is close to 4 for d = 4", {"d": 4, "n": 5000}, differentiate=False),
            Case("it is close to 16 for d = 16", {"d": 16, "n": 5000}, differentiate=False),
            Case("it is close to 100 for d = 100", {"d": 100, "n": 5000}, differentiate=False),
        ],
    ),
    Exercise(
        "scaled_dot_scores",
        "1.4",
        **_scores,
        cases=[
            Case("the example worked by hand comes out", _hand),
            Case("with d = 1 nothing is divided", {"q": numbers(10, 1, 2, 1), "k": numbers(11, 1, 3, 1)}),
            Case("scores may be large, above 0 and below", _large),
            Case("rows are queries and columns are keys", _square),
            Case("it holds for a batch in which all lengths differ", {"q": _q, "k": _k}),
        ],
    ),
    Exercise(
        "bilinear_scores",
        "1.5",
        inputs={"q": "B Tq d_q", "k": "B Tk d_k", "W": "d_q d_k"},
        outputs={"scores": "B Tq Tk"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "q": torch.tensor([[[1.0, 2.0]]]),
                    "k": torch.tensor([[[1.0, 0.0, 2.0]]]),
                    "W": torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
                },
            ),
            Case(
                "with the identity for W it is the dot product",
                {"q": numbers(45, 1, 1, 2), "k": numbers(46, 1, 3, 2), "W": torch.eye(2)},
            ),
            Case("scores may be large, above 0 and below", _large | {"W": torch.tensor([[1.0, 2.0], [0.0, 1.0]])}),
            Case(
                "W is used as it is, not its transpose",
                {"q": numbers(12, 1, 3, 3), "k": numbers(13, 1, 3, 3), "W": numbers(14, 3, 3)},
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"q": numbers(15, 2, 3, 4), "k": numbers(16, 2, 5, 6), "W": numbers(17, 4, 6)},
            ),
        ],
    ),
    Exercise(
        "additive_scores",
        "1.6",
        inputs={"q": "B Tq d_q", "k": "B Tk d_k", "W_q": "d_q d_h", "W_k": "d_k d_h", "w": "d_h"},
        outputs={"scores": "B Tq Tk"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "q": torch.tensor([[[0.5]]]),
                    "k": torch.tensor([[[-0.5], [0.5]]]),
                    "W_q": torch.tensor([[1.0]]),
                    "W_k": torch.tensor([[1.0]]),
                    "w": torch.tensor([2.0]),
                },
            ),
            Case(
                "hidden numbers add up, each with its own weight",
                {
                    "q": torch.tensor([[[0.5]]]),
                    "k": torch.tensor([[[-1.0], [0.5]]]),
                    "W_q": torch.tensor([[1.0, -1.0]]),
                    "W_k": torch.tensor([[1.0, 1.0]]),
                    "w": torch.tensor([2.0, 3.0]),
                },
            ),
            Case(
                "a query 1000 times as long breaks nothing",
                {
                    "q": torch.tensor([[[1000.0], [-1000.0]]]),
                    "k": torch.tensor([[[-0.5], [0.5]]]),
                    "W_q": torch.tensor([[1.0]]),
                    "W_k": torch.tensor([[1.0]]),
                    "w": torch.tensor([2.0]),
                },
            ),
            Case(
                "every query meets every key",
                {
                    "q": numbers(18, 1, 3, 3, scale=0.6),
                    "k": numbers(19, 1, 3, 3, scale=0.6),
                    "W_q": numbers(20, 3, 3, scale=0.6),
                    "W_k": numbers(21, 3, 3, scale=0.6),
                    "w": numbers(22, 3),
                },
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {
                    "q": numbers(23, 2, 3, 4, scale=0.6),
                    "k": numbers(24, 2, 5, 6, scale=0.6),
                    "W_q": numbers(25, 4, 7, scale=0.6),
                    "W_k": numbers(26, 6, 7, scale=0.6),
                    "w": numbers(27, 7),
                },
            ),
        ],
    ),
    Exercise(
        "SelfAttention",
        "1.7",
        kind="module",
        inputs={"x": "B T d_model"},
        outputs={"context": "B T d_v", "weights": "B T T"},
        cases=[
            Case(
                "a single token hands itself its own value",
                {"x": numbers(28, 1, 1, 3)},
                init={"d_model": 3, "d_k": 2, "d_v": 2},
                state={
                    "W_q.weight": numbers(29, 2, 3),
                    "W_k.weight": numbers(30, 2, 3),
                    "W_v.weight": numbers(31, 2, 3),
                },
            ),
            Case(
                "equal keys get equal weights",
                {"x": numbers(32, 1, 4, 3)},
                init={"d_model": 3, "d_k": 2, "d_v": 2},
                state={
                    "W_q.weight": numbers(33, 2, 3),
                    "W_k.weight": torch.zeros(2, 3),
                    "W_v.weight": numbers(34, 2, 3),
                },
            ),
            Case(
                "with d_k = 1 nothing is divided, and each query's weights sum to 1",
                {"x": numbers(47, 1, 3, 2)},
                init={"d_model": 2, "d_k": 1, "d_v": 2},
                state={
                    "W_q.weight": numbers(48, 1, 2),
                    "W_k.weight": numbers(49, 1, 2),
                    "W_v.weight": numbers(50, 2, 2),
                },
            ),
            Case(
                "with d_k = 4 the scores are divided by 2",
                {"x": numbers(51, 1, 3, 4)},
                init={"d_model": 4, "d_k": 4, "d_v": 2},
                state={
                    "W_q.weight": numbers(52, 4, 4, scale=0.6),
                    "W_k.weight": numbers(53, 4, 4, scale=0.6),
                    "W_v.weight": numbers(54, 2, 4),
                },
            ),
            Case(
                "a query may have scores far above those of another",
                {"x": torch.tensor([[[20.0, 1.0], [1.0, 0.5]]])},
                init={"d_model": 2, "d_k": 1, "d_v": 1},
                state={
                    "W_q.weight": torch.tensor([[1.0, 0.0]]),
                    "W_k.weight": torch.tensor([[10.0, 1.0]]),
                    "W_v.weight": torch.tensor([[0.0, 1.0]]),
                },
            ),
            Case(
                "weights and contexts are right when all lengths differ",
                {"x": numbers(35, 2, 7, 5)},
                init={"d_model": 5, "d_k": 3, "d_v": 4},
                state={
                    "W_q.weight": numbers(36, 3, 5),
                    "W_k.weight": numbers(37, 3, 5),
                    "W_v.weight": numbers(38, 4, 5),
                },
            ),
        ],
    ),
    Exercise(
        "their_weights",
        "1.8",
        inputs={"q": "B Tq d", "k": "B Tk d"},
        outputs={"weights": "B Tq Tk"},
        cases=[
            Case("queries that are all the same share each key equally", _same_queries),
            Case("with d = 1 nothing is divided, and only the axis of the softmax counts", _one_entry),
            Case("their map of The cat sat on the mat comes out", _cat_sat_on_the_mat),
            Case("their maps of other sentences come out", {"q": _q, "k": _k}),
        ],
    ),
    Exercise("counterexample", "1.9", kind="counterexample"),
    Exercise(
        "repaired_weights",
        "1.10",
        inputs={"q": "B Tq d", "k": "B Tk d"},
        outputs={"weights": "B Tq Tk"},
        cases=[
            Case("the weights are right where Tk and d are equal, as the author tried it", _square),
            Case(
                "two queries may have scores of very different size",
                {"q": torch.tensor([[[100.0, 100.0], [1.0, 0.0]]]), "k": torch.tensor([[[1.0, 2.0], [2.0, 1.5]]])},
            ),
            Case("it holds for few entries and many keys", {"q": numbers(39, 1, 2, 2), "k": numbers(40, 1, 8, 2)}),
            Case("it holds for many entries and few keys", {"q": numbers(41, 2, 3, 9), "k": numbers(42, 2, 4, 9)}),
        ],
    ),
]
