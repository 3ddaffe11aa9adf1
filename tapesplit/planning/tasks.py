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
from tapesplit.structures.facts import TapeFacts
from tapesplit.sweeps.prediction import Prediction, predict

__all__ = ["joined", "plan_tasks", "predicted", "scheduled", "with_shared_steps"]


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
    return scheduled([_timed(task, facts, table, chunks) for task in tasks])


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
        joined(chunks, task.swept),
        directions,
        adjoint_mode=task.mode is Mode.ADJOINT,
        identity=not task.needs,
    )
    return predicted(replace(task, directions=directions), expected, chunks)


def predicted(task: PlanTask, expected: Prediction, chunks: Sequence[Chunk]) -> PlanTask:
    """Give a sweep its predicted time, with the time to hand an intermediate Jacobian to the next step."""
    task = replace(task, **expected._asdict())
    if task.last - task.first + 1 == len(chunks):
        return task
    width = chunks[task.last].m if task.mode is Mode.TANGENT else chunks[task.first].n
    return replace(task, seconds=task.seconds + handed_seconds(cost_model(), task.directions * width))


def joined(chunks: Sequence[Chunk], links: Sequence[int]) -> Chunk:
    """Join the chunks of consecutive links."""
    parts = [chunks[link] for link in links]
    if len(parts) == 1:
        return parts[0]
    first, last, edges = parts[0], parts[-1], sum(part.edges for part in parts)
    entries = np.unique(np.concatenate([part.entries for part in parts]))
    return Chunk(first.sources, last.targets, entries, first.n, last.m, edges)


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


def scheduled(tasks: Sequence[PlanTask]) -> tuple[PlanTask, ...]:
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
    """Predict the tasks of one machine anew, with their large steps shared among several threads."""

    def shared(task: PlanTask) -> PlanTask:
        gain = 1.0 + (threads - 1) * (_FURTHER_SYSTEM if task.form in _CONTENDING else _FURTHER_PRODUCT)
        return replace(task, seconds=task.seconds - task.shareable * (1.0 - 1.0 / gain))

    return scheduled(list(map(shared, tasks)))
