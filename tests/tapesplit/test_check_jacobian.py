"""`check_jacobian` on functions whose inputs, outputs or derivatives have very different sizes."""

import re

import autograd.numpy as anp
import numpy as np
import pytest
from autograd.extend import defvjp, primitive
from hypothesis import given, settings
from hypothesis import strategies as st

from tapesplit import WrongJacobianError, check_jacobian, defvector
from tapesplit.check import _DIRECTIONS

TIMES = np.linspace(0.0, 1000.0, 20)


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda p: p[0] * anp.exp(-p[1] * TIMES), [1e6, 1e-3]),
        (lambda p: p[0] + anp.sin(p[1] * TIMES / 100), [1e5, 0.5]),
        (lambda p: p[0] + anp.sin(p[1] * TIMES), [1e5, 0.5]),
        (lambda p: anp.log(p) * p[0], [1e6, 1e-3, 1.0]),
        (lambda p: anp.sin(1e6 * p), [1.0, 0.5]),
        (lambda p: 1.0 / p, [1e-12, 1e-6, 1e6]),
        (lambda p: 1.0 / p, [1e-16]),
        (lambda p: anp.sin(1e20 * p), [1e-20, 2e-20]),
        (lambda p: anp.exp(p / 1e-9) / anp.sum(p), [1e-9, 2e-9]),
        (lambda p: anp.sqrt(p - 1.0) + p[0], [1.0 + 1e-7, 2.0]),
        (lambda p: anp.sin(p) * p[1], [0.0, 1e6, 1e-17]),
        (lambda p: anp.tanh(p[1:] - p[:-1]), [1e3, 1e3, 1e3 + 1e-3]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
def test_right_derivatives_of_badly_scaled_functions_pass(fun, x, dtype):
    check_jacobian(fun, np.array(x, dtype))


@pytest.mark.parametrize("seed", range(5))
def test_rounding_of_large_terms_that_cancel_is_no_alarm(seed):
    random = np.random.default_rng(seed)
    matrix = 1e5 * random.standard_normal((40, 40))
    sums = matrix.sum(axis=0)
    check_jacobian(lambda x: anp.array([anp.sum(matrix @ x) - sums @ x, x[0]]), random.standard_normal(40))
    check_jacobian(lambda x: anp.sum(x - anp.mean(x)), 100.0 * random.standard_normal(1000))


@pytest.mark.parametrize(("dtype", "large"), [(np.float64, 1e13), (np.float32, 1e6)])
def test_rounding_that_is_as_large_as_the_output_is_no_alarm(dtype, large):
    random = np.random.default_rng(3)
    x, factors = random.random(4).astype(dtype), (large * random.random(4)).astype(dtype)

    def cancelled(x):
        return anp.array([anp.sum(x * factors) - anp.sum(x[::-1] * factors[::-1]) + anp.sum(anp.sin(x))])

    check_jacobian(cancelled, x)


def test_outputs_without_finite_values_a_step_away_are_not_compared():
    check_jacobian(lambda x: x**1.5, np.array([0.0, 2.0]))


@primitive
def square(x):
    return x**2


@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 1.001), (np.float32, 1.003), (np.float16, 1.5)])
@pytest.mark.parametrize("x", [[1.0, 0.5], [-2.0, 0.1, 3.0]])
def test_wrong_derivatives_of_any_precision_are_found(dtype, factor, x):
    x = np.array(x, dtype)
    defvjp(square, lambda ans, x: lambda g: g * (2 * x))
    defvector(square, lambda ans, x: 2 * x)
    check_jacobian(square, x)
    defvjp(square, lambda ans, x: lambda g: g * (2 * x * factor).astype(dtype))
    defvector(square, lambda ans, x: (2 * x * factor).astype(dtype))
    with pytest.raises(WrongJacobianError, match="differs from central differences"):
        check_jacobian(square, x)


