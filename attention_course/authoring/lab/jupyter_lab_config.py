"""What `make lab` shows a learner: the lessons in work/ and one kernel. Nothing of this is written into anybody's home.

Jupyter finds this folder through JUPYTER_CONFIG_PATH, with the files beside it: `labconfig/` turns an instructor's
menus off and holds settings, `jupyter_server_config.d/` turns off what serves those menus, `custom/` has the widths.
"""

from pathlib import Path

from attention_course.authoring.work import first_unfinished

c = get_config()  # noqa: F821 (Jupyter defines it)
root = Path(__file__).resolve().parents[3]
first = first_unfinished(root)

c.ServerApp.root_dir = str(root / "work")
c.ServerApp.tornado_settings = {"static_custom_path": [str(Path(__file__).resolve().parent / "custom")]}
c.LabApp.custom_css = True
# What was open is remembered here and not in the home, where `make teach` and other projects have theirs.
c.LabApp.workspaces_dir = str(root / "work" / ".workspaces")
# The lesson, and beside it the list of all of them.
lesson = f"/lab/tree/{first.relative_to(root / 'work').as_posix()}?file-browser-path=/" if first else "/lab"
c.LabApp.default_url = lesson
# The kernels that prove solutions and run submissions are for instructors.
c.KernelSpecManager.allowed_kernelspecs = {"python3"}
