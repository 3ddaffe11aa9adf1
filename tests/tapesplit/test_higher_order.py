"""Derivatives of derivatives: whoever is outside, the numbers are autograd's."""

import autograd
import autograd.numpy as np
import numpy as onp
import pytest
from autograd import elementwise_grad, grad, hessian, jacobian, make_hvp, make_jvp
from autograd.extend import defvjp, primitive
from autograd.test_util import check_grads
from sweep_forms import forced

from tapesplit import parallel_jacobian, record
from tapesplit.errors import NestedTraceError

X = onp.linspace(0.2, 0.8, 4)
WEIGHTS = onp.cos(onp.arange(12.0)).reshape(3, 4)


def vector(x):
    return np.tanh(WEIGHTS @ x) * np.sum(x[:2] ** 2)


def scalar(x):
    return np.sum(vector(x) ** 2 * x[:3])


def assert_close(got, want):
    assert got.shape == want.shape
    assert onp.abs(got - want).max() <= 1e-12 * onp.abs(want).max()


def test_jacobian_of_parallel_jacobian():
    assert_close(jacobian(parallel_jacobian(vector))(X), jacobian(jacobian(vector))(X))


def test_parallel_jacobian_of_jacobian():
    assert_close(parallel_jacobian(jacobian(vector))(X), jacobian(jacobian(vector))(X))


def test_parallel_jacobian_of_parallel_jacobian():
    assert_close(parallel_jacobian(parallel_jacobian(vector))(X), jacobian(jacobian(vector))(X))


def test_in_the_place_of_autograds_function(monkeypatch):
    """Users of packages that call autograd replace its functions."""
    want = [jacobian(jacobian(vector))(X), grad(lambda x: np.sum(jacobian(vector)(x)))(X)]
    monkeypatch.setattr(autograd, "jacobian", parallel_jacobian)
    assert_close(autograd.jacobian(autograd.jacobian(vector))(X), want[0])
    assert_close(grad(lambda x: np.sum(autograd.jacobian(vector)(x)))(X), want[1])


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_hessian_as_parallel_jacobian_of_a_gradient(method):
    assert_close(parallel_jacobian(grad(scalar), method=method)(X), hessian(scalar)(X))


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda y: (np.dot(y, y) - 1.0) ** 2 + y[0] * y[1],
        lambda y: np.sum(np.sin(y) * np.dot(y, y)),
        lambda y: np.dot(np.dot(WEIGHTS[:, :3], np.sin(y[:3])), y[:3]),
        lambda y: np.inner(y, y) * np.tensordot(y, np.outer(y, y), 1)[1],
    ],
)
def test_hessians_of_products(fun, method):
    assert_close(parallel_jacobian(grad(fun), method=method)(X), hessian(fun)(X))


def test_third_order():
    want = jacobian(jacobian(grad(scalar)))(X)
    assert_close(parallel_jacobian(parallel_jacobian(grad(scalar)))(X), want)
    assert_close(jacobian(parallel_jacobian(grad(scalar)))(X), want)
    assert_close(parallel_jacobian(parallel_jacobian(parallel_jacobian(scalar)))(X), want)


def test_gradient_through_a_sum_of_a_jacobian():
    got = grad(lambda x: np.sum(parallel_jacobian(vector)(x) ** 2))(X)
    assert_close(got, grad(lambda x: np.sum(jacobian(vector)(x) ** 2))(X))


def test_forward_mode_outside():
    got = make_jvp(parallel_jacobian(lambda x: x**3 * np.sum(x)))(X)(onp.ones(4))[1]
    assert_close(got, make_jvp(jacobian(lambda x: x**3 * np.sum(x)))(X)(onp.ones(4))[1])


def test_hessian_vector_product_outside():
    product = make_hvp(lambda x: np.sum(parallel_jacobian(vector)(x)))(X)[0](onp.ones(4))
    assert_close(product, make_hvp(lambda x: np.sum(jacobian(vector)(x)))(X)[0](onp.ones(4)))


def test_checked_by_differences():
    check_grads(parallel_jacobian(vector), modes=["rev"], order=2)(X)


def test_closure_over_a_value_that_is_differentiated():
    def outer(make):
        return lambda y: np.sum(make(lambda x: np.sin(x * y) * np.sum(y * x))(X) ** 2)

    assert_close(grad(outer(parallel_jacobian))(X), grad(outer(jacobian))(X))


def test_closure_value_in_containers_and_keywords():
    def outer(make):
        def fun(y):
            parts = [y[0], {"a": y[1:]}]
            return np.sum(
                make(lambda x, scale=1.0: np.concatenate([x * parts[0], x[:3] * parts[1]["a"]]) * scale)(
                    X, scale=y[2]
                )
            )

        return fun

    assert_close(grad(outer(parallel_jacobian))(X), grad(outer(jacobian))(X))


def test_closure_value_that_is_the_result():
    def outer(y):
        value, derivative = parallel_jacobian(lambda _x: y).value_and_jacobian(X)
        return np.sum(value**2) + np.sum(derivative)

    with pytest.warns(UserWarning, match="independent"):
        assert_close(grad(outer)(X), 2 * X)


def test_value_and_jacobian_under_another_derivative():
    def outer(x):
        value, derivative = parallel_jacobian(vector, argnum=(0,)).value_and_jacobian(x)
        return np.sum(value) + np.sum(derivative[0])

    assert_close(grad(outer)(X), grad(lambda x: np.sum(vector(x)) + np.sum(jacobian(vector)(x)))(X))


