"""Flat positions of elements: those that an index points to, and slices and grids among positions."""

from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapesplit.arrays import Shape
from tapesplit.recording.values import element_count, flatten, unflatten

__all__ = ["Grid", "as_slice", "places"]


def places(value: Any, index: Any) -> np.ndarray:
    """Return the flat positions in a value that an index points to."""
    if type(value) is np.ndarray and value.size > _MANY:
        found = _basic_places(value.shape, index if type(index) is tuple else (index,))
        if found is not None:
            return found
    numbered = unflatten(np.arange(element_count(value)), value)
    return flatten(numbered[index]).astype(np.intp, copy=False)


def _basic_places(shape: Shape, index: tuple[Any, ...]) -> np.ndarray | None:
    """Find the positions that integers and slices point to, without numbering all elements; else None."""
    if len(index) > len(shape) or not {int, slice}.issuperset(map(type, index)):
        return None
    grid, step = Grid(0, (), ()), prod(shape)
    for length, part in zip(shape, (*index, *[slice(None)] * (len(shape) - len(index))), strict=True):
        step //= length
        of_axis: Any = range(length)[part]
        if isinstance(of_axis, int):
            grid = grid._replace(first=grid.first + step * of_axis)
        else:
            steps = *grid.steps, step * of_axis.step
            grid = Grid(grid.first + step * of_axis.start, (*grid.shape, len(of_axis)), steps)
    return grid.positions()


_MANY: Final = 10_000
"""Elements of a value from which on numbering them all takes longer than a look at the index."""


def as_slice(positions: np.ndarray) -> slice | None:
    """Return positions as a slice with a positive step, None if they are none or there are none."""
    if positions.size == 0:
        return None
    first = int(positions[0])
    if positions.size == 1:  # as in loops over elements
        return slice(first, first + 1, 1)
    step = int(positions[1]) - first
    if step <= 0 or not np.array_equal(positions, np.arange(first, first + step * positions.size, step)):
        return None
    return slice(first, int(positions[-1]) + 1, step)


class Grid(NamedTuple):
    """Flat positions ``first + i * steps[0] + j * steps[1] + …`` with indices below those of a shape.

    A strided view of them takes a tenth of the time of a look-up.
    """

    first: int
    shape: Shape
    steps: tuple[int, ...]

    @classmethod
    def of(cls, positions: np.ndarray) -> "Grid | None":
        """Return positions as a grid; None if they form none."""
        shape, steps, rest = list[int](), list[int](), positions
        while rest.size > 1 and len(shape) < _MOST_AXES:
            step = rest[1] - rest[0]
            others = np.flatnonzero(rest[1:] - rest[:-1] != step)
            length = int(others[0]) + 1 if others.size else rest.size
            if rest.size % length:
                return None
            shape.append(length)
            steps.append(int(step))
            rest = rest[::length]
        if rest.size != 1:
            return None
        grid = cls(int(positions[0]), tuple(shape[::-1]), tuple(steps[::-1]))
        return grid if np.array_equal(grid.positions(), positions) else None

    def positions(self) -> np.ndarray:
        """Return all positions, from axis to axis."""
        found = np.array(self.first, np.intp)
        for length, step in zip(self.shape, self.steps, strict=True):
            found = np.add.outer(found, np.arange(length) * step)
        return found.ravel()

    def view(self, X: np.ndarray) -> np.ndarray:
        """Return these positions of directions ``(k, size)`` as a view, shape ``(k, *shape)``."""
        rows, one = X.strides
        strides = rows, *[one * step for step in self.steps]
        if X.flags.c_contiguous and X.size:  # takes a tenth of the time of as_strided
            return np.ndarray((len(X), *self.shape), X.dtype, X, one * self.first, strides)
        return as_strided(X[:, self.first :], (len(X), *self.shape), strides)


_MOST_AXES: Final = 4
"""Axes of a grid, at most."""
