"""Nested vertex separators of a tape."""

from dataclasses import dataclass

import numpy as np

from tapesplit.graph import UNBOUNDED, BoolArray, IntArray, TapeGraph, frontier, frontier_widths, tape_ranks

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


def find_separators(graph: TapeGraph, *, max_links: int = 40) -> tuple[Separator, ...]:
    """Find nested separators that let the planner do well."""
    if graph.size < 3 or max_links < 2:
        return ()
    ranks = tape_ranks(graph)
    widths = frontier_widths(graph, ranks)
    edges = np.cumsum(np.bincount(ranks, weights=graph.edges))
    chosen = _thin(widths, edges, max_links - 1)
    return tuple(_separator(graph, ranks <= t, "live set") for t in chosen)


def _thin(widths: IntArray, edges: IntArray, amount: int) -> list[int]:
    """Choose the narrowest position within each of `amount` equal shares of the edges."""
    total = edges[-1]
    usable = np.flatnonzero((widths < UNBOUNDED) & (edges > 0) & (edges < total))
    if not usable.size:
        return []
    share = np.minimum((edges[usable] * amount / total).astype(np.int64), amount - 1)
    by_width = np.lexsort((usable, widths[usable], share))
    first = np.flatnonzero(np.diff(share[by_width], prepend=-1))
    picked = usable[by_width[first]]
    # Two cuts with no edges between them only pass data along: the narrower one serves both.
    kept: list[int] = []
    for t in sorted(picked.tolist()):
        if kept and edges[kept[-1]] == edges[t]:
            if widths[t] < widths[kept[-1]]:
                kept[-1] = t
        else:
            kept.append(t)
    return kept


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
