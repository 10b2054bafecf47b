"""Whatever a student's file is called, it is graded; no attempt is lost, and what was not graded has no score."""

import json
import os
import shutil
from pathlib import Path

import nbformat
import pytest
from conftest import LESSONS, ROOT
from nbgrading import nbgrader, scores

from attention_course.grading import intake, names, sandbox

LESSON, OTHER = LESSONS[0].name, LESSONS[1].name
RIGHT = f"{LESSON}.ipynb"
TRUSTED = ["--Examine.sandboxed=False"] if sandbox.missing() else []


def notebook(lesson: str, *, remark: str = "") -> str:
    """A student's notebook of a lesson: its cells' names are what it is recognised by."""
    found = nbformat.read(ROOT / "solutions" / lesson / f"{lesson}.ipynb", as_version=4)
    cells = [{"cell_type": "markdown", "id": c.id, "metadata": {}, "source": remark} for c in found.cells]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def submission(tmp_path) -> Path:
    folder = tmp_path / "grading" / "submitted" / "ada" / LESSON
    folder.mkdir(parents=True)
    return folder


def settle(submission: Path) -> list[str]:
    return names.settle(submission, LESSON, submission.parents[2] / "older" / "ada" / LESSON)


def files(submission: Path) -> dict[str, str]:
    """Every file below grading/, by its path: what a test compares to show that nothing is lost."""
    top = submission.parents[2]
    return {str(p.relative_to(top)): p.read_text() for p in sorted(top.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    "name",
    [
        f"Copy of {RIGHT}",
        f"Copy of Copy of {RIGHT}",
        f"Kopie von {RIGHT}",
        f"Копия блокнота {RIGHT}",
        f"{LESSON} (1).ipynb",
        f"{LESSON}-1.ipynb",
        f"{LESSON}.ipynb.txt",
        f"{LESSON}.ipynb.json",
        f"{LESSON}.json",
        f"{LESSON}.IPYNB",
        f"{LESSON.upper()}.ipynb",
        f"{LESSON.replace('_', ' ').title()}.ipynb",
        f"{LESSON.replace('_', '-')}.ipynb",
        f"Lovelace_Ada_123_{RIGHT}",
        f"{LESSON}\uff08\uff11\uff09.ipynb",
        "homework.ipynb",
        "Untitled (3).json",
    ],
)
def test_every_name_is_graded_under_the_right_one(submission, name):
    (submission / name).write_text(notebook(LESSON))
    (submission / "notes.txt").write_text("to whom it may concern")
    assert settle(submission) == [f"{name} is graded as {RIGHT}"]
    assert sorted(p.name for p in submission.iterdir()) == [RIGHT, "notes.txt"]
    assert (submission / RIGHT).read_text() == notebook(LESSON)
    assert settle(submission) == []


def test_the_right_name_is_left_alone(submission):
    (submission / RIGHT).write_text(notebook(LESSON))
    (submission / "data.json").write_text('{"cells": 3}')
    before = files(submission)
    assert settle(submission) == []
    assert files(submission) == before


def test_a_notebook_that_colab_saved_is_known_by_colabs_ids(submission):
    found = json.loads(notebook(LESSON))
    for cell in found["cells"]:
        cell["metadata"]["id"] = cell.pop("id")
    (submission / "Untitled.ipynb").write_text(json.dumps(found | {"nbformat_minor": 0}))
    assert settle(submission) == [f"Untitled.ipynb is graded as {RIGHT}"]


@pytest.mark.parametrize("newest", [RIGHT, f"Copy of {RIGHT}", f"{LESSON} (1).ipynb"])
def test_of_several_attempts_the_newest_wins_and_the_others_are_kept(submission, newest):
    attempts = [RIGHT, f"Copy of {RIGHT}", f"{LESSON} (1).ipynb"]
    for age, name in enumerate(sorted(attempts, key=lambda x: x == newest)):
        (submission / name).write_text(notebook(LESSON, remark=name))
        os.utime(submission / name, (1_700_000_000 + age, 1_700_000_000 + age))
    before = sorted(files(submission).values())
    said = settle(submission)
    assert json.loads((submission / RIGHT).read_text())["cells"][0]["source"] == newest
    assert sorted(files(submission).values()) == before
    assert [p.name for p in submission.iterdir()] == [RIGHT]
    for name in set(attempts) - {newest}:
        assert any(words.startswith(f"{name} is another attempt") and "older" in words for words in said)


def test_an_older_attempt_is_never_overwritten(submission):
    for attempt in range(3):
        (submission / f"Copy of {RIGHT}").write_text(notebook(LESSON, remark=str(attempt)))
        os.utime(submission / f"Copy of {RIGHT}", (2_000_000_000 + attempt, 2_000_000_000 + attempt))
        settle(submission)
    kept = [text for name, text in files(submission).items() if name.startswith("older/")]
    assert {json.loads(text)["cells"][0]["source"] for text in kept} == {"0", "1"}
    assert json.loads((submission / RIGHT).read_text())["cells"][0]["source"] == "2"


def test_what_cannot_be_read_does_not_win_over_what_can(submission):
    (submission / RIGHT).write_text(notebook(LESSON))
    os.utime(submission / RIGHT, (1_700_000_000, 1_700_000_000))
    (submission / f"{LESSON} (1).ipynb").write_text('{"cells": [')
    settle(submission)
    assert (submission / RIGHT).read_text() == notebook(LESSON)
    assert '{"cells": [' in files(submission).values()


def test_another_lesson_is_not_taken_for_this_one(submission):
    (submission / f"Copy of {OTHER}.ipynb").write_text(notebook(OTHER))
    (submission / "empty.ipynb").write_text('{"cells": []}')
    (submission / "list.json").write_text("[1, 2]")
    (submission / "deep.ipynb").write_text("[" * 100_000)
    before = files(submission)
    assert settle(submission) == []
    assert files(submission) == before


def test_links_pipes_and_huge_files_are_named_and_never_opened(submission, tmp_path):
    secret = tmp_path / "secret.ipynb"
    secret.write_text(notebook(LESSON))
    (submission / "link.ipynb").symlink_to(secret)
    (submission / f"Copy of {RIGHT}").symlink_to(secret)
    os.mkfifo(submission / "pipe.ipynb")
    with (submission / "huge.ipynb").open("wb") as file:
        file.truncate(intake.MOST_BYTES + 1)
    assert settle(submission) == [f"Copy of {RIGHT} is graded as {RIGHT}"]  # where it is refused by the student's name
    assert (submission / RIGHT).is_symlink()
    assert {p.name for p in submission.iterdir()} == {RIGHT, "link.ipynb", "pipe.ipynb", "huge.ipynb"}


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course with a short lesson, and a class whose files are called as they come."""
    root = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    lesson = nbformat.read(LESSONS[0].notebook, as_version=4)
    kept = ("setup", "imports", "dot_scores", "test-dot_scores", "their_weights", "weighted_context")
    lesson.cells = [c for c in lesson.cells if c.id in kept]
    (root / "solutions" / LESSON).mkdir(parents=True)
    nbformat.write(lesson, root / "solutions" / LESSON / RIGHT)
    made = nbgrader(root, "generate_assignment", LESSON)
    assert made.returncode == 0, made.stderr
    stub = (root / "course" / LESSON / RIGHT).read_text(encoding="utf-8")
    right = nbformat.writes(lesson)
    class_ = {
        "ada": {f"Copy of {RIGHT}": right},
        "bob": {f"{LESSON}.ipynb.txt": right},
        "cyd": {"homework.ipynb": right},
        "dan": {RIGHT: stub, f"{LESSON} (1).ipynb": right},
        "eve": {"essay.ipynb": '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'},
        "fay": {},
    }
    for student, handed_in in class_.items():
        folder = root / "grading" / "submitted" / student / LESSON
        folder.mkdir(parents=True)
        for age, (name, text) in enumerate(handed_in.items()):
            (folder / name).write_text(text, encoding="utf-8")
            os.utime(folder / name, (1_700_000_000 + age, 1_700_000_000 + age))
    return root


def test_nbgrader_itself_grades_them(course):
    run = nbgrader(course, "autograde", LESSON, *TRUSTED)
    said = run.stdout + run.stderr
    for student in ("ada", "bob", "cyd", "dan"):
        assert scores(course, student, LESSON) == {"test-dot_scores": (1, 1)}, student
        assert f"{student}: " in said
    assert (course / "grading" / "older" / "dan" / LESSON / RIGHT).exists()
    for student in ("eve", "fay"):  # not graded is not 0
        assert scores(course, student, LESSON) == {}
        assert f"{student} was not graded: no notebook of {LESSON} was handed in" in said
    assert "essay.ipynb" in said
    assert "Not graded, as there was no notebook: eve, fay" in said
    assert "Traceback" not in said
    assert run.returncode == 1


def test_where_nobody_handed_in_a_notebook_nothing_is_recorded(course):
    run = nbgrader(course, "autograde", LESSON, "--student=eve", *TRUSTED)
    assert run.returncode == 1
    assert "eve was not graded" in run.stdout + run.stderr
    assert scores(course, "eve", LESSON) == {}
