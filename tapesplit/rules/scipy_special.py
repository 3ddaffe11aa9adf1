"""Special functions of scipy.special: the formulas of autograd's own rules."""

from typing import Any, Final

import numpy as np
from autograd.scipy import special
from scipy import special as sp

from tapesplit.rules.reductions import weighted
from tapesplit.rules.registry import UNDEFINED, elementwise
from tapesplit.rules.stacks import along_axis, stacked

_ROOT_PI: Final = np.sqrt(np.pi)

# Gamma and beta functions
elementwise(special.gamma, lambda ans, x: ans * sp.psi(x), pace=12)
elementwise(special.gammaln, lambda ans, x: sp.psi(x), pace=12)
elementwise(special.gammasgn, None)
elementwise(special.rgamma, lambda ans, x: sp.psi(x) / -sp.gamma(x), pace=23)
for _digamma in (special.psi, special.digamma):
    elementwise(_digamma, lambda ans, x: sp.polygamma(1, x), pace=300)
elementwise(special.polygamma, None, lambda ans, n, x: sp.polygamma(n + 1, x), pace=300)
elementwise(
    special.gammainc, UNDEFINED, lambda ans, a, x: np.exp(-x) * np.power(x, a - 1) / sp.gamma(a), pace=16
)
elementwise(
    special.gammaincc, UNDEFINED, lambda ans, a, x: -np.exp(-x) * np.power(x, a - 1) / sp.gamma(a), pace=16
)
elementwise(
    special.beta,
    lambda ans, a, b: ans * (sp.psi(a) - sp.psi(a + b)),
    lambda ans, a, b: ans * (sp.psi(b) - sp.psi(a + b)),
    pace=25,
)
elementwise(
    special.betaln,
    lambda ans, a, b: sp.psi(a) - sp.psi(a + b),
    lambda ans, a, b: sp.psi(b) - sp.psi(a + b),
    pace=25,
)
elementwise(
    special.betainc,
    UNDEFINED,
    UNDEFINED,
    lambda ans, a, b, x: np.power(x, a - 1) * np.power(1 - x, b - 1) / sp.beta(a, b),
    pace=80,
)


def _multigamma(ans: Any, a: Any, d: Any) -> Any:
    """Sum of ``psi(a - j / 2)`` over the j below d."""
    j = np.arange(np.max(d))
    return np.where(j < np.expand_dims(d, -1), sp.psi(np.expand_dims(a, -1) - j / 2), 0.0).sum(axis=-1)


elementwise(special.multigammaln, _multigamma, pace=30)

# Bessel functions
elementwise(special.j0, lambda ans, x: -sp.j1(x), pace=7)
elementwise(special.y0, lambda ans, x: -sp.y1(x), pace=20)
elementwise(special.j1, lambda ans, x: (sp.j0(x) - sp.jn(2, x)) / 2.0, pace=200)
elementwise(special.y1, lambda ans, x: (sp.y0(x) - sp.yn(2, x)) / 2.0, pace=70)
elementwise(special.jn, None, lambda ans, n, x: (sp.jn(n - 1, x) - sp.jn(n + 1, x)) / 2.0, pace=1400)
elementwise(special.yn, None, lambda ans, n, x: (sp.yn(n - 1, x) - sp.yn(n + 1, x)) / 2.0, pace=1900)
elementwise(special.i0, lambda ans, x: sp.i1(x), pace=60)
elementwise(special.i1, lambda ans, x: (sp.i0(x) + sp.iv(2, x)) / 2.0, pace=270)
elementwise(special.iv, None, lambda ans, n, x: (sp.iv(n - 1, x) + sp.iv(n + 1, x)) / 2.0, pace=540)
elementwise(special.ive, None, lambda ans, n, x: ans * (n / x - np.sign(x)) + sp.ive(n + 1, x), pace=160)

# Error and logistic functions
elementwise(special.erf, lambda ans, x: 2.0 / _ROOT_PI * np.exp(-(x**2)))
elementwise(special.erfc, lambda ans, x: -2.0 / _ROOT_PI * np.exp(-(x**2)))
elementwise(special.erfinv, lambda ans, x: _ROOT_PI / 2.0 * np.exp(ans**2))
elementwise(special.erfcinv, lambda ans, x: -_ROOT_PI / 2.0 * np.exp(ans**2))
elementwise(special.logit, lambda ans, x: 1.0 / (x * (1 - x)))
elementwise(special.expit, lambda ans, x: ans * (1 - ans))


def _softmax(ans: Any, x: Any, axis: Any, b: Any = 1.0) -> Any:
    """Weights of the terms of a sum of exponentials, times their factors."""
    return b * np.exp(x - ans)


weighted(special.logsumexp, _softmax)
stacked(special.logsumexp, along_axis)
