"""The sandbox around a student's kernel: bubblewrap, seccomp, and limits on the whole tree of processes.

One function, :func:`policy`, holds the policy: what is mounted, what is not, and how much of everything there is. The
provisioner at the end is how Jupyter starts a kernel in it.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.provisioning import LocalProvisioner

PACKAGE = Path(__file__).resolve().parents[1]
HOME = "/home/student"
GIB, MIB = 2**30, 2**20


class SandboxMissing(RuntimeError):
    """This machine cannot make the sandbox. The message says what to install."""


@dataclass(frozen=True)
class Limits:
    """How much a submission may use: bytes, processes and threads, open files, seconds."""

    memory: int = 3 * GIB
    address_space: int = 16 * GIB
    processes: int = 200
    file_size: int = 64 * MIB
    scratch: int = 256 * MIB
    sockets: int = 16 * MIB
    open_files: int = 512


# System calls that a lesson never needs and that kernels have been broken through.
FORBIDDEN_CALLS = (
    "acct", "add_key", "bpf", "clock_adjtime", "clock_settime", "delete_module", "fanotify_init", "finit_module",
    "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup",
    "ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mount", "mount_setattr",
    "move_mount", "name_to_handle_at", "open_by_handle_at", "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root",
    "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace", "quotactl", "reboot", "request_key", "setdomainname",
    "sethostname", "setns", "settimeofday", "swapoff", "swapon", "syslog", "umount2", "unshare", "userfaultfd", "vhangup",
)  # fmt: skip


def missing() -> list[str]:
    """What keeps this machine from sandboxing, in words, each with what to do. Empty where nothing does."""
    found = []
    if sys.platform != "linux":
        return ["The sandbox needs Linux. On another system, grade in a Linux container or virtual machine."]
    if not shutil.which("bwrap"):
        found.append("bubblewrap is missing. On Debian or Ubuntu: sudo apt install bubblewrap.")
    elif os.system("bwrap --ro-bind / / --unshare-all --unshare-user true >/dev/null 2>&1"):
        found.append(
            "bubblewrap cannot make a user namespace here. Allow it: sudo sysctl kernel.unprivileged_userns_clone=1 "
            "(and on Ubuntu 24.04 or newer kernel.apparmor_restrict_unprivileged_userns=0), or grade on another machine."
        )
    if not shutil.which("prlimit"):
        found.append("prlimit is missing. On Debian or Ubuntu: sudo apt install util-linux.")
    try:
        _filter()
    except Exception as error:
        found.append(f"The system-call filter cannot be made ({error}). On Debian or Ubuntu: sudo apt install libseccomp2.")
    return found


def policy(sockets: Path, connection: Path, limits: Limits, seccomp: int) -> list[str]:
    """The arguments for bubblewrap: what a kernel sees, and what it may do.

    Args:
        sockets: the folder of the kernel's sockets, the one place that is writable and shared with this side.
        connection: the connection file, not in that folder, which the kernel may read.
        seccomp: the file descriptor of the system-call filter.
    """
    argv = [
        "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--uid", "65534", "--gid", "65534", "--hostname", "student", "--clearenv", "--seccomp", str(seccomp),
        "--ro-bind", "/usr", "/usr",
    ]  # fmt: skip
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        place = Path("/", name)
        if place.is_symlink():
            argv += ["--symlink", os.readlink(place), str(place)]
        elif place.exists():
            argv += ["--ro-bind", str(place), str(place)]
    for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "fonts", "localtime", "alternatives"):
        argv += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    argv += [
        "--proc", "/proc", "--dev", "/dev",
        "--size", str(limits.scratch), "--tmpfs", "/tmp",
        "--size", str(limits.scratch), "--tmpfs", HOME,
    ]  # fmt: skip
    for place in _interpreter():  # after /tmp and the home: a checkout may lie in either
        argv += ["--ro-bind", place, place]
    for place in _instructors_packages():
        argv += ["--tmpfs", place, "--remount-ro", place]
    argv += [
        "--bind", str(sockets), str(sockets), "--ro-bind", str(connection), str(connection),
        "--chdir", HOME,
    ]  # fmt: skip
    for name, value in _environment().items():
        argv += ["--setenv", name, value]
    cache = _font_cache()
    if cache:
        argv += ["--ro-bind", str(cache), f"{HOME}/.config/matplotlib/{cache.name}"]
    return [*argv, "--remount-ro", "/"]


def limited(inner: list[str], limits: Limits) -> list[str]:
    """The command ``inner`` with the limits that hold for one process."""
    return [
        "prlimit", f"--as={limits.address_space}", f"--fsize={limits.file_size}", f"--nofile={limits.open_files}",
        f"--nproc={limits.processes}", "--core=0", "--", *inner,
    ]  # fmt: skip


def _descriptor(content: bytes) -> int:
    """A file descriptor from which a child reads ``content``; the file has no name."""
    descriptor, name = tempfile.mkstemp()
    os.unlink(name)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _interpreter() -> list[str]:
    """The folders that Python and its packages are in, and of this repository the package alone."""
    wanted = {sys.prefix, sys.base_prefix, sysconfig.get_paths()["purelib"], str(PACKAGE)}
    kept: list[str] = []
    for place in sorted(str(Path(p).resolve()) for p in wanted) + sorted(wanted):
        inside = place.startswith("/usr/") or any(place == k or place.startswith(k + "/") for k in kept)
        if not inside and place != "/usr":
            kept.append(place)
    return kept


def _instructors_packages() -> list[str]:
    """Folders of packages that only grading uses. A kernel sees them empty: they hold example courses and answers."""
    found = (Path(sysconfig.get_paths()["purelib"], name) for name in ("nbgrader", "nbval", "jupytext"))
    return [str(place) for place in found if place.is_dir()]


def _environment() -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": HOME,
        "USER": "student",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "JUPYTER_PLATFORM_DIRS": "1",
        "MPLCONFIGDIR": f"{HOME}/.config/matplotlib",
        "ATTENTION_DEVICE": "cpu",
        "ATTENTION_GRADING": "1",  # lessons that train something for a minute leave it out
        "ATTENTION_STATIC_FIGURES": "1",
        "ATTENTION_CHECK_SECONDS": os.environ.get("ATTENTION_CHECK_SECONDS", "20"),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def _font_cache() -> Path | None:
    """Matplotlib's list of fonts, if this user has one: without it every kernel would make its own."""
    import matplotlib

    found = sorted(Path(matplotlib.get_cachedir()).glob("fontlist-*.json"))
    return found[-1] if found else None


