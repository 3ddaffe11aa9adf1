"""Rows: calls that do the same to each row of their arguments, an index of the first axis.

Where samples stand in rows, most calls keep them apart: a row of the result depends on the same row of some
arguments, and on the whole of others that all rows share, such as the weights of a layer.
"""

from string import ascii_letters
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from tapesplit.recording.overrides import is_overridden
from tapesplit.recording.tape import TapeEntry
from tapesplit.rules.local import contraction_labels
from tapesplit.rules.reductions import is_reduction
from tapesplit.rules.registry import Bulk
from tapesplit.rules.stacks import loops_over_first_axis

__all__ = ["Reading", "SharedOperand", "readings"]


class SharedOperand(NamedTuple):
    """How the adjoints of each row by an operand that all rows share are found: by a contraction.

    ``other`` is the number of the other operand; the indices of it, of the result and of the operand are
    letters, of which ``row`` counts the rows.
    """

    other: int
    of_other: str
    of_result: str
    of_operand: str
    row: str


Reading: TypeAlias = Literal["kept"] | SharedOperand
"""How an argument is read: its rows are those of the result, or all of them share it."""


def readings(entry: TapeEntry, rule: Bulk) -> tuple[Reading, ...] | None:
    """Tell how a call that is neither elementwise nor a movement reads each active argument.

    Parameters
    ----------
    entry
        A call.
    rule
        Its vector rule.

    Returns
    -------
    tuple or None
        None if rows do not stay apart, or if nothing is known of that.
    """
    arrays = [entry.value, *(entry.args[argnum] for argnum in entry.argnums)]
    is_known = rule.built_in and not is_overridden(entry.primitive)
    if not is_known or any(type(x) is not np.ndarray or not x.ndim for x in arrays):
        return None
    labelled = contraction_labels(entry)
    if labelled is not None:
        found = [_of_product(entry, argnum, *labelled) for argnum in entry.argnums]
        return None if None in found else tuple(found)  # type: ignore[arg-type] # there is none
    height = len(entry.value)
    aligned = all(len(x) == height for x in arrays)
    return tuple("kept" for _ in entry.argnums) if aligned and _keeps_first_axis(entry, rule) else None


_LETTERS: Final = ascii_letters[:-1]


def _of_product(
    entry: TapeEntry, argnum: int, first: int, labels: tuple[list[int], list[int], list[int]]
) -> Reading | None:
    """Tell how a product reads one of its operands."""
    operands = entry.args[first : first + 2]
    *of_operands, of_result = labels
    values = (*operands, entry.value)
    if any(np.ndim(x) != len(axes) for x, axes in zip(values, labels, strict=True)):
        return None  # an axis of length one, which may be broadcast
    own, other = of_operands[argnum - first], of_operands[1 + first - argnum]
    row = of_result[0]
    if own[0] == row:
        return "kept"
    if row in own or type(entry.args[1 + 2 * first - argnum]) is not np.ndarray:
        return None
    names = {label: _LETTERS[i] for i, label in enumerate(dict.fromkeys([*own, *other, *of_result]))}
    of_other, of_all, of_own = ("".join(names[label] for label in axes) for axes in (other, of_result, own))
    return SharedOperand(1 + 2 * first - argnum, of_other, of_all, of_own, names[row])


def _keeps_first_axis(entry: TapeEntry, rule: Bulk) -> bool:
    """Tell whether a call does the same to each index of the first axis."""
    if is_reduction(rule) and rule.weigh is not None:
        with np.errstate(all="ignore"):
            found = rule.weigh(entry.value, *entry.args, **entry.kwargs)
        if found is not None:
            return entry.argnums == (found.argnum,) and 0 not in found.axes
    return loops_over_first_axis(entry)
