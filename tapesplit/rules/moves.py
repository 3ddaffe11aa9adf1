"""Index maps: what a primitive that only moves elements does to flat positions.

A map lists the elements of the result that come from an argument, and where they stood there, as found by
`tapesplit.rules.numbering`. Directions are carried in the fastest way that it allows: by slices, by views of
grids, by look-ups.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from autograd.numpy.numpy_boxes import ArrayBox
from scipy.sparse import csr_array

from tapesplit.arrays import Shape, run_starts
from tapesplit.recording.values import element_count
from tapesplit.rules.positions import Grid, as_slice, places

__all__ = ["IndexMap", "getitem"]

getitem = ArrayBox.__getitem__
"""autograd's primitive behind ``x[index]``."""


@dataclass(frozen=True)
class IndexMap:
    """Where the elements of a result come from, for one argument.

    Parameters
    ----------
    targets, sources
        Flat positions in the result, increasing, and the flat positions in the argument that they come from.
    length
        Number of elements of the result.
    size
        Number of elements of the argument.
    """

    targets: np.ndarray
    sources: np.ndarray
    length: int
    size: int

    @classmethod
    def of_sources(cls, sources: np.ndarray, size: int) -> "IndexMap":
        """Return the map by ``sources``, for each element of the result a position in the argument, or -1."""
        targets = np.flatnonzero(sources >= 0)
        found = sources if targets.size == sources.size else sources[targets]
        return cls(targets, found, sources.size, size)

    @classmethod
    def of_index(cls, value: Any, index: Any) -> "IndexMap":
        """Return the map of the elements of a value that an index points to."""
        return cls.of_sources(places(value, index), element_count(value))

    @property
    def complete(self) -> bool:
        """Whether every element of the result comes from the argument."""
        return self.targets.size == self.length

    @cached_property
    def run(self) -> slice | None:
        """The sources as a slice with a positive step, if they are one."""
        return as_slice(self.sources)

    @cached_property
    def grid(self) -> Grid | None:
        """The sources as a grid, if they are one but no slice with a positive step, and none repeats."""
        return None if self.run is not None or self._repeats else Grid.of(self.sources)

    @cached_property
    def _runs(self) -> tuple[tuple[slice, slice], ...]:
        """Pairs of slices of a complete result and of the argument, if few suffice, as in a roll; else ()."""
        if not self.complete or self.length < _MANY_ELEMENTS:
            return ()
        starts = run_starts(self.sources - self.targets)
        if starts.size > _MOST_RUNS:
            return ()
        ends, firsts = pairwise([*starts.tolist(), self.length]), self.sources[starts].tolist()
        return tuple((slice(a, b), slice(c, c + b - a)) for (a, b), c in zip(ends, firsts, strict=True))

    @cached_property
    def span(self) -> slice | np.ndarray:
        """The targets, as a slice with a positive step if they are one."""
        span = as_slice(self.targets)
        return self.targets if span is None else span

    @cached_property
    def block(self) -> slice | None:
        """The slice of the result where all elements of the argument stand, once and in order, or None."""
        in_order = self.run == slice(0, self.size, 1) and self.targets.size == self.size
        return self.span if in_order and isinstance(self.span, slice) and self.span.step == 1 else None

    @cached_property
    def _repeats(self) -> bool:
        """Whether an element of the argument stands in several places of the result."""
        return bool(self._counts.max(initial=0) > 1)

    @cached_property
    def _counts(self) -> np.ndarray:
        """How often each element of the argument stands in the result."""
        return np.bincount(self.sources, minlength=self.size)

    @cached_property
    def _sums(self) -> csr_array:
        """The sparse matrix ``(size, length)`` of ones that adds up adjoints that belong to one source."""
        columns = self.targets[np.argsort(self.sources, kind="stable")]
        starts = np.concatenate(([0], np.cumsum(self._counts)))
        return csr_array((np.ones(columns.size, np.int8), columns, starts), (self.size, self.length))

    @cached_property
    def _inverse(self) -> np.ndarray | None:
        """Where each element of the argument goes, if all of them go to one place each; else None."""
        if self.targets.size != self.size or self._repeats:
            return None
        inverse = np.empty(self.size, dtype=np.intp)
        inverse[self.sources] = self.targets
        return inverse

    @property
    def is_sparse(self) -> bool:
        """Whether so few elements come from the argument that factored adjoints are evaluated just there."""
        return _ELEMENTS_PER_PICKED * self.targets.size <= self.length

    @cached_property
    def packed(self) -> "IndexMap":
        """The map to an array of only those elements that come from the argument."""
        return IndexMap(np.arange(self.targets.size), self.sources, self.targets.size, self.size)

    @cached_property
    def _known_parts(self) -> dict[tuple[Shape, Shape], "MatrixMoves | None"]:
        """The cache of `parts`."""
        return {}

    def parts(self, shape: Shape, of: Shape) -> "MatrixMoves | None":
        """Return the rows and columns of a matrix that move as a whole; None if other elements move.

        `shape` is that of the result and `of` that of the argument, if both are matrices.
        """
        key = (shape, of)
        if key not in self._known_parts:
            self._known_parts[key] = _parts(self.targets, self.sources, shape, of)
        return self._known_parts[key]

    @cached_property
    def _known_lines(self) -> dict[Shape, "Lines"]:
        """The cache of `lines`."""
        return {}

    def lines(self, of: Shape) -> "Lines":
        """Return the rows of a matrix, the argument, from which elements come; columns if these are fewer."""
        if of not in self._known_lines:
            self._known_lines[of] = _lines(self, of)
        return self._known_lines[of]

    def gather(self, X: np.ndarray) -> np.ndarray:
        """Carry tangents ``(k, size)`` to ``(k, length)``."""
        if self.complete:
            return self._taken(X)
        Y = np.zeros((len(X), self.length), X.dtype)
        self.put(X, Y)
        return Y

    def put(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Write tangents ``(k, size)`` to where they stand in those of the result ``(k, length)``."""
        Y[:, self.span] = self._taken(X)

    def _taken(self, X: np.ndarray) -> np.ndarray:
        """Return tangents of those elements of the result that come from the argument."""
        if self.run is not None:
            return X[:, self.run]
        if self._runs:
            return np.concatenate([X[:, source] for _, source in self._runs], axis=1)
        if self.grid is not None:
            return self.grid.view(X).reshape(len(X), self.sources.size)
        return X.take(self.sources, axis=1)

    def scatter(self, Y: np.ndarray) -> np.ndarray:
        """Carry adjoints ``(k, length)`` to ``(k, size)``; repeated sources add up. May return a view."""
        if self.block is not None:
            return Y if self.complete else Y[:, self.block]
        if self.run is None and self._inverse is not None:
            if not self._runs:
                return Y.take(self._inverse, axis=1)
            X = np.empty((len(Y), self.size), Y.dtype)
            for target, source in self._runs:
                X[:, source] = Y[:, target]
            return X
        X = np.zeros((len(Y), self.size), Y.dtype)
        if self.run is not None or self._repeats:
            self.add(Y, X)
        elif self.grid is not None:
            self.grid.view(X)[...] = Y[:, self.span].reshape(len(Y), *self.grid.shape)
        elif len(Y) > 1 and not self._is_long:
            X[:, self.sources] = Y[:, self.span]
        else:
            for found, adjoints in zip(X, Y[:, self.span], strict=True):
                found[self.sources] = adjoints
        return X

    @property
    def sums_by_matrix(self) -> bool:
        """Whether adjoints of many directions are added up by a product, which copies them."""
        return self.run is None and self._repeats and not self._is_long

    @property
    def _is_long(self) -> bool:
        """Whether directions are scattered one by one in less time than together."""
        return self.size + self.targets.size > _MANY_ELEMENTS

    def add(self, Y: np.ndarray, X: np.ndarray) -> None:
        """Add adjoints ``(k, length)`` to those of the argument ``(k, size)``."""
        if self.run is not None:
            X[:, self.run] += Y[:, self.span]
        elif self._inverse is not None and self._runs:
            for target, source in self._runs:
                X[:, source] += Y[:, target]
        elif self._inverse is not None:
            X += Y.take(self._inverse, axis=1)
        elif self.grid is not None:
            view = self.grid.view(X)
            view += Y[:, self.span].reshape(len(Y), *self.grid.shape)
        elif len(Y) > 1 and not self._repeats and not self._is_long:
            X[:, self.sources] += Y[:, self.span]
        elif len(Y) <= _FEW_DIRECTIONS or self._is_long:
            for found, adjoints in zip(X, Y[:, self.span], strict=True):
                np.add.at(found, self.sources, adjoints)
        else:
            X += (self._sums @ Y.T).T.astype(Y.dtype, copy=False)


class MatrixMoves(NamedTuple):
    """How rows and columns of a matrix, the argument, move to those of a result; it may be transposed."""

    rows: IndexMap
    columns: IndexMap
    is_transposed: bool


class Lines(NamedTuple):
    """Rows, or columns, of a matrix that elements are moved from.

    ``places`` are their numbers, and ``moves`` tells where in these lines, one behind the other, the elements
    stood.
    """

    places: np.ndarray
    moves: IndexMap
    are_rows: bool


_MOST_RUNS: Final = 4
"""Slices up to which elements are moved slice by slice."""
_FEW_DIRECTIONS: Final = 4
"""Directions up to which scattering them one by one takes less time than a sparse matrix."""
_MANY_ELEMENTS: Final = 1000
"""Elements of a direction, before and after, from which on that is so for any number of directions."""


_ELEMENTS_PER_PICKED: Final = 4
"""How many times as many elements as come from an argument a result must have, see `IndexMap.is_sparse`."""


def _parts(targets: np.ndarray, sources: np.ndarray, shape: Shape, of: Shape) -> MatrixMoves | None:
    """Find the rows and columns that move as a whole, see `IndexMap.parts`."""
    if not targets.size or len(shape) != 2 or len(of) != 2:
        return None
    width = np.searchsorted(targets, targets[:1] // shape[1] * shape[1] + shape[1]).item()
    if targets.size % width:
        return None
    of_result = _axes(targets.reshape(-1, width), shape[1])
    plain = _axes(sources.reshape(-1, width), of[1])
    of_argument = plain or _axes(sources.reshape(-1, width).T, of[1])
    if of_result is None or of_argument is None:
        return None
    sides = (of_result, shape) if plain else (of_result[::-1], shape[::-1])
    rows, columns = map(IndexMap, sides[0], of_argument, sides[1], of)
    return MatrixMoves(rows, columns, plain is None)


def _lines(moves: IndexMap, of: Shape) -> Lines:
    """Find the rows or columns that elements come from, see `IndexMap.lines`."""
    pairs = np.divmod(moves.sources, of[1])
    (rows, row), (columns, column) = (np.unique(places, return_inverse=True) for places in pairs)
    are_rows = rows.size <= columns.size
    places, number, along = (rows, row, pairs[1]) if are_rows else (columns, column, pairs[0])
    length = of[are_rows]
    in_lines = IndexMap(moves.targets, number * length + along, moves.length, places.size * length)
    return Lines(places, in_lines, are_rows)


def _axes(positions: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the rows and columns whose pairs are the flat positions in a matrix; None if there are none."""
    found = positions[:, 0] // columns, positions[0] % columns
    return found if (np.add.outer(found[0] * columns, found[1]) == positions).all() else None
