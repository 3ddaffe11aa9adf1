"""The registry: what is registered when, what users register, what counts as an edge, how checks fail."""

import functools
import math
import re
import subprocess
import sys

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian
from autograd.extend import defjvp, defvjp, primitive
from autograd.scipy import special
from autograd.scipy.integrate import odeint
from autograd.scipy.stats import dirichlet, multivariate_normal, t
from rule_cases import WHERE
from sweep_forms import forced

from tapesplit import check_jacobian, check_vector_rule, defvector, parallel_jacobian
from tapesplit.errors import RuleError, WrongRuleError
from tapesplit.recording.primitives import singular_values, symmetric_eigenvalues, symmetric_eigenvectors
from tapesplit.recording.tape import TapeEntry
from tapesplit.recording.tracing import tracing_lock
from tapesplit.rules import count_edges, find_rule, local, loop_adjoint, loop_tangent, registry
from tapesplit.sweeps.scalar_sweep import ScalarSweep


def test_scipys_rules_come_with_its_modules_and_not_before():
    code = (
        "import sys, tapesplit\n"
        "from tapesplit.rules import registered\n"
        "late = ('autograd.scipy', 'scipy.stats', 'scipy.signal')\n"
        "assert not [m for m in sys.modules if m.startswith(late)]\n"
        "before = len(registered())\n"
        "from autograd.scipy import special\n"
        "assert tapesplit.rules.find_rule(special.erf) is not None\n"
        "assert len(registered()) > before\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)  # noqa: S603 (our own code)


def test_another_thread_loads_rules_at_the_same_time(monkeypatch, cube):
    """It imports and forgets what this thread has yet to import."""
    imported = []

    def import_and_lose_the_race(module):
        imported.append(module)
        registry._pending.clear()

    monkeypatch.setattr(registry, "_pending", {"sys": "rules of sys", "os": "rules of os"})
    monkeypatch.setattr(registry, "import_module", import_and_lose_the_race)
    assert find_rule(cube) is None
    assert imported[0] == "rules of sys"


def test_a_users_rule_is_not_replaced_by_one_of_ours_that_is_loaded_later(monkeypatch, cube):
    before = registry.rules_defined()

    def import_ours(module):
        registry.elementwise(cube, 0)

    monkeypatch.setattr(registry, "_pending", {"sys": "rules of sys"})
    monkeypatch.setattr(registry, "import_module", import_ours)
    defvector(cube, 3)
    find_rule(tripled)
    assert find_rule(cube).partials == (3.0,)
    assert registry.rules_defined() == before + 1


def test_wrapped_primitives_are_told_from_primitives_with_attributes_of_others(cube):
    functools.update_wrapper(cube, np.sin)
    defvector(cube, lambda ans, x: 3 * x**2)

    @functools.wraps(cube)
    def wrapper(x):
        return cube(x)

    with pytest.raises(TypeError, match="needs an autograd primitive"):
        defvector(wrapper, lambda ans, x: 3 * x**2)


@primitive
def tripled(x):
    return 3.0 * x


def test_another_thread_has_loaded_rules_a_moment_ago(monkeypatch):
    class JustLoaded(dict):
        def items(self):
            registry.elementwise(anp.sinh, lambda ans, x: np.cosh(x))
            return ()

    monkeypatch.delitem(registry._rules, anp.sinh)
    monkeypatch.setattr(registry, "_pending", JustLoaded())
    assert find_rule(anp.sinh) is not None


@pytest.mark.parametrize(
    ("primitive", "args", "argnums", "edges"),
    [
        (anp.sin, (np.ones((2, 3)),), (0,), 6),
        (anp.multiply, (np.ones((2, 3)), np.ones(3)), (0, 1), 12),
        (anp.multiply, (np.ones((2, 3)), 2.0), (0,), 6),
        (WHERE, (np.ones(3, bool), np.ones(3), 0.0), (1,), 3),
        (anp.dot, (np.ones((2, 3)), np.ones((3, 4))), (0, 1), 48),
        (anp.dot, (np.ones((2, 3)), np.ones((3, 4))), (1,), 24),
        (anp.matmul, (np.ones((5, 2, 3)), np.ones((3, 4))), (1,), 120),
        (anp.matmul, (np.ones(3), np.ones(3)), (0,), 3),
        (anp.tensordot, (np.ones((2, 3, 4)), np.ones((3, 4, 5))), (0,), 120),
        (anp.einsum, ("ij,jk->ik", np.ones((2, 3)), np.ones((3, 4))), (1, 2), 48),
        (anp.outer, (np.ones(2), np.ones(3)), (0, 1), 12),
        (anp.kron, (np.ones((2, 2)), np.ones((3, 1))), (0,), 12),
        (anp.cross, (np.ones(3), np.ones(3)), (0,), 6),
        (anp.sum, (np.ones((2, 3)),), (0,), 6),
        (anp.cumsum, (np.ones(5),), (0,), 5),
        (anp.trace, (np.ones((3, 4)),), (0,), 3),
        (anp.diff, (np.ones(5),), (0,), 8),
        (anp.sort, (np.ones(5),), (0,), 0),
        (anp.reshape, (np.ones((2, 3)), 6), (0,), 0),
        (anp.pad, (np.ones(3), 1, "constant"), (0,), 0),
        (anp.conj, (np.ones(3),), (0,), 0),
        (anp.linalg.solve, (np.eye(3), np.ones((3, 2))), (1,), 18),
        (anp.linalg.solve, (np.eye(3), np.ones((3, 2))), (0, 1), 54),
        (anp.linalg.inv, (np.eye(3),), (0,), 54),
        (anp.linalg.det, (np.eye(3),), (0,), 9),
        (anp.linalg.eigh, (np.eye(3),), (0,), 108),
        (symmetric_eigenvalues, (np.ones((5, 3, 3)), "L", np.ones((5, 3, 3))), (0,), 135),
        (symmetric_eigenvectors, (np.ones((5, 3, 3)), "L", np.ones((5, 3))), (0,), 540),
        (singular_values, (np.ones((5, 4, 3)), np.ones((5, 4, 3)), np.ones((5, 3, 3))), (0,), 180),
        (anp.fft.fft, (np.ones(8),), (0,), 32),
    ],
)
def test_edges(primitive, args, argnums, edges):
    assert count_edges(primitive, primitive(*args), args, argnums, {}) == edges


def test_svd_and_triangular_edges_grow_with_the_matrix():
    from autograd.scipy.linalg import solve_triangular

    wide = np.ones((2, 5))
    assert count_edges(anp.linalg.svd, anp.linalg.svd(wide), (wide,), (0,), {}) == 8 * 10 * 2
    args = (np.eye(4), np.ones(4))
    assert count_edges(solve_triangular, args[1], args, (1,), {}) == 8


def test_signal_edges_are_products_of_elements():
    from autograd.scipy.signal import convolve

    args = (np.ones(5), np.ones(3))
    assert count_edges(convolve, convolve(*args), args, (0, 1), {}) == 30


def test_unregistered_primitive_counts_every_pair():
    args = (anp.sin, np.ones(1), np.ones(5))
    assert count_edges(odeint, np.ones((5, 1)), args, (1, 2), {}) == 30


@pytest.fixture
def cube():
    @primitive
    def cube(x):
        return x**3

    defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    return cube


def test_user_primitive_takes_the_loop_until_it_has_a_rule(cube):
    x = np.array([1.0, 2.0])
    assert find_rule(cube) is None
    before = parallel_jacobian(cube)(x)
    defvector(cube, lambda ans, x: 3 * x**2)
    assert find_rule(cube) is not None
    check_vector_rule(cube, x)
    np.testing.assert_array_equal(parallel_jacobian(cube)(x), before)


def test_user_rule_with_bulk_functions(cube):
    defvector(
        cube,
        tangents=[lambda T, ans, x: T * 3 * x**2],
        adjoints=[lambda A, ans, x: A * 3 * x**2],
    )
    check_vector_rule(cube, np.ones((2, 3)))


@pytest.mark.parametrize("kind", ["partial", "tangent", "adjoint", "shape"])
def test_check_names_what_is_wrong(cube, kind):
    right = {"tangents": [lambda T, ans, x: T * 3 * x**2], "adjoints": [lambda A, ans, x: A * 3 * x**2]}
    if kind == "partial":
        defvector(cube, lambda ans, x: 2 * x**2)
        message = r"the tangent rule of cube\(<float64 \(3,\)>\) by argument 0 differs .* instead of"
    elif kind == "tangent":
        defvector(cube, **{**right, "tangents": [lambda T, ans, x: T]})
        message = "the tangent rule of cube"
    elif kind == "adjoint":
        defvector(cube, **{**right, "adjoints": [lambda A, ans, x: A]})
        message = "the adjoint rule of cube"
    else:
        defvector(cube, **{**right, "adjoints": [lambda A, ans, x: A.sum(axis=1)]})
        message = r"its shape is \(\d+,\) instead of"
    with pytest.raises(AssertionError, match=message):
        check_vector_rule(cube, np.full(3, 2.0))


@pytest.mark.parametrize("mode", ["tangent", "adjoint"])
def test_a_rule_that_returns_a_wrong_shape_is_named(cube, mode):
    defvector(cube, **{f"{mode}s": (lambda D, ans, x: D[0],)})
    message = (
        rf"the {mode} rule of cube by argument 0 is wrong: for 2 directions its shape is \(2,\) instead of "
        r"\(2, 2\)"
    )
    with pytest.raises(RuleError, match=message):
        parallel_jacobian(lambda x: cube(cube(x)), method=mode)(np.array([1.0, 2.0]))
    message = rf"the {mode} rule of cube by argument 0 .* its shape is .*cube\(<float64 \(2,\)>\)"
    with pytest.raises(AssertionError, match=message):
        check_vector_rule(cube, np.array([1.0, 2.0]))


def test_a_rule_that_returns_no_array_is_named(cube):
    defvector(cube, adjoints=[lambda A, ans, x: [1.0, 2.0]])
    with pytest.raises(RuleError, match=r"adjoint rule of cube .* it is \[1.0, 2.0\] instead of \(2, 2\)"):
        parallel_jacobian(cube, method="adjoint")(np.array([1.0, 2.0]))


@pytest.mark.parametrize("shape", [(3,), (2, 2), (1, 1), (0,)])
def test_a_partial_derivative_of_a_wrong_shape_is_named(cube, shape):
    defvector(cube, lambda ans, x: np.ones(shape))
    message = rf"a partial derivative of cube\(.*\) by argument 0 has shape {re.escape(str(shape))}"
    with pytest.raises(AssertionError, match=message):
        check_vector_rule(cube, np.array([1.0, 2.0]))


def test_partial_derivatives_may_broadcast(cube):
    defvector(cube, lambda ans, x: 3 * x[:1] ** 2)
    check_vector_rule(cube, np.full((2, 2), 3.0))


def _by_type(x, n):
    return n if isinstance(n, int) else 1 / n


FORMULAS_OF_PYTHON = {
    "type": (2, _by_type),
    "identity": (True, lambda x, flag: 1.5 if flag is True else -1.0),
    "truth": (True, lambda x, flag: 1.5 if flag else -1.0),
    "range": (3, lambda x, n: sum(0.25 for _ in range(n))),
    "sign": (2.0, lambda x, n: 1.5 if x > 0 else 0.5),
    "math": (2.0, lambda x, n: math.cos(x)),
    "size": (2.0, lambda x, n: 1.0 / np.size(x) ** 2),
}
"""Constants with formulas that gathered operands would break, or change."""


@pytest.mark.parametrize("name", FORMULAS_OF_PYTHON)
@pytest.mark.parametrize("form", ["systems", "arrays"])
def test_users_formulas_get_the_arguments_of_each_call(monkeypatch, name, form):
    constant, slope = FORMULAS_OF_PYTHON[name]

    @primitive
    def sloped(x, n):
        return x * slope(x, n)

    defvjp(sloped, lambda ans, x, n: lambda g: g * slope(x, n))
    defvector(sloped, lambda ans, x, n: slope(x, n))
    check_vector_rule(sloped, np.float64(0.5), constant)

    def fun(x):
        a, b, c = x[0], x[1], x[2]
        for _ in range(8):
            a, b, c = sloped(b, constant) * 0.9 + a * 0.1, sloped(c, constant) * 0.5, a * b
        return anp.array([a, b, c])

    x = np.array([0.3, -0.7, 1.1])
    forced(monkeypatch, form)
    jac = parallel_jacobian(fun)
    np.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-12, atol=1e-14)
    assert isinstance(jac.plan(x).sweeps[0], ScalarSweep) == (form == "systems")


