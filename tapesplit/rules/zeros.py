"""Constant matrices of mostly zeros, as of differences, networks and reactions: where they have none.

A product with such a matrix has few scalar edges. Plans depend on where these are, as on an index.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tapesplit.arrays import IntArray, Shape, memory_of

__all__ = ["NonZeros", "non_zeros"]


@dataclass(frozen=True, slots=True)
class NonZeros:
    """Where a matrix has no zeros: a bit for each element, row by row, or column by column as in memory."""

    bits: bytes
    by_columns: bool = False

    def count(self) -> int:
        """Count the elements that are no zeros."""
        return int(self._unpacked().sum())

    def positions(self, shape: Shape) -> IntArray:
        """Return their flat positions in a matrix of this shape."""
        found = self._unpacked().nonzero()[0]
        if self.by_columns:
            columns, rows = np.divmod(found, shape[0])
            found = np.sort(rows * shape[1] + columns)
        return found

    def _unpacked(self) -> np.ndarray:
        """Return ones for elements that are no zeros; a few zeros follow that are no elements."""
        return np.unpackbits(np.frombuffer(self.bits, np.uint8))


def non_zeros(constant: Any, seen: dict[Any, NonZeros | None]) -> NonZeros | None:
    """Return where a constant matrix has no zeros; None if it is small, or has few of them.

    Loops read one matrix again and again, maybe by views: those of one tape are ``seen``.

    Notes
    -----
    Takes two to six times as long as its product with a vector, most for small ones.
    """
    if type(constant) is not np.ndarray or constant.ndim != 2 or constant.size < _FEWEST_ELEMENTS:
        return None
    if constant.dtype.kind not in "fciu":
        return None
    memory = memory_of(constant)
    if memory not in seen:
        seen[memory] = _found(constant)
    return seen[memory]


def _found(constant: np.ndarray) -> NonZeros | None:
    """Look for zeros in parts of a matrix that fit into caches."""
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


_FEWEST_ELEMENTS: Final = 1024
"""Elements of a matrix up to which looking for its zeros takes as long as they save."""
_MOST_PART: Final = 0.25
"""Part of the elements that are no zeros up to which following them one by one may pay."""
_AT_A_TIME: Final = 2**16
"""Elements that are looked at together, in caches."""
