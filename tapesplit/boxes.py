"""Boxes that record themselves: autograd's array boxes, cheaper.

Most of a scalar tape is arithmetic on single numbers. autograd's general path through `primitive` costs
several microseconds per operation; `TapeBox`, a subclass of autograd's own `ArrayBox`, records arithmetic and
indexing directly and leaves everything else, and every mixed or nested case, to that general path.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd.core import VJPNode
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_wrapper import array_from_args, concatenate_args
from autograd.tracer import Box, Node, box_type_mappings, notrace_primitives

__all__ = ["BoxesInPlace", "TapeBox", "TapeNode"]


class TapeNode(Node):
    """Place of a value on its tape, in the form that autograd's general path asks for."""

    __slots__ = ("entries", "index")

    def __init__(
        self,
        value: Any,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple["TapeNode", ...],
    ) -> None:
        entries = self.entries = parents[0].entries
        self.index = len(entries)
        indices = tuple([parent.index for parent in parents])
        entries.append((fun, parent_argnums, indices, tuple(args), kwargs, value))

    def initialize_root(self, entries: list[tuple[Any, ...]], index: int) -> None:
        """Refer to a value that is on the tape already."""
        self.entries = entries
        self.index = index


# What VJP tracing treats as constant (comparisons, argmax, shape queries, ...), recording does too.
notrace_primitives[TapeNode] = notrace_primitives[VJPNode]

_FIRST, _SECOND, _BOTH = (0,), (1,), (0, 1)
_NO_KEYWORDS: dict[str, Any] = {}
_PLAIN_NUMBERS = frozenset({float, int, np.ndarray, np.float64})
"""Operands that need no look by autograd: exact types only, so that no subclass loses its own behavior."""


