"""Every vector rule equals the loop over autograd's own rule, on every line of the table."""

import autograd.numpy as anp
import numpy as np
import pytest
import scipy
from autograd import jacobian
from autograd.misc.fixed_points import fixed_point
from autograd.scipy.integrate import odeint
from autograd.scipy.linalg import solve_banded, solve_sylvester, solve_triangular
from autograd.scipy.signal import convolve
from autograd.scipy.stats import multivariate_normal
from rule_cases import BEYOND, CASES
from rule_cases_scipy import CASES as SCIPY_CASES

import tapesplit.rules.elementwise
from tapesplit import check_vector_rule, parallel_jacobian
from tapesplit.rules import IndexMap, contraction, find_rule, quadratic_forms, registered, scipy_signal
from tapesplit.rules.contraction import contract


def _name(primitive):
    return getattr(primitive, "__name__", "primitive").replace("_", "")


def _is_a_librarys(primitive):
    """Tell primitives of the libraries from those that other tests register."""
    module = getattr(getattr(primitive, "fun", primitive), "__module__", None) or "numpy"
    return module.partition(".")[0] in {"numpy", "scipy", "autograd"}


REGISTERED = tuple(filter(_is_a_librarys, registered()))


def _table(lines):
    return [pytest.param(*line, id=f"{_name(line[0])}-{number}") for number, line in enumerate(lines)]


@pytest.mark.parametrize(("primitive", "args", "kwargs"), _table([*CASES, *SCIPY_CASES]))
def test_rule_equals_the_loop_over_autograds_rule(primitive, args, kwargs):
    check_vector_rule(primitive, *args, **kwargs)


@pytest.mark.parametrize(("primitive", "args", "kwargs"), _table(BEYOND))
def test_rule_is_right_where_autograds_is_not(primitive, args, kwargs, monkeypatch):
    def refuse(*_):
        raise NotImplementedError

    monkeypatch.setattr("tapesplit.check_rule.loop_tangent", refuse)
    check_vector_rule(primitive, *args, **kwargs)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 4.0, 0.0, -0.5, np.nan])
@pytest.mark.parametrize("shapes", [((4, 3), (4, 1)), ((4, 3), (4, 3)), ((1,), (3,)), ((2, 0), (2, 1))])
def test_equal_exponents_in_an_array_are_one_number(shapes, exponent):
    """Systems gather the constants of many calls: what is fast for each alone is fast for all together."""
    x, y = np.random.default_rng(0).random(shapes[0]) + 0.5, np.full(shapes[1], exponent)
    found = tapesplit.rules.elementwise._power_base(x**y, x, y)
    np.testing.assert_allclose(*np.broadcast_arrays(found, y * x ** (y - 1), y)[:2], rtol=1e-14)


def test_equal_exponents_in_an_array_take_no_powers():
    x = np.random.default_rng(0).random((4, 100)) + 0.5
    found = tapesplit.rules.elementwise._power_base(x**4, x, np.full((4, 1), 4.0))
    np.testing.assert_array_equal(found, 4.0 * (x * x * x))


def test_every_registered_primitive_is_in_the_table():
    with_tests_of_their_own = ((odeint,), (fixed_point,))
    tested = {id(line[0]) for line in (*CASES, *SCIPY_CASES, *with_tests_of_their_own)}
    assert [_name(p) for p in REGISTERED if id(p) not in tested] == []


def test_only_primitives_are_registered():
    """A rule for a function that merely calls a primitive would never be found on a tape."""
    assert [_name(p) for p in REGISTERED if not getattr(p, "_is_autograd_primitive", False)] == []


_LONG_ANGLES = {
    "usual": np.linspace(-9.0, 9.0, 999),
    "zero_and_tiny": np.array([0.0, -0.0, 5e-324, -1e-300, 1e-9] * 100),
    "at_zeros_of_the_cosine": np.pi / 2 * np.arange(-301.0, 301.0, 2.0),
    "large": np.logspace(3, 15, 400),
}


