"""Operations on series of values: running sums, differences, ranges, traces, sorting."""

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np

from tapesplit.rules.axes import behind, flat, fold, lifted, positive
from tapesplit.rules.reductions import input_size
from tapesplit.rules.registry import Held, bulk, no_edges


def _cumsum(T: np.ndarray, ans: Any, x: Any, axis: int | None = None) -> Any:
    """Cumulative sums of tangents; not for lists, whose tangents have all elements in one axis."""
    if not isinstance(x, np.ndarray):
        return NotImplemented
    if axis is None or not x.ndim:
        T, axis = T.reshape(len(T), x.size), -1
    return np.cumsum(T, behind(axis)).reshape(len(T), *np.shape(ans))


def _cumsum_adjoint(A: np.ndarray, ans: Any, x: Any, axis: int | None = None) -> Any:
    """Cumulative sums of adjoints from the far end."""
    if not isinstance(x, np.ndarray):
        return NotImplemented
    along = -1 if axis is None else behind(axis)
    return np.flip(np.cumsum(np.flip(A, along), along), along).reshape(len(A), *np.shape(x))


bulk(anp.cumsum, tangents=[_cumsum], adjoints=[_cumsum_adjoint], edges=input_size)


def _differences(T: np.ndarray, ans: Any, x: Any, *rest: Any, axis: Any = None, **keywords: Any) -> Any:
    """Gradient of unit spacing; along several axes it is a tuple, and numbers have none."""
    if rest or keywords or not np.ndim(x):
        return NotImplemented
    rows = np.gradient(T, axis=tuple(a + 1 for a in positive(axis, np.ndim(x))))
    return rows if isinstance(rows, np.ndarray) else np.concatenate(list(map(flat, rows)), axis=1)


def _differences_adjoint(
    A: np.ndarray, ans: Any, x: Any, *rest: Any, axis: Any = None, **keywords: Any
) -> Any:
    """Transpose of central differences, which are one-sided at both ends."""
    if rest or keywords:
        return NotImplemented
    axes = positive(axis, np.ndim(x))
    parts = A.reshape(len(A), len(axes), *np.shape(x))
    rows = np.zeros((len(A), *np.shape(x)), A.dtype)
    for i, along in enumerate(axes):
        of, to = np.moveaxis(parts[:, i], along + 1, -1), np.moveaxis(rows, along + 1, -1)
        to[..., 2:] += 0.5 * of[..., 1:-1]
        to[..., :-2] -= 0.5 * of[..., 1:-1]
        to[..., 1] += of[..., 0]
        to[..., 0] -= of[..., 0]
        to[..., -1] += of[..., -1]
        to[..., -2] -= of[..., -1]
    return rows


bulk(
    anp.gradient,
    tangents=[_differences],
    adjoints=[_differences_adjoint],
    edges=lambda ans, args, argnums, kwargs: 2 * int(np.size(ans)),
    held=lambda args, argnum, *, adjoint_mode: Held(int(np.size(args[0])), 0),
)


def _ramp(first: float, last: float) -> Any:
    """Make the tangent function of one end of a range; its weight runs from ``first`` to ``last``."""

    def tangent(
        T: np.ndarray, ans: Any, start: Any, stop: Any, num: int = 50, *rest: Any, **keywords: Any
    ) -> Any:
        if rest or keywords:
            return NotImplemented
        dimensions = np.ndim(ans) - 1
        weights = np.linspace(first, last, num).reshape(-1, *(1,) * dimensions)
        return np.broadcast_to(lifted(T, dimensions)[:, None] * weights, (len(T), *np.shape(ans)))

    return tangent


def _end(first: float, last: float, argnum: int) -> Any:
    """Make the adjoint function of one end of a range; its weight runs from ``first`` to ``last``.

    autograd's own is right for ranges of numbers and of vectors only.
    """

    def adjoint(A: np.ndarray, ans: Any, *args: Any, **keywords: Any) -> Any:
        if len(args) > 3 or keywords.keys() - {"num"}:
            return NotImplemented
        weights = np.linspace(first, last, len(ans))
        return fold(np.tensordot(A, weights, (1, 0)), np.shape(args[argnum]))

    return adjoint


bulk(
    anp.linspace,
    tangents=[_ramp(1.0, 0.0), _ramp(0.0, 1.0)],
    adjoints=[_end(1.0, 0.0, 0), _end(0.0, 1.0, 1)],
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


bulk(
    anp.trace,
    tangents=[lambda T, ans, x, offset=0: np.trace(T, offset, 1, 2)],
    adjoints=[_trace_adjoint],
    edges=_trace_edges,
)


def _diff_adjoint(A: np.ndarray, ans: Any, x: Any, n: int = 1, axis: int = -1) -> np.ndarray:
    """Differences of adjoints with zeros at both ends, negated."""
    along = behind(axis) % A.ndim
    if not np.size(ans):
        return np.zeros((len(A), *np.shape(x)), A.dtype)
    for _ in range(n):
        rows = np.zeros((*A.shape[:along], A.shape[along] + 1, *A.shape[along:][1:]), A.dtype)
        of, to = np.moveaxis(A, along, -1), np.moveaxis(rows, along, -1)
        to[..., 1:] = of
        to[..., :-1] -= of
        A = rows
    return A


def _diff_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of differences of order n: n + 1 neighbors for each element."""
    order = args[1] if len(args) > 1 else kwargs.get("n", 1)
    return (order + 1) * int(np.size(ans))


bulk(
    anp.diff,
    tangents=[lambda T, ans, x, n=1, axis=-1: np.diff(T, n, behind(axis))],
    adjoints=[_diff_adjoint],
    edges=_diff_edges,
)


def _partition_order(ans: Any, x: Any, *_args: Any, **_kwargs: Any) -> np.ndarray:
    """Return which element of x each element of ``np.partition`` is; ``np.argpartition`` may differ."""
    order = np.empty(np.size(x), dtype=np.intp)
    order[np.argsort(ans, axis=None)] = np.argsort(x, axis=None)
    return order


def _arrangement(primitive: Any, order_of: Callable[..., np.ndarray]) -> None:
    """Register a primitive that sorts; ``order_of`` tells which element of x each one of the result is.

    It moves elements, but where to depends on the values, so that no plan can know it.
    """

    def tangent(T: np.ndarray, ans: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented if np.ndim(x) != 1 else T.take(order_of(ans, x, *args, **kwargs), axis=1)

    def adjoint(A: np.ndarray, ans: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        if np.ndim(x) != 1:
            return NotImplemented
        order = order_of(ans, x, *args, **kwargs)
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        return A.take(places, axis=1)

    bulk(primitive, tangents=[tangent], adjoints=[adjoint], edges=no_edges)


_arrangement(anp.sort, lambda ans, x, *args, **kwargs: np.argsort(x, *args, **kwargs))
_arrangement(anp.partition, _partition_order)
