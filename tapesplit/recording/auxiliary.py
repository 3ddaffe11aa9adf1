"""Auxiliary results: what a function returns besides its value, with the boxes of the recording opened."""

from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from autograd.tracer import isbox

from tapesplit.recording.boxes import TapeNode
from tapesplit.recording.tape import Tape

__all__ = ["own_values"]


def own_values(value: Any, tape: Tape) -> Any:
    """Return a value with the boxes of one tape opened, also those in tuples, lists, dicts and data classes.

    What holds no box is the same object; what holds some is copied.
    """
    return _opened(value, tape, ())


def _opened(value: Any, tape: Tape, outer: tuple[int, ...]) -> Any:
    """Open the boxes in a value that stands inside of some others, given by their identities."""
    if isbox(value) and not isinstance(value, (tuple, list, dict)):
        is_own = isinstance(value._node, TapeNode) and value._node.entries is tape.entries
        return value._value if is_own else value
    parts = _parts(value)
    if not parts or id(value) in outer:
        return value
    opened = {key: _opened(part, tape, (*outer, id(value))) for key, part in parts.items()}
    if isbox(value):  # parts of a split are a list outside
        return list(opened.values())
    if all(opened[key] is part for key, part in parts.items()):
        return value
    if isinstance(value, tuple):
        return tuple.__new__(type(value), opened.values())
    found = copy(value)
    for key, part in opened.items():
        if isinstance(value, (list, dict, np.ndarray)):
            found[key] = part
        else:
            object.__setattr__(found, key, part)
    return found


def _parts(value: Any) -> dict[Any, Any]:
    """Return what a value is made of, by key, position or name; nothing for anything but containers."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (tuple, list)):
        return dict(enumerate(value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return dict(np.ndenumerate(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)
        }
    return {}
