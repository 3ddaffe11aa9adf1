"""Primitives of our own, recorded in place of calls of autograd that would keep scalar sweeps out."""

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import extend
from autograd.extend import defjvp, defvjp
from autograd.numpy.numpy_vspaces import ArrayVSpace
from autograd.tracer import isbox

__all__ = [
    "adjusted_side",
    "dense_untake",
    "inner_variable",
    "log_abs_det",
    "singular_values",
    "singular_vectors",
    "slope_of_tanh",
    "summed_untake",
    "symmetric_eigenvalues",
    "symmetric_eigenvectors",
]

primitive: Callable[[Callable[..., Any]], Any] = extend.primitive  # autograd has no types


@primitive
def inner_variable(x: Any) -> Any:
    """Return x: the variable by which a gradient inside of a recorded function is taken."""
    return x


defvjp(inner_variable, lambda _ans, _x: lambda g: g)
defjvp(inner_variable, "same")


@primitive
def dense_untake(x: Any, index: Any, space: ArrayVSpace) -> np.ndarray:
    """Return zeros with x where an index without repetition points: autograd's ``untake``, not sparse."""
    result = np.zeros(space.shape)
    result[index] = x
    return result


defvjp(dense_untake, lambda _ans, _x, index, _space: lambda g: g[index])
defjvp(dense_untake, "same")


@primitive
def summed_untake(x: Any, index: Any, space: ArrayVSpace) -> np.ndarray:
    """Return zeros to which x is added where an index points, however often it points there."""
    result = np.zeros(space.shape)
    np.add.at(result, index, x)
    return result


defvjp(summed_untake, lambda _ans, _x, index, _space: lambda g: g[index])
defjvp(summed_untake, "same")


@primitive
def slope_of_tanh(x: Any) -> Any:
    """Return the derivative of ``tanh``; by parts, ``1 / cosh(x) ** 2`` has derivatives that overflow."""
    if not np.iscomplexobj(x):
        return 1.0 / np.cosh(x) ** 2
    decay = np.exp(-2.0 * np.copysign(1.0, np.real(x)) * x)  # squares of infinite cosines are undefined
    return 4.0 * decay / (1.0 + decay) ** 2


defvjp(slope_of_tanh, lambda ans, x: lambda g: g * (-2.0 * anp.tanh(x)) * ans)


@primitive
def log_abs_det(x: Any) -> Any:
    """Return the logarithms of absolute determinants, the only part of ``slogdet`` that varies."""
    return np.linalg.slogdet(x)[1]


defvjp(
    log_abs_det,
    lambda ans, x: lambda g: anp.reshape(g, (*ans.shape, 1, 1)) * _transposed(anp.linalg.inv(x)),
)


@primitive
def adjusted_side(_a: Any, b: Any, _minus_x: Any) -> Any:
    """Return b, with the derivative of ``b - a x`` for fixed x.

    The derivative of the solution x of ``a x = b`` is the solution for this one as the right-hand side
    (implicit function theorem), by the matrix a as a constant. That is so for first derivatives. For others
    x and a are no constants: inner gradients take them from ``fixed`` of the entries.
    """
    return b


defvjp(
    adjusted_side,
    lambda ans, _a, _b, minus_x: (
        lambda g: anp.outer(g, minus_x) if ans.ndim == 1 else anp.matmul(g, _transposed(minus_x))
    ),
    lambda _ans, *_: lambda g: g,
)


@primitive
def symmetric_eigenvalues(x: Any, UPLO: str, _vectors: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of symmetric matrices; the eigenvectors are given for the VJP."""
    return np.linalg.eigvalsh(x, UPLO)  # type: ignore[call-overload] # any text


@primitive
def symmetric_eigenvectors(x: Any, UPLO: str, _values: np.ndarray) -> Any:
    """Return the eigenvectors of symmetric matrices; eigenvalues, all different, are given for the VJP."""
    return np.linalg.eigh(x, UPLO)[1]  # type: ignore[call-overload] # any text


def _eigenvalues_vjp(_ans: Any, x: Any, UPLO: str, vectors: np.ndarray) -> Callable[..., Any]:
    """Make the VJP of eigenvalues."""
    V = anp.linalg.eigh(x, UPLO)[1] if isbox(x) else vectors
    return lambda g: _on_read_side(g[..., None, :] * V @ _transposed(V), UPLO)


def _eigenvectors_vjp(ans: Any, x: Any, UPLO: str, values: np.ndarray) -> Callable[..., Any]:
    """Make the VJP of eigenvectors."""
    w, one = anp.linalg.eigh(x, UPLO)[0] if isbox(x) else values, np.eye(ans.shape[-1])
    gaps = w[..., None, :] - w[..., :, None] + one

    def vjp(g: Any) -> Any:
        S = ans @ ((1.0 - one) / gaps * (_transposed(ans) @ g)) @ _transposed(ans)
        return _on_read_side((S + _transposed(S)) * 0.5, UPLO)

    return vjp


def _transposed(x: Any) -> Any:
    """Transpose matrices."""
    return anp.swapaxes(x, -1, -2)


def _on_read_side(S: Any, UPLO: str) -> Any:
    """Move adjoints of symmetric matrices to the triangle that ``eigh`` reads, which stands for both."""
    sides = np.eye(S.shape[-1]) + np.tril(np.full(S.shape[-2:], 2.0), -1)
    return S * (sides if UPLO.upper() == "L" else sides.T)


defvjp(symmetric_eigenvalues, _eigenvalues_vjp)
defvjp(symmetric_eigenvectors, _eigenvectors_vjp)


@primitive
def singular_values(x: Any, _u: np.ndarray, _vt: np.ndarray) -> Any:
    """Return the singular values of matrices; the singular vectors are given for the VJP."""
    return np.linalg.svd(x, compute_uv=False)


def _singular_values_vjp(_ans: Any, x: Any, *vectors: np.ndarray) -> Callable[..., Any]:
    """Make the VJP of singular values."""
    u, vt = anp.linalg.svd(x, full_matrices=False)[::2] if isbox(x) else vectors
    return lambda g: u * g[..., None, :] @ vt


defvjp(singular_values, _singular_values_vjp)


@primitive
def singular_vectors(x: Any, factor: int, _u: np.ndarray, _s: np.ndarray, _vt: np.ndarray) -> Any:
    """Return one factor of the thin singular value decomposition of matrices: 0 for U, 2 for V transposed.

    All factors are given for the VJP. Singular values must be different, and not zero.
    """
    return np.linalg.svd(x, full_matrices=False)[factor]


def _singular_vectors_vjp(_ans: Any, x: Any, factor: int, *known: np.ndarray) -> Callable[..., Any]:
    """Make the VJP of singular vectors: that of the decomposition, with zeros for the other two factors."""
    factors = anp.linalg.svd(x, full_matrices=False) if isbox(x) else known
    vjp = anp.linalg.grad_svd(factors, x, full_matrices=False)
    nothing = [np.zeros(part.shape) for part in known]
    return lambda g: vjp([*nothing[:factor], g, *nothing[factor + 1 :]])


defvjp(singular_vectors, _singular_vectors_vjp)
