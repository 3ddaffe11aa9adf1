"""Vector sweeps of one chunk: compile it to the form that is asked for, and run what has been compiled."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from tapesplit.cost.work import WorkTable
from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.rules import lu_kept
from tapesplit.structures.facts import TapeFacts
from tapesplit.sweeps.array_sweep import ArraySweep, compile_array_sweep
from tapesplit.sweeps.compression import SPARSE_PART, CompressedSweep, compress, reached_part
from tapesplit.sweeps.lowering import compile_scalar_sweep
from tapesplit.sweeps.prediction import Form
from tapesplit.sweeps.reach import find_reaches
from tapesplit.sweeps.row_sweep import RowSweep, compile_row_sweep
from tapesplit.sweeps.scalar_sweep import ScalarSweep
from tapesplit.sweeps.stages import StagedSweep, compile_stages, find_stages

__all__ = [
    "Sweep",
    "WholeSweep",
    "compile_compressed",
    "compile_sweep",
    "run_sweep",
    "with_elimination",
    "with_reaches",
]

WholeSweep = ArraySweep | ScalarSweep | StagedSweep
"""Sweeps of any directions: ``run`` carries rows ``(k, n)`` of tangents to ``(k, m)``, or adjoints back."""
Sweep = WholeSweep | RowSweep | CompressedSweep
"""All sweeps; those of rows and compressed ones have a ``jacobian`` only, the directions of an identity."""


def compile_sweep(
    tape: Tape,
    facts: TapeFacts,
    table: WorkTable,
    chunk: Chunk,
    directions: int,
    form: Form,
    *,
    adjoint_mode: bool,
    identity: bool = False,
) -> WholeSweep | RowSweep:
    """Compile a chunk for one mode.

    `form` is the one that `predict` has found; `identity` tells whether the directions will be those of an
    identity. Any tape of the structure that the sweep is for will do.
    """
    if form == "rows":
        return compile_row_sweep(tape, facts, chunk)
    if form == "system":
        return compile_scalar_sweep(tape, facts, chunk, directions, adjoint_mode=adjoint_mode)
    if form == "stages":
        stages = find_stages(facts, table, chunk, directions, adjoint_mode=adjoint_mode)
        if stages:  # unless the machine has been calibrated since the prediction
            return compile_stages(tape, facts, chunk, stages, directions, adjoint_mode=adjoint_mode)
    return compile_array_sweep(tape, facts, chunk, directions, adjoint_mode=adjoint_mode, identity=identity)


def compile_compressed(tape: Tape, facts: TapeFacts, sweep: WholeSweep, most: int) -> CompressedSweep | None:
    """Compile a chunk so that the directions of an identity share seeds.

    `sweep` is the chunk, which has a scalar form, with a seed for each direction. The result is None if
    directions cannot share as few seeds as ``most``. Any tape of the structure that the sweep is for will do.
    """
    if isinstance(sweep, ScalarSweep):
        return compress(sweep, most)
    chunk, adjoint_mode = sweep.chunk, sweep.adjoint_mode
    directions = chunk.m if adjoint_mode else chunk.n
    system = compile_scalar_sweep(tape, facts, chunk, directions, adjoint_mode=adjoint_mode)
    # Array steps may have met derivatives that are zero at this point only.
    return compress(system, most) if reached_part(system, tape) <= SPARSE_PART else None


def with_reaches(sweep: Sweep) -> ScalarSweep | None:
    """Let blocks of an identity's directions go through what they reach; None if that is not worth it."""
    if not isinstance(sweep, ScalarSweep):
        return None
    ends = sweep.indptr, sweep.indices, sweep.seeds, sweep.results
    reaches = find_reaches(*ends, transposed=sweep.adjoint_mode)
    return replace(sweep, reaches=reaches) if reaches else None


def with_elimination(sweep: Sweep, directions: int) -> Sweep:
    """Make the systems of a sweep smaller, where so many directions are worth it."""
    if isinstance(sweep, ScalarSweep):
        return sweep.with_elimination(directions)
    if isinstance(sweep, CompressedSweep):
        return replace(sweep, sweep=sweep.sweep.with_elimination(sweep.count))
    if isinstance(sweep, StagedSweep):
        systems = (
            part.with_elimination(directions) if isinstance(part, ScalarSweep) else part
            for part in sweep.parts
        )
        return replace(sweep, parts=tuple(systems))
    return sweep


def run_sweep(
    sweep: Sweep, tape: Tape, matrix: np.ndarray | None, memory_limit: int | None = None
) -> np.ndarray:
    """Multiply a matrix by the Jacobian of a chunk, in blocks of directions if memory is limited.

    Parameters
    ----------
    sweep
        The compiled chunk, Jacobian F' of shape ``(m, n)``; ``F' X`` if it carries tangents, ``X F'`` if it
        carries adjoints.
    tape
        Values of this call.
    matrix
        X, shape ``(n, k)`` or ``(k, m)``; None for the identity, which is all that sweeps of rows and
        compressed ones carry.
    memory_limit
        Bytes that the derivatives inside the sweep may take at a time, its ``least_bytes`` or more.

    Returns
    -------
    ndarray
        Shape ``(m, k)`` or ``(k, n)``.
    """
    most = None
    if memory_limit is not None:
        if isinstance(sweep, CompressedSweep) and sweep.one_color_bytes > memory_limit:
            sweep = sweep.sweep  # more work, but there are no seeds and no compressed Jacobian
        if isinstance(sweep, RowSweep) and sweep.together_bytes > memory_limit:
            sweep = sweep.apart
        most = max(1, (memory_limit - sweep.fixed_bytes) // max(sweep.bytes_per_direction, 1))
    with lu_kept() if memory_limit is None else nullcontext():
        if isinstance(sweep, (RowSweep, CompressedSweep)):
            return sweep.jacobian(tape, most)
        if sweep.adjoint_mode:
            return sweep.run(tape, matrix, most)
        return sweep.run(tape, None if matrix is None else matrix.T, most).T
