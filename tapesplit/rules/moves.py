"""Index maps: what a primitive that only moves elements does to flat positions.

A map lists, for each element of the result, the flat position in the argument that it comes from, -1 for a
constant. It is found by running the primitive on position numbers, so that one line registers a primitive and
every form of its arguments is covered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from autograd.numpy.numpy_boxes import ArrayBox

from tapesplit.leaves import element_count, flatten, renumber
from tapesplit.tape import TapeEntry

__all__ = ["IndexMap", "getitem", "index_map", "joint_index_map"]

getitem = ArrayBox.__getitem__
"""autograd's primitive behind ``x[index]``."""


@dataclass(frozen=True)
class IndexMap:
    """Where the elements of a result come from, for one argument.

    Parameters
    ----------
    sources
        Flat position in the argument for each element of the result, -1 for none.
    size
        Number of elements of the argument.
    """

    sources: np.ndarray
    size: int

    @cached_property
    def complete(self) -> bool:
        """Whether every element of the result comes from the argument."""
        return bool((self.sources >= 0).all())

    @cached_property
    def run(self) -> slice | None:
        """The positions as a slice with a positive step, if they are one."""
        s = self.sources
        if s.size == 0 or s[0] < 0:
            return None
        if s.size == 1:
            return slice(int(s[0]), int(s[0]) + 1, 1)
        step = int(s[1] - s[0])
        if step <= 0 or not np.array_equal(s, np.arange(s[0], s[0] + step * s.size, step)):
            return None
        return slice(int(s[0]), int(s[-1]) + 1, step)

    @cached_property
    def is_identity(self) -> bool:
        """Whether every element keeps its flat position."""
        return self.run == slice(0, self.size, 1) and self.sources.size == self.size

    @cached_property
    def block(self) -> slice | None:
        """The slice of the result where all elements of the argument stand, once and in order, or None."""
        first = int(np.argmax(self.sources == 0)) if self.sources.size else 0
        here = slice(first, first + self.size)
        alone = self._targets.size == self.size and np.array_equal(self.sources[here], np.arange(self.size))
        return here if alone else None

    @cached_property
    def _targets(self) -> np.ndarray:
        """Positions in the result that come from the argument at all."""
        return np.flatnonzero(self.sources >= 0)

    @cached_property
    def _groups(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Result positions by source, starts of equal sources, those sources; None if no source repeats."""
        sources = self.sources[self._targets]
        order = np.argsort(sources, kind="stable")
        ordered = sources[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        return None if starts.size == ordered.size else (self._targets[order], starts, ordered[starts])

    def copy(self, source: np.ndarray, target: np.ndarray) -> None:
        """Write the elements of a flat argument to where they stand in the flat result."""
        if self.run is not None:
            target[:] = source[self.run]
        elif self.complete:
            target[:] = source[self.sources]
        else:
            target[self._targets] = source[self.sources[self._targets]]

    def gather(self, X: np.ndarray) -> np.ndarray:
        """Carry tangents ``(k, size)`` to ``(k, sources.size)``."""
        if self.run is not None:
            return X[:, self.run]
        if self.complete:
            return X.take(self.sources, axis=1)
        Y = np.zeros((len(X), self.sources.size), X.dtype)
        Y[:, self._targets] = X[:, self.sources[self._targets]]
        return Y

    def scatter(self, Y: np.ndarray) -> np.ndarray:
        """Carry adjoints ``(k, sources.size)`` to ``(k, size)``; repeated sources add up."""
        if self.is_identity:
            return Y
        X = np.zeros((len(Y), self.size), Y.dtype)
        if self.run is not None:
            X[:, self.run] = Y
        elif self._groups is None:
            X[:, self.sources[self._targets]] = Y[:, self._targets]
        else:
            order, starts, sources = self._groups
            X[:, sources] = np.add.reduceat(Y[:, order], starts, axis=1)
        return X


def index_map(entry: TapeEntry, argnum: int) -> IndexMap:
    """Find the index map of one active argument by two runs of the primitive on position numbers."""
    original = entry.args[argnum]
    if entry.primitive is getitem:  # brings no constants in: one run will do
        positions = np.arange(np.size(original)).reshape(np.shape(original))
        return IndexMap(np.ravel(positions[entry.args[1]]), positions.size)
    return IndexMap(_sources(entry, (argnum,), [0]), element_count(original))


def joint_index_map(entry: TapeEntry) -> tuple[np.ndarray, np.ndarray]:
    """Find where all elements of a result come from, whatever the number of arguments, by two runs.

    Returns
    -------
    argument
        Which of the active arguments each element of the result comes from, -1 for none.
    source
        Its flat position in that argument.
    """
    if len(entry.argnums) == 1:
        sources = index_map(entry, entry.argnums[0]).sources
        return np.where(sources < 0, -1, 0), sources
    starts = np.cumsum([0, *(element_count(entry.args[argnum]) for argnum in entry.argnums)])
    sources = _sources(entry, entry.argnums, starts[:-1].tolist())
    argument = np.searchsorted(starts, sources, side="right") - 1
    return argument, sources - starts[argument]


def _sources(entry: TapeEntry, argnums: Sequence[int], starts: Sequence[int]) -> np.ndarray:
    """Number the elements of some arguments through; return the number in each element, -1 for none."""
    shift = 1 + starts[-1] + element_count(entry.args[argnums[-1]])

    def moved(by: int) -> np.ndarray:
        args = list(entry.args)
        for argnum, start in zip(argnums, starts, strict=True):
            args[argnum] = renumber(args[argnum], float(start + by))
        return flatten(entry.primitive(*args, **entry.kwargs))  # type: ignore[misc]

    with np.errstate(all="ignore"):
        low, high = moved(0), moved(shift)
        # A constant does not follow when the numbers are shifted.
        return np.where(high - low == shift, low.real, -1.0).astype(np.intp)
