"""``make release``: a folder that an instructor publishes as it is, and the zip of it. No solution is in it.

It is made from ``solutions/`` by nbgrader, into a folder of its own; neither ``course/`` nor anybody's work is read.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import compute_checksum

from . import handout, seal
from .build import Say, dump, released
from .lesson import Lesson, LessonError, all_lessons

VARIABLE = "COURSE_URL"
FOLDER = "attention-course"
RECORD = "release.json"
# What belongs to the place where a release is published, and goes with it into the next one.
KEPT = (".git", "CNAME")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_EXAMPLE = f"{VARIABLE}=https://you.github.io/course"


class ReleaseError(RuntimeError):
    """The release could not be made; the message says what to do."""


@dataclass(frozen=True)
class Place:
    """Where a release is published: ``files`` is what a file's name is put behind to fetch it, ``colab`` to open it."""

    files: str
    colab: str | None = None


def place(text: str) -> Place:
    """The place that ``COURSE_URL`` names: a folder on the web, or a repository on GitHub.

    Raises:
        ReleaseError: if students could not fetch anything from it.
    """

    def refuse(why: str) -> NoReturn:
        raise ReleaseError(f"{VARIABLE}={text} {why}. It should look like {_EXAMPLE}.")

    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        refuse("is not a web address")
    if parts.scheme not in ("https", "http") or not re.fullmatch(r"[a-z0-9.-]*[a-z0-9]|::1", host):
        refuse("is not a web address")
    if "." not in host and host not in _LOCAL:
        refuse("is not an address that students can reach")
    if "@" in parts.netloc:
        refuse("holds a name or a password, which students would receive")
    if parts.scheme == "http" and host not in _LOCAL:
        refuse("is not encrypted, so nobody could tell what students install; use https")
    if parts.query or parts.fragment or not re.fullmatch(r"[\w.~%/@:+,=-]*", parts.path, re.ASCII):
        refuse("is not the address of a folder")
    if re.search(r"\.(html?|ipynb|whl|zip|git/.*)$", parts.path):
        refuse("is the address of a file; name the folder that it is in")
    if host in ("github.com", "www.github.com"):
        return _github(parts.path, refuse)
    name = f"[{host}]" if ":" in host else host
    return Place(f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}/")


def _github(path: str, refuse) -> Place:
    """``/OWNER/REPO``, with ``/tree/BRANCH`` and then a folder behind it, or without: the branch is ``main`` then."""
    found = re.fullmatch(r"/([^/]+)/([^/]+?)(?:\.git)?(?:/tree/([^/]+)(/.+?)?)?/*", path)
    if not found:
        refuse("names no repository; one looks like https://github.com/you/course or …/you/course/tree/main/folder")
    owner, name, branch, folder = found[1], found[2], found[3] or "main", found[4] or ""
    return Place(
        f"https://raw.githubusercontent.com/{owner}/{name}/{branch}{folder}/",
        f"https://colab.research.google.com/github/{owner}/{name}/blob/{branch}{folder}/",
    )


