"""What the tests share: the lessons as they are written, and a way to run a check as a learner would."""

import contextlib
import io
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from attention_course import check
from attention_course.authoring import judge as judging
from attention_course.authoring.lesson import Lesson, all_lessons

# Small tensors are fastest with one thread, above all where several processes share the cores. Programs that a test
# starts inherit it.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)

ROOT = Path(__file__).resolve().parents[1]
LESSONS = all_lessons(ROOT)


@cache
def namespace(name: str) -> dict[str, Any]:
    """What a lesson's locked cells and solutions define. Copy it before you change it."""
    return next(x for x in LESSONS if x.name == name).namespace()


def judge(lesson: Lesson, exercise: str, implementation: Any) -> list[BaseException]:
    """Run an exercise's graded cells, visible and hidden, on an implementation. Returns what they raised."""
    names = dict(namespace(lesson.name)) | {exercise: implementation}
    solved = [e.name for e in lesson.exercises]
    return judging.judge(lesson.tests(exercise), lesson.number, names, solved).raised


def message(run: Callable[[], Any]) -> str:
    """The text of the failed check that ``run`` ends in, in one line."""
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(check.CheckFailed) as caught:
        run()
    return " ".join(str(caught.value).split())


@pytest.fixture(autouse=True)
def quick_and_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks on the CPU, with a short time limit; no figure is drawn when one fails."""
    monkeypatch.setenv("ATTENTION_DEVICE", "cpu")
    monkeypatch.setenv("ATTENTION_CHECK_SECONDS", "5")
    monkeypatch.setattr("attention_course.check.draw.comparison", lambda *args: True)
