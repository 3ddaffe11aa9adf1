"""Functions of autograd.numpy that join or split arrays and record themselves, see `direct_functions`."""

from itertools import pairwise
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_wrapper import array_from_args, concatenate_args

from tapesplit.arrays import DOUBLES
from tapesplit.recording.boxes import FIRST, RECORDING, is_boxed_array, recorded
from tapesplit.recording.direct_operands import ARRAYS, NUMBERS, Operands, opened
from tapesplit.recording.overrides import are_current, original_vjps
from tapesplit.recording.sequence_results import SplitResult

__all__ = [
    "append",
    "array",
    "array_split",
    "column_stack",
    "concatenate",
    "hsplit",
    "hstack",
    "split",
    "stack",
    "vsplit",
    "vstack",
]


def concatenate(arr_list: Any, axis: Any = 0) -> Any:
    """Record the concatenation of boxes of one tape and plain arrays directly."""
    arr_list = _with_arrays(arr_list)
    # An iterator can be read only once.
    found = opened(arr_list, ARRAYS, 1) if type(arr_list) in _LISTS and type(axis) is int else None
    return _general_concatenate(arr_list, axis) if found is None else _concatenated(found, axis)


def _concatenated(operands: Operands, axis: int) -> Any:
    """Record a concatenation."""
    tape, argnums, parents, values = operands
    joined = np.concatenate(values, axis)
    return recorded(tape, concatenate_args, argnums, parents, (axis, *values), joined)


def hstack(tup: Any) -> Any:
    """Record arrays side by side."""
    found = _numbers(tup)
    if found is not None:
        return _stacked(found)
    tup = _with_vectors(_with_arrays(tup))
    found = opened(tup, ARRAYS, 1) if type(tup) in _LISTS else None
    if found is None or not all(value.ndim for value in found[3]):
        return _general_hstack(tup)
    return _concatenated(found, 0 if found[3][0].ndim == 1 else 1)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Record two vectors one behind the other."""
    if axis is not None:
        return _general_append(*_with_arrays([arr, values]), axis)
    found = _numbers((arr, values))
    if found is not None:
        return _stacked(found)
    both = _with_vectors(_with_arrays([arr, values]))
    found = opened(both, ARRAYS, 1)
    if found is None or any(value.ndim != 1 for value in found[3]):
        return _general_append(arr, values, axis)
    return _concatenated(found, 0)


def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Record parts as slices: a list of values would keep scalar sweeps out."""
    found = _parts(ary, indices_or_sections, axis)
    return _general_split(ary, indices_or_sections, axis) if found is None else found


def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Record parts as slices, the first of them longer by one if the parts are not even."""
    places = indices_or_sections
    if type(places) is int and type(axis) is int and places > 0 and is_boxed_array(ary):
        # NumPy tells what is wrong with an axis.
        size = ary._value.shape[axis] if -ary._value.ndim <= axis < ary._value.ndim else 0
        least, longer = divmod(size, places)
        places = [part * least + min(part, longer) for part in range(1, places)]
    found = _parts(ary, places, axis)
    return _general_array_split(ary, indices_or_sections, axis) if found is None else found


def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Record groups of columns, or parts of a vector, as slices."""
    axis = 1 if is_boxed_array(ary) and ary._value.ndim > 1 else 0
    found = _parts(ary, indices_or_sections, axis)
    return _general_hsplit(ary, indices_or_sections) if found is None else found


def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Record groups of rows as slices."""
    is_matrix = is_boxed_array(ary) and ary._value.ndim > 1
    found = _parts(ary, indices_or_sections, 0) if is_matrix else None
    return _general_vsplit(ary, indices_or_sections) if found is None else found


def _parts(ary: Any, indices_or_sections: Any, axis: Any) -> SplitResult | None:
    """Record slices along an axis; None if this is for NumPy's function."""
    whole = type(axis) is int and is_boxed_array(ary)
    # Derivatives by a slice have the type of the operand, those by a part may have double precision.
    is_double = whole and {ary._value.dtype} in _ONE_PRECISION
    if not is_double or not -ary._value.ndim <= axis < ary._value.ndim or not are_current(_OF_SPLITS):
        return None
    axis %= ary._value.ndim
    bounds = _bounds(indices_or_sections, ary._value.shape[axis])
    if bounds is None:
        return None
    before = (slice(None),) * axis
    slices = [slice(*pair) for pair in pairwise(bounds)]
    return SplitResult([ary[(*before, part) if before else part] for part in slices])


