"""Dual-feasible bounds: the arguments of bin packing, for trees that are not chosen yet.

After a time τ each machine is a bin of capacity K = makespan - τ, and what is left of the steps are items.
A dual-feasible function f with capacity c maps items so that whatever fits into one bin sums to at most c. So
if even the trees with the least Σ f exceed c on every machine, the makespan is out of reach. Hard instances
are those where a few long steps do not pack well: the total work does not see that, these functions do.
"""

from collections.abc import Callable, Sequence

from jcdp_core.solvers.labels import LabelTable, label_table
from jcdp_core.solvers.steps import StepTable

__all__ = ["DualBounds"]

_GRID = 24
"""Times τ for which bounds are tabulated, in equal parts of the makespan."""

_Function = Callable[[int], int]


class DualBounds:
    """Refute makespans, with tables that are built when they are first needed.

    Parameters
    ----------
    table : StepTable
        The steps.
    makespan : int
        A makespan (fma) that all later questions are at most.

    References
    ----------
    Fekete & Schepers, New classes of fast lower bounds for bin packing problems, Mathematical Programming 91
    (2001), for the functions u and U; Martello & Toth, Knapsack Problems (1990), Ch. 8.

    Examples
    --------
    Three links of 60 fma cannot be accumulated on two machines within 119:

    >>> from jcdp_core import JacobianChain, Problem
    >>> from jcdp_core.solvers.steps import single_link_steps
    >>> chain = JacobianChain.from_sizes([1, 1, 1, 1], [60, 60, 60])
    >>> bounds = DualBounds(single_link_steps(Problem(chain, machines=2)), 119)
    >>> bounds.refute(0, 119, [0, 0], [(0, 0), (4, 0), (8, 0)])
    True
    """

    __slots__ = ("_capacity", "_tables", "makespan", "steps")

    def __init__(self, table: StepTable, makespan: int) -> None:
        self.steps = table
        self.makespan = makespan
        self._tables: dict[tuple[int, int], tuple[_Function, int, LabelTable]] = {}

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
        for number in range(len(_FUNCTIONS)):
            function, capacity, labels = self._tables.get((slot, number)) or self._build(slot, number)
            total = 0
            for end in available:
                total += function(end - begin)
            for part, release in parts:
                total += labels.least_work(part, makespan - release)
            if total > capacity * len(available):
                return True
        return False

    def _build(self, slot: int, number: int) -> tuple[_Function, int, LabelTable]:
        """Tabulate the least Σ f of all sub-chains for one time and one function."""
        room = self.makespan - slot * self.makespan // _GRID
        family, parameter = _FUNCTIONS[number]
        function, capacity = family(room, parameter)
        entry = function, capacity, label_table(self.steps, weight=function)
        self._tables[slot, number] = entry
        return entry


def _staircase(room: int, steps: int) -> tuple[_Function, int]:
    """Count how many times an item exceeds the fraction 1 / (steps + 1) of the bin; at most `steps` fit."""
    return lambda item: ((steps + 1) * item - 1) // room if item else 0, steps


def _rounding(room: int, divisor: int) -> tuple[_Function, int]:
    """Round items up to the whole bin, or down to nothing, if they leave less than room / divisor."""
    small = room // divisor
    return lambda item: room if item > room - small else item if item >= small else 0, room


_FUNCTIONS = (
    *((_staircase, steps) for steps in (1, 2, 3, 4, 5)),
    *((_rounding, divisor) for divisor in (8, 5, 4, 3)),
)
