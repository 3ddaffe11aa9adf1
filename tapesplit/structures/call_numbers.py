"""Numbers of calls: facts that follow from the rule and the arguments of calls, found once for like calls."""

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
    shares_matrix,
)
from tapesplit.structures.comparison import is_look_up
from tapesplit.structures.constants import hashable, known_zeros
from tapesplit.structures.structure import Structure

__all__ = ["call_numbers"]


class CallNumbers(NamedTuple):
    """Facts that follow from the rule and the arguments of one call; most are explained at `TapeFacts`."""

    elements: int = 0
    edges: int = 0
    scalar_edges: int = 0
    is_local: bool = False
    block: int = 0
    joined: bool = False
    stacked: int = 0
    is_dense: bool = False


def call_numbers(
    tape: Tape, structure: Structure, kind: IntArray, form: IntArray, entries: IntArray
) -> tuple[IntArray, IntArray]:
    """Find the `CallNumbers` of some calls, once for all like calls.

    For `kind` and `form` see `TapeFacts`; `entries` are the k calls.

    Returns
    -------
    (k,) array of int
        The same number for like calls: those of equal kinds, shapes and constants.
    (8, k) array of int
        A row for each field of `CallNumbers`.
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
    """Return a number for the constant arguments of each of some calls, the same one for equal ones.

    They take long to hash, so each object is hashed once: loops read the same ones again and again, see
    `statics_of`.
    """
    statics = [structure.statics[index] for index in indices]
    _, which = coded(map(id, statics))
    examples = [statics[place] for place in first_of(which).tolist()]
    _, numbers = coded(map(hashable, examples))
    return numbers[which]


_MOST_EDGES: Final = 1_000_000
"""Scalar edges above which any call is better done as an array operation."""
_SPARSE_EDGES: Final = 2
"""Scalar edges up to which a product counts as sparse, for each element of its result and each active
argument, or for each element of these arguments if that allows more."""
_EDGES_OF_A_SLICE: Final = 16_384
"""Scalar edges of each independent slice above which a product that is neither sparse nor slow is better done
as an array operation, unless directions share seeds."""
_MOST_DENSE_EDGES: Final = 262_144
"""Scalar edges of such a product above which it takes too long to find out whether they do."""
_MANY_DIRECTIONS: Final = 64
"""Elements read, or returned, below which directions are so few that array steps carry them faster than
systems, even through slow products."""
_EDGES_OF_A_DERIVATIVE: Final = 4
"""Scalar edges for each element of the elemental Jacobian above which a sum of products is better done as a
block."""
_DERIVATIVES_OF_A_SLICE: Final = 1024
"""Elements of the elemental Jacobian of each independent slice above which a block is better done as an
array operation."""


def _is_slow(primitive: Any) -> bool:
    """Tell whether array steps take much longer for each scalar edge than a product of matrices does."""
    rule = find_rule(primitive)
    return isinstance(rule, Bulk) and rule.pace > 1


def _numbers_of(entry: TapeEntry, index: int, structure: Structure) -> CallNumbers:
    """Count the scalar edges of a call by its rule, and decide how scalar sweeps treat it.

    A sum or product that is not too large is treated by its local structure. Any other call is a block of all
    derivatives, whose real elements are counted: 0 if they are too many, or if an argument is not numeric. A
    call that looks elements up at places that are left open has no local structure.
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
    is_stack = slices > 1 and not is_sum and not shares_matrix(entry)
    stacked = result + read if is_stack else 0
    scalar_edges, matrix = local_edges or edges, known_zeros(structure.statics[index])
    if matrix is not None:
        scalar_edges = scalar_edges // prod(matrix.shape) * matrix.content.count()
    is_sparse = scalar_edges <= _SPARSE_EDGES * max(result * len(entry.argnums), read)
    is_better = is_sum or is_sparse or (_is_slow(entry.primitive) and min(result, read) >= _MANY_DIRECTIONS)
    is_dense = not is_better and scalar_edges > _EDGES_OF_A_SLICE * slices
    most = _MOST_DENSE_EDGES if is_dense else _MOST_EDGES
    block = elements * sum(real_count(entry.args[i]) for i in entry.argnums) // slices
    is_large = block > min(_DERIVATIVES_OF_A_SLICE * slices, _MOST_EDGES)
    is_local = local and scalar_edges <= most and (is_large or scalar_edges <= _EDGES_OF_A_DERIVATIVE * block)
    if is_local and of_numbers:
        return CallNumbers(elements, edges, scalar_edges, is_local=True, stacked=stacked, is_dense=is_dense)
    if not of_numbers or is_large:
        return CallNumbers(elements, edges, scalar_edges, stacked=stacked)
    return CallNumbers(
        elements, edges, scalar_edges, block=block, joined=can_be_stacked(entry), stacked=stacked
    )
