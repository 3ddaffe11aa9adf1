"""When a solver must stop."""

from math import inf
from time import perf_counter

__all__ = ["Deadline", "OutOfTimeError"]


class OutOfTimeError(Exception):
    """The time is up; a solver catches it and returns what it has."""


class Deadline:
    """Tell whether the time of a solver is up; the clock runs from the construction on.

    Parameters
    ----------
    seconds : float or None
        Time until the deadline (s); None if there is none.

    Examples
    --------
    >>> Deadline(None).passed, Deadline(1e-9).passed
    (False, True)
    """

    __slots__ = ("_end", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = inf if seconds is None else seconds
        self._end = perf_counter() + self.seconds

    def within(self, seconds: float) -> "Deadline":
        """Return a deadline after some time from now on, and not after this one.

        Examples
        --------
        >>> Deadline(1e-9).within(60).passed
        True
        """
        return Deadline(min(seconds, self._end - perf_counter()))

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return perf_counter() > self._end

    def check(self) -> None:
        """Raise `OutOfTimeError` if the time is up."""
        if self.passed:
            raise OutOfTimeError
