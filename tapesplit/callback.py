"""Observers of an execution: what progress bars and tests are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from tapesplit.errors import ArgumentTypeError
from tapesplit.planning.plan import JacobianPlan
from tapesplit.planning.records import TaskRecord

__all__ = ["Callback"]


@dataclass(frozen=True, slots=True)
class Callback:
    """Functions that observe an execution; each may be None.

    Parameters
    ----------
    start
        ``start(plan)`` before the first task.
    pretask, posttask
        ``pretask(plan, index)`` and ``posttask(plan, record)``, on the thread of the coordinator.
    finish
        ``finish(plan, records)`` after the last task, even if one has failed.
    during
        ``during(plan, index, part)`` between the steps of a task, with the part of them that is done, if the
        task runs on the thread that called for the Jacobian. The parts increase from 0 to 1.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> callback = Callback(finish=lambda plan, records: print(len(records), "task"))
    >>> parallel_jacobian(np.sin, callback=callback)(np.zeros(1))
    1 task
    array([[1.]])
    """

    start: Callable[[JacobianPlan], None] | None = None
    pretask: Callable[[JacobianPlan, int], None] | None = None
    posttask: Callable[[JacobianPlan, TaskRecord], None] | None = None
    finish: Callable[[JacobianPlan, Sequence[TaskRecord]], None] | None = None
    during: Callable[[JacobianPlan, int, float], None] | None = None

    def __post_init__(self) -> None:
        for event in fields(self):
            function = getattr(self, event.name)
            if function is not None and not callable(function):
                raise ArgumentTypeError(
                    f"{event.name} of a tapesplit.Callback must be a function or None, but got {function!r}"
                )
