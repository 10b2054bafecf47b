"""The inputs on which a check of lesson 03 climbs: one mechanism at a time, then all dimensions different."""

import torch

from attention_course.authoring import Case, Exercise, numbers

_two_tokens = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]])  # (1, 2, 4)
_two_heads = torch.tensor([[[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]])  # (1, 2, 2, 2)
_values = torch.tensor([[[[6.0], [7.0], [8.0]]]])  # (1, 1, 3, 1)
_attention = {
    "inputs": {"q": "B H Tq d_k", "k": "B H Tk d_k", "v": "B H Tk d_v", "mask": "B 1 Tq Tk"},
    "outputs": {"context": "B H Tq d_v", "weights": "B H Tq Tk"},
}
_keep = torch.tensor(
    [
        [[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]],
        [[1, 0, 1, 0, 1], [0, 0, 0, 0, 1], [1, 1, 1, 1, 0], [0, 1, 0, 1, 1]],
    ]
).bool()[:, None]  # (2, 1, 4, 5)


def _state(seed: int, d: int, zero: str = "") -> dict[str, torch.Tensor]:
    """Parameters of a MultiHeadAttention; those of the projections that ``zero`` names are 0."""
    state = {}
    for i, name in enumerate("qkvo"):
        state[f"W_{name}.weight"] = numbers(seed + i, d, d, scale=0.3)
        state[f"W_{name}.bias"] = numbers(seed + 10 + i, d, scale=0.3)
    return {name: torch.zeros_like(t) if name[2] in zero else t for name, t in state.items()}


def _layer(heads: int, d: int, dropout: float = 0.0) -> dict[str, object]:
    return {"d_model": d, "num_heads": heads, "dropout": dropout}


EXERCISES = [
    Exercise(
        "split_heads",
        "3.1",
        inputs={"x": "B T d_model", "num_heads": ""},
        outputs={"heads": "B H T d"},
        cases=[
            Case("the example worked by hand comes out", {"x": _two_tokens, "num_heads": 2}),
            Case("one head gets everything", {"x": _two_tokens, "num_heads": 1}),
            Case("as many heads as numbers get one number each", {"x": _two_tokens, "num_heads": 4}),
            Case("no number changes its token", {"x": numbers(1, 1, 4, 8), "num_heads": 4}),
            Case("it holds when all lengths differ", {"x": numbers(2, 2, 5, 12), "num_heads": 3}),
        ],
    ),
    Exercise(
        "merge_heads",
        "3.2",
        inputs={"x": "B H T d"},
        outputs={"tokens": "B T d_model"},
        cases=[
            Case("the example worked by hand comes out", {"x": _two_heads}),
            Case("one head stays as it is", {"x": numbers(3, 1, 1, 3, 2)}),
            Case("a single token collects its pieces", {"x": numbers(4, 1, 3, 1, 2)}),
            Case("no number changes its token", {"x": numbers(5, 1, 4, 4, 2)}),
            Case("it holds when all lengths differ", {"x": numbers(6, 2, 3, 5, 4)}),
        ],
    ),
    Exercise(
        "scaled_dot_product_attention",
        "3.3",
        **_attention,
        cases=[
            Case(
                "equal scores average the values",
                {"q": torch.zeros(1, 1, 1, 1), "k": torch.tensor([[[[1.0], [2.0], [3.0]]]]), "v": _values},
            ),
            Case(
                "scores are divided by the root of d_k",
                {
                    "q": torch.tensor([[[[2.0, 0.0, 0.0, 0.0]]]]),
                    "k": torch.tensor([[[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]]]),
                    "v": torch.tensor([[[[1.0], [0.0]]]]),
                },
            ),
            Case(
                "rows are queries and columns are keys",
                {"q": numbers(10, 1, 1, 3, 3), "k": numbers(11, 1, 1, 3, 3), "v": numbers(12, 1, 1, 3, 3)},
            ),
            Case(
                "heads and examples do not mix",
                {"q": numbers(16, 2, 2, 2, 2), "k": numbers(17, 2, 2, 2, 2), "v": numbers(18, 2, 2, 2, 2)},
            ),
            Case(
                "no score is too large or too small, in any row",
                {
                    "q": torch.tensor([[[[1024.0], [-1024.0]]]]),
                    "k": torch.tensor([[[[1.0], [1 - 1 / 1024]]]]),
                    "v": torch.tensor([[[[1.0], [0.0]]]]),
                },
            ),
            Case(
                "a mask keeps where it is True, and the kept keys share the whole unit",
                {
                    "q": torch.zeros(1, 1, 1, 1),
                    "k": torch.tensor([[[[1.0], [2.0], [3.0]]]]),
                    "v": _values,
                    "mask": torch.tensor([True, False, True]),
                },
            ),
            Case(
                "a masked key gets nothing, however low the scores of the kept ones are",
                {
                    "q": torch.tensor([[[[1024.0]]]]),
                    "k": torch.tensor([[[[-4_194_304.0], [-4_194_304.0], [0.0]]]]),  # scores of -4e9
                    "v": _values,
                    "mask": torch.tensor([True, True, False]),
                },
            ),
            Case(
                "a mask may be one row of keys for each example",
                {
                    "q": numbers(19, 2, 1, 2, 3),
                    "k": numbers(20, 2, 1, 3, 3),
                    "v": numbers(21, 2, 1, 3, 2),
                    "mask": torch.tensor([[True, True, False], [True, False, False]])[:, None, None],
                },
            ),
            Case(
                "it holds for a batch of heads in which all lengths differ",
                {
                    "q": numbers(13, 2, 3, 4, 6),
                    "k": numbers(14, 2, 3, 5, 6),
                    "v": numbers(15, 2, 3, 5, 7),
                    "mask": _keep,
                },
            ),
        ],
    ),
    Exercise(
        "MultiHeadAttention",
        "3.4",
        kind="module",
        inputs={"query": "B Tq d_model", "key": "B Tk d_model", "value": "B Tk d_model", "mask": "B 1 Tq Tk"},
        outputs={"output": "B Tq d_model", "weights": "B H Tq Tk"},
        cases=[
            Case(
                "with a single token to look at, W_v and W_o are all that counts",
                {"query": numbers(20, 1, 2, 4), "key": numbers(21, 1, 1, 4), "value": numbers(22, 1, 1, 4)},
                init=_layer(2, 4),
                state=_state(100, 4),
            ),
            Case(
                "with equal keys, each head averages its share of every value",
                {"query": numbers(23, 1, 3, 4), "key": numbers(24, 1, 3, 4), "value": numbers(25, 1, 3, 4)},
                init=_layer(2, 4),
                state=_state(120, 4, zero="k"),
            ),
            Case(
                "scores are divided by the root of d, the numbers of one head",
                {"query": numbers(35, 1, 1, 4), "key": numbers(36, 1, 2, 4), "value": numbers(37, 1, 2, 4)},
                init=_layer(2, 4),
                state=_state(130, 4),
            ),
            Case(
                "each head has weights of its own",
                {"query": numbers(26, 1, 4, 8), "key": numbers(27, 1, 4, 8), "value": numbers(28, 1, 4, 8)},
                init=_layer(4, 8),
                state=_state(140, 8),
            ),
            Case(
                "in evaluation nothing is dropped",
                {"query": numbers(29, 1, 2, 4), "key": numbers(30, 1, 3, 4), "value": numbers(31, 1, 3, 4)},
                init=_layer(2, 4, dropout=1.0),
                state=_state(160, 4),
            ),
            Case(
                "it holds with a mask when all lengths differ",
                {
                    "query": numbers(32, 2, 4, 21),
                    "key": numbers(33, 2, 5, 21),
                    "value": numbers(34, 2, 5, 21),
                    "mask": _keep,
                },
                init=_layer(3, 21),
                state=_state(180, 21),
            ),
        ],
    ),
    Exercise(
        "copy_to_torch",
        "3.5",
        inputs={"state": ""},
        outputs={
            "in_proj_weight": "3·d_model d_model",
            "in_proj_bias": "3·d_model",
            "out_proj.weight": "d_model d_model",
            "out_proj.bias": "d_model",
        },
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "state": {f"W_{name}.weight": torch.tensor([[i + 1.0]]) for i, name in enumerate("qkvo")}
                    | {f"W_{name}.bias": torch.tensor([i + 5.0]) for i, name in enumerate("qkvo")}
                },
                differentiate=False,
            ),
            Case("rows stay rows", {"state": _state(200, 2)}, differentiate=False),
            Case("it holds for another size", {"state": _state(220, 4)}, differentiate=False),
        ],
    ),
    Exercise(
        "head_ablation",
        "3.6",
        inputs={"heads": "B H T d", "W_o": "d_model d_model"},
        outputs={"moved": "B H T"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {"heads": torch.tensor([[[[3.0, 4.0]], [[0.0, 1.0]]]]), "W_o": torch.eye(4)},
                differentiate=False,
            ),
            Case(
                "a head that W_o does not read is not missed",
                {
                    "heads": torch.tensor([[[[3.0, 4.0]], [[0.0, 1.0]]]]),
                    "W_o": torch.tensor([[0.0, 0, 1, 0], [0, 0, 0, 2], [0, 0, 0, 0], [0, 0, 0, 0]]),
                },
                differentiate=False,
            ),
            Case(
                "one head more, and tokens that differ",
                {"heads": numbers(40, 1, 3, 3, 2), "W_o": numbers(41, 6, 6)},
                differentiate=False,
            ),
            Case(
                "it holds when all lengths differ",
                {"heads": numbers(42, 2, 3, 4, 5), "W_o": numbers(43, 15, 15)},
                differentiate=False,
            ),
        ],
    ),
    Exercise("counterexample", "3.7", kind="counterexample"),
    Exercise(
        "hears",
        "3.8",
        inputs={"T": "", "num_heads": ""},
        outputs={"map": "T T"},
        double=False,
        cases=[
            Case("with one head everybody hears everybody", {"T": 4, "num_heads": 1}, differentiate=False),
            Case("with two heads, nothing crosses the middle", {"T": 6, "num_heads": 2}, differentiate=False),
            Case("as many heads as tokens: nobody hears anybody else", {"T": 4, "num_heads": 4}, differentiate=False),
            Case("with more heads than tokens it is no better", {"T": 3, "num_heads": 6}, differentiate=False),
            Case("a token on the cut hears both sides", {"T": 5, "num_heads": 2}, differentiate=False),
            Case("it holds where H does not divide T", {"T": 7, "num_heads": 3}, differentiate=False),
        ],
    ),
    Exercise(
        "repaired_attention",
        "3.9",
        inputs={"q": "B Tq d_model", "k": "B Tk d_model", "v": "B Tk d_model", "num_heads": ""},
        outputs={"context": "B Tq d_model"},
        cases=[
            Case(
                "it still holds for one head",
                {"q": numbers(50, 1, 2, 4), "k": numbers(51, 1, 3, 4), "v": numbers(52, 1, 3, 4), "num_heads": 1},
            ),
            Case(
                "equal scores: each head averages its half of every token",
                {
                    "q": torch.zeros(1, 2, 2),
                    "k": torch.zeros(1, 2, 2),
                    "v": torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]),
                    "num_heads": 2,
                },
            ),
            Case(
                "each head attends with its own share of the numbers",
                {"q": numbers(53, 1, 4, 8), "k": numbers(54, 1, 4, 8), "v": numbers(55, 1, 4, 8), "num_heads": 4},
            ),
            Case(
                "it holds when all lengths differ",
                {"q": numbers(56, 2, 4, 15), "k": numbers(57, 2, 5, 15), "v": numbers(58, 2, 5, 15), "num_heads": 3},
            ),
        ],
    ),
]
