"""What `make lab` puts in front of a learner, asked of the server that it starts; `make teach` has the rest."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import ROOT
from jupyterlab_server.config import get_federated_extensions, get_page_config
from nbformat.v4 import new_code_cell, new_notebook

from attention_course.authoring import seal

LAB = Path("attention_course", "authoring", "lab")
LABEXTENSIONS = [str(Path(sys.prefix, "share", "jupyter", "labextensions"))]


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course of two lessons with a learner's copies, of which the first is finished."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / LAB, root / LAB)
    about = {"solution": True, "grade": False, "locked": False, "schema_version": 3, "task": False}
    for name, answer in (("01_one", "done = True"), ("02_two", "raise NotImplementedError")):
        cell = new_code_cell(answer, id="answer", metadata={"nbgrader": about | {"grade_id": "answer"}})
        place = root / "work" / name / f"{name}.ipynb"
        place.parent.mkdir(parents=True)
        place.write_bytes(seal.dump(new_notebook(cells=[cell])))
    (root / "work" / ".released").mkdir()
    (root / "solutions").mkdir()
    return root


@pytest.fixture(scope="module")
def server(course, tmp_path_factory):
    """The address of the server that `make lab` would start in that course, with an empty home."""
    home = tmp_path_factory.mktemp("home")
    settings = {"JUPYTER_CONFIG_PATH": str(course / LAB), "HOME": str(home), "JUPYTER_RUNTIME_DIR": str(home / "run")}
    options = ["--no-browser", "--port=0", "--IdentityProvider.token=", "--allow-root"]
    log = (home / "log").open("w+")
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("jupyter-lab")), *options],
        cwd=course, env=os.environ | settings, stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        for _ in range(600):
            found = re.search(r"http://127\.0\.0\.1:\d+", (home / "log").read_text())
            if found or process.poll() is not None:
                break
            time.sleep(0.1)
        assert found, (home / "log").read_text()
        yield found[0]
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def fetch(address: str) -> tuple[str, str]:
    """Where an address ends up, and what is there."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.url, answer.read().decode()


def test_the_first_unfinished_lesson_opens_beside_the_list_of_all(server):
    where, _ = fetch(server)
    assert where.rstrip("&") == f"{server}/lab/tree/02_two/02_two.ipynb?file-browser-path=/"


def test_a_learner_sees_the_lessons_and_nothing_else(server):
    _, listing = fetch(f"{server}/api/contents/")
    assert sorted(each["name"] for each in json.loads(listing)["content"]) == ["01_one", "02_two"]


def test_there_is_one_kernel(server):
    _, kernels = fetch(f"{server}/api/kernelspecs")
    assert list(json.loads(kernels)["kernelspecs"]) == ["python3"]


def test_widths_and_settings_reach_the_page(server):
    _, css = fetch(f"{server}/custom/custom.css")
    assert css == (ROOT / LAB / "custom" / "custom.css").read_text()
    _, page = fetch(f"{server}/lab")
    assert "custom/custom.css" in page
    tracker = json.loads(fetch(f"{server}/lab/api/settings/@jupyterlab/notebook-extension:tracker")[1])
    assert tracker["schema"]["properties"]["codeCellConfig"]["default"]["lineWrap"] is True


def test_nothing_of_an_instructor_is_served(server):
    for path in ("formgrader", "assignments", "course_list"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            fetch(f"{server}/{path}")
        assert caught.value.code == 404, path


def test_an_instructors_menus_are_off_for_this_server_alone(monkeypatch):
    installed = set(get_federated_extensions(LABEXTENSIONS))
    off = set(json.loads((ROOT / LAB / "labconfig" / "page_config.json").read_text())["disabledExtensions"])
    assert {"@jupyter/nbgrader", "jupyterlab-jupytext"} <= off & installed, "under the names that they are installed by"
    assert not {name for name in off if not name.startswith("@jupyterlab/")} - installed
    assert "@jupyter/nbgrader" not in get_page_config(LABEXTENSIONS).get("disabledExtensions", {})
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(ROOT / LAB))
    assert "@jupyter/nbgrader" in get_page_config(LABEXTENSIONS)["disabledExtensions"]


def test_teach_opens_the_whole_repository_as_it_is(tmp_path):
    if not (ROOT / ".venv" / ".ready").exists():
        pytest.skip("the tests run in an environment that make did not set up")
    lines = {
        target: subprocess.run(
            ["make", "-n", target, "LAB_ARGS=--port 8888"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for target in ("lab", "teach")
    }
    assert "attention-course work" in lines["lab"]
    assert str(LAB) in lines["lab"]
    assert f'--ServerApp.root_dir="{ROOT}"' in lines["teach"]
    assert str(LAB) not in lines["teach"]
    assert all("--port 8888" in each for each in lines.values())
