"""Wrong answers to the exercises of lesson 07, each with what its author needs to read."""

import math

import torch
from torch import nn

from attention_course.authoring import mistakes_of

# 7.1 masks ----------------------------------------------------------------------------------------------------------

wrong = mistakes_of("masks")


@wrong("marking the padding in place of the words", "In this course True means keep: a word is where ids is *not* 0.")
def masks_inverted(ids):
    padded = ids == 0
    return padded, padded.all(dim=-1)


@wrong(
    "taking the unknown word for padding",
    "Number 1 is <unk>: a word that stands there, though nobody knows which. Only 0 is padding.",
)
def masks_drop_unknown(ids):
    word_mask = ids > 1
    return word_mask, word_mask.any(dim=-1)


@wrong(
    "asking that *all* words of a sentence are real",
    "Then a sentence that is shorter than the longest one would not exist. One real word is enough: any.",
)
def masks_all_words(ids):
    word_mask = ids != 0
    return word_mask, word_mask.all(dim=-1)


@wrong(
    "looking along the sentences rather than along the words",
    "The axis that disappears is the last one, W: any(dim=-1).",
)
def masks_wrong_axis(ids):
    word_mask = ids != 0
    return word_mask, word_mask.any(dim=1)


@wrong(
    "the numbers 0 and 1 in place of False and True",
    "Attention wants boolean masks: the comparison gives one, no .float() and no .int() after it.",
)
def masks_as_numbers(ids):
    word_mask = (ids != 0).float()
    return word_mask, word_mask.amax(dim=-1)


@wrong(
    "counting where it should mask",
    "How many words a sentence has is a length. The mask only says whether there is one.",
)
def masks_lengths(ids):
    word_mask = ids != 0
    return word_mask, word_mask.sum(dim=-1)


@wrong("keeping an axis of length 1 in the sentence mask", "It should be (B, S): leave keepdim out.")
def masks_keepdim(ids):
    word_mask = ids != 0
    return word_mask, word_mask.any(dim=-1, keepdim=True)


@wrong(
    "saying of every sentence that it exists",
    "A row of padding alone is no sentence. Ask whether any of its words is real.",
)
def masks_every_sentence(ids):
    return ids != 0, torch.ones(ids.shape[:2], dtype=torch.bool, device=ids.device)


@wrong("only the word mask", says="it should return 2 things")
def masks_one_of_two(ids):
    return ids != 0


# 7.2 AttentionPool --------------------------------------------------------------------------------------------------


class _Pool(nn.Module):
    def __init__(self, d, d_attention):
        super().__init__()
        self.projection = nn.Linear(d, d_attention)
        self.query = nn.Parameter(torch.randn(d_attention) / math.sqrt(d_attention))

    def scores(self, h):
        return torch.tanh(self.projection(h)) @ self.query

    def weigh(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1) * mask

    def forward(self, h, mask):
        weights = self.weigh(self.scores(h), mask)
        return (weights[:, :, None] * h).sum(dim=1), weights


wrong = mistakes_of("AttentionPool")


@wrong(
    "softmax over -inf in a row that is all padding",
    "Such a row is 0/0, NaN. masked_softmax keeps it from arising: it fills with a finite number, and sets the weights "
    "of padding to 0.",
)
class PoolInfinity(_Pool):
    def weigh(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)


@wrong(
    "replacing NaN after it has reached the average",
    "The values look right, but the gradient that goes back to h is multiplied by the weights, and 0 times NaN is NaN. "
    "Keep it from arising: a finite fill, then times the mask.",
)
class PoolNanToNum(_Pool):
    def forward(self, h, mask):
        weights = torch.softmax(self.scores(h).masked_fill(~mask, -torch.inf), dim=-1)
        return torch.nan_to_num((weights[:, :, None] * h).sum(dim=1)), torch.nan_to_num(weights)


@wrong(
    "equal weights in a row that is all padding",
    "Where nothing is real the weights should be 0: multiply by the mask after the softmax.",
)
class PoolUniformPadding(_Pool):
    def weigh(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)


@wrong(
    "leaving the mask out", "Padding then takes part of the weight. Give it the lowest finite score before the softmax."
)
class PoolUnmasked(_Pool):
    def weigh(self, scores, mask):
        return torch.softmax(scores, dim=-1)


@wrong(
    "masking after the softmax alone",
    "Padding had its part of the sum already, so the weights of real words sum to less than 1. Fill the scores first.",
)
class PoolMaskedLate(_Pool):
    def weigh(self, scores, mask):
        return torch.softmax(scores, dim=-1) * mask


@wrong(
    "multiplying the scores by the mask before the softmax",
    "A score of 0 is not low: e^0 = 1. Padding needs the lowest score there is.",
)
class PoolScoresTimesMask(_Pool):
    def weigh(self, scores, mask):
        return torch.softmax(scores * mask, dim=-1) * mask


@wrong(
    "filling the places that are real",
    "masked_fill writes where its argument is True. The mask is True where a word is kept, so pass ~mask.",
)
class PoolInverted(_Pool):
    def weigh(self, scores, mask):
        return torch.softmax(scores.masked_fill(mask, torch.finfo(scores.dtype).min), dim=-1) * mask


