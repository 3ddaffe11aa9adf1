"""Steps that threads share."""

import time
from concurrent.futures import ThreadPoolExecutor

import autograd.numpy as np
import numpy as onp
import pytest
from executors import SerialExecutor, ShufflingExecutor

from tapesplit import parallel_jacobian, record
from tapesplit.matrix_product import multiply
from tapesplit.sharing import run_parts, shares, sharing
from tapesplit.sweeps import scalar_sweep


def test_shares_are_about_equal_and_cover_the_length():
    assert shares(10, 4) == [slice(0, 10)]
    with sharing(3, None):
        assert shares(10, 4) == [slice(0, 3), slice(3, 6), slice(6, 10)]
        assert shares(10, 2) == [slice(0, 5), slice(5, 10)]
        assert shares(10, 0) == [slice(0, 10)]
        with sharing(1, None):
            assert shares(10, 4) == [slice(0, 10)]
        assert len(shares(10, 4)) == 3


def test_products_are_shared_inside_of_the_context_and_on_its_thread_only():
    executor, A = SerialExecutor(), onp.ones((300, 300))
    with sharing(2, executor.submit), ThreadPoolExecutor(1) as pool:
        pool.submit(multiply, A, A).result()
    multiply(A, A)
    assert executor.submitted == 0


def test_all_parts_are_waited_for_where_one_cannot_be_started():
    started = []

    def broken(function, *part):
        if started:
            raise RuntimeError("no more threads")
        started.append(pool.submit(lambda: (time.sleep(0.1), function(*part))))
        return started[0]

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(RuntimeError, match="no more threads"), sharing(3, broken):
            run_parts(abs, [(1,), (2,), (3,)])
        assert started[0].done()


@pytest.mark.parametrize("failing", [0, 2])
def test_the_error_of_a_part_is_raised_once_all_are_done(failing):
    done = []

    def part(number):
        if number == failing:
            raise ZeroDivisionError
        time.sleep(0.05)
        done.append(number)

    with ThreadPoolExecutor(2) as pool, sharing(3, pool.submit):
        with pytest.raises(ZeroDivisionError):
            run_parts(part, [(0,), (1,), (2,)])
        assert sorted([*done, failing]) == [0, 1, 2]


def loop(x):
    """Compute with single numbers, as a system sweeps them."""
    y = [x[i] for i in range(40)]
    for i in range(300):
        y[i % 40] = np.sin(y[i % 40]) * y[(i * 7 + 1) % 40] + y[(i * 3) % 40]
    return np.array(y)


@pytest.mark.parametrize("mode", ["tangent", "adjoint"])
def test_shared_systems_have_the_same_bits_on_any_threads(monkeypatch, mode):
    x = onp.linspace(0.5, 1.5, 40)
    plan, tape = parallel_jacobian(loop, method=mode, machines=1).plan(x), record(loop, x)
    (compiled,), seeds = plan.sweeps, onp.random.default_rng(0).standard_normal((40, 40))
    monkeypatch.setattr(scalar_sweep, "SHARED_STEPS", 1)
    shuffling, serial = ShufflingExecutor(3, seed=1), SerialExecutor()
    cases = [(matrix, most) for matrix in (None, seeds) for most in (None, 3)]
    for matrix, most in cases:
        expected = compiled.run(tape, matrix)
        for start in None, serial.submit, shuffling.submit:
            with sharing(3, start):
                assert onp.array_equal(compiled.run(tape, matrix, most), expected)
    shuffling.shutdown()
    assert serial.submitted == shuffling.submitted == 2 * len(cases)


def long_loop(x):
    weights = onp.cos(onp.arange(1600.0)).reshape(40, 40) / 10
    for _ in range(200):
        x = x + 0.1 * np.tanh(weights @ x) * x[::-1]
    return x


def test_large_systems_are_shared_where_that_is_predicted_to_gain():
    x = onp.linspace(0.5, 1.5, 40)
    one, two = (parallel_jacobian(long_loop, machines=machines) for machines in (1, 2))
    plan, alone = two.plan(x), one.plan(x)
    (task,) = plan.tasks
    assert (plan.machines, plan.step_threads, task.form) == (1, 2, "system")
    assert (alone.step_threads, alone.machines_reason) == (1, "single")
    assert 0.5 * alone.seconds < task.shareable < alone.seconds
    assert plan.seconds < 0.8 * alone.seconds
    assert onp.array_equal(two(x), one(x))
    assert alone.peak_bytes <= plan.peak_bytes <= 2 * alone.peak_bytes
