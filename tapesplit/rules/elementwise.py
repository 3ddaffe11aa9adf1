"""Elementwise primitives of autograd.numpy by their partial derivatives, the formulas of autograd's rules.

A partial that is 1 or -1 everywhere is given as that number; the sweeps then do not multiply. A partial that
selects elements is a float, never a bool: partials of several paths are added. Quotients go through
`np.divide` where Python numbers would raise ZeroDivisionError and NumPy gives an infinity.
"""

from functools import cache
from typing import Any, Final

import autograd.numpy as anp
import numpy as np

from tapesplit.recording.primitives import slope_of_tanh
from tapesplit.rules.registry import elementwise

__all__ = ["CHOICE"]

_LN2, _LN10 = np.log(2), np.log(10)


def _nonzero(x: Any, replacement: float) -> Any:
    """Replace zeros."""
    return np.where(x, x, replacement)


def _power_base(ans: Any, x: Any, y: Any) -> Any:
    """Derivative of ``x**y`` by x; for plain exponents 2 to 4, the most common ones, without a power."""
    y = _common(y) if _is_double(x) and _is_double(y) else y
    if type(y) in (int, float) and y in {2, 3, 4}:
        return float(y) * (x if y == 2 else x * x if y == 3 else x * x * x)
    return y * x ** np.where(y, y - 1, 1.0)


def _is_double(x: Any) -> bool:
    """Whether a value is an array of real numbers in double precision, and has some."""
    return type(x) is np.ndarray and x.dtype == np.float64 and x.size > 0


def _common(y: Any) -> Any:
    """Return the number that all elements of an array are, if so: systems gather those of many calls."""
    first = y.item(0)
    return first if (y == first).all() else y


def _inverse(ans: Any, x: Any, y: Any) -> Any:
    """Derivative of ``x / y`` by x; a plain number stays one, so that float32 stays float32."""
    return 1.0 / y if type(y) in (int, float) and y else np.divide(1.0, y)


def _angle(ans: Any, x: Any) -> Any:
    """Derivative of the phase; zero for a real number."""
    return np.conj(x * 1j) / np.abs(x) ** 2 if np.iscomplexobj(x) else 0.0


def _balanced(x: Any, ans: Any, y: Any) -> Any:
    """Share of x in a maximum or minimum: ties are split evenly."""
    return (x == ans) / (1.0 + (x == y))


def _absolute(ans: Any, x: Any) -> Any:
    """Sign of a number, zero at zero; its conjugate phase for a complex one."""
    return _nonzero(np.conj(x), 0.0) / _nonzero(ans, 1.0)


def _within(ans: Any, x: Any, a_min: Any, a_max: Any) -> Any:
    """One inside the limits of a clip, zero on and beyond them."""
    return ((ans != a_min) & (ans != a_max)) * np.ones((), np.result_type(ans))


def _sinc(ans: Any, x: Any) -> Any:
    """Derivative of ``sin(pi x) / (pi x)``; near 0, where its terms cancel, by its Taylor series."""
    t = np.pi * x
    is_small = np.abs(t) < 0.2  # beyond, the closed form loses two digits at most
    u, v = np.where(is_small, 1.0, t), np.where(is_small, t, 0.0) ** 2
    series = t / 3 * (1 - v / 10 * (1 - v / 28 * (1 - v / 54 * (1 - v / 88))))
    return -np.pi * np.where(is_small, series, (np.sin(u) / u - np.cos(u)) / u)


_LONG: Final = 200
"""Elements from which on it pays to compute a cosine or sine from the other one."""


@cache
def _has_vector_tan() -> bool:
    """Whether `numpy.tan` computes several numbers at a time on this processor, as `numpy.sin` does not."""
    found = np.lib.introspect.opt_func_info("^tan$", "float64")
    targets = [loop["current"] for loops in found.values() for loop in loops.values()]
    return any(not target.startswith("baseline") for target in targets)


def _has_fast_tan(x: Any) -> bool:
    """Whether `numpy.tan` of an array takes a fraction of the time of `numpy.sin`."""
    return type(x) is np.ndarray and x.size >= _LONG and x.dtype == np.float64 and _has_vector_tan()


def _cos(ans: Any, x: Any) -> Any:
    """Derivative of the sine; the quotient, too, is within a few units in the last place everywhere."""
    if not _has_fast_tan(x):
        return np.cos(x)
    tan = np.tan(x)
    return np.divide(ans, tan, out=np.ones_like(tan), where=tan != 0)


def _negative_sin(ans: Any, x: Any) -> Any:
    """Derivative of the cosine."""
    return -np.tan(x) * ans if _has_fast_tan(x) else -np.sin(x)


