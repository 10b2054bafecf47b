"""The examiner: a process that runs the graded tests and never a line of a student's.

It is handed the cells of one rebuilt notebook as JSON and writes what each of them gave. Student cells go to the kernel in
the sandbox, locked cells run in both places, graded cells run here. A name that a test uses and that is not defined here
stands for the student's object of that name.
"""

import ast
import builtins
import contextlib
import io
import json
import random
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..cells import run_cell
from ..check import draw, limit, observe
from . import protocol
from .kernel import KernelLost, StudentKernel

HIDDEN = "### BEGIN HIDDEN TESTS"


class StudentError(Exception):
    """What a student's code did in place of returning a value, as the test sees it: type, message, line."""

    def __init__(self, failure: observe.Failure):
        self.failure = failure
        line = f" ({failure.line})" if failure.line else ""
        super().__init__(f"{failure.kind}: {failure.message}{line}")


class Proxy(observe.Remote):
    """Stands for a student's object: call it, take an attribute, hand it to ``check``. Values come back as values."""

    def __init__(self, link: "Link", target: dict[str, Any], kind: str = "an object"):
        self._link, self._target, self.kind = link, target, kind

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        request = {"args": list(args), "kwargs": kwargs, "seconds": None}
        return _value(self._link.send("invoke", self._target, **request))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _value(self._link.send("attribute", self._target, name=name))

    def ask(self, operation: str, **arguments: Any) -> Any:
        if operation == "run_test":
            return self._run_test(**arguments)
        answer = self._link.send(operation, self._target, **arguments)
        if operation in ("call", "apply"):
            return _outcome(answer)
        if operation == "build":
            return answer["module"], _outcome(answer["outcome"])
        return answer

    def _run_test(self, implementations: Sequence[tuple[str, Callable]], seconds: float | None) -> dict[str, Any]:
        """Nameless and in an order drawn afresh, so that a test has nothing to go by but what it is handed."""
        drawn = random.SystemRandom().sample(list(implementations), len(implementations))
        answer = self._link.send("run_test", self._target, drawn, count=len(drawn), seconds=seconds)
        return {name: _failure(answer[str(number)]) for number, (name, _) in enumerate(drawn)}


class Link:
    """The examiner's end of the protocol. It knows how much time is left, and that a lost kernel has to be replaced."""

    def __init__(self, kernel: StudentKernel, seconds: float):
        self.kernel, self.seconds = kernel, seconds

    def send(
        self,
        operation: str,
        target: dict[str, Any],
        implementations: list[tuple[str, Callable]] | None = None,
        **arguments: Any,
    ) -> Any:
        """Ask the kernel for ``operation`` on ``target``. ``implementations`` stay here; it may ask back for their values."""
        request = {"operation": operation, "target": target} | arguments
        try:
            text = self.kernel.ask(request, self.seconds, implementations)
            message = protocol.decode(text, lambda about: Proxy(self, {"handle": int(about["handle"])}, str(about["kind"])))
        except protocol.ProtocolError as error:
            raise StudentError(observe.Failure("UnreadableAnswer", str(error))) from None
        if not isinstance(message, dict) or "answer" not in message:
            problem = str(message.get("problem", "no answer"))[:300] if isinstance(message, dict) else "no answer"
            raise StudentError(observe.Failure("UnreadableAnswer", problem))
        return message["answer"]


def _failure(plain: Any) -> observe.Failure | None:
    if plain is None:
        return None
    number, inside = plain.get("number"), plain.get("inside")
    return observe.Failure(
        str(plain.get("kind", "")), str(plain.get("message", ""))[:2000], str(plain.get("line", ""))[:300],
        number if isinstance(number, int) else None,
        [str(name)[:100] for name in inside[:20]] if isinstance(inside, list) else [],
        _named_shapes(plain.get("shapes")), plain.get("foreign") is True,
    )  # fmt: skip


