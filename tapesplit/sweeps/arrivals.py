"""Arrivals: adjoints of rows that were carried together, told apart where they meet an end of the row part.

An argument that all rows share gets one adjoint for each direction, made of that direction's own row.
For elementwise operations it is as large as a row, and is computed at once. For products it may be larger:
their operands are kept, and multiplied when directions are asked for, maybe a few at a time.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from tapesplit.arrays import Shape
from tapesplit.recording.values import batch_shape
from tapesplit.rules import IndexMap
from tapesplit.rules.axes import real_like
from tapesplit.rules.contraction import AXES, FREE, contract, lengths_of
from tapesplit.rules.rows import RowAxes, SharedOperand
from tapesplit.structures.row_part import RowBlock, RowPiece
from tapesplit.structures.rows import aligned_axes
from tapesplit.sweeps.contractions import broadcast, contracted
from tapesplit.sweeps.directions import Rows

__all__ = ["Arrival", "Chosen", "Shared", "among_zeros", "looked_up", "summed"]

_PRODUCT, _DIRECTION = FREE
"""Index letters of `contract` for the products that are added up, and for directions."""


class Arrival(NamedTuple):
    """Adjoints of an end of the row part, in one block of directions.

    ``told_apart(pieces, directions)`` computes them for a range of directions that these pieces are part of.
    """

    end: int
    block: RowBlock
    told_apart: Callable[[Sequence[RowPiece], range], np.ndarray]

    def within(self, directions: range) -> Rows | None:
        """Return the adjoints in a range of directions, counted from its start; None if it has none."""
        own = range(max(directions.start, self.block.origin), min(directions.stop, self.block.stop))
        pieces = [*self.block.pieces(own.start, own.stop)]
        if not pieces:
            return None
        return Rows(own.start - directions.start, self.told_apart(pieces, own), owned=True)


class Chosen(NamedTuple):
    """Adjoints of all rows carried together, shape ``(each, *shape)``; ``axis`` of ``shape`` numbers rows."""

    adjoints: np.ndarray
    axis: int

    @classmethod
    def along(cls, adjoints: np.ndarray, axes: RowAxes) -> "Chosen":
        """Return adjoints of a value whose rows are counted along these axes, which become one."""
        if axes.are_several:
            adjoints = adjoints.reshape(len(adjoints), *axes.merged(adjoints.shape[1:]))
        return cls(adjoints, axes.first)

    def __call__(self, rows: slice, own: slice = slice(None)) -> np.ndarray:
        """Return the adjoints of some rows, in all or some (``own``) of the directions of a row."""
        return _part(self.adjoints[own], self.axis + 1, rows)


def _part(x: np.ndarray, axis: int, part: slice) -> np.ndarray:
    """Return part of an array along an axis."""
    return x[(slice(None),) * axis + (part,)]


def among_zeros(A: np.ndarray, axes: RowAxes, pieces: Sequence[RowPiece], directions: range) -> np.ndarray:
    """Return arrays ``(directions, *shape)``, each with the adjoints of one row and zeros in all others.

    ``axes`` of the value count rows; `A` has the adjoints of all of them, shape ``(each, *shape)``.
    """
    whole = A.shape[1:]
    A, axis = Chosen.along(A, axes)
    shape = A.shape[1:]
    found = np.zeros((len(directions), *shape), A.dtype)
    for piece in pieces:
        in_runs = A[piece.own].reshape(piece.runs, -1, *shape)
        chosen = np.moveaxis(in_runs, axis + 2, 0)[piece.rows]
        index = np.arange(len(chosen))
        place = found[piece.within(directions)].reshape(piece.runs, len(chosen), -1, *shape)
        np.moveaxis(place, axis + 3, 3)[:, index, :, piece.rows.start + index] = chosen
    return found.reshape(len(found), *whole)


def looked_up(
    A: np.ndarray, axes: RowAxes, moves: IndexMap, value: Any, pieces: Sequence[RowPiece], directions: range
) -> np.ndarray:
    """Return arrays ``(directions, *shape)``, adjoints of an argument of which rows take any elements.

    `A` has the adjoints of all rows of the result, whose ``axes`` count them; `moves` tells which elements of
    the argument, `value`, stand where in the result.
    """
    _, count, behind = axes.sizes(A.shape[1:])
    rows, flat = moves.targets // behind % count, A.reshape(len(A), -1)
    have_one_each = (np.diff(rows) > 0).all()
    found = np.zeros((len(directions), moves.size), A.dtype)
    for piece in pieces:
        chosen = np.flatnonzero((piece.rows.start <= rows) & (rows < piece.rows.stop))
        adjoints = flat[piece.own][:, moves.targets[chosen]]
        each, height = len(adjoints) // piece.runs, piece.rows.stop - piece.rows.start
        run, own = np.divmod(np.arange(len(adjoints))[:, None], each)
        direction = (run * height + rows[chosen] - piece.rows.start) * each + own
        index = direction * moves.size + moves.sources[chosen]
        place = found[piece.within(directions)].reshape(-1)
        if have_one_each:
            place[index] = adjoints
        else:
            np.add.at(place, index.ravel(), adjoints.ravel())
    return real_like(found, value).reshape(len(found), *batch_shape(value))


def _in_order(
    told_apart: Callable[[slice, slice], np.ndarray], pieces: Sequence[RowPiece], directions: range
) -> np.ndarray:
    """Return arrays ``(directions, *shape)``, from those that are told apart for the rows of each piece.

    ``told_apart(rows, own)`` computes them for a range of rows and, in each row, a range of its own
    directions, shape ``(rows, own, *shape)``.
    """
    rows: np.ndarray | None = None
    for piece in pieces:
        found = told_apart(piece.rows, piece.own)
        count, each, *shape = found.shape
        in_order = found.reshape(count, piece.runs, each // piece.runs, *shape).swapaxes(0, 1)
        if count * each == len(directions):
            return in_order.reshape(count * each, *shape)
        if rows is None:
            rows = np.zeros((len(directions), *shape), found.dtype)
        rows[piece.within(directions)].reshape(in_order.shape)[...] = in_order
    return rows  # type: ignore[return-value] # there are pieces


def summed(
    chosen: Chosen,
    derivative: Any,
    row_axes: RowAxes,
    axes: tuple[Shape, str, str],
    shape: Shape,
    rows: slice,
) -> np.ndarray:
    """Multiply the adjoints of some rows by derivatives, and sum over axes that an argument does not have.

    `row_axes` are those of what is summed, and `axes` is from `ClusterStep.axes`. The result has shape
    ``(rows, each, *shape)``.
    """
    space, given, kept = axes
    axis, derivative = row_axes.first, np.asarray(derivative)
    if row_axes.are_several:
        merged = row_axes.merged(space)
        space, derivative = merged, broadcast(derivative, space).reshape(merged)
        given, kept = (_merged_letters(end, row_axes) for end in (given, kept))
    A = chosen(rows)
    own = aligned_axes(space, RowAxes(axis, axis + 1), derivative.shape)
    if own is not None:
        derivative = _part(derivative, own.first, rows)
    count = A.shape[chosen.axis + 1]
    row = AXES[axis]
    own_row = row if count > 1 else ""  # axes of length one have no letters
    space = (*space[:axis], count, *space[axis + 1 :])
    ends = (kept.replace(row, own_row), own_row + given)
    return contracted(Rows(0, A), derivative, space, ends, (count, *shape)).dense().rows.swapaxes(0, 1)


def _merged_letters(end: str, axes: RowAxes) -> str:
    """Name the axes of an array anew where those of rows become one."""
    numbers = [AXES.index(letter) for letter in end]
    merged = [i if i <= axes.first else max(axes.first, i + 1 + axes.first - axes.stop) for i in numbers]
    return "".join(AXES[i] for i in dict.fromkeys(merged))


class _Factors(NamedTuple):
    """Adjoints of a product, and its other operands."""

    adjoints: Chosen
    others: tuple[np.ndarray, ...]


class Shared:
    """Collects the adjoints of arguments that all rows share; in a loop, many calls contribute to each."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self.sums: dict[tuple[int, RowBlock], np.ndarray] = {}
        self.products: dict[tuple[int, RowBlock, SharedOperand, tuple[Shape, ...]], list[_Factors]] = {}

    def add_up(self, parent: int, block: RowBlock, found: np.ndarray) -> None:
        """Add the adjoints that an elementwise operation passes to an argument, for all rows of a block."""
        key, found = (parent, block), real_like(found, self.values[parent])
        known = self.sums.get(key)
        if known is not None and np.can_cast(found.dtype, known.dtype):
            known += found  # in place, as three of these arrays may exceed a limit
        else:
            self.sums[key] = found if known is None else known + found

    def multiply(
        self,
        parent: int,
        block: RowBlock,
        reading: SharedOperand,
        chosen: Chosen,
        others: tuple[np.ndarray, ...],
    ) -> None:
        """Note a product for later; those of the same argument and form will be computed as one."""
        key = (parent, block, reading, tuple(other.shape for other in others))
        self.products.setdefault(key, []).append(_Factors(chosen, others))

    def arrivals(self) -> list[Arrival]:
        """Return all adjoints that were collected."""
        sums = [
            (parent, block, partial(_stored, found, block.first))
            for (parent, block), found in self.sums.items()
        ]
        products = [
            (parent, block, partial(_multiplied, factors, reading, self.values[parent]))
            for (parent, block, reading, _), factors in self.products.items()
        ]
        return [Arrival(end, block, partial(_in_order, by_rows)) for end, block, by_rows in sums + products]


