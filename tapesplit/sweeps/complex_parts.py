"""Parts of complex numbers: how derivatives between complex numbers become real coefficients.

A complex number is a pair of real elements, its real part and then its imaginary part. Real parts, moduli and
conjugates are then linear, which they are not over the complex numbers.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal

import numpy as np

from tapesplit.arrays import IntArray

__all__ = ["VARYING", "Part", "pairs", "part_of", "parts_between"]

Part = Literal["real", "imaginary", "minus real", "minus imaginary"]
"""Which part of a derivative a coefficient is."""

VARYING: Final = (np.nan, complex(np.nan))
"""Stand-ins, a real and a complex one, for derivatives that depend on the values of a call."""


def part_of(derivative: Any, part: Part) -> Any:
    """Return one part of a derivative, which may be real."""
    if part == "real":  # as nearly always
        return derivative.real
    found = derivative.imag if part.endswith("imaginary") else derivative.real
    return -found if part.startswith("minus") else found


def parts_between(
    of_complex: Any, by_complex: Any, derivative: Any, *, conjugated: bool = False
) -> Iterator[tuple[int, int, Part]]:
    """List the real coefficients that make up the derivative p of one number by another.

    If both are complex, the tangents t and ``t' = p t`` are the pairs ``Re t' = Re p Re t - Im p Im t`` and
    ``Im t' = Im p Re t + Re p Im t``. A real number has the first part only.

    Parameters
    ----------
    of_complex, by_complex
        Whether the one number, and the other, is complex.
    derivative
        An example; it tells whether p is complex.
    conjugated
        Whether the conjugate of t is multiplied by a real p.

    Yields
    ------
    row, column, part
        Which part of the one number depends on which part of the other, by which part of p.
    """
    yield 0, 0, "real"
    if by_complex and np.iscomplexobj(derivative):
        yield 0, 1, "minus imaginary"
    if of_complex and np.iscomplexobj(derivative):
        yield 1, 0, "imaginary"
    if of_complex and by_complex:
        yield 1, 1, "minus real" if conjugated else "real"


def pairs(places: IntArray) -> IntArray:
    """Return the places of both parts of complex numbers, along a new axis, given those of the real parts."""
    return places[..., None] + np.arange(2)
