"""Other right answers to the exercises of lesson 07. Every check and every hidden test accepts all of them."""

import math

import torch
from torch import nn

from attention_course.authoring import alternatives_of

# 7.1 masks ----------------------------------------------------------------------------------------------------------

right = alternatives_of("masks")


@right
def masks_by_counting(ids):
    word_mask = ids > 0
    return word_mask, word_mask.sum(dim=2) > 0


@right
def masks_by_sum(ids):
    return ids.ne(0), ids.sum(-1) != 0


@right
def masks_by_loop(ids):
    rows = [[bool((sentence != 0).any()) for sentence in document] for document in ids]
    return ~(ids == 0), torch.tensor(rows, device=ids.device)


@right
def masks_as_list(ids):
    return [ids.bool(), ids.bool().any(2)]


# 7.2 AttentionPool --------------------------------------------------------------------------------------------------


class _Pool(nn.Module):
    def __init__(self, d, d_attention):
        super().__init__()
        self.query = nn.Parameter(torch.empty(d_attention).uniform_(-0.1, 0.1))
        self.projection = nn.Linear(d, d_attention)


right = alternatives_of("AttentionPool")


@right
class PoolByHand(_Pool):
    def forward(self, h, mask):
        scores = torch.tanh(self.projection(h)).matmul(self.query).masked_fill(~mask, torch.finfo(h.dtype).min)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True)) * mask
        weights = powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-9)
        return torch.einsum("nt,ntd->nd", weights, h), weights


@right
class PoolByWhere(_Pool):
    def forward(self, h, mask):
        scores = torch.einsum("nta,a->nt", self.projection(h).tanh(), self.query)
        lowest = torch.full_like(scores, -1e9)
        weights = torch.softmax(torch.where(mask, scores, lowest), dim=1)
        weights = torch.where(mask, weights, torch.zeros_like(weights))
        return (weights.unsqueeze(1) @ h).squeeze(1), weights


@right
class PoolRowByRow(_Pool):
    def forward(self, h, mask):
        pooled, weights = [], []
        for row, real in zip(h, mask, strict=True):
            w = torch.zeros_like(row[:, 0]) + 0 * self.projection(row).sum() * self.query.sum()
            if real.any():
                s = torch.tanh(self.projection(row[real])) @ self.query
                w = w.masked_scatter(real, torch.softmax(s, dim=0))
            pooled.append(w @ row)
            weights.append(w)
        return torch.stack(pooled), torch.stack(weights)


@right
class PoolSafeInfinity(_Pool):
    def forward(self, h, mask):
        scores = torch.sum(torch.tanh(self.projection(h)) * self.query, dim=2)
        empty = ~mask.any(dim=1, keepdim=True)
        scores = scores.masked_fill(~(mask | empty), -math.inf)  # an empty row keeps its scores, and loses its weights
        weights = scores.softmax(dim=-1).masked_fill(~mask, 0.0)
        return torch.bmm(weights[:, None], h)[:, 0], weights


@right
class PoolMendsTheWeights(_Pool):
    def forward(self, h, mask):
        scores = torch.tanh(self.projection(h)) @ self.query
        weights = torch.nan_to_num(torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1))
        return (weights[:, :, None] * h).sum(dim=1), weights


# 7.3 flatten_documents ----------------------------------------------------------------------------------------------

right = alternatives_of("flatten_documents")


@right
def flatten_reshape(x):
    return x.reshape(-1, *x.shape[2:])


@right
def flatten_cat(x):
    return torch.cat(list(x), dim=0)


@right
def flatten_stack(x):
    return torch.stack([x[b, s] for b in range(x.shape[0]) for s in range(x.shape[1])])


@right
def flatten_view(x):
    B, S, *rest = x.shape
    return x.contiguous().view(B * S, *rest)


# 7.4 HierarchicalAttention ------------------------------------------------------------------------------------------


def _encode(gru, x, mask):
    lengths = mask.sum(dim=-1).clamp(min=1).cpu()
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=x.shape[1])[0]


class _SafePool(_Pool):
    def forward(self, h, mask):
        scores = torch.tanh(self.projection(h)) @ self.query
        weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(h.dtype).min), dim=-1) * mask
        return (weights[..., None] * h).sum(dim=-2), weights


