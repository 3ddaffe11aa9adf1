"""Nested vertex separators of a tape, chosen so that the Jacobian chain between them is cheap to plan."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from tapesplit.candidates import (
    depth_ranks,
    narrow_lower_sets,
    narrow_prefixes,
    prefixes,
    ranks_after,
    record_prefixes,
    window_cuts,
)
from tapesplit.coarsen import coarsen
from tapesplit.flow import FLOW_BUDGET, MinimumCut, minimum_cut
from tapesplit.graph import BoolArray, IntArray, TapeGraph, frontier, frontier_widths, tape_ranks
from tapesplit.nesting import CutFamily, choose_nested, cut_family

__all__ = ["Separator", "assign_chunks", "chunk_edges", "find_separators"]

_SMALL: Final = 24
"""Coarse graphs up to this size are searched exhaustively, or nearly so."""
_SHARES: Final = 32
_NEAR_BOUND: Final = 1.05
"""A chain within this factor of minimal width times all edges needs no further candidates."""


@dataclass(frozen=True, slots=True)
class Separator:
    """Values through which every path from inputs to outputs passes.

    Attributes
    ----------
    vertices : tuple of int
        Tape entry indices, increasing.
    width : int
        Elements of these values together.
    reason : str
        Why the cut was chosen, one or two words.
    """

    vertices: tuple[int, ...]
    width: int
    reason: str = ""


def find_separators(
    graph: TapeGraph, *, max_links: int = 40, stop_within: float = 0.1
) -> tuple[Separator, ...]:
    """Find nested separators that let the planner do well."""
    least = min(graph.input_width, graph.output_width)
    if max_links < 2 or graph.size < 3 or least < 2 or not graph.total_edges:
        return ()
    enough = least / (1 + stop_within)
    if _has_wide_path(graph, enough):
        return ()
    coarsening = coarsen(graph)
    coarse = coarsening.graph
    cut = _global_cut(coarse)
    if cut.width >= enough:
        return ()
    family = _best_family(coarse, cut)
    family = _capped(family, max_links)
    lowers = _filled(coarse, family, max_links)
    return tuple(_separator(graph, lower[coarsening.group], "") for lower in lowers)


def _has_wide_path(graph: TapeGraph, width: float) -> bool:
    """Return whether some path leads from input to output through values of at least this width only."""
    wide = graph.capacities >= width
    arcs = wide[graph.parent] & wide[graph.child]
    ones = np.ones(np.count_nonzero(arcs), dtype=np.int8)
    matrix = csr_array((ones, (graph.parent[arcs], graph.child[arcs])), shape=(graph.size, graph.size))
    reached = np.zeros(graph.size, dtype=np.bool_)
    for vertex in graph.inputs:
        if wide[vertex]:
            reached[breadth_first_order(matrix, vertex, return_predecessors=False)] = True
    return bool(reached[list(graph.outputs)].any())


def _global_cut(graph: TapeGraph) -> MinimumCut:
    """Cut the whole graph at its minimal width, or at least at its narrowest live set."""
    ranks = tape_ranks(graph)
    widths = frontier_widths(graph, ranks)
    bound = int(widths.min())
    narrowest = np.flatnonzero(widths == bound)
    if _is_forced(graph, ranks):
        return MinimumCut(bound, ranks <= narrowest[0], ranks <= narrowest[-1])
    if graph.size * bound > FLOW_BUDGET:
        return MinimumCut(0, ranks <= narrowest[0], ranks <= narrowest[-1])
    return minimum_cut(graph, ranks == 0, np.ones(graph.size, dtype=np.bool_), bound)


def _is_forced(graph: TapeGraph, ranks: IntArray) -> bool:
    """Return whether the graph has no other order than that of the tape."""
    follows = ranks[graph.child] - ranks[graph.parent] == 1
    return len(np.unique(ranks[graph.child[follows]])) == int(ranks.max())


def _best_family(graph: TapeGraph, cut: MinimumCut) -> CutFamily:
    """Return the nested cuts of the cheapest chain, looking further only where that may pay."""
    ranks = tape_ranks(graph)
    members = [ranks == 0, np.ones(graph.size, dtype=np.bool_), cut.earliest, cut.latest]
    if graph.size <= _SMALL:
        members += narrow_lower_sets(graph)
        return _cheapest(graph, members)[1]
    members += prefixes(ranks, narrow_prefixes(graph, ranks, _SHARES) + record_prefixes(graph, ranks))
    if _is_forced(graph, ranks):
        return _cheapest(graph, members)[1]
    behind = ranks_after(cut.earliest, ranks)
    members += prefixes(behind, narrow_prefixes(graph, behind, _SHARES))
    cost, family = _cheapest(graph, members)
    if cost <= _NEAR_BOUND * cut.width * graph.total_edges:
        return family
    depth = depth_ranks(graph)
    members = [*family.members, *prefixes(depth, narrow_prefixes(graph, depth, _SHARES))]
    members += window_cuts(graph, depth, cut.width)
    return _cheapest(graph, members)[1]


def _cheapest(graph: TapeGraph, members: list[BoolArray]) -> tuple[float, CutFamily]:
    """Return the cost of the cheapest chain of nested candidates, and its cuts."""
    family = cut_family(graph, members)
    cost, chosen = choose_nested(family)
    return cost, _subfamily(family, [0, *chosen, len(family.widths) - 1])


def _capped(family: CutFamily, max_links: int) -> CutFamily:
    """Reduce a family to the nested cuts of its cheapest chain, at most `max_links` links."""
    while len(family.widths) > max_links + 1:
        everything = range(len(family.widths))
        rest = [_subfamily(family, [i for i in everything if i != k]) for k in everything[1:-1]]
        family = min(rest, key=lambda smaller: choose_nested(smaller)[0])
    return family


def _subfamily(family: CutFamily, kept: list[int]) -> CutFamily:
    """Return some candidates of a family."""
    return CutFamily(family.members[kept], family.widths[kept], family.edges[kept])


def _filled(graph: TapeGraph, family: CutFamily, max_links: int) -> list[BoolArray]:
    """Add cuts that the chain on one machine does not need, evenly spread, for several machines."""
    chosen = list(family.members[1:-1])
    segment = (~family.members).sum(axis=0)
    best: list[BoolArray] = []
    room = max_links - 1 - len(chosen)
    if room > 0:
        base = tape_ranks(graph)
        ranks = segment * (int(base.max()) + 1) + base
        ranks = (np.cumsum(np.bincount(ranks) > 0) - 1)[ranks]
        best = [ranks <= t for t in narrow_prefixes(graph, ranks, room)]
    return _distinct(cut_family(graph, [*family.members, *best]))


def _distinct(family: CutFamily) -> list[BoolArray]:
    """Drop cuts that only pass data along: of equal edges the narrowest stays."""
    kept: list[int] = []
    for i in range(1, len(family.widths) - 1):
        if family.edges[i] in (family.edges[0], family.edges[-1]):
            continue
        if kept and family.edges[kept[-1]] == family.edges[i]:
            if family.widths[i] < family.widths[kept[-1]]:
                kept[-1] = i
        else:
            kept.append(i)
    return [family.members[i] for i in kept]


def _separator(graph: TapeGraph, lower: BoolArray, reason: str) -> Separator:
    """Build the separator at the frontier of a lower set."""
    vertices = frontier(graph, lower)
    return Separator(tuple(graph.entries[vertices].tolist()), int(graph.widths[vertices].sum()), reason)


def assign_chunks(graph: TapeGraph, separators: tuple[Separator, ...]) -> IntArray:
    """Assign each vertex to the chunk that computes it.

    Parameters
    ----------
    graph : TapeGraph
        The graph, n vertices.
    separators : tuple of Separator
        Nested separators, from input to output.

    Returns
    -------
    (n,) array of int
        The number of the first separator that the vertex is in or before; ``len(separators)`` if it is
        behind all of them. Inputs have chunk 0.

    Notes
    -----
    Takes O(n + e) Python steps.
    """
    chunks = np.full(graph.size, len(separators), dtype=np.int64)
    for number in range(len(separators) - 1, -1, -1):
        chunks[np.searchsorted(graph.entries, separators[number].vertices)] = number
    result = chunks.tolist()
    by_child = np.argsort(-graph.child, kind="stable")
    children, parents = graph.child[by_child].tolist(), graph.parent[by_child].tolist()
    for child, parent in zip(children, parents, strict=True):
        result[parent] = min(result[parent], result[child])
    result = np.array(result, dtype=np.int64)
    result[list(graph.inputs)] = 0
    return result


def chunk_edges(graph: TapeGraph, chunks: IntArray) -> IntArray:
    """Return the scalar edges of each chunk.

    Parameters
    ----------
    graph : TapeGraph
        The graph, n vertices.
    chunks : (n,) array of int
        From `assign_chunks`.

    Returns
    -------
    (q,) array of int
        fma per direction of each chunk.
    """
    edges = np.zeros(int(chunks.max(initial=0)) + 1, dtype=np.int64)
    np.add.at(edges, chunks, graph.edges)
    return edges
