"""nbgrader's view of this repository. `nbgrader autograde`, the formgrader and the build all read it."""

import glob
import os
from pathlib import Path

from nbconvert.preprocessors import ClearMetadataPreprocessor, CSSHTMLHeaderPreprocessor
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    GetGrades,
    IgnorePattern,
    LimitOutput,
    SaveAutoGrades,
)

from attention_course.authoring.allowed import only_the_lesson
from attention_course.authoring.generate import GuardedExporter, SealRelease
from attention_course.authoring.run_all import GoOn
from attention_course.grading.intake import before_autograding
from attention_course.grading.names import settle_before_autograding
from attention_course.grading.preprocessors import DropAuthoring, Examine, HideHiddenTests, Rebuild

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

# Of a lesson's folder the notebook that bears its name is released, and nothing else whatever it is called: nbgrader
# takes the folder itself for ignored when it looks for files beside the notebooks. Submissions keep what they carry.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", f"{glob.escape(str(root / 'solutions'))}/./*"]
c.GenerateAssignment.pre_convert_hook = only_the_lesson

# nbgrader's own command writes the same bytes to course/ as `make build`.
c.GenerateAssignment.preprocessors = [*GenerateAssignment.preprocessors.default(), DropAuthoring, GoOn, SealRelease]
# Where somebody worked in course/, that goes to my-work/ before nbgrader deletes the folder.
c.GenerateAssignment.exporter_class = GuardedExporter

# A stub raises one line; the `# TODO` above it says what to write.
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}

# Student code and graded tests never share a process: the examiner takes the place of nbgrader's own execution, for the
# command line and for the formgrader alike. What is graded is rebuilt from the master copy and the student's answers.
c.Autograde.sanitize_preprocessors = [Rebuild]
c.Autograde.autograde_preprocessors = [
    Examine,
    IgnorePattern,
    ClearMetadataPreprocessor,
    LimitOutput,
    SaveAutoGrades,
    AssignLatePenalties,
    CheckCellMetadata,
]
# Before that the gradebook is backed up, and links and oversized files are moved out of the submission.
c.Autograde.pre_convert_hook = before_autograding
# And before nbgrader looks for notebooks at all, each gets the name that it looks for: "Copy of …" is graded too.
settle_before_autograding()
# Feedback shows what a student may see: the message of the check, and no hidden test.
c.GenerateFeedback.preprocessors = [GetGrades, HideHiddenTests, CSSHTMLHeaderPreprocessor]
