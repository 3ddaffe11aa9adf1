"""Sweeps in stages: what has a scalar form is swept as systems, the rest of a chunk by array steps.

One operation without a scalar form, such as a Fourier transform behind a simulation, would else make array
steps of thousands of operations on single numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from tapesplit.arrays import BoolArray, IntArray, ranges, run_starts
from tapesplit.cost.model import array_seconds, system_seconds
from tapesplit.cost.stored import cost_model
from tapesplit.cost.work import Work, WorkTable, total_work
from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.structures.facts import TapeFacts
from tapesplit.sweeps.array_sweep import ArraySweep, compile_array_sweep, last_uses
from tapesplit.sweeps.directions import cached_directions, in_blocks
from tapesplit.sweeps.lowering import compile_scalar_sweep
from tapesplit.sweeps.scalar_sweep import ScalarSweep
from tapesplit.telling import told

__all__ = ["StagedSweep", "compile_stages", "find_stages", "staged_seconds"]


_Run: TypeAlias = Callable[[np.ndarray | None], np.ndarray]
"""Carries directions through one part: a row each, None for the identity."""


class Stage(NamedTuple):
    """Part of a chunk, whether it is swept as a system, and the predicted time of that."""

    chunk: Chunk
    is_system: bool
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class StagedSweep:
    """A compiled chunk whose parts are swept one after the other.

    Parameters
    ----------
    chunk
        What is swept.
    parts
        Sweeps of its stages, from the sources to the targets.
    last_use
        For each part, the values that no later one reads: their tangents are dropped there.
    sizes
        Elements of the values that are handed over, by tape entry.
    """

    chunk: Chunk
    parts: tuple[ArraySweep | ScalarSweep, ...]
    last_use: tuple[tuple[int, ...], ...]
    sizes: dict[int, int]

    @property
    def adjoint_mode(self) -> bool:
        """Whether the parts carry adjoints."""
        return self.parts[0].adjoint_mode

    @property
    def bytes_per_direction(self) -> int:
        """Memory that one direction takes: all that is handed over, and the largest part."""
        return 8 * sum(self.sizes.values()) + max(part.bytes_per_direction for part in self.parts)

    @property
    def fixed_bytes(self) -> int:
        """Memory that a part takes besides, at most: its coefficients, and what it finds them from."""
        return max(part.least_bytes - part.bytes_per_direction for part in self.parts)

    @property
    def least_bytes(self) -> int:
        """Memory that a run takes besides its result if it carries one direction at a time."""
        return 8 * sum(self.sizes.values()) + max(part.least_bytes for part in self.parts)

    def working_bytes(self, directions: int) -> int:
        """Memory that a run with so many directions takes, at most."""
        block = self._block(directions)
        handed_over = 8 * block * sum(self.sizes.values())
        carrying = handed_over + max(part.working_bytes(block) for part in self.parts)
        if block == directions:
            return carrying
        kept = sum(part.fixed_bytes for part in self.parts if isinstance(part, ScalarSweep))
        return carrying + kept + 8 * directions * max(self.chunk.n, self.chunk.m)

    def _block(self, count: int, most: int | None = None) -> int:
        """Return how many of so many directions are carried at a time, at most ``most``.

        Caches should hold the values that are handed over from stage to stage.
        """
        count = cached_directions(count, 8 * sum(self.sizes.values()))
        return count if most is None else min(count, most)

    def run(self, tape: Tape, rows: np.ndarray | None, most: int | None = None) -> np.ndarray:
        """Carry directions, a row each, None for the identity, ``most`` of them at a time.

        Unless memory is limited, coefficients are kept for all blocks of directions.
        """
        carry, size = (self._adjoints, self.chunk.m) if self.adjoint_mode else (self._tangents, self.chunk.n)
        seeds = range(size) if rows is None else rows
        block = self._block(len(seeds), most)
        keeps = most is None and block < len(seeds)
        runs = [_with_coefficients(part, tape) if keeps else partial(part.run, tape) for part in self.parts]
        return in_blocks(partial(carry, runs), seeds, block)

    def _tangents(self, runs: Sequence[_Run], rows: np.ndarray | range) -> np.ndarray:
        """Carry tangents, shape ``(k, n)``, to ``(k, m)``."""
        is_identity, X = _opened(rows, self.chunk.n)
        tangents = dict(self._split(X.T, self.chunk.sources))
        stages = zip(self.parts, runs, self.last_use, strict=True)
        for part, run, dropped in told(stages, len(self.parts)):
            whole = is_identity and part.chunk.sources == self.chunk.sources
            seeds = None if whole else np.concatenate([tangents[index] for index in part.chunk.sources]).T
            for index in dropped:
                del tangents[index]
            tangents.update(self._split(run(seeds).T, part.chunk.targets))
        return np.concatenate([tangents[index] for index in self.chunk.targets]).T

    def _adjoints(self, runs: Sequence[_Run], rows: np.ndarray | range) -> np.ndarray:
        """Carry adjoints, shape ``(k, m)``, to ``(k, n)``."""
        is_identity, X = _opened(rows, self.chunk.m)
        adjoints = dict(self._split(X.T, self.chunk.targets))
        stages = zip(reversed(self.parts), reversed(runs), strict=True)
        for part, run in told(stages, len(self.parts)):
            whole = is_identity and part.chunk.targets == self.chunk.targets
            read = [adjoints.pop(index) for index in part.chunk.targets]
            seeds = None if whole else np.concatenate(read).T
            for index, found in self._split(run(seeds).T, part.chunk.sources):
                adjoints[index] = adjoints[index] + found if index in adjoints else found
        for index in self.chunk.sources:
            adjoints.setdefault(index, np.zeros((self.sizes[index], len(X))))
        return np.concatenate([adjoints[index] for index in self.chunk.sources]).T

    def _split(self, matrix: np.ndarray, entries: Iterable[int]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the rows that belong to each of some values."""
        start = 0
        for index in entries:
            stop = start + self.sizes[index]
            yield index, matrix[start:stop]
            start = stop


