"""Functions of autograd.numpy that autograd cannot differentiate: what to write instead."""

from collections.abc import Iterator
from typing import Any, Final

import autograd.numpy as anp

__all__ = ["instead_of"]


def instead_of(primitive: Any) -> str:
    """Say what to do about a primitive without a VJP."""
    return _INSTEAD.get(
        primitive,
        "define one with autograd.extend.defvjp, or give both tangents and adjoints to tapesplit.defvector",
    )


_BY_NAMES: Final = {
    "asarray asanyarray ascontiguousarray asfortranarray copy require": (
        "leave the call out: traced values are arrays already; np.array joins lists of them"
    ),
    "apply_along_axis": "call the function in a loop, and join what it returns by np.array",
    "bincount": "write B @ weights with B = numpy.arange(n)[:, None] == index",
    "cbrt": "write np.sign(x) * np.abs(x) ** (1 / 3)",
    "convolve": "take autograd.scipy.signal.convolve",
    "copysign": "write np.abs(x) * np.where(y < 0, -1.0, 1.0)",
    "correlate": 'write autograd.scipy.signal.convolve(a, v[::-1], mode="valid")',
    "cov": "center the rows, and write X @ X.T / (n - 1)",
    "cumprod": "write np.exp(np.cumsum(np.log(x))) where x is positive, or a loop",
    "delete insert": "join the parts by np.concatenate",
    "ediff1d": "write np.diff(x)",
    "fmod": "write np.sign(x) * np.mod(np.abs(x), np.abs(y))",
    "geomspace": "write np.exp(np.linspace(np.log(a), np.log(b), n))",
    "heaviside": "write np.where(x == 0, h, 1.0 * (x > 0))",
    "interp": (
        "write x = np.clip(x, xp[0], xp[-1]), then i = np.searchsorted(xp[1:-1], getval(x)) with "
        "autograd.tracer.getval, then fp[i] + (x - xp[i]) * (fp[i + 1] - fp[i]) / (xp[i + 1] - xp[i])"
    ),
    "logspace": "write 10.0 ** np.linspace(a, b, n)",
    "median percentile quantile": "take elements of np.sort(x)",
    "meshgrid": "let x[None, :] and y[:, None] broadcast",
    "nansum": "put np.where(np.isnan(x), 0.0, x) in the place of x",
    "piecewise": "write np.where(condition, this, that)",
    "polyval": "write a loop, y = y * x + c for each coefficient c",
    "ptp": "write np.max(x) - np.min(x)",
    "trapezoid trapz": "write np.sum((y[1:] + y[:-1]) * d) / 2 with the distances d, such as np.diff(x)",
    "vander": "write x[:, None] ** np.arange(n)[::-1]",
}
_OF_LINALG: Final = {
    "cond": "divide the largest of the singular values of np.linalg.svd by the smallest",
    "lstsq": "write np.linalg.pinv(A) @ b",
    "matrix_power": "write A @ A, and so on",
    "qr": "take np.linalg.cholesky(A.T @ A): its transpose is R, up to signs of rows",
}


def _functions(module: Any, texts: dict[str, str]) -> Iterator[tuple[Any, str]]:
    """Look the names up, of which a release of NumPy may lack some."""
    for names, text in texts.items():
        for name in names.split():
            if hasattr(module, name):
                yield getattr(module, name), text


_INSTEAD: Final = dict([*_functions(anp, _BY_NAMES), *_functions(anp.linalg, _OF_LINALG)])
