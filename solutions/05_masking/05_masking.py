# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · Masking
#
# **At the end of this lesson you decide who may look at whom: you hide padding, the future and the distant past, and no hidden
# number, not even NaN, can reach a result.** This is what one of your masks will do to the six tokens of lesson 01:
#
# ![Two maps of weights over six tokens: without a mask they reach into the future, with a causal mask each token reads itself and what stands before it](attachment:cover.png)
#
# | | |
# |---|---|
# | time | 110 minutes, with a place to stop after section 4 |
# | difficulty | gentle masks, one softmax with three traps in it, and a bug that was reported against PyTorch itself |
# | builds on | lessons 01 and 02: scores, weights, softmax; lesson 03: heads at axis 1, a mask inside attention, `nn.MultiheadAttention` |
# | you will write | 6 small functions, a test that finds other people's mistakes, a counterexample and a repair |
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

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_course import check, device, plots
from attention_course.bar import bar

device.seed(5)
where = device.pick()
check.start("05")

# %% [markdown]
# ## 1 · A batch is a box, a sentence is not
#
# A tensor is a box: every sentence in a batch has the same number of places. So a short sentence is filled up with **padding**,
# places that hold no word. Does the padding stay out of the computation?
#
# Take **The cat sat on the mat** and, in the same batch, the shorter **The cat sat**. The scores are those of the layer that
# lesson 01 ended with: 3 where a token finds what it looks for, 0 everywhere else. "sat" looks for "cat". There is one head,
# at axis 1 as in lesson 03, so scores have the axes $(B, H, T_q, T_k)$.

# %% given="tokens"
tokens = ["The", "cat", "sat", "on", "the", "mat"]
short = ["The", "cat", "sat", "pad 3", "pad 4", "pad 5"]
lengths = torch.tensor([6, 3], device=where)
finds = [[1, 5], [2], [1], [5], [1, 5], [2]]  # The finds cat and mat, cat finds sat, ...

scores = torch.zeros(2, 1, 6, 6, device=where)  # (B, H, Tq, Tk)
for query, keys in enumerate(finds):
    scores[0, 0, query, keys] = 3.0
scores[1, 0, :3, :3] = scores[0, 0, :3, :3]  # "The cat sat"; three places of padding score 0
print("scores", tuple(scores.shape))

# %%
alone = torch.softmax(scores[1, 0, 2, :3], dim=-1)
padded = torch.softmax(scores[1, 0, 2], dim=-1)
print(f"sat gives cat {alone[1]:.2f} when the sentence stands alone, {padded[1]:.2f} in the batch")
print(f"weight of sat on padding: {padded[3:].sum():.2f}")

# %% [markdown]
# By hand: alone, the weight is $e^3 / (e^3 + 2) = 20.1 / 22.1 = 0.91$. In the batch there are three more keys with score 0, and
# $e^0$ is 1, not 0: $20.1 / (20.1 + 5) = 0.80$. A score of 0 is not "nothing". The answer to a sentence now depends on how long
# its *neighbours* in the batch are, and nobody gets an error message.
#
# The remedy is to say, for each query and each key, whether the key counts. You met a **mask** in lesson 03: a tensor of booleans.
# In all of this course one thing stays the same:
#
# > **True = keep, False = hide.**
#
# (That is a choice. Section 6 shows who chose the opposite.) A mask's *shape* depends on what it says; up to section 7 it is any
# shape that broadcasts to $(B, H, T_q, T_k)$. Softmax then runs over the kept keys alone:
#
# $$w_{ij} = \frac{m_{ij}\, e^{s_{ij}}}{\sum_k m_{ik}\, e^{s_{ik}}}, \qquad m_{ij} = 1 \text{ if kept, else } 0 .$$
#
# (If no key is kept this is $0/0$; section 4 settles that case.)
#
# Whether a key is padding depends on the sentence and on the key's place, not on the head or the query. So the mask
# needs only the axes $B$ and $T_k$, and an axis of length 1 in place of each of the others, so that it broadcasts:
#
# | sentence | length | mask over 6 keys |
# |---|---|---|
# | The cat sat on the mat | 6 | T T T T T T |
# | The cat sat | 3 | T T T F F F |
#
# ### Exercise 5.1: the padding mask


# %% exercise="padding_mask"
def padding_mask(lengths: torch.Tensor, Tk: int) -> torch.Tensor:
    """Keep the tokens of each sentence and hide the padding that follows them.

    Args:
        lengths: (B,), how many tokens each sentence has: whole numbers from 0 to Tk.
        Tk: how many places each sentence has in the batch.

    Returns:
        (B, 1, 1, Tk), booleans on the device of lengths: True for a token, False for padding.

    Example:
        lengths [3, 1] and Tk = 4 give [[[[T, T, T, F]]], [[[T, F, F, F]]]].
    """
    # TODO: for each sentence and place, is it a token? On the device of lengths, with four axes
    ### BEGIN SOLUTION
    places = torch.arange(Tk, device=lengths.device)  # (Tk,)
    return places < lengths[:, None, None, None]  # (Tk,) against (B, 1, 1, 1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# A place is a token if its number is below the length. A sentence of length 3 has tokens at places 0, 1 and 2.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `torch.arange(Tk, device=lengths.device)` numbers the places. Give both tensors axes so that one comparison makes all of the
# mask.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# places = ...    # (Tk,)
# ends = ...      # (B, 1, 1, 1)
# return ...      # one comparison of the two
# ```
#
# </details>

# %% test="padding_mask" points=1
check.exercise("padding_mask", padding_mask)
### BEGIN HIDDEN TESTS
_lengths = torch.randint(0, 8, (5,))
_lengths[0], _lengths[1] = 0, 7  # an empty sentence and a full one
_mask = padding_mask(_lengths, 7)
assert _mask.dtype == torch.bool
assert _mask.shape == (5, 1, 1, 7)
for _b in range(5):
    assert _mask[_b].flatten().tolist() == [j < int(_lengths[_b]) for j in range(7)]
assert torch.equal(padding_mask(_lengths, 11).sum(-1).flatten(), _lengths)  # more padding keeps no more tokens
assert torch.equal(padding_mask(_lengths.int(), 7), _mask)
assert torch.equal(padding_mask(_lengths.flip(0), 7), _mask.flip(0))  # examples do not mix
assert torch.zeros(5, 2, 3, 7).masked_fill(~_mask, 1.0).shape == (5, 2, 3, 7)
assert check.unchanged(padding_mask, _lengths, 7)
### END HIDDEN TESTS

