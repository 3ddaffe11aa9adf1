"""VJPs that a user has put in the place of autograd's: they count, as they do for `autograd.jacobian`."""

import copy
import pickle

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import elementwise_grad, grad, jacobian
from autograd.core import primitive_jvps, primitive_vjps
from autograd.extend import defjvp, defvjp, defvjp_argnums, primitive
from autograd.numpy import linalg
from autograd.scipy import special
from autograd.scipy.linalg import solve_triangular

from tapesplit import defvector, names, parallel_jacobian
from tapesplit.recording import overrides, stand_ins
from tapesplit.recording.overrides import find_jvp, is_overridden
from tapesplit.rules import Elementwise, find_rule, registered, registry

MATRIX = onp.random.default_rng(0).standard_normal((3, 3)) + 4.0 * onp.eye(3)
X = onp.linspace(0.3, 0.9, 9)


def square(x):
    return np.reshape(x, (3, 3))


USES = {
    np.sqrt: np.sqrt,
    np.tanh: lambda x: np.tanh(x) * x,
    np.add: lambda x: x + np.sin(x),
    np.multiply: lambda x: x * x[::-1],
    np.power: lambda x: x**3,
    np.negative: lambda x: -np.exp(x),
    np.dot: lambda x: np.dot(MATRIX, x[:3]),
    np.matmul: lambda x: square(x) @ MATRIX,
    np.einsum: lambda x: np.einsum("ij,j->i", square(x), x[:3]),
    np.sum: lambda x: np.sum(square(x), axis=0),
    np.cumsum: np.cumsum,
    np.prod: lambda x: np.prod(square(x), axis=0),
    np.maximum: lambda x: np.maximum(x, 0.5),
    np.max: lambda x: np.max(square(x), axis=1),
    np.sort: lambda x: np.sort(x[::-1]),
    np.roll: lambda x: np.roll(x, 2),
    np.reshape: lambda x: np.reshape(x, (3, 3)) * MATRIX,
    np.transpose: lambda x: square(x).T * MATRIX,
    np.split: lambda x: np.split(x, 3)[1] * 2.0,
    np.array_split: lambda x: np.array_split(x, 4)[1] * 2.0,
    np.vsplit: lambda x: np.vsplit(square(x), 3)[1] * 2.0,
    np.cross: lambda x: np.cross(x[:3], x[3:6]),
    np.concatenate_args: lambda x: np.concatenate([x[:3], 2.0 * x]),
    np.array_from_args: lambda x: np.array([x[1], x[2] * x[3]]),
    linalg._primitive_norm: lambda x: np.linalg.norm(square(x), axis=1),
    np.linalg.solve: lambda x: np.linalg.solve(square(x) + MATRIX, x[:3]),
    solve_triangular: lambda x: solve_triangular(square(x) + MATRIX, x[:3], lower=True),
    np.linalg.slogdet: lambda x: np.linalg.slogdet(square(x) + MATRIX)[1] * x,
    np.linalg.eigh: lambda x: np.linalg.eigh(square(x) + MATRIX)[0] * x[0],
    np.linalg.inv: lambda x: np.linalg.inv(square(x) + MATRIX),
    np.linalg.det: lambda x: np.linalg.det(square(x) + MATRIX) * x,
    np.fft.fft: lambda x: np.abs(np.fft.fft(x)),
    special.expit: lambda x: special.expit(x) * x,
}


def doubled(maker):
    """Return a VJP that is twice another."""

    def vjp_argnums(argnums, ans, args, kwargs):
        vjp = maker(argnums, ans, args, kwargs)
        return lambda g: tuple(2.0 * row for row in vjp(g))

    return vjp_argnums


def by_argnums(primitive, maker):
    """Define the VJP of a primitive with one argument by the function that takes several."""
    defvjp_argnums(primitive, lambda argnums, ans, args, kwargs: lambda g: (maker(ans, *args)(g),))


@pytest.fixture
def override(monkeypatch):
    """Double the VJP of a primitive until the end of a test."""

    def define(primitive):
        monkeypatch.setitem(primitive_vjps, primitive, primitive_vjps[primitive])
        defvjp_argnums(primitive, doubled(primitive_vjps[primitive]))

    return define


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("used", USES, ids=lambda used: used.__name__)
def test_an_overridden_vjp_counts_as_in_autograd(used, method, override):
    fun = USES[used]
    jac = parallel_jacobian(fun, method=method)
    before = jacobian(fun)(X)
    onp.testing.assert_allclose(jac(X), before, rtol=1e-12, atol=1e-14)
    override(used)
    after = jacobian(fun)(X)
    assert onp.abs(after - before).max() > 0.01
    onp.testing.assert_allclose(jac(X), after, rtol=1e-12, atol=1e-14)
    assert jac.cache_info().hits == 0
    onp.testing.assert_allclose(parallel_jacobian(fun, method=method)(X), after, rtol=1e-12, atol=1e-14)