@pytest.mark.parametrize("vector_tan", [True, False])
@pytest.mark.parametrize("name", _LONG_ANGLES)
def test_derivatives_of_sines_and_cosines_of_long_arrays_are_precise(monkeypatch, name, vector_tan):
    monkeypatch.setattr(tapesplit.rules.elementwise, "_has_vector_tan", lambda: vector_tan)
    x = _LONG_ANGLES[name]
    for primitive, numpys, slope in ((anp.sin, np.sin, np.cos), (anp.cos, np.cos, lambda x: -np.sin(x))):
        partial = find_rule(primitive).partials[0](numpys(x), x)
        expected = slope(x)
        assert np.all(np.abs(partial - expected) <= 3 * np.spacing(np.abs(expected)))


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_banded_systems_with_several_right_sides(method):
    bands, right = np.array([[0.0, 1.0, 2.0], [5.0, 6.0, 7.0], [1.0, 2.0, 0.0]]), np.arange(6.0).reshape(3, 2)
    matrix = np.diag(bands[0, 1:], 1) + np.diag(bands[1]) + np.diag(bands[2, :-1], -1)
    got = parallel_jacobian(lambda b: solve_banded((1, 1), bands, b), method=method)(right)
    np.testing.assert_allclose(got, np.einsum("ij,kl->ikjl", np.linalg.inv(matrix), np.eye(2)), atol=1e-15)


@pytest.mark.skipif(np.lib.NumpyVersion(scipy.__version__) < "1.17.0", reason="takes one system only")
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("stack", [1, 2, 3])
def test_stacks_of_systems(stack, method):
    """A stack may be as long as a system is wide, and would pass for a matrix of right-hand sides."""
    upper, bands = np.array([[1.0, 2.0], [0.0, 4.0]]), np.array([[0.0, 1.0], [5.0, 6.0], [1.0, 0.0]])
    b = np.arange(4.0 * stack).reshape(stack, 2, 2)
    for solve in (
        lambda b: solve_triangular(upper, b),
        lambda b: solve_banded((1, 1), bands, b),
        lambda b: solve_sylvester(upper, upper, b),
    ):
        got = parallel_jacobian(solve, method=method)(b)
        np.testing.assert_allclose(got, jacobian(solve)(b), rtol=1e-12, atol=1e-15)


