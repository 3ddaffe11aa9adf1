"""Row sweeps: adjoints of the rows of all values in the row part of a tape, carried together.

Rows that stay apart share a direction, see `tapesplit.structures.rows`. Where the rows share an argument, its
adjoints are told apart: each direction takes those of its own row. An array sweep goes on from there.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import VALUE, Tape
from tapesplit.rules.contraction import Shape, contract
from tapesplit.rules.rows import SharedOperand
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.row_part import Block, RowPart
from tapesplit.structures.rows import opened_block
from tapesplit.sweeps.array_memory import reads
from tapesplit.sweeps.array_steps import MapStep, Step, scatter_into
from tapesplit.sweeps.array_sweep import ArraySweep, compile_array_sweep
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.contractions import contracted, letters
from tapesplit.sweeps.directions import Rows, Seeds, accumulate

__all__ = ["RowSweep", "compile_row_sweep"]

_DIRECTION, _ROW = "Z", letters((2,), (2,))


class _Rows(Protocol):
    """What tells adjoints of some rows apart: shape ``(each, rows, *shape)`` of an end."""

    def __call__(self, rows: slice) -> np.ndarray: ...


class _Arrival(NamedTuple):
    """Adjoints of an end: those of a block of directions, from rows of so many."""

    end: int
    block: Block
    height: int
    told_apart: _Rows

    def within(self, directions: range) -> Rows | None:
        """Return those of some directions, counted from the first of these; None if there are none."""
        (origin, each), first, stop = self.block, directions.start, directions.stop
        low, high = max(first - origin, 0), min(stop - origin, each * self.height)
        if low >= high:
            return None
        rows = slice(low // each, -(-high // each))
        found = self.told_apart(rows).swapaxes(0, 1)
        found = found.reshape(-1, *found.shape[2:])[low - rows.start * each : high - rows.start * each]
        return Rows(origin + low - first, found, owned=True)


_Arrived = dict[Block, Seeds]
"""Adjoints of rows, carried together: those of each block of directions, by entry."""


@dataclass(frozen=True, slots=True, eq=False)
class RowSweep:
    """A compiled chunk whose row part is swept with one direction, or a few, for all rows.

    Parameters
    ----------
    chunk
        What is swept.
    part
        Its row part.
    steps
        Those of the row part, in the order of the tape.
    rest
        The sweep from the ends of the row part to the sources.
    fixed_bytes
        Memory that the adjoints of all rows take, and partial derivatives.
    """

    chunk: Chunk
    part: RowPart
    steps: tuple[Step, ...]
    rest: ArraySweep
    fixed_bytes: int

    @property
    def bytes_per_direction(self) -> int:
        """Memory that one direction takes: all ends, and what the sweep from there needs."""
        return self.rest.bytes_per_direction

    @property
    def least_bytes(self) -> int:
        """Memory that a run takes besides its result if it carries one direction at a time."""
        return self.fixed_bytes + self.rest.least_bytes

    def working_bytes(self, directions: int) -> int:
        """Memory that a run with so many directions takes, at most."""
        return self.fixed_bytes + self.rest.working_bytes(directions)

    def tangent(self, tape: Tape, matrix: np.ndarray | None, most: int | None = None) -> np.ndarray:
        """Return ``F' X`` for X of shape ``(n, k)``, None for the identity."""
        jacobian = self.adjoint(tape, None, most)
        return jacobian if matrix is None else jacobian @ matrix

    def adjoint(self, tape: Tape, matrix: np.ndarray | None, most: int | None = None) -> np.ndarray:
        """Return ``X F'`` for X of shape ``(k, m)``, None for the identity, ``most`` directions at a time."""
        if matrix is not None:
            return matrix @ self.adjoint(tape, None, most)
        return self.rest.carried(partial(self._told_apart, []), tape, None, self.chunk.m, most)

    def _told_apart(self, arrivals: list[_Arrival], tape: Tape, directions: range) -> np.ndarray:
        """Carry some directions of the ends to the sources; all blocks of directions share what arrives."""
        arrivals += [] if arrivals else self._arrivals(tape)
        seeds: Seeds = {}
        for arrival in arrivals:
            batch = arrival.within(directions)
            if batch is not None:
                seeds[arrival.end] = accumulate(seeds.get(arrival.end), batch)
        return self.rest.carried_back(tape, seeds, len(directions))

    def _arrivals(self, tape: Tape) -> list[_Arrival]:
        """Carry the adjoints of all rows through the row part."""
        found: list[_Arrival] = []
        output = self.chunk.targets[0]
        arrived: _Arrived = {block: {} for blocks in self.part.blocks.values() for block in blocks}
        for block in self.part.blocks[output]:
            shape = np.shape(tape.entries[output][VALUE])
            arrived[block][output] = Rows(0, _units(np.ones(shape), block.each))
        for step in reversed(self.steps):
            for block in self.part.blocks[step.index]:
                A = arrived[block].pop(step.index, None)
                if A is not None:
                    found += self._carried(tape, step, block, A, arrived)
        for block, seeds in arrived.items():
            for end, batch in seeds.items():
                rows = batch.dense().rows
                found.append(_Arrival(end, block, rows.shape[1], partial(_among_zeros, rows)))
        return found

    def _carried(self, tape: Tape, step: Step, block: Block, A: Any, arrived: _Arrived) -> list[_Arrival]:
        """Carry adjoints through a step, and return those of arguments that all rows share."""
        seeds, height = arrived[block], A.rows.shape[1]
        if isinstance(step, MapStep):
            for parent, moves in step.maps:
                value, shape = tape.entries[parent][VALUE], A.rows.shape[1:]
                opened = opened_block(block, moves, shape, np.shape(value))
                if opened is None:
                    scatter_into(seeds, parent, A, moves, value)
                else:
                    values = A.rows[0, moves.block].reshape(np.shape(value))
                    before = arrived[opened].get(parent)
                    arrived[opened][parent] = accumulate(before, Rows(0, _units(values, opened.each)))
            return []
        shared: list[_Arrival] = []
        if isinstance(step, ClusterStep):
            space = step.axes(tape, step.index)[0]
            for number, derivative in step.partials(tape).items():
                parent = step.input_of(number)
                shape = np.shape(tape.entries[parent][VALUE])
                if len(shape) == len(space) and shape[0] == height:
                    batch = step.carried_back(tape, A, number, derivative)
                    seeds[parent] = accumulate(seeds.get(parent), batch)
                else:
                    of_rows = partial(_summed, A.rows, derivative, step.axes(tape, number), shape)
                    shared.append(_Arrival(parent, block, height, of_rows))
            return shared
        entry, how = tape[step.index], self.part.readings[step.index]
        for argnum, parent, reading in zip(entry.argnums, entry.parents, how, strict=True):
            if reading == "kept":
                (batch,) = step.adjoints(entry._replace(argnums=(argnum,)), A)
                seeds[parent] = accumulate(seeds.get(parent), batch)
            else:
                other = entry.args[reading.other]
                shared.append(_Arrival(parent, block, height, partial(_multiplied, A.rows, reading, other)))
        return shared


