"""Stacked directions that know which of them can be non-zero.

Seeds are identities, and much of a Jacobian's zero structure survives the first operations: a function of one
of six parameters has tangents in one direction of six. `Rows` holds a window of consecutive directions, all
others being zero; `Diagonal` holds one direction for each element. Sweeps keep both until something forces
them dense.
"""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

__all__ = ["Batch", "Diagonal", "Rows", "accumulate", "as_pairs", "assemble", "in_blocks", "seed"]


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
    """Direction ``start + e`` is ``values.flat[e]`` at element e of the value and zero elsewhere."""

    start: int
    values: np.ndarray

    @property
    def stop(self) -> int:
        """First direction behind the window."""
        return self.start + self.values.size

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""
        return self.values.dtype

    def dense(self) -> Rows:
        """Write the zeros out."""
        size = self.values.size
        rows = np.zeros((size, size), self.values.dtype)
        rows.reshape(-1)[:: size + 1] = self.values.reshape(-1)
        return Rows(self.start, rows.reshape(size, *self.values.shape), owned=True)


Batch = Rows | Diagonal


def seed(
    matrix: np.ndarray | None, shapes: list[tuple[int, ...]], dtypes: list[np.dtype], *, adjoint_mode: bool
) -> list[Batch]:
    """Split a seed matrix ``(k, total real elements)`` among values; None stands for the identity.

    A complex number ``u + iv`` has two of them. Its tangents are ``du + i dv``; adjoints are the derivatives
    by u minus i times those by v, so that they go through products as tangents do.
    """
    batches: list[Batch] = []
    start = 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        is_complex = dtype.kind == "c"
        stop = start + prod(shape) * (1 + is_complex)
        if matrix is None and not is_complex:
            batches.append(Diagonal(start, np.ones(shape, dtype)))
        else:
            first, rows = (start, np.eye(stop - start)) if matrix is None else (0, matrix[:, start:stop])
            if is_complex:
                rows = rows[:, ::2] + (-1j if adjoint_mode else 1j) * rows[:, 1::2]
            batches.append(Rows(first, rows.reshape(len(rows), *shape)))
        start = stop
    return batches


def in_blocks(
    sweep: Callable[[np.ndarray | None], np.ndarray], seeds: np.ndarray | None, size: int, block: int
) -> np.ndarray:
    """Sweep so many directions at a time.

    Parameters
    ----------
    sweep
        From seeds, shape ``(k, size)``, to results, shape ``(k, other size)``.
    seeds
        One row for each direction; None stands for the identity.
    size
        Elements that are seeded.
    block
        Directions at a time.
    """
    count = size if seeds is None else len(seeds)
    if block >= count:
        return sweep(seeds)
    result = np.empty(0)
    for start in range(0, count, block):
        stop = min(start + block, count)
        rows = sweep(np.eye(stop - start, size, start) if seeds is None else seeds[start:stop])
        if not start:
            result = np.empty((count, rows.shape[1]), rows.dtype)
        result[start:stop] = rows
    return result


def accumulate(left: Batch | None, right: Batch) -> Batch:
    """Add two batches of the same value."""
    if left is None:
        return right
    if isinstance(left, Diagonal) and isinstance(right, Diagonal) and left.start == right.start:
        return Diagonal(left.start, left.values + right.values)
    left, right = left.dense(), right.dense()
    if left.start <= right.start and right.stop <= left.stop:
        return _add_into(left, right)
    if right.start <= left.start and left.stop <= right.stop:
        return _add_into(right, left)
    start, stop = min(left.start, right.start), max(left.stop, right.stop)
    rows = np.zeros((stop - start, *left.rows.shape[1:]), np.result_type(left.rows, right.rows))
    rows[left.start - start : left.stop - start] = left.rows
    rows[right.start - start : right.stop - start] += right.rows
    return Rows(start, rows, owned=True)


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
    if len(batches) == 1 and isinstance(batches[0], Rows) and len(batches[0].rows) == count:
        rows = batches[0].rows.reshape(count, -1)
        return rows if rows.flags.writeable else rows.copy()  # users may write into their Jacobian
    found = [b.rows if isinstance(b, Rows) else b.values for b in batches if b is not None]
    matrix = np.zeros((count, sum(sizes)), np.result_type(dtype, *found))
    column = 0
    for batch, size in zip(batches, sizes, strict=True):
        if isinstance(batch, Rows):
            rows = batch.rows.reshape(len(batch.rows), size)
            matrix[batch.start : batch.stop, column : column + size] = rows
        elif batch is not None:
            index = np.arange(size)
            matrix[batch.start + index, column + index] = batch.values.reshape(-1)
        column += size
    return matrix
