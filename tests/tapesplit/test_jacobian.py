"""The face of tapesplit: how `parallel_jacobian` is called, and what it says about bad input."""

import functools
import pickle
import re
import warnings
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from inspect import signature
from types import NoneType
from typing import Any, NamedTuple, get_overloads, get_type_hints

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from autograd.extend import defvjp, primitive
from autograd.misc.flatten import flatten
from autograd.scipy.stats import norm, t
from scipy import optimize
from scipy.sparse import csr_array

import tapesplit
from tapesplit import (
    Callback,
    JacobianFunction,
    defvector,
    execute,
    find_separators,
    fun_and_jac,
    parallel_jacobian,
    record,
)
from tapesplit.errors import OutputTypeError, TapesplitError
from tapesplit.names import find_primitive, primitive_name
from tapesplit.recording.tracing import tracing_lock
from tapesplit.rules import Elementwise, find_rule, registered
from tapesplit.structures.pickling import dumps

X = onp.linspace(0.3, 0.9, 4)
Y = onp.linspace(-0.5, 0.5, 3)


def two_arrays(x, y, *, scale=1.0):
    return scale * np.sin(x)[:, None] * np.exp(y) + np.sum(x * x)


# Calls


def test_decorator_bare_and_with_options():
    @parallel_jacobian
    def bare(x):
        return x * x

    @parallel_jacobian(argnum=1, method="tangent", machines=2)
    def with_options(_a, x):
        return x * x

    onp.testing.assert_array_equal(bare(X), onp.diag(2 * X))
    onp.testing.assert_array_equal(with_options(0, X), onp.diag(2 * X))


def test_keeps_name_and_documentation():
    @parallel_jacobian
    def residuals(x):
        """Return residuals."""
        return x

    assert (residuals.__name__, residuals.__doc__) == ("residuals", "Return residuals.")
    assert residuals.__wrapped__(3.0) == 3.0
    assert get_type_hints(type(residuals))["__wrapped__"] == Callable[..., Any]  # type checkers know it
    assert "residuals with respect to argument 0" in repr(residuals)


def test_one_argnum_and_several():
    want = [jacobian(two_arrays, i)(X, Y, scale=2.0) for i in (0, 1)]
    onp.testing.assert_allclose(parallel_jacobian(two_arrays, 1)(X, Y, scale=2.0), want[1], rtol=1e-14)
    for argnum in ((0, 1), [0, 1], (0, -1)):
        both = parallel_jacobian(two_arrays, argnum)(X, Y, scale=2.0)
        assert isinstance(both, tuple)
        for got, expected in zip(both, want, strict=True):
            onp.testing.assert_allclose(got, expected, rtol=1e-14)
    swapped = parallel_jacobian(two_arrays, (1, 0))(X, Y, scale=2.0)
    onp.testing.assert_allclose(swapped[0], want[1], rtol=1e-14)
    (single,) = parallel_jacobian(two_arrays, (-1,))(X, Y, scale=2.0)
    onp.testing.assert_allclose(single, want[1], rtol=1e-14)
    assert parallel_jacobian(two_arrays, onp.int64(1))(X, Y).shape == (4, 3, 3)


@pytest.mark.parametrize("argnum", [onp.array([1, 0]), onp.array([1, 0], onp.uint8), [onp.int64(1), 0]])
def test_arrays_of_positions_are_sequences(argnum):
    found = parallel_jacobian(two_arrays, argnum)(X, Y)
    for got, position in zip(found, (1, 0), strict=True):
        onp.testing.assert_array_equal(got, parallel_jacobian(two_arrays, position)(X, Y))
    assert isinstance(parallel_jacobian(two_arrays, onp.array(1))(X, Y), onp.ndarray)


@pytest.mark.parametrize("argnum", [[0], onp.array([0])])
def test_positions_that_are_changed_later_change_nothing(argnum):
    jac = parallel_jacobian(two_arrays, argnum)
    argnum[0] = 1
    (found,) = jac(X, Y)
    onp.testing.assert_array_equal(found, parallel_jacobian(two_arrays, 0)(X, Y))
    assert repr(jac) == "<Jacobian of two_arrays with respect to argument (0,)>"


def test_types_of_the_two_ways_to_call():
    decorating, wrapping = sorted(
        (get_type_hints(overload) for overload in get_overloads(parallel_jacobian)),
        key=lambda hints: hints["return"] is JacobianFunction,
    )
    assert wrapping.pop("return") is JacobianFunction
    assert decorating.pop("return") == Callable[[Callable[..., Any]], JacobianFunction]
    assert decorating.pop("fun") is NoneType
    assert wrapping.pop("fun") == Callable[..., Any]
    real = get_type_hints(parallel_jacobian)
    assert wrapping == decorating == {name: real[name] for name in wrapping}
    assert set(wrapping) == {*signature(parallel_jacobian).parameters} - {"fun"}


def test_argument_that_is_not_used():
    first, second = parallel_jacobian(lambda x, _y: x * x, argnum=(0, 1))(X, Y)
    onp.testing.assert_array_equal(first, onp.diag(2 * X))
    onp.testing.assert_array_equal(second, onp.zeros((4, 3)))


def test_the_same_array_as_two_arguments():
    first, second = parallel_jacobian(lambda x, y: x * y * y, argnum=(0, 1))(X, X)
    onp.testing.assert_allclose(first, onp.diag(X * X), rtol=1e-15)
    onp.testing.assert_allclose(second, onp.diag(2 * X * X), rtol=1e-15)


def test_value_and_jacobian():
    calls = []

    def fun(x):
        calls.append(1)
        return np.sin(x)

    value, derivative = parallel_jacobian(fun).value_and_jacobian(X)
    onp.testing.assert_array_equal(value, onp.sin(X))
    onp.testing.assert_array_equal(derivative, onp.diag(onp.cos(X)))
    assert calls == [1]