def test_check_finds_a_wrong_scalar_form(monkeypatch):
    monkeypatch.setitem(local._structures, anp.sum, local._reduction(lambda count: 2.0))
    with pytest.raises(AssertionError, match=r"the scalar form of the rule of sum\(.*\) .* differs"):
        check_vector_rule(anp.sum, np.ones((2, 3)), axis=1)


def test_check_of_nothing_is_an_error(cube):
    with pytest.raises(ValueError, match=r"nothing to check: cube has no vector rule"):
        check_vector_rule(cube, np.ones(3))
    with pytest.raises(ValueError, match=r"but for none of these arguments"):
        check_vector_rule(anp.sin, np.array([1, 2]))


def test_check_jacobian_finds_a_wrong_rule(cube):
    check_jacobian(lambda x: cube(x) * x[0], np.array([1.0, 2.0]))
    defvector(cube, lambda ans, x: x)
    with pytest.raises(AssertionError, match=r"differs from autograd\.jacobian"):
        check_jacobian(cube, np.array([2.0]))


def test_check_jacobian_finds_a_wrong_derivative():
    @primitive
    def liar(x):
        return 2.0 * x

    defvjp(liar, lambda ans, x: lambda g: g)
    with pytest.raises(AssertionError, match="differs from central differences"):
        check_jacobian(liar, np.ones(2))


