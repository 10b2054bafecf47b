# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · Attention scoring
#
# **At the end of this lesson you own a layer that lets each word of a sentence ask all of them for what it needs, and you can
# say why each line of it is there.** This is the map that your layer will draw:
#
# ![A map of attention weights over the six tokens of "The cat sat on the mat", drawn by the layer you will write](attachment:cover.png)
#
# | | |
# |---|---|
# | time | 110 minutes, with a place to stop after section 4 |
# | difficulty | gentle; the last exercises combine what came before |
# | builds on | matrix products, a little PyTorch (`tensor.shape`, `@`, broadcasting) |
# | you will write | 7 small pieces of code, none longer than 12 lines; the explanation of a wrong map; a counterexample and a repair |
#
# Each exercise has a cell with `# TODO`, and below it a cell that checks your answer. A check never shows you the solution;
# it tells you what it saw, what it expected and, when it recognises your mistake, which one it is.
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
from torch import nn

from attention_course import check, device, plots

device.seed(1)
where = device.pick()  # a GPU if there is one; device.randn(..., seed=...) is the same on any
check.start("01")

# %% [markdown]
# ## 1 · One vector is not enough
#
# Suppose a machine reads a sentence and then writes its translation. The first neural translators had two parts. An
# **encoder** read the source, one token after the other, and kept a *state*: a vector of, say, 256 numbers. A **decoder**
# started from the last state and wrote the translation. Whatever the decoder knew about the source had to fit into that one
# vector, which is called the **fixed context**, and it has the same size for a sentence of five words and one of fifty.
#
# Try it by hand. Take an encoder that averages, and two words with two numbers each:
#
# | word | vector |
# |---|---|
# | cat | $(1, 0)$ |
# | mat | $(0, 1)$ |
#
# The context of "cat mat" is $\tfrac12(1, 0) + \tfrac12(0, 1) = (0.5, 0.5)$. The context of "mat cat" is the same, and so is
# that of "cat mat cat mat". From $(0.5, 0.5)$ nobody can say which word came first.
#
# A recurrent encoder does better, because it mixes each word in differently: it turns its state by a fixed rotation $R$
# before it adds the next word, $c_t = R\,c_{t-1} + x_t$. To get word $t$ back, turn the final state back by as many steps and look
# for the nearest word of the vocabulary. Nothing is forgotten on purpose, but all words share the same $d$ numbers. How many fit?


# %%
def fraction_recovered(length: int, d: int) -> float:
    """Write 20 random sentences into d numbers each; which fraction of the words comes back?"""
    draw = torch.Generator().manual_seed(length * 1000 + d)
    words = nn.functional.normalize(torch.randn(200, d, generator=draw, dtype=torch.float64))
    rotation, _ = torch.linalg.qr(torch.randn(d, d, generator=draw, dtype=torch.float64))
    text = torch.randint(len(words), (20, length), generator=draw)
    state = torch.zeros(20, d, dtype=torch.float64)
    for t in range(length):
        state = state @ rotation + words[text[:, t]]  # (20, d)
    right = 0
    for t in reversed(range(length)):
        right += int(((state @ words.T).argmax(dim=1) == text[:, t]).sum())
        state = state @ rotation.T
    return right / text.numel()


lengths = [2, 4, 8, 16, 32, 64]
recovered = {f"{d} numbers": [fraction_recovered(n, d) for n in lengths] for d in (32, 128, 512)}

# %%
# @title How many words come back from one vector
plots.lines(
    lengths,
    recovered,
    xlabel="words in the sentence",
    ylabel="fraction of words recovered",
    title="A context of fixed size loses words as the sentence grows",
    alt="Fraction of words that can be read back from one vector, against sentence length from 2 to 64 words. "
    "With 32 numbers it falls below 0.7 at 4 words, with 128 numbers at 16 words, with 512 numbers at 64 words.",
    logx=True,
)

# %% [markdown]
# A larger vector moves the fall to the right; in none of the three does it stop (each point is one draw of 20 sentences).
# The remedy is to keep **all** the encoder's states and to decide anew, for each word that is written, how much of each
# of them to take.
#
# "How much of each" is a list of **weights**: numbers that are not negative and sum to 1. The decoder then receives the weighted
# average of the states. Three states and their weights:
#
# | | weight | state |
# |---|---|---|
# | first | 0.5 | $(2, 0)$ |
# | second | 0.5 | $(0, 4)$ |
# | third | 0 | $(9, 9)$ |
#
# give $0.5\,(2, 0) + 0.5\,(0, 4) + 0\,(9, 9) = (1, 2)$. The third state is kept, but not looked at.
#
# In general there are several **queries** (the places that ask; $T_q$ of them) and several **values** (what can be taken; $T_k$ of
# them, each of $d_v$ numbers; the k stands for *key*, which each value gets in section 2). Query $i$ gives value $j$ the weight
# $w_{ij}$ and receives the context
#
# $$c_i = \sum_{j=1}^{T_k} w_{ij}\, v_j .$$
#
# The layers of this course work on a **batch**, $B$ examples at once, and the batch is the first axis.
#
# ### Exercise 1.1: the weighted context


