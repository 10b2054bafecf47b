"""Each rule of the sandbox: what is tried, and what it gets."""

import contextlib
import sys
import threading
import time

import psutil
import pytest

from attention_course.grading import sandbox
from attention_course.grading.kernel import KernelLost, StudentKernel

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=" ".join(sandbox.missing()) or "the sandbox is here")

# What is tried, the code whose printed result is looked at, and what it has to be.
RULES = {
    "see its own files only": ("import os; print(os.getcwd(), [name for name in os.listdir() if name[0] != '.'])", "/home/student []"),
    "read the course": ("import os; print([f for base, _, files in os.walk('/') if base[:5] != '/proc' for f in files if f.endswith('.ipynb')])", "[]"),
    "read a password file": ("print(open('/etc/passwd').read())", "FileNotFoundError"),
    "write to the system": ("open('/usr/evil', 'w')", "Read-only file system"),
    "write to the interpreter": ("import sys; open(sys.prefix + '/evil', 'w')", "Read-only file system"),
    "write beside its own files": ("open('/evil', 'w')", "Read-only file system"),
    "write in its own folder": ("open('notes', 'w').write('x'); print(open('notes').read())", "x"),
    "reach the network": ("import socket; socket.create_connection(('127.0.0.1', 80), 2)", "Error"),
    "list network devices": ("import socket; print([n for _, n in socket.if_nameindex()])", "['lo']"),
    "read the grader's environment": ("import os; print('canary' in open('/proc/1/environ').read(), 'canary' in repr(os.environ))", "False False"),
    "see other processes": ("import os; print(len([p for p in os.listdir('/proc') if p.isdigit()]) < 8)", "True"),
    "be root": ("import os; print(os.getuid()); os.setuid(0)", "65534"),
    "become root": ("import os; os.setuid(0)", "Invalid argument"),
    "make a namespace": ("import os; os.unshare(0x10000000) if hasattr(os, 'unshare') else __import__('ctypes').CDLL(None, use_errno=True).unshare(0x10000000) and print('EPERM')", ("EPERM", "Operation not permitted")),
    "trace a process": ("import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))", "-1"),
    "mount": ("import ctypes; print(ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None))", "-1"),
    "write a large file": ("open('large', 'wb').write(bytes(100_000_000))", ("File too large", "File size")),
    "fill the scratch folder": ("[open(f'/tmp/{i}', 'wb').write(bytes(30_000_000)) for i in range(100)]", "No space left"),
    "open many files": ("held = [open('/dev/null') for _ in range(1000)]", "Too many open files"),
    "gain privileges": ("print([l for l in open('/proc/self/status') if l.startswith('NoNewPrivs')][0].split()[1])", "1"),
    "run without a filter": ("print([l for l in open('/proc/self/status') if l.startswith('Seccomp:')][0].split()[1])", "2"),
    "keep a capability": ("print([l for l in open('/proc/self/status') if l.startswith('CapEff')][0].split()[1].strip('0') == '')", "True"),
    "leave a core dump": ("import resource; print(resource.getrlimit(resource.RLIMIT_CORE)[0])", "0"),
    "learn the host's name": ("import socket; print(socket.gethostname())", "student"),
}  # fmt: skip


@pytest.fixture(scope="module")
def kernel():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET", "canary")
        with StudentKernel() as started:
            yield started


@pytest.mark.parametrize("what", RULES)
def test_the_rule_holds(kernel, what):
    code, wanted = RULES[what]
    outputs = kernel.run_cell(code, 20)
    said = " ".join(str(o.get("text", "")) + str(o.get("ename", "")) + " " + str(o.get("evalue", "")) for o in outputs)
    assert any(words in said for words in ([wanted] if isinstance(wanted, str) else wanted)), said


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("memory", "hog = []\nwhile True: hog.append(bytearray(100_000_000))"),
        ("memory of children", "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        hog = bytearray(400_000_000); time.sleep(60)\ntime.sleep(60)"),
        ("processes", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"),
        ("the shared folder", "import os, sys\nplace = os.path.join(os.path.dirname(sys.argv[sys.argv.index('-f') + 1]), 'sockets')\nfor i in range(1000): open(os.path.join(place, str(i)), 'wb').write(bytes(1_000_000))\nimport time; time.sleep(20)"),
        ("time", "while True: pass"),
    ],
)  # fmt: skip
def test_a_hog_is_stopped_with_everything_it_started(what, code):
    with StudentKernel() as kernel:
        pid = kernel.manager.provisioner.process.pid
        began = time.monotonic()
        try:
            outputs = kernel.run_cell(code, 6)
            assert any(o["output_type"] == "error" for o in outputs), "it was neither stopped nor refused"
        except KernelLost:
            pass
        assert time.monotonic() - began < 30
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


# Every message is signed anew: one that came before is refused.
FLOOD = """
import hashlib, hmac, itertools, threading
kernel = get_ipython().kernel
about = kernel.session.msg("stream", {"name": "stdout", "text": "x"}, parent=kernel.get_parent())
*_, header, parent, metadata, content = kernel.session.serialize(about)
def flood():
    for n in itertools.count():
        sign = hmac.HMAC(kernel.session.key, digestmod=hashlib.sha256)
        parts = header, parent, metadata, content[:-1] + b',"n":%d}' % n
        for part in parts:
            sign.update(part)
        kernel.iopub_thread.socket.send_multipart([b"stream", b"<IDS|MSG>", sign.hexdigest().encode(), *parts])
threading.Thread(target=flood, daemon=True).start()
"""


def test_a_flood_of_messages_does_not_stop_the_clock():
    """However fast they come, a cell is answered for or given up in its time."""

    def both(kernel):
        with contextlib.suppress(KernelLost):
            kernel.run_cell(FLOOD, 5)
            kernel.run_cell("1 + 1", 5)
        return True

    with StudentKernel() as kernel:
        watched = threading.Thread(target=both, args=(kernel,), daemon=True)
        watched.start()
        watched.join(60)
        assert not watched.is_alive(), "it is still reading"


def test_without_bubblewrap_nothing_runs_and_a_sentence_says_why(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    said = " ".join(sandbox.missing())
    assert "bubblewrap is missing" in said
    assert "apt install bubblewrap" in said
    with pytest.raises(sandbox.SandboxMissing, match="Student code is not run here"):
        StudentKernel().start()


def test_without_namespaces_a_sentence_says_what_to_change(monkeypatch):
    monkeypatch.setattr(sandbox.os, "system", lambda command: 1)
    assert "kernel.unprivileged_userns_clone" in " ".join(sandbox.missing())


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
def test_a_control_group_goes_when_its_sandbox_goes():
    from pathlib import Path

    with StudentKernel() as kernel:
        pid = kernel.manager.provisioner.process.pid
    time.sleep(0.5)
    assert (
        list(Path("/sys/fs/cgroup").glob(f"*/attention-{pid}")) + list(Path("/sys/fs/cgroup").glob(f"attention-{pid}"))
        == []
    )
