"""The width profile of a tape: how wide its live sets are, and how narrow it could be cut."""

from dataclasses import dataclass

import numpy as np

from tapesplit.flow import FLOW_BUDGET, minimum_cut
from tapesplit.graph import UNBOUNDED, IntArray, TapeGraph, frontier_widths, tape_ranks

__all__ = ["WidthProfile", "width_profile"]


@dataclass(frozen=True, slots=True, eq=False)
class WidthProfile:
    """Narrowest live set and minimum cut in equal shares of a tape's edges.

    Attributes
    ----------
    entries : (k,) array of int
        Tape entry at which each share ends.
    live : (k,) array of int
        Elements of the narrowest live set of the share; -1 if each holds a value that cannot be cut at.
    minimal : (k,) array of int
        Elements of the narrowest separator that computes everything before the share and nothing behind it.
    """

    entries: IntArray
    live: IntArray
    minimal: IntArray

    def __str__(self) -> str:
        """Draw a bar for each share: # up to the minimum cut, . up to the live set."""
        most = max(int(self.live.max(initial=1)), 1)
        lines = [f"{'entry':>8} {'live':>9} {'minimal':>9}  elements"]
        for entry, live, minimal in zip(self.entries, self.live, self.minimal, strict=True):
            hashes = int(np.ceil(40 * max(minimal, 0) / most))
            dots = int(np.ceil(40 * max(live, 0) / most)) - hashes
            lines.append(f"{entry:>8} {live:>9} {minimal:>9}  {'#' * hashes}{'.' * dots}")
        return "\n".join(lines)


def width_profile(graph: TapeGraph, *, shares: int = 20) -> WidthProfile:
    """Compare the live widths of a tape with the minimal widths that reordering would allow.

    Parameters
    ----------
    graph : TapeGraph
        The graph of the tape.
    shares : int
        Number of parts of about equal edges that the tape is divided into; small tapes have fewer.

    Returns
    -------
    WidthProfile
        One row a share; ``str()`` draws it.

    Notes
    -----
    Takes a maximum flow for each share. Where it would take seconds the live width stands for the minimum.

    Examples
    --------
    Two strands are computed side by side, and each is narrow where the other one is wide:

    >>> import numpy as np
    >>> strands = TapeGraph(
    ...     entries=np.arange(6), widths=np.array([8, 2, 6, 6, 2, 8]), edges=np.array([0, 9, 9, 9, 9, 9]),
    ...     child=np.array([1, 2, 3, 4, 5, 5]), parent=np.array([0, 0, 1, 2, 3, 4]),
    ...     inputs=(0,), outputs=(5,))
    >>> print(width_profile(strands, shares=1))
       entry      live   minimal  elements
           5         8         4  ####################....................
    """
    ranks = tape_ranks(graph)
    widths = frontier_widths(graph, ranks)
    edges = np.cumsum(np.bincount(ranks, weights=graph.edges))
    ends = np.unique(np.searchsorted(edges, edges[-1] * np.arange(1, shares + 1) / shares))
    rows = []
    start = 0
    for end in ends.tolist():
        live = minimal = int(widths[start : end + 1].min())
        inside = int(np.count_nonzero((ranks > start) & (ranks <= end)))
        limit = min(live, FLOW_BUDGET // max(inside, 1))
        if cut := minimum_cut(graph, ranks <= start, ranks <= end, limit, backend="scipy"):
            minimal = cut.width
        rows.append((graph.entries[ranks <= end][-1], live, minimal))
        start = end
    table = np.array(rows, dtype=np.int64)
    table[table >= UNBOUNDED] = -1
    return WidthProfile(*table.T)
