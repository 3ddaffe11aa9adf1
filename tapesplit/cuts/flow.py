"""Minimum cuts: the narrowest frontier between two nested lower sets, found and proved by a maximum flow.

Every vertex v becomes two nodes. *Computed* v lies on the source side if v is in the lower set, *released*
v if nothing outside the set reads it. Arcs of the network and what cutting them would mean:

- computed v -> released v, capacity = width of v: v is on the frontier;
- released p -> computed c, unbounded: a parent is released only if its children are in the set;
- computed c -> computed p, unbounded: the parents of a member are members, so no path crosses twice.

The cuts of finite capacity are exactly the lower sets, and their capacity is the width of the frontier.
"""

from typing import Any, Final, Literal, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from tapesplit.arrays import BoolArray, IntArray, follow
from tapesplit.cuts.graph import TapeGraph

__all__ = ["FLOW_BUDGET", "MinimumCut", "carries_flow", "has_wide_paths", "minimum_cut"]

FLOW_BUDGET: Final = 2_000_000
"""Vertices times elements that one flow may take: up to 0.3 µs each."""
_SUPPLY: Final = 0
_SOURCE: Final = 1
_SINK: Final = 2
_FIRST: Final = 3
_NETWORKX_SIZE: Final = 8
"""Vertices up to which networkx cuts a network in less time than scipy takes to prepare."""
_LARGEST_BOUND: Final = (1 << 30) - 2
"""scipy computes with 32-bit capacities, and a residual capacity may be twice the capacity."""


class MinimumCut(NamedTuple):
    """The earliest and the latest lower set of least frontier width."""

    width: int
    earliest: BoolArray
    latest: BoolArray


class _Network(NamedTuple):
    """A flow network; region vertex number r has the nodes `_FIRST` + 2r (computed) and + 2r + 1 (released).

    The supply feeds the source through one arc, which stops flows that exceed the bound.
    """

    nodes: int
    tails: IntArray
    heads: IntArray
    capacities: IntArray


def has_wide_paths(graph: TapeGraph, width: float) -> bool:
    """Return whether paths that are seen without a search carry some width together.

    Parameters
    ----------
    graph : TapeGraph
        The graph, n vertices and e edges.
    width : float
        Elements asked for.

    Returns
    -------
    bool
        True proves that no frontier is narrower than `width`; False proves nothing.

    Notes
    -----
    Values of at least this width carry all. Any others carry one element each, along a path that goes back
    from operation to first operand: the states of a loop, updated from themselves, have such paths apart.
    Takes O(n log n + e) vectorised steps, and a Python step for each edge between wide values.

    Examples
    --------
    >>> states = TapeGraph(
    ...     entries=np.arange(6), widths=np.array([2, 1, 1, 1, 1, 2]), edges=np.array([0, 0, 0, 2, 2, 0]),
    ...     child=np.array([1, 2, 3, 3, 4, 4, 5, 5]), parent=np.array([0, 0, 1, 2, 2, 1, 3, 4]),
    ...     inputs=(0,), outputs=(5,))
    >>> has_wide_paths(states, 2), has_wide_paths(states, 3)
    (True, False)
    """
    capacities = graph.capacities
    wide = capacities >= width
    if wide.all():
        return True
    arcs = wide[graph.parent] & wide[graph.child]  # in the order of their ends
    child, parent = graph.child[arcs].tolist(), graph.parent[arcs].tolist()
    begin = _reached([v for v in graph.inputs if wide[v]], parent, child)
    if not begin.isdisjoint(v for v in graph.outputs if wide[v]):
        return True
    end = _reached([v for v in graph.outputs if wide[v]], child[::-1], parent[::-1])
    vertices, first_operand = np.arange(graph.size), np.arange(graph.size)
    first_operand[graph.child[::-1]] = graph.parent[::-1]
    begins, ends = np.isin(vertices, list(begin)), np.isin(vertices, list(end))
    stops = begins[first_operand] | (first_operand == vertices)
    starts = graph.parent[ends[graph.child] & ~ends[graph.parent]]
    paths = np.unique(follow(np.where(stops, vertices, first_operand))[starts])
    return paths.size >= width and bool(capacities.min() > 0)


