"""Cutting a sentence of one's own into the tokens that the corpora are made of."""

import re

_ELISION = r"(?:qu|jusqu|lorsqu|puisqu|quoiqu|quelqu|[cdjlmnst])'(?=\w)"
_TOKEN = re.compile(rf"aujourd'hui|\b{_ELISION}|'(?:s|m|d|ll|re|ve)\b|\w+(?:[-.,](?=\w)\w+)*|[^\w\s]", re.IGNORECASE)
_NOT = ((r"\bcan't\b", "can not"), (r"\bwon't\b", "will not"), (r"\bshan't\b", "shall not"), (r"n't\b", " not"))


def tokenize(text: str) -> list[str]:
    """Words and punctuation marks, English or French, with their case kept.

    *The girl's dog doesn't sleep.* gives ``The girl 's dog does not sleep .``; a French elision is a token of its own,
    as in ``L' homme qu' elle a vu aujourd'hui``.
    """
    text = text.replace("’", "'")
    for short, full in _NOT:
        text = re.sub(short, lambda found, full=full: _like(found[0], full), text, flags=re.IGNORECASE)
    return _TOKEN.findall(text)


def _like(given: str, full: str) -> str:
    return full[0].upper() + full[1:] if given[0].isupper() else full
