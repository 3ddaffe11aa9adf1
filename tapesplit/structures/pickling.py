"""Pickling of plans: functions that have no importable name travel as the primitive that they belong to."""

import io
import pickle
from collections.abc import Callable
from typing import Any

from tapesplit.names import find_primitive, is_primitive, primitive_name
from tapesplit.rules import Bulk, Elementwise, Movement, Rule, registered

__all__ = ["dumps"]


def dumps(value: Any) -> bytes:
    """Pickle a value that refers to primitives and to their vector rules; ``pickle.loads`` restores it.

    Raises `UnnamedPrimitiveError` if it refers to a primitive that no name leads to.
    """
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


class _Pickler(pickle.Pickler):
    """Replaces primitives, registered rules and the formulas in them by names."""

    def reducer_override(self, obj: Any) -> Any:
        """Say how an object is restored; NotImplemented leaves it to pickle."""
        if is_primitive(obj):
            return find_primitive, (primitive_name(obj),)
        if isinstance(obj, (Bulk, Elementwise, Movement)):
            for primitive, rule in registered().items():
                if rule is obj:
                    return _rule, (primitive,)
        if callable(obj) and "<" in getattr(obj, "__qualname__", ""):  # a lambda, or of another function
            for primitive, rule in registered().items():
                if isinstance(rule, Elementwise) and obj in rule.partials:
                    return _partial, (primitive, rule.partials.index(obj))
        return NotImplemented


def _rule(primitive: Callable[..., Any]) -> Rule:
    """Return our rule for a primitive, or the user's vector rule."""
    return registered()[primitive]


def _partial(primitive: Callable[..., Any], argnum: int) -> Any:
    """Return the partial derivative of an elementwise primitive."""
    return _rule(primitive).partials[argnum]  # type: ignore[union-attr]
