"""The one address of the course: where it is taken from, and that every lesson carries it."""

import json

import pytest
from conftest import LESSONS, ROOT

from attention_course.authoring import release


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("https://github.com/you/course", "https://github.com/you/course"),
        ("https://github.com/you/course.git", "https://github.com/you/course"),
        ("https://name:secret@github.com/you/course.git", "https://github.com/you/course"),
        ("git@github.com:you/course.git", "https://github.com/you/course"),
        ("ssh://git@gitlab.example.org:2222/group/you/course.git", "https://gitlab.example.org/group/you/course"),
        ("/srv/course", None),
        ("../course", None),
        ("file:///srv/course", None),
        ("", None),
    ],
)
def test_every_spelling_of_an_address(given, wanted):
    assert release.as_web_address(given) == wanted


def test_the_variable_wins_and_is_checked(monkeypatch):
    monkeypatch.setenv("COURSE_REPO", "https://github.com/you/course")
    assert release.repository(ROOT) == ("https://github.com/you/course", "COURSE_REPO")
    monkeypatch.setenv("COURSE_REPO", "my course")
    with pytest.raises(release.ReleaseError, match="it should look like"):
        release.repository(ROOT)


def test_without_a_remote_the_configured_address_stands(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_REPO", raising=False)
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    assert release.repository(tmp_path) == (release.configured(ROOT), "pyproject.toml")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda x: x.name)
def test_the_address_is_exchanged_everywhere(lesson):
    old = release.configured(ROOT)
    text = (ROOT / "course" / lesson.name / f"{lesson.name}.ipynb").read_text(encoding="utf-8")
    assert text.count(old.removeprefix("https://github.com/")) == 2  # the badge and the setup cell
    moved = release.with_address(text, old, "https://github.com/you/my-course")
    json.loads(moved)
    assert old not in moved
    assert "/github/you/my-course/blob/main/course/" in moved
    assert "git+https://github.com/you/my-course" in moved
    elsewhere = release.with_address(text, old, "https://gitlab.example.org/you/my-course")
    json.loads(elsewhere)
    assert "colab.research.google.com" not in elsewhere
    assert "git+https://gitlab.example.org/you/my-course" in elsewhere


def test_a_course_without_lessons_is_not_released(tmp_path):
    with pytest.raises(release.ReleaseError, match="make build"):
        release.release(tmp_path)
