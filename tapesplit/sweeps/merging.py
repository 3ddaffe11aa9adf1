"""Merging: fuse each elementwise operation into the only one that reads it, and evaluate like ones together.

A merged operation has one coefficient for each value that it reads from outside, whatever happens inside:
its partial derivatives are multiplied out with a single direction (local preaccumulation, Griewank & Walther
2008, Ch. 10), so that the many directions of a sweep pay for its ends only. Programs with loops have the same
operation hundreds of times; those are found here, so that they can be done in arrays.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tapesplit.arrays import IntArray, coded, equal_columns, follow
from tapesplit.cost.formulas import COEFFICIENT, WORTH_MERGING
from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape, constant_positions
from tapesplit.rules import Elementwise
from tapesplit.structures.facts import CallKind, TapeFacts, calls_by_kind
from tapesplit.structures.forms import is_shape, number_shape
from tapesplit.sweeps.coefficients import gathered_dimensions

__all__ = ["MergedCalls", "merge_calls", "shape_of"]


@dataclass(frozen=True, slots=True, eq=False)
class MergedCalls:
    """Merged elementwise operations that do the same, a row of tape entries for each.

    Parameters
    ----------
    members : (calls, s) array of int
        Tape entries that are merged; the last one is the result. All have as many elements as the result.
    inputs : (calls, q) array of int
        Tape entries that they read from outside.
    operands
        For each member its active arguments: the number of a member, or ``-1 - number`` of an input.
    of_one_shape
        Whether calls agree in the shapes of all that they read and compute.
    """

    members: IntArray
    inputs: IntArray
    operands: tuple[tuple[int, ...], ...]
    of_one_shape: bool = True


def merge_calls(tape: Tape, facts: TapeFacts, chunk: Chunk, directions: int) -> list[MergedCalls]:
    """Merge the elementwise operations of a chunk that has a scalar form, where it pays.

    The entries of the chunk all have ``facts.scalar``; `directions` is the number that the coefficients will
    serve. Each elementwise operation is a member of just one of the results.
    """
    elementwise = chunk.entries[facts.elementwise[chunk.entries]]
    reader = facts.reader.copy()
    reader[list(chunk.targets)] = chunk.targets  # they are read from outside as well
    inner = elementwise[reader[elementwise] != elementwise]
    if facts.sizes[inner].sum() * (directions + COEFFICIENT) < _WORTH_A_LOOK:
        return _joined(tape, facts, _single(tape, facts, elementwise))
    done: list[MergedCalls] = []
    alone: list[IntArray] = []
    for calls in _joined(tape, facts, _alike(tape, facts, elementwise, follow(reader))):
        size = facts.sizes[calls.members[:, -1]].sum()
        if calls.members.shape[1] == 1 or size * (directions + COEFFICIENT) >= WORTH_MERGING:
            done.append(calls)
        else:
            alone.append(calls.members.ravel())
    if alone:
        done += _joined(tape, facts, _single(tape, facts, np.sort(np.concatenate(alone))))
    return done


_WORTH_A_LOOK: Final = 50_000
"""Elements times directions that pay for finding the merged operations that are alike."""
_MOST_TO_JOIN: Final = 1000
"""Elements of calls of one shape up to which it pays to evaluate them together with those of other shapes."""
_TOGETHER: Final = 32_768
"""About how many elements are joined: formulas of more would leave the cache."""


def _single(tape: Tape, facts: TapeFacts, entries: IntArray) -> Iterator[MergedCalls]:
    """Group operations that are not merged with others, such that those of a group do the same."""
    for kind, calls, parents in calls_by_kind(facts, entries):
        first = np.argmax(parents[:, :, None] == parents[:, None, :], axis=2)
        shapes = _shapes_of_constants(tape, kind, calls)
        table = np.array([facts.form[calls], *facts.form[parents].T, *shapes, *first.T])
        for here in equal_columns(table):
            place = first[here[0]].tolist()
            distinct = sorted(set(place))
            operands = tuple([-1 - distinct.index(argument) for argument in place])
            yield MergedCalls(calls[here, None], parents[here][:, distinct], (operands,))


def _alike(tape: Tape, facts: TapeFacts, entries: IntArray, result: IntArray) -> Iterator[MergedCalls]:
    """Merge each entry into ``result[entry]``, and group merged operations that do the same."""
    members = entries[np.argsort(result[entries], kind="stable")]
    begins = np.diff(result[members], prepend=-1) > 0
    starts, merged = np.flatnonzero(begins), np.cumsum(begins) - 1
    position = np.arange(members.size) - starts[merged]
    parents = _active_arguments(facts, members)
    operands, inputs, first_input = _wiring(members, parents, result, merged, position)
    features = _features(tape, facts, members, parents, operands)
    lengths = np.diff(starts, append=members.size)
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        rows = starts[lengths == length]
        table = features[:, rows + np.arange(length)[:, None]]
        for here in equal_columns(table.reshape(-1, rows.size)):
            of_first = slice(rows[here[0]], rows[here[0]] + length)
            number = merged[rows[here]]
            count = int(-operands[of_first].min(initial=0))
            yield MergedCalls(
                members[rows[here][:, None] + np.arange(length)],
                inputs[first_input[number][:, None] + np.arange(count)],
                tuple(
                    tuple(line[: len(facts.kinds[kind].argnums)])
                    for line, kind in zip(
                        operands[of_first].tolist(), facts.kind[members[of_first]], strict=True
                    )
                ),
            )


def _joined(tape: Tape, facts: TapeFacts, found: Iterable[MergedCalls]) -> list[MergedCalls]:
    """Join calls that differ in their shapes only, if there are few of each shape: they share formulas.

    Calls with formulas of users are not joined, as these may depend on shapes.
    """
    groups: defaultdict[Any, list[MergedCalls]] = defaultdict(list)
    for calls in found:
        groups[tuple(facts.kind[calls.members[0]].tolist()), calls.operands].append(calls)
    result: list[MergedCalls] = []
    for (codes, _), group in groups.items():
        rules = [facts.kinds[code].rule for code in codes]
        if len(group) == 1 or not all(isinstance(rule, Elementwise) and rule.built_in for rule in rules):
            result += group
            continue
        like: defaultdict[Any, list[MergedCalls]] = defaultdict(list)
        elements: Counter[Any] = Counter()
        for number, calls in enumerate(group):
            size = int(facts.sizes[calls.members[0, -1]]) * calls.members.shape[0]
            key: Any = number
            if 0 < size <= _MOST_TO_JOIN:
                classes = _classes(tape, facts, calls)
                elements[classes] += size
                key = classes, elements[classes] // _TOGETHER
            like[key].append(calls)
        result += [same[0] if len(same) == 1 else _one_behind_the_other(same) for same in like.values()]
    return result


def _one_behind_the_other(same: list[MergedCalls]) -> MergedCalls:
    """Concatenate calls of several shapes."""
    members = np.concatenate([calls.members for calls in same])
    inputs = np.concatenate([calls.inputs for calls in same])
    return MergedCalls(members, inputs, same[0].operands, of_one_shape=False)


def _classes(tape: Tape, facts: TapeFacts, calls: MergedCalls) -> tuple[Any, ...]:
    """Return number of axes and type of all that a call reads and computes: like calls can be joined."""
    entries = [*calls.members[0].tolist(), *calls.inputs[0].tolist()]
    found: list[Any] = [_class(facts.forms[form]) for form in facts.form[entries].tolist()]
    for entry in calls.members[0].tolist():
        kind = facts.kinds[facts.kind[entry]]
        constants = [tape.args[entry][i] for i in constant_positions(kind.arity, kind.argnums)]
        found += [(gathered_dimensions(shape_of(c)), np.iscomplexobj(c)) for c in constants]
    return tuple(found)


def _class(form: Any) -> tuple[int, Any]:
    """Return the number of axes of a value as it is gathered, at most 2, and its type."""
    return gathered_dimensions(number_shape(form)), None if is_shape(form) else form[0]


def _active_arguments(facts: TapeFacts, members: IntArray) -> IntArray:
    """Return the active arguments of each operation as a row of tape entries, padded with -1."""
    counts = np.diff(facts.first_parent)[members]
    columns = np.arange(int(counts.max()))
    places = facts.first_parent[members][:, None] + columns
    given = columns < counts[:, None]
    return np.where(given, facts.parents[np.where(given, places, 0)], -1)


def _wiring(
    members: IntArray, parents: IntArray, result: IntArray, merged: IntArray, position: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Find for each argument which member or input it is; inputs are numbered in the order they appear.

    Returns
    -------
    operands
        For each argument the position of a member, ``-1 - number`` of an input, 0 where there is none.
    inputs, first_input
        All inputs, and where those of each merged operation begin.
    """
    place = np.full(len(result), -1)
    place[members] = position
    inside = (parents >= 0) & (place[parents] >= 0) & (result[parents] == result[members][:, None])
    outside = (parents >= 0) & ~inside
    keys = (merged[:, None] * len(result) + parents)[outside]
    distinct, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    owner = distinct[order] // len(result)
    first_input = np.searchsorted(owner, np.arange(merged[-1] + 2))
    number = np.empty(distinct.size, dtype=np.int64)
    number[order] = np.arange(distinct.size) - first_input[owner]
    operands = np.where(inside, place[parents], 0)
    operands[outside] = -1 - number[which]
    return operands, distinct[order] % len(result), first_input


