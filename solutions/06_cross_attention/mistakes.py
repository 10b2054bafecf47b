"""Wrong answers to the exercises of lesson 06, each with what its author needs to read."""

import math

import torch
from torch import nn

from attention_course.authoring import mistakes_of


def _attend(q, k, v, memory_mask, divisor=None):
    """Right attention, for mistakes that lie elsewhere."""
    keep = memory_mask[:, None, None]
    scores = q @ k.transpose(-2, -1) / (math.sqrt(q.shape[-1]) if divisor is None else divisor)
    weights = torch.softmax(scores.masked_fill(~keep, torch.finfo(scores.dtype).min), dim=-1) * keep
    return weights @ v, weights


# 6.1 attend ---------------------------------------------------------------------------------------------------------

wrong = mistakes_of("attend")


@wrong("leaving the mask out", "Padding has keys like everything else, and takes weight. Mask it before the softmax.")
def attend_unmasked(q, k, v, memory_mask):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights


@wrong(
    "masking what is True",
    "In this course True means keep. masked_fill overwrites where ITS mask is True, so it wants ~keep.",
)
def attend_inverted(q, k, v, memory_mask):
    return _attend(q, k, v, ~memory_mask)


def _attend_hiding_words(q, k, memory_mask, fill):
    keep = memory_mask[:, None, None]
    return torch.softmax((q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(keep, fill), dim=-1)


_HIDING = ("hiding the real tokens", "masked_fill fills where its condition is True: ~memory_mask.")


@wrong(*_HIDING)
def attend_hides_words(q, k, v, memory_mask):
    weights = _attend_hiding_words(q, k, memory_mask, torch.finfo(q.dtype).min) * memory_mask[:, None, None]
    return weights @ v, weights


@wrong(*_HIDING)
def attend_hides_words_unemptied(q, k, v, memory_mask):
    weights = _attend_hiding_words(q, k, memory_mask, torch.finfo(q.dtype).min)
    return weights @ v, weights


@wrong(*_HIDING)
def attend_hides_words_by_infinity(q, k, v, memory_mask):
    weights = _attend_hiding_words(q, k, memory_mask, -torch.inf)
    return weights @ v, weights


@wrong(*_HIDING)
def attend_hides_words_by_too_low(q, k, v, memory_mask):
    weights = _attend_hiding_words(q, k, memory_mask, -1e9) * memory_mask[:, None, None]
    return weights @ v, weights


@wrong(
    "multiplying the scores by the mask, and the weights too,",
    "A score of 0 is an ordinary score: e^0 = 1, and padding has had its share of the sum. Before the softmax, its "
    "score has to be very low: masked_fill.",
)
def attend_scores_and_weights_times_mask(q, k, v, memory_mask):
    keep = memory_mask[:, None, None]
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) * keep, dim=-1) * keep
    return weights @ v, weights


@wrong(
    "laying the mask on the rows, the queries,",
    "The memory is what is looked at: its mask belongs to the columns, (B, 1, 1, Tk). On (B, 1, Tk, 1) it runs only "
    "where both sentences are equally long, and silences words that ask.",
)
def attend_mask_on_rows(q, k, v, memory_mask):
    keep = memory_mask[:, None, :, None]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~keep, torch.finfo(scores.dtype).min), dim=-1) * keep
    return weights @ v, weights


@wrong(
    "multiplying the scores by the mask",
    "A score of 0 is an ordinary score: e^0 = 1. To leave a token out, its score has to be very low.",
)
def attend_scores_times_mask(q, k, v, memory_mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) * memory_mask[:, None, None]
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@wrong(
    "masking after the softmax and not before",
    "The padding has had its share of the sum by then, and the rows no longer sum to 1. Mask the scores.",
)
def attend_masked_late(q, k, v, memory_mask):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) * memory_mask[:, None, None]
    return weights @ v, weights


@wrong(
    "a softmax over nothing but -inf, where the memory is empty,",
    "Fill with a finite low number, torch.finfo(scores.dtype).min, and multiply the weights by the mask afterwards.",
)
def attend_empty_nan(q, k, v, memory_mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~memory_mask[:, None, None], -torch.inf), dim=-1)
    return weights @ v, weights


@wrong(
    "sharing the weight equally where the memory is empty",
    "With every score equally low, softmax shares evenly, among padding. Multiply the weights by the mask.",
)
def attend_empty_uniform(q, k, v, memory_mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~memory_mask[:, None, None], torch.finfo(scores.dtype).min), dim=-1)
    return weights @ v, weights


@wrong(
    "filling with a number that half precision has not, without emptying the rows of an empty memory,",
    "float16 ends at -65504: take torch.finfo(scores.dtype).min. And with every score equally low, softmax shares "
    "evenly, among padding. Multiply the weights by the mask.",
)
def attend_empty_uniform_too_low(q, k, v, memory_mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~memory_mask[:, None, None], -1e9), dim=-1)
    return weights @ v, weights


@wrong(
    "filling with a number that half precision has not",
    "float16 ends at -65504, so -1e9 is not among its numbers. torch.finfo(scores.dtype).min is the lowest of its "
    "type.",
)
def attend_too_low(q, k, v, memory_mask):
    keep = memory_mask[:, None, None]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~keep, -1e9), dim=-1) * keep
    return weights @ v, weights


@wrong(
    "filling with a number such as -100 or -10000",
    "Scores of real words may lie lower than that, and then the padding wins. Take the lowest number of the dtype.",
)
def attend_finite_fill(q, k, v, memory_mask):
    keep = memory_mask[:, None, None]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~keep, -1e4), dim=-1) * keep
    return weights @ v, weights


@wrong(
    "subtracting one maximum for the whole tensor",
    "A row that lies far below the largest score of all becomes 0 in every place: each row has a maximum of its own.",
)
def attend_one_maximum(q, k, v, memory_mask):
    keep = memory_mask[:, None, None]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~keep, torch.finfo(scores.dtype).min)
    powers = torch.exp(scores - scores.max()) * keep
    total = powers.sum(dim=-1, keepdim=True)
    weights = powers / total.masked_fill(total == 0, 1.0)
    return weights @ v, weights


