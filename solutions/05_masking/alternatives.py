"""Other right answers to the exercises of lesson 05. Every check and every hidden test accepts all of them."""

from functools import reduce

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.authoring import alternatives_of

# 5.1 padding_mask ---------------------------------------------------------------------------------------------------

right = alternatives_of("padding_mask")


@right
def padding_by_loop(lengths, Tk):
    mask = torch.zeros(len(lengths), 1, 1, Tk, dtype=torch.bool, device=lengths.device)
    for b, n in enumerate(lengths.tolist()):
        mask[b, ..., :n] = True
    return mask


@right
def padding_by_view(lengths, Tk):
    return torch.lt(torch.arange(Tk, device=lengths.device)[None], lengths[:, None]).view(-1, 1, 1, Tk)


@right
def padding_looked_up(lengths, Tk):
    table = torch.ones(Tk + 1, Tk, dtype=torch.bool, device=lengths.device).tril(-1)  # row n keeps n places
    return table[lengths.long()][:, None, None, :]


@right
def padding_counted(lengths, Tk):
    counted = torch.ones(len(lengths), Tk, dtype=lengths.dtype, device=lengths.device).cumsum(dim=1)
    return (counted <= lengths.unsqueeze(1)).unsqueeze(1).unsqueeze(1)


# 5.2 causal_mask ----------------------------------------------------------------------------------------------------

right = alternatives_of("causal_mask")


@right
def causal_by_places(scores):
    Tq, Tk = scores.shape[-2:]
    places = torch.arange(Tk, device=scores.device)
    return places[None, :] <= places[Tk - Tq :, None]


@right
def causal_by_triu(scores):
    future = torch.ones_like(scores[0, 0]).triu(scores.shape[-1] - scores.shape[-2] + 1)
    return future == 0


@right
def causal_cut_from_the_whole(scores):
    Tq, Tk = scores.shape[-2:]
    return torch.tril(torch.ones(Tk, Tk, device=scores.device)).bool()[Tk - Tq :]


@right
def causal_by_loops(scores):
    Tq, Tk = scores.shape[-2], scores.shape[-1]
    rows = [[j <= i + Tk - Tq for j in range(Tk)] for i in range(Tq)]
    return torch.tensor(rows, device=scores.device)


# 5.3 combine --------------------------------------------------------------------------------------------------------

right = alternatives_of("combine")


@right
def combine_reduced(*masks):
    return reduce(torch.logical_and, (m for m in masks if m is not None))


@right
def combine_multiplied(*masks):
    both = torch.ones((), dtype=torch.bool, device=next(m.device for m in masks if m is not None))
    for mask in masks:
        if mask is not None:
            both = both * mask
    return both


@right
def combine_stacked(*masks):
    return torch.stack(torch.broadcast_tensors(*[m for m in masks if m is not None])).all(dim=0)


@right
def combine_by_what_is_hidden(*masks):
    hidden = None
    for mask in masks:
        if mask is not None:
            hidden = ~mask if hidden is None else hidden | ~mask
    return ~hidden


# 5.4 masked_softmax: a learner's own test (5.7) has to accept these ------------------------------------------------

right = alternatives_of("masked_softmax")


@right
def masked_with_a_safe_row(scores, mask):
    some = mask.any(dim=-1, keepdim=True)
    filled = torch.where(mask, scores, -torch.inf)
    weights = torch.softmax(torch.where(some, filled, 0.0), dim=-1)
    return torch.where(some, weights, 0.0).to(scores.dtype)


@right
def masked_where(scores, mask):
    low = torch.full_like(scores, torch.finfo(scores.dtype).min)
    return torch.where(mask, torch.softmax(torch.where(mask, scores, low), -1), torch.zeros_like(scores))


@right
def masked_by_hand(scores, mask):
    wide = scores.masked_fill(~mask, -torch.inf).double()
    top = wide.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(torch.float64).min)
    powers = torch.exp(wide - top)
    total = powers.sum(dim=-1, keepdim=True)
    return (powers / total.masked_fill(total == 0, 1.0)).to(scores.dtype)


@right
def masked_by_logarithms(scores, mask):
    lowest = torch.finfo(torch.float64).min
    filled = torch.where(mask, scores.double(), lowest)
    weights = torch.exp(filled - torch.logsumexp(filled, dim=-1, keepdim=True))
    return torch.where(mask, weights, 0.0).to(scores.dtype)


