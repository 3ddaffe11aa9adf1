"""Products of matrices: thin ones in blocks that BLAS need not copy, large ones shared among threads."""

from itertools import pairwise
from math import ceil
from typing import Final

import numpy as np

from tapesplit.sharing import run_parts, shares

__all__ = ["SHARED_FMA", "SHARED_WIDTH", "UNCACHED", "multiply"]

SHARED_FMA: Final = 16_000_000
"""Multiply-adds from which on a product is shared by two threads; each thread gets half as many or more."""
SHARED_WIDTH: Final = 16
"""The fewest rows and columns of both matrices: thinner ones take longer to be read than to be multiplied."""
_PACKED: Final = 1_000_000
"""Multiply-adds above which OpenBLAS copies the operands first."""
_FEW: Final = 8
"""Rows of a first or columns of a second operand up to which copying takes longer than the product."""
_FEW_BETWEEN: Final = 20
"""The same for the columns of the first operand, the rows of the second."""
_NEXT_TO_NONE: Final = 3
"""Columns of a second operand up to which it is faster to multiply them one by one."""
_FEWEST_ADDED: Final = 4
"""Columns in a block of the first operand, at least, so that its product is worth being added up."""
_LONG: Final = 1600
"""Elements of a product up to which it is best added up from products of blocks, see `_summed`."""
_FEW_DOTS: Final = 1000
"""The same if rows of A and columns of B are contiguous in memory, for which BLAS is faster."""
UNCACHED: Final = 2_000_000
"""Numbers from which on a matrix is read from memory again for each product."""
_CACHED: Final = 65_536
"""Numbers in a block of such a matrix that stays in a core's own cache."""
_SMALL: Final = 8192
"""Numbers up to which the memory of a copy is negligible."""


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
    if fma <= _PACKED or is_vector or np.result_type(A, B).kind not in "fc":  # BLAS has these kinds only
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
    """Multiply blocks of columns of A, which is column-major, by rows of B, and add the products up.

    If A does not fit into caches and B has next to no columns, smaller blocks, which do fit, are multiplied
    by each column of B separately. For more columns that would take longer.
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

    B, which all blocks read, is first copied into the order in which BLAS reads it, unless the copy would
    take much memory. For small blocks BLAS does not do that itself, and without the copy they could take
    twice as long as the product in one piece.
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
