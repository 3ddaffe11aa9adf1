"""Stacked directions that know which of them can be non-zero.

Seeds are identities, and much of a Jacobian's zero structure survives the first operations: a function of one
of six parameters has tangents in one direction of six. `Rows` holds a window of consecutive directions, all
others being zero; `Diagonal` holds one direction for each element; `LowRank` holds directions of a matrix
that are products of thin ones. Sweeps keep these until something forces them dense.
"""

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Final, NamedTuple, cast

import numpy as np

from tapesplit.rules.low_rank import Factors, is_thin
from tapesplit.telling import told

__all__ = [
    "Batch",
    "Diagonal",
    "LowRank",
    "Rows",
    "Seeds",
    "Summed",
    "accumulate",
    "add_to",
    "as_pairs",
    "assemble",
    "cached_directions",
    "in_blocks",
    "seed",
]


class Rows(NamedTuple):
    """Directions ``start, …, start + len(rows) - 1`` of a value; the others are zero.

    ``rows`` has the shape ``(k, *shape)``. ``owned`` tells that nobody else reads this array.
    """

    start: int
    rows: np.ndarray
    owned: bool = False

    @property
    def stop(self) -> int:
        """First direction behind the window."""
        return self.start + len(self.rows)

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""
        return self.rows.dtype

    def dense(self) -> "Rows":
        """Return itself."""
        return self


class Diagonal(NamedTuple):
    """Direction ``origin + e`` is ``values.flat[e]`` at element e of the value and zero elsewhere.

    Only directions from ``start`` to ``stop`` are wanted. A block of directions keeps the values of all
    elements nevertheless, which costs less than any step that is not elementwise.
    """

    origin: int
    values: np.ndarray
    start: int
    stop: int

    @classmethod
    def of(cls, values: np.ndarray, origin: int, start: int, stop: int) -> "Diagonal":
        """Return a diagonal of which the directions between two limits are wanted; there may be none."""
        last = origin + values.size
        if start <= origin and last <= stop:  # as nearly always
            return cls(origin, values, origin, last)
        first = min(max(start, origin), stop)
        return cls(origin, values, first, max(min(stop, last), first))

    @property
    def wanted(self) -> slice:
        """Elements whose directions are wanted."""
        return slice(self.start - self.origin, self.stop - self.origin)

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""
        return self.values.dtype

    def dense(self) -> Rows:
        """Write the zeros out."""
        wanted, size = self.wanted, self.values.size
        if self.stop - self.start == size == 1:
            return Rows(self.start, self.values[None])
        rows = np.zeros((wanted.stop - wanted.start, size), self.values.dtype)
        rows.reshape(-1)[wanted.start :: size + 1] = self.values.reshape(-1)[wanted]
        return Rows(self.start, rows.reshape(len(rows), *self.values.shape), owned=True)


class LowRank(NamedTuple):
    """Directions ``start, start + 1, …`` of a matrix, each of them a product of two thin ones."""

    start: int
    factors: Factors

    @property
    def stop(self) -> int:
        """First direction behind the window."""
        return self.start + self.factors.directions

    @property
    def shared_side(self) -> int | None:
        """Which of the factors counts for all directions, if one does."""
        left, right = map(len, self.factors)
        return 1 if right == 1 else 0 if left == 1 else None

    def dense(self) -> Rows:
        """Multiply the factors."""
        return Rows(self.start, self.factors.dense(), owned=True)

    def joined(self, other: "LowRank") -> "LowRank | None":
        """Add other directions; None if the sum is not worth being kept factored."""
        if (self.start, self.stop) != (other.start, other.stop) or self.shared_side != other.shared_side:
            return None
        factors = self.factors.joined(other.factors)
        return LowRank(self.start, factors) if factors.is_thin else None


class Summed(NamedTuple):
    """Directions of a matrix to which many products add, as those in loops over time do.

    ``parts`` have windows of their own and are not multiplied out yet, ``rank`` is the sum of their ranks,
    and ``written`` are the directions that were multiplied out before, if any.
    """

    parts: tuple[LowRank, ...]
    rank: int
    written: Rows | None = None

    def plus(self, part: LowRank) -> "Summed":
        """Add directions; multiply all factors out once they take as much memory as their products."""
        rank = self.rank + part.factors.rank
        found = Summed((*self.parts, part), rank, self.written)
        rows, columns = part.factors.shape
        return found if rank * (rows + columns) < rows * columns else Summed((), 0, found.dense())

    def apart(self) -> "list[Batch]":
        """Join factors that share the same side, while their sum is thin; else multiply all of them.

        If those that share different sides were joined, both sides would have to be written out.
        """
        if self.written is not None or not is_thin(self.rank, self.parts[0].factors.shape):
            return [self.dense()]
        found: list[Batch] = []
        for side in {part.shared_side for part in self.parts}:
            alike = [part for part in self.parts if part.shared_side == side]
            one = _side_by_side(alike, side)
            found += alike if one is None else [one]
        return found

    def dense(self) -> Rows:
        """Multiply the factors."""
        found: Batch | None = None
        for side in (None, 0, 1):
            alike = [part for part in self.parts if part.shared_side == side]
            if alike:
                found = accumulate(found, _multiplied(alike, side))
        # The products are added to in place; what is known already may be asked for again.
        written = self.written and self.written._replace(owned=False)
        return cast("Rows", found if written is None else accumulate(found, written))


