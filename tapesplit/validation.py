"""Checks of options, arguments and values, whose messages say what to do instead."""

from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from autograd.tracer import isbox

from tapesplit.arrays import DOUBLES
from tapesplit.callback import Callback
from tapesplit.cuts.separators import Separator
from tapesplit.errors import ArgumentTypeError, ArgumentValueError, InputTypeError, OutputTypeError
from tapesplit.recording.hidden import hidden_value_error, holds_boxes
from tapesplit.recording.remedies import CONSTANTS
from tapesplit.recording.tape import Tape

__all__ = [
    "Cost",
    "Method",
    "check_choice",
    "check_count",
    "check_flag",
    "check_helpers",
    "check_input",
    "check_limit",
    "check_nested",
    "check_output",
    "check_tape",
]

Method: TypeAlias = Literal["auto", "dp", "heuristic", "exact", "tangent", "adjoint"]
Cost: TypeAlias = Literal["runtime", "fma"]


def check_choice(name: str, choice: Any, choices: Any) -> None:
    """Check an option that is one of some words."""
    if not isinstance(choice, str) or choice not in get_args(choices):  # arrays compare by element
        names = ", ".join(map(repr, get_args(choices)))
        raise ArgumentValueError(f"{name} must be one of {names}, but got {choice!r:.60}")


def check_flag(name: str, flag: Any) -> None:
    """Check an option that is true or false."""
    if not isinstance(flag, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name} must be True or False, but got {flag!r}")


def check_limit(name: str, limit: Any) -> None:
    """Check an option that is a positive integer or None."""
    if limit is not None:
        check_count(name, limit, "a positive integer or None")


def check_count(name: str, count: Any, what: str = "a positive integer") -> None:
    """Check a number of something."""
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool):
        hint = f"; write {int(count)}" if isinstance(count, float) and count.is_integer() else ""
        raise ArgumentTypeError(f"{name} must be {what}, but got {count!r}{hint}")
    if count < 1:
        raise ArgumentValueError(f"{name} must be {what}, but got {count!r}")


def check_tape(tape: Any) -> Tape:
    """Check and return a tape."""
    if not isinstance(tape, Tape):
        raise ArgumentTypeError(
            f"a tape is needed, but got {type(tape).__name__}; tapesplit.record(fun, x) returns one"
        )
    return tape


def check_nested(separators: Any) -> Sequence[Separator]:
    """Check and return a sequence of separators."""
    if not isinstance(separators, Sequence):
        raise ArgumentTypeError(
            f"a sequence of separators is needed, but got {type(separators).__name__}; "
            "tapesplit.find_separators(tape) returns one"
        )
    for number, separator in enumerate(separators, 1):
        if not isinstance(separator, Separator):
            raise ArgumentTypeError(
                f"separator {number} of {len(separators)} must be a tapesplit Separator, but got "
                f"{separator!r}; tapesplit.find_separators(tape) returns them"
            )
    return separators


def check_helpers(executor: Any, callback: Any) -> None:
    """Check the objects that take part in an execution."""
    kinds = [kind.__name__ for kind in type(executor).__mro__]
    of_processes = "ProcessPoolExecutor" in kinds
    if executor is not None and (of_processes or not hasattr(executor, "submit")):
        raise ArgumentTypeError(
            f"executor must be a concurrent.futures executor of threads, but got {kinds[0]}"
            + (": tapes cannot leave their process" if of_processes else "")
            + "; give a ThreadPoolExecutor, or none for threads of tapesplit's own"
        )
    if callback is not None and not isinstance(callback, Callback):
        raise ArgumentTypeError(
            f"callback must be a tapesplit.Callback, but got {type(callback).__name__}; write "
            "Callback(start=f), or one of its other events"
        )


def _is_plainly_real(value: Any) -> bool:
    """Tell at once whether a value is what nearly all are, an array of floats or a float."""
    return value.dtype.kind == "f" if type(value) is np.ndarray else type(value) in DOUBLES


def check_input(value: Any, position: int) -> None:
    """Refuse inputs without a real dense Jacobian."""
    if _is_plainly_real(value):
        return
    if isinstance(value, str):
        raise InputTypeError(f"argument {position} is a string; a Jacobian is taken with respect to an array")
    if isinstance(value, (tuple, list, dict)):
        of_numbers = not isinstance(value, dict) and all(isinstance(x, (int, float)) for x in value)
        raise InputTypeError(
            f"argument {position} is a {type(value).__name__}; a Jacobian is taken with respect to one "
            "array: " + ("write np.array(x, dtype=float)" if of_numbers else _SEVERAL)
        )
    if np.iscomplexobj(value):
        raise InputTypeError(
            f"argument {position} is complex; a dense real Jacobian needs real input: pass real and "
            "imaginary part"
        )
    if isinstance(value, np.ndarray) and value.dtype.kind not in "fiub":
        raise InputTypeError(
            f"argument {position} is an array of {value.dtype} values; pass an array of floats "
            "(np.asarray(x, dtype=float))"
        )


_SEVERAL: Final = (
    "pass several arrays as several arguments with argnum=(0, 1, …); or with v, unflatten = "
    "autograd.misc.flatten.flatten(p) of the container p take that of lambda v: f(unflatten(v)) at v"
)
"""Advice how to turn a function f of a dict or a list of arrays into one of arrays."""


def check_output(tape: Tape) -> None:
    """Refuse values without a real dense Jacobian."""
    value = tape.value
    if _is_plainly_real(value):
        return
    of_objects = isinstance(value, np.ndarray) and value.dtype == object
    if isbox(value) or (of_objects and holds_boxes(tape)):
        raise hidden_value_error(tape.name, tape)
    if not isinstance(value, (tuple, list, dict)) and np.iscomplexobj(value):
        raise OutputTypeError(
            f"{tape.name} returned complex values; return real and imaginary part as real arrays"
        )
    is_number = isinstance(value, (np.ndarray, np.generic, float, int))
    if not is_number or np.asarray(value).dtype.kind not in "fiub":
        kind = f"an array of {value.dtype} values" if isinstance(value, np.ndarray) else type(value).__name__
        raise OutputTypeError(
            f"{tape.name} returned {'None' if value is None else kind}, which has no derivative; return an "
            f"array of floats ({_advice_for(value, of_objects=of_objects)})"
        )


def _advice_for(value: Any, *, of_objects: bool) -> str:
    """Say why a function may have returned a value that is not of numbers, or what to write instead."""
    if value is None:
        return "perhaps its return statement is missing"
    if isinstance(value, (Coroutine, Generator, AsyncGenerator)):
        return "from a plain function: take async away, return an array instead of yielding its elements"
    if of_objects:
        return (
            "objects come from plain NumPy, such as numpy.zeros_like(x), from matrices of scipy.sparse, "
            "generators or fractions"
        )
    return (
        CONSTANTS if hasattr(value, "__array__") else "np.array([...]) of autograd.numpy joins traced numbers"
    )
