"""Triangular, banded and Sylvester systems of scipy.linalg, with one factorization for all directions."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from autograd.scipy import linalg
from scipy.linalg import get_lapack_funcs, schur, solve_banded, solve_triangular

from tapesplit.arrays import FLOAT64
from tapesplit.rules.axes import fold, of_arrays, real_like
from tapesplit.rules.registry import bulk
from tapesplit.rules.solutions import solve_by_triangle
from tapesplit.rules.stacks import solves_columns


def _for_columns(solve: Callable[[np.ndarray], np.ndarray], B: np.ndarray) -> np.ndarray:
    """Solve for each right-hand side of a batch ``(k, n)`` or ``(k, ..., n, r)``, all of them as columns."""
    if not B.size:
        return B
    axis = 1 if B.ndim == 2 else -2
    wide = np.moveaxis(B, axis, 0)
    return np.moveaxis(solve(wide.reshape(len(wide), -1)).reshape(wide.shape), 0, axis)


def _covers(a: np.ndarray, b: np.ndarray, keywords: dict[str, Any]) -> bool:
    """Whether a call is real, of one matrix, and has no keyword that changes what autograd's rule ignores."""
    real = not np.iscomplexobj(a) and not np.iscomplexobj(b)
    return real and a.ndim == 2 and keywords.keys() <= {"check_finite"}


