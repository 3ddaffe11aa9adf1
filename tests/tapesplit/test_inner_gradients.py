"""Gradients inside a recorded function: on the same tape, with the derivatives that autograd has."""

import autograd
import autograd.numpy as np
import numpy as onp
import pytest
from autograd import (
    elementwise_grad,
    grad,
    hessian,
    hessian_vector_product,
    jacobian,
    make_jvp,
    value_and_grad,
)
from autograd.builtins import tuple as boxed_tuple
from autograd.core import primitive_vjps
from autograd.extend import defvjp, primitive
from autograd.scipy.linalg import solve_triangular

from tapesplit import parallel_jacobian, record
from tapesplit.names import display_name
from tapesplit.recording import direct_functions
from tapesplit.recording.tracing import tracing_lock
from tapesplit.structures.facts import facts_of

X = onp.array([0.7, -0.4, 1.3])
A = onp.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.2], [0.4, -0.6, 3.0]])


def energy(x):
    total = x[0] * x[1]
    for i in range(3):
        total = (
            total + np.exp(x[i] * x[i - 1]) / (1.0 + x[i] ** 2) - np.tanh(x[i]) * np.sqrt(2.0 + np.cos(x[0]))
        )
    return total + np.log(3.0 + np.sin(x[2])) - np.sum(np.square(x) * x) + (A @ x) @ x


def stack_of(y, x):
    return A + y[:, None, None] * np.outer(y, x)


def spectral(y, side):
    values, vectors = np.linalg.eigh(A + y, side)
    return values[..., None, :] * vectors**3


def decomposed(y):
    u, s, vt = np.linalg.svd(y[:, :, :2], full_matrices=False)
    return (u + s[:, None]) @ vt


@primitive
def tripled(x):
    return 3.0 * x


defvjp(tripled, lambda ans, x: lambda g: 3.0 * g)