def release(root: Path, say: Say = print) -> Path:
    """Write ``dist/attention-course`` and the zip of it. Returns the folder.

    What was in ``dist/`` before stays until the new release is complete.

    Raises:
        ReleaseError: if an address is none, something is in the way, or the release cannot be written.
    """
    wanted = os.environ.get(VARIABLE, "").strip()
    if "COURSE_REPO" in os.environ and not wanted:
        say(f"COURSE_REPO is not looked at any more; say where the release will be: {_EXAMPLE}")
    where = place(wanted) if wanted else None
    lessons = all_lessons(root)
    if not lessons:
        raise ReleaseError("There is no lesson under solutions/, so there is nothing to release.")
    dist = root / "dist"
    refuse_foreign(dist)
    with _in_words(), _beside(dist) as fresh:
        folder = fresh / FOLDER
        folder.mkdir()
        wheel = build_wheel(root, folder)
        write_lessons(root, lessons, folder, where, wheel)
        for licence in ("LICENSE", "LICENSE-LESSONS"):
            shutil.copyfile(root / licence, folder / licence)
        _zip(folder, fresh / f"{FOLDER}.zip")
        (fresh / RECORD).write_text(json.dumps(_digests(fresh), indent=1) + "\n", encoding="utf-8")
        replaced = _other_contents(dist / FOLDER, folder / wheel)
        _swap(fresh, dist)
    size = (dist / FOLDER / wheel).stat().st_size
    say(f"dist/{FOLDER}: {len(lessons)} lessons and {wheel} ({size / 1e6:.1f} MB); dist/{FOLDER}.zip holds the same.")
    if replaced:
        say(
            "The release before this one had the same version with other contents. Who has installed that one keeps "
            "it: raise the version in attention_course/__init__.py and release again, unless nobody has it yet."
        )
    if where is None:
        say(f"Without {VARIABLE}, a notebook takes the wheel beside it or one folder above: hand out the folder.")
        say(f"If it will be on the web: {_EXAMPLE} make release")
    else:
        say(f"Publish the folder so that {where.files}{wheel} gives that file; the lessons install it from there.")
        say(
            "Badges open the lessons in Colab." if where.colab else "Colab opens by badge from GitHub alone: no badges."
        )
    return dist / FOLDER


def build_wheel(root: Path, folder: Path) -> str:
    """Build the student's package into ``folder``. Returns the file's name. The same sources give the same bytes.

    Raises:
        ReleaseError: with pip's last words.
    """
    command = [
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(root),
    ]
    run = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    wheels = [path.name for path in folder.glob("*.whl")]
    if run.returncode or len(wheels) != 1:
        words = (run.stdout + run.stderr).strip().split("\n")
        _stop_if_full("\n".join(words))
        raise ReleaseError(f"pip could not build the students' package. Its last words: {words[-1]}")
    return wheels[0]


def write_lessons(root: Path, lessons: list[Lesson], folder: Path, where: Place | None, wheel: str) -> None:
    """Write the student notebooks, and the pages that lead to them.

    Raises:
        ReleaseError: if nbgrader refuses a lesson, or a lesson has another setup cell than the others.
    """
    try:
        with released(root, lessons) as made:
            notebooks = [nbformat.read(made / x.name / f"{x.name}.ipynb", as_version=4) for x in lessons]
    except LessonError as error:
        _stop_if_full(str(error))
        raise ReleaseError(str(error)) from None
    cards = [handout.card(x.name, x.number, n) for x, n in zip(lessons, notebooks, strict=True)]
    for place, (card, notebook) in enumerate(zip(cards, notebooks, strict=True)):
        fill_in(notebook, where.files + wheel if where else "", wheel)
        handout.link(notebook, cards, place, where.colab if where else None)
        seal.write(notebook)
        target = folder / card.path
        target.parent.mkdir()
        target.write_text(dump(notebook), encoding="utf-8")
    about = {"lessons": cards, "wheel": wheel, "files": where and where.files, "colab": where and where.colab}
    for name in ("README.md", "index.html"):
        (folder / name).write_text(handout.page(name, about), encoding="utf-8")
    (folder / ".nojekyll").touch()  # GitHub's pages are then served as they are


