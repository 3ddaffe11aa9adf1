"""Chunks: the parts of a tape between consecutive separators, and the Jacobian chain that they form."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from jcdp_core import ElementalJacobian, JacobianChain
from tapesplit.arrays import IntArray, follow
from tapesplit.cuts.graph import TapeGraph
from tapesplit.cuts.separators import Separator

__all__ = ["Chunk", "assign_chunks", "chunk_chain", "cut_into_chunks"]


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no truth value
class Chunk:
    """One link of the chain: it computes the values of a separator from those of the one before.

    Parameters
    ----------
    sources, targets
        Tape entries of the separator before and of the one after.
    entries : array of int
        Tape entries that the chunk computes, in order.
    n, m
        Elements of the sources and of the targets: columns and rows of the chunk's Jacobian.
    edges
        Scalar edges |E|: fma for each direction that is propagated through the chunk.
    """

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    entries: IntArray
    n: int
    m: int
    edges: int


def cut_into_chunks(graph: TapeGraph, separators: Sequence[Separator]) -> tuple[Chunk, ...]:
    """Cut a tape at nested separators.

    Parameters
    ----------
    graph
        Graph of the tape.
    separators
        Nested separators, ordered from the inputs to the outputs.

    Returns
    -------
    tuple of Chunk
        One more than there are separators.
    """
    count = len(separators) + 1
    numbers = assign_chunks(graph, separators)
    edges = graph.edges_of(numbers, count).tolist()
    inputs, outputs = (tuple(graph.entries[list(ends)].tolist()) for ends in (graph.inputs, graph.outputs))
    fronts = [inputs, *(separator.vertices for separator in separators), outputs]
    widths = [graph.input_width, *(separator.width for separator in separators), graph.output_width]
    behind = numbers[len(graph.inputs) :]
    entries = graph.entries[len(graph.inputs) :][np.argsort(behind, kind="stable")]
    parts = pairwise([0, *np.cumsum(np.bincount(behind, minlength=count)).tolist()])
    return tuple(
        Chunk(fronts[i], fronts[i + 1], entries[start:stop], widths[i], widths[i + 1], edges[i])
        for i, (start, stop) in enumerate(parts)
    )


def chunk_chain(chunks: Sequence[Chunk], local_fma: IntArray) -> JacobianChain:
    """Return the Jacobian chain that chunks form, one link a chunk, costs in fma.

    A chunk that only moves data counts one edge, since chains have positive costs. What tangents pay once,
    whatever their number, is shared by as many as the chunk has inputs.
    """
    links = []
    for chunk in chunks:
        edges, once = max(chunk.edges, 1), int(local_fma[chunk.entries].sum())
        each = -(-once // max(chunk.n, 1))
        links.append(ElementalJacobian(chunk.n, chunk.m, edges, tangent_cost=edges + each))
    return JacobianChain(tuple(links))


def assign_chunks(graph: TapeGraph, separators: Sequence[Separator]) -> IntArray:
    """Assign each vertex to the chunk that computes it.

    Parameters
    ----------
    graph : TapeGraph
        The graph, n vertices.
    separators : sequence of Separator
        Nested separators, from input to output.

    Returns
    -------
    (n,) array of int
        The number of the first separator that the vertex is in or before; ``len(separators)`` if it is
        behind all of them. Inputs have chunk 0.

    Notes
    -----
    A vertex outside the separators is in the chunk of any child: an edge between two chunks would bypass
    the separator between them. Takes O(e + n log d) for chunks of depth d.

    Examples
    --------
    >>> import numpy as np
    >>> line = TapeGraph(
    ...     entries=np.arange(4), widths=np.array([9, 2, 5, 9]), edges=np.array([0, 18, 10, 45]),
    ...     child=np.array([1, 2, 3]), parent=np.array([0, 1, 2]), inputs=(0,), outputs=(3,))
    >>> assign_chunks(line, (Separator((1,), 2, "minimal"),))
    array([0, 0, 1, 1])
    """
    last = len(separators)
    chunks = np.full(graph.size, last, dtype=np.int64)
    if not last:
        return chunks
    numbers = np.repeat(np.arange(last), [len(separator.vertices) for separator in separators])
    entries = chain.from_iterable(separator.vertices for separator in separators)
    vertices = np.searchsorted(graph.entries, np.fromiter(entries, dtype=np.int64, count=numbers.size))
    chunks[vertices[::-1]] = numbers[::-1]  # one in several separators is in the chunk before the first
    chunks[list(graph.inputs)] = 0
    known = np.flatnonzero(chunks < last)
    step = np.arange(graph.size)
    step[graph.parent] = graph.child
    step[known] = known
    return chunks[follow(step)]
