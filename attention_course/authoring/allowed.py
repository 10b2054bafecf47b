"""What ``nbgrader generate_assignment`` may hand out: of each lesson the notebook that bears its name."""

import logging
from pathlib import Path

log = logging.getLogger("attention_course.authoring")


def only_the_lesson(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader calls this before it converts; ``notebooks`` is the list that it goes through, and is shortened here."""
    for notebook in list(notebooks):
        path = Path(notebook)
        if path.stem != path.parent.name:
            notebooks.remove(notebook)
            log.warning("%s is not handed out: it does not bear the name of its lesson", path.name)
