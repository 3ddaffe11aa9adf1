"""Recognition: see in a fraction of the time whether a tape has a structure that is known.

`structure_of` describes every entry from nothing. Where a tape of the structure is at hand, most of that is
known: elementwise operations of autograd's, moves, sums and products in double precision have a form that
follows from their operands, and only calls that take constants have some to compare. What is left are
comparisons of whole columns.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, starmap
from typing import Any, NamedTuple

import numpy as np

from tapesplit.recording.tape import NO_KEYWORDS, Tape, constant_positions
from tapesplit.rules import PRODUCTS, Elementwise, Movement, find_rule, getitem, is_reduction
from tapesplit.structures.comparison import any_places, is_look_up
from tapesplit.structures.constants import EXACT, ArrayKey, Constants, plain_slice, statics_of
from tapesplit.structures.forms import form_of, is_shape
from tapesplit.structures.made_anew import as_first_made, is_made_anew
from tapesplit.structures.structure import Structure

__all__ = ["Recognizer", "recognizer"]


class Expected(NamedTuple):
    """Some places, and what is found there on each tape of a structure."""

    places: list[int]
    found: list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class PlainConstants:
    """Constants that are compared without being described: numbers, slices, arrays of operands, and so on.

    Parameters
    ----------
    arguments, keywords
        Entry and position, or entry and name, of each constant.
    types
        Types of all of them, the positional ones first.
    values
        Which of them count by value, too: the values.
    items
        Which of these are tuples or empty dicts: the types of their items.
    forms
        Which constants are arrays or NumPy numbers that count by dtype and shape: these.
    """

    arguments: list[tuple[int, int]]
    keywords: list[tuple[int, str]]
    types: list[type]
    values: Expected
    items: Expected
    forms: Expected

    def agree(self, args: Sequence[Any], kwargs: Sequence[Any]) -> bool:
        """Compare with the arguments of another tape, which has some in the same places."""
        constants = [args[i][position] for i, position in self.arguments]
        if self.keywords:
            constants += [kwargs[i][name] for i, name in self.keywords]
        return (
            list(map(type, constants)) == self.types
            and [(*map(type, constants[i]),) for i in self.items.places] == self.items.found
            and [constants[i] for i in self.values.places] == self.values.found
            and [(constants[i].dtype, constants[i].shape) for i in self.forms.places] == self.forms.found
        )


@dataclass(frozen=True, slots=True, eq=False)
class Recognizer:
    """What a tape of a known structure looks like.

    Parameters
    ----------
    structure
        The structure.
    has_made_anew
        Whether it has primitives that are other objects at each call.
    without_keywords
        Number of calls without keyword arguments.
    names
        Calls whose keyword arguments are plain constants: the names.
    constant_calls
        All entries that take constants.
    arities
        Calls that may have any number of positional arguments: these numbers.
    types
        Entries in double precision whose form does not follow from their operands, but from their type alone:
        these types.
    forms
        Other entries whose form does not follow from their operands: these forms, see `Structure`.
    constants
        Those of all calls that take plain ones only.
    statics
        Other entries that take constants: these, see `Structure`.
    open_places
        Other entries that look elements up wherever a tape says: their constants.
    """

    structure: Structure
    has_made_anew: bool
    without_keywords: int
    names: Expected
    constant_calls: list[int]
    arities: Expected
    types: Expected
    forms: Expected
    constants: PlainConstants
    statics: Expected
    open_places: Expected

    def accepts(self, tape: Tape) -> bool:
        """Return True only if a tape certainly has the structure.

        A few tapes that have it are rejected, such as one with a 0-d array in the place of a number.
        """
        known = self.structure
        if (len(tape), tape.inputs, tape.output) != (len(known.forms), known.inputs, known.output):
            return False
        args, kwargs, values = tape.args, tape.kwargs, tape.values
        primitives = as_first_made(tape.primitives) if self.has_made_anew else tape.primitives
        return (
            primitives == known.primitives
            and tape.active == known.argnums
            and tape.parents == known.parents
            and kwargs.count(NO_KEYWORDS) == self.without_keywords
            and [(*kwargs[i],) for i in self.names.places] == self.names.found
            and [len(args[i]) for i in self.arities.places] == self.arities.found
            and [type(values[i]) for i in self.types.places] == self.types.found
            and [form_of(values[i]) for i in self.forms.places] == self.forms.found
            and all(map(args.__getitem__, self.constant_calls))
            and self.constants.agree(args, kwargs)
            and _statics(tape, self.statics.places) == self.statics.found
            and [*map(any_places, _statics(tape, self.open_places.places))] == self.open_places.found
        )


def _statics(tape: Tape, places: list[int]) -> list[Any]:
    """Describe the constants of some calls, see `Structure`."""
    return [statics_of(tape.primitives[i], tape.args[i], tape.active[i], tape.kwargs[i]) for i in places]


def recognizer(structure: Structure, tape: Tape) -> Recognizer:
    """Return what recognizes tapes of a structure, by a tape that has it.

    Parameters
    ----------
    structure
        The structure.
    tape
        A tape of this structure.
    """
    args, kwargs, values, statics = tape.args, tape.kwargs, tape.values, structure.statics
    calls = [
        i
        for i, (a, g, k) in enumerate(zip(args, tape.active, kwargs, strict=True))
        if k or (a is not None and len(a) != len(g))
    ]
    of_several = [i for i in calls if type(statics[i]) is Constants]
    looked_up = {i for i in of_several if is_look_up(structure, i)}
    primitives = {*structure.primitives}
    leading = _to_describe(structure, primitives, looked_up)
    numbers = [i for i in leading if type(values[i]) in _NUMBERS]
    described = [i for i in leading if type(values[i]) not in _NUMBERS]
    varying = _calls_of({p for p in primitives if not _has_fixed_arity(p)}, structure)
    alone = [
        (i, place := 1 - tape.active[i][0], args[i][place], statics[i])
        for i in calls
        if type(statics[i]) is not Constants
    ]
    several = {i: _constants_of(i, tape, statics[i]) for i in of_several if i not in looked_up}
    keyed = {i for i, _, constant, _ in alone if type(constant) is slice and not _is_exact(constant)}
    keyed.update(i for i, constants in several.items() if not all(starmap(_is_plain, constants)))
    plain = [constant for constant in chain(alone, *several.values()) if constant[0] not in keyed]
    named = [i for i in several if kwargs[i] and i not in keyed]
    return Recognizer(
        structure,
        has_made_anew=any(map(is_made_anew, primitives)),
        without_keywords=kwargs.count(NO_KEYWORDS),
        names=Expected(named, [(*kwargs[i],) for i in named]),
        constant_calls=calls,
        arities=Expected(varying, [len(args[i]) for i in varying]),
        types=Expected(numbers, [type(values[i]) for i in numbers]),
        forms=Expected(described, [structure.forms[i] for i in described]),
        constants=_plain_constants(plain),
        statics=Expected([*keyed], [statics[i] for i in keyed]),
        open_places=Expected([*looked_up], [statics[i] for i in looked_up]),
    )


_NUMBERS = frozenset({float, np.float64})
_CONTAINERS = frozenset({tuple, dict})
_VALUED = EXACT | _CONTAINERS


_Constant = tuple[int, int | str, Any, Any]
"""A constant: its entry, its position or name, itself, and its key."""


def _constants_of(index: int, tape: Tape, static: Constants) -> list[_Constant]:
    """List the constants of a call."""
    args, kwargs = tape.arguments(index), tape.kwargs[index]
    positions = constant_positions(len(args), tape.active[index])
    positional = zip(positions, static.positional, strict=True)
    return [
        *[(index, position, args[position], key) for position, key in positional],
        *[(index, name, kwargs[name], key) for name, key in static.keywords],
    ]


def _is_plain(_entry: int, _place: int | str, constant: Any, key: Any) -> bool:
    """Tell whether a constant need not be described, given its key."""
    if type(constant) in _CONTAINERS:
        return all(map(_is_exact, constant)) and (constant == {} or type(constant) is tuple)
    counts_by_form = isinstance(key, type) or (isinstance(key, ArrayKey) and key.content is None)
    return counts_by_form or _is_exact(constant)


def _is_exact(constant: Any) -> bool:
    """Tell whether a constant counts in full and compares by value."""
    return plain_slice(constant) is constant if type(constant) is slice else type(constant) in EXACT


def _plain_constants(found: list[_Constant]) -> PlainConstants:
    """Collect plain constants."""
    keywords = [(i, place) for i, place, _, _ in found if isinstance(place, str)]
    if keywords:
        found = sorted(found, key=lambda constant: isinstance(constant[1], str))
    constants = [constant for _, _, constant, _ in found]
    containers = [number for number, constant in enumerate(constants) if type(constant) in _CONTAINERS]
    arrays = [number for number, (_, _, _, key) in enumerate(found) if type(key) is ArrayKey]
    exact = [
        number
        for number, (_, _, constant, key) in enumerate(found)
        if type(constant) in _VALUED and not isinstance(key, type)
    ]
    return PlainConstants(
        arguments=[(i, place) for i, place, _, _ in found[: len(found) - len(keywords)]],  # type: ignore[misc]
        keywords=keywords,
        types=list(map(type, constants)),
        values=Expected(exact, [constants[number] for number in exact]),
        items=Expected(containers, [(*map(type, constants[number]),) for number in containers]),
        forms=Expected(arrays, [(constants[number].dtype, constants[number].shape) for number in arrays]),
    )


def _has_fixed_arity(primitive: Any) -> bool:
    """Whether calls always have the same number of positional arguments: inputs, look-ups and ufuncs."""
    return primitive in {None, getitem} or isinstance(getattr(primitive, "fun", None), np.ufunc)


def _calls_of(primitives: Collection[Any], structure: Structure) -> list[int]:
    """List the calls of some primitives."""
    if not primitives:  # half of the time
        return []
    return [i for i, primitive in enumerate(structure.primitives) if primitive in primitives]


def _to_describe(structure: Structure, primitives: Iterable[Any], looked_up: Iterable[int]) -> list[int]:
    """List the entries whose form does not follow from operands in double precision, as those of masks."""
    others = {index for index, form in enumerate(structure.forms) if form and not is_shape(form)}
    found = {*others, *looked_up}
    if others:
        found.update(i for i, parents in enumerate(structure.parents) if not others.isdisjoint(parents))
    found.update(_calls_of({p for p in primitives if not _keeps_double(p)}, structure))
    return sorted(found)


def _keeps_double(primitive: Any) -> bool:
    """Whether results have a form that follows from operands in double precision."""
    if primitive in PRODUCTS:
        return True
    rule = find_rule(primitive)
    is_elementwise = isinstance(rule, Elementwise) and rule.built_in
    return is_elementwise or isinstance(rule, Movement) or is_reduction(rule)
