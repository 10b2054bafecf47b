# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · Multi-head attention
#
# **At the end of this lesson you own the attention layer that transformers are built from. It agrees with PyTorch's own to six
# decimal places, and you can say what a head costs, what it brings, and how one misplaced `view` spoils it without a warning.**
# These are the maps that your layer will draw:
#
# ![Two maps of attention weights over the six tokens of "The cat sat on the mat": in head 1 sat finds cat, in head 2 sat finds mat](attachment:cover.png)
#
# | | |
# |---|---|
# | time | 90 minutes |
# | difficulty | moderate; most of the care goes into axes |
# | builds on | lesson 01: queries, keys, values, √d; lesson 02: softmax |
# | you will write | 6 functions and a layer, none longer than 12 lines, a counterexample and a repair |
#
# Each exercise has a cell with `# TODO`, and below it a cell that checks your answer. A check never shows you the solution; it
# tells you what it saw, what it expected and, when it recognises your mistake, which one it is.

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
import contextlib
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_course import check, device, plots

device.seed(3)
where = device.pick()
check.start("03")

# %% [markdown]
# ## 1 · One softmax has one unit to spend
#
# In lesson 01 the verb of **The cat sat on the mat** looked for its subject, and gave "cat" 0.80 of its weight. But a verb has more
# than one question. *Who* sat? *Where*? Suppose it asks both at once: its query matches everything alive, and every surface.
#
# Work it out by hand. A match scores 3 and $e^3 \approx 20$; all other tokens score 0 and $e^0 = 1$. Six tokens:
#
# | "sat" matches | each match gets |
# |---|---|
# | one token | $20 / (20 + 5) = 0.80$ |
# | two tokens | $20 / (2 \cdot 20 + 4) = 0.45$ |
# | three tokens | $20 / (3 \cdot 20 + 3) = 0.32$ |
#
# A row of weights sums to 1, so each further question takes its share from the others. And what comes home is a mixture: with 0.45 of
# "cat" and 0.45 of "mat", the context of "sat" speaks of something half alive and half a surface. Which part was the answer to
# *who*, and which to *where*, can no longer be told.
#
# Here are the six tokens and their features again. Every pair in `asks` is one question: a token with the first feature looks for
# tokens with the second.

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

asks = [("action", "alive"), ("thing", "action"), ("pointer", "thing")]  # who? (and which thing?)
asks += [("action", "surface"), ("relation", "surface"), ("surface", "relation")]  # where?


def asking(strength: float) -> tuple[torch.Tensor, torch.Tensor]:
    """W_q and W_k: (6, 6) each, with one channel for each question of ``asks``."""
    W_q, W_k = torch.zeros(6, 6, device=where), torch.zeros(6, 6, device=where)
    for channel, (who, what) in enumerate(asks):
        W_q[channel, features.index(who)] = strength
        W_k[channel, features.index(what)] = 1.0
    return W_q, W_k


# %%
W_q, W_k = asking(strength=3 * math.sqrt(6))  # divided by √6 below, so that a match scores 3
scores = (sentence @ W_q.T) @ (sentence @ W_k.T).transpose(1, 2) / math.sqrt(6)
plots.heatmap(
    torch.softmax(scores, dim=-1)[0],
    rows=tokens,
    columns=tokens,
    title="One softmax, two questions: sat is torn in two",
    alt="Attention weights of a single head over The cat sat on the mat. sat gives 0.45 to cat and 0.45 to mat. mat gives "
    "0.45 to sat and 0.45 to on. cat gives 0.80 to sat, on gives 0.80 to mat. The and the give 0.45 to cat and 0.45 to mat.",
)

# %% [markdown]
# "sat" and "mat" each have two questions and half an answer to both.
#
# The remedy is to ask the questions **side by side**. Give each its own queries and keys, its own softmax with its own unit of
# weight, and its own values to bring home. Each of these small attention layers is called a **head**.
#
# ## 2 · The specification
#
# Must every head have matrices of full size? No. Cut the ones you have. With `d_model` numbers per token and $H$ heads, each head
# gets $d = d_{model} / H$ of the numbers that `W_q`, `W_k` and `W_v` produce, and works with those alone:
#
# $$\mathrm{head}_h = \mathrm{softmax}\!\left(\frac{Q_h K_h^\top}{\sqrt{d}}\right) V_h, \qquad
# \text{output} = [\mathrm{head}_1, \dots, \mathrm{head}_H]\, W_o^\top + b_o .$$
#
# (Tokens are rows; `W_o`, like every weight of `nn.Linear`, is stored as (out, in).) $Q_1$ is made by the first $d$ rows of `W_q`, $Q_2$
# by the next $d$, and so on. The results, $d$ numbers from each head, are put next to each other, which makes `d_model` numbers again. A
# last linear layer, `W_o`, mixes what the heads found.
#
# With 6 numbers and 2 heads, $d = 3$: the six questions of `asks` are shared out, the first three (who) to head 1, the last three
# (where) to head 2. Note the divisor, $\sqrt d$ and not $\sqrt{d_{model}}$, since a dot product now sums 3 products.
#
# A loop over heads in NumPy, for a single sentence, leaves no doubt about any of this. It is slow, and it is the **specification**:
# whatever we build below has to give the same. As in PyTorch's own layer, the four projections have a bias here.


