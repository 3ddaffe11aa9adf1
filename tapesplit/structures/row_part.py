"""Data of the row part of a tape, see `tapesplit.structures.rows`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tapesplit.arrays import IntArray, Shape
from tapesplit.rules.rows import MovedRows, Reading, RowAxes

__all__ = ["RowBlock", "RowPart", "RowPiece"]


class RowBlock(NamedTuple):
    """Directions, one for each element, of consecutive rows of an array, from row ``first`` on.

    Rows are the indices of one axis, or of several consecutive ones. Row ``first + i`` has the directions
    ``origin + run * pitch + i * behind + k`` for ``run < before`` and ``k < behind``, the numbers of elements
    along the axes before and behind these.
    """

    origin: int
    first: int
    rows: int
    before: int
    behind: int
    pitch: int

    @classmethod
    def of_array(cls, shape: Shape, axes: RowAxes, origin: int) -> "RowBlock":
        """Return the directions of all elements of an array, numbered from ``origin`` on.

        Examples
        --------
        >>> RowBlock.of_array((300, 2), RowAxes(0, 1), origin=10)
        RowBlock(origin=10, first=0, rows=300, before=1, behind=2, pitch=600)
        >>> RowBlock.of_array((2, 300), RowAxes(1, 2), origin=10)
        RowBlock(origin=10, first=0, rows=300, before=2, behind=1, pitch=300)
        """
        before, rows, behind = axes.sizes(shape)
        return cls(origin, 0, rows, before, behind, rows * behind)

    @property
    def each(self) -> int:
        """How many directions a row has."""
        return self.before * self.behind

    @property
    def in_order(self) -> bool:
        """Whether the directions of a row follow each other, and those of the next row them."""
        return self.each == 1 or (self.before == 1 and self.origin == 0)

    @property
    def directions(self) -> int:
        """How many directions there are."""
        return self.rows * self.each

    @property
    def stop(self) -> int:
        """The direction behind the last one."""
        return self.origin + (self.before - 1) * self.pitch + self.rows * self.behind

    def pieces(self, begin: int, end: int) -> Iterator["RowPiece"]:
        """Split directions of the block into pieces: whole runs, whole rows of a run, or part of a row.

        Examples
        --------
        >>> block = RowBlock.of_array((2, 300), RowAxes(1, 2), origin=10)
        >>> for start, *piece in block.pieces(305, 610):
        ...     print(start, *piece)
        305 slice(295, 300, None) slice(0, 1, None) 1
        310 slice(0, 300, None) slice(1, 2, None) 1
        """
        while begin < end:
            left = end - begin
            run, place = divmod(begin - self.origin, self.pitch)
            row, k = divmod(place, self.behind)
            count, runs, own = 1, 1, self.behind
            if row >= self.rows:  # directions between two runs belong to rows outside the block
                begin = self.origin + (run + 1) * self.pitch
                continue
            if k or left < self.behind:
                own = min(left, self.behind - k)
            elif row or left < self.pitch or self.rows * self.behind < self.pitch:
                count = min(left // self.behind, self.rows - row)
            else:
                count, runs = self.rows, left // self.pitch
            first = run * self.behind + k
            rows = slice(self.first + row, self.first + row + count)
            yield RowPiece(begin, rows, slice(first, first + runs * own), runs)
            begin += count * runs * own

    def moved(self, moves: MovedRows) -> "RowBlock | None":
        """Return the block of an argument whose rows are moved into this one; None if it has none of them."""
        start, stop = max(self.first, moves.start), min(self.first + self.rows, moves.stop)
        if start >= stop:
            return None
        origin = self.origin + self.behind * (start - self.first)
        return self._replace(origin=origin, first=start + moves.shift, rows=stop - start)


class RowPiece(NamedTuple):
    """Consecutive directions from ``start`` on: the ``own`` ones of each of some rows, in ``runs`` runs."""

    start: int
    rows: slice
    own: slice
    runs: int

    def within(self, directions: range) -> slice:
        """Return the place of the directions in a range that holds them."""
        first = self.start - directions.start
        count = (self.rows.stop - self.rows.start) * (self.own.stop - self.own.start)
        return slice(first, first + count)


@dataclass(frozen=True, slots=True, eq=False)
class RowPart:
    """The row part of a tape.

    Parameters
    ----------
    start
        Tape entry at which the walk begins: the output, or what is the output in another shape.
    calls
        Tape entries of its calls, increasing.
    axes, blocks
        By tape entry, for all calls and some ends: the axes along which rows of the value are counted, and
        the directions that they have.
    readings
        How its calls that are not elementwise read their active arguments.
    ends
        Tape entries that it begins with, increasing: what rows share, and what is needed as a whole.
    arrivals
        How many blocks arrive at ends; each end gets one at least.
    edges
        Scalar edges of its calls.
    swept
        Multiply-adds to carry all rows together through its calls: for each scalar edge, as many as a single
        row has directions.
    expanded
        Elements of the ends times the directions that arrive there, summed over the calls that read them.
    turned
        How many times NumPy turns to the next row (of the last axis) of an end that rows share meanwhile.
    looked_up
        Elements that rows take from anywhere.
    rows_share_all
        Whether each row reaches all elements of all ends: no two rows could share a seed.
    """

    start: int
    calls: IntArray
    axes: Mapping[int, RowAxes]
    blocks: Mapping[int, tuple[RowBlock, ...]]
    readings: Mapping[int, tuple[Reading, ...]]
    ends: tuple[int, ...]
    arrivals: int
    edges: int
    swept: int
    expanded: int
    turned: int
    looked_up: int
    rows_share_all: bool
