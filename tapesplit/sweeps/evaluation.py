"""Evaluation of the formula of one elementwise call, and the name of a call whose derivative rule fails."""

from itertools import zip_longest
from typing import Any, Final

import numpy as np

from tapesplit.arrays import FLOAT64
from tapesplit.errors import RuleError
from tapesplit.names import display_name
from tapesplit.notes import note
from tapesplit.recording.tape import Tape
from tapesplit.rules import CHOICE, find_rule
from tapesplit.rules.alternatives import instead_of_call
from tapesplit.sweeps.preaccumulation import Term

__all__ = ["evaluated", "name_call"]


def evaluated(tape: Tape, index: int, term: Term) -> Any:
    """Return the partial derivative of an elementwise operation by its formula, on its own arguments."""
    primitive, kwargs, value = tape.primitives[index], tape.kwargs[index], tape.values[index]
    given, wanted = tape.arguments(index), getattr(value, "dtype", None)
    args = [  # in double precision, as nearly always, without a call
        arg if getattr(arg, "dtype", None) is wanted is FLOAT64 else _as_precise(arg, wanted, primitive)
        for arg in given
    ]
    if primitive is CHOICE:
        args[0] = given[0]
    try:
        partial = term.partial(value, *args, **kwargs)  # type: ignore[operator]
    except Exception as error:
        name_call(error, primitive, index)
        raise
    shape = getattr(partial, "shape", ())
    if shape and shape != getattr(value, "shape", None) and not _broadcasts(shape, np.shape(value)):
        raise RuleError(
            f"a partial derivative of {display_name(primitive)}, entry {index} of the tape, has shape "
            f"{shape} for a result of {np.shape(value)}; correct the formula that defvector was given"
        )
    return partial


def _broadcasts(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Tell whether arrays of one shape can be broadcast to another, apart from leading axes of length 1."""
    return shape == expected or all(
        a in {1, b} for a, b in zip_longest(shape[::-1], expected[::-1], fillvalue=1)
    )


def name_call(error: Exception, primitive: Any, index: int, *, one_of_many: bool = False) -> None:
    """Add to an error of a derivative rule which call it was for, and what to write instead if known."""
    remedy = instead_of_call(primitive, error)
    place = f"in a derivative rule of {display_name(primitive)}, entry {index} of the tape"
    place += " or one like it" if one_of_many else ""
    note(error, f"{place}; {remedy}" if remedy else place)


def _as_precise(arg: Any, wanted: np.dtype | None, primitive: Any) -> Any:
    """Convert an operand to the type of the result: formulas would lose digits with less precise operands.

    Derivatives of integers and truth values, whose sums and products would wrap around, are in double
    precision.
    """
    dtype = getattr(arg, "dtype", None)
    if dtype is None and type(arg) not in _PLAIN and find_rule(primitive).built_in:  # type: ignore[union-attr]
        arg = np.asarray(arg)  # NumPy's functions take lists as operands, and what else can be an array
        dtype = arg.dtype
    elif wanted is _LONG_DOUBLE and type(arg) in {int, float}:
        return np.longdouble(arg)
    if dtype is None or wanted is None or dtype.kind not in "fiubc":
        return arg
    if dtype.kind == "c":
        return arg.astype(wanted) if wanted.kind == "c" and dtype != wanted else arg
    if wanted.kind in "iub" or (wanted.kind == "c" and dtype.kind != "f"):
        wanted = FLOAT64
    elif wanted.kind == "c":
        wanted = np.finfo(wanted).dtype
    return arg if dtype == wanted or wanted.kind != "f" else arg.astype(wanted)


_LONG_DOUBLE: Final = np.dtype(np.longdouble)
_PLAIN: Final = frozenset({int, float, complex, bool, str, type(None)})