def fill_in(notebook: NotebookNode, address: str, wheel: str) -> None:
    """Write into the setup cell which package the lesson runs on, and what to do where it cannot be had.

    Raises:
        ReleaseError: if the notebook has no setup cell with the two lines that are filled in.
    """
    version = wheel.split("-")[1]
    what = "{ADDRESS}" if address else f"{wheel}, which came with the lessons,"
    lines = {
        "ADDRESS, VERSION, COURSE": f'{json.dumps(address)}, "{version}", "attention_course"',
        "HELP": f"f\"This lesson runs on version {{VERSION}} of the course's package: put {what} beside this notebook, "
        f"restart the kernel and run this cell again. Should it still stop, %pip install with that file says why, and "
        f'attention_course.__file__ names an older copy that is in the way."',
    }
    cell = next((c for c in notebook.cells if c.id == "setup"), None)
    source, filled = (cell.source if cell else ""), 0
    for name, value in lines.items():
        source, count = re.subn(rf"^{name} = .*$", lambda _, to=f"{name} = {value}": to, source, flags=re.MULTILINE)
        filled += count
    if cell is None or filled != 2:
        raise ReleaseError(
            "A lesson's first code cell is not the setup cell that a release fills in. Run make build first."
        )
    cell.source = source
    cell.metadata.nbgrader.checksum = compute_checksum(cell)


def refuse_foreign(dist: Path) -> None:
    """Refuse to replace what no release wrote, or what somebody changed since.

    Raises:
        ReleaseError: naming what is in the way.
    """
    if not dist.exists():
        return
    if not dist.is_dir():
        raise ReleaseError("dist is in the way: it is a file. Move it elsewhere, then run make release again.")
    try:
        written = json.loads((dist / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        written = {}
    now = _digests(dist)
    foreign = sorted(name for name, digest in now.items() if written.get(name) != digest)
    if foreign:
        names = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else "")
        raise ReleaseError(
            f"dist/ holds what no release wrote, or what was changed since: {names}. "
            f"Move it elsewhere, then run make release again; nothing was touched."
        )


def _digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in ``folder``, by its path; without the record itself and without what is kept."""
    found = {}
    for base, folders, files in os.walk(folder):
        here = Path(base).relative_to(folder)
        if here == Path(FOLDER):
            folders[:] = [name for name in folders if name not in KEPT]
            files = [name for name in files if name not in KEPT]
        links = [name for name in folders if Path(base, name).is_symlink()]
        for name in [*files, *links]:
            path = here / name
            if path != Path(RECORD):
                plain = Path(base, name).is_file() and not Path(base, name).is_symlink()
                found[path.as_posix()] = (
                    hashlib.sha256(Path(base, name).read_bytes()).hexdigest() if plain else "a link"
                )
    return found


def _other_contents(old: Path, wheel: Path) -> bool:
    """Did the release before this one have a package of the same version, with other contents?"""
    before = old / wheel.name
    return before.exists() and before.read_bytes() != wheel.read_bytes()


@contextmanager
def _beside(dist: Path) -> Iterator[Path]:
    """A new folder beside ``dist`` to write a release into. It goes, unless it took the place of ``dist``."""
    fresh = Path(tempfile.mkdtemp(prefix=".dist-", dir=dist.parent))
    try:
        fresh.chmod(0o755)
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _swap(fresh: Path, dist: Path) -> None:
    """Put the complete release where the old one is. The old one goes last."""
    old = fresh.with_name(fresh.name + "-old")
    if dist.exists():
        dist.rename(old)
    try:
        fresh.rename(dist)
        for name in KEPT:
            if (old / FOLDER / name).exists():
                (old / FOLDER / name).rename(dist / FOLDER / name)
    except OSError:
        if not dist.exists():
            old.rename(dist)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _in_words() -> Iterator[None]:
    """A file that cannot be written is a sentence."""
    try:
        yield
    except OSError as error:
        _stop_if_full(str(error), error.errno)
        raise ReleaseError(
            f"The release could not be written ({error.strerror}: {error.filename}). dist/ is as it was before."
        ) from error


def _stop_if_full(words: str, number: int | None = None) -> None:
    if number in (errno.ENOSPC, errno.EDQUOT) or os.strerror(errno.ENOSPC) in words:
        raise ReleaseError("The disk is full. Make room, then run make release again; dist/ is as it was before.")


def _zip(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(folder):
            entry = zipfile.ZipInfo(str(path.relative_to(folder.parent)), date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
