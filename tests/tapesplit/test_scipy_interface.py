"""Value and Jacobian for optimizers: what these write into their arrays does no harm."""

import pickle

import autograd.numpy as np
import numpy as onp
import pytest
from scipy.optimize import least_squares

from tapesplit import fun_and_jac, parallel_jacobian


def _pickled(what):
    return pickle.loads(pickle.dumps(what))  # noqa: S301 (written here)


X = onp.array([1.0, 3.0])


def _squares(x):
    return x * x


def test_values_can_be_written_to():
    value, jacobian = fun_and_jac(np.exp)
    x = onp.array([0.0, 1.0])
    for _ in range(2):
        found = value(x)
        onp.testing.assert_array_equal(found, onp.exp(x))
        found *= 0.0
        onp.testing.assert_array_equal(jacobian(x), onp.diag(onp.exp(x)))


def test_what_the_function_closes_over_may_change():
    """As in a continuation that starts at the last solution with a larger penalty."""
    weight = {"mu": 1.0}
    calls = []

    def residuals(x):
        calls.append(weight["mu"])
        return weight["mu"] * x**2

    value, jacobian = fun_and_jac(residuals)
    for weight["mu"] in (1.0, 100.0):
        for _ in range(2):
            onp.testing.assert_array_equal(value(X), weight["mu"] * X**2)
        onp.testing.assert_allclose(jacobian(X), onp.diag(2.0 * weight["mu"] * X))
    assert len(calls) == 4  # Jacobians take the recordings of values
    weight["mu"] = 3.0
    onp.testing.assert_allclose(jacobian(X), onp.diag(6.0 * X))


def _power(x, exponent=1.0, *, scale=1.0):
    return scale * x**exponent


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((2.0,), {"scale": 5.0}),
        ((2.0,), {"scale": 3.0}),
        ((4.0,), {"scale": 5.0}),
        ((2.0,), {}),
        ((), {"scale": 5.0}),
    ],
)
def test_a_recording_serves_no_call_with_other_arguments(args, kwargs):
    value, jacobian = fun_and_jac(_power)
    value(X, 2.0, scale=5.0)
    onp.testing.assert_allclose(jacobian(X, *args, **kwargs), parallel_jacobian(_power)(X, *args, **kwargs))


def test_methods_count_themselves():
    class Model:
        @parallel_jacobian
        def unbound(self, x):
            return x

        def residuals(self, x):
            return x * x

        jacobian = parallel_jacobian(residuals, argnum=1)

    value, jacobian = fun_and_jac(Model().jacobian)
    onp.testing.assert_array_equal(value(X), X * X)
    onp.testing.assert_array_equal(jacobian(X), onp.diag(2.0 * X))
    with pytest.raises(ValueError, match="with respect to the first argument, but argnum is 0; put all"):
        fun_and_jac(Model().unbound)
    with pytest.raises(ValueError, match=r"argnum is \(0,\); .* one integer"):
        fun_and_jac(parallel_jacobian(lambda x: x, argnum=(0,)))


def test_both_functions_survive_pickling():
    value, jacobian = _pickled(_called_before())
    onp.testing.assert_array_equal(value(X), _squares(X))
    onp.testing.assert_array_equal(jacobian(X), onp.diag(2.0 * X))


def _called_before():
    both = fun_and_jac(_squares)
    for function in both:
        function(X)
    return both


def test_traced_points_are_refused():
    value, jacobian = fun_and_jac(_squares)
    for function in (value, jacobian):
        with pytest.raises(TypeError, match=r"x is traced; .* write f\(x\) and parallel_jacobian"):
            parallel_jacobian(lambda x, function=function: np.sum(function(x)))(X)


def test_complex_points_are_refused():
    """Steps into the complex plane would not move a real function."""
    value, jacobian = fun_and_jac(_squares)
    for function in (value, jacobian):
        with pytest.raises(TypeError, match="real points only, but x is complex"):
            function(X + 1e-20j)
    with pytest.raises(TypeError, match="give the second function of fun_and_jac as jac"):
        least_squares(value, X, jac="cs")
