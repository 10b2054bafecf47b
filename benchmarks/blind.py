"""How well do the graded cells judge answers that their author has not seen?

    python benchmarks/blind.py FILE...

A file is a percent script with one answer to a cell, written by somebody who has the student notebook and nothing else,
or taken from a class::

    # %% lesson="01" exercise="dot_scores" wrong="the keys are not turned"
    def dot_scores(q, k):
        return q @ k

    # %% lesson="01" exercise="dot_scores" right="einsum"
    def dot_scores(q, k):
        return torch.einsum("bqd,bkd->bqk", q, k)

Each runs in the lesson's own namespace, in this process, without a sandbox: only answers that you trust. Printed are,
by lesson, how many wrong answers are rejected, how many are recognised as a known mistake, how many are recognised or
told exactly how they are off (a relation between the numbers, the axes, the dtype, what is not finite, which line met
which shapes), and how many right answers are accepted; with ``--messages`` every message as well.
"""

import argparse
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path

os.environ |= {"ATTENTION_DEVICE": "cpu", "OMP_NUM_THREADS": "1", "ATTENTION_GRADING": "1"}
os.environ.setdefault("ATTENTION_CHECK_SECONDS", "5")

import jupytext

from attention_course.authoring.judge import Verdict, judge
from attention_course.authoring.lesson import Lesson, all_lessons
from attention_course.cells import run_cell
from attention_course.check import draw

# Rungs whose message is exact by itself: what came, what was expected, in the names of the exercise.
TELLING = {"exists", "type", "shape", "dtype", "device", "changed", "finite", "gradient", "accepts", "rejects"}
LESSONS = {lesson.number: lesson for lesson in all_lessons(Path(__file__).resolve().parents[1])}


def answers(path: Path):
    """The answers of a file: (lesson, exercise, whether it is meant to be right, its author's words, its source)."""
    for place, cell in enumerate(jupytext.read(path, fmt="py:percent").cells):
        about = cell.metadata
        if cell.cell_type != "code" or "exercise" not in about:
            continue
        lesson = LESSONS.get(str(about.get("lesson", "")))
        if lesson is None or about["exercise"] not in {e.name for e in lesson.exercises}:
            sys.exit(
                f"{path}, cell {place + 1}: there is no exercise {about['exercise']!r} in lesson {about.get('lesson')}."
            )
        if ("right" in about) == ("wrong" in about):
            sys.exit(f'{path}, cell {place + 1}: its header needs either right="..." or wrong="...".')
        right = "right" in about
        yield lesson, about["exercise"], right, about["right" if right else "wrong"], cell.source


def verdict(lesson: Lesson, exercise: str, source: str, names: dict) -> Verdict:
    """What the graded cells say of one answer; one that cannot even be defined is rejected by that."""
    names = dict(names)
    try:
        run_cell(f"answer-{exercise}", source, names)
    except Exception as error:
        return Verdict([error])
    return judge(lesson.tests(exercise), lesson.number, names, [e.name for e in lesson.exercises])


def share(part: int, whole: int) -> str:
    """``97.1 % (34/35)``, or a dash where there is nothing to count."""
    return f"{100 * part / whole:5.1f} % ({part}/{whole})" if whole else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--messages", action="store_true", help="print what each answer's author reads")
    options = parser.parse_args()
    draw.enabled = False
    counts: dict[str, Counter] = defaultdict(Counter)
    namespaces: dict[str, dict] = {}
    surprises = []
    for path in options.files:
        for lesson, exercise, right, words, source in answers(path):
            names = namespaces.setdefault(lesson.number, lesson.namespace())
            found, count = verdict(lesson, exercise, source, names), counts[lesson.number]
            kind = "right" if right else "wrong"
            count[kind] += 1
            count[f"{kind} accepted"] += found.accepted
            count["known"] += not right and found.known
            told = found.known or found.related or found.rung in TELLING or found.located
            count["told"] += not right and told
            count[f"rung {found.rung}"] += not right and not found.accepted and not told
            if found.accepted != right:
                said = f"refused: {found.raised[0]}" if found.raised else "accepted"
                surprises.append(f"{lesson.number} {exercise}, {kind} ({words}), is {said}")
            if options.messages and not right:
                print(f"--- {lesson.number} {exercise}: {words}\n{found.raised[0] if found.raised else '(accepted)'}\n")
    print("lesson  wrong rejected        recognised            recognised or told   right accepted")
    total = sum(counts.values(), Counter())
    for name, c in [*sorted(counts.items()), ("all", total)]:
        rejected = c["wrong"] - c["wrong accepted"]
        cells = (share(rejected, c["wrong"]), share(c["known"], c["wrong"]), share(c["told"], c["wrong"]))
        print(f"{name:6}  {cells[0]:20}  {cells[1]:20}  {cells[2]:19}  {share(c['right accepted'], c['right'])}")
    rungs = {key.removeprefix("rung "): n for key, n in total.items() if key.startswith("rung ") and n}
    print(
        "what the others were told by: "
        + (", ".join(f"{rung or 'no message'} {n}" for rung, n in sorted(rungs.items())) or "–")
    )
    print(*surprises, sep="\n")


if __name__ == "__main__":
    main()
