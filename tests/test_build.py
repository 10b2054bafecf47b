"""A build does what changed and says why, changes no byte twice, and writes a lesson whole or not at all."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest
from conftest import LESSONS, ROOT
from filelock import FileLock
from tiny import Tiny

from attention_course import plots
from attention_course.authoring import answers, build, guard, stamps
from attention_course.authoring.execute import execute
from attention_course.authoring.files import write_together
from attention_course.authoring.lesson import Lesson, LessonError
from attention_course.authoring.workers import Job


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda x: x.name)
def test_what_is_committed_is_what_the_build_makes(lesson):
    """For the student notebooks see ``test_grading``, where nbgrader releases every lesson."""
    assert build.stale(ROOT, [lesson]) == []


def test_drift_is_noticed_in_each_place(tmp_path):
    lesson = LESSONS[0]
    for name in ("solutions", "course", "attention_course/answers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    moved = Lesson(tmp_path / "solutions" / lesson.name)
    released = tmp_path / "course" / lesson.name / f"{lesson.name}.ipynb"
    original = released.read_text()
    released.write_text(original.replace("A larger vector", "A bigger vector"))
    (found,) = build.drift(tmp_path, [moved])[:1]
    assert "differs from what nbgrader makes" in found
    moved.source.write_text(moved.source.read_text().replace("A larger vector", "A bigger vector"))
    (found,) = build.drift(tmp_path, [Lesson(moved.folder)])
    assert "its cells differ from" in found
    stored = tmp_path / "attention_course" / "answers" / f"{lesson.number}.json"
    stored.write_text(stored.read_text().replace("dividing by d", "dividing by e"))
    assert any("the answers differ" in x for x in build.drift(tmp_path, [Lesson(moved.folder)]))


def test_answers_keep_their_bytes_where_only_the_last_digit_differs(tmp_path):
    lesson = LESSONS[0]
    assert answers.write(lesson, tmp_path)
    path = tmp_path / f"{lesson.number}.npz"
    with np.load(path) as file:
        stored = dict(file)
    nudged = {k: (v * np.array(1 + 1e-6, v.dtype) if v.dtype.kind == "f" else v) for k, v in stored.items()}
    np.savez(path, **nudged)
    before = path.read_bytes()
    assert not answers.write(lesson, tmp_path)
    assert path.read_bytes() == before
    far = {k: (v + np.array(0.1, v.dtype) if v.dtype.kind == "f" else v) for k, v in stored.items()}
    np.savez(path, **far)
    assert answers.write(lesson, tmp_path)
    with np.load(path) as file:
        assert all(np.array_equal(file[k], v, equal_nan=v.dtype.kind == "f") for k, v in stored.items())


def _drawn(shade: float) -> nbformat.NotebookNode:
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        plots.heatmap([[0.5, shade]], rows=["a"], columns=["b", "c"], title="t", alt="two numbers")
    (output,) = captured.outputs
    cell = nbformat.v4.new_code_cell("draw()", id="draw")
    cell.outputs = [nbformat.v4.new_output("display_data", data=dict(output.data), metadata=dict(output.metadata))]
    return nbformat.v4.new_notebook(cells=[cell])


def test_a_picture_that_looks_the_same_keeps_its_bytes():
    from IPython.testing.globalipapp import start_ipython

    start_ipython()
    stored = _drawn(0.2500)
    assert build.kept(_drawn(0.2500001), stored) == stored
    assert build.kept(_drawn(0.75), stored) != stored


def test_a_learners_work_in_course_is_never_overwritten(tmp_path):
    name = LESSONS[0].name
    target = tmp_path / "course" / name / f"{name}.ipynb"
    target.parent.mkdir(parents=True)
    said = []
    notebook = nbformat.read(ROOT / "course" / name / f"{name}.ipynb", as_version=4)
    (cell,) = (c for c in notebook.cells if c.id == "dot_scores")
    cell.source = "def dot_scores(q, k):\n    return q @ k.mT"
    nbformat.write(notebook, target)
    guard.set_aside(tmp_path, [target], said.append)
    kept = tmp_path / "my-work" / f"{name}.ipynb"
    assert "k.mT" in kept.read_text()
    assert str(kept.relative_to(tmp_path)) in said[-1]


# What changed, and what follows from it. A cell of the tiny lesson prints the time at which it ran.


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A course of one lesson that was built once."""
    tiny = Tiny(tmp_path_factory.mktemp("tiny"))
    assert tiny.build() == []
    assert tiny.said[0] == "01: not built on this machine yet"
    assert "answers, solution, student notebook written" in tiny.said[1]
    return tiny


