# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 · Softmax
#
# **At the end of this lesson you own a softmax that no finite score can break, you know what gradient it lets through, and you
# can compute it from scores that arrive piece by piece.** This is what you will measure:
#
# ![Two panels over temperature: the weights of six tokens go from one winner to all equal, and the gradient fades at both ends](attachment:cover.png)
#
# | | |
# |---|---|
# | time | 100 minutes |
# | difficulty | gentle; the running maximum in section 6 asks for some thought |
# | builds on | lesson 01: scores, queries and keys; a derivative or two |
# | you will write | 5 small functions, a test that finds other people's mistakes, a counterexample and a repair |
#
# Each exercise has a cell with `# TODO`, and below it a cell that checks your answer. A check never shows you the solution; it
# tells you what it saw, what it expected and, when it recognises your mistake, which one it is.
#
# Unless its docstring says otherwise, an answer leaves its inputs as they are, keeps their dtype and device, and lets gradients reach
# every input that it depends on.

# %% given="setup"
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ADDRESS, VERSION, COURSE = "", "", "attention_course"  # a release writes its own address here
HELP = "The course's package is not here. In the course's folder, run: make lab"
files = [*(w for d in (".", "..") for w in Path(d).glob(f"{COURSE}-{VERSION}*.whl")), ADDRESS][:1]
while not find_spec(COURSE) or not __import__(COURSE).__version__.startswith(VERSION):
    if not files:
        raise type("Stop", (Exception,), {"_render_traceback_": lambda stop: [str(stop)]})(HELP)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", files.pop()], capture_output=True)

# %% given="imports"
import math

import torch

from attention_course import check, device, plots

device.seed(2)
where = device.pick()
check.start("02")

# %% [markdown]
# ## 1 · From scores to weights
#
# In lesson 01 the verb of **The cat sat on the mat** looked for its subject. Here it looks for its place as well. These are the
# **scores** that "sat" gives to the six tokens, one number for each:
#
# | The | cat | sat | on | the | mat |
# |---|---|---|---|---|---|
# | 0 | 3 | 0 | 1 | 0 | 2 |
#
# We want **weights**: none negative, all six summing to 1, and a larger score should get a larger weight.
#
# The first idea is to divide each score by their sum, 6. That works here, but scores may be negative: for $(2, 1, -3)$ the sum is
# 0. So make every number positive first. The exponential $e^s$ does it, it keeps the order, and it has a derivative everywhere.
#
# By hand: $e^0 = 1$, $e^1 \approx 2.7$, $e^2 \approx 7.4$, $e^3 \approx 20.1$. The sum over the six tokens is
# $1 + 20.1 + 1 + 2.7 + 1 + 7.4 \approx 33.2$, and the weight of "cat" is $20.1 / 33.2 \approx 0.61$. In general, for scores
# $s_1, \dots, s_n$,
#
# $$w_i = \frac{e^{s_i}}{\sum_{j=1}^{n} e^{s_j}} .$$
#
# This is the **softmax**.

# %% given="tokens"
tokens = ["The", "cat", "sat", "on", "the", "mat"]
# what "sat" gives to each token: (6,)
scores = torch.tensor([0.0, 3.0, 0.0, 1.0, 0.0, 2.0], device=where)


def plain(x: torch.Tensor) -> torch.Tensor:
    """Softmax of a vector of scores, exactly as the formula is written."""
    return torch.exp(x) / torch.exp(x).sum()


# %%
powers, weights = torch.exp(scores), plain(scores)
for i, token in enumerate(tokens):
    print(f"{token:4} score {scores[i]:.0f}, e to it {powers[i]:5.2f}, weight {weights[i]:.2f}")

# %% [markdown]
# Divide one weight by another and the sum cancels:
#
# $$\frac{w_i}{w_j} = \frac{e^{s_i}}{e^{s_j}} = e^{s_i - s_j} .$$
#
# Only **differences** of scores count. "cat" is 1 ahead of "mat", so it gets $e^1 \approx 2.7$ times its weight. Whatever you *add*
# to all six scores, the weights stay the same.
#
# ## 2 · Numbers that run out
#
# On paper they stay the same. On a computer:

# %%
for constant in (0, 80, 100, -110):
    weights = plain(scores + constant)
    print(f"scores {constant:+4d}: weights {[round(w, 2) for w in weights.tolist()]}")

# %% [markdown]
# A 32-bit number ends at $3.4 \cdot 10^{38}$, which is $e^{88.7}$; a 16-bit one (`float16`) ends at 65504, which is $e^{11.1}$.
# (The other 16-bit format, `bfloat16`, reaches as far as 32 bits do, with fewer digits.) Beyond that an exponential **overflows**:
# it becomes `inf`, and `inf / inf` is `nan`, "not a number". At the other end, $e^{-110}$ is so small that it **underflows** to 0,
# and if all six do, $0/0$ is `nan` as well.
#
# Section 1 holds the remedy: we may add any constant, so choose the best one. With $m = \max_j s_j$,
#
# $$w_i = \frac{e^{s_i - m}}{\sum_j e^{s_j - m}} .$$
#
# The largest exponent is now 0, so nothing overflows. One term of the sum is $e^0 = 1$, so the sum lies between 1 and $n$ and is
# never 0. Other terms may still underflow; they were negligible beside the 1.
#
# By hand, for scores of 1001 and 1002: $m = 1002$, the exponents are $-1$ and $0$, the powers $0.37$ and $1$, the weights $0.27$ and $0.73$.
#
# **Which axis?** Scores usually come as a tensor, and `dim` names the axis along which the weights sum to 1. By hand:
#
# | scores | `dim=1`: each row sums to 1 | `dim=0`: each column sums to 1 |
# |---|---|---|
# | 0, 3 | 0.05, 0.95 | 0.50, 0.95 |
# | 0, 0 | 0.50, 0.50 | 0.50, 0.05 |
#
# Each row (or column) has a maximum of its own. `amax` finds it, but mind the shape: `x.amax(dim=1)` of a tensor of shape
# `(2, 3, 4)` has shape `(2, 4)`, which cannot be subtracted from `x`. With `keepdim=True` it is `(2, 1, 4)`, and it can.
#
# ### Exercise 2.1: a softmax that does not break
#
# Write it from `torch.exp`, `amax` and `sum`. (`torch.softmax` does it in one call; you will need the parts later, and use the call
# as a referee in exercise 2.6.)


