"""A notebook that somebody edited comes back to the lesson's text: the cells that were edited, not one line more."""

import asyncio
import difflib
import json
import shutil
import subprocess
import sys

import nbformat
import pytest
from conftest import LESSONS, ROOT
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from tiny import Tiny

from attention_course.authoring.lesson import Lesson, LessonError, dump, mark, unmark
from attention_course.authoring.text import AGREED, agree, contents, digest, notebook_to_text, spliced

lessons = pytest.mark.parametrize("lesson", LESSONS, ids=lambda x: x.name)


class Edited:
    """A lesson of one's own, its notebook as a build leaves it, and the server's contents manager that saves it."""

    def __init__(self, root):
        self.tiny = Tiny(root)
        self.root = root
        notebook = self.lesson().read()
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="as it was built\n")]
                cell.execution_count = 1
        agree(notebook)
        self.write(notebook)
        self.text = self.lesson().source.read_text()
        config = {}
        exec(
            compile((ROOT / "attention_course/authoring/jupyter_server_config.py").read_text(), "config", "exec"),
            {"get_config": lambda: config.setdefault("c", __import__("traitlets.config").config.Config())},
        )
        self.manager = AsyncLargeFileManager(root_dir=str(root), config=config["c"])
        self.path = "solutions/01_tiny/01_tiny.ipynb"

    def lesson(self) -> Lesson:
        return self.tiny.lesson()

    def read(self) -> nbformat.NotebookNode:
        return nbformat.read(self.lesson().notebook, as_version=4)

    def write(self, notebook) -> None:
        self.lesson().notebook.write_text(dump(notebook))

    def open(self) -> nbformat.NotebookNode:
        """As JupyterLab opens it."""
        return asyncio.run(self.manager.get(self.path))["content"]

    def save(self, notebook) -> None:
        """As JupyterLab saves it: with its own idea of the metadata, and with every cell trusted."""
        content = json.loads(json.dumps(notebook))
        content["metadata"]["language_info"] |= {"version": "3.11.7", "codemirror_mode": {"name": "ipython"}}
        content["metadata"]["kernelspec"] = {"display_name": "Other", "language": "python", "name": "attention-gpu"}
        content["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
        for cell in content["cells"]:
            cell["metadata"] |= {"trusted": True, "editable": True, "slideshow": {"slide_type": ""}, "tags": []}
        asyncio.run(self.manager.save({"type": "notebook", "format": "json", "content": content}, self.path))

    def changed_lines(self) -> list[str]:
        """The lines by which the text differs from what it was."""
        diff = difflib.unified_diff(self.text.splitlines(), self.lesson().source.read_text().splitlines(), n=0)
        return [line for line in diff if line[0] in "+-" and line[:3] not in ("+++", "---")]


@pytest.fixture
def edited(tmp_path):
    return Edited(tmp_path)


def cell(notebook, name):
    return next(c for c in notebook.cells if c.id == name)


def agree_in_all(edited) -> None:
    """Text and notebook say the same, and the notebook knows it."""
    assert contents_plain(edited.lesson().read()) == contents_plain(edited.read())
    assert edited.read().metadata[AGREED] == digest(contents(edited.lesson().read()))


def contents_plain(notebook):
    return [(c.kind, c.source, c.marks) for c in contents(notebook)]


# The way there and back, on the course's own lessons.


@lessons
def test_a_text_spliced_from_its_own_notebook_is_the_same_to_the_byte(lesson):
    assert spliced(lesson, lesson.read()) == lesson.source.read_text()


@lessons
def test_short_headers_and_nbgraders_metadata_say_the_same(lesson):
    for each in lesson.read().cells:
        again = nbformat.from_dict({**each, "metadata": unmark(each)})
        mark(again)
        assert again == each


@lessons
def test_one_edited_cell_changes_its_lines_alone(lesson, tmp_path):
    shutil.copytree(lesson.folder, tmp_path / lesson.name)
    copy = Lesson(tmp_path / lesson.name)
    notebook = copy.read()
    for place in range(0, len(notebook.cells), 9):
        each = notebook.cells[place]
        each.source = f"# one line more\n{each.source}" if each.cell_type == "code" else f"{each.source}\n\nMore."
    before, after = lesson.source.read_text().splitlines(), spliced(copy, notebook).splitlines()
    kept = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    assert {kind for kind, *_ in kept} == {"equal", "insert"}
    added = [line for kind, _, _, a, b in kept if kind == "insert" for line in after[a:b]]
    assert set(added) <= {"# one line more", "# More.", "#"}
    copy.source.write_text("\n".join(after) + "\n")
    ruff = [sys.executable, "-m", "ruff", "format", "--check", "--config", ROOT / "pyproject.toml"]
    assert subprocess.run([*ruff, copy.source], check=False).returncode == 0


# Saved in JupyterLab.


def test_saving_without_an_edit_changes_nothing(edited):
    before = edited.tiny.bytes()
    edited.save(edited.open())
    assert edited.tiny.bytes() == before


def test_saving_one_edited_cell_changes_that_cell_in_both_files(edited):
    before = edited.lesson().notebook.read_text().splitlines()
    notebook = edited.open()
    cell(notebook, "01-002").source = "A tensor is a crate."
    for each in notebook.cells:
        if each.cell_type == "code":  # it was run as well, in another kernel
            each.execution_count, each.outputs = 99, []
    edited.save(notebook)
    assert edited.changed_lines() == ["-# A tensor is a box.", "+# A tensor is a crate."]
    after = edited.lesson().notebook.read_text().splitlines()
    diff = [x for x in difflib.unified_diff(before, after, n=0) if x[0] in "+-" and x[:3] not in ("+++", "---")]
    assert len(diff) == 4, diff
    assert ["A tensor" in x or AGREED in x for x in diff] == [True] * 4
    agree_in_all(edited)


def test_an_exercise_keeps_its_header_and_a_blank_line_its_place(edited):
    notebook = edited.open()
    double = cell(notebook, "double")
    double.source = double.source.replace("    return x + x\n", "    twice = x + x\n\n    return twice\n")
    edited.save(notebook)
    assert edited.changed_lines() == ["-    return x + x", "+    twice = x + x", "+", "+    return twice"]
    agree_in_all(edited)


PANEL = {"schema_version": 3, "task": False}


def test_whatever_nbgraders_panel_can_say_comes_back_to_the_short_form(edited):
    notebook = edited.open()
    cell(notebook, "test-double").metadata.nbgrader.points = 3
    cell(notebook, "setup").metadata.pop("nbgrader")
    plain = cell(notebook, "01-004")
    plain.metadata["nbgrader"] = PANEL | {"grade": False, "grade_id": "clock", "locked": True, "solution": False}
    new = nbformat.v4.new_code_cell("def half(x):\n    ### BEGIN SOLUTION\n    return x / 2\n    ### END SOLUTION\n")
    new.metadata["nbgrader"] = PANEL | {"grade": False, "grade_id": "half", "locked": False, "solution": True}
    test = nbformat.v4.new_code_cell("assert half(2) == 1")
    test.metadata["nbgrader"] = PANEL | {
        "grade": True, "grade_id": "test-half", "locked": True, "solution": False, "points": 2,
    }  # fmt: skip
    notebook.cells += [nbformat.v4.new_markdown_cell("### Half"), new, test]
    notebook.cells.insert(3, notebook.cells.pop(2))  # moved
    edited.save(notebook)
    text = edited.lesson().source.read_text()
    for line in (
        '# %% test="double" points=3', '# %% given="clock"', '# %% exercise="half"', '# %% test="half" points=2',
    ):  # fmt: skip
        assert f"\n{line}\n" in text
    assert 'given="setup"' not in text
    assert "nbgrader" not in text
    assert text.index("def double") < text.index("A tensor is a box.")
    agree_in_all(edited)
    made = cell(edited.read(), new.id).metadata.nbgrader
    assert made == {"cell_type": "code"} | dict(new.metadata.nbgrader)
    notebook = edited.open()
    notebook.cells = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") != "half"]
    edited.save(notebook)
    assert "def half" not in edited.lesson().source.read_text()
    agree_in_all(edited)


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"solution": True, "grade": True}, "cell double: it is a manually graded answer"),
        ({"task": True}, "cell double: it is a manually graded task"),
        ({"solution": True, "locked": True}, "cell double: it is an answer that is locked"),
        ({"grade": True}, "cell double: it holds tests that are not locked"),
        ({"grade": True, "locked": True}, "cell double: it is graded, so its ID is test-NAME"),
        ({"solution": True, "schema_version": 2}, "cell double: nbgrader's notes on it have another version"),
    ],
)
def test_what_the_short_form_cannot_say_is_refused_by_name_and_not_lost(edited, roles, words):
    notebook = edited.open()
    none = {
        "solution": False,
        "grade": False,
        "locked": False,
        "task": False,
        "schema_version": 3,
        "grade_id": "double",
    }
    cell(notebook, "double").metadata.nbgrader = nbformat.from_dict(none | roles)
    cell(notebook, "01-002").source = "Also edited."
    with pytest.raises(Exception, match=words) as caught:
        edited.save(notebook)
    assert "The notebook is saved; its text is as it was." in str(caught.value)
    assert edited.changed_lines() == []
    assert cell(edited.read(), "01-002").source == "Also edited."
    with pytest.raises(LessonError, match=words):
        notebook_to_text(edited.lesson())


