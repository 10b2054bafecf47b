"""What lets "Run All" in a student's notebook go on past an exercise that is not written yet."""

from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

TAG = "raises-exception"


class GoOn(NbGraderPreprocessor):
    """Tags the code cells of a released notebook, so that JupyterLab does not stop at the first one that fails.

    An unsolved lesson then says at each place what is missing there, and its progress row shows the rest. Only the
    setup cell stops everything: without it nothing below can run. Colab does not know the tag. Solutions do not carry
    it, and grading starts from those, so nothing is forgiven there. nbclient forgives where the tag stands: who runs
    a student's notebook as a proof looks at its outputs, or sets ``force_raise_errors``.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        for cell in nb.cells:
            if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade_id") != "setup":
                tags = cell.metadata.setdefault("tags", [])
                if TAG not in tags:
                    tags.append(TAG)
        return nb, resources