def slopes_of_solutions(x):
    return grad(lambda y: np.sum(np.linalg.solve(square(y) + MATRIX, y[:3]) ** 3))(x)


def slopes_of_triangular_solutions(x):
    return grad(lambda y: np.sum(solve_triangular(square(y) + MATRIX, y[:3], lower=True) ** 3))(x)


def slopes_at_a_point(x):
    """Of which each is a sum of adjoints."""
    return grad(lambda y: np.sum(y * np.exp(x * y)))(x) * elementwise_grad(lambda y: y * np.exp(x * y))(X)


REWRITTEN = [
    *[
        (used, fun)
        for used in (np.outer, np.matmul, np.negative, np.einsum, np.dot, np.swapaxes)
        for fun in (slopes_of_solutions, slopes_of_triangular_solutions)
    ],
    (np.add, slopes_at_a_point),
    (np.moveaxis, lambda x: np.cross(square(x), MATRIX, axis=0)),
    (np.sqrt, lambda x: np.linalg.norm(x) * x),
    (np.dot, lambda x: np.linalg.norm(x) * x),
    (np.sum, lambda x: np.linalg.norm(square(x), axis=1)),
    (np.tril, lambda x: solve_triangular(square(x), X[:3], lower=True)),
    (np.transpose, lambda x: solve_triangular(square(x), X[:3], trans=1)),
    (np.multiply, lambda x: np.cross(x[:3], x[3:6])),
    (np.subtract, lambda x: np.cross(x[:3], x[3:6])),
    *[
        (used, fun)
        for used in (np.array_from_args, np.concatenate_args, np.moveaxis)
        for fun in (
            lambda x: np.stack([x, 2.0 * x]),
            lambda x: np.stack([x, 2.0 * x], axis=1),
            lambda x: np.vstack([x, 2.0 * x]),
            lambda x: np.hstack([x, 2.0 * x]),
        )
    ],
]


