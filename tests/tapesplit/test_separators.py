"""Separators: certificates, planned cost against brute force, and programs that hide narrow cuts."""

import tracemalloc
from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tape_graphs import (
    best_chain_fma,
    chain_of,
    deterministic,
    frontier,
    least_width,
    link_between,
    lower_sets,
    path,
    planned_fma,
    random_graph,
    tape_graph,
    tape_graphs,
    with_unread_input,
)

from benchmarks.separators_scaling import interleaved
from jcdp_core import JacobianChain, solve
from tapesplit.cuts import candidates, separators
from tapesplit.cuts.candidates import thrifty_ranks
from tapesplit.cuts.certify import certify_cuts
from tapesplit.cuts.chunks import chunk_vertices
from tapesplit.cuts.coarsen import coarsen
from tapesplit.cuts.copies import narrowest_cuts, with_copies
from tapesplit.cuts.graph import frontier_widths, tape_ranks
from tapesplit.cuts.nesting import choose_nested, cut_family
from tapesplit.cuts.separators import Separator, cut_graph
from tapesplit.cuts.width_bounds import has_wide_paths
from tapesplit.cuts.width_profile import width_profile
from tapesplit.errors import SeparatorError


def narrowest(graph):
    """Return the narrowest separator that was found."""
    return min(cut_graph(graph, spread=True), key=lambda s: s.width)


def live_width(graph):
    """Return the width of the narrowest live set in tape order."""
    return int(frontier_widths(graph, tape_ranks(graph)).min())


def best_fma(graph):
    """Return the cost of the best chain over all nested families of lower sets."""
    return choose_nested(cut_family(graph, lower_sets(graph)))[0]


@deterministic
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 60)), min_size=2, max_size=12))
def test_the_cheapest_cuts_of_a_path_cost_what_the_solver_finds(values):
    widths, (_, *edges) = zip(*values, strict=True)
    chain = JacobianChain.from_sizes(widths, edges)
    family = cut_family(path(widths, [0, *edges]), [np.arange(len(widths)) <= t for t in range(len(widths))])
    cost, cuts = choose_nested(family)
    assert cost == solve(chain).makespan
    assert choose_nested(family.subfamily([0, *cuts, len(widths) - 1]))[0] == cost


@deterministic
@given(tape_graphs())
def test_separators_carry_their_certificate(graph):
    separators = cut_graph(graph, spread=True)
    certify_cuts(graph, separators)
    sizes, edges = chain_of(graph, separators)
    assert len(edges) == len(separators) + 1
    assert sum(edges) >= graph.total_edges
    assert all(edges[1:-1])
    if separators:  # an end of the chain is free only if it is narrower
        assert edges[0] or sizes[1] < sizes[0]
        assert edges[-1] or sizes[-2] < sizes[-1]


@deterministic
@given(tape_graphs())
def test_chunks_compute_each_separator_from_the_one_before_and_nothing_else(graph):
    separators = cut_graph(graph, spread=True)
    fronts = [range(graph.inputs), *(np.searchsorted(graph.entries, s.vertices) for s in separators)]
    fronts.append([graph.output])
    for vertices, sources, targets in zip(
        chunk_vertices(graph, separators), fronts[:-1], fronts[1:], strict=True
    ):
        computed, given_ = set(vertices.tolist()), {*map(int, sources)}
        arcs = list(zip(graph.child.tolist(), graph.parent.tolist(), strict=True))
        assert sorted(computed) == vertices.tolist()
        assert not computed & given_
        assert {*map(int, targets)} <= computed | given_
        assert {p for c, p in arcs if c in computed} <= computed | given_
        read = {p for c, p in arcs if c in computed} | {*map(int, targets)}
        assert computed <= read


