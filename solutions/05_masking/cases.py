"""The inputs on which a check of lesson 05 climbs: one mechanism at a time, then all dimensions different."""

import torch

from attention_course.authoring import Case, Exercise, numbers

_nan, _inf = float("nan"), float("inf")


def _bools(text: str) -> torch.Tensor:
    """A mask as it stands in the lesson's tables: rows apart by a blank, T for keep."""
    return torch.tensor([[letter == "T" for letter in row] for row in text.split()])


def _mask(seed: int, *shape: int) -> torch.Tensor:
    return numbers(seed, *shape) > -0.4


def _hide(values: torch.Tensor, keep: torch.Tensor, what: float) -> torch.Tensor:
    return values.masked_fill(~keep, what)


_full = _mask(1, 2, 1, 4, 5)
_full[1, 0, 2] = False  # a row with nothing to see
_keep = _bools("TTTFF TFTFF")
_memory = numbers(2, 2, 5, 4)

EXERCISES = [
    Exercise(
        "padding_mask",
        "5.1",
        inputs={"lengths": "B", "Tk": ""},
        outputs={"mask": "B 1 1 Tk"},
        double=False,
        cases=[
            Case("lengths [3, 1] in 4 places come out", {"lengths": torch.tensor([3, 1]), "Tk": 4}),
            Case("a full sentence keeps every place", {"lengths": torch.tensor([3]), "Tk": 3}),
            Case("an empty sentence keeps none", {"lengths": torch.tensor([0, 2]), "Tk": 3}),
            Case(
                "a batch may have more places than its longest sentence",
                {"lengths": torch.tensor([2, 13, 1]), "Tk": 16},
            ),
        ],
    ),
    Exercise(
        "causal_mask",
        "5.2",
        inputs={"scores": "B H Tq Tk"},
        outputs={"mask": "Tq Tk"},
        double=False,
        cases=[
            Case("a single token sees itself", {"scores": torch.zeros(1, 1, 1, 1)}),
            Case("four tokens give the first table", {"scores": torch.zeros(1, 1, 4, 4)}),
            Case("one new query sees every key", {"scores": torch.zeros(1, 1, 1, 3)}),
            Case("two queries at the end of five places give the second table", {"scores": torch.zeros(1, 1, 2, 5)}),
            Case("batch and heads do not count", {"scores": numbers(3, 2, 3, 4, 6)}),
        ],
    ),
    Exercise(
        "combine",
        "5.3",
        inputs={
            "a": "B H Tq Tk",
            "b": "B 1 1 Tk",
            "c": "Tq Tk",
            "row": "1 1 1 Tk",
            "other": "1 1 1 Tk",
            "column": "1 1 Tq 1",
        },
        outputs={"mask": "B H Tq Tk"},
        double=False,
        cases=[
            Case("a single mask comes back as it is", {"a": _bools("TTF FTF")[None, None]}),
            Case(
                "a key counts only if both keep it",
                {"row": _bools("TTFF")[None, None], "other": _bools("TFTF")[None, None]},
            ),
            Case(
                "a mask that keeps nothing leaves nothing",
                {"row": _bools("FFF")[None, None], "other": _bools("TFT")[None, None]},
            ),
            Case("None restricts nothing", {"a": None, "row": _bools("TTF")[None, None], "c": None}),
            Case(
                "a row and a column broadcast",
                {"row": _bools("TTF")[None, None], "b": None, "column": _bools("T F")[None, None]},
            ),
            Case(
                "padding and causal masks give (B, 1, Tq, Tk)",
                {"b": _bools("TTTF TTFF")[:, None, None, :], "c": _bools("TFFF TTFF TTTF TTTT")},
            ),
            Case(
                "it holds for three masks of different shapes",
                {"a": _mask(4, 2, 3, 4, 5), "b": _mask(5, 2, 1, 1, 5), "c": _mask(6, 4, 5)},
            ),
        ],
    ),
    Exercise(
        "masked_softmax",
        "5.4",
        inputs={"scores": "B H Tq Tk", "mask": "B 1 Tq Tk"},
        outputs={"weights": "B H Tq Tk"},
        cases=[
            Case(
                "with everything kept it is softmax",
                {"scores": torch.tensor([[0.0, 3.0, 0.0], [1.0, 0.0, 2.0]]), "mask": _bools("TTT TTT")},
            ),
            Case(
                "cat shares its weight between The and itself",
                {"scores": torch.tensor([[0.0, 0.0, 3.0, 0.0, 0.0, 0.0]]), "mask": _bools("TTFFFF")},
            ),
            Case(
                "weights are shared anew along each row",
                {"scores": torch.tensor([[1.0, 0.0, 1.0], [0.0, 2.0, 2.0]]), "mask": _bools("TFT FTT")},
            ),
            Case(
                "a row with nothing to see is 0",
                {"scores": torch.tensor([[0.0, 0.0, 3.0], [1.0, 1.0, 1.0]]), "mask": _bools("TTF FFF")},
            ),
            Case(
                "kept scores may lie far below the hidden ones",
                {"scores": torch.tensor([[-200.0, 200.0, -200.0]]), "mask": _bools("TFT")},
            ),
            Case(
                "rows may lie far apart",
                {"scores": torch.tensor([[2.0, 0.0, 1.0], [-500.0, -501.0, 0.0]]), "mask": _bools("TTT TTF")},
            ),
            Case(
                "kept scores may be as low as -1e30",
                {"scores": torch.tensor([[-1e30, 0.0, 0.0]]), "mask": _bools("TFF")},
            ),
            Case(
                "a hidden score may be NaN or infinite",
                {"scores": torch.tensor([[1.0, _nan, 1.0], [2.0, 2.0, _inf]]), "mask": _bools("TFT TTF")},
            ),
            Case(
                "16-bit scores give 16-bit weights",
                {
                    "scores": torch.tensor([[[[3.0, 3.0, 4.0], [1.0, 2.0, 3.0]]]], dtype=torch.float16),
                    "mask": _bools("TTF FFF")[None, None],
                },
                differentiate=False,
            ),
            Case(
                "the mask broadcasts, and all holds for a batch in which all lengths differ",
                {"scores": numbers(7, 2, 3, 4, 5), "mask": _full},
            ),
        ],
    ),
    Exercise(
        "sliding_window_mask",
        "5.5",
        inputs={"scores": "B H Tq Tk", "window": ""},
        outputs={"mask": "Tq Tk"},
        double=False,
        cases=[
            Case("a window of 1 leaves each token itself", {"scores": torch.zeros(1, 1, 3, 3), "window": 1}),
            Case("a window of 2 gives the table", {"scores": torch.zeros(1, 1, 4, 4), "window": 2}),
            Case("a window as long as the text is causal", {"scores": torch.zeros(1, 1, 4, 4), "window": 4}),
            Case("a longer window is causal too", {"scores": torch.zeros(1, 1, 3, 4), "window": 9}),
            Case("one new query sees the last three keys", {"scores": torch.zeros(1, 1, 1, 5), "window": 3}),
            Case("it holds for queries at the end of a longer text", {"scores": numbers(8, 2, 3, 4, 7), "window": 3}),
        ],
    ),
    Exercise(
        "to_torch_mha",
        "5.6",
        inputs={"mask": "B H Tq Tk", "padding": "B 1 1 Tk", "causal": "Tq Tk", "shape": ""},
        outputs={"attn_mask": "B*H Tq Tk"},
        double=False,
        cases=[
            Case("True and False are turned around", {"mask": _bools("TF TT")[None, None], "shape": (1, 1, 2, 2)}),
            Case(
                "a padding mask is stretched over heads and queries",
                {"padding": _bools("TTF TFF")[:, None, None, :], "shape": (2, 2, 1, 3)},
            ),
            Case("a causal mask is stretched over the batch", {"causal": _bools("TF TT"), "shape": (2, 1, 2, 2)}),
            Case(
                "the heads of an example stay together",
                {"mask": _bools("TT TF FT FF")[:, None, :].view(2, 2, 1, 2), "shape": (2, 2, 1, 2)},
            ),
            Case(
                "it holds for a mask in which all lengths differ",
                {"mask": _mask(9, 2, 3, 4, 5), "shape": (2, 3, 4, 5)},
            ),
        ],
    ),
    Exercise("test_masked_softmax", "5.7", kind="test"),
    Exercise("counterexample", "5.8", kind="counterexample"),
    Exercise(
        "repaired_attention",
        "5.9",
        inputs={"q": "B Tq d", "memory": "B Tk d", "keep": "B Tk"},
        outputs={"context": "B Tq d"},
        cases=[
            Case(
                "ordinary padding still has no say",
                {
                    "q": torch.tensor([[[1.0, 0.0]]]),
                    "memory": torch.tensor([[[1.0, 2.0], [1.0, 4.0], [9.0, 9.0]]]),
                    "keep": _bools("TTF"),
                },
            ),
            Case(
                "NaN in the padding has no say",
                {
                    "q": torch.tensor([[[1.0, 0.0]]]),
                    "memory": torch.tensor([[[1.0, 2.0], [1.0, 4.0], [_nan, _nan]]]),
                    "keep": _bools("TTF"),
                },
            ),
            Case(
                "infinity in the padding has no say",
                {
                    "q": torch.tensor([[[1.0, 2.0]]]),
                    "memory": torch.tensor([[[1.0, 2.0], [-_inf, -_inf], [1.0, 1.0]]]),
                    "keep": _bools("TFT"),
                },
            ),
            Case(
                "a number at the end of the range has no say",
                {
                    "q": torch.tensor([[[2.0, 2.0]]]),
                    "memory": torch.tensor([[[1.0, 2.0], [3e38, 3e38], [1.0, 1.0]]]),
                    "keep": _bools("TFT"),
                },
            ),
            Case(
                "rows may lie far apart",
                {
                    "q": torch.tensor([[[-9.0, 0.0], [9.0, 0.0]]]),
                    "memory": torch.tensor([[[9.0, 1.0], [9.0, 3.0], [0.0, 0.0]]]),
                    "keep": _bools("TTF"),
                },
                differentiate=False,
            ),
            Case(
                "kept numbers may be large, and scores as low as -28000",
                {
                    "q": torch.tensor([[[-0.2, 0.0]]]),
                    "memory": torch.tensor([[[200000.0, 1.0], [0.0, 3.0], [0.0, 0.0]]]),
                    "keep": _bools("TFF"),
                },
                differentiate=False,
            ),
            Case(
                "an example that keeps nothing gives 0",
                {
                    "q": torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]),
                    "memory": torch.tensor([[[1.0, 2.0], [3.0, 1.0]], [[_nan, 1.0], [2.0, _inf]]]),
                    "keep": _bools("TT FF"),
                },
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {
                    "q": numbers(10, 2, 3, 4),
                    "memory": _hide(_memory, _keep[:, :, None], _nan),
                    "keep": _keep,
                },
            ),
        ],
    ),
]
