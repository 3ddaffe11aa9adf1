"""Recognition: see in a fraction of the time whether a tape has a structure that is known.

`structure_of` describes every entry from nothing. Where a tape of the structure is at hand, most of that is
known: elementwise operations of autograd's and moves in double precision have a form that follows from their
operands, and only calls that take constants have some to compare. What is left are comparisons of whole
columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapesplit.rules import Elementwise, Movement, Rule, find_rule, getitem
from tapesplit.structure import (
    EXACT,
    ArrayKey,
    Constants,
    Structure,
    form_of,
    is_shape,
    plain_slice,
    statics_of,
)
from tapesplit.tape import Tape

__all__ = ["Recognizer", "recognizer"]


@dataclass(frozen=True, slots=True, eq=False)
class PlainConstants:
    """Constants that are compared without being described: numbers, slices, arrays of operands, and so on.

    Parameters
    ----------
    arguments, keywords
        Entry and position, or entry and name, of each constant.
    types
        Types of all of them, the positional ones first.
    exact, values
        Which of them count by value, too, and the values.
    containers, items
        Which of these are tuples or empty dicts, and the types of their items.
    arrays, forms
        Which constants are arrays or NumPy numbers that count by dtype and shape, and these.
    """

    arguments: list[tuple[int, int]]
    keywords: list[tuple[int, str]]
    types: list[type]
    exact: list[int]
    values: list[Any]
    containers: list[int]
    items: list[tuple[type, ...]]
    arrays: list[int]
    forms: list[tuple[np.dtype, tuple[int, ...]]]

    def agree(self, args: Sequence[Any], kwargs: Sequence[Any]) -> bool:
        """Compare with the arguments of another tape, which has some in the same places."""
        constants = [args[i][position] for i, position in self.arguments]
        constants += [kwargs[i][name] for i, name in self.keywords]
        return (
            list(map(type, constants)) == self.types
            and [(*map(type, constants[i]),) for i in self.containers] == self.items
            and [constants[i] for i in self.exact] == self.values
            and [(constants[i].dtype, constants[i].shape) for i in self.arrays] == self.forms
        )


@dataclass(frozen=True, slots=True, eq=False)
class Recognizer:
    """What a tape of a known structure looks like.

    Parameters
    ----------
    structure
        The structure.
    without_keywords
        Number of calls without keyword arguments.
    named, names
        Calls whose keyword arguments are plain constants, and the names.
    constant_calls
        All entries that take constants.
    varying, arities
        Calls that may have any number of positional arguments, and these numbers.
    numbers, types
        Entries in double precision whose form does not follow from their operands, but from their type alone,
        and these types.
    described, forms
        Other entries whose form does not follow from their operands, and these forms, see `Structure`.
    constants
        Those of all calls that take plain ones only.
    keyed, statics
        Other entries that take constants, and these, see `Structure`.
    """

    structure: Structure
    without_keywords: int
    named: list[int]
    names: list[tuple[str, ...]]
    constant_calls: list[int]
    varying: list[int]
    arities: list[int]
    numbers: list[int]
    types: list[type]
    described: list[int]
    forms: list[Any]
    constants: PlainConstants
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
        return (
            primitives == known.primitives
            and argnums == known.argnums
            and parents == known.parents
            and kwargs.count(_NO_KEYWORDS) == self.without_keywords
            and [(*kwargs[i],) for i in self.named] == self.names
            and [len(args[i]) for i in self.varying] == self.arities
            and [type(values[i]) for i in self.numbers] == self.types
            and [form_of(values[i]) for i in self.described] == self.forms
            and all(map(args.__getitem__, self.constant_calls))
            and self.constants.agree(args, kwargs)
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
    constants = {i: _constants_of(tape.entries[i], structure.statics[i]) for i in calls}
    plain = [i for i in calls if all(_is_plain(value, key) for _, value, key in constants[i])]
    keyed = sorted(set(calls).difference(plain))
    named = [i for i in plain if kwargs[i]]
    return Recognizer(
        structure,
        kwargs.count(_NO_KEYWORDS),
        named,
        [(*kwargs[i],) for i in named],
        calls,
        varying,
        [len(args[i]) for i in varying],
        numbers,
        [type(values[i]) for i in numbers],
        described,
        [structure.forms[i] for i in described],
        _plain_constants([(i, *constant) for i in plain for constant in constants[i]]),
        keyed,
        [structure.statics[i] for i in keyed],
    )


_NO_KEYWORDS: dict[str, Any] = {}
_CONTAINERS = frozenset({tuple, dict})


def _constants_of(entry: tuple[Any, ...], static: Any) -> list[tuple[int | str, Any, Any]]:
    """List the constants of a call with their positions or names and their keys."""
    _, argnums, _, args, kwargs, _ = entry
    keys = static if isinstance(static, Constants) else Constants((static,), ())
    positions = [position for position in range(len(args)) if position not in argnums]
    return [
        *((position, args[position], key) for position, key in zip(positions, keys.positional, strict=True)),
        *((name, kwargs[name], key) for name, key in keys.keywords),
    ]


def _is_plain(constant: Any, key: Any) -> bool:
    """Tell whether a constant need not be described, given its key."""
    if type(constant) in _CONTAINERS:
        return all(type(item) in EXACT for item in constant) and (constant == {} or type(constant) is tuple)
    if type(constant) is slice:
        return plain_slice(constant) is constant
    return key is None or type(constant) in EXACT or (isinstance(key, ArrayKey) and key.content is None)


def _plain_constants(found: list[tuple[int, int | str, Any, Any]]) -> PlainConstants:
    """Collect plain constants: each with its entry, its position or name, itself, and its key."""
    found = sorted(found, key=lambda constant: isinstance(constant[1], str))
    constants = [constant for _, _, constant, _ in found]
    containers = [number for number, constant in enumerate(constants) if type(constant) in _CONTAINERS]
    arrays = [number for number, (*_, key) in enumerate(found) if isinstance(key, ArrayKey)]
    exact = [
        number
        for number, (_, _, constant, key) in enumerate(found)
        if type(constant) in EXACT | _CONTAINERS and not isinstance(key, type)
    ]
    return PlainConstants(
        [(i, place) for i, place, _, _ in found if isinstance(place, int)],
        [(i, place) for i, place, _, _ in found if isinstance(place, str)],
        list(map(type, constants)),
        exact,
        [constants[number] for number in exact],
        containers,
        [(*map(type, constants[number]),) for number in containers],
        arrays,
        [(constants[number].dtype, constants[number].shape) for number in arrays],
    )


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
