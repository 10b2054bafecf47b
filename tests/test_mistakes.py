"""The graders reject every known mistake, name it, and accept every other right answer."""

import pytest
from conftest import LESSONS, judge, namespace

from attention_course.cells import run_cell
from attention_course.check import CheckFailed, answers, values

EXERCISES = [(lesson, e) for lesson in LESSONS for e in lesson.exercises]
MISTAKES = [(lesson, m) for lesson in LESSONS for m in lesson.mistakes]
ALTERNATIVES = [(lesson, a) for lesson in LESSONS for a in lesson.alternatives]


def _id(value):
    return f"{value.exercise}-{value.name}" if hasattr(value, "exercise") else value.name


@pytest.mark.parametrize(("lesson", "mistake"), MISTAKES, ids=_id)
def test_a_mistake_is_rejected_and_named(lesson, mistake):
    raised = judge(lesson, mistake.exercise, mistake.implementation)
    assert raised, f"{mistake.name} gets full marks"
    shown = " ".join(" ".join(str(e).split()) for e in raised if isinstance(e, CheckFailed))
    for wanted in (
        (mistake.says,) if mistake.says else ("The same", "comes of", mistake.gives.rstrip(","), mistake.hint)
    ):
        assert " ".join(wanted.split()) in shown, f"the author of {mistake.name} reads: {shown}"


@pytest.mark.parametrize(("lesson", "alternative"), ALTERNATIVES, ids=_id)
def test_an_alternative_is_accepted(lesson, alternative):
    assert judge(lesson, alternative.exercise, alternative.implementation) == []


@pytest.mark.parametrize(("lesson", "exercise"), EXERCISES, ids=_id)
def test_the_solution_is_accepted(lesson, exercise):
    assert judge(lesson, exercise.name, namespace(lesson.name)[exercise.name]) == []


@pytest.mark.parametrize(("lesson", "exercise"), EXERCISES, ids=_id)
def test_there_are_enough_of_both(lesson, exercise):
    assert len([m for m in lesson.mistakes if m.exercise == exercise.name]) >= 6
    assert len([a for a in lesson.alternatives if a.exercise == exercise.name]) >= 3


@pytest.mark.parametrize(("lesson", "exercise"), EXERCISES, ids=_id)
def test_hidden_tests_alone_reject_the_constant_answer(lesson, exercise):
    """Numbers can be copied out of the package; a function that only knows those must fail the hidden part."""
    if exercise.kind != "function":
        pytest.skip("judged by rules, not by stored numbers")
    spec = answers.load(lesson.number, exercise.name)

    def parrot(*inputs):
        for case in spec.cases:
            same = len(inputs) == len(case.args)
            if same and all(values.close(x, y, 1e-9) for x, y in zip(inputs, case.args.values(), strict=True)):
                return case.outcome.value
        return spec.cases[-1].outcome.value

    names = dict(namespace(lesson.name)) | {exercise.name: parrot}
    hidden = []
    for cell in lesson.tests(exercise.name):
        _, _, after = cell.source.partition("### BEGIN HIDDEN TESTS")
        if after:
            cell.source = after
            hidden.append(cell)
    assert hidden, "no graded cell of this exercise has hidden tests"
    assert any(_raises(cell, names) for cell in hidden)


def _raises(cell, names):
    try:
        run_cell(cell.id, cell.source, names)
    except Exception:
        return True
    return False
