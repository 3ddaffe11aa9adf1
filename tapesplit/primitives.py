"""Primitives of our own, recorded in place of calls of autograd that would keep scalar sweeps out."""

from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.extend import defjvp, defvjp, primitive
from autograd.numpy.numpy_vspaces import ArrayVSpace

__all__ = ["dense_untake", "log_abs_det"]


@primitive  # type: ignore[untyped-decorator]
def dense_untake(x: Any, index: Any, space: ArrayVSpace) -> np.ndarray:
    """Return zeros with x where an index without repetition points: autograd's ``untake``, not sparse."""
    result = np.zeros(space.shape)
    result[index] = x
    return result


defvjp(dense_untake, lambda _ans, _x, index, _space: lambda g: g[index])
defjvp(dense_untake, "same")


@primitive  # type: ignore[untyped-decorator]
def log_abs_det(x: Any) -> Any:
    """Return the logarithm of the absolute determinant, the only part of ``slogdet`` that varies."""
    return np.linalg.slogdet(x)[1]


defvjp(log_abs_det, lambda _ans, x: lambda g: g * anp.linalg.inv(x).T)
