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
    # Nothing at all is counted in integers.
    if A.size and A.dtype == np.float64 and _is_of_elements(index, np.ndim(x)):
        size = np.size(x)
        found = np.arange(len(A))[:, None] * size + places(x, index)
        return np.bincount(found.ravel(), A.ravel(), len(A) * size).reshape(len(A), *np.shape(x))
    return IndexMap.of_index(x, index).scatter(flat(A)).reshape(len(A), *np.shape(x))


def _of_stack(index: Any) -> tuple[Any, ...] | None:
    """Return the index for stacked values if it takes no element twice; None if it may, or moves axes."""
    if type(index) is np.ndarray and index.dtype == np.bool_:
        return (slice(None), index)
    items = index if type(index) is tuple else (index,)
    return (slice(None), *items) if all(type(item) in SELECTORS for item in items) else None


def _is_of_elements(index: Any, ndim: int) -> bool:
    """Tell whether an index has an array of integers for each axis."""
    items = index if type(index) is tuple else (index,)
    return len(items) == ndim and all(type(item) is np.ndarray and item.dtype.kind == "i" for item in items)


_FEW_DIRECTIONS: Final = 4
"""Directions that are added one by one in less time than places are found for all of them."""
_ADDED: Final = 8
"""Elements that are numbered, as `IndexMap` asks for, while one is added where an index points to."""
_CALLED: Final = 16_000
"""Elements that are numbered while the functions for that are called."""


def _put(T: np.ndarray, ans: Any, x: Any, index: Any, space: Any) -> np.ndarray:
    """Carry tangents of elements to where they are put, as adjoints of a look-up are."""
    return _put_back(T, x, ans, index)


def _take(A: np.ndarray, ans: Any, x: Any, index: Any, space: Any) -> np.ndarray:
    """Carry adjoints back to elements, as tangents of a look-up are taken."""
    return _look_up(A, x, ans, index)


LOOK_UP: Final = Bulk(tangents={0: _look_up}, adjoints={0: _put_back}, built_in=True)
"""What carries directions through ``x[index]`` if the places differ from call to call, see `fits`."""
_PUT: Final = Bulk(tangents={0: _put}, adjoints={0: _take}, built_in=True)
"""The same for the adjoint of a look-up, which stands on the tape of a gradient."""
OPEN_RULES: Final[Mapping[Any, Bulk]] = {getitem: LOOK_UP, dense_untake: _PUT, summed_untake: _PUT}
"""Rules of calls whose index a plan may read anew from each tape."""
