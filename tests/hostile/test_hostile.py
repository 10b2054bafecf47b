"""The hostile class, graded by plain `nbgrader autograde`: nothing stolen, nothing broken, the honest scored right."""

import shutil
import socket
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import psutil
import pytest
from nbgrading import nbgrader, scores

from attention_course.authoring.lesson import all_lessons
from attention_course.grading import sandbox

from .submissions import ALL, SUBMISSIONS, Submission

ROOT = Path(__file__).resolve().parents[2]
LESSON = all_lessons(ROOT)[0]
KEPT = ("setup", "imports", *(name for each in ALL for name in (each, f"test-{each}")))
PARTS = 3

pytestmark = [
    pytest.mark.skipif(bool(sandbox.missing()), reason=" ".join(sandbox.missing()) or "the sandbox is here"),
    pytest.mark.filterwarnings("ignore::nbformat.warnings.DuplicateCellId"),  # some submissions hold a cell twice
]


class Class:
    """A course with one short lesson and a part of the submissions, graded in a folder of its own."""

    def __init__(self, root: Path, submissions: list[Submission], port: int):
        self.root, self.submissions = root, submissions
        shutil.copy(ROOT / "nbgrader_config.py", root)
        folder = root / "solutions" / LESSON.name
        folder.mkdir(parents=True)
        lesson = nbformat.read(LESSON.notebook, as_version=4)
        lesson.cells = [c for c in lesson.cells if c.id in KEPT]
        nbformat.write(lesson, folder / f"{LESSON.name}.ipynb")
        made = self.nbgrader("generate_assignment", LESSON.name)
        assert made.returncode == 0, made.stderr
        released = root / "course" / LESSON.name / f"{LESSON.name}.ipynb"
        for submission in submissions:
            notebook = nbformat.read(released, as_version=4)
            submission.edit(notebook)
            text = submission.raw(notebook) if submission.raw else None
            if text is None:
                text = nbformat.writes(notebook).replace("@@PORT@@", str(port)).replace("@@HALF@@", "\\ud800").encode()
            target = root / "grading" / "submitted" / submission.name / LESSON.name / f"{LESSON.name}.ipynb"
            target.parent.mkdir(parents=True)
            target.write_bytes(text)
            if submission.place:
                submission.place(target)
        self.log = self.nbgrader("autograde", LESSON.name, "--Examine.cell_seconds=10")
        self.feedback = self.nbgrader("generate_feedback", LESSON.name)

    def nbgrader(self, *args: str) -> subprocess.CompletedProcess:
        return nbgrader(self.root, *args, SECRET="canary-of-the-grader")

    def scores(self, name: str) -> dict[str, tuple[float, float]]:
        return {test.removeprefix("test-"): points for test, points in scores(self.root, name, LESSON.name).items()}

    def kept(self, name: str) -> str:
        """Everything that grading kept of a submission: the graded notebook and the feedback."""
        places = [self.root / "grading" / part / name for part in ("autograded", "feedback")]
        files = [f for place in places for f in place.rglob("*") if f.is_file()]
        return "\n".join(f.read_text(encoding="utf-8", errors="replace") for f in files)


@pytest.fixture(scope="session")
def classes(tmp_path_factory) -> dict[str, Class]:
    before = _fingerprint()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as canary:
        if sys.platform == "linux":
            canary.bind("\0attention-canary")
            canary.listen()
        port = server.getsockname()[1]
        parts = [SUBMISSIONS[i::PARTS] for i in range(PARTS)]
        roots = [tmp_path_factory.mktemp(f"class{i}") for i in range(PARTS)]
        with ThreadPoolExecutor(PARTS) as pool:
            made = list(pool.map(lambda pair: Class(*pair, port), zip(roots, parts, strict=True)))
    assert _fingerprint() == before, "a submission changed a file of the grader"
    return {submission.name: one for one in made for submission in one.submissions}


