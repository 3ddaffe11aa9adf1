"""Nested vertex separators of a tape, chosen so that the Jacobian chain between them is cheap to plan."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from tapesplit.candidates import candidate_cuts, depth_ranks, narrow_prefixes
from tapesplit.coarsen import coarsen
from tapesplit.flow import MinimumCut, minimum_cut
from tapesplit.graph import BoolArray, IntArray, TapeGraph, frontier, frontier_widths, tape_ranks
from tapesplit.nesting import CutFamily, choose_nested, cut_family

__all__ = ["Separator", "assign_chunks", "chunk_edges", "find_separators"]


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
    family = cut_family(coarse, candidate_cuts(coarse, cut))
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
    """Cut the whole graph at its minimal width."""
    ranks = tape_ranks(graph)
    bound = int(frontier_widths(graph, ranks).min())
    return minimum_cut(graph, ranks == 0, np.ones(graph.size, dtype=np.bool_), bound)


def _capped(family: CutFamily, max_links: int) -> CutFamily:
    """Reduce a family to the nested cuts of its cheapest chain, at most `max_links` links."""
    while True:
        _, chosen = choose_nested(family)
        family = _subfamily(family, [0, *chosen, len(family.widths) - 1])
        if len(chosen) < max_links:
            return family
        rest = [
            _subfamily(family, [i for i in range(len(family.widths)) if i != k])
            for k in range(1, len(chosen) + 1)
        ]
        family = min(rest, key=lambda smaller: choose_nested(smaller)[0])


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
        ranks = np.unique(segment * (int(base.max()) + 1) + base, return_inverse=True)[1]
        best = [ranks <= t for t in narrow_prefixes(graph, ranks, room)]
    full = cut_family(graph, np.array([family.members[0], *chosen, *best, family.members[-1]]))
    return _distinct(full, {int(lower.sum()) for lower in chosen})


def _distinct(family: CutFamily, needed: set[int]) -> list[BoolArray]:
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
