"""Nested vertex separators of a tape, chosen so that the Jacobian chain between them is cheap to plan."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, NamedTuple

import numpy as np

from tapesplit.arrays import BoolArray, IntArray
from tapesplit.cuts.candidates import (
    Order,
    candidate_prefixes,
    depth_ranks,
    minimal_prefixes,
    order_by,
    thrifty_ranks,
    window_cuts,
)
from tapesplit.cuts.coarsen import coarsen
from tapesplit.cuts.copies import narrowest_cuts, with_copies
from tapesplit.cuts.flow import FLOW_BUDGET, MinimumCut, minimum_cut
from tapesplit.cuts.graph import TapeGraph, frontier_widths, on_frontiers, tape_ranks
from tapesplit.cuts.nesting import CutFamily, choose_nested, cut_family, spread_nested
from tapesplit.cuts.width_bounds import has_wide_paths

__all__ = ["Separator", "cut_graph"]

_NEAR_BOUND: Final = 1.05
"""A chain within this factor of minimal width times all edges needs no further candidates."""


_GLOBAL: Final = 3
"""How many times the budget of a window the flow through the whole graph may take: it counts most."""
_MOST_FOR_THRIFTY_ORDERS: Final = 6000
"""Vertices up to which orders that look at widths take less time than all others."""
_WORTH_CUTTING: Final = 1.1
"""Factor by which the cost of a plain mode must exceed that of some chain for cuts on one machine."""
_SPREAD_SHARES: Final = 20
"""Further cuts of minimal width are at least one of so many equal shares of the edges apart."""


Reason = Literal["minimal", "cost", "spread"]


@dataclass(frozen=True, slots=True)
class Separator:
    """Values of a tape through which every path from its inputs to its outputs passes.

    Attributes
    ----------
    vertices : tuple of int
        Tape entry indices, increasing.
    width : int
        Total number of elements of these values.
    reason : {"minimal", "cost", "spread"}
        Why the tape is cut here: no cut of the whole tape is narrower (proved by paths or a flow, unless that
        would take too long); the cheapest chain on one machine needs the cut; or it leaves much work on
        either side for each element of its width, which suits several machines.
    """

    vertices: tuple[int, ...]
    width: int
    reason: Reason


def cut_graph(
    graph: TapeGraph,
    *,
    max_links: int = 40,
    thorough: bool = True,
    spread: bool = False,
) -> tuple[Separator, ...]:
    """Find nested separators between which a tape is a Jacobian chain that is cheap to accumulate.

    Parameters
    ----------
    max_links : int
        Most links of the chain, that is one more than separators. Cuts that the cheapest chain on one machine
        needs come first; where they must be left out, those go that save least.
    thorough : bool
        Whether to compare cuts of several orders and minimum cuts, too, which takes some milliseconds,
        instead of those of the tape's order only.
    spread : bool
        Whether to look for cuts that let several machines share the work: then as many as `max_links` allows,
        spread over the tape. Otherwise there are no cuts if no chain can beat the plain tangent or adjoint
        mode by more than a tenth of its cost. To the cuts that the cheapest chain needs, others are added
        only if they have minimal width, at most half of that of the input and of the output, and are a
        twentieth of all edges apart: interfaces that readers of a program would name, too.

    Returns
    -------
    tuple of Separator
        Nested, from input to output, without the inputs and outputs themselves. Between any two of them some
        edges are spent; only a cut that is narrower than the input or output may stand next to it for free.

    Notes
    -----
    A chain costs at least the width of the minimum cut times all edges, since every step sweeps an edge in as
    many directions as some cut is wide; paths that are seen at once, or else a flow of as many elements,
    prove this before any cut is looked for.

    Candidates are compared by the cost of the whole chain (`choose_nested`), not by width. They are prefixes
    of several orders and minimum cuts, in the end one with values that both sides compute, see `copies`.
    Takes O(n + e) plus flows of bounded size; memory is linear.

    Examples
    --------
    >>> import numpy as np
    >>> autoencoder = TapeGraph(
    ...     entries=np.arange(5), widths=np.array([512, 256, 8, 256, 512]),
    ...     edges=np.array([0, 131072, 2048, 2048, 131072]),
    ...     child=np.arange(1, 5), parent=np.arange(4), inputs=1, output=4)
    >>> cut_graph(autoencoder, max_links=2)
    (Separator(vertices=(2,), width=8, reason='minimal'),)
    """
    least = min(graph.input_width, graph.output_width)
    if max_links < 2 or not least or not graph.total_edges:
        return ()
    enough = np.inf if spread else least / _WORTH_CUTTING
    if enough < 1 or _is_wide(graph, enough):
        return ()
    found = _cheapest_chain(coarsen(graph), enough, least, thorough=thorough)
    if found is None:
        return ()
    family, width = found.family, found.width
    needed = _limited(family, found.chosen, max_links - 1)
    cuts = needed
    if spread:
        cuts = spread_nested(family, needed, max_links)
    elif width <= least / 2:
        apart = max(1, graph.total_edges // _SPREAD_SHARES)
        cuts = spread_nested(family, needed, max_links, widest=width, apart=apart)
    fronts = on_frontiers(found.graph, family.members[cuts])
    reasons: list[Reason] = [
        "minimal" if family.widths[i] == width else "cost" if i in needed else "spread" for i in cuts
    ]
    return tuple(
        Separator(tuple(sorted(found.graph.entries[front].tolist())), width, reason)
        for front, width, reason in zip(fronts, family.widths[cuts].tolist(), reasons, strict=True)
    )


def _is_wide(graph: TapeGraph, width: float) -> bool:
    """Return whether no cut of the graph is narrower than this, as far as it is cheap to tell."""
    if frontier_widths(graph, tape_ranks(graph)).min() < width:
        return False
    if has_wide_paths(graph, width):
        return True
    elements = int(np.ceil(width))
    if elements * graph.size > FLOW_BUDGET or not graph.widths.all():  # no cut is found at empty arrays
        return False
    return not narrowest_cuts(graph, elements - 1)


def _global_cut(
    graph: TapeGraph, order: Order, enough: float, *, settled: bool, thorough: bool
) -> MinimumCut:
    """Cut the whole graph at its minimal width.

    If it is `settled` that no frontier is narrower than the narrowest prefixes of `order`, return these.
    Return them, too, if the minimal width is at least `enough` or would take too long to find, but with a
    lower bound as their width. A `thorough` search for a width that would take too long returns, instead of
    the prefixes, the narrowest lower sets in rounded widths.
    """
    ranks, widths = order
    live = int(widths.min())
    narrowest = np.flatnonzero(widths == live)
    earliest, latest = ranks <= narrowest[0], ranks <= narrowest[-1]
    if settled:
        return MinimumCut(live, earliest, latest)
    bound, most = int(min(live, enough)), _GLOBAL * FLOW_BUDGET // graph.size
    region = ranks == 0, np.ones(graph.size, dtype=np.bool_)
    if bound > most and thorough:
        unit = -(-bound // max(most, 1))
        if rounded := minimum_cut(_in_units(graph, unit), *region, bound // unit):
            _, earliest, latest = rounded
            bound = int((on_frontiers(graph, earliest[None]) @ graph.capacities)[0])
    bound = min(bound, most)
    return minimum_cut(graph, *region, bound) or MinimumCut(bound + 1, earliest, latest)


def _in_units(graph: TapeGraph, unit: int) -> TapeGraph:
    """Round the widths of a graph to units of some elements, at least one where there are any."""
    rounded = np.maximum(np.rint(graph.widths / unit), 1).astype(np.int64)
    return replace(graph, widths=np.where(graph.widths > 0, rounded, graph.widths))


def _is_forced(graph: TapeGraph, ranks: IntArray) -> bool:
    """Return whether the graph has no other order than that of the tape."""
    follows = ranks[graph.child] - ranks[graph.parent] == 1
    forced = np.zeros(int(ranks.max()) + 1, dtype=np.bool_)
    forced[ranks[graph.child[follows]]] = True
    return bool(forced[1:].all())


class _Chain(NamedTuple):
    """A graph, candidates for its cuts, those of the cheapest chain and what it costs in fma.

    No cut is narrower than `width`, as far as it is known.
    """

    graph: TapeGraph
    family: CutFamily
    chosen: list[int]
    cost: float
    width: int


def _cheapest_chain(graph: TapeGraph, enough: float, least: int, *, thorough: bool) -> _Chain | None:
    """Look for the cheapest chain; None if no cut is narrower than `enough`.

    A cut that is the frontier of no lower set, see `tapesplit.cuts.copies`, is taken only if a chain with it
    costs clearly less than the best other one or, if there is none, than a sweep with `least` directions.
    """
    order = order_by(graph, tape_ranks(graph))
    forced = _is_forced(graph, order.ranks)
    proved = has_wide_paths(graph, order.widths.min())
    # Strands that the tape computes one after the other are narrow all at once in the order by depth.
    depth = None if forced or proved else order_by(graph, depth_ranks(graph))
    narrow = order
    if depth and depth.widths.min() < order.widths.min():
        narrow, proved = depth, has_wide_paths(graph, depth.widths.min())
    cut = _global_cut(graph, narrow, enough, settled=forced or proved, thorough=thorough)
    brief = forced or not thorough
    best = _chain(graph, order, cut, brief=brief, depth=depth) if cut.width < enough else None
    bound = int(min(cut.width, enough, FLOW_BUDGET // graph.size)) - 1
    if bound < 1 or proved or (bound + 1 < narrow.widths.min() and has_wide_paths(graph, bound + 1)):
        return best
    cost = best.cost if best else least * graph.total_edges
    for members in narrowest_cuts(graph, bound):
        split, lower = with_copies(graph, members)
        through = MinimumCut(int(graph.widths[members].sum()), lower, lower)
        best = best and best._replace(width=through.width)
        other = _chain(split, order_by(split, tape_ranks(split)), through, brief=True)
        if other.cost * _WORTH_CUTTING < cost:
            best, cost = other, other.cost
    return best


def _chain(
    graph: TapeGraph, order: Order, cut: MinimumCut, *, brief: bool, depth: Order | None = None
) -> _Chain:
    """Collect candidates and choose the cuts of the cheapest chain.

    Candidates from other orders and from flows are added unless `brief`, and unless the chain is cheap enough
    without them. `depth` is the order by depth, if it is known already.
    """
    ranks = order.ranks
    members = [ranks == 0, np.ones(graph.size, dtype=np.bool_), cut.earliest, cut.latest]
    members += candidate_prefixes(graph, order)
    found = _chosen(graph, members, cut.width)
    if brief or found.cost <= _NEAR_BOUND * cut.width * graph.total_edges:
        return found
    depth = depth or order_by(graph, depth_ranks(graph))
    members += candidate_prefixes(graph, depth)
    if graph.size <= _MOST_FOR_THRIFTY_ORDERS:
        for backwards in (False, True):
            thrifty = order_by(graph, thrifty_ranks(graph, backwards=backwards))
            members += [thrifty.ranks <= t for t in minimal_prefixes(thrifty)]
    members += window_cuts(graph, depth, cut.width)
    return _chosen(graph, members, cut.width)


def _chosen(graph: TapeGraph, members: list[BoolArray], width: int) -> _Chain:
    """Return a family and the nested cuts of its cheapest chain."""
    family = cut_family(graph, members)
    cost, chosen = choose_nested(family)
    return _Chain(graph, family, chosen, cost, width)


def _cost(family: CutFamily, cuts: list[int]) -> float:
    """Return the cost of the chain between nested cuts in fma."""
    return choose_nested(family.subfamily([0, *cuts, len(family.widths) - 1]))[0]


def _limited(family: CutFamily, cuts: list[int], most: int) -> list[int]:
    """Drop cuts that only pass data along, and then those that save least; `most` may stay, or fewer."""
    cuts = _useful(family, cuts)
    while len(cuts) > most:
        fewer = ([c for c in cuts if c != dropped] for dropped in cuts)
        cuts = min(fewer, key=partial(_cost, family))
    return cuts


def _useful(family: CutFamily, cuts: list[int]) -> list[int]:
    """Keep the narrowest of cuts between which no edges are spent, and only if narrower than a free end."""
    edges, widths = family.edges, family.widths
    kept: list[int] = []
    for cut in cuts:
        if not kept or edges[kept[-1]] < edges[cut]:
            kept.append(cut)
        elif widths[cut] < widths[kept[-1]]:
            kept[-1] = cut
    behind = [cut for cut in kept if edges[cut] > edges[0] or widths[cut] < widths[0]]
    return [cut for cut in behind if edges[cut] < edges[-1] or widths[cut] < widths[-1]]
