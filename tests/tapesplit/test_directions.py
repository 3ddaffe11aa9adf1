"""Batches of directions, whose zeros are not stored, against the same with all zeros written out."""

from math import prod

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_forms import forced

from tapesplit import defvector, parallel_jacobian
from tapesplit.recording import overrides
from tapesplit.rules import registry
from tapesplit.sweeps import array_steps, map_step
from tapesplit.sweeps.array_steps import _called
from tapesplit.sweeps.directions import Diagonal, Rows, accumulate, as_pairs, assemble, in_blocks, seed

COUNT = 9  # directions in all
SHAPES = [(), (1,), (3,), (2, 2), (0,)]
DTYPES = [np.float32, np.float64, np.complex128]


@st.composite
def batches(draw, shape):
    dtype, numbers = draw(st.sampled_from(DTYPES)), np.random.default_rng(draw(st.integers(0, 99)))
    if draw(st.booleans()):
        start = draw(st.integers(0, COUNT))
        rows = numbers.standard_normal((draw(st.integers(0, COUNT - start)), *shape)).astype(dtype)
        return Rows(start, rows, owned=draw(st.booleans()))
    origin = draw(st.integers(-prod(shape), COUNT))
    before, behind = draw(st.integers(0, 2)), draw(st.integers(0, 2))  # elements of a longer array
    longer = Diagonal.of(np.ones(before + prod(shape) + behind), origin - before, 0, COUNT)
    return Diagonal.of(np.asarray(numbers.standard_normal(shape), dtype), origin, longer.start, longer.stop)


def is_owned(batch):
    return isinstance(batch, Rows) and batch.owned


def whole(batch, shape):
    """Write all directions out, element by element."""
    directions = np.zeros((COUNT, *shape), np.clongdouble)
    if isinstance(batch, Rows):
        directions[batch.start : batch.stop] = batch.rows
    else:
        for element, value in enumerate(batch.values.flat):
            if batch.start <= batch.origin + element < batch.stop:
                directions.reshape(COUNT, -1)[batch.origin + element, element] = value
    return directions


@given(st.data(), st.sampled_from(SHAPES))
def test_sums_have_all_directions_and_overwrite_only_what_is_owned(data, shape):
    left, right = data.draw(batches(shape)), data.draw(batches(shape))
    want = whole(left, shape) + whole(right, shape)
    lent = [b.values if isinstance(b, Diagonal) else b.rows for b in (left, right) if not is_owned(b)]
    before = [array.copy() for array in lent]
    total = accumulate(left, right)
    assert total.dtype == np.result_type(left.dtype, right.dtype)
    np.testing.assert_allclose(whole(total, shape), want, rtol=4 * np.finfo(total.dtype).eps, atol=1e-15)
    for array, copy in zip(lent, before, strict=True):
        np.testing.assert_array_equal(array, copy)
        assert not is_owned(total) or not np.shares_memory(total.rows, array)


@pytest.mark.parametrize("start", [0, 2, 4, 6])
def test_sums_of_windows_lie_row_by_row_in_memory(start):
    columns = np.asfortranarray(np.ones((2, 3)))
    total = accumulate(Rows(2, columns), Rows(start, np.asfortranarray(np.ones((2, 3), np.complex64))))
    assert total.rows.flags.c_contiguous or start == 2
    want = np.zeros((total.stop - total.start, 3), np.complex128)
    for first in 2, start:
        want[first - total.start : first - total.start + 2] += 1.0
    np.testing.assert_array_equal(total.rows, want, strict=True)


@given(st.data(), st.booleans())
def test_seeds_are_split_among_values_and_joined_again(data, adjoint_mode):
    shapes = data.draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    dtypes = [np.dtype(data.draw(st.sampled_from(DTYPES))) for _ in shapes]
    sizes = [prod(shape) * (1 + (dtype.kind == "c")) for shape, dtype in zip(shapes, dtypes, strict=True)]
    start = data.draw(st.integers(0, sum(sizes)))
    rows = range(start, data.draw(st.integers(start + 1, start + 9)))  # there may be none to seed at the end
    matrix = np.eye(len(rows), sum(sizes), start)
    if data.draw(st.booleans()):
        rows = matrix = np.random.default_rng(0).standard_normal(matrix.shape)
    found = seed(rows, shapes, dtypes, adjoint_mode=adjoint_mode)
    columns = np.cumsum([0, *sizes])
    for batch, shape, dtype, column in zip(found, shapes, dtypes, columns, strict=False):
        dense = batch.dense()
        assert dense.rows.shape == (dense.stop - dense.start, *shape)
        assert (dense.dtype.kind == "c") == (dtype.kind == "c")
        if dtype.kind == "c" and dense.rows.size:  # u + iv, and derivatives by u minus i times those by v
            u, v = matrix[dense.start : dense.stop, column : column + 2].T
            want = u - 1j * v if adjoint_mode else u + 1j * v
            np.testing.assert_array_equal(dense.rows.reshape(len(u), -1)[:, 0], want)
    reached = [batch if batch.start < batch.stop else None for batch in found]
    parts = [
        as_pairs(batch, adjoint_mode=adjoint_mode) if batch and dtype.kind == "c" else batch
        for batch, dtype in zip(reached, dtypes, strict=True)
    ]
    joined = assemble(parts, sizes, len(rows), np.dtype(np.float64))
    assert joined.flags.writeable
    np.testing.assert_array_equal(joined, matrix)


