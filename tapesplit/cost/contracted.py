"""Contractions: how the work of array sweeps changes where reductions absorb elementwise operations."""

from typing import Final, NamedTuple

import numpy as np

from tapesplit.arrays import BoolArray, IntArray, reached
from tapesplit.cost.ends import diagonal_at_ends, end_sizes
from tapesplit.rules import PRODUCTS
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.forms import is_shape

__all__ = ["WORTH_COPIES", "predicted_contractions"]


class Contractions(NamedTuple):
    """Which operations are absorbed by reductions, and by how much that changes the `Work` of each entry.

    Each array has shape ``(n,)``; negative numbers are work that is saved. ``turned`` counts the operands to
    whose elements an operation spreads the directions of a sum, row by row.
    """

    operations: BoolArray
    steps: IntArray
    moved: IntArray
    turned: IntArray
    product_fma: IntArray
    picked_tangents: IntArray
    picked_adjoints: IntArray


def predicted_contractions(facts: TapeFacts) -> Contractions:
    """Find the operations that reductions absorb.

    Notes
    -----
    This is what `tapesplit.sweeps.clusters` does, roughly: merged operations are absorbed as a whole, by the
    only reduction that reads them, or by all that do if they are made of smaller values. Takes O(n log n),
    and 0.2 µs for each array that an operation reads where there are such reductions.
    """
    count = facts.sizes.size
    none = Contractions(np.zeros(count, dtype=np.bool_), *np.zeros((6, count)))
    kinds = [kind for kind in facts.kinds if kind.can_be_contracted]
    needs_matrix = all(kind.primitive in PRODUCTS for kind in kinds)
    if needs_matrix and not any(is_shape(form) and len(form) == 2 for form in facts.forms):
        return none
    fits = facts.elementwise & (facts.axes >= 0) & (facts.sizes >= _FEWEST_ELEMENTS)
    reductions, reduced, is_sum = _reductions(facts)
    if not fits[reduced].any():
        return none
    result, child, parent = _between_merged(facts)
    order = np.argsort(result[child])
    child, parent = child[order], parent[order]
    is_whole = facts.sizes[parent] >= facts.sizes[child]  # not broadcast
    before, behind = parent[is_whole], result[child[is_whole]]
    readers = np.bincount(facts.parents, minlength=count)
    operations = facts.elementwise & _taken(facts, fits, readers, reduced, result, before, behind)[result]
    here = operations[child]
    child, parent, is_whole = child[here], parent[here], is_whole[here]
    copies, size = readers[result[child]], facts.sizes[child]
    ends = 2 * copies * facts.sizes[parent] * ~is_whole
    # For an operand as large as the operation nothing is summed, and writing zeros and picking takes time.
    is_spread = is_whole & ~operations[parent]
    moved = np.bincount(child, np.where(is_spread, size, ends - size), count)
    multiplied = _PACE * copies * size * ~is_whole
    product_fma = np.bincount(child, multiplied, count)
    spared = facts.edges[reductions] * operations[reduced]
    moved[reductions] -= spared * is_sum
    product_fma[reductions] -= spared * ~is_sum
    of_inputs, of_output = diagonal_at_ends(facts)
    spread = np.zeros(count, dtype=np.bool_)
    spread[reduced[~of_output[reductions]]] = True
    spread = reached(spread, behind[::-1], before[::-1])
    return Contractions(
        operations,
        np.bincount(child, _STEPS * copies, count),
        moved,
        np.bincount(child, is_spread, count),
        product_fma,
        np.bincount(child, multiplied * of_inputs[parent], count),
        np.bincount(child, multiplied * ~spread[result[child]], count),
    )


WORTH_COPIES: Final = 6
"""Number of directions from which on forming the derivatives of an operation twice takes less time than
carrying the directions through it. Those of sums and differences are numbers, which take no time."""
_FEWEST_ELEMENTS: Final = 50
"""Elements from which on it matters how an operation is swept by array steps."""
_STEPS: Final = 2
"""Cost of a contraction beyond that of a multiplication, in steps."""
_PACE: Final = 2
"""Multiply-adds in a large product of matrices that take as long as one in a contraction."""


def _taken(
    facts: TapeFacts,
    fits: BoolArray,
    readers: IntArray,
    reduced: IntArray,
    result: IntArray,
    before: IntArray,
    behind: IntArray,
) -> BoolArray:
    """Tell which results of merged operations are absorbed by reductions.

    Only those that ``fits`` allows, and that nothing else reads: all their readers are reductions of them, or
    other operations that are absorbed. Merged operation ``behind[i]`` reads all elements of ``before[i]``;
    ``behind`` increases.
    """
    good_readers = np.bincount(np.concatenate([reduced, before]), minlength=readers.size)
    taken = fits & (readers > 0) & (good_readers == readers)
    alone = np.bincount(behind[~fits[before]], minlength=readers.size) > 0  # not made of smaller values
    if max(end_sizes(facts)) < WORTH_COPIES:  # then no sweep carries so many
        has_formulas = np.array([kind.has_formulas for kind in facts.kinds])[facts.kind]
        alone[result[has_formulas]] = True
    taken &= (readers == 1) | ~reached(alone, result[before], behind)
    taken[facts.structure.output] = False
    return ~reached(~taken, behind[::-1], before[::-1])


def _reductions(facts: TapeFacts) -> tuple[IntArray, IntArray, BoolArray]:
    """Return reductions that can absorb operations, the operand each one sums, and which are no products."""
    of_kind = [(kind.can_be_contracted, kind.primitive not in PRODUCTS) for kind in facts.kinds]
    can_be, is_sum = np.array(of_kind).T.take(facts.kind, axis=1)
    entries = np.flatnonzero(can_be)
    first, last = (facts.parents[facts.first_parent[entries + step] - step] for step in (0, 1))
    operand = np.where(facts.sizes[first] >= facts.sizes[last], first, last)
    fits = is_sum[entries] | (
        (facts.axes[operand] == 2) & (facts.axes[entries] == 1)
    )  # a matrix times a vector
    return entries[fits], operand[fits], is_sum[entries[fits]]


def _between_merged(facts: TapeFacts) -> tuple[IntArray, IntArray, IntArray]:
    """Return where each entry is merged into, and the pairs (child, parent) that are read from outside."""
    wide = facts.elementwise[facts.children] & (facts.sizes[facts.children] > 1)
    child, parent = facts.children[wide], facts.parents[wide]
    result = facts.merged_into
    outer = ~facts.elementwise[parent] | (result[parent] != result[child])
    return result, child[outer], parent[outer]
