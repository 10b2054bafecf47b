"""What happens when somebody saves a lesson's solution in JupyterLab: the cells that were edited change, nothing else.

``jupyter_server_config.py`` beside this file gives both functions to the server's contents manager, which calls them
for every file that is saved. Only notebooks in ``solutions/NN_name/`` are touched.
"""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from .lesson import Lesson, LessonError
from .text import agree, bring_back, edited, tidied

log = logging.getLogger("attention_course.authoring")
_refused: dict[str, str] = {}


def before_saving(model: dict[str, Any], path: str, contents_manager: Any, **_: Any) -> None:
    """Tidy the notebook that is about to be written, and put its edited cells into the lesson's text.

    What cannot be put there is saved in the notebook all the same: :func:`after_saving` says so.
    """
    place = Path(contents_manager._get_os_path(path))
    _refused.pop(str(place), None)
    if model.get("type") != "notebook" or not is_solution(place):
        return
    lesson = Lesson(place.parent)
    stored = _stored(place, lesson)
    try:
        notebook = tidied(lesson, nbformat.from_dict(model["content"]), stored)
        model["content"] = notebook
        if changed := bring_back(lesson, notebook):
            log.info("%s: %s", lesson.source.name, ", ".join(changed))
        if not any(edited(Lesson(place.parent), notebook)):
            agree(notebook)
    except LessonError as error:
        _refused[str(place)] = f"The notebook is saved; its text is as it was. {error}"


def after_saving(model: dict[str, Any], os_path: str, contents_manager: Any, **_: Any) -> None:
    """Tell whoever saves that the lesson's text could not follow, and why. JupyterLab shows it.

    Raises:
        LessonError: with that sentence.
    """
    if sentence := _refused.pop(str(Path(os_path)), None):
        raise LessonError(sentence)


def is_solution(place: Path) -> bool:
    """Is this the notebook of a lesson, beside the text it follows from?"""
    return (
        place.suffix == ".ipynb"
        and place.stem == place.parent.name
        and place.parent.parent.name == "solutions"
        and place.with_suffix(".py").exists()
    )


def _stored(place: Path, lesson: Lesson) -> NotebookNode | None:
    try:
        stored = nbformat.read(place, as_version=4)
    except Exception:
        return None  # missing, or not a notebook: there is nothing to keep
    with suppress(LessonError):  # a cell that no text can hold was saved here before
        if not any(edited(lesson, stored)):
            agree(stored)  # built before notebooks noted that
    return stored
