"""Functions of autograd.numpy that record themselves: the common ones, while a tape is recorded.

autograd's general path through `primitive` costs three to four microseconds a call. The functions here record
calls with boxes of one tape and plain arguments in less than one, and leave all others to that path.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd.builtins import SequenceBox, make_sequence
from autograd.numpy import numpy_vjps
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_vspaces import ArrayVSpace
from autograd.numpy.numpy_wrapper import array_from_args, concatenate_args
from autograd.tracer import Box, box_type_mappings, getval, isbox, trace_primitives_map

from tapesplit.arrays import SELECTORS
from tapesplit.recording.boxes import (
    FIRST,
    OUR_BOXES,
    PLAIN_OPERANDS,
    RECORDING,
    RecordingBox,
    TapeBox,
    is_boxed_array,
    is_boxed_double,
    make_box,
    recorded,
)
from tapesplit.recording.direct_arithmetic import cross, euclidean_norm, roll, solution
from tapesplit.recording.nodes import TapeNode
from tapesplit.recording.overrides import are_current, is_overridden, original_vjps
from tapesplit.recording.primitives import dense_untake, log_abs_det, summed_untake, symmetric_eigenvalues

__all__ = ["DIRECT_FUNCTIONS", "DIRECT_LINALG", "direct_untake"]

_Operands = tuple[Any, tuple[int, ...], tuple[int, ...], list[Any]]
"""One of the boxes of a call, the argument numbers of all, their indices on the tape, and all values."""


def _unary(primitive: Any, ufunc: Any) -> Callable[..., Any]:
    """Make a function that records calls with one of our boxes directly."""

    def function(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        if type(x) in RECORDING and x._entries is not None and not args and not kwargs:
            return recorded(x, primitive, FIRST, (x._index,), None, ufunc(x._value))
        return primitive(x, *args, **kwargs)

    functools.update_wrapper(function, primitive)
    function.__qualname__ = primitive.__name__  # which messages name
    return function


def _direct(general: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that records calls with boxes of one tape and plain arguments directly.

    ``function`` is NumPy's, ``general`` autograd's of the same name.
    """
    primitive = trace_primitives_map[function]

    def direct(*args: Any, **kwargs: Any) -> Any:
        found = _operands(args, _PLAIN_ARGUMENTS, 0)
        if found is not None:
            tape, argnums, parents, values = found
            value = function(*values, **kwargs)
            if OUR_BOXES.get(type(value)) is make_box:
                return recorded(tape, primitive, argnums, parents, tuple(values), value, kwargs)
        return general(*args, **kwargs)

    return functools.wraps(general)(direct)


def _where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a choice among two values; autograd's function takes them by name as well, NumPy's does not."""
    return _general_where(condition, *args, **kwargs) if kwargs else _direct_where(condition, *args)


def _concatenate(arr_list: Any, axis: Any = 0) -> Any:
    """Record the concatenation of boxes of one tape and plain arrays directly."""
    # An iterator can be read only once.
    found = _operands(arr_list, _ARRAYS, 1) if type(arr_list) in _LISTS and type(axis) is int else None
    return _general_concatenate(arr_list, axis) if found is None else _concatenated(found, axis)


def _concatenated(operands: _Operands, axis: int) -> Any:
    """Record a concatenation."""
    tape, argnums, parents, values = operands
    joined = np.concatenate(values, axis)
    return recorded(tape, concatenate_args, argnums, parents, (axis, *values), joined)


def _hstack(tup: Any) -> Any:
    """Record arrays side by side."""
    found = _operands(tup, _ARRAYS, 1) if type(tup) in _LISTS else None
    if found is None or not all(value.ndim for value in found[3]):
        return _general_hstack(tup)
    return _concatenated(found, 0 if found[3][0].ndim == 1 else 1)


def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Record two vectors one behind the other."""
    found = _operands((arr, values), _ARRAYS, 1) if axis is None else None
    if found is None or any(value.ndim != 1 for value in found[3]):
        return _general_append(arr, values, axis)
    return _concatenated(found, 0)