@pytest.mark.parametrize(("used", "fun"), REWRITTEN, ids=lambda given: getattr(given, "__name__", "f"))
def test_calls_that_are_recorded_as_others_keep_their_own_vjp(used, fun, override):
    override(used)
    onp.testing.assert_allclose(parallel_jacobian(fun)(X), jacobian(fun)(X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_a_vjp_of_autograds_in_the_place_of_another_counts(method, override):
    def fun(x):
        return np.sin(x) * x

    override(np.sin)
    for replace in (lambda: defvjp(np.sin, None), lambda: defvjp_argnums(np.sin, primitive_vjps[np.cos])):
        replace()
        got = parallel_jacobian(fun, method=method)(X)
        onp.testing.assert_allclose(got, jacobian(fun)(X), rtol=1e-14)


def test_a_safe_square_root(override):
    override(np.sqrt)
    safe = lambda ans, x: lambda g: g * onp.where(ans > 0, 0.5 / onp.where(ans > 0, ans, 1.0), 0.0)  # noqa: E731
    defvjp(np.sqrt, safe)
    got = parallel_jacobian(lambda x: np.sqrt(x) + x)(onp.array([0.0, 1.0, 4.0]))
    onp.testing.assert_array_equal(got, onp.diag([1.0, 1.5, 1.25]))


@pytest.mark.parametrize("name", ["tanh", "sqrt", "sum", "cumsum", "conj", "ravel"])
@pytest.mark.parametrize("define", [defvjp, by_argnums], ids=["defvjp", "defvjp_argnums"])
def test_a_vjp_that_is_defined_while_recording_counts(name, define, override):
    override(getattr(np, name))

    def fun(x):
        used = getattr(np, name)
        define(used, lambda ans, x: lambda g: 7.0 * g * onp.ones_like(x))
        return used(x)

    got = parallel_jacobian(fun)(X)
    onp.testing.assert_array_equal(got, 7.0 * onp.ones_like(got) if got.ndim == 1 else 7.0 * onp.eye(9))
    onp.testing.assert_array_equal(got, jacobian(fun)(X))
    assert not any(map(stand_ins._STOOD_FOR.get, map(id, primitive_vjps)))


def test_an_inner_derivative_uses_a_vjp_that_is_defined_while_recording(override):
    override(np.tanh)

    def fun(x):
        defvjp(np.tanh, lambda ans, x: lambda g: 7.0 * g)
        return x * jacobian(np.tanh)(0.5)

    onp.testing.assert_array_equal(parallel_jacobian(fun)(X), 7.0 * onp.eye(9))


def test_rules_for_all_directions_that_are_defined_while_recording_count(override, monkeypatch):
    monkeypatch.setitem(registry._rules, np.tanh, registry._rules[np.tanh])
    monkeypatch.setattr(registry, "_users", dict(registry._users))
    monkeypatch.setattr(overrides, "_kept", set(overrides._kept))
    monkeypatch.setitem(primitive_jvps, np.tanh, primitive_jvps[np.tanh])
    override(np.tanh)

    def fun(x):
        defvjp(np.tanh, lambda ans, x: lambda g: 7.0 * g)
        defjvp(np.tanh, lambda g, ans, x: 7.0 * g)
        defvector(np.tanh, 7.0)
        return np.tanh(x)

    onp.testing.assert_array_equal(parallel_jacobian(fun, method="tangent")(X), 7.0 * onp.eye(9))
    assert find_jvp(np.tanh) is not None
    assert find_rule(np.tanh) == Elementwise((7.0,))


def test_nothing_is_overridden_at_first():
    ours = registered().keys() - registry._users
    assert len(ours) > 200
    assert not any(map(is_overridden, ours))
    assert all(find_jvp(known) is not None for known in ours & primitive_jvps.keys())


def test_a_jvp_that_is_defined_too_is_used(override, monkeypatch):
    override(np.sinh)
    assert find_jvp(np.sinh) is None
    monkeypatch.setitem(primitive_jvps, np.sinh, primitive_jvps[np.sinh])
    defjvp(np.sinh, lambda g, ans, x: 2.0 * g * onp.cosh(x))
    got = parallel_jacobian(np.sinh, method="tangent")(X)
    onp.testing.assert_allclose(got, onp.diag(2.0 * onp.cosh(X)), rtol=1e-14)


def test_jvps_of_users_own_primitives_count():
    @primitive
    def own(x):
        return 3.0 * x

    defvjp(own, lambda ans, x: lambda g: 3.0 * g)
    assert find_jvp(own) is None
    defjvp(own, "same")
    assert find_jvp(own) is primitive_jvps[own]


def test_a_vector_rule_for_the_new_vjp_is_used(override, monkeypatch):
    monkeypatch.setitem(registry._rules, np.cosh, registry._rules[np.cosh])
    monkeypatch.setattr(registry, "_users", dict(registry._users))
    monkeypatch.setattr(overrides, "_kept", set(overrides._kept))
    override(np.cosh)
    defvector(np.cosh, lambda ans, x: 2.0 * onp.sinh(x))
    onp.testing.assert_allclose(parallel_jacobian(np.cosh)(X), jacobian(np.cosh)(X), rtol=1e-14)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_a_vector_rule_for_a_product_is_used_in_systems_as_well(monkeypatch, method):
    """A rule with a factor of its own shows that it is called."""
    monkeypatch.setitem(registry._rules, np.dot, registry._rules[np.dot])
    monkeypatch.setattr(registry, "_users", dict(registry._users))
    monkeypatch.setattr(overrides, "_kept", set(overrides._kept))
    defvector(
        np.dot,
        tangents=[lambda T, ans, a, b: 3.0 * T @ b, lambda T, ans, a, b: 3.0 * T @ a],
        adjoints=[lambda A, ans, a, b: 3.0 * A[:, None] * b, lambda A, ans, a, b: 3.0 * A[:, None] * a],
    )

    def fun(x):
        return np.array([np.dot(x[:2], x[1:3]), np.sin(x[0])])

    x = onp.array([1.0, 2.0, 4.0])
    want = [[6.0, 15.0, 6.0], [onp.cos(1.0), 0.0, 0.0]]
    onp.testing.assert_allclose(parallel_jacobian(fun, method=method)(x), want, rtol=1e-14)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
@pytest.mark.parametrize("name", ["slogdet", "eigh", "svd"])
def test_vector_rules_for_decompositions_are_used(monkeypatch, name, shape):
    """Their calls are not recorded as those of other primitives any more."""
    primitive, calls = getattr(np.linalg, name), []
    monkeypatch.setitem(registry._rules, primitive, registry._rules[primitive])
    monkeypatch.setattr(registry, "_users", dict(registry._users))
    monkeypatch.setattr(overrides, "_kept", set(overrides._kept))

    def rule(directions, ans, x, *args, **kwargs):
        calls.append(x.shape)
        return NotImplemented

    defvector(primitive, tangents=[rule], adjoints=[rule])
    options = {"full_matrices": False} if name == "svd" else {}

    def fun(x):
        return primitive(x, **options)[1]

    x = onp.random.default_rng(0).standard_normal(shape) + 3.0 * onp.eye(3)
    onp.testing.assert_allclose(parallel_jacobian(fun)(x), jacobian(fun)(x), rtol=1e-9, atol=1e-12)
    assert calls


@pytest.mark.parametrize("vjp_first", [True, False])
def test_a_vector_rule_gives_way_to_a_vjp_that_is_defined_later(vjp_first):
    @primitive
    def own(x):
        return x**2

    def define(factor):
        defvjp(own, lambda ans, x: lambda g: factor * g * x)

    if vjp_first:
        define(2.0)
    defvector(own, lambda ans, x: 2.0 * x)
    if not vjp_first:
        define(2.0)
    jac = parallel_jacobian(own)
    onp.testing.assert_array_equal(jac(X).diagonal(), 2.0 * X)
    assert isinstance(find_rule(own), Elementwise)
    define(7.0)
    onp.testing.assert_array_equal(jac(X), jacobian(own)(X))
    assert find_rule(own) is None
    defvector(own, lambda ans, x: 7.0 * x)
    onp.testing.assert_array_equal(jac(X), jacobian(own)(X))
    assert isinstance(find_rule(own), Elementwise)


def by_pickling(jac):
    return pickle.loads(pickle.dumps(jac))  # noqa: S301 (our own)


@pytest.mark.parametrize("take", [by_pickling, copy.deepcopy])
def test_plans_that_were_copied_notice_it_too(take, override):
    jac = parallel_jacobian(softened)
    jac(X)
    other = take(jac)
    other(X)
    override(np.log1p)
    onp.testing.assert_allclose(other(X), jacobian(softened)(X), rtol=1e-14)


@pytest.mark.parametrize("take", [by_pickling, copy.deepcopy])
@pytest.mark.parametrize("fun", ["softened", "looped"])
def test_plans_from_before_are_not_taken_along(take, fun, override):
    fun = globals()[fun]
    jac = parallel_jacobian(fun)
    jac(X)
    blob = pickle.dumps(jac)
    override(np.log1p)
    for other in (take(jac), pickle.loads(blob)):  # noqa: S301 (our own)
        onp.testing.assert_allclose(other(X), jacobian(fun)(X), rtol=1e-14)


def test_vjps_of_plans_that_are_gone_are_forgotten():
    made = []

    class Double:
        def __call__(self, x):
            return 2.0 * x

    def made_anew(x):
        own = primitive(Double())  # without code of its own: others of the same code count as the same
        defvjp(own, lambda ans, x: lambda g: 2.0 * g)
        made.append(own)
        return own(x)

    jac = parallel_jacobian(made_anew, method="dp")  # plans every structure
    for _ in range(12):
        jac(X)
    assert jac.cache_info().currsize == 8
    for replaced, kept in ((made[0], 8), (made[-1], 1)):  # that of the first plan matters no more
        defvjp(replaced, lambda ans, x: lambda g: 3.0 * g)
        jac(X)
        assert jac.cache_info().currsize == kept


def test_a_vjp_that_mixes_slices_is_not_called_on_stacks(override):
    def inverses(x):
        return np.array([np.sum(np.linalg.inv(MATRIX * x[i])) for i in range(9)])

    def by_norm(ans, x):
        return lambda g: -ans.T @ g @ ans.T * onp.linalg.norm(x)

    override(np.linalg.inv)
    defvjp(np.linalg.inv, by_norm)
    for method in ("tangent", "adjoint"):
        got = parallel_jacobian(inverses, method=method)(X)
        onp.testing.assert_allclose(got, jacobian(inverses)(X), rtol=1e-12)


def test_users_jvps_are_found_without_a_search(monkeypatch):
    @primitive
    def own(x):
        return 2.0 * x

    defvjp(own, lambda ans, x: lambda g: 2.0 * g)
    defjvp(own, lambda g, ans, x: 2.0 * g)
    monkeypatch.setattr(names, "_names_of_autograd", lambda: pytest.fail("all modules were looked through"))
    assert find_jvp(own) is primitive_jvps[own]


def looped(x):
    return np.array([np.log1p(x[i]) * x[i - 1] for i in range(9)])


def softened(x):
    return np.log1p(x) * 2.0
