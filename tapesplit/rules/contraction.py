"""Sums over products of several arrays with named indices, pair after pair by products of matrices.

NumPy looks for the order of the pairs at each call, which takes longer than many a sum itself. Here it is
kept: it depends on the indices and the shapes only.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from math import prod
from string import ascii_letters
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np

from tapesplit.arrays import FLOAT64, Shape
from tapesplit.matrix_product import multiply

__all__ = ["AXES", "FREE", "KEPT", "contract", "held_between", "lengths_of", "products"]

_Label = TypeVar("_Label", str, int)

AXES: Final = ascii_letters[:-2]
"""Letters for the indices of arrays."""
FREE: Final = tuple(ascii_letters[-2:])
"""Letters that none of these has: for directions, and for whatever else is summed."""
KEPT: Final = 1024
"""How many forms of calls are cached, at most."""
_SMALL_SUM: Final = 2000
"""Products of elements up to which one loop takes less time than looking for pairs, or a call of BLAS."""
_SMALL_SLICE: Final = 200
"""The same for each matrix of a stack."""
_LEAST_LAST, _LEAST_TERMS = 8, 64
"""Matrices of a stack along the last axis, and terms of each sum, from which on one loop takes less time than
a product of each matrix with a vector."""
_MOST_BETWEEN: Final = 2**62
"""Elements of an intermediate result, at most: no limit, as NumPy's own, the largest operand, forbids most
pairs."""


class _Matrices(NamedTuple):
    """How two operands are multiplied as stacks of matrices.

    ``axes`` and ``shapes`` bring each operand into this form; the product is reshaped to ``opened``, and its
    axes are transposed into ``order``.
    """

    axes: tuple[Shape, Shape]
    shapes: tuple[Shape, Shape]
    opened: Shape
    order: Shape


class _Step(NamedTuple):
    """Pop the operands at these places (descending), contract them, append the result.

    It is a product of matrices, or a sum in one loop if ``matrices`` is None, over so many ``products`` of
    elements. ``held`` has the indices and the number of elements of each array that exists besides the
    operands and the last result: intermediate results, that of this step, and copies of what it multiplies.
    For products with vectors ``scattered`` is the place, among the two, of an operand whose matrices lie
    along its last axis: BLAS wants the elements of each next to each other, and one loop is faster.
    """

    places: tuple[int, ...]
    subscripts: str
    products: int
    held: tuple[tuple[str, int], ...]
    matrices: _Matrices | None
    scattered: int | None = None


def contract(
    terms: tuple[str, ...], operands: Sequence[Any], output: str, order: Literal["K", "C"] = "K"
) -> np.ndarray:
    """Sum the product of some operands, pair by pair, in the precision of the most precise one.

    `terms` has the indices of each operand, a letter for each axis, and `output` those of the result. Axes of
    one index have the same length. The result may be a view of an operand. `order` is the order in memory of
    what ``einsum`` computes: that of the operands, or that of the indices.

    Examples
    --------
    >>> contract(("ij", "jk", "k"), [np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones(2)], "i")
    array([3., 7.])
    """
    arrays = [np.asarray(operand) for operand in operands]
    if any(array.dtype != np.float64 for array in arrays):
        precision = np.finfo(np.result_type(np.float16, *arrays)).dtype
        arrays = [np.asarray(array, np.result_type(array, precision)) for array in arrays]
    for step in _steps(terms, tuple(array.shape for array in arrays), output):
        chosen = [arrays.pop(place) for place in step.places]
        if step.matrices is None or (step.scattered is not None and _are_scattered(chosen, step.scattered)):
            arrays.append(np.einsum(step.subscripts, *chosen, order=order))
        else:
            arrays.append(_product(step.matrices, *chosen))
    return arrays[0]


def _are_scattered(operands: Sequence[np.ndarray], place: int) -> bool:
    """Tell whether the last axis of one of two operands in double precision is contiguous."""
    is_double = all(operand.dtype == FLOAT64 for operand in operands)
    return is_double and operands[place].strides[-1] == operands[place].itemsize


def products(terms: tuple[str, ...], shapes: tuple[Shape, ...], output: str) -> int:
    """Count the products of elements that `contract` sums."""
    return sum(step.products for step in _steps(terms, shapes, output))


def held_between(terms: tuple[str, ...], shapes: tuple[Shape, ...], output: str) -> tuple[int, int]:
    """Count the elements that `contract` holds at a time besides its operands and the last result.

    Returns two numbers: for arrays that have the first index of the result (of directions), and for others.
    """
    steps = _steps(terms, shapes, output)
    with_index, without = (
        max(sum(size for term, size in step.held if (output[0] in term) is has) for step in steps)
        for has in (True, False)
    )
    return with_index, without


def _product(matrices: _Matrices, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Multiply two operands as stacks of matrices."""
    axes, shapes, opened, order = matrices
    left, right = X.transpose(axes[0]).reshape(shapes[0]), Y.transpose(axes[1]).reshape(shapes[1])
    product = multiply(left, right) if left.ndim == 2 else left @ right
    return product.reshape(opened).transpose(order)


