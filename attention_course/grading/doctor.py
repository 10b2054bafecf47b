"""What this machine offers for grading, and what is missing, in words."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.provisioning import KernelProvisionerFactory

from . import sandbox
from .kernel import KernelLost, StudentKernel

Finding = tuple[bool, str, str]


def examine_machine() -> list[Finding]:
    """One finding a line: whether it is well, what was looked at, and what to know or to do."""
    found: list[Finding] = [
        (sys.version_info >= (3, 11), "Python", f"{platform.python_version()} in {sys.prefix}"),
        (True, "nbgrader", importlib.metadata.version("nbgrader")),
        _kernelspec(),
    ]
    problems = sandbox.missing()
    found += [(False, "sandbox", problem) for problem in problems]
    if not problems:
        version = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False).stdout.strip()
        found.append((True, "sandbox", f"{version}: own namespaces, no network, {len(sandbox.FORBIDDEN_CALLS)} system calls shut"))
        found.append(_started())
    found.append(_groups())
    found.append(
        (os.geteuid() != 0, "user", "an ordinary one")
        if os.geteuid() != 0
        else (False, "user", "You are root. It works, but grade as an ordinary user where you can: one wall more.")
    )
    return found


def _kernelspec() -> Finding:
    try:
        spec = KernelSpecManager().get_kernel_spec("attention-student")
        if not KernelProvisionerFactory.instance().is_provisioner_available(spec):
            return (False, "kernel", "Jupyter does not know the sandbox: attention-course-instructor is missing. Run: make setup")
        place = spec.resource_dir
        return (Path(place).is_relative_to(sys.prefix), "kernel", f"attention-student, in {place}")
    except NoSuchKernel:
        return (False, "kernel", "attention-student is not installed. Run: attention-course kernels")


def _started() -> Finding:
    try:
        with StudentKernel() as kernel:
            said = kernel.run_cell("import os; print(os.getcwd(), sorted(os.listdir('/')))", 30)
        return (True, "trial", f"a kernel ran in it and saw {said[0]['text'].strip()}")
    except (KernelLost, IndexError, KeyError) as error:
        return (False, "trial", f"a kernel did not run in it: {error}")


def _groups() -> Finding:
    version = "2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "1"
    place = Path("/sys/fs/cgroup" if version == "2" else "/sys/fs/cgroup/memory")
    if os.access(place, os.W_OK) and shutil.which("bwrap"):
        return (True, "control groups", f"version {version}: the limits on memory and processes are the kernel's own")
    return (
        True,
        "control groups",
        "none that this user may use: a watcher adds up memory and processes twenty times a second in their place",
    )
