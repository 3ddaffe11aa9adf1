"""The picture of a split tape: chunks side by side, cuts between them, inputs left, outputs right."""

from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Final

from tapesplit.draw.fold import Folded, fold
from tapesplit.draw.layout import Layout, Point, layout
from tapesplit.draw.numbers import count, shape_text, shorten
from tapesplit.draw.rows import LinkRow, link_rows
from tapesplit.draw.scene import Area, Box, Label, Line, Scene, Shape, chunk_style
from tapesplit.plan import JacobianPlan

__all__ = ["split_scene"]

_BOX: Final = (100.0, 36.0)
_PITCH: Final = (122.0, 48.0)
"""Distance of columns and of rows."""
_MARGIN: Final = 16.0
_ASIDE: Final = 8.0
_HEAD: Final = 110.0
"""Height of the titles above the graph."""
_STRIP: Final = 84.0
"""Height of the strip of widths below it."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """A layout in pixels."""

    layout: Layout

    @property
    def bottom(self) -> float:
        """Lower end of the graph."""
        return _HEAD + self.layout.height * _PITCH[1]

    @property
    def left(self) -> tuple[float, ...]:
        """Left end of each chunk, and the right end of the last."""
        return tuple(_MARGIN + _PITCH[0] * bound for bound in self.layout.bounds)

    @property
    def output(self) -> tuple[float, float]:
        """Center of the output's box."""
        return self.center((self.layout.bounds[-1], 0.0))

    def center(self, point: Point) -> tuple[float, float]:
        """Center of a place; inputs and output keep a little away from the chunks."""
        column, row = point
        aside = _ASIDE * ((column == self.layout.bounds[-1]) - (column == 0))
        return _MARGIN + _PITCH[0] * (column + 0.5) + aside, (_HEAD + self.bottom) / 2 + _PITCH[1] * row


def split_scene(plan: JacobianPlan) -> Scene:
    """Draw the tape graph with its chunks and separators, and the widths of the interfaces below.

    Parameters
    ----------
    plan
        The plan.

    Returns
    -------
    Scene
        Large tapes are folded, see `tapesplit.draw.fold`.
    """
    folded, rows = fold(plan), link_rows(plan)
    grid = _Grid(layout(folded, len(rows)))
    right = grid.left[-1] + _PITCH[0] + _MARGIN
    shapes: list[Shape] = [*_titles(plan, folded)]
    for row in rows:
        shapes += _chunk(row, grid)
    shapes += _arcs(plan, folded, grid)
    shapes += _boxes(plan, folded, grid)
    shapes += _cuts(plan, grid)
    shapes += _widths(plan, grid)
    height = grid.bottom + _STRIP + 3 * _MARGIN
    widths = ", ".join(map(count, plan.chain.sizes))
    description = f"The tape of {plan.name} in {len(rows)} parts; interfaces of {widths} elements."
    return Scene(max(right, 560), height, f"Split tape of {plan.name}", description, tuple(shapes))


def _titles(plan: JacobianPlan, folded: Folded) -> list[Shape]:
    """Title, and how to read the picture."""
    output, *inputs = plan.shapes
    shapes = f"{', '.join(map(shape_text, inputs))} -> {shape_text(output)}"
    one = "each box is one operation" if folded.complete else "a box can stand for several operations"
    return [
        Label(_MARGIN, 26, shorten(f"{plan.name}: {shapes}", 70), size=15, strong=True),
        Label(_MARGIN, 44, f"Tinted: chunks. Dashed: cuts with their width. Here {one}.", "muted"),
    ]


