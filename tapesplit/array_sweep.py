"""Array sweeps: carry all directions of a chunk at once through its array operations.

A chunk is compiled once into steps that depend on the tape's structure only; a run reads the values of one tape. Elementwise operations whose
results nobody else reads are merged into one step: its partial derivatives are formed with a single direction, and every seeded direction then costs
one multiplication for each input of the step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tapesplit.chunks import Chunk
from tapesplit.directions import Batch, Diagonal, Rows, accumulate, assemble, seed
from tapesplit.leaves import batch_shape, element_count
from tapesplit.rules import (
    Bulk,
    Elementwise,
    IndexMap,
    Movement,
    find_rule,
    index_map,
    loop_adjoint,
    loop_tangent,
)
from tapesplit.rules.axes import fold, real_like
from tapesplit.tape import Tape

__all__ = ["ArraySweep", "compile_array_sweep"]

Seeds = dict[int, Batch]


@dataclass(frozen=True, slots=True)
class MapStep:
    """Elements move: one index map for each active argument."""

    entry: int
    maps: tuple[tuple[int, IndexMap], ...]

    def tangent(self, tape: Tape, seeds: Seeds) -> Batch | None:
        """Gather tangents."""
        out: Batch | None = None
        for parent, moves in self.maps:
            if parent in seeds:
                out = accumulate(out, _gathered(seeds[parent], moves, tape[self.entry].value))
        return out

    def adjoint(self, tape: Tape, A: Batch, seeds: Seeds) -> None:
        """Scatter adjoints."""
        for parent, moves in self.maps:
            seeds[parent] = accumulate(seeds.get(parent), _scattered(A, moves, tape[parent].value))


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """Elementwise operations that end in one value; ``inputs`` are the values that they read from outside."""

    entry: int
    members: tuple[int, ...]
    inputs: tuple[int, ...]

    def partials(self, tape: Tape) -> dict[int, Any]:
        """Derivatives by each input, broadcasting to the shape of the result."""
        weights: dict[int, Any] = {self.entry: 1}
        for index in reversed(self.members):
            weight = weights.pop(index, None)
            if weight is None:
                continue
            primitive, argnums, parents, args, kwargs, value = tape.entries[index]
            formulas = find_rule(primitive).partials  # type: ignore[arg-type, union-attr]
            for argnum, parent in zip(argnums, parents, strict=True):
                formula = formulas[argnum]
                if formula is None:
                    continue
                partial = formula if isinstance(formula, int) else formula(value, *args, **kwargs)
                term = _product(weight, partial)
                weights[parent] = weights[parent] + term if parent in weights else term
        return weights

    def tangent(self, tape: Tape, seeds: Seeds) -> Batch | None:
        """Multiply tangents by the partials."""
        out: Batch | None = None
        value = tape.entries[self.entry][5]
        for parent, partial in self.partials(tape).items():
            if parent in seeds:
                out = accumulate(out, _scaled_up(seeds[parent], partial, value))
        return out

    def adjoint(self, tape: Tape, A: Batch, seeds: Seeds) -> None:
        """Multiply adjoints by the partials and sum them over broadcast axes."""
        for parent, partial in self.partials(tape).items():
            seeds[parent] = accumulate(seeds.get(parent), _scaled_down(A, partial, tape.entries[parent][5]))


@dataclass(frozen=True, slots=True)
class BulkStep:
    """Any other primitive: its vector rule where there is one, else the loop over autograd's own rule."""

    entry: int
    rule: Bulk

    def tangent(self, tape: Tape, seeds: Seeds) -> Batch | None:
        """Carry tangents of each active argument."""
        entry = tape[self.entry]
        out: Batch | None = None
        for argnum, parent in zip(entry.argnums, entry.parents, strict=True):
            if parent not in seeds:
                continue
            T = _dense(seeds[parent])
            function = self.rule.tangents.get(argnum)
            rows = (
                NotImplemented
                if function is None
                else function(T.rows, entry.value, *entry.args, **entry.kwargs)
            )
            if rows is NotImplemented:
                rows = loop_tangent(T.rows, entry, argnum)
            out = accumulate(out, Rows(T.start, rows))
        return out

    def adjoint(self, tape: Tape, A: Batch, seeds: Seeds) -> None:
        """Carry adjoints to each active argument."""
        entry = tape[self.entry]
        A = _dense(A)
        looped: list[int] = []
        for position, argnum in enumerate(entry.argnums):
            function = self.rule.adjoints.get(argnum)
            rows = (
                NotImplemented
                if function is None
                else function(A.rows, entry.value, *entry.args, **entry.kwargs)
            )
            if rows is NotImplemented:
                looped.append(position)
            else:
                parent = entry.parents[position]
                seeds[parent] = accumulate(seeds.get(parent), Rows(A.start, rows))
        if looped:
            partial = entry._replace(
                argnums=tuple(entry.argnums[i] for i in looped),
                parents=tuple(entry.parents[i] for i in looped),
            )
            for parent, rows in zip(partial.parents, loop_adjoint(A.rows, partial), strict=True):
                seeds[parent] = accumulate(seeds.get(parent), Rows(A.start, rows))


