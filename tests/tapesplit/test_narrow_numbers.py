"""Truth values and narrow integers are numbers in derivatives: their sums and products do not wrap around."""

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian
from autograd.extend import defvjp, primitive
from sweep_forms import forced

from tapesplit import defvector, parallel_jacobian


@primitive
def _relu(x):
    return onp.maximum(x, 0.0)


defvjp(_relu, lambda _ans, x: lambda g: g * (x > 0))
defvector(_relu, lambda _ans, x: x > 0)

TRUE = onp.ones(3, bool)
BYTES = onp.full(3, 200, onp.uint8)
LARGE = onp.full(3, 2**20, onp.int32)
SHORT = onp.array([1.0, 2.0, 3.0])
LONG = onp.linspace(1.0, 2.0, 400)
FUNCTIONS = [
    lambda x: (x > 0) * x + (x < 9) * x + (x > -1) * x,
    lambda x: (x > 0) * ((x > 0) * x) + (x > 0) * x,
    lambda x: onp.uint8(200) * x + onp.uint8(200) * x,
    lambda x: (x > 0) / x,
    lambda x: _relu(x) + _relu(x) + _relu(x),
    lambda x: np.real((x > 0) * (x + 1j) + (x > 0) * (x + 2j)),
]
POINTS = {
    "number": 1.5,
    "short": SHORT,
    "long": LONG,
    "single": onp.float32(SHORT),
    "integers": onp.arange(1, 4),
}


def _agrees(fun, x, method):
    got, want = parallel_jacobian(fun, method=method)(x), jacobian(fun)(x)
    onp.testing.assert_allclose(got, want, rtol=1e-6 if x is POINTS["single"] else 1e-13)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_factors_that_are_added_up(fun, point, method):
    _agrees(fun, POINTS[point], method)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: (x[0] > 0) * x + (x[1] > 0) * x + (x[2] > 0) * x,
        lambda x: (x[0] > 0) / x[1],
        lambda x: np.einsum("i,i,j->j", TRUE, TRUE, x),
        lambda x: np.einsum("i,i,j->j", BYTES, BYTES, x),
        lambda x: np.einsum("i,i,j->j", LARGE, LARGE, x),
        lambda x: np.einsum("ij,jk,k->i", onp.ones((3, 3), bool), onp.ones((3, 3), bool), x),
    ],
)
def test_factors_of_vectors(fun, method):
    _agrees(fun, SHORT, method)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_contractions_keep_their_digits(method):
    a, b = onp.float32(SHORT / 3.0), onp.float32(SHORT / 7.0)
    got = parallel_jacobian(lambda x: np.einsum("i,i,j->j", a, b, x), method=method)(SHORT)
    onp.testing.assert_allclose(got, onp.float64(a) @ onp.float64(b) * onp.eye(3), rtol=1e-15)


@pytest.mark.parametrize("size", [3, 300])
@pytest.mark.parametrize("slope", [onp.uint8(200), onp.int8(100), onp.int64(2**62), onp.float16(0.1), 2**70])
def test_constant_partials_of_narrow_types(slope, size):
    @primitive
    def scaled(x):
        return x * float(slope)

    defvector(scaled, slope)
    for fun, factor in ((lambda x: scaled(x) + scaled(x), 2.0), (lambda x: scaled(scaled(x)), float(slope))):
        got = parallel_jacobian(fun)(onp.ones(size))
        onp.testing.assert_array_equal(got, factor * float(slope) * onp.eye(size))


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.tanh(np.clip(np.sin(x), -0.1, 0.1)),
        lambda x: np.clip(x[0], -0.1, 0.1) * x,
        lambda x: np.clip(x, onp.array([-0.3, -0.1, -0.2]).astype("f4"), 0.1)[::-1] * x,
        lambda x: np.maximum(x, 0.1)[::-1] * 1.0,
        lambda x: np.fmin(0.1, np.where(x > 0, x, 0.1)) * x[0],
    ],
)
def test_limits_are_rounded_like_what_they_limit(fun, method):
    """A result in single precision equals a limit of 0.1 only if that is rounded, too."""
    x = onp.array([0.9, -0.9, 0.1], onp.float32)
    onp.testing.assert_allclose(parallel_jacobian(fun, method=method)(x), jacobian(fun)(x), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Casting complex values")  # which autograd's rule does
@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_complex_constants_of_single_results_keep_their_imaginary_part(method):
    """The adjoint of a real factor is a real product of complex numbers."""
    factor = onp.random.default_rng(0).standard_normal((4, 4, 2)) @ onp.array([1.0, 1.0j])
    gradient = grad(lambda x: np.sum(np.abs(np.dot(np.outer(x, np.sin(x)), factor)) ** 2))
    x = onp.array([0.3, -0.7, 0.2, 0.9])
    expected = jacobian(gradient)(x)
    for point in (x, x.astype(onp.float32)):
        found = parallel_jacobian(gradient, method=method)(point)
        onp.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * onp.abs(expected).max())


def _in_a_loop(x):
    total = x[0]
    for _ in range(30):
        moved = np.array([1e3 * total, x[1], x[2]], dtype="f4")
        total = np.sum(np.maximum(moved, 0.2) * np.sin(moved)) / 100.0
    return total * x


@pytest.mark.parametrize("form", ["auto", "systems"])
@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.maximum(np.array(x, dtype=onp.float32), 0.0),
        lambda x: np.maximum(np.array([x[0], x[1]], dtype=onp.float32), 0.0),
        lambda x: np.minimum(np.full(3, x[0], dtype="f4"), 9.0),
        lambda x: np.maximum(np.array(np.array(x, dtype="f4")[::-1], dtype="f8"), 0.0),
        lambda x: np.sin(np.array([1e7 * x[i % 3] for i in range(40)], dtype="f4")),
        lambda x: np.sin(np.concatenate([np.array(1e6 * x, dtype="f4"), x])),
        lambda x: np.maximum(np.array([x[0], 2.0 * np.array(x[1], dtype="f4"), 3.0], dtype="f4"), 0.1),
        lambda x: np.array(1e7 * x, dtype="f4") @ np.array(x, dtype="f4") * x,
        _in_a_loop,
    ],
)
def test_elements_that_are_rounded_as_they_move(monkeypatch, fun, method, form):
    forced(monkeypatch, form)
    x = onp.array([0.1, 0.7, 2.3])
    expected = jacobian(fun)(x)
    found = parallel_jacobian(fun, method=method)(x)
    onp.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * onp.abs(expected).max())
