"""Spreading: which element of an operand belongs to each element of a result, by broadcasting."""

from collections.abc import Sequence
from math import prod

import numpy as np

from tapesplit.arrays import IntArray, Shape, ranges

__all__ = ["broadcast_places"]


def broadcast_places(
    starts: IntArray, inner: Sequence[Shape], outer: Sequence[Shape], parts: int
) -> IntArray:
    """Return, for each element of the results of many calls, the place of the operand's element behind it.

    Parameters
    ----------
    starts
        Where the first element of the operand of each call stands.
    inner, outer
        Shapes of the operands and of the results: of each call, or just one each if these are those of all.
    parts
        Numbers that each element of the operand takes, 2 for complex ones; the place is that of the first.

    Returns
    -------
    ndarray
        Shape ``(calls, elements of a result)``, or ``(calls, 1)`` for operands that are numbers. Calls of
        different shapes are taken for one call with the elements of all of them.

    Examples
    --------
    >>> broadcast_places(np.array([10, 20]), [(3,)], [(2, 3)], 1)
    array([[10, 11, 12, 10, 11, 12],
           [20, 21, 22, 20, 21, 22]])
    >>> broadcast_places(np.array([10, 20, 30]), [(3,), (), (2, 1)], [(3,), (2,), (2, 2)], 1)
    array([[10, 11, 12, 20, 20, 30, 30, 31, 31]])
    """
    if len(outer) == 1:
        if prod(inner[0]) == 1:
            return starts[:, None]
        return starts[:, None] + _positions(inner[0], outer[0], parts)
    counts, sizes = np.array([[*map(prod, inner)], [*map(prod, outer)]])
    first = np.repeat(starts, sizes)
    if (counts == 1).all():
        return first[None]
    offsets = ranges(np.zeros_like(sizes), sizes)
    offsets *= parts
    ends = np.cumsum(sizes)
    for call in np.flatnonzero(counts != sizes).tolist():
        offsets[ends[call] - sizes[call] : ends[call]] = _positions(inner[call], outer[call], parts)
    return (first + offsets)[None]


def _positions(inner: Shape, outer: Shape, parts: int) -> IntArray:
    """Return the positions in an operand for each element of the result."""
    positions = parts * np.arange(prod(inner))
    return positions if inner == outer else np.broadcast_to(positions.reshape(inner), outer).reshape(-1)
