"""Schedulers: when and where the steps of one given elimination sequence run."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from jcdp_core.arguments import expect, seconds_or_none
from jcdp_core.errors import InvalidSequenceError, SolverError
from jcdp_core.schedulers.branch_and_bound import branch_and_bound
from jcdp_core.schedulers.list_scheduling import highest_level_first, hu
from jcdp_core.schedulers.scheduling import Scheduling
from jcdp_core.sequence import EliminationSequence

__all__ = ["SCHEDULERS", "SchedulerName", "Scheduling", "schedule_sequence"]

SchedulerName: TypeAlias = Literal["hu", "highest_level_first", "branch_and_bound"]
"""Schedulers by the name that `schedule_sequence` knows them by."""

_Scheduler: TypeAlias = Callable[[EliminationSequence, int | None, float | None], Scheduling]

SCHEDULERS: Final[dict[SchedulerName, _Scheduler]] = {
    "hu": lambda sequence, machines, _: hu(sequence, machines),
    "highest_level_first": lambda sequence, machines, _: highest_level_first(sequence, machines),
    "branch_and_bound": branch_and_bound,
}
"""Schedulers by their names; the third argument is a time limit, in seconds."""


def schedule_sequence(
    sequence: EliminationSequence,
    *,
    machines: int | None = 1,
    method: SchedulerName = "branch_and_bound",
    time_limit: float | None = None,
) -> Scheduling:
    """Schedule a given elimination sequence in the least time.

    The start times are new; those of a schedule that the sequence may have had do not count. Each step gets a
    pool of one machine, so a sequence that was planned for shared memory may not fit any more.

    Parameters
    ----------
    sequence : EliminationSequence
        The steps.
    machines : int or None, optional
        Number of machines; None for as many as can be used.
    method : {"branch_and_bound", "highest_level_first", "hu"}, optional
        `"branch_and_bound"` (exact), `"highest_level_first"` (by remaining cost) or `"hu"` (by level).
    time_limit : float, optional
        Seconds after which a search returns the best schedule so far.

    Returns
    -------
    Scheduling
        Schedule, lower bound, and whether the schedule is proved to be optimal for this sequence.

    Raises
    ------
    InvalidSequenceError
        If a step comes before one that it needs.
    SolverError
        If the method is unknown, or the number of machines or the time limit is out of range.
    ArgumentTypeError
        If the sequence, that number or that limit is something else.

    References
    ----------
    Märtens & Naumann 2025, Sec. 3.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> solution = solve(JacobianChain.from_sizes([3, 2, 5], [7, 11]))
    >>> schedule_sequence(solution.sequence, machines=2).schedule.makespan
    47
    """
    expect(sequence, EliminationSequence, "sequence", "give that of a solution")
    ends = [(step.i, step.j) for step in sequence.operations]
    if len(set(ends)) < len(ends):
        raise InvalidSequenceError(
            "two steps make the same Jacobian; leave one out, and prove the sequence with check_sequence"
        )
    for step, needed in zip(sequence.operations, sequence.predecessors, strict=True):
        if len(needed) < len(step.operands):
            raise InvalidSequenceError(
                f"{step} needs a Jacobian that no step before it makes; put the steps in order, and prove "
                "the sequence with check_sequence"
            )
    if not isinstance(method, str) or method not in SCHEDULERS:
        names = ", ".join(map(repr, sorted(SCHEDULERS)))
        raise SolverError(f"there is no scheduler {method!r}; choose one of {names}")
    return SCHEDULERS[method](sequence, machines, seconds_or_none(time_limit))
