"""Vector sweeps of one chunk: choose between array steps and a scalar system, compile, run."""

import numpy as np

from jcdp_core import Mode
from tapesplit.array_sweep import ArraySweep, compile_array_sweep
from tapesplit.chunks import Chunk
from tapesplit.cost import array_seconds, cost_model, scalar_seconds, work_of
from tapesplit.facts import TapeFacts
from tapesplit.lowering import compile_scalar_sweep
from tapesplit.scalar_sweep import ScalarSweep
from tapesplit.structure import Structure
from tapesplit.tape import Tape

__all__ = ["Sweep", "compile_sweep", "predicted_seconds", "run_sweep"]

Sweep = ArraySweep | ScalarSweep


def predicted_seconds(facts: TapeFacts, chunk: Chunk, directions: int) -> tuple[float, bool]:
    """Predict a sweep of a chunk in its faster form.

    Returns
    -------
    seconds
        Predicted time of one run with this number of directions.
    releases_lock
        Whether most of that time is spent in compiled code that lets other threads run.
    """
    model, work = cost_model(), work_of(facts, np.array(chunk.entries, dtype=np.int64))
    scalar, array = scalar_seconds(model, work, directions), array_seconds(model, work, directions)
    if scalar < array:
        return scalar, work.merged * model.coefficient_direction * directions > 0.5 * scalar
    return array, work.looped == 0 and array > 8 * work.steps * model.step


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
    model, work = cost_model(), work_of(facts, np.array(chunk.entries, dtype=np.int64))
    if scalar_seconds(model, work, directions) < array_seconds(model, work, directions):
        return compile_scalar_sweep(
            tape, structure, facts, chunk, directions, adjoint_mode=mode is Mode.ADJOINT
        )
    return compile_array_sweep(tape, structure, chunk)


def run_sweep(
    sweep: Sweep, tape: Tape, mode: Mode, matrix: np.ndarray | None, memory_limit: int | None = None
) -> np.ndarray:
    """Multiply a matrix by the Jacobian of a chunk, in blocks of directions if memory is limited.

    Parameters
    ----------
    sweep
        The compiled chunk, Jacobian F' of shape ``(m, n)``.
    tape
        Values of this call.
    mode
        Tangent for ``F' X``, adjoint for ``X F'``.
    matrix
        X, shape ``(n, k)`` or ``(k, m)``; None for the identity.
    memory_limit
        Bytes that the derivatives inside the sweep may take at a time.

    Returns
    -------
    ndarray
        Shape ``(m, k)`` or ``(k, n)``.
    """
    tangent = mode is Mode.TANGENT
    run = sweep.tangent if tangent else sweep.adjoint
    size = sweep.chunk.n if tangent else sweep.chunk.m
    count = size if matrix is None else matrix.shape[1 if tangent else 0]
    block = count if memory_limit is None else max(1, memory_limit // max(sweep.bytes_per_direction, 1))
    if block >= count:
        return run(tape, matrix)
    matrix = np.eye(size) if matrix is None else matrix
    if tangent:
        return np.hstack([run(tape, matrix[:, i : i + block]) for i in range(0, count, block)])
    return np.vstack([run(tape, matrix[i : i + block]) for i in range(0, count, block)])