def test_lambda_partial_callable_object_and_builtin():
    class Model:
        def __call__(self, x, power):
            return x**power

    onp.testing.assert_allclose(parallel_jacobian(Model())(X, 3), onp.diag(3 * X**2), rtol=1e-15)
    cube = functools.partial(Model(), power=3)
    onp.testing.assert_allclose(parallel_jacobian(cube)(X), onp.diag(3 * X**2), rtol=1e-15)
    onp.testing.assert_array_equal(parallel_jacobian(np.sin)(X), onp.diag(onp.cos(X)))
    assert parallel_jacobian(cube).plan(X).name


class Material:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    @parallel_jacobian(argnum=1)
    def tangent_modulus(self, x):
        return self.stiffness * x**2

    @staticmethod
    @parallel_jacobian
    def static(x):
        return x**2

    @classmethod
    def made(cls):
        return cls(5.0)


def test_methods_count_self():
    soft, hard = Material(1.0), Material(100.0)
    onp.testing.assert_allclose(soft.tangent_modulus(X), onp.diag(2 * X), rtol=1e-15)
    onp.testing.assert_allclose(hard.tangent_modulus(X), onp.diag(200 * X), rtol=1e-15)
    onp.testing.assert_allclose(Material.tangent_modulus(soft, X), onp.diag(2 * X), rtol=1e-15)
    onp.testing.assert_allclose(hard.tangent_modulus.value_and_jacobian(X)[0], 100 * X**2)
    assert len(hard.tangent_modulus.plan(X).chain) == 1
    assert Material.static(X).shape == (4, 4)
    info = Material.tangent_modulus.cache_info()
    assert info.misses == 1
    assert info.hits >= 4
    assert soft.tangent_modulus.explain_miss(X) is None


def test_bound_method_of_an_object():
    class Model:
        def residual(self, x):
            return x * 3.0

    onp.testing.assert_array_equal(parallel_jacobian(Model().residual)(X), 3.0 * onp.eye(4))


def test_auxiliary_result():
    def fun(x, y):
        z = x * y
        return np.sin(z), {"z": z, "parts": [x, (y, 2.0)], "name": "aux"}

    derivative, aux = parallel_jacobian(fun, has_aux=True)(X, 2.0)
    onp.testing.assert_allclose(derivative, onp.diag(2 * onp.cos(2 * X)), rtol=1e-15)
    assert type(aux["z"]) is onp.ndarray
    onp.testing.assert_array_equal(aux["z"], 2 * X)
    assert type(aux["parts"][0]) is onp.ndarray
    assert aux["parts"][1] == (2.0, 2.0)
    assert aux["name"] == "aux"
    (value, again), same = parallel_jacobian(fun, has_aux=True).value_and_jacobian(X, 2.0)
    onp.testing.assert_array_equal(value, onp.sin(2 * X))
    onp.testing.assert_array_equal(same, derivative)
    onp.testing.assert_array_equal(again["z"], 2 * X)


class Log(list):
    def __init__(self, name, size):
        super().__init__([name] * size)


@dataclass(frozen=True)
class State:
    energy: object
    name: str = "start"
    later: object = field(init=False)


class Frozen(dict):
    def __setitem__(self, key, value):
        raise TypeError("frozen")


class Point(NamedTuple):
    x: object
    y: object


def test_auxiliary_results_without_traced_values_are_passed_on():
    cyclic = {}
    cyclic["self"] = cyclic
    for aux in (
        Log("a", 2),
        cyclic,
        optimize.OptimizeResult(x=1.0),
        defaultdict(list, a=[1]),
        [1, 2],
        State(1.0),
        None,
    ):
        _, found = parallel_jacobian(lambda x, aux=aux: (x * x, aux), has_aux=True)(X)
        assert found is aux


def test_auxiliary_results_with_traced_values_keep_their_types():
    def fun(x):
        log, counts, cyclic = Log(x, 2), defaultdict(list, total=np.sum(x)), [x, [1.0]]
        cyclic += [cyclic, (cyclic, cyclic[1])]
        nested = [2.0 * x]
        for _ in range(40):  # 2**40 paths
            nested = [nested, nested]
        objects = onp.array([None, "text"])
        objects[0] = x[0]
        return x * x, (
            log,
            counts,
            State(x),
            Point(x, 2.0),
            Frozen(x=x),
            objects,
            cyclic,
            nested,
        )

    _, (log, counts, state, point, result, objects, cyclic, nested) = parallel_jacobian(fun, has_aux=True)(X)
    kinds = [type(part) for part in (log, counts, state, point, result)]
    assert kinds == [Log, defaultdict, State, Point, dict]  # nobody can copy a frozen one
    for found in (*log, state.energy, point.x, result["x"], cyclic[0]):
        assert type(found) is onp.ndarray
        onp.testing.assert_array_equal(found, X)
    assert (counts["total"], counts["none"], state.name, point.y) == (X.sum(), [], "start", 2.0)
    assert [*objects] == [X[0], "text"]
    assert cyclic[2] is cyclic
    assert cyclic[3][0] is cyclic
    assert cyclic[3][1] is cyclic[1]
    assert nested[0] is nested[1]


def test_parts_of_a_split_are_a_list_in_an_auxiliary_result():
    _, aux = parallel_jacobian(lambda x: (x**2, np.split(x, 2)), has_aux=True)(onp.arange(4.0))
    assert type(aux) is list
    onp.testing.assert_array_equal(np.sum(aux, axis=0), [2.0, 4.0])