@wrong(
    "handing the mask over with its two axes",
    "Beside scores of shape (B, H, Tq, Tk) its B stands under Tq. memory_mask[:, None, None, :] has an axis for each.",
)
def attend_mask_of_two_axes(q, k, v, memory_mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~memory_mask, torch.finfo(scores.dtype).min), dim=-1)
    weights = weights.masked_fill(~memory_mask, 0.0)
    return weights @ v, weights


@wrong(
    "turning all four axes of k around",
    "k.T does that, batch and heads included. Only the last two should change places: k.transpose(-2, -1).",
)
def attend_turned_whole(q, k, v, memory_mask):
    keep = memory_mask[:, None, None]
    scores = q @ k.permute(3, 2, 1, 0) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~keep, torch.finfo(scores.dtype).min), dim=-1) * keep
    return weights @ v, weights


@wrong(
    "handing the mask over with the three axes (B, 1, Tk)",
    "Beside scores of shape (B, H, Tq, Tk) its B stands under H. memory_mask[:, None, None, :] has an axis for each.",
)
def attend_mask_of_three_axes(q, k, v, memory_mask):
    keep = memory_mask[:, None]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~keep, torch.finfo(scores.dtype).min), dim=-1).masked_fill(~keep, 0.0)
    return weights @ v, weights


@wrong(
    "adding the mask to the scores as numbers",
    "Real words get 1 more, and padding stays in. A boolean mask says what is kept: masked_softmax(scores, mask).",
)
def attend_mask_added(q, k, v, memory_mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + memory_mask[:, None, None].to(q.dtype)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


@wrong(
    "q @ k, with the keys not turned",
    "Each query meets each key along d_k, so d_k has to stand beside d_k: q @ k.transpose(-2, -1).",
)
def attend_keys_not_turned(q, k, v, memory_mask):
    keep = memory_mask[:, None, None]
    scores = q @ k / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~keep, torch.finfo(scores.dtype).min), dim=-1) * keep
    return weights @ v, weights


@wrong("dividing by d_k rather than by its root", "The spread of a dot product grows with the root of d_k: math.sqrt.")
def attend_scaled_by_d(q, k, v, memory_mask):
    return _attend(q, k, v, memory_mask, q.shape[-1])


@wrong("leaving the scores undivided", "Scaled attention divides them by the root of d_k, q.shape[-1].")
def attend_unscaled(q, k, v, memory_mask):
    return _attend(q, k, v, memory_mask, 1.0)


@wrong("dividing by the root of d_v", "The dot product sums d_k products: q.shape[-1]. The values are not in it.")
def attend_scaled_by_values(q, k, v, memory_mask):
    return _attend(q, k, v, memory_mask, math.sqrt(v.shape[-1]))


@wrong(
    "dividing by the root of the number of tokens",
    "shape[-2] is a length. A score is a sum over the d_k numbers of a vector: shape[-1].",
)
def attend_scaled_by_length(q, k, v, memory_mask):
    return _attend(q, k, v, memory_mask, math.sqrt(k.shape[-2]))


@wrong(
    "a softmax over the queries",
    "Each query shares out one whole among the memory: dim=-1, the last axis of (B, H, Tq, Tk).",
)
def attend_wrong_axis(q, k, v, memory_mask):
    keep = memory_mask[:, None, None]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(~keep, torch.finfo(scores.dtype).min), dim=-2) * keep
    return weights @ v, weights


@wrong(
    "letting the memory ask",
    "Rows are queries: q stands on the left of the product. In self-attention the two are easily exchanged.",
)
def attend_roles_swapped(q, k, v, memory_mask):
    return _attend(k, q, v, memory_mask)


@wrong("returning the weights first", "The context comes first, then the weights.")
def attend_outputs_swapped(q, k, v, memory_mask):
    return _attend(q, k, v, memory_mask)[::-1]


# 6.2 CrossAttention -------------------------------------------------------------------------------------------------


class _Layer(nn.Module):
    bias = False

    def __init__(self, query_dim, key_dim, value_dim, out_dim, num_heads=1):
        super().__init__()
        self.num_heads = num_heads
        self.W_q = nn.Linear(query_dim, out_dim, bias=self.bias)
        self.W_k = nn.Linear(key_dim, out_dim, bias=self.bias)
        self.W_v = nn.Linear(value_dim, out_dim, bias=self.bias)
        self.W_o = nn.Linear(out_dim, out_dim, bias=self.bias)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def heads(self, query, key, value, memory_mask):
        padding = ~memory_mask[:, :, None]
        key, value = key.masked_fill(padding, 0.0), value.masked_fill(padding, 0.0)
        return self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(self.W_v(value))

    def merge(self, context):
        return self.W_o(context.transpose(1, 2).flatten(2))

    def forward(self, query, key, value, memory_mask):
        context, weights = _attend(*self.heads(query, key, value, memory_mask), memory_mask)
        return self.merge(context), weights


wrong = mistakes_of("CrossAttention")


@wrong(
    "making the keys of the query's side",
    "That would be self-attention. The queries come from the target, keys and values from the memory: W_k(key).",
)
class CrossAsksItself(_Layer):
    def forward(self, query, key, value, memory_mask):
        return super().forward(query, query, value, memory_mask)


@wrong("making the values of the keys", "The layer is handed a value of its own, of width value_dim: W_v(value).")
class CrossValuesFromKeys(_Layer):
    def forward(self, query, key, value, memory_mask):
        return super().forward(query, key, key, memory_mask)


@wrong(
    "letting the memory ask and the target answer", "query is the target, which asks: W_q(query). key goes through W_k."
)
class CrossTurned(_Layer):
    def forward(self, query, key, value, memory_mask):
        return super().forward(key, query, value, memory_mask)


