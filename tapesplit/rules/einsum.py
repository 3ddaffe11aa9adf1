"""The rule of ``einsum``: with an extra index for directions, tangents and adjoints are such sums as well.

How a call is parsed depends on subscripts and shapes only. Parsing takes longer than many a small sum, so its
results are cached.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from string import ascii_letters
from typing import Any, Final, NamedTuple

import autograd.numpy as anp
import numpy as np

from tapesplit.arrays import Shape
from tapesplit.rules.axes import real_like
from tapesplit.rules.contraction import KEPT, contract, held_between, lengths_of, products
from tapesplit.rules.low_rank import Factors, factored, summed
from tapesplit.rules.registry import Held, bulk

__all__ = ["splits"]

_MOST_ARGUMENTS: Final = 12
"""Positional arguments with a vector rule; those behind take the loop."""


class _Call(NamedTuple):
    """An einsum call without ellipsis and without axes of length one that broadcast.

    ``free`` are letters that it does not use, for directions and for the rank of factors.
    """

    terms: tuple[str, ...]
    shapes: tuple[Shape, ...]
    output: str
    free: str


def _read(args: tuple[Any, ...]) -> tuple[_Call, list[Any]]:
    """Bring both calling conventions, with letters and with lists of numbers, into one form, see `_Call`."""
    if isinstance(args[0], str):
        subscripts: tuple[Any, ...] = (args[0],)
        operands = args[1:]
    else:
        pairs = len(args) // 2 * 2
        subscripts, operands = tuple(map(tuple, (*args[1::2], *args[pairs:]))), args[:pairs:2]
    shapes = tuple(map(np.shape, operands))
    call = _parsed(subscripts, shapes)
    return call, list(operands if call.shapes == shapes else map(np.reshape, operands, call.shapes))


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
    free = "".join(letter for letter in ascii_letters if letter not in inputs)[:2]
    known = [*zip(inputs.split(","), shapes, strict=True)]
    lengths = lengths_of(known)
    full = [[(i, n) for i, n in zip(*operand, strict=True) if n == lengths[i]] for operand in known]
    terms = tuple("".join(letter for letter, _ in axes) for axes in full)
    return _Call(terms, tuple(tuple(n for _, n in axes) for axes in full), output, free)


def _place(args: tuple[Any, ...], argnum: int) -> int:
    """Return the position among the operands of an argument."""
    return argnum - 1 if isinstance(args[0], str) else argnum // 2


def _tangent(argnum: int) -> Callable[..., Any]:
    """Make the tangent function of one argument: the same sum, with the tangents in its place."""

    def tangent(T: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> Any:
        call, operands = _read(args)
        if not call.free or not kwargs.keys() <= {"optimize"}:
            return NotImplemented
        active, terms = _place(args, argnum), list(call.terms)
        operands[active] = T.reshape(len(T), *call.shapes[active])
        terms[active] = call.free[0] + terms[active]
        return contract(tuple(terms), operands, call.free[0] + call.output)

    return tangent


def _adjoint(argnum: int) -> Callable[..., Any]:
    """Make the adjoint function of one argument: adjoints take its place, its letters become the result."""

    def adjoint(A: Factors | np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> Any:
        call, operands = _read(args)
        if not call.free or not kwargs.keys() <= {"optimize"}:
            return NotImplemented
        active = _place(args, argnum)
        others, lengths, distinct = _backward(call, active)
        operand = operands.pop(active)
        if isinstance(A, Factors):
            terms, arrays = A.terms(call.output, *call.free)
        else:
            terms, arrays = [call.free[0] + call.output], [A]
        ones = [np.ones(n, arrays[0].dtype) for n in lengths]
        rows = contract((*terms, *others), [*arrays, *operands, *ones], call.free[0] + distinct)
        rows = real_like(_on_diagonal(rows, distinct, call.terms[active], call.shapes[active]), operand)
        return rows.reshape(len(rows), *np.shape(args[argnum]))

    return adjoint


@lru_cache(KEPT)
def _backward(call: _Call, active: int) -> tuple[tuple[str, ...], tuple[int, ...], str]:
    """Find the sum that computes the adjoint of one operand from that of the result.

    Returns
    -------
    terms, ones, distinct
        Terms of the other operands, followed by those of vectors of ones; the lengths of these vectors; the
        distinct indices of the operand, which are the output of the sum.
    """
    sizes = dict(zip(call.terms[active], call.shapes[active], strict=True))
    distinct = "".join(sizes)
    others = (*call.terms[:active], *call.terms[active + 1 :])
    # Adjoints do not depend on an index that this operand alone has: a vector of ones repeats them along it.
    alone = [letter for letter in distinct if letter not in "".join((call.output, *others))]
    return (*others, *alone), tuple(sizes[letter] for letter in alone), distinct


def _on_diagonal(rows: np.ndarray, distinct: str, target: str, shape: Shape) -> np.ndarray:
    """Put the adjoints of repeated indices on the diagonal."""
    if distinct == target:
        return rows
    full = np.zeros((len(rows), *shape), rows.dtype)
    for direction, row in zip(full, rows, strict=True):
        np.einsum(f"{target}->{distinct}", direction)[...] = row
    return full


def _of_elements(argnum: int) -> Callable[..., Any]:
    """Make the function that returns derivatives of elements of a vector by one operand, as factors."""

    def of_elements(places: slice, ans: Any, *args: Any, **kwargs: Any) -> Any:
        call, operands = _read(args)
        active = _place(args, argnum)
        sides = _sides(call.terms, active, call.output)
        if sides is None or not call.free or not kwargs.keys() <= {"optimize"}:
            return NotImplemented
        dtype = np.result_type(ans)
        return Factors(*(_side(call, operands, active, i, sides[i], places, dtype) for i in (0, 1)))

    return of_elements


def splits(subscripts: str, active: int) -> bool:
    """Tell whether each element of a sum, a vector, depends on one operand, a matrix, by an outer product.

    Examples
    --------
    >>> splits("ij,jk,ik->i", 1), splits("ij,kij->k", 0)
    (True, False)
    """
    inputs, _, output = subscripts.replace(" ", "").partition("->")
    return "." not in inputs and _sides(tuple(inputs.split(",")), active, output) is not None


def _side(
    call: _Call,
    operands: Sequence[Any],
    active: int,
    axis: int,
    side: tuple[int, ...],
    places: slice,
    dtype: np.dtype,
) -> np.ndarray:
    """Return one factor: the product of all operands on the side of one axis of a matrix."""
    letter, length = call.terms[active][axis], call.shapes[active][axis]
    terms, arrays = [call.terms[i] for i in side], [operands[i] for i in side]
    if letter == call.output:
        terms, arrays, over = (
            [*terms, call.free[0] + letter],
            [*arrays, np.eye(length, dtype=dtype)],
            call.free[0],
        )
    else:
        over = call.output if call.output in "".join(terms) else ""
        if letter not in "".join(terms):
            terms, arrays = [*terms, letter], [*arrays, np.ones(length, dtype)]
    matrix = contract(tuple(terms), arrays, over + letter)
    return matrix[places][:, None] if over else matrix[None, None]


@lru_cache(KEPT)
def _sides(
    terms: tuple[str, ...], active: int, output: str
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Split the other operands into those that belong to one axis of a matrix and to the other.

    None if each element of the result, a vector, needs a sum of more than one product of two vectors.

    Examples
    --------
    >>> _sides(("jk", "ij", "ik"), 0, "i"), _sides(("ij", "ji"), 1, "i"), _sides(("jk", "ijk"), 0, "i")
    (((1,), (2,)), ((0,), ()), None)
    """
    term = terms[active]
    if len(output) != 1 or len({*term}) != 2 or len(term) != 2:
        return None
    sides: list[tuple[int, ...]] = []
    for letter in term:
        reached = {letter} - {output}
        side: set[int] = set()
        before = -1
        while before < len(side):
            before = len(side)
            side = {i for i, other in enumerate(terms) if i != active and reached & {*other}}
            reached = reached.union(*(terms[i] for i in side)) - {output}
        sides.append(tuple(sorted(side)))
    first, last = sides
    rest = tuple(i for i in range(len(terms)) if i != active and i not in first and i not in last)
    return None if {*first} & {*last} else (first + rest, last)


