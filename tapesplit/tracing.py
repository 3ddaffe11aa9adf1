"""The lock around autograd's process-wide trace level, and how to leave that level as it was."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from autograd.tracer import trace_stack

__all__ = ["trace_level", "tracing_lock"]

_lock = threading.RLock()


def _renew_lock_after_fork() -> None:
    """A forked child has one thread: a lock that another thread held there would never be released."""
    global _lock  # noqa: PLW0603 (the lock belongs to the process, like the level that it guards)
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock_after_fork)


@contextmanager
def tracing_lock() -> Iterator[int]:
    """Hold the lock that every tracing code path needs; restore the trace level however the block ends.

    Yields the level of the innermost trace that is active, -1 if there is none.
    """
    with _lock:
        level = trace_stack.top
        try:
            yield level
        finally:
            trace_stack.top = level


def trace_level() -> int:
    """Level of the innermost active trace of this process; -1 outside any trace."""
    return int(trace_stack.top)
