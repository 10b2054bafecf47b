"""Other right answers to the exercises of lesson 08. Every check and every hidden test accepts all of them."""

import heapq

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence

from attention_course.authoring import alternatives_of

PAD, BOS, EOS = 0, 1, 2

# 8.1 Encoder --------------------------------------------------------------------------------------------------------


class _Reader(nn.Module):
    def __init__(self, words, d_embed, d_hidden, **options):
        super().__init__()
        self.embed = nn.Embedding(words, d_embed, **options)
        self.rnn = nn.GRU(d_embed, d_hidden, batch_first=True, bidirectional=True)


right = alternatives_of("Encoder")


@right
class EncoderSortsByHand(_Reader):
    def forward(self, source, lengths):
        order = torch.argsort(lengths, descending=True)
        packed = pack_padded_sequence(self.embed(source[order]), lengths[order].cpu(), batch_first=True)
        states, last = self.rnn(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        back = torch.argsort(order)
        return states[back], last[:, back]


@right
class EncoderSentenceBySentence(_Reader):
    def forward(self, source, lengths):
        read = [self.rnn(self.embed(row[:n])[None]) for row, n in zip(source, lengths.tolist(), strict=True)]
        states = pad_sequence([states[0] for states, _ in read], batch_first=True)
        states = F.pad(states, (0, 0, 0, source.shape[1] - states.shape[1]))
        return states, torch.cat([last for _, last in read], dim=1)


@right
class EncoderPacksAList(_Reader):
    def __init__(self, words, d_embed, d_hidden):
        super().__init__(words, d_embed, d_hidden, padding_idx=PAD)

    def forward(self, source, lengths):
        rows = [self.embed(row[:n]) for row, n in zip(source, lengths.tolist(), strict=True)]
        states, last = self.rnn(pack_sequence(rows, enforce_sorted=False))
        padded = torch.zeros(*source.shape, 2 * self.rnn.hidden_size, dtype=last.dtype, device=last.device)
        unpacked, _ = pad_packed_sequence(states, batch_first=True)
        return torch.cat([unpacked, padded[:, unpacked.shape[1] :]], dim=1), last


# 8.2 bridge ---------------------------------------------------------------------------------------------------------

right = alternatives_of("bridge")


@right
def bridge_by_parts(last, W, b):
    H = last.shape[-1]
    return torch.tanh(last[-2] @ W[:H] + last[-1] @ W[H:] + b)


@right
def bridge_transposes(last, W, b):
    both = last[-2:].transpose(0, 1).reshape(last.shape[1], -1)
    return torch.tanh(F.linear(both, W.T, b))


@right
def bridge_by_layers(last, W, b):
    by_layer = last.view(-1, 2, last.shape[1], last.shape[2])  # (L, 2, B, H)
    return torch.tanh(torch.einsum("ebh,ehd->bd", by_layer[-1], W.view(2, last.shape[2], -1)) + b)


@right
def bridge_sentence_by_sentence(last, W, b):
    rows = [torch.tanh(torch.cat([last[-2, i], last[-1, i]]) @ W + b) for i in range(last.shape[1])]
    return torch.stack(rows)


# 8.3 attend_step ----------------------------------------------------------------------------------------------------

right = alternatives_of("attend_step")


@right
def attend_by_powers(states, keys, values, mask, W_q, w):
    scores = torch.einsum("btsa,a->bts", torch.tanh((states @ W_q).unsqueeze(2) + keys.unsqueeze(1)), w)
    scores = scores.masked_fill(~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True).detach()) * mask.unsqueeze(1)
    weights = powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)
    return torch.einsum("bts,bsv->btv", weights, values), weights


@right
def attend_step_by_step(states, keys, values, mask, W_q, w):
    contexts, maps = [], []
    for t in range(states.shape[1]):
        scores = torch.tanh((states[:, t] @ W_q)[:, None] + keys) @ w  # (B, S)
        weights = torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1).masked_fill(~mask, 0.0)
        contexts.append((weights[..., None] * values).sum(1))
        maps.append(weights)
    return torch.stack(contexts, dim=1), torch.stack(maps, dim=1)


@right
def attend_guards_empty_rows(states, keys, values, mask, W_q, w):
    scores = torch.tanh((states @ W_q)[:, :, None] + keys[:, None]) @ w
    allowed = mask | ~mask.any(dim=-1, keepdim=True)  # a row with nothing to look at looks everywhere for a moment
    weights = torch.softmax(scores.masked_fill(~allowed[:, None], -torch.inf), dim=-1)
    weights = weights * mask[:, None].to(weights.dtype)
    return weights @ values, weights