def _split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Record parts of equal size as slices: a list of values would keep scalar sweeps out."""
    whole = type(indices_or_sections) is int and type(axis) is int
    rewritten = whole and is_boxed_array(ary) and are_current(_OF_SPLIT)
    if not rewritten or axis not in range(ary._value.ndim):
        return _general_split(ary, indices_or_sections, axis)
    size, rest = divmod(ary._value.shape[axis], max(indices_or_sections, 1))
    if rest or indices_or_sections < 1:
        return _general_split(ary, indices_or_sections, axis)
    before = (slice(None),) * axis
    slices = [slice(part * size, (part + 1) * size) for part in range(indices_or_sections)]
    return _SplitResult([ary[(*before, part) if before else part] for part in slices])


class _TupleResult(tuple[Any, ...]):
    """Results in a tuple. To autograd's functions they are one box, as what its own primitive returns."""

    __slots__ = ()
    _form: Final[type] = tuple

    @property
    def _trace(self) -> int:
        trace: int = next(part._trace for part in self if isbox(part))
        return trace

    @property
    def _value(self) -> Any:
        return self._form(map(getval, self))

    @property
    def _node(self) -> TapeNode:
        """Record the sequence when it is asked for."""
        boxed = {argnum: part._node for argnum, part in enumerate(self, 1) if isbox(part)}
        values, args = self._value, (self._form, *map(getval, self))
        return TapeNode(values, make_sequence, args, {}, tuple(boxed), tuple(boxed.values()))


class _SplitResult(_TupleResult):
    """Results in a list, to which nothing can be assigned, as in the box that autograd's function returns."""

    __slots__ = ()
    _form = list

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return list(found) if type(index) is slice else found

    def __add__(self, others: Any) -> list[Any]:  # type: ignore[override] # what a list of values would do
        return [*self, *others]

    def __radd__(self, others: Any) -> list[Any]:
        return [*others, *self]


for _result in (_TupleResult, _SplitResult):
    Box.types.add(_result)
    box_type_mappings[_result] = SequenceBox


def _array(A: Any, *args: Any, **kwargs: Any) -> Any:
    """Record an array made of numbers or of arrays, boxes of one tape among them, in one entry each level."""
    if args or kwargs or type(A) not in _LISTS:
        return _general_array(A, *args, **kwargs)
    if not _LISTS.isdisjoint(map(type, A)):
        A = [_array(item) if type(item) in _LISTS else item for item in A]
    found = _alike(A)
    return _general_array(A) if found is None else _stacked(found)


def _stack(arrays: Any, axis: Any = 0) -> Any:
    """Record a stack along a new first axis, which is then moved to its place."""
    found = _alike(arrays) if type(axis) is int else None
    # Derivatives by np.stack have the type of the operand, those by np.array double precision.
    if found is None or {*map(np.result_type, found[3])} not in _ONE_PRECISION:
        return _general_stack(arrays, axis)
    rows = _stacked(found)
    if axis in {0, -np.ndim(rows._value)}:
        return rows
    value = np.ascontiguousarray(np.moveaxis(rows._value, 0, axis))
    return recorded(rows, _general_moveaxis, FIRST, (rows._index,), (rows._value, 0, axis), value)


def _vstack(tup: Any) -> Any:
    """Record vectors as the rows of a matrix."""
    found = _alike(tup)
    return _general_vstack(tup) if found is None or np.ndim(found[3][0]) != 1 else _stacked(found)


def _stacked(operands: _Operands) -> Any:
    """Record an array of operands that are alike."""
    tape, argnums, parents, values = operands
    return recorded(tape, array_from_args, argnums, parents, ((), {}, *values), np.array(values))


def _alike(items: Any) -> _Operands | None:
    """Open the boxes of one tape in a list of numbers, or of arrays of one shape; None for any other list."""
    if type(items) not in _LISTS:
        return None
    found = _operands(items, _NUMBERS, 2)
    if found is None:
        found = _operands(items, _ARRAYS, 2)
        if found is not None and len({value.shape for value in found[3]}) > 1:
            return None
    return found


_LISTS = frozenset({tuple, list, _SplitResult})


