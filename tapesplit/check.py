"""A check of Jacobians for users' own functions, in the manner of autograd's `check_grads`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import autograd
import numpy as np
from autograd.core import primitive_vjps

from tapesplit.closeness import check_within, finite_sizes, largest, tolerance_of
from tapesplit.decorator import parallel_jacobian
from tapesplit.errors import ArgumentIndexError, NestedTraceError, WrongJacobianError
from tapesplit.names import display_name
from tapesplit.notes import note
from tapesplit.recording.argnums import check_function, positions_of
from tapesplit.recording.recorder import record
from tapesplit.recording.stand_ins import traced_as_recorded
from tapesplit.recording.tape import Tape
from tapesplit.rules import Bulk, find_rule

__all__ = ["check_jacobian"]

_DIRECTIONS: Final = 8
"""Directions along which differences are taken, at most; also points at which rounding is measured."""
_MOST_NOISE: Final = 0.25
"""A relative change of the value next to the point counts as rounding up to this power of the precision."""
_ROUNDINGS: Final = 100
"""It also counts as rounding up to so many roundings of the largest value on the tape."""
_LISTED: Final = 5
"""Elements of a direction that a message names."""
_STEPS: Final = 6
"""Steps that are tried, from the power 1/3 to the power 2/3 of the precision, relative to the inputs."""


def check_jacobian(
    fun: Callable[..., Any], /, *args: Any, argnum: int | Sequence[int] = 0, **kwargs: Any
) -> None:
    """Check ``parallel_jacobian(fun)`` at one point against autograd and finite differences.

    Parameters
    ----------
    fun
        A function of autograd.numpy operations.
    *args, **kwargs
        Its arguments.
    argnum
        Position of the argument with respect to which to differentiate, or several positions, which are
        checked one by one.

    Raises
    ------
    WrongJacobianError
        If an element of the Jacobian, or of the plain tangent or adjoint sweep, differs from that of
        ``autograd.jacobian`` by more than 1e-9 (3e-4 in single precision and with ``odeint`` and
        ``fixed_point``, which solve up to a tolerance; 3e-2 in half precision), or if a product with a
        direction differs from central differences by more than 1e-4 (or that). Both are relative to the row
        and column, see the notes.
    ArgumentIndexError, ArgumentTypeError, ArgumentValueError, InputTypeError, OutputTypeError
        As raised by `parallel_jacobian` and its calls.
    Exception
        Any exception raised by ``autograd.jacobian``, if differences agree.

    Notes
    -----
    Costs four Jacobians and 26 calls of the function: differences are taken along at most eight directions,
    each of inputs whose derivatives have similar sizes, with steps in proportion to each input. Where these
    disagree, smaller steps are tried, too (at most 106 calls); where no step gives finite values, there is no
    comparison.

    Units of inputs do not matter: derivatives are multiplied by their inputs (1 for inputs that are 0) and
    compared with those of the same row. An element counts relative to the geometric mean of the largest one
    of its row and of its column; products relative to the sum of what they add. Differences of less than
    1e-12 of the output (2e-6 in single and 2e-2 in half precision) are rounding; in the products, of less
    than 1e-9 (4e-4 and 0.2). More is rounding where outputs are sums of large terms that cancel, as far as
    values at the next floating-point numbers show it. Outputs below 1 count as 1: scale what is tiny.

    Where autograd itself is wrong, the error has a note: differences confirm the Jacobian of method "auto".
    Errors that ``autograd.jacobian`` raises have such a note, too. Lists of traced numbers in what
    ``np.concatenate`` and the like join are handed to autograd as arrays, so its zeros for them are no alarm.

    Where autograd has no VJP of a primitive with vector rules for both modes, and where it solves equations
    (backward in time for ``odeint``, which may go far astray), the sweeps are compared with each other and
    with differences only. Integers are compared with what autograd and differences give for
    them in double precision. At a point where the function is not differentiable, and where its value is not
    the same each time, the differences have no meaning and the check may fail.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> check_jacobian(lambda x: np.sin(x) * x[0], np.array([1.0, 2.0]))
    """
    check_function(fun, "check_jacobian", "check_jacobian(f, x), the arguments behind it")
    name = display_name(fun)
    if not args:
        raise ArgumentIndexError(
            f"check_jacobian got no point at which to check {name}; write check_jacobian(f, x), arguments "
            "by position"
        )
    for position in positions_of(argnum, len(args), name):
        _check_by(fun, position, args, kwargs)


def _check_by(fun: Callable[..., Any], argnum: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Check the Jacobian by one argument."""
    found = {
        method: parallel_jacobian(fun, argnum, method=method)(*args, **kwargs)
        for method in ("auto", "tangent", "adjoint")
    }
    precise = list(args)
    precise[argnum] = _in_floating_point(args[argnum])
    value = np.asarray(fun(*precise, **kwargs))
    tape = _tape_of(fun, argnum, precise, kwargs)
    exact = _is_exact(tape)
    expected, source, failure = np.asarray(found["auto"]), "that of method 'auto'", None
    if not value.size:  # autograd refuses to stack no rows
        expected, source = np.zeros(value.shape + np.shape(precise[argnum])), "the empty one"
    elif exact and _has_all_vjps(tape):
        answer = _answer_of_autograd(fun, argnum, precise, kwargs)
        if isinstance(answer, Exception):
            failure = answer
        else:
            expected, source = answer, "autograd.jacobian"

    def moved(x: np.ndarray) -> np.ndarray:
        return np.asarray(fun(*precise[:argnum], x, *precise[argnum + 1 :], **kwargs))

    x = np.asarray(precise[argnum])
    with np.errstate(all="ignore"):  # a step may leave the domain
        point = _Point.of(x, value, expected, moved, _largest_term(tape), exact=exact)
    name = display_name(fun)
    _compare_methods(found, expected, source, point, name)
    try:
        with np.errstate(all="ignore"):
            point.check_differences(f"{name}: J·v differs from central differences")
    except WrongJacobianError as error:
        if not _note_randomness(error, name, point) and source == "autograd.jacobian":
            note(
                error,
                f"autograd.jacobian has the same derivatives: does {name} change an array or a list in place "
                "after it has used it, or is a VJP of your own wrong?",
            )
        raise
    if failure is not None:
        note(failure, "autograd.jacobian fails here; that of tapesplit agrees with central differences")
        raise failure


