"""The cache of plans: reused while the structure holds, and nothing that may change is baked into a plan."""

import copy
import functools
import operator
import pickle
import threading
import warnings
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import checkpoint, grad, jacobian
from autograd.builtins import dict as dict_of_boxes
from autograd.extend import defvjp, primitive
from autograd.misc.fixed_points import fixed_point
from scipy import sparse

from tapesplit import (
    RuleError,
    defvector,
    jacobian_function,
    parallel_jacobian,
    plan_cache,
    record,
    shared_plans,
)
from tapesplit.structures.recognize import Recognizer, recognizer
from tapesplit.structures.structure import structure_of

X = onp.linspace(0.3, 0.9, 6)


def assert_right(jac, fun, *args):
    got, want = jac(*args), jacobian(fun)(*args)
    assert got.shape == want.shape
    assert onp.abs(got - want).max(initial=0.0) <= 1e-12 * onp.abs(want).max(initial=1e-300)


@pytest.mark.parametrize(
    "fun", [lambda x: np.concatenate([np.sin(x[1:]) * x[:-1], x]), grad(lambda x: np.sum(np.sin(x) * x**2))]
)
def test_an_array_that_was_pickled_has_the_plan_of_others(fun):
    """Its dtype is another object, which is only equal to theirs."""
    jac, pickled = parallel_jacobian(fun), pickle.loads(pickle.dumps(X))  # noqa: S301 (our own)
    assert pickled.dtype is not X.dtype
    assert onp.array_equal(jac(X), jac(pickled))
    assert jac.cache_info().misses == 1
    assert_right(jac, fun, pickled)


def changing(fun):
    """Return a function of ``x`` that reads a constant from a mutable place, and that place."""
    place = {}
    return (lambda x: fun(x, place["c"])), place


@primitive
def scaled(x, _constant):
    """Double x, whatever the constant is."""
    return 2.0 * x


defvjp(scaled, lambda _ans, _x, _constant: lambda g: 2.0 * g, None)
defvector(scaled, adjoints=[lambda A, _ans, _x, _constant: 2.0 * A])


# A function of x and a constant; two constants between which it is switched; whether one plan serves both.
CASES = {
    "closure array": (lambda x, c: c * np.sin(c @ x * c), [onp.arange(6.0), onp.cos(onp.arange(6.0))], True),
    "closure matrix": (lambda x, c: np.tanh(c @ x), [onp.ones((3, 6)), onp.arange(18.0).reshape(3, 6)], True),
    "closure shape": (lambda x, c: np.tanh(c @ x), [onp.ones((3, 6)), onp.ones((4, 6))], False),
    "dtype of an array": (lambda x, c: x * c, [onp.arange(6.0), onp.arange(6)], False),
    "values of an integer array": (lambda x, c: x * c, [onp.arange(6), onp.arange(6) + 1], True),
    "float": (lambda x, c: c * x + x**c, [2.5, 3.5], True),
    "numpy number": (lambda x, c: x * c, [onp.float64(2.0), onp.float64(3.0)], True),
    "single precision": (lambda x, c: x * c, [onp.float32(2.0), onp.float32(3.0)], True),
    "integer factor": (lambda x, c: np.sin(c * x), [2, 3], True),
    "float exponent": (lambda x, c: x**c, [2.0, 3.0], True),
    "truth values as factors": (lambda x, c: x * c + c * x[0], [X > 0.5, X < 0.5], True),
    "truth value of a number": (lambda x, c: x[0] * c * x, [onp.bool_(True), onp.bool_(False)], True),
    "integer matrix": (lambda x, c: c @ x, [onp.ones((3, 6), int), onp.arange(18).reshape(3, 6)], True),
    "integers in einsum": (
        lambda x, c: np.einsum("ij,j", c, x),
        [onp.eye(6, dtype=int), onp.arange(36).reshape(6, 6)],
        True,
    ),
    "complex numbers": (lambda x, c: np.real(x * c) * np.abs(c - x), [1 + 2j, 3 - 1j], True),
    "integers that are joined": (lambda x, c: np.array([x[0], c, 2.0]) * x[:3], [1, 5], True),
    "complex numbers that are joined": (lambda x, c: np.abs(np.array([x[0] * 1j, c])), [1j, 2j], True),
    "arrays that are joined": (
        lambda x, c: np.concatenate([x, c]) * np.sum(np.stack([x[:2], c])),
        [onp.arange(2), onp.arange(2) * 5],
        True,
    ),
    "integers or floats that are joined": (lambda x, c: np.array([x[0], c]) * x[:2], [1, 2.0], False),
    "lengths of what is joined": (lambda x, c: np.concatenate([x, c])[:6], [onp.ones(2), onp.ones(3)], False),
    "factors of a Kronecker product": (
        lambda x, c: np.kron(c, x),
        [onp.eye(2, dtype=int), onp.ones((2, 2), int)],
        True,
    ),
    "choice among numbers": (lambda x, c: np.where(c, x, 2) * x, [X > 0.5, X < 0.5], True),
    "limits that are integers": (lambda x, c: np.clip(3 * x, c, 2), [0, 1], True),
    "factor or truth value": (lambda x, c: x * c, [1, True], False),
    "float or truth value": (lambda x, c: x * c, [1.0, onp.bool_(True)], False),
    "axes": (lambda x, c: np.sum(np.reshape(x, (2, 3, 1)), axis=c), [(0, 2), (1, 2)], False),
    "axes and order": (lambda x, c: np.sum(np.reshape(x, (2, 3)), **c), [{"axis": 0}, {"axis": 1}], False),
    "types inside of a dict": (lambda x, c: scaled(x, c) * x, [{"a": 1}, {"a": True}], False),
    "names of keywords": (lambda x, c: np.sum(x, **c) * x, [{"axis": 0}, {"keepdims": True}], False),
    "exponent two and another": (lambda x, c: x**c, [2, 3], True),
    "exponent zero": (lambda x, c: x**c, [0.0, 1.0], True),
    "exponent of one type or the other": (lambda x, c: x**c, [2, 2.0], False),
    "scalar exponents": (lambda x, c: np.array([v**c for v in x]), [2.0, 5.0], True),
    "boolean mask": (lambda x, c: x[c] ** 2, [X > 0.5, X < 0.5], False),
    "mask of where": (lambda x, c: np.where(c, x, x**2), [X > 0.5, X < 0.5], True),
    "index array": (lambda x, c: x[c] ** 2, [onp.array([0, 1, 1]), onp.array([2, 1, 5])], False),
    "index list": (lambda x, c: x[c] ** 2, [[0, 1, 1], [2, 1, 5]], False),
    "index": (lambda x, c: x[c] ** 2 * x, [0, 3], False),
    "numpy index": (lambda x, c: x[c] ** 2 * x, [onp.int64(0), onp.int64(3)], False),
    "index or bool": (lambda x, c: np.sum(x[c]) * x, [1, True], False),
    "slice": (lambda x, c: x[c] ** 2, [slice(0, 3), slice(3, 6)], False),
    "tuple index": (lambda x, c: np.reshape(x, (2, 3))[c] ** 2, [(0, slice(None)), (slice(None), 0)], False),
    "newaxis": (lambda x, c: np.reshape(x, (2, 3))[c] ** 2, [(None, 0), (..., None, 0)], False),
    "shape": (lambda x, c: np.sum(np.reshape(x, c), axis=0), [(2, 3), (3, 2)], False),
    "axis": (lambda x, c: np.cumsum(np.reshape(x, (2, 3)), axis=c), [0, 1], False),
    "roll": (lambda x, c: np.roll(x, c) * x, [1, 2], False),
    "roll by floats": (lambda x, c: np.roll(x, c) * x, [1.0, 2.0], False),
    "roll by keyword": (lambda x, c: np.roll(x, shift=c, axis=0) * x, [1, 2], False),
    "roll by floats and keyword": (lambda x, c: np.roll(x, shift=c, axis=0) * x, [1.0, 2.0], False),
    "roll by floats in arrays": (lambda x, c: np.roll(x, c) * x, [onp.array(1.0), onp.array(2.0)], False),
    "triangle": (lambda x, c: np.triu(np.reshape(x, (2, 3)), c), [0, 1], False),
    "triangle by floats": (lambda x, c: np.triu(np.reshape(x, (2, 3)), c), [0.0, 1.0], False),
    "subscripts": (
        lambda x, c: np.einsum(c, np.reshape(x, (2, 3)), onp.ones((2, 3))),
        ["ij,ij->i", "ij,ij->j"],
        False,
    ),
    "clip limits": (lambda x, c: np.clip(x, c, 0.8), [0.4, 0.7], True),
    "pad widths": (lambda x, c: np.pad(x, c, mode="constant") ** 2, [(1, 2), (2, 1)], False),
    "sort": (lambda x, c: np.sort(x * c), [onp.arange(6.0), -onp.arange(6.0)], True),
    "permutation by value": (lambda x, c: x[onp.argsort(c)] ** 2, [X, -X], False),
    "maximum": (lambda x, c: np.maximum(x, c) ** 2, [0.5 * onp.ones(6), onp.linspace(0.9, 0.3, 6)], True),
    "max": (lambda x, c: np.max(x * c) * x, [onp.arange(6.0), onp.arange(6.0)[::-1]], True),
    "norm": (lambda x, c: np.linalg.norm(x * c) * x, [onp.ones(6), onp.arange(6.0)], True),
    "linear system": (
        lambda x, c: np.linalg.solve(c, x),
        [onp.eye(6) * 2, onp.diag(onp.arange(1.0, 7.0))],
        True,
    ),
    "primitive": (lambda x, c: c(x), [checkpoint(np.sin), checkpoint(np.cos)], False),
    "nested derivative": (
        lambda x, c: grad(lambda y: np.sum(y**3 * c))(x),
        [onp.ones(6), onp.arange(6.0)],
        True,
    ),
    "operation": (lambda x, c: c(x) * x, [np.sin, np.cos], False),
    "number of steps": (lambda x, c: sum(np.sin(i * x) for i in range(c)), [2, 3], False),
}


