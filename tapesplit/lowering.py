"""Lowering: from the operations of a chunk to the triangular sparse system of a scalar sweep.

Every element that a merged operation, a sum or a product computes is an unknown. Elements that only move are
the same unknown under another name, so indexing and reshaping cost nothing. Like calls are lowered together,
in arrays of shape (calls, elements of a result).
"""

import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapesplit.chunks import Chunk
from tapesplit.elements import Elements, number_elements
from tapesplit.facts import TapeFacts, calls_by_kind, coded, equal_rows, ranges
from tapesplit.merging import MergedCalls, merge_calls, shape_of
from tapesplit.rules import local_structure
from tapesplit.scalar_sweep import (
    Coefficients,
    Constants,
    Recipe,
    ScalarSweep,
    Term,
    ValueTable,
    derivatives_of,
)
from tapesplit.structure import Structure, call_key
from tapesplit.tape import Tape

__all__ = ["compile_scalar_sweep"]

IntArray = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Edges:
    """Coefficients by one input of many calls; ``used`` marks those that there are, None if all."""

    target: int
    rows: IntArray
    columns: IntArray
    rank: IntArray | int
    """How many coefficients before them stand in the same rows."""
    used: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Calls:
    """Like calls: how their coefficients come about and where they stand; ``numbers`` are those that are fixed."""

    edges: tuple[_Edges, ...]
    numbers: dict[int, float]
    terms: tuple[Term, ...] = ()
    result: int = 0
    reads: tuple[IntArray, ...] = ()


def compile_scalar_sweep(
    tape: Tape, structure: Structure, facts: TapeFacts, chunk: Chunk, directions: int, *, adjoint_mode: bool
) -> ScalarSweep:
    """Compile a chunk that has a scalar form for one mode.

    Parameters
    ----------
    tape, structure, facts
        A tape of the structure that the sweep is for, and what is known of it.
    chunk
        Its entries all have ``facts.scalar``.
    directions
        Number of directions k that will be propagated.
    adjoint_mode
        Whether the sweep carries adjoints.

    Notes
    -----
    Takes about 1 µs for each entry and 20 ns for each coefficient.
    """
    order = np.array([*chunk.sources, *chunk.entries], dtype=np.int64)
    merged = merge_calls(tape, facts, chunk, directions)
    inner = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(calls.members[:, :-1].ravel() for calls in merged)]
    )
    elements = number_elements(tape, structure, facts, order, len(chunk.sources), inner)
    lowering = _Lowering(tape, structure, facts, elements)
    calls = [*map(lowering.merged, merged), *lowering.sums_and_products(chunk)]
    made, indptr, indices, template = _lay_out(elements.unknowns, calls, adjoint_mode=adjoint_mode)
    recipes, values = _gather_only_what_is_read(
        made, facts, np.append(order, inner), elements, lowering.constants
    )
    ends = [
        elements.unknown[ranges(elements.first[list(group)], facts.sizes[list(group)])]
        for group in (chunk.sources, chunk.targets)
    ]
    last = elements.unknowns - 1
    seeds, results = (np.where(u < 0, -1, last - u) for u in reversed(ends)) if adjoint_mode else ends
    distinct = bool((seeds >= 0).all()) and np.unique(seeds).size == seeds.size
    return ScalarSweep(
        chunk, adjoint_mode, indptr, indices, template, recipes, values, seeds, results, distinct
    )


