"""Wrong answers to the exercises of lesson 03, each with what its author needs to read."""

import math

import torch
from torch import nn
from torch.nn import functional as F

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
    "The last two axes after the view are (H, d): a head's d numbers stand side by side. You have them as (d, H), "
    "which "
    "deals the numbers out one by one.",
)
def split_interleaved(x, num_heads):
    B, T, d_model = x.shape
    return x.reshape(B, T, d_model // num_heads, num_heads).permute(0, 3, 1, 2)


@wrong(
    "a view without the transpose",
    "You are at (B, T, H, d). Attention takes place in the last two axes, which have to be T and d: exchange T and H.",
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
    "You are at (B, T, H, d). The last two axes still have to become one: reshape(B, T, H * d).",
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


# 3.3 scaled_dot_product_attention -----------------------------------------------------------------------------------


def _attend(q, k, v, mask, dropout_p, divisor=None, dim=-1):
    scores = q @ k.transpose(-2, -1) / (math.sqrt(q.shape[-1]) if divisor is None else divisor)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=dim)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return F.dropout(weights, dropout_p) @ v, weights


wrong = mistakes_of("scaled_dot_product_attention")


@wrong("leaving the scores undivided", "Divide by the root of the length of a query: math.sqrt(q.shape[-1]).")
def attention_unscaled(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, mask, dropout_p, divisor=1.0)


@wrong("dividing by d_k itself", "By its square root: the variance of a score is d_k, its size the root of that.")
def attention_scaled_by_d(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, mask, dropout_p, divisor=q.shape[-1])


@wrong(
    "dividing by the root of q.shape[1], the number of heads,",
    "With the heads at axis 1, the length of a query is q.shape[-1].",
)
def attention_scaled_by_heads(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, mask, dropout_p, divisor=math.sqrt(q.shape[1]))


@wrong(
    "taking True for masked",
    "In this course True means keep. masked_fill writes where its condition is True, so it needs ~mask.",
)
def attention_mask_inverted(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, None if mask is None else ~mask, dropout_p)


@wrong(
    "multiplying the scores by the mask",
    "A score of 0 is an ordinary score, whose weight is e^0 and not 0. Write the lowest number there, with "
    "masked_fill.",
)
def attention_multiplies_scores(q, k, v, mask=None, dropout_p=0.0):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores if mask is None else scores * mask, dim=-1)
    return F.dropout(weights, dropout_p) @ v, weights


@wrong(
    "masking the weights alone, after the softmax,",
    "The masked keys have taken part of the unit by then, and the rest does not sum to 1. Mask the scores as well, "
    "before the "
    "softmax.",
)
def attention_masks_weights_only(q, k, v, mask=None, dropout_p=0.0):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    if mask is not None:
        weights = weights * mask
    return F.dropout(weights, dropout_p) @ v, weights


@wrong(
    "writing -inf into a row in which nothing is kept",
    "There the softmax divides 0 by 0. Use the lowest finite number, and set the masked weights to 0 after the "
    "softmax.",
)
def attention_nan(q, k, v, mask=None, dropout_p=0.0):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return F.dropout(weights, dropout_p) @ v, weights


@wrong(
    "leaving a row in which nothing is kept as the softmax made it",
    "All its scores are the same lowest number, so each key gets an equal share. Set the masked weights to 0 once "
    "more after the "
    "softmax.",
)
def attention_uniform_when_empty(q, k, v, mask=None, dropout_p=0.0):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return F.dropout(weights, dropout_p) @ v, weights


@wrong(
    "adding -inf and removing the NaN after the softmax",
    "The numbers look right, but the NaN is still on the way back: gradients of the queries become NaN. Keep it from "
    "arising.",
)
def attention_nan_in_the_gradient(q, k, v, mask=None, dropout_p=0.0):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    weights = torch.where(torch.isnan(weights), torch.zeros_like(weights), weights)
    return F.dropout(weights, dropout_p) @ v, weights


@wrong("ignoring the mask", "Where the mask is False, the weight has to be 0.")
def attention_without_mask(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, None, dropout_p)


@wrong("a softmax over the queries", "The weights of one query sum to 1: softmax over the keys, dim=-1.")
def attention_wrong_axis(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, mask, dropout_p, dim=-2)


@wrong(
    "a softmax over dim=1, the heads,",
    "There is one axis more than in lesson 01. Count from the end: the keys are dim=-1.",
)
def attention_softmax_over_heads(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, mask, dropout_p, dim=1)


@wrong("leaving dropout out", "Between the weights and the values stands F.dropout(weights, dropout_p).")
def attention_without_dropout(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, mask, 0.0)


@wrong(
    "returning the weights after dropout",
    "Whoever looks at the weights wants to see all of them: give the thinned-out ones another name, or none.",
)
def attention_returns_dropped(q, k, v, mask=None, dropout_p=0.0):
    _, weights = _attend(q, k, v, mask, 0.0)
    weights = F.dropout(weights, dropout_p)
    return weights @ v, weights


