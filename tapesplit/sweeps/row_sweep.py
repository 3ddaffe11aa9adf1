"""Row sweeps: adjoints of the rows of all values in the row part of a tape, carried together.

Rows that stay apart share a direction, see `tapesplit.structures.rows`. Where the rows share an argument, its
adjoints are told apart: each direction takes those of its own row. An array sweep goes on from there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import VALUE, Tape
from tapesplit.rules.contraction import Shape, contract
from tapesplit.rules.rows import SharedOperand
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.row_part import Block, RowPart
from tapesplit.structures.rows import aligned_axis, opened_rows
from tapesplit.sweeps.array_memory import reads
from tapesplit.sweeps.array_steps import BulkStep, MapStep, Step, scatter_into
from tapesplit.sweeps.array_sweep import ArraySweep, compile_array_sweep
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.contractions import contracted, letters
from tapesplit.sweeps.directions import Rows, Seeds, accumulate

__all__ = ["RowSweep", "compile_row_sweep"]

_DIRECTION, _PRODUCT = "Z", "Y"


class _Arrival(NamedTuple):
    """Adjoints of an end, in a block of directions.

    ``told_apart`` returns those of some rows, of shape ``(rows, each, *shape)`` for a value of this shape.
    """

    end: int
    block: Block
    told_apart: Callable[[slice], np.ndarray]

    def within(self, directions: range) -> Rows | None:
        """Return those of some directions, counted from the first of these; None if there are none."""
        origin, first, _, each = self.block
        low, high = max(directions.start - origin, 0), min(directions.stop - origin, self.block.directions)
        if low >= high:
            return None
        found = self.told_apart(slice(first + low // each, first - (-high // each)))
        before = low // each * each
        rows = found.reshape(-1, *found.shape[2:])[low - before : high - before]
        return Rows(origin + low - directions.start, rows, owned=True)


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
    behind, before
        The row part as a sweep of its own, of any directions, and the sweep from its ends to the sources.
    carrying_bytes
        Memory that carrying the rows together takes.
    fixed_bytes
        Memory that what arrives at the ends takes afterwards, until all directions are told apart.
    """

    chunk: Chunk
    part: RowPart
    behind: ArraySweep
    before: ArraySweep
    carrying_bytes: int
    fixed_bytes: int

    @property
    def apart(self) -> ArraySweep:
        """The sweep of adjoints, each direction for itself: more work, but no rows are carried together."""
        before, behind = self.before, self.behind
        return replace(
            before,
            chunk=self.chunk,
            steps=before.steps + behind.steps,
            last_use=before.last_use + behind.last_use,
            bytes_per_direction=before.bytes_per_direction + behind.bytes_per_direction,
            merged_bytes=before.bytes_per_direction + behind.merged_bytes,
            fixed_bytes=max(before.fixed_bytes, behind.fixed_bytes),
        )

    @property
    def bytes_per_direction(self) -> int:
        """Memory that one direction takes: what arrives at all ends, or the sweep from there."""
        return self.before.bytes_per_direction

    @property
    def least_bytes(self) -> int:
        """Memory that a run takes besides its result, one direction at a time, together or for itself."""
        return min(self.together_bytes, self.apart.least_bytes)

    @property
    def together_bytes(self) -> int:
        """The same while rows are carried together."""
        return max(self.carrying_bytes, self.fixed_bytes + self.before.least_bytes)

    def working_bytes(self, directions: int) -> int:
        """Memory that a run with so many directions takes, at most."""
        return max(self.carrying_bytes, self.fixed_bytes + self.before.working_bytes(directions))

    def tangent(self, tape: Tape, matrix: np.ndarray | None, most: int | None = None) -> np.ndarray:
        """Return ``F' X`` for X of shape ``(n, k)``, by adjoints: plans do not ask for it."""
        jacobian = self.adjoint(tape, None, most)
        return jacobian if matrix is None else jacobian @ matrix

    def adjoint(self, tape: Tape, matrix: np.ndarray | None, most: int | None = None) -> np.ndarray:
        """Return ``X F'`` for X of shape ``(k, m)``, None for the identity, ``most`` directions at a time."""
        if matrix is not None:
            return matrix @ self.adjoint(tape, None, most)
        arrivals = cache(lambda: self._arrivals(tape))  # which blocks of directions share

        def told_apart(tape: Tape, directions: Any) -> np.ndarray:
            seeds: Seeds = {}
            for arrival in arrivals():
                batch = arrival.within(directions)
                if batch is not None:
                    seeds[arrival.end] = accumulate(seeds.get(arrival.end), batch)
            return self.before.carried_back(tape, seeds, len(directions))

        return self.before.carried(told_apart, tape, None, self.chunk.m, most)

    def _arrivals(self, tape: Tape) -> list[_Arrival]:
        """Carry the adjoints of all rows through the row part."""
        part, shared = self.part, _Shared()
        arrived: _Arrived = {block: {} for blocks in part.blocks.values() for block in blocks}
        output = self.chunk.targets[0]
        self._open(output, np.ones(np.shape(tape.entries[output][VALUE])), 0, arrived)
        for step in reversed(self.behind.steps):
            for block in part.blocks[step.index]:
                A = arrived[block].pop(step.index)
                if isinstance(step, MapStep):
                    self._move_back(tape, step, block, A, arrived)  # type: ignore[arg-type]
                elif isinstance(step, ClusterStep):
                    self._scale(tape, step, block, A, arrived[block], shared)  # type: ignore[arg-type]
                else:
                    self._multiply(tape, step, block, A, arrived[block], shared)  # type: ignore[arg-type]
        found = shared.arrivals()
        for block, seeds in arrived.items():
            for end, A in seeds.items():
                found.append(_Arrival(end, block, partial(_among_zeros, A.dense().rows, part.axes[end])))
        return found

    def _open(self, index: int, values: np.ndarray, origin: int, arrived: _Arrived) -> None:
        """Begin with the adjoints of all elements of a value, from this direction on."""
        axis, blocks = opened_rows(values.shape, origin)  # type: ignore[misc] # the row part has these
        for number, block in enumerate(blocks):
            seeds = arrived[block]
            seeds[index] = accumulate(seeds.get(index), Rows(0, _units(values, axis, number, block.each)))

    def _move_back(self, tape: Tape, step: MapStep, block: Block, A: Rows, arrived: _Arrived) -> None:
        """Carry adjoints of moved elements back."""
        for (parent, moves), reading in zip(step.maps, self.part.readings[step.index], strict=True):
            value = tape.entries[parent][VALUE]
            if reading == "opened":
                part: slice = moves.block  # type: ignore[assignment] # its elements are rows of the result
                self._open(parent, A.rows[0, part].reshape(value.shape), block.origin + part.start, arrived)
            else:
                own = block.moved(reading)  # type: ignore[arg-type] # other readings are not of movements
                if own is not None:
                    scatter_into(arrived[own], parent, A, moves, value)

    def _scale(
        self, tape: Tape, step: ClusterStep, block: Block, A: Rows, seeds: Seeds, shared: "_Shared"
    ) -> None:
        """Carry adjoints through merged operations; take note of those of what all rows share."""
        space, axis = _space(tape, self.part, step)
        for number, derivative in step.partials(tape).items():
            parent = step.input_of(number)
            shape = np.shape(tape.entries[parent][VALUE])
            if _keeps_rows(step, parent, shape, space, axis):
                batch = step.carried_back(tape, A, number, derivative)
                seeds[parent] = accumulate(seeds.get(parent), batch)
            else:
                chosen = _Chosen(A.rows, self.part.axes[step.index])
                of_rows = partial(_summed, chosen, derivative, axis, step.axes(tape, number), shape)
                shared.add(_Arrival(parent, block, of_rows), is_small=_is_small(shape, space, axis))

    def _multiply(
        self, tape: Tape, step: BulkStep, block: Block, A: Rows, seeds: Seeds, shared: "_Shared"
    ) -> None:
        """Carry adjoints through a product or another function; take note of those that all rows share."""
        entry, how = tape[step.index], self.part.readings[step.index]
        for argnum, parent, reading in zip(entry.argnums, entry.parents, how, strict=True):
            if isinstance(reading, SharedOperand):
                chosen = _Chosen(A.rows, self.part.axes[step.index])
                others = tuple(entry.args[number] for number in reading.others)
                shared.multiply(parent, block, reading, chosen, others)
            else:
                (batch,) = step.adjoints(entry._replace(argnums=(argnum,)), A)
                seeds[parent] = accumulate(seeds.get(parent), batch)


