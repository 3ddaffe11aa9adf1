"""Planning: from a tape to the plan for all tapes of its structure.

Cut, solve, predict, compile. Several machines are planned for only where threads are predicted to pay.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, cast

import numpy as np

from jcdp_core import JacobianChain, Mode, Solution, SolverName, solve
from tapesplit.cost.factored import with_ranks
from tapesplit.cost.stored import cost_model
from tapesplit.cost.work import WorkTable, total_work, work_table
from tapesplit.cuts.chunks import Chunk, chunk_chain, cut_into_chunks
from tapesplit.cuts.graph import TapeGraph, graph_of
from tapesplit.cuts.separators import Separator, cut_graph
from tapesplit.planning.compiling import compile_tasks, eliminate_unknowns
from tapesplit.planning.effort import Effort, effort_for, sweep_seconds
from tapesplit.planning.plan import CutReason, JacobianPlan, MachinesReason, PlanTask, seconds_of
from tapesplit.planning.recost import recost
from tapesplit.planning.tasks import plan_tasks, with_shared_steps
from tapesplit.recording.source_lines import note_line_without_rule
from tapesplit.recording.tape import Tape
from tapesplit.rules import without_vjp
from tapesplit.structures.comparison import with_any_zeros
from tapesplit.structures.constants import known_zeros
from tapesplit.structures.dtypes import result_dtypes
from tapesplit.structures.facts import TapeFacts, facts_of
from tapesplit.structures.rows import with_row_part
from tapesplit.structures.structure import Structure
from tapesplit.sweeps.compression import FEWEST_TO_COLOR
from tapesplit.sweeps.prediction import predict_compressed, worth_compiling
from tapesplit.sweeps.row_sweep import RowSweep
from tapesplit.sweeps.sweep import Sweep

__all__ = ["PlanOptions", "make_plan", "usable_cores"]


def usable_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class PlanOptions(NamedTuple):
    """What a plan is asked for.

    Parameters
    ----------
    machines
        Number of machines to schedule for, if threads are predicted to pay; else the plan is for one.
    force_machines
        Schedule for all of them in any case.
    method
        "auto", "dp", "heuristic", "exact", or "tangent" or "adjoint" for one plain sweep.
    cost
        "fma" for the sequence with the fewest multiply-adds (the paper's cost), "runtime" for the one
        that is predicted to be faster where another is.
    memory_limit
        Bytes that derivatives inside of a sweep may take; systems that take more are swept by array steps.
    """

    machines: int
    force_machines: bool
    method: str
    cost: str
    memory_limit: int | None


def make_plan(tape: Tape, structure: Structure, options: PlanOptions) -> JacobianPlan:
    """Plan the Jacobian of a tape.

    The tape's output must depend on an input. Raises ValueError if there is no method of the name in the
    options.
    """
    machines, force_machines, method, cost, memory_limit = options
    facts = with_ranks(facts_of(tape, structure))
    graph, table = graph_of(tape, facts), work_table(facts)
    _check_rules(tape, facts, graph)
    plain = {"tangent": Mode.TANGENT, "adjoint": Mode.ADJOINT}.get(method)
    solver = "dp" if plain or method == "auto" else cast(SolverName, method)  # `solve` refuses other names
    effort: Effort = "thorough" if cost == "fma" or force_machines else effort_for(graph, table)
    counts_fma = cost == "fma"
    drafting = _Drafting(tape, facts, graph, table, plain, solver, effort, counts_fma, memory_limit)
    draft, machines_reason = drafting.on_machines(machines, force=force_machines)
    draft = draft._replace(sweeps=eliminate_unknowns(draft.tasks, draft.sweeps, memory_limit))
    return JacobianPlan(
        name=tape.name,
        structure=_but_for_zeros(structure, facts, draft),
        graph=graph,
        **draft._asdict(),
        machines=1 + max(task.machine for task in draft.tasks),
        shapes=(tape.shape(tape.output or 0), *(tape.shape(i) for i in range(tape.inputs))),
        machines_reason=machines_reason,
        dtypes=result_dtypes(tape, structure),
        uses_blas=sum(task.product_fma for task in draft.tasks) > _BLAS_THREADS,
        step_threads=machines if machines_reason == "steps" else 1,
        memory_limit=memory_limit,
    )


def _but_for_zeros(structure: Structure, facts: TapeFacts, draft: "_Draft") -> Structure:
    """Leave the zeros of constant matrices open, except where systems have no edges for them."""
    fewer = np.flatnonzero(facts.scalar_edges < facts.edges).tolist()
    known = np.array([index for index in fewer if known_zeros(structure.statics[index])], dtype=np.intp)
    if not known.size:
        return structure
    in_systems = np.zeros(facts.scalar.size, dtype=np.bool_)
    for task in draft.tasks:
        if task.form in {"system", "stages"}:
            scalar = facts.scalar if task.form == "system" else facts.scalar_apart
            for link in task.swept:
                entries = draft.chunks[link].entries
                in_systems[entries] |= scalar[entries]
    follows = in_systems & (facts.blocks == 0)
    return with_any_zeros(structure, known[~follows[known]].tolist())


def _check_rules(tape: Tape, facts: TapeFacts, graph: TapeGraph) -> None:
    """Refuse calls that have no derivative in any mode; others may turn out to have none in a sweep."""
    without = [kind.has_no_derivative for kind in facts.kinds]
    for index in graph.entries.tolist() if any(without) else ():
        if without[facts.kind[index]]:
            error = without_vjp(tape.primitives[index], tape.active[index], "the Jacobian")
            note_line_without_rule(error, tape)
            raise error


_WORTH_ROWS: Final = 1.5e-4
"""Predicted seconds of a plan from which on looking for rows to carry together may pay within some calls."""
_ROWS_OF_A_CALL: Final = 3.0e-6
"""The same for each entry of the tape."""
_BLAS_THREADS: Final = 100_000
"""Multiply-adds in products below which threads of BLAS have nothing to do, or next to nothing."""


class _Draft(NamedTuple):
    """A plan in the making, with some fields of `JacobianPlan`; ``sweeps`` are empty until compiled."""

    separators: tuple[Separator, ...]
    chunks: tuple[Chunk, ...]
    solution: Solution
    least_makespan: int | None
    tasks: tuple[PlanTask, ...]
    cut_reason: CutReason
    sweeps: tuple[Sweep | None, ...] = ()


class _Drafting(NamedTuple):
    """Makes drafts of plans from a tape, the facts that are known of it, and the options of the caller."""

    tape: Tape
    facts: TapeFacts
    graph: TapeGraph
    table: WorkTable
    plain: Mode | None
    """The only mode that is allowed, if one is."""
    solver: SolverName
    effort: Effort
    counts_fma: bool
    """Whether the fewest multiply-adds are wanted, not the least time."""
    memory_limit: int | None

    def on_machines(self, machines: int, *, force: bool) -> tuple[_Draft, MachinesReason]:
        """Draft for one machine, and for several if that is forced, or chosen if they are worth it."""
        if force and machines > 1:
            return self.compiled(self.on_several(machines)), "forced"
        draft = self.on_one()
        if machines == 1:
            return draft, "single" if usable_cores() > 1 else "core"
        if not _may_pay(draft.tasks):
            return draft, "light"
        shared = draft._replace(tasks=with_shared_steps(draft.tasks, machines))
        parallel = self.on_several(machines)
        reason = _worth_of_machines(parallel.tasks, draft.tasks)
        if reason == "gain":
            chosen, seconds = parallel, seconds_of(parallel.tasks)
        else:
            chosen, seconds = draft, _WORTH_MACHINES * seconds_of(draft.tasks)
        return (shared, "steps") if seconds_of(shared.tasks) < seconds else (self.compiled(chosen), reason)

    def on_several(self, machines: int) -> _Draft:
        """Draft with cuts that gain nothing on one machine, but let several work at the same time."""
        cuts = () if self.plain else cut_graph(self.graph, spread=True)
        return self.drafted(cuts, machines)

    def on_one(self) -> _Draft:
        """Draft for one machine; directions of rows are carried together where that pays."""
        thorough = self.effort == "thorough"
        cuts = () if self.plain or self.effort == "none" else cut_graph(self.graph, thorough=thorough)
        apart = self.drafted(cuts)
        if cuts and not self.counts_fma:
            apart = self.uncut_if_faster(apart)
        together = self.with_rows(apart)
        if together is None:
            return self.compiled(apart)
        in_rows = together.drafted(())
        if not self.saves(in_rows, apart):
            return self.compiled(apart)
        seconds = seconds_of(in_rows.tasks)
        is_whole = len(apart.chunks) == 1
        if not self.counts_fma and is_whole and together.may_share_seeds(apart.chunks[0], seconds):
            apart = self.compiled(apart)
            if seconds_of(apart.tasks) <= seconds:
                return apart
        in_rows = together.compiled(in_rows)
        if self.exceeds_limit(in_rows):
            apart = self.compiled(apart)
            return in_rows if self.exceeds_limit(apart) else apart
        return in_rows

    def uncut_if_faster(self, cut: _Draft) -> _Draft:
        """Return a draft without cuts instead of one with cuts, if that is predicted to save time."""
        seconds = seconds_of(cut.tasks) - _WORTH_JOINING
        (chunk,) = cut_into_chunks(self.graph, ())
        forward = _rough_seconds(self.table, chunk, chunk.n, adjoint_mode=False)
        backward = _rough_seconds(self.table, chunk, chunk.m, adjoint_mode=True)
        if min(forward, backward) > _STAGED * seconds and not self.may_share_seeds(chunk, seconds):
            return cut
        whole = self.drafted(())
        if self.may_share_seeds(chunk, min(seconds, seconds_of(whole.tasks))):
            whole = self.compiled(whole)
        return whole._replace(cut_reason="slower") if seconds_of(whole.tasks) < seconds else cut

    def with_rows(self, apart: _Draft) -> "_Drafting | None":
        """Add the row part of the tape to the facts; None if there is none, or if looking cannot pay."""
        is_light = seconds_of(apart.tasks) < _WORTH_ROWS + _ROWS_OF_A_CALL * len(self.tape)
        if self.plain is Mode.TANGENT or (is_light and not self.counts_fma):
            return None
        most_fma = _WORTH_TOGETHER * apart.solution.makespan
        facts = with_row_part(self.tape, self.facts, self.graph.entries, most_fma)
        if facts.row_part is None:
            return None
        table = self.table if facts.ranks is self.facts.ranks else work_table(facts)
        return self._replace(facts=facts, table=table)

    def drafted(self, separators: tuple[Separator, ...], machines: int = 1) -> _Draft:
        """Draft with these separators: cut the tape, solve the chain, predict times."""
        facts, table = self.facts, self.table
        chunks = cut_into_chunks(self.graph, separators)
        chain = chunk_chain(chunks, facts, table.spared_edges)
        if self.plain:
            chain = _in_one_mode(chain, self.plain)
        search = partial(solve, machines=machines, method=self.solver, time_limit=_LONGEST_SEARCH)
        solution, least_makespan = search(chain), None
        tasks = plan_tasks(solution, facts, table, chunks)
        if self.may_have_faster_modes(chain, seconds_of(tasks)):
            priced = _priced(chain, table, chunks)
            by_time = search(priced)
            if by_time.makespan <= _CLEARLY * recost(solution, priced, 0).makespan:
                timed = recost(by_time, chain, solution.lower_bound)
                faster = plan_tasks(timed, facts, table, chunks)
                if seconds_of(faster) < _CLEARLY * seconds_of(tasks):
                    solution, least_makespan, tasks = timed, solution.makespan, faster
        reason = self.cut_reason(separators, solution, tasks)
        return _Draft(separators, chunks, solution, least_makespan, tasks, reason)

    def may_have_faster_modes(self, chain: JacobianChain, seconds: float) -> bool:
        """Tell whether it is worth a look if a sequence with more multiply-adds than the fewest is faster."""
        if self.counts_fma or self.plain or seconds < _WORTH_PRICING * len(chain):
            return False
        return len(chain) > 1 or max(chain.sizes) <= _CLEARLY_FEWER * min(chain.sizes)

    def cut_reason(
        self, separators: Sequence[Separator], solution: Solution, tasks: Sequence[PlanTask]
    ) -> CutReason:
        """Tell why the tape is cut, or is not."""
        if self.plain:
            return "asked"
        if not separators:
            if any(task.form == "rows" for task in tasks):
                return "rows"
            return "light" if self.effort == "none" else "wide"
        sizes = solution.chain.sizes
        return "narrow" if min(sizes) < min(sizes[0], sizes[-1]) else "shared"

    def compiled(self, draft: _Draft) -> _Draft:
        """Compile the sweeps of a draft, unless they are; where directions share seeds, times change."""
        if draft.sweeps:
            return draft
        tasks, sweeps = compile_tasks(
            self.tape, self.facts, self.table, draft.chunks, draft.tasks, self.memory_limit
        )
        return draft._replace(tasks=tasks, sweeps=sweeps)

    def saves(self, in_rows: _Draft, apart: _Draft) -> bool:
        """Tell whether a draft carries rows together, and is clearly faster if time counts."""
        if all(task.form != "rows" for task in in_rows.tasks):
            return False
        return self.counts_fma or seconds_of(in_rows.tasks) < _WORTH_TOGETHER * seconds_of(apart.tasks)

    def exceeds_limit(self, draft: _Draft) -> bool:
        """Tell whether the sweeps of a compiled draft need more memory than they may; rows stay together."""
        if self.memory_limit is None:
            return False
        least = [
            sweep.together_bytes if isinstance(sweep, RowSweep) else sweep.least_bytes
            for sweep in draft.sweeps
            if sweep is not None
        ]
        return max(least, default=0) > self.memory_limit

    def may_share_seeds(self, chunk: Chunk, seconds: float) -> bool:
        """Tell whether one sweep through a chunk might be worth compiling instead of one that takes so long.

        Its directions share a single seed at best. They need many where a product is dense, and where rows
        share all that they depend on.
        """
        work, part = total_work(self.table, chunk.entries), self.facts.row_part
        if min(chunk.n, chunk.m) < FEWEST_TO_COLOR or work.dense or (part and part.rows_share_all):
            return False
        return predict_compressed(self.table, chunk, 1).seconds + worth_compiling(work) < seconds


def _priced(chain: JacobianChain, table: WorkTable, chunks: Sequence[Chunk]) -> JacobianChain:
    """Price each link by the predicted time of one direction; the unit is a multiply-add of a product."""
    directions = min(chain.sizes)

    def price(chunk: Chunk, *, adjoint_mode: bool) -> int:
        seconds = _rough_seconds(table, chunk, directions, adjoint_mode=adjoint_mode)
        return max(round(seconds / directions / cost_model().product_fma), 1)

    links = [
        replace(
            link, tangent_cost=price(chunk, adjoint_mode=False), adjoint_cost=price(chunk, adjoint_mode=True)
        )
        for link, chunk in zip(chain.links, chunks, strict=True)
    ]
    return JacobianChain(tuple(links))


def _rough_seconds(table: WorkTable, chunk: Chunk, directions: int, *, adjoint_mode: bool) -> float:
    """Predict a sweep through a chunk roughly."""
    return sweep_seconds(table, chunk.entries, directions, chunk.n + chunk.m, adjoint_mode=adjoint_mode)


_LONGEST_SEARCH: Final = 5.0
"""Seconds after which a search takes the best plan that it has found; a function needs up to four."""
_WORTH_A_THREAD: Final = 3.0e-4
"""Seconds that a task must take before another thread can be worth its while."""
_TASKS_TO_SHARE: Final = 4
"""So many such tasks, together, make it likely that cuts leave one to each of two threads."""
_WORTH_MACHINES: Final = 0.8
"""Part of the time on one machine that several may take: small gains are within the error of predictions."""
_CLEARLY_FEWER: Final = 6
"""Times as many columns as rows, or rows as columns, from which on there is no doubt about the mode."""
_CLEARLY: Final = 0.95
"""Part of the predicted time of the sequence with the fewest multiply-adds that another one may take."""
_WORTH_TOGETHER: Final = 0.7
"""Part of the time, or of the multiply-adds, of another plan that carrying rows together may take."""
_WORTH_JOINING: Final = 3.0e-5
"""Seconds that dropping all cuts must save: for less, plans keep them and show where a tape is narrow."""
_STAGED: Final = 4.0
"""Factor by which a rough prediction, which knows no stages, may exceed the time of a sweep in stages."""
_WORTH_PRICING: Final = 3.0e-4
"""Predicted seconds for each link below which a search for a faster sequence costs more than it can save."""


def _may_pay(tasks: Sequence[PlanTask]) -> bool:
    """Whether two threads could share enough work that does not hold the interpreter's lock."""
    return sum(task.seconds for task in tasks if task.releases_lock) > _TASKS_TO_SHARE * _WORTH_A_THREAD


def _worth_of_machines(parallel: Sequence[PlanTask], serial: Sequence[PlanTask]) -> MachinesReason:
    """Tell what several machines are predicted to gain: they work only if that is a fifth at least."""
    if len({task.machine for task in parallel}) == 1:
        return "serial"
    heavy = [task for task in parallel if task.releases_lock and task.seconds >= _WORTH_A_THREAD]
    if len({task.machine for task in heavy}) < 2:
        return "uneven"
    return "gain" if seconds_of(parallel) < _WORTH_MACHINES * seconds_of(serial) else "little"


def _in_one_mode(chain: JacobianChain, mode: Mode) -> JacobianChain:
    """Allow one mode only for the one link of a chain."""
    link = replace(chain.links[0], tangent=mode is Mode.TANGENT, adjoint=mode is Mode.ADJOINT)
    return JacobianChain((link,))
