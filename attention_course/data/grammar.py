"""From a meaning to an English sentence, its French translation, and the links between their words.

A meaning is a tree: a :class:`Sentence` of clauses, a :class:`Clause` of noun phrases. :func:`render` says the English
words in their order and notes, for every French word, which English words it renders. Agreement, negation and word
order are decided on the tree; elision and contraction come last, on the finished row of French words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .lexicon import Adjective, Adverb, Lexicon, Name, Noun, Preposition, Verb

_AVOIR = {"je": "ai", "tu": "as", "il": "a", "nous": "avons", "ils": "ont"}
_ETRE = {"je": "suis", "tu": "es", "il": "est", "nous": "sommes", "ils": "sont"}
_ETAIT = {"il": "était", "ils": "étaient"}
_ALLER = {"je": "vais", "tu": "vas", "il": "va", "nous": "allons", "ils": "vont"}
_AM = {"je": "am", "il": "is"}
_WAS = {"je": "was", "il": "was"}

LINKS = {"and": "et", "but": "mais", "because": "parce que", "when": "quand", "that": "que"}
_ELIDED = {"le": "l'", "la": "l'", "de": "d'", "ne": "n'", "je": "j'", "me": "m'", "te": "t'", "que": "qu'"}
_BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "sa": "son"}
_CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


class GrammarError(ValueError):
    """A sentence that this small grammar cannot say, or whose French would not be determined."""


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A pronoun as a subject. ``gender`` is None where French would have to know who speaks."""

    english: str
    french: str
    person: str
    gender: str | None


