"""Formulas: how many partial derivatives a scalar sweep evaluates if calls of one kind share them."""

from typing import Final

import numpy as np

from tapesplit.arrays import IntArray, occurrences
from tapesplit.cost.ends import end_sizes
from tapesplit.rules import is_reduction
from tapesplit.structures.facts import CallKind, TapeFacts

__all__ = ["COEFFICIENT", "WORTH_MERGING", "shared_formulas"]


def shared_formulas(facts: TapeFacts) -> tuple[IntArray, IntArray]:
    """Give entries of a tape that share formulas in a scalar sweep the same number.

    Returns
    -------
    number
        Shape ``(n,)`` for n entries: calls of a kind share formulas, separately
        in each kind of merged operations that is worth merging. Calls within the
        same merged operation never share a formula.
    formulas
        Number of formulas that the entries with each ``number`` share.

    Notes
    -----
    Kinds of merged operations are distinguished by hashes of the calls that they consist of, in O(n), or in
    O(n log n) for those that are worth merging.
    """
    of_kind = np.array([_formulas(kind) for kind in facts.kinds])
    is_result, each = facts.reader == np.arange(facts.reader.size), min(end_sizes(facts)) + COEFFICIENT
    if is_result.all() or np.abs(facts.sizes).sum() * each < WORTH_MERGING:
        return facts.kind, of_kind
    result = facts.merged_into
    hashes = _HASH_OF_KIND[np.arange(of_kind.size) % _HASH_OF_KIND.size]
    merged = np.bincount(result, hashes[facts.kind]).astype(np.int64)[result] % _HASHES
    elements = np.bincount(merged[is_result], facts.sizes[is_result], _HASHES)
    merged[elements[merged] * each < WORTH_MERGING] = 0
    base, place, inside = of_kind.size * _HASHES, facts.kind * _HASHES + merged, np.flatnonzero(merged)
    turn = occurrences(result[inside] * of_kind.size + facts.kind[inside])
    turned, own = np.unique(turn * base + place[inside], return_inverse=True)
    place[inside] = base + own
    present = np.bincount(place, minlength=base + turned.size) > 0
    kinds = np.concatenate([np.arange(base), turned % base]) // _HASHES
    return (np.cumsum(present) - 1)[place], of_kind[kinds[present]]


_HASHES: Final = 509
"""Number of different hashes of merged operations."""
_HASH_OF_KIND: Final = np.random.default_rng(0).integers(1, _HASHES, 1024)
"""Random numbers, so that sums of few of them are different."""
COEFFICIENT: Final = 8
"""Cost of evaluating and storing a coefficient, in directions that are multiplied by it."""
WORTH_MERGING: Final = 4000
"""Elements times directions from which on a kind of merged operations is worth Python calls of its own."""


def _formulas(kind: CallKind) -> int:
    """Count the partial derivatives that are evaluated for the calls of a kind."""
    if kind.partials is not None:
        return sum(map(callable, kind.partials))
    return len(kind.argnums) if kind.is_local and not is_reduction(kind.rule) else 0