def _numpy_refuses(fun, constants):
    """Tell whether this NumPy takes no floats where others do; some only warn."""
    try:
        with warnings.catch_warnings(action="error"):
            fun(X, constants[0])
    except (TypeError, DeprecationWarning):
        return True
    return False


for name in [name for name in CASES if "by floats" in name]:
    if _numpy_refuses(*CASES[name][:2]):
        del CASES[name]


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("name", CASES)
def test_constants_that_change_between_calls(name, method):
    fun, constants, shared = CASES[name]
    of_x, place = changing(fun)
    jac = parallel_jacobian(of_x, method=method)
    for turn in (0, 1, 0, 1, 1, 0):
        place["c"] = constants[turn]
        assert_right(jac, of_x, X)
    assert jac.cache_info().misses == (1 if shared else 2)


@pytest.mark.parametrize("name", CASES)
def test_recognition_agrees_with_comparison(name):
    fun, constants, shared = CASES[name]
    of_x, place = changing(fun)
    place["c"] = constants[0]
    tape = record(of_x, X)
    known = recognizer(structure_of(tape))
    assert known.accepts(record(of_x, X + 0.01))
    place["c"] = constants[1]
    assert known.accepts(record(of_x, X)) == shared


POOLS = {
    "indices": (
        lambda x, c: x[c] * np.sum(x),
        [
            *[
                0,
                1,
                onp.int64(1),
                onp.int32(1),
                True,
                None,
                ...,
                (0,),
                (True,),
                (None, 0),
                (..., 0),
                [0, 1],
                (0, None),
            ],
            *[
                slice(None),
                slice(0, 2),
                slice(onp.int64(0), 2),
                slice(onp.int32(0), 2),
                slice(onp.array(0), 2),
            ],
            *[
                (slice(0, 2),),
                (slice(0, 2), None),
                (slice(onp.int32(0), 2), None),
                slice(0, 2, 1),
                slice(0, 2, None),
            ],
            *[onp.array([0, 1]), onp.array([1, 0]), onp.array([0, 1], onp.int32), (onp.array([0, 1]),)],
            *[
                [0, onp.int64(1)],
                [onp.int32(0), 1],
                (onp.bool_(True), 1),
                [True, 1],
                (1, True),
                ([0, 1],),
                ((0, 1),),
                [onp.array(0), 1],
                onp.bool_(True),
            ],
            *[onp.array(1), X > 0.5, X < 0.5, [True] * 6],
        ],
    ),
    "operands": (
        lambda x, c: x * c + np.maximum(c, x),
        [
            *[
                2,
                3,
                2.0,
                3.0,
                True,
                onp.float64(2.0),
                onp.float32(2.0),
                onp.int64(2),
                onp.bool_(True),
                onp.array(2.0),
            ],
            *[
                onp.array(2),
                onp.array(2.0, onp.float32),
                onp.full(6, 2.0),
                onp.full(6, 3.0),
                onp.full((1, 6), 2.0),
            ],
            *[onp.full(6, 2), onp.full(6, 2.0, onp.float32), onp.full(1, 2.0), [2.0] * 6, [3.0] * 6],
        ],
    ),
    "keywords": (
        lambda x, c: np.sum(np.reshape(x, (2, 3)), **c) * x[0],
        [
            *[
                {},
                {"axis": 0},
                {"axis": 1},
                {"axis": (0,)},
                {"axis": (0, 1)},
                {"axis": None},
                {"axis": onp.int64(0)},
            ],
            *[{"axis": 0, "keepdims": True}, {"keepdims": True, "axis": 0}, {"axis": 0, "keepdims": False}],
            *[{"keepdims": True}],
        ],
    ),
    "positions": (
        lambda x, c: np.clip(x, *c) * np.where(c[0], x, c[1]),
        [
            (0, 1),
            (0.0, 1),
            (0, 1.0),
            (0.0, 1.0),
            (onp.zeros(6), 1),
            (0, onp.ones(6)),
            (onp.zeros(6), onp.ones(6)),
        ],
    ),
}


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.array([x[i] for i in onp.arange(6)]),
        lambda x: np.array([np.sum(x[[i, 0]] + x[onp.array([i, 1])]) for i in range(4)]),
        lambda x: x * onp.float32(2.0) + onp.array(3.0) - onp.int64(1),
        lambda x: np.sum(np.reshape(x, (2, 3)), axis=onp.int64(0), keepdims=True),
        grad(lambda x: np.dot(np.dot(onp.ones((6, 6)), np.sin(x)), x)),
        grad(lambda x: np.sum(x[onp.array([1, 2])] ** 2 * x[0])),
    ],
)
def test_common_constants_are_compared_without_being_described(fun):
    tape = record(fun, X)
    known = recognizer(structure_of(tape))
    assert known.constants.types
    assert known.statics.places == []
    assert known.accepts(record(fun, X + 0.01))


