"""Constant matrices of mostly zeros: products with them have few scalar edges."""

import pickle
import tracemalloc

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian
from hypothesis import given
from hypothesis import strategies as st

from tapesplit import execute, parallel_jacobian, record
from tapesplit.arrays import memory_of
from tapesplit.rules import local_structures, non_zeros
from tapesplit.structures.constants import known_zeros
from tapesplit.structures.structure import structure_of
from tapesplit.sweeps import coefficients
from tapesplit.sweeps.compression import CompressedSweep

RANDOM = onp.random.default_rng(40)


def sparse(rows, columns, part=0.05, dtype=float):
    """Return a matrix of mostly zeros."""
    matrix = RANDOM.standard_normal((rows, columns)) * (RANDOM.random((rows, columns)) < part)
    return (10 * matrix).round().astype(dtype) if dtype is int else matrix.astype(dtype)


def differences(n):
    """Return the matrix of second differences."""
    return onp.eye(n, k=1) - 2.0 * onp.eye(n) + onp.eye(n, k=-1)


@given(
    rows=st.integers(1, 90),
    columns=st.integers(1, 90),
    part=st.sampled_from([0.0, 0.02, 0.2]),
    dtype=st.sampled_from([float, int, complex, onp.float32]),
    transposed=st.booleans(),
)
def test_where_there_are_no_zeros(rows, columns, part, dtype, transposed):
    matrix = sparse(rows, columns, part, dtype)
    if transposed:
        matrix = matrix.T
    known = non_zeros(matrix, {})
    if known is None:
        assert matrix.size < 144 or onp.count_nonzero(matrix) > matrix.size // 4
    else:
        assert known.count() == onp.count_nonzero(matrix)
        onp.testing.assert_array_equal(known.positions(matrix.shape), onp.flatnonzero(matrix))
        assert known == non_zeros(matrix.copy("K"), {})
        strided = onp.repeat(matrix, 2, axis=1)[:, ::2]
        onp.testing.assert_array_equal(
            non_zeros(strided, {}).positions(matrix.shape), onp.flatnonzero(matrix)
        )


@pytest.mark.parametrize("shape", [(1, 200_000), (200_000, 1), (700, 700), (8193, 9)])
def test_large_matrices_are_read_in_parts(shape):
    matrix = onp.zeros(shape)
    matrix.flat[[0, 65_535, 65_536, matrix.size - 1]] = 1.0
    expected = [0, 65_535, 65_536, matrix.size - 1]
    onp.testing.assert_array_equal(non_zeros(matrix, {}).positions(matrix.shape), expected)
    assert non_zeros(matrix + 1.0, {}) is None


@pytest.mark.parametrize(
    "constant",
    [[[0.0] * 40] * 40, onp.zeros(1600), onp.zeros((7, 20, 9)), onp.zeros((40, 40), bool), 0.0, None],
)
def test_no_matrices_of_numbers(constant):
    assert non_zeros(constant, {}) is None


A, B, Z = sparse(36, 32), sparse(32, 36), sparse(36, 32, dtype=complex)
COUNTS = sparse(36, 32, dtype=int)
PROGRAMS = {
    "matrix times vector": lambda x: np.sin(A @ np.exp(x)) * 2.0,
    "vector times matrix": lambda x: np.sin(np.exp(x) @ B),
    "dot": lambda x: np.dot(np.dot(A, x), A) ** 2,
    "integers": lambda x: np.tanh(np.dot(COUNTS, x * x)),
    "complex numbers": lambda x: np.abs(Z @ np.exp(1j * x)) ** 2,
    "einsum": lambda x: np.einsum("ij,j->i", A, x**2) * np.einsum("j,ji->i", x, B),
    "einsum by rows": lambda x: np.einsum("ij,ij->i", A, np.sin(np.outer(np.ones(36), x))),
    "inner": lambda x: np.cos(np.inner(A, x)),
    "tensordot": lambda x: np.tensordot(A, np.sin(x), 1),
    "a stack of vectors": lambda x: np.ravel(A @ np.stack([np.sin(x), x, x**2], axis=1)),
    "a stack times a matrix": lambda x: np.ravel(np.stack([np.sin(x), x, x**2]) @ B),
    "stacked matrices": lambda x: np.ravel(A @ np.reshape(np.outer(np.sin(x), x[:6]), (2, 32, 3))),
    "no dependence at all": lambda x: np.exp(0.0 * A @ x) + x[:1],
    "transposed": lambda x: np.sin(B.T @ x) * np.sin(A[:, ::-1] @ x),
    "twice": lambda x: np.dot(A, np.dot(B, np.dot(A, x)) ** 2),
    "a loop": lambda x: loop(x, differences(32)),
}


def loop(x, matrix):
    """Take steps of an explicit method."""
    for _ in range(4):
        x = x + 0.1 * np.dot(matrix, x) - x**3
    return x