def _compare_methods(
    found: Mapping[str, Any], expected: np.ndarray, source: str, point: "_Point", name: str
) -> None:
    """Compare the Jacobians of all methods with the expected one."""
    try:
        for method, jacobian in found.items():
            differs = f"{name}: the Jacobian (method {method!r}) differs from {source}"
            check_within(jacobian, expected, point.rounding().reshape(expected.shape), differs)
    except WrongJacobianError as error:
        ours = np.asarray(found["auto"])
        is_ours_right = ours.shape == expected.shape and point.with_jacobian(ours).is_confirmed()
        if method == "auto" and is_ours_right and not point.is_confirmed():
            note(error, "central differences agree with tapesplit, so a rule of autograd's is wrong here")
        _note_randomness(error, name, point)
        raise


def _note_randomness(error: WrongJacobianError, name: str, point: "_Point") -> bool:
    """Add to an error that the function has another value at the same point; return whether it has."""
    is_random = not np.array_equal(point.moved(point.x), point.value, equal_nan=True)
    if is_random:
        note(
            error,
            f"{name} has another value at the same point: does it take random numbers, or keep a state?",
        )
    return is_random


def _answer_of_autograd(
    fun: Callable[..., Any], argnum: int, args: Sequence[Any], kwargs: dict[str, Any]
) -> np.ndarray | Exception:
    """Return autograd's Jacobian, or the error that it raises."""
    try:
        with traced_as_recorded():
            jacobian = np.asarray(autograd.jacobian(fun, argnum)(*args, **kwargs))
    except Exception as error:  # noqa: BLE001 (differences are taken before it is raised)
        return error
    return jacobian.real  # a rule may forget to take the real part


