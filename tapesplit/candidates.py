"""Candidates for cuts: lower sets with narrow frontiers, from every source that finds some cheaply.

Small graphs give all their lower sets, or at least the narrowest of each size. Large ones give the narrowest
prefixes of a few orders, and minimum cuts within windows of an order.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from tapesplit.flow import MinimumCut, minimum_cut
from tapesplit.graph import (
    UNBOUNDED,
    BoolArray,
    IntArray,
    TapeGraph,
    frontier_widths,
    tape_ranks,
)

__all__ = ["candidate_cuts", "depth_ranks", "narrow_prefixes"]

_SMALL: Final = 24
"""Graphs up to this size are searched by size of the lower set."""
_BREADTH: Final = 12
"""Lower sets of one size that the search keeps."""
_FAMILY: Final = 120
"""Candidates that are compared with each other."""
_WINDOWS: Final = 24


def candidate_cuts(graph: TapeGraph, cut: MinimumCut) -> BoolArray:
    """Collect candidate lower sets of a graph.

    Parameters
    ----------
    graph : TapeGraph
        The graph, k vertices.
    cut : MinimumCut
        Its minimum cut.

    Returns
    -------
    (N, k) array of bool
        Lower sets, N at most about 150; the sets of the inputs and of all vertices are among them.
    """
    ranks = tape_ranks(graph)
    first, last = ranks == 0, np.ones(graph.size, dtype=np.bool_)
    members = [first, last, cut.earliest, cut.latest]
    if graph.size <= _SMALL:
        members.extend(_narrow_lower_sets(graph))
        return np.array(members)
    depth = depth_ranks(graph)
    for order in (ranks, depth, _after(cut.earliest, ranks), _after(cut.latest, ranks)):
        members.extend(order <= t for t in narrow_prefixes(graph, order, _WINDOWS))
    members.extend(_window_cuts(graph, depth))
    return np.array(members)


def narrow_prefixes(graph: TapeGraph, ranks: IntArray, amount: int) -> list[int]:
    """Choose the narrowest prefix of an order within each of several equal shares of the edges.

    Parameters
    ----------
    graph : TapeGraph
        The graph, n vertices.
    ranks : (n,) array of int
        The order, see `frontier_widths`.
    amount : int
        Number of shares.

    Returns
    -------
    list of int
        Ranks, increasing: the lower sets ``ranks <= t``. At most `amount`; no two have the same edges, none
        has all or none of them, and all of them can be separators.
    """
    widths = frontier_widths(graph, ranks)
    edges = np.cumsum(np.bincount(ranks, weights=graph.edges))
    usable = np.flatnonzero((widths < UNBOUNDED) & (edges > 0) & (edges < edges[-1]))
    share = (edges[usable] * amount / edges[-1]).astype(np.int64)
    by_width = usable[np.lexsort((usable, widths[usable], share))]
    share = np.minimum((edges[by_width] * amount / edges[-1]).astype(np.int64), amount - 1)
    narrowest = by_width[np.flatnonzero(np.diff(share, prepend=-1))]
    return sorted(narrowest.tolist())


def depth_ranks(graph: TapeGraph) -> IntArray:
    """Rank vertices by relative depth: the share of their longest path that lies before them.

    Parameters
    ----------
    graph : TapeGraph
        The graph, n vertices.

    Returns
    -------
    (n,) array of int
        0 for inputs; independent strands of work of any length advance side by side, in whatever order the
        tape has interleaved them.

    Notes
    -----
    Takes O(n + e) Python steps.
    """
    above, below = [0] * graph.size, [0] * graph.size
    down = np.argsort(graph.child, kind="stable")
    for child, parent in zip(graph.child[down].tolist(), graph.parent[down].tolist(), strict=True):
        if above[child] <= above[parent]:
            above[child] = above[parent] + 1
    up = np.argsort(-graph.parent, kind="stable")
    for child, parent in zip(graph.child[up].tolist(), graph.parent[up].tolist(), strict=True):
        if below[parent] <= below[child]:
            below[parent] = below[child] + 1
    depth = np.array(above) / np.maximum(np.add(above, below), 1)
    depth[list(graph.inputs)] = -1
    return np.unique(depth, return_inverse=True)[1]


def _after(lower: BoolArray, ranks: IntArray) -> IntArray:
    """Return the order that computes a lower set first and else follows `ranks`."""
    return np.unique(np.where(lower, ranks, ranks + int(ranks.max()) + 1), return_inverse=True)[1]


def _window_cuts(graph: TapeGraph, ranks: IntArray) -> Iterable[BoolArray]:
    """Cut at minimal width in windows of equal shares of the edges along an order."""
    edges = np.cumsum(np.bincount(ranks, weights=graph.edges))
    widths = frontier_widths(graph, ranks)
    borders = np.unique(np.searchsorted(edges, edges[-1] * np.arange(1, _WINDOWS) / _WINDOWS))
    lower = 0
    for upper in [*borders.tolist(), len(edges) - 1]:
        bound = int(widths[lower : upper + 1].min())
        if upper > lower and bound < UNBOUNDED:
            cut = minimum_cut(graph, ranks <= lower, ranks <= upper, bound)
            yield cut.earliest
            yield cut.latest
        lower = upper


def _narrow_lower_sets(graph: TapeGraph) -> list[BoolArray]:
    """List lower sets by size, of each size the narrowest: all of them if there are few."""
    bits = [1 << v for v in range(graph.size)]
    parents, children = [0] * graph.size, [0] * graph.size
    for child, parent in zip(graph.child.tolist(), graph.parent.tolist(), strict=True):
        parents[child] |= bits[parent]
        children[parent] |= bits[child]
    for vertex in graph.outputs:
        children[vertex] |= 1 << graph.size
    capacities = graph.capacities.tolist()
    level = {sum(bits[v] for v in graph.inputs): int(graph.capacities[list(graph.inputs)].sum())}
    found: list[tuple[int, int]] = []
    while level:
        narrowest = sorted(level.items(), key=lambda item: item[1])[:_BREADTH]
        found.extend((width, lower) for lower, width in narrowest if width < UNBOUNDED)
        level = {}
        for lower, width in narrowest:
            for vertex, bit in enumerate(bits):
                if lower & bit or parents[vertex] & ~lower or lower | bit in level:
                    continue
                larger = lower | bit
                released = sum(
                    capacities[p]
                    for p, b in enumerate(bits)
                    if parents[vertex] & b and not children[p] & ~larger
                )
                level[larger] = width + capacities[vertex] - released
    masks = [lower for _, lower in sorted(found)[:_FAMILY]]
    columns = np.arange(graph.size)
    return [np.array([mask >> v & 1 for v in columns.tolist()], dtype=np.bool_) for mask in masks]
