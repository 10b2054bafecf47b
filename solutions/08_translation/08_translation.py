# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08 · Translation
#
# **At the end of this lesson you own a translator from English to French that you trained yourself, and you know, in numbers, how
# well it translates and how far its attention map can be trusted.** This is a sentence that it never saw, with the map that it
# drew while it was being trained, and the links that a translator would draw:
#
# ![Four attention maps of The cat sat on the mat, with frames around the gold links: pale and even before training, dark inside the frames after it](attachment:cover.png)
#
# | | |
# |---|---|
# | time | 155 minutes in two sittings |
# | difficulty | demanding: many small parts that have to fit |
# | builds on | lesson 01: additive scores; lesson 02: $-\ln p$ of the right answer; lesson 05: masks; lesson 06: cross-attention; lesson 07: the GRU, a training loop, validation |
# | you will write | 8 pieces of a translator, a test that finds other people's mistakes, a counterexample and a repair |
#
# **Its English is small.** All sentences, of training and test, come from word lists and one grammar, so that the right links are
# known. The numbers below say much about the machine and nothing about translating a newspaper.
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
import os
import tempfile
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import sacrebleu
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention_course import check, device, plots
from attention_course.bar import bar
from attention_course.data import translation

device.seed(8)
where = device.pick()  # a GPU if there is one
graded = "ATTENTION_GRADING" in os.environ  # then nothing is trained to the end
PAD, BOS, EOS = translation.Vocabulary.PAD, translation.Vocabulary.BOS, translation.Vocabulary.EOS
check.start("08")

# %% [markdown]
# ## 1 · Sentences with known links
#
# You have the parts: scores, softmax, masks, attention from one sequence to another. Here they become a machine that reads an English
# sentence and writes a French one, and nobody tells it which word belongs to which.
#
# To find out whether it discovers that by itself, we need sentences for which the answer is known. The course's grammar knows both
# languages: 20,000 pairs for training, others for testing, and for each pair the **gold links**, the words that translate each
# other. The model never sees the links. Here are the first pairs of the test:

# %% given="corpus"
training = translation.load("train")
test = translation.load("test", size=30 if graded else None)
long = translation.load("long", size=30 if graded else 600)
english = translation.Vocabulary.build(pair.source for pair in training)
french = translation.Vocabulary.build(pair.target for pair in training)
the_cat = test[0]

# %%
for pair in test[:5]:
    print(" ".join(pair.source), "→", " ".join(pair.target))
print()
for i, j in sorted(the_cat.alignment, key=lambda link: link[1]):
    print(f"{the_cat.source[i]:>4} — {the_cat.target[j]}")
print()
most = max(len(pair.source) for pair in training)
print(f"{len(training)} pairs for training, of {most} English tokens at most")
print("the cat's sentence is among them:", any(pair.source == the_cat.source for pair in training))

# %% [markdown]
# One English word can have two French ones ("sat" is "est assis"), words change their order ("black dog", "chien noir"), and
# articles depend on a noun that comes later ("le tapis", "la maison"). A dictionary would not do.
#
# A network wants numbers. Each language has a **vocabulary**: a list of its words, and four numbers that are no words.
#
# | number | token | what it is for |
# |---|---|---|
# | 0 | `<pad>` | fills a short sentence up to the length of the longest in its batch |
# | 1 | `<bos>` | "begin": what the decoder reads before it writes its first word |
# | 2 | `<eos>` | "end": what the decoder writes when it is done |
# | 3 | `<unk>` | a word that did not occur in training |
#
# In the code they are called `PAD`, `BOS` and `EOS`. A batch of two pairs, as numbers:

# %%
two = translation.batch([the_cat, test[3]], english, french, device=where)
print("source     ", two.source.tolist())
print("lengths    ", two.source_lengths.tolist())
print("target_in  ", two.target_in.tolist())
print("target_out ", two.target_out.tolist())

# %% [markdown]
# The target comes twice. At each place the decoder reads `target_in` up to there and should say `target_out`: after `<bos>` the
# first word, after the last one `<eos>`. That is **teacher forcing**: in training, the decoder always reads the *right* words so far,
# whatever it would have written itself. All places of a sentence can then be computed at once.
#
# ## 2 · Reading in both directions
#
# First the letters, some of which stood for something else in earlier lessons. $B$ counts sentences, $S$ the English words of
# each (the $T_k$ of lesson 01) and $T$ the French ones ($T_q$). $H$ is the size of an encoder's state in one direction, and $D$
# that of a decoder's state.
#
# The **encoder** turns each source word into a vector that knows its surroundings. The GRU of lesson 07 goes through the sentence
# word by word: $h_t = z_t \odot h_{t-1} + (1 - z_t) \odot n_t$, where the gate $z_t$ decides how much of the old state stays, and the
# proposal $n_t$ comes from the word and the old state. Its state after "cat" has seen "The cat", and not what follows. A translator
# has to: whether "flies" is a verb or an animal is decided further on. So a second GRU reads from right to left, and the vector of
# a word is both states side by side: a **bidirectional** encoder.
#
# Now mind the padding. Lesson 07 packed its sentences for you; here is why. The backward reader of a short sentence *begins* with
# the padding, and the forward one *ends* with it:
#
# | | the, cat, sleeps, `<pad>`, `<pad>` | |
# |---|---|---|
# | forward | reads the cat sleeps `<pad>` `<pad>` | its last state has read two words too many |
# | backward | reads `<pad>` `<pad>` sleeps cat the | *all* its states have read them |
#
# The remedy is a **packed sequence**: PyTorch packs the batch without its padding, and the GRU runs over each sentence for exactly as many
# steps as it has words.
#
# | call | does |
# |---|---|
# | `pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)` | packs `x: (B, S, d)`; the lengths have to be on the CPU |
# | `self.rnn(packed)` | gives the packed states and the last state of each direction, `(2, B, H)` |
# | `pad_packed_sequence(states, batch_first=True, total_length=S)` | unpacks to `(B, S, 2H)` with zeros at the padding, and the lengths once more |
#
# Without `total_length` the result is as long as the longest sentence, which is shorter than $S$ if all sentences are padded.
#
# ### Exercise 8.1: the encoder


