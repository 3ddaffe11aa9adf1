"""The dtype of a Jacobian is the one that autograd's Jacobian has."""

import pickle
import warnings

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from autograd.extend import VSpace, defvjp, primitive
from autograd.misc.flatten import flatten
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_vspaces import ArrayVSpace
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tapesplit import check_jacobian, parallel_jacobian
from tapesplit.recording.tracing import tracing_lock

METHODS = ("auto", "tangent", "adjoint")
FLOATS = (onp.float16, onp.float32, onp.float64, onp.longdouble)
INTEGERS = (onp.int8, onp.int32, onp.int64, onp.uint16, bool)
ANY = (*FLOATS, *INTEGERS)
FOREIGN = onp.dtype(float).newbyteorder()
MATRIX = onp.arange(6).reshape(2, 3)


def by_autograd(fun, *args, argnum=0):
    with onp.errstate(all="ignore"), warnings.catch_warnings(), tracing_lock():
        warnings.simplefilter("ignore")
        return jacobian(fun, argnum)(*args)


def same(got, want, least=None):
    """Compare type, shape, and numbers to the accuracy of the least precise of some types."""
    assert isinstance(got, onp.ndarray)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    kinds = [onp.dtype(d) for d in (want.dtype, *(least or ())) if onp.dtype(d).kind == "f"]
    accuracy = max((float(onp.finfo(d).eps) for d in kinds), default=0.0)
    scale = max(1.0, float(onp.abs(onp.asarray(want, float)).max(initial=0.0)))
    onp.testing.assert_allclose(got, want, rtol=0, atol=50 * accuracy * scale)


def agrees(fun, *args, argnum=0, least=()):
    want = by_autograd(fun, *args, argnum=argnum)
    for method in METHODS:
        jac = parallel_jacobian(fun, argnum, method=method)
        for _ in range(2):  # with a new plan, and with that plan again
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                same(jac(*args), want, (*least, *(onp.asarray(a).dtype for a in args)))


# One input


@pytest.mark.parametrize("dtype", ANY)
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x,
        lambda x: x[::-1],
        lambda x: x[1:] * 2,
        lambda x: x * x + x,
        lambda x: x**2,
        lambda x: x**2.0,
        np.square,
        lambda x: 3 * x,
        lambda x: x * 0.5,
        lambda x: x * onp.float32(0.5),
        lambda x: x * onp.float64(0.5),
        lambda x: x * onp.ones(3),
        lambda x: x + onp.ones(3, onp.float32),
        lambda x: MATRIX @ x,
        lambda x: np.outer(x, x),
        lambda x: np.einsum("i,j->ij", x, x),
        lambda x: np.concatenate([x, 2 * x]),
        lambda x: np.stack([x, x]) * onp.ones((2, 1, 1)),
        lambda x: np.mean(x) * np.split(x, 3)[1],
        lambda x: np.maximum(x, 0.5) + np.concatenate(np.split(x, 3)[::-1]),
        lambda x: np.where(onp.array([True, False, True]), x, 2 * x),
        lambda x: np.sum(x, keepdims=True),
        lambda x: np.mean(x, keepdims=True),
        lambda x: np.max(x, keepdims=True),
        lambda x: np.prod(x, keepdims=True),
        lambda x: np.var(x, keepdims=True),
        np.cumsum,
        np.sin,
        lambda x: np.tanh(x) * x,
        lambda x: np.abs(np.exp(1j * x) + x),
        lambda x: np.real(x * 1j * x),
        lambda x: x.astype(onp.float32),
        lambda x: x.astype(int) * x,
        lambda x: np.array(2 * x, dtype=onp.float32),
        lambda _x: onp.ones(2),
        lambda _x: 3.0,
        lambda x: np.reshape(x, (3, 1)) * onp.ones((1, 2), onp.int16),
    ],
)
def test_one_array(fun, dtype):
    x = onp.array([1, 2, 3]).astype(dtype)
    try:
        by_autograd(fun, x)
    except TypeError:  # some sums of integer and other adjoints
        pytest.skip("autograd has no Jacobian")
    agrees(fun, x, least=[onp.float32] if dtype in FLOATS[1:] else ())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "fun",
    [
        np.sum,
        np.mean,
        np.max,
        np.var,
        np.std,
        lambda x: np.std(x) * x,
        lambda x: np.array([x[0] * x[1], x[2]]),
    ],
)
def test_numbers_from_arrays(fun, dtype):
    agrees(fun, onp.array([0.5, 1.0, 2.0], dtype))