# %% exercise="softmax"
def softmax(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Turn scores into weights along one axis, for scores of any size.

    Args:
        x: scores, of any shape.
        dim: the axis along which the weights sum to 1; negative counts from the end.

    Returns:
        The weights, with the shape, dtype and device of x. Gradients reach x; x is left as it is.

    Example:
        softmax([1001, 1002], dim=0) gives [0.2689, 0.7311].
    """
    # TODO: subtract the maximum along dim, take the exponential, divide by the sum along dim
    ### BEGIN SOLUTION
    powers = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Two lines: the powers, then a division. Both a maximum and a sum are taken along `dim`.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `x.amax(dim=..., keepdim=True)` has length 1 along `dim`, so that it can be subtracted from `x`. `sum` takes the same two arguments.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `powers = torch.exp(x - x.amax(...))`, then `return powers / ...`, where the second is the sum of `powers`.
#
# </details>

# %% test="softmax" points=2
check.exercise("softmax", softmax)
### BEGIN HIDDEN TESTS
_x = 3 * torch.randn(2, 3, 4, 5)
for _dim in (0, 1, 2, 3, -1, -2, -3, -4):
    _w = softmax(_x, _dim)
    torch.testing.assert_close(_w, torch.softmax(_x, _dim), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(_w.sum(_dim), torch.ones_like(_x.sum(_dim)), rtol=1e-4, atol=1e-5)
torch.testing.assert_close(softmax(_x + 7.0, 2), softmax(_x, 2), rtol=1e-3, atol=1e-5)  # a constant changes nothing
_shuffle = torch.randperm(5)  # the order of the scores does not matter
torch.testing.assert_close(softmax(_x[..., _shuffle], -1), softmax(_x, -1)[..., _shuffle], rtol=1e-4, atol=1e-6)
_far = torch.randn(3, 4, dtype=torch.float64) + torch.tensor([[1e4], [-1e4], [0.0]], dtype=torch.float64)
torch.testing.assert_close(softmax(_far, -1), torch.softmax(_far, -1), rtol=1e-10, atol=1e-12)
torch.testing.assert_close(softmax(_x[0], -1), torch.softmax(_x[0], -1), rtol=1e-4, atol=1e-6)
torch.testing.assert_close(softmax(_far.float(), -1), torch.softmax(_far.float(), -1), rtol=1e-3, atol=1e-5)
_half = (20 * torch.randn(3, 4)).half()
torch.testing.assert_close(softmax(_half, 1), torch.softmax(_half, 1), rtol=1e-2, atol=1e-3)
assert check.unchanged(softmax, torch.randn(2, 3, 4) + 1, 1)
_wide = 300 * torch.randn(3, 4)
assert all(g is not None and torch.isfinite(g).all() for g in check.gradients(softmax, _wide, 0))
### END HIDDEN TESTS

# %% [markdown]
# How far does each version get? Below, 1000 rows of six random scores are stretched to different sizes. A row counts as right if
# all its weights are within 0.01 of the true ones. Many models are run with 16-bit numbers, so these are in the race too.


# %%
def fraction_right(function, size: int, dtype: torch.dtype) -> float:
    """Of 1000 rows of six random scores of about ``size``, how many does it get right?"""
    x = (device.randn(1000, 6, seed=1) * size).to(dtype)
    true = torch.softmax(x.double(), dim=-1)
    error = (function(x).double() - true).abs().amax(dim=-1)  # (1000,), nan where it broke
    return (error < 0.01).double().mean().item()


def plain_rows(x: torch.Tensor) -> torch.Tensor:
    """The formula as it is written, for each row of x."""
    return torch.exp(x) / torch.exp(x).sum(-1)[:, None]


def your_rows(x: torch.Tensor) -> torch.Tensor:
    """Your softmax, for each row of x."""
    return softmax(x, -1)


sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
right = {}
for bits, dtype in ((16, torch.float16), (32, torch.float32)):
    for name, function in (("as written", plain_rows), ("yours", your_rows)):
        right[f"{name}, {bits} bits"] = [fraction_right(function, size, dtype) for size in sizes]
print("yours is right on each row:", min(right["yours, 16 bits"] + right["yours, 32 bits"]) == 1)

# %%
# @title How many rows come out right, against the size of the scores
plots.lines(
    sizes,
    {name: right[name] for name in ("as written, 16 bits", "as written, 32 bits", "yours, 16 bits")},
    xlabel="size of the scores (standard deviation)",
    ylabel="fraction of rows that are right",
    title="The formula as it is written breaks on large scores; the shifted one held at every size tried",
    alt="Fraction of 1000 rows that come out right, against the size of the scores from 1 to 1024. As written "
    "with 16 bits it falls from 0.98 at size 4 to 0.17 at 16 and 0.06 at 32. With 32 bits it falls from "
    "0.98 at size 32 to 0.17 at 128 and 0.06 at 256. Yours stays at 1.",
    logx=True,
)

# %% [markdown]
# A row breaks as soon as its largest score passes 11 (16 bits) or 89 (32 bits), or when all of its scores are far below 0. The
# subtraction costs one pass over the row and removes both limits.
#
# ## 3 · The logarithm of a weight
#
# A model that predicts words is trained on $-\ln w_i$, where $w_i$ is the weight it gave to the right word: 0 if it was certain,
# and growing without bound as the weight goes to 0. Lesson 08 trains a translator so. Can you take the logarithm of your softmax?

# %%
apart = torch.tensor([0.0, 200.0], device=where)
first = softmax(apart, 0)[0]
print("the first weight is 0:", bool(first == 0), " its logarithm is", torch.log(first).item())

# %% [markdown]
# The true logarithm of the first weight is $-200$, quite an ordinary number. But the weight itself, $e^{-200}$, has underflowed to
# 0, and $\ln 0 = -\infty$. One loss of `inf` can end a training run.
#
# The remedy is never to form the weight. Take the logarithm on paper:
#
# $$\ln w_i = \ln \frac{e^{s_i - m}}{\sum_j e^{s_j - m}} = (s_i - m) - \ln \sum_j e^{s_j - m} .$$
#
# The exponential and the logarithm of the numerator cancel, and the sum is at least 1, so that its logarithm is safe.
#
# By hand, for "cat": $s_i = m = 3$, and the sum is $33.2 / e^3 \approx 1.65$. So $\ln w = 0 - \ln 1.65 \approx -0.50$, and indeed
# $e^{-0.50} \approx 0.61$.
#
# ### Exercise 2.2: log-softmax


# %% exercise="log_softmax"
def log_softmax(x: torch.Tensor, dim: int) -> torch.Tensor:
    """The natural logarithm of softmax(x, dim), computed without forming the weights.

    Args:
        x: scores, of any shape.
        dim: the axis along which the weights sum to 1; negative counts from the end.

    Returns:
        The logarithms, with the shape, dtype and device of x; gradients reach x.

    Example:
        log_softmax([0, 200], dim=0) gives [-200, 0].
    """
    # TODO: the shifted scores, minus the logarithm of the sum of their exponentials
    ### BEGIN SOLUTION
    shifted = x - x.amax(dim=dim, keepdim=True)
    return shifted - torch.log(torch.exp(shifted).sum(dim=dim, keepdim=True))
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# $s_i - m$ occurs twice in the formula. Give it a name.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# From inside out: exponential, sum along `dim` (keep the axis), logarithm. The result has length 1 along `dim` and is subtracted
# from all the shifted scores.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `shifted = x - ...`, then `return shifted - torch.log(...)`
#
# </details>

# %% test="log_softmax" points=1
check.exercise("log_softmax", log_softmax)
### BEGIN HIDDEN TESTS
_x = 3 * torch.randn(2, 3, 4, 5)
for _dim in (0, 1, 2, 3, -1, -3):
    torch.testing.assert_close(log_softmax(_x, _dim), torch.log_softmax(_x, _dim), rtol=1e-4, atol=1e-5)
torch.testing.assert_close(log_softmax(_x + 5.0, 1), log_softmax(_x, 1), rtol=1e-3, atol=1e-4)
_wide = 1000 * torch.randn(3, 4, dtype=torch.float64) + torch.tensor([[1e4], [-1e4], [0.0]], dtype=torch.float64)
torch.testing.assert_close(log_softmax(_wide, -1), torch.log_softmax(_wide, -1), rtol=1e-10, atol=1e-9)
assert torch.isfinite(log_softmax(_wide.float(), 0)).all()
assert check.unchanged(log_softmax, _x, 1)
assert all(g is not None and torch.isfinite(g).all() for g in check.gradients(log_softmax, _wide, 0))
### END HIDDEN TESTS

# %% [markdown]
# There is also a popular patch: add a tiny number before the logarithm, $\ln(w + 10^{-9})$. It cannot give `inf`. Is it right?
# Count the correct digits of each way, for two scores that lie further and further apart.


# %%
def correct_digits(value: torch.Tensor, gap: int) -> float:
    """How many decimal digits of ``value`` are those of the true logarithm; 6 at most."""
    exact = torch.log_softmax(torch.tensor([0.0, gap], dtype=torch.float64), dim=0)[0].item()
    error = abs(value.item() - exact) / abs(exact) + 1e-6
    return max(0.0, -math.log10(error))


gaps = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
ways = {
    "ln(softmax)": lambda x: torch.log(softmax(x, 0)),
    "ln(softmax + 1e-9)": lambda x: torch.log(softmax(x, 0) + 1e-9),
    "your log_softmax": lambda x: log_softmax(x, 0),
}
digits = {name: [] for name in ways}
for gap in gaps:
    pair = torch.tensor([0.0, gap], device=where)
    for name, way in ways.items():
        digits[name].append(correct_digits(way(pair)[0], gap))

# %%
# @title Correct digits of three ways to the logarithm
plots.lines(
    gaps,
    digits,
    xlabel="how far the two scores lie apart",
    ylabel="correct digits (6 at most)",
    title="Only log_softmax keeps its digits; adding 1e-9 loses them even sooner",
    alt="Correct digits of the logarithm of the smaller of two weights, for scores 1 to 512 apart. Your "
    "log_softmax keeps 6. ln(softmax) keeps 6 up to 64 and has none from 128 on. With 1e-9 added, 6 are "
    "left at 8, 3 at 16 and fewer than 1 at 32.",
    logx=True,
)

# %% [markdown]
# The patch replaces a visible fault by an invisible one: $\ln(w + 10^{-9})$ is never below $-20.7$, so beyond that point the loss
# stops growing and its gradient vanishes, just where the model is most wrong. `log_softmax` needs no patch.
#
# ## 4 · Temperature
#
# Adding a constant to all scores changes nothing. **Multiplying** them does: differences grow, and with them the ratios of the
# weights. It is customary to *divide* by a number $T > 0$ that is called the **temperature**:
#
# $$w_i = \frac{e^{s_i / T}}{\sum_j e^{s_j / T}} .$$
#
# By hand, "cat" against "mat", whose scores differ by 1:
#
# | $T$ | $w_\text{cat} / w_\text{mat} = e^{1 / T}$ | |
# |---|---|---|
# | 0.5 | $e^2 \approx 7.4$ | colder: sharper |
# | 1 | $e^1 \approx 2.7$ | softmax as it was |
# | 2 | $e^{0.5} \approx 1.6$ | hotter: flatter |
#
# Two limits are worth knowing. As $T \to 0$, the token with the largest score takes all the weight (if several share it, they split
# it equally): softmax becomes **argmax**. As $T \to \infty$, all $s_i / T$ shrink to 0 and all $n$ weights become $1/n$:
# **uniform**. $T = 0$ itself is a division by zero; code that wants argmax asks for it directly.
#
# You have met a temperature before: the division by $\sqrt{d_k}$ in lesson 01 is $T = \sqrt{d_k}$.
#
# ### Exercise 2.3: softmax with temperature


# %% exercise="softmax_with_temperature"
def softmax_with_temperature(x: torch.Tensor, temperature: float, dim: int) -> torch.Tensor:
    """Softmax of scores divided by a temperature.

    Args:
        x: scores, of any shape.
        temperature: a number above 0. Below 1 it sharpens, above 1 it flattens.
        dim: the axis along which the weights sum to 1; negative counts from the end.

    Returns:
        The weights, with the shape, dtype and device of x.

    Example:
        softmax_with_temperature([0, 3], 3.0, dim=0) gives [0.2689, 0.7311], the softmax of [0, 1].
    """
    # TODO: your softmax, of scores divided by the temperature
    ### BEGIN SOLUTION
    return softmax(x / temperature, dim)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# One line. You have written a softmax.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# The temperature acts on the scores, before the exponential. Dividing the weights by it would only spoil their sum.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `return softmax(..., dim)`
#
# </details>

# %% test="softmax_with_temperature" points=1
check.exercise("softmax_with_temperature", softmax_with_temperature)
### BEGIN HIDDEN TESTS
_x = torch.randn(2, 3, 4, 5)
for _t in (0.3, 1.0, 2.7):
    for _dim in (0, 2, -1):
        torch.testing.assert_close(
            softmax_with_temperature(_x, _t, _dim), torch.softmax(_x / _t, _dim), rtol=1e-4, atol=1e-6
        )
_cold = softmax_with_temperature(_x, 1e-4, 1)
torch.testing.assert_close(_cold.argmax(1), _x.argmax(1))
assert torch.isfinite(_cold).all()
torch.testing.assert_close(softmax_with_temperature(_x, 1e6, 2), torch.full_like(_x, 1 / 4), rtol=1e-3, atol=1e-4)
_tie = softmax_with_temperature(torch.tensor([5.0, 5.0, 1.0]), 0.01, 0)
torch.testing.assert_close(_tie, torch.tensor([0.5, 0.5, 0.0]), rtol=1e-4, atol=1e-5)
assert check.unchanged(softmax_with_temperature, _x, 0.5, 1)
### END HIDDEN TESTS

# %%
# @title The six weights at six temperatures
temperatures = [0.25, 0.5, 1, 2, 4, 16]
plots.heatmap(
    torch.stack([softmax_with_temperature(scores, t, dim=0) for t in temperatures]),
    rows=[f"T = {t:g}" for t in temperatures],
    columns=tokens,
    ylabel="temperature",
    title="Cold softmax picks cat, hot softmax hardly chooses",
    alt="Weights that sat gives to the six tokens at six temperatures. cat gets 0.98 at T = 0.25, 0.86 at 0.5, "
    "0.61 at 1, 0.38 at 2, 0.26 at 4 and 0.19 at 16, where all weights lie between 0.16 and 0.19.",
)

# %% [markdown]
# The order of the tokens is the same in each row, only the contrast changes. Many text generators expose this number to their
# users (lower for safe, higher for varied text), and a large network that teaches a small one may do so at a high temperature,
# because the small weights carry information too.
#
# ## 5 · What gradient comes through
#
# Training asks the other way round. Somewhere behind the weights is a loss, and backpropagation arrives with a number
# $g_i = \partial\,\text{loss} / \partial w_i$ for each **weight**. The layer below needs the gradient for each **score**. For that
# we must know how every weight answers to every score.
#
# Start from section 3, $\ln w_i = s_i - \ln \sum_k e^{s_k}$, and differentiate by $s_j$. The first term gives 1 if $i = j$ and 0
# otherwise; the second gives $-e^{s_j} / \sum_k e^{s_k} = -w_j$. On the left stands
# $\frac{1}{w_i} \frac{\partial w_i}{\partial s_j}$, so
#
# $$\frac{\partial w_i}{\partial s_j} = w_i\,(\delta_{ij} - w_j), \qquad \delta_{ij} = 1 \text{ if } i = j, \text{ else } 0 .$$
#
# By hand, for two tokens with weights $(0.8, 0.2)$, all four derivatives in a matrix, the **Jacobian**:
#
# $$J = \begin{pmatrix} 0.8 \cdot 0.2 & -0.8 \cdot 0.2 \\ -0.2 \cdot 0.8 & 0.2 \cdot 0.8 \end{pmatrix} = \begin{pmatrix} 0.16 & -0.16 \\ -0.16 & 0.16 \end{pmatrix}, \qquad \text{in general } J = \mathrm{diag}(w) - w w^\top .$$
#
# It is **symmetric**: $-w_i w_j$ is the same both ways. That saves us a function. *Forward*, if the scores move by $d$, the weights
# move by $J d$, a *Jacobian-vector product* (jvp). *Backward*, if $g$ arrives at the weights, then $J^\top g$ arrives at the
# scores, a *vector-Jacobian product* (vjp). Since $J = J^\top$, both are the same computation:
#
# $$(J g)_i = \sum_j w_i\,(\delta_{ij} - w_j)\, g_j = w_i \Big( g_i - \sum_j w_j\, g_j \Big) .$$
#
# The matrix is gone: for a row of 4096 scores it would hold 16.8 million numbers, and the right-hand side needs none of them. By
# hand, $w = (0.8, 0.2)$, $g = (1, 0)$: the sum is 0.8, the result $(0.8 \cdot 0.2,\; 0.2 \cdot (-0.8)) = (0.16, -0.16)$, the first
# column of $J$ as it should be.
#
# You can read it aloud: $\sum_j w_j g_j$ is the average of $g$ under the weights, and each score is moved by how far its token lies
# above that average, in proportion to its weight.
#
# ### Exercise 2.4: the Jacobian product
#
# The weights are called `p` here, because in other places softmax makes probabilities.


# %% exercise="softmax_jvp"
def softmax_jvp(p: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Multiply the Jacobian of softmax along the last axis with a vector, without its n × n matrix.

    Args:
        p: (..., n), weights that softmax gave, each row summing to 1.
        g: (..., n), the gradient that arrives at the weights, or a direction of the scores.

    Returns:
        (..., n), the gradient at the scores, or the direction in which the weights move.
        The grader also tries a row so long that its matrix fits into no memory.

    Example:
        p [0.8, 0.2] and g [1, 0] give [0.16, -0.16].
    """
    # TODO: p times (g minus the average of g under the weights of its row)
    ### BEGIN SOLUTION
    return p * (g - (p * g).sum(dim=-1, keepdim=True))
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The sum over $j$ is one number for each row. How do you keep it a tensor that can be subtracted from `g`?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `p * g` are the terms of the sum. Sum them along the last axis with `keepdim=True`; everything else is entry by entry.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `average = (p * g).sum(...)`, then `return p * (...)`
#
# </details>

# %% test="softmax_jvp" points=2
check.exercise("softmax_jvp", softmax_jvp)
### BEGIN HIDDEN TESTS
_s = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
_g, _d = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 3, 5, dtype=torch.float64)
_p = torch.softmax(_s, dim=-1)
(_backward,) = torch.autograd.grad(_p, _s, _g)  # the gradient at the scores
_s, _p = _s.detach(), _p.detach()
torch.testing.assert_close(softmax_jvp(_p, _g), _backward, rtol=1e-6, atol=1e-9)
_forward = (torch.softmax(_s + 1e-5 * _d, -1) - torch.softmax(_s - 1e-5 * _d, -1)) / 2e-5  # the weights' direction
torch.testing.assert_close(softmax_jvp(_p, _d), _forward, rtol=1e-4, atol=1e-7)
torch.testing.assert_close((_g * softmax_jvp(_p, _d)).sum(-1), (_d * softmax_jvp(_p, _g)).sum(-1))  # symmetric
torch.testing.assert_close(softmax_jvp(_p, _g).sum(-1), torch.zeros(2, 3, dtype=torch.float64))
torch.testing.assert_close(softmax_jvp(_p[0, 0], _g[0, 0]), _backward[0, 0], rtol=1e-6, atol=1e-9)
assert check.unchanged(softmax_jvp, _p, _g)
_long, _ramp = torch.full((2**20,), 2.0**-20), torch.linspace(-1, 1, 2**20)  # its matrix would take 4.4 terabytes
torch.testing.assert_close(2**20 * softmax_jvp(_long, _ramp), _ramp, rtol=1e-3, atol=1e-3)
### END HIDDEN TESTS

