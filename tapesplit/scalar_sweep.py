"""Scalar sweeps: a chunk as one triangular sparse system over the elements of its values.

Every element that the chunk computes is an unknown, every local partial derivative a coefficient (the extended Jacobian of Griewank & Walther 2008,
Sec. 9). Elements that only move are the same unknown under another name, so indexing and reshaping cost nothing. Where the coefficients go is
compiled once; a run gathers the recorded values, evaluates each primitive's partials for all its calls at once, and substitutes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tapesplit.chunks import Chunk
from tapesplit.rules import Elementwise, IndexMap, Movement, find_rule, index_map
from tapesplit.structure import call_key
from tapesplit.tape import Tape
from tapesplit.triangular import substitute, substitute_transposed

__all__ = ["ScalarSweep", "compile_scalar_sweep"]

IntArray = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """Partials of many calls of one primitive: ``coefficients[places] = partial(ans, *args)``."""

    partial: Callable[..., Any]
    places: IntArray
    operands: tuple[IntArray, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValueTable:
    """Where the numbers that coefficients are made of stand on a tape; all of them are gathered into one vector."""

    scalars: tuple[int, ...]
    arrays: tuple[int, ...]
    scalar_constants: tuple[tuple[int, int], ...]
    array_constants: tuple[tuple[int, int], ...]

    def gather(self, tape: Tape) -> np.ndarray:
        """Return the numbers of one tape: scalars, arrays, scalar constants, array constants."""
        entries = tape.entries
        parts = [np.array([entries[i][5] for i in self.scalars], dtype=np.float64)]
        parts += [entries[i][5].ravel() for i in self.arrays]
        parts.append(np.array([entries[i][3][j] for i, j in self.scalar_constants], dtype=np.float64))
        parts += [entries[i][3][j].ravel() for i, j in self.array_constants]
        return np.concatenate(parts)


@dataclass(frozen=True, slots=True, eq=False)
class ScalarSweep:
    """A chunk compiled for one mode.

    Parameters
    ----------
    chunk
        What is swept.
    adjoint_mode
        Unknowns are numbered backwards and coefficients stored by column if true.
    indptr, indices
        Sparsity pattern of the system.
    template
        Coefficients that are 1 or -1; zeros elsewhere.
    copies
        ``coefficients[copies[0]] = values[copies[1]]``: partials that are an operand.
    formulas
        The other partials.
    values
        The numbers that they are made of.
    seeds, results
        Unknown of each element of the values that are seeded, and of those that are read; -1 for constants.
    """

    chunk: Chunk
    adjoint_mode: bool
    indptr: IntArray
    indices: IntArray
    template: np.ndarray
    copies: tuple[IntArray, IntArray]
    formulas: tuple[Formula, ...]
    values: ValueTable
    seeds: IntArray
    results: IntArray

    @property
    def coefficients(self) -> int:
        """Number of stored coefficients."""
        return len(self.template)

    def tangent(self, tape: Tape, matrix: np.ndarray | None) -> np.ndarray:
        """Return ``F' X`` for X of shape ``(n, k)``; None stands for the identity."""
        return self._run(tape, matrix, self.chunk.n)

    def adjoint(self, tape: Tape, matrix: np.ndarray | None) -> np.ndarray:
        """Return ``X F'`` for X of shape ``(k, m)``; None stands for the identity."""
        return self._run(tape, None if matrix is None else matrix.T, self.chunk.m).T

    def _run(self, tape: Tape, columns: np.ndarray | None, seeded: int) -> np.ndarray:
        """Seed, substitute, read: ``(seeded, k)`` to ``(read, k)``."""
        count = seeded if columns is None else columns.shape[1]
        Y = np.zeros((len(self.indptr) - 1, count))
        if columns is None:
            columns = np.eye(seeded)
        _put(Y, self.seeds, columns)
        solve = substitute_transposed if self.adjoint_mode else substitute
        solve(self.indptr, self.indices, self.fill(tape), Y)
        result = Y[self.results]
        if self.results.size and self.results.min() < 0:
            result[self.results < 0] = 0.0
        return result

    def fill(self, tape: Tape) -> np.ndarray:
        """Evaluate the coefficients for the values of one tape."""
        values = self.values.gather(tape)
        data = self.template.copy()
        data[self.copies[0]] = values[self.copies[1]]
        for formula in self.formulas:
            data[formula.places] = formula.partial(*(values[operand] for operand in formula.operands))
        return data


