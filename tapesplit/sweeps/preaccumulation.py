"""Local preaccumulation: the derivatives of merged elementwise operations by what they read from outside.

The partial derivatives are multiplied out backwards with one direction (Griewank & Walther 2008, Ch. 10).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Member", "Term", "arrays_alive", "is_one", "preaccumulate"]


class Term(NamedTuple):
    """One partial derivative of an operation, by another member or an input of the merged operation.

    It is a number or a formula ``partial(ans, *args)``. ``operands`` are the numbers under which the
    arguments of the formula were read, None for those that it does not use. Without operands, the formula is
    evaluated on the arguments of one call on the tape.
    """

    target: int
    partial: Callable[..., Any] | float
    operands: tuple[int | None, ...] = ()


class Member(NamedTuple):
    """One of the operations that are merged, with its partial derivatives."""

    number: int
    terms: tuple[Term, ...]


def preaccumulate(
    members: Sequence[Member],
    evaluate: Callable[[int, Term], Any],
    behind: Mapping[int, Any] | None = None,
) -> dict[int, Any]:
    """Return the derivatives of the result of a merged operation by each of its inputs.

    The last member, whose result it is, comes first. ``evaluate(number, term)`` returns the value of a
    formula of a member. `behind` has the derivatives of what follows by the result, and maybe by inputs; by
    default the result is the end. The derivative by each input stands under its number.
    """
    derivatives: dict[int, Any] = dict(behind or {members[0].number: 1})
    for number, terms in members:
        outer = derivatives.pop(number, None)
        if outer is None:  # the result does not depend on this member
            continue
        for term in terms:
            partial = _floating(evaluate(number, term)) if callable(term.partial) else term.partial
            product = _product(outer, partial)
            known = derivatives.get(term.target)
            derivatives[term.target] = product if known is None else known + product
    return derivatives


def arrays_alive(members: Sequence[Member]) -> int:
    """Count the arrays of partial derivatives that `preaccumulate` holds at a time, at most.

    The derivative of what follows by the result counts, too. The last member comes first.
    """
    found, most = {members[0].number: True}, 1
    for number, terms in members:
        outer = found.pop(number, False)
        for term in terms:
            is_formula = callable(term.partial)
            # A formula takes an array for its result, and one for an intermediate or the product with it.
            most = max(most, sum(found.values()) + outer + 2 * is_formula)
            found[term.target] = found.get(term.target, False) or outer or is_formula
    return max(most, sum(found.values()))


def _floating(partial: Any) -> Any:
    """Return a derivative as floating-point numbers: sums of truth values and of integers wrap around."""
    dtype = getattr(partial, "dtype", None)
    return partial if dtype is None or dtype.kind not in "iub" else partial.astype(np.float64)


def _product(weight: Any, partial: Any) -> Any:
    """Multiply derivatives; the number 1 costs nothing."""
    if is_one(partial):
        return weight
    if is_one(weight):
        return partial
    return weight * partial


def is_one(derivative: Any) -> bool:
    """Tell whether a derivative is the number 1, by which nothing needs to be multiplied."""
    return isinstance(derivative, int) and derivative == 1
