"""Schedule one tree of steps: the quick upper bounds of the exact solver."""

from jcdp_core.schedulers.list_scheduling import start_times
from jcdp_core.solvers.search.labels import Tree
from jcdp_core.solvers.search.steps import Placement

__all__ = ["depth_first", "schedule_tree"]


def schedule_tree(tree: Tree, machines: int) -> tuple[int, list[Placement]]:
    """Whenever a machine is free, start the ready step from which the way to the end takes longest.

    Each step of the tree comes after the one that needs its result, and occupies at most `machines`. Returns
    the makespan (fma) and when each step starts, in the order of the tree.

    Notes
    -----
    O(p log p) for p steps that occupy one machine each.

    The order is that of `jcdp_core.schedulers.list_scheduling.highest_level_first`: by remaining cost, not by
    the number of remaining steps as in Hu's algorithm.

    References
    ----------
    R. L. Graham, Bounds on multiprocessing timing anomalies, SIAM J. Appl. Math. 17 (1969), on list
    schedules.

    Examples
    --------
    >>> tree = [(1, (9, 1, (2, 0)), -1), (2, (5, 1, ()), 0), (0, (4, 1, ()), 0)]
    >>> schedule_tree(tree, machines=1)[0], schedule_tree(tree, machines=2)[0]
    (18, 14)
    """
    steps = [(duration, occupied, user if user >= 0 else None) for _, (duration, occupied, _), user in tree]
    starts = start_times(steps, [-level for level in _levels(tree)], machines)
    makespan = starts[0] + steps[0][0]
    return makespan, [(start, part, step) for start, (part, step, _) in zip(starts, tree, strict=True)]


def depth_first(tree: Tree) -> tuple[int, list[Placement]]:
    """Run all steps on one machine, those of each sub-chain together, so that runs of eliminations can merge.

    Each step of the tree comes after the one that needs its result. Returns the work of all steps (fma), and
    when each of them starts.

    Examples
    --------
    >>> depth_first([(1, (9, 1, (0,)), -1), (0, (4, 1, ()), 0)])
    (13, [(0, 0, (4, 1, ())), (4, 1, (9, 1, (0,)))])
    """
    time = 0
    placements = []
    for part, step, _ in reversed(tree):
        placements.append((time, part, step))
        time += step[0]
    return time, placements


def _levels(tree: Tree) -> list[int]:
    """Return the time from the start of each step to the end if nothing ever waits."""
    levels: list[int] = []
    for _, step, user in tree:
        levels.append(step[0] + (levels[user] if user >= 0 else 0))
    return levels
