"""What the speed must reach, as ratios of times, and whether a measurement reaches it."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measure import Timing, best

AUTOGRAD_BARS = {
    "a_bottleneck": 100.0,
    "b_alternating": 85.0,
    "c_lorenz96": 17.0,
    "c_burgers": 25.0,
    "d_robot_arm": 85.0,
    "d_scalar_loop": 110.0,
    "e_curvefit": 3000.0,
    "f_wide": 3.0,
    "g_square": 7.0,
    "h_params": 35.0,
    "i_pipeline": 75.0,
}
"""Time of ``autograd.jacobian`` over ours, later calls; a first call must reach a third of it."""

TORCH_BARS = {"g_square": 1.1}
WARM_JAX_PROBLEMS = ("a_bottleneck", "b_alternating", "f_wide", "i_pipeline")


@dataclass(frozen=True, slots=True)
class Bar:
    """One ratio that must be at least ``least``."""

    problem: str
    what: str
    ratio: float
    least: float

    @property
    def holds(self) -> bool:
        """True if the measured ratio reaches the bar."""
        return self.ratio >= self.least


def bars(name: str, timings: Sequence[Timing]) -> list[Bar]:
    """Return the bars of one problem that these timings can decide."""
    ours, autograd = best(timings, "tapesplit"), best(timings, "autograd")
    if ours is None or autograd is None:
        raise ValueError(f"{name}: the timings must contain tapesplit and autograd")
    least = AUTOGRAD_BARS.get(name, 1.0)
    found = [
        Bar(name, "autograd / ours", autograd.later / ours.later, least),
        Bar(name, "autograd / ours, first call", autograd.first / ours.first, least / 3),
    ]
    if ours.later > 1e-3:
        found.append(Bar(name, "2.5 later calls / first call", 2.5 * ours.later / ours.first, 1.0))
    if torch := best(timings, "torch"):
        found.append(Bar(name, "torch / ours", torch.later / ours.later, TORCH_BARS.get(name, 1.0)))
    if jax := best(timings, "jax"):
        if name in WARM_JAX_PROBLEMS:
            found.append(Bar(name, "jax warm / ours", jax.later / ours.later, 1.0))
        cold = min(timing.first for timing in timings if timing.peer == "jax")
        found.append(Bar(name, "jax cold / ours, first call", cold / ours.first, 1.0))
    return found