# %%
s = device.randn(2, 3, 5, seed=4).requires_grad_()
g = device.randn(2, 3, 5, seed=5)
(from_autograd,) = torch.autograd.grad(softmax(s, -1), s, g)
by_hand = softmax_jvp(softmax(s, -1), g)
print("agrees with autograd:", torch.allclose(by_hand, from_autograd, atol=1e-6))

# %% [markdown]
# The whole Jacobian of the six tokens is small enough to look at. Hand `softmax_jvp` one unit vector per row, and it returns one
# column of $J$ for each.

# %%
weights = softmax(scores, dim=0)
jacobian = softmax_jvp(weights.expand(6, 6), torch.eye(6, device=where))
print("each column sums to 0:", bool((jacobian.sum(dim=0).abs() < 1e-6).all()))

# %%
# @title The Jacobian of the six tokens
plots.heatmap(
    100 * jacobian,
    rows=tokens,
    columns=tokens,
    ylabel="weight that moves, in hundredths",
    xlabel="score that is raised",
    title="Raise one score, and all other weights pay",
    alt="Jacobian of the softmax of the six scores, in hundredths. The diagonal is positive: 24 for cat, 17 for mat, "
    "8 for on, 3 for the others. All else is negative, most of all cat against mat with -13. Each row "
    "and each column sums to 0.",
    diverging=True,
)

