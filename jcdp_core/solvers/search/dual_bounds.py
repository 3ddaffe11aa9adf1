"""Dual-feasible bounds: the arguments of bin packing, for trees that are not chosen yet.

After a time τ each machine is a bin of capacity K = makespan - τ, and what is left of the steps are items.
Items of a bin still fit if those shorter than ε are dropped and those longer than K - ε become K (ε ≤ K/2):
an item longer than K - ε shares its bin with short ones only. So if even the trees with the least rounded
work exceed K on every machine, the makespan is out of reach. Hard instances are those where a few long steps
do not pack well: the total work does not see that, the rounded work does.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from jcdp_core.solvers.search.labels import LabelTable, add_labels
from jcdp_core.solvers.search.steps import StepTable

__all__ = ["DualBounds"]

_GRID: Final = 24
"""Times τ for which bounds are tabulated, in equal parts of the makespan."""

_SMALL: Final = (45, 33, 25)
"""The ε that are tried, in percent of K. Smaller ones and staircase functions refute little else."""


class _Rounding(NamedTuple):
    """A rounding of items, and the least sums of rounded items of sub-chains."""

    weight: Callable[[int], int]
    labels: LabelTable


class DualBounds:
    """Refute makespans, with tables that are built where they are needed.

    Parameters
    ----------
    table : StepTable
        The steps.
    makespan : int
        A makespan (fma) that all later questions are at most.
    on_part : callable, optional
        Called before each sub-chain while tables are built; may raise to give up.

    References
    ----------
    Martello & Toth, Knapsack Problems (1990), Ch. 8, for the rounding; Fekete & Schepers, New classes of fast
    lower bounds for bin packing problems, Mathematical Programming 91 (2001), for dual-feasible functions.

    Examples
    --------
    Three links of 70 fma cannot be accumulated on two machines within 119:

    >>> from jcdp_core import JacobianChain, Problem
    >>> from jcdp_core.solvers.search.steps import single_link_steps
    >>> chain = JacobianChain.from_sizes([1, 1, 1, 1], [70, 70, 70])
    >>> bounds = DualBounds(single_link_steps(Problem(chain, machines=2)), 119)
    >>> bounds.refute(0, 119, [0, 0], [(0, 0), (4, 0), (8, 0)])
    True
    """

    __slots__ = ("_on_part", "_table", "_tables", "makespan")

    def __init__(self, table: StepTable, makespan: int, on_part: Callable[[], None] | None = None) -> None:
        self._on_part = on_part
        self._table = table
        self._tables: dict[tuple[int, int], _Rounding] = {}
        self.makespan = makespan

    def refute(
        self, time: int, makespan: int, available: Sequence[int], parts: Sequence[tuple[int, int]]
    ) -> bool:
        """Tell whether it is proved that a makespan cannot be reached from a state of the search.

        Parameters
        ----------
        time : int
            The present, in reversed time (fma).
        makespan : int
            What to refute (fma), more than `time` and at most that of the constructor.
        available : sequence of int
            When each machine becomes free, not before `time`.
        parts : sequence of (int, int)
            The sub-chains that are left, each with the time from which it may start.

        Returns
        -------
        bool
            True if it is proved; False says nothing.
        """
        slot = time * _GRID // self.makespan
        begin = slot * self.makespan // _GRID
        room = self.makespan - begin
        capacity = room * len(available)
        for share in _SMALL:
            weight, labels = self._tables.get((slot, share)) or self._rounding(slot, share)
            makespans, works = labels.makespans, labels.works
            total = sum([weight(end - begin) for end in available])
            for part, release in parts:
                if not makespans[part]:
                    add_labels(labels, self._table, part, weight=weight, on_part=self._on_part)
                total += works[part][bisect_right(makespans[part], makespan - release)]
            if total > capacity:
                return True
        return False

    def _rounding(self, slot: int, share: int) -> _Rounding:
        """Begin a table of the least sums of rounded items, for one time."""
        room = self.makespan - slot * self.makespan // _GRID
        small = room * share // 100

        def rounded(item: int) -> int:
            return room if item > room - small else item if item >= small else 0

        rounding = _Rounding(rounded, LabelTable.without_labels(self._table))
        self._tables[slot, share] = rounding
        return rounding