def _triangular(function: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """Make a directional function of ``function(X, ans, a, lower, transposed)``, for calls that it covers."""

    def directional(
        X: np.ndarray, ans: Any, a: Any, b: Any, trans: Any = 0, lower: bool = False, **keywords: Any
    ) -> Any:
        if not _covers(a, b, keywords):
            return NotImplemented
        return function(X, ans, a, lower, trans not in ("N", 0))

    return of_arrays(directional)


def _side_tangent(T: np.ndarray, ans: Any, a: np.ndarray, lower: bool, transposed: bool) -> np.ndarray:
    if T.size and T.dtype == a.dtype == FLOAT64:
        return solve_by_triangle(a, T, lower=lower, transposed=transposed)
    return _for_columns(lambda wide: solve_triangular(a, wide, int(transposed), lower), T)


def _side_adjoint(A: np.ndarray, ans: Any, a: np.ndarray, lower: bool, transposed: bool) -> np.ndarray:
    return _side_tangent(A, ans, a, lower, not transposed)


def _matrix_tangent(T: np.ndarray, ans: Any, a: np.ndarray, lower: bool, transposed: bool) -> np.ndarray:
    T = np.tril(T) if lower else np.triu(T)
    T = (T.mT if transposed else T).reshape(len(T), *(1,) * (ans.ndim - 2), *a.shape)  # beside a stack
    return _side_tangent(-(T @ ans), ans, a, lower, transposed)


def _matrix_adjoint(A: np.ndarray, ans: Any, a: np.ndarray, lower: bool, transposed: bool) -> np.ndarray:
    back = _side_adjoint(A, ans, a, lower, transposed)
    right = ans if ans.ndim >= 2 else ans[:, None]
    rows = fold(-(back.reshape(len(A), *right.shape) @ right.mT), a.shape)
    rows = rows.mT if transposed else rows
    return np.tril(rows) if lower else np.triu(rows)


def _edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E|: half of n^2 fma for each column, and as much for the tangent of the matrix."""
    return int(np.size(ans)) * len(args[0]) // 2 * (len(argnums) + (0 in argnums))


bulk(
    linalg.solve_triangular,
    tangents=[_triangular(_matrix_tangent), _triangular(_side_tangent)],
    adjoints=[_triangular(_matrix_adjoint), _triangular(_side_adjoint)],
    edges=_edges,
    steps=3,
    pace=4,
)
solves_columns(linalg.solve_triangular, 1)


# Bands: diagonal d of a matrix stands in line ``upper - d``; its element in column j belongs to row j - d.


def _diagonals(bands: tuple[int, int], n: int) -> Iterator[tuple[int, slice, slice]]:
    """Yield the line, the rows and the columns of each diagonal of a banded matrix."""
    lower, upper = bands
    for d in range(-lower, upper + 1):
        yield upper - d, slice(max(0, -d), n - max(0, d)), slice(max(0, d), n - max(0, -d))


def _transposed(bands: tuple[int, int], a: np.ndarray) -> tuple[tuple[int, int], np.ndarray]:
    """Transpose a banded matrix."""
    result = np.zeros_like(a)
    for line, rows, columns in _diagonals(bands, a.shape[1]):
        result[len(a) - 1 - line, rows] = a[line, columns]
    return (bands[1], bands[0]), result


def _solved_banded(bands: tuple[int, int], a: np.ndarray, B: np.ndarray) -> np.ndarray:
    return _for_columns(partial(solve_banded, bands, a), B)


def _banded_side_tangent(T: np.ndarray, ans: Any, bands: Any, a: Any, b: Any, **keywords: Any) -> Any:
    return _solved_banded(bands, a, T) if _covers(a, b, keywords) else NotImplemented


def _banded_side_adjoint(A: np.ndarray, ans: Any, bands: Any, a: Any, b: Any, **keywords: Any) -> Any:
    return _solved_banded(*_transposed(bands, a), A) if _covers(a, b, keywords) else NotImplemented


def _banded_matrix_tangent(T: np.ndarray, ans: Any, bands: Any, a: Any, b: Any, **keywords: Any) -> Any:
    if not _covers(a, b, keywords) or ans.ndim != 1:
        return NotImplemented
    right = np.zeros((len(T), ans.size))
    for line, rows, columns in _diagonals(bands, ans.size):
        right[:, rows] -= T[:, line, columns] * ans[columns]
    return _solved_banded(bands, a, right)


def _banded_matrix_adjoint(A: np.ndarray, ans: Any, bands: Any, a: Any, b: Any, **keywords: Any) -> Any:
    if not _covers(a, b, keywords) or ans.ndim != 1:
        return NotImplemented
    back = _solved_banded(*_transposed(bands, a), A)
    result = np.zeros((len(A), *a.shape))
    for line, rows, columns in _diagonals(bands, ans.size):
        result[:, line, columns] = -back[:, rows] * ans[columns]
    return result


def _banded_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E|: the bands of both factors for each column, and of the matrix for its tangent."""
    return int(np.size(ans)) * len(args[1]) * (2 * len(argnums) + (1 in argnums))


bulk(
    linalg.solve_banded,
    tangents=[None, _banded_matrix_tangent, _banded_side_tangent],
    adjoints=[None, _banded_matrix_adjoint, _banded_side_adjoint],
    edges=_banded_edges,
)
solves_columns(linalg.solve_banded, 2)


# Sylvester equations ``a X + X b = Q``, and square roots of matrices, whose tangents solve one (N. Higham,
# "Functions of Matrices", SIAM 2008, Sec. 6.1).


def _sylvester(a: np.ndarray, b: np.ndarray, Q: np.ndarray) -> Any:
    """Solve for each Q of a batch ``(k, m, n)`` with one pair of Schur factorizations (Bartels & Stewart).

    Returns NotImplemented for equations that have no unique solution, where SciPy moves eigenvalues a little.
    """
    if not Q.size:
        return Q
    form = "complex" if any(map(np.iscomplexobj, (a, b, Q))) else "real"
    (R, U), (S, V) = (schur(_in_double(x), form) for x in (a, b))
    F = U.conj().T @ Q @ V
    (solve,) = get_lapack_funcs(("trsyl",), (R, S, F))
    for number, right in enumerate(F):
        found, scale, info = solve(R, S, right)
        if info:
            return NotImplemented
        F[number] = scale * found
    return U @ F @ V.conj().T


def _in_double(x: np.ndarray) -> np.ndarray:
    """Round long doubles, which old versions of sqrtm return: SciPy would treat them as single precision."""
    return x.astype({"g": np.float64, "G": np.complex128}.get(x.dtype.char, x.dtype), copy=False)


def _solved(right: Callable[..., np.ndarray]) -> Any:
    """Make the tangent function of one argument of ``solve_sylvester``, itself such an equation.

    ``right(T, ans)`` is its right-hand side.
    """

    def tangent(T: np.ndarray, ans: np.ndarray, a: Any, b: Any, q: Any) -> Any:
        if ans.ndim != 2:  # a stack of equations
            return NotImplemented
        return _sylvester(np.asarray(a), np.asarray(b), right(T, ans))

    return tangent


def _solved_back(argnum: int, of_argument: Callable[..., np.ndarray]) -> Any:
    """Make the adjoint function of one argument of ``solve_sylvester``.

    ``of_argument(back, ans)`` finds its adjoints from those of the right-hand side.
    """

    def adjoint(A: np.ndarray, ans: np.ndarray, a: Any, b: Any, q: Any) -> Any:
        if ans.ndim != 2:
            return NotImplemented
        back = _sylvester(np.transpose(a), np.transpose(b), A)
        return back if back is NotImplemented else real_like(of_argument(back, ans), (a, b, q)[argnum])

    return adjoint


bulk(
    linalg.solve_sylvester,
    tangents=[
        _solved(lambda T, ans: -T @ ans),
        _solved(lambda T, ans: -ans @ T),
        _solved(lambda T, ans: T),
    ],
    adjoints=[
        _solved_back(0, lambda back, ans: -back @ ans.T),
        _solved_back(1, lambda back, ans: -ans.T @ back),
        _solved_back(2, lambda back, ans: back),
    ],
    edges=lambda ans, args, argnums, kwargs: int(np.size(ans)) * sum(np.shape(ans)) * (3 + len(argnums)),
)


def _root_tangent(T: np.ndarray, ans: np.ndarray, A: Any, *rest: Any, **keywords: Any) -> Any:
    return NotImplemented if np.ndim(A) != 2 or rest or keywords else _sylvester(ans, ans, T)


def _root_adjoint(G: np.ndarray, ans: np.ndarray, A: Any, *rest: Any, **keywords: Any) -> Any:
    if np.ndim(A) != 2 or rest or keywords:
        return NotImplemented
    rows = _sylvester(ans.T, ans.T, G)
    return rows if rows is NotImplemented else real_like(rows, A)


bulk(
    linalg.sqrtm,
    tangents=[_root_tangent],
    adjoints=[_root_adjoint],
    edges=lambda ans, args, argnums, kwargs: 6 * int(np.size(ans)) * len(ans),
)
