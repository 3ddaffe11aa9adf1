"""Numbers of calls: what only the rule and the arguments of a call tell, asked once for all like calls."""

from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from tapesplit.arrays import IntArray, coded, first_of
from tapesplit.names import display_name
from tapesplit.notes import note
from tapesplit.recording.tape import Tape, TapeEntry
from tapesplit.recording.values import element_count, real_count
from tapesplit.rules import (
    Bulk,
    can_be_stacked,
    count_edges,
    count_slices,
    find_rule,
    is_reduction,
    local_counts,
)
from tapesplit.structures.comparison import is_look_up
from tapesplit.structures.constants import hashable, known_zeros
from tapesplit.structures.structure import Structure

__all__ = ["CallNumbers", "call_numbers"]


class CallNumbers(NamedTuple):
    """What the rule and the arguments of one call tell, see `TapeFacts`."""

    elements: int = 0
    edges: int = 0
    scalar_edges: int = 0
    is_local: bool = False
    block: int = 0
    joined: bool = False
    stacked: int = 0


def call_numbers(
    tape: Tape, structure: Structure, kind: IntArray, form: IntArray, entries: IntArray
) -> tuple[IntArray, IntArray]:
    """Find out what the rules and arguments of some calls tell about them, once for all like calls.

    For `kind` and `form` see `TapeFacts`; `entries` are the k calls.

    Returns
    -------
    (k,) array of int
        Equal for like calls: of equal kinds, shapes and constants.
    (7, k) array of int
        A line for each field of `CallNumbers`.
    """
    indices, forms = entries.tolist(), structure.forms
    parents = map(structure.parents.__getitem__, indices)
    read = [forms[p[0]] if len(p) == 1 else tuple([forms[i] for i in p]) for p in parents]
    columns = (kind[entries], form[entries], _constants(structure, indices))
    _, like = coded(zip(*[column.tolist() for column in columns], read, strict=True))
    examples = entries[first_of(like)].tolist()
    found = [_numbers_of(tape[i], i, structure) for i in examples]
    known = np.array(found, dtype=np.int64)
    return like, known[like].T


def _constants(structure: Structure, indices: list[int]) -> IntArray:
    """Return numbers of the constant arguments of some calls, the same for equal ones.

    They take long to hash, but loops read the same ones again and again, see `statics_of`.
    """
    statics = [structure.statics[index] for index in indices]
    _, which = coded(map(id, statics))
    examples = [statics[place] for place in first_of(which).tolist()]
    _, numbers = coded(map(hashable, examples))
    return numbers[which]


_MOST_EDGES: Final = 100_000
"""Scalar edges above which a call is better done as an array operation."""
_SPARSE_EDGES: Final = 2
"""Scalar edges for each element of the result and each argument, or for each element of these, up to which a
product counts as sparse."""
_EDGES_OF_A_SLICE: Final = 16_384
"""Scalar edges of each independent slice above which other products are."""
_MANY_DIRECTIONS: Final = 64
"""Elements, read and returned, up to which array steps carry the few directions in less time than systems."""
_EDGES_OF_A_DERIVATIVE: Final = 4
"""Edges for each derivative of a result from which on sums of products are better done as blocks."""
_DERIVATIVES_OF_A_SLICE: Final = 1024
"""Derivatives in each independent slice above which a block is."""


def _is_slow(primitive: Any) -> bool:
    """Tell whether array steps take much longer for an edge than a product of matrices does."""
    rule = find_rule(primitive)
    return isinstance(rule, Bulk) and rule.pace > 1


def _numbers_of(entry: TapeEntry, index: int, structure: Structure) -> CallNumbers:
    """Count the scalar edges of a call by its rule; tell whether it is a small sum or product.

    If it is not, count the real elements of a block for it; 0 if they are too many, or no numbers. Count the
    elements of a stack, too. A sum whose places are left open has no structure.
    """
    if entry.primitive is None:
        return CallNumbers(element_count(entry.value))
    try:
        edges = count_edges(entry.primitive, entry.value, entry.args, entry.argnums, entry.kwargs)
    except Exception as error:
        note(error, f"in the edges of {display_name(entry.primitive)}, entry {index} of the tape")
        raise
    arrays = [arg for arg in entry.args if isinstance(arg, (np.ndarray, float, complex))]
    elements = real_count(entry.value)
    of_numbers = all(np.asarray(array).dtype.kind in "fiubc" for array in arrays)
    result, read = element_count(entry.value), sum(element_count(entry.args[i]) for i in entry.argnums)
    is_sum = is_reduction(find_rule(entry.primitive))
    local, local_edges = (0, None) if is_look_up(structure, index) else local_counts(entry)
    slices = local or max(count_slices(entry), 1)
    stacked = result + read if slices > 1 and not is_sum else 0
    scalar_edges, matrix = local_edges or edges, known_zeros(structure.statics[index])
    if matrix is not None:
        scalar_edges = scalar_edges // prod(matrix.shape) * matrix.content.count()
    is_sparse = scalar_edges <= _SPARSE_EDGES * max(result * len(entry.argnums), read)
    is_better = is_sum or is_sparse or (_is_slow(entry.primitive) and min(result, read) >= _MANY_DIRECTIONS)
    most = _MOST_EDGES if is_better else min(_EDGES_OF_A_SLICE * slices, _MOST_EDGES)
    block = elements * sum(real_count(entry.args[i]) for i in entry.argnums) // slices
    is_large = block > min(_DERIVATIVES_OF_A_SLICE * slices, _MOST_EDGES)
    is_local = local and scalar_edges <= most and (is_large or scalar_edges <= _EDGES_OF_A_DERIVATIVE * block)
    if is_local and of_numbers:
        return CallNumbers(elements, edges, scalar_edges, is_local=True, stacked=stacked)
    if not of_numbers or is_large:
        return CallNumbers(elements, edges, scalar_edges, stacked=stacked)
    return CallNumbers(
        elements, edges, scalar_edges, block=block, joined=can_be_stacked(entry), stacked=stacked
    )
