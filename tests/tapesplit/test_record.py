"""Recording: the tape says what the function did, and autograd is left as it was."""

import copy
import functools
import gc
import operator
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian
from autograd.core import VJPNode, backward_pass
from autograd.extend import Box, VSpace, defvjp, primitive
from autograd.numpy import where
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.scipy.linalg import solve_triangular
from autograd.test_util import check_grads
from autograd.tracer import box_type_mappings, new_box, trace_stack
from sweep_forms import forced

from tapesplit import check_jacobian, parallel_jacobian, record
from tapesplit.errors import NestedTraceError, OutputTypeError, RecordingError, StaleValueError
from tapesplit.recording import boxes, direct_functions, stand_ins
from tapesplit.recording.boxes import RecordingBox, TapeBox
from tapesplit.recording.tracing import tracing_lock

X = onp.linspace(0.3, 0.9, 4)
SIX = onp.linspace(0.3, 0.9, 6)
OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.mod,
    operator.matmul,
]

CONSTANTS = [
    2.0,
    3,
    onp.float64(1.5),
    onp.float32(1.5),
    onp.int64(2),
    onp.int8(100),
    True,
    onp.bool_(True),
    2 * X,
    X.astype(onp.float32),
]


def check(fun, x, tolerance=1e-13):
    """Check values and derivatives of a recording against plain calls and autograd."""
    tape = record(fun, x)
    onp.testing.assert_array_equal(tape.value, fun(x))
    want = jacobian(fun)(x)
    got = parallel_jacobian(fun)(x)
    assert onp.abs(got - want).max() <= tolerance * onp.abs(want).max()
    return tape


def labels(tape):
    return [tape.label(i) for i in range(len(tape))]


def test_entries_follow_the_execution():
    tape = record(lambda x: np.sum(np.sin(x) * x[0] + 2.0), X)
    assert labels(tape) == ["input", "sin", "getitem", "multiply", "add", "sum"]
    entry = tape[3]
    assert (entry.argnums, entry.parents) == ((0, 1), (1, 2))
    onp.testing.assert_array_equal(entry.args[0], onp.sin(X))
    assert tape[4].args[1] == 2.0
    assert (tape.inputs, tape.output) == (1, 5)
    assert tape.name == "<lambda>"


@pytest.mark.parametrize("other", CONSTANTS, ids=lambda other: f"{type(other).__name__}")
@pytest.mark.parametrize("operate", OPERATORS, ids=lambda o: o.__name__)
def test_arithmetic_with_every_kind_of_constant(operate, other):
    if operate is operator.matmul and onp.ndim(other) == 0:
        with pytest.raises((TypeError, ValueError)):  # scalars have no matrix product
            record(lambda x: operate(x, other), X)
        return
    # autograd takes logarithms in the precision of the constant
    coarse = operate is operator.pow and getattr(other, "dtype", None) == onp.float32
    check(lambda x: operate(x, other), X)
    if operate is not operator.mod or onp.ndim(other) == 0:
        check(lambda x: operate(other, x), X, 1e-7 if coarse else 1e-13)
    check(lambda x: operate(x, np.sin(x)), X)
    if operate is not operator.matmul:
        check(lambda x: np.array([operate(x[0], 2.0), operate(2.0, x[1]), operate(x[2], x[3])]), X)


def test_operands_of_other_types_go_autograds_way():
    check(lambda x: np.real((x * 1j) * (1j * x)), X)
    check(lambda x: np.array([1.0, 2.0]) @ x.reshape(2, 2) @ [1.0, 2.0], X)
    check(lambda x: -x + abs(x) - (+1) * x, X)
    check(lambda x: x[onp.array([0, 1])] @ x[2:], X)


COMPARISONS = ["__eq__", "__ne__", "__gt__", "__ge__", "__lt__", "__le__"]


def square(x):
    return np.reshape(x, (2, 2))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.roll(np.concatenate([np.tanh(x) + 1.0, X]), 3) * 2.0,
        lambda x: np.add(x, 1.0) * np.subtract(2.0, x) + np.multiply(x, X) - np.divide(X, x),
        lambda x: (
            np.diff(x)[0] * np.pad(x, 1, "constant")[1:-1]
            + np.tril(square(x)) @ x[:2] @ np.triu(square(x))[0]
        ),
        lambda x: np.inner(x, X) * np.tile(x, 2)[:4] + np.trace(square(x)) * np.logaddexp(x, 0.3) - abs(x),
        lambda x: np.negative(x) * np.reciprocal(x) + np.log2(x) * np.exp2(x) + np.negative(x[0]),
        lambda x: np.arcsin(x) * np.arccos(x) + np.expm1(x) - np.log10(x) + x % 0.4 + 3 % x - X % x,
        lambda x: np.power(np.abs(x), 1.5) + np.log1p(x * x) + np.arctan2(x, 2),
        lambda x: np.maximum(x, 0.1) + np.minimum(X[::-1], x) + abs(x),
        lambda x: np.dot(square(x), square(x)) + np.matmul(square(X), square(x)) + np.outer(x[:2], X[:2]),
        lambda x: np.einsum("ij,jk", square(x), square(X)) + np.tensordot(square(x), square(x), axes=1),
        lambda x: np.sum(square(x), axis=1, keepdims=True) + np.cumsum(x)[:2] + x.sum(0),
        lambda x: np.prod(x) + np.max(x) + x.min() * np.mean(x) + np.var(x) * x.std(ddof=1),
        lambda x: np.mean((x, X), axis=0) + np.mean([x, 2.0 * x], 0) + np.std((x[:2], x[2:]), axis=0).sum(),
        lambda x: np.transpose(square(x)) + square(x).T + x.reshape(2, 2).swapaxes(0, 1) + x.reshape((2, -1)),
        lambda x: np.ravel(square(x)) + square(x).flatten() + np.squeeze(np.expand_dims(x, 0)) + x.repeat(1),
        lambda x: np.diag(square(x)) + np.clip(x, 0.0, 0.5)[:2] + x.clip(None, 0.4)[2:],
        lambda x: (
            np.where(x > 0.5, x, 0.0) + np.where(X < 0.4, x=x, y=2.0) + np.where([1, 0, 1, 0], x, x * x)
        ),
        lambda x: x * (x > 0.2) + (x <= X) + (x <= 0.4) * x + (x == X) + (x != 1) * (x < x[0]),
        lambda x: np.linalg.solve(onp.eye(2), x[:2]) / np.linalg.norm(x, 2) + np.linalg.det(square(x)),
        lambda x: np.linalg.inv(square(x)) @ np.linalg.cholesky(square(x) @ square(x).T + np.eye(2)),
        lambda x: (
            np.linalg.norm(square(x), axis=(0, 1))
            + np.linalg.norm(square(x), None, 1)
            + np.linalg.norm(square(x), "fro") * x[:2]
        ),
        lambda x: np.sum(x[0]) + np.abs(x[1]) * np.reshape(x[2], (1,)) + x.max() * x[3].sum(),
        lambda x: (
            np.real(np.fft.ifft(np.fft.fft(np.fft.fftshift(x), norm="ortho") * (1.0 + 2.0j)))
            + np.imag(np.conj(np.fft.fft(x))) * np.fft.irfft(np.fft.rfft(x, 4))
            + np.abs(np.ravel(np.conjugate(np.fft.fft2(square(x)))))
        ),
    ],
)
def test_recorded_directly_and_by_autograd_alike(fun, monkeypatch):
    direct = record(fun, X)
    for namespace in stand_ins._NAMESPACES:
        monkeypatch.setattr(namespace, "direct", namespace.general)
    for name in direct_functions._METHODS:
        monkeypatch.setattr(RecordingBox, name, getattr(ArrayBox, name))
    for name in COMPARISONS:
        monkeypatch.setattr(TapeBox, name, getattr(ArrayBox, name))
    assert_alike(direct, record(fun, X))
    check(fun, X)


