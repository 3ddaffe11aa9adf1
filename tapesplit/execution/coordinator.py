"""Execution of a plan on a tape: a coordinator hands ready tasks to machines.

Each machine works in planned order. Workers never wait for other tasks, so nothing can deadlock; each task
writes an array of its own, so the order of completion cannot change a bit of the result. An intermediate
Jacobian is used exactly once and dropped there.
"""

import queue
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Executor, Future
from contextlib import nullcontext, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final

import numpy as np

from tapesplit.callback import Callback
from tapesplit.errors import ArgumentTypeError, MemoryLimitError, PlanMismatchError
from tapesplit.execution.process_settings import prompt_switches, single_threaded_blas
from tapesplit.execution.threads import may_use_threads, on_worker, submit
from tapesplit.matrix_product import multiply
from tapesplit.notes import note
from tapesplit.planning.plan import JacobianPlan, TaskRecord
from tapesplit.recording.tape import Tape
from tapesplit.sharing import Start, sharing
from tapesplit.structures.comparison import first_difference, fits
from tapesplit.structures.structure import structure_of
from tapesplit.sweeps.sweep import run_sweep
from tapesplit.validation import check_helpers, check_limit, check_tape

__all__ = ["carry_out", "execute"]


_NOBODY: Final = Callback()
"""Observes nothing."""
_ALONE: Final = nullcontext()


def execute(
    plan: JacobianPlan,
    tape: Tape,
    *,
    memory_limit: int | None = None,
    executor: Executor | None = None,
    callback: Callback | None = None,
) -> np.ndarray:
    """Compute the Jacobian of a tape with a plan for its structure.

    Parameters
    ----------
    plan
        From `tapesplit.parallel_jacobian(...).plan(...)`.
    tape
        From `tapesplit.record`, of the same structure.
    memory_limit
        Upper bound in bytes on the working memory of one sweep, see `tapesplit.parallel_jacobian`.
    executor
        Runs the tasks of plans for several machines; by default a pool of threads that this process keeps.
    callback
        Observes the tasks.

    Returns
    -------
    ndarray
        The Jacobian, shape ``(elements of the output, elements of all inputs)``, in the precision that the
        sweeps work in (double for integers). The same plan and tape give the same bits whatever the executor
        does. `JacobianFunction.of_tape` returns the shapes and types of a call.

    Raises
    ------
    PlanMismatchError
        If the structure of the tape is not the one that the plan was made for.
    MemoryLimitError
        If one direction of a sweep needs more than the memory limit.
    ArgumentValueError, ArgumentTypeError
        If the memory limit is not a positive integer, or if another argument has the wrong type.
    Exception
        Whatever a derivative rule raises, with a note on the task; tasks that have not begun are dropped.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian, record
    >>> plan = parallel_jacobian(np.sin).plan(np.ones(2))
    >>> execute(plan, record(np.sin, np.zeros(2)))
    array([[1., 0.],
           [0., 1.]])
    """
    if not isinstance(plan, JacobianPlan):
        raise ArgumentTypeError(
            f"a plan is needed first, but got {type(plan).__name__}; write execute(plan, tape), where "
            "parallel_jacobian(fun).plan(x) returns the plan"
        )
    check_limit("memory_limit", memory_limit)
    check_helpers(executor, callback)
    structure = structure_of(check_tape(tape))
    if not fits(plan.structure, structure):
        raise PlanMismatchError(
            f"the plan of {plan.name} does not fit this tape of {tape.name}: "
            f"{first_difference(plan.structure, structure, tape)}; make a plan for this tape"
        )
    return carry_out(plan, tape, memory_limit=memory_limit, executor=executor, callback=callback)


def carry_out(
    plan: JacobianPlan,
    tape: Tape,
    *,
    memory_limit: int | None = None,
    executor: Executor | None = None,
    callback: Callback | None = None,
) -> np.ndarray:
    """Do what `execute` does for a tape that is known to fit."""
    if memory_limit is not None:
        _check_memory_limit(plan, memory_limit)
    run = _Run(plan, tape, memory_limit, callback or _NOBODY)
    with single_threaded_blas() if plan.uses_blas else _ALONE:
        if not plan.uses_threads or not may_use_threads(executor):
            return run.inline()
        if plan.machines == 1:
            return run.inline(partial(submit, plan.step_threads))
        with prompt_switches():
            return run.on(partial(submit, plan.machines) if executor is None else partial(_given, executor))


def _given(executor: Executor, *task: Any) -> Future[Any]:
    """Give a task to an executor of the user's; note which that is if it takes none."""
    try:
        return executor.submit(partial(copy_context().run, *task))
    except Exception as error:
        note(error, f"while handing a task to what was given as executor, a {type(executor).__name__}")
        raise