class _Model(nn.Module):
    def __init__(self, vocabulary, classes, d_word=24, d_hidden=16, d_attention=24):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_word, padding_idx=0)
        self.word_gru = nn.GRU(d_word, d_hidden, batch_first=True, bidirectional=True)
        self.word_pool = _SafePool(2 * d_hidden, d_attention)
        self.sentence_gru = nn.GRU(2 * d_hidden, d_hidden, batch_first=True, bidirectional=True)
        self.sentence_pool = _SafePool(2 * d_hidden, d_attention)
        self.classifier = nn.Linear(2 * d_hidden, classes)


right = alternatives_of("HierarchicalAttention")


@right
class ModelReshape(_Model):
    def forward(self, ids):
        B, S, W = ids.shape
        flat = ids.reshape(B * S, W)
        vectors, word_weights = self.word_pool(_encode(self.word_gru, self.embedding(flat), flat > 0), flat > 0)
        sentence_mask = (ids > 0).any(-1)
        states = _encode(self.sentence_gru, vectors.view(B, S, -1), sentence_mask)
        document, sentence_weights = self.sentence_pool(states, sentence_mask)
        return self.classifier(document), word_weights.view(B, S, W), sentence_weights


@right
class ModelSentenceBySentence(_Model):
    def forward(self, ids):
        found = []
        for s in range(ids.shape[1]):
            mask = ids[:, s] != 0
            found.append(self.word_pool(_encode(self.word_gru, self.embedding(ids[:, s]), mask), mask))
        sentences = torch.stack([pooled for pooled, _ in found], dim=1)
        mask = (ids != 0).any(dim=2)
        document, weights = self.sentence_pool(_encode(self.sentence_gru, sentences, mask), mask)
        return self.classifier(document), torch.stack([w for _, w in found], dim=1), weights


@right
class ModelDocumentByDocument(_Model):
    def forward(self, ids):
        logits, words, sentences = [], [], []
        for document in ids:
            mask = document != 0
            rows, w = self.word_pool(_encode(self.word_gru, self.embedding(document), mask), mask)
            real = mask.any(dim=1)[None]
            pooled, s = self.sentence_pool(_encode(self.sentence_gru, rows[None], real), real)
            logits.append(self.classifier(pooled[0]))
            words.append(w)
            sentences.append(s[0])
        return torch.stack(logits), torch.stack(words), torch.stack(sentences)


@right
class ModelEmbedsFirst(_Model):
    def forward(self, ids):
        x, mask = self.embedding(ids), ids.bool()
        states = _encode(self.word_gru, x.flatten(0, 1), mask.flatten(0, 1)).unflatten(0, ids.shape[:2])
        sentences, word_weights = self.word_pool(states, mask)
        real = mask.any(-1)
        document, sentence_weights = self.sentence_pool(_encode(self.sentence_gru, sentences, real), real)
        return [self.classifier(document), word_weights, sentence_weights]


@right
class ModelPacksRealSentencesOnly(_Model):
    def forward(self, ids):
        word_mask = ids != 0
        real = word_mask.any(-1)
        pooled, weights = self.word_pool(
            _encode(self.word_gru, self.embedding(ids[real]), word_mask[real]), word_mask[real]
        )
        sentences = pooled.new_zeros(*real.shape, pooled.shape[-1])
        sentences[real] = pooled
        word_weights = weights.new_zeros(ids.shape)
        word_weights[real] = weights
        document, sentence_weights = self.sentence_pool(_encode(self.sentence_gru, sentences, real), real)
        return self.classifier(document), word_weights, sentence_weights


# 7.5 what_changes ---------------------------------------------------------------------------------------------------

right = alternatives_of("what_changes")


@right
def changes_by_loops(ids, b, s, w):
    B, S, W = ids.shape
    documents = torch.zeros(B, dtype=torch.bool)
    words, sentences = torch.zeros(B, S, W, dtype=torch.bool), torch.zeros(B, S, dtype=torch.bool)
    documents[b] = True
    real = [t for t in range(S) if (ids[b, t] != 0).any()]
    for t in real if len(real) > 1 else []:
        sentences[b, t] = True
    there = [v for v in range(W) if ids[b, s, v] != 0]
    for v in there if len(there) > 1 else []:
        words[b, s, v] = True
    return documents, words, sentences


