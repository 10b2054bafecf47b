"""One sentence, in place of a traceback, where a cell or a slider uses an exercise that is not written yet.

Four things come of one missing exercise, and each gets the sentence:

1. its name is not there, wherever it is used;
2. its stub was called, directly or through another exercise;
3. a name is not there, because the cell that makes it was stopped by 1 or 2;
4. a folded cell, which only draws, fails in whatever way on what such a cell left half made.

Every other error shows as it always does.
"""

import ast
import contextlib
import linecache
import symtable
import textwrap
from types import FrameType, TracebackType
from typing import Any

from IPython import get_ipython

from .messages import WIDTH

FOLDED = "# @title "

_labels: dict[str, str] = {}  # the exercises of the lesson: name to label
# What a stopped cell would have made: name to the exercise that stopped it, and what the name held then.
_stopped: dict[str, tuple[str, int]] = {}


class NotWrittenYet(Exception):
    """A cell or a slider uses an exercise that is not written yet. Jupyter shows one sentence, a grader an error."""

    def _render_traceback_(self) -> list[str]:
        return textwrap.wrap(str(self), WIDTH, break_on_hyphens=False)


def explain(labels: dict[str, str]) -> None:
    """From now on, a cell that uses an exercise which is not written yet gets its sentence.

    Args:
        labels: the exercises of the lesson, each with its label, such as ``{"dot_scores": "1.2"}``.
    """
    _labels.clear()
    _labels.update(labels)
    _stopped.clear()
    shell = get_ipython()
    if shell is not None:
        shell.set_custom_exc((Exception,), _on_error)


def sentence(error: Exception, what: str = "This cell", then: str = "") -> NotWrittenYet | None:
    """The sentence for an ``error`` that only says that an exercise is not written yet; None for every other error.

    ``what`` stands at its beginning, and ``then`` after it: what to do once the exercise is written.
    """
    missing = getattr(error, "name", None) if type(error) is NameError else None
    name = missing or _stub(error)
    if name in _labels:
        cause, state = name, "not written yet"
        if missing:
            state = "which does not exist yet: write it in its cell and run that cell"
        words = f"uses `{name}`, exercise {_labels[name]}, {state}."
    elif (name := missing if missing in _stopped else _half_made(error)) is not None:
        cause, _ = _stopped[name]
        words = (
            f"uses `{name}`, and the cell that makes it stopped at `{cause}`, exercise {_labels[cause]}. Once that is "
            f"written, run the cell that makes `{name}` again."
        )
    else:
        return None
    _remember(cause, error)
    return NotWrittenYet(f"{what} {words} {then}".rstrip())


def _on_error(shell: Any, kind: type, error: Exception, trace: TracebackType, tb_offset: int | None = None) -> None:
    instead = sentence(error)
    if instead is None:
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)
    else:
        shell._showtraceback(NotWrittenYet, instead, instead._render_traceback_())


def _stub(error: Exception) -> str | None:
    """The function or class in whose body a bare ``NotImplementedError`` was raised."""
    frames = _frames(error)
    if type(error) is not NotImplementedError or error.args or not frames or not _is_notebooks(frames[-1]):
        return None
    return frames[-1].f_code.co_qualname.split(".")[0]  # a method's name begins with its class


def _half_made(error: Exception) -> str | None:
    """If a folded cell raised ``error``: a name that it uses and that a stopped cell has left as it is now."""
    for frame in filter(_is_notebooks, _frames(error)):
        source = _source(frame)
        if not source.startswith(FOLDED):
            return None
        used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        left = (x for x in _stopped if x in used and id(frame.f_globals.get(x)) == _stopped[x][1])
        return next(left, None)
    return None


def _remember(exercise: str, error: Exception) -> None:
    """Note which names the stopped cell would have made, so that cells below that use them can say why they stop."""
    for frame in _frames(error):
        if _is_notebooks(frame) and frame.f_locals is frame.f_globals:  # the cell itself, not a function in it
            with contextlib.suppress(SyntaxError):  # what only IPython compiles, as an `await` outside a function
                symbols = symtable.symtable(_source(frame), "cell", "exec").get_symbols()
                made = [x.get_name() for x in symbols if x.is_assigned() or x.is_imported()]
                _stopped.update({name: (exercise, id(frame.f_globals.get(name))) for name in made})
            return


def _is_notebooks(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == "__main__"


def _source(frame: FrameType) -> str:
    """The cell in which the code of ``frame`` stands."""
    return "".join(linecache.getlines(frame.f_code.co_filename))


def _frames(error: Exception) -> list[FrameType]:
    """From the outermost call to the one that raised."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames
