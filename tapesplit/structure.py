"""The structure of a tape: all that graph, cuts, plan and compiled sweeps depend on, without the values.

Two tapes of equal structure share a plan. Structures are compared, not hashed: comparing lists of the
same objects is what Python does fastest, and the first difference tells the user why a plan was not
reused.
"""

import operator
from collections.abc import Callable, KeysView
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from autograd.core import SparseObject
from autograd.extend import VSpace

from tapesplit.rules import CONTROLLED, PRODUCTS, Elementwise, find_rule, getitem
from tapesplit.tape import Tape

__all__ = [
    "EXACT",
    "NO_CONSTANTS",
    "ArrayKey",
    "Constants",
    "Structure",
    "any_places",
    "call_key",
    "first_difference",
    "fits",
    "form_of",
    "hashable",
    "is_look_up",
    "is_shape",
    "plain_slice",
    "real_constants",
    "statics_of",
    "structure_of",
    "without_places",
]


@dataclass(frozen=True, slots=True)
class Structure:
    """What each entry of a tape is, in columns.

    Parameters
    ----------
    primitives, argnums, parents
        As on the tape.
    forms
        Shape of each value for float64 arrays and numbers; dtype and shape, or the nested form of a
        container, for others.
    statics
        Constant arguments: () for none, None for one plain float, the type of one integer that is an operand
        only, one integer or slice as it is, else `Constants`.
    static_types
        Types of these: ``1 == True``, but they index differently.
    inputs, output
        Number of inputs, index of the output.
    """

    primitives: tuple[Callable[..., Any] | None, ...]
    argnums: tuple[tuple[int, ...], ...]
    parents: tuple[tuple[int, ...], ...]
    forms: list[Any]
    statics: list[Any]
    static_types: list[type]
    inputs: int
    output: int | None


class Constants(NamedTuple):
    """Keys of the constant arguments of a call by position and by name: `static_key` and `operand_key`."""

    positional: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]


class ArrayKey(NamedTuple):
    """Key of a constant array or NumPy number; its bytes only where plans depend on more than its form."""

    dtype: np.dtype
    shape: tuple[int, ...]
    content: Any = None


NO_CONSTANTS: tuple[()] = ()
"""Constant arguments of a call that has none."""


def structure_of(tape: Tape) -> Structure:
    """Return the structure of a tape, in about 0.15 µs per entry."""
    primitives, argnums, parents, args, kwargs, values = zip(*tape.entries, strict=True)
    forms = [
        ()
        if type(value) is _FLOAT64
        else value.shape
        if type(value) is np.ndarray and value.dtype is _FLOAT64_DTYPE
        else form_of(value)
        for value in values
    ]
    statics = [
        NO_CONSTANTS if a is None or (len(a) == len(g) and not k) else statics_of(p, a, g, k)
        for p, a, g, k in zip(primitives, args, argnums, kwargs, strict=True)
    ]
    types = list(map(type, statics))
    return Structure(primitives, argnums, parents, forms, statics, types, tape.inputs, tape.output)


_FLOAT64 = np.float64
_FLOAT64_DTYPE = np.dtype(np.float64)
EXACT = frozenset({int, bool, str, slice, type(None), type(Ellipsis)})
"""Constants that count in full, and that compare by value."""
_INTEGERS = frozenset({int, bool})
"""Those of them that may be operands."""


def form_of(value: Any) -> Any:
    """Describe a value: shape of float64, dtype and shape of other arrays, nested form of containers."""
    if type(value) is np.ndarray:
        return value.shape if value.dtype is _FLOAT64_DTYPE else (value.dtype, value.shape)
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(form_of, value)))
    if isinstance(value, dict):
        return (dict, tuple((key, form_of(value[key])) for key in sorted(value, key=repr)))
    return (type(value), np.shape(value))


def is_shape(form: Any) -> bool:
    """Tell whether a form is that of a float64 array or number: just its shape."""
    return not form or type(form[0]) is int