def test_building_twice_changes_no_byte_and_runs_nothing(built):
    before, ran = built.bytes(), built.ran_at()
    assert built.build() == []
    assert built.said == []
    assert built.bytes() == before
    built.stamp().unlink()  # as after a clone: all of it is proved once
    assert built.build() == []
    assert built.said[0] == "01: not built on this machine yet"
    after = built.bytes()
    assert {name for name in after if after[name] != before[name]} == {"solutions/01_tiny/01_tiny.ipynb"}
    assert built.ran_at() != ran, "it was executed"


def test_the_answers_that_are_being_built_are_the_ones_that_are_checked(built):
    assert "double (exercise 1.1) is right" in " ".join(built.shown().split())


@pytest.mark.parametrize(
    ("file", "old", "new", "why", "runs"),
    [
        ("01_tiny.py", "A tensor is a box", "A tensor is a crate", "its text changed", False),
        ("01_tiny.py", "    return x + x\n", "    return 2 * x\n", "its text changed", True),
        ("mistakes.py", "twice too often", "three times", "mistakes.py changed", True),
        ("cases.py", "a vector", "a row", "cases.py changed", True),
        ("alternatives.py", "2 * x", "x * 2", None, False),
    ],
)
def test_what_changed_is_built_and_nothing_else(built, file, old, new, why, runs):
    built.settle()
    ran = built.ran_at()
    built.edit(file, old, new)
    assert built.build() == []
    assert built.said[:1] == ([f"01: {why}"] if why else [])
    assert (built.ran_at() != ran) is runs
    before = built.bytes()
    assert built.build() == []
    assert built.said == []
    assert built.bytes() == before


def test_an_output_that_somebody_changed_is_not_hidden(built):
    built.settle()
    numbers, notebook = built.root / "attention_course" / "answers" / "01.json", built.lesson().notebook
    for path, old, new, words, runs in (
        (built.course, "Tiny", "Small", "its notebook in course/ is not the one that was built", False),
        (numbers, "tiny", "small", "its answers are not the ones", False),  # made again, and they are what they were
        (notebook, "is right", "is wrong", "its stored outputs are not the ones", True),
    ):
        right, ran = path.read_text(), built.ran_at()
        assert old in right
        path.write_text(right.replace(old, new))
        assert built.build() == []
        assert words in built.said[0], path
        assert (built.ran_at() != ran) is runs
        assert new not in path.read_text()


def test_the_files_that_stamps_name_are_there():
    for name in (*stamps.AUTHORING, *stamps.ANSWERING, *stamps.EXECUTING, *stamps.ASKING, *stamps.RELEASING):
        assert (stamps.PACKAGE / name).exists(), name


def test_a_file_of_the_package_is_a_reason_for_every_lesson(tmp_path, monkeypatch):
    package = tmp_path / "package"
    for name in ("check/ladder.py", "plots.py", "grading/agent.py", "authoring/build.py", "answers/01.json"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("before")
    monkeypatch.setattr(stamps, "PACKAGE", package)
    tiny = Tiny(tmp_path / "course")
    old = stamps.of_disk(tiny.root, tiny.lesson())
    for name, stages in (
        ("check/ladder.py", {"answers", "outputs"}),
        ("plots.py", {"answers", "outputs"}),
        ("grading/agent.py", {"release"}),
        ("authoring/build.py", {"notebook", "release"}),
    ):
        (package / name).write_text("after")
        new = stamps.of_disk(tiny.root, tiny.lesson())
        assert stamps.reasons(old, new) == [f"{name} changed"]
        assert {stage for stage in stamps.STAGES if old.inputs[stage] != new.inputs[stage]} == stages
        old = new
    monkeypatch.setattr(stamps, "_version", lambda name: "99.0")
    stamps._versions.cache_clear()
    found = stamps.reasons(old, stamps.of_disk(tiny.root, tiny.lesson()))
    stamps._versions.cache_clear()
    assert any(reason.startswith("torch is 99.0, was ") for reason in found)


def test_a_reason_that_all_share_is_said_once():
    why = {"01": ["check/ladder.py changed"], "02": ["check/ladder.py changed", "its text changed"]}
    assert build.in_words(why, 2) == ["all: check/ladder.py changed", "02: its text changed"]
    assert build.in_words({"01": ["its text changed"], "02": []}, 2) == ["01: its text changed"]
    assert build.in_words({"01": [], "02": []}, 2) == []


# What goes wrong.


def test_a_lesson_that_fails_stays_as_it_was_and_the_others_are_finished(tmp_path):
    tiny = Tiny(tmp_path)
    tiny.add("02_other")
    tiny.edit("01_tiny.py", "print(time.time_ns())", "1 / 0")
    before = tiny.bytes()
    (sentence,) = tiny.build()
    assert sentence.startswith("01_tiny: cell 01-004 failed with ZeroDivisionError: division by zero")
    assert ".build/01_tiny.log" in sentence
    assert "1 / 0" in (tmp_path / ".build" / "01_tiny.log").read_text()
    after = tiny.bytes()
    assert all(name in after and after[name] == content for name, content in before.items())
    fresh = set(after) - set(before)
    assert fresh == {
        "attention_course/answers/02.json",
        "attention_course/answers/02.npz",
        "course/02_other/02_other.ipynb",
        "solutions/02_other/02_other.ipynb",
    }
    tiny.edit("01_tiny.py", "1 / 0", "import os; os.kill(os.getppid(), 9)")  # as where the memory is full
    (sentence,) = tiny.build()
    assert "01_tiny: the process that built it ended without a word (signal 9" in sentence
    assert tiny.bytes().keys() == after.keys()


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("print('noise', file=sys.stderr)", "01_tiny: cell 01-004 writes to stderr"),
        ("1 / 0", "01_tiny: cell 01-004 failed with ZeroDivisionError"),
        ("import os; os._exit(1)", "01_tiny: cell 01-004 ended the kernel"),
    ],
)
def test_a_solution_that_fails_is_named_with_its_cell(tmp_path, cell, words):
    tiny = Tiny(tmp_path)
    tiny.edit("01_tiny.py", 'check.start("01")', "import sys")
    tiny.edit("01_tiny.py", 'check.exercise("double", double)', "")
    tiny.edit("01_tiny.py", "print(time.time_ns())", cell)
    with pytest.raises(LessonError, match=words):
        execute(tiny.lesson())


