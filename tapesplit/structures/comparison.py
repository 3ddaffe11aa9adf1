"""Fitting: whether a plan for one structure serves another, and where the two differ if it does not.

It serves an equal structure. Where index arrays differ from call to call, a plan can leave the places open
that they point to, and read them from each tape.
"""

from collections.abc import Callable, KeysView
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tapesplit.recording.tape import Tape
from tapesplit.rules import getitem
from tapesplit.structures.constants import EXACT, NO_CONSTANTS, ArrayKey, Constants
from tapesplit.structures.structure import Structure

__all__ = ["any_places", "first_difference", "fits", "is_look_up", "without_places"]


def without_places(known: Structure, structure: Structure) -> Structure | None:
    """Leave out the contents of index arrays in which a structure differs from another one.

    A plan for the result reads these arrays anew from each tape.

    Parameters
    ----------
    known, structure
        Two structures.

    Returns
    -------
    Structure or None
        None if the two differ in anything else, or in so many index arrays that a new plan costs less than
        reading all of them one by one.
    """
    if _but_for_constants(known) != _but_for_constants(structure):
        return None
    statics = list(structure.statics)
    changed = [i for i, before in enumerate(known.statics) if before != statics[i]]
    if len(changed) > _MOST_LOOK_UPS:
        return None
    for index in changed:
        places = any_places(statics[index]) if structure.primitives[index] is getitem else None
        if places is None or places != any_places(known.statics[index]):
            return None
        statics[index] = places
    return replace(structure, statics=statics)


_MOST_LOOK_UPS: Final = 256
_but_for_constants = attrgetter(*(field.name for field in fields(Structure) if field.name != "statics"))


def any_places(static: Any) -> Constants | None:
    """Describe an index with arrays or NumPy integers, whatever these contain; None for other constants."""
    if not isinstance(static, Constants) or len(static.positional) != 1:
        return None
    key = static.positional[0]
    return Constants((_opened(key),), ()) if _arrays(key) else None


def _opened(key: Any) -> Any:
    """Leave out the contents of the arrays of an index."""
    if isinstance(key, ArrayKey):
        return key._replace(content=None)
    if isinstance(key, tuple) and isinstance(key[1], ArrayKey):  # a NumPy integer
        return _opened(key[1])
    return (tuple, tuple(map(_opened, key[1]))) if isinstance(key, tuple) and key[0] is tuple else key


def _arrays(key: Any) -> list[ArrayKey]:
    """List the arrays of an index."""
    if isinstance(key, ArrayKey):
        return [key]
    if not isinstance(key, tuple):
        return []
    kind, content = key
    items = content if kind is tuple else [content] if isinstance(content, ArrayKey) else []
    return [array for item in items for array in _arrays(item)]


def is_look_up(structure: Structure, index: int) -> bool:
    """Tell whether an entry takes elements from places that its structure leaves open."""
    static = structure.statics[index]
    if structure.primitives[index] is not getitem or not isinstance(static, Constants):
        return False
    return any(array.content is None for array in _arrays(static.positional[0]))


def fits(known: Structure, structure: Structure) -> bool:
    """Tell whether a plan for a known structure serves another one: equal, but for places left open."""
    return structure == known or without_places(known, structure) == known


def first_difference(old: Structure, new: Structure, tape: Tape) -> str:
    """Say in one sentence where a new tape departs from an old structure."""
    pairs = [(before, now, any_places(now)) for before, now in zip(old.statics, new.statics, strict=False)]
    statics = [before if places is not None and before == places else now for before, now, places in pairs]
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
    """Show constant arguments; () stands for none, which as a shape is that of a number."""
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
        return f"{'an' if key.dtype.kind in 'iO' else 'a'} {key.dtype} array of shape {key.shape}"
    kind, content = key
    if isinstance(content, ArrayKey):
        return _say_key(content)
    if kind in EXACT:
        return repr(content)
    if issubclass(kind, (tuple, list, KeysView)):
        return f"({', '.join(map(_say_key, content))})"
    return f"one {kind.__name__}"
