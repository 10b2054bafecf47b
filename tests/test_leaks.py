"""No solution, hidden test, mistake or reference reaches a student: searched for by the sources' own lines."""

import ast
import re
import subprocess
import zipfile
from pathlib import Path

import nbformat
import pytest
from conftest import LESSONS, ROOT

from attention_course import __version__
from attention_course.authoring import release

SECRET = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", re.DOTALL)


def normal(text: str) -> str:
    """A line without its comment and its blanks, so that another layout does not hide it."""
    return re.sub(r"\s+", "", text.split("#")[0])


def lines_of(text: str) -> set[str]:
    """The lines that could give something away: not the short ones, nor those that only open a bracket."""
    return {n for line in text.split("\n") if len(n := normal(line)) >= 14 and n[-1] not in "([{"}


def statements(path: Path) -> set[str]:
    """Every line inside a function of a Python file: implementations, not imports or docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for part in node.body:
                found |= lines_of(ast.unparse(part))
                found |= lines_of("\n".join(path.read_text().split("\n")[part.lineno - 1 : part.end_lineno]))
    return found


def secrets() -> dict[str, set[str]]:
    """Lines that stand only in places a student must not see, by where they come from."""
    found: dict[str, set[str]] = {}
    public: set[str] = set()
    for lesson in LESSONS:
        for cell in lesson.read().cells:
            if cell.cell_type == "code":
                public |= lines_of(SECRET.sub("", cell.source))
                for _, body in SECRET.findall(cell.source):
                    found.setdefault(f"{lesson.name} {cell.id}", set()).update(lines_of(body))
        for name in ("mistakes", "alternatives", "cases"):
            path = lesson.folder / f"{name}.py"
            found[f"{lesson.name} {name}.py"] = statements(path)
    public |= {normal("super().__init__()"), normal("raise NotImplementedError")}
    public |= lines_of("\n".join(map(_package_text, _package_files())))
    return {place: lines - public for place, lines in found.items()}


def _package_files() -> list[Path]:
    """The students' package: what stands in it is no secret."""
    package = ROOT / "attention_course"
    return sorted(
        [*package.glob("check/*.py"), *package.glob("data/*.py"), package / "device.py", package / "plots.py"]
    )


def _package_text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


SECRETS = secrets()


def leaked(text: str) -> list[str]:
    squeezed = re.sub(r"\s+", "", text)
    return [f"{place}: {line}" for place, lines in SECRETS.items() for line in lines if line in squeezed]


def notebook_text(path: Path) -> str:
    return "\n".join(c.source for c in nbformat.read(path, as_version=4).cells)


def test_there_is_something_to_look_for():
    for lesson in LESSONS:
        for exercise in lesson.exercises:
            assert any(SECRETS.get(f"{lesson.name} {test.id}") for test in lesson.tests(exercise.name)), exercise.name
        assert len(SECRETS[f"{lesson.name} mistakes.py"]) > 30
        text = notebook_text(lesson.notebook)
        assert leaked(text), "the search does not find the solutions where they are"


@pytest.mark.parametrize(
    "path",
    [p for p in sorted((ROOT / "course").rglob("*")) if ".ipynb_checkpoints" not in p.parts],
    ids=lambda p: p.name,
)
def test_course_has_no_secret(path):
    if path.is_dir():
        assert re.fullmatch(r"\d\d_\w+", path.name)
        return
    assert path.suffix == ".ipynb", "course/ holds notebooks and nothing else"
    assert leaked(notebook_text(path)) == []
    raw = path.read_text(encoding="utf-8")
    assert "BEGIN SOLUTION" not in raw
    assert "HIDDEN TESTS" not in raw


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """A release made from a copy of what is tracked, so that nobody's dist/ is touched; answers lie about."""
    copy = tmp_path_factory.mktemp("clone")
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    solved = LESSONS[0].notebook.read_bytes()
    for place in ("course", "work", "my-work"):
        target = copy / place / LESSONS[0].name / LESSONS[0].notebook.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(solved)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_URL", "https://github.com/you/course")
        release.release(copy, lambda words: None)
    return copy / "dist"


def test_dist_holds_what_students_get_and_nothing_else(dist):
    names = {str(p.relative_to(dist)) for p in dist.rglob("*") if p.is_file()}
    lessons = {f"{x.name}/{x.name}.ipynb" for x in LESSONS}
    pages = {"README.md", "index.html", "LICENSE", "LICENSE-LESSONS", ".nojekyll"}
    wheel = f"attention_course-{__version__}-py3-none-any.whl"
    published = {f"attention-course/{name}" for name in lessons | pages | {wheel}}
    assert names == published | {"attention-course.zip", "release.json"}
    with zipfile.ZipFile(dist / "attention-course.zip") as archive:
        assert set(archive.namelist()) == published
        for name in published:
            assert archive.read(name) == (dist / name).read_bytes()


def test_dist_has_no_secret(dist):
    for path in dist.rglob("*"):
        if path.suffix == ".ipynb":
            assert leaked(notebook_text(path)) == [], path.name
            assert "BEGIN SOLUTION" not in path.read_text(encoding="utf-8")
            assert "HIDDEN TESTS" not in path.read_text(encoding="utf-8")
            assert all(not c.get("outputs") for c in nbformat.read(path, as_version=4).cells), path.name
        elif path.is_file() and path.suffix not in (".whl", ".zip"):
            assert leaked(path.read_text(encoding="utf-8")) == [], path.name


def test_the_student_wheel_has_no_secret(dist):
    (wheel,) = dist.rglob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(".npz"):
                assert leaked(archive.read(name).decode("utf-8")) == [], name