def test_auxiliary_result_under_another_derivative():
    jac = parallel_jacobian(lambda x: (x**3, x * 2.0), has_aux=True)
    got = jacobian(lambda x: np.sum(jac(x)[0]) + np.sum(jac(x)[1] ** 2))(X)
    onp.testing.assert_allclose(got, 6 * X + 8 * X, rtol=1e-14)


def test_function_is_called_once_per_jacobian():
    calls = []

    def fun(x):
        calls.append(1)
        return np.tanh(x)

    jac = parallel_jacobian(fun)
    jac(X)
    jac.plan(X)
    jac(X)
    assert len(calls) == 3


# Results


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("dtype", [onp.float64, onp.float32, onp.float16, onp.longdouble])
def test_type_of_the_result_is_autograds(method, dtype):
    x = onp.array([0.5, 1.0, 2.0], dtype)
    matrix = onp.ones((2, 3))
    single = onp.ones((2, 3), onp.float32)
    for fun in (
        np.sin,
        lambda x: x * 2,
        lambda x: x**2,
        np.sum,
        lambda x: matrix @ x,
        lambda x: single @ x,
        lambda x: np.concatenate([x, x]),
        lambda x: np.array([x[0], x[1] * x[2]]),
        lambda x: x[1:],
        lambda x: np.sin(x) + onp.ones(3),
        lambda x: np.tanh(np.sum(x) * onp.ones(3, onp.float32)),
    ):
        want = jacobian(fun)(x)
        got = parallel_jacobian(fun, method=method)(x)
        assert got.dtype == want.dtype
        onp.testing.assert_allclose(got, want, rtol=20 * onp.finfo(dtype).eps)


def test_long_doubles_keep_their_digits():
    x = onp.array([1, 2], onp.longdouble) / 3
    got = parallel_jacobian(lambda x: np.exp(x) * x)(x)
    want = onp.diag(onp.exp(x) * (x + 1))
    assert onp.abs(got - want).max() <= 4 * onp.finfo(onp.longdouble).eps


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    "step",
    [
        lambda a, b: _power_times(a, b, n=3),
        lambda a, b: _power_times(a, b) + a,
        lambda a, b: _power_times(a, 2.0, n=3) + b,
        lambda a, b: np.clip(a, a_min=-0.2, a_max=0.6) * b,
        lambda a, b: norm.logpdf(a, loc=0.3, scale=2.0) * b,
        lambda a, b: t.logpdf(a, df=3.0) * b,
        lambda a, b: np.sum(np.array([a, b]), initial=2.0),
    ],
)
def test_keyword_arguments_in_scalar_code(step, method):
    def fun(x):
        a = [x[i] for i in range(4)]
        for _ in range(10):
            a = [np.tanh(step(a[i - 1], a[i])) + 0.1 * a[i] for i in range(4)]
        return np.array(a)

    want = jacobian(fun)(X)
    got = parallel_jacobian(fun, method=method)(X)
    onp.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * onp.abs(want).max())


@primitive
def _power_times(x, y, n=2):
    return x**n * y


defvjp(
    _power_times,
    lambda _ans, x, y, n=2: lambda g: g * n * x ** (n - 1) * y,
    lambda _ans, x, _y, n=2: lambda g: g * x**n,
)
tapesplit.defvector(_power_times, lambda _ans, x, y, n=2: n * x ** (n - 1) * y, lambda _ans, x, _y, n=2: x**n)


