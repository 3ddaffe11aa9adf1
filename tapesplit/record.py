"""Recording: run a user's function once on autograd's primitives and keep the tape.

This is the only module that traces. autograd's trace level is one number for the whole process, so recording
holds a process-wide lock, and the level is put back however the function ends.

Most of a scalar tape is arithmetic on single numbers. autograd's general path through `primitive` costs several
microseconds per operation; `TapeBox`, a subclass of autograd's own `ArrayBox`, records arithmetic and indexing
directly and leaves everything else, and every mixed or nested case, to that general path.
"""

import functools
import gc
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.core import VJPNode
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_wrapper import concatenate_args
from autograd.tracer import Box, Node, box_type_mappings, isbox, notrace_primitives, trace_stack

from tapesplit.errors import InputTypeError, OutputTypeError
from tapesplit.tape import Tape
from tapesplit.tracing import tracing_lock

__all__ = ["NestedTraceError", "record"]


class NestedTraceError(Exception):
    """The recorded values belong to a derivative that autograd is taking at this moment, so only autograd can go on."""


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

    ``_entries`` is that tape; None marks a box of any other trace, which behaves as an `ArrayBox`. autograd asks for
    ``_node`` on its general path only, so our boxes make one when asked and carry just an index.
    """

    __slots__ = ("_entries", "_foreign_node", "_index")

    def __init__(self, value: Any, trace: int, node: Any) -> None:
        self._value = value
        self._trace = trace
        if type(node) is TapeNode:
            self._entries: list[tuple[Any, ...]] | None = node.entries
            self._index = node.index
        else:
            self._entries = None
            self._foreign_node = node

    @property
    def _node(self) -> Any:
        return self._foreign_node if self._entries is None else TapeNode.new_root(self._entries, self._index)

    __hash__ = ArrayBox.__hash__

    def __getitem__(self, index: Any) -> Any:
        """Record an indexing operation."""
        if self._entries is None or type(index) in Box.types:
            return _general_getitem(self, index)
        value = self._value
        result = _new_box(TapeBox)
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


_general_getitem = ArrayBox.__getitem__
_new_box = TapeBox.__new__


def _recorded(
    box: Any,
    primitive: Any,
    argnums: tuple[int, ...],
    parents: tuple[int, ...],
    args: tuple[Any, ...],
    value: Any,
) -> Any:
    """Append one operation to the tape of a box and return the box of its result."""
    entries = box._entries
    result = _new_box(TapeBox)
    result._value = value
    result._trace = box._trace
    result._entries = entries
    result._index = len(entries)
    entries.append((primitive, argnums, parents, args, _NO_KEYWORDS, value))
    return result


def _binary(primitive: Any, operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make ``box <operator> other`` for a primitive that equals a Python operator on plain values."""

    def method(self: Any, other: Any) -> Any:
        entries = self._entries
        if entries is not None:
            kind = type(other)
            left = self._value
            # Both branches repeat what `_recorded` does: a call more would cost a fifth of the whole operation.
            if kind is TapeBox:
                if other._entries is entries:
                    right = other._value
                    value = operate(left, right)
                    result = _new_box(TapeBox)
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
                result = _new_box(TapeBox)
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
Box.type_mappings[TapeBox] = TapeBox
# A box of a Python number stays an ArrayBox: Python's and NumPy's arithmetic differ there (1.0 / 0.0).
_BOXED_BY_US = tuple(
    kind
    for kind, box in box_type_mappings.items()
    if box is ArrayBox and kind not in {float, complex, ArrayBox}
)


def _unary(primitive: Any, ufunc: Any) -> Callable[..., Any]:
    """Make a function that records a call with one of our boxes directly and leaves any other call to the primitive."""

    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        if type(x) is TapeBox and x._entries is not None and not args and not kwargs:
            value = x._value
            return _recorded(x, primitive, _FIRST, (x._index,), (value,), ufunc(value))
        return primitive(x, *args, **kwargs)

    return functools.wraps(primitive)(function)


def _roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """Record ``np.roll`` of a vector; joining two slices is many times cheaper than NumPy's general roll."""
    if type(x) is TapeBox and x._entries is not None and axis is None and type(shift) is int:
        value = x._value
        if type(value) is np.ndarray and value.ndim == 1 and value.size:
            split = -shift % value.size
            rolled = np.concatenate((value[split:], value[:split]))
            return _recorded(x, _general_roll, _FIRST, (x._index,), (value, shift), rolled)
    return _general_roll(x, shift, axis)


def _concatenate(arr_list: Any, axis: Any = 0) -> Any:
    """Record the concatenation of boxes of one tape and plain arrays directly."""
    tape = next((item for item in arr_list if type(item) is TapeBox and item._entries is not None), None)
    if tape is None or type(axis) is not int:
        return _general_concatenate(arr_list, axis)
    entries = tape._entries
    args, argnums, parents = [axis], [], []
    for position, item in enumerate(arr_list, 1):
        if type(item) is TapeBox and item._entries is entries:
            argnums.append(position)
            parents.append(item._index)
            args.append(item._value)
        elif type(item) is np.ndarray:
            args.append(item)
        else:
            return _general_concatenate(arr_list, axis)
    value = np.concatenate(args[1:], axis)
    return _recorded(tape, concatenate_args, tuple(argnums), tuple(parents), tuple(args), value)


