"""Calls that NumPy and autograd take although few people write them: each gives autograd's derivatives."""

import math
import warnings
from array import array
from typing import NamedTuple

import autograd.numpy as np
import autograd.scipy.linalg as scipy_linalg
import numpy as onp
import pytest
from autograd import grad, jacobian
from autograd.builtins import dict as dict_of_boxes
from autograd.builtins import list as list_of_boxes
from autograd.builtins import tuple as tuple_of_boxes
from autograd.extend import defjvp, defvjp, primitive
from autograd.misc.flatten import flatten
from autograd.scipy.special import logsumexp
from scipy.special import spherical_jn

from tapesplit import RuleError, defvector, parallel_jacobian, record
from tapesplit.recording.tracing import tracing_lock

MODES = pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
PAIR, TRIPLE = onp.array([1.0, 2.0]), onp.array([1.0, 2.0, 3.0])
MATRIX = [[1.0, 2.0], [3.0, 4.0]]
WEIGHTS = onp.arange(6.0).reshape(2, 3)


def differences(fun, x):
    """Central differences, for calls on which autograd fails or errs."""
    columns = [(fun(x + step) - fun(x - step)) / 2e-6 for step in 1e-6 * onp.eye(x.size)]
    return onp.stack(columns, axis=-1)


def assert_right(fun, x, method, want):
    jac = parallel_jacobian(fun, method=method)
    for _ in range(2):
        onp.testing.assert_allclose(jac(x), want, rtol=1e-7, atol=1e-7)


