"""The lock around autograd's process-wide trace level, and how to leave that level as it was."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from autograd.tracer import trace, trace_stack

from tapesplit.errors import RecordingError
from tapesplit.forks import renew_after_fork
from tapesplit.recording.deadlock import is_awaited_by

__all__ = ["holds_tracing_lock", "tracing_lock"]


@dataclass(slots=True)
class _TracingState:
    """The lock and the thread that holds it."""

    lock: Any = field(default_factory=threading.RLock)
    holder: int | None = None


_state = _TracingState()


def _renew_state() -> None:
    """Replace a lock that another thread held at the fork: nobody in the child would release it.

    One without a holder may have been taken a moment before; the level is then as this thread has left it.
    """
    global _state  # noqa: PLW0603 (the lock belongs to the process, like the level that it guards)
    if _state.holder == threading.get_ident():
        return
    if _state.holder is not None:
        trace_stack.top = -1
    _state = _TracingState()


@contextmanager
def tracing_lock() -> Iterator[int]:
    """Hold the lock that every tracing code path needs; restore the trace level however the block ends.

    Yields the level of the innermost trace that is active, -1 if there is none, though autograd leaves its
    level raised after each error. Raises a `RecordingError` if the thread that holds it waits for this one.
    """
    state = _state
    if state.holder not in {None, threading.get_ident()}:
        _wait_for(state)
    with state.lock:
        found, outer = trace_stack.top, state.holder
        level = -1 if outer is None and not _is_traced() else found
        state.holder = threading.get_ident()
        try:
            yield level
        finally:
            trace_stack.top = found
            state.holder = outer


def _wait_for(state: _TracingState) -> None:
    """Wait until no other thread holds the lock, but not if that one waits for us."""
    lock = state.lock
    try:
        while not lock.acquire(timeout=_PATIENCE):
            if state.holder is not None and is_awaited_by(state.holder):
                raise RecordingError(
                    "neither thread could go on: a function that is being recorded waits for this thread, "
                    "whose Jacobian waits for the end of that recording; inside of a recorded function, "
                    "compute Jacobians on the same thread, in a loop"
                )
    finally:
        if lock._is_owned():  # noqa: SLF001 (as conditions of threading ask; not so after an interrupt)
            lock.release()


_PATIENCE: Final = 0.5
"""Seconds after which a thread that waits looks for a deadlock, and again."""


def _is_traced() -> bool:
    """Tell whether any thread is in a trace of autograd's."""
    if trace_stack.top < 0:
        return False
    frames = [*sys._current_frames().values()]  # noqa: SLF001 (the documented name)
    while frames and all(frame.f_code is not trace.__code__ for frame in frames):
        frames = [frame.f_back for frame in frames if frame.f_back]
    return bool(frames)


def holds_tracing_lock() -> bool:
    """Return whether this thread is inside `tracing_lock`."""
    return _state.holder == threading.get_ident()


renew_after_fork(_renew_state)
