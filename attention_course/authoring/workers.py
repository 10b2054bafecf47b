"""Build lessons side by side, each in a process of its own with one thread.

A process computes and writes nothing: what it made comes back through a pipe. So one that fails, is killed or is
interrupted leaves its lesson as it was, and the others go on.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .lesson import Lesson, LessonError
from .show import Bars
from .stamps import Stamp

if TYPE_CHECKING:
    from .build import Made

UNKNOWN = 1.0  # seconds that a cell is taken to need before anybody has seen it run


@dataclass
class Job:
    """One lesson that is to be built.

    Args:
        old: the stamp of the last build. before: what a stamp of the disk would be as the build begins.
        force: do every stage.
    """

    lesson: Lesson
    old: Stamp
    before: Stamp
    force: bool = False

    @property
    def seconds(self) -> dict[str, float]:
        """How long each code cell is likely to take."""
        code = [c.id for c in self.lesson.read().cells if c.cell_type == "code"]
        return {name: self.old.seconds.get(name, UNKNOWN) for name in code}


Finish = Callable[[Job, "Made", float], None]
Fail = Callable[[Job, str, str], None]


def cores() -> int:
    """How many processor cores this process may use."""
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(root: Path, jobs: list[Job], finish: Finish, fail: Fail, bars: Bars | None = None) -> None:
    """Build every job's lesson, the slowest first, and as many at a time as there are cores.

    Args:
        finish: called here with what a lesson's build made and the seconds it took; it may raise LessonError.
        fail: called here with the sentence and the details of a lesson that could not be built.
        bars: told how far each lesson is.

    Raises:
        KeyboardInterrupt: at Ctrl-C, when all processes have ended.
    """
    bars = bars or Bars()
    waiting = sorted(jobs, key=lambda job: sum(job.seconds.values()))
    running: dict[Connection, _Running] = {}
    with bars.over([(job.lesson.name, sum(job.seconds.values())) for job in jobs]), _terminable():
        try:
            while waiting or running:
                while waiting and len(running) < cores():
                    job = waiting.pop()
                    started = _start(root, job)
                    running[started.pipe] = started
                    bars.starts(job.lesson.name)
                for pipe in wait(list(running)):
                    each = running[pipe]
                    kind, content = _receive(each)
                    if kind == "cell":
                        bars.moves(each.job.lesson.name, each.job.seconds.get(content, UNKNOWN))
                        continue
                    del running[pipe]
                    each.process.join()
                    bars.ends(each.job.lesson.name)
                    _settle(each, kind, content, finish, fail)
        finally:
            for each in running.values():
                _stop(each)


@dataclass
class _Running:
    job: Job
    process: Any
    pipe: Connection
    since: float


def _settle(each: _Running, kind: str, content: Any, finish: Finish, fail: Fail) -> None:
    if kind == "made":
        try:
            finish(each.job, content, time.monotonic() - each.since)
        except LessonError as error:
            fail(each.job, str(error), error.details)
    else:
        fail(each.job, *content)


def _start(root: Path, job: Job) -> _Running:
    context = multiprocessing.get_context("spawn")  # a fork would inherit PyTorch's threads, half-way through
    here, there = context.Pipe()
    process = context.Process(
        target=_work, args=(there, str(root), str(job.lesson.folder), job.old, job.force), daemon=True
    )
    with _one_thread(), _deaf():
        process.start()
    there.close()
    return _Running(job, process, here, time.monotonic())


def _receive(each: _Running) -> tuple[str, Any]:
    try:
        return each.pipe.recv()
    except (EOFError, OSError):
        each.process.join()
        code = each.process.exitcode
        reason = f"signal {-code}; most often the memory is full" if code and code < 0 else f"exit status {code}"
        return "failed", (f"{each.job.lesson.name}: the process that built it ended without a word ({reason}).", "")


def _stop(each: _Running) -> None:
    each.process.terminate()  # nbclient ends its kernel at this signal
    each.process.join(10)
    if each.process.is_alive():
        each.process.kill()
        each.process.join()
    each.pipe.close()


def _work(pipe: Connection, root: str, folder: str, old: Stamp, force: bool) -> None:
    """What a process does. Ctrl-C reaches the parent alone, which then ends this one."""
    if hasattr(os, "setsid"):
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    from .build import make

    lesson = Lesson(Path(folder))
    try:
        made = make(Path(root), lesson, old, force=force, watch=lambda cell, _: pipe.send(("cell", cell)))
        pipe.send(("made", made))
    except LessonError as error:
        words = str(error)
        words = words if words.startswith(lesson.name) else f"{lesson.name}: {words}"
        pipe.send(("failed", (words, error.details)))
    except Exception as error:
        import traceback

        words = f"{lesson.name}: {type(error).__name__}: {error}"
        pipe.send(("failed", (words, traceback.format_exc())))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Small tensors are fastest with one thread, above all where several lessons share the cores."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf() -> Iterator[None]:
    """Whatever is started in this block does not hear Ctrl-C while it starts."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _terminable() -> Iterator[None]:
    """Being asked to end is Ctrl-C, so that no process and no kernel stays behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
