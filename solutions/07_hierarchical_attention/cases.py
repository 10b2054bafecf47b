"""The inputs on which a check of lesson 07 climbs: one mechanism at a time, then all dimensions different."""

import math

import torch

from attention_course.authoring import Case, Exercise, numbers


def _bool(rows) -> torch.Tensor:
    return torch.tensor(rows).bool()


def _pool(seed: int, d: int, d_attention: int) -> dict[str, torch.Tensor]:
    return {
        "projection.weight": numbers(seed, d_attention, d),
        "projection.bias": numbers(seed + 1, d_attention),
        "query": numbers(seed + 2, d_attention),
    }


def _model(seed: int, vocabulary: int, classes: int, d_word: int, d_hidden: int, d_attention: int) -> dict:
    """Known numbers for every parameter of the model, large enough that every part of it shows."""
    state = {"embedding.weight": numbers(seed, vocabulary, d_word)}
    for level, d in (("word", d_word), ("sentence", 2 * d_hidden)):
        seed += 20
        for number, direction in enumerate(("", "_reverse")):
            at = seed + 4 * number
            state |= {
                f"{level}_gru.weight_ih_l0{direction}": numbers(at, 3 * d_hidden, d),
                f"{level}_gru.weight_hh_l0{direction}": numbers(at + 1, 3 * d_hidden, d_hidden),
                f"{level}_gru.bias_ih_l0{direction}": numbers(at + 2, 3 * d_hidden),
                f"{level}_gru.bias_hh_l0{direction}": numbers(at + 3, 3 * d_hidden),
            }
        state |= {f"{level}_pool.{name}": x for name, x in _pool(seed + 9, 2 * d_hidden, d_attention).items()}
    state["classifier.weight"] = numbers(seed + 15, classes, 2 * d_hidden)
    state["classifier.bias"] = numbers(seed + 16, classes)
    return state


# tanh(±40) is ±1 to the last digit, so that the scores are 20,000 and -20,000
_saturated = {
    "projection.weight": torch.tensor([[10.0]]),
    "projection.bias": torch.zeros(1),
    "query": torch.tensor([20_000.0]),
}
_tiny = {"vocabulary": 8, "classes": 2, "d_word": 3, "d_hidden": 2, "d_attention": 4}
_sizes = {"vocabulary": 13, "classes": 5, "d_word": 4, "d_hidden": 3, "d_attention": 7}
_tiny_state, _state = _model(100, **_tiny), _model(200, **_sizes)