def _stored(found: np.ndarray, first: int, rows: slice, own: slice) -> np.ndarray:
    """Look up adjoints of some rows in ``found``, which has those from row ``first`` on."""
    return found[rows.start - first : rows.stop - first, own]


def _multiplied(
    factors: list[_Factors], reading: SharedOperand, value: Any, rows: slice, own: slice
) -> np.ndarray:
    """Multiply adjoints of some rows by the same rows of the other operands, and add all products up."""
    places = [term.find(reading.row) for term in reading.of_others]
    terms = (_DIRECTION + reading.of_result, *reading.of_others)
    result = reading.row + _DIRECTION + reading.of_operand
    known = [
        (
            chosen(rows, own),
            *(_part(x, i, rows) if i >= 0 else x for x, i in zip(others, places, strict=True)),
        )
        for chosen, others in factors
    ]
    lengths = lengths_of(zip(terms, map(np.shape, known[0]), strict=True))
    made, read = prod(lengths[letter] for letter in result), max(1, sum(map(np.size, known[0])))
    if made >= _MANY_TIMES * read:
        known = [_row_by_row(terms, operands, reading.row) for operands in known]
        terms = tuple(
            reading.row + term.replace(reading.row, "") if reading.row in term else term for term in terms
        )
    together = max(1, max(_TOGETHER, made) // read)
    order: Literal["K", "C"] = "C" if lengths[_DIRECTION] > 1 else "K"  # to be reshaped without a copy
    parts = [known[first : first + together] for first in range(0, len(known), together)]
    total = _sum_of_products(terms, parts[0], result, order)
    if len(parts) > 1:
        total = np.array(total)  # it may be a view of an operand
    for part in parts[1:]:
        total += _sum_of_products(terms, part, result, order)
    return real_like(total, value)


def _row_by_row(terms: Sequence[str], operands: Sequence[np.ndarray], row: str) -> tuple[np.ndarray, ...]:
    """Move the axis of rows to the front, in memory as well, so that products are made in that order."""
    places = [term.find(row) for term in terms]
    return tuple(
        np.ascontiguousarray(np.moveaxis(x, place, 0)) if place > 0 else x
        for x, place in zip(operands, places, strict=True)
    )


def _sum_of_products(
    terms: tuple[str, ...], known: list[tuple[np.ndarray, ...]], result: str, order: Literal["K", "C"]
) -> np.ndarray:
    """Add up products of the same form, by one sum if there are several."""
    if len(known) == 1:
        return contract(terms, known[0], result, order)
    stacked = [np.stack(operands) for operands in zip(*known, strict=True)]
    return contract(tuple(_PRODUCT + term for term in terms), stacked, result, order)


_MANY_TIMES: Final = 5
"""Elements of a result for each one of its operands from which on these are put in its order: what adds up
products of 2000 rows, of 20 by 20 elements each, is then four times as fast. With three it saves nothing."""
_TOGETHER: Final = 2**14
"""Elements of operands up to which products are stacked into one, or as many as the result has if that is
more; further products are added to it."""
