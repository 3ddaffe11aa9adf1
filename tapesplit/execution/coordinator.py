"""Execution of a plan on a tape: a coordinator hands ready tasks to machines.

Each machine works in planned order. Workers never wait for other tasks, so nothing can deadlock; each task
writes an array of its own, so the order of completion cannot change a bit of the result. An intermediate
Jacobian is used exactly once and dropped there.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, Executor, Future
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

import numpy as np

from tapesplit.callback import Callback
from tapesplit.errors import ArgumentTypeError, MemoryLimitError, PlanMismatchError
from tapesplit.execution.process_settings import prompt_switches, single_threaded_blas
from tapesplit.execution.threads import may_use_threads, on_worker, submit
from tapesplit.matrix_product import multiply
from tapesplit.notes import note
from tapesplit.planning.plan import JacobianPlan
from tapesplit.planning.records import TaskRecord
from tapesplit.recording.source_lines import note_line_without_rule
from tapesplit.recording.tape import Tape
from tapesplit.sharing import Start, sharing
from tapesplit.structures.comparison import first_difference, fits
from tapesplit.structures.structure import structure_of
from tapesplit.sweeps.sweep import run_sweep
from tapesplit.telling import told_to
from tapesplit.validation import check_helpers, check_limit, check_tape

__all__ = ["carry_out", "execute"]


_Outcome: TypeAlias = tuple[np.ndarray, float, float] | BaseException
"""Result of a task, with its start and finish; or an error."""
_Done: TypeAlias = SimpleQueue[tuple[int, _Outcome]]
"""Queue of the tasks that have ended: their indices and outcomes."""
_NOBODY: Final = Callback()
"""Observes nothing."""
_AS_IT_IS: Final = nullcontext()


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
        From `tapesplit.record` or the ``tape`` of a Jacobian function, of the same structure.
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
    _check_fits(plan, check_tape(tape))
    return carry_out(plan, tape, memory_limit=memory_limit, executor=executor, callback=callback)


def _check_fits(plan: JacobianPlan, tape: Tape) -> None:
    """Refuse a tape of another structure."""
    structure = structure_of(tape)
    if not fits(plan.structure, structure):
        raise PlanMismatchError(
            f"the plan of {plan.name} does not fit this tape of {tape.name}: "
            f"{first_difference(plan.structure, structure, tape)}; make a plan for this tape, or record it "
            "by the tape method of the function that made the plan"
        )


def carry_out(
    plan: JacobianPlan,
    tape: Tape,
    *,
    memory_limit: int | None,
    executor: Executor | None,
    callback: Callback | None,
) -> np.ndarray:
    """Do what `execute` does for a tape that is known to fit."""
    if memory_limit is not None:
        _check_memory_limit(plan, memory_limit)
    run = _Run(plan, tape, memory_limit, callback or _NOBODY)
    with single_threaded_blas() if plan.uses_blas else _AS_IT_IS:
        if not plan.uses_threads or not may_use_threads(executor):
            return run.inline()
        if plan.machines == 1:
            return run.inline(partial(submit, plan.step_threads))
        with prompt_switches():
            return run.on(partial(submit, plan.machines) if executor is None else partial(_given, executor))


def _given(executor: Executor, *task: Any) -> Future[Any] | None:
    """Give a task to an executor of the user's; note which that is if it takes none."""
    try:
        return executor.submit(partial(copy_context().run, *task))
    except Exception as error:
        note(error, f"while handing a task to what was given as executor, a {type(executor).__name__}")
        raise


