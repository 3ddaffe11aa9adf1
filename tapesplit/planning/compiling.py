"""Compiling: make a sweep of the links of each task, in the form that gains most by their sparsity."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from jcdp_core import Mode
from tapesplit.cost.work import WorkTable
from tapesplit.cuts.chunks import Chunk
from tapesplit.planning.plan import PlanTask
from tapesplit.planning.tasks import joined, predicted, scheduled
from tapesplit.recording.tape import Tape
from tapesplit.structures.facts import TapeFacts
from tapesplit.sweeps.compression import FEWEST_TO_COLOR, SPARSE_PART, reached_part
from tapesplit.sweeps.prediction import Form, predict_arrays, predict_compressed, predict_reaching
from tapesplit.sweeps.row_sweep import RowSweep
from tapesplit.sweeps.sweep import (
    Sweep,
    WholeSweep,
    compile_compressed,
    compile_sweep,
    with_elimination,
    with_reaches,
)

__all__ = ["compile_tasks", "eliminate_unknowns"]


def compile_tasks(
    tape: Tape,
    facts: TapeFacts,
    table: WorkTable,
    chunks: Sequence[Chunk],
    tasks: Sequence[PlanTask],
    memory_limit: int | None,
) -> tuple[tuple[PlanTask, ...], tuple[Sweep | None, ...]]:
    """Compile the links that each task sweeps through.

    Predictions change for tasks whose directions share seeds or go through only what they reach, and for
    those that take array steps because a system would exceed the memory limit.
    """
    compiler = _Compiler(tape, facts, table, chunks, memory_limit)
    timed, sweeps = zip(*map(compiler.compiled, tasks), strict=True)
    return (timed if timed == tuple(tasks) else scheduled(timed)), sweeps


def eliminate_unknowns(
    tasks: Sequence[PlanTask], sweeps: Sequence[Sweep | None], memory_limit: int | None
) -> tuple[Sweep | None, ...]:
    """Make the systems of compiled tasks smaller, where their directions are worth it and memory allows."""
    pairs = zip(tasks, sweeps, strict=True)
    return tuple(_smaller(sweep, task.directions, memory_limit) for task, sweep in pairs)


def _smaller(sweep: Sweep | None, directions: int, memory_limit: int | None) -> Sweep | None:
    """Make the systems of a sweep smaller, unless that takes more memory than there is."""
    if sweep is None:
        return None
    smaller = with_elimination(sweep, directions)
    return sweep if _exceeds(smaller, memory_limit) else smaller


def _exceeds(sweep: Sweep, memory_limit: int | None) -> bool:
    """Tell whether a sweep with one direction at a time needs more memory than it may."""
    return memory_limit is not None and sweep.least_bytes > memory_limit


_Compiled = tuple[PlanTask, Sweep]
"""A task as it is predicted with its sweep."""


class _Compiler(NamedTuple):
    """What all tasks are compiled from."""

    tape: Tape
    facts: TapeFacts
    table: WorkTable
    chunks: Sequence[Chunk]
    memory_limit: int | None

    def compiled(self, task: PlanTask) -> tuple[PlanTask, Sweep | None]:
        """Compile one task."""
        if task.mode is Mode.MULTIPLY:
            return task, None
        sweep = self.sweep(task, task.form)
        if task.form != "arrays" and _exceeds(sweep, self.memory_limit):
            arrays = self.by_arrays(task)
            if arrays[1].least_bytes < sweep.least_bytes:
                return arrays
        if task.needs or task.directions < FEWEST_TO_COLOR or isinstance(sweep, RowSweep):
            return task, sweep
        return self.by_sparsity(task, sweep)

    def sweep(self, task: PlanTask, form: Form) -> WholeSweep | RowSweep:
        """Compile the links of a task to one form."""
        return compile_sweep(
            self.tape,
            self.facts,
            self.table,
            joined(self.chunks, task.swept),
            task.directions,
            form,
            adjoint_mode=task.mode is Mode.ADJOINT,
            identity=not task.needs,
        )

    def by_arrays(self, task: PlanTask) -> _Compiled:
        """Compile one task into array steps, which need no memory for a system."""
        chunk, adjoint_mode = joined(self.chunks, task.swept), task.mode is Mode.ADJOINT
        expected = predict_arrays(self.table, chunk, task.directions, adjoint_mode=adjoint_mode)
        return predicted(task, expected, self.chunks), self.sweep(task, "arrays")

    def by_sparsity(self, task: PlanTask, sweep: WholeSweep) -> _Compiled:
        """Let directions of an identity share seeds, or go through only what they reach, if it is faster."""
        chunk = sweep.chunk
        if predict_compressed(self.table, chunk, 1).seconds > _WORTH_COLORING * task.seconds:
            return task, sweep
        part = reached_part(sweep, self.tape)
        reaching = with_reaches(sweep) if part > _FEW_REACHED else None
        best: _Compiled = task, sweep
        if reaching is not None:
            restricted = predicted(task, predict_reaching(self.table, reaching), self.chunks)
            best = min(best, (restricted, reaching), key=_seconds)
        one, all_seeds = (self.seeded(task, chunk, count).seconds for count in (1, task.directions))
        most = int(task.directions * min(_WORTH_SEEDS, (best[0].seconds - one) / (all_seeds - one)))
        if part > SPARSE_PART or part * task.directions > most:
            return best
        compressed = compile_compressed(self.tape, self.facts, sweep, most)
        if compressed is None or _exceeds(compressed, self.memory_limit):
            return best
        fma = task.fma * compressed.count // task.directions
        seeded = replace(self.seeded(task, chunk, compressed.count), seeds=compressed.count, fma=fma)
        return min(best, (seeded, compressed), key=_seconds)

    def seeded(self, task: PlanTask, chunk: Chunk, seeds: int) -> PlanTask:
        """Predict a task whose directions share this number of seeds."""
        return predicted(task, predict_compressed(self.table, chunk, seeds), self.chunks)


_WORTH_COLORING: Final = 0.7
"""Part of the time of a sweep that one with a single seed may take at most for colors to be looked for."""
_WORTH_SEEDS: Final = 0.5
"""Most seeds that are worth sharing, as a part of the directions."""
_FEW_REACHED: Final = 0.05
"""Part of the results that a direction reaches up to which no restricted sweep beats a compressed one."""


def _seconds(choice: _Compiled) -> float:
    """Return the predicted time of a task with its sweep."""
    return choice[0].seconds