def _multiplied(parts: Sequence[LowRank], shared_side: int | None) -> Rows:
    """Multiply factors of which all directions share the same side, and add the products up."""
    joined = _side_by_side(parts, shared_side)
    if joined is not None:
        return joined.dense()
    found: Batch | None = None
    for part in parts:
        found = accumulate(found, part.dense())
    return cast("Rows", found)


def _side_by_side(parts: Sequence[LowRank], shared_side: int | None) -> LowRank | None:
    """Join factors of which all directions share the same side; None if a sum of them would have NaN.

    Directions outside of a window have zeros, but 0 times infinity is NaN.
    """
    start, stop = min(part.start for part in parts), max(part.stop for part in parts)
    sides = [
        np.concatenate([part.factors[side] for part in parts], axis=1)
        if side == shared_side
        else _stacked(parts, side, start, stop)
        for side in (0, 1)
    ]
    if shared_side is not None and not np.isfinite(sides[shared_side]).all():
        return None
    return LowRank(start, Factors(*sides))


def _stacked(parts: Sequence[LowRank], side: int, start: int, stop: int) -> np.ndarray:
    """Join factors along the axis of ranks, with zeros in directions outside of their windows."""
    given = [part.factors[side] for part in parts]
    ends = list(itertools.accumulate(factor.shape[1] for factor in given))
    out = np.zeros((stop - start, ends[-1], given[0].shape[2]), np.result_type(*given))
    for part, factor, end in zip(parts, given, ends, strict=True):
        out[part.start - start : part.stop - start, end - factor.shape[1] : end] = factor
    return out


Batch = Rows | Diagonal | LowRank | Summed
Seeds = dict[int, Batch]
"""Directions of values, by tape entry."""


def seed(
    seeds: np.ndarray | range, shapes: list[tuple[int, ...]], dtypes: list[np.dtype], *, adjoint_mode: bool
) -> list[Rows | Diagonal]:
    """Split a seed matrix ``(k, total real elements)`` among values; a range stands for rows of the identity.

    A complex number ``u + iv`` has two of them. Its tangents are ``du + i dv``; adjoints are the derivatives
    by u minus i times those by v, so that they go through products as tangents do.
    """
    batches: list[Rows | Diagonal] = []
    start = 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        is_complex = dtype.kind == "c"
        stop = start + prod(shape) * (1 + is_complex)
        if not isinstance(seeds, range):
            batch: Rows | Diagonal = Rows(0, seeds[:, start:stop])
        elif is_complex:
            batch = Diagonal.of(np.ones(stop - start), start - seeds.start, 0, len(seeds)).dense()
        else:
            batch = Diagonal.of(np.ones(shape, dtype), start - seeds.start, 0, len(seeds))
        if isinstance(batch, Rows):
            rows = batch.rows
            if is_complex:
                rows = rows[:, ::2] + (-1j if adjoint_mode else 1j) * rows[:, 1::2]
            batch = Rows(batch.start, rows.reshape(len(rows), *shape))
        batches.append(batch)
        start = stop
    return batches


_BYTES_AT_ONCE: Final = 16 * 10**6
"""Bytes of derivatives from which on a sweep takes its directions in blocks: caches hold them no longer."""
_BYTES_OF_A_BLOCK: Final = 8 * 10**6
"""Bytes of a block."""
_FEWEST_DIRECTIONS: Final = 8
"""Directions of the smallest block: partial derivatives are formed anew for each."""


_BLOCK_AND_REST: Final = 1.5
"""Directions, as a multiple of a block, up to which all are carried at once: blocks would be copied into the
result, which takes longer."""


