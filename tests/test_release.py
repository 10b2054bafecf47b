"""The release: an address that is one, a folder that stands alone, and nothing lost when it cannot be written."""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from conftest import LESSONS, ROOT

from attention_course import __version__
from attention_course.authoring import release, seal
from attention_course.grading import sandbox

WHEEL = f"attention_course-{__version__}-py3-none-any.whl"
TWO = LESSONS[:2]
WEB = "https://you.github.io/course"
HUB = "https://github.com/you/course"
RAW = "https://raw.githubusercontent.com/you/course"
FULL = "The disk is full. Make room, then run make release again; dist/ is as it was before."
EVERYBODYS = ("https://colab.research.google.com", "https://creativecommons.org/licenses/by/4.0/")


@pytest.mark.parametrize(
    ("given", "files", "colab"),
    [
        (WEB, f"{WEB}/", None),
        (f"{WEB}/", f"{WEB}/", None),
        ("https://www.example.org:8443/a/b", "https://www.example.org:8443/a/b/", None),
        ("http://localhost:8000", "http://localhost:8000/", None),
        ("http://127.0.0.1:8000/x", "http://127.0.0.1:8000/x/", None),
        (HUB, f"{RAW}/main/", "you/course/blob/main/"),
        (f"{HUB}.git", f"{RAW}/main/", "you/course/blob/main/"),
        (f"{HUB}/tree/fall", f"{RAW}/fall/", "you/course/blob/fall/"),
        (f"{HUB}/tree/fall/a/b/", f"{RAW}/fall/a/b/", "you/course/blob/fall/a/b/"),
    ],
)
def test_every_place(given, files, colab):
    found = release.place(given)
    assert found.files == files
    assert found.colab == (colab and f"https://colab.research.google.com/github/{colab}")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("my course", "is not a web address"),
        ("you.github.io/course", "is not a web address"),
        ("git@github.com:you/course.git", "is not a web address"),
        ("ftp://example.org/course", "is not a web address"),
        ("file:///srv/course", "is not a web address"),
        ("https://", "is not a web address"),
        ("https://[::1", "is not a web address"),
        ("https://example.org:many/", "is not a web address"),
        ("https://intranet/course", "is not an address that students can reach"),
        ("http://example.org/course", "use https"),
        ("https://name:secret@example.org/course", "holds a name or a password"),
        ("https://example.org/course?x=1", "is not the address of a folder"),
        ('https://example.org/"); import os', "is not the address of a folder"),
        ("https://example.org/course/index.html", "is the address of a file"),
        ("https://github.com/you", "names no repository"),
        (f"{HUB}/blob/main/README.md", "names no repository"),
    ],
)
def test_no_address_is_a_sentence(given, why):
    with pytest.raises(release.ReleaseError, match=re.escape(why)) as caught:
        release.place(given)
    assert "COURSE_URL=https://you.github.io/course" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """What the repository tracks, with two lessons: a release is made here, and nobody's dist/ is touched."""
    root = tmp_path_factory.mktemp("clone")
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        left_out = name.split("/")[0] in ("solutions", "course") and name.split("/")[1] not in [x.name for x in TWO]
        if (ROOT / name).is_file() and not left_out:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, root / name)
    return root


@pytest.fixture(scope="module")
def notebooks(clone, tmp_path_factory) -> Path:
    """What nbgrader makes of the two lessons. It takes seconds, so it is asked once."""
    folder = tmp_path_factory.mktemp("released")
    with release.released(clone, release.all_lessons(clone)) as made:
        shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture
def make(clone, notebooks, monkeypatch):
    """Make a release, of an address or of none. Returns the folder and what was said."""

    @contextmanager
    def made(root, lessons):
        yield notebooks

    def make(url: str = "") -> tuple[Path, str]:
        monkeypatch.setattr(release, "released", made)
        monkeypatch.setenv("COURSE_URL", url)
        said: list[str] = []
        return release.release(clone, said.append), "\n".join(said)

    shutil.rmtree(clone / "dist", ignore_errors=True)
    yield make
    if (clone / "dist").is_file():
        (clone / "dist").unlink()
    left = [p.name for p in clone.iterdir() if p.name.startswith(".dist-")]
    assert left == [], "a release leaves nothing beside dist/"


