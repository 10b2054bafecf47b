"""Wrong answers to the exercises of lesson 01, each with what its author needs to read."""

import math

import torch
from torch import nn

from attention_course.authoring import mistakes_of

# 1.1 weighted_context -----------------------------------------------------------------------------------------------

wrong = mistakes_of("weighted_context")


@wrong(
    "turning the weights around, so that values ask and queries answer,",
    "The weights are (B, Tq, Tk) already: row i belongs to query i. Multiply them as they are.",
)
def context_weights_transposed(weights, v):
    return weights.transpose(-2, -1) @ v


@wrong(
    "the plain mean of the values",
    "That is the old fixed context: every query gets the same. Each query's own weights have to decide.",
)
def context_is_the_mean(weights, v):
    return v.mean(dim=1, keepdim=True).expand(-1, weights.shape[1], -1)


@wrong("adding the queries up", "Only Tk is summed over; Tq stays, with one context for each query.")
def context_sums_queries(weights, v):
    return torch.einsum("bij,bjd->bd", weights, v)[:, None]


@wrong(
    "taking the value with the largest weight and leaving out the others",
    "A weight of 0.5 takes half of a value. Sum over all of them.",
)
def context_takes_the_largest(weights, v):
    return torch.stack([x[i] for x, i in zip(v, weights.argmax(dim=-1), strict=True)])


@wrong(
    "dividing the weighted sum by the number of values, as a mean in place of the sum does,",
    "The weights sum to 1 already, so the weighted sum is the average.",
)
def context_divided_again(weights, v):
    return weights @ v / v.shape[1]


@wrong("a second softmax over weights that are weights already", "Use the weights as they come.")
def context_softmax_again(weights, v):
    return torch.softmax(weights, dim=-1) @ v


@wrong("returning the contexts with their last two axes exchanged", "One context per query: (B, Tq, d_v).")
def context_transposed(weights, v):
    return (weights @ v).transpose(-2, -1)


@wrong(
    "cutting the weights off from the graph, as .detach() and .data do,",
    "The weights are what attention learns; their gradient must come through.",
)
def context_detached(weights, v):
    return weights.detach() @ v


@wrong(
    "multiplying weights and values entry by entry, weights * v,",
    "Row i of the result is a sum over all values: a matrix product, written @. The sign * pairs entries by their "
    "place, and works only where the shapes happen to agree.",
)
def context_entry_by_entry(weights, v):
    return weights * v


@wrong(
    "multiplying with the values turned around, weights @ v.transpose(-2, -1),",
    "(B, Tq, Tk) and (B, Tk, d_v) meet at Tk as they are: nothing has to be turned.",
)
def context_values_turned(weights, v):
    return weights @ v.transpose(-2, -1)


# 1.2 dot_scores -----------------------------------------------------------------------------------------------------

wrong = mistakes_of("dot_scores")


@wrong(
    "scoring the keys against the queries", "Rows are queries, columns are keys: q stands on the left of the product."
)
def dot_swapped(q, k):
    return k @ q.transpose(-2, -1)


@wrong("the cosine of the angle", "Nothing is divided by the lengths of the vectors: a longer key scores higher.")
def dot_cosine(q, k):
    return torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).transpose(-2, -1)


@wrong(
    "reshaping the keys where they should be transposed",
    "reshape keeps the numbers in their order and cuts them anew, so entries of different keys get mixed. "
    "transpose moves the axes.",
)
def dot_reshaped(q, k):
    return q @ k.reshape(k.shape[0], k.shape[2], k.shape[1])


