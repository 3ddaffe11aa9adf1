"""Faults: whatever goes wrong in the user's code, nothing hangs and the next call is right."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, as_completed
from concurrent.futures import wait as wait_for
from contextlib import nullcontext
from itertools import pairwise
from queue import SimpleQueue

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian
from autograd.extend import defvjp, primitive
from autograd.tracer import trace_stack
from executors import SerialExecutor, ShufflingExecutor
from small_problems import PROBLEMS
from sweep_forms import forced

from tapesplit import Callback, RecordingError, RuleError, defvector, execute, parallel_jacobian, record
from tapesplit.execution import process_settings, threads
from tapesplit.recording import tracing
from tapesplit.recording.direct_functions import DIRECT_FUNCTIONS
from tapesplit.recording.memory import NoGarbageCollection

pytestmark = pytest.mark.timeout(60)

X = onp.linspace(0.3, 0.9, 8)


class Kept(ThreadPoolExecutor):
    """Forces several machines; threads as in the kept pool."""


def bottlenecks(x):
    return PROBLEMS["bottlenecks_long"].fun(x)


def jacobian_on_threads(fun, **options):
    """Return a Jacobian function whose plan really runs on several threads."""
    return parallel_jacobian(fun, machines=3, executor=Kept(3), **options)


def failing_primitive(error):
    """Make an identity whose VJP raises."""

    @primitive
    def broken(x):
        return 1.0 * x

    def vjp(_g):
        raise error

    defvjp(broken, lambda _ans, _x: vjp)
    return broken


@primitive
def _strict(x):
    return 1.0 * x


defvjp(_strict, lambda _ans, _x: lambda g: 1.0 * g)


def strict_bottlenecks(x):
    """Bottlenecks with rules that need the tracing lock on both sides."""
    for width in (3, 8, 2, 9, 3):
        x = _strict(np.tanh(onp.cos(onp.arange(width * x.shape[0])).reshape(width, -1) @ _strict(x)))
    return x


def assert_pool_works():
    jac = jacobian_on_threads(bottlenecks)
    onp.testing.assert_allclose(jac(X), jacobian(bottlenecks)(X), rtol=1e-11, atol=1e-15)


ERRORS = [
    ValueError("mine"),
    MemoryError("mine"),
    KeyboardInterrupt("mine"),
    SystemExit("mine"),
    RuntimeError("mine"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_exception_in_the_function(error):
    def fun(x):
        y = np.sin(x)
        raise error
        return y

    with pytest.raises(type(error)) as caught:
        parallel_jacobian(fun)(X)
    assert caught.value is error
    assert any(
        "while recording" in note and "after 1 operation, the last one sin" in note
        for note in error.__notes__
    )
    error.__notes__.clear()
    assert_pool_works()


def test_exception_before_the_first_operation():
    with pytest.raises(ZeroDivisionError) as caught:
        parallel_jacobian(lambda _x: 1 / 0)(X)
    assert "after 0 operations" in caught.value.__notes__[0]


def test_exception_inside_a_nested_derivative():
    def inner(_y):
        raise ValueError("inner")

    with pytest.raises(ValueError, match="inner"):
        parallel_jacobian(lambda x: x * grad(inner)(1.0))(X)


def test_caught_exception_inside_a_nested_derivative():
    """autograd leaves its level raised when a derivative fails; the function may go on."""

    def fun(x):
        def inner(_y):
            raise ValueError("inner")

        with pytest.raises(ValueError, match="inner"):
            grad(inner)(1.0)
        return x * x

    onp.testing.assert_array_equal(parallel_jacobian(fun)(X), onp.diag(2 * X))


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("threads", [False, True])
def test_exception_in_a_rule(error, threads):
    broken = failing_primitive(error)

    def fun(x):
        return bottlenecks(broken(bottlenecks(np.concatenate([x] * 3)[:8])[[0, 1, 2, 0, 1, 2, 0, 1]]))

    jac = (jacobian_on_threads if threads else parallel_jacobian)(fun)
    with pytest.raises(type(error)) as caught:
        jac(X)
    assert caught.value is error
    assert any("while computing the Jacobian of" in note and "ACC" in note for note in error.__notes__)
    error.__notes__.clear()
    assert_pool_works()


def watched_identity(during):
    """Make an identity whose vector rules call a function each time."""

    @primitive
    def identity(x):
        return 1.0 * x

    def rule(directions, _ans, _x):
        during()
        return directions

    defvjp(identity, lambda _ans, _x: lambda g: g)
    defvector(identity, tangents=[rule], adjoints=[rule])
    return identity


def test_an_exception_waits_for_the_task_on_the_other_machine():
    began, failed = threading.Event(), threading.Event()
    log = []

    def nap():
        log.append("nap begins")
        began.set()
        assert failed.wait(timeout=30)
        time.sleep(0.05)
        log.append("nap ends")

    def fail():
        assert began.wait(timeout=30)
        log.append("failure")
        failed.set()
        raise ValueError("mine")

    naps, fails = watched_identity(nap), watched_identity(fail)
    jac = parallel_jacobian(lambda x: fails(bottlenecks(naps(x))), machines=2, executor=Kept(2))
    with pytest.raises(ValueError, match="mine"):
        jac(X)
    assert log == ["nap begins", "failure", "nap ends"]


@pytest.mark.parametrize("hook", ["start", "pretask", "posttask", "finish"])
@pytest.mark.parametrize("threads", [False, True])
def test_exception_in_a_callback(hook, threads):
    def fail(*_args):
        raise ValueError(hook)

    make = jacobian_on_threads if threads else parallel_jacobian
    with pytest.raises(ValueError, match=hook):
        make(bottlenecks, callback=Callback(**{hook: fail}))(X)
    assert_pool_works()


def test_broken_executor():
    class Broken(SerialExecutor):
        def submit(self, *_args, **_kwargs):
            raise OSError("no executor today")

    with pytest.raises(OSError, match="no executor today"):
        parallel_jacobian(bottlenecks, machines=3, executor=Broken())(X)
    stopped = ThreadPoolExecutor(2)
    stopped.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown") as caught:
        parallel_jacobian(bottlenecks, machines=3, executor=stopped)(X)
    assert caught.value.__notes__ == [
        "while handing a task to what was given as executor, a ThreadPoolExecutor"
    ]


def test_many_threads_at_once():
    """Eight threads, different programs, nested derivatives among them, shared and own functions."""
    names = [
        "bottlenecks_long",
        "gradient_inside",
        "linear_algebra",
        "scalar_loop",
        "jacobian_inside",
        "boxed_list",
    ]
    want = {name: jacobian(PROBLEMS[name].fun)(*PROBLEMS[name].args) for name in names}
    shared = {name: parallel_jacobian(PROBLEMS[name].fun, machines=2) for name in names}
    threaded = {name: jacobian_on_threads(PROBLEMS[name].fun) for name in names}
    barrier = threading.Barrier(8)

    def work(seed):
        rng = onp.random.default_rng(seed)
        barrier.wait()
        for _ in range(15):
            name = names[rng.integers(len(names))]
            jac = (shared[name], threaded[name], parallel_jacobian(PROBLEMS[name].fun))[rng.integers(3)]
            got = jac(*PROBLEMS[name].args)
            onp.testing.assert_allclose(got, want[name], rtol=1e-10, atol=1e-12 * onp.abs(want[name]).max())

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, seed) for seed in range(8)]:
            future.result(timeout=50)


def test_one_function_from_many_threads_with_changing_structures():
    jac = parallel_jacobian(lambda x: np.sin(x) * np.sum(x))

    def work(size):
        x = onp.linspace(0.1, 1.0, size)
        for _ in range(10):
            onp.testing.assert_allclose(
                jac(x), onp.diag(onp.cos(x) * x.sum()) + onp.sin(x)[:, None], rtol=1e-13
            )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(2, 18)))
    info = jac.cache_info()
    assert info.currsize == info.maxsize == 8
    assert info.hits + info.misses == 160


def test_jacobian_of_a_function_that_calls_jacobians():
    inner = jacobian_on_threads(bottlenecks)

    def fun(x):
        return inner(X) @ x  # an inner Jacobian of constants, while the outer trace is active

    onp.testing.assert_allclose(parallel_jacobian(fun)(X), inner(X), rtol=1e-13)


@pytest.mark.parametrize("where", ["vjp", "vector rule"])
@pytest.mark.parametrize("outer_machines", [1, 3])
def test_rule_that_computes_a_jacobian(where, outer_machines):
    """All threads of the pool run rules that ask for threads, some of them holding the tracing lock."""
    pool = ThreadPoolExecutor(2)
    inner = parallel_jacobian(strict_bottlenecks, machines=3, executor=pool)
    assert len({task.machine for task in inner.plan(X).tasks}) > 1
    total = inner(X).sum()

    @primitive
    def scaled(x):
        return total * x

    defvjp(scaled, lambda _ans, _x: lambda g: g * inner(X).sum())
    if where == "vector rule":
        defvector(
            scaled,
            tangents=[lambda T, _ans, _x: T * inner(X).sum()],
            adjoints=[lambda A, _ans, _x: A * inner(X).sum()],
        )

    def fun(x):
        for _ in range(4):
            x = scaled(np.tile(bottlenecks(scaled(x)), 3)[:8])
        return x

    executor = pool if outer_machines > 1 else None
    outer = parallel_jacobian(fun, machines=outer_machines, executor=executor)
    assert len({task.machine for task in outer.plan(X).tasks}) == min(outer_machines, 2) or outer_machines > 2
    onp.testing.assert_allclose(outer(X), jacobian(fun)(X), rtol=1e-10, atol=1e-25)
    pool.shutdown()


def _by_map(jac):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(jac, [X, X, X]))


def _by_result(jac):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(jac, X).result()


def _by_wait(jac):
    with ThreadPoolExecutor(2) as pool:
        done, _ = wait_for([pool.submit(jac, X) for _ in range(3)])
        return [future.result() for future in done]


def _by_completion(jac):
    with ThreadPoolExecutor(2) as pool:
        return [future.result() for future in as_completed([pool.submit(jac, X)])]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("wait", [_by_map, _by_result, _by_wait, _by_completion])
def test_recordings_that_wait_for_each_other_are_refused(wait, monkeypatch):
    monkeypatch.setattr(tracing, "_PATIENCE", 0.02)
    inner = parallel_jacobian(np.sin)

    def fun(x):
        wait(inner)
        return np.sin(x)

    with pytest.raises(RecordingError, match="compute Jacobians on the same thread") as caught:
        parallel_jacobian(fun)(X)
    assert any("while recording fun" in note for note in caught.value.__notes__)
    assert_pool_works()


@pytest.mark.timeout(20)
def test_a_thread_that_is_joined_while_recording_is_refused(monkeypatch):
    monkeypatch.setattr(tracing, "_PATIENCE", 0.02)
    failed = []

    def work():
        try:
            parallel_jacobian(np.sin)(X)
        except RecordingError as error:
            failed.append(error)

    def fun(x):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return np.sin(x)

    onp.testing.assert_array_equal(parallel_jacobian(fun)(X), onp.diag(onp.cos(X)))
    assert len(failed) == 1


@pytest.mark.timeout(20)
def test_deadlocks_by_way_of_a_third_thread_are_refused(monkeypatch):
    monkeypatch.setattr(tracing, "_PATIENCE", 0.02)
    inner = parallel_jacobian(np.sin)

    def fun(x):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(_by_result, inner).result()
        return np.sin(x)

    with pytest.raises(RecordingError, match="compute Jacobians on the same thread"):
        parallel_jacobian(fun)(X)


@pytest.mark.timeout(20)
def test_a_thread_that_is_slow_to_start_is_no_deadlock(monkeypatch):
    """Thread.start waits for the thread, too, but only for its begin."""
    monkeypatch.setattr(tracing, "_PATIENCE", 0.01)
    found = []

    def slow(x):
        thread = threading.Thread(target=lambda: found.append(parallel_jacobian(np.cos)(X)))
        begun = thread._started.set
        thread._started.set = threading.Timer(0.2, begun).start
        thread.start()
        others.append(thread)
        return np.sin(x)

    others = []
    onp.testing.assert_array_equal(parallel_jacobian(slow)(X), onp.diag(onp.cos(X)))
    others[0].join()
    onp.testing.assert_array_equal(found[0], -onp.diag(onp.sin(X)))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "wait",
    [
        lambda pool, other: pool.submit(time.sleep, 0.2).result(),
        lambda pool, other: list(pool.map(time.sleep, [0.2, 0.1])),
        lambda pool, other: wait_for([pool.submit(time.sleep, 0.2)]),
        lambda pool, other: wait_for(iter([pool.submit(time.sleep, 0.2)])),
        lambda pool, other: wait_for([other, pool.submit(time.sleep, 0.2)], return_when=FIRST_COMPLETED),
        lambda pool, other: wait_for([other], timeout=0.2),
        lambda pool, other: time.sleep(0.2),
    ],
)
def test_waits_that_end_are_no_deadlock(wait, monkeypatch):
    monkeypatch.setattr(tracing, "_PATIENCE", 0.01)
    others = []

    def slow(x):
        others.append(pool.submit(parallel_jacobian(np.cos), X))
        wait(pool, others[0])
        return np.sin(x)

    with ThreadPoolExecutor(4) as pool:
        onp.testing.assert_array_equal(parallel_jacobian(slow)(X), onp.diag(onp.cos(X)))
        onp.testing.assert_array_equal(others[0].result(), -onp.diag(onp.sin(X)))


def test_a_jacobian_that_no_memory_can_hold():
    x = onp.broadcast_to(1.0, 10**7)
    for method in ("auto", "tangent", "adjoint"):
        with pytest.raises(MemoryError) as caught:
            parallel_jacobian(lambda x: np.sin(x) * 2.0, method=method)(x)
        assert any("while computing the Jacobian" in note for note in caught.value.__notes__)
        alone = "the dense Jacobian alone, 10000000 × 10000000, takes 800,000 GB in double precision"
        assert any(alone in note for note in caught.value.__notes__)
    assert_pool_works()


def test_the_kept_pool_runs_plans_for_several_machines():
    plan = parallel_jacobian(bottlenecks, machines=3, executor=SerialExecutor()).plan(X)
    tape = record(bottlenecks, X)
    threads = set()
    tapes = [execute(plan, tape, executor=SerialExecutor())]

    @primitive
    def watched(x):
        return 1.0 * x

    defvjp(watched, lambda _ans, _x: lambda g: threads.add(threading.current_thread().name) or g)
    tapes += [execute(plan, tape) for _ in range(3)]
    assert all((result == tapes[0]).all() for result in tapes)
    watching = parallel_jacobian(
        lambda x: watched(bottlenecks(watched(x))), machines=3, executor=SerialExecutor()
    )
    execute(watching.plan(X), watching.tape(X))
    assert threads
    assert all(name.startswith("tapesplit") for name in threads)


def test_one_thread_serves_a_plan_for_three_machines():
    executor = ThreadPoolExecutor(1)
    jac = parallel_jacobian(bottlenecks, machines=3, executor=executor)
    onp.testing.assert_allclose(jac(X), jacobian(bottlenecks)(X), rtol=1e-11, atol=1e-15)
    executor.shutdown()


@pytest.mark.timeout(30)
def test_a_call_on_a_thread_of_its_own_executor_does_not_wait_for_it():
    with ThreadPoolExecutor(1) as pool:
        jac = parallel_jacobian(bottlenecks, machines=3, executor=pool)
        assert jac.plan(X).machines == 3
        assert (pool.submit(jac, X).result(timeout=20) == jac(X)).all()


def test_an_executor_that_counts_as_false_is_used():
    class Empty(SerialExecutor):
        def __len__(self):
            return 0

    executor = Empty()
    jac = parallel_jacobian(bottlenecks, machines=3, executor=executor)
    jac(X)
    assert executor.submitted == len(jac.plan(X).tasks) > 1


def test_times_of_tasks_are_reported_in_order_of_the_plan():
    records, started = [], []
    callback = Callback(
        start=lambda plan: started.append(len(plan.tasks)), finish=lambda _plan, done: records.extend(done)
    )
    executor = ShufflingExecutor(3, seed=1)
    parallel_jacobian(bottlenecks, machines=3, executor=executor, callback=callback)(X)
    executor.shutdown()
    assert started == [len(records)]
    assert sorted(record.index for record in records) == list(range(len(records)))
    by_machine = {}
    for entry in records:
        by_machine.setdefault(entry.machine, []).append(entry)
    for entries in by_machine.values():
        assert all(a.finish <= b.start for a, b in pairwise(entries))
        assert [e.index for e in entries] == sorted(e.index for e in entries)


def test_blas_threads_are_restored_after_concurrent_executions():
    from threadpoolctl import ThreadpoolController

    def threads():
        return [lib["num_threads"] for lib in ThreadpoolController().info() if lib["user_api"] == "blas"]

    before = threads()
    jac = jacobian_on_threads(bottlenecks)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: jac(X), range(60)))
    assert threads() == before


def run_script(text, before="", **options):
    """Run a script in its own interpreter; return the finished process."""
    script = before + "import sys\n" + textwrap.dedent(PRELUDE) + textwrap.dedent(text)
    return subprocess.run(  # noqa: S603 (the test's own text)
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False, **options
    )


PRELUDE = """
import numpy as onp
import autograd.numpy as np
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from tapesplit import parallel_jacobian, execute, record
from tapesplit.execution.threads import submit
weights = [onp.cos(onp.arange(a * b)).reshape(a, b) for a, b in ((3, 8), (8, 3), (2, 8), (9, 2), (3, 9))]
def fun(x):
    for w in weights:
        x = np.tanh(w @ x)
    return x