@pytest.mark.parametrize("number", [0.7, *(dtype(0.7) for dtype in FLOATS)])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x,
        lambda x: x * 2,
        lambda x: x * 0.5,
        lambda x: onp.float64(0.5) * x,
        lambda x: x * onp.ones(2, onp.float32),
        lambda x: np.sin(x) * onp.ones(2, onp.float16),
        lambda x: np.array([x, 2.0 * x]),
        lambda _x: onp.zeros(2),
    ],
)
def test_one_number(fun, number):
    agrees(fun, number, least=[onp.float16])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_columns(dtype, shape):
    agrees(lambda x: np.sum(x) * onp.ones(2), onp.zeros(shape, dtype))
    agrees(lambda x: onp.ones(2, onp.float32) + 0 * np.sum(x), onp.zeros(shape, dtype))


@pytest.mark.parametrize("dtype", ANY)
def test_no_columns_of_any_type(dtype):
    agrees(lambda x: np.concatenate([np.ravel(x), onp.ones(2, dtype)]), onp.zeros((2, 0), dtype))


@pytest.mark.parametrize("dtype", ANY)
def test_no_rows(dtype):
    """autograd has no Jacobian here."""
    got = parallel_jacobian(lambda x: x[:0])(onp.ones(3, dtype))
    assert got.shape == (0, 3)
    assert got.dtype == (dtype if dtype in FLOATS else onp.float64)


# Several inputs


@pytest.mark.parametrize(("first", "second"), [(f, s) for f in ANY for s in (onp.float32, onp.float64, int)])
def test_several_arrays(first, second):
    x, y = onp.array([1, 2, 3]).astype(first), onp.array([3, 2, 1]).astype(second)
    for fun in (lambda x, y: x * y, lambda x, _y: 2 * x, lambda x, y: x[0:1] * 2 + 3 * y):
        wants = [by_autograd(fun, x, y, argnum=i) for i in (0, 1)]
        for method in METHODS:
            for got, want in zip(parallel_jacobian(fun, (0, 1), method=method)(x, y), wants, strict=True):
                same(got, want, (first, second))


def test_value_and_jacobian():
    value, got = parallel_jacobian(lambda x: x * x).value_and_jacobian(onp.array([3, 4]))
    assert value.dtype == got.dtype == onp.int64
    onp.testing.assert_array_equal(got, [[6, 0], [0, 8]])


def many_small_steps(x, y):
    z = x * 0.5
    for _ in range(30):
        z = np.sin(z) * 0.5 + x * 0.25
    return z + y if y.dtype.kind == "f" else z


@pytest.mark.parametrize("second", ANY)
@pytest.mark.parametrize("first", ANY)
def test_many_small_steps(first, second):
    """They would be a scalar sweep if all numbers were in double precision."""
    x, y = onp.array([1, 2, 3]).astype(first), onp.array([3, 2, 1]).astype(second)
    wants = [by_autograd(many_small_steps, x, y, argnum=i) for i in (0, 1)]
    for method in METHODS:
        gots = parallel_jacobian(many_small_steps, (0, 1), method=method)(x, y)
        for got, want in zip(gots, wants, strict=True):
            same(got, want, (first, second, onp.float64))


# Integers


@pytest.mark.parametrize("method", METHODS)
def test_large_integers_keep_all_digits(method):
    x = onp.array([2**60 + 1, 3])
    got = parallel_jacobian(lambda x: x * x + x, method=method)(x)
    onp.testing.assert_array_equal(got, [[2**61 + 3, 0], [0, 7]])


@pytest.mark.parametrize(("dtype", "factor"), [(onp.float32, 0.1), (onp.float32, 1e39), (onp.float16, 1e5)])
@pytest.mark.parametrize("scaled", [lambda z, b, k: z * b * k, lambda z, b, k: k * (z / b)])
def test_less_precise_factors_of_complex_numbers_lose_no_digits(dtype, factor, scaled):
    rng = onp.random.default_rng(0)
    weights, x, b = rng.random((3, 300)), rng.random(300), (1 + rng.random(300)).astype(dtype)
    agrees(lambda x: np.real(weights @ scaled(np.exp(1j * x), b, factor)), x)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [onp.int8, onp.uint8, onp.int16])
def test_small_integers_wrap_around_as_autograds(method, dtype):
    x = onp.array([100, 3], dtype)
    for fun in (lambda x: x * x, lambda x: x * x * x, lambda x: np.cumsum(x * x * x), lambda x: x - 2 * x):
        same(parallel_jacobian(fun, method=method)(x), by_autograd(fun, x))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("fun", "want"),
    [
        (lambda x: 0.75 * x.astype(float) ** 2, [[1.5, 0, 0], [0, 3, 0], [0, 0, 4.5]]),
        (lambda x: x[1:] * 0.5 + x[:-1] * 0.25, [[0.25, 0.5, 0], [0, 0.25, 0.5]]),
    ],
)
def test_fractions_are_not_cut_off(fun, want, method):
    """autograd puts the adjoints of casts and of indexing into arrays of integers."""
    x = onp.array([1, 2, 3])
    onp.testing.assert_array_equal(by_autograd(fun, x), onp.trunc(want))
    got = parallel_jacobian(fun, method=method)(x)
    assert got.dtype == onp.float64
    onp.testing.assert_allclose(got, want, rtol=1e-15)
    assert parallel_jacobian(lambda x: fun(x) * 4, method=method)(x).dtype == onp.int64


