"""Restricted systems: blocks of an identity's directions go through what they reach."""

import pickle

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian
from executors import SerialExecutor
from hypothesis import given
from hypothesis import strategies as st
from traced_memory import traced_peak

from tapesplit import execute, parallel_jacobian
from tapesplit.sharing import sharing
from tapesplit.sweeps import scalar_sweep
from tapesplit.sweeps.reach import find_reaches, part_kept
from tapesplit.sweeps.sweep import run_sweep
from tapesplit.sweeps.triangular import substitute

RANDOM = onp.random.default_rng(8)


def ratings(users, items, rank, amount):
    """Gradient of the errors of a factorization at some places."""
    user, item = RANDOM.integers(0, users, amount), RANDOM.integers(0, items, amount)
    values = RANDOM.standard_normal(amount)

    def errors(x):
        left, right = (
            np.reshape(x[: users * rank], (users, rank)),
            np.reshape(x[users * rank :], (items, rank)),
        )
        return np.sum((np.sum(left[user] * right[item], axis=1) - values) ** 2) + 0.1 * np.sum(x * x)

    return grad(errors), RANDOM.standard_normal((users + items) * rank)


@pytest.fixture(scope="module")
def factorization():
    gradient, x = ratings(40, 40, 6, 600)
    return parallel_jacobian(gradient, machines=1), gradient, x


def test_hessians_of_sums_go_through_what_they_reach(factorization):
    jac, gradient, x = factorization
    plan = jac.plan(x)
    (task,), (sweep,) = plan.tasks, plan.sweeps
    assert (task.form, task.seeds, len(sweep.reaches)) == ("system", 0, 20)
    assert part_kept(sweep.reaches, len(sweep.indices)) < 0.15
    for point in (x, 2.0 * x, onp.zeros_like(x)):
        expected = jacobian(gradient)(point)
        onp.testing.assert_allclose(jac(point), expected, rtol=0, atol=1e-13 * onp.abs(expected).max())
    assert "Link 1 is swept in 20 blocks of directions, each through what it reaches: " in plan.describe(
        "full"
    )


def test_results_are_those_of_all_directions_at_a_time(factorization):
    jac, _, x = factorization
    (sweep,), tape = jac.plan(x).sweeps, jac.tape(x)
    whole = run_sweep(sweep, tape, onp.eye(x.size))
    onp.testing.assert_array_equal(jac(x), whole)
    onp.testing.assert_array_equal(execute(pickle.loads(pickle.dumps(jac.plan(x))), tape), whole)  # noqa: S301
    limited = execute(jac.plan(x), tape, memory_limit=sweep.least_bytes)
    onp.testing.assert_array_equal(limited, whole)


def test_threads_share_the_blocks(factorization, monkeypatch):
    jac, _, x = factorization
    (sweep,), tape = jac.plan(x).sweeps, jac.tape(x)
    monkeypatch.setattr(scalar_sweep, "SHARED_STEPS", 1)
    started = []

    def start(*of):
        started.append(of)
        SerialExecutor().submit(*of)

    with sharing(3, start):
        found = run_sweep(sweep, tape, None)
    onp.testing.assert_array_equal(found, jac(x))
    assert len(started) == 2


def test_peaks_are_those_measured(factorization):
    jac, _, x = factorization
    plan, tape = jac.plan(x), jac.tape(x)
    peak = traced_peak(lambda: execute(plan, tape))
    assert peak / 1.5 < plan.peak_bytes < 1.5 * peak


@pytest.mark.parametrize("seed", range(3))
def test_peaks_of_small_hessians_are_those_measured(seed):
    gradient, x = ratings(20 + 5 * seed, 30, 4, 1500)
    jac = parallel_jacobian(gradient, machines=1)
    plan, tape = jac.plan(x), jac.tape(x)
    assert plan.sweeps[0].reaches
    execute(plan, tape)
    assert plan.peak_bytes == pytest.approx(traced_peak(lambda: execute(plan, tape)), rel=0.1)


