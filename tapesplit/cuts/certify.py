"""Certificates for separators: checked from their definition, independently of whoever found them."""

from collections.abc import Sequence

from tapesplit.cuts.graph import TapeGraph
from tapesplit.cuts.separators import Separator
from tapesplit.errors import SeparatorError

__all__ = ["certify_cuts"]


def certify_cuts(graph: TapeGraph, separators: Sequence[Separator]) -> None:
    """Check that separators, from input to output, cut a tape into a Jacobian chain.

    Raises
    ------
    SeparatorError
        If a separator names values that are not on the tape or may not be in a separator, if its width is
        wrong, if it is not computed from the separator before it alone, or the output not from the last one,
        if it holds a value that the next one is computed without, or if it repeats that before it, the inputs
        or the outputs: a link would compute nothing.

    Notes
    -----
    Where each is computed from the one before alone, no path from input to output bypasses any. Takes
    O(q (n + e)) Python steps for q separators. Minimal width is not part of the certificate: the value of a
    flow proves that, see `minimum_cut` and `narrowest_cuts`.

    Examples
    --------
    >>> import numpy as np
    >>> chain = TapeGraph(
    ...     entries=np.arange(3), widths=np.array([9, 2, 9]), edges=np.array([0, 18, 18]),
    ...     child=np.array([1, 2]), parent=np.array([0, 1]), inputs=1, output=2)
    >>> certify_cuts(chain, [Separator((1,), 2, "minimal")])
    >>> certify_cuts(chain, [Separator((1,), 3, "minimal")])
    Traceback (most recent call last):
    tapesplit.errors.SeparatorError: separator 1 of 1 claims a width of 3 elements, but its values have 2;
    recompute it from the tape that it is used with
    """
    parents: list[list[int]] = [[] for _ in range(graph.size)]
    for parent, child in zip(graph.parent.tolist(), graph.child.tolist(), strict=True):
        parents[child].append(parent)
    inputs, outputs = set(range(graph.inputs)), {graph.output}
    previous, before = inputs, "the inputs"
    vertices = {entry: vertex for vertex, entry in enumerate(graph.entries.tolist())}
    for number, separator in enumerate(separators, 1):
        label = f"separator {number} of {len(separators)}"
        members = _members(graph, vertices, separator, label)
        if members == outputs:
            raise SeparatorError(f"{label} repeats the outputs; drop it")
        _check_link(graph, parents, previous, before, members, label)
        previous, before = members, label
    if separators:
        _check_link(graph, parents, previous, before, outputs, "the output")


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


def _check_link(
    graph: TapeGraph,
    parents: list[list[int]],
    sources: set[int],
    before: str,
    targets: set[int],
    label: str,
) -> None:
    """Check that targets are computed from all sources, and from nothing else; walk back from them."""
    read = sources & targets
    computed = targets - sources
    if not computed:
        raise SeparatorError(f"{label} repeats the one before it, or the inputs; drop it")
    stack = list(computed)
    while stack:
        vertex = stack.pop()
        if vertex < graph.inputs:
            raise SeparatorError(
                f"{before} does not separate: a path from the input reaches {label} past it; a value that is "
                "read on both sides must be a member, and separators must stand in order from input to output"
            )
        for parent in parents[vertex]:
            if parent in sources:
                read.add(parent)
            elif parent not in computed:
                computed.add(parent)
                stack.append(parent)
    unread = sources - read
    if unread and sources != set(range(graph.inputs)):
        raise SeparatorError(
            f"{before} contains tape entry {graph.entries[min(unread)]}, which {label} does not depend on; "
            "leave that entry out"
        )
