"""The exact solver: labels, a quick schedule, and a search that closes the gap between them."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from operator import attrgetter, itemgetter
from time import perf_counter
from typing import Final

from jcdp_core.solvers.problem import Problem
from jcdp_core.solvers.search.deadline import Deadline, OutOfTimeError
from jcdp_core.solvers.search.labels import LabelTable, label_table
from jcdp_core.solvers.search.level_order import depth_first, schedule_tree
from jcdp_core.solvers.search.rescheduled import on_enough_machines, rescheduled_program
from jcdp_core.solvers.search.reversed_search import ReversedSearch
from jcdp_core.solvers.search.steps import Placement, StepTable, single_link_steps
from jcdp_core.solvers.search.write_down import write_down
from jcdp_core.solvers.solution import Solution

__all__ = ["search_sequences", "solve_exact"]

_PROGRAM_FIRST: Final = 12
"""Links beyond which the dynamic program takes a fraction of the time that the labels take."""

_JOINED: Final = 48
"""Links beyond which so many labels are joined that their trees suffer: makespans from those alone are half a
percent longer at q = 56, 1.5 % at q = 80 (m = 4)."""

_SHORT: Final = 24
"""Links up to which all labels take so little time that no limit asks for fewer."""

_SPREAD: Final = 20
"""Links beyond which some thousand nodes reach a small part of the tree only: if searches by a few labels get
half of them, makespans are 0.5 % shorter at q = 28 to 40 (m = 3 to 8), in half as much time again."""

_SHARES: Final = 6
"""Parts of the nodes, of which each search by a few labels gets one."""


def solve_exact(problem: Problem) -> Solution:
    """Find a sequence and a schedule with the least makespan of all, and prove it.

    The optimum is over all elimination sequences of the problem and all their schedules without preemption.
    With a memory limit each elimination must fit its tape, as in the paper's recurrences; since a long
    elimination is a run of short ones at the same cost, only single links are ever tested. With shared memory
    a step may reserve t machines while it runs, to tape t times as much; nothing else runs on them then.

    Notes
    -----
    Exponential in the worst case: the problem contains P‖C_max. Chains of eight links take a millisecond,
    most chains of sixteen some ten. Longer ones take no longer than the dynamic program where that is proved
    to be optimal, as on one machine and on unlimited ones. A KeyboardInterrupt passes through with a note of
    what was found.

    References
    ----------
    Märtens & Naumann 2025, Sec. 3, for the problem.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> chain = JacobianChain.from_sizes([3, 1, 1, 2], [6, 8, 6])
    >>> solution = solve_exact(Problem(chain, machines=2))
    >>> solution.makespan, solution.optimal
    (18, True)
    """
    return search_sequences(problem, "exact")


def search_sequences(problem: Problem, method: str, node_limit: int | None = None) -> Solution:
    """Run the exact solver, up to a number of nodes.

    `method` becomes the name of the solver in the solution. That is never longer than the dynamic program's
    plan, unless its table is too large to build, nor than that plan's steps scheduled highest level first,
    unless steps share memory. Raises `InfeasibleError` if a link has no mode that is allowed.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> search_sequences(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11])), "exact").nodes
    0
    """
    problem.check_feasible()
    program = _program(problem)
    if program is not None and program.optimal:
        return replace(program, method=method, nodes=0)
    # The dynamic program is not stopped anyway: the limit is for what follows.
    deadline = Deadline(problem.time_limit)
    try:
        table = single_link_steps(problem, deadline.check)
    except OutOfTimeError:
        return replace(program or rescheduled_program(problem), method=method, nodes=0)
    found = _Found(table.horizon + 1)
    with suppress(OutOfTimeError):
        for most in _few_labels(table, deadline, node_limit):
            found = _glance(table, found, deadline, most, node_limit)
        found = _examine(table, found, deadline, node_limit)
    program = None if found.proved else program or rescheduled_program(problem)
    if program is not None and not found.placements:
        return replace(program, method=method, nodes=0)
    sequence, schedule = write_down(problem, table, found.placements)
    # What is written down may be shorter than what was found, if that was not proved to be the best.
    solution = Solution(
        problem.chain,
        sequence,
        schedule,
        lower_bound=schedule.makespan if found.proved else found.bound,
        method=method,
        nodes=found.nodes,
        machines=problem.machines,
    )
    return solution if program is None else _better(solution, program)


def _program(problem: Problem) -> Solution | None:
    """Solve by the dynamic program first where that takes little time compared with the search.

    Its table has a row for each machine of use: with shared memory these may be far more than links. A single
    row, that for unlimited machines, proves most short chains where each second link can have a machine.
    """
    links = len(problem.chain)
    if links > _PROGRAM_FIRST:
        return rescheduled_program(problem) if problem.useful_machines <= links else None
    return on_enough_machines(problem) if 2 * problem.useful_machines > links else None


@dataclass(frozen=True, slots=True)
class _Found:
    """Hold what is known after a search: the best schedule, the lower bound, whether they meet, and nodes."""

    makespan: int
    placements: list[Placement] = field(default_factory=list)
    bound: int = 0
    proved: bool = False
    nodes: int = 0

    def with_schedule(self, makespan: int, placements: list[Placement]) -> "_Found":
        """Keep the shorter schedule."""
        return replace(self, makespan=makespan, placements=placements) if makespan < self.makespan else self


def _better(found: Solution, program: Solution) -> Solution:
    """Return the solution, or that of the dynamic program if it is shorter, with what both have proved."""
    best = min(found, program, key=attrgetter("makespan"))
    bound = max(found.lower_bound, program.lower_bound)
    return replace(best, lower_bound=bound, method=found.method, nodes=found.nodes)


def _few_labels(table: StepTable, deadline: Deadline, node_limit: int | None) -> tuple[int, ...]:
    """Return the numbers of labels for quick searches before that by all labels; none if there is time.

    To build all labels takes some 0.05 q⁴ µs. Without quick searches first, makespans under a limit of some
    seconds are 2 % longer at q = 40, 1 % at q = 56 (m = 4). The numbers do not depend on the limit, so that a
    longer one goes on where a shorter one ended. With a limit of nodes there are no quick searches unless the
    time is too short for all labels, since what they find depends on the clock.
    """
    tight = 5e-8 * table.length**4 > deadline.seconds / 2
    long = table.length > _SHORT and deadline.seconds < inf and node_limit is None
    return (4, 8, 16, 32) if tight or long else ()


def _glance(
    table: StepTable,
    found: _Found,
    deadline: Deadline,
    most: int,
    node_limit: int | None,
    *,
    timed: bool = True,
) -> _Found:
    """Improve the schedule by a few labels: they are no bounds, so that the search may miss the best.

    If timed, the search takes no longer than the labels.
    """
    begin = perf_counter()
    labels = _sample(table, deadline, most)
    found = found.with_schedule(*_first_schedule(table, labels, deadline))
    search = ReversedSearch(table, labels, found.makespan, on_part=deadline.check)
    end = deadline.within(perf_counter() - begin) if timed else deadline
    found, _ = _search(search, found, end, node_limit)
    return found


def _examine(table: StepTable, found: _Found, deadline: Deadline, node_limit: int | None) -> _Found:
    """Improve the schedule by labels that are bounds, until it is proved to be the best."""
    labels = label_table(table, on_part=deadline.check)
    fresh = not found.placements
    found = found.with_schedule(*_first_schedule(table, labels, deadline))
    bound = labels.makespans[table.whole][0]
    if fresh and found.makespan > bound:
        with suppress(OutOfTimeError):
            if table.length > _JOINED:
                found = found.with_schedule(*_first_schedule(table, _sample(table, deadline, 16), deadline))
            if table.length > _SPREAD and node_limit is not None:
                for most in (2, 4, 8):  # not timed: with a limit of nodes the clock must not decide
                    share = found.nodes + node_limit // _SHARES
                    found = _glance(table, found, deadline, most, share, timed=False)
    search = ReversedSearch(table, labels, found.makespan, bound=bound, on_part=deadline.check)
    found, ended = _search(search, found, deadline, node_limit)
    return replace(found, bound=search.bound, proved=ended)


def _sample(table: StepTable, deadline: Deadline, most: int) -> LabelTable:
    """Build a few labels, which are no bounds."""
    return label_table(table, on_part=deadline.check, most=most, bounding=False)


def _search(
    search: ReversedSearch, found: _Found, deadline: Deadline, node_limit: int | None
) -> tuple[_Found, bool]:
    """Search within the limits; return what is known then, and whether the search came to its end."""

    def on_node(nodes: int) -> bool:
        within = node_limit is None or found.nodes + nodes <= node_limit
        return within and (nodes % 64 > 0 or not deadline.passed)

    ended = False
    try:
        with suppress(OutOfTimeError):
            ended = search.run(on_node)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(
            f"while solving: the best makespan so far is {search.makespan}, the lower bound {search.bound}"
        )
        raise
    better = replace(found, nodes=found.nodes + search.nodes)
    return better.with_schedule(search.makespan, search.placements), ended


def _first_schedule(table: StepTable, labels: LabelTable, deadline: Deadline) -> tuple[int, list[Placement]]:
    """Schedule the trees of the whole chain's labels; return the best makespan and its placements."""
    if table.machines == 1:
        return depth_first(labels.tree(table.whole, 0))
    best = schedule_tree(labels.tree(table.whole, 0), table.machines)
    for label, bound in enumerate(labels.makespans[table.whole]):
        if label and bound < best[0] and not deadline.passed:
            other = schedule_tree(labels.tree(table.whole, label), table.machines)
            best = min(best, other, key=itemgetter(0))
    return best
