"""A check of Jacobians for users' own functions, in the manner of autograd's `check_grads`."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import autograd
import numpy as np

from tapesplit.decorator import parallel_jacobian
from tapesplit.errors import ArgumentTypeError, WrongJacobianError
from tapesplit.names import display_name
from tapesplit.recording.argnums import positions_of

__all__ = ["check_close", "check_jacobian", "largest", "tolerance_of"]

_TOLERANCES: Final = {"f": 3e-4, "F": 3e-4, "e": 3e-2}
"""Largest difference by type code, relative to the largest element; 1e-9 for all others."""


def check_jacobian(fun: Callable[..., Any], *args: Any, argnum: int = 0, **kwargs: Any) -> None:
    """Check ``parallel_jacobian(fun)`` at one point against autograd and against differences.

    Parameters
    ----------
    fun
        A function of autograd.numpy operations.
    *args, **kwargs
        Its arguments.
    argnum
        Position of the argument to differentiate by.

    Raises
    ------
    WrongJacobianError
        If the Jacobian differs from ``autograd.jacobian`` by more than 1e-9 of its largest element (3e-4 in
        single and 3e-2 in half precision), if the plain tangent or adjoint sweep gives another one, or if the
        product with one random direction differs from central differences by more than 1e-4 and that. A
        largest element below 1e-3 counts as that, and as 1 for the differences, which are that crude.
    ArgumentIndexError, ArgumentTypeError
        If there is no argument at ``argnum``, or if that is no integer.

    Notes
    -----
    Costs four Jacobians and two calls of the function. Integers are compared with what autograd and
    differences give for them in double precision. At a point where the function is not differentiable, the
    differences have no meaning and the check may fail.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> check_jacobian(lambda x: np.sin(x) * x[0], np.array([1.0, 2.0]))
    """
    name = display_name(fun)
    positions = positions_of(argnum, len(args), name)
    if len(positions) > 1:
        raise ArgumentTypeError(
            f"check_jacobian checks one argument at a time, but argnum is {argnum!r}; give one integer"
        )
    argnum, precise = positions[0], list(args)
    precise[argnum] = _in_floating_point(args[argnum])
    expected = autograd.jacobian(fun, argnum)(*precise, **kwargs)
    x = np.asarray(precise[argnum])
    direction = np.random.default_rng(0).uniform(0.5, 1.0, x.shape)
    step = np.cbrt(np.finfo(x.dtype).eps) * max(1.0, float(np.abs(x).max(initial=0.0)))
    values = []
    for h in (step, -step):
        precise[argnum] = (x + h * direction).astype(x.dtype)
        values.append(np.asarray(fun(*precise, **kwargs)))
    tolerance = tolerance_of([x, expected, *values])
    for method in ("auto", "tangent", "adjoint"):
        found = parallel_jacobian(fun, argnum, method=method)(*args, **kwargs)
        differs = f"{name}: the Jacobian (method {method!r}) differs from autograd.jacobian"
        check_close(found, expected, differs, tolerance)
    difference = (values[0] - values[1]) / (2 * step)
    product = np.tensordot(expected, direction, axes=x.ndim)
    differs = f"{name}: J·v differs from central differences of step {step:.1e}"
    check_close(product, difference, differs, max(1e-4, tolerance), least=1.0)


def _in_floating_point(x: Any) -> Any:
    """Return an argument itself, or integers in double precision, where steps are possible."""
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    return x.astype(np.float64) if kind in {"i", "u", "b"} else x


def largest(values: np.ndarray) -> float:
    """Return the largest absolute value that is finite, 0 if there is none."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def tolerance_of(values: Iterable[np.ndarray]) -> float:
    """Return how far results may differ, relative to the largest element, by the least precise value."""
    return max(_TOLERANCES.get(value.dtype.char, 1e-9) for value in values)


def check_close(
    found: Any,
    expected: Any,
    what: str,
    tolerance: float = 1e-9,
    *,
    least: float = 1e-3,
    error: type[AssertionError] = WrongJacobianError,
) -> None:
    """Raise if two arrays differ in shape or by more than a tolerance, relative to the largest element.

    That counts as ``least`` where it is smaller: of sums that cancel, rounding is left.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        raise error(f"{what}: its shape is {found.shape} instead of {expected.shape}")
    scale = max(largest(expected), least)
    wrong = ~np.isclose(found, expected, rtol=0.0, atol=tolerance * scale, equal_nan=True)
    if wrong.any():
        where = tuple(map(int, np.unravel_index(np.argmax(wrong), wrong.shape)))
        raise error(
            f"{what}: {np.count_nonzero(wrong)} of {wrong.size} elements are wrong, the first at {where}: "
            f"{found[where]} instead of {expected[where]}"
        )
