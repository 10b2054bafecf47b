"""Documents with known evidence, and real ones: reviews made from word lists, docstrings of the installed libraries.

A review has five possible labels. What decides it is what the *writer* says of *this* visit: in a strong word or a weak
one, negated or not, once or twice. Everything else in it (what others thought, how it was elsewhere or before, what had
been feared) holds the same words and counts for nothing, so that the words without their sentences do not tell.

Where the evidence stands is known for every review. Docstrings have none: they are real text, and the question is which
library they come from, with its name masked out.
"""

import ast
import hashlib
import importlib.util
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import words

RATINGS = ("terrible", "poor", "mixed", "good", "excellent")
LIBRARIES = ("IPython", "matplotlib", "numpy", "pandas", "torch")
MASK = "<name>"
SPLITS = {"train": 2000, "validation": 400, "test": 400}

_MIXED = 2
_FEWEST, _MOST = 3, 12  # sentences of a document
_LONGEST = 30  # words of a sentence
_ENOUGH = 400  # docstrings of a library
# The libraries, and what people call them for short.
_NAMES = frozenset({"ipython", "matplotlib", "mpl", "np", "numpy", "pandas", "pd", "plt", "pylab", "pytorch", "torch"})
# Folders that are not documentation of the library itself, or that are many times the rest.
_NOT_ITS_OWN = frozenset({"tests", "testing", "_vendor", "_inductor", "_dynamo"})
_SLOT = re.compile(r"\{(\w+?)2?\}")
# A run of the same sign, such as the line under a heading, counts as one word.
_WORD = re.compile(r"[A-Za-z]+|\d+|([^\sA-Za-z\d])\1*")


class UnknownSplit(ValueError):
    """A split was asked for by a name that there is not."""


@dataclass(frozen=True)
class Document:
    """Three to twelve sentences of words, a label from 0 to 4, and the places (sentence, word) that decide it.

    Real text has no known evidence: the set is empty there.
    """

    sentences: tuple[tuple[str, ...], ...]
    label: int
    evidence: frozenset[tuple[int, int]] = frozenset()

    def __str__(self) -> str:
        return " ".join(" ".join(sentence) for sentence in self.sentences)


def reviews(split: str = "train", size: int | None = None) -> list[Document]:
    """The first ``size`` reviews of a split (all of them by default); the same on every machine.

    Their labels index :data:`RATINGS`. All labels are about equally frequent, and no review stands in two splits.

    Raises:
        UnknownSplit: if there is no such split.
        WordListError: if a word list in ``data/lists`` does not read as it should.
    """
    return _first(_reviews(), split, size)


def docstrings(split: str = "train", size: int | None = None, libraries: Sequence[str] = LIBRARIES) -> list[Document]:
    """Docstrings of the installed ``libraries``, cut into sentences of words; the label says which library.

    Every mention of a library's name is replaced by :data:`MASK`. How many there are, and what they say, depends on the
    versions that are installed; which split a docstring is in depends on its text alone. Every library contributes
    equally many to a split.

    Raises:
        UnknownSplit: if there is no such split.
        LookupError: if a library is not installed.
    """
    return _first(_docstrings(tuple(libraries)), split, size)


def vocabulary(documents: Iterable[Document], least: int = 1) -> list[str]:
    """``<pad>``, ``<unk>``, then the words of ``documents`` that occur at least ``least`` times, most frequent first.

    Build it from training documents alone: a word that only a test document has should be unknown to the model.
    """
    counts = Counter(word for document in documents for sentence in document.sentences for word in sentence)
    kept = [word for word, n in counts.items() if n >= least]
    return ["<pad>", "<unk>", *sorted(kept, key=lambda word: (-counts[word], word))]


def _first(splits: dict[str, list[Document]], split: str, size: int | None) -> list[Document]:
    if split not in splits:
        raise UnknownSplit(f"There is no split {split!r}; the splits are {', '.join(splits)}.")
    if size is not None and size < 0:
        raise ValueError(f"size is {size}; it should be 0 or more")
    return splits[split][:size]


# Reviews ----------------------------------------------------------------------------------------------------------


