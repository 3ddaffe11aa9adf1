"""Stacked calls: primitives that do the same to each slice of their arguments.

A norm along an axis, the inverses of many matrices: a slice of the result depends on the same slice of the
arguments only. In NumPy's terms the axes within a slice are core dimensions, those that count slices are loop
dimensions. One direction serves all slices at a time (A. R. Curtis, M. J. D. Powell and J. K. Reid, 1974).
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd.numpy import linalg
from autograd.numpy.numpy_wrapper import _primitive_std, _primitive_var

from tapesplit.arrays import IntArray
from tapesplit.recording.overrides import is_overridden
from tapesplit.recording.primitives import (
    log_abs_det,
    singular_values,
    singular_vectors,
    symmetric_eigenvalues,
    symmetric_eigenvectors,
)
from tapesplit.recording.tape import TapeEntry
from tapesplit.recording.values import batch_shape, element_count
from tapesplit.rules.axes import positive

__all__ = [
    "along_axis",
    "as_one_call",
    "can_be_stacked",
    "count_slices",
    "matching_loop_axes",
    "shares_matrix",
    "slices_of",
    "solves_columns",
    "stacked",
]


_CoreAxes = Callable[..., tuple[int, ...] | dict[int, tuple[tuple[int, ...], tuple[int, ...]]] | None]

_core_axes: dict[Any, _CoreAxes] = {}
_sides: dict[Any, int] = {}
"""Linear systems, and which argument has the right-hand sides."""


def stacked(primitive: Any, core_axes: _CoreAxes) -> None:
    """Register a primitive whose calls may be stacks.

    ``core_axes(*args, **kwargs)`` returns the axes within a slice of the active arguments, which must have
    equally many axes; None if the call is no stack. They are those of the result as well if that has as many
    axes; else the loop dimensions of the result come first.
    It may also return a dict: by the number of an argument, the core axes of the result and of that argument,
    none of them negative. This serves calls in which no other argument is active.
    """
    _core_axes[primitive] = core_axes


def solves_columns(primitive: Any, sides: int) -> None:
    """Register linear systems: by right-hand sides alone, argument ``sides``, each column is a slice.

    The argument before these has the matrix.
    """
    _sides[primitive] = sides


def shares_matrix(entry: TapeEntry) -> bool:
    """Tell whether the slices of a call are columns that one system is solved for, by one factorization."""
    return _is_by_sides(entry) and np.ndim(entry.args[_sides[entry.primitive] - 1]) == 2


def _is_by_sides(entry: TapeEntry) -> bool:
    """Tell whether a call solves for columns, and the right-hand sides alone are active."""
    sides = _sides.get(entry.primitive, -1)
    is_of_columns = entry.argnums == (sides,) and np.ndim(entry.args[sides]) > 1
    return is_of_columns and not is_overridden(entry.primitive)


def count_slices(entry: TapeEntry) -> int:
    """Count the independent slices of a call; 1 if nothing is known of the primitive."""
    return prod(_loops(entry)[0])


def matching_loop_axes(entry: TapeEntry, axis: int) -> tuple[int, ...] | None:
    """Return the axis of each active argument that counts the same slices as ``axis`` of the result.

    None if that is no loop dimension.
    """
    loops, cores = _loops(entry)
    dimensions = [np.ndim(entry.value), *(np.ndim(entry.args[i]) for i in entry.argnums)]
    counting = [[a for a in range(n) if a not in core] for n, core in zip(dimensions, cores, strict=True)]
    if not loops or axis not in counting[0]:
        return None
    place = counting[0].index(axis)
    return tuple(axes[place] for axes in counting[1:])


def slices_of(entry: TapeEntry) -> list[IntArray]:
    """Return the independent slices of the result of a call and of each active argument.

    These are flat positions, of shape (slices, elements of a slice).
    """
    loops, cores = _loops(entry)
    values = [entry.value, *(entry.args[i] for i in entry.argnums)]
    positions = [np.arange(element_count(value)).reshape(batch_shape(value)) for value in values]
    behind = [np.moveaxis(p, core, range(-len(core), 0)) for p, core in zip(positions, cores, strict=True)]
    return [p.reshape(prod(loops), p.size // max(prod(loops), 1)) for p in behind]


def _loops(entry: TapeEntry) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the loop dimensions of a call, and the axes of core dimensions of its result and arguments."""
    shapes = [batch_shape(entry.value), *(batch_shape(entry.args[i]) for i in entry.argnums)]
    cores = _cores_by_sides(shapes) if _is_by_sides(entry) else _cores(entry, shapes)
    if cores:
        loops = {
            tuple(n for axis, n in enumerate(shape) if axis not in core)
            for shape, core in zip(shapes, cores, strict=True)
        }
        if len(loops) == 1:
            return loops.pop(), cores
    return (), [tuple(range(len(shape))) for shape in shapes]


