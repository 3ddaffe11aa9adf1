"""Numbers as people read them: 1.2e7, 3.4 ms, 2.1 MB."""

from collections.abc import Iterable
from typing import Final

__all__ = ["bytes_text", "count", "plural", "ratio", "seconds_text", "shape_text", "shorten"]

_EXACT: Final = 100_000
"""Counts below this are written in full."""


def count(number: float) -> str:
    """Write a count: all digits of small ones, three of large ones.

    Examples
    --------
    >>> count(133), count(99_999), count(4_235_328), count(12_000_000)
    ('133', '99999', '4.24e6', '1.2e7')
    """
    if number < _EXACT:
        return str(int(number))
    digits, exponent = f"{number:.2e}".split("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def plural(number: int, noun: str) -> str:
    """Write a count of things.

    Examples
    --------
    >>> plural(1, "element"), plural(40, "element")
    ('1 element', '40 elements')
    """
    return f"{count(number)} {noun}{'s' * (number != 1)}"


def ratio(number: float) -> str:
    """Write a ratio with two or three digits.

    Examples
    --------
    >>> ratio(1.337), ratio(43.21), ratio(1234.5)
    ('1.34', '43.2', '1234')
    """
    return f"{number:.3g}" if number < 1000 else count(number)


def seconds_text(seconds: float) -> str:
    """Write a time in the unit that suits it.

    Examples
    --------
    >>> seconds_text(0.00342), seconds_text(4.2e-5), seconds_text(2.5), seconds_text(6e-11), seconds_text(0)
    ('3.4 ms', '42 µs', '2.5 s', '0.06 ns', '0 s')
    """
    if seconds == 0:
        return "0 s"
    units = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
    unit = next((unit for unit, size in units.items() if seconds >= size), "ns")
    value = seconds / units[unit]
    return f"{value:.2g} {unit}" if value < 10 else f"{value:.0f} {unit}"


def bytes_text(size: float) -> str:
    """Write a size of memory in the unit that suits it.

    Examples
    --------
    >>> bytes_text(800), bytes_text(2_100_000)
    ('800 B', '2.1 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"


def shape_text(shape: Iterable[int]) -> str:
    """Write a shape.

    Examples
    --------
    >>> shape_text((3, 4)), shape_text((5,)), shape_text(())
    ('(3,4)', '(5,)', '()')
    """
    return str(tuple(shape)).replace(" ", "")


def shorten(text: str, width: int) -> str:
    """Cut a text that is too long, with an ellipsis at its end.

    Examples
    --------
    >>> shorten("a long name", 6), shorten("short", 6)
    ('a lon…', 'short')
    """
    return text if len(text) <= width else text[: width - 1] + "…"
