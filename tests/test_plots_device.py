"""Figures carry words, use no global state, and numbers are the same on every device."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from IPython.testing.globalipapp import start_ipython
from IPython.utils.capture import capture_output
from matplotlib.colors import to_rgb

from attention_course import device, plots

start_ipython()

DRAW = {
    "heatmap": lambda: plots.heatmap(torch.eye(2), rows=["a", "b"], columns=["c", "d"], title="t", alt="words for it"),
    "small multiples": lambda: plots.small_multiples(
        [torch.eye(2), torch.zeros(2, 2)],
        titles=["x", "y"],
        rows=["a", "b"],
        columns=["c", "d"],
        title="t",
        alt="words",
    ),
    "lines": lambda: plots.lines([1, 2], {"a": [0, 1]}, xlabel="x", ylabel="y", title="t", alt="words"),
    "panels": lambda: plots.panels([1, 2], [("y", {"a": [1, 2]})], xlabel="x", title="t", alt="words", logy=[True]),
    "bars": lambda: plots.bars({"a": [1, 2], "b": [2, 1]}, labels=["x", "y"], ylabel="y", title="t", alt="words"),
    "compare": lambda: plots.compare(torch.eye(2), torch.ones(2, 2), title="t", rows="Tq", columns="Tk"),
}


def _luminance(colour: str | tuple) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("name", ["SEQUENTIAL", "DIVERGING"])
def test_numbers_in_a_map_can_be_read_on_any_colour(name):
    low = -1 if name == "DIVERGING" else 0
    figure, ax = plt.subplots()
    plots._seaborn().heatmap(
        np.linspace(low, 1, 100).reshape(10, 10), ax=ax, cmap=getattr(plots, name), annot=True, vmin=low, vmax=1
    )
    plots._write_legibly(ax)
    for text, colour in zip(ax.texts, ax.collections[0].get_facecolors(), strict=True):
        dark, light = sorted((_luminance(text.get_color()), _luminance(tuple(colour[:3]))))
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    plt.close(figure)


@pytest.mark.parametrize("name", DRAW)
def test_a_figure_stores_its_words_and_leaves_nothing_behind(name):
    with capture_output() as captured:
        result = DRAW[name]()
    assert result is None, "a cell that ends in a figure prints no object"
    (output,) = captured.outputs
    assert output.metadata["image/png"]["alt"]
    assert output.data["text/plain"].startswith("Figure: ")
    assert captured.stderr == ""
    assert plt.get_fignums() == []


def test_a_long_finding_is_wrapped_into_the_picture():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3))
    plots._headline(figure, "a finding that needs rather more room than a narrow figure has to offer its readers")
    figure.canvas.draw()
    assert figure._suptitle.get_window_extent().x1 <= figure.bbox.x1


def test_the_slider_falls_back_to_a_picture(monkeypatch):
    drawn = []
    monkeypatch.setenv(plots.STATIC, "1")
    plots.interactive(
        lambda value: drawn.append(value), name="n", options=[1, 2, 3], still=lambda: drawn.append("still")
    )
    assert drawn == ["still"]
    monkeypatch.delenv(plots.STATIC)
    shown = []
    monkeypatch.setattr(plots, "display", shown.append)

    # The parameter has a name and a type of its own, for which ipywidgets would invent a slider from 0 to 1.
    def draw(temperature: float) -> None:
        drawn.append(temperature)

    plots.interactive(draw, name="n", options=[1, 2, 3], still=lambda: None)
    (widget,) = shown
    (slider,) = widget.kwargs_widgets
    assert tuple(slider.options) == (1, 2, 3)
    widget.update()
    assert drawn[-1] == 2
    slider.value = 3
    assert drawn[-1] == 3
    monkeypatch.setitem(__import__("sys").modules, "ipywidgets", None)
    plots.interactive(lambda value: None, name="n", options=[1], still=lambda: drawn.append("static"))
    assert drawn[-1] == "static"


def test_the_variable_chooses_the_device(monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "cpu")
    assert device.pick() == torch.device("cpu")
    monkeypatch.setenv(device.VARIABLE, "tpu")
    with pytest.raises(device.DeviceError, match="use cpu or cuda"):
        device.pick()
    monkeypatch.delenv(device.VARIABLE)
    assert device.pick().type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_asking_for_a_gpu_that_is_not_there_is_a_sentence(monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "cuda")
    with pytest.raises(device.DeviceError, match="PyTorch sees none here"):
        device.pick()


def test_random_numbers_come_from_their_seed_alone():
    first = device.randn(2, 3, seed=5)
    device.seed(99)
    assert torch.equal(first, device.randn(2, 3, seed=5))
    assert not torch.equal(first, device.randn(2, 3, seed=6))
