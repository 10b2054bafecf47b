"""The inputs on which a check of lesson 08 climbs: one mechanism at a time, then all dimensions different."""

import torch

from attention_course.authoring import Case, Exercise, numbers

_mask = torch.arange(5) < torch.tensor([5, 2, 3])[:, None]


def _reader(seed: int, words: int, d_embed: int, d_hidden: int) -> dict[str, torch.Tensor]:
    """Parameters for an Encoder."""
    state = {"embed.weight": numbers(seed, words, d_embed)}
    shapes = {
        "weight_ih_l0": (3 * d_hidden, d_embed),
        "weight_hh_l0": (3 * d_hidden, d_hidden),
        "bias_ih_l0": (3 * d_hidden,),
        "bias_hh_l0": (3 * d_hidden,),
    }
    for i, (name, size) in enumerate(shapes.items()):
        state[f"rnn.{name}"] = numbers(seed + 1 + 2 * i, *size, scale=0.7)
        state[f"rnn.{name}_reverse"] = numbers(seed + 2 + 2 * i, *size, scale=0.7)
    return state


def _encoder_case(shows: str, seed: int, sizes: tuple[int, int, int], rows: list[list[int]], columns: int) -> Case:
    source = torch.tensor([row + [0] * (columns - len(row)) for row in rows])
    words, d_embed, d_hidden = sizes
    return Case(
        shows,
        {"source": source, "lengths": torch.tensor([len(row) for row in rows])},
        init={"words": words, "d_embed": d_embed, "d_hidden": d_hidden},
        state=_reader(seed, *sizes),
    )


def _table(seed: int, words: int) -> torch.Tensor:
    """Log-probabilities of the next word, given the last two."""
    return torch.log_softmax(numbers(seed, words, words, words, scale=2.0), dim=-1)


def _roads(following: dict[int, dict[int, float]], words: int = 9) -> torch.Tensor:
    """A table in which the next word depends on the last one alone. What is nearly impossible is so without ties."""
    table = (1e-6 * (1 + torch.arange(words) / 10)).repeat(words, 1)
    for word, others in following.items():
        for other, probability in others.items():
            table[word, other] = probability
    return torch.log(table).expand(words, -1, -1).contiguous()


# 1 and 2 are <bos> and <eos>; 4 un, 5 le, 6 chat, 7 chien, 8 oiseau
_noun = {6: {2: 1.0}, 7: {2: 1.0}, 8: {2: 1.0}}
_two_roads = _roads({1: {4: 0.6, 5: 0.4}, 4: {6: 0.5, 7: 0.3, 8: 0.2}, 5: {6: 0.9, 7: 0.1}, **_noun})
_three_words = _roads({1: {5: 0.9, 2: 0.1}, 5: {6: 0.8, 7: 0.2}, **_noun})
# One word and the end has a total of ln 0.36, three words and the end ln 0.35: per word the longer one wins.
_short_or_long = _roads(
    {1: {4: 0.6, 5: 0.4}, 4: {2: 0.6, 3: 0.4}, 3: {3: 1.0}, 5: {6: 0.95, 3: 0.05}, 6: {7: 0.95}, **{7: {2: 1.0}}}
)
# <eos> comes first, with 0.5, and takes one of two places. 5, with 0.2, does not get through: the best way goes by 4.
_ends_at_once = _roads(
    {1: {2: 0.5, 4: 0.3, 5: 0.2}, 4: {6: 0.6, 7: 0.4}, 6: {2: 0.45, 8: 0.55}}
    | {7: {8: 1.0}, 5: {7: 1.0}, 8: {3: 1.0}, 3: {2: 1.0}}
)
# "4 <eos>", with 0.22, gets through the second round and is pushed out in the third, by 0.2255 and 0.2232.
_pushed_out = _roads(
    {1: {5: 0.55, 4: 0.4}, 4: {2: 0.55, 3: 0.45}, 5: {6: 0.82, 7: 0.18}, 6: {7: 0.5, 8: 0.495}, 3: {7: 1.0}}
    | {7: dict(enumerate([0.09, 0.08, 0.08, 0.15, 0.14, 0.13, 0.12, 0.11, 0.1]))}
    | {8: dict(enumerate([0.1, 0.08, 0.08, 0.13, 0.16, 0.12, 0.11, 0.12, 0.1]))}
)
_forever = _roads({1: {5: 1.0}, 5: {6: 0.9, 2: 0.1}, 6: {5: 0.9, 2: 0.1}})
_nothing = torch.zeros(1, dtype=torch.long)


