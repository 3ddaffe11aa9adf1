"""Derivative rules of autograd's that a user has replaced: ours for the same primitive must give way."""

from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, Final

from autograd.core import primitive_jvps, primitive_vjps

from tapesplit.names import is_from_autograd, is_primitive

__all__ = [
    "are_current",
    "find_jvp",
    "is_overridden",
    "keep_calls",
    "keeps_calls",
    "original_vjps",
    "vjps_of",
]


def is_overridden(primitive: Callable[..., Any] | None) -> bool:
    """Tell whether the VJP of a primitive is neither autograd's nor ours.

    The VJP of a user's own primitive is the user's, so it counts, too.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> is_overridden(np.sqrt)
    False
    """
    vjp = primitive_vjps.get(primitive)
    if primitive in _FIRST_SEEN:
        return vjp is not _FIRST_SEEN[primitive]
    known = _seen.get(primitive)
    if known is None or known[0] is not vjp:
        _seen[primitive] = known = (vjp, vjp is not None and not _is_known(vjp))
    return known[1]


_seen: dict[Any, tuple[Any, bool]] = {}
"""For primitives not in `_FIRST_SEEN`: the VJP last seen, and whether it is neither autograd's nor ours."""


def keep_calls(primitive: Callable[..., Any]) -> None:
    """Record calls of a primitive unchanged from now on, since a user has defined a vector rule for it."""
    _kept.add(primitive)


def keeps_calls(primitive: Callable[..., Any] | None) -> bool:
    """Tell whether a user's rule forbids to record calls of a primitive as others, or to use our edges."""
    return primitive in _kept or is_overridden(primitive)


_kept: set[Any] = set()
"""Primitives with a vector rule of a user's."""


def find_jvp(primitive: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Return the JVP of a primitive; None if there is none, or just autograd's beside a VJP of a user's."""
    jvp: Callable[..., Any] | None = primitive_jvps.get(primitive)
    if jvp is None or not is_overridden(primitive) or not _is_known(jvp):
        return jvp
    return None if is_from_autograd(primitive) else jvp


def vjps_of(primitives: Iterable[Callable[..., Any] | None]) -> dict[Any, Any]:
    """Return the VJP of each different primitive among some."""
    return {primitive: primitive_vjps.get(primitive) for primitive in set(primitives)}


def original_vjps(*primitives: Callable[..., Any]) -> dict[Any, Any]:
    """Return autograd's own VJPs of some primitives; None for one that was replaced before our import."""
    return {primitive: _FIRST_SEEN.get(primitive) for primitive in primitives}


def are_current(vjps: dict[Any, Any]) -> bool:
    """Tell whether nobody has replaced any of these VJPs, see `vjps_of` and `original_vjps`."""
    return list(map(primitive_vjps.get, vjps)) == list(vjps.values())


def _is_known(rule: Any) -> bool:
    """Tell whether all functions that a rule is made of are autograd's or ours."""
    return all(_module(part).partition(".")[0] in _KNOWN for part in _parts(rule))


_KNOWN: Final = frozenset({"autograd", "tapesplit"})
"""Packages whose VJPs our vector rules agree with."""


def _module(function: Any) -> str:
    """Return the module that a rule is defined in."""
    defined = getattr(function, "func", function)  # of a partial
    return str(getattr(defined, "__module__", None) or type(defined).__module__)


def _parts(rule: Any) -> Iterator[Any]:
    """Return a rule and those that ``defvjp`` has wrapped in it, but not the primitive."""
    yield rule
    for cell in getattr(rule, "__closure__", None) or ():
        held = cell.cell_contents
        for part in held.values() if isinstance(held, dict) else (held,):
            if callable(part) and not is_primitive(part):
                yield from _parts(part) if isinstance(part, FunctionType) else (part,)


_FIRST_SEEN: Final = {primitive: vjp for primitive, vjp in primitive_vjps.items() if _is_known(vjp)}
"""VJPs at our import, if autograd's or ours; any other one counts as a user's later, even if autograd's."""
