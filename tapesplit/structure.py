"""The structure of a tape: all that graph, cuts, plan and compiled sweeps depend on, without the values.

Two tapes of equal structure share a plan. Structures are compared, not hashed: comparing lists of the same objects is what Python does
fastest, and the first difference tells the user why a plan was not reused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapesplit.tape import Tape

__all__ = ["Structure", "first_difference", "static_key", "structure_of"]

_NO_CONSTANTS = ()


@dataclass(frozen=True, slots=True)
class Structure:
    """What each entry of a tape is, in columns.

    Parameters
    ----------
    primitives, argnums, parents
        As on the tape.
    forms
        Shape of each value for float64 arrays and numbers; dtype and shape, or the nested form of a container, for others.
    statics
        Constant arguments, see `static_key`: () for none, None for one plain float, else positional and keyword ones.
    inputs, output
        Number of inputs, index of the output.
    """

    primitives: tuple[Callable[..., Any] | None, ...]
    argnums: tuple[tuple[int, ...], ...]
    parents: tuple[tuple[int, ...], ...]
    forms: list[Any]
    statics: list[Any]
    inputs: int
    output: int | None


def structure_of(tape: Tape) -> Structure:
    """Return the structure of a tape, in about 0.2 µs per entry."""
    primitives, argnums, parents, args, kwargs, values = zip(*tape.entries, strict=True)
    forms = [value.shape if type(value) is _FLOAT64 else _form(value) for value in values]
    statics = [
        _NO_CONSTANTS if len(a) == len(g) and not k else _statics(a, g, k)
        for a, g, k in zip(args, argnums, kwargs, strict=True)
    ]
    return Structure(primitives, argnums, parents, forms, statics, tape.inputs, tape.output)


_FLOAT64 = np.float64
_FLOAT64_DTYPE = np.dtype(np.float64)


def _form(value: Any) -> Any:
    """Describe a value: shape of float64, dtype and shape of other arrays, nested form of containers."""
    if type(value) is np.ndarray:
        return value.shape if value.dtype is _FLOAT64_DTYPE else (value.dtype.str, value.shape)
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(_form, value)))
    if isinstance(value, dict):
        return (dict, tuple((key, _form(value[key])) for key in sorted(value)))
    return (type(value), np.shape(value))


def _statics(args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> Any:
    """Describe the constant arguments of one call."""
    if len(args) == 2 and type(args[1 - argnums[0]]) is float and not kwargs:  # by far the most common
        return None
    return (
        tuple(static_key(a) for i, a in enumerate(args) if i not in argnums),
        tuple((name, static_key(kwargs[name])) for name in sorted(kwargs)),
    )


def static_key(constant: Any) -> Any:
    """Describe a constant argument by what plans may depend on; the result is hashable.

    Floating-point numbers count by type, floating-point arrays by shape; everything else counts in full.
    """
    kind = type(constant)
    if kind is float or kind is np.float64:
        return None
    if kind is slice:
        return (slice, constant.start, constant.stop, constant.step)
    if kind is np.ndarray:
        if constant.dtype.kind in "fc":
            return (constant.dtype.str, constant.shape)
        return (constant.dtype.str, constant.shape, constant.tobytes() if constant.dtype != object else id(constant))
    if kind in (tuple, list):
        return (kind, tuple(map(static_key, constant)))
    if kind is dict:
        return (kind, tuple((name, static_key(constant[name])) for name in sorted(constant)))
    try:
        hash(constant)
    except TypeError:
        return (kind, id(constant))
    return (kind, constant)


def first_difference(old: Structure, new: Structure, tape: Tape) -> str:
    """Say in one sentence where a new tape departs from an old structure."""
    columns = (
        ("the operation", old.primitives, new.primitives),
        ("the shape or type of the value", old.forms, new.forms),
        ("a constant argument", old.statics, new.statics),
        ("the operand", old.parents, new.parents),
        ("the set of active arguments", old.argnums, new.argnums),
    )
    for index in range(min(len(old.forms), len(new.forms))):
        for what, before, after in columns:
            if before[index] != after[index]:
                return f"{what} of entry {index} ({tape.label(index)}) changed from {_say(before[index])} to {_say(after[index])}"
    if len(old.forms) != len(new.forms):
        return f"the number of entries changed from {len(old.forms)} to {len(new.forms)}"
    return f"the output moved from entry {old.output} to entry {new.output}"


def _say(what: Any) -> str:
    """Name a primitive, show anything else briefly."""
    text = getattr(what, "__name__", None) or repr(what)
    return text if len(text) <= 60 else text[:57] + "…"

