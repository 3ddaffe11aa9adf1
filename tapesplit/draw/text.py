"""A plan as text: one line, one table, or everything, at most 100 columns wide."""

import textwrap
from collections.abc import Callable, Sequence
from math import prod
from typing import Final, Literal

import numpy as np

from tapesplit.draw.advise import advice
from tapesplit.draw.explain import decisions
from tapesplit.draw.numbers import bytes_text, count, plural, ratio, seconds_text, shorten
from tapesplit.draw.rows import (
    STEP_HEAD,
    cheaper_mode,
    cut_reason_text,
    link_rows,
    shared_seeds,
    signature,
    step_rows,
)
from tapesplit.errors import ArgumentValueError
from tapesplit.planning.plan import JacobianPlan

__all__ = ["describe"]

_WIDTH: Final = 100
_ROWS: Final = 16
"""The normal table shows so many links or steps; the full one shows all."""


def describe(plan: JacobianPlan, level: Literal["line", "normal", "full"] = "normal") -> str:
    """Describe a plan, see `JacobianPlan.describe`."""
    levels: dict[str, Callable[[JacobianPlan], str]] = {"line": _line, "normal": _normal, "full": _full}
    if level not in levels:
        raise ArgumentValueError(f"level must be 'line', 'normal' or 'full', but got {level!r}")
    return levels[level](plan)


def _line(plan: JacobianPlan) -> str:
    """One line."""
    links = "one link" if len(plan.chain) == 1 else f"{len(plan.chain)} links"
    end = f", {links}, {count(plan.fma)} fma on {_machines(plan)}, {_gain(plan)}"
    return signature(plan, _WIDTH - len(end)) + end


def _gain(plan: JacobianPlan) -> str:
    """Compare the work with that of the cheaper plain mode."""
    if not plan.graph.total_edges:
        return "the function only moves data"
    mode, cost = cheaper_mode(plan)
    gain = cost / plan.fma
    if 0.99 < gain < 1.01:
        if len(plan.tasks) == 1:
            return f"a plain {plan.tasks[0].mode.name.lower()} sweep"
        return f"as much as all {mode}"
    return f"{ratio(gain)} × less than all {mode}" if gain > 1 else f"{ratio(1 / gain)} × all {mode}"


def _machines(plan: JacobianPlan) -> str:
    """Count the machines that have something to do."""
    return "one machine" if plan.machines == 1 else f"{plan.machines} machines"


def _normal(plan: JacobianPlan, most: int | None = _ROWS) -> str:
    """Chain, steps, totals; tables of more rows show their beginning and end."""
    return "\n".join([*_head(plan), "", *_links(plan, most), "", *_steps(plan, most), "", *_totals(plan)])


def _full(plan: JacobianPlan) -> str:
    """Everything that there is to say."""
    sequence, schedule = plan.carried_out
    parts = [_normal(plan, None)]
    if len(sequence) > 1:  # there is nothing to see in a single step
        parts += ["", f"bracketing  {shorten(sequence.bracketing(), _WIDTH - 12)}"]
        parts += ["", "machines over time (fma)", schedule.gantt(sequence, width=_WIDTH - 8)]
    if plan.last_run.records:
        parts += ["", *_last_run(plan)]
    parts += ["", "Why this plan", *_sentences(decisions(plan))]
    parts += ["", "What would make it faster", *_sentences(advice(plan))]
    return "\n".join(parts)


def _head(plan: JacobianPlan) -> list[str]:
    """Name function, shapes and tape."""
    output, *inputs = plan.shapes
    size = f"{prod(output)} × {sum(map(prod, inputs))}"
    operations, edges = plan.graph.size - plan.graph.inputs, count(plan.graph.total_edges)
    cuts = len(plan.separators)
    cut = "not cut" if not cuts else f"cut at {plural(cuts, 'separator')} into {cuts + 1} links"
    end = f", {size} Jacobian"
    chosen = "" if plan.asked_mode else f"{plan.solution.method}: "
    return [
        signature(plan, _WIDTH - len(end)) + end,
        f"tape of {plural(operations, 'operation')}, |E| = {edges}, {cut}",
        shorten(chosen + cut_reason_text(plan), _WIDTH),
    ]


def _links(plan: JacobianPlan, most: int | None) -> list[str]:
    """Table of the chain."""
    rows = [
        (str(row.number), f"{count(row.n)} -> {count(row.m)}", count(row.edges), row.sweep, row.operations)
        for row in link_rows(plan)
    ]
    return _table(("link", "elements", "|E|", "swept", "operations"), rows, ">>><<", most)


def _steps(plan: JacobianPlan, most: int | None) -> list[str]:
    """Table of the elimination sequence and its schedule."""
    return _table(STEP_HEAD, [row.cells for row in step_rows(plan)], "><>>>><>", most)


