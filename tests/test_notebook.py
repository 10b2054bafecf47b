"""A lesson as a student runs it: in a real kernel, from the student notebook, with the mistakes students make."""

import copy
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import LESSONS, ROOT
from IPython.testing.globalipapp import start_ipython
from IPython.utils.capture import capture_output
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from attention_course import check
from attention_course.authoring.run_all import TAG, GoOn
from attention_course.check import answers


def run(
    sources: dict[str, str], upto: str, lesson: int = 0, drop: tuple[str, ...] = ()
) -> dict[str, nbformat.NotebookNode]:
    """Fill ``sources`` into the student's notebook and run it as far as the cell ``upto``, past errors."""
    name = LESSONS[lesson].name
    notebook = nbformat.read(ROOT / "course" / name / f"{name}.ipynb", as_version=4)
    ids = [c.id for c in notebook.cells]
    notebook.cells = [c for c in notebook.cells[: ids.index(upto) + 1] if c.id not in drop]
    for cell in notebook.cells:
        cell.source = sources.get(cell.id, cell.source)
    NotebookClient(
        notebook, kernel_name="attention-cpu", allow_errors=True, timeout=120, coalesce_streams=True
    ).execute()
    return {c.id: c for c in notebook.cells if c.cell_type == "code"}


def error(cell) -> str:
    (found,) = (o for o in cell.outputs if o.output_type == "error")
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(found.traceback))


@pytest.fixture(scope="module")
def cells():
    return run(
        {
            "weighted_context": "def weighted_context(weights, v):\n    return weights.transpose(1, 2) @ v",
            "dot_scores": "def dot_scores(q, k):\n    return q @ k.transpose(-2, -1) / 2",
        },
        upto="test-scaled_dot_scores",
        drop=("score_variance",),
    )


def test_a_failed_check_is_one_message_and_a_picture(cells):
    cell = cells["test-dot_scores"]
    text = error(cell)
    assert text.startswith("dot_scores (exercise 1.2): not the right numbers yet")
    assert "Traceback" not in text
    assert "File" not in text
    (picture,) = (o for o in cell.outputs if "image/png" in o.get("data", {}))
    assert picture.metadata["image/png"]["alt"].startswith("dot_scores (exercise 1.2)")
    assert not [o for o in cell.outputs if o.get("name") == "stderr"]


def test_a_known_mistake_is_named(cells):
    assert "comes of turning the weights around" in " ".join(error(cells["test-weighted_context"]).split())


def test_a_stub_says_that_it_is_not_written(cells):
    assert "scaled_dot_scores (exercise 1.4): not written yet." in error(cells["test-scaled_dot_scores"])


def test_a_missing_exercise_gets_a_sentence(cells):
    text = " ".join(error(cells["test-score_variance"]).split())
    assert text.startswith("This cell uses `score_variance`, exercise 1.3, which does not exist yet: write it in its")


def execute(*sources: str, kernel: str = "python3") -> list[str]:
    """What each cell says, errors first, in the live kernel of a lesson whose setup cell has run."""
    setup = 'import torch\nfrom attention_course import check, plots\ncheck.start("01")'
    notebook = new_notebook(cells=[new_code_cell(source) for source in (setup, *sources)])
    NotebookClient(notebook, kernel_name=kernel, allow_errors=True, timeout=120, coalesce_streams=True).execute()
    said = []
    for cell in notebook.cells[1:]:
        assert not [o for o in cell.outputs if o.get("name") == "stderr"]
        errors = [
            re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(o.traceback)) for o in cell.outputs if o.output_type == "error"
        ]
        said.append(" ".join("".join([*errors, *(o.get("text", "") for o in cell.outputs)]).split()))
    return said


STUBS = """
def dot_scores(q, k):
    raise NotImplementedError

class SelfAttention(torch.nn.Module):
    def forward(self, x):
        raise NotImplementedError

def scaled_dot_scores(q, k):
    return dot_scores(q, k) / 2
"""


def test_a_cell_says_which_exercise_it_waits_for():
    direct, layer, through_another, in_a_function, a_class, needs, needs_more, mended, then = execute(
        STUBS + "\ndot_scores(1, 2)",
        "maps = [SelfAttention()(0)]",
        "scaled_dot_scores(1, 2)",
        "def draw():\n    return [their_weights(q) for q in range(3)]\n\ndraw()",
        "class Mine(additive_scores):\n    pass",
        "if maps:\n    import math\n    more = 1",
        "print(more)",
        "def dot_scores(q, k):\n    return q * k",
        "scaled_dot_scores(1, 2)",
    )
    assert direct == "This cell uses `dot_scores`, exercise 1.2, not written yet."
    assert layer == "This cell uses `SelfAttention`, exercise 1.7, not written yet."
    assert through_another == direct, "the first one that is not written, not the one that uses it"
    missing = "which does not exist yet: write it in its cell and run that cell."
    assert in_a_function == f"This cell uses `their_weights`, exercise 1.8, {missing}"
    assert a_class == f"This cell uses `additive_scores`, exercise 1.6, {missing}"
    because = "stopped at `SelfAttention`, exercise 1.7. Once that is written, run the cell that makes"
    assert needs == f"This cell uses `maps`, and the cell that makes it {because} `maps` again."
    assert needs_more == f"This cell uses `more`, and the cell that makes it {because} `more` again."
    assert mended == ""
    assert then == "", "nothing is left of the sentence"