# %% exercise="Encoder"
class Encoder(nn.Module):
    """A bidirectional GRU over word vectors, which never reads padding.

    Args:
        words: how many words the vocabulary has. d_embed: numbers in a word's vector.
        d_hidden: numbers in a state, H.

    Its parts are self.embed, an nn.Embedding, and self.rnn, an nn.GRU with batch_first=True and
    bidirectional=True.
    """

    def __init__(self, words: int, d_embed: int, d_hidden: int):
        super().__init__()
        # TODO: make self.embed and self.rnn
        ### BEGIN SOLUTION
        self.embed = nn.Embedding(words, d_embed)
        self.rnn = nn.GRU(d_embed, d_hidden, batch_first=True, bidirectional=True)
        ### END SOLUTION

    def forward(
        self,
        source: torch.Tensor,
        lengths: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Read a batch of sentences.

        Args:
            source: (B, S), the words' numbers, with 0 behind the end of a sentence.
            lengths: (B,), how many words each sentence has, in any order.

        Returns:
            states: (B, S, 2H), forward and backward state of each word side by side, zeros at the
            padding;
            last: (2, B, H), the state in which the forward reader ended, then that of the backward
            reader.
        """
        # TODO: the states of every word, and the last ones
        ### BEGIN SOLUTION
        vectors = self.embed(source)  # (B, S, d_embed)
        packed = pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, last = self.rnn(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        return states, last
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Two lines in `__init__`, five in `forward`: the three calls of the table above, with an embedding before them and a `return` after.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `pad_packed_sequence` returns two things, and you need the first. The GRU's second output is `last` as it should be: with packed
# input it is the state after each sentence's own last word (forward) and after its first word (backward).
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `vectors`, `packed`, `states, last`, `states, _`: one line each, in the order of the table, and a `return`.
#
# </details>

# %% test="Encoder" points=2
try:
    batch_first = Encoder(7, 3, 2).rnn.batch_first
except Exception:  # then something else is the matter, and the check below says what
    batch_first = True
if not batch_first:
    raise check.CheckFailed(
        "Encoder (exercise 8.1)",
        "self.rnn was made without batch_first=True.",
        cause="Packed input hides that: its numbers come out the same. But the next cell runs "
        "self.rnn on a batch that is not packed, where it would take words for sentences.",
    )
check.exercise("Encoder", Encoder)
### BEGIN HIDDEN TESTS
_gru = nn.GRU(5, 3, batch_first=True, bidirectional=True)
_embed = nn.Embedding(11, 5)
_net = Encoder(11, 5, 3)
_net.load_state_dict(
    {"embed.weight": _embed.weight.detach()} | {f"rnn.{k}": v.detach() for k, v in _gru.named_parameters()}
)
_lengths = torch.tensor([4, 7, 1, 5])[torch.randperm(4)]
_source = torch.randint(4, 11, (4, 9)) * (torch.arange(9) < _lengths[:, None])  # two columns of padding alone
_states, _last = _net(_source, _lengths)
assert _states.shape == (4, 9, 6)
assert _last.shape == (2, 4, 3)
for _row, _n in enumerate(_lengths.tolist()):  # each sentence alone, without any padding
    _alone, _end = _gru(_embed(_source[_row : _row + 1, :_n]))
    torch.testing.assert_close(_states[_row, :_n], _alone[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(_states[_row, _n:], torch.zeros(9 - _n, 6), rtol=0, atol=1e-6)
    torch.testing.assert_close(_last[:, _row], _end[:, 0], rtol=1e-4, atol=1e-5)
_fewer, _ = _net(_source[:, : int(_lengths.max())], _lengths)  # padding changes nothing
torch.testing.assert_close(_fewer, _states[:, : int(_lengths.max())], rtol=1e-4, atol=1e-6)
assert set(check.parameters(_net)) == {"embed.weight"} | {f"rnn.{k}" for k, _ in _gru.named_parameters()}
### END HIDDEN TESTS

# %% [markdown]
# See what packing saves you from:

# %%
device.seed(1)
encoder = Encoder(len(english), 8, 8).to(where)
n = len(the_cat.source)
alone = torch.tensor([english.encode(the_cat.source)], device=where)
padded = nn.functional.pad(alone, (0, 4))  # four columns of padding
with torch.no_grad():
    packed = [encoder(x, torch.tensor([n]))[0][:, :n] for x in (alone, padded)]
    unpacked = [encoder.rnn(encoder.embed(x))[0][:, :n] for x in (alone, padded)]
print("packed: padding changes the states:", not torch.allclose(*packed, atol=1e-3))
print("not packed: padding changes the states:", not torch.allclose(*unpacked, atol=1e-3))

# %% [markdown]
# ## 3 · The bridge
#
# The decoder is a GRU as well, and it needs a state to start from. The encoder offers two: where the forward reader ended and
# where the backward reader ended, each with $H$ numbers. The **bridge** makes one vector of $D$ numbers out of them, which the
# decoder starts from:
#
# $$d_0 = \tanh\big([\overrightarrow{h};\, \overleftarrow{h}]\, W + b\big),$$
#
# where $[\,\cdot\,;\,\cdot\,]$ puts two vectors side by side, so that $W$ has shape $(2H, D)$. By hand, with $H = D = 1$: forward
# 0.2, backward −0.5, $W = (1, 2)^\top$ and $b = 1.3$ give $\tanh(0.2 - 1.0 + 1.3) = \tanh(0.5) \approx 0.46$.
#
# The formula is harmless; the tensor is not. PyTorch hands out the last states of an encoder of $L$ layers as one tensor of shape
# $(2L, B, H)$, and the **batch is its second axis**:
#
# | index | $L = 1$ | $L = 2$ |
# |---|---|---|
# | 0 | forward | layer 1, forward |
# | 1 | backward | layer 1, backward |
# | 2 | | layer 2, forward |
# | 3 | | layer 2, backward |
#
# A decoder of one layer continues the encoder's *top* layer. And one must take two vectors of the *same sentence*: a `view` that
# merely has the right shape takes them from wherever they lie in memory.
#
# ### Exercise 8.2: the bridge


# %% exercise="bridge"
def bridge(last: torch.Tensor, W: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Make the decoder's first state out of the encoder's last ones.

    Args:
        last: (2L, B, H), the last states of a bidirectional nn.GRU of L layers.
        W: (2H, D). b: (D,).

    Returns:
        (B, D), tanh of the top layer's forward and backward state, side by side, times W, plus b.

    Example:
        last [[[0.2]], [[-0.5]]], W [[1], [2]] and b [1.3] give [[0.4621]].
    """
    # TODO: the decoder's first state, for any L
    ### BEGIN SOLUTION
    both = torch.cat([last[-2], last[-1]], dim=-1)  # (B, 2H)
    return torch.tanh(both @ W + b)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Two lines. Count from the end: which two indices belong to the top layer, whatever $L$ is?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `last[-1]` has shape `(B, H)`: the top layer's backward state of every sentence. `torch.cat([..., ...], dim=-1)` puts two such
# tensors side by side. Forward comes first.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `both = ...` of shape `(B, 2H)`, then a `return` with the formula.
#
# </details>

# %% test="bridge" points=2
check.exercise("bridge", bridge)
### BEGIN HIDDEN TESTS
for _layers in (1, 2, 3):
    _last = torch.randn(2 * _layers, 4, 3)
    _W, _b = torch.randn(6, 5) / 2, torch.randn(5)
    _right = torch.stack(
        [torch.tanh(_last[-2, i] @ _W[:3] + _last[-1, i] @ _W[3:] + _b) for i in range(4)]
    )  # sentence by sentence
    torch.testing.assert_close(bridge(_last, _W, _b), _right, rtol=1e-4, atol=1e-5)
    _shuffle = torch.randperm(4)  # another order of the batch gives the same, in that order
    torch.testing.assert_close(bridge(_last[:, _shuffle], _W, _b), _right[_shuffle], rtol=1e-4, atol=1e-5)
    _changed = _last.clone()
    _changed[:, 2] += 1.0  # another sentence next to it changes nothing
    torch.testing.assert_close(bridge(_changed, _W, _b)[[0, 1, 3]], _right[[0, 1, 3]], rtol=1e-4, atol=1e-5)
torch.testing.assert_close(bridge(_last[:, :1], _W, _b), _right[:1], rtol=1e-4, atol=1e-5)
assert check.unchanged(bridge, _last, _W, _b)
assert all(g is not None for g in check.gradients(bridge, _last, _W, _b))
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Attention, step by step
#
# At each step the decoder has a state. From it comes a query; the source words' states offer keys and values; what comes back is
# a **context**, the average of the source that this step wants. The first translator that did this used the additive score of
# lesson 01 (and took the state *before* the step; the recap says more). Let $d_t$ be the decoder's state at step $t$, and $h_j$
# the encoder's state of source word $j$, with $2H$ numbers. These states are the values, $v_j = h_j$, and
#
# $$s_{tj} = w^\top \tanh(W_q^\top d_t + k_j), \qquad a_{tj} = \mathrm{softmax}_j(s_{tj}), \qquad c_t = \sum_j a_{tj}\, v_j .$$
#
# These vectors are columns. With one vector in each row, as tensors have them, $W_q^\top d_t$ is `states @ W_q`.
#
# Two things are new. The keys $k_j = W_k^\top h_j$ are the same at every step, so they are computed once for each sentence and
# handed over ready. And there is a **mask**, `True` where a word stands and `False` at padding. Your `masked_softmax` of exercise 5.4
# is given again for it: padding gets weight 0 exactly, and where there is nothing to look at, weights and context are 0.
#
# By hand, with numbers in place of vectors, $W_q = 1$ and $w = 2$: the state is 0.5, the keys are −0.5, 0.5 and, at the padding, 9.
# The scores are $2 \tanh 0 = 0$ and $2 \tanh 1 \approx 1.52$; $e^0 = 1$ and $e^{1.52} \approx 4.59$; the weights are
# $1 / 5.59 \approx 0.18$, $0.82$, and 0. With the values 1, 0 and 100 the context is 0.18. The 100 does not count.
#
# In training all $T$ states of a sentence are known at once, because of teacher forcing, and all of them can attend at once. In
# writing there is one state at a time: $T = 1$. One function serves both.


# %% given="masked_softmax"
def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis, 0 at padding; a row with nothing to look at is all 0."""
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
    return weights.masked_fill(~mask, 0.0)


# %% [markdown]
# ### Exercise 8.3: attend


# %% exercise="attend_step"
def attend_step(
    states: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
    W_q: torch.Tensor,
    w: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Let decoder states look at the source, with additive scores and a mask.

    Args:
        states: (B, T, D), one decoder state for each step; T is 1 while a sentence is written.
        keys: (B, S, A), ready to be added to. values: (B, S, V), what is averaged.
        mask: (B, S), True where a source word stands, False at padding. There, too, keys and values
            are finite (lesson 06 shows what to do where they are not).
        W_q: (D, A), makes queries of the states. w: (A,), reads the score off.

    Returns:
        context: (B, T, V), and
        weights: (B, T, S), 0 at padding, whatever the size of the scores; a row with nothing to
        look at is all 0.

    Example:
        states [[[0.5]]], keys [[[-0.5], [0.5], [9]]], values [[[1], [0], [100]]],
        mask [[True, True, False]], W_q [[1]] and w [2] give the context [[[0.1790]]] and the
        weights [[[0.1790, 0.8210, 0]]].
    """
    # TODO: the context and the weights of every step
    ### BEGIN SOLUTION
    moved = (states @ W_q)[:, :, None, :]  # (B, T, 1, A)
    scores = torch.tanh(moved + keys[:, None, :, :]) @ w  # (B, T, S)
    weights = masked_softmax(scores, mask[:, None, :])
    return weights @ values, weights
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The scores are exercise 1.6 with the keys already moved. The mask needs an axis for $T$ before it can meet `(B, T, S)`.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `mask[:, None, :]` has shape `(B, 1, S)`. Queries and keys meet in a tensor `(B, T, S, A)`: give the one an axis for $S$ and the
# other an axis for $T$. The product with `w` takes the last axis away.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `moved = ...` `(B, T, 1, A)`, `scores = ...` `(B, T, S)`, `weights = masked_softmax(...)`, and a product with `values`.
#
# </details>

# %% test="attend_step" points=3
check.exercise("attend_step", attend_step)
### BEGIN HIDDEN TESTS
_q, _k, _v = torch.randn(3, 2, 4), torch.randn(3, 5, 6), torch.randn(3, 5, 7)
_Wq, _u = torch.randn(4, 6) / 2, torch.randn(6)
_lengths = [5, 3, 1]
_mask = torch.arange(5) < torch.tensor(_lengths)[:, None]
_context, _weights = attend_step(_q, _k, _v, _mask, _Wq, _u)
for _row, _n in enumerate(_lengths):  # each sentence alone, without its padding
    _s = torch.stack([torch.tanh(_q[_row] @ _Wq + _k[_row, j]) @ _u for j in range(_n)], dim=-1)
    _a = torch.exp(_s) / torch.exp(_s).sum(-1, keepdim=True)
    torch.testing.assert_close(_weights[_row, :, :_n], _a, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(_weights[_row, :, _n:], torch.zeros(2, 5 - _n), rtol=0, atol=0)
    torch.testing.assert_close(_context[_row], _a @ _v[_row, :_n], rtol=1e-4, atol=1e-5)
_noise = torch.where(_mask[..., None], 0.0, 50 * torch.randn(3, 5, 1))  # what stands at padding does not matter
torch.testing.assert_close(attend_step(_q, _k + _noise, _v + _noise, _mask, _Wq, _u)[0], _context, rtol=1e-4, atol=1e-5)
_one = attend_step(_q[:, 1:], _k, _v, _mask, _Wq, _u)  # one step alone is the same as that step among others
torch.testing.assert_close(_one[0], _context[:, 1:], rtol=1e-4, atol=1e-5)
_empty = _mask.clone()
_empty[1] = False
_context, _weights = attend_step(_q, _k, _v, _empty, _Wq, _u)
assert (_weights[1] == 0).all()
assert (_context[1] == 0).all()
_grads = check.gradients(attend_step, _q, _k, _v, _empty, _Wq, _u)
assert all(g is not None and torch.isfinite(g).all() for g in _grads)
assert check.unchanged(attend_step, _q, _k, _v, _mask, _Wq, _u)
### END HIDDEN TESTS

# %% [markdown]
# ### The whole translator
#
# The parts fit together like this. The encoder reads; what it leaves behind for the decoder is its **memory** of the sentence. The
# decoder's GRU starts from the bridge and reads the French words so far. At each step its state attends to the memory, and state
# and context together say which word comes next.
#
# `build` makes three models: the translator; a translator **without attention**, whose context is the bridge's vector at every
# step, so that all it knows of the sentence has to fit into that one vector; and a "toy" for checks, which looks at nothing but
# the word before (its code is folded).


# %% given="translator"
class Memory(NamedTuple):
    """What the encoder leaves for the decoder."""

    model: nn.Module
    keys: torch.Tensor  # (B, S, A)
    values: torch.Tensor  # (B, S, 2H)
    mask: torch.Tensor  # (B, S)
    start: torch.Tensor  # (B, D), from the bridge


def matrix(*shape: int) -> nn.Parameter:
    """A random matrix that keeps the size of what it is multiplied with."""
    return nn.Parameter(torch.randn(*shape) / math.sqrt(shape[0]))


class Translator(nn.Module):
    """Encoder, bridge, attention (or none) and a decoder, each with d numbers in a state."""

    def __init__(self, source_words: int, target_words: int, d: int, attention: bool = True):
        super().__init__()
        self.attention = attention
        self.encoder = Encoder(source_words, d, d)
        self.W_bridge, self.b_bridge = matrix(2 * d, d), nn.Parameter(torch.zeros(d))
        self.embed = nn.Embedding(target_words, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        if attention:
            self.W_q, self.W_k = matrix(d, d), matrix(2 * d, d)
            self.w = nn.Parameter(torch.randn(d) / math.sqrt(d))
        self.combine = nn.Linear(3 * d if attention else 2 * d, d)
        self.out = nn.Linear(d, target_words)

    def remember(self, source: torch.Tensor, lengths: torch.Tensor) -> tuple[Memory, torch.Tensor]:
        """Read (B, S). Returns the memory and the decoder's first state, (B, d)."""
        values, last = self.encoder(source, lengths)
        start = bridge(last, self.W_bridge, self.b_bridge)
        keys = values @ self.W_k if self.attention else values
        return Memory(self, keys, values, source != PAD, start), start

    def read_off(self, states: torch.Tensor, m: Memory) -> tuple[torch.Tensor, torch.Tensor | None]:
        """From decoder states (B, T, d) to logits (B, T, words) and weights (B, T, S)."""
        if self.attention:
            context, weights = attend_step(states, m.keys, m.values, m.mask, self.W_q, self.w)
        else:
            context, weights = m.start[:, None].expand_as(states), None
        return self.out(torch.tanh(self.combine(torch.cat([states, context], dim=-1)))), weights

    def forward(self, source: torch.Tensor, lengths: torch.Tensor, target_in: torch.Tensor):
        """Teacher forcing: logits (B, T, words) for the word after each of target_in; weights."""
        memory, start = self.remember(source, lengths)
        states, _ = self.rnn(self.embed(target_in), start[None])  # all T steps in one call
        return self.read_off(states, memory)


# %% given="build"
# @title `build`, and the toy for checks
class Toy(nn.Module):
    """Says the next word from the word before it alone, by a table of logits and a bias that start at 0."""

    def __init__(self, words: int = 7):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(words, words))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, source: torch.Tensor, lengths: torch.Tensor, target_in: torch.Tensor):
        return 8 * self.table[target_in] + self.bias, None  # 8, so that gradients are long enough to be clipped


models: dict[str, nn.Module] = {}  # the model last built under each name


def build(name: str, d: int = 96) -> nn.Module:
    """A new, untrained model: "with attention", "without attention" or "toy"; the same numbers on every machine."""
    device.seed(8)
    if name == "toy":
        models[name] = Toy().to(where)
    else:
        models[name] = Translator(len(english), len(french), d, attention=name == "with attention").to(where)
    return models[name]


# %% [markdown]
# ## 5 · A loss that ignores padding
#
# At each place the model gives a number for every French word, the **logits**. Softmax makes probabilities of them, and the loss of
# that place is $-\ln p$ of the right word (lesson 02). The loss of a batch is the mean. Over what? Take two sentences, of three
# words and of one (without `<eos>`, to keep the table small):
#
# | | $-\ln p$ of the right word | | |
# |---|---|---|---|
# | first | 0.1 | 0.5 | 0.9 |
# | second | 2.5 | `<pad>` | `<pad>` |
#
# * Over the **four words**: $(0.1 + 0.5 + 0.9 + 2.5) / 4 = 1.0$. This is the one we want: each word that is to be learned counts the same.
# * Over all six places: the model soon learns that `<pad>` follows `<pad>`, at a loss of 0, and the mean is $4.0 / 6 \approx 0.67$. It
#   looks better than it is, and changes with the company that a sentence is in.
# * The mean of the sentences' means: $(0.5 + 2.5) / 2 = 1.5$. A word in a short sentence then counts more than one in a long sentence.
#
# Often its exponential is reported, the **perplexity**: $e^{1.0} \approx 2.7$ says that the model is as unsure as if it had to guess among
# 2.7 equally likely words.
#
# ### Exercise 8.4: the masked loss


# %% exercise="masked_cross_entropy"
def masked_cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean of -ln p(right word) over all places of a batch that are not padding.

    Args:
        logits: (B, T, words), one number for each word of the vocabulary at each place.
        target: (B, T), the number of the right word; 0 is padding. At least one is not.

    Returns:
        The loss, a tensor without axes, of the dtype of the logits. Which finite numbers the logits
        hold at padding does not matter.

    Example:
        logits [[[0, 0], [5, 7]]] and target [[1, 0]] give 0.6931, which is ln 2: the second place
        is padding.
    """
    # TODO: the loss
    ### BEGIN SOLUTION
    real = target != PAD  # (B, T)
    logarithms = torch.log_softmax(logits[real], dim=-1)  # (real places, words)
    return -logarithms.gather(1, target[real][:, None]).mean()
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# A boolean tensor can be an index: `logits[target != PAD]` keeps the real places of all sentences in one list.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# With a boolean `real` of shape `(B, T)`, `logits[real]` has shape `(n, words)` and `target[real]` has shape `(n,)`. From here it is an ordinary
# cross-entropy: `nn.functional.cross_entropy` does it, or `torch.log_softmax` and `gather`.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `real = ...`, then a `return` with the cross-entropy of what is real.
#
# </details>

# %% test="masked_cross_entropy" points=2
check.exercise("masked_cross_entropy", masked_cross_entropy)
### BEGIN HIDDEN TESTS
_logits = 2 * torch.randn(4, 5, 6)
_target = torch.randint(1, 6, (4, 5)) * (torch.arange(5) < torch.tensor([5, 2, 1, 4])[:, None])
_terms = [
    torch.logsumexp(_logits[i, t], 0) - _logits[i, t, _target[i, t]]
    for i in range(4)
    for t in range(5)
    if _target[i, t] != 0
]
_right = torch.stack(_terms).mean()
torch.testing.assert_close(masked_cross_entropy(_logits, _target), _right, rtol=1e-4, atol=1e-5)
_noise = torch.where((_target == 0)[..., None], 40 * torch.randn(4, 5, 6), 0.0)  # padding does not matter
torch.testing.assert_close(masked_cross_entropy(_logits + _noise, _target), _right, rtol=1e-4, atol=1e-5)
_wider = masked_cross_entropy(
    torch.cat([_logits, torch.randn(4, 3, 6)], 1), torch.cat([_target, torch.zeros(4, 3).long()], 1)
)
torch.testing.assert_close(_wider, _right, rtol=1e-4, atol=1e-5)
torch.testing.assert_close(masked_cross_entropy(_logits + 300.0, _target), _right, rtol=1e-3, atol=1e-4)
_far = 60 * torch.randn(4, 5, 6)  # costs far above 20
torch.testing.assert_close(
    masked_cross_entropy(_far, _target), nn.functional.cross_entropy(_far[_target != 0], _target[_target != 0])
)
_even = masked_cross_entropy(torch.zeros(4, 5, 6), _target)
torch.testing.assert_close(_even, torch.tensor(math.log(6.0)), rtol=1e-4, atol=1e-5)
(_gradient,) = check.gradients(masked_cross_entropy, _logits, _target)
assert (_gradient[_target == 0] == 0).all()
torch.testing.assert_close(_gradient[_target != 0].sum(-1), torch.zeros(12), rtol=0, atol=1e-5)
assert check.unchanged(masked_cross_entropy, _logits, _target)
### END HIDDEN TESTS

# %%
batch = next(translation.batches(training, english, french, size=64, seed=0, device=where))
untrained = build("with attention")
with torch.no_grad():
    loss = masked_cross_entropy(untrained(*batch[:3])[0], batch.target_out).item()
guess = math.log(len(french))  # of a guess among all words
print("the untrained model's loss is within 0.3 of a guess's:", abs(loss - guess) < 0.3)

# %% [markdown]
# (Padding is also work. So `translation.batches` puts sentences of near-equal length together.)
#
# ## 6 · Writing, greedily
#
# To write, the decoder has to choose, word by word, and to live with its choices. All it needs is one function:


# %% given="step"
def step(
    memory: Any,
    words: torch.Tensor,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Go on by one word.

    Args:
        memory: the memory of N sentences, or of one that N hypotheses share. For trying things out,
            it may also be a table of log-probabilities, (words, words, words): of the next word,
            given the last two.
        words: (N,), the word written last, `BOS` at the start.
        state: (N, ...), the decoder's state; with a table it is the word before the last one, (N,).

    Returns:
        (N, words), the log-probability of each next word, and the new state, which belongs to these
        N words.
    """
    if isinstance(memory, torch.Tensor):
        return memory[state, words], words
    states, _ = memory.model.rnn(memory.model.embed(words)[:, None], state[None])  # (N, 1, d)
    logits, _ = memory.model.read_off(states, memory)
    return torch.log_softmax(logits[:, 0], dim=-1), states[:, 0]


# %% given="roads"
# @title A table of eight words, to follow with a finger
toy_words = ["<pad>", "<bos>", "<eos>", "<unk>", "un", "le", "chat", "chien", "oiseau"]


def toy_table(roads: dict[str, dict[str, float]]) -> torch.Tensor:
    """A table for `step` in which the next word depends on the last one alone: ln of the probabilities in `roads`."""
    table = torch.full((len(toy_words), len(toy_words)), 1e-6, device=where)
    for word, following in roads.items():
        for other, probability in following.items():
            table[toy_words.index(word), toy_words.index(other)] = probability
    return torch.log(table).expand(len(toy_words), -1, -1)


roads = toy_table(
    {
        "<bos>": {"un": 0.6, "le": 0.4},
        "un": {"chat": 0.5, "chien": 0.3, "oiseau": 0.2},
        "le": {"chat": 0.9, "chien": 0.1},
        "chat": {"<eos>": 1.0},
        "chien": {"<eos>": 1.0},
        "oiseau": {"<eos>": 1.0},
    }
)

# %% [markdown]
# Two kinds of memory go into `step`: that of a real sentence, and a **table**, small enough to follow with a finger. In the table
# `roads`, the first word is "un" with probability 0.6 and "le" with 0.4; "un" goes on to "chat" with 0.5, "chien" 0.3 or "oiseau"
# 0.2; "le" goes on to "chat" with 0.9 or "chien" 0.1; after a noun comes `<eos>`.
#
# **Greedy** decoding takes the most probable word each time: "un" (0.6), then "chat" (0.5), then `<eos>` (1.0). Together
# $0.6 \cdot 0.5 \cdot 1.0 = 0.30$.
#
# The state is the subtle part: what `step` returns goes into the next call, together with the words just chosen. Sentences of a
# batch end at different times. One that has written `<eos>` may go on being computed with the others, but what it writes after that
# is thrown away.
#
# ### Exercise 8.5: greedy decoding


# %% exercise="greedy_decode"
def greedy_decode(memory: Any, state: torch.Tensor, limit: int) -> list[list[int]]:
    """Write the most probable next word, again and again, for N sentences at once.

    Args:
        memory: as for `step`, of N sentences. state: (N, ...), the state to start from.
        limit: how many words a sentence may have at most; one that has not ended by then is cut.

    Returns:
        For each sentence the list of its words' numbers, without BOS, and up to EOS but without it.

    Example:
        greedy_decode(roads, torch.zeros(1, dtype=torch.long), 5) gives [[4, 6]], "un chat".
    """
    # TODO: the sentences, all at once
    ### BEGIN SOLUTION
    words = torch.full((len(state),), BOS, device=state.device)
    written, ended = [], torch.zeros_like(words, dtype=torch.bool)
    for _ in range(limit):
        scores, state = step(memory, words, state)
        words = scores.argmax(dim=-1)  # (N,)
        written.append(words)
        ended = ended | (words == EOS)
        if ended.all():
            break
    rows = torch.stack(written, dim=1).tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# `torch.full((len(state),), BOS, device=state.device)` are the first words. In the loop, both `words` and `state` are replaced by
# what came out.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Collect the chosen words of each step, `(N,)`, in a list. `torch.stack(written, dim=1).tolist()` makes a list of numbers for
# each sentence of it. `row[: row.index(EOS)]` is what stands before the first `EOS`, if there is one.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# First words, an empty list, a loop over `range(limit)` with one call of `step`, one choice, and the choice into the list; then
# rows, cut. You may stop early when every sentence has ended; it saves time and changes nothing.
#
# </details>

# %% test="greedy_decode" points=2
check.exercise("greedy_decode", greedy_decode)


### BEGIN HIDDEN TESTS
def _follow(table, before, limit):
    last, written = BOS, []
    for _ in range(limit):
        before, last = last, int(table[before, last].argmax())
        if last == EOS:
            break
        written.append(last)
    return written


for _ in range(5):
    _table = torch.log_softmax(2 * torch.randn(8, 8, 8), dim=-1)  # the next word depends on the last two
    _starts = torch.randint(0, 8, (6,))
    for _limit in (1, 4, 9):
        assert greedy_decode(_table, _starts, _limit) == [_follow(_table, int(s), _limit) for s in _starts]
    assert greedy_decode(_table, _starts[2:3], 6) == greedy_decode(_table, _starts, 6)[2:3]  # sentences do not mix
_never = _table.clone()
_never[..., EOS] = -50.0
assert [len(row) for row in greedy_decode(_never, _starts, 7)] == [7] * 6
_at_once = _table.clone()
_at_once[..., EOS] = 50.0
assert greedy_decode(_at_once, _starts, 7) == [[]] * 6
assert check.unchanged(greedy_decode, _table, _starts, 5)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · Writing with second thoughts
#
# Greedy decoding wrote "un chat", with probability 0.30. It overlooked "le chat": $0.4 \cdot 0.9 \cdot 1.0 = 0.36$. The first
# word looked worse, and what followed made up for it. To try all sentences is impossible: with 400 words and 10 places there are
# $400^{10}$. **Beam search** keeps the few best beginnings instead of one; here, with a beam of 2:
#
# | round | all extensions | the best 2 |
# |---|---|---|
# | 1 | un 0.6, le 0.4 | un 0.6, le 0.4 |
# | 2 | un chat 0.30, un chien 0.18, un oiseau 0.12, le chat 0.36, le chien 0.04 | le chat 0.36, un chat 0.30 |
# | 3 | le chat `<eos>` 0.36, un chat `<eos>` 0.30 | both are finished |
#
# Each **hypothesis** carries three things: the logarithm of its probability so far (products of small numbers run out of digits,
# sums of logarithms do not), its words, and *its own* decoder state. A finished hypothesis keeps its total and is not extended
# any more, but it stays in the beam: it takes one of the places, and can still be pushed out by better ones. (Other programs move
# the finished ones to a list of their own, with other results.)
#
# At the end one has to choose. Every further word makes a sentence less probable, so the highest total favours short sentences. The
# usual remedy is to compare the total **per word**: $\ln(0.36) / 3 \approx -0.34$ for "le chat `<eos>`", against
# $\ln(0.30) / 3 \approx -0.40$.
#
# ### Exercise 8.6: beam search


# %% exercise="beam_search"
def beam_search(
    memory: Any,
    state: torch.Tensor,
    beam: int,
    limit: int,
) -> tuple[list[int], float]:
    """Write one sentence, keeping the most probable beginnings.

    In each of `limit` rounds every unfinished hypothesis is extended by each next word, and
    finished ones (those that end in EOS) stay as they are. Of all these together, the `beam` with
    the largest total log-probability survive.

    Args:
        memory: as for `step`, of one sentence. state: (1, ...), the state to start from.
        beam: how many hypotheses survive a round, at most as many as there are words.
        limit: rounds.

    Returns:
        words: the hypothesis with the largest total per word, as numbers, without BOS and EOS;
        score: that total divided by the number of its words, EOS counted and BOS not.

    Example:
        beam_search(roads, torch.zeros(1, dtype=torch.long), 2, 5) gives [5, 6], "le chat",
        and -0.3406.
    """
    # TODO: the best hypothesis, and its score
    ### BEGIN SOLUTION
    hypotheses = [(0.0, [BOS], state)]
    for _ in range(limit):
        grown = [h for h in hypotheses if h[1][-1] == EOS]
        for total, words, before in [h for h in hypotheses if h[1][-1] != EOS]:
            scores, after = step(memory, torch.tensor(words[-1:], device=state.device), before)
            best = zip(*(x.tolist() for x in scores[0].topk(beam)), strict=True)
            grown += [(total + s, [*words, w], after) for s, w in best]
        hypotheses = sorted(grown, key=lambda h: h[0], reverse=True)[:beam]
    total, words, _ = max(hypotheses, key=lambda h: h[0] / (len(h[1]) - 1))
    return [w for w in words[1:] if w != EOS], total / (len(words) - 1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Plain Python lists will do. Start from one hypothesis, the tuple `(0.0, [BOS], state)`; in each round build a new list `grown`, first with the finished
# ones, then with all extensions of the others.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# To extend one hypothesis, call `step` with its last word as a tensor of shape `(1,)` and with its own state. No extension beyond
# its `beam` best can survive, so `scores[0].topk(beam)` is enough. Each extension carries the state that `step` returned.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# A list with one hypothesis. In each round: `grown`, from the finished ones and from all extensions; `sorted` by the total, largest
# first, and cut to `beam`. After the rounds: `max` by the total per word.
#
# </details>

# %% test="beam_search" points=3
check.exercise("beam_search", beam_search)


### BEGIN HIDDEN TESTS
def _search(table, before, beam, limit):
    kept = [(0.0, (before, BOS))]
    for _ in range(limit):
        grown = []
        for total, path in kept:
            if path[-1] == EOS and len(path) > 2:
                grown.append((total, path))
            else:
                grown += [(total + table[path[-2], path[-1], w].item(), (*path, w)) for w in range(len(table))]
        kept = sorted(grown, key=lambda each: -each[0])[:beam]
    total, path = max(kept, key=lambda each: each[0] / (len(each[1]) - 2))
    return [w for w in path[2:] if w != EOS], total / (len(path) - 2)


for _ in range(6):
    _table = torch.log_softmax(2 * torch.randn(8, 8, 8), dim=-1)
    _state = torch.randint(0, 8, (1,))
    for _beam, _limit in ((1, 5), (2, 3), (3, 6), (8, 4)):
        _words, _score = beam_search(_table, _state, _beam, _limit)
        _right, _value = _search(_table, int(_state), _beam, _limit)
        assert list(_words) == _right
        assert abs(float(_score) - _value) < 1e-3
_gentle = torch.log_softmax(torch.randn(6, 6, 6), dim=-1)
_gentle[..., EOS] -= 30.0  # nothing ever ends: all hypotheses are equally long, and a wider beam is never worse
_scores = [float(beam_search(_gentle, torch.zeros(1, dtype=torch.long), b, 2)[1]) for b in (1, 6)]
assert _scores[1] >= _scores[0] - 1e-5
_every = torch.stack([_gentle[0, BOS, a] + _gentle[BOS, a, b] for a in range(6) for b in range(6)])
assert abs(_scores[1] * 2 - _every.max().item()) < 1e-3  # with every first word kept, two rounds try everything
assert check.unchanged(beam_search, _table, _state, 3, 4)
### END HIDDEN TESTS

# %%
start = torch.zeros(1, dtype=torch.long, device=where)
greedy = greedy_decode(roads, start, limit=5)[0]
wide, score = beam_search(roads, start, beam=2, limit=5)
print("greedy:", " ".join(toy_words[w] for w in greedy))
print("a beam of 2:", " ".join(toy_words[w] for w in wide), f"with a total of {score:.2f} per word")

# %% [markdown]
# There is a third way, for where many continuations are good (a story, an answer in a chat): **sampling**. Draw the next word from the
# probabilities, divided by a temperature first, as in lesson 02. Translation wants *the* sentence, so it searches.
#
# **A good place to stop.** The first sitting ends here: you have the encoder, the bridge, attention, the loss and two ways to write. In
# the second you measure, train, look and find other people's mistakes. To come back, run everything above this cell:
# Run, Run All Above Selected Cell (in Colab: Runtime, Run before); nothing up to here takes long.
#
# ## 8 · How good is a translation?
#
# There are many good translations of a sentence; to compare two translators one needs a number. The usual one is **BLEU**: of all runs of
# 1, 2, 3 and 4 words that the translator wrote, which part stands in the reference as well? (A run counts at most as often as it stands
# there.) BLEU is the geometric mean of the four parts, times a penalty if the whole is shorter than the reference, times 100.
#
# By hand: "Le chat est sur le tapis ." against "Le chat est assis sur le tapis ." All 7 words are in the reference, 5 of the 6
# pairs, 3 of the 5 triples and 1 of the 4 runs of four. The geometric mean is
# $\sqrt[4]{\tfrac77 \cdot \tfrac56 \cdot \tfrac35 \cdot \tfrac14} = \sqrt[4]{0.125} \approx 0.595$. Seven words against eight cost
# $e^{1 - 8/7} \approx 0.867$. Together $0.515$, a BLEU of 51.5, for one forgotten word.
#
# BLEU is taken over a whole test set at once, and it depends on how a text is cut into words. So nobody should program it anew: the
# `sacrebleu` library does it the same way for everybody. (Our sentences are cut already, hence `tokenize="none"`.) And it depends on
# the sentences most of all: compare it between models on one test set, not with a number from elsewhere.


# %% given="bleu"
def bleu(written: list[list[str]], pairs: list[translation.Pair]) -> float:
    """BLEU of the sentences that were written for these pairs, as lists of words."""
    references = [" ".join(pair.target) for pair in pairs]
    lines = [" ".join(words) for words in written]
    return sacrebleu.corpus_bleu(lines, [references], tokenize="none", force=True).score


@torch.no_grad()
def translate(
    model: nn.Module,
    pairs: list[translation.Pair],
    beam: int = 1,
    limit: int = 40,
) -> list[list[str]]:
    """The model's French for the English of these pairs: greedy, or by beam search if beam > 1."""
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].source))  # near-equal lengths
    size = 100 if beam == 1 else 1
    written: dict[int, list[str]] = {}
    for start in bar(range(0, len(order), size), "translating"):
        chunk = order[start : start + size]
        mine = [pairs[i] for i in chunk]
        source, lengths, *_ = translation.batch(mine, english, french, device=where)
        memory, state = model.remember(source, lengths)
        rows = greedy_decode(memory, state, limit)
        if beam > 1:
            rows = [beam_search(memory, state, beam, limit)[0]]
        written |= {i: french.decode(row) for i, row in zip(chunk, rows, strict=True)}
    return [written[i] for i in range(len(pairs))]


