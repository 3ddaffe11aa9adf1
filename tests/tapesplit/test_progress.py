"""The progress bar counts all planned work, on each thread apart, and callbacks can be joined."""

import builtins
import io
import threading

import autograd.numpy as anp
import numpy as np
import pytest
from autograd.scipy.integrate import odeint
from draw_plans import bottleneck

from tapesplit import Callback, parallel_jacobian
from tapesplit.progress import both, progress_bar

X = np.linspace(0.1, 1.0, 12)


class Bar:
    """Stands in for tqdm."""

    def __init__(self, total, desc, delay, **_options):
        self.total, self.desc, self.delay, self.done, self.closed = total, desc, delay, 0, False
        self.thread = threading.get_ident()

    def update(self, n):
        assert threading.get_ident() == self.thread
        self.done += n

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    tqdm = pytest.importorskip("tqdm.auto")
    made = []
    monkeypatch.setattr(tqdm, "tqdm", lambda **options: made.append(Bar(**options)) or made[-1])
    return made


def test_the_bar_counts_all_work_and_closes(bars):
    jacobian = parallel_jacobian(bottleneck, callback=progress_bar())
    jacobian(X)
    jacobian(X)
    assert [(bar.done, bar.total, bar.closed, bar.desc) for bar in bars] == 2 * [
        (bars[0].total, jacobian.plan(X).fma, True, "bottleneck")
    ]


def in_layers(x):
    for _ in range(3):
        x = anp.tanh(TABLE @ x)
    return x


def solved(x):
    return odeint(lambda y, _: -anp.sin(y), in_layers(x), np.array([0.0, 0.1]))[-1]


def in_stages(x):
    for _ in range(10):
        x = anp.array([anp.sin(x[1]) * x[2], x[0] - 0.1 * x[1], anp.cos(x[0])])
    return anp.abs(anp.fft.fft(anp.tile(x, 9))[:10])


TABLE = np.random.default_rng(0).normal(size=(60, 60)) / 7
LONG = {
    "steps": ("ArraySweep", in_layers, np.ones(60), {}),
    "blocks": ("ArraySweep", in_layers, np.ones(60), {"memory_limit": 20_000}),
    "a system": ("ScalarSweep", lambda x: anp.array([anp.sin(a) * a for a in x]), X, {"memory_limit": 2000}),
    "stages": ("StagedSweep", in_stages, np.ones(3), {}),
    "solver": ("ArraySweep", solved, np.ones(60), {}),
}


@pytest.mark.parametrize("name", LONG)
def test_what_is_done_of_a_task_increases(name):
    form, fun, x, options = LONG[name]
    seen = []
    callback = Callback(
        during=lambda _plan, index, part: seen.append((index, part)),
        posttask=lambda _plan, record: seen.append((record.index, 1.0)),
    )
    jacobian = parallel_jacobian(fun, machines=1, callback=callback, **options)
    found, (sweep,) = jacobian(x), jacobian.plan(x).sweeps
    assert type(sweep).__name__ == form
    assert len(seen) > 1
    assert seen == sorted(set(seen))
    np.testing.assert_array_equal(found, parallel_jacobian(fun, machines=1, **options)(x))


def test_a_callback_may_stop_a_task():
    def stop(_plan, _index, part):
        if part > 0.5:
            raise InterruptedError("enough")

    jacobian = parallel_jacobian(in_layers, machines=1, callback=Callback(during=stop))
    for _ in range(2):
        with pytest.raises(InterruptedError, match="enough"):
            jacobian(np.ones(60))
    parallel_jacobian(in_layers, machines=1)(np.ones(60))


def test_the_bar_moves_within_a_task(bars, monkeypatch):
    steps = []
    monkeypatch.setattr(Bar, "update", lambda self, n: steps.append(n))
    jacobian = parallel_jacobian(in_layers, machines=1, callback=progress_bar())
    jacobian(np.ones(60))
    assert len(jacobian.plan(np.ones(60)).tasks) == 1
    assert len(steps) > 3
    assert min(steps) > 0
    assert sum(steps) == bars[0].total


def test_the_bar_of_a_long_jacobian_is_there_from_the_start(bars):
    jacobian = parallel_jacobian(bottleneck)
    predicted = max(task.finish for task in jacobian.plan(X).tasks)
    for delay in (2.0 * predicted, 0.5 * predicted):
        parallel_jacobian(bottleneck, callback=progress_bar(delay))(X)
    assert [bar.delay for bar in bars] == [2.0 * predicted, 0.0]


def test_progress_joins_the_callback(bars):
    seen = []
    callback = Callback(finish=lambda *_: seen.append("end"))
    parallel_jacobian(bottleneck, callback=callback, progress=True)(X)
    parallel_jacobian(progress=True)(bottleneck)(X)
    assert (seen, len(bars)) == (["end"], 2)


def test_the_bar_closes_where_the_callback_raises(bars):
    def finish(*_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        parallel_jacobian(bottleneck, callback=Callback(finish=finish), progress=True)(X)
    assert [bar.closed for bar in bars] == [True]


def test_threads_have_bars_of_their_own(bars):
    jacobian = parallel_jacobian(bottleneck, callback=progress_bar())
    threads = [threading.Thread(target=jacobian, args=(X,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [bar.done for bar in bars] == [bar.total for bar in bars]
    assert len(bars) == 4


def test_the_real_bar_writes_nothing_to_a_file(monkeypatch):
    pytest.importorskip("tqdm")
    err = io.StringIO()
    monkeypatch.setattr("sys.stderr", err)
    parallel_jacobian(bottleneck, callback=progress_bar(delay=0))(X)
    assert err.getvalue() == ""


def test_without_tqdm_the_message_says_what_to_do(monkeypatch):
    real = builtins.__import__

    def without_tqdm(name, *args, **kwargs):
        if name == "tqdm.auto":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_tqdm)
    with pytest.raises(ImportError, match=r"pip install 'tapesplit\[progress\]'"):
        progress_bar()


def test_joined_callbacks_are_called_in_turn():
    seen = []
    first = Callback(start=lambda _plan: seen.append("first"))
    second = Callback(start=lambda _plan: seen.append("second"), finish=lambda *_: seen.append("end"))
    parallel_jacobian(bottleneck, callback=both(first, second))(X)
    assert seen == ["first", "second", "end"]
