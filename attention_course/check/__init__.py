"""Is my answer right, and if not, which mistake is it?

In a lesson::

    check.start("01")                          # in the setup cell
    check.exercise("dot_scores", dot_scores)   # after an exercise
    check.progress()                           # at the end

A check that passes prints what was shown to hold. One that fails raises :class:`CheckFailed`, which Jupyter shows as
one short message. The functions below ``progress`` are for graded tests: they ask about a learner's object what a test
must not look up in it directly, so that the same test runs where that object lives in another process.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from . import answers, notebook, observe, unwritten, values
from .answers import UnknownExercise
from .ladder import Climb
from .messages import WIDTH, CheckFailed, failed_call, numbers
from .observe import kind

__all__ = [
    "CheckFailed",
    "UnknownExercise",
    "counterexample",
    "exercise",
    "gradients",
    "parameters",
    "passed",
    "progress",
    "rejects",
    "source_uses",
    "start",
    "test_of",
    "unchanged",
]

_RETURN_THEM = "End in a `return` line with the inputs in their order, separated by commas, each a torch.tensor(...)."
_lesson = ""
_passed: dict[str, set[str]] = {}


def start(lesson: str) -> None:
    """Open a lesson: the checks that follow belong to it. Prints one line.

    Raises:
        UnknownExercise: if the installed package has no answers for the lesson.
    """
    global _lesson
    names = list(answers.exercises(lesson))
    _lesson = lesson
    _passed[lesson] = set()
    observe.given = set(answers.given(lesson))
    unwritten.explain(_labels())
    print(f"Lesson {lesson}, {answers.title(lesson)}: {len(names)} exercises. The checks are ready.")


def exercise(name: str, attempt: Any) -> None:
    """Check the learner's ``attempt`` (a function or a module class) at the exercise ``name`` of the current lesson.

    Prints what was shown to hold.

    Raises:
        CheckFailed: with one short message: what was observed, what was expected, the likely cause.
    """
    spec = answers.load(_current(), name)
    shown = Climb(spec, attempt, _unfinished_before(name), _labels()).run()
    _pass(name, spec.label, shown)


def counterexample(
    name: str, find: Callable[[], Any], *, wrong: Callable, right: Callable, axes: tuple[str, ...]
) -> None:
    """Check that ``find()`` returns inputs on which ``wrong`` and ``right`` disagree.

    Args:
        name: the exercise.
        find: the learner's function without parameters; it returns the inputs as a tuple.
        wrong: the implementation with the bug.
        right: one without it. It should not be the learner's own: one mistake would then cost two exercises.
        axes: the axes of each input, such as ``("B Tq d", "B Tk d")``.

    Raises:
        CheckFailed: if the inputs do not fit the functions, or both give the same on them.
    """
    label, title = _titles(name)

    def stop(headline: str, **parts: str) -> None:
        raise CheckFailed(title, headline, rung="value", **parts)

    found = observe.call(find, {}, gradients=False)
    _stop_unless_it_ran(found, title)
    inputs = found.value
    count = {1: "one tensor", 2: "two tensors", 3: "three tensors"}[len(axes)]
    if not isinstance(inputs, tuple | list) or len(inputs) != len(axes):
        stop(f"it should return {count} as a tuple.", observed=f"it returned {kind(inputs)}", cause=_RETURN_THEM)
    for place, (value, names) in enumerate(zip(inputs, axes, strict=True)):
        which = ("first", "second", "third")[place]
        if not isinstance(value, torch.Tensor):
            stop(f"it should return {count} as a tuple.", observed=f"the {which} is {kind(value)}", cause=_RETURN_THEM)
        if value.ndim != len(names.split()):
            shape = tuple(value.shape)
            stop(
                f"the {which} tensor should have the axes ({', '.join(names.split())}).",
                observed=f"its shape is {shape}",
            )
    if sum(x.numel() for x in inputs) > 100_000 or max(max(x.shape, default=0) for x in inputs) > 1000:
        stop(
            "the inputs are larger than a counterexample has to be.",
            observed=" and ".join(str(tuple(x.shape)) for x in inputs),
            cause="A few numbers are enough to show a bug, and can be looked at.",
        )
    named = {f"input {i}": x for i, x in enumerate(inputs)}
    good = observe.call(right, named, gradients=False)
    if good.failure:
        stop(
            "the right implementation cannot take these inputs.",
            observed=good.failure.message.split("\n")[0],
            cause="A counterexample is a legal input. Look at the shapes, the dtypes, and the line above.",
        )
    array = values.as_array(good.value)
    if array is None or array.size == 0 or not torch.isfinite(good.value).all():
        stop(
            "the right implementation has no finite result on these inputs.",
            cause="A counterexample is an ordinary input with a clear right answer: no empty axis, no inf, no NaN.",
        )
    bad = observe.call(wrong, named, gradients=False)
    if not bad.failure and values.close(bad.value, good.value, 1e-3):
        same = numbers(good.value)
        stop(
            "both implementations give the same on these inputs.",
            observed=f"both give {same}" if same else "",
            cause="Your input does not reach the bug. Which shape or value did the author not think of?",
        )
    _pass(name, label, ["the inputs are legal", "the buggy implementation goes wrong on them"])


_WHY_A_TEST_REFUSES = {
    True: "Ask only for what every right implementation does, on inputs that the exercise allows. Compare "
    "floating-point numbers with torch.allclose or torch.testing.assert_close, not with == (and with equal_nan=True "
    "where a NaN may stand).",
    False: "This was raised before anything was compared: the test hands the implementation something that it need not "
    "take, or does something with the result that it need not allow.",
}


def test_of(
    name: str,
    test: Callable,
    *,
    right: Mapping[str, Callable],
    wrong: Mapping[str, Callable],
    later: str = "",  # noqa: PT028 - this is no test of pytest's
) -> None:
    """Check a test that the learner wrote: it accepts each right implementation and rejects each wrong one.

    ``test`` takes one implementation; it accepts by returning and rejects by raising (``assert`` does). In a cell whose
    point depends on implementations that only the grader has, ``later`` says which, and nothing is called right yet.

    Raises:
        CheckFailed: naming the right implementations it refuses, or else the first wrong one it lets through.
    """
    label, title = _titles(name)
    verdicts = observe.run_test(test, [*right.items(), *wrong.items()])
    for verdict in verdicts.values():
        if verdict and verdict.kind in ("NotImplementedError", "TookTooLong"):
            _stop_unless_it_ran(observe.Outcome(failure=verdict), title)
    for label_of_right in right:
        if verdict := verdicts[label_of_right]:
            raise CheckFailed(
                title,
                f"it rejects a right implementation: {label_of_right}.",
                observed=f"{verdict.kind} {verdict.message}".strip().split("\n")[0] + f"\n{verdict.line}",
                cause=_WHY_A_TEST_REFUSES[verdict.kind == "AssertionError"],
                rung="accepts",
            )
    for each in wrong:
        verdict = verdicts[each]
        if verdict and verdict.kind not in ("AssertionError", "TookTooLong") and not verdict.foreign:
            raise CheckFailed(
                title,
                f"it rejects with {verdict.kind}, where an AssertionError is asked for.",
                observed=f"for: {each}\n{verdict.line}".strip(),
                cause="`assert` and torch.testing.assert_close raise an AssertionError. Any other error says that the "
                "test itself went wrong.",
                rung="rejects",
            )
    missed = [each for each in wrong if verdicts[each] is None]
    if missed:
        raise CheckFailed(
            title,
            f"it lets {len(missed)} of {len(wrong)} wrong implementations through.",
            observed=f"nothing was raised for: {missed[0]}",
            expected="an AssertionError",
            cause="On which input does that one differ from a right one? Add it to your test.",
            rung="rejects",
        )
    if later:
        print(f"{name} (exercise {label}) goes to the grader, who has {later}.")
        return
    _pass(
        name, label, [f"all {len(right)} right implementations are accepted", f"all {len(wrong)} wrong ones rejected"]
    )


def progress() -> None:
    """Show the current lesson's exercises: which checks have passed in this session and which are open."""
    lesson = _current()
    entries = [(e["label"], name, name in _passed[lesson]) for name, e in answers.exercises(lesson).items()]
    notebook.show_progress(lesson, answers.title(lesson), entries)


