"""Constant matrices of mostly zeros, as of differences, networks and reactions: where they have none.

A product with such a matrix has few scalar edges. Plans depend on where these are, as on an index.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = ["NonZeros", "non_zeros"]


@dataclass(frozen=True, slots=True)
class NonZeros:
    """Where a matrix has no zeros: a bit for each element, row by row."""

    bits: bytes

    @property
    def mask(self) -> np.ndarray:
        """Tell of each element whether it is no zero; a few more follow that are none."""
        return np.unpackbits(np.frombuffer(self.bits, np.uint8)).view(np.bool_)

    def count(self) -> int:
        """Count the elements that are no zeros."""
        return int(self.mask.sum())


def non_zeros(constant: Any) -> NonZeros | None:
    """Return where a constant matrix has no zeros; None if it is small, or has few of them.

    Notes
    -----
    Takes about as long as its product with a vector, and a byte for eight elements.
    """
    if type(constant) is not np.ndarray or constant.ndim != 2 or constant.size < _FEWEST_ELEMENTS:
        return None
    if constant.dtype.kind not in "fciu":
        return None
    most, found = int(_MOST_PART * constant.size), list[bytes]()
    rows = 8 * max(1, _AT_A_TIME // (8 * constant.shape[1]))  # their elements fill whole bytes
    for first in range(0, len(constant), rows):
        mask = constant[first : first + rows] != 0
        most -= int(np.count_nonzero(mask))
        if most < 0:
            return None
        found.append(np.packbits(mask).tobytes())
    return NonZeros(b"".join(found))


_FEWEST_ELEMENTS: Final = 256
"""Elements of a matrix up to which it does not matter how many of them are zeros."""
_MOST_PART: Final = 0.25
"""Part of the elements that are no zeros up to which following them one by one may pay."""
_AT_A_TIME: Final = 2**16
"""Elements that are looked at together, in caches."""
