"""The examiner's hand in the student's kernel: it looks names up, calls what it finds, and sends values back.

It runs beside code that may lie, so nothing here decides anything. A student who tampers with it changes only what their
own process answers.
"""

import base64
import builtins
import types
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from typing import Any

import torch

from ..check import observe
from . import protocol

_objects: dict[int, Any] = {}
_ASK = "attention-course asks:"


def serve(request: str) -> str:
    """Answer one request of the examiner: base64 of an encoded dict with ``operation``, ``target`` and its arguments."""
    message = protocol.decode(base64.b64decode(request).decode())
    try:
        answer = _OPERATIONS[message.pop("operation")](**message)
        text = protocol.encode({"answer": answer}, _keep)
    except Exception as error:
        text = protocol.encode({"problem": f"{type(error).__name__}: {error}"[:500]})
    return base64.b64encode(text.encode()).decode()


def _keep(value: Any) -> dict[str, Any]:
    """An object stays here; the examiner gets a number to call it by."""
    number = len(_objects)
    _objects[number] = value
    return {"handle": number, "kind": observe.kind(value)}


def _find(target: dict[str, Any]) -> Any:
    if "handle" in target:
        return _objects[target["handle"]]
    return _names()[target["name"]]


def _names() -> dict[str, Any]:
    from IPython import get_ipython

    return get_ipython().user_ns


def _describe(target: dict[str, Any]) -> dict[str, Any]:
    if "name" in target and target["name"] not in _names():
        return {"exists": False, "callable": False, "module_class": False, "kind": "nothing"}
    return observe.describe(_find(target))


def _outcome(outcome: observe.Outcome) -> dict[str, Any]:
    plain = {"value": outcome.value, "changed": outcome.changed, "gradients": outcome.gradients}
    troubles = {"failure": outcome.failure, "backward": outcome.backward}
    return plain | {name: asdict(trouble) if trouble else None for name, trouble in troubles.items()}


def _call(target: dict[str, Any], args: dict[str, Any], gradients: bool, seconds: float | None) -> dict[str, Any]:
    return _outcome(observe.call(_find(target), args, gradients=gradients, seconds=seconds))


def _build(target: dict[str, Any], init: dict[str, Any], seconds: float | None) -> dict[str, Any]:
    module, outcome = observe.build(_find(target), init, seconds=seconds)
    return {"module": module if isinstance(module, torch.nn.Module) else None, "outcome": _outcome(outcome)}


def _apply(target: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    return _outcome(observe.apply(_find(target), **arguments))


def _invoke(target: dict[str, Any], args: list[Any], kwargs: dict[str, Any], seconds: float | None) -> dict[str, Any]:
    function = _find(target)

    def body(*_: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, types.GeneratorType | map | filter | zip):
            return list(islice(result, 10_000))
        return result

    return _outcome(observe.call(body, {}, gradients=False, seconds=seconds))


def _attribute(target: dict[str, Any], name: str) -> dict[str, Any]:
    return _outcome(observe.call(lambda: getattr(_find(target), name), {}, gradients=False))


def _run_test(target: dict[str, Any], count: int, seconds: float | None) -> dict[str, Any]:
    """The verdicts by number. What the numbers stand for, and in which order they come, the examiner keeps to itself."""
    implementations = [(str(number), _implementation(number)) for number in range(count)]
    verdicts = observe.run_test(_find(target), implementations, seconds)
    return {name: asdict(v) if v else None for name, v in verdicts.items()}


def _implementation(number: int) -> Callable:
    """An implementation that the examiner holds. A call asks it over the kernel's own input channel."""

    def implementation(*args: Any, **kwargs: Any) -> Any:
        question = protocol.encode({"number": number, "args": list(args), "kwargs": kwargs})
        reply = protocol.decode(builtins.input(_ASK + base64.b64encode(question.encode()).decode()))
        if reply["failure"]:
            kind = getattr(builtins, reply["failure"]["kind"], RuntimeError)
            raise (kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError)(
                reply["failure"]["message"]
            )
        for mine, theirs in zip(args, reply["args"], strict=True):
            if isinstance(mine, torch.Tensor) and not torch.equal(mine.nan_to_num(), theirs.nan_to_num()):
                mine.data.copy_(theirs)  # an implementation that writes into its input did so over there
        return reply["value"]

    return implementation


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "describe": _describe,
    "call": _call,
    "build": _build,
    "apply": _apply,
    "invoke": _invoke,
    "attribute": _attribute,
    "run_test": _run_test,
    "parameter_shapes": lambda target: observe.parameter_shapes(_find(target)),
    "names_used": lambda target: sorted(observe.names_used(_find(target))),
}
