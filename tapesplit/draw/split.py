"""The picture of a split tape: chunks side by side, cuts between them, inputs left, outputs right.

Long chains are broken into bands below each other.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Final

from tapesplit.draw.fold import Folded, fold, output_text
from tapesplit.draw.layout import Layout, Point, bands, layout
from tapesplit.draw.numbers import count, shorten
from tapesplit.draw.rows import LinkRow, link_rows, signature
from tapesplit.draw.scene import Area, Box, Label, Line, Scene, Shape, chunk_style
from tapesplit.planning.plan import JacobianPlan

__all__ = ["split_scene"]

_BOX: Final = (100.0, 36.0)
_PITCH: Final = (122.0, 48.0)
"""Distance of columns and of rows."""
_MARGIN: Final = 16.0
_ASIDE: Final = 8.0
_EDGE: Final = 0.4
"""Room in rows between arcs and the upper and lower ends of their band, both together."""
_TITLE: Final = 44.0
"""Height of the title above everything."""
_HEAD: Final = 66.0
"""Height of the headings above the chunks of a band."""
_STRIP: Final = 84.0
"""Height of the strip of widths below it."""
_FOOT: Final = 40.0
"""Height of the numbers below the strip."""
_PAGE: Final = 10
"""Most columns side by side: a page with text as large as this shows so many."""
_STUB: Final = 36.0
"""Room at the ends of a band for arrows that come from another one, or lead there."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """A layout in pixels.

    Parameters
    ----------
    layout
        Places in columns and rows.
    starts
        First column of each band, and the number of columns.
    tops
        Upper end of each band's graph, and of that of a band that would follow.
    margin
        Left of the first column of each band.
    strip
        Height of the strip of widths below each band; 0 if they are the same everywhere.
    """

    layout: Layout
    starts: tuple[int, ...]
    tops: tuple[float, ...]
    margin: float
    strip: float

    def band(self, column: int) -> int:
        """Band of a column."""
        return bisect_right(self.starts, column) - 1

    def bottom(self, band: int) -> float:
        """Lower end of a band's graph."""
        return self.tops[band] + _PITCH[1] * _rows(self.layout, self.starts, band)

    def x(self, column: int, band: int) -> float:
        """Left end of a column in its band, or right end of the band's last one."""
        return self.margin + _PITCH[0] * (column - self.starts[band])

    def ends(self, column: int) -> list[tuple[int, float]]:
        """Bands and places where a column begins: also at the right end of the band before its own."""
        before, after = self.band(column - 1), self.band(column)
        return [(band, self.x(column, band)) for band in dict.fromkeys((before, after))]

    @property
    def output(self) -> Point:
        """Place of the output."""
        return self.layout.bounds[-1], 0.0

    def y(self, row: float, band: int) -> float:
        """Height of a row, or of the outermost row that the band has."""
        room = (_rows(self.layout, self.starts, band) - _EDGE) / 2
        middle = (self.tops[band] + self.bottom(band)) / 2
        return middle + _PITCH[1] * min(max(row, -room), room)

    def center(self, point: Point) -> tuple[float, float]:
        """Center of a place; inputs and output keep a little away from the chunks."""
        column, row = int(point[0]), point[1]
        band = self.band(column)
        aside = _ASIDE * ((column == self.layout.bounds[-1]) - (column == 0))
        return self.x(column, band) + _PITCH[0] / 2 + aside, self.y(row, band)


def _rows(placed: Layout, starts: Sequence[int], band: int) -> float:
    """Rows of the tallest column of a band."""
    return max(placed.heights[starts[band] : starts[band + 1]], default=1.0)


