"""Functions under `autograd.checkpoint` are recorded where they are called."""

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import checkpoint, grad, jacobian
from autograd.tracer import trace_stack

from tapesplit import parallel_jacobian, record

X = onp.array([0.1, 0.2])
LAYERS = [onp.eye(2), 2.0 * onp.eye(2)]


def _over_a_loop_variable(x):
    for layer in LAYERS:
        x = checkpoint(lambda u: np.tanh(layer @ u))(x)  # noqa: B023 (autograd traces before the next turn)
    return x


@checkpoint
def _pendulum(state, time):
    return state + time * np.array([state[1], -np.sin(state[0])])


def _of_several(x):
    first = _pendulum(x, x[0])
    return _pendulum(_pendulum(first, 0.5), first[1])


FUNCTIONS = {
    "loop variable": _over_a_loop_variable,
    "several arguments": _of_several,
    "identity": lambda x: checkpoint(lambda u: u)(x) * x,
    "gradient inside": grad(lambda z: np.sum(checkpoint(lambda u: np.sin(u) * u)(z) ** 2)),
    "checkpoint inside": checkpoint(lambda u: checkpoint(np.sin)(u) * u),
    "with a gradient inside": checkpoint(lambda u: grad(lambda z: np.sum(np.sin(z) * z))(u) * u),
}


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_checkpoints_have_the_derivative_of_their_function(name, method):
    expected = jacobian(FUNCTIONS[name])(X)
    found = parallel_jacobian(FUNCTIONS[name], method=method)(X)
    onp.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_new_checkpoints_need_no_new_plan():
    jac = parallel_jacobian(_over_a_loop_variable)
    for factor in (1.0, 2.0, 3.0):
        onp.testing.assert_allclose(jac(factor * X), jacobian(_over_a_loop_variable)(factor * X), rtol=1e-13)
    assert jac.cache_info().misses == 1
    labels = [record(_over_a_loop_variable, X).label(i) for i in range(5)]
    assert labels == ["input", "matmul", "tanh", "matmul", "tanh"]


def test_a_checkpoint_of_a_constant_is_one():
    ones = checkpoint(lambda u: onp.ones(2))
    with pytest.warns(UserWarning, match="independent of input"):
        onp.testing.assert_array_equal(parallel_jacobian(lambda x: ones(x) * x)(X), onp.eye(2))


@pytest.mark.parametrize(
    ("wrapped", "plain"),
    [
        (lambda x, p: checkpoint(lambda u: np.sin(u) * p)(x), lambda x, p: np.sin(x) * p),
        (lambda x, p: checkpoint(lambda u, v: u * v)(p * x, v=x), lambda x, p: p * x * x),
        (lambda x, p: checkpoint(lambda _u: p * x)(x), lambda x, p: p * x),
        (
            lambda x, p: checkpoint(lambda u: checkpoint(lambda v: v * u * p)(x))(p * x),
            lambda x, p: x * x * p**2,
        ),
    ],
    ids=["closure", "keyword", "closure alone", "nested"],
)
def test_a_checkpoint_may_hold_other_traced_values(wrapped, plain):
    found = parallel_jacobian(wrapped, argnum=(0, 1))(X, 2.0)
    for number, derivative in enumerate(found):
        onp.testing.assert_allclose(derivative, jacobian(plain, number)(X, 2.0), rtol=1e-13)


def test_values_kept_by_a_checkpoint_from_an_earlier_call_are_refused():
    kept = []

    def function(x):
        kept.append(x * 2.0)
        return checkpoint(lambda u: kept[0] * u)(x)

    jac = parallel_jacobian(function)
    onp.testing.assert_allclose(jac(X), onp.diag(4.0 * X), rtol=1e-13)
    with pytest.raises(TypeError, match="traced values of two calls"):
        jac(X)


def test_a_variable_of_a_gradient_inside_that_a_checkpoint_would_miss():
    def slopes(x, p):  # tanh(x), but autograd sees no dependence on z
        return grad(lambda z: np.sum(checkpoint(lambda w: np.tanh(w) * z)(x)))(p)

    with pytest.raises(TypeError, match=r"under checkpoint hides .* pass traced values by position"):
        parallel_jacobian(slopes)(X, 2.0 * X)
    found = parallel_jacobian(slopes, argnum=(0, 1))(X, 2.0 * X)[0]
    onp.testing.assert_allclose(found, onp.diag(1.0 - onp.tanh(X) ** 2), rtol=1e-12)


def test_exceptions_leave_the_trace_level_as_it_was():
    @checkpoint
    def fails_on_boxes(x):
        if not isinstance(x, onp.ndarray):
            raise KeyError("box")
        return x

    with pytest.raises(KeyError, match="box"):
        parallel_jacobian(lambda x: fails_on_boxes(x) * x)(X)
    assert trace_stack.top == -1
    onp.testing.assert_array_equal(parallel_jacobian(lambda x: 2.0 * x)(X), 2.0 * onp.eye(2))
