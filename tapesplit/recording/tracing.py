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

    A lock without a holder is replaced, too: another thread may just have taken it. That thread has not
    changed the trace level yet.
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

    Yields the level of the innermost trace that is active, -1 if there is none, even where autograd has left
    its level raised after an error. Raises a `RecordingError` if the thread that holds the lock waits for
    this one.
    """
    state, me = _state, threading.get_ident()
    waits = state.holder != me
    try:
        if waits:
            _wait_for(state)
        with state.lock:
            if waits:
                state.lock.release()  # held twice until now: nobody else could take it in between
                waits = False
            found, outer = trace_stack.top, state.holder
            level = -1 if outer is None and not _is_traced() else found
            state.holder = me
            try:
                yield level
            finally:
                trace_stack.top = found
                state.holder = outer
    finally:
        if waits and state.lock._is_owned():  # noqa: SLF001 (as conditions of threading ask; after an interrupt)
            state.lock.release()


def _wait_for(state: _TracingState) -> None:
    """Take the lock as soon as no other thread holds it, but do not wait for one that waits for us."""
    while not state.lock.acquire(timeout=_PATIENCE):
        holder = state.holder
        # It might have waited after it gave the lock back: then it is not the holder any more.
        if holder is not None and is_awaited_by(holder) and state.holder == holder:
            raise RecordingError(
                "neither thread could go on: a function that is being recorded waits for this thread, "
                "whose Jacobian waits for the end of that recording; inside of a recorded function, "
                "compute Jacobians on the same thread, in a loop"
            )


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
