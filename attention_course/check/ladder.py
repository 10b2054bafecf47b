"""The ladder that every check climbs: it stops at the first rung that breaks and says so in words.

1. *written*, *runs*: the exercise exists, is filled in and does not raise or hang
2. *type*, *shape*: what came back, axis by axis
3. *dtype*, *device*, *changed*: both follow the input; the input is left alone
4. *finite*, *gradient*: numbers and gradients are finite, and gradients arrive
5. *value*: one mechanism at a time, then everything together
6. diagnosis: whichever rung broke, does a known mistake give the same in every case? If none, how are the numbers off?
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from . import advice, answers, draw, observe, relations, values
from .answers import Case, Exercise, Mistake
from .messages import CheckFailed, failed_call, largest_difference, listing, numbers, shape
from .observe import Failure, Outcome, kind


class Climb:
    """One learner's answer to one exercise on its way up.

    ``labels`` maps every exercise of the lesson to its label, ``unfinished`` the earlier ones whose checks have not
    passed: an answer that builds on one of them is sent there first.
    """

    def __init__(
        self,
        exercise: Exercise,
        attempt: Any,
        unfinished: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
    ):
        self.exercise, self.attempt, self.open, self.labels = exercise, attempt, unfinished or {}, labels or {}
        self.title = f"{exercise.name} (exercise {exercise.label})"
        self.outcomes: dict[int, Outcome] = {}

    def run(self) -> list[str]:
        """Climb. Returns what was shown to hold.

        Raises:
            CheckFailed: at the first rung that breaks.
        """
        exercise = self.exercise
        self._exists()
        full = exercise.cases[-1]
        outcome = self._outcome(len(exercise.cases) - 1)
        self._runs(outcome)
        self._shape(outcome, full)
        self._dtype(outcome, full)
        self._unchanged(outcome)
        self._finite(outcome, full)
        self._gradients_arrive(outcome, full)
        # In the order of the lesson, one mechanism at a time: the first case that fails names what failed. The copy in
        # double precision comes last, since it isolates nothing but the dtype.
        order = sorted(range(len(exercise.cases)), key=lambda i: _is_double(exercise.cases[i]))
        wrong = [index for index in order if self._is_wrong(index)]
        if wrong:
            self._stop_at_values(wrong[0], [i for i in order if i not in wrong])
        for index in order:
            self._gradients(index)
        if exercise.random:
            self._differs(full)
        return self._shown(full)

    # rung 1 ------------------------------------------------------------------------------------------------------

    def _exists(self) -> None:
        name, what = self.exercise.name, observe.describe(self.attempt)
        if not what["exists"]:
            self._stop(
                "exists",
                "it does not exist yet.",
                cause=f"Run the cell in which you write {name}, then this one. If it is gone, take it again from "
                "a fresh copy of the lesson.",
            )
        if self.exercise.kind == "module" and not what["module_class"]:
            self._stop(
                "runs",
                "this should be a class that derives from nn.Module.",
                observed=f"{name} is {what['kind']}",
                cause=f"Pass the class itself, {name}, not an instance of it.",
            )
        if not what["callable"]:
            self._stop(
                "runs",
                "this should be a function.",
                observed=f"{name} is {what['kind']}",
                cause=f"A later cell may have reused the name. Run the cell with `def {name}` again.",
            )

    def _runs(self, outcome: Outcome, case: Case | None = None) -> None:
        failure = outcome.failure
        if not failure:
            return
        case = case or self.exercise.cases[-1]
        parts = failed_call(failure, _shapes(self.exercise, case), self._others(), case.dims)
        place = failure.inside[0] if failure.inside else ""
        if place in self._others() and parts["rung"] == "runs":
            raise CheckFailed(self.title, **parts)
        self._stop(**parts)

    def _others(self) -> dict[str, str]:
        return {name: label for name, label in self.labels.items() if name != self.exercise.name}

    # rung 2 ------------------------------------------------------------------------------------------------------

    def _shape(self, outcome: Outcome, case: Case) -> None:
        outputs = self.exercise.outputs
        got = outcome.value
        if len(outputs) > 1:
            names = listing([o["name"] for o in outputs])
            if not isinstance(got, tuple | list) or len(got) != len(outputs):
                size = f" of {len(got)}" if isinstance(got, tuple | list) else ""
                self._stop(
                    "type",
                    f"it should return {len(outputs)} things: {names}.",
                    observed=f"it returned {kind(got)}{size}",
                    expected=f"return {', '.join(o['name'] for o in outputs)}",
                )
        for output, item, expected in self._pairs(got, case):
            self._one_shape(output, item, expected, case)

    def _one_shape(self, output: dict[str, Any], got: Any, expected: Any, case: Case) -> None:
        name, axes = output["name"], output["axes"]
        if isinstance(expected, torch.Tensor) and not isinstance(got, torch.Tensor):
            self._stop(
                "type",
                "it should return a tensor.",
                observed=f"{name} is {kind(got)}",
                expected=f"a tensor of shape {shape(tuple(expected.shape), case.dims, axes)}",
                cause=_type_advice(got),
            )
        if isinstance(expected, np.ndarray) and not isinstance(got, np.ndarray | np.generic):
            self._stop(
                "type",
                "it should return a NumPy array.",
                observed=f"{name} is {kind(got)}",
                expected=f"an array of shape {shape(expected.shape, case.dims, axes)}",
                cause="Leave PyTorch out of this one: NumPy has the same operations, mostly under the same names."
                if isinstance(got, torch.Tensor)
                else _type_advice(got, numpy=True),
            )
        if isinstance(expected, list) and not isinstance(got, list | tuple):
            self._stop(
                "type",
                "it should return a list.",
                observed=f"{name} is {kind(got)}",
                cause=_type_advice(got) if got is None else ".tolist() makes a list." if hasattr(got, "tolist") else "",
            )
        if isinstance(expected, bool | int | float):
            array = values.as_array(got)
            if array is None or array.size != 1:
                size = f" of shape {shape(array.shape, case.dims)}" if array is not None and array.ndim else ""
                self._stop(
                    "type",
                    "it should return a number.",
                    observed=f"{name} is {kind(got)}{size}",
                    expected="a single number",
                    cause="" if got is not None else _type_advice(got),
                )
            return
        want, have = tuple(np.shape(values.as_array(expected))), tuple(np.shape(values.as_array(got)))
        if want != have:
            turned = relations.describe([self._view(output, got, expected, case)])
            self._stop(
                "shape",
                "the shape is not right.",
                observed=f"{name} has shape {shape(have, case.dims, axes if len(axes or []) == len(have) else None)}",
                expected=shape(want, case.dims, axes),
                relation=f"What came is {turned}." if turned else "",
            )

    # rung 3 ------------------------------------------------------------------------------------------------------

    def _dtype(self, outcome: Outcome, case: Case) -> None:
        for output, got, expected in self._pairs(outcome.value, case):
            if not isinstance(expected, torch.Tensor | np.ndarray):
                continue
            if got.dtype != expected.dtype:
                headline, cause = advice.dtype(self.attempt, got, expected)
                self._stop(
                    "dtype",
                    headline,
                    observed=f"{output['name']} is {got.dtype}",
                    expected=str(expected.dtype),
                    cause=cause,
                )
            if isinstance(expected, torch.Tensor) and got.device.type != expected.device.type:
                self._stop(
                    "device",
                    "the result should be where the input is.",
                    observed=f"{output['name']} is on {got.device.type}",
                    expected=expected.device.type,
                    cause="A tensor that is made anew stands on the CPU unless it is told: device=x.device.",
                )

    def _unchanged(self, outcome: Outcome) -> None:
        if outcome.changed:
            self._stop(
                "changed",
                f"it changed its own input {listing(outcome.changed)}.",
                expected="the caller's tensors are as they were before the call",
                cause=advice.changed(self.attempt),
            )

    # rung 4 ------------------------------------------------------------------------------------------------------

    def _finite(self, outcome: Outcome, case: Case) -> None:
        for output, got, expected in self._pairs(outcome.value, case):
            a, b = values.as_array(got), values.as_array(expected)
            if a is None or b is None or b.dtype.kind != "f":
                continue
            bad = ~np.isfinite(a) & np.isfinite(b)
            if bad.any():
                what = "NaN" if np.isnan(a[bad]).any() else "infinite"
                self._stop(
                    "finite",
                    f"{output['name']} has {what} values.",
                    observed=f"{int(bad.sum())} of {a.size} numbers are {what}",
                    expected="finite numbers",
                    checked=case.shows,
                )

    def _differentiates(self, outcome: Outcome) -> None:
        """Where PyTorch has a reason why it cannot, that reason is shown."""
        if reason := outcome.backward:
            place = f"line {reason.number} of your cell: {reason.line}" if reason.line else ""
            self._stop(
                "gradient",
                "PyTorch cannot compute its gradient.",
                observed="\n".join(x for x in (reason.message, place) if x),
                cause=advice.backward(reason),
            )

    def _gradients_arrive(self, outcome: Outcome, case: Case) -> None:
        wanted = case.outcome.gradients
        if not wanted:
            return
        self._differentiates(outcome)
        found = outcome.gradients or {}
        missing = [name for name, g in wanted.items() if g is not None and found.get(name) is None]
        if missing:
            self._stop(
                "gradient",
                f"no gradient arrives at {listing(missing)}.",
                expected="the result can be differentiated with respect to every input and parameter it depends on",
                cause=advice.no_gradient(self.attempt, missing),
            )
        for name, gradient in wanted.items():
            if gradient is not None and not torch.isfinite(found[name]).all() and torch.isfinite(gradient).all():
                self._stop("gradient", f"the gradient at {name} is not finite.", cause=advice.NOT_FINITE)

    # rung 5 ------------------------------------------------------------------------------------------------------

    def _is_wrong(self, index: int) -> bool:
        """Climb the rungs below in this case as well; are its numbers not the right ones?"""
        case, outcome = self.exercise.cases[index], self._outcome(index)
        self._runs(outcome, case)
        self._shape(outcome, case)
        self._dtype(outcome, case)
        self._unchanged(outcome)
        self._finite(outcome, case)
        pairs = self._pairs(outcome.value, case)
        return not all(values.close(got, expected, self.exercise.tolerance) for _, got, expected in pairs)

    def _stop_at_values(self, index: int, right: list[int]) -> None:
        shown = [self.exercise.cases[i].shows for i in right if not _is_double(self.exercise.cases[i])]
        case, outcome = self.exercise.cases[index], self._outcome(index)
        for output, got, expected in self._pairs(outcome.value, case):
            if values.close(got, expected, self.exercise.tolerance):
                continue
            self._draw(index)
            small = numbers(got)
            where = "" if small else largest_difference(got, expected, output["axes"] or [])
            if where and len(self.exercise.outputs) > 1:
                where = f"of {output['name']}, {where}"
            self._stop(
                "value",
                "not the right numbers yet." if values.as_array(expected) is not None else "not the right answer yet.",
                checked=case.shows,
                observed=f"{output['name']} = {small}" if small else where,
                expected=numbers(expected),
                holds=" · ".join(shown),
                relation=self._related(),
                cause=_by_hand(self.exercise, case, small),
            )

    def _related(self) -> str:
        """How the numbers are off, in words, for each output that is; and which of several outputs are right."""
        outcomes = [self._outcome(i) for i in range(len(self.exercise.cases))]
        if any(o.failure for o in outcomes):
            return ""
        pairs = [self._pairs(o.value, case) for o, case in zip(outcomes, self.exercise.cases, strict=True)]
        said, right = [], []
        for place, output in enumerate(self.exercise.outputs):
            each = [(pair[place][1:], case) for pair, case in zip(pairs, self.exercise.cases, strict=True)]
            if any(values.as_array(x) is None for both, _ in each for x in both):
                continue
            views = [self._view(output, got, want, case) for (got, want), case in each]
            name = f" as {output['name']}" if len(self.exercise.outputs) > 1 else ""
            if all(view.right for view in views):
                right.append(output["name"])
            elif phrase := relations.describe(views):
                said.append(f"What came{name} is {phrase}.")
        first = [f"{listing(right)} {'is' if len(right) == 1 else 'are'} right in every case."] if right else []
        return " ".join(first + said)

    def _view(self, output: dict[str, Any], got: Any, want: Any, case: Case) -> relations.View:
        a, b = values.as_array(got), values.as_array(want)
        return relations.View(a, b, output["axes"] or [], case.args, case.dims, self.exercise.tolerance)

    def _gradients(self, index: int) -> None:
        case, outcome = self.exercise.cases[index], self._outcome(index)
        if case.outcome.gradients:
            self._differentiates(outcome)
        for name, gradient in (case.outcome.gradients or {}).items():
            found = (outcome.gradients or {}).get(name)
            if gradient is not None and (
                found is None or not values.close(found, gradient, self.exercise.tolerance * 10)
            ):
                self._stop(
                    "gradient",
                    f"the values are right, the gradient at {name} is not.",
                    checked=case.shows,
                    cause=advice.other_gradient(self.attempt, name),
                )

    def _differs(self, case: Case) -> None:
        once, again = observe_case(self.exercise, case, self.attempt), observe_case(self.exercise, case, self.attempt)
        if values.close(once.value, again.value, 0.0):
            self._stop(
                "value",
                "two calls gave exactly the same number.",
                observed=f"{self.exercise.outputs[0]['name']} = {numbers(once.value)} both times",
                expected="a measurement on fresh random draws, close to the same each time",
                cause="The number should be measured, not computed from the argument, and no seed set inside.",
            )

    def _draw(self, first: int) -> None:
        """Draw the first wrong matrix, from the case that failed or, if that is too small to draw, a later one."""
        later = sorted(range(first + 1, len(self.exercise.cases)), key=lambda i: _is_double(self.exercise.cases[i]))
        for index in [first, *later]:
            case, outcome = self.exercise.cases[index], self._outcome(index)
            if outcome.failure or (len(self.exercise.outputs) > 1 and not isinstance(outcome.value, tuple | list)):
                continue
            for output, got, expected in self._pairs(outcome.value, case):
                if not values.close(got, expected, self.exercise.tolerance) and draw.comparison(
                    expected,
                    got,
                    output,
                    f"{self.title}: {case.shows if index == first else 'the same on a larger input'}",
                ):
                    return

    def _shown(self, full: Case) -> list[str]:
        shown = []
        for output in self.exercise.outputs:
            if axes := output["axes"]:
                shown.append(f"{output['name']} has shape ({', '.join(axes)}{',' if len(axes) == 1 else ''})")
        if any(map(_is_double, self.exercise.cases)):
            shown.append("dtype and device follow the input")
        if full.outcome.gradients and any(g is not None for g in full.outcome.gradients.values()):
            shown.append("gradients arrive")
        shown += [case.shows for case in self.exercise.cases if not _is_double(case)]
        return list(dict.fromkeys(shown))

    # outcomes and diagnosis --------------------------------------------------------------------------------------

    def _outcome(self, index: int) -> Outcome:
        if index not in self.outcomes:
            self.outcomes[index] = observe_case(self.exercise, self.exercise.cases[index], self.attempt)
        return self.outcomes[index]

    def _pairs(self, got: Any, case: Case) -> list[tuple[dict[str, Any], Any, Any]]:
        outputs, expected = self.exercise.outputs, case.outcome.value
        if len(outputs) == 1:
            return [(outputs[0], got, expected)]
        return list(zip(outputs, got, expected, strict=True))

    def diagnose(self) -> list[Mistake]:
        """The known mistakes that give what this attempt gives in every case."""
        if any(o.failure and o.failure.kind in ("TookTooLong", "NotImplementedError") for o in self.outcomes.values()):
            return []
        mine = [self._outcome(i) for i in range(len(self.exercise.cases))]
        right = [answers.prints(case.outcome) for case in self.exercise.cases]
        return [
            mistake
            for mistake in self.exercise.mistakes
            if all(
                answers.recognises(theirs or expected, outcome, self.exercise.tolerance)
                for theirs, expected, outcome in zip(mistake.prints, right, mine, strict=True)
            )
        ]

    def _stop(self, rung: str, headline: str, *, cause: str = "", relation: str = "", **parts: str) -> None:
        known = self.diagnose() if self.outcomes else []
        cause = f"{relation} {cause}".strip()
        if known:
            relation = ""
            what = "error" if rung == "runs" else "result"
            gives = ", and of ".join(m.gives.rstrip(",") for m in known)
            cause = f"The same {what} comes of {gives}. {' '.join(dict.fromkeys(m.hint for m in known))}"
        elif rung in ("shape", "finite", "value", "gradient") and (
            used := observe.names_used(self.attempt) & self.open.keys()
        ):
            first = next(name for name in self.open if name in used)
            label = self.open[first]
            hint = (
                f"It uses {first}, whose own check (exercise {label}) has not passed in this session; look there first."
            )
            cause = f"{hint} {cause}".strip()
        names = tuple(m.name for m in known)
        raise CheckFailed(self.title, headline, cause=cause, rung=rung, known=names, relation=relation, **parts)


def observe_case(exercise: Exercise, case: Case, attempt: Callable) -> Outcome:
    """Try ``attempt`` in one case. A module is constructed, given the case's parameters, then called."""
    if exercise.kind == "function":
        return observe.call(attempt, case.args, gradients=case.differentiate)
    module, built = observe.build(attempt, case.init)
    if built.failure:
        return built
    wanted = {name: list(tensor.shape) for name, tensor in case.state.items()}
    if built.value != wanted:
        have = built.value if isinstance(built.value, dict) else {}
        # Of the parameters, those that differ: a message is short.
        mine = {name: shape for name, shape in have.items() if wanted.get(name) != shape}
        theirs = {name: shape for name, shape in wanted.items() if have.get(name) != shape}
        text = f"its parameters are {_parameters(mine)}\nthey should be {_parameters(theirs)}"
        if mine and not theirs:
            text = f"it has too many parameters: {_parameters(mine)}"
        elif theirs and not mine:
            text = f"its parameters are {_parameters(have)}\nmissing: {_parameters(theirs)}"
        return Outcome(failure=Failure("WrongParameters", text))
    return observe.apply(module, case.state, case.args, gradients=case.differentiate)


