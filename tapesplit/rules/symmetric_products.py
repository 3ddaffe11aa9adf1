"""Products of a vector with itself, as in norms: directions go through one operand, and count twice."""

from typing import Final

import autograd.numpy as anp
import numpy as np

from tapesplit.recording.tape import TapeEntry
from tapesplit.rules.registry import Bulk

__all__ = ["read_once"]


_SYMMETRIC: Final = frozenset({anp.matmul, anp.dot, anp.inner})
"""Products of two vectors, or of two numbers, that are the same in either order."""


def read_once(entry: TapeEntry, rule: Bulk) -> tuple[TapeEntry, int]:
    """Return a call that reads a value twice as one that reads it once, and the factor of its derivative.

    That is the product of a vector with itself, of which norms are made. Of any other call the factor is 1.
    """
    first, *others = entry.parents
    if others != [first] or entry.primitive not in _SYMMETRIC or np.ndim(entry.value) or not rule.built_in:
        return entry, 1
    return entry._replace(argnums=(0,), parents=(first,)), 2
