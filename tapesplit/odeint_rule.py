"""The vector rule of odeint: derivatives of initial value problems for all directions at once.

autograd solves adjoint equations for each row of the Jacobian, and differentiates the right-hand side in each
of their steps. Here the sensitivity equations are solved, once for all directions (R. P. Dickinson and
R. J. Gelinas, 1976), with Jacobians of the right-hand side.
"""

from collections.abc import Callable
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
import scipy.integrate
from autograd.misc.flatten import flatten
from autograd.scipy.integrate import odeint

from tapesplit.decorator import parallel_jacobian
from tapesplit.rules.registry import bulk

__all__: list[str] = []


class _Sensitivities:
    """Derivatives of the solution of one call of odeint, by its initial state, times or parameters."""

    def __init__(self, ans: np.ndarray, func: Any, y0: Any, t: Any, args: Any, options: Any) -> None:
        self.ans, self.t = ans, np.asarray(t)
        self.func, self.args, self.options = func, args, options
        self.y0 = np.asarray(y0, np.float64)
        self.parameters, unflatten = flatten(args)

        def slope(y: Any, parameters: Any, t: Any) -> Any:
            found = func(y, t, *unflatten(parameters))
            return anp.array(found) if isinstance(found, (list, tuple)) else found

        self.by_state = parallel_jacobian(slope, machines=1)
        self.by_both = parallel_jacobian(slope, (0, 1), machines=1)

    def by_initial_state(self, T: np.ndarray) -> np.ndarray:
        """Return the directions of the solution, ``(k, times, n)``, by those of the initial state."""
        n = self.y0.size

        def slopes(state: np.ndarray, t: float) -> np.ndarray:
            slope, J = self.by_state.value_and_jacobian(state[:n], self.parameters, t)
            return np.concatenate([slope, (state[n:].reshape(-1, n) @ J.T).ravel()])

        return self._solved(slopes, T)

    def by_parameters(self, T: np.ndarray) -> np.ndarray:
        """Return the directions of the solution by those of all parameters in one vector."""
        n = self.y0.size

        def slopes(state: np.ndarray, t: float) -> np.ndarray:
            slope, (J, by_parameters) = self.by_both.value_and_jacobian(state[:n], self.parameters, t)
            moved = state[n:].reshape(-1, n) @ J.T + T @ by_parameters.T
            return np.concatenate([slope, moved.ravel()])

        return self._solved(slopes, np.zeros((len(T), n)))

    def by_times(self, T: np.ndarray) -> np.ndarray:
        """Return the directions of the solution by those of its times.

        A later beginning is an initial state that has not gone as far yet.
        """
        slopes = np.array([self.func(y, t, *self.args) for y, t in zip(self.ans, self.t, strict=True)])
        by_beginning = self.by_initial_state(-slopes[:1])
        return T[:, :, None] * slopes + T[:, :1, None] * by_beginning

    def _solved(self, slopes: Callable[[np.ndarray, float], np.ndarray], T: np.ndarray) -> np.ndarray:
        """Solve for the state and its k directions, which are T in the beginning."""
        k, n = T.shape
        row, column = np.indices((n, n))

        def bands(state: np.ndarray, t: float) -> np.ndarray:
            # Newton's method converges without the blocks that are no bands, too, and takes O(k) time.
            of_each = np.zeros((2 * n - 1, n))
            of_each[row - column + n - 1, column] = self.by_state(state[:n], self.parameters, t)
            return np.tile(of_each, k + 1)

        begin = np.concatenate([self.y0, T.ravel()])
        found = scipy.integrate.odeint(slopes, begin, self.t, Dfun=bands, ml=n - 1, mu=n - 1, **self.options)
        return found[:, n:].reshape(-1, k, n).swapaxes(0, 1)


def _tangent(solve: Callable[[_Sensitivities, np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """Make the function that carries tangents of one argument."""

    def tangent(T: np.ndarray, ans: Any, func: Any, y0: Any, t: Any, args: Any = (), **options: Any) -> Any:
        T = T.reshape(len(T), -1)
        if not _covers(y0, len(T), options):
            return NotImplemented
        return solve(_Sensitivities(ans, func, y0, t, args, options), T)

    return tangent


def _adjoint(solve: Callable[[_Sensitivities, np.ndarray], np.ndarray], argnum: int) -> Callable[..., Any]:
    """Make the function that carries adjoints to one argument: times all its sensitivities."""

    def adjoint(A: np.ndarray, ans: Any, func: Any, y0: Any, t: Any, args: Any = (), **options: Any) -> Any:
        size = flatten((y0, t, args)[argnum - 1])[0].size
        if not _covers(y0, size, options):
            return NotImplemented
        local = solve(_Sensitivities(ans, func, y0, t, args, options), np.eye(size))
        return np.tensordot(A, local, axes=([1, 2], [1, 2]))

    return adjoint


def _covers(y0: Any, directions: int, options: Any) -> bool:
    """Tell whether a call can be solved together with some directions."""
    has_numbers = all(np.ndim(options.get(name, 0.0)) == 0 for name in ("rtol", "atol"))
    covered = np.ndim(y0) == 1 and options.keys() <= _PASSED_ON and has_numbers
    return covered and np.size(y0) * directions <= _MOST_STATES


_PASSED_ON: Final = frozenset({"rtol", "atol", "h0", "hmax", "hmin", "mxstep", "mxhnil", "mxordn", "mxords"})
"""Keywords of odeint that hold for the sensitivity equations as well."""
_MOST_STATES: Final = 100_000
"""States of these equations up to which one solution for all directions is faster than one for each row."""
_STEPS: Final = 5000
"""Elementwise operations that take as long as such a solution, roughly."""

_ARGUMENTS = (_Sensitivities.by_initial_state, _Sensitivities.by_times, _Sensitivities.by_parameters)
bulk(
    odeint,
    tangents=[None, *map(_tangent, _ARGUMENTS)],
    adjoints=[None, *(_adjoint(solve, argnum) for argnum, solve in enumerate(_ARGUMENTS, 1))],
    steps=_STEPS,
    approximate=True,
)