_LOW = "filling padding with a number that is not low enough, such as -100 or -10,000,"
_LOWER = "A real score can lie below it, and then padding wins. torch.finfo(scores.dtype).min is the lowest there is."


@wrong(_LOW, _LOWER)
class PoolFillsHundred(_Pool):
    def weigh(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask, -100.0), dim=-1) * mask


@wrong(_LOW, _LOWER)
class PoolFillsTenThousand(_Pool):
    def weigh(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask, -1e4), dim=-1) * mask


@wrong(
    "one maximum for the whole tensor",
    "A row whose scores lie far below those of another row then has nothing but zeros: 0/0. Each row has a maximum of "
    "its own: amax(dim=-1, keepdim=True).",
)
class PoolOneMaximum(_Pool):
    def weigh(self, scores, mask):
        powers = torch.exp(scores - scores[mask].max()) * mask
        return powers / (powers.sum(dim=-1, keepdim=True) + ~mask.any(dim=-1, keepdim=True))


@wrong(
    "a maximum that is taken over padding as well",
    "Where padding has the largest score, all real exponentials vanish. Fill the scores before you take the maximum.",
)
class PoolMaximumOfPadding(_Pool):
    def weigh(self, scores, mask):
        powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True)) * mask
        return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)


@wrong(
    "multiplying weights (N, T) with vectors (N, T, d)",
    "Their axes do not line up. The weights need a third axis, weights[:, :, None], before they meet the vectors.",
)
class PoolTimesVectors(_Pool):
    def forward(self, h, mask):
        weights = self.weigh(self.scores(h), mask)
        return (weights * h).sum(dim=1), weights


@wrong(
    "weights @ h",
    "@ takes the weights for one matrix, and averages every row's vectors with every row's weights. Give them an axis: "
    "weights[:, None] @ h, or a sum over weights[:, :, None] * h.",
)
class PoolMatrixProduct(_Pool):
    def forward(self, h, mask):
        weights = self.weigh(self.scores(h), mask)
        return weights @ h, weights


@wrong(
    "softmax over the rows rather than within each",
    "The weights of one row sum to 1: softmax runs over T, the last axis.",
)
class PoolWrongAxis(_Pool):
    def weigh(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=0) * mask


@wrong("leaving out tanh", "Without it the score is linear in h: projection and query would collapse into one vector.")
class PoolWithoutTanh(_Pool):
    def scores(self, h):
        return self.projection(h) @ self.query


@wrong(
    "adding the query before tanh and summing up",
    "The query is multiplied with what comes out of tanh, entry by entry, and summed: a dot product.",
)
class PoolQueryInside(_Pool):
    def scores(self, h):
        return torch.tanh(self.projection(h) + self.query).sum(dim=-1)


@wrong(
    "dividing the average by the number of vectors", "The weights sum to 1 already, so the weighted sum is the average."
)
class PoolDividedAgain(_Pool):
    def forward(self, h, mask):
        weights = self.weigh(self.scores(h), mask)
        return (weights[:, :, None] * h).mean(dim=1), weights


@wrong("returning the weighted vectors without summing them", says="pooled has shape")
class PoolNotSummed(_Pool):
    def forward(self, h, mask):
        weights = self.weigh(self.scores(h), mask)
        return weights[:, :, None] * h, weights


@wrong("averaging the projected vectors", "The projection is there for the scores. What is averaged is h itself.")
class PoolOfProjections(_Pool):
    def forward(self, h, mask):
        weights = self.weigh(self.scores(h), mask)
        return (weights[:, :, None] * torch.tanh(self.projection(h))).sum(dim=1), weights


@wrong("a query that is no parameter", says="learned only as nn.Parameter(tensor): query")
class PoolPlainQuery(_Pool):
    def __init__(self, d, d_attention):
        super().__init__(d, d_attention)
        del self.query
        self.query = torch.randn(d_attention)


@wrong("a projection without its bias", says="missing: projection.bias")
class PoolWithoutBias(_Pool):
    def __init__(self, d, d_attention):
        super().__init__(d, d_attention)
        self.projection = nn.Linear(d, d_attention, bias=False)


# 7.3 flatten_documents ----------------------------------------------------------------------------------------------

wrong = mistakes_of("flatten_documents")


@wrong(
    "taking the first sentences of all documents, then the second ones",
    "The sentences of a document stay together: row b·S + s. Do not exchange the axes before you join them.",
)
def flatten_transposed(x):
    return x.transpose(0, 1).flatten(0, 1)


@wrong("one long row for each document", "Join the first axis and the second, B and S, not the second and the third.")
def flatten_words(x):
    return x.flatten(1, 2)


@wrong("one row for everything", "Only B and S become one axis. flatten() without arguments joins them all.")
def flatten_everything(x):
    return x.flatten()


@wrong(
    "joining every axis but the last",
    "Only the first two axes become one. The others stay: x.shape[2:] are their lengths.",
)
def flatten_but_the_last(x):
    return x.reshape(-1, x.shape[-1]) if x.ndim > 3 else x.flatten(0, 1)


