"""The public face: `parallel_jacobian`, a drop-in for ``autograd.jacobian``."""

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, overload

from tapesplit.callback import Callback
from tapesplit.errors import ArgumentTypeError
from tapesplit.jacobian_function import JacobianFunction
from tapesplit.options import Options
from tapesplit.progress import both, progress_bar
from tapesplit.recording.argnums import check_function, checked_argnum
from tapesplit.validation import Cost, Method, check_flag

__all__ = ["JacobianFunction", "parallel_jacobian"]


@overload
def parallel_jacobian(
    fun: Callable[..., Any],
    argnum: int | Sequence[int] = ...,
    *,
    has_aux: bool = ...,
    machines: int | None = ...,
    method: Method = ...,
    cost: Cost = ...,
    memory_limit: int | None = ...,
    executor: Executor | None = ...,
    callback: Callback | None = ...,
    progress: bool = ...,
) -> JacobianFunction: ...


@overload
def parallel_jacobian(
    fun: None = None,
    argnum: int | Sequence[int] = ...,
    *,
    has_aux: bool = ...,
    machines: int | None = ...,
    method: Method = ...,
    cost: Cost = ...,
    memory_limit: int | None = ...,
    executor: Executor | None = ...,
    callback: Callback | None = ...,
    progress: bool = ...,
) -> Callable[[Callable[..., Any]], JacobianFunction]: ...


def parallel_jacobian(
    fun: Callable[..., Any] | None = None,
    argnum: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    machines: int | None = None,
    method: Method = "auto",
    cost: Cost = "runtime",
    memory_limit: int | None = None,
    executor: Executor | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> JacobianFunction | Callable[[Callable[..., Any]], JacobianFunction]:
    """Return a function that computes the Jacobian of ``fun``: a drop-in for ``autograd.jacobian``.

    Each call records the function once, cuts the tape where few values pass through, plans the cheapest way
    to multiply and propagate the Jacobians of the parts (Märtens & Naumann 2025), and carries out the plan.
    Calls whose tape has the same structure reuse the plan.

    Parameters
    ----------
    fun
        Function of autograd.numpy operations, from real arrays to one real array. If it is left out, a
        decorator is returned.
    argnum
        Position of the argument with respect to which to differentiate, or a sequence of positions. In a
        method, self is position 0.
    has_aux
        Whether ``fun`` returns a pair: the array to differentiate, and anything else, which is returned as it
        is, except that containers of traced values are copied with plain values in their place.
    machines
        Maximum number of threads (a machine is a thread); None stands for the number of usable cores. More
        than one is used only where a gain is predicted.
    method
        How the chain is planned: "auto" or "dp" (dynamic programming), "heuristic", "exact" (each of up to
        four searches ends after at most five seconds with the best plan it has found); "tangent" or "adjoint"
        forces one plain sweep.
    cost
        What a plan minimizes: "runtime", the predicted time on this machine, or "fma", the paper's count of
        multiply-adds.
    memory_limit
        Upper bound in bytes, per machine, on the working memory of one sweep. Larger sweeps run in blocks of
        directions, down to one at a time, by array steps if need be. The tape and intermediate Jacobians are
        not counted; see `JacobianPlan.peak_bytes`.
    executor
        A concurrent.futures executor of threads; the default is a pool that the process keeps. If given, work
        that can be split is always split among the machines, even where no gain is predicted.
    callback
        Observes the tasks, see `tapesplit.Callback`.
    progress
        Show a bar, on a terminal or in a notebook, while a long Jacobian is computed; needs tqdm.

    Returns
    -------
    JacobianFunction
        Called like ``fun``, it returns an array of shape ``out.shape + in.shape``, or a tuple of them for
        several argnums. The dtype is that of ``autograd.jacobian`` but for rare cases: where autograd
        truncates derivatives to integers, for one, these are float64. The memory order is not specified.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError, ArgumentIndexError
        If ``fun`` is not callable, if an option or argnum has the wrong type or is out of range, or if argnum
        is empty or names an argument twice.
    InputTypeError, OutputTypeError
        In a call, if an argument or the value has no real dense Jacobian.
    MemoryLimitError
        In a call, if one direction alone needs more than the memory limit.
    MissingPackageError
        If ``progress`` is true and tqdm is not installed.

    Notes
    -----
    A call on an argument that autograd is already differentiating is left to ``autograd.jacobian``, and so is
    one whose function closes over such a value. Derivatives of any order are therefore correct.

    Where local derivatives and their products are finite, every method gives the same result up to rounding.
    Infinite and undefined local derivatives (``sqrt`` at 0, ``log`` at 0, NaN in the input) propagate by IEEE
    arithmetic, in which ``0 * inf`` is NaN: which entries become NaN depends on the order of the products,
    and therefore on the plan. autograd's order is that of ``method="adjoint"``, but it multiplies by more
    zeros.

    Jacobians may be computed on several threads at once, and ``fun`` may hand operations to threads of its
    own if it waits for them. However, no other thread should use autograd directly at the same time, since
    autograd's trace level belongs to the process. While ``fun`` is recorded, common functions of
    autograd.numpy are replaced by stand-ins that record faster: inside ``fun``, ``f is np.tanh`` is false for
    an ``f`` that was ``np.tanh`` before. Compare functions outside, or by name.
    Python's cyclic garbage collector is paused during a call.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> @parallel_jacobian
    ... def jac(x):
    ...     return np.array([x[0] * x[1], np.sin(x[1])])
    >>> jac(np.array([2.0, 0.0]))
    array([[0., 2.],
           [0., 1.]])
    """
    if fun is not None:  # before the options: arguments in the wrong order are told of by this one
        _check_is_function(fun)
    kept = checked_argnum(argnum)
    options = Options(kept, has_aux, machines, method, cost, memory_limit, executor, callback)
    check_flag("progress", progress)
    if progress:
        options = replace(options, callback=both(callback, progress_bar()) if callback else progress_bar())
    if fun is None:
        return functools.partial(_checked_jacobian_function, options=options)
    return JacobianFunction(fun, options)


def _checked_jacobian_function(fun: Callable[..., Any], options: Options) -> JacobianFunction:
    """Check and wrap a function."""
    _check_is_function(fun)
    return JacobianFunction(fun, options)


def _check_is_function(fun: Any) -> None:
    """Refuse what is no function."""
    if isinstance(fun, (classmethod, staticmethod)):
        kind = type(fun).__name__
        raise ArgumentTypeError(
            f"parallel_jacobian needs a function, but got a {kind}; put @{kind} outside, in the line above "
            "@parallel_jacobian" + ("(argnum=1): cls is position 0" if kind == "classmethod" else "")
        )
    check_function(fun, "parallel_jacobian", "parallel_jacobian(f)(x), with the arguments in the second call")
