# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Positional encoding
#
# **At the end of this lesson you know why attention alone cannot see the order of its tokens, you own three ways to show it, and you have
# measured what each does with sentences longer than those it was trained on.** Your own functions will settle what lesson 01 left open, which noun belongs to which article:
#
# ![Two maps of attention weights over "The cat sat on the mat". Without positions both articles share their weight between cat and mat; with positions The finds cat and the finds mat](attachment:cover.png)
#
# | | |
# |---|---|
# | time | 110 minutes, with a place to stop after section 5 |
# | difficulty | moderate; sines and cosines, and one rotation |
# | builds on | lesson 01: the six tokens and the layer; lesson 02: softmax; lesson 03: where the heads stand |
# | you will write | 4 small functions and a module, none longer than 8 lines; a prediction, a counterexample and a repair |
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
from torch import nn

from attention_course import check, device, plots
from attention_course.bar import bar

device.seed(4)
where = device.pick()  # tables made from nothing belong here: torch.arange(..., device=where)
check.start("04")

# %% [markdown]
# ## 1 · What attention cannot see
#
# > The cat sat on the mat. &emsp; The mat sat on the cat.
#
# The same six words, and a different world. Does the layer of lesson 01 notice? Here it is again, with the sentence's features and the two
# matrices that were set by hand: an action asks for something alive, a relation for a surface, a pointer for a thing, a thing for an action.

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

W_q, W_k = torch.zeros(4, 6), torch.zeros(4, 6)  # four channels out, six features in
asks = {"action": "alive", "relation": "surface", "pointer": "thing", "thing": "action"}
for channel, (who, what) in enumerate(asks.items()):
    W_q[channel, features.index(who)] = 6.0
    W_k[channel, features.index(what)] = 1.0


def content_scores(x: torch.Tensor) -> torch.Tensor:
    """Scaled dot-product scores of the six features. x: (B, T, 6); returns (B, T, T)."""
    q, k = x @ W_q.to(x).T, x @ W_k.to(x).T  # .to(x): with the dtype and on the device of x
    return (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])


def attention(x: torch.Tensor) -> torch.Tensor:
    """The layer of lesson 01; the values are the features. x: (B, T, 6); returns (B, T, 6)."""
    return torch.softmax(content_scores(x), dim=-1) @ x


# %%
order = torch.tensor([0, 5, 2, 3, 4, 1], device=where)
other = sentence[:, order]
print("the other sentence:", " ".join(tokens[i] for i in order.tolist()))
here, there = attention(sentence)[0, 2], attention(other)[0, 2]
print("sat gets the same context in both:", torch.allclose(here, there, atol=1e-5))

# %% [markdown]
# Whoever sat on whom, the verb receives the same vector. It is no weakness of these matrices. Write a sentence as a matrix $X$, one row
# for each token, and a shuffle as a matrix $P$ that exchanges rows: in code $PX$ is `x[:, order]`. Without a shuffle the layer makes queries $Q$, keys $K$, values $V$,
# weights $A$ and, all in all, the contexts $f(X) = AV$. What happens when it is handed $P X$?
#
# * Every query, key and value is made from one token alone, so their rows are shuffled along: $PQ$, $PK$ and $PV$.
# * The scores become $(PQ)(PK)^\top = P\,(QK^\top)\,P^\top$: rows shuffled, and columns in the same way.
# * Softmax looks at one row at a time and does not care in which order its entries stand: the weights are $P A P^\top$.
# * The contexts are $(P A P^\top)(P V) = P\,A\,V$, because $P^\top P$ puts everything back.
#
# Shuffle first, or shuffle last, the outcome is the same: $f(PX) = P f(X)$. Such an $f$ is called **permutation-equivariant**. Attention
# sees a *bag* of tokens, in which it can find and count them, not a sequence.
#
# An argument is good; measure as well. Take any model $f$, do it both ways, and see by how much the results differ:
#
# $$\text{gap} = \max \big|\, f(PX) - P f(X) \,\big| .$$
#
# By hand, with a model that does see order: each token receives the mean of itself and all tokens before it. Take three tokens with one number each,
# $x = (2, 4, 0)$, and the shuffle that puts the last token first, so that `x[order]` with `order = [2, 0, 1]` is $(0, 2, 4)$.
#
# | | after the first step | after the second |
# |---|---|---|
# | shuffle, then the model | $(0, 2, 4)$ | $(0, 1, 2)$ |
# | the model, then shuffle | $(2, 3, 2)$ | $(2, 2, 3)$ |
# | difference | | $(-2, -1, -1)$ |
#
# The gap is 2: the largest difference, whatever its sign. A gap of 0 (up to rounding) says that this shuffle of this input made no difference to the model.
#
# Four models to measure:


# %% given="models"
def each_alone(x: torch.Tensor) -> torch.Tensor:
    """Treats every token alone. x: (B, T, d); returns (B, T, d)."""
    return torch.tanh(x)


def running_mean(x: torch.Tensor) -> torch.Tensor:
    """Gives each token the mean of itself and those before it. x: (B, T, d); returns (B, T, d)."""
    counts = torch.arange(1, x.shape[1] + 1).to(x)
    return x.cumsum(dim=1) / counts[:, None]


def left_neighbour(x: torch.Tensor) -> torch.Tensor:
    """Gives each token the one on its left, the first the last. x: (B, T, d); returns (B, T, d)."""
    return x.roll(1, dims=1)


models = {
    "attention": attention,
    "each alone": each_alone,
    "running mean": running_mean,
    "left neighbour": left_neighbour,
}

# %% [markdown]
# ### Exercise 4.1: does a model see order?
#
# The first line of the body is there already: a model may be given as a function, or by its name in `models`.


# %% exercise="equivariance_gap"
def equivariance_gap(model, x: torch.Tensor, order: torch.Tensor) -> float:
    """How much does it matter whether tokens are shuffled before or after a model?

    Args:
        model: a function from (B, T, d) to (B, T, d_out), or the name of one in `models`.
        x: (B, T, d), the tokens.
        order: (T,), a shuffle: place i of the shuffled sentence holds token order[i].

    Returns:
        The largest absolute difference between the two ways, as a number (a Python float or a
        tensor without axes). 0 if the model does not see this shuffle.

    Example:
        model "running mean", x [[[2], [4], [0]]] and order [2, 0, 1] give 2.
    """
    model = models.get(model, model)
    # TODO: the gap
    ### BEGIN SOLUTION
    shuffled_before = model(x[:, order])
    shuffled_after = model(x)[:, order]
    return (shuffled_before - shuffled_after).abs().max().item()
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# You call the model twice, once on shuffled tokens and once on the tokens as they are. The second result is not shuffled yet.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Indexing with a tensor of places shuffles an axis. The tokens stand along axis 1, so it is `x[:, order]`; `x[order]` would shuffle the batch.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# before = ...  # shuffled, then the model
# after = ...   # the model, then shuffled
# return ...
# ```
#
# </details>

# %% test="equivariance_gap" points=2
check.exercise("equivariance_gap", equivariance_gap)
### BEGIN HIDDEN TESTS
_x, _order = torch.randn(3, 7, 6), torch.randperm(7)
for _name, _model in models.items():
    _want = (_model(_x[:, _order]) - _model(_x)[:, _order]).abs().max().item()
    assert abs(float(equivariance_gap(_name, _x, _order)) - _want) < 1e-4, _name
assert float(equivariance_gap("attention", _x, _order)) < 1e-4  # a set has no order
assert (
    float(equivariance_gap("left neighbour", _x, torch.arange(7).roll(1))) < 1e-5
)  # moving all on is no shuffle to it
assert float(equivariance_gap("running mean", _x, torch.arange(7).flip(0))) > 1e-3
assert float(equivariance_gap("running mean", _x, torch.arange(7))) < 1e-5  # nothing was shuffled
assert check.unchanged(equivariance_gap, "running mean", _x, _order)
### END HIDDEN TESTS

