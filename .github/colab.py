"""The student's side where Colab runs it. CI calls this with Colab's versions installed.

``run [LESSON ...]`` executes each student notebook with the solutions typed in, every cell of the lesson, and compares
what it prints with what the solution notebook has stored. ``added BEFORE AFTER`` compares two lists of ``pip freeze``.
"""

import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
# sacrebleu and what it needs; Colab has the last three already.
MAY_COME = {"attention-course", "sacrebleu", "portalocker", "colorama", "lxml", "regex", "tabulate"}
PATIENCE = 900  # seconds for one cell, as in the tests


def solved(name: str) -> tuple[nbformat.NotebookNode, nbformat.NotebookNode]:
    """A lesson's student notebook with the solutions in the place of the stubs, and the solution notebook."""
    student, solution = (
        nbformat.read(ROOT / folder / name / f"{name}.ipynb", as_version=4) for folder in ("course", "solutions")
    )
    answers = {c.id: c.source for c in solution.cells if c.metadata.get("nbgrader", {}).get("solution")}
    for cell in student.cells:
        cell.source = answers.get(cell.id, cell.source)
    return student, solution


def shown(cell: nbformat.NotebookNode) -> list[str]:
    """What a cell printed or showed, in words; of a picture its alternative text."""
    texts: list[str] = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            texts.append(f"{output.name}: {output.text}")
        elif output.output_type == "error":
            texts.append(f"{output.ename}: {output.evalue}")
        else:
            texts.append(output.get("data", {}).get("text/plain", ""))
    return texts


def run(names: list[str]) -> int:
    """Execute the lessons. Returns how many cells print something else than the solution notebook has stored."""
    os.environ |= {"ATTENTION_DEVICE": "cpu", "ATTENTION_STATIC_FIGURES": "1", "OMP_NUM_THREADS": "1"}
    differing = 0
    for name in names:
        student, solution = solved(name)
        began = time.perf_counter()
        settings = {"kernel_name": "python3", "timeout": PATIENCE, "allow_errors": True, "coalesce_streams": True}
        NotebookClient(student, **settings).execute()
        stored = {c.id: c for c in solution.cells}
        compared = 0
        for cell in student.cells:
            if cell.cell_type != "code":
                continue
            compared += 1
            if shown(cell) != shown(stored[cell.id]):
                differing += 1
                print(f"{name}, cell {cell.id}:\n  here   {shown(cell)}\n  stored {shown(stored[cell.id])}")
        print(f"{name}: {compared} cells compared, {time.perf_counter() - began:.0f} s", flush=True)
    print(f"{differing} cells differ.")
    return differing


def added(before: Path, after: Path) -> int:
    """Say what an installation brought. Returns how many packages it replaced or should not have brought."""
    have, now = set(before.read_text().split("\n")), set(after.read_text().split("\n"))
    gone = have - now
    new = {line.split("==")[0].split(" @ ")[0].lower() for line in now - have if line}
    print(f"added: {', '.join(sorted(new)) or 'nothing'}; replaced or removed: {', '.join(sorted(gone)) or 'nothing'}")
    return len(gone) + len(new - MAY_COME)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "added":
        sys.exit(bool(added(Path(rest[0]), Path(rest[1]))))
    lessons = sorted(p.name for p in (ROOT / "course").iterdir() if p.is_dir() and (not rest or p.name[:2] in rest))
    sys.exit(bool(run(lessons)))
