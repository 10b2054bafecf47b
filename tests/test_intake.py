"""Before nbgrader opens a submission: links, pipes and huge files stay outside, and the gradebook has a copy."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from attention_course.grading import intake


@pytest.fixture
def submission(tmp_path) -> Path:
    folder = tmp_path / "grading" / "submitted" / "ada" / "01_attention_scoring"
    folder.mkdir(parents=True)
    return folder


def kept(submission: Path) -> Path:
    return submission.parents[2] / "refused" / "ada" / "01_attention_scoring"


def test_a_plain_submission_is_left_as_it_is(submission):
    (submission / "lesson.ipynb").write_text("{}")
    (submission / "timestamp.txt").write_text("2026-01-01 00:00:00 UTC")
    assert intake.refuse(submission, submission.parents[2] / "refused") == []
    assert sorted(p.name for p in submission.iterdir()) == ["lesson.ipynb", "timestamp.txt"]


def test_a_link_in_place_of_the_notebook_is_not_followed(submission, tmp_path):
    secret = tmp_path / "solution.ipynb"
    secret.write_text("the solution")
    (submission / "lesson.ipynb").symlink_to(secret)
    (said,) = intake.refuse(submission, submission.parents[2] / "refused")
    assert said == "lesson.ipynb: it is a link to another place"
    assert (submission / "lesson.ipynb").read_bytes() == b""  # reported by name, not scored 0 in silence
    assert (kept(submission) / "lesson.ipynb").is_symlink()
    assert secret.read_text() == "the solution"


def test_a_link_to_a_folder_and_a_link_beside_the_notebook_go(submission):
    (submission / "data").symlink_to("/etc")
    (submission / "notes.txt").symlink_to("/etc/passwd")
    assert len(intake.refuse(submission, submission.parents[2] / "refused")) == 2
    assert list(submission.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_nobody_waits_for_a_pipe(submission):
    os.mkfifo(submission / "lesson.ipynb")
    (said,) = intake.refuse(submission, submission.parents[2] / "refused")
    assert "not a file" in said
    assert (submission / "lesson.ipynb").read_bytes() == b""


def test_a_huge_file_is_kept_elsewhere(submission):
    with (submission / "lesson.ipynb").open("wb") as file:
        file.truncate(intake.MOST_BYTES + 1)
    (said,) = intake.refuse(submission, submission.parents[2] / "refused")
    assert "larger than 32 MB" in said
    assert (kept(submission) / "lesson.ipynb").stat().st_size == intake.MOST_BYTES + 1


def test_the_gradebook_is_copied_once_for_each_run_and_old_copies_go(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "KEPT_BACKUPS", 3)
    gradebook = tmp_path / "gradebook.db"
    assert intake.backup(gradebook) is None  # there is none yet
    with closing(sqlite3.connect(gradebook)) as db, db:
        db.execute("create table grade (score)")
        db.execute("insert into grade values (7)")
    for _ in range(5):
        monkeypatch.setattr(intake, "_backed_up", set())
        copy = intake.backup(gradebook)
        assert intake.backup(gradebook) is None
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("select score from grade").fetchall() == [(7,)]
    assert len(list((tmp_path / "backups").iterdir())) == 3