# %%
for name in models:
    print(f"{name:14} gap {equivariance_gap(name, sentence, order):.2f}")

# %% [markdown]
# Attention is as blind to order as the model that treats each token alone. Several heads do not help: each of them is equivariant, and so are they together.
# If order is to count, it has to be put into the numbers.
#
# ## 2 · A clock with many hands
#
# What vector should say "I am at place $p$"? (A place is also called a *position*, and each number of such a vector a *dimension*; the figures do so.)
#
# * **The number $p$ itself?** At place 5000 it is 5000, and drowns every feature.
# * **The fraction $p / T$?** Bounded, but the same word in the same place gets another number as soon as the sentence grows.
# * **Binary digits?** 3 is `011` and 4 is `100`. Bounded, all different, and with enough digits for any length. The last digit flips at every step, the one before at
#   every second step, and so on. But from 3 to 4 *all* digits jump, while from 4 to 5 only one does.
#
# The third idea is nearly right; its jumps are the trouble. A clock has none. Its hands turn at different speeds, like the digits, but smoothly: the
# second hand tells moments apart, the hour hand tells breakfast from lunch. So use **hands**. A hand that turns by the angle $\omega$ (omega) at each step stands
# at the angle $p\,\omega$ at place $p$, and its tip has the coordinates $\sin(p\,\omega)$ and $\cos(p\,\omega)$: two numbers for each hand.
#
# With $d$ numbers there are $d/2$ hands. Number them $i = 0, 1, 2, \dots$ and let their speeds (their **rates**) fall from 1 towards $1/10\,000$, each by the same
# factor. This is the **sinusoidal encoding** of the first transformer:
#
# $$\mathrm{PE}[p,\, 2i] = \sin(p\,\omega_i), \qquad \mathrm{PE}[p,\, 2i + 1] = \cos(p\,\omega_i), \qquad \omega_i = 10\,000^{-2i/d} .$$
#
# Sines stand in the even columns and cosines in the odd ones. By hand, with $d = 4$: hand 0 has $\omega_0 = 10\,000^0 = 1$, hand 1 has
# $\omega_1 = 10\,000^{-2/4} = 0.01$.
#
# | $p$ | $\sin p$ | $\cos p$ | $\sin 0.01 p$ | $\cos 0.01 p$ |
# |---|---|---|---|---|
# | 0 | 0.00 | 1.00 | 0.00 | 1.00 |
# | 1 | 0.84 | 0.54 | 0.01 | 1.00 |
# | 2 | 0.91 | −0.42 | 0.02 | 1.00 |
# | 3 | 0.14 | −0.99 | 0.03 | 1.00 |
#
# **And if $d$ is odd?** Then the last hand has room for its sine only, and its cosine is cut off. With $d = 3$ the columns are $\sin p$, $\cos p$ and
# $\sin(p \cdot 10\,000^{-2/3})$.
#
# ### Exercise 4.2: the sinusoidal table
#
# Nothing is passed in whose device you could follow, so make the table on the lesson's own device, `where`.


