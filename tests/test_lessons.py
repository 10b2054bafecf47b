"""Every lesson keeps the rules that make a lesson: anatomy, metadata, figures, links, silence on stderr."""

import ast
import io
import re
import symtable
from itertools import pairwise

import nbformat
import pytest
from conftest import LESSONS, ROOT
from IPython.core.inputtransformer2 import TransformerManager
from markdown_it import MarkdownIt
from matplotlib.image import imread

from attention_course.authoring import cover
from attention_course.authoring.build import title_picture
from attention_course.authoring.lesson import all_lessons
from attention_course.authoring.minutes import STOP_FROM, minutes
from attention_course.authoring.run_all import TAG
from attention_course.check import answers

lessons = pytest.mark.parametrize("lesson", LESSONS, ids=lambda x: x.name)


def info(cell):
    return cell.metadata.get("nbgrader", {})


def code(notebook):
    return [c for c in notebook.cells if c.cell_type == "code"]


def prose(notebook):
    return [c for c in notebook.cells if c.cell_type == "markdown"]


def solution(lesson):
    return nbformat.read(lesson.notebook, as_version=4)


def student(lesson):
    return nbformat.read(ROOT / "course" / lesson.name / f"{lesson.name}.ipynb", as_version=4)


def test_the_lessons_follow_each_other():
    assert [x.number for x in LESSONS] == [f"{i:02d}" for i in range(1, len(LESSONS) + 1)]
    assert len(all_lessons(ROOT)) == len(list((ROOT / "course").iterdir()))


@lessons
def test_each_exercise_has_a_stub_three_hints_and_tests_of_its_own(lesson):
    notebook = lesson.read()
    places = {c.id: i for i, c in enumerate(notebook.cells)}
    for exercise in lesson.exercises:
        cell = notebook.cells[places[exercise.name]]
        assert info(cell)["solution"], exercise.name
        assert not info(cell)["locked"], exercise.name
        for todo, begin in pairwise(line.strip() for line in cell.source.split("\n")):
            if begin == "### BEGIN SOLUTION":
                assert todo.startswith("# TODO: "), (
                    f"{exercise.name}: the line above BEGIN SOLUTION gives the direction"
                )
        written = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", cell.source, re.DOTALL)
        lines = [line for part in written for line in part.split("\n") if line.strip() and line.strip()[0] != "#"]
        assert 1 <= len(lines) <= 12, f"{exercise.name} asks for {len(lines)} lines"
        hints = notebook.cells[places[exercise.name] + 1].source
        assert re.findall(r"<summary>(Hint \d)", hints) == ["Hint 1", "Hint 2", "Hint 3"], exercise.name
        tests = lesson.tests(exercise.name)
        assert tests, exercise.name
        for test in tests:
            assert info(test)["locked"]
            assert 1 <= info(test)["points"] <= 3
            assert places[test.id] > places[exercise.name]
    graded = {c.id for c in code(notebook) if info(c).get("grade")}
    assert graded == {c.id for e in lesson.exercises for c in lesson.tests(e.name)}, "a graded cell without an exercise"
    solved = {c.id for c in code(notebook) if info(c).get("solution")}
    assert solved == {e.name for e in lesson.exercises}, "an exercise that cases.py does not name"


@lessons
def test_the_anatomy(lesson):
    notebook = lesson.read()
    text = "\n".join(c.source for c in prose(notebook))
    title = notebook.cells[0].source
    assert title.startswith(f"# {lesson.number} · ")
    assert "colab-badge" not in text, "a release puts the badges in"
    for row in ("| time |", "| difficulty |", "| builds on |", "attachment:cover.png"):
        assert row in title
    setup, imports = code(notebook)[:2]
    assert (setup.id, imports.id) == ("setup", "imports")
    assert info(setup)["locked"]
    assert setup.source == code(LESSONS[0].read())[0].source, "the setup cell is the same in every lesson"
    assert len(setup.source.split("\n")) <= 12
    assert setup.source.count('ADDRESS, VERSION, COURSE = "", "", "attention_course"') == 1, "a release fills it in"
    assert f'check.start("{lesson.number}")' in imports.source
    assert "check.progress()" in "\n".join(c.source for c in code(notebook))
    assert "plots.interactive(" in "\n".join(c.source for c in code(notebook))
    for heading in ("Spot the bug", "## Questions", "## Recap", "**References**"):
        assert heading in text
    assert text.count("The cat sat on the mat") + sum("The cat sat on the mat" in c.source for c in code(notebook)) > 0
    assert len(re.findall(r"<details><summary><b>\d\.", text)) >= 3


