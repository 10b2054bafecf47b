"""A student's kernel as the examiner sees it: run a cell, ask for a value, notice that it hangs or died."""

import base64
import json
import queue
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq
from jupyter_client import BlockingKernelClient, KernelManager

from . import protocol
from .agent import _ASK

SANDBOXED, OPEN = "attention-student", "attention-cpu"
MOST_OUTPUT = 200_000  # characters kept of what one cell prints or displays
_SERVE = "_answer = __import__('importlib').import_module('attention_course.grading.agent').serve({!r})"


class KernelLost(BaseException):
    """The student's kernel died, or did not answer in time. The message says which.

    A ``BaseException``, so that it reaches the examiner past every check that catches what a student's code raises.
    """


class StudentKernel:
    """One kernel, started with an empty working directory, killed at the end. Use it in a ``with``."""

    def __init__(self, sandboxed: bool = True, start_seconds: float = 60):
        self.name, self.start_seconds = SANDBOXED if sandboxed else OPEN, start_seconds
        self.folder: Path | None = None

    def __enter__(self) -> "StudentKernel":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start a fresh kernel. Its sockets stand in a folder of its own, which goes when it goes."""
        self.folder = Path(tempfile.mkdtemp(prefix="att-"))
        work, sockets = self.folder / "work", self.folder / "sockets"
        work.mkdir()
        sockets.mkdir()
        context = zmq.Context()
        context.setsockopt(zmq.MAXMSGSIZE, 2 * protocol.MOST_BYTES)
        context.setsockopt(zmq.LINGER, 0)
        self.context = context
        self.manager = KernelManager(
            kernel_name=self.name,
            transport="ipc",
            ip=str(sockets / "k"),
            connection_file=str(self.folder / "connection.json"),
            context=context,
        )
        self.manager.start_kernel(cwd=str(work), env={"ATTENTION_GRADING": "1"})
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        try:
            self.client.wait_for_ready(timeout=self.start_seconds)
        except RuntimeError as error:
            self.kill()
            raise KernelLost(f"the kernel did not start: {error}") from None

    def kill(self) -> None:
        """End the kernel and everything it started, and remove its folder."""
        if self.folder is None:
            return
        try:
            self.client.stop_channels()
            self.manager.shutdown_kernel(now=True)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.context.destroy(linger=0)
            self.folder = None

    def run_cell(self, code: str, seconds: float) -> list[dict[str, Any]]:
        """Run a student's cell. Returns its outputs, cut to a length.

        Raises:
            KernelLost: if the kernel dies, or the cell takes longer than ``seconds``.
        """
        self._drain()
        asked = self.client.execute(code, allow_stdin=False, store_history=True)
        self._reply(asked, seconds, None)
        end = time.monotonic() + 2  # what a cell shows travels on another channel than its reply, and may come later
        while time.monotonic() < end and self._size < 2 * MOST_OUTPUT:
            self._drain(keep=True)
            if any(_is_idle(message, asked) for message in self._pending):
                break
            time.sleep(0.01)
        return self._outputs(asked)

    def ask(self, request: dict[str, Any], seconds: float, implementations: list[tuple[str, Callable]] | None = None) -> Any:
        """Send a request to the agent in the kernel. Returns its answer, undecoded.

        Raises:
            KernelLost: if the kernel dies, or takes longer than ``seconds``.
            ProtocolError: if the answer is none.
        """
        text = base64.b64encode(protocol.encode(request).encode()).decode()
        # As a cell, not as an expression: only while a cell runs can the kernel ask back.
        asked = self.client.execute(
            _SERVE.format(text),
            silent=True,
            user_expressions={"answer": "_answer"},
            allow_stdin=implementations is not None,
        )
        reply = self._reply(asked, seconds, implementations)
        try:
            expression = reply["user_expressions"]["answer"]
            shown = expression["data"]["text/plain"]
            return base64.b64decode(shown.strip("'\""), validate=True).decode()
        except (KeyError, TypeError, ValueError, AttributeError):
            raise protocol.ProtocolError("the student's kernel gave no readable answer") from None

    def _reply(self, asked: str, seconds: float, implementations: list[tuple[str, Callable]] | None) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while True:
            if time.monotonic() > end:
                raise KernelLost(f"it took longer than {seconds:.0f} seconds")
            if implementations is not None:
                self._answer_questions(implementations)
            else:
                self._discard_questions()
            try:
                message = self.client.get_shell_msg(timeout=0.02 if implementations is not None else 0.25)
            except queue.Empty:
                if not self.manager.is_alive():
                    raise KernelLost("its kernel died") from None
                self._drain(keep=True)
                continue
            except Exception:  # no message of a kernel's: forged, and not well
                continue
            if _parent(message) == asked:
                return message["content"]

    def _answer_questions(self, implementations: list[tuple[str, Callable]]) -> None:
        """A learner's test calls an implementation that only the examiner has: compute it, send the value back."""
        try:
            message = self.client.get_stdin_msg(timeout=0)
            prompt = str(message["content"].get("prompt", ""))
        except Exception:  # there is none, or it is none
            return
        failure, value, args = None, None, []
        try:
            question = protocol.decode(base64.b64decode(prompt.removeprefix(_ASK)).decode())
            args = question["args"]
            value = implementations[int(question["number"])][1](*args, **question["kwargs"])
        except Exception as error:
            failure = {"kind": type(error).__name__, "message": str(error)[:500]}
        self.client.input(protocol.encode({"failure": failure, "value": value, "args": args}))

    def _discard_questions(self) -> None:
        """Nobody is asked anything now; what comes all the same must not heap up here."""
        for _ in range(100):
            try:
                self.client.get_stdin_msg(timeout=0)
            except queue.Empty:
                return
            except Exception:  # no message of a kernel's: forged, and not well
                continue

    def _outputs(self, asked: str) -> list[dict[str, Any]]:
        outputs, size = [], 0
        for message in self._pending:
            if _parent(message) != asked:
                continue
            kind, content = message.get("msg_type"), message.get("content")
            if kind not in ("stream", "display_data", "execute_result", "error") or not isinstance(content, dict):
                continue
            size += len(json.dumps(content, default=str))
            if size > MOST_OUTPUT:
                outputs.append({"output_type": "stream", "name": "stdout", "text": "\n[the rest of the output was cut]\n"})
                break
            outputs.append(_as_output(kind, content))
        return outputs

    def _drain(self, keep: bool = False) -> None:
        """Take what the kernel has published off its socket, so that a flood never fills the memory here.

        It returns after half a second at the latest: a flood never ends, and the clock of the cell has to be looked at.
        """
        if not keep:
            self._pending: list[dict[str, Any]] = []
            self._size = 0
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=0)
            except queue.Empty:
                return
            except Exception:  # no message of a kernel's: forged, and not well
                continue
            self._size += len(str(message.get("content", "")))
            if self._size < 2 * MOST_OUTPUT or message.get("msg_type") == "status":
                self._pending.append(message)


def _parent(message: dict[str, Any]) -> str | None:
    """Which request a message answers, if it says so."""
    parent = message.get("parent_header")
    return parent.get("msg_id") if isinstance(parent, dict) else None


def _is_idle(message: dict[str, Any], asked: str) -> bool:
    content = message.get("content")
    idle = isinstance(content, dict) and content.get("execution_state") == "idle"
    return idle and message.get("msg_type") == "status" and _parent(message) == asked


def _as_output(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    if kind == "stream":
        return {"output_type": "stream", "name": str(content.get("name", "stdout")), "text": str(content.get("text", ""))}
    if kind == "error":
        trace = [str(line) for line in content.get("traceback", [])]
        name, value = str(content.get("ename", "")), str(content.get("evalue", ""))
        return {"output_type": "error", "ename": name, "evalue": value, "traceback": trace}
    # A picture or a text; never HTML, JavaScript or a widget, which would run in the instructor's browser.
    shown = {k: v for k, v in content.get("data", {}).items() if k in ("text/plain", "image/png") and isinstance(v, str)}
    return {"output_type": "display_data", "data": shown, "metadata": {}}
