# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 · Hierarchical attention
#
# **At the end of this lesson you own a model that reads a whole review, rates it, and shows on which sentences and
# words it leaned. You also know how far to believe it when it shows you.** This is a review that your model has read:
#
# ![A review drawn sentence by sentence, each with its weight and each word shaded by its share of the attention; the sentences and words that decide the label are outlined](attachment:cover.png)
#
# | | |
# |---|---|
# | time | 130 minutes, with a place to stop after section 5 |
# | difficulty | medium; the parts are short, but there are two of everything |
# | builds on | lesson 01 (additive scores), lesson 02 (softmax), lesson 05 (masks) |
# | you will write | 7 small pieces of code, a prediction, a counterexample and a repair |
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

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention_course import check, device, plots
from attention_course.bar import bar
from attention_course.data import documents

device.seed(7)
where = device.pick()
grading = bool(os.environ.get("ATTENTION_GRADING"))  # then nothing is trained in full
check.start("07")

# %% [markdown]
# ## 1 · The same words, the opposite opinion
#
# Two reviews of one restaurant:
#
# > The soup was wonderful. My aunt thought the bread was awful.
#
# > The soup was awful. My aunt thought the bread was wonderful.
#
# The first writer was happy and the second was not. Yet count the words: the two reviews have exactly the same ones. A model
# that sees only the counts, a **bag of words**, must give both the same rating. What tells them apart is which words stand
# *together in one sentence*, and whose opinion that sentence states.
#
# So the words have to be read in order, and it pays to read a document as it is built: **words make sentences, and sentences make
# documents**. In this lesson you build a model with those two levels, and on each level it decides by attention what counts.
#
# The course brings 2000 reviews to train on, 400 to decide by while training (*validation*) and 400 to judge by at the end
# (*test*). They were put together from word lists, so that it is known what counts. Each has one of five ratings: terrible, poor,
# mixed, good or excellent. What decides it is what the *writer* says of *this* visit, once or twice, in a strong word ("awful":
# terrible) or a weak one ("weak": poor). A negated word is always a weak opinion of the other kind: "hardly good" is poor, and
# "not wonderful" too. If the writer praises one thing and blames another, the review is mixed. Everything else is there to
# mislead: what others thought, how it was elsewhere, what had been feared.

# %% given="corpus"
size = 100 if grading else None
train, validation, test = (documents.reviews(s, size) for s in ("train", "validation", "test"))
words = documents.vocabulary(train)  # of the training reviews alone; 0 is <pad>, 1 is <unk>
UNKNOWN = words.index("<unk>")


def numbered(reviews: list, words: list) -> tuple[torch.Tensor, torch.Tensor]:
    """Reviews as numbers: ids (B, S, W) with 0 where there is no word, and labels (B,)."""
    index = {word: i for i, word in enumerate(words)}
    S = max(len(review.sentences) for review in reviews)
    W = max(len(sentence) for review in reviews for sentence in review.sentences)
    ids = torch.zeros(len(reviews), S, W, dtype=torch.long)
    for b, review in enumerate(reviews):
        for s, sentence in enumerate(review.sentences):
            ids[b, s, : len(sentence)] = torch.tensor([index.get(w, UNKNOWN) for w in sentence])
    return ids.to(where), torch.tensor([review.label for review in reviews], device=where)


ids, labels = numbered(train, words)
validation_ids, validation_labels = numbered(validation, words)
test_ids, test_labels = numbered(test, words)

# %%
for review in train[:2]:
    print(f"rated {documents.RATINGS[review.label]!r}:")
    for s, sentence in enumerate(review.sentences):
        deciding = [sentence[w] for w in range(len(sentence)) if (s, w) in review.evidence]
        print("  ", " ".join(sentence), f"   <- {' '.join(deciding)}" if deciding else "")

# %% [markdown]
# The arrows mark the **gold evidence**: the words, and with them the sentences, that decide the rating. The model never sees
# it. It is kept for the end, when we ask whether the model looked where it should have.
#
# ## 2 · Two masks
#
# A batch is one tensor, but documents have different numbers of sentences and sentences different numbers of words. So there
# are **two paddings**: short sentences are filled up with zeros, and short documents with sentences that are zeros from end to
# end. With $B$ documents, at most $S$ sentences and at most $W$ words, the batch is `ids` of shape `(B, S, W)`. A small example
# has two documents: "The cat sat on the mat. It was wonderful." and "Hardly good."

# %% given="small"
cat = (("The", "cat", "sat", "on", "the", "mat"), ("It", "was", "wonderful"))
small = [documents.Document(cat, label=4), documents.Document((("Hardly", "good"),), label=1)]
small_words = documents.vocabulary(small)
small_ids, _ = numbered(small, small_words)  # (2, 2, 6)

# %%
for b, document in enumerate(small_ids.tolist()):
    print(f"document {b}:", document)

# %% [markdown]
# The second document's second row is all padding: it exists only because the first document is longer.
#
# Attention needs to know what is real, on both levels. As always in this course, a mask is boolean and **True means keep**:
#
# * the **word mask** `(B, S, W)` is True where there is a word;
# * the **sentence mask** `(B, S)` is True where there is a sentence, that is, at least one word.
#
# By hand, for the second document: the word mask is `[[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]`, the sentence mask `[1, 0]`.
#
# ### Exercise 7.1: the masks


