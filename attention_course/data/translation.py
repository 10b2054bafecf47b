"""English–French sentence pairs with gold word alignments, made from the word lists in ``data/lists``.

The generated corpus needs no network and is the same on every machine. ``source="multi30k"`` loads captions that people
wrote and translated instead (see :mod:`.multi30k`); nobody knows their alignment.
"""

import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

from . import grammar, lexicon, multi30k
from .grammar import SUBJECTS, Clause, Phrase, Sentence
from .multi30k import CorpusError
from .tokens import tokenize
from .vocabulary import Batch, UnknownWord, Vocabulary, batch, batches

__all__ = [
    "COUNTS",
    "Batch",
    "CorpusError",
    "Pair",
    "UnknownWord",
    "Vocabulary",
    "batch",
    "batches",
    "load",
    "tokenize",
]

COUNTS = {"train": 50_000, "validation": 1_000, "test": 1_000, "composition": 1_000, "long": 1_000}
DEFAULT_TRAIN = 20_000
SHORTEST, LONGEST_IN_TRAINING, LONGEST = 4, 12, 24  # English words and marks

_SEEDS = {"train": 801, "validation": 802, "test": 803, "composition": 804, "long": 805}
_HELD_OUT = 12  # one combination of a noun with an adjective or a verb in this many is kept from training
_TENSES = {
    "verb": ("present", "present", "past", "past", "future", "continuous", "imperfect"),
    "posture": ("past", "past", "continuous", "imperfect"),
}
_TIMES = {"now": ("present", "present", "continuous", "future"), "then": ("past", "past", "imperfect")}
Item = TypeVar("Item")


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation.

    ``alignment`` holds the gold links (source position, target position); each word of the generated corpus has at
    least one. ``sure`` and ``possible`` are the two sets of Och and Ney's alignment error rate (2003): of ``alignment``
    the links that nobody would doubt, at most one to a target word, as *cat* with *chat*; and ``alignment`` with the
    links of a French determiner to all words of its noun phrase, since they decide its form: *la* is *the* before a
    feminine noun. All three are empty for a corpus whose alignment nobody knows.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: frozenset[tuple[int, int]] = frozenset()
    sure: frozenset[tuple[int, int]] = frozenset()
    possible: frozenset[tuple[int, int]] = frozenset()

    def __str__(self) -> str:
        return f"{' '.join(self.source)} → {' '.join(self.target)}"


def load(
    split: str = "train", source: str = "generated", size: int | None = None, folder: Path | str | None = None
) -> list[Pair]:
    """The first ``size`` pairs of a split, in an order that is the same on every machine.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``; of the generated corpus also ``"composition"`` (a noun with
            an adjective or a verb that it never meets in training, though each word is known) and ``"long"`` (longer
            than any sentence in training).
        source: ``"generated"``, or ``"multi30k"`` for real captions, which are downloaded once.
        size: how many pairs. None gives 20,000 for training and the whole split otherwise; see :data:`COUNTS`.
        folder: where the files of multi30k lie, if you have them already.

    Raises:
        ValueError: for a split, source or size that does not exist.
        CorpusError: where a file of multi30k cannot be had, or is damaged.
    """
    if source not in ("generated", "multi30k"):
        raise ValueError(f"source={source!r} is no corpus of this course; use 'generated' or 'multi30k'.")
    if size is not None and size < 1:
        raise ValueError(f"size={size} asks for no pair at all; give a number from 1 up, or leave it out.")
    if source == "multi30k":
        lines = multi30k.lines(split, folder)
        most = len(lines)
    else:
        if split not in COUNTS:
            raise ValueError(f"split={split!r} does not exist; the generated corpus has {', '.join(COUNTS)}.")
        most = COUNTS[split]
    if size is not None and size > most:
        raise ValueError(f"size={size:,} is more than the {most:,} pairs of the split {split!r}.")
    if source == "multi30k":
        return [Pair(*(tuple(tokenize(line.lower())) for line in both)) for both in lines[:size]]
    if size is None:
        size = DEFAULT_TRAIN if split == "train" else most
    return list(_generated(split, size))


@cache
def held_out(noun: str, other: str) -> bool:
    """Whether an English noun and an adjective or verb meet in the split ``composition`` alone."""
    return zlib.crc32(f"{noun} {other}".encode()) % _HELD_OUT == 0


@lru_cache(maxsize=8)
def _generated(split: str, size: int) -> tuple[Pair, ...]:
    lists = lexicon.read()
    others: set[tuple[str, ...]] = set()
    if split in ("train", "validation"):
        others = {pair.source for pair in _generated("test", COUNTS["test"])}
    if split == "train":
        others |= {pair.source for pair in _generated("validation", COUNTS["validation"])}
    stream = _stream(split, lists, others)
    return tuple(islice(stream, size))