class _Draw:
    """Random choices that are the same with every version of Python: only ``random()`` itself promises that."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return int(self._random.random() * n)

    def one(self, items: Sequence):
        return items[self.below(len(items))]

    def chance(self, p: float) -> bool:
        return self._random.random() < p

    def shuffled(self, items: Iterable) -> list:
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]


@cache
def _reviews() -> dict[str, list[Document]]:
    draw, lists = _Draw(7), _Lists()
    seen: set[tuple] = set()
    made: dict[str, list[Document]] = {}
    for split, number in SPLITS.items():
        made[split] = []
        while len(made[split]) < number:
            document = _review(draw, lists, label=len(made[split]) % len(RATINGS))
            if document.sentences not in seen:
                seen.add(document.sentences)
                made[split].append(document)
        made[split] = draw.shuffled(made[split])
    return made


class _Lists:
    """The word lists, sorted into what each is needed for."""

    def __init__(self) -> None:
        opinions = words.table("reviews_opinions", {"phrase": None, "degree": {"-2", "-1", "1", "2"}})
        self.opinions = {d: [r["phrase"] for r in opinions if int(r["degree"]) == d] for d in (-2, -1, 1, 2)}
        self.negations = [r["phrase"] for r in words.table("reviews_negations", {"phrase": None})]
        self.things: dict[str, list[str]] = {}
        for row in words.table("reviews_things", {"phrase": None, "gives": None}):
            self.things.setdefault(row["gives"], []).append(row["phrase"])
        slots = {"person", "day", "town", "vehicle", "season"}
        names = words.table("reviews_names", {"word": None, "slot": slots})
        self.names = {slot: [r["word"] for r in names if r["slot"] == slot] for slot in slots}
        sentences = words.table("reviews_sentences", {"kind": {"own", "other", "filler"}, "text": None})
        self.sentences = {k: [r["text"] for r in sentences if r["kind"] == k] for k in ("own", "other", "filler")}
        for row in sentences:
            unknown = set(_SLOT.findall(row["text"])) - slots - {"thing", "opinion"}
            if unknown:
                raise words.WordListError(f"reviews_sentences: {row['text']!r} has the unknown slot {min(unknown)}")


def _review(draw: _Draw, lists: _Lists, label: int) -> Document:
    things = draw.shuffled(draw.one(list(lists.things.values())))
    if label == _MIXED:
        own = draw.shuffled([draw.one((-2, -1)), draw.one((1, 2))])
    else:
        own = [{0: -2, 1: -1, 3: 1, 4: 2}[label]] * draw.one((1, 1, 2))
    # What others say balances what the writer says, so that counting the words of each kind does not tell the label.
    others = [draw.one((-2, -1, 1, 2)) for _ in range(1 + draw.below(2))]
    others += [-sum(own) // abs(sum(own)) * draw.one((1, 2))] if sum(own) else [draw.one((-2, -1, 1, 2))]
    fillers = draw.below(_MOST - len(own) - len(others) + 1)
    fillers = min(fillers, draw.below(8))
    plan = draw.shuffled([("own", d) for d in own] + [("other", d) for d in others] + [("filler", 0)] * fillers)
    sentences, evidence = [], set()
    for number, (kind, degree) in enumerate(plan):
        sentence, places = _sentence(draw, lists, kind, degree, things[number % len(things)])
        sentences.append(sentence)
        if kind == "own":
            evidence |= {(number, place) for place in places}
    return Document(tuple(sentences), label, frozenset(evidence))


def _sentence(draw: _Draw, lists: _Lists, kind: str, degree: int, thing: str) -> tuple[tuple[str, ...], list[int]]:
    """A sentence, and the places of the words that carry its opinion.

    A negation turns a weak word or a strong one into a weak opinion of the other sign: "not wonderful" is poor.
    """
    sentence: list[str] = []
    places: list[int] = []
    for part in draw.one(lists.sentences[kind]).split():
        slot = _SLOT.fullmatch(part)
        if not slot:
            sentence.append(part)
        elif slot[1] == "opinion":
            if abs(degree) == 1 and draw.chance(0.5):
                phrase = f"{draw.one(lists.negations)} {draw.one(lists.opinions[-degree * draw.one((1, 2))])}"
            else:
                phrase = draw.one(lists.opinions[degree])
            places = list(range(len(sentence), len(sentence) + len(phrase.split())))
            sentence += phrase.split()
        else:
            sentence += (thing if slot[1] == "thing" else draw.one(lists.names[slot[1]])).split()
    return tuple(sentence), places


# Docstrings -------------------------------------------------------------------------------------------------------


@cache
def _docstrings(libraries: tuple[str, ...]) -> dict[str, list[Document]]:
    found: dict[str, list[list[Document]]] = {split: [] for split in SPLITS}
    seen: set[tuple] = set()
    for label, library in enumerate(libraries):
        parts: dict[str, list[Document]] = {split: [] for split in SPLITS}
        for text in _texts(library):
            sentences = _sentences(text)
            if len(sentences) >= _FEWEST and sentences not in seen:
                seen.add(sentences)
                parts[_split_of(sentences)].append(Document(sentences, label))
                if sum(map(len, parts.values())) == _ENOUGH:
                    break
        for split, documents in parts.items():
            found[split].append(documents)
    return {  # one of each library after the other, as long as every library has one
        split: [document for row in zip(*of_each, strict=False) for document in row] for split, of_each in found.items()
    }


def _texts(library: str) -> Iterator[str]:
    """The docstrings in the library's own Python files, read without importing it, in an order of their own."""
    spec = importlib.util.find_spec(library)
    if spec is None or not spec.submodule_search_locations:
        raise LookupError(f"{library} is not installed, and its docstrings are wanted. Install it, or name others.")
    root = Path(next(iter(spec.submodule_search_locations)))
    files = {file.relative_to(root): file for file in root.rglob("*.py")}
    for name in sorted(files, key=lambda name: _digest(name.as_posix())):
        if _NOT_ITS_OWN & set(name.parts):
            continue
        try:
            tree = ast.parse(files[name].read_bytes())
        except (SyntaxError, ValueError):  # a template, or for another Python
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield text


def _sentences(text: str) -> tuple[tuple[str, ...], ...]:
    """The first sentences of a text as lower-case words, with every library's name masked."""
    sentences = []
    for piece in re.split(r"\n\s*\n|(?<=[.?!:])\s+", text):
        tokens = [
            MASK if word.lower() in _NAMES else word.lower() for word in (match[0] for match in _WORD.finditer(piece))
        ]
        if any(token.isalpha() for token in tokens):
            sentences.append(tuple(tokens[:_LONGEST]))
    return tuple(sentences[:_MOST])


def _split_of(sentences: tuple[tuple[str, ...], ...]) -> str:
    part = int(_digest(" ".join(" ".join(sentence) for sentence in sentences))[:8], 16) % 10
    return {0: "test", 1: "validation"}.get(part, "train")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
