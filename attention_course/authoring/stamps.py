"""What a lesson's files were built from, as digests, so that a build does what changed and knows why.

A lesson is built in four stages; each has a stamp of what it followed from and of what it gave:

=========  =======================================================================  ==============================
answers    the lesson's code, its cases and mistakes, the package, the libraries    ``attention_course/answers/NN.*``
outputs    the lesson's code, its answers, the package, the libraries               what the code cells show
notebook   the lesson's text, the outputs                                           the notebook in ``solutions/``
release    the notebook without outputs, nbgrader and its configuration             the notebook in ``course/``
=========  =======================================================================  ==============================

A stage is done again if either side of its stamp is not what the disk holds now. Modification times are never looked
at. The stamps lie in ``.build/``, which git ignores: where there are none, as after a clone, everything is built once.
"""

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from .files import write_together
from .lesson import Lesson
from .text import contents, digest

PACKAGE = Path(__file__).resolve().parents[1]
AUTHORING = ("authoring", "grading", "cli.py")  # no lesson's code imports these, with the exceptions below
ANSWERING = ("authoring/answers.py", "authoring/lesson.py", "authoring/spec.py")
EXECUTING = ("authoring/execute.py", "authoring/kernels.py")
ASKING = (
    "authoring/__init__.py",
    "authoring/lesson.py",
    "authoring/spec.py",
)  # a hidden test that calls implementations
RELEASING = ("authoring", "grading")
STAGES = ("answers", "outputs", "notebook", "release")

Inputs = dict[str, str]


@dataclass
class Stamp:
    """For each stage what it followed from, and one digest of what it gave."""

    inputs: dict[str, Inputs] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # how long each code cell took