def test_several_argnums_under_another_derivative():
    def outer(make_two):
        return lambda x: sum(np.sum(j**2) for j in make_two(x, 2.0 * x))

    def fun(x, y):
        return x * y**2

    got = grad(outer(parallel_jacobian(fun, (0, 1))))(X)
    want = grad(outer(lambda x, y: [jacobian(fun, 0)(x, y), jacobian(fun, 1)(x, y)]))(X)
    assert_close(got, want)


def test_inner_jacobian_of_constants():
    inner = parallel_jacobian(vector)
    assert_close(parallel_jacobian(lambda x: inner(X) @ x)(X), inner(X))
    assert_close(jacobian(lambda x: inner(X) @ x)(X), inner(X))
    assert_close(elementwise_grad(lambda x: np.sum(inner(X) @ x))(X), inner(X).sum(axis=0))


def test_inner_derivative_of_an_outer_scalar_loop():
    """The cheap boxes of a recording meet the boxes of autograd's own traces."""

    def fun(x):
        total = 0.0
        for i in range(4):
            total = total + grad(lambda z, i=i: z * z * x[i] + x[i] ** 2 * z)(x[(i + 1) % 4])
        return total * x

    assert_close(parallel_jacobian(fun)(X), jacobian(fun)(X))


def test_recording_alone_cannot_see_the_outer_derivative():
    def outer(y):
        with pytest.raises(NestedTraceError, match="leaves all levels to autograd"):
            record(lambda x: x * y, X)
        with pytest.raises(NestedTraceError):
            record(vector, y)
        with pytest.raises(NestedTraceError):
            parallel_jacobian(vector).plan(y)
        return np.sum(y)

    assert_close(grad(outer)(X), onp.ones(4))


READS = {
    "numbers": lambda x: np.array([x[0], x[-1], x[2] * x[0]]),
    "numpy number": lambda x: x[onp.int64(1)] * x,
    "slices": lambda x: x[1:] * x[:-1] + x[::-1][:3],
    "axes": lambda x: x[None, 1:] * np.reshape(x, (2, 2))[:, 1][..., None] * x[0],
    "rows and columns": lambda x: np.reshape(x, (2, 2))[1, 0] * np.reshape(x, (2, 2))[0],
    "repeated places": lambda x: x[[0, 1, 1]] * x[onp.array([3, 3, 0])],
    "rows of a matrix": lambda x: np.ravel(np.reshape(x, (2, 2))[onp.array([[1, 1], [0, 1]])])[1:] * x[0],
    "pairs": lambda x: np.outer(x, x)[onp.array([0, 3, 0]), onp.array([[1, 2, 1]])][0] * x[1:],
    "mask": lambda x: x[onp.array([True, False, True, True])] * x[0],
    "nothing": lambda x: np.concatenate([x[:0], x[2:1], x]),
    "many": lambda x: np.concatenate([x] * 20)[3:7] * np.concatenate([x] * 20)[70],
    "a number": lambda x: np.sum(x)[()] * x[1],
    "complex": lambda x: np.real((x[0] + 1j * x[1]) * (1j * x)[2:] ** 2),
    "columns of a loop": lambda x: sum(np.sin(x[i] * x[i - 1]) * x[i] ** 2 for i in range(4)),
}


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("name", READS)
def test_hessians_of_programs_that_read_parts(name, method):
    gradient = grad(lambda x: np.sum(np.sin(READS[name](x)) * 2.0))
    assert_close(parallel_jacobian(gradient, method=method)(X), jacobian(gradient)(X))


def test_hessians_of_pair_potentials_are_scalar_sweeps():
    first, second = onp.triu_indices(8, 1)

    def energy(x):
        points = np.reshape(x, (8, 3))
        squares = np.sum((points[first] - points[second]) ** 2, axis=-1) + 0.3
        return np.sum(1.0 / squares**6 - 1.0 / squares**3)

    x = onp.random.default_rng(0).uniform(0.0, 3.0, 24)
    jac = parallel_jacobian(grad(energy))
    assert_close(jac(x), hessian(energy)(x))
    assert [type(sweep).__name__ for sweep in jac.plan(x).sweeps] == ["ScalarSweep"]


def test_hessians_of_loops_are_scalar_sweeps():
    def chain(x):
        return sum(100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2 for i in range(x.size - 1))

    x = onp.linspace(0.5, 1.5, 20)
    jac = parallel_jacobian(grad(chain))
    assert_close(jac(x), hessian(chain)(x))
    assert [type(sweep).__name__ for sweep in jac.plan(x).sweeps] == ["ScalarSweep"]


def test_inputs_in_single_precision_keep_it_in_hessians():
    x = X.astype(onp.float32)
    gradient = grad(lambda x: np.sum(x[1:] ** 2 * x[0]))
    assert parallel_jacobian(gradient)(x).dtype == jacobian(gradient)(x).dtype


@pytest.mark.parametrize("form", ["systems", "arrays"])
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_rules_that_return_one_number_for_all_elements(form, method, monkeypatch):
    @primitive
    def shared(x):
        return 0.5 * onp.sum(x) * onp.ones_like(x)

    defvjp(shared, lambda ans, x: lambda g: 0.5 * np.sum(g))

    def total(x):
        return np.sum(shared(x) * x * x) + np.sum(np.sin(x))

    forced(monkeypatch, form)
    x = onp.linspace(0.3, 0.9, 6).reshape(2, 3)
    assert_close(parallel_jacobian(grad(total), method=method)(x), jacobian(grad(total))(x))
