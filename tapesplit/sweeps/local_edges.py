"""Edges of calls that are no elementwise operations: sums, products and blocks in a scalar sweep."""

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from tapesplit.arrays import IntArray, equal_columns
from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.rules import as_one_call, can_be_stacked, local_structures, slices_of
from tapesplit.structures.constants import kept_positions
from tapesplit.structures.facts import TapeFacts, calls_by_kind
from tapesplit.sweeps.array_steps import bulk_step
from tapesplit.sweeps.coefficients import Block, Recipe
from tapesplit.sweeps.complex_parts import VARYING, Part, pairs, parts_between
from tapesplit.sweeps.directions import Batch, seed
from tapesplit.sweeps.operands import Operands
from tapesplit.sweeps.preaccumulation import Member, Term
from tapesplit.sweeps.sparsity import Calls, Edges, without_constants
from tapesplit.sweeps.unknowns import Elements

__all__ = ["lower_blocks", "lower_local"]


def lower_local(chunk: Chunk, elements: Elements, operands: Operands) -> Iterator[Calls]:
    """Lower the sums and products of a chunk that have a local structure, like ones together."""
    facts = operands.facts
    entries = chunk.entries[facts.blocks[chunk.entries] == 0]
    for kind, members, parents in calls_by_kind(facts, entries):
        if not kind.is_local:
            continue
        for here in equal_columns(facts.call[members][None]):
            yield _local(elements, operands, members[here], parents[here], kind.argnums)


def lower_blocks(chunk: Chunk, tape: Tape, facts: TapeFacts, elements: Elements) -> Iterator[Calls]:
    """Lower calls without a local structure as blocks of all derivatives, like ones stacked if possible."""
    entries = chunk.entries[facts.blocks[chunk.entries] > 0]
    for here in equal_columns(facts.call[entries][None]) if entries.size else ():
        like = entries[here]
        for together in [like] if can_be_stacked(tape[like[0]]) else like[:, None]:
            yield _block(tape, facts, elements, together)


def _local(
    elements: Elements,
    operands: Operands,
    members: IntArray,
    parents: IntArray,
    argnums: tuple[int, ...],
) -> Calls:
    """Lower sums and products of equal shapes and constants."""
    facts, unknown, entry = operands.facts, elements.unknown, operands.tape[members[0]]
    starts = dict(zip(argnums, elements.first[parents.T], strict=True))
    is_complex = dict(zip(argnums, facts.is_complex[parents[0]].tolist(), strict=True))
    of_complex = facts.is_complex[members[0]]
    results = elements.first[members][:, None]
    found: list[Edges] = []
    numbers: dict[int, float | np.ndarray] = {}
    terms: list[Term] = []
    reads: list[IntArray] = []
    ranks = [0] * (1 + of_complex)
    kept = kept_positions(facts.structure.statics[members[0]])
    for position, (argnum, local) in enumerate(zip(argnums, local_structures(entry, kept), strict=True)):
        target = -1 - position
        derivative: Any = local.factor
        for other, positions in local.factors:
            if other not in starts:
                starts[other], _, is_complex[other] = operands.number(members, other, kept=kept)
            places = starts[other][:, None] + positions * (1 + is_complex[other])
            reads.append(pairs(places) if is_complex[other] else places)
        if local.factors:
            read = range(len(reads) - len(local.factors), len(reads))
            terms.append(Term(target, _multiplied, tuple(read)))
            derivative = VARYING[any(is_complex[other] for other, _ in local.factors)]
        else:
            numbers[target] = derivative
        rows = results + local.rows * (1 + of_complex)
        columns = starts[argnum][:, None] + local.columns * (1 + is_complex[argnum])
        parts = [*parts_between(of_complex, is_complex[argnum], derivative, conjugated=local.conjugated)]
        found += _between(target, (unknown, rows, columns), parts, local.rank, ranks)
        if local.recurring is not None:
            numbers[_RECURRING] = 1.0
            after, before = (results + places * (1 + of_complex) for places in local.recurring)
            for row in range(len(ranks)):
                found.append(Edges(_RECURRING, unknown[row:][after], unknown[row:][before], ranks[row]))
                ranks[row] += 1
    edges = tuple(without_constants(found))
    return Calls(edges, numbers, Recipe((Member(0, tuple(terms)),), tuple(reads), members[:, None]))


