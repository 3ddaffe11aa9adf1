"""Edges by formulas: merged elementwise operations as coefficients of a scalar sweep."""

import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tapesplit.arrays import IntArray
from tapesplit.structures.facts import TapeFacts
from tapesplit.sweeps.coefficients import Recipe
from tapesplit.sweeps.complex_parts import VARYING, pairs, parts_between
from tapesplit.sweeps.merging import MergedCalls
from tapesplit.sweeps.operands import Operands, shapes_of
from tapesplit.sweeps.preaccumulation import Member, Term, preaccumulate
from tapesplit.sweeps.sparsity import Calls, Edges, without_constants
from tapesplit.sweeps.spreading import broadcast_places
from tapesplit.sweeps.unknowns import Elements

__all__ = ["lower_merged"]


def lower_merged(calls: MergedCalls, elements: Elements, operands: Operands) -> Calls:
    """Lower like merged operations: each element of a result has an edge by each input."""
    facts, result = operands.facts, calls.members.shape[1] - 1
    shapes = shapes_of(facts, calls.members[:, result], of_one_shape=calls.of_one_shape)
    is_complex = facts.is_complex
    inputs = [
        broadcast_places(
            elements.first[entries],
            shapes_of(facts, entries, of_one_shape=calls.of_one_shape),
            shapes,
            1 + is_complex[entries[0]],
        )
        for entries in calls.inputs.T
    ]
    reads = _Reads(elements, operands, calls, inputs, shapes)
    members = tuple(
        Member(number, tuple(_terms(calls, facts, number, reads.number))) for number in range(result, -1, -1)
    )
    derivatives = preaccumulate(members, lambda _, term: reads.nan(term))
    numbers = {target: value for target, value in derivatives.items() if not np.isnan(value)}
    given = [number for number in range(len(inputs)) if -1 - number in derivatives]
    unknown = elements.unknown
    starts = unknown[elements.first[calls.members[:, result]]]
    of_complex = is_complex[calls.members[0, result]]
    places = broadcast_places(starts, shapes, shapes, 1 + of_complex)
    rows = [places + part for part in range(1 + of_complex)]
    edges: list[Edges] = []
    ranks = [0, 0]
    for number in given:
        by_complex = is_complex[calls.inputs[0, number]]
        for row, column, part in parts_between(of_complex, by_complex, derivatives[-1 - number]):
            columns = np.broadcast_to(unknown[inputs[number] + column], rows[row].shape)
            edges.append(Edges(-1 - number, rows[row], columns, ranks[row], part=part))
            ranks[row] += 1
    used = tuple(without_constants(edges))
    return Calls(used, numbers, Recipe(members, tuple(reads.indices), calls.members))


def _terms(
    calls: MergedCalls, facts: TapeFacts, member: int, read: Callable[[int, int], int]
) -> Iterator[Term]:
    """List the partial derivatives of a member, with what their formulas read."""
    kind = facts.kinds[facts.kind[calls.members[0, member]]]
    for partial, target in zip(kind.partials, calls.operands[member], strict=True):
        if callable(partial) and not kind.rule.built_in:
            yield Term(target, partial)
        elif callable(partial):
            named = _operands_read(partial, kind.arity + 1)
            operands = (read(member, i - 1) if i in named else None for i in range(kind.arity + 1))
            yield Term(target, partial, tuple(operands))
        elif partial is not None:
            yield Term(target, partial)


@dataclass(slots=True)
class _Reads:
    """What the formulas of merged operations read, each operand once."""

    elements: Elements
    operands: Operands
    calls: MergedCalls
    inputs: list[IntArray]
    shapes: list[tuple[int, ...]]
    numbers: dict[tuple[int, int | None], int] = field(default_factory=dict)
    indices: list[IntArray] = field(default_factory=list)

    def number(self, member: int, argument: int) -> int:
        """Return the number of an operand of a member, under which it is read; -1 is the member's result."""
        facts = self.operands.facts
        active = facts.kinds[facts.kind[self.calls.members[0, member]]].argnums
        position = argument if argument >= 0 else None
        if argument in active:
            member, position = self.calls.operands[member][active.index(argument)], None
        key = member, position
        if key not in self.numbers:
            self.numbers[key] = len(self.indices)
            self.indices.append(self._index(member, position))
        return self.numbers[key]

    def _index(self, member: int, position: int | None) -> IntArray:
        """Say where an operand stands: an input, a member's result or one of its constant arguments."""
        calls, is_complex = self.calls, self.operands.facts.is_complex
        if member < 0:
            places, has_pairs = self.inputs[-1 - member], is_complex[calls.inputs[0, -1 - member]]
        else:
            entries = calls.members[:, member]
            if position is None and member == calls.members.shape[1] - 1:
                starts, shapes, has_pairs = self.elements.first[entries], self.shapes, is_complex[entries[0]]
            else:
                starts, shapes, has_pairs = self.operands.number(
                    entries, position, of_one_shape=calls.of_one_shape
                )
            places = broadcast_places(starts, shapes, self.shapes, 1 + has_pairs)
        return pairs(places) if has_pairs else places

    def nan(self, term: Term) -> complex:
        """Return a stand-in for the value of a formula: NaN, complex if the formula reads complex numbers."""
        return VARYING[any(i is not None and self.indices[i].ndim == 3 for i in term.operands)]


@cache
def _operands_read(partial: Callable[..., Any], count: int) -> frozenset[int]:
    """Return which operands the code of a formula names; the others need not be gathered."""
    code = getattr(partial, "__code__", None)
    if code is None or code.co_argcount != count:
        return frozenset(range(count))
    named: set[Any] = set()
    for instruction in dis.get_instructions(code):
        named.update(instruction.argval if isinstance(instruction.argval, tuple) else [instruction.argval])
    return frozenset(i for i, name in enumerate(code.co_varnames[:count]) if name in named)
