"""How the values of a configuration file are read, checked and written: one `Kind` per syntax.

All functions raise ValueError (or TypeError, for values that come from Python) with the reason alone; who
calls knows the key and the line.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

__all__ = ["FLAG", "INTEGERS", "LENGTHS", "REALS", "SECONDS", "Kind", "count", "plain"]

_WORD: Final = 1 << 64  # the random engine and its distributions work on 64-bit words


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """How the values of one key are read, checked and written.

    Parameters
    ----------
    syntax : str
        What help texts show, as in ``A B``.
    parse : callable
        From text to value.
    check : callable
        Raises if a value is out of range.
    write : callable
        From value to text that *parse* gives back.
    """

    syntax: str
    parse: Callable[[str], Any]
    check: Callable[[Any], None]
    write: Callable[[Any], str]


def plain(value: Any) -> Any:
    """Return sequences as tuples and NumPy's numbers as Python's, so that equal settings are the same.

    Parameters
    ----------
    value : object
        What the caller gave.

    Returns
    -------
    object
        The same value; what is neither a sequence nor a number comes back as it is.

    Examples
    --------
    >>> plain(range(2, 5)), plain(np.array([1.0, 2.0])), plain(np.bool_(True)), plain("4,5")
    ((2, 3, 4), (1.0, 2.0), True, '4,5')
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    listed = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    return tuple(map(plain, value)) if listed else value


def _hint(text: str) -> str:
    """Return the advice for a value with a comment behind it."""
    return "; write comments on lines of their own" if "//" in text else ""


def _integer(text: str) -> int:
    """Parse one integer."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an integer{_hint(text)}") from None


def _real(text: str) -> float:
    """Parse one real number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number{_hint(text)}") from None


def _check_integer(value: int, lowest: int) -> None:
    """Raise unless *value* is an integer in [lowest, 2^64)."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not an integer")
    if not lowest <= value < _WORD:
        raise ValueError(f"{value} is out of range: give an integer from {lowest} to 2^64 - 1")


def count(lowest: int) -> Kind:
    """Return the kind of one integer.

    Parameters
    ----------
    lowest : int
        Smallest allowed value; the largest is 2^64 - 1.

    Returns
    -------
    Kind
        The kind.

    Examples
    --------
    >>> count(0).parse("42")
    42
    """
    return Kind("N", _integer, lambda value: _check_integer(value, lowest), str)


def _check_lengths(value: tuple[int, ...]) -> None:
    """Raise unless *value* is a non-empty sequence of positive integers."""
    if not isinstance(value, tuple):
        raise TypeError(f"{value!r} is not a tuple of lengths: give one or more integers, as in (4, 5, 6)")
    if not value:
        raise ValueError("no length given: give one or more positive integers, as in 4,5,6")
    for length in value:
        _check_integer(length, 1)


def _parse_pair(number: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the parser of two numbers with white space between them."""

    def parse(text: str) -> tuple[Any, Any]:
        words = text.split()
        if len(words) != 2:
            raise ValueError(f"{text!r} is not a range: give two numbers, as in 5 50{_hint(text)}")
        return number(words[0]), number(words[1])

    return parse


def _check_pair(value: tuple[Any, Any]) -> None:
    """Raise TypeError unless *value* has two ends."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(f"{value!r} is not a range: give two numbers, as in (5, 50)")


def _check_order(value: tuple[Any, Any]) -> None:
    """Raise ValueError unless the two ends of the range *value* are in order."""
    if value[0] > value[1]:
        raise ValueError(f"the range {value[0]} {value[1]} is reversed: write {value[1]} {value[0]}")


def _check_integers(value: tuple[int, int]) -> None:
    """Raise unless *value* is an ordered pair of positive integers."""
    _check_pair(value)
    for bound in value:
        _check_integer(bound, 1)
    _check_order(value)


def _check_reals(value: tuple[float, float]) -> None:
    """Raise unless *value* is an ordered pair of finite numbers >= 0."""
    _check_pair(value)
    for bound in value:
        if not (math.isfinite(bound) and bound >= 0):
            raise ValueError(f"{bound} is out of range: give a finite number that is not negative")
    _check_order(value)


def _check_flag(value: bool) -> None:
    """Raise TypeError unless *value* is a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not a flag: give True or False")


def _flag(text: str) -> bool:
    """Parse 0 or 1."""
    if text not in {"0", "1"}:
        raise ValueError(f"{text!r} is not a flag: give 0 or 1{_hint(text)}")
    return text == "1"


def _check_seconds(value: float) -> None:
    """Raise ValueError unless *value* is a time."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{value} is not a time: give seconds, or 0 for no limit")


LENGTHS: Final = Kind(
    "N,N,...",
    lambda text: tuple(_integer(word.strip()) for word in text.split(",")),
    _check_lengths,
    lambda value: ",".join(map(str, value)),
)
INTEGERS: Final = Kind("A B", _parse_pair(_integer), _check_integers, lambda value: f"{value[0]} {value[1]}")
REALS: Final = Kind("A B", _parse_pair(_real), _check_reals, lambda value: f"{value[0]!r} {value[1]!r}")
FLAG: Final = Kind("0|1", _flag, _check_flag, lambda value: str(int(value)))
SECONDS: Final = Kind(
    "SECONDS", _real, _check_seconds, lambda value: f"{value:g}" if value == int(value) else repr(value)
)
