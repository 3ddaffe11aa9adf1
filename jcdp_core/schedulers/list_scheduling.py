"""List scheduling: whenever a machine is free it starts the ready step that comes first in a list."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from jcdp_core.schedule import Schedule
from jcdp_core.schedulers.scheduling import Scheduling, machine_count, place, simple_bound, tails
from jcdp_core.sequence import EliminationSequence

__all__ = ["highest_level_first", "hu", "list_schedule"]


def hu(sequence: EliminationSequence, machines: int | None) -> Scheduling:
    """Schedule by level: the steps farthest from the last one, counted in steps, come first; ties by cost.

    Optimal if all steps cost the same; here they do not.

    Parameters
    ----------
    sequence : EliminationSequence
        The steps.
    machines : int or None
        Number of machines; None for as many as can be used.

    Returns
    -------
    Scheduling
        Schedule and lower bound.

    Notes
    -----
    O(p log p) for p steps.

    References
    ----------
    T. C. Hu, Parallel sequencing and assembly line problems, Operations Research 9 (1961).

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> sequence = solve(JacobianChain.from_sizes([3, 2, 5], [7, 11])).sequence
    >>> hu(sequence, 2).schedule.makespan
    47
    """
    levels = [0] * len(sequence)
    for index, successor in reversed(list(enumerate(sequence.successors))):
        levels[index] = 0 if successor is None else levels[successor] + 1
    return _scheduling(
        sequence, machines, [(-level, -c) for level, c in zip(levels, sequence.costs, strict=True)]
    )


def highest_level_first(sequence: EliminationSequence, machines: int | None) -> Scheduling:
    """Schedule by remaining cost: the steps with the most expensive path to the end come first.

    Parameters
    ----------
    sequence : EliminationSequence
        The steps.
    machines : int or None
        Number of machines; None for as many as can be used.

    Returns
    -------
    Scheduling
        Schedule and lower bound.

    Notes
    -----
    O(p log p) for p steps.

    References
    ----------
    R. L. Graham, Bounds on multiprocessing timing anomalies, SIAM J. Appl. Math. 17 (1969), on list
    schedules.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> sequence = solve(JacobianChain.from_sizes([3, 2, 5], [7, 11])).sequence
    >>> highest_level_first(sequence, 2).optimal
    True
    """
    return _scheduling(sequence, machines, [-tail for tail in tails(sequence)])


def list_schedule(sequence: EliminationSequence, machines: int, priorities: Sequence[Any]) -> Schedule:
    """Run the list schedule of given priorities.

    Parameters
    ----------
    sequence : EliminationSequence
        The steps.
    machines : int
        Number of machines.
    priorities : sequence of comparable
        One per step; the smallest comes first, ties go to the earlier step.

    Returns
    -------
    Schedule
        The schedule; no machine is idle while a step is ready.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Operation
    >>> steps = map(Operation.parse, ["ACC TAN (0 1)", "ACC TAN (1 2)", "ELI MUL (0 1 2)"])
    >>> sequence = EliminationSequence.from_operations(JacobianChain.from_sizes([3, 2, 5], [7, 11]), steps)
    >>> [task.start for task in list_schedule(sequence, 1, [1, 0, 0]).tasks]
    [22, 0, 43]
    """
    successors = sequence.successors
    waiting_for = [len(needed) for needed in sequence.predecessors]
    ready = [(priorities[index], index) for index, count in enumerate(waiting_for) if count == 0]
    heapify(ready)
    running: list[tuple[int, int]] = []
    starts = [0] * len(sequence)
    time = 0
    while ready or running:
        while ready and len(running) < machines:
            _, index = heappop(ready)
            starts[index] = time
            heappush(running, (time + sequence.costs[index], index))
        time = running[0][0]
        while running and running[0][0] == time:
            _, index = heappop(running)
            successor = successors[index]
            if successor is not None:
                waiting_for[successor] -= 1
                if waiting_for[successor] == 0:
                    heappush(ready, (priorities[successor], successor))
    return place(sequence, starts, machines)


def _scheduling(sequence: EliminationSequence, machines: int | None, priorities: Sequence[Any]) -> Scheduling:
    """Run the list schedule and compare it with the simple lower bound."""
    count = machine_count(sequence, machines)
    return Scheduling(list_schedule(sequence, count, priorities), simple_bound(sequence, count))