# %% exercise="masks"
def masks(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where are words, and where are sentences?

    Args:
        ids: (B, S, W), the number of each word; 0 is padding, every other number is a word.

    Returns:
        word_mask: (B, S, W), True where there is a word, and
        sentence_mask: (B, S), True where there is a sentence with at least one word.

    Example:
        ids [[[5, 3], [0, 0]]] give [[[True, True], [False, False]]] and [[True, False]].
    """
    # TODO: the two masks
    ### BEGIN SOLUTION
    word_mask = ids != 0
    return word_mask, word_mask.any(dim=-1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# A comparison of a tensor with a number gives a boolean tensor of the same shape. That is the first mask.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# The second mask asks a question along the last axis of the first: is any of these True? Tensors have a method of that name.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# One line for the word mask, from `ids`; one for the sentence mask, from the word mask; and a `return` with both.
#
# </details>

# %% test="masks" points=1
check.exercise("masks", masks)
### BEGIN HIDDEN TESTS
_ids = torch.randint(0, 3, (3, 4, 5))  # 0, 1 and 2: padding, the unknown word, a word
_ids[1, 2] = 0
_word, _sentence = masks(_ids)
assert _word.dtype == torch.bool
assert _sentence.dtype == torch.bool
assert _word.tolist() == [[[n != 0 for n in row] for row in document] for document in _ids.tolist()]
assert _sentence.tolist() == [[any(row) for row in document] for document in _ids.tolist()]
assert check.unchanged(masks, _ids)
### END HIDDEN TESTS

# %%
word_mask, sentence_mask = masks(small_ids)
print("sentences:", sentence_mask.tolist())

# %%
# @title The word masks of the two documents
plots.small_multiples(
    list(word_mask.float()),
    titles=["document 0", "document 1"],
    rows=["sentence 0", "sentence 1"],
    columns=[f"{place}" for place in range(6)],
    ylabel="",
    xlabel="place in the sentence",
    title="Dark is a word: sentences end early, and a whole sentence is missing",
    alt="Word masks of two documents. In document 0 the first sentence has six words and the second three. In document 1 "
    "the first sentence has two words and the second has none: its row is all padding.",
)

# %% [markdown]
# The empty row on the right is a sentence that does not exist. It will go through everything you build. Keep an eye on it.
#
# ## 3 · From many vectors to one
#
# A sentence of $T$ words has become $T$ vectors $h_1, \dots, h_T$. The level above wants **one** vector for the sentence. Here a word or
# two decide, so take a weighted average, as in lesson 01.
#
# But who asks? In lesson 01 each token asked with a query of its own. Here the question is the same for every sentence of every
# document: *is there anything here that matters for the rating?* In the additive score of lesson 01,
# $w^\top \tanh(W_q^\top q + W_k^\top k)$, the part $W_q^\top q$ is then the same everywhere: it is a bias, here $c$. What is left to
# learn is a projection $P$ of the word's vector, and the vector that reads off the score. That vector is the **query** now, a
# parameter $u$ like any weight, and the score is its dot product with the key $\tanh(P h_t + c)$:
#
# $$e_t = u \cdot \tanh(P h_t + c), \qquad \alpha = \mathrm{softmax}(e), \qquad \text{pooled} = \sum_{t=1}^{T} \alpha_t\, h_t .$$
#
# By hand, with two numbers per word, one hidden number (`d_attention` is 1), $P = (0, 10)$, $c = 0$ and $u = \ln 3 \approx 1.0986$:
#
# | | $h_t$ | $\tanh(P h_t)$ | score $e_t$ | $e^{\text{score}}$ | weight $\alpha_t$ |
# |---|---|---|---|---|---|
# | first word | $(4, 0)$ | $\tanh 0 = 0$ | 0 | 1 | 0.25 |
# | second word | $(0, 4)$ | $\tanh 40 = 1$ | 1.0986 | 3 | 0.75 |
# | padding | $(9, 9)$ | | | | 0 |
#
# The pooled vector is $0.25 \cdot (4, 0) + 0.75 \cdot (0, 4) = (1, 3)$. The padding has weight 0, whatever stands there.
#
# **And if all is padding?** Then there is nothing to share the 1 that softmax hands out. This course's rule: such a row gets
# weights 0, and the pooled vector is 0. You wrote a function that keeps it, `masked_softmax` in exercise 5.4; here it is again,
# to be used.


# %% given="masked_softmax"
def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis, 0 at padding; a row without a real place is all 0."""
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
    return weights.masked_fill(~mask, 0.0)


# %% [markdown]
# ### Exercise 7.2: attention pooling


# %% exercise="AttentionPool"
class AttentionPool(nn.Module):
    """Average a row of vectors with weights that a learned query gives them.

    Args:
        d: entries of each vector. d_attention: entries of the hidden layer and of the query.

    Its parameters are ``projection``, an nn.Linear from d to d_attention with a bias, and
    ``query``, an nn.Parameter of shape (d_attention,) that starts from random numbers.
    """

    def __init__(self, d: int, d_attention: int):
        super().__init__()
        # TODO: make self.projection and self.query
        ### BEGIN SOLUTION
        self.projection = nn.Linear(d, d_attention)
        self.query = nn.Parameter(torch.randn(d_attention) / math.sqrt(d_attention))
        ### END SOLUTION

    def forward(self, h: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Pool each row.

        Args:
            h: (N, T, d), N rows of T vectors; what stands at padding is finite and means nothing.
            mask: (N, T), True where a vector is real. A row may have none.

        Returns:
            pooled: (N, d), and weights: (N, T), which are 0 at padding and sum to 1 over the rest,
            however large or small the scores are. A row without any real vector has weights 0
            and pooled 0.
        """
        # TODO: the weighted average of each row, and its weights
        ### BEGIN SOLUTION
        scores = torch.tanh(self.projection(h)) @ self.query  # (N, T)
        weights = masked_softmax(scores, mask)
        return (weights[:, :, None] * h).sum(dim=1), weights
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# In `__init__` two lines, in `forward` three. `nn.Parameter(tensor)` makes a tensor that is learned.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `self.projection(h)` is `(N, T, d_attention)`; after `tanh`, a product with the query `(d_attention,)` leaves `(N, T)`. For the
# average, give the weights a third axis, so that they stretch over the `d` entries.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `scores = ...` by the formula, `weights = masked_softmax(...)`, then a sum over $T$ of weights times vectors. The query can start
# from `torch.randn`, divided by the root of `d_attention` so that the scores are not large at first.
#
# </details>

# %% test="AttentionPool" points=3
check.exercise("AttentionPool", AttentionPool)
### BEGIN HIDDEN TESTS
_state = {"projection.weight": torch.randn(6, 3), "projection.bias": torch.randn(6), "query": torch.randn(6)}
_pool = AttentionPool(3, 6)
_pool.load_state_dict(_state)
_h = torch.randn(4, 5, 3)
_mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0]]).bool()
_pooled, _weights = _pool(_h, _mask)
for _n in range(4):
    _real = _h[_n][_mask[_n]]
    _s = torch.tanh(_real @ _state["projection.weight"].T + _state["projection.bias"]) @ _state["query"]
    _w = torch.exp(_s) / torch.exp(_s).sum()
    torch.testing.assert_close(_weights[_n][_mask[_n]], _w, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(_pooled[_n], _w @ _real, rtol=1e-4, atol=1e-5)
assert (_weights[~_mask] == 0).all()
_noise = torch.where(_mask[..., None], _h, 1e6 * torch.randn(4, 5, 3))  # padding means nothing, however large it is
torch.testing.assert_close(_pool(_noise, _mask)[0], _pooled, rtol=1e-4, atol=1e-4)
_shuffle = torch.randperm(5)  # the order of the vectors does not matter
torch.testing.assert_close(_pool(_h[:, _shuffle], _mask[:, _shuffle])[0], _pooled, rtol=1e-4, atol=1e-5)
_no_rows = torch.zeros(4, 5, dtype=torch.bool)
assert (_pool(_h, _no_rows)[0] == 0).all()
assert all(g is not None and torch.isfinite(g).all() for g in check.gradients(_pool, _h, _mask))
assert check.unchanged(_pool, _h, _mask)
assert check.parameters(_pool) == {"query": (6,), "projection.weight": (6, 3), "projection.bias": (6,)}
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · All sentences at once
#
# Before words can be pooled, each should know its neighbours: in "hardly good", the word "good" means something else. A **GRU** (gated
# recurrent unit) reads a row $x_1, \dots, x_T$ from left to right and carries a state $h$ along. At each word it makes a proposal $n_t$ from
# the word and the old state, and a gate $z_t$, numbers between 0 and 1, decides entry by entry how much of the old state stays:
#
# $$h_t = z_t \odot h_{t-1} + (1 - z_t) \odot n_t .$$
#
# So $h_t$ depends on word $t$ and on all words before it. A *bidirectional* GRU has a second reader that comes from the right, and puts both
# states side by side: now each vector depends on the whole row. PyTorch's `nn.GRU` takes `(N, T, d)`, that is, $N$ rows of $T$ vectors.
#
# Our words come as `(B, S, W)`, $B$ documents with $S$ sentences each. A sentence is encoded without a look at any other, so all
# $B \cdot S$ sentences can be **rows of one batch**: one call in place of a loop. That takes a reshape on the way in, and one on the
# way out.
#
# By hand, for $B = 2$ documents of $S = 3$ sentences, the rows come in this order:
#
# | row | 0 | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|---|
# | document, sentence | 0, 0 | 0, 1 | 0, 2 | 1, 0 | 1, 1 | 1, 2 |
#
# The sentences of a document stay together: sentence $s$ of document $b$ is row $b \cdot S + s$. The same function should serve
# for the words' numbers `(B, S, W)` and for vectors `(B, S, W, d)`.
#
# ### Exercise 7.3: documents to rows


# %% exercise="flatten_documents"
def flatten_documents(x: torch.Tensor) -> torch.Tensor:
    """Lay the sentences of all documents below each other, one row each.

    Args:
        x: (B, S, ...), something for each sentence of each document: words (B, S, W), say, or
            vectors (B, S, W, d).

    Returns:
        (B·S, ...), where sentence s of document b is row b·S + s. No row is left out.

    Example:
        [[[1, 2], [3, 0]], [[4, 5], [0, 0]]], of shape (2, 2, 2), gives
        [[1, 2], [3, 0], [4, 5], [0, 0]], of shape (4, 2).
    """
    # TODO: the rows, for any number of further axes
    ### BEGIN SOLUTION
    return x.flatten(0, 1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# In memory the numbers stand in the right order already. Nothing has to move; only the shape changes.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `x.shape[2:]` are the axes that stay. The first two together have length `x.shape[0] * x.shape[1]`. `reshape` takes a whole
# shape, `flatten(first, last)` the two ends of the axes that become one.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# One `return` with one call: which axis is the first that is joined, and which the last?
#
# </details>

# %% test="flatten_documents" points=1
check.exercise("flatten_documents", flatten_documents)
### BEGIN HIDDEN TESTS
for _shape in ((2, 3, 4), (3, 2, 5, 6), (1, 4, 2), (4, 1, 3)):
    _x = torch.randn(_shape)
    _rows = flatten_documents(_x)
    assert tuple(_rows.shape) == (_shape[0] * _shape[1], *_shape[2:])
    for _b in range(_shape[0]):
        for _s in range(_shape[1]):
            assert torch.equal(_rows[_b * _shape[1] + _s], _x[_b, _s])
assert torch.equal(flatten_documents(torch.arange(24).reshape(2, 3, 4)), torch.arange(24).reshape(6, 4))
assert all(g is not None for g in check.gradients(flatten_documents, torch.randn(2, 3, 4)))
### END HIDDEN TESTS

# %% [markdown]
# And back again: from `(B·S, ...)` alone nobody can tell how many documents there were, so that number is passed along. This
# half is given, and so is the encoder. It must not read padding: a GRU that comes from the right would meet the padding *first*,
# and carry whatever it made of it into the real words. PyTorch's `pack_padded_sequence` takes a length for each row and reads no
# further. It refuses rows of length 0, so an empty sentence is read as if it had one word. That does no harm: your pooling gives
# it weight 0.


# %% given="encode"
def unflatten(rows: torch.Tensor, B: int) -> torch.Tensor:
    """Put rows back into their B documents: (B·S, ...) to (B, S, ...)."""
    return rows.unflatten(0, (B, -1))


def encode(gru: nn.GRU, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Run a GRU over each row of x: (N, T, d), not over its padding; returns (N, T, 2·d_hidden)."""
    lengths = mask.sum(dim=-1).clamp(min=1).cpu()  # packing wants at least one
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=x.shape[1])
    return states


# %% [markdown]
# ## 5 · Two levels
#
# On each level the same two steps: a GRU lets the parts know their neighbours, attention pooling makes one vector of them.
#
# | step | level | from | to |
# |---|---|---|---|
# | `embedding` | words | `(B, S, W)` numbers | vectors of `d_word` |
# | `word_gru` | words | `(B·S, W, d_word)` | `(B·S, W, 2·d_hidden)` |
# | `word_pool` | words to sentences | `(B·S, W, 2·d_hidden)` | `(B·S, 2·d_hidden)`, weights `(B·S, W)` |
# | `sentence_gru` | sentences | `(B, S, 2·d_hidden)` | `(B, S, 2·d_hidden)` |
# | `sentence_pool` | sentences to document | `(B, S, 2·d_hidden)` | `(B, 2·d_hidden)`, weights `(B, S)` |
# | `classifier` | document | `(B, 2·d_hidden)` | `(B, classes)` scores for the ratings |
#
# Before the first line documents become rows, and so does the word mask; between the third and the fourth, rows become documents
# again. Each GRU and each pool gets the mask of its own level. The parts are made for you; you connect them.
#
# ### Exercise 7.4: the model


# %% exercise="HierarchicalAttention"
class HierarchicalAttention(nn.Module):
    """Classify documents by attention over words, then over sentences (Yang et al., 2016).

    Args:
        vocabulary: how many words there are, padding and unknown included.
        classes: how many labels.
        d_word: entries of a word's vector. d_hidden: entries of a GRU's state in one direction.
        d_attention: entries of the queries.
    """

    def __init__(
        self,
        vocabulary: int,
        classes: int,
        d_word: int = 24,
        d_hidden: int = 16,
        d_attention: int = 24,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_word, padding_idx=0)
        self.word_gru = nn.GRU(d_word, d_hidden, batch_first=True, bidirectional=True)
        self.word_pool = AttentionPool(2 * d_hidden, d_attention)
        self.sentence_gru = nn.GRU(2 * d_hidden, d_hidden, batch_first=True, bidirectional=True)
        self.sentence_pool = AttentionPool(2 * d_hidden, d_attention)
        self.classifier = nn.Linear(2 * d_hidden, classes)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read documents.

        Args:
            ids: (B, S, W), the number of each word, 0 for padding. Padding stands behind the words
                and behind the sentences. A document has at least one word.

        Returns:
            logits: (B, classes), a score for each label,
            word_weights: (B, S, W), which sum to 1 in each real sentence,
            sentence_weights: (B, S), which sum to 1 in each document.
        """
        # TODO: both levels, and the classifier
        ### BEGIN SOLUTION
        word_mask, sentence_mask = masks(ids)
        row_mask = flatten_documents(word_mask)  # (B·S, W)
        states = encode(self.word_gru, self.embedding(flatten_documents(ids)), row_mask)
        rows, row_weights = self.word_pool(states, row_mask)  # (B·S, 2·d_hidden), (B·S, W)
        sentences, word_weights = unflatten(rows, len(ids)), unflatten(row_weights, len(ids))
        states = encode(self.sentence_gru, sentences, sentence_mask)
        document, sentence_weights = self.sentence_pool(states, sentence_mask)
        return self.classifier(document), word_weights, sentence_weights
        ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Eight or nine lines: the two masks, the way to rows, two lines for words, the way back, two lines for sentences, and the result.
# Write the shape behind each line.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Words: flatten `ids` and the word mask, so that the first axis is `B·S`; `encode(gru, x, mask)` and the pool both take rows.
# Two things come back from the word pool, and both have to be unflattened with `B = len(ids)`. Sentences: they are `(B, S,
# ...)` by now, which *are* rows, of sentences; no flattening any more, and the other mask.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# Masks. Rows of `ids` and of the word mask. `states = encode(...)` and `rows, row_weights = self.word_pool(...)`. Two times
# `unflatten`. The same pair of lines for sentences, without rows. `return` the three things.
#
# </details>

# %% test="HierarchicalAttention" points=3
check.exercise("HierarchicalAttention", HierarchicalAttention)
### BEGIN HIDDEN TESTS
_sizes = {"vocabulary": 11, "classes": 3, "d_word": 4, "d_hidden": 5, "d_attention": 6}
_grus = {
    "word": nn.GRU(4, 5, batch_first=True, bidirectional=True),
    "sentence": nn.GRU(10, 5, batch_first=True, bidirectional=True),
}
_state = {
    "embedding.weight": torch.randn(11, 4),
    "classifier.weight": torch.randn(3, 10),
    "classifier.bias": torch.randn(3),
}
for _level, _gru in _grus.items():
    _state |= {f"{_level}_gru.{name}": p.detach().clone() for name, p in _gru.named_parameters()}
    _state |= {f"{_level}_pool.projection.weight": torch.randn(6, 10), f"{_level}_pool.projection.bias": torch.randn(6)}
    _state |= {f"{_level}_pool.query": torch.randn(6)}
_model = HierarchicalAttention(**_sizes)
_model.load_state_dict(_state)


def _pooled(level, x):  # one row without padding: (T, d) to (10,) and its weights
    h = _grus[level](x[None])[0][0].detach()
    weight, bias = _state[f"{level}_pool.projection.weight"], _state[f"{level}_pool.projection.bias"]
    w = torch.softmax(torch.tanh(h @ weight.T + bias) @ _state[f"{level}_pool.query"], dim=0)
    return w @ h, w


_documents = [[[2, 3, 4], [5, 1], [6, 7, 8, 9]], [[10, 2]], [[3, 3, 9], [4]]]
_ids = torch.zeros(3, 4, 5, dtype=torch.long)  # a sentence and a word more than any document needs
for _b, _document in enumerate(_documents):
    for _s, _words in enumerate(_document):
        _ids[_b, _s, : len(_words)] = torch.tensor(_words)
_logits, _words_seen, _sentences_seen = _model(_ids)
for _b, _document in enumerate(_documents):
    _vectors = []
    for _s, _words in enumerate(_document):
        _vector, _w = _pooled("word", _state["embedding.weight"][torch.tensor(_words)])
        _vectors.append(_vector)
        torch.testing.assert_close(_words_seen[_b, _s, : len(_words)], _w, rtol=1e-3, atol=1e-4)
    _vector, _w = _pooled("sentence", torch.stack(_vectors))
    torch.testing.assert_close(_sentences_seen[_b, : len(_document)], _w, rtol=1e-3, atol=1e-4)
    _right = _state["classifier.weight"] @ _vector + _state["classifier.bias"]
    torch.testing.assert_close(_logits[_b], _right, rtol=1e-3, atol=1e-4)
assert (_words_seen[_ids == 0] == 0).all()
assert (_sentences_seen[(_ids == 0).all(-1)] == 0).all()
_alone = _model(_ids[1:2, :1, :2])[0]  # padding, and the other documents, change nothing
torch.testing.assert_close(_alone, _logits[1:2], rtol=1e-3, atol=1e-4)
_order = torch.tensor([2, 0, 1])
torch.testing.assert_close(_model(_ids[_order])[0], _logits[_order], rtol=1e-3, atol=1e-4)
### END HIDDEN TESTS

# %% [markdown]
# What depends on what in this model? Attention makes that less obvious than it looks. So before you train anything, predict an
# experiment: one word of a batch is replaced by another word. Which of the model's results can change at all, and which stay?
#
# ### Exercise 7.5: a prediction


# %% exercise="what_changes"
def what_changes(
    ids: torch.Tensor,
    b: int,
    s: int,
    w: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Predict what changes when the word at ids[b, s, w] gives way to another word.

    By reasoning alone: no model is built or run here. The one in question is a trained
    HierarchicalAttention; the cell below the check measures what one really does.

    Args:
        ids: (B, S, W), as for the model. At (b, s, w) stands a word, and another word replaces it.

    Returns:
        Three boolean tensors, True where a number differs after the change:
        documents: (B,), the logits of each document,
        words: (B, S, W), the word weights,
        sentences: (B, S), the sentence weights.
    """
    # TODO: how far does one word reach?
    ### BEGIN SOLUTION
    word_mask, sentence_mask = masks(ids)
    documents = torch.arange(len(ids), device=ids.device) == b
    sentences = documents[:, None] & sentence_mask
    words = torch.zeros_like(word_mask)
    words[b, s] = word_mask[b, s] & (word_mask[b, s].sum() > 1)  # a weight without company stays 1
    return documents, words, sentences & (sentences.sum(dim=-1, keepdim=True) > 1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Follow the word upward, step by step, in the table of this section. In which rows is it read? Whose weights are computed from that?
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# The word GRU carries the change to the other words of its sentence, in both directions, and no further. The sentence's vector changes;
# from there the sentence GRU carries it to the other sentences of the document. Weights at padding are 0, before and after. And a
# softmax over a single place is 1, whatever the score.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# Start from `masks(ids)`. One comparison with `b` gives the documents; sentences are those of document `b` that exist; words
# are those of the one sentence. Where only one place is left in a row of weights, set it back to `False`.
#
# </details>

# %% test="what_changes" points=2
if check.source_uses(what_changes, {"HierarchicalAttention", "changed", "encode"}):
    raise check.CheckFailed(
        "what_changes (exercise 7.5)",
        "it runs a model, and should predict.",
        cause="Think it through from `ids` alone; the cell below runs the model for you.",
    )
check.exercise("what_changes", what_changes)
### BEGIN HIDDEN TESTS
for _ in range(6):
    _lengths = torch.randint(0, 5, (3, 4)).sort(dim=1, descending=True).values
    _lengths[:, 0] = _lengths[:, 0].clamp(min=1)
    _ids = torch.randint(1, 9, (3, 4, 5)) * (torch.arange(5) < _lengths[..., None])
    for _b, _s, _w in _ids.nonzero().tolist():
        _documents, _words, _sentences = what_changes(_ids, _b, _s, _w)
        assert _documents.tolist() == [i == _b for i in range(3)]
        _real = [n > 0 for n in _lengths[_b].tolist()]
        assert _sentences.tolist() == [[i == _b and r and sum(_real) > 1 for r in _real] for i in range(3)]
        _n = int(_lengths[_b, _s])
        assert _words[_b, _s].tolist() == [_n > 1 and i < _n for i in range(5)]
        assert int(_words.sum()) == (_n if _n > 1 else 0)
assert check.unchanged(what_changes, _ids, _b, _s, _w)
### END HIDDEN TESTS


# %%
def changed(model: nn.Module, ids: torch.Tensor, b: int, s: int, w: int) -> list[torch.Tensor]:
    """Measure it: True where the model's results differ after word (b, s, w) was replaced."""
    other = ids.clone()
    other[b, s, w] = UNKNOWN
    with torch.no_grad():
        both = zip(model(ids), model(other), strict=True)
    logits, words, sentences = ((x - y).abs() > 1e-5 for x, y in both)
    return [logits.any(dim=-1), words, sentences]


device.seed(5)
untrained = HierarchicalAttention(len(words), len(documents.RATINGS)).to(where)
tried = [(0, 0, 0), (1, 1, 2), (2, 2, 1)]  # documents, sentences and words
predicted = [what_changes(ids[:3], *place) for place in tried]
measured = [changed(untrained, ids[:3], *place) for place in tried]
pairs = [pair for both in zip(predicted, measured, strict=True) for pair in zip(*both, strict=True)]
same = [torch.equal(*pair) for pair in pairs]
print(f"your predictions that came true: {sum(same)} of {len(same)}")

# %% [markdown]
# One word reaches all sentence weights of its document, but not one word weight outside its own sentence. Keep that in mind when a map is
# read: *a weight belongs to a vector that has read its neighbours*, not to a word.
#
# **A good place to stop.** You have the masks, the pool, the rows and the whole model, and you know what depends on what in it. What follows
# is training (section 6), looking (7) and doubting (8). To come back, run everything above this cell: Run, Run All Above Selected Cell
# (in Colab: Runtime, Run before).

# %% [markdown]
# ## 6 · Training, and a rival
#
# A model deserves an honest rival. Ours is the **bag of words**: logistic regression on the counts. Each word has one number
# for each rating, and a document's score is the sum over its words. So that it can be compared, the rival reports weights too:
# equal ones, for the sentences of a document and for the words of a sentence.


# %% given="rival"
class BagOfWords(nn.Module):
    """Logistic regression on the counts of words. Returns what HierarchicalAttention returns."""

    def __init__(self, vocabulary: int, classes: int):
        super().__init__()
        self.scores = nn.Embedding(vocabulary, classes, padding_idx=0)  # what each word adds
        self.bias = nn.Parameter(torch.zeros(classes))
        nn.init.zeros_(self.scores.weight)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        words, sentences = (x.float() for x in masks(ids))
        logits = self.scores(ids).sum(dim=(1, 2)) + self.bias
        word_weights = words / words.sum(dim=-1, keepdim=True).clamp(min=1)
        return logits, word_weights, sentences / sentences.sum(dim=-1, keepdim=True)


# %% given="training"
# @title Batches, a bar, and a small model for the checks
def prepared(model: nn.Module | str) -> nn.Module:
    """A module as it is. A check cannot send one: it sends "example", for a fresh bag of 40 words with fixed numbers."""
    if isinstance(model, nn.Module):
        return model
    example = BagOfWords(40, 5)
    scores = device.randn(40, 5, seed=70).cpu().index_fill(0, torch.tensor([0]), 0.0)  # padding adds nothing
    example.load_state_dict({"scores.weight": scores, "bias": device.randn(5, seed=71)})
    return example.to(where)


def batches(number: int, epoch: int, size: int = 32) -> list[torch.Tensor]:
    """Which documents go together in an epoch: the numbers 0 to number − 1, shuffled and cut into pieces of ``size``."""
    order = torch.randperm(number, generator=torch.Generator().manual_seed(epoch))
    return list(order.to(where).split(size))


def rounds(epochs: int):
    """The numbers 0 to epochs − 1, with a bar where it takes a while."""
    return bar(range(epochs), "training") if epochs > 3 else range(epochs)


_ = torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # the first optimiser of a session takes seconds to make

# %% [markdown]
# What happens to one batch? Its **loss** is the cross-entropy: $-\ln$ of the probability that the model gave to the right
# rating, averaged over the batch. `nn.functional.cross_entropy(logits, labels)` takes the scores as they are and does the
# (log-)softmax itself. A model that knows nothing gives each of five ratings $1/5$, so it starts near $\ln 5 \approx 1.61$.
# Then four steps that never change: forget the old gradients, compute new ones, move, note the loss.
#
# The frame stands below; write what happens in one epoch. `batches(len(ids), epoch)` is a list of tensors: each holds the numbers
# of the documents that go together, 32 at most. (`prepared` puts a small model in where a check asks for one.)
#
# ### Exercise 7.6: train it


# %% exercise="fit"
def fit(
    model: nn.Module,
    ids: torch.Tensor,
    labels: torch.Tensor,
    epochs: int,
    rate: float,
) -> torch.Tensor:
    """Train a model with Adam, in batches.

    Args:
        model: called with ids it returns logits, word weights and sentence weights. It is changed.
        ids: (N, S, W), the documents. labels: (N,), the right class of each.
        epochs: how often all documents are seen. rate: Adam's learning rate.

    Returns:
        (epochs,), for each epoch the mean of the losses of its batches, each as it was before its
        step. A batch counts once, however many documents it has.
    """
    model = prepared(model).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for epoch in rounds(epochs):
        # TODO: one epoch; its mean loss, a number, goes into losses
        ### BEGIN SOLUTION
        found = []
        for rows in batches(len(ids), epoch):
            logits, _, _ = model(ids[rows])
            loss = nn.functional.cross_entropy(logits, labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            found.append(loss.item())
        losses.append(sum(found) / len(found))
        ### END SOLUTION
    return torch.tensor(losses, device=ids.device)


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# `rows` are the numbers of the documents in one batch. `ids[rows]` picks them out, and `labels[rows]` their labels.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `batches(len(ids), epoch)` gives the rows of one batch after the other. The model returns three things; the loss needs the
# first. The optimiser's `zero_grad`, the loss's `backward` and the optimiser's `step` go in this order. `loss.item()` is the
# loss as a number, without its graph.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# A list for the losses of this epoch; a loop over the batches, with the loss, the three calls, and the loss as a number into
# the list; after the loop one line that appends the list's mean to `losses`.
#
# </details>

# %% test="fit" points=2
check.exercise("fit", fit)
### BEGIN HIDDEN TESTS
_key = torch.randint(0, 5, (72,))  # the label is told by one word of six, at a place that varies; 72 = 32 + 32 + 8
_ids = torch.randint(10, 40, (72, 2, 3))
_ids[torch.arange(72), torch.randint(0, 2, (72,)), torch.randint(0, 3, (72,))] = 2 + _key
_losses = fit("example", _ids.to(where), _key.to(where), 3, 0.2).cpu()
_model = prepared("example")
_adam = torch.optim.Adam(_model.parameters(), lr=0.2)
_right = []
for _epoch in range(3):
    _sum = 0.0
    for _rows in batches(72, _epoch):
        _loss = -torch.log_softmax(_model(_ids.to(where)[_rows])[0], -1).gather(1, _key.to(where)[_rows, None]).mean()
        _adam.zero_grad()
        _loss.backward()
        _adam.step()
        _sum += _loss.item()
    _right.append(_sum / 3)
torch.testing.assert_close(_losses, torch.tensor(_right), rtol=5e-3, atol=1e-3)
assert check.unchanged(fit, "example", _ids.to(where), _key.to(where), 1, 0.1)
### END HIDDEN TESTS

# %% [markdown]
# Now train both, on all 2000 reviews.


# %%
def judged(model: nn.Module, ids: torch.Tensor, labels: torch.Tensor) -> tuple[float, float]:
    """The fraction of documents that are rated right, and the mean loss."""
    with torch.no_grad():
        logits = model.eval()(ids)[0]
    right = (logits.argmax(dim=-1) == labels).float().mean()
    return right.item(), nn.functional.cross_entropy(logits, labels).item()


def new_model(seed: int) -> HierarchicalAttention:
    """A fresh model whose random start is told by ``seed``."""
    device.seed(seed)
    return HierarchicalAttention(len(words), len(documents.RATINGS)).to(where)


epochs = 2 if grading else 5
bag = BagOfWords(len(words), len(documents.RATINGS)).to(where)
bag_losses = fit(bag, ids, labels, epochs, rate=0.02)
model = new_model(seed=1)
losses = fit(model, ids, labels, epochs, rate=0.01)

# %%
# @title The loss of both models, epoch by epoch
plots.lines(
    list(range(1, epochs + 1)),
    {"knowing nothing": [math.log(5)] * epochs, "bag of words": bag_losses, "hierarchical attention": losses},
    xlabel="epoch",
    ylabel="mean loss on training reviews",
    title="The bag of words stays far behind",
    alt="Mean loss in each of five epochs. Knowing nothing stays at 1.61. The bag of words stays above 1. Hierarchical "
    "attention starts near 1.5 and falls below 0.1.",
)

# %%
ours, theirs = judged(model, test_ids, test_labels)[0], judged(bag, test_ids, test_labels)[0]
print("hierarchical attention is right on at least 95 % of the test reviews:", ours >= 0.95)
print("it is ahead of the bag of words by at least 15 points:", ours - theirs >= 0.15)

# %% [markdown]
# The rival is better than guessing (one in five), since the writer's words are among those it counts. But it counts each opinion
# whoever holds it, and in every review the opinions that do not matter outnumber the writer's own or equal them.
#
# **When to stop.** A model can learn its training reviews by heart, which helps nobody: **overfitting**. The training loss does not
# show it; reviews that are not trained on do. That is what the validation reviews are for, so that the test stays unseen until
# the end. To see it happen, here is the same model on 500 reviews only, for longer:

# %%
few_ids, few_labels = ids[:500], labels[:500]
learner = new_model(seed=1)
curves: dict[str, list[float]] = {"500 training reviews": [], "400 validation reviews": []}
for _ in bar(range(2 if grading else 17), "training on 500 reviews"):
    curves["500 training reviews"].append(judged(learner, few_ids, few_labels)[1])
    curves["400 validation reviews"].append(judged(learner, validation_ids, validation_labels)[1])
    fit(learner, few_ids, few_labels, epochs=1, rate=0.01)
unseen = curves["400 validation reviews"]
print("the validation loss ends at least 0.1 above its lowest:", unseen[-1] - min(unseen) > 0.1)
with_all = judged(model, validation_ids, validation_labels)[1]
print("trained on all 2000 reviews, it is below 0.2:", with_all < 0.2)

# %%
# @title The loss on 500 training reviews, and on unseen ones
plots.lines(
    list(range(len(unseen))),
    curves,
    xlabel="epochs of training",
    ylabel="mean loss",
    title="On the training reviews the loss falls; on unseen ones it turns and rises",
    alt="Mean loss over 16 epochs of training on 500 reviews. On these it falls to near 0.1. On 400 validation reviews it "
    "falls at first, to a bit below 0.8 around the seventh epoch, and then rises to above 1.",
)

# %% [markdown]
# Three remedies, in the order in which to try them: more reviews (the last line); **early stopping**, which keeps the parameters of
# the epoch where the validation loss was lowest; and **dropout** (lesson 03), which `model.train()` switches on and `model.eval()`
# off, in a model that has it. This figure is one run, from one random start.
#
# ## 7 · Where it looked
#
# Your model returns its weights, and we know the gold evidence. So "it looks at the right sentence" is not an impression, it is a
# number: the **attention mass on gold evidence**, the sum of the weights of the deciding sentences, averaged over documents.
#
# For words, take the product. If word $t$ of sentence $s$ has weight $\alpha_{st}$ in its sentence, and the sentence has weight $\beta_s$ in
# the document, then
#
# $$\text{share}_{st} = \beta_s\, \alpha_{st}$$
#
# is the word's share of the whole document: all shares sum to 1. By hand: a sentence with weight 0.9 whose word "awful" has weight
# 0.8 gives the word $0.9 \cdot 0.8 = 0.72$ of the document. In a sentence with weight 0.1 even the best word gets at most 0.1.


# %% given="gold"
def gold_places(reviews: list, ids: torch.Tensor) -> torch.Tensor:
    """(B, S, W), True where a word is gold evidence."""
    gold = torch.zeros(ids.shape, dtype=torch.bool)
    for b, review in enumerate(reviews):
        for s, w in review.evidence:
            gold[b, s, w] = True
    return gold.to(ids.device)


gold = gold_places(test, test_ids)  # (B, S, W)
gold_sentences = gold.any(dim=-1)  # (B, S)


# %%
def on_gold(words: torch.Tensor, sentences: torch.Tensor) -> tuple[float, float]:
    """The mass on gold sentences and on gold words. words: (B, S, W), sentences: (B, S)."""
    share = sentences[:, :, None] * words  # (B, S, W)
    of_sentences = (sentences * gold_sentences).sum(dim=-1)
    return of_sentences.mean().item(), (share * gold).sum(dim=(1, 2)).mean().item()


with torch.no_grad():
    logits, word_weights, sentence_weights = model(test_ids)
    _, even_words, even_sentences = bag(test_ids)
on_sentences, on_words = on_gold(word_weights, sentence_weights)
print("equal weights: sentences {:.2f}, words {:.2f}".format(*on_gold(even_words, even_sentences)))
print("your model: at least 0.85 on gold sentences:", on_sentences >= 0.85)
print("your model: at least 0.7 on gold words:", on_words >= 0.7)
chosen = 24  # the review that is drawn below

# %% [markdown]
# Nobody told the model where the evidence stands. (Whether it *had* to look there is a question for section 8.)
#
# Now look at some.


# %% given="draw_document"
# @title The function that draws a document
def draw_document(
    review: documents.Document, words: torch.Tensor, sentences: torch.Tensor, *, title: str, alt: str
) -> None:
    """Draw a document: left the weight of each sentence, behind each word its share, relative to the largest share.

    Gold evidence is outlined. ``words`` is (S, W), ``sentences`` is (S,).
    """
    share = (sentences[:, None] * words).cpu()
    letter, line, left, right = 0.076, 0.32, 1.1, 8.4  # inches
    figure = Figure(figsize=(8.6, 1.0))
    ax = figure.add_axes((0, 0, 1, 1))
    place = {"ha": "center", "va": "center_baseline", "family": "DejaVu Sans Mono", "fontsize": 9}

    def box(x: float, y: float, width: float, text: str, strength: float, outlined: bool) -> None:
        ax.add_patch(Rectangle((x, y - 0.13), width, 0.26, facecolor=plots.SEQUENTIAL(strength), linewidth=0))
        ax.text(x + width / 2, y, text, color="white" if strength > 0.67 else "black", **place)
        if outlined:
            frame = {"fill": False, "edgecolor": plots.PALETTE[1], "linewidth": 2, "zorder": 3}
            ax.add_patch(Rectangle((x, y - 0.13), width, 0.26, **frame))

    y = 0.0
    for s, sentence in enumerate(review.sentences):
        x, weight = left, float(sentences[s])
        box(0.2, y, 0.6, f"{weight:.2f}", weight, any(s == place[0] for place in review.evidence))
        for w, word in enumerate(sentence):
            width = letter * len(word) + 0.08
            if x + width > right:
                x, y = left, y - line
            box(x, y, width, word, float(share[s, w] / share.max()), (s, w) in review.evidence)
            x += width + 0.03
        y -= line
    for x, text in (
        (0.2, "weight"),
        (left, "words: the darkest has the largest share of the document (framed: gold evidence)"),
    ):
        ax.text(x, 0.38, text, fontsize=9, color="#555555", va="center")
    ax.text(0.2, 0.82, title, fontsize=11, fontweight="bold", va="center")
    ax.set(xlim=(0, 8.6), ylim=(y + 0.05, 1.05))
    ax.axis("off")
    figure.set_size_inches(8.6, 1.0 - y)
    plots.show(figure, alt)


# %% tags=["cover"]
# @title A test review, read by your model
draw_document(
    test[chosen],
    word_weights[chosen],
    sentence_weights[chosen],
    title="The writer's two opinions of this visit get the attention; everything else gets none",
    alt="A review of eight sentences. The two in which the writer speaks of this visit, the costume was nice and "
    "I thought the stage was hardly weak, are outlined as gold evidence and share nearly all of the weight. "
    "In them the shading is on nice and hardly; the outlined word weak is nearly white. The other sentences, in "
    "which the words perfect, good and dreadful stand, are white.",
)

# %% [markdown]
# "Perfect", "by no means good", "dreadful": opinions all, and no weight. The model has learned *whose* opinion it is and *when*.
# Within the writer's own sentences the weight goes to the words that carry the opinion. One thing is odd: in "hardly weak" nearly
# all of it sits on "hardly". That word alone decides nothing. But its vector is not the word alone: the reader that comes from
# the right has met "weak" before.
#
# Browse the test reviews with the slider (where no slider can be shown, two of them stand in for it).


# %%
# @title Browse forty test reviews
def browse(value: int) -> None:
    """Draw one test review with what the model makes of it."""
    said, right = documents.RATINGS[logits[value].argmax()], documents.RATINGS[test[value].label]
    draw_document(
        test[value],
        word_weights[value],
        sentence_weights[value],
        title=f"Test review {value}: the model says {said}, the label is {right}",
        alt=f"Test review {value}, labelled {right}: weights of its sentences and words, gold evidence outlined.",
    )


def browse_two() -> None:
    """The pictures in place of the slider: a mixed review, and one whose evidence is negated."""
    for value in (32, 2):
        browse(value)


plots.interactive(browse, name="test review", options=list(range(40)), still=browse_two)

# %% [markdown]
# The first review is mixed: one thing was all right ("by no means dreadful" is faint praise), another was awful, and most of the
# weight is split between the two. Here the average earns its keep: the one vector of the document has to hold something of both
# sentences. The rest of the weight lies on sentences that decide nothing; the map is good, not clean.
#
# ### Exercise 7.7: the top words
#
# A picture shows one document. To test hundreds, we need the words with the largest shares as *places*: in which sentence, and
# where in it. `topk` finds the largest numbers along **one** axis. So lay the shares of a document in one row of $S \cdot W$
# numbers, and turn the places in that row back into pairs. By hand, with $W = 6$ words to a sentence: place 14 of the row is
# sentence $\lfloor 14 / 6 \rfloor = 2$, word $14 - 2 \cdot 6 = 2$.


# %% exercise="top_words"
def top_words(word_weights: torch.Tensor, sentence_weights: torch.Tensor, k: int) -> torch.Tensor:
    """Find the k words of each document that have the largest share of its attention.

    Args:
        word_weights: (B, S, W), the weights of the words in their sentence.
        sentence_weights: (B, S), the weights of the sentences in their document.
        k: how many words; no document has fewer.

    Returns:
        (B, k, 2), whole numbers: [b, i] is (sentence, word) of the word with the i-th largest share
        in document b. Of equal shares any may come first.

    Example:
        word_weights [[[0.9, 0.1], [0.4, 0.6]]], sentence_weights [[0.2, 0.8]] and k = 2 give
        [[[1, 1], [1, 0]]]: the shares are 0.18, 0.02, 0.32 and 0.48.
    """
    # TODO: the places, largest share first
    ### BEGIN SOLUTION
    share = sentence_weights[:, :, None] * word_weights  # (B, S, W)
    places = share.flatten(1).topk(k, dim=-1).indices  # (B, k)
    W = share.shape[-1]
    return torch.stack([places // W, places % W], dim=-1)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# Three steps: shares, `topk` over a flattened document, and the arithmetic of the worked example for all places at once.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# `share.flatten(1)` keeps the documents and makes one axis of the rest. `.topk(k, dim=-1).indices` are the places, largest
# first. For whole numbers, `//` is the division without its remainder and `%` the remainder.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `share = ...`, `places = share.flatten(1).topk(...).indices`, and a `torch.stack` of the two results of the arithmetic, on a new
# last axis.
#
# </details>

# %% test="top_words" points=2
check.exercise("top_words", top_words)
### BEGIN HIDDEN TESTS
_word, _sentence = torch.softmax(torch.randn(3, 4, 5), -1), torch.softmax(torch.randn(3, 4), -1)
_found = top_words(_word, _sentence, 6)
for _b in range(3):
    _all = sorted(((float(_sentence[_b, s] * _word[_b, s, w]), s, w) for s in range(4) for w in range(5)), reverse=True)
    assert [tuple(pair) for pair in _found[_b].tolist()] == [(s, w) for _, s, w in _all[:6]]
torch.testing.assert_close(top_words(_word, _sentence, 20)[:, :6], _found)  # more words do not change the first ones
torch.testing.assert_close(top_words(_word[1:2], _sentence[1:2], 6), _found[1:2])  # documents do not mix
assert not _found.is_floating_point()
assert check.unchanged(top_words, _word, _sentence, 3)
### END HIDDEN TESTS

# %%
first = top_words(word_weights, sentence_weights, k=1)[:, 0]  # (B, 2)
hits = gold[torch.arange(len(test), device=where), first[:, 0], first[:, 1]]
right = hits.float().mean().item()
print("the first word is gold evidence in at least 8 of 10 reviews:", right >= 0.8)

# %% [markdown]
# ## 8 · Is it an explanation?
#
# The picture suggests a sentence: *the model gave this rating **because of** these words*. The weights alone do not show that, but
# it can be tested: take the words away. If the rating rests on them, the model should lose its confidence; if as many **random**
# words go, it should not. That is a **deletion test**.
#
# To delete a word, write the number of `<unk>` in its place; the shape of the document stays. The effect is the fall in the
# probability of *the rating that the model gave at first*. By hand: at first the probabilities are 0.1, 0.1, 0.1, 0.6, 0.1, and
# after the deletion they are 0.5, 0.1, 0.1, 0.2, 0.1. The model gave rating 3 with 0.6, of which 0.2 is left: a fall of 0.4.
#
# ### Exercise 7.8: the deletion test


# %% exercise="deletion_test"
def deletion_test(model: nn.Module, ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """How far does the probability of a model's prediction fall when words become <unk>?

    Args:
        model: called with ids it returns logits (B, classes), word weights and sentence weights.
        ids: (B, S, W), the documents; they are left as they are.
        places: (B, k, 2), the k words (sentence, word) that are deleted in each document.

    Returns:
        (B,), the probability of the class predicted before the deletion, minus the probability of
        that same class after it. No gradient is asked for.
    """
    model = prepared(model).eval()
    # TODO: the fall for each document
    ### BEGIN SOLUTION
    deleted = ids.clone()
    document = torch.arange(len(ids), device=ids.device)[:, None]  # (B, 1)
    deleted[document, places[..., 0], places[..., 1]] = UNKNOWN
    with torch.no_grad():
        before = torch.softmax(model(ids)[0], dim=-1)
        after = torch.softmax(model(deleted)[0], dim=-1)
    predicted = before.argmax(dim=-1, keepdim=True)  # (B, 1)
    return (before - after).gather(1, predicted)[:, 0]
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# `ids.clone()` is the copy. A loop over the documents and their places is fine. The class is chosen once, from the documents as
# they were.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# All at once: `deleted[document, sentence, word] = UNKNOWN`, where the three are whole numbers of shapes that stretch to `(B,
# k)`: `(B, 1)`, `(B, k)`, `(B, k)`. The model's first result are logits; `torch.softmax` over the last axis makes probabilities
# of them. `p.gather(1, predicted)` picks one entry of each row.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# A copy with `UNKNOWN` at the places; probabilities of `ids` and of the copy; the class that was predicted before; and from the
# difference of the two the entry of that class, as `(B,)`.
#
# </details>

# %% test="deletion_test" points=2
check.exercise("deletion_test", deletion_test)
### BEGIN HIDDEN TESTS
_ids = torch.randint(2, 40, (5, 3, 4))
_order = torch.stack([torch.randperm(12)[:3] for _ in range(5)])
_places = torch.stack([_order // 4, _order % 4], -1)
_fall = deletion_test("example", _ids.to(where), _places.to(where)).cpu()
_model = prepared("example").cpu()
with torch.no_grad():
    for _b in range(5):
        _less = _ids[_b : _b + 1].clone()
        for _s, _w in _places[_b].tolist():
            _less[0, _s, _w] = 1
        _before, _after = _model(_ids[_b : _b + 1])[0].softmax(-1)[0], _model(_less)[0].softmax(-1)[0]
        torch.testing.assert_close(_fall[_b], _before.max() - _after[_before.argmax()], rtol=1e-3, atol=1e-5)
assert check.unchanged(deletion_test, "example", _ids.to(where), _places.to(where))
### END HIDDEN TESTS

# %% [markdown]
# Random words come from your own `top_words`, with random weights.


# %%
def random_words(ids: torch.Tensor, k: int, seed: int) -> torch.Tensor:
    """(B, k, 2): k random real words of each document."""
    chance = torch.rand(ids.shape, generator=torch.Generator().manual_seed(seed)).to(ids.device)
    return top_words((0.1 + chance) * masks(ids)[0], torch.ones_like(chance[..., 0]), k)


def fall(model: nn.Module, places: torch.Tensor) -> float:
    """The mean fall over the test reviews."""
    return deletion_test(model, test_ids, places).mean().item()


counts = [0, 1, 2, 3, 4, 6, 8]
by_attention = [fall(model, top_words(word_weights, sentence_weights, k)) for k in counts]
by_chance = [fall(model, random_words(test_ids, k, seed=k)) for k in counts]
print("two top words: the probability falls by more than 0.5:", by_attention[2] > 0.5)
print("two random words: it falls by less than 0.2:", by_chance[2] < 0.2)

# %%
# @title The fall, against the number of deleted words
plots.lines(
    counts,
    {"most attended": by_attention, "random": by_chance},
    xlabel="words deleted in each review",
    ylabel="fall in the probability of the prediction",
    title="Two words that attention picks are worth far more than eight random ones",
    alt="Mean fall in the probability of the prediction, against the number of words deleted from 0 to 8. For the most "
    "attended words it is above 0.5 with two words deleted and stays high. For random words it stays below "
    "0.2 with two words and grows slowly.",
)

# %% [markdown]
# So the prediction does rest on these words, far more than on others. That is a fact about **this model** and **this way of
# deleting**. Before you call the map an explanation, try to break the claim. Two experiments.
#
# **Other random starts.** When this lesson was written, the model was trained from the random starts 1 to 20. All twenty rated at
# least 98 % of the test reviews right and had at least 0.95 of the mass on gold sentences. On gold *words* they had from 0.2 to
# nearly 1; four of the twenty had less than a half. Yours is start 1. Here is the first of those four, start 6:

# %%
other = new_model(seed=6)
fit(other, ids, labels, epochs, rate=0.01)
with torch.no_grad():
    _, other_words, other_sentences = other.eval()(test_ids)
other_on_sentences, other_on_words = on_gold(other_words, other_sentences)
print("start 6 is right on at least 95 %:", judged(other, test_ids, test_labels)[0] >= 0.95)
print("it has at least 0.85 on gold sentences:", other_on_sentences >= 0.85)
print("it has at least 0.3 less on gold words than start 1:", on_words - other_on_words >= 0.3)

# %%
# @title The same review, read from another random start
draw_document(
    test[chosen],
    other_words[chosen],
    other_sentences[chosen],
    title="Another random start: the same two sentences, partly other words",
    alt="The same review, read by the model from another random start. The same two sentences have most of the "
    "weight. Within them part of the shading is on words beside the outlined ones.",
)

# %% [markdown]
# The ratings are as good, the sentences are the same, and on the words the two models disagree. How can a model rate right
# while it looks *beside* the word? You predicted it in exercise 7.5: a weight belongs to a vector that has read its neighbours.
# To see what the rating hangs on, delete. Once the most attended word of each review, once the opinion word itself, and once a
# random one:

# %%
latest = gold * torch.arange(1, gold.shape[-1] + 1, device=where)  # the opinion word is last
opinion = top_words(latest, torch.ones_like(sentence_weights), 1)
chance = random_words(test_ids, 1, seed=1)
first_top = top_words(word_weights, sentence_weights, 1)
other_top = top_words(other_words, other_sentences, 1)
first_falls = [fall(model, places) for places in (first_top, opinion)]
other_falls = [fall(other, places) for places in (other_top, opinion, chance)]
alike = abs(first_falls[0] - first_falls[1]) < 0.1
print("start 1: the most attended word and the opinion word matter alike:", alike)
print("start 6: the opinion word matters more:", other_falls[1] - other_falls[0] >= 0.1)
print("start 6: the attended word beats a random one:", other_falls[0] - other_falls[2] >= 0.15)

# %% [markdown]
# In start 6 the heaviest weight is not on the word that matters most. The map does not show that, and neither did the deletion
# test above: even here the most attended word matters far more than a random one. To beat random words is a weak test; only the
# comparison with the opinion word told the two models apart.
#
# **No attention at all.** Replace both pools by plain means over what is real, and train that.


# %%
class EqualPool(nn.Module):
    """A pool that gives every real place the same weight."""

    def forward(self, h: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights = mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)
        return (weights[:, :, None] * h).sum(dim=1), weights


equal = new_model(seed=1)  # the random numbers of the first model
equal.word_pool, equal.sentence_pool = EqualPool(), EqualPool()
fit(equal, ids, labels, epochs, rate=0.01)
without = judged(equal, test_ids, test_labels)[0]
print("without attention it is right on at least 95 %:", without >= 0.95)

# %% [markdown]
# Here the GRUs do the choosing: they can write "this counts" into some vectors and nearly nothing into the others, and then a
# plain mean is enough. So attention is not *why* these reviews can be rated. What it adds is that the choice shows: in all
# twenty starts among sentences, in most of them among words.
#
# What may you say, then?
#
# | claim | does the evidence carry it? |
# |---|---|
# | the model puts its attention on the deciding sentences | yes, in twenty starts: measured against gold evidence and against equal weights |
# | the prediction depends on the words that get most attention | yes, for two models and for deletion by `<unk>` |
# | the word with the most weight matters most | no: in start 6 the opinion word matters more |
# | attention is needed to be right | no: without it nearly as many reviews come out right |
# | the map shows *all* that the prediction depends on | not tested: deletion looks at the top words only |
#
# There is one more limit. A review with holes is not like any review of the training, so part of the fall may be plain surprise. The
# random words control for that, but not perfectly.
#
# This is an old argument. Jain and Wallace (2019) found that attention weights often do not agree with gradient-based measures of
# importance, and that very different weights can give the same prediction. Wiegreffe and Pinter (2019) replied that it depends on
# what one calls an explanation, and proposed tests: uniform weights and other random seeds are among them, as you have just tried.
#
# ## 9 · Real text
#
# Reviews from a word list are clean: that is why so much could be measured. Does the model work on text that people wrote? The
# libraries beside this notebook are full of it: hundreds of docstrings in each, here cut into sentences, with the names of the
# libraries masked out. The task: **which of five libraries does a docstring come from?** There is no gold evidence here, and what
# exactly there is to read depends on the versions you have.

# %%
texts = [] if grading else documents.docstrings("train", size=1000)
if texts:
    unseen_texts = documents.docstrings("test")
    words_there = documents.vocabulary(texts, least=2)
    known, strange = numbered(texts, words_there), numbered(unseen_texts, words_there)
    device.seed(9)
    librarian = HierarchicalAttention(len(words_there), len(documents.LIBRARIES)).to(where)
    fit(librarian, *known, epochs=4, rate=0.01)
    bag_there = BagOfWords(len(words_there), len(documents.LIBRARIES)).to(where)
    fit(bag_there, *known, epochs=10, rate=0.02)
    read, counted = judged(librarian, *strange)[0], judged(bag_there, *strange)[0]
    print("libraries:", ", ".join(documents.LIBRARIES))
    print("hierarchical attention is right more than half of the time:", read > 0.5)
    print("the bag of words is no more than 5 points behind:", read - counted <= 0.05)

# %% [markdown]
# Your model is far above guessing, which would be right once in five. But look who keeps up, or is even ahead: the bag of words, with
# ten epochs in place of your four (one run of each). Who speaks of tensors, axes or data frames gives the library away, wherever the
# words stand. Reading in order pays where the label depends on *who says what*. Know your task before you choose your model.
#
# ## 10 · Spot the bug
#
# The function below makes one vector of each document: attention over the words of each sentence (with the sum of a word's
# entries as its score, to keep it short), then the mean of the sentences. Its author knew about padding: words that do not
# exist get the score $-\infty$, and sentences that do not exist are multiplied by 0 before the mean.


# %% given="published"
def published_documents(h: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """One vector for each document. h: (B, S, W, d), mask: (B, S, W); returns (B, d)."""
    scores = h.sum(dim=-1).masked_fill(~mask, -torch.inf)  # (B, S, W)
    weights = torch.softmax(scores, dim=-1)
    sentences = (weights[..., None] * h).sum(dim=2)  # (B, S, d)
    real = mask.any(dim=-1)  # (B, S)
    sentences = sentences * real[..., None]  # what does not exist counts 0
    return sentences.sum(dim=1) / real.sum(dim=1, keepdim=True)


# %% given="sentence_by_sentence"
# @title The same by two loops, which meet no padding
def sentence_by_sentence(h: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The same by two loops that meet no padding: every document has a sentence, and every sentence in it words."""
    if mask.dtype != torch.bool:
        raise TypeError(f"mask is {mask.dtype}; it should be boolean, True = keep")
    if not mask.any(dim=2).any(dim=1).all():
        raise ValueError("a document has no word at all; every document should have at least one")
    found = []
    for rows, kept in zip(h, mask, strict=True):
        real = [x[m] for x, m in zip(rows, kept, strict=True) if m.any()]  # (words, d) for each real sentence
        found.append(torch.stack([torch.softmax(x.sum(dim=-1), dim=0) @ x for x in real]).mean(dim=0))
    return torch.stack(found)


# %%
h = device.randn(2, 3, 4, 5, seed=10)
rows = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]
mask = torch.tensor([rows, rows], device=where).bool()
agree = torch.allclose(published_documents(h, mask), sentence_by_sentence(h, mask), atol=1e-4)
print("two documents of three sentences each, with padded words: the two agree:", agree)

# %% [markdown]
# It agrees, padding and all. First find an input that shows the bug: vectors and a mask (small ones are best) on which the
# result is wrong. Every document in it should have at least one word.
#
# ### Exercise 7.9: a counterexample


# %% exercise="counterexample"
def counterexample() -> tuple[torch.Tensor, torch.Tensor]:
    """h: (B, S, W, d) and a boolean mask: (B, S, W) for which published_documents is wrong."""
    # TODO: two tensors; which kind of padding did the author's example not have?
    ### BEGIN SOLUTION
    h = torch.tensor([[[[1.0], [2.0]], [[0.0], [0.0]]]])  # (1, 2, 2, 1): a sentence of two words, and an empty one
    mask = torch.tensor([[[True, True], [False, False]]])
    return h, mask
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# There are two kinds of padding, words and sentences. Both documents of the example have three sentences.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# Take one document with a sentence in which every word is padding. What is the softmax of a row of nothing but $-\infty$? And
# what is that times 0?
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `h` of shape `(1, 2, 2, 1)`: one document, two sentences, two words of one number each. The mask has the shape `(1, 2, 2)`.
#
# </details>

# %% test="counterexample" points=1
check.counterexample(
    "counterexample",
    counterexample,
    wrong=published_documents,
    right=sentence_by_sentence,
    axes=("B S W d", "B S W"),
)
### BEGIN HIDDEN TESTS
_h, _mask = counterexample()
_right = sentence_by_sentence(_h, _mask)
assert torch.isfinite(_right).all()
assert not torch.allclose(published_documents(_h, _mask), _right, rtol=1e-3, atol=1e-3)
### END HIDDEN TESTS

# %% [markdown]
# The line that multiplies by 0 comes too late: $0 \cdot \text{NaN}$ is NaN. Nor does it help to replace the NaN in the
# sentences, by `torch.where` or `nan_to_num`: the values then look right, but the gradient for $h$ is what arrives from above *times
# the weights*, and these are NaN. One step of training, and the encoder that made $h$ consists of NaN. (To replace it in the *weights*
# would do, but hides a NaN that you would want to see.) **Better to keep it from arising.**
#
# ### Exercise 7.10: the repair


# %% exercise="repaired_documents"
def repaired_documents(h: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """One vector for each document, repaired: right values, and finite gradients.

    h: (B, S, W, d), of any finite size, also at padding; mask: (B, S, W), True = keep, with a word
    in each document; returns (B, d).
    """
    # TODO: the lines of published_documents, mended
    ### BEGIN SOLUTION
    weights = masked_softmax(h.sum(dim=-1), mask)
    sentences = (weights[..., None] * h).sum(dim=2)  # (B, S, d), 0 where there is no sentence
    return sentences.sum(dim=1) / mask.any(dim=-1).sum(dim=1, keepdim=True)
    ### END SOLUTION


# %% [markdown]
# <details><summary>Hint 1: a nudge</summary>
#
# You have met a softmax that keeps this NaN from arising.
#
# </details>
# <details><summary>Hint 2: the idea</summary>
#
# A row of equal *finite* scores gives equal weights, not NaN, and a weight that is 0 makes a sentence 0, as it was meant to be.
# `masked_softmax` does both.
#
# </details>
# <details><summary>Hint 3: the skeleton</summary>
#
# `scores` without the fill, `weights` from another function, `sentences` as they are; the mean is over the sentences that exist.
#
# </details>

# %% test="repaired_documents" points=1
check.exercise("repaired_documents", repaired_documents)
### BEGIN HIDDEN TESTS
_h = torch.randn(3, 4, 5, 2)
_mask = torch.rand(3, 4, 5) < 0.6
_mask[:, 0, 0] = True  # every document has a word
_mask[0, 2:] = False  # and some have sentences without
_mask[2, 1:] = False
_right = sentence_by_sentence(_h, _mask)
torch.testing.assert_close(repaired_documents(_h, _mask), _right, rtol=1e-4, atol=1e-5)
_noise = torch.where(_mask[..., None], _h, 1e4 * torch.randn(3, 4, 5, 2))  # padding means nothing
torch.testing.assert_close(repaired_documents(_noise, _mask), _right, rtol=1e-4, atol=1e-4)
(_gradient,) = check.gradients(lambda h: sentence_by_sentence(h, _mask), _h)
_found = check.gradients(repaired_documents, _h, _mask)[0]
assert torch.isfinite(_found).all()
torch.testing.assert_close(_found, _gradient, rtol=1e-3, atol=1e-4)
assert check.unchanged(repaired_documents, _h, _mask)
### END HIDDEN TESTS

# %% [markdown]
# ## Questions
#
# Answer in your head first, then open.
#
# <details><summary><b>1.</b> A colleague pools without attention: she takes the GRU's final state, <code>h_n</code> of shape <code>(2, N, d_hidden)</code>, one entry for each direction, and writes <code>h_n.view(N, -1)</code> to get one row for each sentence. The shape is right. What is in the rows?</summary>
#
# **The states of different sentences.** In memory all $N$ forward states stand first, then all $N$ backward ones. Cut into $N$
# pieces, row 0 gets the forward states of sentences 0 and 1. The directions have to be brought together first:
# `torch.cat([h_n[0], h_n[1]], dim=-1)`.
#
# * *Both directions of one sentence, as intended:* that would need the shape `(N, 2, d_hidden)` in memory. `view` moves nothing.
# * *It raises an error:* the number of entries fits, so nothing complains.
#
# </details>
# <details><summary><b>2.</b> In one review a word has weight 0.5 in its sentence. In another review a word has weight 0.3 in its own. Which of the two matters more for the prediction?</summary>
#
# **You cannot tell** from these numbers. The share is the product with the weight of the *sentence*: 0.5 in a sentence of weight
# 0.02 is 0.01, and 0.3 in a sentence of weight 0.9 is 0.27. And a share is not yet an effect: that takes a deletion.
#
# * *The first, since 0.5 is more than 0.3:* weights of words are comparable within one sentence only; there they sum to 1.
# * *The second:* nothing is said about its sentence.
#
# </details>
# <details><summary><b>3.</b> A deletion test on another model: deleting the three most attended words lowers the probability by 0.30, deleting three random words by 0.28. What have you learned?</summary>
#
# **That this model's prediction depends hardly more on the attended words than on random ones**, at least by this measure. Its map
# should not be shown as a reason.
#
# * *That attention found the important words, since 0.30 is a lot:* a model that collapses at every hole falls for all words.
# * *That the model does not use its attention:* it may well. What a word means may have moved into its neighbours' vectors, as in start 6.
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
# You masked on two levels, pooled with a query that is learned, encoded all sentences in one call, predicted how far a word reaches, trained
# against a rival, measured attention against gold evidence, and tested what the weights are worth.
#
# **Where it lives in real models.** Attention pooling with learned queries outlived the GRU: Set Transformer pools sets with it, and
# Perceiver reads long inputs with a few learned queries.
#
# **Next.** Lesson 08 takes the bidirectional encoder you used here and puts a decoder behind it: a translator, whose attention
# is measured against gold alignments.
#
# **References**
#
# * Yang, Yang, Dyer, He, Smola, Hovy (2016), [Hierarchical attention networks for document classification](https://aclanthology.org/N16-1174/): the model of this lesson.
# * Cho et al. (2014), [Learning phrase representations using RNN encoder–decoder](https://arxiv.org/abs/1406.1078): where the GRU comes from.
# * Jain, Wallace (2019), [Attention is not explanation](https://arxiv.org/abs/1902.10186): weights and gradients often disagree, and other weights can give the same prediction.
# * Wiegreffe, Pinter (2019), [Attention is not not explanation](https://arxiv.org/abs/1908.04626): it depends on what one calls an explanation, with four tests.
# * Lee et al. (2019), [Set Transformer](https://arxiv.org/abs/1810.00825), and Jaegle et al. (2021), [Perceiver](https://arxiv.org/abs/2103.03206): learned queries elsewhere.