def _tape_of(
    fun: Callable[..., Any], argnum: int, args: Sequence[Any], kwargs: dict[str, Any]
) -> Tape | None:
    """Record a call; None if only autograd can."""
    try:
        return record(fun, *args, argnum=argnum, **kwargs)
    except NestedTraceError:
        return None


def _has_all_vjps(tape: Tape | None) -> bool:
    """Tell whether autograd can differentiate whatever is on a tape."""
    return tape is None or all(p in primitive_vjps for p in tape.primitives[tape.inputs :])


def _is_exact(tape: Tape | None) -> bool:
    """Tell whether derivatives are right up to rounding, not only to the tolerance of a solver."""
    rules = [find_rule(primitive) for primitive in tape.primitives[tape.inputs :]] if tape else []
    return not any(isinstance(rule, Bulk) and rule.approximate for rule in rules)


def _largest_term(tape: Tape | None) -> float:
    """Return the largest value on a tape, infinite without a tape: rounding of sums is proportional to it."""
    if tape is None:
        return np.inf
    arrays = (np.asarray(value) for value in tape.values if isinstance(value, _NUMBERS))
    return max((largest(array) for array in arrays if array.dtype != object), default=0.0)


_NUMBERS: Final = (np.ndarray, np.generic, float, complex)
"""Types of values that can be large."""