def assert_alike(direct, general):
    """Assert that two tapes are the same, with values and their types."""
    assert labels(direct) == labels(general)
    for ours, theirs in zip(direct, general, strict=True):
        assert ours.primitive is theirs.primitive
        assert (ours.argnums, ours.parents) == (theirs.argnums, theirs.parents)
        assert type(ours.value) is type(theirs.value)
        onp.testing.assert_equal(
            (ours.args, ours.kwargs, ours.value), (theirs.args, theirs.kwargs, theirs.value)
        )


@pytest.mark.parametrize(
    "fun",
    [
        lambda k: k * 2 + 3.0 * k - k / 0.5 + 0.5 / k + (1 - k) * k - (-k),
        lambda k: k**2 + 2**k + 2.0**k + k**-1 + k**k + (-k) ** 2,
        lambda k: k * X + X * k + (X - k) / k + X.astype(onp.float32) * k + onp.float64(2.0) * k,
        lambda k: np.sin(k) * k + k * np.sin(k) + np.exp(-k * X) @ X + np.sum(k) + np.reshape(k, (1,))[0],
        lambda k: np.where(k > 0.5, k, 0.0) + np.where(X > 0.5, k, X) + np.einsum("i,->i", X, k),
        lambda k: k * (k > 0.5) + (k <= 2 * k) * k + (k != 0.7) + ~(k >= 1) * k + (k == X) + (k < k * k),
        lambda k: abs(k) + k % 0.4 + np.maximum(k, 0.1) + k * onp.float32(1.5) + onp.int8(100) * k,
        lambda k: 1.0 / (k - 0.7) + (k - 0.7) ** -1.0 + k / 0 + (-k) ** 0.5,
    ],
)
def test_python_numbers_are_recorded_directly_and_by_autograd_alike(fun, monkeypatch):
    with onp.errstate(all="ignore"):
        direct = record(fun, 0.7)
        monkeypatch.setitem(boxes.OUR_BOXES, float, ArrayBox)
        assert_alike(direct, record(fun, 0.7))


def test_arrays_made_of_python_numbers():
    check(lambda k: np.array([k, 2.0, k * k]) + np.array([k, k, k]), 0.7)
    check(lambda k: np.stack([k * X, X]) * np.array([[k], [1.0]]), 0.7)


