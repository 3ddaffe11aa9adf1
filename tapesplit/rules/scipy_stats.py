"""Densities and distribution functions of scipy.stats: the formulas of autograd's own rules."""

from collections.abc import Callable
from functools import partial
from math import isqrt, prod
from typing import Any

import numpy as np
from autograd.scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t
from scipy import special as sp
from scipy import stats

from tapesplit.rules.quadratic_forms import SQUARES_HELD, pairs_held, quadratic_forms, sums_of_squares
from tapesplit.rules.registry import UNDEFINED, Held, bulk, elementwise


def _density(log_density: Any, density: Any, *derivatives: Any, pace: int) -> None:
    """Register a density and its logarithm by the partial derivatives of the latter."""

    def times_density(derivative: Any) -> Any:
        return lambda ans, *args, **kwargs: ans * derivative(ans, *args, **kwargs)

    elementwise(log_density, *derivatives, pace=pace)
    elementwise(density, *(d if d is UNDEFINED else times_density(d) for d in derivatives), pace=pace)


# Normal distribution
def _norm_scale(ans: Any, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    return -1.0 / scale + (x - loc) ** 2 / scale**3


def _norm_location(ans: Any, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    return (x - loc) / scale**2


def _norm_value(ans: Any, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    return -(x - loc) / scale**2


def _distribution(primitive: Any, slope: Any) -> None:
    """Register a distribution function by its derivative by the value; the other two follow."""

    def by_scale(ans: Any, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        return -slope(ans, x, loc, scale) * (x - loc) / scale

    elementwise(
        primitive,
        slope,
        lambda ans, x, loc=0.0, scale=1.0: -slope(ans, x, loc, scale),
        by_scale,
        pace=16,
    )


def _norm_hazard(ans: Any, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Density over probability, through logarithms."""
    return np.exp(stats.norm.logpdf(x, loc, scale) - ans)


_density(norm.logpdf, norm.pdf, _norm_value, _norm_location, _norm_scale, pace=4)
_distribution(norm.cdf, lambda ans, x, loc=0.0, scale=1.0: stats.norm.pdf(x, loc, scale))
_distribution(norm.sf, lambda ans, x, loc=0.0, scale=1.0: -stats.norm.pdf(x, loc, scale))
_distribution(norm.logcdf, _norm_hazard)
_distribution(norm.logsf, lambda ans, x, loc=0.0, scale=1.0: -_norm_hazard(ans, x, loc, scale))


# Student's t distribution
def _t_value(ans: Any, x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    y = (x - loc) / scale
    return -y * (1.0 + df) / (y**2 + df) / scale


def _t_location(ans: Any, x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    return -_t_value(ans, x, df, loc, scale)


def _t_scale(ans: Any, x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    difference = x - loc
    return -(df * (scale**2 - difference**2)) / (scale * (df * scale**2 + difference**2))


def _t_freedom(ans: Any, x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    y = (x - loc) / scale
    logs = np.log(y**2 / df + 1) + sp.psi(df / 2.0) - sp.psi((df + 1) / 2.0)
    return 0.5 * (y**2 * (df + 1) / (df * (y**2 + df)) - logs - 1.0 / df)


def _t_hazard(ans: Any, x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    return np.exp(stats.t.logpdf(x, df, loc, scale) - ans)


_density(t.logpdf, t.pdf, _t_value, _t_freedom, _t_location, _t_scale, pace=25)
elementwise(
    t.cdf,
    lambda ans, x, df, loc=0.0, scale=1.0: stats.t.pdf(x, df, loc, scale),
    UNDEFINED,
    lambda ans, x, df, loc=0.0, scale=1.0: -stats.t.pdf(x, df, loc, scale),
    UNDEFINED,
    pace=110,
)
elementwise(
    t.logcdf, _t_hazard, UNDEFINED, lambda *args, **kwargs: -_t_hazard(*args, **kwargs), UNDEFINED, pace=110
)


# Gamma, beta, chi-squared and Poisson distributions
def _gamma_value(ans: Any, x: Any, a: Any) -> Any:
    return (a - x - 1) / x


def _gamma_shape(ans: Any, x: Any, a: Any) -> Any:
    return np.log(x) - sp.psi(a)


_density(gamma.logpdf, gamma.pdf, _gamma_value, _gamma_shape, pace=15)
elementwise(gamma.cdf, lambda ans, x, a: np.exp(-x) * np.power(x, a - 1) / sp.gamma(a), UNDEFINED, pace=25)


def _beta_value(ans: Any, x: Any, a: Any, b: Any) -> Any:
    return (1 + a * (x - 1) + x * (b - 2)) / (x * (x - 1))


def _beta_first(ans: Any, x: Any, a: Any, b: Any) -> Any:
    return np.log(x) - sp.psi(a) + sp.psi(a + b)


def _beta_second(ans: Any, x: Any, a: Any, b: Any) -> Any:
    return np.log1p(-x) - sp.psi(b) + sp.psi(a + b)


_density(beta.logpdf, beta.pdf, _beta_value, _beta_first, _beta_second, pace=25)
elementwise(
    beta.cdf,
    lambda ans, x, a, b: np.power(x, a - 1) * np.power(1 - x, b - 1) / sp.beta(a, b),
    UNDEFINED,
    UNDEFINED,
    pace=80,
)


def _chi2_value(ans: Any, x: Any, df: Any) -> Any:
    return np.where(df % 1 == 0, (df - x - 2) / (2 * x), 0)


_density(chi2.logpdf, chi2.pdf, _chi2_value, UNDEFINED, pace=10)
elementwise(
    chi2.cdf,
    lambda ans, x, df: np.power(2.0, -df / 2) * np.exp(-x / 2) * np.power(x, df / 2 - 1) / sp.gamma(df / 2),
    UNDEFINED,
    pace=25,
)


def _poisson_mean(ans: Any, k: Any, mu: Any) -> Any:
    return np.where(k % 1 == 0, k / mu - 1, 0)


_density(poisson.logpmf, poisson.pmf, UNDEFINED, _poisson_mean, pace=6)
elementwise(poisson.cdf, UNDEFINED, lambda ans, k, mu: -stats.poisson.pmf(np.floor(k), mu), pace=110)


# Densities of vectors
def _vector_density(
    logpdf: Any, pdf: Any, tangents: list[Any], adjoints: list[Any], edges: Any, held: Any = None
) -> None:
    """Register a density by the functions that carry directions through its logarithm."""

    def of_density(function: Any, *, adjoint: bool) -> Any:
        def scaled(X: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> Any:
            rows = function(X * ans if adjoint else X, ans, *args, **kwargs)
            return rows if adjoint or rows is NotImplemented else rows * ans

        return scaled

    bulk(logpdf, tangents=tangents, adjoints=adjoints, edges=edges, held=held)
    bulk(
        pdf,
        tangents=[of_density(function, adjoint=False) for function in tangents],
        adjoints=[of_density(function, adjoint=True) for function in adjoints],
        edges=edges,
        held=held and partial(held, copies=1),
    )


def _dirichlet_weights(x: Any, alpha: Any, argnum: int) -> np.ndarray | None:
    """Derivatives of the logarithm for one vector, None for several."""
    x, alpha = np.asarray(x), np.asarray(alpha)
    if not x.shape == alpha.shape == (x.size,):
        return None
    return (alpha - 1) / x if argnum == 0 else sp.psi(np.sum(alpha)) - sp.psi(alpha) + np.log(x)


def _dirichlet(argnum: int, carry: Callable[..., np.ndarray]) -> Any:
    """Make a directional function of one that takes the directions and the derivatives."""

    def directional(X: np.ndarray, ans: Any, x: Any, alpha: Any) -> Any:
        weights = _dirichlet_weights(x, alpha, argnum)
        return NotImplemented if weights is None else carry(X, weights)

    return directional


_vector_density(
    dirichlet.logpdf,
    dirichlet.pdf,
    [_dirichlet(argnum, np.matmul) for argnum in (0, 1)],
    [_dirichlet(argnum, np.multiply.outer) for argnum in (0, 1)],
    lambda ans, args, argnums, kwargs: len(argnums) * int(np.size(args[0])),
)


def _standardized(x: Any, mean: Any, cov: Any, *, allow_singular: Any) -> np.ndarray | None:
    """Return ``cov^-1 (x - mean)`` for one point or a list of them, None for forms that autograd refuses."""
    x, cov = np.asarray(x), np.asarray(cov)
    if not (x.ndim in {1, 2} and np.ndim(mean) == 1 and cov.shape == (x.shape[-1], x.shape[-1])):
        return None
    difference = np.atleast_2d(x - mean).T
    return (np.linalg.pinv(cov) @ difference if allow_singular else np.linalg.solve(cov, difference)).T


def _normal(argnum: int, function: Callable[..., np.ndarray], *, adjoint: bool = False) -> Any:
    """Make a directional function of one that takes standardized points ``(n, d)`` and the covariance."""

    def directional(
        X: np.ndarray, ans: Any, x: Any, mean: Any = None, cov: Any = None, allow_singular: Any = False
    ) -> Any:
        y = _standardized(x, mean, cov, allow_singular=allow_singular)
        if y is None or (argnum == 2 and allow_singular):
            return NotImplemented
        points = y.shape[:1] if adjoint else y.shape
        rows = function(X.reshape(len(X), *points) if adjoint or argnum == 0 else X, y, cov)
        return rows.reshape(len(X), *np.shape((x, mean, cov)[argnum] if adjoint else ans))

    return directional


def _half_log_det_tangent(T: np.ndarray, cov: Any) -> np.ndarray:
    """Tangents of half the logarithm of a determinant, which is the entropy but for a constant."""
    return 0.5 * np.tensordot(T, np.linalg.inv(cov).T, 2)


def _half_log_det_adjoint(A: np.ndarray, cov: Any) -> np.ndarray:
    return 0.5 * A[:, None, None] * np.linalg.inv(cov).T


def _covariance_tangent(T: np.ndarray, y: np.ndarray, cov: Any) -> np.ndarray:
    """Tangents of all elements of the covariance, which autograd's rule does not take for symmetric."""
    rows = quadratic_forms(T, y)
    rows *= 0.5
    rows -= _half_log_det_tangent(T, cov)[:, None]
    return rows


def _covariance_adjoint(A: np.ndarray, y: np.ndarray, cov: Any) -> np.ndarray:
    rows = sums_of_squares(A, y)
    rows *= 0.5
    rows -= _half_log_det_adjoint(A.sum(axis=1), cov)
    return rows


def _normal_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E|: d for each point, d^2 by the covariance."""
    return int(np.size(args[0])) * sum(np.shape(args[0])[-1] if argnum == 2 else 1 for argnum in argnums)


def _normal_held(args: tuple[Any, ...], argnum: int, *, adjoint_mode: bool, copies: int = 0) -> Held:
    """Count what is held: ``copies`` of the values, what each argument takes, and all points twice."""
    points, values = int(np.size(args[0])), prod(np.shape(args[0])[:-1])
    each, shared = copies * values, 2 * points
    if argnum == 2:
        size = int(np.size(args[2]))
        return Held(each + SQUARES_HELD * size, shared + pairs_held(points, isqrt(size)))
    return Held(each + values * (argnum == 0), shared)


_vector_density(
    multivariate_normal.logpdf,
    multivariate_normal.pdf,
    [
        _normal(0, lambda T, y, cov: -np.einsum("kni,ni->kn", T, y)),
        _normal(1, lambda T, y, cov: T @ y.T),
        _normal(2, _covariance_tangent),
    ],
    [
        _normal(0, lambda A, y, cov: -A[..., None] * y, adjoint=True),
        _normal(1, lambda A, y, cov: A @ y, adjoint=True),
        _normal(2, _covariance_adjoint, adjoint=True),
    ],
    _normal_edges,
    _normal_held,
)
bulk(
    multivariate_normal.entropy,
    tangents=[None, lambda T, ans, mean, cov: _half_log_det_tangent(T, cov)],
    adjoints=[None, lambda A, ans, mean, cov: _half_log_det_adjoint(A, cov)],
    edges=lambda ans, args, argnums, kwargs: int(np.size(args[1])),
)