class _Chosen(NamedTuple):
    """Adjoints of all rows, shape ``(each, *shape)``, of which some are chosen along an axis of the value."""

    adjoints: np.ndarray
    axis: int

    def __call__(self, rows: slice) -> np.ndarray:
        """Return those of some rows."""
        return _part(self.adjoints, self.axis + 1, rows)


def _part(x: np.ndarray, axis: int, part: slice) -> np.ndarray:
    """Return part of an array along an axis."""
    return x[(slice(None),) * axis + (part,)]


def _units(values: np.ndarray, axis: int, number: int, each: int) -> np.ndarray:
    """Return the adjoints of elements, each in a direction of its own, those of all rows together.

    Rows along the first axis have all their elements in a block, others the one with this number.
    """
    if axis == 0:
        rows = np.zeros((each, len(values), each))
        rows[np.arange(each), :, np.arange(each)] = values.reshape(-1, each).T
    else:
        rows = np.zeros((1, prod(values.shape[:axis]), values.shape[axis]))
        rows[0, number] = values.reshape(rows.shape[1:])[number]
    return rows.reshape(-1, *values.shape)


def _among_zeros(A: np.ndarray, axis: int, rows: slice) -> np.ndarray:
    """Write the adjoints of some rows into arrays of all rows."""
    chosen = np.moveaxis(A, axis + 1, 0)[rows]
    found = np.zeros((*chosen.shape[:2], *A.shape[1:]))
    index = np.arange(len(chosen))
    np.moveaxis(found, axis + 2, 2)[index, :, rows.start + index] = chosen
    return found