def _grid(placed: Layout, strip: float) -> _Grid:
    """Put the bands of a layout below each other, with a strip of this height under each."""
    starts = bands(placed.bounds, _PAGE)
    tops = [_TITLE + _HEAD]
    for band in range(len(starts) - 1):
        tops.append(tops[-1] + _PITCH[1] * _rows(placed, starts, band) + strip + _FOOT + _HEAD)
    return _Grid(placed, starts, tuple(tops), _MARGIN + (_STUB if len(starts) > 2 else 0), strip)


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a chunk that is in one band.

    Parameters
    ----------
    band
        Number of the band.
    first, last
        Its first column, and that behind it.
    left, right
        Its ends in the picture.
    continued
        Whether another band has the beginning of the chunk.
    """

    band: int
    first: int
    last: int
    left: float
    right: float
    continued: bool


def _parts(grid: _Grid, chunk: int) -> list[_Part]:
    """Parts of a chunk, one in each band that it has columns in."""
    first, last = grid.layout.bounds[chunk : chunk + 2]
    parts = []
    for band in range(grid.band(first), grid.band(last - 1) + 1):
        start, end = max(first, grid.starts[band]), min(last, grid.starts[band + 1])
        parts.append(_Part(band, start, end, grid.x(start, band), grid.x(end, band), start > first))
    return parts


def split_scene(plan: JacobianPlan) -> Scene:
    """Draw the tape graph with its chunks and separators, and the widths of the interfaces below.

    Large tapes are folded, see `tapesplit.draw.fold`; long ones are broken into bands.
    """
    folded, rows = fold(plan), link_rows(plan)
    placed = layout(folded, len(rows))
    alive = _alive(plan, folded, placed)
    is_even = len({*alive[placed.bounds[0] :]}) == 1
    grid = _grid(placed, 0.0 if is_even else _STRIP)
    longest = max(end - start for start, end in pairwise(grid.starts))
    shapes: list[Shape] = [*_titles(plan, folded)]
    for row in rows:
        shapes += _chunk(row, grid)
    shapes += _arcs(plan, folded, grid)
    shapes += _boxes(plan, folded, grid)
    shapes += _widths(plan, alive, grid)
    shapes += _cuts(plan, grid)
    height = grid.tops[-1] - _HEAD - _FOOT + 3 * _MARGIN
    widths = ", ".join(map(count, plan.chain.sizes))
    links = "one link" if len(rows) == 1 else f"{len(rows)} links"
    description = f"The tape of {plan.name} in {links}; interfaces of {widths} elements."
    right = 2 * grid.margin + _PITCH[0] * longest
    return Scene(max(right, 560), height, f"Split tape of {plan.name}", description, tuple(shapes))


def _titles(plan: JacobianPlan, folded: Folded) -> list[Shape]:
    """Title, and how to read the picture."""
    one = "each box is one operation" if folded.complete else "a box can stand for several operations"
    links = "links. Dashed: cuts with their width" if plan.separators else "the only link"
    return [
        Label(_MARGIN, 26, signature(plan, 70), size=15, strong=True),
        Label(_MARGIN, 44, f"Tinted: {links}. Here {one}.", "muted"),
    ]


def _chunk(row: LinkRow, grid: _Grid) -> list[Shape]:
    """Background and heading of one chunk, in each band that it is in."""
    maps, unit = f"{row.n} to {row.m} elements", "" if row.seeds or row.in_rows else " directions"
    tip = f"link {row.number}: {row.operations}\n{maps}\n|E| {count(row.edges)}\n{row.sweep}{unit}"
    style = chunk_style(row.number - 1)
    shapes: list[Shape] = []
    for part in _parts(grid, row.number - 1):
        top, bottom, center = grid.tops[part.band], grid.bottom(part.band), (part.left + part.right) / 2
        corners = ((part.left, top), (part.right, top), (part.right, bottom), (part.left, bottom))
        name = f"F{row.number}, continued" if part.continued else f"F{row.number}"
        shapes += [
            Area(corners, style, tip),
            Label(center, top - 36, name, anchor="middle", size=13, strong=True),
        ]
        if not part.continued:
            shapes.append(Label(center, top - 21, f"|E| {count(row.edges)}", "muted", "middle"))
            shapes.append(Label(center, top - 7, row.sweep, "muted", "middle"))
    return shapes


def _arcs(plan: JacobianPlan, folded: Folded, grid: _Grid) -> list[Shape]:
    """Arrows between groups, and from the function's value to the output; thicker ones carry more."""
    routes = [*grid.layout.routes, (grid.layout.places[folded.output], grid.output)]
    loads = [*(bundle.elements for bundle in folded.bundles), plan.graph.output_width]
    return [
        Line(points, "arc", arrow=True, width=1 + log(max(elements, 1)) / 5)
        for route, elements in zip(routes, loads, strict=True)
        for points in _stretches(route, grid)
    ]


