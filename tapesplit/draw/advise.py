"""What would make the Jacobian of a function cheaper, in sentences."""

from dataclasses import replace
from itertools import pairwise
from typing import Final, cast

from jcdp_core import JacobianChain, Mode, SolverName, solve
from tapesplit.draw.numbers import count, plural, ratio, seconds_text
from tapesplit.draw.rows import StepRow, cheaper_mode, operation_counts, shared_seeds, step_rows
from tapesplit.planning.plan import JacobianPlan
from tapesplit.rules import find_rule

__all__ = ["advice"]


def advice(plan: JacobianPlan) -> tuple[str, ...]:
    r"""Say what bounds the plan, and what change of the function would lower it.

    Parameters
    ----------
    plan
        The plan.

    Returns
    -------
    tuple of str
        Sentences, the most useful first.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> plan = parallel_jacobian(lambda x: np.sin(x) * x, machines=1).plan(np.ones(3))
    >>> print(*advice(plan), sep="\n")
    One short sweep of 3 directions: there is little to gain.
    """
    known = _asked(plan), _recording(plan), _mispredicted(plan)
    # How wide interfaces are says little where the mode is a poor one, or the time goes elsewhere.
    interface = "" if any(known) else _interface(plan)
    return tuple(filter(None, (*known, _loops(plan), interface, _bottleneck(plan))))


def _asked(plan: JacobianPlan) -> str:
    """Say what the mode costs that the user has asked for."""
    mode, (cheaper, cost) = plan.asked_mode, cheaper_mode(plan)
    if mode is None or plan.makespan <= cost:
        return ""
    return (
        f"A sweep in {mode.name.lower()} mode was asked for, {count(plan.makespan)} fma. "
        f"One in {cheaper} mode would take {count(cost)}; method='auto' chooses."
    )


def _recording(plan: JacobianPlan) -> str:
    """Say so if the last call spent most of its time on running the function."""
    run = plan.last_run
    total = run.recording + run.finding + max((record.finish for record in run.records), default=0.0)
    if run.recording <= max(_MOST * total, _NOTICEABLE):
        return ""
    widths = plan.graph.widths[plan.graph.inputs :]
    operations = len(widths)
    change = "that is the time of the function itself"
    if run.recording < _SMALL_OPERATION * operations:
        on_arrays = ", on arrays instead of single numbers," if 2 * (widths == 1).sum() > operations else ""
        change = f"fewer operations{on_arrays} would make it shorter"
    return (
        f"Recording took {run.recording / total:.0%} of the last call, {seconds_text(run.recording)} for "
        f"{plural(operations, 'operation')}: {change}."
    )


_MOST: Final = 0.5
"""Part of the time of a call that recording must take to be worth a sentence."""
_SMALL_OPERATION: Final = 5.0e-6
"""Seconds for each operation below which most of the time is that of recording it."""


def _mispredicted(plan: JacobianPlan) -> str:
    """Name the task that took far longer than predicted in the last run."""
    if plan.last_run.runs < 2:  # the first run fills caches: up to 4 × the time where that is short
        return ""
    runs = [(record, plan.tasks[record.index]) for record in plan.last_run.records]
    late = [(run.finish - run.start, task.finish - task.start, run.index + 1) for run, task in runs]
    measured, predicted, number = max(late, default=(0.0, 0.0, 0), key=lambda times: times[0] - times[1])
    if not predicted or measured <= max(_LATE * predicted, predicted + _NOTICEABLE):
        return ""
    return (
        f"Task {number} took {ratio(measured / predicted)} × its prediction in the last run. If other tasks "
        "are as late, fewer multiply-adds may not help: use a profiler to see what takes long."
    )


_LATE: Final = 4.0
"""Ratio of measured to predicted time from which on predictions are no ground for advice."""
_NOTICEABLE: Final = 5.0e-4
"""Seconds that a task must be late; less comes and goes with what else the machine does."""