def test_a_pasted_picture_and_a_role_for_prose_are_refused_by_name(edited):
    notebook = edited.open()
    prose = cell(notebook, "01-002")
    prose.attachments = {"image.png": {"image/png": "aGk="}}
    with pytest.raises(Exception, match=r"cell 01-002: a picture was pasted into it \(image.png\)"):
        edited.save(notebook)
    del prose["attachments"]
    prose.metadata["nbgrader"] = PANEL | {"grade": False, "grade_id": "prose", "locked": True, "solution": False}
    with pytest.raises(Exception, match="cell prose: it is markdown, and nbgrader has a role for it"):
        edited.save(notebook)
    notebook = edited.read()
    cell(notebook, "01-002").metadata = nbformat.from_dict({})
    cell(notebook, "01-004").source = "x = 1\n# %% not a cell\ny = 2"
    with pytest.raises(Exception, match="cell 01-004: the text cannot hold it as it is"):
        edited.save(notebook)


def test_the_title_picture_comes_back_as_its_short_name(edited):
    edited.tiny.edit("01_tiny.py", "# Tiny words.", "# ![A map](attachment:cover.png)")
    notebook = edited.read()
    title = notebook.cells[0]
    title.source = "# 01 · Tiny\n\n![A map](data:image/png;base64,aGk=)"
    agree(notebook)
    edited.write(notebook)
    edited.text = edited.lesson().source.read_text()
    notebook = edited.open()
    edited.save(notebook)
    assert edited.changed_lines() == []
    notebook.cells[0].source += "\n\nOne sentence more."
    edited.save(notebook)
    assert edited.changed_lines() == ["+#", "+# One sentence more."]
    assert "data:image/png;base64,aGk=" in edited.read().cells[0].source