# %%
forgetful = [word for word in the_cat.target if word != "assis"]
print(f"one word forgotten: {bleu([forgetful], [the_cat]):.1f}")
print(f"the reference itself: {bleu([list(the_cat.target)], [the_cat]):.1f}")

# %% [markdown]
# ## 9 · How good is a map?
#
# An attention map looks like an alignment. Whether it *is* one can be measured, because here the gold links are known. From a
# map we read one link for each French word: to the English word that it gives the most weight. The **alignment error rate** compares
# the found links $A$ with the gold links $G$:
#
# $$\mathrm{AER} = 1 - \frac{2\,|A \cap G|}{|A| + |G|} .$$
#
# It is 0 if the two agree and 1 if they have nothing in common, and both a wrong link and a missing one cost. Some French words
# have more than one gold link ("dort" has "is" and "sleeping"). Our reading finds one at most, so that even a perfect map does
# not reach 0 on a test set; section 10 draws how near it could come. By hand, for the cat: 8 gold links; a map whose article "le"
# looks at "mat" finds 7 of them, among its own 8. $\mathrm{AER} = 1 - 14/16 = 0.125$.
#
# Over a test set the counts are added up *before* the division, so that each link counts the same.
#
# ### Exercise 8.7: the alignment error rate


# %% exercise="alignment_error_rate"
def alignment_error_rate(found: list[list[tuple]], gold: list[list[tuple]]) -> float:
    """How far the found links are from the gold ones, over all sentences together.

    Args:
        found: for each sentence a list of links (source position, target position), each once.
        gold: the same for the gold links; there is at least one.

    Returns:
        1 - 2 |found and gold| / (|found| + |gold|), with the counts added up over the sentences.

    Example:
        found [[(0, 0), (1, 1)]] and gold [[(0, 0), (2, 1)]] give 0.5.
    """
    # TODO: the error over all sentences
    ### BEGIN SOLUTION
    both = sum(len(set(a) & set(g)) for a, g in zip(found, gold, strict=True))
    size = sum(len(a) + len(g) for a, g in zip(found, gold, strict=True))
    return 1 - 2 * both / size
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# `set(a) & set(g)` are the links that two lists have in common. Do it sentence by sentence: the link (0, 0) of one sentence is not
# that of another.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Two sums over `zip(found, gold)`: of `len(set(a) & set(g))`, and of `len(a) + len(g)`. One division at the very end.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `both = ...`, `size = ...`, a `return` with the formula.
#
# </details>

