"""What a newcomer meets first: `make`, and its sentences when Python is missing or too old."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

TARGETS = ("lab", "test", "test-gpu", "build", "release", "lint", "format", "clean")
TOOLS = ("sh", "awk", "rm", "touch", "echo", "printf", "mkdir", "find", "dirname", "make")


@pytest.fixture
def machine(tmp_path):
    """A machine with make and a shell; ``python(version)`` gives it a Python of that version."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        where = shutil.which(name)
        if where:
            (tools / name).symlink_to(where)

    class Machine:
        def python(self, name: str, version: str) -> None:
            major, minor = version.split(".")
            script = tools / name
            # It answers the two questions that the Makefile asks, and cannot make an environment.
            script.write_text(
                "#!/bin/sh\n"
                f'case "$*" in *"%d.%d"*) echo {version};; *sys.exit*) [ {major} -eq 3 ] && [ {minor} -ge 11 ] && '
                f"[ {minor} -le 14 ];; *--version*) echo Python {version};; *) exit 1;; esac\n"
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
    machine.python("python3", "3.9")
    run = machine.make("lab")
    assert run.returncode != 0
    assert "python3 is 3.9" in run.stdout
    assert "make lab PYTHON=" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_a_newer_python_beside_an_old_one_is_found(machine):
    machine.python("python3", "3.9")
    machine.python("python3.12", "3.12")
    run = machine.make("lab")
    assert "with Python 3.12" in run.stdout
    assert "cannot make a virtual environment" in run.stdout, "this stand-in cannot, and make says so in words"


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
    for kept in ("course", "my-work", "grading", "solutions"):
        assert kept not in recipe.replace("never a lesson, never anybody's work", "")
    assert Path(ROOT / ".ci" / "run").exists()