def _stretches(route: Sequence[Point], grid: _Grid) -> list[tuple[tuple[float, float], ...]]:
    """Return the lines of an arc, from the right side of its first box past other columns to its last box.

    At the end of a band an arc leaves it, and enters the next one at the same row.
    """
    half = _BOX[0] / 2
    stretches: list[list[tuple[float, float]]] = [[]]
    for before, after in pairwise(route):
        (x, y), row = grid.center(before), before[1]
        stretches[-1].append((x + half, y))
        here, there = grid.band(int(before[0])), grid.band(int(after[0]))
        if here != there:
            stretches[-1].append((grid.x(grid.starts[here + 1], here) + _STUB, y))
            stretches.append([(grid.margin - _STUB, grid.y(row, there))])
        x, y = grid.center(after)
        stretches[-1].append((x - half, y))
    return [tuple(points) for points in stretches]


def _boxes(plan: JacobianPlan, folded: Folded, grid: _Grid) -> list[Shape]:
    """Boxes of all groups and of the output."""
    width, height = _BOX

    def box(place: Point, style: str, lines: tuple[str, ...], tip: str) -> Box:
        x, y = grid.center(place)
        return Box(x - width / 2, y - height / 2, width, height, style, lines, tip)

    boxes: list[Shape] = [
        box(place, "end" if group.chunk < 0 else "value", group.lines, group.tip)
        for group, place in zip(folded.groups, grid.layout.places, strict=True)
    ]
    shape = output_text(plan)
    boxes.append(box(grid.output, "end", ("output", shorten(shape, 15)), f"output, value {shape}"))
    return boxes


def _cuts(plan: JacobianPlan, grid: _Grid) -> list[Shape]:
    """Draw each separator as a dashed line with its width; at the break of two bands, in both."""
    shapes: list[Shape] = []
    for separator, column in zip(plan.separators, grid.layout.bounds[1:-1], strict=True):
        for band, x in grid.ends(column):
            top, bottom = grid.tops[band], grid.bottom(band)
            shapes.append(Line(((x, top - 44), (x, bottom + grid.strip + 6)), "cut"))
            shapes.append(Label(x, top - 49, count(separator.width), anchor="middle", strong=True))
    return shapes


def _widths(plan: JacobianPlan, alive: Sequence[int], grid: _Grid) -> list[Shape]:
    """Draw how many elements are alive between columns as a silhouette, unless it is even."""
    sizes = plan.chain.sizes
    scale = (_STRIP / 2 - 12) / log(1 + max(alive))
    halves = [max(scale * log(1 + size), 1) for size in alive]
    shapes: list[Shape] = []
    for number, (n, m) in enumerate(pairwise(sizes) if grid.strip else ()):
        tip = f"F{number + 1} maps {n} to {m} elements"
        for part in _parts(grid, number):
            middle = grid.bottom(part.band) + _STRIP / 2 + 6
            ends = [
                (grid.x(column, part.band), halves[column]) for column in range(part.first, part.last + 1)
            ]
            upper = [(x, middle - half) for x, half in ends]
            lower = [(x, middle + half) for x, half in reversed(ends)]
            shapes.append(Area((*upper, *lower), chunk_style(number), tip))
    for column, size in zip(grid.layout.bounds, sizes, strict=True):
        for band, x in grid.ends(column):
            shapes.append(Label(x, grid.bottom(band) + grid.strip + 20, count(size), anchor="middle"))
    end = grid.bottom(len(grid.starts) - 2) + grid.strip + _FOOT
    what = "Height: how many elements cross each place (logarithmic)."
    if not grid.strip:
        what = "Below the graph: how many elements cross, the same everywhere."
    shapes.append(Label(_MARGIN, end, what, "muted"))
    return shapes


def _alive(plan: JacobianPlan, folded: Folded, placed: Layout) -> list[int]:
    """Count the elements that are alive where each column begins; interfaces have the width of their cut."""
    bounds, columns = placed.bounds, [int(column) for column, _ in placed.places]
    alive = [0] * (bounds[-1] + 1)
    for first, last, elements in folded.spans:
        for column in range(columns[first] + 1, columns[last] + 1):
            alive[column] += elements
    for column, size in zip(bounds, plan.chain.sizes, strict=True):
        alive[column] = size
    return alive