INTERRUPTED = """
import sys
from pathlib import Path
from attention_course.authoring.build import build
from attention_course.authoring.lesson import all_lessons

if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]), all_lessons(Path(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit("Stopped.")
"""


@pytest.mark.skipif(not hasattr(os, "setsid"), reason="sends Ctrl-C as a Unix terminal does")
def test_ctrl_c_leaves_the_lesson_as_it_was_and_no_process(tmp_path):
    tiny = Tiny(tmp_path / "course")
    started = tmp_path / "started"
    tiny.edit("01_tiny.py", "print(time.time_ns())", f"open({str(started)!r}, 'w').close(); time.sleep(600)")
    before = tiny.bytes()
    script = tmp_path / "run.py"
    script.write_text(INTERRUPTED)
    process = subprocess.Popen(
        [sys.executable, script, str(tiny.root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 120
    while not started.exists() and time.monotonic() < until and process.poll() is None:
        time.sleep(0.1)
    assert started.exists(), process.stderr.read() if process.poll() is not None else "the cell never began"
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2, "a process for the lesson, and its kernel"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "Stopped." in errors
    assert "Traceback" not in errors
    assert psutil.wait_procs(children, timeout=20)[1] == []
    assert tiny.bytes() == before


def test_two_builds_at_once_are_refused(tmp_path):
    tiny = Tiny(tmp_path)
    (tmp_path / ".build").mkdir()
    with FileLock(tmp_path / ".build" / "lock"), pytest.raises(LessonError, match="Another build is running"):
        tiny.build()


def test_a_lesson_that_is_edited_while_it_is_built_is_not_written(tmp_path):
    tiny = Tiny(tmp_path)
    job = Job(tiny.lesson(), stamps.Stamp(), stamps.of_disk(tmp_path, tiny.lesson()))
    tiny.edit("01_tiny.py", "A tensor is a box", "A tensor is a crate")
    made = build.Made({tiny.lesson().notebook: b"{}"})
    with pytest.raises(LessonError, match="was edited while it was built, so nothing was written"):
        build.commit(tmp_path, job, made, print)
    assert not tiny.lesson().notebook.exists()


def test_files_are_written_together_or_not_at_all(tmp_path):
    first, second, folder = tmp_path / "first", tmp_path / "second", tmp_path / "folder"
    first.write_text("old")
    (folder / "something").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        write_together({first: b"new", second: b"new", folder: b"new"})  # a folder cannot be replaced by a file
    assert first.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first", "folder"]
    with pytest.raises(OSError, match="first"):
        write_together({second: b"new", first / "below": b"new"})  # met before anything is exchanged
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first", "folder"]
    write_together({first: b"new", second: b"new"})
    assert first.read_text() == second.read_text() == "new"


def test_a_full_disk_is_a_sentence_and_nothing_is_written(tmp_path, monkeypatch):
    tiny = Tiny(tmp_path)
    job = Job(tiny.lesson(), stamps.Stamp(), stamps.of_disk(tmp_path, tiny.lesson()))

    def full(*_):
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr("attention_course.authoring.files._beside", full)
    with pytest.raises(LessonError, match="01_tiny: nothing was written: No space left on device: somewhere"):
        build.commit(tmp_path, job, build.Made({tiny.lesson().notebook: b"{}"}), print)
    assert not tiny.lesson().notebook.exists()


def test_a_stamp_that_cannot_be_read_counts_as_none(tmp_path):
    tiny = Tiny(tmp_path)
    for text in ("", "{", "[]", json.dumps({"inputs": 1})):
        tiny.stamp().parent.mkdir(exist_ok=True)
        tiny.stamp().write_text(text)
        assert stamps.read(tmp_path, tiny.lesson()) == stamps.Stamp()


# A notebook that was edited is not overwritten.


def test_a_notebook_that_was_edited_is_not_built_over(built):
    built.settle()
    path = built.lesson().notebook
    right = path.read_text()
    path.write_text(right.replace("A tensor is a", "A matrix is a"))
    before = built.bytes()
    (sentence,) = built.build()
    assert "its notebook was edited and its text was not (01-002)" in sentence
    assert "attention-course text 01" in sentence
    assert built.bytes() == before
    built.edit("01_tiny.py", "# Tiny words.", "# Other words.")
    (sentence,) = built.build()
    assert "were both edited" in sentence
    assert path.read_text() != right
    assert built.build(force=True) == []
    assert "kept as my-work/01_tiny-solution" in " ".join(built.said)
    assert "A matrix is a" in next((built.root / "my-work").glob("01_tiny-solution*")).read_text()
    assert "Other words." in path.read_text()
    assert "A matrix is a" not in path.read_text()


def test_two_cells_with_one_name_are_refused(tmp_path):
    tiny = Tiny(tmp_path)
    tiny.edit("01_tiny.py", "# %%\nprint", '# %% given="setup"\nprint')
    with pytest.raises(LessonError, match="two cells have the grade_id 'setup'"):
        tiny.lesson().read()


def test_a_lesson_without_its_text_is_refused(tmp_path):
    with pytest.raises(LessonError, match="has the name of its folder"):
        Lesson(tmp_path)


# What nbgrader hands out.


def test_generate_assignment_hands_out_the_notebook_and_nothing_else(tmp_path):
    from nbgrading import nbgrader

    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    lesson = LESSONS[0]
    folder = tmp_path / "solutions" / lesson.name
    shutil.copytree(lesson.folder, folder)
    for name in (
        "notes.txt", "data.csv", "picture.png", ".hidden", ".secret.txt", "Makefile", "helper.py", "x.tar.gz", "a b.md",
        "sub/deep/scores.csv", "sub/inner.txt", ".folder/x", "__pycache__/cases.cpython-311.pyc",
        ".ipynb_checkpoints/notes.txt", "[x].txt", "*",
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("secret")
    for name in ("scratch", f"{lesson.name}-Copy1", f"Copy of {lesson.name}", "sub/inner", ".ipynb_checkpoints/x"):
        shutil.copy(lesson.notebook, folder / f"{name}.ipynb")
    (folder / "link.txt").symlink_to(lesson.folder / "cases.py")
    (folder / "link.ipynb").symlink_to(lesson.notebook)
    (folder / "linked").symlink_to(lesson.folder, target_is_directory=True)
    run = nbgrader(tmp_path, "generate_assignment", lesson.name)
    assert run.returncode == 0, run.stderr
    written = [p.relative_to(tmp_path / "course").as_posix() for p in (tmp_path / "course").rglob("*")]
    assert sorted(written) == [lesson.name, f"{lesson.name}/{lesson.name}.ipynb"]
    assert "scratch.ipynb is not handed out" in run.stderr


def test_what_a_submission_carries_is_still_seen_when_it_is_graded(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_COURSE_ROOT", str(tmp_path))  # which the configuration sets, for good
    from nbgrader.utils import find_all_files
    from traitlets.config.loader import PyFileConfigLoader

    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    config = PyFileConfigLoader("nbgrader_config.py", path=str(tmp_path)).load_config()
    for place, seen in (
        ("grading/submitted/ann/01_tiny", ["data.csv", "helper.py"]),
        ("grading/autograded/ann/01_tiny", ["data.csv", "helper.py"]),
        ("solutions/./01_tiny", []),
    ):
        for name in ("data.csv", "helper.py"):
            (tmp_path / place).mkdir(parents=True, exist_ok=True)
            (tmp_path / place / name).write_text("x")
        found = find_all_files(f"{tmp_path}/{place}", [*config.CourseDirectory.ignore, "*.ipynb"])
        assert sorted(Path(x).name for x in found) == seen
