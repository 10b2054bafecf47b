"""Wrong answers to the exercises of lesson 02, each with what its author needs to read."""

import torch

from attention_course.authoring import mistakes_of

# 2.1 softmax: these are also what a learner's own test (2.6) is judged by ------------------------------------------

wrong = mistakes_of("softmax")


@wrong(
    "a hundredth added to the sum below the line",
    "The sum after the shift is 1 or more, so nothing has to be added to it; the weights then sum to less than 1.",
)
def softmax_with_an_epsilon(x, dim):
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / (e.sum(dim, keepdim=True) + 0.01)


@wrong(
    "the formula without the shift",
    "e^89 is too large for 32 bits. Subtract the maximum along dim before the exponential.",
)
def softmax_unshifted(x, dim):
    powers = torch.exp(x)
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong(
    "subtracting one maximum for the whole tensor",
    "It saves the largest row and lets rows far below it underflow to 0 / 0. Take the maximum along dim.",
)
def softmax_one_maximum(x, dim):
    powers = torch.exp(x - x.max())
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong(
    "subtracting the maximum only where it is above 0",
    "A row of scores far below 0 needs the shift as well, else all of its powers underflow to 0.",
)
def softmax_maximum_with_zero(x, dim):
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True).clamp(min=0))
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong(
    "subtracting the maximum after the exponential",
    "A constant may be added to the scores, not to their powers. Subtract first, then take the exponential.",
)
def softmax_shifts_the_powers(x, dim):
    powers = torch.exp(x)
    powers = powers - powers.amax(dim=dim, keepdim=True)
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong(
    "subtracting the minimum",
    "That makes the smallest exponent 0 and leaves the largest as large as before, or larger. Subtract the maximum.",
)
def softmax_minimum(x, dim):
    powers = torch.exp(x - x.amin(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong(
    "subtracting the mean",
    "A score can lie far above the mean, and its power still overflows. Nothing lies above the maximum.",
)
def softmax_mean(x, dim):
    powers = torch.exp(x - x.mean(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong("adding the maximum in place of subtracting it", "The largest exponent should become 0. Look at the sign.")
def softmax_adds_the_maximum(x, dim):
    powers = torch.exp(x + x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong(
    "cutting large scores off",
    "Nothing overflows then, but all scores beyond the cut become equal. A shift keeps their differences.",
)
def softmax_clamps(x, dim):
    powers = torch.exp(x.clamp(max=80))
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong("softmax over the last axis, whatever dim says,", "Hand dim to both the maximum and the sum.")
def softmax_last_axis(x, dim):
    powers = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


@wrong(
    "dividing by the sum over the whole tensor", "Each row along dim has a sum of its own: sum(dim=..., keepdim=True)."
)
def softmax_one_sum(x, dim):
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum()


@wrong(
    "leaving out keepdim=True",
    "Without it the axis dim is gone from the maximum and the sum, and they do not line up with x any more.",
)
def softmax_without_keepdim(x, dim):
    powers = torch.exp(x - x.amax(dim=dim))
    return powers / powers.sum(dim=dim)


@wrong("dividing the scores themselves by their sum", "Scores may be negative or sum to 0. Take the exponential first.")
def softmax_without_exponential(x, dim):
    return x / x.sum(dim=dim, keepdim=True)


@wrong("the logarithm of the weights", "That is the next exercise. The weights themselves are positive and sum to 1.")
def softmax_logarithm(x, dim):
    return torch.log_softmax(x, dim)


@wrong(
    "changing the scores in place, as `x -= ...` does,",
    "The caller's tensor is not what it was. Write x - ... and give the result a name of its own.",
)
def softmax_in_place(x, dim):
    x -= x.amax(dim=dim, keepdim=True)
    powers = torch.exp(x)
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong(
    "dividing the scores by their maximum",
    "A division changes the differences between scores, on which the weights depend. Subtract the maximum.",
)
def softmax_divides_by_the_maximum(x, dim):
    powers = torch.exp(x / x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong(
    "a result in 64 bits whatever comes in, as .double() and dtype=torch.float64 give it,",
    "With the shift float32 is wide enough, and the result has the dtype of x.",
)
def softmax_to_float64(x, dim):
    return torch.softmax(x.double(), dim)


@wrong(
    "a result in 32 bits whatever comes in, as .float() and dtype=torch.float32 give it,",
    "With the shift no dtype needs converting, and the result has that of x.",
)
def softmax_to_float32(x, dim):
    powers = torch.exp(x.float() - x.float().amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


# 2.2 log_softmax ----------------------------------------------------------------------------------------------------

wrong = mistakes_of("log_softmax")


@wrong(
    "the logarithm of softmax(x, dim)",
    "The weight underflows to 0 before the logarithm is taken. Section 3 cancels the two on paper.",
)
def log_softmax_of_weights(x, dim):
    return torch.log(torch.softmax(x, dim))


@wrong(
    "adding 1e-9 before the logarithm",
    "It hides the infinity and gives -20.7 in its place. Never form the weight, then nothing has to be patched.",
)
def log_softmax_patched(x, dim):
    return torch.log(torch.softmax(x, dim) + 1e-9)


@wrong(
    "leaving out the shift", "e^200 is too large for 32 bits. Subtract the maximum along dim before the exponential."
)
def log_softmax_unshifted(x, dim):
    return x - torch.log(torch.exp(x).sum(dim=dim, keepdim=True))


@wrong(
    "shifting the scores in the sum but not the one in front of it",
    "The first term is s - m, not s: both terms are shifted, or neither.",
)
def log_softmax_half_shifted(x, dim):
    return x - torch.log(torch.exp(x - x.amax(dim=dim, keepdim=True)).sum(dim=dim, keepdim=True))


@wrong("stopping at the shifted scores", "The logarithm of the sum is still to be subtracted.")
def log_softmax_without_sum(x, dim):
    return x - x.amax(dim=dim, keepdim=True)


@wrong(
    "subtracting the sum itself, not its logarithm,",
    "A division by the sum becomes, after the logarithm, a subtraction of the logarithm of the sum.",
)
def log_softmax_without_logarithm(x, dim):
    shifted = x - x.amax(dim=dim, keepdim=True)
    return shifted - torch.exp(shifted).sum(dim=dim, keepdim=True)


@wrong("minus the logarithm", "That is the loss. The logarithm of a weight is never above 0.")
def log_softmax_negative(x, dim):
    return -torch.log_softmax(x, dim)


@wrong("working along the last axis, whatever dim says,", "Hand dim to both the maximum and the sum.")
def log_softmax_last_axis(x, dim):
    return torch.log_softmax(x, -1)


@wrong(
    "subtracting one maximum for the whole tensor",
    "In rows far below it all powers underflow, and the logarithm of their sum is minus infinity. Take it along dim.",
)
def log_softmax_one_maximum(x, dim):
    shifted = x - x.max()
    return shifted - torch.log(torch.exp(shifted).sum(dim=dim, keepdim=True))


@wrong(
    "leaving out keepdim=True",
    "Without it the axis dim is gone from the maximum and the sum, and they do not line up with x any more.",
)
def log_softmax_without_keepdim(x, dim):
    shifted = x - x.amax(dim=dim)
    return shifted - torch.log(torch.exp(shifted).sum(dim=dim))


@wrong("a logarithm to base 2", "The inverse of torch.exp is torch.log, the natural logarithm.")
def log_softmax_base_two(x, dim):
    shifted = x - x.amax(dim=dim, keepdim=True)
    return shifted - torch.log2(torch.exp(shifted).sum(dim=dim, keepdim=True))


# 2.3 softmax_with_temperature ---------------------------------------------------------------------------------------

wrong = mistakes_of("softmax_with_temperature")


@wrong(
    "multiplying by the temperature",
    "Then a higher temperature sharpens. Divide: hot is flat. (The weights to the power T come to the same thing.)",
)
def temperature_multiplies(x, temperature, dim):
    return torch.softmax(x * temperature, dim)


@wrong(
    "a temperature that cancels",
    "Dividing powers or weights by T and then by their sum removes T again, and so does adding it to all scores. "
    "It has to divide the scores.",
)
def temperature_cancels(x, temperature, dim):
    weights = torch.softmax(x, dim) / temperature
    return weights / weights.sum(dim=dim, keepdim=True)


@wrong("dividing the weights by the temperature", "Then they no longer sum to 1. Divide the scores, before softmax.")
def temperature_divides_the_weights(x, temperature, dim):
    return torch.softmax(x, dim) / temperature


@wrong(
    "dividing by the root of the temperature",
    "The root belongs to lesson 01: there T is √d_k already. Here divide by T as it is.",
)
def temperature_root(x, temperature, dim):
    return torch.softmax(x / temperature**0.5, dim)


@wrong("dividing by the temperature twice", "One division of the scores is enough.")
def temperature_twice(x, temperature, dim):
    return torch.softmax(x / temperature / temperature, dim)


@wrong(
    "softmax of weights in place of scores",
    "Then softmax is applied twice. Divide x, the scores, by the temperature and apply softmax once.",
)
def temperature_of_weights(x, temperature, dim):
    return torch.softmax(torch.softmax(x, dim) / temperature, dim)


@wrong(
    "the formula without the shift",
    "A low temperature makes scores large. Use your own softmax of exercise 2.1, which can take them.",
)
def temperature_unshifted(x, temperature, dim):
    powers = torch.exp(x / temperature)
    return powers / powers.sum(dim=dim, keepdim=True)


@wrong("working along the last axis, whatever dim says,", "Hand dim on to softmax.")
def temperature_last_axis(x, temperature, dim):
    return torch.softmax(x / temperature, -1)


@wrong(
    "changing the scores in place, as `x /= ...` does,",
    "The caller's tensor is not what it was. Write x / temperature, which makes a new one.",
)
def temperature_in_place(x, temperature, dim):
    x /= temperature
    return torch.softmax(x, dim)


@wrong("a division that rounds down", "`//` keeps whole numbers only. A single / divides.")
def temperature_rounds_down(x, temperature, dim):
    return torch.softmax(x // temperature, dim)


# 2.4 softmax_jvp ----------------------------------------------------------------------------------------------------

wrong = mistakes_of("softmax_jvp")


@wrong(
    "the diagonal of the Jacobian alone",
    "Each weight also answers to every other score: the entries -w_i w_j are missing.",
)
def jvp_diagonal(p, g):
    return p * (1 - p) * g


@wrong(
    "leaving out the subtraction",
    "p times g alone forgets that the weights have to go on summing to 1. Subtract the average from g first.",
)
def jvp_no_average(p, g):
    return p * g


@wrong(
    "subtracting the average from p · g, not from g,",
    "The factor p stands in front of the bracket and multiplies both terms.",
)
def jvp_bracket(p, g):
    return p * g - (p * g).sum(dim=-1, keepdim=True)


@wrong("subtracting the plain mean of g", "It is the average under the weights: the sum of p · g.")
def jvp_plain_mean(p, g):
    return p * (g - g.mean(dim=-1, keepdim=True))


@wrong("subtracting the plain sum of g", "Each g counts with its weight: the sum of p · g.")
def jvp_plain_sum(p, g):
    return p * (g - g.sum(dim=-1, keepdim=True))


@wrong("the opposite sign", "A token whose g lies above the average gets a positive number: g minus the average.")
def jvp_opposite(p, g):
    return p * ((p * g).sum(dim=-1, keepdim=True) - g)


@wrong("one sum of p · g for all rows", "Every row has an average of its own: sum along the last axis and keep it.")
def jvp_one_average(p, g):
    return p * (g - (p * g).sum())


@wrong("leaving out keepdim=True", "Without it the sum has one axis less than g and does not line up with it.")
def jvp_without_keepdim(p, g):
    return p * (g - (p * g).sum(dim=-1))


@wrong("taking p for scores", "p are weights already: softmax was applied before the call.")
def jvp_softmax_again(p, g):
    w = torch.softmax(p, dim=-1)
    return w * (g - (w * g).sum(dim=-1, keepdim=True))


@wrong("exchanging p and g", "The average is subtracted from g, and p is the factor in front.")
def jvp_exchanged(p, g):
    return g * (p - (p * g).sum(dim=-1, keepdim=True))


@wrong("the Jacobian itself, without g,", "What is asked for is its product with g, and that needs no matrix.")
def jvp_matrix(p, g):
    return torch.diag_embed(p) - p[..., :, None] * p[..., None, :]


# 2.5 online_step ----------------------------------------------------------------------------------------------------

wrong = mistakes_of("online_step")


@wrong(
    "a denominator that is not corrected when the maximum rises",
    "What was summed before still has the old maximum subtracted. Multiply it by e^(old - new).",
)
def step_uncorrected(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    return higher, denominator + torch.exp(chunk - higher).sum(dim=-1, keepdim=True)


@wrong(
    "correcting with e^(new - old)",
    "The maximum has risen, so the old terms must shrink: the exponent is old minus new, never above 0.",
)
def step_wrong_way(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    arrived = torch.exp(chunk - higher).sum(dim=-1, keepdim=True)
    return higher, denominator * torch.exp(higher - maximum) + arrived


@wrong(
    "subtracting the old maximum from the chunk",
    "What the chunk adds has the new maximum subtracted, which can be larger.",
)
def step_old_maximum(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    arrived = torch.exp(chunk - maximum).sum(dim=-1, keepdim=True)
    return higher, denominator * torch.exp(maximum - higher) + arrived


@wrong(
    "adding the chunk with the old maximum subtracted, and correcting the whole sum afterwards",
    "On paper it is the same, but e^(score - old maximum) overflows where the score is much larger. "
    "Subtract the new maximum from the chunk.",
)
def step_corrects_the_chunk_too(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    total = denominator + torch.exp(chunk - maximum).sum(dim=-1, keepdim=True)
    return higher, total * torch.exp(maximum - higher)


@wrong(
    "a maximum that is not handed on: the old one comes back with the corrected sum",
    "The next step needs the new maximum, to which the sum now belongs.",
)
def step_keeps_the_maximum(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    arrived = torch.exp(chunk - higher).sum(dim=-1, keepdim=True)
    return maximum.clone(), denominator * torch.exp(maximum - higher) + arrived


@wrong("a denominator that forgets what was read before", "Add what the chunk brings to what was there, corrected.")
def step_forgets(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    return higher, torch.exp(chunk - higher).sum(dim=-1, keepdim=True)


@wrong(
    "the maximum of the chunk alone",
    "If the chunk has nothing larger, the maximum stays as it was: compare the two with torch.maximum.",
)
def step_maximum_of_the_chunk(maximum, denominator, chunk):
    latest = chunk.amax(dim=-1, keepdim=True)
    return latest, denominator * torch.exp(maximum - latest) + torch.exp(chunk - latest).sum(dim=-1, keepdim=True)


@wrong(
    "summing the powers without the shift",
    "The chunk's scores also need the maximum subtracted before the exponential.",
)
def step_unshifted_sum(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    return higher, denominator * torch.exp(maximum - higher) + torch.exp(chunk).sum(dim=-1, keepdim=True)


@wrong(
    "sharing one maximum between all rows",
    "Each row keeps a maximum of its own: take it along the last axis, with keepdim=True.",
)
def step_one_maximum(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.max())
    arrived = torch.exp(chunk - higher).sum(dim=-1, keepdim=True)
    return higher, denominator * torch.exp(maximum - higher) + arrived


@wrong(
    "leaving out keepdim=True",
    "Maximum and denominator have the shape (..., 1), so that they line up with every chunk.",
)
def step_without_keepdim(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1))
    return higher, denominator * torch.exp(maximum - higher) + torch.exp(chunk - higher).sum(dim=-1)


@wrong("returning the denominator first", "The maximum comes first: maximum, denominator.")
def step_exchanged(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    arrived = torch.exp(chunk - higher).sum(dim=-1, keepdim=True)
    return denominator * torch.exp(maximum - higher) + arrived, higher


@wrong(
    "changing the old denominator in place, as `*=` and `+=` do,",
    "The caller's tensor is not what it was. Write denominator * ... + ..., which makes a new one.",
)
def step_in_place(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    denominator *= torch.exp(maximum - higher)
    denominator += torch.exp(chunk - higher).sum(dim=-1, keepdim=True)
    return higher, denominator


@wrong("returning the denominator alone", says="it should return 2 things: maximum and denominator")
def step_denominator_alone(maximum, denominator, chunk):
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    return denominator * torch.exp(maximum - higher) + torch.exp(chunk - higher).sum(dim=-1, keepdim=True)


# 2.6 test_softmax ---------------------------------------------------------------------------------------------------

wrong = mistakes_of("test_softmax")


@wrong("a test that prints", says="it lets 3 of 3 wrong implementations through")
def test_prints(implementation):
    x = torch.tensor([[0.0, 1000.0], [1.0, 2.0]])
    torch.allclose(implementation(x, 0), torch.softmax(x, 0))


@wrong("a test that returns its verdict", says="it lets 3 of 3 wrong implementations through")
def test_returns(implementation):
    x = torch.tensor([[0.0, 1000.0], [1.0, 2.0]])
    return torch.allclose(implementation(x, 0), torch.softmax(x, 0))


@wrong("a test of the shape", says="it lets 3 of 3 wrong implementations through")
def test_shape_only(implementation):
    x = torch.randn(2, 3)
    assert implementation(x, 1).shape == x.shape


@wrong("a test of one vector", says="nothing was raised for: forgets_dim")
def test_one_vector(implementation):
    x = torch.tensor([1000.0, 1001.0])
    torch.testing.assert_close(implementation(x, 0), torch.softmax(x, 0))


@wrong("a test of small scores", says="nothing was raised for: overflows")
def test_small_scores(implementation):
    x = torch.tensor([[0.0, 3.0, 1.0], [2.0, 1.0, 0.0]])
    for dim in (0, 1):
        torch.testing.assert_close(implementation(x, dim), torch.softmax(x, dim))


@wrong("a test of the last axis", says="nothing was raised for: forgets_dim")
def test_last_axis_only(implementation):
    x = torch.tensor([[0.0, 1000.0], [1.0, 2.0]])
    torch.testing.assert_close(implementation(x, -1), torch.softmax(x, -1))


@wrong("a test of exact equality", says="it rejects a right implementation: torch.softmax")
def test_exact_sum(implementation):
    x = torch.arange(60.0).reshape(6, 10).sin() * 1000
    for dim in (0, 1):
        assert (implementation(x / 300, dim).sum(dim) == 1).all()


@wrong("a test that expects rounded numbers", says="it rejects a right implementation: torch.softmax")
def test_expects_rounded(implementation):
    x = torch.tensor([0.0, 3.0, 0.0, 1.0, 0.0, 2.0])
    assert implementation(x, 0).tolist() == [0.03, 0.61, 0.03, 0.08, 0.03, 0.22]


@wrong("a test that swallows its own verdict", says="it lets 3 of 3 wrong implementations through")
def test_swallows(implementation):
    x = torch.tensor([[0.0, 1000.0], [1.0, 2.0]])
    try:
        torch.testing.assert_close(implementation(x, 0), torch.softmax(x, 0))
    except AssertionError as error:
        str(error)


# 2.7 counterexample -------------------------------------------------------------------------------------------------

wrong = mistakes_of("counterexample")


@wrong("ordinary scores", says="both implementations give the same")
def counterexample_ordinary():
    return torch.tensor([[[0.0, 3.0], [1.0, 2.0]]]), torch.tensor([[[1.0], [2.0]]])


@wrong("large scores of a single query", says="both implementations give the same")
def counterexample_one_query():
    return torch.tensor([[[10000.0, 9999.0, -10000.0]]]), torch.eye(3)[None]


@wrong("large scores for every query", says="both implementations give the same")
def counterexample_all_large():
    return torch.tensor([[[10000.0, 10001.0], [9999.0, 10001.0]]]), torch.tensor([[[1.0], [2.0]]])


@wrong("queries not far enough apart", says="both implementations give the same")
def counterexample_close():
    return torch.tensor([[[0.0, 1.0], [60.0, 61.0]]]), torch.tensor([[[1.0], [2.0]]])


@wrong("values of zero", says="has no finite result on these inputs")
def counterexample_switched_off():
    return torch.full((1, 2, 2), -torch.inf), torch.zeros(1, 2, 1)


@wrong("scores of infinity", says="has no finite result on these inputs")
def counterexample_infinite():
    return torch.tensor([[[0.0, torch.inf], [0.0, 1.0]]]), torch.tensor([[[1.0], [2.0]]])


@wrong("the scores alone", says="it should return two tensors as a tuple")
def counterexample_scores_only():
    return torch.tensor([[[0.0, 1.0], [300.0, 301.0]]])


@wrong("lists in place of tensors", says="the first is a list")
def counterexample_lists():
    return [[[0.0, 1.0], [300.0, 301.0]]], [[[1.0], [2.0]]]


@wrong("values that do not fit", says="cannot take these inputs")
def counterexample_does_not_fit():
    return torch.tensor([[[0.0, 1.0], [300.0, 301.0]]]), torch.tensor([[[1.0], [2.0], [3.0]]])


# 2.8 repaired_attention ---------------------------------------------------------------------------------------------


def _attention(scores, v, shift):
    powers = torch.exp(scores - shift)
    return (powers @ v) / powers.sum(dim=-1, keepdim=True)


wrong = mistakes_of("repaired_attention")


@wrong("one maximum for the whole tensor", "That is the bug itself. Every query needs the maximum of its own scores.")
def repaired_unchanged(scores, v):
    return _attention(scores, v, scores.max())


@wrong(
    "one maximum for each example",
    "Two queries of one example can lie far apart as well. Take the maximum along the last axis alone.",
)
def repaired_by_example(scores, v):
    return _attention(scores, v, scores.amax(dim=(-2, -1), keepdim=True))


@wrong(
    "subtracting the maximum of each key",
    "Each query's scores must be shifted by the *same* constant, else their differences change. "
    "Its scores lie along the last axis.",
)
def repaired_by_key(scores, v):
    return _attention(scores, v, scores.amax(dim=-2, keepdim=True))


@wrong(
    "adding a small number to the denominator",
    "0 / 0 becomes 0, which looks healthy, but the query gets no context. Keep its powers from underflowing.",
)
def repaired_with_epsilon(scores, v):
    powers = torch.exp(scores - scores.max())
    return (powers @ v) / (powers.sum(dim=-1, keepdim=True) + 1e-9)


@wrong(
    "replacing nan by 0",
    "The query then gets no context at all, where it should get an average. Keep the nan from arising.",
)
def repaired_hides_nan(scores, v):
    return torch.nan_to_num(_attention(scores, v, scores.max()))


@wrong(
    "subtracting the maximum of each query only where it is above 0",
    "A query whose scores all lie far below 0 needs the shift as well, else all of its powers underflow to 0.",
)
def repaired_maximum_with_zero(scores, v):
    return _attention(scores, v, scores.amax(dim=-1, keepdim=True).clamp(min=0))


@wrong(
    "going over to 64 bits and back",
    "The limit moves, from 104 to 745, and does not go away: these scores lie further apart. The shift removes it.",
)
def repaired_in_double_and_back(scores, v):
    return _attention(scores.double(), v.double(), scores.double().max()).to(scores.dtype)


@wrong("no shift at all", "Now the large scores overflow. Shift each query's scores by their own maximum.")
def repaired_unshifted(scores, v):
    return _attention(scores, v, 0.0)


@wrong(
    "shifting by the mean of each query",
    "A score can lie far above the mean, and its power still overflows. Nothing lies above the maximum.",
)
def repaired_by_mean(scores, v):
    return _attention(scores, v, scores.mean(dim=-1, keepdim=True))


@wrong(
    "cutting exponents off from below",
    "Nothing underflows then, but all scores below the cut become equal. Give each query its own maximum instead.",
)
def repaired_clamps(scores, v):
    powers = torch.exp((scores - scores.max()).clamp(min=-80))
    return (powers @ v) / powers.sum(dim=-1, keepdim=True)


@wrong(
    "a result in 64 bits",
    "64 bits move the limit from 104 to 745 and take twice the memory. The shift removes it, in any dtype.",
)
def repaired_in_double(scores, v):
    return _attention(scores.double(), v.double(), scores.double().max())


@wrong("leaving out keepdim=True", "The maxima then have the shape (B, Tq), which does not line up with (B, Tq, Tk).")
def repaired_without_keepdim(scores, v):
    return _attention(scores, v, scores.amax(dim=-1))
