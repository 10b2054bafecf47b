"""Write several files together or not at all."""

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_together(files: dict[Path, bytes]) -> None:
    """Replace every one of ``files``, or, where that fails half-way, none.

    Everything is first written beside its place, where a full disk is met; then the names are exchanged, which takes
    next to no time and is not interrupted by Ctrl-C. Should that fail as well, what was there is put back.

    Raises:
        OSError: if a file cannot be written; all of them are as they were.
    """
    before = {path: path.read_bytes() if path.exists() else None for path in files}
    fresh: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh[path] = _beside(path, content)
        with _uninterrupted():
            done: list[Path] = []
            try:
                for path, place in fresh.items():
                    place.replace(path)
                    done.append(path)
            except OSError:
                for path in done:
                    _put_back(path, before[path])
                raise
    finally:
        for place in fresh.values():
            place.unlink(missing_ok=True)


def _beside(path: Path, content: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    place = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        place.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return place


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _put_back(path: Path, content: bytes | None) -> None:
    with suppress(OSError):
        path.unlink() if content is None else path.write_bytes(content)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C waiting until the block is through."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = {
        each: signal.signal(each, lambda number, frame: waiting.append(number))
        for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if waiting:
        raise KeyboardInterrupt
