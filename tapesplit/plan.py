"""Plans: how the Jacobian of every tape of one structure is computed, and the numbers behind that choice."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

from jcdp_core import ElementalJacobian, JacobianChain, Mode, Solution, solve
from tapesplit.chunks import Chunk, chunk_chain, cut_into_chunks
from tapesplit.facts import TapeFacts, facts_of, graph_of
from tapesplit.graph import TapeGraph
from tapesplit.separators import Separator, find_separators
from tapesplit.structure import Structure
from tapesplit.sweep import Sweep, compile_sweep
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
    """

    mode: Mode
    first: int
    last: int
    swept: tuple[int, ...]
    needs: tuple[int, ...]
    steps: tuple[int, ...]
    machine: int
    fma: int


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


def make_plan(
    tape: Tape,
    structure: Structure,
    *,
    machines: int = 1,
    method: str = "auto",
    memory_limit: int | None = None,
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
        Number of machines to schedule for.
    method
        "auto", "dp", "heuristic", "exact", or "tangent" or "adjoint" for one plain sweep.
    memory_limit
        Edges that an adjoint elimination may run through.
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
    separators = () if plain else find_separators(graph, max_links=max_links)
    chunks = cut_into_chunks(graph, separators)
    if plain:
        chain = _one_mode_chain(chunks[0], plain)
        reason = f"method {method!r} was asked for"
    else:
        chain = chunk_chain(chunks)
        reason = (
            "cut at narrow interfaces" if separators else "no interface is narrow enough for a cut to pay"
        )
    solver = "dp" if plain or method == "auto" else method
    solution = solve(chain, machines=machines, method=solver, memory_limit=memory_limit)
    tasks = _plan_tasks(solution)
    return JacobianPlan(
        name=tape.name,
        structure=structure,
        graph=graph,
        separators=separators,
        chunks=chunks,
        chain=chain,
        solution=solution,
        tasks=tasks,
        sweeps=tuple(_compile(tape, structure, facts, chunks, task) for task in tasks),
        machines=machines,
        shapes=(tape.shape(tape.output or 0), *(tape.shape(i) for i in range(tape.inputs))),
        reason=reason,
    )


def _one_mode_chain(chunk: Chunk, mode: Mode) -> JacobianChain:
    """Return the chain of one link that allows one mode only."""
    link = ElementalJacobian(
        chunk.n, chunk.m, max(chunk.edges, 1), tangent=mode is Mode.TANGENT, adjoint=mode is Mode.ADJOINT
    )
    return JacobianChain((link,))


def _plan_tasks(solution: Solution) -> tuple[PlanTask, ...]:
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
        if earlier and (earlier.mode, earlier.machine) == (task.mode, task.machine):
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
    return tuple(tasks)


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
    directions = chunks[task.first].n if task.mode is Mode.TANGENT else chunks[task.last].m
    return compile_sweep(tape, structure, facts, _joined(chunks, task.swept), task.mode, directions)
