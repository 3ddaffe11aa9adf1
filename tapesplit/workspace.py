"""Workspace: memory that the runs of a sweep use one after the other.

Memory that was just returned to the operating system comes back page by page, which can take longer than the
work on it. A few megabytes for each sweep are kept instead.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

__all__ = ["Workspace"]

_LARGEST: Final = 2**20
"""Numbers (8 MB) up to which memory is kept."""


class Workspace:
    """Memory of one sweep; runs at the same time on several threads each have some of their own.

    A pickled or copied one is empty.

    Examples
    --------
    >>> workspace = Workspace()
    >>> with workspace.lent(3) as numbers:
    ...     numbers.shape
    (3,)
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[np.ndarray] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return Workspace, ()

    @contextmanager
    def lent(self, size: int) -> Iterator[np.ndarray]:
        """Lend so many float64 numbers of any value."""
        try:
            memory = self._kept.pop()
        except IndexError:  # the first run, or others run at the same time
            memory = np.empty(size)
        if memory.size < size:
            memory = np.empty(size)
        try:
            yield memory[:size]
        finally:
            if memory.size <= _LARGEST:
                self._kept.append(memory)