def contents(folder: Path) -> dict[str, str]:
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def cells(path: Path) -> dict[str, str]:
    return {c.id: c.source for c in nbformat.read(path, as_version=4).cells}


def texts(folder: Path) -> dict[str, str]:
    """Everything in a release that can be read, the wheel's own files among it, without the pictures' data."""
    found = {}
    for path in (p for p in folder.rglob("*") if p.is_file()):
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as archive:
                found |= {
                    n: archive.read(n).decode() for n in archive.namelist() if n.endswith((".py", ".csv", "METADATA"))
                }
        else:
            found[str(path.relative_to(folder))] = path.read_text(encoding="utf-8")
    return {name: re.sub(r"[A-Za-z0-9+/=]{200,}", "", text) for name, text in found.items()}


def test_a_release_on_github(make):
    folder, said = make(f"{HUB}/tree/fall/2026")
    wheel = f"{RAW}/fall/2026/{WHEEL}"
    assert wheel in said
    for lesson in TWO:
        made = cells(folder / lesson.name / f"{lesson.name}.ipynb")
        assert f'ADDRESS, VERSION, COURSE = "{wheel}", "{__version__}", "attention_course"' in made["setup"]
        badge = f"https://colab.research.google.com/github/you/course/blob/fall/2026/{lesson.name}/{lesson.name}.ipynb"
        title = next(iter(made.values()))
        assert (
            title.split("\n")[2]
            == f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({badge})"
        )
        assert badge in (folder / "index.html").read_text()
        assert badge in (folder / "README.md").read_text()


def test_a_release_elsewhere_has_no_badges(make):
    folder, said = make(WEB)
    assert f"{WEB}/{WHEEL}" in said
    for name, text in texts(folder).items():
        assert "colab.research.google.com/github" not in text, name
        assert "colab-badge" not in text, name
    assert f'"{WEB}/{WHEEL}", "{__version__}"' in cells(folder / TWO[0].name / f"{TWO[0].name}.ipynb")["setup"]


def test_without_an_address_it_works_too_and_says_what_is_missing(make):
    folder, said = make()
    assert "Without COURSE_URL" in said
    assert "COURSE_URL=https://you.github.io/course make release" in said
    setup = cells(folder / TWO[0].name / f"{TWO[0].name}.ipynb")["setup"]
    assert f'ADDRESS, VERSION, COURSE = "", "{__version__}", "attention_course"' in setup
    assert WHEEL in setup
    assert "upload" in (folder / "README.md").read_text()


@pytest.mark.parametrize("url", ["", WEB, HUB])
def test_nothing_names_another_courses_address(make, url):
    folder, _ = make(url)
    own = {WEB: "you.github.io/course", HUB: "you/course"}.get(url)
    sources = [*(ROOT / "solutions").glob("*/*.py"), *(ROOT / "attention_course").rglob("*.py")]
    cited = "\n".join(path.read_text(encoding="utf-8") for path in sources)  # papers, manuals, Colab, the licence
    for name, text in texts(folder).items():
        for address in re.findall(r"https?://[^\s\"'<>)\]`\\]+", text):
            known = address.rstrip(".,;") in cited or address.startswith(EVERYBODYS)
            assert known or (own and own in address), f"{name}: {address}"
        assert "attention-course/attention-course" not in text, name
        assert "git+" not in text, name


def test_the_setup_cell_is_short_and_the_same_everywhere(make):
    folder, _ = make(WEB)
    for place in (folder, ROOT / "solutions"):
        names = [x.name for x in (TWO if place == folder else LESSONS)]
        sources = {cells(place / n / f"{n}.ipynb")["setup"] for n in names}
        assert len(sources) == 1
        assert len(sources.pop().split("\n")) <= 12
    setup = cells(ROOT / "solutions" / TWO[0].name / f"{TWO[0].name}.ipynb")["setup"]
    assert 'ADDRESS, VERSION, COURSE = "", "", "attention_course"' in setup


