"""Run a learner's function or module and write down what it did.

This is the only place that touches what a learner wrote. Everything after it works on plain values, so a grader may
run this file where the learner's code lives and the judging somewhere else.
"""

import ast
import functools
import inspect
import linecache
import re
import sysconfig
import textwrap
import traceback
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import limit, values

# Code that is not the learner's: this package, the standard library and what is installed.
_NOT_THEIRS = (
    str(Path(__file__).resolve().parents[1]),
    *(sysconfig.get_paths()[x] for x in ("stdlib", "purelib", "platlib")),
)
# The functions that a lesson gives; :func:`check.start` fills it.
given: set[str] = set()


@dataclass
class Failure:
    """An exception in the learner's code: its type, its message, and the learner's own line that raised it.

    ``inside`` names the functions and classes that were running, the one with that line first; ``shapes`` are those of
    the tensors that the line names; ``foreign`` says that it was raised by something that the learner was handed.
    """

    kind: str
    message: str
    line: str = ""
    number: int | None = None
    inside: list[str] = field(default_factory=list)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    foreign: bool = False


@dataclass
class Outcome:
    """What one call did.

    ``value`` is what came back, without its graph. ``changed`` names the inputs that were modified in place.
    ``gradients`` maps each floating-point input (and parameter) to the gradient of a fixed weighted sum of the
    outputs; None stands for an input that the outputs do not depend on. It is None where nothing was differentiated.
    ``backward`` is what PyTorch said where it could not differentiate.
    """

    value: Any = None
    failure: Failure | None = None
    changed: list[str] = field(default_factory=list)
    gradients: dict[str, torch.Tensor | None] | None = None
    backward: Failure | None = None


class Remote:
    """Stands for a learner's object that lives in another process. Observations are made over there."""

    kind = "an object"

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Have ``operation``, a function of this module, applied to the object; ``arguments`` are its other ones."""
        raise NotImplementedError


def call(
    function: Callable,
    args: Mapping[str, Any],
    *,
    gradients: bool = True,
    seconds: float | None = None,
) -> Outcome:
    """Call ``function`` with ``args`` in their order, under a time limit, and report what happened.

    Args:
        function: what the learner wrote.
        args: the inputs by name; they are passed by position, so a learner may rename a parameter.
        gradients: also differentiate the outputs with respect to every floating-point tensor among the inputs.
        seconds: the time limit; by default that of :func:`limit.seconds`.
    """
    if isinstance(function, Remote):
        return function.ask("call", args=args, gradients=gradients, seconds=seconds)
    return _watch(lambda inputs: function(*inputs.values()), args, {}, gradients, seconds)


def build(
    module_class: Callable[..., torch.nn.Module],
    init: Mapping[str, Any],
    *,
    seconds: float | None = None,
) -> tuple[Any, Outcome]:
    """Construct a learner's module. Returns it with an outcome whose value is the shape of every parameter."""
    if isinstance(module_class, Remote):
        return module_class.ask("build", init=init, seconds=seconds)
    made: list[Any] = []

    def construct(_: Mapping[str, Any]) -> Any:
        made.append(module_class(**init))
        return parameter_shapes(made[0]) if isinstance(made[0], torch.nn.Module) else type(made[0]).__name__

    outcome = _watch(construct, {}, {}, False, seconds)
    return (made[0] if made else None), outcome


def apply(
    module: torch.nn.Module,
    state: Mapping[str, torch.Tensor],
    args: Mapping[str, Any],
    *,
    gradients: bool = True,
    seconds: float | None = None,
) -> Outcome:
    """Load ``state`` into the learner's module, put it in evaluation mode and call it with ``args``."""
    if isinstance(module, Remote):
        return module.ask("apply", state=state, args=args, gradients=gradients, seconds=seconds)
    tensors = [x for _, x in values.leaves(dict(args)) if torch.is_tensor(x)]
    floating = [x for x in tensors if x.is_floating_point()]
    if floating:
        module.to(floating[0].device, floating[0].dtype)
    elif tensors:  # words as whole numbers: they say where, but not how precisely
        module.to(tensors[0].device)
    module.load_state_dict({name: tensor.clone() for name, tensor in state.items()})
    module.eval()
    return _watch(lambda inputs: module(*inputs.values()), args, dict(module.named_parameters()), gradients, seconds)