@wrong(
    "leaving the padding uncleared",
    "A weight of 0 times NaN is NaN. Write masked_fill(~memory_mask[:, :, None], 0.0) around key and around value.",
)
class CrossNotCleared(_Layer):
    def heads(self, query, key, value, memory_mask):
        return self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(self.W_v(value))


@wrong(
    "multiplying the padding by 0",
    "0 times NaN is NaN, before the projection as after it. masked_fill replaces, whatever was there.",
)
class CrossTimesMask(_Layer):
    def heads(self, query, key, value, memory_mask):
        real = memory_mask[:, :, None]
        return self.split(self.W_q(query)), self.split(self.W_k(key * real)), self.split(self.W_v(value * real))


@wrong(
    "clearing the padding of the keys alone",
    "The values meet the weights too, and 0 times NaN is NaN. Clear value as well.",
)
class CrossValuesNotCleared(_Layer):
    def heads(self, query, key, value, memory_mask):
        q, k, _ = super().heads(query, key, value, memory_mask)
        return q, k, self.split(self.W_v(value))


@wrong(
    "clearing the padding of the values alone",
    "The outputs are right, but backwards W_q and W_k meet the NaN in the keys. Clear key as well.",
)
class CrossKeysNotCleared(_Layer):
    def heads(self, query, key, value, memory_mask):
        q, _, v = super().heads(query, key, value, memory_mask)
        return q, self.split(self.W_k(key)), v


@wrong(
    "clearing the padding after the projections",
    "The numbers are right, but the gradients of W_k and W_v still meet the NaN. Clear key and value first.",
)
class CrossClearedLate(_Layer):
    def heads(self, query, key, value, memory_mask):
        padding = ~memory_mask[:, None, :, None]
        q, k, v = self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(self.W_v(value))
        return q, k.masked_fill(padding, 0.0), v.masked_fill(padding, 0.0)


@wrong(
    "clearing the real tokens and keeping the padding",
    "True means keep, and masked_fill overwrites where its mask is True: give it ~memory_mask[:, :, None].",
)
class CrossClearedTheWords(_Layer):
    def heads(self, query, key, value, memory_mask):
        return super().heads(query, key, value, ~memory_mask)


@wrong(
    "clearing the padding without masking it in attend",
    "A key of 0 has the score 0, which is an ordinary score. attend needs memory_mask too.",
)
class CrossUnmasked(_Layer):
    def forward(self, query, key, value, memory_mask):
        context, weights = _attend(*self.heads(query, key, value, memory_mask), torch.ones_like(memory_mask))
        return self.merge(context), weights


@wrong(
    "a view straight to (B, H, T, head_dim)",
    "It cuts the sequence in pieces, and each head gets other tokens. Cut the last axis only, to (B, T, H, head_dim), "
    "then transpose.",
)
class CrossSplitByView(_Layer):
    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], -1)


@wrong(
    "merging the heads without moving them back",
    "The context is (B, H, Tq, head_dim). First transpose(1, 2), then flatten(2), or a token gets pieces of others.",
)
class CrossMergedByView(_Layer):
    def merge(self, context):
        B, _, Tq, _ = context.shape
        return self.W_o(context.reshape(B, Tq, -1))


@wrong("leaving out W_o", "Side by side, the heads have not met yet. W_o mixes them: the last step of forward.")
class CrossWithoutOutput(_Layer):
    def merge(self, context):
        return context.transpose(1, 2).flatten(2) + 0 * self.W_o.weight.sum()


@wrong(
    "dividing by the root of out_dim",
    "Each head takes its dot product over head_dim numbers. Split first: attend then divides by the right root.",
)
class CrossScaledByOut(_Layer):
    def forward(self, query, key, value, memory_mask):
        q, k, v = self.heads(query, key, value, memory_mask)
        context, weights = _attend(q, k, v, memory_mask, math.sqrt(self.W_o.in_features))
        return self.merge(context), weights


@wrong(
    "averaging the weights over the heads",
    "nn.MultiheadAttention does that unless told otherwise. Here each head shows its own map: (B, H, Tq, Tk).",
)
class CrossAveragedHeads(_Layer):
    def forward(self, query, key, value, memory_mask):
        context, weights = super().forward(query, key, value, memory_mask)
        return context, weights.mean(dim=1)


@wrong("returning the weights first", "The context comes first, then the weights.")
class CrossOutputsSwapped(_Layer):
    def forward(self, query, key, value, memory_mask):
        return super().forward(query, key, value, memory_mask)[::-1]


@wrong("layers with bias", says="A layer has a bias unless you say bias=False.")
class CrossWithBias(_Layer):
    bias = True


@wrong("keys that keep the width of the query", says="they should be W_k.weight (18, 8), W_v.weight (18, 10)")
class CrossOneWidth(_Layer):
    def __init__(self, query_dim, key_dim, value_dim, out_dim, num_heads=1):
        super().__init__(query_dim, query_dim, query_dim, out_dim, num_heads)


# 6.3 cache_kv -------------------------------------------------------------------------------------------------------


def _cache(key, value, memory_mask, W_k, W_v, num_heads):
    padding = ~memory_mask[:, :, None]
    k, v = key.masked_fill(padding, 0.0) @ W_k.T, value.masked_fill(padding, 0.0) @ W_v.T
    return k.unflatten(-1, (num_heads, -1)).transpose(1, 2), v.unflatten(-1, (num_heads, -1)).transpose(1, 2)


wrong = mistakes_of("cache_kv")


@wrong(
    "leaving the padding uncleared",
    "What stands there goes into the cache, NaN included. masked_fill, with ~memory_mask[:, :, None], comes first.",
)
def cache_not_cleared(key, value, memory_mask, W_k, W_v, num_heads):
    return _cache(key, value, torch.ones_like(memory_mask), W_k, W_v, num_heads)


