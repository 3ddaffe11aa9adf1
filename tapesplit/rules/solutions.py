"""Linear systems with a batch of right-hand sides: a sweep factorizes each matrix once.

Loops that solve with the same matrix in every step, as implicit methods do, would otherwise factorize it each
time. LAPACK wants each right-hand side next to each other in memory, which takes longer to arrange for many
columns than to solve for them; BLAS solves for rows as well, and the columns of an array are rows to it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import ref as weakref

import numpy as np
from scipy.linalg import blas, lapack

from tapesplit.arrays import FLOAT64
from tapesplit.rules.axes import lifted

__all__ = ["lu_bytes", "lu_kept", "solve_by_triangle", "solve_columns"]

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
    if dtype == FLOAT64 and B.shape[-1] >= _WIDE:
        return _solved_in_place(factors, pivots, B, transposed=transposed)
    wide = B.mT
    sides = np.ascontiguousarray(wide, dtype).reshape(-1, len(a)).T
    _, solve = _LAPACK[dtype.char]
    solved, _ = solve(factors, pivots, sides, trans=int(transposed))
    return solved.T.reshape(wide.shape).mT


def solve_by_triangle(a: np.ndarray, B: np.ndarray, *, lower: bool, transposed: bool) -> np.ndarray:
    """Solve as `solve_columns` does, with one triangle of `a`; all arrays are of double precision.

    B may be a batch of vectors, ``(k, n)``. No element of the diagonal may be zero.
    """
    if B.ndim > 2 and B.shape[-1] >= _WIDE and B.shape[-2] >= _HIGH:
        X = np.array(B, order="C")
        _divide(X, a, lower=lower, transposed=transposed)
        return X
    axis = 1 if B.ndim == 2 else -2
    wide = np.moveaxis(B, axis, 0)
    sides = wide.reshape(len(wide), -1).T
    solved = blas.dtrsm(1.0, a, sides, side=1, lower=lower, trans_a=not transposed)
    return np.moveaxis(solved.T.reshape(wide.shape), 0, axis)


def _divide(X: np.ndarray, a: np.ndarray, *, lower: bool, transposed: bool, ones: bool = False) -> None:
    """Solve for right-hand sides ``(..., n, r)``, in order in memory, which the solutions replace.

    ``ones`` says that the elements of the diagonal count as ones.
    """
    known = {"side": 1, "lower": lower, "trans_a": not transposed, "diag": ones, "overwrite_b": 1}
    for matrix in X.reshape(-1, *X.shape[-2:]):
        blas.dtrsm(1.0, a, matrix.T, **known)


def _solved_in_place(
    factors: np.ndarray, pivots: np.ndarray, B: np.ndarray, *, transposed: bool
) -> np.ndarray:
    """Solve by the two triangles of LU factors, as LAPACK does."""
    order = np.arange(len(pivots))
    for i, pivot in enumerate(pivots.tolist()):
        order[[i, pivot]] = order[[pivot, i]]
    X = (
        np.array(B, FLOAT64, order="C")
        if transposed
        else np.take(B, order, axis=-2).astype(FLOAT64, copy=False)
    )
    for lower in (not transposed, transposed):
        _divide(X, factors, lower=lower, transposed=transposed, ones=lower)
    return np.take(X, np.argsort(order), axis=-2) if transposed else X


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
_WIDE: Final = 64
"""Columns of right-hand sides from which on each direction is solved for in place: twice as fast for 20
equations and 2000 columns, as fast for 20 columns."""
_HIGH: Final = 8
"""Equations from which on this pays for a triangle: for two, moving the columns takes less time."""
_MOST_KEPT: Final = 4
"""Matrices whose factors are kept at a time: splitting methods solve with a few by turns."""
