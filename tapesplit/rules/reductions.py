"""Reductions along axes, and the other linear or selecting operations along one axis.

Each element that goes into a reduction is one edge.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_wrapper import _primitive_mean, _primitive_std, _primitive_var

from tapesplit.rules.axes import (
    behind,
    positive,
    real_like,
    reduce_batch,
    reduce_weighted,
    spread,
    spread_weighted,
)
from tapesplit.rules.registry import Bulk, Rule, defvector

__all__ = ["input_size", "is_reduction", "weighted"]


def input_size(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a reduction: one edge for each element that goes in."""
    return int(np.size(args[0]))


def is_reduction(rule: Rule | None) -> bool:
    """Tell whether a rule is that of a reduction, to which each element of the argument goes once."""
    return isinstance(rule, Bulk) and rule.edges is input_size


def weighted(primitive: Any, weights: Callable[..., Any]) -> None:
    """Register a reduction by the derivatives of each result by the elements that went into it.

    ``weights(ans, x, axis, **kwargs)`` broadcasts to the shape of x; ``ans`` comes with the reduced axes as
    axes of length one. Keywords that it does not name and further positional arguments, which mean other
    things in each function, take the loop over autograd's rule.
    """
    known = weights.__code__.co_varnames[3 : weights.__code__.co_argcount]

    def weigh(ans: Any, x: Any, axis: Any, keywords: dict[str, Any]) -> Any:
        reduced = positive(axis, np.ndim(x))
        kept = [1 if a in reduced else n for a, n in enumerate(np.shape(x))]
        return weights(np.reshape(ans, kept), x, axis, **keywords)

    def tangent(
        T: np.ndarray, ans: Any, x: Any, axis: Any = None, *rest: Any, keepdims: Any = False, **keywords: Any
    ) -> Any:
        if rest or not set(keywords).issubset(known):
            return NotImplemented
        return real_like(reduce_weighted(T, weigh(ans, x, axis, keywords), ans, axis), ans)

    def adjoint(
        A: np.ndarray, ans: Any, x: Any, axis: Any = None, *rest: Any, keepdims: Any = False, **keywords: Any
    ) -> Any:
        if rest or not set(keywords).issubset(known):
            return NotImplemented
        return spread_weighted(A, weigh(ans, x, axis, keywords), x, axis)

    defvector(primitive, tangents=[tangent], adjoints=[adjoint], edges=input_size)


def _chosen(X: Any, where: Any) -> Any:
    """Set what a reduction leaves out to zero."""
    return X if where is True else np.where(where, X, 0.0)


def _count(x: Any, axis: Any, where: Any) -> Any:
    """Count the elements that go into each result."""
    reduced = positive(axis, np.ndim(x))
    if where is True:
        return prod(np.shape(x)[a] for a in reduced)
    return np.sum(np.broadcast_to(where, np.shape(x)), axis=reduced, keepdims=True)


def _mean_weights(ans: Any, x: Any, axis: Any, where: Any = True) -> Any:
    """Equal shares; autograd's own rule ignores ``where``, here and below."""
    count = _count(x, axis, where)
    return _chosen(np.ones_like(ans) / (max(count, 1) if where is True else np.maximum(count, 1)), where)


def _deviation(x: Any, axis: Any, where: Any, mean: Any) -> Any:
    """Conjugate deviation from the mean."""
    if mean is None:
        mean = np.mean(x, axis=positive(axis, np.ndim(x)), keepdims=True, where=where)
    return _chosen(np.conj(x - mean), where)


def _var_weights(
    ans: Any, x: Any, axis: Any, ddof: float = 0, where: Any = True, mean: Any = None, correction: Any = None
) -> Any:
    """Derivative of a variance; ``correction`` is another name for ``ddof``."""
    freedom = _count(x, axis, where) - (ddof if correction is None else correction)
    return 2.0 * _deviation(x, axis, where, mean) / freedom


def _std_weights(
    ans: Any, x: Any, axis: Any, ddof: float = 0, where: Any = True, mean: Any = None, correction: Any = None
) -> Any:
    """Derivative of a standard deviation; that of a single number from itself is zero."""
    count = _count(x, axis, where)
    freedom = count - (ddof if correction is None else correction)
    scale = np.where((count <= 1) & (mean is None), np.inf, freedom * ans)
    return _deviation(x, axis, where, mean) / scale