SOME = onp.array([1, 0, 1, 1], bool)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sum(x * x, where=SOME),
        lambda x: np.mean(x * x, where=SOME),
        lambda x: np.var(x * x, where=SOME, ddof=1),
        lambda x: np.std(x * x, where=SOME),
        lambda x: np.std(x * x, correction=1),
        lambda x: np.prod(x * x, where=SOME, initial=3.0),
        lambda x: np.max(x * x, where=SOME, initial=0.1),
        lambda x: np.min(x * x, initial=-0.1) + np.sum(x),
        lambda x: np.mean(np.outer(x, x), axis=0, where=SOME[:, None]) * x,
    ],
)
def test_reductions_of_some_elements(fun, method):
    """autograd's own rules ignore which ones; differences tell."""
    steps = 1e-6 * onp.eye(4)
    want = onp.stack([(fun(X + h) - fun(X - h)) / 2e-6 for h in steps], axis=-1)
    onp.testing.assert_allclose(parallel_jacobian(fun, method=method)(X), want, rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sin(x, where=SOME, out=None),
        lambda x: np.exp(x, dtype=onp.float32),
        lambda x: np.add(x, x, where=SOME, out=None),
        lambda x: np.subtract(x, 1.0, dtype=int, casting="unsafe"),
        lambda x: np.negative(x, where=SOME, out=None),
        lambda x: np.multiply(x, 2.0, where=SOME, out=None),
        lambda x: np.mod(x, 0.5, where=SOME, out=None),
        lambda x: np.conj(x, where=SOME, out=None),
        lambda x: np.matmul(SOME, x, dtype=onp.float32),
    ],
)
def test_keywords_that_autograd_refuses(fun, method):
    """Whoever ignored them would return a wrong number."""
    with pytest.raises(TypeError, match="unexpected keyword"), tracing_lock():
        jacobian(fun)(X)
    with pytest.raises(TypeError, match="unexpected keyword") as caught:
        parallel_jacobian(fun, method=method)(X)
    assert any("while computing the Jacobian" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_keywords_that_change_nothing(method):
    got = parallel_jacobian(lambda x: np.add(np.negative(x, order="C"), 3.0, casting="safe"), method=method)(
        X
    )
    onp.testing.assert_array_equal(got, -onp.eye(4))


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize(
    "fun",
    [
        np.sum,
        lambda x: x + 1,
        lambda x: x[::-1] + 1,
        lambda x: onp.ones((3, 4)) @ x + 1,
        lambda x: x + onp.zeros((2, 4)),
        lambda x: x[:1] + onp.zeros(2),
    ],
)
def test_jacobians_can_be_written_to(fun, method):
    """Spread derivatives are views with one number for many elements inside, but not for the user."""
    got = parallel_jacobian(fun, method=method)(X)
    want = jacobian(fun)(X)
    got += 1.0
    onp.testing.assert_array_equal(got, want + 1.0)


@pytest.mark.parametrize("dtype", [int, onp.int8, onp.uint16, bool])
def test_integers_have_jacobians_in_double_precision(dtype):
    x = onp.array([1, 0, 1], dtype)
    for method in ("auto", "tangent", "adjoint"):
        got = parallel_jacobian(lambda x: np.sin(x * 0.5) * 2.0, method=method)(x)
        assert got.dtype == onp.float64
        onp.testing.assert_allclose(got, onp.diag(onp.cos(x * 0.5)), rtol=1e-15)


@pytest.mark.parametrize("fun", [lambda _x: onp.ones(2), lambda _x: 3.0, lambda x: x[:2] > 0.1])
def test_output_independent_of_the_input(fun):
    with pytest.warns(UserWarning, match="Output seems independent of input") as caught:
        got = parallel_jacobian(fun)(X)
    assert [warning.filename for warning in caught] == [__file__]
    onp.testing.assert_array_equal(got, onp.zeros((*onp.shape(fun(X)), 4)))


@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_output_independent_of_several_inputs():
    found = parallel_jacobian(lambda _x, _y: onp.ones(2), argnum=(0, 1))(X, Y)
    assert [block.shape for block in found] == [(2, *X.shape), (2, *Y.shape)]
    assert not any(block.any() for block in found)


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_infinite_and_undefined_numbers(method):
    """They reach the rows, or going backwards the columns, that depend on them, and nothing else."""
    x = onp.array([0.0, onp.nan, onp.inf, 1.0])
    with onp.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = parallel_jacobian(np.sqrt, method=method)(x)
        onp.testing.assert_array_equal(onp.diagonal(got), [onp.inf, onp.nan, 0.0, 0.5])
        finite = got[:, 3] if method == "adjoint" else got[3]
        onp.testing.assert_array_equal(finite, [0, 0, 0, 0.5])
        got = parallel_jacobian(lambda x: np.exp(x[3:]) * x[0], method=method)(x)
        onp.testing.assert_array_equal(got, [[onp.e, 0, 0, 0]])


# Bad input


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fun": 3}, TypeError, "needs a function, but got 3; write parallel_jacobian"),
        ({"fun": X}, TypeError, "needs a function"),
        ({"fun": X, "argnum": np.sin}, TypeError, "needs a function"),
        ({"fun": [*range(5000)]}, TypeError, r"needs a function, but got \[0, 1, [\d, ]{53}; write"),
        ({"argnum": 1.0}, TypeError, "argnum must be an integer or a sequence of integers, but got 1.0"),
        ({"argnum": "x"}, TypeError, "argnum must be an integer"),
        ({"argnum": True}, TypeError, "argnum must be an integer"),
        ({"argnum": None}, TypeError, "argnum must be an integer"),
        ({"argnum": (0, "y")}, TypeError, "argnum must be an integer"),
        ({"argnum": (0, True)}, TypeError, "argnum must be an integer"),
        ({"argnum": b"0"}, TypeError, "argnum must be an integer"),
        ({"argnum": {0, 1}}, TypeError, "argnum must be an integer"),
        ({"argnum": X}, TypeError, r"but got array\(\[.*\]\); write parallel_jacobian\(f\)\(x\)$"),
        ({"argnum": "x"}, TypeError, "but got 'x'$"),
        ({"argnum": onp.array([0.0])}, TypeError, "argnum must be an integer"),
        ({"argnum": onp.array([[0, 1]])}, TypeError, "argnum must be an integer"),
        ({"argnum": ()}, ValueError, "argnum is empty"),
        ({"argnum": onp.array([], int)}, ValueError, "argnum is empty"),
        ({"has_aux": 3}, TypeError, "has_aux must be True or False, but got 3"),
        ({"progress": "yes"}, TypeError, "progress must be True or False, but got 'yes'"),
        ({"method": "forward"}, ValueError, "method must be one of 'auto', 'dp', .* but got 'forward'"),
        ({"method": onp.array(["dp"])}, ValueError, r"method must be one of .* but got array\("),
        ({"method": onp.array(["dp", "dp"])}, ValueError, r"method must be one of .* but got array\("),
        ({"cost": "time"}, ValueError, "cost must be one of .* but got 'time'"),
        (
            {"executor": 4},
            TypeError,
            "executor must be a concurrent.futures executor of threads, but got int; give a",
        ),
        ({"executor": ProcessPoolExecutor()}, TypeError, "got ProcessPoolExecutor: tapes cannot leave"),
        ({"callback": print}, TypeError, "callback must be a tapesplit.Callback, but got builtin"),
        ({"machines": 0}, ValueError, "machines must be a positive integer or None, but got 0"),
        ({"machines": -1}, ValueError, "machines must be"),
        ({"machines": 1.5}, TypeError, "machines must be"),
        ({"machines": True}, TypeError, "machines must be"),
        ({"memory_limit": 0}, ValueError, "memory_limit must be a positive integer"),
        ({"memory_limit": 1e9}, TypeError, "got 1000000000.0; write 1000000000"),
        ({"memory_limit": "1G"}, TypeError, "memory_limit must be a positive integer"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        parallel_jacobian(**({"fun": np.sin} | options))


@pytest.mark.parametrize("event", ["start", "pretask", "posttask", "finish", "during"])
def test_bad_callback(event):
    with pytest.raises(TypeError, match=f"{event} of a .*Callback must be a function or None, but got 3"):
        Callback(**{event: 3})


def test_a_method_hears_of_self():
    class Model:
        @parallel_jacobian
        def scaled(self, x):
            return 2.0 * x

    with pytest.raises(TypeError, match=r"argument 0 is of type Model, .* for a method, .* give argnum=1"):
        Model().scaled(X)


def test_an_array_of_another_package_does_not_hear_of_self():
    class Tensor:
        def __array__(self):
            return X

    with pytest.raises(TypeError, match=r"of type Tensor, .*\(np\.asarray\(x, dtype=float\)\)$"):
        parallel_jacobian(onp.sin)(Tensor())


def test_bad_function_for_a_decorator_with_options():
    with pytest.raises(TypeError, match="needs a function, but got 3"):
        parallel_jacobian(machines=2)(3)


def test_class_methods_and_static_methods_are_decorated_outside():
    def fun(*args):
        return args[-1] ** 2

    with pytest.raises(TypeError, match=r"got a classmethod; put @classmethod outside, .*\(argnum=1\)"):
        parallel_jacobian(classmethod(fun))
    with pytest.raises(
        TypeError, match=r"got a staticmethod; put @staticmethod outside, .* above @parallel_"
    ):
        parallel_jacobian(argnum=1)(staticmethod(fun))

    class Model:
        of_class = classmethod(parallel_jacobian(fun, argnum=1))
        static = staticmethod(parallel_jacobian(fun))

    for model in (Model, Model()):
        for jac in (model.of_class, model.static):
            onp.testing.assert_array_equal(jac(X), onp.diag(2.0 * X))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"a": 1.0}, "argument 0 is a dict; .* pass several arrays as several arguments"),
        ((1.0, 2.0), r"argument 0 is a tuple; .* write np.array\(x, dtype=float\)"),
        ([1.0, 2.0], r"argument 0 is a list; .* write np.array\(x, dtype=float\)"),
        ([X, 2.0], r"argument 0 is a list; .* autograd\.misc\.flatten\.flatten"),
        ("text", "argument 0 is a string; a Jacobian is taken with respect to an array"),
        (X + 0j, "argument 0 is complex; .* pass real and imaginary part"),
        (1j, "argument 0 is complex"),
        (onp.array([1.0, None]), "argument 0 is an array of object values"),
        (onp.array(["a"]), "argument 0 is an array of <U1 values"),
        (onp.array([0], "datetime64[s]"), r"argument 0 is an array of datetime64\[s\] values"),
        (None, "argument 0 is of type NoneType, which autograd cannot differentiate"),
        (3, "argument 0 is of type int, which autograd cannot .* pass a float"),
        (object, "argument 0 is of type type.*for a method, whose argument 0 is self or cls, give argnum=1"),
        (onp.ma.masked_array([1.0]), r"argument 0 is of type MaskedArray.*\(x\.filled"),
    ],
)
def test_bad_argument(argument, message):
    with pytest.raises(TypeError, match=message) as caught:
        parallel_jacobian(lambda x: x)(argument)
    assert isinstance(caught.value, TapesplitError)


