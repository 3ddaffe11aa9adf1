"""Graphs of tapes for the tests: builders, random ones, and brute force over lower sets and separators."""

from graphlib import TopologicalSorter
from itertools import combinations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from jcdp_core import JacobianChain, solve
from tapesplit.cuts.chunks import cut_into_chunks
from tapesplit.cuts.graph import TapeGraph, on_frontiers

deterministic = settings(
    derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)


def tape_graph(widths, parents, edges=None, *, inputs=1):
    """Build a graph from the parents of each vertex; vertices that lead nowhere are dropped."""
    useful = _on_paths(parents, inputs)
    number = {v: i for i, v in enumerate(useful)}
    arcs = [(number[c], number[p]) for c in useful for p in parents[c] if p in number]
    edges = (
        [sum(widths[p] for p in parents[v]) * widths[v] for v in range(len(widths))]
        if edges is None
        else edges
    )
    edges = [0 if v < inputs else edges[v] for v in useful]
    child, parent = np.array(arcs, dtype=np.int64).reshape(-1, 2).T
    return TapeGraph(
        entries=np.array(useful, dtype=np.int64),
        widths=np.array([widths[v] for v in useful], dtype=np.int64),
        edges=np.array(edges, dtype=np.int64),
        child=child,
        parent=parent,
        inputs=inputs,
        output=len(useful) - 1,
    )


def _on_paths(parents, inputs):
    """Return the vertices on paths from inputs to the output, the last one."""
    behind = set(range(inputs))
    for v, p in enumerate(parents):
        if behind.intersection(p):
            behind.add(v)
    before = {len(parents) - 1}
    for v in range(len(parents) - 1, -1, -1):
        if v in before:
            before.update(parents[v])
    return sorted(behind & before | {*range(inputs), len(parents) - 1})


def path(widths, edges=None):
    """Build a graph without branches."""
    return tape_graph(widths, [[], *([v] for v in range(len(widths) - 1))], edges)


