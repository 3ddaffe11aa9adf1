"""The graph of a tape: the values on input-output paths, as arrays, and the widths of its frontiers.

A *lower set* is a set of vertices that contains the inputs and the parents of each of its members. Its
*frontier* are the members that something outside the set, or the caller, still reads. The frontier is the
separator of the two sides, and nested lower sets have nested separators.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tapesplit.arrays import BoolArray, IntArray, reached
from tapesplit.recording.tape import Tape
from tapesplit.recording.values import element_count
from tapesplit.structures.facts import TapeFacts

__all__ = [
    "UNBOUNDED",
    "TapeGraph",
    "edges_below",
    "frontier_widths",
    "graph_of",
    "on_frontiers",
    "tape_ranks",
]

UNBOUNDED: Final = 1 << 40
"""Capacity of a value that must not be in a separator: more than any array has elements, and a million of
them still add up within 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class TapeGraph:
    """Values of a tape that lie on a path from input to output.

    Parameters
    ----------
    entries : (n,) array of int
        Index of each vertex in the tape, increasing; parents stand before their children.
    widths : (n,) array of int
        Elements of each value; -1 for a value that cannot be in a separator (container, integer).
    edges : (n,) array of int
        Scalar edges that compute the vertex from its parents: fma per direction; 0 for inputs and for
        operations that only move data.
    child, parent : (e,) array of int
        Graph edges as vertex numbers, ``parent < child``, by ascending child; repeated edges are allowed.
    inputs, output : int
        Number of inputs, which are the first vertices, and the vertex that is the output; it may be an input.

    Examples
    --------
    >>> import numpy as np
    >>> graph = TapeGraph(
    ...     entries=np.arange(3), widths=np.array([9, 2, 9]), edges=np.array([0, 18, 18]),
    ...     child=np.array([1, 2]), parent=np.array([0, 1]), inputs=1, output=2)
    >>> graph.size, graph.input_width, graph.output_width, graph.total_edges
    (3, 9, 9, 36)
    """

    entries: IntArray
    widths: IntArray
    edges: IntArray
    child: IntArray
    parent: IntArray
    inputs: int
    output: int

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.entries)

    @property
    def capacities(self) -> IntArray:
        """Widths in elements, with `UNBOUNDED` for values that cannot be in a separator."""
        return np.where(self.widths < 0, UNBOUNDED, self.widths)

    @property
    def input_width(self) -> int:
        """Elements of the inputs: columns of the Jacobian."""
        return int(self.widths[: self.inputs].sum())

    @property
    def output_width(self) -> int:
        """Elements of the output: rows of the Jacobian."""
        return int(self.widths[self.output])

    @property
    def total_edges(self) -> int:
        """Scalar edges of the whole tape: fma of one direction."""
        return int(self.edges.sum())


def tape_ranks(graph: TapeGraph) -> IntArray:
    """Return the rank of each vertex in tape order, after the inputs, which all have rank 0."""
    return np.maximum(np.arange(1, graph.size + 1) - graph.inputs, 0)


def edges_below(graph: TapeGraph, ranks: IntArray) -> IntArray:
    """Count the scalar edges into vertices of rank t or less, for each rank t."""
    return np.cumsum(np.bincount(ranks, weights=graph.edges))


def frontier_widths(graph: TapeGraph, ranks: IntArray) -> IntArray:
    """Return the frontier width of every lower set that an order of the vertices passes through.

    Parameters
    ----------
    ranks : (n,) array of int
        A rank for each vertex, 0 for the inputs, larger or equal for children; equal ranks are computed
        together.

    Returns
    -------
    (r + 1,) array of int
        Elements of the frontier of ``{v : ranks[v] <= t}`` for t = 0..r, r = largest rank; `UNBOUNDED` or
        more if the frontier has a value that cannot be in a separator. All inputs count at t = 0.

    Notes
    -----
    Takes O(n + e) in vectorised steps. In tape order these are the live widths of the tape.

    Examples
    --------
    >>> import numpy as np
    >>> skip = TapeGraph(
    ...     entries=np.arange(4), widths=np.array([3, 5, 2, 1]), edges=np.array([0, 15, 10, 5]),
    ...     child=np.array([1, 2, 3, 3]), parent=np.array([0, 1, 2, 0]), inputs=1, output=3)
    >>> frontier_widths(skip, tape_ranks(skip))
    array([3, 8, 5, 1])
    """
    last_rank = int(ranks.max(initial=0))
    death = np.zeros(graph.size, dtype=np.int64)
    np.maximum.at(death, graph.parent, ranks[graph.child])
    death[: graph.inputs] = np.maximum(death[: graph.inputs], 1)
    death[graph.output] = last_rank + 1
    births = np.zeros(last_rank + 2, dtype=np.int64)
    capacities = graph.capacities
    np.add.at(births, ranks, capacities)
    np.subtract.at(births, np.maximum(death, ranks), capacities)
    return np.cumsum(births)[: last_rank + 1]


_AT_ONCE: Final = 2**20
"""Arcs times lower sets that are looked at together."""


def on_frontiers(graph: TapeGraph, lowers: BoolArray) -> BoolArray:
    """Return which vertices are on the frontiers of several lower sets.

    Both arrays have shape ``(N, n)``, a row for each lower set. On its frontier are its members with a child
    outside the set, and the output if it is a member.

    Notes
    -----
    Takes O(N (n + e)) in vectorised steps, and O(N n + e) bytes.
    """
    fronts = np.zeros(lowers.shape, dtype=np.bool_)
    fronts[:, graph.output] = lowers[:, graph.output]
    at_once = max(1, _AT_ONCE // max(graph.child.size, 1))
    for start in range(0, len(lowers), at_once):
        block = lowers[start : start + at_once]
        leaving = block.take(graph.parent, axis=1) & ~block.take(graph.child, axis=1)
        number, arc = leaving.nonzero()
        fronts[start + number, graph.parent[arc]] = True
    return fronts


def graph_of(tape: Tape, facts: TapeFacts) -> TapeGraph:
    """Build the graph of the values on paths from the inputs to the output, of a tape that has one."""
    needed = _ancestors(tape, facts)
    entries = np.flatnonzero(needed)
    number = np.cumsum(needed) - 1
    kept = needed[facts.children]
    output = int(number[tape.output])
    widths = facts.sizes[entries]
    for vertex in (*range(tape.inputs), output):  # the ends of the chain, whatever their type
        widths[vertex] = element_count(tape.values[int(entries[vertex])])
    return TapeGraph(
        entries=entries,
        widths=widths,
        edges=facts.edges[entries],
        child=number[facts.children[kept]],
        parent=number[facts.parents[kept]],
        inputs=tape.inputs,
        output=output,
    )


def _ancestors(tape: Tape, facts: TapeFacts) -> BoolArray:
    """Mark the inputs and all entries that the output depends on."""
    needed = np.zeros(len(tape), dtype=np.bool_)
    needed[: tape.inputs] = True
    needed[tape.output] = True
    read = needed.copy()
    read[facts.parents] = True
    # If all are read, every value reaches the only one that no later one reads.
    return read if read.all() else reached(needed, facts.children[::-1], facts.parents[::-1])
