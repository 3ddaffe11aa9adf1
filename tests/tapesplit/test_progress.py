"""The progress bar counts all planned work, on each thread apart, and callbacks can be joined."""

import builtins
import io
import threading

import numpy as np
import pytest
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
