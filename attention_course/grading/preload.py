"""Imported once, by the process that all examiners of a run are forked from: two seconds saved for each submission."""

import torch

from .. import device, plots
from . import examiner

__all__ = ["device", "examiner", "plots"]

torch.testing.assert_close(torch.zeros(1), torch.zeros(1))  # its first call imports half a thousand modules
