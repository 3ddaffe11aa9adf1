"""The tape graph folded until a picture of it is easy to read: vertices in groups, arcs in bundles."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from tapesplit.cuts.graph import TapeGraph
from tapesplit.draw.numbers import count, shape_text, shorten
from tapesplit.draw.rows import operation_counts, operation_name
from tapesplit.planning.plan import JacobianPlan
from tapesplit.structures.forms import is_shape

__all__ = ["Folded", "Group", "fold", "output_text"]

_MOST_GROUPS: Final = 60
_MOST_COLUMNS: Final = 24
_MOST_IN_COLUMN: Final = 10
_BANDS: Final = 4
"""Each chunk of a large tape is drawn as at most so many groups."""


_Place: TypeAlias = tuple[int, int, Hashable]
"""Chunk, depth, and a key that distinguishes groups of the same depth."""


@dataclass(frozen=True, slots=True)
class Group:
    """Values of a tape that are drawn as one.

    Parameters
    ----------
    entries
        Tape entries, increasing.
    chunk
        0-based; -1 for an input.
    depth
        Place within the chunk; arcs lead from smaller to larger ones, or to later chunks.
    lines
        What stands in its box.
    tip
        What it is, in full.
    """

    entries: tuple[int, ...]
    chunk: int
    depth: int
    lines: tuple[str, ...]
    tip: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """All arcs from one group to another.

    Parameters
    ----------
    tail, head
        Numbers of the groups.
    elements
        Elements of the values that the head takes from the tail.
    """

    tail: int
    head: int
    elements: int


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph of groups.

    Parameters
    ----------
    groups
        By chunk, then by depth.
    bundles
        Arcs between them.
    spans
        Triples: a group, the last group that reads some of its values, and the elements of these values.
    output
        Number of the group with the function's value.
    complete
        Whether each group is one entry.
    """

    groups: tuple[Group, ...]
    bundles: tuple[Bundle, ...]
    spans: tuple[tuple[int, int, int], ...]
    output: int
    complete: bool


