"""Products of matrices: thin ones in blocks that BLAS need not copy, large ones shared among threads."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from itertools import pairwise
from math import ceil
from typing import Any, Final, TypeAlias

import numpy as np

__all__ = ["SHARED_FMA", "SHARED_WIDTH", "multiply", "shared_products"]

Start: TypeAlias = Callable[..., "Future[Any]"]

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


class _Sharing(threading.local):
    """How many threads share the products of this one, and what starts a call on another one."""

    threads = 1
    start: Start | None = None


_here = _Sharing()


@contextmanager
def shared_products(threads: int, start: Start | None) -> Iterator[None]:
    """Share the large products of this thread among several.

    Parameters
    ----------
    threads
        Number of threads, this one included.
    start
        Runs a function on another thread and returns a future. None computes the same parts of each product
        here, one after the other: the same bits.
    """
    before = _here.threads, _here.start
    try:
        _here.threads, _here.start = threads, start
        yield
    finally:
        _here.threads, _here.start = before


def multiply(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Multiply two matrices, with the other threads of `shared_products` if there are some."""
    rows, columns = A.shape[0], B.shape[1]
    parts = min(_here.threads, 2 * rows * A.shape[1] * columns // SHARED_FMA)
    if parts < 2 or min(rows, A.shape[1], columns) < SHARED_WIDTH:
        return _multiplied(A, B)
    product = np.empty((rows, columns), np.result_type(A, B))
    longer = max(rows, columns)
    bounds = [longer * part // parts for part in range(parts + 1)]
    pieces = [
        (A[start:stop], B, product[start:stop])
        if rows == longer
        else (A, B[:, start:stop], product[:, start:stop])
        for start, stop in pairwise(bounds)
    ]
    elsewhere: list[Future[Any]] = []
    try:
        for piece in pieces[1:]:
            if _here.start is None:
                _multiplied(*piece)
            else:
                elsewhere.append(_here.start(_multiplied, *piece))
        _multiplied(*pieces[0])
    finally:
        wait(elsewhere)  # they write into what the caller may let go of
    for future in elsewhere:
        future.result()
    return product


def _multiplied(A: np.ndarray, B: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Multiply two matrices; thin ones in blocks.

    Where a matrix is narrow, each number is used a few times only. Blocks that are small enough to be
    multiplied as they stand, and whose results stay in the cache, then take down to half the time. What all
    blocks read is put in the order in which BLAS walks through it, which it does not do itself, unless the
    copy would take memory that counts: else a product can take twice as long as in one piece.
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
