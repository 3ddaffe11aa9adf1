"""Local structure of sums of products: one edge for each product of elements, for each active operand."""

from collections.abc import Callable
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import autograd.numpy as anp
import numpy as np

from tapesplit.arrays import IntArray, occurrences
from tapesplit.rules.contraction import lengths_of
from tapesplit.rules.local_structure import LocalStructure
from tapesplit.rules.products import LABELS, Labeled, Labels, dot_labels, inner_labels

__all__ = ["PRODUCTS_BY_LABELS", "SumOfProducts", "product_edges"]


class SumOfProducts(NamedTuple):
    """A call that sums products of elements, one of each operand, over the indices that the result lacks.

    Parameters
    ----------
    numbers
        Which arguments are the operands.
    labels
        Labels of the axes of each operand; those of length one that broadcast have none.
    of_result
        Labels of the axes of the result.
    sizes
        The length of each label.
    """

    numbers: tuple[int, ...]
    labels: tuple[Labels, ...]
    of_result: Labels
    sizes: dict[int, int]

    @property
    def edges(self) -> int:
        """Count the edges of one operand."""
        return prod(self.sizes.values())

    @property
    def slices(self) -> int:
        """Count the slices that depend on the same slice of all operands only, along axes that all have."""
        if len(self.labels) == 1:  # a sum, or elements that move: no stack of products
            return 1
        shared = [label for label in self.of_result if all(label in axes for axes in self.labels)]
        return prod(self.sizes[label] for label in shared)


def product_edges(argnum: int, known: SumOfProducts, kept: IntArray | None = None) -> LocalStructure:
    """Return the edges of a sum of products from one of its operands.

    If ``kept`` has flat positions in the other one of two operands, its other elements are zero and have no
    edges. The structure then counts positions in that operand among those kept.
    """
    others = [pair for pair in zip(known.numbers, known.labels, strict=True) if pair[0] != argnum]
    of_active = known.labels[known.numbers.index(argnum)]
    if kept is not None:
        (other,) = others
        return _without_zeros(kept, known, of_active, *other)
    grid = [*known.of_result, *(label for label in known.sizes if label not in known.of_result)]
    rows, columns = (_positions(axes, grid, known.sizes) for axes in (known.of_result, of_active))
    rank = np.arange(rows.size) % prod(known.sizes[label] for label in grid[len(known.of_result) :])
    factors = tuple((number, _positions(axes, grid, known.sizes)) for number, axes in others)
    return LocalStructure(rows, columns, rank, factors=factors)


def _positions(axes: Labels, grid: Labels, sizes: dict[int, int]) -> np.ndarray:
    """Flat positions of the elements of an operand, for each point of the grid of all labels."""
    positions = np.arange(prod(sizes[label] for label in axes)).reshape([sizes[label] for label in axes])
    order = sorted(range(len(axes)), key=lambda i: grid.index(axes[i]))
    shape = [sizes[label] if label in axes else 1 for label in grid]
    return np.broadcast_to(
        positions.transpose(order).reshape(shape), [sizes[label] for label in grid]
    ).ravel()


def _without_zeros(
    kept: IntArray, known: SumOfProducts, of_active: Labels, number: int, of_operand: Labels
) -> LocalStructure:
    """Return the edges from one operand if all elements of the other one are zeros but those kept."""
    sizes = known.sizes
    others = [label for label in sizes if label not in of_operand]
    rest = np.arange(prod(sizes[label] for label in others))
    index = _indices(kept[:, None], of_operand, sizes) | _indices(rest, others, sizes)
    rows, columns = (
        np.broadcast_to(_flat(index, axes, sizes), (kept.size, rest.size)).ravel()
        for axes in (known.of_result, of_active)
    )
    order = np.argsort(rows, kind="stable")
    rows, places = rows[order], np.repeat(np.arange(kept.size), rest.size)
    return LocalStructure(rows, columns[order], occurrences(rows), factors=((number, places[order]),))