@MODES
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x * [2.0] + x * [3.0],
        lambda x: 2 * (x * [3]),
        lambda x: x * (2, 3) + x * [4.0, 5.0] - x * [2.0],
        lambda x: -(x * [2.0, 3.0]) * [4.0, 5.0],
        lambda x: 1.0 - x * [2.0, 3.0],
        lambda x: [2.0, 3.0] / x + np.arctan2([1, 2], x),
        lambda x: np.where([True, False], x, [1, 2]) * np.maximum(x, [1.5, 1.5]),
        lambda x: MATRIX @ x,
        lambda x: np.matmul(np.matmul(MATRIX, x), MATRIX),
        lambda x: np.linalg.solve(MATRIX, x),
        lambda x: scipy_linalg.solve_triangular(MATRIX, x),
        lambda x: np.einsum("ij,j", MATRIX, x) * np.kron([1], x) + np.tensordot(MATRIX, x, axes=([1], [0])),
        lambda x: np.outer(x, [1, 2]) @ [1.0, 3.0],
        lambda x: x ** [2, 3],
        lambda x: np.dot(MATRIX, x),
        lambda x: np.inner(MATRIX, x),
        lambda x: [1, 2] ** x,
        lambda x: np.einsum(MATRIX, [0, 1], x, [1]),
    ],
)
def test_lists_as_operands(fun, method):
    assert_right(fun, PAIR, method, differences(fun, PAIR))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: 1j * x[0] * 1j,
        lambda x: 2j ** x[0],
        lambda x: 1j / (x[0] - 1.0),
        lambda x: (2j) ** (1e6 * x[0]),
        lambda x: 1j - (1j + x[0]),
    ],
)
def test_complex_numbers_before_numbers_of_an_array(fun):
    """Python's complex numbers take NumPy's floats for their own; results must be NumPy's nevertheless."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        tape = record(lambda x: np.real(fun(x)) * x, PAIR)
        expected = jacobian(lambda x: np.real(fun(x)) * x)(PAIR)
        found = parallel_jacobian(lambda x: np.real(fun(x)) * x)(PAIR)
    assert all(type(entry.value) is not complex for entry in map(tape.__getitem__, range(len(tape))))
    assert onp.isfinite(found).tolist() == onp.isfinite(expected).tolist()
    onp.testing.assert_allclose(found[onp.isfinite(found)], expected[onp.isfinite(expected)], atol=1e-12)


@MODES
@pytest.mark.parametrize("fun", [onp.cumsum, lambda x: onp.clip(x, 1.5, 2.5), onp.sum, onp.max])
def test_functions_of_plain_numpy_that_call_methods(fun, method):
    """autograd takes the first two for constants."""
    assert_right(lambda x: fun(x) * x[0], TRIPLE, method, differences(lambda x: fun(x) * x[0], TRIPLE))


@MODES
@pytest.mark.parametrize("real", [np.abs, np.real, np.imag])
@pytest.mark.parametrize("join", [np.concatenate, np.hstack, np.stack, np.array])
def test_joins_of_complex_and_real_values(join, real, method):
    def fun(x):
        z = WEIGHTS @ np.exp(1j * x)
        return np.ravel(np.imag((1 + 2j) * join([z, real(z)])))

    assert_right(fun, TRIPLE, method, differences(fun, TRIPLE))


@MODES
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: logsumexp(x, 0, onp.array([1.0, 5.0])) * x,
        lambda x: logsumexp(x, 0, onp.array([1.0, 5.0]), True) * x,
        lambda x: np.linspace(x[0], x[1], num=3),
        lambda x: np.linspace(x[0], x[1], 7),
        lambda x: np.array(x, dtype=bool) * 2.0,
        lambda x: np.array(np.tile(x, 50), dtype=bool) * 2.0,
        lambda x: x[: onp.array(1)] ** 2,
        lambda x: x[onp.int64(0) : onp.int64(2)] ** 2,
        lambda x: x[memoryview(onp.array([0, 1]))] ** 2,  # type: ignore[index]
    ],
)
def test_unusual_arguments(fun, method):
    assert_right(fun, PAIR, method, jacobian(fun)(PAIR))


@MODES
def test_products_of_arrays_with_more_axes_than_there_are_letters(method):
    weights = onp.random.default_rng(0).standard_normal((50, 80, *(1,) * 25))

    def fun(x):
        rows = np.tensordot(np.reshape(np.exp(x), (20, 50, *(1,) * 24)), weights, ([1], [0]))
        return np.ravel(np.sum(rows**2, axis=0))

    x = onp.linspace(-1.0, 1.0, 1000)
    assert_right(fun, x, method, jacobian(fun)(x))


@MODES
@pytest.mark.parametrize("axis", [(1, 0, 3), (0, 3, 2), (-1, 0), (2, 0, 1), (3, 1)])
@pytest.mark.parametrize("reduce", [np.std, np.max, np.prod, np.sum, np.var])
def test_axes_in_any_order(reduce, axis, method):
    weights = onp.random.default_rng(1).standard_normal((2, 3, 2, 3))

    def fun(x):
        return reduce(weights * np.tanh(x[:, None]), axis=axis)

    x = onp.array([0.3, 0.5])
    assert_right(fun, x, method, jacobian(fun)(x))


@MODES
def test_the_mean_of_no_elements(method):
    def fun(x):
        with warnings.catch_warnings(action="ignore"):
            return np.append(x, np.mean(x[x > 10]))

    assert_right(fun, PAIR, method, onp.eye(3, 2))


def test_a_range_without_its_end_is_refused_as_by_autograd():
    with pytest.raises(TypeError):
        parallel_jacobian(lambda x: np.linspace(x[0], x[1], 3, False))(PAIR)


@MODES
def test_einsum_with_all_letters(method):
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    shape = (1,) * 25 + (2,)
    other = onp.arange(2.0, 4.0).reshape((1,) * 25 + (2,))

    def fun(x):
        return np.ravel(np.einsum(f"{letters[:26]},{letters[26:]}->z", np.reshape(x, shape), other))

    assert_right(fun, PAIR, method, jacobian(fun)(PAIR))


@MODES
def test_rules_that_return_a_buffer_of_their_own(method):
    buffer = onp.zeros(3)

    @primitive
    def doubled(x):
        return 2 * x

    defvjp(doubled, lambda ans, x: lambda g: onp.multiply(g, 2, out=buffer))
    assert_right(lambda x: doubled(np.sin(x)), TRIPLE, method, onp.diag(2 * onp.cos(TRIPLE)))


@MODES
@pytest.mark.parametrize("zero", [0.0, onp.zeros(1), onp.zeros(())])
def test_rules_that_return_one_zero_for_all_elements(zero, method):
    @primitive
    def scaled(x, factor):
        return x * factor

    defvjp(scaled, lambda ans, x, factor: lambda g: g * factor, lambda ans, x, factor: lambda g: zero)
    assert_right(lambda x: scaled(x, np.floor(x) + 2 * x), TRIPLE, method, onp.diag([3.0, 6.0, 9.0]))


@MODES
def test_rules_that_return_nothing_are_refused(method):
    @primitive
    def scaled(x, factor):
        return x * factor

    defvjp(scaled, lambda ans, x, factor: lambda g: g * factor, lambda ans, x, factor: lambda g: None)
    with pytest.raises(RuleError, match="returned None"):
        parallel_jacobian(lambda x: np.array([scaled(v, 2 * v) for v in x]), method=method)(TRIPLE)


@MODES
@pytest.mark.parametrize("config", [(2.0, 3.0), [2.0, 3.0]])
def test_lists_that_are_no_operands_reach_the_rules_of_users_as_they_are(config, method):
    @primitive
    def monic(x, lower):
        return onp.polyval([1.0, *lower], x)

    def derivative(ans, x, lower):
        assert type(lower) is type(config)
        return onp.polyval(onp.polyder([1.0, *lower]), x)

    defvjp(monic, lambda ans, x, lower: lambda g: g * derivative(ans, x, lower))
    defvector(monic, derivative)
    assert_right(
        lambda x: monic(np.sin(x), config),
        TRIPLE,
        method,
        jacobian(lambda x: monic(np.sin(x), config))(TRIPLE),
    )


@pytest.mark.parametrize(
    "config",
    [(slice(0, 1),), [slice(0, 1)], {"s": slice(0, 1)}, slice(0.5, 2.0), slice("a", "b"), slice([1], None)],
)
def test_slices_as_configuration(config):
    @primitive
    def doubled(x, _config, _more=None):
        return 2 * x

    defvjp(doubled, lambda ans, x, *_: lambda g: 2 * g)
    onp.testing.assert_array_equal(parallel_jacobian(lambda x: doubled(x, config))(PAIR), 2 * onp.eye(2))
    defvector(doubled, 2.0)
    for call in (lambda x: doubled(x, config), lambda x: doubled(x, config, 1)):
        onp.testing.assert_array_equal(parallel_jacobian(call)(PAIR), 2 * onp.eye(2))


@MODES
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("reduce", [np.sum, np.max, np.prod])
def test_reductions_of_a_number(reduce, axis, method):
    onp.testing.assert_allclose(
        parallel_jacobian(lambda x: reduce(np.sin(x), axis=axis), method=method)(0.5), onp.cos(0.5)
    )


def test_parts_of_a_split_are_what_autograd_makes_of_them():
    def joined(x):
        parts = np.split(x, 2)
        longer, before = parts + [x], [x[:1]] + parts  # noqa: RUF005 (lists in brackets work in any case)
        last = parts[1:] + [x[:2]]  # noqa: RUF005
        return np.concatenate(longer) * np.sum(np.concatenate(before)) + np.sum(np.concatenate(last))

    x = onp.arange(1.0, 5.0)
    onp.testing.assert_allclose(parallel_jacobian(joined)(x), jacobian(joined)(x))

    def replaced(x):
        parts = np.split(x, 2)
        parts[0] = parts[1]
        return parts[0]

    with pytest.raises(TypeError, match="does not support item assignment"):
        parallel_jacobian(replaced)(x)


@pytest.mark.parametrize(
    "places", [1, 2, 3, [1], (1, 2), [2, 2], [3, 1], [-1], [9], [], 0, onp.array([1, 3]), "1"]
)
@pytest.mark.parametrize("name", ["split", "array_split", "hsplit", "vsplit", "dsplit"])
@pytest.mark.parametrize("shape", [(), (6,), (7, 6), (6, 7), (3, 4, 6)])
def test_parts_are_those_of_numpy(name, shape, places):
    values = onp.arange(float(math.prod(shape))).reshape(shape)
    for further in ((), *(((axis,) for axis in range(-3, 3)) if name in {"split", "array_split"} else ())):
        try:
            expected = getattr(onp, name)(values, places, *further)
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises
            expected = type(error)

        def parts(x, further=further):
            return flatten(tuple(getattr(np, name)(x, places, *further)))[0] * 2.0

        if isinstance(expected, type):
            with pytest.raises(expected):
                parallel_jacobian(parts)(values)
        else:
            jac = parallel_jacobian(parts)(values)
            size = values.size
            order = onp.concatenate([part.ravel() for part in expected]).astype(int)
            onp.testing.assert_array_equal(jac.reshape(order.size, size), 2.0 * onp.eye(size)[order])


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("swapped", [False, True])
def test_cross_products_with_vectors_in_the_plane(method, swapped):
    x, flat = onp.array([0.3, -0.7, 1.1]), onp.array([2.0, 1.0])
    try:
        onp.cross(x, flat)
    except ValueError:
        pytest.skip("this NumPy has cross products in space only")

    def fun(x):
        return np.cross(flat, x) if swapped else np.cross(x, flat)

    onp.testing.assert_array_equal(parallel_jacobian(fun, method=method)(x), jacobian(fun)(x))


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize(
    ("shape", "other"), [((2,), (2,)), ((3, 2), (2,)), ((2,), (3, 2)), ((3, 2), (3, 2)), ((3, 2), (4, 1, 2))]
)
def test_cross_products_in_the_plane(shape, other, method):
    """autograd's own rules fail for stacks of them."""
    x, y = (onp.random.default_rng(i).standard_normal(s) for i, s in enumerate([shape, other]))
    try:
        onp.cross(x, y)
    except ValueError:
        pytest.skip("this NumPy has cross products in space only")

    def called(x, y):
        return np.cross(x, y) * np.sum(np.cross(np.sin(y), x))

    def by_elements(x, y):
        def cross(a, b):
            return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]

        return cross(x, y) * np.sum(cross(np.sin(y), x))

    found = parallel_jacobian(called, (0, 1), method=method)(x, y)
    for argnum in (0, 1):
        onp.testing.assert_allclose(
            found[argnum], jacobian(by_elements, argnum)(x, y), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("arrange", [np.sort, lambda x: np.partition(x, 0)])
@pytest.mark.parametrize("size", [2, 20, 40])
def test_columns_are_not_sorted_by_autograds_jvp(arrange, size, method):
    column = onp.arange(float(size), 0.0, -1.0)[:, onp.newaxis]
    jac = parallel_jacobian(lambda x, k: np.concatenate([arrange(x)] + [x] * k), method=method)
    for changing in range(10):  # the last ones get no plan
        with pytest.raises(NotImplementedError, match="not implemented for multi-dimensional arrays"):
            jac(column, changing)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_rules_may_return_other_axes_of_length_one(method):
    @primitive
    def ends(x):
        return x[[0, -1]] * 1.0

    defvjp(ends, lambda ans, x: lambda g: (g @ onp.eye(len(x))[[0, -1]])[onp.newaxis])
    x = onp.array([0.5, 2.0, 3.0])
    onp.testing.assert_array_equal(
        parallel_jacobian(lambda x: ends(x * x), method=method)(x), [[1.0, 0.0, 0.0], [0.0, 0.0, 6.0]]
    )


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_jvps_of_another_shape_are_not_taken(method):
    @primitive
    def across(x):
        return 2.0 * x.T

    defvjp(across, lambda ans, x: lambda g: 2.0 * g.T)
    defjvp(across, lambda g, ans, x: 2.0 * g)
    x = onp.arange(45.0).reshape(9, 5)
    got = parallel_jacobian(lambda x: across(3.0 * x), method=method)(x)
    onp.testing.assert_array_equal(got, jacobian(lambda x: across(3.0 * x))(x))


def _padded(x):
    if onp.lib.NumpyVersion(onp.__version__) < "2.2.0":
        pytest.skip("this NumPy takes no dict")
    return np.pad(x, {0: (1, 2)}, "constant")


@pytest.mark.parametrize(
    ("call", "derivative"),
    [
        (lambda x: np.cumsum(np.array(np.dot(x, x)), axis=0), [[4.0, 2.0]]),
        (_padded, [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]),
    ],
)
def test_calls_that_are_swept_without_a_plan(call, derivative):
    jac, x = parallel_jacobian(lambda x, k: np.concatenate([call(x)] + [x] * k)), onp.array([2.0, 1.0])
    for k in range(12):
        onp.testing.assert_array_equal(jac(x, k)[: len(derivative)], derivative)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: np.add(x, 1.0, out),
        lambda x, out: np.subtract(1.0, x, out),
        lambda x, out: np.mod(x, 2.0, out),
        np.negative,
        np.exp,
        lambda x, out: np.multiply(x, x, out),
    ],
)
def test_an_array_for_the_result_is_refused_as_by_autograd(call, method):
    buffer = onp.empty(3)

    def fun(x):
        return np.sin(call(x, buffer)) + np.exp(call(2.0 * x, buffer))

    with tracing_lock(), pytest.raises(TypeError):
        jacobian(fun)(TRIPLE)
    with pytest.raises(TypeError, match="positional argument"):
        parallel_jacobian(fun, method=method)(TRIPLE)


