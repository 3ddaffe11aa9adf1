"""Progress within long steps, which is reported to the listener of the thread, if it has one."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

__all__ = ["told", "told_to"]

_Item = TypeVar("_Item")
_Listener: TypeAlias = Callable[[float], object]
"""A function that gets the part of a step that is done, more than 0 and less than 1."""


class _Telling(threading.local):
    """The listener of the present thread."""

    listener: _Listener | None = None


_here = _Telling()


@contextmanager
def told_to(listener: _Listener) -> Iterator[None]:
    """Report progress within the steps of this thread to a listener."""
    before = _here.listener
    try:
        _here.listener = listener
        yield
    finally:
        _here.listener = before


def told(items: Iterable[_Item], count: int) -> Iterable[_Item]:
    """Return items to loop over, ``count`` of them; between two, the part that is done is reported.

    Such loops inside of such a loop report nothing.

    Examples
    --------
    >>> parts = []
    >>> with told_to(parts.append):
    ...     [letter for letter in told("abcd", 4) for _ in told("xyz", 3)]
    ['a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'c', 'd', 'd', 'd']
    >>> parts
    [0.25, 0.5, 0.75]
    """
    return items if _here.listener is None else _told(items, count, _here.listener)


def _told(items: Iterable[_Item], count: int, listener: _Listener) -> Iterator[_Item]:
    """Yield the items, and report progress between them."""
    _here.listener = None
    try:
        for number, item in enumerate(items):
            if number:
                listener(number / count)
            yield item
    finally:
        _here.listener = listener
