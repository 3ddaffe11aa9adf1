"""The row part of a tape: where the rows of all values stay apart, as samples do that are treated alike.

Seen from the output, the adjoints of an element belong to one row of each value there. Those of all rows are
carried together, as one direction, up to what the rows share, such as the parameters of a model: a
compression whose pattern is known without a search (A. R. Curtis, M. J. D. Powell and J. K. Reid, 1974).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from math import prod
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from tapesplit.arrays import IntArray, Shape
from tapesplit.recording.tape import Tape
from tapesplit.rules import Bulk, IndexMap, Movement, Rule, index_maps
from tapesplit.rules.reductions import is_reduction
from tapesplit.rules.rows import MovedRows, Reading, RowAxes, SharedOperand, readings
from tapesplit.structures.facts import CallKind, TapeFacts, call_key
from tapesplit.structures.forms import is_shape, number_shape
from tapesplit.structures.row_part import RowBlock, RowPart

__all__ = ["aligned_axes", "with_row_part"]


def with_row_part(tape: Tape, facts: TapeFacts, live: IntArray, most_fma: float) -> TapeFacts:
    """Return the facts of a tape together with its row part, if it has one that may be worth sweeping so.

    Without ranks of adjoints that stay factored, if they would not with such a part.

    `live` are the tape entries that lie between inputs and output; `most_fma` are the multiply-adds that
    carrying rows together must not exceed.

    Notes
    -----
    Takes a few µs for each call of the row part, and as long as index maps take to be found.
    """
    directions = max(int(facts.sizes[facts.structure.output]), 0)
    width = int(facts.sizes[: facts.structure.inputs].sum())
    # Directions of elements that only elementwise operations read are diagonals anyway.
    has_wide = facts.sizes.max() > directions or any(_mixes(kind.rule) for kind in facts.kinds)
    is_small = directions < _FEWEST_SWEPT or width < _FEWEST_INPUTS
    if is_small or not has_wide or facts.detached.any():
        return facts
    edges = int(facts.edges[live].sum())

    def fma(part: RowPart) -> int:
        return part.swept + part.expanded + directions * (edges - part.edges)

    parts = [part for part in _row_parts(tape, facts, live) if _saves_steps(part, facts)]
    best = min(parts, key=fma, default=None)
    if best is None or fma(best) > most_fma:
        return facts
    # At its ends, directions are told apart, which makes them dense.
    ranks = facts.ranks if facts.ranks.keys().isdisjoint(best.ends) else {}
    return replace(facts, row_part=best, ranks=ranks)


def _row_parts(tape: Tape, facts: TapeFacts, live: IntArray) -> Iterator[RowPart]:
    """Yield the row parts whose rows are counted along different axes where they begin."""
    found: dict[Any, Any] = {}
    most_axes = 0
    for place, least in _PLACES.items():
        if least <= max(most_axes, 1):
            walk = _Walk(tape, facts, live, place, found)
            part = walk.walked()
            most_axes = max(most_axes, walk.most_axes)
            if part is not None:
                yield part


def _saves_steps(part: RowPart, facts: TapeFacts) -> bool:
    """Tell whether a row part saves anything beyond what diagonals of directions save as well.

    Diagonals pass elementwise operations on elements that each have a direction, and a reduction at the end.
    """
    calls = part.calls.tolist()
    return any(_mixes(facts.kinds[facts.kind[index]].rule) for index in calls) or any(
        facts.sizes[index] > sum(block.directions for block in part.blocks[index]) for index in calls
    )


def _mixes(rule: Rule | None) -> bool:
    """Tell whether an element of the result may depend on several of an argument, reductions excepted."""
    return isinstance(rule, Bulk) and not is_reduction(rule)


_FEWEST_SWEPT: Final = 12
"""Directions of all rows together below which there is little to save."""
_FEWEST_INPUTS: Final = 3
"""The same for tangents of all inputs, which adjoints of rows replace."""
_MOST_BLOCKS: Final = 8
"""Blocks of directions of one value, at most."""
_MOST_CALLS: Final = 5000
"""Calls of a row part, at most: each block takes its steps in turn."""


_Found = TypeVar("_Found")


_Place: TypeAlias = Literal["first", "last", "all but the last", "all"]
"""Along which axes the rows of an array are counted each of whose elements has a direction of its own."""
_PLACES: Final[dict[_Place, int]] = {"first": 1, "last": 2, "all but the last": 3, "all": 2}
"""How many axes longer than one an array has, at least, where these differ from those before."""


class _Handed(NamedTuple):
    """Axes of the rows of an argument (None if rows share it), and the blocks of directions that it gets."""

    argument: int
    axes: RowAxes | None
    blocks: Iterable[RowBlock] = ()


class _Walk:
    """The walk from the output of a tape to the ends of its row part.

    If each element of an array has a direction of its own, ``place`` tells what its rows are. ``found``
    caches results by `call_key`; several walks over a tape share it.
    """

    def __init__(
        self, tape: Tape, facts: TapeFacts, live: IntArray, place: _Place, found: dict[Any, Any]
    ) -> None:
        self.tape, self.facts, self.place, self.found = tape, facts, place, found
        self.most_axes = 0
        is_live = np.zeros(facts.sizes.size, dtype=np.bool_)
        is_live[live] = True
        self.times_read = np.bincount(facts.parents[is_live[facts.children]], minlength=is_live.size)
        self.axes: dict[int, RowAxes] = {}
        self.blocks: dict[int, dict[RowBlock, None]] = defaultdict(dict)
        self.times_handed: dict[int, int] = defaultdict(int)
        self.ends: set[int] = set()
        self.readings: dict[int, tuple[Reading, ...]] = {}
        self.waiting: list[int] = []  # the last entry comes first
        self.arrivals = self.expanded = self.swept = self.turned = self.looked_up = 0

    def walked(self) -> RowPart | None:
        """Return the row part, None if there is none."""
        facts = self.facts
        output: int = facts.structure.output  # type: ignore[assignment] # it depends on an input
        if not self._shape(output) or not is_shape(facts.structure.forms[output]):
            return None
        start = self._before_views(output)
        self._hand(self._opened(start, 0))
        self.times_read[start] = 1
        calls: list[int] = []
        while self.waiting and len(calls) < _MOST_CALLS:
            index = -heappop(self.waiting)
            handed = self._handed(index)
            if handed is None:
                self._end(index, index)
                continue
            calls.append(index)
            self.swept += int(facts.edges[index]) * sum(block.each for block in self.blocks[index])
            for argument in handed:
                if argument.axes is None:
                    self._end(argument.argument, index)
                else:
                    self._hand(argument)
        for index in self.waiting:
            self._end(-index, -index)
        if not calls:
            return None
        return RowPart(
            start,
            np.array(calls[::-1]),
            self.axes,
            {index: tuple(blocks) for index, blocks in self.blocks.items()},
            self.readings,
            tuple(sorted(self.ends)),
            self.arrivals,
            int(facts.edges[calls].sum()),
            self.swept,
            self.expanded,
            self.turned,
            self.looked_up,
            self._rows_share_all(),
        )

    def _rows_share_all(self) -> bool:
        """Tell whether all rows share all ends, and read each of their elements."""
        sizes = self.facts.sizes
        most = int(sizes[self.facts.structure.output] * sizes[[*self.ends]].sum())
        return not self.looked_up and self.ends.isdisjoint(self.axes) and self.expanded >= most

    def _before_views(self, output: int) -> int:
        """Return the value that the output is a view of, in another shape; the output itself if it is none.

        Its elements have the same directions, but maybe more rows: points of a grid, say.
        """
        facts, index = self.facts, output
        while isinstance(facts.kinds[facts.kind[index]].rule, Movement):
            parent = facts.structure.parents[index][0]
            (moves, *_) = self._of_like_calls(index, None, partial(index_maps, self.tape[index]))
            is_view = moves.block == slice(0, moves.length, 1)
            if not is_view or not self._shape(parent) or not is_shape(facts.structure.forms[parent]):
                break
            index = parent
        return index

    def _hand(self, handed: _Handed) -> None:
        """Pass blocks of directions to a value, which is visited once all its readers have been."""
        index, axes, blocks = handed
        if index not in self.axes:
            self.axes[index] = axes  # type: ignore[assignment] # there is one
            heappush(self.waiting, -index)
        self.blocks[index].update(dict.fromkeys(blocks))
        self.times_handed[index] += 1

    def _end(self, index: int, reader: int) -> None:
        """Make a value an end, where the directions of ``reader`` (a call, or the value) are expanded."""
        self.ends.add(index)
        self.arrivals += len(self.blocks[reader])
        expanded = sum(block.directions for block in self.blocks[reader]) * int(self.facts.sizes[index])
        self.expanded += expanded
        if index != reader:
            shape = self._shape(index)
            self.turned += expanded // prod(shape[axis] for axis in _long_axes(shape)[-1:])

    def _handed(self, index: int) -> list[_Handed] | None:
        """List what each argument of an entry gets; None if the walk ends there: rows do not stay apart."""
        facts = self.facts
        blocks = self.blocks[index]
        is_end = index < facts.structure.inputs or self.times_handed[index] != self.times_read[index]
        if is_end or len(blocks) > _MOST_BLOCKS or sum(block.directions for block in blocks) < _FEWEST_SWEPT:
            return None
        parents = facts.structure.parents[index]
        if any(number_shape(facts.structure.forms[parent]) is None for parent in parents):
            return None
        kind = facts.kinds[facts.kind[index]]
        if kind.is_elementwise:
            shape, axes = self._shape(index), self.axes[index]
            if axes.are_several and any(_shares_some(shape, axes, self._shape(parent)) for parent in parents):
                return None
            found = [_Handed(p, aligned_axes(shape, axes, self._shape(p)), blocks) for p in parents]
        else:
            told = self._told(index, kind, parents) if all(map(self._shape, parents)) else None
            if told is None:
                return None
            found = told
        of_parents: dict[int, RowAxes] = {}
        for parent, own, _ in found:
            if own is not None and of_parents.setdefault(parent, self.axes.get(parent, own)) != own:
                return None  # read along other axes as well
        return found

    def _told(self, index: int, kind: CallKind, parents: tuple[int, ...]) -> list[_Handed] | None:
        """List the rows whose directions a movement, or a call with a vector rule, passes to arguments."""
        entry, axes, blocks = self.tape[index], self.axes[index], self.blocks[index]
        if isinstance(kind.rule, Movement):
            maps = self._of_like_calls(index, None, lambda: index_maps(entry))
            moved = [self._moved(index, p, moves) for p, moves in zip(parents, maps, strict=True)]
            told = [found for found in moved if found is not None]
            self.readings[index] = tuple(reading for _, reading in told)
            return [handed for handed, _ in told] if len(told) == len(moved) else None
        rule = kind.rule
        if not isinstance(rule, Bulk):
            return None
        found = self._of_like_calls(index, axes, lambda: readings(entry, rule, axes))
        if found is None:
            return None
        self.readings[index] = found
        along = [None if isinstance(reading, SharedOperand) else reading for reading in found]
        return [_Handed(p, a, blocks) for p, a in zip(parents, along, strict=True)]

    def _of_like_calls(self, index: int, axes: RowAxes | None, find: Callable[[], _Found]) -> _Found:
        """Call ``find`` once for all equal calls whose rows lie along the same axes; return its result."""
        key = (call_key(self.facts, index), axes)
        if key not in self.found:
            self.found[key] = find()
        known: _Found = self.found[key]
        return known

    def _shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of a value that has rows, () for all others."""
        return number_shape(self.facts.structure.forms[index]) or ()

    def _opened(self, index: int, origin: int) -> _Handed:
        """Return the rows of an array each of whose elements has a direction of its own, from ``origin`` on.

        Take note of how many axes its rows may be counted along.
        """
        shape = self._shape(index)
        self.most_axes = max(self.most_axes, len(_long_axes(shape)))
        axes = _axes_at(self.place, shape)
        return _Handed(index, axes, [RowBlock.of_array(shape, axes, origin)])

    def _moved(self, index: int, parent: int, moves: IndexMap) -> tuple[_Handed, Reading] | None:
        """Return what a movement hands to an argument, and how it reads that; None if rows are mixed."""
        shape, of_parent, blocks = self._shape(index), self._shape(parent), self.blocks[index]
        (block, *others) = blocks
        is_flat = not others and (block.rows,) == shape and block.each == 1
        if is_flat and moves.block is not None and is_shape(self.facts.structure.forms[parent]):
            return self._opened(parent, block.origin + moves.block.start), "opened"
        reading = _moved_rows(moves, shape, self.axes[index], of_parent)
        if reading is None and moves.size < moves.length:
            self.looked_up += moves.targets.size * len(blocks)
            return _Handed(parent, None), "looked up"  # fewer elements are better told apart
        if reading is None:
            return None
        own = [found for block in blocks if (found := block.moved(reading))]
        return _Handed(parent, reading.axes, own), reading