def test_a_python_number_that_is_no_operand_of_numpy():
    with pytest.raises(TypeError, match="not subscriptable"):
        record(lambda k: k[0], 0.7)
    with pytest.raises(ValueError, match="matmul"):
        record(lambda k: k @ X, 0.7)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.split(x, 2)[0] * np.split(x, 2)[1],
        lambda x: np.hstack(np.split(square(x), 2, axis=1)[::-1]) * np.split(square(x), 1)[0],
        lambda x: sum(np.sum(part**2) for part in np.split(np.reshape(x, (1, 2, 2)), 2, 2)),
        lambda x: np.append(x, X)[1:-3] * np.append(square(x), 1.0)[:4] + np.append(x, x[0])[1:],
        lambda x: np.cross(x[1:], np.sin(x[:3])) + np.cross(X[1:], x[:3]) - np.cross(x[:3], X[:3]) * x[0],
        lambda x: np.cross(np.outer(X, x)[:, :3], np.sin(np.outer(x, X)[:, 1:]))[:, 0],
        lambda x: np.cross(x[1:], [1.0, 2.0, 3.0], axis=0) * np.cross(x[1:], x[:3], 0, 0, 0),
        lambda x: np.cross(np.outer(x, X)[:, :3], np.cos(np.outer(X, x)[:, 1:])).reshape(2, 2, 3) @ x[:3],
        lambda x: np.linalg.norm(x) * x + np.linalg.norm(square(x)),
        lambda x: np.linalg.norm(square(x), axis=1) + np.linalg.norm(square(x) * X[0], axis=-2),
        lambda x: np.linalg.norm(x, ord=3) * x,
        lambda x: np.linalg.slogdet(square(x))[0] * x + np.linalg.slogdet(square(x * x))[1],
        lambda x: np.linalg.eigh(square(x))[0] * x[:2] + np.linalg.eigh(square(x * x), UPLO="U")[0],
        lambda x: np.linalg.eigh(square(x), "U")[1] @ x[:2] + np.linalg.eigh(square(x) + square(x).T)[1][0],
        lambda x: np.linalg.eigh(np.outer(x, x).reshape(4, 2, 2))[0][1] * x[:2],
        lambda x: np.linalg.svd(np.outer(x, X**2)[None] + onp.diag(X), False)[2][0] @ x,
        lambda x: np.linalg.svd(np.outer(x, X**2)[None, :2] * x, full_matrices=0)[:2][1],
        lambda x: np.linalg.svd(np.outer(x, X).reshape(2, 2, 4) + X, True, compute_uv=False),
        lambda x: np.linalg.svd(np.outer(X, X)[None], True, False, True)[0] * x,
        lambda x: sum(np.linalg.slogdet(np.eye(2) * 3.0 + np.reshape(np.outer(x, x), (4, 2, 2)))[1]) * x,
        lambda x: np.linalg.solve(square(x), x[:2]) @ np.linalg.solve(square(x) + 3.0, square(X)),
        lambda x: np.linalg.solve(square(X), x[:2]) * np.linalg.solve(square(x), square(x * x))[0],
        lambda x: np.linalg.solve(np.outer(x, X).reshape(4, 2, 2) + onp.eye(2), onp.ones((4, 2, 1)))[:, 0],
        lambda x: np.linalg.solve(square(x), onp.array([1, 2])) + np.linalg.solve(square(x), [0.5, 0.1]),
        lambda x: solve_triangular(square(x), x[:2]) * solve_triangular(square(X), x[1:3], lower=True),
        lambda x: solve_triangular(square(x), square(x * x), "T", True) * x[0],
        lambda x: solve_triangular(square(x), square(X), trans=1, check_finite=False) @ x[:2],
        lambda x: solve_triangular(square(x), x[:2], 2, lower=True) + solve_triangular(square(x), x[2:]),
        lambda x: solve_triangular(square(x), onp.array([1, 2])) + solve_triangular(square(x), [0.5, 0.1]),
        lambda x: solve_triangular(square(x), square(x), lower=True),
        lambda x: np.append(X, 2.0 * x) + np.ravel(np.append(square(x), square(X), axis=1)),
        lambda x: np.split(x, [1, 3])[1] * np.split(x, (2,))[0],
        lambda x: np.concatenate(np.split(x[:0], 3)) + np.split(x, 2, axis=-1)[0][:0],
        lambda x: np.mean(np.split(x, 2), axis=0) * np.split(x**2, 2)[0],
        lambda x: (
            np.array(np.split(x, 2))[0] * np.concatenate(np.split(x, 2))[1:3] + np.vstack(np.split(x, 2))[1]
        ),
        lambda x: (
            sum(map(np.sum, np.split(x, 2)[1:])) * np.stack(np.split(x, 2)[::-1])[0] * len(np.split(x, 4))
        ),
        lambda x: np.pad(x, pad_width=1, mode="constant") ** 2,
        lambda x: np.split(np.sin(x), 4)[3] * np.split(x, onp.int64(2))[0],
    ],
)
def test_what_is_recorded_as_something_simpler_in_all_forms(fun):
    check(fun, X) if onp.size(fun(X)) else record(fun, X)


def test_solutions_are_recorded_by_their_right_hand_sides():
    tape = record(lambda x: np.linalg.solve(square(x), x[:2]), X)
    assert [entry.argnums for entry in tape][-2:] == [(0, 1), (1,)]
    onp.testing.assert_array_equal(tape.value, onp.linalg.solve(square(X), X[:2]))


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ({}, ["triu", "side of solve", "solve_triangular"]),
        ({"trans": "T", "lower": True}, ["tril", "transpose", "side of solve", "solve_triangular"]),
        ({"unit_diagonal": True}, ["solve_triangular"]),
        ({"overwrite_b": False}, ["solve_triangular"]),
    ],
)
def test_solutions_of_triangular_systems_are_recorded_by_their_right_hand_sides(given, labels):
    tape = record(lambda x: solve_triangular(square(x), X[:2], **given), X)
    assert [tape.label(i) for i in range(2, len(tape))] == labels
    assert tape[tape.output].argnums == ((1,) if len(labels) > 1 else (0,))
    onp.testing.assert_array_equal(tape.value, solve_triangular(square(X), X[:2], **given))


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_crosses_that_broadcast_and_norms_that_keep_axes(method):
    """autograd's own rules fail for these."""

    def called(x):
        v, w = np.reshape(np.outer(x, X)[:, :3], (4, 1, 3)), np.sin(x[1:])
        return np.concatenate(
            [
                np.ravel(np.cross(v, w)),
                np.ravel(np.linalg.norm(v, axis=0, keepdims=True)),
                np.cross(X[1:], v)[0, 0],
            ]
        )

    def by_arithmetic(x):
        v, w = np.reshape(np.outer(x, X)[:, :3], (4, 3)), np.sin(x[1:])
        u = np.outer(np.ones(4), w)
        return np.concatenate(
            [np.ravel(np.cross(v, u)), np.sqrt(np.sum(v**2, axis=0)), np.cross(X[1:], v[0])]
        )

    jac = parallel_jacobian(called, method=method)
    onp.testing.assert_allclose(jac(X), jacobian(by_arithmetic)(X), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("of_a", "of_b", "axes"),
    [
        ((5, 3), (5, 3), {"axis": -1}),
        ((5, 3), (3,), {"axis": -1}),
        ((2, 3, 4), (2, 3, 4), {"axis": 1}),
        ((3, 4), (3, 4), {"axis": 0}),
        ((3, 4), (4, 3), {"axisa": 0, "axisc": 0}),
        ((2, 4, 3), (3, 4), {"axisa": 2, "axisb": 0, "axisc": 1}),
        ((3, 2, 4), (3,), {"axisa": 0}),
    ],
)
def test_cross_products_along_all_axes(of_a, of_b, axes):
    b, weights = onp.random.default_rng(0).standard_normal(of_b), onp.arange(1.0, 1.0 + onp.prod(of_a))

    def called(x):
        a = np.reshape(np.sin(x[0] * weights) + x[1] * weights, of_a)
        return np.ravel(np.cross(a, np.cos(b * x[1]), **axes))

    x = onp.array([0.3, -0.2])
    tape = record(called, x)
    assert "cross" not in labels(tape)
    onp.testing.assert_array_equal(tape.value, called(x))
    steps = 1e-6 * onp.eye(2)
    want = onp.stack([(called(x + step) - called(x - step)) / 2e-6 for step in steps], axis=1)
    onp.testing.assert_allclose(parallel_jacobian(called)(x), want, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("axes", [{"axis": 2}, {"axisc": 5}, {"axisa": 0.5}, {"axes": 0}])
def test_cross_products_along_other_axes_are_refused_as_by_autograd(axes):
    x = onp.ones((4, 3))
    with pytest.raises((TypeError, onp.exceptions.AxisError)) as expected:
        np.cross(x, x, **axes)
    with pytest.raises(expected.type, match=re.escape(str(expected.value))):
        record(lambda x: np.cross(x, x, **axes), x)


@pytest.mark.parametrize("keywords", [{}, {"axis": 0}, {"axis": -1}, {"axis": 0, "keepdims": True}])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 3, 2), (0, 3), (3, 0)])
def test_norms_have_the_values_of_numpy(shape, keywords):
    x = onp.random.default_rng(0).standard_normal(shape)
    expected = onp.linalg.norm(x, **keywords)
    tape = record(lambda x: np.linalg.norm(x, **keywords), x)
    onp.testing.assert_array_equal(tape.value, expected)
    assert type(tape.value) is type(expected)
    assert onp.shape(tape.value) == onp.shape(expected)


