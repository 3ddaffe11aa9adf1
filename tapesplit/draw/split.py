"""The picture of a split tape: chunks side by side, cuts between them, inputs left, outputs right."""

from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Final

from tapesplit.draw.fold import Folded, Group, fold
from tapesplit.draw.numbers import count, shape_text, shorten
from tapesplit.draw.rows import LinkRow, link_rows
from tapesplit.draw.scene import Area, Box, Label, Line, Scene, Shape, chunk_style
from tapesplit.plan import JacobianPlan

__all__ = ["split_scene"]

_BOX: Final = (100.0, 36.0)
_PITCH: Final = (122.0, 48.0)
"""Distance of columns and of rows."""
_MARGIN: Final = 16.0
_HEAD: Final = 110.0
"""Height of the titles above the graph."""
_STRIP: Final = 84.0
"""Height of the strip of widths below it."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where things are.

    Parameters
    ----------
    left
        Left end of each chunk, and the right end of the last.
    centers
        Center of each group's box.
    bottom
        Lower end of the graph.
    """

    left: tuple[float, ...]
    centers: tuple[tuple[float, float], ...]
    bottom: float

    @property
    def middle(self) -> float:
        """Height of inputs and outputs."""
        return (_HEAD + self.bottom) / 2


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
    grid = _grid(folded, len(rows))
    right = grid.left[-1] + _PITCH[0] + _MARGIN
    shapes: list[Shape] = [*_titles(plan, folded)]
    for row in rows:
        shapes += _chunk(row, grid)
    shapes += _arcs(folded, grid)
    shapes += _boxes(plan, folded, grid)
    shapes += _cuts(plan, grid)
    shapes += _widths(plan, grid)
    height = grid.bottom + _STRIP + 3 * _MARGIN
    description = f"The tape of {plan.name} in {len(rows)} parts; interfaces of {', '.join(map(count, plan.chain.sizes))} elements."
    return Scene(max(right, 560), height, f"Split tape of {plan.name}", description, tuple(shapes))


def _grid(folded: Folded, chunks: int) -> _Grid:
    """Give each chunk as many columns as it has depths, and each group a place in its column."""
    columns: dict[tuple[int, int], list[int]] = {}
    for number, group in enumerate(folded.groups):
        columns.setdefault((group.chunk, group.depth), []).append(number)
    tallest = max(map(len, columns.values()))
    middle = _HEAD + tallest * _PITCH[1] / 2
    left, x = [], _MARGIN + _PITCH[0]
    centers: dict[int, tuple[float, float]] = {}
    for chunk in range(-1, chunks):
        left.append(x)
        for place in sorted(place for place in columns if place[0] == chunk):
            center = x + _PITCH[0] / 2 if chunk >= 0 else _MARGIN + _PITCH[0] / 2 - 8
            numbers = _by_parents(columns[place], folded, centers)
            top = middle - _PITCH[1] * (len(numbers) - 1) / 2
            centers |= {number: (center, top + _PITCH[1] * row) for row, number in enumerate(numbers)}
            x += _PITCH[0] if chunk >= 0 else 0
        x += _PITCH[0] * (x == left[-1]) * (chunk >= 0)  # a chunk without operations has some width too
    return _Grid(
        (*left[1:], x),
        tuple(centers[number] for number in range(len(folded.groups))),
        _HEAD + tallest * _PITCH[1],
    )


def _by_parents(numbers: list[int], folded: Folded, centers: dict[int, tuple[float, float]]) -> list[int]:
    """Order the groups of a column by the mean height of what they take."""

    def height(number: int) -> float:
        heights = [centers[b.tail][1] for b in folded.bundles if b.head == number and b.tail in centers]
        return sum(heights) / len(heights) if heights else 0.0

    return sorted(numbers, key=height)


def _titles(plan: JacobianPlan, folded: Folded) -> list[Shape]:
    """Title, and how to read the picture."""
    output, *inputs = plan.shapes
    shapes = f"{', '.join(map(shape_text, inputs))} -> {shape_text(output)}"
    one = "each box is one operation" if folded.complete else "a box stands for many operations"
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


def _arcs(folded: Folded, grid: _Grid) -> list[Shape]:
    """Arrows between groups, and from the function's value to the output; thicker ones carry more."""
    half = _BOX[0] / 2
    arcs: list[Shape] = []
    for bundle in folded.bundles:
        (x0, y0), (x1, y1) = grid.centers[bundle.tail], grid.centers[bundle.head]
        arcs.append(
            Line(
                ((x0 + half, y0), (x1 - half, y1)),
                "arc",
                arrow=True,
                width=1 + log(max(bundle.elements, 1)) / 5,
            )
        )
    x, y = grid.centers[folded.output]
    arcs.append(Line(((x + half, y), (_output_left(grid), grid.middle)), "arc", arrow=True))
    return arcs


def _output_left(grid: _Grid) -> float:
    """Left end of the output's box."""
    return grid.left[-1] + (_PITCH[0] - _BOX[0]) / 2 + 8


def _boxes(plan: JacobianPlan, folded: Folded, grid: _Grid) -> list[Shape]:
    """Boxes of all groups and of the output."""
    width, height = _BOX

    def box(group: Group, x: float, y: float) -> Box:
        style = "end" if group.chunk < 0 else "value"
        return Box(x - width / 2, y - height / 2, width, height, style, group.lines, group.tip)

    boxes: list[Shape] = [
        box(group, *center) for group, center in zip(folded.groups, grid.centers, strict=True)
    ]
    shape = shape_text(plan.shapes[0])
    lines = ("output", shorten(shape, 15))
    boxes.append(
        Box(
            _output_left(grid),
            grid.middle - height / 2,
            width,
            height,
            "end",
            lines,
            f"output, value {shape}",
        )
    )
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
