"""Branch and bound in reversed time: choosing the tree of steps and its schedule in one search.

Read backwards, a schedule begins with the step that makes the whole chain's Jacobian, and each step releases
the one or two sub-chains that it needs. A state of the search is a time, the steps that run, and the
sub-chains that wait for a machine. Branching takes one waiting sub-chain and starts one of its steps, or lets
it wait.

Three rules cut the tree. (1) *Left shift*: a sub-chain that waits may start a step only if the step was short
of machines just before; otherwise it could have started earlier. (2) *Bounds*: the machines must hold the
least work of the sub-chains that are left, and dual-feasible functions of it. (3) *Memory*: a state whose
sub-chains are those of a state A that was explored completely, and whose release times and machines are
nowhere earlier, is dropped.

A state in which only a few accumulations are left is not branched on: what remains is to pack them.

Why (3) may ignore that rule (1) restricts A: among the optimal schedules take the one whose start times,
sorted from the last to the first, are lexicographically least. If a state B on its way is dropped because of
A, put A's beginning in front of its rest. No step of the rest can start earlier now, or the schedule would
not have been the least; so the rest obeys rule (1) after A, with the same start times as before. If that is
cut below A, it is because of a state that was completed before. So each replacement leads to a part of the
tree that was explored earlier, and the last of them is not cut.
"""

from bisect import bisect_right, insort
from collections.abc import Callable
from operator import le
from typing import Any, Final, NamedTuple, TypeAlias

from jcdp_core.solvers.search.dual_bounds import DualBounds
from jcdp_core.solvers.search.labels import LabelTable
from jcdp_core.solvers.search.packing import pack
from jcdp_core.solvers.search.steps import Placement, Step, StepTable

__all__ = ["ReversedSearch"]

_ALIKE: Final = 150
"""States remembered for each set of sub-chains."""

_STATES: Final = 1_000_000
"""States remembered in all, some hundred megabytes; then the search forgets them and begins anew."""

_USUAL: Final = 32
"""Numbers in a state that count as one more remembered state: with very many machines there are many."""

_DECISIONS: Final = 16
"""Decisions in a row that count as one more node: many machines can share like sub-chains in very many
ways."""

_PACKED: Final = 5
"""Accumulations up to which they are packed, not searched, when nothing else is left."""

_DUAL_BOUNDS_AFTER: Final = 1
"""Nodes after which building the tables of the dual-feasible bounds pays, in multiples of q³."""

_DUAL_BOUNDS_LAST: Final = 4
"""Nodes for which these tables are kept although the makespan has become smaller, in multiples of q³."""

_Running: TypeAlias = tuple[tuple[int, int, tuple[int, ...]], ...]
"""Steps that run, by ascending end: end, machines occupied, sub-chains released then."""

_Waiting: TypeAlias = tuple[tuple[int, int], ...]
"""Sub-chains to decide on, each with a number of machines: rule (1) allows only steps that occupy more."""

_Trail: TypeAlias = tuple[int, int, Step, Any] | None
"""Time, sub-chain, step, and the trail of the steps before."""

_State: TypeAlias = tuple[int, _Running, int, _Waiting, tuple[int, ...], int, _Trail]
"""Time, running steps, free machines, sub-chains to decide on, those that wait on, load, the way here.

The load is the time that machines have spent and must at least still spend, if the makespan is to become
smaller. States from before the last improvement may have a lower one: it is computed anew at each event.
"""


class _Explored(NamedTuple):
    """A mark below a state's children on the stack: once it is on top, they are done; remember the state."""

    known: list[list[int]]
    vector: list[int]