@pytest.mark.parametrize("argnum", [0, 1, 2, -1, -2, -3])
def test_check_jacobian_by_any_argument(argnum):
    def fun(x, y, z):
        return x * y[0] + anp.sin(z) * y[1] * x[0]

    check_jacobian(fun, np.array([0.5, 2.0]), np.array([3.0, -1.0]), np.array([0.1, 0.2]), argnum=argnum)


def test_check_jacobian_by_several_arguments(cube):
    x, y = np.array([0.5, 2.0]), np.array([3.0, -1.0])
    check_jacobian(lambda x, y: x * cube(y), x, y, argnum=(0, 1))
    defvector(cube, lambda ans, x: x)
    with pytest.raises(AssertionError, match=r"differs from autograd\.jacobian"):
        check_jacobian(lambda x, y: x * cube(y), x, y, argnum=(0, 1))
    check_jacobian(lambda x, y: x * cube(y), x, y, argnum=(0,))


def test_check_jacobian_of_a_primitive_without_vjp():
    @primitive
    def halved(x):
        return 0.5 * x

    defvector(halved, 0.5)
    check_jacobian(lambda x: halved(x) * x, np.ones(2))
    defvector(halved, lambda ans, x: 0.6 + 0.0 * x)
    with pytest.raises(AssertionError, match="differs from central differences"):
        check_jacobian(lambda x: halved(x) * x, np.ones(2))


