"""The best schedule of one given sequence, by depth-first search over its list schedules.

Some list schedule is optimal: in an in-tree each completion releases at most one step, so the steps that are
running and what they lead to never need more machines than are busy now. A ready step that would be started
later while a machine is idle can therefore start now on that machine, and nothing else moves. Hence the
search only decides which ready steps start when there are more of them than free machines, and never whether
to wait.
"""

from collections.abc import Iterator
from itertools import combinations
from operator import attrgetter
from time import perf_counter
from typing import Final, NamedTuple

from jcdp_core.schedulers.list_scheduling import highest_level_first, hu
from jcdp_core.schedulers.scheduling import Scheduling, machine_count, place, simple_bound, tails
from jcdp_core.sequence import EliminationSequence

__all__ = ["branch_and_bound"]

_STATES: Final = 1_000_000
"""States remembered, some hundred megabytes; then the search forgets them and begins anew."""


class _Node(NamedTuple):
    """Describe the search at one event: nothing has been decided about the ready steps."""

    time: int
    ready: tuple[int, ...]
    running: tuple[tuple[int, int], ...]  # (finish, step), ascending
    unfinished: int  # bit mask: waiting, ready or running steps
    starts: tuple  # linked list: (step, start, the decisions before)


def branch_and_bound(
    sequence: EliminationSequence, machines: int | None, time_limit: float | None = None
) -> Scheduling:
    """Schedule optimally, or as well as the time allows.

    Notes
    -----
    Exponential in the worst case. Bounds by paths and by work and a table of dominated states keep sequences
    of 12 links within some 50 ms and of 20 links mostly within a second.

    References
    ----------
    Märtens & Naumann 2025, Sec. 3: the problem P_m | intree | C_max.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> sequence = solve(JacobianChain.from_sizes([3, 2, 5], [7, 11])).sequence
    >>> branch_and_bound(sequence, 2).optimal
    True
    """
    count = machine_count(sequence, machines)
    quick = hu(sequence, count).schedule, highest_level_first(sequence, count).schedule
    best = min(quick, key=attrgetter("makespan"))
    bound = simple_bound(sequence, count)
    if best.makespan == bound:
        return Scheduling(best, bound, nodes=0)
    deadline = None if time_limit is None else perf_counter() + time_limit
    search = _Search(sequence, count, best.makespan)
    finished = search.run(bound, deadline)
    if search.best_starts is not None:
        best = place(sequence, search.best_starts, count)
    return Scheduling(best, best.makespan if finished else bound, search.nodes)


class _Search:
    """Keep the best start times and the dominance table of one search."""

    def __init__(self, sequence: EliminationSequence, machines: int, best: int) -> None:
        self.costs, self.machines = sequence.costs, machines
        self.successors, self.predecessors = sequence.successors, sequence.predecessors
        self.tails = tails(sequence)
        self.by_rest = sorted(range(len(sequence)), key=self._rest, reverse=True)
        self.best = best
        self.best_starts: list[int] | None = None
        self.nodes = 0
        self.seen: dict[tuple[int, tuple[int, ...]], list[tuple[int, ...]]] = {}
        self.remembered = 0

    def run(self, bound: int, deadline: float | None) -> bool:
        """Search until the bound is met or nothing is left; return False if the time is up before."""
        leaves = tuple(index for index, needed in enumerate(self.predecessors) if not needed)
        stack = [iter([_Node(0, leaves, (), (1 << len(self.costs)) - 1, ())])]
        while stack and self.best > bound:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
                continue
            if deadline is not None and perf_counter() > deadline:
                return False
            self.nodes += 1
            if self._bound(node) >= self.best:
                continue
            if node.unfinished == 0:
                self._improve(node)
            elif not self._dominated(node):
                stack.append(self._children(node))
        return True

    def _rest(self, step: int) -> int:
        """Return the cost of the path after a step."""
        return self.tails[step] - self.costs[step]

    def _improve(self, node: _Node) -> None:
        """Keep the start times of a complete schedule that is better than all before."""
        self.best, starts, decisions = node.time, [0] * len(self.costs), node.starts
        while decisions:
            step, start, decisions = decisions
            starts[step] = start
        self.best_starts = starts

    def _children(self, node: _Node) -> Iterator[_Node]:
        """Start all ready steps, or each set of as many as there are free machines, the most urgent first."""
        free = self.machines - len(node.running)
        urgent = sorted(node.ready, key=self.tails.__getitem__, reverse=True)
        for chosen in combinations(urgent, min(free, len(urgent))):
            yield self._child(node, chosen)

    def _child(self, node: _Node, chosen: tuple[int, ...]) -> _Node:
        """Start the chosen steps and go on to the next completion."""
        starts = node.starts
        for step in chosen:
            starts = (step, node.time, starts)
        running = sorted([*node.running, *((node.time + self.costs[step], step) for step in chosen)])
        time = running[0][0]
        finished = [step for finish, step in running if finish == time]
        unfinished = node.unfinished
        for step in finished:
            unfinished ^= 1 << step
        ready = [step for step in node.ready if step not in chosen]
        ready += [
            successor
            for successor in {self.successors[step] for step in finished}
            if successor is not None and not any(unfinished >> p & 1 for p in self.predecessors[successor])
        ]
        return _Node(time, tuple(ready), tuple(running[len(finished) :]), unfinished, starts)

    def _bound(self, node: _Node) -> int:
        """Bound the makespan of all completions of a node from below, by paths and by work.

        The work bound, for each length of a path: take the unfinished steps with at least such a path after
        them. The machines need at least their work divided by the number of machines, and after the last of
        these steps comes such a path.
        """
        left = {step: finish - node.time for finish, step in node.running}
        paths = [left[step] + self._rest(step) for step in left]
        bound = max(paths + [self.tails[step] for step in node.ready], default=0)
        work = 0
        for step in self.by_rest:
            if node.unfinished >> step & 1:
                work += left.get(step, self.costs[step])
                bound = max(bound, -(-work // self.machines) + self._rest(step))
        return node.time + bound

    def _dominated(self, node: _Node) -> bool:
        """Tell whether the same steps have been started before, and none of them finished later."""
        running = sorted((step, finish) for finish, step in node.running)
        key = node.unfinished, tuple(step for step, _ in running)
        times = (node.time, *(finish for _, finish in running))
        if self.remembered >= _STATES:
            self.seen.clear()
            self.remembered = 0
        known = self.seen.setdefault(key, [])
        if any(all(a <= b for a, b in zip(other, times, strict=True)) for other in known):
            return True
        known.append(times)
        self.remembered += 1
        return False