# 5.5 sliding_window_mask --------------------------------------------------------------------------------------------

right = alternatives_of("sliding_window_mask")


@right
def window_by_triangles(scores, window):
    Tq, Tk = scores.shape[-2:]
    keep = torch.ones(Tq, Tk, dtype=torch.bool, device=scores.device)
    return keep.tril(Tk - Tq).triu(Tk - Tq - window + 1)


@right
def window_as_a_difference(scores, window):
    Tq, Tk = scores.shape[-2:]
    keep = torch.ones(Tq, Tk, dtype=torch.bool, device=scores.device)
    return keep.tril(Tk - Tq) ^ keep.tril(Tk - Tq - window)


@right
def window_by_loop(scores, window):
    Tq, Tk = scores.shape[-2:]
    mask = torch.zeros(Tq, Tk, dtype=torch.bool, device=scores.device)
    for i in range(Tq):
        place = i + Tk - Tq
        mask[i, max(0, place - window + 1) : place + 1] = True
    return mask


# 5.6 to_torch_mha ---------------------------------------------------------------------------------------------------

right = alternatives_of("to_torch_mha")


@right
def mha_flattened(mask, shape):
    return torch.logical_not(torch.broadcast_to(mask, shape)).flatten(0, 1)


@right
def mha_added_to_nothing(mask, shape):
    hide = torch.zeros(tuple(shape), dtype=torch.bool, device=mask.device) | ~mask
    return hide.view(-1, shape[2], shape[3])


@right
def mha_by_loops(mask, shape):
    full = mask.expand(*shape)
    return torch.stack([full[b, h] == 0 for b in range(shape[0]) for h in range(shape[1])])


# 5.7 test_masked_softmax --------------------------------------------------------------------------------------------


def _reference(scores, mask):
    numbers, keep = np.broadcast_arrays(scores.double().numpy(), mask.numpy())
    weights = np.zeros(numbers.shape)
    for place in np.ndindex(numbers.shape[:-1]):
        kept = numbers[place][keep[place]]
        if kept.size:
            powers = np.exp(kept - kept.max())
            weights[place][keep[place]] = powers / powers.sum()
    return weights


right = alternatives_of("test_masked_softmax")


@right
def test_against_a_reference(implementation):
    draw = torch.Generator().manual_seed(0)
    for kind, digits in ((torch.float16, 5e-3), (torch.float32, 1e-5), (torch.float64, 1e-9)):
        for shape in ((2, 3, 4, 5), (2, 1, 1, 5), (4, 5)):
            levels = torch.tensor([-400.0, -20000.0, 3.0, 40.0])[:, None]  # one for each row
            scores = (3 * torch.randn(2, 3, 4, 5, generator=draw) + levels).to(kind)
            mask = torch.rand(*shape, generator=draw) < 0.6
            mask[..., -1, :] &= torch.rand(5, generator=draw) < 0  # nothing to see
            scores = scores.masked_fill(~mask, 1000.0)
            scores[..., 0] = torch.where(mask.expand(scores.shape)[..., 0], scores[..., 0], torch.nan)
            kept, kept_mask = scores.clone(), mask.clone()
            weights = implementation(scores, mask)
            assert weights.dtype == kind
            np.testing.assert_allclose(weights.double().numpy(), _reference(kept, mask), rtol=digits, atol=digits)
            torch.testing.assert_close(scores, kept, rtol=0, atol=0, equal_nan=True)
            assert torch.equal(mask, kept_mask)


@right
def test_by_properties(implementation):
    scores = torch.linspace(-4, 4, 24, dtype=torch.float64).reshape(2, 3, 4)
    mask = torch.tensor([[True, True, False, True]])
    weights = implementation(scores, mask)
    assert weights.shape == scores.shape
    assert weights.dtype == scores.dtype
    assert (weights[..., 2] == 0).all()
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3, dtype=torch.float64))
    assert torch.allclose(torch.log(weights[..., 1] / weights[..., 0]), scores[..., 1] - scores[..., 0])
    assert torch.allclose(torch.log(weights[..., 3] / weights[..., 0]), scores[..., 3] - scores[..., 0])
    for anything in (torch.nan, torch.inf, 900.0, -900.0):
        changed = scores.masked_fill(~mask, anything)
        kept = changed.clone()
        assert torch.allclose(implementation(changed, mask), weights)
        assert torch.equal(changed.nan_to_num(), kept.nan_to_num())
    levels = torch.tensor([-20000.0, 500.0, -700.0], dtype=torch.float64)[:, None]
    assert torch.allclose(implementation(scores + levels, mask), weights)
    assert not implementation(scores, torch.zeros(1, 4, dtype=torch.bool)).any()
    half = implementation(scores.half(), mask)
    assert half.dtype == torch.float16
    assert torch.allclose(half.double(), weights, atol=1e-2)


