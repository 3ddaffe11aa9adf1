"""Certificates for separators: checked from their definition, independently of whoever found them."""

from collections.abc import Sequence

import numpy as np

from tapesplit.arrays import BoolArray
from tapesplit.cuts.graph import TapeGraph
from tapesplit.cuts.separators import Separator
from tapesplit.errors import SeparatorError

__all__ = ["certify_cuts"]


def certify_cuts(graph: TapeGraph, separators: Sequence[Separator]) -> None:
    """Check that separators cut a tape into a Jacobian chain.

    Parameters
    ----------
    graph : TapeGraph
        The graph of the tape, n vertices and e edges.
    separators : sequence of Separator
        From input to output.

    Raises
    ------
    SeparatorError
        If a separator names values that are not on the tape or may not be in a separator, if its width is
        wrong, if a path from input to output bypasses it, if it holds a value that nothing behind it reads,
        if it is not computed from the separator before it alone, or if it repeats that one, the inputs or the
        outputs: a link would compute nothing.

    Notes
    -----
    Takes O(q (n + e)) Python steps for q separators. Minimal width is not part of the certificate: the value
    of a flow proves that, see `minimum_cut`.

    Examples
    --------
    >>> import numpy as np
    >>> chain = TapeGraph(
    ...     entries=np.arange(3), widths=np.array([9, 2, 9]), edges=np.array([0, 18, 18]),
    ...     child=np.array([1, 2]), parent=np.array([0, 1]), inputs=(0,), outputs=(2,))
    >>> certify_cuts(chain, [Separator((1,), 2, "minimal")])
    >>> certify_cuts(chain, [Separator((1,), 3, "minimal")])
    Traceback (most recent call last):
    tapesplit.errors.SeparatorError: separator 1 of 1 claims a width of 3 elements, but its values have 2;
    recompute it from the tape that it is used with
    """
    parents: list[list[int]] = [[] for _ in range(graph.size)]
    children: list[list[int]] = [[] for _ in range(graph.size)]
    for parent, child in zip(graph.parent.tolist(), graph.child.tolist(), strict=True):
        parents[child].append(parent)
        children[parent].append(child)
    computed = np.zeros(graph.size, dtype=np.bool_)
    previous = set(graph.inputs)
    vertices = {entry: vertex for vertex, entry in enumerate(graph.entries.tolist())}
    for number, separator in enumerate(separators, 1):
        label = f"separator {number} of {len(separators)}"
        members = _members(graph, vertices, separator, label)
        _check_separates(graph, children, members, label)
        side = _with_ancestors(graph, parents, members)
        if members == previous:
            raise SeparatorError(f"{label} repeats the one before it, or the inputs; drop it")
        if members == set(graph.outputs):
            raise SeparatorError(f"{label} repeats the outputs; drop it")
        _check_order(graph, computed, side, label)
        _check_needed(graph, children, side, members, label)
        computed, previous = side, members


def _members(graph: TapeGraph, vertices: dict[int, int], separator: Separator, label: str) -> set[int]:
    """Return the vertex numbers of a separator after a check of its data."""
    strangers = [entry for entry in separator.vertices if entry not in vertices]
    if strangers:
        raise SeparatorError(
            f"{label} names tape entry {strangers[0]}, which is on no path from input to output; "
            "separators belong to the tape that they were found on"
        )
    if list(separator.vertices) != sorted(set(separator.vertices)):
        raise SeparatorError(f"{label} names {separator.vertices}; its tape entries must increase")
    members = [vertices[entry] for entry in separator.vertices]
    unfit = [v for v in members if graph.widths[v] < 0]
    if unfit:
        raise SeparatorError(
            f"{label} contains tape entry {graph.entries[unfit[0]]}, a value without real elements (a "
            "tuple, list or dict); cut before or behind it"
        )
    width = sum(graph.widths[members].tolist())
    if width != separator.width:
        raise SeparatorError(
            f"{label} claims a width of {separator.width} elements, but its values have {width}; "
            "recompute it from the tape that it is used with"
        )
    return set(members)


def _check_separates(graph: TapeGraph, children: list[list[int]], members: set[int], label: str) -> None:
    """Check that the outputs cannot be reached without the members."""
    reached = {v for v in graph.inputs if v not in members}
    stack = list(reached)
    while stack:
        fresh = [c for c in children[stack.pop()] if c not in members and c not in reached]
        reached.update(fresh)
        stack.extend(fresh)
    leaks = [v for v in graph.outputs if v in reached]
    if leaks:
        raise SeparatorError(
            f"{label} does not separate: a path from the input reaches output entry "
            f"{graph.entries[leaks[0]]} past it; a value that is read on both sides must be a member"
        )


def _with_ancestors(graph: TapeGraph, parents: list[list[int]], members: set[int]) -> BoolArray:
    """Return the members and everything that they are computed from: all inputs, if they separate."""
    side = np.zeros(graph.size, dtype=np.bool_)
    stack = list(members)
    while stack:
        vertex = stack.pop()
        side[vertex] = True
        stack.extend(p for p in set(parents[vertex]) if not side[p])
    return side


def _check_order(graph: TapeGraph, before: BoolArray, side: BoolArray, label: str) -> None:
    """Check that the separator lies behind the one in front of it."""
    behind = np.flatnonzero(before & ~side)
    if behind.size:
        raise SeparatorError(
            f"{label} is not nested: tape entry {graph.entries[behind[0]]} is computed before the separator "
            "in front of it, but not before this one; order separators from input to output"
        )


def _check_needed(
    graph: TapeGraph,
    children: list[list[int]],
    side: BoolArray,
    members: set[int],
    label: str,
) -> None:
    """Check that the members are just the values of the input side that something behind it reads."""
    outputs = set(graph.outputs)
    read = {v for v in np.flatnonzero(side).tolist() if v in outputs or not all(side[c] for c in children[v])}
    wrong = members ^ read
    if not wrong:
        return
    vertex = min(wrong)
    fault = (
        "lacks tape entry {}, which is computed before it and read behind it; add that"
        if vertex in read
        else "contains tape entry {}, which nothing behind it reads; leave that out"
    )
    raise SeparatorError(f"{label} {fault.format(graph.entries[vertex])}")
