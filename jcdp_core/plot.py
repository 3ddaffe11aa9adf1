"""Pictures of results and schedules: box plots, Gantt charts and task in-trees, drawn with matplotlib.

matplotlib is optional and imported inside the functions; no global state of it is touched, so that figures
can be made without a display and in any thread.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from jcdp_core.dot import grouped, machine_color, step_label
from jcdp_core.results import Results
from jcdp_core.schedule import Schedule, Task, check_same_steps, machine_labels
from jcdp_core.sequence import EliminationSequence
from jcdp_core.statistics import ratios_by_machines, scope_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_box_plots", "draw_gantt", "draw_task_tree", "figure_class"]

_LETTERS: Final = 150
"""Letters that have room side by side on the time axis of a Gantt chart."""
_TICK_DIGITS: Final = 13
"""Digits of the numbers along this axis that are written out."""
_TICK_LETTERS: Final = 100
"""Letters of these numbers that have room side by side."""
_MOST_TICKS: Final = 9
"""Parts of the axis, at most."""


def figure_class(what: str = "drawing", instead: str = "") -> type["Figure"]:
    """Import matplotlib's figures, or say how to get them.

    `what` needs them and `instead` is what to do without them, for the message of the ImportError.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional package
    except ImportError as error:
        advice = "install it with: pip install 'tapesplit[plot]'"
        raise ImportError(f"{what} needs matplotlib; {advice}{instead and f', or {instead}'}") from error
    return Figure


def _figure(width: float, height: float) -> "Figure":
    """Return an empty figure; width and height in inches."""
    return figure_class()(figsize=(width, height), layout="constrained")


