"""Derivatives of initial value problems: those of exact solutions, for all directions at once."""

import warnings

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from autograd.builtins import dict as boxed_dict
from autograd.builtins import tuple as boxed_tuple
from autograd.scipy.integrate import odeint
from autograd.tracer import Box

from tapesplit import WrongJacobianError, check_jacobian, odeint_rule, parallel_jacobian, record
from tapesplit.rules import find_rule

TIMES = np.array([0.0, 0.3, 1.0, 1.5])
ROUGHLY = {"rtol": 1e-6, "atol": 1e-8}


def growing(y, t, rates):
    """Of which the solution is ``y0 * exp(rates * t)``."""
    return y * rates


def by_rates(rates):
    return odeint(growing, np.array([1.0, 2.0]), TIMES, boxed_tuple((rates,)))


def by_states(y0):
    return odeint(growing, y0, TIMES, boxed_tuple((np.array([0.5, -1.0]),)))


def by_times(t):
    return odeint(growing, np.array([1.0, 2.0]), t, boxed_tuple((np.array([0.5, -1.0]),)))


def by_all(x):
    return odeint(growing, x[:2], TIMES * x[2], boxed_tuple((x[2:],)))


def exactly_by_all(x):
    return x[:2] * anp.exp(x[2:] * TIMES[:, None] * x[2])


def exactly(y0, t, rates):
    return y0 * anp.exp(rates * anp.reshape(t - t[0], (-1, 1)))