def passed(*names: str) -> list[str]:
    """The current lesson's exercises whose checks have passed in this session; ``names`` count from now on."""
    _passed[_current()].update(names)
    return [name for name in _labels() if name in _passed[_current()]]


# For graded tests -------------------------------------------------------------------------------------------------


def gradients(function: Callable, *inputs: Any) -> list[torch.Tensor | None]:
    """Gradients of a fixed weighted sum of ``function(*inputs)``, one for each floating-point tensor of ``inputs``.

    The weights are ``cos(0), cos(1), ...`` in the order of the flattened output. None stands for a gradient that does
    not arrive.

    Raises:
        RuntimeError: if the function itself raised.
    """
    args = {str(i): x for i, x in enumerate(inputs)}
    outcome = observe.call(function, args)
    if outcome.failure:
        raise RuntimeError(f"{outcome.failure.kind}: {outcome.failure.message}")
    return list((outcome.gradients or {}).values())


def unchanged(function: Callable, *inputs: Any) -> bool:
    """Does ``function(*inputs)`` leave every one of its inputs as it was?"""
    args = {str(i): x for i, x in enumerate(inputs)}
    outcome = observe.call(function, args, gradients=False)
    return outcome.failure is None and not outcome.changed


def parameters(module: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter of ``module``, by name."""
    return {name: tuple(shape) for name, shape in observe.parameter_shapes(module).items()}


def source_uses(function: Callable, names: Iterable[str]) -> set[str]:
    """Which of ``names`` does the source of ``function`` use, as a variable, an attribute or a function?"""
    return observe.names_used(function) & set(names)


def rejects(test: Callable, mistakes: Mapping[str, Callable]) -> set[str]:
    """The names of the ``mistakes`` that a learner's ``test`` rejects. One that never ends rejects nothing."""
    verdicts = observe.run_test(test, list(mistakes.items()))
    return {name for name, v in verdicts.items() if v and v.kind not in ("TookTooLong", "NotImplementedError")}


# ------------------------------------------------------------------------------------------------------------------


def _current() -> str:
    if not _lesson:
        raise UnknownExercise("No lesson is open. Run the setup cell at the top of the notebook first.")
    return _lesson


def _labels() -> dict[str, str]:
    """Every exercise of the current lesson with its label, in their order."""
    return {name: each["label"] for name, each in answers.exercises(_current()).items()}


def _unfinished_before(name: str) -> dict[str, str]:
    """The exercises that come before ``name`` and whose checks have not passed in this session, with their labels."""
    labels = _labels()
    earlier = list(labels)[: list(labels).index(name)]
    return {other: labels[other] for other in earlier if other not in _passed[_current()]}


def _titles(name: str) -> tuple[str, str]:
    spec = answers.load(_current(), name)
    return spec.label, f"{name} (exercise {spec.label})"


def _pass(name: str, label: str, shown: list[str]) -> None:
    _passed[_current()].add(name)
    print(f"✓ {name} (exercise {label}) is right.")
    print(textwrap.fill(" · ".join(shown), WIDTH, initial_indent="  shown: ", subsequent_indent="         "))


def _stop_unless_it_ran(outcome: observe.Outcome, title: str) -> None:
    if outcome.failure:
        raise CheckFailed(title, **failed_call(outcome.failure))