def _parameters(shapes: dict[str, list[int]]) -> str:
    return ", ".join(f"{name} {tuple(s)}" for name, s in shapes.items()) or "none"


def _is_double(case: Case) -> bool:
    return any(str(x.dtype).endswith("float64") for _, x in values.leaves(case.args))


def _by_hand(exercise: Exercise, case: Case, small: str) -> str:
    """Where all numbers of a case are short, the advice to work it out on paper."""
    if not small or exercise.kind != "function":
        return ""
    written = [f"{name} = {numbers(value)}" for name, value in case.args.items() if numbers(value)]
    by_hand = all(
        np.allclose(2 * a, np.round(2 * a)) for v in case.args.values() if (a := values.as_array(v)) is not None
    )
    complete = by_hand and written and len(written) == len(case.args)
    return f"Work it out by hand for {', '.join(written)}." if complete else ""


def _shapes(exercise: Exercise, case: Case) -> str:
    """The inputs of a case with their shapes, for a learner whose code raised on them."""
    written = [
        f"{name} {shape(tuple(value.shape), case.dims, exercise.inputs.get(name))}"
        if isinstance(value, torch.Tensor | np.ndarray)
        else f"{name} = {value!r}"
        for name, value in case.args.items()
        if isinstance(value, torch.Tensor | np.ndarray | bool | int | float | str)
    ]
    return ", ".join(written)


def _type_advice(got: Any, numpy: bool = False) -> str:
    if got is None:
        return "Does the function end in a `return` line?"
    if hasattr(got, "values") and hasattr(got, "indices"):  # what max, min and sort return
        return "max(dim=...) returns values and places: take .values, or use amax."
    if isinstance(got, list | tuple):
        together = "np.array or np.stack" if numpy else "torch.stack or torch.cat"
        return f"Put the pieces together with {together} before you return them."
    if isinstance(got, np.ndarray):
        return "Stay in PyTorch: a detour over .numpy() cuts the gradient."
    return ""