def _named_shapes(plain: Any) -> dict[str, list[int]]:
    """What a kernel says of the shapes beside a line that failed: a few names, each with a few whole numbers."""
    if not isinstance(plain, dict):
        return {}
    sound = {k: v for k, v in plain.items() if isinstance(v, list) and len(v) < 10 and all(type(n) is int for n in v)}
    return {str(name)[:40]: sizes for name, sizes in list(sound.items())[:8]}


def _outcome(plain: dict[str, Any]) -> observe.Outcome:
    gradients = plain.get("gradients")
    return observe.Outcome(
        value=plain.get("value"),
        failure=_failure(plain.get("failure")),
        changed=[str(name) for name in plain.get("changed") or []],
        gradients=gradients if isinstance(gradients, dict) else None,
        backward=_failure(plain.get("backward")),
    )


def _value(plain: dict[str, Any]) -> Any:
    outcome = _outcome(plain)
    if outcome.failure:
        raise StudentError(outcome.failure)
    return outcome.value


class Examination:
    """One submission under examination.

    Args:
        cells: dicts with ``id``, ``role`` (``student``, ``given`` or ``test``) and ``source``, in the order of the lesson.
        cell_seconds, total_seconds: how long one cell, one call, and the whole notebook may take.
        sandboxed: run the student's kernel in the sandbox.
    """

    def __init__(self, cells: list[dict[str, str]], cell_seconds: float, total_seconds: float, sandboxed: bool):
        self.cells, self.cell_seconds = cells, cell_seconds
        self.end = time.monotonic() + total_seconds
        self.kernel = StudentKernel(sandboxed)
        self.link = Link(self.kernel, cell_seconds)
        self.names: dict[str, Any] = {"__name__": "examiner"}
        self.lethal: set[int] = set()
        self.lost = ""

    def run(self) -> dict[str, list[dict[str, Any]]]:
        """Examine. Returns the outputs of every cell by its id; a graded cell without an error earned its points."""
        draw.enabled = False
        outputs: dict[str, list[dict[str, Any]]] = {}
        try:
            self.kernel.start()
            for place, cell in enumerate(self.cells):
                if cell["role"] == "test":
                    outputs[cell["id"]] = self._test(place, cell)
                else:
                    outputs[cell["id"]] = self._student_cell(place, cell)
                    if cell["role"] == "given":
                        self._given(cell)
        except KernelLost as error:
            self.lost = str(error)
        except Exception as error:  # what was earned up to here stays earned
            self.lost = f"the examination broke off with {type(error).__name__}"
        finally:
            self.kernel.kill()
        for cell in self.cells:  # nbgrader gives full marks to a graded cell in which nothing went wrong
            if cell["role"] == "test" and cell["id"] not in outputs:
                outputs[cell["id"]] = [_error("NotExamined", f"This exercise was not reached: {self.lost or 'out of time'}.")]
        return outputs

    def _left(self) -> float:
        left = self.end - time.monotonic()
        if left <= 0:
            raise KernelLost("the time for the whole notebook is over")
        return min(self.cell_seconds, left)

    def _student_cell(self, place: int, cell: dict[str, str]) -> list[dict[str, Any]]:
        try:
            outputs = self.kernel.run_cell(cell["source"], self._left())
            self.kernel.run_cell("", min(5, self._left()))  # a cell may return and leave a kernel that answers no more
            return outputs
        except KernelLost as error:
            self.lethal.add(place)
            self._revive(place)
            return [_error("KernelLost", f"This cell was stopped: {error}. The cells below ran without it.")]

    def _revive(self, upto: int) -> None:
        """Replace a lost kernel by one in which every harmless cell above has run again."""
        self._left()
        self.kernel.kill()
        self.kernel.start()
        for place, cell in enumerate(self.cells[:upto]):
            if cell["role"] != "test" and place not in self.lethal:
                try:
                    self.kernel.run_cell(cell["source"], self._left())
                except KernelLost:
                    self.lethal.add(place)
                    self._revive(upto)
                    return

    def _given(self, cell: dict[str, str]) -> None:
        self._bring_in(cell["source"])
        with contextlib.redirect_stdout(io.StringIO()):
            run_cell(cell["id"], cell["source"], self.names)

    def _bring_in(self, source: str) -> None:
        """Let every name that the cell uses and that is not defined here stand for the student's."""
        for name in unknown_names(source, self.names):
            self.names[name] = Proxy(self.link, {"name": name})

    def _test(self, place: int, cell: dict[str, str]) -> list[dict[str, Any]]:
        visible, mark, hidden = cell["source"].partition(HIDDEN)
        self._bring_in(cell["source"])
        torch.seed()  # inputs are drawn afresh: the setup cell has set a seed that everybody knows
        np.random.seed(None)
        random.seed()
        said = io.StringIO()
        error: dict[str, Any] | None = None
        try:
            self.link.seconds = self._left()
            with contextlib.redirect_stdout(said), limit.time_limit(self._left() + 5):
                run_cell(cell["id"], visible, self.names)
                try:
                    run_cell(cell["id"] + "-hidden", mark and hidden, self.names)
                except (KernelLost, limit.TookTooLong):
                    raise
                except Exception as problem:
                    error = _hidden_error(problem)
        except KernelLost as problem:
            error = _error("KernelLost", f"Your code stopped the kernel that it ran in: {problem}.")
            self._revive(place)
        except limit.TookTooLong:
            error = _error("TookTooLong", "Your code did not finish in the time that one exercise has.")
            self._revive(place)
        except Exception as problem:
            error = _visible_error(problem)
        text = said.getvalue()
        spoken = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
        return [*spoken, error] if error else spoken


