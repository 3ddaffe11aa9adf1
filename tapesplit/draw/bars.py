"""The bar chart of the plan against its alternatives."""

from typing import Final

from tapesplit.draw.numbers import count, ratio
from tapesplit.draw.rows import shared_seeds
from tapesplit.draw.scene import Box, Label, Scene, Shape
from tapesplit.planning.plan import JacobianPlan

__all__ = ["comparison_scene"]

_LEFT: Final = 150.0
_WIDTH: Final = 640.0
_ROW: Final = 30.0


def comparison_scene(plan: JacobianPlan) -> Scene:
    """Draw the makespan of the plan beside the plain modes and the lower bound.

    Where directions share seeds, no bound is known.
    """
    sequence, schedule = plan.carried_out
    bars = [
        ("all tangent", plan.baselines["tangent"], "tangent"),
        ("all adjoint", plan.baselines["adjoint"], "adjoint"),
        ("plan, all work", sequence.total, "multiply"),
        ("plan, makespan", schedule.makespan, "multiply"),
    ]
    if not shared_seeds(plan):
        bars.append(("lower bound", plan.solution.lower_bound, "bound"))
    most = max(cost for _, cost, _ in bars)
    shapes: list[Shape] = []
    for row, (name, cost, style) in enumerate(bars):
        y, width = 12 + _ROW * row, max(_WIDTH * cost / most, 1.5)
        against = ratio(cost / schedule.makespan)
        shapes.append(Label(_LEFT - 10, y + 15, name, anchor="end"))
        shapes.append(
            Box(_LEFT, y, width, _ROW - 8, style, (), f"{name}: {cost} fma, {against} × the makespan")
        )
        shapes.append(Label(_LEFT + width + 8, y + 15, f"{count(cost)} fma", "muted"))
    description = "; ".join(f"{name} {count(cost)} fma" for name, cost, _ in bars)
    return Scene(
        _LEFT + _WIDTH + 100, 18 + _ROW * len(bars), "Plan and plain modes", description, tuple(shapes)
    )