# %% [markdown]
# Many tokenizers hand out a tensor of ones and zeros beside the tokens; if its 1 means keep, `.bool()` turns it into our mask. Or you
# compare the token numbers with that of the padding, `ids != pad`. That is safe only if the padding has a number of its own: where
# it borrows the number of "end of text", the real end gets hidden too.
#
# ## 2 · A writer may not read ahead
#
# A language model reads a text and guesses, at *every* place, the token that comes next. "The" → "cat", "The cat" → "sat", and so
# on: a sentence of six tokens holds five such guesses (nothing follows the last token), and all are made at once, one by each
# query. But self-attention lets every token look at all the others. The query at "The" sees "cat", which is the answer.
#
# So a query may look at itself and at what stands before it. That is the **causal mask**. For four tokens:
#
# | | key 0 | key 1 | key 2 | key 3 |
# |---|---|---|---|---|
# | query 0 | T | F | F | F |
# | query 1 | T | T | F | F |
# | query 2 | T | T | T | F |
# | query 3 | T | T | T | T |
#
# Rows are queries and columns are keys, as always: everything above the diagonal is the future.
#
# **What if there are fewer queries than keys?** That happens when a model *writes*. It has read three tokens and kept their keys and
# values; now two more tokens arrive, and only these two ask. The two queries are the **last** two of five places: query 0 stands at
# place 3, query 1 at place 4.
#
# | | key 0 | key 1 | key 2 | key 3 | key 4 |
# |---|---|---|---|---|---|
# | query 0 (place 3) | T | T | T | T | F |
# | query 1 (place 4) | T | T | T | T | T |
#
# In general, query $i$, counting from 0, stands at place $p_i = i + T_k - T_q$, and key $j$ is kept if $j \le p_i$. With $T_q = T_k$
# this is the first table.
#
# ### Exercise 5.2: the causal mask


# %% exercise="causal_mask"
def causal_mask(scores: torch.Tensor) -> torch.Tensor:
    """Keep the present and the past of each query and hide its future.

    Args:
        scores: (B, H, Tq, Tk), the scores that are to be masked. Only their shape and device are
            used. The queries are the last Tq of the Tk places, and Tq is at most Tk.

    Returns:
        (Tq, Tk), booleans on the device of scores: True where key j does not come after query i.

    Example:
        scores of shape (1, 1, 2, 3) give [[T, T, F], [T, T, T]].
    """
    # TODO: the table of this section, for any Tq and Tk
    ### BEGIN SOLUTION
    Tq, Tk = scores.shape[-2:]
    keep = torch.ones(Tq, Tk, dtype=torch.bool, device=scores.device)
    return keep.tril(diagonal=Tk - Tq)  # (Tq, Tk)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The last row is always all True: the last query stands at the last place.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `torch.ones(Tq, Tk, dtype=torch.bool, device=...)` keeps everything; its method `.tril(diagonal=n)` sets to False whatever lies
# above the $n$-th diagonal. Or build the places of the queries and of the keys with `torch.arange`, and compare.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# Tq, Tk = ...
# keep = ...          # (Tq, Tk), everything
# return ...          # its lower triangle; each key more than queries moves the corner by 1 to the right
# ```
#
# </details>

# %% test="causal_mask" points=2
check.exercise("causal_mask", causal_mask)
### BEGIN HIDDEN TESTS
for _Tq, _Tk in ((1, 1), (1, 6), (3, 7), (5, 6), (6, 6)):
    _mask = causal_mask(torch.randn(2, 3, _Tq, _Tk))
    assert _mask.dtype == torch.bool
    assert _mask.tolist() == [[j <= i + _Tk - _Tq for j in range(_Tk)] for i in range(_Tq)]
_whole = causal_mask(torch.randn(1, 1, 8, 8))
assert torch.equal(causal_mask(torch.randn(1, 1, 3, 8)), _whole[-3:])  # the last queries, cut out of the whole
_x = torch.randn(2, 6, 5)


def _contexts(x, keep):
    raw = (x @ x.transpose(1, 2) / 5**0.5).masked_fill(~keep, -torch.inf)
    return torch.softmax(raw, dim=-1) @ x


_keep = causal_mask(torch.randn(2, 1, 6, 6))
_before = _contexts(_x, _keep)
for _t in range(1, 6):  # whatever comes later, what came before stays as it was
    _edited = torch.cat([_x[:, :_t], torch.randn(2, 6 - _t, 5)], dim=1)
    _after = _contexts(_edited, _keep)
    torch.testing.assert_close(_after[:, :_t], _before[:, :_t], rtol=1e-5, atol=1e-5)
    assert (_after[:, _t:] - _before[:, _t:]).abs().amax(-1).min().item() > 1e-4
assert check.unchanged(causal_mask, torch.randn(2, 3, 4, 6))
### END HIDDEN TESTS

# %% [markdown]
# The corner is worth remembering. `F.scaled_dot_product_attention(..., is_causal=True)` starts its triangle at the top *left*, so
# that a single new query sees the very first key and nothing else:

# %%
query = torch.zeros(1, 1, 1, 3, device=where)
three = torch.eye(3, device=where)[None, None]  # as values, so that the context shows the weights
seen = F.scaled_dot_product_attention(query, three, three, is_causal=True)
print("is_causal=True, 1 query and 3 keys:", (seen[0, 0] > 0.5).tolist())
print("your mask,      1 query and 3 keys:", causal_mask(scores[:, :, -1:, :3]).tolist())

# %% [markdown]
# ## 3 · Both at once
#
# The batch of section 1 needs both masks if a model is to learn writing from it. A key counts if *every* mask keeps it: a logical
# **and**. By hand, for two queries of "The cat sat" with its padding:
#
# | | The | cat | sat | pad 3 | pad 4 | pad 5 |
# |---|---|---|---|---|---|---|
# | padding | T | T | T | F | F | F |
# | causal, query 1 | T | T | F | F | F | F |
# | causal, query 4 | T | T | T | T | T | F |
# | both, query 1 | T | T | F | F | F | F |
# | both, query 4 | T | T | T | F | F | F |
#
# Broadcasting does the rest: $(B, 1, 1, T_k)$ and $(T_q, T_k)$ give $(B, 1, T_q, T_k)$.
#
# Booleans combine without accidents. Masks made of numbers that are *added* to the scores do not: two times the lowest
# number is $-\infty$, so a key hidden twice is no longer the same as one hidden once. Question 4 shows where that hurts.
#
# ### Exercise 5.3: combine masks


# %% exercise="combine"
def combine(*masks: torch.Tensor | None) -> torch.Tensor:
    """Keep what every one of the masks keeps.

    Args:
        masks: one or more, each boolean and broadcastable to (B, H, Tq, Tk), or None for
            "no restriction". At least one is a tensor.

    Returns:
        A boolean mask, as large as broadcasting makes it. The masks passed in stay as they are.

    Example:
        combine([[T, T, F]], None, [[T], [F]]) gives [[T, T, F], [F, F, F]].
    """
    # TODO: one mask that keeps what all of them keep
    ### BEGIN SOLUTION
    present = [mask for mask in masks if mask is not None]
    both = present[0]
    for mask in present[1:]:
        both = both & mask
    return both
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# `*masks` is a tuple of whatever was passed. Write it for two masks first, then for any number.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `a & b` is the logical and of two boolean tensors, with broadcasting. Test for None with `is not None`: a tensor of several
# numbers is neither true nor false.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# present = [...]            # without None
# both = ...                 # to begin with
# for mask in ...:
#     both = ...             # a new tensor: `both &= mask` would write into a mask of the caller's
# return both
# ```
#
# </details>

# %% test="combine" points=1
check.exercise("combine", combine)
### BEGIN HIDDEN TESTS
_a, _b, _c = torch.rand(2, 3, 4, 5) < 0.7, torch.rand(2, 1, 1, 5) < 0.7, torch.rand(4, 5) < 0.7
_all = torch.logical_and(torch.logical_and(_a, _b), _c)
for _order in ((_a, _b, _c), (_c, _b, _a), (_b, None, _a, _c), (None, _c, _a, None, _b), (_a, _a, _b, _c, _b)):
    assert torch.equal(combine(*_order), _all)
