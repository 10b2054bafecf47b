"""``make release``: a folder and a zip with what an instructor hands to students, and nothing else."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from shutil import rmtree

from .build import Say

VARIABLE = "COURSE_REPO"
_GUIDE = """# Attention, hands on

Open the lessons in order; each is one notebook in its own folder.

In Colab: upload a notebook, or press its badge. The first cell installs what the lesson needs.

On your own machine (Python 3.11 or newer), in this folder:

    python -m venv .venv
    .venv/bin/pip install jupyterlab {wheel}
    .venv/bin/jupyter lab

On Windows the programs are in .venv\\Scripts in place of .venv/bin.

Write your lines where a cell says TODO, run the cell, then run the check below it. Hand in the notebook itself, under
the name it has.
"""


class ReleaseError(RuntimeError):
    """The release could not be made; the message says what to do."""


def repository(root: Path) -> tuple[str, str]:
    """The address that students install from and Colab opens, and where it comes from.

    ``COURSE_REPO`` wins; else the git remote ``origin``, if it is on the web; else the one in ``pyproject.toml``.

    Raises:
        ReleaseError: if ``COURSE_REPO`` is not a web address.
    """
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted:
        address = as_web_address(wanted)
        if address is None:
            raise ReleaseError(
                f"{VARIABLE}={wanted} is not a web address; it should look like https://github.com/you/course."
            )
        return address, VARIABLE
    remote = subprocess.run(
        ["git", "-C", str(root), "remote", "get-url", "origin"], capture_output=True, text=True, check=False
    )
    address = as_web_address(remote.stdout.strip()) if remote.returncode == 0 else None
    if address:
        return address, "git remote origin"
    return configured(root), "pyproject.toml"


def configured(root: Path) -> str:
    """The address that the lessons in this repository carry."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]


def as_web_address(text: str) -> str | None:
    """``https://host/owner/name`` for any spelling git accepts of it; None for a path on this machine.

    A name or password in the address is dropped: students must not receive it.
    """
    match = re.fullmatch(r"(?:https?|ssh|git)://(?:[^@/]+@)?([\w.-]+\.\w+)(?::\d+)?/(.+?)(?:\.git)?/?", text)
    match = match or re.fullmatch(r"(?:[\w-]+@)([\w.-]+\.\w+):(.+?)(?:\.git)?/?", text)
    return f"https://{match[1]}/{match[2]}" if match else None


def with_address(text: str, old: str, new: str) -> str:
    """A notebook's text with the course's address exchanged; the Colab badge goes where Colab cannot follow."""
    slug_old, slug_new = old.removeprefix("https://github.com/"), new.removeprefix("https://github.com/")
    if slug_new == new:  # not on GitHub: Colab opens notebooks by address from there alone
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = [line for line in cell["source"] if "colab.research.google.com" not in line]
        text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    else:
        text = text.replace(f"/github/{slug_old}/", f"/github/{slug_new}/")
    return text.replace(old, new)


def release(root: Path, say: Say = print) -> Path:
    """Write ``dist/attention-course`` and the zip of it. Returns the folder.

    Raises:
        ReleaseError: if the wheel cannot be built, or there is no lesson to release.
    """
    lessons = sorted((root / "course").glob("*/*.ipynb"))
    if not lessons:
        raise ReleaseError("course/ has no lesson. Run `make build` first.")
    address, origin = repository(root)
    dist = root / "dist"
    if dist.exists():
        rmtree(dist)
    folder = dist / "attention-course"
    folder.mkdir(parents=True)
    wheel = _wheel(root, folder)
    old = configured(root)
    for lesson in lessons:
        target = folder / lesson.parent.name / lesson.name
        target.parent.mkdir()
        target.write_text(with_address(lesson.read_text(encoding="utf-8"), old, address), encoding="utf-8")
    (folder / "README.md").write_text(_GUIDE.format(wheel=wheel), encoding="utf-8")
    (folder / "LICENSE-LESSONS").write_bytes((root / "LICENSE-LESSONS").read_bytes())
    _zip(folder, dist / "attention-course.zip")
    say(f"dist/: {len(lessons)} lessons, {wheel}. Students install from {address} (from {origin}).")
    if origin == "pyproject.toml":
        say(f"Is the course somewhere else? {VARIABLE}=https://github.com/you/course make release")
    return folder


def _wheel(root: Path, folder: Path) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(root)],
        capture_output=True, text=True, check=False,
        env=os.environ | {"SOURCE_DATE_EPOCH": "315532800"},
    )  # fmt: skip
    wheels = [p.name for p in folder.glob("*.whl")]
    if run.returncode or len(wheels) != 1:
        raise ReleaseError(f"pip could not build the student package:\n{run.stdout}{run.stderr}")
    rmtree(root / "build", ignore_errors=True)
    return wheels[0]


def _zip(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(str(path.relative_to(folder.parent)), date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