@wrong("dividing by the square root of d", "That comes in exercise 1.4. Here it is the dot product alone.")
def dot_scaled_already(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


@wrong("a softmax of the scores", "Scores come first; they become weights later.")
def dot_softmaxed(q, k):
    return torch.softmax(q @ k.transpose(-2, -1), dim=-1)


@wrong("the negative squared distance between query and key", "A score is the sum of the products of their entries.")
def dot_distance(q, k):
    return -(q[:, :, None] - k[:, None]).pow(2).sum(-1)


@wrong(
    "a result in float32 whatever the input is, from torch.zeros without a dtype or from .float(),",
    "Nothing needs converting; and one matrix product needs no tensor of zeros.",
)
def dot_always_single(q, k):
    scores = torch.zeros(q.shape[0], q.shape[1], k.shape[1])
    for i in range(q.shape[1]):
        scores[:, i] = (q[:, i, None] * k).sum(-1)
    return scores


@wrong(
    "changing the keys in place, as transpose_ with an underscore does,",
    "The caller's keys are not what they were. transpose without the underscore leaves them alone.",
)
def dot_in_place(q, k):
    return q @ k.transpose_(-2, -1)


@wrong(
    "q @ k, with the keys as they come",
    "The axis that is summed over stands last on the left and second to last on the right: turn the last two of k.",
)
def dot_not_turned(q, k):
    return q @ k


@wrong(
    "q @ k.T, which turns all the axes of k",
    "With three axes, k.T is (d, Tk, B). The batch stays in front: exchange the last two axes alone.",
)
def dot_all_axes_turned(q, k):
    return q @ k.permute(2, 1, 0)  # what k.T does, without its warning that it will go


@wrong(
    "(q * k).sum(-1), which pairs query i with key i",
    "Every query meets every key: Tq · Tk scores for each example, by one matrix product.",
)
def dot_in_pairs(q, k):
    return (q * k).sum(-1)


# 1.3 score_variance -------------------------------------------------------------------------------------------------

wrong = mistakes_of("score_variance")


@wrong("the standard deviation", "That is the square root of the variance: use .var(), not .std().")
def variance_std(d, n):
    return (torch.randn(n, d) * torch.randn(n, d)).sum(-1).std().item()


@wrong(
    "numbers whose variance is 1 for every d: the single products before they are summed, or dot products over √d,",
    "A dot product is the sum of its d products, and nothing is divided yet: (q * k).sum(dim=-1).",
)
def variance_not_summed(d, n):
    return (torch.randn(n, d) * torch.randn(n, d)).var().item()


@wrong(
    "torch.rand in place of torch.randn",
    "rand draws evenly between 0 and 1; the argument above needs mean 0 and variance 1, which randn has.",
)
def variance_uniform(d, n):
    return (torch.rand(n, d) * torch.rand(n, d)).sum(-1).var().item()


@wrong("the mean size of the scores", "Variance is the mean squared distance from the mean; .var() computes it.")
def variance_mean_size(d, n):
    return (torch.randn(n, d) * torch.randn(n, d)).sum(-1).abs().mean().item()


@wrong("the dot product of each query with itself", "Query and key are drawn independently: call torch.randn twice.")
def variance_same_vector(d, n):
    q = torch.randn(n, d)
    return (q * q).sum(-1).var().item()


@wrong(
    "the variance of cosines, which is also that of dot products divided by d,",
    "A dot product is neither divided by the lengths of its vectors nor by d.",
)
def variance_cosine(d, n):
    return torch.nn.functional.cosine_similarity(torch.randn(n, d), torch.randn(n, d)).var().item()


@wrong("the sum of the squared scores, not divided by n,", "A variance is a mean, not a sum: .var() divides.")
def variance_not_averaged(d, n):
    return (torch.randn(n, d) * torch.randn(n, d)).sum(-1).pow(2).sum().item()


@wrong("returning d", says="two calls gave exactly the same number")
def variance_not_measured(d, n):
    return float(d)


# 1.4 scaled_dot_scores ----------------------------------------------------------------------------------------------

wrong = mistakes_of("scaled_dot_scores")


@wrong(
    "dividing by d",
    "The variance is d, so the size is its square root. Look at the argument above: s / d would have variance 1/d.",
)
def scaled_by_d(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1]


@wrong(
    "dividing by the square root of the number of keys",
    "A score is a sum over the d entries of a vector, however many keys there are: shape[-1], not shape[1].",
)
def scaled_by_keys(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(k.shape[1])


@wrong(
    "dividing by the square root of the number of queries",
    "A score is a sum over the d entries of a vector, however many queries there are: shape[-1], not shape[1].",
)
def scaled_by_queries(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[1])


@wrong("not dividing at all", "These are the scores of exercise 1.2. Divide them by √d.")
def scaled_not(q, k):
    return q @ k.transpose(-2, -1)


@wrong("multiplying by the square root of d", "The scores are too large already; divide.")
def scaled_up(q, k):
    return q @ k.transpose(-2, -1) * math.sqrt(q.shape[-1])


@wrong(
    "scoring the keys against the queries", "Rows are queries, columns are keys: q stands on the left of the product."
)
def scaled_swapped(q, k):
    return k @ q.transpose(-2, -1) / math.sqrt(q.shape[-1])


@wrong("a softmax of the scaled scores", "Scores come first; they become weights later.")
def scaled_softmaxed(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)


# 1.5 bilinear_scores ------------------------------------------------------------------------------------------------

wrong = mistakes_of("bilinear_scores")


@wrong("using the transpose of W", "W is (d_q, d_k), so q @ W has d_k entries per query, as the keys do.")
def bilinear_transposed(q, k, W):
    return q @ W.T @ k.transpose(-2, -1)


@wrong("leaving W out", "Without W, q and k need the same length, and nothing can be learned.")
def bilinear_without_W(q, k, W):
    return q @ k.transpose(-2, -1)


@wrong(
    "q @ W @ k, with the keys as they come",
    "Once q @ W is (B, Tq, d_k) it is exercise 1.2 again: the last two axes of k have to be exchanged.",
)
def bilinear_keys_not_turned(q, k, W):
    return q @ W @ k


@wrong("dividing by the square root of d_k", "W can learn any scale, so this score is not divided.")
def bilinear_scaled(q, k, W):
    return q @ W @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])


