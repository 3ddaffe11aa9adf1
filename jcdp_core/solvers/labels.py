"""Labels: for each sub-chain, what its steps can trade between makespan and work.

A label (L, W) stands for a tree of steps with work W whose makespan is at least L. Only labels that no other
one beats in both are kept, which are few (some ten for chains of ten links).
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from jcdp_core.solvers.steps import Step, StepTable

__all__ = ["MOST_LABELS", "LabelTable", "Tree", "label_table"]

MOST_LABELS = 64
"""Labels kept per sub-chain by default: a bound on the time for long chains, rarely reached below q = 16."""

Tree = list[tuple[int, Step, int]]
"""Steps as (sub-chain, step, index of the step that needs its result), the last step first, with index -1."""

_Candidate = tuple[int, int, Step, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class LabelTable:
    """Hold the labels of all sub-chains by ascending makespan and descending work.

    Parameters
    ----------
    makespans : list of list of int, length q²
        L of each label (fma), ascending.
    works : list of list of int, length q²
        More work than the machines can ever do, then W of each label, descending, so that the number of
        makespans up to t is the index of the least work with which the sub-chain may be done in a time t.
    recipes : list of list of tuple, length q²
        The last step of each label's tree, and the labels of its operands.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Problem
    >>> from jcdp_core.solvers.steps import single_link_steps
    >>> chain = JacobianChain.from_sizes([9, 8, 7], [10, 11])
    >>> table = single_link_steps(Problem(chain, machines=2))
    >>> labels = label_table(table, machines=2)
    >>> labels.makespans[table.whole], labels.works[table.whole]
    ([147], [8065, 147])
    """

    makespans: list[list[int]]
    works: list[list[int]]
    recipes: list[list[tuple[Step, tuple[int, ...]]]]

    def tree(self, part: int, label: int) -> Tree:
        """Return a tree of steps that has a label.

        Parameters
        ----------
        part : int
            Number of the sub-chain.
        label : int
            Index of the label.

        Returns
        -------
        Tree
            Its steps, each after the one that needs its result.

        Examples
        --------
        >>> LabelTable([[5]], [[99, 5]], [[((5, 1, ()), ())]]).tree(0, 0)
        [(0, (5, 1, ()), -1)]
        """
        tree: Tree = []
        pending = [(part, label, -1)]
        while pending:
            part, label, user = pending.pop()
            step, labels = self.recipes[part][label]
            pending += [(operand, choice, len(tree)) for operand, choice in zip(step[2], labels, strict=True)]
            tree.append((part, step, user))
        return tree


def label_table(
    table: StepTable,
    *,
    machines: int | None = None,
    weight: Callable[[int], int] | None = None,
    on_part: Callable[[], None] | None = None,
    most: int = MOST_LABELS,
) -> LabelTable:
    """Build the labels of all sub-chains, the short ones first.

    A step of duration c that needs one sub-chain gives L = c + L₁ and W = c + W₁; a product that needs two
    gives L = c + max(L₁, L₂, ⌈(W₁ + W₂) / machines⌉) and W = c + W₁ + W₂.

    Parameters
    ----------
    table : StepTable
        The steps.
    machines : int, optional
        Machines that share the work; without it L is the critical path.
    weight : callable, optional
        What a step of a given duration counts in W, for each machine that it occupies, at most twice the
        duration; by default the duration.
    on_part : callable, optional
        Called before each sub-chain; may raise to give up.
    most : int, optional
        Labels kept per sub-chain.

    Returns
    -------
    LabelTable
        Where a sub-chain has more than `most` labels, some are joined to (least L, least W), which is
        still a bound, but W may then be less than the work of the label's tree.

    Notes
    -----
    O(q³) mergers of two sorted lists at most; mostly far fewer, since few steps are near the best.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Problem
    >>> from jcdp_core.solvers.steps import single_link_steps
    >>> chain = JacobianChain.from_sizes([3, 1, 1, 2], [6, 8, 6])
    >>> table = single_link_steps(Problem(chain, machines=2))
    >>> label_table(table, machines=2).makespans[table.whole]
    [17, 20]
    """
    q = table.length
    too_much = 2 * table.machines * table.horizon + 1
    labels = LabelTable(
        [[] for _ in table.steps], [[too_much] for _ in table.steps], [[] for _ in table.steps]
    )
    for length in range(q):
        for part in range(length, (q - length) * q, q + 1):
            if on_part is not None:
                on_part()
            front: list[_Candidate] = []
            makespans, works = labels.makespans[part], labels.works[part]
            for corner in sorted(_corners(table.steps[part], labels, machines, weight)):
                soonest, least, step, work = corner
                if works[bisect_right(makespans, soonest)] >= least:
                    front = _front(front + _candidates(labels, step, work, machines))
                    makespans[:] = [candidate[0] for candidate in front]
                    works[1:] = [candidate[1] for candidate in front]
            labels.recipes[part][:] = [candidate[2:] for candidate in front]
            if len(front) > most:
                _thin(labels, part, most)
    return labels


def _corners(
    steps: tuple[Step, ...],
    labels: LabelTable,
    machines: int | None,
    weight: Callable[[int], int] | None,
) -> list[tuple[int, int, Step, int]]:
    """Return the least makespan and the least work with which each step can end, and its own work.

    No label has both in general. But a step is of no use if other labels beat even that.
    """
    corners = []
    for step in steps:
        duration, occupied, needs = step
        work = occupied * (duration if weight is None else weight(duration))
        soonest = least = 0
        for need in needs:
            soonest = max(soonest, labels.makespans[need][0])
            least += labels.works[need][-1]
        if machines is not None and len(needs) > 1:
            soonest = max(soonest, -(-least // machines))
        corners.append((duration + soonest, work + least, step, work))
    return corners


def _candidates(labels: LabelTable, step: Step, work: int, machines: int | None) -> list[_Candidate]:
    """Return the labels that a step gives, from those of its operands.

    For each time two operands take their least work within it: other pairs of labels cannot be better.
    """
    duration, _, needs = step
    if not needs:
        return [(duration, work, step, ())]
    if len(needs) == 1:
        makespans, works = labels.makespans[needs[0]], labels.works[needs[0]]
        return [
            (duration + makespans[label], work + works[label + 1], step, (label,))
            for label in range(len(makespans))
        ]
    later_makespans, later_works = labels.makespans[needs[0]], labels.works[needs[0]]
    earlier_makespans, earlier_works = labels.makespans[needs[1]], labels.works[needs[1]]
    soonest = max(later_makespans[0], earlier_makespans[0])
    candidates = []
    for time in sorted({*later_makespans, *earlier_makespans}):
        if time >= soonest:
            a, b = bisect_right(later_makespans, time), bisect_right(earlier_makespans, time)
            rest = later_works[a] + earlier_works[b]
            bound = time if machines is None else max(time, -(-rest // machines))
            candidates.append((duration + bound, work + rest, step, (a - 1, b - 1)))
    return candidates


def _front(candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the candidates that no other one beats in makespan and work, by ascending makespan."""
    candidates.sort()
    front: list[_Candidate] = []
    for candidate in candidates:
        if not front or candidate[1] < front[-1][1]:
            front.append(candidate)
    return front


def _thin(labels: LabelTable, part: int, most: int) -> None:
    """Join neighboring labels until few are left."""
    makespans, works, recipes = labels.makespans[part], labels.works[part], labels.recipes[part]
    kept = [index * len(recipes) // most for index in range(most)]
    ends = [*kept[1:], len(recipes)]
    works[1:] = [works[end] for end in ends]  # works are shifted by one: the last of each group
    makespans[:] = [makespans[index] for index in kept]
    recipes[:] = [recipes[index] for index in kept]
