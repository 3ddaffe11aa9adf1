"""Labels: for each sub-chain, what its steps can trade between makespan and work.

A label (L, W) stands for a tree of steps with work W whose makespan is at least L. Only labels that no other
one beats in both are kept, which are few (some ten for chains of ten links).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jcdp_core.solvers.search.steps import Step, StepTable

__all__ = ["LabelTable", "Tree", "add_labels", "label_table"]

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
    >>> from jcdp_core.solvers.search.steps import single_link_steps
    >>> chain = JacobianChain.from_sizes([9, 8, 7], [10, 11])
    >>> table = single_link_steps(Problem(chain, machines=2))
    >>> labels = label_table(table)
    >>> labels.makespans[table.whole], labels.works[table.whole]
    ([147], [8065, 147])
    """

    makespans: list[list[int]]
    works: list[list[int]]
    recipes: list[list[tuple[Step, tuple[int, ...]]]]

    @classmethod
    def without_labels(cls, table: StepTable) -> "LabelTable":
        """Return a table without any label, to which labels can be added."""
        too_much = 2 * table.machines * table.horizon + 1
        count = len(table.steps)
        return cls([[]] * count, [[too_much]] * count, [[]] * count)  # replaced where labels are added

    def tree(self, part: int, label: int) -> Tree:
        """Return a tree of steps that has a label.

        `part` is the number of the sub-chain. Each step comes after the one that needs its result.

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
    on_part: Callable[[], None] | None = None,
    most: int = 64,
    bounding: bool = True,
) -> LabelTable:
    """Build the labels of all sub-chains for the machines that can be of use.

    For `on_part`, `most` and `bounding` see `add_labels`. Where a sub-chain has more than `most` labels, some
    are joined to (least L, least W), which is still a bound, but W may then be less than the work of the
    label's tree; or some are left out.

    Notes
    -----
    O(q³) mergers of two sorted lists.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Problem
    >>> from jcdp_core.solvers.search.steps import single_link_steps
    >>> chain = JacobianChain.from_sizes([3, 1, 1, 2], [6, 8, 6])
    >>> table = single_link_steps(Problem(chain, machines=2))
    >>> label_table(table).makespans[table.whole]
    [17, 20]
    """
    labels = LabelTable.without_labels(table)
    add_labels(
        labels,
        table,
        table.whole,
        machines=table.machines,
        on_part=on_part,
        most=most,
        bounding=bounding,
    )
    return labels


def add_labels(
    labels: LabelTable,
    table: StepTable,
    part: int,
    *,
    machines: int | None = None,
    weight: Callable[[int], int] | None = None,
    on_part: Callable[[], None] | None = None,
    most: int = 64,
    bounding: bool = True,
) -> None:
    """Build the labels of a sub-chain and of those inside of it, the short ones first, where there are none.

    A step of duration c that needs one sub-chain gives L = c + L₁ and W = c + W₁; a product that needs two
    gives L = c + max(L₁, L₂, ⌈(W₁ + W₂) / machines⌉) and W = c + W₁ + W₂.

    Parameters
    ----------
    labels : LabelTable
        Where the labels are stored.
    table : StepTable
        The steps.
    part : int
        Number of the sub-chain.
    machines : int, optional
        Machines that share the work; without it L is the critical path.
    weight : callable, optional
        What a step of a given duration counts in W, for each machine that it occupies, at most twice the
        duration; by default the duration.
    on_part : callable, optional
        Called before each sub-chain; may raise to give up.
    most : int, optional
        Labels kept per sub-chain: a bound on the time for long chains, rarely reached below q = 16.
    bounding : bool, optional
        Whether the labels must stay lower bounds; else W stays the work of the label's tree, which makes
        better trees where there are many labels.
    """
    q = table.length
    first, last = divmod(part, q)
    for length in range(last - first + 1):
        for inside in range(first * (q + 1) + length, (last - length) * (q + 1) + length + 1, q + 1):
            if labels.makespans[inside]:
                continue
            if on_part is not None:
                on_part()
            _keep_best(_candidates(labels, table.steps[inside], machines, weight), labels, inside)
            if len(labels.recipes[inside]) > most:
                _thin(labels, inside, most, bounding)


def _candidates(
    labels: LabelTable, steps: Iterable[Step], machines: int | None, weight: Callable[[int], int] | None
) -> list[_Candidate]:
    """Return the labels that the last steps of a sub-chain give, by those of what each step needs."""
    candidates: list[_Candidate] = []
    for step in steps:
        duration, occupied, needs = step
        work = occupied * (duration if weight is None else weight(duration))
        if not needs:
            candidates.append((duration, work, step, ()))
        elif len(needs) == 1:
            makespans, works = labels.makespans[needs[0]], labels.works[needs[0]]
            for label, makespan in enumerate(makespans):
                candidates.append((duration + makespan, work + works[label + 1], step, (label,)))
        else:
            _join(candidates, labels, step, work, machines)
    return candidates


def _join(
    candidates: list[_Candidate], labels: LabelTable, step: Step, work: int, machines: int | None
) -> None:
    """Append the candidates of a product.

    For each time the operands take their least work within it: other pairs of labels cannot be better.
    """
    duration, _, (later, earlier) = step
    later_makespans, later_works = labels.makespans[later], labels.works[later]
    earlier_makespans, earlier_works = labels.makespans[earlier], labels.works[earlier]
    time = max(later_makespans[0], earlier_makespans[0])
    a, b = bisect_right(later_makespans, time), bisect_right(earlier_makespans, time)
    last_a, last_b = len(later_makespans), len(earlier_makespans)
    while True:
        rest = later_works[a] + earlier_works[b]
        bound, choices = time, (a - 1, b - 1)
        if machines is not None and rest > time * machines:
            bound = -(-rest // machines)
        if a < last_a and (b == last_b or later_makespans[a] <= earlier_makespans[b]):
            time = later_makespans[a]
            a += 1
            if b < last_b and earlier_makespans[b] == time:
                b += 1
        elif b < last_b:
            time = earlier_makespans[b]
            b += 1
        else:
            candidates.append((duration + bound, work + rest, step, choices))
            return
        if time > bound:  # else the next one is as short, with less work
            candidates.append((duration + bound, work + rest, step, choices))


def _keep_best(candidates: list[_Candidate], labels: LabelTable, part: int) -> None:
    """Store the candidates that no other one beats in makespan and work."""
    candidates.sort()
    least = labels.works[part][0]
    makespans: list[int] = []
    works, recipes = [least], []
    for makespan, work, step, choices in candidates:
        if work < least:
            least = work
            makespans.append(makespan)
            works.append(work)
            recipes.append((step, choices))
    labels.makespans[part], labels.works[part], labels.recipes[part] = makespans, works, recipes


def _thin(labels: LabelTable, part: int, most: int, bounding: bool) -> None:
    """Keep labels at about equal distances; those between are joined to the one before, or left out."""
    makespans, works, recipes = labels.makespans[part], labels.works[part], labels.recipes[part]
    count = len(recipes)
    if bounding:
        kept = [index * count // most for index in range(most)]
        ends = [*kept[1:], count]
    else:
        kept = [index * (count - 1) // (most - 1) for index in range(most)]
        ends = [index + 1 for index in kept]
    works[1:] = [works[end] for end in ends]  # works are shifted by one: the last of each group
    makespans[:] = [makespans[index] for index in kept]
    recipes[:] = [recipes[index] for index in kept]
