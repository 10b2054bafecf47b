"""The figures of the course: one palette, labels on the correct side, a finding in the title, words for who cannot see.

Every function draws, displays the picture with its alternative text stored beside it, and returns nothing, so that a
cell which ends in one of them prints no object. In a map of weights, rows are what attends and columns what is attended
to.
"""

import base64
import io
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import matplotlib
import numpy as np
import torch
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

Matrix = torch.Tensor | np.ndarray | Sequence[Sequence[float]]
Vector = torch.Tensor | np.ndarray | Sequence[float]

# Okabe and Ito (2008), "Color universal design": told apart with every common form of colour blindness.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# From white, for "no weight", through the palette's blue to nearly black: also right in greyscale.
SEQUENTIAL = LinearSegmentedColormap.from_list("weights", ["#ffffff", "#b9d9ee", "#4a9bcb", "#0072B2", "#062a45"])
DIVERGING = LinearSegmentedColormap.from_list("scores", ["#1f5fa8", "#7fa3cf", "#f2f2f2", "#d0a06a", "#8a4b0b"])
STATIC = "ATTENTION_STATIC_FIGURES"

# Drawn at one resolution and shown at another, so that a figure stays sharp on a dense screen.
DPI, SHOWN_AT = 144, 80
_STYLE = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.labelcolor": "#333333",
    "axes.grid": False,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "svg.hashsalt": "attention-course",
}


def show(figure: Figure, alt: str) -> None:
    """Display ``figure`` as a picture with the alternative text ``alt``: what it shows, for who cannot see it."""
    display(_bundle(figure, alt), raw=True, metadata={"image/png": _metadata(figure, alt)})


def heatmap(
    matrix: Matrix,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    alt: str,
    ylabel: str = "what attends (queries)",
    xlabel: str = "what is attended to (keys)",
    numbers: bool = True,
    diverging: bool = False,
) -> None:
    """Draw one matrix of scores or weights with a token at each row and column.

    Args:
        matrix: (rows, columns).
        rows, columns: the labels of both sides.
        title: the finding. alt: the alternative text.
        ylabel, xlabel: the axes in words.
        numbers: write each value into its cell.
        diverging: two colours around zero, for scores; else one colour from zero, for weights.
    """
    small_multiples(
        [matrix],
        titles=[""],
        rows=rows,
        columns=columns,
        title=title,
        alt=alt,
        ylabel=ylabel,
        xlabel=xlabel,
        numbers=numbers,
        diverging=diverging,
    )


def small_multiples(
    matrices: Sequence[Matrix],
    *,
    titles: Sequence[str],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    alt: str,
    ylabel: str = "what attends (queries)",
    xlabel: str = "what is attended to (keys)",
    numbers: bool = False,
    diverging: bool = False,
    shared_scale: bool = True,
    colorbar: bool = True,
) -> None:
    """Draw several matrices side by side, on one colour scale unless ``shared_scale`` is False.

    Masks, whose only values are 0 and 1, need no colour bar and get none; ``colorbar=False`` leaves it out elsewhere.

    Args:
        matrices: each (rows, columns).
        titles: one above each matrix.
        rows, columns, title, alt, ylabel, xlabel, numbers, diverging: as in :func:`heatmap`.
    """
    arrays = [_array(m) for m in matrices]
    top = [float(np.abs(a).max()) or 1.0 for a in arrays]
    colorbar = colorbar and not all(np.isin(a, (0, 1)).all() for a in arrays)
    cell = 0.62 if numbers else 0.42
    width = max(2.6, cell * len(columns)) * len(arrays) + 1.6
    height = max(2.2, cell * 0.85 * len(rows)) + 1.7
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(max(width, 5.2), height), layout="constrained")
        axes = figure.subplots(1, len(arrays), squeeze=False)[0]
        for i, (ax, array) in enumerate(zip(axes, arrays, strict=True)):
            limit = max(top) if shared_scale else top[i]
            _seaborn().heatmap(
                array,
                ax=ax,
                cmap=DIVERGING if diverging else SEQUENTIAL,
                vmin=-limit if diverging else 0,
                vmax=limit,
                annot=numbers,
                fmt=".2f",
                annot_kws={"size": 8.5},
                linewidths=1,
                linecolor="#e8e8e8",
                cbar=colorbar and (i == len(arrays) - 1 or not shared_scale),
                cbar_kws={"shrink": 0.85, "pad": 0.03},
                xticklabels=list(columns),
                yticklabels=list(rows) if i == 0 else False,
            )
            _write_legibly(ax)
            if diverging and (bar := ax.collections[0].colorbar) is not None:  # no longer than what is drawn
                drawn = np.concatenate([a.reshape(-1) for a in (arrays if shared_scale else [array])])
                if drawn.min() < drawn.max():
                    bar.ax.set_ylim(drawn.min(), drawn.max())
            ax.tick_params(axis="x", rotation=45 if max(map(len, columns)) > 2 else 0, length=0)
            ax.tick_params(axis="y", rotation=0, length=0)
            ax.set_xlabel(xlabel)
            ax.set_ylabel(ylabel if i == 0 else "")
            ax.set_title(titles[i], fontweight="normal", fontsize=10)
        _headline(figure, title)
        show(figure, alt)


