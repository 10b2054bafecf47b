"""The student's package: exactly what a lesson imports, the same bytes each time, and nothing of an instructor's."""

import email
import io
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from conftest import LESSONS, ROOT
from packaging.requirements import Requirement

from attention_course import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INSTRUCTOR = tomllib.loads((ROOT / "instructor" / "pyproject.toml").read_text())["project"]
NAME = f"attention_course-{__version__}"
MODULES = ("__init__.py", "bar.py", "device.py", "plots.py")  # beside the folders below
FOLDERS = {"check": (".py",), "data": (".py", ".csv"), "answers": (".json", ".npz")}

THERE_BEFORE = {p.name for p in ROOT.iterdir()}


def wanted() -> set[str]:
    """What the package should hold, by rule: the modules above, and what git has in the folders above."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "attention_course"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    found = set()
    for name in filter(None, names):
        path = Path(name)
        folder = path.parts[1]
        if (ROOT / name).is_file() and (folder in MODULES or path.suffix in FOLDERS.get(folder, ())):
            found.add(name)
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The wheel and the sdist, built as anybody builds them, without a network."""
    return build(tmp_path_factory.mktemp("built"))


def build(folder: Path) -> tuple[Path, Path]:
    commands = (
        ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)],
        ["-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)],
    )
    for command in commands:
        run = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    return folder / f"{NAME}-py3-none-any.whl", folder / f"{NAME}.tar.gz"


def test_the_wheel_holds_what_lessons_import_and_nothing_else(built):
    about = f"{NAME}.dist-info"
    extra = {
        f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE", "licenses/LICENSE-LESSONS")
    }
    with zipfile.ZipFile(built[0]) as wheel:
        assert set(wheel.namelist()) == wanted() | extra
        assert "Root-Is-Purelib: true" in wheel.read(f"{about}/WHEEL").decode()
    assert {f"attention_course/answers/{x.number}.npz" for x in LESSONS} <= wanted()
    assert len([name for name in wanted() if name.endswith(".csv")]) >= 13


def test_the_sdist_holds_the_same_and_what_builds_it(built, tmp_path):
    with tarfile.open(built[1]) as sdist:
        names = {name.removeprefix(f"{NAME}/") for name in sdist.getnames()}
        assert names == wanted() | {"pyproject.toml", "PKG-INFO", "LICENSE", "LICENSE-LESSONS", ".gitignore"}
        sdist.extractall(tmp_path, filter="data") if hasattr(tarfile, "data_filter") else sdist.extractall(tmp_path)
    command = [
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(tmp_path / NAME),
    ]
    subprocess.run([sys.executable, *command], check=True)
    assert (tmp_path / built[0].name).read_bytes() == built[0].read_bytes()


def test_nothing_of_an_instructors_is_in_it(built):
    with zipfile.ZipFile(built[0]) as wheel:
        for name in wheel.namelist():
            assert not {"grading", "authoring", "cli.py", "place.py", "tests", "solutions"} & set(Path(name).parts), (
                name
            )
            assert not name.endswith(("entry_points.txt", ".ipynb")), name


def test_its_metadata_is_sane(built):
    with zipfile.ZipFile(built[0]) as wheel:
        about = email.message_from_string(wheel.read(f"{NAME}.dist-info/METADATA").decode())
    assert (about["Name"], about["Version"]) == ("attention-course", __version__)
    assert about["Summary"] == PROJECT["description"]
    assert about["License-Expression"] == "MIT AND CC-BY-4.0"
    assert set(about["Requires-Python"].split(",")) == set(PROJECT["requires-python"].split(","))
    needed = [Requirement(text) for text in about.get_all("Requires-Dist") or []]
    plain = {r.name for r in needed if not (r.marker and "extra" in str(r.marker))}
    assert plain == {Requirement(text).name for text in PROJECT["dependencies"]}
    assert about.get_all("Project-URL") is None, (
        "an address in the package would be another course's in somebody's release"
    )


def test_the_same_sources_give_the_same_bytes(built, tmp_path):
    assert [p.read_bytes() for p in build(tmp_path)] == [p.read_bytes() for p in built]


def test_building_leaves_nothing_behind(built):
    """An older version of the course may have left such folders; the build that ran here adds none."""
    assert {"build", *(p.name for p in ROOT.glob("*.egg-info"))} & (
        {p.name for p in ROOT.iterdir()} - THERE_BEFORE
    ) == set()


def test_instructors_get_the_command_and_the_sandbox(tmp_path):
    command = [
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT / "instructor"),
    ]
    subprocess.run([sys.executable, *command], check=True)
    with zipfile.ZipFile(tmp_path / f"attention_course_instructor-{__version__}-py3-none-any.whl") as wheel:
        assert {Path(name).name for name in wheel.namelist()} == {"METADATA", "WHEEL", "RECORD", "entry_points.txt"}
        points = wheel.read(f"attention_course_instructor-{__version__}.dist-info/entry_points.txt").decode()
    assert "attention-course = attention_course.cli:main" in points
    assert "attention-sandbox = attention_course.grading.sandbox:SandboxProvisioner" in points
    assert "scripts" not in PROJECT
    assert "entry-points" not in PROJECT
    assert INSTRUCTOR["dependencies"] == ["attention-course[grading]"]
    assert INSTRUCTOR["requires-python"] == PROJECT["requires-python"]


def test_a_lesson_needs_nothing_that_the_package_lacks(built, tmp_path):
    """Every import of every lesson, from the wheel's own files, with the instructor's packages out of reach."""
    with zipfile.ZipFile(io.BytesIO(built[0].read_bytes())) as wheel:
        wheel.extractall(tmp_path)
    imports = "\n".join(
        cell.source for lesson in LESSONS for cell in lesson.read().cells if cell.id in ("setup", "imports")
    )
    hidden = (
        "nbgrader",
        "jupytext",
        "nbclient",
        "nbval",
        "typer",
        "rich",
        "pytest",
        "ruff",
        "jupyterlab",
        "safetensors",
        "psutil",
    )
    program = (
        f"import sys\nfor name in {hidden}:\n    sys.modules[name] = None\n"
        f"sys.path = [{str(tmp_path)!r}, *(p for p in sys.path if p != {str(ROOT)!r})]\n{imports}\n"
        f"for name in list(sys.modules):\n    if name.startswith('attention_course'):\n"
        f"        assert sys.modules[name].__file__.startswith({str(tmp_path)!r}), name\n"
        "from attention_course.data import documents, lexicon\ndocuments.reviews(size=2), lexicon.read()\n"
        "check.start('01')\ncheck.exercise('dot_scores', lambda q, k: q @ k.mT)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr
    assert "dot_scores (exercise 1.2) is right" in run.stdout
    assert run.stderr == ""