def _check_memory_limit(plan: JacobianPlan, memory_limit: int) -> None:
    """Refuse a limit that a sweep exceeds even if it takes one direction at a time."""
    needed = max((sweep.least_bytes for sweep in plan.sweeps if sweep is not None), default=0)
    if memory_limit < needed:
        raise MemoryLimitError(
            f"memory_limit is {memory_limit} bytes, but in the Jacobian of {plan.name} one direction alone "
            f"of its largest sweep takes {needed}; set memory_limit to {needed} at least, better to some "
            "times as much, since few directions at a time are slow"
        )


class _Run:
    """State of one execution: results that wait for their use, and times; entered while the tasks run."""

    def __init__(self, plan: JacobianPlan, tape: Tape, memory_limit: int | None, callback: Callback) -> None:
        self.plan = plan
        self.tape = tape
        self.memory_limit = memory_limit
        self.callback = callback
        self.results: dict[int, np.ndarray] = {}
        self.records: list[TaskRecord] = []
        self.began = time.perf_counter()

    def __enter__(self) -> None:
        if self.callback.start:
            self.callback.start(self.plan)

    def __exit__(self, *exception: object) -> None:
        records = tuple(self.records)
        if exception[0] is None:
            self.plan.last_run.records = records
            self.plan.last_run.runs += 1
        if self.callback.finish:
            self.callback.finish(self.plan, records)

    def inline(self, start: Start | None = None) -> np.ndarray:
        """Carry out all tasks on this thread; ``start`` starts parts of large steps on others."""
        threads = self.plan.step_threads
        with self:
            for index, task in enumerate(self.plan.tasks):
                self._before(index)
                with sharing(threads, start) if threads > 1 and task.shareable else _ALONE:
                    done = self._timed(index, self._operands(index))
                self._after(index, *done)
        return self.results[len(self.plan.tasks) - 1]

    def on(self, start: Callable[..., Future[Any]]) -> np.ndarray:
        """Carry out the tasks where ``start`` puts them, each machine's in planned order."""
        tasks = self.plan.tasks
        lanes: dict[int, list[int]] = {}
        for index, task in enumerate(tasks):
            lanes.setdefault(task.machine, []).append(index)
        done: queue.SimpleQueue[tuple[int, Future[Any]]] = queue.SimpleQueue()
        running: dict[int, Future[Any]] = {}
        with self:
            try:
                while len(self.records) < len(tasks):
                    for lane in lanes.values():
                        if lane and self._is_ready(lane[0], running):
                            index = lane.pop(0)
                            self._before(index)
                            future = start(on_worker, self._timed, index, self._operands(index))
                            running[index] = future
                            future.add_done_callback(lambda f, i=index: done.put((i, f)))  # type: ignore[misc]
                    index, future = done.get()
                    del running[index]
                    self._after(index, *future.result())
            except BaseException:
                _abandon(running.values())
                raise
        return self.results[len(tasks) - 1]

    def _is_ready(self, index: int, running: Iterable[int]) -> bool:
        """Tell whether a task's operands are there and its machine is free."""
        task = self.plan.tasks[index]
        return all(need in self.results for need in task.needs) and all(
            self.plan.tasks[other].machine != task.machine for other in running
        )

    def _operands(self, index: int) -> tuple[np.ndarray, ...]:
        """Take the intermediate Jacobians that a task uses up."""
        return tuple(self.results.pop(need) for need in self.plan.tasks[index].needs)

    def _timed(self, index: int, operands: tuple[np.ndarray, ...]) -> tuple[np.ndarray, float, float]:
        """Carry out one task; runs on a worker."""
        start = time.perf_counter()
        try:
            result = self._carry_out(index, operands)
        except BaseException as error:
            of = f"the Jacobian of {self.plan.name}, task {index + 1}: {self._describe(index)}"
            note(error, f"while computing {of}")
            raise
        return result, start, time.perf_counter()

    def _carry_out(self, index: int, operands: tuple[np.ndarray, ...]) -> np.ndarray:
        """Multiply, or sweep through links."""
        sweep = self.plan.sweeps[index]
        if sweep is None:
            return multiply(*operands)
        matrix = operands[0] if operands else None
        return run_sweep(sweep, self.tape, self.plan.tasks[index].mode, matrix, self.memory_limit)

    def _describe(self, index: int) -> str:
        """Name a task by its steps in the paper's notation."""
        operations = self.plan.solution.sequence.operations
        return ", ".join(str(operations[step]) for step in self.plan.tasks[index].steps)

    def _before(self, index: int) -> None:
        if self.callback.pretask:
            self.callback.pretask(self.plan, index)

    def _after(self, index: int, result: np.ndarray, start: float, finish: float) -> None:
        self.results[index] = result
        machine = self.plan.tasks[index].machine
        self.records.append(TaskRecord(index, machine, start - self.began, finish - self.began))
        if self.callback.posttask:
            self.callback.posttask(self.plan, self.records[-1])


def _abandon(futures: Iterable[Future[Any]]) -> None:
    """Drop what has not begun and wait for what has, so that no worker outlives its run."""
    for future in futures:
        if not future.cancel():
            with suppress(CancelledError):
                future.exception()
