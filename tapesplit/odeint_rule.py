"""The vector rule of odeint: derivatives of initial value problems for all directions at once.

autograd solves adjoint equations for each row of the Jacobian and between any two times, and differentiates
the right-hand side in each of their steps. Here the sensitivity equations are solved, once for all directions
(R. P. Dickinson and R. J. Gelinas, 1976), with Jacobians of the right-hand side.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
import scipy.integrate
from autograd.misc.flatten import flatten
from autograd.scipy.integrate import odeint
from scipy.sparse import csr_array, eye_array

from tapesplit.closeness import warn_if_changed
from tapesplit.decorator import parallel_jacobian
from tapesplit.recording import values
from tapesplit.rules.registry import bulk

__all__: list[str] = []


class _Sensitivities:
    """Derivatives of the solution of one call of odeint, by its initial state, times or parameters."""

    def __init__(self, ans: np.ndarray, func: Any, y0: Any, t: Any, args: Any = (), **options: Any) -> None:
        self.ans, self.t = ans, np.asarray(t)
        self.func, self.args, self.options = func, args, options
        self.y0 = np.asarray(y0, np.float64)
        parameters, apart = _taken_apart(args)
        self.parameters = parameters.astype(np.float64)

        @functools.wraps(func, updated=())  # errors name the user's function
        def slope(y: Any, parameters: Any, t: Any) -> Any:
            found = func(y, t, *apart(parameters))
            found = anp.array(found) if isinstance(found, (list, tuple)) else found
            # An empty sum makes every slope depend on y: otherwise autograd would warn that it does not.
            return anp.ravel(found) + anp.sum(y[:0])

        self.by_state = parallel_jacobian(slope, machines=1)
        self.by_both = parallel_jacobian(slope, (0, 1), machines=1)

    def by_initial_state(self, T: np.ndarray) -> np.ndarray:
        """Return tangents of the solution, shape ``(k, times, n)``, by k tangents of the initial state."""
        return self._solved(T, None)

    def by_parameters(self, T: csr_array) -> np.ndarray:
        """Return tangents of the solution by those of all parameters, which are joined to one vector.

        The tangents of parameters are sparse since they often are unit vectors.
        """
        return self._solved(np.zeros((T.shape[0], self.y0.size)), T)

    def by_times(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivative of each state by its own time, and those of all states by the first time.

        To begin later by dt is to begin with a state that lags behind by slope · dt.
        """
        slopes = [np.ravel(self.func(y, t, *self.args)) for y, t in zip(self.ans, self.t, strict=True)]
        return np.array(slopes), self.by_initial_state(-slopes[0][np.newaxis])[0]

    def _solved(self, initial: np.ndarray, parameters: csr_array | None) -> np.ndarray:
        """Solve for all directions, so many at a time that the bands of the solver fit into `_WORKSPACE`."""
        k, n = initial.shape
        most = max(1, _WORKSPACE // (3 * n * n or 1))
        blocks = (slice(first, first + most) for first in range(0, k, most))
        found = [self._block(initial[b], parameters if parameters is None else parameters[b]) for b in blocks]
        return np.concatenate(found or [np.zeros((0, *self.ans.shape))])

    def _block(self, initial: np.ndarray, parameters: csr_array | None) -> np.ndarray:
        """Solve for the state together with some of its directions."""
        k, n = initial.shape
        row, column = np.indices((n, n))

        def slopes(state: np.ndarray, t: float) -> np.ndarray:
            y, directions = state[:n], state[n:].reshape(k, n)
            if parameters is None:
                slope, J = self.by_state.value_and_jacobian(y, self.parameters, t)
                moved = directions @ J.T
            else:
                slope, (J, by_parameters) = self.by_both.value_and_jacobian(y, self.parameters, t)
                moved = directions @ J.T + parameters @ by_parameters.T
            return np.concatenate([slope, moved.ravel()])

        def bands(state: np.ndarray, t: float) -> np.ndarray:
            # Blocks outside of the bands are left out: Newton's method converges all the same, in O(k) time.
            of_each = np.zeros((2 * n - 1, n))
            of_each[row - column + n - 1, column] = self.by_state(state[:n], self.parameters, t)
            return np.tile(of_each, k + 1)

        begin = np.concatenate([self.y0, initial.ravel()])
        found = scipy.integrate.odeint(slopes, begin, self.t, Dfun=bands, ml=n - 1, mu=n - 1, **self.options)
        warn_if_changed(found[:, :n], self.ans, "odeint")
        return found[:, n:].reshape(-1, k, n).swapaxes(0, 1)


def _taken_apart(args: tuple[Any, ...]) -> tuple[np.ndarray, Callable[[Any], Any]]:
    """Return all parameters as one vector, and the function that takes such a vector apart again.

    autograd's own such function, which serves for containers and whatever is no number, computes a gradient
    at each call. That takes longer than many a slope.
    """
    if any(isinstance(x, (tuple, list, dict)) or np.asarray(x).dtype.kind not in "biuf" for x in args):
        return flatten(args)
    return values.flatten(args), functools.partial(values.unflatten, like=args)


def _tangent(along: Callable[[_Sensitivities, np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """Make the function that carries tangents of one argument."""

    def tangent(T: np.ndarray, ans: Any, func: Any, y0: Any, *args: Any, **options: Any) -> Any:
        if not _covers(y0, options):
            return NotImplemented
        return along(_Sensitivities(ans, func, y0, *args, **options), T.reshape(len(T), -1))

    return tangent


def _along_times(sensitivities: _Sensitivities, T: np.ndarray) -> np.ndarray:
    """Carry tangents of the times."""
    of_each, by_first = sensitivities.by_times()
    return T[:, :, np.newaxis] * of_each + T[:, :1, np.newaxis] * by_first


def _adjoint(
    back: Callable[[np.ndarray, _Sensitivities, int], np.ndarray], argnum: int | None
) -> Callable[..., Any]:
    """Make the function that multiplies adjoints by the sensitivities to one argument, unless too many."""

    def adjoint(A: np.ndarray, ans: Any, func: Any, y0: Any, *args: Any, **options: Any) -> Any:
        size = 1 if argnum is None else flatten((y0, *args)[argnum])[0].size
        states = np.size(y0) * (size + np.size(y0) // 3)
        if not _covers(y0, options) or states > len(A) * len(ans) * _STATES:
            return NotImplemented
        return back(A, _Sensitivities(ans, func, y0, *args, **options), size)

    return adjoint


def _back_to_initial_state(A: np.ndarray, sensitivities: _Sensitivities, size: int) -> np.ndarray:
    """Carry adjoints to the initial state."""
    return _product(A, sensitivities.by_initial_state(np.eye(size)))


def _back_to_times(A: np.ndarray, sensitivities: _Sensitivities, _: int) -> np.ndarray:
    """Carry adjoints to the times."""
    of_each, by_first = sensitivities.by_times()
    found = np.sum(A * of_each, axis=-1)
    found[:, :1] += _product(A, by_first[np.newaxis])
    return found


def _back_to_parameters(A: np.ndarray, sensitivities: _Sensitivities, size: int) -> np.ndarray:
    """Carry adjoints to the parameters."""
    return _product(A, sensitivities.by_parameters(csr_array(eye_array(size))))


def _product(A: np.ndarray, sensitivities: np.ndarray) -> np.ndarray:
    """Return the products of each adjoint with each direction, ``(k, directions)``."""
    return np.tensordot(A, sensitivities, axes=([1, 2], [1, 2]))


def _covers(y0: Any, options: Any) -> bool:
    """Tell whether the options of a call mean the same for the state and its directions together."""
    has_numbers = all(np.ndim(options.get(name, 0.0)) == 0 for name in ("rtol", "atol"))
    return np.ndim(y0) == 1 and options.keys() <= _PASSED_ON and has_numbers


_PASSED_ON: Final = frozenset({"rtol", "atol", "h0", "hmax", "hmin", "mxstep", "mxhnil", "mxordn", "mxords"})
"""Keywords of odeint that hold for the sensitivity equations as well."""
_STATES: Final = 1700
"""Elements of states and their tangents that take as long as autograd takes for one row and one time."""
_STEPS: Final = 5000
"""Elementwise operations that take as long as such a solution, roughly."""
_WORKSPACE: Final = 10_000_000
"""Elements that the solver may hold for the bands of its matrix."""

bulk(
    odeint,
    tangents=[
        None,
        _tangent(_Sensitivities.by_initial_state),
        _tangent(_along_times),
        _tangent(lambda sensitivities, T: sensitivities.by_parameters(csr_array(T))),
    ],
    adjoints=[
        None,
        _adjoint(_back_to_initial_state, 0),
        _adjoint(_back_to_times, None),
        _adjoint(_back_to_parameters, 2),
    ],
    steps=_STEPS,
    approximate=True,
)