def statics_of(primitive: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> Any:
    """Describe the constant arguments of a call that has some, see `Structure`."""
    controlled = primitive in CONTROLLED
    if len(args) == 2 and not kwargs:
        constant = args[1 - argnums[0]]
        kind = type(constant)
        if kind is float and not controlled:
            return None
        if kind is slice:
            return plain_slice(constant)
        if kind in EXACT and constant is not None:
            return kind if kind in _INTEGERS and takes_operands(primitive) else constant
    named_key = _whole_key if controlled else static_key
    key = operand_key if takes_operands(primitive) else named_key
    return Constants(
        tuple([key(a) for i, a in enumerate(args) if i not in argnums]),
        tuple([(name, named_key(kwargs[name])) for name in sorted(kwargs)]),
    )


def plain_slice(given: slice) -> slice:
    """Return a slice with plain integers: other bounds may change later on, or compare by identity."""
    bounds = (given.start, given.stop, given.step)
    return given if _BOUNDS.issuperset(map(type, bounds)) else slice(*map(_plain_bound, bounds))


_BOUNDS = frozenset({int, np.int64, float, str, type(None)})


def _plain_bound(bound: Any) -> Any:
    """Return a bound as an integer; a new object, which equals nothing, for what is no number."""
    if type(bound) in _BOUNDS:
        return bound
    try:
        return operator.index(bound)
    except TypeError:
        return object()


def takes_operands(primitive: Any) -> bool:
    """Tell whether numbers and arrays given by position are operands, which only values depend on."""
    return primitive in PRODUCTS or isinstance(find_rule(primitive), Elementwise)


def operand_key(constant: Any) -> Any:
    """Describe a constant operand: numbers by their type, arrays by dtype and shape."""
    kind = type(constant)
    if kind in _INTEGERS:
        return kind
    is_array = kind is np.ndarray or (isinstance(constant, np.generic) and kind is not np.float64)
    if is_array and constant.dtype.kind in "fciub":
        return ArrayKey(constant.dtype, constant.shape)
    return static_key(constant)


def _whole_key(constant: Any) -> Any:
    """Describe a constant argument that says how elements move: in full."""
    if isinstance(constant, (float, np.floating, np.ndarray)):
        array = np.asarray(constant)
        return (type(constant), ArrayKey(array.dtype, array.shape, array.tobytes()))
    return static_key(constant)


def static_key(constant: Any) -> Any:
    """Describe a constant argument by what plans may depend on.

    Floating-point numbers count by type, floating-point arrays by dtype and shape; everything else
    counts in full. A mutable object of a type that is not known here equals nothing, so that a plan with
    it is never reused.
    """
    kind = type(constant)
    if kind is float or kind is np.float64:
        return None
    if kind in EXACT:
        return (kind, plain_slice(constant) if kind is slice else constant)
    if kind is np.ndarray:
        if constant.dtype.kind in "fc":
            return ArrayKey(constant.dtype, constant.shape)
        content = constant.tobytes() if constant.dtype != object else object()
        return ArrayKey(constant.dtype, constant.shape, content)
    if kind in (tuple, list):
        return (kind, tuple([static_key(item) for item in constant]))
    if kind is dict:
        return (kind, tuple([(name, static_key(constant[name])) for name in sorted(constant, key=repr)]))
    return (kind, _content(constant))


def _content(constant: Any) -> Any:
    """Return what tells a constant of an uncommon type from others; a new object where nothing does."""
    if isinstance(constant, type):  # its attributes are those of its instances
        return constant
    if isinstance(constant, VSpace):
        return repr(constant)
    if isinstance(constant, SparseObject):  # an adjoint that is added to others
        return repr(constant.vs)
    if hasattr(constant, "__array__"):
        return static_key(np.asarray(constant))
    if hasattr(constant, "__index__"):
        return operator.index(constant)
    if isinstance(constant, KeysView):
        return static_key(tuple(constant))
    try:
        hash(constant)
    except (TypeError, ValueError):
        return object()
    # Such a sequence is the same object with other contents later on.
    kind: Any = type(constant)
    return object() if hasattr(kind, "__getitem__") and kind.__eq__ is object.__eq__ else constant


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
    if replace(known, statics=[]) != replace(structure, statics=[]):
        return None
    statics = list(structure.statics)
    changed = [i for i, before in enumerate(known.statics) if before != statics[i]]
    for index in changed:
        places = any_places(statics[index]) if structure.primitives[index] is getitem else None
        if places is None or places != any_places(known.statics[index]):
            return None
        statics[index] = places
    return replace(structure, statics=statics) if len(changed) <= _MOST_LOOK_UPS else None


_MOST_LOOK_UPS: Final = 32


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


def hashable(key: Any) -> Any:
    """Return a key that can be put into a dict: slices as tuples."""
    if type(key) is slice:
        return (key.start, key.stop, key.step)
    try:
        hash(key)
    except TypeError:  # slices inside
        return tuple(map(hashable, key))
    return key


def call_key(structure: Structure, index: int) -> Any:
    """Return a key that is equal for calls of the same primitive with equal shapes and constants."""
    parents, static = structure.parents[index], structure.statics[index]
    return (
        structure.primitives[index],
        structure.argnums[index],
        hashable(static) if isinstance(static, (slice, tuple)) else static,
        structure.static_types[index],
        structure.forms[index],
        structure.forms[parents[0]] if len(parents) == 1 else tuple([structure.forms[p] for p in parents]),
    )


def real_constants(static: Any) -> bool:
    """Tell whether constant arguments are real numbers and arrays of them, given by position."""
    if isinstance(static, Constants):
        return not static.keywords and all(key is None or _is_real_key(key) for key in static.positional)
    return static in (None, NO_CONSTANTS, int, bool)


def _is_real_key(key: Any) -> bool:
    """Whether the key of an operand is that of an integer, a boolean, or an array of real numbers."""
    return key.dtype.kind in "fiub" if isinstance(key, ArrayKey) else key is int or key is bool


def first_difference(old: Structure, new: Structure, tape: Tape) -> str:
    """Say in one sentence where a new tape departs from an old structure."""
    pairs = zip(old.statics, new.statics, strict=False)
    statics = [before if before == any_places(now) else now for before, now in pairs]
    columns = (
        ("the operation", old.primitives, new.primitives),
        ("the shape or type of the value", old.forms, new.forms),
        ("a constant argument", old.statics, statics),
        ("the type of a constant argument", old.static_types, new.static_types),
        ("the operand", old.parents, new.parents),
        ("the set of active arguments", old.argnums, new.argnums),
    )
    for index in range(min(len(old.forms), len(new.forms))):
        for what, before, after in columns:
            if before[index] != after[index]:
                change = f"changed from {_say(before[index])} to {_say(after[index])}"
                return f"{what} of entry {index} ({tape.label(index)}) {change}"
    if len(old.forms) != len(new.forms):
        return f"the number of entries changed from {len(old.forms)} to {len(new.forms)}"
    return f"the output moved from entry {old.output} to entry {new.output}"


def _say(what: Any) -> str:
    """Name a primitive or a type, show anything else briefly; None stands for any plain float."""
    if what is None:
        return "a float"
    if isinstance(what, Constants):
        named = [f"{name}={_say_key(key)}" for name, key in what.keywords]
        text = ", ".join([*map(_say_key, what.positional), *named]) or "none"
    else:
        text = getattr(what, "__name__", None) or repr(what)
    return text if len(text) <= 60 else text[:57] + "…"


def _say_key(key: Any) -> str:
    """Describe a constant argument by its key."""
    if key is None:
        return "a float"
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
    if kind is tuple or kind is list:
        return f"({', '.join(map(_say_key, content))})"
    return f"one {kind.__name__}"
