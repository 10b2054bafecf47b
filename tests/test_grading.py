"""`nbgrader autograde` with the real gradebook: a solution gets full marks, an untouched notebook nothing."""

import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from conftest import LESSONS, ROOT
from nbgrading import nbgrader, scores

from attention_course.grading import sandbox

# Where there is no sandbox, as on macOS, the solutions are graded without it: they are ours.
TRUSTED = ["--Examine.sandboxed=False"] if sandbox.missing() else []


class Course:
    """A copy of the course in a folder of its own, in which submissions are graded."""

    def __init__(self, root: Path):
        self.root = root
        shutil.copy(ROOT / "nbgrader_config.py", root)
        for lesson in LESSONS:
            shutil.copytree(
                lesson.folder, root / "solutions" / lesson.name, ignore=shutil.ignore_patterns("__pycache__")
            )

    def nbgrader(self, *args: str) -> subprocess.CompletedProcess:
        return nbgrader(self.root, *args)

    def submit(self, student: str, lesson: str, notebook: nbformat.NotebookNode) -> None:
        folder = self.root / "grading" / "submitted" / student / lesson
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{lesson}.ipynb")

    def scores(self, student: str, lesson: str) -> dict[str, tuple[float, float]]:
        return scores(self.root, student, lesson)


def released(course: Course, lesson: str) -> nbformat.NotebookNode:
    return nbformat.read(course.root / "course" / lesson / f"{lesson}.ipynb", as_version=4)


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Course:
    made = Course(tmp_path_factory.mktemp("course"))
    for lesson in LESSONS:
        run = made.nbgrader("generate_assignment", lesson.name)
        assert run.returncode == 0, run.stderr
        solved = nbformat.read(lesson.notebook, as_version=4)
        for cell in solved.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        made.submit("right", lesson.name, solved)
        made.submit("untouched", lesson.name, released(made, lesson.name))
    return made


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda x: x.name)
def test_the_solution_gets_full_marks_and_a_stub_none(course, lesson):
    run = course.nbgrader("autograde", lesson.name, *TRUSTED)
    assert run.returncode == 0, run.stderr
    full, none = course.scores("right", lesson.name), course.scores("untouched", lesson.name)
    wanted = {c.id for e in lesson.exercises for c in lesson.tests(e.name)}
    assert set(full) == set(none) == wanted
    assert [name for name, (score, most) in full.items() if score != most] == []
    assert [name for name, (score, _) in none.items() if score != 0] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda x: x.name)
def test_nbgraders_own_release_is_what_the_build_makes(course, lesson):
    place = Path("course", lesson.name, f"{lesson.name}.ipynb")
    assert (course.root / place).read_bytes() == (ROOT / place).read_bytes()


def test_one_bad_answer_costs_one_exercise(course):
    """A mistake, a hang and an exception in three exercises; the rest of the submission keeps its points."""
    lesson = LESSONS[0]
    solved = nbformat.read(lesson.notebook, as_version=4)
    broken = {
        "weighted_context": "def weighted_context(weights, v):\n    while True:\n        pass\n",
        "bilinear_scores": "def bilinear_scores(q, k, W):\n    return q @ W.T @ k.transpose(-2, -1)\n",
        "their_weights": "def their_weights(q, k):\n    raise RuntimeError('no')\n",
        "counterexample": "def counterexample(:\n",
    }
    for cell in solved.cells:
        if cell.id in broken:
            cell.source = broken[cell.id]
    course.submit("half", lesson.name, solved)
    run = course.nbgrader("autograde", lesson.name, "--student=half", "--Examine.cell_seconds=10", *TRUSTED)
    assert run.returncode == 0, run.stderr
    lost = {name for name, (score, _) in course.scores("half", lesson.name).items() if score == 0}
    # SelfAttention uses weighted_context, so its author hangs there too; every other exercise stands on its own.
    assert lost == {f"test-{name}" for name in broken} | {"test-SelfAttention"}
    graded = nbformat.read(
        course.root / "grading" / "autograded" / "half" / lesson.name / f"{lesson.name}.ipynb", as_version=4
    )
    (cell,) = (c for c in graded.cells if c.id == "test-weighted_context")
    (error,) = (o for o in cell.outputs if o.output_type == "error")
    assert error.ename == "CheckFailed"
    assert "did not finish: stopped after 2 seconds" in "\n".join(error.traceback)
