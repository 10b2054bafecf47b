"""What an author of a lesson writes beside it, and the build that turns both into what students open.

``cases.py``, ``mistakes.py`` and ``alternatives.py`` in a lesson's folder use the names below. Nothing in this package
is imported by a student's notebook.
"""

from .lesson import implementations
from .spec import Case, Exercise, alternatives_of, mistakes_of, numbers

__all__ = ["Case", "Exercise", "alternatives_of", "implementations", "mistakes_of", "numbers"]
