"""Substitution in a strictly triangular sparse system, many right-hand sides in one call of compiled code.

A chunk of scalar operations is ``y = y₀ + L y`` with the local partial derivatives in a strictly lower
triangular L (Griewank & Walther 2008, Sec. 2 and 9). Forward substitution row by row is the sparse
product ``Y += L Y`` when it may read the rows that it has written. SciPy's CSR kernel does that if it is
handed the same memory twice. Since this is no documented use of it, a small system with a known solution
is checked once; if the check fails, SuperLU solves instead.
"""

from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

try:
    from scipy.sparse import _sparsetools
except ImportError:  # pragma: no cover (another layout of SciPy's internals)
    kernels: Any = None
else:
    kernels = _sparsetools

__all__ = ["substitute"]


def substitute(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, Y: np.ndarray, *, transposed: bool
) -> None:
    """Solve ``(I - L) X = Y`` in place for strictly lower triangular L in CSR form.

    Parameters
    ----------
    indptr, indices, data
        L, shape ``(N, N)``; every column index is smaller than its row index.
    Y
        Right-hand sides, C-contiguous, of shape ``(N, k)`` and of the type of `data`, float32 or float64;
        overwritten by the solution.
    transposed
        Whether column j of L is stored where a CSR matrix stores row j; every index is then larger than the
        number of its column.

    Notes
    -----
    Takes a multiply-add for each entry of L and each column of Y, the ``coefficient_direction`` of
    `tapesplit.cost.model.CostModel`. The rows of Y are computed one after the other, so the result has the
    same bits every time.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1.0], [0.0], [0.0]])
    >>> substitute(np.array([0, 0, 1, 2]), np.array([0, 1]), np.array([2.0, 3.0]), Y, transposed=False)
    >>> Y.ravel()
    array([1., 2., 6.])
    """
    size, count = Y.shape
    if _kernels_work():
        kernel = kernels.csc_matvecs if transposed else kernels.csr_matvecs
        flat = Y.reshape(-1)
        kernel(size, size, count, indptr, indices, data, flat, flat)
        return
    L = csr_array((data, indices, indptr), shape=(size, size))
    system = eye_array(size, format="csc") - (L.T if transposed else L)
    Y[:] = splu(system.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0).solve(Y)  # without reordering


@cache
def _kernels_work() -> bool:
    """Check SciPy's kernels on a chain of four unknowns with fan-out, two right-hand sides."""
    if not (hasattr(kernels, "csr_matvecs") and hasattr(kernels, "csc_matvecs")):
        return False
    indptr, indices = np.array([0, 0, 1, 3, 5], np.int32), np.array([0, 0, 1, 1, 2], np.int32)
    data = np.array([2.0, 3.0, 5.0, 7.0, 11.0])
    forward = np.zeros((4, 2))
    forward[0] = 1.0, 2.0
    flat = forward.reshape(-1)
    kernels.csr_matvecs(4, 4, 2, indptr, indices, data, flat, flat)
    expected = np.array([1.0, 2.0, 13.0, 157.0])
    # The same matrix with columns stored, unknowns numbered from the end.
    backward = np.zeros((4, 2))
    backward[0] = 1.0, 2.0
    starts, targets = np.array([0, 2, 4, 5, 5], np.int32), np.array([2, 1, 3, 2, 3], np.int32)
    weights = np.array([7.0, 11.0, 3.0, 5.0, 2.0])
    flat = backward.reshape(-1)
    kernels.csc_matvecs(4, 4, 2, starts, targets, weights, flat, flat)
    right = np.array([1.0, 11.0, 62.0, 157.0])
    return bool(
        np.array_equal(forward, np.outer(expected, [1.0, 2.0]))
        and np.array_equal(backward, np.outer(right, [1.0, 2.0]))
    )