@pytest.mark.parametrize("pool", POOLS)
def test_recognition_agrees_with_comparison_for_any_two_constants(pool):
    fun, constants = POOLS[pool]
    tapes = [record(lambda x, c=c: fun(x, c), X) for c in constants]
    structures = [*map(structure_of, tapes)]
    for structure in structures:
        accepts = recognizer(structure).accepts
        assert [*map(accepts, tapes)] == [structure == other for other in structures]


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: x * np.sin(x), onp.ones(4)),
        (lambda x: x * np.sin(x), onp.ones(3, onp.float32)),
        (lambda x: x * np.sin(x), onp.ones((3, 1))),
        (lambda x: x * np.cos(x), onp.ones(3)),
        (lambda x: np.sin(x) * x, onp.ones(3)),
        (lambda x: np.sin(x) * np.sin(x), onp.ones(3)),
        (lambda x: 2.0 * np.sin(x), onp.ones(3)),
        (lambda x: x * np.sin(x) + x, onp.ones(3)),
        (lambda x: (x * np.sin(x), x)[1], onp.ones(3)),
    ],
)
def test_recognition_sees_every_difference(fun, x):
    tape = record(lambda x: x * np.sin(x), onp.ones(3))
    known = recognizer(structure_of(tape))
    assert known.accepts(record(lambda x: x * np.sin(x), onp.zeros(3)))
    other = record(fun, x)
    assert not known.accepts(other)
    assert structure_of(other) != structure_of(tape)


@pytest.mark.parametrize("part", [slice(None), 0])
@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_recognition_sees_types_that_depend_on_values(method, part):
    root = primitive(onp.emath.sqrt)
    defvjp(root, lambda ans, x: lambda g: g * 0.5 / ans)
    defvector(root, lambda ans, x: 0.5 / ans)
    jac = parallel_jacobian(lambda x: np.abs(root(x[part])) ** 2 * x, method=method)
    for x in ([1.0, 2.0, 3.0], [2.0, 2.0, 3.0], [3.0, 2.0, 3.0], [-1.0, 2.0, -3.0], [1.0, 2.0, 3.0]):
        want = jacobian(lambda x: np.abs(x[part]) * x)(onp.array(x))
        onp.testing.assert_allclose(jac(onp.array(x)), want, rtol=1e-12, atol=1e-12)
    assert jac.cache_info().misses == 2


def test_recognition_sees_shapes_that_depend_on_values():
    positive = primitive(lambda x: x[x > 0])
    defvjp(positive, lambda ans, x: lambda g: np.where(x > 0, 1.0, 0.0) * np.sum(g))
    jac = parallel_jacobian(lambda x: np.sum(positive(x)) * x)
    for x in ([1.0, -1.0, 2.0], [1.0, -1.0, 3.0], [1.0, -1.0, 4.0], [-1.0, -1.0, 2.0], [1.0, 1.0, 2.0]):
        jac(onp.array(x))
    assert jac.cache_info().misses == 3


@pytest.mark.parametrize(
    "fun", [lambda x, c: c * np.sin(x), lambda x, c: x[c.astype(int)] ** 2, lambda x, c: c @ x * x]
)
def test_constants_that_are_mutated_in_place(fun):
    constant = onp.arange(6.0)
    jac = parallel_jacobian(lambda x: fun(x, constant))
    for shift in range(3):
        constant[:] = (onp.arange(6) + shift) % 6
        assert_right(jac, lambda x: fun(x, constant), X)


def test_scalar_programs_read_their_constants_anew():
    fun, place = changing(
        lambda x, c: np.array([c * x[i] * x[i - 1] + x[i] / c + np.sin(c + x[i]) for i in range(6)])
    )
    jac = parallel_jacobian(fun)
    for constant in (1.5, 2.5, -0.5):
        place["c"] = constant
        assert_right(jac, fun, X)
    assert jac.cache_info().misses == 1


