"""Keys of the constant arguments of calls: those properties that plans depend on, and no others."""

import operator
import sys
from collections.abc import KeysView, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from autograd.builtins import _make_dict
from autograd.core import SparseObject
from autograd.extend import VSpace
from autograd.numpy.numpy_vspaces import ArrayVSpace
from autograd.numpy.numpy_wrapper import array_from_args, concatenate_args

from tapesplit.arrays import INTEGERS, IntArray
from tapesplit.recording.tape import constant_positions
from tapesplit.rules import (
    CONTROLLED,
    MATRIX_BY_MATRIX,
    MATRIX_BY_VECTOR,
    PRODUCTS,
    Elementwise,
    NonZeros,
    find_rule,
    is_contraction,
    non_zeros,
)

__all__ = [
    "EXACT",
    "NO_CONSTANTS",
    "SEQUENCES",
    "ArrayKey",
    "Constants",
    "are_numbers",
    "has_zeros",
    "hashable",
    "index_members",
    "kept_positions",
    "known_zeros",
    "statics_of",
]


class Constants(NamedTuple):
    """Keys of the constant arguments of a call by position and by name: `_static_key` and `_operand_key`."""

    positional: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]


class ArrayKey(NamedTuple):
    """Key of a constant array: dtype, shape and, if plans depend on its elements, their bytes as ``content``.

    The ``content`` of a matrix that is an operand of a product are the places of its nonzeros, see
    `non_zeros`.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    content: Any = None


NO_CONSTANTS: tuple[()] = ()
"""Constant arguments of a call that has none."""

_NUMPY_EXACT = INTEGERS | {np.bool_}
EXACT = _NUMPY_EXACT | {int, bool, str, slice, type(None), type(Ellipsis)}
"""Types of constants that count in full (keys hold their value), and that compare by value."""
_ALONE = frozenset({int, str, slice, type(Ellipsis)})
"""Types of which the only constant of a call is its own key; not bool: ``1 == True``, but they index
differently."""
SEQUENCES = frozenset({list, tuple})
"""Types of plain sequences."""
_FLOATS = frozenset({float, np.float64})
"""Types of numbers whose type alone counts anywhere: a Python float takes the precision of arrays, one of
NumPy's does not."""
_INEXACT = frozenset(np.dtype(code).type for code in np.typecodes["AllFloat"])
_COUNTED_BY_TYPE = _INEXACT | _NUMPY_EXACT | {float, int, bool, complex}
"""Types of numbers whose type alone counts if they are operands."""
_FIRST_OPERAND = {**dict.fromkeys(PRODUCTS, 0), concatenate_args: 1, array_from_args: 2}
"""Position from which on the arguments of a primitive are operands: plans do not depend on their values."""


def index_members(static: Any) -> tuple[Any, ...]:
    """Return the keys of the members of an index, by the constant argument of a call that indexes."""
    index = static.positional[0] if isinstance(static, Constants) else static
    return index[1] if isinstance(index, tuple) and index[0] is tuple else (index,)


def statics_of(
    primitive: Any,
    args: tuple[Any, ...],
    argnums: tuple[int, ...],
    kwargs: Any,
    known: dict[Any, Any] | None = None,
) -> Any:
    """Describe the constant arguments of a call that has some, see `Structure`.

    Loops often read the same constant array again and again, so calls with one are looked up in ``known`` by
    its identity: the tape must keep the array alive.
    """
    controlled = primitive in _WHOLE
    if len(args) == 2 and not kwargs:
        constant = args[1 - argnums[0]]
        kind = type(constant)
        if kind in _FLOATS and not controlled:
            return kind
        if kind is slice:
            return _plain_slice(constant)
        if kind in _COUNTED_BY_TYPE and not controlled and _first_operand(primitive) == 0:
            return kind
        if kind in _ALONE:
            return constant
        if kind is np.ndarray and known is not None:
            call = (primitive, argnums, id(constant))
            if call not in known:
                known[call] = _constants_of(primitive, args, argnums, kwargs, known)
            return known[call]
    return _constants_of(primitive, args, argnums, kwargs, {} if known is None else known)


