"""Matrix functions of numpy.linalg: solutions, inverses, determinants, norms, factorizations.

The formulas are those of M. Giles, "An extended collection of matrix derivative results for forward and
reverse mode algorithmic differentiation" (2008), with all directions in one batch; cf. I. Murray,
"Differentiation of the Cholesky decomposition" (2016). |E| counts the products with matrices that one
direction takes. For complex matrices the derivatives of pseudoinverses, Cholesky factors and signs of
determinants are right, autograd's are not.
"""

from typing import Any

import numpy as np
from autograd.numpy import linalg

from tapesplit.recording.primitives import log_abs_det
from tapesplit.rules.axes import fold, lifted, of_arrays, real_like, spread
from tapesplit.rules.low_rank import Factors, factored, kept
from tapesplit.rules.products import one_product
from tapesplit.rules.reductions import by_weights, input_size
from tapesplit.rules.registry import bulk
from tapesplit.rules.solutions import solve_columns


def _cubic(products: int) -> Any:
    """Make an edge count: so many products of square matrices of the size of the argument."""

    def edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
        return products * int(np.size(args[0])) * max(np.shape(args[0])[-2:])

    return edges


def _solve_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a solution: n^2 fma for each column; the tangent of the matrix takes as many again."""
    return int(np.size(ans)) * np.shape(args[0])[-1] * (len(argnums) + (0 in argnums))


def _as_column(x: np.ndarray, b: Any) -> np.ndarray:
    """Give solutions for a vector b their column axis."""
    return x[..., None] if np.ndim(b) == 1 else x


def _solve_tangent_a(T: np.ndarray, ans: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    columns = _as_column(ans, b)
    rows = -solve_columns(a, lifted(T, columns.ndim) @ columns)  # b may be a stack where a is one matrix
    return rows[..., 0] if np.ndim(b) == 1 else rows


def _solve_tangent_b(T: np.ndarray, ans: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    rows = solve_columns(a, _as_column(T, b))
    return rows[..., 0] if np.ndim(b) == 1 else rows


def _solve_adjoint_a(A: np.ndarray, ans: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    back = solve_columns(a, _as_column(A, b), transposed=True)
    return real_like(fold(-back @ _as_column(ans, b).mT, np.shape(a)), a)


def _solve_adjoint_b(A: np.ndarray, ans: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    back = solve_columns(a, _as_column(A, b), transposed=True)
    return real_like(fold(back[..., 0] if np.ndim(b) == 1 else back, np.shape(b)), b)


bulk(
    linalg.solve,
    tangents=[of_arrays(_solve_tangent_a), of_arrays(_solve_tangent_b)],
    adjoints=[of_arrays(_solve_adjoint_a), of_arrays(_solve_adjoint_b)],
    edges=_solve_edges,
    steps=3,
    pace=8,
    cubic=1,
)
bulk(
    linalg.inv,
    tangents=[lambda T, ans, x: -ans @ T @ ans],
    adjoints=[lambda A, ans, x: -ans.mT @ A @ ans.mT],
    edges=_cubic(2),
    pace=2,
)


def _factored_solution(A: Factors, ans: Any, a: Any, b: Any) -> Any:
    """Factored adjoints of b in ``solve(a, b)``: ``solve(a.T, A)``."""
    if np.ndim(a) != 2:
        return NotImplemented
    left = solve_columns(np.asarray(a), A.left[..., None], transposed=True)
    return Factors(left.reshape(A.left.shape), A.right)


def _factored_inverse(A: Factors, ans: Any, x: Any) -> Factors:
    """Factored adjoints of an inverse: ``-ans.T @ A @ ans.T``."""
    return Factors(-one_product(A.left, ans), one_product(A.right, ans.T))


factored(linalg.solve, 1, _factored_solution, kept)
factored(linalg.inv, 0, _factored_inverse, kept)


def _inner(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Sum the elementwise products of matrices."""
    return np.einsum("k...ij,...ij->k...", X, Y)


bulk(
    linalg.det,
    tangents=[lambda T, ans, x: ans * _inner(T, np.linalg.inv(x).mT)],
    adjoints=[lambda A, ans, x: (A * ans)[..., None, None] * np.linalg.inv(x).mT],
    edges=input_size,
    cubic=3,
)


bulk(
    log_abs_det,
    tangents=[lambda T, ans, x: _inner(T, np.linalg.inv(x).mT)],
    adjoints=[lambda A, ans, x: A[..., None, None] * np.linalg.inv(x).mT],
    edges=input_size,
    cubic=3,
)