# %% test="alignment_error_rate" points=1
check.exercise("alignment_error_rate", alignment_error_rate)
### BEGIN HIDDEN TESTS
import random as _random

_every = [(i, j) for i in range(6) for j in range(7)]
for _ in range(8):
    _found = [_random.sample(_every, _random.randint(0, 9)) for _ in range(5)]
    _gold = [_random.sample(_every, _random.randint(1, 12)) for _ in range(5)]
    _hits = sum(sum(link in g for link in a) for a, g in zip(_found, _gold, strict=True))
    _right = 1 - 2 * _hits / (sum(map(len, _found)) + sum(map(len, _gold)))
    assert abs(float(alignment_error_rate(_found, _gold)) - _right) < 1e-6
    assert abs(float(alignment_error_rate(_gold, _found)) - _right) < 1e-6  # the two sides may be exchanged
    assert abs(float(alignment_error_rate([a[::-1] for a in _found], _gold)) - _right) < 1e-6
assert abs(float(alignment_error_rate(_gold, _gold))) < 1e-6
assert abs(float(alignment_error_rate([[]], [[(0, 0), (1, 1)]])) - 1) < 1e-6
### END HIDDEN TESTS

# %% [markdown]
# A number needs something to stand beside. Two maps that know nothing of the words:
#
# * **uniform**: every English word has the same weight, so that a link is drawn at random; its number is the average over all draws;
# * **diagonal**: French word $j$ of $T$ looks at the English word that stands equally far into its sentence.
#
# French and English have similar word order, so the diagonal is not bad, and a model that had learned nothing but "go on one to
# the right" could look clever on a short sentence.