def test_a_users_rule_for_some_arguments_leaves_the_jvp_of_the_others():
    @primitive
    def scaled(x, y):
        return x * y

    defjvp(scaled, lambda g, ans, x, y: g * y, lambda g, ans, x, y: x * g)
    defvector(scaled, lambda ans, x, y: y)
    got = parallel_jacobian(lambda y: scaled(TRIPLE, y), method="tangent")(TRIPLE)
    onp.testing.assert_array_equal(got, onp.diag(TRIPLE))


def test_forms_that_rules_do_not_cover_raise():
    @primitive
    def turned(x):
        return 2.0 * x

    defvjp(turned, lambda ans, x: lambda g: g[:, :1])
    with pytest.raises(RuleError, match="has returned 2 elements for a value of 6"):
        parallel_jacobian(turned)(onp.ones((2, 3)))
    defvjp(turned, lambda ans, x: lambda g: g.T)
    for method in ("tangent", "adjoint"):
        with pytest.raises(RuleError, match=r"has returned shape \(3, 2\) for a value of shape \(2, 3\)"):
            parallel_jacobian(turned, method=method)(onp.ones((2, 3)))
    with pytest.raises(AttributeError):  # as autograd does
        parallel_jacobian(lambda x: np.cumsum(np.split(x, 2), axis=0), method="tangent")(onp.ones(4))


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.concatenate([x, np.diff(x[:2], 3)]),
        lambda x: np.linalg.solve(np.reshape(x, (2, 2)) + 3.0 * onp.eye(2), b=onp.ones(2)),
        lambda x: flatten(np.split(x, 2))[0],
        lambda x: grad(lambda parts: np.sum(parts[0] * parts[1]))(np.split(x, 2))[0],
        lambda x: grad(lambda p: np.sum(np.sin(p[0]["w"] * p[1]["b"])))([{"w": x}, {"b": x[::-1]}])[0]["w"],
        lambda x: np.tensordot(np.split(x, 2), onp.ones(2), 1),
        lambda x: np.sum(np.pad(list_of_boxes([x[0], x[1] * x[2]]), 1, "constant"), axis=0),
        lambda x: np.kron(np.split(x, 2), x[:2])[1],
        lambda x: np.inner(np.split(x, 2), x[:2]),
        lambda x: np.ravel(np.linalg.inv(np.split(x, 2))) * np.linalg.det(np.split(x, 2)),
        lambda x: np.linalg.solve(onp.array([[2.0, 1.0], [0.0, 1.0]]), np.split(x, 2))[1],
        lambda x: tuple_of_boxes((np.linalg.slogdet(np.reshape(x, (2, 2))), x))[0][1],
        lambda x: tuple_of_boxes((np.linalg.eigh(np.reshape(x, (2, 2))), x))[0][0],
        lambda x: flatten(np.linalg.slogdet(np.reshape(x, (2, 2))))[0],
    ],
)
def test_forms_of_calls_that_are_rare(fun, method):
    x = onp.array([0.5, -0.3, 0.8, 1.2])
    jac = parallel_jacobian(fun, method=method)(x)
    differences = [(fun(x + 1e-6 * e) - fun(x - 1e-6 * e)) / 2e-6 for e in onp.eye(4)]
    onp.testing.assert_allclose(jac, onp.stack(differences, -1), rtol=1e-6, atol=1e-8)


