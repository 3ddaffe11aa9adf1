"""How near two arrays are, and the error or warning if they are not near enough."""

import warnings
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from tapesplit.errors import WrongJacobianError

__all__ = ["check_close", "check_within", "finite_sizes", "largest", "tolerance_of", "warn_if_changed"]

_TOLERANCES: Final = {"f": 3e-4, "F": 3e-4, "e": 3e-2}
"""Largest difference by type code, relative to what is expected there; 1e-9 for all others."""


def finite_sizes(values: np.ndarray) -> np.ndarray:
    """Return absolute values in double precision, 0 for those that are not finite."""
    return np.abs(np.where(np.isfinite(values), values, 0.0)).astype(np.float64)


def largest(values: np.ndarray) -> float:
    """Return the largest absolute value that is finite, 0 if there is none."""
    return float(finite_sizes(values).max(initial=0.0))


def tolerance_of(values: Iterable[np.ndarray]) -> float:
    """Return how far results may differ, relative to what is expected, by the least precise value."""
    return max(_TOLERANCES.get(value.dtype.char, 1e-9) for value in values)


def check_close(
    found: Any,
    expected: Any,
    what: str,
    tolerance: float,
    *,
    least: float = 1e-3,
    error: type[AssertionError] = WrongJacobianError,
) -> None:
    """Raise if two arrays differ in shape or by more than a tolerance, relative to the largest element.

    A largest element below ``least`` counts as ``least``, since sums that cancel leave rounding errors.
    """
    expected = np.asarray(expected)
    check_within(found, expected, tolerance * max(largest(expected), least), what, error)


def warn_if_changed(found: np.ndarray, known: np.ndarray, solver: str) -> None:
    """Warn if the solution that is found for the derivative clearly differs from that of the call."""
    if largest(found - known) > _CHANGED * largest(known):
        warnings.warn(
            f"the function that was given to {solver} computes other values now that the derivative is "
            "taken: what it closes over, such as the variable of a loop, must not change after the call; "
            "hand it over as a parameter",
            stacklevel=2,
        )


_CHANGED: Final = 0.01
"""Relative difference that no tolerance of a solver explains."""


def check_within(
    found: Any,
    expected: np.ndarray,
    allowed: Any,
    what: str,
    error: type[AssertionError] = WrongJacobianError,
) -> None:
    """Raise if two arrays differ in shape or by more than is allowed, a number or one for each element."""
    found = np.asarray(found)
    if found.shape != expected.shape:
        raise error(f"{what}: its shape is {found.shape} instead of {expected.shape}")
    wrong = ~np.isclose(found, expected, rtol=0.0, atol=allowed, equal_nan=True)
    if wrong.any():
        where = tuple(map(int, np.unravel_index(np.argmax(wrong), wrong.shape)))
        raise error(
            f"{what}: {np.count_nonzero(wrong)} of {wrong.size} elements are wrong, the first at {where}: "
            f"{found[where]} instead of {expected[where]}"
        )