# %% given="numpy_multi_head"
def numpy_multi_head(x: np.ndarray, state: dict[str, np.ndarray], num_heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Multi-head self-attention of one sentence, one head after the other.

    Args:
        x: (T, d_model), the tokens.
        state: W_q.weight, W_q.bias and so on for W_k, W_v, W_o; weights (d_model, d_model), biases (d_model,).
        num_heads: a divisor of d_model.

    Returns:
        output: (T, d_model), and weights: (num_heads, T, T), whose rows sum to 1.
    """
    d = x.shape[1] // num_heads
    contexts, maps = [], []
    for h in range(num_heads):
        own = slice(h * d, (h + 1) * d)  # the rows of W_q, W_k and W_v that belong to this head
        q, k, v = (x @ state[f"W_{name}.weight"][own].T + state[f"W_{name}.bias"][own] for name in "qkv")  # (T, d)
        scores = q @ k.T / math.sqrt(d)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        maps.append(powers / powers.sum(axis=1, keepdims=True))  # (T, T)
        contexts.append(maps[-1] @ v)  # (T, d)
    output = np.concatenate(contexts, axis=1) @ state["W_o.weight"].T + state["W_o.bias"]
    return output, np.stack(maps)


# %% [markdown]
# Feed it the same `W_q` and `W_k`. For the values, let head 1 carry home the features *alive, action, thing* and head 2 the features
# *surface, relation, pointer*; `W_o` puts each back into its own column. (The strength is lower by a factor of
# $\sqrt 2$, because the divisor is too: a match still scores 3.)

# %% given="by_hand"
carried = ["alive", "action", "thing", "surface", "relation", "pointer"]  # head 1 carries the first three
W_q, W_k = asking(strength=3 * math.sqrt(3))
W_v = torch.stack([torch.eye(6, device=where)[features.index(name)] for name in carried])
by_hand = {"W_q.weight": W_q, "W_k.weight": W_k, "W_v.weight": W_v, "W_o.weight": W_v.T.contiguous()}
by_hand |= {f"W_{name}.bias": torch.zeros(6, device=where) for name in "qkvo"}

# %%
arrays = {name: tensor.cpu().numpy() for name, tensor in by_hand.items()}
output, weights = numpy_multi_head(sentence[0].cpu().numpy(), arrays, num_heads=2)
print("output", output.shape, "  weights", weights.shape)
print(f"head 1: sat gives cat {weights[0, 2, 1]:.2f}, mat {weights[0, 2, 5]:.2f}")
print(f"head 2: sat gives cat {weights[1, 2, 1]:.2f}, mat {weights[1, 2, 5]:.2f}")

# %% [markdown]
# The same sentence, the same questions, not one parameter more, and each answer arrives with its 0.80.
#
# ## 3 · Split and merge
#
# The loop serves one head after the other. But all heads do the same arithmetic, so let them be one more **batch axis**: a tensor
# `(B, T, d_model)` becomes `(B, H, T, d)`, and one matrix product over the last two axes serves them all.
#
# By hand: two tokens of four numbers, two heads.
#
# | | numbers | go to head 1 | go to head 2 |
# |---|---|---|---|
# | The | 1 2 3 4 | 1 2 | 3 4 |
# | cat | 5 6 7 8 | 5 6 | 7 8 |
#
# So head 1 should hold the rows (1 2) and (5 6), and head 2 the rows (3 4) and (7 8): **half of every token**. It takes two steps:
#
# 1. **view** as `(B, T, H, d)`: each token's row is cut into $H$ pieces. `view` never moves a number. It reads them in the order in which
#    they stand in memory, 1 2 3 4 5 6 7 8, and cuts elsewhere.
# 2. **transpose** the axes T and H: `(B, H, T, d)`. This is what gathers all the first pieces in head 1, all the second ones in head 2.
#
# Why not ask for `(B, H, T, d)` at once? Because `view` would read on as before: head 1 would get 1 2 3 4 and head 2 5 6 7 8, **whole
# tokens** (where they come out even) rather than a share of each. The shape is right, so nothing complains.
#
# ### Exercise 3.1: split


# %% exercise="split_heads"
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Give every head its share of every token.

    Args:
        x: (B, T, d_model), tokens of d_model numbers.
        num_heads: H, a divisor of d_model.

    Returns:
        (B, H, T, d) with d = d_model / H. Head 1 holds the first d numbers of each token, head 2 the next d, and so on.

    Example:
        x [[[1, 2, 3, 4], [5, 6, 7, 8]]] and 2 heads give [[[[1, 2], [5, 6]], [[3, 4], [7, 8]]]].
    """
    # TODO: cut the last axis into (num_heads, d) with view, then exchange two axes
    ### BEGIN SOLUTION
    B, T, d_model = x.shape
    return x.view(B, T, num_heads, d_model // num_heads).transpose(1, 2)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Write down the three shapes that `x` goes through: `(B, T, d_model)`, `(B, T, H, d)`, `(B, H, T, d)`.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# The three lengths stand in `x.shape`, and `d_model // num_heads` is `d`. The first step is a `view` with four lengths, the second a
# `transpose` of two axes.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `return x.view(B, T, num_heads, ...).transpose(..., ...)`, with the numbers of the axes T and H, counted from 0.
#
# </details>

# %% test="split_heads" points=1
check.exercise("split_heads", split_heads)
### BEGIN HIDDEN TESTS
for _heads in (1, 2, 3, 4, 6, 12):
    _x = torch.randn(2, 5, 12)
    torch.testing.assert_close(split_heads(_x, _heads), torch.stack(_x.chunk(_heads, dim=-1), dim=1))
_x = torch.randn(3, 15, 4).transpose(1, 2)  # not contiguous
torch.testing.assert_close(split_heads(_x, 5), torch.stack(_x.chunk(5, dim=-1), dim=1))
_shuffle = torch.randperm(4)  # shuffled tokens are shuffled within each head, and never change heads
torch.testing.assert_close(split_heads(_x[:, _shuffle], 3), split_heads(_x, 3)[:, :, _shuffle])
assert check.unchanged(split_heads, _x, 3)
assert all(g is not None for g in check.gradients(split_heads, _x, 5))
### END HIDDEN TESTS

# %% [markdown]
# After attention, each head holds a context of $d$ numbers for each token, `(B, H, T, d)`. To hand all of them to `W_o`, go the same way
# back: first exchange the axes, `(B, T, H, d)`, then join the last two to `(B, T, d_model)`.
#
# One obstacle: `transpose` does not move a number either. It only notes that the axes are now read in another order, so that
# neighbours in the tensor are no longer neighbours in memory, and a `view` across such a seam is refused. `reshape` copies the numbers into
# their new order where that is needed. (Calling `.contiguous()` before `.view(...)` does the same.)
#
# ### Exercise 3.2: merge


# %% exercise="merge_heads"
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """Put the heads' numbers next to each other again: the way back from split_heads.

    Args:
        x: (B, H, T, d), what each head holds for each token.

    Returns:
        (B, T, H·d). Each token has the d numbers of the first head, then those of the second, and so on.

    Example:
        x [[[[1, 2], [5, 6]], [[3, 4], [7, 8]]]] gives [[[1, 2, 3, 4], [5, 6, 7, 8]]].
    """
    # TODO: exchange the axes H and T, then join the last two axes with reshape
    ### BEGIN SOLUTION
    B, H, T, d = x.shape
    return x.transpose(1, 2).reshape(B, T, H * d)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The two steps of `split_heads`, in reverse order.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Axes can be joined only if they stand side by side. In `(B, H, T, d)`, the heads and their numbers do not; after one `transpose`
# they do.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `return x.transpose(..., ...).reshape(B, T, ...)`
#
# </details>

# %% test="merge_heads" points=1
check.exercise("merge_heads", merge_heads)
### BEGIN HIDDEN TESTS
for _shape in ((2, 3, 5, 4), (1, 7, 2, 3), (3, 1, 4, 6), (2, 5, 1, 3)):
    _x = torch.randn(_shape)
    torch.testing.assert_close(merge_heads(_x), torch.cat(list(_x.unbind(1)), dim=-1))
_x = torch.randn(2, 6, 12)  # merging undoes splitting
for _heads in (1, 2, 3, 4, 6, 12):
    torch.testing.assert_close(merge_heads(torch.stack(_x.chunk(_heads, dim=-1), dim=1)), _x)
_x = torch.randn(2, 3, 4, 5)
_shuffle = torch.randperm(4)  # tokens keep to themselves
torch.testing.assert_close(merge_heads(_x[:, :, _shuffle]), merge_heads(_x)[:, _shuffle])
assert check.unchanged(merge_heads, _x)
assert all(g is not None for g in check.gradients(merge_heads, _x))
### END HIDDEN TESTS

# %% [markdown]
# Now watch a tensor move. Take the first three tokens with six numbers each, and colour every number by where it comes from: brown
# for the first half of its token, blue for the second, and the darker the later the token.

# %% given="coloured"
shade = torch.tensor([[1.0], [2.0], [3.0]], device=where)
coloured = torch.cat([shade.expand(3, 3), -shade.expand(3, 3)], dim=1)[None]  # (1, 3, 6)

# %%
plots.small_multiples(
    [coloured[0]],
    titles=[""],
    rows=tokens[:3],
    columns=["1", "2", "3", "4", "5", "6"],
    ylabel="token",
    xlabel="number",
    title="Before: each token has a brown and a blue half",
    alt="A tensor of three rows, The, cat and sat, and six columns. The left half of each row is brown, the right half blue. "
    "The row of The is the palest and that of sat the darkest.",
    diverging=True,
    colorbar=False,
)

# %% [markdown]
# Move the slider from step to step. Each panel is one slice along the last two axes, which is what a matrix product sees. (Where no
# slider can be shown, two pictures stand in for it.)

# %%
split, wrong = split_heads(coloured, 2), coloured.view(1, 2, 3, 3)
first = tokens[:3]
in_order = "Head 1 is all brown and head 2 all blue, and in both the rows get darker from The to sat."
mixed = "Head 1 holds both halves of The and the brown half of cat, head 2 the blue half of cat and both halves of sat."
steps = {  # the slices of the tensor, what each of them is, what its rows are, and the finding
    "1. view": (coloured.view(3, 2, 3), first, ["piece 1", "piece 2"], "1. view cuts each token into two pieces"),
    "2. transpose": (split[0], ["head 1", "head 2"], first, "2. transpose gathers by head: half of every token"),
    "3. merge": (merge_heads(split), [""], first, "3. merge puts every number back in its place"),
    "view alone": (
        wrong[0],
        ["head 1", "head 2"],
        first,
        "A view alone deals the halves out in order: cat is torn between the heads",
    ),
    "2. transpose, or a view alone": (
        torch.cat([split[0], wrong[0]]),
        ["head 1", "head 2", "view alone: head 1", "view alone: head 2"],
        first,
        "2. transpose gives each head its half of every token; a view alone never shows sat to head 1",
    ),
}
words = {
    "1. view": "Three panels, The, cat and sat, of two rows each: the upper row is brown, the lower one blue.",
    "2. transpose": f"Two panels of three rows. {in_order}",
    "3. merge": "Three rows of six numbers as before: the left half of each is brown, the right half blue.",
    "view alone": f"Two panels of three rows. {mixed}",
    "2. transpose, or a view alone": f"Four panels of three rows. {in_order} After a view alone: {mixed}",
}


def draw_step(step: str) -> None:
    """Draw the slices of one step of the journey."""
    slices, titles, rows, title = steps[step]
    stands_for = {"1. view": "piece of the token", "3. merge": "token"}
    plots.small_multiples(
        list(slices),
        titles=titles,
        rows=rows,
        columns=[str(i + 1) for i in range(slices.shape[-1])],
        ylabel=stands_for.get(step, "stands for the token"),
        xlabel="number in the row",
        title=title,
        alt=words[step],
        diverging=True,
        colorbar=False,
    )


def draw_two_steps() -> None:
    """The pictures in place of the slider."""
    draw_step("1. view")
    draw_step("2. transpose, or a view alone")


print("merging gives back what was split:", torch.equal(merge_heads(split), coloured))
plots.interactive(draw_step, name="step", options=list(steps)[:4], still=draw_two_steps)

# %% [markdown]
# Compare the right split and the view alone. Both tensors have the shape `(1, 2, 3, 3)`. In the first, the row of "cat" holds a piece of
# "cat" in both heads. In the second, the row that attention takes for "cat" holds the blue half of "The" in head 1, and the brown
# half of "sat" in head 2.
#
# ## 4 · Attention for all heads at once
#
# With the heads as a batch axis, the formula of lesson 01 needs no loop: `@` and `transpose(-2, -1)` look at the last two axes only and
# carry any number of axes in front. As there, queries and keys have $d_k$ numbers and values $d_v$. (In the layer $d_k = d_v = d$; the
# function does not need them to be equal.) Two additions make it fit for real work.
#
# **A mask** says which keys a query may look at. It is a tensor of booleans, and **True means keep**. Its shape may be anything that
# broadcasts to `(B, H, Tq, Tk)`: `(Tq, Tk)` for one rule that holds everywhere, `(B, 1, 1, Tk)` for keys that are switched off for a whole
# sentence, such as padding. A key that is not kept must get weight 0, and the others must share the whole unit. So the mask acts on
# the scores, *before* the softmax: a score far below all others has the weight $e^{-\text{huge}} = 0$. By hand, three keys with score 0:
#
# | mask | weights |
# |---|---|
# | True True True | 0.33 0.33 0.33 |
# | True False True | 0.50 0 0.50 |
# | False False False | 0 0 0 |
#
# The last row needs care. If everything is masked, nothing can sum to 1. With $-\infty$ for all scores softmax gives $0/0$, a `nan` that spreads into all
# that is computed from it. With the lowest finite number for all scores, softmax sees equal scores and gives 0.33 to each, as if nothing were masked.
# Neither will do: this course asks for weights of 0, so the context is 0 as well. The second way is easily mended, since it gives
# numbers: set the masked weights to 0 once more *after* the softmax. It changes nothing in rows where a key is kept.
#
# **Dropout** (Srivastava and others) is for training alone. Each weight is set to 0 with probability $p$, and those that survive are
# divided by $1 - p$. With
# $p = 0.5$, the weights (0.8, 0.2) become (1.6, 0.4), (1.6, 0), (0, 0.4) or (0, 0), with equal chance. On average
# that is (0.8, 0.2) again, but no query can rely on one key alone. `F.dropout(weights, p)` does it. The context is made with the
# thinned-out weights; the weights that are *returned*, to be looked at, are those before dropout.
#
# ### Exercise 3.3: scaled dot-product attention


# %% exercise="scaled_dot_product_attention"
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention for all examples and all heads at once.

    Args:
        q: (B, H, Tq, d_k), the queries. k: (B, H, Tk, d_k), the keys. v: (B, H, Tk, d_v), the values.
        mask: booleans that broadcast to (B, H, Tq, Tk). True = keep. None keeps everything.
        dropout_p: probability, from 0 to 1, with which each weight is dropped. At 1 all of them are.

    Returns:
        context: (B, H, Tq, d_v), made with the weights after dropout,
        weights: (B, H, Tq, Tk), before dropout. A row in which nothing is kept has weights 0 and context 0.

    Example:
        q [[[[0]]]], k [[[[1], [2], [3]]]], v [[[[6], [7], [8]]]] and mask [True, False, True]
        give context [[[[7]]]] and weights [[[[0.5, 0, 0.5]]]].
    """
    # TODO: scores; masked ones to the lowest finite number; softmax; masked weights to 0; dropout; average the values
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return F.dropout(weights, dropout_p) @ v, weights
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Write it without mask and dropout first; that is lesson 01 in three lines. Then ask what has to be done, if there is a mask, before
# the softmax, and what after it.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `x.masked_fill(condition, number)` writes the number where the condition is True, and the mask says True for what *stays*: use
# `~mask`. The lowest finite number is `torch.finfo(scores.dtype).min`. Dropout goes between the weights and the values.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `scores = scores.masked_fill(~mask, ...)`, then the softmax over the keys, then `weights = weights.masked_fill(~mask, ...)`, and
# `return F.dropout(weights, ...) @ v, weights`.
#
# </details>

# %% test="scaled_dot_product_attention" points=2
check.exercise("scaled_dot_product_attention", scaled_dot_product_attention)
### BEGIN HIDDEN TESTS
_q, _k, _v = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 7)
_context, _weights = scaled_dot_product_attention(_q, _k, _v)
torch.testing.assert_close(_context, F.scaled_dot_product_attention(_q, _k, _v), rtol=1e-4, atol=1e-5)
torch.testing.assert_close(_weights.sum(-1), torch.ones(2, 3, 4), rtol=1e-4, atol=1e-5)
_powers = torch.exp(torch.einsum("bhid,bhjd->bhij", _q, _k) / 6**0.5)
_first = torch.arange(5) < torch.tensor([[3], [1]])  # (B, Tk): the sentences have 3 tokens and 1
_rows = torch.rand(4, 5) < 0.5
_rows[:, 2] = True
_rows[1] = False  # one query that may look at nothing
for _mask in (_rows, _first[:, None, None], torch.rand(2, 1, 4, 5) < 0.4, torch.rand(2, 3, 4, 5) < 0.3):
    _kept = _powers * _mask
    _right = _kept / _kept.sum(-1, keepdim=True).clamp(min=1e-20)
    _context, _weights = scaled_dot_product_attention(_q, _k, _v, _mask)
    torch.testing.assert_close(_weights, _right, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(_context, _right @ _v, rtol=1e-4, atol=1e-5)
    assert check.unchanged(scaled_dot_product_attention, _q, _k, _v, _mask)
    assert all(torch.isfinite(g).all() for g in check.gradients(scaled_dot_product_attention, _q, _k, _v, _mask))
_other_k, _other_v = _k.clone(), _v.clone()  # what is masked may be anything
_other_k[0, :, 3:], _other_v[0, :, 3:] = 50.0, -300.0
_context, _ = scaled_dot_product_attention(_q, _k, _v, _first[:, None, None])
_again, _ = scaled_dot_product_attention(_q, _other_k, _other_v, _first[:, None, None])
torch.testing.assert_close(_again, _context, rtol=1e-4, atol=1e-5)
_far, _ = scaled_dot_product_attention(200 * _q, _k, _v)  # no score is too large
torch.testing.assert_close(_far, F.scaled_dot_product_attention(200 * _q, _k, _v), rtol=1e-2, atol=1e-3)
### END HIDDEN TESTS

# %% [markdown]
# That check dropped nothing, or everything. What can be said for certain in between? Let 200 queries look at a single key, whose
# value is 64 ones. Each query has one weight, a 1. With $p = 0.5$ it is dropped or doubled, so the context of a query is 64 zeros or
# 64 twos.

# %% test="scaled_dot_product_attention-dropout" points=1
with contextlib.redirect_stdout(None):  # the check above once more; what it shows need not be read twice
    check.exercise("scaled_dot_product_attention", scaled_dot_product_attention)
_title = "scaled_dot_product_attention with dropout (exercise 3.3)"
_query, _key, _ones = torch.zeros(1, 1, 200, 4), torch.zeros(1, 1, 1, 4), torch.ones(1, 1, 1, 64)
_rows = scaled_dot_product_attention(_query, _key, _ones, None, 0.5)[0][0, 0]  # (200, 64)
if not torch.allclose(_rows, _rows[:, :1].expand(200, 64)):
    raise check.CheckFailed(
        _title,
        "dropout does not act on the weights.",
        observed="with dropout_p = 0.5, the 64 numbers of one context are not all the same",
        expected="64 zeros or 64 twos: the only weight is dropped or doubled, and it counts for all 64 numbers",
        cause="It is the weights that are dropped, not numbers of the values or of the context.",
    )
_seen = sorted({round(n, 4) for n in _rows[:, 0].tolist()})
if _seen != [0.0, 2.0]:
    raise check.CheckFailed(
        _title,
        "dropout does not do what it should.",
        observed=f"with dropout_p = 0.5, the contexts of 200 queries are made of {_seen[:6]}",
        expected="[0.0, 2.0]: some weights are dropped, the others are divided by 1 - 0.5",
        cause="F.dropout(weights, dropout_p) drops each weight on its own, and divides those that survive by 1 - dropout_p.",
    )
print("✓ Dropout acts on the weights and on nothing else.")
### BEGIN HIDDEN TESTS
_q, _k = torch.randn(4, 3, 20, 6), torch.randn(4, 3, 40, 6)
_identity = torch.eye(40).expand(4, 3, 40, 40)  # with it for values, the context is the weights after dropout
_dropped, _weights = scaled_dot_product_attention(_q, _k, _identity, None, 0.25)
torch.testing.assert_close(_weights, torch.softmax(_q @ _k.mT / 6**0.5, -1), rtol=1e-4, atol=1e-5)
_gone = _dropped == 0
torch.testing.assert_close(_dropped[~_gone], _weights[~_gone] / 0.75, rtol=1e-4, atol=1e-5)
assert 0.2 < _gone.float().mean().item() < 0.3
assert not (_gone == _gone[:, :, :1]).all(-1).all(-1).any()  # each query draws for itself,
assert not (_gone == _gone[:1]).all(-1).all(-1)[1:].any()  # so does each sentence
assert not (_gone == _gone[:, :1]).all(-1).all(-1)[:, 1:].any()  # and each head
### END HIDDEN TESTS

# %% [markdown]
# PyTorch has the same as one call, `F.scaled_dot_product_attention`. It agrees on what a mask of booleans means, and it returns the context alone,
# because its fast versions never hold all the weights (lesson 11 builds one).

# %%
# In 64 bits: the fast versions for graphics cards may round 32-bit numbers more coarsely than yours does.
q, k = device.randn(2, 3, 4, 5, seed=1).double(), device.randn(2, 3, 6, 5, seed=2).double()
v = device.randn(2, 3, 6, 7, seed=3).double()
mask = torch.ones(4, 6, dtype=torch.bool, device=where).tril(diagonal=2)  # query i keeps the keys 0 to i + 2
for name, kept in (("no mask", None), ("a mask", mask)):
    context, _ = scaled_dot_product_attention(q, k, v, kept)
    library = F.scaled_dot_product_attention(q, k, v, attn_mask=kept)
    print(f"{name}: agrees with PyTorch to 1e-6:", (context - library).abs().max().item() < 1e-6)

# %% [markdown]
# ## 5 · The layer
#
# Put it together. The layer takes three inputs: `query`, the tokens that ask, and `key` and `value`, the tokens that are looked at. For
# self-attention all three are the same tensor. A translator's decoder asks the encoder's tokens, so there they differ, and may differ in
# length (lesson 06).
#
# | step | shape of the queries | |
# |---|---|---|
# | `W_q`, `W_k`, `W_v` | `(B, Tq, d_model)` | each `nn.Linear(d_model, d_model)`, with bias, as is `W_o` |
# | split | `(B, H, Tq, d)` | exercise 3.1 |
# | attend | `(B, H, Tq, d)` | exercise 3.3 |
# | merge | `(B, Tq, d_model)` | exercise 3.2 |
# | `W_o` | `(B, Tq, d_model)` | the heads' findings, mixed |
#
# Dropout is for training. Every `nn.Module` has a flag `self.training`: True at first, False after `.eval()`. Your function knows nothing of it, and
# neither does `F.scaled_dot_product_attention`: whoever hands either of them a probability gets dropout. So hand on 0 when `self.training` is False.
#
# ### Exercise 3.4: multi-head attention


# %% exercise="MultiHeadAttention"
class MultiHeadAttention(nn.Module):
    """Multi-head attention with four projections.

    Args:
        d_model: numbers of each token. num_heads: a divisor of d_model.
        dropout: probability with which a weight is dropped in training.

    The projections are called W_q, W_k, W_v and W_o, each nn.Linear(d_model, d_model) with its bias.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0):
        super().__init__()
        # TODO: keep num_heads and dropout; make self.W_q, self.W_k, self.W_v and self.W_o
        ### BEGIN SOLUTION
        self.num_heads, self.dropout = num_heads, dropout
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))
        ### END SOLUTION

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Let every query look at every key that the mask keeps.

        Args:
            query: (B, Tq, d_model), the tokens that ask. key, value: (B, Tk, d_model), the tokens that are looked at.
            mask: booleans that broadcast to (B, H, Tq, Tk), True = keep.

        Returns:
            output: (B, Tq, d_model), and weights: (B, H, Tq, Tk), before dropout.
        """
        # TODO: project, split, attend (dropout only while self.training), merge, W_o; return output and weights
        ### BEGIN SOLUTION
        q = split_heads(self.W_q(query), self.num_heads)  # (B, H, Tq, d)
        k = split_heads(self.W_k(key), self.num_heads)  # (B, H, Tk, d)
        v = split_heads(self.W_v(value), self.num_heads)
        dropout_p = self.dropout if self.training else 0.0
        context, weights = scaled_dot_product_attention(q, k, v, mask, dropout_p)
        return self.W_o(merge_heads(context)), weights
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Go down the table: each row is one call to something that you have, either a layer or a function.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `W_q` belongs to `query`, `W_k` to `key`, `W_v` to `value`, and each of the three results is split. The dropout probability is
# `self.dropout if self.training else 0.0`.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `q = split_heads(self.W_q(...), ...)`, the same for `k` and `v`, then `context, weights = scaled_dot_product_attention(q, k, v, ..., ...)`,
# and `return self.W_o(...), weights`.
#
# </details>

# %% test="MultiHeadAttention" points=3
check.exercise("MultiHeadAttention", MultiHeadAttention)
### BEGIN HIDDEN TESTS
_layer = MultiHeadAttention(20, 4).eval()
_state = {f"W_{n}.weight": 0.3 * torch.randn(20, 20) for n in "qkvo"}
_state |= {f"W_{n}.bias": 0.3 * torch.randn(20) for n in "qkvo"}
_layer.load_state_dict(_state)
_x, _y, _z = torch.randn(2, 3, 20), torch.randn(2, 6, 20), torch.randn(2, 6, 20)
_outputs, _maps = zip(
    *[numpy_multi_head(x.numpy(), {n: t.numpy() for n, t in _state.items()}, 4) for x in _x], strict=True
)
_output, _weights = _layer(_x, _x, _x)  # what the specification says
torch.testing.assert_close(_output, torch.from_numpy(np.stack(_outputs)), rtol=1e-4, atol=1e-5)
torch.testing.assert_close(_weights, torch.from_numpy(np.stack(_maps)), rtol=1e-4, atol=1e-5)
_torch = nn.MultiheadAttention(20, 4, batch_first=True).eval()  # what PyTorch says, with a mask and other lengths
_names = {"in_proj_weight": torch.cat([_state[f"W_{n}.weight"] for n in "qkv"])}
_names["in_proj_bias"] = torch.cat([_state[f"W_{n}.bias"] for n in "qkv"])
_torch.load_state_dict(_names | {"out_proj.weight": _state["W_o.weight"], "out_proj.bias": _state["W_o.bias"]})
_mask = torch.rand(3, 6) < 0.5
_mask[:, 4] = True
_right, _map = _torch(_x, _y, _z, attn_mask=~_mask, average_attn_weights=False)
_output, _weights = _layer(_x, _y, _z, _mask)
torch.testing.assert_close(_output, _right.detach(), rtol=1e-4, atol=1e-5)
torch.testing.assert_close(_weights, _map.detach(), rtol=1e-4, atol=1e-5)
_shuffle = torch.randperm(6)  # the order of the tokens that are looked at does not matter
_again, _ = _layer(_x, _y[:, _shuffle], _z[:, _shuffle], _mask[:, _shuffle])
torch.testing.assert_close(_again, _output, rtol=1e-4, atol=1e-5)
_mask[1] = False  # a query that may look at nothing gets the bias of W_o
_output, _ = _layer(_x, _y, _z, _mask)
torch.testing.assert_close(_output[:, 1], _state["W_o.bias"].expand(2, 20), rtol=1e-4, atol=1e-5)
assert check.parameters(_layer) == {n: tuple(t.shape) for n, t in _state.items()}
### END HIDDEN TESTS

# %% [markdown]
# The check above used the layer in evaluation. This one looks at training. With `dropout=1.0` every weight is dropped, so nothing
# but the bias of `W_o` may come out. With `dropout=0.5` and a sentence of one token, each head has a single weight: all numbers of the
# head are lost, or all are doubled.

# %% test="MultiHeadAttention-training" points=1
with contextlib.redirect_stdout(None):  # the check above once more; what it shows need not be read twice
    check.exercise("MultiHeadAttention", MultiHeadAttention)
_layer = MultiHeadAttention(4, 2, dropout=1.0)  # a new layer is in training
_state = {f"W_{n}.weight": torch.eye(4) for n in "qkvo"}
_state |= {f"W_{n}.bias": torch.tensor([1.0, 2.0, 3.0, 4.0]) for n in "qkvo"}
_layer.load_state_dict(_state)
_output, _weights = _layer(*[torch.zeros(1, 2, 4)] * 3)
_title = "MultiHeadAttention in training (exercise 3.4)"
if not torch.allclose(_weights, torch.full((1, 2, 2, 2), 0.5)):
    raise check.CheckFailed(
        _title,
        "the weights that are returned should be those before dropout.",
        observed=f"{_weights.flatten().tolist()} with dropout = 1",
        expected="0.5 everywhere, since both keys are equal",
    )
if not torch.allclose(_output, _state["W_o.bias"].expand(1, 2, 4)):
    raise check.CheckFailed(
        _title,
        "dropout does not do what it should.",
        observed=f"for the first token, {[round(n, 4) for n in _output[0, 0].tolist()]} with dropout = 1",
        expected="[1.0, 2.0, 3.0, 4.0], the bias of W_o: all weights are dropped, nothing else is",
        cause="While self.training is True, hand self.dropout on to scaled_dot_product_attention. It is the weights that "
        "are dropped, not numbers of the values, of the context or of the output.",
    )
_layer = MultiHeadAttention(128, 2, dropout=0.5)
_layer.load_state_dict(
    {f"W_{n}.weight": torch.eye(128) for n in "qkvo"} | {f"W_{n}.bias": torch.zeros(128) for n in "qkvo"}
)
_heads = _layer(*[torch.ones(200, 1, 128)] * 3)[0].reshape(200, 2, 64)  # 200 sentences of one token
if not torch.allclose(_heads, _heads[..., :1].expand(200, 2, 64)):
    raise check.CheckFailed(
        _title,
        "dropout does not act on the weights.",
        observed="with dropout = 0.5 and all projections the identity, a token of ones comes out with different numbers "
        "in one head",
        expected="64 zeros or 64 twos: the only weight of the head is dropped or doubled",
        cause="It is the weights that are dropped, not numbers of the values or of the context. If "
        "scaled_dot_product_attention does it for you, run its dropout check (exercise 3.3) first.",
    )
print("✓ In training, dropout acts on the weights and on nothing else.")
### BEGIN HIDDEN TESTS
_layer = MultiHeadAttention(6, 3, dropout=0.5)
_state = {f"W_{n}.weight": torch.eye(6) for n in "qkvo"} | {f"W_{n}.bias": torch.zeros(6) for n in "qkvo"}
_layer.load_state_dict(_state)
_x = 1 + torch.rand(400, 1, 6)  # one token: its weight in each head is 1, dropped or doubled
_output, _weights = _layer(_x, _x, _x)
_factor = (_output / _x).reshape(400, 3, 2)
assert torch.allclose(_weights, torch.ones(400, 3, 1, 1))
assert torch.allclose(_factor[..., 0], _factor[..., 1], atol=1e-4)  # a head is dropped as a whole
assert torch.allclose(_factor * (_factor - 2), torch.zeros(400, 3, 2), atol=1e-3)  # 0 or 2
assert 0.4 < (_factor[..., 0] > 1).float().mean().item() < 0.6
_layer.eval()
torch.testing.assert_close(_layer(_x, _x, _x)[0], _x, rtol=1e-4, atol=1e-5)
### END HIDDEN TESTS

# %% [markdown]
# Load the weights that we set by hand and draw what the layer sees. A head cuts its own share out of the same four matrices.

# %% tags=["cover"]
layer = MultiHeadAttention(d_model=6, num_heads=2).to(where).eval()
layer.load_state_dict(by_hand)
output, weights = layer(sentence, sentence, sentence)
plots.small_multiples(
    list(weights[0]),
    titles=["head 1: who does it?", "head 2: where does it happen?"],
    rows=tokens,
    columns=tokens,
    title="Two heads, two units of weight: sat finds cat in one and mat in the other",
    alt="Attention weights of two heads over The cat sat on the mat. In head 1, sat gives 0.80 to cat, cat and mat give 0.80 to sat, "
    "The and the give 0.45 each to cat and mat, and on spreads evenly. In head 2, sat and on give 0.80 to mat, mat gives 0.80 "
    "to on, and The, cat and the spread evenly.",
    numbers=True,
)

# %%
expected, _ = numpy_multi_head(sentence[0].cpu().numpy(), arrays, num_heads=2)
print(
    "agrees with the loop over heads to 1e-6:", bool(np.abs(output[0].detach().cpu().numpy() - expected).max() < 1e-6)
)
received = dict(zip(features, output[0, tokens.index("sat")].tolist(), strict=True))
print("sat receives", ", ".join(f"{name} {amount:.2f}" for name, amount in received.items()))

# %% [markdown]
# "sat" now learns that something alive did it and that it happened on a surface, 0.80 of each, where one softmax had 0.45 for both.
#
# Look at the pale rows, too. In head 2, "cat" has nothing to ask: its query is 0, all scores are equal, and it spreads its unit over
# all six tokens. **A head has no way to say "nothing"**; its weights sum to 1 whether it found something or not. Section 8 measures what
# that does.
#
# ## 6 · The same as PyTorch's
#
# `nn.MultiheadAttention` computes what your layer does. If you can carry the weights over and get the same numbers, you
# have understood every axis of both. It keeps its parameters under other names:
#
# | yours | PyTorch's | shape |
# |---|---|---|
# | `W_q.weight`, `W_k.weight`, `W_v.weight` | `in_proj_weight`: all three, one **below** the other | `(3 · d_model, d_model)` |
# | `W_q.bias`, `W_k.bias`, `W_v.bias` | `in_proj_bias`: all three, end to end | `(3 · d_model,)` |
# | `W_o.weight` | `out_proj.weight` | `(d_model, d_model)` |
# | `W_o.bias` | `out_proj.bias` | `(d_model,)` |
#
# One tall matrix in place of three means one large product in place of three small ones (in self-attention). By hand, with `d_model = 1`:
# the weights
# [[1]], [[2]], [[3]] and [[4]] of q, k, v and o become `in_proj_weight` [[1], [2], [3]] and `out_proj.weight` [[4]].
#
# A `state_dict` is a dictionary from names to tensors. Take yours apart and make PyTorch's four tensors of it, in the order of this
# tuple, so that `dict(zip(torch_names, ...))` gives them their names.

# %% given="torch_names"
torch_names = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")

# %% [markdown]
# ### Exercise 3.5: copy to PyTorch


# %% exercise="copy_to_torch"
def copy_to_torch(
    state: dict[str, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Make the four parameters of nn.MultiheadAttention from the eight of a MultiHeadAttention.

    Args:
        state: W_q.weight, W_k.weight, W_v.weight, W_o.weight: (d_model, d_model) each, and W_q.bias, W_k.bias,
            W_v.bias, W_o.bias: (d_model,) each.

    Returns:
        in_proj_weight: (3·d_model, d_model), in_proj_bias: (3·d_model,), out_proj.weight: (d_model, d_model) and
        out_proj.bias: (d_model,).

    Example:
        weights [[1]], [[2]], [[3]], [[4]] and biases [5], [6], [7], [8] of q, k, v and o
        give [[1], [2], [3]], [5, 6, 7], [[4]] and [8].
    """
    # TODO: join the weights of q, k and v with torch.cat, and their biases; take those of o as they are
    ### BEGIN SOLUTION
    in_proj_weight = torch.cat([state[f"W_{name}.weight"] for name in "qkv"])
    in_proj_bias = torch.cat([state[f"W_{name}.bias"] for name in "qkv"])
    return in_proj_weight, in_proj_bias, state["W_o.weight"], state["W_o.bias"]
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Four tensors are to be returned. Two of them are in `state` already.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `torch.cat([a, b, c])` joins along the first axis: three matrices of shape `(d_model, d_model)` become one of
# `(3 · d_model, d_model)`. Both your layer and PyTorch's keep weights as (out, in), so nothing has to be transposed.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `in_proj_weight = torch.cat([state["W_q.weight"], ..., ...])`, the same for the biases, and
# `return in_proj_weight, in_proj_bias, state[...], state[...]`.
#
# </details>