POINT = RANDOM.uniform(0.3, 0.9, 32)


@pytest.mark.parametrize("name", PROGRAMS)
def test_edges_are_those_of_the_whole_matrix_but_for_zeros(name):
    tape, checked = record(PROGRAMS[name], POINT), 0
    for entry, static in zip(tape, structure_of(tape).statics, strict=True):
        matrix = known_zeros(static)
        if matrix is None:
            continue
        positions = matrix.content.positions(matrix.shape)
        (whole,), (local,) = local_structures(entry), local_structures(entry, positions)
        ((number, everywhere),), ((operand, places),) = whole.factors, local.factors
        kept = onp.ravel(entry.args[number])[everywhere] != 0
        assert operand == number
        onp.testing.assert_array_equal(local.rows, whole.rows[kept])
        onp.testing.assert_array_equal(local.columns, whole.columns[kept])
        onp.testing.assert_array_equal(positions[places], everywhere[kept])
        for row in onp.unique(local.rows):
            assert local.rank[local.rows == row].tolist() == list(range(onp.sum(local.rows == row)))
        checked += 1
    assert checked


@pytest.mark.parametrize(
    ("size", "columns", "known"),
    [(16, 16, True), (16, 1, False), (16, 4, False), (11, 20, False), (32, 1, True)],
)
def test_small_matrices_are_read_for_products_with_matrices(size, columns, known):
    matrix, x = differences(size), onp.linspace(0.1, 1.0, size * columns)
    shape = (size, columns) if columns > 1 else (size,)

    def fun(x):
        return np.ravel(np.dot(matrix, np.reshape(x, shape)) + np.reshape(x, shape) ** 3)

    found = [known_zeros(static) is not None for static in structure_of(record(fun, x)).statics]
    assert any(found) == known
    onp.testing.assert_allclose(parallel_jacobian(fun)(x), jacobian(fun)(x), rtol=1e-12, atol=1e-12)


def test_large_matrices_take_little_memory():
    matrix, x = differences(2000), onp.ones(2000)
    tape = record(lambda x: np.dot(matrix, x), x)
    kept = non_zeros(matrix, {}).positions(matrix.shape)
    tracemalloc.start()
    (local,) = local_structures(tape[1], kept)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert local.rows.size == onp.count_nonzero(matrix)
    assert peak < matrix.nbytes / 20


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_products_with_matrices_of_zeros(name, method):
    fun = PROGRAMS[name]
    jac = parallel_jacobian(fun, method=method)
    for x in (POINT, POINT[::-1].copy()):
        onp.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-11, atol=1e-12)
    assert jac.cache_info().hits == 1


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sum(np.log1p(np.dot(A, x) ** 2)),
        lambda x: 0.5 * np.dot(x, differences(32) @ x) + np.sum(np.dot(A, x**2) ** 3),
        lambda x: np.sum(np.tensordot(np.sin(x), B, 1) ** 3),
    ],
)
def test_hessians(fun):
    hessian = parallel_jacobian(grad(fun))
    onp.testing.assert_allclose(hessian(POINT), jacobian(grad(fun))(POINT), rtol=1e-11, atol=1e-12)


def test_matrices_of_zeros_make_jacobians_sparse():
    matrix = differences(150)
    jac = parallel_jacobian(lambda x: loop(x, matrix))
    x = RANDOM.uniform(0.3, 0.9, 150)
    plan = jac.plan(x)
    assert any(isinstance(sweep, CompressedSweep) for sweep in plan.sweeps)
    told = "4 products with constant matrices of mostly zeros have edges for 2.0% of their elements"
    assert told in " ".join(plan.describe("full").split())
    onp.testing.assert_allclose(jac(x), jacobian(lambda x: loop(x, matrix))(x), rtol=1e-11, atol=1e-13)


def test_zeros_that_come_and_go():
    """They are found at each call, also in a matrix that is changed in place; after three plans, by none."""
    matrix = differences(40)
    fun = lambda x: np.dot(matrix, np.sin(np.dot(matrix, x**2)))  # noqa: E731
    jac, x = parallel_jacobian(fun), RANDOM.uniform(0.3, 0.9, 40)

    def check():
        onp.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-11, atol=1e-12)

    check()
    matrix *= 3.0
    check()
    assert jac.cache_info()[:2] == (1, 1)
    matrix[3, 20] = 5.0
    assert ", 1482 zeros to a float64 array of shape (40, 40), 1481 zeros" in jac.explain_miss(x)
    check()
    assert jac.cache_info().misses == 2
    for number in range(4, 10):
        matrix[number, 21] = 5.0
        check()
    matrix[...] = 1.0
    check()
    matrix[...] = 0.0
    check()
    assert jac.cache_info()[:2] == (8, 3)


