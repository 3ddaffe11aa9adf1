"""Index maps: what a primitive that only moves elements does to flat positions.

A map lists the elements of the result that come from an argument, and where they stood there. It is found by
running the primitive on position numbers, so that one line registers a primitive and every form of its
arguments is covered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

import autograd.numpy as anp
import numpy as np
from autograd.builtins import container_take
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_wrapper import array_from_args, concatenate_args
from scipy.sparse import csr_array

from tapesplit.arrays import Shape, ranges
from tapesplit.errors import RuleError
from tapesplit.names import display_name
from tapesplit.recording.tape import TapeEntry
from tapesplit.recording.values import element_count, flatten, unflatten
from tapesplit.rules.positions import Grid, as_slice, places

__all__ = [
    "CONTROLLED",
    "IndexMap",
    "MatrixMoves",
    "getitem",
    "index_maps",
    "joint_index_map",
]

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
        """Return the map for a flat position in the argument for each element of the result, -1 for none."""
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
        """The sources as a grid, if they are one, no slice with a positive step, and none of them repeats."""
        return None if self.run is not None or self._repeats else Grid.of(self.sources)

    @cached_property
    def _runs(self) -> tuple[tuple[slice, slice], ...]:
        """Slices of a complete result and where they come from, if they are few, as in a roll; or none."""
        if not self.complete or self.length < _MANY_ELEMENTS:
            return ()
        breaks = (np.flatnonzero(self.sources[1:] - self.sources[:-1] != 1) + 1).tolist()
        if len(breaks) >= _MOST_RUNS:
            return ()
        ends = pairwise([0, *breaks, self.length])
        firsts = self.sources[[0, *breaks]].tolist()
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
        """The matrix ``(size, length)`` of ones that adds up what comes from one source."""
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
        """Whether so few elements come from the argument that they are better picked one by one."""
        return _ELEMENTS_PER_PICKED * self.targets.size <= self.length

    @cached_property
    def packed(self) -> "IndexMap":
        """The map of the elements that come from the argument alone."""
        return IndexMap(np.arange(self.targets.size), self.sources, self.targets.size, self.size)

    @cached_property
    def _known_parts(self) -> dict[tuple[Shape, Shape], "MatrixMoves | None"]:
        """What `parts` has found."""
        return {}

    def parts(self, shape: Shape, of: Shape) -> "MatrixMoves | None":
        """Return the rows and columns of a matrix that move as a whole; None if other elements move.

        `shape` is that of the result and `of` that of the argument, if both are matrices.
        """
        key = (shape, of)
        if key not in self._known_parts:
            self._known_parts[key] = _parts(self.targets, self.sources, shape, of)
        return self._known_parts[key]

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
        """Return tangents of the elements that the result has of the argument."""
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
    """How the rows and the columns of a matrix move, those of the argument, which may be transposed."""

    rows: IndexMap
    columns: IndexMap
    is_transposed: bool


_MOST_RUNS: Final = 4
"""Slices that are moved one by one."""
_FEW_DIRECTIONS: Final = 4
"""Directions that are scattered one by one in less time than by a sparse matrix."""
_MANY_ELEMENTS: Final = 1000
"""Elements of a direction, before and after, from which on that is so for any number of directions."""


_ELEMENTS_PER_PICKED: Final = 4
"""How many times as many elements a result must have as are picked from it."""


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


def _axes(positions: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the rows and columns of flat positions in a matrix, if they are all pairs of these."""
    found = positions[:, 0] // columns, positions[0] % columns
    return found if (np.add.outer(found[0] * columns, found[1]) == positions).all() else None


def index_maps(entry: TapeEntry) -> tuple[IndexMap, ...]:
    """Find the index map of each active argument."""
    argument, source = joint_index_map(entry)
    if len(entry.argnums) == 1:
        sources = source if not argument.any() else np.where(argument == 0, source, -1)
        return (IndexMap.of_sources(sources, element_count(entry.args[entry.argnums[0]])),)
    order = np.argsort(argument, kind="stable")
    starts = np.searchsorted(argument[order], np.arange(len(entry.argnums) + 1))
    found = []
    for number, argnum in enumerate(entry.argnums):
        targets = order[starts[number] : starts[number + 1]]
        size = element_count(entry.args[argnum])
        found.append(IndexMap(targets, source[targets], source.size, size))
    return tuple(found)


CONTROLLED: Final = frozenset(
    {anp.roll, anp.rollaxis, anp.rot90, anp.triu, anp.tril}
    | {anp.diag, anp.diagonal, anp.repeat, anp.tile, anp.take, container_take}
)
"""Movements of their first argument; the other arguments say how."""


