"""Rows: calls that do the same to each row of their arguments. Rows are indices of one axis, or of a grid.

If samples are in rows, most calls keep them apart: a row of the result depends on the same row of some
arguments, and on the whole of others that all rows share, such as the weights of a layer.
"""

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from tapesplit.arrays import Shape
from tapesplit.recording.overrides import is_overridden
from tapesplit.recording.tape import TapeEntry
from tapesplit.rules.contraction import AXES
from tapesplit.rules.local import sum_of_products
from tapesplit.rules.local_products import SumOfProducts
from tapesplit.rules.reductions import is_reduction
from tapesplit.rules.registry import Bulk
from tapesplit.rules.stacks import matching_loop_axes

__all__ = ["MovedRows", "Reading", "RowAxes", "SharedOperand", "readings"]


class RowAxes(NamedTuple):
    """Axes of an array, from ``first`` to before ``stop``, whose indices count its rows: mostly a single one.

    Examples
    --------
    >>> RowAxes(0, 2).sizes((15, 20, 3)), RowAxes(0, 2).merged((15, 20, 3))
    ((1, 300, 3), (300, 3))
    """

    first: int
    stop: int

    @classmethod
    def over(cls, axes: Sequence[int]) -> "RowAxes | None":
        """Return the axes as a range; None if they do not follow each other."""
        first, stop = axes[0], axes[0] + len(axes)
        return cls(first, stop) if [*axes] == [*range(first, stop)] else None

    @property
    def are_several(self) -> bool:
        """Whether rows are those of a grid."""
        return self.stop - self.first > 1

    def sizes(self, shape: Shape) -> tuple[int, int, int]:
        """Count the elements along the axes before, the rows, and the elements along the axes behind."""
        return prod(shape[: self.first]), prod(shape[self.first : self.stop]), prod(shape[self.stop :])

    def merged(self, shape: Shape) -> Shape:
        """Return the shape with one axis for all rows, the axis ``first``."""
        return (*shape[: self.first], prod(shape[self.first : self.stop]), *shape[self.stop :])


class SharedOperand(NamedTuple):
    """The contraction that finds, for each row, the adjoints of an operand that all rows share.

    ``others`` are the argument numbers of the other operands; ``merged`` are those of their axes that count
    the rows of a grid, None if there are none, and empty without a grid. ``of_others``, ``of_result`` and
    ``of_operand`` have a letter for each axis; rows, even of a grid, have one for all their axes: ``row``.
    """

    others: tuple[int, ...]
    merged: tuple[RowAxes | None, ...]
    of_others: tuple[str, ...]
    of_result: str
    of_operand: str
    row: str

    def operands(self, args: Sequence[Any]) -> tuple[np.ndarray, ...]:
        """Return the other operands, given all arguments, with one axis for rows."""
        found = [args[number] for number in self.others]
        for place, rows in enumerate(self.merged):
            if rows:
                found[place] = found[place].reshape(rows.merged(found[place].shape))
        return tuple(found)


class MovedRows(NamedTuple):
    """Row i of the result is row i + ``shift`` of the argument along ``axes``, from ``start`` to ``stop``."""

    axes: RowAxes
    shift: int
    start: int
    stop: int


Reading: TypeAlias = RowAxes | SharedOperand | MovedRows | Literal["opened", "looked up"]
"""How an argument is read. `RowAxes` are those along which its rows are the rows of the result; `MovedRows`
says that some of them are, `SharedOperand` that all rows share it, "opened" that each element becomes a
row, "looked up" that rows take elements from anywhere."""


def readings(entry: TapeEntry, rule: Bulk, axes: RowAxes) -> tuple[RowAxes | SharedOperand, ...] | None:
    """Tell how a call that is neither elementwise nor a movement reads each active argument.

    `axes` are those of the result that count rows. None if rows do not stay apart, or if nothing is known
    of that.
    """
    arrays = [entry.value, *(entry.args[argnum] for argnum in entry.argnums)]
    is_known = rule.built_in and not is_overridden(entry.primitive)
    if not is_known or any(type(x) is not np.ndarray or not x.ndim for x in arrays):
        return None
    product = sum_of_products(entry)
    if product is None:
        return _along_axes(entry, rule, axes)
    found = [_of_product(entry, argnum, axes, product) for argnum in entry.argnums]
    return None if None in found else tuple(found)  # type: ignore[arg-type] # there is none


def _of_product(
    entry: TapeEntry, argnum: int, axes: RowAxes, product: SumOfProducts
) -> RowAxes | SharedOperand | None:
    """Tell how a product reads one of its operands."""
    if argnum not in product.numbers:
        return axes  # added to the product
    numbers, labels = product.numbers, (*product.labels, product.of_result)
    values = (*(entry.args[number] for number in numbers), entry.value)
    if any(np.ndim(x) != len(axes) for x, axes in zip(values, labels, strict=True)):
        return None  # an axis of length one that is broadcast
    if len(product.sizes) > len(AXES):
        return None
    names = dict(zip(product.sizes, AXES, strict=False))
    *of_operands, of_result = ("".join(names[label] for label in axes) for axes in labels)
    of_number = dict(zip(numbers, of_operands, strict=True))
    rows = of_result[axes.first : axes.stop]
    if not all(rows in term or {*rows}.isdisjoint(term) for term in of_operands):
        return None  # some axes of a grid, or in another order
    own = of_number.pop(argnum)
    if rows in own:
        return _place(own, rows)
    is_alone = not {*own} <= {*of_result, *chain(*of_number.values())}  # summed over an index of its own
    if is_alone or any(type(entry.args[number]) is not np.ndarray for number in of_number):
        return None
    merged = tuple(_place(term, rows) for term in of_number.values()) if axes.are_several else ()
    *of_others, of_result = (term.replace(rows, rows[0]) for term in (*of_number.values(), of_result))
    return SharedOperand(tuple(of_number), merged, tuple(of_others), of_result, own, rows[0])


def _place(term: str, rows: str) -> RowAxes | None:
    """Return the axes of rows in an operand, None if it has none of them."""
    first = term.find(rows)
    return None if first < 0 else RowAxes(first, first + len(rows))


def _along_axes(entry: TapeEntry, rule: Bulk, axes: RowAxes) -> tuple[RowAxes, ...] | None:
    """Return, for a call that is no product, along which axes of each argument rows stay apart, or None."""
    if is_reduction(rule) and rule.weigh is not None:
        with np.errstate(all="ignore"):
            found = rule.weigh(entry.value, *entry.args, **entry.kwargs)
        if found is not None:
            x = entry.args[found.argnum]
            kept = [a for a in range(x.ndim) if entry.value.ndim == x.ndim or a not in found.axes]
            own = RowAxes.over(kept[axes.first : axes.stop])
            if own is None or entry.argnums != (found.argnum,) or {*range(*own)} & {*found.axes}:
                return None
            return (own,)
    by_axis = [loops for axis in range(*axes) if (loops := matching_loop_axes(entry, axis))]
    matching = tuple(own for loops in zip(*by_axis, strict=True) if (own := RowAxes.over(loops)))
    is_whole = len(by_axis) == axes.stop - axes.first and len(matching) == len(entry.argnums)
    return matching if is_whole else None
