"""Rows: calls that do the same to each row of their arguments, an index of one of their axes.

Where samples stand in rows, most calls keep them apart: a row of the result depends on the same row of some
arguments, and on the whole of others that all rows share, such as the weights of a layer.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

import autograd.numpy as anp
import numpy as np

from tapesplit.recording.overrides import is_overridden
from tapesplit.recording.tape import TapeEntry
from tapesplit.rules.contraction import AXES
from tapesplit.rules.local import contraction_labels
from tapesplit.rules.reductions import is_reduction
from tapesplit.rules.registry import Bulk
from tapesplit.rules.stacks import matching_loop_axes

__all__ = ["MovedRows", "Reading", "SharedOperand", "readings"]


class SharedOperand(NamedTuple):
    """How the adjoints of each row by an operand that all rows share are found: by a contraction.

    ``others`` are the numbers of the other operands; the indices of these, of the result and of the operand
    are letters, of which ``row`` counts the rows.
    """

    others: tuple[int, ...]
    of_others: tuple[str, ...]
    of_result: str
    of_operand: str
    row: str


class MovedRows(NamedTuple):
    """Rows of the result from ``start`` to ``stop`` are rows of the argument along an axis, ``shift`` on."""

    axis: int
    shift: int
    start: int
    stop: int


Reading: TypeAlias = int | SharedOperand | MovedRows | Literal["opened"]
"""How an argument is read: along this axis its rows are those of the result, or some of them are, or all rows
share it, or each of its elements is a row of the result."""


def readings(entry: TapeEntry, rule: Bulk, axis: int) -> tuple[int | SharedOperand, ...] | None:
    """Tell how a call that is neither elementwise nor a movement reads each active argument.

    `axis` is the one of the result that counts rows. None if rows do not stay apart, or if nothing is known
    of that.
    """
    arrays = [entry.value, *(entry.args[argnum] for argnum in entry.argnums)]
    is_known = rule.built_in and not is_overridden(entry.primitive)
    if not is_known or any(type(x) is not np.ndarray or not x.ndim for x in arrays):
        return None
    labelled = _labels(entry)
    if labelled is None:
        return _along_axis(entry, rule, axis)
    found = [_of_product(entry, argnum, axis, *labelled) for argnum in entry.argnums]
    return None if None in found else tuple(found)  # type: ignore[arg-type] # there is none


def _labels(entry: TapeEntry) -> tuple[int, Sequence[Sequence[int | str]]] | None:
    """Return the first operand of a product, and the labels of all operands and of the result."""
    if entry.primitive is not anp.einsum or not isinstance(entry.args[0], str):
        of_pair = contraction_labels(entry)
        return None if of_pair is None else (0, of_pair)
    inputs, output, _ = anp.parse_einsum_input(*entry.args)
    return 1, [*inputs.split(","), output]


def _of_product(
    entry: TapeEntry, argnum: int, axis: int, first: int, labels: Sequence[Sequence[int | str]]
) -> int | SharedOperand | None:
    """Tell how a product reads one of its operands."""
    numbers = range(first, first + len(labels) - 1)
    values = (*(entry.args[number] for number in numbers), entry.value)
    if any(np.ndim(x) != len({*axes}) for x, axes in zip(values, labels, strict=True)):
        return None  # a diagonal, or an axis of length one without a label
    shapes = chain.from_iterable(np.shape(x) for x in values)
    lengths = {*zip(chain.from_iterable(labels), shapes, strict=True)}
    if len(lengths) != len({label for label, _ in lengths}):
        return None  # an axis of length one that is broadcast
    if len(lengths) > len(AXES):
        return None
    names = dict(zip(dict.fromkeys(chain.from_iterable(labels)), AXES, strict=False))
    *of_operands, of_result = ("".join(names[label] for label in axes) for axes in labels)
    own, row = of_operands[argnum - first], of_result[axis]
    if row in own:
        return own.index(row)
    others = tuple(number for number in numbers if number != argnum)
    of_others = tuple(of_operands[number - first] for number in others)
    is_alone = not {*own} <= {*of_result, *chain(*of_others)}  # it is summed over an index of its own
    if is_alone or any(type(entry.args[number]) is not np.ndarray for number in others):
        return None
    return SharedOperand(others, of_others, of_result, own, row)


def _along_axis(entry: TapeEntry, rule: Bulk, axis: int) -> tuple[int, ...] | None:
    """Tell along which axes of its arguments a call does the same to all that is there; None if to none."""
    if is_reduction(rule) and rule.weigh is not None:
        with np.errstate(all="ignore"):
            found = rule.weigh(entry.value, *entry.args, **entry.kwargs)
        if found is not None:
            x = entry.args[found.argnum]
            kept = [a for a in range(x.ndim) if entry.value.ndim == x.ndim or a not in found.axes]
            stays = entry.argnums == (found.argnum,) and kept[axis] not in found.axes
            return (kept[axis],) if stays else None
    return matching_loop_axes(entry, axis)
