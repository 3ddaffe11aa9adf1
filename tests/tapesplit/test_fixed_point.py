"""Derivatives of fixed points: those of the implicit function theorem, for all directions at once."""

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from autograd.builtins import dict as boxed_dict
from autograd.builtins import tuple as boxed_tuple
from autograd.misc.fixed_points import fixed_point

from tapesplit import check_jacobian, parallel_jacobian
from tapesplit.rules import find_rule

WEIGHTS = np.random.default_rng(0).uniform(-0.2, 0.2, (4, 4))


def farthest(x, before):
    return np.max(np.abs(x - before))


def layer(a):
    """The implicit layer ``x = tanh(W x + a)``."""
    return lambda x: anp.tanh(WEIGHTS @ x + a)


def equilibrium(a):
    return fixed_point(layer, a, np.zeros(4), farthest, 1e-12)


def of_parts(x):
    parts = boxed_tuple((anp.reshape(x[:9], (3, 3)), boxed_dict({"shift": x[9:]})))
    return fixed_point(
        lambda p: lambda z: anp.tanh(0.2 * p[0] @ z + p[1]["shift"]), parts, np.zeros(3), farthest, 1e-12
    )


def of_a_matrix(x):
    return fixed_point(
        lambda a: lambda Z: 0.3 * anp.cos(Z) + anp.outer(a, a), x, np.zeros((2, 2)), farthest, 1e-12
    )


def begun_elsewhere(a):
    return fixed_point(layer, a, 0.1 * a, farthest, 1e-12)


def square_root(a):
    return fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: np.abs(x - y), 1e-12)


PROBLEMS = {
    equilibrium: np.array([0.3, -0.5, 1.0, 0.1]),
    of_parts: np.linspace(-1.0, 1.0, 12),
    of_a_matrix: np.array([0.4, 0.7]),
    begun_elsewhere: np.array([0.3, -0.5, 1.0, 0.1]),
    square_root: 2.0,
}


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("fun", PROBLEMS)
def test_derivatives_are_those_of_autograd(fun, method):
    want = autograd.jacobian(fun)(PROBLEMS[fun])
    J = parallel_jacobian(fun, method=method)(PROBLEMS[fun])
    assert np.shape(J) == np.shape(want)
    np.testing.assert_allclose(J, want, atol=1e-10)


def test_they_satisfy_the_implicit_function_theorem():
    """(I - D W) J = D, with the derivatives D of the layer."""
    a = PROBLEMS[equilibrium]
    D = np.diag(1.0 - equilibrium(a) ** 2)
    J = parallel_jacobian(equilibrium)(a)
    np.testing.assert_allclose((np.eye(4) - D @ WEIGHTS) @ J, D, atol=1e-11)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_the_map_is_differentiated_once_for_all_directions(method):
    calls = []

    def counted(a):
        def step(x):
            calls.append(x)
            return layer(a)(x)

        return step

    def state(a):
        return fixed_point(counted, a, np.zeros(4), farthest, 1e-12)

    a = PROBLEMS[equilibrium]
    state(a)
    iterations = len(calls)
    parallel_jacobian(state, method=method)(a)
    assert len(calls) == 2 * iterations + 1


def test_a_few_rows_are_left_to_autograd():
    assert parallel_jacobian(square_root)(2.0) == autograd.grad(square_root)(2.0)


def test_hessians():
    a = PROBLEMS[equilibrium]
    H = parallel_jacobian(autograd.grad(lambda a: anp.sum(equilibrium(a) ** 2)))(a)
    want = autograd.jacobian(autograd.grad(lambda a: anp.sum(equilibrium(a) ** 2)))(a)
    np.testing.assert_allclose(H, want, atol=1e-9)


def test_the_check_allows_for_the_tolerance_of_the_iteration():
    check_jacobian(lambda a: fixed_point(layer, a, np.zeros(4), farthest, 1e-7), PROBLEMS[equilibrium])
    assert find_rule(fixed_point).approximate


def test_a_map_that_has_changed_since_the_call_is_noticed():
    def fun(a):
        total = 0.0
        for shift in (0.0, 0.5, 1.0):  # which the map reads later on
            step = lambda a: lambda x: anp.tanh(WEIGHTS @ x + a) + shift  # noqa: B023, E731
            total = total + fixed_point(step, a, np.zeros(4), farthest, 1e-12)
        return total

    with pytest.warns(UserWarning, match=r"given to fixed_point computes other values"):
        parallel_jacobian(fun)(np.array([0.3, -0.5, 1.0, 0.1]))
