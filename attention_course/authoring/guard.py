"""``course/`` holds what is released and nothing else. Where somebody worked in it all the same, nothing is lost:
every command that writes there first moves what differs from the release to ``my-work/``, and says so.
"""

import contextlib
import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

from . import seal

Say = Callable[[str], None]
CHECKPOINTS = ".ipynb_checkpoints"
LITTER = {".DS_Store", "Thumbs.db", "desktop.ini", "__pycache__"}


class NotKeptError(OSError):
    """Somebody's work could not be moved to where it is safe, so nothing was overwritten; the message says why."""


def set_aside(root: Path, targets: Iterable[Path], say: Say = print) -> None:
    """Move everything under ``targets`` that is not as it was released to ``my-work/``, and say so.

    Args:
        root: the course's folder, which holds ``course/`` and ``my-work/``.
        targets: files and folders under ``root/course`` that are about to be written or deleted; others are left alone.
        say: is given one sentence for each file that was moved.

    Raises:
        NotKeptError: if a file cannot be moved. It is still where it was, and the caller must not write.
    """
    course = root / "course"
    for target in targets:
        if course.resolve() not in [target.resolve(), *target.resolve().parents]:
            continue
        for path in sorted(files(target)):
            if not is_released(root, path):
                place = move(root, path)
                say(f"{_shown(root, path)} was not as released; what was there is {_shown(root, place)} now.")


def is_released(root: Path, path: Path) -> bool:
    """Is this file under ``course/`` as it was released: the lesson's own notebook, with nothing added, run or changed?

    A release from before notebooks carried a seal is compared with the one that git has.
    """
    if path.is_symlink():
        return False
    notebook = seal.read(path) if path.suffix == ".ipynb" else None
    if notebook is None:
        return False
    if path.stem != path.parent.name and path.parent.name != CHECKPOINTS:
        return False
    made = seal.make(notebook)
    found = seal.stored(notebook)
    if found is None:
        committed = in_git(root, path)
        return committed is not None and made == seal.make(committed) and not seal.has_run(notebook)
    return not seal.holds_work(notebook, found.pieces)


def in_git(root: Path, path: Path) -> seal.Notebook | None:
    """The notebook as git's last commit has it; None where there is no git, no commit, or no such file in it."""
    try:
        run = subprocess.run(
            ["git", "-C", str(root), "show", f"HEAD:./{path.relative_to(root).as_posix()}"],
            capture_output=True, check=False,
        )  # fmt: skip
    except OSError:
        return None
    return None if run.returncode else seal.parse(run.stdout)


def move(root: Path, path: Path) -> Path:
    """Move a file to ``my-work/``, beside whatever lies there already. Returns where it is now.

    Raises:
        NotKeptError: if that cannot be done; the file is still where it was.
    """
    try:
        place, new = put(path, _places(root, path), _rename)
        if not new:
            path.unlink()
    except OSError as error:
        raise _not_kept(root, path, error) from error
    return place


def keep(root: Path, path: Path) -> tuple[Path, bool]:
    """Copy a file to ``my-work/``. Returns where the copy is, and whether it is new: the same bytes are kept once.

    Raises:
        NotKeptError: if it cannot be copied.
    """
    try:
        return put(path, _places(root, path))
    except OSError as error:
        raise _not_kept(root, path, error) from error


def put(path: Path, places: Iterator[Path], how: Callable[[Path, Path], None] | None = None) -> tuple[Path, bool]:
    """Copy a file to the first of ``places`` that is free, or find the same bytes there; never over another file."""
    for place in places:
        if not os.path.lexists(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            (how or _copy)(path, place)
            return place, True
        if _same(path, place):
            return place, False
    raise AssertionError("the places never end")


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, into a folder that is made where it is missing."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def numbered(place: Path) -> Iterator[Path]:
    """``place``, then the same with -2, -3 and so on before its suffix."""
    yield place
    yield from (place.with_name(f"{place.stem}-{number}{place.suffix}") for number in count(2))


def _places(root: Path, path: Path) -> Iterator[Path]:
    """A lesson's notebook goes to ``my-work/`` itself, everything else into a folder named as in ``course/``."""
    inside = Path(*(part for part in path.relative_to(root / "course").parts if part != CHECKPOINTS))
    lesson = path.parent.name == path.stem and path.suffix == ".ipynb"
    return numbered(root / "my-work" / (path.name if lesson else inside))


def files(target: Path) -> Iterator[Path]:
    if target.is_symlink() or target.is_file():
        yield target
        return
    for base, folders, files in os.walk(target):
        folders[:] = [name for name in folders if name not in LITTER]
        links = [name for name in folders if Path(base, name).is_symlink()]
        yield from (Path(base, name) for name in [*files, *links] if name not in LITTER)


def _same(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return other.is_file() and one.read_bytes() == other.read_bytes()


def _rename(path: Path, place: Path) -> None:
    """Move ``path``; from one disk to another it is copied whole before it goes. On one disk that needs no room."""
    try:
        path.rename(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(path, place)
        path.unlink()


def _copy(path: Path, place: Path) -> None:
    """Copy ``path`` to ``place``, which must not exist; half a copy is taken away again."""
    if path.is_symlink():
        place.symlink_to(path.readlink())
        return
    with path.open("rb") as source, place.open("xb") as target:
        try:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                place.unlink()
            raise
    with contextlib.suppress(OSError):
        shutil.copystat(path, place)


def _shown(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _not_kept(root: Path, path: Path, error: OSError) -> NotKeptError:
    return NotKeptError(
        f"{_shown(root, path)} holds somebody's work, and it could not be moved to my-work/ "
        f"({error.strerror or error}). It is where it was, and nothing was written over it. "
        "Make room or move it yourself, then run the command again."
    )
