"""Fitting: whether a plan for one structure serves another, and where the two differ if it does not.

A plan serves all tapes of the structure that it was made for. If indices change from call to call, a plan
can leave them open and read them from each tape, and likewise the places of zeros in matrices.
"""

from collections.abc import Callable, Iterable, Iterator, KeysView, Sequence
from dataclasses import fields, replace
from math import prod
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tapesplit.arrays import INTEGERS
from tapesplit.recording.tape import Tape
from tapesplit.rules import OPEN_RULES
from tapesplit.structures.constants import (
    EXACT,
    NO_CONSTANTS,
    SEQUENCES,
    ArrayKey,
    Constants,
    has_zeros,
)
from tapesplit.structures.structure import Structure

__all__ = ["any_places", "first_difference", "fits", "is_look_up", "with_any_zeros", "without_places"]


def without_places(known: Structure, structure: Structure) -> Structure | None:
    """Leave the indices and the zeros of matrices open in which `structure` differs from `known`.

    A plan for the result reads them from each tape. The result is None if the two differ in anything else, or
    in so many indices that a new plan costs less than reading all of them one by one.
    """
    if _but_for_constants(known) != _but_for_constants(structure):
        return None
    statics = list(structure.statics)
    looked_up = numbers = 0
    for index, before in enumerate(known.statics):
        if before == statics[index]:
            continue
        primitive = structure.primitives[index]
        opened = _left_open(primitive, statics[index])
        if opened is None or opened != _left_open(primitive, before):
            return None
        statics[index] = opened
        looked_up += primitive in OPEN_RULES
        if looked_up > _MOST_LOOK_UPS:
            return None
        numbers += not any(isinstance(part, ArrayKey) for part in _parts(opened))
    if _MOST_NUMBERS < numbers < len(statics) // _ENTRIES_OF_A_NUMBER:
        return None
    return replace(structure, statics=statics)


_MOST_LOOK_UPS: Final = 256
"""Calls whose indices a plan reads from each tape, at most."""
_MOST_NUMBERS: Final = 16
"""The same for indices without arrays: more of them mean scalar code, in which it pays to know each place."""
_ENTRIES_OF_A_NUMBER: Final = 8
"""A tape with at most so many entries for each such index may have more: there is little else to lose."""
_but_for_constants = attrgetter(*(field.name for field in fields(Structure) if field.name != "statics"))


def _left_open(primitive: Any, static: Any) -> Constants | None:
    """Leave open, among the constants of a call, all that plans can read from tapes; None without any."""
    return any_places(static) if primitive in OPEN_RULES else _any_zeros(static)


def with_any_zeros(structure: Structure, entries: Iterable[int]) -> Structure:
    """Leave open where the constant matrices of some calls have zeros."""
    statics = list(structure.statics)
    for index in entries:
        statics[index] = _any_zeros(statics[index])
    return replace(structure, statics=statics)


def _any_zeros(static: Any) -> Constants | None:
    """Leave open where the constant matrices of a product have zeros; None if it has no such matrix."""
    if type(static) is not Constants or not any(map(_is_matrix, static.positional)):
        return None
    keys = [key._replace(content=None) if _is_matrix(key) else key for key in static.positional]
    return static._replace(positional=tuple(keys))


def _is_matrix(key: Any) -> bool:
    """Tell whether a key is of an array whose zeros are either part of the key or may be anywhere."""
    return isinstance(key, ArrayKey) and (key.content is None or has_zeros(key))


def any_places(static: Any) -> Constants | None:
    """Describe an index, the first constant, with its numbers left open; None if it has no such numbers."""
    kind = type(static)
    if kind in _NUMBERED:
        return Constants(((kind, None),), ())
    if kind is not Constants or not static.positional:
        return None
    index, *others = static.positional
    opened = static._replace(positional=(_opened(index), *others))
    return opened if any(map(_is_open, _parts(opened))) else None


_NUMBERED: Final = frozenset({int, slice, *INTEGERS})
"""Types of the parts of an index that are or hold numbers; where these are left open, keys have None."""