# %% given="maps"
def links(weights: torch.Tensor) -> list[tuple[int, int]]:
    """From a map (T, S) to links: for each target word the source word with the most weight."""
    return [(int(i), j) for j, i in enumerate(weights.argmax(dim=-1))]


def gold_links(pairs: list[translation.Pair]) -> list[list[tuple[int, int]]]:
    return [sorted(pair.alignment) for pair in pairs]


def diagonal(pair: translation.Pair) -> torch.Tensor:
    """A map (T, S) with all weight on the diagonal."""
    T, S = len(pair.target), len(pair.source)
    places = ((torch.arange(T) + 0.5) * S / T).long()
    return nn.functional.one_hot(places, S).double()


def uniform(pair: translation.Pair) -> torch.Tensor:
    """A map (T, S) with the same weight everywhere."""
    S = len(pair.source)
    return torch.full((len(pair.target), S), 1 / S, dtype=torch.double)


def expected_error_of_guessing(pairs: list[translation.Pair]) -> float:
    """The AER of links that are drawn at random for each target word, on average over all draws."""
    hits = sum(len(pair.alignment) / len(pair.source) for pair in pairs)
    return 1 - 2 * hits / sum(len(pair.target) + len(pair.alignment) for pair in pairs)


# %% given="look"
# @title `look` reads maps off a model, and `show_maps` draws them
@torch.no_grad()
def look(model: nn.Module, pairs: list[translation.Pair], eos: bool = False) -> list[torch.Tensor]:
    """The model's maps (T, S) while it reads the pairs' French; with ``eos`` one row more, for what comes after it."""
    maps = []
    for i in range(0, len(pairs), 100):
        chunk = pairs[i : i + 100]
        source, lengths, target_in, _ = translation.batch(chunk, english, french, device=where)
        _, weights = model(source, lengths, target_in)
        maps += [w[: len(p.target) + eos, : len(p.source)].cpu() for w, p in zip(weights, chunk, strict=True)]
    return maps


def show_maps(
    maps: list[torch.Tensor], titles: list[str], rows: tuple, columns: tuple, gold: frozenset, title: str, alt: str
) -> None:
    """Draw maps (T, S) side by side, with a frame around each gold link."""
    below = 0.06 * max(map(len, columns)) + 0.5  # inches for the English words, which stand aslant
    size = (max(6.4, 0.36 * len(columns) * len(maps) + 1.9), 0.33 * len(rows) + below + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(maps), squeeze=False)[0]
    for place, (ax, weights) in enumerate(zip(axes, maps, strict=True)):
        picture = ax.imshow(weights, cmap=plots.SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
        ax.set_xticks(range(len(columns)), columns, rotation=60, ha="right", rotation_mode="anchor", fontsize=9)
        ax.set_yticks(range(len(rows)), rows if place == 0 else [""] * len(rows), fontsize=9)
        ax.tick_params(length=0)
        ax.set_title(titles[place], fontsize=10, loc="left")
        ax.set_xlabel("English word attended to", fontsize=9)
        for side in ax.spines.values():
            side.set_edgecolor("#bbbbbb")
        for i, j in gold:
            frame = Rectangle((i - 0.5, j - 0.5), 1, 1, fill=False, edgecolor=plots.PALETTE[1], linewidth=1.8, zorder=3)
            ax.add_patch(frame).set_clip_on(False)  # at the map's edge, too, the whole line shows
    axes[0].set_ylabel("French word that attends", fontsize=9)
    figure.colorbar(picture, ax=axes, shrink=0.75, pad=0.02, label="weight")
    figure.suptitle(textwrap.fill(title, int(size[0] / 0.088)), x=0.01, ha="left", fontsize=11, fontweight="bold")
    plots.show(figure, alt)


# %%
gold = gold_links(test)
error_uniform = expected_error_of_guessing(test)
error_diagonal = alignment_error_rate([links(diagonal(pair)) for pair in test], gold)
print("the two baselines lie apart by more than 0.2:", error_uniform - error_diagonal > 0.2)

# %%
# @title The two baselines on the cat's sentence
show_maps(
    [uniform(the_cat), diagonal(the_cat)],
    [f"uniform: AER {error_uniform:.2f} over the test", f"diagonal: AER {error_diagonal:.2f} over the test"],
    the_cat.target,
    the_cat.source,
    the_cat.alignment,
    "The diagonal, which knows no words, is far better than chance",
    "Two maps of The cat sat on the mat with frames around the gold links. The uniform map has the same weight "
    "everywhere. The diagonal map meets all gold links but one: it sends assis to on.",
)

# %% [markdown]
# ## 10 · Train it
#
# All parts are there: a model, a loss, two ways to write, two numbers to judge by. What is left is the loop. For each batch:
#
# 1. compute the logits with teacher forcing, and the loss;
# 2. throw away the gradients of the last batch (`zero_grad`), and compute new ones (`backward`);
# 3. if the gradients of all parameters together are longer than 1, scale all of them by the same factor, so that together they have
#    length 1 (`nn.utils.clip_grad_norm_`); shorter ones stay as they are. A recurrent network now and then produces a huge gradient,
#    and one such step can undo many good ones;
# 4. let the optimiser make its step. We use Adam, with a learning rate that falls on the way: `rates` holds one for each batch.
#
# An optimiser keeps its learning rate in `optimizer.param_groups[0]["lr"]`, where you can set it before each step.
#
# ### Exercise 8.8: the training loop
#
# What a model has learned are its parameters, so `train` returns these. A batch is a tuple of four tensors, and the toy model stands
# in for a real one while you try your loop: its loss for the first batch is $\ln 7 \approx 1.95$, since it knows 7 words and prefers
# none.


# %% exercise="train"
def train(name: str, batches: Any, rates: list[float]) -> tuple[list[float], dict]:
    """Build the model called `name` and make one update for each batch.

    Args:
        name: "with attention", "without attention" or "toy", for `build`.
        batches: tuples (source, lengths, target_in, target_out), as many as there are rates, one
            after the other.
        rates: the learning rate of each update.

    Returns:
        losses: the loss of each batch before its update, as Python numbers;
        learned: the model's parameters by name, as state_dict() gives them.
    """
    # TODO: build the model, and make the updates
    ### BEGIN SOLUTION
    model, losses = build(name), []
    optimizer = torch.optim.Adam(model.parameters())
    for (source, lengths, target_in, target_out), rate in zip(batches, rates, strict=True):
        logits, _ = model(source, lengths, target_in)
        loss = masked_cross_entropy(logits, target_out)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        losses.append(loss.item())
    return losses, model.state_dict()
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# `for (source, lengths, target_in, target_out), rate in zip(batches, rates)`: each round has one batch and its rate.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `logits, _ = model(...)` with the first three tensors of the batch; the loss compares them with `target_out`. Clipping belongs between `backward` and
# `step`: before, there are no gradients; after, it is too late.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# Model, optimiser, an empty list. In the loop: logits, loss, `zero_grad`, `backward`, clipping, the rate, `step`, and the loss as a
# number into the list. `return` the list and the `state_dict()`.
#
# </details>

# %% test="train" points=2
one = torch.full((1, 2), 4, device=where)
try:
    losses, learned = train("toy", [(one, torch.tensor([2]), one, one)], [0.1])
except Exception:  # then something else is the matter, and the check below says what
    losses, learned = [], {}
if isinstance(losses, list | tuple) and any(isinstance(loss, torch.Tensor) for loss in losses):
    raise check.CheckFailed(
        "train (exercise 8.8)",
        "losses holds tensors, and they should be numbers.",
        cause="A tensor keeps its whole batch in memory. The number is loss.item().",
    )
if not isinstance(learned, dict):
    raise check.CheckFailed(
        "train (exercise 8.8)",
        "learned is no dictionary of parameters.",
        cause="The model itself was not asked for, but the numbers in it: model.state_dict().",
    )
check.exercise("train", train)


### BEGIN HIDDEN TESTS
def _toy_batch():
    _lengths = torch.tensor([4, 2, 5])[torch.randperm(3)]
    _words = torch.randint(3, 7, (3, 5)) * (torch.arange(5) < _lengths[:, None])
    return _words, _lengths, torch.cat([torch.ones(3, 1).long(), _words[:, :-1]], 1), _words


_batches, _rates = [_toy_batch() for _ in range(6)], [0.3, 0.01, 0.2, 0.1, 0.05, 0.02]
_batches, _rates = _batches + _batches[-1:] * 12, _rates + [0.1] * 12  # until gradients are shorter than 1
_table, _bias = torch.zeros(7, 7, requires_grad=True), torch.zeros(7, requires_grad=True)
_adam = torch.optim.Adam([_table, _bias])
_expected = []
for (_, _, _in, _out), _rate in zip(_batches, _rates, strict=True):
    _logits = 8 * _table[_in] + _bias
    _loss = nn.functional.cross_entropy(_logits.flatten(0, 1), _out.flatten(), ignore_index=0)
    _expected.append(_loss.item())
    _table.grad, _bias.grad = torch.autograd.grad(_loss, [_table, _bias])
    _scale = min(1.0, 1.0 / (math.hypot(_table.grad.norm().item(), _bias.grad.norm().item()) + 1e-6))
    _table.grad *= _scale
    _bias.grad *= _scale
    _adam.param_groups[0]["lr"] = _rate
    _adam.step()
_to = [tuple(x.to(where) for x in _b) for _b in _batches]
_losses, _learned = train("toy", _to, _rates)
torch.testing.assert_close(torch.tensor(_losses), torch.tensor(_expected), rtol=1e-2, atol=1e-2)
torch.testing.assert_close(_learned["table"].cpu(), _table.detach(), rtol=1e-2, atol=1e-2)
torch.testing.assert_close(_learned["bias"].cpu(), _bias.detach(), rtol=1e-2, atol=1e-2)
torch.testing.assert_close(torch.tensor(train("toy", _to, _rates)[0]), torch.tensor(_losses))  # it starts afresh
### END HIDDEN TESTS

# %% test="train-learns" points=1
# Your parts together have to be able to learn: four small batches, again and again.
few = list(translation.batches(training[:64], english, french, size=16, seed=1, device=where)) * 15
losses, learned = train("with attention", [tuple(batch) for batch in few], [4e-3] * len(few))
before, after = sum(losses[:4]) / 4, sum(losses[-4:]) / 4
assert after < before / 5, "the loss of four batches should fall to less than a fifth in 60 updates"
print("✓ your parts learn: the loss of four batches fell to less than a fifth in 60 updates.")
### BEGIN HIDDEN TESTS


def _trusted_loss(
    p, batch
):  # what a translator with these parameters really loses, by parts that are not the learner's
    def gru(prefix, bidirectional):
        made = nn.GRU(96, 96, batch_first=True, bidirectional=bidirectional).to(where)
        made.load_state_dict({k.removeprefix(prefix): v for k, v in p.items() if k.startswith(prefix)})
        return made

    vectors = p["encoder.embed.weight"][batch.source]
    packed = pack_padded_sequence(vectors, batch.source_lengths.cpu(), batch_first=True, enforce_sorted=False)
    values, last = gru("encoder.rnn.", True)(packed)
    values, _ = pad_packed_sequence(values, batch_first=True, total_length=batch.source.shape[1])
    start = torch.tanh(torch.cat([last[0], last[1]], dim=-1) @ p["W_bridge"] + p["b_bridge"])
    states, _ = gru("rnn.", False)(p["embed.weight"][batch.target_in], start[None])
    scores = torch.tanh((states @ p["W_q"])[:, :, None] + (values @ p["W_k"])[:, None]) @ p["w"]
    weights = torch.softmax(scores.masked_fill((batch.source == PAD)[:, None], -1e9), dim=-1)
    both = torch.cat([states, weights @ values], dim=-1)
    logits = torch.tanh(both @ p["combine.weight"].T + p["combine.bias"]) @ p["out.weight"].T + p["out.bias"]
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD).item()