@settings(deadline=None)
@given(st.integers(1, 7), st.integers(1, 9), st.booleans(), st.integers(0, 7))
def test_blocks_are_joined_in_the_most_precise_type_of_all(count, block, is_range, zeros):
    matrix = np.arange(1.0, 3 * count + 1).reshape(count, 3) / 3
    matrix[:zeros] = 0
    sizes = []

    def sweep(seeds):
        rows = matrix[seeds.start : seeds.stop] if isinstance(seeds, range) else seeds
        sizes.append(len(rows))
        return rows if rows.any() else rows.astype(np.float32)

    got = in_blocks(sweep, range(count) if is_range else matrix, block)
    np.testing.assert_array_equal(got, matrix)
    assert sum(sizes) == count
    assert max(sizes) <= block


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_parts_that_are_joined_need_not_have_the_first_direction(monkeypatch, method):
    def f(x):
        return anp.cumsum(anp.concatenate([anp.sin(x[6:9]), x[3:6]])) * x[5]

    forced(monkeypatch, "arrays")
    x = np.linspace(0.1, 1.0, 10)
    got = parallel_jacobian(f, method=method, machines=1)(x)
    np.testing.assert_allclose(got, jacobian(f)(x), rtol=0, atol=1e-14)


def test_adjoints_of_joined_parts_are_one_array_before_they_are_parted(monkeypatch):
    """Those of a mean are a view, which each of many parts would copy as a whole."""
    parted = []

    def scatter_into(seeds, parent, A, *others):
        parted.append(A.rows.flags.c_contiguous)
        scatter(seeds, parent, A, *others)

    scatter = map_step.scatter_into
    monkeypatch.setattr(map_step, "scatter_into", scatter_into)

    def mean(x):
        return anp.mean(anp.array([anp.cumsum(anp.sin(k * x)) for k in range(20)]), axis=0)[::50]

    forced(monkeypatch, "arrays")
    x = np.linspace(0.0, 1.0, 400)
    found = parallel_jacobian(mean, method="adjoint")(x)
    np.testing.assert_allclose(found, jacobian(mean)(x), rtol=1e-12, atol=1e-14)
    assert len(parted) >= 20
    assert all(parted)


SQUARES = {
    "matmul": lambda x: anp.array([x @ x, anp.sin(x) @ anp.sin(x)]),
    "dot": lambda x: anp.dot(x, x) * anp.dot(anp.cos(x), anp.cos(x)),
    "numbers": lambda x: anp.dot(x[0], x[0]) + anp.dot(x[1], x[1] + 1.0),
    "inner": lambda x: anp.inner(x, x) * anp.exp(x),
    "norm": lambda x: anp.array([anp.linalg.norm(x - 1.0), anp.linalg.norm(x)]),
    "list": lambda x: anp.dot(*[[x[0], x[1] * x[2]]] * 2),
    "complex": lambda x: anp.real(anp.matmul(*[anp.exp(1j * x)] * 2) * 2j),
    "matrix": lambda x: anp.matmul(*[anp.reshape(anp.tanh(x), (2, 2))] * 2),
    "others": lambda x: anp.outer(x, x) + anp.kron(x, x).reshape(4, 4) + anp.einsum("i,i->", x, x),
}


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize("method", ["tangent", "adjoint"])
def test_products_of_values_with_themselves(monkeypatch, name, method):
    forced(monkeypatch, "arrays")
    x = np.linspace(0.3, 1.2, 4)
    found = parallel_jacobian(SQUARES[name], method=method)(x)
    np.testing.assert_allclose(found, jacobian(SQUARES[name])(x), rtol=1e-13, atol=1e-14)


def test_a_product_of_a_vector_with_itself_is_carried_by_one_operand(monkeypatch):
    forced(monkeypatch, "arrays")
    called = []
    monkeypatch.setattr(array_steps, "_called", lambda *call: called.append(call[-1]) or _called(*call))
    x = np.arange(1.0, 5.0)
    for method in "tangent", "adjoint":
        found = parallel_jacobian(lambda x: anp.array([x @ x]), method=method)(x)
        np.testing.assert_array_equal(found[0], 2.0 * x)
    assert called == [0, 0]
    parallel_jacobian(lambda x: anp.array([x @ anp.sin(x)]), method="adjoint")(x)
    assert called == [0, 0, 0, 1]


def test_rules_of_users_are_asked_for_both_operands(monkeypatch):
    forced(monkeypatch, "arrays")
    monkeypatch.setattr(registry, "_rules", {**registry._rules})
    monkeypatch.setattr(registry, "_users", dict(registry._users))
    monkeypatch.setattr(overrides, "_kept", set(overrides._kept))
    rules = [lambda A, ans, x, y: A[:, None] * y, lambda A, ans, x, y: 3.0 * A[:, None] * x]
    defvector(anp.dot, adjoints=rules)
    x = np.arange(1.0, 5.0)
    found = parallel_jacobian(lambda x: anp.array([anp.dot(x, x)]), method="adjoint")(x)
    np.testing.assert_array_equal(found[0], 4.0 * x)
