"""Elements: one number for each element of the values of a chunk, and where the moved ones were computed."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tapesplit.arrays import IntArray, coded, equal_columns, follow, ranges
from tapesplit.recording.tape import Tape
from tapesplit.rules import getitem, joint_index_map
from tapesplit.structures.constants import hashable
from tapesplit.structures.facts import TapeFacts, calls_by_kind
from tapesplit.structures.forms import is_single, number_shape
from tapesplit.structures.structure import Structure

__all__ = ["Elements", "number_elements"]


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """All elements of the values of a chunk.

    ``first[i]`` is the number of entry i's first element. ``origin`` is the computed element whose value an
    element holds after moves: itself if it was computed or rounded, or is a constant. ``unknown`` is the
    unknown behind it, -1 for a constant. They take 32 bits a number, as the time to compile is mostly that
    of touching new memory. A complex number is two elements, its real part and then its imaginary part.
    """

    first: IntArray
    origin: IntArray
    unknown: IntArray
    unknowns: int


def number_elements(tape: Tape, facts: TapeFacts, order: IntArray, sources: int) -> Elements:
    """Give all elements numbers in the order of the tape and follow the moves back to their origins.

    `order` has the entries whose elements are numbered. The first `sources` of them are sources of a chunk,
    or depend on no input; the others are what the chunk computes, except inside of merged operations.
    """
    sizes = facts.sizes[order]
    first = np.zeros(len(tape), dtype=np.int64)
    first[order] = np.cumsum(sizes) - sizes
    elements = np.arange(int(sizes.sum()) + 1, dtype=np.int32)  # the last one is where steps to -1 lead
    is_move = facts.is_movement[order]
    is_move[:sources] = False
    moves = order[is_move]
    step = elements.copy()
    _trace_moves(tape, facts, first, moves, step)
    detached = order[facts.detached[order]]
    step[ranges(first[detached], facts.sizes[detached])] = -1
    same = follow(step)
    computed = (same == elements)[:-1]
    unknown = np.append(np.cumsum(computed, dtype=np.int32) - 1, np.int32(-1))[same[:-1]]
    rounding = _rounding(facts, moves)
    if rounding.size:
        rounded = ranges(first[rounding], facts.sizes[rounding])
        step[rounded] = rounded
        same = follow(step)
    origin = np.where(unknown < 0, elements[:-1], same[:-1])
    return Elements(first, origin, unknown, int(computed.sum()))


def _trace_moves(tape: Tape, facts: TapeFacts, first: IntArray, moves: IntArray, step: IntArray) -> None:
    """Write into `step` which element each moved one comes from, -1 for constants; equal calls at once."""
    structure = facts.structure
    for kind, members, parents in calls_by_kind(facts, moves):
        indices = members.tolist()
        statics = [
            _ANY_NUMBER
            if kind.primitive is getitem and _is_number_of_vector(structure, i)
            else hashable(structure.statics[i])
            for i in indices
        ]
        forms = facts.form[members], *facts.form[parents].T
        for here in equal_columns(np.array([*forms, coded(statics)[1]])):
            starts = first[parents[here]]
            parts = 1 + facts.is_complex[parents[here[0]]]
            if statics[here[0]] is _ANY_NUMBER:  # the bread and butter of scalar code needs no map
                positions = np.array([structure.statics[indices[i]] for i in here.tolist()])
                argument = _THE_ONLY_ONE
                found = starts + positions[:, None] * parts % facts.sizes[parents[here]]
            else:
                argument, source = joint_index_map(tape[indices[here[0]]])
                found = (starts if starts.shape[1] == 1 else starts[:, argument]) + source * parts[argument]
                found[:, argument < 0] = -1
            if facts.is_complex[members[here[0]]]:
                imaginary = np.where((argument >= 0) & (parts[argument] == 2), found + 1, -1)
                found = np.stack([found, imaginary], axis=-1).reshape(len(found), -1)
            step[first[members[here]][:, None] + np.arange(found.shape[1])] = found


def _rounding(facts: TapeFacts, moves: IntArray) -> IntArray:
    """Return the moves that round: from double to single precision, as ``np.array(…, dtype=…)`` can."""
    single_forms = list(map(is_single, facts.forms))
    if not any(single_forms):
        return moves[:0]
    single = np.array(single_forms)[facts.form]
    reads_double = np.zeros_like(single)
    reads_double[facts.children[~single[facts.parents]]] = True
    return moves[(single & reads_double)[moves]]


_ANY_NUMBER: Final = object()
"""Stands for the constants of calls that differ by a position only."""
_THE_ONLY_ONE: Final = np.zeros(1, dtype=np.intp)
"""Number of the argument that the element of an indexing operation comes from."""


def _is_number_of_vector(structure: Structure, index: int) -> bool:
    """Tell whether an indexing operation is ``x[i]`` for a vector x and a number i."""
    if type(structure.statics[index]) is not int:
        return False
    return len(number_shape(structure.forms[structure.parents[index][0]]) or ()) == 1