def _axes_at(place: _Place, shape: Shape) -> RowAxes:
    """Return the axes of rows of an array; those of length one at its ends do not count."""
    long = _long_axes(shape) or [0]
    first, last = long[0], long[-1]
    return {
        "first": RowAxes(first, first + 1),
        "last": RowAxes(last, last + 1),
        "all but the last": RowAxes(first, max(last, first + 1)),
        "all": RowAxes(first, last + 1),
    }[place]


def _long_axes(shape: Shape) -> list[int]:
    """List the axes that are longer than one."""
    return [axis for axis, n in enumerate(shape) if n > 1]


def _moved_rows(moves: IndexMap, shape: Shape, axes: RowAxes, of_argument: Shape) -> MovedRows | None:
    """Find the axes of an argument whose rows become rows of the result, in the same order."""
    if not moves.targets.size:
        return None
    _, count, behind = axes.sizes(shape)
    rows = moves.targets // behind % count
    some = slice(None, None, max(1, rows.size // _PROBES))
    for own in _possible_axes(of_argument, count):
        if _shift(moves.sources[some], rows[some], own, of_argument) is None:
            continue
        shift = _shift(moves.sources, rows, own, of_argument)
        if shift is not None:
            return MovedRows(own, shift, int(rows.min()), int(rows.max()) + 1)
    return None


def _shift(elements: IntArray, rows: IntArray, axes: RowAxes, shape: Shape) -> int | None:
    """Return by how much the rows of some elements differ from the given ones; None if it varies."""
    _, count, behind = axes.sizes(shape)
    shifts = elements // behind % count - rows
    return int(shifts[0]) if (shifts == shifts[0]).all() else None


_PROBES: Final = 8
"""Elements that tell most axes along which rows do not move."""


def _possible_axes(shape: Shape, count: int) -> list[RowAxes]:
    """List all axes and ranges of axes, those with so many rows and short ranges first.

    What is chosen along another axis than that of rows is no shift.
    """
    ranges = [RowAxes(i, j) for i in range(len(shape)) for j in range(i + 1, len(shape) + 1)]
    return sorted(ranges, key=lambda own: (own.sizes(shape)[1] != count, own.stop - own.first))


def aligned_axes(shape: Shape, axes: RowAxes, of_argument: Shape) -> RowAxes | None:
    """Return the axes of an argument that an elementwise operation reads along some of its result.

    `shape` is that of the result and `axes` some of its axes; the argument is broadcast. None if it is
    broadcast along these axes, so that all indices share its elements.

    Examples
    --------
    >>> aligned_axes((3, 5), RowAxes(1, 2), (5,))
    RowAxes(first=0, stop=1)
    >>> aligned_axes((3, 5), RowAxes(0, 1), (5,)) is None
    True
    """
    first, stop = axes
    missing = len(shape) - len(of_argument)
    if first < missing or of_argument[first - missing : stop - missing] != shape[first:stop]:
        return None
    return RowAxes(first - missing, stop - missing) if missing else axes


def _shares_some(shape: Shape, axes: RowAxes, of_argument: Shape) -> bool:
    """Tell whether an argument is broadcast along some axes of the rows of a result, but not along all."""
    padded = (1,) * (len(shape) - len(of_argument)) + of_argument
    return prod(padded[axes.first : axes.stop]) > 1 and not aligned_axes(shape, axes, of_argument)
