"""Local structure of linear and bilinear primitives: which element depends on which, by what factor.

Sums, small products and padding stand between the scalar operations of much user code. With their structure
known they can be part of a scalar sweep.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb, prod
from typing import Any, Final, NamedTuple, TypeAlias

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_wrapper import _astype, _primitive_mean

from tapesplit.arrays import IntArray, occurrences
from tapesplit.recording.overrides import keeps_calls
from tapesplit.recording.primitives import adjusted_side, summed_untake
from tapesplit.recording.tape import TapeEntry
from tapesplit.rules.axes import positive
from tapesplit.rules.local_products import PRODUCTS_BY_LABELS, SumOfProducts, product_edges
from tapesplit.rules.local_structure import LocalStructure
from tapesplit.rules.positions import places

__all__ = [
    "define_local",
    "has_local_structure",
    "is_contraction",
    "local_counts",
    "local_matrix",
    "local_structures",
    "sum_of_products",
]

_Description: TypeAlias = tuple[Any, ...] | None
"""What a local structure is built from; None for forms of calls that have none."""
_HIGHEST_ORDER: Final = 8
"""Order of differences up to which each element has few neighbors."""


def has_local_structure(primitive: Any) -> bool:
    """Tell whether calls of a primitive can have a local structure."""
    return primitive in _structures and not keeps_calls(primitive)


def define_local(
    primitive: Any, describe: Callable[..., tuple[Any, ...] | None], build: Callable[..., LocalStructure]
) -> None:
    """Define the structure of a primitive of a module that is imported later on.

    ``build(argnum, *described)`` returns the edges from an argument; ``describe`` gets the arguments of a
    call, and returns None if it has no structure.
    """
    _structures[primitive] = _Structure(describe, build)


def local_counts(entry: TapeEntry) -> tuple[int, int | None]:
    """Count the independent slices of a call with a local structure, 0 if it has none, and its edges.

    This is much cheaper than that structure. None for the edges if they are those that the rule counts.
    """
    description = _described(entry) if has_local_structure(entry.primitive) else None
    if description is None:
        return 0, None
    structure = _structures[entry.primitive]
    edges = None if structure.edges is None else structure.edges(*description) * len(entry.argnums)
    return structure.slices(*description), edges


def is_contraction(primitive: Any, args: Sequence[Any]) -> bool:
    """Tell whether a call sums products of two operands: a plan may leave the zeros of a constant one out."""
    if not _is_sum_of_products(primitive):
        return False
    return primitive is not anp.einsum or len(args) in ((3,) if isinstance(args[0], str) else (4, 5))


def _is_sum_of_products(primitive: Any) -> bool:
    """Tell whether calls of a primitive sum products of elements."""
    return primitive in PRODUCTS_BY_LABELS and not keeps_calls(primitive)


def local_structures(entry: TapeEntry, kept: IntArray | None = None) -> list[LocalStructure]:
    """Return the local structure by each active argument of a call that has one, see `local_counts`.

    If ``kept`` has flat positions in the constant operand of a contraction, all its other elements are zero
    and have no edges. The structure then counts positions in this operand among those kept.
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


def sum_of_products(entry: TapeEntry) -> SumOfProducts | None:
    """Describe a call that sums products of elements; None for other calls.

    Arguments that are none of the operands are added to the sum.
    """
    is_one = entry.primitive is adjusted_side or _is_sum_of_products(entry.primitive)
    described = _described(entry) if is_one else None
    return described[0] if described else None


def local_matrix(entry: TapeEntry, argnum: int) -> np.ndarray | None:
    """Return the Jacobian of a matrix times a vector by the vector: the matrix; None for any other call."""
    known = entry.primitive in {anp.matmul, anp.dot} and not keeps_calls(entry.primitive)
    if not known or np.ndim(entry.args[argnum]) != 1:
        return None
    other = np.asarray(entry.args[1 - argnum]) if len(entry.args) == 2 else None
    if other is None or other.ndim != 2:
        return None
    return other if argnum == 1 else other.T


class _Structure(NamedTuple):
    """How to find the local structure of calls of a primitive.

    ``describe`` gets the arguments of a call. What it returns is passed to ``build``, behind the number of
    an argument, for the structure; to ``slices`` for the number of independent slices; and to ``edges``, if
    the rule counts edges in another way, for those from one argument.
    """

    describe: Callable[..., _Description]
    build: Callable[..., LocalStructure]
    slices: Callable[..., int] = lambda *_: 1
    edges: Callable[..., int] | None = None


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


def _sum_of_products(describe: Callable[..., _Description]) -> _Structure:
    """Make the structure of a sum of products."""
    return _Structure(describe, product_edges, lambda known: known.slices, lambda known: known.edges)


def _describe_differences(x: Any, n: int = 1, axis: int = -1) -> _Description:
    """Describe differences of a low order along an axis."""
    return (np.shape(x), axis, int(n)) if 1 <= n <= min(_HIGHEST_ORDER, np.shape(x)[axis] - 1) else None


def _build_differences(argnum: int, shape: tuple[int, ...], axis: int, order: int) -> LocalStructure:
    """Build the structure of differences along an axis: neighbors with binomial weights, signs alternate."""
    positions = np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, 0)
    count = len(positions) - order
    parts = [np.moveaxis(positions[k : k + count], 0, axis).ravel() for k in range(order, -1, -1)]
    rank = np.repeat(np.arange(order + 1), parts[0].size)
    weights = np.array([(-1.0) ** k * comb(order, k) for k in range(order + 1)])
    rows = np.tile(np.arange(parts[0].size), order + 1)
    return LocalStructure(rows, np.concatenate(parts), rank, weights[rank])


