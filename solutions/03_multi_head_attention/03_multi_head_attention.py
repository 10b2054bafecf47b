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
# decimal places, and you can say what a head costs, what it brings, and what one misplaced `view` does to a sentence.**
# These are the maps that your layer will draw:
#
# ![Two maps of attention weights over the six tokens of "The cat sat on the mat": in head 1 sat finds cat, in head 2 sat finds mat](attachment:cover.png)
#
# | | |
# |---|---|
# | time | 115 minutes, with a place to stop after section 5 |
# | difficulty | moderate; most of the care goes into axes |
# | builds on | lesson 01: queries, keys, values, √d; lesson 02: softmax |
# | you will write | 5 functions and a layer, none longer than 12 lines; a counterexample, the explanation of a wrong map, and a repair |
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
# "cat" and 0.45 of "mat", the context of "sat" speaks of something half alive and half a surface. Whoever reads it has to find out
# alone which part answers *who*, and which *where*.
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
weights = torch.softmax(scores, dim=-1)[0]  # (6, 6)

# %%
# @title The weights of one head that asks two questions
plots.heatmap(
    weights,
    rows=tokens,
    columns=tokens,
    title="One softmax, two questions: sat is torn in two",
    alt="Attention weights of a single head over The cat sat on the mat. sat gives 0.45 to cat and "
    "0.45 to mat. mat gives 0.45 to sat and 0.45 to on. cat gives 0.80 to sat, on gives 0.80 to mat. "
    "The and the give 0.45 to cat and 0.45 to mat.",
)

