"""Functions of autograd that users import by name are recorded like those they look up in autograd.numpy."""

import functools
import types

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian
from autograd.numpy import array, cross, sin
from autograd.numpy.linalg import norm

from tapesplit import parallel_jacobian, record
from tapesplit.recording.users_names import modules_of

X = onp.linspace(0.3, 0.9, 6)


def by_name(x):
    return array([norm(x), *cross(x[:3], sin(x[3:]))])


def by_module(x):
    return np.array([np.linalg.norm(x), *np.cross(x[:3], np.sin(x[3:]))])


class Model:
    def __call__(self, x):
        return by_name(x)

    def method(self, x):
        return by_name(x)


def in_a_module(name, code, **names):
    """Execute code in a new module."""
    module = types.ModuleType(name)
    vars(module).update(names)
    exec(code, vars(module))  # noqa: S102 (our own)
    return module


FAR = in_a_module(
    "far",
    """
from autograd.numpy import array, cross, sin
from autograd.numpy.linalg import norm

def by_name(x):
    return array([norm(x), *cross(x[:3], sin(x[3:]))])
""",
)
NEAR = in_a_module("near", "def call(x):\n    return by_name(x)\n", by_name=FAR.by_name)
BESIDE = in_a_module("beside", "def call(x):\n    return far.by_name(x)\n", far=FAR)
NAMED = [array, cross, sin, norm]


def labels(fun):
    tape = record(fun, X)
    return [tape.label(i) for i in range(len(tape))]


def enclosing(fun):
    return lambda x: 1.0 * fun(x)


@pytest.mark.parametrize(
    "fun",
    [
        by_name,
        Model(),
        Model().method,
        functools.partial(by_name),
        functools.wraps(by_name)(functools.partial(FAR.by_name)),
        FAR.by_name,
        NEAR.call,
        BESIDE.call,
    ],
)
def test_names_are_recorded_like_attributes_of_autograd_numpy(fun):
    assert labels(fun) == labels(by_module)
    assert "cross" not in labels(fun)  # but its products
    assert labels(enclosing(fun)) == [*labels(by_module), "multiply"]
    onp.testing.assert_allclose(parallel_jacobian(fun)(X), jacobian(fun)(X), rtol=1e-13, atol=1e-15)
    assert [array, cross, sin, norm] == NAMED
    assert [FAR.array, FAR.cross, FAR.sin, FAR.norm] == NAMED


def test_functions_inside_of_other_jacobians_are_found():
    def energy(x):
        return np.sum(by_name(x) ** 2)

    want = jacobian(grad(energy))(X)
    for found in (parallel_jacobian(grad(energy)), parallel_jacobian(parallel_jacobian(energy))):
        onp.testing.assert_allclose(found(X), want, rtol=1e-12, atol=1e-13)
        assert "cross" not in [found.tape(X).label(i) for i in range(len(found.tape(X)))]


def test_names_are_put_back_after_an_error():
    def fails(x):
        by_name(x)
        raise ValueError("as it should")

    with pytest.raises(ValueError, match="as it should"):
        parallel_jacobian(fails)(X)
    assert [array, cross, sin, norm] == NAMED


def test_a_name_that_the_function_binds_anew_stays_so():
    module = in_a_module(
        "binding",
        """
from autograd.numpy import cos, sin

def binds(x):
    global sin, cos
    sin = abs
    del cos
    return sin(x)
""",
    )
    onp.testing.assert_array_equal(parallel_jacobian(module.binds)(-X), -onp.eye(6))
    assert module.sin is abs
    assert not hasattr(module, "cos")


def test_names_that_are_imported_later_are_found():
    module = in_a_module("growing", "def fun(x):\n    return products(x[:3], x[3:])\n")
    jac = parallel_jacobian(module.fun)
    with pytest.raises(NameError):
        jac(X)
    module.products = cross
    assert jac(X).shape == (3, 6)
    tape = jac.tape(X)
    assert "cross" not in [tape.label(i) for i in range(len(tape))]
    assert module.products is cross


def test_only_modules_of_users_are_looked_at():
    assert modules_of(by_name) == [globals()]
    assert modules_of(grad(parallel_jacobian(by_name))) == [globals()]
    assert modules_of(by_module) == [globals()]
    assert modules_of(np.sin) == modules_of(len) == modules_of(3.0) == []
    assert [names["__name__"] for names in modules_of(NEAR.call)] == ["near", "far"]
    assert [names["__name__"] for names in modules_of(BESIDE.call)] == ["beside", "far"]


def test_what_a_function_closes_over_may_be_missing():
    def recursive(x, depth=2):
        return x if depth == 0 else sin(recursive(x, depth - 1)) * later

    assert modules_of(recursive) == [globals()]
    later = 2.0
    onp.testing.assert_allclose(parallel_jacobian(recursive)(X), jacobian(recursive)(X), rtol=1e-13)