def test_unknown_constants_are_never_taken_for_known():
    class Choice:
        __hash__ = None

        def __init__(self, index):
            self.index = index

    @primitive
    def pick(x, choice):
        return x[choice.index :]

    defvjp(pick, lambda _ans, x, choice: lambda g: onp.concatenate([onp.zeros(choice.index), g]))
    defvector(pick, adjoints=[lambda A, _ans, x, choice: onp.pad(A, ((0, 0), (choice.index, 0)))])
    fun, place = changing(pick)
    jac = parallel_jacobian(fun)
    for index in (1, 2, 1):
        place["c"] = Choice(index)
        assert_right(jac, fun, X)
    assert jac.cache_info().misses == 3


class Awkward:
    """Equals nothing, and cannot be hashed."""

    __hash__ = None

    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        raise RuntimeError("do not compare me")


@pytest.mark.parametrize(
    "constants",
    [
        [Awkward(2.0), Awkward(3.0)],
        [sparse.csr_array(onp.eye(6)), sparse.csr_array(onp.arange(36.0).reshape(6, 6))],
        [{"a": 1.0}, {"b": 2.0, "c": [3.0]}],
        [(1, "one"), (2, "another")],
        [2, 3],
    ],
)
def test_constants_that_only_autograds_own_rule_sees_count_by_type(constants):
    def weight(c):
        if isinstance(c, sparse.csr_array):
            return c.sum()
        if isinstance(c, Awkward):
            return c.factor
        return float(c if isinstance(c, int) else len(repr(c)))

    @primitive
    def weighed(x, c, *, more=None):
        return x * weight(c) * (1.0 if more is None else weight(more))

    def vjp(_ans, _x, c, *, more=None):
        return lambda g: g * weight(c) * (1.0 if more is None else weight(more))

    defvjp(weighed, vjp, None)
    fun, place = changing(lambda x, c: weighed(x * x[0], c) + weighed(x, c, more=c))
    jac = parallel_jacobian(fun)
    for _ in range(3):
        for place["c"] in constants:
            assert_right(jac, fun, X)
    assert jac.cache_info().misses == 1


def test_index_objects_that_change():
    class Index:
        def __init__(self, value):
            self.value = value

        def __index__(self):
            return self.value

    index = Index(0)

    def fun(x):
        return x[index] * x

    jac = parallel_jacobian(fun)
    for value in (0, 3, 5):
        index.value = value
        assert_right(jac, fun, X)


def test_control_flow_that_depends_on_values():
    def fun(x):
        y = np.sin(x) if x[0] > 0 else np.exp(x) * 2.0
        steps = 0
        while np.sum(y) > 1.0:
            y = 0.5 * y
            steps += 1
        return y

    jac = parallel_jacobian(fun)
    assert_right(jac, fun, X)
    assert jac.explain_miss(X) is None
    assert jac.explain_miss(-X) == "the operation of entry 2 (exp) changed from sin to exp"
    assert jac.cache_info()[:3] == (0, 1, 1)  # explaining counts as nothing
    assert_right(jac, fun, -X)
    assert "changed from sin to exp" in jac.cache_info().last_miss
    assert_right(jac, fun, X)
    assert jac.cache_info().hits == 1


def test_reasons():
    jac = parallel_jacobian(lambda x, n=2: np.sum(x[:n]) * x)
    assert jac.explain_miss(X) == "first call"
    jac(X)
    assert jac.cache_info().last_miss == "first call"
    assert "shape or type of the value of entry 0 (input) changed from (6,) to (4,)" in jac.explain_miss(
        X[:4]
    )
    assert "changed" in jac.explain_miss(X.astype(onp.float32))
    assert "entry 1 (getitem) changed" in jac.explain_miss(X, n=3)
    jac.cache_clear()
    assert jac.cache_info() == (0, 0, 0, 8, "")
    assert jac.explain_miss(X) == "the cache was cleared"
    jac(X)
    assert jac.cache_info().last_miss == "the cache was cleared"


@pytest.mark.parametrize(
    ("call", "before", "after", "reason"),
    [
        (np.cumsum, None, 0, "a constant argument of entry 1 (cumsum) changed from None to 0"),
        (np.roll, 2, 3, "a constant argument of entry 1 (roll) changed from 2 to 3"),
        (np.roll, 1, True, "a constant argument of entry 1 (roll) changed from 1 to True"),
        (np.power, 2, 2.5, "a constant argument of entry 1 (power) changed from int to a Python float"),
        (np.power, 1, True, "a constant argument of entry 1 (power) changed from int to bool"),
        (np.power, 2.5, True, "a constant argument of entry 1 (power) changed from a Python float to bool"),
        (
            np.multiply, 2.5, onp.float64(2.5),
            "a constant argument of entry 1 (multiply) changed from a Python float to float64",
        ),
        (
            lambda x, c: x * x if c is None else c * x, None, 2.0,
            "a constant argument of entry 1 (multiply) changed from none to a Python float",
        ),
        (
            np.add, 2.5, onp.float32(2.5),
            "a constant argument of entry 1 (add) changed from a Python float to float32",
        ),
        (
            lambda x, c: np.sum(x[None], axis=c), 0, (-2,),
            "a constant argument of entry 2 (sum) changed from axis=0 to axis=(-2)",
        ),
        (
            lambda x, c: x[c] * x, 0, slice(0, 1),
            "the shape or type of the value of entry 1 (getitem) changed from () to (1,)",
        ),
        (np.sum, None, -1, "a constant argument of entry 1 (sum) changed from None to -1"),
        (np.roll, 1, onp.array([2]), "a constant argument of entry 1 (roll) changed from 1 to [2]"),
    ],
)  # fmt: skip
def test_reasons_that_are_constants(call, before, after, reason):
    fun, place = changing(call)
    jac = parallel_jacobian(fun)
    place["c"] = before
    jac(X)
    place["c"] = after
    assert jac.explain_miss(X) == reason