X = onp.linspace(0.3, 0.9, 8)
class Kept(ThreadPoolExecutor):
    def submit(self, *args):  # the pool that the process keeps
        return submit(3, *args)
jac = parallel_jacobian(fun, machines=3, executor=Kept(1))
J = jac(X)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_computes_on_its_own_threads():
    done = run_script(
        """
        import os, threading, warnings
        from tapesplit import plan_cache
        from tapesplit.execution import process_settings, threads
        from tapesplit.recording import tracing
        warnings.simplefilter("ignore", DeprecationWarning)
        assert len(jac.plan(X).tasks) > 1
        # another thread holds every lock at the moment of the fork
        settings = process_settings._settings
        locks = (tracing._state.lock, threads._process.lock, settings.lock, plan_cache._lock)
        held, release = threading.Event(), threading.Event()
        def hold():
            with tracing.tracing_lock(), locks[1], locks[2], locks[3]:
                held.set()
                release.wait(20)
        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(10)
        child = os.fork()
        if child == 0:
            os._exit(0 if (jac(X) == J).all() and (jac(X + 1) != J).any() else 7)
        release.set()
        holder.join()
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (jac(X) == J).all())
        """
    )
    assert done.stdout.strip() == "child 0 True", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_back_what_another_thread_has_set():
    done = run_script(
        """
        import gc, os, threading, warnings
        from tapesplit.execution.process_settings import prompt_switches
        warnings.simplefilter("ignore", DeprecationWarning)
        before = sys.getswitchinterval()
        inside, release = threading.Event(), threading.Event()
        def waits(x):
            inside.set()
            release.wait(20)
            return x
        def work():
            with prompt_switches():
                parallel_jacobian(waits)(X)
        worker = threading.Thread(target=work)
        worker.start()
        inside.wait(10)
        child = os.fork()
        if child == 0:
            with prompt_switches():
                pass
            os._exit(0 if gc.isenabled() and sys.getswitchinterval() == before else 7)
        release.set()
        worker.join()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print("child", code, gc.isenabled(), sys.getswitchinterval() == before)
        """
    )
    assert done.stdout.strip() == "child 0 True True", done.stderr


