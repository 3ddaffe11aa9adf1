"""The structure of a tape: all that graph, cuts, plan and compiled sweeps depend on, without the values.

Two tapes of equal structure share a plan. Structures are compared, not hashed: comparing lists of the
same objects is what Python does fastest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tapesplit.recording.tape import Tape
from tapesplit.structures.constants import NO_CONSTANTS, statics_of
from tapesplit.structures.forms import forms_of
from tapesplit.structures.made_anew import as_first_made

__all__ = ["Structure", "structure_of"]


@dataclass(frozen=True, slots=True)
class Structure:
    """What each entry of a tape is, in columns.

    Parameters
    ----------
    forms
        Shape of each value for float64 arrays and numbers; dtype and shape, or the nested form of a
        container, for others. Forms are the first field, and constants the second, because most comparisons
        of different structures find the difference there.
    statics
        Constant arguments of each call: () for none. A single one is described by its type if it is a float,
        or another number that is an operand; an integer, text or slice that counts in full stands for itself.
        In all other cases `Constants`.
    primitives, argnums, parents
        As on the tape, but for primitives that are made anew, see `as_first_made`.
    inputs, output
        Number of inputs, index of the output.
    """

    forms: list[Any]
    statics: list[Any]
    primitives: Sequence[Callable[..., Any] | None]
    argnums: Sequence[tuple[int, ...]]
    parents: Sequence[tuple[int, ...]]
    inputs: int
    output: int | None


def structure_of(tape: Tape) -> Structure:
    """Return the structure of a tape, in about 0.15 µs per entry."""
    forms = forms_of(tape.values)
    known: dict[Any, Any] = {}
    statics = [
        NO_CONSTANTS if a is None or (len(a) == len(g) and not k) else statics_of(p, a, g, k, known)
        for p, a, g, k in zip(tape.primitives, tape.args, tape.active, tape.kwargs, strict=True)
    ]
    primitives = as_first_made(tape.primitives)
    return Structure(forms, statics, primitives, tape.active, tape.parents, tape.inputs, tape.output)
