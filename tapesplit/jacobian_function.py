"""A function that returns the Jacobian of another: record, plan or reuse a plan, execute, shape."""

import functools
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np
from autograd import jacobian as autograd_jacobian  # which users may replace by ours later on

from tapesplit.errors import NestedTraceError, NothingToPlanError, PlanMismatchError
from tapesplit.execution.coordinator import carry_out
from tapesplit.execution.process_settings import single_threaded_blas
from tapesplit.names import display_name
from tapesplit.options import Options
from tapesplit.plan_cache import CacheInfo, PlanCache
from tapesplit.planning.plan import JacobianPlan
from tapesplit.planning.planner import make_plan
from tapesplit.recording.auxiliary import own_values, splitting_aux
from tapesplit.recording.memory import NoGarbageCollection
from tapesplit.recording.recorder import record_call
from tapesplit.recording.stand_ins import traced_as_recorded
from tapesplit.recording.tape import Tape
from tapesplit.shared_plans import Origin, origin_of
from tapesplit.structures.dtypes import in_dtype, result_dtypes
from tapesplit.structures.structure import Structure, structure_of
from tapesplit.sweeps.unplanned import is_light, sweep_unplanned
from tapesplit.validation import check_input, check_output, check_tape

__all__ = ["JacobianFunction"]


_NO_LIMIT: Final = nullcontext()