@wrong("dropout on the scores", "A score of 0 still gets weight. Dropout acts on the weights, after the softmax.")
def attention_drops_scores(q, k, v, mask=None, dropout_p=0.0):
    scores = F.dropout(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dropout_p)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights


@wrong("dropout on the context", says="It is the weights that are dropped, not numbers of the values or of the context")
def attention_drops_context(q, k, v, mask=None, dropout_p=0.0):
    context, weights = _attend(q, k, v, mask, 0.0)
    return F.dropout(context, dropout_p), weights


@wrong("dropout on the values", says="It is the weights that are dropped, not numbers of the values or of the context")
def attention_drops_values(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, F.dropout(v, dropout_p), mask, 0.0)


@wrong("dropping the same keys for all queries", says="drops each weight on its own")
def attention_drops_whole_keys(q, k, v, mask=None, dropout_p=0.0):
    _, weights = _attend(q, k, v, mask, 0.0)
    return (weights * F.dropout(torch.ones_like(weights[:, :, :1]), dropout_p)) @ v, weights


@wrong("dropping without dividing the others by 1 - dropout_p", says="divides those that survive by 1 - dropout_p")
def attention_drops_without_dividing(q, k, v, mask=None, dropout_p=0.0):
    _, weights = _attend(q, k, v, mask, 0.0)
    return weights * (torch.rand_like(weights) >= dropout_p) @ v, weights


@wrong(
    "dividing by 1 - dropout_p by hand, which is 0 at dropout_p = 1,",
    "F.dropout(weights, dropout_p) divides by it and takes care of that case.",
)
def attention_drops_by_hand(q, k, v, mask=None, dropout_p=0.0):
    _, weights = _attend(q, k, v, mask, 0.0)
    return weights * (torch.rand_like(weights) >= dropout_p) / (1 - dropout_p) @ v, weights


@wrong("returning the weights first", "The context comes first: `return ..., weights`.")
def attention_swapped_outputs(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, mask, dropout_p)[::-1]


@wrong("returning the context alone", says="it should return 2 things: context and weights")
def attention_context_only(q, k, v, mask=None, dropout_p=0.0):
    return _attend(q, k, v, mask, dropout_p)[0]


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

    def p(self):
        return self.dropout if self.training else 0.0

    def forward(self, query, key, value, mask=None):
        context, weights = _attend(*self.projected(query, key, value), mask, self.p())
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
        context, weights = _attend(*self.projected(query, key, value), mask, self.p())
        return self.joined(context), weights


@wrong(
    "dividing by the root of d_model",
    "Within a head a dot product sums d = d_model / H products, and the root of d is what counts. Split before you "
    "attend.",
)
class LayerScaledByModel(_Layer):
    def forward(self, query, key, value, mask=None):
        q, k, v = self.projected(query, key, value)
        context, weights = _attend(q, k, v, mask, self.p(), divisor=math.sqrt(query.shape[-1]))
        return self.W_o(self.joined(context)), weights


@wrong(
    "one head over the whole of d_model",
    "Queries, keys and values are split before they attend, so that each head has a softmax of its own.",
)
class LayerWithoutHeads(_Layer):
    def forward(self, query, key, value, mask=None):
        q, k, v = (w(x)[:, None] for w, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value)))
        context, weights = _attend(q, k, v, mask, self.p())
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


@wrong("making the keys with W_q", "Copy and paste? Keys come from W_k.")
class LayerKeysWithQueries(_Layer):
    def projected(self, query, key, value):
        return self.split(self.W_q(query)), self.split(self.W_q(key)), self.split(self.W_v(value))


@wrong("handing over the values without W_v", "All three inputs are projected: split self.W_v(value).")
class LayerWithoutValues(_Layer):
    def projected(self, query, key, value):
        return self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(value)


@wrong("not handing the mask on", "scaled_dot_product_attention takes it as its fourth argument.")
class LayerIgnoresMask(_Layer):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, value, None)


@wrong(
    "dropout in evaluation", "After .eval() nothing may be dropped: hand on `self.dropout if self.training else 0.0`."
)
class LayerAlwaysDrops(_Layer):
    def p(self):
        return self.dropout


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


@wrong("no dropout in training", says="hand self.dropout on to scaled_dot_product_attention")
class LayerNeverDrops(_Layer):
    def p(self):
        return 0.0


@wrong("dropout on the output", says="all weights are dropped, nothing else is")
class LayerDropsOutput(_Layer):
    def forward(self, query, key, value, mask=None):
        context, weights = _attend(*self.projected(query, key, value), mask, 0.0)
        return F.dropout(self.W_o(self.joined(context)), self.dropout, self.training), weights


@wrong("dropout on the context", says="It is the weights that are dropped, not numbers of the values or of the context")
class LayerDropsContext(_Layer):
    def forward(self, query, key, value, mask=None):
        context, weights = _attend(*self.projected(query, key, value), mask, 0.0)
        return self.W_o(F.dropout(self.joined(context), self.dropout, self.training)), weights


