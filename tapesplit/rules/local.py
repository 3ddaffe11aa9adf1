"""Local structure of linear and bilinear primitives: which element depends on which, by what factor.

Sums, small products and padding stand between the scalar operations of much user code. With their structure
known they can be part of a scalar sweep.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, TypeAlias

import autograd.numpy as anp
import numpy as np
from autograd.core import VSpace
from autograd.numpy.numpy_vspaces import ArrayVSpace
from autograd.numpy.numpy_wrapper import _astype, _primitive_mean
from autograd.util import func

from tapesplit.arrays import IntArray, occurrences
from tapesplit.recording.overrides import is_overridden
from tapesplit.recording.primitives import adjusted_side, summed_untake
from tapesplit.recording.tape import TapeEntry
from tapesplit.rules.axes import positive
from tapesplit.rules.contraction import lengths_of
from tapesplit.rules.positions import places
from tapesplit.rules.products import LABELS, Labeled, Labels, dot_labels, inner_labels

__all__ = [
    "LocalStructure",
    "contraction_labels",
    "has_local_structure",
    "is_contraction",
    "local_matrix",
    "local_slices",
    "local_structures",
]

_Description: TypeAlias = tuple[Any, ...] | None
"""What a local structure is built from; None for forms of calls that have none."""


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
        The partial derivatives of all edges or of each one, where they are constants.
    operand, positions
        The number of the argument whose elements they are elsewhere, and their flat positions in it.
    conjugated
        Whether complex numbers are conjugated.
    recurring
        Flat positions of elements of the result, and of others before them in it that are added to them.
    """

    rows: np.ndarray
    columns: np.ndarray
    rank: np.ndarray
    factor: float | np.ndarray = 1.0
    operand: int | None = None
    positions: np.ndarray | None = None
    conjugated: bool = False
    recurring: tuple[np.ndarray, np.ndarray] | None = None


def has_local_structure(primitive: Any) -> bool:
    """Tell whether calls of a primitive can have a local structure."""
    return primitive in _structures and not is_overridden(primitive)


def local_slices(entry: TapeEntry) -> int:
    """Count the independent slices of a call with a local structure; 0 if it has none.

    This is much cheaper than that structure.
    """
    description = _described(entry) if has_local_structure(entry.primitive) else None
    return 0 if description is None else _structures[entry.primitive].slices(*description)


def is_contraction(primitive: Any) -> bool:
    """Tell whether a primitive sums products of two operands, of which a constant one may have zeros."""
    return has_local_structure(primitive) and _structures[primitive].first is not None


def local_structures(entry: TapeEntry, kept: IntArray | None = None) -> list[LocalStructure]:
    """Return the local structure by each active argument of a call that has one, see `local_slices`.

    A contraction has edges only for the elements of its constant operand that are ``kept``, by their flat
    positions, if these are given. Its ``positions`` are then places among them.
    """
    description, build = _described(entry), _structures[entry.primitive].build
    chosen = () if kept is None else (kept,)
    return [build(argnum, *description, *chosen) for argnum in entry.argnums]  # type: ignore[misc] # it has one


def _described(entry: TapeEntry) -> _Description:
    """Describe a call of a primitive that can have a local structure."""
    try:
        return _structures[entry.primitive].describe(*entry.args, **entry.kwargs)
    except TypeError:  # an argument or a keyword that the structure does not know
        return None


def contraction_labels(entry: TapeEntry) -> tuple[int, Labeled] | None:
    """Return the first operand of a contraction and the labels of both and of the result; else None.

    Axes of length one that are broadcast have no labels.
    """
    first = _structures[entry.primitive].first if has_local_structure(entry.primitive) else None
    description = None if first is None else _described(entry)
    return None if first is None or description is None else (first, description[:3])


def local_matrix(entry: TapeEntry, argnum: int) -> np.ndarray | None:
    """Return the Jacobian of a matrix times a vector by the vector: the matrix; None for any other call."""
    known = entry.primitive in {anp.matmul, anp.dot} and not is_overridden(entry.primitive)
    if not known or np.ndim(entry.args[argnum]) != 1:
        return None
    other = np.asarray(entry.args[1 - argnum]) if len(entry.args) == 2 else None
    if other is None or other.ndim != 2:
        return None
    return other if argnum == 1 else other.T


class _Structure(NamedTuple):
    """How local structures of a primitive come about: a description of the call, its structure and slices.

    ``first`` is the first operand of a contraction.
    """

    describe: Callable[..., _Description]
    build: Callable[..., LocalStructure]
    slices: Callable[..., int] = lambda *_: 1
    first: int | None = None


