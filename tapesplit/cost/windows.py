"""Windows of directions: array steps carry those from the first to the last that reaches a value, no others.

Where each turn of a loop has parameters of its own, or makes outputs of its own, that is a part of all.
"""

from collections.abc import Iterator
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from autograd.numpy.numpy_wrapper import array_from_args, concatenate_args

from tapesplit.arrays import FloatArray
from tapesplit.rules import getitem
from tapesplit.structures.constants import index_members
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.forms import number_shape

__all__ = ["carried_parts"]


class _Window(NamedTuple):
    """Directions that reach a value, and whether each of them still is one of its elements, in order."""

    start: int
    stop: int
    is_diagonal: bool

    def joined(self, other: "_Window") -> "_Window":
        """Return the window of a sum."""
        if self == other:
            return self
        return _Window(min(self.start, other.start), max(self.stop, other.stop), is_diagonal=False)


_NOTHING: Final = _Window(0, 0, is_diagonal=False)


def carried_parts(
    facts: TapeFacts, ends: tuple[int, ...], entries: list[int], *, adjoint_mode: bool
) -> FloatArray:
    """Return the part of the directions of an identity that array steps carry through each of some entries.

    Tangents start at ``ends``, which the entries read, and adjoints at those that they compute. Takes one or
    two microseconds for each entry.
    """
    windows = dict(_ends(facts, ends))
    count = max(window.stop for window in windows.values())
    walk = _adjoints if adjoint_mode else _tangents
    carried = np.array([*walk(facts, windows, entries)], dtype=np.float64)
    return carried / max(count, 1)


def _ends(facts: TapeFacts, ends: tuple[int, ...]) -> Iterator[tuple[int, _Window]]:
    """List the windows of values where directions start: those of an identity."""
    start = 0
    for index in ends:
        stop = start + int(facts.sizes[index])
        yield index, _Window(start, stop, is_diagonal=True)
        start = stop


def _tangents(facts: TapeFacts, windows: dict[int, _Window], entries: list[int]) -> Iterator[float]:
    """List the mean number of tangents in which entries read what is not merged with them."""
    parents_of, sizes = facts.structure.parents, facts.sizes.tolist()
    keeps = (facts.elementwise | facts.is_movement).tolist()
    merged = (facts.reader != np.arange(facts.reader.size)).tolist()
    for index in entries:
        window, rows = _NOTHING, []
        for number, parent in enumerate(parents_of[index]):
            read = windows[parent]
            if not merged[parent]:
                rows.append(read.stop - read.start)
            if read.is_diagonal and not (keeps[index] and sizes[index] == sizes[parent]):
                read = _picked(facts, index, parent, read)
            window = window.joined(read) if number else read
        windows[index] = window
        yield sum(rows) / max(len(rows), 1)


def _picked(facts: TapeFacts, index: int, parent: int, read: _Window) -> _Window:
    """Return the window behind an operation that picks elements of a diagonal, or makes others of them."""
    shape = number_shape(facts.forms[facts.form[parent]])
    if facts.structure.primitives[index] is not getitem or not shape:
        return _Window(read.start, read.stop, is_diagonal=False)
    first, size = _block(facts.structure.statics[index], shape)
    return _Window(read.start + first, read.start + first + size, is_diagonal=size == facts.sizes[index])


def _block(static: Any, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return where the elements that an index picks begin, and how many follow up to the last one."""
    first, size = 0, prod(shape)
    for member, length in zip(index_members(static), shape, strict=False):
        key, inner = member[1] if type(member) is tuple else member, size // max(length, 1)
        if type(key) is int:
            first, size = first + key % max(length, 1) * inner, inner
            continue
        places = range(length)[key] if type(key) is slice else range(length)
        if places:
            low, high = sorted((places[0], places[-1]))
            first, size = first + low * inner, (high + 1 - low) * inner
        break  # what further keys pick is spread over all of these
    return first, size


def _adjoints(facts: TapeFacts, windows: dict[int, _Window], entries: list[int]) -> Iterator[float]:
    """List the number of adjoints of what entries are merged into, which these multiply."""
    parents_of, sizes, merged_into = facts.structure.parents, facts.sizes.tolist(), facts.merged_into.tolist()
    keeps = (facts.elementwise | facts.is_movement).tolist()
    for index in reversed(entries):
        window = windows.get(index)
        if window is None:
            continue
        parents = parents_of[index]
        if window.is_diagonal and not (keeps[index] and all(sizes[p] == sizes[index] for p in parents)):
            parts = _handed(facts, index, window)
        else:
            parts = [window] * len(parents)
        for parent, part in zip(parents, parts, strict=True):
            windows[parent] = windows[parent].joined(part) if parent in windows else part
    for index in entries:
        window = windows.get(merged_into[index], _NOTHING)
        yield window.stop - window.start


def _handed(facts: TapeFacts, index: int, window: _Window) -> list[_Window]:
    """Return the windows that an entry hands on from a diagonal to what it joins, or makes others of."""
    parents, sizes, primitive = facts.structure.parents[index], facts.sizes, facts.structure.primitives[index]
    in_order = primitive is array_from_args or (primitive is concatenate_args and facts.axes[index] == 1)
    if in_order and sizes[list(parents)].sum() == sizes[index]:
        ends = _ends(facts, parents)
        return [_Window(window.start + at.start, window.start + at.stop, is_diagonal=True) for _, at in ends]
    return [_Window(window.start, window.stop, is_diagonal=False)] * len(parents)
