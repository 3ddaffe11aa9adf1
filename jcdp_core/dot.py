"""The task in-tree of a scheduled elimination sequence as DOT text for Graphviz."""

from typing import Final

from jcdp_core.schedule import Schedule
from jcdp_core.sequence import EliminationSequence

__all__ = ["machine_color", "step_label", "task_tree_dot"]

# Light fills (Okabe-Ito hues, mixed with white) that black text stays readable on, also for the color-blind.
_COLORS: Final = ("#a6d3ec", "#f5cf8a", "#9fd8c4", "#e7bcd3", "#f3f0a3", "#eab596", "#b3c6e5", "#d0d0d0")


def machine_color(machine: int) -> str:
    """Return the fill color of a machine in all drawings.

    Parameters
    ----------
    machine : int
        Machine (0-based); the colors repeat after eight.

    Returns
    -------
    str
        Color as ``#rrggbb``.

    Examples
    --------
    >>> machine_color(0) == machine_color(8)
    True
    """
    return _COLORS[machine % len(_COLORS)]


def step_label(sequence: EliminationSequence, index: int, separator: str = "\n") -> str:
    """Return number, notation and cost of a step, as all drawings show it.

    Parameters
    ----------
    sequence : EliminationSequence
        The steps.
    index : int
        Step (0-based; printed 1-based).
    separator : str, optional
        What stands between the two lines of the label.

    Returns
    -------
    str
        The label.

    Examples
    --------
    >>> from jcdp_core import JacobianChain, Operation
    >>> chain = JacobianChain.from_sizes([3, 2], [7000])
    >>> sequence = EliminationSequence.from_operations(chain, [Operation.parse("ACC ADJ (0 1)")])
    >>> step_label(sequence, 0, " | ")
    '1: ACC ADJ (0 1) | 14 000 fma'
    """
    cost = f"{sequence.costs[index]:,}".replace(",", " ")
    return f"{index + 1}: {sequence.operations[index]}{separator}{cost} fma"


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
    lines = ["digraph tasks {", '  node [shape=box, style="rounded,filled", fontname="Helvetica"];']
    for task in schedule.tasks:
        label = step_label(sequence, task.index, r"\n") + rf"\nmachine {task.machine + 1}"
        lines.append(f'  {task.index + 1} [label="{label}", fillcolor="{machine_color(task.machine)}"];')
    for index, successor in enumerate(sequence.successors):
        if successor is not None:
            lines.append(f"  {index + 1} -> {successor + 1};")
    return "\n".join([*lines, "}", ""])