@wrong("dropout on the values", says="It is the weights that are dropped, not numbers of the values or of the context")
class LayerDropsValues(_Layer):
    def projected(self, query, key, value):
        q, k, v = super().projected(query, key, value)
        return q, k, F.dropout(v, self.dropout, self.training)

    def p(self):
        return 0.0


@wrong("returning dropped weights", says="the weights that are returned should be those before dropout")
class LayerReturnsDropped(_Layer):
    def forward(self, query, key, value, mask=None):
        q, k, v = self.projected(query, key, value)
        _, weights = _attend(q, k, v, mask, 0.0)
        weights = F.dropout(weights, self.dropout, self.training)
        return self.W_o(self.joined(weights @ v)), weights


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


@wrong("leaving the biases out", says="it should return 4 things: in_proj_weight, in_proj_bias")
def copy_without_biases(state):
    return _four(state)[0], _four(state)[2]


@wrong("returning a dictionary", says="it returned a dict")
def copy_dictionary(state):
    return dict(zip(("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"), _four(state), strict=True))


# 3.6 count_parameters -----------------------------------------------------------------------------------------------

wrong = mistakes_of("count_parameters")


@wrong(
    "counting a full set of matrices for each head",
    "The heads share four matrices: each takes d_model / H rows of them. However many heads there are, the count is "
    "the same.",
)
def count_times_heads(d_model, num_heads, bias=True):
    return 4 * num_heads * (d_model * d_model + (d_model if bias else 0))


@wrong(
    "counting full query, key and value matrices for each head, and one W_o,",
    "The heads share four matrices: each takes d_model / H rows of W_q, W_k and W_v.",
)
def count_three_times_heads(d_model, num_heads, bias=True):
    return (3 * num_heads + 1) * (d_model * d_model + (d_model if bias else 0))


_SMALL = (
    "A head reads all d_model numbers of a token and makes d of them: its matrices are d × d_model, not d × d, and its "
    "share of W_o is d_model × d."
)


@wrong("counting four matrices of d × d for each head", _SMALL)
def count_small(d_model, num_heads, bias=True):
    d = d_model // num_heads
    return 4 * num_heads * (d * d + (d if bias else 0))


@wrong("counting three matrices of d × d for each head, and W_o,", _SMALL)
def count_small_and_output(d_model, num_heads, bias=True):
    d = d_model // num_heads
    return 3 * num_heads * (d * d + (d if bias else 0)) + d_model * d_model + (d_model if bias else 0)


@wrong("leaving out W_o", "There are four projections: W_q, W_k, W_v and W_o.")
def count_three(d_model, num_heads, bias=True):
    return 3 * (d_model * d_model + (d_model if bias else 0))


@wrong("leaving the biases out", "If bias is True, each projection has d_model more numbers.")
def count_without_bias(d_model, num_heads, bias=True):
    return 4 * d_model * d_model


@wrong("counting biases even where bias is False", "The argument decides whether they are there.")
def count_always_bias(d_model, num_heads, bias=True):
    return 4 * (d_model * d_model + d_model)


@wrong("counting one number for each bias", "A bias is a vector: one number for each of the d_model outputs.")
def count_scalar_bias(d_model, num_heads, bias=True):
    return 4 * (d_model * d_model + (1 if bias else 0))


@wrong("counting a single bias for all four projections", "Each of the four has a bias of its own.")
def count_one_bias(d_model, num_heads, bias=True):
    return 4 * d_model * d_model + (d_model if bias else 0)


@wrong(
    "counting the projections of a single head",
    "Each head has its share of W_q, W_k and W_v; count the shares of all of them.",
)
def count_one_head(d_model, num_heads, bias=True):
    d = d_model // num_heads
    return 3 * (d_model * d + (d if bias else 0)) + d_model * d_model + (d_model if bias else 0)


@wrong("counting a single projection", "This is one of four: W_q, W_k, W_v and W_o.")
def count_one(d_model, num_heads, bias=True):
    return d_model * d_model + (d_model if bias else 0)


# 3.7 head_ablation --------------------------------------------------------------------------------------------------


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
    "The caller's heads are gone then, and each round starts with fewer of them. Write into heads.clone().",
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


# 3.8 counterexample -------------------------------------------------------------------------------------------------

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


@wrong("values narrower than queries", says="d_model is 4 in q, 4 in k and 2 in v")
def counterexample_narrow_values():
    return torch.randn(1, 3, 4), torch.randn(1, 3, 4), torch.randn(1, 3, 2)


@wrong("more keys than values", says="cannot take these inputs")
def counterexample_lengths_differ():
    return torch.randn(1, 2, 4), torch.randn(1, 3, 4), torch.randn(1, 2, 4)


@wrong("entries that are not finite", says="has no finite result on these inputs")
def counterexample_infinite():
    return torch.zeros(1, 2, 4), torch.zeros(1, 2, 4), torch.full((1, 2, 4), float("inf"))


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
    "mending the way in alone", "The last line undid the old mistake; now it makes one. Transpose back before you join."
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
