"""Other right answers to the exercises of lesson 03. Every check and every hidden test accepts all of them."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention_course import device
from attention_course.authoring import alternatives_of

# 3.1 split_heads ----------------------------------------------------------------------------------------------------

right = alternatives_of("split_heads")


@right
def split_by_chunks(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@right
def split_by_permute(x, num_heads):
    return x.reshape(*x.shape[:2], num_heads, -1).permute(0, 2, 1, 3)


@right
def split_by_unflatten(x, num_heads):
    return x.unflatten(-1, (num_heads, x.size(-1) // num_heads)).swapaxes(1, 2).contiguous()


@right
def split_by_loop(x, num_heads):
    d = x.shape[-1] // num_heads
    heads = x.new_zeros(x.shape[0], num_heads, x.shape[1], d)
    for h in range(num_heads):
        heads[:, h] = x[:, :, h * d : (h + 1) * d]
    return heads


# 3.2 merge_heads ----------------------------------------------------------------------------------------------------

right = alternatives_of("merge_heads")


@right
def merge_by_cat(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


@right
def merge_by_contiguous_view(x):
    B, H, T, d = x.shape
    return x.transpose(1, 2).contiguous().view(B, T, H * d)


@right
def merge_by_flatten(x):
    return x.permute(0, 2, 1, 3).flatten(2)


@right
def merge_token_by_token(x):
    return torch.stack([x[:, :, t].reshape(len(x), -1) for t in range(x.shape[2])], dim=1)


# 3.3 scaled_dot_product_attention -----------------------------------------------------------------------------------

right = alternatives_of("scaled_dot_product_attention")


@right
def attention_adds_infinity(q, k, v, mask=None, dropout=None):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.size(-1) ** 0.5
    if mask is not None:
        scores = scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill(mask.logical_not(), float("-inf"))
    weights = scores.softmax(dim=-1)
    return torch.matmul(weights if dropout is None else dropout(weights), v), weights


@right
def attention_with_where(q, k, v, mask=None, dropout=None):
    scores = (q / math.sqrt(q.shape[-1])) @ k.mT
    kept = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    scores = torch.where(kept, scores, torch.full_like(scores, torch.finfo(scores.dtype).min))
    weights = torch.where(kept, torch.softmax(scores, dim=-1), torch.zeros_like(scores))
    return (weights if dropout is None else dropout(weights)) @ v, weights


@right
def attention_multiplies_and_divides(q, k, v, mask=None, dropout=None):
    scores = q @ k.transpose(2, 3) * k.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(q.dtype).min)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    if mask is not None:
        powers = powers * mask
    weights = powers / powers.sum(-1, keepdim=True)
    return (weights if dropout is None else dropout(weights)) @ v, weights


@right
def attention_head_by_head(q, k, v, mask=None, dropout=None):
    maps = []
    for h in range(q.shape[1]):
        scores = q[:, h] @ k[:, h].mT / math.sqrt(q.shape[-1])
        if mask is not None:
            kept = mask.expand(len(q), q.shape[1], q.shape[2], k.shape[2])[:, h]
            scores = scores.masked_fill(~kept, float("-inf"))
        maps.append(torch.softmax(scores, -1))
    weights = torch.stack(maps, dim=1)
    used = weights if dropout is None else dropout(weights)
    return [used @ v, weights]


@right
def attention_survives_an_empty_row(q, k, v, mask=None, dropout=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return (weights if dropout is None else dropout(weights)) @ v, weights


@right
def attention_with_the_fused_context(q, k, v, mask=None, dropout=None):
    identity = torch.eye(k.shape[2], dtype=v.dtype, device=v.device).expand(*k.shape[:2], -1, -1)
    kept = None if mask is None else mask.expand(*q.shape[:3], k.shape[2])
    weights = F.scaled_dot_product_attention(q, k, identity, attn_mask=kept)
    return (weights if dropout is None else dropout(weights)) @ v, weights


# 3.4 MultiHeadAttention ---------------------------------------------------------------------------------------------


class _Layer(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads, self.d = num_heads, d_model // num_heads
        self.W_q, self.W_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_v, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)


right = alternatives_of("MultiHeadAttention")


@right
class AttentionWithDropoutLayer(_Layer):
    def forward(self, query, key, value, mask=None):
        B, Tq, d_model = query.shape
        q = self.W_q(query).view(B, Tq, -1, self.d).transpose(1, 2)
        k = self.W_k(key).view(B, -1, self.num_heads, self.d).transpose(1, 2)
        v = self.W_v(value).view(B, -1, self.num_heads, self.d).transpose(1, 2)
        scores = q @ k.mT / self.d**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores, dim=-1).nan_to_num()
        context = self.drop(weights) @ v
        return self.W_o(context.transpose(1, 2).reshape(B, Tq, d_model)), weights


@right
class AttentionEinsum(_Layer):
    def forward(self, query, key, value, mask=None):
        q, k, v = (
            w(x).unflatten(-1, (self.num_heads, self.d))
            for w, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(self.d)
        kept = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
        weights = scores.masked_fill(~kept, torch.finfo(scores.dtype).min).softmax(-1) * kept
        return self.W_o(torch.einsum("bhij,bjhd->bihd", self.drop(weights), v).flatten(2)), weights


@right
class AttentionHeadByHead(_Layer):
    def forward(self, query, key, value, mask=None):
        contexts, maps = [], []
        qs, ks, vs = (w(x).split(self.d, dim=-1) for w, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value)))
        for h, (q, k, v) in enumerate(zip(qs, ks, vs, strict=True)):
            weights = q @ k.mT / math.sqrt(self.d)
            if mask is not None:
                kept = mask.expand(len(q), self.num_heads, q.shape[1], k.shape[1])[:, h]
                weights = weights.masked_fill(~kept, -1e9).softmax(-1).masked_fill(~kept, 0)
            else:
                weights = weights.softmax(-1)
            maps.append(weights)
            contexts.append(self.drop(weights) @ v)
        return self.W_o(torch.cat(contexts, -1)), torch.stack(maps, 1)


# 3.5 copy_to_torch --------------------------------------------------------------------------------------------------

right = alternatives_of("copy_to_torch")


@right
def copy_by_hand(state):
    weight = torch.cat([state["W_q.weight"], state["W_k.weight"], state["W_v.weight"]], dim=0)
    bias = torch.cat([state["W_q.bias"], state["W_k.bias"], state["W_v.bias"]])
    return weight, bias, state["W_o.weight"].clone(), state["W_o.bias"].clone()


@right
def copy_by_stack(state):
    weight = torch.stack([state[f"W_{n}.weight"] for n in "qkv"]).flatten(0, 1)
    bias = torch.stack([state[f"W_{n}.bias"] for n in "qkv"]).reshape(-1)
    return [weight, bias, state["W_o.weight"], state["W_o.bias"]]


@right
def copy_detached(state):
    d = len(state["W_o.bias"])
    weight, bias = state["W_q.weight"].new_zeros(3 * d, d), state["W_q.bias"].new_zeros(3 * d)
    for i, name in enumerate("qkv"):
        weight[i * d : (i + 1) * d] = state[f"W_{name}.weight"].detach()
        bias[i * d : (i + 1) * d] = state[f"W_{name}.bias"].detach()
    return weight, bias, state["W_o.weight"].detach(), state["W_o.bias"].detach()


# 3.6 head_ablation --------------------------------------------------------------------------------------------------

right = alternatives_of("head_ablation")


@right
def ablation_by_parts(heads, W_o):
    d = heads.shape[-1]
    parts = [heads[:, h] @ W_o[:, h * d : (h + 1) * d].T for h in range(heads.shape[1])]
    return torch.stack([part.norm(dim=-1) for part in parts], dim=1)


@right
def ablation_einsum(heads, W_o):
    blocks = W_o.reshape(W_o.shape[0], heads.shape[1], heads.shape[3])  # (out, H, d)
    return torch.einsum("bhtd,ohd->bhto", heads, blocks).pow(2).sum(-1).sqrt()


@right
def ablation_with_a_switch(heads, W_o):
    B, H, T, d = heads.shape
    output = F.linear(heads.transpose(1, 2).reshape(B, T, H * d), W_o)
    moved = torch.empty(B, H, T, dtype=heads.dtype, device=heads.device)
    for h in range(H):
        switch = torch.ones(H, 1, 1, dtype=heads.dtype, device=heads.device)
        switch[h] = 0
        without = F.linear((heads * switch).transpose(1, 2).reshape(B, T, H * d), W_o)
        moved[:, h] = torch.linalg.vector_norm(without - output, dim=-1)
    return moved


# 3.7 counterexample -------------------------------------------------------------------------------------------------

right = alternatives_of("counterexample")


@right
def counterexample_random():
    return torch.randn(2, 3, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 8)


@right
def counterexample_self_attention():
    x = torch.tensor([[[1.0, 0.0, 0.0, 2.0], [0.0, 1.0, 3.0, 0.0], [1.0, 1.0, 0.0, 4.0]]])
    return x, x, x


@right
def counterexample_one_query():
    return [torch.ones(1, 1, 4), torch.arange(12.0).reshape(1, 3, 4) / 4, torch.arange(12.0).reshape(1, 3, 4)]


# 3.8 hears -----------------------------------------------------------------------------------------------------------

right = alternatives_of("hears")


@right
def hears_by_intervals(T, num_heads):
    first = [i * num_heads // T for i in range(T)]  # the head of a token's first number
    last = [((i + 1) * num_heads - 1) // T for i in range(T)]  # and of its last one
    rows = [[max(first[i], first[j]) <= min(last[i], last[j]) for j in range(T)] for i in range(T)]
    return torch.tensor(rows, device=device.pick())


@right
def hears_by_sets(T, num_heads):
    owner = [t for t in range(T) for _ in range(num_heads)]
    heads = [set(owner[h * T : (h + 1) * T]) for h in range(num_heads)]
    found = torch.zeros(T, T, dtype=torch.bool, device=device.pick())
    for i in range(T):
        for j in range(T):
            found[i, j] = any(i in head and j in head for head in heads)
    return found


@right
def hears_by_counting(T, num_heads):
    owner = torch.arange(T * num_heads).div(num_heads, rounding_mode="floor").reshape(num_heads, T)
    counts = F.one_hot(owner, T).sum(dim=1).float()  # (H, T): how many numbers each head has of each token
    return (counts.T @ counts > 0).to(device.pick())


# 3.9 repaired_attention ---------------------------------------------------------------------------------------------

right = alternatives_of("repaired_attention")


@right
def repaired_by_loop(q, k, v, num_heads=2):
    slices = zip(*(x.chunk(num_heads, dim=-1) for x in (q, k, v)), strict=True)
    return torch.cat([torch.softmax(a @ b.mT / a.shape[-1] ** 0.5, -1) @ c for a, b, c in slices], dim=-1)


@right
def repaired_by_permute(q, k, v, num_heads=2):
    q, k, v = (x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).permute(0, 2, 1, 3).flatten(2)


@right
def repaired_by_einsum(q, k, v, num_heads=2):
    d = q.shape[-1] // num_heads
    q, k, v = (x.reshape(len(x), -1, num_heads, d) for x in (q, k, v))
    weights = torch.softmax(torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(d), dim=-1)
    return torch.einsum("bhij,bjhd->bihd", weights, v).reshape(q.shape[0], q.shape[1], -1)
