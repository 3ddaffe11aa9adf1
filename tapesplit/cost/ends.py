"""Ends of a tape: identity seeds are still diagonal there, so that products only pick rows or columns."""

from typing import Final

import autograd.numpy as anp
import numpy as np

from tapesplit.arrays import BoolArray, IntArray, follow
from tapesplit.structures.facts import TapeFacts

__all__ = ["diagonal_at_ends", "end_sizes", "picked_products"]


def end_sizes(facts: TapeFacts) -> tuple[int, int]:
    """Return the elements of all inputs and of the output: the directions of tangents and of adjoints."""
    structure = facts.structure
    return int(facts.sizes[: structure.inputs].sum()), int(facts.sizes[structure.output])


def diagonal_at_ends(facts: TapeFacts) -> tuple[BoolArray, BoolArray]:
    """Mark values that are elementwise functions of one input, and values of which the output is one.

    Each is reached by a chain of elementwise operations or moves that keep the size. The identity that
    tangents, or adjoints, start with is still diagonal there.
    """
    entries = np.arange(facts.sizes.size)
    readers = np.bincount(facts.parents, minlength=entries.size)
    alone = (np.diff(facts.first_parent) == 1) & (facts.elementwise | facts.is_movement)
    child, parent = facts.children[alone[facts.children]], facts.parents[alone[facts.children]]
    is_equal = facts.sizes[child] == facts.sizes[parent]
    child, parent = child[is_equal], parent[is_equal]
    before, behind = entries.copy(), entries.copy()
    before[child] = parent
    is_last = readers[parent] == 1
    behind[parent[is_last]] = child[is_last]
    return follow(before) < facts.structure.inputs, follow(behind) == facts.structure.output


def picked_products(facts: TapeFacts) -> tuple[IntArray, IntArray]:
    """Count the scalar edges of each entry that tangents, and adjoints, need not multiply by.

    These are matrix-vector products at which directions are still diagonal, see `diagonal_at_ends`: each
    direction of the result is one column of the matrix (adjoints: one row) times a number.
    """
    multiplies = np.array([kind.primitive in _MULTIPLYING and len(kind.argnums) == 1 for kind in facts.kinds])
    entries = np.flatnonzero(multiplies[facts.kind] & (facts.axes == 1))
    tangents, adjoints = np.zeros((2, facts.sizes.size), dtype=np.int64)
    parents = facts.parents[facts.first_parent[entries]]
    is_vector = facts.axes[parents] == 1
    entries, parents = entries[is_vector], parents[is_vector]
    if entries.size:
        of_inputs, of_output = diagonal_at_ends(facts)
        tangents[entries] = facts.edges[entries] * of_inputs[parents]
        adjoints[entries] = facts.edges[entries] * of_output[entries]
    return tangents, adjoints


_MULTIPLYING: Final = frozenset({anp.matmul, anp.dot})
"""Products whose other operand is a matrix if this one and the result are vectors."""
