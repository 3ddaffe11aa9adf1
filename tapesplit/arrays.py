"""Types of arrays, shapes and indices, and steps on whole arrays that NumPy has no function for."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DOUBLES",
    "FLOAT64",
    "INTEGERS",
    "SELECTORS",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Shape",
    "coded",
    "equal_columns",
    "first_of",
    "follow",
    "memory_of",
    "occurrences",
    "one_sided_minima",
    "ranges",
    "reached",
    "run_starts",
    "with_rows_in_order",
]

IntArray = NDArray[Any]  # of integers; the stubs of NumPy 2.5 give reductions of `np.integer` no type
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Shape: TypeAlias = tuple[int, ...]
FLOAT64: Final = np.dtype(np.float64)
"""Double precision. The type of an array nearly always is this object, but not if the array was pickled."""
DOUBLES: Final = frozenset({float, np.float64})
"""Types of numbers in double precision."""
INTEGERS: Final = frozenset(np.dtype(code).type for code in np.typecodes["AllInteger"])
"""Types of NumPy's integers, which loops over arrays of indices yield."""
SELECTORS: Final = frozenset({int, slice, type(None), type(Ellipsis), *INTEGERS})
"""Types of the parts of an index that take no element twice."""


def coded(items: Iterable[Any]) -> tuple[list[Any], IntArray]:
    """Return the distinct items, and for each item which of them it is."""
    codes: defaultdict[Any, int] = defaultdict(count().__next__)
    numbers = np.fromiter(map(codes.__getitem__, items), dtype=np.int64)
    return list(codes), numbers


def first_of(codes: IntArray) -> IntArray:
    """Return where each code 0, 1, … stands first."""
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    return first


def equal_columns(table: IntArray) -> list[IntArray]:
    """Split column numbers so that within each part the columns of a table are equal."""
    table = table[(table != table[:, :1]).any(axis=1)]
    if not table.size:
        return [np.arange(table.shape[1])]
    order = np.lexsort(table)
    table = np.take(table, order, axis=1)
    steps = (table[:, 1:] != table[:, :-1]).any(axis=0)
    return np.split(order, 1 + np.flatnonzero(steps))


def memory_of(array: NDArray[Any]) -> tuple[Any, ...]:
    """Return a key that is equal for views of the same elements, as long as these stay in memory."""
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def occurrences(items: IntArray) -> IntArray:
    """Return for each item how many equal ones stand before it."""
    order = np.argsort(items, kind="stable")
    ordered = items[order]
    starts = run_starts(ordered)
    counts = np.diff(np.append(starts, items.size))
    result = np.empty(items.size, dtype=np.int64)
    result[order] = np.arange(items.size) - np.repeat(starts, counts)
    return result


def run_starts(items: NDArray[Any]) -> IntArray:
    """Return where the runs of equal items start."""
    starts = np.ones(items.size, dtype=np.bool_)
    np.not_equal(items[1:], items[:-1], out=starts[1:])
    return np.flatnonzero(starts)


def ranges(starts: IntArray, sizes: IntArray) -> IntArray:
    """Return, one behind the other, ``arange(start, start + size)`` for all pairs."""
    offsets = np.cumsum(sizes) - sizes
    return np.repeat(starts - offsets, sizes) + np.arange(int(sizes.sum()))


def follow(step: NDArray[Any]) -> NDArray[Any]:
    """Return where repeated steps end.

    `step[i]` is the place where one step leads from place i; ends lead to themselves. The result has the end
    reached from each place.

    Notes
    -----
    Takes O(n log d) vectorised steps for paths of up to d steps, as every round doubles what a step covers.

    Examples
    --------
    >>> follow(np.array([1, 3, 2, 3, 0]))
    array([3, 3, 2, 3, 3])
    """
    step = step.copy()
    moving = np.flatnonzero(step != np.arange(step.size, dtype=step.dtype))
    while moving.size:
        before = step.take(moving)
        behind = step.take(before)
        step[moving] = behind
        moving = moving[behind != before]
    return step


def reached(marked: BoolArray, tails: IntArray, heads: IntArray) -> BoolArray:
    """Mark all vertices that can be reached along arcs from marked ones, and the latter themselves.

    The arcs stand in an order in which they can be walked: those into a place before those out of it. Arcs by
    ascending head do, and backwards in reversed order. Takes a Python step for each.

    Examples
    --------
    >>> reached(np.arange(4) == 1, np.array([0, 1, 2]), np.array([2, 3, 3])).tolist()
    [False, True, False, True]
    """
    found = bytearray(marked)  # faster than an array to read one by one
    for tail, head in zip(tails.tolist(), heads.tolist(), strict=True):
        if found[tail]:
            found[head] = 1
    return np.frombuffer(found, dtype=np.bool_)


def one_sided_minima(numbers: NDArray[Any]) -> BoolArray:
    """Return which of some numbers in a row are less than all before them, or than all behind them.

    The first one has none before it to be less than, the last one none behind it.

    Examples
    --------
    >>> one_sided_minima(np.array([5, 7, 3, 4, 4, 9])).tolist()
    [False, False, True, False, True, False]
    """
    found = np.zeros(len(numbers), dtype=np.bool_)
    found[1:] = numbers[1:] < np.minimum.accumulate(numbers)[:-1]
    found[:-1] |= numbers[:-1] < np.minimum.accumulate(numbers[::-1])[::-1][1:]
    return found


def with_rows_in_order(matrix: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Copy a matrix into row-major order, with another type.

    From a column-major matrix, NumPy copies one element of each column in turn; if columns have some thousand
    elements, each of these is on another page of memory. To copy a few hundred columns at a time, more if
    they are short, takes a fourth of the time.
    """
    if matrix.flags.c_contiguous:
        return matrix.astype(dtype)
    copy = np.empty(matrix.shape, dtype)
    at_once = max(_COLUMNS_AT_ONCE, _NUMBERS_AT_ONCE // max(len(matrix), 1))
    for start in range(0, matrix.shape[1], at_once):
        part = slice(start, start + at_once)
        copy[:, part] = matrix[:, part]
    return copy


_COLUMNS_AT_ONCE: Final = 256
"""Columns, each on a page of memory of its own, for which a processor still caches the addresses of all
pages."""
_NUMBERS_AT_ONCE: Final = 8192
"""Numbers whose copying takes longer than a call of NumPy."""