@right
def test_one_thing_at_a_time(implementation):
    def gives(scores, mask, expected, kind=torch.float32):
        scores, mask = torch.tensor(scores, dtype=kind), torch.tensor(mask)
        before = scores.clone()
        weights = implementation(scores, mask)
        assert weights.dtype == kind
        assert torch.allclose(weights, torch.tensor(expected, dtype=kind), atol=1e-3)
        assert torch.equal(scores.nan_to_num(), before.nan_to_num())

    two = [True, True, False]
    gives([[0.0, 0.0, 3.0]], [two], [[0.5, 0.5, 0.0]])
    gives([[1.0, 0.0, 0.0], [0.0, 1.0, 9.0]], [two, two], [[0.7311, 0.2689, 0.0], [0.2689, 0.7311, 0.0]])
    gives([[0.0, 1.0, 500.0]], [two], [[0.2689, 0.7311, 0.0]])
    gives([[-900.0, -900.0, torch.nan]], two, [[0.5, 0.5, 0.0]])
    gives([[-20000.0, -20000.0, 0.0]], [two], [[0.5, 0.5, 0.0]])
    gives([[0.0, 0.0, 0.0], [-3000.0, -3000.0, 0.0]], [two, two], [[0.5, 0.5, 0.0]] * 2)
    gives([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [[True] * 3, [False] * 3], [[0.0900, 0.2447, 0.6652], [0.0] * 3])
    gives([[[1.0, 1.0, 1.0]] * 2] * 2, [[two], [[False] * 3]], [[[0.5, 0.5, 0.0]] * 2, [[0.0] * 3] * 2])
    gives([[1.0, 1.0, 5.0], [1.0, 1.0, 1.0]], [two, [False] * 3], [[0.5, 0.5, 0.0], [0.0] * 3], torch.float16)
    gives([[1.0, 1.0, 5.0]], [two], [[0.5, 0.5, 0.0]], torch.float64)


# 5.8 counterexample -------------------------------------------------------------------------------------------------

right = alternatives_of("counterexample")


@right
def counterexample_infinite():
    memory = torch.ones(2, 3, 4)
    memory[1, 2] = torch.inf
    keep = torch.tensor([[True, True, True], [True, True, False]])
    return torch.ones(2, 1, 4), memory, keep


@right
def counterexample_one_number():
    memory = torch.randn(1, 4, 3)
    memory[0, 3, 1] = float("nan")
    return torch.randn(1, 2, 3), memory, torch.arange(4)[None] < 2


@right
def counterexample_nothing_kept():
    return torch.zeros(1, 1, 2), torch.full((1, 3, 2), torch.nan), torch.zeros(1, 3, dtype=torch.bool)


# 5.9 repaired_attention ---------------------------------------------------------------------------------------------

right = alternatives_of("repaired_attention")


@right
def repaired_where(q, memory, keep):
    clean = torch.where(keep.unsqueeze(-1), memory, torch.zeros_like(memory))
    return F.scaled_dot_product_attention(q, clean, clean, attn_mask=keep.unsqueeze(1))


@right
def repaired_in_a_copy(q, memory, keep):
    memory = memory.clone()
    memory[~keep] = 1.0
    return F.scaled_dot_product_attention(q, memory, memory, attn_mask=keep[:, None, :].expand(-1, q.shape[1], -1))


@right
def repaired_step_by_step(q, memory, keep):
    clean = memory.masked_fill(~keep[..., None], 0)
    scores = (q @ clean.transpose(1, 2) / q.shape[-1] ** 0.5).masked_fill(~keep[:, None], torch.finfo(q.dtype).min)
    return torch.softmax(scores, -1).masked_fill(~keep[:, None], 0) @ clean


@right
def repaired_by_cutting(q, memory, keep):
    contexts = []
    for b in range(len(q)):
        kept = memory[b, keep[b]]
        contexts.append((q[b] @ kept.T / q.shape[-1] ** 0.5).softmax(-1) @ kept)
    return torch.stack(contexts)
