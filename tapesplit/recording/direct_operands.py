"""The operands of a call: boxes of one tape among plain values."""

from typing import Any, Final, TypeAlias

import numpy as np

from tapesplit.recording.boxes import RECORDING

__all__ = ["ARRAYS", "NUMBERS", "Operands", "opened"]

Operands: TypeAlias = tuple[Any, tuple[int, ...], tuple[int, ...], list[Any]]
"""One of the boxes of a call, the argument numbers of all, their indices on the tape, and all values."""

ARRAYS: Final = frozenset({np.ndarray})
"""Types of operands where arrays are meant, no numbers."""
NUMBERS: Final = frozenset({float, int, complex, np.float64, np.complex128})
"""Types of operands where numbers are meant."""


def opened(items: Any, kinds: frozenset[type], first: int) -> Operands | None:
    """Open the boxes of one tape among values of some types; None if there is no box, or anything else.

    Arguments are numbered from ``first``.
    """
    tape: Any = None
    values: list[Any] = []
    argnums: list[int] = []
    parents: list[int] = []
    for position, item in enumerate(items, first):
        value = item
        if type(item) in RECORDING:
            if tape is None:
                tape = item
            if item._entries is None or item._entries is not tape._entries:
                return None
            argnums.append(position)
            parents.append(item._index)
            value = item._value
        if type(value) not in kinds:
            return None
        values.append(value)
    return None if tape is None else (tape, tuple(argnums), tuple(parents), values)
