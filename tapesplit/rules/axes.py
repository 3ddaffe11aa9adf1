"""Axes behind the direction axis: what vector rules need to reduce, spread and fold batches of directions."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tapesplit.recording.values import flatten

__all__ = [
    "behind",
    "complex_like",
    "flat",
    "fold",
    "lifted",
    "of_arrays",
    "positive",
    "real_like",
    "reduce_batch",
    "reduce_weighted",
    "spread",
]


def positive(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return axes as non-negative numbers; None stands for all of them."""
    if axis is None or not ndim:
        return tuple(range(ndim))
    return tuple(int(a) % ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))


def behind(axis: int) -> int:
    """Return the number of an axis of a value in a batch, where the direction axis comes first."""
    return axis + 1 if axis >= 0 else axis


def of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a directional function of two operands take lists, which it gets as arrays."""

    def opened(X: np.ndarray, ans: Any, x: Any, *others: Any, **kwargs: Any) -> Any:
        if not others:  # the second operand has been given by name
            return NotImplemented
        return function(X, ans, np.asarray(x), np.asarray(others[0]), *others[1:], **kwargs)

    return opened


def flat(X: np.ndarray) -> np.ndarray:
    """Return one row for each direction; there may be no directions, or no elements."""
    return X if X.ndim == 2 else X.reshape(len(X), prod(X.shape[1:]))


def lifted(X: np.ndarray, ndim: int) -> np.ndarray:
    """Put axes of length one behind the direction axis, so that values of ``ndim`` axes broadcast."""
    missing = ndim + 1 - X.ndim
    return X.reshape(X.shape[:1] + (1,) * missing + X.shape[1:]) if missing > 0 else X


def reduce_batch(T: np.ndarray, ans: Any, axis: Any) -> np.ndarray:
    """Sum directions over axes of their value, to the shape of ``ans``, whether or not it keeps the axes."""
    axes = sorted(a + 1 for a in positive(axis, T.ndim - 1))
    return _summed(T, axes).reshape(len(T), *np.shape(ans))


def _summed(X: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Sum over axes, which ascend.

    For few terms, NumPy's sum takes up to twenty times as long as a product with ones.
    """
    first, last = axes[0] if axes else 0, axes[-1] + 1 if axes else 0
    if X.dtype not in _DOUBLE or not X.flags.c_contiguous or last - first != len(axes):
        return X.sum(axis=tuple(axes))
    before, terms, behind = X.shape[:first], prod(X.shape[first:last]), X.shape[last:]
    ones = np.ones(terms, X.dtype)
    if prod(behind) == 1:
        return (X.reshape(prod(before), terms) @ ones).reshape(before + behind)
    return (ones @ X.reshape(prod(before), terms, prod(behind))).reshape(before + behind)


_DOUBLE: Final = (np.dtype(np.float64), np.dtype(np.complex128))


def spread(A: np.ndarray, x: Any, axis: Any) -> np.ndarray:
    """Repeat directions of a reduction of x along the reduced axes, as a view."""
    shape = np.shape(x)
    reduced = positive(axis, len(shape))
    kept = [1 if a in reduced else n for a, n in enumerate(shape)]
    return np.broadcast_to(A.reshape(len(A), *kept), (len(A), *shape))


def reduce_weighted(T: np.ndarray, weights: Any, ans: Any, axis: Any) -> np.ndarray:
    """Sum directions times weights over axes of their value; the weights broadcast to its shape."""
    if len(positive(axis, T.ndim - 1)) < T.ndim - 1:
        return reduce_batch(T * weights, ans, axis)
    every = np.broadcast_to(weights, T.shape[1:]).ravel()
    return (flat(T) @ every).reshape(len(T), *np.shape(ans))


def fold(X: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum directions ``(k, *broadcast)`` over the axes along which a value of this shape was broadcast."""
    if X.shape[1:] == shape:
        return X
    extra = X.ndim - 1 - len(shape)
    if extra:
        X = _summed(X, range(1, 1 + extra))
    stretched = [a + 1 for a, n in enumerate(shape) if n == 1 and X.shape[a + 1] != 1]
    return _summed(X, stretched).reshape(len(X), *shape) if stretched else X


def real_like(X: np.ndarray, value: Any) -> np.ndarray:
    """Take the real part of directions of a real value, which may be a container."""
    return X.real if X.dtype.kind == "c" and _dtype_of(value).kind != "c" else X


def complex_like(X: np.ndarray, value: Any) -> np.dtype:
    """Return the type that directions of a value have in autograd: those of complex values are complex."""
    dtype = _dtype_of(value)
    return np.result_type(X, dtype) if dtype.kind == "c" and X.dtype.kind != "c" else X.dtype


def _dtype_of(value: Any) -> np.dtype:
    """Return the common type of all elements of a value, which may be a container."""
    return value.dtype if type(value) is np.ndarray else flatten(value).dtype
