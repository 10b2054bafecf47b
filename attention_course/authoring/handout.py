"""What a release adds to the notebooks: links from lesson to lesson, a page on the web and a README for students."""

import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import nbformat
from markdown_it import MarkdownIt
from nbformat import NotebookNode

_TEMPLATES = Path(__file__).parent / "templates"
_BADGE = "https://colab.research.google.com/assets/colab-badge.svg"
_PICTURE = re.compile(r"!\[([^\]]*)\]\((data:image/png;base64,[A-Za-z0-9+/=]+|attachment:cover\.png)\)")


@dataclass(frozen=True)
class Card:
    """A lesson as a page announces it. ``promise`` and ``rows`` are HTML, ``picture`` is a data URI or empty."""

    number: str
    title: str
    path: str
    promise: str
    rows: dict[str, str]
    picture: str
    words: str


def card(name: str, number: str, notebook: NotebookNode) -> Card:
    """What a lesson's title cell says about it."""
    cell = notebook.cells[0]
    title = re.search(r"^# \d+ · (.+)$", cell.source, re.MULTILINE)
    promise = re.search(r"^\*\*(.+?)\*\*", cell.source, re.MULTILINE | re.DOTALL)
    rows = dict(re.findall(r"^\| ([a-z][a-z ]+) \| (.+) \|$", cell.source, re.MULTILINE))
    words, picture = (found[1], found[2]) if (found := _PICTURE.search(cell.source)) else ("", "")
    if picture.startswith("attachment:"):
        stored = cell.get("attachments", {}).get("cover.png", {}).get("image/png", "")
        picture = f"data:image/png;base64,{stored}" if stored else ""
    return Card(
        number=number,
        title=title[1] if title else name,
        path=f"{name}/{name}.ipynb",
        promise=_inline(promise[1] if promise else ""),
        rows={row: _inline(text) for row, text in rows.items()},
        picture=picture,
        words=words,
    )


def link(notebook: NotebookNode, cards: list[Card], place: int, colab: str | None) -> None:
    """Put the badge and the way to the other lessons below the title, and the way to the next one at the end."""
    here = cards[place]
    top = [f"[![Open in Colab]({_BADGE})]({colab}{here.path})"] if colab else []
    steps = [f"Lesson {place + 1} of {len(cards)}", "[all lessons](../README.md)"]
    if place:
        steps.insert(1, f"before it: {_to(cards[place - 1], colab)}")
    if place + 1 < len(cards):
        steps.append(f"after it: {_to(cards[place + 1], colab)}")
        last = f"**Next:** {_to(cards[place + 1], colab)}"
    else:
        last = "This was the last lesson. Back to [all lessons](../README.md)."
    heading, below = notebook.cells[0].source.split("\n", 1)
    notebook.cells[0].source = "\n\n".join([heading, *top, " · ".join(steps), below.lstrip("\n")])
    notebook.cells.append(nbformat.v4.new_markdown_cell(last, id=f"{here.number}-next"))


def page(name: str, about: dict[str, Any]) -> str:
    """A page of the release, ``index.html`` or ``README.md``, from the template of that name."""
    loader = jinja2.FileSystemLoader(_TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=jinja2.select_autoescape(["html"]), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template(name).render(badge=_BADGE, **about)


def _to(card: Card, colab: str | None) -> str:
    """A link that JupyterLab and GitHub follow; Colab, which knows no neighbouring files, gets one of its own."""
    words = f"[{card.number} · {card.title}](../{card.path})"
    return f"{words} ([in Colab]({colab}{card.path}))" if colab else words


def _inline(text: str) -> str:
    """Markdown in a line as HTML. Mathematics stays as it is written, without its dollar signs."""
    plain = re.sub(r"\$([^$]*)\$", lambda found: html.unescape(found[1]).replace("\\ln", "ln"), " ".join(text.split()))
    return MarkdownIt("commonmark", {"html": False}).renderInline(plain)