# %% exercise="sinusoidal"
def sinusoidal(T: int, d: int) -> torch.Tensor:
    """The sinusoidal encoding of the places 0, 1, ..., T - 1.

    Args:
        T: how many places.
        d: how many numbers for each; may be odd, and then the last cosine is left out.

    Returns:
        (T, d), sines in the even columns, cosines in the odd ones; float32, on the device `where`.

    Example:
        sinusoidal(2, 4) is [[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 1.0000]].
    """
    # TODO: the table
    ### BEGIN SOLUTION
    rates = 10000.0 ** (-torch.arange(0, d, 2, device=where) / d)  # (d / 2,), rounded up
    angles = torch.arange(T, device=where)[:, None] * rates  # (T, 1) * (d / 2,)
    table = torch.zeros(T, d, device=where)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles[:, : d // 2])
    return table
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Make a table of angles first: one row for each place, one column for each hand. Sine and cosine of that table are all you need.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `torch.arange(0, d, 2)` is 0, 2, 4, …: these are the numbers $2i$ of the exponent already. A column of places `[:, None]` times a row of rates
# gives the angles. `table[:, 0::2]` are the even columns, `table[:, 1::2]` the odd ones; if $d$ is odd there is one odd column fewer.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# rates = ...   # one for each hand
# angles = ...  # (T, hands)
# table = ...   # (T, d), zeros to begin with
# table[:, 0::2] = ...
# table[:, 1::2] = ...
# ```
#
# </details>

# %% test="sinusoidal" points=3
check.exercise("sinusoidal", sinusoidal)
### BEGIN HIDDEN TESTS
for _T, _d in ((9, 6), (5, 7), (1, 4), (12, 1), (40, 30), (3, 11)):
    _got, _p = sinusoidal(_T, _d).cpu(), torch.arange(_T, dtype=torch.float64)
    assert tuple(_got.shape) == (_T, _d)
    for _column in range(_d):  # one column at a time, by the formula
        _angle = _p * 10000.0 ** (-(_column - _column % 2) / _d)
        _want = torch.cos(_angle) if _column % 2 else torch.sin(_angle)
        torch.testing.assert_close(_got[:, _column].double(), _want, rtol=1e-3, atol=1e-4)
_T, _d = int(torch.randint(20, 40, ())), 2 * int(torch.randint(5, 15, ()))
_got = sinusoidal(_T, _d).cpu()
torch.testing.assert_close(_got.pow(2).sum(-1), torch.full((_T,), _d / 2), rtol=1e-3, atol=1e-3)  # all equally long
_products = _got @ _got.T
torch.testing.assert_close(_products[1:, 1:], _products[:-1, :-1], rtol=1e-3, atol=2e-3)  # only the difference counts
torch.testing.assert_close(sinusoidal(50, _d).cpu()[:_T], _got, rtol=1e-3, atol=1e-4)  # the length changes nothing
_far = sinusoidal(3000, 4).cpu()[-1].double()  # and far places are places like any other
_want = torch.tensor([math.sin(2999), math.cos(2999), math.sin(29.99), math.cos(29.99)], dtype=torch.float64)
torch.testing.assert_close(_far, _want, rtol=0, atol=5e-3)
### END HIDDEN TESTS

# %% [markdown]
# Look at the whole table, for twelve places and sixteen numbers each.

# %%
# @title The sinusoidal table as a map
plots.heatmap(
    sinusoidal(12, 16),
    rows=[str(p) for p in range(12)],
    columns=[str(c) for c in range(16)],
    ylabel="position",
    xlabel="dimension (even: sine, odd: cosine)",
    title="Left columns change from place to place, right columns hardly move",
    alt="Heatmap of the sinusoidal encoding, 12 positions by 16 dimensions. Dimensions 0 and 1 change sign "
    "every few positions; from dimension 8 on, sines stay near 0 and cosines near 1.",
    numbers=False,
    diverging=True,
)

# %% [markdown]
# And four of its sines over a longer stretch, drawn between the places as well. Only their rates differ.

# %%
# @title Four sines of one table
fine = torch.linspace(0, 40, 1601)  # many points for each place: at the places alone, a fast sine looks jagged
plots.lines(
    fine,
    {f"dimension {c}": torch.sin(fine * 10000 ** (-c / 16)) for c in (0, 2, 4, 8)},
    xlabel="position",
    ylabel="value of the dimension",
    title="Four sines of one table: the same wave at four speeds",
    alt="Four sine columns of the sinusoidal encoding with 16 dimensions, over positions 0 to 40. Dimension 0 "
    "turns once in 6 positions, dimension 2 once in 20, dimension 4 once in 63, and dimension 8 rises slowly "
    "to about 0.39.",
)

# %% [markdown]
# Dimension 0 comes round every $2\pi \approx 6.3$ places. On its own it would take place 6 for place 0. The slower hands tell these two apart, as the
# hour hand tells 3:15 from 4:15.
#
# ## 3 · Near places look alike
#
# How alike are two places $p$ and $r$? Take the dot product of their vectors. One hand contributes
#
# $$\sin(p\,\omega) \sin(r\,\omega) + \cos(p\,\omega) \cos(r\,\omega) = \cos\big((p - r)\,\omega\big) ,$$
#
# and all hands together, for even $d$, contribute
#
# $$\mathrm{PE}[p] \cdot \mathrm{PE}[r] = \sum_i \cos\big((p - r)\,\omega_i\big) .$$
#
# Two things to see. For $p = r$ every cosine is 1, and the sum is $d/2$: all vectors have the same length. And the product depends on $p - r$ **alone**: places 2 and 5 are
# exactly as alike as places 40 and 43.
#
# So the matrix of all products, $\mathrm{PE}\,\mathrm{PE}^\top$, is constant along its diagonals. Divide it by $d/2$, so that 1 means "the same place", and
# move the slider over the number of dimensions (where no slider can be shown, two of its settings stand in for it). White stands for
# 0 and for everything below it.


# %%
def likeness(d: int) -> torch.Tensor:
    """How alike 13 places are, with d numbers each; 1 is the same place. Returns (13, 13)."""
    table = sinusoidal(13, d)
    return table @ table.T / (d / 2)


places = [str(p) for p in range(13)]

# %%
# @title How alike places are, with a slider over the number of dimensions


def at_dimension(d: int) -> None:
    """Draw how alike 13 places are with d numbers each."""
    plots.heatmap(
        likeness(d),
        rows=places,
        columns=places,
        ylabel="position p",
        xlabel="position r",
        title=f"d = {d}: places 0 and 1 are alike by {likeness(d)[0, 1]:.2f}, 0 and 6 by {likeness(d)[0, 6]:.2f}",
        alt=f"Products of the encodings of 13 positions with {d} dimensions, divided by {d // 2}.",
        numbers=False,
    )


def few_and_many_dimensions() -> None:
    """The picture in place of the slider: one hand, and 32 hands."""
    plots.small_multiples(
        [likeness(2), likeness(64)],
        titles=["d = 2: one hand", "d = 64: 32 hands"],
        rows=places,
        columns=places,
        ylabel="position p",
        xlabel="position r",
        title="One hand takes place 6 for place 0; many hands leave one dark band along the diagonal",
        alt="Two maps of how alike 13 positions are. With 2 dimensions there are three stripes: the diagonal, "
        "and one at a distance of 6 on each side, nearly as strong. With 64 dimensions one band runs along "
        "the diagonal: 1.00 on it, 0.97 beside it, 0.74 at a distance of 6.",
    )


plots.interactive(at_dimension, name="dimensions d", options=[2, 4, 8, 16, 32, 64, 128], still=few_and_many_dimensions)

# %% [markdown]
# With one hand, the picture repeats about every six places. With many, all of them agree on the diagonal, and away from it they point in different directions, the fast ones first. So the false
# stripes fade. (With $d = 16$ place 6 still stands out, 0.81 against 0.69 at place 3; with $d = 32$ place 9 is a dip, 0.62, between 0.74 at place 6 and 0.72 at place 12; with 64 and 128
# no place is more than 0.01 more alike than the one before it.) What stays is the **diagonal band**; the slow hands, which have hardly moved, keep far places somewhat alike. A layer whose
# queries and keys are these vectors prefers its surroundings, without a single learned number.
#
# ## 4 · One matrix for "three places on"
#
# A head that looks for the *next* word needs more than "near me": from place $p$ it must find place $p + 1$, whatever $p$ is. A query is a linear map of the
# token. Is there one matrix $M$ that turns $\mathrm{PE}[p]$ into $\mathrm{PE}[p + n]$, **the same for every $p$**?
#
# For one hand, going on by $n$ places means turning it by the angle $n\,\omega$. The addition theorems say so in numbers:
#
# $$\begin{pmatrix} \sin((p + n)\,\omega) \\ \cos((p + n)\,\omega) \end{pmatrix} =
# \begin{pmatrix} \cos n\omega & \sin n\omega \\ -\sin n\omega & \cos n\omega \end{pmatrix}
# \begin{pmatrix} \sin p\,\omega \\ \cos p\,\omega \end{pmatrix} .$$
#
# There is no $p$ in the matrix. By hand, with $\omega = 1$, from place 0 to place 1: the vector $(0, 1)$ becomes $(\sin 1, \cos 1) \approx (0.84, 0.54)$, which is row 1 of the table
# in section 2.
#
# For $d$ numbers, put one such block for each hand along the diagonal, with its own $\omega_i$, and zeros elsewhere:
#
# $$M_n = \begin{pmatrix} \cos n\omega_0 & \sin n\omega_0 & 0 & 0 \\ -\sin n\omega_0 & \cos n\omega_0 & 0 & 0 \\ 0 & 0 & \cos n\omega_1 & \sin n\omega_1 \\ 0 & 0 & -\sin n\omega_1 & \cos n\omega_1 \end{pmatrix} \qquad (d = 4) .$$
#
# ### Exercise 4.3: the shift matrix


# %% exercise="shift_matrix"
def shift_matrix(n: int, d: int) -> torch.Tensor:
    """The matrix M with PE[p + n] = M PE[p] for every place p.

    Args:
        n: how many places on; a negative n goes back.
        d: how many numbers each place has; even.

    Returns:
        (d, d), as float32 on the device `where`.

    Example:
        shift_matrix(1, 2) is [[0.5403, 0.8415], [-0.8415, 0.5403]].
    """
    # TODO: the matrix
    ### BEGIN SOLUTION
    angles = n * 10000.0 ** (-torch.arange(0, d, 2, device=where) / d)  # (d / 2,), one for each hand
    M = torch.zeros(d, d, device=where)
    M[0::2, 0::2] = M[1::2, 1::2] = torch.diag(torch.cos(angles))
    M[0::2, 1::2] = torch.diag(torch.sin(angles))
    M[1::2, 0::2] = -torch.diag(torch.sin(angles))
    return M
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The rates are those of exercise 4.2; each hand now has one angle, $n\,\omega_i$. Where in $M_n$ do the cosines stand, and where the sines?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Take only the even rows and even columns of $M_n$: they form a diagonal matrix of cosines, one for each hand. `M[0::2, 0::2]` is that part, and `torch.diag(v)`
# makes a diagonal matrix of a vector. The other three parts are alike.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# angles = ...  # one for each hand
# M = ...       # (d, d), zeros to begin with
# M[0::2, 0::2] = ...  # and the three other parts
# return M
# ```
#
# </details>

# %% test="shift_matrix" points=2
check.exercise("shift_matrix", shift_matrix)
### BEGIN HIDDEN TESTS
for _d in (2, 6, 10):
    _rates = torch.tensor([10000.0 ** (-2 * _i / _d) for _i in range(_d // 2)], dtype=torch.float64)
    _angles = torch.arange(-20, 40, dtype=torch.float64)[:, None] * _rates
    _table = torch.stack([_angles.sin(), _angles.cos()], dim=-1).flatten(1)  # places -20 to 39
    for _k in (0, 1, -3, int(torch.randint(4, 20, ()))):
        _M = shift_matrix(_k, _d).cpu().double()
        torch.testing.assert_close(_table[20:40] @ _M.T, _table[20 + _k : 40 + _k], rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(_M @ _M.T, torch.eye(_d, dtype=torch.float64), rtol=1e-3, atol=1e-4)  # lengths stay
        torch.testing.assert_close(shift_matrix(-_k, _d).cpu().double(), _M.T, rtol=1e-3, atol=1e-4)  # and back
_a, _b = int(torch.randint(1, 9, ())), int(torch.randint(1, 9, ()))
torch.testing.assert_close(  # first a places on, then b
    shift_matrix(_b, 8).cpu() @ shift_matrix(_a, 8).cpu(), shift_matrix(_a + _b, 8).cpu(), rtol=1e-3, atol=1e-4
)
### END HIDDEN TESTS

# %%
table = sinusoidal(13, 64)
asked = table @ shift_matrix(3, 64).T  # row p: M PE[p], the place that p asks for
for most in (64, 16):
    strongest = (asked[:, :most] @ table[:, :most].T).argmax(dim=1).tolist()
    print(f"with {most} numbers, the strongest for places 0 to 9:", strongest[:10])

# %%
# @title Which place each place asks for
plots.heatmap(
    asked @ table.T / 32,
    rows=places,
    columns=places,
    ylabel="position that asks",
    xlabel="position that is asked for",
    title="Through the shift matrix for 3, every place asks for the one three places on, as long as there is one",
    alt="Map of the products of shifted and plain encodings, 13 by 13 positions. The band of ones runs three "
    "places to the right of the diagonal.",
    numbers=False,
)

# %% [markdown]
# The band has moved by three places, at every place of the sentence alike. A head whose queries and keys have all 64 numbers can hold this matrix whole. One of four heads has 16,
# and its scores have rank 16 at most (lesson 03). That is room for 8 of the 32 hands, and as you see the 8 fastest are enough for these 13 places.
#
# ## 5 · Adding positions to tokens
#
# How do tokens get their places? The transformer does the plainest thing: it **adds** the table to them, before the first layer.
#
# $$x'_p = x_p + \mathrm{PE}[p] .$$
#
# Concatenating would make every vector longer. Does adding not spoil the features? Write out what a bilinear score makes of two sums:
#
# $$(x_p + \mathrm{PE}[p])^\top W\,(x_r + \mathrm{PE}[r]) = \underbrace{x_p^\top W x_r}_{\text{what, what}} + \underbrace{x_p^\top W\,\mathrm{PE}[r]}_{\text{what, where}} + \underbrace{\mathrm{PE}[p]^\top W x_r}_{\text{where, what}} + \underbrace{\mathrm{PE}[p]^\top W\,\mathrm{PE}[r]}_{\text{where, where}} .$$
#
# All four questions are there, and training decides how much each of them counts. In a space of hundreds of dimensions there can be room to keep features and places apart; training has to find it.
#
# In code: the table is made once, long enough for the longest sentence, and a batch of sentences takes as many rows from it as it has tokens. Every sentence of the batch gets the same rows.


# %% given="add_positions"
def add_positions(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Add to each token the row of its place. x: (B, T, d), table: (T_max, d); gives (B, T, d)."""
    return x + table[: x.shape[1]]  # (B, T, d) + (T, d)


# %% [markdown]
# Now settle the matter that lesson 01 left open. "The" and "the" are the same token, both ask for a thing, and the layer gave both nouns the same weight. What
# both articles *want* is the thing just to their right.
#
# So that every number can be followed, give every token 22 numbers. The last 16 of the token and the first 6 of the table are 0, so that features and places
# are still easy to tell apart after the addition. Of the four terms keep two: "what, what", the scores of lesson 01, and "where, where" with $W = M_1^\top$, the shift
# matrix for one place on, here without a divisor. The second is largest, $d/2 = 8$, exactly one place to the right. By hand, for "The": "cat" scores $3 + 8 = 11$; "mat", four
# places beyond, scores $3 + 5.6 = 8.6$. A lead of 2.4 is $e^{2.4} \approx 11$ times the weight.

# %%
table = torch.cat([torch.zeros(6, 6, device=where), sinusoidal(6, 16)], dim=1)  # (6, 22)


def with_places(x: torch.Tensor) -> torch.Tensor:
    """Features and places in one vector. x: (B, T, 6); returns (B, T, 22)."""
    empty = torch.zeros(*x.shape[:2], 16, device=x.device)  # room for the places
    return add_positions(torch.cat([x, empty], dim=-1), table)


def weights_with_positions(x: torch.Tensor) -> torch.Tensor:
    """Weights that look for content and one place to the right. x: (B, T, 6); returns (B, T, T)."""
    placed = with_places(x)
    what, place = placed[..., :6], placed[..., 6:]
    asked = place @ shift_matrix(1, 16).T  # the place one to the right
    return torch.softmax(content_scores(what) + asked @ place.transpose(-2, -1), dim=-1)


# %% tags=["cover"]
# @title Both articles, without places and with them
plots.small_multiples(
    [torch.softmax(content_scores(sentence), dim=-1)[0], weights_with_positions(sentence)[0]],
    titles=["features alone", "features and places"],
    rows=tokens,
    columns=tokens,
    numbers=True,
    title="With places, The finds cat and the finds mat",
    alt="Two maps of attention weights over The cat sat on the mat. By features alone, The and the both give "
    "0.45 to cat and 0.45 to mat. With places added, The gives 0.86 to cat and 0.08 to mat, the gives 0.08 "
    "to cat and 0.88 to mat; sat still gives most, 0.61, to cat, and on gives 0.86 to mat.",
)

# %% [markdown]
# The two rows that were equal are equal no more. Others pay: sat gives cat 0.61 in place of 0.80, because "on", one place to its right, draws 0.16; mat, with
# nothing to its right, gives 0.20 to itself. With several heads, one could look for content and another for places.
#
# And the verb, which could not tell who sat on whom? These new weights alone are no help: it finds the cat in either sentence, and a cat has the same features at every place. But
# the table is added *before* the layer, so the values carry their places too. Let them:


# %%
def attention_with_positions(x: torch.Tensor) -> torch.Tensor:
    """The layer with places in the values too. x: (B, T, 6); returns (B, T, 22)."""
    return weights_with_positions(x) @ with_places(x)


print(f"gap without positions {equivariance_gap(attention, sentence, order):.2f}")
print(f"gap with positions    {equivariance_gap(attention_with_positions, sentence, order):.2f}")
here, there = attention_with_positions(sentence)[0, 2], attention_with_positions(other)[0, 2]
print("sat gets the same context in both:", torch.allclose(here, there, atol=1e-5))

# %% [markdown]
# sat gives cat 0.61 of its weight in both sentences. But what comes home now says at which place the cat stands: before the verb in one, after it in the other.
#
# **A good place to stop.** You have seen why order does not count by itself, and the first way to let it count. What comes: two other ways, a prediction, all of them on
# one task, and a bug to hunt. When you are back, run everything above this line: Run, Run All Above Selected Cell (in Colab: Runtime, Run before).
#
# ## 6 · Or learn them
#
# Why compute the table, if it can be a parameter like any other? Start with random numbers and let training find what each place should say. BERT and GPT-2 do so. A
# learned table is an **embedding** of the place: `nn.Embedding(rows, columns)` holds a matrix `weight` of that shape, and looks rows up.
#
# ### Exercise 4.4: learned positions


# %% exercise="LearnedPositions"
class LearnedPositions(nn.Module):
    """Adds a learned vector to every token, one for each place.

    Args:
        max_length: for how many places there is a vector. d_model: entries of each token.

    The vectors are the rows of an nn.Embedding called table.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        # TODO: the table
        ### BEGIN SOLUTION
        self.table = nn.Embedding(max_length, d_model)
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add the vectors of the places 0, 1, ..., T - 1.

        Args:
            x: (B, T, d_model), with T at most max_length; a longer sentence is an error.

        Returns:
            (B, T, d_model).
        """
        # TODO: the tokens with their places
        ### BEGIN SOLUTION
        places = torch.arange(x.shape[1], device=x.device)  # (T,)
        return x + self.table(places)  # (B, T, d_model) + (T, d_model)
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# One line in `__init__`, one or two in `forward`. It is `add_positions` with a table of its own.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `self.table(places)` looks up the rows named by a tensor of whole numbers, and `torch.arange(T, device=x.device)` is 0, 1, …, T − 1. The matrix itself is
# `self.table.weight`.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# self.table = nn.Embedding(..., ...)
# ```
#
# and in `forward`
#
# ```
# places = ...  # (T,)
# return ...    # (B, T, d_model)
# ```
#
# </details>


# %% given="check_the_end"
# @title What a table should do with a sentence that is too long
def check_the_end(layer_class) -> None:
    """Raise CheckFailed if a table of 3 places, right for 3 tokens, takes a sentence of 4."""
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    try:
        layer = layer_class(3, 2)
        layer.load_state_dict({"table.weight": table})
        if not torch.allclose(layer(torch.zeros(2, 3, 2)), table.expand(2, 3, 2)):
            return  # something else comes first: the check after this one tells what
        shape = tuple(layer(torch.zeros(1, 4, 2)).shape)
    except Exception:  # it refuses, or it is not written, or it fails at everything
        return
    raise check.CheckFailed(
        "LearnedPositions (exercise 4.4)",
        "it takes a sentence that is longer than its table.",
        observed=f"4 tokens and max_length = 3 give a result of shape {shape}",
        expected="an error: place 3 has no vector",
        cause="A place past the end has no row: no other row, no zeros, and no token left out in its stead.",
    )


# %% test="LearnedPositions" points=2
check_the_end(LearnedPositions)
check.exercise("LearnedPositions", LearnedPositions)
### BEGIN HIDDEN TESTS
_layer = LearnedPositions(7, 5)
assert check.parameters(_layer) == {"table.weight": (7, 5)}
_weight = torch.randn(7, 5)
_layer.load_state_dict({"table.weight": _weight})
for _B, _T in ((2, 4), (3, 7), (1, 3), (4, 1), (7, 2)):
    _x = torch.randn(_B, _T, 5)
    _want = torch.stack([_x[:, _t] + _weight[_t] for _t in range(_T)], dim=1)
    torch.testing.assert_close(_layer(_x).detach(), _want, rtol=1e-4, atol=1e-5)
_layer.load_state_dict({"table.weight": torch.zeros(7, 5)})
torch.testing.assert_close(_layer(_x).detach(), _x)  # places that say nothing change nothing
try:
    _refused = not bool(_layer(torch.randn(2, 8, 5)).shape)
except Exception:
    _refused = True
assert _refused, "a sentence of 8 tokens fits a table of 7 places"
### END HIDDEN TESTS

# %% [markdown]
# A learned table costs `max_length · d_model` parameters, and it has an end: for place 512 of a table of 512 rows there is nothing (its places are 0 to 511). It also has to learn every place by itself.
# Nothing ties row 7 to row 8, and a row that no training sentence reached keeps its random numbers. Section 9 shows what such rows do.
#
# ## 7 · Or turn queries and keys
#
# What a score should depend on is usually not the places but the **offset** $r - p$, how far to the right of the query the key stands (negative to the left): "the word before", not "word 17". Adding a table
# gives four terms, and even "where, where" depends on both places, unless $W$ happens to be made of shift matrices. Can a score be built that cannot help depending on the offset alone?
#
# Back to the hands. Let the numbers of a query be hands too: take them in pairs, $(x_0, x_1)$, $(x_2, x_3)$, and so on, and **turn** pair $i$ by the angle $p\,\omega_i$ when the query
# stands at place $p$:
#
# $$\begin{pmatrix} x'_{2i} \\ x'_{2i+1} \end{pmatrix} = \begin{pmatrix} \cos p\,\omega_i & -\sin p\,\omega_i \\ \sin p\,\omega_i & \cos p\,\omega_i \end{pmatrix} \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix} .$$
#
# Turn the keys in the same way, each by its own place. Look at one pair: its share of the dot product depends on two lengths and the angle between. Turning changes no length, and if the query's pair turned
# by $p\,\omega$ and the key's by $r\,\omega$, the angle between them has changed by $(r - p)\,\omega$. So the score depends on the two vectors and on $r - p$, and on nothing else. A key three places
# to the left counts differently from one three places to the right. This is the **rotary
# position embedding**, RoPE.
#
# By hand, with $d = 2$, so $\omega = 1$, with $q = (1, 0)$ and $k = (0, 1)$. Turned by $p$, the query is $(\cos p, \sin p)$; turned by $r$, the key is $(-\sin r, \cos r)$.
#
# | query at | key at | turned query | turned key | score |
# |---|---|---|---|---|
# | 0 | 1 | $(1, 0)$ | $(-0.84, 0.54)$ | $-0.84$ |
# | 1 | 2 | $(0.54, 0.84)$ | $(-0.91, -0.42)$ | $-0.49 - 0.35 = -0.84$ |
# | 1 | 0 | $(0.54, 0.84)$ | $(0, 1)$ | $0.84$ |
# | 2 | 1 | $(-0.42, 0.91)$ | $(-0.84, 0.54)$ | $0.35 + 0.49 = 0.84$ |
#
# A key one place to the right scores $-\sin 1 \approx -0.84$ wherever the pair stands, and one place to the left $+0.84$. Nothing is added to the tokens, and values are not turned: places enter through the scores alone, anew in every layer.
#
# ### Exercise 4.5: rotary positions
#
# The places are passed in, because a sentence does not always begin at 0 (when a model writes word by word, it asks for one place at a time). There may be any axes in front: `x` is `(T, d)`, `(B, T, d)` or `(B, H, T, d)`.


# %% exercise="rope"
def rope(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Turn every pair of entries by the place of its token: rotary position embedding.

    Args:
        x: (..., T, d), queries or keys, with d even. Entries 2i and 2i + 1 form pair i.
        positions: (T,), the place of each token.

    Returns:
        (..., T, d), each pair i turned by the angle positions · 10000^(-2i/d), from the first axis
        towards the second.

    Example:
        x [[1, 0]] at positions [1] gives [[0.5403, 0.8415]].
    """
    # TODO: every pair, turned
    ### BEGIN SOLUTION
    d = x.shape[-1]
    rates = 10000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    angles = positions[:, None] * rates  # (T, d / 2)
    even, odd = x[..., 0::2], x[..., 1::2]  # (..., T, d / 2)
    turned_even = even * torch.cos(angles) - odd * torch.sin(angles)
    turned_odd = even * torch.sin(angles) + odd * torch.cos(angles)
    return torch.stack([turned_even, turned_odd], dim=-1).flatten(-2)  # (..., T, d / 2, 2), then (..., T, d)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Angles as in exercise 4.2, with `positions` in place of `torch.arange(T)`. Then two lines of arithmetic, the two rows of the matrix above, for all pairs at once.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `x[..., 0::2]` are the first entries of all pairs and `x[..., 1::2]` the second ones, both `(..., T, d / 2)`. Angles of shape `(T, d / 2)` line up with them, heads or no heads. Compute *both* new
# halves before you put them together: `torch.stack([a, b], dim=-1)` makes pairs, and `.flatten(-2)` strings them together.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# angles = ...  # (T, d / 2)
# even, odd = ...  # the two halves of the pairs
# new_even = ...
# new_odd = ...
# return ...    # (..., T, d)
# ```
#
# </details>

# %% test="rope" points=3
check.exercise("rope", rope)
### BEGIN HIDDEN TESTS
_q, _k = torch.randn(2, 3, 5, 8, dtype=torch.float64), torch.randn(2, 3, 7, 8, dtype=torch.float64)
_pq, _pk = torch.randint(0, 30, (5,)), torch.randint(0, 30, (7,))
_pairs = torch.view_as_complex(_q.reshape(2, 3, 5, 4, 2).contiguous())  # turning is multiplying by a complex number
_angles = _pq[:, None].double() * torch.tensor([10000.0 ** (-_i / 4) for _i in range(4)], dtype=torch.float64)
_want = torch.view_as_real(_pairs * torch.polar(torch.ones_like(_angles), _angles)).flatten(-2)
torch.testing.assert_close(rope(_q, _pq), _want, rtol=1e-3, atol=1e-4)
_scores = rope(_q, _pq) @ rope(_k, _pk).mT
_later = rope(_q, _pq + 11) @ rope(_k, _pk + 11).mT  # the whole sentence further on: the same scores
torch.testing.assert_close(_later, _scores, rtol=1e-3, atol=1e-3)
torch.testing.assert_close(rope(_q, _pq).norm(dim=-1), _q.norm(dim=-1), rtol=1e-3, atol=1e-4)  # no length changes
torch.testing.assert_close(rope(_q, torch.zeros(5)), _q, rtol=1e-3, atol=1e-4)
torch.testing.assert_close(rope(rope(_q, _pq), -_pq), _q, rtol=1e-3, atol=1e-4)  # there and back
_x = torch.randn(4, 9, 6)
torch.testing.assert_close(
    rope(_x[:, 3:5], torch.arange(3, 5)), rope(_x, torch.arange(9))[:, 3:5], rtol=1e-3, atol=1e-4
)
assert check.unchanged(rope, _x, torch.arange(9))
assert check.gradients(rope, _x, torch.arange(9))[0] is not None
### END HIDDEN TESTS

# %% [markdown]
# Is the promise kept? Give all of twelve tokens the *same* content, so that only their places differ, and compare the scores: first with the table added and a random $W_q$ and $W_k$, then with the same
# matrices and RoPE in place of the table.

# %%
content = device.randn(16, seed=1)
W_one, W_two = device.randn(16, 16, seed=2) / 4, device.randn(16, 16, seed=3) / 4
twelve = torch.arange(12, device=where)
placed = content + sinusoidal(12, 16)  # (12, 16)
alike = content.expand(12, 16)
by_adding = (placed @ W_one) @ (placed @ W_two).T / 4
by_turning = rope(alike @ W_one, twelve) @ rope(alike @ W_two, twelve).T / 4


def unevenness(scores: torch.Tensor) -> float:
    """By how much do scores at the same offset differ, at most?"""
    diagonals = [scores.diagonal(offset) for offset in range(1 - len(scores), len(scores))]
    return max((d.max() - d.min()).item() for d in diagonals)


print(f"added:  scores at one offset differ by up to {unevenness(by_adding):.1f}")
print(f"turned: by less than 0.0001: {unevenness(by_turning) < 1e-4}")

# %%
# @title Scores between equal tokens, by adding and by turning
plots.small_multiples(
    [by_adding, by_turning],
    titles=["table added to the tokens", "queries and keys turned"],
    rows=[str(p) for p in range(12)],
    columns=[str(p) for p in range(12)],
    ylabel="position of the query",
    xlabel="position of the key",
    title="With RoPE every diagonal is constant: between equal tokens, only r − p counts",
    alt="Two maps of scores between 12 tokens of equal content. With the table added, the scores form an "
    "irregular pattern. With rotary positions every diagonal has one colour.",
    diverging=True,
)

# %% [markdown]
# Published code also pairs entry $i$ with entry $i + d/2$. Either layout is right if it is used throughout; weights trained with one do not work with the other.
#
# You have built this rotation before. The shift matrix turned a hand by $n\,\omega_i$ as well, in the other direction, because its vectors hold the sine first:

# %%
x = device.randn(16, seed=5)
turned = rope(x[None], torch.tensor([3], device=where))[0]
same = torch.allclose(turned, shift_matrix(-3, 16) @ x, atol=1e-4)
print("rope at place 3 is the shift matrix for -3:", same)

# %% [markdown]
# ## 8 · Or subtract the distance
#
# There is a way that gives places no vectors at all. **ALiBi** (attention with linear biases) leaves queries and keys as they are and lowers each score in proportion to the **distance**,
# the offset without its sign:
#
# $$s_{pr} = \frac{q_p \cdot k_r}{\sqrt{d_k}} - m\,|p - r| .$$
#
# The **slope** $m$ is a fixed number, another one for each head: for 8 heads $\tfrac12, \tfrac14, \dots, \tfrac1{256}$.


# %% given="alibi"
def alibi(scores: torch.Tensor, slope: float) -> torch.Tensor:
    """Weights of scores (T, T), each lowered by slope · distance."""
    place = torch.arange(len(scores)).to(scores)
    return torch.softmax(scores - slope * (place[:, None] - place).abs(), dim=-1)


# %% [markdown]
# By hand, for "The" with $m = \tfrac12$: both nouns score 3 by their features. "cat", one place away, keeps $3 - 0.5 = 2.5$, and "mat", five places away, $3 - 2.5 = 0.5$, so "cat" gets
# $e^2 \approx 7.4$ times the weight of "mat".
#
# A gentle slope prefers what is near, a steep one sees nothing else. "on" scores "mat", two places on, by 3, and itself by 0. How steep must the slope be
# before "on" looks at itself as much as at "mat"? Predict it before you look.
#
# ### Exercise 4.6: predict where attention breaks


# %% exercise="breaking_slope"
def breaking_slope(lead: float, place: int, a: int, b: int) -> float:
    """From which slope of ALiBi on does a query give key a as much weight as key b, or more?

    Args:
        lead: by how much b scores more than a before the distance counts; positive.
        place: where the query stands. a, b: where the two keys stand. All are counted from 0.

    Returns:
        The slope. math.inf where no slope is steep enough.

    Example:
        "on" at place 3, itself and "mat" at place 5: breaking_slope(3.0, 3, 3, 5) gives 1.5.
    """
    # TODO: the slope
    ### BEGIN SOLUTION
    further = abs(b - place) - abs(a - place)
    return lead / further if further > 0 else math.inf
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Write down the scores of a and of b, each lowered by its distance. When are they equal?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Every unit of slope takes from the lead what b is further away than a. And if b is no further away? Both sides count: three places to the left are as far as three to the right.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# further = ...  # how much further away b is than a
# return ... if ... else math.inf
# ```
#
# </details>

# %% test="breaking_slope" points=2
check.exercise("breaking_slope", breaking_slope)
### BEGIN HIDDEN TESTS
for _ in range(40):  # a prediction is right if the measurement agrees, just below and just above it
    _place, _a, _b = torch.randint(0, 9, (3,)).tolist()
    _lead = 0.5 + 3 * torch.rand(()).item()
    _scores = torch.zeros(9, 9, dtype=torch.float64)
    _scores[_place, _b] += _lead
    _slope = float(breaking_slope(_lead, _place, _a, _b))
    for _m in (1e-3, 0.5, 2.0, 6.0, 0.98 * _slope, 1.02 * _slope):
        if _a != _b and math.isfinite(_m):
            _row = alibi(_scores, _m)[_place]
            assert bool(_row[_a] >= _row[_b]) == (_m >= _slope), (_lead, _place, _a, _b, _m)
assert breaking_slope(2.0, 4, 2, 6) == math.inf  # as far to the left as to the right
### END HIDDEN TESTS

# %%
scores = content_scores(sentence)[0].cpu()  # (6, 6)
for token, sought in (("The", "cat"), ("on", "mat"), ("mat", "sat")):
    p, r = tokens.index(token), tokens.index(sought)
    slope = breaking_slope(3.0, p, p, r)
    found = [alibi(scores, m)[p].argmax().item() for m in (0.9 * slope, 1.1 * slope)]
    below, above = (tokens[each] for each in found)
    print(f"{token:3} breaks at slope {slope:.1f}: below it looks at {below}, above it at {above}")

# %%
# @title A gentle slope and a steep one
plots.small_multiples(
    [alibi(scores, m) for m in (0.5, 2.0)],
    titles=["m = 1/2", "m = 2, for comparison"],
    rows=tokens,
    columns=tokens,
    numbers=True,
    title="Both slopes settle the articles; with the steep one, on and mat look mostly at themselves",
    alt="Two maps of attention weights with a penalty for distance. With slope 1/2, The gives 0.78 to cat and "
    "0.11 to mat, the gives 0.24 to cat and 0.65 to mat, on gives 0.72 to mat, mat gives 0.67 to sat. With "
    "slope 2, The gives 0.73 to cat and the gives 0.69 to mat, but on gives 0.60 to itself and 0.22 to mat, "
    "and mat gives 0.83 to itself.",
)

# %% [markdown]
# Several heads with different slopes see near and far at once. What a distance cannot say is *left or right*: your prediction was infinite for keys equally far to the left and to the right. ALiBi was made for models in which
# every token sees only those before it (lesson 05), and there the question does not arise.
#
# ## 9 · Which one?
#
# Set all of them the same small task. A sentence is a row of random tokens out of ten, and for each token the layer has to name **its left neighbour**. One attention layer, 32 dimensions, 150 steps of training
# on sentences of 12 tokens, the same for each. Then comes the test, on sentences of 12 tokens and on longer ones. ALiBi has slope 1. Everything is done three times, from other random numbers.
#
# The code holds nothing new: run it and go straight to the figure if you like.


# %%
class Reader(nn.Module):
    """One attention layer that names a token for each token; `kind` is how it learns of places."""

    def __init__(self, kind: str, d: int = 32):
        super().__init__()
        self.kind = kind
        self.embed = nn.Embedding(10, d)
        self.positions = LearnedPositions(48, d)
        self.W_q, self.W_k, self.W_v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.out = nn.Linear(d, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """words: (B, T), whole numbers; returns (B, T, 10), a score for each token."""
        x = self.embed(words)  # (B, T, d)
        place = torch.arange(words.shape[1], device=words.device)
        if self.kind == "sinusoidal":
            x = add_positions(x, sinusoidal(*x.shape[1:]))
        if self.kind == "learned":
            x = self.positions(x)
        q, k = self.W_q(x), self.W_k(x)
        if self.kind == "RoPE":
            q, k = rope(q, place), rope(k, place)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, T)
        if self.kind == "ALiBi":
            scores = scores - (place[:, None] - place).abs()
        return self.out(torch.softmax(scores, dim=-1) @ self.W_v(x))


def train(kind: str, seed: int) -> Reader:
    """Train a reader on sentences of 12 tokens; the first token has no left neighbour."""
    device.seed(seed)
    reader, draw = Reader(kind).to(where), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(reader.parameters(), lr=0.01)
    for _ in range(150):
        words = torch.randint(10, (64, 12), generator=draw).to(where)
        named = reader(words)[:, 1:].flatten(0, 1)
        loss = nn.functional.cross_entropy(named, words[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return reader


@torch.no_grad()
def accuracy(reader: Reader, length: int) -> float:
    """The fraction of left neighbours that the reader names in 200 new sentences."""
    draw = torch.Generator().manual_seed(length)
    words = torch.randint(10, (200, length), generator=draw).to(where)
    return (reader(words)[:, 1:].argmax(dim=-1) == words[:, :-1]).float().mean().item()


kinds, lengths, seeds = ("RoPE", "ALiBi", "sinusoidal", "learned", "none"), [12, 16, 24, 32, 48], 3
results = torch.zeros(len(kinds), seeds, len(lengths))
for run in bar(range(len(kinds) * seeds), "training"):
    which, seed = divmod(run, seeds)
    reader = train(kinds[which], seed)
    results[which, seed] = torch.tensor([accuracy(reader, length) for length in lengths])

solved = [kind for i, kind in enumerate(kinds) if (results[i, :, 0] > 0.9).all()]
print("more than 9 of 10 right at 12 tokens, in each run:", ", ".join(solved))
longest = results[:, :, -1]  # (kinds, seeds), at 48 tokens
ahead = bool((longest[0] > longest[1:].amax(dim=0) + 0.1).all())
print("RoPE is ahead by more than 0.1 at 48 tokens, in each run:", ahead)

# %%
# @title Left neighbours named, on sentences longer than in training
plots.lines(
    lengths,
    {kind: results[i].mean(dim=0) for i, kind in enumerate(kinds)},
    xlabel="tokens in the sentence (trained on 12)",
    ylabel="fraction of left neighbours named",
    title="Means of three runs: three of five learn where left is, and RoPE carries it furthest",
    alt="Accuracy at naming the left neighbour, for sentences of 12 to 48 tokens, after training on 12; means of "
    "three runs. RoPE, sinusoidal and learned positions begin at 1.0. At 48 tokens RoPE is still above 0.9, "
    "sinusoidal below 0.6 and learned positions near 0.3. ALiBi stays near 0.6, no positions near 0.2.",
    logx=True,
)

# %% [markdown]
# Without positions the layer can only guess among the tokens that it sees (about a quarter right at 12 tokens, less in longer sentences). ALiBi finds the neighbours, and cannot tell the left one from the right one,
# as section 8 said. It is right more than half of the time, because the last token has only one neighbour, and two neighbours may be equal. The three others all solve the task on the length that they were
# trained on. Beyond it they part. The rows 12 to 47 of the *learned* table were never trained. The *sinusoidal* table knows those places, but the layer never met them, and what it had learned to do with
# places 0 to 11 does not fully carry over. For *RoPE* the left neighbour of place 40 is at the offset −1 as everywhere; new are the keys that are further away than any in training.
#
# This is one small task, not a law, and runs differ: of ten such runs, RoPE named 0.77 of the neighbours at 48 tokens in the worst and all in the best, the sinusoidal table 0.44 to 0.52. Large models with RoPE have been found to fail on texts much longer than those they were trained on (Chen et al., below).
#
# ## 10 · Spot the bug
#
# The function below adds the sinusoidal encoding at given places. Its author had the formula of section 2 at hand: $10\,000^{-2i/d}$. They tried it on tokens of two numbers each, at a thousand places, and it agreed with
# a second implementation. They looked at larger tables: all rows differ, all entries lie between −1 and 1, all rows have length $\sqrt{d/2}$, and there is even a shift matrix. It is still wrong.


# %% given="published"
def published_positions(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Add sinusoidal positions. x: (B, T, d) with d even, positions: (T,); returns (B, T, d)."""
    i = torch.arange(0, x.shape[-1], 2, device=x.device)
    angles = positions[:, None] * 10000.0 ** (-2 * i / x.shape[-1])  # (T, d / 2)
    return x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def second_positions(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """The same from complex numbers, with rates on a logarithmic scale from 1 towards 1e-4."""
    if x.shape[-1] % 2:
        raise ValueError("d must be even: every hand takes two of a token's numbers")
    rates = torch.logspace(0, -4, x.shape[-1] // 2 + 1, device=x.device)[:-1]  # (d / 2,)
    angles = positions[:, None] * rates
    tips = torch.polar(torch.ones_like(angles), angles)  # (T, d / 2), cosine + i sine
    return x + torch.view_as_real(tips).flip(-1).flatten(-2)


# %%
x, positions = device.randn(1, 1000, 2, seed=6), torch.arange(1000, device=where)
same = torch.allclose(published_positions(x, positions), second_positions(x, positions), atol=1e-3)
print("agrees for tokens of two numbers:", same)

# %% [markdown]
# First find an input that shows it: the second implementation is right. Return tokens and places (small ones are best) on which the published one gives something else.
#
# ### Exercise 4.7: a counterexample


# %% exercise="counterexample"
def counterexample() -> tuple[torch.Tensor, torch.Tensor]:
    """An input on which published_positions is wrong.

    Returns:
        x: (B, T, d) with d even and positions: (T,), two tensors of finite numbers.
    """
    # TODO: two tensors on which the bug shows
    ### BEGIN SOLUTION
    x = torch.zeros(1, 2, 4)
    positions = torch.tensor([0.0, 10.0])
    return x, positions
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# What are the values of `i` when a token has two numbers? And which places give the right row whatever the rate is?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# In the formula $i$ is the number of the hand: 0, 1, 2. In the code `i` is 0, 2, 4. The two agree on hand 0 alone, so let there be a second hand, and a place at which it has visibly turned.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# x = torch.zeros(...)
# positions = torch.tensor([...])
# return ...
# ```
#
# </details>

# %% test="counterexample" points=1
check.counterexample(
    "counterexample",
    counterexample,
    wrong=published_positions,
    right=second_positions,
    axes=("B T d", "T"),
)
### BEGIN HIDDEN TESTS
_x, _positions = counterexample()
_right = second_positions(_x, _positions)
assert torch.isfinite(_right).all()
assert (published_positions(_x, _positions) - _right).abs().max() > 1e-4
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 4.8: the repair


# %% exercise="repaired_positions"
def repaired_positions(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """published_positions, repaired (and without calling second_positions).

    Args:
        x: (B, T, d), d even. positions: (T,), the place of each token.

    Returns:
        (B, T, d).
    """
    # TODO: the lines of published_positions, mended
    ### BEGIN SOLUTION
    i = torch.arange(0, x.shape[-1], 2, device=x.device)
    angles = positions[:, None] * 10000.0 ** (-i / x.shape[-1])  # (T, d / 2)
    return x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# One number too many, in the line with the angles, or in the line above it.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `i` counts in steps of two: it is $2i$ already, and the formula doubles it once more. Either leave out the 2, or count the hands 0, 1, 2, …
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# i = ...       # (d / 2,)
# angles = ...  # (T, d / 2)
# return ...    # (B, T, d)
# ```
#
# </details>

# %% test="repaired_positions" points=1
if check.source_uses(repaired_positions, ["second_positions"]):
    raise check.CheckFailed(
        "repaired_positions (exercise 4.8)",
        "it calls the other implementation.",
        cause="Mend the published lines themselves.",
    )
check.exercise("repaired_positions", repaired_positions)
### BEGIN HIDDEN TESTS
for _B, _T, _d in ((2, 3, 4), (1, 5, 8), (3, 4, 30), (2, 6, 2)):
    _x, _positions = torch.randn(_B, _T, _d), torch.randint(0, 60, (_T,))
    _rates = torch.tensor([10000.0 ** (-2 * _i / _d) for _i in range(_d // 2)])
    _want = _x.clone()
    _want[..., 0::2] += torch.sin(_positions[:, None] * _rates)
    _want[..., 1::2] += torch.cos(_positions[:, None] * _rates)
    torch.testing.assert_close(repaired_positions(_x, _positions), _want, rtol=1e-3, atol=1e-4)
    assert check.unchanged(repaired_positions, _x, _positions)
### END HIDDEN TESTS

# %% [markdown]
# What did the bug cost? Nothing breaks: a model trains with it. But the rates now fall to $1/10^8$ in place of $1/10^4$. See how far each sine column moves over 512 places,
# from its lowest value to its highest. (It is 2 for a hand that went three quarters of the way round or further, and 1 for one that passed a quarter turn but not a half.)

# %%
x, positions = torch.zeros(1, 512, 64, device=where), torch.arange(512, device=where)
moved = {}
for name, function in (("repaired", repaired_positions), ("as published", published_positions)):
    sines = function(x, positions)[0, :, 0::2]  # (512, 32)
    moved[name] = (sines.amax(dim=0) - sines.amin(dim=0)).tolist()
    still = sum(m < 0.05 for m in moved[name])
    print(f"{name:12} hands that move by less than 0.05: {still} of 32")

# %%
# @title How far each hand moves over 512 places
plots.lines(
    list(range(32)),
    moved,
    xlabel="hand (pair of dimensions)",
    ylabel="how far its sine moves over 512 places",
    title="With the doubled exponent nearly half of the hands stand still",
    alt="How far the sine of each of 32 hands moves over 512 positions. Repaired, hands 0 to 16 run through "
    "the full 2, and the last still moves by 0.07. As published, only hands 0 to 8 do, where both curves "
    "coincide, and hands 17 to 31 move by less than 0.05.",
)

# %% [markdown]
# ## Questions
#
# Answer in your head first, then open.
#
# <details><summary><b>1.</b> A layer without positions has an equivariance gap of 0. Can it still tell "cat cat mat" from "cat mat mat"?</summary>
#
# **Yes.** These are different bags of words: one has two cats, the other two mats. Equivariance says only that the *order* of the same tokens makes no difference.
#
# * *No, it sees no positions:* it does not need any to count. Two equal keys together draw twice the weight of one.
# * *Only with several heads:* one head is enough, see above.
#
# </details>
# <details><summary><b>2.</b> For odd d there is a sinusoidal table, but no shift matrix. Why?</summary>
#
# Because $\sin((p + n)\,\omega) = \sin p\,\omega \cos n\omega + \cos p\,\omega \sin n\omega$ **needs the cosine of its own hand**, and for odd $d$ the last hand has lost it. No combination of the other
# hands replaces it for all $p$, since they turn at other speeds.
#
# * *Because the rates are not defined:* they are; the last sine is there and has its rate.
#
# </details>
# <details><summary><b>3.</b> RoPE turns queries and keys. Should it turn the values too?</summary>
#
# **No.** Scores compare a query with a key, and there the two rotations leave a difference. A value is compared with nothing: it would be handed over turned by its own absolute place, and
# the sum would mix vectors that were turned differently.
#
# * *Yes, all three come from the same tokens:* they have different tasks, and RoPE uses places to decide where to look.
# * *It makes no difference, since rotations keep lengths:* each vector keeps its length, but directions change, and the sum of the values with them.
#
# </details>
# <details><summary><b>4.</b> You add the sinusoidal table to tokens with entries of about 0.02. What happens?</summary>
#
# The places **drown the tokens**: entries of the table are of size 1, fifty times as large, so at first all scores depend on places nearly alone. The first transformer multiplies its
# embeddings by $\sqrt{d}$ before it adds the table, which works against this, and BERT starts its learned table with small numbers.
#
# * *Nothing, the projections learn the right scale:* they may in the end, but training starts from scores that hardly see the words.
# * *The places are lost:* it is the other way round; the smaller part is the one that is lost.
#
# </details>
#
# ## Recap
#
# Which exercises are right and which are open shows here; run the cell whenever you like. To run everything above a cell: Run, Run All Above Selected Cell (in Colab: Runtime, Run before).

# %%
check.progress()

# %% [markdown]
# You measured that attention does not see order, built the table of hands that shows it, found the one matrix that looks $n$ places on, learned positions, turned queries and keys so that only
# their offset counts, and predicted where a penalty for distance goes too far. Then you set them all the same task.
#
# **Where it lives in real models.** The sinusoidal table belongs to the first transformer. Learned tables are in BERT and GPT-2. RoPE is in Llama and many language models since, ALiBi in BLOOM. A layer in which
# each token sees only those before it is no longer equivariant, as the `running mean` showed.
#
# **Next.** Lesson 05 decides what a token is allowed to see. Lesson 09 learns one number for each distance, a cousin of ALiBi.
#
# **References**
#
# * Vaswani et al. (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762): the sinusoidal encoding, section 3.5.
# * Gehring et al. (2017), [Convolutional sequence to sequence learning](https://arxiv.org/abs/1705.03122): learned positions.
# * Su et al. (2021), [RoFormer: enhanced transformer with rotary position embedding](https://arxiv.org/abs/2104.09864): RoPE.
# * Press, Smith, Lewis (2022), [Train short, test long: attention with linear biases enables input length extrapolation](https://arxiv.org/abs/2108.12409): ALiBi.
# * Chen et al. (2023), [Extending context window of large language models via positional interpolation](https://arxiv.org/abs/2306.15595): RoPE beyond the trained length.
# * Kazemnejad et al. (2023), [The impact of positional encoding on length generalization in transformers](https://arxiv.org/abs/2305.19466): a careful comparison, with no positions among the contestants.