PROBLEMS = {
    "rates": (by_rates, lambda r: exactly(np.array([1.0, 2.0]), TIMES, r), np.array([0.5, -1.0])),
    "states": (by_states, lambda y: exactly(y, TIMES, np.array([0.5, -1.0])), np.array([1.0, 2.0])),
    "times": (by_times, lambda t: exactly(np.array([1.0, 2.0]), t, np.array([0.5, -1.0])), TIMES + 0.5),
    "all": (by_all, exactly_by_all, np.array([1.0, 2.0, 0.5, -1.0])),
}


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_derivatives_are_those_of_the_solution(name, method):
    fun, exact, x = PROBLEMS[name]
    J = parallel_jacobian(fun, method=method)(x)
    np.testing.assert_allclose(J, autograd.jacobian(exact)(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["rates", "states", "times"])
def test_they_are_nearer_to_it_than_those_of_autograd(name):
    fun, exact, x = PROBLEMS[name]
    want = autograd.jacobian(exact)(x)
    ours, theirs = (np.abs(J(x) - want).max() for J in (parallel_jacobian(fun), autograd.jacobian(fun)))
    assert ours < max(2.0 * theirs, 1e-6)


def pendulum(y, t, parts, gravity):
    """Return a list, of parameters that stand in a dict."""
    return [y[1], -gravity * anp.sin(y[0]) / parts["length"] - parts["friction"][0] * y[1]]


def swinging(x):
    parts = boxed_dict({"length": x[0], "friction": x[1:]})
    return odeint(pendulum, np.array([0.5, 0.0]), TIMES, boxed_tuple((parts, 9.81)))


def test_slopes_may_be_lists_and_parameters_nested():
    x, step = np.array([1.3, 0.2]), 1e-4
    J = parallel_jacobian(swinging)(x)
    differences = [(swinging(x + e) - swinging(x - e)) / (2 * step) for e in step * np.eye(2)]
    np.testing.assert_allclose(J, np.stack(differences, axis=-1), atol=1e-5)


def test_one_solution_serves_all_directions():
    """Of 36 parameters and eight rows; autograd differentiates the slope in each step of each row."""
    calls = []

    def decay(y, t, weights):
        calls.append(t)
        return -anp.reshape(anp.exp(weights), (6, 6)) @ y

    def state(weights):
        return odeint(decay, np.ones(6), np.linspace(0.0, 0.2, 3), boxed_tuple((weights,)), **ROUGHLY)[1:]

    x = np.linspace(-3.0, -2.0, 36)
    record(state, x)
    once = len(calls)
    for method in ("tangent", "adjoint"):
        calls.clear()
        parallel_jacobian(state, method=method)(x)
        assert len(calls) < 5 * once


def test_stiff_problems_take_the_bands_of_the_jacobian():
    calls = []

    def relaxing(y, t, rates):
        calls.append(t)
        return -rates * (y - anp.cos(t))

    def state(rates):
        return odeint(relaxing, np.zeros(2), np.array([0.0, 1.0, 2.0]), boxed_tuple((rates,)))[1:]

    rates = np.array([1e4, 3e5])
    J = parallel_jacobian(state)(rates)
    # y' = r (cos t - y): y = (r² cos t + r sin t) / (1 + r²) once the beginning is forgotten.
    t, r = np.array([[1.0], [2.0]]), rates
    derivative = (2 * r * np.cos(t) + (1 - r**2) * np.sin(t)) / (1 + r**2) ** 2
    want = derivative[:, :, None] * np.eye(2)
    np.testing.assert_allclose(J * rates, want * rates, atol=1e-6)
    assert len(calls) < 2000


@pytest.mark.parametrize("options", [{"atol": [1e-8, 1e-7]}, {"rtol": np.array([1e-8, 1e-8])}])
def test_other_calls_take_autograds_rule(options):
    def state(rates):
        return odeint(growing, np.array([1.0, 2.0]), TIMES, boxed_tuple((rates,)), **options)

    with pytest.raises(Exception) as theirs:  # noqa: PT011 (whatever it is)
        autograd.jacobian(state)(np.array([0.5, -1.0]))
    with pytest.raises(type(theirs.value)):
        parallel_jacobian(state)(np.array([0.5, -1.0]))


def test_hessians():
    x = np.array([0.5, -1.0])
    H = parallel_jacobian(autograd.grad(lambda r: anp.sum(by_rates(r)[:2] ** 2)))(x)
    want = autograd.hessian(lambda r: anp.sum(exactly(np.array([1.0, 2.0]), TIMES, r)[:2] ** 2))(x)
    np.testing.assert_allclose(H, want, atol=1e-5)


def test_the_check_allows_for_the_tolerance_of_the_solver():
    check_jacobian(by_rates, np.array([0.5, -1.0]))
    assert find_rule(odeint).approximate


def test_the_check_trusts_differences_where_autograd_is_wrong():
    """The strange attractor of Lorenz repels backward in time."""

    def lorenz(y, t, p):
        return anp.array([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])

    def state(p):
        return odeint(lorenz, np.ones(3), np.array([0.0, 3.0]), boxed_tuple((p,)))[-1]

    p = np.array([10.0, 28.0, 8 / 3])
    J = parallel_jacobian(state)(p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.abs(autograd.jacobian(state)(p) - J).max() > 1.0
    check_jacobian(state, p)


def test_the_check_notices_wrong_solutions(monkeypatch):
    block = odeint_rule._Sensitivities._block
    monkeypatch.setattr(odeint_rule._Sensitivities, "_block", lambda *args: 1.01 * block(*args))
    with pytest.raises(WrongJacobianError, match="central differences"):
        check_jacobian(by_rates, np.array([0.5, -1.0]))


@pytest.mark.parametrize(
    "slope",
    [
        lambda y, t, rates: rates[0] * y[0],
        lambda y, t, rates: [rates[0] * y[0]],
        lambda y, t, rates: anp.reshape(rates * y, ()),
    ],
)
@pytest.mark.parametrize("argnum", [0, 1, 2])
def test_slopes_of_one_state_may_have_any_shape(slope, argnum):
    def state(y0, t, rates):
        return odeint(slope, y0, t, boxed_tuple((rates,)))

    args = np.array([2.0]), TIMES, np.array([-0.5])
    J = parallel_jacobian(state, argnum)(*args)
    np.testing.assert_allclose(J, autograd.jacobian(exactly, argnum)(*args), atol=1e-6)


def test_parameters_of_single_precision_are_as_good():
    rates = np.array([0.5, -1.0], np.float32)
    J = parallel_jacobian(by_rates)(rates)
    assert J.dtype == np.float32
    np.testing.assert_allclose(J, parallel_jacobian(by_rates)(rates.astype(float)), rtol=1e-6)


def test_slopes_may_ignore_the_state():
    def state(y0):
        return odeint(lambda y, t, rates: rates * anp.cos(t), y0, TIMES, (np.array([1.0, 2.0]),))

    np.testing.assert_allclose(parallel_jacobian(state)(np.ones(2)), np.broadcast_to(np.eye(2), (4, 2, 2)))


def test_directions_that_are_many_are_solved_in_blocks(monkeypatch):
    rates = np.array([0.5, -1.0])
    J = parallel_jacobian(by_rates)(rates)
    monkeypatch.setattr(odeint_rule, "_WORKSPACE", 1)
    np.testing.assert_allclose(parallel_jacobian(by_rates)(rates), J, atol=1e-6)


def test_few_rows_of_many_parameters_are_left_to_autograd():
    weights = np.linspace(-0.1, 0.1, 900)

    def last(weights):
        args = boxed_tuple((anp.reshape(weights, (30, 30)),))
        return anp.sum(odeint(lambda y, t, A: A @ y, np.ones(30), np.array([0.0, 1.0]), args)[-1])

    np.testing.assert_array_equal(parallel_jacobian(last)(weights), autograd.jacobian(last)(weights))


def test_calls_without_parameters():
    def last(y0):
        return odeint(lambda y, t: -y, y0, TIMES)[-1]

    np.testing.assert_allclose(
        parallel_jacobian(last)(np.ones(2)), np.exp(-TIMES[-1]) * np.eye(2), rtol=1e-5, atol=1e-7
    )


def test_errors_of_the_slope_name_the_users_function():
    def decay(y, t, rate):
        return np.array([-rate[0] * y[0]])  # of plain NumPy

    with pytest.raises(TypeError, match=r"^decay hides a traced value"):
        parallel_jacobian(lambda x: odeint(decay, np.ones(1), TIMES, boxed_tuple((x,)))[-1])(np.ones(1))


def test_errors_of_the_slope_name_the_step():
    def slope(y, t, rate):
        if isinstance(y, Box):
            raise ZeroDivisionError("in the slope")
        return y * rate

    with pytest.raises(ZeroDivisionError, match="in the slope") as error:
        parallel_jacobian(lambda x: odeint(slope, np.ones(1), TIMES, boxed_tuple((x,)))[-1])(np.ones(1))
    assert any("odeint" in note for note in error.value.__notes__)


def test_slopes_that_have_changed_since_the_call_are_noticed():
    def fun(p):
        y = np.ones(3)
        for u in (0.0, 1.0, 2.0):  # which the slopes read later on
            y = odeint(lambda y, t, p: -p * y + u, y, TIMES[:2], boxed_tuple((p,)))[-1]  # noqa: B023
        return y

    with pytest.warns(UserWarning, match=r"given to odeint computes other values.*variable of a loop"):
        parallel_jacobian(fun)(np.array([1.3, 0.5, 2.0]))