def compare(expected: Matrix, got: Matrix, *, title: str, rows: str, columns: str) -> None:
    """Draw what was expected, what came and the difference: the picture beside a failed check.

    Args:
        expected, got: two matrices of the same shape (rows, columns).
        title: what is compared.
        rows, columns: the names of the two axes.
    """
    a, b = _array(expected), _array(got)
    limit = float(max(np.abs(a).max(), np.abs(b).max())) or 1.0
    gap = float(np.abs(b - a).max())
    form = ".0f" if all((x == np.round(x)).all() for x in (a, b)) else ".2f"
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.0, 2.9), layout="constrained")
        for ax, (name, array) in zip(
            figure.subplots(1, 3), (("expected", a), ("yours", b), ("yours minus expected", b - a)), strict=True
        ):
            _seaborn().heatmap(
                array, ax=ax, cmap=DIVERGING, vmin=-limit, vmax=limit, annot=array.size <= 36, fmt=form,
                annot_kws={"size": 8}, linewidths=1, linecolor="#e8e8e8", cbar_kws={"shrink": 0.85},
                xticklabels=False, yticklabels=False,
            )  # fmt: skip
            _write_legibly(ax)
            ax.set(xlabel=columns, ylabel=rows)
            ax.set_title(name, fontweight="normal", fontsize=10)
        _headline(figure, title)
        show(figure, f"{title}. Three maps: expected, yours, and the difference, which is at most {gap:.3g}.")