@pytest.mark.skipif(np.lib.NumpyVersion(scipy.__version__) < "1.17.0", reason="takes one system only")
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("trans", ["N", "T"])
def test_matrices_of_stacks_of_systems(trans, method):
    """autograd's derivative is wrong here: it is that of each system."""
    jac = parallel_jacobian(lambda a, b: solve_triangular(a, b, trans=trans), (0, 1), method=method)
    upper, b = np.array([[1.0, 2.0], [0.0, 4.0]]), np.arange(12.0).reshape(3, 2, 2)
    by_matrix, by_sides = jac(upper, b)
    for number, sides in enumerate(b):
        expected = jac(upper, sides)
        np.testing.assert_allclose(by_matrix[number], expected[0], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(by_sides[number, :, :, number], expected[1], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize(("n", "r"), [(2, 2), (3, 2), (2, 3), (3, 1)])
def test_right_hand_sides_that_look_like_stacks_of_their_matrices(n, r, method):
    random = np.random.default_rng(3)
    A, b = random.normal(size=(n, r, n, n)) + 5.0 * np.eye(n), random.normal(size=(n, r))

    def solved(t):
        return anp.linalg.solve(A * t, b * t**2)

    got = parallel_jacobian(solved, method=method)(np.array(1.3))
    np.testing.assert_allclose(got, np.linalg.solve(A, b), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
def test_large_convolutions_copy_no_windows(monkeypatch, mode):
    monkeypatch.setattr(scipy_signal, "_MOST_IN_WINDOWS", 0)
    monkeypatch.setattr(scipy_signal, "_BYTES_AT_ONCE", 500)
    random = np.random.default_rng(1)
    check_vector_rule(convolve, random.normal(size=6), random.normal(size=3), mode=mode)
    x, kernel = random.normal(size=(2, 5, 4)), random.normal(size=(2, 3, 2))
    check_vector_rule(convolve, x, kernel, axes=([1, 2], [1, 2]), dot_axes=([0], [0]), mode=mode)
    check_vector_rule(convolve, x, kernel, axes=([1, 2], [1, 2]), mode=mode)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("lengths", [(2, 2), (3, 2)])
@pytest.mark.parametrize("dot_axes", [[[1, 2], [2, 1]], [[2, 1], [1, 2]]])
def test_convolutions_with_summed_axes_in_any_order(lengths, dot_axes, method):
    """autograd's own derivative is wrong here; a linear function is its derivative times its argument."""
    random = np.random.default_rng(2)
    A, B = random.normal(size=(7, *lengths)), random.normal(size=(5, *lengths[::-1]))

    def by_first(A):
        return convolve(A, B, axes=[[0], [0]], dot_axes=dot_axes)

    def by_second(B):
        return convolve(A, B, axes=[[0], [0]], dot_axes=dot_axes)

    for fun, x in ((by_first, A), (by_second, B)):
        derivative = parallel_jacobian(fun, method=method)(x)
        np.testing.assert_allclose(np.tensordot(derivative, x, 3), fun(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
def test_convolutions_with_long_operands(mode):
    random = np.random.default_rng(3)
    check_vector_rule(convolve, random.normal(size=110), random.normal(size=100), mode=mode)


def test_orders_of_sums_over_indices_are_looked_for_once(monkeypatch):
    searched = []
    search = np.einsum_path

    def counted(*args, **kwargs):
        searched.append(args[0])
        return search(*args, **kwargs)

    monkeypatch.setattr(np, "einsum_path", counted)
    contraction._steps.cache_clear()
    A, B, C = np.random.default_rng(4).normal(size=(3, 9, 9))
    jac = parallel_jacobian(lambda x: anp.ravel(anp.einsum("ij,jk,kl->il", anp.reshape(x, (9, 9)), B, C)))
    x = A.ravel()
    np.testing.assert_allclose(jac(x), np.kron(np.eye(9), (B @ C).T), rtol=1e-12, atol=1e-12)
    assert searched
    searched.clear()
    jac(x)
    assert not searched


@pytest.mark.parametrize(
    ("terms", "shapes", "result"),
    [
        (("aij", "iec", "jed"), ((9, 36, 36), (36, 25, 4), (36, 25, 4)), "aecd"),
        (("aij", "qi", "qj"), ((12, 12, 12), (500, 12), (500, 12)), "aq"),
        (("aqi", "qj", "qk"), ((12, 500, 12), (500, 12), (500, 12)), "aijk"),
    ],
)
def test_sums_go_pair_by_pair_though_results_between_are_larger(terms, shapes, result):
    steps = contraction._steps(terms, shapes, result)
    assert [len(step.places) for step in steps] == [2, 2]


@pytest.mark.parametrize(
    ("terms", "shapes", "place"),
    [
        (("ti", "dti"), ((300, 8), (4, 300, 8)), 0),
        (("dti", "ti"), ((4, 300, 8), (300, 8)), 1),
        (("ti", "dti"), ((900, 2), (4, 900, 2)), None),
        (("it", "dit"), ((8, 300), (4, 8, 300)), None),
        (("ti", "ti"), ((900, 8), (900, 8)), None),
        (("ati", "dati"), ((5, 300, 8), (4, 5, 300, 8)), None),
    ],
)
def test_stacks_of_products_with_vectors_whose_elements_lie_apart_are_one_loop(
    monkeypatch, terms, shapes, place
):
    random = np.random.default_rng(5)
    operands = [random.normal(size=shape) for shape in shapes]
    result = "".join(sorted({*terms[0], *terms[1]} - {"t"}))
    (step,) = contraction._steps(terms, shapes, result)
    assert step.scattered == place
    looped = []
    einsum = np.einsum
    monkeypatch.setattr(np, "einsum", lambda *args, **kwargs: looped.append(1) or einsum(*args, **kwargs))
    for given in (operands, [np.asfortranarray(x) for x in operands], [x.astype(complex) for x in operands]):
        found = contract(terms, given, result)
        np.testing.assert_allclose(found, einsum(",".join(terms) + "->" + result, *given), rtol=1e-10)
    assert len(looped) == (place is not None)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(20, 30), (30, 40)]),
        ("ij,jk->ki", [(20, 30), (30, 40)]),
        ("zij,zjk->zik", [(5, 20, 30), (5, 30, 7)]),
        ("izj,jkz->kzi", [(20, 5, 30), (30, 7, 5)]),
        ("aij,ei,ej->ae", [(9, 20, 20), (30, 20), (30, 20)]),
        ("ijk,ia,jb,kc->abc", [(8, 7, 6), (8, 5), (7, 4), (6, 3)]),
        ("iij,jk->ik", [(20, 20, 9), (9, 30)]),
        ("ij,kj->k", [(20, 30), (40, 30)]),
        ("ti,dti->di", [(300, 6), (4, 300, 6)]),
        ("dti,ti->di", [(4, 900, 2), (900, 2)]),
        ("ij,jk,->ik", [(20, 30), (30, 40), ()]),
        ("i,ij,jk->", [(20,), (20, 30), (30, 40)]),
        ("ij,jk,kl->il", [(20, 0), (0, 40), (40, 50)]),
    ],
)
@pytest.mark.parametrize("dtype", ["d", "f", "D"])
def test_contraction_equals_numpys(subscripts, shapes, dtype):
    random = np.random.default_rng(5)
    operands = [random.normal(size=shape).astype(dtype) for shape in shapes]
    terms, _, output = subscripts.partition("->")
    found = contract(tuple(terms.split(",")), operands, output)
    expected = np.einsum(subscripts, *operands, optimize=False)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    largest = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=largest * (1e-4 if dtype == "f" else 1e-12))


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,j,jk->ik", [(12, 1), (30,), (30, 20)]),
        ("zij,zj->zi", [(1, 4, 3), (5, 1)]),
        ("ii,ij->j", [(3, 3), (1, 4)]),
        ("...i,...i", [(4, 1, 3), (1, 2, 3)]),
    ],
)
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_sums_over_indices_whose_axes_broadcast(subscripts, shapes, method):
    """autograd knows no repeated indices; a linear function is its derivative times its argument."""
    random = np.random.default_rng(5)
    operands = [random.normal(size=shape) for shape in shapes]
    for place, x in enumerate(operands):
        before, after = operands[:place], operands[place + 1 :]
        jac = parallel_jacobian(lambda x: anp.einsum(subscripts, *before, x, *after), method=method)  # noqa: B023
        expected = np.einsum(subscripts, *operands)
        np.testing.assert_allclose(np.tensordot(jac(x), x, x.ndim), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", ["e", "f", "d", "g", "F", "D", "G"])
@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize(
    "sources",
    [[2, -1, 0, 2, 2, -1, 1], [3, 3, 3], [-1, -1], [], [3, 1, 0, 2], [1, -1, 0], [1, 2, 3], [0, 0, 2, 3]],
)
def test_index_maps_scatter_and_add_like_numpy(dtype, count, sources):
    random, sources = np.random.default_rng(3), np.array(sources, np.intp)
    moves = IndexMap.of_sources(sources, 4)
    Y = random.integers(-9, 9, (count, sources.size)).astype(dtype)
    expected = np.zeros((count, 4), dtype)
    np.add.at(expected, (slice(None), sources[sources >= 0]), Y[:, sources >= 0])
    found = moves.scatter(Y)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype
    moves.add(Y, expected)
    np.testing.assert_array_equal(expected, 2 * found)


@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value)")
@pytest.mark.parametrize("x", [0.0, -0.0])
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_infinite_derivatives_of_roots_have_autograds_sign(x, method):
    for fun in (anp.sqrt, lambda x: anp.sqrt(-1.0 * x)):
        found = parallel_jacobian(fun, method=method)(np.full(3, x))
        np.testing.assert_array_equal(np.diag(found), np.diag(jacobian(fun)(np.full(3, x))))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 5, 2.0, 3.0, 4.5, -1, -2.0, True])
