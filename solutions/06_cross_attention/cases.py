"""The inputs on which a check of lesson 06 climbs: one mechanism at a time, then all dimensions different."""

import torch

from attention_course.authoring import Case, Exercise, numbers


def _mask(*rows: str) -> torch.Tensor:
    """A mask from rows of 1 (real) and 0 (padding)."""
    return torch.tensor([[place == "1" for place in row] for row in rows])


def _with(x: torch.Tensor, value: float, *places: tuple[int, int]) -> torch.Tensor:
    """A copy of ``x`` (B, T, d) with whole vectors set to ``value``."""
    x = x.clone()
    for b, t in places:
        x[b, t] = value
    return x


def _layer(seed: int, query_dim: int, key_dim: int, value_dim: int, out_dim: int) -> dict[str, torch.Tensor]:
    """Weights of a CrossAttention that keep its scores small."""
    widths = {"W_q": query_dim, "W_k": key_dim, "W_v": value_dim, "W_o": out_dim}
    return {
        f"{name}.weight": numbers(seed + i, out_dim, width, scale=width**-0.5)
        for i, (name, width) in enumerate(widths.items())
    }


def _init(query_dim: int, key_dim: int, value_dim: int, out_dim: int, num_heads: int) -> dict[str, int]:
    return {
        "query_dim": query_dim,
        "key_dim": key_dim,
        "value_dim": value_dim,
        "out_dim": out_dim,
        "num_heads": num_heads,
    }


_square = {"query": numbers(20, 3, 4, 4), "key": numbers(21, 3, 4, 4), "value": numbers(22, 3, 4, 4)}
_full = {"query": numbers(23, 2, 4, 7), "key": numbers(24, 2, 5, 8), "value": numbers(25, 2, 5, 10)}
_square_mask = _mask("1101", "1111", "0110")
_full_mask = _mask("10110", "11111")
_attend_square = {"q": numbers(1, 3, 3, 3, 3), "k": numbers(2, 3, 3, 3, 3), "v": numbers(3, 3, 3, 3, 3)}

