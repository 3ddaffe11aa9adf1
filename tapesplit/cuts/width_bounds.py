"""A lower bound of widths: proof that no cut of a tape is narrower than asked for, cheaper than a flow."""

import numpy as np

from tapesplit.arrays import IntArray, reached
from tapesplit.cuts.graph import TapeGraph

__all__ = ["has_wide_paths"]


def has_wide_paths(graph: TapeGraph, width: float) -> bool:
    """Return whether disjoint paths that are found without a search carry this width together.

    True proves that no frontier is narrower than `width` elements; False proves nothing.

    Notes
    -----
    Values of at least this width carry all. Any others carry as many elements as the narrowest value of a
    path that goes back from operation to first operand: the states of a loop, updated from themselves, have
    such paths apart. Takes O(n log n + e) vectorised steps, and a Python step for each edge between wide
    values.

    Examples
    --------
    >>> states = TapeGraph(
    ...     entries=np.arange(6), widths=np.array([2, 1, 1, 1, 1, 2]), edges=np.array([0, 0, 0, 2, 2, 0]),
    ...     child=np.array([1, 2, 3, 3, 4, 4, 5, 5]), parent=np.array([0, 0, 1, 2, 2, 1, 3, 4]),
    ...     inputs=1, output=5)
    >>> has_wide_paths(states, 2), has_wide_paths(states, 3)
    (True, False)
    """
    capacities = np.minimum(graph.capacities, int(np.ceil(width)))
    wide = capacities >= width
    if wide.all():
        return True
    arcs = wide[graph.parent] & wide[graph.child]  # in the order of their ends
    child, parent = graph.child[arcs], graph.parent[arcs]
    vertices = np.arange(graph.size)
    begins = reached((vertices < graph.inputs) & wide, parent, child)
    if begins[graph.output]:
        return True
    ends = reached((vertices == graph.output) & wide, child[::-1], parent[::-1])
    first_operand = vertices.copy()
    first_operand[graph.child[::-1]] = graph.parent[::-1]
    stops = begins[first_operand] | (first_operand == vertices)
    starts = graph.parent[ends[graph.child] & ~ends[graph.parent]]
    path, carried = _narrowest_behind(np.where(stops, vertices, first_operand), capacities)
    most = np.zeros(graph.size, dtype=np.int64)
    np.maximum.at(most, path[starts], carried[starts])
    return bool(most.sum() >= width)


def _narrowest_behind(step: IntArray, widths: IntArray) -> tuple[IntArray, IntArray]:
    """Return where repeated steps from each vertex end, and the least width on the way.

    Both ends count. Every round doubles what a step covers, as in `follow`.
    """
    least = np.minimum(widths, widths[step])
    while True:
        behind = step[step]
        if np.array_equal(behind, step):
            return step, least
        least = np.minimum(least, least[step])
        step = behind
