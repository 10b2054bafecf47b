"""What pyproject.toml cannot say: the word lists of ``assets/words`` go into the wheel, beside their reader."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithWordLists(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "attention_course", "data", "words")
            shutil.copytree("assets/words", target, dirs_exist_ok=True)


setup(cmdclass={"build_py": WithWordLists})
