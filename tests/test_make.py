"""What a newcomer meets first: `make`, and its sentences when Python is missing or too old."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

TARGETS = ("lab", "teach", "test", "test-gpu", "build", "release", "lint", "format", "clean")
TOOLS = (
    "sh",
    "awk",
    "rm",
    "sed",
    "touch",
    "echo",
    "printf",
    "mkdir",
    "find",
    "dirname",
    "uname",
    "chmod",
    "cat",
    "make",
)


@pytest.fixture
def machine(tmp_path):
    """A machine with make and a shell; ``python(version)`` gives it a Python of that version."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "instructor").mkdir()
    for name in ("requirements.txt", "pyproject.toml", "instructor/pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        where = shutil.which(name)
        if where:
            (tools / name).symlink_to(where)

    class Machine:
        folder = tmp_path

        def python(self, name: str, version: str, venv: str = "exit 1") -> None:
            """``venv`` is what it does, in shell, when it is asked for a virtual environment."""
            major, minor, *_ = version.split(".")
            script = tools / name
            # It answers the two questions that the Makefile asks, and makes an environment if it can.
            script.write_text(
                "#!/bin/sh\n"
                f'case "$*" in *"%d.%d"*) echo {version};; *sys.exit*) [ {major} -eq 3 ] && [ {minor} -ge 11 ] && '
                f"[ {minor} -le 14 ];; *venv*) {venv};; *) exit 1;; esac\n"
            )
            script.chmod(0o755)

        def make(self, *args: str) -> subprocess.CompletedProcess:
            environment = {"PATH": str(tools), "HOME": str(tmp_path)}
            return subprocess.run(
                ["make", *args], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )

    return Machine()


def test_make_alone_lists_the_targets(machine):
    run = machine.make()
    assert run.returncode == 0
    for target in TARGETS:
        assert any(
            line.split()[:2] == ["make", target] and len(line.split()) > 4 for line in run.stdout.splitlines()
        ), target


def test_no_python_is_a_sentence(machine):
    run = machine.make("lab")
    assert run.returncode != 0
    assert "The course needs Python 3.11 to 3.14, and no Python was found" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_an_old_python_is_a_sentence(machine):
    machine.python("python3", "3.9.2")
    run = machine.make("lab")
    assert run.returncode != 0
    assert "python3 is 3.9.2" in run.stdout
    assert "make lab PYTHON=" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


# An environment whose Python writes down what pip is asked for; importing torch fails, as before any set-up.
RECORDS = (
    'mkdir -p .venv/bin; printf \'#!/bin/sh\\necho "$*" >> pip.log; [ "$1" != -c ]\\n\' > .venv/bin/python; '
    "chmod +x .venv/bin/python"
)


def test_a_newer_python_beside_an_old_one_is_found_and_named(machine):
    machine.python("python3", "3.9.2")
    machine.python("python3.12", "3.12.1", RECORDS)
    run = machine.make("lab")
    assert "Setting up .venv with python3.12 (Python 3.12.1)" in run.stdout


def test_a_python_that_cannot_make_an_environment_is_passed_over(machine):
    machine.python("python3", "3.11.2")
    machine.python("python3.12", "3.12.1", RECORDS)
    assert "Setting up .venv with python3.12 (Python 3.12.1)" in machine.make("lab").stdout


def test_no_python_that_can_make_an_environment_is_a_sentence(machine):
    machine.python("python3", "3.11.2")
    run = machine.make("lab")
    assert run.returncode != 0
    assert "python3 (3.11.2) cannot make a virtual environment" in run.stdout
    assert "sudo apt install python3-venv" in run.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PyTorch's default build is the CPU build")
def test_without_a_gpu_the_size_of_pytorch_is_said_before_it_is_downloaded(machine):
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("there is an NVIDIA GPU here")
    machine.python("python3", "3.11.2", RECORDS)
    said = machine.make("setup").stdout
    assert "No NVIDIA GPU was found here" in said
    assert "TORCH_INDEX" in said


def test_an_index_for_pytorch_is_asked_for_pytorch_alone(machine):
    machine.python("python3", "3.11.2", RECORDS)
    said = machine.make("setup", "TORCH_INDEX=https://packages.example/cpu").stdout
    assert "No NVIDIA GPU" not in said
    asked = (machine.folder / "pip.log").read_text().splitlines()
    with_index = [line for line in asked if "--index-url https://packages.example/cpu" in line]
    assert len(with_index) == 1
    assert with_index[0].split()[-1].startswith("torch==")
    assert any("-r requirements.txt" in line for line in asked)


def test_a_python_that_does_not_exist_is_a_sentence(machine):
    run = machine.make("lab", "PYTHON=/nowhere/python")
    assert run.returncode != 0
    assert "PYTHON=/nowhere/python does not run" in run.stdout


def test_setup_happens_once():
    """With everything in place, `make lab` goes straight to JupyterLab."""
    if not (ROOT / ".venv" / ".ready").exists():
        pytest.skip("the tests run in an environment that make did not set up")
    run = subprocess.run(["make", "-n", "lab"], cwd=ROOT, capture_output=True, text=True, check=True, env=os.environ)
    assert "Setting up" not in run.stdout
    assert "jupyter lab" in run.stdout


def test_clean_names_nothing_that_holds_work():
    text = (ROOT / "Makefile").read_text()
    recipe = text.split("\nclean:")[1].split("\n\n")[0]
    for kept in ("course", "work", "my-work", "grading", "solutions"):
        assert kept not in recipe.replace("never a lesson, never anybody's work", "")
    assert Path(ROOT / ".ci" / "run").exists()
