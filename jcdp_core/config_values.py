"""How the values of a configuration file are read, checked and written: one `Kind` per syntax.

All functions raise ValueError (or TypeError, for values that come from Python) with the reason alone; who
calls knows the key and the line.
"""

import math
import re
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

__all__ = ["FLAG", "INTEGERS", "LENGTHS", "REALS", "SECONDS", "Kind", "count"]

_WORD: Final = 1 << 64  # the random engine and its distributions work on 64-bit words
_LONGEST: Final = 100_000  # links: far more than any table of q² cells has room for


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
    accept : callable
        From what a caller gave to the value that is kept; raises if it is out of range.
    write : callable
        From value to text that *parse* gives back.
    """

    syntax: str
    parse: Callable[[str], Any]
    accept: Callable[[Any], Any]
    write: Callable[[Any], str]


def _hint(text: str) -> str:
    """Return the advice for a value with a comment behind it."""
    has_comment = "//" in text or "#" in text
    return "; write comments on lines of their own, which begin with //" if has_comment else ""


def _integer(text: str) -> int:
    """Parse one integer."""
    if not re.fullmatch("[+-]?[0-9]+", text):
        shown = reprlib.repr(text)
        raise ValueError(f"{shown} is not an integer: give digits only, as in 1000{_hint(text)}")
    return int(text)


def _real(text: str) -> float:
    """Parse one real number."""
    try:
        return float(text)
    except ValueError:
        shown = reprlib.repr(text)
        raise ValueError(f"{shown} is not a number: give one, as in 0.5 or 1e3{_hint(text)}") from None


def _accept_integer(value: int, lowest: int, highest: int = _WORD - 1) -> int:
    """Return *value* if it is an integer from *lowest* to *highest*."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not an integer")
    if not lowest <= value <= highest:
        top = "2^64 - 1" if highest == _WORD - 1 else str(highest)
        raise ValueError(f"{value} is out of range: give an integer from {lowest} to {top}")
    return value


def count(lowest: int) -> Kind:
    """Return the kind of one integer.

    Its smallest allowed value is `lowest`, its largest 2^64 - 1.

    Examples
    --------
    >>> count(0).parse("42")
    42
    """
    return Kind("N", _integer, lambda value: _accept_integer(value, lowest), str)


def _accept_lengths(value: tuple[int, ...]) -> tuple[int, ...]:
    """Return *value* if it is a non-empty sequence of positive integers."""
    if not isinstance(value, tuple):
        raise TypeError(f"{value!r} is not a tuple of lengths: give one or more integers, as in (4, 5, 6)")
    if not value:
        raise ValueError("no length given: give one or more positive integers, as in 4,5,6")
    return tuple(_accept_integer(length, 1, _LONGEST) for length in value)


def _lengths(text: str) -> tuple[int, ...]:
    """Parse integers with commas between them."""
    try:
        return tuple(_integer(word.strip()) for word in text.split(","))
    except ValueError:
        fault = f"{reprlib.repr(text)} is not a list of lengths"
        raise ValueError(f"{fault}: give integers and commas, as in 4,5,6{_hint(text)}") from None


def _parse_pair(number: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the parser of two numbers with white space between them."""

    def parse(text: str) -> tuple[Any, Any]:
        words = text.split()
        if len(words) != 2:
            raise ValueError(f"{text!r} is not a range: give two numbers, as in 5 50{_hint(text)}")
        return number(words[0]), number(words[1])

    return parse


def _accept_pair(accept: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, Any]]:
    """Return the function that checks a pair of numbers, the lower one first."""

    def accept_both(value: Any) -> tuple[Any, Any]:
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(f"{value!r} is not a range: give two numbers, as in (5, 50)")
        low, high = map(accept, value)
        if low > high:
            raise ValueError(f"the range {low} {high} is reversed: write {high} {low}")
        return low, high

    return accept_both


def _accept_real(
    value: Any, refusal: str = "is out of range: give a finite number that is not negative"
) -> float:
    """Return *value* as a float if it is a finite number >= 0."""
    number = _as_float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{number} {refusal}")
    return number


def _as_float(value: Any) -> float:
    """Return a number as a float, infinite if it is too large for one."""
    try:
        if not isinstance(value, (bool, str, bytes, bytearray)):
            return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{value!r} is not a number")


def _accept_flag(value: bool) -> bool:
    """Return *value* if it is a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not a flag: give True or False")
    return value


def _flag(text: str) -> bool:
    """Parse 0 or 1."""
    if text not in {"0", "1"}:
        raise ValueError(f"{text!r} is not a flag: give 0 or 1{_hint(text)}")
    return text == "1"


def _accept_seconds(value: Any) -> float:
    """Return *value* as a float if it is a time."""
    return _accept_real(value, "is not a time: give seconds, or 0 for no limit")


LENGTHS: Final = Kind(
    "N,N,...",
    _lengths,
    _accept_lengths,
    lambda value: ",".join(map(str, value)),
)
INTEGERS: Final = Kind(
    "A B",
    _parse_pair(_integer),
    _accept_pair(lambda value: _accept_integer(value, 1)),
    lambda value: f"{value[0]} {value[1]}",
)
REALS: Final = Kind(
    "A B", _parse_pair(_real), _accept_pair(_accept_real), lambda value: f"{value[0]!r} {value[1]!r}"
)
FLAG: Final = Kind("0|1", _flag, _accept_flag, lambda value: str(int(value)))
SECONDS: Final = Kind("SECONDS", _real, _accept_seconds, lambda value: repr(value).removesuffix(".0"))