def parameter_shapes(module: torch.nn.Module) -> dict[str, list[int]]:
    """The shape of every parameter of ``module`` by name."""
    if isinstance(module, Remote):
        return module.ask("parameter_shapes")
    return {name: list(p.shape) for name, p in module.named_parameters()}


def describe(attempt: Any) -> dict[str, Any]:
    """What a learner's object is: whether it can be called, whether it is a class of modules, and its kind in words."""
    if isinstance(attempt, Remote):
        return attempt.ask("describe")
    return {
        "exists": True,
        "callable": callable(attempt),
        "module_class": isinstance(attempt, type) and issubclass(attempt, torch.nn.Module),
        "kind": kind(attempt),
    }


def kind(value: Any) -> str:
    """What a value is, in words: ``a list``, ``a NumPy array``, ``nothing (None)``."""
    if isinstance(value, Remote):
        return value.kind
    if value is None:
        return "nothing (None)"
    if isinstance(value, np.ndarray | np.generic):
        return "a NumPy array"
    name = type(value).__name__
    if name == "Tensor":
        return "a tensor"
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _watch(
    body: Callable[[Mapping[str, Any]], Any],
    args: Mapping[str, Any],
    parameters: Mapping[str, torch.Tensor],
    gradients: bool,
    seconds: float | None,
) -> Outcome:
    inputs = {name: values.transform(value, _copy) for name, value in args.items()}
    before = {name: values.transform(value, _copy) for name, value in args.items()}
    if gradients:
        inputs = {name: values.transform(value, _track) for name, value in inputs.items()}
    outcome = Outcome()
    allowed = limit.seconds() if seconds is None else seconds
    try:
        with limit.time_limit(allowed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a deprecation must not stand in front of the message
            raw = body(inputs)
    except limit.TookTooLong:
        outcome.failure = Failure("TookTooLong", f"{allowed:g} seconds")
        return outcome
    except Exception as error:
        outcome.failure = _describe(error)
        # A leaf that requires gradients refuses an in-place change; without gradients the same call shows what it does.
        if gradients and "leaf Variable that requires grad" in str(error):
            return _watch(body, args, parameters, False, seconds)
        return outcome
    outcome.changed = [name for name in args if not values.close(_detached(inputs[name]), before[name], 0.0)]
    if gradients and not outcome.changed:
        try:
            outcome.gradients = _differentiate(raw, inputs, parameters)
        except RuntimeError as error:
            outcome.backward = _why_not(error, body, args, parameters)
    outcome.value = _detached(raw)
    return outcome


def _copy(x: torch.Tensor | np.ndarray) -> torch.Tensor | np.ndarray:
    return x.detach().clone() if isinstance(x, torch.Tensor) else x.copy()


def _track(x: torch.Tensor | np.ndarray) -> torch.Tensor | np.ndarray:
    return x.requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def _detached(value: Any) -> Any:
    return values.transform(value, lambda x: x.detach() if isinstance(x, torch.Tensor) else x)


def _differentiate(
    raw: Any, inputs: Mapping[str, Any], parameters: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor | None]:
    """The gradient of a fixed weighted sum of the outputs, for every input and parameter.

    Raises:
        RuntimeError: PyTorch's, where it cannot differentiate.
    """
    sources = {name: x for name, x in values.leaves(dict(inputs)) if torch.is_tensor(x) and x.requires_grad}
    sources |= parameters
    total = None
    for _, out in values.leaves(raw, "output"):
        if torch.is_tensor(out) and out.requires_grad:
            # Weights that differ from place to place: an unweighted sum of softmax outputs would have no gradient.
            weights = torch.cos(torch.arange(out.numel(), dtype=torch.float64)).to(out.device, out.dtype)
            part = (out.reshape(-1) * weights).sum()
            total = part if total is None else total + part
    if total is None:
        return dict.fromkeys(sources)
    found = torch.autograd.grad(total, list(sources.values()), allow_unused=True)
    return dict(zip(sources, found, strict=True))


def _why_not(
    error: RuntimeError,
    body: Callable[[Mapping[str, Any]], Any],
    args: Mapping[str, Any],
    parameters: Mapping[str, torch.Tensor],
) -> Failure:
    """PyTorch's reason why it cannot differentiate, and the learner's line whose result it could not use.

    The line is known to PyTorch only if it watches from the start, so the call is made once more.
    """
    failure = _describe(error)
    failure.message = failure.message.split(" Hint:")[0].split("\n")[0]
    inputs = {name: values.transform(values.transform(value, _copy), _track) for name, value in args.items()}
    said: list[str] = []
    with warnings.catch_warnings(record=True) as heard, limit.time_limit(limit.seconds()):
        warnings.simplefilter("always")
        try:
            with torch.autograd.detect_anomaly(check_nan=False):
                _differentiate(body(inputs), inputs, parameters)
        except Exception:  # the same once more, this time with the place in a warning
            said = [str(each.message) for each in heard]
    lines = re.findall(r'File "([^"]+)", line (\d+), in (\S+)\n\s+(.*)', "\n".join(said))
    theirs = [each for each in lines if not each[0].startswith(_NOT_THEIRS)]
    if theirs:
        _, number, name, line = theirs[-1]
        failure.line, failure.number, failure.inside = line.strip(), int(number), [name]
    return failure


def _describe(error: Exception) -> Failure:
    failure = getattr(error, "failure", None)
    if isinstance(failure, Failure):  # raised in another process, and described there
        return failure
    theirs = [
        (frame, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_NOT_THEIRS)
    ]
    failure = Failure(type(error).__name__, str(error))
    # A given helper passes on what it was handed: the line that matters is the learner's own.
    own = [place for place in theirs if _outermost(place[0]) not in given] or theirs
    if own:
        frame, failure.number = own[-1]
        failure.line = linecache.getline(frame.f_code.co_filename, failure.number, frame.f_globals).strip()
        failure.shapes = _shapes(failure.line, frame)
    failure.inside = [_outermost(frame) for frame, _ in reversed(own)]
    failure.foreign = getattr(error, _FOREIGN, False)
    return failure


def _shapes(line: str, frame: types.FrameType) -> dict[str, list[int]]:
    """The shapes of the tensors and arrays that a line names, as they are where it failed."""
    named = {name: frame.f_locals.get(name) for name in re.findall(r"[A-Za-z_]\w*", line)}
    return {name: list(x.shape) for name, x in named.items() if isinstance(x, torch.Tensor | np.ndarray)}


def _outermost(frame: types.FrameType) -> str:
    """The function or class at the top of a cell that a frame belongs to: ``Layer`` for ``Layer.forward``."""
    return frame.f_code.co_qualname.split(".")[0]


def names_used(attempt: Any) -> set[str]:
    """Every variable and attribute that the source of a function or class names; empty where it cannot be read.

    Writing in place shows as ``+=`` (for ``-=`` and the others too) and as ``[]=``.
    """
    if isinstance(attempt, Remote):
        return set(attempt.ask("names_used"))
    functions = [f for f in vars(attempt).values() if callable(f)] if isinstance(attempt, type) else [attempt]
    used: set[str] = set()
    for function in functions:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, TypeError, SyntaxError):
            continue
        used |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        used |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        used |= {"+=" for n in ast.walk(tree) if isinstance(n, ast.AugAssign)}
        used |= {"[]=" for n in ast.walk(tree) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)}
    return used


def run_test(test: Callable, implementations: Sequence[tuple[str, Callable]], seconds: float | None = None) -> dict:
    """Hand each implementation to a learner's test. Maps its name to None (accepted) or to the :class:`Failure`."""
    if isinstance(test, Remote):
        return test.ask("run_test", implementations=implementations, seconds=seconds)
    return {
        name: call(test, {"implementation": _marked(f)}, gradients=False, seconds=seconds).failure
        for name, f in implementations
    }


_FOREIGN = "_raised_by_what_was_handed_over"


def _marked(implementation: Callable) -> Callable:
    """``implementation``, whose own exceptions can be told from those of the test that it is handed to."""

    @functools.wraps(implementation)
    def marked(*args: Any, **kwargs: Any) -> Any:
        try:
            return implementation(*args, **kwargs)
        except Exception as error:
            setattr(error, _FOREIGN, True)
            raise

    return marked