SUBJECTS = {
    "I": Pronoun("I", "je", "je", None),
    "you": Pronoun("you", "tu", "tu", None),
    "he": Pronoun("he", "il", "il", "m"),
    "she": Pronoun("she", "elle", "il", "f"),
    "we": Pronoun("we", "nous", "nous", None),
    "they": Pronoun("they", "ils", "ils", "m"),
}
# The pronoun as an object: its French form, gender and number (for the participle that agrees with it), its person.
OBJECTS = {
    "me": ("me", None, False, "je"),
    "you": ("te", None, False, "tu"),
    "him": ("le", "m", False, "il"),
    "her": ("la", "f", False, "il"),
    "us": ("nous", None, True, "nous"),
    "them": ("les", "m", True, "ils"),
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun with what belongs to it. With an ``owner`` (*the girl 's dog*) the determiner is the French article."""

    noun: Noun
    determiner: str = "the"
    plural: bool = False
    before: Adjective | None = None
    after: Adjective | None = None
    owner: "Phrase | Name | None" = None
    relative: "Clause | None" = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A subject and what is said of it. Without a ``verb`` it says that the subject is ``adjective`` or somewhere.

    ``subject`` is None in a relative clause.
    """

    subject: "Phrase | Name | Pronoun | None"
    verb: Verb | None = None
    tense: str = "present"
    negated: bool = False
    adverb: Adverb | None = None
    adjective: Adjective | None = None
    object: "Phrase | Name | str | None" = None
    complement: "Phrase | Name | None" = None
    places: tuple[tuple[Preposition, "Phrase | Name"], ...] = ()
    time: Adverb | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """Clauses, and the word between each two of them."""

    clauses: tuple[Clause, ...]
    links: tuple[str, ...] = ()
    mark: str = "."

    @property
    def question(self) -> bool:
        return self.mark == "?"


class Word(NamedTuple):
    """A French word with the positions of English words: those it renders (``sure`` is the one that nobody would
    doubt), and ``also`` those that decide its form."""

    text: str
    links: tuple[int, ...]
    sure: tuple[int, ...] = ()
    also: tuple[int, ...] = ()


Links = frozenset[tuple[int, int]]


class Rendered(NamedTuple):
    """Both sentences, and links (English position, French position): ``sure`` in ``alignment`` in ``possible``."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: Links
    sure: Links
    possible: Links


def render(sentence: Sentence, lexicon: Lexicon) -> Rendered:
    """Both sentences and the links between their words.

    Raises:
        GrammarError: where the French would need what the English does not say, such as the gender of *I*.
    """
    writer = _Writer(lexicon)
    french = writer.question(sentence.clauses[0]) if sentence.question else writer.clause(sentence.clauses[0])
    for link, clause in zip(sentence.links, sentence.clauses[1:], strict=True):
        french += writer.words(LINKS[link], writer.say(link))
        french += writer.clause(clause)
    french.append(sure(sentence.mark, writer.say(sentence.mark)))
    french = join(french, lexicon.aspirated)
    source, target = writer.english, [word.text for word in french]
    source[0], target[0] = (words[0][0].upper() + words[0][1:] for words in (source, target))
    alignment = [(i, j) for j, word in enumerate(french) for i in word.links]
    certain = [(i, j) for j, word in enumerate(french) for i in word.sure]
    agreeing = [(i, j) for j, word in enumerate(french) for i in word.also]
    return Rendered(
        tuple(source), tuple(target), frozenset(alignment), frozenset(certain), frozenset(alignment + agreeing)
    )


def sure(text: str, position: tuple[int, ...]) -> Word:
    """A word with one counterpart, which nobody would doubt."""
    return Word(text, position, position)


def pronoun_for(subject: "Phrase | Name | Pronoun") -> Pronoun:
    """The pronoun that takes up ``subject`` in a later clause, with its French gender: *the mouse*, *it*, *elle*."""
    if isinstance(subject, Pronoun):
        return subject
    person, gender = _person(subject)
    if person == "ils":
        return Pronoun("they", "ils" if gender == "m" else "elles", person, gender)
    if isinstance(subject, Name) or subject.noun.kind == "person":
        return SUBJECTS["he" if gender == "m" else "she"]
    return Pronoun("it", "il" if gender == "m" else "elle", person, gender)


def starts_with_vowel(word: str, aspirated: frozenset[str]) -> bool:
    """Whether French elides before ``word``: a vowel, or an h that is not ``aspirated``."""
    return word[0].lower() in "aâàeéèêiîoôuœh" and word not in aspirated


def join(french: Sequence[Word], aspirated: frozenset[str]) -> list[Word]:
    """Elision, contraction and the forms before a vowel: *le ami* to *l' ami*, *de le chat* to *du chat*.

    Args:
        french: words in full. A contracted word has the links of both, and none of them is sure.
        aspirated: words whose h keeps the word before it in full.
    """
    joined: list[Word] = []
    after = [*(word.text for word in french[1:]), "", ""]
    i = 0
    while i < len(french):
        word = french[i]
        following = after[i]
        vowel = following != "" and starts_with_vowel(following, aspirated)
        contracted = _CONTRACTED.get((word.text, following))
        if contracted and not (following == "le" and after[i + 1] and starts_with_vowel(after[i + 1], aspirated)):
            i += 1
            article = french[i]
            word = Word(contracted, (*word.links, *article.links), (), (*word.also, *article.also))
        elif vowel and word.text in _ELIDED:
            word = word._replace(text=_ELIDED[word.text])
        elif vowel and word.text in _BEFORE_VOWEL:
            word = word._replace(text=_BEFORE_VOWEL[word.text])
        joined.append(word)
        i += 1
    return joined


def _person(subject: "Phrase | Name | Pronoun") -> tuple[str, str | None]:
    """Person and gender of a subject."""
    if isinstance(subject, Pronoun):
        return subject.person, subject.gender
    if isinstance(subject, Name):
        return "il", subject.gender
    return ("ils" if subject.plural else "il"), subject.noun.gender


class _Writer:
    """Says English words one after another; each method returns the French for what it said."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.english: list[str] = []

    def say(self, text: str) -> tuple[int, ...]:
        """Append the words of ``text`` and return their positions."""
        start = len(self.english)
        if text and " " not in text:
            self.english.append(text)
            return (start,)
        self.english += text.split()
        return tuple(range(start, len(self.english)))

    @staticmethod
    def words(text: str, links: tuple[int, ...]) -> list[Word]:
        """One or several French words for one or several English ones; of one English word the first is sure."""
        first, *rest = text.split()
        return [Word(first, links, links if len(links) == 1 else ()), *(Word(word, links) for word in rest)]

    def clause(self, clause: Clause) -> list[Word]:
        subject = self.subject(clause.subject)
        return subject + self.predicate(clause, *_person(clause.subject))

    def question(self, clause: Clause) -> list[Word]:
        """*Does the cat sleep ?* is *Est-ce que le chat dort ?*"""
        if clause.verb is None or clause.negated or clause.adverb or clause.tense not in ("present", "past"):
            raise GrammarError("This grammar asks questions with do, does and did alone.")
        person, gender = _person(clause.subject)
        asking = self.say("did" if clause.tense == "past" else "does" if person == "il" else "do")
        subject = self.subject(clause.subject)
        asking = [Word("Est-ce", asking), Word("que", asking)]
        return asking + subject + self.predicate(clause, person, gender, question=True)

    def subject(self, subject: "Phrase | Name | Pronoun") -> list[Word]:
        if isinstance(subject, Pronoun):
            return [sure(subject.french, self.say(subject.english))]
        return self.phrase(subject)

    def phrase(self, phrase: "Phrase | Name", negated: bool = False) -> list[Word]:
        """A noun phrase; ``negated`` where it is the object of a negated verb."""
        if isinstance(phrase, Name):
            return [sure(phrase.name, self.say(phrase.name))]
        noun, plural, before, after = phrase.noun, phrase.plural, phrase.before, phrase.after
        owner: list[Word] = []
        if phrase.owner is not None:
            owner = self.phrase(phrase.owner)
            determiner = self.say("'s")
            owner = [Word("de", determiner), *owner]
        else:
            first = before or after or noun
            determiner = self.say("an" if phrase.determiner == "a" and first.article == "an" else phrase.determiner)
        small = self.say(before.english) if before else ()
        black = self.say(after.english) if after else ()
        cat = self.say(noun.english_plural if plural else noun.english)
        article = self.determiner(phrase, negated).split()
        french = [Word(word, determiner, also=small + black + cat) for word in article]
        name = noun.french_plural if plural else noun.french
        if before:
            form = before.agreeing(noun.gender, plural)
            if noun.gender == "m" and not plural and starts_with_vowel(name, self.lexicon.aspirated):
                form = before.before_vowel
            french.append(sure(form, small))
        french.append(sure(name, cat))
        if after:
            french.append(sure(after.agreeing(noun.gender, plural), black))
        french += owner
        if phrase.relative is not None:
            who = self.say("who" if noun.kind == "person" else "that")
            french.append(sure("qui", who))
            french += self.predicate(phrase.relative, *_person(phrase))
        return french

    def determiner(self, phrase: Phrase, negated: bool) -> str:
        determiner = self.lexicon.determiners["the" if phrase.owner is not None else phrase.determiner]
        number, other = ("plural", "singular") if phrase.plural else ("singular", "plural")
        if determiner.number == other:
            raise GrammarError(f"{determiner.english!r} does not go with a {number} noun.")
        # des becomes de before an adjective, and un, une, des become de after a negation
        if determiner.sort == "indefinite" and (negated or (phrase.plural and phrase.before)):
            return "de"
        if phrase.plural:
            return determiner.plural
        return determiner.feminine if phrase.noun.gender == "f" else determiner.masculine

    def predicate(self, clause: Clause, person: str, gender: str | None, question: bool = False) -> list[Word]:
        """All of a clause but its subject."""
        french = self.verb_group(clause, person, gender, question)
        if clause.object is not None and not isinstance(clause.object, str):
            french += self.phrase(clause.object, clause.negated or _is_negation(clause.adverb))
        if clause.complement is not None and clause.verb.pattern == "giving":
            to = self.say("to")
            french += [sure("à", to), *self.phrase(clause.complement)]
        elif clause.complement is not None:
            french += self.phrase(clause.complement)
        for preposition, phrase in clause.places:
            french += self.words(preposition.french, self.say(preposition.english))
            french += self.phrase(phrase)
        if clause.time is not None:
            french.append(sure(clause.time.french, self.say(clause.time.english)))
        return french

    def verb_group(self, clause: Clause, person: str, gender: str | None, question: bool) -> list[Word]:
        """Verb, negation, adverb and the pronoun that French puts before the verb."""
        verb, tense = clause.verb, clause.tense
        helper, negation, adverb, main = self.english_verb(clause, person, question)
        says_do = tense == "present" and clause.negated and verb is not None
        around = helper + negation if says_do else negation  # does not: ne ... pas
        if verb is None:
            finite, rest = self.to_be(tense, person, helper, main)
        elif verb.pattern == "posture":
            finite, rest = self.posture(verb, tense, person, gender, helper, main)
        else:
            finite, rest = self.verb(clause, person, gender, () if says_do else helper, main)
        french: list[Word] = []
        pronoun = self.pronoun(clause, person)
        if clause.adjective is not None:
            form = clause.adjective.agreeing(_known(gender), person in ("nous", "ils"))
            rest.append(sure(form, self.say(clause.adjective.english)))
        if verb is not None and verb.particle and not verb.preposition:  # look for: chercher
            if rest:
                rest[-1] = rest[-1]._replace(links=rest[-1].links + self.particle)
            else:
                finite = finite._replace(links=finite.links + self.particle)
        middle: list[Word] = []
        if clause.negated:
            middle = [Word("pas", around)]
        elif clause.adverb is not None:
            middle = [sure(clause.adverb.french, adverb)]
        if clause.negated or _is_negation(clause.adverb):
            french.append(Word("ne", around if clause.negated else adverb))
        french += [finite, *middle, *pronoun, *rest] if tense == "future" else [*pronoun, finite, *middle, *rest]
        if verb is not None and verb.preposition:
            french += self.words(verb.preposition, self.particle if verb.particle else main)
        return french

    def english_verb(self, clause: Clause, person: str, question: bool):
        """Say the English verb group; the positions of its helper, its *not*, its adverb and its main verb."""
        verb, tense = clause.verb, clause.tense
        helper = form = ""
        be_now = _AM.get(person, "are")
        be_then = _WAS.get(person, "were")
        if tense == "future":
            helper, form = "will", verb.english if verb else "be"
        elif verb is None:
            helper = be_then if tense in ("past", "imperfect") else be_now
        elif tense in ("continuous", "imperfect"):
            helper, form = (be_now if tense == "continuous" else be_then), verb.ing
        elif question:
            form = verb.english
        elif clause.negated:
            helper = "did" if tense == "past" else "does" if person == "il" else "do"
            form = verb.english
        else:
            form = verb.past if tense == "past" else verb.third if person == "il" else verb.english
        said = self.say(helper)
        negation = self.say("not") if clause.negated else ()
        adverb = self.say(clause.adverb.english) if clause.adverb is not None else ()
        main = self.say(form)
        self.particle = self.say(verb.particle) if verb is not None else ()
        return said, negation, adverb, main

    @staticmethod
    def to_be(tense, person, helper, main):
        if tense == "future":
            return Word(_ALLER[person], helper), [sure("être", main)]
        return sure(_past_of_be(person) if tense in ("past", "imperfect") else _ETRE[person], helper), []

    @staticmethod
    def posture(verb, tense, person, gender, helper, main):
        if tense not in ("past", "continuous", "imperfect"):
            raise GrammarError(f"This grammar does not say {verb.english!r} in the {tense} tense.")
        be = _past_of_be(person) if tense == "imperfect" else _ETRE[person]
        form = verb.agreeing(_known(gender) if verb.agrees else "m", person in ("nous", "ils"))
        return Word(be, helper or main), [sure(form, main)]

    @staticmethod
    def verb(clause, person, gender, helper, main):
        verb, tense = clause.verb, clause.tense
        if tense == "future":
            return Word(_ALLER[person], helper), [sure(verb.infinitive, main)]
        if tense == "past":
            be = verb.auxiliary == "être"
            agrees_with, plural = ("m", False)
            if be:
                agrees_with, plural = _known(gender), person in ("nous", "ils")
            elif isinstance(clause.object, str):  # the object stands before the participle, which agrees with it
                _, agrees_with, plural, _ = OBJECTS[clause.object]
            form = verb.agreeing(_known(agrees_with), plural)
            return Word((_ETRE if be else _AVOIR)[person], helper or main), [sure(form, main)]
        if tense == "imperfect":
            if person not in verb.imperfect:
                raise GrammarError("This grammar says the imperfect in the third person alone.")
            return Word(verb.imperfect[person], helper + main, main), []
        return Word(verb.present[person], helper + main, main), []

    def pronoun(self, clause: Clause, person: str) -> list[Word]:
        if not isinstance(clause.object, str):
            return []
        french, _, _, whose = OBJECTS[clause.object]
        if whose == person and person in ("je", "tu", "nous"):
            raise GrammarError(f"This grammar has no reflexive verbs: {clause.object!r} is the subject as well.")
        return [sure(french, self.say(clause.object))]


def _is_negation(adverb: Adverb | None) -> bool:
    return adverb is not None and adverb.place == "negation"


def _known(gender: str | None) -> str:
    if gender is None:
        raise GrammarError("The French form depends on the gender of a person whom the English does not show.")
    return gender


def _past_of_be(person: str) -> str:
    if person not in _ETAIT:
        raise GrammarError("This grammar says the imperfect in the third person alone.")
    return _ETAIT[person]
