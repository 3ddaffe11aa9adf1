"""Boxes that record themselves: autograd's array boxes, cheaper.

Most of a scalar tape is arithmetic on single numbers. autograd's general path through `primitive` costs
several microseconds per operation; `TapeBox` and `_NumberBox`, subclasses of autograd's own `ArrayBox`,
record arithmetic and indexing directly and leave everything else, and every nested case, to that path.
"""

import operator
from collections.abc import Callable
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import Box

from tapesplit.arrays import FLOAT64, INTEGERS
from tapesplit.recording.nodes import TapeNode
from tapesplit.recording.tape import NO_KEYWORDS

__all__ = [
    "FIRST",
    "OUR_BOXES",
    "PLAIN_OPERANDS",
    "RECORDING",
    "THEIR_BOXES",
    "RecordingBox",
    "TapeBox",
    "box_of",
    "is_boxed_array",
    "is_boxed_double",
    "key_of_shape",
    "make_box",
    "recorded",
]


FIRST, _SECOND, _BOTH = (0,), (1,), (0, 1)
PLAIN_OPERANDS: Final[frozenset[type]] = frozenset(
    {float, int, bool, complex, np.ndarray, np.float64, np.complex128, np.float32, np.int64, np.bool_}
)
"""Types of operands that autograd need not inspect: exact types, so that subclasses keep their behavior."""


class RecordingBox(ArrayBox):
    """An autograd array box whose arithmetic records itself while the box belongs to one of our tapes.

    ``_entries`` is that tape; None marks a box of any other trace, which behaves as an `ArrayBox`. autograd
    asks for ``_node`` on its general path only, so our boxes make one when asked and carry just an index.
    """

    __slots__ = ("_entries", "_foreign_node", "_index")

    # Boxes are made by the thousand: without an initializer of their own that takes a quarter less time.
    __init__ = object.__init__

    @property
    def _node(self) -> Any:
        return self._foreign_node if self._entries is None else TapeNode.new_root(self._entries, self._index)

    __hash__ = ArrayBox.__hash__

    def __copy__(self) -> "RecordingBox":
        return self

    def __deepcopy__(self, memo: Any) -> "RecordingBox":
        return self

    def __getitem__(self, index: Any) -> Any:
        """Record an indexing operation."""
        entries = self._entries
        kind = type(index)
        if entries is None or kind in Box.types:
            return _general_getitem(self, index)
        if kind in INTEGERS:
            kind, index = int, int(index)
        value = self._value
        result = TapeBox()
        result._value = item = value[index]
        result._trace = self._trace
        result._entries = entries
        key: Any = None
        if kind is int:
            key = self._index, index
        elif kind is slice:
            if _NARROW * len(item) <= len(value) or entries.size - self._index > _FRESH:
                bounds = _bounds(index)
                key = bounds and (self._index, *bounds)
        elif kind is tuple and entries.size - self._index > _FRESH and type(item) is np.ndarray:
            parts = _parts(index)
            key = parts and (self._index, parts)
        taken = entries.taken
        if key in taken:
            result._index = taken[key]
            entries.repeats += 1
            return result
        result._index = number = entries.size
        entries.size = number + 1
        entries += (_general_getitem, FIRST, (self._index,), (value, index), NO_KEYWORDS, item)
        if key:
            taken[key] = number
        return result

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Record ``ndarray <operator> box`` directly; leave every other ufunc call to autograd."""
        reflected = _REFLECTED_UFUNCS.get(ufunc)
        if reflected and method == "__call__" and not kwargs and type(inputs[0]) in PLAIN_OPERANDS:
            return getattr(inputs[1], reflected)(inputs[0])
        return ArrayBox.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)


class TapeBox(RecordingBox):
    """A box of an array or of a NumPy number, on which Python's operators are NumPy's functions."""

    __slots__ = ()


class _NumberBox(RecordingBox):
    """A box of a Python number, as an input often is.

    Its operators call NumPy's functions, as autograd's do: Python's own raise where NumPy has infinity, and
    return Python's numbers.
    """

    __slots__ = ()


RECORDING: Final[frozenset[type]] = frozenset({TapeBox, _NumberBox})
"""Types of the boxes that record themselves while they belong to one of our tapes."""
_NARROW: Final = 4
"""Equal slices of at most a quarter of their array are recorded once: sharing them makes cuts narrower."""
_FRESH: Final = 20
"""Entries since an array was recorded up to which other slices are recorded as they come.