def _untake(x: Any, idx: Any, vs: Any) -> Any:
    """Record the adjoint of a look-up; a sparse one of a small value would keep scalar sweeps out."""
    untake = _full_untake(idx)
    known = untake is not None and type(vs) is ArrayVSpace and vs.dtype == np.float64
    if known and type(x) is TapeBox and x._entries is not None:
        value = x._value
        few_zeros = vs.size <= max(_FREE_ZEROS[untake], _MOSTLY * np.size(value))
        if few_zeros and type(value) in (np.ndarray, np.float64) and value.dtype == np.float64:
            result = untake.fun(value, idx, vs)
            return recorded(x, untake, FIRST, (x._index,), (value, idx, vs), result)
    return _general_untake(x, idx, vs)


def _full_untake(index: Any) -> Any:
    """Return the primitive for the adjoint of a look-up with all its zeros; None for other indices."""
    items = index if type(index) is tuple else (index,)
    if all(type(item) in SELECTORS for item in items):
        return dense_untake
    known = all(type(i) in SELECTORS or (type(i) is np.ndarray and i.dtype.kind == "i") for i in items)
    return summed_untake if known else None


def _slogdet(x: Any) -> Any:
    """Record the logarithm alone; a pair of values would keep scalar sweeps out. The sign is constant."""
    if not is_boxed_double(x) or x._value.ndim != 2 or is_overridden(_general_slogdet):
        return _general_slogdet(x)
    sign, logarithm = np.linalg.slogdet(x._value)
    return _TupleResult([sign, recorded(x, log_abs_det, FIRST, (x._index,), (x._value,), logarithm)])


def _eigh(a: Any, UPLO: Any = "L") -> Any:
    """Record eigenvalues by themselves: their derivatives need less than those of eigenvectors."""
    found = _general_eigh(a, UPLO)
    rewritten = is_boxed_double(a) and a._value.ndim == 2 and not a._entries.variables
    if not rewritten or is_overridden(_general_eigh):
        return found
    values, vectors = found._value
    args = (a._value, UPLO, vectors)
    return _TupleResult([recorded(a, symmetric_eigenvalues, FIRST, (a._index,), args, values), found[1]])