@lessons
def test_what_is_stored_is_the_source_and_carries_no_machine(lesson):
    stored = solution(lesson)
    nbformat.validate(stored)
    # Pictures apart: in their base64 any short word can turn up.
    for cell in stored.cells:
        cell.source = cover.extract(cell.source)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
    assert [c.source for c in stored.cells] == [c.source for c in lesson.read().cells]
    text = nbformat.writes(stored)
    for trace in ("/tmp/", "/home/", "/root/", str(ROOT), "ipykernel_", "0x7"):
        assert trace not in text, trace
    assert "version" not in stored.metadata.language_info


@lessons
def test_nothing_fails_and_nothing_goes_to_stderr(lesson):
    for cell in code(solution(lesson)):
        for output in cell.outputs:
            assert output.output_type != "error", cell.id
            assert output.get("name") != "stderr", cell.id


@lessons
def test_every_figure_has_words(lesson):
    figures = 0
    for cell in code(solution(lesson)):
        for output in cell.outputs:
            if "image/png" not in output.get("data", {}):
                continue
            figures += 1
            alt = output.metadata["image/png"]["alt"]
            assert len(alt.split()) >= 8, cell.id
            assert output.data["text/plain"] == f"Figure: {alt}", "nbval compares the words, as it cannot the picture"
    assert figures >= 3
    for cell in prose(lesson.read()):
        for alt in re.findall(r"!\[(.*?)\]", cell.source):
            assert alt.strip(), f"{cell.id}: a picture without words"


@lessons
def test_the_title_picture_is_the_one_that_the_lesson_draws(lesson):
    drawn = imread(io.BytesIO(title_picture(solution(lesson))), format="png")
    title = student(lesson).cells[0]
    assert "attachments" not in title, "Colab does not show them"
    assert title.source == solution(lesson).cells[0].source
    assert re.search(r"!\[[^\]]{40,}\]\(data:image/png;base64,", title.source), "words for who cannot see it"
    picture = cover.picture_in(title.source)
    assert len(picture) < 40_000
    shown = imread(io.BytesIO(picture), format="png")
    assert abs(shown.shape[0] / shown.shape[1] - drawn.shape[0] / drawn.shape[1]) < 0.01
    assert 300 < shown.shape[1] < 1000
    assert abs(float(shown[..., :3].mean() - drawn[..., :3].mean())) < 0.01
    assert (ROOT / "assets" / f"{lesson.name}.png").read_bytes() == title_picture(solution(lesson))


@lessons
def test_outputs_are_compared_not_ignored(lesson):
    for cell in code(lesson.read()):
        for line in cell.source.split("\n"):
            for marker in ("NBVAL_IGNORE_OUTPUT", "NBVAL_SKIP", "NBVAL_RAISES_EXCEPTION", "PYTEST_VALIDATE"):
                if marker in line:
                    reason = line.split(marker, 1)[1]
                    assert len(reason.split()) >= 4, f"{cell.id}: {marker} needs a reason beside it"
        assert not {"nbval-skip", "nbval-ignore-output", "raises-exception"} & set(cell.metadata.get("tags", []))