def test_check_jacobian_passes_the_errors_of_rules_on():
    @primitive
    def unfinished(x):
        return 0.5 * x

    def gradient(g):
        raise NotImplementedError("to be written")

    defvjp(unfinished, lambda ans, x: gradient)
    defvector(unfinished, 0.5)
    with pytest.raises(NotImplementedError, match="to be written"):
        check_jacobian(unfinished, np.ones(2))


def test_a_primitive_may_return_a_list_of_numbers():
    doubled = primitive(lambda x: [2.0 * t for t in x])
    defvjp(doubled, lambda ans, x: lambda g: 2.0 * np.array(g))
    defvector(doubled, lambda ans, x: np.full(len(x), 2.0))
    x = np.array([1.0, 2.0, 3.0])
    for method in ("tangent", "adjoint"):
        found = parallel_jacobian(lambda x: doubled(x)[1] * x, method=method)(x)
        np.testing.assert_allclose(found, jacobian(lambda x: doubled(x)[1] * x)(x))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
@pytest.mark.parametrize("fun", [anp.sin, lambda x: 0.5 * x * anp.sum(x / 3), lambda x: x * x])
def test_check_jacobian_of_integers(fun, dtype):
    check_jacobian(fun, np.array([1, 0, 1], dtype))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_check_jacobian_allows_for_the_precision(dtype):
    weights = (np.random.default_rng(0).standard_normal((30, 30)) / 6).astype(dtype)

    def network(x):
        for _ in range(4):
            x = anp.tanh(weights @ x)
        return x

    check_jacobian(network, np.linspace(0, 1, 30, dtype=dtype))


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_check_jacobian_takes_steps_that_suit_the_point(size):
    check_jacobian(lambda x: x * (x / size), np.array([size, 2 * size]))


def test_check_jacobian_takes_no_step_of_zero():
    """Differences of integers cut off would be zero, like this derivative."""

    @primitive
    def liar(x):
        return 2.0 * x

    defvjp(liar, lambda ans, x: lambda g: 0.0 * g)
    with pytest.raises(AssertionError, match="differs from central differences"):
        check_jacobian(liar, np.array([1, 2]))


@pytest.mark.parametrize(("args", "argnum"), [((1.0,), 1), ((1.0,), -2)])
def test_check_jacobian_says_which_argument_is_missing(args, argnum):
    message = rf"argnum is {argnum}, but sin was called with {len(args)} positional argument"
    with pytest.raises(IndexError, match=message):
        check_jacobian(anp.sin, *args, argnum=argnum)


def test_defvector_needs_exactly_one_kind_of_rule(cube):
    with pytest.raises(TypeError, match="got neither"):
        defvector(cube)
    with pytest.raises(TypeError, match="got both"):
        defvector(cube, 1, tangents=[lambda T, ans, x: T])
    for kind in ("tangents", "adjoints"):
        with pytest.raises(TypeError, match="got both"):
            defvector(cube, 1, **{kind: (None,)})
        with pytest.raises(TypeError, match="got neither"):
            defvector(cube, **{kind: (None,)})


def _with_edges(cube, edges):
    rules = [lambda T, ans, x: 3.0 * x**2 * T]
    defvector(cube, tangents=rules, adjoints=rules, edges=edges)


@pytest.mark.parametrize(
    "wrong", [-3, -(10**6), 2.5, math.nan, math.inf, 1j, "a", None, 10**30, (3,), np.array([1, 2])]
)
def test_edges_must_be_a_count(cube, wrong):
    _with_edges(cube, lambda ans, args, argnums, kwargs: wrong)
    x = np.ones(3)
    message = rf"edges= of cube has returned {re.escape(repr(wrong))[:50]}.*instead of an integer from 0 to"
    with pytest.raises(RuleError, match=message) as caught:
        parallel_jacobian(lambda x: cube(anp.sin(x)))(x)
    assert "in the edges of cube, entry 2 of the tape" in caught.value.__notes__
    with pytest.raises(WrongRuleError, match=message + r".*found by the call cube\(<float64 \(3,\)>\) by"):
        check_vector_rule(cube, x)


@pytest.mark.parametrize("right", [0, 5, np.int64(5), np.uint8(5), np.prod(()), True])
def test_edges_may_be_any_integer(cube, right):
    _with_edges(cube, lambda ans, args, argnums, kwargs: right)
    x = np.ones(3)
    check_vector_rule(cube, x)
    assert count_edges(cube, x**3, (x,), (0,), {}) == int(right)


