"""Array sweeps: carry all directions of a chunk at once through its array operations.

A chunk is compiled once into steps that depend on the tape's structure only; a run reads the values of
one tape. Elementwise operations are merged with those that read them, and with reductions of their results,
see `clusters`: the partial derivatives of such a step are formed with a single direction, and every seeded
direction then costs one multiplication, or one product, for each input of the step.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import autograd.numpy as anp
import numpy as np

from tapesplit.cuts.chunks import Chunk
from tapesplit.errors import TapesplitError
from tapesplit.recording.hidden import hidden_value_error, holds_box, holds_boxes
from tapesplit.recording.tape import Tape
from tapesplit.recording.values import derivative_dtype, real_count
from tapesplit.rules import IndexMap, Movement, index_maps, lu_bytes
from tapesplit.structures.facts import TapeFacts, call_key
from tapesplit.sweeps.array_memory import adjoint_numbers, number_counts, tangent_numbers
from tapesplit.sweeps.array_steps import Step, bulk_step
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.clusters import find_clusters
from tapesplit.sweeps.directions import (
    Batch,
    Seeds,
    Summed,
    add_to,
    as_pairs,
    assemble,
    cached_directions,
    in_blocks,
    seed,
)
from tapesplit.sweeps.factoring import (
    copied_numbers,
    factored_sizes,
    joined_sizes,
    keeping_factors,
    worth_factoring,
)
from tapesplit.sweeps.map_step import MapStep
from tapesplit.sweeps.preaccumulation import arrays_alive
from tapesplit.telling import told

__all__ = ["ArraySweep", "compile_array_sweep", "last_uses"]


_BUFFERED: Final = 2**17
"""Bytes of derivatives from which on NumPy works faster with small buffers; not if one direction has them."""
_BUFFER: Final = 1024
"""Numbers in such a buffer. NumPy 2.3 and later copy rows that do not follow each other into buffers of 8192
numbers, as many rows at a time as these hold: elementwise operations on slices then take up to three times as
long."""


_MOST_APART: Final = 4
"""How many times as much as caches hold the derivatives of all values that are alive may take, where each
step reads and writes few of them: this bounds the memory of blocks."""


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
    adjoint_mode
        Whether the sweep is meant for adjoints: memory is counted for these, but both modes can be run.
    bytes_per_direction
        Memory that the derivatives of all values alive at a time take for each direction, at most.
    beside_bytes
        The same, while something is alive that all directions share.
    fixed_bytes
        Memory of what all directions share, at most: partial derivatives of merged operations, results inside
        of sums.
    lu_bytes
        Memory of the LU factors that are kept all the time if no limit is set.
    touched_bytes
        Memory of the derivatives that a step reads and writes for each direction, on average.
    detached
        Sources and targets that depend on the inputs through empty arrays only: they have no directions.
    factored
        Entries whose adjoints stay factored, also where several products add to them.
    """

    chunk: Chunk
    steps: tuple[Step, ...]
    last_use: tuple[tuple[int, ...], ...]
    adjoint_mode: bool
    bytes_per_direction: int
    beside_bytes: int
    fixed_bytes: int
    lu_bytes: int = 0
    touched_bytes: int = 0
    detached: frozenset[int] = frozenset()
    factored: frozenset[int] = frozenset()

    @property
    def least_bytes(self) -> int:
        """Memory that a run takes besides its result if it carries one direction at a time."""
        return self.fixed_bytes + self.bytes_per_direction

    @property
    def _result_bytes(self) -> int:
        """Memory that the result takes for each direction."""
        return 8 * (self.chunk.n if self.adjoint_mode else self.chunk.m)

    def working_bytes(self, directions: int) -> int:
        """Memory that a run with so many directions takes, at most."""
        block = self.block(directions)
        # Blocks are written into the result, which is what a run with all directions ends with.
        result = self._result_bytes * directions if block < directions else 0
        carried = max(self.bytes_per_direction * block, self.fixed_bytes + self.beside_bytes * block)
        return carried + result + self.lu_bytes

    def block(self, count: int, most: int | None = None) -> int:
        """Return how many of so many directions are carried at a time, where ``most`` may be.

        All of them if the sweep holds no more than its result, into which blocks would have to be copied.
        """
        each = self.bytes_per_direction
        if each > self._result_bytes:
            passing = min(each, max(self.touched_bytes, each // _MOST_APART))
            count = cached_directions(count, passing, self.fixed_bytes * passing // each)
        return count if most is None else min(count, most)

    def run(self, tape: Tape, rows: np.ndarray | None, most: int | None = None) -> np.ndarray:
        """Carry directions, a row each, None for the identity, ``most`` of them at a time."""
        carry, size = (self._adjoints, self.chunk.m) if self.adjoint_mode else (self._tangents, self.chunk.n)
        return self.carried(carry, tape, range(size) if rows is None else rows, most)

    def _tangents(self, tape: Tape, rows: np.ndarray | range) -> np.ndarray:
        """Carry tangents, shape ``(k, n)``, to ``(k, m)``."""
        seeds = self._attached(_seeds(tape, self.chunk.sources, rows, adjoint_mode=False))
        for step, dropped in told(zip(self.steps, self.last_use, strict=True), len(self.steps)):
            batch = step.tangent(tape, seeds)
            if batch is not None:
                seeds[step.index] = batch
            for index in dropped:
                seeds.pop(index, None)
        return _collect(tape, self.chunk.targets, seeds, len(rows), adjoint_mode=False)

    def _adjoints(self, tape: Tape, rows: np.ndarray | range) -> np.ndarray:
        """Carry adjoints, shape ``(k, m)``, to ``(k, n)``."""
        return self.carried_back(tape, _seeds(tape, self.chunk.targets, rows, adjoint_mode=True), len(rows))

    def carried_back(self, tape: Tape, seeds: Seeds, count: int) -> np.ndarray:
        """Carry so many adjoints of the targets, which are used up, to ``(count, n)``."""
        seeds = self._attached(seeds)
        for step in told(reversed(self.steps), len(self.steps)):
            batch = seeds.pop(step.index, None)
            batches: list[Batch] = [] if batch is None else [batch]
            if isinstance(batch, Summed):
                batches = batch.apart() if step.index in self.factored else [batch.dense()]
            del batch  # what is collected takes its memory
            while batches:
                step.adjoint(tape, batches.pop(), seeds)
        return _collect(tape, self.chunk.sources, self._attached(seeds), count, adjoint_mode=True)

    def carried(
        self,
        sweep: Callable[[Tape, np.ndarray | range], np.ndarray],
        tape: Tape,
        seeds: np.ndarray | range,
        most: int | None,
    ) -> np.ndarray:
        """Run `sweep` on all directions, in blocks; explain errors that hidden traced values have caused."""
        block = self.block(len(seeds), most)
        try:
            with np.errstate():  # restores the size of buffers at its end
                if self.bytes_per_direction < _BUFFERED <= self.bytes_per_direction * block:
                    np.setbufsize(_BUFFER)
                rows = in_blocks(partial(sweep, tape), seeds, block)
        except (TypeError, ValueError, AttributeError) as error:  # what NumPy raises where it meets boxes
            if isinstance(error, TapesplitError) or not holds_boxes(tape):
                raise
            raise hidden_value_error(tape.name, tape) from error
        if rows.dtype.hasobject and holds_box(rows):
            raise hidden_value_error(tape.name, tape)
        return rows

    def _attached(self, seeds: Seeds) -> Seeds:
        """Drop directions of values that depend on nothing."""
        for index in self.detached:
            seeds.pop(index, None)
        return seeds


def compile_array_sweep(
    tape: Tape,
    facts: TapeFacts,
    chunk: Chunk,
    directions: int,
    *,
    adjoint_mode: bool = False,
    identity: bool = False,
    owned: bool = False,
) -> ArraySweep:
    """Compile a chunk into array steps.

    Any tape of the structure that the sweep is for will do. `adjoint_mode`, `identity` and `owned` tell what
    memory is counted for: the mode, and whether directions are those of an identity, or adjoints that the
    sweep may use up. Either mode and any seeds can be run.

    Notes
    -----
    Takes a few µs for each entry.
    """
    detached = {*np.flatnonzero(facts.detached).tolist()}
    worth = worth_factoring(facts, chunk, directions) if adjoint_mode else set[int]()
    clusters = find_clusters(tape, facts, chunk, directions, detached, worth)
    steps = _steps(tape, facts, chunk, clusters, detached)
    diagonal = [index for index in chunk.targets if identity and not facts.is_complex[index]]
    factored = factored_sizes(tape, facts, steps, worth, diagonal)
    found = joined_sizes(tape, facts, steps, directions) if adjoint_mode else {}
    joined = {i: size for i, size in found.items() if i not in factored and i not in chunk.targets}
    kept = {*factored, *joined}
    steps = [keeping_factors(tape, step, kept) for step in steps]
    readings = [step.reads(tape) for step in steps]
    last_use = last_uses(readings, chunk.targets)
    sizes = dict.fromkeys(detached, 0) | number_counts(tape, chunk, steps)
    if adjoint_mode:
        sizes |= factored
        numbers = adjoint_numbers(tape, chunk, steps, sizes, joined, identity=identity, owned=owned)
    else:
        numbers = tangent_numbers(tape, chunk, steps, last_use, sizes, identity=identity)
    ends = frozenset(detached.intersection(chunk.sources + chunk.targets))
    alone, beside, shared = numbers
    return ArraySweep(
        chunk,
        tuple(steps),
        last_use,
        adjoint_mode,
        bytes_per_direction=8 * max(alone, beside),
        beside_bytes=8 * beside,
        fixed_bytes=8 * max(shared, _fixed_numbers(tape, clusters.values(), factored)),
        lu_bytes=_lu_bytes(tape, facts, steps),
        touched_bytes=8 * _touched(steps, readings, sizes, joined),
        detached=ends,
        factored=frozenset(factored),
    )


def _steps(
    tape: Tape, facts: TapeFacts, chunk: Chunk, clusters: Mapping[int, ClusterStep], detached: Container[int]
) -> list[Step]:
    """Compile the entries of a chunk into steps, those of merged operations among them."""
    covered = {member for step in clusters.values() for member, _ in step.members}
    known: dict[Any, tuple[IndexMap, ...]] = {}
    steps: list[Step] = []
    for index in chunk.entries.tolist():
        if index in clusters:
            steps.append(clusters[index])
        elif index not in covered and index not in detached:
            steps.append(_single_step(tape, facts, index, known))
    return steps


def _touched(
    steps: Sequence[Step],
    readings: Sequence[Sequence[int]],
    sizes: Mapping[int, int],
    joined: Container[int],
) -> int:
    """Count the numbers that a step reads and writes for each direction: the mean, weighted by themselves.

    Products pass factors to matrices in ``joined``, which are small.
    """
    touched = [
        sizes[step.index] + sum(sizes[i] for i in read if i not in joined)
        for step, read in zip(steps, readings, strict=True)
    ]
    return sum(n * n for n in touched) // max(sum(touched), 1)


def _fixed_numbers(tape: Tape, clusters: Iterable[ClusterStep], factored: Iterable[int]) -> int:
    """Count the numbers that all directions share: partial derivatives, or copies of given matrices."""
    partials = [real_count(tape.values[step.members[0].number]) * _arrays(step) for step in clusters]
    return max([0, *partials, *(copied_numbers(tape, index) for index in factored)])


def _arrays(step: ClusterStep) -> int:
    """Count the arrays of partial derivatives that are alive at a time."""
    alive = arrays_alive(step.members)
    if step.reduction:
        return alive if step.reduction.is_weighted else alive - 1
    # Without a reduction, the derivative of what follows by the result is the number 1.
    return max(1 + len(step.inputs), alive - 1)


def _lu_bytes(tape: Tape, facts: TapeFacts, steps: Sequence[Step]) -> int:
    """Count the bytes of the LU factors that are kept, even where a matrix is read once."""
    if all(kind.primitive is not anp.linalg.solve for kind in facts.kinds):
        return 0
    solved = [step.index for step in steps if tape.primitives[step.index] is anp.linalg.solve]
    return lu_bytes(tape.args[index][0] for index in solved)


def _single_step(tape: Tape, facts: TapeFacts, index: int, known: dict[Any, tuple[IndexMap, ...]]) -> Step:
    """Compile an entry that is not elementwise; equal movements share their index maps."""
    entry = tape[index]
    rule = facts.kinds[facts.kind[index]].rule
    if not isinstance(rule, Movement):
        return bulk_step(index, rule)
    key = call_key(facts, index)
    if key not in known:
        known[key] = index_maps(entry)
    return MapStep(index, tuple(zip(entry.parents, known[key], strict=True)))


def last_uses(readings: Sequence[Sequence[int]], kept: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """List for each step the values that no later step reads, except those in `kept`.

    ``readings[i]`` are the values that step i reads.
    """
    last = {index: position for position, read in enumerate(readings) for index in read}
    for index in kept:
        last.pop(index, None)
    dropped: list[list[int]] = [[] for _ in readings]
    for index, position in last.items():
        dropped[position].append(index)
    return tuple(map(tuple, dropped))


def _seeds(tape: Tape, indices: Sequence[int], rows: np.ndarray | range, *, adjoint_mode: bool) -> Seeds:
    """Seed the values of a separator; those that no direction reaches have no seeds."""
    values = [tape.values[index] for index in indices]
    shapes, dtypes = [np.shape(v) for v in values], [derivative_dtype(v) for v in values]
    batches = seed(rows, shapes, dtypes, adjoint_mode=adjoint_mode)
    seeds: Seeds = {}
    for index, batch in zip(indices, batches, strict=True):
        if batch.start < batch.stop:
            add_to(seeds, index, batch)
    return seeds


def _collect(
    tape: Tape, indices: Sequence[int], seeds: Mapping[int, Batch], count: int, *, adjoint_mode: bool
) -> np.ndarray:
    """Join the directions of the values of a separator."""
    values = [tape.values[index] for index in indices]
    dtypes = [derivative_dtype(value) for value in values]
    sizes = [real_count(value) for value in values]
    batches = [seeds.get(index) for index in indices]
    if any(dtype.kind == "c" for dtype in dtypes):
        batches = [
            as_pairs(batch, adjoint_mode=adjoint_mode) if batch and dtype.kind == "c" else batch
            for batch, dtype in zip(batches, dtypes, strict=True)
        ]
        dtypes = [np.empty(0, dtype).real.dtype for dtype in dtypes]
    return assemble(batches, sizes, count, np.result_type(*dtypes))