def unknown_names(source: str, known: dict[str, Any]) -> set[str]:
    """The names that a cell reads and that neither it, nor ``known``, nor Python defines."""
    tree = ast.parse(source)
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    made = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    made |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    made |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    made |= {
        (a.asname or a.name).split(".")[0]
        for n in ast.walk(tree)
        if isinstance(n, ast.Import | ast.ImportFrom)
        for a in n.names
    }
    return read - made - set(known) - set(dir(builtins))


def _error(name: str, message: str, trace: list[str] | None = None) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": message, "traceback": trace or [message]}


def _visible_error(problem: Exception) -> dict[str, Any]:
    render: Callable[[], list[str]] | None = getattr(problem, "_render_traceback_", None)
    if render is not None:
        return _error("CheckFailed", str(problem), render())
    if isinstance(problem, StudentError):
        return _error("StudentError", f"Your code raised {problem}")
    return _error(type(problem).__name__, f"The check did not pass: {type(problem).__name__}: {problem}"[:1000])


def _hidden_error(problem: Exception) -> dict[str, Any]:
    """What a student may read of a hidden test that failed: that it did, what their own code raised, and what the author
    of the lesson wrote behind an ``assert`` for them to read; no more."""
    frames = traceback.extract_tb(problem.__traceback__)
    if isinstance(problem, AssertionError) and problem.args and frames[-1].filename.endswith("-hidden>"):
        return _error(
            "HiddenTestFailed",
            f"The check above passes, a test that it does not show does not: {str(problem.args[0])[:300]}.",
        )
    if isinstance(problem, StudentError) and problem.failure.kind != "UnreadableAnswer":
        reason = f"On another input your code raised {problem}"
    else:
        reason = "On other inputs, which the check does not show, the result is not right."
    return _error(
        "HiddenTestFailed",
        f"The check above passes, a test of a general property does not. {reason} "
        "Try other shapes and other sizes of numbers.",
    )


def examine(job: str, result: str) -> None:
    """Read a job from the file ``job``, examine, and write every cell's outputs to the file ``result``."""
    about = json.loads(Path(job).read_text(encoding="utf-8"))
    examination = Examination(about["cells"], about["cell_seconds"], about["total_seconds"], about["sandboxed"])
    Path(result).write_text(json.dumps(examination.run()), encoding="utf-8")
