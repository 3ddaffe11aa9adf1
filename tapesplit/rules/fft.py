"""Discrete Fourier transforms: linear, with symmetric matrices, so that adjoints are transforms, too.

A real transform keeps half of a complex one; its adjoint is a transform of conjugates back to real values,
where the half that is not kept counts as zero. The formulas hold for odd lengths as well, where autograd has
none. |E| is n log2 n, what a fast transform takes for each direction.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from autograd.numpy import fft

from tapesplit.rules.axes import behind, real_like
from tapesplit.rules.registry import bulk

Arguments: TypeAlias = tuple[Any, tuple[int, ...], Any]
"""Lengths, axes and scaling of a transform."""


def _of_one(x: np.ndarray, n: int | None = None, axis: int = -1, norm: str | None = None) -> Arguments:
    """Lengths, axes and scaling of a one-dimensional transform."""
    return None if n is None else (n,), (axis,), norm


def _of_two(x: np.ndarray, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Arguments:
    """Lengths, axes and scaling of a two-dimensional transform."""
    return s, tuple(axes), norm


def _of_many(x: np.ndarray, s: Any = None, axes: Any = None, norm: str | None = None) -> Arguments:
    """Lengths, axes and scaling of a transform along any axes."""
    if axes is None:
        axes = range(-(x.ndim if s is None else len(s)), 0)
    return s, tuple(axes), norm


def _resized(X: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Cut a batch to a shape, or fill it up with zeros."""
    X = X[(slice(None), *(slice(n) for n in shape))]
    missing = [(0, n - m) for n, m in zip(shape, X.shape[1:], strict=True)]
    return np.pad(X, [(0, 0), *missing]) if any(n for _, n in missing) else X


def _lengths(x: np.ndarray, s: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Lengths of a transform of x along its axes."""
    return tuple(x.shape[a] for a in axes) if s is None else tuple(s)


def _complex_transform(
    transform: Callable[..., Any], parse: Callable[..., Arguments], numeric: Callable[..., Any]
) -> None:
    """Register a complex transform; ``numeric`` is NumPy's n-dimensional form of it."""

    def tangent(T: np.ndarray, ans: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
        s, axes, norm = parse(x, *args, **kwargs)
        return numeric(T, _lengths(x, s, axes), tuple(map(behind, axes)), norm)

    def adjoint(A: np.ndarray, ans: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        _, axes, norm = parse(x, *args, **kwargs)
        if len(set(axes)) < len(axes):
            return NotImplemented
        rows = numeric(A, _lengths(ans, None, axes), tuple(map(behind, axes)), norm)
        return real_like(_resized(rows, x.shape), x)

    bulk(transform, tangents=[tangent], adjoints=[adjoint], edges=_edges)


def _edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a fast transform: n log2 n."""
    size = max(int(np.size(ans)), int(np.size(args[0])))
    return size * max(size.bit_length(), 1)


def _scaled_inside(X: np.ndarray, axis: int, n: int, factor: float) -> np.ndarray:
    """Scale a copy of half spectra of n values where the other half mirrors them."""
    X = X.copy()
    np.moveaxis(X, axis, -1)[..., 1 : (n + 1) // 2] *= factor
    return X


_INVERSE_SCALING: Final[dict[Any, Any]] = {
    None: "forward",
    "backward": "forward",
    "ortho": "ortho",
    "forward": "backward",
}
"""Scaling of a transform that undoes the inverse one but for the sign of the exponent."""


def _to_half(transform: Callable[..., Any], parse: Callable[..., Arguments]) -> None:
    """Register a transform of real values, which keeps the non-negative half of the last axis."""

    def tangent(T: np.ndarray, ans: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
        s, axes, norm = parse(x, *args, **kwargs)
        return np.fft.rfftn(T, _lengths(x, s, axes), tuple(map(behind, axes)), norm)

    def adjoint(A: np.ndarray, ans: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        s, axes, norm = parse(x, *args, **kwargs)
        if len(set(axes)) < len(axes):
            return NotImplemented
        lengths = _lengths(x, s, axes)
        spectra = np.conj(_scaled_inside(A, behind(axes[-1]), lengths[-1], 0.5))
        rows = np.fft.irfftn(spectra, lengths, tuple(map(behind, axes)), _INVERSE_SCALING[norm])
        return _resized(rows, x.shape)

    bulk(transform, tangents=[tangent], adjoints=[adjoint], edges=_edges)


def _from_half(transform: Callable[..., Any], parse: Callable[..., Arguments]) -> None:
    """Register a transform of the non-negative half of a spectrum to real values."""

    def tangent(T: np.ndarray, ans: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
        _, axes, norm = parse(x, *args, **kwargs)
        return np.fft.irfftn(T, _lengths(ans, None, axes), tuple(map(behind, axes)), norm)

    def adjoint(A: np.ndarray, ans: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        _, axes, norm = parse(x, *args, **kwargs)
        if len(set(axes)) < len(axes):
            return NotImplemented
        lengths = _lengths(ans, None, axes)
        spectra = np.fft.rfftn(A.real, lengths, tuple(map(behind, axes)), _INVERSE_SCALING[norm])
        rows = _scaled_inside(np.conj(spectra), behind(axes[-1]), lengths[-1], 2.0)
        return real_like(_resized(rows, x.shape), x)

    bulk(transform, tangents=[tangent], adjoints=[adjoint], edges=_edges)


for _name, _parse in (("fft", _of_one), ("fft2", _of_two), ("fftn", _of_many)):
    _complex_transform(getattr(fft, _name), _parse, np.fft.fftn)
    _complex_transform(getattr(fft, f"i{_name}"), _parse, np.fft.ifftn)
    _to_half(getattr(fft, f"r{_name}"), _parse)
    _from_half(getattr(fft, f"ir{_name}"), _parse)