def _stream(split: str, lists: lexicon.Lexicon, others: set[tuple[str, ...]]) -> Iterator[Pair]:
    """Distinct pairs without end, none of whose sentences is in ``others``."""
    seen = set(others)
    if split == "test":
        pair = Pair(*grammar.render(_the_cat(lists), lists))
        seen.add(pair.source)
        yield pair
    draw = _Draw(lists, _SEEDS[split], split)
    shortest, longest = (LONGEST_IN_TRAINING + 1, LONGEST) if split == "long" else (SHORTEST, LONGEST_IN_TRAINING)
    while True:
        draw.new_combination = False
        try:
            rendered = grammar.render(draw.sentence(), lists)
        except grammar.GrammarError:
            continue  # the draw asked for what French leaves open
        source = rendered.source
        if source in seen or not shortest <= len(source) <= longest:
            continue
        if split == "composition" and not draw.new_combination:
            continue
        seen.add(source)
        yield Pair(*rendered)


def _the_cat(lists: lexicon.Lexicon) -> Sentence:
    """*The cat sat on the mat .*, the first pair of the test split."""
    mat = (lists.prepositions["on"], Phrase(lists.nouns["mat"]))
    return Sentence((Clause(Phrase(lists.nouns["cat"]), lists.verbs["sit"], "past", places=(mat,)),))