def test_keys_of_dicts_that_compare_to_arrays():
    place = {}
    jac = parallel_jacobian(lambda x: dict_of_boxes({place["key"]: x, "z": 2.0 * x})[place["key"]] * 3.0)
    for place["key"] in (onp.float64(2.5), (1, 2.0), 2.5):
        onp.testing.assert_array_equal(jac(onp.ones(2)), 3.0 * onp.eye(2))


class Shares(NamedTuple):
    a: float
    b: float
    c: float


class Wrapped:
    """An object that NumPy makes an array of, as files of measurements hold them."""

    def __array__(self, dtype=None, copy=None):
        return onp.array([3.0, 4.0, 5.0], dtype)


@MODES
@pytest.mark.parametrize(
    "operand",
    [
        Shares(2.0, 3.0, 4.0),
        array("d", [2.0, 3.0, 4.0]),
        range(1, 4),
        Wrapped(),
        (5.0,),
    ],
    ids=lambda operand: type(operand).__name__,
)
def test_operands_that_numpy_makes_arrays_of(operand, method):
    for fun in (
        lambda x: x * operand * 3,
        lambda x: 2.0 * (x * operand) + x * operand,
        lambda x: operand / x,
        lambda x: np.einsum("i,i,i->i", x, onp.asarray(operand) * onp.ones(3), x),
    ):
        assert_right(fun, TRIPLE, method, jacobian(fun)(TRIPLE))