assert torch.equal(combine(_b), _b)
assert torch.equal(combine(None, _c), _c)
assert combine(_b, _c).shape == (2, 1, 4, 5)
assert torch.equal(combine(_b, torch.ones(1, dtype=torch.bool)), _b)  # a mask that keeps everything changes nothing
assert not combine(_a, torch.zeros(4, 5, dtype=torch.bool)).any()
assert check.unchanged(combine, _a, _b, _c)
### END HIDDEN TESTS

# %%
padding, causal = padding_mask(lengths, 6), causal_mask(scores)
both = combine(padding, causal)
print("padding", tuple(padding.shape), "causal", tuple(causal.shape), "both", tuple(both.shape))

# %%
# @title Two masks and what both of them keep
plots.small_multiples(
    [padding[1, 0].expand(6, 6), causal, both[1, 0]],
    titles=["padding (dark = keep)", "causal", "both"],
    rows=short,
    columns=short,
    title="A key counts for a query only where every mask keeps it",
    alt="Three masks over The cat sat and three places of padding; dark is kept. Padding keeps the first three columns. Causal "
    "keeps the lower triangle. Both keep the lower triangle of the first three columns.",
)

# %% [markdown]
# The rows of the padding itself still look at "The cat sat". That is harmless as long as nobody reads what a padding query receives
# and the loss skips it. Hide *keys*, not queries; a query without any key is trouble, as you are about to see.
#
# ## 4 · A softmax that obeys
#
# In lesson 03 you hid scores inside attention. Here that step becomes a function of its own, which also stands NaN and 16 bits.
#
# How do you make softmax ignore a key? Look at "cat". It finds "sat", which stands in its future, so of its scores
# $(0, 0, 3, 0, 0, 0)$ only the first two are kept, and its weights should be $(0.5, 0.5, 0, 0, 0, 0)$.
#
# **Trap 1: zero is a score like any other.** `scores * mask` turns the row into six zeros, and softmax gives $1/6$ to each. Four
# sixths of the weight lie in the future. Section 1 told you why: $e^0 = 1$. The score that vanishes is $-\infty$, since
# $e^{-\infty} = 0$. So *fill* the hidden scores with something very low. `x.masked_fill(hidden, value)` does it; it fills where its
# first argument is True, so it wants `~mask`.
#
# **Trap 2: a row with nothing to see.** Fill a row with $-\infty$ everywhere and softmax computes $0/0$, which is NaN. Such rows
# exist: an empty sentence in a batch, or the first place of a sentence that is padded at its *front*, under a causal mask. We
# agree that such a row has the weights 0, so that its context is 0 too, and that its gradients are finite. (`torch.nan_to_num`
# afterwards would also hide a NaN in a *kept* score, which you want to see.)
#
# **Trap 3: what is hidden may be anything.** A buffer that nobody has filled yet can hold huge numbers, even NaN. Adding to a NaN,
# or multiplying it by 0, leaves NaN. Only *replacing* it helps. (That also cuts its gradient: no gradient flows into a score that
# was replaced.)
#
# And how low is "very low"? The popular constant $-10^9$ does not exist in `float16`:

# %%
for kind in (torch.float32, torch.bfloat16, torch.float16):
    billion = torch.tensor(-1e9).to(kind).item()
    print(f"{kind}: lowest finite number {torch.finfo(kind).min:.3g}, -1e9 becomes {billion:.3g}")

# %% [markdown]
# So ask the dtype: `torch.finfo(x.dtype).min`, which you met in lesson 02, is the lowest finite number of whatever $x$ is made of.
# Being finite, it cannot give $0/0$. But mind what it does to a row with nothing to see: six equal scores, however low, get $1/6$
# each. One step is left to do after softmax.
#
# ### Exercise 5.4: masked softmax


# %% exercise="masked_softmax"
def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis that gives hidden keys the weight 0, whatever their scores are.

    Args:
        scores: (B, H, Tq, Tk), or with fewer axes in front, of any floating-point dtype. Hidden
            scores may be anything, even NaN. Kept scores are finite and lie above the lowest number
            of their dtype.
        mask: boolean, True = keep, broadcastable to the shape of scores.

    Returns:
        Weights with the shape, dtype and device of scores. A row sums to 1 if it keeps a key; a row
        that keeps none is all 0. Gradients are finite in both cases.

    Example:
        scores [[0, 0, 3], [1, 1, 1]] and mask [[T, T, F], [F, F, F]]
        give [[0.5, 0.5, 0], [0, 0, 0]].
    """
    # TODO: a softmax over the kept keys that avoids the three traps
    ### BEGIN SOLUTION
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask, 0.0)  # only a row with nothing to see still had something there
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Three steps: fill, softmax, fill again. The second fill matters only for rows with nothing to see. `torch.softmax` may do the
# step in the middle.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `masked_fill` (without a `_` at the end) makes a new tensor and broadcasts its condition. The condition is `~mask`, because it
# names what is *replaced*. The number depends on the dtype of the scores.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# filled = ...        # hidden scores replaced, by a number that depends on the dtype
# weights = ...       # softmax over the keys
# return ...          # hidden weights replaced
# ```
#
# </details>

# %% test="masked_softmax" points=3
check.exercise("masked_softmax", masked_softmax)
### BEGIN HIDDEN TESTS
_scores = 2 * torch.randn(2, 3, 4, 5)
_masks = [torch.rand(2, 3, 4, 5) < 0.6, torch.rand(2, 1, 1, 5) < 0.6, torch.rand(4, 5) < 0.6, torch.rand(3, 1, 5) < 0.6]
_masks[0][1, 2, 3], _masks[1][1], _masks[2][2] = False, False, False  # rows with nothing to see
for _mask in _masks:
    _keep = _mask.expand(2, 3, 4, 5)
    _expected = torch.zeros(2, 3, 4, 5, dtype=torch.float64)
    for _place in np.ndindex(2, 3, 4):  # the definition, row by row: softmax over what is kept
        _expected[_place][_keep[_place]] = torch.softmax(_scores[_place][_keep[_place]].double(), dim=0)
    torch.testing.assert_close(masked_softmax(_scores, _mask).double(), _expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(masked_softmax(_scores.double() + 400, _mask), _expected, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(masked_softmax(_scores - 20000, _mask).double(), _expected, rtol=1e-2, atol=2e-3)
    _apart = _scores.double() + torch.tensor([0.0, -3000.0, 700.0, -20000.0])[:, None]  # a level for each row
    torch.testing.assert_close(masked_softmax(_apart, _mask), _expected, rtol=1e-3, atol=1e-4)
    for _anything in (torch.nan, torch.inf, -torch.inf, 3e4, -3e4):  # what is hidden has no say
        _filled = torch.where(_keep, _scores, torch.tensor(_anything))
        _weights = masked_softmax(_filled, _mask)
        torch.testing.assert_close(_weights.double(), _expected, rtol=1e-4, atol=1e-6)
        assert not _weights[~_keep].any()
        (_gradient,) = check.gradients(masked_softmax, _filled, _mask)
        assert torch.isfinite(_gradient).all()
        assert not _gradient[~_keep].any()
    _weights = masked_softmax(_scores.half(), _mask)  # 16 bits: about three digits
    assert _weights.dtype == torch.float16
    torch.testing.assert_close(_weights.double(), _expected, rtol=1e-2, atol=2e-3)
    assert not _weights[~_keep].any()
torch.testing.assert_close(masked_softmax(_scores, torch.ones(5, dtype=torch.bool)), torch.softmax(_scores, -1))
assert check.unchanged(masked_softmax, _scores, _masks[0])
### END HIDDEN TESTS

# %% [markdown]
# Now put it to work on the six tokens, without a mask and with the causal one:

# %%
everything = torch.ones(1, dtype=torch.bool, device=where)
without = masked_softmax(scores, everything)[0, 0]  # (Tq, Tk), the first sentence
with_mask = masked_softmax(scores, causal)[0, 0]

# %% tags=["cover"]
# @title Six tokens, without a mask and with a causal one
plots.small_multiples(
    [without, with_mask],
    titles=["weights without a mask", "weights with the causal mask"],
    rows=tokens,
    columns=tokens,
    title="The mask takes the future away, and what is left of each row shares its weight anew",
    alt="Two maps over The cat sat on the mat. Without a mask sat gives 0.80 to cat, and The, cat, on and the reach into the "
    "future. With the causal mask The sees only itself, cat gives 0.50 to The and to itself, sat gives 0.91 to cat, on gives "
    "0.25 to each of four tokens, the gives 0.83 to cat.",
    numbers=True,
)

# %% [markdown]
# Read the second map row by row. "The" has only itself left. "cat" and "on" had found what they wanted in the future, and now spread
# evenly over what they may see. "sat" loses nothing that mattered: its "cat" came before it. The last row, "mat", is untouched.
#
# **Why bother?** Because without the mask a model cheats, and its loss looks wonderful. Below, one attention layer learns to guess
# the next token of *random* text from 8 tokens. Nothing can be learned there: the best loss to hope for is $\ln 8 \approx 2.08$, that
# of a guess.


# %%
def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Attention. q: (..., Tq, d), k: (..., Tk, d), v: (..., Tk, d_v); returns (..., Tq, d_v)."""
    return masked_softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), mask) @ v


