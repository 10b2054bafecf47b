"""From a lesson's text to what students open: numbers, executed notebook, student notebook.

Building twice changes no byte. Where a processor or a font renderer differs in the last digit or the odd pixel, what
was stored is kept, so that a build on another machine changes nothing either.
"""

import base64
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import numpy as np
from filelock import FileLock, Timeout
from nbformat import NotebookNode

from . import cover, stamps, workers
from .execute import Watch, execute
from .files import write_together
from .guard import set_aside
from .lesson import Lesson, LessonError, dump
from .show import Bars
from .text import AGREED, agree, both_edited, contents, differing, digest, edited

Say = Callable[[str], None]


@dataclass
class Made:
    """What building one lesson gives: the files that it writes, by their place under the root, and the stamp."""

    files: dict[Path, bytes] = field(default_factory=dict)
    stamp: stamps.Stamp = field(default_factory=stamps.Stamp)


def build(
    root: Path, lessons: Iterable[Lesson], say: Say = print, *, force: bool = False, bars: Bars | None = None
) -> list[str]:
    """Bring answers, executed solutions and ``course/`` up to date with the lessons' texts.

    Lessons are built side by side, each in a process of its own. The files of one are written together or, where
    something fails, not at all; the others are finished.

    Args:
        force: build everything, and let the texts win where a notebook was edited.
        bars: told how far each lesson is.

    Returns:
        The sentences that say which lessons failed, and why.

    Raises:
        LessonError: if another build is running.
        KeyboardInterrupt: at Ctrl-C, with every lesson whole: as it was, or as it is now.
    """
    root = root.resolve()
    (root / ".build").mkdir(exist_ok=True)
    lock = FileLock(root / ".build" / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise LessonError("Another build is running in this folder. Wait until it is through.") from None
    try:
        return _build(root, list(lessons), say, force, bars)
    finally:
        lock.release()


def _build(root: Path, lessons: list[Lesson], say: Say, force: bool, bars: Bars | None) -> list[str]:
    failed, todo, why = [], [], {}
    for lesson in lessons:
        try:
            if not force:
                refuse_edited(lesson)
            before = stamps.of_disk(root, lesson)
        except LessonError as error:
            failed.append(_sentence(lesson, error))
            say(failed[-1])
            continue
        old = stamps.read(root, lesson)
        why[lesson.number] = ["everything, as you asked"] if force else stamps.reasons(old, before)
        if why[lesson.number]:
            todo.append(workers.Job(lesson, old, before, force))
    for line in in_words(why, len(lessons)):
        say(line)

    def finish(job: workers.Job, made: Made, seconds: float) -> None:
        say(f"{job.lesson.number}: {commit(root, job, made, say)} ({seconds:.0f} s)")

    def fail(job: workers.Job, sentence: str, details: str) -> None:
        if details:
            log = root / ".build" / f"{job.lesson.name}.log"
            log.write_text(details + "\n", encoding="utf-8")
            sentence += f"\n    The whole traceback is in {log.relative_to(root)}."
        failed.append(sentence)
        say(sentence)

    workers.run(root, todo, finish, fail, bars)
    return failed


def in_words(why: dict[str, list[str]], lessons: int) -> list[str]:
    """The reasons by lesson, those that all lessons share said once."""
    shared = [reason for reason in next(iter(why.values()), []) if all(reason in each for each in why.values())]
    shared = shared if len(why) > 1 and len(why) == lessons else []
    lines = [f"all: {_some(shared)}"] if shared else []
    for number, reasons in why.items():
        if own := [reason for reason in reasons if reason not in shared]:
            lines.append(f"{number}: {_some(own)}")
    return lines


def _some(reasons: list[str]) -> str:
    more = len(reasons) - 4
    return "; ".join(reasons[:4]) + (f"; {more} more" if more > 0 else "")


def refuse_edited(lesson: Lesson) -> None:
    """A notebook that was edited and whose edits are not in the text is not overwritten.

    Raises:
        LessonError: naming the cells, with what to do.
    """
    stored = stamps.load(lesson.notebook)
    if stored is None or AGREED not in stored.metadata:
        return  # nobody knows which of the two is newer; the notebook is kept aside before it is written anew
    in_text, in_notebook = edited(lesson, stored)
    text, theirs = contents(lesson.read()), contents(stored)
    if in_text and in_notebook:
        raise LessonError(both_edited(lesson, text, theirs))
    if in_notebook:
        cells = ", ".join(differing(theirs, text)[:6]) or "their order"
        raise LessonError(
            f"{lesson.name}: its notebook was edited and its text was not ({cells}). "
            f"To bring the edits into the text: attention-course text {lesson.number}. "
            f"To drop them: attention-course build --force {lesson.number}."
        )


def make(root: Path, lesson: Lesson, old: stamps.Stamp, *, force: bool = False, watch: Watch | None = None) -> Made:
    """Everything that follows from a lesson's text, without writing any of it.

    Args:
        old: the stamp of the last build: a stage of which both sides are what they were is not done again.
        watch: called after each executed cell with its id and its seconds.

    Raises:
        LessonError: if a solution fails, a cell writes to stderr, or nbgrader refuses the notebook.
    """
    made = Made(stamp=stamps.Stamp(seconds=dict(old.seconds)))
    with tempfile.TemporaryDirectory(prefix="build-") as name:
        staging = Path(name)
        _answers(root, lesson, old, made, staging, force)
        notebook = _outputs(root, lesson, old, made, staging, force, watch)
        source = _notebook(root, lesson, made, notebook, staging)
        _release(root, lesson, old, made, notebook, source, force)
    return made


def _done(old: stamps.Stamp, stage: str, inputs: stamps.Inputs, result: str, force: bool) -> bool:
    return not force and old.inputs.get(stage) == inputs and old.results.get(stage) == result


def _answers(root: Path, lesson: Lesson, old: stamps.Stamp, made: Made, staging: Path, force: bool) -> None:
    inputs, stored = stamps.answers_inputs(lesson), stamps.answer_files(root, lesson)
    folder = staging / "attention_course" / "answers"
    folder.mkdir(parents=True)
    for path in stored:
        shutil.copyfile(path, folder / path.name)
    if not _done(old, "answers", inputs, stamps.of_files(stored), force):
        from . import answers  # PyTorch, for which a lesson with new prose alone need not wait

        answers.write(lesson, folder)
    for path in stamps.answer_files(staging, lesson):
        made.files[root / path.relative_to(staging)] = path.read_bytes()
    made.stamp.inputs["answers"] = inputs
    made.stamp.results["answers"] = stamps.of_files(stamps.answer_files(staging, lesson))


def _outputs(
    root: Path, lesson: Lesson, old: stamps.Stamp, made: Made, staging: Path, force: bool, watch: Watch | None
) -> NotebookNode:
    stored = stamps.load(lesson.notebook)
    inputs = stamps.outputs_inputs(lesson, made.stamp.results["answers"])
    if stored is not None and _done(old, "outputs", inputs, stamps.of_outputs(stored), force):
        notebook = with_outputs(lesson.read(), stored)
    else:
        seconds: dict[str, float] = {}

        def note(cell: str, took: float) -> None:
            seconds[cell] = took
            if watch:
                watch(cell, took)

        folder = staging / "attention_course" / "answers"
        where = {"ATTENTION_ANSWERS": str(folder), "ATTENTION_COURSE_ROOT": str(root)}
        notebook = execute(lesson, environment=where, watch=note)
        made.stamp.seconds = seconds
    notebook = kept(notebook, stored)
    agree(notebook)
    made.stamp.inputs["outputs"] = inputs
    made.stamp.results["outputs"] = stamps.of_outputs(notebook)
    return notebook


def _notebook(root: Path, lesson: Lesson, made: Made, notebook: NotebookNode, staging: Path) -> Path:
    """Put the notebook and its picture among the files; returns a ``solutions/`` that holds the notebook alone."""
    source = staging / "solutions"
    place = source / lesson.name / lesson.notebook.name
    place.parent.mkdir(parents=True)
    place.write_text(dump(notebook), encoding="utf-8")
    made.files[lesson.notebook] = place.read_bytes()
    written = [place]
    if picture := title_picture(notebook):
        made.files[stamps.cover(root, lesson)] = picture
        written.append(source / stamps.cover(root, lesson).name)
        written[-1].write_bytes(picture)
    else:
        written.append(stamps.cover(root, lesson))
    made.stamp.inputs["notebook"] = stamps.notebook_inputs(lesson)
    made.stamp.results["notebook"] = stamps.of_files(written)
    return source


def _release(
    root: Path, lesson: Lesson, old: stamps.Stamp, made: Made, notebook: NotebookNode, source: Path, force: bool
) -> None:
    target = stamps.course_notebook(root, lesson)
    inputs, stored = stamps.release_inputs(root, notebook), stamps.of_files([target])
    made.stamp.inputs["release"], made.stamp.results["release"] = inputs, stored
    if _done(old, "release", inputs, stored, force):
        return
    with released(root, [lesson], source) as folder:
        fresh = folder / lesson.name / target.name
        made.files[target] = fresh.read_bytes()
        made.stamp.results["release"] = stamps.of_files([fresh])


def commit(root: Path, job: workers.Job, made: Made, say: Say) -> str:
    """Write what one lesson's build made, all of it or nothing. Returns what was written, in words.

    Raises:
        LessonError: if somebody edited the lesson while it was built, or a file cannot be written.
    """
    lesson = Lesson(job.lesson.folder)
    if stamps.of_disk(root, lesson) != job.before:
        raise LessonError(f"{lesson.name}: it was edited while it was built, so nothing was written. Build it again.")
    fresh = {p: b for p, b in made.files.items() if not p.exists() or p.read_bytes() != b}
    course = stamps.course_notebook(root, lesson)
    try:
        if course in fresh and course.exists():
            set_aside(root, [course], say)
        if lesson.notebook in fresh:
            _keep_edits(root, lesson, say)
        write_together(fresh)
        stamps.write(root, lesson, made.stamp)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise LessonError(f"{lesson.name}: nothing was written: {error.strerror or error}{where}") from None
    folders = {"answers": "answers", "solutions": "solution", "assets": "title picture", "course": "student notebook"}
    found = {path.relative_to(root).parts[-2 if "answers" in path.parts else 0] for path in fresh}
    words = [folders[name] for name in folders if name in found]
    return f"{', '.join(words)} written" if words else "built, and nothing in it differs"


def _keep_edits(root: Path, lesson: Lesson, say: Say) -> None:
    """Before a notebook is written anew: keep it if it says what the text does not, and nobody knows since when."""
    if not lesson.notebook.exists():
        return
    stored = stamps.load(lesson.notebook)
    with suppress(LessonError):  # a cell that no text can hold: all the more reason
        known = (stored and stored.metadata.get(AGREED), digest(contents(lesson.read())))
        if stored and digest(contents(stored)) in known:
            return
    place = root / "my-work" / f"{lesson.name}-solution.ipynb"
    number = 1
    while place.exists():
        number += 1
        place = place.with_name(f"{lesson.name}-solution-{number}.ipynb")
    place.parent.mkdir(exist_ok=True)
    shutil.copyfile(lesson.notebook, place)
    say(f"{lesson.number}: its notebook had other cells than its text; that is kept as {place.relative_to(root)}")


def _sentence(lesson: Lesson, error: LessonError) -> str:
    words = str(error)
    return words if words.startswith(lesson.name) else f"{lesson.name}: {words}"


def drift(root: Path, lessons: Iterable[Lesson]) -> list[str]:
    """What a build would change, in words. Stored outputs are nbval's to prove and are not executed here."""
    lessons = list(lessons)
    return stale(root, lessons) or unreleased(root, lessons)


def stale(root: Path, lessons: Iterable[Lesson]) -> list[str]:
    """The answers and the solution notebooks that do not follow from the lessons' texts."""
    from . import answers  # PyTorch

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


def kept(fresh: NotebookNode, stored: NotebookNode | None) -> NotebookNode:
    """``fresh`` with each picture of ``stored`` that shows the same.

    The picture of the cell tagged ``cover`` is put where the title cell says ``attachment:cover.png``.
    """
    old = {cell.id: cell for cell in stored.cells} if stored else {}
    for cell in fresh.cells:
        _keep_pictures(cell, old.get(cell.id))
    for cell in fresh.cells:
        if cell.cell_type == "markdown" and cover.REFERENCE in cell.source:
            _attach_cover(cell, fresh, old.get(cell.id))
    return fresh


def with_outputs(fresh: NotebookNode, stored: NotebookNode) -> NotebookNode:
    """``fresh``, whose code cells are those of ``stored``, with what they show there."""
    pairs = ([c for c in notebook.cells if c.cell_type == "code"] for notebook in (fresh, stored))
    for cell, before in zip(*pairs, strict=True):
        cell.outputs, cell.execution_count = before.outputs, before.execution_count
    return fresh


def title_picture(notebook: NotebookNode) -> bytes | None:
    """The picture that the cell tagged ``cover`` drew."""
    for cell in notebook.cells:
        if "cover" in cell.metadata.get("tags", []):
            for output in cell.get("outputs", []):
                if picture := output.get("data", {}).get("image/png"):
                    return base64.b64decode(picture)
    return None


@contextmanager
def released(root: Path, lessons: Iterable[Lesson], source: Path | None = None) -> Iterator[Path]:
    """The student notebooks of ``lessons`` as nbgrader makes them of the executed solutions, in a folder of their own.

    Args:
        source: a folder that holds the solutions, if not ``root/solutions``.

    Raises:
        LessonError: with nbgrader's own words, if it refuses a lesson, or lets anything but the notebook through.
    """
    root = root.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # nbgrader calls its helpers by name, so the environment's programs have to be found.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        for lesson in lessons:
            run = subprocess.run(
                [
                    sys.executable, "-m", "nbgrader", "generate_assignment", lesson.name, "--force", "--no-db",
                    f"--CourseDirectory.root={root}", f"--CourseDirectory.release_directory={folder}",
                    f"--CourseDirectory.source_directory={source or root / 'solutions'}",
                ],
                cwd=root, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            made = folder / lesson.name / f"{lesson.name}.ipynb"
            if run.returncode or not made.exists():
                raise LessonError(f"nbgrader would not release {lesson.name}:\n{run.stdout}{run.stderr}")
            if others := sorted(p.name for p in made.parent.iterdir() if p != made):
                raise LessonError(f"nbgrader would hand out more of {lesson.name} than its notebook: {others}.")
            made.write_text(dump(_load(made)), encoding="utf-8")
        yield folder


def _load(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def _cells(notebook: NotebookNode) -> list[tuple[str, str, str, dict]]:
    return [(c.id, c.cell_type, cover.extract(c.source), dict(c.metadata)) for c in notebook.cells]


def _keep_pictures(fresh: NotebookNode, old: NotebookNode | None) -> None:
    if old is None or not old.cell_type == fresh.cell_type == "code" or len(old.outputs) != len(fresh.outputs):
        return
    for new, stored in zip(fresh.get("outputs", []), old.outputs, strict=True):
        before, after = stored.get("data", {}).get("image/png"), new.get("data", {}).get("image/png")
        if before and after and before != after and _look_alike(before, after):
            new.data["image/png"] = before


def _attach_cover(cell: NotebookNode, notebook: NotebookNode, old: NotebookNode | None) -> None:
    """Put the picture of the cell tagged ``cover`` into the title cell; one that looks the same stays as it was."""
    from .. import plots  # PyTorch

    drawn = title_picture(notebook)
    if drawn is None:
        raise LessonError("The title shows attachment:cover.png, but no cell tagged `cover` draws a picture.")
    stored = cover.picture_in(old.source) if old else None
    cell.source = cover.embed(cell.source, cover.small(drawn, plots.SHOWN_AT / plots.DPI, stored))


def _look_alike(a: str, b: str) -> bool:
    from matplotlib.image import imread  # as slow, and most pictures are equal to the byte

    one, two = (imread(io.BytesIO(base64.b64decode(x)), format="png") for x in (a, b))
    return one.shape == two.shape and float(np.sqrt(np.mean((one - two) ** 2))) < 0.004