@wrong(
    "leaving out the empty sentences",
    "Every document must keep its S rows, or nobody finds the way back. The mask takes care of the empty ones.",
)
def flatten_drops_padding(x):
    rows = x.flatten(0, 1)
    return rows[(rows != 0).flatten(1).any(dim=1)]


@wrong("only the first sentence of each document", "All S sentences become rows: B·S of them.")
def flatten_first_sentence(x):
    return x[:, 0]


@wrong("only the sentences of the first document", "All B documents are laid below each other: B·S rows.")
def flatten_first_document(x):
    return x[0]


@wrong("adding the documents up", "No number changes here; only the shape does.")
def flatten_sums(x):
    return x.sum(dim=0)


@wrong("turning each row's numbers around as well", "The axes behind S stay as they are.")
def flatten_turns_rows(x):
    return x.flatten(0, 1).flip(1)


@wrong("cutting the rows off from the graph", "The embedding behind them is learned: leave .detach() out.")
def flatten_detached(x):
    return x.detach().flatten(0, 1)


# 7.4 HierarchicalAttention ------------------------------------------------------------------------------------------


def _encode(gru, x, mask):
    lengths = mask.sum(dim=-1).clamp(min=1).cpu()
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=x.shape[1])[0]


class _Model(nn.Module):
    """The right model in steps, so that a mistake can replace one of them."""

    def __init__(self, vocabulary, classes, d_word=24, d_hidden=16, d_attention=24):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_word, padding_idx=0)
        self.word_gru = nn.GRU(d_word, d_hidden, batch_first=True, bidirectional=True)
        self.word_pool = _Pool(2 * d_hidden, d_attention)
        self.sentence_gru = nn.GRU(2 * d_hidden, d_hidden, batch_first=True, bidirectional=True)
        self.sentence_pool = _Pool(2 * d_hidden, d_attention)
        self.classifier = nn.Linear(2 * d_hidden, classes)

    def rows(self, x):
        return x.flatten(0, 1)

    def documents(self, x, B):
        return x.unflatten(0, (B, -1))

    def read(self, gru, x, mask):
        return _encode(gru, x, mask)

    def masks(self, ids):
        return ids != 0, (ids != 0).any(-1)

    def level(self, ids, mask):
        rows = self.rows(ids)
        pooled, weights = self.word_pool(self.read(self.word_gru, self.embedding(rows), mask), mask)
        return self.documents(pooled, len(ids)), self.documents(weights, len(ids))

    def above(self, sentences, mask):
        return self.sentence_pool(self.read(self.sentence_gru, sentences, mask), mask)

    def forward(self, ids):
        word_mask, sentence_mask = self.masks(ids)
        sentences, word_weights = self.level(ids, self.rows(word_mask))
        document, sentence_weights = self.above(sentences, sentence_mask)
        return self.classifier(document), word_weights, sentence_weights


wrong = mistakes_of("HierarchicalAttention")


@wrong(
    "treating empty sentences as sentences",
    "The sentence level needs its own mask, in the encoder and in the pool: the second thing that masks(ids) returns.",
)
class ModelWithoutSentenceMask(_Model):
    def masks(self, ids):
        return ids != 0, torch.ones(ids.shape[:2], dtype=torch.bool, device=ids.device)


@wrong(
    "treating padding as words",
    "The word level needs the word mask, flattened to (B·S, W), in the encoder and in the pool.",
)
class ModelWithoutWordMask(_Model):
    def masks(self, ids):
        return torch.ones(ids.shape, dtype=torch.bool, device=ids.device), (ids != 0).any(-1)


@wrong(
    "calling the GRUs without their lengths",
    "The half that comes from the right then starts in the padding. Use encode(gru, x, mask), which packs the rows.",
)
class ModelUnpacked(_Model):
    def read(self, gru, x, mask):
        return gru(x)[0]


@wrong(
    "calling the word GRU without its lengths",
    "The half that comes from the right then starts in the padding. Use encode(gru, x, mask) on both levels.",
)
class ModelUnpackedWords(_Model):
    def read(self, gru, x, mask):
        return gru(x)[0] if gru is self.word_gru else super().read(gru, x, mask)


@wrong(
    "rows that go back to other documents than they came from",
    "Rows are in the order b·S + s. unflatten(rows, len(ids)) splits the first axis into B and S, nothing is "
    "transposed.",
)
class ModelMixesDocuments(_Model):
    def documents(self, x, B):
        return x.unflatten(0, (-1, B)).transpose(0, 1)


@wrong(
    "leaving the sentence GRU out",
    "Sentences should know their neighbours too: encode them with self.sentence_gru before they are pooled.",
)
class ModelWithoutSentenceGru(_Model):
    def above(self, sentences, mask):
        return self.sentence_pool(sentences, mask)


@wrong("using the word pool on both levels", "Sentences have a question of their own: self.sentence_pool.")
class ModelOnePool(_Model):
    def above(self, sentences, mask):
        return self.word_pool(self.read(self.sentence_gru, sentences, mask), mask)


