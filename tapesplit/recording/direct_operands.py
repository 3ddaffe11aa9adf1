"""The operands of a call: boxes of one tape among plain values."""

from typing import Any, Final, TypeAlias

import numpy as np

from tapesplit.recording.boxes import RECORDING

__all__ = ["ARRAYS", "NUMBERS", "Operands", "opened"]

Operands: TypeAlias = tuple[Any, tuple[int, ...], tuple[int, ...], list[Any]]
"""One box of a call, argument numbers and tape indices of all its boxes, plain values of all arguments."""

ARRAYS: Final = frozenset({np.ndarray})
"""Types of plain values where all operands must be arrays."""
NUMBERS: Final = frozenset({float, int, complex, np.float64, np.complex128, np.float32})
"""Types of plain values where all operands must be numbers."""


def opened(items: Any, kinds: frozenset[type], first: int) -> Operands | None:
    """Separate the boxes among the arguments of a call from their values.

    Arguments are numbered from ``first``. None if there is no box, if boxes are of different tapes, or if the
    type of a value is none of ``kinds``.
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
