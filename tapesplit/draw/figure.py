"""Scenes as PNG and PDF through matplotlib, which is imported when a figure is asked for."""

import os
from itertools import pairwise
from typing import Any, Final

from tapesplit.draw.endings import figure_class
from tapesplit.draw.scene import INK, STYLES, Area, Box, Label, Line, Scene, box_labels

__all__ = ["save_figure"]

_DPI: Final = 144
_POINTS: Final = 0.75
"""Points in a pixel."""


def save_figure(scene: Scene, path: str | os.PathLike[str]) -> None:
    """Draw a scene with matplotlib into a file.

    The name ends in .png, .pdf or another format of matplotlib. Raises `MissingPackageError` if
    matplotlib is not installed.
    """
    size = (scene.width * _POINTS / 72, scene.height * _POINTS / 72)
    figure = figure_class(path)(figsize=size, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    for order, shape in enumerate(scene.shapes):
        _draw(axes, shape, order)
    figure.savefig(path, dpi=_DPI)


def _draw(axes: Any, shape: Any, order: int) -> None:
    """Draw one shape."""
    match shape:
        case Box():
            _box(axes, shape, order)
        case Line():
            _line(axes, shape, order)
        case Area():
            style = STYLES[shape.style]
            axes.fill(
                *zip(*shape.points, strict=True), fc=style.fill, ec=style.stroke, lw=_POINTS, zorder=order
            )
        case Label():
            _label(axes, shape, order)


def _box(axes: Any, box: Box, order: int) -> None:
    """Draw a box and its lines of text."""
    right, bottom = box.x + box.width, box.y + box.height
    corners = ((box.x, box.y), (right, box.y), (right, bottom), (box.x, bottom))
    _draw(axes, Area(corners, box.style), order)
    for label in box_labels(box):
        _label(axes, label, order)


def _line(axes: Any, line: Line, order: int) -> None:
    """Draw a line, or an arrow in S-curves."""
    style = STYLES[line.style]
    width = (line.width if line.width != 1 else style.width) * _POINTS
    if not line.arrow:
        dashes = (0, style.dashes) if style.dashes else "solid"
        axes.plot(*zip(*line.points, strict=True), color=style.stroke, lw=width, ls=dashes, zorder=order)
        return
    from matplotlib.patches import FancyArrowPatch  # noqa: PLC0415 - optional package
    from matplotlib.path import Path  # noqa: PLC0415 - optional package

    controls = [line.points[0]]
    for (x0, y0), (x1, y1) in pairwise(line.points):
        controls += [((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1), (x1, y1)]
    path = Path(controls, [Path.MOVETO] + [Path.CURVE4] * (len(controls) - 1))
    axes.add_patch(
        FancyArrowPatch(
            path=path, arrowstyle="->", mutation_scale=6, color=style.stroke, lw=width, zorder=order
        )
    )


def _label(axes: Any, label: Label, order: int) -> None:
    """Draw a line of text; what looks like TeX stays as it is."""
    side = {"start": "left", "middle": "center", "end": "right"}[label.anchor]
    axes.text(
        label.x, label.y, label.text, fontsize=label.size * _POINTS, color=INK[label.ink][0], ha=side,
        va="baseline", weight="bold" if label.strong else "normal", zorder=order, parse_math=False,
    )  # fmt: skip
