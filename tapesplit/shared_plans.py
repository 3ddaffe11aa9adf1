"""Shared plans: a Jacobian function that is made anew from the same code need not plan anew.

``parallel_jacobian(lambda x: model(x, t))(x)`` inside a loop makes a new function each time, but the same
tapes. The plans used last outlive the functions that they were made for.
"""

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, Final, NamedTuple

from tapesplit.cost.model import CostModel
from tapesplit.cost.stored import cost_model
from tapesplit.planning.plan import JacobianPlan
from tapesplit.recording.overrides import are_current, vjps_of
from tapesplit.rules import rules_defined
from tapesplit.structures.structure import Structure

__all__ = ["forget_shared_plans", "share_plan", "shared_plan"]

_MOST: Final = 16
"""Plans that are shared at a time, those of all functions together."""


class _Shared(NamedTuple):
    """A plan, and what it was made for and from besides the structure of the tape."""

    code: Any
    options: tuple[Any, ...]
    model: CostModel
    rules: int
    vjps: dict[Any, Any]
    plan: JacobianPlan

    def serves(self, code: Any, options: tuple[Any, ...], structure: Structure) -> bool:
        """Tell whether the same plan would be made again."""
        asked = (self.code, self.options, self.model) == (code, options, cost_model())
        same_rules = self.rules == rules_defined() and are_current(self.vjps)
        return asked and same_rules and self.plan.structure == structure


# Replaced as a whole and never changed, so that threads need no lock: at worst one of them plans in vain.
_shared: tuple[_Shared, ...] = ()


def shared_plan(
    fun: Callable[..., Any], options: tuple[Any, ...], structure: Structure
) -> JacobianPlan | None:
    """Return a plan that was made for the same code, options and structure; None if there is none.

    Parameters
    ----------
    fun
        The user's function; all functions with its code count, whatever they close over.
    options
        All that decides about a plan besides the tape.
    structure
        The structure of the tape.
    """
    code = _code(fun)
    found = next((shared for shared in _shared if shared.serves(code, options, structure)), None)
    if found is None:
        return None
    _put_in_front(found)
    return found.plan


def share_plan(fun: Callable[..., Any], options: tuple[Any, ...], plan: JacobianPlan) -> None:
    """Keep a plan for functions with the same code; the one that was not used for the longest time may go."""
    code = _code(fun)
    if code is not None:
        vjps = vjps_of(plan.structure.primitives)
        _put_in_front(_Shared(code, options, cost_model(), rules_defined(), vjps, plan))


def forget_shared_plans(fun: Callable[..., Any]) -> None:
    """Forget the plans that were made for the code of a function."""
    global _shared  # noqa: PLW0603 (see there)
    code = _code(fun)
    _shared = tuple(shared for shared in _shared if shared.code != code)


def _code(fun: Callable[..., Any]) -> Any:
    """Return the code that runs in the end: that of a partial's function, or of an object's call."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    own, called = getattr(fun, "__code__", None), getattr(type(fun).__call__, "__code__", None)
    return own if isinstance(own, CodeType) else called


def _put_in_front(used: _Shared) -> None:
    """Let a plan be the one that was used last."""
    global _shared  # noqa: PLW0603 (see there)
    _shared = (used, *(shared for shared in _shared if shared is not used))[:_MOST]
