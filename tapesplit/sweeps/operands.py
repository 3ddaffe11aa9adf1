"""Operands: what formulas of a scalar sweep read besides the elements of values, numbered behind these."""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from tapesplit.arrays import IntArray
from tapesplit.recording.tape import Tape
from tapesplit.rules import CHOICE
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.forms import number_shape
from tapesplit.sweeps.coefficients import Operand
from tapesplit.sweeps.merging import shape_of

__all__ = ["Operands", "shapes_of"]


@dataclass(slots=True)
class Operands:
    """Operands of one chunk, in the order in which they were asked for.

    ``behind`` is the number that the next element will get, ``found`` has the operands with numbers.
    """

    tape: Tape
    facts: TapeFacts
    behind: int
    found: list[Operand] = field(default_factory=list)

    def number(
        self,
        entries: IntArray,
        position: int | None,
        *,
        of_one_shape: bool = True,
        kept: IntArray | None = None,
    ) -> tuple[IntArray, list[tuple[int, ...]], bool]:
        """Give numbers to a constant argument of many calls, or to a result inside of them.

        If ``kept`` has flat positions in a matrix, only these elements get numbers.

        Returns
        -------
        starts, shapes, is_complex
            Number of the first element of each, their shapes as for `broadcast_places`, and whether they are
            complex.
        """
        first, is_complex, is_single, has_numbers = entries[0], False, False, False
        if position is None:
            shapes = shapes_of(self.facts, entries, of_one_shape=of_one_shape)
            is_complex = bool(self.facts.is_complex[first])
        else:
            constants = [self.tape.args[i][position] for i in entries.tolist()]
            shapes = [shape_of(constant) for constant in constants[: 1 if of_one_shape else None]]
            if self.tape.primitives[first] is CHOICE and not position:
                has_numbers = any(np.asarray(condition).dtype != np.bool_ for condition in constants)
            else:
                is_complex = np.iscomplexobj(constants[0])
                is_single = not is_complex and getattr(self.tape.values[first], "dtype", None) == np.float32
        sizes = np.empty(entries.size, dtype=np.int64)
        elements = [prod(shape) if kept is None else kept.size for shape in shapes]
        sizes[:] = np.multiply(elements, 1 + is_complex)
        starts = self.behind + np.cumsum(sizes) - sizes
        self.behind += int(sizes.sum())
        numbers = tuple(entries.tolist())
        kinds = is_complex, is_single, has_numbers
        places = None if kept is None else np.unravel_index(kept, shapes[0])
        self.found.append(Operand(position, numbers, len(shapes[0]), *kinds, places))
        return starts, shapes, is_complex


def shapes_of(facts: TapeFacts, entries: IntArray, *, of_one_shape: bool) -> list[tuple[int, ...]]:
    """Return the shapes of values that have a place in scalar sweeps; one if it is that of all."""
    forms = facts.form[entries[: 1 if of_one_shape else None]].tolist()
    return [number_shape(facts.forms[form]) or () for form in forms]
