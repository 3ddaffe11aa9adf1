"""Steps that several threads share: the parts of a large product, the directions of a large system."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeAlias

__all__ = ["Start", "run_parts", "shares", "sharing"]

Start: TypeAlias = Callable[..., object]
"""Runs a function with its arguments on another thread."""


class _Sharing(threading.local):
    """How many threads share the large steps of this one, and what starts a part of a step on another one."""

    threads = 1
    start: Start | None = None


_here = _Sharing()


@contextmanager
def sharing(threads: int, start: Start | None) -> Iterator[None]:
    """Share the large steps of this thread among several.

    `threads` counts this one, too. `start` starts a part on another thread; None computes the same parts
    here, one by one: the same bits.
    """
    before = _here.threads, _here.start
    try:
        _here.threads, _here.start = threads, start
        yield
    finally:
        _here.threads, _here.start = before


def shares(length: int, most: int) -> list[slice]:
    """Cut a length into a part for each thread, but into no more than ``most``; they are about equal."""
    count = max(1, min(_here.threads, most))
    return [slice(length * part // count, length * (part + 1) // count) for part in range(count)]


def run_parts(function: Callable[..., object], parts: Sequence[tuple[Any, ...]]) -> None:
    """Call a function with the arguments of each part, all but the first on other threads; wait for all."""
    start = _here.start
    if start is None or len(parts) == 1:
        for part in parts:
            function(*part)
        return
    # Ctrl-C can leave the lock of a future taken for good, but not that of this queue.
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    started = 0
    try:
        for part in parts[1:]:
            start(_run_part, done, function, part)
            started += 1
        function(*parts[0])
    finally:
        errors = [done.get() for _ in range(started)]  # wait: parts write into arrays that callers may free
    for error in errors:
        if error is not None:
            raise error


def _run_part(
    done: SimpleQueue[BaseException | None], function: Callable[..., object], part: tuple[Any, ...]
) -> None:
    """Call a function for another thread, which gets the error, or None, by the queue."""
    try:
        function(*part)
    except BaseException as error:  # noqa: BLE001 (it is raised on that thread)
        done.put(error)
    else:
        done.put(None)
