"""Records: when the tasks of a plan ran, and how long the rest of the last call took."""

from dataclasses import dataclass
from typing import Any

__all__ = ["LastRun", "TaskRecord"]


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """When one task of a plan ran.

    Parameters
    ----------
    index
        Index of the task in ``plan.tasks``.
    machine
        0-based.
    start, finish
        Seconds since the execution began.
    """

    index: int
    machine: int
    start: float
    finish: float


@dataclass(slots=True, eq=False)
class LastRun:
    """Measured task times of the last successful run.

    Copies of a plan that differ in source lines only share one, and so do all functions that use the plan.
    The records are replaced as a whole, so a reader in another thread sees the times of a single run. They
    are not pickled.

    Parameters
    ----------
    records
        A `tapesplit.TaskRecord` for each task, in the order in which they finished; empty before the first
        run.
    runs
        Number of successful runs; of several that finish at the same time, one may be missed.
    recording, finding
        Seconds that the last call took to record the function, and to make the plan or to see that it fits.
    """

    records: tuple[TaskRecord, ...] = ()
    runs: int = 0
    recording: float = 0.0
    finding: float = 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle nothing: times belong to the process that measured them."""
        return LastRun, ()