@wrong(
    "probabilities in place of logits",
    "Leave the softmax to the loss: nn.functional.cross_entropy wants the scores as the classifier gives them.",
)
class ModelSoftmax(_Model):
    def forward(self, ids):
        logits, word_weights, sentence_weights = super().forward(ids)
        return torch.softmax(logits, dim=-1), word_weights, sentence_weights


@wrong(
    "leaving the word weights as rows",
    "Two things come back from the word pool, and both have to be unflattened: the weights too.",
)
class ModelWeightsAsRows(_Model):
    def forward(self, ids):
        logits, word_weights, sentence_weights = super().forward(ids)
        return logits, word_weights.flatten(0, 1), sentence_weights


@wrong(
    "the shares of the words in the document in place of their weights in the sentence",
    "Return the word weights as the pool gave them, so that they sum to 1 in each sentence. Shares come in section 7.",
)
class ModelShares(_Model):
    def forward(self, ids):
        logits, word_weights, sentence_weights = super().forward(ids)
        return logits, word_weights * sentence_weights[:, :, None], sentence_weights


@wrong(
    "the mean of the sentences in place of their attention pool",
    "The document is what self.sentence_pool returns first.",
)
class ModelMeanOfSentences(_Model):
    def above(self, sentences, mask):
        states = self.read(self.sentence_gru, sentences, mask)
        _, weights = self.sentence_pool(states, mask)
        return (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), weights


@wrong("the logits alone", says="it should return 3 things")
class ModelLogitsAlone(_Model):
    def forward(self, ids):
        return super().forward(ids)[0]


# 7.5 what_changes ---------------------------------------------------------------------------------------------------


def _reach(ids, b, s):
    """What the word reaches: documents (B,), words of its sentence (B, S, W), sentences of its document (B, S)."""
    documents = torch.arange(len(ids)) == b
    real = (ids != 0).any(-1)
    words = torch.zeros_like(ids, dtype=torch.bool)
    words[b, s] = ids[b, s] != 0
    return documents, words, documents[:, None] & real


def _shared(rows):
    """False where only one place of a row is left: its weight is 1, whatever happens."""
    return rows & (rows.sum(-1, keepdim=True) > 1)


wrong = mistakes_of("what_changes")


@wrong(
    "a change in every document of the batch",
    "Documents lie in one tensor, but no step of the model mixes them: only document b changes.",
)
def changes_everywhere(ids, b, s, w):
    return torch.ones(len(ids), dtype=torch.bool), _shared(ids != 0), _shared((ids != 0).any(-1))


@wrong(
    "a change of the replaced word's weight alone",
    "The weights of a sentence sum to 1, and the GRU has carried the word to its neighbours: all weights of the "
    "sentence change.",
)
def changes_one_word(ids, b, s, w):
    documents, _, sentences = _reach(ids, b, s)
    words = torch.zeros_like(ids, dtype=torch.bool)
    words[b, s, w] = int((ids[b, s] != 0).sum()) > 1
    return documents, words, _shared(sentences)


@wrong(
    "a change from the replaced word on, to the right",
    "One reader of the GRU comes from the right, so the words before it change too. And weights that sum to 1 cannot "
    "change on one side alone.",
)
def changes_to_the_right(ids, b, s, w):
    documents, words, sentences = _reach(ids, b, s)
    return documents, _shared(words) & (torch.arange(ids.shape[2]) >= w), _shared(sentences)


@wrong(
    "a change of the word weights in all sentences of the document",
    "The words of a sentence are weighed without a look at any other: the word GRU and the word pool see one row.",
)
def changes_words_everywhere(ids, b, s, w):
    documents, _, sentences = _reach(ids, b, s)
    return documents, _shared((ids != 0) & documents[:, None, None]), _shared(sentences)


@wrong(
    "a change of one sentence's weight alone",
    "The sentence weights of a document sum to 1, and the sentence GRU reads all of its sentences: all of them change.",
)
def changes_one_sentence(ids, b, s, w):
    documents, words, sentences = _reach(ids, b, s)
    return documents, _shared(words), _shared(sentences) & (torch.arange(ids.shape[1]) == s)


@wrong(
    "sentence weights that stay as they are",
    "A sentence's vector is an average of its words' states, which change; its score is computed from that vector.",
)
def changes_no_sentence(ids, b, s, w):
    documents, words, sentences = _reach(ids, b, s)
    return documents, _shared(words), torch.zeros_like(sentences)


@wrong(
    "a change at padding, too,",
    "Padding has weight 0 before and after: start from the two masks.",
)
def changes_at_padding(ids, b, s, w):
    documents = torch.arange(len(ids)) == b
    words = torch.zeros_like(ids, dtype=torch.bool)
    words[b, s] = int((ids[b, s] != 0).sum()) > 1
    alone = int((ids[b] != 0).any(-1).sum()) < 2
    return documents, words, documents[:, None].expand(-1, ids.shape[1]) & (not alone)


@wrong(
    "a change of weights that have nobody to share with",
    "A softmax over one place is 1, whatever the score: the weight of a word alone in its sentence stays, and so does "
    "that of a sentence alone in its document.",
)
def changes_the_lonely(ids, b, s, w):
    return _reach(ids, b, s)


