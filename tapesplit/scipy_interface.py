"""Functions for ``scipy.optimize``: value and Jacobian that share one recording for each point."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from autograd.tracer import isbox

from tapesplit.decorator import JacobianFunction, parallel_jacobian
from tapesplit.errors import ArgumentValueError, InputTypeError
from tapesplit.recording.argnums import check_function
from tapesplit.recording.tape import Tape

__all__ = ["fun_and_jac"]


def fun_and_jac(fun: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the function and its Jacobian in the form that ``scipy.optimize`` asks for.

    Parameters
    ----------
    fun
        ``fun(x, *args)`` of autograd.numpy operations; or ``parallel_jacobian(fun, ...)``, to set options.

    Returns
    -------
    value : callable
        ``value(x, *args)`` records the call and returns its value.
    jacobian : callable
        ``jacobian(x, *args)`` sweeps the recording that ``value`` has just made at the same point, or makes
        one. If no Jacobian is requested at a point, only the recording is computed.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If ``fun`` is not a function, or differentiates with respect to an argument other than the first of a
        call.
    InputTypeError
        In a call, if the point is complex.

    Notes
    -----
    The recording of a value is kept, with its memory, until the next call of either function. Calls count as
    the same point if ``x`` has equal elements and the other arguments are the same objects. Between a value
    and its Jacobian, the contents of these objects and everything else that the function reads must stay the
    same. The two functions may be called from several threads.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from scipy.optimize import least_squares
    >>> value, jacobian = fun_and_jac(lambda p: np.array([p[0] ** 2 - 2.0, p[0] * p[1] - 4.0]))
    >>> least_squares(value, [1.0, 1.0], jac=jacobian).x.round(6)
    array([1.414214, 2.828427])
    """
    check_function(fun, "fun_and_jac", "value, jacobian = fun_and_jac(f)")
    function = fun if isinstance(fun, JacobianFunction) else parallel_jacobian(fun)
    if function.argnum_of_call != 0:
        raise ArgumentValueError(
            "scipy.optimize asks for the Jacobian with respect to the first argument, but argnum is "
            f"{function.argnum}; put all variables in one array, the first argument, and give its position "
            "as one integer that counts from the front"
        )
    shared = _LastRecording(function)
    return shared.value, shared.jacobian


class _LastRecording:
    """The tape of the last value, for the Jacobian at the same point."""

    def __init__(self, jacobian_function: JacobianFunction) -> None:
        self._function = jacobian_function
        self._last: tuple[np.ndarray, tuple[Any, ...], dict[str, Any], Tape] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the tape."""
        return {"_function": self._function, "_last": None}

    def value(self, x: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the function's value, a copy: what the caller writes into it must not reach the tape."""
        point = _point(x)
        self._last = None  # two tapes at a time would be one too many
        tape = self._function.tape(point, *args, **kwargs)
        self._last = (point, args, kwargs, tape)
        return copy(tape.value)

    def jacobian(self, x: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the Jacobian; a recording serves once, as what the function reads may change."""
        last, self._last = self._last, None
        if last is not None and np.array_equal(last[0], x) and _objects(*last[1:3]) == _objects(args, kwargs):
            tape = last[3]
        else:
            tape = self._function.tape(_point(x), *args, **kwargs)
        return self._function.of_tape(tape)


def _point(x: Any) -> np.ndarray:
    """Return a copy in double precision: optimizers move x in place."""
    if isbox(x):
        raise InputTypeError(
            "the functions of fun_and_jac are for solvers, but x is traced; inside of a function that is "
            "differentiated write f(x) and parallel_jacobian(f)(x)"
        )
    if np.iscomplexobj(x):
        raise InputTypeError(
            "these functions take real points only, but x is complex, as in steps of jac='cs' or hess='cs'; "
            "give the second function of fun_and_jac as jac, and '2-point' or '3-point' as hess"
        )
    return np.array(x, dtype=float)


def _objects(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[int], dict[str, int]]:
    """Return the identities of further arguments, which are equal for two calls with the same objects."""
    return [*map(id, args)], {name: id(value) for name, value in kwargs.items()}