def _opened(key: Any) -> Any:
    """Leave the numbers open in the key of an index."""
    if isinstance(key, ArrayKey):
        return key._replace(content=None)
    if not isinstance(key, tuple):
        return key
    kind, content = key
    if kind in SEQUENCES:
        return (kind, tuple(map(_opened, content)))
    if isinstance(content, ArrayKey):  # of another type
        return _opened(content)
    return (kind, None) if kind in _NUMBERED else key


def _parts(static: Constants) -> Iterator[Any]:
    """List the parts of an index."""
    keys = [*static.positional]
    while keys:
        key = keys.pop()
        if type(key) is tuple and key[0] in SEQUENCES:
            keys += key[1]
        else:
            yield key


def _is_open(part: Any) -> bool:
    """Tell whether the numbers of a part of an index are left open."""
    if isinstance(part, ArrayKey):
        return part.content is None
    return type(part) is tuple and part[0] in _NUMBERED and part[1] is None


def is_look_up(structure: Structure, index: int) -> bool:
    """Tell whether an entry takes or puts elements where its structure leaves the places open."""
    static = structure.statics[index]
    if structure.primitives[index] not in OPEN_RULES or not isinstance(static, Constants):
        return False
    return any(map(_is_open, _parts(static)))


def fits(known: Structure, structure: Structure) -> bool:
    """Tell whether a plan for a known structure serves another one: equal but for what is left open."""
    return structure == known or without_places(known, structure) == known


def first_difference(old: Structure, new: Structure, tape: Tape) -> str:
    """Say in one sentence where a new tape departs from an old structure."""
    calls = zip(new.primitives, old.statics, new.statics, strict=False)
    statics = [
        before if before == now or before == _left_open(primitive, now) else now
        for primitive, before, now in calls
    ]
    columns: tuple[tuple[str, Any, Any, Callable[[Any], str]], ...] = (
        ("the operation", old.primitives, new.primitives, _say),
        ("the shape or type of the value", old.forms, new.forms, _say),
        ("a constant argument", old.statics, statics, _say_constants),
        ("the operand", old.parents, new.parents, _say),
        ("the set of active arguments", old.argnums, new.argnums, _say),
    )
    for index in range(min(len(old.forms), len(new.forms))):
        for what, before, after, say in columns:
            if before[index] != after[index]:
                was, now = say(before[index]), say(after[index])
                change = f"changed from {was} to {'another' if was == now else now}"
                return f"{what} of entry {index} ({tape.label(index)}) {change}"
    if len(old.forms) != len(new.forms):
        return f"the number of entries changed from {len(old.forms)} to {len(new.forms)}"
    return f"the output moved from entry {old.output} to entry {new.output}"


def _say_constants(what: Any) -> str:
    """Show constant arguments; here () means that there are none, not the shape of a number."""
    return "none" if what == NO_CONSTANTS else _say(what)


def _say(what: Any) -> str:
    """Name a primitive or a type, show anything else briefly."""
    if what is float:
        return "a Python float"
    if isinstance(what, Constants):
        named = [f"{name}={_say_key(key)}" for name, key in what.keywords]
        text = ", ".join([*map(_say_key, what.positional), *named]) or "none"
    else:
        text = getattr(what, "__name__", None) or repr(what)
    return text if len(text) <= 60 else text[:57] + "…"


def _say_key(key: Any) -> str:
    """Describe a constant argument by its key."""
    if isinstance(key, type):
        return key.__name__
    if isinstance(key, ArrayKey):
        if isinstance(key.content, bytes):
            return str(np.frombuffer(key.content, key.dtype).reshape(key.shape))
        zeros = ""
        if has_zeros(key):
            layout = " by columns" if key.content.by_columns else ""
            zeros = f", {prod(key.shape) - key.content.count()} zeros{layout}"
        return f"{'an' if key.dtype.kind in 'iO' else 'a'} {key.dtype} array of shape {key.shape}{zeros}"
    kind, content = key
    if isinstance(content, ArrayKey):
        return _say_key(content)
    if kind in _NUMBERED and content is None:
        return f"any {kind.__name__}"
    if kind in EXACT:
        return repr(content)
    if issubclass(kind, (Sequence, KeysView)) and isinstance(content, tuple):
        return f"({', '.join(map(_say_key, content))})"
    return f"one {kind.__name__}"