@MODES
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.einsum("i,i,i->i", x, [1, 2, 3], x),
        lambda x: np.einsum(
            "i,ij,j->", x, [[True, False, False], [False, True, False], [False, False, True]], x
        ),
        lambda x: np.einsum("ij,j->i", np.outer(onp.ones(20), np.tile(x, 20)), list(range(60))),
        lambda x: np.einsum(x, [0], [1, 2, 3], [0], [0]),
    ],
)
def test_einsum_of_lists_of_integers(fun, method):
    assert_right(fun, TRIPLE, method, jacobian(fun)(TRIPLE))


@MODES
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sin(np.split(x, 3)),
        lambda x: np.abs(np.split(x, 2)) * 2.0,
        lambda x: np.exp(np.hsplit(np.outer(x, x), 2)),
        lambda x: np.where(True, np.split(x, 3), 0.0),
        lambda x: np.exp(list_of_boxes([x * x, x + 1.0])),
    ],
)
def test_elementwise_functions_of_lists(fun, method):
    x = onp.arange(1.0, 7.0)
    assert_right(fun, x, method, jacobian(fun)(x))


def test_quotients_keep_the_precision_of_long_doubles():
    x = onp.ones(1, onp.longdouble)
    assert parallel_jacobian(lambda x: x / 3)(x)[0, 0] == onp.longdouble(1) / 3