def _edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E|: one edge for each product of elements in the pairs of operands, for each active one."""
    call, _ = _read(args)
    return products(call.terms, call.shapes, call.output) * len(argnums)


_MANY: Final = 16
"""Directions for which `_held` counts, to divide by: with few, a sum may be one loop, which holds nothing."""


def _held(args: tuple[Any, ...], argnum: int, *, adjoint_mode: bool) -> Held:
    """Count what is held between the pairs of operands; pairs without directions share it."""
    call, _ = _read(args)
    if not call.free:
        return Held(0, 0)
    active, letter = _place(args, argnum), call.free[0]
    others = (*call.shapes[:active], *call.shapes[active + 1 :])
    if adjoint_mode:
        terms, ones, result = _backward(call, active)
        lengths = lengths_of(zip(call.terms, call.shapes, strict=True))
        swept, shape = call.output, tuple(map(lengths.__getitem__, call.output))
        others += tuple((n,) for n in ones)
    else:
        terms, result = (*call.terms[:active], *call.terms[active + 1 :]), call.output
        swept, shape = call.terms[active], call.shapes[active]
    known = (letter + swept, *terms), ((_MANY, *shape), *others)
    swept_too, shared = held_between(*known, letter + result)
    return Held(swept_too // _MANY, shared)


bulk(
    anp.einsum,
    tangents=[_tangent(argnum) for argnum in range(_MOST_ARGUMENTS)],
    adjoints=[_adjoint(argnum) for argnum in range(_MOST_ARGUMENTS)],
    edges=_edges,
    held=_held,
    steps=3,
)
for _argnum in range(_MOST_ARGUMENTS):
    factored(anp.einsum, _argnum, _adjoint(_argnum), summed, _of_elements(_argnum))