# %% test="copy_to_torch" points=2
check.exercise("copy_to_torch", copy_to_torch)
### BEGIN HIDDEN TESTS
for _d, _heads in ((6, 2), (15, 5), (8, 1)):
    _state = {f"W_{n}.weight": 0.3 * torch.randn(_d, _d) for n in "kovq"}
    _state |= {f"W_{n}.bias": 0.3 * torch.randn(_d) for n in "ovkq"}
    _torch = nn.MultiheadAttention(_d, _heads, batch_first=True).eval()
    _torch.load_state_dict(dict(zip(torch_names, copy_to_torch(_state), strict=True)))
    _x = torch.randn(2, 4, _d)
    _output, _map = _torch(_x, _x, _x, average_attn_weights=False)
    for _i in range(2):
        _right, _maps = numpy_multi_head(_x[_i].numpy(), {n: t.numpy() for n, t in _state.items()}, _heads)
        np.testing.assert_allclose(_output[_i].detach().numpy(), _right, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(_map[_i].detach().numpy(), _maps, rtol=1e-4, atol=1e-5)
assert check.unchanged(copy_to_torch, _state)
### END HIDDEN TESTS

# %%
mine = MultiHeadAttention(d_model=24, num_heads=4).to(where).eval()
own = {name: 0.1 * device.randn(*t.shape, seed=seed) for seed, (name, t) in enumerate(mine.state_dict().items())}
mine.load_state_dict(own)
library = nn.MultiheadAttention(24, 4, batch_first=True).to(where).eval()
library.load_state_dict(dict(zip(torch_names, copy_to_torch(mine.state_dict()), strict=True)))

x, y = device.randn(2, 5, 24, seed=10), device.randn(2, 7, 24, seed=11)
output, weights = mine(x, y, y)
library_output, library_weights = library(x, y, y, average_attn_weights=False)
print("weights", tuple(weights.shape), "agree to 1e-6:", (weights - library_weights).abs().max().item() < 1e-6)
print("output ", tuple(output.shape), "agrees to 1e-6:", (output - library_output).abs().max().item() < 1e-6)

# %% [markdown]
# Left to itself, `nn.MultiheadAttention` returns the weights *averaged over its heads*; `average_attn_weights=False` asks for each head's own.
# Be careful with its masks, by the way. There True means *masked*, the opposite of what it means here and in
# `F.scaled_dot_product_attention`. Lesson 05 puts the two side by side.
#
# ## 7 · What heads cost
#
# How many numbers does the layer learn? By hand, with `d_model = 6`: a linear layer from 6 to 6 has a matrix of $6 \cdot 6 = 36$ weights and a
# bias of 6, together 42. There are four such layers: 168. And if the heads were three, or six?
#
# ### Exercise 3.6: count the parameters


# %% exercise="count_parameters"
def count_parameters(d_model: int, num_heads: int, bias: bool = True) -> int:
    """How many parameters does multi-head attention have?

    Args:
        d_model: numbers of each token. num_heads: a divisor of d_model.
        bias: whether each of the four projections has a bias.

    Returns:
        The number of weights and biases, all together.

    Example:
        count_parameters(6, 2) gives 168, and count_parameters(6, 2, bias=False) gives 144.
    """
    # TODO: four linear layers from d_model to d_model; what do the heads change?
    ### BEGIN SOLUTION
    return 4 * d_model * (d_model + bias)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Look for `num_heads` in the `__init__` of your layer. Does the size of any matrix depend on it?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# One layer has `d_model · d_model` weights and, if `bias` is True, `d_model` biases. There are four of them.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `one = d_model * d_model + (... if bias else 0)`, then `return 4 * ...`
#
# </details>

# %% test="count_parameters" points=1
check.exercise("count_parameters", count_parameters)
### BEGIN HIDDEN TESTS
for _d, _heads in ((5, 5), (9, 3), (14, 2), (32, 8), (21, 1)):
    for _bias in (True, False):
        _right = sum(p.numel() for p in nn.MultiheadAttention(_d, _heads, bias=_bias).parameters())
        assert float(count_parameters(_d, _heads, _bias)) == _right
        assert float(count_parameters(_d, 1, _bias)) == _right
assert float(count_parameters(768, 12)) == 2_362_368
### END HIDDEN TESTS

# %% [markdown]
# A layer of the smallest GPT-2 (`d_model = 768`, 12 heads) has $4 \cdot 768 \cdot 769 = 2\,362\,368$ parameters in its attention, and would have as many with one
# head or with 768. Then why not as many heads as possible?
#
# Because each of them looks through fewer numbers. Take $d = 1$: a score is then a product of two plain numbers, $s_{ij} = q_i k_j$. Every query
# with $q_i > 0$ ranks the keys in one and the same order, and every query with $q_i < 0$ in the reverse of it. That is all the choice there is.
# In general, the scores of one head are $Q_h K_h^\top$, a product of matrices that are only $d$ columns wide, so their **rank** is at most $d$. (The
# rank of a matrix is how many of its rows are independent; all others are sums of multiples of these.) Measure both, the parameters and
# the rank, on random tokens and random weights.

# %%
d_model, choices = 64, [1, 2, 4, 8, 16, 32, 64]
x = device.randn(1, 64, d_model, seed=20).double()
W_q, W_k = device.randn(d_model, d_model, seed=21).double(), device.randn(d_model, d_model, seed=22).double()
ranks = []
for num_heads in choices:
    q, k = split_heads(x @ W_q.T, num_heads), split_heads(x @ W_k.T, num_heads)
    ranks.append(torch.linalg.matrix_rank(q[0, 0] @ k[0, 0].T).item())  # the scores of one head: (64, 64)
plots.panels(
    choices,
    [
        ("parameters of the layer", {"": [count_parameters(d_model, h) for h in choices]}),
        ("rank of one head's scores", {"": ranks}),
    ],
    xlabel="number of heads, at 64 numbers per token",
    bottom=[0, 0],
    title="More heads cost no parameters, but each of them sees less",
    alt="Two panels over 1 to 64 heads, for 64 numbers per token. Left: the layer has 16640 parameters at every number of heads. "
    "Right: the rank of one head's scores is 64 with one head and is halved each time the number of heads is doubled, down to 1.",
    logx=True,
)

# %% [markdown]
# That is the trade (Bhojanapalli and others). $H$ heads give each token $H$ units of weight to spend, and each head $1/H$ of the
# numbers to decide with. Large models
# commonly keep $d$ at 64 or 128 and take more heads as `d_model` grows.
#
# ## 8 · What a head brings
#
# Does every head matter? Take one out and see what changes. This is called **ablation**: set the head's context to 0, run the rest of the layer as
# before, and measure how far each token's output moves.
#
# By hand, with `W_o` the identity, one token and two heads of two numbers each. The contexts are (3, 4) and (0, 1), so the output is
# (3, 4, 0, 1). Without head 1 it is (0, 0, 0, 1): it has moved by $\sqrt{3^2 + 4^2} = 5$. Without head 2 it is (3, 4, 0, 0): moved by 1.
#
# ### Exercise 3.7: switch off each head


# %% exercise="head_ablation"
def head_ablation(heads: torch.Tensor, W_o: torch.Tensor) -> torch.Tensor:
    """How far does each token's output move when one head is switched off?

    Args:
        heads: (B, H, T, d), the context of each head.
        W_o: (d_model, d_model) with d_model = H·d, the last projection as nn.Linear keeps it, (out, in). Its bias is in
            every output, so it drops out of the differences.

    Returns:
        (B, H, T): the length (the root of the sum of squares) of the difference between the output with all heads
        and the output with the context of head h alone set to 0.

    Example:
        heads [[[[3, 4]], [[0, 1]]]] and W_o the identity give [[[5], [1]]].
    """
    # TODO: the output with all heads; then for each h a copy with head h at 0, its output, the length of the difference
    ### BEGIN SOLUTION
    full = merge_heads(heads) @ W_o.T  # (B, T, d_model)
    moved = []
    for h in range(heads.shape[1]):
        without = heads.clone()
        without[:, h] = 0
        moved.append((full - merge_heads(without) @ W_o.T).norm(dim=-1))  # (B, T)
    return torch.stack(moved, dim=1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The output is `merge_heads(heads) @ W_o.T`. Compute it once with all heads, and once for each head that is missing.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Start each round of the loop from a fresh `heads.clone()`, else the caller's tensor changes and the heads stay off.
# Head `h` of all examples is `[:, h]`; write 0 there. For the length of each row, a tensor has `.norm(dim=-1)`.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# In the loop: `moved.append((full - ...).norm(dim=-1))`, where the dots are the output of the copy. At the end: `torch.stack(moved, dim=...)`,
# and the heads come second.
#
# </details>

# %% test="head_ablation" points=2
check.exercise("head_ablation", head_ablation)
### BEGIN HIDDEN TESTS
for _B, _H, _T, _d in ((2, 3, 4, 5), (1, 5, 2, 3), (3, 2, 6, 1)):
    _heads, _W = torch.randn(_B, _H, _T, _d), torch.randn(_H * _d, _H * _d)
    _parts = [_heads[:, h] @ _W[:, h * _d : (h + 1) * _d].T for h in range(_H)]  # the output is the sum of these
    _right = torch.stack([p.pow(2).sum(-1).sqrt() for p in _parts], dim=1)
    torch.testing.assert_close(head_ablation(_heads, _W), _right, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(head_ablation(-2 * _heads, _W), 2 * _right, rtol=1e-3, atol=1e-4)
    assert check.unchanged(head_ablation, _heads, _W)
_heads[:, 1] = 0  # a head that says nothing is not missed
assert head_ablation(_heads, _W)[:, 1].abs().max().item() < 1e-5
### END HIDDEN TESTS

# %%
q, k, v = (split_heads(project(sentence), 2) for project in (layer.W_q, layer.W_k, layer.W_v))
heads, _ = scaled_dot_product_attention(q, k, v)  # (1, 2, 6, 3)
plots.heatmap(
    head_ablation(heads, layer.W_o.weight)[0],
    rows=["head 1 (who)", "head 2 (where)"],
    columns=tokens,
    ylabel="head that is switched off",
    xlabel="token whose output moves",
    title="sat and mat need both heads; The, the and cat mostly head 1, on mostly head 2",
    alt="How far the output of each of six tokens moves when one of two heads is switched off. Without head 1: The and the 1.02, cat 0.81, "
    "sat 1.16, on 0.41, mat 0.81. Without head 2: The, cat and the 0.41, sat 0.81, on 0.81, mat 0.81.",
)

# %% [markdown]
# The numbers follow the questions: where a head has an answer, the token misses it. ("sat" loses most: head 1 brings it two
# features of the cat, *alive* 0.80 and *thing* 0.84 (0.04 of that is the mat's), and $\sqrt{0.80^2 + 0.84^2} \approx 1.16$.) But look
# at 0.41. It is what "on" loses with head 1 and
# "cat" with head 2, heads in which these tokens asked nothing. A resting head hands over the plain average of all values, and that
# average is in the output whether it means anything or not. Trained models have found a way round it: heads with nothing to say put their
# weight on one token that hardly matters, such as a separator or the first token of the text (Clark and others; Xiao and others).
#
# Ablation of trained models brought a surprise. Michel and others found that a large share of heads can be switched off after
# training with little loss, and that some layers make do with a single one. Voita and others pruned 38 of the 48 encoder heads of an
# English–Russian translator, and it lost no more than 0.15 points of BLEU, a score of translation quality that lesson 08 computes.
#
# ## 9 · Spot the bug
#
# This function has been written many times. Its author knew that axes are dangerous, and tested with care. The shapes are right. Merging
# gives back exactly what was split. With one head it agrees with the library.


# %% given="published"
def published_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_heads: int = 2) -> torch.Tensor:
    """Attention with several heads. q: (B, Tq, d_model), k and v: (B, Tk, d_model); returns (B, Tq, d_model)."""
    B, Tq, d_model = q.shape
    d = d_model // num_heads
    q, k, v = (x.reshape(B, num_heads, -1, d) for x in (q, k, v))  # (B, H, T, d)
    context = F.scaled_dot_product_attention(q, k, v)  # (B, H, Tq, d)
    return context.reshape(B, Tq, d_model)


def library_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_heads: int = 2) -> torch.Tensor:
    """The same as a loop over the heads: each attends with its own slice of q, k and v."""
    if not q.shape[-1] == k.shape[-1] == v.shape[-1]:
        raise ValueError(f"d_model is {q.shape[-1]} in q, {k.shape[-1]} in k and {v.shape[-1]} in v")
    if q.shape[-1] % num_heads:
        raise ValueError(f"d_model is {q.shape[-1]}, which {num_heads} heads cannot share")
    slices = zip(*(x.chunk(num_heads, dim=-1) for x in (q, k, v)), strict=True)
    return torch.cat([F.scaled_dot_product_attention(*three) for three in slices], dim=-1)


# %%
q, k, v = (device.randn(2, 5, 8, seed=seed) for seed in (30, 31, 32))
print("the shapes agree:", published_attention(q, k, v).shape == library_attention(q, k, v).shape)
print("merging undoes splitting:", torch.equal(q.reshape(2, 2, 5, 4).reshape(2, 5, 8), q))
one_head = published_attention(q, k, v, 1), library_attention(q, k, v, 1)
print("one head agrees:", torch.allclose(*one_head, atol=1e-5))

# %% [markdown]
# Find an input that shows the bug: queries, keys and values (small ones are best) on which two heads give the wrong result.
#
# ### Exercise 3.8: a counterexample


# %% exercise="counterexample"
def counterexample() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return q: (B, Tq, d_model), k and v: (B, Tk, d_model) for which published_attention with 2 heads is wrong."""
    # TODO: choose shapes and numbers for which the bug matters, and return three tensors
    ### BEGIN SOLUTION
    q = torch.zeros(1, 2, 2)  # equal scores: each head averages the values that it sees
    v = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    return q, q, v
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# With one token the bug cannot show. Why? And with two?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Two tokens of two numbers are enough. Queries and keys of zeros make all scores equal, so that each head averages the values
# it holds. Which values should head 1 hold, and which does it?
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# Queries and keys `torch.zeros(...)` of shape (1, 2, 2), and `v = torch.tensor([[[1.0, 2.0], [...]]])` with four different numbers.
# Return all three.
#
# </details>

# %% test="counterexample" points=1
check.counterexample(
    "counterexample",
    counterexample,
    wrong=published_attention,
    right=library_attention,
    axes=("B Tq d_model", "B Tk d_model", "B Tk d_model"),
)
### BEGIN HIDDEN TESTS
_q, _k, _v = counterexample()
assert _q.shape[-1] % 2 == 0
_right = library_attention(_q, _k, _v)
assert torch.isfinite(_right).all()
assert not torch.allclose(published_attention(_q, _k, _v), _right, rtol=1e-3, atol=1e-3)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 3.9: the repair


# %% exercise="repaired_attention"
def repaired_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, num_heads: int = 2) -> torch.Tensor:
    """Attention with several heads, repaired. q: (B, Tq, d_model), k, v: (B, Tk, d_model); returns (B, Tq, d_model)."""
    # TODO: copy the five lines of published_attention and mend what is wrong, on the way in and on the way out
    ### BEGIN SOLUTION
    B, Tq, d_model = q.shape
    d = d_model // num_heads
    q, k, v = (x.reshape(B, -1, num_heads, d).transpose(1, 2) for x in (q, k, v))  # (B, H, T, d)
    context = F.scaled_dot_product_attention(q, k, v)  # (B, H, Tq, d)
    return context.transpose(1, 2).reshape(B, Tq, d_model)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Two of the five lines are wrong, and each hides the other: what the first one scrambles, the last one puts back.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Cut each token first, `(B, T, H, d)`, and then gather by head. On the way out, bring each token's pieces together before you
# join them.
#
# </details>
# <details><summary>Hint 3: almost the line</summary>
#
# `x.reshape(B, -1, num_heads, d).transpose(...)` in the first, `context.transpose(...).reshape(B, Tq, d_model)` in the last.
#
# </details>

# %% test="repaired_attention" points=1
check.exercise("repaired_attention", repaired_attention)
### BEGIN HIDDEN TESTS
for _B, _Tq, _Tk, _d_model, _heads in ((2, 3, 5, 8, 2), (1, 4, 4, 9, 3), (3, 6, 2, 10, 5), (2, 5, 3, 4, 1)):
    _q, _k, _v = torch.randn(_B, _Tq, _d_model), torch.randn(_B, _Tk, _d_model), torch.randn(_B, _Tk, _d_model)
    _right = library_attention(_q, _k, _v, _heads)
    torch.testing.assert_close(repaired_attention(_q, _k, _v, _heads), _right, rtol=1e-4, atol=1e-5)
    _other = _q.clone()  # what one token asks is nobody else's business
    _other[:, -1] += 1.0
    _again = repaired_attention(_other, _k, _v, _heads)
    torch.testing.assert_close(_again[:, :-1], _right[:, :-1], rtol=1e-4, atol=1e-5)
assert check.unchanged(repaired_attention, _q, _k, _v, 1)
### END HIDDEN TESTS

# %% [markdown]
# What did the bug do to a sentence? Let six tokens look at all six with equal weight (queries and keys of zeros). Then take the value of
# one token away, and measure how far each output moves: that is how much one token hears of another.


# %%
def heard(attention) -> torch.Tensor:
    """How far the output of each token moves when the value of each token is set to 0: (6, 6)."""
    equal, v = torch.zeros(1, 6, 6, device=where), device.randn(1, 6, 6, seed=40)
    moved = []
    for j in range(6):
        without = v.clone()
        without[:, j] = 0
        moved.append((attention(equal, equal, v) - attention(equal, equal, without))[0].norm(dim=-1))
    return torch.stack(moved, dim=1)


plots.small_multiples(
    [heard(published_attention), heard(repaired_attention)],
    titles=["published", "repaired"],
    rows=tokens,
    columns=tokens,
    ylabel="what hears (output)",
    xlabel="what is heard (value)",
    title="With the bug, nothing crosses the middle of the sentence",
    alt="Two maps of how much each of six tokens hears of each other. Published: The, cat and sat hear one another and nothing of "
    "on, the and mat, and the other way round. Repaired: every token hears every token.",
)

# %% [markdown]
# Half of the pairs never meet. Yet no line fails and every shape is right, so such a bug lives until somebody compares the layer with a
# **specification**, on more than one head, and with all lengths different.
#
# ## Questions
#
# Answer in your head first, then open.
#
# <details><summary><b>1.</b> A layer has <code>d_model = 512</code> and 8 heads. By which number are the dot products divided?</summary>
#
# By **8**, the root of $d = 512 / 8 = 64$: in each head a dot product sums 64 terms.
#
# * *22.6, the root of 512:* that would be right for a single head. With 8 heads it makes the scores too small by a factor of $\sqrt 8 \approx 2.8$, and
#   the weights too flat.
# * *64:* the variance of a score is 64, its size the root of it.
# * *2.83, the root of 8:* the number of heads says how many dot products there are, not how long each one is.
#
# </details>
# <details><summary><b>2.</b> Somebody splits with <code>x.view(B, T, d, H).permute(0, 3, 1, 2)</code>, so that head 1 gets the numbers 1, 1 + H, 1 + 2H and so on of each token, and merges the same way back. Is a model that is trained with it any worse?</summary>
#
# **No**, but it cannot use anybody else's weights. Every head still gets a share of *every* token; only which rows of `W_q`, `W_k` and `W_v`
# (and which entries of their biases) and which columns of `W_o` belong to it has changed. Sort these rows and columns, and you have the usual layer.
#
# * *Yes, like the bug above:* the bug mixes *tokens*, and no order of the rows of a weight matrix can undo that. This mixes nothing.
# * *No, and weights can be exchanged freely:* `copy_to_torch` would carry each row to the wrong head.
#
# </details>
# <details><summary><b>3.</b> The mask lets one token look at nothing. What does your layer return for it?</summary>
#
# **The bias of `W_o`.** Its weights are 0 in every head, so its context is 0, and $W_o \cdot 0 + b_o = b_o$.
#
# * *0:* the function returns 0; the layer has one more step.
# * *Its own value:* attention has no path past the weights. The transformer block of lesson 09 adds one around it.
# * *`nan`:* that is what a softmax of nothing but $-\infty$ gives, and why you set the masked weights to 0.
#
# </details>
# <details><summary><b>4.</b> A head's row of weights is (0.8, 0.2), and the dropout probability is 0.5. What do the weights that reach the values sum to in training?</summary>
#
# To **2, 1.6, 0.4 or 0**, each one time in four. Only their mean is 1.
#
# * *To 1, as always:* the survivors are divided by $1 - p$, which repairs the mean, not the single row.
# * *To 0.5:* that is the mean without the division.
#
# </details>
#
# ## Recap

# %%
check.progress()

# %% [markdown]
# You split a tensor into heads and merged it again; wrote attention with a mask that survives an empty row; built the layer, and showed
# that it is PyTorch's, weight for weight; counted what heads cost; and measured what each brings.
#
# **Where it lives in real models.** `MultiHeadAttention` is the attention of the original transformer, of BERT and of GPT-2, each with $d = 64$
# numbers per head: 8 heads in the transformer's base model, 12 in BERT base and in the smallest GPT-2. Newer models often let several heads share their keys and values, which
# makes decoding cheaper; lesson 11 comes to that.
#
# **Next.** The two maps that you drew do not change if the words are shuffled, except for their order: attention sees no positions. Lesson 04 gives it some. Lesson 05
# makes masks, and lesson 06 lets one sentence look at another.
#
# **References**
#
# * Vaswani et al. (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762): multi-head attention is section 3.2.2.
# * Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov (2014), [Dropout: a simple way to prevent neural networks from overfitting](https://jmlr.org/papers/v15/srivastava14a.html).
# * Michel, Levy, Neubig (2019), [Are sixteen heads really better than one?](https://arxiv.org/abs/1905.10650): heads that can be switched off.
# * Voita, Talbot, Moiseev, Sennrich, Titov (2019), [Analyzing multi-head self-attention](https://arxiv.org/abs/1905.09418): what the heads that matter do, and how the rest are pruned.
# * Xiao, Tian, Chen, Han, Lewis (2023), [Efficient streaming language models with attention sinks](https://arxiv.org/abs/2309.17453): heads that rest on the first token.
# * Clark, Khandelwal, Levy, Manning (2019), [What does BERT look at?](https://arxiv.org/abs/1906.04341): heads with nothing to say look at a separator.
# * Bhojanapalli, Yun, Rawat, Reddi, Kumar (2020), [Low-rank bottleneck in multi-head attention models](https://arxiv.org/abs/2002.07028): too many heads, each too thin.