@right
def changes_by_products(ids, b, s, w):
    word_mask = ids > 0
    sentence_mask = word_mask.any(-1)
    document = torch.eye(ids.shape[0], dtype=torch.bool, device=ids.device)[b]
    sentence = torch.eye(ids.shape[1], dtype=torch.bool, device=ids.device)[s]
    words = document[:, None, None] & sentence[None, :, None] & word_mask
    words = words & (word_mask.sum(-1, keepdim=True) > 1)
    return document, words, document[:, None] & sentence_mask & (sentence_mask.sum(-1, keepdim=True) > 1)


@right
def changes_as_list(ids, b, s, w):
    sentence, document = ids[b, s] != 0, (ids[b] != 0).any(-1)
    words, sentences = torch.zeros_like(ids), torch.zeros_like(ids[:, :, 0])
    if int(sentence.sum()) >= 2:
        words[b, s] = sentence.long()
    if int(document.sum()) >= 2:
        sentences[b] = document.long()
    return [torch.arange(len(ids), device=ids.device).eq(b), words.bool(), sentences.bool()]


# 7.6 fit ------------------------------------------------------------------------------------------------------------


def _example(model):
    """The same small bag of words that the lesson's prepared("example") makes."""
    if isinstance(model, nn.Module):
        return model
    from attention_course import device

    scores = device.randn(40, 5, seed=70).cpu().index_fill(0, torch.tensor([0]), 0.0)
    return _Bag(scores, device.randn(5, seed=71).cpu()).to(device.pick())


class _Bag(nn.Module):
    def __init__(self, scores, bias):
        super().__init__()
        self.scores = nn.Embedding.from_pretrained(scores, freeze=False, padding_idx=0)
        self.bias = nn.Parameter(bias)

    def forward(self, ids):
        return self.scores(ids).sum(dim=(1, 2)) + self.bias, None, None


def _batches(number, epoch, where, size=32):
    return torch.randperm(number, generator=torch.Generator().manual_seed(epoch)).to(where).split(size)


right = alternatives_of("fit")


@right
def fit_with_loss_module(model, ids, labels, epochs, rate):
    model = _example(model)
    optimiser, criterion = torch.optim.Adam(model.parameters(), lr=rate), nn.CrossEntropyLoss()
    losses = []
    for epoch in range(epochs):
        found = []
        for rows in _batches(len(ids), epoch, ids.device):
            optimiser.zero_grad(set_to_none=False)
            loss = criterion(model(ids[rows])[0], labels[rows])
            loss.backward()
            optimiser.step()
            found.append(loss.detach())
        losses.append(torch.stack(found).mean())
    return torch.tensor(losses)


@right
def fit_by_likelihood(model, ids, labels, epochs, rate):
    model = _example(model)
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    losses = torch.zeros(epochs)
    for epoch in range(epochs):
        parts = _batches(len(ids), epoch, ids.device)
        for rows in parts:
            logits, *_ = model(ids[rows])
            loss = nn.functional.nll_loss(torch.log_softmax(logits, dim=-1), labels[rows])
            model.zero_grad()
            loss.backward()
            optimiser.step()
            losses[epoch] += loss.item() / len(parts)
    return losses


