"""Candidates for cuts, as lower sets: narrow prefixes of a few orders, and minimum cuts around them."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from tapesplit.arrays import BoolArray, IntArray, one_sided_minima, run_starts
from tapesplit.cuts.flow import FLOW_BUDGET, Region, minimum_cuts
from tapesplit.cuts.graph import UNBOUNDED, TapeGraph, edges_below, frontier_widths

__all__ = [
    "Order",
    "candidate_prefixes",
    "depth_ranks",
    "minimal_prefixes",
    "order_by",
    "thrifty_ranks",
    "window_cuts",
]

_CANDIDATE_SHARES: Final = 28
"""Number of equal shares of the edges, in each of which the narrowest prefix of an order is a candidate."""
_WINDOWS: Final = 24
"""Windows along an order in which a flow looks for a narrower cut."""
_FEWEST_WINDOWS: Final = 4
"""Windows along the order of the smallest graph."""
_VERTICES_OF_A_WINDOW: Final = 100
"""Vertices of a graph for each further window: smaller windows hardly contain yet another cut."""
_WINDOWS_BUDGET: Final = 6 * FLOW_BUDGET
"""Vertices times widths of all windows along an order together, at most: those of three of the largest."""
_OCTAVES: Final = 6
"""Windows at either end of an order, each with half as many edges as the one before."""
_LIKE_WIDTHS: Final = 1.2
"""Widths that differ by less than this factor count as one: a chain hardly gains by the narrower cut."""
_NO_BETTER: Final = 1.05
"""A prefix this close to the minimal width is not worth a flow."""


class Order(NamedTuple):
    """An order of the vertices of a graph: their ranks, and the frontier width of each of its prefixes.

    See `frontier_widths`; the prefixes are the lower sets ``ranks <= t``.
    """

    ranks: IntArray
    widths: IntArray


def order_by(graph: TapeGraph, ranks: IntArray) -> Order:
    """Return the order of vertices by these ranks, with its frontier widths."""
    return Order(ranks, frontier_widths(graph, ranks))


def candidate_prefixes(graph: TapeGraph, order: Order) -> list[BoolArray]:
    """Return the narrow and the record prefixes of an order, as lower sets."""
    return [
        order.ranks <= t for t in _narrow_prefixes(graph, order, _CANDIDATE_SHARES) + minimal_prefixes(order)
    ]


def _narrow_prefixes(graph: TapeGraph, order: Order, amount: int) -> list[int]:
    """Choose the narrowest prefix of an order within each of several equal shares of the edges.

    `amount` is the number of shares, and of prefixes at most. The ranks t increase, without the first and the
    last one; the lower sets ``ranks <= t`` can all be separators.
    """
    ranks, widths = order
    edges = edges_below(graph, ranks)
    usable = 1 + np.flatnonzero(widths[1:-1] < UNBOUNDED)
    if not usable.size:
        return []
    widths, share = widths[usable], np.minimum(edges[usable] * (amount / edges[-1]), amount - 1) // 1
    bounds = pairwise([*run_starts(share).tolist(), len(share)])
    return [int(usable[start + widths[start:stop].argmin()]) for start, stop in bounds]


def minimal_prefixes(order: Order) -> list[int]:
    """Choose the prefixes of an order that are narrower than all before them, or than all behind them.

    The ranks increase. They are few, since of those whose widths differ by less than a fifth one is kept.

    Notes
    -----
    A cut close to the input or output pays when products are dear and edges are few: everything beyond it
    is then eliminated with the few directions of the cut.
    """
    widths = order.widths
    level = np.log(np.maximum(widths, 1)) // np.log(_LIKE_WIDTHS)
    return np.flatnonzero(one_sided_minima(level)).tolist()


def depth_ranks(graph: TapeGraph) -> IntArray:
    """Rank vertices by relative depth: the share of their longest path that lies before them.

    Inputs have rank 0. Independent strands of work of any length advance side by side, in whatever order the
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
    depth[: graph.inputs] = -1
    return np.unique(depth, return_inverse=True)[1]


