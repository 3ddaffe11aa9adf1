"""Gradients inside a recorded function: both of their passes are recorded on the tape of that function.

autograd traces the function of an inner gradient by boxes of its own, whose operations take ten times as
long as those of ours. Here the variable of such a gradient is one more entry of the tape, and adjoints are
recorded from the result back to it.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd import differential_operators
from autograd.core import add_outgrads, primitive_vjps, vspace
from autograd.tracer import isbox, new_box, trace_stack

from tapesplit.arrays import DOUBLES, FLOAT64
from tapesplit.recording.boxes import FIRST, RECORDING, TapeBox, recorded
from tapesplit.recording.hidden import hidden_value_error, hides_box
from tapesplit.recording.nodes import OF_ADD, TapeNode
from tapesplit.recording.overrides import are_current, original_vjps
from tapesplit.recording.primitives import adjusted_side, inner_variable, slope_of_tanh
from tapesplit.recording.tape import Entries

__all__ = ["DIRECT_OPERATORS"]

_general_make_vjp = differential_operators._make_vjp  # by this name autograd's operators call it


def _make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return the VJP of a function at x, and its value, as autograd's function of this name does."""
    if type(x) not in RECORDING or x._entries is None or x._trace != trace_stack.top:
        # A trace above would hide what depends on this variable.
        return _general_make_vjp(lambda box: _visible(fun, box), x)
    entries = x._entries
    start = recorded(x, inner_variable, FIRST, (x._index,), (x._value,), x._value)._index
    value = _visible(fun, _box(entries, x._trace, start))
    node: Any = value._node if isbox(value) and value._trace == x._trace else None
    is_own = isinstance(node, TapeNode) and node.entries is entries
    depending = _depending(entries, start, node.index) if is_own else []
    if not depending:
        warnings.warn("Output seems independent of input.", stacklevel=2)
        return (lambda _g: vspace(x).zeros()), value
    steps = _steps_back(x, depending)
    return (lambda g: _pulled_back(steps, depending, g)), value


def _visible(fun: Callable[[Any], Any], box: Any) -> Any:
    """Return the value of a function; refuse one that hides traced values."""
    value = fun(box)
    if hides_box(value):
        raise hidden_value_error("a function that is differentiated inside of another")
    return value


_Step = tuple[int, Sequence[int], Any, tuple[Any, ...], Callable[..., Any] | None]
"""An entry, its active parents, direct rules or None, arguments of `_vjp_of`; its VJP if rules are None."""


def _depending(entries: Entries, start: int, end: int) -> list[int]:
    """Return the entries from a variable to a result that depend on it; none if the result does not."""
    found = {start}
    for index in range(start + 1, end + 1):
        _, _, parents, _, _, _ = entries.entry(index)
        if not found.isdisjoint(parents):
            found.add(index)
    return sorted(found) if end in found else []


def _steps_back(x: Any, depending: Sequence[int]) -> list[_Step]:
    """List the steps of a reverse pass from the last of some entries to the first, whatever the adjoint."""
    entries, trace, active = x._entries, x._trace, frozenset(depending)
    direct = _DIRECT if are_current(_ORIGINAL) else {}
    needed, steps = {depending[-1]}, list[_Step]()
    for index in reversed(depending[1:]):
        if index not in needed:  # nothing that the result depends on
            continue
        primitive, argnums, parents, args, kwargs, value = entries.entry(index)
        rules = None if kwargs else direct.get(primitive)
        operands = [None] * len(parents) if args is None else [*args]
        positions, behind = [], []
        for argnum, parent in zip(argnums, parents, strict=True):
            operands[argnum] = _box(entries, trace, parent)
            if parent in active:
                positions.append(argnum)
                behind.append(parent)
                if rules and not _are_alike(value, entries.value(parent)):
                    rules = None
        for argnum, fixed in _fixed(entries, index, len(operands)):
            box = _box(entries, trace, fixed)
            operands[argnum] = -box if primitive is adjusted_side else box
        needed.update(behind)
        call = (primitive, positions, _box(entries, trace, index), operands, kwargs)
        steps.append((index, behind, rules, call, None if rules else _vjp_of(*call)))
    return steps


def _fixed(entries: Entries, index: int, arity: int) -> list[tuple[int, int]]:
    """List the arguments of an entry that count as constants but are entries, by their numbers."""
    return [(i, entries.fixed[index, i]) for i in range(arity) if (index, i) in entries.fixed]


def _pulled_back(steps: Sequence[_Step], depending: Sequence[int], g: Any) -> Any:
    """Record the reverse pass from ``g``, an adjoint of the last of some entries, to the first of them."""
    number = np.float64(g) if type(g) is float else g[()] if _is_double(g) else g  # no array of one number
    adjoints: dict[int, tuple[Any, bool]] = {depending[-1]: (number, False)}
    for index, behind, rules, call, vjp in steps:
        g, _ = adjoints.pop(index)
        _, positions, ans, operands, _ = call
        if vjp is not None:
            found = vjp(g)
        elif _are_alike(ans._value, g._value if type(g) is TapeBox else g):
            found = [rules[argnum](g, ans, *operands) for argnum in positions]
        else:
            found = _vjp_of(*call)(g)
        for parent, adjoint in zip(behind, found, strict=True):
            adjoints[parent] = _added(adjoints[parent], adjoint) if parent in adjoints else _first(adjoint)
    return adjoints[depending[0]][0]


