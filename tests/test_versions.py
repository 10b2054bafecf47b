"""Pins, ranges, the conda file and what Colab has: they agree."""

import re
import tomllib

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from attention_course import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STUDENT = [Requirement(x) for x in PROJECT["dependencies"]]
GRADING = [Requirement(x) for x in PROJECT["optional-dependencies"]["grading"]]
PINS = {
    r.name.lower(): r
    for line in (ROOT / "requirements.txt").read_text().splitlines()
    if line and not line.startswith("#")
    for r in [Requirement(line)]
}
COLAB = {
    line.split("==")[0]: line.split("==")[1]
    for line in (ROOT / ".github" / "colab-constraints.txt").read_text().splitlines()
    if "==" in line
}
COLAB_NUMPY = {"3.13": "2.1.3", "3.12": "2.0.2"}  # its Pythons, each with its numpy


def version(name: str) -> str:
    (spec,) = PINS[name].specifier
    assert spec.operator == "==", f"{name} is not pinned"
    return spec.version


@pytest.mark.parametrize("requirement", STUDENT + GRADING, ids=lambda r: r.name)
def test_the_pin_is_in_the_range(requirement):
    assert requirement.specifier.contains(version(requirement.name.lower())), requirement.name


def test_every_pin_is_exact():
    for name in PINS:
        version(name)
    assert version("torch") == "2.13.0"


def test_what_colab_has_is_in_the_range():
    wanted = {r.name.lower(): r.specifier for r in STUDENT}
    assert set(wanted) - set(COLAB) == {"sacrebleu", "numpy"}, (
        "a student's package pulls nothing that Colab lacks, but sacrebleu"
    )
    for name in set(wanted) & set(COLAB):
        assert wanted[name].contains(COLAB[name]), name
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    for python, numpy in COLAB_NUMPY.items():
        assert SpecifierSet(PROJECT["requires-python"]).contains(python)
        assert wanted["numpy"].contains(numpy)
        assert f'{{ python: "{python}", numpy: "{numpy}" }}' in workflow


def test_conda_installs_the_same_pins():
    text = (ROOT / "environment.yml").read_text()
    python = re.search(r"- python=([\d.]+)", text)
    assert python
    assert SpecifierSet(PROJECT["requires-python"]).contains(python[1])
    assert "- -r requirements.txt" in text
    assert "- -e .[grading]\n      - ./instructor\n" in text, "the command and the sandbox come from there"
    assert re.findall(r"^\s+- ([a-z][\w-]*)==", text, re.MULTILINE) == [], "versions stand in requirements.txt alone"


def test_the_version_is_said_once():
    for place in (ROOT, ROOT / "instructor"):
        project = tomllib.loads((place / "pyproject.toml").read_text())
        assert "version" not in project["project"]
        assert (place / project["tool"]["hatch"]["version"]["path"]).samefile(ROOT / "attention_course" / "__init__.py")
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__), "the setup cell compares it letter by letter"
    assert f"## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
