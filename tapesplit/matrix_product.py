"""Products of matrices: thin ones in blocks that BLAS need not copy, large ones shared among threads."""

from itertools import pairwise
from math import ceil
from typing import Final

import numpy as np

from tapesplit.sharing import run_parts, shares

__all__ = ["SHARED_FMA", "SHARED_WIDTH", "multiply"]

SHARED_FMA: Final = 16_000_000
"""Multiply-adds from which on a product is worth being shared by two threads, and half as many for each."""
SHARED_WIDTH: Final = 16
"""The fewest rows and columns of both matrices: thinner ones take longer to be read than to be multiplied."""
_PACKED: Final = 1_000_000
"""Multiply-adds above which OpenBLAS copies the operands first."""
_FEW: Final = 8
"""Rows of a first or columns of a second operand for which that takes longer than the product."""
_FEW_BETWEEN: Final = 20
"""The same for the columns of the first operand, the rows of the second."""
_SMALL: Final = 8192
"""Numbers that are copied without a thought for memory."""


def multiply(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Multiply two matrices; threads share a large product, see `tapesplit.sharing`."""
    rows, inner = A.shape
    columns = B.shape[1]
    fma = rows * inner * columns
    if fma < SHARED_FMA or min(rows, inner, columns) < SHARED_WIDTH:
        return _multiplied(A, B)
    parts = shares(max(rows, columns), 2 * fma // SHARED_FMA)
    if len(parts) == 1:
        return _multiplied(A, B)
    product = np.empty((rows, columns), np.result_type(A, B))
    if rows >= columns:
        run_parts(_multiplied, [(A[part], B, product[part]) for part in parts])
    else:
        run_parts(_multiplied, [(A, B[:, part], product[:, part]) for part in parts])
    return product


def _multiplied(A: np.ndarray, B: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Multiply two matrices; thin ones in blocks.

    Where a matrix is narrow, each number is used a few times only. Blocks that are small enough to be
    multiplied as they stand, and whose results stay in the cache, then take down to half the time. The matrix
    that all blocks read is copied into the order in which BLAS walks through it, unless the copy would take
    memory that counts: BLAS does not do that for blocks, which could then take twice as long as one piece.
    """
    rows, inner = A.shape
    columns = B.shape[1]
    fma = rows * inner * columns
    if fma <= _PACKED or min(rows / _FEW, columns / _FEW, inner / _FEW_BETWEEN) > 1:
        return np.matmul(A, B, out=out)
    if rows < columns:
        return _multiplied(B.T, A.T, None if out is None else out.T).T
    blocks = 2 * ceil(fma / _PACKED)
    if rows < blocks * _FEW:
        return np.matmul(A, B, out=out)
    if B.size <= max(_SMALL, rows * columns // 8):
        B = np.asarray(B, order="F" if columns <= _FEW and A.flags.f_contiguous else "C")
    product = np.empty((rows, columns), np.result_type(A, B)) if out is None else out
    starts = [rows * block // blocks for block in range(blocks + 1)]
    for start, stop in pairwise(starts):
        np.matmul(A[start:stop], B, out=product[start:stop])
    return product
