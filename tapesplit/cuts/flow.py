"""Minimum cuts: the narrowest frontier between two nested lower sets, found and proved by a maximum flow.

Every vertex v becomes two nodes. *Computed* v lies on the source side if v is in the lower set, *released*
v if nothing outside the set reads it. Arcs of the network and what cutting them would mean:

- computed v -> released v, capacity = width of v: v is on the frontier;
- released p -> computed c, unbounded: a parent is released only if its children are in the set;
- computed c -> computed p, unbounded: the parents of a member are members, so no path crosses twice.

The cuts of finite capacity are exactly the lower sets, and their capacity is the width of the frontier.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from tapesplit.arrays import BoolArray, IntArray
from tapesplit.cuts.graph import TapeGraph

__all__ = [
    "FLOW_BUDGET",
    "MinimumCut",
    "Region",
    "capacity_matrix",
    "minimum_cut",
    "minimum_cuts",
    "residual_sides",
]

FLOW_BUDGET: Final = 2_000_000
"""Vertices times elements that one flow may take: up to 0.3 µs each."""
_SUPPLY: Final = 0
_SINK: Final = 1
_SOURCE: Final = 2
_FIRST: Final = 3
_NETWORKX_NODES: Final = 20
"""Nodes up to which networkx cuts a network in less time than scipy takes to prepare."""
_TOGETHER: Final = 4000
"""Vertices up to which regions share a flow: preparing one takes as long as a small flow."""
_LARGEST_BOUND: Final = (1 << 30) - 2
"""scipy computes with 32-bit capacities, and a residual capacity may be twice the capacity."""


class MinimumCut(NamedTuple):
    """The earliest and the latest lower set of least frontier width."""

    width: int
    earliest: BoolArray
    latest: BoolArray


class Region(NamedTuple):
    """Where a cut is sought: between two nested lower sets of a graph, up to a width in elements."""

    lower: BoolArray
    upper: BoolArray
    bound: int


class _Network(NamedTuple):
    """A flow network; region vertex number r has the nodes `_FIRST` + 2r (computed) and + 2r + 1 (released).

    The supply feeds the source through one arc, which stops flows that exceed the bound.
    """

    nodes: int
    tails: IntArray
    heads: IntArray
    capacities: IntArray


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
    lower, upper : (n,) array of bool
        Nested lower sets; every cut contains `lower` and is contained in `upper`.
    bound : int
        Width up to which a cut is sought, in elements. The flow takes time in proportion to it.
    backend : {"auto", "networkx", "scipy"}
        Who computes the flow; "auto" gives networks of few nodes to networkx if it is imported already, and
        all others to scipy.

    Returns
    -------
    MinimumCut or None
        Width in elements, equal to the value of the flow, and the smallest and the largest lower set of
        this width; None if every cut is wider than `bound`, or has about 2**30 elements or more.

    Examples
    --------
    Two strands are narrow in different places; the cut takes each where it is narrow:

    >>> strands = TapeGraph(
    ...     entries=np.arange(6), widths=np.array([8, 2, 6, 6, 2, 8]), edges=np.array([0, 9, 9, 9, 9, 9]),
    ...     child=np.array([1, 2, 3, 4, 5, 5]), parent=np.array([0, 0, 1, 2, 3, 4]),
    ...     inputs=1, output=5)
    >>> inputs, everything = np.arange(6) == 0, np.full(6, True)
    >>> cut = minimum_cut(strands, inputs, everything, bound=8)
    >>> from tapesplit.cuts.graph import on_frontiers
    >>> cut.width, np.flatnonzero(on_frontiers(strands, cut.latest[None])[0])
    (4, array([1, 4]))
    """
    return minimum_cuts(graph, [Region(lower, upper, bound)], backend=backend)[0]


def minimum_cuts(
    graph: TapeGraph,
    regions: Sequence[Region],
    *,
    backend: Literal["auto", "networkx", "scipy"] = "auto",
) -> list[MinimumCut | None]:
    """Find the narrowest lower sets of several regions, which may overlap.

    The backend and what is returned for each of the regions are those of `minimum_cut`.

    Notes
    -----
    Ford and Fulkerson, *Maximal flow through a network*, 1956; the extreme minimum cuts are those of Picard
    and Queyranne, *On the structure of all minimum cuts in a network*, 1980. Dinic's algorithm in scipy,
    preflow-push in networkx. Capacities above `bound` are cut down to ``bound + 1``, which cannot change such
    a cut. Small regions share a flow, which takes longer to prepare than to compute.

    Examples
    --------
    >>> chain = TapeGraph(
    ...     entries=np.arange(4), widths=np.array([9, 2, 5, 9]), edges=np.array([0, 18, 10, 45]),
    ...     child=np.array([1, 2, 3]), parent=np.array([0, 1, 2]), inputs=1, output=3)
    >>> ranks = np.arange(4)
    >>> regions = [Region(ranks <= 0, ranks <= 3, bound=8), Region(ranks <= 2, ranks <= 3, bound=4)]
    >>> [cut and cut.width for cut in minimum_cuts(chain, regions)]
    [2, None]
    """
    cuts: list[MinimumCut | None] = []
    rest = list(regions)
    while rest:
        sizes = np.cumsum([np.count_nonzero(region.upper & ~region.lower) for region in rest])
        some = max(int(np.searchsorted(sizes, _TOGETHER, side="right")), 1)
        cuts += _cut_at_once(graph, rest[:some], backend=backend)
        del rest[:some]
    return cuts


