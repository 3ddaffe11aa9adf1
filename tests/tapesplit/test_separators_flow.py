"""Minimum cuts: against brute force, and scipy against networkx."""

import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from tape_graphs import deterministic, lower_sets, random_graph, tape_graph, tape_graphs, width_of

from tapesplit.cuts import flow
from tapesplit.cuts.copies import narrowest_cuts
from tapesplit.cuts.flow import Region, minimum_cut, minimum_cuts
from tapesplit.cuts.graph import tape_ranks
from tapesplit.cuts.width_bounds import has_wide_paths

BACKENDS = ["networkx", "scipy"]


def global_cut(graph, backend="auto"):
    bound = min(graph.input_width, graph.output_width)
    return minimum_cut(graph, tape_ranks(graph) == 0, np.ones(graph.size, dtype=bool), bound, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@deterministic
@given(graph=tape_graphs(max_size=11))
def test_the_cut_is_minimal_and_extreme(backend, graph):
    cut = global_cut(graph, backend)
    sets = lower_sets(graph)
    widths = [width_of(graph, lower) for lower in sets]
    assert cut.width == min(widths)
    narrowest = [lower for lower, width in zip(sets, widths, strict=True) if width == cut.width]
    assert cut.earliest.tolist() == np.logical_and.reduce(narrowest).tolist()
    assert cut.latest.tolist() == np.logical_or.reduce(narrowest).tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_cut_stays_within_its_window(backend):
    rng = np.random.default_rng(0)
    for kind in range(12):
        graph = random_graph(rng, 12, span=4, density=0.2, kind=kind)
        ranks = tape_ranks(graph)
        last = int(ranks.max())
        lower, upper = ranks <= last // 4, ranks <= 3 * last // 4
        inside = [s for s in lower_sets(graph) if (lower <= s).all() and (s <= upper).all()]
        bound = min(width_of(graph, lower), width_of(graph, upper))
        cut = minimum_cut(graph, lower, upper, bound, backend=backend)
        assert cut.width == min(width_of(graph, s) for s in inside)
        for found in (cut.earliest, cut.latest):
            assert width_of(graph, found) == cut.width
            assert (lower <= found).all()
            assert (found <= upper).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_wider_cuts_than_the_bound_are_not_found(backend):
    graph = tape_graph([9, 4, 5, 9], [[], [0], [0], [1, 2]])
    everything = np.ones(4, dtype=bool)
    first = np.array([True, False, False, False])
    assert minimum_cut(graph, first, everything, 8, backend=backend) is None
    assert minimum_cut(graph, first, everything, 9, backend=backend).width == 9


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("together", [4000, 30])
def test_regions_that_share_a_flow_are_cut_like_each_alone(backend, together, monkeypatch):
    monkeypatch.setattr(flow, "_TOGETHER", together)
    rng = np.random.default_rng(0)
    for kind in range(6):
        graph = random_graph(rng, 40, span=8, density=0.2, kind=kind)
        ranks = tape_ranks(graph)
        last = int(ranks.max())
        ends = [sorted(rng.choice(last + 1, 2, replace=False)) for _ in range(8)]
        whole = [Region(ranks <= a, ranks <= b, int(graph.capacities.sum())) for a, b in ends]
        widths = [minimum_cut(graph, *region, backend=backend).width for region in whole]
        regions = [
            region._replace(bound=width - i % 2)
            for i, (region, width) in enumerate(zip(whole, widths, strict=True))
        ]
        alone = [minimum_cut(graph, *region, backend=backend) for region in regions]
        shared = minimum_cuts(graph, regions, backend=backend)
        assert {cut is None for cut in alone} == {True, False}
        for one, other in zip(alone, shared, strict=True):
            assert (one is None) == (other is None)
            if one:
                assert one.width == other.width
                assert one.earliest.tolist() == other.earliest.tolist()
                assert one.latest.tolist() == other.latest.tolist()


@pytest.mark.parametrize("size", [60, 400])
def test_scipy_agrees_with_networkx_on_larger_graphs(size):
    rng = np.random.default_rng(size)
    for kind in range(4):
        graph = random_graph(rng, size, span=20, density=0.1, kind=kind)
        cuts = [global_cut(graph, backend) for backend in BACKENDS]
        assert cuts[0].width == cuts[1].width
        assert cuts[0].earliest.tolist() == cuts[1].earliest.tolist()
        assert cuts[0].latest.tolist() == cuts[1].latest.tolist()


def test_networkx_is_not_imported_for_a_cut(monkeypatch):
    graph = tape_graph([9, 4, 9], [[], [0], [1]])
    monkeypatch.delitem(sys.modules, "networkx")
    assert global_cut(graph).width == 4
    assert "networkx" not in sys.modules


def test_a_path_that_crosses_a_separator_twice_is_no_cut():
    # {1, 4} has two elements and separates 0 from 6, but 5 behind it reads 2, which 4 is computed from
    graph = tape_graph([500, 1, 99, 99, 1, 99, 500], [[], [0], [1], [0], [2, 3], [1, 2], [4, 5]])
    assert global_cut(graph).width == min(width_of(graph, s) for s in lower_sets(graph)) == 100


def test_widths_beyond_32_bits():
    huge = 1 << 33
    graph = tape_graph([huge, huge, 3, huge], [[], [0], [1], [2]], [0, 1, 1, 1])
    cut = global_cut(graph, "scipy")
    assert cut.earliest.tolist() == [True, True, True, False]
    assert cut.width == 3


def flow_of(graph):
    """Most elements that reach the outputs from the inputs without using any value twice."""
    network = nx.DiGraph()
    for vertex, width in enumerate(graph.capacities.tolist()):
        network.add_edge(("in", vertex), ("out", vertex), capacity=width)
    ends = [*(("source", ("in", v)) for v in range(graph.inputs)), (("out", graph.output), "sink")]
    arcs = zip(graph.parent.tolist(), graph.child.tolist(), strict=True)
    network.add_edges_from(ends + [(("out", parent), ("in", child)) for parent, child in arcs])
    return nx.maximum_flow_value(network, "source", "sink")


@deterministic
@given(graph=tape_graphs(max_size=11))
def test_the_narrowest_cuts_are_as_wide_as_the_largest_flow(graph):
    flow = flow_of(graph)
    assert flow <= min(width_of(graph, lower) for lower in lower_sets(graph))
    if flow:
        assert not narrowest_cuts(graph, flow - 1)
        assert {graph.widths[cut].sum() for cut in narrowest_cuts(graph, flow)} == {flow}
    assert not any(has_wide_paths(graph, width) for width in range(flow + 1, flow + 20))


@pytest.mark.parametrize("read", [0, 1, 2])
def test_states_of_a_loop_are_paths_that_are_seen(read):
    """Of n states, updated from themselves and neighbors, all but those that the output leaves out."""
    count, steps = 6, 40
    widths, parents = [count], [[]]
    state = [0] * count
    for step in range(steps):
        for i in range(count):
            widths.append(1)
            parents.append([state[i], state[i - 1], state[(i + 1) % count]] if step else [0])
            state[i] = len(widths) - 1
    graph = tape_graph([*widths, count], [*parents, state[read:]])
    assert has_wide_paths(graph, count - read)
    assert not has_wide_paths(graph, count - read + 0.5)
    assert not narrowest_cuts(graph, count - read - 1)


def test_paths_of_arrays_carry_their_narrowest_values():
    """Four states of a ring, each updated from itself and its neighbor, through a value half as wide."""
    sizes = [2, 6, 4, 8]
    widths, parents = [20], [[]]
    state = [0] * 4
    for step in range(20):
        before = list(state)
        for i, size in enumerate(sizes):
            widths += [size // 2, size]
            parents += [[before[i], before[i - 1]] if step else [0], [len(widths) - 2]]
            state[i] = len(widths) - 1
    graph = tape_graph([*widths, 20], [*parents, state])
    assert has_wide_paths(graph, 10)
    assert not has_wide_paths(graph, 11)
    assert not narrowest_cuts(graph, 9)
