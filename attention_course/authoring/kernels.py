"""The course's kernels: two that prove the solutions, on a CPU and on a GPU, and the one that student code runs in."""

import shutil
import sys
from pathlib import Path

from ipykernel.kernelspec import make_ipkernel_cmd, write_kernel_spec

KERNELS = {
    "attention-cpu": ("cpu", "Attention course (CPU)"),
    "attention-gpu": ("cuda", "Attention course (GPU)"),
    "attention-student": ("cpu", "Attention course (a student's code, in the sandbox)"),
}


def install_kernels() -> list[Path]:
    """Write the kernelspecs into this virtual environment, and nowhere else. Returns their folders."""
    folders = []
    for name, (device, words) in KERNELS.items():
        folder = Path(sys.prefix, "share", "jupyter", "kernels", name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        overrides = {
            # A warning about unencrypted local sockets would stand in front of every test run.
            "argv": make_ipkernel_cmd(extra_arguments=["--IPKernelApp.log_level=ERROR"]),
            "display_name": words,
            "env": {
                "ATTENTION_DEVICE": device,
                "ATTENTION_STATIC_FIGURES": "1",
                # Small tensors are two to three times faster with one thread than with two.
                "OMP_NUM_THREADS": "1",
                "MKL_NUM_THREADS": "1",
            },
        }
        if name == "attention-student":
            overrides["metadata"] = {"kernel_provisioner": {"provisioner_name": "attention-sandbox"}}
        folders.append(Path(write_kernel_spec(folder, overrides=overrides)))
    return folders