_fresh = train("with attention", [tuple(batch) for batch in few[:2]], [0.0, 0.0])  # a rate of 0 changes nothing
with torch.no_grad():
    _starts = [_trusted_loss(_fresh[1], batch) for batch in few[:4]]
    _ends = [_trusted_loss(learned, batch) for batch in few[:4]]
torch.testing.assert_close(torch.tensor(_fresh[0]), torch.tensor(_starts[:2]), rtol=1e-3, atol=1e-3)
assert abs(losses[0] - _starts[0]) < 1e-2
assert sum(_ends) < sum(_starts) / 5
assert torch.tensor(losses).isfinite().all()
assert all(float((learned[name] - _fresh[1][name]).abs().max()) > 1e-3 for name in ("W_bridge", "W_q", "W_k", "w"))
### END HIDDEN TESTS

# %% [markdown]
# Now the real thing: 1400 updates of 64 sentences each, four and a half times through the training pairs, for both models. It
# takes one to two minutes on an idle laptop's CPU. (Does it overfit, as in lesson 07? Its loss on the 1000 pairs of
# `translation.load("validation")` was 0.016 when this was written, against 0.009 at the end of the training: hardly.) Every now and then
# the model is photographed: its map of "The cat sat on the mat" is kept. (That happens when the next batch is asked for, so your loop has
# to ask for one batch at a time; `list(batches)` is stopped with a message.)


# %% given="training_plan"
# @title The plan: how many updates, which rates, when to photograph
updates = 4 if graded else 1400
moments = [0, 1, 2, 3] if graded else [0, 50, 75, 100, 150, 200, 400, 800]
rates = [4e-3 * (1 - n / updates) for n in range(updates)]  # falls in a straight line, to nearly 0
album: dict[int, torch.Tensor] = {}  # the cat's map after so many updates


def lesson_plan(name: str):
    """One batch after the other, with a bar; the pairs again and again in a new order; takes the photographs."""

    def endless():
        for epoch in range(100):
            yield from translation.batches(training, english, french, size=64, seed=epoch, device=where)

    batches, before = endless(), None
    for given in bar(range(updates), f"training {name}"):
        if name == "with attention" and given in moments:
            (album[given],) = look(models[name], [the_cat])
            if before is not None and torch.equal(album[given], before):
                raise RuntimeError(
                    f"{given} batches were asked for, and the model is still the one of the last photograph. "
                    "Take the batches one by one in the `for` line of `train`, not all at once by list(batches)."
                )
            before = album[given]
        yield next(batches)


# %%
curves, translators = {}, {}
for name in ("with attention", "without attention"):
    curves[name], learned = train(name, lesson_plan(name), rates)
    translators[name] = build(name)
    translators[name].load_state_dict(learned)

# %%
written = {name: translate(model, test) for name, model in translators.items()}
score = {name: bleu(lines, test) for name, lines in written.items()}
attending = translators["with attention"]
trained_maps = look(attending, test)
error_trained = alignment_error_rate([links(w) for w in trained_maps], gold)
print("with attention: BLEU above 97:", score["with attention"] > 97)
print("without attention: BLEU between 60 and 85:", 60 < score["without attention"] < 85)
print("alignment error at most 0.1:", error_trained <= 0.1)