def test_a_folded_cell_says_that_what_it_draws_is_half_made():
    draw = "# @title The scores\nplots.bars({'a': parts[0]}, labels=['x'], ylabel='y', title='t', alt='words')"
    made, folded, open_cell, rest, other, mended, drawn = execute(
        STUBS + "\nkeep = [[1]]\nparts = []\nfor q in range(3):\n    parts.append([dot_scores(q, 1)])",
        draw,
        draw.split("\n")[1],
        "# @title Another\n1 / 0",
        "# @title Another\nkeep[0] / 0",
        "parts = [[1]]",
        draw,
    )
    assert made == "This cell uses `dot_scores`, exercise 1.2, not written yet."
    assert folded.startswith("This cell uses `parts`, and the cell that makes it stopped at `dot_scores`, exercise 1.2")
    assert "Traceback" not in folded
    assert "Traceback (most recent call last)" in open_cell, "a learner's own line may fail for another reason"
    assert "Traceback (most recent call last)" in rest, "nothing that it uses is half made"
    assert other.startswith("This cell uses `keep`"), "and this is so, whatever else is wrong"
    assert mended == ""
    assert drawn == "", "nothing is left of the sentence"


def test_any_other_error_keeps_its_traceback():
    own, helper, words, local, missing, inner = execute(
        "undefined_name + 1",
        "def helper():\n    raise NotImplementedError\n\nhelper()",
        "def dot_scores(q, k):\n    raise NotImplementedError('masks')\n\ndot_scores(1, 2)",
        "def dot_scores(q, k):\n    dot_scores(q, k)\n    dot_scores = 1\n\ndot_scores(1, 2)",
        "class Empty(torch.nn.Module):\n    pass\n\nEmpty()(1)",
        "def dot_scores(q, k):\n    return qq\n\ndot_scores(1, 2)",
    )
    for said, kind, what in (
        (own, "NameError", "undefined_name"),
        (helper, "NotImplementedError", "helper()"),
        (words, "NotImplementedError", "masks"),
        (local, "UnboundLocalError", "dot_scores = 1"),
        (missing, "NotImplementedError", 'missing the required "forward" function'),
        (inner, "NameError", "return qq"),
    ):
        assert kind in said
        assert what in said
        assert "Traceback (most recent call last)" in said
        assert "exercise" not in said


def test_a_grader_sees_an_error():
    notebook = new_notebook(
        cells=[new_code_cell('from attention_course import check\ncheck.start("01")\ndot_scores(1)')]
    )
    with pytest.raises(CellExecutionError, match="This cell uses `dot_scores`"):
        NotebookClient(notebook, kernel_name="attention-cpu", timeout=120).execute()
    assert [o.ename for o in notebook.cells[0].outputs if o.output_type == "error"] == ["NotWrittenYet"]


SLIDER = """
import ipywidgets
made, original = [], ipywidgets.interactive
ipywidgets.interactive = lambda *args, **kwargs: made.append(original(*args, **kwargs)) or made[-1]

def draw(value):
    print("drawn", dot_scores(value, 10))

plots.interactive(draw, name="n", options=[1, 2, 3], still=lambda: None)
"""
SHOWN = """
print([o.get("text") or "\\n".join(o["traceback"]) for o in made[0].out.outputs])
"""


def test_a_slider_says_which_exercise_it_waits_for(monkeypatch):
    monkeypatch.delenv("ATTENTION_STATIC_FIGURES", raising=False)
    move = "made[0].children[0].value = {}"
    stub, mended = "def dot_scores(q, k):\n    raise NotImplementedError", "def dot_scores(q, k):\n    return q * k"
    wrong = "def dot_scores(q, k):\n    return undefined_name"
    before, _, missing, _, _, not_written, _, _, drawn, _, _, failed = execute(
        SLIDER, "", SHOWN,
        stub, move.format(3), SHOWN,
        mended, move.format(1), SHOWN,
        wrong, move.format(2), SHOWN,
    )  # fmt: skip
    assert before == "", "the cell itself has no error: the sentence stands in the slider's output"
    assert missing == (
        "['This figure uses `dot_scores`, exercise 1.2, which does not exist yet: write it in its\\ncell and run that "
        "cell. Once that is done, move the slider.']"
    )
    assert not_written == (
        "['This figure uses `dot_scores`, exercise 1.2, not written yet. Once that is done, move\\nthe slider.']"
    )
    assert drawn == "['drawn 10\\n']"
    assert "undefined_name" in failed
    assert "Traceback (most recent call last)" in failed


