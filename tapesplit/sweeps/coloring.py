"""Colors for the columns of a sparse matrix: those of one color have no row in common."""

from typing import Final

import numpy as np

from tapesplit.arrays import IntArray

__all__ = ["color_columns"]

_FEW: Final = 1.1
"""Multiple of the least possible number of colors up to which a coloring is accepted at once."""


def color_columns(row: IntArray, column: IntArray, rows: int, columns: int) -> IntArray:
    """Color the columns of a sparse matrix so that no two of one color have a row in common.

    `row` and `column` tell where the matrix, of shape ``(rows, columns)``, is not zero. The colors of the
    columns are counted from 0.

    Notes
    -----
    Columns at equal distances have the same color if that will do, as in bands. Else the greedy way, columns
    with many entries first: each row keeps the colors that its columns have as the bits of one number. Where
    bands wrap around at their ends, as those of periodic grids do, that takes up to twice the fewest colors;
    another order is tried there, too.

    Examples
    --------
    >>> color_columns(*np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]]).nonzero(), 3, 3)
    array([0, 1, 0])
    """
    fewest = int(np.bincount(row).max(initial=0))  # the columns of one row have as many colors
    apart = _places_apart(columns, fewest)
    for colors in (np.arange(columns) % max(fewest, 1), apart):
        if colors.max(initial=0) + 1 <= _FEW * fewest and _differ(row, colors[column]):
            return colors
    counts = np.bincount(column, minlength=columns)
    stops = np.cumsum(counts)
    given = row[np.argsort(column, kind="stable")].tolist()
    bounds = [slice(*ends) for ends in zip((stops - counts).tolist(), stops.tolist(), strict=True)]
    colors = _greedy(given, bounds, rows, np.argsort(-counts, kind="stable"))
    if colors.max(initial=0) + 1 > _FEW * fewest:
        others = _greedy(given, bounds, rows, np.argsort(apart, kind="stable"))
        if others.max(initial=0) < colors.max(initial=0):
            return others
    return colors


def _greedy(given: list[int], bounds: list[slice], rows: int, order: IntArray) -> IntArray:
    """Color columns one after the other; the rows of column i are ``given[bounds[i]]``."""
    colors, taken = np.zeros(len(bounds), dtype=np.int64), [0] * rows
    for number in order.tolist():
        mine = given[bounds[number]]
        used = 0
        for place in mine:
            used |= taken[place]
        color = ~used & (used + 1)  # the lowest bit that is free
        for place in mine:
            taken[place] |= color
        colors[number] = color.bit_length() - 1
    return colors


def _differ(row: IntArray, color: IntArray) -> bool:
    """Tell whether the entries of each row have different colors."""
    here = row * (int(color.max(initial=0)) + 1) + color
    return bool(np.bincount(here).max(initial=0) <= 1)


def _places_apart(columns: int, least: int) -> IntArray:
    """Cut a ring of columns into parts of about equal size, ``least`` or more, and number columns in each."""
    run = max(columns // max(least, 1), 1)
    number = np.arange(columns)
    first = -(-(number * run // columns) * columns // run)  # of the part of the ring that a column is in
    return number - first