In stencils, to tell them apart takes longer than it saves. Older arrays are rather parameters that a loop
takes apart in each turn: their adjoints are added up before they are put in their place.
"""
_BOUNDS: Final = frozenset({int, type(None)})
"""Bounds of a slice that compare by value."""


def _bounds(index: slice) -> tuple[int | None, int | None] | None:
    """Return what tells a slice apart from others; None if that takes more than its bounds."""
    start, stop = index.start, index.stop
    plain = index.step is None and type(start) in _BOUNDS and type(stop) in _BOUNDS
    return (start, stop) if plain else None


def _parts(index: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return what tells a look-up by numbers and slices apart from others; None for other indices."""
    parts: list[Any] = []
    for part in index:
        known = part if type(part) is int else _bounds(part) if type(part) is slice else None
        if known is None:
            return None
        parts.append(known)
    return tuple(parts)


def _maker(box_type: type[RecordingBox]) -> Callable[[Any, int, Any], RecordingBox]:
    """Return the function that autograd calls to make a box of this type."""

    def make(value: Any, trace: int, node: Any) -> RecordingBox:
        box = box_type()
        # The value is a box itself if the function of a checkpoint closes over one and returns it.
        box._value = node.value if type(value) in Box.types and type(node) is TapeNode else value
        box._trace = trace
        if type(node) is TapeNode:
            box._entries = node.entries
            box._index = node.index
        else:
            box._entries = None
            box._foreign_node = node
        return box

    return make


make_box, _make_number_box = _maker(TapeBox), _maker(_NumberBox)

for _type, _make in (TapeBox, make_box), (_NumberBox, _make_number_box):
    # Messages of Python and NumPy name the type of a box; users can look up what they read about an ArrayBox.
    # Others (autoray, PennyLane) look up the functions for an array by the module of its type.
    _type.__name__ = _type.__qualname__ = ArrayBox.__name__
    _type.__module__ = ArrayBox.__module__
    Box.types.add(_type)
    Box.type_mappings[_type] = _make


_general_getitem = ArrayBox.__getitem__


def recorded(
    box: Any,
    primitive: Any,
    argnums: tuple[int, ...],
    parents: tuple[int, ...],
    args: tuple[Any, ...] | None,
    value: Any,
    kwargs: dict[str, Any] = NO_KEYWORDS,
) -> Any:
    """Append one operation to the tape of a box and return the box of its result."""
    entries = box._entries
    result = TapeBox()
    result._value = value
    result._trace = box._trace
    result._entries = entries
    result._index = number = entries.size
    entries.size = number + 1
    entries += (primitive, argnums, parents, args, kwargs, value)
    return result


def box_of(box: Any, index: int, value: Any) -> Any:
    """Return the box of an entry that has been recorded, on the tape of another box."""
    result = TapeBox()
    result._value = value
    result._trace = box._trace
    result._entries = box._entries
    result._index = index
    return result


def key_of_shape(box: Any, shape: Any) -> tuple[Any, ...] | None:
    """Return what tells an array in another shape apart from others; None if it is recorded as it comes."""
    entries = box._entries
    if entries is None or entries.size - box._index <= _FRESH:
        return None
    plain = type(shape) is tuple and all(type(length) is int for length in shape)
    return (box._index, "reshape", shape) if plain else None


def is_boxed_array(x: Any) -> bool:
    """Whether an argument is one of our boxes, of an array, on a tape."""
    return type(x) is TapeBox and x._entries is not None and type(x._value) is np.ndarray


def is_boxed_double(x: Any) -> bool:
    """Whether an argument is one of our boxes, of a float64 array, on a tape."""
    return is_boxed_array(x) and x._value.dtype == FLOAT64


