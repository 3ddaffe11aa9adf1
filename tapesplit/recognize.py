"""Recognition: see in a fraction of the time whether a tape has a structure that is known.

`structure_of` describes every entry from nothing. Where a tape of the structure is at hand, most of that is
known: elementwise operations of autograd's and moves in double precision have a form that follows from their
operands, and only calls that take constants have some to compare. What is left are comparisons of whole
columns.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np

from tapesplit.rules import Elementwise, Movement, Rule, find_rule, getitem
from tapesplit.structure import ArrayKey, Constants, Structure, form_of, is_shape, statics_of
from tapesplit.tape import Tape

__all__ = ["Recognizer", "recognizer"]


@dataclass(frozen=True, slots=True, eq=False)
class Recognizer:
    """What a tape of a known structure looks like.

    Parameters
    ----------
    structure
        The structure.
    without_keywords
        Number of calls without keyword arguments; those with some are among the keyed ones.
    constant_calls
        All entries that take constants.
    varying, arities
        Calls that may have any number of positional arguments, and these numbers.
    numbers, types
        Entries in double precision whose form does not follow from their operands, but from their type alone,
        and these types.
    described, forms
        Other entries whose form does not follow from their operands, and these forms, see `Structure`.
    taking, constant_types
        Entry and position of single constants that count by their type, and these types.
    exact, constants
        Which of those count by value, too, and the values.
    arrays, array_forms
        Which of them are arrays that count by dtype and shape, and these.
    keyed, statics
        Other entries that take constants, and these, see `Structure`.
    """

    structure: Structure
    without_keywords: int
    constant_calls: list[int]
    varying: list[int]
    arities: list[int]
    numbers: list[int]
    types: list[type]
    described: list[int]
    forms: list[Any]
    taking: list[tuple[int, int]]
    constant_types: list[type]
    exact: list[int]
    constants: list[Any]
    arrays: list[int]
    array_forms: list[tuple[np.dtype, tuple[int, ...]]]
    keyed: list[int]
    statics: list[Any]

    def accepts(self, tape: Tape) -> bool:
        """Return True only if a tape certainly has the structure.

        A few tapes that have it are rejected, such as one with a 0-d array in the place of a number.
        """
        known = self.structure
        if (len(tape), tape.inputs, tape.output) != (len(known.forms), known.inputs, known.output):
            return False
        primitives, argnums, parents, args, kwargs, values = zip(*tape.entries, strict=True)
        if not (
            primitives == known.primitives
            and argnums == known.argnums
            and parents == known.parents
            and kwargs.count(_NO_KEYWORDS) == self.without_keywords
            and [len(args[i]) for i in self.varying] == self.arities
            and [type(values[i]) for i in self.numbers] == self.types
            and [form_of(values[i]) for i in self.described] == self.forms
            and all(map(args.__getitem__, self.constant_calls))
        ):
            return False
        constants = [args[i][position] for i, position in self.taking]
        return (
            list(map(type, constants)) == self.constant_types
            and [constants[i] for i in self.exact] == self.constants
            and [(constants[i].dtype, constants[i].shape) for i in self.arrays] == self.array_forms
            and [statics_of(primitives[i], args[i], argnums[i], kwargs[i]) for i in self.keyed]
            == self.statics
        )


def recognizer(structure: Structure, tape: Tape) -> Recognizer:
    """Return what recognizes tapes of a structure, by a tape that has it.

    Parameters
    ----------
    structure
        The structure.
    tape
        A tape of this structure.
    """
    primitives, argnums, _, args, kwargs, values = zip(*tape.entries, strict=True)
    leading = _leading(structure)
    numbers = [i for i in leading if type(values[i]) in {float, np.float64}]
    described = [i for i in leading if type(values[i]) not in {float, np.float64}]
    fixed = {primitive: _has_fixed_arity(primitive) for primitive in set(primitives)}
    varying = [i for i, primitive in enumerate(primitives) if not fixed[primitive]]
    calls = [
        i
        for i, (a, g, k) in enumerate(zip(args, argnums, kwargs, strict=True))
        if k or (a is not None and len(a) != len(g))
    ]
    simple = [i for i in calls if structure.static_types[i] is not Constants or _is_array(structure, i)]
    taking = [(i, 1 - argnums[i][0]) for i in simple]
    types = [structure.static_types[i] for i in simple]
    exact = [number for number, kind in enumerate(types) if kind not in {NoneType, Constants}]
    arrays = [number for number, kind in enumerate(types) if kind is Constants]
    keyed = sorted(set(calls).difference(simple))
    return Recognizer(
        structure,
        kwargs.count(_NO_KEYWORDS),
        calls,
        varying,
        [len(args[i]) for i in varying],
        numbers,
        [type(values[i]) for i in numbers],
        described,
        [structure.forms[i] for i in described],
        taking,
        [type(args[i][position]) for i, position in taking],
        exact,
        [structure.statics[simple[number]] for number in exact],
        arrays,
        [structure.statics[simple[number]].positional[0][:2] for number in arrays],
        keyed,
        [structure.statics[i] for i in keyed],
    )


_NO_KEYWORDS: dict[str, Any] = {}


def _is_array(structure: Structure, index: int) -> bool:
    """Whether the constants of a call are one array that counts by dtype and shape."""
    positional, keywords = structure.statics[index]
    if keywords or len(positional) != 1 or len(structure.argnums[index]) != 1:
        return False
    return isinstance(positional[0], ArrayKey) and positional[0].content is None


def _has_fixed_arity(primitive: Any) -> bool:
    """Whether calls always have the same number of positional arguments: inputs, look-ups and ufuncs."""
    return primitive in {None, getitem} or isinstance(getattr(primitive, "fun", None), np.ufunc)


def _leading(structure: Structure) -> list[int]:
    """List the entries whose form does not follow from operands in double precision."""
    double = list(map(is_shape, structure.forms))
    follow = {
        primitive: primitive is not None and _keeps_double(find_rule(primitive))
        for primitive in set(structure.primitives)
    }
    return [
        index
        for index, (primitive, parents) in enumerate(
            zip(structure.primitives, structure.parents, strict=True)
        )
        if not (double[index] and follow[primitive] and all(double[p] for p in parents))
    ]


def _keeps_double(rule: Rule | None) -> bool:
    """Whether results have a form that follows from operands in double precision."""
    return isinstance(rule, Movement) or (isinstance(rule, Elementwise) and rule.keeps_double)