@right
def attend_clears_empty_rows(states, keys, values, mask, W_q, w):
    scores = torch.tanh((states @ W_q)[:, :, None] + keys[:, None]) @ w
    weights = torch.softmax(scores.masked_fill(~mask[:, None], -torch.inf), dim=-1)
    weights = weights.masked_fill(~mask.any(dim=-1)[:, None, None], 0.0)
    return weights @ values, weights


# 8.4 masked_cross_entropy -------------------------------------------------------------------------------------------

right = alternatives_of("masked_cross_entropy")


@right
def loss_ignores_padding(logits, target):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


@right
def loss_exchanges_axes(logits, target):
    return F.cross_entropy(logits.transpose(1, 2), target, ignore_index=PAD)


@right
def loss_of_real_places(logits, target):
    real = target != PAD
    return F.cross_entropy(logits[real], target[real])


@right
def loss_sum_by_count(logits, target):
    real = (target != PAD).to(logits.dtype)
    costs = torch.logsumexp(logits, dim=-1) - logits.gather(-1, target[..., None]).squeeze(-1)
    return (costs * real).sum() / real.sum()


# 8.5 greedy_decode --------------------------------------------------------------------------------------------------


def step(memory, words, state):
    return memory[state, words], words


right = alternatives_of("greedy_decode")


@right
def greedy_all_rounds(memory, state, limit):
    words = torch.tensor([BOS] * len(state))
    columns = []
    for _ in range(limit):
        scores, state = step(memory, words, state)
        words = scores.argmax(1)
        columns.append(words.tolist())
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [row[: [*row, EOS].index(EOS)] for row in rows]


@right
def greedy_appends_to_lists(memory, state, limit):
    rows, ended = [[] for _ in state], [False] * len(state)
    words = torch.full((len(state),), BOS)
    for _ in range(limit):
        scores, state = step(memory, words, state)
        words = scores.max(dim=-1).indices
        for i, word in enumerate(words.tolist()):
            ended[i] = ended[i] or word == EOS
            if not ended[i]:
                rows[i].append(word)
    return rows


@right
def greedy_fills_with_eos(memory, state, limit):
    words, written = torch.full((len(state),), BOS), []
    ended = torch.zeros(len(state), dtype=torch.bool)
    while not ended.all() and len(written) < limit:
        scores, state = step(memory, words, state)
        words = torch.where(ended, EOS, scores.argmax(-1))
        ended = ended | (words == EOS)
        written.append(words)
    return [[w for w in row if w != EOS] for row in torch.stack(written, 1).tolist()]


# 8.6 beam_search ----------------------------------------------------------------------------------------------------

right = alternatives_of("beam_search")


@right
def beam_in_tensors(memory, state, beam, limit):
    words, total = torch.full((1, 1), BOS), torch.zeros(1)
    for _ in range(limit):
        ended = (words[:, -1] == EOS) | (words[:, -1] == -1)
        scores, after = step(memory, words[:, -1].clamp(min=0), state)
        scores = scores.clone()
        scores[ended] = -torch.inf
        grown = torch.cat([total[:, None] + scores, torch.where(ended, total, -torch.inf)[:, None]], dim=1)
        total, place = grown.flatten().topk(min(beam, grown.numel()))
        parent, word = place // grown.shape[1], place % grown.shape[1]
        word = torch.where(word == scores.shape[1], -1, word)  # the extra column: stay as you are
        words, state = torch.cat([words[parent], word[:, None]], dim=1), after[parent]
        alive = total > -torch.inf
        words, total, state = words[alive], total[alive], state[alive]
    lengths = (words != -1).sum(1) - 1
    best = int((total / lengths).argmax())
    return [w for w in words[best, 1:].tolist() if w not in (EOS, -1)], (total / lengths)[best].item()


@right
def beam_extends_by_every_word(memory, state, beam, limit):
    kept = [{"total": 0.0, "words": [], "state": state}]
    for _ in range(limit):
        grown = []
        for h in kept:
            if h["words"] and h["words"][-1] == EOS:
                grown.append(h)
                continue
            before = h["words"][-1] if h["words"] else BOS
            scores, after = step(memory, torch.tensor([before]), h["state"])
            for word, s in enumerate(scores[0].tolist()):
                grown.append({"total": h["total"] + s, "words": [*h["words"], word], "state": after})
        kept = heapq.nlargest(beam, grown, key=lambda h: h["total"])
    best = max(kept, key=lambda h: h["total"] / len(h["words"]))
    return [w for w in best["words"] if w != EOS], best["total"] / len(best["words"])