@wrong(
    "a change of the weight of a word that is alone in its sentence",
    "A softmax over one place is 1, whatever the score. For sentences it is right.",
)
def changes_the_lonely_word(ids, b, s, w):
    documents, words, sentences = _reach(ids, b, s)
    return documents, words, _shared(sentences)


@wrong(
    "a change of the weight of a sentence that is alone in its document",
    "A softmax over one place is 1, whatever the score. For words it is right.",
)
def changes_the_lonely_sentence(ids, b, s, w):
    documents, words, sentences = _reach(ids, b, s)
    return documents, _shared(words), sentences


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


def _fit(model, ids, labels, epochs, rate, batch, together=lambda found: sum(found) / len(found), order=None):
    model = _example(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for epoch in range(epochs):
        rows_of = _batches(len(ids), epoch, ids.device) if order is None else order(epoch)
        losses.append(together([batch(model, optimiser, ids, labels, rows) for rows in rows_of]))
    return torch.tensor(losses)


def _loss(model, ids, labels, rows):
    return nn.functional.cross_entropy(model(ids[rows])[0], labels[rows])


def _step(optimiser, loss):
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()


def _right_batch(model, optimiser, ids, labels, rows):
    return _step(optimiser, _loss(model, ids, labels, rows))


wrong = mistakes_of("fit")


@wrong(
    "never forgetting the gradients",
    "backward() adds to what is there. Call zero_grad() in every batch, before backward().",
)
def fit_accumulates(model, ids, labels, epochs, rate):
    def batch(model, optimiser, ids, labels, rows):
        loss = _loss(model, ids, labels, rows)
        loss.backward()
        optimiser.step()
        return loss.item()

    return _fit(model, ids, labels, epochs, rate, batch)


@wrong(
    "a model that never moves",
    "The loss stays as it was. Is there a step() in every batch, after backward(), and no zero_grad() between the two?",
)
def fit_without_step(model, ids, labels, epochs, rate):
    return _fit(model, ids, labels, epochs, rate, lambda m, _, x, y, rows: _loss(m, x, y, rows).item())


@wrong("one step for each epoch", "Indent the four steps, so that they are done for every batch.")
def fit_one_step_an_epoch(model, ids, labels, epochs, rate):
    model = _example(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for epoch in range(epochs):
        found = [_loss(model, ids, labels, rows) for rows in _batches(len(ids), epoch, ids.device)]
        _step(optimiser, found[-1])
        losses.append(sum(x.item() for x in found) / len(found))
    return torch.tensor(losses)


@wrong(
    "a softmax before the cross-entropy",
    "nn.functional.cross_entropy does the softmax itself. Twice, it makes every prediction nearly even; give it the "
    "logits as they are.",
)
def fit_double_softmax(model, ids, labels, epochs, rate):
    def batch(model, optimiser, ids, labels, rows):
        p = torch.softmax(model(ids[rows])[0], dim=-1)
        return _step(optimiser, nn.functional.cross_entropy(p, labels[rows]))

    return _fit(model, ids, labels, epochs, rate, batch)


@wrong(
    "labels that belong to other documents",
    "The documents of a batch are ids[rows], so their labels are labels[rows], not the first ones of all.",
)
def fit_misaligned(model, ids, labels, epochs, rate):
    def batch(model, optimiser, ids, labels, rows):
        return _step(optimiser, nn.functional.cross_entropy(model(ids[rows])[0], labels[: len(rows)]))

    return _fit(model, ids, labels, epochs, rate, batch)


@wrong(
    "the loss of the last batch of each epoch", "Collect the losses of all batches of an epoch, and append their mean."
)
def fit_last_loss(model, ids, labels, epochs, rate):
    return _fit(model, ids, labels, epochs, rate, _right_batch, together=lambda found: found[-1])


@wrong(
    "a mean in which each batch counts as often as it has documents",
    "A batch counts once, however many documents it has: the mean of the batches' losses, sum(found) / len(found).",
)
def fit_weighs_batches(model, ids, labels, epochs, rate):
    sizes = [len(rows) for rows in _batches(len(ids), 0, ids.device)]

    def together(found):
        return sum(x * size for x, size in zip(found, sizes, strict=True)) / len(ids)

    return _fit(model, ids, labels, epochs, rate, _right_batch, together=together)


@wrong("the sum of the batches' losses", "Divide by the number of batches: it should be their mean.")
def fit_sum_of_losses(model, ids, labels, epochs, rate):
    return _fit(model, ids, labels, epochs, rate, _right_batch, together=sum)


@wrong(
    "dividing the sum of the losses by the number of documents",
    "Each loss is the mean over a batch already. Divide by the number of batches.",
)
def fit_mean_over_documents(model, ids, labels, epochs, rate):
    return _fit(model, ids, labels, epochs, rate, _right_batch, together=lambda found: sum(found) / len(ids))


@wrong("the same order of documents in every epoch", "Pass the epoch on: batches(len(ids), epoch).")
def fit_same_order(model, ids, labels, epochs, rate):
    def order(epoch):
        return _batches(len(ids), 0, ids.device)

    return _fit(model, ids, labels, epochs, rate, _right_batch, order=order)


@wrong(
    "all documents in one batch",
    "Go through batches(len(ids), epoch): a step after every 32 documents, not after all of them.",
)
def fit_one_batch(model, ids, labels, epochs, rate):
    def order(epoch):
        return [torch.arange(len(ids), device=ids.device)]

    return _fit(model, ids, labels, epochs, rate, _right_batch, order=order)


@wrong(
    "climbing up rather than down",
    "Cross-entropy is what should become small: take it as cross_entropy returns it, without a minus.",
)
def fit_uphill(model, ids, labels, epochs, rate):
    def batch(model, optimiser, ids, labels, rows):
        return -_step(optimiser, -_loss(model, ids, labels, rows))

    return _fit(model, ids, labels, epochs, rate, batch)


@wrong("one number for each batch", says="losses has shape")
def fit_every_batch(model, ids, labels, epochs, rate):
    found = []

    def together(losses):
        found.extend([0.0, *losses])
        return 0.0

    _fit(model, ids, labels, epochs, rate, _right_batch, together=together)
    return torch.tensor(found)


# 7.7 top_words ------------------------------------------------------------------------------------------------------


def _pairs(places, W):
    return torch.stack([places // W, places % W], dim=-1)


wrong = mistakes_of("top_words")


@wrong(
    "the words with the largest weights in their own sentences",
    "Half of an unimportant sentence is little. Multiply by the sentence's weight first: that is the share.",
)
def top_without_sentences(word_weights, sentence_weights, k):
    return _pairs(word_weights.flatten(1).topk(k, dim=-1).indices, word_weights.shape[-1])


@wrong(
    "adding the two weights", "A share is a product: the sentence's part of the document, and the word's part of that."
)
def top_of_sums(word_weights, sentence_weights, k):
    return _pairs((word_weights + sentence_weights[:, :, None]).flatten(1).topk(k).indices, word_weights.shape[-1])


@wrong("places in the flattened row", says="places has shape")
def top_flat(word_weights, sentence_weights, k):
    return (word_weights * sentence_weights[:, :, None]).flatten(1).topk(k).indices


@wrong(
    "(word, sentence) in place of (sentence, word)",
    "The quotient says which sentence, and it comes first; the remainder is the word.",
)
def top_swapped(word_weights, sentence_weights, k):
    places = (word_weights * sentence_weights[:, :, None]).flatten(1).topk(k).indices
    return _pairs(places, word_weights.shape[-1]).flip(-1)


@wrong(
    "dividing by the number of sentences",
    "In the flattened row a sentence takes up W places, the number of words: divide by share.shape[-1].",
)
def top_divides_by_sentences(word_weights, sentence_weights, k):
    places = (word_weights * sentence_weights[:, :, None]).flatten(1).topk(k).indices
    return _pairs(places, word_weights.shape[1])


@wrong(
    "the words with the *smallest* shares",
    "topk takes the largest unless you say largest=False; argsort starts from the smallest.",
)
def top_smallest(word_weights, sentence_weights, k):
    share = word_weights * sentence_weights[:, :, None]
    return _pairs(share.flatten(1).argsort(dim=-1)[:, :k], word_weights.shape[-1])


@wrong(
    "words of the strongest sentence alone",
    "A word of another sentence can have a larger share. Compare all words of the document.",
)
def top_of_best_sentence(word_weights, sentence_weights, k):
    bonus = nn.functional.one_hot(sentence_weights.argmax(-1), sentence_weights.shape[1])[:, :, None]
    return _pairs((word_weights + 2 * bonus).flatten(1).topk(k).indices, word_weights.shape[-1])


@wrong(
    "the same words for every document, those of the whole batch,",
    "Each document has its own top words: flatten(1) keeps the first axis.",
)
def top_of_the_batch(word_weights, sentence_weights, k):
    share = (word_weights * sentence_weights[:, :, None]).sum(dim=0, keepdim=True)
    return _pairs(share.flatten(1).topk(k).indices, word_weights.shape[-1]).expand(len(word_weights), -1, -1)


@wrong(
    "the right words from the smallest share to the largest",
    "The word with the largest share comes first, as topk gives it.",
)
def top_ascending(word_weights, sentence_weights, k):
    share = (word_weights * sentence_weights[:, :, None]).flatten(1)
    return _pairs(share.topk(k).indices.flip(-1), word_weights.shape[-1])


@wrong("a division that leaves fractions", "Places are whole numbers: // in place of /.")
def top_fractions(word_weights, sentence_weights, k):
    places = (word_weights * sentence_weights[:, :, None]).flatten(1).topk(k).indices
    W = word_weights.shape[-1]
    return torch.stack([places / W, (places % W).float()], dim=-1)


# 7.8 deletion_test --------------------------------------------------------------------------------------------------


def _deleted(ids, places, number=1):
    deleted = ids.clone()
    deleted[torch.arange(len(ids), device=ids.device)[:, None], places[..., 0], places[..., 1]] = number
    return deleted


def _p(model, ids):
    with torch.no_grad():
        return torch.softmax(_example(model)(ids)[0], dim=-1)


def _fall(before, after):
    return (before - after).gather(1, before.argmax(-1, keepdim=True))[:, 0]


wrong = mistakes_of("deletion_test")


@wrong(
    "writing into the caller's documents",
    "Then the next test starts from documents with holes. Write into ids.clone().",
)
def deletion_in_place(model, ids, places):
    before = _p(model, ids)
    ids[torch.arange(len(ids), device=ids.device)[:, None], places[..., 0], places[..., 1]] = 1
    return _fall(before, _p(model, ids))


@wrong(
    "writing padding in place of the unknown word",
    "0 says that there is no word, and the encoder counts on padding to stand at the end. Write UNKNOWN.",
)
def deletion_with_padding(model, ids, places):
    return _fall(_p(model, ids), _p(model, _deleted(ids, places, 0)))


@wrong(
    "the fall of the largest probability, whichever class has it,",
    "After a deletion another class may be on top. Follow the class that was predicted before.",
)
def deletion_of_the_maximum(model, ids, places):
    return _p(model, ids).amax(-1) - _p(model, _deleted(ids, places)).amax(-1)


@wrong(
    "choosing the class after the deletion",
    "The prediction in question is the one that the model made of the whole document: argmax of the probabilities "
    "before.",
)
def deletion_class_after(model, ids, places):
    before, after = _p(model, ids), _p(model, _deleted(ids, places))
    return (before - after).gather(1, after.argmax(-1, keepdim=True))[:, 0]


@wrong(
    "a fall with its sign turned around", "Before minus after: where the probability goes down, the fall is positive."
)
def deletion_sign(model, ids, places):
    return -_fall(_p(model, ids), _p(model, _deleted(ids, places)))


@wrong("the fall of the logits", "A logit means nothing by itself. Take torch.softmax over the last axis first.")
def deletion_of_logits(model, ids, places):
    with torch.no_grad():
        before, after = _example(model)(ids)[0], _example(model)(_deleted(ids, places))[0]
    return _fall(before, after)


@wrong("reading the places as (word, sentence)", "places[..., 0] is the sentence and places[..., 1] the word.")
def deletion_swapped(model, ids, places):
    S, W = ids.shape[1:]
    turned = torch.stack([places[..., 1] % S, places[..., 0] % W], dim=-1)
    return _fall(_p(model, ids), _p(model, _deleted(ids, turned)))


@wrong("deleting the first of the k words only", "All k places of a document are deleted together.")
def deletion_of_one(model, ids, places):
    return _fall(_p(model, ids), _p(model, _deleted(ids, places[:, :1])))


@wrong(
    "deleting the words of all documents in each of them",
    "Each document has its own places. The first index is torch.arange(B)[:, None], not a colon.",
)
def deletion_everywhere(model, ids, places):
    deleted = ids.clone()
    deleted[:, places[..., 0].flatten(), places[..., 1].flatten()] = 1
    return _fall(_p(model, ids), _p(model, deleted))


@wrong(
    "keeping the axis that gather leaves",
    "gather gives (B, 1). One number for each document: drop the last axis, by [:, 0].",
)
def deletion_keeps_axis(model, ids, places):
    before, after = _p(model, ids), _p(model, _deleted(ids, places))
    return (before - after).gather(1, before.argmax(-1, keepdim=True))


@wrong("one number for all documents", says="fall has shape")
def deletion_mean(model, ids, places):
    return _fall(_p(model, ids), _p(model, _deleted(ids, places))).mean().expand(1, 1)


@wrong(
    "keeping the top words and deleting the rest",
    "That asks whether they suffice. Here they are taken away, and the rest stays.",
)
def deletion_of_the_rest(model, ids, places):
    kept = _deleted(torch.zeros_like(ids), places, 1).bool()
    return _fall(_p(model, ids), _p(model, torch.where(kept | (ids == 0), ids, torch.ones_like(ids))))


# 7.9 counterexample -------------------------------------------------------------------------------------------------

wrong = mistakes_of("counterexample")


@wrong("no empty sentence", says="both implementations give the same")
def counterexample_padded_words():
    return torch.tensor([[[[1.0], [2.0]], [[3.0], [0.0]]]]), torch.tensor([[[True, True], [True, False]]])


@wrong("nothing padded", says="both implementations give the same")
def counterexample_full():
    return torch.ones(1, 2, 3, 2), torch.ones(1, 2, 3, dtype=torch.bool)


@wrong("a document without a word", says="a document has no word at all")
def counterexample_empty_document():
    return torch.ones(1, 2, 3, 1), torch.zeros(1, 2, 3, dtype=torch.bool)


@wrong("a mask of numbers", says="it should be boolean, True = keep")
def counterexample_float_mask():
    return torch.ones(1, 2, 2, 1), torch.tensor([[[1.0, 1.0], [0.0, 0.0]]])


@wrong("NaN in the vectors", says="no finite result")
def counterexample_nan():
    return torch.full((1, 2, 2, 1), torch.nan), torch.tensor([[[True, True], [False, False]]])


@wrong("vectors without the batch axis", says="should have the axes (B, S, W, d)")
def counterexample_three_axes():
    return torch.ones(2, 2, 1), torch.tensor([[True, True], [False, False]])


@wrong("the vectors alone", says="it should return two tensors")
def counterexample_one_tensor():
    return torch.ones(1, 2, 2, 1)


@wrong("a mask as a list", says="the second is a list")
def counterexample_list():
    return torch.ones(1, 2, 2, 1), [[[True, True], [False, False]]]


# 7.10 repaired_documents --------------------------------------------------------------------------------------------


def _published(h, mask, lowest=-torch.inf, mend=lambda x: x):
    scores = h.sum(dim=-1).masked_fill(~mask, lowest)
    weights = torch.softmax(scores, dim=-1)
    sentences = mend((weights[..., None] * h).sum(dim=2))
    real = mask.any(dim=-1)
    sentences = sentences * real[..., None]
    return sentences.sum(dim=1) / real.sum(dim=1, keepdim=True)


wrong = mistakes_of("repaired_documents")


@wrong(
    "the function as it was published",
    "A row of nothing but -inf is NaN after the softmax, and 0 times NaN is NaN. Fill with a finite number, or use "
    "masked_softmax.",
)
def repaired_not_at_all(h, mask):
    return _published(h, mask)


@wrong(
    "replacing NaN by 0 after it has arisen",
    "The values are right and the gradient is NaN: what goes back to h is multiplied by the weights, which are NaN. "
    "Fill with a finite number in place of -inf.",
)
def repaired_nan_to_num(h, mask):
    return _published(h, mask, mend=torch.nan_to_num)


@wrong(
    "replacing NaN in the finished documents",
    "One empty sentence then turns the whole document into 0. The NaN must not arise.",
)
def repaired_at_the_end(h, mask):
    return torch.nan_to_num(_published(h, mask))


@wrong(
    "filling padded words with a score of 0",
    "e^0 = 1: padding then counts like a word. The fill has to be very low, though finite.",
)
def repaired_with_zero(h, mask):
    return _published(h, mask, lowest=0.0)


@wrong(
    "dividing by all S sentences",
    "Empty sentences do not count: divide by how many are real, mask.any(dim=-1).sum(...).",
)
def repaired_divides_by_all(h, mask):
    weights = torch.softmax(h.sum(-1).masked_fill(~mask, torch.finfo(h.dtype).min), dim=-1) * mask
    return (weights[..., None] * h).sum(dim=2).mean(dim=1)


@wrong(
    "counting empty sentences in",
    "With a finite fill an empty sentence becomes the mean of its padding. Multiply by the mask, so that it becomes 0.",
)
def repaired_counts_empty(h, mask):
    weights = torch.softmax(h.sum(-1).masked_fill(~mask, torch.finfo(h.dtype).min), dim=-1)
    return (weights[..., None] * h).sum(dim=2).sum(dim=1) / mask.any(dim=-1).sum(dim=1, keepdim=True)


@wrong("softmax over the sentences", "The words of one sentence share the weight: dim=-1, as it was.")
def repaired_wrong_axis(h, mask):
    weights = torch.softmax(h.sum(-1).masked_fill(~mask, torch.finfo(h.dtype).min), dim=1) * mask
    return (weights[..., None] * h).sum(dim=2).sum(dim=1) / mask.any(dim=-1).sum(dim=1, keepdim=True)


@wrong("equal weights for all words", "Only the empty sentences were wrong. The attention over words stays.")
def repaired_without_attention(h, mask):
    weights = mask / mask.sum(-1, keepdim=True).clamp(min=1)
    return (weights[..., None] * h).sum(dim=2).sum(dim=1) / mask.any(dim=-1).sum(dim=1, keepdim=True)


@wrong(
    "filling padding with a number that is not low enough, such as -100 or -10,000,",
    "A real score can lie below it, and then padding wins. torch.finfo(scores.dtype).min is the lowest there is.",
)
def repaired_fills_hundred(h, mask):
    weights = torch.softmax(h.sum(-1).masked_fill(~mask, -100.0), dim=-1) * mask
    return (weights[..., None] * h).sum(dim=2).sum(dim=1) / mask.any(dim=-1).sum(dim=1, keepdim=True)


@wrong(
    "one maximum for the whole tensor",
    "A sentence whose scores lie far below those of another one then has nothing but zeros. torch.softmax takes a "
    "maximum for each row.",
)
def repaired_one_maximum(h, mask):
    scores = h.sum(-1).masked_fill(~mask, torch.finfo(h.dtype).min)
    powers = torch.exp(scores - scores.max()) * mask
    weights = powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)
    return (weights[..., None] * h).sum(dim=2).sum(dim=1) / mask.any(dim=-1).sum(dim=1, keepdim=True)


@wrong(
    "leaving the mask out of the softmax",
    "Padded words then take part of the weight. Keep masked_fill, with a finite number.",
)
def repaired_unmasked(h, mask):
    weights = torch.softmax(h.sum(-1), dim=-1) * mask
    return (weights[..., None] * h).sum(dim=2).sum(dim=1) / mask.any(dim=-1).sum(dim=1, keepdim=True)