@pytest.mark.parametrize(("argnum", "count"), [(2, 2), (-3, 2), (0, 0)])
def test_argnum_without_an_argument(argnum, count):
    with pytest.raises(
        IndexError, match=f"argnum is {argnum}, but .* called with {count} positional arguments"
    ):
        parallel_jacobian(lambda *args: args[0], argnum)(*[X] * count)


def test_argnum_twice():
    with pytest.raises(ValueError, match="names an argument of two_arrays twice"):
        parallel_jacobian(two_arrays, (0, -2))(X, Y)
    with pytest.raises(ValueError, match=r"argnum \(1, 1\) names an argument twice"):
        parallel_jacobian(two_arrays, (1, 1))


def test_a_position_from_the_end_means_that_of_the_tape():
    def product(a, b):
        return a * b

    last = parallel_jacobian(product, -1)
    assert last.of_tape(record(product, 2.0, 3.0, argnum=1)) == 2.0
    for argnum in (0, (0, 1)):
        with pytest.raises(ValueError, match="but this Jacobian is with respect to argument 1;"):
            last.of_tape(record(product, 2.0, 3.0, argnum=argnum))


def test_bound_arguments_do_not_shift_positions_from_the_end():
    class Model:
        @functools.partial(parallel_jacobian, argnum=-1)
        def energy(self, x):
            return x * x

    assert (Model().energy.argnum, Model().energy.argnum_of_call) == (-1, -1)
    assert Model().energy(3.0) == 6.0
    assert Model().energy.of_tape(Model().energy.tape(3.0)) == 6.0


def test_tapes_of_a_bound_function_count_its_arguments():
    class Model:
        def energy(self, x, y):
            return x * y

        force = parallel_jacobian(energy, 1)

    model = Model()
    assert model.force.of_tape(record(model.energy, 2.0, 3.0)) == 3.0
    assert model.force.of_tape(model.force.tape(2.0, 3.0)) == 3.0
    with pytest.raises(
        ValueError, match=r"respect to argument 1, but this Jacobian is with respect to argument 0;"
    ):
        model.force.of_tape(record(model.energy, 2.0, 3.0, argnum=1))
    with pytest.raises(ValueError, match="recorded with respect to argument 2"):
        model.force.of_tape(record(Model.energy, model, 2.0, 3.0, argnum=2))