class TapeBox(ArrayBox):
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

    def __getitem__(self, index: Any) -> Any:
        """Record an indexing operation."""
        if self._entries is None or type(index) in Box.types:
            return _general_getitem(self, index)
        value = self._value
        result = TapeBox()
        result._value = item = value[index]
        result._trace = self._trace
        result._entries = entries = self._entries
        result._index = len(entries)
        entries.append((_general_getitem, _FIRST, (self._index,), (value, index), _NO_KEYWORDS, item))
        return result

    def __neg__(self) -> Any:
        if self._entries is None:
            return anp.negative(self)
        value = self._value
        return _recorded(self, anp.negative, _FIRST, (self._index,), (value,), -value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Record ``ndarray <operator> box`` directly; leave every other ufunc call to autograd."""
        reflected = _REFLECTED_UFUNCS.get(ufunc)
        if reflected and method == "__call__" and not kwargs and type(inputs[0]) in _PLAIN_NUMBERS:
            return reflected(inputs[1], inputs[0])
        return ArrayBox.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)


def _box(value: Any, trace: int, node: Any) -> TapeBox:
    """Make a box as autograd does, which calls it by the type of the value."""
    box = TapeBox()
    box._value = value
    box._trace = trace
    if type(node) is TapeNode:
        box._entries = node.entries
        box._index = node.index
    else:
        box._entries = None
        box._foreign_node = node
    return box


_general_getitem = ArrayBox.__getitem__


def _recorded(
    box: Any,
    primitive: Any,
    argnums: tuple[int, ...],
    parents: tuple[int, ...],
    args: tuple[Any, ...],
    value: Any,
    kwargs: dict[str, Any] = _NO_KEYWORDS,
) -> Any:
    """Append one operation to the tape of a box and return the box of its result."""
    entries = box._entries
    result = TapeBox()
    result._value = value
    result._trace = box._trace
    result._entries = entries
    result._index = len(entries)
    entries.append((primitive, argnums, parents, args, kwargs, value))
    return result


def _binary(primitive: Any, operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make ``box <operator> other`` for a primitive that equals a Python operator on plain values."""

    def method(self: Any, other: Any) -> Any:
        entries = self._entries
        if entries is not None:
            kind = type(other)
            left = self._value
            # Both branches repeat what `_recorded` does: a call more would cost a fifth of the operation.
            if kind is TapeBox:
                if other._entries is entries:
                    right = other._value
                    value = operate(left, right)
                    result = TapeBox()
                    result._value = value
                    result._trace = self._trace
                    result._entries = entries
                    result._index = len(entries)
                    entries.append(
                        (primitive, _BOTH, (self._index, other._index), (left, right), _NO_KEYWORDS, value)
                    )
                    return result
            elif kind in _PLAIN_NUMBERS:
                value = operate(left, other)
                result = TapeBox()
                result._value = value
                result._trace = self._trace
                result._entries = entries
                result._index = len(entries)
                entries.append((primitive, _FIRST, (self._index,), (left, other), _NO_KEYWORDS, value))
                return result
        return primitive(self, other)

    return method


def _reflected(primitive: Any, operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make ``other <operator> box``; Python calls it only when ``other`` is no box."""

    def method(self: Any, other: Any) -> Any:
        if self._entries is not None and type(other) in _PLAIN_NUMBERS:
            right = self._value
            return _recorded(self, primitive, _SECOND, (self._index,), (other, right), operate(other, right))
        return primitive(other, self)

    return method


_REFLECTED_UFUNCS: dict[Any, Callable[[Any, Any], Any]] = {}
for _name, _primitive, _operate, _ufunc in (
    ("add", anp.add, operator.add, np.add),
    ("sub", anp.subtract, operator.sub, np.subtract),
    ("mul", anp.multiply, operator.mul, np.multiply),
    ("truediv", anp.true_divide, operator.truediv, np.true_divide),
    ("pow", anp.power, operator.pow, np.power),
    ("matmul", anp.matmul, operator.matmul, np.matmul),
):
    setattr(TapeBox, f"__{_name}__", _binary(_primitive, _operate))
    setattr(TapeBox, f"__r{_name}__", _reflected(_primitive, _operate))
    _REFLECTED_UFUNCS[_ufunc] = getattr(TapeBox, f"__r{_name}__")

Box.types.add(TapeBox)
Box.type_mappings[TapeBox] = _box
# A box of a Python number stays an ArrayBox: Python's and NumPy's arithmetic differ there (1.0 / 0.0).
_BOXED_HERE = tuple(
    kind
    for kind, box in box_type_mappings.items()
    if box is ArrayBox and kind not in {float, complex, ArrayBox}
)


def _unary(primitive: Any, ufunc: Any) -> Callable[..., Any]:
    """Make a function that records calls with one of our boxes directly."""

    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        if type(x) is TapeBox and x._entries is not None and not args and not kwargs:
            value = x._value
            return _recorded(x, primitive, _FIRST, (x._index,), (value,), ufunc(value))
        return primitive(x, *args, **kwargs)

    return functools.wraps(primitive)(function)


def _of_first(primitive: Any, function: Any) -> Callable[..., Any]:
    """Make a function that records calls directly whose first argument alone is one of our boxes."""

    def direct(x: Any, *args: Any, **kwargs: Any) -> Any:
        if type(x) is TapeBox and x._entries is not None and Box.types.isdisjoint(map(type, args)):
            value = function(x._value, *args, **kwargs)
            if type(value) in _OUR_BOXES:
                return _recorded(x, primitive, _FIRST, (x._index,), (x._value, *args), value, kwargs)
        return primitive(x, *args, **kwargs)

    return functools.wraps(primitive)(direct)


def _roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """Record ``np.roll`` of a short vector; one look-up is many times cheaper than NumPy's general roll."""
    if type(x) is TapeBox and x._entries is not None and axis is None and type(shift) is int:
        value = x._value
        if type(value) is np.ndarray and value.ndim == 1 and value.size <= _SHORT:
            rolled = value[_rolled(value.size, shift)]
            return _recorded(x, _general_roll, _FIRST, (x._index,), (value, shift), rolled)
    return _general_roll(x, shift, axis)


_SHORT: Final = 1024
"""Elements up to which a look-up takes less time than copying two slices."""


@functools.lru_cache(maxsize=256)
def _rolled(size: int, shift: int) -> np.ndarray:
    """Return the places that the elements of a rolled vector come from."""
    return np.roll(np.arange(size), shift)


def _concatenate(arr_list: Any, axis: Any = 0) -> Any:
    """Record the concatenation of boxes of one tape and plain arrays directly."""
    if type(arr_list) not in (tuple, list) or type(axis) is not int:  # an iterator can be read only once
        return _general_concatenate(arr_list, axis)
    found = _operands(arr_list, _ARRAYS, 1)
    if found is None:
        return _general_concatenate(arr_list, axis)
    tape, argnums, parents, values = found
    joined = np.concatenate(values, axis)
    return _recorded(tape, concatenate_args, argnums, parents, (axis, *values), joined)


def _array(A: Any, *args: Any, **kwargs: Any) -> Any:
    """Record an array made of a flat list of numbers, boxes of one tape among them, in one entry."""
    if args or kwargs or type(A) not in (tuple, list):
        return _general_array(A, *args, **kwargs)
    found = _operands(A, _NUMBERS, 2)
    if found is None:
        return _general_array(A)
    tape, argnums, parents, values = found
    return _recorded(tape, array_from_args, argnums, parents, ((), {}, *values), np.array(values))


_ARRAYS = frozenset({np.ndarray})
_NUMBERS = frozenset({float, np.float64})


def _operands(
    items: Any, kinds: frozenset[type], first: int
) -> tuple[Any, tuple[int, ...], tuple[int, ...], list[Any]] | None:
    """Open the boxes of one tape among values of some types; None if there is no box, or anything else.

    Returns one of the boxes, the argument numbers of all (from ``first``), their indices, and all values.
    """
    tape: Any = None
    values: list[Any] = []
    argnums: list[int] = []
    parents: list[int] = []
    for position, item in enumerate(items, first):
        value = item
        if type(item) is TapeBox:
            if tape is None:
                tape = item
            if item._entries is None or item._entries is not tape._entries:
                return None
            argnums.append(position)
            parents.append(item._index)
            value = item._value
        if type(value) not in kinds:
            return None
        values.append(value)
    return None if tape is None else (tape, tuple(argnums), tuple(parents), values)


_general_array = anp.array
_general_roll = anp.roll
_general_concatenate = anp.concatenate

_DIRECT_FUNCTIONS = (
    {
        name: _unary(getattr(anp, name), getattr(np, name))
        for name in ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "square", "sinh", "cosh", "arctan")
    }
    | {
        name: _of_first(getattr(anp, name), getattr(np, name))
        for name in ("sum", "reshape", "ravel", "transpose", "cumsum", "max", "min", "prod")
    }
    | {
        "roll": functools.wraps(anp.roll)(_roll),
        "concatenate": functools.wraps(anp.concatenate)(_concatenate),
        "array": functools.wraps(anp.array)(_array),
    }
)
_GENERAL_FUNCTIONS = {name: getattr(anp, name) for name in _DIRECT_FUNCTIONS}
_namespace = vars(anp)
_OUR_BOXES = dict.fromkeys(_BOXED_HERE, _box)
_THEIR_BOXES = dict.fromkeys(_BOXED_HERE, ArrayBox)


class BoxesInPlace:
    """While entered, autograd makes our boxes, and autograd.numpy holds the functions that record directly.

    They cost a third of its own. A function that somebody else has replaced is left alone. The caller holds
    the tracing lock; nested uses are free.
    """

    __slots__ = ("_general",)

    def __enter__(self) -> None:
        self._general: dict[str, Any] | None = None
        if box_type_mappings[np.ndarray] is _box:
            return
        general, direct = _GENERAL_FUNCTIONS, _DIRECT_FUNCTIONS
        if list(map(_namespace.__getitem__, general)) != list(general.values()):
            general = {name: function for name, function in general.items() if _namespace[name] is function}
            direct = {name: direct[name] for name in general}
        self._general = general
        try:
            box_type_mappings.update(_OUR_BOXES)
            _namespace.update(direct)
        except BaseException:  # Ctrl-C
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        if self._general is not None:
            _namespace.update(self._general)
            box_type_mappings.update(_THEIR_BOXES)