def _filter() -> bytes:
    """The compiled system-call filter: everything is allowed but :data:`FORBIDDEN_CALLS`, which fail with EPERM."""
    import errno

    import pyseccomp

    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in FORBIDDEN_CALLS:
        with contextlib.suppress(ValueError, OSError):  # a call that this machine's kernel does not know
            rules.add_rule(pyseccomp.ERRNO(errno.EPERM), name)
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


class Watcher(threading.Thread):
    """Kills the sandbox when the tree of processes in it, or its socket folder, grows over its limits.

    Limits of a single process do not add up over its children. Where the machine has control groups they come on top.
    """

    def __init__(self, pid: int, folder: Path, limits: Limits):
        super().__init__(daemon=True)
        self.pid, self.folder, self.limits = pid, folder, limits
        self.done = threading.Event()
        self.reason = ""
        self.group = ControlGroup(pid, limits)

    def run(self) -> None:
        while not self.done.wait(0.05):
            try:
                tree = [psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)]
            except psutil.NoSuchProcess:
                break
            memory = 0
            for process in tree:
                with contextlib.suppress(psutil.NoSuchProcess):
                    memory += process.memory_info().rss
            if memory > self.limits.memory:
                self._kill(tree, "memory")
            elif len(tree) > self.limits.processes:
                self._kill(tree, "processes")
            elif _size(self.folder) > self.limits.sockets:
                self._kill(tree, "disk")
        self.group.remove()

    def _kill(self, tree: list[psutil.Process], reason: str) -> None:
        self.reason = reason
        for process in tree[:1]:  # bubblewrap first: with the first process of its namespace, all of it ends
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for process in tree[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


class ControlGroup:
    """A control group for one sandbox, version 2 or 1, where this user may make one; else nothing."""

    def __init__(self, pid: int, limits: Limits):
        self.places: list[Path] = []
        root = Path("/sys/fs/cgroup")
        name = f"attention-{pid}"
        if (root / "cgroup.controllers").exists():
            settings = {root / name: {"memory.max": limits.memory, "memory.swap.max": 0, "pids.max": limits.processes}}
        else:
            settings = {
                root / "memory" / name: {"memory.limit_in_bytes": limits.memory},
                root / "pids" / name: {"pids.max": limits.processes},
            }
        for place, files in settings.items():
            try:
                place.mkdir()
                self.places.append(place)
                for file, value in files.items():
                    with contextlib.suppress(FileNotFoundError):
                        (place / file).write_text(str(value))
                for process in [pid, *(c.pid for c in psutil.Process(pid).children(recursive=True))]:
                    (place / "cgroup.procs").write_text(str(process))
            except (OSError, psutil.Error):
                continue

    def remove(self) -> None:
        for place in self.places:
            for _ in range(20):
                try:
                    place.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.05)


def _size(folder: Path) -> int:
    total = 0
    for base, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(base, name)).st_size
    return total


class SandboxProvisioner(LocalProvisioner):
    """Starts a kernel inside the sandbox. Kernelspecs choose it by the name ``attention-sandbox``."""

    watcher: Watcher | None = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        problems = missing()
        if problems:
            raise SandboxMissing("Student code is not run here. " + " ".join(problems))
        manager = self.parent
        if manager is None or manager.transport != "ipc":
            raise SandboxMissing("A sandboxed kernel has no network: its manager needs transport='ipc'.")
        connection, sockets = Path(manager.connection_file).resolve(), Path(manager.ip).resolve().parent
        if sockets in connection.parents:
            raise SandboxMissing("The connection file of a sandboxed kernel must not lie among its sockets.")
        limits, held = Limits(), [_descriptor(_filter())]
        try:
            # What is mounted goes by a file, not by the command line, which the student can read at /proc/1/cmdline.
            arguments = policy(sockets, connection, limits, held[0])
            held.append(_descriptor("\0".join(arguments).encode() + b"\0"))
            # bubblewrap's own environment can be read inside, at /proc/1/environ: it gets none.
            kwargs |= {"env": {}, "cwd": "/", "pass_fds": tuple(held)}
            # What a kernel says outside its channels is nobody's business.
            kwargs |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            bwrap = shutil.which("bwrap") or "bwrap"
            info = await super().launch_kernel([bwrap, "--args", str(held[1]), "--", *limited(cmd, limits)], **kwargs)
        finally:
            for descriptor in held:
                os.close(descriptor)
        self.watcher = Watcher(self.process.pid, sockets, limits)
        self.watcher.start()
        return info

    async def cleanup(self, restart: bool = False) -> None:
        if self.watcher is not None:
            self.watcher.done.set()
            self.watcher.join(timeout=5)
        await super().cleanup(restart)