@dataclass(slots=True)
class _Lowering:
    """One chunk whose elements are numbered; collects the constants that calls take, numbered behind them."""

    tape: Tape
    structure: Structure
    facts: TapeFacts
    elements: Elements
    constants: list[Constants] = field(default_factory=list)
    behind: int = 0

    def __post_init__(self) -> None:
        self.behind = self.elements.count

    def merged(self, calls: MergedCalls) -> _Calls:
        """Lower merged elementwise operations that are alike."""
        shape, size = self._shape(calls.members[0, -1]), int(self.facts.sizes[calls.members[0, -1]])
        reads: dict[Any, int] = {}
        indices: list[IntArray] = []
        inputs = [
            _broadcast(self.elements.first[entries], self._shape(entries[0]), shape)
            for entries in calls.inputs.T
        ]

        def read(member: int, argument: int) -> int:
            """Number one operand of a member among those that are read; -1 is its result."""
            kind = self.facts.kinds[self.facts.kind[calls.members[0, member]]]
            key: Any = member
            if argument in kind.argnums:
                key = calls.operands[member][kind.argnums.index(argument)]
            elif argument >= 0:
                key = (member, argument)
            if key not in reads:
                reads[key] = len(indices)
                if isinstance(key, tuple):
                    indices.append(_broadcast(*self._constant(calls.members[:, member], argument), shape))
                elif key < 0:
                    indices.append(inputs[-1 - key])
                else:
                    starts = self.elements.first[calls.members[:, key]]
                    indices.append(starts[:, None] + np.arange(size))
            return reads[key]

        terms = tuple(self._terms(calls, read))
        derivatives = derivatives_of(calls.members.shape[1] - 1, terms, lambda _: np.nan)
        numbers = {target: value for target, value in derivatives.items() if value == value}
        unknown = self.elements.unknown
        rows = unknown[self.elements.first[calls.members[:, -1]]][:, None] + np.arange(
            size, dtype=unknown.dtype
        )
        edges: list[_Edges] = []
        rank: IntArray | int = 0
        for number, elements in enumerate(inputs):
            if -1 - number not in derivatives:
                continue
            columns = np.broadcast_to(unknown[elements], rows.shape)
            used = columns >= 0
            if used.all():
                edges.append(_Edges(-1 - number, rows, columns, rank))
                rank = rank + 1
            else:  # elements that turned out constant have no coefficient
                ranks = np.broadcast_to(rank, rows.shape)[used]
                edges.append(_Edges(-1 - number, rows[used], columns[used], ranks, used))
                rank = rank + used
        return _Calls(tuple(edges), numbers, terms, calls.members.shape[1] - 1, tuple(indices))

    def _terms(self, calls: MergedCalls, read: Callable[[int, int], int]) -> Iterator[Term]:
        """List the partial derivatives of merged operations, those of the last member first."""
        for member in reversed(range(calls.members.shape[1])):
            kind = self.facts.kinds[self.facts.kind[calls.members[0, member]]]
            for argnum, target in zip(kind.argnums, calls.operands[member], strict=True):
                partial = kind.rule.partials[argnum]
                if partial is None:
                    continue
                if not callable(partial):
                    yield Term(member, target, float(partial), ())
                    continue
                named = _operands_read(partial, kind.arity + 1)
                operands = (read(member, i - 1) if i in named else None for i in range(kind.arity + 1))
                yield Term(member, target, partial, tuple(operands))

    def _constant(self, entries: IntArray, argument: int) -> tuple[IntArray, tuple[int, ...]]:
        """Number the elements of one constant argument of many calls; return the first ones, and its shape."""
        shape = shape_of(self.tape.entries[entries[0]][3][argument])
        starts = self.behind + np.arange(entries.size) * prod(shape)
        self.behind += entries.size * prod(shape)
        self.constants.append(Constants(argument, tuple(entries.tolist()), prod(shape), shape == ()))
        return starts, shape

    def _shape(self, entry: int) -> tuple[int, ...]:
        """Return the shape of a value in double precision."""
        form = self.facts.forms[self.facts.form[entry]]
        return () if form == (float, ()) else form

    def sums_and_products(self, chunk: Chunk) -> Iterator[_Calls]:
        """Lower the other operations of a chunk."""
        for kind, members, parents in calls_by_kind(self.facts, np.array(chunk.entries, dtype=np.int64)):
            if not kind.is_local:
                continue
            keys = coded(call_key(self.structure, index) for index in members.tolist())[1]
            for here in equal_rows(keys):
                yield self._local(members[here], parents[here], kind.argnums)

    def _local(self, members: IntArray, parents: IntArray, argnums: tuple[int, ...]) -> _Calls:
        """Lower sums and products of equal shapes and constants."""
        unknown, entry = self.elements.unknown, self.tape[members[0]]
        starts = dict(zip(argnums, self.elements.first[parents.T], strict=True))
        found: list[_Edges] = []
        numbers: dict[int, float] = {}
        terms: list[Term] = []
        reads: list[IntArray] = []
        rank = 0
        for position, argnum in enumerate(argnums):
            local, target = local_structure(entry, argnum), -1 - position
            if local is None:
                raise AssertionError(f"{entry.primitive} was taken for a local operation")
            rows = unknown[self.elements.first[members][:, None] + local.rows]
            columns = unknown[starts[argnum][:, None] + local.columns]
            found.append(_Edges(target, rows, columns, rank + local.rank))
            rank += int(local.rank.max(initial=-1)) + 1
            if local.positions is None:
                numbers[target] = float(local.factor)
                continue
            other = int(local.factor)
            if other not in starts:
                starts[other], _ = self._constant(members, other)
            terms.append(Term(0, target, _itself, (len(reads),)))
            reads.append(starts[other][:, None] + local.positions)
        if not all((edges.columns >= 0).all() for edges in found):
            found = _without_constants(found)
        return _Calls(tuple(found), numbers, tuple(terms), 0, tuple(reads))


def _broadcast(starts: IntArray, inner: tuple[int, ...], shape: tuple[int, ...]) -> IntArray:
    """Return the element of an operand for each element of the result; just one for a number."""
    if prod(inner) == 1:
        return starts[:, None]
    positions = np.broadcast_to(np.arange(prod(inner)).reshape(inner), shape)
    return starts[:, None] + positions.reshape(-1)


def _itself(operand: Any) -> Any:
    """Return the partial derivative of a product: the other factor."""
    return operand


