"""A lesson as a student runs it: in a real kernel, from the student notebook, with the mistakes students make."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import LESSONS, ROOT
from nbclient import NotebookClient


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
    assert "This is exactly what comes of turning the weights around" in " ".join(
        error(cells["test-weighted_context"]).split()
    )


def test_a_stub_says_that_it_is_not_written(cells):
    assert "scaled_dot_scores (exercise 1.4): not written yet." in error(cells["test-scaled_dot_scores"])


def test_a_missing_exercise_gets_a_sentence(cells):
    text = " ".join(error(cells["test-score_variance"]).split())
    assert text.startswith("score_variance (exercise 1.3): it does not exist yet.")
    assert "Run the cell in which you write score_variance" in text


def test_any_other_missing_name_keeps_its_traceback():
    cells = run({"weighted_context": "undefined_name + 1"}, upto="weighted_context")
    assert "undefined_name" in error(cells["weighted_context"])
    assert "NameError" in error(cells["weighted_context"])


def test_nbval_notices_a_changed_output(tmp_path):
    """The proof on every change compares outputs: change one stored word, one alternative text, and it fails."""
    notebook = nbformat.read(LESSONS[0].notebook, as_version=4)
    ids = [c.id for c in notebook.cells]
    notebook.cells = notebook.cells[: ids.index("01-015") + 1]
    changed = 0
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if cell.id == "test-weighted_context":
                output.text = output.text.replace("is right", "is wrong")
                changed += 1
            if "image/png" in output.get("data", {}) and cell.id == "01-015":
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
