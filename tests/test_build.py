"""Building twice changes no byte, loses no work, and says what is wrong."""

import shutil

import nbformat
import numpy as np
import pytest
from conftest import LESSONS, ROOT

from attention_course import plots
from attention_course.authoring import answers, build
from attention_course.authoring.lesson import Lesson, LessonError


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
    text, arrays = answers.compute(lesson)
    assert answers.write(lesson, tmp_path)
    path = tmp_path / f"{lesson.number}.npz"
    nudged = {k: (v * np.array(1 + 1e-6, v.dtype) if v.dtype.kind == "f" else v) for k, v in arrays.items()}
    np.savez(path, **nudged)
    assert answers.same(path.with_suffix(".json"), (text, arrays))
    assert not answers.write(lesson, tmp_path)
    far = {k: (v + np.array(0.1, v.dtype) if v.dtype.kind == "f" else v) for k, v in arrays.items()}
    np.savez(path, **far)
    assert answers.write(lesson, tmp_path)


def _drawn(shade: float) -> nbformat.NotebookNode:
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        plots.heatmap([[0.5, shade]], rows=["a"], columns=["b", "c"], title="t", alt="two numbers")
    (output,) = captured.outputs
    cell = nbformat.v4.new_code_cell("draw()", id="draw")
    cell.outputs = [nbformat.v4.new_output("display_data", data=dict(output.data), metadata=dict(output.metadata))]
    return nbformat.v4.new_notebook(cells=[cell])


def test_a_picture_that_looks_the_same_keeps_its_bytes(tmp_path):
    from IPython.testing.globalipapp import start_ipython

    start_ipython()
    path = tmp_path / "lesson.ipynb"
    assert build.keep(path, _drawn(0.2500))
    assert not build.keep(path, _drawn(0.2500001))
    assert build.keep(path, _drawn(0.75))


def test_a_learners_work_in_course_is_never_overwritten(tmp_path):
    name = LESSONS[0].name
    target = tmp_path / "course" / name / f"{name}.ipynb"
    target.parent.mkdir(parents=True)
    shutil.copy(ROOT / "course" / name / f"{name}.ipynb", target)
    assert build.is_untouched(target)
    said = []
    notebook = nbformat.read(target, as_version=4)
    (cell,) = (c for c in notebook.cells if c.id == "dot_scores")
    cell.source = "def dot_scores(q, k):\n    return q @ k.mT"
    for number in ("", "-2"):
        nbformat.write(notebook, target)
        build.set_aside(tmp_path, target, said.append)
        kept = tmp_path / "my-work" / f"{name}{number}.ipynb"
        assert "k.mT" in kept.read_text()
        assert str(kept.relative_to(tmp_path)) in said[-1]
    target.write_text("{ half a notebook")  # cannot be read: it might be somebody's work
    build.set_aside(tmp_path, target, said.append)
    assert (tmp_path / "my-work" / f"{name}-3.ipynb").read_text() == "{ half a notebook"


SCRIPT = """# %% [markdown]
# # 01 · Broken

# %% given="setup"
import sys

# %%
CELL
"""


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("print('noise', file=sys.stderr)", "writes to stderr"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_lesson_that_fails_or_is_noisy_is_not_written(tmp_path, cell, words):
    folder = tmp_path / "01_broken"
    folder.mkdir()
    (folder / "01_broken.py").write_text(SCRIPT.replace("CELL", cell))
    with pytest.raises(LessonError, match=words):
        build.execute(Lesson(folder))


def test_two_cells_with_one_name_are_refused(tmp_path):
    folder = tmp_path / "01_broken"
    folder.mkdir()
    setup = SCRIPT.split("# %%\n")[0]
    (folder / "01_broken.py").write_text(setup + setup.split("Broken\n\n")[1])
    with pytest.raises(LessonError, match="two cells have the grade_id 'setup'"):
        Lesson(folder).read()


def test_a_lesson_without_its_text_is_refused(tmp_path):
    with pytest.raises(LessonError, match="has the name of its folder"):
        Lesson(tmp_path)