@lessons
def test_markdown_is_well_formed(lesson):
    parser = MarkdownIt("commonmark").enable("table")
    for cell in prose(lesson.read()):
        source = cell.source
        for tag in ("details", "summary", "b", "code"):
            opened, closed = len(re.findall(rf"<{tag}>", source)), len(re.findall(rf"</{tag}>", source))
            assert opened == closed, f"{cell.id}: <{tag}> is opened {opened} and closed {closed} times"
        assert source.count("```") % 2 == 0, cell.id
        plain = re.sub(r"```.*?```|`[^`]*`", "", source, flags=re.DOTALL)
        assert plain.count("$$") % 2 == 0, cell.id
        assert plain.replace("$$", "").count("$") % 2 == 0, cell.id
        # Inside <details>, Markdown is read as such only after an empty line.
        for after in re.findall(r"</summary>\n(.*)", source):
            assert after == "", f"{cell.id}: an empty line belongs after </summary>"
        for token in parser.parse(source):
            for child in token.children or []:
                if child.type == "link_open":
                    address = child.attrs["href"]
                    assert address.startswith("https://"), f"{cell.id}: {address}"
                    assert " " not in address
        for table in re.findall(r"(?:^\|.*\n?)+", source, re.MULTILINE):
            rows = [re.sub(r"\\\||\$[^$]*\$", "", row).count("|") for row in table.strip().split("\n")]
            assert len(set(rows)) == 1, f"{cell.id}: the rows of a table differ in length\n{table}"
    assert not re.search(r"[\U0001F300-\U0001FAFF]", "".join(c.source for c in prose(lesson.read()))), "no emoji"
    for cell in prose(lesson.read()):
        words = re.sub(r"`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|!\[|<!", "", cell.source, flags=re.DOTALL)
        assert "!" not in words, f"{cell.id}: no exclamation marks"
        assert not re.search(r"\b[Ss]imply\b", words), f"{cell.id}: 'simply' is not simple for everybody"


@lessons
def test_the_answers_are_numbers_for_every_exercise(lesson):
    stored = answers.exercises(lesson.number)
    assert list(stored) == [e.name for e in lesson.exercises]
    assert [e["label"] for e in stored.values()] == [f"{int(lesson.number)}.{i + 1}" for i in range(len(stored))]
    for name, exercise in stored.items():
        if exercise["kind"] in ("function", "module"):
            dims = exercise["cases"][-1]["dims"]
            assert len(set(dims.values())) == len(dims), f"{name}: two axes of the last case are equally long: {dims}"


@lessons
def test_the_student_opens_a_clean_notebook(lesson):
    notebook = student(lesson)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "jupytext" not in notebook.metadata
    assert [c.id for c in notebook.cells] == [c.id for c in lesson.read().cells]
    for cell in code(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None
        if info(cell).get("solution"):
            assert "# TODO: " in cell.source
            assert re.search(r"^\s+raise NotImplementedError$", cell.source, re.MULTILINE)


# What a learner reads ---------------------------------------------------------------------------------------------

# At 1280 pixels, with the file browser open, JupyterLab 4 shows 107 characters of a line: 846 pixels in the editor and
# 7.83 for each character of Menlo or DejaVu Sans Mono at 13 pixels. A scroll bar takes two of them.
LONGEST = 100


def as_released(cell):
    """The source of a code cell without what nbgrader takes out of it."""
    stub = r"\1raise NotImplementedError"
    source = re.sub(
        r"^([ \t]*)### BEGIN SOLUTION\n.*?### END SOLUTION", stub, cell.source, flags=re.DOTALL | re.MULTILINE
    )
    return re.sub(r"### BEGIN HIDDEN TESTS\n.*?### END HIDDEN TESTS", "", source, flags=re.DOTALL).rstrip()


def is_folded(cell):
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def visible(lesson):
    return [c for c in code(lesson.read()) if not is_folded(c)]


def parsed(cell):
    return ast.parse(TransformerManager().transform_cell(as_released(cell)))


def draws(tree):
    """Does anything in ``tree`` call a function of the course's plots?"""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "plots"
        for node in ast.walk(tree)
    )