# %% [markdown]
# The columns sum to 0, because the weights go on summing to 1. The entries are large where *two* tokens compete (cat and mat) and
# small where the matter is decided.
#
# That last remark decides how attention learns. Turn the temperature and watch the Jacobian's size. With a temperature, the scores
# reach softmax divided by $T$, so the chain rule divides $J$ by $T$ too. As its size take the root of the sum of the squares of all
# 36 entries, the *norm*. Move the slider (where no slider can be shown, two curves stand in for it).


# %%
def jacobian_norm(p: torch.Tensor) -> float:
    """The size of the Jacobian of softmax where it gives the weights p: (n,)."""
    unit_vectors = torch.eye(len(p), device=p.device)
    return softmax_jvp(p.expand(len(p), -1), unit_vectors).norm().item()


def gradient_norm(x: torch.Tensor, temperature: float) -> float:
    """The size of the derivative of softmax(x / temperature) with respect to x: (n,)."""
    return jacobian_norm(softmax_with_temperature(x, temperature, dim=0)) / temperature


# %% tags=["cover"]
# @title Slider: weights and gradient at one temperature
def at_temperature(temperature: float) -> None:
    """Draw the weights at one temperature, and how fast each moves when its own score rises."""
    p = softmax_with_temperature(scores, temperature, dim=0)
    rise = p * (1 - p) / temperature
    norm = gradient_norm(scores, temperature)
    plots.bars(
        {"weight": p, "change of the weight per unit of its own score": rise},
        labels=tokens,
        ylabel="weight, or its rate of change",
        title=f"T = {temperature:g}: cat has {p[1]:.2f} of the weight, and the gradient norm is {norm:.2f}",
        alt=f"Weights of six tokens at temperature {temperature:g}, and how fast each follows its score.",
        top=1.05,
    )


