"""Whatever tapesplit refuses, it says so with an exception of its own that is also the builtin one."""

import json
import math
import pickle
import sys
from types import FunctionType

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.optimize
import scipy.spatial.distance
import scipy.stats
from autograd.extend import defvjp, primitive
from autograd.scipy.integrate import odeint
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu, spsolve

import tapesplit
from tapesplit import parallel_jacobian, record
from tapesplit.planning.records import TaskRecord
from tapesplit.recording import overrides
from tapesplit.recording.remedies import remedy_for
from tapesplit.rules import registry

X = np.ones(3)
PLAN, TAPE = parallel_jacobian(anp.sin).plan(X), record(anp.sin, X)


@primitive
def halved(x):
    return 0.5 * x


defvjp(halved, lambda ans, x: lambda g: 0.5 * g)
MISUSES = {
    "function": (TypeError, lambda: parallel_jacobian(3)),
    "static method": (TypeError, lambda: parallel_jacobian(staticmethod(anp.sin))),
    "method": (ValueError, lambda: parallel_jacobian(anp.sin, method="fast")),
    "cost": (ValueError, lambda: parallel_jacobian(anp.sin, cost="s")),
    "machines": (ValueError, lambda: parallel_jacobian(anp.sin, machines=0)),
    "flag": (TypeError, lambda: parallel_jacobian(anp.sin, has_aux=1)),
    "executor": (TypeError, lambda: parallel_jacobian(anp.sin, executor=3)),
    "callback": (TypeError, lambda: parallel_jacobian(anp.sin, callback=print)),
    "observer": (TypeError, lambda: tapesplit.Callback(start=3)),
    "argnum": (TypeError, lambda: parallel_jacobian(anp.sin, "x")),
    "no argnum": (ValueError, lambda: parallel_jacobian(anp.sin, ())),
    "argnum of the call": (IndexError, lambda: parallel_jacobian(anp.sin, 1)(X)),
    "argnum twice": (ValueError, lambda: parallel_jacobian(anp.add, (0, -2))(X, X)),
    "argnum of a record": (ValueError, lambda: record(anp.sin, X, argnum=())),
    "input": (TypeError, lambda: parallel_jacobian(anp.sin)([1.0])),
    "number that is none": (TypeError, lambda: parallel_jacobian(anp.sin)("x")),
    "executing with a limit": (TypeError, lambda: tapesplit.execute(PLAN, TAPE, memory_limit="x")),
    "executing a tape": (TypeError, lambda: tapesplit.execute(TAPE, PLAN)),
    "executing without a plan": (TypeError, lambda: tapesplit.execute(TAPE, TAPE)),
    "executing on no tape": (TypeError, lambda: tapesplit.execute(PLAN, X)),
    "executing with no executor": (TypeError, lambda: tapesplit.execute(PLAN, TAPE, executor=3)),
    "executing with no callback": (TypeError, lambda: tapesplit.execute(PLAN, TAPE, callback=print)),
    "level": (ValueError, lambda: PLAN.describe("all")),
    "picture": (ValueError, lambda: PLAN.draw("plan.jpg")),
    "folder of a picture": (OSError, lambda: PLAN.draw("nowhere/plan.svg")),
    "folder of a report": (OSError, lambda: PLAN.to_html("nowhere/plan.html")),
    "primitive": (TypeError, lambda: tapesplit.defvector(len, 1)),
    "rules": (TypeError, lambda: tapesplit.defvector(halved)),
    "rule without check": (ValueError, lambda: tapesplit.check_vector_rule(halved, X)),
    "argnum of a check": (IndexError, lambda: tapesplit.check_jacobian(anp.sin)),
    "argnums of a check": (ValueError, lambda: tapesplit.check_jacobian(anp.add, X, X, argnum=(0, 0))),
    "output of a check": (TypeError, lambda: tapesplit.check_jacobian(lambda x: [x], X)),
    "word as an argnum of a record": (TypeError, lambda: record(anp.sin, X, argnum="x")),
    "truth value as an argnum": (
        TypeError,
        lambda: tapesplit.check_jacobian(anp.sin, X, argnum=True),
    ),
    "roll by a variable": (
        NotImplementedError,
        lambda: parallel_jacobian(lambda n: anp.roll(X, n))(np.array(1)),
    ),
    "no function for SciPy": (TypeError, lambda: tapesplit.fun_and_jac(3)),
    "second argument for SciPy": (
        ValueError,
        lambda: tapesplit.fun_and_jac(parallel_jacobian(anp.add, 1)),
    ),
    "no function to record": (TypeError, lambda: tapesplit.record(3, X)),
    "no function to check": (TypeError, lambda: tapesplit.check_jacobian(3, X)),
    "ending of a report": (ValueError, lambda: PLAN.to_html("plan.txt")),
    "no records": (TypeError, lambda: PLAN.to_html("plan.html", 3)),
    "records of no tasks": (TypeError, lambda: PLAN.to_html("plan.html", [3])),
    "records of another plan": (
        ValueError,
        lambda: PLAN.to_html("plan.html", [TaskRecord(len(PLAN.tasks), 0, 0.0, 1.0)]),
    ),
    "no tape": (TypeError, lambda: parallel_jacobian(anp.sin).of_tape(3)),
    "argnums for SciPy": (ValueError, lambda: tapesplit.fun_and_jac(parallel_jacobian(anp.add, (0, 1)))),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_raises_our_own_and_the_builtin_exception(misuse):
    builtin, call = MISUSES[misuse]
    with pytest.raises(tapesplit.TapesplitError) as caught:
        call()
    assert isinstance(caught.value, builtin)


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("tqdm.auto", lambda: parallel_jacobian(anp.sin, progress=True)),
        ("matplotlib.figure", lambda: PLAN.draw("plan.png")),
    ],
)
def test_missing_packages_raise_our_own_and_an_import_error(package, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(tapesplit.MissingPackageError, match=r"pip install 'tapesplit\[") as caught:
        call()
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("called", [tapesplit.record, tapesplit.check_jacobian])
def test_what_is_no_function_is_named_with_what_was_called(called):
    message = rf"{called.__name__} needs a function, but got 3; write {called.__name__}\(f, x\)"
    with pytest.raises(tapesplit.ArgumentTypeError, match=message):
        called(3, X)


def test_primitives_without_a_name_raise_our_own_and_a_pickling_error():
    @primitive
    def local(x):
        return x

    defvjp(local, lambda ans, x: lambda g: g)
    plan = parallel_jacobian(local).plan(X)
    with pytest.raises(tapesplit.UnnamedPrimitiveError, match="define it at the top level") as caught:
        pickle.dumps(plan)
    assert isinstance(caught.value, pickle.PicklingError)


def test_wrong_derivatives_raise_our_own_and_an_assertion_error():
    @primitive
    def liar(x):
        return 2.0 * x

    defvjp(liar, lambda ans, x: lambda g: g)
    with pytest.raises(tapesplit.WrongJacobianError):
        tapesplit.check_jacobian(liar, X)
    tapesplit.defvector(liar, 3)
    with pytest.raises(tapesplit.WrongRuleError):
        tapesplit.check_vector_rule(liar, X)


def test_a_rule_for_a_function_that_stood_in_while_recording_is_one_for_autograds(monkeypatch):
    kept = []

    def f(x):
        kept.append(anp.tanh)
        return anp.tanh(x)

    parallel_jacobian(f)(X)
    assert kept[0] is not anp.tanh
    monkeypatch.setattr(registry, "_users", dict(registry._users))
    monkeypatch.setattr(overrides, "_kept", set(overrides._kept))
    monkeypatch.setitem(registry._rules, anp.tanh, registry._rules[anp.tanh])
    tapesplit.defvector(kept[0], lambda ans, x: 7.0)
    np.testing.assert_array_equal(parallel_jacobian(f)(X), 7.0 * np.eye(len(X)))


def test_only_arguments_of_unknown_types_may_be_self():
    with pytest.raises(TypeError) as caught:
        parallel_jacobian(anp.sin)(3)
    assert "self" not in str(caught.value)


def assigned(x):
    y = np.zeros(3)
    y[0] = anp.sin(x[0])
    return y


def changed(x):
    x[0] = 0.0
    return x


def summed(x):
    a = np.ones(3)
    a += x
    return a


def of_module(function, name):
    """Return a function as if it were defined in a module of another name."""
    return FunctionType(function.__code__, {**function.__globals__, "__name__": name})


class Series(np.lib.mixins.NDArrayOperatorsMixin):
    """What arrays of pandas do: results of arithmetic are of their type."""

    __array_priority__ = 1000

    def __init__(self, values):
        self.values = np.empty(3)
        self.values[:] = values

    __init__ = of_module(__init__, "pandas.core.series")

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = (value.values if isinstance(value, Series) else value for value in inputs)
        return Series(ufunc(*plain, **kwargs))


def plotted(x):
    from matplotlib.figure import Figure

    Figure().subplots().plot(x)


@pytest.mark.parametrize(
    ("fun", "remedy"),
    [
        (assigned, "instead of y[i] = np.sin(x[i])"),
        (changed, "np.where(mask, new, x)"),
        (lambda x: x if x > 0 else -x, "instead of a branch on an array write np.where(x > 0, a, b)"),
        (summed, "write a = a + x"),
        (lambda x: math.sin(x[0]) * x, "write np.sin(x[0])"),
        (lambda x: float(x[0]) * x, "x[0] instead of float(x[0])"),
        (lambda x: ("%f" % x[0]) * x, "to print '%f' take autograd.tracer.getval"),  # noqa: UP031
        (lambda x: np.float64(x[0]) * x, "x[0] instead of np.float64(x[0])"),
        (lambda x: anp.sin(np.zeros_like(x) + x), "take functions from autograd.numpy"),
        (lambda x: csr_array(np.eye(3)) @ x, "a primitive with a rule of your own"),
        (lambda x: x @ csr_array(np.eye(3)), "a primitive with a rule of your own"),
        (lambda x: x @ 2.0, "numbers are multiplied by *"),
        (lambda x: csr_array(np.eye(3)) * x[0], "a primitive with a rule of your own"),
        (lambda x: x * Series(X), "write x.to_numpy() for a Series"),
        (lambda x: x[0] * anp.exp(-x[1] * Series(X)), "write x.to_numpy() for a Series"),
        (lambda x: Series(X) - x, "write x.to_numpy() for a Series"),
        (lambda x: x * np.ma.array(X, mask=[0, 1, 0]), "x.filled(0.0) for a masked array"),
        (lambda x: np.matrix(np.eye(3)) @ x, "take np.asarray(A)"),
        (lambda x: np.matrix(np.eye(3)) * x, "take np.asarray(A)"),
        (lambda x: spsolve(csr_array(np.eye(3)), x), "SciPy's solvers"),
        (lambda x: splu(csc_array(np.eye(3))).solve(x), "SciPy's solvers"),
        (lambda x: np.linalg.solve(np.eye(3), x), "take functions from autograd.numpy and autograd.scipy"),
        (lambda x: np.interp(x, x, x), "take functions from autograd.numpy and autograd.scipy"),
        (scipy.stats.norm.logpdf, "take functions from autograd.numpy and autograd.scipy"),
        (lambda x: scipy.interpolate.CubicSpline(np.arange(3.0), x)(0.5), "take those of autograd.scipy"),
        (lambda x: scipy.integrate.solve_ivp(lambda _, y: -x * y, (0, 1), np.ones(3)).y, "SciPy's solvers"),
        (lambda x: scipy.spatial.distance.cdist(x[None], x[None]), "SciPy's solvers"),
        (lambda x: scipy.integrate.quad(lambda t: t * x[0], 0, 1)[0], "SciPy's solvers"),
        (lambda x: scipy.optimize.root(lambda y: y - x, np.ones(3)).x, "SciPy's solvers"),
        (lambda x: scipy.optimize.brentq(lambda y: y * x[0] - 0.1, 0, 1), "SciPy's solvers"),
        (lambda x: odeint(lambda y, _: -x * y, np.ones(3), [0, 1]), "and not from a closure"),
        (lambda x: odeint(lambda y, _, p: -p * y, np.ones(3), [0, 1], (x,)), "autograd.builtins.tuple((p,))"),
        (lambda x: odeint(lambda y, _, p: -p * y, np.ones(3), [0, 1], x), "autograd.builtins.tuple((p,))"),
        (lambda x: f"{x[0]:.3f}", "autograd.tracer.getval(x)"),
        (lambda x: x * int(x[0]), "autograd.tracer.getval(x)"),
        (lambda x: x * round(x[0]), "autograd.tracer.getval(x)"),
        (lambda x: x * len(range(x[0])), "autograd.tracer.getval(x)"),
        (lambda x: x * [1.0, 2.0][x[0]], "autograd.tracer.getval(x)"),
        (plotted, "autograd.tracer.getval(x)"),
        (lambda x: x * X[x[0]], "autograd.tracer.getval(x)"),
        (lambda x: x * complex(x[0]), "write x[0] + 0j"),
        (lambda x: x * [1.0, 2.0, 3.0][np.searchsorted(X, [1.0, 2.0])], "np.array(list)[i]"),
        (lambda x: np.testing.assert_allclose(x, X), "autograd.tracer.getval(x)"),
        (lambda x: json.dumps(x[0]), "autograd.tracer.getval(x)"),
        (lambda x: x * autograd.grad(lambda n: n**2 * x[0])(2), "2.0 instead of 2"),
        (lambda x: x * autograd.grad(lambda n: anp.sum(n**2))(np.array([1, 2, 3])), "np.asarray(x, dtype=f"),
        (lambda x: x.copy() * 2.0, "leave x.copy() and x.item() out"),
        (lambda x: anp.fill_diagonal(anp.outer(x, x), 0.0), "A * (1.0 - np.eye(n))"),
        (lambda x: anp.put(x * 1.0, 0, x[1]), "write np.where(mask, new, x)"),
        (lambda x: anp.sin([x[0], x[1]]), "give them np.array([a, b])"),
        (lambda x: x.dot(x), "write np.dot(x, y)"),
        (lambda x: anp.linalg.eigh(anp.outer(x, x)).eigenvalues, "write w, V = np.linalg.eigh(A)"),
        (lambda x: anp.linalg.slogdet(anp.diag(x)).logabsdet, "write w, V = np.linalg.eigh(A)"),
        (lambda x: anp.linalg.svd(anp.diag(x), False).S, "write w, V = np.linalg.eigh(A)"),
        (lambda x: 2.0 * anp.add.reduce(x), "write np.sum"),
        (lambda x: anp.add.at(np.zeros(3), [0, 1, 1], x), "write r + B @ parts"),
        (lambda x: np.add.at(np.zeros(3), [0, 1, 1], x), "write r + B @ parts"),
        (lambda x: np.multiply.at(np.ones(3), [0, 1, 1], x), "a list with what each place gets"),
        (lambda x: x // 0.2, "np.floor(x / y)"),
        (lambda x: +x, "write x instead of +x"),
        (lambda x: x.at[0].set(1.0), "write np.where(mask, v, x)"),
        (autograd.grad(lambda x: anp.sum(x * x._value._value)), "write autograd.tracer.getval(x)"),
        (lambda x: anp.no_such_function(x) + x, "a primitive with a rule of your own"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # scipy.optimize warns before it fails
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_errors_of_plain_numpy_on_traced_values_get_a_note_on_what_to_write(fun, remedy):
    with pytest.raises(Exception) as caught:  # noqa: PT011 (of any type)
        parallel_jacobian(fun)(X)
    assert remedy in caught.value.__notes__[-1]


MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize(
    ("fun", "instead", "x", "remedy"),
    [
        (
            lambda x: anp.clip(x, x[0], 3.0),
            lambda x: anp.minimum(anp.maximum(x, x[0]), 3.0),
            np.array([2.0, 1.0, 4.0]),
            "np.minimum(np.maximum(x, lower), upper)",
        ),
        (
            lambda x: anp.clip(3.0, x[0], x[1]),
            lambda x: anp.minimum(anp.maximum(3.0, x[0]), x[1]),
            np.array([2.0, 4.0]),
            "np.minimum(np.maximum(x, lower), upper)",
        ),
        (lambda x: anp.linalg.norm(x, 1), lambda x: anp.sum(anp.abs(x)), X, "np.sum(np.abs(x))"),
        (
            lambda A: anp.linalg.norm(A, 2),
            lambda A: anp.linalg.svd(A, compute_uv=False)[0],
            MATRIX,
            "np.linalg.svd(A, compute_uv=False)[0]",
        ),
        (
            lambda A: anp.linalg.norm(A, 1),
            lambda A: anp.max(anp.sum(anp.abs(A), axis=0)),
            MATRIX,
            "np.max(np.sum(np.abs(A), axis=0))",
        ),
        (
            lambda A: anp.linalg.svd(A)[1],
            lambda A: anp.linalg.svd(A, full_matrices=False)[1],
            MATRIX,
            "full_matrices=False",
        ),
        (
            lambda x: anp.pad(x, 1, mode="edge"),
            lambda x: anp.concatenate([x[:1], x, x[-1:]]),
            X,
            "np.concatenate([x[:1], x, x[-1:]])",
        ),
        (anp.sort, lambda A: anp.array([anp.sort(row) for row in A]), MATRIX, "np.array([np.sort(row)"),
        (lambda x: anp.exp(x, where=x > 0, out=np.zeros(3)), anp.exp, X, "leave its keywords out"),
    ],
)
def test_calls_that_rules_of_autograd_refuse_get_a_note_on_what_to_write(fun, instead, x, remedy):
    with pytest.raises((KeyError, NotImplementedError, TypeError, AssertionError)) as caught:
        parallel_jacobian(fun)(x)
    assert remedy in caught.value.__notes__[0]
    np.testing.assert_allclose(instead(x), fun(x))
    np.testing.assert_allclose(parallel_jacobian(instead)(x), autograd.jacobian(instead)(x))


def test_filters_of_scipy_get_a_note_where_they_take_no_objects():
    assert "SciPy's solvers, filters" in remedy_for(NotImplementedError("input type 'object' not supported"))


@pytest.mark.parametrize("error", [ValueError("no such model"), KeyError("all returned NotImplemented")])
def test_other_errors_of_users_get_no_such_note(error):
    def fun(x):
        raise error

    with pytest.raises(type(error)) as caught:
        parallel_jacobian(fun)(X)
    assert len(caught.value.__notes__) == 1


def test_the_line_that_calls_a_function_without_a_rule_is_named():
    def fun(x):
        assert anp.median(x) > 0.0
        y = anp.sin(x)
        return 2.0 * anp.cumprod(y)

    line = fun.__code__.co_firstlineno + 3
    for jacobian in (parallel_jacobian(fun), parallel_jacobian(fun, method="adjoint")):
        with pytest.raises(NotImplementedError, match="no VJP for 'cumprod'") as caught:
            jacobian(X)
        assert f"cumprod is called at test_errors.py:{line}" in caught.value.__notes__
        assert not any("median" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("function", [anp.asarray, anp.ascontiguousarray, anp.copy])
def test_functions_that_copy_a_traced_value_are_said_to_be_needless(function):
    with pytest.raises(NotImplementedError, match="leave the call out"):
        parallel_jacobian(lambda x: function(x) * 2.0)(X)