def _fingerprint() -> dict[str, tuple[int, int]]:
    """Size and time of the files that hostile code would like to change."""
    places = [
        Path(sys.prefix) / "share" / "jupyter",
        Path(sys.prefix) / "bin",
        ROOT / "solutions",
        ROOT / "attention_course",
    ]
    files = [f for place in places for f in place.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    files += list(Path(sys.prefix, "lib").glob("python*/site-packages/*.pth"))
    return {str(f): (f.stat().st_size, f.stat().st_mtime_ns) for f in files}


@pytest.mark.parametrize("submission", SUBMISSIONS, ids=lambda s: f"{s.group}-{s.name}")
def test_it_scores_what_it_earned(classes, submission):
    one = classes[submission.name]
    scores = one.scores(submission.name)
    if not submission.graded:
        # It is reported by name, and it has no score that somebody could mistake for a judgement.
        assert not any(score for score, _ in scores.values())
        assert submission.name in one.log.stdout + one.log.stderr
        return
    assert set(scores) == set(ALL), one.log.stderr[-3000:]
    earned = {name for name, (score, most) in scores.items() if score == most}
    nothing = {name for name, (score, _) in scores.items() if score == 0}
    assert earned == set(submission.earns)
    assert nothing == set(ALL) - earned


@pytest.mark.parametrize("submission", [s for s in SUBMISSIONS if s.group == "cheats"], ids=lambda s: s.name)
def test_it_got_hold_of_nothing(classes, submission):
    graded = classes[submission.name].root / "grading" / "autograded" / submission.name
    for file in graded.rglob("*.ipynb"):
        for cell in nbformat.read(file, as_version=4).cells:
            for output in cell.get("outputs", []):
                said = str(output.get("text", "")) + str(output.get("data", ""))
                assert "LEAK" not in said, said


@pytest.mark.parametrize("submission", [s for s in SUBMISSIONS if s.graded], ids=lambda s: s.name)
def test_the_feedback_shows_no_hidden_test(classes, submission):
    one = classes[submission.name]
    pages = list((one.root / "grading" / "feedback" / submission.name).rglob("*.html"))
    assert pages, one.feedback.stderr[-2000:]
    text = pages[0].read_text(encoding="utf-8")
    assert "HIDDEN" not in text.replace(submission.name, "") or "HIDDEN" in _sources(submission, one)
    assert "_expected" not in text or "_expected" in _sources(submission, one)
    assert "<script>LEAK" not in text
    assert '<script>document.title = "hostile"' not in text


def _sources(submission: Submission, one: Class) -> str:
    """What the student wrote themselves, which feedback shows of course."""
    file = one.root / "grading" / "submitted" / submission.name / LESSON.name / f"{LESSON.name}.ipynb"
    return file.read_text(encoding="utf-8")


def test_links_come_back_to_nobody(classes):
    for name in ("a_link_that_comes_back_with_the_feedback", "a_link_to_a_folder"):
        for part in ("autograded", "feedback"):
            folder = classes[name].root / "grading" / part / name / LESSON.name
            assert {f.suffix for f in folder.rglob("*")} <= {".ipynb", ".html"}


def test_feedback_says_which_mistake_it_was(classes):
    page = classes["one_sign_wrong"].kept("one_sign_wrong")
    assert "not the right numbers yet" in page


def test_nothing_survives(classes):
    left = [
        p.info["cmdline"]
        for p in psutil.process_iter(["cmdline"])
        if "hostile-daemon" in " ".join(p.info["cmdline"] or [])
    ]
    assert left == []
    assert not Path("/tmp/evil").exists()


def test_the_table(classes, capsys):
    """What was tried and what held, for the reader of the log."""
    tried, held = Counter(), Counter()
    for s in SUBMISSIONS:
        scores = classes[s.name].scores(s.name)
        earned = {n for n, (score, most) in scores.items() if score == most}
        tried[s.group] += 1
        held[s.group] += earned == set(s.earns)
    with capsys.disabled():
        print()
        for group, word in (("cheats", "blocked"), ("breakages", "contained"), ("honest", "right")):
            print(f"  {group:10} {word} {held[group]} / {tried[group]} tried")
    assert held == tried
    assert sum(tried.values()) >= 60