def _cut_at_once(graph: TapeGraph, regions: Sequence[Region], *, backend: str) -> Iterator[MinimumCut | None]:
    """Find minimum cuts by a flow through the networks of all regions, which share supply and sink only."""
    regions = [region._replace(bound=min(region.bound, _LARGEST_BOUND)) for region in regions]
    network, sources = _together([_network(graph, *region) for region in regions])
    if backend == "auto":
        # Importing networkx would take longer than a hundred flows, and both find the same cuts.
        is_small = network.nodes <= _NETWORKX_NODES and "networkx" in sys.modules
        backend = "networkx" if is_small else "scipy"
    find_flow = _networkx_flow if backend == "networkx" else _scipy_flow
    widths, from_supply, to_sink = find_flow(network, sources)
    for (lower, upper, bound), source, width in zip(regions, sources, widths, strict=True):
        if width > bound:
            yield None
            continue
        inside = np.flatnonzero(upper & ~lower)
        computed = source + (_FIRST - _SOURCE) + 2 * np.arange(len(inside))
        earliest, latest = lower.copy(), lower.copy()
        earliest[inside] = from_supply[computed]
        latest[inside] = ~to_sink[computed]
        yield MinimumCut(width, earliest, latest)


def _together(networks: Sequence[_Network]) -> tuple[_Network, list[int]]:
    """Join networks at their supply and sink; return also where the source of each is."""
    sizes = [network.nodes - _SOURCE for network in networks]
    shifts = (np.cumsum(sizes) - sizes).tolist()

    def shifted(ends: Sequence[IntArray]) -> IntArray:
        moved = [nodes + shift * (nodes >= _SOURCE) for nodes, shift in zip(ends, shifts, strict=True)]
        return np.concatenate(moved)

    joined = _Network(
        nodes=_SOURCE + sum(sizes),
        tails=shifted([network.tails for network in networks]),
        heads=shifted([network.heads for network in networks]),
        capacities=np.concatenate([network.capacities for network in networks]),
    )
    return joined, [_SOURCE + shift for shift in shifts]


def _network(graph: TapeGraph, lower: BoolArray, upper: BoolArray, bound: int) -> _Network:
    """Build the network of a region; what it reads from `lower` is computed already."""
    child, parent, region = graph.child, graph.parent, upper & ~lower
    crossing = ~lower[child] & upper[parent]
    child, parent = child[crossing], parent[crossing]
    keeps = np.zeros(graph.size, dtype=np.bool_)
    keeps[parent] = True
    keeps[graph.output] = True
    keeps &= lower
    vertices = np.concatenate([np.flatnonzero(region), np.flatnonzero(keeps)])
    computed = np.full(graph.size, _SINK, dtype=np.int64)
    computed[vertices] = _FIRST + 2 * np.arange(len(vertices))
    released = computed + 1
    computed[keeps] = _SOURCE
    outputs = np.array([graph.output] if upper[graph.output] else [], dtype=np.int64)
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


def capacity_matrix(nodes: int, tails: IntArray, heads: IntArray, capacities: NDArray[Any]) -> csr_array:
    """Return the capacities of a network as a matrix; not every SciPy computes flows with 64-bit indices."""
    arcs = (tails.astype(np.int32), heads.astype(np.int32))
    return csr_array((capacities, arcs), shape=(nodes, nodes))


def _scipy_flow(network: _Network, sources: list[int]) -> tuple[list[int], BoolArray, BoolArray]:
    """Return the flow into each source, nodes that the supply still reaches, nodes that reach the sink."""
    most = int(network.capacities.max(initial=0))
    capacity = capacity_matrix(network.nodes, network.tails, network.heads, network.capacities)
    capacity.data = np.minimum(capacity.data, most).astype(np.int32)
    flow = maximum_flow(capacity, _SUPPLY, _SINK).flow
    fed = np.zeros(network.nodes, dtype=np.int64)
    of_supply = slice(*flow.indptr[_SUPPLY : _SUPPLY + 2])
    fed[flow.indices[of_supply]] = flow.data[of_supply]
    return fed[sources].tolist(), *residual_sides(capacity - flow, _SUPPLY, _SINK)


def residual_sides(residual: csr_array, supply: int, sink: int) -> tuple[BoolArray, BoolArray]:
    """Return the nodes that the supply still reaches beside a flow, and those that still reach the sink."""
    from_supply, to_sink = np.zeros((2, residual.shape[0]), dtype=np.bool_)
    from_supply[breadth_first_order(residual, supply, return_predecessors=False)] = True
    to_sink[breadth_first_order(csr_array(residual.T), sink, return_predecessors=False)] = True
    return from_supply, to_sink


def _networkx_flow(network: _Network, sources: list[int]) -> tuple[list[int], BoolArray, BoolArray]:
    """Do the same with networkx, which is imported here: few programs need it."""
    import networkx as nx  # noqa: PLC0415

    digraph = nx.DiGraph()
    digraph.add_nodes_from((_SUPPLY, _SINK, *sources))
    arcs = zip(network.tails.tolist(), network.heads.tolist(), network.capacities.tolist(), strict=True)
    digraph.add_edges_from((tail, head, {"capacity": capacity}) for tail, head, capacity in arcs)
    flow = nx.algorithms.flow.preflow_push(digraph, _SUPPLY, _SINK)
    widths = [flow[_SUPPLY][source]["flow"] for source in sources]
    flow.remove_edges_from([(u, v) for u, v, arc in flow.edges(data=True) if arc["flow"] == arc["capacity"]])
    from_supply, to_sink = np.zeros((2, network.nodes), dtype=np.bool_)
    from_supply[[_SUPPLY, *nx.descendants(flow, _SUPPLY)]] = True
    to_sink[[_SINK, *nx.ancestors(flow, _SINK)]] = True
    return widths, from_supply, to_sink