def from_cold_to_hot() -> None:
    """The picture in place of the slider: weights and gradient norm over all temperatures."""
    many = [0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32]
    rows = torch.stack([softmax_with_temperature(scores, t, dim=0) for t in many])  # (temperatures, tokens)
    plots.panels(
        many,
        [
            ("weight", {name: rows[:, tokens.index(name)] for name in ("cat", "mat", "on", "sat")}),
            ("norm of the gradient", {"gradient": [gradient_norm(scores, t) for t in many]}),
        ],
        xlabel="temperature T",
        title="Cold, softmax has decided; hot, it hardly listens; the gradient lives in between",
        alt="Two panels over temperatures from 1/8 to 32. Left: cold, cat has all the weight; hot, all tokens "
        "approach 1/6. Right: the norm of the gradient is 0.01 at 1/8, largest at 0.5 with 0.43, and down "
        "to 0.01 at 32.",
        logx=True,
    )


plots.interactive(at_temperature, name="temperature T", options=[0.125, 0.25, 0.5, 1, 2, 4, 8], still=from_cold_to_hot)

# %% [markdown]
# When softmax is cold, one token has nearly everything, a small change of a score hardly alters that, and little gradient is
# left. When it is hot, the scores barely count. Of the temperatures tried here, $T = 0.5$ lets most gradient through, where "cat"
# leads but "mat" is still in the race.
#
# Now you can check a promise of lesson 01: without the division by $\sqrt{d_k}$, long queries and keys make softmax so cold that
# hardly any gradient comes back.


# %%
def typical_norm(rows: torch.Tensor) -> float:
    """The median size of the Jacobian of softmax over rows of scores: (rows, n)."""
    return torch.tensor([jacobian_norm(softmax(row, 0)) for row in rows]).median().item()


for d in (4, 64, 1024):
    q, k = device.randn(200, d, seed=d), device.randn(16, d, seed=d + 1)  # 200 queries, 16 keys
    divided, undivided = typical_norm(q @ k.T / math.sqrt(d)), typical_norm(q @ k.T)
    print(f"d = {d:4}: norm of J {divided:.1f} divided by √d,", end=" ")
    print(f"{undivided / divided:.1g} times that without")

# %% [markdown]
# At these three lengths the division keeps the Jacobian at its size. Without it, $3 \cdot 10^{-5}$ of that is left at $d = 1024$:
# a layer that starts so can hardly learn to look elsewhere.
#
# ## 6 · In one pass, piece by piece
#
# Your softmax reads a row three times: for the maximum, for the sum, for the division. It also needs the whole row in memory. What
# if the row is a hundred thousand scores long and its parts are computed one after another, each thrown away before the next?
# Lesson 11 builds attention that way.
#
# The difficulty is the maximum, which is known only at the end. The idea is to work with the largest score *so far*, and to correct
# what was summed when a larger one turns up. Keep two numbers:
#
# * $m$, the **running maximum**;
# * $\ell$, the **running denominator**: $\sum e^{s_j - m}$ over all scores read so far.
#
# A new chunk of scores arrives. The new maximum is $m' = \max(m, \text{largest of the chunk})$. The old terms had $m$ subtracted
# and should have $m'$; since $e^{s - m'} = e^{s - m} \cdot e^{m - m'}$, one factor corrects them all:
#
# $$\ell' = \ell \cdot e^{m - m'} + \sum_{j \text{ in chunk}} e^{s_j - m'} .$$
#
# By hand, with the six tokens in chunks of two, and from the end of the sentence, so that the maximum rises on the way:
#
# | chunk | its scores | $m'$ | correction $e^{m - m'}$ | from the chunk | $\ell'$ |
# |---|---|---|---|---|---|
# | mat, the | 2, 0 | 2 | | $e^0 + e^{-2} = 1.135$ | 1.135 |
# | on, sat | 1, 0 | 2 | $e^0 = 1$ | $e^{-1} + e^{-2} = 0.503$ | 1.638 |
# | cat, The | 3, 0 | 3 | $e^{-1} = 0.368$ | $e^0 + e^{-3} = 1.050$ | $1.638 \cdot 0.368 + 1.050 = 1.652$ |
#
# At the end $m = 3$ and $\ell = 1.652$, the sum of section 3. The weight of "mat" is $e^{2 - 3} / 1.652 = 0.22$. One pass gave both
# numbers; only the division remains.
#
# **What do $m$ and $\ell$ start from?** $\ell$ from 0. For $m$, $-\infty$ suggests itself, but there is a trap. Attention often
# switches tokens off by giving them the score $-\infty$ (lesson 05). If a whole chunk is switched off, the new maximum is $-\infty$
# too, and $-\infty - (-\infty)$ is `nan`. Start from the lowest *finite* number, `torch.finfo(x.dtype).min`, and the trouble does
# not arise: switched-off scores then give $e^{-\infty} = 0$.
#
# ### Exercise 2.5: one step of the online softmax