@right
def beam_with_an_early_end(memory, state, beam, limit):
    hypotheses = [(torch.tensor(0.0), (BOS,), state)]
    while limit and not all(words[-1] == EOS for _, words, _ in hypotheses):
        limit -= 1
        grown = []
        for total, words, before in hypotheses:
            if words[-1] == EOS:
                grown.append((total, words, before))
            else:
                scores, after = step(memory, torch.tensor([words[-1]]), before)
                grown += [(total + scores[0, w], (*words, w), after) for w in range(scores.shape[1])]
        grown.sort(key=lambda h: -h[0])
        hypotheses = grown[:beam]
    rates = [total / (len(words) - 1) for total, words, _ in hypotheses]
    best = max(range(len(rates)), key=rates.__getitem__)
    words = list(hypotheses[best][1][1:])
    return words[:-1] if words[-1] == EOS else words, float(rates[best])


@right
def beam_keeps_the_finished_apart(memory, state, beam, limit):
    going, done = [(0.0, [], state)], []
    for _ in range(limit):
        grown = []
        for total, words, before in going:
            scores, after = step(memory, torch.tensor([words[-1] if words else BOS]), before)
            grown += [(total + s, [*words, w], after) for w, s in enumerate(scores[0].tolist())]
        best = sorted(done + grown, key=lambda h: -h[0])[:beam]  # both kinds compete for the places
        done, going = [h for h in best if h[1][-1] == EOS], [h for h in best if h[1][-1] != EOS]
        if not going:
            break
    score, words = max((total / len(words), words) for total, words, _ in done + going)
    return [w for w in words if w != EOS], score


# 8.7 alignment_error_rate -------------------------------------------------------------------------------------------

right = alternatives_of("alignment_error_rate")


@right
def aer_loop(found, gold):
    both = size = 0
    for mine, theirs in zip(found, gold, strict=True):
        for link in mine:
            both += link in theirs
        size += len(mine) + len(theirs)
    return 1 - 2 * both / size


@right
def aer_labelled(found, gold):
    mine = {(n, *link) for n, row in enumerate(found) for link in row}
    theirs = {(n, *link) for n, row in enumerate(gold) for link in row}
    return 1.0 - 2.0 * len(mine & theirs) / (len(mine) + len(theirs))


@right
def aer_by_differences(found, gold):
    alone = sum(len(set(a) ^ set(g)) for a, g in zip(found, gold, strict=True))
    return alone / sum(len(a) + len(g) for a, g in zip(found, gold, strict=True))


# 8.8 train ----------------------------------------------------------------------------------------------------------


def _build(name):
    """The toy; for any other name the lesson's own model is asked for, as a learner would."""
    if name != "toy":
        from pathlib import Path

        from attention_course.authoring.lesson import Lesson

        return Lesson(Path(__file__).parent).namespace()["build"](name)
    return _Toy()


class _Toy(nn.Module):
    def __init__(self, words=7):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(words, words))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, source, lengths, target_in):
        return 8 * self.table[target_in] + self.bias, None


right = alternatives_of("train")


@right
def train_clears_first(name, batches, rates):
    model = _build(name)
    optimizer = torch.optim.Adam(model.parameters(), lr=rates[0])
    losses = []
    for i, (source, lengths, target_in, target_out) in enumerate(batches):
        optimizer.zero_grad(set_to_none=False)
        for group in optimizer.param_groups:
            group["lr"] = rates[i]
        logits = model(source, lengths, target_in)[0]
        loss = F.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=PAD)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm=1)
        optimizer.step()
        losses.append(loss.item())
    return losses, model.state_dict()


@right
def train_with_a_schedule(name, batches, rates):
    model = _build(name)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: rates[min(n, len(rates) - 1)])
    losses = []
    for batch, _ in zip(batches, rates, strict=False):
        loss = F.cross_entropy(model(*batch[:3])[0].transpose(1, 2), batch[3], ignore_index=PAD)
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, {key: value.clone() for key, value in model.state_dict().items()}


@right
def train_clips_by_hand(name, batches, rates):
    model, losses = _build(name), []
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters)
    for rate, (source, lengths, target_in, target_out) in zip(rates, batches, strict=False):
        optimizer.param_groups[0]["lr"] = rate
        real = target_out != PAD
        loss = F.cross_entropy(model(source, lengths, target_in)[0][real], target_out[real])
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        size = torch.sqrt(sum((g**2).sum() for g in gradients if g is not None))
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = None if gradient is None else gradient * min(1.0, 1.0 / (size.item() + 1e-6))
        optimizer.step()
        losses.append(loss.item())
    return losses, dict(model.state_dict())


