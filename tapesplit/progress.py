"""A progress bar over the tasks of a plan, where tqdm is installed; an example of a callback."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tapesplit.callback import Callback
from tapesplit.errors import MissingPackageError
from tapesplit.planning.plan import JacobianPlan
from tapesplit.planning.records import TaskRecord

__all__ = ["both", "progress_bar"]


def progress_bar(delay: float = 0.5) -> Callback:
    """Return a callback that shows how much of a Jacobian's planned work is done.

    Parameters
    ----------
    delay
        Seconds before the bar appears, so that short Jacobians show none. It appears at once if the plan
        predicts a longer time.

    Returns
    -------
    Callback
        Shows the bar on standard error if that is a terminal, or in the notebook. The bar counts fma and
        disappears at the end. Several threads may use the callback at the same time.

    Raises
    ------
    MissingPackageError
        If tqdm is not installed.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> parallel_jacobian(np.sin, callback=progress_bar())(np.zeros(2))
    array([[1., 0.],
           [0., 1.]])
    """
    try:
        from tqdm.auto import tqdm  # noqa: PLC0415 - optional package
    except ImportError as error:
        raise MissingPackageError(
            "a progress bar needs tqdm, which is not installed; install it with "
            "pip install 'tapesplit[progress]'"
        ) from error
    of_thread = threading.local()  # a callback runs on the thread that called for the Jacobian

    def start(plan: JacobianPlan) -> None:
        of_thread.shown = 0  # fma of the running task
        # The bar is first drawn when something is done, unless there is no delay; that may take long.
        of_thread.bar = tqdm(
            total=plan.fma,
            desc=plan.name,
            unit="fma",
            unit_scale=True,
            delay=0.0 if plan.seconds > delay else delay,
            leave=False,
            disable=None,
        )

    def during(plan: JacobianPlan, index: int, part: float) -> None:
        done = int(part * plan.tasks[index].fma)
        of_thread.bar.update(done - of_thread.shown)
        of_thread.shown = done

    def posttask(plan: JacobianPlan, record: TaskRecord) -> None:
        of_thread.bar.update(plan.tasks[record.index].fma - of_thread.shown)
        of_thread.shown = 0

    def finish(_plan: JacobianPlan, _records: Sequence[TaskRecord]) -> None:
        of_thread.bar.close()

    return Callback(start=start, posttask=posttask, finish=finish, during=during)


def both(first: Callback, second: Callback) -> Callback:
    """Join two callbacks into one that calls the first, then the second.

    It has the functions that are not None, for each event. The second ``finish`` is called even if the first
    one raises.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import Callback, parallel_jacobian
    >>> seen = []
    >>> one = Callback(finish=lambda plan, records: seen.append(len(records)))
    >>> _ = parallel_jacobian(np.sin, callback=both(one, one))(np.zeros(2))
    >>> seen
    [1, 1]
    """

    def finish(*args: Any) -> None:
        try:
            if first.finish:
                first.finish(*args)
        finally:
            if second.finish:
                second.finish(*args)

    return Callback(
        _in_turn(first.start, second.start),
        _in_turn(first.pretask, second.pretask),
        _in_turn(first.posttask, second.posttask),
        finish,
        _in_turn(first.during, second.during),
    )


def _in_turn(
    first: Callable[..., Any] | None, second: Callable[..., Any] | None
) -> Callable[..., Any] | None:
    """Call two functions, either of which may be missing."""
    if first is None or second is None:
        return first or second

    def call(*args: Any) -> None:
        first(*args)
        second(*args)

    return call