def test_errors_of_edges_name_the_call(cube):
    _with_edges(cube, lambda ans, args, argnums, kwargs: 1 // 0)
    for check in (parallel_jacobian(cube), lambda x: check_vector_rule(cube, x)):
        with pytest.raises(ZeroDivisionError) as caught:
            check(np.ones(3))
        assert caught.value.__notes__ == ["in the edges of cube, entry 1 of the tape"]


@pytest.mark.parametrize(
    ("partials", "options", "message"),
    [
        (
            (),
            {"tangents": len},
            r"defvector\(cube, tangents=…\) needs a sequence .* got <built-in function len>",
        ),
        ((), {"adjoints": len}, r"adjoints=…\) needs a sequence .*; write \[f\] for one argument"),
        ((), {"adjoints": 3}, r"adjoints=…\) needs a sequence .* got 3; write"),
        ((), {"tangents": [None, 3]}, r"tangents=…\) needs a function or None .* got 3 for argument 1"),
        (("x",), {}, r"takes a function, a number or None for each argument, but got 'x'"),
        (([len],), {}, r"a number or None for each argument, but got \[<built-in function len>\]"),
        ((), {"tangents": [len], "edges": 5}, r"edges=…\) needs a function, but got 5"),
    ],
)
def test_defvector_refuses_what_can_be_no_rule(cube, partials, options, message):
    with pytest.raises(TypeError, match=message):
        defvector(cube, *partials, **options)
    assert find_rule(cube) is None


@pytest.mark.parametrize("function", [np.sin, lambda x: x, 3, "sin"])
def test_defvector_refuses_what_is_no_primitive(function):
    with pytest.raises(TypeError, match=r"needs an autograd primitive, .* decorate it with autograd.extend"):
        defvector(function, 1)


@pytest.mark.parametrize("factor", [0, 1, -1, 2, 2.5, np.float32(0.5), np.int64(3)])
def test_partial_derivatives_may_be_numbers(factor):
    @primitive
    def scaled(x, y):
        return factor * x + y

    defvjp(scaled, lambda ans, x, y: lambda g: factor * g, lambda ans, x, y: lambda g: g)
    defvector(scaled, factor, 1)
    x = np.array([0.3, 0.5])
    check_vector_rule(scaled, x, x + 1.0)
    check_jacobian(lambda x: scaled(anp.sin(scaled(x, x)), x) * x[0], x)
    check_jacobian(lambda x: anp.array([scaled(x[0], x[1]) * x[1], scaled(x[1], 2.0)]), x)


def test_argument_without_derivative():
    order, x = np.array([1.5]), np.array([0.5])
    with pytest.raises(
        RuleError, match=r"no derivative of gammainc with respect to argument 0 .*; keep it constant"
    ):
        parallel_jacobian(lambda n: special.gammainc(n, x))(order)
    with tracing_lock(), pytest.raises(NotImplementedError):  # autograd leaves its trace level raised
        autograd.jacobian(lambda df: t.cdf(x, df))(order)
    with pytest.raises(RuleError):
        parallel_jacobian(lambda df: t.cdf(x, df))(order)


def test_primitive_without_any_rule():
    @primitive
    def opaque(x):
        return x + 1.0

    with pytest.raises(RuleError, match="autograd has no VJP for 'opaque'"):
        parallel_jacobian(opaque)(np.ones(2))


def _entry(primitive, *args):
    return TapeEntry(primitive, (0,), (0,), args, {}, primitive(*args))


def _not_implemented(g, ans, x):
    raise NotImplementedError("not for this form")


@pytest.mark.parametrize("jvp", [None, _not_implemented])
def test_loop_takes_the_vjp_where_there_is_no_jvp_for_an_argument(cube, jvp):
    defjvp(cube, jvp, argnums=[1 if jvp is None else 0])
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(loop_tangent(np.eye(2), _entry(cube, x), 0), np.diag(3 * x**2))


@pytest.mark.parametrize("error", [NameError("mine"), KeyError("mine"), NotImplementedError("mine")])
def test_a_broken_jvp_matters_only_without_a_vjp(cube, error):
    def broken(g, ans, x):
        raise error

    @primitive
    def opaque(x):
        return x + 1.0

    x = np.array([1.0, 2.0])
    for function in (cube, opaque):
        defjvp(function, broken)
    np.testing.assert_array_equal(loop_tangent(np.eye(2), _entry(cube, x), 0), np.diag(3 * x**2))
    with pytest.raises(RuleError, match="no VJP for 'opaque'") as caught:
        loop_tangent(np.eye(2), _entry(opaque, x), 0)
    assert caught.value.__cause__ is error


def test_loop_carries_complex_directions():
    """A VJP alone gives both parts of the derivative of a complex value."""
    x = np.array([0.3, -0.2, 0.5, 0.1])
    F = np.fft.fft(np.eye(4))
    entry = _entry(anp.fft.fft, x)
    np.testing.assert_allclose(loop_tangent(np.eye(4), entry, 0), F, atol=1e-14)
    np.testing.assert_allclose(loop_adjoint(1j * np.eye(4), entry)[0], np.real(1j * F), atol=1e-14)
    z = x + 1j
    np.testing.assert_allclose(loop_tangent(1j * np.eye(4), _entry(anp.fft.fft, z), 0), 1j * F, atol=1e-14)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    ("fun", "kind"),
    [
        (lambda square, x: square(x[0]) * x, float),
        (lambda square, x: anp.real(square(x[0] * (1.0 + 2.0j)) * x), complex),
        (lambda square, x: anp.real(square(x[1] + 0j)) * x, complex),
    ],
)
def test_directions_of_numbers_are_numbers(fun, kind, method):
    """Rules may ask for the type, which is that in autograd's own sweeps."""
    found = []

    @primitive
    def square(x):
        return x**2

    def carried(g, ans, x):
        found.append(g)
        return 2.0 * x * g

    def vjp(ans, x):
        return lambda g: carried(g, ans, x)

    defvjp(square, vjp)
    defjvp(square, carried)
    x = np.array([0.5, 1.0])
    expected = jacobian(lambda x: fun(square, x))(x)
    assert found
    np.testing.assert_allclose(parallel_jacobian(lambda x: fun(square, x), method=method)(x), expected)
    assert all(isinstance(g, kind) for g in found)