def _product_weights(ans: Any, x: Any, axis: Any, where: Any = True, initial: float = 1.0) -> Any:
    """Product of the other elements; autograd divides by each one and has NaN where it is zero."""
    if where is not True:
        x = np.where(where, x, 1.0)
    zero = np.equal(x, 0)
    if not zero.any():
        return _chosen(ans / x, where)
    axes, rest = positive(axis, np.ndim(x)), np.where(zero, 1.0, x)
    zeros_among_others = zero.sum(axis=axes, keepdims=True) - zero
    others = np.prod(rest, axis=axes, keepdims=True, initial=initial) / rest
    return _chosen(np.where(zeros_among_others == 0, others, 0.0), where)


def _extremum_weights(ans: Any, x: Any, axis: Any, where: Any = True, initial: Any = None) -> Any:
    """Share of each element in its maximum or minimum: ties are split evenly, ``initial`` leaves none."""
    hit = (x == ans) & where
    hits = np.sum(hit, axis=positive(axis, np.ndim(x)), keepdims=True)
    return hit / (hits if initial is None else np.maximum(hits, 1))


def _sum_tangent(
    T: np.ndarray, ans: Any, x: Any, axis: Any = None, keepdims: Any = False, **keywords: Any
) -> Any:
    chosen = _summands(T, **keywords)
    return chosen if chosen is NotImplemented else reduce_batch(chosen, ans, axis)


def _sum_adjoint(
    A: np.ndarray, ans: Any, x: Any, axis: Any = None, keepdims: Any = False, **keywords: Any
) -> Any:
    return _summands(spread(A, x, axis), **keywords)


def _summands(X: np.ndarray, *, initial: float = 0.0, where: Any = True, **keywords: Any) -> Any:
    """Return directions of what a sum adds up; autograd's rules mistake ``initial`` and ``where``."""
    if keywords:
        return NotImplemented
    return _chosen(X, where)


defvector(anp.sum, tangents=[_sum_tangent], adjoints=[_sum_adjoint], edges=input_size)
weighted(_primitive_mean, _mean_weights)
weighted(_primitive_var, _var_weights)
weighted(_primitive_std, _std_weights)
weighted(anp.prod, _product_weights)
for _extremum in (anp.max, anp.min, anp.amax, anp.amin):
    weighted(_extremum, _extremum_weights)


def _cumsum(T: np.ndarray, ans: Any, x: Any, axis: int | None = None) -> np.ndarray:
    """Cumulative sums of tangents."""
    rows = T.reshape(len(T), np.size(x)) if axis is None else T
    return np.cumsum(rows, -1 if axis is None else behind(axis)).reshape(len(T), *np.shape(ans))


def _cumsum_adjoint(A: np.ndarray, ans: Any, x: Any, axis: int | None = None) -> np.ndarray:
    """Cumulative sums of adjoints from the far end."""
    along = -1 if axis is None else behind(axis)
    return np.flip(np.cumsum(np.flip(A, along), along), along).reshape(len(A), *np.shape(x))


defvector(anp.cumsum, tangents=[_cumsum], adjoints=[_cumsum_adjoint], edges=input_size)


def _difference_axis(x: np.ndarray, spacing: Any, axis: Any, keywords: Any) -> int | None:
    """Return the axis of a call of ``gradient`` that has one only and unit spacing, else None."""
    if axis is None and x.ndim == 1:
        axis = 0
    return axis % x.ndim if type(axis) is int and not spacing and not keywords else None


def _differences(T: np.ndarray, ans: Any, x: Any, *spacing: Any, axis: Any = None, **keywords: Any) -> Any:
    along = _difference_axis(x, spacing, axis, keywords)
    return NotImplemented if along is None else np.gradient(T, axis=along + 1)


def _differences_adjoint(
    A: np.ndarray, ans: Any, x: Any, *spacing: Any, axis: Any = None, **keywords: Any
) -> Any:
    """Spread central differences inside and one-sided ones at both ends."""
    along = _difference_axis(x, spacing, axis, keywords)
    if along is None:
        return NotImplemented
    rows = np.zeros_like(A)
    of, to = np.moveaxis(A, along + 1, -1), np.moveaxis(rows, along + 1, -1)
    to[..., 2:] += 0.5 * of[..., 1:-1]
    to[..., :-2] -= 0.5 * of[..., 1:-1]
    to[..., 1] += of[..., 0]
    to[..., 0] -= of[..., 0]
    to[..., -1] += of[..., -1]
    to[..., -2] -= of[..., -1]
    return rows


