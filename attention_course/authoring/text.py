"""From an edited notebook back to the lesson's text: the cells that were edited, and not one line more.

The text is what a lesson is written in; its notebook may be edited all the same, in JupyterLab and with nbgrader's own
panel. A notebook remembers, in its metadata, a digest of the cells with which it and the text last agreed. So it can be
told which of the two was edited since, after a clone as well, and nothing is overwritten where both were.
"""

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass

import jupytext
import nbformat
from jupytext.pep8 import pep8_lines_between_cells
from nbformat import NotebookNode

from .cover import extract
from .files import write_together
from .lesson import Lesson, LessonError, dump, mark, unmark

AGREED = "agreed"  # the key of that digest in a notebook's metadata
_MARKER = re.compile(r"# %%(?:\s.*)?$")


@dataclass(frozen=True)
class Content:
    """What a cell says, whichever of the two files it stands in."""

    kind: str
    source: str
    marks: str
    name: str

    def same(self, other: "Content") -> bool:
        """Do both say the same? Names that are made of a cell's place do not count."""
        return (self.kind, self.source, self.marks) == (other.kind, other.source, other.marks)


def contents(notebook: NotebookNode) -> list[Content]:
    """The cells of a lesson's notebook as its text has them.

    Raises:
        LessonError: if a cell is what no text can say; the message names the cell.
    """
    return [_content(cell) for cell in notebook.cells]


def digest(found: list[Content]) -> str:
    """A few letters that stand for ``found``: other letters, other cells."""
    plain = json.dumps([(c.kind, c.source, c.marks) for c in found])
    return hashlib.sha256(plain.encode()).hexdigest()[:20]


def differing(one: list[Content], other: list[Content]) -> list[str]:
    """The names of the cells in which two versions differ, in the order of the first."""
    pairs = ((one, other), (other, one))
    return list(dict.fromkeys(c.name for a, b in pairs for c in a if not any(c.same(x) for x in b)))


def edited(lesson: Lesson, notebook: NotebookNode) -> tuple[bool, bool]:
    """Was the text edited since both agreed, and was the ``notebook``? Both count as edited where that is not known."""
    text, theirs = contents(lesson.read()), contents(notebook)
    agreed = notebook.metadata.get(AGREED)
    if digest(text) == digest(theirs):
        return False, False
    return digest(text) != agreed, digest(theirs) != agreed


def bring_back(lesson: Lesson, notebook: NotebookNode, *, force: bool = False) -> list[str]:
    """Put what was edited in ``notebook`` into the lesson's text. Returns the names of the cells that changed.

    Args:
        force: also where the text was edited since both agreed, which then is lost.

    Raises:
        LessonError: if both were edited, or if a cell cannot be said in the text. Nothing is written then.
    """
    text, theirs = contents(lesson.read()), contents(notebook)
    in_text, in_notebook = edited(lesson, notebook)
    if not in_notebook and not (force and in_text):
        return []
    if in_text and not force:
        raise LessonError(both_edited(lesson, text, theirs))
    fresh = spliced(lesson, notebook)
    write_together({lesson.source: fresh.encode("utf-8")})
    return differing(theirs, text) or ["the order of the cells"]


def both_edited(lesson: Lesson, text: list[Content], theirs: list[Content]) -> str:
    """What to say where text and notebook differ and neither may be overwritten."""
    cells = ", ".join(differing(theirs, text)[:6]) or "their order"
    return (
        f"{lesson.name}: its text and its notebook were both edited since they last agreed, and differ in {cells}. "
        f"Nothing was overwritten. To keep the notebook's cells: attention-course text --force {lesson.number}. "
        f"To keep the text's: attention-course build --force {lesson.number}."
    )


def notebook_to_text(lesson: Lesson, *, force: bool = False) -> list[str]:
    """Bring the stored notebook's edits into the text, and the notebook back to what the build writes.

    Returns the names of the cells that changed.

    Raises:
        LessonError: as :func:`bring_back` does, and if the notebook cannot be read.
    """
    try:
        stored = nbformat.read(lesson.notebook, as_version=4)
    except Exception as error:
        raise LessonError(f"{lesson.notebook.name} cannot be read as a notebook ({error}).") from None
    notebook = tidied(lesson, stored, None)
    changed = bring_back(lesson, notebook, force=force)
    if not any(edited(Lesson(lesson.folder), notebook)):
        agree(notebook)
    if notebook != stored:
        write_together({lesson.notebook: dump(notebook).encode("utf-8")})
    return changed


def agree(notebook: NotebookNode) -> None:
    """Note in ``notebook`` that its cells are those of the text."""
    notebook.metadata[AGREED] = digest(contents(notebook))


def spliced(lesson: Lesson, notebook: NotebookNode) -> str:
    """The lesson's text with the cells of ``notebook``; of a cell that says the same, not a letter changes.

    Raises:
        LessonError: if reading that text would not give the notebook's cells.
    """
    head, pieces = _pieces(lesson)
    text, theirs = contents(lesson.read()), contents(notebook)
    if len(pieces) != len(text):
        raise LessonError(f"{lesson.source}: its cells cannot be told apart. Each begins with a line `# %%`.")
    origins = _origins(text, theirs)
    blocks = []
    for place, content in enumerate(theirs):
        origin = origins[place]
        old = pieces[origin][0] if origin is not None else None
        unchanged = origin is not None and content.same(text[origin])
        blocks.append(old if unchanged else _rendered(content, text, origin, old))
    lines = [*head]
    for place, block in enumerate(blocks):
        lines += block
        if place + 1 < len(blocks):
            lines += [""] * _gap(pieces, blocks, origins, place)
    fresh = "\n".join(lines) + "\n"
    _prove(lesson, fresh, theirs)
    return fresh


