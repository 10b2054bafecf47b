"""Wrong answers to the exercises of lesson 04, each with what its author needs to read."""

import math

import torch
from torch import nn

from attention_course import device
from attention_course.authoring import mistakes_of

# 4.1 equivariance_gap: the models of the lesson once more, so that these answers can look them up by name ------------

_W_q, _W_k = torch.zeros(6, 4), torch.zeros(6, 4)
for _channel, (_who, _what) in enumerate(((2, 1), (3, 5), (4, 0), (0, 2))):
    _W_q[_who, _channel], _W_k[_what, _channel] = 6.0, 1.0


def _attention(x):
    return torch.softmax((x @ _W_q.to(x)) @ (x @ _W_k.to(x)).mT / 2, dim=-1) @ x


_MODELS = {
    "attention": _attention,
    "each alone": torch.tanh,
    "running mean": lambda x: torch.cumsum(x, 1) / torch.arange(1, x.shape[1] + 1).to(x)[:, None],
    "left neighbour": lambda x: x.roll(1, dims=1),
}


wrong = mistakes_of("equivariance_gap")


@wrong(
    "comparing with the result that is not shuffled",
    "The contexts of shuffled tokens stand in shuffled places. Shuffle the second result too, then compare.",
)
def gap_of_invariance(model, x, order):
    f = _MODELS.get(model, model)
    return (f(x[:, order]) - f(x)).abs().max().item()


@wrong(
    "shuffling the sentences of the batch",
    "x[order] indexes axis 0, the batch. The tokens stand along axis 1: x[:, order].",
)
def gap_shuffles_the_batch(model, x, order):
    f = _MODELS.get(model, model)
    return (f(x[order]) - f(x)[order]).abs().max().item()


@wrong(
    "the mean of the differences",
    "One token that is treated differently is enough to see order. Take the largest difference.",
)
def gap_mean(model, x, order):
    f = _MODELS.get(model, model)
    return (f(x[:, order]) - f(x)[:, order]).abs().mean().item()


@wrong("leaving out the absolute value", "A difference of -2 is as large as one of 2: .abs() comes before .max().")
def gap_signed(model, x, order):
    f = _MODELS.get(model, model)
    return (f(x[:, order]) - f(x)[:, order]).max().item()


@wrong(
    "the opposite shuffle after the model",
    "Both ways use the same order, once: x[:, order] before the model, and [:, order] of the result for x itself. "
    "(To shuffle the shuffled result once more comes to the same mistake.)",
)
def gap_opposite_shuffle(model, x, order):
    f = _MODELS.get(model, model)
    return (f(x[:, order]) - f(x)[:, torch.argsort(order)]).abs().max().item()


@wrong("leaving out the line that looks the model up", says="'str' object is not callable")
def gap_without_look_up(model, x, order):
    return (model(x[:, order]) - model(x)[:, order]).abs().max().item()


@wrong(
    "running the model on shuffled tokens both times",
    "Then nothing is compared with anything. One of the two results comes from x as it is, and is shuffled afterwards.",
)
def gap_the_same_twice(model, x, order):
    f = _MODELS.get(model, model)
    return (f(x[:, order]) - f(x[:, order])).abs().max().item()


@wrong(
    "the length of the difference", ".norm() adds all differences up, so it grows with the batch. Take the largest one."
)
def gap_norm(model, x, order):
    f = _MODELS.get(model, model)
    return (f(x[:, order]) - f(x)[:, order]).norm().item()


@wrong("the largest difference in the first sentence alone", "Every sentence of the batch counts.")
def gap_first_sentence(model, x, order):
    f = _MODELS.get(model, model)
    return (f(x[:, order]) - f(x)[:, order])[0].abs().max().item()


@wrong(
    "the difference divided by the numbers themselves",
    "The gap is the largest absolute difference, not a share of anything.",
)
def gap_relative(model, x, order):
    f = _MODELS.get(model, model)
    after = f(x)[:, order]
    return ((f(x[:, order]) - after).abs() / (after.abs() + 1e-9)).max().item()


@wrong("a verdict in place of a number", "Return by how much the two differ, not whether they do.")
def gap_verdict(model, x, order):
    f = _MODELS.get(model, model)
    return torch.allclose(f(x[:, order]), f(x)[:, order], atol=1e-5)


