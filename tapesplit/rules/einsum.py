"""Sums over products of indexed arrays: an extra index for the directions turns one into its derivatives.

How a call is read depends on subscripts and shapes only. Finding it out takes longer than many a small sum,
so it is kept.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from string import ascii_letters
from typing import Any, Final, NamedTuple

import autograd.numpy as anp
import numpy as np

from tapesplit.rules.axes import real_like
from tapesplit.rules.contraction import KEPT, Shape, contract, lengths_of, products
from tapesplit.rules.registry import bulk

_MOST_ARGUMENTS: Final = 12
"""Positional arguments with a vector rule; those behind take the loop."""


class _Call(NamedTuple):
    """An einsum call without ellipsis; ``free`` is a letter that it does not use, if there is one."""

    terms: tuple[str, ...]
    shapes: tuple[Shape, ...]
    output: str
    free: str

    @property
    def sizes(self) -> dict[str, int]:
        """Length of each index; axes of length one broadcast."""
        return lengths_of(zip(self.terms, self.shapes, strict=True))


class _Adjoint(NamedTuple):
    """The sum that is the adjoint of a call by one operand.

    Vectors of ones are added to the other operands. The result has the ``distinct`` indices of the operand,
    with axes of the lengths ``folded``.
    """

    terms: tuple[str, ...]
    output: str
    ones: tuple[int, ...]
    distinct: str
    folded: Shape


def _read(args: tuple[Any, ...]) -> tuple[_Call, list[Any]]:
    """Bring both calling conventions, with letters and with lists of numbers, into one form."""
    if isinstance(args[0], str):
        subscripts: tuple[Any, ...] = (args[0],)
        operands = args[1:]
    else:
        pairs = len(args) // 2 * 2
        subscripts, operands = tuple(map(tuple, (*args[1::2], *args[pairs:]))), args[:pairs:2]
    return _parsed(subscripts, tuple(map(np.shape, operands))), list(operands)


@lru_cache(KEPT)
def _parsed(subscripts: tuple[Any, ...], shapes: tuple[Shape, ...]) -> _Call:
    """Read the subscripts of a call."""
    arrays = [np.broadcast_to(0.0, shape) for shape in shapes]
    if isinstance(subscripts[0], str):
        args = [subscripts[0], *arrays]
    else:
        pairs = zip(arrays, subscripts, strict=False)
        args = [*chain.from_iterable(pairs), *subscripts[len(arrays) :]]
    inputs, output, _ = anp.parse_einsum_input(*args)
    free = next((letter for letter in ascii_letters if letter not in inputs), "")
    return _Call(tuple(inputs.split(",")), shapes, output, free)


def _place(args: tuple[Any, ...], argnum: int) -> int:
    """Return which of the operands an argument is."""
    return argnum - 1 if isinstance(args[0], str) else argnum // 2


def _tangent(argnum: int) -> Callable[..., Any]:
    """Make the tangent function of one argument: the same sum, with the tangents in its place."""

    def tangent(T: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> Any:
        call, operands = _read(args)
        if not call.free or not kwargs.keys() <= {"optimize"}:
            return NotImplemented
        active, terms = _place(args, argnum), list(call.terms)
        operands[active] = T
        terms[active] = call.free + terms[active]
        return contract(tuple(terms), operands, call.free + call.output)

    return tangent


def _adjoint(argnum: int) -> Callable[..., Any]:
    """Make the adjoint function of one argument: adjoints take its place, its letters become the result."""

    def adjoint(A: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> Any:
        call, operands = _read(args)
        if not call.free or not kwargs.keys() <= {"optimize"}:
            return NotImplemented
        active = _place(args, argnum)
        back, target = _backward(call, active), call.terms[active]
        operand = operands.pop(active)
        rows = contract(back.terms, [A, *operands, *(np.ones(n, A.dtype) for n in back.ones)], back.output)
        rows = rows.reshape(len(A), *back.folded)
        return real_like(_on_diagonal(rows, back.distinct, target, call.shapes[active]), operand)

    return adjoint


@lru_cache(KEPT)
def _backward(call: _Call, active: int) -> _Adjoint:
    """Find the sum that is the adjoint of a call by one operand."""
    target, shape, sizes = call.terms[active], call.shapes[active], call.sizes
    distinct = "".join(dict.fromkeys(target))
    folded = tuple(shape[target.index(letter)] for letter in distinct)
    # An axis of length one that broadcasts collects the sum over its index.
    kept = [letter for letter, n in zip(distinct, folded, strict=True) if n == sizes[letter]]
    others = [*call.terms[:active], *call.terms[active + 1 :]]
    lengths = zip("".join(others), chain(*call.shapes[:active], *call.shapes[active + 1 :]), strict=True)
    full = {letter for letter, n in lengths if n == sizes[letter]}.union(call.output)
    # An index that this operand alone has in its full length comes back by broadcasting ones.
    alone = [letter for letter in kept if letter not in full]
    terms = (call.free + call.output, *others, *alone)
    return _Adjoint(terms, call.free + "".join(kept), tuple(sizes[n] for n in alone), distinct, folded)


def _on_diagonal(rows: np.ndarray, distinct: str, target: str, shape: Shape) -> np.ndarray:
    """Put the adjoints of repeated indices on the diagonal."""
    if distinct == target:
        return rows
    full = np.zeros((len(rows), *shape), rows.dtype)
    for direction, row in zip(full, rows, strict=True):
        np.einsum(f"{target}->{distinct}", direction)[...] = row
    return full


def _edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E|: one edge for each product of elements in the pairs of operands, for each active one."""
    call, _ = _read(args)
    return products(call.terms, call.shapes, call.output) * len(argnums)


bulk(
    anp.einsum,
    tangents=[_tangent(argnum) for argnum in range(_MOST_ARGUMENTS)],
    adjoints=[_adjoint(argnum) for argnum in range(_MOST_ARGUMENTS)],
    edges=_edges,
    steps=3,
)
