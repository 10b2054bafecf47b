"""Where a lesson computes, and where its random numbers come from.

A lesson prints the same on a CPU and on a GPU. Two habits make that true: random numbers are always drawn on the CPU
and then moved, and the device is asked for once, here.
"""

import os
import random

import numpy as np
import torch

VARIABLE = "ATTENTION_DEVICE"


class DeviceError(RuntimeError):
    """The device that was asked for is not on this machine."""


def pick() -> torch.device:
    """The device that ``ATTENTION_DEVICE`` names (``cpu`` or ``cuda``); without it, a GPU if there is one.

    Raises:
        DeviceError: if the variable names a device that is unknown, or that this machine does not have.
    """
    wanted = os.environ.get(VARIABLE, "").strip().lower()
    if wanted == "":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if wanted == "cpu":
        return torch.device("cpu")
    if wanted in ("cuda", "gpu"):
        if torch.cuda.is_available():
            return torch.device("cuda")
        raise DeviceError(
            f"{VARIABLE}={wanted} asks for a GPU, and PyTorch sees none here. "
            f"Set {VARIABLE}=cpu, or choose a runtime with a GPU (in Colab: Runtime, Change runtime type)."
        )
    raise DeviceError(f"{VARIABLE}={wanted!r} is not a device of this course; use cpu or cuda.")


def seed(number: int = 0) -> None:
    """Start every source of random numbers (Python, NumPy, PyTorch) from ``number``."""
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def randn(*shape: int, seed: int) -> torch.Tensor:
    """Standard normal numbers of ``shape``, the same on every device: drawn on the CPU from ``seed``, then moved."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(pick())