@pytest.mark.parametrize("spread", [True, False])
@pytest.mark.parametrize("change", [lambda graph: graph, with_unread_input])
def test_separators_and_chunks_of_random_graphs_are_what_walking_back_finds(change, spread):
    rng = np.random.default_rng(5)
    repeated = 0
    for kind in range(150):
        size, span = int(rng.integers(6, 30)), int(rng.integers(2, 15))
        graph = change(random_graph(rng, size, span, density=rng.uniform(0, 0.4), kind=kind % 18))
        separators = cut_graph(graph, spread=spread)
        certify_cuts(graph, separators)
        fronts = [range(graph.inputs), *(np.searchsorted(graph.entries, s.vertices) for s in separators)]
        ends = [{*map(int, front)} for front in (*fronts, [graph.output])]
        parents = [graph.parent[graph.child == v].tolist() for v in range(graph.size)]
        computed = [sorted(link_between(parents, ends[0], *pair)[0]) for pair in pairwise(ends)]
        found = [vertices.tolist() for vertices in chunk_vertices(graph, separators)]
        if separators:
            assert found == computed
        repeated += sum(map(len, found)) > graph.size - graph.inputs
    assert repeated > 10


@deterministic
@given(tape_graphs())
def test_no_separators_means_that_a_plain_mode_is_near_the_best_plan(graph):
    plain = min(graph.input_width, graph.output_width) * graph.total_edges
    if not cut_graph(graph):
        assert plain <= 1.1 * best_fma(graph) + 1e-9


def test_plans_are_close_to_the_best_chain_between_frontiers():
    rng = np.random.default_rng(11)
    ratios = []
    while len(ratios) < 120:
        size, span = int(rng.integers(6, 15)), int(rng.integers(2, 15))
        graph = random_graph(rng, size, span, density=rng.uniform(0, 0.4), kind=len(ratios) % 18)
        sets = lower_sets(graph, limit=150)
        if sets is None:
            continue
        best = choose_nested(cut_family(graph, sets))[0]
        ratios.append(planned_fma(graph, cut_graph(graph)) / best)
    assert np.mean(ratios) <= 1
    assert max(ratios) <= 1.2


def test_plans_are_close_to_the_best_chain_of_all():
    rng = np.random.default_rng(12)
    ratios = []
    while len(ratios) < 72:
        size, span = int(rng.integers(5, 9)), int(rng.integers(2, 9))
        graph = random_graph(rng, size, span, density=rng.uniform(0, 0.4), kind=len(ratios) % 18)
        best = best_chain_fma(graph, limit=150)
        if best:
            ratios.append(planned_fma(graph, cut_graph(graph)) / best)
    assert np.mean(ratios) <= 1.02
    assert max(ratios) <= 1.2
    assert min(ratios) >= 1


def test_a_cut_behind_heavy_work_survives_the_movements_that_follow():
    """The last value is copied into many places: widest of all, and free."""
    graph = path([2000, 10, 40, 40, 40, 3000], [0, 20_000, 400, 1600, 1600, 0])
    assert planned_fma(graph, cut_graph(graph)) <= 1.01 * best_fma(graph)
    graph = path([64, 17, 27, 22, 8, 8, 18, 28, 28, 175], [0, 1088, 459, 594, 0, 8, 144, 504, 0, 175])
    assert planned_fma(graph, cut_graph(graph)) <= 1.01 * best_fma(graph)


def test_plans_of_arithmetic_and_movements_are_close_to_the_best_choice_of_cuts():
    """Operations that cost much for their width stand next to others that cost nothing."""
    rng = np.random.default_rng(3)
    ratios = []
    while len(ratios) < 150:
        size = int(rng.integers(8, 15))
        widths = np.rint(np.exp(rng.uniform(1.5, 5.5, size))).astype(int).tolist()
        parents = [[], *([v - 1, *rng.choice(v, rng.integers(0, 2))] for v in range(1, size))]
        dense = [widths[v] * sum(widths[p] for p in parents[v]) for v in range(size)]
        kinds = [dense, [10 * width for width in widths], [0] * size]
        edges = [kinds[rng.integers(3)][v] for v in range(size)]
        graph = tape_graph(widths, [sorted({*map(int, group)}) for group in parents], edges)
        sets = lower_sets(graph, limit=150)
        if sets is None or graph.total_edges < 5000:
            continue
        best = choose_nested(cut_family(graph, sets))[0]
        ratios.append(planned_fma(graph, cut_graph(graph)) / best)
    assert np.mean(ratios) <= 1.02
    assert max(ratios) <= 1.2


@deterministic
@given(tape_graphs())
def test_more_links_never_make_a_plan_worse(graph):
    costs = [planned_fma(graph, cut_graph(graph, max_links=links)) for links in range(2, 8)]
    assert costs == sorted(costs, reverse=True)


