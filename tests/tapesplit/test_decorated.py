"""Functions that are decorated where they are defined are pickled and copied as other functions are."""

import copy
import pickle

import autograd.numpy as np
import numpy as onp

from tapesplit import parallel_jacobian


def _pickled(what):
    return pickle.loads(pickle.dumps(what))  # noqa: S301 (written here)


X = onp.array([0.5, 1.5])


@parallel_jacobian
def squares(x):
    return x * x


class Model:
    @parallel_jacobian(argnum=1)
    def scaled(self, x):
        return 3.0 * np.sin(x)

    both = parallel_jacobian(scaled.__wrapped__, argnum=(1,))


class Other(Model):
    @parallel_jacobian(argnum=1)
    def scaled(self, x):
        return 7.0 * np.cos(x)

    def of_model(self):
        return super().scaled


def test_a_decorated_function_is_pickled_by_name():
    for _ in range(3):
        squares(X)
        assert _pickled(squares) is squares
    assert copy.deepcopy(squares) is squares


def test_a_decorated_method_is_pickled_by_name():
    assert _pickled(Model.scaled) is Model.scaled
    bound = _pickled(Model().scaled)
    onp.testing.assert_array_equal(bound(X), onp.diag(3.0 * onp.cos(X)))


def test_another_function_of_the_same_name_is_pickled_by_its_parts():
    hidden = parallel_jacobian(Model.scaled._fun, argnum=1)
    assert hidden.__qualname__ == "Model.scaled"
    assert type(hidden) is type(Model.scaled)
    assert hidden.__reduce_ex__(2) != "Model.scaled"


def test_a_method_of_the_base_class_stays_one():
    onp.testing.assert_array_equal(copy.copy(Other().of_model())(X), onp.diag(3.0 * onp.cos(X)))


def test_a_method_with_other_options_keeps_them():
    (jacobian,) = copy.copy(Model().both)(X)
    onp.testing.assert_array_equal(jacobian, onp.diag(3.0 * onp.cos(X)))
