"""Places for the groups of a folded tape: columns by chunk and depth, rows by where the arcs come from.

Columns that do not fit side by side are broken into bands, as text is broken into lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tapesplit.draw.fold import Folded

__all__ = ["Layout", "Point", "bands", "layout"]

Point: TypeAlias = tuple[float, float]
"""Column and row; row 0 is the middle of the picture."""

_PASSAGE: Final = 0.4
"""Rows that an arc takes where it passes a column between boxes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Places in units of columns and rows.

    Parameters
    ----------
    bounds
        First column of each chunk, and the number of columns. Inputs are in column 0.
    places
        Place of each group.
    routes
        Points of each bundle from tail to head; between them the places where it passes other columns.
    heights
        Rows of each column.
    """

    bounds: tuple[int, ...]
    places: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    heights: tuple[float, ...]


def layout(folded: Folded, chunks: int) -> Layout:
    """Place the groups of a folded tape.

    Arcs lead from left to right. Arcs that leave the same group share their passages.

    Notes
    -----
    One sweep from left to right puts each box at the mean height of what it takes, as in layered drawings of
    graphs (Sugiyama, Tagawa & Toda 1981).

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> from tapesplit.draw.fold import fold
    >>> plan = parallel_jacobian(lambda x: np.sin(x) * x, machines=1).plan(np.ones(3))
    >>> layout(fold(plan), 1).places
    ((0, 0.0), (1, -0.2), (2, 0.0))
    """
    column, bounds = _columns(folded, chunks)
    items: dict[int, list[tuple[int, int]]] = {place: [] for place in range(bounds[-1])}
    for group in range(len(folded.groups)):
        items[column[group]].append((group, column[group]))
    reach: dict[int, int] = {}
    for bundle in folded.bundles:
        reach[bundle.tail] = max(reach.get(bundle.tail, 0), column[bundle.head])
    for tail, last in reach.items():
        for place in range(column[tail] + 1, last):
            items[place].append((tail, place))
    rows: dict[tuple[int, int], float] = {}
    heights = tuple(
        max(1.0, _stack(_by_sources(members, folded, column, rows), column, rows))
        for members in items.values()
    )
    routes = tuple(
        (
            *((place, rows[b.tail, place]) for place in range(column[b.tail], column[b.head])),
            (column[b.head], rows[b.head, column[b.head]]),
        )
        for b in folded.bundles
    )
    places = tuple((column[group], rows[group, column[group]]) for group in range(len(folded.groups)))
    return Layout(bounds, places, routes, heights)


def bands(bounds: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Break columns into bands of about equal length, between chunks unless a band would be half empty then.

    `bounds` has the first column of each chunk, and that of the output, which is the last column. `most` is
    the largest number of columns in a band, 3 or more. Returns the first column of each band, and the number
    of columns. The output never has a band to itself.

    Examples
    --------
    >>> bands((1, 4, 7, 8), most=10)
    (0, 9)
    >>> bands((1, 4, 7, 8, 11), most=10), bands((1, 13), most=10)
    ((0, 7, 12), (0, 7, 14))
    """
    columns = bounds[-1] + 1
    starts = [0]
    while (left := columns - starts[-1]) > most:
        width = -(-left // -(-left // most))
        even = min(starts[-1] + width, columns - 2)
        earliest, latest = starts[-1] + width / 2, min(starts[-1] + most, columns - 2)
        between = [bound for bound in bounds[:-1] if earliest < bound <= latest]
        starts.append(min(between, key=lambda bound: abs(bound - even)) if between else even)
    return (*starts, columns)


def _columns(folded: Folded, chunks: int) -> tuple[list[int], tuple[int, ...]]:
    """Return the column of each group, and the first column of each chunk with the end of the last."""
    depths = sorted({(group.chunk, group.depth) for group in folded.groups if group.chunk >= 0})
    bounds, at = [], 1
    number: dict[tuple[int, int], int] = {}
    for chunk in range(chunks):
        bounds.append(at)
        inside = [place for place in depths if place[0] == chunk]
        number |= {place: at + offset for offset, place in enumerate(inside)}
        at += max(len(inside), 1)  # a chunk without operations has some width too
    column = [number[group.chunk, group.depth] if group.chunk >= 0 else 0 for group in folded.groups]
    return column, (*bounds, at)


def _by_sources(
    members: list[tuple[int, int]],
    folded: Folded,
    column: list[int],
    rows: Mapping[tuple[int, int], float],
) -> list[tuple[int, int]]:
    """Order the boxes and passages of a column by the mean height of where their arcs come from."""

    def height(item: tuple[int, int]) -> float:
        group, place = item
        if column[group] != place:
            return rows[group, place - 1]
        sources = [
            rows[b.tail, place - 1] for b in folded.bundles if b.head == group and (b.tail, place - 1) in rows
        ]
        return sum(sources) / len(sources) if sources else 0.0

    return sorted(members, key=height)


def _stack(ordered: list[tuple[int, int]], column: list[int], rows: dict[tuple[int, int], float]) -> float:
    """Give the members of a column their rows around the middle; return the column's height."""
    heights = [1.0 if column[group] == place else _PASSAGE for group, place in ordered]
    top = -sum(heights) / 2
    for item, height in zip(ordered, heights, strict=True):
        rows[item] = round(top + height / 2, 3)
        top += height
    return sum(heights)
