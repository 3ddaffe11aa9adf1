"""Settings of the process that executions rely on: threads of BLAS, and how promptly threads change over.

The first execution changes a setting, and the last one of those that run at the same time puts it back, also
after Ctrl-C and in forked children.
"""

import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from weakref import ref

from threadpoolctl import OpenBLASController, ThreadpoolController

from tapesplit.forks import renew_after_fork

__all__ = ["blas_threads", "limited_blas", "prompt_switches"]


@dataclass(slots=True, weakref_slot=True, eq=False)
class _User:
    """An execution that relies on a setting of the process, and the most that it can bear.

    It is known by weak references only, which end with the execution even if Ctrl-C ends that.
    """

    most: float


@dataclass(slots=True)
class _Setting:
    """A setting of the process that the first of its users changes, and the last one puts back."""

    users: list["ref[_User]"] = field(default_factory=list)
    before: Any = None
    """What it was; None while nobody uses it."""

    def without(self, user: _User) -> list["ref[_User]"]:
        """Return the users that are still there, but for one."""
        return [other for other in self.users if other() is not None and other() is not user]

    @property
    def most(self) -> float:
        """The most that all of its users can bear; infinite without any."""
        alive = [user for other in self.users if (user := other()) is not None]
        return min((user.most for user in alive), default=math.inf)


@dataclass(slots=True)
class _Settings:
    """All settings of one process; a forked child goes on with them under a lock of its own."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    blas: _Setting = field(default_factory=_Setting)
    switches: _Setting = field(default_factory=_Setting)


_settings = _Settings()


def _renew_settings() -> None:
    """Forget a lock that nobody in the child would release, and the users, whose threads it does not have.

    What another thread has set is put back by the next one that uses it.
    """
    global _settings  # noqa: PLW0603 (a forked child has settings of its own)
    _settings = _Settings(blas=_settings.blas, switches=_settings.switches)
    _settings.blas.users, _settings.switches.users = [], []


renew_after_fork(_renew_settings)


@contextmanager
def _changed(
    setting: _Setting, most: float, read: Callable[[], Any], change: Callable[[Any, float], None]
) -> Iterator[None]:
    """Use a setting of the process that must not exceed a number meanwhile.

    ``change`` is given what the setting was before, and the most that it may be now. A child that is forked
    meanwhile leaves under a lock of its own.
    """
    user = _User(most)
    try:  # before anything changes: Ctrl-C may come between any two lines
        with _settings.lock:
            setting.users = [*setting.without(user), ref(user)]
            if setting.before is None:  # else others use it, or an exit was interrupted
                setting.before = read()
            change(setting.before, setting.most)
        yield
    finally:
        with _settings.lock:
            setting.users = setting.without(user)
            if setting.before is not None:
                change(setting.before, setting.most)
                if not setting.users:
                    setting.before = None


def limited_blas(most: int) -> AbstractContextManager[None]:
    """Limit the threads of BLAS, to one where machines are the threads, so that sums have one order.

    The limit belongs to the process. Of several executions at the same time the lowest one counts.

    Parameters
    ----------
    most
        Number of threads; BLAS never has more than before.
    """
    return _changed(_settings.blas, most, _multithreaded_blas, _limit_blas)


def blas_threads() -> int:
    """Return how many threads BLAS has while no execution limits it."""
    with _settings.lock:
        found = _settings.blas.before
        libraries = _multithreaded_blas() if found is None else found
    return max((count for _, count in libraries), default=1)


@cache
def _blas() -> Sequence[Any]:
    """Find the BLAS libraries once: the search takes milliseconds."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _multithreaded_blas() -> Sequence[tuple[Any, int]]:
    """Return the BLAS libraries that use several threads, with the number of these."""
    return [(library, count) for library in _blas() if (count := library.num_threads) > 1]


def _limit_blas(libraries: Sequence[tuple[Any, int]], most: float) -> None:
    """Give BLAS libraries so many threads at most, and none more than before.

    threadpoolctl 3.8 heeds only the thread that set them first, as long as that one lives. Here the first and
    the last execution may be on different threads, so each gives that right back.
    """
    for library, count in libraries:
        library.set_num_threads(int(min(count, most)))
    _give_control_back()


_give_control_back: Final = getattr(OpenBLASController, "clear_controlling_thread", lambda: None)

_PROMPT: Final = 1e-4
"""Seconds after which a waiting thread gets the interpreter's lock; Python's 5 ms are a whole task here."""


def prompt_switches() -> AbstractContextManager[None]:
    """Let threads change over promptly; the interval belongs to the process, like the limit of BLAS."""
    return _changed(_settings.switches, _PROMPT, sys.getswitchinterval, _shorten)


def _shorten(before: float, most: float) -> None:
    """Set the interval after which threads change over."""
    sys.setswitchinterval(min(before, most))
