"""The progress row that a lesson shows."""

import html

from IPython.display import display


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
