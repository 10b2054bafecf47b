"""JupyterLab for who edits the lessons: ``jupyter lab --config=...`` with the path of this file."""

import warnings

from attention_course.authoring.contents import after_saving, before_saving

c = get_config()  # noqa: F821 (the server defines it)

# The server reads its configuration twice, and warns the second time that a hook is there already.
warnings.filterwarnings("ignore", "Overriding existing (pre|post)_save_hook")
c.FileContentsManager.pre_save_hook = before_saving
c.FileContentsManager.post_save_hook = after_saving
# A lesson's text opens as text. jupytext would write the whole file anew on each save.
c.ServerApp.jpserver_extensions = {"jupyterlab_jupytext": False}