def _loops(plan: JacobianPlan) -> str:
    """Name the primitives that are swept one direction at a time."""
    computed = plan.graph.entries[plan.graph.inputs :].tolist()
    entries = [entry for entry in computed if find_rule(plan.structure.primitives[entry]) is None]
    if not entries:
        return ""
    return (
        f"No vector rule is registered for {operation_counts(plan, entries)}: these carry one direction "
        "at a time. tapesplit.defvector gives them one."
    )


def _interface(plan: JacobianPlan) -> str:
    """Compare the narrowest interface with the ends."""
    chain = plan.chain
    ends = min(chain.sizes[0], chain.sizes[-1])
    narrowest = min(chain.sizes[1:-1], default=ends)
    if narrowest < ends:
        known = f"The narrowest interface has {plural(narrowest, 'element')}, the smaller end {count(ends)}."
        # What is solved again is the chain, which knows nothing of shared seeds.
        return known if shared_seeds(plan) else f"{known} {_narrower(plan, narrowest)}"
    if ends <= 1:
        side = "input" if chain.sizes[0] == 1 else "output"
        return f"There is one {side}: a single sweep is the cheapest Jacobian there is."
    if shared_seeds(plan):
        return "Few directions carry the sparse Jacobian: a narrow interface would gain next to nothing."
    if any(task.form == "rows" for task in plan.tasks):
        return "Rows share directions: a narrow interface would gain next to nothing."
    if plan.cut_reason == "light":
        return "Sweeping in a single direction would take nearly as long: no narrow interface could help."
    if len(plan.tasks) == 1 and plan.seconds < _NOTICEABLE:
        (task,) = plan.tasks
        return f"One short sweep of {plural(task.directions, 'direction')}: there is little to gain."
    if ends <= _NARROW:
        return f"The smaller end has {count(ends)} elements: no interface could be much narrower."
    return (
        "The function's values never pass through an interface much narrower than its smaller end of "
        f"{count(ends)} elements. One that is narrower would be a place to cut."
    )


_NARROW: Final = 8
"""Elements of an end next to which a narrower interface would hardly matter."""


def _narrower(plan: JacobianPlan, width: int) -> str:
    """Solve the chain again with the interfaces of one width half as wide, and say what that gains."""
    if width == 1:
        return "It cannot be narrower."
    sizes = pairwise(size // 2 if size == width else size for size in plan.chain.sizes)  # both ends are wider
    links = [replace(link, n=n, m=m) for link, (n, m) in zip(plan.chain.links, sizes, strict=True)]
    narrower = solve(
        JacobianChain(tuple(links)),
        machines=plan.machines,
        method=cast(SolverName, plan.solution.method),
        time_limit=_LONGEST_SEARCH,
    )
    least, known = "", plan.solution.makespan
    if plan.least_makespan is not None:  # this plan has more multiply-adds, which take less time
        least, known = "least ", plan.least_makespan
    return (
        f"Were it {width // 2} wide, and the operations the same, the {least}makespan would be "
        f"{count(narrower.makespan)} instead of {count(known)} fma."
    )


_LONGEST_SEARCH: Final = 1.0
"""Seconds after which a search for a piece of advice ends with the best sequence found."""


def _bottleneck(plan: JacobianPlan) -> str:
    """Name the step that takes most of the time."""
    steps = step_rows(plan)
    if len(steps) == 1:
        return ""
    worst: StepRow = max(steps, key=lambda row: row.cost)
    part = worst.cost / sum(step.cost for step in steps)
    share = f"Step {worst.number}, {worst.operation}, is {part:.0%} of the work"
    if worst.mode is Mode.MULTIPLY:
        middle = worst.cost // (worst.rows * worst.columns)
        last = worst.last - worst.first + 1 == len(plan.chain)
        why = "; its size is that of the Jacobian itself" if last else ""
        return f"{share}: a product of {worst.rows} × {middle} by {middle} × {worst.columns}{why}."
    (task,) = (task for task in plan.tasks if worst.number - 1 in task.steps)
    carried = plural(task.seeds, "seed") if task.seeds else plural(task.directions, "direction")
    swept = plan.solution.sequence.operations[worst.number - 1].swept
    links = f"link {swept.stop}" if len(swept) == 1 else f"links {swept.start + 1} to {swept.stop}"
    return f"{share}: a sweep of {carried} through {links}."