# %% [markdown]
# "sat" and "mat" each have two questions, and not half an answer to either.
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
def numpy_multi_head(x: np.ndarray, state: dict, num_heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Multi-head self-attention of one sentence, one head after the other.

    Args:
        x: (T, d_model), the tokens.
        state: W_q.weight, W_q.bias and so on for W_k, W_v, W_o; weights are (d_model, d_model),
            biases (d_model,).
        num_heads: a divisor of d_model.

    Returns:
        output: (T, d_model), and weights: (num_heads, T, T), whose rows sum to 1.
    """
    d = x.shape[1] // num_heads
    contexts, maps = [], []
    for h in range(num_heads):
        own = slice(h * d, (h + 1) * d)  # the rows of W_q, W_k and W_v that belong to this head
        W, b = ([state[f"W_{name}.{kind}"][own] for name in "qkv"] for kind in ("weight", "bias"))
        q, k, v = (x @ W[i].T + b[i] for i in range(3))  # (T, d) each
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
# head 1 carries the first three home, head 2 the others
carried = ["alive", "action", "thing", "surface", "relation", "pointer"]
W_q, W_k = asking(strength=3 * math.sqrt(3))
W_v = torch.stack([torch.eye(6, device=where)[features.index(name)] for name in carried])
by_hand = {"W_q.weight": W_q, "W_k.weight": W_k, "W_v.weight": W_v}
by_hand["W_o.weight"] = W_v.T.contiguous()
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
        (B, H, T, d) with d = d_model / H. Head 1 holds the first d numbers of each token, head 2
        the next d, and so on.

    Example:
        x [[[1, 2, 3, 4], [5, 6, 7, 8]]] and 2 heads give [[[[1, 2], [5, 6]], [[3, 4], [7, 8]]]].
    """
    # TODO: every head with its share of every token
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
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# B, T, d_model = ...
# pieces = ...  # (B, T, H, d)
# return ...    # (B, H, T, d)
# ```
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
        (B, T, H·d). Each token has the d numbers of the first head, then those of the second,
        and so on.

    Example:
        x [[[[1, 2], [5, 6]], [[3, 4], [7, 8]]]] gives [[[1, 2, 3, 4], [5, 6, 7, 8]]].
    """
    # TODO: every token with the numbers of all its heads side by side
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
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# B, H, T, d = ...
# gathered = ...  # (B, T, H, d)
# return ...      # (B, T, H * d)
# ```
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
# @title Three tokens before they are split
plots.small_multiples(
    [coloured[0]],
    titles=[""],
    rows=tokens[:3],
    columns=["1", "2", "3", "4", "5", "6"],
    ylabel="token",
    xlabel="number",
    title="Before: each token has a brown and a blue half",
    alt="A tensor of three rows, The, cat and sat, and six columns. The left half of each row is "
    "brown, the right half blue. The row of The is the palest and that of sat the darkest.",
    diverging=True,
    colorbar=False,
)

# %% [markdown]
# Split it, and for comparison `view` it as `(B, H, T, d)` at once. Then move the slider from step to step. Each panel is one slice
# along the last two axes, which is what a matrix product sees. (Where no slider can be shown, two pictures stand in for it.)

# %%
split, wrong = split_heads(coloured, 2), coloured.view(1, 2, 3, 3)
print("merging gives back what was split:", torch.equal(merge_heads(split), coloured))

# %%
# @title The tensor after each step, with a slider
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
# function does not need them to be equal.) One thing is new.
#
# **A mask** says which keys a query may look at. It is a tensor of booleans, and **True means keep**. Its shape may be anything that
# broadcasts to `(B, H, Tq, Tk)`: `(Tq, Tk)` for one rule that holds everywhere, `(B, 1, 1, Tk)` for keys that are switched off for a whole
# sentence, such as padding. A key that is not kept gets weight 0, and the others share the whole unit. So the mask acts on
# the scores, *before* the softmax: a score of $-\infty$ has the weight $e^{-\infty} = 0$. By hand, three keys with score 0:
#
# | mask | weights |
# |---|---|
# | True True True | 0.33 0.33 0.33 |
# | True False True | 0.50 0 0.50 |
#
# Why $-\infty$ and not, say, $-100$? Where the kept scores are $-200$, a key with $-100$ takes nearly everything.
#
# (In this lesson each query keeps at least one key. What one with none should get is a question for lesson 05.)
#
# ### Exercise 3.3: scaled dot-product attention
#
# The last two lines are there already: your part ends with `weights`. The layer of section 5 will hand over a `dropout`; until then it is None.


# %% exercise="scaled_dot_product_attention"
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    dropout: nn.Module | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention for all examples and all heads at once.

    Args:
        q: (B, H, Tq, d_k), queries. k: (B, H, Tk, d_k), keys. v: (B, H, Tk, d_v), values.
        mask: booleans that broadcast to (B, H, Tq, Tk). True = keep. Each query keeps a key or
            more. None keeps everything.
        dropout: what happens to the weights before they meet the values.

    Returns:
        context: (B, H, Tq, d_v), and weights: (B, H, Tq, Tk), before dropout. Scores may be of any
        finite size.

    Example:
        q [[[[0]]]], k [[[[1], [2], [3]]]], v [[[[6], [7], [8]]]] and mask [True, False, True]
        give context [[[[7]]]] and weights [[[[0.5, 0, 0.5]]]].
    """
    # TODO: the weights, with the mask if there is one
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    ### END SOLUTION
    used = weights if dropout is None else dropout(weights)
    return used @ v, weights


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Write it without a mask first; that is lesson 01 in two lines. Then ask where the mask comes in.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `x.masked_fill(condition, number)` writes the number where the condition is True, and the mask says True for what *stays*: use
# `~mask`. The softmax runs over the keys.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# scores = ...  # (B, H, Tq, Tk)
# if ...:       # there is a mask
#     scores = ...
# weights = ...
# ```
#
# </details>

# %% test="scaled_dot_product_attention" points=3
check.exercise("scaled_dot_product_attention", scaled_dot_product_attention)
### BEGIN HIDDEN TESTS
_q, _k, _v = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 7)
_context, _weights = scaled_dot_product_attention(_q, _k, _v)
torch.testing.assert_close(_context, F.scaled_dot_product_attention(_q, _k, _v), rtol=1e-4, atol=1e-5)
torch.testing.assert_close(_weights.sum(-1), torch.ones(2, 3, 4), rtol=1e-4, atol=1e-5)
_powers = torch.exp(torch.einsum("bhid,bhjd->bhij", _q, _k) / 6**0.5)
_first = torch.arange(5) < torch.tensor([[3], [1]])  # (B, Tk): the sentences have 3 tokens and 1
_masks = [torch.rand(*_shape) < 0.4 for _shape in ((4, 5), (2, 1, 4, 5), (2, 3, 4, 5), (3, 1, 5))]
for _mask in _masks:
    _mask[..., int(torch.randint(5, ()))] = True  # each query keeps a key
for _mask in (*_masks, _first[:, None, None]):
    _kept = _powers * _mask
    _right = _kept / _kept.sum(-1, keepdim=True)
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
for _size in (200, 1e4, 1e-4):  # no score is too large or too small, in any row
    _far, _ = scaled_dot_product_attention(_size * _q, _k, _v)
    torch.testing.assert_close(_far, F.scaled_dot_product_attention(_size * _q, _k, _v), rtol=1e-2, atol=1e-3)
_low = torch.tensor([[[[-4e9], [-4e9], [0.0], [5.0]]]])  # the keys that are kept score far less than the others
_, _weights = scaled_dot_product_attention(torch.ones(1, 1, 1, 1), _low, _low, torch.tensor([True, True, False, False]))
torch.testing.assert_close(_weights, torch.tensor([[[[0.5, 0.5, 0.0, 0.0]]]]))
### END HIDDEN TESTS

# %% [markdown]
# PyTorch has the same as one call, `F.scaled_dot_product_attention`. It agrees on what a mask of booleans means, and it returns the context alone,
# because its fast versions never hold all the weights (lesson 11 builds one).