def _with_coefficients(part: ArraySweep | ScalarSweep, tape: Tape) -> _Run:
    """Return the function that carries directions through a part, after its coefficients were evaluated."""
    if isinstance(part, ArraySweep):
        return partial(part.run, tape)
    coefficients = part.coefficients(tape)
    return lambda rows: part.carry(coefficients, None if rows is None else rows.T).T


def _opened(seeds: np.ndarray | range, size: int) -> tuple[bool, np.ndarray]:
    """Return whether seeds are the whole identity, and the seeds as an array."""
    if isinstance(seeds, range):
        return len(seeds) == size, np.eye(len(seeds), size, seeds.start)
    return False, seeds


def find_stages(
    facts: TapeFacts, table: WorkTable, chunk: Chunk, directions: int, *, adjoint_mode: bool
) -> tuple[Stage, ...]:
    """Split a chunk that cannot be one system into stages, if some of them had better be systems.

    They are in order from the sources to the targets; there are none if the chunk is better swept as a whole.

    Notes
    -----
    Stages are systems and array steps by turns. An entry belongs to the earliest one of its kind in which
    all that it reads is known. A system that does not save enough is joined with the array steps around it.
    Takes 1 to 2 µs for each entry, but next to nothing where no system can be worth its while.
    """
    scalar = facts.scalar_apart[chunk.entries]
    uniform = scalar.all() or not scalar.any()
    arrays = partial(array_seconds, cost_model(), directions=directions, adjoint_mode=adjoint_mode)
    systems = partial(system_seconds, cost_model(), directions=directions)
    if uniform or not _save(table, chunk.entries[scalar], [0], systems, arrays).any():
        return ()
    numbers = _stage_numbers(facts, chunk.entries)
    present, counts = np.unique(numbers, return_counts=True)
    ordered = chunk.entries[np.argsort(numbers, kind="stable")]
    starts = np.cumsum(counts) - counts
    is_system = _save(table, ordered, starts, systems, arrays) & (present % 2 == 0)
    if not is_system.any():
        return ()
    turns = run_starts(is_system)
    kinds = is_system[turns].tolist()
    parts = _chunks(facts, chunk, [np.sort(group) for group in np.split(ordered, starts[turns[1:]])])
    if any(facts.sizes[index] < 0 for part in parts for index in part.targets):
        return ()  # containers are not handed over
    return tuple(
        Stage(part, system, (systems if system else arrays)(total_work(table, part.entries)))
        for part, system in zip(parts, kinds, strict=True)
    )


