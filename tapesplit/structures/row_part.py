"""Data of the row part of a tape, see `tapesplit.structures.rows`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tapesplit.arrays import IntArray
from tapesplit.rules.rows import Reading

__all__ = ["Block", "RowPart"]


class Block(NamedTuple):
    """Consecutive directions of rows, ``each`` for one row: direction ``origin + each * row + number``."""

    origin: int
    each: int


@dataclass(frozen=True, slots=True, eq=False)
class RowPart:
    """The row part of a tape.

    Parameters
    ----------
    calls
        Tape entries of its calls, increasing.
    blocks
        Directions of the rows of each value, of its calls and of some of its ends.
    readings
        How its calls that are neither elementwise nor movements read their active arguments.
    ends
        Tape entries that it begins with, increasing: what rows share, and what is needed as a whole.
    swept
        Multiply-adds of all directions through its calls: as many as the rows have, not as there are rows.
    expanded
        Elements of all directions of the ends, for each reading.
    """

    calls: IntArray
    blocks: Mapping[int, tuple[Block, ...]]
    readings: Mapping[int, tuple[Reading, ...]]
    ends: tuple[int, ...]
    swept: int
    expanded: int
