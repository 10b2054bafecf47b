"""A time limit for code that may never end."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "ATTENTION_CHECK_SECONDS"


class TookTooLong(BaseException):
    """Raised inside code that is over its limit.

    It is a ``BaseException`` so that an ``except Exception`` in the code that hangs does not swallow it.
    """


def seconds() -> float:
    """How long one call may take: ``ATTENTION_CHECK_SECONDS``, else 20 seconds."""
    return float(os.environ.get(VARIABLE, "20"))


@contextmanager
def time_limit(limit: float) -> Iterator[None]:
    """Raise :class:`TookTooLong` in the body once it has run for ``limit`` seconds.

    The limit needs a POSIX alarm and the main thread, which is where Jupyter runs a cell. Elsewhere (Windows, a worker
    thread) the body runs without one, as it would without this course.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum, frame):
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    # A second alarm follows each second: a bare `except:` around the first one does not keep the loop alive.
    began = time.monotonic()
    outer, _ = signal.setitimer(signal.ITIMER_REAL, limit, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:  # a limit around this one goes on where it was
            signal.setitimer(signal.ITIMER_REAL, max(0.01, outer - (time.monotonic() - began)), 1.0)