# %%
# In 64 bits: the fast versions for graphics cards may round 32-bit numbers more coarsely.
q, k = device.randn(2, 3, 4, 5, seed=1).double(), device.randn(2, 3, 6, 5, seed=2).double()
v = device.randn(2, 3, 6, 7, seed=3).double()
mask = torch.ones(4, 6, dtype=torch.bool, device=where).tril(diagonal=2)  # keys 0 to i + 2
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
# | attend | `(B, H, Tq, d)` | exercise 3.3, with mask and dropout |
# | merge | `(B, Tq, d_model)` | exercise 3.2 |
# | `W_o` | `(B, Tq, d_model)` | the heads' findings, mixed |
#
# **Dropout** (Srivastava and others) is for training alone. Each weight is set to 0 with probability $p$, and those that survive are
# divided by $1 - p$. With $p = 0.5$, the weights (0.8, 0.2) become (1.6, 0.4), (1.6, 0), (0, 0.4) or (0, 0), with equal chance. On average
# that is (0.8, 0.2) again, but no query can rely on one key alone. `nn.Dropout(p)` is a module that does it in training, and nothing after
# `.eval()`. Keep one in the layer, and hand it to your function.
#
# ### Exercise 3.4: multi-head attention


# %% exercise="MultiHeadAttention"
class MultiHeadAttention(nn.Module):
    """Multi-head attention with four projections.

    Args:
        d_model: numbers of each token. num_heads: a divisor of d_model.
        dropout: probability with which a weight is dropped in training.

    The projections are called W_q, W_k, W_v and W_o, each nn.Linear(d_model, d_model) with bias.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0):
        super().__init__()
        # TODO: everything that forward will need
        ### BEGIN SOLUTION
        self.num_heads, self.drop = num_heads, nn.Dropout(dropout)
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
            query: (B, Tq, d_model), the tokens that ask.
            key, value: (B, Tk, d_model), the tokens that are looked at.
            mask: booleans that broadcast to (B, H, Tq, Tk), True = keep.

        Returns:
            output: (B, Tq, d_model), and weights: (B, H, Tq, Tk), before dropout.
        """
        # TODO: the output and the weights
        ### BEGIN SOLUTION
        q = split_heads(self.W_q(query), self.num_heads)  # (B, H, Tq, d)
        k = split_heads(self.W_k(key), self.num_heads)  # (B, H, Tk, d)
        v = split_heads(self.W_v(value), self.num_heads)
        context, weights = scaled_dot_product_attention(q, k, v, mask, self.drop)
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
# `W_q` belongs to `query`, `W_k` to `key`, `W_v` to `value`, and each of the three results is split. The heads' number and the dropout
# are known in `__init__` alone: keep them on `self`.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# q, k, v = ...           # (B, H, T, d) each
# context, weights = ...  # (B, H, Tq, d), (B, H, Tq, Tk)
# return ..., weights
# ```
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
_torch = nn.MultiheadAttention(20, 4, batch_first=True).eval()  # what PyTorch says, with a mask, other lengths
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
_again, _ = _layer(_x, _y, _z, _mask[None, None].expand(2, 4, 3, 6))  # a mask for each head
torch.testing.assert_close(_again, _output, rtol=1e-4, atol=1e-5)
assert check.parameters(_layer) == {n: tuple(t.shape) for n, t in _state.items()}
### END HIDDEN TESTS

# %% [markdown]
# The check above used the layer in evaluation. The next one looks at training. With `dropout=1.0` every weight is dropped, so nothing
# but the bias of `W_o` may come out. With `dropout=0.5` and a sentence of one token, each head has a single weight: all numbers of the
# head are lost, or all are doubled.


