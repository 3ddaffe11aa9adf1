"""What errors say to write instead of functions that autograd cannot differentiate is right, and can be."""

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from autograd.core import primitive_vjps
from autograd.scipy import signal, special
from autograd.tracer import getval

from tapesplit import parallel_jacobian
from tapesplit.rules import alternatives


def interpolated(x):
    xp, fp = GRID, GRID**2
    x = np.clip(x, xp[0], xp[-1])
    i = onp.searchsorted(xp[1:-1], getval(x))
    return fp[i] + (x - xp[i]) * (fp[i + 1] - fp[i]) / (xp[i + 1] - xp[i])


GRID = onp.linspace(0.4, 1.0, 5)  # both ends of what is interpolated are outside
M = onp.random.default_rng(0).random((9, 3))
POSITIVE = onp.array([0.3, 1.2, 0.7, 0.9])
SIGNS = onp.array([1.0, 0.0, -1.0, 2.0])


def _step(x, h):
    return np.where(x == 0, h, 1.0 * (x > 0))


def _square(x):
    return np.reshape(x, (2, 2))


def _stack(x):
    return np.reshape(x, (2, 2, 1)) * M[:2, :2]


def _quotients(x, y):
    return (x - np.mod(x, y)) / y


def _extreme_ratio(X):
    values = np.linalg.svd(X, compute_uv=False)
    return np.max(values) / np.min(values)


def _covariances(X):
    X = X - np.mean(X, axis=1, keepdims=True)
    return X @ X.T / (X.shape[1] - 1)


def _correlations(X):
    X = X - np.mean(X, axis=1, keepdims=True)
    X = X / np.sqrt(np.sum(X**2, axis=1, keepdims=True))
    return X @ X.T


def _with_nan(x):
    return np.where(SIGNS < 0, onp.nan, x)


def _bare(x):
    return x[~np.isnan(x)]