@wrong("returning the scores with queries as columns", "Rows are queries, columns are keys: (B, Tq, Tk).")
def bilinear_swapped(q, k, W):
    return (q @ W @ k.transpose(-2, -1)).transpose(-2, -1)


@wrong(
    "reshaping the keys where they should be transposed",
    "reshape cuts the numbers anew and mixes keys; transpose moves the axes.",
)
def bilinear_reshaped(q, k, W):
    return q @ W @ k.reshape(k.shape[0], k.shape[2], k.shape[1])


@wrong("adding the queries up", "Every query keeps its own row: (B, Tq, Tk).")
def bilinear_sums_queries(q, k, W):
    return (q @ W @ k.transpose(-2, -1)).sum(dim=1, keepdim=True)


@wrong("a tanh around the score", "The tanh belongs to the additive score, which comes next.")
def bilinear_tanh(q, k, W):
    return torch.tanh(q @ W @ k.transpose(-2, -1))


@wrong("cutting W off with .detach() or .data", "W is what this score learns; its gradient must come through.")
def bilinear_detached(q, k, W):
    return q @ W.detach() @ k.transpose(-2, -1)


# 1.6 additive_scores ------------------------------------------------------------------------------------------------

wrong = mistakes_of("additive_scores")


@wrong(
    "leaving the tanh out",
    "Without it the score is a number for the query plus a number for the key: which key is best would not depend on "
    "the query.",
)
def additive_linear(q, k, W_q, W_k, w):
    return ((q @ W_q)[:, :, None] + (k @ W_k)[:, None]) @ w


@wrong(
    "taking the tanh of query and key before they are added",
    "Then the two never interact, and every query prefers the same key. Add first, then tanh.",
)
def additive_tanh_first(q, k, W_q, W_k, w):
    return (torch.tanh(q @ W_q)[:, :, None] + torch.tanh(k @ W_k)[:, None]) @ w


@wrong("a tanh on the query alone", "Add query and key first; the tanh comes after, on their sum.")
def additive_tanh_of_query(q, k, W_q, W_k, w):
    return (torch.tanh(q @ W_q)[:, :, None] + (k @ W_k)[:, None]) @ w


