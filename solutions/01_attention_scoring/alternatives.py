"""Other right answers to the exercises of lesson 01. Every check and every hidden test accepts all of them."""

import math

import numpy as np
import torch
from torch import nn

from attention_course.authoring import alternatives_of

# 1.1 weighted_context -----------------------------------------------------------------------------------------------

right = alternatives_of("weighted_context")


@right
def context_einsum(weights, v):
    return torch.einsum("bqk,bkd->bqd", weights, v)


@right
def context_bmm(weights, v):
    return torch.bmm(weights, v)


@right
def context_loop(weights, v):
    context = weights.new_zeros(weights.shape[0], weights.shape[1], v.shape[2])
    for j in range(v.shape[1]):
        context = context + weights[:, :, j, None] * v[:, None, j]
    return context


@right
def context_broadcast(weights, v):
    return (weights.unsqueeze(-1) * v.unsqueeze(1)).sum(dim=2)


# 1.2 dot_scores -----------------------------------------------------------------------------------------------------

right = alternatives_of("dot_scores")


@right
def dot_einsum(q, k):
    return torch.einsum("bid,bjd->bij", q, k)


@right
def dot_mt(q, k):
    return torch.matmul(q, k.mT)


@right
def dot_broadcast(q, k):
    return (q[:, :, None, :] * k[:, None, :, :]).sum(-1)


@right
def dot_loop(q, k):
    return torch.stack(
        [torch.stack([(q[:, i] * k[:, j]).sum(-1) for j in range(k.shape[1])], -1) for i in range(q.shape[1])], 1
    )


# 1.3 score_variance -------------------------------------------------------------------------------------------------

right = alternatives_of("score_variance")


@right
def variance_einsum(d, n):
    return torch.einsum("nd,nd->n", torch.randn(n, d), torch.randn(n, d)).var()


@right
def variance_by_hand(d, n):
    scores = (torch.randn(n, d) * torch.randn(n, d)).sum(1)
    return float(((scores - scores.mean()) ** 2).mean())


@right
def variance_numpy(d, n):
    draw = np.random.default_rng()
    return np.var((draw.normal(size=(n, d)) * draw.normal(size=(n, d))).sum(axis=1))


# 1.4 scaled_dot_scores ----------------------------------------------------------------------------------------------

right = alternatives_of("scaled_dot_scores")


@right
def scaled_einsum(q, k):
    return torch.einsum("bid,bjd->bij", q, k) * q.size(-1) ** -0.5


@right
def scaled_query_first(q, k):
    return (q / math.sqrt(q.shape[-1])) @ k.transpose(1, 2)


@right
def scaled_both(q, k):
    root = k.shape[-1] ** 0.25
    return (q / root) @ (k / root).mT


@right
def scaled_tensor_root(q, k):
    return q @ k.transpose(-1, -2) / torch.sqrt(torch.tensor(k.shape[2], dtype=q.dtype, device=q.device))


# 1.5 bilinear_scores ------------------------------------------------------------------------------------------------

right = alternatives_of("bilinear_scores")


@right
def bilinear_einsum(q, k, W):
    return torch.einsum("bic,cd,bjd->bij", q, W, k)


@right
def bilinear_keys_first(q, k, W):
    return q @ (W @ k.transpose(1, 2))


@right
def bilinear_linear(q, k, W):
    return nn.functional.linear(q, W.T) @ k.mT


# 1.6 additive_scores ------------------------------------------------------------------------------------------------

right = alternatives_of("additive_scores")


@right
def additive_unsqueeze(q, k, W_q, W_k, w):
    return torch.tanh((q @ W_q).unsqueeze(2) + (k @ W_k).unsqueeze(1)).matmul(w)


@right
def additive_loop(q, k, W_q, W_k, w):
    rows = [torch.tanh((q[:, i] @ W_q)[:, None] + k @ W_k) @ w for i in range(q.shape[1])]
    return torch.stack(rows, dim=1)


@right
def additive_einsum(q, k, W_q, W_k, w):
    hidden = torch.einsum("bic,ch->bih", q, W_q)[:, :, None] + torch.einsum("bjc,ch->bjh", k, W_k)[:, None]
    return torch.einsum("bijh,h->bij", hidden.tanh(), w)


@right
def additive_sum(q, k, W_q, W_k, w):
    return (torch.tanh((q @ W_q)[:, :, None, :] + (k @ W_k)[:, None, :, :]) * w).sum(-1)


# 1.7 SelfAttention --------------------------------------------------------------------------------------------------


class _Layer(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)


right = alternatives_of("SelfAttention")


@right
class AttentionEinsum(_Layer):
    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        weights = (torch.einsum("bid,bjd->bij", q, k) / q.size(-1) ** 0.5).softmax(dim=2)
        return torch.einsum("bij,bjd->bid", weights, v), weights


@right
class AttentionFused(_Layer):
    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        weights = torch.softmax(q @ k.mT / math.sqrt(k.shape[-1]), -1)
        return nn.functional.scaled_dot_product_attention(q, k, v), weights


@right
class AttentionLoop(_Layer):
    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        rows = [torch.softmax((q[:, i, None] * k).sum(-1) / math.sqrt(q.shape[-1]), -1) for i in range(x.shape[1])]
        weights = torch.stack(rows, dim=1)
        return weights @ v, weights


@right
class AttentionList(_Layer):
    def forward(self, tokens):
        weights = nn.Softmax(dim=-1)(self.W_q(tokens) @ self.W_k(tokens).transpose(1, 2) * self.W_k.out_features**-0.5)
        return [weights @ self.W_v(tokens), weights]


# 1.8 their_weights --------------------------------------------------------------------------------------------------

right = alternatives_of("their_weights")


@right
def theirs_from_scaled_scores(q, k):
    scaled = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return (scaled / math.sqrt(q.shape[-1])).softmax(1)


@right
def theirs_by_hand(q, k):
    powers = torch.exp(torch.einsum("bid,bjd->bij", q, k) / k.shape[2])
    return powers / powers.sum(dim=-2, keepdim=True)


@right
def theirs_keys_ask(q, k):
    return torch.softmax(k @ q.mT / q.size(-1), dim=-1).mT


# 1.9 counterexample -------------------------------------------------------------------------------------------------

right = alternatives_of("counterexample")


@right
def counterexample_random():
    return torch.randn(2, 3, 8), torch.randn(2, 20, 8)


@right
def counterexample_few_keys():
    return torch.tensor([[[1.0, 1.0, 1.0, 1.0, 1.0]]]), torch.eye(5)[None, :2] * torch.tensor([3.0, 1, 1, 1, 1])


@right
def counterexample_one_entry():
    return [torch.tensor([[[2.0]]]), torch.tensor([[[1.0], [2.0], [3.0], [4.0]]])]


# 1.10 repaired_weights ----------------------------------------------------------------------------------------------

right = alternatives_of("repaired_weights")


@right
def repaired_product(q, k):
    return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)


@right
def repaired_exponential(q, k):
    scores = torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(k.shape[2])
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)


@right
def repaired_query_first(q, k):
    return torch.softmax(torch.einsum("bqd,bkd->bqk", q / math.sqrt(q.size(2)), k), dim=2)
