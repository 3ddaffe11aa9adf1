"""Reductions along axes: each element that goes into one is one edge."""

from collections.abc import Callable
from inspect import signature
from math import prod
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_wrapper import _primitive_mean, _primitive_std, _primitive_var

from tapesplit.rules.axes import (
    positive,
    real_like,
    reduce_batch,
    reduce_weighted,
    spread,
)
from tapesplit.rules.registry import Bulk, Rule, Weighing, bulk

__all__ = ["by_weights", "input_size", "is_reduction", "weighted"]


def input_size(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a reduction: one edge for each element that goes in."""
    return int(np.size(args[0]))


def is_reduction(rule: Rule | None) -> bool:
    """Tell whether a rule is that of a reduction, which uses each element of the argument once."""
    return isinstance(rule, Bulk) and rule.edges is input_size


def by_weights(primitive: Any, derive: Callable[..., Any]) -> None:
    """Register a reduction by its derivatives by the elements that are reduced.

    ``derive(ans, x, *args, **kwargs)`` returns them, to be broadcast to the shape of x, and the axis; None
    for calls that take the loop over autograd's rule.
    """

    def tangent(T: np.ndarray, ans: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        found = derive(ans, x, *args, **kwargs)
        if found is None:
            return NotImplemented
        weights, axis = found
        return real_like(reduce_weighted(T, weights, ans, axis), ans)

    def adjoint(A: np.ndarray, ans: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        found = derive(ans, x, *args, **kwargs)
        if found is None:
            return NotImplemented
        weights, axis = found
        return spread(A, x, axis) * weights

    def weigh(ans: Any, x: Any, *args: Any, **kwargs: Any) -> Weighing | None:
        found = derive(ans, x, *args, **kwargs)
        return None if found is None else Weighing(0, positive(found[1], np.ndim(x)), found[0])

    bulk(primitive, tangents=[tangent], adjoints=[adjoint], edges=input_size, weigh=weigh)


def weighted(primitive: Any, weights: Callable[..., Any]) -> None:
    """Register a reduction whose second argument is an axis, see `by_weights`.

    ``weights(ans, x, axis, **kwargs)`` gets ``ans`` with the reduced axes as axes of length one. Calls with
    keywords that it does not name, or with further positional arguments, which mean other things in each
    function, take the loop.
    """
    known = frozenset(signature(weights).parameters)

    def weigh(ans: Any, x: Any, axis: Any = None, *rest: Any, keepdims: Any = False, **keywords: Any) -> Any:
        if rest or not known.issuperset(keywords):
            return None
        reduced = positive(axis, np.ndim(x))
        kept = [1 if a in reduced else n for a, n in enumerate(np.shape(x))]
        return weights(np.reshape(ans, kept), x, axis, **keywords), axis

    by_weights(primitive, weigh)


def _chosen(X: Any, where: Any) -> Any:
    """Set elements to zero that a reduction leaves out, where ``where`` is false."""
    return X if where is True else np.where(where, X, 0.0)


def _count(x: Any, axis: Any, where: Any) -> Any:
    """Count the elements that go into each result."""
    reduced = positive(axis, np.ndim(x))
    if where is True:
        return prod(np.shape(x)[a] for a in reduced)
    return np.sum(np.broadcast_to(where, np.shape(x)), axis=reduced, keepdims=True)


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
    """Derivative of a standard deviation; zero for that of a single number, which is constant."""
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
    """Share of each element in its maximum or minimum: ties are split evenly, all 0 if ``initial`` wins."""
    hit = (x == ans) & where
    hits = np.sum(hit, axis=positive(axis, np.ndim(x)), keepdims=True)
    return hit / (hits if initial is None else np.maximum(hits, 1))


def _mean_count(ans: Any, x: Any, axis: Any, where: Any) -> Any:
    """Count the terms of each mean, at least one."""
    count = _count(x, axis, where)
    return max(count, 1) if where is True else np.reshape(np.maximum(count, 1), np.shape(ans))


def _summed(primitive: Any, known: frozenset[str], *, is_mean: bool = False) -> None:
    """Register a sum or a mean, for the keywords that are known.

    autograd's rules are wrong for ``where``, and for ``initial``, which has no influence on derivatives.
    """

    def tangent(
        T: np.ndarray, ans: Any, x: Any, axis: Any = None, *rest: Any, keepdims: Any = False, **keywords: Any
    ) -> Any:
        if rest or not known.issuperset(keywords):
            return NotImplemented
        where = keywords.get("where", True)
        sums = reduce_batch(_chosen(T, where), ans, axis)
        return sums / _mean_count(ans, x, axis, where) if is_mean else sums

    def adjoint(
        A: np.ndarray, ans: Any, x: Any, axis: Any = None, *rest: Any, keepdims: Any = False, **keywords: Any
    ) -> Any:
        if rest or not known.issuperset(keywords):
            return NotImplemented
        where = keywords.get("where", True)
        return _chosen(spread(A / _mean_count(ans, x, axis, where) if is_mean else A, x, axis), where)

    def weigh(
        ans: Any, x: Any, axis: Any = None, *rest: Any, keepdims: Any = False, **keywords: Any
    ) -> Weighing | None:
        if rest or not keywords.keys() <= {"initial"}:
            return None
        weight = 1.0 / _mean_count(ans, x, axis, where=True) if is_mean else 1
        return Weighing(0, positive(axis, np.ndim(x)), weight)

    bulk(primitive, tangents=[tangent], adjoints=[adjoint], edges=input_size, weigh=weigh)


_summed(anp.sum, frozenset({"initial", "where"}))
_summed(_primitive_mean, frozenset({"where"}), is_mean=True)
weighted(_primitive_var, _var_weights)
weighted(_primitive_std, _std_weights)
weighted(anp.prod, _product_weights)
for _extremum in (anp.max, anp.min, anp.amax, anp.amin):
    weighted(_extremum, _extremum_weights)
