"""What a scheduler answers, and the numbers of the precedence tree that all schedulers need."""

from dataclasses import dataclass

from jcdp_core.arguments import positive_or_none
from jcdp_core.schedule import Schedule, Task
from jcdp_core.sequence import EliminationSequence

__all__ = ["Scheduling", "machine_count", "place", "simple_bound", "tails"]


@dataclass(frozen=True, slots=True)
class Scheduling:
    """Hold a schedule of one given sequence.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    lower_bound : int
        No schedule of this sequence has a smaller makespan (fma). Other sequences may.
    nodes : int or None, optional
        Nodes of the search, if there was one.

    Examples
    --------
    >>> schedule = Schedule((Task(0, 0, 0, 21, (0,)),), machines=1)
    >>> Scheduling(schedule, lower_bound=21).optimal
    True
    """

    schedule: Schedule
    lower_bound: int
    nodes: int | None = None

    @property
    def optimal(self) -> bool:
        """Whether the makespan is proved to be the smallest for this sequence."""
        return self.schedule.makespan == self.lower_bound


def machine_count(sequence: EliminationSequence, machines: int | None) -> int:
    """Return the number of machines; for None, one per accumulation: no more can ever be busy.

    Raises `SolverError` if it is no integer or below 1.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Operation
    >>> steps = map(Operation.parse, ["ACC TAN (0 1)", "ELI TAN (0 1 2)"])
    >>> sequence = EliminationSequence.from_operations(JacobianChain.from_sizes([3, 2, 5], [7, 11]), steps)
    >>> machine_count(sequence, None)
    1
    """
    return positive_or_none(machines, "machines") or sum(not needed for needed in sequence.predecessors)


def tails(sequence: EliminationSequence) -> tuple[int, ...]:
    """Return for each step the cost of the path from its start to the end of the last step.

    Costs are in fma, the step's own included.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Operation
    >>> steps = map(Operation.parse, ["ACC TAN (0 1)", "ELI TAN (0 1 2)"])
    >>> tails(EliminationSequence.from_operations(JacobianChain.from_sizes([3, 2, 5], [7, 11]), steps))
    (54, 33)
    """
    tails = list(sequence.costs)
    for index, successor in reversed(list(enumerate(sequence.successors))):
        if successor is not None:
            tails[index] += tails[successor]
    return tuple(tails)


def simple_bound(sequence: EliminationSequence, machines: int) -> int:
    """Return the larger of the longest path and the work per machine.

    No schedule of this sequence has a shorter makespan (fma).

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Operation
    >>> steps = map(Operation.parse, ["ACC TAN (0 1)", "ELI TAN (0 1 2)"])
    >>> chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    >>> simple_bound(EliminationSequence.from_operations(chain, steps), 2)
    54
    """
    return max(*tails(sequence), -(-sequence.total // machines))


def place(sequence: EliminationSequence, starts: list[int], machines: int) -> Schedule:
    """Put steps with known start times on machines: each on the lowest one that is free.

    Start times are in fma; at no time more steps run than there are machines. Each pool is the step's own
    machine.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Operation
    >>> steps = map(Operation.parse, ["ACC TAN (0 1)", "ELI TAN (0 1 2)"])
    >>> sequence = EliminationSequence.from_operations(JacobianChain.from_sizes([3, 2, 5], [7, 11]), steps)
    >>> place(sequence, [0, 21], machines=2).makespan
    54
    """
    free = [0] * min(machines, len(starts))
    tasks: dict[int, Task] = {}
    for index in sorted(range(len(starts)), key=starts.__getitem__):
        machine = next(machine for machine, time in enumerate(free) if time <= starts[index])
        free[machine] = finish = starts[index] + sequence.costs[index]
        tasks[index] = Task(index, machine, starts[index], finish, (machine,))
    return Schedule(tuple(tasks[index] for index in range(len(starts))), machines)
