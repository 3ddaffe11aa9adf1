"""Row sweeps: adjoints of the rows of all values in the row part of a tape, carried together.

Rows that stay apart share a direction, see `tapesplit.structures.rows`. At the ends of the row part, as at an
argument that all rows share, each row gets directions of its own, and an array sweep goes on from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import Any, Final

import numpy as np

from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.rules.rows import SharedOperand
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.row_part import RowBlock, RowPart
from tapesplit.structures.rows import aligned_axes
from tapesplit.sweeps.array_steps import BulkStep, Step
from tapesplit.sweeps.array_sweep import ArraySweep, compile_array_sweep
from tapesplit.sweeps.arrivals import Arrival, Chosen, Shared, among_zeros, looked_up, summed
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.directions import Rows, Seeds, add_to
from tapesplit.sweeps.map_step import MapStep, in_one_piece, scatter_into

__all__ = ["RowSweep", "compile_row_sweep"]


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
        An array sweep of the row part, and that from its ends to the sources.
    views
        Steps from where the row part starts to the output, which is the same in another shape.
    carrying_bytes
        Memory that carrying the rows together takes.
    fixed_bytes
        Memory of what has arrived at the ends, which is kept until all directions are told apart.
    """

    chunk: Chunk
    part: RowPart
    behind: ArraySweep
    before: ArraySweep
    views: tuple[Step, ...]
    carrying_bytes: int
    fixed_bytes: int

    @property
    def apart(self) -> ArraySweep:
        """The array sweep of the whole chunk; rows share no directions, which is more work in less memory."""
        before, behind = self.before, self.behind
        return replace(
            before,
            chunk=self.chunk,
            steps=before.steps + behind.steps + self.views,
            last_use=before.last_use + behind.last_use + ((),) * len(self.views),
            bytes_per_direction=before.bytes_per_direction + behind.bytes_per_direction,
            beside_bytes=before.bytes_per_direction + behind.beside_bytes,
            fixed_bytes=max(before.fixed_bytes, behind.fixed_bytes),
        )

    @property
    def bytes_per_direction(self) -> int:
        """Memory that one direction takes: its adjoints at all ends, or the sweep from there."""
        return self.before.bytes_per_direction

    @property
    def least_bytes(self) -> int:
        """Memory of a run besides its result, one direction at a time, with rows together or apart."""
        return min(self.together_bytes, self.apart.least_bytes)

    @property
    def together_bytes(self) -> int:
        """The same while rows are carried together."""
        return max(self.carrying_bytes, self.fixed_bytes + self.before.least_bytes)

    def working_bytes(self, directions: int) -> int:
        """Memory that a run with so many directions takes, at most."""
        return max(self.carrying_bytes, self.fixed_bytes + self.before.working_bytes(directions))

    def jacobian(self, tape: Tape, most: int | None = None) -> np.ndarray:
        """Return ``F'``, by adjoints, ``most`` directions at a time."""
        arrivals = cache(lambda: self._arrivals(tape))  # found once, for all blocks of directions

        def told_apart(tape: Tape, directions: Any) -> np.ndarray:
            seeds: Seeds = {}
            for arrival in arrivals():
                batch = arrival.within(directions)
                if batch is not None:
                    add_to(seeds, arrival.end, batch)
                del batch  # the sweep uses up what has arrived
            return self.before.carried_back(tape, seeds, len(directions))

        return self.before.carried(told_apart, tape, range(self.chunk.m), self._at_a_time(most))

    def _at_a_time(self, most: int | None) -> int:
        """Return how many directions are told apart at a time: all, or whole rows, or whole runs of them."""
        directions = self.before.block(self.chunk.m, most)
        if directions == self.chunk.m:
            return directions
        blocks = [block for end in self.part.ends for block in self.part.blocks.get(end, ())]
        units = [unit for block in blocks for unit in (block.behind, block.pitch) if unit <= directions]
        if units:
            return directions - directions % max(units)
        return max(1, directions // 2)  # parts of two rows are put in order

    def _arrivals(self, tape: Tape) -> list[Arrival]:
        """Carry the adjoints of all rows through the row part."""
        walk, start = _Walk(tape, self.part), self.part.start
        walk.open(start, np.ones(tape.shape(start)), 0)
        for step in reversed(self.behind.steps):
            walk.carry_back(step)
        return walk.arrivals()


class _Walk:
    """Carries adjoints of all rows together through the row part, from its start to the ends.

    ``arrived`` has the adjoints of values that have rows, by block of directions and entry; ``shared``
    collects those of arguments that all rows share, and ``looked_up`` those of arguments of which rows take
    elements.
    """

    def __init__(self, tape: Tape, part: RowPart) -> None:
        self.tape, self.part, self.shared = tape, part, Shared(tape.values)
        self.looked_up: list[Arrival] = []
        self.arrived: dict[RowBlock, Seeds] = {
            block: {} for blocks in part.blocks.values() for block in blocks
        }

    def open(self, index: int, values: np.ndarray, origin: int) -> None:
        """Give each element of a row its own direction, with these values as adjoints, from `origin` on."""
        block = RowBlock.of_array(values.shape, self.part.axes[index], origin)
        add_to(self.arrived[block], index, Rows(0, _units(values, block)))

    def carry_back(self, step: Step) -> None:
        """Carry the adjoints of the result of a step to what it reads."""
        blocks = self.part.blocks[step.index]
        batches = {block: self.arrived[block].pop(step.index).dense() for block in blocks}
        if isinstance(step, MapStep):
            self._move_back(step, batches)
        elif isinstance(step, ClusterStep):
            self._scale(step, batches)
        else:
            self._multiply(step, batches)

    def arrivals(self) -> list[Arrival]:
        """Return all that has arrived at the ends."""
        found = self.shared.arrivals() + self.looked_up
        for block, seeds in self.arrived.items():
            for end, A in seeds.items():
                told_apart = partial(among_zeros, A.dense().rows, self.part.axes[end])
                found.append(Arrival(end, block, told_apart))
        return found

    def _move_back(self, step: MapStep, batches: Mapping[RowBlock, Rows]) -> None:
        """Carry adjoints of moved elements back."""
        if len(step.maps) > 1:
            batches = {block: in_one_piece(A) for block, A in batches.items()}
        for (parent, moves), reading in zip(step.maps, self.part.readings[step.index], strict=True):
            value = self.tape.values[parent]
            for block, A in batches.items():
                if reading == "opened":
                    part: slice = moves.block  # type: ignore[assignment] # its elements are rows of the result
                    own_values = A.rows[0, part].reshape(value.shape)
                    self.open(parent, own_values, block.origin + part.start)
                elif reading == "looked up":
                    chosen = A.rows.reshape(len(A.rows), *self.tape.shape(step.index))
                    told_apart = partial(looked_up, chosen, self.part.axes[step.index], moves, value)
                    self.looked_up.append(Arrival(parent, block, told_apart))
                else:
                    own = block.moved(reading)  # type: ignore[arg-type] # other readings are not of movements
                    if own is not None:
                        scatter_into(self.arrived[own], parent, A, moves, value)

    def _scale(self, step: ClusterStep, batches: Mapping[RowBlock, Rows]) -> None:
        """Carry adjoints through merged operations; collect those of arguments that all rows share."""
        tape, row_axes = self.tape, self.part.axes[step.operand]
        for number, derivative in step.partials(tape).items():
            parent = step.input_of(number)
            shape, axes = tape.shape(parent), step.axes(tape, number)
            keeps_rows = parent == number and aligned_axes(axes[0], row_axes, shape)  # weights do not
            for block, A in batches.items():
                if keeps_rows:
                    add_to(self.arrived[block], parent, step.carried_back(tape, A, number, derivative))
                else:
                    chosen = Chosen.along(A.rows, self.part.axes[step.index])
                    rows = slice(block.first, block.first + block.rows)
                    found = summed(chosen, derivative, row_axes, axes, shape, rows)
                    self.shared.add_up(parent, block, found)

    def _multiply(self, step: BulkStep, batches: Mapping[RowBlock, Rows]) -> None:
        """Carry adjoints through a product or another function; note products with what all rows share."""
        entry, how = self.tape[step.index], self.part.readings[step.index]
        for argnum, parent, reading in zip(entry.argnums, entry.parents, how, strict=True):
            for block, A in batches.items():
                if isinstance(reading, SharedOperand):
                    chosen = Chosen.along(A.rows, self.part.axes[step.index])
                    self.shared.multiply(parent, block, reading, chosen, reading.operands(entry.args))
                else:
                    (batch,) = step.adjoints(entry._replace(argnums=(argnum,)), A)
                    add_to(self.arrived[block], parent, batch)


def _units(values: np.ndarray, block: RowBlock) -> np.ndarray:
    """Return adjoints in which each element of a row has its own direction, which all rows share."""
    before, behind = block.before, block.behind
    units = np.zeros((before, behind, before, block.rows, behind))
    run, k = np.arange(before)[:, None], np.arange(behind)
    units[run, k, run, :, k] = values.reshape(before, block.rows, behind).swapaxes(1, 2)
    return units.reshape(-1, *values.shape)


def compile_row_sweep(tape: Tape, facts: TapeFacts, chunk: Chunk) -> RowSweep:
    """Compile a chunk with the row part of its tape.

    The chunk is the whole tape, cut nowhere. Any tape of the structure that the sweep is for will do.
    """
    part: RowPart = facts.row_part  # type: ignore[assignment] # the chunk has it
    sizes = facts.sizes
    width = int(sizes[list(part.ends)].sum())
    chunk_behind = Chunk(part.ends, (part.start,), part.calls, width, chunk.m, part.edges)
    views = chunk.entries[chunk.entries > part.start]
    others = np.setdiff1d(chunk.entries, [*part.calls, *views])
    chunk_before = Chunk(chunk.sources, part.ends, others, chunk.n, width, chunk.edges - part.edges)
    each = max(sum(block.each for block in blocks) for blocks in part.blocks.values())
    # Factors would be multiplied out anyway at the ends, where directions are told apart.
    behind = compile_array_sweep(
        tape, replace(facts, ranks={}), chunk_behind, each, adjoint_mode=True, owned=True
    )
    before = compile_array_sweep(tape, facts, chunk_before, chunk.m, adjoint_mode=True, owned=True)
    # While adjoints of all ends are held, those of one may be written into another array, and added up.
    rewritten = _are_put_in_order(tape, part, behind.steps) or _have_several_windows(tape, part, behind.steps)
    copies = rewritten + (part.arrivals > len(part.ends))
    made = copies * max(int(sizes[end]) for end in part.ends) + _imaginary_numbers(facts, part, behind.steps)
    arriving = 8 * (width + made)
    before = replace(before, bytes_per_direction=max(arriving, before.bytes_per_direction))
    staying = _staying_bytes(tape, facts, part, behind.steps)
    carrying = behind.fixed_bytes + each * behind.bytes_per_direction + staying
    arrived = sum(int(sizes[end]) * block.each for end in part.ends for block in part.blocks.get(end, ()))
    chunk_of_views = Chunk((part.start,), chunk.targets, views, chunk.m, chunk.m, 0)
    in_shape = compile_array_sweep(tape, facts, chunk_of_views, chunk.m, adjoint_mode=True)
    return RowSweep(chunk, part, behind, before, in_shape.steps, carrying, staying + 8 * arrived)


def _are_put_in_order(tape: Tape, part: RowPart, steps: Sequence[Step]) -> bool:
    """Tell whether directions arrive in another order than theirs at what all rows share."""
    return any(
        not block.in_order
        for step in steps
        if _shared_by_rows(tape, part, step)
        for block in part.blocks[step.index]
    )


def _have_several_windows(tape: Tape, part: RowPart, steps: Sequence[Step]) -> bool:
    """Tell whether different directions arrive at one end, so that they are written into one array."""
    windows: dict[int, set[tuple[int, int]]] = {end: set() for end in part.ends}
    for step in steps:
        for end in windows.keys() & {*step.reads(tape)}:
            windows[end] |= {(block.origin, block.stop) for block in part.blocks[step.index]}
    return any(len(found) > 1 for found in windows.values())


def _imaginary_numbers(facts: TapeFacts, part: RowPart, steps: Sequence[Step]) -> int:
    """Count the numbers that complex adjoints of ends take besides their real parts, which are views."""
    parents, is_complex = facts.structure.parents, facts.is_complex
    read = {parent for step in steps if is_complex[step.index] for parent in parents[step.index]}
    return sum(int(facts.sizes[end]) for end in part.ends if end in read and not is_complex[end])


def _staying_bytes(tape: Tape, facts: TapeFacts, part: RowPart, steps: Sequence[Step]) -> int:
    """Count the bytes that `Shared` keeps until all directions are told apart."""
    numbers = 0
    added: set[int] = set()
    for step in steps:
        blocks, shared = part.blocks[step.index], _shared_by_rows(tape, part, step)
        if isinstance(step, ClusterStep):
            # Real parts of complex adjoints are views of these.
            each = 1 + int(facts.is_complex[[member.number for member in step.members]].any())
            elements = sum(prod(tape.shape(parent)) for parent in {*shared} - added)
            numbers += each * elements * sum(block.directions for block in blocks)
        else:
            carried = int(facts.sizes[step.index]) * sum(block.each for block in blocks)
            # Several are copied into one array.
            numbers += carried * (len(shared) + len([*filter(added.__contains__, shared)]))
            if isinstance(step, MapStep):
                numbers += (_PLACES * int(facts.sizes[step.index]) + carried) * len(shared)
        added.update(shared)
    return 8 * numbers


def _shared_by_rows(tape: Tape, part: RowPart, step: Step) -> list[int]:
    """List what a step reads of which all rows share the adjoints, or take elements."""
    if isinstance(step, ClusterStep):
        space, axes = tape.shape(step.operand), part.axes[step.operand]
        weights = step.reduction.weights if step.reduction else None
        return [i for i in step.inputs if i == weights or not aligned_axes(space, axes, tape.shape(i))]
    readings = zip(step.reads(tape), part.readings[step.index], strict=True)
    return [p for p, reading in readings if isinstance(reading, SharedOperand) or reading == "looked up"]


_PLACES: Final = 5
"""Positions that are held for each element of a result whose rows take elements from anywhere."""