def _chunk(row: LinkRow, grid: _Grid) -> list[Shape]:
    """Background and heading of one chunk."""
    left, right = grid.left[row.number - 1], grid.left[row.number]
    center = (left + right) / 2
    maps = f"{row.n} to {row.m} elements"
    tip = f"chunk {row.number}: {row.operations}\n{maps}\n|E| {count(row.edges)}\n{row.sweep} directions"
    area = Area(
        ((left, _HEAD), (right, _HEAD), (right, grid.bottom), (left, grid.bottom)),
        chunk_style(row.number - 1),
        tip,
    )
    return [
        area,
        Label(center, _HEAD - 36, f"F{row.number}", anchor="middle", size=13, strong=True),
        Label(center, _HEAD - 21, f"|E| {count(row.edges)}", "muted", "middle"),
        Label(center, _HEAD - 7, row.sweep, "muted", "middle"),
    ]


def _arcs(plan: JacobianPlan, folded: Folded, grid: _Grid) -> list[Shape]:
    """Arrows between groups, and from the function's value to the output; thicker ones carry more."""
    arcs: list[Shape] = []
    for bundle, route in zip(folded.bundles, grid.layout.routes, strict=True):
        width = 1 + log(max(bundle.elements, 1)) / 5
        arcs.append(Line(_through([grid.center(point) for point in route]), "arc", arrow=True, width=width))
    last = grid.center(grid.layout.places[folded.output])
    width = 1 + log(max(plan.graph.output_width, 1)) / 5
    arcs.append(Line(_through([last, grid.output]), "arc", arrow=True, width=width))
    return arcs


def _through(centers: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Lead from the right side of the first box straight past the columns between to the last box."""
    half = _BOX[0] / 2
    sides = [(x + side, y) for x, y in centers for side in (-half, half)]
    return tuple(sides[1:-1])


def _boxes(plan: JacobianPlan, folded: Folded, grid: _Grid) -> list[Shape]:
    """Boxes of all groups and of the output."""
    width, height = _BOX

    def box(center: tuple[float, float], style: str, lines: tuple[str, ...], tip: str) -> Box:
        return Box(center[0] - width / 2, center[1] - height / 2, width, height, style, lines, tip)

    boxes: list[Shape] = [
        box(grid.center(place), "end" if group.chunk < 0 else "value", group.lines, group.tip)
        for group, place in zip(folded.groups, grid.layout.places, strict=True)
    ]
    shape = shape_text(plan.shapes[0])
    boxes.append(box(grid.output, "end", ("output", shorten(shape, 15)), f"output, value {shape}"))
    return boxes


def _cuts(plan: JacobianPlan, grid: _Grid) -> list[Shape]:
    """Draw each separator as a dashed line with its width."""
    shapes: list[Shape] = []
    for separator, x in zip(plan.separators, grid.left[1:-1], strict=True):
        shapes.append(Line(((x, _HEAD - 44), (x, grid.bottom + _STRIP + 6)), "cut"))
        shapes.append(Label(x, _HEAD - 49, count(separator.width), anchor="middle", strong=True))
    return shapes


def _widths(plan: JacobianPlan, grid: _Grid) -> list[Shape]:
    """Draw the chain's interfaces as a silhouette, on a logarithmic scale."""
    sizes = plan.chain.sizes
    scale = (_STRIP / 2 - 12) / log(1 + max(sizes))
    middle = grid.bottom + _STRIP / 2 + 6
    halves = [max(scale * log(1 + size), 1) for size in sizes]
    shapes: list[Shape] = []
    for number, (n, m) in enumerate(pairwise(halves)):
        left, right = grid.left[number], grid.left[number + 1]
        points = ((left, middle - n), (right, middle - m), (right, middle + m), (left, middle + n))
        tip = f"F{number + 1} maps {sizes[number]} to {sizes[number + 1]} elements"
        shapes.append(Area(points, chunk_style(number), tip))
    bottom = grid.bottom + _STRIP + 20
    shapes += [
        Label(x, bottom, count(size), anchor="middle") for x, size in zip(grid.left, sizes, strict=True)
    ]
    shapes.append(
        Label(_MARGIN, bottom + 14, "Elements at each interface (silhouette: logarithmic).", "muted")
    )
    return shapes
