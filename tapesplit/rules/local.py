"""Local structure of linear and bilinear primitives: which element depends on which, by what factor.

Sums and small products stand between the scalar operations of much user code. With their structure known
they can be part of a scalar sweep.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_wrapper import _primitive_mean

from tapesplit.rules.axes import positive
from tapesplit.rules.products import Labels, dot_labels, inner_labels, tensordot_labels
from tapesplit.tape import TapeEntry

__all__ = ["LocalStructure", "has_local_structure", "local_matrix", "local_structure"]


@dataclass(frozen=True, slots=True, eq=False)
class LocalStructure:
    """The scalar edges from one argument to the result of a call.

    Parameters
    ----------
    rows, columns
        Flat positions in the result and in the argument, one pair for each edge.
    rank
        How many edges before it an edge has in the same row.
    factor
        The partial derivative of all edges, or the number of the argument whose elements are the partials.
    positions
        Their flat positions in that argument; None if the factor is a constant.
    """

    rows: np.ndarray
    columns: np.ndarray
    rank: np.ndarray
    factor: float | int
    positions: np.ndarray | None = None


def has_local_structure(primitive: Any) -> bool:
    """Tell whether calls of a primitive can have a local structure."""
    return primitive in _structures


def local_structure(entry: TapeEntry, argnum: int) -> LocalStructure | None:
    """Return the local structure of a call by one argument; None for forms that have none here."""
    try:
        return _structures[entry.primitive](argnum, *entry.args, **entry.kwargs)
    except TypeError:  # a keyword that the structure does not know
        return None


def local_matrix(entry: TapeEntry, argnum: int) -> np.ndarray | None:
    """Return the Jacobian of a matrix times a vector by the vector: the matrix; None for any other call."""
    if entry.primitive not in {anp.matmul, anp.dot} or np.ndim(entry.args[argnum]) != 1:
        return None
    other = entry.args[1 - argnum]
    if np.ndim(other) != 2:
        return None
    return other if argnum == 1 else np.transpose(other)


def _reduction(factor: Callable[[int], float]) -> Callable[..., LocalStructure]:
    """Make the structure of a sum with equal weights."""

    def structure(argnum: int, x: Any, axis: Any = None, *, keepdims: Any = False) -> LocalStructure:
        shape = np.shape(x)
        reduced = positive(axis, len(shape))
        results = np.arange(prod(n for a, n in enumerate(shape) if a not in reduced))
        columns = np.arange(prod(shape))
        rows = np.broadcast_to(
            results.reshape([1 if a in reduced else n for a, n in enumerate(shape)]), shape
        ).ravel()
        order = np.argsort(rows, kind="stable")
        count = prod(shape[a] for a in reduced)
        rank = np.empty_like(rows)
        rank[order] = np.arange(rows.size) % max(count, 1)
        return LocalStructure(rows, columns, rank, factor(count))

    return structure


def _contraction(labels: Callable[..., tuple[Labels, Labels, Labels]]) -> Callable[..., LocalStructure]:
    """Make the structure of a contraction: one edge for each product of two elements."""

    def structure(argnum: int, x: Any, y: Any, *rest: Any, **kwargs: Any) -> LocalStructure:
        of_x, of_y, of_ans = labels(x, y, *rest, **kwargs)
        sizes = dict(zip((*of_x, *of_y), (*np.shape(x), *np.shape(y)), strict=True))
        grid = [*of_ans, *(label for label in sizes if label not in of_ans)]
        rows, left, right = (_positions(axes, grid, sizes) for axes in (of_ans, of_x, of_y))
        rank = np.arange(rows.size) % prod(sizes[label] for label in grid[len(of_ans) :])
        columns, others = (left, right) if argnum == 0 else (right, left)
        return LocalStructure(rows, columns, rank, 1 - argnum, others)

    return structure


def _positions(axes: Labels, grid: Labels, sizes: dict[int, int]) -> np.ndarray:
    """Flat positions of the elements of an operand, for each point of the grid of all labels."""
    positions = np.arange(prod(sizes[label] for label in axes)).reshape([sizes[label] for label in axes])
    order = sorted(range(len(axes)), key=lambda i: grid.index(axes[i]))
    shape = [sizes[label] if label in axes else 1 for label in grid]
    return np.broadcast_to(
        positions.transpose(order).reshape(shape), [sizes[label] for label in grid]
    ).ravel()


def _matmul_labels(a: Any, b: Any) -> tuple[Labels, Labels, Labels]:
    """Label a product of vectors and matrices, which is a dot product then."""
    if np.ndim(a) > 2 or np.ndim(b) > 2:
        raise TypeError("stacks of matrices have no contraction labels")
    return dot_labels(np.ndim(a), np.ndim(b))


_structures: dict[Any, Callable[..., LocalStructure]] = {
    anp.sum: _reduction(lambda count: 1.0),
    _primitive_mean: _reduction(lambda count: 1.0 / count),
    anp.matmul: _contraction(_matmul_labels),
    anp.dot: _contraction(lambda a, b: dot_labels(np.ndim(a), np.ndim(b))),
    anp.inner: _contraction(inner_labels),
    anp.tensordot: _contraction(lambda a, b, axes=2: tensordot_labels(np.ndim(a), np.ndim(b), axes)),
}
