"""Planning: from a tape to the plan for all tapes of its structure.

Cut, solve, predict, compile. Several machines are planned for only where threads are predicted to pay.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from jcdp_core import ElementalJacobian, JacobianChain, Mode, Schedule, Solution, solve
from tapesplit.chunks import Chunk, chunk_chain, cut_into_chunks
from tapesplit.cost import WorkTable, array_seconds, product_seconds, scalar_seconds, total_work, work_table
from tapesplit.dtypes import shared_dtypes
from tapesplit.facts import TapeFacts, facts_of, graph_of
from tapesplit.graph import TapeGraph
from tapesplit.plan import JacobianPlan, MachinesReason, PlanTask
from tapesplit.recost import recost
from tapesplit.separators import Separator, cut_graph
from tapesplit.stored_costs import cost_model
from tapesplit.structure import Structure
from tapesplit.sweep import Sweep, compile_sweep, predict
from tapesplit.tape import Tape

__all__ = ["make_plan"]


def make_plan(
    tape: Tape,
    structure: Structure,
    *,
    machines: int = 1,
    force_machines: bool = False,
    method: str = "auto",
    cost: str = "runtime",
    max_links: int = 40,
) -> JacobianPlan:
    """Plan the Jacobian of a tape.

    Parameters
    ----------
    tape
        From `tapesplit.record`; its output must depend on an input.
    structure
        The structure of this tape.
    machines
        Number of machines to schedule for, if threads are predicted to pay; else the plan is for one.
    force_machines
        Schedule for all of them in any case.
    method
        "auto", "dp", "heuristic", "exact", or "tangent" or "adjoint" for one plain sweep.
    cost
        "fma" for the sequence with the fewest multiply-adds (the paper's cost), "runtime" for the one
        that is predicted to be faster where another is.
    max_links
        Upper limit of the length q of the chain.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    facts = facts_of(tape, structure)
    graph, work = graph_of(tape, facts), work_table(facts)
    plain = {"tangent": Mode.TANGENT, "adjoint": Mode.ADJOINT}.get(method)
    solver = "dp" if plain or method == "auto" else method
    thorough = cost == "fma" or force_machines or _plain_seconds(graph, work) > _WORTH_COMPARING
    separators = () if plain else cut_graph(graph, max_links=max_links, thorough=thorough, spread=False)
    draft = _draft(graph, facts, work, separators, plain, 1, solver, cost)
    machines_reason: MachinesReason = "single" if machines == 1 else "light"
    if machines > 1 and (force_machines or _may_pay(draft.tasks)):
        if not plain:
            # Cuts that gain nothing on one machine let several work at the same time.
            separators = cut_graph(graph, max_links=max_links, stop_within=None)
        parallel = _draft(graph, facts, work, separators, plain, machines, solver, cost)
        machines_reason = "forced" if force_machines else _worth_of_machines(parallel.tasks, draft.tasks)
        if machines_reason in {"forced", "gain"}:
            draft = parallel
    sweeps = tuple(_compile(tape, facts, work, draft.chunks, task) for task in draft.tasks)
    return JacobianPlan(
        name=tape.name,
        structure=structure,
        graph=graph,
        separators=draft.separators,
        chunks=draft.chunks,
        chain=draft.chain,
        solution=draft.solution,
        tasks=draft.tasks,
        sweeps=sweeps,
        machines=1 + max(task.machine for task in draft.tasks),
        shapes=(tape.shape(tape.output or 0), *(tape.shape(i) for i in range(tape.inputs))),
        reason=_reason(draft, method if plain else None),
        machines_reason=machines_reason,
        fewest=draft.fewest,
        dtypes=shared_dtypes(tape, structure),
        multiplies=sum(task.product_fma for task in draft.tasks) > _BLAS_THREADS,
    )


_BLAS_THREADS: Final = 100_000
"""Multiply-adds in products below which threads of BLAS have nothing to do, or next to nothing."""


class _Draft(NamedTuple):
    """A chain and its solution, before anything is compiled."""

    separators: tuple[Separator, ...]
    chunks: tuple[Chunk, ...]
    chain: JacobianChain
    solution: Solution
    tasks: tuple[PlanTask, ...]
    fewest: int | None = None


def _draft(
    graph: TapeGraph,
    facts: TapeFacts,
    work: WorkTable,
    separators: tuple[Separator, ...],
    plain: Mode | None,
    machines: int,
    solver: str,
    cost: str,
) -> _Draft:
    """Cut, solve, and predict times."""
    chunks = cut_into_chunks(graph, separators)
    chain = _one_mode_chain(chunks[0], plain) if plain else chunk_chain(chunks)
    search = partial(solve, machines=machines, method=solver, time_limit=_LONGEST_SEARCH)
    solution = search(chain)
    draft = _Draft(separators, chunks, chain, solution, _plan_tasks(solution, facts, work, chunks))
    if cost == "fma" or len(chunks) == 1 or _makespan(draft.tasks) < _WORTH_PRICING * len(chunks):
        return draft
    by_time = search(_priced(chain, facts, work, chunks))
    if by_time.sequence.operations == solution.sequence.operations:
        return draft
    timed = recost(by_time, chain, solution.lower_bound)
    faster = draft._replace(
        solution=timed, tasks=_plan_tasks(timed, facts, work, chunks), fewest=solution.makespan
    )
    return min(draft, faster, key=lambda candidate: _makespan(candidate.tasks))


def _priced(
    chain: JacobianChain, facts: TapeFacts, work: WorkTable, chunks: Sequence[Chunk]
) -> JacobianChain:
    """Price each link by the predicted time of one direction; the unit is a multiply-add of a product."""
    directions = min(chain.sizes)
    links = []
    for link, chunk in zip(chain.links, chunks, strict=True):
        seconds = predict(facts, work, chunk, directions).seconds
        price = max(round(seconds / directions / cost_model().product_fma), 1)
        links.append(replace(link, tangent_cost=price, adjoint_cost=price))
    return JacobianChain(tuple(links))


def _reason(draft: _Draft, forced: str | None) -> str:
    """Say in a few words why the plan has its form."""
    if forced:
        return f"method {forced!r} was asked for"
    return (
        "cut at narrow interfaces" if draft.separators else "no interface is narrow enough for a cut to pay"
    )


_LONGEST_SEARCH: Final = 5.0
"""Seconds after which a search takes the best plan that it has found; a function needs up to four."""
_WORTH_COMPARING: Final = 1.0e-4
"""Seconds of a plain sweep up to which comparing all cuts would take longer than it saves in some calls."""
_WORTH_A_THREAD: Final = 3.0e-4
"""Seconds that a task must take before another thread can be worth its while."""
_WORTH_PRICING: Final = 2.0e-4
"""Seconds a link below which looking for a faster sequence would cost more than it can save in some calls."""
_HANDOVER: Final = 1.0e-4
"""Seconds to hand a task to another thread and its result back."""
_CONTENTION: Final = 1.5
"""How much longer a scalar sweep takes while another one works on the same memory."""


def _plain_seconds(graph: TapeGraph, work: WorkTable) -> float:
    """Predict one sweep through the whole tape, in the mode with fewer directions."""
    model, total = cost_model(), total_work(work, graph.entries[len(graph.inputs) :])
    directions = min(graph.input_width, graph.output_width)
    return min(array_seconds(model, total, directions), scalar_seconds(model, total, directions))


def _may_pay(tasks: Sequence[PlanTask]) -> bool:
    """Whether two threads could share enough work that does not hold the interpreter's lock."""
    return sum(task.seconds for task in tasks if task.releases_lock) > 4 * _WORTH_A_THREAD


def _worth_of_machines(parallel: Sequence[PlanTask], serial: Sequence[PlanTask]) -> MachinesReason:
    """Tell what several machines are predicted to gain: they work only if that is a fifth at least."""
    if len({task.machine for task in parallel}) == 1:
        return "serial"
    heavy = [task for task in parallel if task.releases_lock and task.seconds >= _WORTH_A_THREAD]
    if len({task.machine for task in heavy}) < 2:
        return "uneven"
    return "gain" if _makespan(parallel) < 0.8 * _makespan(serial) else "little"


def _makespan(tasks: Sequence[PlanTask]) -> float:
    """Return when the last task is predicted to finish."""
    return max(task.finish for task in tasks)


def _scheduled(tasks: Sequence[PlanTask]) -> tuple[PlanTask, ...]:
    """Predict when tasks run: each machine's in planned order, those under the interpreter's lock in turn."""
    contend = len({task.machine for task in tasks if task.form != "arrays"}) > 1
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
        finish = begins + task.seconds * (_CONTENTION if contend and task.form != "arrays" else 1.0)
        done[index] = replace(task, start=begins, finish=finish)
        free[task.machine] = finish
        unlocked = unlocked if task.releases_lock else finish
    return tuple(done[index] for index in range(len(tasks)))


def _one_mode_chain(chunk: Chunk, mode: Mode) -> JacobianChain:
    """Return the chain of one link that allows one mode only."""
    link = ElementalJacobian(
        chunk.n, chunk.m, max(chunk.edges, 1), tangent=mode is Mode.TANGENT, adjoint=mode is Mode.ADJOINT
    )
    return JacobianChain((link,))


def _plan_tasks(
    solution: Solution, facts: TapeFacts, work: WorkTable, chunks: Sequence[Chunk]
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
    return _scheduled([_timed(task, facts, work, chunks) for task in tasks])


def _continues(task: PlanTask, earlier: PlanTask, schedule: Schedule) -> bool:
    """Whether a task goes on with a sweep without a pause."""
    pause = schedule.tasks[task.steps[0]].start - schedule.tasks[earlier.steps[-1]].finish
    return (earlier.mode, earlier.machine, 0) == (task.mode, task.machine, pause)


def _timed(task: PlanTask, facts: TapeFacts, work: WorkTable, chunks: Sequence[Chunk]) -> PlanTask:
    """Add the predicted time to a task."""
    if task.mode is Mode.MULTIPLY:
        elements = chunks[task.first].n * chunks[task.last].m
        seconds = product_seconds(cost_model(), task.fma, elements)
        return replace(task, seconds=seconds, releases_lock=True, product_fma=task.fma)
    directions = chunks[task.first].n if task.mode is Mode.TANGENT else chunks[task.last].m
    expected = predict(facts, work, _joined(chunks, task.swept), directions)
    return replace(task, directions=directions, **expected._asdict())


def _joined(chunks: Sequence[Chunk], links: Sequence[int]) -> Chunk:
    """Join the chunks of consecutive links."""
    parts = [chunks[link] for link in links]
    if len(parts) == 1:
        return parts[0]
    entries = np.sort(np.concatenate([part.entries for part in parts]))
    return Chunk(
        parts[0].sources,
        parts[-1].targets,
        entries,
        parts[0].n,
        parts[-1].m,
        sum(part.edges for part in parts),
    )


def _compile(
    tape: Tape, facts: TapeFacts, work: WorkTable, chunks: Sequence[Chunk], task: PlanTask
) -> Sweep | None:
    """Compile the links that a task sweeps through."""
    if task.mode is Mode.MULTIPLY:
        return None
    chunk = _joined(chunks, task.swept)
    return compile_sweep(tape, facts, work, chunk, task.mode, task.directions, task.form)
