"""Eigen- and singular value decompositions: results are tuples, so directions hold all factors in one axis.

Formulas for eigenvectors: M. Giles (2008), Sec. 3.1, and C. Boeddeker et al., "On the computation of
complex-valued gradients" (2017), Eq. 4.77; for singular vectors: J. Townsend, "Differentiating the singular
value decomposition" (2016). Complex singular values take the loop over autograd's rules.
"""

from math import prod
from typing import Any, Final

import numpy as np
from autograd.numpy import linalg

from tapesplit.recording.primitives import (
    singular_values,
    singular_vectors,
    symmetric_eigenvalues,
    symmetric_eigenvectors,
)
from tapesplit.rules.axes import flat, real_like
from tapesplit.rules.low_rank import Factors, factored, summed
from tapesplit.rules.products import one_product
from tapesplit.rules.registry import Held, bulk


def _join(*factors: np.ndarray) -> np.ndarray:
    """Put directions of several factors into one axis."""
    return np.concatenate(list(map(flat, factors)), axis=1)


def _part(A: np.ndarray, *factors: np.ndarray) -> list[np.ndarray]:
    """Split directions in one axis among factors."""
    stops = np.cumsum([factor.size for factor in factors])
    pieces = np.split(A, stops[:-1], axis=1)
    return [piece.reshape(len(A), *factor.shape) for piece, factor in zip(pieces, factors, strict=True)]


def _gaps(w: np.ndarray, added: float = 0.0) -> np.ndarray:
    """``1 / (w_j - w_i + added)`` off the diagonal, zero on it; infinite for equal values."""
    diagonal = np.eye(w.shape[-1])
    with np.errstate(divide="ignore"):
        return (1.0 - diagonal) / (w[..., None, :] - w[..., :, None] + (diagonal + added))


def _on_diagonal(x: np.ndarray) -> np.ndarray:
    """Diagonal matrices of a stack of vectors."""
    return x[..., None] * np.eye(x.shape[-1])


def _used(*vectors: np.ndarray) -> np.ndarray:
    """Tell which directions have adjoints of vectors at all; equal values do no harm to the others."""
    return np.any([V.any(axis=tuple(range(1, V.ndim))) for V in vectors], axis=0)


def _read_side(X: np.ndarray, UPLO: str) -> np.ndarray:
    """Return the triangle of Hermitian matrices that ``eigh`` reads, without the diagonal."""
    return np.tril(X, -1) if UPLO.upper() == "L" else np.triu(X, 1)


def _eigh_tangent(T: np.ndarray, ans: Any, x: np.ndarray, UPLO: str = "L") -> np.ndarray:
    w, V = ans
    read = _read_side(T, UPLO)
    inner = V.conj().mT @ (read + read.conj().mT + _on_diagonal(np.linalg.diagonal(T).real)) @ V
    with np.errstate(invalid="ignore"):  # 0 · inf: an eigenvector of a multiple eigenvalue has no derivative
        return _join(np.linalg.diagonal(inner).real, V @ (_gaps(w) * inner))


def _eigh_adjoint(A: np.ndarray, ans: Any, x: np.ndarray, UPLO: str = "L") -> np.ndarray:
    w, V = ans
    wg, Vg = _part(A, w, V)
    inner = _on_diagonal(wg.real).astype(np.result_type(A, V), copy=False)
    used = _used(Vg)
    if used.any():
        inner[used] += _gaps(w) * (V.mT @ Vg[used])
    return _read_twice(V.conj() @ inner @ V.mT, UPLO)


def _read_twice(S: np.ndarray, UPLO: str) -> np.ndarray:
    """Return adjoints of Hermitian matrices of which ``eigh`` reads one side, given those of all elements."""
    return (S + S.conj().mT) * (_sides(S, UPLO) / 2)


def _sides(x: np.ndarray, UPLO: str) -> np.ndarray:
    """Return how often ``eigh`` uses each element: once on the diagonal, twice on the side that it reads."""
    return np.eye(x.shape[-1]) + _read_side(np.full(x.shape[-2:], 2.0), UPLO)


