"""Sums over products of indexed arrays: an extra index for the directions turns one into its derivatives."""

from collections.abc import Callable
from itertools import chain
from math import prod
from string import ascii_letters
from typing import Any, Final, NamedTuple

import autograd.numpy as anp
import numpy as np

from tapesplit.rules.axes import real_like
from tapesplit.rules.registry import bulk

_MOST_ARGUMENTS = 12


class _Call(NamedTuple):
    """An einsum call without ellipsis; ``free`` is a letter that it does not use, if there is one."""

    terms: list[str]
    operands: list[Any]
    output: str
    free: str
    active: int

    @property
    def sizes(self) -> dict[str, int]:
        """Length of each index; axes of length one broadcast."""
        sizes: dict[str, int] = {}
        for term, operand in zip(self.terms, self.operands, strict=True):
            for letter, n in zip(term, np.shape(operand), strict=True):
                sizes[letter] = n if sizes.get(letter, 1) == 1 else sizes[letter]
        return sizes


def _parsed(args: tuple[Any, ...], argnum: int) -> _Call:
    """Bring both calling conventions, with letters and with lists of numbers, into one form."""
    inputs, output, operands = anp.parse_einsum_input(*args)
    free = next((letter for letter in ascii_letters if letter not in inputs), "")
    active = argnum - 1 if isinstance(args[0], str) else argnum // 2
    return _Call(inputs.split(","), list(operands), output, free, active)


def _tangent(argnum: int) -> Callable[..., Any]:
    """Make the tangent function of one argument: the same sum, with the tangents in its place."""

    def tangent(T: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> Any:
        call = _parsed(args, argnum)
        if not call.free or not set(kwargs) <= {"optimize"}:
            return NotImplemented
        call.operands[call.active] = T
        call.terms[call.active] = call.free + call.terms[call.active]
        return _einsum(call.terms, call.operands, call.free + call.output)

    return tangent


def _adjoint(argnum: int) -> Callable[..., Any]:
    """Make the adjoint function of one argument: adjoints take its place, its letters become the result."""

    def adjoint(A: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> Any:
        call = _parsed(args, argnum)
        if not call.free or not set(kwargs) <= {"optimize"}:
            return NotImplemented
        target, shape, sizes = call.terms[call.active], np.shape(call.operands[call.active]), call.sizes
        distinct = "".join(dict.fromkeys(target))
        # An axis of length one that broadcasts collects the sum over its index.
        kept = "".join(letter for letter in distinct if shape[target.index(letter)] == sizes[letter])
        terms = [call.free + call.output, *call.terms[: call.active], *call.terms[call.active + 1 :]]
        operands = [A, *call.operands[: call.active], *call.operands[call.active + 1 :]]
        # An index that this operand alone has in its full length comes back by broadcasting ones.
        lengths = zip("".join(terms), chain.from_iterable(map(np.shape, operands)), strict=True)
        for letter in set(kept).difference(letter for letter, n in lengths if n == sizes.get(letter)):
            terms.append(letter)
            operands.append(np.ones(sizes[letter], A.dtype))
        rows = _einsum(terms, operands, call.free + kept)
        rows = rows.reshape(len(A), *(shape[target.index(letter)] for letter in distinct))
        return real_like(_on_diagonal(rows, distinct, target, shape), call.operands[call.active])

    return adjoint


def _on_diagonal(rows: np.ndarray, distinct: str, target: str, shape: tuple[int, ...]) -> np.ndarray:
    """Put the adjoints of repeated indices on the diagonal."""
    if distinct == target:
        return rows
    full = np.zeros((len(rows), *shape), rows.dtype)
    for direction, row in zip(full, rows, strict=True):
        np.einsum(f"{target}->{distinct}", direction)[...] = row
    return full


def _einsum(terms: list[str], operands: list[Any], output: str) -> np.ndarray:
    """Sum the product of some operands, pairwise if there are several; none of them in less precision."""
    precision = np.finfo(np.result_type(np.float16, *operands)).dtype
    precise = [np.asarray(operand, np.result_type(operand, precision)) for operand in operands]
    sizes = dict(
        chain.from_iterable(zip(t, x.shape, strict=True) for t, x in zip(terms, precise, strict=True))
    )
    # Looking for the best order takes longer than a small sum, and than a product that sums nothing.
    optimize = len(operands) > 1 and prod(sizes.values()) > _SMALL and not sizes.keys() <= set(output)
    return np.einsum(",".join(terms) + "->" + output, *precise, optimize=optimize)


_SMALL: Final = 2000
"""Products of elements."""


def _edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E|: one edge for each product of elements, for each active operand."""
    return prod(_parsed(args, argnums[0]).sizes.values()) * len(argnums)


bulk(
    anp.einsum,
    tangents=[_tangent(argnum) for argnum in range(_MOST_ARGUMENTS)],
    adjoints=[_adjoint(argnum) for argnum in range(_MOST_ARGUMENTS)],
    edges=_edges,
)