@lru_cache(KEPT)
def _steps(terms: tuple[str, ...], shapes: tuple[Shape, ...], output: str) -> tuple[_Step, ...]:
    """Find the order in which pairs of operands are contracted, and how each of them is."""
    known = list(zip(terms, shapes, strict=True))
    lengths = lengths_of(known)
    whole = ",".join(terms) + "->" + output
    # A small sum takes less time than several calls; a product that sums nothing is as good in one.
    if len(terms) == 1 or prod(lengths.values()) <= _SMALL_SUM or lengths.keys() <= set(output):
        return (_Step((0,) * len(terms), whole, prod(lengths.values()), (), None),)
    path: list[Any] = [(0, 1)]
    if len(terms) > 2:
        zeros = [np.broadcast_to(0.0, shape) for shape in shapes]
        path = np.einsum_path(whole, *zeros, optimize=("greedy", _MOST_BETWEEN))[0][1:]
    steps = []
    between = [("", 0)] * len(terms)
    for chosen in path:
        places = tuple(sorted(chosen, reverse=True))
        held = [*between]
        taken = [known.pop(place) for place in places]
        between = [array for place, array in enumerate(between) if place not in places]
        lengths = lengths_of(taken)
        needed = output + "".join(term for term, _ in known)
        result = "".join(filter(needed.__contains__, lengths)) if known else output
        matrices = _matrices(taken, lengths, result) if len(taken) == 2 else None
        subscripts = ",".join(term for term, _ in taken) + "->" + result
        shape = tuple(lengths[letter] for letter in result)
        between.append((result, prod(shape) if known else 0))
        held += [between[-1], *(_copied(matrices, taken) if matrices else ())]
        scattered = _scattered(taken, lengths, result) if matrices else None
        steps.append(_Step(places, subscripts, prod(lengths.values()), tuple(held), matrices, scattered))
        known.append((result, shape))
    return tuple(steps)


def _scattered(taken: list[tuple[str, Shape]], lengths: dict[str, int], result: str) -> int | None:
    """Return the place of the matrices that are multiplied by vectors if they lie along the last axis."""
    batch = [letter for letter in result if all(letter in term for term, _ in taken)]
    summed = prod(length for letter, length in lengths.items() if letter not in result)
    places = [place for place, (term, _) in enumerate(taken) if not {*term} <= {*taken[1 - place][0]}]
    if len(batch) != 1 or len(places) != 1 or summed < _LEAST_TERMS or lengths[batch[0]] < _LEAST_LAST:
        return None
    return places[0] if taken[places[0]][0][-1] == batch[0] else None


def _copied(matrices: _Matrices, taken: list[tuple[str, Shape]]) -> list[tuple[str, int]]:
    """List the operands that are copied to be matrices, by indices and elements; a transpose is a view."""
    return [
        (term, prod(shape))
        for axes, (term, shape) in zip(matrices.axes, taken, strict=True)
        if len(axes) > 2 and axes != tuple(range(len(axes)))
    ]


def lengths_of(known: Iterable[tuple[Sequence[_Label], Shape]]) -> dict[_Label, int]:
    """Return the length of each index; axes of length one broadcast."""
    lengths: dict[_Label, int] = {}
    for label, n in chain.from_iterable(zip(labels, shape, strict=True) for labels, shape in known):
        lengths[label] = n if lengths.get(label, 1) == 1 else lengths[label]
    return lengths


def _matrices(taken: list[tuple[str, Shape]], lengths: dict[str, int], result: str) -> _Matrices | None:
    """Return how to multiply a pair as stacks of matrices; None if it is none, or a loop takes less time."""
    (x, _), (y, _) = taken
    batch = [letter for letter in result if letter in x and letter in y]
    left = [letter for letter in result if letter in x and letter not in y]
    right = [letter for letter in result if letter not in x]
    summed = [letter for letter in x if letter not in result]
    is_plain = len(set(x)) == len(x) and len(set(y)) == len(y) and set(summed) == set(y).difference(result)
    stack, rows, columns, terms = (prod(lengths[i] for i in part) for part in (batch, left, right, summed))
    is_small = stack * rows * columns * terms <= _SMALL_SUM + _SMALL_SLICE * stack
    if not is_plain or is_small or not summed:
        return None
    produced = [*batch, *left, *right]
    return _Matrices(
        axes=(
            tuple(x.index(letter) for letter in [*batch, *left, *summed]),
            tuple(y.index(letter) for letter in [*batch, *summed, *right]),
        ),
        shapes=((stack, rows, terms), (stack, terms, columns))
        if batch
        else ((rows, terms), (terms, columns)),
        opened=tuple(lengths[letter] for letter in produced),
        order=tuple(produced.index(letter) for letter in result),
    )