PROGRAMS = {
    "gradient": grad(energy),
    "value and gradient": lambda x: np.append(*reversed(value_and_grad(energy)(x))),
    "of a function of x": lambda x: grad(energy)(np.sin(x) * 2.0) * x,
    "of what x is a constant for": lambda x: grad(lambda y: energy(y * x) + np.sum(x))(x),
    "the same variable inside and outside": lambda x: x * grad(lambda y: np.sum(x * y))(x),
    "of another variable": lambda x: grad(lambda y, z: energy(y) * z[0], 1)(x, np.cos(x)),
    "of a gradient": lambda x: grad(lambda y: np.sum(grad(energy)(y) * x))(x),
    "hessian": lambda x: hessian(energy)(x) @ x,
    "jacobian": lambda x: jacobian(lambda y: np.outer(y, x) @ y)(x * x).ravel(),
    "of a number": lambda x: np.array([grad(lambda t: energy(x * t) * t)(x[0]), grad(np.sin)(2.0) * x[1]]),
    "of a part": lambda x: grad(lambda t: t * t)(x[1]) * x,
    "along a direction": lambda x: make_jvp(grad(energy))(x)(x)[1],
    "of a derivative along a direction": lambda x: grad(lambda y: np.sum(make_jvp(np.tanh)(y)(x)[1]))(x),
    "of parameters in a tuple": lambda x: np.concatenate(
        grad(lambda p: energy(p[0] * p[1]) * x[0])(boxed_tuple((x, x[::-1])))
    ),
    "nothing": lambda x: grad(lambda y: y[0])(x) * x + grad(lambda y: np.sum(y) * 0.0)(x),
    "the variable itself": lambda x: jacobian(lambda y: y)(x) @ x,
    "a solution": lambda x: grad(lambda y: np.sum(np.linalg.solve(A + np.outer(y, x), y) ** 2))(x),
    "a solution by a triangle": lambda x: grad(
        lambda y: np.sum(solve_triangular(A + np.outer(y, x), y, trans=1) ** 2)
    )(x),
    "a solution by a matrix that is no variable": lambda x: grad(
        lambda y: np.sum(np.linalg.solve(A + np.outer(x, x), np.outer(y, y * x)) ** 3)
    )(x),
    "solutions of a stack": lambda x: grad(
        lambda y: np.sum(np.linalg.solve(stack_of(y, x), np.sin(stack_of(x, y))) ** 3)
    )(x),
    "solutions by triangles": lambda x: grad(
        lambda y: np.sum(
            solve_triangular(A + np.outer(y, x), solve_triangular(A + np.outer(x, y), A * y, "T"), lower=True)
            ** 3
        )
    )(x),
    "a gradient with solutions": lambda x: grad(
        lambda y: np.sum(grad(lambda z: np.sum(np.linalg.solve(A + np.outer(z, x), z * y) ** 3))(y) ** 2)
    )(x),
    "a gradient with solutions by triangles": lambda x: grad(
        lambda y: np.sum(grad(lambda z: np.sum(solve_triangular(A + np.outer(z, x), z * y, 1) ** 3))(y) ** 2)
    )(x),
    "eigenvalues": lambda x: grad(lambda y: np.linalg.eigh(A + np.outer(y, y))[0] @ x)(x),
    "a determinant": lambda x: grad(lambda y: np.linalg.slogdet(A + np.outer(y, x))[1])(x * x),
    "determinants of a stack": lambda x: grad(lambda y: np.linalg.slogdet(stack_of(y, x))[1] @ x)(x * x),
    "eigenvalues of a stack": lambda x: grad(lambda y: np.sum(np.linalg.eigh(stack_of(y, x))[0] ** 2 @ x))(
        x * x
    ),
    "eigenvectors": lambda x: grad(lambda y: np.sum(spectral(np.outer(y, y), "U") * x))(x),
    "eigenvectors of a stack": lambda x: grad(lambda y: np.sum(spectral(stack_of(y, x), "L") * x))(x * x),
    "a gradient with eigenvectors": lambda x: grad(
        lambda y: np.sum(grad(lambda z: np.sum(spectral(stack_of(z, x), "L")))(y) ** 2)
    )(x),
    "singular values of a stack": lambda x: grad(
        lambda y: np.sum(np.linalg.svd(stack_of(y, x), compute_uv=False) ** 3)
    )(x),
    "decompositions of a stack": lambda x: grad(lambda y: np.sum(decomposed(stack_of(y, x)) ** 3))(x),
    "a gradient with decompositions": lambda x: grad(
        lambda y: np.sum(grad(lambda z: np.sum(decomposed(stack_of(z, x)[:2]) ** 3))(y) ** 2)
    )(x),
    "norms": lambda x: grad(lambda y: np.linalg.norm(np.outer(y, x), axis=1) @ y)(x),
    "a primitive of a user": lambda x: grad(lambda y: np.sum(tripled(y * y) * x))(x),
    "complex values": lambda x: grad(lambda y: np.abs(np.sum(y * (1.0 + 2.0j * x))) ** 2)(x),
    "other shapes": lambda x: grad(lambda y: np.sum((y[:, None] * x) / (2.0 + y)))(x),
}


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_autograd(name, method):
    found = parallel_jacobian(PROGRAMS[name], method=method)(X)
    expected = jacobian(PROGRAMS[name])(X)
    assert found.dtype == expected.dtype
    onp.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_results_that_depend_on_outer_variables_only_have_no_derivative():
    def fun(x):
        return grad(lambda y: np.sum(x * x))(x) + x

    with pytest.warns(UserWarning, match="seems independent"):
        onp.testing.assert_array_equal(parallel_jacobian(fun)(X), onp.eye(3))


def test_a_gradient_of_number_code_takes_little_more_than_its_operations():
    """The forward operations, about as many products, and sums where a value is read twice."""
    forward = len(record(energy, X))
    assert len(record(grad(energy), X)) < 4 * forward


@primitive
def without_vjp(x):
    return 2.0 * x


PAIRS = onp.triu_indices(260, 1)


