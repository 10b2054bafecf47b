"""Run a lesson's solution in the course's CPU kernel, cell by cell."""

import os
import re
import tempfile
import time
from collections.abc import Callable

from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from .lesson import Lesson, LessonError

KERNEL = "attention-cpu"
PATIENCE = 900  # seconds for one cell, as in `make test`

Watch = Callable[[str, float], None]


def execute(lesson: Lesson, *, environment: dict[str, str] | None = None, watch: Watch | None = None) -> NotebookNode:
    """The lesson with its outputs.

    Args:
        environment: what the kernel finds in ``os.environ`` on top of what is there.
        watch: called after each code cell with its id and the seconds it took.

    Raises:
        LessonError: naming the cell that failed, that wrote to stderr, or that did not come to an end.
    """
    notebook = lesson.read()
    running = _Running(watch)
    client = NotebookClient(
        notebook,
        kernel_name=KERNEL,
        timeout=PATIENCE,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(lesson.folder)}},
        on_cell_start=running.starts,
        on_cell_executed=running.ends,
    )
    with tempfile.TemporaryFile("w+", errors="replace") as words:  # a kernel that is ended would say so at length
        try:
            client.execute(env=os.environ | (environment or {}), stdout=words, stderr=words)
        except Exception as error:
            words.seek(0)
            raise _failed(error, running.where(lesson), words.read()) from None
    notebook.metadata.language_info = lesson.read().metadata.language_info  # no version of this machine's Python
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                raise LessonError(f"{lesson.name}: cell {cell.id} writes to stderr, that scores 0:\n{output.text}")
    return notebook


def _failed(error: Exception, where: str, words: str) -> Exception:
    """What went wrong as a sentence; ``words`` are what the kernel's process printed past the notebook."""
    if isinstance(error, NoSuchKernel):
        return LessonError(f"The kernel {KERNEL} is not installed here. Run `make setup`.")
    if isinstance(error, CellTimeoutError):
        return LessonError(f"{where} did not come to an end within {PATIENCE} seconds.")
    if isinstance(error, DeadKernelError):
        return LessonError(f"{where} ended the kernel; most often the memory is full.", words)
    if isinstance(error, CellExecutionError):
        trace = re.sub(r"\x1b\[[\d;]*m", "", error.traceback).strip()
        return LessonError(f"{where} failed with {error.ename}: {error.evalue}".rstrip(": "), trace)
    return error


class _Running:
    """Which cell runs, and how long the ones before it took."""

    def __init__(self, watch: Watch | None):
        self.watch = watch
        self.cell = "before the first"
        self.since = time.monotonic()

    def starts(self, cell: NotebookNode, **_: object) -> None:
        self.cell, self.since = cell.id, time.monotonic()

    def ends(self, cell: NotebookNode, **_: object) -> None:
        if self.watch and cell.cell_type == "code":
            self.watch(cell.id, round(time.monotonic() - self.since, 1))

    def where(self, lesson: Lesson) -> str:
        return f"{lesson.name}: cell {self.cell}"
