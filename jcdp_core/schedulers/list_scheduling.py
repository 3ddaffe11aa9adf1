"""List scheduling: whenever a machine is free it starts the ready step that comes first in a list."""

from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from jcdp_core.schedulers.scheduling import Scheduling, machine_count, place, simple_bound, tails
from jcdp_core.sequence import EliminationSequence

__all__ = ["highest_level_first", "hu", "start_times"]


def hu(sequence: EliminationSequence, machines: int | None) -> Scheduling:
    """Schedule by level: the steps farthest from the last one, counted in steps, come first; ties by cost.

    Optimal if all steps cost the same; here they do not.

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


def start_times(
    steps: Sequence[tuple[int, int, int | None]], priorities: Sequence[Any], machines: int
) -> list[int]:
    """Start steps in the order of given priorities, as soon as enough machines are free.

    Parameters
    ----------
    steps : sequence of tuple
        Cost (fma), machines that it occupies, and the step that needs its result; None for the last step.
    priorities : sequence of comparable
        One per step; the smallest comes first, ties go to the earlier step.
    machines : int
        Number of machines; at least what each step occupies.

    Returns
    -------
    list of int
        Start of each step (fma); no machine is idle while a step is ready that fits.

    Examples
    --------
    >>> start_times([(21, 1, 2), (22, 1, 2), (30, 1, None)], [1, 0, 0], machines=1)
    [22, 0, 43]
    """
    waiting_for = Counter(successor for _, _, successor in steps)
    ready = [(priority, index) for index, priority in enumerate(priorities) if not waiting_for[index]]
    heapify(ready)
    running: list[tuple[int, int]] = []
    starts = [0] * len(steps)
    time, free = 0, machines
    while ready or running:
        too_wide = []
        while free and ready:
            item = heappop(ready)
            index = item[1]
            cost, occupied, _ = steps[index]
            if occupied > free:
                too_wide.append(item)
                continue
            starts[index] = time
            free -= occupied
            heappush(running, (time + cost, index))
        for item in too_wide:
            heappush(ready, item)
        time = running[0][0]
        while running and running[0][0] == time:
            _, occupied, successor = steps[heappop(running)[1]]
            free += occupied
            if successor is not None:
                waiting_for[successor] -= 1
                if not waiting_for[successor]:
                    heappush(ready, (priorities[successor], successor))
    return starts


def _scheduling(sequence: EliminationSequence, machines: int | None, priorities: Sequence[Any]) -> Scheduling:
    """Run the list schedule, each step on one machine, and compare it with the simple lower bound."""
    count = machine_count(sequence, machines)
    steps = [
        (cost, 1, successor) for cost, successor in zip(sequence.costs, sequence.successors, strict=True)
    ]
    starts = start_times(steps, priorities, count)
    return Scheduling(place(sequence, starts, count), simple_bound(sequence, count))
