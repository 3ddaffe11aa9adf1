"""Checks of the function whose Jacobian is taken, and of the positions of the arguments it is taken by."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapesplit.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError

__all__ = ["check_function", "checked_argnum", "positions_of"]


def check_function(fun: Any, caller: str, correct: str) -> None:
    """Raise an error unless ``fun`` is callable; the message names ``caller`` and shows a correct call."""
    if not callable(fun):
        raise ArgumentTypeError(f"{caller} needs a function, but got {fun!r:.60}; write {correct}")


def checked_argnum(argnum: Any) -> int | tuple[int, ...]:
    """Check argnum and return it as an int or a tuple of ints, which the caller cannot change later."""
    given = argnum.tolist() if isinstance(argnum, np.ndarray) else argnum
    several = isinstance(given, Sequence) and not isinstance(given, (str, bytes))
    numbers = tuple(given) if several else (given,)
    if not all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in numbers):
        advice = "; write parallel_jacobian(f)(x)" if isinstance(argnum, np.ndarray) else ""
        raise ArgumentTypeError(
            f"argnum must be an integer or a sequence of integers, but got {argnum!r}{advice}"
        )
    if not numbers:
        raise ArgumentValueError("argnum is empty; give the position of at least one argument")
    if len(set(numbers)) < len(numbers):
        raise ArgumentValueError(f"argnum {numbers} names an argument twice; name each one once")
    return tuple(map(int, numbers)) if several else int(given)


def positions_of(argnum: Any, count: int, name: str) -> tuple[int, ...]:
    """Return the positions of the inputs among ``count`` positional arguments; negative ones are resolved."""
    if type(argnum) is int and 0 <= argnum < count:  # as nearly always
        return (argnum,)
    kept = checked_argnum(argnum)
    given = kept if isinstance(kept, tuple) else (kept,)
    for position in given:
        if not -count <= position < count:
            raise ArgumentIndexError(
                f"argnum is {position}, but {name} was called with {count} positional "
                f"argument{'s' * (count != 1)}; pass the argument that argnum means by position, and count "
                "self in a method"
            )
    positions = tuple(position % count for position in given)
    if len(set(positions)) < len(positions):
        raise ArgumentValueError(f"argnum {given} names an argument of {name} twice; name each one once")
    return positions
