"""Functions of arrays, recorded as simpler ones: rolls, cross products, norms, solutions of linear systems.

In scalar sweeps a call recorded as a whole is a dense block of derivatives, whereas of products, sums and
look-ups it is known which element depends on which.
"""

import functools
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd.numpy import linalg

from tapesplit.recording.boxes import FIRST, TapeBox, is_boxed_array, is_boxed_double, recorded
from tapesplit.recording.checkpoints import SIMPLER
from tapesplit.recording.overrides import are_current, original_vjps
from tapesplit.recording.primitives import adjusted_side
from tapesplit.recording.triangular_systems import OF_SIDES

__all__ = ["cross", "euclidean_norm", "roll", "solution"]


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Record ``np.roll``; for a short axis one look-up is many times cheaper than NumPy's general roll."""
    whole = type(shift) is int and (axis is None or type(axis) is int)
    if not whole or not is_boxed_array(a):
        return _general_roll(a, shift, axis)
    value = a._value
    last = value.ndim == 1 if axis is None else value.ndim > 0 and axis in {-1, value.ndim - 1}
    short = last and 0 < value.shape[-1] <= _MOST_LOOKED_UP
    rolled = _looked_up(value, shift) if short else np.roll(value, shift, axis)
    args = (value, shift) if axis is None else (value, shift, axis)
    return recorded(a, _general_roll, FIRST, (a._index,), args, rolled)


_MOST_LOOKED_UP: Final = 1024
"""Elements up to which a look-up takes less time than copying two slices."""


@functools.lru_cache(maxsize=256)
def _places(size: int, shift: int) -> np.ndarray:
    """Return the places that the elements of a rolled vector come from."""
    return np.roll(np.arange(size), shift)


def _looked_up(value: np.ndarray, shift: int) -> np.ndarray:
    """Roll an array along its last axis."""
    places = _places(value.shape[-1], shift)
    return value[places] if value.ndim == 1 else value.take(places, axis=-1)


def cross(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the products of vectors of three elements as NumPy computes them, in a third of the time."""
    is_known = len(args) <= len(_AXES) and kwargs.keys() <= _AXES
    found = _cross_product(a, b, *args, **kwargs) if is_known else None
    return _general_cross(a, b, *args, **kwargs) if found is None else found


_AXES: Final = {"axisa", "axisb", "axisc", "axis"}
"""What NumPy's function lets its callers say besides the vectors."""


def _cross_product(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Any:
    """Record a cross product as products of elements; None if it is not one of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    boxed = (is_boxed_array(a) or is_boxed_array(b)) and are_current(_OF_CROSS)
    if not boxed or not (_has_three(a, axisa) and _has_three(b, axisb)):
        return None
    a, b = _moved_axis(a, axisa, -1), _moved_axis(b, axisb, -1)
    product = _moved_on(a, -1) * _moved_on(b, 1) - _moved_on(a, 1) * _moved_on(b, -1)
    is_place = type(axisc) is int and -product.ndim <= axisc < product.ndim
    return _moved_axis(product, -1, axisc) if is_place else None


def _has_three(x: Any, axis: Any) -> bool:
    """Whether an operand is a vector of three elements, or a stack of them along other axes."""
    value = x._value if type(x) is TapeBox else x
    if type(value) is not np.ndarray or type(axis) is not int:
        return False
    return -value.ndim <= axis < value.ndim and value.shape[axis] == 3


def _moved_axis(x: Any, source: int, target: int) -> Any:
    """Move an axis of an operand or of the result of a cross product, where it is not in its place."""
    if source % x.ndim == target % x.ndim:
        return x
    return (anp if type(x) is TapeBox else np).moveaxis(x, source, target)


def _moved_on(x: Any, shift: int) -> Any:
    """Roll the vectors of an operand of a cross product."""
    if type(x) is not TapeBox:
        return _looked_up(x, shift)
    return roll(x, shift) if x._value.ndim == 1 else roll(x, shift, -1)


def euclidean_norm(x: Any, *others: Any, **keywords: Any) -> Any:
    """Record a norm as the root of a sum of squares; None if it is not one of vectors of real numbers."""
    is_of_vectors = not others and keywords.keys() <= {"axis", "keepdims"} and is_boxed_double(x)
    if not is_of_vectors or not are_current(_OF_NORM):
        return None
    value, axis, keepdims = x._value, keywords.get("axis"), keywords.get("keepdims", False)
    if axis is None and value.ndim == 1 and not keepdims:
        both = (x._index, x._index)
        squares = recorded(x, _general_dot, (0, 1), both, (value, value), value.dot(value))
    elif type(axis) is int and -value.ndim <= axis < value.ndim:
        products = x * x
        given = {"axis": axis, "keepdims": keepdims}
        total = products._value.sum(**given)
        squares = recorded(
            products, _general_sum, FIRST, (products._index,), (products._value,), total, given
        )
    else:
        return None
    return recorded(squares, _general_sqrt, FIRST, (squares._index,), None, np.sqrt(squares._value))


def solution(a: Any, b: Any) -> Any:
    """Record a linear system with an active matrix so that the solution depends on a right-hand side only.

    That right-hand side, see `adjusted_side`, depends on the matrix. One factorization then serves the
    derivatives by both, and scalar sweeps need no block of derivatives by all elements of the matrix. None
    for systems of other forms.
    """
    if not is_boxed_double(a) or not (is_boxed_array(b) or type(b) is np.ndarray):
        return None
    if not are_current(OF_SIDES):
        return None
    active = type(b) is TapeBox
    if active and b._entries is not a._entries:
        return None
    matrix, side = a._value, b._value if active else b
    one = matrix.ndim == 2 and side.ndim in {1, 2}
    stack = side.ndim == matrix.ndim > 2 and matrix.shape[:-2] == side.shape[:-2]
    if not (one or stack) or side.dtype != matrix.dtype:
        return None
    x = np.linalg.solve(matrix, side)
    argnums, parents = ((0, 1), (a._index, b._index)) if active else (FIRST, (a._index,))
    adjusted = recorded(a, adjusted_side, argnums, parents, (matrix, side, -x), side)
    solved = recorded(adjusted, _general_solve, (1,), (adjusted._index,), (matrix, side), x)
    a._entries.fix_solution(adjusted._index, solved._index, a._index)
    return solved


_general_solve = anp.linalg.solve
_general_roll, _general_cross = anp.roll, anp.cross
_general_dot, _general_sum, _general_sqrt = anp.dot, anp.sum, anp.sqrt
_OF_CROSS: Final = original_vjps(anp.cross, anp.roll, anp.multiply, anp.subtract, anp.moveaxis)
_OF_NORM: Final = original_vjps(linalg._primitive_norm, anp.dot, anp.sum, anp.sqrt, anp.multiply)
"""autograd's VJPs of cross products and norms and of what they are recorded as: none may be replaced."""

SIMPLER.update({anp.cross: _cross_product, linalg._primitive_norm: euclidean_norm})
