"""Other right answers to the exercises of lesson 02. Every check and every hidden test accepts all of them."""

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.authoring import alternatives_of

# 2.1 softmax --------------------------------------------------------------------------------------------------------

right = alternatives_of("softmax")


@right
def softmax_fused(x, dim):
    return torch.softmax(x, dim)


@right
def softmax_by_values(x, dim):
    largest = x.max(dim=dim, keepdim=True).values.detach()
    powers = (x - largest).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


@right
def softmax_by_logarithms(x, dim):
    return torch.exp(torch.log_softmax(x, dim))


@right
def softmax_moves_the_axis(x, dim):
    rows = x.movedim(dim, -1)
    powers = torch.exp(rows - rows.amax(-1)[..., None])
    return (powers / powers.sum(-1)[..., None]).movedim(-1, dim)


# 2.2 log_softmax ----------------------------------------------------------------------------------------------------

right = alternatives_of("log_softmax")


@right
def log_softmax_fused(x, dim):
    return F.log_softmax(x, dim=dim)


@right
def log_softmax_by_logsumexp(x, dim):
    return x - x.logsumexp(dim, keepdim=True)


@right
def log_softmax_adds_the_maximum_back(x, dim):
    largest = x.max(dim=dim, keepdim=True).values
    return x - (largest + (x - largest).exp().sum(dim=dim, keepdim=True).log())


# 2.3 softmax_with_temperature ---------------------------------------------------------------------------------------

right = alternatives_of("softmax_with_temperature")


@right
def temperature_fused(x, temperature, dim):
    return torch.softmax(x / temperature, dim=dim)


@right
def temperature_after_the_shift(x, temperature, dim):
    powers = torch.exp((x - x.amax(dim=dim, keepdim=True)) / temperature)
    return powers / powers.sum(dim=dim, keepdim=True)


@right
def temperature_on_logarithms(x, temperature, dim):
    return torch.softmax(torch.log_softmax(x, dim) / temperature, dim)


# 2.4 softmax_jvp ----------------------------------------------------------------------------------------------------

right = alternatives_of("softmax_jvp")


@right
def jvp_by_autograd(p, g):
    with torch.enable_grad():
        scores = torch.log(p.detach().clamp(min=torch.finfo(p.dtype).tiny)).requires_grad_()
        (product,) = torch.autograd.grad(torch.softmax(scores, dim=-1), scores, g.detach())
    return product


@right
def jvp_einsum(p, g):
    return p * g - p * torch.einsum("...i,...i->...", p, g)[..., None]


@right
def jvp_two_terms(p, g):
    terms = p * g
    return terms - p * terms.sum(-1, keepdim=True)


# 2.5 online_step ----------------------------------------------------------------------------------------------------

right = alternatives_of("online_step")


@right
def step_with_values(maximum, denominator, chunk):
    new = torch.max(maximum, chunk.max(dim=-1, keepdim=True).values)
    return new, (maximum - new).exp() * denominator + (chunk - new).exp().sum(-1, keepdim=True)


@right
def step_all_in_one_row(maximum, denominator, chunk):
    new = torch.cat([maximum, chunk], dim=-1).amax(dim=-1)[..., None]
    return [new, torch.cat([denominator * torch.exp(maximum - new), torch.exp(chunk - new)], dim=-1).sum(-1)[..., None]]


@right
def step_score_by_score(maximum, denominator, chunk):
    for score in chunk.split(1, dim=-1):
        higher = torch.where(score > maximum, score, maximum)
        denominator = denominator * torch.exp(maximum - higher) + torch.exp(score - higher)
        maximum = higher
    return maximum, denominator


