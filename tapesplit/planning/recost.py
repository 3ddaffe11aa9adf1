"""The same elimination sequence on the same machines, at other costs."""

from dataclasses import replace

from jcdp_core import EliminationSequence, JacobianChain, Schedule, Solution, Task

__all__ = ["recost", "retimed"]


def recost(solution: Solution, chain: JacobianChain, lower_bound: int) -> Solution:
    """Return a solution's steps, order and machines with the costs of another chain.

    Both chains have the same length; `lower_bound` holds for the makespan on the other one. Each step starts
    as soon as its machine and its operands are free, in the order of the old starts.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> cheap = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    >>> dear = JacobianChain.from_sizes([3, 2, 5], [70, 110])
    >>> recost(solve(cheap), dear, lower_bound=1).makespan
    470
    """
    sequence = EliminationSequence.from_operations(chain, solution.sequence.operations)
    schedule = retimed(solution.schedule, sequence)
    return replace(solution, chain=chain, sequence=sequence, schedule=schedule, lower_bound=lower_bound)


def retimed(schedule: Schedule, sequence: EliminationSequence) -> Schedule:
    """Return the order and machines of a schedule with the costs of a sequence of the same steps.

    Each step starts as soon as its machine and its operands are free, in the order of the old starts.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> solution = solve(JacobianChain.from_sizes([3, 2, 5], [7, 11]))
    >>> slow = EliminationSequence(solution.sequence.operations, (100, 10))
    >>> retimed(solution.schedule, slow).makespan
    110
    """
    old, predecessors = schedule.tasks, sequence.predecessors
    free: dict[int, int] = {}
    tasks: dict[int, Task] = {}
    for step in sorted(range(len(old)), key=lambda step: (old[step].start, step)):
        operands = [tasks[before].finish for before in predecessors[step]]
        start = max([free.get(old[step].machine, 0), *operands])
        finish = start + sequence.costs[step]
        # Only its own machine is kept free for a step: at other costs, steps with a common pool can overlap.
        tasks[step] = Task(step, old[step].machine, start, finish, (old[step].machine,))
        free[old[step].machine] = finish
    return Schedule(tuple(tasks[step] for step in range(len(old))), schedule.machines)
