"""Settings of the process that executions rely on: BLAS on one thread, and a short switch interval.

The first execution changes a setting, and the last one of those that run at the same time puts it back, also
after Ctrl-C and in forked children.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from weakref import ref

from threadpoolctl import OpenBLASController, ThreadpoolController

from tapesplit.forks import renew_after_fork

__all__ = ["prompt_switches", "single_threaded_blas"]


class _User:
    """An execution that relies on a setting of the process.

    Settings refer to it weakly, so that they forget it when the execution ends, even by Ctrl-C.
    """

    __slots__ = ("__weakref__",)


@dataclass(slots=True)
class _Setting:
    """A setting of the process that the first of its users changes, and the last one puts back."""

    users: list[ref[_User]] = field(default_factory=list)
    before: Any = None
    """What it was; None while nobody uses it."""

    def without(self, user: _User) -> list[ref[_User]]:
        """Return the users that are still alive, without this one."""
        return [other for other in self.users if other() is not None and other() is not user]


@dataclass(slots=True)
class _Settings:
    """All settings of one process; a forked child goes on with them under a lock of its own."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    blas: _Setting = field(default_factory=_Setting)
    switches: _Setting = field(default_factory=_Setting)


_settings = _Settings()


def _renew_settings() -> None:
    """Forget a lock that nobody in the child would release, and users whose threads it does not have.

    What another thread has set is put back by the next one that uses it.
    """
    global _settings  # noqa: PLW0603 (a forked child has settings of its own)
    _settings = _Settings(blas=_settings.blas, switches=_settings.switches)
    _settings.blas.users, _settings.switches.users = [], []


renew_after_fork(_renew_settings)


@contextmanager
def _changed(
    setting: _Setting,
    read: Callable[[], Any],
    change: Callable[[Any], None],
    restore: Callable[[Any], None],
) -> Iterator[None]:
    """Use a setting of the process; ``change`` and ``restore`` are given what it was before.

    A child that is forked meanwhile leaves under a lock of its own.
    """
    user = _User()
    try:  # before anything changes: Ctrl-C may come between any two lines
        with _settings.lock:
            setting.users = [*setting.without(user), ref(user)]
            if len(setting.users) == 1:
                if setting.before is None:  # else an exit was interrupted, and its change still holds
                    setting.before = read()
                change(setting.before)
        yield
    finally:
        with _settings.lock:
            setting.users = setting.without(user)
            if not setting.users and setting.before is not None:
                restore(setting.before)
                setting.before = None


def single_threaded_blas() -> AbstractContextManager[None]:
    """Limit BLAS to one thread: the machines of a plan are the threads, and sums then have one order.

    The limit belongs to the process: the first execution sets it, the last one that runs at the same time
    lifts it.
    """

    def limit(before: Sequence[tuple[Any, int]]) -> None:
        _set_blas_threads((library, 1) for library, _ in before)

    return _changed(_settings.blas, _several_blas_threads, limit, _set_blas_threads)


@cache
def _blas() -> Sequence[Any]:
    """Find the BLAS libraries once: the search takes milliseconds."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _several_blas_threads() -> Sequence[tuple[Any, int]]:
    """Return the BLAS libraries that use several threads, with the number of these."""
    return [(library, count) for library in _blas() if (count := library.num_threads) > 1]


def _set_blas_threads(counts: Iterable[tuple[Any, int]]) -> None:
    """Set the threads of BLAS libraries.

    threadpoolctl 3.8 heeds only the thread that set them first, as long as that one lives. Here the first and
    the last execution may be on different threads, so each gives that right back.
    """
    for library, count in counts:
        library.set_num_threads(count)
    _give_control_back()


_give_control_back: Final = getattr(OpenBLASController, "clear_controlling_thread", lambda: None)

_PROMPT: Final = 1e-4
"""Seconds after which a waiting thread gets the interpreter's lock; Python's 5 ms are a whole task here."""


def prompt_switches() -> AbstractContextManager[None]:
    """Let threads wait less for the interpreter's lock; the interval belongs to the process, as BLAS does."""

    def shorten(before: float) -> None:
        sys.setswitchinterval(min(_PROMPT, before))

    return _changed(_settings.switches, sys.getswitchinterval, shorten, sys.setswitchinterval)
