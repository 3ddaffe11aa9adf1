"""Products in blocks, and those that threads share, are the products; copies row by row are copies."""

import numpy as np
import pytest
from executors import SerialExecutor, ShufflingExecutor

from tapesplit.arrays import with_rows_in_order
from tapesplit.matrix_product import SHARED_FMA, multiply
from tapesplit.sharing import sharing

THIN = [
    (512, 8, 512),
    (601, 300, 7),
    (5, 900, 411),
    (1500, 3, 250),
    (250, 3, 1500),
    (2000, 1100, 3),
    (4, 1500, 1400),
]
OTHERS = [
    (4, 300_001, 3),
    (9, 200_000, 9),
    (30, 7001, 30),
    (40, 3001, 40),
    (200, 9000, 6),
    (120, 120, 120),
    (3, 2, 4),
    (0, 3, 2),
    (3, 0, 2),
]


@pytest.mark.parametrize("orders", ["CC", "FC", "CF", "FF"])
@pytest.mark.parametrize("sizes", THIN + OTHERS)
def test_products_of_matrices_of_all_forms(sizes, orders):
    rows, inner, columns = sizes
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((rows, inner)), rng.standard_normal((inner, columns))
    product = multiply(np.asarray(A, order=orders[0]), np.asarray(B, order=orders[1]))
    assert product.shape == (rows, columns)
    np.testing.assert_allclose(product, np.einsum("ij,jk->ik", A, B), rtol=1e-10, atol=1e-9)


def test_types_are_those_of_products():
    single, double = np.ones((600, 8), np.float32), np.ones((8, 600))
    for A, B in [(single, double), (single, double.astype(np.float32)), (single * 1j, double)]:
        product = multiply(A, B)
        assert product.dtype == (A @ B).dtype
        assert (product == 8).all() or (product == 8j).all()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64])
def test_products_of_integers_are_numpys(dtype):
    A, B = np.ones((5, 60_000), dtype), np.ones((60_000, 5), dtype)
    product = multiply(A, B)
    assert product.dtype == dtype
    np.testing.assert_array_equal(product, A @ B)


LARGE = [
    (300, 300, 300),
    (90, 600, 400),
    (900, 20, 900),
    (20, 2000, 500),
    (10000, 100, 17),
    (4000, 300, 16),
    (16, 63_000, 17),
]


@pytest.mark.parametrize("orders", ["CC", "FC", "CF", "FF"])
@pytest.mark.parametrize("sizes", LARGE)
def test_shared_products_have_the_same_bits_on_any_threads(sizes, orders):
    rows, inner, columns = sizes
    rng = np.random.default_rng(0)
    A = np.asarray(rng.standard_normal((rows, inner)), order=orders[0])
    B = np.asarray(rng.standard_normal((inner, columns)), order=orders[1])
    shuffling, serial = ShufflingExecutor(3, seed=1), SerialExecutor()
    found = []
    for start in None, serial.submit, shuffling.submit:
        with sharing(3, start):
            found.append(multiply(A, B))
    shuffling.shutdown()
    parts = min(3, 2 * rows * inner * columns // SHARED_FMA)
    assert serial.submitted == shuffling.submitted == parts - 1 > 0
    np.testing.assert_allclose(found[0], A @ B, rtol=1e-10, atol=1e-9)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("sizes", [(100, 100, 100), (3000, 300, 15), (5, 9000, 411), *OTHERS])
def test_small_and_thin_products_are_not_shared(sizes):
    executor = SerialExecutor()
    with sharing(4, executor.submit):
        multiply(np.ones(sizes[:2]), np.ones(sizes[1:]))
    assert executor.submitted == 0


def test_types_of_shared_products_are_those_of_products():
    A, B = np.ones((300, 300), np.float32), np.full((300, 300), 1j)
    with sharing(2, None):
        assert multiply(A, A).dtype == np.float32
        assert (multiply(A, B) == 300j).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 256), (5, 257), (300, 1000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_are_copied_row_by_row(shape, dtype):
    matrix = np.random.default_rng(0).standard_normal(shape[::-1]).astype(np.float32).T
    copy = with_rows_in_order(matrix, np.dtype(dtype))
    assert (copy == matrix).all()
    assert copy.dtype == dtype
    assert copy.flags.c_contiguous
    assert not np.shares_memory(copy, matrix)
