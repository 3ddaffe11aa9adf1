"""Nested vertex separators of a tape, chosen so that the Jacobian chain between them is cheap to plan."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from tapesplit.candidates import (
    candidate_prefixes,
    dense_ranks,
    depth_ranks,
    narrow_lower_sets,
    narrow_prefixes,
    prefixes,
    ranks_after,
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
    """Values of a tape through which every path from its inputs to its outputs passes.

    Attributes
    ----------
    vertices : tuple of int
        Tape entry indices, increasing.
    width : int
        Elements of these values together.
    reason : {"minimal", "cost", "spread"}
        Why the tape is cut here: no cut of the whole tape is narrower (proved by a flow); the cheapest chain
        on one machine needs the cut; or it is the narrowest one near an equal share of the work, for several
        machines.
    """

    vertices: tuple[int, ...]
    width: int
    reason: Literal["minimal", "cost", "spread"]


def find_separators(
    graph: TapeGraph, *, max_links: int = 40, stop_within: float | None = 0.1
) -> tuple[Separator, ...]:
    """Find nested separators between which a tape is a Jacobian chain that is cheap to accumulate.

    Parameters
    ----------
    graph : TapeGraph
        The graph of the tape, n vertices and e edges.
    max_links : int
        Most links of the chain, that is one more than separators. Cuts that the cheapest chain on one machine
        needs come first; where they must be left out, those go that save least. The rest of the room is
        filled with narrow cuts, evenly spread, which give several machines something to do.
    stop_within : float or None
        Return no separators if no chain can beat the plain tangent or adjoint mode by more than this part of
        the chain's cost on one machine. None always looks for separators, as several machines may need them.

    Returns
    -------
    tuple of Separator
        Nested, from input to output, without the inputs and outputs themselves. Between any two of them some
        edges are spent.

    Notes
    -----
    A chain costs at least the width of the minimum cut times all edges, since every step sweeps an edge in as
    many directions as some cut is wide; a path of wide values proves this without a flow.

    Candidates are compared by the cost of the whole chain (`choose_nested`), not by width. On graphs of up to
    24 coarse vertices they are all narrow lower sets; on larger ones, prefixes of several orders and minimum
    cuts. Takes O(n + e) plus flows of bounded size; memory is linear.

    Examples
    --------
    >>> import numpy as np
    >>> autoencoder = TapeGraph(
    ...     entries=np.arange(5), widths=np.array([512, 256, 8, 256, 512]),
    ...     edges=np.array([0, 131072, 2048, 2048, 131072]),
    ...     child=np.arange(1, 5), parent=np.arange(4), inputs=(0,), outputs=(4,))
    >>> find_separators(autoencoder, max_links=2)
    (Separator(vertices=(2,), width=8, reason='minimal'),)
    """
    if max_links < 2 or not graph.total_edges:
        return ()
    enough = 0.0 if stop_within is None else min(graph.input_width, graph.output_width) / (1 + stop_within)
    if enough and (enough < 1 or _has_wide_path(graph, enough)):
        return ()
    coarsening = coarsen(graph)
    coarse = coarsening.graph
    cut = _global_cut(coarse)
    if enough and cut.width >= enough:
        return ()
    family, orders = _best_family(coarse, cut)
    family = _capped(family, max_links)
    separators = []
    for lower, needed in _filled(coarse, family, orders, max_links):
        vertices = frontier(graph, lower[coarsening.group])
        width = int(graph.widths[vertices].sum())
        reason: Literal["minimal", "cost", "spread"] = (
            "minimal" if width == cut.width else "cost" if needed else "spread"
        )
        separators.append(Separator(tuple(graph.entries[vertices].tolist()), width, reason))
    return tuple(separators)


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
    """Cut the whole graph at its minimal width; width 0 stands for one that would take too long to prove."""
    ranks = tape_ranks(graph)
    earliest, latest, bound = _narrowest_prefixes(graph, ranks)
    if _is_forced(graph, ranks):
        return MinimumCut(bound, earliest, latest)
    if graph.size * bound > FLOW_BUDGET:
        earliest, latest, bound = _narrowest_prefixes(graph, depth_ranks(graph))
    if graph.size * bound > FLOW_BUDGET:
        return MinimumCut(0, earliest, latest)
    return minimum_cut(graph, ranks == 0, np.ones(graph.size, dtype=np.bool_), bound)


def _narrowest_prefixes(graph: TapeGraph, ranks: IntArray) -> tuple[BoolArray, BoolArray, int]:
    """Return the first and the last of the narrowest prefixes of an order, and their width."""
    widths = frontier_widths(graph, ranks)
    bound = int(widths.min())
    narrowest = np.flatnonzero(widths == bound)
    return ranks <= narrowest[0], ranks <= narrowest[-1], bound


def _is_forced(graph: TapeGraph, ranks: IntArray) -> bool:
    """Return whether the graph has no other order than that of the tape."""
    follows = ranks[graph.child] - ranks[graph.parent] == 1
    return len(np.unique(ranks[graph.child[follows]])) == int(ranks.max())


def _best_family(graph: TapeGraph, cut: MinimumCut) -> tuple[CutFamily, list[IntArray]]:
    """Return the nested cuts of the cheapest chain and the orders looked at, more where that may pay."""
    ranks = tape_ranks(graph)
    members = [ranks == 0, np.ones(graph.size, dtype=np.bool_), cut.earliest, cut.latest]
    members += candidate_prefixes(graph, ranks, _SHARES)
    if _is_forced(graph, ranks):
        return _cheapest(graph, members)[1], [ranks]
    if graph.size <= _SMALL:
        members += narrow_lower_sets(graph)
        return _cheapest(graph, members)[1], [ranks, depth_ranks(graph)]
    members += candidate_prefixes(graph, ranks_after(cut.earliest, ranks), _SHARES)
    cost, family = _cheapest(graph, members)
    if cost <= _NEAR_BOUND * cut.width * graph.total_edges:
        return family, [ranks]
    depth = depth_ranks(graph)
    members = [*family.members, *candidate_prefixes(graph, depth, _SHARES)]
    members += window_cuts(graph, depth, cut.width)
    return _cheapest(graph, members)[1], [ranks, depth]


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


def _filled(
    graph: TapeGraph, family: CutFamily, orders: list[IntArray], max_links: int
) -> list[tuple[BoolArray, bool]]:
    """Add evenly spread cuts between those of the cheapest chain, and tell which ones that chain needs."""
    room = max_links + 1 - len(family.widths)
    segment = (~family.members).sum(axis=0)
    fills = []
    for order in orders if room > 0 else ():
        ranks = dense_ranks(segment * (int(order.max()) + 1) + order)
        fills.append(
            cut_family(graph, [*family.members, *prefixes(ranks, narrow_prefixes(graph, ranks, room))])
        )
    full = min(fills, key=lambda candidate: candidate.widths.mean(), default=family)
    return [(full.members[i], full.edges[i] in family.edges) for i in _useful(full)]


def _useful(family: CutFamily) -> list[int]:
    """Drop cuts that only pass data along: of those with equal edges the narrowest serves."""
    kept: list[int] = []
    for i in range(1, len(family.widths) - 1):
        if not family.edges[0] < family.edges[i] < family.edges[-1]:
            continue
        if not kept or family.edges[kept[-1]] < family.edges[i]:
            kept.append(i)
        elif family.widths[i] < family.widths[kept[-1]]:
            kept[-1] = i
    return kept


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
    Without the vertices of the separators the graph falls into components that each lie within one chunk: an
    edge between two chunks would bypass the separator between them. Takes O(n + e).
    """
    last = len(separators)
    chunks = np.full(graph.size, last, dtype=np.int64)
    for number in range(last - 1, -1, -1):
        chunks[np.searchsorted(graph.entries, separators[number].vertices)] = number
    chunks[list(graph.inputs)] = 0
    if not last:
        return chunks
    cut = chunks < last
    inner = ~cut[graph.child] & ~cut[graph.parent]
    arcs = (graph.parent[inner], graph.child[inner])
    matrix = csr_array((np.ones(len(arcs[0]), dtype=np.int8), arcs), shape=(graph.size, graph.size))
    count, component = connected_components(matrix, directed=True, connection="weak")
    leaving = cut[graph.child] & ~cut[graph.parent]
    chunk_of = np.full(count, last, dtype=np.int64)
    chunk_of[component[graph.parent[leaving]]] = chunks[graph.child[leaving]]
    return np.where(cut, chunks, chunk_of[component])


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