def test_plans_on_long_paths_are_as_good_as_with_every_cut():
    rng = np.random.default_rng(2)
    for trial in range(12):
        draws = rng.integers(1, 100, 120) if trial % 2 else np.rint(np.exp(rng.uniform(0, 5, 120)))
        widths = [300, *draws.astype(int).tolist(), 200]
        graph = path(widths, [3 * width for width in widths] if trial % 3 else None)
        best = solve(JacobianChain.from_sizes(sizes=widths, edges=graph.edges[1:].tolist())).makespan
        assert planned_fma(graph, cut_graph(graph)) <= 1.01 * best


def test_fewer_links_never_make_a_cheaper_plan():
    rng = np.random.default_rng(4)
    for kind in range(6):
        graph = random_graph(rng, 14, span=4, density=0.15, kind=kind)
        found = [cut_graph(graph, max_links=q, spread=True) for q in range(1, 9)]
        assert [len(s) < q for q, s in enumerate(found, 1)] == [True] * 8
        costs = [planned_fma(graph, s) for s in found]
        assert costs[-1] <= min(costs)


@deterministic
@given(graph=tape_graphs(), backwards=st.booleans())
def test_thrifty_orders_compute_parents_first(graph, backwards):
    ranks = thrifty_ranks(graph, backwards=backwards)
    assert (ranks[: graph.inputs] == 0).all()
    others = ranks[graph.inputs :]
    assert sorted(others.tolist()) == list(range(1, others.size + 1))
    computed = graph.child >= graph.inputs
    assert (ranks[graph.parent] < ranks[graph.child])[computed].all()


def fans(rng, size):
    """Join values by pairs in random order until one is left, and spread that again."""
    widths, parents = [int(rng.integers(50, 300))], [[]]

    def add(*read):
        parents.append(list(read))
        widths.append(int(np.exp(rng.uniform(0, 5))))
        return len(widths) - 1

    loose = [add(0) for _ in range(size)]
    while len(loose) > 1:
        loose.append(add(*(loose.pop(int(rng.integers(len(loose)))) for _ in range(2))))
    for _ in range(size):
        add(int(rng.integers(loose[0], len(widths))))
    ends = sorted(set(range(len(widths))).difference(*parents))
    widths.append(sum(widths[v] for v in ends))
    parents.append(ends)
    edges = [max(width, sum(widths[p] for p in read)) for width, read in zip(widths, parents, strict=True)]
    return tape_graph(widths, parents, edges)


def test_orders_that_look_at_widths_find_cheaper_chains(monkeypatch):
    graphs = [fans(np.random.default_rng(seed), 15) for seed in range(80)]
    with_them = [planned_fma(graph, cut_graph(graph)) for graph in graphs]
    monkeypatch.setattr(separators, "_MOST_FOR_THRIFTY_ORDERS", 0)
    ratios = np.divide(with_them, [planned_fma(graph, cut_graph(graph)) for graph in graphs])
    assert ratios.max() <= 1.0
    assert ratios.min() < 0.75


def test_flows_near_both_ends_find_cheaper_chains(monkeypatch):
    graph = interleaved(np.random.default_rng(0), 20_000, 50)
    with_them = planned_fma(graph, cut_graph(graph))
    monkeypatch.setattr(candidates, "_OCTAVES", 0)
    assert with_them < 0.6 * planned_fma(graph, cut_graph(graph))