def random_graph(rng, size, span, density, kind=0):
    """Build a random graph with wide ends; `kind` chooses how widths and edges are drawn."""
    parents = [[]]
    for v in range(1, size):
        near = np.arange(max(0, v - span), v)
        chosen = near[rng.random(len(near)) < density]
        parents.append(chosen.tolist() or [int(rng.choice(near))])
    read = {p for group in parents for p in group}
    parents[-1] = sorted({*parents[-1], *(v for v in range(size - 1) if v not in read)})
    widths = [
        lambda: np.rint(np.exp(rng.uniform(0, 4, size))),
        lambda: rng.integers(1, 30, size),
        lambda: rng.choice([2, 5, 80, 150], size),
    ][kind % 3]().astype(int)
    widths[0], widths[-1] = rng.integers(60, 200, 2)
    scale = (1, 4, 30)[kind // 3 % 3]
    dense = [scale * int(widths[v] * sum(widths[p] for p in parents[v])) for v in range(size)]
    edges = dense if kind % 2 else (scale * rng.integers(0, 6000, size)).tolist()
    return tape_graph(widths.tolist(), parents, edges)


def with_unread_input(graph, width=3):
    """Add an input that nothing reads."""
    at = graph.inputs
    moved = np.where(np.arange(graph.size) < at, 0, 1) + np.arange(graph.size)
    return TapeGraph(
        entries=np.insert(graph.entries + (moved - np.arange(graph.size)), at, at),
        widths=np.insert(graph.widths, at, width),
        edges=np.insert(graph.edges, at, 0),
        child=moved[graph.child],
        parent=moved[graph.parent],
        inputs=at + 1,
        output=int(moved[graph.output]),
    )


@st.composite
def tape_graphs(draw, max_size=9):
    """Draw a graph with some inputs, ties, zero widths and values that cannot be cut at."""
    size = draw(st.integers(3, max_size))
    inputs = draw(st.sampled_from([1, 2]))
    parents = [
        [] if v < inputs else draw(st.lists(st.integers(0, v - 1), min_size=1, max_size=3))
        for v in range(size)
    ]
    parents[-1] = sorted({*parents[-1], *range(inputs)})
    ends = st.integers(1, 12)
    inner = st.one_of(st.integers(0, 9), st.just(-1))
    widths = [draw(ends if v < inputs or v == size - 1 else inner) for v in range(size)]
    edges = draw(st.lists(st.integers(0, 60), min_size=size, max_size=size))
    return tape_graph(widths, parents, edges, inputs=inputs)


def lower_sets(graph, limit=10**6):
    """List all lower sets of a small graph; None if there are more than `limit`."""
    parents = [set(graph.parent[graph.child == v].tolist()) for v in range(graph.size)]
    start = frozenset(range(graph.inputs))
    found, stack = {start}, [start]
    while stack:
        lower = stack.pop()
        larger = {lower | {v} for v in range(graph.size) if v not in lower and parents[v] <= lower} - found
        if len(found) + len(larger) > limit:
            return None
        found |= larger
        stack.extend(larger)
    return [np.isin(np.arange(graph.size), list(lower)) for lower in found]


def frontier(graph, lower):
    """Return the vertices on the frontier of one lower set."""
    return np.flatnonzero(on_frontiers(graph, lower[None])[0])


def width_of(graph, lower):
    """Return the frontier width of a lower set, infinite if it cannot be a separator."""
    widths = graph.widths[frontier(graph, lower)]
    return np.inf if (widths < 0).any() else int(widths.sum())


def least_width(graph):
    """Return the least frontier width by brute force."""
    return min(width_of(graph, lower) for lower in lower_sets(graph))


def chain_of(graph, separators):
    """Return the sizes and edges of the chain between separators."""
    sizes = [graph.input_width, *(s.width for s in separators), graph.output_width]
    return sizes, [chunk.edges for chunk in cut_into_chunks(graph, separators)]


def planned_fma(graph, separators):
    """Return what the planner makes of separators: fma on one machine."""
    sizes, edges = chain_of(graph, separators)
    positive = [max(count, 1) for count in edges]  # as chains demand
    return solve(JacobianChain.from_sizes(sizes=sizes, edges=positive)).makespan


def link_between(parents, inputs, sources, targets):
    """Walk back from one set of vertices to another; return what is computed and what is read.

    None if that takes an input, too.
    """
    computed, read, stack = targets - sources, targets & sources, list(targets - sources)
    while stack:
        vertex = stack.pop()
        if vertex in inputs:
            return None
        for parent in parents[vertex]:
            if parent in sources:
                read.add(parent)
            elif parent not in computed:
                computed.add(parent)
                stack.append(parent)
    return computed, read


def best_chain_fma(graph, limit):
    """Return the least fma of any chain, by brute force over all separators; None if these are too many.

    A member that the output is computed without may still be read by a separator in between.
    """
    parents = [graph.parent[graph.child == v].tolist() for v in range(graph.size)]
    inputs, outputs = {*range(graph.inputs)}, {graph.output}
    fit = [v for v in range(graph.size) if graph.widths[v] > 0]
    cuts = [{*cut} for size in range(1, graph.size) for cut in combinations(fit, size)]
    cuts = [cut for cut in cuts if cut not in (inputs, outputs)]
    cuts = [inputs, *(cut for cut in cuts if link_between(parents, inputs, cut, outputs)), outputs]
    if len(cuts) > limit:
        return None
    spent = np.full((len(cuts), len(cuts)), np.inf)
    for i, sources in enumerate(cuts):
        for j, targets in enumerate(cuts):
            link = link_between(parents, inputs, sources, targets)
            if link and link[0] and (link[1] == sources or i == 0):
                spent[i, j] = graph.edges[list(link[0])].sum()
    before = {j: np.flatnonzero(np.isfinite(spent[:, j])).tolist() for j in range(len(cuts))}
    order = list(TopologicalSorter(before).static_order())
    first, last = order.index(0), order.index(len(cuts) - 1)
    width = np.array([graph.widths[list(cut)].sum() for cut in cuts], float)[order]
    spent = spent[order][:, order]
    cost = spent * np.minimum.outer(width, width)
    for step in range(2, len(cuts)):
        for i in range(len(cuts) - step):
            j, k = i + step, slice(i + 1, i + step)
            left, right = cost[i, k], cost[k, j]
            ways = [left + width[i] * spent[k, j], right + width[j] * spent[i, k]]
            ways.append(left + right + width[i] * width[j] * width[k])
            cost[i, j] = min(cost[i, j], np.min(ways))
    return cost[first, last]