def cached_directions(count: int, each: int, shared: int = 0) -> int:
    """Return how many of so many directions, of ``each`` bytes, are carried at a time.

    Caches hold these, unless they are few, or take less than what each block forms anew for all its
    directions, of ``shared`` bytes: with more directions in a block, this is formed less often.
    """
    if each * count <= max(_BYTES_AT_ONCE, shared):
        return count
    block = max(_FEWEST_DIRECTIONS, max(_BYTES_OF_A_BLOCK, shared) // each)
    return block if count > _BLOCK_AND_REST * block else count


def in_blocks(
    sweep: Callable[[np.ndarray | range], np.ndarray], seeds: np.ndarray | range, block: int
) -> np.ndarray:
    """Run a sweep on at most ``block`` directions at a time, and join the results.

    `sweep` maps seeds to results of shape ``(k, other)``. The seeds are one row for each direction,
    shape ``(k, size)``, or a range of rows of the identity.
    """
    count = len(seeds)
    if block >= count:
        return sweep(seeds)
    result: np.ndarray | None = None
    starts = range(0, count, block)
    for start in told(starts, len(starts)):
        rows = sweep(seeds[start : start + block])
        if result is None:
            result = np.empty((count, rows.shape[1]), rows.dtype)
        elif rows.dtype != result.dtype:  # blocks before had nothing but zeros
            result = result.astype(np.result_type(result, rows))
        result[start : start + block] = rows
        del rows  # the next block takes the same memory
    return cast("np.ndarray", result)


def accumulate(left: Batch | None, right: Batch) -> Batch:
    """Add two batches of the same value."""
    if left is None:
        return right
    if isinstance(left, Diagonal) and isinstance(right, Diagonal) and left.origin == right.origin:
        return Diagonal(left.origin, left.values + right.values, left.start, left.stop)
    if isinstance(right, LowRank):
        if isinstance(left, LowRank):
            return left.joined(right) or Summed((left,), left.factors.rank).plus(right)
        if isinstance(left, Summed):
            return left.plus(right)
    left, right = left.dense(), right.dense()
    if left.start <= right.start and right.stop <= left.stop:
        return _add_into(left, right)
    if right.start <= left.start and left.stop <= right.stop:
        return _add_into(right, left)
    if right.start < left.start:
        left, right = right, left
    shape = max(left.stop, right.stop) - left.start, *left.rows.shape[1:]
    dtype = np.result_type(left.rows, right.rows)
    if left.stop == right.start:  # as the rows of a result are that are computed one by one
        rows = np.concatenate([left.rows, right.rows], out=np.empty(shape, dtype))
    else:
        rows = np.zeros(shape, dtype)
        rows[: len(left.rows)] = left.rows
        rows[right.start - left.start : right.stop - left.start] += right.rows
    return Rows(left.start, rows, owned=True)


def add_to(seeds: Seeds, index: int, batch: Batch) -> None:
    """Add directions to those that a value has."""
    seeds[index] = accumulate(seeds.get(index), batch)


def _add_into(wide: Rows, narrow: Rows) -> Rows:
    """Add a batch whose window lies within that of the other."""
    dtype = wide.rows.dtype
    if narrow.rows.dtype != dtype:
        dtype = np.result_type(dtype, narrow.rows.dtype)
    if len(wide.rows) == len(narrow.rows):
        if wide.owned and wide.rows.dtype == dtype:
            np.add(wide.rows, narrow.rows, out=wide.rows)
            return wide
        return Rows(wide.start, wide.rows + narrow.rows, owned=True)
    rows = wide.rows if wide.owned and wide.rows.dtype == dtype else wide.rows.astype(dtype)
    rows[narrow.start - wide.start : narrow.stop - wide.start] += narrow.rows
    return Rows(wide.start, rows, owned=True)


def as_pairs(batch: Batch, *, adjoint_mode: bool) -> Rows:
    """Return the directions of complex numbers as those of their real and imaginary parts, see `seed`."""
    batch = batch.dense()
    rows = batch.rows.reshape(len(batch.rows), -1)
    imaginary = -rows.imag if adjoint_mode else rows.imag
    return Rows(batch.start, np.stack([rows.real, imaginary], axis=-1).reshape(len(rows), -1), owned=True)


def assemble(batches: list[Batch | None], sizes: list[int], count: int, dtype: np.dtype) -> np.ndarray:
    """Join the directions of several values into one matrix ``(count, total real elements)``.

    ``dtype`` is the least precise type of the result; directions may have a more precise one.
    """
    written = [batch.dense() if isinstance(batch, LowRank | Summed) else batch for batch in batches]
    if len(written) == 1 and isinstance(written[0], Rows) and len(written[0].rows) == count:
        rows = written[0].rows.reshape(count, -1)
        return rows if rows.flags.writeable else rows.copy()  # users may write into their Jacobian
    dtypes = [batch.dtype for batch in written if batch is not None]
    matrix = np.zeros((count, sum(sizes)), np.result_type(dtype, *dtypes))
    column = 0
    for batch, size in zip(written, sizes, strict=True):
        if isinstance(batch, Rows):
            rows = batch.rows.reshape(len(batch.rows), size)
            matrix[batch.start : batch.stop, column : column + size] = rows
        elif batch is not None:
            index = np.arange(size)[batch.wanted]
            matrix[batch.origin + index, column + index] = batch.values.reshape(-1)[index]
        column += size
    return matrix