def _units(values: np.ndarray, each: int) -> np.ndarray:
    """Return the adjoints of all elements, shape ``(height, ...)``, with so many of each row together."""
    height = len(values)
    if each == 1:
        return values[None].copy()
    rows = np.zeros((each, height, each))
    rows[np.arange(each), :, np.arange(each)] = values.reshape(height, each).T
    return rows.reshape(each, *values.shape)


def _among_zeros(A: np.ndarray, rows: slice) -> np.ndarray:
    """Write the adjoints of some rows into arrays of all rows."""
    chosen = A[:, rows]
    each, count = chosen.shape[:2]
    found = np.zeros((each, count, *A.shape[1:]))
    index = np.arange(count)
    found[:, index, rows.start + index] = chosen
    return found


def _summed(
    A: np.ndarray,
    derivative: Any,
    axes: tuple[Shape, str, str],
    shape: tuple[int, ...],
    rows: slice,
) -> np.ndarray:
    """Multiply the adjoints of some rows by derivatives, and sum over axes that an argument does not have."""
    space, given, kept = axes
    chosen, derivative = A[:, rows], np.asarray(derivative)
    count = chosen.shape[1]
    if derivative.ndim == len(space) and len(derivative) > 1:
        derivative = derivative[rows]
    row = letters((count,), (count,))
    ends = (row + kept.removeprefix(_ROW), row + given)
    return contracted(Rows(0, chosen), derivative, (count, *space[1:]), ends, (count, *shape)).dense().rows


def _multiplied(A: np.ndarray, reading: SharedOperand, other: np.ndarray, rows: slice) -> np.ndarray:
    """Multiply the adjoints of some rows by the same rows of the other operand of a product."""
    along = [slice(None)] * other.ndim
    along[reading.of_other.index(reading.row)] = rows
    terms = (_DIRECTION + reading.of_result, reading.of_other)
    return contract(terms, [A[:, rows], other[tuple(along)]], _DIRECTION + reading.row + reading.of_operand)


def compile_row_sweep(tape: Tape, facts: TapeFacts, chunk: Chunk) -> RowSweep:
    """Compile a chunk with the row part of its tape.

    Parameters
    ----------
    tape, facts
        A tape of the structure that the sweep is for, and what is known of it.
    chunk
        Part of the tape, see `tapesplit.cuts.chunks.has_row_part`.
    """
    part: RowPart = facts.row_part  # type: ignore[assignment] # the chunk has it
    sizes = facts.sizes
    width, edges = int(sizes[list(part.ends)].sum()), int(facts.edges[part.calls].sum())
    behind = Chunk(part.ends, chunk.targets, part.calls, width, chunk.m, edges)
    others = np.setdiff1d(chunk.entries, part.calls)
    before = Chunk(chunk.sources, part.ends, others, chunk.n, width, chunk.edges - edges)
    each = max(block.each for blocks in part.blocks.values() for block in blocks)
    rows = compile_array_sweep(tape, facts, behind, each, adjoint_mode=True)
    rest = compile_array_sweep(tape, facts, before, chunk.m, adjoint_mode=True)
    # Adjoints of one end are put in order and added up while those of all are held; then the rest begins.
    arriving = 8 * max(int(sizes[end]) for end in part.ends) * min(each, 2)
    rest = replace(rest, bytes_per_direction=8 * width + max(arriving, rest.bytes_per_direction))
    # Adjoints that meet an end stay until all directions are told apart, together with partial derivatives.
    meeting = [step for step in rows.steps if not part.blocks.keys() >= {*reads(tape, step)}]
    staying = sum(int(sizes[step.index]) * (each + isinstance(step, ClusterStep)) for step in meeting)
    together = each * rows.bytes_per_direction + 8 * staying
    return RowSweep(chunk, part, rows.steps, rest, rows.fixed_bytes + together)