_general_roll = anp.roll
_general_concatenate = anp.concatenate

# While a tape is recorded, autograd.numpy holds these in place of its own wrappers: three times cheaper, same tape.
_DIRECT = {
    name: _unary(getattr(anp, name), getattr(np, name))
    for name in ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "square", "sinh", "cosh", "arctan")
} | {"roll": functools.wraps(anp.roll)(_roll), "concatenate": functools.wraps(anp.concatenate)(_concatenate)}


@contextmanager
def _tracing() -> Iterator[int]:
    """Enter one trace level with our boxes and without garbage collection; leave no trace of it."""
    with tracing_lock() as level:
        boxes = [box_type_mappings[kind] for kind in _BOXED_BY_US]
        collecting = gc.isenabled()
        gc.disable()
        box_type_mappings.update(dict.fromkeys(_BOXED_BY_US, TapeBox))
        functions = {name: getattr(anp, name) for name in _DIRECT}
        vars(anp).update(_DIRECT)
        trace_stack.top = level + 1
        try:
            yield level + 1
        finally:
            vars(anp).update(functions)
            box_type_mappings.update(zip(_BOXED_BY_US, boxes, strict=True))
            if collecting:
                gc.enable()


def record(fun: Callable[..., Any], *args: Any, argnum: int | Sequence[int] = 0, **kwargs: Any) -> Tape:
    """Run ``fun(*args, **kwargs)`` once and return its tape.

    Parameters
    ----------
    fun
        Function of autograd.numpy operations.
    *args, **kwargs
        Its arguments. Those at ``argnum`` must be real arrays or floating-point numbers.
    argnum
        Position of the argument to differentiate by, or several positions.

    Returns
    -------
    Tape
        Entries in the order of execution; the inputs come first. Values are kept, not copied.

    Raises
    ------
    InputTypeError
        If autograd cannot differentiate with respect to the type of an argument.
    IndexError
        If there is no argument at ``argnum``.
    OutputTypeError
        If ``fun`` returns a plain tuple, list or dict.
    NestedTraceError
        If an argument or a value that ``fun`` closes over is being differentiated by autograd already.
    Exception
        Whatever ``fun`` raises, with a note on the step that it hit.

    Notes
    -----
    About 0.7 µs for an operation between numbers, 4 µs for a call of an autograd.numpy function. Recording holds a
    process-wide lock, since autograd's trace level belongs to the process.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> tape = record(lambda x: x * np.sin(x), np.ones(3))
    >>> len(tape), tape.output, tape.label(1)
    (3, 2, 'sin')
    """
    argnums = (argnum,) if isinstance(argnum, (int, np.integer)) else tuple(argnum)
    name = getattr(fun, "__qualname__", None) or getattr(fun, "__name__", None) or type(fun).__name__
    entries: list[tuple[Any, ...]] = []
    boxed = list(args)
    if any(map(isbox, (*args, *kwargs.values()))):
        raise NestedTraceError
    with _tracing() as level:
        for position in argnums:
            boxed[position] = _input_box(entries, args[position], level, position)
        try:
            result = fun(*boxed, **kwargs)
        except BaseException as error:
            last = entries[-1][0]
            error.add_note(
                f"while recording {name} for its Jacobian, after {len(entries) - len(argnums)} operations"
                + (f", the last one {getattr(last, '__name__', last)}" if last else "")
            )
            raise
    if level > 0:
        _refuse_boxes(entries, result)
    if isbox(result) and result._trace == level:
        return Tape(entries, len(argnums), result._node.index, result._value, name, nested=level > 0)
    if isinstance(result, (tuple, list, dict)):
        raise OutputTypeError(
            f"{name} returned a {type(result).__name__}; a Jacobian needs one array: join the parts with np.concatenate "
            "or np.array"
        )
    warnings.warn("Output seems independent of input.", UserWarning, stacklevel=3)
    return Tape(entries, len(argnums), None, result, name, nested=level > 0)


def _refuse_boxes(entries: list[tuple[Any, ...]], result: Any) -> None:
    """Refuse a tape whose numbers are boxes of an outer trace: their derivatives must be traced, too."""
    for _, _, _, args, kwargs, value in entries:
        if isbox(value) or any(map(isbox, args)) or any(map(isbox, kwargs.values())):
            raise NestedTraceError
    if isbox(result) and isbox(result._value):
        raise NestedTraceError


def _input_box(entries: list[tuple[Any, ...]], value: Any, level: int, position: int) -> Box:
    """Box one input of the tape."""
    try:
        box_type = box_type_mappings[type(value)]
    except KeyError:
        raise InputTypeError(
            f"argument {position} is of type {type(value).__name__}, which autograd cannot differentiate with respect "
            "to; pass a float or an array of floats (np.asarray(x, dtype=float))"
        ) from None
    entries.append((None, (), (), (), _NO_KEYWORDS, value))
    return box_type(value, level, TapeNode.new_root(entries, len(entries) - 1))
