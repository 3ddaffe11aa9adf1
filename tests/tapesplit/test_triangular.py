"""Triangular systems: SciPy's kernels and SuperLU, which takes over where these are not there, agree."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from tapesplit.sweeps import triangular


@pytest.mark.parametrize("kernels_work", [True, False])
@pytest.mark.parametrize("directions", [1, 8, 33])
@pytest.mark.parametrize("size", [1, 2, 40])
def test_systems_are_solved(monkeypatch, size, directions, kernels_work):
    monkeypatch.setattr(triangular, "_kernels_work", lambda: kernels_work)
    random = np.random.default_rng(size)
    dense = np.tril(random.standard_normal((size, size)) * (random.random((size, size)) < 0.3), -1)
    Y = random.standard_normal((size, directions))
    for transposed in (False, True):
        given, X = csr_array(dense.T if transposed else dense), Y.copy()
        triangular.substitute(given.indptr, given.indices, given.data, X, transposed=transposed)
        np.testing.assert_allclose(X - dense @ X, Y, rtol=0, atol=1e-12 * np.abs(X).max())


@pytest.mark.skipif(triangular.kernels is None, reason="SciPy has no such kernels any more")
def test_kernels_are_used_where_they_work():
    assert triangular._kernels_work()


def test_kernels_that_are_not_there_do_not_work(monkeypatch):
    monkeypatch.setattr(triangular, "kernels", None)
    assert not triangular._kernels_work.__wrapped__()