Step = MapStep | ClusterStep | BulkStep


@dataclass(frozen=True, slots=True)
class ArraySweep:
    """A compiled chunk.

    Parameters
    ----------
    chunk
        What is swept.
    steps
        In the order of the tape.
    last_use
        For each step, the values that no later step reads: their tangents are dropped there.
    bytes_per_direction
        Memory that the derivatives of all values alive at a time take for each direction, at most.
    """

    chunk: Chunk
    steps: tuple[Step, ...]
    last_use: tuple[tuple[int, ...], ...]
    bytes_per_direction: int

    def tangent(self, tape: Tape, matrix: np.ndarray | None) -> np.ndarray:
        """Return ``F' X`` for the chunk's Jacobian F'.

        Parameters
        ----------
        tape
            Values of this call.
        matrix
            X, shape ``(n, k)``; None for the identity.

        Returns
        -------
        ndarray
            Shape ``(m, k)``.
        """
        count = self.chunk.n if matrix is None else matrix.shape[1]
        seeds = _seeds(tape, self.chunk.sources, None if matrix is None else matrix.T)
        for step, dropped in zip(self.steps, self.last_use, strict=True):
            batch = step.tangent(tape, seeds)
            if batch is not None:
                seeds[step.entry] = batch
            for index in dropped:
                seeds.pop(index, None)
        return _collect(tape, self.chunk.targets, seeds, count).T

    def adjoint(self, tape: Tape, matrix: np.ndarray | None) -> np.ndarray:
        """Return ``X F'`` for the chunk's Jacobian F'.

        Parameters
        ----------
        tape
            Values of this call.
        matrix
            X, shape ``(k, m)``; None for the identity.

        Returns
        -------
        ndarray
            Shape ``(k, n)``.
        """
        count = self.chunk.m if matrix is None else len(matrix)
        seeds = _seeds(tape, self.chunk.targets, matrix)
        for step in reversed(self.steps):
            batch = seeds.pop(step.entry, None)
            if batch is not None:
                step.adjoint(tape, batch, seeds)
        return _collect(tape, self.chunk.sources, seeds, count)