class _Point(NamedTuple):
    """A point of a function, with the sizes of what is computed there, in double precision."""

    x: np.ndarray
    value: np.ndarray
    J: np.ndarray
    moved: Callable[[np.ndarray], np.ndarray]
    """The value at another point."""
    tolerance: float
    """Allowed difference of single elements, relative to what is expected."""
    eps: float
    """The precision of the least precise array."""
    inputs: np.ndarray
    """Size of each input; 1 for zeros."""
    outputs: np.ndarray
    """Size of the terms that each output sums, as far as its value, derivatives and rounding show it."""
    sizes: np.ndarray
    """Size of each element of the Jacobian in units in which inputs have size 1, so that units cancel."""
    rows: np.ndarray
    """The largest element in each row of ``sizes``."""
    shares: np.ndarray
    """For each column of ``sizes``, the largest of its elements relative to the maximum of their rows."""

    @classmethod
    def of(
        cls,
        x: np.ndarray,
        value: np.ndarray,
        J: np.ndarray,
        moved: Callable[[np.ndarray], np.ndarray],
        term: float,
        *,
        exact: bool,
    ) -> "_Point":
        """Measure inputs, outputs and elements of the Jacobian, in double precision."""
        floating = [array for array in (x, value, J) if array.dtype.kind in "fc"]
        eps = max(float(np.finfo(array.dtype).eps) for array in floating)
        inputs = finite_sizes(x).ravel()
        # Zeros, and inputs that are zero up to the rounding of the others, have size 1.
        inputs[inputs <= 10 * eps * min(1.0, inputs.max(initial=0.0))] = 1.0
        if not exact:  # a solver's error is like the rounding of single precision
            floating.append(np.zeros(0, np.float32))
            eps = max(eps, float(np.finfo(np.float32).eps))
        J = J.reshape(value.size, x.size)
        sizes = finite_sizes(J) * inputs
        rows = sizes.max(axis=1, initial=0.0)
        parts = sizes / np.where(rows > 0, rows, 1.0)[:, np.newaxis]
        shares = parts.max(axis=0, initial=0.0)
        outputs = np.maximum(np.maximum(finite_sizes(value).ravel(), rows), 1.0)
        # Large terms that cancel leave rounding errors, which differ at the next floating-point numbers.
        for step in 2 * eps * inputs * np.random.default_rng(0).uniform(-1.0, 1.0, (_DIRECTIONS, x.size)):
            noise = finite_sizes(moved(_stepped(x, step)) - value).ravel()
            most = np.maximum(eps**_MOST_NOISE * outputs, _ROUNDINGS * eps * term)
            noise[noise > most] = 0.0  # a jump, or another value each time
            outputs = np.maximum(outputs, noise / eps)
        return cls(x, value, J, moved, tolerance_of(floating), eps, inputs, outputs, sizes, rows, shares)

    def rounding(self) -> np.ndarray:
        """Return how far each element of the Jacobian may be off.

        That is relative to the geometric mean of the largest element of the row and of the column, in units
        in which the inputs and all rows are of size 1. Of sums that cancel, some rounding is left.
        """
        relative = self.tolerance * np.outer(self.rows, np.sqrt(self.shares))
        least = max(1e-3 * self.tolerance, 16 * self.eps) * self.outputs
        return np.maximum(relative, least[:, np.newaxis]) / self.inputs

    def with_jacobian(self, J: np.ndarray) -> "_Point":
        """Return the same point, with the same sizes, but another Jacobian."""
        J = J.reshape(self.J.shape)
        return self._replace(J=J, sizes=finite_sizes(J) * self.inputs)

    def is_confirmed(self) -> bool:
        """Tell whether central differences agree with the Jacobian."""
        try:
            with np.errstate(all="ignore"):
                self.check_differences("")
        except WrongJacobianError:
            return False
        return True

    def check_differences(self, what: str) -> None:
        """Compare with differences along directions of inputs whose derivatives have like sizes.

        In one direction for all inputs, large derivatives would hide those that are small next to them.
        """
        lengths = self.inputs * np.random.default_rng(0).uniform(0.5, 1.0, self.x.size)
        for group in np.array_split(np.argsort(self.shares), max(1, min(self.x.size, _DIRECTIONS))):
            direction = np.zeros(self.x.size)
            direction[group] = lengths[group]
            self._check_direction(direction, f"{what} along {_elements_text(np.sort(group))}")

    def _check_direction(self, direction: np.ndarray, what: str) -> None:
        """Compare the product with one direction, for steps of falling length until all rows agree."""
        slopes = self.sizes @ (direction / self.inputs)
        rounding = self.eps * self.outputs
        allowed = max(1e-4, self.tolerance) * slopes + 16 * rounding / np.cbrt(self.eps)
        right = np.zeros(self.value.size, bool)
        differences = np.full(self.value.size, np.nan)
        for relative in self.eps ** np.linspace(1 / 3, 2 / 3, _STEPS):
            after, before = (_stepped(self.x, sign * relative * direction) for sign in (1, -1))
            taken = np.subtract(after, before, dtype=np.result_type(after, float)).ravel() / (2 * relative)
            expected = self.J @ taken
            difference = (self.moved(after) - self.moved(before)).ravel() / (2 * relative)
            # With a step so short that rounding dominates, a difference may be as expected by chance.
            right |= (np.abs(difference - expected) <= allowed) & (rounding / relative <= allowed)
            if right.all():
                return
            differences = np.where(np.isfinite(differences), differences, difference)
        differences = np.where(right | ~np.isfinite(differences), expected, differences)
        shape = self.value.shape
        check_within(expected.reshape(shape), differences.reshape(shape), allowed.reshape(shape), what)


def _elements_text(indices: np.ndarray) -> str:
    """Name elements of the input by their flat numbers, of many the first ones."""
    listed = ", ".join(map(str, indices[:_LISTED])) + (", …" if len(indices) > _LISTED else "")
    return f"element{'s' * (len(indices) > 1)} {listed} of the input"


def _stepped(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the point that is a step away, in the precision of the first one."""
    return (x + step.reshape(x.shape)).astype(x.dtype)


def _in_floating_point(x: Any) -> Any:
    """Return an argument itself, or integers in double precision, where steps are possible."""
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    return x.astype(np.float64) if kind in {"i", "u", "b"} else x
