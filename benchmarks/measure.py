"""Measure several ways to compute one Jacobian: correctness first, then interleaved rounds, then medians.

A machine that others use slows everything down now and then. Rounds in which each variant has its turn spread
that over all of them, so the ratios of the medians stay meaningful where the times are not.
"""

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = 1e-10
"""Largest error, relative to the largest entry, of a result that is worth timing."""

Call = Callable[[], Any]


class WrongResultError(AssertionError):
    """A variant computes something else than the reference."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to compute a Jacobian.

    Parameters
    ----------
    peer
        The library.
    mode
        What is chosen within the library, such as "adjoint".
    make
        Return a fresh call: nothing planned, traced or compiled before.
    """

    peer: str
    mode: str
    make: Callable[[], Call]


@dataclass(slots=True)
class Timing:
    """What was measured of one variant; times in seconds."""

    peer: str
    mode: str
    error: float
    firsts: list[float] = field(default_factory=list)
    laters: list[float] = field(default_factory=list)

    @property
    def first(self) -> float:
        """Median time of a first call with all that it plans, traces or compiles; libraries are warm."""
        return statistics.median(self.firsts)

    @property
    def later(self) -> float:
        """Median time of a later call."""
        return statistics.median(self.laters)


def measure(
    variants: Sequence[Variant],
    *,
    repeat: int = 7,
    turn: float = 0.02,
    budget: float = 3.0,
) -> list[Timing]:
    """Time every variant.

    Parameters
    ----------
    variants
        The first one is the reference of correctness.
    repeat
        Rounds in which every variant has a turn.
    turn
        Seconds that the later calls of a turn take at least, together.
    budget
        Seconds after which a variant has no more turns; each has at least one.

    Raises
    ------
    WrongResultError
        If a result is off by more than `TOLERANCE`; nothing is timed then.
    """
    reference, calls, timings = None, [], []
    for variant in variants:
        start = time.perf_counter()
        call = variant.make()
        result = np.asarray(call())
        seconds = time.perf_counter() - start
        reference = result if reference is None else reference
        calls.append(call)
        error = _checked_error(variant, result, reference)
        # A first call in a cold process says little, but a long compilation is not done twice.
        timings.append(Timing(variant.peer, variant.mode, error, [seconds] if seconds > budget else []))
    for _ in range(repeat):
        for variant, call, timing in zip(variants, calls, timings, strict=True):
            if sum(timing.laters) < budget:
                timing.laters += _turn(call, turn)
            if sum(timing.firsts) < budget / 3:
                timing.firsts += _turn(lambda make=variant.make: make()(), at_least=0.0)
    return timings


def best(timings: Sequence[Timing], peer: str) -> Timing | None:
    """Return the faster mode of a peer, or None if it was not measured."""
    return min((timing for timing in timings if timing.peer == peer), key=lambda t: t.later, default=None)


def machine() -> dict[str, str]:
    """Describe processor, interpreter and libraries."""
    facts = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    for name in ("tapesplit", "autograd", "numpy", "scipy", "torch", "jax"):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            facts[name] = "not installed"
    return facts


def _turn(call: Call, at_least: float) -> list[float]:
    """Time a call, and again until the turn is long enough to forget what ran before it."""
    gc.collect()
    spans: list[float] = []
    begin = finish = time.perf_counter()
    while not spans or finish - begin < at_least:
        start = time.perf_counter()
        call()
        finish = time.perf_counter()
        spans.append(finish - start)
    return spans


def _checked_error(variant: Variant, result: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative error, unless it is too large."""
    if result.shape != reference.shape:
        raise WrongResultError(f"{variant.peer} returned shape {result.shape} instead of {reference.shape}")
    error = float(np.max(np.abs(result - reference)) / np.max(np.abs(reference)))
    if not error <= TOLERANCE:
        raise WrongResultError(
            f"{variant.peer} ({variant.mode}) is wrong by {error:.1e} of the largest entry; only results "
            f"within {TOLERANCE:.0e} are timed"
        )
    return error


def _processor() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