def test_rolled_values_lie_in_memory_as_those_of_numpy():
    x = onp.arange(24.0).reshape(2, 4, 3)
    for rolled in (lambda x: np.roll(x, 1, -1), lambda x: np.cross(x, x[0])):
        assert record(rolled, x).value.flags.c_contiguous
    with pytest.raises(ValueError, match="axis -1 is out of bounds"):
        record(lambda x: np.roll(x, 1, -1), onp.array(1.0))
    with pytest.raises(TypeError, match=r"norm.* got an unexpected keyword"):
        record(lambda x: np.linalg.norm(x, length=1), x)


def test_errors_of_functions_are_numpys_own():
    with pytest.raises(ValueError, match="equal division"):
        record(lambda x: np.split(x, 3)[0], X)
    with pytest.raises((ValueError, ZeroDivisionError)):
        record(lambda x: np.split(x, 0), X)
    with pytest.raises(ValueError, match="either both or neither"):
        record(lambda x: np.where(X > 0, x), X)
    with pytest.raises(ValueError, match="cannot reshape"):
        record(lambda x: x.reshape(3, 3), X)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.concatenate(v for v in (x, 2.0 * x)),
        lambda x: np.concatenate(np.reshape(x, (2, 2))),
        lambda x: np.concatenate((x, [1.0, 2.0])),
        lambda x: np.concatenate([np.reshape(x, (2, 2))] * 2, axis=1),
        lambda x: np.concatenate([x, x], 0),
        lambda x: np.roll(np.reshape(x, (2, 2)), 1, axis=0),
        lambda x: np.roll(np.reshape(x, (2, 2)), 1),
        lambda x: np.roll(x, -5),
        lambda x: np.roll(x, onp.int64(1)),
        lambda x: np.roll(x, shift=2),
    ],
)
def test_concatenate_and_roll_in_all_forms(fun):
    check(fun, X)


@pytest.mark.parametrize(
    ("fun", "entries"),
    [
        (lambda x: np.array([x, 2.0 * x, X]), 3),
        (lambda x: np.array([square(x), square(x)]), 4),
        (lambda x: np.array([[x[0], x[1]], [x[2], 1.0]]), 7),
        (lambda x: np.array([[x[0], x[1]], (0, 1)]), 5),
        (lambda x: np.array([[[x[0], 1.0]], [[x[1], 2.0]]]), 8),
        (lambda x: np.array([[x[0], [1.0]][1], [x[1]]]), 5),
        (lambda x: np.array([[x, x], [x, X]]), 4),
        (lambda x: np.array([x[0], np.sum(x), 1, 2.0]), 4),
        (lambda x: np.array((x, X), dtype=float), None),
        (np.array, None),
        (lambda x: np.array([np.array(x[0]), x[1]]), None),
        (lambda x: np.array([x[:1], [1.0]]), None),
        (lambda x: np.stack([x, X, x * x]), 3),
        (lambda x: np.stack((x[0], x[1], 2.0)), 4),
        (lambda x: np.stack([square(x), square(X)]), 3),
        (lambda x: np.stack([x, X], axis=1), 3),
        (lambda x: np.stack([square(x), square(x)], -1), 5),
        (lambda x: np.stack([square(x), square(X)], -2), 4),
        (lambda x: np.stack([x[0], x[1]], -1), 4),
        (lambda x: np.real(np.stack([x * 1j, x + 2j], 1) * 1j), None),
        (lambda x: np.imag(np.stack([x * 1j, X], -1) * 1j), None),
        (lambda x: np.stack([x, X.astype(np.float32)], 1), None),
        (lambda x: np.stack([x, [1.0, 2.0, 3.0, 4.0]]), None),
        (lambda x: np.stack(np.array([x, x])), None),
        (lambda x: np.stack(v for v in (x, x)), None),
        (lambda x: np.vstack([x, X]), 2),
        (lambda x: np.vstack((square(x), x[:2])), None),
        (lambda x: np.vstack([x[0], x[1]]), None),
        (lambda x: np.vstack([np.vstack([x, X]), x]), 4),
        (lambda x: np.vstack([onp.ones((2, 4)), x, x.astype(np.float32)]), None),
        (lambda x: np.column_stack([x, X, 2.0 * x]), 4),
        (lambda x: np.column_stack((onp.ones((4, 2)), x)), 3),
        (lambda x: np.column_stack([x, x.astype(np.float32)]), None),
        (lambda x: np.column_stack([x[0], x[1]]), None),
        (lambda x: np.select([X < 0.4, X < 0.6], [x, x * x], 2.0) * 2.0, None),
        (lambda x: np.select([x < 0.3, x < 0.6], [X, x[0]]) * x, None),
        (lambda x: np.select([X < 9.0, X < 0.0], [x, np.sqrt(0.0 * x)]) * 2.0, None),
        (lambda x: np.select([X > 9.0], [x], 1.0) * x, None),
        (lambda x: np.imag(np.column_stack([x * 1j, x.reshape(4, 1) * 1j])), None),
        (lambda x: np.column_stack([x, [1.0, 2.0, 3.0, 4.0]]), None),
        (lambda x: np.hstack([x, X, 2.0 * x]), 3),
        (lambda x: np.hstack([square(x), square(X)]), 3),
        (lambda x: np.hstack((x[0], 1.0, x)), None),
        (lambda x: np.hstack([x, np.array(1.0)]), None),
        (lambda x: np.hstack([x, x[0, ...]]), None),
        (lambda x: x * np.roll(a=onp.arange(4.0), shift=1), None),
        (lambda x: copy.copy(x) * 2.0, None),
        (lambda x: copy.deepcopy(x) * 2.0, None),
    ],
)
def test_arrays_of_arrays_in_all_forms(fun, entries):
    check(fun, X)
    if entries is not None:
        assert len(record(fun, X)) == entries


