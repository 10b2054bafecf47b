"""What ``nbgrader generate_assignment`` gets from this course, on the command line and in the formgrader alike."""

from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor

from . import guard, seal


class SealRelease(NbGraderPreprocessor):
    """Writes into a released notebook what it was released as. It has to be the last preprocessor."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        seal.write(nb)
        return nb, resources


class GuardedExporter(NotebookExporter):
    """Moves work out of ``course/`` before nbgrader deletes the folder it lies in.

    nbgrader's own hook comes after the deletion, and its errors are swallowed; the exporter is made before it, and is
    chosen by configuration.
    """

    def __init__(self, parent: BaseConverter | None = None, **more: Any):
        super().__init__(parent=parent, **more)
        if isinstance(parent, BaseConverter):
            before_generating(parent)


def before_generating(converter: BaseConverter) -> None:
    """Set work aside in each folder that ``converter`` is about to write.

    Raises:
        NbGraderException: if that fails; nbgrader then stops before it deletes anything.
    """
    directory = converter.coursedir
    for source in converter.assignments:
        name = Path(source).name
        if not converter.force and not directory.get_existing_timestamp(source):
            continue  # nbgrader leaves what is there alone
        folder = Path(directory.format_path(directory.release_directory, ".", name))
        try:
            guard.set_aside(Path(directory.root), [folder], converter.log.warning)
        except guard.NotKeptError as error:
            raise NbGraderException(str(error)) from error
