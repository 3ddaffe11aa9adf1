"""Primitives that a function defines inside of itself, another object at each call."""

import pickle

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from autograd.extend import defjvp, defvjp, primitive

from tapesplit import UnnamedPrimitiveError, check_jacobian, defvector, execute, parallel_jacobian, record
from tapesplit.structures.made_anew import as_first_made, is_made_anew

RANDOM = onp.random.default_rng(0)
METHODS = pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])


def power(exponent, *, with_jvp=False):
    """Return a primitive of the same code for each exponent."""

    @primitive
    def raised(x):
        return x**exponent

    defvjp(raised, lambda ans, x: lambda g: g * exponent * x ** (exponent - 1.0))
    if with_jvp:
        defjvp(raised, lambda g, ans, x: g * exponent * x ** (exponent - 1.0))
    return raised


def loop(x):
    """Define a primitive at the end of a loop."""
    y = x
    for _ in range(20):
        y = np.sin(y) + x
    return np.sum(power(3.0)(y)) * x


def two(x):
    """Define two of the same code, and apply one to the other."""
    square, cube = power(2.0), power(3.0)
    return np.concatenate([square(x) * cube(x), cube(square(x)), square(x[:2]) + cube(x[1:3])])


@METHODS
@pytest.mark.parametrize("fun", [loop, two])
def test_one_plan_serves_all_calls(fun, method):
    jac = parallel_jacobian(fun, method=method)
    for _ in range(6):
        x = RANDOM.random(5) + 0.5
        onp.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-12)
    assert jac.cache_info()[:2] == (5, 1)


def test_rules_are_those_of_the_call():
    """Two exponents change places: the plan is the same, the numbers are not."""
    exponents = []

    def fun(x):
        first, second = exponents
        return power(first)(x) * power(second)(np.sin(x))

    jac = parallel_jacobian(fun)
    x = RANDOM.random(4) + 0.5
    for exponents in ((2.0, 3.0), (3.0, 2.0), (1.5, 4.0)):
        expected = jacobian(lambda x, e=exponents: x ** e[0] * np.sin(x) ** e[1])(x)
        onp.testing.assert_allclose(jac(x), expected, rtol=1e-12)
    assert jac.cache_info()[:2] == (2, 1)


def test_several_of_a_code_may_come_in_any_order():
    def fun(x, order):
        made = {exponent: power(exponent) for exponent in (2.0, 3.0)}
        found = {exponent: made[exponent](x * exponent) for exponent in order}
        return found[2.0] + 10.0 * found[3.0]

    jac = parallel_jacobian(fun)
    x = RANDOM.random(4)
    for order in ((2.0, 3.0), (3.0, 2.0), (2.0, 3.0), (3.0, 2.0)):
        onp.testing.assert_allclose(jac(x, order), jacobian(fun)(x, order), rtol=1e-12)


@METHODS
def test_those_with_other_rules_are_others(method):
    with_jvp = [False]

    def fun(x):
        return power(2.0, with_jvp=with_jvp[0])(x) * np.sum(x)

    jac = parallel_jacobian(fun, method=method)
    x = RANDOM.random(4)
    for with_jvp[0] in (False, True, False, True):
        onp.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-12)
    assert jac.cache_info().misses >= 2


def test_a_vector_rule_for_one_of_them_is_not_that_of_the_others():
    def fun(x):
        return made[-1](x) * np.sum(x)

    made = [power(2.0)]
    jac = parallel_jacobian(fun)
    x = RANDOM.random(4)
    jac(x)
    defvector(made[0], lambda ans, x: 100.0 * x)  # wrong, so that it is seen
    made.append(power(3.0))
    onp.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-12)
    made.append(made[0])
    assert abs(jac(x) - jacobian(fun)(x)).max() > 1.0


def test_primitives_of_modules_are_what_they_are():
    assert not is_made_anew(np.sin)
    assert not is_made_anew(None)
    primitives = [None, np.sin, np.dot, np.sin]
    assert as_first_made(primitives) is primitives


def test_different_ones_of_a_tape_stay_different():
    made = [power(2.0), power(3.0), power(4.0)]
    first = as_first_made([None, made[0], made[1], made[0], np.sin])
    again = as_first_made([None, made[2], made[0], made[2], np.sin])
    assert first == again
    assert first[1] is first[3] is not first[2]


def test_plans_execute_on_other_tapes_but_do_not_pickle():
    jac = parallel_jacobian(two)
    x = RANDOM.random(5) + 0.5
    plan = jac.plan(x)
    onp.testing.assert_allclose(execute(plan, record(two, 2.0 * x)), jacobian(two)(2.0 * x), rtol=1e-12)
    check_jacobian(two, x)
    with pytest.raises(UnnamedPrimitiveError):
        pickle.dumps(plan)
