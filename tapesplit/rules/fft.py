"""Discrete Fourier transforms: linear, with symmetric matrices, so that adjoints are transforms, too.

A real transform keeps half of a complex one; its adjoint is a transform of conjugates back to real values,
where the half that is not kept counts as zero. The formulas hold for odd lengths as well, where autograd has
none. |E| is n log2 n, what a fast transform takes for each direction.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from autograd.numpy import fft

from tapesplit.rules.axes import positive, real_like
from tapesplit.rules.registry import bulk
from tapesplit.rules.stacks import stacked

_Arguments: TypeAlias = tuple[Any, tuple[int, ...], Any]
"""Lengths, axes and scaling of a transform."""

_Numeric: TypeAlias = Callable[[np.ndarray, tuple[int, ...], tuple[int, ...], Any], np.ndarray]
"""A transform of a batch along some axes: its lengths, these axes, its scaling."""


def _along(one: Callable[..., np.ndarray], many: Callable[..., np.ndarray]) -> _Numeric:
    """Return NumPy's transform along any axes; for a single one it has a function that takes less time."""

    def transform(X: np.ndarray, lengths: tuple[int, ...], axes: tuple[int, ...], norm: Any) -> np.ndarray:
        return one(X, *lengths, *axes, norm) if len(axes) == 1 else many(X, lengths, axes, norm)

    return transform


_fft, _ifft = _along(np.fft.fft, np.fft.fftn), _along(np.fft.ifft, np.fft.ifftn)
_rfft, _irfft = _along(np.fft.rfft, np.fft.rfftn), _along(np.fft.irfft, np.fft.irfftn)


def _of_one(
    x: np.ndarray, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> _Arguments:
    """Lengths, axes and scaling of a one-dimensional transform."""
    return None if n is None else (n,), (axis,), norm


def _of_two(
    x: np.ndarray, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None
) -> _Arguments:
    """Lengths, axes and scaling of a two-dimensional transform."""
    return _of_many(x, s, axes, norm)


def _of_many(
    x: np.ndarray, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None
) -> _Arguments:
    """Lengths, axes and scaling of a transform along any axes."""
    if axes is None:
        axes = range(-(x.ndim if s is None else len(s)), 0)
    return s, tuple(axes), norm


def _resized(X: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Cut a batch to a shape, or fill it up with zeros."""
    if X.shape[1:] == shape:
        return X
    X = X[(slice(None), *(slice(n) for n in shape))]
    missing = [(0, n - m) for n, m in zip(shape, X.shape[1:], strict=True)]
    return np.pad(X, [(0, 0), *missing]) if any(n for _, n in missing) else X


def _lengths(x: np.ndarray, s: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Lengths of a transform along its axes, as x has them where they are not given, or given as -1."""
    given = (None,) * len(axes) if s is None else s
    return tuple(x.shape[a] if n in (None, -1) else n for n, a in zip(given, axes, strict=True))


def _register(
    transform: Callable[..., Any],
    parse: Callable[..., _Arguments],
    forward: _Numeric,
    backward: _Numeric,
    *,
    from_half: bool = False,
) -> None:
    """Register a transform by NumPy's n-dimensional form of it, and by its adjoint.

    A transform ``from_half`` of a spectrum has the lengths of its result, any other those of its argument.
    """

    def parsed(ans: np.ndarray, x: np.ndarray, args: Any, kwargs: Any) -> _Arguments:
        s, axes, norm = parse(x, *args, **kwargs)
        lengths = _lengths(ans, None, axes) if from_half else _lengths(x, s, axes)
        return lengths, tuple(1 + axis % x.ndim for axis in axes), norm

    def core_axes(x: np.ndarray, *args: Any, **kwargs: Any) -> tuple[int, ...]:
        _, axes, _ = parse(x, *args, **kwargs)
        return tuple(sorted({*positive(axes, x.ndim)}))

    def tangent(T: np.ndarray, ans: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        lengths, axes, norm = parsed(ans, x, args, kwargs)
        if from_half and len(set(axes)) < len(axes):  # the result has only the last length of an axis
            return NotImplemented
        return forward(T, lengths, axes, norm)

    def adjoint(A: np.ndarray, ans: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        lengths, axes, norm = parsed(ans, x, args, kwargs)
        if len(set(axes)) < len(axes):
            return NotImplemented
        return real_like(_resized(backward(A, lengths, axes, norm), x.shape), x)

    bulk(transform, tangents=[tangent], adjoints=[adjoint], edges=_edges, steps=3, pace=10)
    stacked(transform, core_axes)


def _edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a fast transform: n log2 n."""
    size = max(int(np.size(ans)), int(np.size(args[0])))
    return size * max(size.bit_length(), 1)


def _scaled_inside(X: np.ndarray, axis: int, n: int, factor: float) -> np.ndarray:
    """Return half spectra of n values with those elements scaled that the other half mirrors."""
    X = X.copy()
    np.moveaxis(X, axis, -1)[..., 1 : (n + 1) // 2] *= factor
    return X


_INVERSE_SCALING: Final[dict[Any, Any]] = {
    None: "forward",
    "backward": "forward",
    "ortho": "ortho",
    "forward": "backward",
}
"""Scaling with which the inverse transform has the same factor as the transform with the key as scaling."""


def _to_half_adjoint(A: np.ndarray, lengths: tuple[int, ...], axes: tuple[int, ...], norm: Any) -> np.ndarray:
    """Carry adjoints of the non-negative half of a spectrum back to real values."""
    spectra = np.conj(_scaled_inside(A, axes[-1], lengths[-1], 0.5))
    return _irfft(spectra, lengths, axes, _INVERSE_SCALING[norm])


def _from_half_adjoint(
    A: np.ndarray, lengths: tuple[int, ...], axes: tuple[int, ...], norm: Any
) -> np.ndarray:
    """Carry adjoints of real values back to the non-negative half of their spectrum."""
    spectra = _rfft(A.real, lengths, axes, _INVERSE_SCALING[norm])
    return _scaled_inside(np.conj(spectra), axes[-1], lengths[-1], 2.0)


for _name, _parse in (("fft", _of_one), ("fft2", _of_two), ("fftn", _of_many)):
    _register(getattr(fft, _name), _parse, _fft, _fft)
    _register(getattr(fft, f"i{_name}"), _parse, _ifft, _ifft)
    _register(getattr(fft, f"r{_name}"), _parse, _rfft, _to_half_adjoint)
    _register(getattr(fft, f"ir{_name}"), _parse, _irfft, _from_half_adjoint, from_half=True)