@pytest.mark.parametrize("method", METHODS)
def test_single_integers(method):
    """autograd does not know them; the derivatives are those of floats."""

    def fun(x):
        return np.array([x[0] * 0.5, x[1] * x[2]])

    x = onp.array([1, 2, 3])
    with pytest.raises(TypeError, match="int64"):
        by_autograd(fun, x)
    got = parallel_jacobian(fun, method=method)(x)
    assert got.dtype == onp.float64
    onp.testing.assert_array_equal(got, by_autograd(fun, x.astype(float)))


# Reuse


@primitive
def scaled(x, factor, offset):
    return x * factor + offset


defvjp(scaled, lambda _ans, _x, factor, _offset: lambda g: g * factor)


def test_plans_tell_kinds_of_floats_apart():
    """Only NumPy's numbers promote the float32 adjoints of the last step."""

    def fun(x, factor):
        return np.array(scaled(x, factor, 1.0), dtype=onp.float32)

    x = onp.array([1.0, 2.0])
    jac = parallel_jacobian(fun)
    for factor in (2.0, onp.float64(2.0), 2.0):
        same(jac(x, factor), by_autograd(fun, x, factor), [onp.float32])
    assert jac(x, 2.0).dtype == onp.float32
    assert jac(x, onp.float64(2.0)).dtype == onp.float64
    assert jac.cache_info().misses == 2


def test_types_are_part_of_the_plan():
    plan = parallel_jacobian(lambda x, y: np.mean(x) * y, (0, 1)).plan(
        onp.ones(3, onp.float32), onp.ones(2, onp.float32)
    )
    assert plan.dtypes == (onp.float64, onp.float32)
    assert pickle.loads(pickle.dumps(plan)).dtypes == plan.dtypes  # noqa: S301 (pickled here)
    assert parallel_jacobian(np.sin).plan(onp.ones(2)).dtypes == (onp.float64,)


def test_rules_run_once_for_types_and_not_again():
    calls = []

    @primitive
    def doubled(x):
        return 2 * x

    def vjp(_ans, _x):
        def pull(g):
            calls.append(g.dtype)
            return 2 * g

        return pull

    defvjp(doubled, vjp)
    jac = parallel_jacobian(doubled, method="adjoint")
    jac(onp.ones(2))
    assert len(calls) == 2  # directions; all values are in double precision
    jac(onp.ones(2, onp.float32))
    before = len(calls)
    jac(onp.ones(2, onp.float32))
    assert len(calls) == before + 2


# Random programs

STEPS = [
    lambda x, _y: x * 0.5,
    lambda x, _y: x * onp.float64(0.5),
    lambda x, _y: onp.float32(0.5) * x,
    lambda x, _y: 3 - 2 * x,
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x - 2 * y,
    lambda x, y: x / (2 + y * y),
    lambda x, _y: np.sin(x),
    lambda x, _y: np.tanh(x) + x,
    lambda x, _y: np.mean(x) * x,
    lambda x, _y: np.std(x + onp.arange(3)) + x,
    lambda x, y: np.maximum(x, y) + np.max(y),
    lambda x, y: np.where(onp.array([True, False, True]), x, y),
    lambda x, y: np.concatenate([x[1:], y[:1]]),
    lambda x, y: np.dot(onp.ones((3, 3), int), x) - y,
    lambda x, _y: np.cumsum(x),
    lambda x, _y: np.real(np.exp(1j * x)),
    lambda x, y: np.abs(x + 1j * y + 0.5),
    lambda x, _y: np.array(x, dtype=onp.float32),
    lambda x, _y: x * onp.array([1, 0, 2], onp.int8),
    lambda x, _y: x + onp.ones(3, onp.float32),
    lambda x, _y: x[onp.array([0, 0, 2])],
    lambda x, _y: x.astype(onp.float32),
    lambda x, _y: x.astype(onp.float64),
    lambda x, y: np.array([x[0] * y[1], x[2], y[0]]),
]