@pytest.mark.parametrize(
    "x", [np.array([-1.5, 0.25, 3.0]), np.array([2, 3], np.int64), np.float32([0.5, 2.0])]
)
def test_powers_with_plain_exponents(exponent, x):
    fun = lambda x: (x * 1.0 if x.dtype.kind == "i" else x) ** exponent  # noqa: E731
    with np.errstate(invalid="ignore"):
        found, want = np.diag(parallel_jacobian(fun)(x)), np.diag(jacobian(fun)(x))
    np.testing.assert_allclose(found, want, rtol=1e-6 if x.dtype == np.float32 else 1e-14)
    assert found.dtype == want.dtype


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_a_number_has_no_gradient_along_axes(method):
    fun = lambda x: anp.concatenate([x, anp.gradient(anp.sum(x))])  # noqa: E731
    np.testing.assert_array_equal(parallel_jacobian(fun, method=method)(np.ones(2)), np.eye(2))


@pytest.mark.filterwarnings("ignore:(divide|invalid)")
def test_reductions_are_sums_by_their_weights():
    """Array sweeps take these in place of the rule where elementwise operations are summed."""
    checked = set()
    for primitive, args, kwargs in (*CASES, *SCIPY_CASES):
        rule = find_rule(primitive)
        weigh = getattr(rule, "weigh", None)
        if weigh is None or any(np.iscomplexobj(arg) for arg in args):
            continue
        ans = primitive(*args, **kwargs)
        found = weigh(ans, *args, **kwargs)
        if found is None:
            continue
        shape = np.shape(args[found.argnum])
        directions = np.random.default_rng(0).standard_normal((3, *shape))
        want = rule.tangents[found.argnum](directions, ans, *args, **kwargs)
        summed = (directions * found.weights).sum(axis=tuple(axis + 1 for axis in found.axes))
        np.testing.assert_allclose(summed.reshape(want.shape), want, rtol=1e-6, atol=1e-12)
        checked.add(primitive)
    assert {anp.sum, anp.max, anp.prod, anp.matmul, anp.dot} <= checked
    assert len(checked) >= 10