# %% exercise="online_step"
def online_step(
    maximum: torch.Tensor, denominator: torch.Tensor, chunk: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read one more chunk of each row: the new running maximum and the new running denominator.

    Args:
        maximum: (..., 1), the largest score so far; the lowest finite number if none was read yet.
        denominator: (..., 1), the sum of e^(score - maximum) so far; 0 if none was read yet.
        chunk: (..., n), the next n scores. Some may be -inf, and even all of them.

    Returns:
        maximum and denominator after the chunk, (..., 1) each. The inputs are left as they are.

    Example:
        maximum [2], denominator [1.638] and chunk [3, 0] give [3] and [1.652].
    """
    # TODO: the new maximum; the old sum corrected to it, and what the chunk adds
    ### BEGIN SOLUTION
    higher = torch.maximum(maximum, chunk.amax(dim=-1, keepdim=True))
    arrived = torch.exp(chunk - higher).sum(dim=-1, keepdim=True)
    return higher, denominator * torch.exp(maximum - higher) + arrived
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Three steps: the new maximum, what the chunk adds, the corrected denominator. Each row is on its own.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `torch.maximum(a, b)` compares two tensors entry by entry; with `keepdim=True` the chunk's own maximum has the shape `(..., 1)` that
# it needs. The powers of the chunk have the *new* maximum subtracted, so they need no correction.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `higher = torch.maximum(maximum, chunk.amax(...))`, then return `higher` and `denominator * torch.exp(...) + ...`.
#
# </details>

# %% test="online_step" points=3
check.exercise("online_step", online_step)
### BEGIN HIDDEN TESTS
_x = 3 * torch.randn(2, 3, 12)
_rising, _ = torch.sort(100 * torch.randn(3, 12, dtype=torch.float64) + 1e4, dim=-1)  # a larger one in every chunk
_off = torch.randn(2, 12)
_off[0, :5] = -torch.inf
_off[1, 7:] = -torch.inf
for _rows in (_x, 1e4 * _x, _rising, _rising.flip(-1), _rising - 2e4, _off):
    for _sizes in ([12], [5, 7], [1] * 12, [7, 1, 4]):  # however the row is cut, the same comes out
        _m = torch.full_like(_rows[..., :1], torch.finfo(_rows.dtype).min)
        _l = torch.zeros_like(_m)
        for _chunk in _rows.split(_sizes, dim=-1):
            _m, _l = online_step(_m, _l, _chunk)
        torch.testing.assert_close(_m, _rows.amax(-1, keepdim=True))
        torch.testing.assert_close(_l, torch.exp(_rows - _m).sum(-1, keepdim=True), rtol=1e-4, atol=1e-6)
assert check.unchanged(online_step, _m, _l, _chunk)
### END HIDDEN TESTS

# %% [markdown]
# The loop around your step: it reads each chunk once for $m$ and $\ell$, and makes the weights at the end.


# %% given="online_softmax"
def online_softmax(chunks: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Softmax over the last axis of scores in chunks (..., n): weights, maximum, denominator."""
    maximum = torch.full_like(chunks[0][..., :1], torch.finfo(chunks[0].dtype).min)
    denominator = torch.zeros_like(maximum)
    for chunk in chunks:
        maximum, denominator = online_step(maximum, denominator, chunk)
    weights = [torch.exp(chunk - maximum) / denominator for chunk in chunks]
    return torch.cat(weights, dim=-1), maximum, denominator


# %% [markdown]
# Watch the two numbers at work on a row of 64 scores that drift upwards, in 16 chunks of four: read the first chunk, the first
# two, and so on. The second curve on the right leaves out the correction.

# %%
drifting = (device.randn(64, seed=3) + torch.linspace(0, 6, 64, device=where)).split(4)
states = [online_softmax(list(drifting[: i + 1])) for i in range(len(drifting))]
maxima, denominators = [m.item() for _, m, _ in states], [n.item() for _, _, n in states]
uncorrected, total = [], 0.0
for chunk, m in zip(drifting, maxima, strict=True):
    total += torch.exp(chunk - m).sum().item()
    uncorrected.append(total)
largest_error = (states[-1][0] - softmax(torch.cat(drifting), -1)).abs().max().item()
print("the weights equal those of the whole row:", largest_error < 1e-6)
print(f"denominator at the end: {denominators[-1]:.1f}, uncorrected {uncorrected[-1]:.1f}")

# %%
# @title The running maximum and denominator, chunk by chunk
plots.panels(
    list(range(4, 65, 4)),
    [
        ("running maximum m", {"maximum": maxima}),
        ("running denominator", {"yours": denominators, "uncorrected": uncorrected}),
    ],
    xlabel="scores read so far",
    bottom=[None, 0],
    title="Whenever the maximum rises, the denominator is scaled back",
    alt="Two panels over the number of scores read, up to 64. Left: the running maximum climbs in steps from "
    "0.5 to 7.4. Right: your running denominator stays between 2 and 8 and ends at 5.3; without the "
    "correction it rises to 26.4.",
)

# %% [markdown]
# Each time the maximum rises, everything that was counted before becomes smaller relative to it, and after a large step the
# denominator drops. Without the correction the old terms keep a size that they no longer have: here all weights would come out five
# times too small.
#
# ## 7 · Write the test
#
# By now you know many ways to get softmax wrong, and some of them look right on a small example. One library once subtracted the
# larger of $m$ and 0, and [broke on a row of nothing but −10000](https://github.com/FluxML/NNlib.jl/pull/43).
#
# So turn the tables. Write the function that tells right from wrong: `test_softmax(implementation)` calls `implementation(x, dim)`
# as it likes, returns quietly if all is well, and raises an `AssertionError` (what `assert` and `torch.testing.assert_close` do) if
# not.
#
# This is what every right implementation promises:
#
# 1. The weights are those of the formula, up to rounding.
# 2. They sum to 1 along `dim`, whichever axis that is, first, last or negative.
# 3. No size of the scores breaks it: not 1000, not −1000, and not both in different rows of one tensor.
# 4. Shape and dtype are those of the input: `float64` stays `float64`, and `float32` stays `float32`.
# 5. The input is left as it was.
#
# You may compare with `torch.softmax`. A trusted reference makes a good test; the art is in choosing the inputs. Take care to
# reject nothing that is right: two right implementations may differ in the last digit.
#
# Three wrong implementations to practise on, and one more that is right:


# %% given="wrong_ones"
def overflows(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Right for small scores."""
    return torch.exp(x) / torch.exp(torch.logsumexp(x, dim, keepdim=True))


def forgets_dim(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Right if dim is the last axis."""
    return torch.softmax(x, dim=-1)


def one_row_only(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Right if there is a single row."""
    return torch.softmax(x.flatten(), dim=0).reshape(x.shape)


def by_the_logarithm(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Right, though it may differ from torch.softmax in the last digit."""
    return torch.exp(torch.log_softmax(x, dim))


wrong_ones = {"overflows": overflows, "forgets_dim": forgets_dim, "one_row_only": one_row_only}
right_ones = {"torch.softmax": torch.softmax, "by_the_logarithm": by_the_logarithm}

# %% [markdown]
# ### Exercise 2.6: the test
#
# Three points, in three cells. The first asks for these three wrong implementations. The second and the third judge your test, when
# it is graded, by 18 others that you cannot see: the second asks for half of them, the third for all. Each of the 18 breaks at
# least one of the five promises.


# %% exercise="test_softmax"
def test_softmax(implementation) -> None:
    """Raise an AssertionError if the implementation is not a right softmax; return None if it is.

    Args:
        implementation: a function of a tensor x and an axis dim, which should return the weights.

    Example:
        test_softmax(torch.softmax) returns, test_softmax(overflows) raises.
    """
    # TODO: choose scores that put each promise to the test, and compare for several values of dim
    ### BEGIN SOLUTION
    rows = torch.tensor([[0.0, 3.0], [1000.0, 1001.0], [-1000.0, -998.0]])
    for x in (rows, rows.double()):
        before = x.clone()
        for dim in (0, 1, -1):
            torch.testing.assert_close(implementation(x, dim), torch.softmax(before, dim))
        assert torch.equal(x, before), "the input was changed"
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# One tensor of three rows, tried in `float32` and in `float64`, can put all five promises to the test.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Take one ordinary row, one with scores near 1000 and one with scores near −1000, none of them all equal. Keep a `clone()` to
# compare with afterwards. `assert_close(a, b)` from `torch.testing` compares numbers up to rounding, and shape and dtype exactly;
# `nan` is never close to a number.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# In a loop over two dtypes, and in it over several values of `dim`: `assert_close(implementation(...), torch.softmax(...))`, from
# `torch.testing`. After it, an `assert torch.equal(...)` for the input.
#
# </details>

# %% test="test_softmax" points=1
check.test_of("test_softmax", test_softmax, right=right_ones, wrong=wrong_ones)

# %% test="test_softmax-half" points=1
# Judged when it is graded: four right implementations accepted, half of 18 wrong ones rejected.
check.test_of(
    "test_softmax",
    test_softmax,
    right=right_ones,
    wrong=wrong_ones,
    later="18 more wrong ones, of which your test should reject at least half",
)
### BEGIN HIDDEN TESTS
from attention_course.authoring import implementations

_right, _wrong = implementations("02", "softmax")
_rejected = check.rejects(test_softmax, _right | _wrong)  # all together, in an order drawn afresh
_refused, _caught = _rejected & set(_right), _rejected & set(_wrong)
assert not _refused, f"it refuses {len(_refused)} of {len(_right)} right implementations"
assert len(_caught) * 2 >= len(_wrong), f"it rejects {len(_caught)} of {len(_wrong)} wrong implementations"
### END HIDDEN TESTS

# %% test="test_softmax-all" points=1
# Judged when it is graded: four right implementations accepted, all of 18 wrong ones rejected.
check.test_of(
    "test_softmax",
    test_softmax,
    right=right_ones,
    wrong=wrong_ones,
    later="18 more wrong ones, of which your test should reject all",
)
### BEGIN HIDDEN TESTS
from attention_course.authoring import implementations

_right, _wrong = implementations("02", "softmax")
_rejected = check.rejects(test_softmax, _right | _wrong)  # all together, in an order drawn afresh
_refused, _caught = _rejected & set(_right), _rejected & set(_wrong)
assert not _refused, f"it refuses {len(_refused)} of {len(_right)} right implementations"
assert len(_caught) == len(_wrong), f"it rejects {len(_caught)} of {len(_wrong)} wrong implementations"
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · Spot the bug
#
# The function below takes scores to weights and averages the values with them, and it divides after the average rather than before,
# which gives the same. Its line with the maximum is right for a single row. Its author knew that scores can be large, tried it on a
# batch of random scores of size 10, compared it with a library, and it agreed.


# %% given="published"
def published_attention(scores: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Weighted average of the values.

    scores: (B, Tq, Tk), v: (B, Tk, d_v); returns (B, Tq, d_v).
    """
    powers = torch.exp(scores - scores.max())  # (B, Tq, Tk)
    return (powers @ v) / powers.sum(dim=-1, keepdim=True)


# %%
s, v = 10 * device.randn(2, 3, 4, seed=6), device.randn(2, 4, 5, seed=7)
agrees = torch.allclose(published_attention(s, v), softmax(s, -1) @ v, atol=1e-5)
print("agrees on random scores:", agrees)

# %% [markdown]
# First find an input that shows the bug. Return scores and values (small ones are best) on which the result is wrong, although
# every number in them is finite.
#
# ### Exercise 2.7: a counterexample


# %% exercise="counterexample"
def counterexample() -> tuple[torch.Tensor, torch.Tensor]:
    """Return scores: (B, Tq, Tk) and v: (B, Tk, d_v) for which published_attention is wrong."""
    # TODO: choose finite scores on which it goes wrong, values that fit, and return both
    ### BEGIN SOLUTION
    scores = torch.tensor([[[0.0, 1.0], [300.0, 301.0]]])  # (1, 2, 2)
    v = torch.tensor([[[1.0], [2.0]]])  # (1, 2, 1)
    return scores, v
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# `scores.max()` is one number for the whole tensor. Which queries is it good for, and which not?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Take two queries whose scores lie far apart. After the subtraction, the powers of the lower one underflow, all of them. How far
# apart must they be, if $e^{-104}$ is 0 in 32 bits?
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `scores = torch.tensor([[[0.0, 1.0], [..., ...]]])`: two queries, two keys. Values of one number each have the shape `(1, 2, 1)`;
# they should differ.
#
# </details>

# %% test="counterexample" points=1
check.counterexample(
    "counterexample",
    counterexample,
    wrong=published_attention,
    right=lambda scores, v: torch.softmax(scores, -1) @ v,
    axes=("B Tq Tk", "B Tk d_v"),
)
### BEGIN HIDDEN TESTS
_scores, _v = counterexample()
_right = torch.softmax(_scores, dim=-1) @ _v
assert torch.isfinite(_right).all()
# never stricter than the check above
assert not torch.allclose(published_attention(_scores, _v), _right, rtol=1e-4, atol=1e-6)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 2.8: the repair


# %% exercise="repaired_attention"
def repaired_attention(scores: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Weighted average of the values, repaired.

    scores: (B, Tq, Tk), v: (B, Tk, d_v); returns (B, Tq, d_v).
    """
    # TODO: copy the two lines of published_attention and mend what is wrong
    ### BEGIN SOLUTION
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))  # (B, Tq, Tk)
    return (powers @ v) / powers.sum(dim=-1, keepdim=True)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Section 2: each row has a maximum of its own.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# A row belongs to one query of one example, and its scores stand along the last axis. What you subtract should have shape `(B, Tq, 1)`.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `powers = torch.exp(scores - scores.amax(...))`; the second line stays as it is.
#
# </details>

# %% test="repaired_attention" points=1
check.exercise("repaired_attention", repaired_attention)
### BEGIN HIDDEN TESTS
_v = torch.randn(2, 4, 5)
for _shift in (0.0, 500.0, -500.0):
    _scores = torch.randn(2, 3, 4)
    _scores[0, 1] += _shift  # one query of one example far from the others
    _scores[1] += 3 * _shift  # one example far from the other
    _right = torch.softmax(_scores, dim=-1) @ _v
    torch.testing.assert_close(repaired_attention(_scores, _v), _right, rtol=1e-3, atol=1e-4)
_wide = 400 * torch.randn(2, 3, 4)
torch.testing.assert_close(repaired_attention(_wide, _v), torch.softmax(_wide, -1) @ _v, rtol=1e-3, atol=1e-4)
assert check.unchanged(repaired_attention, _wide, _v)
### END HIDDEN TESTS

# %% [markdown]
# ## Questions
#
# Answer in your head first, then open.
#
# <details><summary><b>1.</b> A model ends in a softmax, and its loss function applies softmax once more. "cat" has weight 0.61 after the first one. What does it have after the second?</summary>
#
# About **0.25**. The inputs of the second softmax are weights between 0 and 1, so no two of them differ by more than 1, and no
# weight can be more than $e \approx 2.7$ times another. Everything is close to uniform, and the model cannot express certainty.
#
# * *Still 0.61, since the weights already sum to 1:* softmax does not look at the sum. It takes the exponential of whatever it is given.
# * *Closer to 1, since softmax sharpens:* it sharpens only if scores are multiplied by a number above 1. Here their range of 3 was
#   squeezed to 0.58.
#
# </details>
# <details><summary><b>2.</b> The scores are (3, 3, 0), and the temperature goes to 0. Where do the weights go?</summary>
#
# To **(0.5, 0.5, 0)**. The first two are equal at every temperature, since their difference is 0 and $e^{0/T} = 1$.
#
# * *(1, 0, 0), like argmax:* `argmax` has to name one place and breaks the tie by position. Softmax does not see positions.
# * *(1/3, 1/3, 1/3):* that is the limit of a temperature that goes to infinity.
# * *`nan`, a division by zero:* at $T = 0$, yes. In the limit, and at every $T$ above 0, the shifted formula is fine.
#
# </details>
# <details><summary><b>3.</b> Every weight of a row receives the same gradient, g = (5, 5, 5, 5, 5, 5). Which gradient reaches the scores?</summary>
#
# **Zero.** The average of $g$ under any weights is 5, so $g_i$ minus the average is 0 everywhere. The loss would like every weight
# to move the same way, but they always sum to 1, so there is nothing that the scores could do.
#
# * *5 for each score:* that would be right if the weights were the scores themselves.
# * *5 times each weight:* this is $w_i g_i$, without the average subtracted. It would raise all scores together, and a constant
#   added to all scores changes nothing.
#
# </details>
#
# ## Recap
#
# Which exercises are right and which are open shows here; run the cell whenever you like. To run everything above a cell:
# *Run*, *Run All Above Selected Cell* (in Colab: *Runtime*, *Run before*).

# %%
check.progress()

# %% [markdown]
# You built a softmax that survives any finite scores; its logarithm, which keeps digits that the weights themselves lose; a
# temperature; the gradient, without its matrix; a softmax of scores that arrive in pieces; and a test that tells right from wrong.
#
# **Where it lives in real models.** What your `softmax` computes, the attention of a transformer computes, though not always
# row by row: FlashAttention works in chunks, keeps $(m, \ell)$ as you did, corrects the running average of the values by the same
# factor $e^{m - m'}$, and does not store the weights. `log_softmax` stands inside PyTorch's cross-entropy loss, and `softmax_jvp` is
# what `backward` computes for a softmax.
#
# **Next.** Lesson 03 runs several attention layers side by side. Lesson 05 hides tokens that must not be
# seen, and lesson 11 picks up `online_softmax` again.
#
# **References**
#
# * Bridle (1990), [Training stochastic model recognition algorithms as networks can lead to maximum mutual information estimation of parameters](https://proceedings.neurips.cc/paper/1989/hash/0336dcbab05b9d5ad24f4333c7658a0e-Abstract.html): where the name softmax comes from.
# * Goodfellow, Bengio, Courville (2016), [Deep Learning, chapter 4](https://www.deeplearningbook.org/contents/numerical.html): overflow, underflow and the shifted softmax.
# * Hinton, Vinyals, Dean (2015), [Distilling the knowledge in a neural network](https://arxiv.org/abs/1503.02531): a large network teaches a small one at a high temperature.
# * Milakov, Gimelshein (2018), [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867): the running maximum and denominator.
# * Dao, Fu, Ermon, Rudra, Ré (2022), [FlashAttention](https://arxiv.org/abs/2205.14135): attention in blocks, with the same two numbers.