@right
def train_from_a_list(name, batches, rates):
    model, losses = _build(name), []
    optimizer = torch.optim.Adam(model.parameters())
    for n, (*given, target_out) in enumerate(list(batches)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*given)[0].flatten(0, 1), target_out.flatten(), ignore_index=PAD)
        losses += [float(loss.detach())]
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, norm_type=2)
        optimizer.param_groups[0].update(lr=rates[n])
        optimizer.step()
    return tuple(losses), model.state_dict()


# 8.9 test_masked_cross_entropy --------------------------------------------------------------------------------------

right = alternatives_of("test_masked_cross_entropy")


@right
def test_promise_by_promise(implementation):
    target = torch.tensor([[1, 2, 3, 4, 2], [2, 0, 0, 0, 0], [4, 3, 2, 0, 0]])
    real = target != 0
    for size in (1.0, 30.0, 1000.0):
        logits = size * torch.cos(torch.arange(75.0, dtype=torch.float64)).reshape(3, 5, 5)
        logits = torch.cat([logits, torch.zeros(3, 5, 2, dtype=torch.float64)], dim=-1)
        kept = logits.clone()
        loss = implementation(logits, target)
        assert loss.shape == ()
        assert loss.dtype == torch.float64
        assert torch.equal(logits, kept)
        costs = torch.logsumexp(kept, -1) - kept.gather(-1, target[..., None])[..., 0]
        assert abs(loss.item() - costs[real].mean().item()) < 1e-6 * max(1.0, size)
        assert implementation(logits.float(), target).dtype == torch.float32


@right
def test_word_by_word(implementation):
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        logits = torch.randn(3, 4, 6, dtype=torch.float64, generator=generator)
        logits[0] *= 400
        target = torch.tensor([[3, 2, 0, 0], [5, 4, 1, 2], [2, 0, 0, 0]])
        before = logits.clone()
        terms = [
            -torch.log_softmax(before[i, t], 0)[target[i, t]] for i in range(3) for t in range(4) if target[i, t] != 0
        ]
        torch.testing.assert_close(implementation(logits, target), sum(terms) / len(terms))
        assert torch.equal(before, logits)
        torch.testing.assert_close(implementation(logits.float(), target), (sum(terms) / len(terms)).float())


@right
def test_by_properties(implementation):
    logits = torch.sin(torch.arange(48.0, dtype=torch.float64)).reshape(2, 4, 6)
    target = torch.tensor([[3, 5, 1, 2], [2, 0, 0, 0]])
    right = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)
    before = logits.clone()
    torch.testing.assert_close(implementation(logits, target), right)
    assert torch.equal(logits, before)
    louder = logits.clone()
    louder[1, 1:] *= 50  # only padding
    torch.testing.assert_close(implementation(louder, target), right)
    torch.testing.assert_close(implementation(logits + 1000, target), right)
    torch.testing.assert_close(implementation(logits - 1000, target), right)
    sharp = logits * 800
    wanted = F.cross_entropy(sharp.flatten(0, 1), target.flatten(), ignore_index=0)
    torch.testing.assert_close(implementation(sharp, target), wanted)
    torch.testing.assert_close(implementation(logits.float(), target), right.float())


# 8.10 counterexample ------------------------------------------------------------------------------------------------

right = alternatives_of("counterexample")


@right
def counterexample_with_padding():
    return torch.randn(2, 5, 6), torch.tensor([3, 4])


@right
def counterexample_counted():
    return torch.arange(24.0).reshape(2, 3, 4), torch.tensor([1, 3])


@right
def counterexample_in_double():
    return torch.tensor([[[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]], dtype=torch.float64), torch.tensor([3])


# 8.11 repaired_summary ----------------------------------------------------------------------------------------------

right = alternatives_of("repaired_summary")


@right
def repaired_gathers(states, lengths):
    forward, backward = states.chunk(2, dim=-1)
    place = (lengths - 1)[:, None, None].expand(-1, 1, forward.shape[-1])
    return torch.cat([forward.gather(1, place)[:, 0], backward[:, 0]], dim=-1)


@right
def repaired_loop(states, lengths):
    half = states.shape[-1] // 2
    return torch.stack([torch.cat([row[n - 1, :half], row[0, half:]]) for row, n in zip(states, lengths, strict=True)])


@right
def repaired_by_mask(states, lengths):
    half = states.shape[-1] // 2
    columns = torch.arange(states.shape[1], device=states.device)
    at_end = (columns == (lengths - 1)[:, None]).to(states.dtype)[..., None]  # (B, S, 1)
    return torch.cat([(states[..., :half] * at_end).sum(1), states[:, 0, half:]], dim=-1)


@right
def repaired_copies(states, lengths):
    summary = states[torch.arange(len(states)), lengths - 1].clone()
    half = states.shape[-1] // 2
    summary[:, half:] = states[:, 0, half:]
    return summary
