"""The task in-tree of a scheduled elimination sequence as DOT text for Graphviz."""

from decimal import Decimal
from typing import Final

from jcdp_core.schedule import Schedule, Task, check_same_steps
from jcdp_core.sequence import EliminationSequence

__all__ = ["grouped", "machine_color", "step_label", "task_tree_dot"]

# Light fills (Okabe-Ito hues, mixed with white) that black text stays readable on, also for the color-blind.
_COLORS: Final = ("#a6d3ec", "#f5cf8a", "#9fd8c4", "#e7bcd3", "#f3f0a3", "#eab596", "#b3c6e5", "#d0d0d0")


def machine_color(machine: int) -> str:
    """Return the fill color of a machine in all drawings.

    The color is ``#rrggbb``. Machines are counted from 0; the colors repeat after eight.

    Examples
    --------
    >>> machine_color(0) == machine_color(8)
    True
    """
    return _COLORS[machine % len(_COLORS)]


def grouped(number: int, space: str = "\u2009", digits: int = 18) -> str:
    """Return an integer with spaces between groups of three digits, rounded if it has more than so many.

    The integer is at least 0, and the default space a thin one. Numbers of up to `digits` digits are printed
    in full.

    Examples
    --------
    >>> grouped(14000, " "), grouped(2 * 10**20)
    ('14 000', '2.000e+20')
    """
    return f"{number:,}".replace(",", space) if number < 10**digits else f"{Decimal(number):.3e}"


def step_label(sequence: EliminationSequence, task: Task, separator: str = "\n") -> str:
    """Return number, notation, cost and machine of a step, as all task trees show it.

    The machine is printed 1-based. `separator` stands between the lines of the label.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> solution = solve(JacobianChain.from_sizes([3, 2], [7000]))
    >>> step_label(solution.sequence, solution.schedule.tasks[0], " | ")
    '1: ACC ADJ (0 1) | 14 000 fma | machine 1'
    """
    lines = (
        f"{task.index + 1}: {sequence.operations[task.index]}",
        f"{grouped(sequence.costs[task.index], ' ')} fma",
        f"machine {task.machine + 1}",
    )
    return separator.join(lines)


def task_tree_dot(sequence: EliminationSequence, schedule: Schedule) -> str:
    r"""Write the task in-tree in the DOT language: a node per step, an arc to the step that uses its result.

    Parameters
    ----------
    sequence : EliminationSequence
        The steps.
    schedule : Schedule
        Where they run; gives the fill colors and the machine numbers.

    Returns
    -------
    str
        A digraph; render it with ``dot -Tpdf``. Nodes are numbered from 1, as in print.

    Raises
    ------
    InvalidScheduleError
        If the sequence has more or fewer steps than the schedule has tasks.

    Notes
    -----
    The root, which yields the Jacobian of the whole chain, is at the bottom. Source: Märtens & Naumann 2025
    (precedence graph of a sequence).

    Examples
    --------
    >>> from jcdp_core import JacobianChain, solve
    >>> solution = solve(JacobianChain.from_sizes([3, 2, 5], [7, 11]))
    >>> print(task_tree_dot(solution.sequence, solution.schedule))
    digraph tasks {
      node [shape=box, style="rounded,filled", fontname="Helvetica"];
      1 [label="1: ACC ADJ (0 1)\n14 fma\nmachine 1", fillcolor="#a6d3ec"];
      2 [label="2: ELI TAN (0 1 2)\n33 fma\nmachine 1", fillcolor="#a6d3ec"];
      1 -> 2;
    }
    <BLANKLINE>
    """
    check_same_steps(sequence, schedule)
    lines = ["digraph tasks {", '  node [shape=box, style="rounded,filled", fontname="Helvetica"];']
    for task in schedule.tasks:
        label = step_label(sequence, task, r"\n")
        lines.append(f'  {task.index + 1} [label="{label}", fillcolor="{machine_color(task.machine)}"];')
    for index, successor in enumerate(sequence.successors):
        if successor is not None:
            lines.append(f"  {index + 1} -> {successor + 1};")
    return "\n".join([*lines, "}", ""])