def _features(
    tape: Tape, facts: TapeFacts, members: IntArray, parents: IntArray, operands: IntArray
) -> IntArray:
    """Describe operations by numbers, a column each; they agree where operations do the same."""
    kind = facts.kind[members]
    features = [kind, facts.form[members], *np.where(parents >= 0, facts.form[parents], -1).T, *operands.T]
    for code in np.flatnonzero(np.bincount(kind)).tolist():
        here = np.flatnonzero(kind == code)
        for shapes in _shapes_of_constants(tape, facts.kinds[code], members[here]):
            features.append(np.zeros_like(kind))
            features[-1][here] = shapes
    return np.array(features)


def _shapes_of_constants(tape: Tape, kind: CallKind, calls: IntArray) -> list[IntArray]:
    """Give numbers to the shapes of the constant arguments of calls of one kind, other ones if complex.

    Returns an array for each constant argument, with a number for each call.
    """
    codes = []
    for position in constant_positions(kind.arity, kind.argnums):
        constants = [tape.args[i][position] for i in calls.tolist()]
        same = set(map(type, constants)) == {float}
        forms = () if same else [(shape_of(c), np.iscomplexobj(c)) for c in constants]
        codes.append(np.zeros(calls.size, dtype=np.int64) if same else coded(forms)[1])
    return codes


def shape_of(constant: Any) -> tuple[int, ...]:
    """Return the shape of a constant argument."""
    if type(constant) is np.ndarray:
        return constant.shape
    return () if type(constant) is float else np.shape(constant)