@MODES
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.array([x, 2.0 * x], order="F")[1],
        lambda x: np.array([x[0], x[1]], ndmin=2)[0] * x,
        lambda x: np.real(np.array([x[0], x[1]], dtype=complex)) * x,
        lambda x: np.concatenate([np.array([x, x]), [[1.0, 2.0]]], axis=-2)[1],
        lambda x: np.concatenate([np.outer(x, x), np.ones((2, 1))], axis=1)[1],
    ],
)
def test_joins_with_options(fun, method):
    assert_right(fun, PAIR, method, differences(lambda x: onp.asarray(fun(x), float), PAIR))


@MODES
def test_lists_that_several_kinds_of_operations_read(method):
    matrix, square = WEIGHTS[:, :2] / 3.0, onp.array(MATRIX) / 5.0

    def summed_up(x):
        pair = tuple_of_boxes((np.sin(x), np.cos(x)))
        return np.sum(np.exp(pair) * np.sum(pair, axis=0))

    def multiplied(x):
        y = np.sin(x)
        alone = tuple_of_boxes((y,))
        both = np.add(alone, 1.0) + np.dot(alone, square)
        return np.dot(matrix, both[0]) * np.dot(matrix, y)

    assert_right(summed_up, TRIPLE, method, differences(summed_up, TRIPLE))
    assert_right(multiplied, PAIR, method, differences(multiplied, PAIR))


@MODES
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((2, 3, 4), (-2, -1)), ((2, 3, 4), (-1, 1)), ((2, 3, 2), (-2, 0)), ((3, 3), (-2, -1)), ((3, 2), (1, 0))],
)
def test_nuclear_norms_along_axes(shape, axis, method):
    def norms(x):
        return np.linalg.norm(np.reshape(x, shape), "nuc", axis=axis)

    x = onp.sin(onp.arange(1.0, onp.prod(shape) + 1) ** 2)
    assert_right(norms, x, method, differences(norms, x))


@MODES
def test_sinc_is_smooth_at_zero_and_next_to_it(method):
    x = onp.array([0.0, 1e-6, -0.01, 0.0636, 0.0637, 0.5])
    slope = -onp.pi * onp.sign(x) * spherical_jn(1, onp.pi * onp.abs(x))
    J = parallel_jacobian(lambda x: np.sinc(np.diag(x)), method=method)(x)
    onp.testing.assert_allclose(onp.einsum("iii->i", J), slope, rtol=1e-13)
    assert onp.count_nonzero(J) == 5
    jac = parallel_jacobian(np.sinc, method=method)
    onp.testing.assert_allclose(jac(x[1]), slope[1], rtol=1e-13)
    assert jac(onp.float32(x)).dtype == onp.float32
