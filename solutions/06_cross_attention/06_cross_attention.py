# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 · Cross-attention
#
# **At the end of this lesson you own the layer through which one sentence reads another, you can run it one word at a time
# without doing any work twice, and you can tell a map that aligns words from one that only looks as if it did.** These are maps of two
# networks that read with your layer. Both write the French without a slip, and only one shows which word stands for which:
#
# ![Two maps of nine French words over the eight English words of "The black cat sat on the red mat": in one each word reads the word it stands for, in the other five of nine read a neighbour](attachment:cover.png)
#
# | | |
# |---|---|
# | time | 115 minutes, with a place to stop after section 3 |
# | difficulty | moderate; most exercises are short, the layer in section 2 is the longest |
# | builds on | lesson 03: heads; lesson 05: masks with True for "keep"; `nn.Linear` |
# | you will write | 6 small pieces of code, the explanation of a wrong map, a counterexample and a repair |
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
from torch.utils.flop_counter import FlopCounterMode

from attention_course import check, device, plots
from attention_course.bar import bar

device.seed(6)
where = device.pick()
check.start("06")

# %% [markdown]
# ## 1 · Two sentences, two lengths
#
# In self-attention a sentence asks itself. Who asks when there are two? These go with us through the lesson:

# %% given="tokens"
english = ["The", "cat", "sat", "on", "the", "mat"]
french = ["Le", "chat", "est", "assis", "sur", "le", "tapis"]
print(len(english), "English words,", len(french), "French words")

# %% [markdown]
# Somebody who writes the French sentence has the English one lying on the desk. Before each French word they look back: which
# English words do I need now? The French side **asks**, so it makes the queries. The English side is **asked**: it makes the keys and the
# values, and is called the **memory**. That is **cross-attention**. Its formula is the one you know; what changes is where the inputs come
# from:
#
# | | comes from | how many |
# |---|---|---|
# | query $q_i$ | the target, which is being written | $T_q$, here 7 |
# | key $k_j$ | the source, the memory | $T_k$, here 6 |
# | value $v_j$ | the same memory | $T_k$ again: each value goes with its key |
#
# The map of weights is no longer square: $7 \times 6$, and it is still the rows that attend.
#
# **The memory has a mask.** The shorter ones of a batch's English sentences are filled up with padding. The **memory mask** has the shape
# $(B, T_k)$, with True for a real word. It speaks about the places that are *looked at*, so it belongs to the columns of the map. All heads
# and all queries of an example share it.
#
# By hand, with vectors of a single number ($d_k = 1$, so that $\sqrt{d_k} = 1$), one query $q = 1$, and a memory of two words and one
# padding:
#
# | | key | score | real? | power | weight | value |
# |---|---|---|---|---|---|---|
# | first | $\ln 3 \approx 1.1$ | 1.1 | yes | 3 | $3/4$ | 4 |
# | second | 0 | 0 | yes | 1 | $1/4$ | 8 |
# | padding | 5 | 5 | no | left out | 0 | 100 |
#
# The context is $\tfrac34 \cdot 4 + \tfrac14 \cdot 8 = 5$. Without the mask, the padding would score highest, take 0.97 of the weight, and the
# context would be 97.5.
#
# **And if nothing is real?** Then there is nothing to take, and weights and context are 0. Lesson 05 built a softmax that keeps this
# promise; it comes along:


# %% given="masked_softmax"
def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis where mask (broadcastable, True = keep) is True; 0 elsewhere."""
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
    return weights.masked_fill(~mask, 0.0)


# %% [markdown]
# ### Exercise 6.1: attention to a memory
#
# Write it for tensors that already have their heads, $H$ of them at axis 1.


# %% exercise="attend"
def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, memory_mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled dot-product attention of queries to a memory of another length.

    Args:
        q: (B, H, Tq, d_k), the queries, from the target.
        k: (B, H, Tk, d_k), the keys, from the memory.
        v: (B, H, Tk, d_v), the values, from the memory.
        memory_mask: (B, Tk), boolean: True where the memory holds a real token, else padding.

    Returns:
        context: (B, H, Tq, d_v), and weights: (B, H, Tq, Tk), 0 on padding, in the dtype of q (it
        may be float16). Each row of weights sums to 1; where nothing in the memory is real, weights
        and context are 0.

    Example:
        q [[[[1]]]], k [[[[1.0986], [0], [5]]]], v [[[[4], [8], [100]]]] and memory_mask
        [[True, True, False]] give context [[[[5]]]] and weights [[[[0.75, 0.25, 0]]]].
    """
    # TODO: each query's average of the real values, and the weights of that average
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)
    weights = masked_softmax(scores, memory_mask[:, None, None, :])
    return weights @ v, weights
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Write the shape of the scores, `(B, H, Tq, Tk)`, and below it that of the mask, `(B, Tk)`. Where does the mask need axes of length 1?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Three steps, as in lesson 03: scaled scores, `masked_softmax`, a product with the values. `memory_mask[:, None, None, :]` is
# $(B, 1, 1, T_k)$: every head and every query of an example shares it.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# scores = ...         # (B, H, Tq, Tk)
# weights = ...        # the same shape
# return ..., weights
# ```
#
# </details>