def test_where_both_were_edited_nothing_is_overwritten(edited):
    notebook = edited.open()
    edited.tiny.edit("01_tiny.py", "# Tiny words.", "# Other words.")
    text = edited.lesson().source.read_text()
    edited.save(notebook)  # not edited here: the text is newer, and stays
    assert edited.lesson().source.read_text() == text
    cell(notebook, "01-002").source = "A tensor is a crate."
    with pytest.raises(Exception, match="were both edited since they last agreed, and differ in 01-000, 01-002"):
        edited.save(notebook)
    assert edited.lesson().source.read_text() == text
    assert cell(edited.read(), "01-002").source == "A tensor is a crate."
    with pytest.raises(LessonError, match="text --force 01"):
        notebook_to_text(edited.lesson())
    assert notebook_to_text(edited.lesson(), force=True) == ["01-000", "01-002"]
    agree_in_all(edited)
    assert "A tensor is a crate." in edited.lesson().source.read_text()


def test_other_notebooks_are_saved_as_they_are(edited):
    for path in ("solutions/01_tiny/scratch.ipynb", "scratch.ipynb", "course/01_tiny/01_tiny.ipynb"):
        (edited.root / path).parent.mkdir(parents=True, exist_ok=True)
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", metadata={"slideshow": {}})])
        edited.path = path
        notebook.metadata.language_info = {"name": "python"}
        edited.save(notebook)
        saved = nbformat.read(edited.root / path, as_version=4)
        assert saved.metadata.kernelspec.name == "attention-gpu"
        assert "slideshow" in saved.cells[0].metadata
    assert edited.changed_lines() == []


# By one command, without JupyterLab.


def test_the_command_brings_a_notebook_back_and_tidies_it(edited):
    notebook = edited.read()
    cell(notebook, "01-002").source = "A tensor is a crate."
    notebook.metadata["language_info"]["version"] = "3.13.0"
    for each in notebook.cells:
        each.metadata["scrolled"] = True
    nbformat.write(notebook, edited.lesson().notebook)
    assert notebook_to_text(edited.lesson()) == ["01-002"]
    assert edited.changed_lines() == ["-# A tensor is a box.", "+# A tensor is a crate."]
    agree_in_all(edited)
    text = edited.lesson().notebook.read_text()
    assert "3.13.0" not in text
    assert "scrolled" not in text
    assert notebook_to_text(edited.lesson()) == []
    assert edited.lesson().notebook.read_text() == text


def test_cells_whose_ids_a_tool_took_away_are_recognised(edited):
    notebook = edited.read()
    for number, each in enumerate(notebook.cells):
        each.id = f"x{number}"
    cell(notebook, "x2").source = "A tensor is a crate."
    edited.write(notebook)
    notebook_to_text(edited.lesson())
    assert edited.changed_lines() == ["-# A tensor is a box.", "+# A tensor is a crate."]


def test_what_is_no_notebook_is_a_sentence(edited):
    edited.lesson().notebook.write_text("{ half")
    with pytest.raises(LessonError, match="cannot be read as a notebook"):
        notebook_to_text(edited.lesson())
    assert edited.lesson().notebook.read_text() == "{ half"


def test_a_lesson_can_be_edited_without_pytorch():
    code = "import attention_course.authoring.contents, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
