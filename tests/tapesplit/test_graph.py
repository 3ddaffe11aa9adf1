"""The graph type, frontier widths, coarsening."""

from collections import Counter

import autograd.numpy as anp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tape_graphs import (
    deterministic,
    frontier,
    least_width,
    lower_sets,
    path,
    random_graph,
    tape_graph,
    tape_graphs,
    width_of,
)

from tapesplit import record
from tapesplit.arrays import follow
from tapesplit.cuts.coarsen import coarsen
from tapesplit.cuts.graph import UNBOUNDED, frontier_widths, graph_of, tape_ranks
from tapesplit.structures.facts import facts_of


@deterministic
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9), st.integers(0, 99))
def test_the_graph_of_a_tape_is_what_lies_between_inputs_and_output(steps, last):
    def f(x, y):
        values = [x, y]
        for a, b in steps:
            values.append(anp.sin(values[a % len(values)]) * values[b % len(values)])
        return values[last % len(values)]

    tape = record(f, np.ones(2), np.ones(2), argnum=(0, 1))
    arcs = [(parent, child) for child, parents in enumerate(tape.parents) for parent in parents]
    drawn = nx.DiGraph()
    drawn.add_edges_from([*arcs, (tape.output, "end")])
    needed = nx.ancestors(drawn, "end") | {0, 1}
    graph = graph_of(tape, facts_of(tape))
    assert graph.entries.tolist() == sorted(needed)
    assert graph.widths.tolist() == [2] * graph.size
    found = zip(graph.entries[graph.parent].tolist(), graph.entries[graph.child].tolist(), strict=True)
    assert Counter(found) == Counter(arc for arc in arcs if needed.issuperset(arc))
    assert graph.inputs == 2
    assert graph.entries[graph.output] == tape.output


@deterministic
@given(tape_graphs())
def test_frontier_widths_are_those_of_each_prefix(graph):
    ranks = tape_ranks(graph)
    widths = frontier_widths(graph, ranks)
    for t, width in enumerate(widths.tolist()):
        if t == 0:  # at the start all inputs count, read or not
            assert width == graph.input_width
        else:
            expected = width_of(graph, ranks <= t)
            assert width == expected or (width >= UNBOUNDED and expected == np.inf)


def test_an_input_that_is_never_put_aside_stays_in_the_frontier():
    graph = tape_graph([3, 5, 2, 1], [[], [0], [1], [0, 2]])
    assert frontier_widths(graph, tape_ranks(graph)).tolist() == [3, 8, 5, 1]
    assert frontier(graph, np.array([True, True, False, False])).tolist() == [0, 1]


@deterministic
@given(tape_graphs(max_size=10))
def test_coarsening_keeps_edges_and_the_minimum_cut(graph):
    coarse = coarsen(graph)
    left = np.isin(graph.entries, coarse.entries)
    reader = np.arange(graph.size)
    reader[graph.parent] = graph.child
    reader[left] = np.flatnonzero(left)
    group = (np.cumsum(left) - 1)[follow(reader)]
    assert np.bincount(group, weights=graph.edges).tolist() == coarse.edges.tolist()
    assert least_width(coarse) == least_width(graph)
    for lower in lower_sets(coarse):
        fine = lower[group]
        assert width_of(graph, fine) == width_of(coarse, lower)
        assert not (fine[graph.child] & ~fine[graph.parent]).any()


def test_coarsening_collapses_elementwise_trees():
    # v = f(x); of the tree (g(v) * v) - v, all of one width, only the root is left
    graph = tape_graph([9, 4, 4, 4, 4, 9], [[], [0], [1], [1, 2], [1, 3], [4]], [0, 36, 0, 0, 0, 36])
    assert coarsen(graph).entries.tolist() == [0, 1, 4, 5]


@pytest.mark.parametrize("size", [40, 300])
def test_a_plateau_keeps_its_narrowest_vertex(size):
    widths = [50, *([20] * (size // 2)), 7, *([20] * (size // 2)), 50]
    coarse = coarsen(path(widths, [0] * (size + 2) + [1]))
    assert 7 in coarse.widths


def test_coarsening_is_exact_on_random_graphs():
    rng = np.random.default_rng(3)
    for kind in range(18):
        graph = random_graph(rng, 11, span=5, density=0.2, kind=kind)
        assert least_width(coarsen(graph)) == least_width(graph)
