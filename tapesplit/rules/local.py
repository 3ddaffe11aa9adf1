"""Local structure of linear and bilinear primitives: which element depends on which, by what factor.

Sums, small products and padding stand between the scalar operations of much user code. With their structure
known they can be part of a scalar sweep.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import autograd.numpy as anp
import numpy as np
from autograd.core import VSpace
from autograd.numpy.numpy_vspaces import ArrayVSpace
from autograd.numpy.numpy_wrapper import _primitive_mean
from autograd.util import func

from tapesplit.rules.axes import positive
from tapesplit.rules.products import Labels, dot_labels, inner_labels, tensordot_labels
from tapesplit.tape import TapeEntry

__all__ = ["LocalStructure", "has_local_structure", "is_local", "local_matrix", "local_structure"]


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


def is_local(entry: TapeEntry) -> bool:
    """Tell whether a call has a local structure; much cheaper than that structure."""
    return has_local_structure(entry.primitive) and _described(entry) is not None


def local_structure(entry: TapeEntry, argnum: int) -> LocalStructure | None:
    """Return the local structure of a call by one argument; None for forms that have none here."""
    description = _described(entry)
    return None if description is None else _structures[entry.primitive].build(argnum, *description)


def _described(entry: TapeEntry) -> tuple[Any, ...] | None:
    """Return what a local structure is built from; None for forms that have none."""
    try:
        return _structures[entry.primitive].describe(*entry.args, **entry.kwargs)
    except TypeError:  # a keyword that the structure does not know
        return None


def local_matrix(entry: TapeEntry, argnum: int) -> np.ndarray | None:
    """Return the Jacobian of a matrix times a vector by the vector: the matrix; None for any other call."""
    if entry.primitive not in {anp.matmul, anp.dot} or np.ndim(entry.args[argnum]) != 1:
        return None
    other = np.asarray(entry.args[1 - argnum])
    if other.ndim != 2:
        return None
    return other if argnum == 1 else other.T


class _Structure(NamedTuple):
    """How local structures of a primitive come about: a description of the call, and the structure of it."""

    describe: Callable[..., tuple[Any, ...]]
    build: Callable[..., LocalStructure]


def _reduction(factor: Callable[[int], float]) -> _Structure:
    """Make the structure of a sum with equal weights."""

    def describe(x: Any, axis: Any = None, *, keepdims: Any = False) -> tuple[Any, ...]:
        return np.shape(x), positive(axis, np.ndim(x))

    def build(argnum: int, shape: tuple[int, ...], reduced: tuple[int, ...]) -> LocalStructure:
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

    return _Structure(describe, build)


def _contraction(labels: Callable[..., tuple[Labels, Labels, Labels]]) -> _Structure:
    """Make the structure of a contraction: one edge for each product of two elements."""

    def describe(x: Any, y: Any, *rest: Any, **kwargs: Any) -> tuple[Any, ...]:
        of_x, of_y, of_ans = labels(x, y, *rest, **kwargs)
        sizes = dict(zip((*of_x, *of_y), (*np.shape(x), *np.shape(y)), strict=True))
        return of_x, of_y, of_ans, sizes

    def build(
        argnum: int, of_x: Labels, of_y: Labels, of_ans: Labels, sizes: dict[int, int]
    ) -> LocalStructure:
        grid = [*of_ans, *(label for label in sizes if label not in of_ans)]
        rows, left, right = (_positions(axes, grid, sizes) for axes in (of_ans, of_x, of_y))
        rank = np.arange(rows.size) % prod(sizes[label] for label in grid[len(of_ans) :])
        columns, others = (left, right) if argnum == 0 else (right, left)
        return LocalStructure(rows, columns, rank, 1 - argnum, others)

    return _Structure(describe, build)


def _describe_padding(
    x: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0
) -> tuple[Any, ...]:
    if mode != "constant":
        raise TypeError("other modes of np.pad compute elements")
    return np.shape(x), pad_width


def _build_padding(argnum: int, shape: tuple[int, ...], width: Any) -> LocalStructure:
    """Build the structure of an array in a frame of constants."""
    padded = np.pad(np.arange(1, prod(shape) + 1).reshape(shape), width).ravel()
    rows = np.flatnonzero(padded)
    return LocalStructure(rows, padded[rows] - 1, np.zeros_like(rows), 1.0)


def _describe_sum(space: Any, x: Any, y: Any) -> tuple[Any, ...]:
    if not isinstance(space, ArrayVSpace):
        raise TypeError("sums of containers have no elements here")
    return (prod(space.shape),)


def _build_sum(argnum: int, size: int) -> LocalStructure:
    """Build the structure of a sum of two adjoints."""
    elements = np.arange(size)
    return LocalStructure(elements, elements, np.zeros_like(elements), 1.0)


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


_structures: dict[Any, _Structure] = {
    anp.sum: _reduction(lambda count: 1.0),
    _primitive_mean: _reduction(lambda count: 1.0 / max(count, 1)),
    func(VSpace.add): _Structure(_describe_sum, _build_sum),
    func(VSpace.mut_add): _Structure(_describe_sum, _build_sum),
    anp.pad: _Structure(_describe_padding, _build_padding),
    anp.matmul: _contraction(_matmul_labels),
    anp.dot: _contraction(lambda a, b: dot_labels(np.ndim(a), np.ndim(b))),
    anp.inner: _contraction(inner_labels),
    anp.tensordot: _contraction(lambda a, b, axes=2: tensordot_labels(np.ndim(a), np.ndim(b), axes)),
}
