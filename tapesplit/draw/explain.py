"""Why a plan is as it is, in sentences."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, groupby
from math import prod
from typing import Final

from jcdp_core import Mode
from tapesplit.cuts.separators import Separator
from tapesplit.draw.numbers import count, plural, seconds_text
from tapesplit.draw.rows import LinkRow, cut_reason_text, link_rows, operation_name, shared_seeds
from tapesplit.planning.plan import JacobianPlan
from tapesplit.structures.comparison import is_look_up
from tapesplit.structures.constants import known_zeros
from tapesplit.sweeps.compression import CompressedSweep
from tapesplit.sweeps.prediction import Form
from tapesplit.sweeps.reach import part_kept
from tapesplit.sweeps.scalar_sweep import ScalarSweep

__all__ = ["decisions"]

_NAMED: Final = 6
"""So many cuts, or groups of links, are named one by one."""
_SEPARATOR_REASONS: Final = {
    "minimal": "no cut of the whole tape is narrower",
    "cost": "the cheapest chain on one machine needs it",
    "spread": "places to share work: much of it on either side for each element of their width",
}


def decisions(plan: JacobianPlan) -> tuple[str, ...]:
    r"""Say why the tape was cut as it was, why links are swept in their modes, and why so many machines work.

    Parameters
    ----------
    plan
        The plan.

    Returns
    -------
    tuple of str
        Sentences, in that order.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> plan = parallel_jacobian(lambda x: np.sin(x) * x, machines=2).plan(np.ones(3))
    >>> print(*decisions(plan), sep="\n")
    Not cut: no interface is narrow enough for a cut to pay.
    The only link is swept in tangent mode with 3 directions, 27 fma; adjoint mode would take 27.
    Link 1 is swept as one sparse system of single elements.
    One machine works: threads would gain nothing, as these sweeps hold Python's lock.
    """
    swept = (*_modes(plan), *_forms(plan), *_zeros(plan), *_colors(plan), *_reaches(plan))
    return (*_cuts(plan), *swept, *_sequence(plan), _machines(plan))


def _cuts(plan: JacobianPlan) -> list[str]:
    """Write a sentence for each reason for cuts, and one on what is swept twice; or why there is no cut."""
    if not plan.separators:
        return [f"Not cut: {cut_reason_text(plan)}."]
    found = {
        why: [s for s in plan.separators if s.reason == reason] for reason, why in _SEPARATOR_REASONS.items()
    }
    sentences = [f"Cut at {_places(plan, cuts)}: {why}." for why, cuts in found.items() if cuts]
    sweeps = Counter(chain.from_iterable(chunk.entries.tolist() for chunk in plan.chunks))
    twice = sum(links > 1 for links in sweeps.values())
    if twice:
        sentences.append(
            f"{plural(twice, 'operation')} between two values of a separator {'is' if twice == 1 else 'are'} "
            "swept on both sides of it."
        )
    return sentences


def _places(plan: JacobianPlan, cuts: Sequence[Separator]) -> str:
    """Name the places of some cuts, and how wide they are."""
    places = ", ".join(_place(plan, cut) for cut in cuts[:_NAMED])
    more = f" and {len(cuts) - _NAMED} more" if len(cuts) > _NAMED else ""
    narrow, wide = min(cut.width for cut in cuts), max(cut.width for cut in cuts)
    if narrow < wide:
        return f"entries {places}{more}, {narrow} to {plural(wide, 'element')}"
    if len(cuts) > 1:
        return f"entries {places}{more}, {plural(wide, 'element')} each"
    return f"entry {places}, {plural(wide, 'element')}"


def _place(plan: JacobianPlan, cut: Separator) -> str:
    """Name the place of a cut by its first value."""
    first, others = cut.vertices[0], len(cut.vertices) - 1
    return _entry(plan, first) + (f" with {others} more" if others else "")


def _entry(plan: JacobianPlan, number: int) -> str:
    """Name a tape entry by its operation and, if the plan knows it, the user's line of code."""
    where = f", {plan.lines[number]}" if plan.lines and plan.lines[number] else ""
    return f"{number} ({operation_name(plan, number)}{where})"


