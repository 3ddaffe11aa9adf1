"""Products in blocks are the products."""

import numpy as np
import pytest

from tapesplit.matrix_product import multiply

THIN = [(512, 8, 512), (601, 300, 7), (5, 900, 411), (1500, 3, 250), (250, 3, 1500)]
OTHERS = [(4, 300_000, 3), (9, 200_000, 9), (120, 120, 120), (3, 2, 4), (0, 3, 2), (3, 0, 2)]


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