@right
def step_guards_minus_infinity(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    powers = torch.where(torch.isinf(chunk), torch.zeros_like(chunk), torch.exp(chunk - higher))
    return higher, denominator * torch.exp(maximum - higher) + powers.sum(dim=-1, keepdim=True)


# 2.6 test_softmax ---------------------------------------------------------------------------------------------------

right = alternatives_of("test_softmax")


@right
def test_by_properties(implementation):
    single = torch.tensor([[[0.0, 3.0], [1.0, -2.0]], [[900.0, 901.0], [-950.0, -952.0]]])
    for x in (single, single.double()):
        kept = x.clone()
        for dim in (0, 1, 2, -1, -2):
            w = implementation(x, dim)
            assert w.shape == x.shape
            assert w.dtype == x.dtype
            assert torch.isfinite(w).all()
            assert (w >= 0).all()
            assert torch.allclose(w.sum(dim), torch.ones_like(w.sum(dim)))
        log_ratio = torch.log(implementation(x, 2)).diff(dim=2)
        assert torch.allclose(log_ratio, kept.diff(dim=2), atol=1e-4)
        assert torch.equal(x, kept)


@right
def test_against_numpy(implementation):
    def reference(x, axis):
        powers = np.exp(x - x.max(axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)

    numbers = np.random.default_rng(0).normal(size=(3, 4, 5)) * np.array([1.0, 50.0, 1000.0])[:, None, None]
    numbers[1] -= 5000
    for dim in (-3, -2, -1, 0, 1, 2):
        x = torch.from_numpy(numbers.copy())
        np.testing.assert_allclose(implementation(x, dim).numpy(), reference(numbers, dim), rtol=1e-6, atol=1e-9)
        assert x.dtype == implementation(x, dim).dtype
        assert implementation(x.float(), dim).dtype == torch.float32
        np.testing.assert_array_equal(x.numpy(), numbers)


@right
def test_one_thing_at_a_time(implementation):
    def same(x, dim):
        before = x.clone()
        weights = implementation(x, dim)
        assert torch.equal(x, before)
        assert weights.dtype == x.dtype
        assert torch.allclose(weights, torch.softmax(before, dim), atol=1e-5)

    same(torch.tensor([0.0, 3.0, 0.0, 1.0, 0.0, 2.0]), 0)
    same(torch.tensor([0.0, 100.0, 101.0]), 0)
    same(torch.tensor([1000.0, -1000.0]), -1)
    same(torch.tensor([-1000.0, -1001.0]), -1)
    same(torch.tensor([[1.0, 2.0], [300.0, 301.0]]), 1)
    same(torch.tensor([[1.0, 2.0, 4.0], [3.0, 0.0, 1.0]]), 0)
    same(torch.tensor([[1.0, 2.0, 4.0], [3.0, 0.0, 1.0]]), 1)
    same(torch.tensor([[1.0, 2.0, 4.0], [3.0, 0.0, 1.0]], dtype=torch.float64), -2)


# 2.7 counterexample -------------------------------------------------------------------------------------------------

right = alternatives_of("counterexample")


@right
def counterexample_negative():
    return torch.tensor([[[-1000.0, -999.0, -1002.0], [0.0, 0.0, 0.0]]]), torch.eye(3)[None]


@right
def counterexample_across_examples():
    scores = torch.zeros(2, 1, 3)
    scores[1] = 200
    return scores, torch.randn(2, 3, 4)


@right
def counterexample_random():
    return 1e4 * torch.randn(2, 5, 3), torch.randn(2, 3, 2)


# 2.8 repaired_attention ---------------------------------------------------------------------------------------------

right = alternatives_of("repaired_attention")


@right
def repaired_fused(scores, v):
    return torch.softmax(scores, dim=-1) @ v


@right
def repaired_divides_first(scores, v):
    powers = torch.exp(scores - scores.max(dim=2, keepdim=True).values)
    return torch.einsum("bqk,bkd->bqd", powers / powers.sum(dim=2, keepdim=True), v)


@right
def repaired_query_by_query(scores, v):
    contexts = []
    for i in range(scores.shape[1]):
        row = scores[:, i]  # (B, Tk)
        powers = torch.exp(row - row.amax(dim=-1)[:, None])
        contexts.append((powers[:, :, None] * v).sum(dim=1) / powers.sum(dim=-1)[:, None])
    return torch.stack(contexts, dim=1)
