"""Primitives made anew: a function that defines one inside of itself has another object at each call.

All that plans know of such a primitive is which derivative rules it has; the rules themselves they take from
each tape. So primitives that are made by the same code are treated as the same.
"""

from collections import Counter
from types import CodeType, FunctionType
from typing import Any

from autograd.core import primitive_jvps, primitive_vjps

from tapesplit.rules import find_rule

__all__ = ["as_first_made", "is_made_anew"]

_first_made: dict[tuple[CodeType, int], Any] = {}
"""The first primitive of a code, the second one on the same tape, and so on; autograd keeps them all, too."""


def as_first_made(primitives: list[Any]) -> list[Any]:
    """Replace primitives that are made anew by the first ones of the same code.

    The primitives are those of a tape, entry by entry. Different ones of a tape stay different. The same list
    comes back if none is made anew.
    """
    found: dict[Any, Any] = {}
    times: Counter[CodeType] = Counter()
    for primitive in filter(is_made_anew, dict.fromkeys(primitives)):
        code = primitive.fun.__code__
        first = _first_made.get((code, times[code]))
        if first is None or _rules(first) != _rules(primitive):
            _first_made[code, times[code]] = first = primitive
        found[primitive] = first
        times[code] += 1
    return [found.get(primitive, primitive) for primitive in primitives] if found else primitives


def is_made_anew(primitive: Any) -> bool:
    """Tell whether a function has defined a primitive inside of itself, without a vector rule."""
    function = getattr(primitive, "fun", None)
    is_local = isinstance(function, FunctionType) and "<locals>" in function.__qualname__
    return is_local and find_rule(primitive) is None


def _rules(primitive: Any) -> tuple[bool, bool, bool]:
    """Tell which rules a primitive has."""
    return primitive in primitive_vjps, primitive in primitive_jvps, find_rule(primitive) is not None