def _check_memory_limit(plan: JacobianPlan, memory_limit: int) -> None:
    """Refuse a limit that a sweep exceeds even if it takes one direction at a time."""
    needed = max(sweep.least_bytes for sweep in plan.sweeps if sweep is not None)
    if memory_limit < needed:
        raise MemoryLimitError(
            f"memory_limit is {memory_limit} bytes, but in the Jacobian of {plan.name} one direction alone "
            f"of its largest sweep takes {needed}; set memory_limit to {needed} at least; more is "
            "faster, since it lets a sweep carry more directions at a time"
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
        self.ended: set[int] = set()
        self.abandoned = False
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
                is_shared = threads > 1 and task.shareable
                with self._told(index), sharing(threads, start) if is_shared else _AS_IT_IS:
                    done = self._timed(index, self._operands(index))
                self._after(index, *done)
        return self.results[len(self.plan.tasks) - 1]

    def on(self, start: Callable[..., Future[Any] | None]) -> np.ndarray:
        """Carry out the tasks where ``start`` puts them, each machine's in planned order.

        Workers report by a queue, which Ctrl-C cannot leave locked. Only the user's executors return futures,
        which are watched as they may end without having carried out their task.
        """
        tasks = self.plan.tasks
        lanes: dict[int, list[int]] = {}
        for index, task in enumerate(tasks):
            lanes.setdefault(task.machine, []).append(index)
        done: _Done = SimpleQueue()
        running: dict[int, Future[Any] | None] = {}
        with self:
            try:
                while len(self.records) < len(tasks):
                    for lane in lanes.values():
                        if lane and self._is_ready(lane[0], running):
                            index = lane.pop(0)
                            self._before(index)
                            future = start(on_worker, self._report, done, index, self._operands(index))
                            running[index] = future
                            if future is not None:
                                future.add_done_callback(partial(self._report_end, done, index))
                    index, outcome = done.get()
                    running.pop(index, None)
                    self._after(index, *_result(outcome))
            except BaseException:
                self._abandon(running, done)
                raise
        return self.results[len(tasks) - 1]

    def _report(self, done: _Done, index: int, operands: tuple[np.ndarray, ...]) -> None:
        """Carry out one task, unless the run is abandoned, and report what comes of it; runs on a worker."""
        try:
            outcome: _Outcome = CancelledError() if self.abandoned else self._timed(index, operands)
        except BaseException as error:  # noqa: BLE001 (it is raised where the run is coordinated)
            outcome = error
        self._end(done, index, outcome)

    def _report_end(self, done: _Done, index: int, future: Future[Any]) -> None:
        """Report a task that an executor has not carried out; others report themselves."""
        error = CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self._end(done, index, error)

    def _end(self, done: _Done, index: int, outcome: _Outcome) -> None:
        """Report what has come of a task."""
        self.ended.add(index)
        done.put((index, outcome))

    def _abandon(self, running: Mapping[int, Future[Any] | None], done: _Done) -> None:
        """Drop what has not begun and wait for what has, so that no worker outlives its run."""
        self.abandoned = True
        for future in running.values():
            if future is not None:
                future.cancel()
        while running.keys() - self.ended:  # Ctrl-C may have lost what was got from the queue
            done.get()

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
            note_line_without_rule(error, self.tape)
            if isinstance(error, MemoryError):
                note(error, _size_note(self.tape))
            note(error, f"while computing {of}")
            raise
        return result, start, time.perf_counter()

    def _carry_out(self, index: int, operands: tuple[np.ndarray, ...]) -> np.ndarray:
        """Multiply, or sweep through links."""
        sweep = self.plan.sweeps[index]
        if sweep is None:
            return multiply(*operands)
        matrix = operands[0] if operands else None
        return run_sweep(sweep, self.tape, matrix, self.memory_limit)

    def _describe(self, index: int) -> str:
        """Name a task by its steps in the paper's notation."""
        operations = self.plan.solution.sequence.operations
        return ", ".join(str(operations[step]) for step in self.plan.tasks[index].steps)

    def _before(self, index: int) -> None:
        if self.callback.pretask:
            self.callback.pretask(self.plan, index)

    def _told(self, index: int) -> AbstractContextManager[None]:
        """Let the callback hear how far a task is, if it asks."""
        during = self.callback.during
        return told_to(partial(during, self.plan, index)) if during else _AS_IT_IS

    def _after(self, index: int, result: np.ndarray, start: float, finish: float) -> None:
        self.results[index] = result
        machine = self.plan.tasks[index].machine
        self.records.append(TaskRecord(index, machine, start - self.began, finish - self.began))
        if self.callback.posttask:
            self.callback.posttask(self.plan, self.records[-1])


def _result(outcome: _Outcome) -> tuple[np.ndarray, float, float]:
    """Return what a task has returned, or raise what it has raised."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _size_note(tape: Tape) -> str:
    """Say how large the Jacobian is, and what to do about it."""
    rows, columns = tape.jacobian_shape
    size = 8e-9 * rows * columns
    told = f"{size:,.0f}" if size >= 10 else f"{size:.2g}"
    return (
        f"the dense Jacobian alone, {rows} × {columns}, takes {told} GB in double "
        "precision: differentiate fewer outputs or inputs at a time"
    )