def program(instructions):
    def fun(x, y):
        values = [x, y]
        for step, a, b in instructions:
            values.append(STEPS[step % len(STEPS)](values[a % len(values)], values[b % len(values)]))
        return values[-1]

    return fun


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.sampled_from([onp.float32, onp.float64, onp.longdouble, onp.int32, onp.int64]),
    st.sampled_from([onp.float32, onp.float64, onp.int64]),
    st.lists(st.tuples(*[st.integers(0, 200)] * 3), min_size=1, max_size=7),
    st.sampled_from(METHODS),
)
def test_random_programs(first, second, instructions, method):
    fun = program(instructions)
    x, y = onp.array([1, -1, 2]).astype(first), onp.array([2, 1, -2]).astype(second)
    try:
        want = by_autograd(fun, x, y)
    except (TypeError, ValueError):
        assume(False)
    right = by_autograd(fun, x.astype(float), y) if first in INTEGERS else want
    assume(onp.isfinite(right).all())
    with onp.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jac = parallel_jacobian(fun, method=method)
        for got in (jac(x, y), jac(x, y)):
            if want.dtype.kind == "i" and not onp.array_equal(want, right):  # autograd cuts fractions off
                onp.testing.assert_allclose(got, right, rtol=0, atol=1e-5 * onp.abs(right).max())
            else:
                same(got, right.astype(want.dtype), [onp.float32])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fun", [lambda x: x * x[0], lambda x: x[:2], lambda x: np.exp(x) * x[0]])
def test_numbers_in_the_byte_order_of_other_machines(fun, method):
    agrees(fun, onp.array([3.0, 1.0, 2.0], FOREIGN))
    got = parallel_jacobian(fun, method=method)(onp.array([3.0, 1.0, 2.0], FOREIGN))
    assert got.dtype.isnative


def test_numbers_that_are_integers_give_an_array():
    jac = parallel_jacobian(lambda x: x[...])(onp.array(3))
    assert type(jac) is onp.ndarray
    assert jac == 1


def loop_of_numbers(x):
    a, b, out = x[0], x[1] * 0.5, []
    for k in range(40):
        a, b = a + 0.01 * b * x[k % 3], b - onp.float32(0.01) * np.sin(a) * a
        out.append(np.max(np.array([a, b])) * a)
    return np.array(out) * np.linalg.norm(x)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_loops_in_single_precision_are_scalar_sweeps(method):
    x = onp.array([0.3, 0.7, -0.2])
    jac = parallel_jacobian(loop_of_numbers, method=method)
    for point in (x, 1.1 * x):
        exact, single = jac(point), jac(point.astype(onp.float32))
        assert single.dtype == onp.float32
        onp.testing.assert_allclose(single, exact, rtol=0, atol=1e-5 * onp.abs(exact).max())
    for kept in (x, x.astype(onp.float32)):
        assert [task.form for task in jac.plan(kept).tasks] == ["system"]


def test_containers_of_zeros_do_not_make_first_calls_ask_autograd():
    calls = []

    @primitive
    def squares(container):
        return container[0] * container[1]

    def vjp(ans, container):
        def pulled(g):
            calls.append(g)
            return [g * container[1], g * container[0]]

        return pulled

    defvjp(squares, vjp)
    _, unflattened = flatten([onp.zeros(2), onp.zeros(2)])
    jac = parallel_jacobian(lambda x: np.sum(squares(unflattened(x))))
    onp.testing.assert_allclose(jac(onp.array([1.0, 2.0, 3.0, 4.0])), [3.0, 4.0, 1.0, 2.0])
    assert len(calls) == 1


class Tagged(onp.ndarray):
    """An array type of a user's, registered with autograd below."""


ArrayBox.register(Tagged)
VSpace.register(Tagged, ArrayVSpace)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_jacobians_are_plain_arrays_whatever_the_values_are(method):
    x = onp.array([0.1, 0.2, 0.3]).view(Tagged)
    for fun in (lambda x: np.sum(x) * x, lambda x: np.dot(x, x), lambda x: x):
        jac = parallel_jacobian(fun, method=method)(x)
        assert type(jac) is onp.ndarray
        onp.testing.assert_allclose(jac, jacobian(fun)(onp.asarray(x)), rtol=1e-14)


@primitive
def turning(x):
    """A complex function whose VJP leaves it to others to take the real part."""
    return onp.exp(1j * x) * x


defvjp(turning, lambda ans, x: lambda g: g * (1j * ans + onp.exp(1j * x)))


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_complex_adjoints_of_real_arguments_count_by_their_real_part(method):
    def fun(x):
        return np.abs(turning(x)) * np.sum(np.real(turning(x)))

    x = onp.array([0.3, 0.7, 1.1])
    expected = jacobian(fun)(x)
    assert expected.dtype == complex
    jac = parallel_jacobian(fun, method=method)(x)
    assert jac.dtype == float
    onp.testing.assert_allclose(jac, expected.real, rtol=1e-13)
    check_jacobian(fun, x)