def draw_box_plots(results: Sequence[Results], solver: str = "DP", *, finished_only: bool) -> "Figure":
    """Draw C = optimum / makespan as box plots, a panel per chain length and a box per machine count.

    Parameters
    ----------
    results : sequence of Results
        Results of any lengths.
    solver : str, optional
        Solver to compare with the optimum.
    finished_only : bool
        Whether to leave out the chains whose optimum is not proved; the title says so.

    Returns
    -------
    matplotlib.figure.Figure
        Boxes are quartiles, whiskers the 2nd and 98th percentile, crosses the chains outside, as in the
        figures of Märtens & Naumann 2025. Save it with its method ``savefig``.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    panels = ratios_by_machines(results, solver, finished_only=finished_only)
    count = max(1, len(panels))
    across = min(count, 4)
    down = -(-count // across)
    figure = _figure(1.2 + 3.2 * across, 0.7 + 2.8 * down)
    axes = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for axis, (length, row) in zip(axes, panels.items(), strict=False):
        _draw_boxes(axis, {machines: 100 * ratios for machines, ratios in row.items() if len(ratios)})
        axis.set_title(f"$q = {length}$", fontsize=10)
        axis.set_xlabel("machines")
    for axis in axes[::across]:
        axis.set_ylabel(f"C = optimum / {solver} [%]")
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    figure.suptitle(scope_of(results, finished_only=finished_only), fontsize=10)
    figure.supxlabel("box: quartiles; whiskers: 2 % and 98 %; crosses: chains outside", fontsize=8)
    return figure


def _draw_boxes(axis: "Axes", samples: dict) -> None:
    """Draw one box per machine count."""
    axis.axhline(100, color="0.3", linewidth=0.8, linestyle=(0, (2, 2)))
    if samples:
        axis.boxplot(
            list(samples.values()),
            whis=(2, 98),
            widths=0.5,
            patch_artist=True,
            boxprops={"facecolor": machine_color(0)},
            medianprops={"color": "#b04a00", "linewidth": 1.5},
            flierprops={"marker": "x", "markersize": 3, "markeredgewidth": 0.6, "markeredgecolor": "0.35"},
        )
        axis.set_xticks(range(1, len(samples) + 1), [str(machines) for machines in samples])


def draw_gantt(sequence: EliminationSequence, schedule: Schedule, title: str = "") -> "Figure":
    """Draw a schedule as a Gantt chart, a row per machine and a bar per task.

    Parameters
    ----------
    sequence : EliminationSequence
        The steps.
    schedule : Schedule
        When and where they run.
    title : str, optional
        Title of the picture.

    Returns
    -------
    matplotlib.figure.Figure
        Time runs to the right in fma; bars carry number and notation of their steps as far as there is room.
        Machines after the last one that runs a task share a row.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    InvalidScheduleError
        If the sequence has more or fewer steps than the schedule has tasks.
    """
    check_same_steps(sequence, schedule)
    labels = machine_labels(schedule)
    figure = _figure(11, 0.9 + 0.65 * len(labels))
    axis = figure.subplots()
    # Positions are floats of at most 15 digits, which are exact and can be drawn; labels are integers.
    unit = 10 ** max(0, len(str(schedule.makespan)) - 15)
    for task in schedule.tasks:
        start, length = task.start / unit, (task.finish - task.start) / unit
        row, color = task.machine + 1, machine_color(task.machine)
        axis.barh(row, length, 0.8, start, color=color, edgecolor="0.25")
        label = _bar_label(sequence, task, (task.finish - task.start) / schedule.makespan)
        axis.text(start + length / 2, row, label, ha="center", va="center", fontsize=7)
    axis.set_yticks(range(1, len(labels) + 1), labels)
    axis.set_ylim(len(labels) + 0.5, 0.5)
    axis.set_xlim(0, schedule.makespan / unit)
    axis.set_ylabel("machine")
    axis.set_title(title, fontsize=10)
    longest = len(grouped(schedule.makespan, digits=_TICK_DIGITS)) + 2
    axis.locator_params(axis="x", integer=True, nbins=max(1, min(_MOST_TICKS, _TICK_LETTERS // longest)))
    axis.xaxis.set_major_formatter(lambda value, _: grouped(round(value) * unit, digits=_TICK_DIGITS))
    axis.set_xlabel(f"time in fma (makespan {grouped(schedule.makespan)})")
    return figure


def _bar_label(sequence: EliminationSequence, task: Task, share: float) -> str:
    """Return what fits into the bar of a task: number and notation, the number, or nothing."""
    number, operation = str(task.index + 1), str(sequence.operations[task.index])
    for lines in ([number, operation[:7], operation[8:]], [number]):
        if 1 + max(map(len, lines)) <= share * _LETTERS:
            return "\n".join(lines)
    return ""


def _tree_positions(sequence: EliminationSequence) -> list[tuple[float, int]]:
    """Return column and level of each step: leaves side by side, inner steps centered, root at level 0."""
    predecessors, successors = sequence.predecessors, sequence.successors
    levels = [0] * len(sequence)
    columns = [0.0] * len(sequence)
    leaves = 0
    stack = [index for index, successor in enumerate(successors) if successor is None]
    order = []
    while stack:
        index = stack.pop()
        order.append(index)
        successor = successors[index]
        levels[index] = 0 if successor is None else levels[successor] + 1
        if not predecessors[index]:
            columns[index] = leaves
            leaves += 1
        stack.extend(
            reversed(predecessors[index])
        )  # the later part of the chain to the left, as in a product
    for index in reversed(order):
        if predecessors[index]:
            columns[index] = sum(columns[part] for part in predecessors[index]) / len(predecessors[index])
    return list(zip(columns, levels, strict=True))


def draw_task_tree(sequence: EliminationSequence, schedule: Schedule) -> "Figure":
    """Draw the task in-tree, colored by machine, for those without Graphviz.

    Parameters
    ----------
    sequence : EliminationSequence
        The steps.
    schedule : Schedule
        Where they run.

    Returns
    -------
    matplotlib.figure.Figure
        Arrows lead from each step to the one that uses its result; the root is at the bottom.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    InvalidScheduleError
        If the sequence has more or fewer steps than the schedule has tasks.
    """
    check_same_steps(sequence, schedule)
    positions = _tree_positions(sequence)
    width = 1 + max(column for column, _ in positions)
    height = 1 + max(level for _, level in positions)
    figure = _figure(0.4 + 2.0 * width, 0.3 + 1.05 * height)
    axis = figure.subplots()
    axis.set(xlim=(-0.5, width - 0.5), ylim=(-0.5, height - 0.5))
    axis.axis("off")
    for index, successor in enumerate(sequence.successors):
        if successor is not None:
            (column, level), (next_column, next_level) = positions[index], positions[successor]
            # A level is 1.05 inches high and a box 0.6 of that: from lower edge to upper edge.
            arrow = {"arrowstyle": "-|>", "color": "0.3", "shrinkA": 0, "shrinkB": 0}
            axis.annotate("", (next_column, next_level + 0.31), (column, level - 0.31), arrowprops=arrow)
    for task in schedule.tasks:
        box = {"boxstyle": "round,pad=0.45", "facecolor": machine_color(task.machine), "edgecolor": "0.25"}
        label = step_label(sequence, task)
        axis.text(*positions[task.index], label, bbox=box, ha="center", va="center", fontsize=9)
    return figure