def test_arrays_of_different_shapes_are_refused_as_by_autograd():
    for fun in (lambda x: np.stack([x, x[:2]], 1), lambda x: np.vstack([x, x[:2]])):
        with pytest.raises(ValueError, match=r"same shape|must match"):
            record(fun, X)


def test_axes_of_stacks_that_there_are_not_are_refused_as_by_autograd():
    for axis in (2, -3):
        with pytest.raises((ValueError, IndexError), match=f"{axis}"):
            record(lambda x, axis=axis: np.stack([x, x], axis), X)


def test_numpys_own_functions_find_the_boxes():
    check(lambda x: onp.sin(x) * onp.multiply(2.0, x) + X * x, X)
    check(lambda x: X @ onp.reshape(onp.ones(16), (4, 4)) * x, X)


def test_functions_of_the_user_imported_by_name():
    from autograd.numpy import exp, sin

    check(lambda x: sin(x) * exp(-x), X)


def test_values_are_kept_and_not_copied():
    tape = record(lambda x: x * 1.0, X)
    assert tape[0].value is X


@pytest.mark.parametrize("x", [1.0, onp.float64(1.0), X])
def test_division_by_zero_is_numpys(x):
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert onp.all(record(lambda x: x / 0.0, x).value == onp.inf)


def test_warning_for_an_output_independent_of_the_input():
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        tape = record(lambda _x: onp.ones(2), X)
    assert tape.output is None
    assert len(tape) == 1


def test_input_returned_unchanged():
    tape = record(lambda x: x, X)
    assert (len(tape), tape.output) == (1, 0)


def test_comparisons_and_shapes_are_constants():
    tape = record(lambda x: x * (x > 0.5) * len(x) * x.shape[0] * np.argmax(x), X)
    assert labels(tape) == ["input"] + ["multiply"] * 4


