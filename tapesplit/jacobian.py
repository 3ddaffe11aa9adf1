"""The public face: `parallel_jacobian`, a drop-in for ``autograd.jacobian``."""

import functools
import gc
import os
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NamedTuple

import autograd
import numpy as np

from tapesplit.errors import InputTypeError, OutputTypeError
from tapesplit.execute import Callback, execute
from tapesplit.plan import JacobianPlan, make_plan
from tapesplit.record import NestedTraceError, record
from tapesplit.structure import first_difference, structure_of
from tapesplit.tape import Tape

__all__ = ["CacheInfo", "JacobianFunction", "parallel_jacobian"]

_METHODS = ("auto", "dp", "heuristic", "exact", "tangent", "adjoint")
_MAX_PLANS = 8


class CacheInfo(NamedTuple):
    """Statistics of the plan cache of one function."""

    hits: int
    misses: int
    currsize: int
    maxsize: int
    last_miss: str
    """Why the newest plan had to be made."""


class JacobianFunction:
    """A function that returns the Jacobian of another; made by `parallel_jacobian`.

    Safe to call from several threads. Plans are kept for the last eight structures of the tape.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        argnum: int | Sequence[int],
        *,
        machines: int | None,
        method: str,
        memory_limit: int | None,
        executor: Executor | None,
        callback: Callback | None,
    ) -> None:
        self._fun = fun
        self._argnum = argnum
        self._machines = machines
        self._method = method
        self._memory_limit = memory_limit
        self._executor = executor
        self._callback = callback
        self._plans: list[JacobianPlan] = []
        self._lock = threading.Lock()
        self._hits = self._misses = 0
        self._last_miss = "no plan yet"
        functools.update_wrapper(self, fun)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the Jacobian, shape ``out.shape + in.shape``; a tuple of them for several argnums."""
        try:
            return self._computed(*args, **kwargs)[1]
        except NestedTraceError:
            return self._by_autograd(*args, **kwargs)

    def value_and_jacobian(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the function's value and its Jacobian from one recording."""
        try:
            return self._computed(*args, **kwargs)
        except NestedTraceError:
            return self._fun(*args, **kwargs), self._by_autograd(*args, **kwargs)

    def _computed(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Record, plan, execute."""
        with _without_garbage_collection():
            tape = self._record(*args, **kwargs)
            columns = sum(int(np.size(tape.entries[i][5])) for i in range(tape.inputs))
            if tape.output is None or not columns or not np.size(tape.value):
                matrix = np.zeros((np.size(tape.value), columns))
            else:
                matrix = execute(
                    self._plan_for(tape),
                    tape,
                    memory_limit=self._memory_limit,
                    executor=self._executor,
                    callback=self._callback,
                )
        return tape.value, self._shaped(tape, matrix)

    def plan(self, *args: Any, **kwargs: Any) -> JacobianPlan:
        """Return the plan for these arguments without computing the Jacobian."""
        return self._plan_for(self._record(*args, **kwargs))

    def cache_info(self) -> CacheInfo:
        """Return how often a plan was reused, and why not the last time."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, len(self._plans), _MAX_PLANS, self._last_miss)

    def cache_clear(self) -> None:
        """Forget all plans."""
        with self._lock:
            self._plans.clear()
            self._hits = self._misses = 0
            self._last_miss = "the cache was cleared"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an instance as functions do."""
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<Jacobian of {getattr(self, '__qualname__', self._fun)} with respect to argument {self._argnum}>"

    def _record(self, *args: Any, **kwargs: Any) -> Tape:
        """Record one call and check that it has a dense real Jacobian."""
        for position in _positions(self._argnum):
            _check_input(args, position)
        tape = record(self._fun, *args, argnum=self._argnum, **kwargs)
        _check_output(tape)
        return tape

    def _plan_for(self, tape: Tape) -> JacobianPlan:
        """Find the plan for the structure of a tape, or make one."""
        structure = structure_of(tape)
        with self._lock:
            for position, plan in enumerate(self._plans):
                if plan.structure == structure:
                    self._hits += 1
                    self._plans.insert(0, self._plans.pop(position))
                    return plan
            self._misses += 1
            self._last_miss = (
                first_difference(self._plans[0].structure, structure, tape) if self._plans else "first call"
            )
        plan = make_plan(
            tape,
            structure,
            machines=self._machines or len(os.sched_getaffinity(0)),
            force_machines=self._executor is not None,
            method=self._method,
        )
        with self._lock:
            self._plans.insert(0, plan)
            del self._plans[_MAX_PLANS:]
        return plan

    def _shaped(self, tape: Tape, matrix: np.ndarray) -> Any:
        """Split the columns among the inputs and give each Jacobian its shape."""
        out = np.shape(tape.value)
        jacobians, column = [], 0
        for index in range(tape.inputs):
            shape = tape.shape(index)
            size = int(np.prod(shape, dtype=int))
            jacobians.append(matrix[:, column : column + size].reshape(out + shape))
            column += size
        return tuple(jacobians) if isinstance(self._argnum, Sequence) else jacobians[0]

    def _by_autograd(self, *args: Any, **kwargs: Any) -> Any:
        """Leave a derivative of a derivative to autograd, which traces all levels at once."""
        jacobians = [
            autograd.jacobian(self._fun, position)(*args, **kwargs) for position in _positions(self._argnum)
        ]
        return tuple(jacobians) if isinstance(self._argnum, Sequence) else jacobians[0]


def parallel_jacobian(
    fun: Callable[..., Any] | None = None,
    argnum: int | Sequence[int] = 0,
    *,
    machines: int | None = None,
    method: str = "auto",
    memory_limit: int | None = None,
    executor: Executor | None = None,
    callback: Callback | None = None,
) -> Any:
    """Return a function that computes the Jacobian of ``fun``: a drop-in for ``autograd.jacobian``.

    Each call records the function once, cuts the tape where its interface is narrow, plans the cheapest way to multiply and propagate the
    Jacobians of the parts (Märtens & Naumann 2025), and carries the plan out. Calls whose tape has the same structure reuse
    the plan.

    Parameters
    ----------
    fun
        Function of autograd.numpy operations, from real arrays to one real array. Left out, the result is a decorator.
    argnum
        Position of the argument to differentiate by, or a sequence of positions.
    machines
        Number of threads to plan for; None takes the usable cores where the plan says that they pay.
    method
        How the chain is planned: "auto" or "dp" (dynamic programming), "heuristic", "exact"; "tangent" or "adjoint" forces one plain
        sweep.
    memory_limit
        Bytes that the derivatives inside one sweep may take at a time; a sweep that would need more goes through its directions in
        blocks. The Jacobians of the chain's parts and the tape come on top; see `JacobianPlan.peak_bytes`.
    executor
        A concurrent.futures executor of threads, used for all machines whether they pay or not; by default a pool that the process keeps.
    callback
        Observes the tasks, see `tapesplit.Callback`.

    Returns
    -------
    JacobianFunction
        Called like ``fun``, it returns an array of shape ``out.shape + in.shape``, or a tuple of them for several argnums. The array's memory
        order is not specified.

    Raises
    ------
    TypeError
        If ``fun`` is not callable, or an argument or the value has no real dense Jacobian.
    ValueError
        If an option is out of range.

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
    _check_options(argnum, machines, method, memory_limit)
    if fun is None:
        return functools.partial(
            parallel_jacobian, argnum=argnum, machines=machines, method=method, memory_limit=memory_limit,
            executor=executor, callback=callback,
        )  # fmt: skip
    if not callable(fun):
        raise TypeError(
            f"parallel_jacobian needs a function, but got {fun!r}; write parallel_jacobian(f)(x), with the arguments in "
            "the second call"
        )
    return JacobianFunction(
        fun,
        argnum,
        machines=machines,
        method=method,
        memory_limit=memory_limit,
        executor=executor,
        callback=callback,
    )


def _check_options(
    argnum: int | Sequence[int], machines: int | None, method: str, memory_limit: int | None
) -> None:
    """Check everything that can be checked before a call."""
    if isinstance(argnum, (bool, str)) or not all(
        isinstance(i, (int, np.integer)) for i in _positions(argnum)
    ):
        raise TypeError(f"argnum must be an integer or a sequence of integers, but got {argnum!r}")
    if isinstance(argnum, Sequence) and not argnum:
        raise ValueError("argnum is empty; name at least one argument to differentiate by")
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, but got {method!r}")
    for name, limit in (("machines", machines), ("memory_limit", memory_limit)):
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1
        ):
            raise ValueError(f"{name} must be a positive integer or None, but got {limit!r}")


def _positions(argnum: int | Sequence[int]) -> tuple[int, ...]:
    """Return argnum as a tuple."""
    return tuple(argnum) if isinstance(argnum, Sequence) else (argnum,)


def _check_input(args: tuple[Any, ...], position: int) -> None:
    """Refuse inputs without a real dense Jacobian."""
    if not -len(args) <= position < len(args):
        raise IndexError(
            f"argnum is {position}, but the function was called with {len(args)} positional arguments; pass the argument "
            "to differentiate by by position"
        )
    value = args[position]
    kind = type(value).__name__
    if isinstance(value, (tuple, list, dict, str)):
        raise InputTypeError(
            f"argument {position} is a {kind}; a Jacobian is taken with respect to one array: pass an array, or several "
            "arrays as several arguments with argnum=(0, 1, …)"
        )
    if np.iscomplexobj(value):
        raise InputTypeError(
            f"argument {position} is complex; a dense real Jacobian needs real input: pass real and imaginary part"
        )
    if getattr(value, "dtype", None) == object:
        raise InputTypeError(f"argument {position} is an array of objects; pass an array of floats")


def _check_output(tape: Tape) -> None:
    """Refuse values without a real dense Jacobian."""
    value = tape.value
    if isinstance(value, (tuple, list, dict)):
        raise OutputTypeError(
            f"{tape.name} returned a {type(value).__name__}; a Jacobian needs one array: join the parts with "
            "np.concatenate or np.array"
        )
    dtype = np.result_type(value) if not isinstance(value, str) else np.dtype(object)
    if dtype.kind == "c":
        raise OutputTypeError(
            f"{tape.name} returned complex values; return real and imaginary part as real arrays"
        )
    if dtype.kind not in "fiub":
        raise OutputTypeError(
            f"{tape.name} returned {dtype} values of type {type(value).__name__}, which have no derivative; return an "
            "array of floats (np.array([...]) of autograd.numpy joins traced numbers)"
        )


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """A tape is thousands of live objects, and each collection would walk them all in vain."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