def _describe_gradient(x: Any, *, axis: Any = None) -> _Description:
    """Describe differences of unit spacing along one axis; along several, the result is no array."""
    axes = positive(axis, np.ndim(x))
    return (np.shape(x), *axes) if len(axes) == 1 and isinstance(x, np.ndarray) else None


def _build_gradient(argnum: int, shape: tuple[int, ...], axis: int) -> LocalStructure:
    """Build the structure of central differences, which are one-sided at both ends."""
    along = np.moveaxis(np.arange(prod(shape)).reshape(shape), axis, 0)
    ahead = np.minimum(np.arange(len(along)) + 1, len(along) - 1)
    behind = np.maximum(np.arange(len(along)) - 1, 0)
    weights = np.repeat(1.0 / (ahead - behind), along.size // len(along))
    rows, columns = np.tile(along.ravel(), 2), np.concatenate([along[ahead].ravel(), along[behind].ravel()])
    second = np.repeat([0, 1], along.size)
    return LocalStructure(rows, columns, second, np.concatenate([weights, -weights]))


def _build_trace(argnum: int, shape: tuple[int, ...], offset: int) -> LocalStructure:
    """Build the structure of sums of diagonals."""
    columns = np.diagonal(np.arange(prod(shape)).reshape(shape), offset)
    rows = np.repeat(np.arange(prod(shape[2:])), columns.shape[-1])
    return LocalStructure(rows, columns.ravel(), occurrences(rows))


def _describe_ramp(start: Any, stop: Any, num: int = 50) -> _Description:
    """Describe equally spaced numbers between two."""
    return None if np.ndim(start) or np.ndim(stop) else (num,)


def _build_ramp(argnum: int, num: int) -> LocalStructure:
    """Build the structure of equally spaced numbers."""
    every = np.arange(num)
    weights = np.linspace(*((1.0, 0.0), (0.0, 1.0))[argnum], num)
    return LocalStructure(every, np.zeros_like(every), np.zeros_like(every), weights)


def _describe_cumsum(x: Any, axis: Any = None) -> _Description:
    """Describe a running sum; that of a list or of a number has no structure."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return None
    return (x.size,) if axis is None else x.shape, -1 if axis is None else axis


def _build_cumsum(argnum: int, shape: tuple[int, ...], axis: int) -> LocalStructure:
    """Build the structure of a running sum: each element is the one before it plus one of the argument."""
    every = np.arange(prod(shape))
    along = np.moveaxis(every.reshape(shape), axis, 0)
    recurring = along[1:].ravel(), along[:-1].ravel()
    return LocalStructure(every, every, np.zeros_like(every), recurring=recurring)


def _build_padding(argnum: int, shape: tuple[int, ...], width: Any) -> LocalStructure:
    """Build the structure of an array in a frame of constants."""
    padded = np.pad(np.arange(1, prod(shape) + 1).reshape(shape), width).ravel()
    rows = np.flatnonzero(padded)
    return LocalStructure(rows, padded[rows] - 1, np.zeros_like(rows))


def _build_sum(argnum: int, size: int) -> LocalStructure:
    """Build the structure of a summand of a sum of arrays."""
    elements = np.arange(size)
    return LocalStructure(elements, elements, np.zeros_like(elements))


def _build_untake(argnum: int, rows: np.ndarray) -> LocalStructure:
    """Build the structure of adding elements up in the places that an index points to."""
    return LocalStructure(rows, np.arange(rows.size), occurrences(rows))


def _describe_side(a: Any, b: Any, y: Any) -> _Description:
    """Describe the product of the matrix and the known solution, which b is added to."""
    found = _matmul(a, y)
    return found and (found[0]._replace(numbers=(0, 2)),)


def _build_side(argnum: int, product: SumOfProducts) -> LocalStructure:
    """Build the structure of `adjusted_side`: by the matrix that of a product, by b that of a sum."""
    if argnum == 1:
        return _build_sum(argnum, prod(product.sizes[label] for label in product.of_result))
    return product_edges(argnum, product)


def _build_conjugate(argnum: int, size: int) -> LocalStructure:
    """Build the structure of complex conjugates."""
    return replace(_build_sum(argnum, size), conjugated=True)


_matmul = PRODUCTS_BY_LABELS[anp.matmul]
_structures: dict[Any, _Structure] = {
    anp.sum: _reduction(lambda count: 1.0),
    _primitive_mean: _reduction(lambda count: 1.0 / max(count, 1)),
    summed_untake: _Structure(lambda x, index, space: (places(space.zeros(), index),), _build_untake),
    anp.conj: _Structure(lambda x: (int(np.size(x)),), _build_conjugate),
    _astype: _Structure(lambda x, dtype, **keywords: (int(np.size(x)),), _build_sum),
    anp.pad: _Structure(
        lambda x, pad_width, mode="constant", *, constant_values=0: (
            (np.shape(x), pad_width) if mode == "constant" else None
        ),
        _build_padding,
    ),
    anp.diff: _Structure(_describe_differences, _build_differences),
    anp.cumsum: _Structure(_describe_cumsum, _build_cumsum),
    anp.gradient: _Structure(_describe_gradient, _build_gradient),
    anp.trace: _Structure(lambda x, offset=0: (np.shape(x), offset), _build_trace),
    anp.linspace: _Structure(_describe_ramp, _build_ramp),
    adjusted_side: _Structure(_describe_side, _build_side, lambda known: known.slices),
    **{primitive: _sum_of_products(describe) for primitive, describe in PRODUCTS_BY_LABELS.items()},
}
