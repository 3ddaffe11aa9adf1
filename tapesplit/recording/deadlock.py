"""Deadlocks: find out whether another thread waits for the current one, in a call of Python's own."""

import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from types import FrameType
from typing import Any, Final

__all__ = ["is_awaited_by"]


def is_awaited_by(thread: int) -> bool:
    """Tell whether a thread waits, directly or through others, for the current thread or its task to end.

    `thread` is the identifier of another thread. True is certain, unless the thread is in a loop over
    `as_completed` that it would leave early. False is not certain: waits with a timeout, or for any one of
    several tasks, do not count, and others, as for an item of a queue, do not show which thread ends them.
    """
    frames = sys._current_frames()  # noqa: SLF001 (the documented name)
    known = {other.ident: other for other in threading.enumerate() if other.ident in frames}
    doing = {ident: {other, *_tasks(frames[ident])} for ident, other in known.items()}
    waiting, here = [thread], threading.get_ident()
    for one in waiting:  # which grows
        awaited = {*_awaited(frames.get(one))}
        waiting += [other for other in doing if other not in waiting and not awaited.isdisjoint(doing[other])]
    return here in waiting


def _awaited(frame: FrameType | None) -> Iterator[Any]:
    """Yield the threads and futures without which the innermost call on a stack does not end."""
    while frame is not None and frame.f_globals.get("__name__") in _WAITING:
        variables = frame.f_locals
        if variables.get("timeout") not in _WITHOUT_LIMIT:
            return
        if frame.f_code.co_name in _UNTIL_THE_END and isinstance(variables.get("self"), _AWAITED):
            yield variables["self"]
        several = variables.get("fs")
        if isinstance(several, set) and variables.get("return_when") in {None, futures.ALL_COMPLETED}:
            yield from several.copy()  # no set yet: somebody's iterator, which we must not move on
        frame = frame.f_back


def _tasks(frame: FrameType | None) -> Iterator[Any]:
    """Yield the futures of the tasks on a stack that are not done."""
    while frame is not None:
        if frame.f_globals.get("__name__") == _WORKING:
            future = getattr(frame.f_locals.get("self"), "future", None)
            if future is not None and not future.done():  # its callbacks may still run
                yield future
        frame = frame.f_back


_AWAITED: Final = (threading.Thread, futures.Future)
"""Objects whose end other threads can wait for."""
_WAITING: Final = frozenset({threading.__name__, futures.Future.__module__})
"""Modules with `Thread.join`, `Future.result`, `wait` and `as_completed`."""
_UNTIL_THE_END: Final = frozenset({"join", "result", "exception"})
"""Their methods that wait for it; `Thread.start` waits for the begin."""
_WITHOUT_LIMIT: Final = (None, -1)
"""Values of ``timeout`` in calls that wait without a limit."""
_WORKING: Final = "concurrent.futures.thread"
"""The module whose frames hold the task that a thread of a pool carries out."""
