"""Calibration: measure the constants of the cost model by timing real sweeps of small synthetic functions."""

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from threadpoolctl import threadpool_limits

from tapesplit.array_sweep import compile_array_sweep
from tapesplit.chunks import Chunk, cut_into_chunks
from tapesplit.cost import CostModel, shortest, store
from tapesplit.facts import TapeFacts, facts_of, graph_of
from tapesplit.lowering import compile_scalar_sweep
from tapesplit.record import record
from tapesplit.structure import Structure, structure_of
from tapesplit.tape import Tape

__all__ = ["calibrate"]


def calibrate() -> CostModel:
    """Measure this machine's cost constants and keep them for later processes.

    Returns
    -------
    CostModel
        Seconds for each kind of work.

    Raises
    ------
    OSError
        If the user's cache directory (``XDG_CACHE_HOME``) cannot be written.

    Notes
    -----
    Takes about a quarter of a second. Plans made without it assume the constants of a server core of 2025.
    """
    assumed = CostModel()
    with threadpool_limits(1):
        step = _array_sweep(_many_small, 8, 1) / 120
        # Three rounds, each of two operations and one product with every direction, in the cache.
        narrow, wide = (
            _array_sweep(_few_large, 4_000, 1) / 12_000,
            _array_sweep(_few_large, 4_000, 9) / 12_000,
        )
        element_direction = max((wide - narrow) / 8, 1e-11)
        small, large = _product(2), _product(192)
        short, long = _scalar_sweep(50, 1, 1), _scalar_sweep(2_050, 1, 1)
        arrays = _scalar_sweep(2_050, 2, 1)
        cached = _scalar_sweep(50, 1_000, 1)
        # More directions than the caches hold, as in large sweeps.
        single, several = _scalar_sweep(50, 4_000, 1), _scalar_sweep(50, 4_000, 33)
        per_direction = max((several - single) / 32 / 400_000, 1e-11)
        coefficient = max((cached - short) / 100_000 - per_direction, 1e-10)
        model = CostModel(
            step=step,
            element=max(narrow - element_direction, 1e-10) / 2,
            element_direction=element_direction,
            product=small,
            product_fma=(large - small) / 192**3,
            loop=assumed.loop * step / assumed.step,
            system=max(short - 100 * coefficient, 1e-6),
            number=max((long - short) / 2_000 - 2 * coefficient, 1e-9) / 2,
            array=max((arrays - short) / 2_000 - 4 * coefficient, 1e-9),
            inner=assumed.inner * coefficient / assumed.coefficient,
            coefficient=coefficient,
            coefficient_direction=per_direction,
        )
    store(model)
    return model


def _many_small(x: Any) -> Any:
    """Do 120 operations on few elements, none of which can be merged with the next."""
    for _ in range(60):
        x = anp.reshape(anp.sin(x), (-1,))
    return x


def _few_large(x: Any) -> Any:
    """Do three rounds of elementwise operations on many elements; a movement keeps them apart."""
    for _ in range(3):
        x = anp.reshape(anp.tanh(x) * 2.0, (-1,))
    return x


def _recurrence(steps: int, size: int) -> Callable[[Any], Any]:
    """Return a recurrence of numbers if the size is one: a step has three coefficients, two when merged."""

    def function(x: Any) -> Any:
        a = x[0] if size == 1 else x
        for _ in range(steps):
            a = (a * 0.5) * a
        return anp.reshape(a, (-1,))

    return function


def _parts(function: Callable[[Any], Any], size: int) -> tuple[Tape, Structure, TapeFacts, Chunk]:
    """Record a function and make one chunk of it."""
    tape = record(function, np.full(size, 0.5))
    structure = structure_of(tape)
    facts = facts_of(tape, structure)
    return tape, structure, facts, cut_into_chunks(graph_of(tape, facts), ())[0]


def _array_sweep(function: Callable[[Any], Any], size: int, directions: int) -> float:
    """Time an array sweep."""
    tape, structure, _, chunk = _parts(function, size)
    sweep, seeds = compile_array_sweep(tape, structure, chunk), np.ones((directions, size)).T
    return shortest(lambda: sweep.tangent(tape, seeds))


def _scalar_sweep(steps: int, size: int, directions: int) -> float:
    """Time a scalar sweep."""
    tape, structure, facts, chunk = _parts(_recurrence(steps, size), size)
    sweep = compile_scalar_sweep(tape, structure, facts, chunk, directions, adjoint_mode=False)
    seeds = np.ones((size, directions))
    return shortest(lambda: sweep.tangent(tape, seeds))


def _product(size: int) -> float:
    """Time the product of two square matrices."""
    matrix = np.ones((size, size))
    return shortest(lambda: matrix @ matrix)
