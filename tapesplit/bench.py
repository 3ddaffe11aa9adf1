"""One function's Jacobian timed against ``autograd.jacobian``, after a check that the two are equal."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import autograd
import numpy as np

from tapesplit.closeness import check_close, largest, tolerance_of
from tapesplit.decorator import parallel_jacobian
from tapesplit.draw.numbers import ratio, seconds_text
from tapesplit.errors import NothingToPlanError

__all__ = ["compare"]

_SPAN: Final = 0.5
"""Seconds to repeat a call for."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Times of one Jacobian in both packages.

    Parameters
    ----------
    error
        Largest difference of the two Jacobians, relative to the largest entry.
    first
        Seconds of the first call of tapesplit, with planning.
    ours, theirs
        Median seconds of later calls of tapesplit and of ``autograd.jacobian``.
    """

    error: float
    first: float
    ours: float
    theirs: float

    def __str__(self) -> str:
        gain = self.theirs / self.ours
        verdict = f"{ratio(gain)} times faster" if gain >= 1 else f"{ratio(1 / gain)} times slower"
        return (
            f"difference         {self.error:.1e} of the largest entry\n"
            f"autograd.jacobian  {seconds_text(self.theirs)}\n"
            f"tapesplit          {seconds_text(self.ours)}, {verdict}\n"
            f"first call         {seconds_text(self.first)}, with planning"
        )


def compare(
    fun: Callable[..., Any],
    args: Sequence[np.ndarray],
    *,
    argnum: Sequence[int] | None = None,
    **options: Any,
) -> Comparison:
    """Compare a Jacobian with that of autograd, first its entries, then its time.

    The Jacobian is taken with respect to the arguments at the positions `argnum`, by default to all; options
    are those of `tapesplit.parallel_jacobian`. ``str()`` of the result says it in four lines.

    Raises
    ------
    WrongJacobianError
        If the Jacobians differ: there is nothing to time then.
    NothingToPlanError
        If the Jacobian is empty.

    Examples
    --------
    >>> import autograd.numpy as anp
    >>> compare(anp.sin, [np.ones(3)]).error
    0.0
    """
    positions = tuple(range(len(args)) if argnum is None else argnum)
    ours = parallel_jacobian(fun, positions, **options)
    ours.cache_clear()  # the first call shall plan
    first, jacobians = _timed(lambda: ours(*args))
    if not all(jacobian.size for jacobian in jacobians):
        raise NothingToPlanError("the Jacobian is empty, so there is nothing to time")
    oracles = [autograd.jacobian(fun, position) for position in positions]
    slowest, expected = _timed(lambda: [oracle(*args) for oracle in oracles])
    differs = (
        "the Jacobian differs from autograd.jacobian, so there is nothing to time "
        "(tapesplit.check_vector_rule checks the rules of your primitives)"
    )
    for found, wanted in zip(jacobians, expected, strict=True):
        check_close(found, wanted, differs, 10 * tolerance_of([wanted]))
    error = max(_difference(a, b) for a, b in zip(jacobians, expected, strict=True))
    theirs = slowest if slowest > _SPAN else _repeated(lambda: [oracle(*args) for oracle in oracles])
    return Comparison(error, first, _repeated(lambda: ours(*args)), theirs)


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Call once; return seconds and value."""
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def _repeated(call: Callable[[], Any]) -> float:
    """Return the median time of calls for about half a second, at least three."""
    spans: list[float] = []
    while len(spans) < 3 or sum(spans) < _SPAN:
        spans.append(_timed(call)[0])
    return median(spans)


def _difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference relative to the largest entry; there is none where both are infinite."""
    with np.errstate(invalid="ignore"):
        return largest(ours - theirs) / (largest(theirs) or 1.0)
