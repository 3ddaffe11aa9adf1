"""Choice of cuts: the nested family of lower sets that makes the cheapest Jacobian chain.

The one recurrence of matrix-free Jacobian chaining runs over pairs of nested lower sets instead of pairs of
chain positions, so that it chooses the cuts and the bracketing at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tapesplit.arrays import BoolArray, FloatArray, IntArray, one_sided_minima
from tapesplit.cuts.graph import UNBOUNDED, TapeGraph, on_frontiers

__all__ = ["CutFamily", "choose_nested", "cut_family", "spread_nested"]


@dataclass(frozen=True, slots=True, eq=False)
class CutFamily:
    """Candidate lower sets, smaller ones first.

    Attributes
    ----------
    members : (N, n) array of bool
        Membership of each vertex in each lower set.
    widths : (N,) array of int
        Elements of the frontiers.
    edges : (N,) array of int
        Scalar edges spent inside each set.
    nested : (N, N) array of bool
        Whether a candidate is a proper subset of a later one.
    """

    members: BoolArray
    widths: IntArray
    edges: IntArray
    nested: BoolArray

    def subfamily(self, kept: list[int]) -> "CutFamily":
        """Return the family of some of the candidates."""
        return CutFamily(self.members[kept], self.widths[kept], self.edges[kept], self.nested[kept][:, kept])


def cut_family(graph: TapeGraph, members: Iterable[BoolArray]) -> CutFamily:
    """Sort candidate lower sets by size, measure their frontiers, and drop those that cannot be cuts.

    The members, arrays of shape ``(n,)``, must include the inputs and the set of all vertices. The candidates
    that remain are distinct and have elements that are all real; nested ones stand in order.
    """
    distinct = list({lower.tobytes(): lower for lower in members}.values())
    distinct.sort(key=np.count_nonzero)
    lowers = np.array(distinct)
    widths = np.einsum("ij,j->i", on_frontiers(graph, lowers), graph.capacities)
    widths[[0, -1]] = graph.input_width, graph.output_width
    fit = np.flatnonzero((widths > 0) & (widths < UNBOUNDED))
    kept = lowers[fit]
    edges = np.einsum("ij,j->i", kept, graph.edges)  # unlike @ it makes no integers of all members
    return CutFamily(kept, widths[fit], edges, _nested(kept))


def choose_nested(family: CutFamily) -> tuple[float, list[int]]:
    """Choose the nested candidates whose Jacobian chain costs least on one machine.

    The first and the last of the N candidates must be the sets of the inputs and of all vertices.

    Returns
    -------
    cost : float
        Least fma of any chain of nested candidates.
    chosen : list of int
        Candidates where this chain is cut, increasing, without the first and the last one.

    Notes
    -----
    Märtens & Naumann 2025, recurrence of matrix-free Jacobian chaining for one machine, over the partial
    order of the candidates. Takes O(N^3) vectorised by diagonals.
    """
    kept = _worth_choosing(family)
    table = _Recurrence(family.subfamily(kept))
    return float(table.cost[0, -1]), sorted(kept[i] for i in table.splits())


def _worth_choosing(family: CutFamily) -> list[int]:
    """Return the candidates that a cheapest chain may need.

    If all are nested, a candidate is of no use if some candidate before it and some behind it are no wider
    than it is. A product at it costs no less than sweeping on with the directions of the narrower neighbor in
    the chain. And a sweep that begins at it, with the directions of the far end of the other part, becomes
    shorter if that part ends at the narrower candidate.
    """
    size = len(family.widths)
    if np.count_nonzero(family.nested) < size * (size - 1) // 2:
        return list(range(size))
    useful = one_sided_minima(family.widths)
    useful[[0, -1]] = True
    return np.flatnonzero(useful).tolist()


def spread_nested(
    family: CutFamily, needed: list[int], most: int, *, widest: float = np.inf, apart: int = 1
) -> list[int]:
    """Add nested candidates to needed ones, spread over the edges of a graph.

    Parameters
    ----------
    family : CutFamily
        N candidates, the first and the last as in `choose_nested`.
    needed : list of int
        Nested candidates that must stay, increasing.
    most : int
        Most links of the resulting chain, more than ``len(needed)``.
    widest : float
        Width of the widest candidate that may be added.
    apart : int
        Edges that must be spent between an added candidate and each other one.

    Returns
    -------
    list of int
        Candidates where the chain is cut, increasing, without the first and the last one.

    Notes
    -----
    Adds, one after the other, the candidate that leaves most edges on either side for each element of its
    width. Takes O(most N), vectorised.
    """
    last = len(family.widths) - 1
    width, spent = _width_and_spent(family)
    between = np.minimum(spent, spent.T)
    between[np.isinf(between)] = 0  # a candidate is of no use beside one that it is not nested with
    chosen = [0, *needed, last]
    nearest = np.where(width <= widest, between[chosen].min(axis=0), 0)
    while len(chosen) <= most:
        best = int(np.argmax(nearest / width))
        if nearest[best] < apart:
            break
        chosen.append(best)
        np.minimum(nearest, between[best], out=nearest)
    return sorted({*chosen} - {0, last})


def _width_and_spent(family: CutFamily) -> tuple[FloatArray, FloatArray]:
    """Return widths, at least 1, and the edges between each two nested candidates, infinite for others."""
    edges = family.edges.astype(float)
    spent = np.where(family.nested, edges[None, :] - edges[:, None], np.inf)
    return np.maximum(family.widths, 1).astype(float), spent


class _Recurrence:
    """Cost of the Jacobian between each two nested candidates; infinite where they are not nested."""

    def __init__(self, family: CutFamily) -> None:
        """Fill the table diagonal by diagonal."""
        self.width, self.spent = _width_and_spent(family)
        self.cost = self.spent * np.minimum(self.width[:, None], self.width[None, :])
        for step in range(2, len(self.width)):
            self._fill(step)

    def _fill(self, step: int) -> None:
        """Improve the cost of all pairs that stand `step` places apart by splitting them.

        For pair number p and split number s, the views hold the entries (p, p + 1 + s) of a table in
        `left` and `before`, and the entries (p + 1 + s, p + step) in `right` and `after`.
        """
        cost, spent, width = self.cost, self.spent, self.width
        pairs, between = len(width) - step, step - 1
        row, item = cost.strides
        shape, along, crossing = (pairs, between), (row + item, item), (row + item, row)
        left, before = (np.ndarray(shape, float, t, item, along) for t in (cost, spent))
        right, after = (np.ndarray(shape, float, t, row + step * item, crossing) for t in (cost, spent))
        middle = np.ndarray(shape, float, width, item, (item, item))
        n, m = width[:pairs, None], width[step:, None]
        behind = np.minimum(right + n * m * middle, n * after)
        best = np.minimum(left + behind, right + m * before).min(axis=1)
        diagonal = np.ndarray(pairs, float, cost, step * item, row + item)
        np.minimum(diagonal, best, out=diagonal)

    def splits(self) -> list[int]:
        """Return the candidates that the best chain is cut at."""
        found: list[int] = []
        open_pairs = [(0, len(self.width) - 1)]
        while open_pairs:
            i, j = open_pairs.pop()
            target = self.cost[i, j]
            if j - i < 2 or target >= self.spent[i, j] * min(self.width[i], self.width[j]):
                continue
            k, kind = self._split(i, j)
            found.append(k)
            if kind != "tangent":
                open_pairs.append((k, j))
            if kind != "adjoint":
                open_pairs.append((i, k))
        return found

    def _split(self, i: int, j: int) -> tuple[int, str]:
        """Return the best split of a pair and what happens there."""
        left, right = self.cost[i, i + 1 : j], self.cost[i + 1 : j, j]
        n, m = self.width[i], self.width[j]
        options = np.array(
            [
                left + n * self.spent[i + 1 : j, j],
                right + m * self.spent[i, i + 1 : j],
                left + right + n * m * self.width[i + 1 : j],
            ]
        )
        kind, k = np.unravel_index(np.argmin(options), options.shape)
        return i + 1 + int(k), ("tangent", "adjoint", "multiply")[kind]


def _nested(members: BoolArray) -> BoolArray:
    """Return which candidates are proper subsets of which later ones."""
    size, vertices = members.shape
    if not (members[:-1] > members[1:]).any():
        return np.tri(size, k=-1, dtype=np.bool_).T
    packed = np.zeros((size, -(-vertices // 64)), dtype=np.uint64)
    packed.view(np.uint8)[:, : -(-vertices // 8)] = np.packbits(members, axis=1)
    result = np.zeros((size, size), dtype=np.bool_)
    for i in range(size):
        result[i, i + 1 :] = ~(packed[i] & ~packed[i + 1 :]).any(axis=1)
    return result
