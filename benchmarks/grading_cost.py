"""What the examiner and the sandbox cost: a class graded by them, and by nbgrader's own execution, in one run.

    python benchmarks/grading_cost.py [--lesson 01_attention_scoring] [--students 6]

Prints seconds per submission for plain nbgrader (student code and tests in one open process), for the examiner outside
the sandbox and inside, and their ratios to plain nbgrader. The three take turns, so that a busy machine
slows all of them alike.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLAIN = """
from nbgrader.preprocessors import *
c.Autograde.sanitize_preprocessors = [
    ClearOutput, DeduplicateIds, OverwriteKernelspec, OverwriteCells, CheckCellMetadata
]
c.Autograde.autograde_preprocessors = [Execute, LimitOutput, SaveAutoGrades, AssignLatePenalties, CheckCellMetadata]
"""
WAYS = {
    "plain nbgrader": ["--config=plain_config.py"],
    "examiner, no sandbox": ["--Examine.sandboxed=False"],
    "examiner, sandboxed": [],
}


def nbgrader(folder: Path, *args: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "ATTENTION_STATIC_FIGURES": "1"}
    subprocess.run(
        [sys.executable, "-m", "nbgrader", *args], cwd=folder, env=environment, capture_output=True, check=True
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lesson", default="01_attention_scoring")
    parser.add_argument("--students", type=int, default=6)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "nbgrader_config.py", folder)
        (folder / "plain_config.py").write_text(
            (ROOT / "nbgrader_config.py").read_text(encoding="utf-8") + PLAIN, encoding="utf-8"
        )
        source = folder / "solutions" / wanted.lesson
        shutil.copytree(ROOT / "solutions" / wanted.lesson, source, ignore=shutil.ignore_patterns("__pycache__"))
        nbgrader(folder, "generate_assignment", wanted.lesson)
        taken: dict[str, list[float]] = {way: [] for way in WAYS}
        for number in range(wanted.students + 1):
            for way, options in WAYS.items():
                student = f"{way.replace(' ', '_').replace(',', '')}_{number}"
                target = folder / "grading" / "submitted" / student / wanted.lesson
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.py"))
                began = time.monotonic()
                nbgrader(folder, "autograde", wanted.lesson, f"--student={student}", *options)
                if number:  # the first of each warms the disk's cache
                    taken[way].append(time.monotonic() - began)
    base = statistics.median(taken["plain nbgrader"])
    print(f"{wanted.lesson}, median of {wanted.students} submissions, one command each")
    for way, seconds in taken.items():
        middle = statistics.median(seconds)
        print(f"  {way:22} {middle:6.2f} s   {middle / base:5.2f} x")


if __name__ == "__main__":
    main()
