"""Other right answers to the exercises of lesson 06. Every check and every hidden test accepts all of them."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from attention_course.authoring import alternatives_of

# 6.1 attend ---------------------------------------------------------------------------------------------------------

right = alternatives_of("attend")


@right
def attend_infinite(q, k, v, memory_mask):
    keep = memory_mask.unsqueeze(1).unsqueeze(1)
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.size(-1) ** -0.5
    weights = torch.softmax(scores.masked_fill(~keep, -torch.inf), dim=-1).masked_fill(~keep, 0.0)
    return torch.einsum("bhij,bhjd->bhid", weights, v), weights


@right
def attend_powers(q, k, v, memory_mask):
    keep = memory_mask[:, None, None]
    scores = torch.where(keep, q @ k.mT / math.sqrt(k.shape[-1]), -1e9)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True)) * keep
    weights = powers / powers.sum(-1, keepdim=True).clamp(min=1e-9)
    return weights @ v, weights


@right
def attend_nan_to_num(q, k, v, memory_mask):
    hidden = memory_mask.logical_not()[:, None, None, :].expand(-1, q.shape[1], q.shape[2], -1)
    weights = (q @ k.transpose(2, 3) / q.shape[-1] ** 0.5).masked_fill(hidden, float("-inf")).softmax(-1)
    weights = weights.nan_to_num(0.0)
    return weights @ v, weights


@right
def attend_loop(q, k, v, memory_mask):
    contexts, maps = [], []
    for b in range(len(q)):
        weights = q.new_zeros(q.shape[1], q.shape[2], k.shape[2])
        real = memory_mask[b].nonzero()[:, 0]
        if len(real):
            scores = q[b] @ k[b][:, real].mT / math.sqrt(q.shape[-1])
            weights = weights.index_copy(2, real, torch.softmax(scores, -1))
        maps.append(weights)
        contexts.append(weights @ v[b])
    return torch.stack(contexts), torch.stack(maps)


@right
def attend_fused(q, k, v, memory_mask):
    bias = torch.zeros_like(memory_mask, dtype=q.dtype).masked_fill(~memory_mask, -6e4)[:, None, None]
    eye = torch.eye(k.shape[2], dtype=q.dtype, device=q.device).expand(*k.shape[:3], -1)
    weights = F.scaled_dot_product_attention(q, k, eye, attn_mask=bias) * memory_mask[:, None, None]
    return weights @ v, weights


# 6.2 CrossAttention -------------------------------------------------------------------------------------------------


class _Layer(nn.Module):
    def __init__(self, query_dim, key_dim, value_dim, out_dim, num_heads=1):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, out_dim // num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (
            nn.Linear(width, out_dim, bias=False) for width in (query_dim, key_dim, value_dim, out_dim)
        )


right = alternatives_of("CrossAttention")


@right
class CrossByView(_Layer):
    def forward(self, query, key, value, memory_mask):
        B, Tq, Tk = query.shape[0], query.shape[1], key.shape[1]
        key = torch.where(memory_mask[..., None], key, 0.0)
        value = torch.where(memory_mask[..., None], value, 0.0)
        q = self.W_q(query).view(B, Tq, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.W_k(key).view(B, Tk, self.num_heads, self.head_dim).transpose(1, 2)
        v = self.W_v(value).view(B, Tk, self.num_heads, self.head_dim).transpose(1, 2)
        context, weights = attend_infinite(q, k, v, memory_mask)
        return self.W_o(context.transpose(1, 2).reshape(B, Tq, -1)), weights


@right
class CrossHeadByHead(_Layer):
    def forward(self, query, key, value, memory_mask):
        key, value = (x.masked_fill(~memory_mask.unsqueeze(-1), 0) for x in (key, value))
        q, k, v = self.W_q(query), self.W_k(key), self.W_v(value)
        contexts, maps = [], []
        for one_q, one_k, one_v in zip(*(x.split(self.head_dim, dim=-1) for x in (q, k, v)), strict=True):
            scores = one_q @ one_k.mT / math.sqrt(self.head_dim)
            scores = scores.masked_fill(~memory_mask[:, None], torch.finfo(scores.dtype).min)
            maps.append(torch.softmax(scores, dim=-1) * memory_mask[:, None])
            contexts.append(maps[-1] @ one_v)
        return [self.W_o(torch.cat(contexts, dim=-1)), torch.stack(maps, dim=1)]


@right
class CrossEinsum(_Layer):
    def forward(self, query, key, value, memory_mask):
        key, value = (x.nan_to_num() * memory_mask[:, :, None] for x in (key, value))
        q, k, v = (
            torch.einsum("btc,hdc->bhtd", x, W.weight.view(self.num_heads, self.head_dim, -1))
            for x, W in ((query, self.W_q), (key, self.W_k), (value, self.W_v))
        )
        context, weights = attend_powers(q, k, v, memory_mask)
        W_o = self.W_o.weight.view(-1, self.num_heads, self.head_dim)
        return torch.einsum("bhtd,ohd->bto", context, W_o), weights


@right
class CrossMovesAxes(_Layer):
    def forward(self, query, key, value, memory_mask):
        real = memory_mask.unsqueeze(2)
        key, value = key.where(real, torch.zeros_like(key)), value.where(real, torch.zeros_like(value))
        parts = (self.W_q(query), self.W_k(key), self.W_v(value))
        q, k, v = (torch.stack(x.chunk(self.num_heads, dim=-1), dim=1) for x in parts)
        context, weights = attend_nan_to_num(q, k, v, memory_mask)
        return self.W_o(torch.cat(context.unbind(1), dim=-1)), weights


# 6.3 cache_kv -------------------------------------------------------------------------------------------------------

right = alternatives_of("cache_kv")


@right
def cache_by_view(key, value, memory_mask, W_k, W_v, num_heads):
    B, Tk = memory_mask.shape
    k = F.linear(torch.where(memory_mask[..., None], key, 0.0), W_k)
    v = F.linear(torch.where(memory_mask[..., None], value, 0.0), W_v)
    return k.view(B, Tk, num_heads, -1).transpose(1, 2), v.view(B, Tk, num_heads, -1).transpose(1, 2)


@right
def cache_by_chunks(key, value, memory_mask, W_k, W_v, num_heads):
    made = []
    for x, W in ((key, W_k), (value, W_v)):
        x = x.masked_fill(~memory_mask.unsqueeze(-1), 0.0)
        made.append(torch.stack([x @ part.T for part in W.chunk(num_heads)], dim=1))
    return made


@right
def cache_einsum(key, value, memory_mask, W_k, W_v, num_heads):
    def one(x, W):
        x = x.masked_fill(memory_mask.logical_not()[:, :, None], 0)
        return torch.einsum("btc,hdc->bhtd", x, W.unflatten(0, (num_heads, -1)))

    return one(key, W_k), one(value, W_v)


@right
def cache_cleared_twice(key, value, memory_mask, W_k, W_v, num_heads):
    padding = ~memory_mask[:, :, None]
    k = (key.masked_fill(padding, 0) @ W_k.T).masked_fill(padding, 0).unflatten(2, (num_heads, -1)).permute(0, 2, 1, 3)
    v = (
        (value.masked_fill(padding, 0) @ W_v.T)
        .masked_fill(padding, 0)
        .unflatten(2, (num_heads, -1))
        .permute(0, 2, 1, 3)
    )
    return k.contiguous(), v.contiguous()


# 6.4 decode_step ----------------------------------------------------------------------------------------------------

right = alternatives_of("decode_step")


@right
def step_einsum(query, k, v, memory_mask, W_q, W_o):
    q = (query @ W_q.T).reshape(len(query), k.shape[1], k.shape[3])
    scores = torch.einsum("bhd,bhjd->bhj", q, k) / math.sqrt(k.shape[3])
    weights = scores.masked_fill(~memory_mask[:, None], -1e9).softmax(-1) * memory_mask[:, None]
    return torch.einsum("bhj,bhjd->bhd", weights, v).reshape(len(query), -1) @ W_o.T, weights


@right
def step_squeeze(query, k, v, memory_mask, W_q, W_o):
    q = F.linear(query.unsqueeze(1), W_q)  # (B, 1, out_dim)
    q = q.view(q.shape[0], 1, k.shape[1], -1).transpose(1, 2)
    context, weights = attend_infinite(q, k, v, memory_mask)
    return F.linear(context.transpose(1, 2).flatten(2), W_o).squeeze(1), weights.squeeze(2)


@right
def step_head_by_head(query, k, v, memory_mask, W_q, W_o):
    contexts, maps = [], []
    for h, W in enumerate(W_q.chunk(k.shape[1])):
        context, weights = attend_powers((query @ W.T)[:, None, None], k[:, h : h + 1], v[:, h : h + 1], memory_mask)
        contexts.append(context[:, 0, 0])
        maps.append(weights[:, 0, 0])
    return [torch.cat(contexts, dim=1) @ W_o.T, torch.stack(maps, dim=1)]


# 6.5 colleagues_map -------------------------------------------------------------------------------------------------

right = alternatives_of("colleagues_map")


@right
def map_cut_first(weights, source, target):
    largest = weights[:, : len(target), : len(source)].max(dim=0).values
    return largest, ["<start>", *list(target)[:-1]], list(source)


@right
def map_pairwise(weights, source, target):
    matrix = weights[0]
    for head in weights[1:]:
        matrix = torch.maximum(matrix, head)
    return matrix[: len(target)].narrow(1, 0, len(source)), ["<start>", *target][: len(target)], source


@right
def map_sorted(weights, source, target):
    matrix = weights.sort(dim=0, descending=True).values[0]
    rows = tuple(target[i - 1] if i else "<start>" for i in range(len(target)))
    return [matrix[: len(target), : len(source)].clone(), rows, tuple(source)]


# 6.6 attention_statistics -------------------------------------------------------------------------------------------

right = alternatives_of("attention_statistics")


@right
def statistics_where(weights, target_mask):
    keep = target_mask.unsqueeze(1).unsqueeze(-1)
    w = torch.where(keep, weights, 0.0)
    logs = torch.log(w.clamp(min=1e-30))
    mean = w.sum(2) / target_mask.sum(1)[:, None, None]
    return mean, w.max(dim=2).values, -(w * logs).sum(3)


@right
def statistics_loop(weights, target_mask):
    means, maxima = [], []
    entropy = weights.new_zeros(weights.shape[:3])
    for b, real in enumerate(target_mask):
        rows = weights[b][:, real]  # (H, real, Tk)
        means.append(rows.mean(dim=1))
        maxima.append(rows.amax(dim=1))
        entropy[b, :, real] = torch.special.entr(rows).sum(-1)
    return torch.stack(means), torch.stack(maxima), entropy


@right
def statistics_xlogy(weights, target_mask):
    w = weights.masked_fill(target_mask.logical_not()[:, None, :, None], 0)
    real = target_mask.to(w.dtype)
    mean = torch.einsum("bhij,bi->bhj", w, real / real.sum(1, keepdim=True))
    return [mean, w.amax(-2), torch.xlogy(w, w).sum(-1).neg()]


# 6.7 hard_alignment -------------------------------------------------------------------------------------------------

right = alternatives_of("hard_alignment")


@right
def links_where(weights):
    total = weights.sum(dim=1)
    return torch.where(total.sum(-1) > 0, total.argmax(-1), -1)


@right
def links_by_maximum(weights):
    largest, places = weights.mean(1).max(dim=2)
    places[largest == 0] = -1
    return places


@right
def links_loop(weights):
    links = [[int(row.argmax()) if row.any() else -1 for row in example] for example in weights.mean(dim=1)]
    return torch.tensor(links, device=weights.device)


# 6.8 counterexample -------------------------------------------------------------------------------------------------

right = alternatives_of("counterexample")


@right
def counterexample_random():
    return torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)


@right
def counterexample_keys_differ():
    q = torch.tensor([[[1.0], [1.0]], [[1.0], [1.0]]])
    k = torch.tensor([[[2.0], [0.0]], [[0.0], [2.0]]])
    return q, k, torch.tensor([[[1.0], [0.0]], [[1.0], [0.0]]])


@right
def counterexample_three_sentences():
    return [torch.zeros(3, 2, 1), torch.zeros(3, 1, 1), torch.arange(3.0)[:, None, None]]


# 6.9 repaired_step --------------------------------------------------------------------------------------------------

right = alternatives_of("repaired_step")


@right
def repaired_without_copies(q, k, v):
    return torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]), dim=-1) @ v


@right
def repaired_expand(q, k, v):
    B, n, d = q.shape
    rows = q.reshape(B * n, 1, d)
    k = k[:, None].expand(-1, n, -1, -1).reshape(B * n, -1, d)
    v = v[:, None].expand(-1, n, -1, -1).flatten(0, 1)
    weights = torch.softmax(rows @ k.transpose(1, 2) / math.sqrt(d), dim=-1)
    return (weights @ v).reshape(B, n, -1)


@right
def repaired_other_order(q, k, v):
    B, n, d = q.shape
    rows = q.transpose(0, 1).reshape(n * B, 1, d)  # the candidates in the order that repeat gives the memories
    k, v = k.repeat(n, 1, 1), v.repeat(n, 1, 1)
    context = torch.softmax(rows @ k.mT / d**0.5, dim=-1) @ v
    return context.reshape(n, B, -1).transpose(0, 1)


@right
def repaired_library(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)
