"""What a check does to the notebook around it: the progress bar, and a kind word for a missing name."""

import html
from typing import Any

from IPython import get_ipython
from IPython.display import display

from .messages import CheckFailed

_missing: dict[str, str] = {}


def explain_missing_names(lesson: str, labels: dict[str, str]) -> None:
    """From now on, a cell that uses an exercise which was never defined gets a sentence in place of a traceback.

    Only a ``NameError`` about an exercise of the lesson is treated so; every other error shows as it always does.
    """
    _missing.clear()
    _missing.update(labels)
    shell = get_ipython()
    if shell is not None:
        shell.set_custom_exc((NameError,), _on_name_error)


def _on_name_error(shell: Any, kind: type, error: NameError, trace: Any, tb_offset: int | None = None) -> None:
    name = getattr(error, "name", None)
    if name not in _missing:
        # The usual traceback. `showtraceback` reads the error from sys.exc_info, which still holds it.
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        return
    missing = CheckFailed(
        f"{name} (exercise {_missing[name]})",
        "it does not exist yet.",
        cause=f"Run the cell in which you write {name}, then this one. If that cell is gone, take it again from a "
        "fresh copy of the lesson.",
        rung="exists",
    )
    shell._showtraceback(CheckFailed, missing, missing._render_traceback_())


def show_progress(lesson: str, title: str, entries: list[tuple[str, str, bool]]) -> None:
    """Display one row of boxes, an exercise each: (label, name, passed). Text stands beside it for plain terminals."""
    done = sum(passed for _, _, passed in entries)
    head = f"Lesson {lesson}, {title}: {done} of {len(entries)} exercises"
    still = [f"{name} ({label})" for label, name, passed in entries if not passed]
    foot = f"Still open: {', '.join(still)}." if still else "Nothing is open."
    plain = f"{head}\n[{''.join('#' if p else '.' for *_, p in entries)}]\n{foot}"
    boxes = "".join(
        f'<div title="{html.escape(name)}" style="flex:1;padding:6px 4px;border-radius:4px;text-align:center;'
        f'color:{"#fff" if passed else "#444"};background:{"#00695c" if passed else "#dcdcdc"}">'
        f"{'✓ ' if passed else ''}{html.escape(label)}</div>"
        for label, name, passed in entries
    )
    page = (
        f'<div role="img" aria-label="{html.escape(head)}. {html.escape(foot)}"><b>{html.escape(head)}</b>'
        f'<div style="display:flex;gap:4px;margin:6px 0;max-width:720px">{boxes}</div>{html.escape(foot)}</div>'
    )
    display({"text/html": page, "text/plain": plain}, raw=True)