@pytest.mark.parametrize("argnum", [1, (0, 1), (1, 0), (0,)])
def test_tapes_of_other_arguments_are_refused(argnum):
    def product(a, b):
        return a * b

    jac = parallel_jacobian(product)
    tape = record(product, 2.0, 3.0, argnum=argnum)
    if argnum == (0,):
        assert jac.of_tape(tape) == 3.0
    else:
        with pytest.raises(
            ValueError, match=r"recorded with respect to .* but this Jacobian is with respect to argument 0"
        ):
            jac.of_tape(tape)
        assert onp.sum(parallel_jacobian(product, argnum).of_tape(tape)) == (2.0 if argnum == 1 else 5.0)
    last = parallel_jacobian(product, -1)
    assert last.of_tape(last.tape(2.0, 3.0)) == 2.0


def test_an_input_that_cannot_be_differentiated_is_named_by_its_position():
    with pytest.raises(TypeError, match="argument 1 is a list"):
        parallel_jacobian(two_arrays, -1)(X, [1.0, 2.0])


def test_a_dict_of_inputs_can_be_flattened_as_its_message_says():
    def fun(d):
        return d["a"] * d["b"] + np.sum(d["c"])

    d = {"a": X, "b": 2.0, "c": onp.eye(2)}
    with pytest.raises(TypeError, match=r"flatten\(p\) .* lambda v: f\(unflatten\(v\)\) at v"):
        parallel_jacobian(fun)(d)
    v, unflatten = flatten(d)
    found = parallel_jacobian(lambda v: fun(unflatten(v)))(v)
    onp.testing.assert_array_equal(found, onp.hstack([2.0 * onp.eye(4), X[:, None], onp.ones((4, 4))]))


class ArrayOfAnotherPackage:
    """Holds objects, as what pandas makes of traced values does."""

    def __array__(self, dtype=None, copy=None):
        return onp.array([None, 1.0])


@pytest.mark.parametrize(
    ("fun", "message"),
    [
        (lambda x: (x, x), "returned a tuple; a Jacobian needs one array: join the parts"),
        (lambda x: [x[0], x[1]], "returned a list"),
        (lambda x: {"a": x}, "returned a dict"),
        (lambda x: x * 1j, "returned complex values; return real and imaginary part"),
        (
            lambda x: onp.array([x[0], x[1]]),
            "hides a traced value .* in the array of objects that it returned; .* np.array, .* autograd",
        ),
        (lambda x: np.diag([x[0], x[1]]), r"np.array\(\[a, b\]\) instead of lists"),
        (lambda x: onp.eye(2) @ [np.cos(x[0]), np.sin(x[0])], r"np.array\(\[a, b\]\) instead of lists"),
        (onp.vectorize(lambda a: a if a > 0.0 else -a), "instead of np.vectorize"),
        (
            lambda x: onp.ma.array([1.0, 2.0, 3.0, 4.0], mask=[0, 1, 0, 0]) * x,
            "plain arrays instead of masked",
        ),
        (lambda x: np.dot(csr_array(onp.eye(4)), x), "from matrices of scipy.sparse"),
        (
            lambda x: np.dot(onp.eye(4), b=x),
            "objects that it returned; .*, and pass traced values by position",
        ),
        (
            lambda x: primitive(lambda a: a * x)(2.0 * x),
            "where it calls <lambda>: in what this primitive closes over; give it traced values as arguments",
        ),
        (
            lambda x: primitive(lambda a, d: a * d["b"])(2.0 * x, {"b": x}),
            "where it calls <lambda>: in a dict; pass what it holds as arguments of their own",
        ),
        (lambda _x: ArrayOfAnotherPackage(), r"returned ArrayOfAnotherPackage, .* write x\.to_numpy\(\)"),
        (lambda _x: None, "returned None, which has no derivative; .* return statement is missing"),
        (np.histogram, "returned tuple, which has no derivative; return an array of floats"),
        (lambda x: (yield x), "returned generator, .* take async away, return an array instead of yielding"),
        (lambda _x: "text", "returned str, which has no derivative"),
        (lambda _x: onp.array(["a"]), "returned an array of <U1 values, which has no derivative"),
        (lambda _x: onp.array([None]), "returned an array of object values, which has no derivative"),
        (lambda x: onp.zeros_like(x) + x, "array of object values, .*objects come from plain NumPy, such"),
    ],
)
@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_bad_result(fun, message):
    with pytest.raises(TypeError) as caught:
        parallel_jacobian(fun)(X)
    assert isinstance(caught.value, TapesplitError)
    assert re.search(message, "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())]))


@pytest.mark.parametrize(
    ("fun", "has_line"),
    [
        (lambda x: np.dot(x, [x[0]] * 4), True),
        (lambda x: x * (x[0], 1.0, 2.0, 3.0), True),
        (lambda x: np.maximum(x, [x[0], 5.0, 6.0, 7.0]), False),
        (lambda x: np.concatenate(iter([x, [x[0]]]))[:3] * 2.0, True),
        (lambda x: (x * [x[0], 1.0, 2.0, 3.0])[1] * 2.0, True),
        (lambda x: np.sum((x * onp.array([x[0], 1.0, 2.0, 3.0]))[1:]) * x, False),
        (lambda x: np.einsum("i,i->i", x, [x[0], 1.0, 2.0, 3.0])[1], True),
        (lambda x: np.outer(x, [x[0], 2.0])[0, 1] * x[0], True),
    ],
)
def test_a_traced_value_that_is_hidden_among_operands(fun, has_line):
    message = (
        r"<lambda> hides a traced value from autograd where it calls \w+: in "
        r"(an array of objects; take |a (list|tuple); make an array of it by )np.array.* autograd"
    )
    with pytest.raises(OutputTypeError, match=message) as caught:
        parallel_jacobian(fun, method="adjoint")(X)
    # Operators with arrays are recorded without a look at what these hold, and results may hold no box.
    notes = "".join(getattr(caught.value, "__notes__", ()))
    assert has_line == ("is called at test_jacobian.py:" in notes)


@pytest.mark.parametrize(
    ("fun", "same"),
    [
        (lambda x: np.concatenate([[x[0]], x[1:3], (2.0,)]), lambda x: x[:3]),
        (lambda x: np.concatenate([[x[:2], [1.0, x[3]]], [[5.0, 6.0]]]), lambda x: np.append(x[:2], x[3])),
        (
            lambda x: np.concatenate([[[x[0]], [x[1]]], [[x[2]], [0.0]]], axis=1),
            lambda x: x[onp.array([0, 2, 1])],
        ),
        (lambda x: np.hstack(([1.0], [x[1]], x)), lambda x: np.append(x[1], x)),
        (lambda x: np.append(onp.ones((1, 1)), [[x[0]]], axis=-1), lambda x: x[:1]),
        (lambda x: np.vstack([[[1.0, 2.0], [3.0, 4.0]], x[:2]]), lambda x: x[:2]),
        (lambda x: np.vstack([[x[0], 1.0], x[2:]]), lambda x: np.append(x[0], x[2:])),
        (lambda x: np.row_stack(([x[0], 1.0], x[2:])), lambda x: np.append(x[0], x[2:])),
    ],
)
def test_lists_of_traced_numbers_are_joined(fun, same):
    """autograd does not see them: it returns zeros."""
    tapesplit.check_jacobian(fun, X)
    found = parallel_jacobian(fun)(X)
    assert found.shape == (*np.shape(fun(X)), 4)
    rows = found.reshape(-1, 4)
    places = rows.any(axis=1)
    onp.testing.assert_array_equal(rows[places], jacobian(same)(X))
    nested = jacobian(parallel_jacobian(lambda x: fun(x * x)))(X)
    expected = jacobian(jacobian(lambda x: same(x * x)))(X)
    onp.testing.assert_array_equal(nested.reshape(-1, 4, 4)[places], expected)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_hidden_values_that_no_derivative_depends_on(method):
    def fun(x):
        return np.concatenate(iter([x, [x[0], 2.0]]))[-1] * x * len(x * ([x[0]] * 4))

    onp.testing.assert_array_equal(parallel_jacobian(fun, method=method)(X), 8.0 * onp.eye(4))


def test_functions_of_numpy_take_their_arguments_by_position_only():
    with pytest.raises(TypeError, match=r"exp\(\) missing 1 required positional argument"):
        parallel_jacobian(lambda x: np.exp(x=x))(X)


def test_result_that_is_a_boxed_container():
    from autograd.builtins import tuple as atuple

    with pytest.raises(TypeError, match="returned tuple, which has no derivative"):
        parallel_jacobian(lambda x: atuple((x, x)))(X)


def test_auxiliary_result_that_is_missing():
    jac = parallel_jacobian(lambda x: x * 2.0, has_aux=True)
    for derivative in (jac, parallel_jacobian(lambda x: np.sum(jac(x)[0]))):
        with pytest.raises(TypeError, match=r"has_aux=True the function must return a tuple .* type ndarray"):
            derivative(X)


def test_mutation_in_place_is_autograds_own_error():
    def fun(x):
        x[0] = 1.0
        return x

    with pytest.raises(TypeError, match="does not support item assignment"), tracing_lock():
        jacobian(fun)(X)
    with pytest.raises(TypeError, match="does not support item assignment"):
        parallel_jacobian(fun)(X)


@pytest.mark.parametrize("result", [None, "text"])
def test_results_without_numbers_raise_without_a_warning(result):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match="which has no derivative"):
            parallel_jacobian(lambda _x: result)(X)


