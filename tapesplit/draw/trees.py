"""The two trees of an elimination sequence: how it brackets the chain, and which step waits for which."""

from typing import Final

from tapesplit.draw.numbers import count
from tapesplit.draw.rows import StepRow, step_rows
from tapesplit.draw.scene import Box, Line, Scene, Shape, chunk_style
from tapesplit.planning.plan import JacobianPlan

__all__ = ["bracketing_scene", "precedence_scene"]

_ROW: Final = 34.0
_BOX: Final = (138.0, 36.0)
_PITCH: Final = (174.0, 46.0)
_MARGIN: Final = 16.0


def bracketing_scene(plan: JacobianPlan) -> Scene:
    """Draw the sequence as brackets over the chain: each step spans the links whose Jacobian it yields.

    The links are at the bottom, the last step at the top.
    """
    rows = step_rows(plan)
    heights = _heights(rows)
    links = len(plan.chain)
    width = max(860 / links, 36.0)
    bottom = _MARGIN + _ROW * max(heights.values())
    shapes: list[Shape] = [
        Box(
            _MARGIN + width * link, bottom, width - 2, _ROW - 6, chunk_style(link), (f"F{link + 1}",),
            f"link {link + 1}: {plan.chain.sizes[link]} to {plan.chain.sizes[link + 1]} elements",
        )
        for link in range(links)
    ]  # fmt: skip
    for row in rows:
        span = width * (row.last - row.first + 1)
        text = f"{row.number}: {row.mode.name.lower()}"
        lines = (text,) if span > 8 + 6.5 * len(text) else (str(row.number),)
        x, y = _MARGIN + width * (row.first - 1), bottom - _ROW * heights[row.number]
        shapes.append(Box(x, y, span - 2, _ROW - 6, row.mode.name.lower(), lines, _tip(row)))
    description = f"Bracketing {plan.solution.sequence.bracketing()}."
    return Scene(
        2 * _MARGIN + width * links, bottom + _ROW + 6, "Bracketing of the chain", description, tuple(shapes)
    )


def _heights(rows: tuple[StepRow, ...]) -> dict[int, int]:
    """Height of each step above the links: one more than that of the steps that it needs."""
    heights: dict[int, int] = {}
    for row in rows:
        heights[row.number] = 1 + max((heights[need] for need in row.needs), default=0)
    return heights


def precedence_scene(plan: JacobianPlan) -> Scene:
    """Draw the elimination in-tree: each step, and an arrow to the one step that uses its result.

    The last step, the root, is on the right.

    References
    ----------
    Märtens & Naumann 2025, Sec. 3.
    """
    rows = step_rows(plan)
    levels = _levels(rows)
    deepest, free = max(levels.values()), _MARGIN + _BOX[1] / 2
    y: dict[int, float] = {}
    for row in rows:
        if row.needs:
            y[row.number] = sum(y[need] for need in row.needs) / len(row.needs)
        else:
            y[row.number], free = free, free + _PITCH[1]
    x = {number: _MARGIN + _PITCH[0] * (deepest - level) for number, level in levels.items()}
    shapes: list[Shape] = [
        Line(((x[need] + _BOX[0], y[need]), (x[row.number], y[row.number])), "arc", arrow=True)
        for row in rows
        for need in row.needs
    ]
    for row in rows:
        lines = (f"{row.number}: {row.operation}", f"{count(row.cost)} fma")
        place = (x[row.number], y[row.number] - _BOX[1] / 2)
        shapes.append(Box(*place, *_BOX, row.mode.name.lower(), lines, _tip(row)))
    width = 2 * _MARGIN + _PITCH[0] * deepest + _BOX[0]
    height = free - _PITCH[1] + _BOX[1] / 2 + _MARGIN
    description = "The column needs in the table of steps has the same arrows."
    return Scene(width, height, "Elimination in-tree", description, tuple(shapes))


def _levels(rows: tuple[StepRow, ...]) -> dict[int, int]:
    """Distance of each step from the last one."""
    levels = {rows[-1].number: 0}
    for row in reversed(rows):
        levels |= dict.fromkeys(row.needs, levels[row.number] + 1)
    return levels


def _tip(row: StepRow) -> str:
    """Say everything about a step."""
    size = f"{row.rows} × {row.columns}"
    return (
        f"step {row.number}: {row.operation}\nresult {size}\n{count(row.cost)} fma on machine {row.machine}"
    )