def _constants_of(
    primitive: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any, seen: dict[Any, Any]
) -> Constants:
    """Describe the constant arguments of a call one by one; for ``seen`` see `non_zeros`."""
    positions = constant_positions(len(args), argnums)
    if primitive in _WHOLE:
        key, first = _whole_key, sys.maxsize
    elif find_rule(primitive) is None:
        key, first = _type_key, sys.maxsize
    else:
        key, first = _static_key, _first_operand(primitive)
    found = [(key if i < first else _operand_key)(args[i]) for i in positions]
    if is_contraction(primitive, args):
        is_small = any(getattr(args[i], "size", 0) < MATRIX_BY_VECTOR for i in positions)
        counts = is_small and _multiplies_matrices(args, argnums)
        least = MATRIX_BY_MATRIX if counts else MATRIX_BY_VECTOR
        found = [_with_non_zeros(k, args[i], seen, least) for k, i in zip(found, positions, strict=True)]
    return Constants(tuple(found), tuple([(name, key(kwargs[name])) for name in sorted(kwargs)]))


def _multiplies_matrices(args: tuple[Any, ...], argnums: tuple[int, ...]) -> bool:
    """Tell whether an active argument is a matrix large enough for zeros of small ones to count."""
    return any(np.ndim(args[i]) > 1 and np.size(args[i]) >= MATRIX_BY_MATRIX for i in argnums)


def _with_non_zeros(key: Any, constant: Any, seen: dict[Any, Any], least: int) -> Any:
    """Add the places of the nonzeros to the key of a matrix of ``least`` elements, if they are few enough."""
    known = non_zeros(constant, seen, least)
    return key if known is None else key._replace(content=known)


def known_zeros(static: Any) -> ArrayKey | None:
    """Return the key of the constant matrix of a product if it has the places of nonzeros, else None."""
    keys = static.positional if type(static) is Constants else ()
    return next((key for key in keys if has_zeros(key)), None)


def kept_positions(static: Any) -> IntArray | None:
    """Return the flat positions of the nonzeros of the constant matrix of a product, if in its key."""
    matrix = known_zeros(static)
    return None if matrix is None else matrix.content.positions(matrix.shape)


def has_zeros(key: Any) -> bool:
    """Tell whether the key of a constant has the places of its nonzeros."""
    return isinstance(key, ArrayKey) and isinstance(key.content, NonZeros)


def _plain_slice(given: slice) -> slice:
    """Return a slice with plain integers: other bounds may change later on, or compare by identity."""
    if type(given.start) in _BOUNDS and type(given.stop) in _BOUNDS and type(given.step) in _BOUNDS:
        return given
    return slice(*map(_plain_bound, (given.start, given.stop, given.step)))


_BOUNDS = frozenset({int, np.int64, float, str, type(None)})


def _plain_bound(bound: Any) -> Any:
    """Return a bound as an integer; a new object, which equals nothing, for what is no number."""
    if type(bound) in _BOUNDS:
        return bound
    try:
        return operator.index(bound)
    except TypeError:
        return object()


def _first_operand(primitive: Any) -> int:
    """Return the position from which on numbers and arrays are operands, whose values plans do not need."""
    first = _FIRST_OPERAND.get(primitive)
    if first is None:
        rule = find_rule(primitive)
        return 0 if rule is None or isinstance(rule, Elementwise) else sys.maxsize
    return first


def _operand_key(constant: Any) -> Any:
    """Describe a constant operand: numbers by their type, arrays by dtype and shape."""
    kind = type(constant)
    if kind in _COUNTED_BY_TYPE:
        return kind
    if kind is np.ndarray and constant.dtype.kind in "fciub":
        return ArrayKey(constant.dtype, constant.shape)
    return _static_key(constant)


def _type_key(constant: Any) -> Any:
    """Describe a constant argument by its type only: autograd's own rule reads its value from each tape."""
    kind = type(constant)
    if kind is np.ndarray:
        return ArrayKey(constant.dtype, constant.shape)
    return kind


