"""The numbers by which callers limit a solver or scheduler: machines, memory, seconds."""

import operator

from jcdp_core.errors import SolverError

__all__ = ["positive_or_none", "seconds_or_none"]


def positive_or_none(value: object, name: str) -> int | None:
    """Return a number of machines or edges as a Python integer, or say what is wrong with it.

    Parameters
    ----------
    value : object
        What the caller gave; None for no limit.
    name : str
        Its name, for the message.

    Returns
    -------
    int or None
        The number, at least 1.

    Raises
    ------
    SolverError
        If it is anything else. NumPy integers are welcome, booleans and floats are not.

    Examples
    --------
    >>> positive_or_none(3, "machines")
    3
    """
    if value is None:
        return None
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # the exception is the check
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise SolverError(f"{name} is {value!r}; give an int ≥ 1, or None for no limit")
    return number


def seconds_or_none(value: object, name: str) -> float | None:
    """Return a time as a number, or say what is wrong with it.

    Parameters
    ----------
    value : object
        What the caller gave (s); None for no limit.
    name : str
        Its name, for the message.

    Returns
    -------
    float or None
        The time, more than 0; may be infinite.

    Raises
    ------
    SolverError
        If it is anything else.

    Examples
    --------
    >>> seconds_or_none(1.5, "time_limit")
    1.5
    """
    if value is None:
        return None
    try:
        if value > 0:  # type: ignore[operator]  # the exception is the check
            return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    raise SolverError(f"{name} is {value!r}; give seconds > 0, or None for no limit")
