"""Word lists: small CSV files under ``assets/words/`` that an instructor may extend, checked when they are read."""

import csv
from collections.abc import Mapping
from pathlib import Path

# In a wheel the lists lie beside this file (see setup.py); in a checkout they are people's to edit.
_PLACES = (Path(__file__).parent / "words", Path(__file__).parents[2] / "assets" / "words")


class WordListError(ValueError):
    """A word list is wrong. The message names the file, the line and the field."""


def folder() -> Path:
    """Where the word lists are."""
    for place in _PLACES:
        if place.is_dir():
            return place
    raise WordListError(f"The word lists are missing: there is no folder {_PLACES[-1]}. Install the course again.")


def table(name: str, fields: Mapping[str, set[str] | None], place: Path | None = None) -> list[dict[str, str]]:
    """The rows of ``name``.csv as dicts, in their order.

    Args:
        name: the file's name without ``.csv``.
        fields: its columns; each with the set of values it may have, or None for any text that is not empty. A set that
            holds ``""`` makes the field optional; a set that holds ``"*"`` allows any text as well.
        place: another folder than :func:`folder`.

    Raises:
        WordListError: naming file, line and field.
    """
    path = (place or folder()) / f"{name}.csv"
    if not path.exists():
        raise WordListError(f"{path}: this word list is missing")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        have = reader.fieldnames or []
        if list(have) != list(fields):
            raise WordListError(f"{path}, line 1: the columns are {', '.join(have)}; expected {', '.join(fields)}")
        rows: list[dict[str, str]] = []
        seen: dict[tuple[str, ...], int] = {}
        try:
            for row in reader:
                line = reader.line_num
                if None in row or None in row.values():
                    raise WordListError(f"{path}, line {line}: the row has not {len(have)} fields")
                for field, allowed in fields.items():
                    _check(f"{path}, line {line}, field {field}", row[field], allowed)
                key = tuple(row.values())
                if key in seen:
                    raise WordListError(f"{path}, line {line}: this row stands in line {seen[key]} already")
                seen[key] = line
                rows.append(dict(row))
        except csv.Error as error:
            raise WordListError(f"{path}, line {reader.line_num}: {error}") from None
    if not rows:
        raise WordListError(f"{path}: this word list is empty")
    return rows


def _check(where: str, value: str, allowed: set[str] | None) -> None:
    if value != value.strip():
        raise WordListError(f"{where}: there is a space before or after {value.strip()!r}")
    if not value and "" not in (allowed or ()):
        raise WordListError(f"{where}: it is empty")
    if allowed and value and "*" not in allowed and value not in allowed:
        choices = ", ".join(sorted(allowed - {""}))
        raise WordListError(f"{where}: {value!r} is none of {choices}")