def _summed(
    chosen: _Chosen, derivative: Any, axis: int, axes: tuple[Shape, str, str], shape: Shape, rows: slice
) -> np.ndarray:
    """Multiply the adjoints of some rows by derivatives, and sum over axes that an argument does not have."""
    space, given, kept = axes
    A, derivative = chosen(rows), np.asarray(derivative)
    own = aligned_axis(space, axis, derivative.shape)
    if own is not None:
        derivative = _part(derivative, own, rows)
    count, inner = A.shape[chosen.axis + 1], len(space) - axis - 1
    row = letters((2,) + (1,) * inner, space)
    own_row = row if count > 1 else ""  # axes of length one have no letters
    ends = (kept.replace(row, own_row), own_row + given)
    space = (*space[:axis], count, *space[axis + 1 :])
    return contracted(Rows(0, A), derivative, space, ends, (count, *shape)).dense().rows.swapaxes(0, 1)


def _space(tape: Tape, part: RowPart, step: ClusterStep) -> tuple[Shape, int]:
    """Return the shape of what merged operations multiply or sum, and the axis of its rows."""
    operand = step.reduction.operand if step.reduction else step.index
    return np.shape(tape.entries[operand][VALUE]), part.axes[operand]


def _keeps_rows(step: ClusterStep, parent: int, shape: Shape, space: Shape, axis: int) -> bool:
    """Tell whether an input of merged operations has their rows; all of them share weights."""
    is_weights = step.reduction is not None and parent == step.reduction.weights
    return not is_weights and aligned_axis(space, axis, shape) is not None


def _is_small(shape: Shape, space: Shape, axis: int) -> bool:
    """Tell whether an argument that rows share has no more elements than a row of what reads it."""
    return prod(shape) * space[axis] <= prod(space)


class _Factors(NamedTuple):
    """Adjoints of a product, and its other operands."""

    adjoints: _Chosen
    others: tuple[np.ndarray, ...]


class _Shared:
    """What arrives at arguments that all rows share, from several places where there is a loop."""

    def __init__(self) -> None:
        self.found: list[_Arrival] = []
        self.sums: dict[tuple[int, Block], np.ndarray] = {}
        self.products: dict[tuple[int, Block, SharedOperand, tuple[Shape, ...]], list[_Factors]] = {}

    def add(self, arrival: _Arrival, *, is_small: bool) -> None:
        """Tell rows apart at once and add up where that takes less memory than what it is made of."""
        if not is_small:
            self.found.append(arrival)
            return
        end, block, told_apart = arrival
        found = told_apart(slice(block.first, block.first + block.rows))
        self.sums[end, block] = self.sums[end, block] + found if (end, block) in self.sums else found

    def multiply(
        self,
        parent: int,
        block: Block,
        reading: SharedOperand,
        chosen: _Chosen,
        others: tuple[np.ndarray, ...],
    ) -> None:
        """Take note of a product: those by the same operand become one."""
        key = (parent, block, reading, tuple(other.shape for other in others))
        self.products.setdefault(key, []).append(_Factors(chosen, others))

    def arrivals(self) -> list[_Arrival]:
        """Return all that arrives."""
        sums = [
            _Arrival(end, block, partial(_stored, found, block.first))
            for (end, block), found in self.sums.items()
        ]
        products = [
            _Arrival(parent, block, partial(_multiplied, factors, reading))
            for (parent, block, reading, _), factors in self.products.items()
        ]
        return [*self.found, *sums, *products]