def _reached(seeds: list[int], tails: list[int], heads: list[int]) -> set[int]:
    """Return what arcs lead to from some vertices; the arcs stand in an order in which they can be walked."""
    reached = set(seeds)
    for tail, head in zip(tails, heads, strict=True):
        if tail in reached:
            reached.add(head)
    return reached


def carries_flow(graph: TapeGraph, width: int) -> bool:
    """Return whether paths of some width each, in which no value is used beyond its own, add up to `width`.

    Parameters
    ----------
    graph : TapeGraph
        The graph, n vertices and e edges.
    width : int
        Flow asked for, in elements.

    Returns
    -------
    bool
        True proves that no frontier is narrower than `width`. False proves nothing: frontiers may be wider
        than the flow, and a flow that would take long is not looked for.

    Notes
    -----
    The flow runs from the outputs to the inputs, through both ends of every vertex: the search turns back
    less often where values are read once than where they are computed from several.

    Examples
    --------
    >>> strands = TapeGraph(
    ...     entries=np.arange(6), widths=np.array([8, 2, 6, 6, 2, 8]), edges=np.array([0, 9, 9, 9, 9, 9]),
    ...     child=np.array([1, 2, 3, 4, 5, 5]), parent=np.array([0, 0, 1, 2, 3, 4]),
    ...     inputs=(0,), outputs=(5,))
    >>> carries_flow(strands, 4), carries_flow(strands, 5)
    (True, False)
    """
    size = graph.size
    if width * size > FLOW_BUDGET:
        return False
    source, sink, vertices = 2 * size, 2 * size + 1, np.arange(size)
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    tails = np.concatenate(
        [vertices, size + graph.child, size + vertices[inputs], np.full(len(outputs), source)]
    )
    heads = np.concatenate([size + vertices, graph.parent, np.full(len(inputs), sink), outputs])
    capacities = np.full(len(tails), width, dtype=np.int32)
    capacities[:size] = np.minimum(graph.capacities, width)
    network = _matrix(sink + 1, tails, heads, capacities)
    return bool(maximum_flow(network, source, sink).flow_value >= width)


def _matrix(nodes: int, tails: IntArray, heads: IntArray, capacities: NDArray[Any]) -> csr_array:
    """Return the capacities of a network as a matrix; not every SciPy computes flows with 64-bit indices."""
    arcs = (tails.astype(np.int32), heads.astype(np.int32))
    return csr_array((capacities, arcs), shape=(nodes, nodes))


def minimum_cut(
    graph: TapeGraph,
    lower: BoolArray,
    upper: BoolArray,
    bound: int,
    *,
    backend: Literal["auto", "networkx", "scipy"] = "auto",
) -> MinimumCut | None:
    """Find the narrowest lower sets between two given ones.

    Parameters
    ----------
    graph : TapeGraph
        The graph, n vertices.
    lower, upper : (n,) array of bool
        Nested lower sets; every cut contains `lower` and is contained in `upper`.
    bound : int
        Width up to which a cut is sought, in elements. The flow takes time in proportion to it.
    backend : {"auto", "networkx", "scipy"}
        Who computes the flow; "auto" gives small networks to networkx and large ones to scipy.

    Returns
    -------
    MinimumCut or None
        Width in elements, equal to the value of the flow, and the smallest and the largest lower set of
        this width; None if every cut is wider than `bound`, or has about 2**30 elements or more.

    Notes
    -----
    Ford and Fulkerson, *Maximal flow through a network*, 1956; the extreme minimum cuts are those of Picard
    and Queyranne, *On the structure of all minimum cuts in a network*, 1980. Dinic's algorithm in scipy,
    preflow-push in networkx. Capacities above `bound` are cut down to ``bound + 1``, which cannot change such
    a cut.

    Examples
    --------
    Two strands are narrow in different places; the cut takes each where it is narrow:

    >>> strands = TapeGraph(
    ...     entries=np.arange(6), widths=np.array([8, 2, 6, 6, 2, 8]), edges=np.array([0, 9, 9, 9, 9, 9]),
    ...     child=np.array([1, 2, 3, 4, 5, 5]), parent=np.array([0, 0, 1, 2, 3, 4]),
    ...     inputs=(0,), outputs=(5,))
    >>> inputs, everything = np.arange(6) == 0, np.full(6, True)
    >>> cut = minimum_cut(strands, inputs, everything, bound=8)
    >>> from tapesplit.cuts.graph import frontier
    >>> cut.width, frontier(strands, cut.latest)
    (4, array([1, 4]))
    """
    region = upper & ~lower
    bound = min(bound, _LARGEST_BOUND)
    network = _network(graph, lower, region, bound)
    small = np.count_nonzero(region) <= _NETWORKX_SIZE
    use_networkx = backend == "networkx" or (backend == "auto" and small)
    width, from_source, to_sink = (_networkx_flow if use_networkx else _scipy_flow)(network)
    if width > bound:
        return None
    numbers = np.flatnonzero(region)
    computed = _FIRST + 2 * np.arange(len(numbers))
    earliest, latest = lower.copy(), lower.copy()
    earliest[numbers] = from_source[computed]
    latest[numbers] = ~to_sink[computed]
    return MinimumCut(width, earliest, latest)