def thrifty_ranks(graph: TapeGraph, *, backwards: bool) -> IntArray:
    """Rank vertices so that frontiers widen late, or backwards from the outputs, so that they narrow early.

    Inputs have rank 0, the others 1, 2, …. Of all vertices whose parents have their ranks, the one comes next
    whose width minus the widths of its parents is smallest. Backwards, of all vertices whose children have
    their ranks, the one comes last whose difference is largest.

    Notes
    -----
    Takes O(e + n log n) Python steps.
    """
    read = np.bincount(graph.child, graph.capacities[graph.parent], graph.size)
    growth = read - graph.capacities if backwards else graph.capacities - read
    growth[: graph.inputs] = -np.inf  # they are there from the beginning
    begins, ends = (graph.child, graph.parent) if backwards else (graph.parent, graph.child)
    waits = np.bincount(ends, minlength=graph.size).tolist()
    behind = ends[np.argsort(begins, kind="stable")].tolist()
    first = np.append(0, np.cumsum(np.bincount(begins, minlength=graph.size))).tolist()
    later = -1 if backwards else 1
    keys = list(zip(growth.tolist(), (later * np.arange(graph.size)).tolist(), strict=True))
    ready = [keys[vertex] for vertex, count in enumerate(waits) if not count]
    heapify(ready)
    order = []
    while ready:
        vertex = later * heappop(ready)[1]
        order.append(vertex)
        for end in behind[first[vertex] : first[vertex + 1]]:
            waits[end] -= 1
            if not waits[end]:
                heappush(ready, keys[end])
    computed = [vertex for vertex in order[::later] if vertex >= graph.inputs]
    ranks = np.zeros(graph.size, dtype=np.int64)
    ranks[computed] = np.arange(1, len(computed) + 1)
    return ranks


def window_cuts(graph: TapeGraph, order: Order, least: int) -> list[BoolArray]:
    """Find minimum cuts near the narrow prefixes of an order, and near the input and output.

    The lower sets are arrays of shape ``(n,)``. `least` is a width that no cut goes below, in elements.

    Notes
    -----
    Up to 24 windows around narrow prefixes cover the graph about twice, or less where wide cuts make flows
    expensive. Further ones cover the first and the last half, quarter, eighth ... of the edges.
    """
    windows = [*_inner_windows(graph, order, least), *_outer_windows(graph, order, least)]
    return [lower for cut in minimum_cuts(graph, windows) if cut for lower in (cut.earliest, cut.latest)]


def _inner_windows(graph: TapeGraph, order: Order, least: int) -> Iterator[Region]:
    """Return windows around narrow prefixes that may hold better ones, the narrowest first."""
    ranks, widths = order
    counts = np.cumsum(np.bincount(ranks))
    windows = min(_WINDOWS, _FEWEST_WINDOWS + graph.size // _VERTICES_OF_A_WINDOW)
    budget = _WINDOWS_BUDGET
    for t in sorted(_narrow_prefixes(graph, order, windows), key=widths.__getitem__):
        bound = int(widths[t])
        reach = min(graph.size // windows, FLOW_BUDGET // (bound + 1))
        budget -= 2 * reach * bound
        if budget < 0:
            return
        lower = max(int(np.searchsorted(counts, counts[t] - reach)) - 1, 0)
        upper = min(int(np.searchsorted(counts, counts[t] + reach)), len(counts) - 1)
        if bound > _NO_BETTER * least:
            yield Region(ranks <= lower, ranks <= upper, bound)


def _outer_windows(graph: TapeGraph, order: Order, least: int) -> list[Region]:
    """Return windows at both ends that hold one half, one quarter ... of the edges."""
    ranks, widths = order
    edges = edges_below(graph, ranks)
    shares = edges[-1] / 2.0 ** np.arange(1, _OCTAVES + 1)
    heads = [(0, upper) for upper in np.searchsorted(edges, shares).tolist()]
    tails = [(lower, len(edges) - 1) for lower in np.searchsorted(edges, edges[-1] - shares).tolist()]
    windows = []
    for first, last in heads + tails:
        lower, upper = ranks <= first, ranks <= last
        inside = int(np.count_nonzero(upper & ~lower))
        bound = min(int(widths[first : last + 1].min()), FLOW_BUDGET // (2 * inside + 1))
        if bound > _NO_BETTER * least:
            windows.append(Region(lower, upper, bound))
    return windows