def strands(lengths, *, interleave):
    """Build independent strands of width 9 with one value of width 1 in the middle, and join them."""
    widths, parents, last, done = [20], [[]], [0] * len(lengths), [0] * len(lengths)
    while any(d < n for d, n in zip(done, lengths, strict=True)):
        for k, length in enumerate(lengths):
            for _ in range(1 if interleave else length):
                if done[k] < length:
                    widths.append(1 if done[k] == length // 2 else 9)
                    parents.append([last[k]])
                    last[k] = len(widths) - 1
                    done[k] += 1
    return tape_graph([*widths, 20], [*parents, last])


@pytest.mark.parametrize("interleave", [True, False])
@pytest.mark.parametrize("lengths", [(4, 7), (30, 10, 61), (300, 200)])
def test_interleaved_independent_work(lengths, interleave):
    graph = strands(lengths, interleave=interleave)
    assert live_width(graph) >= 10
    assert narrowest(graph).width == len(lengths)
    assert narrowest(graph).reason == "minimal"


@pytest.mark.parametrize("budget", [100_000, 300_000])
def test_narrow_cuts_of_wide_arrays_are_found_in_rounded_widths(monkeypatch, budget):
    graph = strands((60, 40, 61), interleave=False)
    wide = replace(graph, widths=1000 * graph.widths + 7)
    monkeypatch.setattr(separators, "FLOW_BUDGET", budget)
    assert live_width(wide) > 3 * budget // coarsen(wide).size
    found = narrowest(wide)
    assert found.width == 3 * 1007
    assert found.reason == ("minimal" if budget // coarsen(wide).size >= 1007 else "cost")


def test_strands_that_are_narrow_at_equal_depth_need_no_flow(monkeypatch):
    def fail(*args):
        raise AssertionError("paths and the order by depth settle it")

    monkeypatch.setattr(separators, "minimum_cut", fail)
    widths, parents, last = [20], [[]], [0, 0, 0]
    for layer in ([9], [9], [1, 9], [9]):  # the narrow value of each strand is widened at once
        for k in range(3):
            for width in layer:
                parents.append([last[k]])
                widths.append(width)
                last[k] = len(widths) - 1
    graph = tape_graph([*widths, 20], [*parents, last])
    assert live_width(graph) == 19
    assert narrowest(graph).width == 3


def test_flows_beyond_the_budget_are_not_looked_for(monkeypatch):
    graph = tape_graph([8, 2, 6, 6, 2, 8], [[], [0], [0], [1], [1, 2], [3, 4]])
    assert not has_wide_paths(graph, 4)
    assert separators._is_wide(graph, 4)
    assert not separators._is_wide(graph, 5)
    monkeypatch.setattr(separators, "FLOW_BUDGET", 4 * graph.size)
    assert separators._is_wide(graph, 4)
    monkeypatch.setattr(separators, "FLOW_BUDGET", 4 * graph.size - 1)
    assert not separators._is_wide(graph, 4)


def test_an_empty_part_hides_no_narrow_cut():
    widths, parents = [800], [[]]
    for _ in range(2):  # one strand after the other
        for width, reads in ((800, 0), (8, None), (400, None)):
            widths.append(width)
            parents.append([len(widths) - 2 if reads is None else reads])
    graph = tape_graph([*widths, 0, 800], [*parents, [0], [3, 6, 7]])
    assert [cut.width for cut in cut_graph(graph)] == [16]


def test_parameters_that_pass_through_are_in_every_separator():
    # y_{k+1} = f(y_k, theta): y starts from a wide input, is narrow, and ends wide
    widths, parents = [30, 3, 6], [[], [0], [0]]
    for k in range(20):
        widths.append(6)
        parents.append([1, 2 + k])
    graph = tape_graph([*widths, 30], [*parents, [len(widths) - 1]])
    _, *through, last = cut_graph(graph, spread=True)
    assert [s.width for s in through] == [9] * 20
    assert all(1 in s.vertices for s in through)
    assert (last.width, last.reason) == (least_width(graph), "minimal")


def test_skip_connections_are_counted():
    # 0 -> 1 -> ... -> 8 and a skip from 2 to 7: every cut between them holds vertex 2 as well
    widths = [40, 20, 5, 20, 3, 20, 20, 20, 40]
    edges = [0, 100, 100, 400, 400, 100, 100, 100, 100]
    graph = tape_graph(widths, [[], [0], [1], [2], [3], [4], [5], [6, 2], [7]], edges)
    found = {s.vertices: s.width for s in cut_graph(graph, spread=True)}
    assert found.items() >= {(2,): 5, (2, 4): 8}.items()
    assert (4,) not in found


def test_inputs_that_are_read_late_wait_in_the_separators():
    # two inputs; the second one is read by the last operation only
    graph = tape_graph([20, 4, 10, 2, 10, 30], [[], [], [0], [2], [3], [4, 1]], inputs=2)
    found = narrowest(graph)
    assert (found.vertices, found.width) == ((1, 3), 6)


def test_wide_values_that_are_read_late_are_computed_late():
    # 2 = expand(1) is made early on the tape and read last; a cut behind 4 needs vertex 1 instead of it
    widths, parents = [50, 5, 90, 30, 2, 30, 50], [[], [0], [1], [1], [3], [4], [5, 2]]
    graph = tape_graph(widths, parents, [0, 100, 100, 400, 400, 100, 100])
    found = {s.vertices: s.width for s in cut_graph(graph, spread=True)}
    assert found.items() >= {(1,): 5, (1, 4): 7}.items()


def test_parts_of_an_array_that_are_read_later_cross_the_cut_as_slices():
    # a state of four elements takes in x[0], ..., x[8] one after the other; x[9] is read at the very end
    widths, parents, state = [10], [[]], []
    for _ in range(9):
        widths += [1, 4]
        parents += [[0], [len(widths) - 2, *state]]
        state = [len(widths) - 1]
    widths += [20, 1, 9]
    parents += [state, [0], [len(widths) - 3, len(widths) - 2]]
    graph = tape_graph(widths, parents, [0, *([0, 8] * 9), 80, 0, 45])
    assert live_width(graph) == 9
    assert narrowest(graph) == Separator((18, 20), 5, "minimal")


def test_values_without_width_are_never_cut():
    graph = tape_graph([20, -1, 3, -1, 20], [[], [0], [1], [2], [3]], [0, 9, 9, 9, 9])
    assert [s.vertices for s in cut_graph(graph)] == [(2,)]
    assert cut_graph(tape_graph([20, -1, -1, 20], [[], [0], [1], [2]], [0, 9, 9, 9])) == ()


def test_cuts_that_only_pass_data_along_are_dropped():
    graph = path([30, 4, 2, 4, 30], [0, 50, 0, 0, 50])
    assert [s.vertices for s in cut_graph(graph)] == [(2,)]


def test_a_part_of_the_input_that_alone_is_read_is_a_separator():
    # the slice costs nothing and is narrower than the input and the output
    graph = path([30, 2, 40, 40], [0, 0, 80, 120])
    assert cut_graph(graph)[0] == Separator((1,), 2, "minimal")
    assert planned_fma(graph, cut_graph(graph)) < 0.2 * 30 * 200


@pytest.mark.parametrize(
    "graph",
    [
        path([5, 5]),
        path([5, 5, 5], [0, 0, 0]),
        tape_graph([4], [[]]),
        path([1, 7, 7, 9]),
        path([50, 48, 49, 60]),
        tape_graph([9, 9, 9, 9], [[], [0], [0], [1, 2]]),
    ],
)
def test_nothing_to_gain_gives_no_separators(graph):
    assert cut_graph(graph) == ()
    (vertices,) = chunk_vertices(graph, ())
    assert vertices.tolist() == list(range(graph.inputs, graph.size))


def test_several_machines_get_cuts_where_one_needs_none():
    graph = path([30] * 9)
    assert cut_graph(graph) == ()
    spread = cut_graph(graph, spread=True)
    assert len(spread) == 7
    assert {s.reason for s in spread} == {"minimal"}


def layered_graph(layers, width=100):
    """Build layers of values, each computed from the value above it and a random one of the layer before."""
    rng = np.random.default_rng(0)
    parents = [[], *([0] for _ in range(width))]
    for start in range(1, (layers - 1) * width + 1, width):
        parents += [[start + i, start + int(rng.integers(width))] for i in range(width)]
    last = list(range(len(parents) - width, len(parents)))
    widths = [50 * width, *rng.integers(1, 50, layers * width).tolist(), 50 * width]
    return tape_graph(widths, [*parents, last], [1] * len(widths))


def test_large_graphs_without_structure():
    graph = layered_graph(150)
    separators = cut_graph(graph)
    certify_cuts(graph, separators[::6])
    assert min(s.width for s in separators) < 0.8 * live_width(graph)


def test_memory_grows_in_proportion_to_the_tape():
    peaks = []
    for layers in (25, 100):
        graph = layered_graph(layers)
        tracemalloc.start()
        cut_graph(graph)
        peaks.append(tracemalloc.get_traced_memory()[1] / graph.size)
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


BENT = tape_graph([9, 3, 4, 9, 9], [[], [0], [1], [1, 2], [3]])


@pytest.mark.parametrize(
    ("separators", "message"),
    [
        ([Separator((7,), 1, "cost")], "entry 7, which is on no path"),
        ([Separator((2, 1), 7, "cost")], "must increase"),
        ([Separator((1, 1), 6, "cost")], "must increase"),
        ([Separator((1, 2), 6, "cost")], "claims a width of 6 elements, but its values have 7"),
        ([Separator((2,), 4, "cost")], "does not separate"),
        ([Separator((2, 3), 13, "cost")], "contains tape entry 2, which the output does not depend on"),
        ([Separator((1, 3), 12, "cost")], "contains tape entry 1, which the output does not depend on"),
        (
            [Separator((3,), 9, "cost"), Separator((1,), 3, "cost")],
            "1 of 2 does not separate: a path from the input reaches separator 2 of 2 past it",
        ),
        ([Separator((1,), 3, "cost"), Separator((1,), 3, "cost")], "repeats the one before it"),
        ([Separator((0,), 9, "cost")], "or the inputs"),
        ([Separator((4,), 9, "cost")], "separator 1 of 1 repeats the outputs"),
        ([Separator((1,), 3, "cost"), Separator((4,), 9, "cost")], "separator 2 of 2 repeats the outputs"),
    ],
)
def test_broken_separators_are_rejected(separators, message):
    with pytest.raises(SeparatorError, match=message):
        certify_cuts(BENT, separators)


TWICE = tape_graph([500, 1, 9, 9, 1, 9, 500], [[], [0], [1], [0], [2, 3], [1, 2], [4, 5]])


def test_what_is_between_two_members_of_a_separator_is_in_both_chunks():
    (separator,) = cut_graph(TWICE, max_links=2)
    assert separator == Separator((1, 4), 2, "minimal")
    certify_cuts(TWICE, [separator])
    assert [v.tolist() for v in chunk_vertices(TWICE, [separator])] == [[1, 2, 3, 4], [2, 5, 6]]


def accepted(graph, *cuts):
    """Tell whether vertices of the right widths are certified as separators."""
    widths = [int(graph.widths[list(cut)].sum()) for cut in cuts]
    entries = [tuple(graph.entries[list(cut)].tolist()) for cut in cuts]
    try:
        certify_cuts(graph, [Separator(*pair, "cost") for pair in zip(entries, widths, strict=True)])
    except SeparatorError:
        return False
    return True


def paths_to(graph, targets):
    """List all paths from the inputs to some vertices."""
    parents = [graph.parent[graph.child == v].tolist() for v in range(graph.size)]
    paths, stack = [], [(v,) for v in targets]
    while stack:
        path = stack.pop()
        if path[0] < graph.inputs:
            paths.append(path)
        stack += [(p, *path) for p in parents[path[0]]]
    return paths


def makes_a_link(graph, first, second):
    """Tell from all paths whether a separator is computed from another one alone, and from all of that."""
    paths = paths_to(graph, set(second) - set(first))
    last_met = [next((v for v in reversed(path) if v in first), None) for path in paths]
    return bool(paths) and None not in last_met and set(first) == {*last_met} | (set(first) & set(second))


@deterministic
@given(tape_graphs(max_size=6))
def test_what_makes_links_is_accepted_and_nothing_else(graph):
    fit = [v for v in range(graph.size) if graph.widths[v] >= 0]
    subsets = [cut for size in range(1, graph.size + 1) for cut in combinations(fit, size)]
    right = set()
    for cut in subsets:
        separates = all(set(path) & set(cut) for path in paths_to(graph, [graph.output]))
        is_end = cut in (tuple(range(graph.inputs)), (graph.output,))
        if separates and not is_end and makes_a_link(graph, cut, (graph.output,)):
            right.add(cut)
    assert {cut for cut in subsets if accepted(graph, cut)} == right
    for first, second in product(right, repeat=2):
        assert accepted(graph, first, second) == makes_a_link(graph, first, second)


@deterministic
@given(tape_graphs(max_size=6))
def test_frontiers_of_nested_lower_sets_are_accepted(graph):
    fronts = {tuple(frontier(graph, lower).tolist()): lower for lower in lower_sets(graph)}
    lowers = {front: lower for front, lower in fronts.items() if (graph.widths[list(front)] >= 0).all()}
    lowers.pop(tuple(range(graph.inputs)), None)
    lowers.pop((graph.output,), None)
    for first, second in product(lowers, repeat=2):
        if first != second and (lowers[first] <= lowers[second]).all():
            assert accepted(graph, first, second)


@deterministic
@given(tape_graphs(max_size=7))
def test_the_narrowest_cuts_are_those_of_all_subsets(graph):
    paths = [set(path) for path in paths_to(graph, [graph.output])]
    fit = [v for v in range(graph.size) if graph.widths[v] > 0]
    subsets = [set(cut) for size in range(1, len(fit) + 1) for cut in combinations(fit, size)]
    widths = [sum(graph.widths[list(cut)]) for cut in subsets if all(path & cut for path in paths)]
    least = min(widths, default=99)
    found = narrowest_cuts(graph, bound=60)
    assert {int(graph.widths[cut].sum()) for cut in found} == ({least} if least <= 60 else set())
    assert all(path & {*np.flatnonzero(cut)} for cut in found for path in paths)
    assert narrowest_cuts(graph, bound=least - 1) == [] or least <= 0


@deterministic
@given(tape_graphs(max_size=8))
def test_separators_of_a_graph_with_copies_are_those_of_the_graph(graph):
    for cut in narrowest_cuts(graph, bound=60):
        split, lower = with_copies(graph, cut)
        assert split.entries[frontier(split, lower)].tolist() == graph.entries[cut].tolist()
        chain = []
        for t in range(graph.inputs, split.size):
            front = frontier(split, np.arange(split.size) < t)
            members = tuple(sorted(split.entries[front].tolist()))
            if (split.widths[front] >= 0).all() and members not in {s.vertices for s in chain}:
                chain.append(Separator(members, int(split.widths[front].sum()), "cost"))
        ends = [tuple(graph.entries[: graph.inputs].tolist()), (int(graph.entries[graph.output]),)]
        certify_cuts(graph, [separator for separator in chain if separator.vertices not in ends])


def test_values_without_width_are_rejected_in_separators():
    graph = tape_graph([20, -1, 20], [[], [0], [1]], [0, 9, 9])
    with pytest.raises(SeparatorError, match="a value without real elements"):
        certify_cuts(graph, [Separator((1,), -1, "cost")])


def test_mutated_separators_are_rejected():
    graph = strands((6, 9), interleave=True)
    separators = cut_graph(graph)
    certify_cuts(graph, separators)
    for number, separator in enumerate(separators):
        dropped = replace(separator, vertices=separator.vertices[1:], width=separator.width)
        with pytest.raises(SeparatorError):
            certify_cuts(graph, [*separators[:number], dropped, *separators[number + 1 :]])


def test_the_width_profile_shows_what_reordering_would_gain():
    graph = strands((4, 7), interleave=True)
    profile = width_profile(graph, shares=3)
    assert (profile.minimal <= profile.live).all()
    assert profile.minimal.min() == 2 < profile.live.min() == live_width(graph)
    assert str(profile).splitlines()[0].split() == ["entry", "live", "minimal", "elements"]
    assert len(str(profile).splitlines()) == len(profile.entries) + 1


@pytest.mark.parametrize(
    ("edges", "entries", "live"),
    [([0, 16, 8, 0, 0], [1, 4], [8, 1]), ([0, 0, 0, 0, 0], [4], [1])],
    ids=["behind the last operation", "without any operation"],
)
def test_the_width_profile_shows_movements_at_the_end(edges, entries, live):
    profile = width_profile(path([8, 9, 9, 3, 1], edges), shares=2)
    assert profile.entries.tolist() == entries
    assert profile.live.tolist() == profile.minimal.tolist() == live


def test_the_width_profile_shows_chosen_cuts_whose_values_are_far_apart():
    graph = strands((4, 30), interleave=True)
    separators = cut_graph(graph)
    profile = width_profile(graph, separators, shares=20)
    assert profile.minimal.min() == min(s.width for s in separators)
    for separator, place in zip(separators, profile.places, strict=True):
        assert profile.minimal[max(int(np.ceil(place)) - 1, 0)] <= separator.width