def _stored(found: np.ndarray, first: int, rows: slice) -> np.ndarray:
    """Return some rows of those from the first on."""
    return found[rows.start - first : rows.stop - first]


def _multiplied(factors: list[_Factors], reading: SharedOperand, rows: slice) -> np.ndarray:
    """Multiply the adjoints of some rows by the same rows of the other operands of products."""
    places = [term.find(reading.row) for term in reading.of_others]
    terms = [_DIRECTION + reading.of_result, *reading.of_others]
    result = reading.row + _DIRECTION + reading.of_operand
    known = [
        (chosen(rows), *(_part(x, i, rows) if i >= 0 else x for x, i in zip(others, places, strict=True)))
        for chosen, others in factors
    ]
    if len(known) == 1:
        return contract(tuple(terms), known[0], result)
    stacked = [np.stack(operands) for operands in zip(*known, strict=True)]
    return contract(tuple(_PRODUCT + term for term in terms), stacked, result)


def compile_row_sweep(tape: Tape, facts: TapeFacts, chunk: Chunk) -> RowSweep:
    """Compile a chunk with the row part of its tape.

    Parameters
    ----------
    tape, facts
        A tape of the structure that the sweep is for, and what is known of it.
    chunk
        The whole tape, cut nowhere.
    """
    part: RowPart = facts.row_part  # type: ignore[assignment] # the chunk has it
    sizes = facts.sizes
    width = int(sizes[list(part.ends)].sum())
    chunk_behind = Chunk(part.ends, chunk.targets, part.calls, width, chunk.m, part.edges)
    others = np.setdiff1d(chunk.entries, part.calls)
    chunk_before = Chunk(chunk.sources, part.ends, others, chunk.n, width, chunk.edges - part.edges)
    each = max(sum(block.each for block in blocks) for blocks in part.blocks.values())
    # Factors would stay some only up to where directions are told apart.
    behind = compile_array_sweep(tape, replace(facts, ranks={}), chunk_behind, each, adjoint_mode=True)
    before = compile_array_sweep(tape, facts, chunk_before, chunk.m, adjoint_mode=True, owned=True)
    arriving = 8 * width
    if each > 1 or part.arrivals > len(part.ends):
        # What arrives at one end is put in order, or added up, while that of all is held.
        arriving += 8 * max(int(sizes[end]) for end in part.ends)
    before = replace(before, bytes_per_direction=max(arriving, before.bytes_per_direction))
    staying = _staying_bytes(tape, part, behind.steps)
    carrying = behind.fixed_bytes + each * behind.bytes_per_direction + staying
    return RowSweep(chunk, part, behind, before, carrying, staying)


def _staying_bytes(tape: Tape, part: RowPart, steps: Sequence[Step]) -> int:
    """Count the bytes that stay until all directions are told apart: of what meets ends that rows share."""
    numbers = 0
    added: set[int] = set()
    for step in steps:
        blocks, size = part.blocks[step.index], np.size(tape.entries[step.index][VALUE])
        carried = size * sum(block.each for block in blocks)
        if isinstance(step, ClusterStep):
            space, axis = _space(tape, part, step)
            for parent in step.inputs:
                shape = np.shape(tape.entries[parent][VALUE])
                if _keeps_rows(step, parent, shape, space, axis):
                    continue
                if not _is_small(shape, space, axis):
                    numbers += carried + prod(space) * len(blocks)
                elif parent not in added:
                    numbers += prod(shape) * sum(block.directions for block in blocks)
                    added.add(parent)
        elif isinstance(step, BulkStep):
            for parent, reading in zip(reads(tape, step), part.readings[step.index], strict=True):
                if isinstance(reading, SharedOperand):  # several are copied into one array
                    numbers += carried * (1 + (parent in added))
                    added.add(parent)
    return 8 * numbers
