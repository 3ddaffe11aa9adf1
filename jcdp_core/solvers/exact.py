"""The exact solver: labels, a quick schedule, and a search that closes the gap between them."""

from dataclasses import replace
from functools import partial
from math import inf
from operator import itemgetter
from time import perf_counter

from jcdp_core.solvers.dynamic_programming import solve_dynamic_programming
from jcdp_core.solvers.labels import LabelTable, label_table
from jcdp_core.solvers.level_order import depth_first, highest_level_first
from jcdp_core.solvers.problem import Problem
from jcdp_core.solvers.reversed_search import ReversedSearch
from jcdp_core.solvers.solution import Solution
from jcdp_core.solvers.steps import Placement, StepTable, single_link_steps
from jcdp_core.solvers.write_down import write_down

__all__ = ["branch_and_bound", "solve_exact"]


class _OutOfTimeError(Exception):
    """The time limit was reached before the search began."""


def solve_exact(problem: Problem) -> Solution:
    """Find a sequence and a schedule with the least makespan of all, and prove it.

    The optimum is over all elimination sequences of the problem and all their schedules without preemption.
    With a memory limit each elimination must fit its tape, as in the paper's recurrences; since a long
    elimination is a run of short ones at the same cost, only single links are ever tested. With shared memory
    a step may reserve t machines while it runs, to tape t times as much; nothing else runs on them then.

    Parameters
    ----------
    problem : Problem
        Chain, machines and constraints. With a time limit the solver stops after about that many seconds,
        with the best solution that it knows and the bound that it has proved.

    Returns
    -------
    Solution
        `optimal` tells whether the proof was finished; `nodes` counts the states of the search.

    Raises
    ------
    InfeasibleError
        If a link has no mode that is allowed.

    Notes
    -----
    Exponential in the worst case: the problem contains P‖C_max. Chains of eight links take a millisecond,
    most chains of sixteen some ten. A KeyboardInterrupt passes through with a note of what was found.

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
    return branch_and_bound(problem, "exact")


def branch_and_bound(problem: Problem, method: str, node_limit: int | None = None) -> Solution:
    """Run the exact solver, up to a number of nodes.

    Parameters
    ----------
    problem : Problem
        Chain, machines and constraints.
    method : str
        Name for the solution.
    node_limit : int, optional
        Nodes after which the search stops.

    Returns
    -------
    Solution
        Never worse than that of the dynamic program.

    Raises
    ------
    InfeasibleError
        If a link has no mode that is allowed.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> branch_and_bound(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11])), "exact").nodes
    0
    """
    problem.check_feasible()
    deadline = inf if problem.time_limit is None else perf_counter() + problem.time_limit
    table = single_link_steps(problem)
    try:
        labels = label_table(table, machines=table.machines, on_diagonal=partial(_check_time, deadline))
    except _OutOfTimeError:
        return replace(solve_dynamic_programming(problem), method=method, nodes=0)
    makespan, placements = _first_schedule(table, labels)
    search = ReversedSearch(table, labels, makespan)
    proved = _run(search, deadline, node_limit)
    bound = search.makespan if proved else search.bound
    if not proved:
        program = solve_dynamic_programming(problem)
        if program.makespan < search.makespan:
            optimal = program.makespan == bound
            return replace(program, lower_bound=bound, optimal=optimal, method=method, nodes=search.nodes)
    sequence, schedule = write_down(problem, table, search.placements or placements)
    return Solution(
        problem.chain,
        sequence,
        schedule,
        search.makespan,
        bound,
        search.makespan == bound,
        method,
        nodes=search.nodes,
        machines=problem.machines,
    )


def _check_time(deadline: float) -> None:
    """Raise if the time is up."""
    if perf_counter() > deadline:
        raise _OutOfTimeError


def _run(search: ReversedSearch, deadline: float, node_limit: int | None) -> bool:
    """Search within the limits; tell whether it came to its end."""

    def on_node(nodes: int) -> bool:
        within = node_limit is None or nodes <= node_limit
        return within and (nodes % 64 > 0 or perf_counter() <= deadline)

    try:
        return search.run(on_node)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(
            f"while solving: the best makespan so far is {search.makespan}, the lower bound {search.bound}"
        )
        raise


def _first_schedule(table: StepTable, labels: LabelTable) -> tuple[int, list[Placement]]:
    """Schedule the trees of the whole chain's labels; return the best makespan and its placements."""
    if table.machines == 1:
        return depth_first(labels.tree(table.whole, 0))
    best = highest_level_first(labels.tree(table.whole, 0), table.machines)
    for label, bound in enumerate(labels.makespans[table.whole]):
        if label and bound < best[0]:
            other = highest_level_first(labels.tree(table.whole, label), table.machines)
            best = min(best, other, key=itemgetter(0))
    return best