class ReversedSearch:
    """Search for a makespan below a known one, until there is none or a limit is reached.

    Parameters
    ----------
    table : StepTable
        The steps.
    labels : LabelTable
        Their labels for the same machines.
    makespan : int
        Makespan to improve on (fma), at most the horizon of the steps.
    bound : int, optional
        Lower bound of the makespan (fma): the search ends where it is reached.
    on_part : callable, optional
        Called before each sub-chain while tables of bounds are built; may raise to give up.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Problem
    >>> from jcdp_core.solvers.search.labels import label_table
    >>> from jcdp_core.solvers.search.steps import single_link_steps
    >>> table = single_link_steps(Problem(JacobianChain.from_sizes([3, 2, 5], [7, 11]), machines=2))
    >>> search = ReversedSearch(table, label_table(table), makespan=100)
    >>> search.run(), search.makespan, search.placements
    (True, 47, [(14, 1, (33, 1, (0,))), (0, 0, (14, 1, ()))])
    """

    __slots__ = (
        "_branching",
        "_dual",
        "_dual_until",
        "_labels",
        "_memory",
        "_on_part",
        "_remembered",
        "_table",
        "_trail",
        "_widest",
        "bound",
        "makespan",
        "nodes",
    )

    def __init__(
        self,
        table: StepTable,
        labels: LabelTable,
        makespan: int,
        bound: int = 0,
        on_part: Callable[[], None] | None = None,
    ) -> None:
        self._table = table
        self._labels = labels
        self._on_part = on_part
        self.bound = bound
        self._widest: list[int] = []
        self._branching = 0
        self._memory: dict[int, list[list[int]]] = {}
        self._remembered = 0
        self._dual: DualBounds | None = None
        self._dual_until = 0
        self._trail: _Trail = None
        self.makespan = makespan
        self.nodes = 0

    @property
    def placements(self) -> list[Placement]:
        """The steps of the best schedule found, in proper time; empty if nothing better was found."""
        placements = []
        trail = self._trail
        while trail is not None:
            time, part, step, trail = trail
            placements.append((self.makespan - time - step[0], part, step))
        return placements[::-1]

    def run(self, on_node: Callable[[int], bool] = lambda _: True) -> bool:
        """Search, and return whether it is proved that `makespan` cannot be improved.

        `on_node` gets the number of nodes at each; the search stops where it returns False.
        """
        if self.makespan <= self.bound:
            return True
        table = self._table
        whole = table.whole
        self._widest = [max([step[1] for step in steps], default=0) for steps in table.steps]
        links = range(0, table.length**2, table.length + 1)
        # Where the first accumulation occupies one machine, it is the only step.
        self._branching = ~sum([1 << part for part in links if table.steps[part][0][1] == 1])
        load = self._labels.works[whole][bisect_right(self._labels.makespans[whole], self.makespan - 1)]
        stack: list[_State | _Explored] = [(0, (), table.machines, ((whole, 0),), (), load, None)]
        decisions = 0
        while stack and self.makespan > self.bound:
            state = stack.pop()
            if isinstance(state, _Explored):
                self._remember(state)
                continue
            decides = state[2] and state[3]
            if not decides and not state[1]:
                continue
            decisions = decisions + 1 if decides else 0
            if decisions % _DECISIONS == 0:
                self.nodes += 1
                if not on_node(self.nodes):
                    return False
            stack += self._children(state) if decides else self._next_event(state)
        return True

    def _remember(self, explored: _Explored) -> None:
        """Store a state, unless there are very many with the same sub-chains."""
        if self._remembered >= _STATES:
            self._memory.clear()
            self._remembered = 0
        if len(explored.known) < _ALIKE:
            insort(explored.known, explored.vector)
            self._remembered += 1 + len(explored.vector) // _USUAL

    def _next_event(self, state: _State) -> list[_State | _Explored]:
        """Advance to the next time at which steps end; return that state, and what will remember it.

        Without a free machine before, all that wait may start then; else only what is released then, and
        steps that the free machines were too few for.
        """
        _, running, idle, waiting, held, _, trail = state
        time, target = running[0][0], self.makespan - 1
        if running[-1][0] > target:
            return []
        stale = held + tuple([part for part, _ in waiting])
        available = [time] * idle
        parts = [(part, time) for part in stale]
        for end, occupied, needs in running:
            available += (end,) * occupied
            if needs:
                parts += [(part, end) for part in needs]
        makespans, works = self._labels.makespans, self._labels.works
        load, key = sum(available), 0
        for part, release in parts:
            load += works[part][bisect_right(makespans[part], target - release)]
            key |= 1 << part
        if load > self._table.machines * target:
            return []
        if len(parts) <= _PACKED and not key & self._branching:
            self._pack(available, parts, trail)
            return []
        explored = self._unless_explored(key, available, parts)
        if explored is None or self._refuted(time, available, parts):
            return []
        candidates = [(part, 0) for part, release in parts[len(stale) :] if release == time]
        candidates += [(part, idle) for part in stale if self._widest[part] > idle]
        if len(candidates) > 1:
            candidates.sort(key=lambda candidate: -makespans[candidate[0]][0])
        held = tuple([part for part in stale if self._widest[part] <= idle])
        running = tuple([item for item in running if item[0] > time])
        return [explored, (time, running, available.count(time), tuple(candidates), held, load, trail)]

    def _unless_explored(
        self, key: int, available: list[int], parts: list[tuple[int, int]]
    ) -> _Explored | None:
        """Return what will remember a state, or None if a remembered state rules it out."""
        vector = [0, *available, *[release for _, release in sorted(parts)]]
        vector[0] = sum(vector)
        known = self._memory.setdefault(key, [])
        # Sorted with their sums in front: what is nowhere later can only be among the first ones.
        for other in known[: bisect_right(known, vector)]:
            if all(map(le, other, vector)):
                return None
        return _Explored(known, vector)

    def _pack(self, available: list[int], parts: list[tuple[int, int]], trail: _Trail) -> None:
        """Find the best end of a state of which only single accumulations are left."""
        steps = self._table.steps
        ordered = sorted(parts, key=lambda item: (item[1], -steps[item[0]][0][0]))
        jobs = [(release, steps[part][0][0]) for part, release in ordered]
        while starts := pack(jobs, available, self.makespan - 1):
            longer, ends = trail, list(available)
            for start, (part, _) in zip(starts, ordered, strict=True):
                longer = start, part, steps[part][0], longer
                ends.append(start + steps[part][0][0])
            self._finish(max(ends), longer)

    def _refuted(self, time: int, available: list[int], parts: list[tuple[int, int]]) -> bool:
        """Ask the dual-feasible bounds, whose tables are for a makespan slightly above the present one."""
        target = self.makespan - 1
        if self.nodes <= _DUAL_BOUNDS_AFTER * self._table.length**3 or time >= target:
            return False
        if self._dual is None or (target < self._dual.makespan and self.nodes > self._dual_until):
            self._dual = DualBounds(self._table, target, self._on_part)
            self._dual_until = self.nodes + _DUAL_BOUNDS_LAST * self._table.length**3
        return self._dual.refute(time, target, available, parts)

    def _children(self, state: _State) -> list[_State]:
        """Decide on the first sub-chain: let it wait, or start a step of it; the best choice comes last."""
        time, running, free, waiting, held, load, trail = state
        (part, beyond), waiting = waiting[0], waiting[1:]
        makespans, works = self._labels.makespans, self._labels.works
        target = self.makespan - 1
        left, room = target - time, self._table.machines * target
        others = load - works[part][bisect_right(makespans[part], left)]
        options = []
        for step in self._table.steps[part]:
            duration, occupied, needs = step
            if beyond < occupied <= free and duration <= left:
                total = others + occupied * duration
                for other in needs:
                    total += works[other][bisect_right(makespans[other], left - duration)]
                if total <= room:
                    options.append((total, step))
        options.sort(reverse=True)
        children: list[_State] = []
        if running and not waiting:
            # Nothing else can start now: the sub-chain and the machines wait for the next event.
            event = running[0][0]
            others += free * (event - time) + works[part][bisect_right(makespans[part], target - event)]
        if waiting or (running and others <= room):
            children.append((time, running, free, waiting, (*held, part), load, trail))
        for total, step in options:
            duration, occupied, needs = step
            longer = time, part, step, trail
            if needs or waiting or held or any(item[2] for item in running):
                item = time + duration, occupied, needs
                place = bisect_right(running, item)
                then, idle = (*running[:place], item, *running[place:]), free - occupied
                if waiting or total + idle * (then[0][0] - time) <= room:
                    children.append((time, then, idle, waiting, held, total, longer))
            else:
                self._finish(max([time + duration, *(end for end, _, _ in running)]), longer)
        return children

    def _finish(self, makespan: int, trail: _Trail) -> None:
        """Keep a complete schedule if it is the best so far."""
        if makespan < self.makespan:
            self.makespan, self._trail = makespan, trail
