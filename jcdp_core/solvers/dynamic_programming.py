"""The paper's dynamic program: fill the table, walk back through it, place the steps on machine pools."""

from itertools import accumulate

from jcdp_core.arguments import expect
from jcdp_core.errors import SolverError
from jcdp_core.operation import Action, Mode, Operation
from jcdp_core.schedule import Schedule, Task
from jcdp_core.sequence import EliminationSequence
from jcdp_core.solvers.dp_table import MakespanTable
from jcdp_core.solvers.problem import Problem
from jcdp_core.solvers.solution import Solution

__all__ = ["makespans", "solve_dynamic_programming"]


def solve_dynamic_programming(problem: Problem) -> Solution:
    """Solve by the recurrence of the paper: optimal on one machine and on unlimited ones, good between.

    On m machines the recurrence looks at schedules only in which each product splits its pool in two or runs
    its factors one after the other. The lower bound is the larger of the unlimited makespan and the least
    work per machine. Ties are broken as the paper's tables do.

    Notes
    -----
    O(q³ m log m) time, O(q² m) memory.

    The tape of an elimination holds all links that it runs through, and a memory limit applies to their sum,
    as in the paper. Where the sum is too large the steps are split; that does not change the makespan.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2 and 3. A product that splits the machines l, …, u by s gives the second
    factor l+s, …, u; the paper prints u-s+1, …, u, which has the wrong size unless the halves are equal.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> solve_dynamic_programming(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]))).makespan
    47
    """
    problem.check_feasible()
    table = MakespanTable(problem)
    steps, splits = _steps(table)
    useful = table.machines
    if problem.machines is None:
        splits, useful = _unlimited_splits(steps)
    sequence = EliminationSequence.from_operations(problem.chain, steps)
    tasks = _tasks(sequence, _pools(steps, splits, useful))
    schedule = Schedule(tuple(tasks), problem.machines or useful)
    bound = _lower_bound(problem, table)
    return Solution(
        problem.chain, sequence, schedule, lower_bound=bound, method="dp", machines=problem.machines
    )


def makespans(problem: Problem) -> tuple[int, ...]:
    """Return the dynamic program's makespan for each number of machines up to that of the problem.

    Parameters
    ----------
    problem : Problem
        Chain, machines (finite) and constraints. With shared memory, numbers of machines that are infeasible
        raise.

    Returns
    -------
    tuple of int, length machines
        Makespans for 1, 2, …, machines (fma), from one table.

    Raises
    ------
    SolverError
        If the machines of the problem are unlimited.
    ArgumentTypeError
        If the argument is no problem.
    InfeasibleError
        If no plan is possible for one of the numbers of machines.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> makespans(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=3))
    (47, 47, 47)
    """
    expect(problem, Problem, "problem", "give Problem(chain, machines=…)")
    problem.check_feasible()
    if problem.machines is None:
        raise SolverError("machines=None has no list of numbers of machines; give the largest one")
    table = MakespanTable(problem)
    rows = [min(machines, table.machines) for machines in range(1, problem.machines + 1)]
    values = [table.value(0, table.length, row) for row in rows]
    if values[0] >= table.infeasible:
        problem.check_feasible(pool_size=1)
    return tuple(values)


def _lower_bound(problem: Problem, table: MakespanTable) -> int:
    """Return the larger of the unlimited makespan and the least work per machine."""
    if problem.machines is None or problem.machines == 1:
        return table.value(0, table.length, table.machines)
    unlimited = table.value(0, table.length, 0)
    if problem.pools_matter:
        # Any step may find itself on all machines, with all their memory: relax to that.
        relaxed = Problem(problem.chain, 1, problem.matrix_free, problem.edge_limit(problem.machines))
        work = MakespanTable(relaxed).value(0, table.length, 1)
    else:
        work = table.value(0, table.length, 1)
    return max(unlimited, -(-work // problem.machines))


def _steps(table: MakespanTable) -> tuple[list[Operation], list[int]]:
    """Walk back from the whole chain; return the steps and, for products, the machines of the later factor.

    Later factors come before earlier ones, operands before the steps that need them. A split of 0 means that
    the factors do not share out the machines.
    """
    steps, splits = [], []
    open_cells = [(0, table.length, table.machines, Mode.TANGENT)]
    while open_cells:
        i, j, row, reader = open_cells.pop()
        step, split = _choose(table, i, j, row, reader)
        steps.append(step)
        splits.append(split)
        shares = (split, row - split) if split else (row, row)
        operands = zip(step.operands, shares, strict=False)
        open_cells += [(*operand, share, step.mode) for operand, share in operands]
    return steps[::-1], splits[::-1]


def _unlimited_splits(steps: list[Operation]) -> tuple[list[int], int]:
    """Give each factor of a product as many machines as it has accumulations, which all start at zero."""
    links = max(step.j for step in steps)
    accumulated = [0] * (links + 1)
    for step in steps:
        accumulated[step.j] += step.action is Action.ACCUMULATE
    before = list(accumulate(accumulated))
    splits = [0] * len(steps)
    for index, step in enumerate(steps):
        if step.mode is Mode.MULTIPLY:
            (first, last), _ = step.operands
            splits[index] = before[last] - before[first]
    return splits, before[-1]


def _pools(steps: list[Operation], splits: list[int], machines: int) -> list[tuple[int, ...]]:
    """Return the machines of each step: all for the last one, whose operands get them or share them out."""
    handed = {(steps[-1].i, steps[-1].j): tuple(range(machines))}
    pools = []
    for step, split in zip(reversed(steps), reversed(splits), strict=True):
        pool = handed.pop((step.i, step.j))
        pools.append(pool)
        shares = (pool[:split], pool[split:]) if split else (pool, pool)
        handed.update(zip(step.operands, shares, strict=False))
    return pools[::-1]


def _tasks(sequence: EliminationSequence, pools: list[tuple[int, ...]]) -> list[Task]:
    """Start each step as soon as the whole pool is free, on the pool's lowest machine.

    That respects precedence, too: the steps that a step needs ran on parts of its pool.
    """
    free = [0] * (max(pools[-1]) + 1)
    tasks = []
    for index, (cost, pool) in enumerate(zip(sequence.costs, pools, strict=True)):
        start = max(free[machine] for machine in pool)
        for machine in pool:
            free[machine] = start + cost
        tasks.append(Task(index, pool[0], start, start + cost, pool))
    return tasks


def _choose(table: MakespanTable, i: int, j: int, row: int, reader: Mode) -> tuple[Operation, int]:
    """Find the last step for the positions i to j on the machines of a row, and the split of a product.

    Of two equally good accumulations it is the one in the mode of the step that reads it, which may then go
    on with it as one sweep.
    """
    if j - i == 1:
        problem, value = table.problem, table.value(i, j, row)
        link, pool_size = problem.chain.links[i], row or problem.machines or 1
        tangent = link.tangent and link.n * link.tangent_cost == value
        adjoint = problem.adjoint_allowed(i, i, pool_size) and link.m * link.adjoint_cost == value
        mode = Mode.ADJOINT if not tangent or (adjoint and reader is Mode.ADJOINT) else Mode.TANGENT
        return Operation(Action.ACCUMULATE, mode, i, None, j), 0
    mode, k, split = table.last_step(i, j, row)
    return Operation(Action.ELIMINATE, mode, i, k, j), split