def test_many_matrices_may_change_at_a_time():
    """They are read one by one in any case, so that their number does not matter."""
    matrices = [differences(33) for _ in range(300)]

    def fun(x):
        for matrix in matrices:
            x = x + 1e-3 * np.dot(matrix, x)
        return x

    jac, x = parallel_jacobian(fun, method="adjoint"), RANDOM.uniform(0.3, 0.9, 33)
    for turn in range(5):
        for matrix in matrices:
            matrix[turn, 10] += 0.5
        onp.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-11, atol=1e-12)
    assert jac.cache_info()[:2] == (2, 3)


def test_a_plan_for_any_matrix_serves_one_of_zeros():
    matrix = onp.ones((40, 40))
    jac = parallel_jacobian(lambda x: np.dot(matrix, x * x) + np.round(x))
    x = RANDOM.uniform(0.3, 0.9, 40)
    jac(x)
    matrix[...] = differences(40)
    assert jac.explain_miss(x) is None
    onp.testing.assert_allclose(jac(x), matrix * 2.0 * x)


def test_plans_with_zeros_are_pickled_and_executed():
    fun = PROGRAMS["dot"]
    plan = parallel_jacobian(fun).plan(POINT)
    assert any(map(known_zeros, plan.structure.statics))
    tape = record(fun, POINT[::-1].copy())
    want = jacobian(fun)(POINT[::-1].copy())
    onp.testing.assert_allclose(execute(pickle.loads(pickle.dumps(plan)), tape), want)  # noqa: S301 (our own)


def test_plans_that_multiply_by_whole_matrices_serve_any():
    """Array steps have no use for zeros, so that no call looks for them."""
    matrix = sparse(300, 300, 0.2)
    jac = parallel_jacobian(
        lambda x: np.sum(np.tanh(np.dot(matrix, np.outer(x, x))), axis=0), method="adjoint"
    )
    x = RANDOM.uniform(0.1, 0.2, 300)
    plan = jac.plan(x)
    assert not any(map(known_zeros, plan.structure.statics))
    matrix[...] = differences(300)
    assert jac.explain_miss(x) is None


def test_loops_gather_no_zeros_and_each_matrix_once(monkeypatch):
    matrix, x = differences(200), RANDOM.uniform(0.3, 0.9, 200)

    def fun(x):
        for _ in range(50):
            x = x + 0.1 * np.dot(matrix.T, x) - 0.1 * x**3
        return x

    jac = parallel_jacobian(fun)
    expected = jacobian(fun)(x)
    onp.testing.assert_allclose(jac(x), expected, rtol=1e-11, atol=1e-13)
    (sweep,) = jac.plan(x).sweeps
    tape = jac.tape(x)
    looked_at = []
    monkeypatch.setattr(coefficients, "memory_of", lambda of: looked_at.append(of) or memory_of(of))
    gathered = getattr(sweep, "sweep", sweep).values.gather(tape)  # a compressed sweep has the whole one
    assert gathered.size < 50 * 5 * 200
    assert len(looked_at) == 50
    assert len({memory_of(of) for of in looked_at}) == 1


def test_patterns_that_change_with_shapes_in_turn():
    """Six shapes, each with other zeros at every call: each shape soon has a plan for any matrix."""
    point = {n: RANDOM.uniform(0.3, 0.9, n) for n in range(40, 46)}
    matrices = {}

    def fun(x):
        for _ in range(40):
            x = x + 0.01 * np.dot(matrices[x.size], x) - 0.1 * x**3
        return x

    jac = parallel_jacobian(fun, method="tangent")
    for turn in range(5):
        for n, x in point.items():
            matrices[n] = differences(n)
            matrices[n][turn, 20] = 0.5
            onp.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-11, atol=1e-12)
    assert jac.cache_info()[:2] == (12, 18)


def test_products_that_are_blocks_have_no_use_for_zeros():
    matrix = differences(40)

    def fun(x):
        y = x * np.sum(np.einsum("ii,i->", matrix, x))
        for _ in range(40):
            y = np.tanh(y + y[0])
        return y

    jac = parallel_jacobian(fun, method="adjoint")
    x = RANDOM.uniform(0.3, 0.9, 40)
    onp.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-11, atol=1e-13)
    assert not any(map(known_zeros, jac.plan(x).structure.statics))


def test_layouts_of_matrices_are_told():
    matrix = differences(150)
    jac = parallel_jacobian(lambda x: loop(x, matrix))
    x = RANDOM.uniform(0.3, 0.9, 150)
    jac(x)
    matrix = onp.asfortranarray(matrix)
    assert "22052 zeros to a float64 array of shape (150, 150), 22052 zeros by columns" in jac.explain_miss(x)
    onp.testing.assert_allclose(jac(x), jacobian(lambda x: loop(x, matrix))(x), rtol=1e-11, atol=1e-13)