def _eigh_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of an eigendecomposition: four products of square matrices for each direction."""
    return 4 * int(np.size(args[0])) * np.shape(args[0])[-1]


bulk(linalg.eigh, tangents=[_eigh_tangent], adjoints=[_eigh_adjoint], edges=_eigh_edges, steps=12)


def _eigenvalues_tangent(T: np.ndarray, ans: Any, x: np.ndarray, UPLO: str, V: np.ndarray) -> np.ndarray:
    return np.einsum("k...ij,...ij->k...j", T * _sides(x, UPLO) @ V, V)


def _eigenvalues_adjoint(A: np.ndarray, ans: Any, x: np.ndarray, UPLO: str, V: np.ndarray) -> np.ndarray:
    S = _outer_products(V, A, V)
    return np.multiply(S, _sides(x, UPLO), out=S)


def _outer_products(left: np.ndarray, weights: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sum outer products of columns with their weights, for each direction."""
    if left.ndim == 2 and (weights != 0).sum(axis=1).max(initial=0) <= 1:  # as for an identity of adjoints
        columns = (weights != 0).argmax(axis=1)
        weighted = left.T[columns] * np.take_along_axis(weights, columns[:, None], axis=1)
        products: np.ndarray = weighted[:, :, None] * right.T[columns, None]
        return products
    return left * weights[..., None, :] @ right.mT


bulk(
    symmetric_eigenvalues,
    tangents=[_eigenvalues_tangent],
    adjoints=[_eigenvalues_adjoint],
    edges=lambda ans, args, argnums, kwargs: ans.size * ans.shape[-1] ** 2,
)


def _eigenvectors_tangent(
    T: np.ndarray, V: np.ndarray, x: np.ndarray, UPLO: str, w: np.ndarray
) -> np.ndarray:
    read = T * (_sides(x, UPLO) / 2)
    return V @ (_gaps(w) * (V.mT @ (read + read.mT) @ V))


def _eigenvectors_adjoint(
    A: np.ndarray, V: np.ndarray, x: np.ndarray, UPLO: str, w: np.ndarray
) -> np.ndarray:
    return _read_twice(V @ (_gaps(w) * (V.mT @ A)) @ V.mT, UPLO)


bulk(
    symmetric_eigenvectors,
    tangents=[_eigenvectors_tangent],
    adjoints=[_eigenvectors_adjoint],
    edges=_eigh_edges,
    steps=12,
    held=lambda args, argnum, *, adjoint_mode: Held(3 * int(np.size(args[0])), 0),
)


def _factored_eigenvectors(A: Factors, V: np.ndarray, x: np.ndarray, UPLO: str, w: np.ndarray) -> Any:
    """Adjoints of a symmetric matrix by those of few of its eigenvectors: products of V and vectors only."""
    if not isinstance(A, Factors) or np.ndim(x) != 2 or (np.count_nonzero(A.right, axis=-1) > 1).any():
        return NotImplemented
    gaps = _gaps(w)
    if not np.isfinite(gaps).all():  # infinite ones spread, also to the vectors that have no adjoints
        return NotImplemented
    read = np.abs(A.right).argmax(axis=-1)
    weights = np.take_along_axis(A.right, read[..., None], axis=-1)
    back = one_product(one_product(A.left, V) * (weights * gaps.T[read]), V.T)
    sides = Factors(back, V.T[read]).joined(Factors(V.T[read], back))
    S = sides.dense()
    S *= _sides(x, UPLO) / 2
    return S


factored(symmetric_eigenvectors, 0, _factored_eigenvectors, summed)


_EIG_GAP: Final = 1e-20
"""What autograd adds to the differences of eigenvalues: vectors of equal ones get large derivatives."""


def _eig_tangent(T: np.ndarray, ans: Any, x: np.ndarray) -> np.ndarray:
    """Carry tangents to eigenvectors that keep their length."""
    w, U = ans
    inner = np.linalg.inv(U) @ T @ U
    moved = U @ (_gaps(w, _EIG_GAP) * inner)
    return _join(np.linalg.diagonal(inner), moved - U * (U.conj() * moved).real.sum(axis=-2, keepdims=True))


def _eig_adjoint(A: np.ndarray, ans: Any, x: np.ndarray) -> np.ndarray:
    w, U = ans
    wg, Ug = _part(A, w, U)
    projected = U.mT @ Ug
    lengthened = U.mT @ U.conj() * np.linalg.diagonal(projected).real[..., None, :]
    inner = _on_diagonal(wg) + _gaps(w, _EIG_GAP) * (projected - lengthened)
    return real_like(np.linalg.inv(U).mT @ inner @ U.mT, x)


bulk(linalg.eig, tangents=[_eig_tangent], adjoints=[_eig_adjoint], edges=_eigh_edges, steps=12, pace=12)


