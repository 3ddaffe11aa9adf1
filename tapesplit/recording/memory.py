"""Memory: what Python and the C library do about it behind our back costs as much as the work itself."""

import gc
from functools import cache
from typing import Final
from weakref import ref

import numpy as np

from tapesplit.forks import renew_after_fork

__all__ = ["NoGarbageCollection", "keep_freed_memory"]

_LARGEST_BLOCK: Final = 2**25 - 2**16
"""Bytes of the largest block that glibc learns from, a little less than 32 MB."""


@cache
def keep_freed_memory() -> None:
    """Make the C library reuse freed blocks of up to 32 MB, instead of returning them to the system.

    Memory that was returned comes back page by page, which can take as long as the work on it.

    Notes
    -----
    glibc adapts to the largest block that was freed: smaller ones then come from memory that it keeps, up to
    twice as much of it (mallopt(3), M_MMAP_THRESHOLD). The first call frees one block that nobody touched,
    which teaches it for the whole process in a few µs. Limits that the user has set, as by
    ``MALLOC_TRIM_THRESHOLD_``, stay; other C libraries do nothing.

    Examples
    --------
    >>> keep_freed_memory()
    """
    np.empty(_LARGEST_BLOCK, dtype=np.uint8)


class NoGarbageCollection:
    """While entered, no garbage is collected: that would walk the thousands of objects of a tape in vain.

    If Ctrl-C keeps one from its exit, the next one makes up for it.
    """

    __slots__ = ("__weakref__", "_pauses")

    def __enter__(self) -> None:
        global _pausing  # noqa: PLW0603 (the collector belongs to the process)
        self._pauses = gc.isenabled() or (_pausing is not None and _pausing() is None)
        if self._pauses:
            _pausing = ref(self)
            gc.disable()

    def __exit__(self, *exception: object) -> None:
        global _pausing  # noqa: PLW0603 (see above)
        if self._pauses:
            gc.enable()
            _pausing = None


_pausing: ref[NoGarbageCollection] | None = None
"""Who has paused the collector, and has not gone on yet."""


def _go_on() -> None:
    """Let the collector go on in a child; the thread that has paused it may not be there."""
    global _pausing  # noqa: PLW0603 (see above)
    if _pausing is not None:
        gc.enable()
        _pausing = None


renew_after_fork(_go_on)