def _put(Y: np.ndarray, places: IntArray, rows: np.ndarray) -> None:
    """Add rows at places; constants (-1) take none, repeated places add up."""
    used = places >= 0
    if not used.all():
        places, rows = places[used], rows[used]
    if np.unique(places).size == places.size:
        Y[places] = rows
    else:
        np.add.at(Y, places, rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Numbering:
    """Positions of all elements in the gathered vector of values, and their unknowns."""

    first: dict[int, int]
    constants: dict[tuple[int, int], int]
    table: ValueTable
    unknowns: IntArray
    """Unknown of each element, -1 for a constant."""
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class _Edges:
    """Coefficients of one partial of one group of calls, by unknowns and by where their numbers stand."""

    rows: IntArray
    columns: IntArray
    partial: Callable[..., Any] | int
    operands: tuple[IntArray, ...]


def compile_scalar_sweep(tape: Tape, chunk: Chunk, *, adjoint_mode: bool) -> ScalarSweep:
    """Compile a chunk that has a scalar form for one mode.

    Takes about 1 µs for each entry and 50 ns for each coefficient.
    """
    numbering = _number(tape, chunk)
    edges = _collect_edges(tape, chunk, numbering)
    rows = _joined([e.rows for e in edges])
    columns = _joined([e.columns for e in edges])
    if adjoint_mode:
        rows, columns = numbering.count - 1 - rows, numbering.count - 1 - columns
    order, indptr = _by_row(rows, numbering.count)
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    sources = _elements(numbering, chunk.sources, tape)
    targets = _elements(numbering, chunk.targets, tape)
    if adjoint_mode:
        sources, targets = targets, sources
    template, copies, formulas = _recipes(edges, places)
    return ScalarSweep(
        chunk, adjoint_mode, indptr, columns[order].astype(np.int32), template, copies, formulas, numbering.table,
        *(np.where(u < 0, -1, numbering.count - 1 - u) if adjoint_mode else u for u in (sources, targets)),
    )  # fmt: skip


def _joined(parts: Sequence[IntArray]) -> IntArray:
    """Concatenate index arrays; no arrays give an empty one."""
    return np.concatenate(parts) if parts else np.zeros(0, np.intp)


def _by_row(rows: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Sort coefficients by row, stably and in linear time; return the order and the row starts."""
    ids = np.arange(rows.size)
    matrix = csr_array((ids, (rows, ids)), shape=(count, max(rows.size, 1)))
    return matrix.data, matrix.indptr.astype(np.int32)


def _recipes(
    edges: Sequence[_Edges], places: IntArray
) -> tuple[np.ndarray, tuple[IntArray, IntArray], tuple[Formula, ...]]:
    """Say how each coefficient comes about: a constant, a copy of an operand, or a formula."""
    template = np.zeros(places.size)
    copied: list[tuple[IntArray, IntArray]] = []
    formulas: list[Formula] = []
    start = 0
    for edge in edges:
        here = places[start : start + edge.rows.size]
        start += edge.rows.size
        if isinstance(edge.partial, int):
            template[here] = edge.partial
            continue
        operand = _copied_operand(edge.partial, len(edge.operands))
        if operand is None:
            formulas.append(Formula(edge.partial, here, edge.operands))
        else:
            copied.append((here, edge.operands[operand]))
    copies = (_joined([c[0] for c in copied]), _joined([c[1] for c in copied]))
    return template, copies, tuple(formulas)


def _copied_operand(partial: Callable[..., Any], count: int) -> int | None:
    """Return which operand a partial returns unchanged, if it does (products, exponentials)."""
    probes = [object() for _ in range(count)]
    try:
        result = partial(*probes)
    except Exception:  # noqa: BLE001 (a formula on objects may fail in any way: then it is no copy)
        return None
    return next((i for i, probe in enumerate(probes) if result is probe), None)


def _number(tape: Tape, chunk: Chunk) -> _Numbering:
    """Number all elements, and the unknowns among them in the order of the tape."""
    order = [*chunk.sources, *chunk.entries]
    values = {i: tape.entries[i][5] for i in order}
    scalars = [i for i in order if type(values[i]) is not np.ndarray]
    arrays = [i for i in order if type(values[i]) is np.ndarray]
    first = dict(zip(scalars, range(len(scalars)), strict=True))
    sizes = [values[i].size for i in arrays]
    starts = np.cumsum([len(scalars), *sizes])
    first.update(zip(arrays, starts.tolist(), strict=False))
    elements = int(starts[-1])
    constants, table = _constants(tape, chunk, tuple(scalars), tuple(arrays), elements)
    unknowns, count = _unknowns(tape, chunk, first, elements)
    return _Numbering(first, constants, table, unknowns, count)


def _constants(
    tape: Tape, chunk: Chunk, scalars: tuple[int, ...], arrays: tuple[int, ...], start: int
) -> tuple[dict[tuple[int, int], int], ValueTable]:
    """Number the constant arguments of elementwise operations behind all values."""
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for index in chunk.entries:
        primitive, argnums, _, args, _, _ = tape.entries[index]
        if len(args) > len(argnums) and isinstance(find_rule(primitive), Elementwise):
            for j, arg in enumerate(args):
                if j not in argnums:
                    found[type(arg) is np.ndarray].append((index, j))
    plain, large = found
    positions = dict(zip(plain, range(start, start + len(plain)), strict=True))
    start += len(plain)
    for index, j in large:
        positions[index, j] = start
        start += tape.entries[index][3][j].size
    return positions, ValueTable(scalars, arrays, tuple(plain), tuple(large))


def _unknowns(tape: Tape, chunk: Chunk, first: dict[int, int], elements: int) -> tuple[IntArray, int]:
    """Map each element to its unknown: moved elements share that of their origin, constants have none."""
    origin = np.arange(elements)
    known: dict[Any, tuple[IndexMap, ...]] = {}
    for index in chunk.entries:
        if not isinstance(find_rule(tape.entries[index][0]), Movement):
            continue
        entry = tape[index]
        key = call_key(entry)
        maps = known.get(key)
        if maps is None:
            maps = known[key] = tuple(index_map(entry, argnum) for argnum in entry.argnums)
        here = np.full(maps[0].sources.size, -1)
        for parent, moves in zip(entry.parents, maps, strict=True):
            start = first[parent]
            if moves.complete:
                here = origin[start + moves.sources]
            else:
                used = moves.sources >= 0
                here[used] = origin[start + moves.sources[used]]
        origin[first[index] : first[index] + here.size] = here
    return _rank(tape, chunk, first, origin)


def _rank(tape: Tape, chunk: Chunk, first: dict[int, int], origin: IntArray) -> tuple[IntArray, int]:
    """Number the elements that are their own origin in the order of the tape."""
    order = [*chunk.sources, *chunk.entries]
    sizes = np.array([np.size(tape.entries[i][5]) for i in order])
    starts = np.array([first[i] for i in order])
    in_order = _ranges(starts, sizes)
    own = in_order[origin[in_order] == in_order]
    rank = np.full(origin.size + 1, -1)
    rank[own] = np.arange(own.size)
    return rank[origin], own.size


def _ranges(starts: IntArray, sizes: IntArray) -> IntArray:
    """Concatenate ``arange(start, start + size)`` for all pairs."""
    offsets = np.cumsum(sizes) - sizes
    return np.repeat(starts - offsets, sizes) + np.arange(int(sizes.sum()))


def _elements(numbering: _Numbering, indices: Iterable[int], tape: Tape) -> IntArray:
    """Return the unknowns of the elements of some values, in order."""
    parts = [
        numbering.unknowns[numbering.first[i] : numbering.first[i] + np.size(tape.entries[i][5])] for i in indices
    ]
    return _joined(parts)


def _collect_edges(tape: Tape, chunk: Chunk, numbering: _Numbering) -> list[_Edges]:
    """Find all coefficients, one group for each primitive and set of active arguments."""
    groups: dict[Any, list[int]] = {}
    for index in chunk.entries:
        primitive, argnums = tape.entries[index][:2]
        groups.setdefault((primitive, argnums), []).append(index)
    edges: list[_Edges] = []
    for (primitive, argnums), indices in groups.items():
        rule = find_rule(primitive)
        if isinstance(rule, Elementwise):
            operands = _operands(tape, indices, argnums, numbering)
            rows = numbering.unknowns[operands[0]]
            for argnum in argnums:
                partial = rule.partials[argnum]
                if partial is not None:
                    edges.append(_without_constants(rows, numbering.unknowns[operands[argnum + 1]], partial, operands))
    return edges


def _without_constants(rows: IntArray, columns: IntArray, partial: Any, operands: tuple[IntArray, ...]) -> _Edges:
    """Drop coefficients of elements that turned out constant."""
    used = columns >= 0
    if used.all():
        return _Edges(rows, columns, partial, operands)
    return _Edges(rows[used], columns[used], partial, tuple(operand[used] for operand in operands))


def _operands(
    tape: Tape, indices: list[int], argnums: tuple[int, ...], numbering: _Numbering
) -> tuple[IntArray, ...]:
    """Return where the result and each argument of a group of calls stand, element by element of the results."""
    entries = tape.entries
    first, constants = numbering.first, numbering.constants
    slot = {argnum: position for position, argnum in enumerate(argnums)}
    starts = [[first[i] for i in indices]]
    values = [[entries[i][5] for i in indices]]
    for j in range(len(entries[indices[0]][3])):
        if j in slot:
            starts.append([first[entries[i][2][slot[j]]] for i in indices])
        else:
            starts.append([constants[i, j] for i in indices])
        values.append([entries[i][3][j] for i in indices])
    shapes = [[np.shape(v) for v in column] for column in values]
    if all(shape == () for shape in shapes[0]):
        return tuple(np.array(column) for column in starts)
    return tuple(_spread(start, shape, shapes[0]) for start, shape in zip(starts, shapes, strict=True))


def _spread(starts: list[int], shapes: list[tuple[int, ...]], outer: list[tuple[int, ...]]) -> IntArray:
    """Return the position of the operand's element that goes into each element of the results."""
    if all(inner in ((), shape) for inner, shape in zip(shapes, outer, strict=True)):
        sizes = np.array([int(np.prod(shape, dtype=int)) for shape in outer])
        steps = np.array([inner == shape for inner, shape in zip(shapes, outer, strict=True)])
        local = _ranges(np.zeros(len(sizes), int), sizes)
        return np.repeat(np.array(starts), sizes) + local * np.repeat(steps, sizes)
    return np.concatenate(
        [
            start + np.broadcast_to(np.arange(int(np.prod(inner, dtype=int))).reshape(inner), shape).ravel()
            for start, inner, shape in zip(starts, shapes, outer, strict=True)
        ]
    )
