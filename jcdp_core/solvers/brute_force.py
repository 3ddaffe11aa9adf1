"""Every elimination sequence, every schedule: slow beyond any use, and short enough to be believed.

It is the oracle that the tests measure all other solvers with, so it shares no search with them: only the
data types, what a step costs, and which steps a problem allows.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from jcdp_core.errors import SolverError
from jcdp_core.operation import Action, Mode, Operation
from jcdp_core.schedule import Schedule, Task
from jcdp_core.sequence import EliminationSequence, operation_cost
from jcdp_core.solvers.problem import Problem
from jcdp_core.solvers.solution import Solution

__all__ = ["solve_brute_force"]

_Predecessors: TypeAlias = tuple[tuple[int, ...], ...]

_LONGEST: Final = 5
"""Links of the longest chain, which takes a second or two."""


def solve_brute_force(problem: Problem) -> Solution:
    """Solve exactly by trying everything.

    Eliminations go through one link at a time: a longer one does the same work on one machine in one piece,
    so it cannot finish earlier.

    Notes
    -----
    300 sequences for 5 links, each with up to some thousand orders of its steps.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> solve_brute_force(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=2)).makespan
    47
    """
    chain = problem.chain
    if len(chain) > _LONGEST:
        raise SolverError(f"brute force takes at most {_LONGEST} links, not {len(chain)}; use method='exact'")
    if problem.pools_matter and problem.machines != 1:
        raise SolverError("brute force gives each step one machine; use method='exact' for shared memory")
    problem.check_feasible()
    best: tuple[EliminationSequence, Schedule] | None = None
    nodes = 0
    useful = problem.useful_machines
    for steps in _sequences(problem, 0, len(chain)):
        sequence = EliminationSequence.from_operations(chain, steps)
        predecessors = sequence.predecessors
        for order in _orders(predecessors, ()):
            nodes += 1
            schedule = _place_in_order(sequence.costs, predecessors, order, useful)
            if best is None or schedule.makespan < best[1].makespan:
                best = sequence, schedule
    assert best is not None  # noqa: S101 - feasible problems have a sequence; tells the type checker
    sequence, schedule = best[0], replace(best[1], machines=problem.machines or useful)
    return Solution(
        chain,
        sequence,
        schedule,
        lower_bound=schedule.makespan,
        method="brute_force",
        nodes=nodes,
        machines=problem.machines,
    )


def _sequences(problem: Problem, i: int, j: int) -> Iterator[tuple[Operation, ...]]:
    """Yield all ways to make the Jacobian between two positions."""
    tangent, adjoint = problem.tangent_allowed(j - 1), problem.adjoint_allowed(i, i)
    if j - i == 1:
        modes = (Mode.TANGENT,) * tangent + (Mode.ADJOINT,) * adjoint
        steps = [Operation(Action.ACCUMULATE, mode, i, None, j) for mode in modes]
        yield (min(steps, key=lambda step: operation_cost(problem.chain, step)),)
        return
    if problem.matrix_free and tangent:
        step = Operation(Action.ELIMINATE, Mode.TANGENT, i, j - 1, j)
        yield from ((*steps, step) for steps in _sequences(problem, i, j - 1))
    if problem.matrix_free and adjoint:
        step = Operation(Action.ELIMINATE, Mode.ADJOINT, i, i + 1, j)
        yield from ((*steps, step) for steps in _sequences(problem, i + 1, j))
    for k in range(i + 1, j):
        step = Operation(Action.ELIMINATE, Mode.MULTIPLY, i, k, j)
        for later in _sequences(problem, k, j):
            yield from ((*later, *earlier, step) for earlier in _sequences(problem, i, k))


def _orders(predecessors: _Predecessors, begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield all orders of the steps that respect precedence."""
    if len(begun) == len(predecessors):
        yield begun
    for index, needed in enumerate(predecessors):
        if index not in begun and all(step in begun for step in needed):
            yield from _orders(predecessors, (*begun, index))


def _place_in_order(
    costs: tuple[int, ...], predecessors: _Predecessors, order: tuple[int, ...], machines: int
) -> Schedule:
    """Start the steps in the given order, each as early as possible; some order gives an optimal schedule."""
    free = [0] * machines
    tasks: dict[int, Task] = {}
    for index in order:
        machine = free.index(min(free))
        start = max(free[machine], *(tasks[step].finish for step in predecessors[index]), 0)
        free[machine] = start + costs[index]
        tasks[index] = Task(index, machine, start, free[machine], (machine,))
    return Schedule(tuple(tasks[index] for index in range(len(costs))), machines)