def fold(plan: JacobianPlan) -> Folded:
    """Fold the tape graph of a plan.

    Small tapes stay as they are. In larger ones, operations of the same kind at the same depth of a chunk
    become one group; in large ones, a chunk becomes a few groups of consecutive depths.

    There are at most 60 groups, or 40 chunks with one group each.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> plan = parallel_jacobian(lambda x: np.sin(x) * x, machines=1).plan(np.ones(3))
    >>> [group.lines for group in fold(plan).groups]
    [('input', '(3,)'), ('sin', '(3,)'), ('multiply', '(3,)')]
    """
    graph, chunks = _as_computed(plan)
    depths = _depths(graph, chunks)
    primitives = map(plan.structure.primitives.__getitem__, graph.entries.tolist())
    places: list[_Place] = list(zip(chunks, depths, range(graph.size), strict=True))
    if not _fits(places):
        places = list(zip(chunks, depths, primitives, strict=True))
    if not _fits(places):
        bands = max(1, min(_BANDS, _MOST_COLUMNS // len(plan.chunks)))
        deepest = {chunk: depth for depth, chunk in sorted(zip(depths, chunks, strict=True))}
        places = [
            (chunk, depth * bands // (deepest[chunk] + 1), 0)
            for chunk, depth in zip(chunks, depths, strict=True)
        ]
    return _grouped(plan, graph, places)


def _as_computed(plan: JacobianPlan) -> tuple[TapeGraph, list[int]]:
    """Return the graph with a copy of each vertex per chunk that computes it, and the chunks (inputs: -1)."""
    graph, inputs = plan.graph, plan.graph.inputs
    place = np.full(graph.size, -1)
    place[:inputs] = np.arange(inputs)
    vertices, numbers, child, parent = [np.arange(inputs)], [-1] * inputs, [], []
    for number, chunk in enumerate(plan.chunks):
        computed = np.searchsorted(graph.entries, chunk.entries)
        place[computed] = len(numbers) + np.arange(computed.size)
        inner = np.isin(graph.child, computed)
        vertices.append(computed)
        numbers += [number] * computed.size
        child.append(place[graph.child[inner]])
        parent.append(place[graph.parent[inner]])
    drawn = np.concatenate(vertices)
    arcs = np.concatenate(child), np.concatenate(parent)
    columns = graph.entries[drawn], graph.widths[drawn], graph.edges[drawn]
    return TapeGraph(*columns, *arcs, inputs, int(place[graph.output])), numbers


def _depths(graph: TapeGraph, chunks: Sequence[int]) -> list[int]:
    """Return each vertex's depth, the longest path to it, within its chunk."""
    depths = [0] * graph.size
    for child, parent in zip(graph.child.tolist(), graph.parent.tolist(), strict=True):
        if chunks[child] == chunks[parent] and depths[child] <= depths[parent]:
            depths[child] = depths[parent] + 1
    return depths


def _fits(places: Sequence[_Place]) -> bool:
    """Whether a picture with groups at these places is easy to read."""
    columns = Counter(place[:2] for place in set(places))
    is_small = columns.total() <= _MOST_GROUPS and len(columns) <= _MOST_COLUMNS
    return is_small and max(columns.values()) <= _MOST_IN_COLUMN


def _grouped(plan: JacobianPlan, graph: TapeGraph, places: Sequence[_Place]) -> Folded:
    """Merge the vertices that have the same place."""
    members: dict[_Place, list[int]] = {}
    for vertex, place in enumerate(places):
        members.setdefault(place, []).append(vertex)
    order = sorted(members, key=lambda place: (*place[:2], members[place][0]))
    number = np.zeros(graph.size, dtype=np.int64)
    groups = []
    for index, place in enumerate(order):
        number[members[place]] = index
        groups.append(_group(plan, graph, members[place], *place[:2]))
    return Folded(
        tuple(groups),
        _bundles(graph, number),
        _spans(graph, number),
        int(number[graph.output]),
        len(groups) == graph.size,
    )


def _group(plan: JacobianPlan, graph: TapeGraph, vertices: list[int], chunk: int, depth: int) -> Group:
    """Describe one group."""
    entries = tuple(graph.entries[vertices].tolist())
    edges, width = int(graph.edges[vertices].sum()), int(np.maximum(graph.widths[vertices], 0).sum())
    where = "" if chunk < 0 else f"|E| {count(edges)}\nlink {chunk + 1}{_source(plan, entries)}"
    if len(entries) == 1:
        name, shape = operation_name(plan, entries[0]), _form_text(plan.structure.forms[entries[0]])
        tip = f"entry {entries[0]}: {name}\nvalue {shape}\n{where}".rstrip()
        return Group(entries, chunk, depth, (shorten(name, 15), shorten(shape, 15)), tip)
    names = operation_counts(plan, entries)
    tip = f"entries {entries[0]} to {entries[-1]}: {shorten(names, 300)}\n{count(width)} elements\n{where}"
    first, *others = names.split(", ")
    lines = (first, f"{count(width)} elements")
    if others:
        lines = (f"{count(len(entries))} operations", f"{first}, …")
    return Group(entries, chunk, depth, (shorten(lines[0], 15), shorten(lines[1], 15)), tip)


def _source(plan: JacobianPlan, entries: Sequence[int]) -> str:
    """Name the user's lines of code, if the plan has them."""
    lines = list(dict.fromkeys(filter(None, (plan.lines[entry] for entry in entries)))) if plan.lines else []
    shown = ", ".join(lines[:3]) + (", …" if len(lines) > 3 else "")
    return f"\n{shown}" if shown else ""


def output_text(plan: JacobianPlan) -> str:
    """Write the shape of the output, as boxes of other values have theirs."""
    output: int = plan.structure.output  # type: ignore[assignment] # nothing is planned without one
    return _form_text(plan.structure.forms[output])


def _form_text(form: Any) -> str:
    """Write a value's shape, after its type if that is not float64; of containers just the type."""
    if is_shape(form):
        return shape_text(form) if form else "a number"
    kind, parts = form
    name = getattr(kind, "__name__", str(kind))
    is_array = all(type(n) is int for n in parts)
    return f"{name} {shape_text(parts)}" if parts and is_array else name


def _bundles(graph: TapeGraph, number: np.ndarray) -> tuple[Bundle, ...]:
    """Join the arcs between groups; a value that a group takes twice counts once."""
    crossing = number[graph.parent] != number[graph.child]
    taken = np.unique(np.stack([graph.parent[crossing], number[graph.child[crossing]]], axis=1), axis=0)
    elements: dict[tuple[int, int], int] = {}
    for parent, head in taken.tolist():
        pair = int(number[parent]), head
        elements[pair] = elements.get(pair, 0) + max(int(graph.widths[parent]), 0)
    return tuple(Bundle(tail, head, width) for (tail, head), width in sorted(elements.items()))


def _spans(graph: TapeGraph, number: np.ndarray) -> tuple[tuple[int, int, int], ...]:
    """Add up the values of each group by the last group that reads them; groups count from left to right."""
    last = number.copy()
    np.maximum.at(last, graph.parent, number[graph.child])
    elements: Counter[tuple[int, int]] = Counter()
    for first, end, width in zip(number.tolist(), last.tolist(), graph.widths.tolist(), strict=True):
        if first < end:
            elements[first, end] += max(width, 0)
    return tuple((first, end, width) for (first, end), width in elements.items())
