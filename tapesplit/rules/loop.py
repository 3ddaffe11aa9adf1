"""Primitives without a vector rule: a loop over autograd's own rule, one direction at a time.

It is right for every primitive that autograd can differentiate, user-defined ones included, and it is the
oracle that vector rules are tested against. Rules may trace by themselves (`checkpoint`, `odeint`,
`fixed_point`), so the loop holds the tracing lock.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
from autograd.core import primitive_vjps

from tapesplit.errors import RuleError
from tapesplit.names import display_name
from tapesplit.recording.overrides import find_jvp, is_overridden
from tapesplit.recording.tape import TapeEntry
from tapesplit.recording.tracing import tracing_lock
from tapesplit.recording.values import batch_shape, element_count, flatten, unflatten
from tapesplit.rules.alternatives import instead_of
from tapesplit.rules.axes import complex_like, flat, real_like
from tapesplit.rules.registry import Elementwise, find_rule

__all__ = ["loop_adjoint", "loop_tangent", "usable_jvp", "without_vjp"]


def loop_adjoint(A: np.ndarray, entry: TapeEntry) -> list[np.ndarray]:
    """Carry ``k`` adjoints of a result to those of each active argument.

    `A` has shape ``(k, *ans.shape)``, containers in one axis; the result has an array of shape
    ``(k, *arg.shape)`` for each active argument. Raises `RuleError` if autograd has no VJP for the primitive.
    """
    with tracing_lock():
        vjp = _vjp(entry)
        targets = [entry.args[i] for i in entry.argnums]
        columns: list[list[np.ndarray]] = [[] for _ in targets]
        # autograd passes values of the result's own type to the VJP; some rules depend on it.
        dtype = complex_like(A, entry.value)
        is_own = type(entry.value) is np.ndarray and (dtype.kind != "c" or entry.value.dtype.kind == "c")
        is_users = is_overridden(entry.primitive)
        for row in A:
            if is_users or dtype != A.dtype:  # VJPs of users may work in place; others read A, too
                row = row.astype(dtype)  # noqa: PLW2901
            gradients = tuple(vjp(row if is_own else unflatten(np.ravel(row), entry.value)))
            for column, gradient, target in zip(columns, gradients, targets, strict=True):
                column.append(_row(gradient, target, entry))
    return [_stacked(column, target) for column, target in zip(columns, targets, strict=True)]


def loop_tangent(T: np.ndarray, entry: TapeEntry, argnum: int) -> np.ndarray:
    """Carry ``k`` tangents of one argument to those of the result.

    Takes autograd's JVP if that is usable, else the local Jacobian from the VJP (one call per element of the
    result).

    Raises
    ------
    RuleError
        If autograd has neither rule for the primitive.
    Exception
        Whatever autograd's VJP raises; what its JVP raises is the cause of a `RuleError`.
    """
    failure: Exception | None = None
    jvp = usable_jvp(entry.primitive, entry.kwargs)
    if jvp is not None:
        try:
            return _jvp_loop(jvp, T, entry, argnum)
        except Exception as error:  # noqa: BLE001 (autograd.jacobian would not have called it)
            failure = error
    try:
        product = _jacobian_product(T, entry, argnum)
    except RuleError as error:
        raise error from failure
    return product.reshape(len(T), *batch_shape(entry.value))


def usable_jvp(primitive: Any, kwargs: Collection[str]) -> Callable[..., Any] | None:
    """Return autograd's JVP for calls that no vector rule covers; None if it has none, or it may be wrong.

    It may be for calls with keywords, and for calls of elementwise functions in forms that our formulas do
    not cover: a JVP "same" accepts arguments that the VJP refuses.
    """
    rule = find_rule(primitive)
    has_rare_form = bool(kwargs) or (isinstance(rule, Elementwise) and rule.built_in)
    return None if has_rare_form else find_jvp(primitive)


def _jacobian_product(T: np.ndarray, entry: TapeEntry, argnum: int) -> np.ndarray:
    """Multiply tangents by the local Jacobian from the VJP.

    For a complex result ``u + iv`` autograd's VJP gives the derivatives of u for the adjoint 1 and those of v
    for the adjoint -i; for a complex argument, ``d/dx - i d/dy``.
    """
    size = element_count(entry.value)
    dtype = np.result_type(flatten(entry.value), np.float16)
    basis = np.eye(size, dtype=dtype).reshape(size, *batch_shape(entry.value))
    single = entry._replace(argnums=(argnum,))
    T = flat(T)
    rows = np.real(T @ flat(loop_adjoint(basis, single)[0]).T)
    if dtype.kind != "c":
        return rows
    return rows + 1j * np.real(T @ flat(loop_adjoint(-1j * basis, single)[0]).T)


def _jvp_loop(jvp: Callable[..., Any], T: np.ndarray, entry: TapeEntry, argnum: int) -> np.ndarray:
    """Loop over autograd's JVP of a call without keywords."""
    with tracing_lock():
        target = entry.args[argnum]
        dtype = complex_like(T, target)
        tangents = (unflatten(row.astype(dtype), target) for row in flat(T))  # JVPs may work in place
        moved = (jvp((argnum,), [tangent], entry.value, entry.args, {}) for tangent in tangents)
        # autograd's JVP of sorting a column repeats one element, in one more axis.
        rows = [_row(tangent, entry.value, entry, exact=True) for tangent in moved]
    return _stacked(rows, entry.value)