def _indices(positions: np.ndarray, axes: Labels, sizes: dict[int, int]) -> dict[int, np.ndarray]:
    """Return the index of each label at flat positions in an array with these axes."""
    found = {}
    for label in reversed(axes):
        positions, found[label] = np.divmod(positions, sizes[label])
    return found


def _flat(index: dict[int, np.ndarray], axes: Labels, sizes: dict[int, int]) -> np.ndarray:
    """Return the flat positions in an array with these axes, by the index of each label."""
    positions = np.zeros(1, dtype=np.int64)
    for label in axes:
        positions = positions * sizes[label] + index[label]
    return positions


_Described: TypeAlias = Callable[..., tuple[SumOfProducts] | None]


def _of_two(labels: Callable[..., Labeled | None]) -> _Described:
    """Make what describes a product of the first two arguments; those given by name are not known."""

    def describe(*args: Any, **kwargs: Any) -> tuple[SumOfProducts] | None:
        found = labels(*args, **kwargs)
        return None if found is None or len(args) < 2 else (_described((0, 1), args[:2], *found),)

    return describe


def _described(numbers: tuple[int, ...], operands: tuple[Any, ...], *labels: Labels) -> SumOfProducts:
    """Describe a sum of products by the labels of all axes, those of the result behind."""
    *of_operands, of_result = labels
    known = [*zip(of_operands, map(np.shape, operands), strict=True)]
    sizes = lengths_of(known)
    full = ([label for label, n in zip(*axes, strict=True) if n == sizes[label]] for axes in known)
    return SumOfProducts(numbers, tuple(full), of_result, sizes)


def _einsum(*args: Any, optimize: Any = None) -> tuple[SumOfProducts] | None:
    """Describe a sum by the indices that a string or lists name, if no operand has one twice."""
    by_string = isinstance(args[0], str)
    numbers = tuple(range(1, len(args)) if by_string else range(0, len(args) // 2 * 2, 2))
    inputs, output, _ = anp.parse_einsum_input(*args)
    labels = [[*map(ord, term)] for term in (*inputs.split(","), output)]
    if any(len(set(axes)) < len(axes) for axes in labels):
        return None
    return (_described(numbers, tuple(args[number] for number in numbers), *labels),)


def _matmul_labels(a: Any, b: Any) -> Labeled:
    """Label a product of matrices or vectors, which is a dot product, or of stacks of matrices."""
    left, right, result = dot_labels(min(np.ndim(a), 2), min(np.ndim(b), 2))
    stacks = [list(range(-max(np.ndim(x) - 2, 0), 0)) for x in (a, b)]
    return stacks[0] + left, stacks[1] + right, max(stacks, key=len) + result


def _outer_labels(a: Any, b: Any) -> Labeled | None:
    """Label an outer product of two vectors; other operands are flattened."""
    return ([0], [1], [0, 1]) if np.ndim(a) == np.ndim(b) == 1 else None


def _kron_labels(a: Any, b: Any) -> Labeled | None:
    """Label the axes that a Kronecker product has before pairs of them are joined."""
    if np.ndim(a) != np.ndim(b):
        return None
    of_a, of_b = [2 * axis for axis in range(np.ndim(a))], [2 * axis + 1 for axis in range(np.ndim(a))]
    return of_a, of_b, sorted(of_a + of_b)


PRODUCTS_BY_LABELS: Final[dict[Any, _Described]] = {
    anp.matmul: _of_two(_matmul_labels),
    anp.dot: _of_two(lambda a, b: dot_labels(np.ndim(a), np.ndim(b))),
    anp.outer: _of_two(_outer_labels),
    anp.kron: _of_two(_kron_labels),
    anp.inner: _of_two(inner_labels),
    anp.einsum: _einsum,
    **{primitive: _of_two(labels) for primitive, labels in LABELS.items()},
}
"""Functions that describe calls of each primitive that sums products; they return None for other forms."""
