"""Auxiliary results: what a function returns besides its value, with boxes replaced by their values."""

import functools
from collections.abc import Callable, MutableSequence
from copy import copy
from typing import Any

import numpy as np
from autograd.tracer import isbox

from tapesplit.errors import OutputTypeError
from tapesplit.recording.hidden import holds_box, parts_of
from tapesplit.recording.nodes import TapeNode
from tapesplit.recording.tape import Tape

__all__ = ["own_values", "splitting_aux"]


def splitting_aux(fun: Callable[..., Any], extra: MutableSequence[Any]) -> Callable[..., Any]:
    """Return a function of the first result only; the second one is appended to a list."""

    @functools.wraps(fun)
    def value_only(*args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        if not isinstance(result, tuple) or len(result) != 2:
            is_tuple, kind = isinstance(result, tuple), "ndarray" if isbox(result) else type(result).__name__
            given = f"a tuple of {len(result)}" if is_tuple else f"a value of type {kind}"
            raise OutputTypeError(
                f"with has_aux=True the function must return a tuple (value, aux), but it returned {given}"
            )
        extra.append(result[1])
        return result[0]

    return value_only


def own_values(value: Any, tape: Tape) -> Any:
    """Replace the boxes of one tape by their values.

    Boxes are also found in tuples, lists, dicts, data classes and arrays of objects: such containers are
    copied, once each. Whatever holds no box is returned as the same object.
    """
    return _opened(value, tape, {})


def _opened(value: Any, tape: Tape, copies: dict[int, Any]) -> Any:
    """Do what `own_values` does; ``copies`` maps the ids of containers to the copies made so far."""
    if isbox(value):
        is_own = isinstance(value._node, TapeNode) and value._node.entries is tape.entries
        return value._value if is_own else value
    if id(value) in copies:
        return copies[id(value)]
    if not holds_box(value):
        return value
    if isinstance(value, tuple):
        return tuple.__new__(type(value), [_opened(item, tape, copies) for item in value])
    found = copies[id(value)] = _copied(value)  # before its parts: it may hold itself
    for key, part in parts_of(value):
        _set_part(found, key, _opened(part, tape, copies))
    return found


def _copied(value: Any) -> Any:
    """Copy a container; a dict or list whose class cannot be copied becomes a plain one."""
    try:
        return copy(value)
    except Exception:  # whatever a class of the user's raises where it is copied
        if not isinstance(value, (dict, list)):
            raise
        return dict(value) if isinstance(value, dict) else list(value)


def _set_part(container: Any, key: Any, part: Any) -> None:
    """Store a part in a container, past the setters of subclasses and of frozen data classes."""
    if isinstance(container, dict):
        dict.__setitem__(container, key, part)
    elif isinstance(container, list):
        list.__setitem__(container, key, part)
    elif isinstance(container, np.ndarray):
        container[key] = part
    else:
        object.__setattr__(container, key, part)