def read(root: Path, lesson: Lesson) -> Stamp:
    """The stamp of the last build; an empty one if there is none, or none that can be read."""
    try:
        found = json.loads(_place(root, lesson).read_text(encoding="utf-8"))
        return Stamp(found["inputs"], found["results"], found["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return Stamp()


def write(root: Path, lesson: Lesson, stamp: Stamp) -> None:
    """Keep the stamp, once everything it speaks of is written."""
    text = json.dumps({"inputs": stamp.inputs, "results": stamp.results, "seconds": stamp.seconds}, indent=1)
    write_together({_place(root, lesson): text.encode("utf-8")})


def _place(root: Path, lesson: Lesson) -> Path:
    return root / ".build" / f"{lesson.name}.json"


def of_disk(root: Path, lesson: Lesson) -> Stamp:
    """The stamp that a build would leave if it found nothing to do."""
    stored = load(lesson.notebook)
    answers, course = answer_files(root, lesson), [course_notebook(root, lesson)]
    return Stamp(
        {
            "answers": answers_inputs(lesson),
            "outputs": outputs_inputs(lesson, of_files(answers)),
            "notebook": notebook_inputs(lesson),
            "release": release_inputs(root, stored),
        },
        {
            "answers": of_files(answers),
            "outputs": of_outputs(stored),
            "notebook": of_files([lesson.notebook, cover(root, lesson)]),
            "release": of_files(course),
        },
    )


def reasons(old: Stamp, new: Stamp) -> list[str]:
    """Why a lesson is built again, in words; empty if nothing changed."""
    if not old.inputs:
        return ["not built on this machine yet"]
    found: dict[str, None] = {}
    for stage in STAGES:
        before, now = old.inputs.get(stage, {}), new.inputs[stage]
        for label in sorted(before.keys() | now.keys()):
            if label not in _OWN and before.get(label) != now.get(label):
                found[_words(label, before.get(label), now.get(label))] = None
    by_hand = [] if found else [_RESULTS[stage] for stage in STAGES if old.results.get(stage) != new.results[stage]]
    return [*found, *by_hand[:1]]


_OWN = {"its answers", "its notebook"}  # what another stage gave, which has its own reason
_RESULTS = {
    "answers": "its answers are not the ones that were built",
    "outputs": "its stored outputs are not the ones that were built",
    "notebook": "its notebook or picture is not the one that was built",
    "release": "its notebook in course/ is not the one that was built",
}


def _words(label: str, before: str | None, now: str | None) -> str:
    if label in ("its code", "its text"):
        return "its text changed"
    if label.startswith("version of "):
        return f"{label.removeprefix('version of ')} is {now or 'gone'}, was {before or 'not there'}"
    return f"{label} changed" if before and now else f"{label} is new" if now else f"{label} is gone"


def answers_inputs(lesson: Lesson) -> Inputs:
    """What the numbers that a check compares with follow from."""
    beside = {path.name: of_files([path]) for path in _beside(lesson) if path.name != "alternatives.py"}
    return _code(lesson) | beside | _package(leave_out=AUTHORING) | _package(ANSWERING) | _versions()


def outputs_inputs(lesson: Lesson, answers: str) -> Inputs:
    """What a lesson's outputs follow from. ``answers`` is the digest of the answers that its kernel will read."""
    asks = any("implementations(" in c.source for c in contents(lesson.read()) if c.kind == "code")
    known = ("cases.py", "mistakes.py", "alternatives.py")
    beside = {path.name: of_files([path]) for path in _beside(lesson) if asks or path.name not in known}
    package = _package(leave_out=AUTHORING) | _package(EXECUTING) | (_package(ASKING) if asks else {})
    return _code(lesson) | {"its answers": answers} | beside | package | _versions()


def notebook_inputs(lesson: Lesson) -> Inputs:
    """What the notebook in ``solutions/`` follows from, beside its outputs."""
    return {"its text": digest(contents(lesson.read()))} | _package(("authoring",))


def release_inputs(root: Path, notebook: NotebookNode | None) -> Inputs:
    """What a student's notebook follows from."""
    config = root / "nbgrader_config.py"
    cells = (
        [(c.id, c.cell_type, c.source, c.metadata, c.get("attachments")) for c in notebook.cells] if notebook else []
    )
    shown = hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()[:20]
    return {
        "its notebook": shown,
        config.name: of_files([config]),
        "version of nbgrader": _version("nbgrader"),
    } | _package(RELEASING)


def of_outputs(notebook: NotebookNode | None) -> str:
    """A digest of what the code cells of a stored notebook show."""
    shown = (
        [(c.source, c.outputs, c.execution_count) for c in notebook.cells if c.cell_type == "code"] if notebook else []
    )
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:20]


def of_files(paths: Iterable[Path]) -> str:
    """A digest of some files, their names included; one that is missing counts as such."""
    made = hashlib.sha256()
    for path in paths:
        content = path.read_bytes() if path.is_file() else None
        made.update(repr((path.name, content and hashlib.sha256(content).hexdigest())).encode())
    return made.hexdigest()[:20]


def answer_files(root: Path, lesson: Lesson) -> list[Path]:
    """The files that hold a lesson's answers, in order."""
    return sorted((root / "attention_course" / "answers").glob(f"{lesson.number}.*"))


def course_notebook(root: Path, lesson: Lesson) -> Path:
    """Where the lesson's released notebook stands."""
    return root / "course" / lesson.name / f"{lesson.name}.ipynb"


def cover(root: Path, lesson: Lesson) -> Path:
    """Where the lesson's title picture stands for the README."""
    return root / "assets" / f"{lesson.name}.png"


def load(path: Path) -> NotebookNode | None:
    """A stored notebook; None if there is none, or none that can be read."""
    try:
        return nbformat.read(path, as_version=4)
    except Exception:
        return None


def _code(lesson: Lesson) -> Inputs:
    cells = [c for c in contents(lesson.read()) if c.kind == "code"]
    return {"its code": digest(cells), "its title": lesson.title}


def _beside(lesson: Lesson) -> list[Path]:
    """What else lies in a lesson's folder and may be read by its code."""
    own = (lesson.source, lesson.notebook)
    return [p for p in _files(lesson.folder) if p not in own and p.suffix != ".ipynb"]


def _package(parts: tuple[str, ...] = (), leave_out: tuple[str, ...] = ()) -> Inputs:
    """The package's files by name. Answers are left out: they have a stage of their own."""
    places = [PACKAGE / part for part in parts] or [PACKAGE]
    without = {PACKAGE / name for name in (*leave_out, "answers")}
    found = [f for place in places for f in (_files(place) if place.is_dir() else [place]) if f.exists()]
    kept = [f for f in found if f not in without and not without & set(f.parents)]
    return {f.relative_to(PACKAGE).as_posix(): of_files([f]) for f in kept}


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


@cache
def _versions() -> Inputs:
    """The libraries that a lesson's numbers and figures come from."""
    names = ["ipykernel", "matplotlib", "nbclient", "numpy", "seaborn", "torch", "sacrebleu", "ipython", "ipywidgets"]
    return {f"version of {name}": _version(name) for name in names} | {"version of Python": platform.python_version()}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
