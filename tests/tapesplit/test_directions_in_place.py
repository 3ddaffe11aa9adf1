"""Directions that several steps read are not overwritten, and rules of users may overwrite theirs: copies."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian
from autograd.extend import defjvp, defvjp, primitive
from sweep_forms import forced

from tapesplit import defvector, execute, parallel_jacobian

W = np.random.default_rng(0).standard_normal((12, 12)) / 4
X = np.linspace(-1.0, 1.0, 12)
FIXED = np.cos(np.arange(144.0)).reshape(12, 12)


@primitive
def fixed_product(x):
    return FIXED @ x


defvjp(fixed_product, lambda ans, x: lambda g: FIXED.T @ g)
defvector(fixed_product, tangents=[lambda T, ans, x: T @ FIXED.T], adjoints=[lambda A, ans, x: A @ FIXED])


def alone(x):
    return W @ anp.tanh(W @ anp.tanh(W @ x))


def read_twice(x):
    y = W @ x
    return anp.concatenate([anp.sin(y), W @ anp.exp(y), y])


def read_through_a_view(x):
    y = W @ x
    rows = anp.reshape(y, (3, 4))
    return anp.sum(anp.exp(rows), axis=0)[0] * anp.sin(y)


def read_again_later(x):
    y = W @ x
    z = anp.tanh(y)
    return (W @ z) * anp.cumsum(y)


def with_two_operands(x):
    return W @ ((W @ x) * anp.sin(W @ anp.cos(x)) + 2.0 * (W @ x**2))


def unscaled(x):
    y = W @ x
    z = y + 1.0
    return W @ (z + anp.tanh(W @ z))


def with_another_input(x):
    return W @ (anp.tanh(W @ x) * anp.sum(x * x))


def complex_partial(x):
    return W @ anp.abs((W @ x) * (1.0 + 2.0j))


def read_by_two_products(x):
    y = anp.tanh(x)
    return anp.concatenate([W @ y, W.T @ y])


def read_by_a_product_and_a_view(x):
    y = anp.tanh(x)
    return anp.concatenate([W @ y, anp.reshape(y, (3, 4))[1], y])


def squared(x):
    y = W @ anp.tanh(W @ x)
    return anp.dot(y, y) * W[0]


def widened(x):
    return anp.outer(W[:3, 0], anp.exp(W @ x)) * anp.sin(W @ x)


def complex_between(x):
    y = (W * (1.0 + 0.5j)) @ x
    return anp.real((W @ (y * anp.exp(1j * anp.real(y)))) * (1.0 - 2.0j))


def a_product_of_users(x):
    return fixed_product(anp.tanh(fixed_product(x)))


def a_sum_of_one_operand(x):
    y = anp.einsum("ij->ji", anp.reshape(anp.outer(x, x), (12, 12)))
    return anp.sum(anp.sin(y), axis=0)


def a_sum_whose_operands_are_read_before(x):
    left, right = W @ x, W.T @ x
    running = anp.cumsum(left)
    total = left + right  # both get its adjoints as they are
    return anp.cumsum(total) * running + W @ total


PROGRAMS = [
    alone,
    read_twice,
    read_through_a_view,
    read_again_later,
    with_two_operands,
    unscaled,
    with_another_input,
    complex_partial,
    read_by_two_products,
    read_by_a_product_and_a_view,
    squared,
    widened,
    complex_between,
    a_product_of_users,
    a_sum_of_one_operand,
    a_sum_whose_operands_are_read_before,
]


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda fun: fun.__name__)
def test_results_are_those_of_autograd_call_after_call(monkeypatch, fun, method):
    forced(monkeypatch, "arrays")
    jac = parallel_jacobian(fun, method=method, machines=1)
    plan, tape = jac.plan(X), jac.tape(X)
    values = [np.array(value) for value in tape.values]
    expected = jacobian(fun)(X).reshape(-1, X.size)
    for _ in range(2):
        np.testing.assert_allclose(execute(plan, tape), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    for kept, value in zip(tape.values, values, strict=True):
        np.testing.assert_array_equal(kept, value)


def scaled_in_place(G, factor):
    G *= factor
    return G


def squares_in_place(*, vjp=False, jvp=False, vector=False):
    """Return a primitive whose rules of some kinds work in place; the others do not."""

    @primitive
    def square(x):
        return x**2

    times = scaled_in_place
    defvjp(square, lambda ans, x: lambda g: times(g, 2.0 * x) if vjp else 2.0 * x * g)
    if jvp:
        defjvp(square, lambda g, ans, x: times(g, 2.0 * x))
    if vector:
        rules = [lambda G, ans, x: times(G, 2.0 * x)]
        defvector(square, tangents=rules, adjoints=rules)
    return square


@primitive
def plus(x, y):
    return x + y


defvjp(plus, lambda ans, x, y: lambda g: g, lambda ans, x, y: lambda g: g)
_AS_IT_IS = [lambda G, ans, x, y: G] * 2
defvector(plus, tangents=_AS_IT_IS, adjoints=_AS_IT_IS)


@pytest.mark.parametrize("form", ["auto", "arrays", "systems"])
@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("kind", ["vjp", "jvp", "vector"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda f, x: f(x[:1]),
        lambda f, x: f(x[:1]) * x,
        lambda f, x: f(f(x)[:1]) * x,
        lambda f, x: anp.sum(f(x * 2.0)),
        lambda f, x: anp.sum(f(anp.reshape(x, (-1, 1))), axis=0),
        lambda f, x: plus(f(x), f(anp.sin(x))),
        lambda f, x: f(x) + f(anp.sin(x)),
        lambda f, x: anp.concatenate([anp.sin(x), f(x), f(x) * x, x]),
        lambda f, x: plus(x, f(plus(x, x))) * W[0, : x.size],
        lambda f, x: anp.real(f(x[:1] * (1.0 + 2.0j)) * (x + 1.0j)),
        lambda f, x: anp.abs(f(anp.exp(1j * x))) * f(x),
        lambda f, x: f(x[0]) * x + f(x[1]),
    ],
)
def test_rules_that_work_in_place_do_no_harm(monkeypatch, fun, kind, method, form):
    forced(monkeypatch, form)
    ordinary, in_place = squares_in_place(), squares_in_place(**{kind: True})
    jac = parallel_jacobian(lambda x: fun(in_place, x), method=method)
    for x in (np.array([3.0, 1.0]), np.array([0.5, -0.7]), np.array([0.5, -0.7])):
        np.testing.assert_allclose(jac(x), jacobian(lambda x: fun(ordinary, x))(x), rtol=1e-13, atol=1e-13)


def test_tuples_may_be_overwritten_leaf_by_leaf():
    @primitive
    def parts(x):
        return x[:1] * 2.0, x[1:] * 3.0

    def vjp(ans, x):
        return lambda g: np.concatenate([scaled_in_place(g[0], 2.0), scaled_in_place(g[1], 3.0)])

    defvjp(parts, vjp)
    jac = parallel_jacobian(lambda x: parts(x)[1] * parts(x)[0])
    for _ in range(3):
        np.testing.assert_allclose(jac(np.array([3.0, 1.0])), [[6.0, 18.0]])
