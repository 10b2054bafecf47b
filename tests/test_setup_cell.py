"""From nothing to the first passed check: a released notebook in an environment that has no course, served from here.

The environment is a new virtual one that sees every package of this one but the course. Nothing leaves this machine.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat
import pytest
from conftest import LESSONS, ROOT
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from attention_course import __version__
from attention_course.authoring import release

LESSON = LESSONS[0]
FIRST = LESSON.exercises[0].name
WHEEL = f"attention_course-{__version__}-py3-none-any.whl"
NOWHERE = "http://127.0.0.1:9"


class Served(SimpleHTTPRequestHandler):
    """Serves a folder and remembers what was asked for."""

    asked: list[str]

    def log_message(self, *args) -> None:
        self.asked.append(self.path)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A web server on this machine. Gives its address, and the paths that were asked for so far."""
    asked: list[str] = []
    handler = type("Here", (Served,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def student(tmp_path_factory) -> Path:
    """What nbgrader makes of the first lesson, and the wheel: what every release below is put together from."""
    folder = tmp_path_factory.mktemp("student")
    with release.released(ROOT, [LESSON]) as made:
        shutil.copytree(made, folder, dirs_exist_ok=True)
    assert release.build_wheel(ROOT, folder) == WHEEL
    return folder


def hand_out(student: Path, folder: Path, address: str) -> Path:
    """The released first lesson, with its wheel at ``address``. Returns the notebook's path; the wheel is not there."""
    notebook = nbformat.read(student / LESSON.name / f"{LESSON.name}.ipynb", as_version=4)
    release.fill_in(notebook, f"{address}/{WHEEL}" if address else "", WHEEL)
    target = folder / LESSON.name / f"{LESSON.name}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)
    return target


class Machine:
    """A student's machine: Python with every package that a lesson needs, and no course."""

    def __init__(self, folder: Path):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
        self.python = folder / "env" / "bin" / "python"
        ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        site = Path(subprocess.run([self.python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip())
        packages = folder / "packages"
        packages.mkdir()
        for path in {Path(sysconfig.get_paths()[kind]) for kind in ("purelib", "platlib")}:
            for each in path.iterdir():
                if "attention_course" not in each.name and each.suffix != ".pth":
                    with contextlib.suppress(FileExistsError):
                        (packages / each.name).symlink_to(each)
        (site / "packages.pth").write_text(f"{packages}\n")
        kernel = folder / "kernels" / "student"
        kernel.mkdir(parents=True)
        argv = [str(self.python), "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
        (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "student", "language": "python"}))

    def version(self) -> str:
        """The version of the course that is installed, or nothing."""
        code = "import attention_course as a; print(a.__version__)"
        run = subprocess.run([self.python, "-c", code], capture_output=True, text=True, cwd=self.folder, check=False)
        return run.stdout.strip()

    def install(self, wheel: Path) -> None:
        command = [self.python, "-m", "pip", "install", "-q", "--no-deps", str(wheel)]
        subprocess.run(command, check=True, capture_output=True)

    @contextlib.contextmanager
    def kernel(self, place: Path) -> Iterator["Kernel"]:
        """A kernel that was started for a notebook in the folder ``place``."""
        client = NotebookClient(
            nbformat.v4.new_notebook(), kernel_name="student", timeout=300, resources={"metadata": {"path": str(place)}}
        )
        client.create_kernel_manager()
        client.km.kernel_spec_manager = KernelSpecManager(kernel_dirs=[str(self.folder / "kernels")])
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "ATTENTION_COURSE_ROOT")}
        with client.setup_kernel(env=environment | {"ATTENTION_DEVICE": "cpu"}):
            yield Kernel(client)


class Kernel:
    """Runs cells one after the other, as a learner does."""

    def __init__(self, client: NotebookClient):
        self.client = client

    def run(self, *sources: str) -> str:
        """Run cells; returns what they printed.

        Raises:
            CellExecutionError: if one fails.
        """
        said = []
        for source in sources:
            cell = nbformat.v4.new_code_cell(source)
            self.client.nb.cells.append(cell)
            self.client.execute_cell(cell, len(self.client.nb.cells) - 1)
            said += [output.get("text", "") for output in cell.outputs]
        return "".join(said)

    def stops(self, *sources: str) -> str:
        """Run cells, of which one has to stop; returns what stands below it: one line, and no traceback."""
        with pytest.raises(CellExecutionError):
            self.run(*sources)
        (error,) = self.client.nb.cells[-1].outputs
        assert (error.output_type, len(error.traceback)) == ("error", 1)
        assert error.traceback == [error.evalue]
        assert "\n" not in error.evalue
        return error.evalue


def to_the_first_check(notebook: Path) -> tuple[str, ...]:
    """The cells up to the first exercise's check, in their order, with the exercise solved."""
    solved = {c.id: c.source for c in nbformat.read(LESSON.notebook, as_version=4).cells}
    sources = []
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "code":
            sources.append(solved[cell.id] if cell.id == FIRST else cell.source)
        if cell.id == LESSON.tests(FIRST)[0].id:
            return tuple(sources)
    raise AssertionError(f"the released notebook has no check of {FIRST}")


@pytest.fixture
def machine(tmp_path) -> Machine:
    made = Machine(tmp_path / "machine")
    assert made.version() == ""
    return made


def test_from_nothing_to_the_first_passed_check(student, machine, tmp_path):
    """By the address in the setup cell; with the right version there, nothing is asked for again."""
    with serve(student) as (address, asked):
        notebook = hand_out(student, tmp_path / "lessons", address)
        with machine.kernel(notebook.parent) as kernel:
            said = kernel.run(*to_the_first_check(notebook))
        assert f"{FIRST} (exercise " in said
        assert "is right" in said
        assert asked == [f"/{WHEEL}"]
        with machine.kernel(notebook.parent) as kernel:
            began = time.perf_counter()
            kernel.run(to_the_first_check(notebook)[0])
            print(f"the setup cell took {time.perf_counter() - began:.2f} s where the package was there")
        assert asked == [f"/{WHEEL}"]
    assert machine.version() == __version__


@pytest.mark.parametrize("place", ["beside the notebook", "one folder up"])
def test_with_the_wheel_at_hand_no_address_is_needed(student, machine, tmp_path, place):
    notebook = hand_out(student, tmp_path / "lessons", "")
    shutil.copy(student / WHEEL, notebook.parent if place == "beside the notebook" else notebook.parent.parent)
    with machine.kernel(notebook.parent) as kernel:
        assert "is right" in kernel.run(*to_the_first_check(notebook))


@pytest.mark.parametrize("address", ["", NOWHERE], ids=["no address", "an address that does not answer"])
def test_with_neither_it_is_a_sentence(student, machine, tmp_path, address):
    notebook = hand_out(student, tmp_path / "lessons", address)
    with machine.kernel(notebook.parent) as kernel:
        said = kernel.stops(*to_the_first_check(notebook))
    assert said.startswith(f"This lesson runs on version {__version__} of the course's package: put {address}")
    assert WHEEL in said
    assert machine.version() == ""


def older(student: Path, folder: Path) -> Path:
    """A wheel of the course's package as an older version."""
    source = folder / "source"
    shutil.copytree(
        ROOT / "attention_course", source / "attention_course", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "LICENSE", "LICENSE-LESSONS"):
        shutil.copy(ROOT / name, source)
    init = source / "attention_course" / "__init__.py"
    init.write_text(init.read_text().replace(f'"{__version__}"', '"0.1.9"'))
    release.build_wheel(source, folder)
    return folder / "attention_course-0.1.9-py3-none-any.whl"


def test_an_older_version_is_replaced_and_never_mixed_with_the_new_one(student, machine, tmp_path):
    """The kernel that had loaded the old one says to restart; after that everything is new."""
    machine.install(older(student, tmp_path / "older"))
    assert machine.version() == "0.1.9"
    notebook = hand_out(student, tmp_path / "lessons", "")
    shutil.copy(student / WHEEL, notebook.parent)
    with machine.kernel(notebook.parent) as kernel:
        kernel.run("from attention_course import check")
        assert "restart the kernel and run this cell again" in kernel.stops(to_the_first_check(notebook)[0])
    assert machine.version() == __version__
    with machine.kernel(notebook.parent) as kernel:
        assert "is right" in kernel.run(*to_the_first_check(notebook))


def test_a_second_copy_in_the_way_is_a_sentence(student, machine, tmp_path):
    notebook = hand_out(student, tmp_path / "lessons", "")
    shutil.copy(student / WHEEL, notebook.parent)
    stray = notebook.parent / "attention_course"
    stray.mkdir()
    (stray / "__init__.py").write_text('__version__ = "0.0.1"\n')
    with machine.kernel(notebook.parent) as kernel:
        said = kernel.stops(to_the_first_check(notebook)[0])
    assert "attention_course.__file__ names an older copy that is in the way" in said