# Two arguments
elementwise(anp.add, 1, 1)
elementwise(anp.subtract, 1, -1)
elementwise(anp.multiply, lambda ans, x, y: y, lambda ans, x, y: x)
elementwise(anp.divide, _inverse, lambda ans, x, y: -x / np.square(y))
elementwise(anp.mod, 1, lambda ans, x, y: -np.floor(np.divide(x, y)))
elementwise(anp.power, _power_base, lambda ans, x, y: np.log(_nonzero(x, 1.0)) * ans)
for _extremum in (anp.maximum, anp.minimum, anp.fmax, anp.fmin):
    elementwise(_extremum, lambda ans, x, y: _balanced(x, ans, y), lambda ans, x, y: _balanced(y, ans, x))
elementwise(anp.logaddexp, lambda ans, x, y: np.exp(x - ans), lambda ans, x, y: np.exp(y - ans))
elementwise(anp.logaddexp2, lambda ans, x, y: 2 ** (x - ans), lambda ans, x, y: 2 ** (y - ans))
elementwise(
    anp.arctan2, lambda ans, x, y: np.divide(y, x**2 + y**2), lambda ans, x, y: np.divide(-x, x**2 + y**2)
)
elementwise(anp.hypot, lambda ans, x, y: x / ans, lambda ans, x, y: y / ans)
CHOICE: Final = getattr(anp, "_original_where", anp.where)  # anp.where itself is no primitive in autograd 1.9
"""The primitive of ``where``; its condition must never be rounded, as tiny numbers would become zero."""
elementwise(
    CHOICE,
    None,
    lambda ans, c, x, y: np.where(c, 1.0, 0.0),
    lambda ans, c, x, y: np.where(c, 0.0, 1.0),
)

# One argument
elementwise(anp.negative, -1)
elementwise(anp.abs, _absolute)
elementwise(anp.fabs, lambda ans, x: np.sign(x))
elementwise(anp.reciprocal, lambda ans, x: np.divide(-1.0, x**2))
elementwise(anp.square, lambda ans, x: 2.0 * x)
elementwise(anp.sqrt, lambda ans, x: np.divide(0.5, ans + 0.0))  # the root of -0.0 is -0.0
elementwise(anp.clip, _within)
elementwise(anp.nan_to_num, lambda ans, x: np.where(np.isfinite(x), 1.0, 0.0))

# Exponentials and logarithms
elementwise(anp.exp, lambda ans, x: ans)
elementwise(anp.exp2, lambda ans, x: ans * _LN2)
elementwise(anp.expm1, lambda ans, x: ans + 1)
elementwise(anp.log, lambda ans, x: np.divide(1.0, x))
elementwise(anp.log2, lambda ans, x: np.divide(1.0, x) / _LN2)
elementwise(anp.log10, lambda ans, x: np.divide(1.0, x) / _LN10)
elementwise(anp.log1p, lambda ans, x: np.divide(1.0, x + 1))

# Trigonometric and hyperbolic functions
elementwise(anp.sin, _cos)
elementwise(anp.cos, _negative_sin)
elementwise(anp.tan, lambda ans, x: 1.0 + ans**2)
elementwise(anp.arcsin, lambda ans, x: 1.0 / np.sqrt(1 - x**2))
elementwise(anp.arccos, lambda ans, x: -1.0 / np.sqrt(1 - x**2))
elementwise(anp.arctan, lambda ans, x: 1.0 / (1 + x**2))
elementwise(anp.sinh, lambda ans, x: np.cosh(x))
elementwise(anp.cosh, lambda ans, x: np.sinh(x))
elementwise(anp.tanh, lambda ans, x: slope_of_tanh.fun(x))
elementwise(slope_of_tanh, lambda ans, x: -2.0 * np.tanh(x) * ans)
elementwise(anp.arcsinh, lambda ans, x: 1.0 / np.sqrt(x**2 + 1))
elementwise(anp.arccosh, lambda ans, x: 1.0 / np.sqrt(x**2 - 1))
elementwise(anp.arctanh, lambda ans, x: np.divide(1.0, 1 - x**2))
elementwise(anp.sinc, _sinc, pace=50)
for _to_degrees in (anp.rad2deg, anp.degrees):
    elementwise(_to_degrees, lambda ans, x: 180.0 / np.pi)
for _to_radians in (anp.deg2rad, anp.radians):
    elementwise(_to_radians, lambda ans, x: np.pi / 180.0)

# Parts of complex numbers. The sweeps take the real part wherever a value is real.
elementwise(anp.real, 1)
elementwise(anp.real_if_close, 1)
elementwise(anp.imag, lambda ans, x: -1j if np.iscomplexobj(x) else 0.0)
elementwise(anp.angle, _angle)