def _slogdet_tangent(T: np.ndarray, ans: Any, x: np.ndarray) -> np.ndarray:
    """Tangents of sign and logarithm in one axis; the sign turns if the matrix is complex."""
    logs = _inner(T, np.linalg.inv(x).mT)
    signs = 1j * ans[0] * logs.imag if np.iscomplexobj(logs) else np.zeros_like(logs)
    return np.concatenate([part.reshape(len(T), np.size(ans[1])) for part in (signs, logs.real)], axis=1)


def _slogdet_adjoint(A: np.ndarray, ans: Any, x: np.ndarray) -> np.ndarray:
    """Adjoints by the logarithm, and by the sign, which is constant unless the matrix is complex."""
    signs, logs = (part.reshape(len(A), *np.shape(ans[1]), 1, 1) for part in np.split(A, 2, axis=1))
    weights = logs.real
    if np.iscomplexobj(x):
        weights = weights + 1j * (signs * np.reshape(ans[0], (*np.shape(ans[0]), 1, 1))).imag
    return real_like(weights * np.linalg.inv(x).mT, x)


bulk(linalg.slogdet, tangents=[_slogdet_tangent], adjoints=[_slogdet_adjoint], edges=input_size, cubic=3)


def _norm_weights(
    ans: Any,
    x: np.ndarray,
    ord: Any = None,  # noqa: A002 (NumPy's name)
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """Derivatives of a norm by the elements, and its axis; None for a norm that has no rule here."""
    matrix = isinstance(axis, tuple) or (axis is None and x.ndim == 2)
    if ord == "nuc" and matrix and not np.iscomplexobj(x):
        rows_columns = axis or (0, 1)
        u, _, vt = np.linalg.svd(np.moveaxis(x, rows_columns, (-2, -1)), full_matrices=False)
        return np.moveaxis(u @ vt, (-2, -1), rows_columns), axis
    if matrix and ord not in (None, "fro"):
        return None
    if not matrix and not (ord is None or (isinstance(ord, (int, float)) and ord > 1)):
        return None
    wide = spread(np.asarray(ans)[None], x, axis)[0]
    if ord in (None, "fro", 2):
        return np.conj(x) / wide, axis
    if ord == np.inf:  # where autograd's formula gives NaN; ties share, as in a maximum
        largest = np.abs(x) == wide
        return np.conj(x) / wide * largest / largest.sum(axis=axis, keepdims=True), axis
    return np.conj(x) * np.abs(x) ** (ord - 2) / wide ** (ord - 1), axis


by_weights(linalg._primitive_norm, _norm_weights)  # noqa: SLF001 (linalg.norm itself only wraps it)


def _hermitian(X: np.ndarray) -> np.ndarray:
    """Conjugate and transpose matrices; real ones are not copied, as `numpy.conj` does."""
    return X.conj().mT


def _half(X: np.ndarray) -> np.ndarray:
    """Lower triangle with half the diagonal."""
    return X * (np.tri(X.shape[-1]) - 0.5 * np.eye(X.shape[-1]))


def _cholesky_tangent(T: np.ndarray, L: np.ndarray, x: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(L)
    return L @ _half(inverse @ ((T + _hermitian(T)) / 2.0) @ _hermitian(inverse))


def _cholesky_adjoint(A: np.ndarray, L: np.ndarray, x: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(L)
    S = inverse.mT @ _half(L.mT @ A) @ np.conj(inverse)
    rows = S + _hermitian(S)
    rows /= 2.0
    return rows


bulk(
    linalg.cholesky,
    tangents=[_cholesky_tangent],
    adjoints=[_cholesky_adjoint],
    edges=_cubic(3),
    steps=4,
    pace=3,
)


def _pinv_tangent(T: np.ndarray, ans: np.ndarray, x: np.ndarray) -> np.ndarray:
    left, right = np.eye(x.shape[-2]) - x @ ans, np.eye(x.shape[-1]) - ans @ x
    back, T_back = _hermitian(ans), _hermitian(T)
    return -ans @ T @ ans + ans @ back @ T_back @ left + right @ T_back @ back @ ans


def _pinv_adjoint(A: np.ndarray, ans: np.ndarray, x: np.ndarray) -> np.ndarray:
    left, right = np.eye(x.shape[-2]) - x @ ans, np.eye(x.shape[-1]) - ans @ x
    back = _hermitian(ans)
    return -ans.mT @ A @ ans.mT + np.conj(left @ A.mT @ ans @ back + back @ ans @ A.mT @ right)


bulk(linalg.pinv, tangents=[_pinv_tangent], adjoints=[_pinv_adjoint], edges=_cubic(8))