def test_primitive_without_any_rule():
    @primitive
    def unknown(x):
        return x * 1.0

    jac = parallel_jacobian(lambda x: np.sin(unknown(x)))
    message = "autograd has no VJP for 'unknown' with respect to argument 0, which the Jacobian needs"
    for call in (jac, jac.plan, jac):  # nor is there a plan for what has no derivative
        with pytest.raises(NotImplementedError, match=message) as caught:
            call(X)
        assert any(
            note.startswith("unknown is called at test_jacobian.py:") for note in caught.value.__notes__
        )
    assert parallel_jacobian(lambda x: np.sin(x) + 0.0 * len(unknown(x)))(X).shape == (4, 4)  # not needed
    defvjp(unknown, lambda _ans, _x: lambda g: g)
    onp.testing.assert_array_equal(jac(X), onp.diag(onp.cos(X)))


def test_more_machines_than_there_is_work():
    onp.testing.assert_array_equal(parallel_jacobian(lambda x: x * 2.0, machines=10**6)(X), 2 * onp.eye(4))


def test_tiny_memory_limit():
    weights = onp.cos(onp.arange(36.0)).reshape(6, 6)
    x = onp.ones(6)

    def fun(x):
        return np.tanh(weights @ np.sin(weights @ x))

    plan = parallel_jacobian(fun, memory_limit=1).plan(x)
    limit = max(sweep.least_bytes for sweep in plan.sweeps if sweep)
    onp.testing.assert_allclose(parallel_jacobian(fun, memory_limit=limit)(x), jacobian(fun)(x), rtol=1e-12)
    with pytest.raises(
        ValueError, match=f"memory_limit is 1 bytes, but .* takes {limit}; set memory_limit to"
    ):
        parallel_jacobian(fun, memory_limit=1)(x)


@pytest.mark.parametrize(
    ("fun", "why"),
    [
        (lambda x: x[:0], r"is empty \(0 × \d+\)"),
        (lambda _x: 1.0, "is zero, since the value does not depend"),
    ],
)
@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_nothing_to_plan(fun, why):
    with pytest.raises(ValueError, match=f"the Jacobian of <lambda> {why}.*: there is nothing to plan"):
        parallel_jacobian(fun).plan(X)


# Plans, separators, optimizers