@pytest.mark.parametrize(
    ("constant", "words"),
    [
        (b"b", "one bytes"),
        (onp.array([None]), "an object array of shape (1,)"),
        ((1, [2.0, None], {"a": 1}), "(1, (float, None), one dict)"),
        (onp.array([1, 2]), "[1 2]"),
        (onp.float32(2.0), "a float32 array of shape ()"),
        (int, "one type"),
    ],
)
def test_reasons_with_constants_of_any_kind(constant, words):
    fun, place = changing(scaled)
    jac = parallel_jacobian(fun)
    place["c"] = "a"
    assert_right(jac, fun, X)
    place["c"] = constant
    assert jac.explain_miss(X) == f"a constant argument of entry 1 (scaled) changed from 'a' to {words}"
    for place["c"] in (constant, "a", constant):
        assert_right(jac, fun, X)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, c: (
            (np.add(x, x * x, casting="same_kind") if c else x + x * x) * 2.0
            + (x if c else np.add(x, x, casting="same_kind"))
        ),
        lambda x, c: (np.add(x, x * x, None) if c else x + x * x) * x,
        lambda x, c: (np.negative(x, None) if c else -x) * x,
    ],
)
def test_calls_that_lack_constants_are_told_apart(fun):
    known, other = (record(fun, X, constant) for constant in (True, False))
    accepts = recognizer(structure_of(known)).accepts
    assert accepts(record(fun, X + 1.0, True))
    assert not accepts(other)