def defines(tree):
    symbols = symtable.symtable(ast.unparse(tree), "cell", "exec").get_symbols()
    return {x.get_name() for x in symbols if x.is_assigned() or x.is_imported()}


def uses(cell):
    tree = ast.parse(TransformerManager().transform_cell(cell.source))
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


@lessons
def test_no_line_is_cut_at_1280_pixels(lesson):
    long = {
        f"{cell.id}: {line}"
        for cell in visible(lesson)
        for line in as_released(cell).split("\n")
        if len(line) > LONGEST
    }
    assert not long, f"{len(long)} lines have more than {LONGEST} characters:\n" + "\n".join(sorted(long))


@lessons
def test_a_cell_that_only_draws_is_folded_under_its_title(lesson):
    cells = code(lesson.read())
    for place, cell in enumerate(cells):
        if is_folded(cell):
            title = cell.source.split("\n")[0].removeprefix("# @title ")
            assert 2 <= len(title.split()) <= 16, f"{cell.id}: {title!r} should say in a few words what is drawn"
            assert cell.metadata["cellView"] == "form", "JupyterLab and Colab fold alike"
            asked = info(cell).get("solution") or info(cell).get("grade")
            assert not asked, f"{cell.id}: what a learner writes, or is checked by, is not folded"
        elif draws(tree := parsed(cell)) and not info(cell):
            later = set().union(*(uses(c) for c in cells[place + 1 :]))
            assert defines(tree) & later, f"{cell.id} only draws: begin it with `# @title Some words`\n{cell.source}"


@lessons
def test_little_of_what_a_learner_reads_only_draws(lesson):
    lines = drawn = 0
    for cell in visible(lesson):
        tree = parsed(cell)
        lines += sum(bool(line.strip()) for line in as_released(cell).split("\n"))
        drawn += sum(node.end_lineno - node.lineno + 1 for node in tree.body if draws(node))
    assert drawn <= 0.2 * lines, f"{drawn} of {lines} visible lines of code only draw"


@lessons
def test_the_recap_begins_with_the_progress_row(lesson):
    cells = lesson.read().cells
    (place,) = (i for i, c in enumerate(cells) if c.cell_type == "markdown" and "## Recap" in c.source)
    below = cells[place].source.split("## Recap")[1].strip()
    assert len(below.split("\n\n")) == 1, "the row stands at the top of the recap, below one paragraph at most"
    assert cells[place + 1].cell_type == "code"
    assert cells[place + 1].source == "check.progress()"
    text = " ".join("\n".join(c.source for c in prose(lesson.read())).split())
    assert "Run All Above Selected Cell" in text, "how to run everything above a cell, in JupyterLab"
    assert "Run before" in text, "and in Colab"


@lessons
def test_who_waits_sees_the_courses_own_bar(lesson):
    for cell in code(lesson.read()):
        assert "tqdm" not in cell.source, f"{cell.id}: attention_course.bar prints nothing where outputs are compared"


@lessons
def test_run_all_goes_on_in_the_students_notebook_alone(lesson):
    for theirs, ours in zip(student(lesson).cells, solution(lesson).cells, strict=True):
        wanted = [*ours.metadata.get("tags", []), *([TAG] if ours.cell_type == "code" and ours.id != "setup" else [])]
        assert theirs.metadata.get("tags", []) == wanted, theirs.id


@lessons
def test_the_time_in_the_title_is_what_the_rule_gives(lesson):
    notebook = student(lesson)
    title = notebook.cells[0].source
    needs = minutes(notebook)
    stated = re.search(r"\| time \| (\d+) minutes", title)
    assert stated, "the title's table has a row: | time | N minutes |"
    assert int(stated[1]) == needs
    if needs > STOP_FROM:
        assert re.search(r"\| time \| \d+ minutes(, with a place to stop| in two sittings)", title)
        assert any(
            "**A good place to stop" in c.source or "**End of the first sitting" in c.source for c in prose(notebook)
        )
