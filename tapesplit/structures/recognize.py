"""Recognition: check whether a tape has a known structure, in a fraction of the time of `structure_of`.

`structure_of` describes every entry on its own. If primitives and operands agree with a known structure, most
of the rest follows: the forms of autograd's elementwise operations, moves, sums and products in double
precision follow from their operands, and only calls with constant arguments have some to compare. Whole
columns of the tape are compared at once.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from autograd.numpy.numpy_vspaces import ArrayVSpace

from tapesplit.recording.tape import NO_KEYWORDS, Tape, constant_positions
from tapesplit.rules import (
    PRODUCTS,
    Elementwise,
    Movement,
    NonZeros,
    find_rule,
    getitem,
    is_reduction,
    non_zeros,
)
from tapesplit.structures.comparison import any_places, is_look_up
from tapesplit.structures.constants import (
    EXACT,
    NO_CONSTANTS,
    SEQUENCES,
    ArrayKey,
    Constants,
    has_zeros,
    statics_of,
)
from tapesplit.structures.forms import forms_of, is_shape
from tapesplit.structures.made_anew import as_first_made, is_made_anew
from tapesplit.structures.structure import Structure

__all__ = ["Recognizer", "recognizer"]


class _Expected(NamedTuple):
    """Some entries, and what each of them has on every tape of a structure."""

    places: list[int]
    found: list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _PlainConstants:
    """Constants that are compared directly, without keys: numbers, slices, arrays and so on.

    Parameters
    ----------
    arguments, keywords
        Entry and position, or entry and name, of each constant.
    types
        Types of all constants, the positional ones first; the fields below number constants in this order.
    values
        Values of the constants that count by value.
    items
        Types of the items of those among them that are tuples, lists or empty dicts.
    forms
        Dtype and shape of the constants that are arrays or vector spaces.
    contents
        Bytes of the arrays that count in full.
    zeros
        Places of the nonzeros of the arrays that count by them, see `non_zeros`.
    """

    arguments: list[tuple[int, int]]
    keywords: list[tuple[int, str]]
    types: list[type]
    values: _Expected
    items: _Expected
    forms: _Expected
    contents: _Expected
    zeros: _Expected

    def agree(self, args: Sequence[Any], kwargs: Sequence[Any]) -> bool:
        """Compare with the arguments of another tape, which has constants in the same places."""
        constants = [args[i][position] for i, position in self.arguments]
        if self.keywords:
            constants += [kwargs[i][name] for i, name in self.keywords]
        return (
            list(map(type, constants)) == self.types
            and [_types_in(constants[i]) for i in self.items.places] == self.items.found
            and [constants[i] for i in self.values.places] == self.values.found
            and [(constants[i].dtype, constants[i].shape) for i in self.forms.places] == self.forms.found
            and [constants[i].tobytes() for i in self.contents.places] == self.contents.found
            and (not self.zeros.places or self._have_zeros([constants[i] for i in self.zeros.places]))
        )

    def _have_zeros(self, matrices: list[np.ndarray]) -> bool:
        """Tell whether matrices have their nonzeros, and so their zeros, in the known places."""
        seen: dict[Any, NonZeros | None] = {}
        return [non_zeros(matrix, seen) for matrix in matrices] == self.zeros.found


@dataclass(frozen=True, slots=True, eq=False)
class Recognizer:
    """What must be compared to recognize tapes of a known structure.

    Parameters
    ----------
    structure
        The structure.
    has_made_anew
        Whether it has primitives that are other objects at each call.
    without_keywords
        Number of calls without keyword arguments.
    names
        Names of the keyword arguments, as sets, of calls whose constants are all plain.
    constant_calls
        All entries with constant arguments.
    arities
        Numbers of positional arguments of calls that may have any number of them.
    forms
        Forms of the entries whose form does not follow from their operands, see `Structure`.
    constants
        Constants of the calls that have plain ones only.
    statics
        Constants of other calls, as in `Structure`.
    open_places
        Constants of calls that look elements up at places that the structure leaves open.
    """

    structure: Structure
    has_made_anew: bool
    without_keywords: int
    names: _Expected
    constant_calls: list[int]
    arities: _Expected
    forms: _Expected
    constants: _PlainConstants
    statics: _Expected
    open_places: _Expected

    def accepts(self, tape: Tape) -> bool:
        """Return True only if a tape certainly has the structure.

        A few tapes that have it are rejected, such as those with bounds of slices that are not plain numbers.
        """
        known = self.structure
        if (tape.inputs, tape.output) != (known.inputs, known.output):
            return False
        args, kwargs, values = tape.args, tape.kwargs, tape.values
        primitives = as_first_made(tape.primitives) if self.has_made_anew else tape.primitives
        return (
            primitives == known.primitives
            and tape.active == known.argnums
            and tape.parents == known.parents
            and kwargs.count(NO_KEYWORDS) == self.without_keywords
            and [kwargs[i].keys() for i in self.names.places] == self.names.found
            and [len(args[i]) for i in self.arities.places] == self.arities.found
            and forms_of([values[i] for i in self.forms.places]) == self.forms.found
            and all(map(args.__getitem__, self.constant_calls))
            and self.constants.agree(args, kwargs)
            and _statics(tape, self.statics.places) == self.statics.found
            and [*map(any_places, _statics(tape, self.open_places.places))] == self.open_places.found
        )


def _statics(tape: Tape, places: list[int]) -> list[Any]:
    """Describe the constants of some calls, see `Structure`."""
    return [statics_of(tape.primitives[i], tape.args[i], tape.active[i], tape.kwargs[i]) for i in places]


def recognizer(structure: Structure) -> Recognizer:
    """Make the recognizer of a structure, in about 0.2 µs for each entry."""
    statics = structure.statics
    calls = [i for i, constants in enumerate(statics) if constants is not NO_CONSTANTS]
    several = {i: statics[i] for i in calls if type(statics[i]) is Constants}
    looked_up = {i: constants for i, constants in several.items() if is_look_up(structure, i)}
    plain = {i: _plain(structure, i) for i in several if i not in looked_up}
    described = {i: several[i] for i, constants in plain.items() if constants is None}
    named = {
        i: {name for name, _ in constants.keywords} for i, constants in several.items() if constants.keywords
    }
    primitives = {*structure.primitives}
    leading = _to_describe(structure, primitives, looked_up)
    varying = _calls_of({p for p in primitives if not _has_fixed_arity(p)}, structure)
    alone = [i for i in calls if i not in several]
    return Recognizer(
        structure,
        has_made_anew=any(map(is_made_anew, primitives)),
        without_keywords=len(statics) - len(named),
        names=_expected({i: names for i, names in named.items() if i not in described}),
        constant_calls=calls,
        arities=_Expected(varying, [_arity(structure, i) for i in varying]),
        forms=_Expected(leading, [structure.forms[i] for i in leading]),
        constants=_plain_constants(
            [(i, 1 - structure.argnums[i][0]) for i in alone],
            [statics[i] for i in alone],
            [*chain.from_iterable(filter(None, plain.values()))],
        ),
        statics=_expected(described),
        open_places=_expected(looked_up),
    )


def _expected(found: dict[int, Any]) -> _Expected:
    """Split a dict by entry into entries and values."""
    return _Expected([*found], [*found.values()])


_Constant: TypeAlias = tuple[int, int | str, type, Any]
"""One of several constants of a call: entry, position or name, type, and value, or key if it is an array."""
_CONTAINERS: Final = SEQUENCES | {dict}
_ANY: Final = object()
"""Stands for the value of a constant that counts by type."""


def _types_in(container: Any) -> tuple[Any, ...]:
    """Return the types of the items of a container, nested like the container."""
    return tuple([_types_in(item) if type(item) in SEQUENCES else type(item) for item in container])


def _plain(structure: Structure, index: int) -> list[_Constant] | None:
    """List the constants of a call that has several; None if some of them must be described."""
    constants: Constants = structure.statics[index]
    places: list[int | str] = [*constant_positions(_arity(structure, index), structure.argnums[index])]
    places += [name for name, _ in constants.keywords]
    keys = [*constants.positional, *[key for _, key in constants.keywords]]
    known = [
        (index, place, *what) for place, what in zip(places, map(_type_and_value, keys), strict=True) if what
    ]
    return known if len(known) == len(keys) else None


def _type_and_value(key: Any) -> tuple[type, Any] | None:
    """Return type and value of a constant by its key; None if it can be compared by the key only.

    Instead of the value, arrays and vector spaces have an `ArrayKey`, and constants that count by type have
    `_ANY`.
    """
    if isinstance(key, type):
        return key, _ANY
    if isinstance(key, ArrayKey):
        return np.ndarray, key
    kind, content = key
    if _is_exact(key):
        return kind, _value(key)
    if issubclass(kind, ArrayVSpace):
        shape, dtype = content
        return kind, ArrayKey(dtype, shape)
    return (kind, {}) if kind is dict and not content else None


def _is_exact(key: Any) -> bool:
    """Whether a constant compares by value; a tuple or list, if all its items do."""
    if type(key) is not tuple:
        return False
    kind, content = key
    return all(map(_is_exact, content)) if kind in SEQUENCES else kind in EXACT or issubclass(kind, np.dtype)


def _value(key: Any) -> Any:
    """Return a constant that compares by value."""
    kind, content = key
    if kind in SEQUENCES:
        return kind(map(_value, content))
    return kind(content) if issubclass(kind, np.generic) else content


def _arity(structure: Structure, index: int) -> int:
    """Count the positional arguments of a call."""
    constants, active = structure.statics[index], len(structure.argnums[index])
    if type(constants) is Constants:
        return active + len(constants.positional)
    return active + (constants is not NO_CONSTANTS)


def _plain_constants(
    arguments: list[tuple[int, int]], statics: list[Any], several: list[_Constant]
) -> _PlainConstants:
    """Collect plain constants: ``statics``, each the only one of its call and its own key, and others."""
    kinds = [*map(type, statics)]
    types = [static if kind is type else kind for static, kind in zip(statics, kinds, strict=True)]
    exact = {number: statics[number] for number, kind in enumerate(kinds) if kind is not type}
    several.sort(key=lambda constant: isinstance(constant[1], str))
    numbered = [
        (n, kind, value) for n, (*_, kind, value) in enumerate(several, len(types)) if value is not _ANY
    ]
    arrays = {n: key for n, _, key in numbered if isinstance(key, ArrayKey)}
    exact |= {n: value for n, _, value in numbered if n not in arrays}
    items = {n: _types_in(value) for n, kind, value in numbered if kind in _CONTAINERS}
    return _PlainConstants(
        arguments=arguments + [(i, place) for i, place, *_ in several if isinstance(place, int)],
        keywords=[(i, place) for i, place, *_ in several if isinstance(place, str)],
        types=types + [kind for _, _, kind, _ in several],
        values=_expected(exact),
        items=_expected(items),
        forms=_expected({n: (key.dtype, key.shape) for n, key in arrays.items()}),
        contents=_expected({n: key.content for n, key in arrays.items() if isinstance(key.content, bytes)}),
        zeros=_expected({n: key.content for n, key in arrays.items() if has_zeros(key)}),
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
    """List the entries whose form must be compared: it does not follow from operands in double precision."""
    forms = {form for form in {*structure.forms} if not is_shape(form)}
    others = {index for index, form in enumerate(structure.forms) if form in forms} if forms else set[int]()
    found = {*others, *looked_up}
    if others:
        found.update(i for i, parents in enumerate(structure.parents) if not others.isdisjoint(parents))
    found.update(_calls_of({p for p in primitives if not _keeps_double(p)}, structure))
    return sorted(found)


def _keeps_double(primitive: Any) -> bool:
    """Whether the form of results follows from that of the operands if all are in double precision."""
    if primitive in PRODUCTS:
        return True
    rule = find_rule(primitive)
    is_elementwise = isinstance(rule, Elementwise) and rule.built_in
    return is_elementwise or isinstance(rule, Movement) or is_reduction(rule)
