"""Vector sweeps of one chunk: choose between array steps and a scalar system, compile, run."""

from typing import NamedTuple

import numpy as np

from jcdp_core import Mode
from tapesplit.array_sweep import ArraySweep, compile_array_sweep
from tapesplit.chunks import Chunk
from tapesplit.cost import WorkTable, array_seconds, scalar_seconds, total_work
from tapesplit.facts import TapeFacts
from tapesplit.lowering import compile_scalar_sweep
from tapesplit.scalar_sweep import ScalarSweep
from tapesplit.stored_costs import cost_model
from tapesplit.tape import Tape

__all__ = ["Prediction", "Sweep", "compile_sweep", "predict", "run_sweep"]

Sweep = ArraySweep | ScalarSweep


class Prediction(NamedTuple):
    """What is known of a sweep before it is compiled.

    ``seconds`` is the predicted time of one run in the faster form, ``scalar`` whether that is a scalar
    sweep, ``releases_lock`` whether most of the time is spent in compiled code that lets other threads run,
    and ``product_fma`` the multiply-adds of matrix products inside.
    """

    seconds: float
    scalar: bool
    releases_lock: bool
    product_fma: int


def predict(table: WorkTable, chunk: Chunk, directions: int) -> Prediction:
    """Predict a sweep of a chunk with this number of directions, from `tapesplit.cost.work_table`."""
    model, work = cost_model(), total_work(table, chunk.entries)
    scalar = scalar_seconds(model, work, directions)
    if len(chunk.sources) == 1 and work.elements == work.steps * chunk.n:
        # Elementwise all through: a diagonal among zeros that the system hands out.
        array = array_seconds(model, work, 0) + 0.1 * directions * chunk.n * model.element_direction
    else:
        array = array_seconds(model, work, directions)
    if scalar < array:
        compiled = work.coefficients * model.coefficient_direction * directions
        return Prediction(scalar, scalar=True, releases_lock=compiled > 0.5 * scalar, product_fma=0)
    busy = work.looped == 0 and array > 8 * work.steps * model.step
    return Prediction(array, scalar=False, releases_lock=busy, product_fma=work.product_fma * directions)


def compile_sweep(
    tape: Tape,
    facts: TapeFacts,
    chunk: Chunk,
    mode: Mode,
    directions: int,
    *,
    scalar: bool,
) -> Sweep:
    """Compile a chunk for one mode.

    Parameters
    ----------
    tape, facts
        A tape of the structure that the sweep is for, and what is known of it.
    chunk
        Part of the tape.
    mode
        Tangent or adjoint.
    directions
        Number of directions k that will be propagated.
    scalar
        Whether it becomes a scalar sweep.
    """
    if scalar:
        return compile_scalar_sweep(tape, facts, chunk, directions, adjoint_mode=mode is Mode.ADJOINT)
    return compile_array_sweep(tape, facts, chunk)


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