def _binary(primitive: Any, operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make ``box <operator> other`` for a primitive; ``operate`` does the same to plain values."""

    def method(self: Any, other: Any) -> Any:
        entries = self._entries
        if entries is None:
            return primitive(self, other)
        kind = type(other)
        left = self._value
        if kind is TapeBox or kind is _NumberBox:
            if other._entries is not entries:
                return primitive(self, other)
            value = operate(left, other._value)
            call: tuple[Any, ...] = primitive, _BOTH, (self._index, other._index), None, NO_KEYWORDS, value
        elif kind in PLAIN_OPERANDS:
            value = operate(left, other)
            call = primitive, FIRST, (self._index,), (left, other), NO_KEYWORDS, value
        else:
            return primitive(self, other)
        # As in `recorded`: a call more would cost a fifth of the operation.
        result = TapeBox()
        result._value = value
        result._trace = self._trace
        result._entries = entries
        result._index = number = entries.size
        entries.size = number + 1
        entries += call
        return result

    return method


def _comparison(primitive: Any, operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make a comparison, whose result is constant."""

    def method(self: Any, other: Any) -> Any:
        entries = self._entries
        if entries is not None:
            if isinstance(other, RecordingBox) and other._entries is entries:
                return operate(self._value, other._value)
            if type(other) in PLAIN_OPERANDS:
                return operate(self._value, other)
        return primitive(self, other)

    return method


def _reflected(primitive: Any, operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make ``other <operator> box``; Python calls it only when ``other`` is no box."""

    def method(self: Any, other: Any) -> Any:
        entries = self._entries
        kind = type(other)
        if entries is None or kind not in PLAIN_OPERANDS:
            return primitive(other, self)
        right = self._value
        # Python's complex numbers take NumPy's floats for their own, and raise where NumPy has infinity.
        value = (primitive.fun if kind is complex else operate)(other, right)
        result = TapeBox()  # as in `recorded`, see above
        result._value = value
        result._trace = self._trace
        result._entries = entries
        result._index = number = entries.size
        entries.size = number + 1
        entries += (primitive, _SECOND, (self._index,), (other, right), NO_KEYWORDS, value)
        return result

    return method


def _negative(primitive: Any, operate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make ``-box``."""

    def method(self: Any) -> Any:
        if self._entries is None:
            return primitive(self)
        return recorded(self, primitive, FIRST, (self._index,), None, operate(self._value))

    return method


def _define(name: str, make: Callable[..., Any], primitive: Any, operate: Callable[..., Any]) -> None:
    """Define an operator of both types of boxes; boxes of Python's numbers compute by NumPy's function."""
    setattr(TapeBox, name, make(primitive, operate))
    setattr(_NumberBox, name, make(primitive, primitive.fun))


_REFLECTED_UFUNCS: Final[dict[Any, str]] = {}
for _name, _primitive, _operate in (
    ("add", anp.add, operator.add),
    ("sub", anp.subtract, operator.sub),
    ("mul", anp.multiply, operator.mul),
    ("truediv", anp.divide, operator.truediv),
    ("pow", anp.power, operator.pow),
    ("mod", anp.mod, operator.mod),
    ("matmul", anp.matmul, operator.matmul),
):
    _define(f"__{_name}__", _binary, _primitive, _operate)
    _define(f"__r{_name}__", _reflected, _primitive, _operate)
    _REFLECTED_UFUNCS[_primitive.fun] = f"__r{_name}__"

for _name, _primitive, _operate in (
    ("eq", anp.equal, operator.eq),
    ("ne", anp.not_equal, operator.ne),
    ("gt", anp.greater, operator.gt),
    ("ge", anp.greater_equal, operator.ge),
    ("lt", anp.less, operator.lt),
    ("le", anp.less_equal, operator.le),
):
    _define(f"__{_name}__", _comparison, _primitive, _operate)

_define("__neg__", _negative, anp.negative, operator.neg)

THEIR_BOXES: Final = {
    kind: box for kind, box in Box.type_mappings.items() if box is ArrayBox and kind is not ArrayBox
}
"""autograd's own constructors of array boxes, by the type of the value."""
_PYTHON_NUMBERS: Final = frozenset({float, complex})
OUR_BOXES: Final = {kind: _make_number_box if kind in _PYTHON_NUMBERS else make_box for kind in THEIR_BOXES}
"""The constructors that replace them while a tape is recorded."""