def _without_constants(edges: list[_Edges]) -> list[_Edges]:
    """Keep the coefficients by elements that are not constant; count anew how they stand in their rows."""
    used = [edge.columns >= 0 for edge in edges]
    rows = [edge.rows[of_edge] for edge, of_edge in zip(edges, used, strict=True)]
    ranks = np.split(_occurrences(np.concatenate(rows)), np.cumsum([r.size for r in rows])[:-1])
    return [
        _Edges(edge.target, of_rows, edge.columns[of_edge], rank, of_edge)
        for edge, of_rows, of_edge, rank in zip(edges, rows, used, ranks, strict=True)
    ]


def _occurrences(rows: IntArray) -> IntArray:
    """For each item, how many equal ones stand before it."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts = np.diff(np.append(starts, rows.size))
    result = np.empty(rows.size, dtype=np.int64)
    result[order] = np.arange(rows.size) - np.repeat(starts, counts)
    return result


def _lay_out(
    count: int, calls: list[_Calls], *, adjoint_mode: bool
) -> tuple[list[Recipe], IntArray, IntArray, np.ndarray]:
    """Lay the coefficients out row by row; return their recipes, the pattern, and the constant ones."""
    counts = np.zeros(count, dtype=np.int32)
    for edge in (edge for like in calls for edge in like.edges):
        counts[edge.rows] = edge.rank + 1  # those of one row come in the order of their ranks
    indptr = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(counts[::-1] if adjoint_mode else counts, dtype=np.int32, out=indptr[1:])
    starts = (indptr[-2::-1] if adjoint_mode else indptr).astype(np.int64)
    template = np.zeros(int(indptr[-1]))
    indices = np.zeros(template.size, dtype=np.int32)
    recipes = []
    for like in calls:
        coefficients = []
        for edge in like.edges:
            here = starts[edge.rows]
            here += edge.rank
            indices[here] = edge.columns
            if edge.target in like.numbers:
                template[here] = like.numbers[edge.target]
            else:
                coefficients.append(Coefficients(edge.target, here, edge.used))
        if coefficients:
            recipes.append(Recipe(like.terms, like.result, like.reads, tuple(coefficients)))
    if adjoint_mode:
        np.subtract(count - 1, indices, out=indices)
    return recipes, indptr, indices, template


@cache
def _operands_read(partial: Callable[..., Any], count: int) -> frozenset[int]:
    """Return which operands the code of a partial names at all; gathering the others would be in vain."""
    code = getattr(partial, "__code__", None)
    if code is None or code.co_argcount != count:
        return frozenset(range(count))
    named: set[Any] = set()
    for instruction in dis.get_instructions(code):
        named.update(instruction.argval if isinstance(instruction.argval, tuple) else [instruction.argval])
    return frozenset(i for i, name in enumerate(code.co_varnames[:count]) if name in named)


def _gather_only_what_is_read(
    recipes: list[Recipe],
    facts: TapeFacts,
    order: IntArray,
    elements: Elements,
    constants: list[Constants],
) -> tuple[tuple[Recipe, ...], ValueTable]:
    """Find the values that recipes read, and let recipes refer to them as they will be gathered."""
    sizes = np.concatenate(
        [facts.sizes[order], [group.size * len(group.entries) for group in constants]]
    ).astype(int)
    starts = np.cumsum(sizes) - sizes
    total = int(sizes.sum())
    # a moved element has the value of its origin
    source = np.append(elements.origin, np.arange(elements.origin.size, total, dtype=np.int32))
    recipes = [_readdressed(recipe, source) for recipe in recipes]
    read = np.zeros(total, dtype=np.bool_)
    for index in (index for recipe in recipes for index in recipe.reads):
        read[index] = True
    needed = sizes > 0
    needed[needed] = np.logical_or.reduceat(read, starts[needed])
    is_array = np.array([form not in _NUMBERS for form in facts.forms])[facts.form[order]]
    values = np.flatnonzero(needed[: order.size])
    scalars, arrays = values[~is_array[values]], values[is_array[values]]
    kept = np.concatenate([scalars, arrays, order.size + np.flatnonzero(needed[order.size :])])
    shift = np.zeros(sizes.size, dtype=np.int64)
    shift[kept] = np.cumsum(sizes[kept]) - sizes[kept] - starts[kept]
    address = np.repeat(shift, sizes)
    address += np.arange(total, dtype=np.int32)
    table = ValueTable(
        tuple(order[scalars].tolist()),
        tuple(order[arrays].tolist()),
        tuple(group for group, used in zip(constants, needed[order.size :], strict=True) if used),
    )
    return tuple(_readdressed(recipe, address) for recipe in recipes), table


_NUMBERS = ((), (float, ()))


def _readdressed(recipe: Recipe, address: IntArray) -> Recipe:
    """Let a recipe refer to values by other numbers."""
    return replace(recipe, reads=tuple(address[index] for index in recipe.reads))