def compile_array_sweep(tape: Tape, chunk: Chunk) -> ArraySweep:
    """Compile a chunk into array steps.

    Takes time linear in the entries of the chunk, a few µs for each.
    """
    readers = _reader_counts(tape, chunk)
    steps: list[Step] = []
    clusters: dict[int, tuple[list[int], dict[int, None]]] = {}
    for index in chunk.entries:
        primitive, argnums, parents, args, kwargs, value = tape.entries[index]
        rule = find_rule(primitive)
        if _is_elementwise(rule, argnums):
            members, inputs = [index], dict.fromkeys(parents)
            for parent in dict.fromkeys(parents):
                absorbed = clusters.get(parent)
                if (
                    absorbed
                    and readers[parent] == parents.count(parent)
                    and not _becomes_complex(tape, parent, value)
                ):
                    members = absorbed[0] + members
                    del inputs[parent]
                    inputs = {**absorbed[1], **inputs}
                    del clusters[parent]
            clusters[index] = (members, inputs)
    ends = {index: ClusterStep(index, tuple(sorted(m)), tuple(i)) for index, (m, i) in clusters.items()}
    covered = {member for step in ends.values() for member in step.members}
    for index in chunk.entries:
        if index in ends:
            steps.append(ends[index])
        elif index not in covered:
            steps.append(_single_step(tape, index))
    last_use = _last_uses(tape, chunk, steps)
    return ArraySweep(chunk, tuple(steps), last_use, _peak_bytes(tape, chunk, steps, last_use))


def _is_elementwise(rule: Any, argnums: tuple[int, ...]) -> bool:
    """Whether the partials of all active arguments are known."""
    return isinstance(rule, Elementwise) and all(argnum < len(rule.partials) for argnum in argnums)


def _becomes_complex(tape: Tape, parent: int, value: Any) -> bool:
    """Whether a complex value is computed from a real one: directions lose their imaginary part in between."""
    return np.iscomplexobj(value) and not np.iscomplexobj(tape.entries[parent][5])


def _single_step(tape: Tape, index: int) -> Step:
    """Compile an entry that is not elementwise."""
    entry = tape[index]
    rule = find_rule(entry.primitive)  # type: ignore[arg-type]
    if isinstance(rule, Movement):
        return MapStep(
            index, tuple((p, index_map(entry, a)) for a, p in zip(entry.argnums, entry.parents, strict=True))
        )
    return BulkStep(index, rule if isinstance(rule, Bulk) else Bulk())


def _reader_counts(tape: Tape, chunk: Chunk) -> dict[int, int]:
    """Count the reads of each value by the chunk; the targets are read from outside as well."""
    readers = dict.fromkeys((*chunk.sources, *chunk.entries), 0)
    for index in chunk.entries:
        for parent in tape.entries[index][2]:
            readers[parent] += 1
    for index in chunk.targets:
        readers[index] += 1
    return readers


def _last_uses(tape: Tape, chunk: Chunk, steps: Sequence[Step]) -> tuple[tuple[int, ...], ...]:
    """List after each step the values that nothing later reads."""
    last: dict[int, int] = {}
    for position, step in enumerate(steps):
        reads = step.inputs if isinstance(step, ClusterStep) else tape.entries[step.entry][2]
        for index in reads:
            last[index] = position
    for index in chunk.targets:
        last.pop(index, None)
    dropped: list[list[int]] = [[] for _ in steps]
    for index, position in last.items():
        dropped[position].append(index)
    return tuple(map(tuple, dropped))


def _peak_bytes(
    tape: Tape, chunk: Chunk, steps: Sequence[Step], last_use: tuple[tuple[int, ...], ...]
) -> int:
    """Most bytes that one direction of all live values takes; a step holds one more copy of its result while it adds up."""
    alive = peak = sum(element_count(tape.entries[i][5]) for i in chunk.sources)
    for step, dropped in zip(steps, last_use, strict=True):
        size = element_count(tape.entries[step.entry][5])
        alive += size
        peak = max(peak, alive + size)
        alive -= sum(element_count(tape.entries[i][5]) for i in dropped)
    return 8 * peak


def _seeds(tape: Tape, indices: Sequence[int], matrix: np.ndarray | None) -> Seeds:
    """Seed the values of a separator."""
    values = [tape.entries[index][5] for index in indices]
    batches = seed(matrix, [np.shape(v) for v in values], [_dtype(v) for v in values])
    seeds: Seeds = {}
    for index, batch in zip(indices, batches, strict=True):
        seeds[index] = accumulate(seeds.get(index), batch)
    return seeds