def lines(
    x: Vector,
    series: Mapping[str, Vector],
    *,
    xlabel: str,
    ylabel: str,
    title: str,
    alt: str,
    logx: bool = False,
    logy: bool = False,
) -> None:
    """Draw curves over one x axis, each named at its right end rather than in a legend.

    Args:
        x: (points,). series: name to (points,).
        xlabel, ylabel: the axes in words, with the unit where there is one.
        title: the finding. alt: the alternative text.
        logx, logy: logarithmic axes (base 2 for x).
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        _curves(figure.subplots(), x, series, xlabel, ylabel, logx, logy)
        _headline(figure, title)
        show(figure, alt)


def panels(
    x: Vector,
    groups: Sequence[tuple[str, Mapping[str, Vector]]],
    *,
    xlabel: str,
    title: str,
    alt: str,
    logx: bool = False,
    logy: Sequence[bool] = (),
    bottom: Sequence[float | None] = (),
    mark: tuple[float, str] | None = None,
) -> None:
    """Draw several line plots side by side over the same x axis.

    Args:
        x: (points,). groups: for each panel its y label and its series (see :func:`lines`).
        logy: for each panel, whether its y axis is logarithmic.
        bottom: for each panel, where its y axis begins; None leaves it to the data.
        mark: a place on the x axis where a dotted line is drawn, and what it says.
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(4.6 * len(groups) + 0.4, 3.5), layout="constrained")
        for i, (ax, (ylabel, series)) in enumerate(
            zip(figure.subplots(1, len(groups), squeeze=False)[0], groups, strict=True)
        ):
            _curves(ax, x, series, xlabel, ylabel, logx, i < len(logy) and logy[i], bottom[i] if bottom else None)
            if mark:
                ax.axvline(mark[0], color="#777777", linestyle=":", linewidth=1.2, zorder=0)
                note = {"xytext": (0, 2), "textcoords": "offset points", "fontsize": 8, "color": "#777777"}
                ax.annotate(mark[1], (mark[0], 1), xycoords=("data", "axes fraction"), va="bottom", **note)
        _headline(figure, title)
        show(figure, alt)


def bars(
    values: Mapping[str, Vector],
    *,
    labels: Sequence[str],
    ylabel: str,
    title: str,
    alt: str,
    xlabel: str = "",
    top: float | None = None,
) -> None:
    """Draw one group of bars for each label, one colour for each entry of ``values``.

    Args:
        values: name to (labels,).
        labels: what stands under each group.
        top: where the y axis ends; set it where a slider would otherwise rescale it.
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        ax = figure.subplots()
        place, width = np.arange(len(labels)), 0.8 / len(values)
        for i, (name, heights) in enumerate(values.items()):
            offset = (i - (len(values) - 1) / 2) * width
            ax.bar(place + offset, _array(heights), width * 0.94, color=PALETTE[i % len(PALETTE)], label=name)
        ax.set_xticks(place, labels)
        ax.tick_params(axis="x", length=0)
        ax.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, top))
        if len(values) > 1:
            ax.legend(frameon=False, ncols=len(values), loc="upper center", bbox_to_anchor=(0.5, 1.14))
        _headline(figure, title)
        show(figure, alt)


def interactive(draw: Callable[[Any], None], *, name: str, options: Sequence[Any], still: Callable[[], None]) -> None:
    """A figure with a slider; a picture where nobody can move one.

    Args:
        draw: draws the figure for one value of the slider.
        name: what the slider sets, in words.
        options: the values it runs through.
        still: draws the picture that stands in for it: where ipywidgets is missing, and in stored and graded notebooks.
    """
    if os.environ.get(STATIC):
        still()
        return
    try:
        import ipywidgets
    except ImportError:
        still()
        return
    slider = ipywidgets.SelectionSlider(
        options=list(options),
        value=options[len(options) // 2],
        description=name,
        continuous_update=False,
        style={"description_width": "initial"},
        layout={"width": "420px"},
    )
    # A function of our own: `interactive` would look for a parameter of that name in `draw`, and invent a slider where
    # it has none.
    display(ipywidgets.interactive(lambda value: _draw(draw, value), value=slider))


def _draw(draw: Callable[[Any], None], value: Any) -> None:
    """Draw below a slider, or say there in one sentence which exercise the figure waits for."""
    from .check import unwritten  # here, not above: a check that fails draws with this module

    try:
        draw(value)
    except Exception as error:
        instead = unwritten.sentence(error, "This figure", "Once that is done, move the slider.")
        if instead is None:
            raise
        raise instead from None


def _seaborn() -> ModuleType:
    import seaborn  # here, not above: it brings pandas, and half of the time a lesson takes to start is that import

    return seaborn


def _write_legibly(ax: Axes) -> None:
    """White numbers where they can be read, black ones everywhere else: a contrast of 4.5 to 1 or more on any colour.

    The ratio is that of the Web Content Accessibility Guidelines, from the relative luminance of both colours.
    """
    for text, colour in zip(ax.texts, ax.collections[0].get_facecolors(), strict=False):
        red, green, blue = ((c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in colour[:3])
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        text.set_color("white" if 1.05 / (luminance + 0.05) >= 4.5 else "black")


def _headline(figure: Figure, title: str) -> None:
    """The finding, at the top left, in as many lines as the figure's width asks for."""
    per_line = int(figure.get_size_inches()[0] / 0.096)
    count = len(textwrap.wrap(title, per_line))
    while len(textwrap.wrap(title, per_line - 1)) == count > 1:  # lines of about the same length, no word alone
        per_line -= 1
    figure.suptitle(textwrap.fill(title, per_line), x=0.01, ha="left", fontsize=11, fontweight="bold")


