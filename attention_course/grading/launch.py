"""How an examiner starts: in a process forked from one that has imported PyTorch and nothing of any student's.

Handing a function to the fork makes it import that function's module, so this one imports nothing that is slow.
"""

import multiprocessing
import multiprocessing.process
import os
import resource
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

MOST_MEMORY = 8 * 2**30  # bytes of address space: what a student hands over must not fill the grader's machine
_EXAMINERS = multiprocessing.get_context("forkserver")
_EXAMINERS.set_forkserver_preload(["attention_course.grading.preload"])
# One thread, because a process that has started more must not fork.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")


def start(job: Path, result: Path, log: Path) -> multiprocessing.process.BaseProcess:
    """Start an examiner on the file ``job``. What it says goes to the file ``log``. See :func:`.examiner.examine`."""
    process = _EXAMINERS.Process(target=_examine, args=(str(job), str(result), str(log)))
    process.start()
    return process


def _examine(job: str, result: str, log: str) -> None:
    with Path(log).open("w", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
        os.environ |= {"ATTENTION_DEVICE": "cpu", "ATTENTION_GRADING": "1"}
        tempfile.tempdir = str(Path(job).parent)  # which goes when the examiner is done, or killed
        with suppress(ValueError, OSError):  # a system without such a limit
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))  # the student's kernel has a limit of its own
        from .examiner import examine

        try:
            examine(job, result)
        except BaseException:
            traceback.print_exc()
            raise
