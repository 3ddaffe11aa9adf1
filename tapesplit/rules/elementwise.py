"""Elementwise primitives by their partial derivatives: the formulas of autograd's own rules.

A partial that is 1 or -1 everywhere is given as that number; the sweeps then do not multiply.
"""

from typing import Any

import autograd.numpy as anp
import numpy as np

from tapesplit.rules.registry import elementwise


def _nonzero(x: Any, replacement: float) -> Any:
    """Replace zeros."""
    return np.where(x, x, replacement)


def _power_base(ans: Any, x: Any, y: Any) -> Any:
    """Derivative of ``x**y`` by x; for a plain exponent 2, the most common one, without a power."""
    if type(y) in (int, float) and y == 2:
        return 2.0 * x
    return y * x ** np.where(y, y - 1, 1.0)


def _balanced(x: Any, ans: Any, y: Any) -> Any:
    """Share of x in a maximum or minimum: ties are split evenly."""
    return (x == ans) / (1.0 + (x == y))


elementwise(anp.add, 1, 1)
elementwise(anp.subtract, 1, -1)
elementwise(anp.multiply, lambda ans, x, y: y, lambda ans, x, y: x)
for _divide in (anp.divide, anp.true_divide):
    elementwise(_divide, lambda ans, x, y: 1.0 / y, lambda ans, x, y: -x / y**2)
elementwise(anp.power, _power_base, lambda ans, x, y: np.log(_nonzero(x, 1.0)) * ans)
for _extremum in (anp.maximum, anp.minimum, anp.fmax, anp.fmin):
    elementwise(_extremum, lambda ans, x, y: _balanced(x, ans, y), lambda ans, x, y: _balanced(y, ans, x))
elementwise(anp.negative, -1)
elementwise(anp.exp, lambda ans, x: ans)
elementwise(anp.log, lambda ans, x: 1.0 / x)
elementwise(anp.sin, lambda ans, x: np.cos(x))
elementwise(anp.cos, lambda ans, x: -np.sin(x))
elementwise(anp.tan, lambda ans, x: 1.0 / np.cos(x) ** 2)
elementwise(anp.tanh, lambda ans, x: 1.0 / np.cosh(x) ** 2)
elementwise(anp.sqrt, lambda ans, x: 0.5 * x**-0.5)
elementwise(anp.square, lambda ans, x: 2.0 * x)
elementwise(anp.where, None, lambda ans, c, x, y: np.where(c, 1.0, 0.0), lambda ans, c, x, y: np.where(c, 0.0, 1.0))