class Guesser(nn.Module):
    """One attention layer that guesses, at each of 12 places, which of 8 tokens comes next."""

    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(8, 32), nn.Embedding(12, 32)
        self.project, self.guess = nn.Linear(32, 96), nn.Linear(32, 8)

    def forward(self, text: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(self.token(text) + self.place.weight).chunk(3, dim=-1)
        return self.guess(attend(q, k, v, mask))  # (B, 12, 8)


def training_losses(mask: torch.Tensor, words: str) -> list[float]:
    """Train for 100 steps, on fresh random text in each; report the mean loss of every 5 steps."""
    device.seed(5)
    model = Guesser().to(where)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    draw, losses = torch.Generator().manual_seed(5), []
    for _ in bar(range(100), words):
        text = torch.randint(8, (64, 12), generator=draw).to(where)
        guesses = model(text, mask)[:, :-1]  # what follows the last token is not in the text
        loss = F.cross_entropy(guesses.flatten(0, 1), text[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    by_step = torch.tensor(losses).view(20, 5)
    return by_step.mean(dim=1).tolist()


twelve = causal_mask(torch.zeros(1, 1, 12, 12, device=where))
curves = {
    "causal mask": training_losses(twelve, "training with the mask"),
    "no mask": training_losses(everything, "training without a mask"),
}
ends = {name: losses[-1] for name, losses in curves.items()}
print("without a mask the loss ends below 0.1:", ends["no mask"] < 0.1)
print("with it, the loss ends within 0.1 of ln 8:", abs(ends["causal mask"] - math.log(8)) < 0.1)

# %%
# @title The loss on random text, with a causal mask and without
plots.lines(
    list(range(5, 101, 5)),
    curves,
    xlabel="training steps",
    ylabel="loss (mean of 5 steps)",
    title="Without a causal mask the model reads the answer, and its loss on pure noise nears 0",
    alt="Training loss against steps, on random text. With the causal mask it comes to 2.08, the logarithm of 8. Without a mask "
    "it falls below 0.1: the layer learned to copy the next token.",
)

# %% [markdown]
# A loss that is too good is a sign to look for a missing mask. When such a model has to write, the future is not there to be read,
# and copying it was all that there was to learn here.
#
# You can also see directly what a mask lets through. Change one token, and look which outputs change.


# %%
def dependence(mask: torch.Tensor, layers: int = 1) -> torch.Tensor:
    """Which outputs of a stack of layers an edit changes: (output, edited token)."""

    def run(x: torch.Tensor) -> torch.Tensor:
        for _ in range(layers):
            x = attend(x, x, x, mask)
        return x

    x, changed = device.randn(6, 8, seed=5).double() / 2, torch.zeros(6, 6)
    for j in range(6):
        edited = x.clone()
        edited[j] += 1.0
        changed[:, j] = ((run(edited) - run(x)).abs().amax(dim=-1) > 1e-6).float()
    return changed


same = torch.equal(dependence(causal).bool(), causal.cpu())
print("the outputs that change are those that the causal mask names:", same)

# %%
# @title Which outputs change when a token is edited
plots.small_multiples(
    [dependence(everything), dependence(causal)],
    titles=["no mask", "causal mask"],
    rows=tokens,
    columns=tokens,
    ylabel="output that changes",
    xlabel="token that was edited",
    title="Under a causal mask no edit reaches back into the past",
    alt="Two maps: which outputs change when one of six tokens is edited. Without a mask all 36 fields are filled. With the "
    "causal mask only the lower triangle is: an edit changes the output at its own place and at later ones.",
)

# %% [markdown]
# The mask *is* the map of who can depend on whom. You can run this test on a model without reading a line of its code.
#
# **A good place to stop.** You have the masks for padding and the future, and a softmax that obeys them. What comes: a window on the
# past, a library that thinks the other way round, a test of your own, and a bug in PyTorch's name. To come back, run everything above
# the cell you want to go on with: Run, Run All Above Selected Cell (in Colab: Runtime, Run before).
#
# ## 5 · A window on the past
#
# A text of $T$ tokens has $T^2$ scores, too many if it is long. A **sliding window** of size $w$ keeps, for each query, the token itself and
# the $w - 1$ before it. With the query at place $p_i$ as in section 2, key $j$ is kept if
#
# $$p_i - w < j \le p_i .$$
#
# By hand, four tokens and $w = 2$:
#
# | | key 0 | key 1 | key 2 | key 3 |
# |---|---|---|---|---|
# | query 0 | T | F | F | F |
# | query 1 | T | T | F | F |
# | query 2 | F | T | T | F |
# | query 3 | F | F | T | T |
#
# No row keeps more than $w$ keys, so a model that writes needs to remember only the last $w$ keys and values of each layer.
#
# ### Exercise 5.5: the sliding window


# %% exercise="sliding_window_mask"
def sliding_window_mask(scores: torch.Tensor, window: int) -> torch.Tensor:
    """Keep each query's own token and the window - 1 tokens before it.

    Args:
        scores: (B, H, Tq, Tk), the scores that are to be masked. Only their shape and device are
            used. The queries are the last Tq of the Tk places, and Tq is at most Tk.
        window: how many tokens a query sees at most, itself included; at least 1.

    Returns:
        (Tq, Tk), booleans on the device of scores.

    Example:
        scores of shape (1, 1, 2, 4) and window = 2 give [[F, T, T, F], [F, F, T, T]].
    """
    # TODO: the table of this section, for any Tq, Tk and window
    ### BEGIN SOLUTION
    Tq, Tk = scores.shape[-2:]
    queries = torch.arange(Tk - Tq, Tk, device=scores.device)[:, None]  # (Tq, 1), the place of each query
    keys = torch.arange(Tk, device=scores.device)  # (Tk,)
    return (keys <= queries) & (queries - keys < window)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Two conditions on the distance from key to query, joined by `&`: it is at least 0 and less than `window`.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# The distance is the query's place minus the key's. `torch.arange(Tk - Tq, Tk)` are the places of the queries; with `[:, None]`
# they stand in a column, and the keys' places, `torch.arange(Tk)`, in a row. Both need the device of the scores. Another way:
# your causal mask has a method `.triu(diagonal=n)`, which hides what lies below the $n$-th diagonal.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# queries = ...       # (Tq, 1), the place of each query
# keys = ...          # (Tk,), the place of each key
# return (...) & (...)
# ```
#
# With `triu`, the diagonal is $T_k - T_q$ plus something that depends on the window.
#
# </details>

# %% test="sliding_window_mask" points=2
check.exercise("sliding_window_mask", sliding_window_mask)
### BEGIN HIDDEN TESTS
for _Tq, _Tk, _w in ((6, 6, 1), (6, 6, 3), (1, 7, 4), (3, 8, 2), (4, 9, 5), (5, 7, 100)):
    _mask = sliding_window_mask(torch.randn(2, 3, _Tq, _Tk), _w)
    assert _mask.dtype == torch.bool
    assert _mask.tolist() == [[0 <= i + _Tk - _Tq - j < _w for j in range(_Tk)] for i in range(_Tq)]
_wide = sliding_window_mask(torch.randn(1, 1, 30, 30), 7)
assert int(_wide.sum(-1).max()) == 7  # never more than the window
assert torch.equal(_wide.sum(-1), torch.arange(1, 31).clamp(max=7))
assert torch.equal(sliding_window_mask(torch.randn(1, 1, 4, 30), 7), _wide[-4:])
assert check.unchanged(sliding_window_mask, torch.randn(2, 3, 4, 6), 3)
### END HIDDEN TESTS

# %% [markdown]
# Does a window of 2 mean that "mat" cannot hear of "cat"? In one layer, yes. But layers are stacked, and what "sat" took from "cat" in
# the first layer, "on" can take from "sat" in the second.

# %%
for layers in (1, 2, 3, 5):
    reach = dependence(sliding_window_mask(scores, 2), layers)[5]  # what reaches "mat"
    print(f"{layers} layers: mat hears of", [tokens[j] for j in range(6) if reach[j]])

# %% [markdown]
# Move the slider over the size of the window, and compare one layer with two (where no slider can be shown, a window of 2 in stacks of
# growing height stands in for it).


# %%
# @title Slider: the size of the window
def through_the_window(value: int) -> None:
    """Draw a window's mask, the weights under it, and which tokens reach which through one layer and through two."""
    mask = sliding_window_mask(scores, value)
    plots.small_multiples(
        [mask, masked_softmax(scores, mask)[0, 0], dependence(mask), dependence(mask, layers=2)],
        titles=["mask", "weights", "edits reach, 1 layer", "edits reach, 2 layers"],
        rows=tokens,
        columns=tokens,
        ylabel="queries, or outputs that change",
        xlabel="keys, or edited tokens",
        title=f"A window of {value}: two layers reach {min(2 * (value - 1), 5)} tokens back",
        alt=f"Mask, weights and reach through one and two layers for a sliding window of {value} tokens.",
    )


def window_of_two() -> None:
    """The picture in place of the slider: the reach of a window of 2 through 1, 2, 3 and 5 layers."""
    mask, heights = sliding_window_mask(scores, 2), (1, 2, 3, 5)
    plots.small_multiples(
        [dependence(mask, layers) for layers in heights],
        titles=["1 layer", "2 layers", "3 layers", "5 layers"],
        rows=tokens,
        columns=tokens,
        ylabel="output that changes",
        xlabel="token that was edited",
        title="With a window of 2, each layer lets a token hear one place further back",
        alt="Which outputs change when a token is edited, for a window of 2. One layer: the diagonal and the one below it. Two "
        "layers: two below. Three layers: three below. Five layers: the whole lower triangle.",
    )


plots.interactive(through_the_window, name="window", options=[1, 2, 3, 4, 5, 6], still=window_of_two)

# %% [markdown]
# Each layer adds $w - 1$ places, so $L$ layers reach $L\,(w - 1)$ tokens back, like a stack of convolutions. What travels far does so in
# several hops, and is mixed with other things at each.
#
# ## 6 · Who else thinks that True means keep?
#
# Not everybody. PyTorch itself has both conventions:
#
# | | a boolean `True` means | a mask of numbers is | shapes |
# |---|---|---|---|
# | this lesson | keep | not used | anything that broadcasts to $(B, H, T_q, T_k)$ |
# | `F.scaled_dot_product_attention`, `attn_mask` | keep | added to the scores | the same, from two axes up |
# | `nn.MultiheadAttention`, `attn_mask` | **hide** | added to the scores | $(T_q, T_k)$ or $(B \cdot H, T_q, T_k)$ |
# | `nn.MultiheadAttention`, `key_padding_mask` | **hide** | added to the scores | $(B, T_k)$ |
#
# With the third row, any mask of ours can be handed to `nn.MultiheadAttention`. Two things have to be done.
# **Turn True and False around.** And **fold batch and heads into one axis**, with the heads of the first example first. By hand, for
# $B = 2$ and $H = 3$:
#
# | row of the folded mask | 0 | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|---|
# | example, head | 0, 0 | 0, 1 | 0, 2 | 1, 0 | 1, 1 | 1, 2 |
#
# Row $b H + h$ belongs to head $h$ of example $b$: just what a `reshape` of $(B, H, \dots)$ gives. But the mask has to *have* the axes
# before they can be folded, so stretch it to its full shape first.
#
# ### Exercise 5.6: a mask for `nn.MultiheadAttention`


# %% exercise="to_torch_mha"
def to_torch_mha(mask: torch.Tensor, shape: tuple[int, int, int, int]) -> torch.Tensor:
    """Turn a mask of this course into the attn_mask of nn.MultiheadAttention.

    Args:
        mask: boolean, True = keep, broadcastable to shape.
        shape: B, H, Tq and Tk.

    Returns:
        (B * H, Tq, Tk), boolean, True = hide. Head h of example b stands at b * H + h.

    Example:
        mask [[[[T, F]]], [[[T, T]]]] and shape (2, 1, 1, 2) give [[[F, T]], [[F, F]]].
    """
    # TODO: the same mask in the other convention and the other shape
    ### BEGIN SOLUTION
    B, H, Tq, Tk = shape
    hide = ~mask.expand(B, H, Tq, Tk)
    return hide.reshape(B * H, Tq, Tk)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Three steps, each one word: expand, not, reshape. What would go wrong without the first?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `mask.expand(B, H, Tq, Tk)` stretches every axis of length 1 and adds those that are missing at the front. `~` turns a boolean
# tensor around. `reshape` keeps the numbers in their order, and in that order the heads of an example follow each other.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# B, H, Tq, Tk = ...
# hide = ...          # (B, H, Tq, Tk), turned around
# return ...          # (B * H, Tq, Tk)
# ```
#
# </details>

# %% test="to_torch_mha" points=2
check.exercise("to_torch_mha", to_torch_mha)
### BEGIN HIDDEN TESTS
_B, _H, _Tq, _Tk = 2, 3, 4, 5
_mha = nn.MultiheadAttention(6, _H, kdim=7, vdim=7, batch_first=True)
_x, _memory = torch.randn(_B, _Tq, 6), torch.randn(_B, _Tk, 7)
_masks = [torch.rand(_B, _H, _Tq, _Tk) < 0.5, torch.rand(_B, 1, 1, _Tk) < 0.5, torch.rand(_Tq, _Tk) < 0.5]
_masks += [torch.rand(1, _H, 1, _Tk) < 0.5, torch.rand(_B, 1, _Tq, _Tk) < 0.5]
for _mask in _masks:
    _mask[..., 0] = True  # nn.MultiheadAttention cannot take a row with nothing to see
    _folded = to_torch_mha(_mask, (_B, _H, _Tq, _Tk))
    assert _folded.dtype == torch.bool
    assert _folded.shape == (_B * _H, _Tq, _Tk)
    _keep = _mask.expand(_B, _H, _Tq, _Tk)
    for _b in range(_B):
        for _h in range(_H):
            assert torch.equal(_folded[_b * _H + _h], ~_keep[_b, _h])
    _, _weights = _mha(_x, _memory, _memory, attn_mask=_folded, average_attn_weights=False)
    assert torch.equal(_weights > 0, _keep)
    assert check.unchanged(to_torch_mha, _mask, (_B, _H, _Tq, _Tk))
### END HIDDEN TESTS

# %% [markdown]
# Ask both of PyTorch's ways which tokens "sat" looks at, under padding and causal masks together. Random queries and keys will do:
# only the mask decides where a weight is exactly 0.

# %%
x = device.randn(2, 6, 8, seed=6)
split = x.view(2, 6, 2, 4).transpose(1, 2)  # (B, H, T, d), two heads
look_up = torch.eye(6, device=where).expand(2, 2, 6, 6)  # as values: contexts are then the weights
mha = nn.MultiheadAttention(8, 2, batch_first=True).to(where)
folded = to_torch_mha(both, (2, 2, 6, 6))
ways = {
    "SDPA, our mask": F.scaled_dot_product_attention(split, split, look_up, attn_mask=both),
    "MHA, converted": mha(x, x, x, attn_mask=folded, average_attn_weights=False)[1],
    "MHA, our mask": mha(x, x, x, attn_mask=~folded, average_attn_weights=False)[1],
}
for name, weights in ways.items():
    seen = [token for token, w in zip(tokens, weights[0, 0, 2].tolist(), strict=True) if w > 0]
    print(f"{name:15} sat looks at {seen}")

# %% [markdown]
# The third line is what happens when the conversion is forgotten: no error, and the model reads nothing but the future.
#
# One difference remains. Given a row with nothing to see, `F.scaled_dot_product_attention` agrees with us and returns 0.
# `nn.MultiheadAttention` (PyTorch 2.13) returns NaN when it is asked for its weights, and in `eval()` without gradients also when it is
# not, as was [reported in 2020](https://github.com/pytorch/pytorch/issues/41508).
#
# ## 7 · Write the test
#
# Masks fail silently: a key that should be hidden gets a little weight, and nothing crashes. So write a test:
# `test_masked_softmax(implementation)` calls `implementation(scores, mask)` as it likes, returns quietly if all is well, and raises an
# `AssertionError` if not.
#
# This is what every right implementation promises:
#
# 1. Kept keys get the softmax of the kept scores alone, along the last axis, even if these lie far below 0 (at $-20\,000$, say) and
#    far below other rows.
# 2. Hidden keys get the weight 0, whatever their score is: large, infinite or NaN.
# 3. A row that keeps nothing is all 0.
# 4. The mask may be smaller than the scores, as long as it broadcasts to their shape.
# 5. Shape and dtype are those of the scores, `float16` and `float64` included.
# 6. Scores and mask are left as they were.
#
# Right implementations may differ in the last digit, and `float16` has only about three digits. Do not test gradients or `bfloat16`: a
# right implementation may compute in NumPy, which has neither. And NaN equals nothing, not even itself: `torch.equal` of two tensors
# with NaN in the same place is False, while `assert_close` takes `equal_nan=True`.
#
# Three wrong implementations to practise on, and one that is right (a second one, `in_numpy`, stands folded below it):


# %% given="wrong_ones"
def multiplies(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Right if everything is kept."""
    return torch.softmax(scores * mask, dim=-1)


def hides_too_late(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Hides what it should, but what is left does not sum to 1."""
    return torch.softmax(scores, dim=-1) * mask


def forgets_empty_rows(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Right if every row keeps something."""
    return torch.softmax(torch.where(mask, scores, -torch.inf), dim=-1)


def row_by_row(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Right: a softmax over what each row keeps, one row after the other."""
    keep, weights = mask.expand(scores.shape), torch.zeros_like(scores)
    for place in np.ndindex(*scores.shape[:-1]):
        kept = keep[place]
        weights[place][kept] = torch.softmax(scores[place][kept], dim=0)
    return weights


# %% given="right_ones"
# @title A second right implementation, and both lists
def in_numpy(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Right: 64-bit numbers inside, the dtype of the scores outside, and no gradient."""
    numbers, keep = np.broadcast_arrays(scores.detach().cpu().numpy(), mask.cpu().numpy())
    numbers = np.where(keep, numbers.astype(np.float64), -np.inf)
    top = numbers.max(axis=-1, keepdims=True, initial=np.finfo(np.float64).min)
    powers = np.exp(numbers - top)
    total = powers.sum(axis=-1, keepdims=True)
    return torch.from_numpy(powers / np.where(total > 0, total, 1.0)).to(scores.device, scores.dtype)


wrong_ones = {f.__name__: f for f in (multiplies, hides_too_late, forgets_empty_rows)}
right_ones = {"row_by_row": row_by_row, "in_numpy": in_numpy}
both_lists = {"right": right_ones, "wrong": wrong_ones}

# %% [markdown]
# ### Exercise 5.7: the test
#
# Three points, in three cells. The first asks for these three wrong implementations. The second and the third judge your test, when
# it is graded, by 20 others that you cannot see: the second asks for half of them, the third for all. Each of the 20 breaks at
# least one of the six promises.


# %% exercise="test_masked_softmax"
def test_masked_softmax(implementation) -> None:
    """Raise an AssertionError if the implementation breaks a promise, else return None.

    Args:
        implementation: a function of scores (..., Tk) and a boolean mask that broadcasts to them;
            it should return the weights.

    Example:
        test_masked_softmax(row_by_row) returns, test_masked_softmax(multiplies) raises.
    """
    # TODO: put each of the six promises to the test
    ### BEGIN SOLUTION
    scores = torch.tensor(
        [[[1.0, 3.0, torch.nan], [-2e4, -2e4 - 1, 900.0]], [[2.0, 0.0, 1.0], [5.0, 4.0, 4.0]]]
    ).double()
    mask = torch.tensor([[[True, True, False]], [[False, False, False]]])  # (2, 1, 3), the second example sees nothing
    before, kept = scores.clone(), mask.clone()
    expected = torch.zeros(2, 2, 3, dtype=torch.float64)
    expected[0, :, :2] = torch.softmax(scores[0, :, :2], dim=-1)
    torch.testing.assert_close(implementation(scores, mask), expected)
    torch.testing.assert_close(scores, before, equal_nan=True)
    assert torch.equal(mask, kept), "the mask was changed"
    half = implementation(torch.zeros(2, 2, 3, dtype=torch.float16), mask)
    torch.testing.assert_close(half, torch.tensor([[[0.5, 0.5, 0.0]] * 2, [[0.0] * 3] * 2]).half())
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# One tensor of scores and one mask can test five of the six promises. Another small one, in `float16`, tests the rest.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Take scores of shape `(2, 2, 3)` in `float64` and a mask of shape `(2, 1, 3)`: the first example keeps two keys, the second none.
# Under the hidden key put a NaN in one row and a huge score in the other, beside kept scores far below 0. What you expect is a
# tensor of zeros in which the kept places are a softmax of the kept scores. Keep a `clone()` of what you pass in.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# scores, mask = ..., ...                        # (2, 2, 3) in float64, (2, 1, 3)
# before, kept, expected = ..., ..., ...
# torch.testing.assert_close(implementation(...), expected)
# ...                                            # scores (equal_nan=True) and mask as before
# half = implementation(...)                     # float16; equal scores have weights that you know
# ...
# ```
#
# </details>

# %% test="test_masked_softmax" points=1
check.test_of("test_masked_softmax", test_masked_softmax, **both_lists)

# %% test="test_masked_softmax-half" points=1
later = "20 more wrong ones, of which your test should reject at least half"
check.test_of("test_masked_softmax", test_masked_softmax, **both_lists, later=later)
### BEGIN HIDDEN TESTS
from attention_course.authoring import implementations

_right, _wrong = implementations("05", "masked_softmax")
_rejected = check.rejects(test_masked_softmax, _right | _wrong)  # all together, in an order drawn afresh
_refused, _caught = _rejected & set(_right), _rejected & set(_wrong)
assert not _refused, f"it refuses {len(_refused)} of {len(_right)} right implementations"
assert len(_caught) * 2 >= len(_wrong), f"it rejects {len(_caught)} of {len(_wrong)} wrong implementations"
### END HIDDEN TESTS

# %% test="test_masked_softmax-all" points=1
later = "20 more wrong ones, of which your test should reject all"
check.test_of("test_masked_softmax", test_masked_softmax, **both_lists, later=later)
### BEGIN HIDDEN TESTS
from attention_course.authoring import implementations

_right, _wrong = implementations("05", "masked_softmax")
_rejected = check.rejects(test_masked_softmax, _right | _wrong)  # all together, in an order drawn afresh
_refused, _caught = _rejected & set(_right), _rejected & set(_wrong)
assert not _refused, f"it refuses {len(_refused)} of {len(_right)} right implementations"
assert len(_caught) == len(_wrong), f"it rejects {len(_caught)} of {len(_wrong)} wrong implementations"
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · Spot the bug
#
# The function below lets queries attend to a `memory`, a tensor of token vectors that serve as keys and as values alike. Its one line
# calls PyTorch's own attention and hands it the right mask, in the right convention. Its author compared it with the specification:
# cut the padding off each sentence and attend to what is left. It agreed.


# %% given="published"
def published_attention(q: torch.Tensor, memory: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """Attention to kept tokens. q: (B, Tq, d), memory: (B, Tk, d), boolean keep: (B, Tk)."""
    return F.scaled_dot_product_attention(q, memory, memory, attn_mask=keep[:, None, :])


def without_padding(q: torch.Tensor, memory: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """The specification: each example by itself, its memory cut to the tokens that are kept."""
    if keep.dtype != torch.bool:
        raise ValueError("keep must be boolean: True = keep")
    contexts = []
    for one, tokens_of_one, kept in zip(q, memory, keep, strict=True):
        rest = tokens_of_one[kept]  # (number of kept tokens, d)
        if not (one.isfinite().all() and rest.isfinite().all()):
            raise ValueError("queries and kept tokens must be finite numbers")
        contexts.append(torch.softmax(one @ rest.T / math.sqrt(q.shape[-1]), dim=-1) @ rest)
    return torch.stack(contexts)


# %%
q, memory = device.randn(2, 4, 8, seed=7), device.randn(2, 6, 8, seed=8)
keep = padding_mask(lengths, 6)[:, 0, 0]  # (B, Tk)
by_hand = without_padding(q, memory, keep)
same = torch.allclose(published_attention(q, memory, keep), by_hand, atol=1e-5)
print("agrees with the sentences without their padding:", same)

# %% [markdown]
# It agreed because its author's padding held ordinary numbers. Find an input on which it goes wrong, although the answer without
# the padding is an ordinary finite number.
#
# ### Exercise 5.8: a counterexample


# %% exercise="counterexample"
def counterexample() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return an input on which published_attention is wrong: q, memory and keep.

    Their shapes are (B, Tq, d), (B, Tk, d) and (B, Tk); keep is boolean.
    """
    # TODO: return the three tensors
    ### BEGIN SOLUTION
    q = torch.tensor([[[1.0, 0.0]]])  # (1, 1, 2)
    memory = torch.tensor([[[1.0, 2.0], [torch.nan, torch.nan]]])  # (1, 2, 2)
    return q, memory, torch.tensor([[True, False]])
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The context is a sum over *all* keys of weight times value. A hidden key is still in that sum, with weight 0. For which value is 0
# times the value not 0?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# There are floating-point "numbers" that absorb whatever they meet, and a tensor that was never written to (`torch.empty`) can hold
# them. Section 4 called it trap 3. Put one where `keep` is False, and ordinary numbers everywhere else.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# One query, two tokens, two numbers each: `q` is `(1, 1, 2)`, `memory` is `(1, 2, 2)`, and `keep` keeps the first token. Which of the
# four numbers of the memory is it?
#
# </details>

# %% test="counterexample" points=1
check.counterexample(
    "counterexample",
    counterexample,
    wrong=published_attention,
    right=without_padding,
    axes=("B Tq d", "B Tk d", "B Tk"),
)
### BEGIN HIDDEN TESTS
_q, _memory, _keep = counterexample()
assert _keep.dtype == torch.bool
_right = without_padding(_q, _memory, _keep)
assert torch.isfinite(_right).all()
assert not torch.allclose(published_attention(_q, _memory, _keep), _right, rtol=1e-3, atol=1e-3)
### END HIDDEN TESTS

# %% [markdown]
# Two things went wrong. PyTorch hides a key by *adding* $-\infty$ to its score, and NaN plus anything is NaN: trap 3 of section 4. But
# even a hidden weight of exactly 0 would not have helped. The context is a sum over *all* keys, and $0 \cdot \mathrm{NaN}$ is NaN,
# as is $0 \cdot \infty$. So one bad number in the padding spoils every query of its example. A mask keeps a key out of the choice. It
# does not keep the value out of the sum. It was [reported](https://github.com/pytorch/pytorch/issues/101967) for this very call.
#
# ### Exercise 5.9: the repair


# %% exercise="repaired_attention"
def repaired_attention(q: torch.Tensor, memory: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """Attention to the kept tokens, whatever the hidden places of the memory hold.

    Args:
        q: (B, Tq, d), memory: (B, Tk, d), keep: (B, Tk), boolean.

    Returns:
        (B, Tq, d), one context for each query; 0 in an example that keeps nothing. Gradients are
        finite.
    """
    # TODO: what published_attention should have been
    ### BEGIN SOLUTION
    memory = memory.masked_fill(~keep[:, :, None], 0.0)
    return F.scaled_dot_product_attention(q, memory, memory, attn_mask=keep[:, None, :])
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Which number times a weight of 0 is 0? Any ordinary one. The mask goes on hiding the key from softmax.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Replace, do not multiply: `memory * keep` would leave NaN. `keep` has the axes `(B, Tk)`, the memory `(B, Tk, d)`. Do not write into
# the caller's memory.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# clean = ...         # (B, Tk, d), a new tensor
# return ...          # published_attention's line, with something else in place of memory
# ```
#
# </details>

# %% test="repaired_attention" points=2
check.exercise("repaired_attention", repaired_attention)
### BEGIN HIDDEN TESTS
_q, _clean = torch.randn(3, 2, 5), torch.randn(3, 6, 5)
_keep = torch.rand(3, 6) < 0.6
_keep[0], _keep[1, 2], _keep[2] = True, False, False  # everything kept, something hidden, nothing kept
_keep[1, 4] = True
_right = without_padding(_q, _clean, _keep)
for _anything in (0.0, 1e30, torch.nan, torch.inf, -torch.inf):
    _memory = _clean.masked_fill(~_keep[..., None], _anything)
    torch.testing.assert_close(repaired_attention(_q, _memory, _keep), _right, rtol=1e-4, atol=1e-5)
    for _gradient in check.gradients(repaired_attention, _q[:2], _memory[:2], _keep[:2])[:2]:
        assert torch.isfinite(_gradient).all()
    assert check.unchanged(repaired_attention, _q, _memory, _keep)
assert not repaired_attention(_q, _clean, _keep)[2].any()
_one = torch.tensor([[True, False, False]])  # a kept token whose score is about -140,000
_far = repaired_attention(torch.tensor([[[-1.0, 0.0]]]), torch.tensor([[[2e5, 1.0], [0.0, 7.0], [0.0, 9.0]]]), _one)
torch.testing.assert_close(_far, torch.tensor([[[2e5, 1.0]]]))
### END HIDDEN TESTS

# %%
memory[1, 3:] = torch.nan  # the padding of "The cat sat"
contexts = {
    "published": published_attention(q, memory, keep),
    "repaired": repaired_attention(q, memory, keep),
    "attend": attend(q, memory, memory, keep[:, None]),
}
for name, context in contexts.items():
    print(f"{name:9} examples with NaN in a context:", context.isnan().any(-1).any(-1).tolist())

# %% [markdown]
# The last line is `attend` of section 4. It has the same hole: its weights are clean, its values are not.
#
# ## Questions
#
# Answer in your head first, then open.
#
# <details><summary><b>1.</b> To silence a complaint about dtypes, somebody passes <code>mask.float()</code> to <code>F.scaled_dot_product_attention</code>. Six keys have equal scores, two of them are kept. How much weight do the four hidden ones get?</summary>
#
# **0.42.** A mask of numbers is *added*: kept keys get $+1$, hidden ones $+0$. The hidden share is $4 / (4 + 2e) = 0.42$, down from 0.67.
# Nothing crashes, and the padding is still read.
#
# * *0, since 0.0 is False:* a tensor of numbers is not asked for its truth.
# * *An error:* a float mask is legal, it means something else.
#
# </details>
# <details><summary><b>2.</b> A causal mask hides nearly half of all scores. Is masked attention twice as fast?</summary>
#
# **No.** In your `masked_softmax` every score is computed first and replaced afterwards, so that a mask costs a little time rather than saving any.
# Only code that knows the mask *beforehand* can skip whole blocks of it; FlashAttention does so for the causal mask.
#
# * *Yes, zeros cost nothing:* a matrix product multiplies zeros like all other numbers.
# * *Yes, softmax has half as many terms:* it has the same number; the hidden ones are $e$ to a very low number.
#
# </details>
# <details><summary><b>3.</b> A model has 32 layers and a sliding window of 4096. How many tokens back can its last layer hear?</summary>
#
# **131 040,** that is $32 \cdot 4095$. Each layer reaches 4095 tokens further than the one below it. That is how far information *can* travel; how much of
# it survives 32 rounds of mixing is another matter.
#
# * *4095:* that is one layer.
# * *All of them, since attention is global:* not with this mask.
#
# </details>
# <details><summary><b>4.</b> In half precision, with scores near 0, somebody hides padding by adding −65504 and the future by adding −65504 again. Which rows break?</summary>
#
# **Those with nothing to see, though without a NaN.** Keys hidden twice are at $-131\,008$, beyond the end of `float16`, so $-\infty$. But a
# query's own key is never in its future, so each row has a key that was hidden at most once, at $-65504$. In a row with nothing to see,
# the keys hidden once share all the weight: padding, and tokens of the future. A row with one kept key is fine.
#
# * *None:* nothing crashes, but a row with nothing to see should get 0.
# * *They give NaN:* only if every key were hidden twice, as by two masks that both hide padding.
# * *All of them:* $e^{-\infty} = 0$ is just what a hidden key should have, if another one is left.
#
# </details>
#
# ## Recap
#
# Which exercises are right and which are open shows here; run the cell whenever you like. To run everything above a cell: Run, Run All
# Above Selected Cell (in Colab: Runtime, Run before).

# %%
check.progress()

# %% [markdown]
# You wrote the masks that hide padding, the future and the distant past; joined them; wrote a softmax that obeys them at every
# precision, even with nothing to see; translated them for a library that thinks the other way round; and saw that a mask on the
# weights does not protect the sum.
#
# **Where it lives in real models.** GPT-2 has your `causal_mask` in all its layers; GPT-3 takes turns, one layer with it and one with a
# narrower band like your `sliding_window_mask`, which is also what Mistral 7B used, and Longformer (without the causal half, for
# reading). Lesson 07 meets padded *sentences* in padded documents, and rows with nothing to see.
#
# **Next.** Lesson 06 lets one sentence attend to another: there the padding is that of the source, and the queries are those of the
# target.
#
# **References**
#
# * Vaswani et al. (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762): section 3.2.3 has the causal mask of the decoder.
# * Micikevicius et al. (2018), [Mixed precision training](https://arxiv.org/abs/1710.03740): what fits into 16 bits and what does not.
# * Beltagy, Peters, Cohan (2020), [Longformer](https://arxiv.org/abs/2004.05150): attention through a sliding window.
# * Jiang et al. (2023), [Mistral 7B](https://arxiv.org/abs/2310.06825): a causal sliding window, and its reach through a stack of layers.
# * Dong et al. (2024), [Flex Attention](https://arxiv.org/abs/2412.05496): masks as small programs, so that hidden blocks are never computed.
# * PyTorch, [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html) and [MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html): the two conventions, in their own words.
