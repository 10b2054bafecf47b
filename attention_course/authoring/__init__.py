"""What an author of a lesson writes beside it, and the build that turns both into what students open.

``cases.py``, ``mistakes.py`` and ``alternatives.py`` in a lesson's folder use the names below. Nothing in this package
is imported by a student's notebook.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .lesson import implementations
    from .spec import Case, Exercise, alternatives_of, mistakes_of, numbers

__all__ = ["Case", "Exercise", "alternatives_of", "implementations", "mistakes_of", "numbers"]


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is: PyTorch takes seconds, and `make lab` needs nothing of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import lesson, spec

    return getattr(lesson if name == "implementations" else spec, name)
