"""Plans: how the Jacobian of every tape of one structure is computed, and the numbers behind that choice."""

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple

from jcdp_core import ElementalJacobian, JacobianChain, Mode, Schedule, Solution, solve
from tapesplit.chunks import Chunk, chunk_chain, cut_into_chunks
from tapesplit.cost import cost_model, product_seconds
from tapesplit.facts import TapeFacts, facts_of, graph_of
from tapesplit.graph import TapeGraph
from tapesplit.pickling import dumps
from tapesplit.separators import Separator, find_separators
from tapesplit.structure import Structure
from tapesplit.sweep import Sweep, compile_sweep, predicted_seconds
from tapesplit.tape import Tape

__all__ = ["JacobianPlan", "PlanTask", "make_plan"]


@dataclass(frozen=True, slots=True)
class PlanTask:
    """What one machine does without interruption: a product, or a sweep through consecutive links.

    An elimination that continues a sweep of the same mode on the same machine is one sweep with it.

    Parameters
    ----------
    mode
        Tangent, adjoint or multiply.
    first, last
        Links that the resulting Jacobian covers, 0-based and inclusive.
    swept
        Links that are swept through; empty for a product.
    needs
        Tasks whose results it takes: none, one, or (left factor, right factor).
    steps
        Steps of the elimination sequence that it carries out, 0-based.
    machine
        0-based.
    fma
        Planned cost.
    seconds
        Predicted time.
    releases_lock
        Whether other threads can run meanwhile.
    """

    mode: Mode
    first: int
    last: int
    swept: tuple[int, ...]
    needs: tuple[int, ...]
    steps: tuple[int, ...]
    machine: int
    fma: int
    seconds: float = 0.0
    releases_lock: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class JacobianPlan:
    """The plan for tapes of one structure.

    Parameters
    ----------
    name
        Name of the function.
    structure
        What a tape must look like for the plan to fit.
    graph
        Graph of the tape: sizes and scalar edges of its values.
    separators
        Nested vertex separators between the chunks.
    chunks
        Parts of the tape, one for each link of the chain.
    chain
        The Jacobian chain, costs in fma.
    solution
        Elimination sequence and schedule.
    tasks
        The sequence as it is executed.
    sweeps
        For each task the compiled links that it sweeps through; None for a product.
    machines
        Threads that work at the same time.
    shapes
        Shape of the output and of each input.
    reason
        Why the plan has this form, in a few words.
    """

    name: str
    structure: Structure
    graph: TapeGraph
    separators: tuple[Separator, ...]
    chunks: tuple[Chunk, ...]
    chain: JacobianChain
    solution: Solution
    tasks: tuple[PlanTask, ...]
    sweeps: tuple[Sweep | None, ...]
    machines: int
    shapes: tuple[tuple[int, ...], ...]
    reason: str

    @property
    def makespan(self) -> int:
        """Planned time of the slowest machine in fma."""
        return self.solution.makespan

    @property
    def fma(self) -> int:
        """Planned work of all machines together in fma."""
        return self.solution.sequence.total

    @property
    def baselines(self) -> dict[str, int]:
        """Cost of one tangent and of one adjoint sweep with all directions, in fma."""
        edges = sum(chunk.edges for chunk in self.chunks)
        return {"tangent": self.chunks[0].n * edges, "adjoint": self.chunks[-1].m * edges}

    @property
    def peak_bytes(self) -> int:
        """Most memory that Jacobians of parts of the chain take at the same time in the schedule, in bytes.

        Each is there from the start of its step to the end of the step that uses it. Values inside a sweep
        are not counted.
        """
        sequence, tasks, links = self.solution.sequence, self.solution.schedule.tasks, self.chain.links
        changes = []
        for step, task, successor in zip(sequence.operations, tasks, sequence.successors, strict=True):
            size = 8 * links[step.j - 1].m * links[step.i].n
            changes += [
                (task.start, size),
                (task.finish if successor is None else tasks[successor].finish, -size),
            ]
        return max(accumulate(size for _, size in sorted(changes)))

    def describe(self, level: Literal["line", "normal", "full"] = "normal") -> str:
        """Describe the plan in one line, in tables, or in full; see `tapesplit.draw.describe`."""
        return _views().describe(self, level)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw the split tape into a file: .svg, .dot, .png or .pdf; see `tapesplit.draw.draw_split`."""
        _views().draw_split(self, path)

    def to_html(self, path: str | os.PathLike[str], records: Sequence[Any] | None = None) -> None:
        """Write a report, with measured times if records are given; see `tapesplit.draw.write_report`."""
        _views().write_report(self, path, records)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle primitives and their rules by name, see `tapesplit.names`."""
        return _restored, (dumps(tuple(getattr(self, field.name) for field in fields(self))),)

    def __str__(self) -> str:
        return self.describe("normal")

    def __repr__(self) -> str:
        return f"<JacobianPlan of {self.describe('line')}>"

    def _repr_html_(self) -> str:
        """Show the plan in a notebook."""
        return _views().notebook_html(self)