LARGE = onp.array([1.0, 5.0, 9.0, 14.0])
PLACES = onp.array([0, 2, 1, 2])
INSTEAD = {
    "bincount": (lambda x: np.bincount(PLACES, x), lambda x: (onp.arange(3)[:, None] == PLACES) @ x),
    "cbrt": (np.cbrt, lambda x: np.sign(x) * np.abs(x) ** (1 / 3)),
    "convolve": (lambda x: np.convolve(x, POSITIVE), lambda x: signal.convolve(x, POSITIVE)),
    "copysign": (lambda x: np.copysign(x, SIGNS), lambda x: np.abs(x) * np.where(SIGNS < 0, -1.0, 1.0)),
    "correlate": (
        lambda x: np.correlate(x, POSITIVE[:3]),
        lambda x: signal.convolve(x, POSITIVE[:3][::-1], mode="valid"),
    ),
    "cumprod": (np.cumprod, lambda x: np.exp(np.cumsum(np.log(x)))),
    "delete": (lambda x: np.delete(x, 1), lambda x: np.concatenate([x[:1], x[2:]])),
    "ediff1d": (np.ediff1d, np.diff),
    "fmod": (
        lambda x: np.fmod(x - 0.8, 0.5),
        lambda x: np.sign(x - 0.8) * np.mod(np.abs(x - 0.8), np.abs(0.5)),
    ),
    "geomspace": (
        lambda x: np.geomspace(x[0], x[1], 5),
        lambda x: np.exp(np.linspace(np.log(x[0]), np.log(x[1]), 5)),
    ),
    "heaviside": (lambda x: np.heaviside(SIGNS * x, 0.5) * x, lambda x: _step(SIGNS * x, 0.5) * x),
    "interp": (lambda x: np.interp(x, GRID, GRID**2), interpolated),
    "logspace": (lambda x: np.logspace(x[0], x[1], 5), lambda x: 10.0 ** np.linspace(x[0], x[1], 5)),
    "lstsq": (lambda x: np.linalg.lstsq(M[:4], x)[0], lambda x: np.linalg.pinv(M[:4]) @ x),
    "median": (lambda x: np.median(x[:3]), lambda x: np.sort(x[:3])[1]),
    "meshgrid": (lambda x: np.meshgrid(x, x)[0], lambda x: x[None, :] + 0 * x[:, None]),
    "nansum": (np.nansum, lambda x: np.sum(np.where(np.isnan(x), 0.0, x))),
    "polyval": (lambda x: np.polyval([2.0, 3.0, 1.0], x), lambda x: (2.0 * x + 3.0) * x + 1.0),
    "ptp": (np.ptp, lambda x: np.max(x) - np.min(x)),
    "trapezoid": (
        lambda y: np.trapezoid(y, GRID[:4]),
        lambda y: np.sum((y[1:] + y[:-1]) * np.diff(GRID[:4])) / 2,
    ),
    "vander": (
        lambda x: np.vander(x, 3),
        lambda x: x[:, None] ** np.arange(3)[::-1],
    ),
    "apply_along_axis": (
        lambda x: np.apply_along_axis(onp.sum, 1, np.outer(x, x)),
        lambda x: np.array([np.sum(row) for row in np.outer(x, x)]),
    ),
    "arange": (lambda x: np.arange(x[0], x[0] + 2.0, 0.5), lambda x: x[0] + 0.5 * onp.arange(4)),
    "average": (lambda x: np.average(x, None, POSITIVE), lambda x: np.sum(POSITIVE * x) / np.sum(POSITIVE)),
    "compress": (
        lambda x: np.compress([False, True, True], _square(x)),
        lambda x: np.ravel(_square(x))[np.flatnonzero([False, True, True])],
    ),
    "cond": (lambda x: np.linalg.cond(M[:, :2] * x[:2]), lambda x: _extreme_ratio(M[:, :2] * x[:2])),
    "cov": (lambda x: np.cov(M[:2, :2] * x[:2]), lambda x: _covariances(M[:2, :2] * x[:2])),
    "corrcoef": (lambda x: np.corrcoef(M[:2, :2] * x[:2]), lambda x: _correlations(M[:2, :2] * x[:2])),
    "cumulative_sum": (lambda x: np.cumulative_sum(x, axis=0), np.cumsum),
    "diagflat": (lambda x: np.diagflat(_square(x)), lambda x: np.diag(np.ravel(_square(x)))),
    "diagonal": (
        lambda x: np.linalg.diagonal(_stack(x)),
        lambda x: np.diagonal(_stack(x), axis1=-1, axis2=-2),
    ),
    "divmod": (
        lambda x: np.array(np.divmod(x * 0.1 / POSITIVE, 0.1)),
        lambda x: np.array([_quotients(x * 0.1 / POSITIVE, 0.1), np.mod(x * 0.1 / POSITIVE, 0.1)]),
    ),
    "eigvals": (
        lambda x: np.sort(np.real(np.linalg.eigvals(np.diag(x)))),
        lambda x: np.sort(np.real(np.linalg.eig(np.diag(x))[0])),
    ),
    "eigvalsh": (lambda x: np.linalg.eigvalsh(np.diag(x)), lambda x: np.linalg.eigh(np.diag(x))[0]),
    "extract": (lambda x: np.extract(SIGNS > 0, x), lambda x: np.ravel(x)[np.flatnonzero(SIGNS > 0)]),
    "float_power": (lambda x: np.float_power(x, 3), lambda x: x**3),
    "histogram": (
        lambda x: np.histogram(x, GRID)[0] * x,
        lambda x: np.histogram(getval(x), GRID)[0] * x,
    ),
    "i0": (np.i0, special.i0),
    "ldexp": (lambda x: np.ldexp(x, 3), lambda x: x * 2.0**3),
    "matrix_norm": (
        lambda x: np.linalg.matrix_norm(_stack(x)),
        lambda x: np.sqrt(np.sum(np.abs(_stack(x)) ** 2, axis=(-2, -1))),
    ),
    "matrix_transpose": (
        lambda x: np.matrix_transpose(M[:, :2] * x[:2]),
        lambda x: np.swapaxes(M[:, :2] * x[:2], -1, -2),
    ),
    "matrix_power": (
        lambda x: np.linalg.matrix_power(_square(x), 3),
        lambda x: _square(x) @ _square(x) @ _square(x),
    ),
    "matvec": (
        lambda x: np.matvec(M[:4, :2], _square(x)),
        lambda x: (M[:4, :2] @ _square(x)[..., None])[..., 0],
    ),
    "modf": (lambda x: np.modf(3.0 * x)[0], lambda x: 3.0 * x - np.trunc(3.0 * x)),
    "nancumsum": (
        lambda x: np.nancumsum(_with_nan(x)),
        lambda x: np.cumsum(np.where(np.isnan(_with_nan(x)), 0.0, _with_nan(x))),
    ),
    "nanmax": (lambda x: np.nanmax(_with_nan(x)), lambda x: np.max(_bare(_with_nan(x)))),
    "nanprod": (
        lambda x: np.nanprod(_with_nan(x)),
        lambda x: np.prod(np.where(np.isnan(_with_nan(x)), 1.0, _with_nan(x))),
    ),
    "nanmean": (lambda x: np.nanmean(_with_nan(x)), lambda x: np.mean(_bare(_with_nan(x)))),
    "nanstd": (lambda x: np.nanstd(_with_nan(x)), lambda x: np.std(_bare(_with_nan(x)))),
    "outer": (lambda x: np.linalg.outer(x, x), lambda x: np.outer(x, x)),
    "polyfit": (
        lambda y: np.polyfit(GRID[:4], y, 2),
        lambda y: np.linalg.pinv(onp.vander(GRID[:4], 3)) @ y,
    ),
    "piecewise": (
        lambda x: np.piecewise(x, [SIGNS > 0, SIGNS <= 0], [onp.sin, onp.cos]),
        lambda x: np.where(SIGNS > 0, np.sin(x), np.cos(x)),
    ),
    "qr": (
        lambda x: np.abs(np.linalg.qr(M[:, :2] * x[:2])[1]),
        lambda x: np.abs(np.linalg.cholesky((M[:, :2] * x[:2]).T @ (M[:, :2] * x[:2])).T),
    ),
    "positive": (np.positive, lambda x: x),
    "resize": (lambda x: np.resize(_square(x), 6), lambda x: np.tile(np.ravel(_square(x)), 2)[:6]),
    "svdvals": (
        lambda x: np.linalg.svdvals(M[:, :2] * x[:2]),
        lambda x: np.linalg.svd(M[:, :2] * x[:2], compute_uv=False),
    ),
    "take_along_axis": (
        lambda x: np.take_along_axis(np.outer(x, x), PLACES[:, None], 1),
        lambda x: np.outer(x, x)[np.arange(4)[:, None], PLACES[:, None]],
    ),
    "trace": (
        lambda x: np.linalg.trace(_stack(x)),
        lambda x: np.sum(np.diagonal(_stack(x), axis1=-1, axis2=-2), axis=-1),
    ),
    "unique": (
        lambda x: np.unique(np.outer(x, onp.ones(2))),
        lambda x: np.ravel(np.outer(x, onp.ones(2)))[
            onp.unique(getval(np.outer(x, onp.ones(2))), return_index=True)[1]
        ],
    ),
    "unwrap": (
        lambda x: np.unwrap(x * LARGE),
        lambda x: x * LARGE + (onp.unwrap(getval(x * LARGE)) - getval(x * LARGE)),
    ),
    "vdot": (
        lambda x: np.vdot(_square(x), _square(x) + 1.0),
        lambda x: np.sum(_square(x) * (_square(x) + 1.0)),
    ),
    "vecdot": (
        lambda x: np.vecdot(_square(x), _square(x) + 1.0),
        lambda x: np.sum(_square(x) * (_square(x) + 1.0), axis=-1),
    ),
    "vecmat": (
        lambda x: np.vecmat(_square(x), M[:2]),
        lambda x: (_square(x)[..., None, :] @ M[:2])[..., 0, :],
    ),
    "vector_norm": (
        lambda x: np.linalg.vector_norm(_square(x), ord=1),
        lambda x: np.sum(np.abs(_square(x)) ** 1) ** (1 / 1),
    ),
}


