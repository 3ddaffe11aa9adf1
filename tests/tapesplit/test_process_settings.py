"""Settings of the process are put back whatever happens: other threads, Ctrl-C, forks."""

import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from threadpoolctl import threadpool_limits

from tapesplit.execution import process_settings
from tapesplit.execution.process_settings import prompt_switches, single_threaded_blas
from tapesplit.recording import memory


class _Interrupted:
    """A lock at whose first release the user presses Ctrl-C."""

    def __init__(self):
        self.lock, self.pressed = threading.Lock(), False

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *_details):
        self.lock.release()
        if not self.pressed:
            self.pressed = True
            raise KeyboardInterrupt


class _Library:
    """A BLAS in whose first or second change of threads the user may press Ctrl-C."""

    def __init__(self, *, interrupted):
        self.num_threads, self.changes, self.interrupted = 4, 0, interrupted

    def set_num_threads(self, count):
        self.changes += 1
        if self.changes == self.interrupted == 2:  # before it has any effect
            raise KeyboardInterrupt
        self.num_threads = count
        if self.changes == self.interrupted:
            raise KeyboardInterrupt


@pytest.fixture
def settings(monkeypatch):
    monkeypatch.setattr(process_settings, "_settings", process_settings._Settings())
    return process_settings._settings


@pytest.mark.parametrize("where", ["lock", "library"])
def test_an_interrupt_while_blas_is_limited_lifts_the_limit(settings, monkeypatch, where):
    library = _Library(interrupted=int(where == "library"))
    monkeypatch.setattr(process_settings, "_blas", lambda: [library])
    if where == "lock":
        settings.lock = _Interrupted()
    with pytest.raises(KeyboardInterrupt), single_threaded_blas():
        pass
    assert library.num_threads == 4
    with single_threaded_blas():
        assert library.num_threads == 1
        with single_threaded_blas():
            pass
        assert library.num_threads == 1
    assert library.num_threads == 4


def test_an_interrupt_while_the_limit_of_blas_is_lifted_is_made_up_for(settings, monkeypatch):
    library = _Library(interrupted=2)
    monkeypatch.setattr(process_settings, "_blas", lambda: [library])
    with pytest.raises(KeyboardInterrupt), single_threaded_blas():
        pass
    assert library.num_threads == 1
    with single_threaded_blas():
        pass
    assert library.num_threads == 4


def test_somebody_whose_execution_is_gone_limits_nothing(settings, monkeypatch):
    """As when Ctrl-C keeps him from saying so."""
    library = _Library(interrupted=0)
    monkeypatch.setattr(process_settings, "_blas", lambda: [library])
    settings.blas.users.append(weakref.ref(process_settings._User()))
    with single_threaded_blas():
        assert library.num_threads == 1
    assert library.num_threads == 4


def test_the_limit_of_blas_is_lifted_by_another_thread_than_set_it():
    libraries = process_settings._blas()
    before = [library.num_threads for library in libraries]
    process_settings._set_blas_threads((library, 2) for library in libraries)
    wanted = [library.num_threads for library in libraries]
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as another:  # both stay alive
        first, last = single_threaded_blas(), single_threaded_blas()
        one.submit(first.__enter__).result()
        another.submit(last.__enter__).result()
        assert [library.num_threads for library in libraries] == [1] * len(libraries)
        one.submit(first.__exit__, None, None, None).result()
        assert [library.num_threads for library in libraries] == [1] * len(libraries)
        another.submit(last.__exit__, None, None, None).result()
        assert [library.num_threads for library in libraries] == wanted
        with threadpool_limits(1):  # nor does it keep users from setting limits elsewhere
            assert [library.num_threads for library in libraries] == [1] * len(libraries)
    process_settings._set_blas_threads(zip(libraries, before, strict=True))


def test_the_switch_interval_is_restored_after_threads_have_run():
    before = sys.getswitchinterval()
    with prompt_switches():
        assert sys.getswitchinterval() == pytest.approx(1e-4)
        with prompt_switches():
            pass
        assert sys.getswitchinterval() == pytest.approx(1e-4)
    assert sys.getswitchinterval() == before


def test_an_interrupt_while_switches_become_prompt_restores_the_interval(settings):
    before = sys.getswitchinterval()
    settings.lock = _Interrupted()
    with pytest.raises(KeyboardInterrupt), prompt_switches():
        pass
    assert sys.getswitchinterval() == before
    with prompt_switches():
        assert sys.getswitchinterval() == pytest.approx(1e-4)
    assert sys.getswitchinterval() == before


@pytest.mark.timeout(20)
def test_a_child_that_is_forked_while_it_computes_leaves_under_its_own_lock(settings):
    before = sys.getswitchinterval()
    with prompt_switches():
        assert sys.getswitchinterval() < before
        settings.lock.acquire()  # by another thread, which the child does not have
        process_settings._renew_settings()
    assert sys.getswitchinterval() == before


@pytest.mark.parametrize(
    ("environment", "library", "works", "expected"),
    [
        ({}, "glibc", True, {-3: 2**25, -1: 2**28}),
        ({"MALLOC_TRIM_THRESHOLD_": "1000000"}, "glibc", True, {-3: 2**25}),
        ({"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1000000"}, "glibc", True, {-1: 2**28}),
        ({}, "glibc", False, {-3: 2**25}),
        ({}, "", True, {}),
    ],
)
def test_freed_memory_is_kept_unless_the_user_says_otherwise(
    environment, library, works, expected, monkeypatch
):
    limits = {}

    def mallopt(number, size):
        limits[number] = size
        return works

    names = ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"]
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(memory.platform, "libc_ver", lambda: (library, ""))
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=mallopt))
    memory.keep_freed_memory.__wrapped__()
    assert limits == expected
