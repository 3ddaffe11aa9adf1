"""Memory: keep Python's garbage collector and the C library from taking as long as the work itself."""

import ctypes
import gc
import os
import platform
from functools import cache
from typing import Final
from weakref import ref

from tapesplit.forks import renew_after_fork

__all__ = ["NoGarbageCollection", "keep_freed_memory"]

_LIMITS: Final = {"mmap_threshold": (-3, 2**25), "trim_threshold": (-1, 2**28)}
"""Bytes of the largest block that glibc keeps, the most that mallopt(3) promises, and of all that it keeps.

Each has its number in mallopt(3) before it. If the first is refused, the second would do harm: once one is
set, the other does not grow any more.
"""


@cache
def keep_freed_memory() -> None:
    """Make the C library keep up to 256 MB of freed blocks, of up to 32 MB each, for the next call.

    Memory that was returned to the system comes back page by page, which can take twice as long as the work
    on it.

    Notes
    -----
    The first call tells glibc so, for the whole process (mallopt(3)), but for limits that the user has set in
    the environment, as by ``MALLOC_TRIM_THRESHOLD_``. Other C libraries are left as they are.

    Examples
    --------
    >>> keep_freed_memory()
    """
    if platform.libc_ver()[0] != "glibc":
        return
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    for name, (number, size) in _LIMITS.items():
        is_set = f"MALLOC_{name.upper()}_" in os.environ or f"glibc.malloc.{name}" in tunables
        if not is_set and not ctypes.CDLL(None).mallopt(number, size):
            break


class NoGarbageCollection:
    """While entered, no garbage is collected: that would walk the thousands of objects of a tape in vain.

    If Ctrl-C prevents the exit of one, the exit of the next one turns the collector on again.
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
"""The instance that has turned the collector off and not yet on again."""


def _go_on() -> None:
    """Turn the collector on in a forked child: the thread that would do so may exist in the parent only."""
    global _pausing  # noqa: PLW0603 (see above)
    if _pausing is not None:
        gc.enable()
        _pausing = None


renew_after_fork(_go_on)
