"""Forms of values: what plans know of their types and shapes."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapesplit.arrays import FLOAT64

__all__ = ["form_of", "forms_of", "is_complex", "is_shape", "is_single", "number_shape"]

_FLOAT64 = np.float64
_COMPLEX128 = np.dtype(np.complex128)


def forms_of(values: Iterable[Any]) -> list[Any]:
    """Return the form of each value of a tape; a float64 number has that of an array without axes."""
    return [
        ()
        if (kind := type(value)) is _FLOAT64
        else value.shape
        if kind is np.ndarray and (dtype := value.dtype) is FLOAT64
        else (dtype, value.shape)
        if kind is np.ndarray and dtype is _COMPLEX128
        else form_of(value)
        for value in values
    ]


def form_of(value: Any) -> Any:
    """Describe a value: shape of float64, dtype and shape of other arrays, nested form of containers."""
    if type(value) is np.ndarray:
        return value.shape if value.dtype == FLOAT64 else (value.dtype, value.shape)
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(form_of, value)))
    if isinstance(value, dict):
        return (dict, tuple((type(key), key, form_of(value[key])) for key in sorted(value, key=repr)))
    return (type(value), () if isinstance(value, np.generic) else np.shape(value))


def is_shape(form: Any) -> bool:
    """Tell whether a form is that of a float64 array or number: just its shape."""
    return not form or type(form[0]) is int


def is_complex(form: Any) -> bool:
    """Tell whether a form is that of a complex number or array in double precision."""
    return not is_shape(form) and form[0] in _COMPLEX_KINDS


def is_single(form: Any) -> bool:
    """Tell whether a form is that of a real number or array in single precision."""
    return not is_shape(form) and form[0] in _SINGLE_KINDS


def number_shape(form: Any) -> tuple[int, ...] | None:
    """Return the shape of numbers that scalar sweeps read: real, or complex in double precision."""
    if is_shape(form):
        return form
    kind, shape = form
    return shape if kind in _REAL_KINDS or kind in _COMPLEX_KINDS else None


_SINGLE_KINDS = frozenset({np.float32, np.dtype(np.float32)})
_REAL_KINDS = frozenset({float, *_SINGLE_KINDS})
_COMPLEX_KINDS = frozenset({complex, np.complex128, np.dtype(np.complex128)})
