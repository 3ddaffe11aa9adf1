"""Functions and calls of autograd.numpy that autograd cannot differentiate: what to write instead."""

import re
from collections.abc import Iterator
from typing import Any, Final

import autograd.numpy as anp

from tapesplit.errors import RuleError
from tapesplit.names import is_from_autograd

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
    "compress extract": "write np.ravel(x)[np.flatnonzero(condition)]",
    "convolve": "take autograd.scipy.signal.convolve",
    "copysign": "write np.abs(x) * np.where(y < 0, -1.0, 1.0)",
    "corrcoef": "center the rows, divide each by its length, and write X @ X.T",
    "correlate": 'write autograd.scipy.signal.convolve(a, v[::-1], mode="valid")',
    "cov": "center the rows, and write X @ X.T / (n - 1)",
    "cumprod cumulative_prod": "write np.exp(np.cumsum(np.log(x))) where x is positive, or a loop",
    "cumulative_sum": "write np.cumsum(x)",
    "delete insert": "join the parts by np.concatenate",
    "diagflat": "write np.diag(np.ravel(x))",
    "digitize histogram histogram2d histogramdd signbit": (
        "it has no derivative: give it the plain values, autograd.tracer.getval(x)"
    ),
    "divmod": "write (x - np.mod(x, y)) / y and np.mod(x, y)",
    "ediff1d": "write np.diff(x)",
    "float_power": "write x ** y",
    "fmod": "write np.sign(x) * np.mod(np.abs(x), np.abs(y))",
    "geomspace": "write np.exp(np.linspace(np.log(a), np.log(b), n))",
    "heaviside": "write np.where(x == 0, h, 1.0 * (x > 0))",
    "i0": "take autograd.scipy.special.i0",
    "interp": (
        "write for arrays xp and fp x = np.clip(x, xp[0], xp[-1]), then i = np.searchsorted(xp[1:-1], "
        "getval(x)) with autograd.tracer.getval, then fp[i] + (x - xp[i]) * (fp[i + 1] - fp[i]) / "
        "(xp[i + 1] - xp[i])"
    ),
    "ldexp": "write x * 2.0 ** n",
    "logspace": "write 10.0 ** np.linspace(a, b, n)",
    "matrix_transpose": "write np.swapaxes(A, -1, -2)",
    "matvec": "write A @ x for a vector, (A @ x[..., None])[..., 0] for a stack",
    "median percentile quantile": "take elements of np.sort(x)",
    "meshgrid": "let x[None, :] and y[:, None] broadcast",
    "modf": "write x - np.trunc(x) and np.trunc(x)",
    "nancumprod nanprod": "take the function without nan of np.where(np.isnan(x), 1.0, x)",
    "nanmax nanmean nanmedian nanmin nanpercentile nanquantile nanstd nanvar": (
        "take the function without nan of x[~np.isnan(x)], of one row after the other along an axis"
    ),
    "nancumsum nansum": "take the function without nan of np.where(np.isnan(x), 0.0, x)",
    "piecewise": "write np.where(condition, this, that)",
    "polyfit": "write np.linalg.pinv(V) @ y with V = numpy.vander(x, degree + 1)",
    "polyval": "write a loop, y = y * x + c for each coefficient c",
    "positive": "leave the call out",
    "ptp": "write np.max(x) - np.min(x)",
    "resize": "write np.tile(np.ravel(x), k)[:n]",
    "take_along_axis": "index by arrays, as in A[np.arange(len(A))[:, None], i]",
    "trapezoid trapz": "write np.sum((y[1:] + y[:-1]) * d) / 2 with the distances d, such as np.diff(x)",
    "unique unique_values": (
        "write np.ravel(x)[i] with i = numpy.unique(autograd.tracer.getval(x), return_index=True)[1]"
    ),
    "unwrap": "write x + (numpy.unwrap(v) - v) with v = autograd.tracer.getval(x)",
    "vander": "write x[:, None] ** np.arange(n)[::-1]",
    "vdot": "write np.sum(np.conj(x) * y)",
    "vecdot": "write np.sum(np.conj(x) * y, axis=-1)",
    "vecmat": "write np.conj(x) @ A for a vector, (np.conj(x)[..., None, :] @ A)[..., 0, :] for a stack",
}
_OF_LINALG: Final = {
    "cond": "divide the largest of the singular values of np.linalg.svd by the smallest",
    "cross matmul matrix_transpose outer tensordot vecdot": (
        "take the function of this name of autograd.numpy, or what is to be written instead of that"
    ),
    "diagonal": "write np.diagonal(A, axis1=-1, axis2=-2)",
    "eigvals": "write np.linalg.eig(A)[0]",
    "eigvalsh": "write np.linalg.eigh(A)[0]",
    "lstsq": "write np.linalg.pinv(A) @ b",
    "matrix_norm": "write np.sqrt(np.sum(np.abs(A) ** 2, axis=(-2, -1)))",
    "matrix_power": "write A @ A, and so on",
    "qr": "take np.linalg.cholesky(A.T @ A): its transpose is R, up to signs of rows",
    "svdvals": "write np.linalg.svd(A, compute_uv=False)",
    "vector_norm": "write np.sqrt(np.sum(np.abs(x) ** 2)), or np.sum(np.abs(x) ** p) ** (1 / p)",
    "trace": "write np.sum(np.diagonal(A, axis1=-1, axis2=-2), axis=-1)",
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
    is_keyword = re.search(r"argument '(out|where|dtype|casting|order)'", str(error))
    if isinstance(error, TypeError) and is_keyword and is_from_autograd(primitive):
        return "leave its keywords out: np.where chooses, and x.astype converts"
    if isinstance(error, RuleError):
        return None
    remedies = (text for called, part, text in _OF_CALLS if called is primitive and part in repr(error))
    return next(remedies, None)


_BOUNDS: Final = "for bounds that are traced write np.minimum(np.maximum(x, lower), upper)"
_norm = anp.linalg._primitive_norm  # noqa: SLF001 (linalg.norm itself only wraps it)
_OF_CALLS: Final = (
    (anp.clip, "KeyError", _BOUNDS),
    (anp.clip, "not defined", _BOUNDS),
    (_norm, "of norm not implemented for ord=1", "write np.sum(np.abs(x))"),
    (_norm, "matrix norm not implemented for ord=1", "write np.max(np.sum(np.abs(A), axis=0))"),
    (_norm, "matrix norm not implemented for ord=2", "write np.linalg.svd(A, compute_uv=False)[0]"),
    (anp.linalg.svd, "full_matrices=True", "write np.linalg.svd(A, full_matrices=False)"),
    (
        anp.sort,
        "multi-dimensional",
        "sort one by one, np.array([np.sort(row) for row in A]) along the last axis",
    ),
    (
        anp.pad,
        "constant mode",
        "join what lies around x by np.concatenate, for mode='edge' np.concatenate([x[:1], x, x[-1:]])",
    ),
    (anp.diff, "'prepend'", "write np.diff(np.concatenate([first, x]))"),
    (anp.diff, "'append'", "write np.diff(np.concatenate([x, last]))"),
    (anp.trace, "'axis1'", "write np.sum(np.diagonal(A, axis1=-1, axis2=-2), axis=-1)"),
    (anp.partition, "multi-dimensional", "take np.sort of one row after the other"),
)
"""Primitives, parts of the errors of their rules, and what to write instead."""
