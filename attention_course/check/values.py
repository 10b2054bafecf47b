"""Values as plain data: a tree of lists, dicts and numbers, with the arrays beside it.

This is how inputs, expected outputs and the outputs of known mistakes are stored: numbers only, no code and no pickle.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch


def pack(value: Any, arrays: "Arrays", other: Callable[[Any], Any] | None = None) -> Any:
    """Turn ``value`` into something JSON can hold; tensors and arrays go into ``arrays`` under fresh names.

    ``other`` describes what is none of the things named below; its answer is stored as ``{"object": answer}``.

    Raises:
        TypeError: for anything that is not a tensor, array, number, string, boolean, None, list, tuple or dict.
    """
    if isinstance(value, torch.Tensor):
        return {"tensor": arrays.store(value.detach().cpu().numpy())}
    if isinstance(value, np.ndarray):
        return {"array": arrays.store(value)}
    if isinstance(value, np.generic):
        return {"array": arrays.store(np.asarray(value))}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return {
            type(value).__name__ if type(value) in (list, tuple) else "tuple": [pack(v, arrays, other) for v in value]
        }
    if isinstance(value, dict):
        return {"dict": {str(key): pack(v, arrays, other) for key, v in value.items()}}
    if other is not None:
        return {"object": other(value)}
    raise TypeError(f"a {type(value).__name__} cannot be stored as numbers")


def unpack(
    tree: Any,
    arrays: Mapping[str, np.ndarray],
    device: torch.device | str = "cpu",
    other: Callable[[Any], Any] | None = None,
) -> Any:
    """The value that :func:`pack` stored, with its tensors on ``device``. Every call makes fresh copies."""
    if not isinstance(tree, dict):
        return tree
    ((kind, content),) = tree.items()
    if kind == "tensor":
        return torch.from_numpy(arrays[content].copy()).to(device)
    if kind == "object" and other is not None:
        return other(content)
    if kind == "array":
        return arrays[content].copy()
    if kind == "dict":
        return {key: unpack(v, arrays, device, other) for key, v in content.items()}
    if kind not in ("list", "tuple"):
        raise ValueError(f"{kind!r} is not a kind of value")
    items = [unpack(v, arrays, device, other) for v in content]
    return tuple(items) if kind == "tuple" else items


class Arrays(dict[str, np.ndarray]):
    """Arrays by name. One that is there already, bit for bit, is not stored twice."""

    def __init__(self, content: Mapping[str, np.ndarray] | None = None):
        super().__init__(content or {})
        self._names = {_bits(array): name for name, array in self.items()}

    def store(self, array: np.ndarray) -> str:
        """The name of ``array``, which is stored under a fresh one unless it is there."""
        bits = _bits(array)
        if bits not in self._names:
            self._names[bits] = f"a{len(self)}"
            self[self._names[bits]] = np.array(array)
        return self._names[bits]


def _bits(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    """What tells two arrays apart, 0 from -0 included."""
    return array.dtype.str, array.shape, array.tobytes()


def transform(value: Any, change: Callable[[torch.Tensor | np.ndarray], Any]) -> Any:
    """``value`` with ``change`` applied to every tensor and array in it."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return change(value)
    if isinstance(value, list | tuple):
        kind = list if isinstance(value, list) else tuple  # also for a named tuple, which wants its fields one by one
        return kind(transform(v, change) for v in value)
    if isinstance(value, dict):
        return {key: transform(v, change) for key, v in value.items()}
    return value


def leaves(value: Any, name: str = "") -> list[tuple[str, torch.Tensor | np.ndarray]]:
    """Every tensor and array in ``value``, each with the path that leads to it."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return [(name, value)]
    if isinstance(value, list | tuple):
        return [leaf for i, v in enumerate(value) for leaf in leaves(v, f"{name}[{i}]")]
    if isinstance(value, dict):
        return [leaf for key, v in value.items() for leaf in leaves(v, f"{name}[{key!r}]" if name else str(key))]
    return []


def as_array(value: Any) -> np.ndarray | None:
    """A number, tensor or array as a NumPy array; None for anything else."""
    if isinstance(value, torch.Tensor):
        if value.is_meta:  # a tensor without numbers equals nothing, not even itself
            return np.full(tuple(value.shape), np.nan)
        value = value.to_dense() if value.layout != torch.strided else value
        return value.detach().to("cpu", torch.float64 if value.is_floating_point() else value.dtype).numpy()
    if isinstance(value, np.ndarray | np.generic | bool | int | float):
        return np.asarray(value)
    return None


def close(a: Any, b: Any, tolerance: float) -> bool:
    """Are two values the same? A number may be off by ``tolerance`` times the larger of its size and that of the whole.

    The size of the whole is the largest finite number in ``b``, held between 0.1 and 10.
    """
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key], tolerance) for key in a)
    x, y = as_array(a), as_array(b)
    if x is None or y is None:
        return type(a) is type(b) and a == b
    if x.shape != y.shape:
        return False
    if x.dtype.kind not in "fiub" or y.dtype.kind not in "fiub":
        return bool(np.array_equal(x, y))
    finite = np.abs(y[np.isfinite(y)]) if y.size else y
    scale = float(finite.max()) if finite.size else 0.0
    x, y = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(x - y) <= tolerance * np.maximum(np.abs(y), max(0.1, min(scale, 10.0)))
    return bool(np.all(near & np.isfinite(y) | (x == y) | (np.isnan(x) & np.isnan(y))))
