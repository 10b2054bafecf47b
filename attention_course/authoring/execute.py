"""Run a lesson's solution in the course's CPU kernel, cell by cell."""

import os
import re
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
    try:
        client.execute(env=os.environ | (environment or {}))
    except NoSuchKernel:
        raise LessonError(f"The kernel {KERNEL} is not installed here. Run `make setup`.") from None
    except CellTimeoutError:
        raise LessonError(f"{running.where(lesson)} did not come to an end within {PATIENCE} seconds.") from None
    except DeadKernelError:
        raise LessonError(f"{running.where(lesson)} ended the kernel; most often the memory is full.") from None
    except CellExecutionError as error:
        trace = re.sub(r"\x1b\[[\d;]*m", "", error.traceback).strip()
        words = f"{error.ename}: {error.evalue}".strip().rstrip(":")
        raise LessonError(f"{running.where(lesson)} failed with {words}", trace) from None
    notebook.metadata.language_info = lesson.read().metadata.language_info  # no version of this machine's Python
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                raise LessonError(
                    f"{lesson.name}: cell {cell.id} writes to stderr, that scores 0: {output.text.strip()}"
                )
    return notebook


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
