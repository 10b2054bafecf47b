"""A bar shows while somebody waits, on stdout alone, and leaves no trace where outputs are compared."""

import io
import sys

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from attention_course import plots
from attention_course.bar import bar

LOOPS = """
from attention_course.bar import bar
for epoch in bar(range(3), "training"):
    for batch in bar([1, 2], "inside"):
        pass
for epoch in bar(range(3), "stopped early"):
    if epoch == 2:
        break
print("end")
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_printed_where_figures_are_static(monkeypatch, capsys):
    monkeypatch.setenv(plots.STATIC, "1")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert list(bar(range(3), "training")) == [0, 1, 2]
    assert sys.stdout.getvalue() == ""
    assert capsys.readouterr() == ("", "")


def test_nothing_is_printed_into_a_file(monkeypatch, capsys):
    monkeypatch.delenv(plots.STATIC, raising=False)
    assert list(bar(["a", "b"], "training")) == ["a", "b"]
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_the_time_left_and_one_line_stays(monkeypatch, capsys):
    monkeypatch.delenv(plots.STATIC, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", Terminal())
    exec(LOOPS, {})
    said = sys.stdout.getvalue()
    assert "training |" in said
    assert max(len(part) for line in said.split("\n") for part in line.split("\r")) < 60
    assert "0 of 3, time left ?" in said
    assert "inside" not in said, "the outer bar knows the time left"
    lines = [line.split("\r")[-1].rstrip() for line in said.split("\n")]
    assert lines == ["training: 3 of 3 in 00:00", "stopped early: 2 of 3 in 00:00", "end", ""]
    assert capsys.readouterr().err == ""


def test_a_bar_needs_to_know_how_many_there_are(monkeypatch):
    monkeypatch.setenv(plots.STATIC, "1")
    with pytest.raises(TypeError, match="not a generator"):
        bar((x for x in "ab"), "training")


@pytest.mark.parametrize("static", [True, False])
def test_in_a_kernel(static, monkeypatch):
    (monkeypatch.setenv if static else monkeypatch.delenv)(plots.STATIC, *(["1"] if static else [False]))
    broken = "for each in bar(range(2), 'broken'):\n    1 / 0"
    cells = [new_code_cell(source) for source in (LOOPS, broken, LOOPS)]
    notebook = new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=60).execute()
    assert not [o for c in cells for o in c.outputs if o.get("name") == "stderr"]
    for cell in cells[0], cells[2]:  # a bar that an error broke off hides none below it
        said = "".join(o.text for o in cell.outputs)
        assert (said == "end\n") if static else ("training |" in said and "training: 3 of 3" in said)
