"""From words to numbers and back, and from sentences to padded batches."""

import difflib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch

_SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
_POOL = 50  # batches whose sentences are sorted by length together


class UnknownWord(ValueError):
    """A word that the training data do not have. The message names it and known words close to it."""


class Vocabulary:
    """A number for each word. The first four stand for padding, start, end, and any unknown word."""

    PAD, BOS, EOS, UNK = range(4)

    def __init__(self, words: Iterable[str]) -> None:
        self.tokens = [*_SPECIAL, *words]
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        if len(self._ids) < len(self.tokens):
            raise ValueError("A vocabulary holds each word once, and the four special tokens are in it already.")

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], least: int = 1) -> "Vocabulary":
        """The words that occur at least ``least`` times, the most frequent first. Give it training sentences alone."""
        counts = Counter(word for sentence in sentences for word in sentence)
        known = [word for word, count in counts.items() if count >= least and word not in _SPECIAL]
        return cls(sorted(known, key=lambda word: (-counts[word], word)))

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def encode(self, tokens: Sequence[str], strict: bool = False) -> list[int]:
        """The words' numbers; an unknown word is ``UNK``.

        Raises:
            UnknownWord: for the first unknown word, if ``strict``.
        """
        if strict:
            for word in tokens:
                if word not in self._ids:
                    raise UnknownWord(self._unknown(word))
        return [self._ids.get(word, self.UNK) for word in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The words of ``ids`` up to the first ``EOS``, without ``BOS`` and ``PAD``."""
        words = []
        for i in ids:
            if int(i) == self.EOS:
                break
            if int(i) not in (self.BOS, self.PAD):
                words.append(self.tokens[int(i)])
        return words

    def _unknown(self, word: str) -> str:
        known = self.tokens[len(_SPECIAL) :]
        close = [each for each in known if each.lower() == word.lower()]
        close += [each for each in difflib.get_close_matches(word, known, n=3) if each not in close]
        hint = f" Known words close to it: {', '.join(close)}." if close else " No known word is close to it."
        return f"{word!r} is not among the {len(known)} words of this vocabulary.{hint}"


class Batch(NamedTuple):
    """Sentences as numbers, padded with 0."""

    source: torch.Tensor  # (B, S)
    source_lengths: torch.Tensor  # (B,)
    target_in: torch.Tensor  # (B, T), begins with <bos>
    target_out: torch.Tensor  # (B, T), ends with <eos>


def batch(pairs, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary, device=None) -> Batch:
    """``pairs`` as one :class:`Batch` of long tensors on ``device`` (the CPU by default)."""
    if not pairs:
        raise ValueError("A batch needs at least one pair.")
    sources = [source_vocabulary.encode(pair.source) for pair in pairs]
    targets = [target_vocabulary.encode(pair.target) for pair in pairs]
    return Batch(
        _padded(sources, device),
        torch.tensor([len(source) for source in sources], device=device),
        _padded([[Vocabulary.BOS, *target] for target in targets], device),
        _padded([[*target, Vocabulary.EOS] for target in targets], device),
    )


def batches(
    pairs, source_vocabulary: Vocabulary, target_vocabulary: Vocabulary, size: int, seed: int, device=None
) -> Iterator[Batch]:
    """All ``pairs`` once, shuffled by ``seed``, in batches of ``size`` with sentences of near-equal lengths together.

    Give another seed in each epoch for another order. The last batches may be smaller.
    """
    if size < 1:
        raise ValueError(f"size={size} is no size of a batch; give a number from 1 up.")
    chance = random.Random(seed).random
    order = _shuffled(range(len(pairs)), chance)
    groups = []
    for start in range(0, len(order), size * _POOL):
        pool = sorted(order[start : start + size * _POOL], key=lambda i: (len(pairs[i].source), len(pairs[i].target)))
        groups += [pool[i : i + size] for i in range(0, len(pool), size)]
    for group in _shuffled(groups, chance):
        yield batch([pairs[i] for i in group], source_vocabulary, target_vocabulary, device)


def _shuffled(items: Iterable, chance) -> list:
    """A shuffled copy. ``random.shuffle`` may draw its numbers otherwise in another Python."""
    items = list(items)
    for i in range(len(items) - 1, 0, -1):
        j = int(chance() * (i + 1))
        items[i], items[j] = items[j], items[i]
    return items


def _padded(rows: list[list[int]], device) -> torch.Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([row + [Vocabulary.PAD] * (width - len(row)) for row in rows], device=device)
