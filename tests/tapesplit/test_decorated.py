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
