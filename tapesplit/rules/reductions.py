"""Reductions along axes."""

from typing import Any

import autograd.numpy as anp
import numpy as np

from tapesplit.rules.registry import defvector


def _axes(x: Any, axis: Any) -> tuple[int, ...]:
    """Return reduced axes as non-negative numbers."""
    n = np.ndim(x)
    if axis is None:
        return tuple(range(n))
    return tuple(a % n for a in (axis if isinstance(axis, tuple) else (axis,)))


def _spread(A: np.ndarray, x: Any, axis: Any) -> np.ndarray:
    """Repeat adjoints of a reduction along the reduced axes, as a view."""
    shape = [1 if a in _axes(x, axis) else n for a, n in enumerate(np.shape(x))]
    return np.broadcast_to(A.reshape(len(A), *shape), (len(A), *np.shape(x)))


def _count(x: Any, axis: Any) -> int:
    """Count the elements that go into one result."""
    return int(np.prod([np.shape(x)[a] for a in _axes(x, axis)], dtype=int))


def _sum_batch(T: np.ndarray, ans: Any, x: Any, axis: Any) -> np.ndarray:
    """Sum tangents over the reduced axes of their value."""
    return T.sum(axis=tuple(a + 1 for a in _axes(x, axis))).reshape(len(T), *np.shape(ans))


def _extremum_weights(ans: Any, x: Any, axis: Any) -> np.ndarray:
    """Share of each element in its maximum or minimum: ties are split evenly."""
    hit = x == np.reshape(ans, [1 if a in _axes(x, axis) else n for a, n in enumerate(np.shape(x))])
    return hit / np.sum(hit, axis=_axes(x, axis), keepdims=True)


def _input_size(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a reduction: one edge for each element that goes in."""
    return int(np.size(args[0]))


defvector(
    anp.sum,
    tangents=[lambda T, ans, x, axis=None, keepdims=False, dtype=None: _sum_batch(T, ans, x, axis)],
    adjoints=[lambda A, ans, x, axis=None, keepdims=False, dtype=None: _spread(A, x, axis)],
    edges=_input_size,
)
for _mean in {anp.mean, getattr(anp, "_primitive_mean", anp.mean)}:
    defvector(
        _mean,
        tangents=[lambda T, ans, x, axis=None, keepdims=False: _sum_batch(T, ans, x, axis) / _count(x, axis)],
        adjoints=[lambda A, ans, x, axis=None, keepdims=False: _spread(A / _count(x, axis), x, axis)],
        edges=_input_size,
    )
for _extremum in (anp.max, anp.min, anp.amax, anp.amin):
    defvector(
        _extremum,
        tangents=[
            lambda T, ans, x, axis=None, keepdims=None: _sum_batch(
                T * _extremum_weights(ans, x, axis), ans, x, axis
            )
        ],
        adjoints=[
            lambda A, ans, x, axis=None, keepdims=None: _spread(A, x, axis) * _extremum_weights(ans, x, axis)
        ],
        edges=_input_size,
    )
