"""Checks of what callers give: types, and numbers that limit a solver (machines, memory, seconds)."""

import math
import operator
import reprlib
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from jcdp_core.errors import ArgumentTypeError, SolverError

__all__ = ["expect", "is_integer", "plain", "positive_integer", "positive_or_none", "seconds_or_none"]


def expect(value: object, kind: type | tuple[type, ...], name: str, advice: str) -> None:
    """Raise an `ArgumentTypeError` unless a value is of the kind that is expected.

    The message names the parameter and the first of several kinds, and ends with the advice what to do.

    Examples
    --------
    >>> expect([3, 2], str, "flavour", "give its name")
    Traceback (most recent call last):
        ...
    jcdp_core.errors.ArgumentTypeError: flavour is the list [3, 2], where a str is expected; give its name
    """
    if not isinstance(value, kind):
        expected = kind if isinstance(kind, type) else kind[0]
        given, text = type(value).__name__, repr(value)
        says_so = text.startswith((given, f"<{given}"))
        shown = _with_article(given) if says_so else f"the {given} {reprlib.repr(value)}"
        raise ArgumentTypeError(
            f"{name} is {shown}, where {_with_article(expected.__name__)} is expected; {advice}"
        )


def _with_article(noun: str) -> str:
    """Put the indefinite article before the name of a class."""
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"


def is_integer(value: object) -> bool:
    """Tell whether a value is an integer of Python or NumPy, of any sign; booleans and floats are not.

    Examples
    --------
    >>> is_integer(0), is_integer(np.int8(-3)), is_integer(True), is_integer(2.0)
    (True, True, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """Return sequences as tuples and NumPy's numbers, whose sums may wrap around, as Python's.

    What is neither a sequence nor a number comes back as it is.

    Examples
    --------
    >>> plain(range(2, 5)), plain(np.array([1.0, 2.0])), plain(np.bool_(True)), plain("4,5")
    ((2, 3, 4), (1.0, 2.0), True, '4,5')
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    listed = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    return tuple(map(plain, value)) if listed else value


def positive_integer(value: object) -> int:
    """Return a positive integer as a Python integer, and 0 for anything else.

    NumPy integers are welcome, booleans and floats are not.

    Examples
    --------
    >>> positive_integer(3), positive_integer(True), positive_integer(-1), positive_integer(2.0)
    (3, 0, 0, 0)
    """
    if isinstance(value, (bool, np.bool_)):
        return 0
    try:
        return max(operator.index(value), 0)  # type: ignore[arg-type]  # the exception is the check
    except TypeError:
        return 0


def positive_or_none(value: object, name: str) -> int | None:
    """Return a number of machines or edges as a Python integer, or say what is wrong with it.

    None is no limit; `name` is for the message. Raises `SolverError` for an integer below 1 and
    `ArgumentTypeError` for anything else. NumPy integers are welcome, booleans and floats are not.

    Examples
    --------
    >>> positive_or_none(3, "machines")
    3
    """
    if value is None:
        return None
    number = positive_integer(value)
    if not number:
        error = SolverError if is_integer(value) else ArgumentTypeError
        raise error(f"{name} is {value!r}; give an int ≥ 1, or None for no limit")
    return number


def seconds_or_none(value: object) -> float | None:
    """Return a time limit as a number, or say what is wrong with it.

    The limit is in seconds and more than 0, infinite if it is beyond all floats; None is no limit. Raises
    `SolverError` for any other number, `ArgumentTypeError` for anything else.

    Examples
    --------
    >>> seconds_or_none(1.5)
    1.5
    """
    if value is None:
        return None
    is_flag = isinstance(value, (bool, np.bool_))
    try:
        if not is_flag and value > 0:  # type: ignore[operator]  # the exception is the check
            return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        pass
    error = SolverError if isinstance(value, Number) and not is_flag else ArgumentTypeError
    raise error(f"time_limit is {value!r}; give seconds > 0, or None for no limit")
