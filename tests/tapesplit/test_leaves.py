"""Values as flat vectors and back."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from autograd.core import vspace
from autograd.numpy.numpy_vjps import untake

from tapesplit.recording.values import (
    batch_shape,
    derivative_dtype,
    element_count,
    flatten,
    unflatten,
)


class Pair(NamedTuple):
    first: Any
    second: Any


VALUES = [
    np.arange(6.0).reshape(2, 3),
    2.5,
    np.float64(2.5),
    (np.arange(2.0), 3.0),
    [np.ones((2, 2)), [1.0, (2.0,)]],
    {"b": np.arange(3.0), "a": 1.0},
    {2: 1.0, "one": np.arange(2.0), (0, 1): 3.0},
    Pair(1.0, np.arange(2.0)),
    (),
    {},
    np.zeros((0, 2)),
]


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return np.shape(a) == np.shape(b) and np.array_equal(a, b)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_round_trip(value):
    vector = flatten(value)
    assert vector.shape == (element_count(value),)
    assert same(unflatten(vector, value), value)
    numbers = np.arange(5.0, 5.0 + vector.size)
    np.testing.assert_array_equal(flatten(unflatten(numbers, value)), numbers)


def test_insertion_order_of_dicts_does_not_matter():
    np.testing.assert_array_equal(flatten({"b": 2.0, "a": 1.0}), flatten({"a": 1.0, "b": 2.0}))


def test_sparse_gradients_count_as_dense():
    sparse = untake(np.array([5.0, 7.0]), [0, 0], vspace(np.zeros(3)))
    assert (element_count(sparse), batch_shape(sparse)) == (3, (3,))
    np.testing.assert_array_equal(flatten(sparse), [12.0, 0.0, 0.0])
    np.testing.assert_array_equal(unflatten(np.arange(3.0), sparse), [0.0, 1.0, 2.0])


def test_real_values_take_real_parts():
    np.testing.assert_array_equal(unflatten(np.array([1 + 2j, 3j]), np.zeros(2)), [1.0, 0.0])
    np.testing.assert_array_equal(unflatten(np.array([1 + 2j, 3j]), np.zeros(2, complex)), [1 + 2j, 3j])


def test_shapes_and_types():
    assert batch_shape(np.zeros((2, 3))) == (2, 3)
    assert batch_shape(2.0) == ()
    assert batch_shape((np.zeros(2), 1.0)) == (3,)
    assert derivative_dtype(np.zeros(2, np.float32)) == np.float32
    assert derivative_dtype(np.zeros(2, np.int8)) == np.float64
    assert derivative_dtype(1.0) == np.float64
    assert derivative_dtype(1j) == np.complex128
