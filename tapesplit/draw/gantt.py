"""The Gantt chart of a plan: what each machine does when, as planned and, below it, as measured."""

from collections.abc import Sequence
from typing import Final, Protocol

from tapesplit.draw.numbers import count, seconds_text
from tapesplit.draw.rows import StepRow, step_rows
from tapesplit.draw.scene import Box, Label, Line, Scene, Shape
from tapesplit.plan import JacobianPlan

__all__ = ["Timed", "gantt_scene"]

_LEFT: Final = 150.0
_WIDTH: Final = 760.0
_LANE: Final = 30.0
_TOP: Final = 40.0


class Timed(Protocol):
    """A measured task, such as `tapesplit.TaskRecord`."""

    @property
    def index(self) -> int:
        """Number of the task in the plan, 0-based."""

    @property
    def machine(self) -> int:
        """0-based."""

    @property
    def start(self) -> float:
        """Seconds since the execution began."""

    @property
    def finish(self) -> float:
        """Seconds since the execution began."""


def gantt_scene(plan: JacobianPlan, records: Sequence[Timed] | None = None) -> Scene:
    """Draw the schedule, and the measured times below it if there are any.

    Parameters
    ----------
    plan
        The plan.
    records
        What `tapesplit.Callback` hands to ``finish``.

    Returns
    -------
    Scene
        Planned and measured time fill the same width, so that their shares can be compared.
    """
    machines = sorted({task.machine for task in plan.tasks})
    lanes = 2 if records else 1
    shapes: list[Shape] = [_axis_label(f"planned: {count(plan.makespan)} fma", 0)]
    for row, machine in enumerate(machines):
        y = _TOP + row * (lanes * _LANE + 12)
        shapes.append(_lane_label(f"machine {machine + 1}" + " planned" * (lanes == 2), y))
        shapes += _planned(plan, machine, y)
        if records:
            shapes.append(_lane_label("measured", y + _LANE))
            shapes += _measured(plan, records, machine, y + _LANE)
    if records:
        shapes.append(_axis_label(f"measured: {seconds_text(max(r.finish for r in records))}", 1))
    height = _TOP + len(machines) * (lanes * _LANE + 12) + 8
    shapes.append(Line(((_LEFT, _TOP - 6), (_LEFT, height - 12)), "axis"))
    shapes.append(Line(((_LEFT + _WIDTH, _TOP - 6), (_LEFT + _WIDTH, height - 12)), "axis"))
    description = "The table of steps has the same numbers."
    return Scene(_LEFT + _WIDTH + 16, height, "Schedule of the machines", description, tuple(shapes))


def _axis_label(text: str, side: int) -> Label:
    """Say what the width of the chart stands for."""
    return Label(_LEFT + side * _WIDTH, 22, text, "muted", "end" if side else "start")


def _lane_label(text: str, y: float) -> Label:
    """Name a lane."""
    return Label(_LEFT - 10, y + _LANE / 2 + 2, text, anchor="end")


def _planned(plan: JacobianPlan, machine: int, y: float) -> list[Shape]:
    """Place the bars of the planned steps of one machine."""
    end = plan.makespan
    return [
        _bar((row.start / end, row.finish / end), y, row.mode.name.lower(), str(row.number), _tip(row))
        for row in step_rows(plan)
        if row.machine == machine + 1
    ]


def _tip(row: StepRow) -> str:
    """Say what a planned bar is."""
    times = f"{count(row.cost)} fma, from {count(row.start)} to {count(row.finish)}"
    return f"step {row.number}: {row.operation}\n{times}"


def _measured(plan: JacobianPlan, records: Sequence[Timed], machine: int, y: float) -> list[Shape]:
    """Place the bars of the measured tasks of one machine; a task may be several steps."""
    end = max(record.finish for record in records)
    bars: list[Shape] = []
    for record in records:
        if record.machine != machine:
            continue
        task = plan.tasks[record.index]
        steps = ", ".join(str(step + 1) for step in task.steps)
        seconds = seconds_text(record.finish - record.start)
        tip = f"measured, step {steps}: {seconds}\n{count(task.fma)} fma planned"
        bars.append(_bar((record.start / end, record.finish / end), y, task.mode.name.lower(), steps, tip))
    return bars


def _bar(span: tuple[float, float], y: float, style: str, text: str, tip: str) -> Box:
    """Place one bar; its text is left out where there is no room."""
    start, finish = span
    width = max((finish - start) * _WIDTH, 1.5)
    lines = (text,) if width > 8 + 7 * len(text) else ()
    return Box(_LEFT + start * _WIDTH, y, width, _LANE - 6, style, lines, tip)
