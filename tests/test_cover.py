"""The title's picture goes into the notebook and comes back as the text's short reference, and nothing else changes."""

import base64
import io

import nbformat
import pytest
from conftest import LESSONS
from PIL import Image, ImageDraw

from attention_course.authoring import build, cover
from attention_course.authoring.lesson import LessonError

TITLE = "# 01 · Scores\n\n![Words, (some) in brackets](attachment:cover.png)\n\nand `data:image/png;base64,` in words"


def drawn(word: str = "0.45", noise: int = 0) -> bytes:
    picture = Image.linear_gradient("L").resize((400, 300)).convert("RGB")
    ImageDraw.Draw(picture).text((40, 260), word, fill=(noise, noise, noise))
    buffer = io.BytesIO()
    picture.save(buffer, format="png")
    return buffer.getvalue()


def test_the_picture_comes_back_as_the_reference():
    picture = cover.small(drawn(), 0.5)
    there = cover.embed(TITLE, picture)
    assert cover.picture_in(there) == picture
    assert cover.extract(there) == TITLE
    assert cover.extract(TITLE) == TITLE
    assert cover.picture_in(TITLE) is None
    assert there.startswith("# 01 · Scores\n\n![Words, (some) in brackets](data:image/png;base64,")


def test_a_picture_that_looks_the_same_keeps_its_bytes():
    first = cover.small(drawn(), 0.5)
    with Image.open(io.BytesIO(first)) as opened:
        assert opened.size == (200, 150)
        assert opened.mode == "P"
    assert cover.small(drawn(noise=3), 0.5) != first, "the drawing below differs from the one above"
    assert cover.small(drawn(noise=3), 0.5, first) is first
    assert cover.small(drawn("0.46"), 0.5, first) != first, "another digit is another picture"
    assert cover.small(drawn(), 0.4, first) != first, "and so is another size"


def notebook(tagged: bool = True) -> nbformat.NotebookNode:
    code = nbformat.v4.new_code_cell("draw()", id="draw", metadata={"tags": ["cover"]} if tagged else {})
    picture = base64.b64encode(drawn()).decode()
    code.outputs = [nbformat.v4.new_output("display_data", data={"image/png": picture})]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(TITLE, id="title"), code])


def test_the_build_puts_it_into_the_title():
    first = build.kept(notebook(), None)
    title = first.cells[0]
    assert cover.extract(title.source) == TITLE
    assert cover.picture_in(title.source)
    assert "attachments" not in title
    assert build.kept(notebook(), first) == first, "a second build changes nothing"


def test_a_title_without_a_picture_to_show_is_refused():
    with pytest.raises(LessonError, match="no cell tagged `cover` draws a picture"):
        build.kept(notebook(tagged=False), None)


def test_a_notebook_with_its_picture_follows_from_its_text():
    lesson = LESSONS[0]
    stored = lesson.read()
    stored.cells[0].source = cover.embed(stored.cells[0].source, drawn())
    assert build._cells(stored) == build._cells(lesson.read())
    stored.cells[0].source += " And a word."
    assert build._cells(stored) != build._cells(lesson.read())