def _curves(
    ax: Axes,
    x: Vector,
    series: Mapping[str, Vector],
    xlabel: str,
    ylabel: str,
    logx: bool,
    logy: bool,
    bottom: float | None = None,
) -> None:
    xs = _array(x)
    if logx:
        ax.set_xscale("log", base=2)
        ax.set_xticks(xs, [f"{v:g}" for v in xs])
        ax.minorticks_off()
    if logy:
        ax.set_yscale("log")
    ends = []
    for i, (name, values) in enumerate(series.items()):
        ys = _array(values)
        colour = PALETTE[i % len(PALETTE)]
        ax.plot(xs, ys, color=colour, marker="o", markersize=4, linewidth=1.8)
        ends.append((float(ys[-1]), name, colour))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if bottom is not None:
        ax.set_ylim(bottom=bottom)
    low, high = ax.get_ylim()
    ticks = [t for t in ax.get_yticks() if low <= t <= high]
    ax.hlines(ticks, xs[0], xs[-1], color="#e6e6e6", linewidth=0.8, zorder=0)  # a grid that ends where the curves end
    _name_the_ends(ax, xs, ends)


def _name_the_ends(ax: Axes, xs: np.ndarray, ends: list[tuple[float, str, str]]) -> None:
    """Write each curve's name beside its right end, pushed apart where two would overlap."""
    width = ax.get_position().width * ax.figure.get_size_inches()[0]
    room = 0.068 * max(len(name) for _, name, _ in ends) / width + 0.03  # of the axes' width, for the longest name
    to_scale, back = (np.log2, np.exp2) if ax.get_xscale() == "log" else (np.asarray, np.asarray)
    first, last = float(to_scale(xs[0])), float(to_scale(xs[-1]))
    ax.set_xlim(float(back(first - 0.03 * (last - first))), float(back(last + room / (1 - room) * (last - first))))
    if ax.get_xscale() != "log":
        ax.set_xticks([t for t in ax.get_xticks() if first <= t <= last])
    ax.spines["bottom"].set_bounds(float(xs[0]), float(xs[-1]))
    ax.set_ylim(ax.get_ylim())  # the limits are final: names are placed in their units
    to_axes = ax.transData + ax.transAxes.inverted()
    lowest = -1.0
    for height, name, colour in sorted((float(to_axes.transform((xs[-1], y))[1]), n, c) for y, n, c in ends):
        lowest = max(height, lowest + 0.075)
        place = to_axes.inverted().transform((0.0, lowest))[1]
        ax.annotate(
            name,
            (float(xs[-1]), place),
            xytext=(7, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=9.5,
        )


def _array(values: Any) -> np.ndarray:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=float)


def _bundle(figure: Figure, alt: str) -> dict[str, str]:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    picture = base64.b64encode(buffer.getvalue()).decode("ascii")
    return {"image/png": picture, "text/plain": f"Figure: {alt}"}


def _metadata(figure: Figure, alt: str) -> dict[str, Any]:
    width, height = figure.get_size_inches() * SHOWN_AT
    return {"alt": alt, "width": round(width), "height": round(height)}
