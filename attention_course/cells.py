"""Run one notebook cell without a kernel."""

import linecache
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager


def run_cell(name: str, source: str, names: dict[str, Any]) -> None:
    """Run a cell's ``source`` in ``names``, as a notebook would; tracebacks and ``inspect`` find its lines."""
    text = TransformerManager().transform_cell(source)
    file = f"<cell {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
