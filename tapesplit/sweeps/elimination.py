"""Elimination: unknowns that are read once, or read one unknown only, are taken out before many directions.

The elements of a power that is multiplied up, or the terms of a sum that is read as a whole, are unknowns of
a scalar sweep with one reader each. If such an unknown is taken out, its reader reads what it has read, so
that the system gets smaller; the same holds for unknowns that read just one (vertex elimination, Griewank &
Walther 2008, Ch. 9). Each of them hangs on one that stays, by a path whose coefficients are multiplied once
for all directions.
"""

from typing import Final, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from tapesplit.arrays import BoolArray, IntArray

__all__ = ["Elimination", "eliminate"]


class Elimination(NamedTuple):
    """How the coefficients of a smaller system come from those of the whole one.

    Parameters
    ----------
    paths
        For each unknown that is taken out, the coefficient by which it hangs on another one.
    above
        That other one, by its number among those taken out; their count if it stays.
    levels
        Where the levels end, as each unknown comes behind the one that it hangs on.
    kept
        The other coefficients. If several go to the same place, the later ones are at the end.
    weights
        For each of these the unknowns, by number, whose paths it is multiplied by: one by which it is read,
        and one that it reads.
    size
        Number of different places.
    sums
        The places of those at the end.
    """

    paths: IntArray
    above: IntArray
    levels: tuple[int, ...]
    kept: IntArray
    weights: tuple[IntArray, ...]
    size: int
    sums: IntArray

    @property
    def numbers(self) -> int:
        """How many numbers `reduced` holds besides those that it is given."""
        return self.paths.size + 2 * self.kept.size

    def reduced(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the coefficients of the smaller system.

        What is infinite or NaN stays so. Products of the coefficients of a path alone may overflow or vanish,
        where they would not together with a direction that is small or large.
        """
        path = np.ones(self.paths.size + 1)  # the last one is that of all that stay
        coefficients.take(self.paths, out=path[:-1], mode="clip")
        with np.errstate(all="ignore"):  # as in the compiled code of a sweep
            for start, stop in zip(self.levels, self.levels[1:], strict=False):
                path[start:stop] *= path.take(self.above[start:stop])
            products = coefficients.take(self.kept)
            for number in self.weights:
                products *= path.take(number)
            found: np.ndarray = products[: self.size]
            np.add.at(found, self.sums, products[self.size :])
        return found


class Smaller(NamedTuple):
    """A smaller system, its ends, and how its coefficients are found."""

    elimination: Elimination
    indptr: IntArray
    indices: IntArray
    seeds: IntArray
    results: IntArray


_WORTH: Final = 15
"""Unknowns taken out times directions, for each coefficient, from which on elimination pays within about
three calls: each saves 0.9 ns a direction, each coefficient takes 3 ns a call, and 60 ns once."""
_FEW: Final = 0.05
"""Part of the coefficients up to which those that go to the same place stay apart."""
_MOST_LEVELS: Final = 16
"""Unknowns whose path is longer stay, as each level takes Python calls of its own."""


def eliminate(
    indptr: IntArray, indices: IntArray, seeds: IntArray, results: IntArray, directions: int
) -> Smaller | None:
    """Make a system smaller for so many directions; None if that is not worth it.

    The system is that of `tapesplit.sweeps.triangular.substitute`, in either form. `seeds` and `results` are
    the unknowns of the elements that are seeded and read, -1 for constants; these unknowns stay.

    Notes
    -----
    Takes about 60 ns for each coefficient, or up to 5 ns if it is not worth it.
    """
    count, fewest = indptr.size - 1, max(1.0, _WORTH * indices.size / max(directions, 1))
    if count < fewest:
        return None
    may_go = np.ones(count + 1, dtype=np.bool_)
    may_go[seeds] = may_go[results] = False  # the last one is that of constants
    read_once, passing = _hanging(indptr, indices, may_go[:-1])
    if read_once.size + passing.size < fewest:
        return None
    lines = np.repeat(np.arange(count, dtype=indices.dtype), np.diff(indptr))
    paths, above, levels, number, place = _trees(indptr, indices, lines, read_once, passing)
    if paths.size < fewest:
        return None
    kept, sums, starts, columns = _moved(indptr, indices, paths, place, count - paths.size)
    weights = [number.take(ends.take(kept)) for ends in (lines, indices)]
    elimination = Elimination(
        paths,
        above,
        levels,
        kept,
        tuple(numbers for numbers in weights if (numbers < paths.size).any()),
        columns.size,
        sums,
    )
    ends = [np.where(end < 0, -1, place[end]) for end in (seeds, results)]
    return Smaller(elimination, starts, columns, *ends)


def _hanging(indptr: IntArray, indices: IntArray, may_go: BoolArray) -> tuple[IntArray, IntArray]:
    """Find the unknowns that are read once, and others that read one only; no two hang on each other."""
    is_once = (np.bincount(indices, minlength=may_go.size) == 1) & may_go
    passing = np.flatnonzero((np.diff(indptr) == 1) & may_go & ~is_once)
    return np.flatnonzero(is_once), passing[~is_once[indices[indptr[passing]]]]


def _trees(
    indptr: IntArray, indices: IntArray, lines: IntArray, read_once: IntArray, passing: IntArray
) -> tuple[IntArray, IntArray, tuple[int, ...], IntArray, IntArray]:
    """Find what unknowns hang on, directly and in the end.

    Returns
    -------
    paths, above, levels
        Those of the `Elimination`.
    number
        The numbers of the unknowns that are taken out; their count for those that stay.
    place
        The number of what each unknown hangs on in the end, among those that stay.
    """
    path, above = np.empty(indptr.size - 1, indices.dtype), np.arange(indptr.size - 1)
    path[indices] = np.arange(indices.size, dtype=indices.dtype)  # only those that are read once have one
    path[passing], above[passing] = indptr[passing], indices[indptr[passing]]
    above[read_once] = lines[path[read_once]]
    levels, root = _levels(above)
    gone = np.concatenate(levels)
    number = np.full(above.size, gone.size)
    number[gone] = np.arange(gone.size)
    rank = np.cumsum(number == gone.size, dtype=indices.dtype)
    rank -= 1
    ends = np.cumsum([level.size for level in levels]).tolist()
    return path[gone].astype(np.intp), number[above[gone]], tuple(ends), number, rank[root]


def _levels(above: IntArray) -> tuple[list[IntArray], IntArray]:
    """Return the unknowns by the length of their paths, from 1 on, and what each hangs on in the end.

    Those that stay hang on themselves.
    """
    root = np.arange(above.size)
    is_settled = above == root
    rest = np.flatnonzero(~is_settled)
    levels = [rest[:0]]
    while rest.size and len(levels) <= _MOST_LEVELS:
        is_near = is_settled[above[rest]]
        near, rest = rest[is_near], rest[~is_near]
        is_settled[near] = True
        root[near] = root[above[near]]
        levels.append(near)
    return levels, root


def _moved(
    indptr: IntArray, indices: IntArray, paths: IntArray, place: IntArray, count: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Move all coefficients but `paths` to the lines and columns where they go, of which there are `count`.

    Returns
    -------
    kept, sums
        Their numbers in the order of lines and columns, but those that go to the same place as an earlier one
        at the end, and the places of these.
    indptr, indices
        The pattern of the places.
    """
    is_kept = np.ones(indices.size, dtype=np.bool_)
    is_kept[paths] = False
    before = np.zeros(indices.size + 1, dtype=indptr.dtype)
    np.cumsum(is_kept, out=before[1:])
    kept = np.flatnonzero(is_kept).astype(indices.dtype)
    by_line = csr_array((kept, place[indices[is_kept]], before[indptr]), shape=(place.size, count))
    by_column = by_line.tocsc()  # sorts by counting, in linear time
    ends = by_column.data, place[by_column.indices], by_column.indptr
    moved = csc_array(ends, shape=(count, count)).tocsr()
    kept, starts, columns = moved.data.astype(np.intp), moved.indptr, moved.indices
    is_first = np.ones(kept.size + 1, dtype=np.bool_)
    np.not_equal(columns[1:], columns[:-1], out=is_first[1:-1])
    is_first[starts] = True
    later = np.flatnonzero(~is_first)
    if later.size < _FEW * kept.size:
        later = later[:0]  # a sweep adds them up as well
    if later.size:
        columns = columns[is_first[:-1]]
        kept = np.concatenate([kept[is_first[:-1]], kept[later]])
        starts -= np.searchsorted(later, starts).astype(starts.dtype)
    return kept, later - np.arange(1, later.size + 1), starts, columns
