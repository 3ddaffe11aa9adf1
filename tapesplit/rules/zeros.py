"""Nonzeros of constant matrices that are mostly zeros, such as of differences, networks and reactions.

A product with such a matrix has few scalar edges. Plans depend on where the nonzeros are, as on an index.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tapesplit.arrays import IntArray, Shape, memory_of

__all__ = ["MATRIX_BY_MATRIX", "MATRIX_BY_VECTOR", "NonZeros", "non_zeros"]


MATRIX_BY_VECTOR: Final = 1024
"""Elements of the smallest matrix in which zeros save more time than it takes to find them."""
MATRIX_BY_MATRIX: Final = 144
"""The same where the other operand is a matrix of as many elements: each of its columns saves time."""


@dataclass(frozen=True, slots=True)
class NonZeros:
    """The places of nonzeros in a matrix: a bit for each element, row by row, or ``by_columns``."""

    bits: bytes
    by_columns: bool = False

    def count(self) -> int:
        """Count the nonzeros."""
        return int(self._unpacked().sum())

    def positions(self, shape: Shape) -> IntArray:
        """Return the flat positions of nonzeros, ascending, in a matrix of this shape."""
        found = self._unpacked().nonzero()[0]
        if self.by_columns:
            columns, rows = np.divmod(found, shape[0])
            found = np.sort(rows * shape[1] + columns)
        return found

    def _unpacked(self) -> np.ndarray:
        """Return the bits as numbers; a few zeros may follow that belong to no element."""
        return np.unpackbits(np.frombuffer(self.bits, np.uint8))


def non_zeros(
    constant: Any, seen: dict[Any, NonZeros | None], least: int = MATRIX_BY_MATRIX
) -> NonZeros | None:
    """Return the places of nonzeros in a constant matrix; None if smaller than ``least``, or with few zeros.

    Loops read one matrix again and again, maybe by views: ``seen`` caches the results of one tape.

    Notes
    -----
    Takes two to six times as long as its product with a vector, most for small ones.
    """
    if type(constant) is not np.ndarray or constant.ndim != 2 or constant.size < least:
        return None
    if constant.dtype.kind not in "fciu":
        return None
    memory = memory_of(constant)
    if memory not in seen:
        seen[memory] = _found(constant)
    return seen[memory]


def _found(constant: np.ndarray) -> NonZeros | None:
    """Find the nonzeros of a matrix, part by part, such that parts fit into caches; None if they are many."""
    by_columns = not constant.flags.c_contiguous and constant.flags.f_contiguous
    matrix = constant.T if by_columns else constant
    most, found = int(_MOST_PART * matrix.size), list[bytes]()
    rows = 8 * max(1, _AT_A_TIME // (8 * matrix.shape[1]))  # their elements fill whole bytes
    for first in range(0, len(matrix), rows):
        mask = matrix[first : first + rows] != 0
        most -= int(np.count_nonzero(mask))
        if most < 0:
            return None
        found.append(np.packbits(mask).tobytes())
    return NonZeros(b"".join(found), by_columns)


_MOST_PART: Final = 0.25
"""Largest part of the elements that may be nonzero: an edge for each may then pay."""
_AT_A_TIME: Final = 2**16
"""Elements that are compared with zero at a time, to stay in caches."""