def _modes(plan: JacobianPlan) -> list[str]:
    """Say how the only link is swept, or each group of neighbors that is swept alike."""
    rows = link_rows(plan)
    if len(rows) == 1:
        return [_only_mode(plan, rows[0])]
    groups = [list(group) for _, group in groupby(rows, key=lambda row: (row.mode, row.directions))]
    sentences = [_swept_alike(group) for group in groups[:_NAMED]]
    if len(groups) > _NAMED:
        sentences.append(f"The other {len(groups) - _NAMED} groups of links are in the table of the chain.")
    return sentences


def _swept_alike(rows: Sequence[LinkRow]) -> str:
    """Say how neighboring links are swept, and where the number of directions comes from."""
    first, mode = rows[0], rows[0].mode
    directions = plural(first.directions, "direction")
    text = f"{_runs([row.number - 1 for row in rows])} swept in {mode.name.lower()} mode with {directions}"
    near, far = (first.n, "input"), (first.m, "output")
    if mode is Mode.ADJOINT:
        near, far = far, near
    if len(rows) == 1 and first.directions == near[0]:
        return f"{text}, since it has {plural(*near)} for {plural(*far)}."
    return f"{text}, the width of the interface where the sweep began."


def _only_mode(plan: JacobianPlan, row: LinkRow) -> str:
    """Compare the two modes of an uncut tape."""
    link = plan.chain.links[0]
    other, fma = (
        ("adjoint", row.m * link.adjoint_cost)
        if row.mode is Mode.TANGENT
        else ("tangent", row.n * link.tangent_cost)
    )
    asked = f", but {row.mode.name.lower()} mode was asked for" if plan.asked_mode else ""
    return (
        f"The only link is swept in {row.mode.name.lower()} mode with "
        f"{plural(row.directions, 'direction')}, {count(plan.solution.sequence.total)} fma{_unshared(plan)}; "
        f"{other} mode would take {count(fma)}{asked}."
    )


def _forms(plan: JacobianPlan) -> list[str]:
    """Say which links are swept as systems, which by array steps, and what keeps those from being systems."""
    swept: dict[tuple[Form, int | None], list[tuple[int, ...]]] = {}
    for task in sorted(plan.tasks, key=lambda task: task.swept):
        if task.swept:
            swept.setdefault((task.form, task.obstacle), []).append(task.swept)
    return [
        f"{_runs(sorted(chain.from_iterable(sweeps)))} swept {_form_text(form, len(sweeps))}"
        f"{_obstacle(plan, form, obstacle)}."
        for (form, obstacle), sweeps in swept.items()
    ]


def _form_text(form: Form, sweeps: int) -> str:
    """Describe the form of one sweep, or of several."""
    match form:
        case "system":
            return (
                f"as {'one sparse system' if sweeps == 1 else f'{sweeps} sparse systems'} of single elements"
            )
        case "stages":
            return "in stages, sparse systems of single elements and array steps by turns"
        case "rows":
            return "by array steps that carry all rows together, up to what these share"
        case _:
            return "by array steps, one operation at a time"


def _unshared(plan: JacobianPlan) -> str:
    """Qualify costs of the chain where directions share seeds."""
    return " without shared seeds" if shared_seeds(plan) else ""


def _zeros(plan: JacobianPlan) -> list[str]:
    """Say for which products in systems the zeros of a constant matrix are left out."""
    links = chain.from_iterable(task.swept for task in plan.tasks if task.form in {"system", "stages"})
    entries = sorted(set(chain.from_iterable(plan.chunks[link].entries.tolist() for link in links)))
    matrices = Counter(filter(None, (known_zeros(plan.structure.statics[entry]) for entry in entries)))
    if not matrices:
        return []
    elements = sum(prod(matrix.shape) * times for matrix, times in matrices.items())
    kept = sum(matrix.content.count() * times for matrix, times in matrices.items())
    products = plural(matrices.total(), "product")
    have = "has" if matrices.total() == 1 else "have"
    part = f"{kept / elements:.1%} of their elements"
    zeros = "constant matrices of mostly zeros"
    return [f"{products} with {zeros} {have} edges for {part}, those that are no zeros; |E| counts all."]


