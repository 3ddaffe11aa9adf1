"""The Gantt chart of a plan: what each machine does when, as predicted and, below it, as measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tapesplit.draw.numbers import count, seconds_text
from tapesplit.draw.rows import step_rows
from tapesplit.draw.scene import Box, Label, Line, Scene, Shape
from tapesplit.errors import ArgumentTypeError, ArgumentValueError
from tapesplit.planning.plan import JacobianPlan
from tapesplit.planning.records import TaskRecord

__all__ = ["check_records", "gantt_scene"]

_LEFT: Final = 150.0
_WIDTH: Final = 760.0
_LANE: Final = 30.0
_TOP: Final = 34.0


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar between two parts, 0 to 1, of the chart's width."""

    start: float
    finish: float
    style: str
    text: str
    tip: str


def gantt_scene(plan: JacobianPlan, records: Sequence[TaskRecord] | None = None) -> Scene:
    """Draw the schedule in fma, or predicted and measured times in seconds where there are measured ones.

    One lane a machine; with the records that `tapesplit.Callback` hands to ``finish`` two of them, on the
    same scale of time.
    """
    machines = sorted({task.machine for task in plan.tasks})
    if not records:
        makespan = plan.makespan
        lanes = [(f"machine {machine + 1}", _planned(plan, machine, makespan)) for machine in machines]
        return _scene(lanes, f"{count(makespan)} fma")
    predicted = [TaskRecord(i, task.machine, task.start, task.finish) for i, task in enumerate(plan.tasks)]
    end = max(record.finish for record in (*predicted, *records))
    lanes = []
    for machine in machines:
        for name, kind, runs in (
            (f"machine {machine + 1} predicted", "predicted", predicted),
            ("measured", "measured", records),
        ):
            lanes.append((name, [_timed(plan, run, end, kind) for run in runs if run.machine == machine]))
    return _scene(lanes, seconds_text(end))


def check_records(plan: JacobianPlan, records: Any) -> None:
    """Raise an error unless records are measured times of the tasks of a plan."""
    if not isinstance(records, Sequence) or not all(isinstance(record, TaskRecord) for record in records):
        raise ArgumentTypeError(
            f"records must be a sequence of measured tasks, but got {records!r:.60}; give what "
            "tapesplit.Callback hands to finish, or nothing for the last run of the plan"
        )
    tasks = len(plan.tasks)
    other = next((record.index for record in records if not 0 <= record.index < tasks), None)
    if other is not None:
        raise ArgumentValueError(
            f"records are those of another plan: they have a task {other}, but this plan has tasks 0 to "
            f"{tasks - 1} only; give the records of a run of this plan, or nothing for its last one"
        )


def _scene(lanes: Sequence[tuple[str, Sequence[_Bar]]], end: str) -> Scene:
    """Draw lanes below each other, over an axis from 0 to the end."""
    right, bottom = _LEFT + _WIDTH, _TOP + len(lanes) * _LANE
    shapes: list[Shape] = [
        Label(_LEFT, 22, "0", "muted", "middle"),
        Label(right, 22, end, "muted", "end"),
        Line(((_LEFT, 28), (_LEFT, bottom)), "axis"),
        Line(((right, 28), (right, bottom)), "axis"),
    ]
    for row, (name, bars) in enumerate(lanes):
        y = _TOP + row * _LANE
        shapes.append(Label(_LEFT - 10, y + _LANE / 2 + 2, name, anchor="end"))
        for bar in bars:
            width = max((bar.finish - bar.start) * _WIDTH, 1.5)
            lines = (bar.text,) if width > 8 + 7 * len(bar.text) else ()
            x = _LEFT + bar.start * _WIDTH
            shapes.append(Box(x, y, width, _LANE - 6, bar.style, lines, bar.tip))
    description = "The table of steps has the planned numbers."
    return Scene(right + 16, bottom + 12, "Machines over time", description, tuple(shapes))


def _planned(plan: JacobianPlan, machine: int, end: int) -> list[_Bar]:
    """Bars of the planned steps of one machine."""
    return [
        _Bar(
            row.start / end,
            row.finish / end,
            row.mode.name.lower(),
            str(row.number),
            f"step {row.number}: {row.operation}\n{count(row.cost)} fma from {count(row.start)} on",
        )
        for row in step_rows(plan)
        if row.machine == machine + 1
    ]


def _timed(plan: JacobianPlan, run: TaskRecord, end: float, kind: str) -> _Bar:
    """Bar of a task with its times in seconds; it may be several steps."""
    task = plan.tasks[run.index]
    steps = ", ".join(str(step + 1) for step in task.steps)
    tip = f"{kind}, step {steps}: {seconds_text(run.finish - run.start)}\n{count(task.fma)} fma planned"
    return _Bar(run.start / end, run.finish / end, task.mode.name.lower(), steps, tip)
