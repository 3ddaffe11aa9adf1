"""Elimination: unknowns that are read once, or read one only, are taken out before many directions."""

import pickle
import warnings

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_programs import expected
from scipy.sparse import csr_array
from sweep_forms import forced
from traced_memory import traced_peak

from tapesplit import execute, parallel_jacobian
from tapesplit.sweeps import elimination
from tapesplit.sweeps.elimination import eliminate
from tapesplit.sweeps.triangular import substitute

MANY = 10**9
"""Directions that are worth any elimination."""


def system(dense, *, transposed):
    """Return a triangular matrix as systems store it."""
    stored = csr_array(dense.T if transposed else dense)
    stored.sort_indices()
    return stored.indptr.astype(onp.int32), stored.indices.astype(onp.int32), stored.data


def carried(indptr, indices, data, seeds, results, *, transposed):
    """Carry the identity from seeds to results; constants have no derivatives."""
    Y = onp.zeros((indptr.size, len(seeds)))  # the last row is that of constants
    Y[seeds, onp.arange(len(seeds))] = 1.0
    Y[-1] = 0.0
    substitute(indptr, indices, data, Y[:-1], transposed=transposed)
    return Y[results]


def random_system(size, density, number):
    random = onp.random.default_rng(number)
    is_edge = onp.tril(random.random((size, size)) < density, -1)
    ends = random.permutation(onp.append(onp.arange(size), -1))
    seeds, results = onp.array_split(ends[: random.integers(2, size + 2)], 2)
    return onp.where(is_edge, random.standard_normal((size, size)), 0.0), seeds, results


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(2, 40), st.sampled_from([0.03, 0.06, 0.1, 0.3]), st.integers(0, 10**6), st.booleans())
def test_smaller_systems_have_the_same_solutions(size, density, number, transposed):
    dense, seeds, results = random_system(size, density, number)
    indptr, indices, data = system(dense, transposed=transposed)
    smaller = eliminate(indptr, indices, seeds, results, MANY)
    assume(smaller is not None)
    of, *pattern, new_seeds, new_results = smaller
    assert [part.dtype for part in pattern] == [indptr.dtype, indices.dtype]
    gone = indptr.size - pattern[0].size
    assert of.paths.size == gone > 0
    assert pattern[1].size <= indices.size - gone
    solution = onp.linalg.inv(onp.eye(size) - dense)
    full = onp.zeros((size + 1, size + 1))
    full[:size, :size] = solution
    reduced = of.reduced(data)
    assert reduced.size == pattern[1].size
    for given_data, want in ((reduced, full[results][:, seeds]), (onp.ones(pattern[1].size), None)):
        found = carried(*pattern, given_data, new_seeds, new_results, transposed=transposed)
        if want is None:  # a path is there if and only if one was
            ones = carried(indptr, indices, onp.ones(indices.size), seeds, results, transposed=transposed)
            onp.testing.assert_array_equal(found != 0, ones != 0)
        else:
            onp.testing.assert_allclose(found, want, rtol=0, atol=1e-10 * max(1.0, onp.abs(full).max()))


@pytest.mark.parametrize("transposed", [False, True])
def test_long_chains_end_somewhere(transposed):
    """y[i] = 2 y[i - 1]: only what is near to the end goes."""
    dense = onp.diag(onp.full(99, 2.0), -1)
    indptr, indices, data = system(dense, transposed=transposed)
    of, starts, columns, seeds, results = eliminate(indptr, indices, onp.array([0]), onp.array([99]), MANY)
    assert len(of.levels) == 1 + elimination._MOST_LEVELS
    assert starts.size == 101 - elimination._MOST_LEVELS
    # Each unknown hangs on what it is read by, or on what it reads, which is its end if stored by columns.
    found = carried(starts, columns, of.reduced(data), seeds, results, transposed=transposed)
    assert found == 2.0**99


def test_coefficients_of_equal_places_are_added_up():
    """y[3] reads y[1] and y[2], which both read y[0] only."""
    dense = onp.zeros((4, 4))
    dense[1, 0], dense[2, 0], dense[3, 1], dense[3, 2] = 2.0, 3.0, 5.0, 7.0
    of, indptr, indices, seeds, results = eliminate(
        *system(dense, transposed=False)[:2], onp.array([0, -1]), onp.array([-1, 3]), MANY
    )
    assert (indptr.tolist(), indices.tolist()) == ([0, 0, 1], [0])
    assert (seeds.tolist(), results.tolist()) == ([0, -1], [-1, 1])
    assert of.reduced(onp.array([2.0, 3.0, 5.0, 7.0])).tolist() == [31.0]