@wrong(
    "clearing the padding after the projection",
    "The cache is right, but the gradient of a weight meets the NaN at padding: 0 times NaN. Clear, then project.",
)
def cache_cleared_late(key, value, memory_mask, W_k, W_v, num_heads):
    padding = ~memory_mask[:, :, None]
    k, v = (key @ W_k.T).masked_fill(padding, 0.0), (value @ W_v.T).masked_fill(padding, 0.0)
    return k.unflatten(-1, (num_heads, -1)).transpose(1, 2), v.unflatten(-1, (num_heads, -1)).transpose(1, 2)


@wrong(
    "clearing the padding by a product with the mask", "0 times NaN is NaN. masked_fill overwrites, whatever was there."
)
def cache_times_mask(key, value, memory_mask, W_k, W_v, num_heads):
    real, all_real = memory_mask[:, :, None], torch.ones_like(memory_mask)
    return _cache(key * real, value * real, all_real, W_k, W_v, num_heads)


@wrong(
    "clearing the real tokens and keeping the padding",
    "True means keep, and masked_fill overwrites where its mask is True: give it ~memory_mask[:, :, None].",
)
def cache_inverted(key, value, memory_mask, W_k, W_v, num_heads):
    return _cache(key, value, ~memory_mask, W_k, W_v, num_heads)


@wrong(
    "multiplying with the weights as they are stored",
    "nn.Linear stores (out, in), so the product needs .T: key @ W_k.T. Without it, it runs only where both are equal.",
)
def cache_not_turned(key, value, memory_mask, W_k, W_v, num_heads):
    return _cache(key, value, memory_mask, W_k.T, W_v.T, num_heads)


@wrong(
    "clearing the padding of the keys alone",
    "What stands at the padding of value goes into the cache. Clear both, before the projections.",
)
def cache_values_not_cleared(key, value, memory_mask, W_k, W_v, num_heads):
    k, _ = _cache(key, value, memory_mask, W_k, W_v, num_heads)
    return k, _cache(key, value, torch.ones_like(memory_mask), W_k, W_v, num_heads)[1]


@wrong("making both of the keys", "The values have an input and a weight of their own: value and W_v.")
def cache_values_from_keys(key, value, memory_mask, W_k, W_v, num_heads):
    return _cache(key, key, memory_mask, W_k, W_v, num_heads)


@wrong("returning the values first", "Keys come first: `return k, v`.")
def cache_swapped(key, value, memory_mask, W_k, W_v, num_heads):
    return _cache(key, value, memory_mask, W_k, W_v, num_heads)[::-1]


@wrong(
    "a view straight to (B, H, Tk, head_dim)",
    "It hands each head other tokens. Cut the last axis only, to (B, Tk, H, head_dim), then transpose.",
)
def cache_split_by_view(key, value, memory_mask, W_k, W_v, num_heads):
    padding, (B, Tk) = ~memory_mask[:, :, None], memory_mask.shape
    k, v = key.masked_fill(padding, 0.0) @ W_k.T, value.masked_fill(padding, 0.0) @ W_v.T
    return k.reshape(B, num_heads, Tk, -1), v.reshape(B, num_heads, Tk, -1)


@wrong(
    "leaving the heads at axis 2",
    "After unflatten the axes are (B, Tk, H, head_dim). transpose(1, 2) brings the heads to the front.",
)
def cache_not_transposed(key, value, memory_mask, W_k, W_v, num_heads):
    return tuple(x.transpose(1, 2) for x in _cache(key, value, memory_mask, W_k, W_v, num_heads))


@wrong(
    "dealing the numbers out to the heads in turn",
    "The first head takes the first head_dim numbers, not every second or third: unflatten(-1, (num_heads, -1)).",
)
def cache_interleaved(key, value, memory_mask, W_k, W_v, num_heads):
    made = _cache(key, value, memory_mask, W_k, W_v, 1)
    return tuple(x[:, 0].unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2) for x in made)


@wrong("leaving out the heads", "The cache has one part for each head: (B, H, Tk, head_dim).")
def cache_without_heads(key, value, memory_mask, W_k, W_v, num_heads):
    return tuple(x.transpose(1, 2).flatten(2) for x in _cache(key, value, memory_mask, W_k, W_v, num_heads))


@wrong(
    "cutting the cache off from the graph",
    "While it is trained, a decoder learns through its cache. Whoever wants no gradients says torch.no_grad() outside.",
)
def cache_detached(key, value, memory_mask, W_k, W_v, num_heads):
    k, v = _cache(key, value, memory_mask, W_k, W_v, num_heads)
    return k.detach(), v.detach()


# 6.4 decode_step ----------------------------------------------------------------------------------------------------


def _step(query, k, v, memory_mask, W_q, W_o, divisor=None):
    q = (query @ W_q.T).unflatten(-1, (k.shape[1], -1))[:, :, None]
    context, weights = _attend(q, k, v, memory_mask, divisor)
    return context.flatten(1) @ W_o.T, weights[:, :, 0]


wrong = mistakes_of("decode_step")


@wrong("leaving out W_o", "The heads lie side by side and have not met. W_o mixes them: @ W_o.T at the end.")
def step_without_output(query, k, v, memory_mask, W_q, W_o):
    return _step(query, k, v, memory_mask, W_q, torch.eye(len(W_o), dtype=W_o.dtype, device=W_o.device) + 0 * W_o)


@wrong(
    "using W_o as it is stored",
    "It is square, so nothing complains: nn.Linear stores (out, in), and the product needs W_o.T.",
)
def step_output_not_turned(query, k, v, memory_mask, W_q, W_o):
    return _step(query, k, v, memory_mask, W_q, W_o.T)


@wrong(
    "using W_q as it is stored",
    "nn.Linear stores (out, in): query @ W_q.T. Without .T it runs only where query_dim and out_dim are equal.",
)
def step_query_not_turned(query, k, v, memory_mask, W_q, W_o):
    return _step(query, k, v, memory_mask, W_q.T, W_o)


