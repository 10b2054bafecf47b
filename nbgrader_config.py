"""nbgrader's view of this repository. `nbgrader autograde`, the formgrader and the build all read it."""

import os
from pathlib import Path

c = get_config()  # noqa: F821 (nbgrader defines it)
root = Path(__file__).resolve().parent

c.CourseDirectory.course_id = "attention"
c.CourseDirectory.root = str(root)
# Hidden tests of the write-the-test exercises find the known mistakes through this.
os.environ["ATTENTION_COURSE_ROOT"] = str(root)

# What is written by hand, and what is released from it.
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "course"

# Everything that grading produces stands in one folder, which git ignores.
c.CourseDirectory.submitted_directory = "grading/submitted"
c.CourseDirectory.autograded_directory = "grading/autograded"
c.CourseDirectory.feedback_directory = "grading/feedback"
c.CourseDirectory.solution_directory = "grading/solution"
c.CourseDirectory.db_url = f"sqlite:///{root / 'grading' / 'gradebook.db'}"
(root / "grading").mkdir(exist_ok=True)

# Of a lesson's folder only the notebook is released: the text it is written as and the data beside it stay here.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    "[0-9][0-9]_*.py",
    "alternatives.py",
    "cases.py",
    "mistakes.py",
]

# A stub raises one line; the `# TODO` above it says what to write.
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}

# A hang in one cell costs that cell. Lessons run in well under a minute.
c.Execute.timeout = 120
c.Execute.interrupt_on_timeout = True
c.Execute.shutdown_kernel = "immediate"
