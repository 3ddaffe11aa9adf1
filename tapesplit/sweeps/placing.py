"""Adjoints of few elements of a matrix as factors: directions are still diagonal, or few lines are read.

A direction that begins with one element has rank one in the matrix which that element was picked from, or
summed over a row of. Adjoints of a few rows or columns have the rank of how many these are.
"""

from typing import Any

import numpy as np

from tapesplit.rules import IndexMap
from tapesplit.rules.axes import flat, real_like
from tapesplit.rules.low_rank import Factors, is_thin
from tapesplit.sweeps.directions import Diagonal, LowRank, Rows

__all__ = ["of_elements", "of_lines", "of_sums"]


def of_elements(batch: Diagonal, moves: IndexMap, value: Any) -> LowRank | None:
    """Return adjoints of a matrix of which each direction has one element, which was moved from there.

    None if numbers are infinite or NaN: times the zeros beside them, they would spread.
    """
    values = real_like(batch.values.reshape(-1), value)[batch.wanted]
    if not np.isfinite(values).all():
        return None
    sources = np.full(moves.length, -1)
    sources[moves.targets] = moves.sources
    sources = sources[batch.wanted]
    rows, columns = np.divmod(sources, value.shape[1])
    left = _units(value.shape[0], rows, values * (sources >= 0))
    return LowRank(batch.start, Factors(left, _units(value.shape[1], columns, np.ones_like(values))))


def of_lines(batch: Rows, moves: IndexMap, value: Any) -> LowRank | None:
    """Return adjoints of a matrix of which few rows, or columns, are read.

    None if these are none or not few, or if numbers are not finite.
    """
    adjoints = real_like(flat(batch.rows), value)
    if not np.isfinite(adjoints).all():
        return None
    lines = moves.lines(value.shape)
    rank, length = lines.places.size, value.shape[lines.are_rows]
    if not rank or not is_thin(rank, value.shape):
        return None
    units = np.zeros((1, rank, value.shape[not lines.are_rows]), adjoints.dtype)
    units[0, np.arange(rank), lines.places] = 1.0
    sides = units, lines.moves.scatter(adjoints).reshape(len(adjoints), rank, length)
    return LowRank(batch.start, Factors(*(sides if lines.are_rows else sides[::-1])))


def of_sums(batch: Diagonal, weights: np.ndarray, *, along_rows: bool) -> LowRank | None:
    """Return adjoints of a matrix of which each direction has the weighted sum of one row, or column.

    `weights` are those of all elements. None if some are infinite or NaN.
    """
    values, places = batch.values.reshape(-1)[batch.wanted], np.arange(batch.values.size)[batch.wanted]
    lines = (weights if along_rows else weights.T)[places]
    if not (np.isfinite(values).all() and np.isfinite(lines).all()):
        return None
    sides = _units(batch.values.size, places, values), lines[:, None]
    return LowRank(batch.start, Factors(*(sides if along_rows else sides[::-1])))


def _units(length: int, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return factors of rank one, shape ``(k, 1, length)``, that have one value each."""
    factor = np.zeros((len(places), 1, length), values.dtype)
    factor[np.arange(len(places)), 0, places] = values
    return factor