class Bound:
    """An integer that changes."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Places:
    """A sequence whose contents change."""

    def __init__(self, *places):
        self.places = places

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        return self.places[index]


def test_bounds_and_sequences_that_change_their_contents():
    bound, array, behind, places = Bound(1), onp.array(1), onp.array(2), Places(0, 1)
    jac = parallel_jacobian(lambda x: x[bound : bound.value + 2] ** 2)
    number = parallel_jacobian(lambda x: np.reshape(x, (2, 3))[0, array:behind] ** 2)
    chosen = parallel_jacobian(lambda x: x[places] ** 2)
    for bound.value in (1, 3, 1, 2, 2):
        array[...] = bound.value % 3
        behind[...] = array + 1
        places.places = (bound.value, 0)
        onp.testing.assert_array_equal(jac(X), onp.diag(2 * X)[bound.value : bound.value + 2])
        onp.testing.assert_array_equal(number(X), onp.diag(2 * X)[array : array + 1])
        onp.testing.assert_array_equal(chosen(X), onp.diag(2 * X)[[bound.value, 0]])
    assert jac.cache_info().misses == 3


def test_keys_of_containers_that_are_floats():
    @primitive
    def both(x):
        return {0.5: 1.0 * x, 1.5: 2.0 * x}

    defvjp(both, lambda ans, x: lambda g: g[0.5] + 2.0 * g[1.5])
    place = {}
    jac = parallel_jacobian(lambda x: both(x)[place["key"]])
    for place["key"] in (0.5, 1.5, 0.5):
        onp.testing.assert_array_equal(jac(X), onp.eye(6) * (place["key"] + 0.5))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0.5, 1.0), (1.0, 0.5)),
        ((onp.float32(0.5), 2), (2, onp.float32(0.5))),
        ([(0.5, 0), 1.0], [1.0, (0.5, 0)]),
    ],
)
def test_dicts_whose_keys_are_floats_or_hold_some(first, second):
    keys = list(first)

    def f(x):
        return dict_of_boxes({keys[0]: 2.0 * x, keys[1]: x * x})[first[0]]

    x = onp.array([3.0, 4.0])
    jac = parallel_jacobian(f)
    jac(x)
    keys[:] = second
    assert jac.explain_miss(x)
    for given in (second, first):
        keys[:] = given
        onp.testing.assert_array_equal(jac(x), jacobian(f)(x))


INTERVALS: list[int] = []


def interpolated(x):
    """Look up the ends of intervals, some of which may be the same."""
    return np.array([0.3 * x[i] + 0.7 * x[i + 1] * x[0] for i in INTERVALS])


@pytest.mark.parametrize("size", [8, 40])
def test_plans_are_reused_whichever_look_ups_are_equal(size):
    jac, x = parallel_jacobian(interpolated), onp.linspace(0.3, 0.9, 40)
    for seed in range(24):
        INTERVALS[:] = onp.random.default_rng(seed).integers(0, 39, size).tolist()
        onp.testing.assert_allclose(jac(x), jacobian(interpolated)(x), rtol=1e-13)
    assert jac.cache_info().misses <= 14
    INTERVALS[:] = [i % 8 for i in range(size)]
    tape = jac.tape(x)
    assert [tape.label(i) for i in range(len(tape))].count("getitem") == 3 * size
    onp.testing.assert_allclose(jac.of_tape(record(interpolated, x)), jac(x), rtol=1e-13)


def test_equal_look_ups_are_recorded_once_if_that_is_not_why_structures_change():
    turns = [1]

    def loop(x):
        total = x[0]
        for i in range(turns[0]):
            total = total * x[0] + x[i]
        return total * x

    jac, x = parallel_jacobian(loop), onp.linspace(0.3, 0.9, 4)
    for count in (1, 2, 3, 1, 2, 3):
        turns[0] = count
        jac(x)
    assert jac.cache_info().misses == 3
    tape = jac.tape(x)
    assert [tape.label(i) for i in range(len(tape))].count("getitem") == 3


def test_look_ups_are_recorded_once_again_if_plans_were_not_reused_for_that():
    draws = onp.random.default_rng(0)

    def changing(x):
        places = draws.integers(0, 4, 6).tolist()
        total = x
        for i in range(draws.integers(1, 40)):
            total = total * x[places[i % 6]] + x[0] * i
        return total * sum(x[i] for i in places)

    jac, x = parallel_jacobian(changing), onp.linspace(0.3, 0.9, 4)
    changes = jac._plans._changes
    seen = set()
    for _ in range(60):
        jac(x)
        changes = jac._plans._changes
        seen.add((changes.apart, changes.was_apart))
    assert seen <= {(False, False), (True, False), (False, True)}
    assert not changes.apart


def test_dicts_that_are_recorded_count_by_their_keys_in_order():
    @primitive
    def weighted(parts):
        return 2.0 * parts[0.5] + parts[1.5]

    defvjp(weighted, lambda ans, parts: lambda g: {0.5: 2.0 * g, 1.5: g})
    keys = []

    def fun(x):
        return weighted(dict_of_boxes({keys[0]: 2.0 * x, keys[1]: x * x}))

    jac = parallel_jacobian(fun)
    for keys[:] in ([0.5, 1.5], [1.5, 0.5], [0.5, 1.5]):
        assert_right(jac, fun, X)


def test_dicts_of_autograd_reuse_their_plan():
    jac = parallel_jacobian(lambda x: dict_of_boxes({"a": x, "b": 2.0 * x})["b"] * x)
    for _ in range(3):
        onp.testing.assert_allclose(jac(X), onp.diag(4.0 * X))
    assert jac.cache_info()[:2] == (2, 1)


def test_rules_that_are_defined_again_need_new_plans():
    @primitive
    def cube(x):
        return x**3

    defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    defvector(cube, lambda ans, x: 2 * x)
    jac = parallel_jacobian(cube)
    for _ in range(2):
        onp.testing.assert_allclose(jac(X), onp.diag(2.0 * X))
    defvector(cube, lambda ans, x: 3 * x**2)
    assert jac.explain_miss(X) == "rules have been defined since the last call"
    onp.testing.assert_allclose(jac(X), onp.diag(3.0 * X**2))
    assert jac.cache_info()[:3] == (1, 2, 1)
    assert "defined" in jac.cache_info().last_miss


def test_no_constant_is_not_taken_for_a_number():
    @primitive
    def multiplied(x, factor):
        return x * (2.0 if factor is None else factor)

    defvector(multiplied, lambda ans, x, factor: 2.0 if factor is None else factor, None)
    defvjp(multiplied, lambda ans, x, factor: lambda g: g * (2.0 if factor is None else factor), None)
    fun, place = changing(lambda x, c: np.array([multiplied(number, c) for number in x]))
    jac = parallel_jacobian(fun)
    for place["c"] in (3.0, None, 4.0):
        assert_right(jac, fun, X)


def test_structure_and_not_the_name_is_the_key():
    def make(power):
        def fun(x):
            return np.sum(x**power) * x if power > 2.5 else x**power

        return fun

    jac = [parallel_jacobian(make(power)) for power in (2.0, 3.0)]
    assert_right(jac[0], make(2.0), X)
    assert_right(jac[1], make(3.0), X)


def test_bounded_and_the_oldest_goes(monkeypatch):
    monkeypatch.setattr(shared_plans, "_MOST_PLANS", 0)
    jac = parallel_jacobian(lambda x: np.sin(x) * x, method="dp")  # plans every structure
    for size in range(1, 13):
        jac(onp.ones(size))
    assert jac.cache_info()[:4] == (0, 12, 8, 8)
    assert jac.explain_miss(onp.ones(5)) is None
    assert jac.explain_miss(onp.ones(4)) is not None
    jac(onp.ones(5))  # now the youngest
    for size in range(20, 27):
        jac(onp.ones(size))
    assert jac.explain_miss(onp.ones(5)) is None


def test_views_and_memory_order_share_a_plan():
    jac = parallel_jacobian(lambda x: np.sum(np.tanh(x), axis=0))
    matrix = onp.arange(12.0).reshape(3, 4) / 10
    want = jac(matrix)
    onp.testing.assert_array_equal(jac(onp.asfortranarray(matrix)), want)
    onp.testing.assert_array_equal(jac(onp.repeat(matrix, 2, axis=1)[:, ::2]), want)
    assert jac.cache_info().misses == 1


@pytest.mark.parametrize("order", ["A", "K", "k"])
def test_orders_that_follow_the_memory_are_refused(order):
    x = onp.asfortranarray(onp.arange(6.0).reshape(2, 3))
    for f in (lambda x: np.ravel(x, order=order), lambda x: x.ravel(order), lambda x: x.flatten(order)):
        with pytest.raises(RuleError, match="give order 'C' or 'F'"):
            parallel_jacobian(f)(x)
    by_columns = parallel_jacobian(lambda x: np.ravel(x, "F"))(x).reshape(6, 6)
    onp.testing.assert_array_equal(by_columns @ x.ravel(), x.ravel("F"))
    onp.testing.assert_array_equal(parallel_jacobian(lambda x: x.ravel("A"))(x[0]), onp.eye(3))


def test_plans_hold_no_values():
    """A plan must not keep the arrays of the tape that it was made for alive."""
    import gc
    import weakref

    jac = parallel_jacobian(lambda x: np.tanh(x * 2.0) * x)
    x = onp.linspace(0.0, 1.0, 50)
    reference = weakref.ref(x)
    for _ in range(3):
        jac(x)
    del x
    gc.collect()
    assert reference() is None


def test_shared_plans_hold_no_functions():
    import gc
    import weakref

    class Model:
        def __init__(self):
            self.weights = onp.ones((6, 6))

        def __call__(self, x):
            return np.tanh(self.weights @ x)[onp.array([2, 0])]

    model = Model()
    references = [weakref.ref(model), weakref.ref(model.weights)]
    for _ in range(3):
        parallel_jacobian(model)(X)
    del model
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def made_anew(power=2.0, **options):
    """Return a Jacobian function whose code is always the same."""
    return parallel_jacobian(lambda x: np.sin(x**power) * np.sum(x), **options)


def test_a_function_made_anew_from_the_same_code_takes_over_the_plan():
    first = made_anew()
    plan = first.plan(X)
    first(X)
    again = made_anew(3.0)
    assert again.plan(X).sweeps is plan.sweeps
    assert_right(again, lambda x: np.sin(x**3.0) * np.sum(x), X)
    assert again.cache_info()[:2] == (2, 0)
    assert again.explain_miss(X) is None


def test_a_function_made_anew_says_what_it_does_not_share():
    made_anew()(X)
    changed = "the shape or type of the value of entry 0 (input) changed from (6,) to (3,)"
    again = made_anew()
    assert (
        again.explain_miss(X[:3])
        == f"first call; compared with the last function of the same code, {changed}"
    )
    again(X)
    again(X[:3])
    assert again.cache_info()[:3] == (1, 1, 2)
    assert again.cache_info().last_miss == changed


@pytest.mark.parametrize("options", [{"method": "tangent"}, {"cost": "fma"}, {"machines": 3}])
def test_plans_for_other_options_are_not_taken_over(options):
    plan = made_anew(machines=2).plan(X)
    assert made_anew(**{"machines": 2} | options).plan(X).sweeps is not plan.sweeps


def test_neither_are_those_of_other_code_shapes_or_functions_that_forgot_them():
    plan = made_anew().plan(X)
    assert parallel_jacobian(lambda x: np.sin(x**2.0) * np.sum(x)).plan(X).sweeps is not plan.sweeps
    assert made_anew().plan(X[:3]).sweeps is not plan.sweeps
    made_anew().cache_clear()
    assert made_anew().plan(X).sweeps is not plan.sweeps


def test_functions_made_anew_open_index_arrays_that_change(monkeypatch):
    made = []
    planning_first(monkeypatch, lambda: made.append(1))
    for index in ([0, 2], [1, 0], [3, 1], [2, 2], [5, 4]):
        places = onp.array(index)
        fun = functools.partial(lambda places, x: np.sin(x)[places] * np.sum(x), places)
        assert_right(parallel_jacobian(fun), fun, X)
    assert len(made) == 3


def test_a_plan_that_is_taken_over_is_recognized(monkeypatch):
    for _ in range(2):
        made_anew()(X)
    monkeypatch.setattr(plan_cache, "structure_of", None)  # nobody asks for it any more
    assert_right(made_anew(3.0), lambda x: np.sin(x**3.0) * np.sum(x), X)


def test_functions_of_the_same_code_and_another_name_have_plans_of_their_own():
    def make(name):
        def fun(x):
            return np.sin(x)

        fun.__name__ = fun.__qualname__ = name
        return parallel_jacobian(fun)

    assert [make(name).plan(X).name for name in ("one", "other")] == ["one", "other"]


def test_a_new_rule_makes_a_new_plan():
    @primitive
    def cube(x):
        return x**3

    defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)

    def jac():
        return parallel_jacobian(cube)

    plan = jac().plan(X)
    defvector(cube, lambda ans, x: 3 * x**2)
    assert jac().plan(X).sweeps is not plan.sweeps
    assert_right(jac(), cube, X)


def test_few_plans_are_shared():
    plans = [made_anew().plan(onp.ones(size)) for size in range(1, 67)]
    kept = [made_anew().plan(onp.ones(size)).sweeps is plans[size - 1].sweeps for size in range(66, 2, -1)]
    assert all(kept)
    assert made_anew().plan(onp.ones(1)).sweeps is not plans[0].sweeps


def test_functions_that_were_pickled_share_plans():
    plans = [pickle.loads(pickle.dumps(parallel_jacobian(bumps))).plan(X) for _ in range(2)]  # noqa: S301 (ours)
    assert plans[0].sweeps is plans[1].sweeps


def test_rules_defined_while_a_plan_is_made_make_it_stale(monkeypatch):
    @primitive
    def cube(x):
        return x**3

    defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    defvector(cube, lambda ans, x: 2 * x**2)
    jac = parallel_jacobian(cube)
    once = [lambda: defvector(cube, lambda ans, x: 3 * x**2)]
    planning_first(monkeypatch, lambda: once.pop()() if once else None)
    jac(X)
    assert_right(jac, cube, X)
    assert_right(parallel_jacobian(cube), cube, X)


def test_threads_with_functions_made_anew_make_one_plan(monkeypatch):
    made = []
    planning_first(monkeypatch, lambda: made.append(1))
    made_anew()(X)
    threads = [threading.Thread(target=lambda: [made_anew()(X) for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_functions_without_code_of_their_own_share_nothing():
    assert (
        parallel_jacobian(operator.neg).plan(X).sweeps is not parallel_jacobian(operator.neg).plan(X).sweeps
    )


def test_partials_and_objects_that_are_called_share_plans():
    class Times:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return self.factor * x * np.sum(x)

    def power(x, y):
        return x**y

    for make in (Times, lambda factor: functools.partial(power, y=factor)):
        plan = parallel_jacobian(make(1.0)).plan(X)
        again = parallel_jacobian(make(3.0))
        assert again.plan(X).sweeps is plan.sweeps
        assert_right(again, make(3.0), X)


def test_hessians_with_a_component_that_enters_linearly_reuse_their_plan():
    def fun(w):
        return w[0] * np.log(w[1]) + 2 * w[1] + np.sum(w**3)

    jac = parallel_jacobian(grad(fun))
    for shift in range(3):
        assert_right(jac, grad(fun), X + shift)
    assert jac.cache_info()[:2] == (2, 1)


def test_clearing_reaches_functions_that_were_defined_again():
    """A notebook cell that is run again makes code that is equal, but another object."""

    def again():
        return parallel_jacobian(eval("lambda x: np.cos(x) * np.sum(x)"))  # noqa: S307 (our own text)

    first = again()
    plan = first.plan(X)
    assert again().plan(X).sweeps is plan.sweeps
    again().cache_clear()
    assert again().plan(X).sweeps is not plan.sweeps


def planning_first(monkeypatch, act):
    """Let something happen each time that a plan is under way."""
    make_plan = jacobian_function.make_plan

    def make(*args, **options):
        act()
        return make_plan(*args, **options)

    monkeypatch.setattr(jacobian_function, "make_plan", make)


def test_threads_that_plan_for_one_structure_get_one_plan(monkeypatch):
    everyone_plans = threading.Barrier(8)
    planning_first(monkeypatch, lambda: everyone_plans.wait(timeout=30))
    jac = parallel_jacobian(lambda x: np.sin(x) * np.sum(x))
    with ThreadPoolExecutor(8) as pool:
        plans = list(pool.map(lambda _: jac.plan(X), range(8)))
    assert all(plan.sweeps is plans[0].sweeps for plan in plans)
    assert jac.cache_info()[:3] == (0, 8, 1)
    assert_right(jac, jac.__wrapped__, X)
    assert jac.cache_info()[:3] == (1, 8, 1)


def test_a_plan_under_way_does_not_survive_clearing(monkeypatch):
    jac = parallel_jacobian(lambda x: np.sin(x) * np.sum(x))
    planning_first(monkeypatch, jac.cache_clear)
    assert_right(jac, jac.__wrapped__, X)
    assert jac.cache_info() == (0, 0, 0, 8, "")


def test_neither_does_a_plan_that_is_being_looked_up(monkeypatch):
    jac = parallel_jacobian(lambda x: np.sin(x) * np.sum(x))
    for _ in range(2):
        jac(X)
    accepts = Recognizer.accepts

    def clear_and_accept(self, tape):
        jac.cache_clear()
        return accepts(self, tape)

    monkeypatch.setattr(Recognizer, "accepts", clear_and_accept)
    assert_right(jac, jac.__wrapped__, X)
    assert jac.cache_info().currsize == 0


@pytest.mark.timeout(20)
def test_comparing_structures_may_compute_jacobians():
    inner = parallel_jacobian(np.sin)

    class Scale:
        def __eq__(self, other):
            inner(X)
            return self is other

        def __hash__(self):
            return 1

    fun, place = changing(scaled)
    jac = parallel_jacobian(fun)
    for _ in range(3):
        place["c"] = Scale()
        assert_right(jac, fun, X)
    assert jac.cache_info().misses == 3
    assert inner.cache_info().hits > 0


def bumps(x):
    return np.tanh(2.0 * x) * np.sum(x)


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
@pytest.mark.parametrize("plan", [False, True])
def test_pickling_at_any_time_keeps_the_plans(calls, plan):
    jac = parallel_jacobian(bumps, method="adjoint")
    for _ in range(calls):
        jac(X)
    if plan:
        jac.plan(X)
    restored = pickle.loads(pickle.dumps(jac))  # noqa: S301 (written here)
    info = restored.cache_info()
    assert info == jac.cache_info()
    onp.testing.assert_array_equal(restored(X), jac(X))
    assert restored.cache_info().misses == max(info.misses, 1)
    for _ in range(2):
        assert_right(restored, bumps, X + 0.5)
    assert restored.cache_info().hits == info.hits + (info.currsize > 0) + 2


@primitive
def applied(fun, x):
    """A primitive that takes a function, as integrators do."""
    return fun(x)


defvjp(applied, lambda ans, fun, x: lambda g: g * (fun(x + 0.5) - fun(x - 0.5)), argnums=(1,))


def test_functions_that_each_call_makes_anew_need_no_new_plan():
    """Derivatives call the function of their own tape, whatever it closes over."""
    scale = {"now": 1.0}

    def f(x):
        factor = scale["now"]
        return np.array([applied(lambda z: factor * z, x[i]) for i in range(len(x))])

    jac = parallel_jacobian(f)
    for scale["now"] in (1.0, 2.0, 3.0):
        onp.testing.assert_allclose(jac(X), scale["now"] * onp.eye(len(X)))
    assert jac.cache_info().misses == 1


def test_plans_that_do_not_pickle_stay_behind():
    def newton(a):
        return lambda z: 0.5 * (z + a / z)

    def distance(u, v):
        return np.max(np.abs(u - v))

    def root(x):
        return fixed_point(newton, x**2 + 1.0, onp.ones(3), distance, 1e-13) * x[0]

    jac = parallel_jacobian(root)
    x = onp.array([1.0, 2.0, 3.0])
    want = jac(x)
    other = copy.deepcopy(jac)
    assert other.cache_info().currsize == 0
    onp.testing.assert_array_equal(other(x), want)


class _ListWithHash(list):
    """A list that a user has made hashable, although it may change."""

    def __hash__(self):
        return hash(tuple(self))


class _OwnSequence:
    """A sequence that does not say so, and compares by its contents."""

    def __init__(self, items):
        self.items = items

    def __getitem__(self, position):
        return self.items[position]

    def __setitem__(self, position, item):
        self.items[position] = item

    def __len__(self):
        return len(self.items)

    def __eq__(self, other):
        return self.items == other.items

    def __hash__(self):
        return hash(tuple(self.items))


@pytest.mark.parametrize(("make", "hits"), [(_ListWithHash, 2), (_OwnSequence, 0), (deque, 2)])
def test_sequences_that_change_are_read_anew(make, hits):
    index = make([0, 1, 2])
    jac = parallel_jacobian(lambda x: x[index] * x[:3])
    for change in (0, 5, 5, 0):
        index[0] = change
        assert_right(jac, jac.__wrapped__, X)
    assert jac.cache_info().hits == hits


class _Kind(Enum):
    TWICE = 2


def test_members_of_enumerations_are_constants():
    @primitive
    def times(x, kind):
        return kind.value * x

    defvjp(times, lambda ans, x, kind: lambda g: kind.value * g)
    defvector(times, lambda ans, x, kind: kind.value)
    jac = parallel_jacobian(lambda x: times(x, _Kind.TWICE))
    for _ in range(3):
        onp.testing.assert_array_equal(jac(X), 2.0 * onp.eye(len(X)))
    assert jac.cache_info().hits == 2


class _Vague:
    """Compares as an array does."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return onp.array([True, False])


