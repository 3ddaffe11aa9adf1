"""Every kind of program, on every number of machines and by every method, against ``autograd.jacobian``."""

import functools

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian
from executors import SerialExecutor, ShufflingExecutor
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_programs import expected, largest_difference
from small_problems import PROBLEMS

from tapesplit import execute, parallel_jacobian, record


@functools.cache
def autograd_result(name):
    program = PROBLEMS[name]
    return jacobian(program.fun)(*program.args)


def assert_equal(got, want, tolerance):
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    assert np.abs(got - want).max(initial=0.0) <= tolerance * np.abs(want).max(initial=0.0)


@pytest.mark.parametrize(
    ("method", "machines"),
    [("auto", 1), ("auto", 3), ("dp", 2), ("heuristic", 2), ("exact", 2), ("tangent", 1), ("adjoint", 1)],
)
@pytest.mark.parametrize("name", sorted(PROBLEMS.keys() - {"empty_output"}))
def test_equals_autograd(name, method, machines):
    program = PROBLEMS[name]
    got = parallel_jacobian(program.fun, method=method, machines=machines)(*program.args)
    assert_equal(got, autograd_result(name), 1e-10 if name.endswith("_long") else 1e-12)


@pytest.mark.parametrize("name", sorted(PROBLEMS.keys() - {"empty_output"}))
def test_threads_and_reused_plans_do_not_change_a_bit(name):
    program = PROBLEMS[name]
    jac = parallel_jacobian(program.fun, machines=3, executor=SerialExecutor())
    first = jac(*program.args)
    executor = ShufflingExecutor(4, seed=7)
    shuffled = parallel_jacobian(program.fun, machines=3, executor=executor)
    np.testing.assert_array_equal(shuffled(*program.args), first)
    np.testing.assert_array_equal(shuffled(*program.args), first)
    np.testing.assert_array_equal(jac(*program.args), first)
    executor.shutdown()


def test_empty_output_has_an_empty_jacobian():
    program = PROBLEMS["empty_output"]
    assert parallel_jacobian(program.fun)(*program.args).shape == (0, 4)


@pytest.mark.parametrize("machines", [1, 2, 3, 8])
def test_completion_order_does_not_change_a_bit(machines):
    program = PROBLEMS["bottlenecks_long"]
    tape = record(program.fun, *program.args)
    executor = SerialExecutor()
    plan = parallel_jacobian(program.fun, machines=machines, executor=executor).plan(*program.args)
    want = execute(plan, tape, executor=executor)
    for seed in range(20):
        shuffling = ShufflingExecutor(machines, seed)
        np.testing.assert_array_equal(execute(plan, tape, executor=shuffling), want)
        shuffling.shutdown()
        assert shuffling.submitted == (len(plan.tasks) if len({t.machine for t in plan.tasks}) > 1 else 0)


@pytest.mark.parametrize("name", ["bottlenecks_long", "scalar_loop", "linear_algebra", "einsum_forms"])
def test_tangents_and_adjoints_are_transposed(name):
    program = PROBLEMS[name]
    (x,) = program.args
    tangent = parallel_jacobian(program.fun, method="tangent")(x).reshape(-1, x.size)
    adjoint = parallel_jacobian(program.fun, method="adjoint")(x).reshape(-1, x.size)
    rng = np.random.default_rng(0)
    v, w = rng.standard_normal(x.size), rng.standard_normal(len(tangent))
    scale = np.abs(tangent).max() * np.linalg.norm(v) * np.linalg.norm(w)
    assert abs(w @ (tangent @ v) - (w @ adjoint) @ v) <= 1e-13 * scale


@pytest.mark.parametrize(
    "name", ["bottlenecks_long", "scalar_loop", "broadcasting", "linear_algebra", "softmax"]
)
def test_central_differences(name):
    program = PROBLEMS[name]
    (x,) = program.args
    v = np.cos(np.arange(x.size)).reshape(x.shape)
    h = 1e-6
    difference = (program.fun(x + h * v) - program.fun(x - h * v)) / (2 * h)
    product = np.tensordot(parallel_jacobian(program.fun)(x), v, v.ndim)
    np.testing.assert_allclose(product, difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["scalar_loop", "vector_to_vector", "bottlenecks_long", "two_strands"])
def test_complex_steps(name):
    program = PROBLEMS[name]
    (x,) = program.args
    v = np.cos(np.arange(x.size)).reshape(x.shape)
    step = np.imag(program.fun(x + 1e-30j * v)) / 1e-30
    product = np.tensordot(parallel_jacobian(program.fun)(x), v, v.ndim)
    np.testing.assert_allclose(product, step, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", sorted(PROBLEMS.keys() - {"empty_output"}))
def test_result_is_the_callers_own(name):
    """Writing into a Jacobian must change neither constants of the function nor the next result."""
    program = PROBLEMS[name]
    jac = parallel_jacobian(program.fun)
    first = jac(*program.args)
    kept = first.copy()
    first[...] = np.nan
    np.testing.assert_array_equal(jac(*program.args), kept)


instructions = st.lists(st.tuples(*[st.integers(0, 400)] * 4), min_size=1, max_size=14)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(program=instructions, size=st.integers(1, 5), machines=st.integers(1, 3))
def test_random_programs(method, program, size, machines):
    problem = expected(program, size)
    assume(problem is not None)
    assert largest_difference(*problem, method=method, machines=machines) < 1e-10


def test_random_programs_of_numpy_integers():
    """More varied than what a strategy draws: long programs, uniform operations."""
    rng = np.random.default_rng(20)
    compared = 0
    for _ in range(60):
        problem = expected(rng.integers(0, 1000, (25, 4)).tolist(), int(rng.integers(1, 6)))
        if problem is not None:
            compared += 1
            assert largest_difference(*problem, machines=2) < 1e-10
    assert compared > 30


def test_tile_where_autograd_is_wrong():
    """autograd 1.9 takes the repeats for those of the first axes; NumPy means the last ones."""

    def fun(x):
        return anp.tile(anp.reshape(x, (2, 2)), 2)

    x = np.arange(4.0)
    differences = np.stack([fun(unit) for unit in np.eye(4)], axis=-1)  # the function is linear
    for method in ("auto", "tangent", "adjoint"):
        np.testing.assert_array_equal(parallel_jacobian(fun, method=method)(x), differences)
