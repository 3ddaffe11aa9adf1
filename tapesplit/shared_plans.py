"""Shared plans: a Jacobian function that is made anew from the same code need not plan anew.

``parallel_jacobian(lambda x: model(x, t))(x)`` inside a loop makes a new function each time, but the same
tapes. The plans used last outlive the functions that they were made for, and so does what is known of how
often the tapes change.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, TypeAlias

from tapesplit.changes import Changes
from tapesplit.names import display_name
from tapesplit.planning.plan import JacobianPlan
from tapesplit.planning.planner import PlanOptions
from tapesplit.recording.overrides import are_current, vjps_of
from tapesplit.rules import rules_defined
from tapesplit.structures.comparison import fits
from tapesplit.structures.recognize import Recognizer, recognizer
from tapesplit.structures.structure import Structure

__all__ = ["KeptPlan", "Origin", "changes_of", "forget_shared", "origin_of", "share", "shared"]

_MOST_PLANS: Final = 64
"""Plans that are shared at a time, those of all origins together."""

Origin: TypeAlias = tuple[CodeType, str, PlanOptions]
"""What functions that share plans have in common: code, name, and the options of plans."""


@dataclass(frozen=True, eq=False)
class KeptPlan:
    """A plan, with the rules (as `rules_defined` counts them) and the VJPs that it was made with."""

    plan: JacobianPlan
    rules: int
    vjps: dict[Any, Any]

    @classmethod
    def made(cls, make: Callable[[Structure], JacobianPlan], structure: Structure) -> "KeptPlan":
        """Make a plan; if rules are defined meanwhile, it counts as made with those from before."""
        rules, vjps = rules_defined(), vjps_of(structure.primitives)
        return cls(make(structure), rules, vjps)

    @functools.cached_property
    def recognizer(self) -> Recognizer:
        """The recognizer of tapes of the structure; made on first use, as many functions run only once."""
        return recognizer(self.plan.structure)

    def fits(self, structure: Structure) -> bool:
        """Tell whether the plan serves tapes of a structure."""
        return fits(self.plan.structure, structure)

    @property
    def is_current(self) -> bool:
        """Whether no rules have been defined since."""
        return self.rules == rules_defined() and are_current(self.vjps)


# Replaced as a whole and never changed, so that reading needs no lock; newest use first.
_shared: tuple[tuple[Origin, KeptPlan], ...] = ()


def origin_of(fun: Callable[..., Any], options: PlanOptions) -> Origin | None:
    """Return the origin of a function; None if it has no Python code.

    Functions with the same code and name have the same origin, whatever they close over.
    """
    code = _code(fun)
    return None if code is None else (code, display_name(fun), options)


def shared(origin: Origin | None) -> tuple[KeptPlan, ...]:
    """Return the plans that functions of an origin used last, newest use first."""
    return tuple(kept for known, kept in _shared if known == origin and kept.is_current)


def share(origin: Origin | None, used: KeptPlan) -> None:
    """Keep a plan for functions of an origin; the one that was not used for the longest time may go."""
    global _shared  # noqa: PLW0603 (the caller holds a lock)
    if origin is not None:
        _shared = ((origin, used), *(pair for pair in _shared if pair[1].plan is not used.plan))[:_MOST_PLANS]


_changes: dict[Origin, Changes] = {}


def changes_of(origin: Origin) -> Changes:
    """Return how the structures of an origin change; the caller holds a lock."""
    found = _changes.pop(origin, None) or Changes()
    _changes[origin] = found  # the newest use stands last
    if len(_changes) > _MOST_PLANS:
        del _changes[next(iter(_changes))]
    return found


def forget_shared(origin: Origin | None) -> None:
    """Forget the plans of an origin, and how its structures change."""
    global _shared  # noqa: PLW0603 (see above)
    if origin is not None:
        _changes.pop(origin, None)
    _shared = tuple(pair for pair in _shared if pair[0] != origin)


def _code(fun: Callable[..., Any]) -> CodeType | None:
    """Return the code that runs in the end: that of a partial's function, or of an object's call."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    own, called = getattr(fun, "__code__", None), getattr(type(fun).__call__, "__code__", None)
    return own if isinstance(own, CodeType) else called