def _vjp(entry: TapeEntry) -> Callable[[Any], Iterator[Any]]:
    """Return autograd's VJP of a recorded call."""
    try:
        maker = primitive_vjps[entry.primitive]
    except KeyError:
        raise without_vjp(entry.primitive, entry.argnums, "this sweep") from None
    return maker(entry.argnums, entry.value, entry.args, dict(entry.kwargs))


def without_vjp(primitive: Any, argnums: tuple[int, ...], needed_by: str) -> RuleError:
    """Return what to raise for a call of a primitive without a VJP."""
    which = ("arguments " if len(argnums) > 1 else "argument ") + " and ".join(map(str, argnums))
    return RuleError(
        f"autograd has no VJP for {display_name(primitive)!r} with respect to {which}, which {needed_by} "
        f"needs; {instead_of(primitive)}"
    )


def _row(found: Any, like: Any, entry: TapeEntry, *, exact: bool = False) -> np.ndarray:
    """Return a flat copy of what a rule has returned for a value like this one; check its shape.

    It is a copy since rules may reuse a buffer of their own. One number stands for all elements, as it does
    in autograd once it meets an array. Unless the shape must be ``exact``, there may be other axes of length
    one, and all elements may be in one axis.
    """
    if type(found) is type(like) is np.ndarray and found.shape == like.shape:  # as nearly always
        return found.flatten()
    if found is None:
        raise RuleError(
            f"the derivative rule of {display_name(entry.primitive)} has returned None; return zeros where "
            "there is no dependence"
        )
    row, size = flatten(found), element_count(like)
    is_turned = isinstance(like, np.ndarray) and not _fits(np.shape(found), like.shape, exact=exact)
    if row.size not in {1, size} or is_turned:
        given = f"shape {np.shape(found)}" if is_turned else f"{row.size} elements"
        due = f"of shape {np.shape(like)}" if is_turned else f"of {size}"
        raise RuleError(
            f"the derivative rule of {display_name(entry.primitive)} has returned {given} for a value {due}; "
            "it does not cover this form of the arguments: write the call in another one, or give vector "
            "rules with tapesplit.defvector"
        )
    return np.broadcast_to(row, (size,)).copy()


def _fits(shape: tuple[int, ...], due: tuple[int, ...], *, exact: bool) -> bool:
    """Tell whether elements of one shape are in the order of another one, ``due``."""
    longer, due_longer = ([n for n in lengths if n != 1] for lengths in (shape, due))
    return shape == due or (not exact and (longer == due_longer or min(len(longer), len(due_longer)) < 2))


def _stacked(rows: list[np.ndarray], like: Any) -> np.ndarray:
    """Stack flat directions and give them the shape of the value."""
    shape = batch_shape(like)
    if not rows:
        return np.zeros((0, *shape))
    stacked = np.array(rows).reshape(len(rows), *shape)
    # Some rules leave an imaginary part in the directions of real values.
    return real_like(stacked, like)
