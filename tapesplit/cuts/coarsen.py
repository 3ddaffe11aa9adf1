"""Coarsening: values that no good cut needs are computed together with their only reader.

A vertex v with a single child c joins c when cutting between them never pays:

- *delay*: the parents of v are together no wider than v, so a cut behind v may move before v;
- *haste*: c is narrower than v and needs nothing else but inputs, so it may move behind c.

Both only ever narrow a frontier. They apply within a small share of the tape's edges, so that the choice of
where the edges are split is kept, too.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from tapesplit.arrays import IntArray, follow, run_starts
from tapesplit.cuts.graph import TapeGraph

__all__ = ["coarsen"]

_MERGE_SHARES: Final = 64
"""Equal shares of the edges, within each of which vertices are merged."""
_WORTH_A_ROUND: Final = 0.8
"""Part of the vertices; a round that leaves more of them is the last one."""
_SMALL_GRAPH: Final = 1000
"""Graphs of this size cost so little that every round is made."""


def coarsen(graph: TapeGraph) -> TapeGraph:
    """Merge vertices of a graph into their only readers where no good cut is lost.

    The result has some of the vertices, each with the edges of those that were merged into it. Its lower sets
    are lower sets of the graph, with the same frontiers, once merged vertices are counted with their readers.

    Notes
    -----
    Takes O(n + e) vectorised steps a round, and a few rounds, since every round shrinks the graph.

    Examples
    --------
    >>> import numpy as np
    >>> chain = TapeGraph(
    ...     entries=np.arange(4), widths=np.array([5, 5, 2, 7]), edges=np.array([0, 0, 0, 14]),
    ...     child=np.array([1, 2, 3]), parent=np.array([0, 1, 2]), inputs=1, output=3)
    >>> coarsen(chain).entries
    array([0, 2, 3])
    """
    spent = np.cumsum(graph.edges)
    total = int(spent[-1])
    end = _edge_shares(spent, total)
    child, parent = _distinct(graph.child, graph.parent, graph.size)
    coarse = replace(graph, child=child, parent=parent)
    while True:
        target = _merge_targets(coarse, _edge_shares(spent - coarse.edges, total), end)
        kept = np.flatnonzero(target == np.arange(coarse.size))
        if len(kept) == coarse.size:
            return coarse
        number = np.full(coarse.size, -1)
        number[kept] = np.arange(len(kept))
        worth_another = len(kept) < max(_WORTH_A_ROUND * coarse.size, _SMALL_GRAPH)
        coarse, spent, end = _contract(coarse, kept, number[target]), spent[kept], end[kept]
        if not worth_another:
            return coarse


def _edge_shares(spent: IntArray, total: int) -> IntArray:
    """Return the number of the share of all edges that some amounts of spent edges fall into.

    Close to either end relative differences count, since few edges there may be swept in many directions.
    """
    spent = np.maximum(spent, 0)  # a vertex may have the edges of others that the tape computes later
    octaves = np.floor(4 * np.log2(1 + spent)) - np.floor(4 * np.log2(1 + total - spent))
    return spent * _MERGE_SHARES // max(total, 1) + octaves.astype(np.int64)


def _merge_targets(graph: TapeGraph, begin: IntArray, end: IntArray) -> IntArray:
    """Return the vertex that each vertex is merged into in the end: itself, or a descendant.

    The two share the edges from where the first one begins to where its reader ends.
    """
    vertices = np.arange(graph.size)
    is_computed = vertices >= graph.inputs
    reader = _only(graph.size, graph.parent, graph.child)
    mergeable = (reader >= 0) & is_computed & (begin == end[reader])
    mergeable[graph.output] = False
    if not mergeable.any():
        return vertices
    capacities, computed = graph.capacities, is_computed[graph.parent]
    source = _only(graph.size, graph.child[computed], graph.parent[computed])
    parents_width = np.bincount(graph.child, weights=capacities[graph.parent], minlength=graph.size)
    delay = parents_width <= capacities
    haste = (source[reader] == vertices) & (capacities > capacities[reader])
    return follow(np.where(mergeable & (delay | haste), reader, vertices))


def _only(size: int, at: IntArray, neighbor: IntArray) -> IntArray:
    """Return the only neighbor of each vertex; -1 if it has none or several."""
    only = np.full(size, -1)
    only[at] = neighbor
    only[np.bincount(at, minlength=size) > 1] = -1
    return only


def _distinct(child: IntArray, parent: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Drop repeated arcs, which would count the width of a parent twice."""
    key = np.sort(child * size + parent, kind="stable")  # fast, as tapes are nearly in this order
    return np.divmod(key[run_starts(key)], size)


def _contract(graph: TapeGraph, kept: IntArray, step: IntArray) -> TapeGraph:
    """Return the graph of the kept vertices; `step` is the new number of each vertex's group."""
    edges = np.zeros(len(kept), dtype=np.int64)
    np.add.at(edges, step, graph.edges)
    child, parent = step[graph.child], step[graph.parent]
    child, parent = _distinct(child[child != parent], parent[child != parent], len(kept))
    return TapeGraph(
        entries=graph.entries[kept],
        widths=graph.widths[kept],
        edges=edges,
        child=child,
        parent=parent,
        inputs=graph.inputs,
        output=int(step[graph.output]),
    )