# %% exercise="weighted_context"
def weighted_context(weights: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Average the values with the weights of each query.

    Args:
        weights: (B, Tq, Tk), how much of value j query i takes.
        v: (B, Tk, d_v), the values.

    Returns:
        (B, Tq, d_v), one context for each query, with the dtype of the inputs.

    Example:
        weights [[[0.5, 0.5, 0.0]]] and v [[[2, 0], [0, 4], [9, 9]]] give [[[1, 2]]].
    """
    # TODO: multiply the weights and the values, so that the axis Tk is summed over
    ### BEGIN SOLUTION
    return weights @ v  # (B, Tq, Tk) @ (B, Tk, d_v)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Write the three shapes below each other: `(B, Tq, Tk)`, `(B, Tk, d_v)`, `(B, Tq, d_v)`. One letter disappears.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# The sum over $j$ of $w_{ij} v_j$ is row $i$ of a matrix product. PyTorch's `@` does one product for each member of a batch.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `return ... @ ...`, with the argument that has `Tk` last on the left.
#
# </details>

# %% test="weighted_context" points=1
check.exercise("weighted_context", weighted_context)
### BEGIN HIDDEN TESTS
_w = torch.softmax(torch.randn(3, 2, 4), dim=-1)
_v = torch.randn(3, 4, 5)
_expected = torch.stack([sum(_w[:, i, j, None] * _v[:, j] for j in range(4)) for i in range(2)], dim=1)
torch.testing.assert_close(weighted_context(_w, _v), _expected, rtol=1e-4, atol=1e-5)
_shuffle = torch.randperm(4)  # the order in which values stand does not matter
torch.testing.assert_close(weighted_context(_w[:, :, _shuffle], _v[:, _shuffle]), _expected, rtol=1e-4, atol=1e-5)
_picked = weighted_context(torch.eye(4).expand(3, 4, 4), _v)  # weight 1 on one value is a look-up
torch.testing.assert_close(_picked, _v, rtol=1e-4, atol=1e-5)
assert check.unchanged(weighted_context, _w, _v)
assert all(g is not None for g in check.gradients(weighted_context, _w, _v))
### END HIDDEN TESTS

# %% [markdown]
# With equal weights, `weighted_context` is the old fixed context. With weight 1 in one place, it is a look-up. Everything
# between the two is open now, and one question is left: **where do the weights come from?**
#
# ## 2 · A score says how well a key answers a query
#
# Each place that can be looked at shows a vector that says what it has to offer, its **key**. Each place that asks has a vector
# that says what it is looking for, its **query**. A **score** is one number for each pair: large if the key answers the query.
#
# The simplest score is the dot product. By hand, with one query and three keys:
#
# | | vector | score with $q = (1, 2)$ |
# |---|---|---|
# | $k_1$ | $(1, 2)$ | $1 \cdot 1 + 2 \cdot 2 = 5$ |
# | $k_2$ | $(2, -1)$ | $1 \cdot 2 + 2 \cdot (-1) = 0$ |
# | $k_3$ | $(-1, -2)$ | $1 \cdot (-1) + 2 \cdot (-2) = -5$ |
#
# The same direction scores high, a right angle scores 0, the opposite direction scores low. For all pairs at once,
#
# $$s_{ij} = q_i \cdot k_j = \sum_{c=1}^{d} q_{ic}\, k_{jc} .$$
#
# Rows are queries, columns are keys: the maps of this course are drawn so.
#
# ### Exercise 1.2: dot-product scores


# %% exercise="dot_scores"
def dot_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Score every query against every key by their dot product.

    Args:
        q: (B, Tq, d), the queries.
        k: (B, Tk, d), the keys.

    Returns:
        (B, Tq, Tk), the score of query i and key j at [b, i, j], with the dtype of the inputs.

    Example:
        q [[[1, 2]]] and k [[[1, 2], [2, -1], [-1, -2]]] give [[[5, 0, -5]]].
    """
    # TODO: one matrix product; first turn the last two axes of one of its factors
    ### BEGIN SOLUTION
    return q @ k.transpose(-2, -1)  # (B, Tq, d) @ (B, d, Tk)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# This time `d` disappears: `(B, Tq, d)` and `(B, Tk, d)` become `(B, Tq, Tk)`. In a product the inner axes have to meet.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Turn the keys from `(B, Tk, d)` to `(B, d, Tk)`. `k.T` would turn all the axes, the batch too; `k.transpose(a, b)` exchanges two.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `return q @ k.transpose(..., ...)`, with the numbers of the last two axes.
#
# </details>

# %% test="dot_scores" points=1
check.exercise("dot_scores", dot_scores)
### BEGIN HIDDEN TESTS
_q, _k = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
_expected = (_q[:, :, None, :] * _k[:, None, :, :]).sum(-1)
torch.testing.assert_close(dot_scores(_q, _k), _expected, rtol=1e-4, atol=1e-5)
torch.testing.assert_close(dot_scores(3 * _q, _k), 3 * _expected, rtol=1e-4, atol=1e-5)  # linear in the query
torch.testing.assert_close(dot_scores(_k, _q), _expected.transpose(1, 2), rtol=1e-4, atol=1e-5)
torch.testing.assert_close(dot_scores(_q[:1], _k[:1]), _expected[:1], rtol=1e-4, atol=1e-5)  # examples do not mix
assert check.unchanged(dot_scores, _q, _k)
assert all(g is not None for g in check.gradients(dot_scores, _q, _k))
### END HIDDEN TESTS

# %% [markdown]
# Six tokens will go with us through the lesson: **The cat sat on the mat**. Give each of them six features, written by hand, so
# that you can follow every number.

# %% given="tokens"
tokens = ["The", "cat", "sat", "on", "the", "mat"]
features = ["thing", "alive", "action", "relation", "pointer", "surface"]
sentence = torch.tensor(
    [
        # thing alive action relation pointer surface
        [0, 0, 0, 0, 1, 0],  # The
        [1, 1, 0, 0, 0, 0],  # cat
        [0, 0, 1, 0, 0, 0],  # sat
        [0, 0, 0, 1, 0, 0],  # on
        [0, 0, 0, 0, 1, 0],  # the
        [1, 0, 0, 0, 0, 1],  # mat
    ],
    dtype=torch.float32,
    device=where,
)[None]  # (1, 6, 6): a batch of one sentence
print("sentence", tuple(sentence.shape))

# %%
# @title The scores of the six tokens against each other
plots.heatmap(
    dot_scores(sentence, sentence)[0],
    rows=tokens,
    columns=tokens,
    title="By dot product alone, tokens find what is like them",
    alt="Scores of six tokens against each other. On the diagonal 2 for cat and mat, 1 for the others. "
    "cat and mat score 1 with each other, and so do The and the; all else is 0.",
)

# %% [markdown]
# When queries and keys are the tokens' own features, each of the six finds what is *like* it: "The" finds "the", "cat" finds
# "mat". It is a start, but a verb does not need another verb; it needs its subject. We come back to that in section 5.
#
# To turn scores into weights, we need numbers that are not negative and sum to 1 in each row. That is what `torch.softmax` does: it
# takes $e^{s_{ij}}$ and divides by the sum of its row. Lesson 02 takes it apart; here we use it as given.
#
# ## 3 · Why transformers divide by √d
#
# First, look at numbers. Take queries and keys whose entries are random with mean 0 and variance 1, and see how far from 0 their dot
# products lie (their standard deviation):

# %%
for d in (2, 8, 32, 128, 512):
    q, k = device.randn(1, 100, d, seed=d), device.randn(1, 100, d, seed=d + 1)
    spread = dot_scores(q, k).std().item()
    print(f"d = {d:3d}: scores are about {spread:.0f} away from 0")

# %% [markdown]
# The size grows with $d$, although no single entry has grown. Why, and how fast?
#
# A dot product is a sum of $d$ products $q_c k_c$. Each product has mean 0. Its variance is the mean of its square, which is the mean of
# $q_c^2$ times the mean of $k_c^2$, because $q_c$ and $k_c$ are independent: $1 \cdot 1 = 1$. Variances of independent terms add up, so
#
# $$\mathrm{Var}(q \cdot k) = \underbrace{1 + 1 + \dots + 1}_{d \text{ terms}} = d .$$
#
# The variance is $d$; the typical size, its square root, is $\sqrt d$. Before you trust an argument on paper, measure it.
#
# ### Exercise 1.3: the variance of a score


# %% exercise="score_variance"
def score_variance(d: int, n: int) -> float:
    """Measure the variance of the dot product of a random query and a random key.

    Args:
        d: how many entries a query and a key have, each drawn from the standard normal distribution
            (mean 0, variance 1).
        n: how many pairs to draw, afresh at each call. Each query meets one key: n dot products,
            independent of each other.

    Returns:
        The variance of the n dot products, as a number.

    Example:
        score_variance(16, 100000) is close to 16.
    """
    # TODO: draw n queries and n keys, dot each pair, return the variance of these n numbers
    ### BEGIN SOLUTION
    q, k = torch.randn(n, d), torch.randn(n, d)
    return (q * k).sum(dim=-1).var().item()
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# You need `n` numbers in the end, one for each pair. Not `n × n`: query 1 belongs to key 1 alone.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `torch.randn(n, d)` draws all queries at once. Multiply queries and keys entry by entry, then sum over the axis of length `d`.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `(q * k).sum(dim=-1)` are the dot products. A tensor has a method `.var()`, and `.item()` makes a Python number of it.
#
# </details>

# %% test="score_variance" points=1
check.exercise("score_variance", score_variance)
### BEGIN HIDDEN TESTS
for _d in (3, 12, 48):
    _measured = float(score_variance(_d, 6000))
    assert abs(_measured / _d - 1) < 0.16, f"for d = {_d} the variance is about {_d}, not {_measured:.2f}"
assert float(score_variance(5, 50)) != float(score_variance(5, 50))  # measured on fresh draws, not computed
# The variance of 20 independent dot products is off by a third, up or down; that of all 20 · 20 pairs by a tenth.
_few = torch.tensor([float(score_variance(64, 20)) for _ in range(60)]) / 64
assert _few.std() > 0.18, "with n = 20 it varies far less from call to call than 20 independent pairs do"
assert _few.std() < 0.8, "with n = 20 it varies far more from call to call than 20 independent pairs do"
### END HIDDEN TESTS

# %% [markdown]
# So a score of 512 entries is typically $\sqrt{512} \approx 23$ in size. What does softmax make of that? If one score lies 23
# above the others, its weight is $e^{23} \approx 10^{10}$ times theirs: nearly all of the weight sits in one place. Softmax is
# flat there, so that hardly any gradient comes back (lesson 02 measures how little), and the layer can hardly learn to look
# elsewhere.
#
# The repair costs one division. If $s$ has variance $d$, then $s / \sqrt{d}$ has variance $d / (\sqrt d)^2 = 1$, whatever $d$ is:
#
# $$s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} .$$
#
# Check the first row of the table in section 2: $5 / \sqrt 2 \approx 3.54$.
#
# ### Exercise 1.4: scaled dot-product scores


# %% exercise="scaled_dot_scores"
def scaled_dot_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Score every query against every key by their dot product over the square root of d.

    Args:
        q: (B, Tq, d), the queries.
        k: (B, Tk, d), the keys.

    Returns:
        (B, Tq, Tk), scores with variance 1 if the entries of q and k have it.

    Example:
        q [[[1, 2]]] and k [[[1, 2], [2, -1], [-1, -2]]] give [[[3.5355, 0, -3.5355]]].
    """
    # TODO: the dot-product scores, divided by the square root of d; read d off the shape of q
    ### BEGIN SOLUTION
    return dot_scores(q, k) / math.sqrt(q.shape[-1])
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# You have written the dot products already.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `q.shape` is `(B, Tq, d)`. The entry you need is the last one, and `math.sqrt` takes its root.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `return dot_scores(q, k) / math.sqrt(q.shape[...])`
#
# </details>

# %% test="scaled_dot_scores" points=1
check.exercise("scaled_dot_scores", scaled_dot_scores)
### BEGIN HIDDEN TESTS
_q, _k = torch.randn(2, 3, 7), torch.randn(2, 5, 7)
_expected = torch.einsum("bid,bjd->bij", _q, _k) / 7**0.5
torch.testing.assert_close(scaled_dot_scores(_q, _k), _expected, rtol=1e-4, atol=1e-5)
_q, _k = torch.randn(1, 300, 64), torch.randn(1, 200, 64)
assert 0.8 < scaled_dot_scores(_q, _k).var().item() < 1.2
# Writing every entry twice doubles the dot product and d: the scaled score grows by the square root of 2.
_twice = scaled_dot_scores(torch.cat([_q, _q], -1), torch.cat([_k, _k], -1))
torch.testing.assert_close(_twice, 2**0.5 * scaled_dot_scores(_q, _k), rtol=1e-3, atol=1e-4)
assert check.unchanged(scaled_dot_scores, _q, _k)
### END HIDDEN TESTS

# %% [markdown]
# Now see both at once. On the left is the variance of the scores, with and without the division. On the right is the **entropy** of the
# weights, $-\sum_j w_j \ln w_j$: it is $\ln 16 \approx 2.8$ when 16 keys get equal weight, and 0 when one key gets everything.


# %%
def mean_entropy(scores: torch.Tensor) -> float:
    """The entropy of each row's weights, averaged over all rows."""
    return torch.special.entr(torch.softmax(scores, dim=-1)).sum(dim=-1).mean().item()


sizes = [2, 4, 8, 16, 32, 64, 128, 256, 512]
ways = {"plain": dot_scores, "divided by √d": scaled_dot_scores}
variance, entropy = {name: [] for name in ways}, {name: [] for name in ways}
for d in sizes:
    q, k = device.randn(20, 16, d, seed=d), device.randn(20, 16, d, seed=d + 1)
    for name, way in ways.items():
        variance[name].append(way(q, k).var().item())
        entropy[name].append(mean_entropy(way(q, k)))
for name in ways:
    print(f"{name}, d = 512: entropy of the weights {entropy[name][-1]:.2f}")

# %%
# @title Variance of the scores and entropy of the weights, against d
plots.panels(
    sizes,
    [("variance of the scores", variance), ("entropy of the weights", entropy)],
    xlabel="length d of queries and keys",
    bottom=[None, 0],
    title="Divided by √d, scores keep their spread and weights stay soft at every size tried",
    alt="Two panels over d from 2 to 512. Left: the variance of plain scores grows in proportion to d, that of scaled scores "
    "stays near 1. Right: the entropy of the weights falls towards 0 for plain scores and stays near 2.4 for scaled ones.",
    logx=True,
    logy=[True, False],
)

# %% [markdown]
# Without the division, the layer's behaviour depends on a size that somebody chose for other reasons: at $d = 512$ nearly all
# of the weight sits on one random key. With it, the weights start out as soft at $d = 512$ as at $d = 2$. (Each point is one
# draw of 320 queries.) Move the slider to see the same on a small draw; where no slider can be shown, a picture stands in.


# %%
# @title Slider: the weights of four random queries over six random keys
def weights_at(value: int) -> None:
    """Draw the weights of 4 random queries over 6 random keys of length ``value``, plain and scaled."""
    q, k = device.randn(1, 4, value, seed=7), device.randn(1, 6, value, seed=8)
    plots.small_multiples(
        [torch.softmax(dot_scores(q, k), -1)[0], torch.softmax(scaled_dot_scores(q, k), -1)[0]],
        titles=["plain", "divided by √d"],
        rows=[f"q{i}" for i in range(1, 5)],
        columns=[f"k{j}" for j in range(1, 7)],
        title=f"Weights of random queries and keys, d = {value}",
        alt=f"Attention weights for d = {value}: plain scores on the left, scaled ones on the right.",
    )


def weights_at_three_sizes() -> None:
    """The picture in place of the slider: plain weights at three sizes, and scaled ones at the largest."""
    sizes = (4, 32, 256)
    made = [(device.randn(1, 4, d, seed=7), device.randn(1, 6, d, seed=8)) for d in sizes]
    plots.small_multiples(
        [torch.softmax(dot_scores(q, k), -1)[0] for q, k in made]
        + [torch.softmax(scaled_dot_scores(*made[-1]), -1)[0]],
        titles=[f"plain, d = {d}" for d in sizes] + [f"divided by √d, d = {sizes[-1]}"],
        rows=[f"q{i}" for i in range(1, 5)],
        columns=[f"k{j}" for j in range(1, 7)],
        title="As d grows, plain scores leave one key per query; the division undoes it",
        alt="Weights of four random queries over six random keys. Plain scores: soft at d = 4, sharper at 32, one key per "
        "query at 256. Scaled scores at 256 spread over several keys again.",
    )


plots.interactive(weights_at, name="length d", options=[2, 4, 8, 16, 32, 64, 128, 256], still=weights_at_three_sizes)

# %% [markdown]
# ## 4 · Scores with weights of their own
#
# A dot product needs a query and a key of the same length, and it can find only what is alike. Both limits go away when the
# score has parameters that can be learned. From here on a query has $d_q$ numbers and a key $d_k$.
#
# **The bilinear score** puts a matrix $W$ of shape $(d_q, d_k)$ between the two: $s_{ij} = q_i^\top W\, k_j$. It moves the query
# into the keys' space and takes the dot product there. (In code the vectors are rows, so $q_i^\top W$ is `q @ W`.) By hand,
# with $q = (1, 2)$, a key of three numbers $k = (1, 0, 2)$ and
#
# $$W = \begin{pmatrix} 1 & 0 & 0 \\ 0 & 1 & 1 \end{pmatrix}, \qquad q^\top W = (1,\; 2,\; 2), \qquad s = 1 \cdot 1 + 2 \cdot 0 + 2 \cdot 2 = 5 .$$
#
# ### Exercise 1.5: bilinear scores


# %% exercise="bilinear_scores"
def bilinear_scores(q: torch.Tensor, k: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
    """Score every query against every key through a matrix.

    Args:
        q: (B, Tq, d_q), the queries.
        k: (B, Tk, d_k), the keys; d_k may differ from d_q.
        W: (d_q, d_k), the same for all pairs and all examples.

    Returns:
        (B, Tq, Tk), q_i^T W k_j at [b, i, j].

    Example:
        q [[[1, 2]]], k [[[1, 0, 2]]] and W [[1, 0, 0], [0, 1, 1]] give [[[5]]].
    """
    # TODO: move the queries into the keys' space with W, then take dot products
    ### BEGIN SOLUTION
    return (q @ W) @ k.transpose(-2, -1)  # (B, Tq, d_k) @ (B, d_k, Tk)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# What is the shape of `q @ W`?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `q @ W` is `(B, Tq, d_k)`: queries that speak the keys' language. From there on it is exercise 1.2.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `return dot_scores(..., k)`
#
# </details>

# %% test="bilinear_scores" points=1
check.exercise("bilinear_scores", bilinear_scores)
### BEGIN HIDDEN TESTS
_q, _k, _W = torch.randn(2, 3, 4), torch.randn(2, 5, 6), torch.randn(4, 6)
_expected = torch.einsum("bic,cd,bjd->bij", _q, _W, _k)
torch.testing.assert_close(bilinear_scores(_q, _k, _W), _expected, rtol=1e-4, atol=1e-4)
torch.testing.assert_close(  # with the identity it is the dot product
    bilinear_scores(_q, _q, torch.eye(4)), torch.einsum("bid,bjd->bij", _q, _q), rtol=1e-4, atol=1e-4
)
_S = torch.randn(4, 4)  # a square W that is not symmetric tells W from its transpose
torch.testing.assert_close(
    bilinear_scores(_q, _q, _S), torch.einsum("bic,cd,bjd->bij", _q, _S, _q), rtol=1e-4, atol=1e-4
)
assert check.unchanged(bilinear_scores, _q, _k, _W)
assert all(g is not None for g in check.gradients(bilinear_scores, _q, _k, _W))
### END HIDDEN TESTS

# %% [markdown]
# **The additive score** was the first one used for translation. It moves the query and the key into a common space of $d_h$ numbers, adds them,
# squashes each number with $\tanh$, and reads off a score with a vector $w$:
#
# $$s_{ij} = w^\top \tanh(W_q^\top q_i + W_k^\top k_j) .$$
#
# (Again, with vectors as rows, $W_q^\top q_i$ is `q @ W_q` in code.)
#
# By hand, with everything of length 1: $q = 0.5$, $k = -0.5$, $W_q = W_k = 1$, $w = 2$. The sum is 0, $\tanh 0 = 0$, the score is 0. With $k = 0.5$ the sum
# is 1, $\tanh 1 \approx 0.76$, the score is 1.52.
#
# ### Exercise 1.6: additive scores


# %% exercise="additive_scores"
def additive_scores(
    q: torch.Tensor, k: torch.Tensor, W_q: torch.Tensor, W_k: torch.Tensor, w: torch.Tensor
) -> torch.Tensor:
    """Score every query against every key with a small network of one hidden layer.

    Args:
        q: (B, Tq, d_q), the queries.
        k: (B, Tk, d_k), the keys.
        W_q: (d_q, d_h) and W_k: (d_k, d_h), which move both into the hidden layer.
        w: (d_h,), which reads the score off it.

    Returns:
        (B, Tq, Tk), the score of query i and key j at [b, i, j].

    Example:
        q [[[0.5]]], k [[[-0.5], [0.5]]], W_q [[1]], W_k [[1]], w [2] give [[[0, 1.5232]]].
    """
    # TODO: project both, add every query to every key in a tensor (B, Tq, Tk, d_h), tanh, then w
    ### BEGIN SOLUTION
    moved_q = (q @ W_q)[:, :, None, :]  # (B, Tq, 1, d_h)
    moved_k = (k @ W_k)[:, None, :, :]  # (B, 1, Tk, d_h)
    return torch.tanh(moved_q + moved_k) @ w  # (B, Tq, Tk, d_h) @ (d_h,)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Every query has to meet every key, so in between there is a tensor with four axes: `(B, Tq, Tk, d_h)`.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# An axis of length 1 stretches when two tensors are added: `(B, Tq, 1, d_h) + (B, 1, Tk, d_h)`. Indexing with `None`, or `unsqueeze`, inserts such an axis.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `torch.tanh((q @ W_q)[:, :, None, :] + (k @ W_k)[...]) @ w`
#
# </details>

# %% test="additive_scores" points=2
check.exercise("additive_scores", additive_scores)
### BEGIN HIDDEN TESTS
_q, _k = torch.randn(2, 3, 4), torch.randn(2, 5, 6)
_Wq, _Wk, _u = torch.randn(4, 7) / 2, torch.randn(6, 7) / 2, torch.randn(7)
_rows = [[torch.tanh(_q[:, i] @ _Wq + _k[:, j] @ _Wk) @ _u for j in range(5)] for i in range(3)]
_expected = torch.stack([torch.stack(row, dim=1) for row in _rows], dim=1)
torch.testing.assert_close(additive_scores(_q, _k, _Wq, _Wk, _u), _expected, rtol=1e-4, atol=1e-5)
_bound = _u.abs().sum().item() + 1e-4  # tanh lies between -1 and 1, so no score can pass the sum of |w|
assert additive_scores(100 * _q, _k, _Wq, _Wk, _u).abs().max().item() <= _bound
torch.testing.assert_close(additive_scores(_q, _k, _Wq, _Wk, 3 * _u), 3 * _expected, rtol=1e-4, atol=1e-5)
assert check.unchanged(additive_scores, _q, _k, _Wq, _Wk, _u)
assert all(g is not None for g in check.gradients(additive_scores, _q, _k, _Wq, _Wk, _u))
### END HIDDEN TESTS

# %% [markdown]
# How do the three families differ? Make one query longer and longer, and watch its score with one fixed key.

# %%
# @title The three scores of a query that grows
stretch = [0, 1, 2, 3, 4, 5, 6, 7, 8]
q, k = torch.tensor([[[1.0, 0.5]]], device=where), torch.tensor([[[0.8, 0.4]]], device=where)
W = torch.tensor([[0.6, -0.2], [0.4, 0.3]], device=where)
one, w = torch.eye(2, device=where), torch.tensor([1.0, 1.0], device=where)
plots.lines(
    stretch,
    {
        "dot product": [dot_scores(a * q, k).item() for a in stretch],
        "bilinear": [bilinear_scores(a * q, k, W).item() for a in stretch],
        "additive": [additive_scores(a * q, k, one, one, w).item() for a in stretch],
    },
    xlabel="the query is multiplied by",
    ylabel="score with one key",
    title="Dot products grow with the query; the additive score levels off",
    alt="Score of one query and one key while the query is stretched from 0 to 8 times. The dot product and the bilinear "
    "score are straight lines through 0; the additive score starts above 0 and levels off at 2.",
)

# %% [markdown]
# $\tanh$ lies between $-1$ and $1$, so an additive score cannot pass $\sum_h |w_h|$, and it is not divided. That is no cure for
# long vectors: where they push $\tanh$ to its ends it is flat, and neither the score nor a gradient tells one key from another.
# It also pays with memory: the tensor `(B, Tq, Tk, d_h)` holds $d_h$ times as many numbers as the scores. The dot product is one
# matrix product, which graphics cards are built for; transformers took it, and with it the division.
#
# **A good place to stop.** You can score queries against keys in four ways and average values with weights; six exercises are
# done. What comes is the layer itself, a wrong map and a bug. When you come back, run everything above this line (*Run*, *Run All
# Above Selected Cell*; in Colab *Runtime*, *Run before*).
#
# ## 5 · Self-attention
#
# Back to the verb that needs its subject. With dot products, "sat" found only itself, because one vector had to serve as query
# and as key. So give every token **three** vectors, each a linear map of its features $x$:
#
# | | what it says | made by |
# |---|---|---|
# | query $q = W_q x$ | what I am looking for | `W_q`, from `d_model` to `d_k` |
# | key $k = W_k x$ | what I can be found by | `W_k`, from `d_model` to `d_k` |
# | value $v = W_v x$ | what I hand over when I am found | `W_v`, from `d_model` to `d_v` |
#
# A key has $d_k$ numbers, as before, and so has a query; a token has `d_model`. Each $W$ is stored as `nn.Linear` does it, with
# shape (out, in). When queries, keys and values all come from the same sentence, it is called **self-attention**. You have all
# the parts:
#
# $$\text{weights} = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right), \qquad \text{context} = \text{weights}\; V .$$
#
# ### Exercise 1.7: the layer


# %% exercise="SelfAttention"
class SelfAttention(nn.Module):
    """Scaled dot-product self-attention with one head.

    Args:
        d_model: entries of each token. d_k: entries of queries and keys. d_v: entries of values.

    The three projections are nn.Linear layers without bias, called W_q, W_k and W_v.
    """

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        # TODO: make self.W_q, self.W_k and self.W_v with nn.Linear(..., ..., bias=False)
        ### BEGIN SOLUTION
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Let every token attend to every token.

        Args:
            x: (B, T, d_model), the tokens.

        Returns:
            context: (B, T, d_v), and weights: (B, T, T), whose rows sum to 1.
        """
        # TODO: project x three times, score, softmax over the keys, average the values
        ### BEGIN SOLUTION
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        weights = torch.softmax(scaled_dot_scores(q, k), dim=-1)  # (B, T, T)
        return weighted_context(weights, v), weights
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# In `__init__` three lines, in `forward` three or four. You have written `scaled_dot_scores` and `weighted_context`.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `nn.Linear(a, b, bias=False)` maps the last axis from `a` to `b` entries. Softmax runs over the keys, the last axis of the
# scores: each *query* has weights that sum to 1.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `weights = torch.softmax(scaled_dot_scores(self.W_q(x), self.W_k(x)), dim=...)`, then `return weighted_context(...), weights`.
#
# </details>

# %% test="SelfAttention" points=3
check.exercise("SelfAttention", SelfAttention)
### BEGIN HIDDEN TESTS
_layer = SelfAttention(5, 3, 4)
_state = {"W_q.weight": torch.randn(3, 5), "W_k.weight": torch.randn(3, 5), "W_v.weight": torch.randn(4, 5)}
_layer.load_state_dict(_state)
_x = torch.randn(2, 6, 5)
_context, _weights = _layer(_x)
_s = torch.einsum("bic,bjc->bij", _x @ _state["W_q.weight"].T, _x @ _state["W_k.weight"].T) / 3**0.5
_a = torch.exp(_s) / torch.exp(_s).sum(-1, keepdim=True)
torch.testing.assert_close(_weights, _a, rtol=1e-4, atol=1e-5)
torch.testing.assert_close(_context, _a @ (_x @ _state["W_v.weight"].T), rtol=1e-4, atol=1e-5)
_shuffle = torch.randperm(6)  # shuffled tokens give the same contexts, shuffled
torch.testing.assert_close(_layer(_x[:, _shuffle])[0], _context[:, _shuffle], rtol=1e-4, atol=1e-5)
_one = _layer(_x[:, :1])  # a token alone hands itself its value
torch.testing.assert_close(_one[0], _x[:, :1] @ _state["W_v.weight"].T, rtol=1e-4, atol=1e-5)
assert check.parameters(_layer) == {"W_q.weight": (3, 5), "W_k.weight": (3, 5), "W_v.weight": (4, 5)}
### END HIDDEN TESTS

# %% [markdown]
# In a real model the three matrices are learned. Here we set them by hand, so that you can see what they *can* say. A query asks
# for a kind of token, and a key says which kind a token is:
#
# | who asks | asks for |
# |---|---|
# | an action (sat) | something alive |
# | a relation (on) | a surface |
# | a pointer (The, the) | a thing |
# | a thing (cat, mat) | an action |
#
# A query asks with strength 6. Divided by $\sqrt{d_k} = 2$ that is a score of 3 for a match, and $e^3 \approx 20$: one match
# among six keys gets $20 / 25 = 0.80$ of the weight, two matches get $20 / 44 = 0.45$ each.

# %%
asks = {"action": "alive", "relation": "surface", "pointer": "thing", "thing": "action"}
W_q, W_k = torch.zeros(4, 6), torch.zeros(4, 6)  # nn.Linear keeps its weight as (out, in)
for channel, (who, what) in enumerate(asks.items()):
    W_q[channel, features.index(who)] = 6.0
    W_k[channel, features.index(what)] = 1.0
layer = SelfAttention(d_model=6, d_k=4, d_v=6).to(where)
layer.load_state_dict({"W_q.weight": W_q, "W_k.weight": W_k, "W_v.weight": torch.eye(6)})
context, weights = layer(sentence)

# %% tags=["cover"]
# @title The map that your layer draws
plots.heatmap(
    weights[0],
    rows=tokens,
    columns=tokens,
    title="Your layer: sat finds cat, on finds mat, and The cannot tell cat from mat",
    alt="Self-attention weights over The cat sat on the mat. sat gives 0.80 to cat, on gives 0.80 to mat, cat and mat give "
    "0.80 to sat. The and the have the same row: 0.45 to cat and 0.45 to mat.",
)

# %% [markdown]
# The verb finds its subject and the preposition its place, although their own features have nothing in common. Look at the rows
# of "The" and "the": they are equal, with the same weight on "cat" and on "mat". The layer sees *what* stands in the sentence but
# not *where*, so it cannot know which noun each article belongs to. Lesson 04 gives it positions.
#
# ## 6 · Explain a wrong map
#
# A colleague set the same three matrices by hand and wrote the layer once more. It runs, and no weight is negative. This is what it
# made of the same sentence, to three digits:

# %% given="their_map"
their_map = torch.tensor(
    [
        # The    cat    sat    on     the    mat
        [0.167, 0.273, 0.077, 0.167, 0.167, 0.273],  # The
        [0.167, 0.061, 0.346, 0.167, 0.167, 0.061],  # cat
        [0.167, 0.273, 0.077, 0.167, 0.167, 0.061],  # sat
        [0.167, 0.061, 0.077, 0.167, 0.167, 0.273],  # on
        [0.167, 0.273, 0.077, 0.167, 0.167, 0.273],  # the
        [0.167, 0.061, 0.346, 0.167, 0.167, 0.061],  # mat
    ]
)

# %%
# @title The colleague's map
plots.heatmap(
    their_map,
    rows=tokens,
    columns=tokens,
    title="The colleague's map: each match is there, and none of them gets 0.80",
    alt="A colleague's weights over The cat sat on the mat. The largest are 0.35, cat and mat looking at sat. The, sat and the "
    "give 0.27 to cat; The, on and the give 0.27 to mat. The columns of The, on and the are 0.17 throughout.",
)

# %% [markdown]
# Two things are wrong in their code, and the numbers tell you both. Add some of them up, and compare some with each other.
#
# ### Exercise 1.8: what does their code compute?
#
# An explanation is as good as what it predicts. Write yours down as code: it is right if it gives this map, and the maps that
# their code draws of other sentences, which only the check has.


# %% exercise="their_weights"
def their_weights(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """The colleague's weights: not what they should be, but what their code computes.

    Args:
        q: (B, Tq, d), the queries.
        k: (B, Tk, d), the keys.

    Returns:
        (B, Tq, Tk), the map that their code makes of q and k.

    Example:
        The queries layer.W_q(sentence) and the keys layer.W_k(sentence) give their_map, d being 4.
    """
    # TODO: compute the weights as they do, with both faults
    ### BEGIN SOLUTION
    return torch.softmax(dot_scores(q, k) / q.shape[-1], dim=1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# What is the sum of a row of their map, and what the sum of a column?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# For the second fault compare, within one column, a match with a mismatch. A mismatch has a score of 0, so the ratio of the two
# weights is $e$ to the score of a match. Queries ask with strength 6, and $d = 4$: what did they make of the 6?
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `torch.softmax(dot_scores(q, k) / ..., dim=...)`. In the column of "cat" the ratio is $0.273 / 0.061 \approx 4.5 \approx e^{1.5}$.
#
# </details>

# %% test="their_weights" points=1
check.exercise("their_weights", their_weights)
### BEGIN HIDDEN TESTS
_q, _k = torch.randn(2, 3, 7), torch.randn(2, 5, 7)
_powers = torch.exp(torch.einsum("bid,bjd->bij", _q, _k) / 7)
_theirs = _powers / _powers.sum(dim=1, keepdim=True)
torch.testing.assert_close(their_weights(_q, _k), _theirs, rtol=1e-4, atol=1e-5)
torch.testing.assert_close(their_weights(_q[:1], _k[:1]), _theirs[:1], rtol=1e-4, atol=1e-5)
assert check.unchanged(their_weights, _q, _k)
### END HIDDEN TESTS

# %%
yours = their_weights(layer.W_q(sentence), layer.W_k(sentence))[0].detach().cpu()
print("your explanation gives their map:", torch.allclose(yours, their_map, atol=0.001))

# %% [markdown]
# In their map the queries compete for each key, where the keys should compete for each query. On a square map the shape cannot
# warn you: read a map's sums before you read its colours.
#
# ## 7 · Spot the bug
#
# The function below makes a slip that is easy to make and hard to see. Its author tried it on a sentence of 4 tokens with 4
# numbers each, compared it with a library, and it agreed. It is still wrong.


# %% given="published"
def published_weights(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Attention weights. q: (B, Tq, d), k: (B, Tk, d); returns (B, Tq, Tk), rows that sum to 1."""
    scores = torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(k.shape[1])
    return torch.softmax(scores, dim=-1)


def library_weights(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """The same from PyTorch's attention: with the identity for values, contexts are the weights."""
    identity = torch.eye(k.shape[1], dtype=k.dtype, device=k.device).expand(len(k), -1, -1)
    return nn.functional.scaled_dot_product_attention(q, k, identity)


# %%
q, k = device.randn(1, 4, 4, seed=5), device.randn(1, 4, 4, seed=6)
agrees = torch.allclose(published_weights(q, k), library_weights(q, k), atol=1e-5)
print("agrees on 4 tokens of 4 numbers:", agrees)

# %% [markdown]
# First find an input that shows it. Return a query tensor and a key tensor (small ones are best) on which the result is wrong.
#
# ### Exercise 1.9: a counterexample


# %% exercise="counterexample"
def counterexample() -> tuple[torch.Tensor, torch.Tensor]:
    """Return q: (B, Tq, d) and k: (B, Tk, d) for which published_weights is wrong."""
    # TODO: choose shapes for which the bug matters, and return two tensors
    ### BEGIN SOLUTION
    q = torch.tensor([[[1.0, 2.0]]])
    k = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    return q, k
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The author's test had $T_k = 4$ and $d = 4$. What if they differ?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `k.shape` is `(B, Tk, d)`. Which of the three does `k.shape[1]` pick? Choose a shape for which that is not $d$, and scores that are not all equal.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `return torch.tensor([[[...]]]), torch.tensor([[[...], ...]])`: so many numbers in each query and key, and another number of keys.
#
# </details>

# %% test="counterexample" points=1
check.counterexample(
    "counterexample",
    counterexample,
    wrong=published_weights,
    right=library_weights,
    axes=("B Tq d", "B Tk d"),
)
### BEGIN HIDDEN TESTS
_q, _k = counterexample()
_right = torch.softmax(torch.einsum("bid,bjd->bij", _q, _k) / _q.shape[-1] ** 0.5, dim=-1)
assert torch.isfinite(_right).all()
assert not torch.allclose(published_weights(_q, _k), _right, rtol=1e-4, atol=1e-6)  # never stricter than the check
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 1.10: the repair


# %% exercise="repaired_weights"
def repaired_weights(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Attention weights, repaired.

    q: (B, Tq, d), k: (B, Tk, d); returns (B, Tq, Tk), rows that sum to 1.
    """
    # TODO: copy the two lines of published_weights and mend what is wrong
    ### BEGIN SOLUTION
    scores = torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(k.shape[-1])
    return torch.softmax(scores, dim=-1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Only the index in `k.shape[...]` has to change.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# The division should be by the root of the number of entries that are summed in one dot product.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `/ math.sqrt(k.shape[...])` with the index of the *last* axis.
#
# </details>

# %% test="repaired_weights" points=1
check.exercise("repaired_weights", repaired_weights)
### BEGIN HIDDEN TESTS
for _shape_q, _shape_k in (((2, 3, 4), (2, 5, 4)), ((1, 2, 9), (1, 3, 9)), ((3, 4, 1), (3, 6, 1))):
    _q, _k = torch.randn(_shape_q), torch.randn(_shape_k)
    _right = torch.softmax(torch.einsum("bid,bjd->bij", _q, _k) / _q.shape[-1] ** 0.5, dim=-1)
    torch.testing.assert_close(repaired_weights(_q, _k), _right, rtol=1e-4, atol=1e-5)
### END HIDDEN TESTS

# %% [markdown]
# ## Questions
#
# Answer in your head first, then open.
#
# <details><summary><b>1.</b> A layer has 8 tokens, <code>d_model = 64</code> and <code>d_k = 16</code>. By which number are the dot products divided?</summary>
#
# By **4**, the root of `d_k = 16`: the dot product is a sum of 16 terms.
#
# * *8, the root of `d_model`:* the tokens have 64 entries, but the dot product is taken after the projection, over 16.
# * *2.83, the root of 8:* the number of tokens says how many scores there are, not how large each one is. This was the bug above.
# * *16:* that would divide the variance of 16 by 256, which leaves 1/16: scores of about ±0.25, and weights much flatter than
#   intended.
#
# </details>
# <details><summary><b>2.</b> You multiply every query by 10. What happens to the weights that come from dot products, and what to those from additive scores?</summary>
#
# Dot-product scores grow tenfold, so the weights get much **sharper**. In the additive score a query that long drives most of the
# $\tanh$ to their ends, whatever the key: the key hardly counts any more, and the weights become **nearly equal**.
#
# * *Nothing, because softmax normalises:* softmax does not notice a constant that is *added* to a row. A factor changes the differences between scores, and these decide.
# * *All weights grow tenfold:* they sum to 1 before and after.
#
# </details>
# <details><summary><b>3.</b> Must <code>W_q</code> and <code>W_k</code> be two matrices? The score of tokens x and y is xᵀ(W_qᵀ W_k)y, so one matrix would do.</summary>
#
# One matrix $M = W_q^\top W_k$ of shape `d_model × d_model` **would give the same scores**: that is the bilinear score. Two thin ones
# are cheaper: with `d_model = 512` and `d_k = 64` they hold $2 \cdot 512 \cdot 64 = 65\,536$ numbers in place of $512^2 = 262\,144$.
# The price is that $M$ has rank at most `d_k`.
#
# * *Yes, else the scores are symmetric:* a single matrix $M$ need not be symmetric. Scores are symmetric if, for example, `W_q` and `W_k` are equal.
# * *Yes, else it cannot learn:* it can; the matrix of Luong's bilinear score is learned.
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
# You saw a bottleneck overflow, and wrote the weighted average that removes it; four ways to score a query against a key; a
# measurement of why $\sqrt{d_k}$ is there; and a self-attention layer. You explained a map that was wrong, and mended code that was.
#
# **Where it lives in real models.** `scaled_dot_scores` and the layer are the core of the transformer: GPT and BERT run such a layer
# in each of their 12 or more blocks, with $d_k = 64$. The additive score drove the first neural translator with attention. The
# bilinear score is what "general" attention means in Luong's paper.
#
# **Next.** Lesson 02 opens the box you used here unopened, softmax, and lesson 03 runs several of these layers side by side.
#
# **References**
#
# * Cho, van Merriënboer, Bahdanau, Bengio (2014), [On the properties of neural machine translation](https://arxiv.org/abs/1409.1259): translation quality falls with sentence length.
# * Bahdanau, Cho, Bengio (2015), [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473): the additive score.
# * Luong, Pham, Manning (2015), [Effective approaches to attention-based neural machine translation](https://arxiv.org/abs/1508.04025): dot and bilinear scores.
# * Vaswani et al. (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762): scaled dot products and self-attention; the variance argument is in section 3.2.1.
