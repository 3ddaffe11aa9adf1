"""Smooth functions of matrices with equal or close eigenvalues or singular values keep their digits."""

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian

from tapesplit import parallel_jacobian

METHODS = ["auto", "tangent", "adjoint"]


def matrix(x, gap):
    """A multiple of the identity plus products of x, but for gaps between the eigenvalues."""
    Q = onp.linalg.qr(onp.cos(onp.outer(onp.arange(x.size), onp.arange(x.size)) + 0.3))[0]
    return np.outer(x, x) + Q @ onp.diag(0.5 + gap * onp.arange(x.size)) @ Q.T


def traces(A):
    """The traces of ``exp(-A)``."""
    return np.sum(np.exp(-np.linalg.eigh(A)[0]))


def nuclear(A):
    """A smooth function of the singular values."""
    return np.sum(np.exp(-np.linalg.svd(A, full_matrices=False)[1]))


def stack(x, gap):
    return np.stack([matrix(x, gap), matrix(1.1 * x, gap)])


CASES = {
    "one matrix": lambda gap: grad(lambda x: traces(matrix(x, gap))),
    "stack": lambda gap: grad(lambda x: traces(stack(x, gap))),
    "singular values": lambda gap: grad(lambda x: nuclear(stack(x, gap))),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [3, 5, 6])
@pytest.mark.parametrize("gap", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("name", CASES)
def test_hessians_keep_their_digits(name, gap, n, method):
    fun, x = CASES[name](gap), onp.random.default_rng(n).standard_normal(n)
    expected = jacobian(fun)(x)
    found = parallel_jacobian(fun, method=method)(x)
    onp.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * onp.abs(expected).max())


def test_equal_eigenvalues():
    fun, x = CASES["one matrix"](0.0), onp.random.default_rng(3).standard_normal(3)
    expected = jacobian(fun)(x)
    onp.testing.assert_allclose(
        parallel_jacobian(fun)(x), expected, rtol=0, atol=1e-9 * onp.abs(expected).max()
    )
