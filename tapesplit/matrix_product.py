"""Products of matrices: thin ones in blocks that BLAS need not copy, large ones shared among threads."""

from itertools import pairwise
from math import ceil
from typing import Final

import numpy as np

from tapesplit.sharing import run_parts, shares

__all__ = ["SHARED_FMA", "SHARED_WIDTH", "UNCACHED", "multiply"]

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
_NEXT_TO_NONE: Final = 3
"""Columns of a second operand that take less time one by one."""
_FEWEST_ADDED: Final = 4
"""Columns of a block of the first operand whose product takes longer than adding it to those before."""
_LONG: Final = 1600
"""Numbers of a product up to which it is best added up from blocks of rows and columns that are longer."""
_FEW_DOTS: Final = 1000
"""The same where rows of A and columns of B lie in one piece in memory: BLAS is faster there."""
UNCACHED: Final = 2_000_000
"""Numbers from which on a matrix is read from memory again for each product."""
_CACHED: Final = 65_536
"""Numbers of a block of it that stay in a core's own cache."""
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
    multiplied as they stand, and whose results stay in the cache, then take down to a third of the time.
    Where the product is small, blocks of what is summed take half of it.
    Vectors are multiplied as they stand in any case.
    """
    rows, inner = A.shape
    columns = B.shape[1]
    fma = rows * inner * columns
    is_vector = min(rows, columns) == 1
    if fma <= _PACKED or is_vector or np.result_type(A, B).kind not in "fc":  # which BLAS does not multiply
        return np.matmul(A, B, out=out)
    blocks = 2 * ceil(fma / _PACKED)
    are_dots = A.strides[0] > A.strides[1] and B.strides[0] < B.strides[1]
    if rows * columns <= (_FEW_DOTS if are_dots else _LONG):
        return _summed(A, B, blocks, out)
    if min(rows / _FEW, columns / _FEW, inner / _FEW_BETWEEN) > 1:
        return np.matmul(A, B, out=out)
    if rows < columns:
        return _multiplied(B.T, A.T, None if out is None else out.T).T
    if columns <= _FEW and A.strides[0] < A.strides[1] and inner >= blocks * _FEWEST_ADDED:
        return _added(A, B, blocks, out)
    return np.matmul(A, B, out=out) if rows < blocks * _FEW else _stacked(A, B, blocks, out)


def _summed(A: np.ndarray, B: np.ndarray, blocks: int, out: np.ndarray | None) -> np.ndarray:
    """Multiply by blocks of columns of A and rows of B, all at once, and add up their small products."""
    (rows, inner), columns = A.shape, B.shape[1]
    length = inner // blocks
    whole = length * blocks
    left = A[:, :whole].reshape(rows, blocks, length).swapaxes(0, 1)
    total: np.ndarray = np.matmul(left, B[:whole].reshape(blocks, length, columns)).sum(axis=0, out=out)
    if whole < inner:
        total += A[:, whole:] @ B[whole:]
    return total


def _added(A: np.ndarray, B: np.ndarray, blocks: int, out: np.ndarray | None) -> np.ndarray:
    """Multiply by blocks of columns of A, which stand side by side in memory, and add up.

    Where caches do not hold A, blocks that they hold are multiplied by one column of B after the other if
    there are next to none: more take longer than the blocks of a product.
    """
    left, right = B.T, A.T
    total = out if out is None else out.T
    if A.size > UNCACHED and len(left) <= _NEXT_TO_NONE and len(A) * _FEW <= _CACHED:
        blocks = A.size // _CACHED
        left, total = left[:, None], total if total is None else total[:, None]
    first, *others = _parts(len(right), blocks)
    total = np.matmul(left[..., first], right[first], out=total)
    product = np.empty_like(total)
    for part in others:
        total += np.matmul(left[..., part], right[part], out=product)
    return total.reshape(len(left), -1).T


def _stacked(A: np.ndarray, B: np.ndarray, blocks: int, out: np.ndarray | None) -> np.ndarray:
    """Multiply by blocks of rows of A.

    The matrix that all blocks read is copied into the order in which BLAS walks through it, unless the copy
    would take memory that counts: BLAS does not do that for blocks, which could then take twice as long as
    one piece.
    """
    rows, columns = len(A), B.shape[1]
    if B.size <= max(_SMALL, rows * columns // 8):
        B = np.asarray(B, order="F" if columns <= _FEW and A.flags.f_contiguous else "C")
    product = np.empty((rows, columns), np.result_type(A, B)) if out is None else out
    for part in _parts(rows, blocks):
        np.matmul(A[part], B, out=product[part])
    return product


def _parts(size: int, count: int) -> list[slice]:
    """Cut a range into so many parts of about the same size."""
    return [slice(*ends) for ends in pairwise(size * part // count for part in range(count + 1))]