def test_a_filled_in_cell_is_still_locked_and_whole_for_nbgrader(make):
    from nbgrader.utils import compute_checksum

    folder, _ = make(WEB)
    notebook = nbformat.read(folder / TWO[0].name / f"{TWO[0].name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if "checksum" in about:
            assert about.checksum == compute_checksum(cell), cell.id
    (setup,) = (c for c in notebook.cells if c.id == "setup")
    assert setup.metadata.nbgrader.locked
    assert seal.stored(notebook) == seal.make(notebook)


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.bare: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        about = dict(attrs)
        if tag == "a":
            self.links.append(about["href"])
        if tag in ("img", "script", "link", "iframe"):
            self.loaded.append(about.get("src") or about.get("href") or "")
        if tag == "img" and not about.get("alt"):
            self.bare.append(about["src"][:40])
        if tag not in ("meta", "img", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_alone_and_its_links_lead_somewhere(make):
    folder, _ = make(WEB)
    page, text = _Links(), (folder / "index.html").read_text(encoding="utf-8")
    page.feed(text)
    assert page.open == []
    assert page.bare == []
    assert all(address.startswith("data:image/png;base64,") for address in page.loaded)
    assert len(page.loaded) == len(TWO)
    local = [x for x in page.links if not x.startswith(("https://", "#"))]
    assert {f"{x.name}/{x.name}.ipynb" for x in TWO} <= set(local)
    assert all((folder / x).is_file() for x in local)
    assert all(f'id="{x[1:]}"' in text for x in page.links if x.startswith("#"))
    assert "url(" not in text
    for name in ("width=device-width", "prefers-color-scheme: dark"):
        assert name in text
    for lesson in TWO:
        assert nbformat.read(lesson.notebook, as_version=4).cells[0].source.split("\n")[0].removeprefix("# ") in text


def test_the_lessons_lead_to_each_other(make):
    folder, _ = make(WEB)
    for path in [*folder.glob("*/*.ipynb"), folder / "README.md"]:
        source = "\n".join(cells(path).values()) if path.suffix == ".ipynb" else path.read_text(encoding="utf-8")
        near = re.findall(r"\]\((?!https?:|data:|attachment:|#)([^)\s]+)\)", source)
        assert near
        for target in near:
            assert (path.parent / target).is_file(), f"{path.name}: {target}"
    first, second = (cells(folder / x.name / f"{x.name}.ipynb") for x in TWO)
    assert f"../{TWO[1].name}/{TWO[1].name}.ipynb" in next(iter(first.values()))
    assert f"../{TWO[1].name}/{TWO[1].name}.ipynb" in list(first.values())[-1]
    assert f"../{TWO[0].name}/{TWO[0].name}.ipynb" in next(iter(second.values()))


def test_the_same_release_twice_is_the_same_bytes(make, clone):
    make(WEB)
    before = contents(clone / "dist")
    _, said = make(WEB)
    assert contents(clone / "dist") == before
    assert "other contents" not in said


def test_another_package_under_the_same_version_is_said(make, clone):
    make(WEB)
    source = clone / "attention_course" / "device.py"
    text = source.read_text()
    try:
        source.write_text(text + "\n# changed\n")
        _, said = make(WEB)
        assert "the same version with other contents" in said
        assert "raise the version in attention_course/__init__.py" in said
    finally:
        source.write_text(text)


def test_neither_course_nor_anybodys_work_is_read(make, clone):
    folder, _ = make(WEB)
    before = contents(folder)
    for name in ("course", "work", "my-work"):
        place = clone / name / TWO[0].name / f"{TWO[0].name}.ipynb"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("somebody's answer")
    folder, _ = make(WEB)
    assert contents(folder) == before


MINE = ["notes.txt", f"attention-course/{TWO[0].name}/mine.ipynb", "attention-course/.hidden"]


@pytest.mark.parametrize("name", MINE)
def test_a_foreign_file_is_in_the_way(make, clone, name):
    make(WEB)
    (clone / "dist" / name).write_text("mine")
    before = contents(clone / "dist")
    with pytest.raises(release.ReleaseError, match=re.escape(name)):
        make(WEB)
    assert contents(clone / "dist") == before


def test_a_changed_lesson_is_in_the_way(make, clone):
    folder, _ = make(WEB)
    lesson = folder / TWO[0].name / f"{TWO[0].name}.ipynb"
    lesson.write_text(lesson.read_text().replace("raise NotImplementedError", "return 42", 1))
    with pytest.raises(release.ReleaseError, match="was changed since"):
        make(WEB)
    assert "return 42" in lesson.read_text()


def test_a_dist_that_no_release_wrote_or_that_is_a_file(make, clone):
    (clone / "dist").mkdir()
    (clone / "dist" / "thesis.tex").write_text("mine")
    with pytest.raises(release.ReleaseError, match=r"thesis\.tex"):
        make(WEB)
    assert (clone / "dist" / "thesis.tex").read_text() == "mine"
    shutil.rmtree(clone / "dist")
    (clone / "dist").write_text("a file")
    with pytest.raises(release.ReleaseError, match="dist is in the way: it is a file"):
        make(WEB)
    assert (clone / "dist").read_text() == "a file"


def test_the_repository_that_it_is_published_from_stays(make, clone):
    folder, _ = make(WEB)
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "CNAME").write_text("attention.example.org\n")
    folder, _ = make(HUB)
    assert (folder / ".git" / "HEAD").read_text() == "ref: refs/heads/main\n"
    assert (folder / "CNAME").read_text() == "attention.example.org\n"
    make(HUB)


@pytest.mark.parametrize(
    ("step", "number", "sentence"),
    [
        ("_zip", errno.ENOSPC, FULL),
        ("_zip", errno.EACCES, "The release could not be written (Permission denied: /x). dist/ is as it was before."),
        ("fill_in", errno.ENOSPC, FULL),
    ],
)
def test_what_cannot_be_written_is_a_sentence(make, clone, monkeypatch, step, number, sentence):
    make(WEB)
    before = contents(clone / "dist")

    def fail(*args):
        raise OSError(number, os.strerror(number), "/x")

    with monkeypatch.context() as patch:
        patch.setattr(release, step, fail)
        with pytest.raises(release.ReleaseError) as caught:
            make(HUB)
    assert str(caught.value) == sentence
    assert contents(clone / "dist") == before
    make(HUB)


def test_a_swap_that_fails_half_way_puts_the_old_release_back(make, clone, monkeypatch):
    make(WEB)
    before = contents(clone / "dist")
    rename, calls = Path.rename, []

    def second_fails(self, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(target))
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", second_fails)
        with pytest.raises(release.ReleaseError, match="Device or resource busy"):
            make(HUB)
    assert contents(clone / "dist") == before


PROGRAM = """
import sys
from pathlib import Path
from attention_course.authoring import release
try:
    with release._in_words(), release._beside(Path(sys.argv[1], "dist")) as fresh:
        release.build_wheel(Path(sys.argv[2]), fresh)
except release.ReleaseError as error:
    print(error)
"""


def test_a_real_disk_that_is_full(clone, tmp_path):
    """A wheel is built into a file system of half a megabyte, where bubblewrap can make one."""
    argv = ["bwrap", "--dev-bind", "/", "/", "--size", str(2**16), "--tmpfs", str(tmp_path), "--"]
    if sandbox.missing() or subprocess.run([*argv, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap makes the small disk, and it cannot here")
    run = subprocess.run(
        [*argv, sys.executable, "-c", PROGRAM, str(tmp_path), str(clone)], capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == FULL, run.stderr


def test_the_record_names_every_file(make, clone):
    make(WEB)
    record = json.loads((clone / "dist" / "release.json").read_text())
    assert record == {n: d for n, d in contents(clone / "dist").items() if n != "release.json"}


def test_a_course_without_lessons_is_not_released(tmp_path, monkeypatch):
    monkeypatch.delenv("COURSE_URL", raising=False)
    (tmp_path / "solutions").mkdir()
    with pytest.raises(release.ReleaseError, match="no lesson"):
        release.release(tmp_path)