class _Draw:
    """Draws meanings. Of Python's ``random`` only ``random()`` is used, whose numbers never change between versions."""

    def __init__(self, lists: lexicon.Lexicon, seed: int, split: str) -> None:
        self.lists = lists
        self.chance = random.Random(seed).random
        self.composing = split == "composition"
        self.long = split == "long"
        self.new_combination = False
        nouns = lists.nouns.values()
        self.nouns = {kind: [noun for noun in nouns if noun.kind == kind] for kind in lexicon.KINDS}
        self.names = list(lists.names.values())
        self.prepositions = list(lists.prepositions.values())
        self.determiners = {
            plural: [d for d in lists.determiners.values() if d.number != ("singular" if plural else "plural")]
            for plural in (False, True)
        }
        self.verbs = {
            pattern: [verb for verb in lists.verbs.values() if verb.pattern == pattern]
            for pattern in (*lexicon.PATTERNS, "posture")
        }
        self.adjectives = {
            (noun.english, place): [a for a in lists.adjectives.values() if a.place == place and noun.kind in a.kinds]
            for noun in nouns
            for place in ("before", "after")
        }
        adverbs = lists.adverbs.values()
        self.adverbs = {
            (tense, inside): [a for a in adverbs if tense in a.tenses and (a.place != "end") == inside]
            for tense in lexicon.TENSES
            for inside in (True, False)
        }

    def one_of(self, items: Sequence[Item]) -> Item:
        return items[int(self.chance() * len(items))]

    def weighted(self, **weights: int) -> str:
        left = self.chance() * sum(weights.values())
        for item in weights:
            left -= weights[item]
            if left < 0:
                break
        return item

    def matching(self, noun: lexicon.Noun, choices: Sequence[Item]) -> Item | None:
        """One of ``choices`` that ``noun`` may meet in this split."""
        known = [each for each in choices if not held_out(noun.english, each.english)]
        if self.composing and len(known) < len(choices) and self.chance() < 0.5:
            self.new_combination = True
            return self.one_of([each for each in choices if each not in known])
        return self.one_of(known) if known else None

    def verb(self, subject, choices: Sequence[lexicon.Verb]) -> lexicon.Verb | None:
        return self.matching(subject.noun, choices) if isinstance(subject, Phrase) else self.one_of(choices)

    def sentence(self) -> Sentence:
        if self.long:
            return self.clauses(2 if self.chance() < 0.6 else 3)
        if self.chance() < 0.17:
            return self.clauses(2, short=True)
        if self.chance() < 0.05:
            tense = self.one_of(("present", "past"))
            return Sentence((self.clause(self.subject(), tense, plain=True),), mark="?")
        return Sentence((self.clause(self.subject()),), mark="." if self.chance() < 0.88 else "!")

    def clauses(self, number: int, short: bool = False) -> Sentence:
        """Several clauses about the same time. A pronoun of a later one means the subject of the first."""
        first = self.subject(short)
        time = self.one_of(("now", "then"))
        clauses, links = [], []
        thinks = self.verb(first, self.verbs["clause"]) if self.chance() < 0.25 else None
        if thinks:
            clauses.append(Clause(first, thinks, "past" if time == "then" else "present"))
            links.append("that")
        while len(clauses) < number:
            subject = first
            if clauses:
                taken_up = self.chance() < 0.5
                subject = grammar.pronoun_for(first) if taken_up else self.subject(short, pronouns=False)
            clauses.append(self.clause(subject, self.one_of(_TIMES[time]), short=short))
            links.append(self.weighted(**{"and": 2, "but": 1, "because": 2, "when": 1}))
        return Sentence(tuple(clauses), tuple(links[: len(clauses) - 1]))

    def subject(self, short: bool = False, pronouns: bool = True):
        what = self.weighted(phrase=64, name=10, third=12 if pronouns else 0, speaker=14)
        if what == "name":
            return self.one_of(self.names)
        if what == "third":
            return SUBJECTS[self.one_of(("he", "she", "they"))]
        if what == "speaker":
            return SUBJECTS[self.one_of(("I", "you", "we"))]
        return self.phrase(("person", "animal"), short=short, subject=True)

    def phrase(
        self, kinds: Sequence[str], short: bool = False, subject: bool = False, definite: bool = False
    ) -> Phrase:
        """A noun of one of ``kinds``; ``definite`` where *de* or *à* would meet *des*."""
        noun = self.one_of(self.nouns[self.one_of(kinds)])
        plural = self.chance() < 0.3
        before = after = owner = relative = None
        if self.chance() < (0.1 if short else 0.3):
            before = self.matching(noun, self.adjectives[noun.english, "before"])
        if self.chance() < (0.1 if short else 0.2):
            after = self.matching(noun, self.adjectives[noun.english, "after"])
        if self.chance() < 0.06:
            owner = self.one_of(self.names)
            if self.chance() < 0.6:
                owner = Phrase(self.one_of(self.nouns["person"]), "the" if self.chance() < 0.8 else "my")
        elif subject and not short and self.chance() < 0.05:
            relative = self.relative(noun)
        determiner = "the"
        if self.chance() > 0.55:
            determiner = self.one_of(self.determiners[plural]).english
            if definite and self.lists.determiners[determiner].sort == "indefinite" and plural:
                determiner = "the"
        return Phrase(noun, determiner, plural, before, after, owner, relative)

    def relative(self, noun: lexicon.Noun) -> Clause | None:
        verb = self.matching(noun, self.verbs["alone"])
        tense = self.one_of(("present", "past", "imperfect"))
        return verb and Clause(None, verb, tense, negated=self.chance() < 0.15)

    def clause(self, subject, tense: str = "", plain: bool = False, short: bool = False) -> Clause:
        """What is said of ``subject``; ``plain`` without negation and adverbs."""
        pattern = self.weighted(
            alone=18,
            object=34,
            complement=13,
            giving=7,
            posture=0 if tense in ("present", "future") else 14,
            be=0 if plain or tense in ("continuous", "imperfect") else 14,
        )
        verb = adjective = None
        if pattern == "be":
            tense = tense or self.one_of(("present", "past", "future"))
        else:
            tense = tense or self.one_of(_TENSES["posture" if pattern == "posture" else "verb"])
            choices = self.verbs[pattern]
            if tense in ("continuous", "imperfect"):
                choices = [verb for verb in choices if verb.continuous]
            verb = self.verb(subject, choices) if choices else None
            if verb is None:
                return self.clause(subject, tense, plain, short)
        every = isinstance(subject, Phrase) and subject.determiner == "every"  # every ... not would be ambiguous
        negated = not plain and not every and self.chance() < 0.16
        adverb = None
        if not plain and not negated and self.chance() < 0.12 and self.adverbs[tense, True]:
            adverb = self.one_of(self.adverbs[tense, True])
        thing = complement = None
        places = ()
        if pattern in ("object", "giving"):
            thing = self.object(verb, short)
        if pattern == "giving":
            complement = self.being(short)
        elif pattern == "complement":
            complement = self.being(short) if "person" in verb.kinds else self.phrase(verb.kinds, short, definite=True)
        elif pattern == "be":
            adjective = self.predicate_adjective(subject)
            places = () if adjective else (self.place(short),)
        else:
            often = {"posture": 0.85, "alone": 0.4}.get(pattern, 0.12)
            if self.chance() < (often / 2 if short else often):
                places = (self.place(short),)
                if self.chance() < (0.5 if self.long else 0.08):
                    places += (self.place(short),)
        time = None
        if not plain and pattern != "posture" and self.chance() < 0.1 and self.adverbs[tense, False]:
            time = self.one_of(self.adverbs[tense, False])
        return Clause(subject, verb, tense, negated, adverb, adjective, thing, complement, places, time)

    def object(self, verb: lexicon.Verb, short: bool):
        if "person" in verb.kinds:
            if self.chance() < 0.22:
                return self.one_of(tuple(grammar.OBJECTS))
            if self.chance() < 0.06:
                return self.one_of(self.names)
        return self.phrase(verb.kinds, short)

    def being(self, short: bool):
        """Somebody: a name or a phrase."""
        if self.chance() < 0.25:
            return self.one_of(self.names)
        return self.phrase(("person", "animal"), short, definite=True)

    def place(self, short: bool):
        preposition = self.one_of(self.prepositions)
        return preposition, self.phrase(preposition.kinds, short, definite=True)

    def predicate_adjective(self, subject) -> lexicon.Adjective | None:
        if self.chance() < 0.3:
            return None
        if isinstance(subject, Phrase):
            choices = self.adjectives[subject.noun.english, "after"] + self.adjectives[subject.noun.english, "before"]
            return self.matching(subject.noun, [a for a in choices if a not in (subject.before, subject.after)])
        return self.one_of([each for each in self.lists.adjectives.values() if "person" in each.kinds])