def test_a_limit_counts_what_the_largest_block_takes():
    """The first block reaches all of the system, the others next to nothing."""

    def shared(x):
        y, factor = x, np.sin(x[0])
        for _ in range(120):
            y = np.concatenate([y[:2], np.sin(y[2:-1]) * y[1:-2] * factor, y[-1:]])
        return y

    x = onp.random.default_rng(0).standard_normal(300)
    (sweep,) = parallel_jacobian(shared, machines=1).plan(x).sweeps
    assert sweep.reaches
    limit = sweep.fixed_bytes + 13 * sweep.bytes_per_direction
    jac = parallel_jacobian(shared, machines=1, memory_limit=limit)
    plan, tape = jac.plan(x), jac.tape(x)
    peak = traced_peak(lambda: execute(plan, tape, memory_limit=limit))
    assert peak < 1.1 * limit + 8 * 300**2
    assert plan.peak_bytes == pytest.approx(peak, rel=0.1)


def test_look_ups_of_many_elements_are_part_of_a_system():
    gradient, x = ratings(30, 30, 5, 5000)  # 25000 elements are put back among 300
    jac = parallel_jacobian(gradient, machines=1)
    assert [task.form for task in jac.plan(x).tasks] == ["system"]
    expected = jacobian(gradient)(x)
    onp.testing.assert_allclose(jac(x), expected, rtol=0, atol=1e-12 * onp.abs(expected).max())


def test_systems_that_are_reached_as_a_whole_stay_as_they_are():
    mix = RANDOM.integers(0, 60, (60, 2))

    def layers(x):
        for _ in range(6):
            x = np.sin(x[mix[:, 0]]) * x[mix[:, 1]]
        return x

    jac = parallel_jacobian(layers, machines=1)
    x = RANDOM.standard_normal(60)
    assert not any(getattr(sweep, "reaches", ()) for sweep in jac.plan(x).sweeps)


@st.composite
def systems(draw):
    """Strictly lower triangular systems in CSR form, some seeds and results, constants among them."""
    size = draw(st.integers(1, 40))
    rows = [draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else [] for i in range(size)]
    number = st.integers(-1, size - 1)
    seeds = draw(st.lists(number, min_size=1, max_size=70))
    return rows, onp.array(seeds), onp.array(draw(st.lists(number, min_size=1, max_size=9)))


@pytest.mark.parametrize("transposed", [False, True])
@given(systems())
def test_random_systems(transposed, system):
    rows, seeds, results = system
    size = len(rows)
    L = onp.zeros((size, size))
    for i, row in enumerate(rows):
        L[i, row] = 1.0 + onp.arange(len(row)) + i
    stored = L.T if transposed else L
    owner, indices = stored.nonzero()
    indptr = onp.concatenate([[0], onp.cumsum(onp.bincount(owner, minlength=size))]).astype(onp.int32)
    data = stored[owner, indices]
    Y = onp.zeros((size, seeds.size))
    known = onp.flatnonzero(seeds >= 0)
    Y[seeds[known], known] = 1.0
    substitute(indptr, indices.astype(onp.int32), data, Y, transposed=transposed)
    expected = onp.where((results >= 0)[:, None], Y[results], 0.0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tapesplit.sweeps.reach._WORTH_KEEPING", 1.0)
        patched.setattr("tapesplit.sweeps.reach._NUMBERS_AT_ONCE", 60)  # one or two blocks at a time
        reaches = find_reaches(indptr, indices.astype(onp.int32), seeds, results, transposed=transposed)
    found = onp.zeros_like(expected)
    for reach in reaches:
        reach.write(data, found, transposed=transposed)
    onp.testing.assert_array_equal(found, expected)
    assert [reach.seeds.start for reach in reaches] == list(range(0, seeds.size, 24))
