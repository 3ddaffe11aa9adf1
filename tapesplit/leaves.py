"""Values as flat vectors: arrays, numbers, and the tuples, lists and dicts that autograd lets functions build.

Leaves come in the order that `autograd.misc.flatten` uses: sequences in order, dicts by sorted key.
"""

from typing import Any

import numpy as np

__all__ = ["element_count", "flatten", "renumber", "unflatten"]


def element_count(value: Any) -> int:
    """Count the elements of a value."""
    if isinstance(value, (tuple, list)):
        return sum(map(element_count, value))
    if isinstance(value, dict):
        return sum(map(element_count, value.values()))
    return int(np.size(value))


def flatten(value: Any) -> np.ndarray:
    """Return all elements in one axis."""
    if isinstance(value, (tuple, list)):
        parts = [flatten(item) for item in value]
    elif isinstance(value, dict):
        parts = [flatten(value[key]) for key in sorted(value)]
    else:
        return np.ravel(np.asarray(value))
    return np.concatenate(parts) if parts else np.zeros(0)


def unflatten(vector: np.ndarray, like: Any) -> Any:
    """Return the elements of a vector in the form of another value; inverse of `flatten`."""
    if isinstance(like, (tuple, list, dict)):
        keys = sorted(like) if isinstance(like, dict) else range(len(like))
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
    return vector.reshape(np.shape(like))


def renumber(value: Any, start: float) -> Any:
    """Return a value of the same form whose elements are ``start, start + 1, …``."""
    return unflatten(np.arange(start, start + element_count(value)), value)
