"""How long a lesson takes a learner, by one rule for all lessons, so that the time in its title is no guess."""

import re

from nbformat import NotebookNode

WORDS, CODE_LINES, EXERCISE = 180, 12, 7  # words a minute, lines of code a minute, minutes an exercise
STOP_FROM = 100  # a lesson that takes longer marks a place to stop


def minutes(notebook: NotebookNode) -> int:
    """Minutes for a student notebook: words / 180 + lines of code / 12 + 7 for each exercise, to the nearest 5.

    Words are those of the prose with hints and questions; lines are those that stand open on the page.
    """
    words = lines = exercises = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            words += len(re.sub(r"<[^>]+>|\]\([^)]*\)|[|#*`$-]", " ", cell.source).split())
        elif not cell.metadata.get("jupyter", {}).get("source_hidden"):
            lines += sum(bool(line.strip()) for line in cell.source.split("\n"))
            exercises += bool(cell.metadata.get("nbgrader", {}).get("solution"))
    return 5 * round((words / WORDS + lines / CODE_LINES + EXERCISE * exercises) / 5)
