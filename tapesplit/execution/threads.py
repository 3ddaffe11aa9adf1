"""What an execution takes from its process: kept threads, and a BLAS that runs on one thread."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar
from weakref import ref

from threadpoolctl import OpenBLASController, ThreadpoolController

from tapesplit.forks import renew_after_fork
from tapesplit.recording.tracing import holds_tracing_lock

__all__ = ["may_use_threads", "on_worker", "prompt_switches", "single_threaded_blas", "submit"]

Result = TypeVar("Result")


class _User:
    """An execution that relies on a setting of the process.

    It is known by weak references only, which end with the execution even if Ctrl-C ends that.
    """

    __slots__ = ("__weakref__",)


@dataclass(slots=True)
class _Setting:
    """A setting of the process that the first of its users changes, and the last one puts back."""

    users: list["ref[_User]"] = field(default_factory=list)
    before: Any = None
    """What it was; None while nobody uses it."""


@dataclass(slots=True)
class _ProcessState:
    """Everything that belongs to one process; a forked child starts with a new one."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    pools: dict[int, ThreadPoolExecutor] = field(default_factory=dict)
    blas: _Setting = field(default_factory=_Setting)
    switches: _Setting = field(default_factory=_Setting)


_process = _ProcessState()


def _renew_state() -> None:
    """Forget pools whose threads the child does not have, and a lock that nobody there would release.

    What another thread has set is put back by the next one that uses it.
    """
    global _process  # noqa: PLW0603 (see the class)
    _process = _ProcessState(blas=_process.blas, switches=_process.switches)
    _process.blas.users, _process.switches.users = [], []


renew_after_fork(_renew_state)


def submit(machines: int, function: Callable[..., Result], *args: Any) -> "Future[Result]":
    """Run a function on this process's threads for so many machines.

    Where no thread can be had any more, at the exit of the interpreter, it runs here.
    """
    with _process.lock:
        pool = _process.pools.get(machines)
        if pool is None:
            pool = ThreadPoolExecutor(machines, thread_name_prefix="tapesplit")
            _process.pools[machines] = pool
    try:
        return pool.submit(function, *args)
    except RuntimeError:
        future: Future[Result] = Future()
        try:
            future.set_result(function(*args))
        except BaseException as error:  # noqa: BLE001 (a future carries whatever was raised)
            future.set_exception(error)
        return future
    except BaseException:  # Ctrl-C may leave a lock of the pool taken for good
        with _process.lock:
            _process.pools.pop(machines, None)
        raise


_here = threading.local()


def on_worker(function: Callable[..., Result], *args: Any) -> Result:
    """Run a function and remember meanwhile that this thread works for an execution."""
    before = getattr(_here, "works", False)
    _here.works = True
    try:
        return function(*args)
    finally:
        _here.works = before


def may_use_threads(executor: Executor | None) -> bool:
    """Return whether an execution that begins on this thread may wait for others, those of an executor.

    It may not inside a rule that runs for another execution, or on a thread of the executor: all threads
    might wait for each other. Nor may it while this thread holds the tracing lock, which the others may need.
    """
    # By its name: the executor lists a thread only once that has begun, maybe with this very execution.
    prefix = getattr(executor, "_thread_name_prefix", None)
    is_one_of_them = prefix is not None and threading.current_thread().name.startswith(f"{prefix}_")
    return not (is_one_of_them or getattr(_here, "works", False) or holds_tracing_lock())


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
        with _process.lock:
            setting.users = [*_others(setting.users, user), ref(user)]
            if len(setting.users) == 1:
                if setting.before is None:  # else an exit was interrupted, and its change still holds
                    setting.before = read()
                change(setting.before)
        yield
    finally:
        with _process.lock:
            setting.users = _others(setting.users, user)
            if not setting.users and setting.before is not None:
                restore(setting.before)
                setting.before = None


def _others(users: Iterable["ref[_User]"], user: _User) -> list["ref[_User]"]:
    """Return the users that are still there, but for one."""
    return [other for other in users if other() is not None and other() is not user]


def single_threaded_blas() -> AbstractContextManager[None]:
    """Limit BLAS to one thread: the machines of a plan are the threads, and sums then have one order.

    The limit belongs to the process: the first execution sets it, the last one that runs at the same time
    lifts it.
    """

    def limit(before: Sequence[tuple[Any, int]]) -> None:
        _set_blas_threads((library, 1) for library, _ in before)

    return _changed(_process.blas, _several_blas_threads, limit, _set_blas_threads)


@cache
def _blas() -> Sequence[Any]:
    """Find the BLAS libraries once: the search takes most of a millisecond."""
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
    """Let threads change over promptly; the interval belongs to the process, like the limit of BLAS."""

    def shorten(before: float) -> None:
        sys.setswitchinterval(min(_PROMPT, before))

    return _changed(_process.switches, sys.getswitchinterval, shorten, sys.setswitchinterval)
