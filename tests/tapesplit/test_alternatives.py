"""What errors say to write instead of functions that autograd cannot differentiate is right, and can be."""

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from autograd.core import primitive_vjps
from autograd.scipy import signal
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
}


@pytest.mark.parametrize("name", INSTEAD)
def test_what_to_write_instead_of_functions_that_autograd_cannot_differentiate(name):
    without_rule, instead = INSTEAD[name]
    onp.testing.assert_allclose(instead(POSITIVE), without_rule(POSITIVE), rtol=1e-12)
    onp.testing.assert_allclose(
        parallel_jacobian(instead)(POSITIVE), jacobian(instead)(POSITIVE), rtol=1e-12, atol=1e-15
    )
    with pytest.raises(NotImplementedError, match=f"no VJP for '{name}'") as caught:
        parallel_jacobian(lambda x: without_rule(x) + np.sum(x))(POSITIVE)
    assert "define one with" not in str(caught.value)


def test_all_functions_with_something_to_write_instead_have_no_rule():
    assert not primitive_vjps.keys() & alternatives._INSTEAD.keys()
