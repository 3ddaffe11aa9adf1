"""Numbering: the index maps of a call, found by running its primitive on position numbers.

So one line registers a primitive that only moves elements, and every form of its arguments is covered.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd.builtins import container_take
from autograd.numpy.numpy_wrapper import array_from_args, concatenate_args

from tapesplit.arrays import ranges
from tapesplit.errors import RuleError
from tapesplit.names import display_name
from tapesplit.recording.tape import TapeEntry
from tapesplit.recording.values import element_count, flatten, unflatten
from tapesplit.rules.moves import IndexMap, getitem
from tapesplit.rules.positions import places

__all__ = ["CONTROLLED", "index_maps", "joint_index_map"]


def index_maps(entry: TapeEntry) -> tuple[IndexMap, ...]:
    """Find the index map of each active argument."""
    argument, source = joint_index_map(entry)
    if len(entry.argnums) == 1:
        sources = source if not argument.any() else np.where(argument == 0, source, -1)
        return (IndexMap.of_sources(sources, element_count(entry.args[entry.argnums[0]])),)
    order = np.argsort(argument, kind="stable")
    starts = np.searchsorted(argument[order], np.arange(len(entry.argnums) + 1))
    found = []
    for number, argnum in enumerate(entry.argnums):
        targets = order[starts[number] : starts[number + 1]]
        size = element_count(entry.args[argnum])
        found.append(IndexMap(targets, source[targets], source.size, size))
    return tuple(found)


CONTROLLED: Final = frozenset(
    {anp.roll, anp.rollaxis, anp.rot90, anp.triu, anp.tril}
    | {anp.diag, anp.diagonal, anp.repeat, anp.tile, anp.take, container_take}
)
"""Movements of the first argument only; the other ones say how elements move."""


def joint_index_map(entry: TapeEntry) -> tuple[np.ndarray, np.ndarray]:
    """Find where all elements of a result come from, whatever the number of arguments, by two runs.

    Returns
    -------
    argument
        Which of the active arguments each element of the result comes from, -1 for none.
    source
        Its flat position in that argument.
    """
    if entry.primitive in CONTROLLED and entry.argnums != (0,):
        raise RuleError(
            f"{display_name(entry.primitive)} has no derivative with respect to the arguments "
            f"{entry.argnums}, which say how elements move; give plain values there"
        )
    is_matrix = entry.primitive in _ORDERED and np.ndim(entry.args[0]) > 1
    if is_matrix and _follows_memory(*entry.args[1:], **entry.kwargs):
        raise RuleError(
            f"order 'A' or 'K' of {display_name(entry.primitive)} depends on how elements lie in memory, and "
            "plans must not; give order 'C' or 'F'"
        )
    one_run = places(*entry.args) if entry.primitive is getitem else _viewed(entry)
    if one_run is not None:  # no constants are brought in
        return np.zeros(one_run.size, dtype=np.intp), one_run
    first = _first_joined(entry)
    if first is not None:
        return _joined(entry, first)
    starts = np.cumsum([0, *(element_count(entry.args[argnum]) for argnum in entry.argnums)])
    sources = _sources(entry, starts.tolist())
    argument = np.searchsorted(starts, sources, side="right") - 1
    return argument, sources - starts[argument]


_ORDERED: Final = frozenset({anp.reshape, anp.ravel})
"""Movements that may depend on the layout of memory."""


def _follows_memory(*constants: Any, order: Any = "C", **others: Any) -> bool:
    """Tell whether the order of elements, by name or last by position, is that in memory."""
    given = (order, *constants[-1:]) if constants and isinstance(constants[-1], str) else (order,)
    return not {str(word).upper() for word in given}.isdisjoint({"A", "K"})


def _first_joined(entry: TapeEntry) -> int | None:
    """Return the first of the arguments whose elements follow one another in the result; None if not so."""
    if entry.primitive is array_from_args:  # its options say how they are stored
        return 2
    is_along_first = entry.primitive is concatenate_args and type(entry.args[0]) is int and entry.args[0] == 0
    return 1 if is_along_first else None


def _joined(entry: TapeEntry, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Find where elements of a result come from that joins its arguments, from ``first`` on, one by one."""
    sizes = np.array([element_count(arg) for arg in entry.args[first:]])
    active = np.full(sizes.size, -1)
    active[np.array(entry.argnums) - first] = np.arange(len(entry.argnums))
    return np.repeat(active, sizes), ranges(np.zeros_like(sizes), sizes)


def _viewed(entry: TapeEntry) -> np.ndarray | None:
    """Find where the elements of a view of the only argument come from; None if the result is no view."""
    x = entry.args[entry.argnums[0]]
    if len(entry.argnums) > 1 or type(x) is not np.ndarray:
        return None
    numbers = np.arange(x.size)
    args = (*entry.args[: entry.argnums[0]], numbers.reshape(x.shape), *entry.args[entry.argnums[0] + 1 :])
    moved = entry.primitive(*args, **entry.kwargs)  # type: ignore[misc]
    return moved.ravel() if isinstance(moved, np.ndarray) and moved.base is numbers else None


def _sources(entry: TapeEntry, starts: Sequence[int]) -> np.ndarray:
    """Run the primitive on numbers in place of elements; return the number of each result, -1 for constants.

    The elements of the active arguments are numbered one after the other; ``starts`` has the first number of
    each argument, and the count of all.
    """
    count = starts[-1]

    def moved(numbers: np.ndarray) -> np.ndarray:
        args = list(entry.args)
        for argnum, (start, stop) in zip(entry.argnums, pairwise(starts), strict=True):
            args[argnum] = unflatten(numbers[start:stop], args[argnum])
        return flatten(entry.primitive(*args, **entry.kwargs))  # type: ignore[misc]

    numbers = np.arange(float(count))
    with np.errstate(all="ignore"):
        low, high = moved(numbers), moved(numbers + (1 + count))
        if low.dtype.itemsize < numbers.itemsize:  # the result has a type that rounds large numbers
            low, high = _moved_by_digits(moved, numbers)
        # A constant does not follow when the numbers are shifted.
        return np.where(high - low == 1 + count, low.real, -1.0).astype(np.intp)


def _moved_by_digits(
    moved: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Run the primitive on numbers, and on these plus a shift, by digits that fit into any type."""
    digit = 2 if moved(numbers).dtype == np.bool_ else _DIGIT
    low = np.zeros(moved(numbers).shape)
    base = 1
    while base < max(numbers.size, 2):
        low += base * moved(numbers // base % digit).real.astype(float)
        base *= digit
    follows = moved(numbers * 0 + 1).real.astype(float) - moved(numbers * 0).real.astype(float)
    return low, low + (1 + numbers.size) * follows


_DIGIT: Final = 64
"""Base of these digits, so that integers of 8 bits hold each of them; truth values hold those of base 2."""