class _Unhashable:
    def __hash__(self):
        raise RuntimeError("never hash me")


@pytest.mark.parametrize("constant", [_Vague, _Unhashable])
def test_constants_that_cannot_be_compared_are_new_each_time(constant):
    @primitive
    def twice(x, c):
        return 2.0 * x

    defvjp(twice, lambda ans, x, c: lambda g: 2.0 * g)
    defvector(twice, lambda ans, x, c: 2.0)
    jac = parallel_jacobian(lambda x: twice(x, constant()))
    for _ in range(3):
        onp.testing.assert_array_equal(jac(X), 2.0 * onp.eye(len(X)))
    assert jac.cache_info().hits == 0


@pytest.mark.parametrize(("pairs", "hits"), [(20, 7), (128, 7), (140, 0)])
def test_many_index_arrays_that_change_are_read_from_the_tape(pairs, hits):
    random = onp.random.default_rng(0)

    def energy(x, edges):
        return np.array([np.sin(x[i] - x[j]) for i, j in edges])

    jac = parallel_jacobian(energy)
    jac.cache_clear()
    for _ in range(10):
        edges = random.permutation(2 * pairs).reshape(pairs, 2)
        x = random.standard_normal(2 * pairs)
        onp.testing.assert_allclose(jac(x, edges), jacobian(energy)(x, edges), rtol=1e-12)
    assert jac.cache_info()[:2] == (hits, 10 - hits)
