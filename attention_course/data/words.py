"""Word lists: small CSV files in the folder ``lists``, which an instructor may extend; they are checked when read."""

import csv
from collections.abc import Mapping
from pathlib import Path

_FOLDER = Path(__file__).parent / "lists"


class WordListError(ValueError):
    """A word list is wrong. The message names the file, the line and the field."""


def folder() -> Path:
    """Where the word lists are: beside this file."""
    if not _FOLDER.is_dir():
        raise WordListError(f"The word lists are missing: there is no folder {_FOLDER}. Install the course again.")
    return _FOLDER


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
