"""Shared plans: a Jacobian function that is made anew from the same code need not plan anew.

``parallel_jacobian(lambda x: model(x, t))(x)`` inside a loop makes a new function each time, but the same
tapes. The plans used last outlive the functions that they were made for.
"""

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, Final, NamedTuple, TypeAlias

from tapesplit.names import display_name
from tapesplit.options import PlanOptions
from tapesplit.planning.plan import JacobianPlan
from tapesplit.recording.overrides import are_current, vjps_of
from tapesplit.rules import rules_defined
from tapesplit.structures.recognize import Recognizer

__all__ = ["MOST_PLANS", "KeptPlan", "Origin", "forget_shared", "in_front", "origin_of", "share", "shared"]

MOST_PLANS: Final = 8
"""Plans that are kept at a time for one function, or for those of one origin."""
_MOST_ORIGINS: Final = 16

Origin: TypeAlias = tuple[CodeType, str, PlanOptions]
"""What functions have in common that share plans: code, name, and what they ask of plans."""


class KeptPlan(NamedTuple):
    """A plan, what it was made of besides the structure, and what recognizes tapes of this structure.

    The recognizer is None until the plan is used a second time.
    """

    plan: JacobianPlan
    rules: int
    vjps: dict[Any, Any]
    recognizer: Recognizer | None = None

    @classmethod
    def of(cls, plan: JacobianPlan) -> "KeptPlan":
        """Take down the rules that there are."""
        return cls(plan, rules_defined(), vjps_of(plan.structure.primitives))

    @property
    def is_current(self) -> bool:
        """Whether no rules have been defined since."""
        return self.rules == rules_defined() and are_current(self.vjps)


# Tuples that are replaced and never changed, so that reading needs no lock; the origin used last is the last.
_shared: dict[Origin, tuple[KeptPlan, ...]] = {}


def origin_of(fun: Callable[..., Any], options: PlanOptions) -> Origin | None:
    """Return what a function has in common with those that share plans with it; None without any code.

    All functions with its code and name count, whatever they close over.
    """
    code = _code(fun)
    return None if code is None else (code, display_name(fun), options)


def shared(origin: Origin | None) -> tuple[KeptPlan, ...]:
    """Return the plans that functions of an origin used last, newest use first."""
    return tuple(kept for kept in _shared.get(origin, ()) if kept.is_current)  # type: ignore[arg-type]


def share(origin: Origin | None, used: KeptPlan) -> None:
    """Keep a plan for functions of an origin; the origin that was not used for the longest time may go."""
    if origin is None:
        return
    _shared[origin] = in_front(used, _shared.pop(origin, ()))
    for oldest in list(_shared)[:-_MOST_ORIGINS]:
        _shared.pop(oldest, None)


def forget_shared(origin: Origin | None) -> None:
    """Forget the plans of an origin."""
    _shared.pop(origin, None)  # type: ignore[arg-type]


def in_front(used: KeptPlan, plans: tuple[KeptPlan, ...]) -> tuple[KeptPlan, ...]:
    """Let a plan be the one that was used last; the one that was not used for the longest time may go."""
    return (used, *(kept for kept in plans if kept.plan is not used.plan))[:MOST_PLANS]


def _code(fun: Callable[..., Any]) -> CodeType | None:
    """Return the code that runs in the end: that of a partial's function, or of an object's call."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    own, called = getattr(fun, "__code__", None), getattr(type(fun).__call__, "__code__", None)
    return own if isinstance(own, CodeType) else called