@wrong("a tanh on the key alone", "Add query and key first; the tanh comes after, on their sum.")
def additive_tanh_of_key(q, k, W_q, W_k, w):
    return ((q @ W_q)[:, :, None] + torch.tanh(k @ W_k)[:, None]) @ w


@wrong(
    "adding q @ W_q and k @ W_k as they come, so that query i meets key i alone",
    "Every query meets every key: give the query an axis of length 1 after Tq, and the key one before Tk.",
)
def additive_in_pairs(q, k, W_q, W_k, w):
    return torch.tanh(q @ W_q + k @ W_k) @ w


@wrong(
    "a tanh written out in exponentials, which overflow for large numbers",
    "e^1000 is infinite, and infinity over infinity is no number. torch.tanh takes numbers of any size.",
)
def additive_tanh_by_hand(q, k, W_q, W_k, w):
    x = (q @ W_q)[:, :, None] + (k @ W_k)[:, None]
    return (torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x)) @ w


@wrong("multiplying query and key in the hidden layer", "This score adds them, which is where its name comes from.")
def additive_product(q, k, W_q, W_k, w):
    return torch.tanh((q @ W_q)[:, :, None] * (k @ W_k)[:, None]) @ w


@wrong(
    "scores with keys as rows, as where the query is (B, 1, Tq, d_h) and the key (B, Tk, 1, d_h)",
    "Rows are queries: the query should be (B, Tq, 1, d_h) and the key (B, 1, Tk, d_h).",
)
def additive_swapped(q, k, W_q, W_k, w):
    return torch.tanh((q @ W_q)[:, None] + (k @ W_k)[:, :, None]) @ w


@wrong("a sigmoid in place of tanh", "tanh lies between -1 and 1, the sigmoid between 0 and 1.")
def additive_sigmoid(q, k, W_q, W_k, w):
    return torch.sigmoid((q @ W_q)[:, :, None] + (k @ W_k)[:, None]) @ w


@wrong(
    "adding up the hidden layer without w",
    "w says how much each hidden number counts, and it is learned: end with @ w.",
)
def additive_without_w(q, k, W_q, W_k, w):
    return torch.tanh((q @ W_q)[:, :, None] + (k @ W_k)[:, None]).sum(-1)


@wrong("taking the tanh after w", "First tanh on each of the d_h hidden numbers, then w reads the score off them.")
def additive_tanh_last(q, k, W_q, W_k, w):
    return torch.tanh(((q @ W_q)[:, :, None] + (k @ W_k)[:, None]) @ w)


@wrong("dividing by the number of hidden entries", "tanh bounds the score already; nothing is divided here.")
def additive_mean(q, k, W_q, W_k, w):
    return torch.tanh((q @ W_q)[:, :, None] + (k @ W_k)[:, None]) @ w / len(w)


# 1.7 SelfAttention --------------------------------------------------------------------------------------------------


class _Layer(nn.Module):
    def __init__(self, d_model, d_k, d_v, bias=False):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=bias)
        self.W_k = nn.Linear(d_model, d_k, bias=bias)
        self.W_v = nn.Linear(d_model, d_v, bias=bias)


def _attend(q, k, v, divisor, dim=-1):
    weights = torch.softmax(q @ k.transpose(-2, -1) / divisor, dim=dim)
    return weights @ v, weights


wrong = mistakes_of("SelfAttention")


@wrong("scores that are not divided by √d_k", "Use scaled_dot_scores from exercise 1.4.")
class AttentionUnscaled(_Layer):
    def forward(self, x):
        return _attend(self.W_q(x), self.W_k(x), self.W_v(x), 1.0)


@wrong("dividing by the root of d_model", "The dot product is taken after the projection, over d_k entries.")
class AttentionScaledByModel(_Layer):
    def forward(self, x):
        return _attend(self.W_q(x), self.W_k(x), self.W_v(x), math.sqrt(x.shape[-1]))


