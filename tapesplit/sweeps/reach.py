"""Reach: the part of a triangular system that depends on some of its seeds.

In sums over edges, pairs or observations, a few seeds reach few of the unknowns between them and the results,
even where most results depend on most seeds in the end. Blocks of an identity's directions then go through
smaller systems, with the coefficients that they reach.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from tapesplit.arrays import BoolArray, IntArray, ranges
from tapesplit.sweeps.triangular import substitute

__all__ = ["Reach", "find_reaches", "part_kept"]


class Reach(NamedTuple):
    """What a block of seeds reaches.

    Parameters
    ----------
    seeds
        The block.
    kept
        Numbers of the coefficients that are reached.
    indptr, indices
        The smaller system of these, with unknowns of its own.
    unknowns, directions
        Unknowns of the seeds that are no constants, and the numbers of these seeds in the block.
    results, places
        Unknowns of the results that are reached, and the numbers of these among all results.
    """

    seeds: slice
    kept: IntArray
    indptr: IntArray
    indices: IntArray
    unknowns: IntArray
    directions: IntArray
    results: IntArray
    places: IntArray

    @property
    def numbers(self) -> int:
        """Numbers that carrying the block takes: its system, and coefficients or results besides."""
        directions = self.seeds.stop - self.seeds.start
        return (self.indptr.size - 1) * directions + max(self.kept.size, self.places.size * directions)

    def write(self, coefficients: np.ndarray, result: np.ndarray, *, transposed: bool) -> None:
        """Carry the directions, and write them into columns of a result ``(read, all seeds)`` of zeros."""
        Y = np.zeros((self.indptr.size - 1, self.seeds.stop - self.seeds.start))
        Y[self.unknowns, self.directions] = 1.0
        substitute(self.indptr, self.indices, coefficients.take(self.kept), Y, transposed=transposed)
        result[self.places, self.seeds] = Y.take(self.results, axis=0)


_BLOCK: Final = 24
"""Seeds of a block: more reach more, fewer take more calls."""
_BLOCKS_AT_ONCE: Final = 16
"""Blocks whose reach is found by one sweep with a direction for each, at most."""
_NUMBERS_AT_ONCE: Final = 2**24
"""Numbers (64 MB) of such a sweep, unless one direction has more."""
_WORTH_KEEPING: Final = 0.4
"""Part of all coefficients and directions up to which smaller systems are worth their indices."""
_MOST_KEPT: Final = 8_000_000
"""Coefficients of all smaller systems together (64 MB of places) up to which they are kept."""


def find_reaches(
    indptr: IntArray, indices: IntArray, seeds: IntArray, results: IntArray, *, transposed: bool
) -> tuple[Reach, ...]:
    """Find what each block of seeds reaches; return ``()`` if that is too much.

    The system is that of `tapesplit.sweeps.triangular.substitute`; `seeds` and `results` are the unknowns of
    the elements that are seeded and read, -1 for constants.

    Notes
    -----
    Takes as long as a sweep with a direction for each block, and 20 ns for each coefficient that is kept;
    these are counted first.
    """
    found: list[Reach] = []
    kept = 0
    blocks = [slice(*ends) for ends in pairwise([*range(0, seeds.size, _BLOCK), seeds.size])]
    at_once = max(1, min(_BLOCKS_AT_ONCE, _NUMBERS_AT_ONCE // indptr.size))
    counts = np.diff(indptr)
    leaving = counts if transposed else np.bincount(indices, minlength=counts.size)
    for start in range(0, len(blocks), at_once):
        some = blocks[start : start + at_once]
        reached = _reached(indptr, indices, seeds, some, transposed=transposed)
        kept += int(np.count_nonzero(reached, axis=0) @ leaving)
        searched = len(found) + len(some)
        if kept > min(_WORTH_KEEPING * indices.size * searched, _MOST_KEPT * searched / len(blocks)):
            return ()
        found += _reaches(indptr, indices, seeds, results, some, reached, transposed=transposed)
    return tuple(found)


def part_kept(reaches: tuple[Reach, ...], coefficients: int) -> float:
    """Return the work of the smaller systems, coefficients times directions, as a part of the whole one's."""
    carried = sum(reach.kept.size * (reach.seeds.stop - reach.seeds.start) for reach in reaches)
    return carried / max(coefficients * reaches[-1].seeds.stop, 1)


def _reached(
    indptr: IntArray, indices: IntArray, seeds: IntArray, blocks: list[slice], *, transposed: bool
) -> BoolArray:
    """Tell which unknowns each of some blocks reaches, shape ``(blocks, unknowns)``."""
    Y = np.zeros((indptr.size - 1, len(blocks)), np.float32)
    for number, block in enumerate(blocks):
        unknowns = seeds[block]
        Y[unknowns[unknowns >= 0], number] = 1.0
    substitute(indptr, indices, np.ones(indices.size, np.float32), Y, transposed=transposed)
    return np.ascontiguousarray(Y.T != 0)


def _reaches(
    indptr: IntArray,
    indices: IntArray,
    seeds: IntArray,
    results: IntArray,
    blocks: list[slice],
    reached: BoolArray,
    *,
    transposed: bool,
) -> Iterator[Reach]:
    """Yield what each of some blocks reaches."""
    counts = np.diff(indptr)
    rank = np.full(indptr.size, -1, dtype=indices.dtype)  # the last one is that of constants
    for block, is_reached in zip(blocks, reached, strict=True):
        unknowns = np.flatnonzero(is_reached)
        rank[unknowns] = np.arange(unknowns.size)
        kept = ranges(indptr[unknowns].astype(np.int64), counts[unknowns])
        owner = np.repeat(np.arange(unknowns.size), counts[unknowns])
        if not transposed:  # a row of coefficients may read unknowns that are not reached
            used = is_reached[indices[kept]]
            kept, owner = kept[used], owner[used]
        starts = np.zeros(unknowns.size + 1, indptr.dtype)
        np.cumsum(np.bincount(owner, minlength=unknowns.size), out=starts[1:])
        known = np.flatnonzero(seeds[block] >= 0)
        places = np.flatnonzero(rank[results] >= 0)
        yield Reach(
            block,
            kept,
            starts,
            rank[indices[kept]],
            rank[seeds[block][known]],
            known,
            rank[results[places]],
            places,
        )
        rank[unknowns] = -1
