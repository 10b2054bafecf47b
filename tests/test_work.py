"""A learner's work is never lost: in work/ it is updated around, in course/ every command moves it out of the way.

One small lesson is released twice, by nbgrader and this repository's configuration; each kind of work is done to it.
"""

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import nbformat
import pytest
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrading import nbgrader
from traitlets.config import PyFileConfigLoader

from attention_course.authoring import guard, merge, seal, work

NAME = "01_small"
PLACE = Path(NAME, f"{NAME}.ipynb")
HALF = "def {}(q, k):\n    scores = q @ k  # half an answer\n    raise NotImplementedError"


def exercise(name: str, words: str) -> list[nbformat.NotebookNode]:
    """An exercise as its author writes it, and its test."""
    about = {"schema_version": 3, "task": False, "cell_type": "code"}
    answer = f'def {name}(q, k):\n    """{words}"""\n    ### BEGIN SOLUTION\n    return q + k\n    ### END SOLUTION'
    test = f"assert {name}(1, 2) == 3\n### BEGIN HIDDEN TESTS\nassert {name}(2, 2) == 4\n### END HIDDEN TESTS"
    return [
        new_code_cell(
            answer,
            id=name,
            metadata={"nbgrader": about | {"grade_id": name, "solution": True, "grade": False, "locked": False}},
        ),
        new_code_cell(
            test,
            id=f"test-{name}",
            metadata={
                "nbgrader": about
                | {"grade_id": f"test-{name}", "solution": False, "grade": True, "locked": True, "points": 1}
            },
        ),
    ]


def written(*parts: str | list[nbformat.NotebookNode]) -> nbformat.NotebookNode:
    """The author's notebook: prose, code that starts with `#code`, and exercises; ids made by place, as in a lesson."""
    cells: list[nbformat.NotebookNode] = []
    for part in parts:
        if isinstance(part, list):
            cells += part
            continue
        make, text = (new_code_cell, part[5:]) if part.startswith("#code") else (new_markdown_cell, part)
        cells.append(make(text, id=f"01-{len(cells):03d}"))
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


FIRST = written(
    "# 01 · Small",
    "Scores say how much a query asks of each key.",
    "#codetemperature = 1.0\nprint(temperature)",
    "The first exercise is about one score.",
    exercise("dot", "The score."),
    "What you have just written is called a dot product, and it is used everywhere.",
    exercise("mix", "The mixture."),
    exercise("old", "It will leave the lesson."),
    "# Recap\nThat was the lesson.",
)
SECOND = written(
    "# 01 · Small, released anew",
    "A paragraph that is new, so that all that follow have another number.",
    "Scores say how much a query asks of each key.",
    "#codetemperature = 1.0\nprint(temperature)",
    "The first exercise is about one score.",
    exercise("dot", "The score of one query and one key."),
    "What you have just written is called a dot product, and it is used nearly everywhere.",
    exercise("mix", "The mixture."),
    exercise("added", "This one is new."),
    "# Recap\nThat was the lesson.",
)


@pytest.fixture(scope="module")
def courses(tmp_path_factory) -> list[Path]:
    """Two folders with one course each, the second with the lesson's second release."""
    made = []
    for notebook in (FIRST, SECOND):
        root = tmp_path_factory.mktemp("release")
        (root / "solutions" / NAME).mkdir(parents=True)
        nbformat.write(notebook, root / "solutions" / PLACE)
        shutil.copy(ROOT / "nbgrader_config.py", root)
        result = generate(root)
        assert result["success"], result
        made.append(root)
    return made


def generate(root: Path, **settings: str) -> dict:
    """What the formgrader's button does, without the gradebook. ``settings`` are those of nbgrader's folders."""
    with mock.patch.dict(os.environ):  # the configuration sets a variable for its own process
        config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
        config.GenerateAssignment.no_database = True
        config.SaveCells.enabled = False
        config.CourseDirectory.update(settings)
        return NbGraderAPI(CourseDirectory(config=config), config=config).generate_assignment(NAME)


