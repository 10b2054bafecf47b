"""Values on their way between the examiner and a student's kernel: JSON and safetensors, never pickle.

What arrives was written by a stranger. It is bounded in bytes, in depth and in the number of its parts before anything is
made of it, and whatever does not parse is a :class:`ProtocolError`.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from ..check import values

MOST_BYTES = 32 * 2**20
MOST_DEPTH = 24
MOST_PARTS = 20_000


class ProtocolError(ValueError):
    """A message that is too large, too deep or not well formed."""


def encode(value: Any, other: Callable[[Any], dict] | None = None) -> str:
    """``value`` as text. ``other`` describes what is no plain value, as ``{"object": ...}``.

    Raises:
        ProtocolError: if the value is too large.
        TypeError: for an object, where ``other`` is not given.
    """
    arrays = values.Arrays()
    tree = values.pack(value, arrays, other)
    _measure(tree)
    blob = base64.b64encode(save({k: np.asarray(a, order="C") for k, a in arrays.items()})).decode() if arrays else ""
    text = json.dumps({"tree": tree, "arrays": blob})
    if len(text) > MOST_BYTES:
        raise ProtocolError(f"a value of {len(text) / 2**20:.0f} MiB is more than the {MOST_BYTES // 2**20} that may cross")
    return text


def decode(text: str, other: Callable[[Any], Any] | None = None) -> Any:
    """The value that :func:`encode` wrote. ``other`` makes something of each ``{"object": ...}``.

    Raises:
        ProtocolError: for anything that :func:`encode` would not have written.
    """
    if len(text) > MOST_BYTES:
        raise ProtocolError("the message is too large")
    try:
        message = json.loads(text)
        tree, blob = message["tree"], message["arrays"]
        _measure(tree)
        arrays = load(base64.b64decode(blob, validate=True)) if blob else {}
        return values.unpack(tree, arrays, other=other)
    except ProtocolError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError, OverflowError) as error:
        raise ProtocolError(f"the message does not parse ({type(error).__name__})") from None
    except Exception as error:  # safetensors raises types of its own
        raise ProtocolError(f"the arrays do not parse ({type(error).__name__})") from None


def _measure(tree: Any) -> None:
    parts, level = 0, [tree]
    for _ in range(MOST_DEPTH):
        below: list[Any] = []
        for node in level:
            parts += 1
            if isinstance(node, dict):
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
        if parts + len(below) > MOST_PARTS:
            raise ProtocolError(f"a value of more than {MOST_PARTS} parts")
        if not below:
            return
        level = below
    raise ProtocolError(f"a value nested deeper than {MOST_DEPTH} levels")