# %% given="check_dropout"
# @title What dropout should do to a layer in training
def check_dropout(layer_class) -> None:
    """Print one line if dropout acts on the weights alone; raise CheckFailed if it does not."""
    title = "MultiHeadAttention in training (exercise 3.4)"
    layer = layer_class(4, 2, dropout=1.0)  # a new layer is in training
    state = {f"W_{n}.weight": torch.eye(4) for n in "qkvo"}
    state |= {f"W_{n}.bias": torch.tensor([1.0, 2.0, 3.0, 4.0]) for n in "qkvo"}
    layer.load_state_dict(state)
    output, weights = layer(*[torch.zeros(1, 2, 4)] * 3)
    if not torch.allclose(weights, torch.full((1, 2, 2, 2), 0.5)):
        raise check.CheckFailed(
            title,
            "the weights that are returned should be those before dropout.",
            observed=f"{[round(n, 4) for n in weights.flatten().tolist()]} with dropout = 1",
            expected="0.5 everywhere, since both keys are equal",
        )
    if not torch.allclose(output, state["W_o.bias"].expand(1, 2, 4)):
        raise check.CheckFailed(
            title,
            "dropout does not do what it should.",
            observed=f"for the first token, {[round(n, 4) for n in output[0, 0].tolist()]} with dropout = 1",
            expected="[1.0, 2.0, 3.0, 4.0], the bias of W_o: all weights are dropped, nothing else is",
            cause="In training the weights are dropped before they meet the values: hand nn.Dropout(dropout) on to "
            "scaled_dot_product_attention. Numbers of the values, of the context or of the output are not dropped.",
        )
    layer = layer_class(128, 2, dropout=0.5)
    state = {f"W_{n}.weight": torch.eye(128) for n in "qkvo"} | {f"W_{n}.bias": torch.zeros(128) for n in "qkvo"}
    layer.load_state_dict(state)
    heads = layer(*[torch.ones(200, 1, 128)] * 3)[0].reshape(200, 2, 64)  # 200 sentences of one token
    if not torch.allclose(heads, heads[..., :1].expand(200, 2, 64)):
        raise check.CheckFailed(
            title,
            "dropout does not act on the weights.",
            observed="with dropout = 0.5 and all projections the identity, a token of ones comes out with different "
            "numbers in one head",
            expected="64 zeros or 64 twos: the only weight of the head is dropped or doubled",
            cause="It is the weights that are dropped, not numbers of the values or of the context.",
        )
    layer = layer_class(8, 2, dropout=0.25)
    state = {f"W_{n}.weight": torch.zeros(8, 8) for n in "qk"} | {f"W_{n}.weight": torch.eye(8) for n in "vo"}
    layer.load_state_dict(state | {f"W_{n}.bias": torch.zeros(8) for n in "qkvo"})
    output = layer(*[torch.ones(100, 5, 8)] * 3)[0]  # five equal weights, each worth 0.2 / 0.75 if it survives
    left = (output * 3.75).round().reshape(100, 5, 2, 4)[..., 0]  # (B, T, H): how many survive
    alike = {
        "all keys of a query": bool(((left == 0) | (left == 5)).all()),
        "all queries of a sentence": bool((left == left[:, :1]).all()),
        "all heads": bool((left == left[..., :1]).all()),
        "all sentences": bool((left == left[:1]).all()),
    }
    for who, together in alike.items():
        if together:
            raise check.CheckFailed(
                title,
                "the weights are not dropped one by one.",
                observed=f"with dropout = 0.25, {who} lose their weights together",
                expected="each weight drawn on its own, for each query, each head and each sentence",
                cause="nn.Dropout(p) draws for every number of the tensor that it is given.",
            )
    seen = sorted({round(n, 4) for n in heads[..., 0].flatten().tolist()})
    if seen != [0.0, 2.0]:
        raise check.CheckFailed(
            title,
            "dropout does not do what it should.",
            observed=f"with dropout = 0.5 and all projections the identity, ones come out as {seen[:6]}",
            expected="[0.0, 2.0]: some weights are dropped, the others are divided by 1 - 0.5",
            cause="nn.Dropout(p) drops each weight on its own and divides those that survive by 1 - p.",
        )
    print("✓ In training, dropout acts on the weights and on nothing else.")


# %% test="MultiHeadAttention-training" points=1
check_dropout(MultiHeadAttention)
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
_layer = MultiHeadAttention(8, 2, dropout=0.25)  # several keys: a quarter of the weights is dropped
_state = {f"W_{n}.weight": torch.zeros(8, 8) for n in "qk"} | {f"W_{n}.bias": torch.zeros(8) for n in "qkvo"}
_layer.load_state_dict(_state | {f"W_{n}.weight": torch.eye(8) for n in "vo"})
_x = torch.ones(100, 5, 8)
_left = (_layer(_x, _x, _x)[0] * 3.75).reshape(100, 5, 2, 4)[..., 0]  # (B, Tq, H): the survivors
assert torch.allclose(_left, _left.round(), atol=1e-3)
assert 0.7 < _left.mean().item() / 5 < 0.8
### END HIDDEN TESTS

# %% [markdown]
# Load the weights that we set by hand and draw what the layer sees. A head cuts its own share out of the same four matrices.

# %%
layer = MultiHeadAttention(d_model=6, num_heads=2).to(where).eval()
layer.load_state_dict(by_hand)
output, weights = layer(sentence, sentence, sentence)

# %% tags=["cover"]
# @title What the two heads look at
plots.small_multiples(
    list(weights[0]),
    titles=["head 1: who does it?", "head 2: where does it happen?"],
    rows=tokens,
    columns=tokens,
    title="Two heads, two units of weight: sat finds cat in one and mat in the other",
    alt="Attention weights of two heads over The cat sat on the mat. In head 1, sat gives 0.80 to cat, "
    "cat and mat give 0.80 to sat, The and the give 0.45 each to cat and mat, and on spreads evenly. "
    "In head 2, sat and on give 0.80 to mat, mat gives 0.80 to on, and The, cat and the spread evenly.",
    numbers=True,
)

# %%
expected, _ = numpy_multi_head(sentence[0].cpu().numpy(), arrays, num_heads=2)
difference = np.abs(output[0].detach().cpu().numpy() - expected).max()
print("agrees with the loop over heads to 1e-5:", bool(difference < 1e-5))
received = dict(zip(features, output[0, tokens.index("sat")].tolist(), strict=True))
print("sat receives", ", ".join(f"{name} {amount:.2f}" for name, amount in received.items()))

