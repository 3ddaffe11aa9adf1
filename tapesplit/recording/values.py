"""Values as flat vectors: arrays, numbers, and what else autograd puts on a tape.

Functions may build tuples, lists and dicts; derivatives inside a function leave sparse gradients. The items
of a sequence are taken in order, those of a dict by the ``repr`` of their keys, which can be of any types.
"""

from typing import Any, Final

import numpy as np
from autograd.extend import SparseObject

__all__ = [
    "batch_shape",
    "derivative_dtype",
    "element_count",
    "flatten",
    "is_complex_value",
    "real_count",
    "unflatten",
]

_CONTAINERS: Final = (tuple, list, dict, SparseObject)


def element_count(value: Any) -> int:
    """Count the elements of a value."""
    if type(value) is np.ndarray:  # as nearly always
        return value.size
    if isinstance(value, (tuple, list)):
        return sum(map(element_count, value))
    if isinstance(value, dict):
        return sum(map(element_count, value.values()))
    if isinstance(value, SparseObject):
        return element_count(value.vs.zeros())  # its own count takes a complex number for two
    return int(np.size(value))


def real_count(value: Any) -> int:
    """Count the real elements of a value, two for each complex number of an array."""
    return element_count(value) * (1 + is_complex_value(value))


def is_complex_value(value: Any) -> bool:
    """Tell whether a value is complex; containers have no type to go by."""
    if type(value) is np.ndarray:  # as nearly always
        return value.dtype.kind == "c"
    return isinstance(value, (np.ndarray, np.generic, complex)) and bool(np.iscomplexobj(value))


def batch_shape(value: Any) -> tuple[int, ...]:
    """Return the shape of one direction of a value: its own, or one axis for a container."""
    if type(value) is np.ndarray:
        return value.shape
    return (element_count(value),) if isinstance(value, _CONTAINERS) else np.shape(value)


def derivative_dtype(value: Any) -> np.dtype:
    """Return the type of derivatives of a value: its own if that is floating, else double precision."""
    dtype = np.asarray(value).dtype
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def flatten(value: Any) -> np.ndarray:
    """Return all elements in one axis."""
    if isinstance(value, (tuple, list)):
        parts = [flatten(item) for item in value]
    elif isinstance(value, dict):
        parts = [flatten(value[key]) for key in sorted(value, key=repr)]
    elif isinstance(value, SparseObject):
        return flatten(value.mut_add(value.vs.zeros()))
    else:
        return np.ravel(np.asarray(value))
    return np.concatenate(parts) if parts else np.zeros(0)


def unflatten(vector: np.ndarray, like: Any) -> Any:
    """Return the elements of a vector in the form of another value; inverse of `flatten`.

    Sparse values become dense; numbers become those of NumPy, as in autograd, not arrays without axes.
    """
    if isinstance(like, SparseObject):
        return unflatten(vector, like.vs.zeros())
    if isinstance(like, (tuple, list, dict)):
        keys = sorted(like, key=repr) if isinstance(like, dict) else range(len(like))
        parts, start = {}, 0
        for key in keys:
            size = element_count(like[key])
            parts[key] = unflatten(vector[start : start + size], like[key])
            start += size
        if isinstance(like, dict):
            return parts
        items = list(parts.values())
        return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)
    if np.iscomplexobj(vector) and not np.iscomplexobj(like):
        vector = np.real(vector)
    shaped = vector.reshape(np.shape(like))
    return shaped if isinstance(like, np.ndarray) else shaped[()]
