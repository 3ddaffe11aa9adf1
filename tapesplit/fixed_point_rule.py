"""The vector rule of fixed points: the implicit function theorem, with Jacobians of the map.

autograd iterates for each row of the Jacobian. Here one linear system is solved for all directions.
"""

from typing import Any, Final

import numpy as np
from autograd.misc.fixed_points import fixed_point
from autograd.misc.flatten import flatten

from tapesplit.closeness import warn_if_changed
from tapesplit.decorator import parallel_jacobian
from tapesplit.rules.registry import bulk

__all__: list[str] = []


def _local(ans: np.ndarray, func: Any, a: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return ``I - F_x`` and ``F_a`` of the map F(x, a): the derivative x' solves ``(I - F_x) x' = F_a``."""
    parameters, unflatten = flatten(a)

    def step(x: Any, parameters: Any) -> Any:
        return func(unflatten(parameters))(x)

    value, by_both = parallel_jacobian(step, (0, 1), machines=1).value_and_jacobian(ans, parameters)
    warn_if_changed(value, ans, "fixed_point")
    by_state, by_parameters = (J.reshape(np.size(ans), -1) for J in by_both)
    return np.eye(np.size(ans)) - by_state, by_parameters


def _tangent(T: np.ndarray, ans: Any, func: Any, a: Any, *_: Any) -> Any:
    """Carry tangents of the parameters."""
    if not _covers(ans, a, np.size(ans)):
        return NotImplemented
    matrix, by_parameters = _local(ans, func, a)
    found = np.linalg.solve(matrix, by_parameters @ T.reshape(len(T), -1).T).T
    return found.reshape(len(T), *np.shape(ans))


def _adjoint(A: np.ndarray, ans: Any, func: Any, a: Any, *_: Any) -> Any:
    """Carry adjoints to the parameters."""
    if not _covers(ans, a, len(A)) or np.size(ans) ** 3 > _FMA * len(A):
        return NotImplemented
    matrix, by_parameters = _local(ans, func, a)
    found = np.linalg.solve(matrix.T, A.reshape(len(A), -1).T).T @ by_parameters
    return found.reshape(len(A), *np.shape(a)) if isinstance(a, _ARRAYS) else found


def _covers(ans: Any, a: Any, rows: int) -> bool:
    """Tell whether a fixed point is of real numbers, and there are so many rows that this rule is faster."""
    if rows < _FEWEST_ROWS or not isinstance(ans, _ARRAYS):
        return False
    return np.isrealobj(ans) and np.isrealobj(flatten(a)[0])


_FEWEST_ROWS: Final = 3
"""Rows from which on autograd takes longer than Jacobians of the map."""
_ARRAYS: Final = (np.ndarray, float, np.floating)
"""Types of values that are arrays or numbers."""
_FMA: Final = 30_000_000
"""Multiply-adds that take as long as the iterations of autograd for a row, roughly."""
_STEPS: Final = 100
"""Elementwise operations that take as long as the Jacobian of the map, roughly."""

bulk(
    fixed_point,
    tangents=[None, _tangent],
    adjoints=[None, _adjoint],
    steps=_STEPS,
    approximate=True,
)