# %% [markdown]
# "sat" now learns that something alive did it and that it happened on a surface, 0.80 of each, where one softmax had 0.45 for both.
#
# Look at the pale rows, too. In head 2, "cat" has nothing to ask: its query is 0, all scores are equal, and it spreads its unit over
# all six tokens. **Weights cannot say "nothing"**: they sum to 1 whether the head found something or not. Section 8 measures what
# that does.
#
# **A good place to stop.** The layer is built and does what the specification says. What comes: the same layer in PyTorch, what heads cost
# and bring, and a bug to hunt. When you are back, run everything above this line: Run, Run All Above Selected Cell (in Colab: Runtime, Run before).
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
        state: W_q.weight, W_k.weight, W_v.weight and W_o.weight: (d_model, d_model) each, and
            W_q.bias, W_k.bias, W_v.bias and W_o.bias: (d_model,) each.

    Returns:
        in_proj_weight: (3·d_model, d_model), in_proj_bias: (3·d_model,),
        out_proj.weight: (d_model, d_model) and out_proj.bias: (d_model,).

    Example:
        weights [[1]], [[2]], [[3]], [[4]] and biases [5], [6], [7], [8] of q, k, v and o
        give [[1], [2], [3]], [5, 6, 7], [[4]] and [8].
    """
    # TODO: the four parameters, in the order of torch_names
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
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# in_proj_weight = ...  # (3 · d_model, d_model)
# in_proj_bias = ...    # (3 · d_model,)
# return in_proj_weight, in_proj_bias, ..., ...
# ```
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
shapes = {name: tensor.shape for name, tensor in mine.state_dict().items()}
own = {name: 0.1 * device.randn(*shape, seed=i) for i, (name, shape) in enumerate(shapes.items())}
mine.load_state_dict(own)
library = nn.MultiheadAttention(24, 4, batch_first=True).to(where).eval()
library.load_state_dict(dict(zip(torch_names, copy_to_torch(own), strict=True)))

x, y = device.randn(2, 5, 24, seed=10), device.randn(2, 7, 24, seed=11)
output, weights = mine(x, y, y)
library_output, library_weights = library(x, y, y, average_attn_weights=False)
pairs = {"weights": (weights, library_weights), "output": (output, library_output)}
for name, (yours, theirs) in pairs.items():
    print(name, tuple(yours.shape), "agree to 1e-6:", (yours - theirs).abs().max().item() < 1e-6)

# %% [markdown]
# Left to itself, `nn.MultiheadAttention` returns the weights *averaged over its heads*; `average_attn_weights=False` asks for each head's own.
# Be careful with its masks, by the way. There True means *masked*, the opposite of what it means here and in
# `F.scaled_dot_product_attention`. Lesson 05 puts the two side by side.
#
# ## 7 · What heads cost
#
# How many numbers does the layer learn? By hand, with `d_model = 6`: a linear layer from 6 to 6 has a matrix of $6 \cdot 6 = 36$ weights and a
# bias of 6, together 42. There are four such layers: 168. And if the heads were three, or six? Look for `num_heads` in your `__init__`: the size of
# no matrix depends on it. A layer of the smallest GPT-2 (`d_model = 768`, 12 heads) has $4 \cdot 768 \cdot 769 = 2\,362\,368$ parameters in its
# attention, and would have as many with one head or with 768. Then why not as many heads as possible?
#
# Because each of them looks through fewer numbers. Take $d = 1$: a score is then a product of two plain numbers, $s_{ij} = q_i k_j$. Every query
# with $q_i > 0$ ranks the keys in one and the same order, and every query with $q_i < 0$ in the reverse of it. That is all the choice there is.
# In general, the scores of one head are $Q_h K_h^\top$, a product of matrices that are only $d$ columns wide, so their **rank** is at most $d$. (The
# rank of a matrix is how many of its rows are independent; all others are sums of multiples of these.) Measure both, the parameters and
# the rank, on random tokens and random weights.

# %%
d_model, choices = 64, [1, 2, 4, 8, 16, 32, 64]
layers = [MultiHeadAttention(d_model, num_heads) for num_heads in choices]
counts = {sum(p.numel() for p in each.parameters()) for each in layers}
print("parameters with 1, 2, 4, ... 64 heads:", counts)

x = device.randn(1, 64, d_model, seed=20).double()
W_q, W_k = (device.randn(d_model, d_model, seed=seed).double() for seed in (21, 22))
ranks = []
for num_heads in choices:
    q, k = split_heads(x @ W_q.T, num_heads), split_heads(x @ W_k.T, num_heads)
    ranks.append(torch.linalg.matrix_rank(q[0, 0] @ k[0, 0].T).item())  # of (64, 64) scores

# %%
# @title The rank of one head's scores against the number of heads
plots.lines(
    choices,
    {"": ranks},
    xlabel="number of heads, at 64 numbers per token",
    ylabel="rank of one head's scores",
    title="Twice the heads, half the rank for each",
    alt="The rank of one head's scores over 1 to 64 heads, for 64 numbers per token. It is 64 with one head "
    "and is halved each time the number of heads is doubled, down to 1.",
    logx=True,
)

# %% [markdown]
# That is the trade (Bhojanapalli and others). $H$ heads give each token $H$ units of weight to spend, and each head $1/H$ of the
# numbers to decide with. Large models commonly keep $d$ at 64 or 128 and take more heads as `d_model` grows.
#
# ## 8 · What a head brings
#
# Does every head matter? Take one out and see what changes. This is called **ablation**: set the head's context to 0, run the rest of the layer as
# before, and measure how far each token's output moves.
#
# By hand, with `W_o` the identity, one token and two heads of two numbers each. The contexts are (3, 4) and (0, 1), so the output is
# (3, 4, 0, 1). Without head 1 it is (0, 0, 0, 1): it has moved by $\sqrt{3^2 + 4^2} = 5$. Without head 2 it is (3, 4, 0, 0): moved by 1.
#
# ### Exercise 3.6: switch off each head


# %% exercise="head_ablation"
def head_ablation(heads: torch.Tensor, W_o: torch.Tensor) -> torch.Tensor:
    """How far does each token's output move when one head is switched off?

    Args:
        heads: (B, H, T, d), the context of each head.
        W_o: (d_model, d_model) with d_model = H·d, the last projection as nn.Linear keeps it, (out,
            in). Its bias is in every output, so it drops out of the differences.

    Returns:
        (B, H, T): the length (the root of the sum of squares) of the difference between the output
        with all heads and the output with the context of head h alone set to 0.

    Example:
        heads [[[[3, 4]], [[0, 1]]]] and W_o the identity give [[[5], [1]]].
    """
    # TODO: for each head, how far each token's output moves without it
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
# Merge the heads and apply `W_o` as `nn.Linear` does: that is the output. Compute it once with all heads, and once for each head that is missing.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Start each round of the loop from a fresh `heads.clone()`, else the caller's tensor changes and the heads stay off.
# Head `h` of all examples is `[:, h]`; write 0 there. For the length of each row, a tensor has `.norm(dim=-1)`.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# full, moved = ..., []
# for h in range(...):
#     without = ...       # (B, H, T, d), head h at 0
#     moved.append(...)   # (B, T)
# return ...              # (B, H, T)
# ```
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
moved = head_ablation(heads, layer.W_o.weight)[0]  # (2, 6)

# %%
# @title How far each token's output moves without each head
plots.heatmap(
    moved,
    rows=["head 1 (who)", "head 2 (where)"],
    columns=tokens,
    ylabel="head that is switched off",
    xlabel="token whose output moves",
    title="sat and mat need both heads; The, the and cat mostly head 1, on mostly head 2",
    alt="How far the output of each of six tokens moves when one of two heads is switched off. Without "
    "head 1: The and the 1.02, cat 0.81, sat 1.16, on 0.41, mat 0.81. Without head 2: The, cat and the "
    "0.41, sat 0.81, on 0.81, mat 0.81.",
)

# %% [markdown]
# The numbers follow the questions: where a head has an answer, the token misses it. ("sat" loses most: head 1 brings it two
# features of the cat, *alive* 0.80 and *thing* 0.84 (0.04 of that is the mat's), and $\sqrt{0.80^2 + 0.84^2} \approx 1.16$.) But look
# at 0.41. It is what "on" loses with head 1 and
# "cat" with head 2, heads in which these tokens asked nothing. A resting head hands over the plain average of all values, and that
# average is in the output whether it means anything or not. Trained models have been seen to find a way round it: many of their heads put
# most of their weight on one token that hardly matters, such as a separator or the first token of the text (Clark and others; Xiao and others).
#
# Ablation of trained models brought a surprise. Michel and others found that a large share of heads can be switched off after
# training with little loss, and that some layers make do with a single one. Voita and others pruned 38 of the 48 encoder heads of an
# English–Russian translator, and it lost no more than 0.15 points of BLEU, a score of translation quality that lesson 08 computes.
#
# ## 9 · Spot the bug
#
# Functions like this one have been published. Its author knew that axes are dangerous, and tested with care. The shapes are right. Merging
# gives back exactly what was split. With one head it agrees with a loop over the heads.


# %% given="published"
def published_attention(q, k, v, num_heads=2):
    """Several heads. q: (B, Tq, d_model), k and v: (B, Tk, d_model); returns (B, Tq, d_model)."""
    B, Tq, d_model = q.shape
    d = d_model // num_heads
    q, k, v = (x.reshape(B, num_heads, -1, d) for x in (q, k, v))  # (B, H, T, d)
    context = F.scaled_dot_product_attention(q, k, v)  # (B, H, Tq, d)
    return context.reshape(B, Tq, d_model)


def loop_attention(q, k, v, num_heads=2):
    """The same as a loop over the heads: each attends with its own slice of q, k and v."""
    if not len(q) == len(k) == len(v) or not q.shape[-1] == k.shape[-1] == v.shape[-1]:
        raise ValueError("q, k and v need the same B and the same d_model")
    if q.shape[-1] % num_heads:
        raise ValueError(f"d_model is {q.shape[-1]}, which {num_heads} heads cannot share")
    slices = zip(*(x.chunk(num_heads, dim=-1) for x in (q, k, v)), strict=True)
    return torch.cat([F.scaled_dot_product_attention(*three) for three in slices], dim=-1)


# %%
q, k, v = (device.randn(2, 5, 8, seed=seed) for seed in (30, 31, 32))
print("the shapes agree:", published_attention(q, k, v).shape == loop_attention(q, k, v).shape)
print("merging undoes splitting:", torch.equal(q.reshape(2, 2, 5, 4).reshape(2, 5, 8), q))
one_head = published_attention(q, k, v, 1), loop_attention(q, k, v, 1)
print("one head agrees:", torch.allclose(*one_head, atol=1e-5))

# %% [markdown]
# Find an input that shows the bug: queries, keys and values (small ones are best) on which two heads give the wrong result.
#
# ### Exercise 3.7: a counterexample


# %% exercise="counterexample"
def counterexample() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """An input on which published_attention with its 2 heads is wrong.

    Returns:
        q: (B, Tq, d_model), k and v: (B, Tk, d_model), three tensors of finite numbers.
    """
    # TODO: three tensors on which the bug shows
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
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# q = k = torch.zeros(...)
# v = torch.tensor([[[...], [...]]])
# return q, k, v
# ```
#
# </details>

# %% test="counterexample" points=1
check.counterexample(
    "counterexample",
    counterexample,
    wrong=published_attention,
    right=loop_attention,
    axes=("B Tq d_model", "B Tk d_model", "B Tk d_model"),
)
### BEGIN HIDDEN TESTS
_q, _k, _v = counterexample()
_right = loop_attention(_q, _k, _v)
assert torch.isfinite(_right).all()
assert (published_attention(_q, _k, _v) - _right).abs().max() > 1e-4
### END HIDDEN TESTS

# %% [markdown]
# What does the bug do to a sentence? Let every token look at all tokens with equal weight (queries and keys of zeros), and let all values be 1.
# Then take the value of one token away, and measure how far each output moves: that is how much one token *hears* of another.


# %% given="heard"
def heard(attention, T: int, num_heads: int) -> torch.Tensor:
    """How far each token's output moves when the value of each token goes from 1 to 0.

    Returns (T, T): row i is who hears, column j who is heard.
    """
    equal = torch.zeros(1, T, 2 * num_heads, device=where)  # queries and keys
    moved = []
    for j in range(T):
        v, without = torch.ones_like(equal), torch.ones_like(equal)
        without[:, j] = 0
        change = attention(equal, equal, v, num_heads) - attention(equal, equal, without, num_heads)
        moved.append(change[0].abs().amax(dim=-1))
    return torch.stack(moved, dim=1)


# %%
# @title Who hears whom, with the published function and two heads
plots.heatmap(
    heard(published_attention, 6, 2),
    rows=tokens,
    columns=tokens,
    ylabel="who hears (output)",
    xlabel="who is heard (value)",
    title="With the bug, nothing crosses the middle of the sentence",
    alt="Map of how far the output of each of six tokens moves without the value of each. The, cat and sat "
    "hear one another, 0.33 each, and nothing of on, the and mat, and the other way round.",
)

# %% [markdown]
# Half of the pairs never meet. Yet no line fails, and every shape is right. Why this map, and which one for five tokens, where the middle
# falls within a token? Explain it, in the strictest way: say beforehand who will hear whom.
#
# ### Exercise 3.8: explain the map


# %% exercise="hears"
def hears(T: int, num_heads: int) -> torch.Tensor:
    """Who hears whom when published_attention splits the heads, and all weights are equal?

    To be found by following the numbers from v to the heads, not by calling an attention function.

    Args:
        T: how many tokens the sentence has.
        num_heads: H, which may be more or fewer than T, and need not divide it.

    Returns:
        (T, T) booleans on the device `where`: True at [i, j] if the output of token i moves when
        the value of token j changes. It is the same map for every d_model that H divides.

    Example:
        hears(2, 1) is [[True, True], [True, True]]; hears(2, 2) is [[True, False], [False, True]].
    """
    # TODO: who hears whom
    ### BEGIN SOLUTION
    # With one number for each head, the numbers of v lie in memory as T runs of H; the heads cut them into H runs of T.
    owner = torch.arange(T, device=where).repeat_interleave(num_heads).view(num_heads, T)
    present = (owner[:, :, None] == torch.arange(T, device=where)).any(dim=1)  # (H, T)
    return (present[:, :, None] & present[:, None, :]).any(dim=0)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# `reshape` reads the numbers of `v` in order. Write down, for a small sentence, which token each number belongs to, and cut the row into
# $H$ equal parts.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Five tokens, two heads, `d_model = 2`: the numbers belong to 0 0 1 1 2 2 3 3 4 4. Head 1 holds the first five of them: 0 0 1 1 2. Two tokens hear each
# other where some head holds numbers of both. (In a head every row receives the mean of all its rows, and the outputs are joined in the order in
# which the queries were cut.)
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# owner = ...    # (H, T): whose numbers each head holds, with d_model = H
# present = ...  # (H, T): has token t a number in head h?
# return ...     # (T, T)
# ```
#
# </details>

# %% test="hears" points=2
if check.source_uses(hears, ["published_attention", "heard", "scaled_dot_product_attention"]):
    raise check.CheckFailed(
        "hears (exercise 3.8)",
        "it measures.",
        cause="Say it from where the numbers go, without calling an attention function.",
    )
check.exercise("hears", hears)
### BEGIN HIDDEN TESTS
for _T, _heads in ((6, 2), (6, 4), (5, 3), (9, 2), (2, 5), (8, 8), (3, 7), (10, 4), (1, 3)):
    assert (hears(_T, _heads).cpu() == (heard(published_attention, _T, _heads) > 1e-6).cpu()).all(), (_T, _heads)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 3.9: the repair


# %% exercise="repaired_attention"
def repaired_attention(q, k, v, num_heads=2):
    """published_attention, repaired (and without calling loop_attention).

    Args:
        q: (B, Tq, d_model). k, v: (B, Tk, d_model). num_heads: a divisor of d_model.

    Returns:
        (B, Tq, d_model).
    """
    # TODO: the lines of published_attention, mended
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
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# B, Tq, d_model = q.shape
# d = d_model // num_heads
# q, k, v = ...  # (B, H, T, d) each
# context = ...  # (B, H, Tq, d)
# return ...     # (B, Tq, d_model)
# ```
#
# </details>

# %% test="repaired_attention" points=1
if check.source_uses(repaired_attention, ["loop_attention"]):
    raise check.CheckFailed(
        "repaired_attention (exercise 3.9)",
        "it calls the loop.",
        cause="Mend the published lines themselves.",
    )
check.exercise("repaired_attention", repaired_attention)
### BEGIN HIDDEN TESTS
for _B, _Tq, _Tk, _d_model, _heads in ((2, 3, 5, 8, 2), (1, 4, 4, 9, 3), (3, 6, 2, 10, 5), (2, 5, 3, 4, 1)):
    _q, _k, _v = torch.randn(_B, _Tq, _d_model), torch.randn(_B, _Tk, _d_model), torch.randn(_B, _Tk, _d_model)
    _right = loop_attention(_q, _k, _v, _heads)
    torch.testing.assert_close(repaired_attention(_q, _k, _v, _heads), _right, rtol=1e-4, atol=1e-5)
    _other = _q.clone()  # what one token asks is nobody else's business
    _other[:, -1] += 1.0
    _again = repaired_attention(_other, _k, _v, _heads)
    torch.testing.assert_close(_again[:, :-1], _right[:, :-1], rtol=1e-4, atol=1e-5)
assert check.unchanged(repaired_attention, _q, _k, _v, 1)
### END HIDDEN TESTS

# %%
everybody = bool((heard(repaired_attention, 6, 2) > 1e-3).all())
print("repaired, every token hears every token:", everybody)

# %% [markdown]
# Such a bug lives until somebody compares the layer with a **specification**, on more than one head, and with all lengths different.
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
# <details><summary><b>3.</b> A head's row of weights is (0.8, 0.2), and the dropout probability is 0.5. What do the weights that reach the values sum to in training?</summary>
#
# To **2, 1.6, 0.4 or 0**, each one time in four. Only their mean is 1.
#
# * *To 1, as always:* the survivors are divided by $1 - p$, which repairs the mean, not the single row.
# * *To 0.5:* that is the mean without the division.
#
# </details>
#
# ## Recap
#
# Which exercises are right and which are open shows here; run the cell whenever you like. To run everything above a cell: Run, Run All Above
# Selected Cell (in Colab: Runtime, Run before).

# %%
check.progress()

# %% [markdown]
# You split a tensor into heads and merged it again; wrote attention with a mask; built the layer, and showed that it is PyTorch's, weight for
# weight; saw what heads cost, and measured what each brings; and said who no longer hears whom when a transpose is missing.
#
# **Where it lives in real models.** `MultiHeadAttention` is the attention of the original transformer, of BERT and of GPT-2, each with $d = 64$
# numbers per head: 8 heads in the transformer's base model, 12 in BERT base and in the smallest GPT-2. Newer models often let several heads share their keys and values, which
# makes decoding cheaper; lesson 11 comes to that.
#
# **Next.** The two maps that you drew do not change if the words are shuffled, except for their order: attention sees no positions. Lesson 04 gives it some. Lesson 05
# makes masks, and says what a query without a key should get. Lesson 06 lets one sentence look at another.
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
