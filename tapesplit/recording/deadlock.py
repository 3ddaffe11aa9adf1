"""Deadlocks: whether another thread waits, in a call of Python's own, for what this one does."""

import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent import futures
from types import FrameType
from typing import Any, Final

__all__ = ["is_awaited_by"]


def is_awaited_by(thread: int) -> bool:
    """Tell whether a thread waits until this one has ended, or until the task that this one runs is done.

    Parameters
    ----------
    thread
        Identifier of another thread.

    Returns
    -------
    bool
        True is certain. Waits of other kinds, as for an item of a queue, do not tell whom they are for.
    """
    awaited = _awaited(sys._current_frames().get(thread))  # noqa: SLF001 (the documented name)
    doing = [threading.current_thread(), *_tasks(sys._getframe())]  # noqa: SLF001 (the same)
    return any(one is other for one in awaited for other in doing)


def _awaited(frame: FrameType | None) -> Iterator[Any]:
    """Yield the threads and futures that the functions on a stack wait for."""
    for variables in _variables(frame, _WAITING):
        yield variables.get("self")
        several = variables.get("fs")
        if isinstance(several, Iterable):
            yield from tuple(several)


def _tasks(frame: FrameType | None) -> Iterator[Any]:
    """Yield the futures of the tasks on a stack."""
    for variables in _variables(frame, _WORKING):
        yield getattr(variables.get("self"), "future", None)


def _variables(frame: FrameType | None, modules: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Yield the variables of the functions on a stack that belong to some modules."""
    while frame is not None:
        if frame.f_globals.get("__name__") in modules:
            yield frame.f_locals
        frame = frame.f_back


_WAITING: Final = frozenset({threading.__name__, futures.Future.__module__})
"""Modules with `Thread.join`, `Future.result`, `wait` and `as_completed`."""
_WORKING: Final = frozenset({"concurrent.futures.thread"})
"""The module whose frames have the task of a thread."""