def _cores_by_sides(shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return core dimensions of solutions and right-hand sides: one, if these have equal shapes."""
    dimensions, alike = map(len, shapes), len({*shapes}) == 1
    return [(n - 2,) if alike else tuple(range(n - 1)) for n in dimensions]


def _cores(entry: TapeEntry, shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the core dimensions of the result of a call and of its active arguments; empty if unknown."""
    core_axes = _core_axes_of(entry.primitive)
    axes = None if core_axes is None else core_axes(*entry.args, **entry.kwargs)
    if isinstance(axes, dict):
        return [*axes[entry.argnums[0]]] if len(entry.argnums) == 1 else []
    # Right-hand sides with fewer axes than the matrices have no loop dimensions, though they may look so.
    if axes is None or len({*map(len, shapes[1:])}) > 1:
        return []
    dimensions, core = len(shapes[1]), positive(axes, len(shapes[1]))
    behind = tuple(range(dimensions - len(core), len(shapes[0])))
    return [core if len(shape) == dimensions else behind for shape in shapes]


def _core_axes_of(primitive: Any) -> _CoreAxes | None:
    """Return the function that finds core axes; None if a VJP of the user may mix slices."""
    core_axes = _core_axes.get(primitive)
    return None if core_axes is None or is_overridden(primitive) else core_axes


def can_be_stacked(call: TapeEntry) -> bool:
    """Tell whether several calls like this one can be done as one call on stacks of their arguments."""
    core_axes = _core_axes_of(call.primitive)
    if core_axes is None:
        return False
    if core_axes is along_axis:
        x, *rest = call.args
        return type(x) is np.ndarray and len(rest) <= 1 and call.kwargs.keys() <= {"axis", "keepdims"}
    if call.primitive not in _OF_MATRICES or call.kwargs:
        return False
    if any(isinstance(arg, np.matrix) for arg in call.args):  # which always have two axes
        return False
    dimensions = {np.ndim(arg) for arg in call.args}
    return len(dimensions) == 1 or dimensions == {1, 2}


def _axis(call: TapeEntry) -> Any:
    """Return the axis of an operation along axes."""
    return call.args[1] if len(call.args) > 1 else call.kwargs.get("axis")


def as_one_call(calls: Sequence[TapeEntry]) -> TapeEntry:
    """Join like calls into one call on stacks of their arguments; a single call is returned as it is."""
    first = calls[0]
    if len(calls) == 1:
        return first
    value = np.stack([call.value for call in calls])
    if _core_axes[first.primitive] is along_axis:
        x = np.stack([call.args[0] for call in calls])
        axes = tuple([a + 1 for a in positive(_axis(first), x.ndim - 1)])
        keywords = {**first.kwargs, "axis": axes[0] if len(axes) == 1 else axes}
        return first._replace(args=(x,), kwargs=keywords, value=value)
    args = [np.stack(column) for column in zip(*[call.args for call in calls], strict=True)]
    if np.ndim(first.args[-1]) == 1:  # right-hand sides of linear systems
        args[-1], value = args[-1][..., None], value[..., None]
    return first._replace(args=tuple(args), value=value)


def along_axis(x: Any, axis: Any = None, *rest: Any, **keywords: Any) -> tuple[int, ...]:
    """Core dimensions of an operation along axes, by default along all of them."""
    return positive(axis, np.ndim(x))


def _of_norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> tuple[int, ...]:  # noqa: A002 (NumPy's name)
    """Core dimensions of a norm."""
    return along_axis(x, axis)


def _matrices(*args: Any, **keywords: Any) -> tuple[int, ...] | None:
    """Core dimensions of functions of matrices."""
    return (-2, -1) if not keywords and min(map(np.ndim, args)) >= 2 else None


def _of_singular_values(
    x: Any, full_matrices: Any = True, compute_uv: Any = True, *others: Any, **keywords: Any
) -> tuple[int, ...] | None:
    """Core dimensions of singular values, if no singular vectors are computed."""
    return None if compute_uv or others or keywords else (-2, -1)


for _primitive in (
    _primitive_var,
    _primitive_std,
    anp.prod,
    anp.max,
    anp.min,
    anp.amax,
    anp.amin,
    anp.cumsum,
):
    stacked(_primitive, along_axis)
_OF_MATRICES: Final = frozenset({linalg.inv, linalg.det, log_abs_det, linalg.cholesky, linalg.solve})
"""Functions of matrices of which several calls can be stacked into one."""
for _primitive in (*_OF_MATRICES, linalg.pinv):
    stacked(_primitive, _matrices)
for _primitive in (symmetric_eigenvalues, symmetric_eigenvectors, singular_values, singular_vectors):
    stacked(_primitive, lambda x, *_: (-2, -1))
solves_columns(linalg.solve, 1)
stacked(linalg.svd, _of_singular_values)
stacked(linalg._primitive_norm, _of_norm)  # noqa: SLF001 (linalg.norm itself only wraps it)
