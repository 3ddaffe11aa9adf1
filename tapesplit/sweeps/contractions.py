"""Contractions: directions times partial derivatives, summed over axes without forming the products.

Where merged elementwise operations broadcast what they read, and are reduced in the end, each direction has
fewer elements before and behind than the partial derivatives have. Products of matrices sum over the other
axes, thirty times as fast as NumPy multiplies and adds; a diagonal of directions only picks from the partial
derivatives.
"""

from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from tapesplit.rules.contraction import Shape, contract
from tapesplit.sweeps.directions import Batch, Diagonal, Rows

__all__ = ["contracted", "letters"]

_AXES, _DIRECTION = ascii_letters[:-1], ascii_letters[-1]


def letters(shape: Shape, space: Shape, without: tuple[int, ...] = ()) -> str:
    """Name the axes of an array after those of a shape that it broadcasts to.

    Parameters
    ----------
    shape
        That of the array.
    space
        The shape that it broadcasts to.
    without
        Axes of the latter to leave out.

    Returns
    -------
    str
        A letter for each axis that is not of length one.

    Examples
    --------
    >>> letters((3, 1), (2, 3, 4))
    'b'
    """
    missing = len(space) - len(shape)
    return "".join([_AXES[missing + a] for a, n in enumerate(shape) if n != 1 and missing + a not in without])


def contracted(batch: Batch, partial: Any, space: Shape, ends: tuple[str, str], shape: Shape) -> Batch:
    """Multiply directions by partial derivatives, and sum over all axes that the result does not have.

    Parameters
    ----------
    batch
        Directions of a value.
    partial
        Partial derivatives, broadcasting to the shape ``space``.
    space
        The shape of the elementwise operation.
    ends
        Axes of the directions before and behind, see `letters`.
    shape
        The shape of the value behind.
    """
    given, wanted = ends
    partial = np.asarray(np.real(partial))  # what is merged into reductions is real
    if partial.shape != space:
        partial = np.broadcast_to(partial.reshape(partial.shape[max(partial.ndim - len(space), 0) :]), space)
    weights, axes = partial.reshape([n for n in space if n != 1]), letters(space, space)
    joint = "".join([letter for letter in axes if letter in given or letter in wanted])
    if joint != axes:
        weights = contract((axes,), [weights], joint)
    if isinstance(batch, Diagonal) and batch.is_whole:
        if given == wanted:
            values = (batch.values.reshape(weights.shape) * weights).reshape(shape)
            return Diagonal.of(values, batch.origin, batch.start, batch.stop)
        rows = _spread(batch.values, weights, joint, given, wanted)
        return Rows(batch.start, rows.reshape(-1, *shape), owned=True)
    batch = batch.dense()
    X = batch.rows.reshape(len(batch.rows), *[n for n in batch.rows.shape[1:] if n != 1])
    rows = contract((_DIRECTION + given, joint), [X, weights], _DIRECTION + wanted)
    return Rows(batch.start, rows.reshape(len(rows), *shape), owned=True)


def _spread(values: np.ndarray, weights: np.ndarray, joint: str, given: str, wanted: str) -> np.ndarray:
    """Return the directions of a diagonal: where axes stay, zero but in the place of the direction."""
    lengths = dict(zip(joint, weights.shape, strict=True))
    rows = np.zeros([lengths[i] for i in given + wanted], np.result_type(values, weights))
    order = given + "".join(i for i in wanted if i not in given)
    factors = values.reshape([lengths[i] if i in given else 1 for i in order])
    entries = np.einsum(f"{given + wanted}->{order}", rows)  # a view of them
    np.multiply(factors, weights.transpose([joint.index(i) for i in order]), out=entries)
    return rows.reshape(prod(lengths[i] for i in given), -1)
