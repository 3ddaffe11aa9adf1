"""Threads that a process keeps for executions."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tapesplit.forks import renew_after_fork
from tapesplit.recording.tracing import holds_tracing_lock

__all__ = ["may_use_threads", "on_worker", "submit"]

Result = TypeVar("Result")


@dataclass(slots=True)
class _ProcessState:
    """Everything that belongs to one process; a forked child starts with a new one."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    pools: dict[int, ThreadPoolExecutor] = field(default_factory=dict)


_process = _ProcessState()


def _renew_state() -> None:
    """Forget pools whose threads the child does not have, and a lock that nobody there would release."""
    global _process  # noqa: PLW0603 (see the class)
    _process = _ProcessState()


renew_after_fork(_renew_state)


def submit(machines: int, function: Callable[..., Result], *args: Any) -> "Future[Result]":
    """Run a function on this process's threads for so many machines, with NumPy's settings of this one.

    Where no thread can be had any more, at the exit of the interpreter, it runs here.
    """
    with _process.lock:
        pool = _process.pools.get(machines)
        if pool is None:
            pool = ThreadPoolExecutor(machines, thread_name_prefix="tapesplit")
            _process.pools[machines] = pool
    try:
        return pool.submit(copy_context().run, function, *args)
    except RuntimeError:
        future: Future[Result] = Future()
        try:
            future.set_result(function(*args))
        except BaseException as error:  # noqa: BLE001 (a future carries whatever was raised)
            future.set_exception(error)
        return future
    except BaseException:  # Ctrl-C may leave a lock of the pool taken for good
        with _process.lock:
            _process.pools.pop(machines, None)
        raise


_here = threading.local()


def on_worker(function: Callable[..., Result], *args: Any) -> Result:
    """Run a function and remember meanwhile that this thread works for an execution."""
    before = getattr(_here, "works", False)
    _here.works = True
    try:
        return function(*args)
    finally:
        _here.works = before


def may_use_threads(executor: Executor | None) -> bool:
    """Return whether an execution that begins on this thread may wait for others, those of an executor.

    It may not inside a rule that runs for another execution, or on a thread of the executor: all threads
    might wait for each other. Nor may it while this thread holds the tracing lock, which the others may need.
    """
    # By its name: the executor lists a thread only once that has begun, maybe with this very execution.
    prefix = getattr(executor, "_thread_name_prefix", None)
    is_one_of_them = prefix is not None and threading.current_thread().name.startswith(f"{prefix}_")
    return not (is_one_of_them or getattr(_here, "works", False) or holds_tracing_lock())
