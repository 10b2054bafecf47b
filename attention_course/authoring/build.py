"""From a lesson's text to what students open: numbers, executed notebook, student notebook.

Building twice changes no byte. Where a processor or a font renderer differs in the last digit or the odd pixel, what
was stored is kept, so that a build on another machine changes nothing either.
"""

import base64
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import numpy as np
from matplotlib.image import imread
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from .. import plots
from . import answers, cover
from .lesson import Lesson, LessonError

Say = Callable[[str], None]
STUB = "raise NotImplementedError"
KERNEL = "attention-cpu"


def build(root: Path, lessons: Iterable[Lesson], say: Say = print) -> None:
    """Bring answers, executed solutions and ``course/`` up to date with the lessons' texts.

    Raises:
        LessonError: if a solution fails, or a cell writes to stderr; nothing of that lesson is written then.
    """
    lessons = list(lessons)
    for lesson in lessons:
        if answers.write(lesson, root / "attention_course" / "answers"):
            say(f"{lesson.name}: answers written")
        if keep(lesson.notebook, execute(lesson)):
            say(f"{lesson.name}: solution notebook written")
        drawn = title_picture(_load(lesson.notebook))
        picture = root / "assets" / f"{lesson.name}.png"
        if drawn and (not picture.exists() or picture.read_bytes() != drawn):
            picture.parent.mkdir(exist_ok=True)
            picture.write_bytes(drawn)
            say(f"assets/{picture.name} written")
    with released(root, lessons) as folder:
        for fresh in sorted(folder.rglob("*.ipynb")):
            target = root / "course" / fresh.relative_to(folder)
            if target.exists() and target.read_bytes() == fresh.read_bytes():
                continue
            set_aside(root, target, say)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(fresh, target)
            say(f"{target.relative_to(root)} written")


def drift(root: Path, lessons: Iterable[Lesson]) -> list[str]:
    """What a build would change, in words. Stored outputs are nbval's to prove and are not executed here."""
    lessons = list(lessons)
    return stale(root, lessons) or unreleased(root, lessons)


def stale(root: Path, lessons: Iterable[Lesson]) -> list[str]:
    """The answers and the solution notebooks that do not follow from the lessons' texts."""
    found = []
    for lesson in lessons:
        target = root / "attention_course" / "answers" / f"{lesson.number}.json"
        if not answers.same(target, answers.compute(lesson)):
            found.append(f"{target.name}: the answers differ from what the solutions and mistakes give")
        if not lesson.notebook.exists():
            found.append(f"{lesson.notebook.name} is missing")
        elif _cells(lesson.read()) != _cells(_load(lesson.notebook)):
            found.append(f"{lesson.notebook.name}: its cells differ from {lesson.source.name}")
    return found


def unreleased(root: Path, lessons: Iterable[Lesson]) -> list[str]:
    """The student notebooks that differ from what nbgrader makes of the solutions."""
    lessons, found = list(lessons), []
    with released(root, lessons) as folder:
        wanted = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.ipynb")}
    names = {lesson.name for lesson in lessons}
    present = {
        p.relative_to(root / "course"): p.read_bytes()
        for p in (root / "course").rglob("*.ipynb")
        if p.parent.name in names
    }
    for name in sorted(wanted.keys() | present.keys()):
        if wanted.get(name) != present.get(name):
            found.append(f"course/{name}: differs from what nbgrader makes of the solution")
    return found


def execute(lesson: Lesson) -> NotebookNode:
    """Run the lesson in the course's CPU kernel and return it with its outputs.

    Raises:
        LessonError: naming the cell that failed or that wrote to stderr.
    """
    notebook = lesson.read()
    client = NotebookClient(
        notebook,
        kernel_name=KERNEL,
        timeout=300,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(lesson.folder)}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise LessonError(f"{lesson.source}: a cell failed.\n{error}") from None
    notebook.metadata.language_info = lesson.read().metadata.language_info  # no version of this machine's Python
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                raise LessonError(f"{lesson.source}: cell {cell.id} writes to stderr, that scores 0:\n{output.text}")
    return notebook


