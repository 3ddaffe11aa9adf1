"""Two bar charts: the width profile of the tape, and the plan against its alternatives."""

from typing import Final

from tapesplit.draw.numbers import count, ratio
from tapesplit.draw.scene import Box, Label, Line, Scene, Shape
from tapesplit.plan import JacobianPlan
from tapesplit.width_profile import width_profile

__all__ = ["comparison_scene", "profile_scene"]

_LEFT: Final = 150.0
_WIDTH: Final = 640.0
_ROW: Final = 30.0
_HEIGHT: Final = 150.0
_TOP: Final = 36.0


def profile_scene(plan: JacobianPlan) -> Scene:
    """Draw how wide the tape's live sets are in equal shares of its edges, and how narrow it could be cut.

    Parameters
    ----------
    plan
        The plan.

    Returns
    -------
    Scene
        Pale bars for the narrowest live set of each share, strong ones for the minimum cut.
    """
    profile = width_profile(plan.graph)
    live, minimal = profile.live.tolist(), profile.minimal.tolist()
    top = max(*live, *minimal, 1)
    pitch = min(_WIDTH / len(live), 60.0)
    bottom = _TOP + _HEIGHT
    shapes: list[Shape] = [Line(((40, bottom), (40 + pitch * len(live), bottom)), "axis")]
    for share, (entry, wide, narrow) in enumerate(zip(profile.entries.tolist(), live, minimal, strict=True)):
        x = 40 + pitch * share
        tip = f"up to entry {entry}: live {_elements(wide)}, minimum cut {_elements(narrow)}"
        for width, style in ((wide, "chunk5"), (narrow, "tangent")):
            height = _HEIGHT * max(width, 0) / top
            shapes.append(Box(x + 2, bottom - height, pitch - 4, height, style, (), tip))
        if pitch >= 30:
            y = bottom - _HEIGHT * max(wide, 0) / top - 5
            shapes.append(Label(x + pitch / 2, y, count(narrow) if narrow >= 0 else "-", anchor="middle"))
    shapes.append(Label(40, bottom + 18, "start of the tape", "muted"))
    shapes.append(Label(40 + pitch * len(live), bottom + 18, "end", "muted", "end"))
    narrowest = min((width for width in minimal if width >= 0), default=-1)
    description = (
        f"Narrowest minimum cut: {_elements(narrowest)}. Widest live set shown: {_elements(max(live))}."
    )
    return Scene(80 + pitch * len(live), bottom + 30, "Width profile of the tape", description, tuple(shapes))


def _elements(width: int) -> str:
    """Write a width; some values cannot be cut at."""
    return f"{count(width)} elements" if width >= 0 else "no cut possible"


def comparison_scene(plan: JacobianPlan) -> Scene:
    """Draw the makespan of the plan beside the plain modes and the lower bound.

    Parameters
    ----------
    plan
        The plan.

    Returns
    -------
    Scene
        One bar each, on a linear scale.
    """
    bars = [
        ("all tangent", plan.baselines["tangent"], "tangent"),
        ("all adjoint", plan.baselines["adjoint"], "adjoint"),
        ("plan, all work", plan.fma, "multiply"),
        ("plan, makespan", plan.makespan, "multiply"),
        ("lower bound", plan.solution.lower_bound, "bound"),
    ]
    most = max(cost for _, cost, _ in bars)
    shapes: list[Shape] = []
    for row, (name, cost, style) in enumerate(bars):
        y, width = 12 + _ROW * row, max(_WIDTH * cost / most, 1.5)
        against = ratio(cost / plan.makespan)
        shapes.append(Label(_LEFT - 10, y + 15, name, anchor="end"))
        shapes.append(
            Box(_LEFT, y, width, _ROW - 8, style, (), f"{name}: {cost} fma, {against} × the makespan")
        )
        shapes.append(Label(_LEFT + width + 8, y + 15, f"{count(cost)} fma", "muted"))
    description = "; ".join(f"{name} {count(cost)} fma" for name, cost, _ in bars)
    return Scene(
        _LEFT + _WIDTH + 100, 18 + _ROW * len(bars), "Plan and plain modes", description, tuple(shapes)
    )
