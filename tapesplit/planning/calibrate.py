"""Calibration: scale the constants of the cost model to the times of some sweeps on this machine."""

import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final, NamedTuple

import autograd.numpy as anp
import numpy as np
from threadpoolctl import threadpool_limits

from tapesplit.cost.model import CostModel, array_seconds, system_seconds
from tapesplit.cost.work import Work, total_work, work_table
from tapesplit.cuts.chunks import cut_into_chunks
from tapesplit.cuts.graph import graph_of
from tapesplit.recording.recorder import record
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps.prediction import Form
from tapesplit.sweeps.sweep import compile_sweep, run_sweep

__all__ = ["measured_costs"]

_GROUPS: Final = (
    ("step", "loop", "product"),
    ("element", "element_direction"),
    ("product_fma",),
    ("system", "formula", "number", "array"),
    ("coefficient", "coefficient_direction", "inner"),
)
"""Groups of constants that are scaled by a common factor, since the same part of a machine limits them."""
_TRUST: Final = 0.1
"""Weight of the assumption that all factors are equal, against one sweep."""
_ROUNDS: Final = 5
"""Times that all sweeps have their turn: other work on the machine often ends between."""
_RUNS: Final = 3
"""Runs of each sweep in a turn: the first one finds its data in no cache. The fastest of all counts."""


def measured_costs() -> CostModel:
    """Measure this machine's cost constants.

    Returns
    -------
    CostModel
        Seconds for each kind of work.

    Notes
    -----
    Takes half a second. The assumed constants were fitted to many programs on a server core of 2025,
    those of systems on a second one, too. Some sweeps whose times on the first one are known are timed here.
    The factor of each group of constants is fitted to these times by linear least squares of relative errors.
    """
    assumed = CostModel()
    with threadpool_limits(1):
        runs, works = zip(*map(_compiled, _SWEEPS), strict=True)
        measured = zip(_SWEEPS, works, _shortest(runs), strict=True)
        shares = np.array([_shares(assumed, *sweep) for sweep in measured])
    common = 1.0 / float(np.median(shares.sum(axis=1)))
    prior = _TRUST * np.eye(len(_GROUPS)) / common
    system = np.concatenate([shares, prior])
    wanted = np.append(np.ones(len(shares)), np.full(len(_GROUPS), _TRUST))
    factors = np.maximum(np.linalg.lstsq(system, wanted)[0], common / 10)
    scaled = {
        name: getattr(assumed, name) * factor
        for group, factor in zip(_GROUPS, factors.tolist(), strict=True)
        for name in group
    }
    return CostModel(**scaled)


class _Sweep(NamedTuple):
    """A function of a vector to be swept in one form, and its time on the core of the assumed constants."""

    function: Callable[[Any], Any]
    size: int
    directions: int
    form: Form
    seconds: float


def _compiled(sweep: _Sweep) -> tuple[Callable[[], object], Work]:
    """Record and compile a sweep; return what runs it, and the work that it is."""
    tape = record(sweep.function, np.linspace(0.3, 0.7, sweep.size))
    facts = facts_of(tape)
    chunk = cut_into_chunks(graph_of(tape, facts), ())[0]
    table = work_table(facts)
    seeds = np.ones((sweep.size, sweep.directions))
    compiled = compile_sweep(tape, facts, table, chunk, sweep.directions, sweep.form, adjoint_mode=False)
    return partial(run_sweep, compiled, tape, seeds), total_work(table, chunk.entries)


def _shares(assumed: CostModel, sweep: _Sweep, work: Work, seconds: float) -> list[float]:
    """Return the share of each group in the predicted time, divided by how much slower this machine was."""
    slower = seconds / sweep.seconds
    predict = system_seconds if sweep.form == "system" else partial(array_seconds, adjoint_mode=False)
    predicted = predict(assumed, work, sweep.directions)
    return [predict(_only(assumed, group), work, sweep.directions) / predicted / slower for group in _GROUPS]


def _shortest(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Time calls by turns: the shortest of some runs of each, in seconds."""
    shortest = [float("inf")] * len(calls)
    for _ in range(_ROUNDS):
        for number, call in enumerate(calls):
            for _ in range(_RUNS):
                start = time.perf_counter()
                call()
                shortest[number] = min(shortest[number], time.perf_counter() - start)
    return shortest


def _only(model: CostModel, group: Sequence[str]) -> CostModel:
    """Return a model in which other constants are zero; times are linear in them."""
    return CostModel(
        **{field.name: getattr(model, field.name) if field.name in group else 0.0 for field in fields(model)}
    )


def _small(x: Any) -> Any:
    """Do operations on few elements, none of which can be merged with the next."""
    for _ in range(60):
        x = anp.reshape(anp.sin(x), (-1,))
    return x


def _large(x: Any) -> Any:
    """Do elementwise operations on many elements; a movement keeps them apart."""
    for _ in range(3):
        x = anp.reshape(anp.sin(x) * anp.exp(-0.5 * x * x), (-1,))
    return x


def _layers(x: Any) -> Any:
    """Multiply by matrices."""
    for _ in range(3):
        x = anp.tanh(_matrix(x.size) @ x)
    return x


def _matrix(size: int) -> np.ndarray:
    """Return a square matrix."""
    return np.cos(np.arange(size * size)).reshape(size, size) / size


def _loop(x: Any) -> Any:
    """Compute with single numbers."""
    a, b = x[0], x[1]
    for _ in range(300):
        a, b = a + 0.01 * b, b - 0.01 * anp.sin(a) * a
    return anp.array([a, b])


def _stencil(x: Any) -> Any:
    """Take steps on neighbors."""
    for _ in range(40):
        x = x + 0.1 * x * (anp.roll(x, 1) - anp.roll(x, -1)) - 0.01 * x * x
    return x


_SWEEPS: Final = (
    _Sweep(_small, 8, 4, "arrays", seconds=3.4e-4),
    _Sweep(_large, 10_000, 5, "arrays", seconds=2.25e-4),
    _Sweep(_large, 20_000, 20, "arrays", seconds=6.8e-4),
    _Sweep(_layers, 200, 100, "arrays", seconds=4.7e-4),
    _Sweep(_small, 8, 4, "system", seconds=1.8e-5),
    _Sweep(_loop, 2, 2, "system", seconds=5.3e-5),
    _Sweep(_loop, 2, 30, "system", seconds=7.0e-5),
    _Sweep(_stencil, 40, 4, "system", seconds=5.6e-5),
    _Sweep(_stencil, 400, 80, "system", seconds=1.2e-3),
    _Sweep(_stencil, 1_000, 200, "system", seconds=8.6e-3),
    _Sweep(_large, 20_000, 6, "system", seconds=9.7e-4),
)