def keep(path: Path, fresh: NotebookNode) -> bool:
    """Write ``fresh`` to ``path``, keeping each stored picture that shows the same. True if the file changed.

    The picture of the cell tagged ``cover`` is put where the title cell says ``attachment:cover.png``.
    """
    old = {cell.id: cell for cell in _load(path).cells} if path.exists() else {}
    for cell in fresh.cells:
        _keep_pictures(cell, old.get(cell.id))
    for cell in fresh.cells:
        if cell.cell_type == "markdown" and cover.REFERENCE in cell.source:
            _attach_cover(cell, fresh, old.get(cell.id))
    text = dump(fresh)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True


def title_picture(notebook: NotebookNode) -> bytes | None:
    """The picture that the cell tagged ``cover`` drew."""
    for cell in notebook.cells:
        if "cover" in cell.metadata.get("tags", []):
            for output in cell.get("outputs", []):
                if picture := output.get("data", {}).get("image/png"):
                    return base64.b64decode(picture)
    return None


@contextmanager
def released(root: Path, lessons: Iterable[Lesson]) -> Iterator[Path]:
    """The student notebooks of ``lessons`` as nbgrader makes them of the executed solutions, in a folder of their own.

    Raises:
        LessonError: with nbgrader's own words, if it refuses a lesson.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # nbgrader calls its helpers by name, so the environment's programs have to be found.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        for lesson in lessons:
            run = subprocess.run(
                [
                    sys.executable, "-m", "nbgrader", "generate_assignment", lesson.name, "--force", "--no-db",
                    f"--CourseDirectory.root={root}", f"--CourseDirectory.release_directory={folder}",
                ],
                cwd=root, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            made = folder / lesson.name / f"{lesson.name}.ipynb"
            if run.returncode or not made.exists():
                raise LessonError(f"nbgrader would not release {lesson.name}:\n{run.stdout}{run.stderr}")
            made.write_text(dump(_load(made)), encoding="utf-8")
        yield folder


def set_aside(root: Path, target: Path, say: Say) -> None:
    """Before ``target`` is written anew: if a learner worked in it, move it to ``my-work/`` and say so."""
    if not target.exists() or is_untouched(target):
        return
    place = root / "my-work" / target.name
    number = 1
    while place.exists():
        number += 1
        place = root / "my-work" / f"{target.stem}-{number}.ipynb"
    place.parent.mkdir(exist_ok=True)
    shutil.move(target, place)
    say(f"{target.relative_to(root)} had work in it; that is now {place.relative_to(root)}")


def is_untouched(path: Path) -> bool:
    """Is this a student notebook as it was released: nothing run, every exercise still a stub?"""
    try:
        notebook = _load(path)
    except Exception:
        return False  # whatever cannot be read might be somebody's work
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if cell.outputs or cell.execution_count is not None:
            return False
        if cell.metadata.get("nbgrader", {}).get("solution") and STUB not in cell.source:
            return False
    return True


def dump(notebook: NotebookNode) -> str:
    """The notebook's text: sorted keys, one space, a newline at the end."""
    return re.sub(r"\n*\Z", "\n", nbformat.writes(notebook))


def _load(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def _cells(notebook: NotebookNode) -> list[tuple[str, str, str, dict]]:
    return [(c.id, c.cell_type, cover.extract(c.source), dict(c.metadata)) for c in notebook.cells]


def _keep_pictures(fresh: NotebookNode, old: NotebookNode | None) -> None:
    if old is None or old.cell_type != "code" or len(old.outputs) != len(fresh.get("outputs", [])):
        return
    for new, stored in zip(fresh.outputs, old.outputs, strict=True):
        before, after = stored.get("data", {}).get("image/png"), new.get("data", {}).get("image/png")
        if before and after and before != after and _look_alike(before, after):
            new.data["image/png"] = before


def _attach_cover(cell: NotebookNode, notebook: NotebookNode, old: NotebookNode | None) -> None:
    """Put the picture of the cell tagged ``cover`` into the title cell; one that looks the same stays as it was."""
    drawn = title_picture(notebook)
    if drawn is None:
        raise LessonError("The title shows attachment:cover.png, but no cell tagged `cover` draws a picture.")
    stored = cover.picture_in(old.source) if old else None
    cell.source = cover.embed(cell.source, cover.small(drawn, plots.SHOWN_AT / plots.DPI, stored))


def _look_alike(a: str, b: str) -> bool:
    one, two = (imread(io.BytesIO(base64.b64decode(x)), format="png") for x in (a, b))
    return one.shape == two.shape and float(np.sqrt(np.mean((one - two) ** 2))) < 0.004
