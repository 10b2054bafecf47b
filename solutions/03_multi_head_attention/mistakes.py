"""Wrong answers to the exercises of lesson 03, each with what its author needs to read."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention_course import device
from attention_course.authoring import mistakes_of

# 3.1 split_heads ----------------------------------------------------------------------------------------------------

wrong = mistakes_of("split_heads")


@wrong(
    "viewing as (B, H, T, d) at once",
    "view reads on in memory, so head 1 gets what stands first, token after token, not its share of every token. Cut "
    "each token first, (B, T, H, d), then transpose T and H.",
)
def split_by_view_alone(x, num_heads):
    B, T, d_model = x.shape
    return x.reshape(B, num_heads, T, d_model // num_heads)


@wrong(
    "cutting each token into d pieces of H numbers",
    "A head's d numbers stand side by side: the last two axes of the view are (H, d). As (d, H) they are dealt out one "
    "by one.",
)
def split_interleaved(x, num_heads):
    B, T, d_model = x.shape
    return x.reshape(B, T, d_model // num_heads, num_heads).permute(0, 3, 1, 2)


@wrong(
    "a view without the transpose",
    "That is (B, T, H, d). Attention takes place in the last two axes, which have to be T and d: exchange T and H.",
)
def split_without_transpose(x, num_heads):
    B, T, d_model = x.shape
    return x.reshape(B, T, num_heads, d_model // num_heads)


@wrong(
    "exchanging the last two axes",
    "After the view the axes are (B, T, H, d), numbered from 0. T and H are the axes 1 and 2.",
)
def split_transposes_the_last(x, num_heads):
    B, T, d_model = x.shape
    return x.reshape(B, T, num_heads, d_model // num_heads).transpose(2, 3)


@wrong(
    "taking num_heads for the length of a head",
    "num_heads says how many pieces there are; each is d_model // num_heads long.",
)
def split_swaps_the_lengths(x, num_heads):
    B, T, d_model = x.shape
    return x.reshape(B, T, d_model // num_heads, num_heads).transpose(1, 2)


@wrong("giving every head the whole token", "The heads share the numbers: each gets d = d_model / H of them.")
def split_repeats(x, num_heads):
    return x[:, None].expand(-1, num_heads, -1, -1)


@wrong("counting the heads into the batch", "Keep the heads as an axis of their own, axis 1: (B, H, T, d).")
def split_into_the_batch(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1).flatten(0, 1)


@wrong(
    "putting the heads in front of the batch",
    "The batch is always the first axis and the heads the second: (B, H, T, d).",
)
def split_heads_first(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=0)


@wrong(
    "returning the pieces in a tuple",
    "Stack them into one tensor along axis 1, or use view and transpose, which need no loop.",
)
def split_into_a_tuple(x, num_heads):
    return x.chunk(num_heads, dim=-1)


@wrong(
    "cutting the sentence in place of the tokens",
    "Each head sees every token. It is the last axis, d_model, that is shared out.",
)
def split_cuts_the_sentence(x, num_heads):
    return x.repeat_interleave(num_heads, dim=1).reshape(x.shape[0], num_heads, x.shape[1], x.shape[2])


# 3.2 merge_heads ----------------------------------------------------------------------------------------------------

wrong = mistakes_of("merge_heads")


@wrong(
    "a reshape without the transpose",
    "H and d do not stand side by side in (B, H, T, d), so the reshape mixes tokens. Exchange H and T first.",
)
def merge_by_reshape_alone(x):
    B, H, T, d = x.shape
    return x.reshape(B, T, H * d)


@wrong(
    "a view of a transposed tensor, which PyTorch refuses,",
    "transpose only changes the order in which the axes are read. Use reshape, which copies where it must, or "
    ".contiguous() before the view.",
)
def merge_by_view(x):
    B, H, T, d = x.shape
    return x.transpose(1, 2).view(B, T, H * d)


@wrong(
    "the transpose without joining",
    "That is (B, T, H, d). The last two axes have to become one, (B, T, H·d).",
)
def merge_without_joining(x):
    return x.transpose(1, 2)


@wrong(
    "joining with the heads innermost",
    "Each token takes all the numbers of head 1, then all of head 2: the last two axes before the reshape are (H, "
    "d), not (d, H).",
)
def merge_interleaved(x):
    B, H, T, d = x.shape
    return x.permute(0, 2, 3, 1).reshape(B, T, H * d)


@wrong("adding the heads up", "The numbers are put side by side, so that W_o can still tell who found what.")
def merge_adds(x):
    return x.sum(dim=1)


@wrong("the mean of the heads", "The numbers are put side by side, so that W_o can still tell who found what.")
def merge_averages(x):
    return x.mean(dim=1)


@wrong(
    "putting the heads one after the other along the tokens",
    "There are T tokens before and after. It is the last axis that grows: (B, T, H·d).",
)
def merge_along_the_tokens(x):
    return x.flatten(1, 2)


@wrong(
    "exchanging the last two axes",
    "The axes are (B, H, T, d), numbered from 0: the ones to exchange are H and T, 1 and 2.",
)
def merge_transposes_the_last(x):
    B, H, T, d = x.shape
    return x.transpose(2, 3).reshape(B, T, H * d)


@wrong("exchanging tokens and numbers", "Tokens are axis 1 and their numbers the last axis: (B, T, H·d).")
def merge_tokens_last(x):
    return torch.cat(list(x.unbind(1)), dim=-1).transpose(1, 2)


@wrong("keeping the first head alone", "Every head has something for every token: join all of them.")
def merge_first_head(x):
    return torch.cat([x[:, 0]] * x.shape[1], dim=-1)


@wrong("exchanging the heads with their numbers", "The axes to exchange are H and T, 1 and 2: (B, T, H, d).")
def merge_exchanges_heads_and_numbers(x):
    B, H, T, d = x.shape
    return x.transpose(1, 3).reshape(B, T, H * d)


# 3.3 scaled_dot_product_attention -----------------------------------------------------------------------------------


def _scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def _softmax(scores, mask, dim=-1):
    """Weights of scores: masked ones 0, where each query keeps a key."""
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -torch.inf), dim=dim)


def _used(weights, v, dropout):
    return (weights if dropout is None else dropout(weights)) @ v, weights


wrong = mistakes_of("scaled_dot_product_attention")


@wrong(
    "multiplying q by k without exchanging its last two axes",
    "Row i of the scores belongs to query i and column j to key j: (Tq, d_k) times (d_k, Tk), so k.transpose(-2, -1).",
)
def attention_without_transpose(q, k, v, mask=None, dropout=None):
    return _used(_softmax(q @ k / math.sqrt(q.shape[-1]), mask), v, dropout)


@wrong(
    "k.T, which turns all four axes around,",
    "Only the last two are to be exchanged: k.transpose(-2, -1), or k.mT.",
)
def attention_turns_all_axes(q, k, v, mask=None, dropout=None):
    return _used(_softmax(q @ k.permute(3, 2, 1, 0) / math.sqrt(q.shape[-1]), mask), v, dropout)


@wrong("leaving the scores undivided", "Divide by the root of the length of a query: math.sqrt(q.shape[-1]).")
def attention_unscaled(q, k, v, mask=None, dropout=None):
    return _used(_softmax(q @ k.transpose(-2, -1), mask), v, dropout)


@wrong("dividing by d_k itself", "By its square root: the variance of a score is d_k, its size the root of that.")
def attention_scaled_by_d(q, k, v, mask=None, dropout=None):
    return _used(_softmax(q @ k.transpose(-2, -1) / q.shape[-1], mask), v, dropout)


@wrong(
    "dividing by the root of q.shape[1], the number of heads,",
    "With the heads at axis 1, the length of a query is q.shape[-1].",
)
def attention_scaled_by_heads(q, k, v, mask=None, dropout=None):
    return _used(_softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[1]), mask), v, dropout)


@wrong("multiplying by the root of d_k", "The scores are divided by it, so that they do not grow with d_k.")
def attention_multiplies_by_the_root(q, k, v, mask=None, dropout=None):
    return _used(_softmax(q @ k.transpose(-2, -1) * math.sqrt(q.shape[-1]), mask), v, dropout)


@wrong(
    "taking True for masked",
    "In this course True means keep. masked_fill writes where its condition is True, so it needs ~mask.",
)
def attention_mask_inverted(q, k, v, mask=None, dropout=None):
    return _used(_softmax(_scores(q, k), None if mask is None else ~mask), v, dropout)


@wrong(
    "multiplying the scores by the mask, or filling them with 0,",
    "A score of 0 is an ordinary score, whose weight is e^0 and not 0. What has the weight 0 is -math.inf.",
)
def attention_multiplies_scores(q, k, v, mask=None, dropout=None):
    scores = _scores(q, k)
    return _used(torch.softmax(scores if mask is None else scores * mask, dim=-1), v, dropout)


@wrong(
    "filling the masked scores with -100, -10000 or another number that a kept score can fall below",
    "Only -math.inf lies below every score.",
)
def attention_fills_with_a_number(q, k, v, mask=None, dropout=None):
    scores = _scores(q, k)
    return _used(torch.softmax(scores if mask is None else scores.masked_fill(~mask, -1e4), dim=-1), v, dropout)


@wrong("adding the mask to the scores", "True counts as 1 there and False as 0. Fill with -math.inf where it is False.")
def attention_adds_the_mask(q, k, v, mask=None, dropout=None):
    scores = _scores(q, k)
    return _used(torch.softmax(scores if mask is None else scores + mask, dim=-1), v, dropout)


@wrong(
    "masking the weights alone, after the softmax,",
    "The masked keys have taken part of the unit by then, and the rest does not sum to 1. Mask the scores, before the "
    "softmax.",
)
def attention_masks_weights_only(q, k, v, mask=None, dropout=None):
    weights = torch.softmax(_scores(q, k), dim=-1)
    return _used(weights if mask is None else weights * mask, v, dropout)


@wrong("ignoring the mask", "Where the mask is False, the weight has to be 0.")
def attention_without_mask(q, k, v, mask=None, dropout=None):
    return _used(_softmax(_scores(q, k), None), v, dropout)


@wrong("a softmax over the queries", "The weights of one query sum to 1: softmax over the keys, dim=-1.")
def attention_wrong_axis(q, k, v, mask=None, dropout=None):
    return _used(_softmax(_scores(q, k), mask, dim=-2), v, dropout)


@wrong(
    "a softmax over dim=1, the heads,",
    "There is one axis more than in lesson 01. Count from the end: the keys are dim=-1.",
)
def attention_softmax_over_heads(q, k, v, mask=None, dropout=None):
    return _used(_softmax(_scores(q, k), mask, dim=1), v, dropout)


@wrong(
    "exponentials from which no maximum was subtracted",
    "Of large scores they overflow. torch.softmax subtracts the largest score of each row, as lesson 02 did.",
)
def attention_overflows(q, k, v, mask=None, dropout=None):
    powers = torch.exp(_scores(q, k))
    powers = powers if mask is None else powers * mask
    return _used(powers / powers.sum(-1, keepdim=True), v, dropout)


@wrong(
    "subtracting one maximum, that of the whole tensor, from all rows",
    "Rows far below it become 0/0. Each row has its own maximum; torch.softmax sees to it.",
)
def attention_one_maximum(q, k, v, mask=None, dropout=None):
    scores = _scores(q, k)
    powers = torch.exp(scores - scores.max())
    powers = powers if mask is None else powers * mask
    return _used(powers / powers.sum(-1, keepdim=True), v, dropout)


@wrong(
    "dividing by the root of d_v, the length of a value,",
    "A score sums d_k products, the length of a query: math.sqrt(q.shape[-1]).",
)
def attention_scaled_by_values(q, k, v, mask=None, dropout=None):
    return _used(_softmax(q @ k.transpose(-2, -1) / math.sqrt(v.shape[-1]), mask), v, dropout)


@wrong("dividing twice by the root of d_k, as by scaling both q and k,", "Once: either the queries or the scores.")
def attention_scaled_twice(q, k, v, mask=None, dropout=None):
    root = math.sqrt(q.shape[-1])
    return _used(_softmax((q / root) @ (k / root).transpose(-2, -1), mask), v, dropout)


@wrong(
    "weights * v, number by number",
    "The context of a query is a sum over the keys, which is what a matrix product takes: weights @ v.",
)
def attention_multiplies_number_by_number(q, k, v, mask=None, dropout=None):
    weights = _softmax(_scores(q, k), mask)
    return weights * v, weights


@wrong(
    "picking out scores with the mask as an index, which does not broadcast",
    "A mask may be smaller than the scores. masked_fill(~mask, ...) and torch.where broadcast it.",
)
def attention_indexes_with_the_mask(q, k, v, mask=None, dropout=None):
    scores = _scores(q, k)
    if mask is not None:
        scores[~mask] = -torch.inf
    return _used(torch.softmax(scores, dim=-1), v, dropout)


@wrong("scores held between two limits", "Any score is allowed. torch.softmax can take large ones.")
def attention_clamps(q, k, v, mask=None, dropout=None):
    return _used(_softmax(_scores(q, k).clamp(-50, 50), mask), v, dropout)


@wrong("scores in place of weights", "Between the scores and the values stands the softmax over the keys.")
def attention_without_softmax(q, k, v, mask=None, dropout=None):
    return _used(_scores(q, k), v, dropout)


@wrong("returning the weights first", "The context comes first: `return ..., weights`.")
def attention_swapped_outputs(q, k, v, mask=None, dropout=None):
    return _used(_softmax(_scores(q, k), mask), v, dropout)[::-1]


@wrong("returning the context alone", says="it should return 2 things: context and weights")
def attention_context_only(q, k, v, mask=None, dropout=None):
    return _used(_softmax(_scores(q, k), mask), v, dropout)[0]


# 3.4 MultiHeadAttention ---------------------------------------------------------------------------------------------


class _Layer(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def projected(self, query, key, value):
        return self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(self.W_v(value))

    def joined(self, context):
        return context.transpose(1, 2).flatten(2)

    def attend(self, q, k, v, mask):
        weights = _softmax(_scores(q, k), mask)
        return self.dropped(weights) @ v, weights

    def dropped(self, weights):
        return F.dropout(weights, self.dropout, self.training)

    def forward(self, query, key, value, mask=None):
        context, weights = self.attend(*self.projected(query, key, value), mask)
        return self.W_o(self.joined(context)), weights


wrong = mistakes_of("MultiHeadAttention")


@wrong(
    "splitting the heads by a bare view",
    "In that way a head gets whole tokens, not its share of each. Use split_heads from exercise 3.1.",
)
class LayerSplitsByView(_Layer):
    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], -1)


@wrong("merging the heads by a bare reshape", "It mixes the tokens. Use merge_heads from exercise 3.2.")
class LayerMergesByReshape(_Layer):
    def joined(self, context):
        return context.reshape(context.shape[0], context.shape[2], -1)


@wrong("leaving W_o out", "What the heads found stands side by side; W_o mixes it: the last step is self.W_o(...).")
class LayerWithoutOutput(_Layer):
    def forward(self, query, key, value, mask=None):
        context, weights = self.attend(*self.projected(query, key, value), mask)
        return self.joined(context), weights


@wrong(
    "dividing by the root of d_model",
    "Within a head a dot product sums d = d_model / H products, and the root of d is what counts. Split before you "
    "attend.",
)
class LayerScaledByModel(_Layer):
    def forward(self, query, key, value, mask=None):
        q, k, v = self.projected(query, key, value)
        context, weights = self.attend(q / math.sqrt(self.num_heads), k, v, mask)
        return self.W_o(self.joined(context)), weights


@wrong(
    "one head over the whole of d_model",
    "Queries, keys and values are split before they attend, so that each head has a softmax of its own.",
)
class LayerWithoutHeads(_Layer):
    def forward(self, query, key, value, mask=None):
        q, k, v = (w(x)[:, None] for w, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value)))
        context, weights = self.attend(q, k, v, mask)
        return self.W_o(context[:, 0]), weights


@wrong(
    "making the values from key", "W_v takes value, not key. In self-attention the two are the same, which hides it."
)
class LayerValuesFromKeys(_Layer):
    def projected(self, query, key, value):
        return super().projected(query, key, key)


@wrong("making the keys from query", "Only the query is made from `query`: `W_k` acts on `key`, `W_v` on `value`.")
class LayerKeysFromQuery(_Layer):
    def projected(self, query, key, value):
        return super().projected(query, query, value)


@wrong("making the values from query", "Only the query is made from `query`: `W_k` acts on `key`, `W_v` on `value`.")
class LayerValuesFromQuery(_Layer):
    def projected(self, query, key, value):
        return super().projected(query, key, query)


@wrong(
    "making keys and values from query", "Only the query is made from `query`: `W_k` acts on `key`, `W_v` on `value`."
)
class LayerAllFromQuery(_Layer):
    def projected(self, query, key, value):
        return super().projected(query, query, query)


@wrong("making the keys with W_q", "Keys come from W_k.")
class LayerKeysWithQueries(_Layer):
    def projected(self, query, key, value):
        return self.split(self.W_q(query)), self.split(self.W_q(key)), self.split(self.W_v(value))


@wrong("making the values with W_k", "Values come from W_v.")
class LayerValuesWithKeys(_Layer):
    def projected(self, query, key, value):
        return self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(self.W_k(value))


@wrong("handing over the values without W_v", "All three inputs are projected: split self.W_v(value).")
class LayerWithoutValues(_Layer):
    def projected(self, query, key, value):
        return self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(value)


@wrong("not handing the mask on", "scaled_dot_product_attention takes it as its fourth argument.")
class LayerIgnoresMask(_Layer):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, value, None)


@wrong(
    "dropout in evaluation",
    "After .eval() nothing may be dropped. nn.Dropout sees to it; F.dropout needs self.training as its third argument.",
)
class LayerAlwaysDrops(_Layer):
    def dropped(self, weights):
        return F.dropout(weights, self.dropout)


@wrong("averaging the weights over the heads", "Return each head's own, (B, H, Tq, Tk), as the function gave them.")
class LayerAveragesWeights(_Layer):
    def forward(self, query, key, value, mask=None):
        output, weights = super().forward(query, key, value, mask)
        return output, weights.mean(dim=1)


@wrong("returning the weights first", "The output comes first: `return output, weights`.")
class LayerSwappedOutputs(_Layer):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, value, mask)[::-1]


@wrong("returning the output alone", says="it should return 2 things: output and weights")
class LayerOutputOnly(_Layer):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, value, mask)[0]


@wrong("adding the query to the output", "Here only what the heads found is returned, through W_o.")
class LayerAddsTheQuery(_Layer):
    def forward(self, query, key, value, mask=None):
        output, weights = super().forward(query, key, value, mask)
        return output + query, weights


@wrong("one projection for queries, keys and values", says="missing: W_k.weight (21, 21)")
class LayerSharesProjections(_Layer):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__(d_model, num_heads, dropout)
        self.W_v = self.W_k = self.W_q


@wrong("layers without bias", says="missing: W_q.bias (21,), W_k.bias (21,)")
class LayerWithoutBias(_Layer):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__(d_model, num_heads, dropout)
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))


@wrong("projections of full size for each head", says="its parameters are W_q.weight (63, 21)")
class LayerOfWideHeads(_Layer):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__(d_model, num_heads, dropout)
        self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, num_heads * d_model) for _ in range(3))
        self.W_o = nn.Linear(num_heads * d_model, d_model)


@wrong("no dropout in training", says="hand nn.Dropout(dropout) on to scaled_dot_product_attention")
class LayerNeverDrops(_Layer):
    def dropped(self, weights):
        return weights


@wrong("dropout on the output", says="all weights are dropped, nothing else is")
class LayerDropsOutput(LayerNeverDrops):
    def forward(self, query, key, value, mask=None):
        output, weights = super().forward(query, key, value, mask)
        return F.dropout(output, self.dropout, self.training), weights


@wrong("dropout on the context", says="It is the weights that are dropped, not numbers of the values or of the context")
class LayerDropsContext(LayerNeverDrops):
    def joined(self, context):
        return F.dropout(super().joined(context), self.dropout, self.training)


@wrong("dropout on the values", says="It is the weights that are dropped, not numbers of the values or of the context")
class LayerDropsValues(LayerNeverDrops):
    def projected(self, query, key, value):
        q, k, v = super().projected(query, key, value)
        return q, k, F.dropout(v, self.dropout, self.training)


@wrong("returning dropped weights", says="the weights that are returned should be those before dropout")
class LayerReturnsDropped(_Layer):
    def attend(self, q, k, v, mask):
        weights = self.dropped(_softmax(_scores(q, k), mask))
        return weights @ v, weights


@wrong("dropping without dividing the others by 1 - p", says="divides those that survive by 1 - p")
class LayerDropsWithoutDividing(_Layer):
    def dropped(self, weights):
        return weights * (torch.rand_like(weights) >= self.dropout * self.training)


@wrong("dropping whole rows", says="all keys of a query lose their weights together")
class LayerDropsRows(_Layer):
    def dropped(self, weights):
        return weights * F.dropout(torch.ones_like(weights[..., :1]), self.dropout, self.training)


@wrong("dropping the same keys for all queries", says="all queries of a sentence lose their weights together")
class LayerDropsKeys(_Layer):
    def dropped(self, weights):
        return weights * F.dropout(torch.ones_like(weights[:, :, :1]), self.dropout, self.training)


@wrong("dropping the same weights in all heads", says="all heads lose their weights together")
class LayerDropsInAllHeads(_Layer):
    def dropped(self, weights):
        return weights * F.dropout(torch.ones_like(weights[:, :1]), self.dropout, self.training)


@wrong("dropping the same weights in all sentences", says="all sentences lose their weights together")
class LayerDropsInAllSentences(_Layer):
    def dropped(self, weights):
        return weights * F.dropout(torch.ones_like(weights[:1]), self.dropout, self.training)


# 3.5 copy_to_torch --------------------------------------------------------------------------------------------------


def _four(state, order="qkv", change=lambda t: t, dim=0):
    weight = torch.cat([change(state[f"W_{n}.weight"]) for n in order], dim=dim)
    bias = torch.cat([state[f"W_{n}.bias"] for n in order])
    return weight, bias, change(state["W_o.weight"]), state["W_o.bias"]


wrong = mistakes_of("copy_to_torch")


@wrong(
    "joining in the order k, q, v",
    "PyTorch takes the first third for the queries, the second for the keys, the last for the values.",
)
def copy_keys_first(state):
    return _four(state, "kqv")


@wrong(
    "exchanging keys and values",
    "PyTorch takes the first third for the queries, the second for the keys, the last for the values.",
)
def copy_values_second(state):
    return _four(state, "qvk")


@wrong("transposing the weights", "Both keep a weight as (out, in). Nothing has to be transposed.")
def copy_transposed(state):
    return _four(state, change=lambda t: t.T)


@wrong(
    "joining the matrices side by side",
    "in_proj_weight is (3·d_model, d_model): one below the other, torch.cat along the first axis.",
)
def copy_side_by_side(state):
    return _four(state, dim=1)


@wrong(
    "stacking the matrices",
    "torch.stack makes a new axis, (3, d_model, d_model). torch.cat joins along one that is there.",
)
def copy_stacked(state):
    weight = torch.stack([state[f"W_{n}.weight"] for n in "qkv"])
    bias = torch.stack([state[f"W_{n}.bias"] for n in "qkv"])
    return weight, bias, state["W_o.weight"], state["W_o.bias"]


@wrong(
    "dealing the rows out in turn, one of q, one of k, one of v,",
    "All rows of W_q come first, then all of W_k, then all of W_v.",
)
def copy_interleaved(state):
    weight = torch.stack([state[f"W_{n}.weight"] for n in "qkv"], dim=1).flatten(0, 1)
    bias = torch.stack([state[f"W_{n}.bias"] for n in "qkv"], dim=1).flatten()
    return weight, bias, state["W_o.weight"], state["W_o.bias"]


@wrong("joining all four matrices", "Three go into in_proj_weight; W_o has a place of its own, out_proj.weight.")
def copy_all_four(state):
    return _four(state, "qkvo")


@wrong("adding the three matrices up", "They are put one below the other, with torch.cat, so that each keeps its rows.")
def copy_added(state):
    weight, bias = sum(state[f"W_{n}.weight"] for n in "qkv"), sum(state[f"W_{n}.bias"] for n in "qkv")
    return weight, bias, state["W_o.weight"], state["W_o.bias"]


@wrong(
    "returning both weights before both biases",
    "The order is that of torch_names: in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias.",
)
def copy_weights_first(state):
    weight, bias, out_weight, out_bias = _four(state)
    return weight, out_weight, bias, out_bias


@wrong("leaving the biases at zero", "Each projection has a bias in state, W_q.bias and so on; carry them over too.")
def copy_zero_biases(state):
    weight, bias, out_weight, out_bias = _four(state)
    return weight, torch.zeros_like(bias), out_weight, torch.zeros_like(out_bias)


@wrong("counting the bias of W_o into in_proj_bias", "It has a place of its own, out_proj.bias.")
def copy_all_biases(state):
    bias = torch.cat([state[f"W_{n}.bias"] for n in "qkvo"])
    return _four(state)[0], bias, state["W_o.weight"], state["W_o.bias"]


@wrong("leaving the biases out", says="it should return 4 things: in_proj_weight, in_proj_bias")
def copy_without_biases(state):
    return _four(state)[0], _four(state)[2]


@wrong("returning a dictionary", says="it returned a dict")
def copy_dictionary(state):
    return dict(zip(("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"), _four(state), strict=True))


# 3.6 head_ablation --------------------------------------------------------------------------------------------------


def _joined(heads):
    return heads.transpose(1, 2).flatten(2)


def _outputs_without(heads, W_o):
    outputs = []
    for h in range(heads.shape[1]):
        without = heads.clone()
        without[:, h] = 0
        outputs.append(_joined(without) @ W_o)
    return outputs


wrong = mistakes_of("head_ablation")


@wrong("using W_o without transposing it", "nn.Linear keeps its weight as (out, in) and computes x @ weight.T.")
def ablation_untransposed(heads, W_o):
    full = _joined(heads) @ W_o
    return torch.stack([(full - without).norm(dim=-1) for without in _outputs_without(heads, W_o)], dim=1)


@wrong("leaving W_o out", "A head counts as much as W_o makes of it: compare the outputs, not the contexts.")
def ablation_without_W_o(heads, W_o):
    return heads.norm(dim=-1) + 0 * W_o.sum()


@wrong(
    "writing the zeros into the input",
    "The caller's heads change then, and each round starts with fewer of them. Write into heads.clone().",
)
def ablation_in_place(heads, W_o):
    full = _joined(heads) @ W_o.T
    moved = []
    for h in range(heads.shape[1]):
        heads[:, h] = 0
        moved.append((full - _joined(heads) @ W_o.T).norm(dim=-1))
    return torch.stack(moved, dim=1)


@wrong(
    "leaving the heads off from one round to the next",
    "Make the clone inside the loop, so that each round starts with all heads on.",
)
def ablation_heads_stay_off(heads, W_o):
    full, without, moved = _joined(heads) @ W_o.T, heads.clone(), []
    for h in range(heads.shape[1]):
        without[:, h] = 0
        moved.append((full - _joined(without) @ W_o.T).norm(dim=-1))
    return torch.stack(moved, dim=1)


@wrong(
    "measuring what the other heads contribute",
    "Switch off head h alone, and measure how far the output moves from the one with all heads: take the difference "
    "of the two, "
    "then its length.",
)
def ablation_of_what_is_left(heads, W_o):
    return torch.stack([without.norm(dim=-1) for without in _outputs_without(heads, W_o.T)], dim=1)


@wrong("the square of the length", "Take the root of the sum of squares; .norm(dim=-1) does both.")
def ablation_squared(heads, W_o):
    full = _joined(heads) @ W_o.T
    return torch.stack([(full - x).pow(2).sum(-1) for x in _outputs_without(heads, W_o.T)], dim=1)


@wrong(
    "the mean size of the differences", "The length of a vector is the root of the sum of its squares: .norm(dim=-1)."
)
def ablation_mean(heads, W_o):
    full = _joined(heads) @ W_o.T
    return torch.stack([(full - x).abs().mean(-1) for x in _outputs_without(heads, W_o.T)], dim=1)


@wrong("the sum of the sizes of the differences", "Of a vector (3, 4) the length is 5, not 7: .norm(dim=-1).")
def ablation_sum_of_sizes(heads, W_o):
    full = _joined(heads) @ W_o.T
    return torch.stack([(full - x).abs().sum(-1) for x in _outputs_without(heads, W_o.T)], dim=1)


@wrong("a head replaced by its mean over the tokens", "A head that is switched off gives 0.")
def ablation_by_the_mean(heads, W_o):
    moved = [heads[:, h] - heads[:, h].mean(1, keepdim=True) for h in range(heads.shape[1])]
    d = heads.shape[-1]
    return torch.stack([(x @ W_o[:, h * d : (h + 1) * d].T).norm(dim=-1) for h, x in enumerate(moved)], dim=1)


@wrong("putting the heads on the last axis", "The result is (B, H, T): stack along dim=1.")
def ablation_heads_last(heads, W_o):
    full = _joined(heads) @ W_o.T
    return torch.stack([(full - x).norm(dim=-1) for x in _outputs_without(heads, W_o.T)], dim=-1)


@wrong("putting the heads in front of the batch", "The result is (B, H, T): stack along dim=1.")
def ablation_heads_first(heads, W_o):
    full = _joined(heads) @ W_o.T
    return torch.stack([(full - x).norm(dim=-1) for x in _outputs_without(heads, W_o.T)], dim=0)


@wrong("a mean over the tokens", "Each token has its own answer: (B, H, T).")
def ablation_averages_tokens(heads, W_o):
    full = _joined(heads) @ W_o.T
    return torch.stack([(full - x).norm(dim=-1).mean(-1) for x in _outputs_without(heads, W_o.T)], dim=1)


@wrong("joining the heads with a bare reshape", "It mixes the tokens. Use merge_heads from exercise 3.2.")
def ablation_reshapes(heads, W_o):
    B, H, T, d = heads.shape
    full = heads.reshape(B, T, H * d) @ W_o.T
    moved = []
    for h in range(H):
        without = heads.clone()
        without[:, h] = 0
        moved.append((full - without.reshape(B, T, H * d) @ W_o.T).norm(dim=-1))
    return torch.stack(moved, dim=1)


# 3.7 counterexample -------------------------------------------------------------------------------------------------

wrong = mistakes_of("counterexample")


@wrong("a single token", says="both implementations give the same")
def counterexample_one_token():
    return torch.randn(1, 1, 4), torch.randn(1, 1, 4), torch.randn(1, 1, 4)


@wrong("values that are all equal", says="both implementations give the same")
def counterexample_equal_values():
    return torch.randn(1, 3, 4), torch.randn(1, 3, 4), torch.ones(1, 3, 4)


@wrong("values of zeros", says="both implementations give the same")
def counterexample_zeros():
    return torch.randn(1, 2, 4), torch.randn(1, 2, 4), torch.zeros(1, 2, 4)


@wrong("one tensor", says="it should return three tensors as a tuple")
def counterexample_one_tensor():
    return torch.randn(1, 3, 4)


@wrong("queries and keys without values", says="it should return three tensors as a tuple")
def counterexample_two_tensors():
    return torch.randn(1, 3, 4), torch.randn(1, 3, 4)


@wrong("shapes in place of tensors", says="the first is a tuple")
def counterexample_shapes():
    return (1, 2, 4), (1, 2, 4), (1, 2, 4)


@wrong("tensors that are split already", says="the first tensor should have the axes (B, Tq, d_model)")
def counterexample_split_already():
    return torch.randn(1, 2, 3, 2), torch.randn(1, 2, 3, 2), torch.randn(1, 2, 3, 2)


@wrong("tokens that two heads cannot share", says="which 2 heads cannot share")
def counterexample_odd():
    return torch.randn(1, 2, 3), torch.randn(1, 2, 3), torch.randn(1, 2, 3)


@wrong("values narrower than queries", says="q, k and v need the same B and the same d_model")
def counterexample_narrow_values():
    return torch.randn(1, 3, 4), torch.randn(1, 3, 4), torch.randn(1, 3, 2)


@wrong("more keys than values", says="cannot take these inputs")
def counterexample_lengths_differ():
    return torch.randn(1, 2, 4), torch.randn(1, 3, 4), torch.randn(1, 2, 4)


@wrong("entries that are not finite", says="has no finite result on these inputs")
def counterexample_infinite():
    return torch.zeros(1, 2, 4), torch.zeros(1, 2, 4), torch.full((1, 2, 4), float("inf"))


@wrong("one query sentence for two memories", says="q, k and v need the same B and the same d_model")
def counterexample_unequal_batches():
    return torch.randn(1, 2, 4), torch.randn(2, 3, 4), torch.randn(2, 3, 4)


# 3.8 hears -----------------------------------------------------------------------------------------------------------


def _map(T, rule):
    rows = [[rule(i, j) for j in range(T)] for i in range(T)]
    return torch.tensor(rows, dtype=torch.bool, device=device.pick())


wrong = mistakes_of("hears")


@wrong(
    "everybody hearing everybody",
    "That is the map of the repaired function. Here a head holds only the numbers that stand in its part of memory.",
)
def hears_everybody(T, num_heads):
    return _map(T, lambda i, j: True)


@wrong("everybody hearing only themselves", "A head that holds numbers of several tokens averages over them.")
def hears_nobody_else(T, num_heads):
    return _map(T, lambda i, j: i == j)


@wrong(
    "giving each token to the one head that holds its first number",
    "Where H does not divide T, a token can lie across a cut: some of its numbers are in one head, some in the next.",
)
def hears_by_first_number(T, num_heads):
    return _map(T, lambda i, j: i * num_heads // T == j * num_heads // T)


@wrong(
    "giving each token to the one head that holds its last number",
    "Where H does not divide T, a token can lie across a cut: some of its numbers are in one head, some in the next.",
)
def hears_by_last_number(T, num_heads):
    return _map(T, lambda i, j: ((i + 1) * num_heads - 1) // T == ((j + 1) * num_heads - 1) // T)


@wrong(
    "dealing the tokens out to the heads in turns",
    "The numbers are cut in the order in which they stand in memory: neighbours stay together.",
)
def hears_in_turns(T, num_heads):
    return _map(T, lambda i, j: i % num_heads == j % num_heads)


@wrong(
    "groups of H tokens",
    "There are H heads, so H groups: each holds T / H tokens' worth of numbers, not H tokens.",
)
def hears_groups_of_H(T, num_heads):
    return _map(T, lambda i, j: i // num_heads == j // num_heads)


@wrong(
    "groups of T // H whole tokens",
    "T / H need not be whole. Cut the numbers, not the tokens: T · d_model numbers into H equal parts.",
)
def hears_groups_rounded_down(T, num_heads):
    size = max(T // num_heads, 1)
    return _map(T, lambda i, j: i // size == j // size)


@wrong(
    "groups of T / H tokens, rounded up",
    "T / H need not be whole. Cut the numbers, not the tokens: T · d_model numbers into H equal parts.",
)
def hears_groups_rounded_up(T, num_heads):
    size = -(-T // num_heads)
    return _map(T, lambda i, j: i // size == j // size)


@wrong(
    "letting a token on the cut carry everything across it",
    "It hears both sides, but they do not hear each other: one layer passes nothing on.",
)
def hears_at_second_hand(T, num_heads):
    first = [i * num_heads // T for i in range(T)]
    last = [((i + 1) * num_heads - 1) // T for i in range(T)]
    found = torch.tensor([[first[i] <= last[j] and first[j] <= last[i] for j in range(T)] for i in range(T)])
    for _ in range(T):
        found = (found.float() @ found.float()) > 0
    return found.to(device.pick())


@wrong(
    "marking who does not hear whom",
    "True stands where the output of i moves when the value of j changes.",
)
def hears_not(T, num_heads):
    first = [i * num_heads // T for i in range(T)]
    last = [((i + 1) * num_heads - 1) // T for i in range(T)]
    return _map(T, lambda i, j: first[i] > last[j] or first[j] > last[i])


@wrong("two halves, however many heads there are,", "H heads cut the numbers into H equal parts.")
def hears_two_halves(T, num_heads):
    return _map(T, lambda i, j: (i < T // 2) == (j < T // 2))


@wrong("numbers in place of booleans", says="it should be boolean")
def hears_as_numbers(T, num_heads):
    return torch.ones(T, T, device=device.pick())


@wrong("measuring in place of explaining", says="it measures")
def hears_by_measuring(T, num_heads):
    x = torch.eye(T).repeat_interleave(num_heads, dim=1)[None]
    return F.scaled_dot_product_attention(x, x, x)[0] > 0


# 3.9 repaired_attention ---------------------------------------------------------------------------------------------


def _bare(x, num_heads):
    return x.reshape(x.shape[0], num_heads, -1, x.shape[-1] // num_heads)


def _split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


wrong = mistakes_of("repaired_attention")


@wrong(
    "the function as it was",
    "Each head gets whole tokens, not its share of each. Cut each token first, (B, T, H, d), and transpose T and H.",
)
def repaired_unchanged(q, k, v, num_heads=2):
    context = F.scaled_dot_product_attention(*(_bare(x, num_heads) for x in (q, k, v)))
    return context.reshape(q.shape)


@wrong(
    "mending the way in alone", "The last line puts back what is no longer scrambled. Transpose back before you join."
)
def repaired_way_in(q, k, v, num_heads=2):
    context = F.scaled_dot_product_attention(*(_split(x, num_heads) for x in (q, k, v)))
    return context.reshape(q.shape)


@wrong(
    "mending the way out alone", "The heads still hold whole tokens: the view on the way in needs its transpose too."
)
def repaired_way_out(q, k, v, num_heads=2):
    context = F.scaled_dot_product_attention(*(_bare(x, num_heads) for x in (q, k, v)))
    return _joined(context)


@wrong("cutting keys and values with the number of queries", "k and v have Tk tokens: write -1, or x.shape[1], not Tq.")
def repaired_with_Tq(q, k, v, num_heads=2):
    B, Tq, d_model = q.shape
    q, k, v = (x.reshape(B, Tq, num_heads, d_model // num_heads).transpose(1, 2) for x in (q, k, v))
    return _joined(F.scaled_dot_product_attention(q, k, v))


@wrong("mending the queries alone", "Keys and values have to be split in the same way as the queries.")
def repaired_queries_only(q, k, v, num_heads=2):
    return _joined(F.scaled_dot_product_attention(_split(q, num_heads), _bare(k, num_heads), _bare(v, num_heads)))


@wrong(
    "mending the queries and the keys but not the values",
    "The values have to be split in the same way, else a weight for one token picks up another.",
)
def repaired_without_values(q, k, v, num_heads=2):
    return _joined(F.scaled_dot_product_attention(_split(q, num_heads), _split(k, num_heads), _bare(v, num_heads)))


@wrong("a single head", "num_heads has to make a difference: give each head its share of every token.")
def repaired_one_head(q, k, v, num_heads=2):
    return F.scaled_dot_product_attention(q, k, v)


@wrong(
    "attention among the heads of one token",
    "Before they attend, T and H have to be exchanged: PyTorch attends along the second axis from the end.",
)
def repaired_without_transpose(q, k, v, num_heads=2):
    q, k, v = (x.unflatten(-1, (num_heads, -1)) for x in (q, k, v))  # (B, T, H, d)
    return F.scaled_dot_product_attention(q, k, v).flatten(2)


@wrong(
    "dealing the numbers out one by one",
    "A head's numbers stand side by side: the view is (B, T, H, d), not (B, T, d, H).",
)
def repaired_interleaved(q, k, v, num_heads=2):
    q, k, v = (x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).permute(0, 2, 3, 1).flatten(2)


@wrong(
    "merging with the heads innermost",
    "Transpose T and H on the way out, so that (H, d) stand side by side in this order.",
)
def repaired_merges_interleaved(q, k, v, num_heads=2):
    context = F.scaled_dot_product_attention(*(_split(x, num_heads) for x in (q, k, v)))
    return context.permute(0, 2, 3, 1).flatten(2)


@wrong("exchanging the heads with the numbers", "The axes to exchange are T and H, 1 and 2 of (B, T, H, d).")
def repaired_exchanges_the_outer_axes(q, k, v, num_heads=2):
    B, Tq, d_model = q.shape
    q, k, v = (x.reshape(B, -1, num_heads, d_model // num_heads).transpose(1, 3) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 3).reshape(B, Tq, d_model)


@wrong("two heads, whatever num_heads is,", "2 is only what num_heads is by default.")
def repaired_two_heads(q, k, v, num_heads=2):
    q, k, v = (x.reshape(len(x), -1, 2, x.shape[-1] // 2).transpose(1, 2) for x in (q, k, v))
    return _joined(F.scaled_dot_product_attention(q, k, v))


def loop_attention(q, k, v, num_heads):
    slices = zip(*(x.chunk(num_heads, dim=-1) for x in (q, k, v)), strict=True)
    return torch.cat([F.scaled_dot_product_attention(*three) for three in slices], dim=-1)


@wrong("calling the loop that is right already", says="Mend the published lines themselves")
def repaired_by_the_loop(q, k, v, num_heads=2):
    return loop_attention(q, k, v, num_heads)