_WORTH_A_SYSTEM: Final = 7.5e-5
"""Seconds that a system must save to be worth being compiled and joined with other stages."""


def _save(
    table: WorkTable,
    entries: IntArray,
    starts: IntArray | list[int],
    systems: Callable[[Work], Any],
    arrays: Callable[[Work], Any],
) -> BoolArray:
    """Tell which groups of entries are better swept as systems of their own, if they can be systems."""
    work = Work(0, *np.add.reduceat(table.lines.take(entries, axis=1), starts, axis=1))
    saves: BoolArray = systems(work) + _WORTH_A_SYSTEM < arrays(work)
    return saves


_HANDED_OVER: Final = 3
"""Elements that an array step moves in the time that handing one over from stage to stage takes."""


def staged_seconds(stages: Sequence[Stage], directions: int) -> float:
    """Predict the seconds of a sweep in stages: each of them, and handing all directions over."""
    moved = _HANDED_OVER * sum(stage.chunk.n + stage.chunk.m for stage in stages) * directions
    return sum(stage.seconds for stage in stages) + moved * cost_model().element_direction


def _stage_numbers(facts: TapeFacts, entries: IntArray) -> IntArray:
    """Give each entry the number of its stage; even numbers are those of systems."""
    ahead = int(np.argmin(facts.scalar_apart[entries]))  # up to there, all are in the first stage
    later = entries[ahead:]
    counts = facts.first_parent[later + 1] - facts.first_parent[later]
    reads = iter(facts.parents[ranges(facts.first_parent[later], counts)].tolist())
    number = [0] * (int(entries[-1]) + 1)
    for index, count, scalar in zip(
        later.tolist(), counts.tolist(), facts.scalar_apart[later].tolist(), strict=True
    ):
        stage = 0
        for parent in islice(reads, count):
            stage = max(stage, number[parent])
        number[index] = stage if scalar == (stage % 2 == 0) else stage + 1
    return np.array(number)[entries]


def _chunks(facts: TapeFacts, chunk: Chunk, groups: Sequence[IntArray]) -> list[Chunk]:
    """Return each group of entries as a chunk, with what it reads of earlier and hands over to later ones."""
    sizes, counts = facts.sizes, np.diff(facts.first_parent)
    part = np.full(sizes.size, -1)
    last_read = np.full(sizes.size, -1)
    reads: list[IntArray] = []
    for number, entries in enumerate(groups):
        part[entries] = number
        places = ranges(facts.first_parent[entries], counts[entries])
        reads.append(np.unique(facts.parents[places]))
        last_read[reads[-1]] = number
    last_read[list(chunk.targets)] = len(groups)
    found = []
    for number, entries in enumerate(groups):
        sources = reads[number][part[reads[number]] != number]
        targets = entries[last_read[entries] > number]
        n, m, edges = int(sizes[sources].sum()), int(sizes[targets].sum()), int(facts.edges[entries].sum())
        found.append(Chunk(tuple(sources.tolist()), tuple(targets.tolist()), entries, n, m, edges))
    return found


def compile_stages(
    tape: Tape,
    facts: TapeFacts,
    chunk: Chunk,
    stages: Sequence[Stage],
    directions: int,
    *,
    adjoint_mode: bool,
) -> StagedSweep:
    """Compile the stages of a chunk for one mode.

    Any tape of the structure that the sweep is for will do.
    """
    parts: list[ArraySweep | ScalarSweep] = []
    for stage in stages:
        compiled = compile_scalar_sweep if stage.is_system else compile_array_sweep
        parts.append(compiled(tape, facts, stage.chunk, directions, adjoint_mode=adjoint_mode))
    read = [part.chunk.sources for part in parts]
    ends = sorted({*chunk.sources, *chunk.targets}.union(*read))
    sizes = {index: int(facts.sizes[index]) for index in ends}
    return StagedSweep(chunk, tuple(parts), last_uses(read, chunk.targets), sizes)
