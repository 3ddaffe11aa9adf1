"""Linear systems with a batch of right-hand sides: a sweep factorizes each matrix once.

Loops that solve with the same matrix in every step, as implicit methods do, would otherwise factorize it each
time.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import ref as weakref

import numpy as np
from scipy.linalg import lapack

from tapesplit.rules.axes import lifted

__all__ = ["lu_bytes", "lu_kept", "solve_columns"]

_Key: TypeAlias = tuple[int, str]


class _LU(NamedTuple):
    """The LU factors of a matrix and their pivots, valid while the matrix lives."""

    matrix: weakref[np.ndarray]
    factors: np.ndarray
    pivots: np.ndarray


_kept: ContextVar[dict[_Key, _LU] | None] = ContextVar("kept", default=None)
"""LU factors of the last matrices of a sweep, by identity and precision."""


@contextmanager
def lu_kept() -> Iterator[None]:
    """Keep the LU factors of matrices of systems solved in this context; they must not change meanwhile.

    Outside of it, NumPy solves, and no factors are kept in memory.
    """
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def lu_bytes(matrices: Iterable[Any]) -> int:
    """Count the bytes of the LU factors that are kept at a time if systems with these matrices are solved."""
    square = [a for a in map(np.asarray, matrices) if a.ndim == 2]
    distinct = {id(a): a.size * np.result_type(a, float).itemsize for a in square}
    return sum(sorted(distinct.values())[-_MOST_KEPT:])


def solve_columns(a: np.ndarray, B: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Solve ``a x = b``, or ``a.T x = b``, for a batch ``(k, ..., n, r)`` of right-hand sides.

    `a` may be a stack of matrices. Raises `numpy.linalg.LinAlgError` if one is singular.
    """
    common = np.result_type(a, B)
    dtype = common if common.kind in "fc" else np.dtype(float)
    kept = _kept.get()
    if kept is None or a.ndim != 2 or not B.size or dtype.char not in _LAPACK:
        return _solved_together(a.mT if transposed else a, B)
    _, factors, pivots = _lu_of(a, dtype, kept)
    wide = B.mT
    sides = np.ascontiguousarray(wide, dtype).reshape(-1, len(a)).T
    _, solve = _LAPACK[dtype.char]
    solved, _ = solve(factors, pivots, sides, trans=int(transposed))
    return solved.T.reshape(wide.shape).mT


def _solved_together(a: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Solve by NumPy, which finds the factors of each matrix of a stack once for all directions."""
    wide = np.moveaxis(lifted(B, a.ndim), 0, -1)
    X = np.linalg.solve(a, wide.reshape(*wide.shape[:-2], wide.shape[-2] * wide.shape[-1]))
    return np.moveaxis(X.reshape(*X.shape[:-1], *wide.shape[-2:]), -1, 0)


def _lu_of(a: np.ndarray, dtype: np.dtype, kept: dict[_Key, _LU]) -> _LU:
    """Return the LU factors of a matrix in some precision: those that are kept, or new ones to be kept."""
    key = (id(a), dtype.char)
    if key in kept and kept[key].matrix() is a:
        return kept[key]
    for other in [*kept]:  # the oldest first
        if len(kept) == _MOST_KEPT or kept[other].matrix() is None:
            del kept[other]
    factor, _ = _LAPACK[dtype.char]
    factors, pivots, info = factor(a)
    if info > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    kept[key] = _LU(weakref(a), factors, pivots)
    return kept[key]


_LAPACK: Final = {
    "f": (lapack.sgetrf, lapack.sgetrs),
    "d": (lapack.dgetrf, lapack.dgetrs),
    "F": (lapack.cgetrf, lapack.cgetrs),
    "D": (lapack.zgetrf, lapack.zgetrs),
}
"""How to factor a matrix and how to solve by its factors, in each precision."""
_MOST_KEPT: Final = 4
"""Matrices whose factors are kept at a time: splitting methods solve with a few by turns."""