def _box(entries: Entries, trace: int, index: int) -> Any:
    """Return the box of an entry."""
    value = entries.value(index)
    if type(value) is np.float64 or type(value) is np.ndarray:
        box = TapeBox()
        box._value, box._trace, box._entries, box._index = value, trace, entries, index
        return box
    return new_box(value, trace, TapeNode.new_root(entries, index))


def _vjp_of(
    primitive: Any, argnums: Sequence[int], ans: Any, operands: Sequence[Any], kwargs: Any
) -> Callable[[Any], Sequence[Any]]:
    """Make the VJP of a call by autograd's rule; raise the same error as autograd if there is none."""
    make = primitive_vjps.get(primitive)
    if make is None:
        name = getattr(primitive, "__name__", primitive)
        raise NotImplementedError(f"VJP of {name} wrt argnums {(*argnums,)} not defined")
    vjp: Callable[[Any], Sequence[Any]] = make(tuple(argnums), ans, tuple(operands), kwargs)
    return vjp


def _are_alike(value: Any, other: Any) -> bool:
    """Tell whether both are numbers, or arrays of one shape, in double precision: nothing broadcasts."""
    if type(value) is np.float64:
        return type(other) in DOUBLES
    return _is_double(value) and _is_double(other) and value.shape == other.shape


def _is_double(value: Any) -> bool:
    """Tell whether a value is an array in double precision."""
    return type(value) is np.ndarray and (value.dtype is FLOAT64 or value.dtype == FLOAT64)


def _first(adjoint: Any) -> tuple[Any, bool]:
    """Return the first adjoint of a value, and whether it may be added to in place."""
    return (adjoint, False) if type(adjoint) is TapeBox else add_outgrads(None, adjoint)


def _added(known: tuple[Any, bool], adjoint: Any) -> tuple[Any, bool]:
    """Add an adjoint to the sum of earlier ones; return what `_first` does."""
    before, in_place = known
    if (
        type(before) is type(adjoint) is TapeBox
        and not in_place
        and _are_alike(before._value, adjoint._value)
        and are_current(OF_ADD)
    ):
        return before + adjoint, False
    return add_outgrads(known, adjoint)


def _slope_of_tanh(x: Any) -> Any:
    """Record the derivative of ``tanh``."""
    return recorded(x, slope_of_tanh, FIRST, (x._index,), (x._value,), slope_of_tanh.fun(x._value))


def _through_inverse(g: Any, ans: Any, _x: Any) -> Any:
    """Record the adjoints of a matrix by those of its inverse; autograd multiplies by ``einsum``."""
    transposed = anp.swapaxes(ans, -1, -2)
    return -anp.matmul(anp.matmul(transposed, g), transposed)


_DIRECT: Final[dict[Any, tuple[Callable[..., Any], ...]]] = {
    anp.add: (lambda g, _ans, _x, _y: g, lambda g, _ans, _x, _y: g),
    anp.subtract: (lambda g, _ans, _x, _y: g, lambda g, _ans, _x, _y: -g),
    anp.multiply: (lambda g, _ans, _x, y: g * y, lambda g, _ans, x, _y: g * x),
    anp.divide: (lambda g, _ans, _x, y: g / y, lambda g, ans, _x, y: -(g * ans / y)),
    anp.negative: (lambda g, _ans, _x: -g,),
    anp.exp: (lambda g, ans, _x: g * ans,),
    anp.log: (lambda g, _ans, x: g / x,),
    anp.sin: (lambda g, _ans, x: g * anp.cos(x),),
    anp.cos: (lambda g, _ans, x: -(g * anp.sin(x)),),
    anp.tanh: (lambda g, _ans, x: g * _slope_of_tanh(x),),
    anp.sqrt: (lambda g, ans, _x: g * 0.5 / ans,),
    anp.square: (lambda g, _ans, x: g * (2.0 * x),),
    anp.linalg.inv: (_through_inverse,),
}
"""Rules for the most frequent primitives, one for each argument, if operands have the result's shape."""
_ORIGINAL: Final = original_vjps(*_DIRECT, anp.cosh, anp.power, anp.einsum, anp.matmul, anp.swapaxes)
"""autograd's VJPs that these rules and `slope_of_tanh` stand for: if one is replaced, no rule is used."""

DIRECT_OPERATORS: Final[dict[str, Callable[..., Any]]] = {"_make_vjp": _make_vjp}
"""Functions that stand in for those of autograd's differential operators, by name."""
