"""From placed single-link steps to a sequence and a schedule: choose machines, merge runs, order steps."""

from dataclasses import replace

from jcdp_core.operation import Action, Mode, Operation
from jcdp_core.schedule import Schedule, Task
from jcdp_core.sequence import EliminationSequence
from jcdp_core.solvers.problem import Problem
from jcdp_core.solvers.search.steps import Placement, StepTable

__all__ = ["write_down"]

_Block = tuple[Operation, int, int, tuple[int, ...]]
"""An operation with its start, its finish and its pool."""


def write_down(
    problem: Problem, table: StepTable, placements: list[Placement]
) -> tuple[EliminationSequence, Schedule]:
    """Turn placed steps into a sequence and a schedule that is no longer.

    Each step starts as soon as its operands are there and enough machines are free, and continues on the
    machines of its operand if it can. Neighboring eliminations by the same mode that follow each other on the
    same machines become one, unless its tape would exceed the memory limit. The placements may be in any
    order.

    Returns
    -------
    sequence : EliminationSequence
        Later factors come before earlier ones, operands before the steps that need them.
    schedule : Schedule
        A step's pool is the machines that it occupies.

    Examples
    --------
    >>> from jcdp_core import JacobianChain
    >>> from jcdp_core.solvers.search.steps import single_link_steps
    >>> problem = Problem(JacobianChain.from_sizes([1, 4, 5, 4], [7, 11, 9]))
    >>> steps = [(0, 0, (7, 1, ())), (7, 1, (11, 1, (0,))), (18, 2, (9, 1, (1,)))]
    >>> sequence, schedule = write_down(problem, single_link_steps(problem), steps)
    >>> [str(operation) for operation in sequence.operations], schedule.makespan
    (['ACC TAN (0 1)', 'ELI TAN (0 1 3)'], 27)
    """
    blocks = _merge(problem, _assign(table, placements))
    ordered: list[_Block] = []
    pending = [(0, table.length)]
    while pending:
        block = blocks[pending.pop()]
        ordered.append(block)
        pending += block[0].operands
    ordered.reverse()
    sequence = EliminationSequence.from_operations(problem.chain, [block[0] for block in ordered])
    tasks = [
        Task(index, pool[0], start, finish, pool) for index, (_, start, finish, pool) in enumerate(ordered)
    ]
    used = 1 + max(pool[-1] for *_, pool in ordered)
    return sequence, Schedule(tuple(tasks), problem.machines or used)


def _assign(table: StepTable, placements: list[Placement]) -> list[_Block]:
    """Give each step its machines, in the order of their starts.

    No step starts later than it was placed: the steps before it finish no later, so they keep no more
    machines busy. Steps with one operand choose first among those that start together, to continue on its
    machines.
    """
    free = [0] * table.machines
    made: dict[int, _Block] = {}
    for _, part, step in sorted(placements, key=lambda item: (item[0], len(item[2][2]) != 1, -item[1])):
        duration, occupied, needs = step
        start = max([sorted(free)[occupied - 1], *(made[need][2] for need in needs)])
        near = {machine for need in needs for machine in made[need][3]}
        idle = [machine for machine, since in enumerate(free) if since <= start]
        idle.sort(key=lambda machine: (machine not in near, -free[machine], machine))
        pool = tuple(sorted(idle[:occupied]))
        for machine in pool:
            free[machine] = start + duration
        made[part] = table.operation(part, step), start, start + duration, pool
    return list(made.values())


def _merge(problem: Problem, blocks: list[_Block]) -> dict[tuple[int, int], _Block]:
    """Join each elimination with the one before it where both can run as one step."""
    merged: dict[tuple[int, int], _Block] = {}
    for operation, start, finish, pool in blocks:
        longer, begin = operation, start
        if operation.action is Action.ELIMINATE and operation.mode is not Mode.MULTIPLY:
            before, earlier, end, machines = merged[operation.operands[0]]
            if before.k is not None and before.mode is operation.mode and (end, machines) == (start, pool):
                joined = replace(operation, k=before.k)
                if _fits(problem, joined, len(pool)):
                    del merged[before.i, before.j]
                    longer, begin = joined, earlier
        merged[operation.i, operation.j] = longer, begin, finish, pool
    return merged


def _fits(problem: Problem, operation: Operation, pool_size: int) -> bool:
    """Tell whether the tape of an elimination fits the memory of its pool."""
    swept = operation.swept
    return operation.mode is Mode.TANGENT or problem.adjoint_allowed(swept[0], swept[-1], pool_size)