@pytest.mark.parametrize("together", [0, 2**14])
@pytest.mark.parametrize("pairs", [1, 40, 2**16])
@pytest.mark.parametrize(("k", "n", "d"), [(7, 5, 2), (2, 5, 3), (0, 4, 2), (3, 1, 1), (9, 30, 4)])
def test_quadratic_forms_of_many_matrices(k, n, d, pairs, together, monkeypatch):
    monkeypatch.setattr(quadratic_forms, "_TOGETHER", together)
    monkeypatch.setattr(quadratic_forms, "_MOST_PAIRS", pairs)
    random = np.random.default_rng(4)
    T, A, y = random.random((k, d, d)), random.random((k, n)), random.random((n, d))
    forms, sums = quadratic_forms.quadratic_forms(T, y), quadratic_forms.sums_of_squares(A, y)
    np.testing.assert_allclose(forms, np.einsum("ni,kij,nj->kn", y, T, y), rtol=1e-13)
    np.testing.assert_allclose(sums, np.einsum("kn,ni,nj->kij", A, y, y), rtol=1e-13)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("density", [multivariate_normal.logpdf, multivariate_normal.pdf])
def test_densities_of_many_points(density, method):
    random = np.random.default_rng(5)
    points, mean, factor = random.random((300, 6)), random.random(6), np.eye(6) + random.random((6, 6)) / 9.0
    cov = factor @ factor.T
    found = parallel_jacobian(density, (1, 2), method=method)(points, mean, cov)
    for jac, argnum in zip(found, (1, 2), strict=True):
        want = jacobian(density, argnum)(points, mean, cov)
        np.testing.assert_allclose(jac, want, rtol=0, atol=1e-12 * np.abs(want).max())