def test_jacobian_at_the_exit_of_the_interpreter():
    done = run_script(
        """
        import atexit
        @atexit.register
        def late():
            print("late", (jac(X) == J).all(), flush=True)
        """
    )
    assert (done.returncode, done.stdout.strip()) == (0, "late True"), done.stderr


def test_exit_while_a_thread_computes():
    done = run_script(
        """
        import threading
        def work():
            for _ in range(200):
                assert (jac(X) == J).all()
            print("done", flush=True)
        threading.Thread(target=work).start()
        """
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_keyboard_interrupt_during_the_execution():
    done = run_script(
        f"""
        import os, signal, threading, time
        from autograd.extend import primitive, defvjp
        import autograd.tracer
        @primitive
        def slow(x):
            return 1.0 * x
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
        def vjp(g):
            if not interrupted:
                interrupted.append(True)
                os.kill(os.getpid(), {int(signal.SIGINT)})
                time.sleep(0.3)
            return g
        defvjp(slow, lambda ans, x: vjp)
        interrupted = []
        jac = parallel_jacobian(lambda x: slow(fun(slow(x))), machines=3, executor=Kept(1))
        try:
            jac(X)
        except KeyboardInterrupt:
            print("interrupted", autograd.tracer.trace_stack.top)
        print(onp.abs(jac(X) - J).max() < 1e-14)
        """
    )
    assert done.stdout.split() == ["interrupted", "-1", "True"], done.stderr


def test_a_tape_of_another_program_is_refused():
    tape, other = record(np.sin, X), record(np.cos, X)
    plan = parallel_jacobian(np.sin).plan(X)
    assert execute(plan, tape).shape == (8, 8)
    with pytest.raises(
        ValueError, match=r"does not fit this tape.*the operation of entry 1.*from sin to cos"
    ):
        execute(plan, other)
    with pytest.raises(ValueError, match=r"shape or type of the value of entry 0"):
        execute(plan, record(np.sin, X[:3]))


@pytest.mark.parametrize("mode", ["tangent", "adjoint"])
@pytest.mark.parametrize("error", [None, ValueError("broken rule")])
def test_the_buffers_of_numpy_are_small_during_large_sweeps_only(monkeypatch, mode, error):
    met = []

    def directions(rows, ans, x):
        met.append(onp.getbufsize())
        if error is not None:
            raise error
        return rows

    @primitive
    def noted(x):
        return 1.0 * x

    defvector(noted, tangents=[directions], adjoints=[directions])
    forced(monkeypatch, "arrays")
    before = onp.getbufsize()
    for size in (5, 200):
        jac = parallel_jacobian(lambda x: np.outer(noted(x), x[:3]), method=mode)
        with nullcontext() if error is None else pytest.raises(ValueError, match="broken rule"):
            jac(onp.ones(size))
        assert onp.getbufsize() == before
    assert met[0] == before
    assert met[-1] < before


def test_threads_whose_start_is_interrupted_are_not_counted_on(monkeypatch):
    monkeypatch.setattr(threads, "_process", threads._ProcessState())

    def interrupted(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            threads.submit(2, int)
    assert threads._process.calls == {}
    done = SimpleQueue()
    threads.submit(2, done.put, "done")
    assert done.get(timeout=20) == "done"


@pytest.mark.parametrize("most", [0, 1])
def test_tasks_run_on_the_threads_that_there_are(monkeypatch, most):
    monkeypatch.setattr(threads, "_process", threads._ProcessState())
    started, begin = [], threading.Thread.start

    def start(thread):
        if len(started) == most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    done = SimpleQueue()
    for _ in range(3):
        threads.submit(4, lambda: done.put(threading.current_thread()))
    assert {done.get(timeout=20) for _ in range(3)} == set(started or [threading.current_thread()])


def test_an_executor_that_drops_a_task_does_not_leave_the_call_waiting():
    class Dropping(ThreadPoolExecutor):
        def submit(self, *_args, **_kwargs):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(CancelledError):
        parallel_jacobian(bottlenecks, machines=3, executor=Dropping(1))(X)
    assert_pool_works()


def test_garbage_is_collected_again_when_an_exit_was_interrupted():
    pause = NoGarbageCollection()
    pause.__enter__()
    with NoGarbageCollection():
        pass
    assert not gc.isenabled()
    del pause
    with NoGarbageCollection():
        pass
    assert gc.isenabled()
    gc.disable()
    with NoGarbageCollection():
        pass
    assert not gc.isenabled()
    gc.enable()


@pytest.mark.parametrize("noted", [False, True])
def test_a_child_gets_a_new_tracing_lock_whenever_another_thread_had_it(monkeypatch, noted):
    """Also if the fork came before the other thread had noted itself as the holder."""
    state = tracing._TracingState()
    monkeypatch.setattr(tracing, "_state", state)

    def hold():
        state.lock.acquire()
        state.holder = threading.get_ident() if noted else None

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patch:
        patch.setattr(trace_stack, "top", 5)
        pool.submit(hold).result()
        tracing._renew_state()
        assert trace_stack.top == (-1 if noted else 5)
        assert tracing._state.lock.acquire(blocking=False)


def test_a_child_that_is_forked_while_it_traces_keeps_its_lock():
    with tracing.tracing_lock():
        before = tracing._state
        tracing._renew_state()
        assert tracing._state is before


def test_systems_without_forks_import_the_package():
    """Such as Windows."""
    done = run_script(
        """
        print(onp.isfinite(parallel_jacobian(np.sin)(0.0)))
        """,
        before="import os\ndel os.fork, os.register_at_fork\n",
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_modules_that_are_imported_while_recording_get_the_functions_of_autograd(tmp_path, monkeypatch):
    (tmp_path / "lazy_layers.py").write_text("from autograd.numpy import tanh, sum as total\n")
    monkeypatch.syspath_prepend(tmp_path)

    def fun(x):
        import lazy_layers

        return lazy_layers.tanh(x) * lazy_layers.total(x)

    parallel_jacobian(fun)(X)
    layers = sys.modules.pop("lazy_layers")
    assert (layers.tanh, layers.total) == (np.tanh, np.sum)


def test_anything_may_become_a_module_while_recording(monkeypatch):
    class Settings:
        tolerance = 1e-3

    def fun(x):
        monkeypatch.setitem(sys.modules, "settings_of_this_test", Settings)
        return np.tanh(x)

    parallel_jacobian(fun)(X)
    assert np.tanh is not DIRECT_FUNCTIONS["tanh"]


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("after", [np.sum, lambda x: x @ onp.ones((3, 3))])
def test_errors_of_rules_name_the_call(method, after):
    rules = {
        "takes 1 positional argument": {"partials": (lambda x: x,)},
        "has shape": {"partials": (lambda ans, x: onp.ones((3, 1)),)},
        "takes 2 positional arguments": {"tangents": [lambda T, ans: T], "adjoints": [lambda A, ans: A]},
    }
    for message, given in rules.items():

        @primitive
        def faulty(x):
            return 2.0 * x

        defvjp(faulty, lambda ans, x: lambda g: 2.0 * g)
        defvector(faulty, *given.pop("partials", ()), **given)
        with pytest.raises((TypeError, RuleError), match=message) as caught:
            parallel_jacobian(lambda x, f=faulty: after(f(np.sin(x))), method=method)(onp.ones(3))
        told = [str(caught.value), *caught.value.__notes__]
        assert any("faulty, entry 2 of the tape" in text for text in told)


@pytest.mark.parametrize(
    ("fun", "place"),
    [
        (lambda x: np.sqrt(x) * x[0], "sqrt, entry 1 of the tape"),
        (lambda x: np.array([np.sqrt(a) * x[0] for a in x]), "sqrt, entry 2 of the tape or one like it"),
    ],
)
def test_errors_of_formulas_in_systems_name_the_operation(fun, place):
    jac = parallel_jacobian(fun)
    assert jac.plan(X).tasks[0].form == "system"
    with onp.errstate(all="raise"), pytest.raises(FloatingPointError) as caught:
        jac(0.0 * X)
    assert f"in a derivative rule of {place}" in caught.value.__notes__


def test_an_exception_that_is_raised_again_gets_each_note_once():
    error = ValueError("always the same")

    def fails(x):
        np.sin(x)
        raise error

    for _ in range(3):
        with pytest.raises(ValueError, match="always the same"):
            parallel_jacobian(fails)(X)
    assert len(error.__notes__) == 1


def test_settings_of_numpy_hold_on_threads():
    jac = jacobian_on_threads(lambda x: bottlenecks(np.sqrt(x - X)))  # with infinite derivatives
    assert jac.plan(X).machines > 1
    with onp.errstate(all="ignore"):
        assert not onp.isfinite(jac(X)).all()
    with onp.errstate(all="raise"), pytest.raises(FloatingPointError):
        jac(X)


def large_products(x):
    weights = onp.cos(onp.arange(300.0 * 300)).reshape(300, 300) / 10
    for _ in range(6):
        x = np.tanh(weights @ x)
    return x


def test_large_products_that_threads_share_give_the_same_bits_everywhere():
    x = onp.linspace(-1.0, 1.0, 300)
    jac = parallel_jacobian(large_products, machines=2)
    assert jac.plan(x).step_threads == 2
    J = jac(x)
    onp.testing.assert_allclose(J, jacobian(large_products)(x), rtol=1e-11, atol=1e-11 * abs(J).max())
    with ThreadPoolExecutor(4) as pool:  # where executions do and do not find a thread free
        assert all((found == J).all() for found in pool.map(lambda _: jac(x), range(8)))
    tape, plan = jac.tape(x), jac.plan(x)
    assert (threads.on_worker(execute, plan, tape) == J).all()  # on a worker, which waits for no other


@pytest.mark.parametrize(("machines", "limit"), [(1, 4), (2, 1)])
def test_blas_does_not_spin_on_the_cores_of_threads_that_will_share_products(monkeypatch, machines, limit):
    class Library:
        num_threads = 4

        def set_num_threads(self, count):
            self.num_threads = count

    library, found = Library(), []

    def fun(x):
        found.append(library.num_threads)
        return large_products(x)

    monkeypatch.setattr(process_settings, "_blas", lambda: [library])
    jac, x = parallel_jacobian(fun, machines=machines), onp.linspace(-1.0, 1.0, 300)
    jac(x), jac(x)
    assert found == [4, limit]
    assert library.num_threads == 4