def test_wrong_derivatives_are_told_from_right_ones():
    defvjp(square, lambda ans, x: lambda g: g * 3 * x)
    defvector(square, lambda ans, x: 3 * x)
    with pytest.raises(
        WrongJacobianError, match=r"along element 0 of the input: 1 of 2 .* at \(0,\): "
    ) as caught:
        check_jacobian(square, np.array([1.0, 1.0]))
    found, expected = map(float, re.findall(r"(\S+) instead of (\S+)", str(caught.value))[0])
    assert found == pytest.approx(1.5 * expected, rel=1e-5)
    with pytest.raises(WrongJacobianError, match="along elements 0, 1, 2, 3, 4, … of the input"):
        check_jacobian(square, np.ones(100))


RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    "other",
    [
        anp.zeros_like,
        anp.floor,
        lambda x: anp.where(x >= 1.0, 3.0, 1.0),
        lambda x: 1e-3 * RANDOM.random(3),
    ],
)
def test_wrong_derivatives_are_found_where_the_value_jumps_or_is_noisy(other):
    defvjp(square, lambda ans, x: lambda g: g * 2 * x)
    defvector(square, lambda ans, x: 50 * x)
    with pytest.raises(WrongJacobianError, match=r"differs from autograd\.jacobian"):
        check_jacobian(lambda x: square(x) + other(x), np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("large", [1.0, 1e9, 1e12])
@pytest.mark.parametrize("in_rule", [True, False])
@pytest.mark.parametrize(
    "fun",
    [
        lambda p, large: anp.array([large * p[0], large * p[0], large * p[0], square(p[1])]),
        lambda p, large: anp.array([square(p[1]) / large**0.5, p[0]]),
        lambda p, large: p[:1] * large**0.5 + square(p[1]),
    ],
)
def test_wrong_derivatives_next_to_large_ones_are_found(fun, in_rule, large):
    p = np.array([2.0, 0.25])
    defvjp(square, lambda ans, x: lambda g: g * 2 * x)
    defvector(square, lambda ans, x: 2 * x)
    check_jacobian(fun, p, large)
    if in_rule:
        defvector(square, lambda ans, x: 0 * x)
    else:
        defvjp(square, lambda ans, x: lambda g: g * 0.0 * x)
        defvector(square, lambda ans, x: 0 * x)
    with pytest.raises(
        AssertionError, match=r"differs from autograd\.j" if in_rule else "central differences"
    ):
        check_jacobian(fun, p, large)


def scaled(x, inputs, outputs):
    """Values and derivatives of all sizes, each entry of the Jacobian a fair part of its row."""
    x = x * inputs
    return outputs * anp.stack([x[0] * x[1] * x[2], anp.exp(x[0] - x[1]) + x[2], anp.sin(x[0] + x[1] + x[2])])


powers = st.lists(st.integers(-6, 6), min_size=3, max_size=3).map(lambda powers: 10.0 ** np.array(powers))
points = st.lists(st.floats(0.2, 0.5), min_size=3, max_size=3).map(np.array)


@settings(deadline=None, max_examples=100)
@given(x=points, inputs=powers, outputs=powers, zero=st.integers(0, 3))
def test_units_raise_no_alarm(x, inputs, outputs, zero):
    x[zero:] = 0.0
    check_jacobian(lambda x: scaled(x, inputs, outputs), x / inputs)


@primitive
def liar(x, inputs, outputs, wrong):
    return scaled(x, inputs, outputs)


def _true(x, inputs, outputs):
    a, b, c = x * inputs
    rows = [[b * c, a * c, a * b], [np.exp(a - b), -np.exp(a - b), 1.0], 3 * [np.cos(a + b + c)]]
    return outputs[:, np.newaxis] * rows * inputs


defvjp(liar, lambda ans, x, inputs, outputs, wrong: lambda g: g @ (_true(x, inputs, outputs) * wrong[0]))
defvector(
    liar,
    tangents=[lambda T, ans, x, inputs, outputs, wrong: T @ (_true(x, inputs, outputs) * wrong[1]).T],
    adjoints=[lambda A, ans, x, inputs, outputs, wrong: A @ (_true(x, inputs, outputs) * wrong[1])],
)


@settings(deadline=None, max_examples=100)
@given(
    x=points,
    inputs=powers,
    outputs=powers,
    place=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    factor=st.sampled_from([0.0, -1.0, 2.0]),
    in_rule=st.booleans(),
)
def test_a_wrong_entry_raises_an_alarm_in_all_units(x, inputs, outputs, place, factor, in_rule):
    right, wrong = np.ones((3, 3)), np.ones((3, 3))
    wrong[place] = factor
    x = x / inputs
    check_jacobian(liar, x, inputs, outputs, (right, right))
    differs = r"differs from autograd\.jacobian" if in_rule else "differs from central differences"
    with pytest.raises(AssertionError, match=differs):
        check_jacobian(liar, x, inputs, outputs, (right if in_rule else wrong, wrong))


def test_many_inputs_share_directions():
    calls = []

    def fun(x):
        calls.append(1)
        return anp.cumsum(x) * anp.sin(x)

    check_jacobian(fun, np.linspace(0.1, 1.0, 50))
    assert len(calls) == 2 + 1 + 3 + _DIRECTIONS + 2 * _DIRECTIONS


def test_arrays_without_elements():
    check_jacobian(anp.sum, np.ones(0))


@pytest.mark.parametrize("fun", [lambda x: x[:0], lambda x: x[:, :0] * 2.0, lambda _x: np.ones((0, 2))])
@pytest.mark.parametrize("x", [np.ones((2, 3)), np.ones((2, 0)), np.ones((2, 3), np.float32)])
@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_values_without_elements(fun, x):
    check_jacobian(fun, x)


def test_arrays_of_objects_on_the_way():
    def collected(x):
        return anp.array(anp.ravel(anp.array([1, x[0], x[1]], dtype=object)), dtype=float) * x[1]

    check_jacobian(collected, np.array([2.0, 3.0]))


def test_a_wrong_rule_of_autograds_is_told_from_ours():
    def twisted(x):
        return anp.transpose(anp.sin(anp.reshape(x, (2, 2, 2))), (-1, 0, 1))

    with pytest.raises(WrongJacobianError, match=r"differs from autograd\.jacobian") as caught:
        check_jacobian(twisted, np.linspace(0.1, 1.0, 8))
    assert "a rule of autograd's is wrong" in caught.value.__notes__[0]


def turned(x):
    return anp.transpose(anp.reshape(x, (3, 1, 1)) * np.ones((3, 2, 4)), (-1, 0, 1))


def test_an_error_of_autograds_is_raised_with_a_note_that_ours_is_right():
    with pytest.raises(ValueError, match="broadcast") as caught:
        check_jacobian(turned, np.ones(3))
    assert "autograd.jacobian fails here; that of tapesplit agrees" in caught.value.__notes__[0]


def test_an_error_of_autograds_does_not_hide_that_ours_is_wrong():
    defvjp(square, lambda ans, x: lambda g: g * 2 * x)
    defvector(square, lambda ans, x: 3 * x)
    with pytest.raises(WrongJacobianError, match="central differences"):
        check_jacobian(lambda x: turned(square(x)), np.ones(3))


def test_a_check_without_a_point_says_what_to_write():
    with pytest.raises(IndexError, match=r"no point at which to check sin; write check_jacobian\(f, x\)"):
        check_jacobian(anp.sin)


@pytest.mark.parametrize("factor", [3.0, 2.0 * (1.0 + 1e-7)])
def test_ours_is_not_excused(factor):
    @primitive
    def twice(x):
        return 2.0 * x

    defvjp(twice, lambda ans, x: lambda g: 2.0 * g)
    defvector(twice, factor)
    with pytest.raises(WrongJacobianError, match=r"differs from autograd\.jacobian") as caught:
        check_jacobian(twice, np.ones(2))
    assert not hasattr(caught.value, "__notes__")


def test_arrays_that_are_changed_after_their_use_are_named_as_a_cause():
    def scaled(x):
        factors = np.ones(3)
        for _ in range(3):
            x = x * factors
            factors *= 2.0
        return x

    with pytest.raises(WrongJacobianError, match="differs from central differences") as caught:
        check_jacobian(scaled, np.ones(3))
    assert "does scaled change an array or a list in place" in caught.value.__notes__[-1]


def test_a_random_function_is_named_as_such():
    rng = np.random.default_rng(0)
    with pytest.raises(WrongJacobianError) as caught:
        check_jacobian(lambda x: 2.0 * x + rng.random(), np.ones(2))
    assert "another value at the same point" in "".join(caught.value.__notes__)
