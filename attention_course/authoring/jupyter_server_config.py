"""JupyterLab for who edits the lessons: ``jupyter lab --config=...`` with the path of this file."""

from attention_course.authoring.contents import after_saving, before_saving

c = get_config()  # noqa: F821 (the server defines it)

c.FileContentsManager.pre_save_hook = before_saving
c.FileContentsManager.post_save_hook = after_saving
# A lesson's text opens as text. jupytext would write the whole file anew on each save.
c.ServerApp.jpserver_extensions = {"jupytext": False}
