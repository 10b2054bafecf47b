"""Where on the disk the course is. Imports nothing that is slow: nbgrader's configuration needs it."""

import os
from pathlib import Path


def course_root() -> Path:
    """The folder that holds ``solutions/``: ``ATTENTION_COURSE_ROOT``, else beside this package, else above the working
    directory.

    Raises:
        FileNotFoundError: if it is in none of these places.
    """
    here = Path.cwd()
    named = os.environ.get("ATTENTION_COURSE_ROOT")
    for place in [*([Path(named)] if named else []), Path(__file__).parents[1], here, *here.parents]:
        if (place / "solutions").is_dir():
            return place
    raise FileNotFoundError(
        "The folder solutions/ was not found. Set ATTENTION_COURSE_ROOT to the folder that holds it."
    )