@pytest.mark.parametrize("name", INSTEAD)
def test_what_to_write_instead_of_functions_that_autograd_cannot_differentiate(name):
    if not (hasattr(np, name) or hasattr(np.linalg, name)):
        pytest.skip(f"this NumPy has no {name}")
    without_rule, instead = INSTEAD[name]
    onp.testing.assert_allclose(instead(POSITIVE), without_rule(POSITIVE), rtol=1e-12)
    onp.testing.assert_allclose(
        parallel_jacobian(instead)(POSITIVE), jacobian(instead)(POSITIVE), rtol=1e-12, atol=1e-14
    )
    with pytest.raises(NotImplementedError, match=f"no VJP for '{name}'") as caught:
        parallel_jacobian(lambda x: without_rule(x) + np.sum(x))(POSITIVE)
    assert "define one with" not in str(caught.value)


@pytest.mark.parametrize("names", [*alternatives._BY_NAMES, *alternatives._OF_LINALG])
def test_what_to_write_instead_is_tried_for_each_text(names):
    if names.startswith("asarray"):
        pytest.skip("there is nothing to write")
    assert any(name in INSTEAD for name in names.split())


def test_all_functions_with_something_to_write_instead_have_no_rule():
    assert not primitive_vjps.keys() & alternatives._INSTEAD.keys()


@pytest.mark.parametrize(
    ("fun", "instead"),
    [
        (lambda x: np.diff(x, prepend=1.0), lambda x: np.diff(np.concatenate([onp.ones(1), x]))),
        (lambda x: np.diff(x, append=1.0), lambda x: np.diff(np.concatenate([x, onp.ones(1)]))),
    ],
)
def test_what_to_write_instead_of_ends_of_differences(fun, instead):
    onp.testing.assert_array_equal(instead(POSITIVE), fun(POSITIVE))
    onp.testing.assert_array_equal(parallel_jacobian(instead)(POSITIVE), jacobian(instead)(POSITIVE))
    with pytest.raises(TypeError) as caught:
        parallel_jacobian(fun)(POSITIVE)
    assert "write np.diff(np.concatenate([" in "".join(caught.value.__notes__)