@wrong(
    "a softmax over the queries",
    "The weights of one query sum to 1: softmax over the keys, dim=-1. On a square matrix nothing warns you.",
)
class AttentionWrongAxis(_Layer):
    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        return _attend(q, k, v, math.sqrt(q.shape[-1]), dim=1)


@wrong(
    "making the keys with W_q",
    "Keys come from W_k. With one matrix for both, scores are symmetric: x asks y for what y asks x.",
)
class AttentionKeysFromQueries(_Layer):
    def forward(self, x):
        q = self.W_q(x)
        return _attend(q, self.W_q(x), self.W_v(x), math.sqrt(q.shape[-1]))


@wrong("averaging the tokens themselves", "What is handed over are the values: average W_v(x), not x.")
class AttentionWithoutValues(_Layer):
    def forward(self, x):
        q = self.W_q(x)
        return _attend(q, self.W_k(x), x, math.sqrt(q.shape[-1]))


@wrong(
    "multiplying weights and values entry by entry",
    "Each context is a sum over all values: weighted_context from exercise 1.1, or the matrix product @.",
)
class AttentionEntryByEntry(_Layer):
    def forward(self, x):
        q = self.W_q(x)
        _, weights = _attend(q, self.W_k(x), self.W_v(x), math.sqrt(q.shape[-1]))
        return weights * self.W_v(x), weights


@wrong("returning the weights first", "The context comes first: `return context, weights`.")
class AttentionSwappedOutputs(_Layer):
    def forward(self, x):
        q = self.W_q(x)
        return _attend(q, self.W_k(x), self.W_v(x), math.sqrt(q.shape[-1]))[::-1]


@wrong(
    "returning the scores in place of the weights",
    "The second output is what softmax made of the scores; its rows sum to 1.",
)
class AttentionReturnsScores(_Layer):
    def forward(self, x):
        q, k = self.W_q(x), self.W_k(x)
        context, _ = _attend(q, k, self.W_v(x), math.sqrt(q.shape[-1]))
        return context, q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


@wrong("exchanging queries and keys", "Rows are queries: W_q(x) stands on the left of the product.")
class AttentionSwappedRoles(_Layer):
    def forward(self, x):
        k = self.W_k(x)
        return _attend(k, self.W_q(x), self.W_v(x), math.sqrt(k.shape[-1]))


@wrong("layers with bias", says="W_q.bias")
class AttentionWithBias(_Layer):
    def __init__(self, d_model, d_k, d_v):
        super().__init__(d_model, d_k, d_v, bias=True)

    def forward(self, x):
        q = self.W_q(x)
        return _attend(q, self.W_k(x), self.W_v(x), math.sqrt(q.shape[-1]))


@wrong("other names for the projections", says="they should be W_q.weight")
class AttentionOtherNames(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.query, self.key = nn.Linear(d_model, d_k, bias=False), nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        q = self.query(x)
        return _attend(q, self.key(x), self.value(x), math.sqrt(q.shape[-1]))


@wrong("returning the context alone", says="it should return 2 things: context and weights")
class AttentionContextOnly(_Layer):
    def forward(self, x):
        q = self.W_q(x)
        return _attend(q, self.W_k(x), self.W_v(x), math.sqrt(q.shape[-1]))[0]


# 1.8 their_weights --------------------------------------------------------------------------------------------------

wrong = mistakes_of("their_weights")


@wrong(
    "attention as it should be: softmax over the keys of the scores divided by √d",
    "Their map is another one: its rows do not sum to 1.",
)
def theirs_is_right(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)


@wrong("a softmax over the keys of the scores divided by d", "In their map the rows do not sum to 1. What does?")
def theirs_by_rows(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1], dim=-1)


@wrong(
    "a softmax over the queries of the scores divided by √d",
    "Then a match would get e^3 = 20 times the weight of a mismatch in its column. In their map it gets 4.5 times.",
)
def theirs_by_root(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=1)


@wrong(
    "a softmax over the queries of the scores, not divided at all",
    "Then a match would get e^6 = 403 times the weight of a mismatch in its column. In their map it gets 4.5 times.",
)
def theirs_undivided(q, k):
    return torch.softmax(q @ k.transpose(-2, -1), dim=1)


