"""A course of tiny lessons, each built in seconds, in a folder of its own."""

import shutil
from pathlib import Path

import nbformat
from conftest import ROOT

from attention_course.authoring.build import build
from attention_course.authoring.lesson import Lesson, all_lessons

TEXT = '''# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # NN · Tiny
#
# Tiny words.

# %% given="setup"
import time

import torch

from attention_course import check

check.start("NN")

# %% [markdown]
# A tensor is a box.


# %% exercise="double"
def double(x: torch.Tensor) -> torch.Tensor:
    """Twice x.

    Args:
        x: (T,), any numbers.
    """
    # TODO: add x to itself
    ### BEGIN SOLUTION
    return x + x
    ### END SOLUTION


# %%
print(time.time_ns())

# %% test="double" points=1
check.exercise("double", double)
### BEGIN HIDDEN TESTS
assert torch.equal(double(torch.ones(3)), torch.full((3,), 2.0))
### END HIDDEN TESTS
'''

CASES = """from attention_course.authoring import Case, Exercise, numbers

EXERCISES = [Exercise("double", "NN.1", {"x": "T"}, {"": "T"}, [Case("a vector", {"x": numbers(1, 4)})])]
"""

MISTAKES = """from attention_course.authoring import mistakes_of

wrong = mistakes_of("double")


@wrong("adding x twice too often", "Once is enough.")
def added(x):
    return x + x + x
"""

ALTERNATIVES = """from attention_course.authoring import alternatives_of

right = alternatives_of("double")


@right
def by_product(x):
    return 2 * x
"""


class Tiny:
    """A course in ``root`` with the lesson ``01_tiny``, and what a test asks about it."""

    def __init__(self, root: Path):
        self.root = root
        self.said: list[str] = []
        root.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "nbgrader_config.py", root)
        self.add("01_tiny")
        self.course = root / "course" / "01_tiny" / "01_tiny.ipynb"

    def add(self, name: str) -> None:
        """One lesson more."""
        folder = self.root / "solutions" / name
        folder.mkdir(parents=True)
        for file, text in ((name, TEXT), ("cases", CASES), ("mistakes", MISTAKES), ("alternatives", ALTERNATIVES)):
            number = name[:2] if file == name else str(int(name[:2]))
            (folder / f"{file}.py").write_text(text.replace("NN", number))

    def lesson(self) -> Lesson:
        return Lesson(self.root / "solutions" / "01_tiny")

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.root / "solutions" / "01_tiny" / file
        text = path.read_text()
        assert old in text, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new, 1))

    def build(self, **options: bool) -> list[str]:
        """Build, and keep what is said in ``said``."""
        self.said = []
        return build(self.root, all_lessons(self.root), self.said.append, **options)

    def settle(self) -> None:
        """Build whatever an earlier test left."""
        if self.build():
            assert self.build(force=True) == []

    def stamp(self) -> Path:
        return self.root / ".build" / "01_tiny.json"

    def stored(self) -> nbformat.NotebookNode:
        return nbformat.read(self.lesson().notebook, as_version=4)

    def shown(self) -> str:
        """Everything that the stored notebook's cells print."""
        outputs = [o for c in self.stored().cells if c.cell_type == "code" for o in c.outputs]
        return "\n".join(o.get("text", "") + str(o.get("data", {}).get("text/plain", "")) for o in outputs)

    def ran_at(self) -> str:
        """What the cell that prints the time printed when it was last executed."""
        (cell,) = (c for c in self.stored().cells if c.source == "print(time.time_ns())")
        return cell.outputs[0].text

    def bytes(self) -> dict[str, bytes]:
        """Every file that the course holds."""
        skipped = (".build", ".ipynb_checkpoints", "my-work", "grading", "__pycache__")
        files = [p for p in self.root.rglob("*") if p.is_file() and not set(skipped) & set(p.parts)]
        return {p.relative_to(self.root).as_posix(): p.read_bytes() for p in files}
