"""Vector sweeps of one chunk: choose between array steps and a scalar system, compile, run."""

from typing import Final

import numpy as np

from jcdp_core import Mode
from tapesplit.array_sweep import ArraySweep, compile_array_sweep
from tapesplit.chunks import Chunk
from tapesplit.facts import TapeFacts
from tapesplit.lowering import compile_scalar_sweep
from tapesplit.scalar_sweep import ScalarSweep
from tapesplit.structure import Structure
from tapesplit.tape import Tape

__all__ = ["Sweep", "compile_sweep"]

Sweep = ArraySweep | ScalarSweep

_ARRAY_STEP: Final = 3.0e-6
"""Seconds for one array operation, whatever its size."""
_ARRAY_ELEMENT: Final = 3.0e-9
"""Seconds for one element of an elementwise operation: its partial derivatives."""
_ARRAY_DIRECTION: Final = 0.5e-9
"""Seconds for one element of an array operation and one direction."""
_SCALAR_SYSTEM: Final = 40.0e-6
"""Seconds for a scalar sweep, whatever its size."""
_SCALAR_EDGE: Final = 10.0e-9
"""Seconds for one coefficient: gather, evaluate, read."""
_SCALAR_DIRECTION: Final = 0.2e-9
"""Seconds for one coefficient and one direction."""


def compile_sweep(
    tape: Tape, structure: Structure, facts: TapeFacts, chunk: Chunk, mode: Mode, directions: int
) -> Sweep:
    """Compile a chunk for one mode into the form that is predicted to be faster.

    Parameters
    ----------
    tape, structure, facts
        A tape of the structure that the sweep is for, and what is known of it.
    chunk
        Part of the tape.
    mode
        Tangent or adjoint.
    directions
        Number of directions k that will be propagated.
    """
    if _scalar_seconds(facts, chunk, directions) < _array_seconds(facts, chunk, directions):
        return compile_scalar_sweep(tape, structure, facts, chunk, adjoint_mode=mode is Mode.ADJOINT)
    return compile_array_sweep(tape, chunk)


def _scalar_seconds(facts: TapeFacts, chunk: Chunk, directions: int) -> float:
    """Predict a scalar sweep; infinite if the chunk has no scalar form."""
    entries = np.array(chunk.entries, dtype=np.intp)
    if not facts.scalar[entries].all():
        return float("inf")
    return _SCALAR_SYSTEM + chunk.edges * (_SCALAR_EDGE + _SCALAR_DIRECTION * directions)


def _array_seconds(facts: TapeFacts, chunk: Chunk, directions: int) -> float:
    """Predict an array sweep of elementwise operations and movements."""
    entries = np.array(chunk.entries, dtype=np.intp)
    size = float(np.maximum(facts.sizes[entries], 0).sum())
    return len(entries) * _ARRAY_STEP + size * (_ARRAY_ELEMENT + _ARRAY_DIRECTION * directions)