_ids = torch.tensor(
    [
        [[2, 3, 4, 0], [5, 1, 0, 0], [6, 0, 0, 0]],
        [[7, 8, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    ]
)
_words = torch.softmax(numbers(40, 3, 4, 6), -1)
_sentences = torch.softmax(numbers(41, 3, 4), -1)
_many_ids = torch.arange(2, 92).remainder(37).add(2).reshape(3, 5, 6)
_many_ids[0, 4], _many_ids[1, 1:], _many_ids[2, 3, 4:] = 0, 0, 0
_many_places = torch.tensor(
    [[[0, 3], [1, 1], [3, 5], [2, 0]], [[0, 5], [0, 1], [0, 0], [0, 2]], [[0, 0], [1, 2], [4, 5], [3, 3]]]
)

_toy_labels = torch.arange(72) % 5  # 72 documents: two full batches and one of 8
_toy = torch.randint(10, 40, (72, 2, 4), generator=torch.Generator().manual_seed(0))
_toy[torch.arange(72), torch.arange(72) % 2, torch.arange(72) % 4] = 2 + _toy_labels

_pair = {
    "h": torch.tensor([[[[1.0], [2.0]], [[3.0], [0.0]]]]),
    "mask": _bool([[[1, 1], [1, 0]]]),
}

EXERCISES = [
    Exercise(
        "masks",
        "7.1",
        inputs={"ids": "B S W"},
        outputs={"word_mask": "B S W", "sentence_mask": "B S"},
        double=False,
        cases=[
            Case("the example worked by hand comes out", {"ids": torch.tensor([[[5, 3], [0, 0]]])}),
            Case("a sentence of one word is a sentence", {"ids": torch.tensor([[[5, 3], [4, 0]]])}),
            Case("the unknown word, number 1, is a word", {"ids": torch.tensor([[[1, 0], [1, 2]]])}),
            Case("a sentence that is all padding is none", {"ids": torch.tensor([[[5, 3], [4, 2]], [[7, 6], [0, 0]]])}),
            Case("it holds for a batch in which all lengths differ", {"ids": _ids}),
        ],
    ),
    Exercise(
        "AttentionPool",
        "7.2",
        kind="module",
        inputs={"h": "N T d", "mask": "N T"},
        outputs={"pooled": "N d", "weights": "N T"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {"h": torch.tensor([[[4.0, 0.0], [0.0, 4.0], [9.0, 9.0]]]), "mask": _bool([[1, 1, 0]])},
                init={"d": 2, "d_attention": 1},
                state={
                    "projection.weight": torch.tensor([[0.0, 10.0]]),
                    "projection.bias": torch.zeros(1),
                    "query": torch.tensor([math.log(3.0)]),
                },
            ),
            Case(
                "where nothing is padded, all vectors count",
                {"h": numbers(1, 2, 3, 3), "mask": torch.ones(2, 3, dtype=torch.bool)},
                init={"d": 3, "d_attention": 3},
                state=_pool(2, 3, 3),
            ),
            Case(
                "what stands at padding means nothing",
                {
                    "h": torch.cat([numbers(5, 1, 2, 3), torch.full((1, 1, 3), 1000.0)], dim=1),
                    "mask": _bool([[1, 1, 0]]),
                },
                init={"d": 3, "d_attention": 2},
                state=_pool(6, 3, 2),
            ),
            Case(
                "padding counts for nothing, however high its score is",
                {"h": torch.tensor([[[0.0], [4.0]]]), "mask": _bool([[1, 0]])},
                init={"d": 1, "d_attention": 1},
                state=_saturated,
                differentiate=False,
            ),
            Case(
                "a score of -20,000 is a score: its word gets weight 1",
                {"h": torch.tensor([[[-4.0], [-4.0]]]), "mask": _bool([[1, 0]])},
                init={"d": 1, "d_attention": 1},
                state=_saturated,
                differentiate=False,
            ),
            Case(
                "rows whose scores lie far apart do not disturb each other",
                {"h": torch.tensor([[[4.0], [-4.0]], [[-4.0], [4.0]]]), "mask": _bool([[1, 1], [1, 0]])},
                init={"d": 1, "d_attention": 1},
                state=_saturated,
                differentiate=False,
            ),
            Case(
                "a row that is all padding gives zeros",
                {"h": numbers(9, 2, 3, 3), "mask": _bool([[1, 1, 1], [0, 0, 0]])},
                init={"d": 3, "d_attention": 2},
                state=_pool(10, 3, 2),
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {
                    "h": numbers(13, 4, 5, 3),
                    "mask": _bool([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]),
                },
                init={"d": 3, "d_attention": 6},
                state=_pool(14, 3, 6),
            ),
        ],
    ),
    Exercise(
        "flatten_documents",
        "7.3",
        inputs={"x": "B S W d"},
        outputs={"rows": "B·S W d"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {"x": torch.tensor([[[1.0, 2.0], [3.0, 0.0]], [[4.0, 5.0], [0.0, 0.0]]])},
            ),
            Case("sentences of a document stay together", {"x": torch.arange(24.0).reshape(2, 3, 4)}),
            Case("it holds for vectors, with all lengths different", {"x": numbers(20, 2, 3, 4, 5)}),
        ],
    ),
    Exercise(
        "HierarchicalAttention",
        "7.4",
        kind="module",
        inputs={"ids": "B S W"},
        outputs={"logits": "B classes", "word_weights": "B S W", "sentence_weights": "B S"},
        tolerance=1e-3,
        double=False,
        cases=[
            Case(
                "a document of one sentence gives it weight 1",
                {"ids": torch.tensor([[[2, 3, 4]]])},
                init=_tiny,
                state=_tiny_state,
            ),
            Case(
                "two documents without padding do not mix",
                {"ids": torch.tensor([[[2, 3, 4], [5, 6, 7]], [[7, 2, 2], [4, 3, 6]]])},
                init=_tiny,
                state=_tiny_state,
            ),
            Case(
                "padded words are not read",
                {"ids": torch.tensor([[[2, 3, 4], [5, 0, 0]], [[7, 2, 0], [4, 0, 0]]])},
                init=_tiny,
                state=_tiny_state,
            ),
            Case(
                "padded sentences are not read",
                {"ids": torch.tensor([[[2, 3, 4], [5, 6, 0]], [[7, 2, 0], [0, 0, 0]]])},
                init=_tiny,
                state=_tiny_state,
            ),
            Case("it holds for a batch in which all lengths differ", {"ids": _ids}, init=_sizes, state=_state),
        ],
    ),
    Exercise(
        "what_changes",
        "7.5",
        inputs={"ids": "B S W", "b": "", "s": "", "w": ""},
        outputs={"documents": "B", "words": "B S W", "sentences": "B S"},
        double=False,
        cases=[
            Case(
                "a document that is not touched stays as it is",
                {"ids": torch.tensor([[[2, 3], [4, 5]], [[6, 7], [8, 9]]]), "b": 1, "s": 0, "w": 0},
            ),
            Case(
                "a word reaches the words before it and after it",
                {"ids": torch.tensor([[[2, 3, 4], [5, 6, 7]]]), "b": 0, "s": 0, "w": 1},
            ),
            Case(
                "a word reaches the weight of every sentence of its document",
                {"ids": torch.tensor([[[2, 3], [4, 5], [6, 7]]]), "b": 0, "s": 1, "w": 0},
            ),
            Case(
                "weights at padding stay 0",
                {"ids": torch.tensor([[[2, 3, 0], [4, 5, 6], [0, 0, 0]]]), "b": 0, "s": 0, "w": 0},
            ),
            Case(
                "the weight of a word that is alone in its sentence stays 1",
                {"ids": torch.tensor([[[2, 3], [4, 0]]]), "b": 0, "s": 1, "w": 0},
            ),
            Case(
                "the weight of a sentence that is alone in its document stays 1",
                {"ids": torch.tensor([[[2, 3], [4, 5]], [[6, 7], [0, 0]]]), "b": 1, "s": 0, "w": 1},
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"ids": _ids, "b": 0, "s": 0, "w": 1},
            ),
        ],
    ),
    Exercise(
        "fit",
        "7.6",
        inputs={"model": "", "ids": "N S W", "labels": "N", "epochs": "", "rate": ""},
        outputs={"losses": "epochs"},
        tolerance=3e-3,
        double=False,
        cases=[
            Case(
                "with rate 0 nothing is learned, and the loss is that of the model as it was",
                {"model": "example", "ids": _toy[:32], "labels": _toy_labels[:32], "epochs": 1, "rate": 0.0},
                differentiate=False,
            ),
            Case(
                "one epoch of two batches of 32",
                {"model": "example", "ids": _toy[:64], "labels": _toy_labels[:64], "epochs": 1, "rate": 0.1},
                differentiate=False,
            ),
            Case(
                "a last batch of 8 counts like one of 32",
                {"model": "example", "ids": _toy, "labels": _toy_labels, "epochs": 1, "rate": 0.1},
                differentiate=False,
            ),
            Case(
                "each epoch has its own order, and the loss falls as it should",
                {"model": "example", "ids": _toy, "labels": _toy_labels, "epochs": 3, "rate": 0.1},
                differentiate=False,
            ),
        ],
    ),
    Exercise(
        "top_words",
        "7.7",
        inputs={"word_weights": "B S W", "sentence_weights": "B S", "k": ""},
        outputs={"places": "B k 2"},
        double=False,
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "word_weights": torch.tensor([[[0.9, 0.1], [0.4, 0.6]]]),
                    "sentence_weights": torch.tensor([[0.2, 0.8]]),
                    "k": 2,
                },
                differentiate=False,
            ),
            Case(
                "a word of a weak sentence may come before words of the strongest",
                {
                    "word_weights": torch.tensor([[[0.4, 0.35, 0.25], [1.0, 0.0, 0.0]]]),
                    "sentence_weights": torch.tensor([[0.7, 0.3]]),
                    "k": 2,
                },
                differentiate=False,
            ),
            Case(
                "a weight that is large in its own sentence is small in a weak one",
                {
                    "word_weights": torch.tensor([[[0.6, 0.4], [0.9, 0.1]]]),
                    "sentence_weights": torch.tensor([[0.8, 0.2]]),
                    "k": 2,
                },
                differentiate=False,
            ),
            Case(
                "the first word of all is there if k is 1",
                {"word_weights": _words[:1], "sentence_weights": _sentences[:1], "k": 1},
                differentiate=False,
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"word_weights": _words, "sentence_weights": _sentences, "k": 5},
                differentiate=False,
            ),
        ],
    ),
    Exercise(
        "deletion_test",
        "7.8",
        inputs={"model": "", "ids": "B S W", "places": "B k 2"},
        outputs={"fall": "B"},
        double=False,
        cases=[
            Case(
                "one word of one document: before minus after, for the class predicted before",
                {"model": "example", "ids": torch.tensor([[[12, 15], [21, 0]]]), "places": torch.tensor([[[1, 0]]])},
                differentiate=False,
            ),
            Case(
                "the places are (sentence, word), in this order",
                {
                    "model": "example",
                    "ids": torch.tensor([[[12, 15, 31], [21, 33, 8], [4, 9, 0]]]),
                    "places": torch.tensor([[[2, 1], [0, 2]]]),
                },
                differentiate=False,
            ),
            Case(
                "all words of a document are deleted together",
                {
                    "model": "example",
                    "ids": torch.tensor([[[12, 15], [21, 33]]]),
                    "places": torch.tensor([[[0, 0], [0, 1], [1, 0], [1, 1]]]),
                },
                differentiate=False,
            ),
            Case(
                "each document has places of its own",
                {
                    "model": "example",
                    "ids": torch.tensor([[[12, 15], [21, 33]], [[8, 9], [17, 30]]]),
                    "places": torch.tensor([[[0, 0]], [[1, 1]]]),
                },
                differentiate=False,
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {
                    "model": "example",
                    "ids": _many_ids,
                    "places": _many_places,
                },
                differentiate=False,
            ),
        ],
    ),
    Exercise("counterexample", "7.9", kind="counterexample"),
    Exercise(
        "repaired_documents",
        "7.10",
        inputs={"h": "B S W d", "mask": "B S W"},
        outputs={"documents": "B d"},
        cases=[
            Case(
                "the words of a sentence share the weight by their scores",
                {"h": numbers(32, 1, 2, 3, 2), "mask": torch.ones(1, 2, 3, dtype=torch.bool)},
            ),
            Case("padded words still count for nothing", _pair),
            Case(
                "an empty sentence makes no NaN",
                {
                    "h": torch.tensor([[[[1.0], [2.0]], [[0.0], [0.0]]]]),
                    "mask": _bool([[[1, 1], [0, 0]]]),
                },
            ),
            Case(
                "the mean is over the sentences that exist",
                {
                    "h": numbers(30, 1, 3, 2, 2),
                    "mask": _bool([[[1, 1], [1, 0], [0, 0]]]),
                },
            ),
            Case(
                "padding counts for nothing, however large it is",
                {"h": torch.tensor([[[[1.0], [3e9]]]]), "mask": _bool([[[1, 0]]])},
                differentiate=False,
            ),
            Case(
                "a score of -3 billion is a score: its word gets weight 1",
                {"h": torch.tensor([[[[-3e9], [0.0]]]]), "mask": _bool([[[1, 0]]])},
                differentiate=False,
            ),
            Case(
                "sentences whose scores lie far apart do not disturb each other",
                {"h": torch.tensor([[[[20_000.0], [0.0]], [[-20_000.0], [0.0]]]]), "mask": _bool([[[1, 0], [1, 0]]])},
                differentiate=False,
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {
                    "h": numbers(31, 2, 3, 4, 5),
                    "mask": _bool(
                        [[[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], [[1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]
                    ),
                },
            ),
        ],
    ),
]