@pytest.mark.parametrize(
    ("count", "function"),
    [
        (600, lambda x: sum(np.sin(x[i - 1] * x[i]) for i in range(1, 600))),
        (900, lambda x: np.sum(np.tanh(x[:40] * x[-40:])) + np.sum(x**2) + x[500] * x[501]),
        (900, lambda x: np.sum(x[onp.arange(30) // 2] * x[30:60]) + np.sum(x**3)),
        (3000, lambda x: np.sum(x[:60] ** 2 * x[60:120]) + np.sum(x**2)),
        (3000, lambda x: np.prod(x[onp.arange(9) * 3]) + np.sum(x**2)),
        (3000, lambda x: x[0] ** 3 * x[-1] + np.sum((x[1:] - x[:-1] ** 2) ** 2)),
        (60, lambda x: sum(np.sin(x[i - 1] * x[i]) for i in onp.arange(1, 60))),
        (60, lambda x: sum(np.prod(x[[i, i + 1]]) + x[onp.int32(i)] for i in range(59))),
        (60, lambda x: sum(np.sum(part**2) * part[0] for part in np.split(x, [7, 20]))),
        (60, lambda x: np.sum(np.split(np.reshape(x, (12, 5)), (1, 3), axis=-1)[1] ** 3)),
        (60, lambda x: sum(np.sum(part**2) * part[0] for part in np.array_split(x, 7))),
        (60, lambda x: np.sum(np.hsplit(np.vsplit(np.reshape(x, (12, 5)), 4)[1], [1, 3])[1] ** 3)),
        (60, lambda x: np.sum(np.hstack([x[0] * x[1], x[2] ** 2]) * np.append(x[3], x[4] * x[5]))),
        (60, lambda x: np.sum(np.append(np.hstack([x[3:5], x[9]]), x[1] * x[2]) ** 3)),
        (
            780,
            lambda x: np.sum(
                1.0 / (1.0 + np.sum((x.reshape(-1, 3)[PAIRS[0]] - x.reshape(-1, 3)[PAIRS[1]]) ** 2, 1))
            ),
        ),
    ],
)
def test_hessians_with_look_ups_of_all_kinds_have_scalar_forms(count, function):
    """Sparse adjoints, lists and stacks have no scalar form: array sweeps take up to twenty times as long."""
    x = onp.linspace(-1.0, 1.0, count)
    jac = parallel_jacobian(grad(function), machines=1)
    tape = jac.tape(x)
    without = onp.flatnonzero(~facts_of(tape).scalar[tape.inputs :]) + tape.inputs
    assert [tape.primitives[i].__name__ for i in without] == []
    v = onp.cos(onp.arange(count))
    expected = hessian_vector_product(function)(x, v)
    onp.testing.assert_allclose(jac(x) @ v, expected, rtol=1e-10, atol=1e-12 * onp.abs(expected).max())


def test_look_ups_that_would_have_too_many_zeros_keep_sparse_adjoints(monkeypatch):
    def function(x):
        return np.sum(x**3) + sum(x[i] ** 2 * x[i + 1] for i in range(30))

    monkeypatch.setattr(direct_functions, "_ZEROS_OF_A_TAPE", 20 * 2100)
    x = onp.linspace(-1.0, 1.0, 2100)
    jac = parallel_jacobian(grad(function), machines=1)
    names = [display_name(p) for p in jac.tape(x).primitives[1:]]
    assert names.count("sparse_add") == 31 - 20
    v = onp.cos(onp.arange(2100))
    onp.testing.assert_allclose(jac(x) @ v, hessian_vector_product(function)(x, v), rtol=1e-12, atol=1e-12)


def test_what_has_no_vjp_raises_what_autograd_does():
    def fun(x):
        return grad(lambda y: np.sum(without_vjp(y)))(x)

    with tracing_lock(), pytest.raises(NotImplementedError) as theirs:  # autograd leaves its level raised
        jacobian(fun)(X)
    with pytest.raises(NotImplementedError) as ours:
        parallel_jacobian(fun)(X)
    assert str(ours.value) == str(theirs.value)


HIDING = {
    "array of objects": lambda x: np.sum(onp.array([x[0], x[1]]) * x[2]),
    "plain product": lambda x: np.sum(x[0] * A.dot(x)),
    "plain stack": lambda x: np.sum(onp.stack([x, x * x]) * x[0]),
    "list": lambda x: np.multiply(x[0], [x[0], x[1], 1.0])[1],
    "array of another function": lambda x: A.dot(x * x),
}


@pytest.mark.parametrize("name", HIDING)
@pytest.mark.parametrize(
    "nested",
    [
        lambda f: parallel_jacobian(jacobian(f)),
        lambda f: parallel_jacobian(parallel_jacobian(f)),
        lambda f: jacobian(parallel_jacobian(f)),
        lambda f: grad(lambda x: np.sum(parallel_jacobian(f)(x))),
        lambda f: parallel_jacobian(lambda x: jacobian(lambda y: f(y) * x[0])(x)),
    ],
)
def test_traced_values_that_inner_functions_hide(name, nested):
    """autograd returns zeros in the place of their derivatives."""
    for function in parallel_jacobian, nested:
        with tracing_lock(), pytest.raises(TypeError, match=r"hides a traced value from autograd"):
            function(HIDING[name])(X)


def test_vjps_of_users_count(monkeypatch):
    monkeypatch.setitem(primitive_vjps, np.multiply, primitive_vjps[np.multiply])
    defvjp(np.multiply, lambda ans, x, y: lambda g: g * y * 7.0, lambda ans, x, y: lambda g: g * x * 7.0)

    def fun(x):
        return grad(lambda y: np.sum(y * x))(x)

    onp.testing.assert_allclose(parallel_jacobian(fun)(X), jacobian(fun)(X))


@pytest.mark.parametrize(
    ("solve", "name"),
    [(lambda a, b: np.linalg.solve(a, b), "solve"), (solve_triangular, "solve_triangular")],  # noqa: PLW0108
)
def test_solutions_are_recorded_by_their_right_hand_sides(solve, name):
    """Inside of a gradient as outside of it, also where another gradient has failed."""

    def fun(x):
        def failing(y):
            raise ValueError(y.shape)

        with pytest.raises(ValueError, match="3"):
            grad(failing)(x)
        return grad(lambda y: np.sum(solve(A + np.outer(y, y), y) ** 2))(x) * solve(A + np.outer(x, x), x)

    tape = record(fun, X)
    labels = [tape.label(i) for i in range(len(tape))]
    assert labels.count("side of solve") == labels.count(name) == 3
    with tracing_lock():
        expected = jacobian(fun)(X)
    onp.testing.assert_allclose(parallel_jacobian(fun)(X), expected, rtol=1e-12)


def test_outside_recordings_autograd_is_untouched():
    before = autograd.differential_operators._make_vjp
    seen = []

    def fun(x):
        seen.append(autograd.differential_operators._make_vjp)
        return x

    parallel_jacobian(fun)(X)
    assert seen[0] is not before
    assert autograd.differential_operators._make_vjp is before


def test_gradients_below_an_open_trace_of_autograd():
    """What the function closes over belongs to a trace above: the variable does not reach it on our tape."""

    def fun(x):
        def outer(c):
            return np.sum(grad(lambda y: np.sum(y * y * c))(x))

        return grad(outer)(np.ones(3))

    onp.testing.assert_allclose(parallel_jacobian(fun)(X), 2 * onp.eye(3), rtol=1e-14)


def test_slopes_of_saturated_tanh_do_not_cancel():
    def fun(x):
        return np.log(elementwise_grad(np.tanh)(x))

    x = onp.array([1.0, 5.0, 20.0])
    expected = onp.log(1 / onp.cosh(x) ** 2)
    value, slopes = parallel_jacobian(fun).value_and_jacobian(x)
    onp.testing.assert_allclose(value, expected, rtol=1e-14)
    onp.testing.assert_allclose(slopes, onp.diag(-2 * onp.tanh(x)), rtol=1e-13)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_hessians_at_saturated_tanh_are_finite(method):
    inputs = onp.array([[400.0, 1.0], [2.0, 3.0]])
    gradient = grad(lambda w: np.sum(np.tanh(inputs @ w)))
    w = onp.ones(2)
    found = parallel_jacobian(gradient, method=method)(w)
    onp.testing.assert_allclose(found, jacobian(gradient)(w), rtol=1e-12)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_slopes_of_complex_tanh_do_not_overflow(method):
    phases = onp.exp([0.3j, 2.5j, 0.0, 1.3j, -0.7j])
    scales = onp.array([800.0, 900.0, -0.5, 0.7, -2.0])

    def fun(x, np=np):
        z = np.tanh(scales * phases * x)
        return np.concatenate([np.real(z), np.imag(z)])

    x, own = onp.linspace(0.9, 1.1, 5), slice(2, None)
    found = parallel_jacobian(fun, method=method)(x)
    expected = scales[own] * phases[own] / onp.cosh((scales * phases * x)[own]) ** 2
    onp.testing.assert_allclose(found[:5, own][own], onp.diag(expected.real), rtol=1e-12, atol=1e-14)
    onp.testing.assert_allclose(found[5:, own][own], onp.diag(expected.imag), rtol=1e-12, atol=1e-14)
    onp.testing.assert_allclose(found[:, :2], 0.0, atol=1e-300)


def test_vjps_are_made_once_for_all_rows(monkeypatch):
    made = []

    def maker(ans, x):
        made.append(x)
        slope = np.full(ans.shape, 3.0)
        return lambda g: g * slope

    monkeypatch.setitem(primitive_vjps, tripled, primitive_vjps[tripled])
    defvjp(tripled, maker)
    slopes = parallel_jacobian(lambda x: jacobian(lambda y: tripled(y * x))(x).ravel())(X)
    assert len(made) == 1
    onp.testing.assert_allclose(slopes, 3.0 * onp.eye(9)[[0, 4, 8]].T)


def test_vjps_of_users_for_what_our_derivatives_are_made_of(monkeypatch):
    """The slope of tanh is made of cosh in autograd."""
    monkeypatch.setitem(primitive_vjps, np.cosh, primitive_vjps[np.cosh])
    defvjp(np.cosh, lambda ans, x: lambda g: g * 5.0)

    def fun(x):
        return elementwise_grad(np.tanh)(x)

    onp.testing.assert_allclose(parallel_jacobian(fun)(X), jacobian(fun)(X), rtol=1e-13)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sum(np.select([x > 0.0], [x * x], x[0])),
        lambda x: np.sum(np.select([onp.arange(4) < 2], [x * x], x[0])),
        lambda x: np.sum(np.select([onp.arange(4) < 2, onp.arange(4) < 3], [x[0] * x[1], x**3], x[2]) ** 2),
        lambda x: np.sum(np.select([onp.arange(4) < 2], [x * x], 2.0) ** 2),
    ],
)
def test_choices_between_traced_numbers_have_hessians(fun):
    x = onp.array([0.3, -0.7, 1.2, 0.5])
    onp.testing.assert_allclose(parallel_jacobian(grad(fun))(x), jacobian(grad(fun))(x), atol=1e-14)


@pytest.mark.parametrize("shape", [(3, 3), (4, 3, 3)])
def test_gradients_of_inverses_are_recorded_by_products_of_matrices(shape):
    matrices = onp.random.default_rng(0).uniform(-0.1, 0.1, shape) + onp.eye(3)

    def fun(x):
        return grad(lambda x: np.sum(np.sin(np.linalg.inv(matrices + x * matrices))))(x)

    x = onp.array([0.1, 0.2, 0.3])
    tape = record(fun, x)
    labels = [tape.label(index) for index in range(len(tape))]
    assert labels.count("matmul") == 2
    assert "einsum" not in labels
    onp.testing.assert_allclose(parallel_jacobian(fun)(x), jacobian(fun)(x), rtol=1e-12, atol=1e-13)