@wrong("exchanging k and v", "Keys are compared with the query, values are averaged: attend(q, k, v, memory_mask).")
def step_cache_swapped(query, k, v, memory_mask, W_q, W_o):
    return _step(query, v, k, memory_mask, W_q, W_o)


@wrong(
    "leaving the axis of length 1 in place",
    "attend works with Tq = 1, but the results have no such axis. [:, :, 0, :] takes it out of the weights.",
)
def step_keeps_axis(query, k, v, memory_mask, W_q, W_o):
    context, weights = _step(query, k, v, memory_mask, W_q, W_o)
    return context[:, None], weights[:, :, None]


@wrong(
    "leaving the mask out",
    "The cache is 0 at padding, but a score of 0 is an ordinary score: e^0 = 1. Hand memory_mask to attend.",
)
def step_unmasked(query, k, v, memory_mask, W_q, W_o):
    return _step(query, k, v, torch.ones_like(memory_mask), W_q, W_o)


@wrong(
    "dividing by the root of out_dim",
    "A head takes its dot product over head_dim numbers: split the query before you score it.",
)
def step_scaled_by_out(query, k, v, memory_mask, W_q, W_o):
    return _step(query, k, v, memory_mask, W_q, W_o, math.sqrt(len(W_o)))


@wrong(
    "dealing the query out to the heads in turn",
    "The first head takes the first head_dim numbers: unflatten(-1, (k.shape[1], -1)), with the number of heads first.",
)
def step_interleaved(query, k, v, memory_mask, W_q, W_o):
    q = (query @ W_q.T).unflatten(-1, (-1, k.shape[1])).transpose(1, 2)[:, :, None]
    context, weights = _attend(q, k, v, memory_mask)
    return context.flatten(1) @ W_o.T, weights[:, :, 0]


@wrong(
    "merging the heads in turn, one number of each,",
    "The heads lie side by side, the whole of the first one before the second: with Tq = 1, context.flatten(1).",
)
def step_merged_interleaved(query, k, v, memory_mask, W_q, W_o):
    q = (query @ W_q.T).unflatten(-1, (k.shape[1], -1))[:, :, None]
    context, weights = _attend(q, k, v, memory_mask)
    return context[:, :, 0].transpose(1, 2).flatten(1) @ W_o.T, weights[:, :, 0]


@wrong(
    "averaging the weights over the heads", "Each head shows its own weights: (B, H, Tk). plot_alignment will average."
)
def step_averaged(query, k, v, memory_mask, W_q, W_o):
    context, weights = _step(query, k, v, memory_mask, W_q, W_o)
    return context, weights.mean(dim=1)


@wrong("returning the weights first", "The context comes first, then the weights.")
def step_outputs_swapped(query, k, v, memory_mask, W_q, W_o):
    return _step(query, k, v, memory_mask, W_q, W_o)[::-1]


@wrong(
    "taking the batch for a sequence",
    "The queries belong to different sentences. query[None] would let all of them read one memory: the new axis of "
    "length 1 goes behind the heads, (B, H, 1, head_dim).",
)
def step_batch_as_sequence(query, k, v, memory_mask, W_q, W_o):
    q = (query @ W_q.T).unflatten(-1, (k.shape[1], -1)).transpose(0, 1)[None]  # (1, H, B, head_dim)
    context, weights = _attend(q, k[:1], v[:1], memory_mask[:1])
    return context[0].transpose(0, 1).flatten(1) @ W_o.T, weights[0].transpose(0, 1)


@wrong(
    "having the heads at another axis than attend and W_o expect them",
    "With one head it runs. With more, Tq stands at axis 2: q is (B, H, 1, head_dim), so unsqueeze(2) after the cut "
    "into heads. And W_o wants the heads side by side, (B, out_dim).",
)
def step_axis_before_heads(query, k, v, memory_mask, W_q, W_o):
    q = (query @ W_q.T).unflatten(-1, (k.shape[1], -1)).unsqueeze(1)
    context, weights = _attend(q, k, v, memory_mask)
    return context.flatten(1) @ W_o.T, weights[:, :, 0]


@wrong(
    "a bare squeeze() of the weights",
    "Without a number, squeeze takes out every axis of length 1, also a batch of one and a single head. squeeze(2) "
    "takes out Tq alone.",
)
def step_squeezes_all(query, k, v, memory_mask, W_q, W_o):
    context, weights = _step(query, k, v, memory_mask, W_q, W_o)
    return context, weights.squeeze()


# 6.5 colleagues_map -------------------------------------------------------------------------------------------------

wrong = mistakes_of("colleagues_map")


def _cut(joined, source, target):
    return joined[: len(target), : len(source)]


def _went_in(target):
    return ["<start>", *target[:-1]]


@wrong(
    "plot_alignment, the map without a fault",
    "Two things differ in the colleague's map: the labels of the rows, and how two heads became one map.",
)
def map_right(weights, source, target):
    return _cut(weights.mean(dim=0), source, target), target, source


@wrong(
    "the mean of the heads",
    "The labels are explained. Now the numbers: a row of means sums to 1, and the colleague's first row sums to 1.4.",
)
def map_mean(weights, source, target):
    return _cut(weights.mean(dim=0), source, target), _went_in(target), source


@wrong(
    "the right labels beside the colleague's numbers",
    "The numbers are explained. Now the labels of the rows: which French word is missing there, and which is new?",
)
def map_labelled_right(weights, source, target):
    return _cut(weights.amax(dim=0), source, target), target, source


@wrong("adding the heads up", "In the colleague's map the cell le, cat shows 0.9; the two heads had 0.9 and 0.7 there.")
def map_sum(weights, source, target):
    return _cut(weights.sum(dim=0), source, target), _went_in(target), source


@wrong(
    "adding the heads up, with the right labels",
    "Two things are open. In the colleague's map the cell le, cat shows 0.9, and the heads had 0.9 and 0.7 there; and "
    "which French word is missing beside the rows?",
)
def map_sum_labelled_right(weights, source, target):
    return _cut(weights.sum(dim=0), source, target), target, source