def test_few_directions_are_not_worth_it():
    dense = onp.diag(onp.ones(9), -1)
    indptr, indices, _ = system(dense, transposed=False)
    ends = onp.array([0]), onp.array([9])
    least = elimination._WORTH * 9 // 8  # eight unknowns of nine coefficients
    assert eliminate(indptr, indices, *ends, least) is None
    assert eliminate(indptr, indices, *ends, least + 1) is not None
    nothing = onp.zeros(1, onp.int32), onp.zeros(0, onp.int32)
    assert eliminate(*nothing, onp.array([-1]), onp.array([-1]), MANY) is None


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@settings(
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(
    program=st.lists(st.tuples(*[st.integers(0, 400)] * 4), min_size=1, max_size=14),
    size=st.integers(1, 5),
)
def test_random_programs(method, program, size):
    problem = expected(program, size)
    assume(problem is not None)
    f, x, want = problem
    scale = max(onp.abs(want).max(initial=0.0), 1e-3)
    with pytest.MonkeyPatch.context() as monkeypatch, onp.errstate(all="ignore"):
        forced(monkeypatch, "systems")
        for worth in (0, float("inf")):
            monkeypatch.setattr(elimination, "_WORTH", worth)
            jac = parallel_jacobian(f, method=method)
            jac.cache_clear()
            onp.testing.assert_allclose(jac(x), want, rtol=0, atol=1e-10 * scale)


def mass_action(steps, species, reactions):
    """Concentrations after some steps, by the rates of reactions."""
    random = onp.random.default_rng(1)
    orders = random.integers(0, 2, (reactions, species)) * (random.random((reactions, species)) < 0.15)
    changes = 0.1 * (random.random((reactions, species)) < 0.1) - orders

    def concentrations(rates):
        c = onp.linspace(0.5, 1.5, species)
        for _ in range(steps):
            c = c + 1e-3 * np.dot(rates * np.prod(c[None, :] ** orders, axis=1), changes)
        return c

    return concentrations, random.uniform(0.5, 1.5, reactions)


@pytest.fixture(scope="module")
def kinetics():
    f, x = mass_action(40, 20, 60)
    return parallel_jacobian(f, machines=1, method="tangent"), f, x


def test_products_take_no_unknowns_for_their_factors(kinetics):
    jac, f, x = kinetics
    (sweep,) = jac.plan(x).sweeps
    whole = jac.plan(x).sweeps[0].template.size
    assert sweep.elimination is not None
    assert len(sweep.indptr) < 40 * 100  # there are 1200 factors in each step
    assert len(sweep.indices) < 0.55 * whole
    want = jacobian(f)(x)
    for plan in (jac.plan(x), pickle.loads(pickle.dumps(jac.plan(x)))):  # noqa: S301
        onp.testing.assert_allclose(execute(plan, jac.tape(x)), want, rtol=0, atol=1e-13)


def test_memory_is_predicted(kinetics):
    jac, _, x = kinetics
    plan, tape = jac.plan(x), jac.tape(x)
    execute(plan, tape)
    assert plan.peak_bytes == pytest.approx(traced_peak(lambda: execute(plan, tape)), rel=0.2)


def test_limits_that_forbid_it_keep_the_whole_system(kinetics):
    jac, f, x = kinetics
    least = jac.plan(x).sweeps[0].least_bytes
    for limit in (least, least - 1):
        limited = parallel_jacobian(f, machines=1, method="tangent", memory_limit=limit)
        assert max(sweep.least_bytes for sweep in limited.plan(x).sweeps) <= limit
        onp.testing.assert_allclose(limited(x), jac(x), rtol=0, atol=1e-13)


def test_shared_seeds(monkeypatch):
    """Colored directions, and those from the other end, go through smaller systems as well."""
    monkeypatch.setattr(elimination, "_WORTH", 0)

    def f(x):
        inner = [np.sum(np.stack([x[i], x[i + 1] ** 2, np.sin(x[i + 2])])) for i in range(118)]
        return np.append(np.tanh(np.array(inner)), np.sum(x**2))

    x = onp.linspace(0.1, 1.0, 120)
    for method, left_out in (("tangent", 1), ("adjoint", 0)):
        jac = parallel_jacobian(f, machines=1, method=method)
        (sweep,) = jac.plan(x).sweeps
        assert sweep.sweep.elimination is not None
        assert sweep.left_out.size == left_out
        onp.testing.assert_allclose(jac(x), jacobian(f)(x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_infinite_and_undefined_derivatives_stay_the_same(monkeypatch, method):
    def f(x):
        roots = np.sqrt(x)  # infinite derivative at 0
        return np.array(
            [np.sum(roots * x), np.prod(x**1.5), np.sum(np.where(x > 0.0, roots, x)), x[1] / x[0]]
        )

    x = onp.array([0.0, 1.0, 2.0])
    forced(monkeypatch, "systems")
    found = []
    for worth in (0, float("inf")):
        monkeypatch.setattr(elimination, "_WORTH", worth)
        jac = parallel_jacobian(f, machines=1, method=method)
        jac.cache_clear()
        with onp.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(jac(x))
            (sweep,) = jac.plan(x).sweeps
        assert (sweep.elimination is None) == (worth > 0)
    assert not onp.isfinite(found[0]).all()
    onp.testing.assert_array_equal(*found)
