"""Rows: calls that do the same to each row of their arguments; rows are the indices of one axis.

If samples are in rows, most calls keep them apart: a row of the result depends on the same row of some
arguments, and on the whole of others that all rows share, such as the weights of a layer.
"""

from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

import autograd.numpy as anp
import numpy as np

from tapesplit.recording.overrides import is_overridden
from tapesplit.recording.tape import TapeEntry
from tapesplit.rules.contraction import AXES
from tapesplit.rules.local import sum_of_products
from tapesplit.rules.local_products import SumOfProducts
from tapesplit.rules.reductions import is_reduction
from tapesplit.rules.registry import Bulk
from tapesplit.rules.stacks import matching_loop_axes

__all__ = ["MovedRows", "Reading", "SharedOperand", "readings"]


class SharedOperand(NamedTuple):
    """The contraction that finds, for each row, the adjoints of an operand that all rows share.

    ``others`` are the argument numbers of the other operands. ``of_others``, ``of_result`` and ``of_operand``
    have a letter for each axis; the axis of rows has the letter ``row``.
    """

    others: tuple[int, ...]
    of_others: tuple[str, ...]
    of_result: str
    of_operand: str
    row: str


class MovedRows(NamedTuple):
    """Row i of the result is row i + ``shift`` of the argument along an axis, from ``start`` to ``stop``."""

    axis: int
    shift: int
    start: int
    stop: int


Reading: TypeAlias = int | SharedOperand | MovedRows | Literal["opened"]
"""How an argument is read. A number is the axis along which its rows are those of the result; `MovedRows`
says that some of them are, `SharedOperand` that all rows share it, "opened" that each element becomes a
row."""


def readings(entry: TapeEntry, rule: Bulk, axis: int) -> tuple[int | SharedOperand, ...] | None:
    """Tell how a call that is neither elementwise nor a movement reads each active argument.

    `axis` is the one of the result that counts rows. None if rows do not stay apart, or if nothing is known
    of that.
    """
    arrays = [entry.value, *(entry.args[argnum] for argnum in entry.argnums)]
    is_known = rule.built_in and not is_overridden(entry.primitive)
    if not is_known or any(type(x) is not np.ndarray or not x.ndim for x in arrays):
        return None
    product = sum_of_products(entry)
    if product is None:
        return _along_axis(entry, rule, axis)
    found = [_of_product(entry, argnum, axis, product) for argnum in entry.argnums]
    return None if None in found else tuple(found)  # type: ignore[arg-type] # there is none


def _of_product(
    entry: TapeEntry, argnum: int, axis: int, product: SumOfProducts
) -> int | SharedOperand | None:
    """Tell how a product reads one of its operands."""
    numbers, labels = product.numbers, (*product.labels, product.of_result)
    values = (*(entry.args[number] for number in numbers), entry.value)
    if any(np.ndim(x) != len(axes) for x, axes in zip(values, labels, strict=True)):
        return None  # an axis of length one that is broadcast
    if len(product.sizes) > len(AXES):
        return None
    names = dict(zip(product.sizes, AXES, strict=False))
    *of_operands, of_result = ("".join(names[label] for label in axes) for axes in labels)
    of_number = dict(zip(numbers, of_operands, strict=True))
    own, row = of_number.pop(argnum), of_result[axis]
    if row in own:
        return own.index(row)
    is_alone = not {*own} <= {*of_result, *chain(*of_number.values())}  # summed over an index of its own
    if is_alone or any(type(entry.args[number]) is not np.ndarray for number in of_number):
        return None
    return SharedOperand(tuple(of_number), tuple(of_number.values()), of_result, own, row)


def _along_axis(entry: TapeEntry, rule: Bulk, axis: int) -> tuple[int, ...] | None:
    """Return, for a call that is no product, along which axis of each argument rows stay apart, or None."""
    if is_reduction(rule) and rule.weigh is not None:
        with np.errstate(all="ignore"):
            found = rule.weigh(entry.value, *entry.args, **entry.kwargs)
        if found is not None:
            x = entry.args[found.argnum]
            kept = [a for a in range(x.ndim) if entry.value.ndim == x.ndim or a not in found.axes]
            stays = entry.argnums == (found.argnum,) and kept[axis] not in found.axes
            return (kept[axis],) if stays else None
    if entry.primitive is anp.linalg.solve and entry.argnums == (1,):
        x = entry.args[1]
        if x.ndim > 1 and axis == entry.value.ndim - 1:
            return (x.ndim - 1,)  # columns that one matrix is solved for
    return matching_loop_axes(entry, axis)