def _reduction(factor: Callable[[int], float]) -> _Structure:
    """Make the structure of a sum with equal weights."""

    def describe(x: Any, axis: Any = None, *, keepdims: Any = False) -> _Description:
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


def _contraction(labels: Callable[..., Labeled | None], first: int = 0) -> _Structure:
    """Make the structure of a contraction: one edge for each product of two elements.

    The operands are arguments ``first`` and ``first + 1``. Their axes of length one may broadcast.
    """

    def describe(*args: Any, **kwargs: Any) -> _Description:
        found = labels(*args, **kwargs)
        if found is None or len(args) < first + 2:  # an operand may be given by name
            return None
        *of_operands, of_ans = found
        known = [*zip(of_operands, map(np.shape, args[first : first + 2]), strict=True)]
        sizes = lengths_of(known)
        full = ([label for label, n in zip(*of_x, strict=True) if n == sizes[label]] for of_x in known)
        return *full, of_ans, sizes

    def build(
        argnum: int,
        of_x: Labels,
        of_y: Labels,
        of_ans: Labels,
        sizes: dict[int, int],
        kept: IntArray | None = None,
    ) -> LocalStructure:
        grid = [*of_ans, *(label for label in sizes if label not in of_ans)]
        operand, of_active, of_operand = (first + 1, of_x, of_y) if argnum == first else (first, of_y, of_x)
        if kept is not None:
            return _without_zeros(kept, operand, (of_ans, of_active, of_operand), sizes)
        rows, columns, positions = (_positions(axes, grid, sizes) for axes in (of_ans, of_active, of_operand))
        rank = np.arange(rows.size) % prod(sizes[label] for label in grid[len(of_ans) :])
        return LocalStructure(rows, columns, rank, operand=operand, positions=positions)

    def slices(of_x: Labels, of_y: Labels, of_ans: Labels, sizes: dict[int, int]) -> int:
        return prod(sizes[label] for label in of_ans if label in of_x and label in of_y)

    return _Structure(describe, build, slices, first)


def _without_zeros(kept: IntArray, operand: int, labels: Labeled, sizes: dict[int, int]) -> LocalStructure:
    """Build the structure of a contraction by an operand of which all elements are zeros but those kept.

    The labels are those of the result, of the argument and of the operand.
    """
    of_ans, of_active, of_operand = labels
    others = [label for label in sizes if label not in of_operand]
    rest = np.arange(prod(sizes[label] for label in others))
    index = _indices(kept[:, None], of_operand, sizes) | _indices(rest, others, sizes)
    rows, columns = (
        np.broadcast_to(_flat(index, axes, sizes), (kept.size, rest.size)).ravel()
        for axes in (of_ans, of_active)
    )
    order = np.argsort(rows, kind="stable")
    rows, places = rows[order], np.repeat(np.arange(kept.size), rest.size)
    return LocalStructure(rows, columns[order], occurrences(rows), operand=operand, positions=places[order])


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


def _build_differences(argnum: int, shape: tuple[int, ...], axis: int) -> LocalStructure:
    """Build the structure of differences along an axis: each element minus the one before."""
    positions = np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, 0)
    after, before = (np.moveaxis(part, 0, axis).ravel() for part in (positions[1:], positions[:-1]))
    rows = np.tile(np.arange(after.size), 2)
    second = np.repeat([0, 1], after.size)
    return LocalStructure(rows, np.concatenate([after, before]), second, 1.0 - 2.0 * second)