@right
def fit_clears_afterwards(model, ids, labels, epochs, rate):
    model = _example(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for epoch in range(epochs):
        total = count = 0
        for rows in _batches(len(ids), epoch, ids.device):
            loss = nn.functional.cross_entropy(model(ids.index_select(0, rows))[0], labels.index_select(0, rows))
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            total, count = total + loss.item(), count + 1
        losses.append(total / count)
    return torch.tensor(losses)


# 7.7 top_words ------------------------------------------------------------------------------------------------------

right = alternatives_of("top_words")


@right
def top_by_sorting(word_weights, sentence_weights, k):
    share = torch.einsum("bsw,bs->bsw", word_weights, sentence_weights)
    order = share.reshape(len(share), -1).argsort(dim=-1, descending=True)[:, :k]
    return torch.stack([torch.div(order, share.shape[2], rounding_mode="floor"), order % share.shape[2]], dim=-1)


@right
def top_by_unravel(word_weights, sentence_weights, k):
    share = sentence_weights.unsqueeze(-1) * word_weights
    places = torch.topk(share.flatten(start_dim=1), k).indices
    return torch.stack(torch.unravel_index(places, share.shape[1:]), dim=-1)


@right
def top_by_python(word_weights, sentence_weights, k):
    B, S, W = word_weights.shape
    found = []
    for b in range(B):
        pairs = [(s, w) for s in range(S) for w in range(W)]
        pairs.sort(key=lambda p: -float(word_weights[b, p[0], p[1]] * sentence_weights[b, p[0]]))
        found.append(pairs[:k])
    return torch.tensor(found, device=word_weights.device)


# 7.8 deletion_test --------------------------------------------------------------------------------------------------

right = alternatives_of("deletion_test")


@right
def deletion_by_loop(model, ids, places):
    model = _example(model)
    less = ids.clone()
    for b in range(len(ids)):
        for s, w in places[b].tolist():
            less[b, s, w] = 1
    with torch.no_grad():
        before, after = model(ids)[0].softmax(-1), model(less)[0].softmax(-1)
    top, predicted = before.max(dim=-1)
    return top - after[torch.arange(len(ids), device=ids.device), predicted]


@right
def deletion_flat(model, ids, places):
    model = _example(model)
    flat = ids.flatten(1).scatter(1, places[..., 0] * ids.shape[2] + places[..., 1], 1)
    with torch.no_grad():
        before = torch.softmax(model(ids)[0], dim=-1)
        after = torch.softmax(model(flat.reshape(ids.shape))[0], dim=-1)
    chosen = nn.functional.one_hot(before.argmax(-1), before.shape[-1])
    return ((before - after) * chosen).sum(-1)


@right
def deletion_word_by_word(model, ids, places):
    model = _example(model)
    rows = torch.arange(len(ids), device=ids.device)
    less = ids.clone()
    for place in places.unbind(1):
        less[rows, place[:, 0], place[:, 1]] = 1
    logits, less_logits = model(ids)[0].detach(), model(less)[0].detach()
    predicted = logits.argmax(-1)
    return logits.log_softmax(-1)[rows, predicted].exp() - less_logits.log_softmax(-1)[rows, predicted].exp()


# 7.9 counterexample -------------------------------------------------------------------------------------------------

right = alternatives_of("counterexample")


@right
def counterexample_short_document():
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[1, 1:] = False
    return torch.randn(2, 3, 4, 5), mask


@right
def counterexample_empty_first():
    return torch.ones(1, 2, 1, 1), torch.tensor([[[False], [True]]])


@right
def counterexample_as_list():
    ids = torch.tensor([[[3, 4, 0], [0, 0, 0]], [[5, 0, 0], [6, 7, 8]]])
    return [torch.randn(2, 2, 3, 2), ids != 0]


# 7.10 repaired_documents --------------------------------------------------------------------------------------------

right = alternatives_of("repaired_documents")


@right
def repaired_by_loops(h, mask):
    found = []
    for rows, kept in zip(h, mask, strict=True):
        real = [x[m] for x, m in zip(rows, kept, strict=True) if m.any()]
        found.append(torch.stack([torch.softmax(x.sum(-1), dim=0) @ x for x in real]).mean(dim=0))
    return torch.stack(found)


@right
def repaired_keeps_the_rest(h, mask):
    scores = h.sum(dim=-1).masked_fill(~mask, torch.finfo(h.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    sentences = torch.einsum("bsw,bswd->bsd", weights, h)
    real = mask.any(dim=-1)
    sentences = sentences * real[..., None]
    return sentences.sum(dim=1) / real.sum(dim=1, keepdim=True)


@right
def repaired_lets_empty_rows_through(h, mask):
    real = mask.any(dim=-1, keepdim=True)
    weights = h.sum(-1).masked_fill(~mask & real, -torch.inf).softmax(-1) * mask
    return (weights.unsqueeze(-1) * h).sum(dim=(1, 2)) / real.sum(dim=1)


@right
def repaired_real_sentences_only(h, mask):
    real = mask.any(dim=-1)  # (B, S)
    x, m = h[real], mask[real]  # (sentences, W, d), (sentences, W)
    vectors = torch.softmax(x.sum(-1).masked_fill(~m, -torch.inf), dim=-1)[:, None] @ x
    sums = h.new_zeros(len(h), h.shape[-1]).index_add(0, real.nonzero()[:, 0], vectors[:, 0])
    return sums / real.sum(dim=1, keepdim=True)