EXERCISES = [
    Exercise(
        "attend",
        "6.1",
        inputs={"q": "B H Tq d_k", "k": "B H Tk d_k", "v": "B H Tk d_v", "memory_mask": "B Tk"},
        outputs={"context": "B H Tq d_v", "weights": "B H Tq Tk"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "q": torch.tensor([[[[1.0]]]]),
                    "k": torch.tensor([[[[1.0986123], [0.0], [5.0]]]]),
                    "v": torch.tensor([[[[4.0], [8.0], [100.0]]]]),
                    "memory_mask": _mask("110"),
                },
            ),
            Case(
                "equal keys share the weight among the real tokens",
                {
                    "q": numbers(4, 1, 1, 2, 4),
                    "k": torch.ones(1, 1, 5, 4),
                    "v": numbers(5, 1, 1, 5, 1),
                    "memory_mask": _mask("11010"),
                },
            ),
            Case(
                "the scores are divided by the root of d_k, whatever d_v is",
                {
                    "q": numbers(15, 1, 1, 2, 4),
                    "k": numbers(16, 1, 1, 3, 4),
                    "v": numbers(17, 1, 1, 3, 2),
                    "memory_mask": _mask("111"),
                },
            ),
            Case(
                "the mask lies on the memory, also where the map is square",
                _attend_square | {"memory_mask": _mask("110", "011", "111")},
            ),
            Case(
                "rows may lie far apart",
                {
                    "q": torch.tensor([[[[-1.0], [1.0]]]]),
                    "k": torch.tensor([[[[60.0], [60.0], [-90.0]]]]),
                    "v": torch.tensor([[[[4.0], [8.0], [100.0]]]]),
                    "memory_mask": _mask("110"),
                },
                differentiate=False,
            ),
            Case(
                "scores may be as low as -20000",
                {
                    "q": torch.tensor([[[[-1.0]]]]),
                    "k": torch.tensor([[[[20000.0], [20000.0], [-30000.0]]]]),
                    "v": torch.tensor([[[[4.0], [8.0], [100.0]]]]),
                    "memory_mask": _mask("100"),
                },
                differentiate=False,
            ),
            Case(
                "an empty memory gives zeros, and gradients that are finite",
                {
                    "q": numbers(6, 2, 1, 2, 3),
                    "k": numbers(7, 2, 1, 3, 3),
                    "v": numbers(8, 2, 1, 3, 2),
                    "memory_mask": _mask("000", "101"),
                },
            ),
            Case(
                # Numbers that half precision holds exactly, so that the order of a sum does not matter.
                "half precision works as well",
                {
                    "q": torch.ones(1, 1, 1, 4, dtype=torch.float16),
                    "k": torch.ones(1, 1, 3, 4, dtype=torch.float16),
                    "v": torch.tensor([[[[4.0], [8.0], [100.0]]]], dtype=torch.float16),
                    "memory_mask": _mask("110"),
                },
                differentiate=False,
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {
                    "q": numbers(9, 2, 3, 4, 6),
                    "k": numbers(10, 2, 3, 5, 6),
                    "v": numbers(11, 2, 3, 5, 7),
                    "memory_mask": _full_mask,
                },
            ),
        ],
    ),
    Exercise(
        "CrossAttention",
        "6.2",
        kind="module",
        inputs={
            "query": "B Tq query_dim",
            "key": "B Tk key_dim",
            "value": "B Tk value_dim",
            "memory_mask": "B Tk",
        },
        outputs={"context": "B Tq out_dim", "weights": "B H Tq Tk"},
        cases=[
            Case(
                "a memory of one token hands over its value, through W_v and W_o, with one head unless told otherwise",
                {
                    "query": numbers(12, 1, 2, 3),
                    "key": numbers(13, 1, 1, 2),
                    "value": numbers(14, 1, 1, 5),
                    "memory_mask": _mask("1"),
                },
                init={"query_dim": 3, "key_dim": 2, "value_dim": 5, "out_dim": 4},  # one head unless told
                state=_layer(100, 3, 2, 5, 4),
            ),
            Case(
                "a single head leaves out the padding, also where all widths are equal",
                _square | {"memory_mask": _square_mask},
                init=_init(4, 4, 4, 4, 1),
                state=_layer(150, 4, 4, 4, 4),
            ),
            Case(
                "two heads each read the memory on their own",
                _square | {"memory_mask": _mask("1111", "1111", "1111")},
                init=_init(4, 4, 4, 4, 2),
                state=_layer(110, 4, 4, 4, 4),
            ),
            Case(
                # 3e38 overflows in a projection, but not in a product with 0: it tells these two mistakes apart.
                "padding may hold anything, even NaN",
                _square
                | {
                    "key": _with(_square["key"], torch.nan, (0, 2)),
                    "value": _with(_with(_square["value"], torch.nan, (2, 0)), 3e38, (1, 0)),
                    "memory_mask": _mask("1101", "0111", "0110"),
                },
                init=_init(4, 4, 4, 4, 2),
                state=_layer(123, 4, 4, 4, 4),
            ),
            Case(
                "an empty memory gives zeros",
                _square | {"memory_mask": _mask("0000", "1101", "1111")},
                init=_init(4, 4, 4, 4, 2),
                state=_layer(130, 4, 4, 4, 4),
            ),
            Case(
                "it holds when all lengths and widths differ",
                _full | {"memory_mask": _full_mask},
                init=_init(7, 8, 10, 18, 3),
                state=_layer(140, 7, 8, 10, 18),
            ),
        ],
    ),
    Exercise(
        "cache_kv",
        "6.3",
        inputs={
            "key": "B Tk key_dim",
            "value": "B Tk value_dim",
            "memory_mask": "B Tk",
            "W_k": "out_dim key_dim",
            "W_v": "out_dim value_dim",
            "num_heads": "",
        },
        outputs={"k": "B H Tk head_dim", "v": "B H Tk head_dim"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "key": torch.tensor([[[2.0], [9.0]]]),
                    "value": torch.tensor([[[3.0], [9.0]]]),
                    "memory_mask": _mask("10"),
                    "W_k": torch.tensor([[1.0], [10.0]]),
                    "W_v": torch.tensor([[1.0], [-1.0]]),
                    "num_heads": 2,
                },
            ),
            Case(
                "the numbers end up in the right head and at the right token, also where all widths are equal",
                {
                    "key": numbers(30, 1, 4, 4),
                    "value": numbers(31, 1, 4, 4),
                    "memory_mask": _mask("1111"),
                    "W_k": numbers(32, 4, 4),
                    "W_v": numbers(33, 4, 4),
                    "num_heads": 2,
                },
            ),
            Case(
                "padding may hold NaN, and gradients stay finite",
                {
                    "key": _with(numbers(34, 2, 3, 4), torch.nan, (0, 1)),
                    "value": _with(numbers(35, 2, 3, 4), torch.nan, (0, 1), (1, 2)),
                    "memory_mask": _mask("101", "110"),
                    "W_k": numbers(36, 4, 4),
                    "W_v": numbers(37, 4, 4),
                    "num_heads": 2,
                },
            ),
            Case(
                "it holds when all lengths and widths differ",
                {
                    "key": _full["key"],
                    "value": _full["value"],
                    "memory_mask": _full_mask,
                    "W_k": numbers(38, 18, 8, scale=0.5),
                    "W_v": numbers(39, 18, 10, scale=0.5),
                    "num_heads": 3,
                },
            ),
        ],
    ),
    Exercise(
        "decode_step",
        "6.4",
        inputs={
            "query": "B query_dim",
            "k": "B H Tk head_dim",
            "v": "B H Tk head_dim",
            "memory_mask": "B Tk",
            "W_q": "out_dim query_dim",
            "W_o": "out_dim out_dim",
        },
        outputs={"context": "B out_dim", "weights": "B H Tk"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "query": torch.tensor([[1.0]]),
                    "k": torch.tensor([[[[1.0986123], [0.0]]]]),
                    "v": torch.tensor([[[[4.0], [8.0]]]]),
                    "memory_mask": _mask("11"),
                    "W_q": torch.tensor([[1.0]]),
                    "W_o": torch.tensor([[2.0]]),
                },
            ),
            Case(
                "a memory of one token hands over its value, through W_o",
                {
                    "query": numbers(40, 1, 4),
                    "k": numbers(41, 1, 2, 1, 2),
                    "v": numbers(42, 1, 2, 1, 2),
                    "memory_mask": _mask("1"),
                    "W_q": numbers(43, 4, 4),
                    "W_o": numbers(44, 4, 4),
                },
            ),
            Case(
                "each head has its own weights, also where all widths are equal",
                {
                    "query": numbers(45, 4, 4, scale=0.7),
                    "k": numbers(46, 4, 2, 4, 2),
                    "v": numbers(47, 4, 2, 4, 2),
                    "memory_mask": _mask("1111", "1111", "1111", "1111"),
                    "W_q": numbers(48, 4, 4, scale=0.7),
                    "W_o": numbers(49, 4, 4),
                },
            ),
            Case(
                "padding gets no weight, and an empty memory gives zeros",
                {
                    "query": numbers(50, 3, 4, scale=0.7),
                    "k": numbers(51, 3, 2, 3, 2),
                    "v": numbers(52, 3, 2, 3, 2),
                    "memory_mask": _mask("110", "000", "011"),
                    "W_q": numbers(53, 4, 4, scale=0.7),
                    "W_o": numbers(54, 4, 4),
                },
            ),
            Case(
                "it holds when all lengths and widths differ",
                {
                    "query": numbers(55, 2, 7),
                    "k": numbers(56, 2, 3, 5, 6),
                    "v": numbers(57, 2, 3, 5, 6),
                    "memory_mask": _full_mask,
                    "W_q": numbers(58, 18, 7, scale=0.4),
                    "W_o": numbers(59, 18, 18, scale=0.25),
                },
            ),
        ],
    ),
    Exercise(
        "colleagues_map",
        "6.5",
        inputs={"weights": "H Tq Tk", "source": "", "target": ""},
        outputs={"matrix": "T S", "rows": "", "columns": ""},
        cases=[
            Case(
                "the colleague's map of le chat est assis comes out",
                {
                    "weights": torch.tensor(
                        [
                            [
                                [0.7, 0.3, 0, 0, 0],
                                [0, 0.9, 0.1, 0, 0],
                                [0.1, 0.1, 0.8, 0, 0],
                                *[[0.2, 0.2, 0.6, 0, 0]] * 2,
                            ],
                            [
                                [0.5, 0.1, 0.4, 0, 0],
                                [0.3, 0.7, 0, 0, 0],
                                [0, 0.6, 0.4, 0, 0],
                                *[[0.1, 0.5, 0.4, 0, 0]] * 2,
                            ],
                        ]
                    ),
                    "source": ["the", "cat", "sat"],
                    "target": ["le", "chat", "est", "assis"],
                },
            ),
            Case(
                "with a single head the labels alone are wrong",
                {
                    "weights": torch.softmax(numbers(60, 1, 3, 3), -1),
                    "source": ["the", "black", "cat"],
                    "target": ["le", "chat", "noir"],
                },
            ),
            Case(
                "three heads are joined as two are",
                {
                    "weights": torch.softmax(2 * numbers(61, 3, 2, 2), -1),
                    "source": ["cat", "sat"],
                    "target": ["est", "assis"],
                },
            ),
            Case(
                "a target of one word has one row",
                {"weights": torch.softmax(numbers(68, 2, 3, 2), -1), "source": ["cat"], "target": ["chat"]},
            ),
            Case(
                "rows and columns of padding are cut off",
                {
                    "weights": torch.softmax(numbers(62, 2, 5, 5), -1),
                    "source": ["the", "cat", "sat"],
                    "target": ["le", "chat", "est", "assis"],
                },
            ),
            Case(
                "it foretells the map of the pair of this lesson, 7 rows and 6 columns",
                {
                    "weights": torch.softmax(numbers(63, 2, 9, 8), -1),
                    "source": ["The", "cat", "sat", "on", "the", "mat"],
                    "target": ["Le", "chat", "est", "assis", "sur", "le", "tapis"],
                },
            ),
        ],
    ),
    Exercise(
        "attention_statistics",
        "6.6",
        inputs={"weights": "B H Tq Tk", "target_mask": "B Tq"},
        outputs={"mean": "B H Tk", "maximum": "B H Tk", "entropy": "B H Tq"},
        # A diagnosis, not a loss: gradients are not compared, and the slope of -w ln w at 0 is infinite.
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "weights": torch.tensor([[[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]]]),
                    "target_mask": _mask("110"),
                },
                differentiate=False,
            ),
            Case(
                "mean and maximum belong to the source, the entropy to the target, also in a square map",
                {"weights": torch.softmax(numbers(64, 3, 3, 3, 3), -1), "target_mask": _mask("111", "111", "111")},
                differentiate=False,
            ),
            Case(
                "rows of padding do not count, whatever they hold",
                {
                    "weights": torch.softmax(numbers(65, 3, 3, 3, 3), -1).masked_fill(
                        ~_mask("110", "111", "100")[:, None, :, None], torch.nan
                    ),
                    "target_mask": _mask("110", "111", "100"),
                },
                differentiate=False,
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"weights": torch.softmax(numbers(66, 2, 3, 4, 5), -1), "target_mask": _mask("1110", "1111")},
                differentiate=False,
            ),
        ],
    ),
    Exercise(
        "hard_alignment",
        "6.7",
        inputs={"weights": "B H Tq Tk"},
        outputs={"links": "B Tq"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {"weights": torch.tensor([[[[0.6, 0.4], [0.0, 0.0]], [[0.1, 0.9], [0.0, 0.0]]]])},
            ),
            Case(
                "each target token chooses a source token, also in a square map",
                {
                    "weights": torch.tensor(
                        [[[[0.1, 0.7, 0.1, 0.1], [0.2, 0.5, 0.2, 0.1], [0.6, 0.1, 0.2, 0.1], [0.1, 0.1, 0.3, 0.5]]]]
                    )
                },
            ),
            Case(
                "a head that is sure outweighs two that are not",
                {"weights": torch.tensor([[[[0.6, 0.4, 0.0]], [[0.6, 0.4, 0.0]], [[0.0, 0.9, 0.1]]]])},
            ),
            Case(
                "a single dark cell does not outweigh the mean",
                {"weights": torch.tensor([[[[0.8, 0.2, 0.0]], [[0.0, 0.7, 0.3]]]])},
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"weights": torch.softmax(2 * numbers(67, 2, 3, 4, 6), -1)},
            ),
        ],
    ),
    Exercise("counterexample", "6.8", kind="counterexample"),
    Exercise(
        "repaired_step",
        "6.9",
        inputs={"q": "B n d", "k": "B Tk d", "v": "B Tk d_v"},
        outputs={"context": "B n d_v"},
        cases=[
            Case(
                "two sentences A and B, two candidates each: A, A, B, B",
                {
                    "q": torch.ones(2, 2, 1),
                    "k": torch.zeros(2, 1, 1),
                    "v": torch.tensor([[[1.0]], [[2.0]]]),
                },
            ),
            Case(
                "one sentence with four candidates still comes out right",
                {"q": numbers(70, 1, 4, 3), "k": numbers(71, 1, 2, 3), "v": numbers(72, 1, 2, 2)},
            ),
            Case(
                "scores may be as large as 100, and as low as -100",
                {
                    "q": torch.tensor([[[100.0], [-100.0]], [[-100.0], [100.0]]]),
                    "k": torch.ones(2, 2, 1),
                    "v": torch.tensor([[[1.0], [3.0]], [[5.0], [9.0]]]),
                },
                differentiate=False,
            ),
            Case(
                "as many candidates as sentences and tokens",
                {"q": numbers(73, 3, 3, 3), "k": numbers(74, 3, 3, 3), "v": numbers(75, 3, 3, 3)},
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"q": numbers(76, 2, 3, 4), "k": numbers(77, 2, 5, 4), "v": numbers(78, 2, 5, 6)},
            ),
        ],
    ),
]