@wrong("leaving the model out", "Compare what the model makes of the tokens, not the tokens themselves.")
def gap_without_model(model, x, order):
    return (x[:, order] - x).abs().max().item()


# 4.2 sinusoidal -----------------------------------------------------------------------------------------------------


def _rates(d, exponent=None):
    even = torch.arange(0, d, 2, device=device.pick())
    return 10000.0 ** (-even / d if exponent is None else exponent(even))


def _places(T, first=0):
    return torch.arange(first, T + first, device=device.pick())[:, None]


def _alternate(first, second, d):
    """The columns of two tables in turns; the second may have one column too many."""
    table = first.new_zeros(len(first), d)
    table[:, 0::2] = first
    table[:, 1::2] = second[:, : d // 2]
    return table


wrong = mistakes_of("sinusoidal")


@wrong("an exponent that is doubled twice", "torch.arange(0, d, 2) is 2i already. The exponent is -(0, 2, 4, …) / d.")
def sinusoidal_doubled(T, d):
    angles = _places(T) * _rates(d, lambda even: -2 * even / d)
    return _alternate(angles.sin(), angles.cos(), d)


@wrong("an exponent that is not doubled", "The exponent is -2i/d: 0, -2/d, -4/d, …, for the hands i = 0, 1, 2, …")
def sinusoidal_halved(T, d):
    angles = _places(T) * _rates(d, lambda even: -(even // 2) / d)
    return _alternate(angles.sin(), angles.cos(), d)


@wrong(
    "an exponent that is not doubled, and one hand too few where d is odd,",
    "The exponent is -2i/d: 0, -2/d, -4/d, …; and for odd d there are (d + 1) / 2 hands. torch.arange(0, d, 2) gives "
    "both.",
)
def sinusoidal_halved_and_short(T, d):
    table = torch.zeros(T, d, device=device.pick())
    angles = _places(T) * 10000.0 ** (-torch.arange(d // 2, device=device.pick()) / d)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


@wrong(
    "having one hand too few where d is odd",
    "The last hand keeps its sine, so for odd d there are (d + 1) / 2 hands: torch.arange(0, d, 2) counts them.",
)
def sinusoidal_short(T, d):
    table = torch.zeros(T, d, device=device.pick())
    angles = _places(T) * 10000.0 ** (-2 * torch.arange(d // 2, device=device.pick()) / d)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


@wrong("dividing by the next even number where d is odd", "The exponent divides by d itself, also when d is odd.")
def sinusoidal_divides_by_even(T, d):
    angles = _places(T) * _rates(d, lambda even: -even / (d + d % 2))
    return _alternate(angles.sin(), angles.cos(), d)


@wrong(
    "a rate of its own for every column",
    "The sine and the cosine of one hand share its rate: columns 2i and 2i + 1 both use the exponent -2i / d.",
)
def sinusoidal_rate_per_column(T, d):
    angles = _places(T) * 10000.0 ** (-torch.arange(d, device=device.pick()) / d)
    return _alternate(angles[:, 0::2].sin(), torch.nn.functional.pad(angles[:, 1::2].cos(), (0, 1)), d)


@wrong(
    "putting all sines first and all cosines after them",
    "Sines and cosines alternate: table[:, 0::2] and table[:, 1::2].",
)
def sinusoidal_halves(T, d):
    angles = _places(T) * _rates(d)
    return torch.cat([angles.sin(), angles.cos()[:, : d // 2]], dim=1)


@wrong(
    "putting all cosines first and all sines after them",
    "Sines and cosines alternate, and a sine comes first: table[:, 0::2] and table[:, 1::2].",
)
def sinusoidal_halves_cosines_first(T, d):
    angles = _places(T) * _rates(d)
    return torch.cat([angles.cos()[:, : d // 2], angles.sin()], dim=1)


@wrong("putting the cosines into the even columns", "Column 0 is a sine: place 0 begins with 0, 1.")
def sinusoidal_cosine_first(T, d):
    angles = _places(T) * _rates(d)
    return _alternate(angles.cos(), angles.sin(), d)


@wrong("counting the places from 1", "The first place is 0: torch.arange(T).")
def sinusoidal_from_one(T, d):
    angles = _places(T, first=1) * _rates(d)
    return _alternate(angles.sin(), angles.cos(), d)


@wrong(
    "turning all hands at one rate",
    "A clock whose hands all turn alike has one hand. The angles are places times rates.",
)
def sinusoidal_one_rate(T, d):
    angles = _places(T) * torch.ones((d + 1) // 2, device=device.pick())
    return _alternate(angles.sin(), angles.cos(), d)


@wrong("letting the rates grow", "The exponent is negative: the rates fall from 1 towards 1/10000.")
def sinusoidal_growing(T, d):
    angles = _places(T) * _rates(d, lambda even: even / d)
    return _alternate(angles.sin(), angles.cos(), d)


@wrong("powers of 1000", "The rates fall from 1 towards 1/10000: powers of 10000.")
def sinusoidal_base_1000(T, d):
    angles = _places(T) * _rates(d) ** 0.75
    return _alternate(angles.sin(), angles.cos(), d)


@wrong(
    "rates that reach 1/10000 itself",
    "The last rate is 10000^(-2i/d) with the last i, above 1/10000: the exponents are 0, -2/d, -4/d and so on.",
)
def sinusoidal_reaches_the_end(T, d):
    angles = _places(T) * torch.logspace(0, -4, (d + 1) // 2, device=device.pick())
    return _alternate(angles.sin(), angles.cos(), d)


@wrong("a power of e in place of 10000", "If you use torch.exp, multiply the exponent by math.log(10000).")
def sinusoidal_base_e(T, d):
    angles = _places(T) * torch.exp(-torch.arange(0, d, 2, device=device.pick()) / d)
    return _alternate(angles.sin(), angles.cos(), d)


@wrong(
    "writing a cosine for every sine, even where d is odd,",
    "For odd d there is one cosine fewer than there are sines. Cut the angles off: angles[:, : d // 2].",
)
def sinusoidal_even_only(T, d):
    angles = _places(T) * _rates(d)
    table = torch.zeros(T, d, device=device.pick())
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


@wrong("keeping a column too many where d is odd", "Pairs make an even number of columns. Keep the first d of them.")
def sinusoidal_one_column_more(T, d):
    angles = _places(T) * _rates(d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@wrong(
    "leaving out the last sine where d is odd",
    "The last hand keeps its sine: there are d / 2 hands, rounded up, so count 0, 2, 4, … up to d - 1.",
)
def sinusoidal_zero_column(T, d):
    angles = _places(T) * _rates(d)[: d // 2]
    table = torch.zeros(T, d, device=device.pick())
    table[:, 0 : d - d % 2 : 2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


@wrong(
    "dividing the places by their number",
    "Then the same place gets other numbers in a longer sentence. Use the places as they are.",
)
def sinusoidal_fractions(T, d):
    angles = _places(T) / T * _rates(d)
    return _alternate(angles.sin(), angles.cos(), d)


@wrong("an extra axis for the batch", "Here the table alone is wanted, (T, d); it meets a batch later on.")
def sinusoidal_batched(T, d):
    angles = _places(T) * _rates(d)
    return _alternate(angles.sin(), angles.cos(), d)[None]


# 4.3 shift_matrix ---------------------------------------------------------------------------------------------------


def _blocks(n, d, a, b, c, e, exponent=None):
    """A matrix with a(angle), b(angle), c(angle), e(angle) in the four corners of every block."""
    angles = n * _rates(d, exponent)
    M = torch.zeros(d, d, device=device.pick())
    for (row, column), f in zip(((0, 0), (0, 1), (1, 0), (1, 1)), (a, b, c, e), strict=True):
        M[row::2, column::2] = torch.diag(f(angles))
    return M


def _minus_sin(angles):
    return -torch.sin(angles)


wrong = mistakes_of("shift_matrix")


@wrong(
    "the matrix that goes back by n",
    "The minus sign belongs to the lower left sine of every block. (Or is it meant for rows, as in PE[p] @ M? "
    "Here it stands on the left: M PE[p].)",
)
def shift_transposed(n, d):
    return _blocks(n, d, torch.cos, _minus_sin, torch.sin, torch.cos)


@wrong(
    "leaving out the minus sign",
    "With two plus signs a block is no rotation: it changes lengths, and all places are equally long.",
)
def shift_without_minus(n, d):
    return _blocks(n, d, torch.cos, torch.sin, torch.sin, torch.cos)


@wrong("exchanging sine and cosine", "For n = 0 nothing moves, so M is the identity: cosines on the diagonal.")
def shift_exchanged(n, d):
    return _blocks(n, d, torch.sin, torch.cos, lambda x: -torch.cos(x), torch.sin)


@wrong(
    "leaving out the sines",
    "sin((p + n)ω) needs both the sine and the cosine of pω. The sines beside the diagonal are missing.",
)
def shift_diagonal(n, d):
    return torch.diag(torch.cos(n * _rates(d)).repeat_interleave(2))


@wrong("the same angle for every hand", "Each hand has its own rate, so its own angle: n times 10000^(-2i/d).")
def shift_one_rate(n, d):
    return _blocks(n, d, torch.cos, torch.sin, _minus_sin, torch.cos, lambda even: 0.0 * even)


@wrong("an exponent that is doubled twice", "torch.arange(0, d, 2) is 2i already.")
def shift_doubled(n, d):
    return _blocks(n, d, torch.cos, torch.sin, _minus_sin, torch.cos, lambda even: -2 * even / d)


@wrong(
    "an exponent that is not doubled",
    "The exponent holds 2i: 0, 2, 4, …, divided by d. The rates are those of exercise 4.2.",
)
def shift_halved(n, d):
    return _blocks(n, d, torch.cos, torch.sin, _minus_sin, torch.cos, lambda even: -(even // 2) / d)


@wrong(
    "a table with the sines in one half and the cosines in the other",
    "In our table the sine and the cosine of one hand are neighbours, so the blocks stand along the diagonal.",
)
def shift_halves(n, d):
    angles = n * _rates(d)
    c, s = torch.diag(angles.cos()), torch.diag(angles.sin())
    return torch.cat([torch.cat([c, s], dim=1), torch.cat([-s, c], dim=1)])


@wrong(
    "a table with the cosines in one half and the sines in the other",
    "In our table the sine and the cosine of one hand are neighbours, the sine first, so the blocks stand along the "
    "diagonal.",
)
def shift_halves_cosines_first(n, d):
    angles = n * _rates(d)
    c, s = torch.diag(angles.cos()), torch.diag(angles.sin())
    return torch.cat([torch.cat([c, -s], dim=1), torch.cat([s, c], dim=1)])


@wrong(
    "moving the entries of the vector by n",
    "A place further on is not the same vector with its entries moved: every hand turns by its own angle.",
)
def shift_rolls(n, d):
    return torch.eye(d, device=device.pick()).roll(n, dims=0)


@wrong(
    "going on by n also where n is negative", "A negative n goes back: the angles are n times the rates, with its sign."
)
def shift_ignores_the_sign(n, d):
    return _blocks(abs(n), d, torch.cos, torch.sin, _minus_sin, torch.cos)


@wrong("the matrix for one place, whatever n is,", "n places on is n times the angle.")
def shift_by_one(n, d):
    return _blocks(1, d, torch.cos, torch.sin, _minus_sin, torch.cos)


@wrong(
    "n times the matrix for one place",
    "Going on twice is turning twice, not twice as long a vector: n belongs to the angle.",
)
def shift_n_times(n, d):
    return n * _blocks(1, d, torch.cos, torch.sin, _minus_sin, torch.cos)


# 4.4 LearnedPositions -----------------------------------------------------------------------------------------------


class _Learned(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = nn.Embedding(max_length, d_model)

    def rows(self, x):
        return self.table(torch.arange(x.shape[1], device=x.device))


wrong = mistakes_of("LearnedPositions")


@wrong("taking as many rows as there are sentences", "x.shape[0] is the batch; the tokens are axis 1.")
class LearnedForSentences(_Learned):
    def forward(self, x):
        return x + self.table.weight[: x.shape[0]]


@wrong(
    "giving each sentence one row",
    "Every sentence begins with row 0 again, and each of its tokens gets a row of its own.",
)
class LearnedPerSentence(_Learned):
    def forward(self, x):
        return x + self.table.weight[: x.shape[0], None]


@wrong("returning the rows without the tokens", "Return x with the rows added to it.")
class LearnedOnlyPlaces(_Learned):
    def forward(self, x):
        return self.rows(x).expand_as(x)


@wrong("looking the rows up without adding them", "These are the rows of the table alone; add them to x.")
class LearnedRowsAlone(_Learned):
    def forward(self, x):
        return self.rows(x)


@wrong("adding the whole table", "It has rows for longer sentences too. Take the first T.")
class LearnedWholeTable(_Learned):
    def forward(self, x):
        return x + self.table.weight


@wrong(
    "taking the rows from 1 on", "The first token is in place 0, and the last row of the table would never be reached."
)
class LearnedFromOne(_Learned):
    def forward(self, x):
        return x + self.table(torch.arange(1, x.shape[1] + 1, device=x.device))


@wrong(
    "giving every token row 0",
    "Each place has a row of its own: look up 0, 1, …, T - 1, torch.arange(T).",
)
class LearnedOneRow(_Learned):
    def forward(self, x):
        return x + self.table(torch.zeros(x.shape[1], dtype=torch.long, device=x.device))


@wrong("taking the last rows of the table", "The first token gets row 0, however long the table is.")
class LearnedLastRows(_Learned):
    def forward(self, x):
        return x + self.table.weight[-x.shape[1] :]


@wrong("adding the rows in reverse", "Row 0 belongs to the first token.")
class LearnedReversed(_Learned):
    def forward(self, x):
        return x + self.rows(x).flip(0)


@wrong("multiplying tokens and rows", "The rows are added.")
class LearnedMultiplies(_Learned):
    def forward(self, x):
        return x * self.rows(x)


@wrong(
    "cutting the table off from the graph, as .detach() or .data does,",
    "Then it is never learned: its gradient must come through.",
)
class LearnedDetached(_Learned):
    def forward(self, x):
        return x + self.rows(x).detach()


@wrong(
    "multiplying the tokens by √d", "The first transformer does that to its embeddings. Here x is taken as it comes."
)
class LearnedScales(_Learned):
    def forward(self, x):
        return x * x.shape[-1] ** 0.5 + self.rows(x)


@wrong("looking up the tokens in place of their places", "The rows are looked up by place: 0, 1, …, T - 1.")
class LearnedLooksUpTokens(_Learned):
    def forward(self, x):
        return x + self.table(x.long())


@wrong("adding in place", "x += … writes into the caller's tokens. Write x + …")
class LearnedInPlace(_Learned):
    def forward(self, x):
        x += self.rows(x)
        return x


@wrong("a sentence past the end that gets the last row", says="it takes a sentence that is longer than its table")
class LearnedClamps(_Learned):
    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device).clamp(max=self.table.num_embeddings - 1)
        return x + self.table(places)


@wrong("a sentence past the end that begins anew", says="it takes a sentence that is longer than its table")
class LearnedWraps(_Learned):
    def forward(self, x):
        return x + self.table(torch.arange(x.shape[1], device=x.device) % self.table.num_embeddings)


@wrong("a table of the wrong shape", says="they should be table.weight (7, 5)")
class LearnedSwapped(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = nn.Embedding(d_model, max_length)

    def forward(self, x):
        return x + self.table.weight.T[: x.shape[1]]


@wrong("another name for the table", says="they should be table.weight (7, 5)")
class LearnedOtherName(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.positions = nn.Embedding(max_length, d_model)

    def forward(self, x):
        return x + self.positions.weight[: x.shape[1]]


@wrong("a plain tensor for a table", says="its parameters are none")
class LearnedNoParameter(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = torch.randn(max_length, d_model)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


# 4.5 rope -----------------------------------------------------------------------------------------------------------


def _turn(x, positions, exponent=None, sign=1.0):
    d = x.shape[-1]
    even = torch.arange(0, d, 2, device=x.device, dtype=x.dtype)
    angles = sign * positions.to(x)[:, None] * 10000.0 ** (-even / d if exponent is None else exponent(even, d))
    return x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()


def _pairs(first, second):
    return torch.stack([first, second], dim=-1).flatten(-2)


wrong = mistakes_of("rope")


@wrong(
    "pairing entry i with entry i + d/2",
    "That is the other layout in use, and as good a one. Here, as in the paper, neighbours form a pair: "
    "x[..., 0::2] with x[..., 1::2].",
)
def rope_halves(x, positions):
    _, _, cos, sin = _turn(x, positions)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@wrong(
    "turning the other way",
    "Scores would still depend on r - p alone, but with left and right exchanged. By convention (1, 0) turns towards "
    "(0, 1): the minus sign belongs to the first of the two rows.",
)
def rope_backwards(x, positions):
    a, b, cos, sin = _turn(x, positions, sign=-1.0)
    return _pairs(a * cos - b * sin, a * sin + b * cos)


@wrong(
    "leaving out the minus sign",
    "With two plus signs lengths change, and scores depend on the places themselves. "
    "The first row is cos · even - sin · odd.",
)
def rope_without_minus(x, positions):
    a, b, cos, sin = _turn(x, positions)
    return _pairs(a * cos + b * sin, a * sin + b * cos)


@wrong(
    "computing the second entry from the first one that is turned already",
    "Both new entries need the *old* pair. Compute both, then put them into the result.",
)
def rope_sequential(x, positions):
    a, b, cos, sin = _turn(x, positions)
    new = a * cos - b * sin
    return _pairs(new, new * sin + b * cos)


@wrong(
    "putting the halves behind each other",
    "The even and the odd entries go back to where they came from, in turns: stack them along a new last axis, "
    "then flatten.",
)
def rope_not_put_back(x, positions):
    a, b, cos, sin = _turn(x, positions)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@wrong("an exponent that is doubled twice", "torch.arange(0, d, 2) is 2i already.")
def rope_doubled(x, positions):
    a, b, cos, sin = _turn(x, positions, lambda even, d: -2 * even / d)
    return _pairs(a * cos - b * sin, a * sin + b * cos)


@wrong(
    "an exponent that is not doubled",
    "The exponent holds 2i: 0, 2, 4, …, divided by d. The rates are those of exercise 4.2.",
)
def rope_halved(x, positions):
    a, b, cos, sin = _turn(x, positions, lambda even, d: -even / 2 / d)
    return _pairs(a * cos - b * sin, a * sin + b * cos)


@wrong(
    "neighbours as pairs, turned by the angles of the other layout",
    "Both numbers of pair i turn by the angle of hand i: entries 0 and 1 by the first, 2 and 3 by the second.",
)
def rope_mixes_the_layouts(x, positions):
    a, b, cos, sin = _turn(x, positions)
    cos, sin = cos.repeat(1, 2), sin.repeat(1, 2)
    return x * cos + _pairs(-b, a) * sin


@wrong("turning every pair by the same angle", "Each pair has its own rate, as each hand of the clock has.")
def rope_one_rate(x, positions):
    a, b, cos, sin = _turn(x, positions, lambda even, d: 0 * even)
    return _pairs(a * cos - b * sin, a * sin + b * cos)


@wrong(
    "counting the places from 0, whatever `positions` says,",
    "A sentence may begin anywhere. Use the argument in place of torch.arange(T).",
)
def rope_from_zero(x, positions):
    a, b, cos, sin = _turn(x, torch.arange(x.shape[-2], device=x.device))
    return _pairs(a * cos - b * sin, a * sin + b * cos)


@wrong("adding the sinusoidal table", "That was section 5. Here nothing is added: each pair of x itself is turned.")
def rope_adds(x, positions):
    _, _, cos, sin = _turn(x, positions)
    return x + _pairs(sin, cos)


@wrong(
    "multiplying by the cosines alone",
    "That shrinks the entries. A rotation mixes the two entries of a pair, with sines.",
)
def rope_shrinks(x, positions):
    a, b, cos, _ = _turn(x, positions)
    return _pairs(a * cos, b * cos)


@wrong("writing into x", "x[..., 0::2] = … changes the caller's queries. Put the new entries into a new tensor.")
def rope_in_place(x, positions):
    a, b, cos, sin = _turn(x, positions)
    new_a, new_b = a * cos - b * sin, a * sin + b * cos
    x[..., 0::2], x[..., 1::2] = new_a, new_b
    return x


@wrong(
    "a float32 result, whatever x is,",
    "Make it from x, with torch.empty_like(x), or stack the halves and flatten.",
)
def rope_always_single(x, positions):
    a, b, cos, sin = _turn(x, positions)
    return _pairs(a * cos - b * sin, a * sin + b * cos).float()


@wrong(
    "unpacking x.shape into three names",
    "x may have heads, or no batch at all: use x.shape[-1] and `...`, and do not name the axes in front.",
)
def rope_names_three_axes(x, positions):
    B, T, d = x.shape
    a, b, cos, sin = _turn(x, positions)
    return _pairs(a * cos - b * sin, a * sin + b * cos).reshape(B, T, d)


@wrong(
    "unpacking x.shape into four names",
    "x may come without heads, or with no batch at all: use x.shape[-1] and `...`, and do not name the axes in front.",
)
def rope_names_four_axes(x, positions):
    B, H, T, d = x.shape
    a, b, cos, sin = _turn(x, positions)
    return _pairs(a * cos - b * sin, a * sin + b * cos).reshape(B, H, T, d)


# 4.6 breaking_slope -------------------------------------------------------------------------------------------------


def _further(place, a, b):
    return abs(b - place) - abs(a - place)


wrong = mistakes_of("breaking_slope")


@wrong(
    "places in place of distances",
    "The distance is counted from the query, and without its sign: abs(b - place), abs(a - place).",
)
def slope_of_places(lead, place, a, b):
    return lead / (b - a) if b > a else math.inf


@wrong(
    "distances with their sign",
    "Three places to the left are as far as three to the right: abs(b - place), abs(a - place).",
)
def slope_signed(lead, place, a, b):
    further = (b - place) - (a - place)
    return lead / further if further != 0 else math.inf


@wrong("how far the two keys are from each other", "Each is lowered by its distance from the query.")
def slope_between_keys(lead, place, a, b):
    return lead / abs(b - a) if a != b else math.inf


@wrong("lowering b alone", "a is lowered too, by its own distance. Only what b is further away counts.")
def slope_without_a(lead, place, a, b):
    return lead / abs(b - place) if b != place else math.inf


@wrong("adding the two distances", "Both scores fall. What closes the gap is the difference of the distances.")
def slope_of_the_sum(lead, place, a, b):
    return lead / (abs(b - place) + abs(a - place))


@wrong(
    "a number where no slope is steep enough",
    "If b is no further away than a, a steeper slope does not help a: math.inf.",
)
def slope_without_infinity(lead, place, a, b):
    further = _further(place, a, b)
    return lead / further if further else math.inf


@wrong(
    "a division by 0 where both keys are equally far",
    "Then both are lowered alike, and no slope is steep enough: math.inf.",
)
def slope_divides_by_zero(lead, place, a, b):
    return lead / _further(place, a, b)


@wrong("the size of the difference of the distances", "If b is nearer than a, a steeper slope helps b: math.inf.")
def slope_unsigned_difference(lead, place, a, b):
    further = abs(_further(place, a, b))
    return lead / further if further else math.inf


@wrong("the lead times what b is further away", "Each unit of slope takes that much from the lead: divide.")
def slope_multiplies(lead, place, a, b):
    further = _further(place, a, b)
    return lead * further if further > 0 else math.inf


@wrong("what b is further away, divided by the lead", "It is the other way round: the lead is used up, bit by bit.")
def slope_upside_down(lead, place, a, b):
    further = _further(place, a, b)
    return further / lead if further > 0 else math.inf


@wrong("0 where no slope is steep enough", "At slope 0 b is ahead by its lead. No slope at all: math.inf.")
def slope_zero(lead, place, a, b):
    further = _further(place, a, b)
    return lead / further if further > 0 else 0.0


@wrong(
    "a very large number where no slope is steep enough",
    "However steep, it would not do. Say so: math.inf.",
)
def slope_very_large(lead, place, a, b):
    return lead / max(_further(place, a, b), 1e-9)


@wrong(
    "b's offset alone",
    "a is lowered too, and b may stand to the left: abs(b - place) - abs(a - place).",
)
def slope_of_the_offset(lead, place, a, b):
    return lead / (b - place) if b > place else math.inf


@wrong("nothing where no slope is steep enough", says="it should return a number")
def slope_none(lead, place, a, b):
    further = _further(place, a, b)
    return lead / further if further > 0 else None


# 4.7 counterexample -------------------------------------------------------------------------------------------------

wrong = mistakes_of("counterexample")


@wrong("tokens of two numbers", says="both implementations give the same")
def counterexample_two_numbers():
    return torch.randn(2, 3, 2), torch.tensor([5.0, 50.0, 500.0])


@wrong("place 0 alone", says="both implementations give the same")
def counterexample_place_zero():
    return torch.randn(1, 1, 8), torch.tensor([0])


@wrong("all tokens in place 0", says="both implementations give the same")
def counterexample_all_zero():
    return torch.randn(2, 3, 6), torch.zeros(3)


@wrong("tokens that drown the places", says="both implementations give the same")
def counterexample_drowned():
    return torch.full((1, 2, 4), 1e6), torch.tensor([0, 1])


@wrong("an odd number of entries", says="d must be even")
def counterexample_odd():
    return torch.zeros(1, 2, 5), torch.tensor([0, 10])


@wrong("as many places as sentences", says="cannot take these inputs")
def counterexample_places_do_not_fit():
    return torch.zeros(2, 3, 4), torch.tensor([0, 10])


@wrong("the tokens alone", says="it should return two tensors as a tuple")
def counterexample_tokens_only():
    return torch.zeros(1, 2, 4)


@wrong("a list of places", says="the second is a list")
def counterexample_list():
    return torch.zeros(1, 2, 4), [0, 10]


@wrong("a table of places", says="the second tensor should have the axes (T)")
def counterexample_places_for_each_sentence():
    return torch.zeros(1, 2, 4), torch.tensor([[0, 10]])


@wrong("a place at infinity", says="has no finite result on these inputs")
def counterexample_infinite():
    return torch.zeros(1, 2, 4), torch.tensor([0.0, float("inf")])


# 4.8 repaired_positions ---------------------------------------------------------------------------------------------


def _add(x, positions, rates):
    angles = positions[:, None] * rates
    return x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def _even(x):
    return torch.arange(0, x.shape[-1], 2, device=x.device)


wrong = mistakes_of("repaired_positions")


@wrong(
    "leaving the exponent as it was",
    "`i` is 0, 2, 4, … already. Doubled again it gives hand 1 the rate that belongs to hand 2.",
)
def repaired_unchanged(x, positions):
    return _add(x, positions, 10000.0 ** (-2 * _even(x) / x.shape[-1]))


@wrong(
    "taking the 2 away twice",
    "Either count the hands 0, 1, 2, … and keep the 2, or count 0, 2, 4, … and drop it, or divide by 2d. One of these "
    "is enough.",
)
def repaired_twice(x, positions):
    return _add(x, positions, 10000.0 ** (-(_even(x) // 2) / x.shape[-1]))


@wrong(
    "an exponent that is not divided by d",
    "The division by x.shape[-1] was right: it spreads the rates between 1 and 1/10000, however many hands there are.",
)
def repaired_undivided(x, positions):
    return _add(x, positions, 10000.0 ** (-1.0 * _even(x)))


@wrong("counting the hands from 1", "Hand 0 has rate 1: count from 0.")
def repaired_hands_from_one(x, positions):
    return _add(x, positions, 10000.0 ** (-(_even(x) + 2) / x.shape[-1]))


@wrong("putting the cosines into the even columns", "The last line was right: the sine of each hand comes first.")
def repaired_cosine_first(x, positions):
    angles = positions[:, None] * 10000.0 ** (-_even(x) / x.shape[-1])
    return x + torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(-2)


@wrong("turning the sign of the exponent", "The rates should fall. Only the 2 was wrong.")
def repaired_sign(x, positions):
    return _add(x, positions, 10000.0 ** (_even(x) / x.shape[-1]))


@wrong("putting all sines first and all cosines after them", "The last line was right: sines and cosines alternate.")
def repaired_halves(x, positions):
    angles = positions[:, None] * 10000.0 ** (-_even(x) / x.shape[-1])
    return x + torch.cat([angles.sin(), angles.cos()], dim=-1)


@wrong("counting the places from 0, whatever `positions` says,", "The places are passed in.")
def repaired_from_zero(x, positions):
    return _add(x, torch.arange(x.shape[1], device=x.device), 10000.0 ** (-_even(x) / x.shape[-1]))


@wrong("returning the table without the tokens", "The last line adds it to x.")
def repaired_only_places(x, positions):
    return _add(torch.zeros_like(x), positions, 10000.0 ** (-_even(x) / x.shape[-1]))


@wrong("adding in place", "x += … writes into the caller's tokens. Write x + …")
def repaired_in_place(x, positions):
    x += _add(torch.zeros_like(x), positions, 10000.0 ** (-_even(x) / x.shape[-1]))
    return x


def second_positions(x, positions):
    return _add(x, positions, 10000.0 ** (-_even(x) / x.shape[-1]))


@wrong("calling the implementation that is right already", says="Mend the published lines themselves")
def repaired_by_the_other(x, positions):
    return second_positions(x, positions)