def _thin(ans: Any, x: np.ndarray, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return thin u, s, v, and whether u and v are asked for; None if there is no rule or x is complex."""
    if np.iscomplexobj(x) or (compute_uv and full_matrices):
        return None
    u, s, vt = ans if compute_uv else np.linalg.svd(x, full_matrices=False)
    return u, s, vt.mT, compute_uv


def _svd_tangent(T: np.ndarray, ans: Any, x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
    factors = _thin(ans, x, *args, **kwargs)
    if factors is None:
        return NotImplemented
    u, s, v, compute_uv = factors
    inner = u.mT @ T @ v
    ds = np.linalg.diagonal(inner)
    if not compute_uv:
        return ds
    return _join(_left_tangent(inner, T, u, s, v), ds, _left_tangent(inner.mT, T.mT, v, s, u).mT)


def _left_tangent(
    inner: np.ndarray, T: np.ndarray, u: np.ndarray, s: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """Tangents of left singular vectors; ``inner`` is ``u.mT @ T @ v``. Transposed, of right ones."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = inner * s[..., None, :]
        du: np.ndarray = u @ (_gaps(s**2) * (scaled + scaled.mT))
        if u.shape[-2] > v.shape[-2]:
            du += (T @ v - u @ inner) / s[..., None, :]
    return du


def _svd_adjoint(A: np.ndarray, ans: Any, x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
    factors = _thin(ans, x, *args, **kwargs)
    if factors is None:
        return NotImplemented
    u, s, v, compute_uv = factors
    if not compute_uv:
        return _outer_products(u, A, v)
    ug, sg, vtg = _part(A, u, s, v.mT)
    vg = vtg.mT
    used = _used(ug, vg)
    if not used.any():  # zeros among singular values do no harm to these
        return _outer_products(u, sg, v)
    inner, of_u, of_v = _on_diagonal(sg), u.mT @ ug, v.mT @ vg
    skew_u, skew_v = (x[used] - x[used].mT for x in (of_u, of_v))
    inner[used] += _gaps(s**2) * (skew_u * s[..., None, :] + s[..., :, None] * skew_v)
    S = u @ inner @ v.mT
    if x.shape[-2] > x.shape[-1]:
        S = S + (ug - u @ of_u) / s[..., None, :] @ v.mT
    if x.shape[-2] < x.shape[-1]:
        S = S + u / s[..., None, :] @ (vg - v @ of_v).mT
    return S


def _svd_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a singular value decomposition: eight products with the thin factors for each direction."""
    return 8 * int(np.size(args[0])) * min(np.shape(args[0])[-2:])


bulk(linalg.svd, tangents=[_svd_tangent], adjoints=[_svd_adjoint], edges=_svd_edges)


def _singular_values_tangent(
    T: np.ndarray, ans: Any, x: np.ndarray, u: np.ndarray, vt: np.ndarray
) -> np.ndarray:
    return np.einsum("k...ij,...ij->k...j", T @ vt.mT, u)


bulk(
    singular_values,
    tangents=[_singular_values_tangent],
    adjoints=[lambda A, ans, x, u, vt: _outer_products(u, A, vt.mT)],
    edges=lambda ans, args, argnums, kwargs: ans.size * prod(args[0].shape[-2:]),
)


def _singular_vectors_tangent(
    T: np.ndarray, ans: Any, x: np.ndarray, factor: int, u: np.ndarray, s: np.ndarray, vt: np.ndarray
) -> np.ndarray:
    v, inner = vt.mT, u.mT @ T @ vt.mT
    if factor == 0:
        return _left_tangent(inner, T, u, s, v)
    return _left_tangent(inner.mT, T.mT, v, s, u).mT


def _singular_vectors_adjoint(
    A: np.ndarray, ans: Any, x: np.ndarray, factor: int, u: np.ndarray, s: np.ndarray, vt: np.ndarray
) -> np.ndarray:
    if factor == 0:
        return _left_adjoint(A, u, s, vt.mT)
    return _left_adjoint(A.mT, vt.mT, s, u).mT


def _left_adjoint(A: np.ndarray, u: np.ndarray, s: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Adjoints of matrices from those of left singular vectors. Transposed, from those of right ones."""
    of_u = u.mT @ A
    left: np.ndarray = u @ (_gaps(s**2) * (of_u - of_u.mT) * s[..., None, :])
    if u.shape[-2] > v.shape[-2]:
        left += (A - u @ of_u) / s[..., None, :]
    return left @ v.mT


bulk(
    singular_vectors,
    tangents=[_singular_vectors_tangent],
    adjoints=[_singular_vectors_adjoint],
    edges=lambda *call: _svd_edges(*call) // 2,
    steps=12,
    held=lambda args, argnum, *, adjoint_mode: Held(4 * max(map(np.size, (args[0], *args[2::2]))), 0),
)