def tidied(lesson: Lesson, notebook: NotebookNode, stored: NotebookNode | None) -> NotebookNode:
    """``notebook`` as the build would have written it, but for what was edited.

    A cell that says the same as in ``stored`` is taken from there, with its outputs; of an edited one stay its source
    and what it showed. Editors' notes, widgets' states and the kernel that was used go.
    """
    old = {cell.id: cell for cell in stored.cells} if stored else {}
    cells = []
    for cell in notebook.cells:
        content = _content(cell)
        before = old.get(cell.id)
        if before is not None and _says(before, content):
            cells.append(before)
            continue
        fresh = nbformat.from_dict({k: v for k, v in cell.items() if k != "metadata"})
        fresh.metadata = nbformat.from_dict(json.loads(content.marks))
        mark(fresh)
        cells.append(fresh)
    agreed = (stored or notebook).metadata.get(AGREED)
    made = lesson.read()
    made.cells = cells
    if agreed:
        made.metadata[AGREED] = agreed
    return made


def _content(cell: NotebookNode) -> Content:
    if others := set(cell.get("attachments", {})) - {"cover.png"}:
        raise LessonError(
            f"cell {cell.id}: a picture was pasted into it ({', '.join(sorted(others))}), which a text cannot hold. "
            "Take it out; a lesson draws its pictures."
        )
    source = extract(cell.source).strip("\n").rstrip()
    return Content(cell.cell_type, source, json.dumps(unmark(cell)), cell.id)


def _says(cell: NotebookNode, content: Content) -> bool:
    with suppress(LessonError):
        return content.same(_content(cell))
    return False


def _pieces(lesson: Lesson) -> tuple[list[str], list[tuple[list[str], int]]]:
    """The lines above the first cell, and of each cell its lines and how many empty ones follow."""
    starts, lines = [], lesson.source.read_text(encoding="utf-8").rstrip("\n").split("\n")
    for place, line in enumerate(lines):
        if _MARKER.match(line):
            starts.append(place)
    pieces = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        block = lines[start:end]
        while len(block) > 1 and not block[-1].strip():
            block.pop()
        pieces.append((block, end - start - len(block)))
    return lines[: starts[0]] if starts else lines, pieces


def _origins(text: list[Content], theirs: list[Content]) -> list[int | None]:
    """For each cell of the notebook the cell of the text it comes from, None for a new one."""
    free = dict(enumerate(text))
    found: list[int | None] = [None] * len(theirs)
    rules = (
        lambda a, b: a.name == b.name and a.same(b),
        lambda a, b: a.same(b),
        lambda a, b: a.name == b.name and a.kind == b.kind,
    )
    for rule in rules:
        for place, content in enumerate(theirs):
            if found[place] is None:
                found[place] = next((i for i, x in free.items() if rule(content, x)), None)
                free.pop(found[place], None)
    for place, content in enumerate(theirs):  # last, by place: what stands below the same cell as before
        below = found[place - 1] + 1 if place and found[place - 1] is not None else 0
        if found[place] is None and below in free and free[below].kind == content.kind:
            found[place] = below
            del free[below]
    return found


def _rendered(content: Content, text: list[Content], origin: int | None, old: list[str] | None) -> list[str]:
    """The lines of an edited cell; where only its source changed, its header stays as somebody wrote it."""
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
    make["raw"] = nbformat.v4.new_raw_cell
    cell = make[content.kind](content.source, metadata=json.loads(content.marks))
    about = {"jupytext": {"notebook_metadata_filter": "-all", "cell_metadata_filter": "all"}}
    lines = jupytext.writes(nbformat.v4.new_notebook(cells=[cell], metadata=about), fmt="py:percent")
    block = lines.rstrip("\n").split("\n")
    if old and origin is not None and (content.kind, content.marks) == (text[origin].kind, text[origin].marks):
        block[0] = old[0]
    return block


def _gap(pieces: list[tuple[list[str], int]], blocks: list[list[str]], origins: list[int | None], place: int) -> int:
    """How many empty lines stand below a cell: as many as there were, unless its kind of neighbour changed."""
    wanted = pep8_lines_between_cells(blocks[place], blocks[place + 1], ".py")
    here, below = origins[place], origins[place + 1]
    if here is None or below != here + 1:
        return wanted
    before = pep8_lines_between_cells(pieces[here][0], pieces[below][0], ".py")
    return pieces[here][1] if before == wanted else wanted


def _prove(lesson: Lesson, fresh: str, theirs: list[Content]) -> None:
    """The text gives the notebook's cells back, or nothing is written."""
    back = contents(lesson.parse(fresh))
    for mine, read in zip(theirs, back, strict=False):
        if not mine.same(read):
            raise LessonError(
                f"cell {mine.name}: the text cannot hold it as it is. A line in it that begins with `# %%` or with a "
                "jupytext command reads as something else there; write it differently."
            )
    if len(theirs) != len(back):
        raise LessonError(f"{lesson.name}: a notebook without a single cell is no lesson.")