@wrong(
    "the map of the first head alone",
    "Compare cell by cell: in the first row and the last column the first head has 0, and the picture shows 0.4.",
)
def map_first_head(weights, source, target):
    return _cut(weights[0] + 0 * weights.sum(dim=0), source, target), _went_in(target), source


@wrong(
    "the map of the last head alone",
    "Compare cell by cell: in the top left corner the last head has 0.5, and the picture shows 0.7.",
)
def map_last_head(weights, source, target):
    return _cut(weights[-1] + 0 * weights.sum(dim=0), source, target), _went_in(target), source


@wrong(
    "the smallest weight of the heads",
    "In the top left corner the heads have 0.7 and 0.5, and the picture shows 0.7.",
)
def map_smallest(weights, source, target):
    return _cut(weights.amin(dim=0), source, target), _went_in(target), source


@wrong(
    "labels that stand one place too high",
    "The colleague's rows begin with <start>: each has the word that went in, the one *before* the word written.",
)
def map_labels_too_high(weights, source, target):
    return _cut(weights.amax(dim=0), source, target), [*target[1:], "<end>"], source


@wrong(
    "one row more than the target has words",
    "The colleague's map has as many rows as there are target words: <start> is new, and the last word is missing.",
)
def map_extra_label(weights, source, target):
    return _cut(weights.amax(dim=0), source, target), ["<start>", *target], source


@wrong(
    "moving the numbers along with the labels",
    "The numbers stand where they belong: the first row is that of the first query. The labels alone have moved.",
)
def map_numbers_moved(weights, source, target):
    return _cut(weights.amax(dim=0).roll(1, dims=0), source, target), _went_in(target), source


@wrong(
    "making the rows sum to 1 again",
    "The first row of the colleague's map sums to 1.4: nothing was divided.",
)
def map_normalised(weights, source, target):
    matrix = _cut(weights.amax(dim=0), source, target)
    return matrix / matrix.sum(dim=-1, keepdim=True), _went_in(target), source


@wrong(
    "leaving the padding in",
    "There are rows and columns for which there is no word. The colleague cuts them off, as plot_alignment does.",
)
def map_not_cut(weights, source, target):
    return weights.amax(dim=0), _went_in(target), source


@wrong(
    "turning the map, with the source as rows,",
    "The colleague's columns are the, cat, sat: the source, on the right side. Rows are queries, as in the weights.",
)
def map_turned(weights, source, target):
    return _cut(weights.amax(dim=0), source, target).T, source, _went_in(target)


# 6.6 attention_statistics -------------------------------------------------------------------------------------------


def _statistics(weights, target_mask):
    keep = target_mask[:, None, :, None]
    weights = weights.masked_fill(~keep, 0.0)
    return weights.sum(dim=-2) / keep.sum(dim=-2), weights.amax(dim=-2), torch.special.entr(weights).sum(dim=-1)


wrong = mistakes_of("attention_statistics")


@wrong(
    "counting the padding among the target words",
    "Rows of padding look at something too. Clear them with target_mask, and divide by the number of real words.",
)
def statistics_unmasked(weights, target_mask):
    return _statistics(weights, torch.ones_like(target_mask))


@wrong(
    "dividing by all rows, padding included,",
    "Divide by the number of real target words, one for each example: keep.sum(dim=-2).",
)
def statistics_divided_by_all(weights, target_mask):
    _, maximum, entropy = _statistics(weights, target_mask)
    return weights.masked_fill(~target_mask[:, None, :, None], 0.0).mean(dim=-2), maximum, entropy


@wrong(
    "keeping the padding and clearing the words",
    "True means keep, and masked_fill overwrites where its mask is True: give it ~keep.",
)
def statistics_inverted(weights, target_mask):
    keep = target_mask[:, None, :, None]
    cleared = weights.masked_fill(keep, 0.0)
    return cleared.sum(dim=-2) / keep.sum(dim=-2), cleared.amax(dim=-2), torch.special.entr(cleared).sum(dim=-1)


@wrong(
    "laying the mask on the columns, the source,",
    "target_mask speaks of the words that attend: rows, (B, 1, Tq, 1). On (B, 1, 1, Tq) it runs only in a square map.",
)
def statistics_mask_on_columns(weights, target_mask):
    keep = target_mask[:, None, None, :]
    cleared = weights.masked_fill(~keep, 0.0)
    mean = cleared.sum(dim=-2) / target_mask.sum(dim=-1)[:, None, None]
    return mean, cleared.amax(dim=-2), torch.special.entr(cleared).sum(dim=-1)


@wrong(
    "mean and maximum over the source",
    "Per source token means that Tk stays: sum and maximum run over the target, dim=-2. Along a row, the mean would be "
    "1/Tk for every word.",
)
def statistics_per_target(weights, target_mask):
    cleared = weights.masked_fill(~target_mask[:, None, :, None], 0.0)
    return cleared.mean(dim=-1), cleared.amax(dim=-1), torch.special.entr(cleared).sum(dim=-1)


@wrong(
    "an entropy over the target",
    "A row is what one target word does with its weight, and it sums to 1. The entropy is taken along it: dim=-1.",
)
def statistics_entropy_of_columns(weights, target_mask):
    mean, maximum, _ = _statistics(weights, target_mask)
    cleared = weights.masked_fill(~target_mask[:, None, :, None], 0.0)
    return mean, maximum, torch.special.entr(cleared).sum(dim=-2)


@wrong("a logarithm of 0", "0 times minus infinity is NaN, where 0 is wanted. torch.special.entr knows that.")
def statistics_log_of_zero(weights, target_mask):
    mean, maximum, _ = _statistics(weights, target_mask)
    cleared = weights.masked_fill(~target_mask[:, None, :, None], 0.0)
    return mean, maximum, -(cleared * torch.log(cleared)).sum(dim=-1)


