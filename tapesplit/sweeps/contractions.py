"""Contractions: directions times partial derivatives, summed over axes without forming the products.

If merged elementwise operations end in a reduction, and maybe broadcast what they read, the partial
derivatives have more elements than the directions before and behind. Matrix products sum over the axes
that these lack, thirty times as fast as NumPy multiplies and adds; a diagonal of directions only picks from
the partial derivatives.
"""

from typing import Any

import numpy as np

from tapesplit.arrays import Shape
from tapesplit.rules.contraction import AXES, FREE, contract
from tapesplit.sweeps.directions import Batch, Diagonal, LowRank, Rows
from tapesplit.sweeps.preaccumulation import is_one

__all__ = ["broadcast", "contracted", "letters", "scaled_factors"]

_DIRECTION, _RANK = FREE


def letters(shape: Shape, space: Shape, without: tuple[int, ...] = ()) -> str:
    """Name the axes of an array after those of a shape that it broadcasts to.

    Axes of `space` that are in `without` are left out. There is a letter for each axis that is not of length
    one.

    Examples
    --------
    >>> letters((3, 1), (2, 3, 4))
    'b'
    """
    missing = len(space) - len(shape)
    return "".join([AXES[missing + a] for a, n in enumerate(shape) if n != 1 and missing + a not in without])


def broadcast(partial: Any, space: Shape) -> np.ndarray:
    """Broadcast partial derivatives to a shape; further axes in front, of length one, are left out."""
    partial = np.asarray(partial)
    if partial.shape == space:
        return partial
    return np.broadcast_to(partial.reshape(partial.shape[max(partial.ndim - len(space), 0) :]), space)


def contracted(batch: Batch, partial: Any, space: Shape, ends: tuple[str, str], shape: Shape) -> Batch:
    """Multiply directions by partial derivatives, and sum over all axes that the result does not have.

    `partial` broadcasts to `space`, the shape of what is reduced. `ends` are the axes of the given and of the
    resulting directions, see `letters`; `shape` is the shape of one of the latter.
    """
    given, wanted = ends
    weights, axes = broadcast(partial, space).reshape([n for n in space if n != 1]), letters(space, space)
    joint = "".join([letter for letter in axes if letter in given or letter in wanted])
    if joint != axes:
        weights = contract((axes,), [weights], joint)
    if isinstance(batch, Diagonal):
        if given == wanted:
            values = (batch.values.reshape(weights.shape) * weights).reshape(shape)
            return Diagonal(batch.origin, values, batch.start, batch.stop)
        rows = _picked(batch, weights, joint, given, wanted)
    elif isinstance(batch, LowRank):
        terms, sides = batch.factors.terms(given, _DIRECTION, _RANK)
        rows = contract((*terms, joint), [*sides, weights], _DIRECTION + wanted)
    else:
        batch = batch.dense()
        X = batch.rows.reshape(len(batch.rows), *[n for n in batch.rows.shape[1:] if n != 1])
        rows = contract((_DIRECTION + given, joint), [X, weights], _DIRECTION + wanted)
    return Rows(batch.start, rows.reshape(len(rows), *shape), owned=True)


def scaled_factors(batch: LowRank, partial: Any, operand: Any) -> Batch | None:
    """Multiply factored adjoints by partial derivatives, and sum over axes that an argument does not have.

    The adjoints are those of a matrix, to whose shape `partial` broadcasts; `operand` is the argument. None
    where products of all elements are needed, or the real part of complex ones.

    Notes
    -----
    The derivative by an argument of the same shape mostly is a number, see `tapesplit.cost.factored`. It is
    an array where operations that read too many values for one step are merged into several.
    """
    space, factors, shape = batch.factors.shape, batch.factors, np.shape(operand)
    if not np.iscomplexobj(operand):
        if any(map(np.iscomplexobj, factors)):
            return None
        partial = np.real(partial)  # users' formulas may be complex where all values are real
    if shape != space:
        return contracted(batch, partial, space, (letters(space, space), letters(shape, space)), shape)
    if is_one(partial):
        return batch
    rows, columns = (1, 1, *np.shape(partial))[-2:]
    weights = np.reshape(partial, -1)
    if columns == 1:
        return LowRank(batch.start, factors._replace(left=factors.left * weights))
    return LowRank(batch.start, factors._replace(right=factors.right * weights)) if rows == 1 else None


def _picked(batch: Diagonal, weights: np.ndarray, joint: str, given: str, wanted: str) -> np.ndarray:
    """Return the directions of a diagonal: each has the weights of its own element, and is zero elsewhere."""
    rest = "".join([axis for axis in wanted if axis not in given])
    of_elements = weights.transpose([joint.index(axis) for axis in given + rest])
    of_elements = of_elements.reshape(batch.values.size, -1)[batch.wanted]
    picked = np.multiply(batch.values.reshape(-1, 1)[batch.wanted], of_elements, order="C")
    if rest == wanted:
        return picked
    lengths = dict(zip(joint, weights.shape, strict=True))
    rows = np.zeros((len(picked), *(lengths[axis] for axis in wanted)), picked.dtype)
    kept = "".join([axis for axis in given if axis in wanted])
    places = np.unravel_index(np.arange(batch.values.size)[batch.wanted], [lengths[axis] for axis in given])
    own = [place for axis, place in zip(given, places, strict=True) if axis in kept]
    by_element = rows.transpose(0, *(1 + wanted.index(axis) for axis in kept + rest))
    by_element[np.arange(len(picked)), *own] = picked.reshape(-1, *(lengths[axis] for axis in rest))
    return rows