def deep(x):
    for width in (3, 9, 2, 8):
        x = np.tanh(onp.cos(onp.arange(width * x.shape[0])).reshape(width, x.shape[0]) @ x)
    y = np.concatenate([x, np.cumsum(x), np.linalg.solve(onp.eye(8) * 3.0, np.where(x > 0, x, 2.0 * x))])
    return np.sum(y.reshape(3, 8), axis=0) * x[::-1]


@primitive
def doubled(x):
    return 2.0 * x


defvjp(doubled, lambda _ans, _x: lambda g: 2.0 * g)


@primitive
def tripled(x):
    return 3.0 * x


defvjp(tripled, lambda _ans, _x: lambda g: 3.0 * g)


def define_tripled():
    def slope(_ans, x):
        return onp.full_like(x, 3.0)

    defvector(tripled, slope)


define_tripled()
FUNCTIONS = [
    deep,
    lambda x: doubled(x * x),
    lambda x: tripled(x * x),
    lambda x: np.array([np.exp(v) * v for v in x]),
    *(lambda x, f=f: f(x, 0.1, x) for f in (norm.cdf, norm.sf, norm.logcdf, norm.logsf)),
]


@pytest.mark.parametrize("fun", FUNCTIONS)
@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_plans_survive_pickling(fun, method):
    plan = parallel_jacobian(fun, method=method).plan(X)
    tape = record(fun, X)
    restored = pickle.loads(pickle.dumps(plan))  # noqa: S301 (written one call before)
    assert restored.structure == plan.structure
    assert restored.chain == plan.chain
    assert str(restored) == str(plan)
    onp.testing.assert_array_equal(execute(restored, tape), execute(plan, tape))


def test_all_partial_derivatives_survive_pickling():
    find_rule(norm.cdf)  # those of scipy are here now
    rules = [r for r in registered().values() if isinstance(r, Elementwise) and r.built_in]
    partials = [partial for rule in rules for partial in rule.partials if callable(partial)]
    assert any("<locals>" in partial.__qualname__ for partial in partials if hasattr(partial, "__qualname__"))
    for partial in partials:
        assert pickle.loads(dumps(partial)) == partial  # noqa: S301 (written here)


def test_primitives_have_names():
    assert primitive_name(np.dot) == "autograd.numpy:dot"
    assert primitive_name(np.linalg.solve) == "autograd.numpy.linalg:solve"
    assert primitive_name(doubled) == f"{__name__}:doubled"
    tape = record(deep, X)
    for index in range(1, len(tape)):
        assert find_primitive(primitive_name(tape[index].primitive)) is tape[index].primitive


def test_find_separators_of_a_tape():
    tape = record(lambda x: np.sin(np.sum(x)) * onp.ones(50), onp.ones(50))
    (separator,) = find_separators(tape, max_links=2)
    assert separator.width == 1
    assert tape.label(separator.vertices[0]) in {"sum", "sin"}
    with pytest.warns(UserWarning, match="independent"):
        assert find_separators(record(lambda _x: 1.0, X)) == ()


def test_optimizer_shares_recordings():
    calls = []

    def residuals(p, t):
        calls.append(p)
        return np.concatenate([p[0] * np.exp(-p[1] * t) - onp.exp(-0.7 * t) * 2.0, p - p])

    t = onp.linspace(0.0, 3.0, 20)
    value, jac = fun_and_jac(residuals)
    result = optimize.least_squares(value, [1.0, 1.0], jac=jac, args=(t,))
    onp.testing.assert_allclose(result.x, [2.0, 0.7], rtol=1e-8)
    assert len(calls) == result.nfev


def test_optimizers_for_roots_and_minima():
    value, jac = fun_and_jac(
        parallel_jacobian(lambda x: np.array([x[0] ** 2 - 2.0, x[0] * x[1] - 2.0]), machines=2)
    )
    assert optimize.root(value, [1.0, 1.0], jac=jac).success
    value, jac = fun_and_jac(lambda x: np.sum((x - onp.arange(3.0)) ** 4 + x**2))
    found = optimize.minimize(value, onp.zeros(3), jac=jac, method="BFGS")
    onp.testing.assert_allclose(jac(found.x), 0.0, atol=1e-4)


def test_points_that_move_in_place_or_have_other_arguments():
    value, jac = fun_and_jac(lambda x, a: a * x**2)
    x = onp.array([1.0, 2.0])
    assert value(x, 1.0).tolist() == [1.0, 4.0]
    x[0] = 3.0
    onp.testing.assert_array_equal(jac(x, 1.0), onp.diag([6.0, 4.0]))
    onp.testing.assert_array_equal(jac(x, 10.0), onp.diag([60.0, 40.0]))
    onp.testing.assert_array_equal(jac([1, 1], a=2.0), onp.diag([4.0, 4.0]))


def test_keyword_arguments_may_have_any_name():
    def fun(z, *, argnum, fun, self, args, x):
        return z * argnum * fun * self * args * x

    keywords = {"argnum": 2.0, "fun": 3.0, "self": 5.0, "args": 7.0, "x": 11.0}
    jac, expected = parallel_jacobian(fun), 2310.0 * onp.eye(4)
    value, jacobian_of_value = fun_and_jac(fun)
    for found in (
        jac(X, **keywords),
        jac.value_and_jacobian(X, **keywords)[1],
        jac.of_tape(jac.tape(X, **keywords)),
        jacobian_of_value(X, **keywords),
        jacobian(fun)(X, **keywords),
    ):
        onp.testing.assert_array_equal(found, expected)
    onp.testing.assert_allclose(value(X, **keywords), 2310.0 * X, rtol=1e-14)
    assert jac.plan(X, **keywords).name == "fun"
    assert jac.explain_miss(X, **keywords) is None