@wrong("an entropy in bits", "Use the natural logarithm: nats. One bit is ln 2, about 0.69 nats.")
def statistics_bits(weights, target_mask):
    mean, maximum, entropy = _statistics(weights, target_mask)
    return mean, maximum, entropy / math.log(2)


@wrong("an entropy without its minus", "Logarithms of weights are negative; the minus makes the sum positive.")
def statistics_negative(weights, target_mask):
    mean, maximum, entropy = _statistics(weights, target_mask)
    return mean, maximum, -entropy


@wrong("exchanging mean and maximum", "The mean comes first: mean, maximum, entropy.")
def statistics_swapped(weights, target_mask):
    mean, maximum, entropy = _statistics(weights, target_mask)
    return maximum, mean, entropy


@wrong(
    "taking sums in place of means",
    "How often a word is read in all depends on the length of the target. Divide by the number of real target words.",
)
def statistics_sum(weights, target_mask):
    _, maximum, entropy = _statistics(weights, target_mask)
    return weights.masked_fill(~target_mask[:, None, :, None], 0.0).sum(dim=-2), maximum, entropy


@wrong("averaging over the heads", "Each head is described on its own: keep axis H.")
def statistics_over_heads(weights, target_mask):
    return tuple(x[:, 0] for x in _statistics(weights.mean(dim=1, keepdim=True), target_mask))


@wrong("max(dim=...) without .values", "`max(dim=…)` returns values and places. Take `.values`, or use `amax`.")
def statistics_max_of_two(weights, target_mask):
    mean, _, entropy = _statistics(weights, target_mask)
    return mean, weights.masked_fill(~target_mask[:, None, :, None], 0.0).max(dim=-2), entropy


@wrong("multiplying the padding by 0", "0 times NaN is NaN. masked_fill(~keep, 0.0) replaces, whatever was there.")
def statistics_times_mask(weights, target_mask):
    keep = target_mask[:, None, :, None]
    weights = weights * keep
    return weights.sum(dim=-2) / keep.sum(dim=-2), weights.amax(dim=-2), torch.special.entr(weights).sum(dim=-1)


@wrong("dividing by the number of real words in the whole batch", "Each example has its own number: keep.sum(dim=-2).")
def statistics_divided_by_batch(weights, target_mask):
    _, maximum, entropy = _statistics(weights, target_mask)
    return weights.masked_fill(~target_mask[:, None, :, None], 0.0).sum(dim=-2) / target_mask.sum(), maximum, entropy


# 6.7 hard_alignment -------------------------------------------------------------------------------------------------


def _empty(mean):
    return mean.sum(dim=-1) == 0


wrong = mistakes_of("hard_alignment")


@wrong(
    "choosing a target word for each source word",
    "Each row chooses: the argmax runs over the source, dim=-1. In a square map the shape would not warn you.",
)
def links_of_columns(weights):
    return weights.mean(dim=1).argmax(dim=-2)


@wrong("a choice for each head", "One link for each target word: average over the heads first, then choose.")
def links_per_head(weights):
    return weights.argmax(dim=-1).masked_fill(_empty(weights), -1)


_AVERAGED = (
    "averaging the places that the heads chose",
    "Half-way between word 1 and word 5 is word 3, which no head chose. Average the weights over the heads, then "
    "choose.",
)


@wrong(*_AVERAGED)
def links_averaged(weights):
    return weights.argmax(dim=-1).float().mean(dim=1).masked_fill(_empty(weights.mean(dim=1)), -1)


@wrong(*_AVERAGED)
def links_averaged_cut(weights):
    return weights.argmax(dim=-1).float().mean(dim=1).long().masked_fill(_empty(weights.mean(dim=1)), -1)


@wrong(*_AVERAGED)
def links_averaged_rounded(weights):
    return weights.argmax(dim=-1).float().mean(dim=1).round().long().masked_fill(_empty(weights.mean(dim=1)), -1)


@wrong("the choice of the first head", "Average over all heads, axis 1, before you choose.")
def links_first_head(weights):
    return weights[:, 0].argmax(dim=-1).masked_fill(_empty(weights[:, 0]), -1)


@wrong(
    "a vote of the heads",
    "A head that is sure and one that guesses would count alike. Average the weights, then choose.",
)
def links_by_vote(weights):
    votes = torch.nn.functional.one_hot(weights.argmax(dim=-1), weights.shape[-1]).sum(dim=1)
    return votes.argmax(dim=-1).masked_fill(_empty(weights.mean(dim=1)), -1)


@wrong(
    "following the darkest cell of any head", "One cell of one head would decide. Average over the heads, then choose."
)
def links_darkest(weights):
    return weights.amax(dim=1).argmax(dim=-1).masked_fill(_empty(weights.mean(dim=1)), -1)


@wrong(
    "linking a row without weight to the first word",
    "argmax of zeros is 0. Where the row sums to 0, write -1: masked_fill.",
)
def links_empty_is_first(weights):
    return weights.mean(dim=1).argmax(dim=-1)


@wrong(
    "returning the weights in place of the places",
    "argmax says where the largest stands; max and amax say how large it is.",
)
def links_are_weights(weights):
    mean = weights.mean(dim=1)
    return mean.amax(dim=-1).masked_fill(_empty(mean), -1)


@wrong("counting from 1", "The first source word is number 0, as everywhere in Python.")
def links_from_one(weights):
    mean = weights.mean(dim=1)
    return (mean.argmax(dim=-1) + 1).masked_fill(_empty(mean), -1)


@wrong("a map of zeros and ones", "Return the place of the chosen word, one whole number for each target word.")
def links_one_hot(weights):
    mean = weights.mean(dim=1)
    return torch.nn.functional.one_hot(mean.argmax(dim=-1), mean.shape[-1])


@wrong(
    "storing whole numbers as decimals",
    "argmax gives int64. A detour over torch.where with -1.0, or .float(), makes decimals of them, which cannot index.",
)
def links_decimal(weights):
    mean = weights.mean(dim=1)
    return torch.where(_empty(mean), -1.0, mean.argmax(dim=-1))