defvector(
    anp.gradient,
    tangents=[_differences],
    adjoints=[_differences_adjoint],
    edges=lambda ans, args, argnums, kwargs: 2 * int(np.size(ans)),
)


def _ramp(first: float, last: float) -> Any:
    """Make the tangent function of one end of a range of numbers, which is spread over it."""

    def tangent(T: np.ndarray, ans: Any, start: Any, stop: Any, num: int = 50, **keywords: Any) -> Any:
        if keywords or T.ndim > 1 or np.ndim(ans) > 1:
            return NotImplemented
        return T[:, None] * np.linspace(first, last, num)

    return tangent


def _end(first: float, last: float) -> Any:
    """Make the adjoint function of one end of a range of numbers, where adjoints are collected."""

    def adjoint(A: np.ndarray, ans: Any, start: Any, stop: Any, num: int = 50, **keywords: Any) -> Any:
        return NotImplemented if keywords or A.ndim > 2 else A @ np.linspace(first, last, num)

    return adjoint


defvector(
    anp.linspace,
    tangents=[_ramp(1.0, 0.0), _ramp(0.0, 1.0)],
    adjoints=[_end(1.0, 0.0), _end(0.0, 1.0)],
    edges=lambda ans, args, argnums, kwargs: int(np.size(ans)) * len(argnums),
)


def _trace_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a trace: one edge for each element on the diagonal."""
    return int(np.size(np.diagonal(*args[:2], **kwargs)))


def _trace_adjoint(A: np.ndarray, ans: Any, x: Any, offset: int = 0) -> np.ndarray:
    """Put adjoints on the diagonal."""
    m, n = np.shape(x)[:2]
    eye = np.eye(m, n, k=offset).reshape(m, n, *(1,) * np.ndim(ans))
    return A[:, None, None] * eye


defvector(
    anp.trace,
    tangents=[lambda T, ans, x, offset=0: np.trace(T, offset, 1, 2)],
    adjoints=[_trace_adjoint],
    edges=_trace_edges,
)


def _diff_adjoint(A: np.ndarray, ans: Any, x: Any, n: int = 1, axis: int = -1) -> np.ndarray:
    """Differences of adjoints with zeros at both ends, negated."""
    along = behind(axis) % A.ndim
    for _ in range(n):
        rows = np.zeros((*A.shape[:along], A.shape[along] + 1, *A.shape[along:][1:]), A.dtype)
        of, to = np.moveaxis(A, along, -1), np.moveaxis(rows, along, -1)
        to[..., 1:] = of
        to[..., :-1] -= of
        A = rows
    return A


defvector(
    anp.diff,
    tangents=[lambda T, ans, x, n=1, axis=-1: np.diff(T, n, behind(axis))],
    adjoints=[
        lambda A, ans, x, n=1, axis=-1: _diff_adjoint(A, ans, x, n, axis) if np.size(ans) else NotImplemented
    ],
    edges=lambda ans, args, argnums, kwargs: 2 * int(np.size(ans)),
)


def _arranged(T: np.ndarray, order: np.ndarray) -> Any:
    """Carry tangents of a vector to the places of its elements."""
    return T.take(order, axis=1) if T.ndim == 2 else NotImplemented


def _rearranged(A: np.ndarray, order: np.ndarray) -> Any:
    """Carry adjoints of a vector back to where its elements were."""
    return A.take(np.argsort(order), axis=1) if A.ndim == 2 else NotImplemented


def _no_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a reordering: none."""
    return 0


# Sorting moves elements, but which ones depends on the values, so that no plan can know it.
for _order, _arrange in ((np.argsort, anp.sort), (np.argpartition, anp.partition)):
    defvector(
        _arrange,
        tangents=[lambda T, ans, x, *args, order=_order, **kwargs: _arranged(T, order(x, *args, **kwargs))],
        adjoints=[lambda A, ans, x, *args, order=_order, **kwargs: _rearranged(A, order(x, *args, **kwargs))],
        edges=_no_edges,
    )
