"""Data of the row part of a tape, see `tapesplit.structures.rows`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tapesplit.arrays import IntArray
from tapesplit.rules.rows import MovedRows, Reading

__all__ = ["RowBlock", "RowPart"]


class RowBlock(NamedTuple):
    """Consecutive directions, ``each`` for one of the rows from ``first`` on: ``origin + each * i + j``."""

    origin: int
    first: int
    rows: int
    each: int

    @property
    def directions(self) -> int:
        """How many directions there are."""
        return self.rows * self.each

    def moved(self, moves: MovedRows) -> "RowBlock | None":
        """Return the directions of the rows of an argument; None if it has none of these rows."""
        start, stop = max(self.first, moves.start), min(self.first + self.rows, moves.stop)
        origin = self.origin + self.each * (start - self.first)
        return RowBlock(origin, start + moves.shift, stop - start, self.each) if start < stop else None


@dataclass(frozen=True, slots=True, eq=False)
class RowPart:
    """The row part of a tape.

    Parameters
    ----------
    calls
        Tape entries of its calls, increasing.
    axes, blocks
        Along which axis the rows of a value are counted, and the directions that they have; of all calls and
        of some ends.
    readings
        How its calls that are not elementwise read their active arguments.
    ends
        Tape entries that it begins with, increasing: what rows share, and what is needed as a whole.
    arrivals
        How many blocks arrive at ends; each end gets one at least.
    edges
        Scalar edges of its calls.
    swept
        Multiply-adds of all directions through its calls: as many as a row has, not as there are rows.
    expanded
        Elements of all directions of the ends, for each reading.
    """

    calls: IntArray
    axes: Mapping[int, int]
    blocks: Mapping[int, tuple[RowBlock, ...]]
    readings: Mapping[int, tuple[Reading, ...]]
    ends: tuple[int, ...]
    arrivals: int
    edges: int
    swept: int
    expanded: int
