"""Look-ups: how directions go through ``x[index]``, and its adjoint, where each call has another index."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tapesplit.arrays import SELECTORS
from tapesplit.recording.primitives import dense_untake, summed_untake
from tapesplit.rules.axes import flat
from tapesplit.rules.moves import IndexMap, getitem
from tapesplit.rules.positions import places
from tapesplit.rules.registry import Bulk

__all__ = ["LOOK_UP", "OPEN_RULES"]


def _look_up(T: np.ndarray, ans: Any, x: Any, index: Any) -> np.ndarray:
    stacked = _of_stack(index)
    if stacked is not None:
        return T[stacked]
    return IndexMap.of_index(x, index).gather(flat(T)).reshape(len(T), *np.shape(ans))


def _put_back(A: np.ndarray, ans: Any, x: Any, index: Any) -> np.ndarray:
    stacked = _of_stack(index)
    if stacked is not None:
        X = np.zeros((len(A), *np.shape(x)), A.dtype)
        X[stacked] = A
        return X
    if np.ndim(x) and len(A) <= _FEW_DIRECTIONS and _ADDED * A.size < np.size(x) + _CALLED:
        X = np.zeros((len(A), *np.shape(x)), A.dtype)
        for found, adjoints in zip(X, A, strict=True):
            np.add.at(found, index, adjoints)
        return X
    # np.bincount of an empty array would return integers.
    if A.size and A.dtype == np.float64 and _is_of_elements(index, np.ndim(x)):
        size = np.size(x)
        found = np.arange(len(A))[:, None] * size + places(x, index)
        return np.bincount(found.ravel(), A.ravel(), len(A) * size).reshape(len(A), *np.shape(x))
    return IndexMap.of_index(x, index).scatter(flat(A)).reshape(len(A), *np.shape(x))


def _of_stack(index: Any) -> tuple[Any, ...] | None:
    """Return the index for a batch of directions; None if it may take an element twice, or moves axes."""
    if type(index) is np.ndarray and index.dtype == np.bool_:
        return (slice(None), index)
    items = index if type(index) is tuple else (index,)
    return (slice(None), *items) if all(type(item) in SELECTORS for item in items) else None


def _is_of_elements(index: Any, ndim: int) -> bool:
    """Tell whether an index has an array of integers for each axis."""
    items = index if type(index) is tuple else (index,)
    return len(items) == ndim and all(type(item) is np.ndarray and item.dtype.kind == "i" for item in items)


_FEW_DIRECTIONS: Final = 4
"""Directions up to which adding them one by one may take less time than an `IndexMap` for all of them."""
_ADDED: Final = 8
"""Time in which ``np.add.at`` adds an element, in elements of a value that `IndexMap` numbers meanwhile."""
_CALLED: Final = 16_000
"""Time of the function calls for an `IndexMap`, in the same unit."""


def _put(T: np.ndarray, ans: Any, x: Any, index: Any, space: Any) -> np.ndarray:
    """Put tangents of elements where the index points, just as adjoints of a look-up are."""
    return _put_back(T, x, ans, index)


def _take(A: np.ndarray, ans: Any, x: Any, index: Any, space: Any) -> np.ndarray:
    """Take adjoints of elements from where the index points, just as tangents of a look-up are."""
    return _look_up(A, x, ans, index)


LOOK_UP: Final = Bulk(tangents={0: _look_up}, adjoints={0: _put_back}, built_in=True)
"""Rule of ``x[index]`` if the index differs from tape to tape: it computes no index map in advance."""
_PUT: Final = Bulk(tangents={0: _put}, adjoints={0: _take}, built_in=True)
"""Rule of the adjoint of such a call, which stands on the tape of a gradient."""
OPEN_RULES: Final[Mapping[Any, Bulk]] = {getitem: LOOK_UP, dense_untake: _PUT, summed_untake: _PUT}
"""Rules of primitives whose index a plan may leave open, to be read from each tape."""