def _bounds(indices_or_sections: Any, size: int) -> list[int] | None:
    """Return the bounds of the parts of an axis; None if NumPy's function is to tell what is wrong."""
    if type(indices_or_sections) is int:
        count = indices_or_sections
        return None if count < 1 or size % count else [size // count * part for part in range(count + 1)]
    if type(indices_or_sections) is np.ndarray and indices_or_sections.dtype.kind == "i":
        indices_or_sections = indices_or_sections.tolist()
    if type(indices_or_sections) not in _LISTS or not {*map(type, indices_or_sections)} <= {int}:
        return None
    bounds = [0, *indices_or_sections, size]
    return bounds if bounds == sorted(bounds) else None


def array(A: Any, *args: Any, **kwargs: Any) -> Any:
    """Record an array made of numbers or arrays, some of them boxes, in one entry for each level of lists."""
    if args or kwargs or type(A) not in _LISTS:
        return _general_array(A, *args, **kwargs)
    if _is_plain(A):
        return np.array(A)
    A = _with_arrays(A)
    found = _alike(A)
    return _general_array(A) if found is None else _stacked(found)


def stack(arrays: Any, axis: Any = 0) -> Any:
    """Record a stack along a new first axis, which is then moved to its place."""
    found = _alike(arrays) if type(axis) is int else None
    # Derivatives by np.stack have the type of the operand, those by np.array double precision.
    if found is None or {*map(np.result_type, found[3])} not in _ONE_PRECISION or not are_current(_OF_STACK):
        return _general_stack(arrays, axis)
    rows = _stacked(found)
    if axis in {0, -np.ndim(rows._value)}:
        return rows
    value = np.ascontiguousarray(np.moveaxis(rows._value, 0, axis))
    return recorded(rows, _general_moveaxis, FIRST, (rows._index,), (rows._value, 0, axis), value)


def vstack(tup: Any) -> Any:
    """Record vectors as the rows of a matrix."""
    tup = _with_arrays(tup)
    found = _alike(tup)
    if found is not None and np.ndim(found[3][0]) == 1 and are_current(_OF_STACK):
        return _stacked(found)
    joined = _joined_matrices(tup, (None,), 0)
    return _general_vstack(tup) if joined is None else joined


def column_stack(tup: Any) -> Any:
    """Record vectors as the columns of a matrix, beside other matrices."""
    tup = _with_arrays(tup)
    found = _alike(tup)
    if found is not None and np.ndim(found[3][0]) == 1:
        return stack(tup, 1) if _are_double(found) else _general_column_stack(tup)
    joined = _joined_matrices(tup, (slice(None), None), 1)
    return _general_column_stack(tup) if joined is None else joined


def _are_double(operands: Operands) -> bool:
    """Tell whether operands are of double precision: derivatives by others may have another type."""
    return {value.dtype for value in operands[3]} in _ONE_PRECISION


def _joined_matrices(items: Any, index: Any, axis: int) -> Any:
    """Record matrices, and vectors that an index makes matrices of, as one; None for a list of others."""
    found = opened(items, ARRAYS, 1) if type(items) in _LISTS else None
    if found is None or not _are_double(found) or not are_current(_OF_STACK):
        return None
    axes = [value.ndim for value in found[3]]
    if min(axes) < 1:
        return None
    found = opened([item[index] if n == 1 else item for item, n in zip(items, axes, strict=True)], ARRAYS, 1)
    return found and _concatenated(found, axis)


def _numbers(items: Any) -> Operands | None:
    """Open the boxes in a list of numbers in double precision; None for any other list."""
    found = opened(items, DOUBLES, 2) if type(items) in _LISTS else None
    return found if found is not None and are_current(_OF_STACK) else None


def _with_vectors(items: Any) -> Any:
    """Make vectors of the numbers in a list of numbers and vectors in double precision."""
    if type(items) not in _LISTS or not are_current(_OF_STACK):
        return items
    values = [item._value if type(item) in RECORDING else item for item in items]
    are_numbers = [type(value) in DOUBLES for value in values]
    if not any(are_numbers) or not all(
        is_number or (type(value) is np.ndarray and value.ndim == 1 and value.dtype == np.float64)
        for is_number, value in zip(are_numbers, values, strict=True)
    ):
        return items
    return [array([item]) if is_number else item for is_number, item in zip(are_numbers, items, strict=True)]


def _is_plain(items: Any) -> bool:
    """Tell whether a list is made of plain numbers, perhaps in lists: autograd would take them one by one."""
    if _PLAIN.issuperset(map(type, items)):
        return True
    return _LISTS.issuperset(map(type, items)) and all(map(_is_plain, items))


def _with_arrays(items: Any) -> Any:
    """Make arrays of the lists in a list, as in ``[[x[0]], y]``: autograd sees no boxes in them."""
    if type(items) not in _LISTS or _LISTS.isdisjoint(map(type, items)):
        return items
    return [array(item) if type(item) in _LISTS else item for item in items]


def _stacked(operands: Operands) -> Any:
    """Record an array of operands that are alike."""
    tape, argnums, parents, values = operands
    return recorded(tape, array_from_args, argnums, parents, ((), {}, *values), np.array(values))


def _alike(items: Any) -> Operands | None:
    """Open the boxes of one tape in a list of numbers, or of arrays of one shape; None for any other list."""
    if type(items) not in _LISTS:
        return None
    found = opened(items, NUMBERS, 2)
    if found is None:
        found = opened(items, ARRAYS, 2)
        if found is not None and len({value.shape for value in found[3]}) > 1:
            return None
    return found


_LISTS: Final = frozenset({tuple, list, SplitResult})
_PLAIN: Final = frozenset({float, int})
_ONE_PRECISION: Final = ({np.dtype(np.float64)}, {np.dtype(np.complex128)})
_OF_SPLITS: Final = original_vjps(anp.split, anp.array_split, anp.hsplit, anp.vsplit, ArrayBox.__getitem__)
_OF_STACK: Final = original_vjps(
    array_from_args, concatenate_args, anp.moveaxis, anp.atleast_2d, ArrayBox.__getitem__
)
"""autograd's VJPs of what is split or stacked and of what it is recorded as: none may be replaced."""
_general_array, _general_moveaxis = anp.array, anp.moveaxis
_general_split, _general_array_split = anp.split, anp.array_split
_general_hsplit, _general_vsplit = anp.hsplit, anp.vsplit
_general_concatenate, _general_hstack, _general_append = anp.concatenate, anp.hstack, anp.append
_general_stack, _general_vstack, _general_column_stack = anp.stack, anp.vstack, anp.column_stack