def test_a_level_that_autograd_has_left_raised_after_an_error_is_none():
    hidden = lambda x: np.array([x[0], x[1]]) * onp.asarray([2.0, x[2]])  # noqa: E731
    with pytest.raises(ZeroDivisionError):
        grad(lambda x: x * (1 // 0))(1.0)
    assert trace_stack.top == 0
    try:
        with pytest.raises(OutputTypeError):
            parallel_jacobian(hidden)(X)
        assert record(lambda x: x * (1.0 + trace_stack.top), X).value.tolist() == X.tolist()
        assert trace_stack.top == 0
    finally:
        trace_stack.top = -1


def test_a_trace_that_was_begun_by_hand_is_left_to_autograd():
    inner = parallel_jacobian(lambda y: y**2 * 3.0)

    def vjp(fun, x):
        with trace_stack.new_trace() as level:
            end = fun(new_box(x, level, VJPNode.new_root()))
        return backward_pass(onp.ones_like(end._value), end._node)

    assert vjp(lambda z: np.sum(inner(X)) * z, 1.5) == pytest.approx(onp.sum(6.0 * X))
    mixed = vjp(lambda z: np.sum(parallel_jacobian(lambda y: y**2 * z)(X)), 1.5)
    assert mixed == pytest.approx(onp.sum(2.0 * X))
    assert trace_stack.top == -1


def test_a_trace_of_another_thread_is_none_to_leave():
    begun, done = threading.Event(), threading.Event()

    def trace(x):
        begun.set()
        done.wait(10)
        return x * x

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(grad(trace), 3.0)
        begun.wait(10)
        assert record(lambda x: x * trace_stack.top, X).value.tolist() == X.tolist()
        assert trace_stack.top == 0
        done.set()
        assert running.result() == 6.0


def test_autograd_is_left_as_it_was():
    mappings, sin = dict(box_type_mappings), np.sin
    levels = []

    def fun(_x):
        levels.append(trace_stack.top)
        assert not gc.isenabled()
        assert np.sin is not sin
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        record(fun, X)
    assert levels == [0]
    assert trace_stack.top == -1
    assert gc.isenabled()
    assert np.sin is sin
    assert box_type_mappings == mappings
    assert box_type_mappings[onp.ndarray] is ArrayBox
    check_grads(lambda x: np.sin(x) * x[0], modes=["rev", "fwd"], order=2)(X)


def test_garbage_collection_stays_off_where_it_was_off():
    gc.disable()
    try:
        parallel_jacobian(np.sin)(X)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_boxes_that_outlive_their_recording_do_no_harm():
    kept = []

    def fun(x):
        kept.append(x * 2.0)
        return x * kept[0]

    jac = parallel_jacobian(fun)
    want = jac(X)
    kept[0] * 3.0  # records onto the old tape
    kept.clear()
    onp.testing.assert_array_equal(jac(X), want)


def test_recordings_of_many_threads_take_turns():
    inside, most = 0, 0

    def fun(x):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(50):
            x = x * 1.01
        inside -= 1
        return x

    def work():
        tapes.extend(record(fun, X) for _ in range(5))

    tapes = []
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert len(tapes) == 30
    assert {tuple(labels(tape)) for tape in tapes} == {("input", *["multiply"] * 50)}
    assert all(tape[i].parents == (i - 1,) for tape in tapes for i in range(1, 51))


def test_operations_of_several_threads_of_the_function_do_not_mix():
    def work(x, k):
        y = 0.5 * x[k]
        for i in range(40):
            y = y + x[(7 * i + 13 * k) % 60] * np.cos(x[(i + k) % 60]) - (-2.0 * x[i]) / np.sum(x[k : k + 3])
            y = np.logaddexp(y, x[i]) + np.concatenate([x[: k + 1], x[:2]])[1]
        return y

    def fun(x):
        with ThreadPoolExecutor(4) as pool:
            return np.array(list(pool.map(functools.partial(work, x), range(4))))

    x = onp.linspace(0.3, 1.0, 60)
    want = jacobian(fun)(x)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            assert onp.abs(parallel_jacobian(fun)(x) - want).max() <= 1e-12 * onp.abs(want).max()
    finally:
        sys.setswitchinterval(interval)


def test_keyword_arguments_and_several_inputs():
    tape = record(lambda a, b, *, scale: scale * a * b, X, 2.0, argnum=(1, 0), scale=3.0)
    assert tape.inputs == 2
    assert tape[0].value == 2.0
    onp.testing.assert_array_equal(tape[1].value, X)
    with pytest.raises(ValueError, match="argnum is empty"):
        record(lambda x: x, X, argnum=())
    with pytest.raises(IndexError, match="count self in a method"):
        record(lambda x: x, X, argnum=1)


def test_operations_that_are_recorded_in_part_are_refused():
    def fun(x):
        x._entries.size += 1  # as if Ctrl-C, which the function catches, kept the call from it
        return x * 2.0

    with pytest.raises(RecordingError, match="fun were recorded in part only"):
        parallel_jacobian(fun)(X)


def test_a_traced_value_of_an_earlier_call_is_refused():
    kept = []

    def fun(x):
        y = np.sin(x)
        kept.append(y)
        return y * kept[0]

    jac = parallel_jacobian(fun)
    jac(X)
    with pytest.raises(StaleValueError, match="getval"):
        jac(X + 1.0)
    with pytest.raises(StaleValueError, match="getval"):
        grad(lambda z: np.sum(z * kept[0]))(X)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.roll(x, x[0]),
        lambda x: np.roll(onp.arange(4.0), x[0]),
        lambda x: np.triu(onp.ones((4, 4)), x[0]),
    ],
)
def test_what_says_how_elements_move_has_no_derivative(fun):
    try:
        fun(X)
    except (TypeError, DeprecationWarning):
        pytest.skip("this NumPy moves elements by integers only")
    with tracing_lock(), pytest.raises(NotImplementedError):  # autograd leaves its trace level raised
        jacobian(fun)(X)
    with pytest.raises(NotImplementedError, match="how elements move"):
        parallel_jacobian(fun)(X)


def test_an_exit_that_ctrl_c_interrupts_is_made_up_for(monkeypatch):
    boxes, tanh, norm = box_type_mappings[onp.ndarray], np.tanh, np.linalg.norm
    restore = stand_ins._Namespace.restore

    def interrupted(self, own):
        monkeypatch.setattr(stand_ins._Namespace, "restore", restore)
        raise KeyboardInterrupt

    monkeypatch.setattr(stand_ins._Namespace, "restore", interrupted)
    with pytest.raises(KeyboardInterrupt):
        record(np.sin, X)
    assert np.tanh is not tanh
    record(np.sin, X)
    assert (box_type_mappings[onp.ndarray], np.tanh, np.linalg.norm) == (boxes, tanh, norm)


@pytest.mark.parametrize(
    ("fun", "name"),
    [
        (np.sin, "sin"),
        (operator.itemgetter(0), "itemgetter"),
        (lambda x: x, "<lambda>"),
        (functools.partial(np.multiply, 2.0), "multiply"),
        (functools.partial(operator.itemgetter(0)), "itemgetter"),
        (functools.update_wrapper(functools.partial(np.multiply, 2.0), np.sin), "sin"),
    ],
)
def test_names_leave_out_where_a_function_is_defined(fun, name):
    assert record(fun, X).name == name


def test_errors_speak_of_autograds_boxes():
    with pytest.raises(TypeError, match="'ArrayBox' object does not support item assignment"):
        record(lambda x: operator.setitem(x, 0, 1.0), X)


def test_functions_that_are_assigned_while_recording_stay():
    cosine = np.cos

    def fun(x):
        np.cos = doubled
        return np.sin(x)

    def doubled(x):
        return 2.0 * x

    try:
        record(fun, X)
        assert np.cos is doubled
    finally:
        np.cos = cosine


def test_what_is_read_again_is_one_entry():
    """Numbers, slices that are narrow enough for a cut to profit, and others that are read much later."""

    def f(x):
        total = 0.0
        for k in range(5):
            total = total + k * x[1] * np.sum(x[2:4]) + x[-5] * x[:2][0] * np.sum(x[1:])
        return total

    x = onp.linspace(0.3, 0.9, 9)
    tape = record(f, x)
    # x[1], x[2:4], x[-5], x[:2] and its first; x[1:] three times
    assert [tape.label(i) for i in range(len(tape))].count("getitem") == 8
    check_jacobian(f, x)


