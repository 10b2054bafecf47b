"""The words of the translation corpus, read from ``data/lists/en_fr_*.csv`` and checked against each other.

An instructor extends the corpus by adding a row. What a row must say is checked here; the message names file, line and
field. The columns that do not speak for themselves:

- ``kinds``: what an adjective, an object or a place may be, out of :data:`KINDS`, with spaces between.
- nouns, ``h``: whether French elides before it (*l'homme*, ``mute``) or not (*le hibou*, ``aspirated``).
- adjectives, ``before_vowel``: the masculine form before a vowel (*vieil*), if it has one of its own.
- verbs, ``particle``: the English word after the verb (*look for*), ``preposition`` the French one (*parler à*).
- verbs, ``pattern``: ``alone``, with an ``object``, with a ``complement`` after the preposition, ``giving`` an object
  to somebody, or before a ``clause`` (*think that*). ``continuous`` says whether English has *is watching*.
- adverbs, ``place``: after the ``verb``, in the place of *pas* (``negation``), or at the ``end``.
- determiners, ``sort``: an ``indefinite`` one becomes *de* after a negation.

Another row draws other sentences, so the numbers that lessons print and the digests in the tests change with it.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from . import words
from .words import WordListError

KINDS = ("person", "animal", "thing", "food", "place", "support")
PATTERNS = ("alone", "object", "complement", "giving", "clause")
TENSES = ("present", "continuous", "past", "imperfect", "future")
_EXAMPLE = {"nouns": ("cat", "mat"), "postures": ("sit",), "prepositions": ("on",), "determiners": ("the", "a", "some")}
PERSONS = ("je", "tu", "il", "nous", "ils")


@dataclass(frozen=True, slots=True)
class Noun:
    english: str
    english_plural: str
    article: str
    french: str
    french_plural: str
    gender: str
    kind: str


@dataclass(frozen=True, slots=True)
class Adjective:
    english: str
    article: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before_vowel: str
    place: str
    kinds: tuple[str, ...]

    def agreeing(self, gender: str, plural: bool) -> str:
        """The form for a noun of ``gender`` ("m" or "f")."""
        if gender == "f":
            return self.feminine_plural if plural else self.feminine
        return self.masculine_plural if plural else self.masculine


@dataclass(frozen=True, slots=True)
class Verb:
    """One of the verbs, or (with ``pattern`` "posture") a way to be somewhere: *sat* is *est assis*."""

    english: str
    third: str
    past: str
    ing: str
    particle: str
    present: dict[str, str]
    imperfect: dict[str, str]
    infinitive: str
    participle: str
    auxiliary: str
    preposition: str
    pattern: str
    kinds: tuple[str, ...]
    continuous: bool
    agrees: bool = True

    def agreeing(self, gender: str, plural: bool) -> str:
        """The past participle for ``gender`` and number."""
        if not self.agrees:
            return self.participle
        form = self.participle + ("e" if gender == "f" else "")
        return form + "s" if plural and not form.endswith("s") else form


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    gender: str


@dataclass(frozen=True, slots=True)
class Preposition:
    english: str
    french: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Adverb:
    english: str
    french: str
    place: str
    tenses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Determiner:
    english: str
    number: str
    masculine: str
    feminine: str
    plural: str
    sort: str


@dataclass(frozen=True)
class Lexicon:
    """All lists, each keyed by its English word, in the order of its file."""

    nouns: dict[str, Noun]
    adjectives: dict[str, Adjective]
    verbs: dict[str, Verb]
    names: dict[str, Name]
    prepositions: dict[str, Preposition]
    adverbs: dict[str, Adverb]
    determiners: dict[str, Determiner]
    aspirated: frozenset[str]


@lru_cache(maxsize=4)
def read(place: Path | None = None) -> Lexicon:
    """The lists in ``place`` (the course's own by default).

    Raises:
        WordListError: naming file, line and field.
    """
    nouns, aspirated = _nouns(place)
    verbs, postures = _verbs(place), _postures(place)
    for line, verb in enumerate(postures, 2):
        if verb in verbs:
            raise _wrong(place, "postures", line, "english", f"{verb!r} is in the list of verbs already")
    names = _rows("names", {"name": None, "gender": {"f", "m"}}, place, key="name")
    return Lexicon(
        nouns=nouns,
        adjectives=_adjectives(place),
        verbs=verbs | postures,
        names={row["name"]: Name(**row) for row in names},
        prepositions=_prepositions(place),
        adverbs=_adverbs(place),
        determiners=_determiners(place),
        aspirated=aspirated,
    )


def _rows(name, fields, place, key="english", phrases=()):
    """The rows of one list; each has a ``key`` of its own, and one word in each field that is not in ``phrases``."""
    rows = words.table(f"en_fr_{name}", fields, place)
    seen = {}
    for line, row in enumerate(rows, 2):
        for field, value in row.items():
            if " " in value and field not in phrases:
                raise _wrong(place, name, line, field, f"{value!r} is more than one word")
        if row[key] in seen:
            raise _wrong(place, name, line, key, f"{row[key]!r} stands in line {seen[row[key]]} already")
        seen[row[key]] = line
    for needed in _EXAMPLE.get(name, ()):
        if needed not in seen:
            raise _wrong(place, name, 1, key, f"{needed!r} is missing; the course's example sentences need it")
    return rows


def _differ(row, fields, place, name, line, what):
    """English forms that look alike would have several French ones, and a sentence has one translation."""
    first = fields[0]
    for field in fields[1:]:
        if row[field] == row[first]:
            raise _wrong(
                place, name, line, field, f"{row[field]!r} is the {first} as well, so no sentence shows {what}"
            )


def _wrong(place, name, line, field, what):
    path = (place or words.folder()) / f"en_fr_{name}.csv"
    return WordListError(f"{path}, line {line}, field {field}: {what}")


def _several(row, field, allowed, place, name, line):
    """A field that holds several words of ``allowed``, with spaces between."""
    values = tuple(row[field].split())
    for value in values:
        if value not in allowed:
            raise _wrong(place, name, line, field, f"{value!r} is none of {', '.join(allowed)}")
    return values


def _nouns(place):
    fields = {"english": None, "english_plural": None, "article": {"a", "an"}, "french": None, "french_plural": None}
    fields |= {"gender": {"f", "m"}, "h": {"", "mute", "aspirated"}, "kind": set(KINDS)}
    nouns, aspirated, forms = {}, set(), {}
    for line, row in enumerate(_rows("nouns", fields, place), 2):
        _differ(row, ("english", "english_plural"), place, "nouns", line, "whether it is one or several")
        for field in ("english", "english_plural"):
            if row[field] in forms:
                raise _wrong(place, "nouns", line, field, f"{row[field]!r} stands in line {forms[row[field]]} already")
            forms[row[field]] = line
        h = row.pop("h")
        if row["french"].startswith("h") != bool(h):
            what = "say whether the h is mute or aspirated" if not h else f"{row['french']!r} does not begin with h"
            raise _wrong(place, "nouns", line, "h", what)
        if h == "aspirated":
            aspirated |= {row["french"], row["french_plural"]}
        nouns[row["english"]] = Noun(**row)
    for kind in KINDS:
        if not any(noun.kind == kind for noun in nouns.values()):
            raise _wrong(place, "nouns", 1, "kind", f"no noun is of the kind {kind!r}; the sentences need at least one")
    return nouns, frozenset(aspirated)


def _adjectives(place):
    fields = {"english": None, "article": {"a", "an"}, "masculine": None, "feminine": None, "masculine_plural": None}
    fields |= {"feminine_plural": None, "before_vowel": {"", "*"}, "place": {"before", "after"}, "kinds": None}
    adjectives = {}
    for line, row in enumerate(_rows("adjectives", fields, place, phrases=("kinds",)), 2):
        if row["before_vowel"] and row["place"] == "after":
            what = f"{row['english']!r} stands after its noun, so it has no form before a vowel"
            raise _wrong(place, "adjectives", line, "before_vowel", what)
        kinds = _several(row, "kinds", KINDS, place, "adjectives", line)
        row["before_vowel"] = row["before_vowel"] or row["masculine"]
        adjectives[row["english"]] = Adjective(**(row | {"kinds": kinds}))
    return adjectives


def _verbs(place):
    fields = dict.fromkeys(("english", "third", "past", "ing"))
    fields |= {"particle": {"", "*"}, **dict.fromkeys((*PERSONS, "imperfect", "imperfect_plural", "infinitive"))}
    fields |= {"participle": None, "auxiliary": {"avoir", "être"}, "preposition": {"", "*"}, "pattern": set(PATTERNS)}
    fields |= {"kinds": {"", "*"}, "continuous": {"yes", "no"}}
    verbs = {}
    for line, row in enumerate(_rows("verbs", fields, place, phrases=("kinds", "preposition")), 2):
        _differ(row, ("english", "third", "past", "ing"), place, "verbs", line, "its tense")
        kinds = _several(row, "kinds", KINDS, place, "verbs", line)
        pattern = row["pattern"]
        if (pattern in ("alone", "clause")) == bool(kinds):
            what = f"a verb of the pattern {pattern} has none" if kinds else f"the pattern {pattern} needs some"
            raise _wrong(place, "verbs", line, "kinds", what)
        if (pattern == "complement") != bool(row["preposition"]):
            what = "has none" if row["preposition"] else "needs a French one"
            raise _wrong(place, "verbs", line, "preposition", f"a verb of the pattern {pattern} {what}")
        if row["auxiliary"] == "être" and pattern in ("object", "giving"):
            what = f"{row['infinitive']!r} has an object, and the past of such a verb takes avoir"
            raise _wrong(place, "verbs", line, "auxiliary", what)
        row["present"] = {person: row.pop(person) for person in PERSONS}
        row["imperfect"] = {"il": row["imperfect"], "ils": row.pop("imperfect_plural")}
        verbs[row["english"]] = Verb(**(row | {"kinds": kinds, "continuous": row["continuous"] == "yes"}))
    for pattern in PATTERNS:
        if not any(verb.pattern == pattern for verb in verbs.values()):
            raise _wrong(place, "verbs", 1, "pattern", f"no verb has the pattern {pattern!r}; one is needed")
    return verbs


def _postures(place):
    fields = {**dict.fromkeys(("english", "past", "ing", "participle")), "agrees": {"yes", "no"}}
    return {
        row["english"]: Verb(
            third="",
            particle="",
            present={},
            imperfect={},
            infinitive="",
            auxiliary="être",
            preposition="",
            pattern="posture",
            kinds=(),
            continuous=True,
            **(row | {"agrees": row["agrees"] == "yes"}),
        )
        for row in _rows("postures", fields, place)
    }


def _prepositions(place):
    fields = dict.fromkeys(("english", "french", "kinds"))
    rows = _rows("prepositions", fields, place, phrases=fields)
    return {
        row["english"]: Preposition(
            row["english"], row["french"], _several(row, "kinds", KINDS, place, "prepositions", line)
        )
        for line, row in enumerate(rows, 2)
    }


def _adverbs(place):
    fields = {"english": None, "french": None, "place": {"verb", "negation", "end"}, "tenses": None}
    return {
        row["english"]: Adverb(**(row | {"tenses": _several(row, "tenses", TENSES, place, "adverbs", line)}))
        for line, row in enumerate(_rows("adverbs", fields, place, phrases=("tenses",)), 2)
    }


def _determiners(place):
    fields = {"english": None, "number": {"singular", "plural", "both"}, "masculine": {"", "*"}, "feminine": {"", "*"}}
    fields |= {"plural": {"", "*"}, "sort": {"definite", "indefinite", "other"}}
    determiners = {}
    for line, row in enumerate(_rows("determiners", fields, place, phrases=("plural",)), 2):
        for field in ("masculine", "feminine", "plural"):
            needed = row["number"] != ("singular" if field == "plural" else "plural")
            if needed != bool(row[field]):
                what = f"a determiner of the number {row['number']} {'needs one' if needed else 'has none'}"
                raise _wrong(place, "determiners", line, field, what)
        determiners[row["english"]] = Determiner(**row)
    return determiners