def _between(
    target: int,
    elements: tuple[IntArray, IntArray, IntArray],
    parts: Sequence[tuple[int, int, Part]],
    rank: IntArray,
    before: list[int],
) -> Iterator[Edges]:
    """Yield the edges by one argument for all parts of complex numbers, see `parts_between`.

    ``elements`` are the unknowns of all, and the places among them of results and of what these depend on;
    ``rank`` counts the elements that come before each one. ``before`` counts the coefficients that stand
    before all of these in a row, for each part of a result, and then those before the next argument's.
    """
    unknown, rows, columns = elements
    for row, first in enumerate(before):
        here = [(column, part) for row_of_part, column, part in parts if row_of_part == row]
        for number, (column, part) in enumerate(here):
            of, by = unknown[row:][rows], unknown[column:][columns]
            yield Edges(target, of, by, first + len(here) * rank + number, part=part)
        before[row] = first + len(here) * (int(rank.max(initial=-1)) + 1)


_RECURRING: Final = -(2**30)
"""Target of edges from elements of a result to later ones of the same result, as in running sums."""


def _multiplied(*others: Any) -> Any:
    """Return the partial derivative of a product by one factor: the product of the others."""
    return functools.reduce(operator.mul, others)


def _block(tape: Tape, facts: TapeFacts, elements: Elements, entries: IntArray) -> Calls:
    """Lower like calls: each element of a slice depends on all that is read in the same slice."""
    calls = [tape[entry] for entry in entries]
    call, parents = as_one_call(calls), np.array([call.parents for call in calls])
    result, *reads = (
        _of_parts(positions) if facts.is_complex[index] else positions
        for positions, index in zip(slices_of(call), (entries[0], *parents[0]), strict=True)
    )
    results = _unknowns(elements, entries, result).T[:, :, None]
    edges: list[Edges] = []
    rank = 0
    for number, positions in enumerate(reads):
        columns = _unknowns(elements, parents[:, number], positions)
        shape = (*results.shape[:2], columns.shape[1])
        ranks = np.arange(rank, rank + shape[2])
        of, by, at = (np.broadcast_to(part, shape).ravel() for part in (results, columns, ranks))
        edges.append(Edges(-1 - number, of, by, at))
        rank += shape[2]
    step = bulk_step(entries[0], facts.kinds[facts.kind[entries[0]]].rule)
    seeds = _seeds(result, np.shape(call.value), np.result_type(call.value, np.float64))
    block = Block(step, tuple(entries.tolist()), seeds, tuple(reads))
    return Calls(tuple(without_constants(edges)), {}, block)


def _unknowns(elements: Elements, entries: IntArray, positions: IntArray) -> IntArray:
    """Return the unknowns at some positions of a stack of values of equal size."""
    number, place = np.divmod(positions, positions.size // entries.size)
    found: IntArray = elements.unknown[elements.first[entries[number]] + place]
    return found


def _seeds(result: IntArray, shape: tuple[int, ...], dtype: np.dtype) -> Batch:
    """Return adjoints of the result of a call, one direction for each real element of a slice."""
    count, size = result.shape
    rows: np.ndarray | range = range(result.size)
    if count > 1:
        rows = np.zeros((size, result.size))
        rows[np.arange(size), result] = 1.0
    return seed(rows, [shape], [dtype], adjoint_mode=True)[0]


def _of_parts(positions: IntArray) -> IntArray:
    """Return the positions of both parts of complex numbers in each slice, one behind the other."""
    return pairs(2 * positions).reshape(len(positions), -1)
