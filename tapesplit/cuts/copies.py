"""Cuts that are no frontiers: what lies between two of their members is computed on both sides.

A reconstruction u of x from a short code is handed back beside its misfit, the sum of (x - u)². Any lower set
that holds the misfit holds u, so that its frontier is as wide as u or x. Yet only the code and the misfit go
through: what leads from the code to u belongs to the link before them, which needs it for the misfit, and to
the link behind them, which needs it for u.

In a graph in which such values stand twice, the cut is the frontier of a lower set like any other.
"""

import numpy as np
from scipy.sparse.csgraph import maximum_flow

from tapesplit.arrays import BoolArray, IntArray, reached
from tapesplit.cuts.flow import capacity_matrix, residual_sides
from tapesplit.cuts.graph import TapeGraph

__all__ = ["narrowest_cuts", "with_copies"]


def narrowest_cuts(graph: TapeGraph, bound: int) -> list[BoolArray]:
    """Find the narrowest sets of values through one of which every path from input to output passes.

    Returns the members of the cuts nearest to the inputs and to the outputs, arrays of shape ``(n,)``; none
    if all cuts are wider than `bound` elements, in proportion to which the flow takes time. No empty array is
    a member.

    Notes
    -----
    Menger's theorem with widths as capacities: every vertex becomes an arc between two nodes. Unlike in
    `minimum_cut`, no arc keeps a path from crossing the cut twice. The flow runs from the output to the
    inputs.

    Examples
    --------
    Vertex 4 is computed from the input and, by way of 2 and 3, from vertex 1, which the output reads, too:

    >>> misfit = TapeGraph(
    ...     entries=np.arange(6), widths=np.array([9, 2, 9, 9, 1, 10]), edges=np.array([0, 18, 18, 9, 9, 0]),
    ...     child=np.array([1, 2, 3, 3, 4, 5, 5]), parent=np.array([0, 1, 0, 2, 3, 2, 4]),
    ...     inputs=1, output=5)
    >>> [np.flatnonzero(cut).tolist() for cut in narrowest_cuts(misfit, bound=8)]
    [[1, 4]]
    """
    size = graph.size
    supply, source, sink, vertices = 2 * size, 2 * size + 1, 2 * size + 2, np.arange(size)
    # The search turns back less often where values are read once than where they are computed from several.
    tails = np.concatenate([size + vertices, graph.child, vertices[: graph.inputs], [source, supply]])
    sinks, of_output = np.full(graph.inputs, sink), size + graph.output
    heads = np.concatenate([vertices, size + graph.parent, sinks, [of_output, source]])
    capacities = np.full(tails.size, bound + 1, dtype=np.int32)
    capacities[:size] = np.where(graph.widths > 0, np.minimum(graph.widths, bound + 1), bound + 1)
    network = capacity_matrix(sink + 1, tails, heads, capacities)
    found = maximum_flow(network, supply, sink)
    if found.flow_value > bound:
        return []
    from_supply, to_sink = residual_sides(network - found.flow, supply, sink)
    first = to_sink[:size] & ~to_sink[size : 2 * size]
    last = from_supply[size : 2 * size] & ~from_supply[:size]
    return [first] if (first == last).all() else [first, last]


def with_copies(graph: TapeGraph, cut: BoolArray) -> tuple[TapeGraph, BoolArray]:
    """Return a graph in which a cut is the frontier of a lower set, and that lower set.

    No member of the cut can be left out.

    Returns
    -------
    graph : TapeGraph
        First the members of the cut and all that they are computed from, then all vertices from which a path
        leads to the output without passing a member. A vertex that is both has two copies. Separators of this
        graph are, by their entries, separators of the given one, with the same values between each two.
    lower : array of bool
        The vertices up to the cut.

    Notes
    -----
    Takes O(n + e) Python steps.
    """
    child, parent, numbers = graph.child[::-1], graph.parent[::-1], np.arange(graph.size)
    before = reached(cut | (numbers < graph.inputs), child, parent)  # an input may be read by nothing
    past = ~cut[parent]
    behind = reached((numbers == graph.output) & ~cut, child[past], parent[past])
    vertices = np.concatenate([np.flatnonzero(before), np.flatnonzero(behind)])
    count = int(np.count_nonzero(before))
    first, second = np.full((2, graph.size), -1)
    first[vertices[:count]] = np.arange(count)
    second[vertices[count:]] = np.arange(count, vertices.size)

    def copied(ends: IntArray) -> IntArray:
        """Return the numbers of what is read behind the cut."""
        return np.where(cut[ends], first[ends], second[ends])

    inner, outer = before[graph.child], behind[graph.child]
    split = TapeGraph(
        entries=graph.entries[vertices],
        widths=graph.widths[vertices],
        edges=graph.edges[vertices],
        child=np.concatenate([first[graph.child[inner]], second[graph.child[outer]]]),
        parent=np.concatenate([first[graph.parent[inner]], copied(graph.parent[outer])]),
        inputs=graph.inputs,
        output=int(copied(np.array(graph.output))),
    )
    return split, np.arange(vertices.size) < count