# %%
# @title The loss of both models during training
block = max(1, updates // 28)
ends = list(range(block, updates + 1, block))
plots.lines(
    ends,
    {name: [sum(curve[n - block : n]) / block for n in ends] for name, curve in curves.items()},
    xlabel=f"updates (batches of 64 sentences; each point is the mean of {block})",
    ylabel="loss per word",
    title="With attention the loss falls sooner, and further",
    alt="Loss per word against the number of updates, for the translator with attention and the one without. Both start "
    "near 4 and fall; the one with attention falls much faster and ends close to 0, the other one ends above it.",
    logy=True,
)

# %% [markdown]
# Both models have the same number of updates, the same batches and the same rates. The one without attention has about a tenth fewer
# parameters: those of the attention, and the part of `combine` that reads the longer context. It is one run of each.
#
# **A BLEU near 100 is a warning, not a triumph.** It says that the language is small and the test comes from the grammar that made the
# training. Bahdanau, Cho and Bengio (2015), with this design and a far larger model, reported 26.75 on English to French news.
#
# Now the photographs. Frames are gold links, which the model has never seen. Move the slider through the training (where no slider
# can be shown, four moments stand in for it).

# %%
album[updates] = trained_maps[0]  # the cat is the first sentence of the test


def error_on(pair: translation.Pair, weights: torch.Tensor) -> float:
    """The AER of one map of one sentence."""
    return alignment_error_rate([links(weights)], gold_links([pair]))


# %% tags=["cover"]
# @title The photographs
def photograph(moment: int) -> None:
    """Draw the cat's map after so many updates."""
    show_maps(
        [album[moment]],
        [f"AER {error_on(the_cat, album[moment]):.3f}"],
        the_cat.target,
        the_cat.source,
        the_cat.alignment,
        f"After {moment} updates",
        f"Attention map of The cat sat on the mat after {moment} updates, with frames around the gold links.",
    )


def four_photographs() -> None:
    """The picture in place of the slider."""
    shown = [list(album)[i] for i in (0, 2, 3, -1)]
    show_maps(
        [album[moment] for moment in shown],
        [f"{moment} updates: AER {error_on(the_cat, album[moment]):.3f}" for moment in shown],
        the_cat.target,
        the_cat.source,
        the_cat.alignment,
        "Nobody told it which words belong together; by predicting French, it found out",
        "Attention maps of The cat sat on the mat at four moments of the training, with frames around the gold links. "
        "Before the first update the map is pale and even. Later the weight gathers inside the frames.",
    )


plots.interactive(photograph, name="updates", options=list(album), still=four_photographs)

# %% [markdown]
# One sentence proves nothing, and this one proves less than it seems: on it the diagonal, too, has an error of only 0.125. So
# here is the sentence of the test, of 6 to 9 words, on which the diagonal errs most, that is, whose order changes most:

# %%
ordinary = [i for i, pair in enumerate(test) if 6 <= len(pair.source) <= 9]
most = max(ordinary, key=lambda i: error_on(test[i], diagonal(test[i])))
turned, turned_map = test[most], trained_maps[most]
better = error_on(turned, turned_map) < error_on(turned, diagonal(turned)) / 2
print("on it, the trained map has less than half of the diagonal's error:", better)

# %%
# @title The sentence whose order changes most
show_maps(
    [diagonal(turned), turned_map],
    [f"diagonal: AER {error_on(turned, diagonal(turned)):.2f}", f"trained: AER {error_on(turned, turned_map):.2f}"],
    turned.target,
    turned.source,
    turned.alignment,
    "Where the order changes, the trained map goes along",
    "Two maps of a sentence whose French has another order than its English, with frames around the gold links. The diagonal "
    "misses most frames; the trained map has its weight inside most of them.",
)

# %% [markdown]
# Now the whole test, against the baselines. The last bar is the best that one link for each French word can reach: a map that
# always finds a gold link where there is one, and still misses the second.

# %%
words = sum(len(pair.target) for pair in test)
reached = sum(len({j for _, j in pair.alignment}) for pair in test)
errors = {
    "uniform": error_uniform,
    "untrained model": alignment_error_rate([links(w) for w in look(untrained, test)], gold),
    "diagonal": error_diagonal,
    "trained model": error_trained,
    "best possible": 1 - 2 * reached / (words + sum(len(pair.alignment) for pair in test)),
}
half = error_trained < error_diagonal / 2
print("the trained map has less than half of the diagonal's error:", half)

# %%
# @title The alignment error of five maps
plots.bars(
    {"alignment error rate": list(errors.values())},
    labels=[f"{name}\n{value:.2f}" for name, value in errors.items()],
    ylabel="alignment error rate (0 is perfect)",
    title="The trained map is far better than the diagonal, and not far from the best",
    alt="Alignment error rate over the test for a uniform map, the untrained model, the diagonal, the trained model, and the "
    "best possible. Uniform and untrained are high, the diagonal is well below them, the trained model far below the "
    "diagonal. The best possible is a little above 0.",
    top=1.0,
)

# %% [markdown]
# With gold links, the sentence "the map shows an alignment" has become a measurement, of this model on this test. Part of the rest of the
# error cannot be avoided, as the last bar shows. Where does the remainder come from? Count, for each French word, its wrong links,
# and where most of them point:

# %%
wrong: dict[str, Counter] = {}  # French word: how often which English word was taken
for pair, weights in zip(test, trained_maps, strict=True):
    for i, j in set(links(weights)) - pair.alignment:
        wrong.setdefault(pair.target[j].lower(), Counter())[pair.source[i]] += 1
culprits = sorted(wrong, key=lambda word: -wrong[word].total())[:8]
part = sum(wrong[word].total() for word in culprits) / sum(c.total() for c in wrong.values())
print("eight words have more than half of the wrong links:", part > 0.5)

# %%
# @title The eight words with most wrong links
plots.bars(
    {"wrong links": [wrong[word].total() for word in culprits]},
    labels=[f"{word}\n→ {wrong[word].most_common(1)[0][0]}" for word in culprits],
    ylabel="wrong links in the test",
    xlabel="French word → the English word it wrongly looks at most often",
    title="A few words, most of them small, have most of the wrong links",
    alt="Number of wrong links of the eight French words that have most of them, each with the English word that it wrongly "
    "looks at most often. Most are small words: parts of a question, conjunctions, articles and auxiliaries.",
)

# %% [markdown]
# Many of these have a reason. A map shows where the *information* for a word was taken from, and that need not be its translation.
# "Est-ce que" is written because this is a question, which the mark at the end says as clearly as the first word does. Whether
# "that" becomes "que" or "qu'" depends on how the next word begins. An article at times looks at its noun, whose gender decides
# between "le" and "la". The gold links call all that a mistake; with a BLEU this close to 100, it did the translations little harm.
#
# ### Longer than anything in training
#
# In section 1 of lesson 01 a vector of fixed size overflowed. Here is the same in a real translator. The test sentences have up to
# 12 English tokens, as in training; the others have 13 to 24.

# %%
everything = test + long
all_written = {name: written[name] + translate(model, long) for name, model in translators.items()}
groups = [(4, 5), (6, 7), (8, 9), (10, 12), (13, 15), (16, 18), (19, 24)]
by_length: dict[str, list[float]] = {name: [] for name in translators}
flawless: dict[str, list[float]] = {name: [] for name in translators}
for low, high in groups:
    chosen = [i for i, pair in enumerate(everything) if low <= len(pair.source) <= high]
    for name, lines in all_written.items():
        mine, theirs = [lines[i] for i in chosen], [everything[i] for i in chosen]
        right = [tuple(line) == pair.target for line, pair in zip(mine, theirs, strict=True)]
        by_length[name].append(bleu(mine, theirs) if chosen else 0)
        flawless[name].append(sum(right) / max(1, len(right)))
attended, fixed = by_length.values()
ahead = all(a > f for a, f in zip(attended, fixed, strict=True))
lose = attended[-1] < attended[3] and fixed[-1] < fixed[3]
print("attention is ahead at every length:", graded or ahead)
print("both lose beyond the lengths of training:", graded or lose)

# %%
# @title BLEU and flawless sentences, against the length
plots.panels(
    [(low + high) / 2 for low, high in groups],
    [("BLEU", by_length), ("share of sentences without a mistake", flawless)],
    xlabel="tokens in the English sentence",
    bottom=[0, 0],
    mark=(12.5, "longer than in training →"),
    title=f"At 19 to 24 tokens attention keeps a BLEU of {attended[-1]:.0f}, one fixed vector {fixed[-1]:.0f}",
    alt="Two panels over the length of the English sentence. Left: BLEU. With attention it stays near 100 up to 12 tokens and "
    "falls beyond; without attention it is lower from the start and falls to a small fraction. Right: the share of "
    "sentences without a mistake falls in the same way, and further. A dotted line shows where training ended.",
)

# %% [markdown]
# Attention is ahead at every length, and most where the sentences are a little longer than those of training. But look at the right
# panel before you celebrate: of the longest sentences hardly any comes out whole. There are two reasons. It has never practised to
# keep its place in so long a sentence. And in training it read the *right* words so far, while here it reads its own: after one
# mistake it stands where it has never been. That is **exposure bias**. Here is one of its failures, with the map of what *it* wrote;
# the last row is that of `<eos>`, with which it ended:


# %%
def says_twice(words: list[str]) -> bool:
    """Does a run of three words stand there twice?"""
    runs = [tuple(words[i : i + 3]) for i in range(len(words) - 2)]
    return len(set(runs)) < len(runs) and len(words) < 40  # at 40 words it was cut, and did not end


lines_long = all_written["with attention"][len(test) :]
failed = [i for i, pair in enumerate(long) if tuple(lines_long[i]) != pair.target]
failed = [i for i in failed if len(long[i].source) >= 15]
twice = [i for i in failed if says_twice(lines_long[i])] or failed
failure = min(twice, key=lambda i: len(long[i].source) + len(lines_long[i]))
its_own = translation.Pair(long[failure].source, tuple(lines_long[failure]), frozenset())
own_map = look(attending, [its_own], eos=True)

# %%
# @title A translation that went wrong
show_maps(
    own_map,
    [""],
    (*its_own.target, "<eos>"),
    its_own.source,
    frozenset(),
    f"It should have been: {' '.join(long[failure].target[:-1])}",
    "Attention map of a translation that went wrong, of a sentence longer than any in training. The rows are the words that "
    "the model wrote; the title gives the right translation.",
)

# %% [markdown]
# Follow the rows from top to bottom and compare with the title: a part of the sentence is said twice, and another is left out, several
# columns side by side that nobody looks at. Nothing in this model keeps count of what has been translated already. Lesson 10 adds that.
#
# Does a beam help? Not on the test, where the model is nearly certain of every word. On long sentences it is not: here are 60 of each
# length, greedily and with a beam of 4.

# %%
by_beam: dict[str, list[float]] = {"greedy": [], "a beam of 4": []}
for low, high in groups[4:]:
    some = [pair for pair in long if low <= len(pair.source) <= high][:60]
    for name, beam in (("greedy", 1), ("a beam of 4", 4)):
        lines = translate(attending, some, beam=beam)
        by_beam[name].append(bleu(lines, some) if some else 0)
changes = [wide - narrow for narrow, wide in zip(*by_beam.values(), strict=True)]
shorter = sum(map(len, lines)) < sum(len(pair.target) for pair in some)
print("somewhere the beam gains more than 2 BLEU:", graded or max(changes) > 2)
print("on the longest, what it writes is shorter than the references:", graded or shorter)

# %%
# @title Greedy and beam search on long sentences
plots.bars(
    by_beam,
    labels=[f"{low} to {high} tokens" for low, high in groups[4:]],
    ylabel="BLEU over 60 sentences",
    title="Where a sentence is long, a beam can help much, little, or not at all",
    alt="BLEU for English sentences of 13 to 15, 16 to 18 and 19 to 24 tokens, greedily and with a beam of 4. The beam gains "
    "a little on the first, several points on the second, and nothing on the longest.",
    top=100,
)

# %% [markdown]
# A beam helps where the model hesitates and the better beginning looks second best at first. It cannot mend what the model does not
# know: on the longest sentences it finds endings that come too early, which the model likes too well. (One model, 60 sentences each.)
#
# ## 11 · Write the test
#
# A wrong loss does not crash. The model trains, a bit worse than it could, and nobody knows. So turn the tables, and write the
# function that finds a wrong one: `test_masked_cross_entropy(implementation)` calls `implementation(logits, target)` as it likes,
# returns quietly if all is well, and raises an `AssertionError` (what `assert` and `torch.testing.assert_close` do) if not.
#
# This is what every right implementation promises:
#
# 1. It is the mean of $-\ln p$ of the right word over all words of the batch that are not padding, up to rounding. Each word counts the
#    same, in whichever sentence.
# 2. Which finite numbers the logits hold at padding does not matter. Padding stands only behind a sentence's words, in any number
#    of columns, and every sentence has at least one word.
# 3. No size of the logits breaks it: 1000 is fine, and so is −1000.
# 4. The result is a tensor without axes, with the dtype of the logits: `float32` stays `float32`, and `float64` stays `float64`.
# 5. The inputs are left as they were.
#
# The smallest batch that can tell a mean over words from a mean over sentences has two sentences of different lengths.


# %% given="wrong_ones"
def counts_padding(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Right if there is no padding."""
    return -torch.log_softmax(logits, -1).gather(-1, target[..., None]).mean()


def by_sentence(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Right if all sentences are equally long."""
    costs = -torch.log_softmax(logits, -1).gather(-1, target[..., None])[..., 0]
    means = [cost[row != PAD].mean() for cost, row in zip(costs, target, strict=True)]
    return torch.stack(means).mean()


def overflows(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Right for small logits."""
    powers = torch.exp(logits[target != PAD])
    right = powers.gather(1, target[target != PAD][:, None])[:, 0]
    return torch.log(powers.sum(dim=1) / right).mean()


def word_by_word(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Right, though slow."""
    costs = []
    for row, words in zip(logits, target, strict=True):
        for x, word in zip(row, words, strict=True):
            if word != PAD:
                costs.append(torch.logsumexp(x, 0) - x[word])
    return sum(costs) / len(costs)


def sentence_by_sentence(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Right: it adds the sentences' sums up and divides once, by the number of words."""
    sums, words = [], 0
    for row, said in zip(logits, target, strict=True):
        n = int((said != PAD).sum())
        costs = nn.functional.nll_loss(torch.log_softmax(row[:n], -1), said[:n], reduction="sum")
        sums.append(costs)
        words += n
    return sum(sums) / words


wrong_ones = {"counts_padding": counts_padding, "by_sentence": by_sentence, "overflows": overflows}
right_ones = {"word_by_word": word_by_word, "sentence_by_sentence": sentence_by_sentence}

# %% [markdown]
# ### Exercise 8.9: the test
#
# Three points, in three cells. The first asks for these three wrong implementations. The second and the third judge your test,
# when it is graded, by 19 others that you cannot see: the second asks for half of them, the third for all. Each of the 19 breaks
# at least one of the five promises, and what the promises leave open your test must not ask for: some of the right ones could not
# do it.


# %% exercise="test_masked_cross_entropy"
def test_masked_cross_entropy(implementation) -> None:
    """Raise an AssertionError if the implementation is not a right masked loss; else return.

    Args:
        implementation: a function of logits (B, T, words) and target (B, T), which should return
            the loss.

    Example:
        test_masked_cross_entropy(word_by_word) returns, with counts_padding it raises.
    """
    # TODO: put each promise to the test
    ### BEGIN SOLUTION
    target = torch.tensor([[3, 1, 4, 2], [2, 0, 0, 0], [5, 2, 0, 0]])
    for size, dtype in ((1, torch.float32), (1, torch.float64), (1000, torch.float64)):
        logits = size * torch.sin(torch.arange(72.0, dtype=dtype)).reshape(3, 4, 6)
        before = logits.clone(), target.clone()
        loss = implementation(logits, target)
        right = nn.functional.cross_entropy(before[0].flatten(0, 1), before[1].flatten(), ignore_index=0)
        torch.testing.assert_close(loss, right, rtol=1e-5, atol=1e-5)
        assert torch.equal(logits, before[0]), "the logits were changed"
        assert torch.equal(target, before[1]), "the target was changed"
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# One batch of two or three sentences of different lengths, with logits that all differ, can put most promises to the test. Try it with
# the logits as they are, and 1000 times as large, and in both dtypes.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# You need a loss that you trust: `word_by_word` is one, and `nn.functional.cross_entropy(..., ignore_index=0)`, of
# `logits.flatten(0, 1)` and `target.flatten()`, another. `torch.testing.assert_close(a, b)` compares numbers up to rounding, and
# shape and dtype exactly. Let B, T and the number of words differ, and keep a `clone()` of the inputs to compare with.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# A target with padding, logits, copies of both. A loop over sizes and dtypes of the logits: the implementation's loss, the trusted
# one, `assert_close`, and two `assert` lines for the inputs.
#
# </details>

# %% test="test_masked_cross_entropy" points=1
check.test_of(
    "test_masked_cross_entropy",
    test_masked_cross_entropy,
    right=right_ones,
    wrong=wrong_ones,
)

# %% test="test_masked_cross_entropy-half" points=1
# Judged when it is graded: it accepts six right implementations, and rejects half of 19 wrong ones.
check.test_of(
    "test_masked_cross_entropy",
    test_masked_cross_entropy,
    right=right_ones,
    wrong=wrong_ones,
    later="19 more wrong ones, of which your test should reject at least half",
)
### BEGIN HIDDEN TESTS
from attention_course.authoring import implementations

_right, _wrong = implementations("08", "masked_cross_entropy")
_rejected = check.rejects(test_masked_cross_entropy, _right | _wrong)  # all together, in an order drawn afresh
_refused, _caught = _rejected & set(_right), _rejected & set(_wrong)
assert not _refused, f"it refuses {len(_refused)} of {len(_right)} right implementations"
assert len(_caught) * 2 >= len(_wrong), f"it rejects {len(_caught)} of {len(_wrong)} wrong implementations"
### END HIDDEN TESTS

# %% test="test_masked_cross_entropy-all" points=1
# Judged when it is graded: it accepts six right implementations, and rejects all of 19 wrong ones.
check.test_of(
    "test_masked_cross_entropy",
    test_masked_cross_entropy,
    right=right_ones,
    wrong=wrong_ones,
    later="19 more wrong ones, of which your test should reject all",
)
### BEGIN HIDDEN TESTS
from attention_course.authoring import implementations

_right, _wrong = implementations("08", "masked_cross_entropy")
_rejected = check.rejects(test_masked_cross_entropy, _right | _wrong)  # all together, in an order drawn afresh
_refused, _caught = _rejected & set(_right), _rejected & set(_wrong)
assert not _refused, f"it refuses {len(_refused)} of {len(_right)} right implementations"
assert len(_caught) == len(_wrong), f"it rejects {len(_caught)} of {len(_wrong)} wrong implementations"
### END HIDDEN TESTS

# %% [markdown]
# ## 12 · Spot the bug
#
# The function below sums up a sentence in one vector: it takes the last state of the encoder, of each sentence at *its* last word,
# so that padding does no harm. Its author wrote it for an encoder that reads forward, compared it with PyTorch's own last state, and
# it agreed to the last digit. Then somebody added `bidirectional=True`. Nothing crashed, and the vector has $2H$ numbers, as wanted.


# %% given="published"
def published_summary(states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Where both readers ended. states: (B, S, 2H), lengths: (B,); returns (B, 2H)."""
    rows = torch.arange(len(states), device=states.device)
    return states[rows, lengths - 1]


# %% given="walked_summary"
# @title The same by walking from word to word
def walked_summary(states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The same by walking: each reader goes through its sentence word by word, and what it holds at the end is kept."""
    if states.shape[-1] % 2:
        raise ValueError(f"the last axis has {states.shape[-1]} numbers and should have 2H, an even number")
    half, ends = states.shape[-1] // 2, []
    for sentence, n in zip(states, lengths.tolist(), strict=True):
        if not 1 <= n <= len(sentence):
            raise ValueError(f"a length of {n} in a batch of {len(sentence)} columns")
        for t in range(n):
            forward = sentence[t, :half]
        for t in reversed(range(n)):
            backward = sentence[t, half:]
        ends.append(torch.cat([forward, backward]))
    return torch.stack(ends)


# %%
device.seed(2)
one_way = nn.GRU(8, 8, batch_first=True).to(where)
vectors, lengths = device.randn(3, 6, 8, seed=3), torch.tensor([6, 2, 4], device=where)
packed = pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
with torch.no_grad():
    states, last = one_way(packed)
    states, _ = pad_packed_sequence(states, batch_first=True)
agrees = torch.allclose(published_summary(states, lengths), last[0], atol=1e-4)
print("agrees for a reader that goes forward:", agrees)

# %% [markdown]
# First find an input that shows the bug: states and lengths (small ones are best) for which the result is wrong.
#
# ### Exercise 8.10: a counterexample


# %% exercise="counterexample"
def counterexample() -> tuple[torch.Tensor, torch.Tensor]:
    """Return states: (B, S, 2H) and lengths: (B,) for which published_summary is wrong."""
    # TODO: states and lengths
    ### BEGIN SOLUTION
    states = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])  # (1, 2, 2): one sentence of two words, H = 1
    return states, torch.tensor([2])
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# At which word does a reader end that goes from right to left?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# A sentence of one word will not do: both readers end there. Take one of two words, with $H = 1$: the states have shape `(1, 2, 2)`.
# The four numbers should differ.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `return` two tensors: states of shape `(1, 2, 2)`, and one length.
#
# </details>

# %% test="counterexample" points=1
check.counterexample(
    "counterexample",
    counterexample,
    wrong=published_summary,
    right=walked_summary,
    axes=("B S 2H", "B"),
)
### BEGIN HIDDEN TESTS
_states, _lengths = counterexample()
_half = _states.shape[-1] // 2
assert ((_lengths >= 1) & (_lengths <= _states.shape[1])).all()
assert _states.shape[-1] == 2 * _half
_right = _states[:, 0, _half:]
_wrong = published_summary(_states, _lengths)[:, _half:]
assert torch.isfinite(_right).all()
assert not torch.equal(_right, _wrong)  # by how much, the check above has seen
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 8.11: the repair


# %% exercise="repaired_summary"
def repaired_summary(states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Where both readers ended, repaired. states: (B, S, 2H), lengths: (B,); returns (B, 2H).

    Each length is from 1 to S; what stands behind a sentence's end means nothing.
    """
    # TODO: the lines of published_summary, mended
    ### BEGIN SOLUTION
    half = states.shape[-1] // 2
    rows = torch.arange(len(states), device=states.device)
    return torch.cat([states[rows, lengths - 1, :half], states[:, 0, half:]], dim=-1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The line of `published_summary` is right for the first $H$ numbers, and wrong for the rest.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `states[:, t, half:]` are the backward halves at word `t` of all sentences. The backward reader ends at the same `t` in all of them.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `half = ...`, `rows = ...` as before, and a `torch.cat` of two pieces, one for each reader.
#
# </details>

# %% test="repaired_summary" points=1
check.exercise("repaired_summary", repaired_summary)
### BEGIN HIDDEN TESTS
_gru = nn.GRU(5, 3, batch_first=True, bidirectional=True)
_lengths = torch.tensor([7, 1, 4, 5])[torch.randperm(4)]
_packed = pack_padded_sequence(torch.randn(4, 7, 5), _lengths, batch_first=True, enforce_sorted=False)
with torch.no_grad():
    _states, _last = _gru(_packed)
_states, _ = pad_packed_sequence(_states, batch_first=True)
_right = torch.cat([_last[0], _last[1]], dim=-1)  # PyTorch's own last states
torch.testing.assert_close(repaired_summary(_states, _lengths), _right, rtol=1e-4, atol=1e-6)
_wider = torch.cat([_states, torch.randn(4, 2, 6)], dim=1)  # whatever stands at padding
torch.testing.assert_close(repaired_summary(_wider, _lengths), _right, rtol=1e-4, atol=1e-6)
torch.testing.assert_close(repaired_summary(_wider[2:3], _lengths[2:3]), _right[2:3], rtol=1e-4, atol=1e-6)
assert check.unchanged(repaired_summary, _states, _lengths)
### END HIDDEN TESTS

# %% [markdown]
# ## 13 · Keep it, and talk to it
#
# What a model has learned are numbers, and a file holds them, together with the vocabularies: without these nobody knows what number 17
# stands for. On Colab, choose a folder that stays, or download the file.

# %%
file = Path(tempfile.mkdtemp()) / "translator.pt"
tokens = {"english": english.tokens, "french": french.tokens}
torch.save({"learned": attending.state_dict(), **tokens}, file)

kept = torch.load(file, map_location=where, weights_only=True)  # such a file can run no code
again = build("with attention")
again.load_state_dict(kept["learned"])
print("the vocabularies are the same:", all(kept[name] == tokens[name] for name in tokens))
written_again = translate(again, test[:50])
print("the loaded model writes the same:", written_again == translate(attending, test[:50]))

# %% [markdown]
# Now a sentence of your own. Change `mine` and run the cell. Begin with a capital, write no comma, and end with `.`, `?` or `!`,
# as every sentence in training did. A word that did not occur in training is named, not skipped.


# %% given="own_sentence"
# @title `speak` looks your words up, translates and draws
def speak(model: nn.Module, text: str) -> None:
    """Translate a sentence of one's own with a beam of 4, and draw the map of what was written."""
    tokens = translation.tokenize(text)
    if not tokens:
        print("Write a sentence first.")
        return
    try:
        english.encode(tokens, strict=True)
    except translation.UnknownWord as error:
        print(error)
        return
    if tokens[-1] not in (".", "?", "!"):
        print("There is no full stop, ? or ! at the end. Every sentence in training had one of them, and without it")
        print("the model does not know when to stop. It may go on up to the limit of 40 words.")
    if not tokens[0][0].isupper():
        print("The first word has no capital. Every sentence in training had one, and this one may come out worse.")
    (lines,) = translate(model, [translation.Pair(tuple(tokens), ("",), frozenset())], beam=4)
    written = translation.Pair(tuple(tokens), tuple(lines), frozenset())
    show_maps(
        look(model, [written]),
        [""],
        written.target,
        written.source,
        frozenset(),
        " ".join(lines),
        f"Attention map of the translation of your sentence: {text} The title gives the French.",
    )


# %%
mine = "The small cat is sleeping under the white table ."
speak(again, mine)

# %%
speak(again, "The zebra sat on the mat .")

# %% [markdown]
# ## Questions
#
# Answer in your head first, then open.
#
# <details><summary><b>1.</b> Someone reports a loss of 0.4 per place. Half of the places in their batches are padding, which the model predicts perfectly. What is the loss per word?</summary>
#
# **0.8.** The sum of the losses is that of the words alone, since padding adds 0; it was divided by twice as many places.
#
# * *0.4, since padding adds nothing:* it adds nothing to the sum, but it is counted in the division.
# * *0.2:* this would divide once more, where one has to multiply.
#
# </details>
# <details><summary><b>2.</b> A translator reaches a loss near 0 within two minutes, and then writes nonsense. Its decoder was given <code>target_out</code> where <code>target_in</code> belongs. Why both?</summary>
#
# It was shown the word that it should say, and learned to **repeat what it reads**. On its own, it has nothing to repeat.
#
# * *The learning rate was too high:* then the loss would not be near 0.
# * *Teacher forcing always has this effect:* with `target_in` the decoder reads only the words *before* the one it should say.
#
# </details>
# <details><summary><b>3.</b> A beam of 100 finds hypotheses that the model thinks more probable than those of a beam of 5. Are the translations better?</summary>
#
# **Not necessarily.** The beam is a better search for what the *model* finds probable. Where the model is wrong about that, a
# better search finds its errors: with very wide beams translations have been seen to get worse, often because they get too short.
#
# * *Yes, as 100 is closer to trying everything:* it is, but what is being sought is the model's opinion, not the reader's.
# * *No, since a wide beam gives up good beginnings:* it keeps more of them.
#
# </details>
# <details><summary><b>4.</b> Two translators have the same BLEU. One has an alignment error of 0.05, the other of 0.40. Is the second one broken?</summary>
#
# **No.** AER judges the map, not the translation. A decoder may take the information for a word from elsewhere: the encoder's state of a
# neighbour knows the word as well. The second one translates as well; its map must not be read as an alignment, that is all.
#
# * *Yes, since it looks at the wrong words:* it looks at *states*, and each of them has read the whole sentence.
# * *It cannot happen:* with an encoder that goes both ways it can. That is why a map has to be measured before it is believed.
#
# </details>
#
# ## Recap
#
# Which exercises are right and which are open shows here; run the cell whenever you like. To run everything above a cell:
# Run, Run All Above Selected Cell (in Colab: Runtime, Run before).

# %%
check.progress()

# %% [markdown]
# You built an encoder, a bridge, masked attention for one step or for all, a loss per real word, two ways to write, an honest number for a
# map, and the loop that trained it all; then you broke other people's losses.
#
# **Where it lives in real models.** The first neural translators that rivalled the systems before them were built of these parts. Transformers
# keep the plan (an encoder's memory, a decoder that attends to it, teacher forcing, a masked loss, beam search) and replace the
# recurrent networks. Bahdanau's decoder looks *before* each step and feeds what it saw into it; ours looks *after* it, as Luong's does,
# so that in training all steps run in one call. Early stopping and dropout (lesson 07) belong into every training on real text.
#
# **Next.** Lesson 09 builds the block that took the place of the GRU. Lesson 10 teaches attention to keep count of what it has translated.
#
# **References**
#
# * Sutskever, Vinyals, Le (2014), [Sequence to sequence learning with neural networks](https://arxiv.org/abs/1409.3215): one vector between encoder and decoder, and beam search.
# * Bahdanau, Cho, Bengio (2015), [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473): bidirectional encoder, additive attention, and BLEU against sentence length.
# * Luong, Pham, Manning (2015), [Effective approaches to attention-based neural machine translation](https://arxiv.org/abs/1508.04025): attention after the step; it reports alignment error rates too.
# * Papineni, Roukos, Ward, Zhu (2002), [BLEU: a method for automatic evaluation of machine translation](https://aclanthology.org/P02-1040/).
# * Post (2018), [A call for clarity in reporting BLEU scores](https://arxiv.org/abs/1804.08771): why one should use sacreBLEU.
# * Och, Ney (2003), [A systematic comparison of various statistical alignment models](https://aclanthology.org/J03-1002/): the alignment error rate, with sure and possible links.
# * Bengio, Vinyals, Jaitly, Shazeer (2015), [Scheduled sampling](https://arxiv.org/abs/1506.03099): a remedy for exposure bias.
# * Koehn, Knowles (2017), [Six challenges for neural machine translation](https://arxiv.org/abs/1706.03872): wide beams that make translations worse, and maps that do not match alignments.