@pytest.mark.parametrize("kind", [tuple, list])
def test_directions_of_numbers_in_containers_are_numbers(kind):
    found = []

    @primitive
    def parts(x):
        return kind([2.0 * x[0], 3.0 * x])

    def vjp(g):
        found.append(g[0])
        return np.array([2.0 * g[0], 0.0]) + 3.0 * g[1]

    defvjp(parts, lambda ans, x: vjp)
    jac = parallel_jacobian(lambda x: parts(x)[0] * parts(x)[1])
    np.testing.assert_allclose(jac(np.array([0.5, 1.0])), [[6.0, 0.0], [6.0, 3.0]])
    assert all(isinstance(g, float) for g in found)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: anp.abs(anp.exp(1j * x) * x),
        lambda x: anp.real(anp.exp(1j * anp.abs(x + 1j * x**2))),
        lambda x: anp.imag(anp.exp(1j * anp.real(anp.exp(1j * x) * (1 + 2j)))),
        lambda x: anp.imag(anp.fft.fft(x)),
        lambda x: anp.real(anp.conj(x * 1j + x) * (x + 2j)),
        lambda x: anp.angle(x + 1j * x**2),
        lambda x: anp.abs(anp.fft.ifft(anp.fft.fft(x) * anp.array([1.0, 2j, 3.0]))),
        lambda x: anp.real(anp.linalg.solve(anp.outer(x, x) + 1j * anp.eye(3), x + 0j)),
    ],
)
def test_complex_intermediates_of_a_real_function(fun):
    check_jacobian(fun, np.array([0.3, -1.2, 2.0]))


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: 1.0 / x, np.array([0.0, 1.0])),
        (anp.sqrt, np.array([0.0, 4.0])),
        (anp.log, np.array([0.0, 1.0])),
        (lambda x: x / 0.0, np.array([1.0, 2.0])),
        (anp.linalg.norm, np.zeros(3)),
        (lambda x: 1.0 / x, 0.0),
        (anp.log, 0.0),
    ],
)
def test_singular_points_give_what_autograd_gives(fun, x):
    with np.errstate(all="ignore"):
        expected = autograd.jacobian(fun)(x)
        for method in ("tangent", "adjoint"):
            found = parallel_jacobian(fun, method=method)(x)
            diagonal = np.eye(np.size(x), dtype=bool) if np.ndim(expected) == 2 else ...
            np.testing.assert_array_equal(found[diagonal], expected[diagonal])


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_product_with_zeros_is_right_where_autograd_has_nan(method):
    def products(x):
        return anp.concatenate([anp.prod(anp.reshape(x, (2, 3)), axis=0), anp.reshape(anp.prod(x[1:]), (1,))])

    x = np.array([0.0, 2.0, 0.0, 5.0, 0.0, 0.0])
    expected = np.zeros((4, 6))
    expected[0, 0], expected[1, 4] = 5.0, 2.0
    np.testing.assert_array_equal(parallel_jacobian(products, method=method)(x), expected)


def test_gradients_of_gradients():
    """The tape of a gradient holds autograd's helpers: untake, sums of adjoints, adjoints of products."""
    A = np.random.default_rng(0).normal(size=(4, 3))

    def energy(x):
        return (
            anp.sum(anp.tanh(anp.dot(A, x)) ** 2) + anp.tensordot(x, x, 1) * x[0] + anp.sum(x[[0, 0, 2]] ** 3)
        )

    x = np.array([0.3, -0.2, 0.5])
    for method in ("auto", "tangent", "adjoint"):
        hessian = parallel_jacobian(autograd.grad(energy), method=method)(x)
        np.testing.assert_allclose(hessian, autograd.hessian(energy)(x), atol=1e-12)