def _colors(plan: JacobianPlan) -> list[str]:
    """Say which sweeps let the directions of one color share a seed, and what these never have in common."""
    return [
        f"{_runs(task.swept)} sparse: {plural(task.directions, 'direction')} share "
        f"{plural(sweep.color_count, 'seed')}, since no two {_APART[task.mode]}"
        f"{_left_out(task.mode, sweep.left_out.size)}."
        for task, sweep in zip(plan.tasks, plan.sweeps, strict=True)
        if isinstance(sweep, CompressedSweep)
    ]


def _reaches(plan: JacobianPlan) -> list[str]:
    """Say which sweeps carry blocks of their directions through what they reach."""
    return [
        f"{_runs(task.swept)} swept in {plural(len(sweep.reaches), 'block')} of directions, each through "
        f"what it reaches: {part_kept(sweep.reaches, len(sweep.indices)):.0%} of the system on average."
        for task, sweep in zip(plan.tasks, plan.sweeps, strict=True)
        if isinstance(sweep, ScalarSweep) and sweep.reaches
    ]


def _left_out(mode: Mode, amount: int) -> str:
    """Say how many dense outputs, or inputs, are swept in the opposite mode."""
    if not amount:
        return ""
    tangent = mode is Mode.TANGENT
    end, others, back = (
        ("output", "inputs reach", "adjoint") if tangent else ("input", "outputs read", "tangent")
    )
    verb = "is" if amount == 1 else "are"
    return f"; {plural(amount, end)} that many {others} {verb} swept in {back} mode"


_APART: Final = {
    Mode.TANGENT: "inputs of one color reach the same output",
    Mode.ADJOINT: "outputs of one color read the same input",
}


def _runs(links: Sequence[int]) -> str:
    """Name links with a verb, runs of them by the first and the last: "Links 1 to 3, 5 are"."""
    found = [[i for _, i in run] for _, run in groupby(enumerate(links), key=lambda item: item[1] - item[0])]
    named = [f"{run[0] + 1} to {run[-1] + 1}" if len(run) > 1 else str(run[0] + 1) for run in found]
    return f"Link{'s' * (len(links) > 1)} {', '.join(named)} {'are' if len(links) > 1 else 'is'}"


def _obstacle(plan: JacobianPlan, form: Form, obstacle: int | None) -> str:
    """Say why links are not swept as one system."""
    if form in {"system", "rows"}:
        return ""
    if obstacle is None:
        return "; one system is predicted to take longer"
    if is_look_up(plan.structure, obstacle):
        why = "reads its index from each tape anew, since that changes from call to call"
    else:
        why = "has no scalar form, or is too large for a system"
    return f"; entry {_entry(plan, obstacle)} {why}"


def _sequence(plan: JacobianPlan) -> list[str]:
    """Say so where the sequence was chosen for its predicted time, not for its multiply-adds."""
    if plan.least_makespan is None:
        return []
    sentence = (
        f"Another sequence has a makespan of {count(plan.least_makespan)} fma, this one has "
        f"{count(plan.solution.makespan)}{_unshared(plan)}: it is predicted to take less time, as not all "
        "multiply-adds take the same time."
    )
    return [sentence]


def _machines(plan: JacobianPlan) -> str:
    """Say how many machines work, and what that gains or why there is only one."""
    if plan.machines == 1:
        return f"One machine works: {_why_one(plan)}."
    forced = ", since an executor was given" if plan.machines_reason == "forced" else ""
    alone = sum(task.seconds for task in plan.tasks)
    return (
        f"{plan.machines} machines work{forced}: together they are predicted to take "
        f"{seconds_text(plan.seconds)}, one would take {seconds_text(alone)} for the same tasks."
    )


def _why_one(plan: JacobianPlan) -> str:
    """Say why the planner left all work to one machine."""
    match plan.machines_reason:
        case "single":
            return "no more were asked for"
        case "core":
            return "one core is all that this process may use"
        case "light":
            unlocked = sum(task.seconds for task in plan.tasks if task.releases_lock)
            if not unlocked:
                return "threads would gain nothing, as these sweeps hold Python's lock"
            return (
                f"tasks that release Python's lock are predicted to take {seconds_text(unlocked)} in all, "
                "too little for threads to pay"
            )
        case "steps":
            return f"{plan.step_threads} threads share each of its large steps, which gains more"
        case "uneven":
            return "no two of them would each have a task that is heavy enough for a thread"
        case "little":
            return "threads were predicted to gain less than a fifth"
        case _:
            return "the best schedule for several gives all work to one"