@wrong(
    "one softmax over all pairs of a sentence",
    "Then all the weights of a map would sum to 1 together. In theirs, every column does.",
)
def theirs_over_all_pairs(q, k):
    scores = q @ k.transpose(-2, -1) / q.shape[-1]
    return torch.softmax(scores.flatten(1), dim=-1).reshape(scores.shape)


@wrong(
    "a softmax over the queries first, and a division by d after it",
    "Then the columns of their map would sum to 1/4. A division that softmax is to notice comes before it.",
)
def theirs_divided_after(q, k):
    return torch.softmax(q @ k.transpose(-2, -1), dim=1) / q.shape[-1]


@wrong(
    "their map with queries as columns and keys as rows",
    "They draw queries as rows, as this course does; it is the sums that run along the other axis.",
)
def theirs_transposed(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1], dim=1).transpose(-2, -1)


@wrong(
    "a softmax over the queries of the scores divided by the number of queries, 6 in their sentence,",
    "Then a match would get e^1 = 2.7 times the weight of a mismatch in its column. In their map it gets 4.5 times.",
)
def theirs_by_tokens(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[1], dim=1)


# 1.9 counterexample -------------------------------------------------------------------------------------------------

wrong = mistakes_of("counterexample")


@wrong("as many keys as entries", says="both implementations give the same")
def counterexample_square():
    return torch.randn(1, 2, 4), torch.randn(1, 4, 4)


@wrong("queries of zeros", says="both implementations give the same")
def counterexample_zeros():
    return torch.zeros(1, 2, 3), torch.ones(1, 5, 3)


@wrong("a single key", says="both implementations give the same")
def counterexample_one_key():
    return torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0]]])


@wrong("equal keys", says="both implementations give the same")
def counterexample_equal_keys():
    return torch.tensor([[[1.0, 2.0]]]), torch.ones(1, 5, 2)


@wrong("one tensor", says="it should return two tensors as a tuple")
def counterexample_one_tensor():
    return torch.randn(1, 3, 2)


@wrong("shapes in place of tensors", says="the first is a tuple")
def counterexample_shapes():
    return (1, 2, 3), (1, 5, 3)


@wrong("tensors without a batch", says="the first tensor should have the axes (B, Tq, d)")
def counterexample_without_batch():
    return torch.randn(2, 3), torch.randn(5, 3)


@wrong("vectors of different length", says="cannot take these inputs")
def counterexample_lengths_differ():
    return torch.randn(1, 2, 3), torch.randn(1, 5, 4)


@wrong("entries that are not finite", says="has no finite result on these inputs")
def counterexample_infinite():
    return torch.full((1, 1, 2), float("inf")), torch.zeros(1, 3, 2)


# 1.10 repaired_weights ----------------------------------------------------------------------------------------------

wrong = mistakes_of("repaired_weights")


@wrong("the root of the number of keys", "k.shape[1] is Tk. The vectors' length is the last entry of the shape.")
def repaired_unchanged(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(k.shape[1]), dim=-1)


@wrong("dividing by d", "By its square root: the size of a score is √d, its variance is d.")
def repaired_by_d(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / k.shape[-1], dim=-1)


@wrong("not dividing at all", "The division is needed; its number was wrong.")
def repaired_without_division(q, k):
    return torch.softmax(q @ k.transpose(-2, -1), dim=-1)


@wrong("the root of the number of queries", "q.shape[1] is Tq. The vectors' length is the last entry of the shape.")
def repaired_by_queries(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[1]), dim=-1)


@wrong("a softmax over the queries", "That line was right: over the keys, dim=-1.")
def repaired_wrong_axis(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1]), dim=1)


@wrong("returning the scores", "The softmax line stays: the rows have to sum to 1.")
def repaired_scores_only(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])


@wrong("multiplying by √d", "Divide: the scores are too large, not too small.")
def repaired_multiplied(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) * math.sqrt(k.shape[-1]), dim=-1)