@pytest.fixture
def root(courses, tmp_path) -> Path:
    """A course as somebody downloaded it: solutions, the first release, and no git."""
    for name in ("solutions", "course"):
        shutil.copytree(courses[0] / name, tmp_path / name)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    return tmp_path


@pytest.fixture
def release_anew(courses, root) -> Callable[[], None]:
    """Puts the second release into ``course/``, as a pull does."""
    return lambda: shutil.copy(courses[1] / "course" / PLACE, root / "course" / PLACE) and None


def update(root: Path) -> list[str]:
    said: list[str] = []
    work.update(root, said.append)
    return said


def cells(path: Path) -> dict[str, nbformat.NotebookNode]:
    """A notebook's cells by id; that it is a sound notebook is checked on the way."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    return {cell.id: cell for cell in notebook.cells}


def order(path: Path) -> list[str]:
    return list(cells(path))


# Eight kinds of work. Each is done to a notebook as it was released, and says what must be found after an update.


def edit(path: Path, change: Callable[[list[nbformat.NotebookNode]], None]) -> None:
    notebook = nbformat.read(path, as_version=4)
    change(notebook.cells)
    nbformat.write(notebook, path)


def named(found: list[nbformat.NotebookNode], name: str) -> nbformat.NotebookNode:
    return next(cell for cell in found if cell.id == name)


def half_answer(path: Path) -> None:
    edit(path, lambda found: named(found, "dot").update(source=HALF.format("dot")))


def note(path: Path) -> None:
    def change(found):
        named(found, "01-006").source += "\n\nMy note: remember this."
        found.insert(2, new_markdown_cell("A note of my own.", id="mine"))

    edit(path, change)


def own_cell(path: Path) -> None:
    edit(path, lambda found: found.insert(5, new_code_cell("print('tried it')", id="tried")))


def changed_given(path: Path) -> None:
    edit(path, lambda found: named(found, "01-002").update(source="temperature = 0.1\nprint(temperature)"))


def output_only(path: Path) -> None:
    output = new_output("stream", text="1.0\n")
    edit(path, lambda found: named(found, "01-002").update(outputs=[output], execution_count=1))


def deleted_cell(path: Path) -> None:
    edit(path, lambda found: found.remove(named(found, "01-001")))


def renamed_file(path: Path) -> None:
    half_answer(path)
    path.rename(path.with_name("my try.ipynb"))


def unreadable(path: Path) -> None:
    half_answer(path)
    path.write_bytes(path.read_bytes()[:700])


KINDS = [half_answer, note, own_cell, changed_given, output_only, deleted_cell, renamed_file, unreadable]


def by_source(path: Path, start: str) -> nbformat.NotebookNode:
    (found,) = [cell for cell in cells(path).values() if cell.source.startswith(start)]
    return found


def sources(path: Path) -> list[str]:
    return [cell.source for cell in cells(path).values()]


def ends_well(kind: Callable, mine: Path, said: str) -> None:
    """Where the work of one kind is after the update of ``mine``."""
    if kind is half_answer:
        assert cells(mine)["dot"].source == HALF.format("dot")
        assert "the release changed the same cell (its text is in course/): dot" in said
    elif kind is note:
        assert by_source(mine, "What you have").source.endswith("used nearly everywhere.\n\nMy note: remember this.")
        assert said.endswith("the file as it was."), "the new text and the note: nothing to choose"
        ids = order(mine)
        assert ids[ids.index("mine") - 1] == "01-002", "after the paragraph that it stood after"
    elif kind is own_cell:
        ids = order(mine)
        assert ids[ids.index("tried") - 1 :][:3] == ["dot", "tried", "test-dot"]
    elif kind is changed_given:
        assert by_source(mine, "temperature").source == "temperature = 0.1\nprint(temperature)"
        assert said.endswith("Given cells that you changed stay yours: “temperature = 1.0”.")
    elif kind is output_only:
        assert by_source(mine, "temperature").outputs[0].text == "1.0\n"
    elif kind is deleted_cell:
        assert not [text for text in sources(mine) if text.startswith("Scores say")]
    elif kind is renamed_file:
        assert HALF.format("dot") in sources(mine.with_name("my try.ipynb"))
        assert HALF.format("dot") not in sources(mine)
    elif kind is unreadable:
        assert HALF.format("dot") not in sources(mine)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_update_goes_around_the_work(root, release_anew, kind):
    update(root)
    mine = root / "work" / PLACE
    kind(mine)
    before = {path.name: path.read_bytes() for path in mine.parent.iterdir()}
    release_anew()
    said = update(root)
    assert len(said) == 1, said
    ends_well(kind, mine, said[0])
    assert "“A paragraph that is new" not in said[0]
    assert cells(mine)["01-000"].source == "# 01 · Small, released anew", "the rest is the new release"
    assert "added" in cells(mine)
    after = {path.read_bytes() for path in mine.parent.iterdir()}
    assert set(before.values()) <= after, "every file that was there is still there, byte for byte"
    assert update(root) == [], "a second time there is nothing to do"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("writer", ["build", "formgrader"])
def test_work_in_course_is_moved_before_something_is_written_there(root, writer, kind):
    there = root / "course" / PLACE
    released = there.read_bytes()
    kind(there)
    (worked,) = there.parent.iterdir()
    bytes_of_work = worked.read_bytes()
    if writer == "build":
        said: list[str] = []
        guard.set_aside(root, [worked], said.append)
        assert len(said) == 1
        assert not worked.exists()
    else:
        result = generate(root)
        assert result["success"], result
        assert there.read_bytes() == released
        assert [path.name for path in there.parent.iterdir()] == [there.name]
        assert "was not as released" in result["log"]
    kept = [path for path in (root / "my-work").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in kept] == [bytes_of_work]


def test_nbgraders_own_command_moves_work_and_others_files(root):
    there = root / "course" / PLACE
    half_answer(there)
    (there.parent / "helpers.py").write_text("mine = 1\n")
    worked = there.read_bytes()
    run = nbgrader(root, "generate_assignment", NAME, "--force", "--no-db")
    assert run.returncode == 0, run.stderr
    assert f"course/{NAME}/{NAME}.ipynb was not as released; what was there is my-work/{NAME}.ipynb now." in run.stderr
    assert (root / "my-work" / there.name).read_bytes() == worked
    assert (root / "my-work" / NAME / "helpers.py").read_text() == "mine = 1\n"
    assert guard.is_released(root, there)


def test_a_release_to_another_folder_leaves_course_alone(root):
    """`make release` and the build ask nbgrader for the student notebooks in a folder of their own."""
    there = root / "course" / PLACE
    released = there.read_bytes()
    half_answer(there)
    worked = there.read_bytes()
    assert generate(root, release_directory=str(root / "other"))["success"]
    assert there.read_bytes() == worked
    assert not (root / "my-work").exists()
    assert (root / "other" / PLACE).read_bytes() == released, "made of solutions/ alone, the same bytes wherever"


def test_nbgrader_deletes_nothing_that_could_not_be_moved(root):
    there = root / "course" / PLACE
    half_answer(there)
    worked = there.read_bytes()
    (root / "my-work").write_text("a file stands where the folder should be")
    result = generate(root)
    assert not result["success"]
    assert "could not be moved to my-work/" in result["error"]
    assert there.read_bytes() == worked


def test_what_is_released_stays_where_it_is(root):
    said: list[str] = []
    guard.set_aside(root, [root / "course", root / "course" / PLACE, root / "solutions" / PLACE], said.append)
    assert said == []
    assert guard.is_released(root, root / "course" / PLACE)
    assert not (root / "my-work").exists()


def test_a_copy_under_another_name_is_somebodys_and_an_untouched_checkpoint_is_nobodys(root):
    there = root / "course" / PLACE
    checkpoint = there.parent / ".ipynb_checkpoints" / f"{NAME}-checkpoint.ipynb"
    checkpoint.parent.mkdir()
    shutil.copy(there, checkpoint)
    shutil.copy(there, there.with_name("for later.ipynb"))
    said: list[str] = []
    guard.set_aside(root, [there.parent], said.append)
    assert len(said) == 1
    assert (root / "my-work" / NAME / "for later.ipynb").exists()
    assert checkpoint.exists()
    half_answer(checkpoint)
    guard.set_aside(root, [there.parent], said.append)
    assert (root / "my-work" / NAME / checkpoint.name).exists()


def test_older_work_in_my_work_is_never_overwritten(root, courses):
    for number, words in ((1, "first"), (2, "second"), (3, "second"), (4, "third")):
        there = root / "course" / PLACE
        shutil.copy(courses[0] / "course" / PLACE, there)
        edit(there, lambda found, words=words: named(found, "mix").update(source=words))
        guard.set_aside(root, [there], lambda _: None)
        assert not there.exists(), number
    kept = sorted((root / "my-work").iterdir())
    assert [path.name for path in kept] == [f"{NAME}-2.ipynb", f"{NAME}-3.ipynb", f"{NAME}.ipynb"]
    assert {cells(path)["mix"].source for path in kept} == {"first", "second", "third"}, "the same bytes are kept once"


def test_opening_and_saving_alone_is_not_work(root, release_anew):
    """JupyterLab notes the version of Python on opening, and how cells are folded; a learner did not write that."""
    update(root)
    mine = root / "work" / PLACE
    notebook = nbformat.read(mine, as_version=4)
    notebook.metadata.language_info = {"name": "python", "version": "3.13.1"}
    notebook.cells[2].metadata.update(jupyter={"source_hidden": True}, collapsed=True)
    nbformat.write(notebook, mine)
    release_anew()
    (said,) = update(root)
    assert "nothing there was yours yet" in said
    assert mine.read_bytes() == (root / "course" / PLACE).read_bytes()
    assert len(list(mine.parent.iterdir())) == 1


def test_copies_are_made_once_and_said_once(root):
    (said,) = update(root)
    assert said == f"work/ has your own copy of {NAME} now; git ignores it."
    assert (root / "work" / PLACE).read_bytes() == (root / "course" / PLACE).read_bytes()
    assert update(root) == []
    before = (root / "work" / PLACE).stat().st_mtime_ns
    assert update(root) == []
    assert (root / "work" / PLACE).stat().st_mtime_ns == before


def test_what_else_can_happen_to_a_copy(root, release_anew):
    """A locked cell changed, a graded one deleted, cells moved, an exercise gone, an id twice, an own cell on top."""
    update(root)
    mine = root / "work" / PLACE

    def change(found):
        by_id = {cell["id"]: cell for cell in found}
        by_id["test-dot"]["source"] = "assert True"
        by_id["old"]["source"] = HALF.format("old")
        by_id["mix"]["source"] = HALF.format("mix")
        by_id["mix"]["outputs"] = [new_output("stream", text="half\n")]
        by_id["01-006"]["source"] = "I wrote this paragraph anew."
        found.remove(by_id["test-mix"])
        found.append(found.pop(0))  # the title goes to the end
        found.insert(0, {"cell_type": "markdown", "source": "On top.", "id": "top", "metadata": {}})
        found.append(by_id["mix"] | {"source": "a second cell of that name"})

    notebook = json.loads(mine.read_text())
    change(notebook["cells"])
    mine.write_text(json.dumps(notebook))
    release_anew()
    (said,) = update(root)
    got = cells(mine)
    assert "hidden" not in got["test-dot"].source
    assert got["test-dot"].source == "assert dot(1, 2) == 3"
    assert "Locked cells are as released: test-dot." in said
    assert "the release changed the same cell (its text is in course/): “What you have just written" in said
    assert sources(mine).count("I wrote this paragraph anew.") == 1
    assert "Back, because the lesson needs them: test-mix." in said
    assert "No longer in the lesson, kept as cells of your own: old." in said
    (gone,) = [cell for cell in got.values() if cell.source == HALF.format("old")]
    assert "nbgrader" not in gone.metadata
    assert got["mix"].source == HALF.format("mix")
    assert got["mix"].outputs[0].text == "half\n"
    (twin,) = [cell for cell in got.values() if cell.source == "a second cell of that name"]
    assert "nbgrader" not in twin.metadata
    assert twin.metadata.get("deletable", True)
    assert order(mine)[:2] == ["top", "01-000"]
    assert update(root) == []


def test_outputs_stay_where_a_cell_did_not_change(root, release_anew):
    update(root)
    mine = root / "work" / PLACE

    def change(found):
        for name in ("01-002", "dot", "mix"):
            named(found, name).outputs = [new_output("stream", text=name)]

    edit(mine, change)
    release_anew()
    update(root)
    assert by_source(mine, "temperature").outputs[0].text == "01-002"
    assert cells(mine)["mix"].outputs[0].text == "mix"
    assert cells(mine)["dot"].outputs == [], "the release changed this stub, so the output is of another cell"


@pytest.mark.parametrize("hidden", [True, False], ids=["with the base", "without it"])
def test_a_notebook_that_lost_its_ids_is_recognised(root, release_anew, hidden):
    """Some tools write an older format: no ids, and no metadata of the notebook."""
    update(root)
    mine = root / "work" / PLACE
    half_answer(mine)
    note(mine)
    notebook = json.loads(mine.read_text())
    notebook |= {"nbformat_minor": 4, "metadata": {}}
    for cell in notebook["cells"]:
        del cell["id"]
    mine.write_text(json.dumps(notebook))
    if not hidden:
        shutil.rmtree(root / "work" / ".released")
    release_anew()
    (said,) = update(root)
    assert cells(mine)["dot"].source == HALF.format("dot")
    assert by_source(mine, "What you have").source.endswith("My note: remember this.") is hidden
    assert sources(mine).count("A note of my own.") == 1
    assert len([text for text in sources(mine) if text.startswith("Scores say")]) == 1, "nothing stands there twice"
    assert ("is not known" in said) is not hidden
    assert update(root) == []


def test_an_older_file_put_back_is_known_by_its_own_seal(root, release_anew):
    update(root)
    mine = root / "work" / PLACE
    half_answer(mine)
    older = mine.read_bytes()
    release_anew()
    update(root)
    mine.write_bytes(older)  # what a learner does who wants the old file back
    update(root)
    assert cells(mine)["dot"].source == HALF.format("dot")
    assert cells(mine)["01-000"].source == "# 01 · Small, released anew"
    assert [path.name for path in sorted(mine.parent.iterdir())] == [f"{NAME}-before-update.ipynb", f"{NAME}.ipynb"]


def test_a_lesson_that_is_released_no_more_stays_with_the_learner(root):
    update(root)
    mine = root / "work" / PLACE
    half_answer(mine)
    before = mine.read_bytes()
    shutil.rmtree(root / "course" / NAME)
    assert update(root) == []
    assert mine.read_bytes() == before


@pytest.mark.parametrize("git", [True, False], ids=["git", "no git"])
def test_work_found_in_course_becomes_the_learners_copy(root, git):
    there, mine = root / "course" / PLACE, root / "work" / PLACE
    released = there.read_bytes()
    if git:
        commit(root)
    half_answer(there)
    worked = there.read_bytes()
    shutil.copy(there, there.with_name("my try.ipynb"))
    said = update(root)
    assert len(said) == 2
    assert f"course/{NAME}/{NAME}.ipynb had work in it. That is your copy in work/ now" in said[1]
    assert mine.read_bytes() == worked
    assert mine.with_name("my try.ipynb").read_bytes() == worked
    assert (root / "my-work" / there.name).read_bytes() == worked
    assert there.read_bytes() == (released if git else worked), "without git the release is nowhere else"
    assert not there.with_name("my try.ipynb").exists()
    assert update(root) == []


def test_work_in_course_never_replaces_work_in_work(root):
    update(root)
    there, mine = root / "course" / PLACE, root / "work" / PLACE
    own_cell(mine)
    before = mine.read_bytes()
    released = there.read_bytes()
    half_answer(there)
    worked = there.read_bytes()
    (said,) = update(root)
    assert "was not as released" in said
    assert mine.read_bytes() == before
    assert (root / "my-work" / there.name).read_bytes() == worked
    assert there.read_bytes() == released, "work/.released/ has it"


def test_a_release_older_than_seals_is_compared_with_git(root):
    there = root / "course" / PLACE
    notebook = seal.read(there)
    del notebook["metadata"][seal.KEY]
    there.write_bytes(seal.dump(notebook))
    assert not guard.is_released(root, there), "nothing vouches for it"
    commit(root)
    assert guard.is_released(root, there)
    update(root)
    assert seal.stored(seal.read(root / "work" / PLACE)), "the learner's copy has a seal all the same"
    half_answer(there)
    assert not guard.is_released(root, there)


def commit(root: Path) -> None:
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "course"], [*who, "commit", "-qm", "release"]):
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


@pytest.mark.parametrize("when", ["the old file is kept", "the new one is written"])
def test_a_full_disk_is_a_sentence_and_loses_nothing(root, release_anew, monkeypatch, when):
    update(root)
    mine = root / "work" / PLACE
    half_answer(mine)
    before = mine.read_bytes()
    release_anew()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfileobj" if "kept" in when else "os.fdopen", full)
        (said,) = update(root)
    assert said.endswith("is as it was: it could not be brought up to date (No space left on device).")
    assert mine.read_bytes() == before
    assert not list(mine.parent.glob("*.part")) + list(mine.parent.glob(".*.part")), "no half a file is left behind"
    update(root)
    assert "added" in cells(mine), "with room again, the update is made"


def test_no_copy_at_all_is_an_error(root):
    (root / "work").write_text("a file stands where the folder should be")
    with pytest.raises(work.NoCopyError, match=f"could not be given a copy of {NAME}"):
        work.update(root)


def test_the_first_lesson_with_something_to_write_is_opened(root):
    assert work.first_unfinished(root) is None
    update(root)
    other = root / "work" / "02_more" / "02_more.ipynb"
    shutil.copytree(root / "work" / NAME, other.parent)
    (other.parent / f"{NAME}.ipynb").rename(other)
    assert work.first_unfinished(root) == root / "work" / PLACE
    for path, expected in ((root / "work" / PLACE, other), (other, root / "work" / PLACE)):
        edit(path, lambda found: [named(found, name).update(source="done = 1") for name in ("dot", "mix", "old")])
        assert work.first_unfinished(root) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"cells": [1], "metadata": {}}',
        b'{"cells": [{}], "metadata": {}}',
        b"[" * 10**5,
    ],
)
def test_what_is_no_notebook_is_none(tmp_path, data):
    (tmp_path / "x.ipynb").write_bytes(data)
    assert seal.read(tmp_path / "x.ipynb") is None


def test_a_seal_says_what_was_changed(root):
    notebook = seal.read(root / "course" / PLACE)
    about = seal.stored(notebook)
    assert about == seal.make(notebook)
    assert not seal.holds_work(notebook, about.pieces)
    notebook["cells"][1]["source"] += " "
    assert seal.holds_work(notebook, about.pieces)
    assert merge.name(notebook["cells"][1]) == "“Scores say how much a query asks of each…”"
