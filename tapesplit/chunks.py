"""Chunks: the parts of a tape between consecutive separators, and the Jacobian chain that they form."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from jcdp_core import ElementalJacobian, JacobianChain
from tapesplit.graph import IntArray, TapeGraph
from tapesplit.separators import Separator, assign_chunks, chunk_edges

__all__ = ["Chunk", "chunk_chain", "cut_into_chunks"]


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
    numbers = assign_chunks(graph, tuple(separators))
    edges = chunk_edges(graph, numbers).tolist()
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    fronts = [
        (tuple(graph.entries[inputs].tolist()), int(graph.widths[inputs].sum())),
        *((separator.vertices, separator.width) for separator in separators),
        (tuple(graph.entries[outputs].tolist()), int(graph.widths[outputs].sum())),
    ]
    computed = np.ones(graph.size, dtype=bool)
    computed[inputs] = False
    members = np.flatnonzero(computed)
    members = members[np.argsort(numbers[members], kind="stable")]
    bounds = np.searchsorted(numbers[members], np.arange(len(separators) + 2))
    entries = graph.entries[members]
    edges += [0] * (len(separators) + 1 - len(edges))
    return tuple(
        Chunk(before[0], after[0], entries[bounds[i] : bounds[i + 1]], before[1], after[1], edges[i])
        for i, (before, after) in enumerate(pairwise(fronts))
    )


def chunk_chain(chunks: Sequence[Chunk]) -> JacobianChain:
    """Return the Jacobian chain that chunks form, one link a chunk, costs in fma.

    A chunk that only moves data counts one edge, since chains have positive costs.
    """
    return JacobianChain(tuple(ElementalJacobian(chunk.n, chunk.m, max(chunk.edges, 1)) for chunk in chunks))