def _collect(tape: Tape, indices: Sequence[int], seeds: Mapping[int, Batch], count: int) -> np.ndarray:
    """Join the directions of the values of a separator."""
    values = [tape.entries[index][5] for index in indices]
    dtype = np.result_type(*map(_dtype, values))
    return assemble([seeds.get(index) for index in indices], [element_count(v) for v in values], count, dtype)


def _dtype(value: Any) -> np.dtype:
    """Type of the derivatives of a value; a Python number is in double precision."""
    return np.result_type(np.asarray(value), np.float16)


def _dense(batch: Batch) -> Rows:
    """Write the zeros of a diagonal out."""
    return batch.dense() if isinstance(batch, Diagonal) else batch


def _product(weight: Any, partial: Any) -> Any:
    """Multiply derivatives; the numbers 1 and -1 cost nothing."""
    if isinstance(partial, int) and partial == 1:
        return weight
    if isinstance(weight, int) and weight == 1:
        return partial
    return weight * partial


def _lift(rows: np.ndarray, ndim: int) -> np.ndarray:
    """Put axes of length one behind the direction axis, so that values of fewer axes broadcast."""
    missing = ndim + 1 - rows.ndim
    return rows.reshape(rows.shape[:1] + (1,) * missing + rows.shape[1:]) if missing > 0 else rows


def _scaled_up(batch: Batch, partial: Any, value: Any) -> Batch:
    """Tangents times a partial, in the shape of the result."""
    shape = np.shape(value)
    if isinstance(batch, Diagonal):
        if batch.values.shape == shape:
            return Diagonal(batch.start, real_like(np.broadcast_to(batch.values * partial, shape), value))
        batch = batch.dense()
    rows = _lift(batch.rows, len(shape))
    one = isinstance(partial, int) and partial == 1
    rows = real_like(rows if one else rows * partial, value)
    if one or rows.shape[1:] != shape:
        return Rows(batch.start, np.broadcast_to(rows, (len(rows), *shape)))
    return Rows(batch.start, rows, owned=True)


def _scaled_down(batch: Batch, partial: Any, value: Any) -> Batch:
    """Adjoints times a partial, summed to the shape of the argument."""
    shape = np.shape(value)
    if isinstance(batch, Diagonal):
        if batch.values.shape == shape:
            return Diagonal(batch.start, real_like(np.broadcast_to(batch.values * partial, shape), value))
        batch = batch.dense()
    one = isinstance(partial, int) and partial == 1
    rows = batch.rows if one else batch.rows * partial
    folded = real_like(fold(rows, shape), value)
    return Rows(batch.start, folded, owned=not one and folded is rows)


def _flat(rows: np.ndarray) -> np.ndarray:
    """One row for each direction; there may be none."""
    return rows.reshape(len(rows), prod(rows.shape[1:]))


def _gathered(batch: Batch, moves: IndexMap, value: Any) -> Batch:
    """Tangents of moved elements."""
    shape = batch_shape(value)
    if isinstance(batch, Diagonal):
        run = moves.run
        if run is not None and run.step == 1:
            return Diagonal(batch.start + run.start, batch.values.reshape(-1)[run].reshape(shape))
        batch = batch.dense()
    rows = moves.gather(_flat(batch.rows))
    return Rows(batch.start, rows.reshape(len(rows), *shape))


def _scattered(batch: Batch, moves: IndexMap, value: Any) -> Batch:
    """Adjoints of elements before they moved."""
    shape = batch_shape(value)
    if isinstance(batch, Diagonal):
        block = moves.block
        if block is not None:
            return Diagonal(batch.start + block.start, batch.values.reshape(-1)[block].reshape(shape))
        batch = batch.dense()
    rows = real_like(moves.scatter(_flat(batch.rows)), value)
    return Rows(batch.start, rows.reshape(len(rows), *shape))
