"""Functions and calls of autograd.numpy that autograd cannot differentiate: what to write instead."""

import re
from collections.abc import Iterator
from typing import Any, Final

import autograd.numpy as anp

from tapesplit.errors import RuleError

__all__ = ["instead_of", "instead_of_call"]


def instead_of(primitive: Any) -> str:
    """Say what to do about a primitive without a VJP."""
    return _INSTEAD.get(
        primitive,
        "define one with autograd.extend.defvjp, or give both tangents and adjoints to tapesplit.defvector",
    )


_BY_NAMES: Final = {
    "apply_along_axis": "call the function in a loop, and join what it returns by np.array",
    "arange": "write a + d * numpy.arange(n)",
    "asarray asanyarray ascontiguousarray asfortranarray copy require": (
        "leave the call out: traced values are arrays already; np.array joins lists of them"
    ),
    "average": "write np.mean(x), or np.sum(w * x) / np.sum(w)",
    "bincount": "write B @ weights with B = numpy.arange(n)[:, None] == index",
    "cbrt": "write np.sign(x) * np.abs(x) ** (1 / 3)",
    "compress extract": "write x[condition]",
    "convolve": "take autograd.scipy.signal.convolve",
    "copysign": "write np.abs(x) * np.where(y < 0, -1.0, 1.0)",
    "corrcoef": "center the rows, divide each by its length, and write X @ X.T",
    "correlate": 'write autograd.scipy.signal.convolve(a, v[::-1], mode="valid")',
    "cov": "center the rows, and write X @ X.T / (n - 1)",
    "cumprod cumulative_prod nancumprod": "write np.exp(np.cumsum(np.log(x))) where x is positive, or a loop",
    "cumulative_sum": "write np.cumsum(x)",
    "delete insert": "join the parts by np.concatenate",
    "diagflat": "write np.diag(np.ravel(x))",
    "digitize histogram histogram2d histogramdd signbit": (
        "it has no derivative: give it the plain values, autograd.tracer.getval(x)"
    ),
    "divmod": "write np.floor(x / y) and np.mod(x, y)",
    "ediff1d": "write np.diff(x)",
    "float_power": "write x ** y",
    "fmod": "write np.sign(x) * np.mod(np.abs(x), np.abs(y))",
    "geomspace": "write np.exp(np.linspace(np.log(a), np.log(b), n))",
    "heaviside": "write np.where(x == 0, h, 1.0 * (x > 0))",
    "i0": "take autograd.scipy.special.i0",
    "interp": (
        "write x = np.clip(x, xp[0], xp[-1]), then i = np.searchsorted(xp[1:-1], getval(x)) with "
        "autograd.tracer.getval, then fp[i] + (x - xp[i]) * (fp[i + 1] - fp[i]) / (xp[i + 1] - xp[i])"
    ),
    "ldexp": "write x * 2.0 ** n",
    "logspace": "write 10.0 ** np.linspace(a, b, n)",
    "matrix_transpose": "write np.swapaxes(A, -1, -2)",
    "matvec vecmat": "write A @ x, or x @ A",
    "median percentile quantile": "take elements of np.sort(x)",
    "meshgrid": "let x[None, :] and y[:, None] broadcast",
    "modf": "write x - np.trunc(x) and np.trunc(x)",
    "nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nanvar": (
        "write x = x[~np.isnan(x)], and then the function without nan in its name"
    ),
    "nancumsum nansum": "put np.where(np.isnan(x), 0.0, x) in the place of x",
    "piecewise": "write np.where(condition, this, that)",
    "polyfit": "write np.linalg.pinv(V) @ y with V = numpy.vander(x, degree + 1)",
    "polyval": "write a loop, y = y * x + c for each coefficient c",
    "positive": "leave the call out",
    "ptp": "write np.max(x) - np.min(x)",
    "resize": "write np.tile(x, k)[:n]",
    "take_along_axis": "index by arrays, as in A[np.arange(len(A))[:, None], i]",
    "trapezoid trapz": "write np.sum((y[1:] + y[:-1]) * d) / 2 with the distances d, such as np.diff(x)",
    "unique unique_values": "write np.sort(x) or x[i] with i from numpy.unique(getval(x), return_index=True)",
    "unwrap": "write x + (numpy.unwrap(v) - v) with v = autograd.tracer.getval(x)",
    "vander": "write x[:, None] ** np.arange(n)[::-1]",
    "vdot vecdot": "write np.sum(np.conj(x) * y, axis=-1)",
}
_OF_LINALG: Final = {
    "cond": "divide the largest of the singular values of np.linalg.svd by the smallest",
    "cross diagonal matmul matrix_transpose outer tensordot trace vecdot": (
        "take the function of this name of autograd.numpy, or what is to be written instead of that"
    ),
    "eigvals": "write np.linalg.eig(A)[0]",
    "eigvalsh": "write np.linalg.eigh(A)[0]",
    "lstsq": "write np.linalg.pinv(A) @ b",
    "matrix_norm vector_norm": "take np.linalg.norm",
    "matrix_power": "write A @ A, and so on",
    "qr": "take np.linalg.cholesky(A.T @ A): its transpose is R, up to signs of rows",
    "svdvals": "write np.linalg.svd(A, compute_uv=False)",
}


def _functions(module: Any, texts: dict[str, str]) -> Iterator[tuple[Any, str]]:
    """Look the names up, of which a release of NumPy may lack some."""
    for names, text in texts.items():
        for name in names.split():
            if hasattr(module, name):
                yield getattr(module, name), text


_INSTEAD: Final = dict([*_functions(anp, _BY_NAMES), *_functions(anp.linalg, _OF_LINALG)])


def instead_of_call(primitive: Any, error: BaseException) -> str | None:
    """Say what to do about a call that autograd's rule for a primitive has refused; None if unknown."""
    if isinstance(error, TypeError) and re.search(r"argument '(out|where|dtype|casting|order)'", str(error)):
        return "leave its keywords out: np.where chooses, and x.astype converts"
    if isinstance(error, (KeyError, NotImplementedError)) and not isinstance(error, RuleError):
        return _OF_CALLS.get(primitive)
    return None


_OF_CALLS: Final = {
    anp.clip: "for bounds that are traced write np.minimum(np.maximum(x, lower), upper)",
    anp.linalg._primitive_norm: (  # noqa: SLF001 (linalg.norm itself only wraps it)
        "write np.sum(np.abs(x)) for the 1-norm of a vector, np.linalg.svd(A, compute_uv=False)[0] for the "
        "2-norm of a matrix"
    ),
    anp.linalg.svd: "write np.linalg.svd(A, full_matrices=False)",
    anp.sort: "sort the rows one by one, np.array([np.sort(row) for row in A])",
}
