"""What to look at, rung by rung. Whatever names something in the learner's code is said only where it stands there."""

from typing import Any

import numpy as np

from . import observe
from .messages import listing
from .observe import Failure

_BOOLEAN = "A comparison such as <, >= or == gives True and False; ones and zeros are numbers."
_INTEGER = (
    "Whole numbers say where something stands, or which one it is: argmax, topk(...).indices and .long() give them; "
    "max and softmax give what stands there."
)
_PLACES = (
    "Whole numbers say where something stands: argmax and .indices give them; amax and .values give what stands there."
)
_WIDENING = {
    "zeros": "np.zeros makes 64-bit numbers unless it is told: dtype=q.dtype.",
    "ones": "np.ones makes 64-bit numbers unless it is told: dtype=q.dtype.",
    "empty": "np.empty makes 64-bit numbers unless it is told: dtype=q.dtype.",
    "sqrt": "np.sqrt of a whole number is a 64-bit number, which widens what it meets; math.sqrt is not.",
}
_MAKERS = {"arange", "empty", "eye", "full", "linspace", "ones", "rand", "randn", "tensor", "zeros"}
_CONVERTERS = {"bfloat16", "double", "float", "half", "to", "type"}
_CUTS = {
    "detach": ".detach()",
    "item": ".item()",
    "numpy": ".numpy()",
    "tolist": ".tolist()",
    "data": ".data",
    "no_grad": "torch.no_grad()",
    "tensor": "torch.tensor(...)",
    "argmax": "argmax",
    "round": "round",
}
_WRITES = {"+=": "+= (or -=, *=, /=)", "[]=": "x[...] = ..."}


def dtype(attempt: Any, got: Any, expected: Any) -> tuple[str, str]:
    """Headline and advice for a result of another dtype than expected."""
    have, want = (str(x.dtype).removeprefix("torch.") for x in (got, expected))
    if want == "bool":
        return "it should be boolean.", _BOOLEAN
    if want.startswith(("int", "uint")):
        return "it should hold whole numbers.", _INTEGER if have.startswith("float") else ""
    if have.startswith(("int", "uint")):
        return "these are whole numbers, places for example, where values are wanted.", _PLACES
    used = observe.names_used(attempt)
    words = ""
    if isinstance(expected, np.ndarray):
        words = " ".join(advice for name, advice in _WIDENING.items() if name in used)
    elif makers := sorted(used & _MAKERS):
        words = f"What {listing(makers)} makes has PyTorch's own dtype unless it is told: dtype=x.dtype."
    elif converters := sorted(used & _CONVERTERS):
        words = f"Your code has {listing(converters)}, which converts; the inputs come in more than one dtype."
    return "the dtype should follow the input.", words


def changed(attempt: Any) -> str:
    """What to do where an input was written into."""
    used = observe.names_used(attempt)
    seen = [words for mark, words in _WRITES.items() if mark in used]
    seen += sorted(name for name in used if name.endswith("_") and not name.startswith("_"))
    by = f" Your code has {listing(seen)}." if seen else ""
    return (
        f"Something writes into the tensor that was passed in, and a second name is not a copy.{by} Make a new tensor, "
        "as x = x - 1 does, or start from x.clone()."
    )


def no_gradient(attempt: Any, names: list[str]) -> str:
    """What to do where no gradient arrives at ``names``."""
    return _cuts(attempt) or f"From {listing(names)} no step that PyTorch can differentiate leads to the result."


def other_gradient(attempt: Any, name: str) -> str:
    """What to do where the values are right and the gradient at ``name`` is not."""
    return _cuts(attempt) or f"Does every step from {name} to the result pass through PyTorch?"


def _cuts(attempt: Any) -> str:
    used = observe.names_used(attempt)
    seen = [words for name, words in _CUTS.items() if name in used]
    return f"Your code has {listing(seen)}: what passes through there has no gradient." if seen else ""


NOT_FINITE = (
    "A NaN that a later line hides (by a mask, by torch.where) still reaches the gradient, since 0 · NaN is NaN; and a "
    "root or a logarithm has no finite slope at 0. Keep such numbers from arising."
)


def backward(reason: Failure) -> str:
    """What to do where PyTorch cannot differentiate, for the reasons that have a name."""
    if "modified by an inplace operation" in reason.message:
        what = "what this line computed" if reason.line else "a number that the forward pass computed"
        return (
            f"The backward pass needs {what}, and it was written over later. Make a new tensor there in place of "
            "writing into this one (+=, x[...] = ..., a method that ends in _)."
        )
    if "backward through the graph a second time" in reason.message:
        return "The check differentiates your result itself; .backward() or autograd.grad inside uses the graph up."
    return ""
