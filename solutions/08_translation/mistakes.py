"""Wrong answers to the exercises of lesson 08, each with what its author needs to read."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention_course.authoring import mistakes_of

PAD, BOS, EOS = 0, 1, 2

# 8.1 Encoder --------------------------------------------------------------------------------------------------------


class _Reader(nn.Module):
    def __init__(self, words, d_embed, d_hidden, bidirectional=True):
        super().__init__()
        self.embed = nn.Embedding(words, d_embed)
        self.rnn = nn.GRU(d_embed, d_hidden, batch_first=True, bidirectional=bidirectional)

    def read(self, source, lengths, **options):
        packed = pack_padded_sequence(
            self.embed(source), lengths.cpu(), batch_first=True, **({"enforce_sorted": False} | options)
        )
        states, last = self.rnn(packed)
        return pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])[0], last


wrong = mistakes_of("Encoder")


@wrong(
    "a GRU that reads the padding",
    "Pack the vectors before self.rnn sees them. The backward reader would otherwise begin with the padding.",
)
class EncoderReadsPadding(_Reader):
    def forward(self, source, lengths):
        return self.rnn(self.embed(source))


@wrong(
    "reading zero vectors at the padding",
    "A GRU does not stand still when it reads zeros: it still makes a step. Pack the sequence.",
)
class EncoderReadsZeros(_Reader):
    def forward(self, source, lengths):
        return self.rnn(self.embed(source) * (source != PAD)[..., None])


@wrong(
    "reading the padding and blanking its states afterwards",
    "The backward reader has passed the padding before it reaches the words, so that all its states are spoilt. Pack.",
)
class EncoderBlanksAfterwards(_Reader):
    def forward(self, source, lengths):
        states, last = self.rnn(self.embed(source))
        return states * (source != PAD)[..., None], last


@wrong(
    "packing with enforce_sorted left at True",
    "It asks for sentences sorted by length. Say enforce_sorted=False, and PyTorch sorts and puts them back.",
)
class EncoderWantsSorted(_Reader):
    def forward(self, source, lengths):
        return self.read(source, lengths, enforce_sorted=True)


@wrong(
    "sorting the sentences and never putting them back",
    "The rows come out in another order than they went in. enforce_sorted=False does both for you.",
)
class EncoderForgetsToUnsort(_Reader):
    def forward(self, source, lengths):
        order = torch.argsort(lengths, descending=True, stable=True)
        return self.read(source[order], lengths[order])


@wrong(
    "leaving out total_length",
    "Columns of padding alone are lost, and the source's mask does not fit any more: total_length=source.shape[1].",
)
class EncoderWithoutTotalLength(_Reader):
    def forward(self, source, lengths):
        packed = pack_padded_sequence(self.embed(source), lengths, batch_first=True, enforce_sorted=False)
        states, last = self.rnn(packed)
        return pad_packed_sequence(states, batch_first=True)[0], last


@wrong(
    "taking the last states from the last column",
    "Behind a short sentence the last column is padding, and the backward reader ends at the first word. "
    "The GRU's second output is what you need.",
)
class EncoderLastColumn(_Reader):
    def forward(self, source, lengths):
        states, _ = self.read(source, lengths)
        return states, torch.stack(states[:, -1].chunk(2, dim=-1))


@wrong(
    "turning the last states to (B, 2, H)",
    "Leave `last` as the GRU returns it, (2, B, H): the bridge of the next section takes it so.",
)
class EncoderTurnsLast(_Reader):
    def forward(self, source, lengths):
        states, last = self.read(source, lengths)
        return states, last.transpose(0, 1)


@wrong(
    "adding the two directions up",
    "A word's vector is both states side by side, 2H numbers, as the bidirectional GRU returns them.",
)
class EncoderAddsDirections(_Reader):
    def forward(self, source, lengths):
        states, last = self.read(source, lengths)
        forward, backward = states.chunk(2, dim=-1)
        return forward + backward, last


@wrong("returning the last states first", "The states come first, then the last ones.")
class EncoderSwaps(_Reader):
    def forward(self, source, lengths):
        return self.read(source, lengths)[::-1]


@wrong("a reader that goes forward only", says="missing: rnn.weight_ih_l0_reverse")
class EncoderOneWay(_Reader):
    def __init__(self, words, d_embed, d_hidden):
        super().__init__(words, d_embed, d_hidden, bidirectional=False)

    def forward(self, source, lengths):
        return self.read(source, lengths)


@wrong("returning the packed states", says="states is a tuple")
class EncoderStaysPacked(_Reader):
    def forward(self, source, lengths):
        return self.rnn(pack_padded_sequence(self.embed(source), lengths, batch_first=True, enforce_sorted=False))


@wrong("a GRU without batch_first", says="self.rnn was made without batch_first=True")
class EncoderNotBatchFirst(_Reader):
    def __init__(self, words, d_embed, d_hidden):
        super().__init__(words, d_embed, d_hidden)
        self.rnn = nn.GRU(d_embed, d_hidden, bidirectional=True)

    def forward(self, source, lengths):
        return self.read(source, lengths)


@wrong("a GRU without batch_first that reads padding", says="self.rnn was made without batch_first=True")
class EncoderReadsSideways(EncoderNotBatchFirst):
    def forward(self, source, lengths):
        return self.rnn(self.embed(source))


# 8.2 bridge ---------------------------------------------------------------------------------------------------------

wrong = mistakes_of("bridge")


@wrong(
    "last.view(B, -1)", "The batch is the second axis of `last`, so a view mixes sentences. Take last[-2] and last[-1]."
)
def bridge_view(last, W, b):
    return torch.tanh(last.reshape(last.shape[1], -1)[:, : len(W)] @ W + b)


@wrong(
    "a reshape of the top layer's states",
    "It takes the numbers as they lie in memory: the forward states of all sentences, then the backward ones. Put the "
    "two (B, H) tensors side by side.",
)
def bridge_reshapes_top(last, W, b):
    return torch.tanh(last[-2:].reshape(last.shape[1], -1) @ W + b)


@wrong(
    "taking the bottom layer's states", "Index 0 and 1 are layer 1. The decoder continues the top layer, the last two."
)
def bridge_bottom(last, W, b):
    return torch.tanh(torch.cat([last[0], last[1]], dim=-1) @ W + b)


@wrong("the backward state in front of the forward one", "The first H rows of W belong to the forward state, last[-2].")
def bridge_swapped(last, W, b):
    return torch.tanh(torch.cat([last[-1], last[-2]], dim=-1) @ W + b)


@wrong(
    "all layers of a sentence side by side",
    "With two layers that makes 4H numbers, and W has 2H rows. Only the top layer crosses the bridge.",
)
def bridge_all_layers(last, W, b):
    return torch.tanh(last.transpose(0, 1).reshape(last.shape[1], -1) @ W + b)


@wrong(
    "the backward state twice", "last[-1] is the backward half alone; the forward half of the same layer is last[-2]."
)
def bridge_twice(last, W, b):
    return torch.tanh(torch.cat([last[-1], last[-1]], dim=-1) @ W + b)


@wrong("leaving out the tanh", "The formula has a tanh around the sum.")
def bridge_without_tanh(last, W, b):
    return torch.cat([last[-2], last[-1]], dim=-1) @ W + b


@wrong("leaving out b", "The formula adds b before the tanh.")
def bridge_without_b(last, W, b):
    return torch.tanh(torch.cat([last[-2], last[-1]], dim=-1) @ W)


@wrong("adding b after the tanh", "b stands inside: tanh(both @ W + b).")
def bridge_b_outside(last, W, b):
    return torch.tanh(torch.cat([last[-2], last[-1]], dim=-1) @ W) + b


@wrong(
    "the forward state of the layer below",
    "The four of two layers are: 1 forward, 1 backward, 2 forward, 2 backward. The top ones are the last two.",
)
def bridge_mixed_layers(last, W, b):
    return torch.tanh(torch.cat([last[0], last[-1]], dim=-1) @ W + b)


@wrong(
    "taking the last sentence in place of the last layer",
    "last[:, -1] is the last sentence of the batch. Layers and directions are the first axis: last[-1].",
)
def bridge_wrong_axis(last, W, b):
    return torch.tanh(torch.cat([last[:, -2], last[:, -1]], dim=-1) @ W + b)


# 8.3 attend_step ----------------------------------------------------------------------------------------------------


def _scores(states, keys, W_q, w):
    return torch.tanh((states @ W_q)[:, :, None] + keys[:, None]) @ w


wrong = mistakes_of("attend_step")


@wrong(
    "attention without the mask",
    "Padding gets weight, too. Fill the scores where the mask is False before the softmax.",
)
def attend_without_mask(states, keys, values, mask, W_q, w):
    weights = torch.softmax(_scores(states, keys, W_q, w), dim=-1)
    return weights @ values, weights


@wrong(
    "a mask after the softmax alone",
    "Padding has taken its share by then, and the weights sum to less than 1. Fill the scores first.",
)
def attend_masks_weights(states, keys, values, mask, W_q, w):
    weights = torch.softmax(_scores(states, keys, W_q, w), dim=-1) * mask[:, None]
    return weights @ values, weights


@wrong("scores * mask", "A score of 0 is an ordinary score: e^0 = 1. Padding needs the lowest number there is.")
def attend_zero_scores(states, keys, values, mask, W_q, w):
    weights = torch.softmax(_scores(states, keys, W_q, w) * mask[:, None], dim=-1)
    return weights @ values, weights


@wrong(
    "filling with minus infinity",
    "In a row without any word, softmax then computes 0 / 0. Fill with torch.finfo(scores.dtype).min and multiply the "
    "weights by the mask.",
)
def attend_infinity(states, keys, values, mask, W_q, w):
    weights = torch.softmax(_scores(states, keys, W_q, w).masked_fill(~mask[:, None], -torch.inf), dim=-1)
    return weights @ values, weights


@wrong(
    "a finite fill and nothing else",
    "A row without any word then gets equal weights over the padding. Multiply the weights by the mask as well.",
)
def attend_finite_fill(states, keys, values, mask, W_q, w):
    weights = torch.softmax(_scores(states, keys, W_q, w).masked_fill(~mask[:, None], -1e9), dim=-1)
    return weights @ values, weights


def _attend(scores, values, mask, dim=-1):
    keep = mask[:, None]
    weights = torch.softmax(scores.masked_fill(~keep, torch.finfo(scores.dtype).min), dim=dim) * keep
    return weights @ values, weights


@wrong("the mask turned round", "True means keep: fill where the mask is False, ~mask.")
def attend_inverted(states, keys, values, mask, W_q, w):
    return _attend(_scores(states, keys, W_q, w), values, ~mask)


@wrong(
    "filling the words in place of the padding",
    "masked_fill writes where its argument is True, and the mask is True at words: pass ~mask.",
)
def attend_fills_words(states, keys, values, mask, W_q, w):
    keep = mask[:, None]
    scores = _scores(states, keys, W_q, w)
    weights = torch.softmax(scores.masked_fill(keep, torch.finfo(scores.dtype).min), dim=-1) * keep
    return weights @ values, weights


@wrong(
    "the mask turned round, with minus infinity",
    "True means keep: fill where the mask is False, ~mask. And a fill of minus infinity makes nan of an empty row.",
)
def attend_inverted_infinity(states, keys, values, mask, W_q, w):
    weights = torch.softmax(_scores(states, keys, W_q, w).masked_fill(mask[:, None], -torch.inf), dim=-1)
    return weights @ values, weights


_LOW = "filling padding with a number that is not low enough, such as -100 or -10,000,"
_LOWER = "A real score can lie below it, and then padding wins. torch.finfo(scores.dtype).min is the lowest there is."


@wrong(_LOW, _LOWER)
def attend_fills_hundred(states, keys, values, mask, W_q, w):
    keep = mask[:, None]
    weights = torch.softmax(_scores(states, keys, W_q, w).masked_fill(~keep, -100.0), dim=-1) * keep
    return weights @ values, weights


@wrong(_LOW, _LOWER)
def attend_fills_ten_thousand(states, keys, values, mask, W_q, w):
    keep = mask[:, None]
    weights = torch.softmax(_scores(states, keys, W_q, w).masked_fill(~keep, -1e4), dim=-1) * keep
    return weights @ values, weights


@wrong(
    "one maximum for the whole tensor",
    "A row whose scores lie far below those of another row then has nothing but zeros: 0/0. Each row has a maximum of "
    "its own: amax(dim=-1, keepdim=True).",
)
def attend_one_maximum(states, keys, values, mask, W_q, w):
    scores = _scores(states, keys, W_q, w).masked_fill(~mask[:, None], torch.finfo(states.dtype).min)
    powers = torch.exp(scores - scores.max()) * mask[:, None]
    empty = ~mask.any(dim=-1)[:, None, None]
    weights = powers / (powers.sum(dim=-1, keepdim=True) + empty)
    return weights @ values, weights


@wrong(
    "a maximum that is taken over padding as well",
    "Where padding has the largest score, all real exponentials vanish. Fill the scores before you take the maximum.",
)
def attend_maximum_of_padding(states, keys, values, mask, W_q, w):
    scores = _scores(states, keys, W_q, w)
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True)) * mask[:, None]
    weights = powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)
    return weights @ values, weights


@wrong(
    "adding queries and keys without an axis for the pairs",
    "Queries (B, T, A) and keys (B, S, A) have to meet in (B, T, S, A): states need an axis for S, keys one for T.",
)
def attend_without_pairs(states, keys, values, mask, W_q, w):
    scores = torch.tanh(states @ W_q + keys) @ w
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1) * mask
    return weights @ values, weights


@wrong("a softmax over the steps", "The weights of one step sum to 1 over the source words: dim=-1.")
def attend_wrong_axis(states, keys, values, mask, W_q, w):
    return _attend(_scores(states, keys, W_q, w), values, mask, dim=1)


@wrong("leaving out the tanh", "Without it the query adds the same to every key's score and drops out.")
def attend_without_tanh(states, keys, values, mask, W_q, w):
    return _attend(((states @ W_q)[:, :, None] + keys[:, None]) @ w, values, mask)


@wrong("a dot product in place of the sum", "The score is additive: query plus key, then tanh, then w.")
def attend_dot(states, keys, values, mask, W_q, w):
    return _attend((states @ W_q * w) @ keys.transpose(1, 2), values, mask)


@wrong("averaging the keys", "What comes back is an average of the values, weights @ values.")
def attend_averages_keys(states, keys, values, mask, W_q, w):
    _, weights = _attend(_scores(states, keys, W_q, w), values, mask)
    return weights @ keys, weights


@wrong("returning the weights first", "The context comes first: `return context, weights`.")
def attend_swapped(states, keys, values, mask, W_q, w):
    return _attend(_scores(states, keys, W_q, w), values, mask)[::-1]


# 8.4 masked_cross_entropy: these are also what a learner's own test (8.9) is judged by ------------------------------


def _costs(logits, target):
    """-ln p of the right word at every place, (B, T)."""
    return -torch.log_softmax(logits, dim=-1).gather(-1, target[..., None])[..., 0]


wrong = mistakes_of("masked_cross_entropy")


@wrong(
    "a mean over all places, padding included,",
    "Keep the places with target != PAD, and only then take the mean. (cross_entropy left alone ignores -100, not 0.)",
)
def loss_counts_padding(logits, target):
    return _costs(logits, target).mean()


@wrong(
    "padding set to 0 but still counted",
    "The sum is right, and the division is not: divide by the number of real words, not by B · T.",
)
def loss_divides_by_all(logits, target):
    return torch.where(target != PAD, _costs(logits, target), 0.0).mean()


@wrong(
    "the mean of the sentences' means",
    "A word in a short sentence then counts more. Take one mean over all words of the batch.",
)
def loss_by_sentence(logits, target):
    real = (target != PAD).to(logits.dtype)
    return ((_costs(logits, target) * real).sum(1) / real.sum(1)).mean()


@wrong(
    "the sum over the words, without a division,",
    "It grows with the size of the batch. Divide by the number of real words.",
)
def loss_sum(logits, target):
    return _costs(logits, target)[target != PAD].sum()


@wrong(
    "the sum over the words, divided by the number of sentences",
    "Divide by the number of real words: else long sentences make a large loss.",
)
def loss_per_sentence(logits, target):
    return _costs(logits, target)[target != PAD].sum() / len(target)


@wrong(
    "setting the logits at padding to 0",
    "A place with logits of 0 still has a loss, the logarithm of the number of words. Take the places out of the mean.",
)
def loss_zero_logits(logits, target):
    return _costs(logits * (target != PAD)[..., None], target).mean()


@wrong(
    "computing in 32 bits whatever comes in",
    "Leave out .float() and dtype=torch.float32: the loss has the dtype of the logits.",
)
def loss_to_float32(logits, target):
    return _costs(logits.float(), target)[target != PAD].mean()


@wrong(
    "computing in 64 bits whatever comes in",
    "Leave out .double() and dtype=torch.float64: the loss has the dtype of the logits.",
)
def loss_to_float64(logits, target):
    return _costs(logits.double(), target)[target != PAD].mean()


@wrong(
    "one maximum for the whole batch",
    "Where a place's logits all lie far below those of another place, its exponentials vanish. torch.log_softmax takes "
    "a maximum for each place.",
)
def loss_one_maximum(logits, target):
    powers = torch.exp(logits - logits.max())
    p = (powers / powers.sum(-1, keepdim=True)).gather(-1, target[..., None])[..., 0]
    return -torch.log(p[target != PAD]).mean()


@wrong("leaving out <eos> as well", "Only 0 is padding. A decoder that is never taught to write <eos> never stops.")
def loss_without_eos(logits, target):
    return _costs(logits, target)[(target != PAD) & (target != EOS)].mean()


@wrong(
    "a reshape of the logits where their axes have to be exchanged",
    "reshape(B, words, T) mixes the numbers up. Flatten instead: (B · T, words), or index with the real places.",
)
def loss_reshapes(logits, target):
    B, T, V = logits.shape
    return F.cross_entropy(logits.reshape(B, V, T), target, ignore_index=PAD)


@wrong(
    "a softmax over the places",
    "The probabilities of the words sum to 1 at each place: dim=-1, the last axis of (B, T, words).",
)
def loss_wrong_axis(logits, target):
    costs = -torch.log_softmax(logits, dim=1).gather(-1, target[..., None])[..., 0]
    return costs[target != PAD].mean()


@wrong("softmax twice", "cross_entropy wants the logits as they are; it applies softmax itself.")
def loss_softmax_twice(logits, target):
    real = target != PAD
    return F.cross_entropy(torch.softmax(logits[real], dim=-1), target[real])


@wrong(
    "the logarithm of a softmax, with a small number added,",
    "It cannot see a loss above 20, just where the model is most wrong. Use log_softmax.",
)
def loss_patched(logits, target):
    real = target != PAD
    probabilities = torch.softmax(logits[real], dim=-1).gather(1, target[real][:, None])
    return -torch.log(probabilities + 1e-9).mean()


@wrong(
    "the logarithm of a softmax",
    "A very small probability is rounded to 0, and its logarithm is infinite. Use log_softmax (lesson 02).",
)
def loss_log_of_softmax(logits, target):
    real = target != PAD
    probabilities = torch.softmax(logits[real], dim=-1).gather(1, target[real][:, None])
    return -torch.log(probabilities).mean()


@wrong("exponentials without a shift", "e^500 overflows. torch.log_softmax subtracts the maximum first.")
def loss_overflows(logits, target):
    powers = torch.exp(logits)
    costs = torch.log(powers.sum(-1)) - logits.gather(-1, target[..., None])[..., 0]
    return costs[target != PAD].mean()


@wrong("the mean of ln p, without the minus,", "A loss falls when p rises: put a minus before it.")
def loss_negative(logits, target):
    return -_costs(logits, target)[target != PAD].mean()


@wrong(
    "a tensor with one number in place of one without axes",
    "Take the mean over everything: .mean() without dim, no keepdim.",
)
def loss_keeps_an_axis(logits, target):
    return _costs(logits, target)[target != PAD].mean(dim=0, keepdim=True)


@wrong(
    "writing zeros into the caller's logits",
    "An assignment into `logits` changes the tensor that was passed in. Keep the real places in a tensor of your own.",
)
def loss_in_place(logits, target):
    logits[target == PAD] = 0
    return _costs(logits, target)[target != PAD].mean()


# 8.5 greedy_decode --------------------------------------------------------------------------------------------------


def step(memory, words, state):
    return memory[state, words], words


def _go_on(words, state, chosen, after):
    """What goes into the next step: the words just chosen, and the state that came with them."""
    return chosen, after


def _decode(memory, state, limit, following=_go_on, pick=torch.argmax, first=BOS):
    """Rows of `limit` words each, not cut."""
    words = torch.full((len(state),), first)
    written = []
    for _ in range(limit):
        scores, after = step(memory, words, state)
        chosen = pick(scores, dim=-1)
        written.append(chosen)
        words, state = following(words, state, chosen, after)
    return torch.stack(written, dim=1).tolist()


def _cut(rows):
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


wrong = mistakes_of("greedy_decode")


@wrong("going on after EOS", "What stands behind the first EOS of a sentence is thrown away: row[: row.index(EOS)].")
def greedy_never_cuts(memory, state, limit):
    return _decode(memory, state, limit)


@wrong("leaving EOS in the sentence", "Cut before EOS, not behind it.")
def greedy_keeps_eos(memory, state, limit):
    return [row[: row.index(EOS) + 1] if EOS in row else row for row in _decode(memory, state, limit)]


@wrong(
    "dropping EOS and keeping what comes after it", "The sentence is over at its first EOS: cut there, do not filter."
)
def greedy_filters(memory, state, limit):
    return [[w for w in row if w != EOS] for row in _decode(memory, state, limit)]


@wrong(
    "starting every step from the same state",
    "What `step` returns goes into the next call: give its second result the name `state` as well.",
)
def greedy_forgets_state(memory, state, limit):
    return _cut(_decode(memory, state, limit, lambda words, state, chosen, after: (chosen, state)))


@wrong("handing BOS to every step", "Each step reads the words that were just chosen, not BOS again.")
def greedy_feeds_bos(memory, state, limit):
    return _cut(_decode(memory, state, limit, lambda words, state, chosen, after: (words, after)))


@wrong(
    "stopping all sentences when the first one ends",
    "Sentences end at different times. Stop when all have ended, or at the limit.",
)
def greedy_stops_early(memory, state, limit):
    rows = _decode(memory, state, limit)
    ends = [row.index(EOS) for row in rows if EOS in row]
    return [row[: min(ends)] if ends else row for row in rows]


@wrong("BOS in front of every sentence", "BOS starts the loop and is not part of the sentence.")
def greedy_returns_bos(memory, state, limit):
    return [[BOS, *row] for row in _cut(_decode(memory, state, limit))]


@wrong("one word less than the limit", "range(limit) makes `limit` rounds, and each writes one word.")
def greedy_limit_minus_one(memory, state, limit):
    return [row[: limit - 1] for row in _cut(_decode(memory, state, limit))]


@wrong("the least probable word", "argmax, not argmin: log-probabilities are negative, and the largest is near 0.")
def greedy_argmin(memory, state, limit):
    return _cut(_decode(memory, state, limit, pick=torch.argmin))


@wrong("starting from padding", "The first word that the decoder reads is BOS.")
def greedy_starts_from_pad(memory, state, limit):
    return _cut(_decode(memory, state, limit, first=PAD))


# 8.6 beam_search ----------------------------------------------------------------------------------------------------


def _ended(h):
    return h[1][-1] == EOS


def _total(h):
    return h[0]


def _rate(h):
    return h[0] / (len(h[1]) - 1)


def _answer(h):
    return [w for w in h[1][1:] if w != EOS], _rate(h)


def _grow(memory, h, beam):
    """The `beam` best extensions of one hypothesis (total, words, state)."""
    total, words, before = h
    scores, after = step(memory, torch.tensor(words[-1:]), before)
    best, place = scores[0].topk(beam)
    return [(total + s, [*words, w], after) for s, w in zip(best.tolist(), place.tolist(), strict=True)]


def _extended(memory, hypotheses, beam, grow=_grow):
    """Finished hypotheses as they are, and the extensions of the others."""
    grown = [h for h in hypotheses if _ended(h)]
    for h in hypotheses:
        grown += [] if _ended(h) else grow(memory, h, beam)
    return grown


def _largest(hypotheses, beam, order=_total):
    return sorted(hypotheses, key=order, reverse=True)[:beam]


def _search(memory, state, beam, limit, grow=_grow, order=_total):
    """The hypotheses that are left after all rounds."""
    hypotheses = [(0.0, [BOS], state)]
    for _ in range(limit):
        hypotheses = _largest(_extended(memory, hypotheses, beam, grow), beam, order)
    return hypotheses


def _search_on(memory, state, beam, limit):
    """The same, but finished hypotheses are extended like all others."""
    hypotheses = [(0.0, [BOS], state)]
    for _ in range(limit):
        hypotheses = _largest([g for h in hypotheses for g in _grow(memory, h, beam)], beam)
    return hypotheses


wrong = mistakes_of("beam_search")


@wrong(
    "greedy decoding",
    "Each hypothesis has to be extended by several words, and several hypotheses have to survive a round.",
)
def beam_greedy(memory, state, beam, limit):
    return _answer(_search(memory, state, 1, limit)[0])


@wrong(
    "one extension for each hypothesis",
    "A hypothesis may have two good continuations. Extend it by its `beam` best words, then keep the best of all.",
)
def beam_one_child(memory, state, beam, limit):
    hypotheses = _grow(memory, (0.0, [BOS], state), beam)
    for _ in range(limit - 1):
        hypotheses = _extended(memory, hypotheses, 1)
    return _answer(max(hypotheses, key=_rate))


@wrong(
    "choosing the largest total, not the largest per word,",
    "Every further word makes a sentence less probable. At the end, divide each total by its number of words.",
)
def beam_total_at_the_end(memory, state, beam, limit):
    return _answer(max(_search(memory, state, beam, limit), key=_total))


@wrong("returning the total", "The score is the total divided by the number of words, EOS counted.")
def beam_returns_total(memory, state, beam, limit):
    best = max(_search(memory, state, beam, limit), key=_rate)
    return _answer(best)[0], best[0]


@wrong("comparing per word in every round", "In the rounds the totals decide. The division comes once, at the end.")
def beam_normalises_in_rounds(memory, state, beam, limit):
    return _answer(max(_search(memory, state, beam, limit, order=_rate), key=_rate))


@wrong(
    "one state for all hypotheses",
    "Every hypothesis goes on from its own state: keep it beside its words, and hand it to `step`.",
)
def beam_one_state(memory, state, beam, limit):
    def grow(memory, h, beam):
        return _grow(memory, (h[0], h[1], state), beam)

    return _answer(max(_search(memory, state, beam, limit, grow), key=_rate))


@wrong(
    "extending finished hypotheses",
    "One that ends in EOS stays as it is, with its total, and takes part in the sorting.",
)
def beam_extends_finished(memory, state, beam, limit):
    return _answer(max(_search_on(memory, state, beam, limit), key=_rate))


@wrong(
    "extending finished hypotheses and cutting at the first EOS",
    "What comes after EOS has lowered the total. One that ends in EOS stays as it is, and takes part in the sorting.",
)
def beam_extends_and_cuts(memory, state, beam, limit):
    best = max(_search_on(memory, state, beam, limit), key=_rate)
    words = best[1][1:]
    return words[: [*words, EOS].index(EOS)], _rate(best)


@wrong("leaving EOS in the words", "EOS is counted in the division, but it is not a word to be shown.")
def beam_keeps_eos(memory, state, beam, limit):
    best = max(_search(memory, state, beam, limit), key=_rate)
    return best[1][1:], _rate(best)


@wrong(
    "dividing by the number of words without EOS", "EOS was chosen, at the price of its own logarithm, so it counts."
)
def beam_does_not_count_eos(memory, state, beam, limit):
    def rate(h):
        return h[0] / max(1, len(h[1]) - 1 - _ended(h))

    best = max(_search(memory, state, beam, limit), key=rate)
    return _answer(best)[0], rate(best)


@wrong("counting BOS as a word", "BOS was given, not chosen: divide by len(words) - 1 if BOS stands in the list.")
def beam_counts_bos(memory, state, beam, limit):
    def rate(h):
        return h[0] / len(h[1])

    best = max(_search(memory, state, beam, limit), key=rate)
    return _answer(best)[0], rate(best)


@wrong(
    "stopping when the most probable hypothesis is finished",
    "It has the largest total, but one that goes on may have more per word. Go on for all rounds.",
)
def beam_stops_at_the_best(memory, state, beam, limit):
    hypotheses = [(0.0, [BOS], state)]
    for _ in range(limit):
        hypotheses = _largest(_extended(memory, hypotheses, beam), beam)
        if _ended(hypotheses[0]):
            break
    return _answer(max(hypotheses, key=_rate))


@wrong(
    "stopping at the first finished hypothesis",
    "Another one, unfinished still, may turn out better. Go on for all rounds.",
)
def beam_stops_early(memory, state, beam, limit):
    hypotheses = [(0.0, [BOS], state)]
    for _ in range(limit):
        hypotheses = _largest(_extended(memory, hypotheses, beam), beam)
        if any(map(_ended, hypotheses)):
            hypotheses = [h for h in hypotheses if _ended(h)]
            break
    return _answer(max(hypotheses, key=_rate))


@wrong(
    "adding probabilities",
    "Probabilities are multiplied, so their *logarithms* are added: use the scores as they come.",
)
def beam_adds_probabilities(memory, state, beam, limit):
    def grow(memory, h, beam):
        return [(h[0] + math.exp(total - h[0]), words, after) for total, words, after in _grow(memory, h, beam)]

    return _answer(max(_search(memory, state, beam, limit, grow), key=_rate))


@wrong("ranking by the last word alone", "A hypothesis is as probable as all its words together: total + s, not s.")
def beam_last_word(memory, state, beam, limit):
    def grow(memory, h, beam):
        return _grow(memory, (0.0, h[1], h[2]), beam)

    return _answer(max(_search(memory, state, beam, limit, grow), key=_rate))


@wrong(
    "keeping the least probable ones", "sorted puts the smallest first. The best totals are the largest: reverse=True."
)
def beam_wrong_order(memory, state, beam, limit):
    return _answer(max(_search(memory, state, beam, limit, order=lambda h: -h[0]), key=_rate))


# With a list beside the beam for the finished hypotheses there are two questions: who goes on, and when is it over?


def _of_the_best(grown, done, beam):
    """Finished ones leave the `beam` best, and their places stay empty."""
    best = grown[:beam]
    return [h for h in best if _ended(h)], [h for h in best if not _ended(h)]


def _of_all(grown, done, beam):
    """Finished ones leave, whatever their rank, and `beam` others go on."""
    return [h for h in grown if _ended(h)], [h for h in grown if not _ended(h)][:beam]


def _of_fewer(grown, done, beam):
    """Each finished one makes the beam narrower for good."""
    return _of_the_best(grown, done, beam - len(done))


def _never(done, beam):
    return False


def _enough(done, beam):
    return len(done) >= beam


def _apart(memory, state, beam, limit, split=_of_the_best, over=_never):
    """Returns the finished hypotheses and those that still go on."""
    going, done = [(0.0, [BOS], state)], []
    for _ in range(limit):
        grown = _largest([g for h in going for g in _grow(memory, h, beam)], None)
        ended, going = split(grown, done, beam)
        done += ended
        if not going or over(done, beam):
            break
    return done, going


_BESIDE = "a list beside the beam for the finished hypotheses"
_COMPETE = (
    "Their places go to others then. Here a finished one stays among the `beam`: it takes a place, competes with its "
    "total in each round, and can be pushed out."
)


@wrong(_BESIDE, _COMPETE)
def beam_aside(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit)
    return _answer(max(done + going, key=_rate))


@wrong(_BESIDE, _COMPETE)
def beam_aside_ended(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit)
    return _answer(max(done or going, key=_rate))


@wrong(_BESIDE, _COMPETE)
def beam_aside_refilled(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit, _of_all)
    return _answer(max(done + going, key=_rate))


@wrong(_BESIDE, _COMPETE)
def beam_aside_refilled_ended(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit, _of_all)
    return _answer(max(done or going, key=_rate))


_ENOUGH = "a list beside the beam, and an end once `beam` hypotheses have finished,"


@wrong(_ENOUGH, _COMPETE)
def beam_aside_enough(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit, _of_the_best, _enough)
    return _answer(max(done + going, key=_rate))


@wrong(_ENOUGH, _COMPETE)
def beam_aside_enough_ended(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit, _of_the_best, _enough)
    return _answer(max(done or going, key=_rate))


@wrong(_ENOUGH, _COMPETE)
def beam_aside_refilled_enough(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit, _of_all, _enough)
    return _answer(max(done + going, key=_rate))


@wrong(_ENOUGH, _COMPETE)
def beam_aside_refilled_enough_ended(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit, _of_all, _enough)
    return _answer(max(done or going, key=_rate))


_NARROW = "a beam that gets narrower with each finished hypothesis"
_SAFE = "A finished one keeps its place only as long as its total is among the `beam` largest. Sort it with the others."


@wrong(_NARROW, _SAFE)
def beam_narrows(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit, _of_fewer, _enough)
    return _answer(max(done + going, key=_rate))


@wrong(_NARROW, _SAFE)
def beam_narrows_ended(memory, state, beam, limit):
    done, going = _apart(memory, state, beam, limit, _of_fewer, _enough)
    return _answer(max(done or going, key=_rate))


# 8.7 alignment_error_rate -------------------------------------------------------------------------------------------


def _counts(found, gold):
    both = sum(len(set(a) & set(g)) for a, g in zip(found, gold, strict=True))
    return both, sum(map(len, found)), sum(map(len, gold))


wrong = mistakes_of("alignment_error_rate")


@wrong(
    "1 minus the share of found links that are gold",
    "Links that are missing then cost nothing. Divide by the links of both sides together.",
)
def aer_precision(found, gold):
    both, mine, _ = _counts(found, gold)
    return 1 - both / max(mine, 1)


@wrong(
    "1 minus the share of gold links that are found",
    "Linking everything with everything would then be perfect. Divide by the links of both sides together.",
)
def aer_recall(found, gold):
    both, _, theirs = _counts(found, gold)
    return 1 - both / theirs


@wrong(
    "leaving out the factor 2",
    "A link on both sides is counted twice below the line, once in each list; so it counts twice above it.",
)
def aer_without_two(found, gold):
    both, mine, theirs = _counts(found, gold)
    return 1 - both / (mine + theirs)


@wrong(
    "dividing by the union of the links",
    "That is another measure (Jaccard's). Here the sizes of both lists are added, common links counted twice.",
)
def aer_union(found, gold):
    both, mine, theirs = _counts(found, gold)
    return 1 - both / (mine + theirs - both)


@wrong(
    "the mean of the sentences' error rates",
    "A link in a short sentence then counts more. Add the counts up first, and divide once.",
)
def aer_by_sentence(found, gold):
    rates = [1 - 2 * len(set(a) & set(g)) / max(1, len(a) + len(g)) for a, g in zip(found, gold, strict=True)]
    return sum(rates) / len(rates)


@wrong(
    "all sentences thrown together",
    "The link (0, 0) of one sentence is not the link (0, 0) of another. Compare sentence by sentence.",
)
def aer_pooled(found, gold):
    mine, theirs = {x for a in found for x in a}, {x for g in gold for x in g}
    return 1 - 2 * len(mine & theirs) / (len(mine) + len(theirs))


@wrong("the part that agrees, not the error", "It is 1 *minus* that part: 0 is perfect.")
def aer_agreement(found, gold):
    both, mine, theirs = _counts(found, gold)
    return 2 * both / (mine + theirs)


@wrong(
    "links without a direction",
    "(1, 0) joins the second source word to the first target word; (0, 1) is another link. Compare them as they are.",
)
def aer_undirected(found, gold):
    def turned(rows):
        return [[tuple(sorted(link)) for link in row] for row in rows]

    both, _, _ = _counts(turned(found), turned(gold))
    return 1 - 2 * both / sum(len(a) + len(g) for a, g in zip(found, gold, strict=True))


@wrong("comparing links by their place in the list", "The order of the links in a list means nothing. Use sets.")
def aer_by_place(found, gold):
    both = sum(x == y for a, g in zip(found, gold, strict=True) for x, y in zip(a, g, strict=False))
    return 1 - 2 * both / sum(len(a) + len(g) for a, g in zip(found, gold, strict=True))


# 8.8 train ----------------------------------------------------------------------------------------------------------


class _Toy(nn.Module):
    def __init__(self, words=7):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(words, words))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, target_in):
        return self.table[target_in] * 8 + self.bias


def _loss(model, read, said):
    return F.cross_entropy(model(read).flatten(0, 1), said.flatten(), ignore_index=PAD)


def _clip(model):
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def _move(model, optimizer, loss, rate, clip=_clip):
    """The right update for a loss."""
    optimizer.zero_grad()
    loss.backward()
    clip(model)
    optimizer.param_groups[0]["lr"] = rate
    optimizer.step()
    return loss.item()


def _updates(batches, rates, update, make=torch.optim.Adam):
    """One call of ``update(model, optimizer, batch, rate)`` for each batch; it returns the loss."""
    model = _Toy()
    optimizer = make(model.parameters(), lr=0.001)
    losses = [update(model, optimizer, batch, rate) for batch, rate in zip(batches, rates, strict=True)]
    return losses, model.state_dict()


def _right_update(model, optimizer, batch, rate):
    return _move(model, optimizer, _loss(model, *batch[2:]), rate)


wrong = mistakes_of("train")


@wrong(
    "gradients that are never cleared",
    "backward() adds to the gradients that are there. Call optimizer.zero_grad() before it.",
)
def train_keeps_gradients(name, batches, rates):
    def update(model, optimizer, batch, rate):
        loss = _loss(model, *batch[2:])
        loss.backward()
        _clip(model)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        return loss.item()

    return _updates(batches, rates, update)


@wrong(
    "a model that no update moves",
    "Is there a step() in each round, and are the gradients still there when it comes? The order is zero_grad, "
    "backward, clip, step.",
)
def train_clears_late(name, batches, rates):
    def update(model, optimizer, batch, rate):
        loss = _loss(model, *batch[2:])
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        return loss.item()

    return _updates(batches, rates, update)


@wrong(
    "gradients that are not clipped in time",
    "Clipping belongs between `backward` and `step`: before, there are no gradients, and after, it is too late.",
)
def train_without_clipping(name, batches, rates):
    def update(model, optimizer, batch, rate):
        return _move(model, optimizer, _loss(model, *batch[2:]), rate, clip=lambda model: None)

    return _updates(batches, rates, update)


@wrong(
    "clipping each number by itself",
    "clip_grad_value_ changes the direction of the gradient. clip_grad_norm_ scales all of it down.",
)
def train_clips_numbers(name, batches, rates):
    def clip(model):
        nn.utils.clip_grad_value_(model.parameters(), 1.0)

    def update(model, optimizer, batch, rate):
        return _move(model, optimizer, _loss(model, *batch[2:]), rate, clip)

    return _updates(batches, rates, update)


@wrong(
    "clipping each parameter by itself",
    "The gradients of all parameters together get length 1 at most, by one common factor: one call of "
    "clip_grad_norm_ with model.parameters().",
)
def train_clips_each_parameter(name, batches, rates):
    def clip(model):
        for parameter in model.parameters():
            nn.utils.clip_grad_norm_([parameter], 1.0)

    def update(model, optimizer, batch, rate):
        return _move(model, optimizer, _loss(model, *batch[2:]), rate, clip)

    return _updates(batches, rates, update)


@wrong(
    "gradients that are always scaled to length 1",
    "Only gradients longer than 1 are scaled down; shorter ones stay as they are.",
)
def train_always_scales(name, batches, rates):
    def clip(model):
        parameters = list(model.parameters())
        length = torch.sqrt(sum((p.grad**2).sum() for p in parameters))
        for p in parameters:
            p.grad /= length

    def update(model, optimizer, batch, rate):
        return _move(model, optimizer, _loss(model, *batch[2:]), rate, clip)

    return _updates(batches, rates, update)


@wrong("the first rate for every update", 'Set optimizer.param_groups[0]["lr"] = rate in each round, before the step.')
def train_one_rate(name, batches, rates):
    return _updates(batches, [rates[0]] * len(rates), _right_update)


@wrong(
    "a rate that is never set",
    "Adam then uses its own, 0.001, all the time. Write the rate of this round into the optimiser before its step.",
)
def train_never_sets_the_rate(name, batches, rates):
    return _updates(batches, [0.001] * len(rates), _right_update)


@wrong(
    "a rate that is set after the step",
    "Each update then uses the rate of the one before, and the first uses Adam's own, 0.001. Set it before the step.",
)
def train_sets_the_rate_late(name, batches, rates):
    return _updates(batches, [0.001, *rates[:-1]], _right_update)


@wrong("losses that are still tensors", says="losses holds tensors")
def train_keeps_tensors(name, batches, rates):
    def update(model, optimizer, batch, rate):
        loss = _loss(model, *batch[2:])
        _move(model, optimizer, loss, rate)
        return loss

    return _updates(batches, rates, update)


@wrong(
    "a new optimiser in every round", "Adam remembers the gradients of earlier batches. Make it once, before the loop."
)
def train_new_optimizer(name, batches, rates):
    def update(model, _, batch, rate):
        return _right_update(model, torch.optim.Adam(model.parameters()), batch, rate)

    return _updates(batches, rates, update)


@wrong("plain gradient descent", "Use torch.optim.Adam: it has a step size of its own for every parameter.")
def train_sgd(name, batches, rates):
    return _updates(batches, rates, _right_update, make=torch.optim.SGD)


@wrong(
    "a decoder that reads target_out",
    "It would read the very word it should say. With teacher forcing it reads target_in.",
)
def train_reads_target_out(name, batches, rates):
    def update(model, optimizer, batch, rate):
        return _move(model, optimizer, _loss(model, batch[3], batch[3]), rate)

    return _updates(batches, rates, update)


@wrong(
    "a loss against target_in",
    "The word to be said is that of target_out; target_in is what the decoder has read already.",
)
def train_says_target_in(name, batches, rates):
    def update(model, optimizer, batch, rate):
        return _move(model, optimizer, _loss(model, batch[2], batch[2]), rate)

    return _updates(batches, rates, update)


@wrong(
    "the loss after the update",
    "The loss of a batch is noted as it was before its step: keep loss.item() of the loss that was differentiated.",
)
def train_notes_the_loss_late(name, batches, rates):
    def update(model, optimizer, batch, rate):
        _right_update(model, optimizer, batch, rate)
        return _loss(model, *batch[2:]).item()

    return _updates(batches, rates, update)


@wrong("returning the model itself", says="learned is no dictionary of parameters")
def train_returns_the_model(name, batches, rates):
    losses, learned = _updates(batches, rates, _right_update)
    model = _Toy()
    model.load_state_dict(learned)
    return losses, model


@wrong("returning the losses alone", says="it should return 2 things: losses and learned")
def train_losses_only(name, batches, rates):
    return _updates(batches, rates, _right_update)[0]


# 8.9 test_masked_cross_entropy --------------------------------------------------------------------------------------


def _trusted(logits, target):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


wrong = mistakes_of("test_masked_cross_entropy")


@wrong("a test that accepts everything", says="it lets 3 of 3 wrong implementations through")
def test_accepts_everything(implementation):
    implementation(torch.zeros(1, 2, 3), torch.tensor([[1, 2]]))


@wrong("a test without padding", says="nothing was raised for: counts_padding")
def test_without_padding(implementation):
    logits, target = torch.randn(2, 3, 4), torch.tensor([[1, 2, 3], [3, 2, 1]])
    torch.testing.assert_close(implementation(logits, target), _trusted(logits, target))


@wrong("a test of equally long sentences", says="nothing was raised for: by_sentence")
def test_equally_long(implementation):
    logits, target = 500 * torch.randn(2, 3, 4), torch.tensor([[1, 2, 0], [3, 2, 0]])
    torch.testing.assert_close(implementation(logits, target), _trusted(logits, target))


@wrong("a test of small logits", says="nothing was raised for: overflows")
def test_small_logits(implementation):
    logits, target = torch.randn(2, 3, 4), torch.tensor([[1, 2, 3], [3, 0, 0]])
    torch.testing.assert_close(implementation(logits, target), _trusted(logits, target))


@wrong("a test of one sentence", says="nothing was raised for: by_sentence")
def test_one_sentence(implementation):
    logits, target = 500 * torch.randn(1, 3, 4), torch.tensor([[1, 2, 0]])
    torch.testing.assert_close(implementation(logits, target), _trusted(logits, target))


@wrong("a test of exact equality", says="it rejects a right implementation: word_by_word")
def test_exact(implementation):
    logits = torch.sin(torch.arange(1200.0)).reshape(4, 30, 10)
    target = torch.arange(120).reshape(4, 30) % 10
    assert implementation(logits, target).item() == _trusted(logits.double(), target).item()


@wrong("a test that asks for a Python number", says="it rejects a right implementation")
def test_wants_a_number(implementation):
    assert isinstance(implementation(torch.zeros(1, 2, 3), torch.tensor([[1, 0]])), float)


@wrong("a test without a batch", says="it rejects a right implementation")
def test_without_a_batch(implementation):
    loss = implementation(torch.zeros(2, 3), torch.tensor([1, 2]))
    torch.testing.assert_close(loss, torch.tensor(3.0).log())


@wrong("a test that swallows its own verdict", says="it lets 3 of 3 wrong implementations through")
def test_swallows(implementation):
    logits, target = 500 * torch.randn(2, 3, 4), torch.tensor([[1, 2, 3], [3, 0, 0]])
    try:
        torch.testing.assert_close(implementation(logits, target), _trusted(logits, target))
    except AssertionError as error:
        str(error)


# 8.10 counterexample ------------------------------------------------------------------------------------------------

wrong = mistakes_of("counterexample")


@wrong("a sentence of one word", says="both implementations give the same")
def counterexample_one_word():
    return torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.tensor([1])


@wrong("backward states that are all equal", says="both implementations give the same")
def counterexample_equal_states():
    return torch.tensor([[[1.0, 2.0], [3.0, 2.0]]]), torch.tensor([2])


@wrong("states of zero", says="both implementations give the same")
def counterexample_zeros():
    return torch.zeros(2, 3, 4), torch.tensor([3, 2])


@wrong("padding alone", says="both implementations give the same")
def counterexample_only_padding():
    return torch.arange(12.0).reshape(2, 3, 2), torch.tensor([1, 1])


@wrong("a length beyond the sentence", says="cannot take these inputs")
def counterexample_too_long():
    return torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.tensor([3])


@wrong("a length of 0", says="cannot take these inputs")
def counterexample_empty():
    return torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.tensor([0])


@wrong("states that cannot be cut in two halves", says="cannot take these inputs")
def counterexample_odd():
    return torch.tensor([[[1.0], [3.0]]]), torch.tensor([2])


@wrong("a list of lengths", says="the second is a list")
def counterexample_list():
    return torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), [2]


@wrong("states without a batch axis", says="the first tensor should have the axes")
def counterexample_no_batch():
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([2])


@wrong("states that are not finite", says="has no finite result on these inputs")
def counterexample_infinite():
    return torch.tensor([[[1.0, torch.inf], [3.0, 4.0]]]), torch.tensor([2])


# 8.11 repaired_summary ----------------------------------------------------------------------------------------------


def _halves(states):
    half = states.shape[-1] // 2
    return states[..., :half], states[..., half:], torch.arange(len(states))


wrong = mistakes_of("repaired_summary")


@wrong("both halves at the last word", "That is the bug itself. The backward reader ends at the first word.")
def repaired_unchanged(states, lengths):
    return states[torch.arange(len(states)), lengths - 1]


@wrong("both halves at the first word", "Now the forward half is wrong: that reader ends at the sentence's last word.")
def repaired_first_word(states, lengths):
    return states[:, 0]


@wrong(
    "the last column in place of the last word",
    "Behind a short sentence stands padding. The forward reader ends at lengths - 1.",
)
def repaired_last_column(states, lengths):
    forward, backward, _ = _halves(states)
    return torch.cat([forward[:, -1], backward[:, 0]], dim=-1)


@wrong(
    "the halves exchanged",
    "The first H numbers belong to the forward reader, who ends at the last word; the rest to the backward one.",
)
def repaired_exchanged(states, lengths):
    forward, backward, rows = _halves(states)
    return torch.cat([forward[:, 0], backward[rows, lengths - 1]], dim=-1)


@wrong("the word behind the last one", "Words are counted from 0: the last of n words stands at n - 1.")
def repaired_off_by_one(states, lengths):
    forward, backward, rows = _halves(states)
    return torch.cat([forward[rows, lengths.clamp(max=states.shape[1] - 1)], backward[:, 0]], dim=-1)


@wrong(
    "the length of the first sentence for all",
    "Each sentence has a length of its own: index with `rows` and `lengths - 1` together.",
)
def repaired_one_length(states, lengths):
    forward, backward, _ = _halves(states)
    return torch.cat([forward[:, int(lengths[0]) - 1], backward[:, 0]], dim=-1)


@wrong("the backward half in front", "The order stays as it was: forward half first.")
def repaired_order(states, lengths):
    forward, backward, rows = _halves(states)
    return torch.cat([backward[:, 0], forward[rows, lengths - 1]], dim=-1)


@wrong(
    "a slice where two indices belong together",
    "states[:, lengths - 1] takes every length from every sentence. states[rows, lengths - 1] pairs them.",
)
def repaired_all_pairs(states, lengths):
    forward, backward, _ = _halves(states)
    return torch.cat([forward[:, lengths - 1][:, 0], backward[:, lengths - 1][:, 0]], dim=-1)


@wrong(
    "the mean over all words",
    "A summary by the readers' ends was asked for. (A mean over a padded sentence would count the padding, too.)",
)
def repaired_mean(states, lengths):
    return states.mean(dim=1)