def joint_index_map(entry: TapeEntry) -> tuple[np.ndarray, np.ndarray]:
    """Find where all elements of a result come from, whatever the number of arguments, by two runs.

    Returns
    -------
    argument
        Which of the active arguments each element of the result comes from, -1 for none.
    source
        Its flat position in that argument.
    """
    if entry.primitive in CONTROLLED and entry.argnums != (0,):
        raise RuleError(
            f"{display_name(entry.primitive)} has no derivative by the arguments {entry.argnums}, which say "
            "how elements move; give plain values there"
        )
    is_matrix = entry.primitive in _ORDERED and np.ndim(entry.args[0]) > 1
    if is_matrix and _follows_memory(*entry.args[1:], **entry.kwargs):
        raise RuleError(
            f"the order of {display_name(entry.primitive)}, 'A' or 'K', moves elements by how they lie in "
            "memory, which plans do not depend on; give order 'C' or 'F'"
        )
    one_run = places(*entry.args) if entry.primitive is getitem else _viewed(entry)
    if one_run is not None:  # no constants are brought in
        return np.zeros(one_run.size, dtype=np.intp), one_run
    first = _first_joined(entry)
    if first is not None:
        return _joined(entry, first)
    starts = np.cumsum([0, *(element_count(entry.args[argnum]) for argnum in entry.argnums)])
    sources = _sources(entry, starts.tolist())
    argument = np.searchsorted(starts, sources, side="right") - 1
    return argument, sources - starts[argument]


_ORDERED: Final = frozenset({anp.reshape, anp.ravel})
"""Movements that may depend on the layout of memory."""


def _follows_memory(*constants: Any, order: Any = "C", **others: Any) -> bool:
    """Tell whether the order of elements, by name or last by position, is that in memory."""
    given = (order, *constants[-1:]) if constants and isinstance(constants[-1], str) else (order,)
    return not {str(word).upper() for word in given}.isdisjoint({"A", "K"})


def _first_joined(entry: TapeEntry) -> int | None:
    """Return from which argument on the elements of all follow one another; None if they do not."""
    if entry.primitive is array_from_args:  # its options say how they are stored
        return 2
    is_along_first = entry.primitive is concatenate_args and type(entry.args[0]) is int and entry.args[0] == 0
    return 1 if is_along_first else None


def _joined(entry: TapeEntry, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Find where elements come from that are those of each argument in turn, from the first to join."""
    sizes = np.array([element_count(arg) for arg in entry.args[first:]])
    active = np.full(sizes.size, -1)
    active[np.array(entry.argnums) - first] = np.arange(len(entry.argnums))
    return np.repeat(active, sizes), ranges(np.zeros_like(sizes), sizes)


def _viewed(entry: TapeEntry) -> np.ndarray | None:
    """Find where the elements of a view of the only argument come from; None if the result is no view."""
    x = entry.args[entry.argnums[0]]
    if len(entry.argnums) > 1 or type(x) is not np.ndarray:
        return None
    numbers = np.arange(x.size)
    args = (*entry.args[: entry.argnums[0]], numbers.reshape(x.shape), *entry.args[entry.argnums[0] + 1 :])
    moved = entry.primitive(*args, **entry.kwargs)  # type: ignore[misc]
    return moved.ravel() if isinstance(moved, np.ndarray) and moved.base is numbers else None


def _sources(entry: TapeEntry, starts: Sequence[int]) -> np.ndarray:
    """Number active arguments through, from their starts; return the number in each element, -1 for none."""
    count = starts[-1]

    def moved(numbers: np.ndarray) -> np.ndarray:
        args = list(entry.args)
        for argnum, (start, stop) in zip(entry.argnums, pairwise(starts), strict=True):
            args[argnum] = unflatten(numbers[start:stop], args[argnum])
        return flatten(entry.primitive(*args, **entry.kwargs))  # type: ignore[misc]

    numbers = np.arange(float(count))
    with np.errstate(all="ignore"):
        low, high = moved(numbers), moved(numbers + (1 + count))
        if low.dtype.itemsize < numbers.itemsize:  # large numbers are not exact there
            low, high = _moved_by_digits(moved, numbers)
        # A constant does not follow when the numbers are shifted.
        return np.where(high - low == 1 + count, low.real, -1.0).astype(np.intp)


def _moved_by_digits(
    moved: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Move numbers, and the same shifted, in digits that every type holds."""
    digit = 2 if moved(numbers).dtype == np.bool_ else _DIGIT
    low = np.zeros(moved(numbers).shape)
    base = 1
    while base < max(numbers.size, 2):
        low += base * moved(numbers // base % digit).real.astype(float)
        base *= digit
    follows = moved(numbers * 0 + 1).real.astype(float) - moved(numbers * 0).real.astype(float)
    return low, low + (1 + numbers.size) * follows


_DIGIT: Final = 64
