"""Quadratic forms of many matrices at many points, and sums of squares of points, in little memory.

A form depends on the symmetric part of its matrix only, so that one product with all pairs of coordinates,
which takes half of the multiply-adds, finds the forms of many matrices.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

__all__ = ["SQUARES_HELD", "pairs_held", "quadratic_forms", "sums_of_squares"]

SQUARES_HELD: Final = 2
"""Matrices that are held for each one that is read or returned."""
_MOST_PAIRS: Final = 2**15
"""Numbers that are held for pairs of coordinates at a time: they stay in a cache, and more save no time."""
_TOGETHER: Final = 2**14
"""Numbers up to which the products of several matrices with all points are found at a time."""


def pairs_held(coordinates: int, of_each: int) -> int:
    """Count the numbers that are held, besides the matrices, for points with so many coordinates."""
    return max(coordinates, min(_MOST_PAIRS, coordinates * (of_each + 1)))


def quadratic_forms(T: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``y[n] @ T[k] @ y[n]`` for all matrices and points, shape ``(k, n)``."""
    forms = np.empty((len(T), len(y)), np.result_type(T, y))
    if _are_few(T, y):
        for some in _blocks(len(T), _TOGETHER // max(1, y.size)):
            np.einsum("kni,ni->kn", y @ T[some], y, out=forms[some])
        return forms
    i, j = np.tril_indices(y.shape[1])
    symmetric = (T + T.mT)[:, i, j]
    symmetric[:, i == j] *= 0.5
    for points in _blocks(len(y), _MOST_PAIRS // (2 * len(i))):
        forms[:, points] = symmetric @ _pairs(y[points], i, j)
    return forms


def sums_of_squares(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the sums of ``A[k, n] * outer(y[n], y[n])`` over all points, shape ``(k, d, d)``."""
    d = y.shape[1]
    sums = np.empty((len(A), d, d), np.result_type(A, y))
    if _are_few(A, y):
        for some in _blocks(len(A), _TOGETHER // max(1, y.size)):
            np.matmul(A[some, None, :] * y.T, y, out=sums[some])
        return sums
    i, j = np.tril_indices(d)
    of_pairs = np.zeros((len(A), len(i)), sums.dtype)
    for points in _blocks(len(y), _MOST_PAIRS // (2 * len(i))):
        of_pairs += A[:, points] @ _pairs(y[points], i, j).T
    sums[:, i, j] = of_pairs
    sums[:, j, i] = of_pairs
    return sums


def _are_few(X: np.ndarray, y: np.ndarray) -> bool:
    """Tell whether directions are so few that finding all pairs of coordinates takes longer."""
    return len(X) <= y.shape[1] or len(X) * y.size <= _TOGETHER


def _blocks(count: int, together: int) -> Iterator[slice]:
    """Yield slices of a range, each so long, or of length one."""
    step = max(1, together)
    return (slice(first, first + step) for first in range(0, count, step))


def _pairs(y: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Multiply pairs of coordinates of all points; a row for each pair."""
    found = y.T[i]
    found *= y.T[j]
    return found