# %% test="attend" points=2
check.exercise("attend", attend)
### BEGIN HIDDEN TESTS
_q, _k, _v = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 7)
_mask = torch.tensor([[True, True, False, True, False], [True] * 5])
_context, _weights = attend(_q, _k, _v, _mask)
_right = torch.nn.functional.scaled_dot_product_attention(_q, _k, _v, attn_mask=_mask[:, None, None, :])
torch.testing.assert_close(_context, _right, rtol=1e-4, atol=1e-5)
torch.testing.assert_close(_weights.sum(-1), torch.ones(2, 3, 4), rtol=1e-4, atol=1e-5)
torch.testing.assert_close(_weights @ _v, _context, rtol=1e-4, atol=1e-5)
assert not _weights[0, :, :, [2, 4]].any()  # exactly 0 on padding
_shuffle = torch.randperm(5)  # a memory is a bag: keys, values and mask shuffled together change nothing
_again = attend(_q, _k[:, :, _shuffle], _v[:, :, _shuffle], _mask[:, _shuffle])
torch.testing.assert_close(_again[0], _context, rtol=1e-4, atol=1e-5)
torch.testing.assert_close(_again[1], _weights[..., _shuffle], rtol=1e-4, atol=1e-5)
_loud, _far = _k.clone(), _v.clone()  # what stands at padding does not count
_loud[0, :, [2, 4]], _far[0, :, [2, 4]] = 30.0, -500.0
torch.testing.assert_close(attend(_q, _loud, _far, _mask)[0], _context, rtol=1e-4, atol=1e-5)
_cut = attend(_q[:1], _k[:1, :, [0, 1, 3]], _v[:1, :, [0, 1, 3]], torch.ones(1, 3, dtype=torch.bool))[0]
torch.testing.assert_close(_cut, _context[:1], rtol=1e-4, atol=1e-5)  # as if padding were not there
_one = attend(_q[:, :, 2:3], _k, _v, _mask)[0]  # queries do not see each other
torch.testing.assert_close(_one, _context[:, :, 2:3], rtol=1e-4, atol=1e-5)
_empty = torch.stack([torch.zeros(5, dtype=torch.bool), _mask[1]])
_context, _weights = attend(_q, _k, _v, _empty)
assert not _context[0].any()
assert not _weights[0].any()
torch.testing.assert_close(_context[1], _right[1], rtol=1e-4, atol=1e-5)
assert all(g is not None and torch.isfinite(g).all() for g in check.gradients(attend, _q, _k, _v, _empty))
_low = torch.full((2, 3, 5, 6), -12.0)  # real words with scores far below 0 are still real
_mean = attend(_low[:, :, :4].abs(), _low, _v, _mask)[0][0, 0, 0]
torch.testing.assert_close(_mean, _v[0, 0, [0, 1, 3]].mean(0), rtol=1e-2, atol=1e-2)
_half = attend(_q.half(), _k.half(), _v.half(), _mask)[0]  # the fill has to exist in half precision
assert _half.dtype == torch.float16
torch.testing.assert_close(_half, attend(_q, _k, _v, _mask)[0].half(), rtol=0.03, atol=0.03)
_steep = torch.tensor([[[[-1.0], [1.0]]]])  # one row far below 0, the other far above
_levels = attend(_steep, torch.tensor([[[[80.0], [80.0], [-90.0]]]]), torch.eye(3)[None, None], _mask[:1, :3])[1]
torch.testing.assert_close(_levels, torch.tensor([[[[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]]]), rtol=1e-3, atol=1e-4)
assert check.unchanged(attend, _q, _k, _v, _mask)
### END HIDDEN TESTS

# %% [markdown]
# Does the order of the memory matter? Shuffle the English words and their mask in the same way, and compare:

# %%
q = device.randn(1, 1, 7, 8, seed=1)
k, v = device.randn(1, 1, 6, 8, seed=2), device.randn(1, 1, 6, 8, seed=3)
mask = torch.tensor([[True, True, True, True, False, True]], device=where)
shuffled = [5, 2, 0, 4, 1, 3]
context, weights = attend(q, k, v, mask)
again, _ = attend(q, k[:, :, shuffled], v[:, :, shuffled], mask[:, shuffled])
print("weights", tuple(weights.shape))
print("the shuffled memory gives the same contexts:", torch.allclose(context, again, atol=1e-5))

# %% [markdown]
# To attention, a memory is a bag: what is in it counts, and the order does not. If word order is to count, it must be written into the keys
# (lesson 04), as below.
#
# ## 2 · A layer for two sentences
#
# The two sides come from different networks, so a vector of the target need not be as wide as one of the memory. And the memory may hand
# over two vectors for each token, one to make the key of and one to make the value of. (The image model DETR does: its keys know *what* is
# to be seen and *where*, its values only what. So will the network below.) Three linear maps bring all of them to one width, `out_dim`,
# which the heads share. A fourth one mixes what the heads found:
#
# | map | from | to |
# |---|---|---|
# | `W_q` | `query_dim` | `out_dim`, which is `num_heads` times `head_dim` |
# | `W_k` | `key_dim` | `out_dim` |
# | `W_v` | `value_dim` | `out_dim` |
# | `W_o` | `out_dim` (the heads, side by side) | `out_dim` |
#
# In the code, `query`, `key` and `value` are the vectors before the maps, `q`, `k` and `v` those after them, cut into heads. `head_dim` is
# the $d_k$ of `attend`.
#
# **A trap in the padding.** Lesson 05 (5.8) ended with it: a weight of 0 does not silence a NaN in the padding. A projection does not help:
# one NaN in a vector makes all `out_dim` numbers NaN. So clear the padding where it enters, **before** the projections. After them the
# outputs can still be saved, but not the gradient of `W_k`: it is a sum over places in which the memory vector itself is a factor, and
# $0 \cdot \text{NaN}$ is NaN.
#
# One tool to cut the heads: `x.unflatten(-1, (H, -1))` is the `view` of your `split_heads` in lesson 03, for the last axis alone.
#
# ### Exercise 6.2: the layer


# %% exercise="CrossAttention"
class CrossAttention(nn.Module):
    """Multi-head attention from one sequence to another, whose vectors have other widths.

    Args:
        query_dim: numbers in each vector of the target.
        key_dim, value_dim: numbers in each of the memory's vectors.
        out_dim: numbers in each output; the heads share them.
        num_heads: how many heads, a divisor of out_dim; 1 unless given.

    The maps are nn.Linear layers without bias, called W_q, W_k, W_v and W_o, with out_dim outputs.
    """

    def __init__(self, query_dim, key_dim, value_dim, out_dim, num_heads=1):
        super().__init__()
        # TODO: what forward needs
        ### BEGIN SOLUTION
        self.num_heads = num_heads
        self.W_q = nn.Linear(query_dim, out_dim, bias=False)
        self.W_k = nn.Linear(key_dim, out_dim, bias=False)
        self.W_v = nn.Linear(value_dim, out_dim, bias=False)
        self.W_o = nn.Linear(out_dim, out_dim, bias=False)
        ### END SOLUTION

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, memory_mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Let every place of the target read the memory.

        Args:
            query: (B, Tq, query_dim), the target.
            key: (B, Tk, key_dim) and value: (B, Tk, value_dim), the memory; padding may hold
                anything, even NaN.
            memory_mask: (B, Tk), boolean, True where the memory is real.

        Returns:
            context: (B, Tq, out_dim), and weights: (B, H, Tq, Tk), one map for each head. Gradients
            are finite, those of the maps too.
        """
        # TODO: what each head finds in the memory, mixed by W_o
        ### BEGIN SOLUTION
        padding = ~memory_mask[:, :, None]  # (B, Tk, 1)
        k, v = self.W_k(key.masked_fill(padding, 0.0)), self.W_v(value.masked_fill(padding, 0.0))
        heads = [x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for x in (self.W_q(query), k, v)]
        context, weights = attend(*heads, memory_mask)  # (B, H, Tq, head_dim), (B, H, Tq, Tk)
        return self.W_o(context.transpose(1, 2).flatten(2)), weights
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Follow one tensor by its shape: `(B, Tk, key_dim)`, then `(B, Tk, out_dim)`, then `(B, H, Tk, head_dim)`. After `attend`, the way back:
# `(B, H, Tq, head_dim)`, then `(B, Tq, H, head_dim)`, then `(B, Tq, out_dim)`.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `key.masked_fill(~memory_mask[:, :, None], 0.0)` clears. `x.unflatten(-1, (H, -1))` cuts the last axis into heads, and `transpose(1, 2)`
# moves them to axis 1. (A `view` straight to `(B, H, T, head_dim)` would run and mix the tokens.) On the way back `transpose(1, 2)` comes
# first, then `flatten(2)`.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# padding = ...                          # (B, Tk, 1)
# k, v = self.W_k(...), self.W_v(...)    # (B, Tk, out_dim)
# q, k, v = ...                          # each cut into heads, (B, H, T, head_dim)
# context, weights = attend(...)
# return self.W_o(...), weights          # the heads side by side again
# ```
#
# </details>

# %% test="CrossAttention" points=3
check.exercise("CrossAttention", CrossAttention)
### BEGIN HIDDEN TESTS
_layer = CrossAttention(7, 8, 10, 18, num_heads=3)
_state = {"W_q.weight": torch.randn(18, 7) / 2, "W_k.weight": torch.randn(18, 8) / 2}
_state |= {"W_v.weight": torch.randn(18, 10) / 3, "W_o.weight": torch.randn(18, 18) / 4}
_layer.load_state_dict(_state)
_query, _key, _value = torch.randn(2, 4, 7), torch.randn(2, 5, 8), torch.randn(2, 5, 10)
_mask = torch.tensor([[True, False, True, True, False], [True] * 5])
_context, _weights = _layer(_query, _key, _value, _mask)
_projected = [x @ _state[f"{n}.weight"].T for n, x in (("W_q", _query), ("W_k", _key), ("W_v", _value))]
_parts = []
for _h in range(3):  # head by head
    _q, _k, _v = (x[:, :, 6 * _h : 6 * _h + 6] for x in _projected)
    _s = (torch.einsum("bic,bjc->bij", _q, _k) / 6**0.5).masked_fill(~_mask[:, None], -torch.inf)
    torch.testing.assert_close(_weights[:, _h], torch.softmax(_s, -1), rtol=1e-4, atol=1e-5)
    _parts.append(torch.softmax(_s, -1) @ _v)
torch.testing.assert_close(_context, torch.cat(_parts, -1) @ _state["W_o.weight"].T, rtol=1e-4, atol=1e-4)
_shuffle = torch.randperm(5)
_again = _layer(_query, _key[:, _shuffle], _value[:, _shuffle], _mask[:, _shuffle])[0]
torch.testing.assert_close(_again, _context, rtol=1e-4, atol=1e-4)
_dirty_key, _dirty_value = _key.clone(), _value.clone()  # a masked place of the memory may hold NaN
_dirty_key[0, 1], _dirty_value[0, 4] = torch.nan, torch.inf
torch.testing.assert_close(_layer(_query, _dirty_key, _dirty_value, _mask)[0], _context, rtol=1e-4, atol=1e-4)
assert all(torch.isfinite(g).all() for g in check.gradients(_layer, _query, _dirty_key, _dirty_value, _mask))
_nothing = _layer(_query, _key, _value, torch.zeros(2, 5, dtype=torch.bool))
assert not _nothing[0].any()
assert not _nothing[1].any()
_one = _layer(_query[:, 3:], _key, _value, _mask)[0]  # one query alone gets what it got among others
torch.testing.assert_close(_one, _context[:, 3:], rtol=1e-4, atol=1e-4)
assert check.parameters(_layer) == {n: tuple(w.shape) for n, w in _state.items()}
assert check.parameters(CrossAttention(3, 4, 5, 6))["W_v.weight"] == (6, 5)  # one head if nothing else is said
### END HIDDEN TESTS

# %% [markdown]
# ### Put to work: a writer that must read
#
# An untrained layer has nothing to say, so let us train one. The folded cell below makes `seen` and `unseen`, sentence pairs from word
# lists. In half of the noun phrases there is a colour, which French puts *after* the noun, and each verb becomes two words:
#
# > my black dog slept under a bench → mon chien noir a dormi sous un banc
#
# It also notes, for each French word, which English word it stands for. These **gold links** are never shown to the network. We keep them
# for section 6. `to_batch(pairs)` gives the sentences as numbers, padded with 0, and the links; `shifted(target)` gives the word before
# each word.


# %% given="corpus"
# @title The sentence pairs
determiners = {"the": "le", "a": "un", "my": "mon", "your": "ton", "this": "ce"}
animals = {"cat": "chat", "dog": "chien", "rabbit": "lapin", "horse": "cheval", "fox": "renard", "duck": "canard"}
places = {"mat": "tapis", "roof": "toit", "bench": "banc", "bridge": "pont", "bed": "lit", "wall": "mur"}
colours = {"black": "noir", "white": "blanc", "grey": "gris", "green": "vert", "red": "rouge", "blue": "bleu"}
verbs = {"sat": "est assis", "stayed": "est resté", "fell": "est tombé", "slept": "a dormi", "ate": "a mangé"}
prepositions = {"on": "sur", "under": "sous", "behind": "derrière", "against": "contre"}
lists = (determiners, animals, places, colours, verbs, prepositions)
english_words = ["<pad>", *(word for words in lists for word in words)]
french_words = ["<pad>", "<start>", "<end>", "est", *(w.split()[-1] for words in lists for w in words.values()), "a"]


def one_of(words: dict[str, str], draw: torch.Generator) -> tuple[str, str]:
    """An English word of a list, with its translation."""
    return list(words.items())[int(torch.randint(len(words), (), generator=draw))]


def noun_phrase(nouns: dict[str, str], draw: torch.Generator) -> tuple[list[tuple[str, str]], list[int]]:
    """Words of both languages in the English order, and the French order of their places: half of them have a colour."""
    article, colour, noun = one_of(determiners, draw), one_of(colours, draw), one_of(nouns, draw)
    coloured = bool(torch.rand((), generator=draw) < 0.5)
    return ([article, colour, noun], [0, 2, 1]) if coloured else ([article, noun], [0, 1])


def sentence_pair(draw: torch.Generator) -> tuple[list[str], list[str], list[int]]:
    """An English sentence, its translation, and for each French word the place of the English word it stands for."""
    who, order = noun_phrase(animals, draw)
    where_to, order_to = noun_phrase(places, draw)
    words = [*who, one_of(verbs, draw), one_of(prepositions, draw), *where_to]
    order = [*order, len(who), len(who) + 1, *(len(who) + 2 + place for place in order_to)]
    links = [(word, place) for place in order for word in words[place][1].split()]  # a verb becomes two words
    return [e for e, _ in words], [f for f, _ in links], [place for _, place in links]


def to_batch(pairs: list) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pairs as numbers, padded with 0. Returns source (B, S), target (B, T) with <end>, and gold (B, T, S)."""
    S, T = max(len(e) for e, _, _ in pairs), max(len(f) for _, f, _ in pairs) + 1
    source, target = torch.zeros(len(pairs), S, dtype=torch.long), torch.zeros(len(pairs), T, dtype=torch.long)
    gold = torch.zeros(len(pairs), T, S, dtype=torch.bool)
    for b, (e, f, links) in enumerate(pairs):
        source[b, : len(e)] = torch.tensor([english_words.index(word) for word in e])
        target[b, : len(f) + 1] = torch.tensor([french_words.index(word) for word in [*f, "<end>"]])
        gold[b, torch.arange(len(f)), torch.tensor(links)] = True
    return source.to(where), target.to(where), gold.to(where)


def shifted(target: torch.Tensor) -> torch.Tensor:
    """The word before each word of target (B, T): <start>, then all but the last."""
    return torch.cat([torch.full_like(target[:, :1], french_words.index("<start>")), target[:, :-1]], dim=1)


the_cat = ([word.lower() for word in english], [word.lower() for word in french], [0, 1, 2, 2, 3, 4, 5])
draw = torch.Generator().manual_seed(6)
pairs = [sentence_pair(draw) for _ in range(600)]
seen = [pair for pair in pairs[:400] if pair[0] != the_cat[0]]
unseen = [pair for pair in pairs[400:] if pair[0] not in [e for e, _, _ in seen]]

# %% [markdown]
# Now a small network that writes French, one word after the other. Its query is made of the word before and the place in the sentence;
# whatever it learns about the English comes **through your layer**, and from the context it predicts the next word. In its memory, the
# value of a word knows which word it is; the key also knows where the word stands. "Where" has done its work once the word is found.


# %% given="writer"
class Writer(nn.Module):
    """Predicts each French word from the one before it, its place, and what cross-attention brings.

    With ``neighbours``, a vector of the memory is the sum of a word and the words beside it.
    """

    def __init__(self, attention: nn.Module, neighbours: bool = False):
        super().__init__()
        self.english = nn.Embedding(len(english_words), 24)
        self.french = nn.Embedding(len(french_words), 20)
        self.english_places, self.french_places = nn.Embedding(12, 12), nn.Embedding(12, 8)
        self.attention, self.neighbours = attention, neighbours
        self.words = nn.Linear(32 + 28, len(french_words))

    def memory(self, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """source: (B, S). Returns key (B, S, 36), value (B, S, 24), memory_mask (B, S)."""
        memory_mask = source > 0
        value = self.english(source) * memory_mask[:, :, None]
        if self.neighbours:
            left, right = (nn.functional.pad(value, (0, 0, n, -n)) for n in (1, -1))
            value = left + value + right
        places = self.english_places.weight[: source.shape[1]].expand(len(source), -1, -1)
        return torch.cat([value, places], dim=-1), value, memory_mask

    def query(self, previous: torch.Tensor) -> torch.Tensor:
        """previous: (B, T), the word before each. Returns (B, T, 28): that word and the place."""
        places = self.french_places.weight[: previous.shape[1]].expand(len(previous), -1, -1)
        return torch.cat([self.french(previous), places], dim=-1)

    def next_words(self, context: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        """Scores for every French word, from context (..., 32) and query (..., 28)."""
        return self.words(torch.cat([context, query], dim=-1))

    def forward(self, source: torch.Tensor, previous: torch.Tensor):
        """All words at once. Returns scores (B, T, words) and weights (B, H, T, S)."""
        key, value, memory_mask = self.memory(source)
        query = self.query(previous)
        context, weights = self.attention(query, key, value, memory_mask)
        return self.next_words(context, query), weights


# %% given="train"
# @title The training: 100 steps of Adam on the cross-entropy of the next word
def train(seed: int, neighbours: bool = False) -> Writer:
    """A Writer trained on ``seen`` to predict the next word, from first numbers that ``seed`` draws.

    In double precision, so that every machine ends with the same network.
    """
    attention = CrossAttention(query_dim=28, key_dim=36, value_dim=24, out_dim=32)
    writer = Writer(attention, neighbours).to(where, torch.float64)
    for i, (_, p) in enumerate(sorted(writer.named_parameters())):
        width = p.shape[-1] if p.shape[-1] >= 24 else 1
        p.data = device.randn(*p.shape, seed=100 * seed + i).double() / math.sqrt(width)
    optimiser = torch.optim.Adam(writer.parameters(), lr=0.02)
    source, target, _ = to_batch(seen)
    for _ in bar(range(100), "training"):
        scores, _ = writer(source, shifted(target))
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=0)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return writer.eval()


# %%
writer = train(seed=0)
source, target, gold = to_batch(unseen)
real = target > french_words.index("<end>")  # (B, T): True for a French word, not for <end>


def words_right(writer: Writer, source: torch.Tensor) -> float:
    """The fraction of the words of ``target``, and of its <end>, that are predicted right."""
    scores, _ = writer(source, shifted(target))
    return (scores.argmax(-1) == target)[target > 0].double().mean().item()


print(f"{len(seen)} pairs to learn from, {len(unseen)} it has never seen")
print(f"next words right, English in view: {words_right(writer, source):.2f}")
print(f"next words right, English hidden:  {words_right(writer, torch.zeros_like(source)):.2f}")

# %% [markdown]
# With the memory in view the writer gets the next words right, on sentences it has never seen. With nothing but padding in the memory, where
# your zeros for an empty memory are at work, it is left with the previous (correct) word, the place, and the grammar of French, and that
# gives it about three words in ten.
#
# ## 3 · The memory does not change
#
# In training, the whole French sentence is known and all queries go through at once. A translator that is *used* writes one word, feeds it
# back in, writes the next: $T_q = 1$, again and again. At each step your layer projects one query, and **the whole memory**, although it is
# what it was a step before. Count the vectors that go through `W_k` and `W_v` while seven French words are written from six English ones:
#
# | | per step | in seven steps |
# |---|---|---|
# | everything anew | $6 + 6 = 12$ | $7 \cdot 12 = 84$ |
# | projected once and kept | | $12$ |
#
# What is kept is called a **cache**. It is made once for each source sentence, in the form in which `attend` wants it: padding cleared,
# projected, split into heads.
#
# ### Exercise 6.3: the cache
#
# The weights come in as plain tensors, in the form in which `nn.Linear` stores them, (out, in). So a projection is `x @ W.T`.


# %% exercise="cache_kv"
def cache_kv(
    key: torch.Tensor,
    value: torch.Tensor,
    memory_mask: torch.Tensor,
    W_k: torch.Tensor,
    W_v: torch.Tensor,
    num_heads: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Project a memory once, for all the decoding steps that will read it.

    Args:
        key: (B, Tk, key_dim) and value: (B, Tk, value_dim), the memory; padding may hold anything,
            even NaN.
        memory_mask: (B, Tk), boolean, True where the memory is real.
        W_k: (out_dim, key_dim) and W_v: (out_dim, value_dim), the weights of the layer.
        num_heads: how many heads share out_dim.

    Returns:
        k: (B, H, Tk, head_dim), and v: (B, H, Tk, head_dim), both 0 at padding. Gradients at the
        weights are finite, whatever the padding holds.

    Example:
        key [[[2], [9]]], value [[[3], [9]]], memory_mask [[True, False]], W_k [[1], [10]],
        W_v [[1], [-1]] and two heads give k [[[[2], [0]], [[20], [0]]]] and
        v [[[[3], [0]], [[-3], [0]]]].
    """
    # TODO: keys and values of the whole memory, ready for attend
    ### BEGIN SOLUTION
    padding = ~memory_mask[:, :, None]  # (B, Tk, 1)
    k = key.masked_fill(padding, 0.0) @ W_k.T  # (B, Tk, out_dim)
    v = value.masked_fill(padding, 0.0) @ W_v.T
    k, v = (x.unflatten(-1, (num_heads, -1)).transpose(1, 2) for x in (k, v))
    return k, v
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The lines are in your `forward` already. What is different is only that the weights are tensors.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Three steps for each of the two: `masked_fill` on the memory, a product with the weight turned around, `unflatten` and `transpose` for
# the heads.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# padding = ...                # (B, Tk, 1)
# k, v = ..., ...              # (B, Tk, out_dim)
# k, v = ..., ...              # (B, H, Tk, head_dim)
# return k, v
# ```
#
# </details>

# %% test="cache_kv" points=2
check.exercise("cache_kv", cache_kv)
### BEGIN HIDDEN TESTS
_key, _value = torch.randn(2, 5, 8), torch.randn(2, 5, 10)
_Wk, _Wv = torch.randn(18, 8), torch.randn(18, 10)
_mask = torch.tensor([[True, False, True, True, False], [True] * 5])
_k, _v = cache_kv(_key, _value, _mask, _Wk, _Wv, 3)
for _got, _x, _W in ((_k, _key, _Wk), (_v, _value, _Wv)):
    for _h in range(3):  # head by head, and 0 at padding
        _right = torch.einsum("btc,dc->btd", _x, _W[6 * _h : 6 * _h + 6]) * _mask[:, :, None]
        torch.testing.assert_close(_got[:, _h], _right, rtol=1e-4, atol=1e-4)
_dirty_key, _dirty_value = _key.clone(), _value.clone()
_dirty_key[0, 4], _dirty_value[0, 1] = torch.nan, torch.nan
_again = cache_kv(_dirty_key, _dirty_value, _mask, _Wk, _Wv, 3)
torch.testing.assert_close(_again[0], _k, rtol=1e-4, atol=1e-4)
torch.testing.assert_close(_again[1], _v, rtol=1e-4, atol=1e-4)
_wide = cache_kv(_key, _value, _mask, _Wk, _Wv, 1)[0]  # one head holds what three share
torch.testing.assert_close(_wide[:, 0], _k.transpose(1, 2).reshape(2, 5, 18), rtol=1e-4, atol=1e-4)
_shuffle = torch.randperm(5)
_moved = cache_kv(_key[:, _shuffle], _value[:, _shuffle], _mask[:, _shuffle], _Wk, _Wv, 3)[1]
torch.testing.assert_close(_moved, _v[:, :, _shuffle], rtol=1e-4, atol=1e-4)
_found = check.gradients(cache_kv, _dirty_key, _dirty_value, _mask, _Wk, _Wv, 3)
assert all(g is not None and torch.isfinite(g).all() for g in _found)
assert check.unchanged(cache_kv, _key, _value, _mask, _Wk, _Wv, 3)
### END HIDDEN TESTS

# %% [markdown]
# What is left for each step is little: one vector per example comes in, one goes out. There is no axis $T_q$ any more, but `attend` wants
# one, of length 1.
#
# ### Exercise 6.4: one decoding step


# %% exercise="decode_step"
def decode_step(
    query: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    memory_mask: torch.Tensor,
    W_q: torch.Tensor,
    W_o: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-attention of a single place of the target to a cached memory.

    Args:
        query: (B, query_dim), one vector for each example.
        k, v: (B, H, Tk, head_dim), the cache.
        memory_mask: (B, Tk), boolean, True where the memory is real.
        W_q: (out_dim, query_dim) and W_o: (out_dim, out_dim), the weights of the layer.

    Returns:
        context: (B, out_dim), and weights: (B, H, Tk): what CrossAttention gives for this place.

    Example:
        query [[1]], k [[[[1.0986], [0]]]], v [[[[4], [8]]]], memory_mask [[True, True]], W_q [[1]]
        and W_o [[2]] give context [[10]], which is 2 times 5, and weights [[[0.75, 0.25]]].
    """
    # TODO: what the layer does for one query, with the cache in place of the memory
    ### BEGIN SOLUTION
    q = (query @ W_q.T).unflatten(-1, (k.shape[1], -1))[:, :, None, :]  # (B, H, 1, head_dim)
    context, weights = attend(q, k, v, memory_mask)  # (B, H, 1, head_dim), (B, H, 1, Tk)
    return context.flatten(1) @ W_o.T, weights[:, :, 0, :]
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The number of heads stands in the shape of `k`. The projected query `(B, out_dim)` becomes `(B, H, head_dim)`, then
# `(B, H, 1, head_dim)`.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `unflatten(-1, (k.shape[1], -1))` makes the heads, and indexing with `None` inserts the axis. With $T_q = 1$, `flatten(1)` puts the heads
# of the context side by side.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# q = ...                             # (B, H, 1, head_dim)
# context, weights = attend(...)      # (B, H, 1, head_dim), (B, H, 1, Tk)
# return ..., ...                     # (B, out_dim), (B, H, Tk)
# ```
#
# </details>

# %% test="decode_step" points=2
check.exercise("decode_step", decode_step)
### BEGIN HIDDEN TESTS
_query, _k, _v = torch.randn(2, 7), torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 6)
_Wq, _Wo = torch.randn(18, 7) / 2, torch.randn(18, 18) / 4
_mask = torch.tensor([[True, False, True, True, False], [True] * 5])
_context, _weights = decode_step(_query, _k, _v, _mask, _Wq, _Wo)
_q = torch.stack([_query @ _Wq[6 * h : 6 * h + 6].T for h in range(3)], 1)  # (B, H, head_dim)
_s = (torch.einsum("bhd,bhjd->bhj", _q, _k) / 6**0.5).masked_fill(~_mask[:, None], -torch.inf)
_a = torch.softmax(_s, -1)
torch.testing.assert_close(_weights, _a, rtol=1e-4, atol=1e-5)
_heads = torch.einsum("bhj,bhjd->bhd", _a, _v)
torch.testing.assert_close(_context, _heads.reshape(2, 18) @ _Wo.T, rtol=1e-4, atol=1e-4)
# Step by step equals all at once: the four places of a target, by the formula for the whole and by your steps.
_target, _whole = torch.randn(2, 4, 7), []
for _h in range(3):
    _s = torch.einsum("bic,bjc->bij", _target @ _Wq[6 * _h : 6 * _h + 6].T, _k[:, _h]) / 6**0.5
    _whole.append(torch.softmax(_s.masked_fill(~_mask[:, None], -torch.inf), -1) @ _v[:, _h])
_steps = torch.stack([decode_step(_target[:, t], _k, _v, _mask, _Wq, _Wo)[0] for t in range(4)], 1)
torch.testing.assert_close(_steps, torch.cat(_whole, -1) @ _Wo.T, rtol=1e-4, atol=1e-4)
_shuffle = torch.randperm(5)
_again = decode_step(_query, _k[:, :, _shuffle], _v[:, :, _shuffle], _mask[:, _shuffle], _Wq, _Wo)
torch.testing.assert_close(_again[0], _context, rtol=1e-4, atol=1e-4)
torch.testing.assert_close(_again[1], _weights[..., _shuffle], rtol=1e-4, atol=1e-5)
_nothing = decode_step(_query, _k, _v, torch.zeros(2, 5, dtype=torch.bool), _Wq, _Wo)
assert not _nothing[0].any()
assert not _nothing[1].any()
# Examples do not mix, and B = 1 keeps its axis.
_alone = decode_step(_query[1:], _k[1:], _v[1:], _mask[1:], _Wq, _Wo)[0]
torch.testing.assert_close(_alone, _context[1:], rtol=1e-4, atol=1e-4)
assert all(g is not None for g in check.gradients(decode_step, _query, _k, _v, _mask, _Wq, _Wo))
assert check.unchanged(decode_step, _query, _k, _v, _mask, _Wq, _Wo)
### END HIDDEN TESTS

# %% [markdown]
# Let the trained writer translate: at each step it takes the word that scores highest. And does the cached way give what the layer gives
# when it sees all the places at once?


# %%
@torch.no_grad()
def translate(writer: Writer, source: torch.Tensor) -> tuple[list[str], torch.Tensor]:
    """The French for one English sentence (1, S), and the contexts (1, T, 32) of all steps."""
    layer = writer.attention
    key, value, memory_mask = writer.memory(source)
    k, v = cache_kv(key, value, memory_mask, layer.W_k.weight, layer.W_v.weight, 1)  # once
    written, contexts = [french_words.index("<start>")], []
    while written[-1] != french_words.index("<end>") and len(written) < 12:
        query = writer.query(torch.tensor([written], device=where))[:, -1]  # (1, query_dim)
        context, _ = decode_step(query, k, v, memory_mask, layer.W_q.weight, layer.W_o.weight)
        written.append(writer.next_words(context, query).argmax(-1).item())
        contexts.append(context)
    return [french_words[number] for number in written[1:]], torch.stack(contexts, dim=1)


cat_source, cat_target, cat_gold = to_batch([the_cat])
words, contexts = translate(writer, cat_source)
print(" ".join(words))
query = writer.query(shifted(cat_target))
at_once, cat_weights = writer.attention(query, *writer.memory(cat_source))
print("step by step equals all at once:", torch.allclose(contexts, at_once, atol=1e-6))

# %% [markdown]
# The two ways agree. No causal mask was needed for that: the memory lies complete on the desk from the beginning, and queries do not look at
# each other. (The decoder's *self*-attention is another matter, and lesson 11 gives it a cache of its own.)
#
# How much work does the cache save? PyTorch can count multiplications and additions while your code runs. The source has 50 words.


# %%
@torch.no_grad()
def operations(function, *inputs) -> int:
    """Multiplications and additions in the matrix products of function(*inputs)."""
    with FlopCounterMode(display=False) as counter:
        function(*inputs)
    return counter.get_total_flops()


layer = CrossAttention(query_dim=28, key_dim=36, value_dim=24, out_dim=32).to(where)
query, key, value = (torch.zeros(1, n, d, device=where) for n, d in ((1, 28), (50, 36), (50, 24)))
to_cache = (key, value, key[..., 0] == 0, layer.W_k.weight, layer.W_v.weight, 1)  # all is real
to_step = (query[:, 0], *cache_kv(*to_cache), to_cache[2], layer.W_q.weight, layer.W_o.weight)
anew = operations(layer, query, *to_cache[:3])
once, step = operations(cache_kv, *to_cache), operations(decode_step, *to_step)
print("the same work for one word:", anew == once + step)
print(f"for 64 words the cache saves a factor of {64 * anew / (once + 64 * step):.0f}")

# %%
# @title The work with a cache and without
plots.lines(
    [1, 2, 4, 8, 16, 32, 64],
    {
        "anew": [n * anew / 1e6 for n in (1, 2, 4, 8, 16, 32, 64)],
        "cached": [(once + n * step) / 1e6 for n in (1, 2, 4, 8, 16, 32, 64)],
    },
    xlabel="French words written",
    ylabel="millions of operations",
    title="The cache pays from the second word on",
    alt="Multiplications and additions against the number of French words written, from 1 to 64, both axes logarithmic. Anew, "
    "they rise from 0.2 to 13 millions in a straight line. Cached, they start at the same 0.2 and rise to 0.8.",
    logx=True,
    logy=True,
)

# %% [markdown]
# The first word costs the same either way, since the memory has to be projected once. Without the cache each further word costs that much
# again; with it, about a twentieth of it, which is the query, its scores, its weighted sum and `W_o`.
#
# **A good place to stop.** The layer is built and writes. What comes: its maps, what can be wrong with a map, how to measure one, and a bug.
# To come back, run everything above the cell you want to go on with: Run, Run All Above Selected Cell (in Colab: Runtime, Run before).
#
# ## 4 · A map with its labels
#
# Now look at the weights. A map with the words on the wrong sides looks as good as before, and if both sentences are equally long nothing
# crashes. So settle once and for all what a map shows:
#
# * **rows** are the target words, which attend; **columns** are the source words, which are attended to;
# * the weights have one map for each head; the picture shows their **mean**;
# * the example was padded to the length of the longest in its batch, so there are rows and columns for which there is **no word**:
#   padding, and the row in which `<end>` was written. They are cut off.


# %% given="plot_alignment"
def plot_alignment(weights: torch.Tensor, source: list, target: list, title: str, alt: str) -> None:
    """Draw the map of a sentence pair. weights: (H, Tq, Tk), padded: Tq and Tk may be too large."""
    plots.heatmap(
        weights.mean(dim=0)[: len(target), : len(source)],  # (T, S)
        rows=target,
        columns=source,
        ylabel="target word (what attends)",
        xlabel="source word (what is attended to)",
        title=title,
        alt=alt,
        numbers=False,
    )


# %% [markdown]
# A second pair comes along from here on, in which French turns the order around twice:

# %%
coloured_en = ["The", "black", "cat", "sat", "on", "the", "red", "mat"]
coloured_fr = ["Le", "chat", "noir", "est", "assis", "sur", "le", "tapis", "rouge"]
coloured_gold = [0, 2, 1, 3, 3, 4, 5, 7, 6]  # "Le" stands for "The", "chat" for "cat", ...
lower = [[word.lower() for word in words] for words in (coloured_en, coloured_fr)]
two_source, two_target, _ = to_batch([the_cat, (*lower, coloured_gold)])
with torch.no_grad():
    _, two_weights = writer(two_source, shifted(two_target))
print("weights of the two pairs in one batch:", tuple(two_weights.shape))

# %%
# @title The map of the second pair
plot_alignment(
    two_weights[1],
    coloured_en,
    coloured_fr,
    title="Your layer: each French word reads mostly the English word it stands for",
    alt="Attention weights of nine French words over the eight words of The black cat sat on the red mat. Each French word "
    "reads most the word it stands for: chat reads cat and then noir reads black, est and assis both read sat, tapis reads "
    "mat and then rouge reads red.",
)

# %% [markdown]
# Read it row by row: "est" and "assis" share one English word; "noir" comes after "chat" and looks to the left of it.
#
# ### Exercise 6.5: explain a wrong map
#
# A colleague draws maps with a program that you cannot see. You do see what went in, two heads for the pair "the cat sat" → "le chat est
# assis" in a batch with longer ones, and what came out. The map is wrong in two respects. Which?
#
# Write `colleagues_map`, which gives what that program shows for any sentence pair. Your explanation is right if it foretells the maps of
# other sentences.

# %% given="heads"
first = [[0.7, 0.3, 0], [0, 0.9, 0.1], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6], [0.2, 0.2, 0.6]]
second = [[0.5, 0.1, 0.4], [0.3, 0.7, 0], [0, 0.6, 0.4], [0.1, 0.5, 0.4], [0.1, 0.5, 0.4]]
heads = nn.functional.pad(torch.tensor([first, second]), (0, 2))  # (H, Tq, Tk) = (2, 5, 5)

# %% given="wrong_map"
# @title What came out
drawn = [[0.7, 0.3, 0.4], [0.3, 0.9, 0.1], [0.1, 0.6, 0.8], [0.2, 0.5, 0.6]]
plots.heatmap(
    drawn,
    rows=["<start>", "le", "chat", "est"],
    columns=["the", "cat", "sat"],
    title="The colleague's map",
    alt="A map with the rows <start>, le, chat, est and the columns the, cat, sat. Its rows read 0.7, 0.3, 0.4; 0.3, 0.9, 0.1; "
    "0.1, 0.6, 0.8; 0.2, 0.5, 0.6.",
    ylabel="target word (what attends)",
    xlabel="source word (what is attended to)",
)


# %% exercise="colleagues_map"
def colleagues_map(
    weights: torch.Tensor, source: list[str], target: list[str]
) -> tuple[torch.Tensor, list[str], list[str]]:
    """What the colleague's program shows for one sentence pair.

    Args:
        weights: (H, Tq, Tk), the weights of one example, padded: Tq and Tk may be too large.
        source: the S source words, S <= Tk. target: the T target words, T <= Tq.

    Returns:
        matrix: (T, S), the numbers it shows; rows: the T labels of its rows, from the top;
        columns: the S labels of its columns, from the left.

    Example:
        heads, ["the", "cat", "sat"] and ["le", "chat", "est", "assis"] give the map above.
    """
    # TODO: the map with both of its faults
    ### BEGIN SOLUTION
    matrix = weights.amax(dim=0)[: len(target), : len(source)]  # (T, S)
    return matrix, ["<start>", *target[:-1]], source
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Compare each part with the rules above: the labels of the rows, those of the columns, and the numbers. Add up the numbers of a row.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# One fault is in the labels of the rows: which word is missing, which is new, and what does the network get as input where it writes
# "le"? The other is in how two heads became one map: take one cell, write down the two numbers that went in, and the one that came out.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# matrix = ...                  # the heads made one, without padding: (T, S)
# rows = ...                    # T words
# return matrix, rows, source
# ```
#
# </details>

# %% test="colleagues_map" points=2
check.exercise("colleagues_map", colleagues_map)
### BEGIN HIDDEN TESTS
import random as _random

_letters = _random.sample("abcdefghijklmnopqrstuvwxyz", 20)
for _S, _T in ((4, 6), (6, 4), (5, 5), (1, 3), (8, 7), (3, 1)):
    _w = torch.softmax(torch.randn(3, 7, 8), -1)
    _matrix, _rows, _columns = colleagues_map(_w, _letters[:_S], _letters[10 : 10 + _T])
    assert list(_rows) == ["<start>", *_letters[10 : 10 + _T - 1]]
    assert list(_columns) == _letters[:_S]
    assert tuple(_matrix.shape) == (_T, _S)
    for _i in range(_T):
        for _j in range(_S):
            assert abs(_matrix[_i, _j].item() - max(_w[h, _i, _j].item() for h in range(3))) < 1e-5
assert check.unchanged(colleagues_map, _w, _letters[:3], _letters[10:11])
### END HIDDEN TESTS

# %% [markdown]
# Both faults are common. Where heads are joined by their **maximum**, each head's favourite looks dark, and rows no longer sum to 1. And the
# query of row $i$ was made from the word *before*: a row labelled with the word that **went in**, not with the one that was written, stands
# one place too low. Section 6 measures what that would cost.
#
# ## 5 · What a map says in numbers
#
# Nobody looks at ten thousand maps. Two numbers for each source token and one for each target token sum one up:
#
# * for each **source** token $j$, the **mean** of its column: how much of the reading went to it, on average over the target words;
# * for each source token, the **maximum** of its column: was it read at any step? A word that was not has perhaps been left out;
# * for each **target** token $i$, the **entropy** of its row, $-\sum_j w_{ij} \ln w_{ij}$, in *nats*: 0 if it looked at one word, $\ln n$ if
#   at $n$ words alike. (By convention $0 \ln 0 = 0$.)
#
# By hand, two target words and two source words:
#
# | | cat | sat | entropy |
# |---|---|---|---|
# | chat | 1 | 0 | 0 |
# | est | 0.5 | 0.5 | $\ln 2 \approx 0.69$ |
# | *mean* | 0.75 | 0.25 | |
# | *maximum* | 1 | 0.5 | |
#
# **Padding again, on the other side.** Targets of different lengths lie in one batch as well. Rows of padding are computed like all others,
# look at something, and mean nothing. They must not enter the mean or the maximum, nor be counted when you divide, and their entropy is
# reported as 0. The **target mask** $(B, T_q)$ is True for real words (not for `<end>`). It belongs to the *rows*.
#
# ### Exercise 6.6: attention statistics


# %% exercise="attention_statistics"
def attention_statistics(
    weights: torch.Tensor, target_mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A mean and a maximum for each source token and an entropy for each target token.

    Args:
        weights: (B, H, Tq, Tk), rows that sum to 1; rows of padding may hold anything, even NaN.
        target_mask: (B, Tq), boolean, True for a real target token; each example has at least one.

    Returns:
        mean: (B, H, Tk), over the real target tokens,
        maximum: (B, H, Tk), over the real target tokens,
        entropy: (B, H, Tq), in nats; 0 for padding.

    Example:
        weights [[[[1, 0], [0.5, 0.5], [0, 1]]]] and target_mask [[True, True, False]]
        give mean [[[0.75, 0.25]]], maximum [[[1, 0.5]]] and entropy [[[0, 0.6931, 0]]].
    """
    # TODO: the three, of the real rows alone
    ### BEGIN SOLUTION
    keep = target_mask[:, None, :, None]  # (B, 1, Tq, 1)
    weights = weights.masked_fill(~keep, 0.0)
    mean = weights.sum(dim=-2) / keep.sum(dim=-2)  # (B, H, Tk) / (B, 1, 1)
    entropy = torch.special.entr(weights).sum(dim=-1)
    return mean, weights.amax(dim=-2), entropy
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# "Per source token" means that the axis Tk stays, and Tq disappears. For the entropy it is the other way round.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# With the rows of padding set to 0, a sum and a maximum along `dim=-2` do not see them, because no weight is negative. What the mean divides
# by is the number of *real* target tokens, one for each example. `torch.special.entr(w)` is $-w \ln w$, and 0 at 0.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# keep = ...                   # (B, 1, Tq, 1)
# weights = ...                # rows of padding replaced
# mean = ... / ...             # (B, H, Tk)
# maximum = ...                # (B, H, Tk)
# entropy = ...                # (B, H, Tq)
# return mean, maximum, entropy
# ```
#
# </details>

# %% test="attention_statistics" points=2
check.exercise("attention_statistics", attention_statistics)
### BEGIN HIDDEN TESTS
_w = torch.softmax(2 * torch.randn(3, 2, 5, 7), -1)
_mask = torch.arange(5) < torch.tensor([[5], [2], [4]])
_mean, _maximum, _entropy = attention_statistics(_w, _mask)
for _b, _n in enumerate((5, 2, 4)):
    _rows = _w[_b, :, :_n]
    torch.testing.assert_close(_mean[_b], _rows.mean(1), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(_maximum[_b], _rows.max(1).values, rtol=1e-4, atol=1e-5)
    _right = -(_rows * _rows.log()).sum(-1)
    torch.testing.assert_close(_entropy[_b, :, :_n], _right, rtol=1e-4, atol=1e-5)
    assert not _entropy[_b, :, _n:].any()
torch.testing.assert_close(_mean.sum(-1), torch.ones(3, 2), rtol=1e-4, atol=1e-5)  # the means share out one whole
_shuffle = torch.randperm(5)  # the order of the target does not matter to mean and maximum
_again = attention_statistics(_w[:, :, _shuffle], _mask[:, _shuffle])
torch.testing.assert_close(_again[0], _mean, rtol=1e-4, atol=1e-5)
torch.testing.assert_close(_again[2], _entropy[:, :, _shuffle], rtol=1e-4, atol=1e-5)
_dirty = _w.clone()
_dirty[1, :, 3] = torch.nan  # a row of padding
for _a, _b in zip(attention_statistics(_dirty, _mask), (_mean, _maximum, _entropy), strict=True):
    torch.testing.assert_close(_a, _b, rtol=1e-4, atol=1e-5)
_sharp = torch.eye(6)[None, None, :5]  # exact zeros
_mean, _maximum, _entropy = attention_statistics(_sharp, torch.ones(1, 5, dtype=torch.bool))
assert not _entropy.any()
torch.testing.assert_close(_maximum[0, 0], torch.tensor([1.0, 1, 1, 1, 1, 0]))
_flat = attention_statistics(torch.full((1, 2, 3, 4), 0.25), torch.ones(1, 3, dtype=torch.bool))[2]
torch.testing.assert_close(_flat, torch.full((1, 2, 3), 4.0).log(), rtol=1e-4, atol=1e-5)
assert check.unchanged(attention_statistics, _w, _mask)
### END HIDDEN TESTS

# %%
two_mask = two_target > french_words.index("<end>")
mean, maximum, entropy = attention_statistics(two_weights, two_mask)
for j, word in enumerate(coloured_en):
    print(f"{word:5} mean {mean[1, 0, j]:.2f}, maximum {maximum[1, 0, j]:.2f}")
for i, word in enumerate(coloured_fr):
    print(f"{word:5} entropy {entropy[1, 0, i]:.1f}")

# %% [markdown]
# No word was skipped: every maximum is high. "sat" serves two of the nine French words, so its mean is $2/9 \approx 0.22$; that of the
# others is about $1/9$. The entropies are low: but for "Le", each word was written with an eye on a single English one.
#
# ## 6 · Is it an alignment?
#
# The map of section 4 looks convincing. But is it *right*, and would another map have looked as good? A claim about alignment has to be
# measured, against three things:
#
# 1. **gold links**: which English word does each French word really stand for?
# 2. a **uniform** baseline: how often would a random choice be right?
# 3. a **diagonal** baseline: how often would a map be right that knows positions only? It links the first word to the first, the last to
#    the last, and the others in proportion, rounded to the nearest place.
#
# Gold links are choices, not weights, so the map has to choose too: for each target word the source word with the largest weight. That is
# a **hard alignment**. By hand, with two heads:
#
# | | cat | sat |
# |---|---|---|
# | head 1 | 0.6 | 0.4 |
# | head 2 | 0.1 | 0.9 |
# | mean | 0.35 | 0.65 |
#
# The mean chooses "sat". A row without any weight (an empty memory) chooses nothing, which is written as $-1$.
#
# ### Exercise 6.7: hard alignment


# %% exercise="hard_alignment"
def hard_alignment(weights: torch.Tensor) -> torch.Tensor:
    """For each target token, the place of the source token with the largest mean weight.

    Args:
        weights: (B, H, Tq, Tk), rows that sum to 1, or to 0 where the memory was empty. The mean is
            taken over the heads.

    Returns:
        (B, Tq), whole numbers (int64) from 0 to Tk - 1; -1 where the row has no weight at all.

    Example:
        weights [[[[0.6, 0.4], [0, 0]], [[0.1, 0.9], [0, 0]]]] give [[1, -1]].
    """
    # TODO: one link for each target token
    ### BEGIN SOLUTION
    mean = weights.mean(dim=1)  # (B, Tq, Tk)
    return mean.argmax(dim=-1).masked_fill(mean.sum(dim=-1) == 0, -1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Two axes disappear: H by averaging, Tk by choosing, in this order.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `argmax(dim=-1)` of a row of zeros says 0, as if the first word had been chosen. Find those rows (their sum is 0) and overwrite.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# mean = ...           # (B, Tq, Tk)
# links = ...          # (B, Tq)
# return ...           # -1 in some rows
# ```
#
# </details>

# %% test="hard_alignment" points=1
check.exercise("hard_alignment", hard_alignment)
### BEGIN HIDDEN TESTS
_w = torch.softmax(2 * torch.randn(2, 3, 4, 6), -1)
_links = hard_alignment(_w)
for _b in range(2):
    for _i in range(4):
        _row = (sum(_w[_b, h, _i] for h in range(3)) / 3).tolist()
        assert int(_links[_b, _i]) == _row.index(max(_row))
_shuffle = torch.randperm(6)
assert torch.equal(_shuffle[hard_alignment(_w[..., _shuffle])], _links)  # the link moves with its source token
assert torch.equal(hard_alignment(_w[:, [2, 0, 1]]), _links)  # heads have no order
_places = torch.randint(5, (2, 7))
assert torch.equal(hard_alignment(torch.eye(5)[_places][:, None]), _places)  # a map with one word per row is returned
_w[1] = 0.0
assert hard_alignment(_w)[1].tolist() == [-1] * 4
assert torch.equal(hard_alignment(_w)[0], _links[0])
assert check.unchanged(hard_alignment, _w)
### END HIDDEN TESTS


# %% given="error"
def alignment_error(links: torch.Tensor, gold: torch.Tensor, real: torch.Tensor) -> float:
    """The fraction of real target words whose link is not a gold link.

    links: (B, T); gold: (B, T, S), True where a link belongs; real: (B, T), True for real words.
    """
    hit = gold.gather(-1, links.clamp(min=0)[:, :, None])[:, :, 0] & (links >= 0)
    return 1 - hit[real].double().mean().item()


# %% given="baselines"
# @title The two baselines
def diagonal(source: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Links (B, T) that go from the first source word to the last in equal steps, whatever the words are."""
    S, T = (source > 0).sum(1, keepdim=True), real.sum(1, keepdim=True)
    steps = torch.arange(real.shape[1], device=real.device) * (S - 1) / (T - 1)
    return torch.minimum(steps.round().long(), S - 1)


def uniform_error(source: torch.Tensor, gold: torch.Tensor, real: torch.Tensor) -> float:
    """The alignment error to expect if each link is drawn at random from the source words."""
    right = gold.double().sum(-1) / (source > 0).sum(1, keepdim=True)  # (B, T): chance of a gold link
    return 1 - right[real].mean().item()


# %% [markdown]
# First the pair that this lesson began with, then all of `unseen`.

# %%
cat_real = cat_target > french_words.index("<end>")
print("The cat sat on the mat")
print(f"  your map  {alignment_error(hard_alignment(cat_weights), cat_gold, cat_real):.2f}")
print(f"  diagonal  {alignment_error(diagonal(cat_source, cat_real), cat_gold, cat_real):.2f}")
print(f"  uniform   {uniform_error(cat_source, cat_gold, cat_real):.2f}")

with torch.no_grad():
    links = hard_alignment(writer(source, shifted(target))[1])
too_low = alignment_error(links[:, 1:], gold[:, :-1], real[:, :-1])  # labelled with what went in
of_diagonal = alignment_error(diagonal(source, real), gold, real)
print(f"{len(source)} unseen pairs")
print(f"  your map  {alignment_error(links, gold, real):.2f}")
print(f"  your map, labelled one place too low {too_low:.2f}")
print(f"  diagonal  {of_diagonal:.2f}")
print(f"  uniform   {uniform_error(source, gold, real):.2f}")

# %% [markdown]
# On the first pair all seven links are right, and the diagonal has them all right too. That map **cannot tell** whether the layer found the
# words or counts along: for that, one needs sentences in which the order changes, as in half of the noun phrases of `unseen`. There the
# diagonal errs on three links of ten, and your map on none, although nobody has shown the network a link.
#
# So is attention alignment? Not so fast. In this memory each vector knew one word: what stands for "cat" could be found at "cat" alone. In a
# real encoder the vectors have mixed (that is what *its* self-attention is for). So let each vector be the **sum of a word and its two
# neighbours**, and train five writers on each kind of memory, from five seeds, because a single network is an anecdote.

# %%
seeds, kinds = range(5), ("words alone", "mixed")
writers = {("words alone", 0): writer}  # this one we have
nine = [(kind, seed) for kind in kinds for seed in seeds][1:]
for kind, seed in bar(nine, "training nine writers"):
    writers[kind, seed] = train(seed, neighbours=kind == "mixed")

right, errors = {}, {}
for name, each in writers.items():
    with torch.no_grad():
        right[name] = words_right(each, source)
        errors[name] = alignment_error(hard_alignment(each(source, shifted(target))[1]), gold, real)
for kind in kinds:
    words = sorted(right[kind, seed] for seed in seeds)
    wrong = sorted(errors[kind, seed] for seed in seeds)
    print(f"{kind}: next words right {words[0]:.2f} to {words[-1]:.2f}")
    print(f"  links wrong {wrong[0]:.1f} to {wrong[-1]:.1f}")
    print("  seeds with a map worse than the diagonal:", sum(e > of_diagonal for e in wrong))

# %%
# @title Links right, seed by seed
plots.bars(
    {kind: [1 - errors[kind, seed] for seed in seeds] for kind in kinds} | {"diagonal": [1 - of_diagonal] * len(seeds)},
    labels=[f"seed {seed}" for seed in seeds],
    ylabel="links right",
    title="With a mixed memory, five writers of five align worse than the diagonal",
    alt="Fraction of links that are right, for five seeds. Words alone 1.00, 1.00, 1.00, 0.91 and 1.00; words mixed with their "
    "neighbours 0.49, 0.35, 0.45, 0.57 and 0.66; the diagonal 0.68 for all.",
    top=1.0,
)

# %% [markdown]
# The mixed ones write as well as the others. If a vector holds a word and its neighbours, looking next door is as good as looking at the word
# itself, and the loss does not ask for more. (Nor does a memory of words alone promise an alignment: seed 3 has nine links of a hundred
# wrong, and three words.) Move the slider over the ten writers and read their maps of one sentence; in brackets stands the English word of
# the gold link. Where no slider can be shown, the two writers of seed 0 stand side by side.


# %% tags=["cover"]
# @title Slider: ten writers, one sentence
def maps_of(names: list, title: str, alt: str) -> None:
    """Draw the maps that some of the writers make of the second pair."""
    with torch.no_grad():
        maps = [writers[name](two_source, shifted(two_target))[1][1, 0] for name in names]
    plots.small_multiples(
        [weights[: len(coloured_fr), : len(coloured_en)] for weights in maps],
        titles=[f"{kind}, seed {seed}" for kind, seed in names],
        rows=[f"{word} ({coloured_en[place]})" for word, place in zip(coloured_fr, coloured_gold, strict=True)],
        columns=coloured_en,
        title=title,
        alt=alt,
        ylabel="target word (and its gold link)",
        xlabel="source word (what is attended to)",
    )


by_name = {f"{kind}, seed {seed}": (kind, seed) for kind, seed in writers}


def one_writer(name: str) -> None:
    """Draw the map of one writer."""
    key = by_name[name]
    words = f"{100 * right[key]:.0f} words of 100 right, {100 * errors[key]:.0f} links of 100 wrong"
    maps_of([key], words, f"Map of the writer {name}, over one sentence: {words} on all sentences.")


def two_writers() -> None:
    """The picture in place of the slider."""
    maps_of(
        [("words alone", 0), ("mixed", 0)],
        "Two writers, the same French, and only one map that could pass for an alignment",
        "Two maps of Le chat noir est assis sur le tapis rouge over The black cat sat on the red mat. Words alone: each French "
        "word reads the word of its gold link most. Mixed with neighbours: noir reads The, assis reads cat, sur reads sat, "
        "le reads red and rouge reads mat; Le, chat, est and tapis read the words of their gold links.",
    )


plots.interactive(one_writer, name="writer", options=list(by_name), still=two_writers)

# %%
for kind in kinds:
    print(f"{kind}, seed 0: {' '.join(translate(writers[kind, 0], two_source[1:])[0])}")

# %% [markdown]
# A dark cell says where the network looked, and not that this is the word's translation. In trained translators it has been measured too:
# Koehn and Knowles (2017, in the references) met a language pair in which the attention lay one word off. Whenever you meet a map in a
# paper, ask for the number beside it, and for the diagonal.
#
# ## 7 · Spot the bug
#
# A translator may keep several **candidates** for each sentence and extend all of them at each step (lesson 08: beam search). All candidates
# of a sentence read the same memory. The code below makes one long batch of them, hands each its memory, and lets each attend once. The
# line with `repeat` comes from a real translator, where it
# [mixed up the sentences of a batch](https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/28) until its readers
# reported it.
#
# Its author compared it with PyTorch's own attention on one sentence with four candidates and on three sentences with one candidate each. It
# agreed both times.


# %% given="published"
def published_step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """One step for n candidates of each sentence; returns (B, n, d_v).

    q: (B, n, d), the candidates. k: (B, Tk, d) and v: (B, Tk, d_v), the memory of each sentence.
    """
    B, n, d = q.shape
    rows = q.reshape(B * n, 1, d)  # all candidates of the first sentence, then the second's, ...
    k, v = k.repeat(n, 1, 1), v.repeat(n, 1, 1)  # (B * n, Tk, d): a memory for each candidate
    weights = torch.softmax(rows @ k.transpose(1, 2) / math.sqrt(d), dim=-1)  # (B * n, 1, Tk)
    return (weights @ v).reshape(B, n, v.shape[-1])


def library_step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The same from PyTorch: the n candidates of a sentence are n queries to its memory."""
    return nn.functional.scaled_dot_product_attention(q, k, v)


# %%
for B, n in ((1, 4), (3, 1)):
    q = device.randn(B, n, 6, seed=10)
    k, v = device.randn(B, 5, 6, seed=11), device.randn(B, 5, 2, seed=12)
    same = torch.allclose(published_step(q, k, v), library_step(q, k, v), atol=1e-5)
    print(f"{B} x {n} candidates, agrees with the library: {same}")

# %% [markdown]
# Return queries, keys and values (small ones are best) on which the result is wrong.
#
# ### Exercise 6.8: a counterexample


# %% exercise="counterexample"
def counterexample() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return q: (B, n, d), k: (B, Tk, d) and v: (B, Tk, d_v) for which published_step is wrong."""
    # TODO: return the three tensors
    ### BEGIN SOLUTION
    q = torch.ones(2, 2, 1)
    k = torch.zeros(2, 1, 1)  # a memory of one token each: whoever reads it gets its value
    v = torch.tensor([[[1.0]], [[2.0]]])
    return q, k, v
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# The author tried $B = 1$ and $n = 1$. Write down which rows `k.repeat(2, 1, 1)` has if `k` holds the memories A and B.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# The candidates stand in the order A, A, B, B, and `repeat` puts the memories in the order A, B, A, B. Two sentences with two candidates
# each are enough, if their memories differ.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# With a memory of a single token the weight is 1 and the context is the value: `q` is `(B, n, 1)`, `k` is `(B, 1, 1)` and `v` is
# `(B, 1, 1)`. Which $B$ and $n$, and which values?
#
# </details>

# %% test="counterexample" points=1
check.counterexample(
    "counterexample",
    counterexample,
    wrong=published_step,
    right=library_step,
    axes=("B n d", "B Tk d", "B Tk d_v"),
)
### BEGIN HIDDEN TESTS
_q, _k, _v = counterexample()
_right = torch.softmax(torch.einsum("bnd,bjd->bnj", _q, _k) / _q.shape[-1] ** 0.5, dim=-1) @ _v
assert torch.isfinite(_right).all()
assert (_right - published_step(_q, _k, _v)).abs().max() > 1e-4 * _right.abs().max()  # whatever the unit
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 6.9: the repair


# %% exercise="repaired_step"
def repaired_step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """What published_step should give: (B, n, d_v), from the same inputs."""
    # TODO: the repair
    ### BEGIN SOLUTION
    B, n, d = q.shape
    rows = q.reshape(B * n, 1, d)
    k, v = k.repeat_interleave(n, dim=0), v.repeat_interleave(n, dim=0)  # A, A, B, B
    weights = torch.softmax(rows @ k.transpose(1, 2) / math.sqrt(d), dim=-1)
    return (weights @ v).reshape(B, n, v.shape[-1])
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# One line has to change. The memory of the first sentence should come $n$ times before that of the second.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `x.repeat_interleave(n, dim=0)` turns A, B into A, A, B, B. Or do not copy at all: `q @ k.transpose(1, 2)` lets all $n$ candidates of a
# sentence meet its memory.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# ```
# B, n, d = q.shape
# rows = q.reshape(B * n, 1, d)
# k, v = ..., ...               # (B * n, Tk, d), in the order of rows
# weights = ...                 # as it was
# return ...                    # as it was
# ```
#
# </details>

# %% test="repaired_step" points=1
check.exercise("repaired_step", repaired_step)
### BEGIN HIDDEN TESTS
for _B, _n, _T in ((2, 3, 5), (4, 2, 3), (1, 5, 4), (5, 1, 2)):
    _q, _k, _v = torch.randn(_B, _n, 6), torch.randn(_B, _T, 6), torch.randn(_B, _T, 7)
    _right = torch.softmax(torch.einsum("bnd,bjd->bnj", _q, _k) / 6**0.5, dim=-1) @ _v
    _got = repaired_step(_q, _k, _v)
    torch.testing.assert_close(_got, _right, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(repaired_step(_q[-1:], _k[-1:], _v[-1:]), _got[-1:], rtol=1e-4, atol=1e-5)
assert all(g is not None for g in check.gradients(repaired_step, _q, _k, _v))
assert check.unchanged(repaired_step, _q, _k, _v)
### END HIDDEN TESTS

# %% [markdown]
# ## Questions
#
# Answer in your head first, then open.
#
# <details><summary><b>1.</b> A batch of 4 sentences has 30 source tokens and 20 target tokens each, and the layer has 8 heads. Which shape have the weights, and which has the memory mask before it meets the scores?</summary>
#
# The weights are **(4, 8, 20, 30)**: rows are the target. The mask is (4, 30) and becomes **(4, 1, 1, 30)**.
#
# * *(4, 8, 30, 20):* that is the map turned. Softmax would then run over the words that ask.
# * *A mask of (4, 1, 20, 1):* this one would silence words of the target. Where both sentences are equally long, it would run.
#
# </details>
# <details><summary><b>2.</b> The decoder of a translator has self-attention (lesson 05, section 2: each word reads those before it) and cross-attention, and both keep their keys and values in a cache. Which of the two caches grows while it writes?</summary>
#
# The one of **self-attention**, by one token with each word, because the sentence it reads is the one that grows. The cache of
# cross-attention is complete before the first word.
#
# * *Both:* the source sentence does not get longer.
# * *That of cross-attention:* more *queries* come, one for each step, but nobody asks for them again.
#
# </details>
# <details><summary><b>3.</b> A colleague shows you a map with a dark diagonal and says: the model has learned to align. What do you ask for?</summary>
#
# For **gold links and the error of the diagonal on the same sentences**. Where both languages have nearly the same order, the diagonal
# itself is nearly right, as it was for our first pair.
#
# * *The entropy of the rows:* low entropy says that the model is sure, not that it looks at the right word.
# * *The quality of the translations:* the five writers with a mixed memory in section 6 had more than 99 words in 100 right, and between a
#   third and two thirds of their links wrong.
# * *A second map:* it would be another anecdote.
#
# </details>
# ## Recap
#
# Which exercises are right and which are open shows here; run the cell whenever you like. To run everything above a cell: Run, Run All
# Above Selected Cell (in Colab: Runtime, Run before).

# %%
check.progress()

# %% [markdown]
# You built attention from one sentence to another, a cache and a step that reads it, the explanation of a wrong map, three statistics and a
# hard alignment; and you measured that the same words can be written with quite different maps.
#
# **Where it lives in real models.** `CrossAttention` sits in every decoder block of the original transformer, of T5 and of the speech
# recogniser Whisper, between self-attention and the feed-forward part. Image generators such as Stable Diffusion use it to read the text they
# illustrate: places in the image ask, words answer. In Perceiver, 512 learned queries read the 50,176 pixels of an image.
#
# **Next.** Lesson 07 lets a learned query read the words of a sentence, and then the sentences of a document. Lesson 08 builds a translator,
# with an encoder, a decoder and beam search.
#
# **References**
#
# * Bahdanau, Cho, Bengio (2015), [Neural machine translation by jointly learning to align and translate](https://arxiv.org/abs/1409.0473): attention from one sentence to another, and the first maps.
# * Vaswani et al. (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762): cross-attention with heads, called encoder-decoder attention in section 3.2.3.
# * Koehn, Knowles (2017), [Six challenges for neural machine translation](https://arxiv.org/abs/1706.03872): attention against word alignments, with a case that is off by one.
# * Jain, Wallace (2019), [Attention is not explanation](https://arxiv.org/abs/1902.10186), and Wiegreffe, Pinter (2019), [Attention is not not explanation](https://arxiv.org/abs/1908.04626): what a map may be taken for.
# * Carion et al. (2020), [End-to-end object detection with transformers](https://arxiv.org/abs/2005.12872): DETR, with places in the keys alone.
# * Jaegle et al. (2021), [Perceiver](https://arxiv.org/abs/2103.03206), and Rombach et al. (2022), [Latent diffusion models](https://arxiv.org/abs/2112.10752): cross-attention beyond translation.