def test_parts_of_older_arrays_are_told_apart():
    """By all that tells what is read: ``x[1, 2]`` is not ``x[1:2]``."""
    x = onp.random.default_rng(0).standard_normal((4, 4, 4))
    bounds = [None, 0, 1, 2, -1]
    slices = [slice(start, stop) for start in bounds for stop in bounds]
    numbers = [0, 1, 2, -1]
    pairs = [(first, second) for first in (*numbers, *slices[::4]) for second in (*numbers, *slices[::4])]
    indices = [*numbers, *slices, *((number,) for number in numbers), *pairs, (), (1, 2, 0), (1, 2, -1)]

    def f(x):
        old = x
        for _ in range(30):
            x = 1.0 * x
        found = [old[index] for _ in range(2) for index in indices]
        shapes = [(16, 4), (4, 16), (64,), (2, -1), (-1, 2)]
        found += [old.reshape(shape)[:2] for _ in range(2) for shape in shapes]
        found += [np.reshape(old, shape)[:1] for shape in shapes] + [np.reshape(old, (16, 4), order="F")]
        return np.concatenate([np.ravel(part) for part in found])

    order = onp.arange(64).reshape(x.shape)
    rows = f(order.astype(float)).astype(int)
    onp.testing.assert_array_equal(parallel_jacobian(f)(x).reshape(-1, 64), onp.eye(64)[rows])


def test_parts_that_loops_take_of_parameters_are_one_entry():
    """From the second turn on; what a step has just computed is not noted."""
    x = onp.linspace(0.3, 0.9, 12)

    def f(p):
        state = np.ones(3)
        for _ in range(6):
            W = p.reshape((4, 3))
            state = np.tanh(W[1:] @ state) * state[:2][0] + p[2:][:3] + np.reshape(p, (4, 3))[0]
            for _ in range(10):
                state = 0.9 * np.sin(state)
            state = state + W[:2, 1:] @ W[2:, 0] @ np.ones(2) + W[1, :] + W[1:3, 2, None][0]
        return state

    tape = record(f, x)
    labels = [tape.label(i) for i in range(len(tape))]
    assert labels.count("reshape") == 3  # two in the first turn, by the method and by the function
    # state[:2], its first, and [:3], in each turn; W[1:3, 2, None] and its first; the others twice at most
    assert labels.count("getitem") <= 6 * 5 + 2 * 6
    check_jacobian(f, x)


def test_a_slice_that_is_read_in_each_turn_is_a_narrow_cut():
    matrix, rows = onp.cos(onp.arange(2000.0)).reshape(50, 40), onp.sin(onp.arange(250.0)).reshape(50, 5)

    def f(x):
        y = np.tanh(matrix @ x)
        total = 0.0
        for k in range(6):
            total = total + np.sin((k + 1.0) * (rows @ y[:5]))
        return total

    (separator,) = parallel_jacobian(f, machines=1).plan(onp.ones(40)).separators
    assert separator.width == 5
    check_jacobian(f, onp.linspace(-1.0, 1.0, 40))


@pytest.mark.parametrize(
    "indices",
    [
        (1, True),
        (1, onp.int64(1)),
        (slice(1, 4), slice(1, 4, 2), slice(1, 4, -1)),
        (slice(0, 1), slice(False, True)),
        (0, (0,), [0], None, ...),
    ],
)
def test_reads_that_differ_are_told_apart(indices):
    def f(x):
        return np.concatenate([np.ravel(np.sin(k * x[index])) for k in (1.0, 2.0) for index in indices])

    check_jacobian(f, SIX)


def test_places_in_matrices_are_no_slices():
    def f(x):
        m = np.reshape(x, (3, 2))
        return np.concatenate([np.ravel(m[0, 1]), np.ravel(m[0:1]), np.ravel(m[0, 1]), np.ravel(m[0:1])])

    check_jacobian(f, SIX)
    assert [record(f, SIX).label(i) for i in range(2, 6)].count("getitem") == 2


def test_an_index_that_changes_is_read_each_time():
    class Index:
        value = 0

        def __index__(self):
            return self.value

    def f(x):
        index, found = Index(), []
        for index.value in (2, 4):
            found += [np.sum(x[index:]), np.sum(x[:index]), x[index]]
        return np.array(found)

    tape = record(f, SIX)
    onp.testing.assert_array_equal(tape.value, f(SIX))
    assert [tape.label(i) for i in range(len(tape))].count("getitem") == 6


def test_a_failed_look_up_leaves_no_trace():
    def f(x):
        for _ in range(2):
            try:
                x = x * x[100]
            except IndexError:
                x = np.sin(x)
        return x

    check_jacobian(f, SIX)


@pytest.mark.parametrize(
    ("call", "label"),
    [
        (lambda x: np.concatenate([x, x]), "concatenate"),
        (lambda x: np.append(x, 2.0), "concatenate"),
        (lambda x: np.array([x[0], 2.0]), "array"),
        (lambda x: np.array(x, ndmin=2), "array"),
        (lambda x: np.where(x > 0.0, x, 0.0), "where"),
        (lambda x: x.astype(float), "astype"),
        (lambda x: x[1:], "getitem"),
        (np.mean, "mean"),
    ],
)
def test_operations_have_the_names_that_users_know(call, label):
    tape = record(call, onp.ones(3))
    assert tape.label(tape.output) == label
    assert f"{len(tape) - 1}  {label} " in str(tape)
    with pytest.raises(RuntimeError) as info:
        record(lambda x: [call(x), raising()], onp.ones(3))
    assert info.value.__notes__[0].endswith(f"the last one {label}")


@pytest.mark.parametrize("entries", [40, 41, 60])
def test_long_tapes_are_listed_by_their_ends(entries):
    def f(x):
        for _ in range(entries - 1):
            x = np.sin(x)
        return x

    listed = [line.split()[0] for line in str(record(f, onp.ones(3))).splitlines()[1:]]
    ends = [*range(20), "...", *range(entries - 20, entries)]
    assert listed == list(map(str, ends if entries > 40 else range(40)))


def raising():
    raise RuntimeError


