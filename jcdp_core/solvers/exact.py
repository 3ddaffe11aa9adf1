"""The exact solver: labels, a quick schedule, and a search that closes the gap between them."""

from contextlib import suppress
from dataclasses import replace
from operator import attrgetter, itemgetter

from jcdp_core.errors import SolverError
from jcdp_core.solvers.deadline import Deadline, OutOfTimeError
from jcdp_core.solvers.dynamic_programming import solve_dynamic_programming
from jcdp_core.solvers.labels import LabelTable, label_table
from jcdp_core.solvers.level_order import depth_first, schedule_tree
from jcdp_core.solvers.problem import Problem
from jcdp_core.solvers.reversed_search import ReversedSearch
from jcdp_core.solvers.solution import Solution
from jcdp_core.solvers.steps import Placement, StepTable, single_link_steps
from jcdp_core.solvers.write_down import write_down

__all__ = ["search_sequences", "solve_exact"]

_JOINED = 48
"""Links beyond which so many labels are joined that their trees suffer."""


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
    return search_sequences(problem, "exact")


def search_sequences(problem: Problem, method: str, node_limit: int | None = None) -> Solution:
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
        Never worse than that of the dynamic program, unless the dynamic program is too large to run.

    Raises
    ------
    InfeasibleError
        If a link has no mode that is allowed.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> search_sequences(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11])), "exact").nodes
    0
    """
    problem.check_feasible()
    deadline = Deadline(problem.time_limit)
    try:
        table = single_link_steps(problem, deadline.check)
        labels, bounding = _labels(table, deadline)
    except OutOfTimeError:
        return replace(solve_dynamic_programming(problem), method=method, nodes=0)
    makespan, placements = _first_schedule(table, labels, deadline)
    if bounding and table.length > _JOINED and makespan > labels.makespans[table.whole][0]:
        with suppress(OutOfTimeError):
            other = _first_schedule(table, _sample(table, deadline, 16), deadline)
            makespan, placements = min((makespan, placements), other, key=itemgetter(0))
    search = ReversedSearch(table, labels, makespan, deadline.check)
    if not bounding:
        search.bound = 0
    proved = _run(search, deadline, node_limit) and bounding
    sequence, schedule = write_down(problem, table, search.placements or placements)
    # What is written down may be shorter than what was found, if that was not proved to be the best.
    found = Solution(
        problem.chain,
        sequence,
        schedule,
        schedule.makespan if proved else search.bound,
        method,
        nodes=search.nodes,
        machines=problem.machines,
    )
    return found if found.optimal else _better(found, problem)


def _better(found: Solution, problem: Problem) -> Solution:
    """Return the solution, or that of the dynamic program if it is shorter, with what both have proved."""
    try:
        program = solve_dynamic_programming(problem)
    except SolverError:  # its table would be too large
        return found
    best = min(found, program, key=attrgetter("makespan"))
    bound = max(found.lower_bound, program.lower_bound)
    return replace(best, lower_bound=bound, method=found.method, nodes=found.nodes)


def _labels(table: StepTable, deadline: Deadline) -> tuple[LabelTable, bool]:
    """Build the labels, and tell whether they are bounds.

    All labels take some 0.05 q⁴ µs. Where that is more than half of the time, as few labels as can be made in
    it, without bounds, give better trees than labels that are joined until they fit.
    """
    q, half = table.length, deadline.seconds / 2
    if half >= 5e-8 * q**4:
        return label_table(table, machines=table.machines, on_part=deadline.check), True
    return _sample(table, deadline, max(4, min(int(8e6 * half / q**3), 24))), False


def _sample(table: StepTable, deadline: Deadline, most: int) -> LabelTable:
    """Build a few labels, which are no bounds."""
    return label_table(table, machines=table.machines, on_part=deadline.check, most=most, bounding=False)


def _run(search: ReversedSearch, deadline: Deadline, node_limit: int | None) -> bool:
    """Search within the limits; tell whether it came to its end."""

    def on_node(nodes: int) -> bool:
        within = node_limit is None or nodes <= node_limit
        return within and (nodes % 64 > 0 or not deadline.passed)

    try:
        return search.run(on_node)
    except OutOfTimeError:
        return False
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(
            f"while solving: the best makespan so far is {search.makespan}, the lower bound {search.bound}"
        )
        raise


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