@pytest.mark.parametrize(
    "fun", [anp.exp, lambda x: 2.0 * x / 3.0, lambda x: x[::-1] * x, anp.abs, lambda x: anp.dot(x, x) * x]
)
def test_single_precision_stays(fun):
    x = np.array([0.5, 2.0, -1.0], dtype=np.float32)
    expected = autograd.jacobian(fun)(x)
    assert expected.dtype == np.float32
    for method in ("tangent", "adjoint"):
        assert parallel_jacobian(fun, method=method)(x).dtype == np.float32


@pytest.mark.parametrize(
    ("fun", "error"),
    [
        (lambda x: anp.pad(x, 1, "edge"), AssertionError),
        (lambda x: anp.pad(x, 1, "mean"), AssertionError),
        (lambda x: anp.real(anp.fft.rfftn(anp.outer(x, x), None, (0, 0))), NotImplementedError),
        (lambda x: anp.real(anp.fft.irfftn(anp.outer(x, x), None, (0, 0))), NotImplementedError),
        (lambda x: anp.linalg.svd(anp.outer(x, x))[1], NotImplementedError),
        (lambda x: anp.linalg.norm(anp.outer(x, x), 1), NotImplementedError),
        (lambda x: anp.linalg.norm(x, 0.5), NotImplementedError),
        (lambda x: anp.sort(anp.outer(x, x)), NotImplementedError),
        (lambda x: dirichlet.logpdf(np.array([0.2, 0.3]), anp.append(x, x[0])), ValueError),
        (lambda x: multivariate_normal.logpdf(x, np.zeros(2)), TypeError),
        (lambda x: multivariate_normal.logpdf(x, x, anp.outer(x, x) + np.eye(2), True), NotImplementedError),
    ],
)
def test_forms_without_a_rule_raise_what_autograd_raises(fun, error):
    with pytest.raises(error) as ours:
        parallel_jacobian(fun, method="adjoint")(np.array([1.0, 2.0]))
    with tracing_lock(), pytest.raises(error) as theirs:
        autograd.jacobian(fun)(np.array([1.0, 2.0]))
    assert str(ours.value) == str(theirs.value)


def test_tangents_of_half_a_spectrum_with_an_axis_twice_raise():
    with pytest.raises(NotImplementedError, match="repeated axes"):
        parallel_jacobian(lambda x: anp.fft.irfftn(anp.outer(x, x), axes=(0, 0)), method="tangent")(
            np.ones(4)
        )


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_multiple_eigenvalues_have_derivatives_where_no_eigenvector_is_used(method):
    def eigenvalues(x):
        return anp.linalg.eigh(anp.eye(3) * x[0] + anp.diag(anp.array([0.0, 0.0, 1.0])) * x[1])[0]

    x = np.array([2.0, 3.0])
    jacobian = parallel_jacobian(eigenvalues, method=method)(x)
    np.testing.assert_allclose(jacobian, [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]], atol=1e-14)
    np.testing.assert_allclose(jacobian, autograd.jacobian(eigenvalues)(x), atol=1e-14)


