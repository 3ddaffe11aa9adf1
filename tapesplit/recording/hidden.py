"""Boxes inside of other values, where autograd does not see them."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np
from autograd.tracer import isbox

from tapesplit.errors import OutputTypeError
from tapesplit.names import display_name, label_of
from tapesplit.notes import note
from tapesplit.recording.tape import NO_KEYWORDS, Tape

__all__ = ["hidden_value_error", "hides_box", "holds_box", "holds_boxes", "parts_of"]


def hidden_value_error(name: str, tape: Tape | None = None, result: Any = None) -> OutputTypeError:
    """Return the error for a function of this name that hides traced values.

    Its message says where they are: in a call on the tape, or in a result that is an array of objects. If
    neither is known, it lists all places where values can hide.
    """
    calls = zip(tape.primitives, tape.args, tape.kwargs, tape.values, strict=True) if tape else ()
    hiding = (call for call in calls if isbox(call[3]) or _any_holds_box(*call[1:3]))
    primitive, args, kwargs, _ = next(hiding, (None, None, NO_KEYWORDS, None))
    message = f"{name} hides a traced value from autograd"
    if tape is None or primitive is None:
        place = "in the array of objects that it returned" if isinstance(result, np.ndarray) else _ANYWHERE
        error = OutputTypeError(f"{message}: {place}; {_FUNCTIONS}, and pass traced values by position")
        note(error, _INSTEAD)
        return error
    place = _place(args, kwargs)
    error = OutputTypeError(f"{message} where it calls {label_of(primitive)}: {place}")
    if _FUNCTIONS in place:
        note(error, _INSTEAD)
    if line := tape.entries.suspects.get(display_name(primitive)):
        note(error, f"{label_of(primitive)} is called at {line}")
    return error


def _place(args: tuple[Any, ...] | None, kwargs: Mapping[str, Any]) -> str:
    """Say where a call hides a traced value, and what to write instead."""
    if any(map(holds_box, kwargs.values())):
        return "as a keyword; pass traced values by position"
    held = next((arg for arg in args or () if holds_box(arg)), None)
    if held is None:
        return "in what this primitive closes over; give it traced values as arguments"
    if isinstance(held, np.ndarray):
        return f"in an array of objects; {_FUNCTIONS}"
    if isinstance(held, (list, tuple)):
        return f"in a {type(held).__name__}; make an array of it by np.array of autograd.numpy"
    return f"in a {type(held).__name__}; pass what it holds as arguments of their own"


_ANYWHERE: Final = (
    "in a list or tuple, in an array of objects, as a keyword, or in what a primitive of yours closes over"
)
_FUNCTIONS: Final = (
    "take np.array, np.dot and all other functions from autograd.numpy instead of NumPy, and give them "
    "np.array([a, b]) instead of lists [a, b]"
)
_INSTEAD: Final = (
    "where autograd.numpy has none, write np.concatenate and np.stack instead of np.concat, np.block and "
    "np.dstack, A @ x instead of A.dot(x), np.array([f(a) for a in x]) instead of np.vectorize(f)(x), and "
    "plain arrays instead of masked"
)


def hides_box(value: Any) -> bool:
    """Tell whether the value of a traced function hides boxes: autograd would see constants there.

    What is not hidden: the box of an inner trace may hold that of an outer one, whose trace level is lower.
    """
    while isbox(value):
        level, value = value._trace, value._value
        if isbox(value) and value._trace >= level:
            return True
    return isinstance(value, np.ndarray) and holds_box(value)


def holds_boxes(tape: Tape) -> bool:
    """Tell whether values or arguments on a tape are boxes or contain some."""
    return any(map(holds_box, tape.values)) or any(map(_any_holds_box, tape.args, tape.kwargs))


def _any_holds_box(args: tuple[Any, ...] | None, kwargs: Mapping[str, Any]) -> bool:
    """Tell whether one of the arguments of a call is a box or contains one."""
    return any(map(holds_box, args or ())) or any(map(holds_box, kwargs.values()))


def holds_box(value: Any, seen: set[int] | None = None) -> bool:
    """Tell whether a value is a box or contains one, but for containers that have been ``seen``."""
    kind = type(value)
    if kind in _LEAVES or (kind is np.ndarray and not value.dtype.hasobject):  # as nearly always
        return False
    if isbox(value):
        return True
    seen = set() if seen is None else seen
    if id(value) in seen:
        return False
    seen.add(id(value))
    return any(holds_box(part, seen) for _, part in parts_of(value))


_LEAVES: Final = frozenset({int, float, bool, str, type(None), np.float64})


def parts_of(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return what a container is made of, by key, position or name; nothing for anything else."""
    if isinstance(value, np.ndarray):
        return np.ndenumerate(value) if value.dtype == object else ()
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, (tuple, list)):
        return enumerate(value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        return [(name, getattr(value, name)) for name in names if hasattr(value, name)]
    return ()