def _views() -> Any:
    """Import the views, which stand above plans, when one is asked for."""
    from tapesplit import draw as views  # noqa: PLC0415 - views read plans, so plans cannot import them at the top

    return views


def _restored(data: bytes) -> JacobianPlan:
    """Restore a plan from what `JacobianPlan.__reduce__` has pickled."""
    return JacobianPlan(*pickle.loads(data))  # noqa: S301 (part of a pickle that is being loaded already)


def make_plan(
    tape: Tape,
    structure: Structure,
    *,
    machines: int = 1,
    force_machines: bool = False,
    method: str = "auto",
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
    max_links
        Upper limit of the length q of the chain.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    facts = facts_of(tape, structure)
    graph = graph_of(tape, facts)
    plain = {"tangent": Mode.TANGENT, "adjoint": Mode.ADJOINT}.get(method)
    solver = "dp" if plain or method == "auto" else method
    separators = () if plain else find_separators(graph, max_links=max_links)
    draft = _draft(graph, facts, separators, plain, 1, solver)
    if machines > 1 and (force_machines or _may_pay(draft.tasks)):
        if not plain:
            # Cuts that gain nothing on one machine let several work at the same time.
            separators = find_separators(graph, max_links=max_links, stop_within=None)
        parallel = _draft(graph, facts, separators, plain, machines, solver)
        if force_machines or _pays(parallel.tasks, draft.tasks):
            draft = parallel
    return JacobianPlan(
        name=tape.name,
        structure=structure,
        graph=graph,
        separators=draft.separators,
        chunks=draft.chunks,
        chain=draft.chain,
        solution=draft.solution,
        tasks=draft.tasks,
        sweeps=tuple(_compile(tape, structure, facts, draft.chunks, task) for task in draft.tasks),
        machines=1 + max(task.machine for task in draft.tasks),
        shapes=(tape.shape(tape.output or 0), *(tape.shape(i) for i in range(tape.inputs))),
        reason=_reason(draft, method if plain else None),
    )


class _Draft(NamedTuple):
    """A chain and its solution, before anything is compiled."""

    separators: tuple[Separator, ...]
    chunks: tuple[Chunk, ...]
    chain: JacobianChain
    solution: Solution
    tasks: tuple[PlanTask, ...]


def _draft(
    graph: TapeGraph,
    facts: TapeFacts,
    separators: tuple[Separator, ...],
    plain: Mode | None,
    machines: int,
    solver: str,
) -> _Draft:
    """Cut, solve, and predict times."""
    chunks = cut_into_chunks(graph, separators)
    chain = _one_mode_chain(chunks[0], plain) if plain else chunk_chain(chunks)
    solution = solve(chain, machines=machines, method=solver)
    return _Draft(separators, chunks, chain, solution, _plan_tasks(solution, facts, chunks))


def _reason(draft: _Draft, forced: str | None) -> str:
    """Say in a few words why the plan has its form."""
    if forced:
        return f"method {forced!r} was asked for"
    return (
        "cut at narrow interfaces" if draft.separators else "no interface is narrow enough for a cut to pay"
    )


_WORTH_A_THREAD: Final = 3.0e-4
"""Seconds that a task must take before another thread can be worth its while."""
_HANDOVER: Final = 5.0e-5
"""Seconds to hand a task to another thread and its result back."""


def _may_pay(tasks: Sequence[PlanTask]) -> bool:
    """Whether there is enough work for two threads at all."""
    return sum(task.seconds for task in tasks) > 2 * _WORTH_A_THREAD


def _pays(parallel: Sequence[PlanTask], serial: Sequence[PlanTask]) -> bool:
    """Whether several threads are predicted to gain a tenth at least.

    Work under the interpreter's lock runs one task at a time whatever the machine.
    """
    free: dict[int, float] = {}
    done: list[float] = []
    for task in parallel:
        start = max([free.get(task.machine, 0.0), *(done[need] for need in task.needs)])
        done.append(start + task.seconds + _HANDOVER)
        free[task.machine] = done[-1]
    locked = sum(task.seconds for task in parallel if not task.releases_lock)
    heavy = [task for task in parallel if task.releases_lock and task.seconds >= _WORTH_A_THREAD]
    makespan = max(*done, locked) if len(done) > 1 else done[0]
    return len({task.machine for task in heavy}) > 1 and makespan < 0.9 * sum(task.seconds for task in serial)


def _one_mode_chain(chunk: Chunk, mode: Mode) -> JacobianChain:
    """Return the chain of one link that allows one mode only."""
    link = ElementalJacobian(
        chunk.n, chunk.m, max(chunk.edges, 1), tangent=mode is Mode.TANGENT, adjoint=mode is Mode.ADJOINT
    )
    return JacobianChain((link,))


def _plan_tasks(solution: Solution, facts: TapeFacts, chunks: Sequence[Chunk]) -> tuple[PlanTask, ...]:
    """Turn the steps of a solution into tasks: a sweep that goes on in the same mode and place is one task."""
    sequence, schedule = solution.sequence, solution.schedule
    tasks: list[PlanTask] = []
    owner: dict[int, int] = {}
    for step, (operation, cost) in enumerate(zip(sequence.operations, sequence.costs, strict=True)):
        needs = tuple(owner[before] for before in sequence.predecessors[step])
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
    return tuple(_timed(task, facts, chunks) for task in tasks)


def _continues(task: PlanTask, earlier: PlanTask, schedule: Schedule) -> bool:
    """Whether a task goes on with a sweep without a pause."""
    pause = schedule.tasks[task.steps[0]].start - schedule.tasks[earlier.steps[-1]].finish
    return (earlier.mode, earlier.machine, 0) == (task.mode, task.machine, pause)


def _timed(task: PlanTask, facts: TapeFacts, chunks: Sequence[Chunk]) -> PlanTask:
    """Add the predicted time to a task."""
    if task.mode is Mode.MULTIPLY:
        return replace(task, seconds=product_seconds(cost_model(), task.fma), releases_lock=True)
    seconds, releases_lock = predicted_seconds(facts, _joined(chunks, task.swept), _directions(task, chunks))
    return replace(task, seconds=seconds, releases_lock=releases_lock)


def _directions(task: PlanTask, chunks: Sequence[Chunk]) -> int:
    """Directions that a sweep carries: columns of its Jacobian in tangent mode, rows in adjoint mode."""
    return chunks[task.first].n if task.mode is Mode.TANGENT else chunks[task.last].m


def _joined(chunks: Sequence[Chunk], links: Sequence[int]) -> Chunk:
    """Join the chunks of consecutive links."""
    parts = [chunks[link] for link in links]
    if len(parts) == 1:
        return parts[0]
    entries = tuple(sorted(entry for part in parts for entry in part.entries))
    return Chunk(
        parts[0].sources,
        parts[-1].targets,
        entries,
        parts[0].n,
        parts[-1].m,
        sum(part.edges for part in parts),
    )


def _compile(
    tape: Tape, structure: Structure, facts: TapeFacts, chunks: Sequence[Chunk], task: PlanTask
) -> Sweep | None:
    """Compile the links that a task sweeps through."""
    if task.mode is Mode.MULTIPLY:
        return None
    chunk = _joined(chunks, task.swept)
    return compile_sweep(tape, structure, facts, chunk, task.mode, _directions(task, chunks))
