"""Threads that a process keeps for executions.

They are no `ThreadPoolExecutor`, whose locks Ctrl-C can leave taken for good: at the exit of the interpreter
that would be waited for.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

from tapesplit.forks import renew_after_fork
from tapesplit.recording.tracing import holds_tracing_lock

__all__ = ["may_use_threads", "on_worker", "submit"]

_Result = TypeVar("_Result")
_Calls: TypeAlias = SimpleQueue[tuple[Context, Callable[..., object], tuple[Any, ...]]]


@dataclass(slots=True)
class _ProcessState:
    """Everything that belongs to one process; a forked child starts with a new one."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    calls: dict[int, _Calls] = field(default_factory=dict)
    """By number of machines, the queue of calls that the threads for so many machines carry out."""


_process = _ProcessState()


def _renew_state() -> None:
    """Forget queues whose threads the child does not have, and a lock that nobody there would release."""
    global _process  # noqa: PLW0603 (see the class)
    _process = _ProcessState()


renew_after_fork(_renew_state)


def submit(machines: int, function: Callable[..., object], *args: Any) -> None:
    """Run a function on one of the threads for so many machines, in the context of the calling thread.

    The context has NumPy's settings. The function must not raise, and must report by itself when it is done.
    If no thread can be started any more, at the exit of the interpreter, it runs on the calling thread.
    """
    with _process.lock:
        calls = _process.calls.get(machines) or _with_threads(machines)
        if calls is not None:
            _process.calls[machines] = calls
    if calls is None:
        function(*args)
    else:
        calls.put((copy_context(), function, args))


def _with_threads(machines: int) -> _Calls | None:
    """Start threads; return the queue of calls that they carry out, None if no thread could be started."""
    calls: _Calls = SimpleQueue()
    for number in range(machines):
        try:
            Thread(target=_carry_out, args=(calls,), name=f"tapesplit_{number}", daemon=True).start()
        except RuntimeError:
            return calls if number else None
    return calls


def _carry_out(calls: _Calls) -> None:
    """Carry out calls one after the other, for good."""
    while True:
        context, function, args = calls.get()
        context.run(function, *args)
        del context, function, args  # arrays that the next call may need memory for


_here = threading.local()


def on_worker(function: Callable[..., _Result], *args: Any) -> _Result:
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