def _network(graph: TapeGraph, lower: BoolArray, region: BoolArray, bound: int) -> _Network:
    """Build the network of the region; what it reads from `lower` is computed already."""
    child, parent = graph.child, graph.parent
    crossing = ~lower[child] & (region | lower)[parent]
    child, parent = child[crossing], parent[crossing]
    keeps = np.zeros(graph.size, dtype=np.bool_)
    keeps[parent] = True
    keeps[list(graph.outputs)] = True
    keeps &= lower
    vertices = np.concatenate([np.flatnonzero(region), np.flatnonzero(keeps)])
    computed = np.full(graph.size, _SINK, dtype=np.int64)
    computed[vertices] = _FIRST + 2 * np.arange(len(vertices))
    released = computed + 1
    computed[keeps] = _SOURCE
    outputs = np.array([v for v in graph.outputs if region[v] or lower[v]], dtype=np.int64)
    inner = region[child] & region[parent]
    tails = [[_SUPPLY], computed[vertices], released[parent], released[outputs], computed[child[inner]]]
    heads = [
        [_SOURCE],
        released[vertices],
        computed[child],
        np.full(len(outputs), _SINK),
        computed[parent[inner]],
    ]
    widths = np.minimum(graph.capacities[vertices], bound + 1)
    unbounded = np.full(len(parent) + len(outputs) + int(np.count_nonzero(inner)), bound + 1)
    return _Network(
        nodes=_FIRST + 2 * len(vertices),
        tails=np.concatenate(tails),
        heads=np.concatenate(heads),
        capacities=np.concatenate([[bound + 1], widths, unbounded]),
    )


def _scipy_flow(network: _Network) -> tuple[int, BoolArray, BoolArray]:
    """Return flow value, nodes that the source still reaches and nodes that still reach the sink."""
    most = int(network.capacities.max(initial=0))
    capacity = _matrix(network.nodes, network.tails, network.heads, network.capacities)
    capacity.sum_duplicates()
    capacity.data = np.minimum(capacity.data, most).astype(np.int32)
    result = maximum_flow(capacity, _SUPPLY, _SINK)
    residual = csr_array(capacity - result.flow)
    residual.eliminate_zeros()
    from_source, to_sink = np.zeros((2, network.nodes), dtype=np.bool_)
    from_source[breadth_first_order(residual, _SOURCE, return_predecessors=False)] = True
    to_sink[breadth_first_order(csr_array(residual.T), _SINK, return_predecessors=False)] = True
    return int(result.flow_value), from_source, to_sink


def _networkx_flow(network: _Network) -> tuple[int, BoolArray, BoolArray]:
    """Do the same with networkx."""
    digraph = nx.DiGraph()
    digraph.add_nodes_from((_SUPPLY, _SOURCE, _SINK))
    arcs = zip(network.tails.tolist(), network.heads.tolist(), network.capacities.tolist(), strict=True)
    digraph.add_edges_from((tail, head, {"capacity": capacity}) for tail, head, capacity in arcs)
    flow = nx.algorithms.flow.preflow_push(digraph, _SUPPLY, _SINK)
    flow.remove_edges_from([(u, v) for u, v, arc in flow.edges(data=True) if arc["flow"] == arc["capacity"]])
    from_source, to_sink = np.zeros((2, network.nodes), dtype=np.bool_)
    from_source[[_SOURCE, *nx.descendants(flow, _SOURCE)]] = True
    to_sink[[_SINK, *nx.ancestors(flow, _SINK)]] = True
    return flow.graph["flow_value"], from_source, to_sink