def _totals(plan: JacobianPlan) -> list[str]:
    """Totals of the plan and of its alternatives."""
    rows = [
        ("all tangent", f"{count(plan.baselines['tangent'])} fma", ""),
        ("all adjoint", f"{count(plan.baselines['adjoint'])} fma", ""),
        ("plan", f"{count(plan.fma)} fma", _gain(plan)),
        ("makespan", f"{count(plan.makespan)} fma", f"on {_machines(plan)}{_shared(plan)}"),
        _bound(plan),
        ("sweeps", seconds_text(plan.seconds), "predicted, beyond recording the function"),
        ("peak memory", bytes_text(plan.peak_bytes), f"beyond the tape, predicted{_limit(plan)}"),
    ]
    return _table(None, rows, "<><", None)


def _shared(plan: JacobianPlan) -> str:
    """Compare the makespan of several machines with the work that they share."""
    return f", {ratio(plan.fma / plan.makespan)} × less than the work" if plan.machines > 1 else ""


def _limit(plan: JacobianPlan) -> str:
    """Name the memory limit, which sweeps keep to by blocks of directions, or by array steps."""
    return f" with a limit of {bytes_text(plan.memory_limit)} to a sweep" if plan.memory_limit else ""


def _bound(plan: JacobianPlan) -> tuple[str, str, str]:
    """Write the row of the lower bound, or of shared seeds: the bound of the chain does not know of them."""
    shared = shared_seeds(plan)
    if shared:
        seeds, directions = shared
        return "compressed", seeds, f"for {directions}, as the Jacobian is sparse"
    proof = f"reached: {_best(plan)}" if plan.solution.optimal else "for every plan of this chain"
    return "lower bound", f"{count(plan.solution.lower_bound)} fma", proof


def _best(plan: JacobianPlan) -> str:
    """Say among which plans this one is proved to be the best: other cuts are other chains."""
    if plan.asked_mode:
        return f"optimal in {plan.asked_mode.name.lower()} mode, which was asked for"
    return "optimal for this chain" if plan.separators else "optimal without cuts"


def _last_run(plan: JacobianPlan) -> list[str]:
    """Table of the tasks with their predicted and measured times, and their sums."""
    records = sorted(plan.last_run.records, key=lambda record: record.index)
    operations = plan.solution.sequence.operations

    def cells(number: str, machine: str, predicted: float, measured: float, steps: str) -> tuple[str, ...]:
        against = f"{ratio(measured / predicted)} ×" if predicted else "-"
        times = (seconds_text(predicted) if predicted else "-", seconds_text(measured), against)
        return (number, machine, *times, steps)

    tasks = [plan.tasks[record.index] for record in records]
    predicted = [task.finish - task.start for task in tasks]
    measured = [record.finish - record.start for record in records]
    rows = []
    for record, task, expected, seconds in zip(records, tasks, predicted, measured, strict=True):
        steps = ", ".join(f"{step + 1} {operations[step]}" for step in task.steps)
        rows.append(cells(str(record.index + 1), str(task.machine + 1), expected, seconds, steps))
    rows.append(cells("sum", "", sum(predicted), sum(measured), ""))
    head = ("task", "machine", "predicted", "measured", "ratio", "steps")
    wall = max(record.finish for record in records)
    rows.append(cells("wall", "", plan.seconds, wall, "from start to end"))
    run = "first run, which also fills caches" if plan.last_run.runs == 1 else "last run"
    title = f"{run}: {_call(plan)}sweeps {seconds_text(wall)}"
    correlation = _rank_correlation(predicted, measured) if len(records) >= _FEWEST_TO_RANK else None
    if correlation is not None:
        title += f", rank correlation of times {correlation:.2f}"
    return [title, *_table(head, rows, ">>>>><", None)]


_FEWEST_TO_RANK: Final = 5
"""Fewest tasks for which the rank correlation of predicted and measured times means anything."""


def _rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation: 1 for times in the predicted order; None without an order."""
    # How many are less, minus how many are greater: a rank, which is an average where some are equal.
    first, second = (np.sign(np.subtract.outer(times, times)).sum(axis=1) for times in (predicted, measured))
    return float(np.corrcoef(first, second)[0, 1]) if first.any() and second.any() else None


def _call(plan: JacobianPlan) -> str:
    """Say how long the last call took for what comes before the sweeps, if it has recorded the function."""
    recording, finding = plan.last_run.recording, plan.last_run.finding
    if not recording:
        return ""
    return f"recording {seconds_text(recording)}, finding the plan {seconds_text(finding)}, "


def _table(
    head: tuple[str, ...] | None, rows: Sequence[tuple[str, ...]], align: str, most: int | None
) -> list[str]:
    """Align columns; leave out the middle rows of a table that is too long."""
    half = len(rows) if most is None else most // 2
    left_out = max(len(rows) - 2 * half, 0)
    shown = [*rows[:half], *rows[half + left_out :]]
    lines = [head, *shown] if head else shown
    widths = [max(len(line[column]) for line in lines) for column in range(len(align))]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(align, widths, strict=True))
    text = [shorten(form.format(*line).rstrip(), _WIDTH) for line in lines]
    if left_out:
        text.insert(half + (head is not None), f"{'…':>{widths[0]}}  {left_out} more")
    return text


def _sentences(sentences: Sequence[str]) -> list[str]:
    """Wrap sentences as list items."""
    return [
        line
        for sentence in sentences
        for line in textwrap.wrap(sentence, _WIDTH, initial_indent="- ", subsequent_indent="  ")
    ]