def test_eigenvalues_keep_their_derivatives_beside_eigenvectors_that_have_none():
    def decomposed(x):
        values, vectors = anp.linalg.eigh(anp.eye(3) * x[0] + anp.diag(anp.array([0.0, 0.0, 1.0])) * x[1])
        return anp.concatenate([values, vectors[0]])

    x = np.array([2.0, 3.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        jacobian = parallel_jacobian(decomposed, method="adjoint")(x)
        np.testing.assert_allclose(jacobian, autograd.jacobian(decomposed)(x), atol=1e-14)
    assert np.isfinite(jacobian[:3]).all()
    assert np.isnan(jacobian[3:]).any()


def test_multiple_eigenvalues_in_a_stack():
    def decomposed(x):
        values, vectors = anp.linalg.eigh(anp.array([anp.eye(2) * x[0], anp.diag(x)]))
        return anp.concatenate([values, 0.0 * vectors[0], vectors[1]])

    x = np.array([2.0, 3.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        jacobian = parallel_jacobian(decomposed, method="adjoint")(x)
        np.testing.assert_allclose(jacobian, autograd.jacobian(decomposed)(x), atol=1e-14)
    assert np.isfinite(jacobian[:4]).all()


def test_multiple_singular_values_in_a_stack():
    def decomposed(x):
        u, s, vt = anp.linalg.svd(anp.array([anp.eye(2) * x[0], anp.diag(x)]), full_matrices=False)
        return anp.concatenate([s, u[1], vt[1]])

    x = np.array([2.0, 3.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        jacobian = parallel_jacobian(decomposed, method="adjoint")(x)
        expected = autograd.jacobian(decomposed)(x)  # NaN by the first matrix
    np.testing.assert_allclose(jacobian[:2], [[[1.0, 0.0]] * 2, [[0.0, 1.0], [1.0, 0.0]]], atol=1e-14)
    np.testing.assert_allclose(jacobian[2:], expected[2:], atol=1e-14)


def test_singular_values_of_a_multiple_one():
    def values(x):
        return anp.linalg.svd(anp.eye(2) * x[0], full_matrices=False)[1]

    for method in ("tangent", "adjoint"):
        np.testing.assert_allclose(parallel_jacobian(values, method=method)(np.ones(1)), np.ones((2, 1)))


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_derivatives_of_singular_values_beside_zero(method):
    def largest(x):
        return anp.linalg.svd(anp.outer(x, np.array([1.0, 0.0])), full_matrices=False)[1][:1]

    x = np.array([3.0, 0.0, 4.0])
    found = parallel_jacobian(largest, method=method)(x)
    np.testing.assert_allclose(found, x[None] / 5.0, rtol=1e-14)


@pytest.mark.parametrize("factor", [0, 2])
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("shape", [(2, 2), (1, 2, 2)])
def test_singular_vectors_of_a_singular_matrix(method, factor, shape):
    def vectors(x):
        singular = anp.reshape(anp.outer(x, x) - np.diag([1.0, 4.0]), shape)
        return anp.linalg.svd(singular, full_matrices=False)[factor]

    x = np.array([1.0, 0.0])
    found = parallel_jacobian(vectors, method=method)(x)
    np.testing.assert_allclose(found, autograd.jacobian(vectors)(x), atol=1e-14)


@pytest.mark.parametrize("kind", [int, np.float32, np.dtype(np.int64), "float32"])
def test_types_are_constant_arguments(kind):
    x = np.array([0.5, 1.75])
    jacobian = parallel_jacobian(lambda x: (x * 3.0).astype(kind) * x)
    np.testing.assert_array_equal(jacobian(x), autograd.jacobian(lambda x: (x * 3.0).astype(kind) * x)(x))
    jacobian(x)
    assert jacobian.cache_info().hits == 1


SMALL = 1e-10


@primitive
def small_sine(x):
    return SMALL * np.sin(x)


defvjp(small_sine, lambda ans, x: lambda g: g * SMALL * np.cos(x))


@pytest.mark.parametrize("check", [check_jacobian, check_vector_rule])
def test_checks_of_functions_with_small_values(check):
    x = np.array([0.3, 1.2])
    defvector(small_sine, lambda ans, x: SMALL * np.cos(x))
    check(small_sine, x)
    defvector(small_sine, lambda ans, x: 1.1 * SMALL * np.cos(x))
    with pytest.raises(AssertionError, match=r"small_sine.* instead of"):
        check(small_sine, x)


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: 1e3 * anp.sum(anp.exp(x) / anp.sum(anp.exp(x))), np.linspace(-1.0, 1.0, 7)),
        (lambda x: x - x, np.ones(3)),
        (lambda x: anp.exp(x) * anp.exp(-x) * x - x, np.array([0.3, 0.7, 0.2])),
        (lambda x: x**3, np.zeros(2)),
        (lambda x: x**3, np.array([1e-4])),
        (lambda x: anp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), np.ones(4)),
        (lambda x: anp.array([10 * (x[1] - x[0] ** 2), 1 - x[0]]) ** 2, np.ones(2) + 1e-7),
    ],
)
def test_check_jacobian_passes_derivatives_that_are_nearly_zero(fun, x):
    check_jacobian(fun, x)


def test_check_vector_rule_allows_for_crude_differences():
    @primitive
    def third(x):
        return x**3

    defvector(third, lambda ans, x: 3 * x**2)
    for x in (0.0, 1e-5, 1e-3):
        check_vector_rule(third, np.array([x, x]))


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_check_jacobian_finds_a_wrong_derivative_of_a_number(cube, offset):
    """Also beside values that are large."""
    defvjp(cube, lambda ans, x: lambda g: g * 2 * x**2)
    with pytest.raises(AssertionError, match=r"differs from central differences.* the first at \(\): "):
        check_jacobian(lambda x: anp.sum(cube(x)), np.array([0.5, 0.4]))
    with pytest.raises(AssertionError, match="differs from central differences"):
        check_jacobian(lambda x: anp.concatenate([anp.array([offset]), cube(x)]), np.array([0.5, 0.4]))


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_eigenvalues_that_differ_by_hardly_anything_have_derivatives(method):
    """One by their difference is infinite."""
    x = np.diag([1e-310, 2e-310, 1.0])
    found = parallel_jacobian(lambda x: anp.linalg.eigh(x)[0], method=method)(x)
    np.testing.assert_array_equal(found, [np.diag(row) for row in np.eye(3)])

    def total(x):
        values, vectors = anp.linalg.eigh(x)
        return anp.sum(values) + 0.0 * anp.sum(vectors)

    if method == "adjoint":  # as in autograd: directions of vectors that are zero go nowhere
        np.testing.assert_array_equal(parallel_jacobian(total, method=method)(x), np.eye(3))


def test_a_logarithm_of_a_determinant_of_a_constant_given_by_name():
    fun = lambda x: anp.linalg.slogdet(a=np.eye(2) * 3.0)[1] + x  # noqa: E731
    np.testing.assert_array_equal(parallel_jacobian(fun)(np.ones(2)), np.eye(2))