def _describe_cumsum(x: Any, axis: Any = None) -> _Description:
    """Describe a running sum; that of a list or of a number has no structure."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return None
    return (x.size,) if axis is None else x.shape, -1 if axis is None else axis


def _build_cumsum(argnum: int, shape: tuple[int, ...], axis: int) -> LocalStructure:
    """Build the structure of a running sum: each element is the one before it, and one of the argument."""
    every = np.arange(prod(shape))
    along = np.moveaxis(every.reshape(shape), axis, 0)
    recurring = along[1:].ravel(), along[:-1].ravel()
    return LocalStructure(every, every, np.zeros_like(every), recurring=recurring)


def _build_padding(argnum: int, shape: tuple[int, ...], width: Any) -> LocalStructure:
    """Build the structure of an array in a frame of constants."""
    padded = np.pad(np.arange(1, prod(shape) + 1).reshape(shape), width).ravel()
    rows = np.flatnonzero(padded)
    return LocalStructure(rows, padded[rows] - 1, np.zeros_like(rows))


def _describe_sum(space: Any, x: Any, y: Any) -> _Description:
    whole = isinstance(space, ArrayVSpace) and np.shape(x) == np.shape(y) == space.shape
    return (prod(space.shape),) if whole else None


def _build_sum(argnum: int, size: int) -> LocalStructure:
    """Build the structure of a sum of two adjoints."""
    elements = np.arange(size)
    return LocalStructure(elements, elements, np.zeros_like(elements))


def _build_untake(argnum: int, rows: np.ndarray) -> LocalStructure:
    """Build the structure of sums where an index points."""
    return LocalStructure(rows, np.arange(rows.size), occurrences(rows))


def _build_side(
    argnum: int, of_a: Labels, of_x: Labels, of_ans: Labels, sizes: dict[int, int]
) -> LocalStructure:
    """Build the structure of an adjusted right-hand side: that of a product by the matrix, of a sum by b."""
    if argnum == 1:
        return _build_sum(argnum, prod(sizes[label] for label in of_ans))
    return replace(_product.build(0, of_a, of_x, of_ans, sizes), operand=2)


def _build_conjugate(argnum: int, size: int) -> LocalStructure:
    """Build the structure of complex conjugates."""
    return replace(_build_sum(argnum, size), conjugated=True)


def _positions(axes: Labels, grid: Labels, sizes: dict[int, int]) -> np.ndarray:
    """Flat positions of the elements of an operand, for each point of the grid of all labels."""
    positions = np.arange(prod(sizes[label] for label in axes)).reshape([sizes[label] for label in axes])
    order = sorted(range(len(axes)), key=lambda i: grid.index(axes[i]))
    shape = [sizes[label] if label in axes else 1 for label in grid]
    return np.broadcast_to(
        positions.transpose(order).reshape(shape), [sizes[label] for label in grid]
    ).ravel()


def _matmul_labels(a: Any, b: Any) -> Labeled:
    """Label a product of matrices or vectors, which is a dot product, or of stacks of matrices."""
    left, right, result = dot_labels(min(np.ndim(a), 2), min(np.ndim(b), 2))
    stacks = [list(range(-max(np.ndim(x) - 2, 0), 0)) for x in (a, b)]
    return stacks[0] + left, stacks[1] + right, max(stacks, key=len) + result


def _outer_labels(a: Any, b: Any) -> Labeled | None:
    """Label an outer product of two vectors; other operands are flattened."""
    return ([0], [1], [0, 1]) if np.ndim(a) == np.ndim(b) == 1 else None


def _einsum_labels(subscripts: Any, *operands: Any, **keywords: Any) -> Labeled | None:
    """Label a sum over products of two operands, neither of which has an index twice."""
    if not isinstance(subscripts, str) or len(operands) != 2:
        return None
    inputs, output, _ = anp.parse_einsum_input(subscripts, *operands)
    left, right, result = ([*map(ord, term)] for term in (*inputs.split(","), output))
    is_plain = len(set(left)) == len(left) and len(set(right)) == len(right)
    return (left, right, result) if is_plain else None


_product = _contraction(_matmul_labels)
_structures: dict[Any, _Structure] = {
    anp.sum: _reduction(lambda count: 1.0),
    _primitive_mean: _reduction(lambda count: 1.0 / max(count, 1)),
    func(VSpace.add): _Structure(_describe_sum, _build_sum),
    func(VSpace.mut_add): _Structure(_describe_sum, _build_sum),
    summed_untake: _Structure(lambda x, index, space: (places(space.zeros(), index),), _build_untake),
    anp.conj: _Structure(lambda x: (int(np.size(x)),), _build_conjugate),
    _astype: _Structure(lambda x, dtype, **keywords: (int(np.size(x)),), _build_sum),
    anp.pad: _Structure(
        lambda x, pad_width, mode="constant", *, constant_values=0: (
            (np.shape(x), pad_width) if mode == "constant" else None
        ),
        _build_padding,
    ),
    anp.diff: _Structure(lambda x, n=1, axis=-1: (np.shape(x), axis) if n == 1 else None, _build_differences),
    anp.cumsum: _Structure(_describe_cumsum, _build_cumsum),
    anp.matmul: _product,
    adjusted_side: _Structure(lambda a, b, y: _product.describe(a, y), _build_side, _product.slices),
    anp.dot: _contraction(lambda a, b: dot_labels(np.ndim(a), np.ndim(b))),
    anp.outer: _contraction(_outer_labels),
    anp.inner: _contraction(inner_labels),
    anp.einsum: _contraction(_einsum_labels, first=1),
    **{primitive: _contraction(labels) for primitive, labels in LABELS.items()},
}