def _toy_batches(seed: int, lengths: list[list[int]], columns: int = 5) -> list[tuple[torch.Tensor, ...]]:
    batches = []
    for i, sizes in enumerate(lengths):
        drawn = (numbers(seed + i, len(sizes), columns).abs() * 1000).long() % 4 + 3
        words = drawn * (torch.arange(columns) < torch.tensor(sizes)[:, None])
        begun = torch.cat([torch.ones(len(sizes), 1, dtype=torch.long), words[:, :-1]], dim=1)
        batches.append((words, torch.tensor(sizes), begun, words))
    return batches


_same = [(torch.full((1, 3), 4), torch.tensor([3]), torch.tensor([[1, 4, 4]]), torch.full((1, 3), 4))]

EXERCISES = [
    Exercise(
        "Encoder",
        "8.1",
        kind="module",
        double=False,  # nothing that goes in has a floating-point dtype
        inputs={"source": "B S", "lengths": "B"},
        outputs={"states": "B S 2H", "last": "2 B H"},
        cases=[
            _encoder_case("a sentence alone is read in both directions", 100, (7, 3, 2), [[4, 5, 6, 3]], 4),
            _encoder_case(
                "sentences sorted by length are read without their padding", 120, (7, 3, 2), [[4, 5, 6], [3, 4]], 3
            ),
            _encoder_case("they need not be sorted", 140, (7, 3, 2), [[4], [5, 6, 3], [6, 5]], 3),
            _encoder_case("columns of padding alone stay", 160, (7, 3, 2), [[4, 5], [6]], 4),
            _encoder_case(
                "it holds for a batch in which all lengths differ",
                180,
                (11, 7, 4),
                [[4, 9, 10], [5, 6, 7, 8, 3], [6]],
                6,
            ),
        ],
    ),
    Exercise(
        "bridge",
        "8.2",
        inputs={"last": "2L B H", "W": "2H D", "b": "D"},
        outputs={"state": "B D"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "last": torch.tensor([[[0.2]], [[-0.5]]]),
                    "W": torch.tensor([[1.0], [2.0]]),
                    "b": torch.tensor([1.3]),
                },
            ),
            Case("forward comes first", {"last": numbers(1, 2, 1, 2), "W": numbers(2, 4, 3), "b": torch.zeros(3)}),
            Case(
                "the sentences of a batch do not mix",
                {"last": numbers(3, 2, 2, 2), "W": numbers(4, 4, 3), "b": torch.zeros(3)},
            ),
            Case("b is added", {"last": torch.zeros(2, 2, 2), "W": numbers(5, 4, 3), "b": numbers(6, 3)}),
            Case(
                "of two layers, the top one is taken",
                {"last": numbers(7, 4, 3, 2), "W": numbers(8, 4, 3), "b": numbers(9, 3)},
            ),
            Case(
                "it holds for three layers and lengths that all differ",
                {"last": numbers(10, 6, 3, 5), "W": numbers(11, 10, 4, scale=0.5), "b": numbers(12, 4)},
            ),
        ],
    ),
    Exercise(
        "attend_step",
        "8.3",
        inputs={"states": "B T D", "keys": "B S A", "values": "B S V", "mask": "B S", "W_q": "D A", "w": "A"},
        outputs={"context": "B T V", "weights": "B T S"},
        cases=[
            Case(
                "the example worked by hand comes out",
                {
                    "states": torch.tensor([[[0.5]]]),
                    "keys": torch.tensor([[[-0.5], [0.5], [9.0]]]),
                    "values": torch.tensor([[[1.0], [0.0], [100.0]]]),
                    "mask": torch.tensor([[True, True, False]]),
                    "W_q": torch.tensor([[1.0]]),
                    "w": torch.tensor([2.0]),
                },
            ),
            Case(
                "a single word gets all the weight",
                {
                    "states": numbers(20, 1, 1, 2),
                    "keys": numbers(21, 1, 1, 3),
                    "values": numbers(22, 1, 1, 2),
                    "mask": torch.tensor([[True]]),
                    "W_q": numbers(23, 2, 3),
                    "w": numbers(24, 3),
                },
            ),
            Case(
                "without padding it is additive attention",
                {
                    "states": numbers(25, 1, 2, 2),
                    "keys": numbers(26, 1, 3, 4),
                    "values": numbers(27, 1, 3, 2),
                    "mask": torch.ones(1, 3, dtype=torch.bool),
                    "W_q": numbers(28, 2, 4),
                    "w": numbers(29, 4),
                },
            ),
            Case(
                "as many steps as words: the weights of each step sum to 1",
                {
                    "states": numbers(30, 2, 3, 2),
                    "keys": numbers(31, 2, 3, 3),
                    "values": numbers(32, 2, 3, 3),
                    "mask": torch.tensor([[True, True, True], [True, True, False]]),
                    "W_q": numbers(33, 2, 3),
                    "w": numbers(34, 3),
                },
            ),
            Case(
                "padding counts for nothing, however high its score is",
                {
                    "states": torch.tensor([[[0.0]]]),
                    "keys": torch.tensor([[[0.0], [40.0]]]),
                    "values": torch.tensor([[[1.0], [100.0]]]),
                    "mask": torch.tensor([[True, False]]),
                    "W_q": torch.tensor([[1.0]]),
                    "w": torch.tensor([20_000.0]),
                },
                differentiate=False,
            ),
            Case(
                "a score of -20,000 is a score: its word gets all the weight",
                {
                    "states": torch.tensor([[[0.0]]]),
                    "keys": torch.tensor([[[-40.0], [-40.0]]]),
                    "values": torch.tensor([[[1.0], [100.0]]]),
                    "mask": torch.tensor([[True, False]]),
                    "W_q": torch.tensor([[1.0]]),
                    "w": torch.tensor([20_000.0]),
                },
                differentiate=False,
            ),
            Case(
                "steps whose scores lie far apart do not disturb each other",
                {
                    "states": torch.tensor([[[40.0], [-40.0]]]),
                    "keys": torch.tensor([[[0.0]]]),
                    "values": torch.tensor([[[3.0]]]),
                    "mask": torch.tensor([[True]]),
                    "W_q": torch.tensor([[1.0]]),
                    "w": torch.tensor([20_000.0]),
                },
                differentiate=False,
            ),
            Case(
                "a sentence with nothing to look at gets 0, not nan",
                {
                    "states": numbers(35, 2, 1, 2),
                    "keys": numbers(36, 2, 3, 4),
                    "values": numbers(37, 2, 3, 2),
                    "mask": torch.tensor([[True, False, True], [False, False, False]]),
                    "W_q": numbers(38, 2, 4),
                    "w": numbers(39, 4),
                },
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {
                    "states": numbers(40, 3, 2, 4),
                    "keys": numbers(41, 3, 5, 6),
                    "values": numbers(42, 3, 5, 7),
                    "mask": _mask,
                    "W_q": numbers(43, 4, 6, scale=0.5),
                    "w": numbers(44, 6),
                },
            ),
        ],
    ),
    Exercise(
        "masked_cross_entropy",
        "8.4",
        inputs={"logits": "B T V", "target": "B T"},
        outputs={"loss": ""},
        cases=[
            Case(
                "a place with two equal logits costs ln 2, padding nothing",
                {"logits": torch.tensor([[[0.0, 0.0], [5.0, 7.0]]]), "target": torch.tensor([[1, 0]])},
            ),
            Case(
                "without padding it is the mean over all places",
                {"logits": numbers(50, 1, 3, 4), "target": torch.tensor([[3, 1, 2]])},
            ),
            Case(
                "each word counts the same, in whichever sentence",
                {"logits": 2 * numbers(51, 2, 3, 4), "target": torch.tensor([[3, 1, 2], [1, 0, 0]])},
            ),
            Case(
                "as many words as places: nothing is taken along the wrong axis",
                {"logits": numbers(52, 2, 4, 4), "target": torch.tensor([[3, 1, 2, 0], [1, 3, 0, 0]])},
            ),
            Case(
                "logits of 500 are fine",
                {"logits": torch.tensor([[[500.0, 501.0, 499.0]]]), "target": torch.tensor([[2]])},
            ),
            Case(
                "places whose logits lie far apart do not disturb each other",
                {
                    "logits": torch.tensor([[[50.0, 51.0, 49.0], [-60.0, -61.0, -62.0]]]),
                    "target": torch.tensor([[1, 2]]),
                },
            ),
            Case(
                "a right word that seems impossible has a large loss, and a finite one",
                {
                    "logits": torch.tensor(
                        [[[500.0, 501.0, -500.0], [3.0, 2.0, 500.0]], [[-500.0, -502.0, -501.0], [0.0, 1.0, 2.0]]]
                    ),
                    "target": torch.tensor([[1, 1], [2, 0]]),
                },
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {
                    "logits": 2 * numbers(55, 3, 4, 6),
                    "target": torch.tensor([[5, 1, 4, 2], [3, 2, 0, 0], [2, 0, 0, 0]]),
                },
            ),
        ],
    ),
    Exercise(
        "greedy_decode",
        "8.5",
        inputs={"memory": "", "state": "N", "limit": ""},
        outputs={"words": ""},
        double=False,
        cases=[
            Case(
                "the example of the table comes out: the road that begins better, up to its end",
                {"memory": _two_roads, "state": _nothing, "limit": 5},
                differentiate=False,
            ),
            Case(
                "a sentence that does not end is cut at the limit",
                {"memory": _forever, "state": _nothing, "limit": 4},
                differentiate=False,
            ),
            Case(
                "what is written depends on the state that `step` returned",
                {"memory": _table(60, 6), "state": torch.tensor([3]), "limit": 6},
                differentiate=False,
            ),
            Case(
                "sentences of a batch end at different times",
                {"memory": _table(75, 8), "state": torch.tensor([0, 1, 2, 3, 4, 5, 6]), "limit": 9},
                differentiate=False,
            ),
        ],
    ),
    Exercise(
        "beam_search",
        "8.6",
        inputs={"memory": "", "state": "1", "beam": "", "limit": ""},
        outputs={"words": "", "score": ""},
        double=False,
        cases=[
            Case(
                "the example of the table comes out: the road that ends better",
                {"memory": _two_roads, "state": _nothing, "beam": 2, "limit": 5},
                differentiate=False,
            ),
            Case(
                "a beam of 1 is greedy",
                {"memory": _two_roads, "state": _nothing, "beam": 1, "limit": 5},
                differentiate=False,
            ),
            Case(
                "a finished hypothesis is not extended",
                {"memory": _three_words, "state": _nothing, "beam": 3, "limit": 6},
                differentiate=False,
            ),
            Case(
                "a finished hypothesis takes one of the places",
                {"memory": _ends_at_once, "state": _nothing, "beam": 2, "limit": 6},
                differentiate=False,
            ),
            Case(
                "a finished hypothesis can be pushed out by better ones",
                {"memory": _pushed_out, "state": _nothing, "beam": 2, "limit": 4},
                differentiate=False,
            ),
            Case(
                "per word, a longer sentence can win",
                {"memory": _short_or_long, "state": _nothing, "beam": 4, "limit": 6},
                differentiate=False,
            ),
            Case(
                "the limit cuts what has not ended",
                {"memory": _forever, "state": _nothing, "beam": 2, "limit": 3},
                differentiate=False,
            ),
            Case(
                "each hypothesis has a state of its own",
                {"memory": _table(318, 6), "state": torch.tensor([1]), "beam": 2, "limit": 6},
                differentiate=False,
            ),
            Case(
                "it holds for a wider beam",
                {"memory": _table(397, 8), "state": torch.tensor([3]), "beam": 4, "limit": 7},
                differentiate=False,
            ),
        ],
    ),
    Exercise(
        "alignment_error_rate",
        "8.7",
        inputs={"found": "", "gold": ""},
        outputs={"error": ""},
        double=False,
        cases=[
            Case(
                "one of two links is right on both sides",
                {"found": [[(1, 1), (0, 0)]], "gold": [[(0, 0), (2, 1)]]},
                differentiate=False,
            ),
            Case(
                "a link that is missing costs, too",
                {"found": [[(0, 0)]], "gold": [[(0, 0), (1, 1), (1, 2)]]},
                differentiate=False,
            ),
            Case(
                "a link too many costs, too",
                {"found": [[(0, 0), (1, 1), (2, 2), (3, 0)]], "gold": [[(0, 0)]]},
                differentiate=False,
            ),
            Case(
                "a link has a direction",
                {"found": [[(0, 1), (2, 0)]], "gold": [[(1, 0), (2, 0)]]},
                differentiate=False,
            ),
            Case(
                "the counts of all sentences are added up first",
                {
                    "found": [[(0, 0)], [(0, 0), (1, 1), (2, 2), (3, 3)]],
                    "gold": [[(1, 0)], [(0, 0), (1, 1), (2, 2), (3, 2)]],
                },
                differentiate=False,
            ),
            Case(
                "a sentence for which no link was found counts its gold links",
                {"found": [[], [(0, 0)]], "gold": [[(1, 1), (0, 2)], [(0, 0)]]},
                differentiate=False,
            ),
            Case(
                "the same link in two sentences is two links",
                {"found": [[(0, 0), (1, 0)], [(0, 0)], [(2, 1)]], "gold": [[(0, 0)], [(1, 0), (0, 1)], [(2, 1)]]},
                differentiate=False,
            ),
        ],
    ),
    Exercise(
        "train",
        "8.8",
        inputs={"name": "", "batches": "", "rates": ""},
        outputs={"losses": "", "learned": ""},
        double=False,
        tolerance=1e-3,
        cases=[
            Case(
                "the toy's first loss is ln 7, and with a rate of 0 it learns nothing",
                {"name": "toy", "batches": _same, "rates": [0.0]},
                differentiate=False,
            ),
            Case(
                "with a rate of 0.1, one update moves each parameter by 0.1 or, without a gradient, by 0",
                {"name": "toy", "batches": _same, "rates": [0.1]},
                differentiate=False,
            ),
            Case(
                "the second loss shows the first update",
                {"name": "toy", "batches": _same * 2, "rates": [0.1, 0.1]},
                differentiate=False,
            ),
            Case(
                "the rate of each update counts",
                {"name": "toy", "batches": _same * 4, "rates": [0.05, 0.0, 0.1, 0.02]},
                differentiate=False,
            ),
            Case(
                "gradients that are shorter than 1 stay as they are",
                {"name": "toy", "batches": _same * 12, "rates": [0.1] * 12},
                differentiate=False,
            ),
            Case(
                "it holds for batches of different words",
                {
                    "name": "toy",
                    "batches": _toy_batches(70, [[5, 5], [4, 5], [5, 3], [2, 5], [5, 1]]),
                    "rates": [0.2, 0.1, 0.1, 0.05, 0.05],
                },
                differentiate=False,
            ),
        ],
    ),
    Exercise("test_masked_cross_entropy", "8.9", kind="test"),
    Exercise("counterexample", "8.10", kind="counterexample"),
    Exercise(
        "repaired_summary",
        "8.11",
        inputs={"states": "B S 2H", "lengths": "B"},
        outputs={"summary": "B 2H"},
        cases=[
            Case(
                "the readers of a sentence of two words end at different words",
                {"states": torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), "lengths": torch.tensor([2])},
            ),
            Case(
                "a sentence of one word has one state",
                {"states": torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), "lengths": torch.tensor([1])},
            ),
            Case(
                "each sentence has a length of its own",
                {"states": numbers(80, 2, 3, 2), "lengths": torch.tensor([2, 3])},
            ),
            Case(
                "as many sentences as words: the two do not get mixed up",
                {"states": numbers(81, 3, 3, 4), "lengths": torch.tensor([1, 3, 2])},
            ),
            Case(
                "it holds for a batch in which all lengths differ",
                {"states": numbers(82, 3, 5, 8), "lengths": torch.tensor([4, 1, 5])},
            ),
        ],
    ),
]
