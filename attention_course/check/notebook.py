"""What a check does to the notebook around it: the progress row, and a sentence where an exercise is missing."""

import contextlib
import html
import linecache
import symtable
import textwrap
from types import TracebackType
from typing import Any

from IPython import get_ipython
from IPython.display import display

from .messages import WIDTH

_labels: dict[str, str] = {}  # the exercises of the lesson: name to label
_made_with: dict[str, str] = {}  # names that a stopped cell would have made, to the exercise that stopped it


class NotWrittenYet(Exception):
    """A cell or a slider uses an exercise that is not written yet. Jupyter shows one sentence, a grader an error."""

    def _render_traceback_(self) -> list[str]:
        return textwrap.wrap(str(self), WIDTH, break_on_hyphens=False)


def explain_unfinished(labels: dict[str, str]) -> None:
    """From now on, a cell that uses an exercise which is not written yet gets a sentence in place of a traceback.

    Args:
        labels: the exercises of the lesson, each with its label, such as ``{"dot_scores": "1.2"}``.
    """
    _labels.clear()
    _labels.update(labels)
    _made_with.clear()
    shell = get_ipython()
    if shell is not None:
        shell.set_custom_exc((NameError, NotImplementedError), _on_error)


def unfinished(error: BaseException, what: str = "This cell", then: str = "") -> NotWrittenYet | None:
    """The sentence for an ``error`` that only says that an exercise is not written yet; None for every other error.

    An exercise is not there (a ``NameError`` about its name, wherever it was used), or its stub was called: the
    innermost frame is the exercise's, and raised ``NotImplementedError`` without a word. Or a name is missing because
    the cell that makes it was stopped in this way. ``what`` stands at the beginning of the sentence,
    ``then`` after it: what to do when the exercise is written.
    """
    name = getattr(error, "name", None) if type(error) is NameError else _stub(error)
    if name in _labels:
        is_missing = type(error) is NameError
        state = "which does not exist yet: write it in its cell and run that cell" if is_missing else "not written yet"
        return _remember(name, error, f"{what} uses `{name}`, exercise {_labels[name]}, {state}. {then}".rstrip())
    if name in _made_with:
        cause = _made_with[name]
        return _remember(
            cause,
            error,
            f"{what} uses `{name}`, and the cell that makes it stopped at `{cause}`, exercise {_labels[cause]}. Once "
            f"that is written, run the cell that makes `{name}` again. {then}".rstrip(),
        )
    return None


def _on_error(
    shell: Any, kind: type, error: NameError | NotImplementedError, trace: TracebackType, tb_offset: int | None = None
) -> None:
    sentence = unfinished(error)
    if sentence is None:
        # The usual traceback. `showtraceback` reads the error from sys.exc_info, which still holds it.
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    else:
        shell._showtraceback(NotWrittenYet, sentence, sentence._render_traceback_())


def _stub(error: BaseException) -> str | None:
    """The function or class in whose body a bare ``NotImplementedError`` was raised."""
    if type(error) is not NotImplementedError or error.args or error.__traceback__ is None:
        return None
    frame = _frames(error)[-1].tb_frame
    # A method's name begins with its class. Only what the notebook itself defines can be an exercise.
    return frame.f_code.co_qualname.split(".")[0] if frame.f_globals.get("__name__") == "__main__" else None


def _remember(exercise: str, error: BaseException, sentence: str) -> NotWrittenYet:
    """Note which names the stopped cell would have made, so that cells below that use them can say why they stop."""
    for each in _frames(error):
        frame = each.tb_frame
        if frame.f_locals is frame.f_globals and frame.f_globals.get("__name__") == "__main__":  # the cell itself
            source = "".join(linecache.getlines(frame.f_code.co_filename))
            with contextlib.suppress(SyntaxError):  # what only IPython compiles, as an `await` outside a function
                names = symtable.symtable(source, "cell", "exec").get_symbols()
                _made_with.update({x.get_name(): exercise for x in names if x.is_assigned() or x.is_imported()})
            break
    return NotWrittenYet(sentence)


def _frames(error: BaseException) -> list[TracebackType]:
    """From the outermost call to the one that raised."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    return frames


def show_progress(lesson: str, title: str, entries: list[tuple[str, str, bool]]) -> None:
    """Display the exercises of a lesson, which are right and which open: (label, name, passed) each.

    The row is a list that a screen reader reads box by box; text stands beside it for plain terminals.
    """
    done = sum(passed for *_, passed in entries)
    are = "is" if done == 1 else "are"
    head = f"Lesson {lesson}, {title}: {done} of {len(entries)} exercises {are} right."
    foot = "" if done == len(entries) else "A box turns green when the check below its exercise passes in this session."
    lines = [f"{'✓ right' if passed else '○ open ':<8} {label} {name}" for label, name, passed in entries]
    plain = "\n".join([head, *lines])
    boxes = "".join(_box(*entry) for entry in entries)
    page = (
        f"<p><b>{html.escape(head)}</b> {foot}</p>"
        f'<ul aria-label="The exercises of lesson {lesson}" style="display:flex;flex-wrap:wrap;gap:6px;margin:6px 0;'
        f'padding:0;max-width:860px;list-style:none">{boxes}</ul>'
    )
    display({"text/html": page, "text/plain": plain}, raw=True)


def _box(label: str, name: str, passed: bool) -> str:
    # Both colours are set, so that a dark page changes neither.
    colours = "color:#fff;background:#00695c" if passed else "color:#333;background:#e6e6e6"
    state = "✓ right" if passed else "○ open"
    return (
        f'<li style="padding:4px 8px;margin:0;border-radius:4px;line-height:1.35;{colours}">'
        f"<b>{html.escape(label)}</b> {html.escape(name)}<br>{state}</li>"
    )
