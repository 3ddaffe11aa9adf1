"""Chunks: the parts of a tape between consecutive separators, and the Jacobian chain that they form."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from jcdp_core import ElementalJacobian, JacobianChain
from tapesplit.arrays import IntArray, follow, reached
from tapesplit.cost.factored import are_spoiled
from tapesplit.cuts.graph import TapeGraph
from tapesplit.cuts.separators import Separator
from tapesplit.rules.low_rank import FEWEST_DIRECTIONS
from tapesplit.structures.facts import TapeFacts

__all__ = ["Chunk", "chunk_chain", "chunk_vertices", "cut_into_chunks"]


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
    """Cut a tape at nested separators, from input to output, into chunks: one more than separators."""
    inputs, output = tuple(graph.entries[: graph.inputs].tolist()), int(graph.entries[graph.output])
    fronts = [inputs, *(separator.vertices for separator in separators), (output,)]
    widths = [graph.input_width, *(separator.width for separator in separators), graph.output_width]
    links = zip(pairwise(fronts), pairwise(widths), chunk_vertices(graph, separators), strict=True)
    return tuple(
        Chunk(*ends, graph.entries[vertices], *sizes, int(graph.edges[vertices].sum()))
        for ends, sizes, vertices in links
    )


def chunk_chain(chunks: Sequence[Chunk], facts: TapeFacts, spared_edges: IntArray) -> JacobianChain:
    """Return the Jacobian chain that chunks form, one link a chunk, costs in fma.

    A chunk that only moves data counts one edge, since chains have positive costs. What tangents pay once,
    whatever their number (`TapeFacts.local_fma`), is divided by the number of inputs of the chunk. Factored
    adjoints do not pay for the edges in ``spared_edges``. If rows are carried together, the cost of all of
    them is divided by the number of adjoints.
    """
    links, part = [], facts.row_part
    for chunk in chunks:
        edges, once = max(chunk.edges, 1), int(facts.local_fma[chunk.entries].sum())
        tangent_cost = edges + -(-once // max(chunk.n, 1))
        are_factored = chunk.m >= FEWEST_DIRECTIONS and not are_spoiled(facts, chunk.targets)
        spared = int(spared_edges[chunk.entries].sum()) if are_factored else 0
        adjoint_cost = edges - spared
        if part is not None:  # facts have one for chains of a single link
            adjoint_cost -= part.edges - int(spared_edges[part.calls].sum())
            adjoint_cost += -(-(part.swept + part.expanded) // chunk.m)
        links.append(ElementalJacobian(chunk.n, chunk.m, edges, tangent_cost, max(adjoint_cost, 1)))
    return JacobianChain(tuple(links))


def chunk_vertices(graph: TapeGraph, separators: Sequence[Separator]) -> list[IntArray]:
    """List the vertices that each chunk computes from the separator before it.

    The separators are nested, from input to output; there is one chunk more. Its vertices are in order. What
    lies between two members of a separator may be in the chunks on both sides, see `tapesplit.cuts.copies`.

    Notes
    -----
    Takes O(e + n log d) for chunks of depth d, and O(q e) Python steps for q separators that are no frontiers
    of lower sets.

    Examples
    --------
    >>> import numpy as np
    >>> line = TapeGraph(
    ...     entries=np.arange(4), widths=np.array([9, 2, 5, 9]), edges=np.array([0, 18, 10, 45]),
    ...     child=np.array([1, 2, 3]), parent=np.array([0, 1, 2]), inputs=1, output=3)
    >>> [vertices.tolist() for vertices in chunk_vertices(line, (Separator((1,), 2, "minimal"),))]
    [[1], [2, 3]]
    """
    behind = graph.inputs
    if not separators:
        return [np.arange(behind, graph.size)]
    fronts = [np.searchsorted(graph.entries, separator.vertices) for separator in separators]
    numbers = _first_chunks(graph, fronts)
    if not _are_frontiers(graph, fronts, numbers):
        return _computed_between(graph, [np.arange(behind), *fronts, np.array([graph.output])])
    order = behind + np.argsort(numbers[behind:], kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers[behind:], minlength=len(fronts) + 1))[:-1])


def _first_chunks(graph: TapeGraph, fronts: Sequence[IntArray]) -> IntArray:
    """Return the chunk of each vertex: the number of the first separator that it is in or before.

    Vertices behind the last one of q separators have the number q.

    A vertex outside the separators is in the chunk of any child, if separators are frontiers of lower sets:
    an edge between two chunks would bypass the one between them.
    """
    last = len(fronts)
    chunks = np.full(graph.size, last, dtype=np.int64)
    for number in range(last - 1, -1, -1):  # a vertex in several separators is in the chunk before the first
        chunks[fronts[number]] = number
    chunks[: graph.inputs] = 0
    known = np.flatnonzero(chunks < last)
    step = np.arange(graph.size)
    step[graph.parent] = graph.child
    step[known] = known
    return chunks[follow(step)]


def _are_frontiers(graph: TapeGraph, fronts: Sequence[IntArray], numbers: IntArray) -> bool:
    """Tell whether the vertices up to each chunk number are a lower set with the separator as its frontier.

    A vertex is on the frontiers from its own number on, as long as a child has a larger one.
    """
    last_read = np.zeros(graph.size, dtype=np.int64)
    np.maximum.at(last_read, graph.parent, numbers[graph.child])
    last_read[graph.output] = len(fronts)
    members, at = np.concatenate(fronts), np.repeat(np.arange(len(fronts)), [*map(len, fronts)])
    are_lower = (numbers[graph.parent] <= numbers[graph.child]).all()
    on_them = (numbers[members] <= at) & (at < last_read[members])
    return bool(are_lower and on_them.all() and at.size == np.maximum(last_read - numbers, 0).sum())


def _computed_between(graph: TapeGraph, fronts: Sequence[IntArray]) -> list[IntArray]:
    """Walk back from each of some separators to the one before it."""
    child, parent = graph.child[::-1], graph.parent[::-1]
    found = []
    for sources, targets in pairwise(fronts):
        is_source, is_target = np.zeros((2, graph.size), dtype=np.bool_)
        is_source[sources] = is_target[targets] = True
        inner = ~is_source[parent]
        found.append(np.flatnonzero(reached(is_target & ~is_source, child[inner], parent[inner])))
    return found