def _norm(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the norms of vectors as arithmetic, any other as a call."""
    found = None if args or not kwargs.keys() <= {"axis", "keepdims"} else euclidean_norm(x, **kwargs)
    return _direct_norm(x, *args, **kwargs) if found is None else found


def _solve(*args: Any, **kwargs: Any) -> Any:
    """Record solutions of linear systems by the right-hand side, any other as a call."""
    general = kwargs or len(args) != 2 or is_overridden(_general_solve)
    found = None if general else solution(*args)
    return _direct_solve(*args, **kwargs) if found is None else found


def _conjugate(general: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that records no conjugates of real numbers; autograd's derivatives have many."""

    def conjugate(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        is_real = not args and not kwargs and is_boxed_double(x)
        return x if is_real and not is_overridden(general) else general(x, *args, **kwargs)

    return functools.wraps(general)(conjugate)


_FREE_ZEROS: Final = {dense_untake: 512, summed_untake: 4096}
"""Elements up to which adding zeros costs next to nothing, beside the rest of such a look-up."""
_MOSTLY: Final = 4
"""Times as large as what is looked up, up to which it costs little, too."""
_ONE_PRECISION = ({np.dtype(np.float64)}, {np.dtype(np.complex128)})
_ARRAYS = frozenset({np.ndarray})
_NUMBERS = frozenset({float, int, complex, np.float64, np.complex128})
_PLAIN_ARGUMENTS: frozenset[type] = PLAIN_OPERANDS | {str, tuple, type(None)}


def _operands(items: Any, kinds: frozenset[type], first: int) -> _Operands | None:
    """Open the boxes of one tape among values of some types; None if there is no box, or anything else.

    Arguments are numbered from ``first``.
    """
    tape: Any = None
    values: list[Any] = []
    argnums: list[int] = []
    parents: list[int] = []
    for position, item in enumerate(items, first):
        value = item
        if type(item) in RECORDING:
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


_general_untake = numpy_vjps.untake
_general_array, _general_where, _general_split = anp.array, anp.where, anp.split
_general_concatenate, _general_hstack, _general_append = anp.concatenate, anp.hstack, anp.append
_general_stack, _general_vstack, _general_moveaxis = anp.stack, anp.vstack, anp.moveaxis
_general_slogdet, _general_eigh, _general_solve = anp.linalg.slogdet, anp.linalg.eigh, anp.linalg.solve
_OF_SPLIT = original_vjps(anp.split, ArrayBox.__getitem__)
_direct_where = _direct(anp.where, np.where)
_direct_norm = _direct(anp.linalg.norm, np.linalg.norm)
_direct_solve = _direct(anp.linalg.solve, np.linalg.solve)

_UNARY = (
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
    *("exp", "expm1", "log", "log10", "sqrt", "square"),
)
_OTHERS = (
    *("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "abs", "log1p", "arctan2"),
    *("dot", "matmul", "inner", "outer", "einsum", "tensordot"),
    *("sum", "mean", "var", "std", "prod", "max", "min", "cumsum", "clip"),
    *("reshape", "ravel", "transpose", "swapaxes", "expand_dims", "squeeze", "repeat", "diag"),
    *("diff", "pad", "logaddexp", "real", "imag"),
)
DIRECT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _unary(getattr(anp, name), getattr(np, name)) for name in _UNARY},
    **{name: _direct(getattr(anp, name), getattr(np, name)) for name in _OTHERS},
    **{name: _conjugate(getattr(anp, name)) for name in ("conj", "conjugate")},
    "where": functools.wraps(anp.where)(_where),
    "roll": functools.wraps(anp.roll)(roll),
    "append": functools.wraps(anp.append)(_append),
    "cross": functools.wraps(anp.cross)(cross),
    "split": functools.wraps(anp.split)(_split),
    "concatenate": functools.wraps(anp.concatenate)(_concatenate),
    "hstack": functools.wraps(anp.hstack)(_hstack),
    "array": functools.wraps(anp.array)(_array),
    "stack": functools.wraps(anp.stack)(_stack),
    "vstack": functools.wraps(anp.vstack)(_vstack),
}
direct_untake = functools.wraps(numpy_vjps.untake)(_untake)
DIRECT_LINALG: dict[str, Callable[..., Any]] = {
    **{
        name: _direct(getattr(anp.linalg, name), getattr(np.linalg, name))
        for name in ("inv", "det", "cholesky")
    },
    "norm": functools.wraps(anp.linalg.norm)(_norm),
    "solve": functools.wraps(anp.linalg.solve)(_solve),
    "slogdet": functools.wraps(anp.linalg.slogdet)(_slogdet),
    "eigh": functools.wraps(anp.linalg.eigh)(_eigh),
}


def _reshape(box: Any, *args: Any, **kwargs: Any) -> Any:
    """Reshape as the method does, which takes the new shape as one argument or as several."""
    shape = (args,) if args and isinstance(args[0], int) else args
    return DIRECT_FUNCTIONS["reshape"](box, *shape, **kwargs)


def _called_by_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method that leaves out keywords of no effect, with which NumPy's function of this name calls it.

    autograd's rules do not know them.
    """

    def method(box: Any, *args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs[name] for name in kwargs if kwargs[name] is not None or name not in _NO_EFFECT}
        return function(box, *args, **given)

    return method


_NO_EFFECT: Final = frozenset({"dtype", "out"})
_METHODS = {
    method: DIRECT_FUNCTIONS[name]
    for method, function in vars(ArrayBox).items()
    for name in DIRECT_FUNCTIONS
    if function is getattr(anp, name)
} | {
    **{name: _called_by_numpy(DIRECT_FUNCTIONS[name]) for name in ("clip", "cumsum")},
    "reshape": _reshape,
    "T": property(DIRECT_FUNCTIONS["transpose"]),
    "__abs__": DIRECT_FUNCTIONS["abs"],
}
for _name, _method in _METHODS.items():
    setattr(RecordingBox, _name, _method)