# 6.8 counterexample -------------------------------------------------------------------------------------------------

wrong = mistakes_of("counterexample")


@wrong("one sentence", says="both implementations give the same")
def counterexample_one_sentence():
    return torch.randn(1, 4, 3), torch.randn(1, 5, 3), torch.randn(1, 5, 2)


@wrong("one candidate", says="both implementations give the same")
def counterexample_one_candidate():
    return torch.randn(3, 1, 4), torch.randn(3, 5, 4), torch.randn(3, 5, 2)


@wrong("the same memory for both sentences", says="both implementations give the same")
def counterexample_same_memory():
    return torch.randn(2, 2, 3), torch.ones(2, 4, 3), torch.ones(2, 1, 1).expand(2, 4, 2)


@wrong("values of zero", says="both implementations give the same")
def counterexample_zero_values():
    return torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.zeros(2, 5, 2)


@wrong("queries alone", says="it should return three tensors as a tuple")
def counterexample_one_tensor():
    return torch.randn(2, 3, 4)


@wrong("two tensors", says="it should return three tensors as a tuple")
def counterexample_two_tensors():
    return torch.randn(2, 3, 4), torch.randn(2, 5, 4)


@wrong("tensors without a batch", says="the first tensor should have the axes (B, n, d)")
def counterexample_without_batch():
    return torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 2)


@wrong("queries and keys of different width", says="cannot take these inputs")
def counterexample_widths_differ():
    return torch.randn(2, 3, 4), torch.randn(2, 5, 6), torch.randn(2, 5, 6)


@wrong("more sentences in the memory than queries", says="cannot take these inputs")
def counterexample_batches_differ():
    return torch.randn(2, 3, 4), torch.randn(3, 5, 4), torch.randn(3, 5, 2)


@wrong("values that are infinite", says="has no finite result on these inputs")
def counterexample_infinite():
    return torch.ones(2, 2, 1), torch.zeros(2, 1, 1), torch.full((2, 1, 1), torch.inf)


# 6.9 repaired_step --------------------------------------------------------------------------------------------------


def _candidates(q, k, v, divisor=None, dim=-1):
    B, n, d = q.shape
    scores = q.reshape(B * n, 1, d) @ k.transpose(1, 2) / (math.sqrt(d) if divisor is None else divisor)
    return (torch.softmax(scores, dim=dim) @ v).reshape(B, n, v.shape[-1])


wrong = mistakes_of("repaired_step")


@wrong(
    "putting the memories in the order A, B, A, B",
    "That is what repeat gives, and the candidates stand in the order A, A, B, B: repeat_interleave(n, dim=0).",
)
def repaired_unchanged(q, k, v):
    n = q.shape[1]
    return _candidates(q, k.repeat(n, 1, 1), v.repeat(n, 1, 1))


@wrong(
    "repairing the keys and not the values",
    "Both lines of the memory need it: a weight from one sentence would meet a value from another.",
)
def repaired_keys_only(q, k, v):
    n = q.shape[1]
    return _candidates(q, k.repeat_interleave(n, dim=0), v.repeat(n, 1, 1))


@wrong(
    "repairing the values and not the keys",
    "Both lines of the memory need it: a query would score the keys of another sentence.",
)
def repaired_values_only(q, k, v):
    n = q.shape[1]
    return _candidates(q, k.repeat(n, 1, 1), v.repeat_interleave(n, dim=0))


@wrong("repeating by the number of sentences", "Each memory is needed once for each of its n candidates: q.shape[1].")
def repaired_by_batch(q, k, v):
    B = q.shape[0]
    return _candidates(q, k.repeat_interleave(B, dim=0), v.repeat_interleave(B, dim=0))


@wrong(
    "turning the queries round as well as the memory",
    "With repeat_interleave the memories are in the order of the rows already: one repair is enough.",
)
def repaired_twice(q, k, v):
    B, n, d = q.shape
    turned = q.transpose(0, 1).reshape(B, n, d)
    return _candidates(turned, k.repeat_interleave(n, dim=0), v.repeat_interleave(n, dim=0))


@wrong(
    "repeating the tokens of the memory",
    "repeat(1, n, 1) and repeat_interleave(n, dim=1) make each memory longer. The batch is what has to grow: dim=0.",
)
def repaired_tokens(q, k, v):
    n = q.shape[1]
    return _candidates(q, k.repeat_interleave(n, dim=1), v.repeat_interleave(n, dim=1))


@wrong("repeat_interleave(n) without dim", "Without dim, repeat_interleave flattens first: write dim=0.")
def repaired_flattened(q, k, v):
    n = q.shape[1]
    return _candidates(q, k.repeat_interleave(n), v.repeat_interleave(n))


@wrong("handing all candidates the first memory", "Each sentence has a memory of its own.")
def repaired_first_memory(q, k, v):
    B, n, _ = q.shape
    return _candidates(q, k[:1].repeat(B * n, 1, 1), v[:1].repeat(B * n, 1, 1))


@wrong(
    "powers of the scores without a maximum taken off",
    "e to a large score is infinite. torch.softmax subtracts each row's maximum first.",
)
def repaired_overflows(q, k, v):
    powers = torch.exp(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]))
    return powers / powers.sum(dim=-1, keepdim=True) @ v


@wrong("not dividing by the root of d", "The scores of published_step are right; the order of its memories is not.")
def repaired_unscaled(q, k, v):
    n = q.shape[1]
    return _candidates(q, k.repeat_interleave(n, dim=0), v.repeat_interleave(n, dim=0), 1.0)


@wrong("a softmax over an axis of length 1", "All weights become 1. It runs over the memory, dim=-1.")
def repaired_wrong_axis(q, k, v):
    n = q.shape[1]
    return _candidates(q, k.repeat_interleave(n, dim=0), v.repeat_interleave(n, dim=0), dim=1)