def test_types_of_boxes_name_autograds_module():
    """Other packages find the functions for an array by the module of its type."""
    modules = []

    def fun(x, y):
        modules.extend(type(value).__module__ for value in (x, y, x[0], np.sin(x)))
        return x * y

    record(fun, X, 2.0, argnum=(0, 1))
    assert modules == 4 * [ArrayBox.__module__]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.where(onp.array([1e-50, 0.0]), x, 3 * x),
        lambda x: np.where([1e-50, 0.0], x=x, y=3 * x),
        lambda x: np.where(1e-50, x[0], 2 * x[0]) * x,
        lambda x: np.where(onp.float64(1e-50), x, 3 * x),
        lambda x: where(onp.array([1e-50, 0.0]), x, 3 * x),
        lambda x: np.where(onp.ma.array([1e-50, 0.0]), x, 3 * x),
    ],
)
@pytest.mark.parametrize("form", ["systems", "arrays"])
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_conditions_that_are_zero_in_less_precision_only(f, method, form, monkeypatch):
    forced(monkeypatch, form)
    x = onp.array([1.0, 2.0], onp.float32)
    assert onp.array_equal(parallel_jacobian(f, method=method)(x), jacobian(f)(x))


LONG = onp.array(
    [onp.longdouble("1e-4000"), 0.0]
)  # the first is zero as a double where these are less precise


@pytest.mark.parametrize(
    "condition", [LONG, LONG * (1.0 + 0.5j), onp.array([1.0, 0.0]), onp.array([2**60, 0])]
)
@pytest.mark.parametrize("form", ["auto", "systems", "arrays"])
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize(
    "f",
    [
        lambda c, x: np.abs(np.where(c, x + 1j * x, 2j * x)) ** 2,
        lambda c, x: np.real(np.where(c, x + 0j, 1j * x) * x),
        lambda c, x: np.where(c, np.sin(x), x * x),
        lambda c, x: np.where(c[:, None], np.outer(x, x), np.outer(x, x) ** 2).ravel(),
        lambda c, x: np.real(np.array([np.where(i, np.exp(1j * x[0]), 2j * x[1]) for i in c])),
        lambda c, x: np.where(x > 0.0, np.where(c, x, 2.0 * x), 3.0 * x) + np.where(c[::-1], x**2, x**3),
    ],
)
def test_conditions_of_all_types_and_complex_values(f, method, form, condition, monkeypatch):
    forced(monkeypatch, form)
    x = onp.array([0.7, 2.3])
    found = parallel_jacobian(lambda x: f(condition, x), method=method)(x)
    onp.testing.assert_allclose(found, jacobian(lambda x: f(condition, x))(x), rtol=1e-13)


class Pair:
    """Two values, of a type that autograd learns about."""

    def __init__(self, first, second):
        self.both = first, second


pair = primitive(Pair)
first, second = (primitive(lambda p, i=i: p.both[i]) for i in (0, 1))


class PairBox(Box):
    __slots__ = ()


class PairSpace(VSpace):
    def __init__(self, value):
        self.shapes = tuple(map(onp.shape, value.both))

    def zeros(self):
        return Pair(*map(onp.zeros, self.shapes))

    def _add(self, x, y):
        return Pair(*(a + b for a, b in zip(x.both, y.both, strict=True)))

    _mut_add = _add


PairBox.register(Pair)
PairSpace.register(Pair)
defvjp(pair, lambda ans, a, b: first, lambda ans, a, b: second)
defvjp(first, lambda ans, p: lambda g: pair(g, 0 * p.both[1]))
defvjp(second, lambda ans, p: lambda g: pair(0 * p.both[0], g))


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_values_of_types_that_users_define_are_left_to_autograd(method):
    def f(x):
        p = pair(np.sin(x), x * x)
        return first(p) * second(p)

    jac = parallel_jacobian(f, method=method)
    assert onp.array_equal(jac(SIX), jacobian(f)(SIX))
    check_jacobian(f, SIX)
    with pytest.raises(NestedTraceError, match="Pair returned a Pair, whose derivatives only autograd"):
        jac.plan(SIX)


@pytest.mark.parametrize("result", [None, "text", {1}])
def test_results_that_autograd_does_not_know_are_refused_by_autograd(result):
    odd = primitive(lambda x: result)
    with pytest.raises(TypeError, match=r"Can't differentiate w\.r\.t\. type"):
        record(odd, SIX)


def test_arrays_of_numbers_in_single_precision_take_one_entry_for_each_list():
    def rotation(x):
        c, s = np.cos(x[0]), np.sin(x[0])
        return np.array([[c, -s], [s, c]]) @ x

    x = onp.array([0.3, 0.5])
    tapes = [record(rotation, x.astype(dtype)) for dtype in (onp.float64, onp.float32)]
    assert [tapes[1].label(i) for i in range(len(tapes[1]))] == [
        tapes[0].label(i) for i in range(len(tapes[0]))
    ]
    J = parallel_jacobian(rotation)(x.astype(onp.float32))
    assert J.dtype == jacobian(rotation)(x.astype(onp.float32)).dtype
    onp.testing.assert_allclose(J, jacobian(rotation)(x), rtol=1e-6)


def test_functions_that_were_imported_by_name_are_recorded_as_simpler_ones_too():
    def by_name(x, cross, norm):
        table = np.reshape(x, (2, 3))
        return np.concatenate([cross(x[:3], x[3:]) * norm(x), norm(table, axis=1), norm(table, "fro") * x])

    fun = functools.partial(by_name, cross=np.cross, norm=np.linalg.norm)  # autograd's own functions
    direct = record(lambda x: by_name(x, np.cross, np.linalg.norm), SIX)
    assert_alike(direct, record(fun, SIX))
    assert {"roll", "sqrt"} < {*labels(direct)}
    assert "cross" not in labels(direct)
    check(fun, SIX)
    of_sum = grad(lambda x: np.sum(fun(x) ** 3))
    onp.testing.assert_allclose(parallel_jacobian(of_sum)(SIX), jacobian(of_sum)(SIX), rtol=1e-12)