_WHOLE = CONTROLLED | {_make_dict}
"""Primitives whose constants count in full, since they determine which element goes where."""


def _whole_key(constant: Any) -> Any:
    """Describe a constant argument that says how elements move: in full."""
    if isinstance(constant, (tuple, list, KeysView)):
        return (type(constant), tuple(map(_whole_key, constant)))
    if isinstance(constant, (float, np.floating, np.ndarray)):
        array = np.asarray(constant)
        return (type(constant), ArrayKey(array.dtype, array.shape, array.tobytes()))
    return _static_key(constant)


def _static_key(constant: Any) -> Any:
    """Describe a constant argument by what plans may depend on.

    Floating-point numbers count by type, floating-point arrays by dtype and shape; everything else
    counts in full. A mutable object of a type that is not known here equals nothing, so that a plan with
    it is never reused.
    """
    kind = type(constant)
    if kind in _FLOATS:
        return kind
    if kind in _NUMPY_EXACT:
        return (kind, constant.item())  # NumPy's would compare with each item of another key
    if kind in EXACT:
        return (kind, _plain_slice(constant) if kind is slice else constant)
    if kind is np.ndarray:
        if constant.dtype.kind in "fc":
            return ArrayKey(constant.dtype, constant.shape)
        content = constant.tobytes() if constant.dtype != object else object()
        return ArrayKey(constant.dtype, constant.shape, content)
    if kind in (tuple, list):
        return (kind, tuple([_static_key(item) for item in constant]))
    if kind is dict:
        return (kind, tuple([(name, _static_key(constant[name])) for name in sorted(constant, key=repr)]))
    return (kind, _content(constant))


def _content(constant: Any) -> Any:
    """Return a value that identifies a constant of an uncommon type, or else a new object, equal to none."""
    if isinstance(constant, type):  # asked first: it has the attributes of its instances
        return constant
    if isinstance(constant, FunctionType):
        return constant.__code__  # many calls define a new one, and sweeps take the one of their own tape
    if isinstance(constant, ArrayVSpace):
        return (constant.shape, constant.dtype)
    if isinstance(constant, VSpace):
        return repr(constant)
    if isinstance(constant, SparseObject):  # an adjoint that is added to others
        return repr(constant.vs)
    if hasattr(constant, "__array__"):
        return _static_key(np.asarray(constant))
    if hasattr(constant, "__index__"):
        return operator.index(constant)
    try:
        if isinstance(constant, (Sequence, KeysView)) and not isinstance(constant, _UNCHANGING):
            return tuple(map(_static_key, constant))  # the same object may have other contents later on
        hash(constant)
        equals_itself = (constant == constant) is True  # noqa: PLR0124 (comparisons of users' types may do anything)
    except Exception:  # noqa: BLE001 (the same)
        return object()
    # Not `hasattr`, which on the class of an enum finds the method of its metaclass.
    has_items = any("__getitem__" in vars(kind) for kind in type(constant).__mro__)
    may_change = has_items and not isinstance(constant, _UNCHANGING)
    return constant if equals_itself and not may_change else object()


_UNCHANGING = (str, bytes, range, np.dtype)
"""Types that have items but cannot change, and that compare by value."""


def hashable(key: Any) -> Any:
    """Return a key that can be put into a dict: slices as tuples."""
    if type(key) is slice:
        return (key.start, key.stop, key.step)
    try:
        hash(key)
    except TypeError:  # slices inside
        return tuple(map(hashable, key))
    return key


def are_numbers(constants: Constants) -> bool:
    """Tell whether constant arguments are numbers and arrays of them, given by position."""
    return not constants.keywords and all(map(_is_number_key, constants.positional))


def _is_number_key(key: Any) -> bool:
    """Whether the key of an operand is that of a number, or of an array of numbers."""
    return key.dtype.kind in "fiubc" if isinstance(key, ArrayKey) else isinstance(key, type)