def row() -> tuple[str, str]:
    with capture_output() as captured:
        check.progress()
    (output,) = captured.outputs
    assert captured.stdout == captured.stderr == ""
    return output.data["text/html"], output.data["text/plain"]


def test_the_progress_row_can_be_called_at_any_time_and_says_all_in_words(capsys):
    start_ipython()
    check.start("01")
    for passed in (0, 1, 10):
        for name in list(answers.exercises("01"))[:passed]:
            check._passed["01"].add(name)
        page, plain = row()
        assert (page, plain) == row(), "it can be called again"
        are = "is" if passed == 1 else "are"
        assert f"Lesson 01, attention scoring: {passed} of 10 exercises {are} right." in page
        assert plain.split("\n")[0] == f"Lesson 01, attention scoring: {passed} of 10 exercises {are} right."
        boxes = [re.sub("<.*?>", " ", box).split() for box in re.findall("<li.*?</li>", page)]
        assert boxes[0] == ["1.1", "weighted_context", *(["✓", "right"] if passed else ["○", "open"])]
        assert boxes[9] == ["1.10", "repaired_weights", *(["✓", "right"] if passed == 10 else ["○", "open"])]
        assert plain.count("✓ right") == page.count("✓ right") == passed
        assert plain.count("○ open") == page.count("○ open") == 10 - passed
        assert ("turns green" in page) == (passed < 10)


def test_the_progress_row_can_be_read_on_a_dark_page():
    start_ipython()
    check.start("01")
    check._passed["01"].add("dot_scores")
    page, _ = row()
    pairs = re.findall(r"color:(#\w+);background:(#\w+)", page)
    assert len(pairs) == 10, "each box sets both its colours, and takes none from the page"
    for colours in set(pairs):
        one, two = sorted(map(luminance, colours))
        assert (two + 0.05) / (one + 0.05) > 4.5
    outside = re.sub("<li.*?</li>", "", page)
    assert "color" not in outside, "what stands outside the boxes has the page's own colours"


def luminance(colour: str) -> float:
    """Relative luminance, as the Web Content Accessibility Guidelines 2 define it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * x for x in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_run_all_goes_on_in_a_students_notebook_alone():
    lesson = LESSONS[0]
    released, _ = GoOn().preprocess(lesson.read(), {})
    for cell, before in zip(released.cells, lesson.read().cells, strict=True):
        tags = cell.metadata.get("tags", [])
        assert tags.count(TAG) == (cell.cell_type == "code" and cell.id != "setup"), cell.id
        assert TAG not in before.metadata.get("tags", [])
        assert [x for x in tags if x != TAG] == before.metadata.get("tags", [])
    assert GoOn().preprocess(copy.deepcopy(released), {})[0] == released


def test_nbval_notices_a_changed_output(tmp_path):
    """The proof on every change compares outputs: change one stored word, one alternative text, and it fails."""
    notebook = nbformat.read(LESSONS[0].notebook, as_version=4)
    ids = [c.id for c in notebook.cells]
    texts = {c.id: str([o.get("data", {}).get("text/plain") for o in c.get("outputs", [])]) for c in notebook.cells}
    figure = next(name for name, text in texts.items() if "diagonal" in text)
    notebook.cells = notebook.cells[: ids.index(figure) + 1]
    changed = 0
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if cell.id == "test-weighted_context":
                output.text = output.text.replace("is right", "is wrong")
                changed += 1
            if "image/png" in output.get("data", {}) and cell.id == figure:
                output.data["text/plain"] = output.data["text/plain"].replace("diagonal", "edge")
                changed += 1
    assert changed == 2
    path = tmp_path / "changed.ipynb"
    nbformat.write(notebook, path)
    said = subprocess.run(
        [
            sys.executable, "-m", "pytest", "--nbval", "--nbval-kernel-name", "attention-cpu", "-q",
            "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path), str(path),
        ],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert said.returncode == 1, said.stdout + said.stderr
    assert "2 failed" in said.stdout, said.stdout[-1500:]


def test_the_kernels_are_in_the_virtual_environment_alone():
    import json

    for name, wanted in (("attention-cpu", "cpu"), ("attention-gpu", "cuda")):
        spec = Path(sys.prefix, "share", "jupyter", "kernels", name, "kernel.json")
        content = json.loads(spec.read_text())
        assert content["env"]["ATTENTION_DEVICE"] == wanted
        assert not Path.home().joinpath(".local/share/jupyter/kernels", name).exists()
