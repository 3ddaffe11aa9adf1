"""Executors that disturb: they shuffle, delay or serialize what they are given."""

import random
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor


class ShufflingExecutor(Executor):
    """Runs tasks on threads in random order, each after a random nap."""

    def __init__(self, threads, seed):
        self._random = random.Random(seed)
        self._waiting = []
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(threads)
        self.submitted = 0

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        with self._lock:
            self.submitted += 1
            self._waiting.append((future, fn, args, kwargs))
            nap = self._random.random() * 2e-3
        self._pool.submit(self._run_any, nap)
        return future

    def _run_any(self, nap):
        time.sleep(nap)
        with self._lock:
            future, fn, args, kwargs = self._waiting.pop(self._random.randrange(len(self._waiting)))
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 (a future carries whatever was raised)
                future.set_exception(error)

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


class SerialExecutor(Executor):
    """Runs each task at once, where it is submitted."""

    def __init__(self):
        self.submitted = 0

    def submit(self, fn, /, *args, **kwargs):
        self.submitted += 1
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 (a future carries whatever was raised)
            future.set_exception(error)
        return future