class JacobianFunction:
    """A function that returns the Jacobian of another; made by `parallel_jacobian`.

    Safe to call from several threads: the recordings of all threads take turns, and the rest runs at the same
    time. Plans are kept for the last eight structures of the tape; new function objects with the same code
    reuse them. It can decorate methods; argnum 0 is then ``self``.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import parallel_jacobian
    >>> jac = parallel_jacobian(lambda x: np.sin(x) * x[0])
    >>> jac(np.zeros(2))
    array([[0., 0.],
           [0., 0.]])
    >>> jac.explain_miss(np.zeros(2)), jac.explain_miss(np.zeros(3))
    (None, 'the shape or type of the value of entry 0 (input) changed from (2,) to (3,)')
    """

    __wrapped__: Callable[..., Any]
    """The function, as it was given."""

    def __init__(
        self,
        fun: Callable[..., Any],
        options: Options,
        plans: PlanCache | None = None,
        bound: tuple[Any, ...] = (),
    ) -> None:
        # Not the attributes: those of a function that is a JacobianFunction itself would replace ours.
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._options = options
        self._plans = plans or PlanCache()
        self._bound = bound
        self._positions_of_call = tuple(i - len(bound) if i >= 0 else i for i in options.positions)

    @property
    def argnum(self) -> int | tuple[int, ...]:
        """Position of the argument with respect to which it differentiates, or a tuple of positions."""
        return self._options.argnum

    @property
    def argnum_of_call(self) -> int | tuple[int, ...]:
        """The same among the arguments of a call, without a bound ``self``; negative ones do not change."""
        packed: int | tuple[int, ...] = self._options.packed(self._positions_of_call)
        return packed

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the Jacobian, shape ``out.shape + in.shape``; a tuple of them for several argnums.

        With ``has_aux``, return the pair ``(jacobian, aux)``.
        """
        _, jacobian, aux = self._computed(args, kwargs, with_value=self._options.has_aux)
        return (jacobian, aux) if self._options.has_aux else jacobian

    def value_and_jacobian(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the value of the function and its Jacobian from one recording.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the function.

        Returns
        -------
        value
            What the function returned; with ``has_aux`` the pair ``(value, aux)``.
        jacobian
            As a call returns it, without the auxiliary result.

        Examples
        --------
        >>> import autograd.numpy as np
        >>> from tapesplit import parallel_jacobian
        >>> parallel_jacobian(lambda x: x * x).value_and_jacobian(np.array([3.0]))
        (array([9.]), array([[6.]]))
        """
        value, jacobian, aux = self._computed(args, kwargs, with_value=True)
        return ((value, aux) if self._options.has_aux else value), jacobian

    def _computed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, with_value: bool
    ) -> tuple[Any, Any, Any]:
        """Return value, Jacobian and auxiliary result; the value only if it is asked for or free."""
        try:
            with NoGarbageCollection():
                return self._by_recording(args, kwargs)
        except NestedTraceError:
            with traced_as_recorded():
                return self._by_autograd((*self._bound, *args), kwargs, with_value=with_value)

    def _by_recording(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
        """Record and compute; the tape is gone at the end, before garbage is collected again."""
        latest = self._plans.latest
        # Threads of BLAS go on spinning after a product, on the cores that our own threads will need.
        with single_threaded_blas() if latest and latest.uses_threads else _NO_LIMIT:
            tape, aux = self._recorded(args, kwargs)
        return tape.value, self.of_tape(tape), aux

    def tape(self, /, *args: Any, **kwargs: Any) -> Tape:
        """Record one call, for `of_tape`.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the function.

        Returns
        -------
        Tape
            The recording, with the values of all operations. They are kept, not copied: arrays that the
            function has read, its arguments among them, must stay as they are until the tape has served.

        Raises
        ------
        NestedTraceError
            If an argument, or a value that the function closes over, is being differentiated by autograd.
        """
        return self._recorded(args, kwargs)[0]

    def of_tape(self, tape: Tape) -> Any:
        """Return the Jacobian of one recording of the function.

        Parameters
        ----------
        tape
            From `tape`.

        Returns
        -------
        ndarray or tuple of ndarray
            As a call returns it, without the auxiliary result.

        Raises
        ------
        PlanMismatchError
            If the tape was recorded with respect to other arguments.
        """
        self._check_inputs(check_tape(tape))
        if _is_trivial(tape):
            matrix, dtypes = np.zeros(tape.jacobian_shape), result_dtypes(tape, structure_of(tape))
            return self._shaped(tape, matrix, dtypes)
        began = time.perf_counter()
        plan = self._plan_for(tape, self._may_do_without)
        if plan is None:
            matrix = sweep_unplanned(tape)
            return self._shaped(tape, matrix, (matrix.dtype,) * tape.inputs)
        plan.last_run.recording, plan.last_run.finding = tape.seconds, time.perf_counter() - began
        matrix = carry_out(
            plan,
            tape,
            memory_limit=self._options.memory_limit,
            executor=self._options.executor,
            callback=self._options.callback,
        )
        return self._shaped(tape, matrix, plan.dtypes)

    def plan(self, /, *args: Any, **kwargs: Any) -> JacobianPlan:
        """Return the plan for these arguments without computing the Jacobian.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the function, which is recorded once.

        Returns
        -------
        JacobianPlan
            The plan that a call would use; it is kept for later calls.

        Raises
        ------
        NothingToPlanError
            If the Jacobian is empty, or zero because the value does not depend on the argument.

        Examples
        --------
        >>> import autograd.numpy as np
        >>> from tapesplit import parallel_jacobian
        >>> parallel_jacobian(lambda x: np.sin(x) * x[0]).plan(np.ones(3)).baselines
        {'tangent': 27, 'adjoint': 27}
        """
        tape, _ = self._recorded(args, kwargs, with_lines=True)
        if _is_trivial(tape):
            raise NothingToPlanError(
                f"the Jacobian of {tape.name} {_why_trivial(tape)}: there is nothing to plan"
            )
        plan = cast("JacobianPlan", self._plan_for(tape))
        return replace(plan, lines=tape.lines)

    def explain_miss(self, /, *args: Any, **kwargs: Any) -> str | None:
        """Say why no known plan fits a call with these arguments; None if one does.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the function, which is recorded once.

        Returns
        -------
        str or None
            First difference from the plan that was used last. If there is no such plan, the reason: "first
            call", or what has cleared the cache.

        Examples
        --------
        >>> import autograd.numpy as np
        >>> from tapesplit import parallel_jacobian
        >>> parallel_jacobian(lambda x: x * np.cos(x)).explain_miss(np.ones(3))
        'first call'
        """
        tape, _ = self._recorded(args, kwargs)
        return self._plans.explain_miss(structure_of(tape), tape, self._origin())

    def cache_info(self) -> CacheInfo:
        """Return how often plans were reused, and why the newest one had to be made.

        Returns
        -------
        CacheInfo
            Hits, misses, number of plans kept, maximum number, and the reason for the last miss.

        Examples
        --------
        >>> import autograd.numpy as np
        >>> from tapesplit import parallel_jacobian
        >>> jac = parallel_jacobian(lambda x: np.exp(x) / x)
        >>> _ = jac(np.ones(3)), jac(np.zeros(3) + 2.0)
        >>> jac.cache_info()
        CacheInfo(hits=1, misses=1, currsize=1, maxsize=8, last_miss='first call')
        """
        return self._plans.info()

    def cache_clear(self) -> None:
        """Forget all plans, including those kept for new function objects with the same code.

        Plans of other functions are kept.
        """
        self._plans.clear(self._origin())

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle decorated functions and methods by name, as functions are; any other by its parts."""
        name = getattr(self, "__qualname__", "")
        found: Any = sys.modules.get(self.__module__)
        for attribute in name.split("."):
            found = getattr(found, attribute, None)
        if found is self:
            return name
        if len(self._bound) == 1:
            by_name = (self._bound[0], name.rpartition(".")[2])
            if self._equals(getattr(*by_name, None)):
                return getattr, by_name
        return super().__reduce_ex__(protocol)

    def _equals(self, other: Any) -> bool:
        """Tell whether another object differentiates the same function with the same options."""
        if not isinstance(other, JacobianFunction):
            return False
        return (self._fun, self._options) == (other._fun, other._options)  # noqa: SLF001 (of our own class)

    def __get__(self, instance: Any, owner: type | None = None) -> "JacobianFunction":
        """Bind to an instance as functions do; the plans are shared."""
        if instance is None:
            return self
        return JacobianFunction(self._fun, self._options, self._plans, (*self._bound, instance))

    def __repr__(self) -> str:
        return f"<Jacobian of {display_name(self._fun)} with respect to argument {self.argnum}>"

    def _recorded(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, with_lines: bool = False
    ) -> tuple[Tape, Any]:
        """Record one call; check that it has a dense real Jacobian."""
        args = (*self._bound, *args)
        for position in self._options.positions:
            if -len(args) <= position < len(args):
                check_input(args[position], position % len(args))
        fun, extra = self._without_aux()
        argnum, apart = self._options.argnum, self._plans.apart
        tape = record_call(fun, args, kwargs, argnum, with_lines=with_lines, apart=apart)
        check_output(tape)
        if self._bound:  # tapes count the arguments of the call
            count = len(self._bound)
            tape = replace(tape, argnums=tuple(i - count for i in tape.argnums), arity=tape.arity - count)
        return tape, own_values(extra[0], tape) if extra else None

    def _check_inputs(self, tape: Tape) -> None:
        """Refuse a tape that was recorded with respect to other arguments, if it says which."""
        if tape.argnums == self._positions_of_call:  # as nearly always
            return
        asked = tuple(i + tape.arity if i < 0 else i for i in self._positions_of_call)
        if tape.argnums and tape.argnums != asked:
            raise PlanMismatchError(
                f"the tape of {tape.name} was recorded with respect to argument "
                f"{', '.join(map(str, tape.argnums))}, but this Jacobian is with respect to argument "
                f"{', '.join(map(str, asked))}; record it with jac.tape(...), or with the same argnum"
            )

    def _without_aux(self) -> tuple[Callable[..., Any], list[Any]]:
        """Return the function of the array only, and a list that gets the auxiliary result of a call."""
        extra: list[Any] = []
        return (splitting_aux(self._fun, extra) if self._options.has_aux else self._fun), extra

    def _plan_for(
        self, tape: Tape, may_do_without: Callable[[Structure], bool] | None = None
    ) -> JacobianPlan | None:
        """Find the plan for the structure of a tape, or make one; None if it is to be swept without."""

        def make(structure: Structure) -> JacobianPlan:
            return make_plan(tape, structure, self._options.for_plans)

        return self._plans.plan_for(tape, self._origin, make, may_do_without)

    def _may_do_without(self, structure: Structure) -> bool:
        """Tell whether tapes of a structure may be swept without a plan."""
        return self._options.may_do_without_plans and is_light(structure)

    def _origin(self) -> Origin | None:
        """Return the origin of the function as it is now, under which others share plans with it."""
        return origin_of(self._fun, self._options.for_plans)

    def _shaped(self, tape: Tape, matrix: np.ndarray, dtypes: tuple[np.dtype, ...]) -> Any:
        """Split the columns among the inputs and give each Jacobian its shape and type."""
        out, matrix = np.shape(tape.value), np.asarray(matrix)  # values may be of a subclass of arrays
        if tape.inputs == 1 and matrix.dtype == dtypes[0]:
            return self._options.packed([matrix.reshape(out + np.shape(tape.values[0]))])
        jacobians, column = [], 0
        for index, dtype in enumerate(dtypes):
            value = tape.values[index]
            block = matrix[:, column : column + np.size(value)].reshape(out + np.shape(value))
            jacobians.append(in_dtype(block, dtype, tape, index))
            column += np.size(value)
        return self._options.packed(jacobians)

    def _by_autograd(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, with_value: bool
    ) -> tuple[Any, Any, Any]:
        """Leave a derivative of a derivative to autograd, which traces all levels at once."""
        fun, extra = self._without_aux()
        value = fun(*args, **kwargs) if with_value else None
        jacobians = [
            autograd_jacobian(fun, position)(*args, **kwargs) for position in self._options.positions
        ]
        return value, self._options.packed(jacobians), extra[0] if extra else None


def _why_trivial(tape: Tape) -> str:
    """Say why a Jacobian is trivial."""
    rows, columns = tape.jacobian_shape
    if not rows * columns:
        return f"is empty ({rows} × {columns})"
    return "is zero, since the value does not depend on the input"


def _is_trivial(tape: Tape) -> bool:
    """Tell whether a Jacobian has no elements, or only zeros since the value does not depend on the input."""
    return tape.output is None or not all(tape.jacobian_shape)
