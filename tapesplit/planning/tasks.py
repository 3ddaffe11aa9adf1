"""Tasks: the steps of a solution as sweeps and products, with the times that they are predicted to take."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from jcdp_core import Mode, Schedule, Solution
from tapesplit.cost.model import handed_seconds, product_seconds
from tapesplit.cost.stored import cost_model
from tapesplit.cost.work import WorkTable
from tapesplit.cuts.chunks import Chunk
from tapesplit.matrix_product import SHARED_FMA, SHARED_WIDTH
from tapesplit.planning.plan import PlanTask
from tapesplit.recording.tape import Tape
from tapesplit.structures.facts import TapeFacts
from tapesplit.sweeps.compression import FEWEST_TO_COLOR, SPARSE_PART, reached_part
from tapesplit.sweeps.row_sweep import RowSweep
from tapesplit.sweeps.sweep import (
    Prediction,
    Sweep,
    WholeSweep,
    compile_compressed,
    compile_sweep,
    predict,
    predict_arrays,
    predict_compressed,
    predict_reaching,
    with_reaches,
)

__all__ = ["compile_tasks", "plan_tasks", "with_shared_steps"]


def plan_tasks(
    solution: Solution, facts: TapeFacts, table: WorkTable, chunks: Sequence[Chunk]
) -> tuple[PlanTask, ...]:
    """Turn steps into tasks: a sweep that goes on in the same mode and place is one task."""
    sequence, schedule = solution.sequence, solution.schedule
    tasks: list[PlanTask] = []
    owner: dict[int, int] = {}
    steps = zip(sequence.operations, sequence.costs, sequence.predecessors, strict=True)
    for step, (operation, cost, predecessors) in enumerate(steps):
        needs = tuple(owner[before] for before in predecessors)
        task = PlanTask(
            operation.mode, operation.i, operation.j - 1, tuple(operation.swept), needs, (step,),
            schedule.tasks[step].machine, cost,
        )  # fmt: skip
        earlier = tasks[needs[0]] if len(needs) == 1 else None
        if earlier and _continues(task, earlier, schedule):
            owner[step] = needs[0]
            tasks[needs[0]] = replace(
                earlier,
                first=task.first,
                last=task.last,
                swept=tuple(sorted(earlier.swept + task.swept)),
                steps=(*earlier.steps, step),
                fma=earlier.fma + cost,
            )
        else:
            owner[step] = len(tasks)
            tasks.append(task)
    return _scheduled([_timed(task, facts, table, chunks) for task in tasks])


def _continues(task: PlanTask, earlier: PlanTask, schedule: Schedule) -> bool:
    """Whether a task goes on with a sweep without a pause."""
    pause = schedule.tasks[task.steps[0]].start - schedule.tasks[earlier.steps[-1]].finish
    return (earlier.mode, earlier.machine, 0) == (task.mode, task.machine, pause)


def _timed(task: PlanTask, facts: TapeFacts, table: WorkTable, chunks: Sequence[Chunk]) -> PlanTask:
    """Add the predicted time to a task."""
    if task.mode is Mode.MULTIPLY:
        n, m = chunks[task.first].n, chunks[task.last].m
        inner = task.fma // (n * m)
        is_large = task.fma >= SHARED_FMA and min(n, m, inner) >= SHARED_WIDTH
        seconds = product_seconds(cost_model(), task.fma, n * m, inner * max(n, m))
        return replace(
            task,
            seconds=seconds,
            releases_lock=True,
            product_fma=task.fma,
            shareable=task.fma * cost_model().product_fma * is_large,
        )
    directions = chunks[task.first].n if task.mode is Mode.TANGENT else chunks[task.last].m
    expected = predict(
        facts,
        table,
        _joined(chunks, task.swept),
        directions,
        adjoint_mode=task.mode is Mode.ADJOINT,
        identity=not task.needs,
    )
    return _predicted(replace(task, directions=directions), expected, chunks)


def _predicted(task: PlanTask, expected: Prediction, chunks: Sequence[Chunk]) -> PlanTask:
    """Give a sweep its predicted time, with what the next step takes to read an intermediate Jacobian."""
    task = replace(task, **expected._asdict())
    if task.last - task.first + 1 == len(chunks):
        return task
    width = chunks[task.last].m if task.mode is Mode.TANGENT else chunks[task.first].n
    return replace(task, seconds=task.seconds + handed_seconds(cost_model(), task.directions * width))


def _joined(chunks: Sequence[Chunk], links: Sequence[int]) -> Chunk:
    """Join the chunks of consecutive links."""
    parts = [chunks[link] for link in links]
    if len(parts) == 1:
        return parts[0]
    first, last, edges = parts[0], parts[-1], sum(part.edges for part in parts)
    entries = np.unique(np.concatenate([part.entries for part in parts]))
    return Chunk(first.sources, last.targets, entries, first.n, last.m, edges)


_WORTH_COLORING: Final = 0.7
"""Part of the time of a sweep that all directions together in one color must not exceed."""
_WORTH_SEEDS: Final = 0.5
"""Seeds, as a part of the directions, up to which they are shared."""
_FEW_REACHED: Final = 0.05
"""Part of the results that a direction reaches up to which nothing is faster than a compressed sweep."""
_HANDOVER: Final = 1.0e-4
"""Seconds to hand a task to another thread and its result back."""
_FURTHER_PRODUCT: Final = 0.8
"""What each thread but the first adds to the speed of products that are shared."""
_FURTHER_SYSTEM: Final = 0.6
"""The same for systems, whose threads contend for memory."""
_CONTENDING: Final = frozenset({"system", "stages"})
"""Forms of sweeps that work on much memory."""
_CONTENTION: Final = 1.5
"""How much longer a scalar sweep takes while another one works on the same memory."""


def _scheduled(tasks: Sequence[PlanTask]) -> tuple[PlanTask, ...]:
    """Predict when tasks run: each machine's in planned order, those under the interpreter's lock in turn."""
    contend = len({task.machine for task in tasks if task.form in _CONTENDING}) > 1
    waiting: dict[int, list[int]] = {}
    for index, task in enumerate(tasks):
        waiting.setdefault(task.machine, []).append(index)
    free = dict.fromkeys(waiting, 0.0)
    unlocked = 0.0
    done: dict[int, PlanTask] = {}

    def start(index: int) -> float:
        task = tasks[index]
        ready = max([free[task.machine], *(done[need].finish for need in task.needs)])
        begins = ready + (_HANDOVER if task.machine else 0.0)
        return begins if task.releases_lock else max(begins, unlocked)

    while len(done) < len(tasks):
        lanes = [lane for lane in waiting.values() if lane and done.keys() >= set(tasks[lane[0]].needs)]
        lane = min(lanes, key=lambda lane: start(lane[0]))
        index = lane.pop(0)
        task, begins = tasks[index], start(index)
        finish = begins + task.seconds * (_CONTENTION if contend and task.form in _CONTENDING else 1.0)
        done[index] = replace(task, start=begins, finish=finish)
        free[task.machine] = finish
        unlocked = unlocked if task.releases_lock else finish
    return tuple(done[index] for index in range(len(tasks)))


def with_shared_steps(tasks: Sequence[PlanTask], threads: int) -> tuple[PlanTask, ...]:
    """Predict tasks of one machine anew whose large steps are shared among so many threads."""

    def shared(task: PlanTask) -> PlanTask:
        gain = 1.0 + (threads - 1) * (_FURTHER_SYSTEM if task.form in _CONTENDING else _FURTHER_PRODUCT)
        return replace(task, seconds=task.seconds - task.shareable * (1.0 - 1.0 / gain))

    return _scheduled(list(map(shared, tasks)))


def compile_tasks(
    tape: Tape,
    facts: TapeFacts,
    table: WorkTable,
    chunks: Sequence[Chunk],
    tasks: Sequence[PlanTask],
    memory_limit: int | None,
) -> tuple[tuple[PlanTask, ...], tuple[Sweep | None, ...]]:
    """Compile the links that each task sweeps through.

    Tasks whose directions share seeds are predicted anew, and those that take array steps, since a system
    exceeds the memory limit.
    """
    compiled = [_compiled(tape, facts, table, chunks, task, memory_limit) for task in tasks]
    timed, sweeps = zip(*compiled, strict=True)
    return (timed if timed == tuple(tasks) else _scheduled(timed)), sweeps


def _compiled(
    tape: Tape,
    facts: TapeFacts,
    table: WorkTable,
    chunks: Sequence[Chunk],
    task: PlanTask,
    memory_limit: int | None,
) -> tuple[PlanTask, Sweep | None]:
    """Compile one task."""
    if task.mode is Mode.MULTIPLY:
        return task, None
    chunk = _joined(chunks, task.swept)
    sweep = compile_sweep(
        tape,
        facts,
        table,
        chunk,
        task.directions,
        task.form,
        adjoint_mode=task.mode is Mode.ADJOINT,
        identity=not task.needs,
    )
    if memory_limit is not None and task.form != "arrays" and sweep.least_bytes > memory_limit:
        arrays = _by_arrays(tape, facts, table, chunks, task)
        if arrays[1].least_bytes < sweep.least_bytes:
            return arrays
    if task.needs or task.directions < FEWEST_TO_COLOR or isinstance(sweep, RowSweep):
        return task, sweep
    return _by_sparsity(tape, facts, table, chunks, task, sweep, memory_limit)


def _by_sparsity(
    tape: Tape,
    facts: TapeFacts,
    table: WorkTable,
    chunks: Sequence[Chunk],
    task: PlanTask,
    sweep: WholeSweep,
    memory_limit: int | None,
) -> tuple[PlanTask, Sweep]:
    """Let the directions of an identity share seeds, or go through what they reach, where that is faster."""
    chunk = sweep.chunk
    if predict_compressed(table, chunk, 1).seconds > _WORTH_COLORING * task.seconds:
        return task, sweep
    part = reached_part(sweep, tape)
    reaching = with_reaches(sweep) if part > _FEW_REACHED else None
    best: tuple[PlanTask, Sweep] = task, sweep
    if reaching is not None:
        restricted = _predicted(task, predict_reaching(table, reaching), chunks)
        best = min(best, (restricted, reaching), key=_seconds)
    one, all_seeds = (
        _predicted(task, predict_compressed(table, chunk, n), chunks).seconds for n in (1, task.directions)
    )
    most = int(task.directions * min(_WORTH_SEEDS, (best[0].seconds - one) / (all_seeds - one)))
    if part > SPARSE_PART or part * task.directions > most:
        return best
    compressed = compile_compressed(tape, facts, sweep, most)
    if compressed is None or (memory_limit is not None and compressed.least_bytes > memory_limit):
        return best
    seeded = _predicted(task, predict_compressed(table, chunk, compressed.count), chunks)
    fma = task.fma * compressed.count // task.directions
    return min(best, (replace(seeded, seeds=compressed.count, fma=fma), compressed), key=_seconds)


def _seconds(choice: tuple[PlanTask, Sweep]) -> float:
    """Return the predicted time of a task with its sweep."""
    return choice[0].seconds


def _by_arrays(
    tape: Tape, facts: TapeFacts, table: WorkTable, chunks: Sequence[Chunk], task: PlanTask
) -> tuple[PlanTask, Sweep]:
    """Compile one task into array steps, which need no memory for a system."""
    chunk = _joined(chunks, task.swept)
    adjoint_mode, identity = task.mode is Mode.ADJOINT, not task.needs
    expected = predict_arrays(table, chunk, task.directions, adjoint_mode=adjoint_mode)
    sweep = compile_sweep(
        tape, facts, table, chunk, task.directions, "arrays", adjoint_mode=adjoint_mode, identity=identity
    )
    return _predicted(task, expected, chunks), sweep
