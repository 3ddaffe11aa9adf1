"""Rules of primitives on the tape of a gradient: sums of adjoints, and adjoints that are mostly zero.

autograd keeps the adjoint of an indexed value as a `SparseObject`; its directions hold all elements in one
axis. Everything here is linear, and most of it moves elements.
"""

from math import prod
from typing import Any

import autograd.builtins as ab
import numpy as np
from autograd.core import VSpace, sparse_add
from autograd.numpy.numpy_vjps import untake
from autograd.util import func

from tapesplit.recording.primitives import summed_untake
from tapesplit.recording.values import batch_shape, element_count
from tapesplit.rules.axes import flat, fold, lifted
from tapesplit.rules.moves import IndexMap
from tapesplit.rules.registry import bulk


def _summand(T: np.ndarray, ans: Any, *args: Any) -> np.ndarray:
    """Carry tangents of a summand; rules may return one number where all derivatives are the same."""
    shape = batch_shape(ans)
    if T.size == len(T) * prod(shape):
        return T.reshape(len(T), *shape)
    return np.broadcast_to(lifted(T, len(shape)), (len(T), *shape))


def _adjoint_of(argnum: int) -> Any:
    """Make the function that carries adjoints of a sum to a summand."""

    def adjoint(A: np.ndarray, ans: Any, *args: Any) -> np.ndarray:
        shape = batch_shape(args[argnum])
        return A.reshape(len(A), *shape) if A.size == len(A) * prod(shape) else fold(A, shape)

    return adjoint


for _add in (func(VSpace.add), func(VSpace.mut_add), sparse_add):
    bulk(
        _add,
        tangents=[None, _summand, _summand],
        adjoints=[None, _adjoint_of(1), _adjoint_of(2)],
        edges=lambda ans, args, argnums, kwargs: element_count(ans) * len(argnums),
    )


def _put(T: np.ndarray, ans: Any, x: Any, index: Any, space: Any) -> np.ndarray:
    """Put tangents where the index points; repeated places add up."""
    return IndexMap.of_index(space.zeros(), index).scatter(flat(T)).reshape(len(T), *batch_shape(ans))


def _take(A: np.ndarray, ans: Any, x: Any, index: Any, space: Any) -> np.ndarray:
    """Take adjoints from where the index points."""
    return IndexMap.of_index(space.zeros(), index).gather(flat(A)).reshape(len(A), *batch_shape(x))


for _untake in (untake, summed_untake, ab.container_untake):
    bulk(
        _untake,
        tangents=[_put],
        adjoints=[_take],
        edges=lambda ans, args, argnums, kwargs: element_count(args[0]),
    )
