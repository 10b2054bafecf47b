"""The picture beside a message: what was expected, what came, and the difference."""

from typing import Any

import numpy as np

from . import values

LARGEST = 16
enabled = True  # the examiner, whose pictures nobody sees, turns it off


def comparison(expected: Any, got: Any, output: dict[str, Any], title: str) -> bool:
    """Draw two matrices and their difference side by side; of a batch, the member that differs most.

    Returns False, and draws nothing, for a number, a vector or a large matrix.
    """
    a, b = values.as_array(expected), values.as_array(got)
    if not enabled or a is None or b is None or a.shape != b.shape or a.ndim < 2 or max(a.shape[-2:]) > LARGEST:
        return False
    if a.dtype.kind not in "fiub" or min(a.shape[-2:]) < 2 or not np.isfinite(b).all():
        return False
    flat_a, flat_b = a.reshape(-1, *a.shape[-2:]).astype(float), b.reshape(-1, *b.shape[-2:]).astype(float)
    member = int(np.abs(flat_a - flat_b).max(axis=(1, 2)).argmax())
    from .. import plots  # here, not above: a check that passes needs no figure

    rows, columns = (output["axes"] or ["row", "column"])[-2:]
    leading = zip((output["axes"] or [])[:-2], np.unravel_index(member, a.shape[:-2]), strict=False)
    which = ", ".join(f"{axis} = {index}" for axis, index in leading) if len(flat_a) > 1 else ""
    which = f" (index {which})" if which else ""
    plots.compare(flat_a[member], flat_b[member], title=title + which, rows=rows, columns=columns)
    return True
