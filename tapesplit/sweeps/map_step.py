"""Steps of array sweeps that move elements of stacked directions, such as indexing."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tapesplit.recording.tape import Tape
from tapesplit.recording.values import batch_shape
from tapesplit.rules import IndexMap
from tapesplit.rules.axes import flat, real_like
from tapesplit.rules.low_rank import Factors, moved_back
from tapesplit.sweeps.directions import Batch, Diagonal, LowRank, Rows, Seeds, accumulate, add_to
from tapesplit.sweeps.memory_walk import MemoryWalk
from tapesplit.sweeps.placing import of_elements, of_lines

__all__ = ["MapStep", "in_one_piece", "scatter_into"]


@dataclass(frozen=True, slots=True)
class MapStep:
    """A movement, such as indexing; ``maps`` has the entry and the index map of each active argument.

    ``factored`` are the arguments, matrices, of which few elements move: these become factors.
    """

    index: int
    maps: tuple[tuple[int, IndexMap], ...]
    factored: frozenset[int] = frozenset()

    def reads(self, tape: Tape) -> tuple[int, ...]:
        """Return the values that are read."""
        return tape.parents[self.index]

    def tangent(self, tape: Tape, seeds: Seeds) -> Batch | None:
        """Gather tangents."""
        value = tape.values[self.index]
        moved = [(seeds[parent], moves) for parent, moves in self.maps if parent in seeds]
        if len(moved) > 1:
            return _gathered_together(moved, value)  # type: ignore[arg-type] # tangents are never factored
        return _gathered(*moved[0], value) if moved else None

    def count_tangents(self, walk: MemoryWalk) -> None:
        """Count what `tangent` holds."""
        parents = self.reads(walk.tape)
        origin, (_, moves) = walk.common_origin(parents), self.maps[0]
        run = moves.run if len(self.maps) == 1 and moves.complete else None
        if origin is not None and run is not None and run.step == 1:
            walk.keep_diagonal(self.index, origin + run.start)
        else:
            opened = walk.opened(parents[0]) if len(self.maps) == 1 else 0
            walk.make(self.index, walk.sizes[self.index] + opened)

    def adjoint(self, tape: Tape, A: Batch, seeds: Seeds) -> None:
        """Scatter adjoints."""
        maps = [pair for pair in self.maps if not self._placed(tape, A, *pair, seeds)]
        if isinstance(A, Diagonal) and any(moves.block is None for _, moves in maps):
            A = A.dense()
        if isinstance(A, LowRank):
            found = self._moved_back(tape, A)
            if found is not None:
                for parent, batch in found:
                    add_to(seeds, parent, batch)
                return
            A = A.dense()
        if isinstance(A, Rows) and len(maps) > 1:
            A = in_one_piece(A)
        for parent, moves in maps:
            scatter_into(seeds, parent, A, moves, tape.values[parent])

    def count_adjoints(self, walk: MemoryWalk) -> None:
        """Count what `adjoint` holds, which adds the adjoints of each argument as it goes."""
        origin, opened = walk.origins.get(self.index), walk.opened(self.index)
        if any(moves.block is None for _, moves in self.maps):
            origin = None
        for parent, moves in self.maps:
            block = moves.block
            stays = None if parent in self.factored else origin
            if stays is not None and block is not None and walk.takes_diagonal(parent, stays + block.start):
                walk.keep_diagonal(parent, stays + block.start)
            elif not opened and (block is not None or (parent in walk.owned and moves.run is not None)):
                if block is not None and parent not in walk.alive:
                    walk.keep(self.index, 0)  # a view, which keeps this memory
                walk.add(parent, 0)  # in place, if there are adjoints to add to
            else:
                copied = walk.sizes[self.index] + walk.sizes[parent] if moves.sums_by_matrix else 0
                walk.hold(opened + walk.sizes[parent] + copied)
                walk.add(parent, opened + walk.sizes[parent])
                walk.owned.add(parent)

    def _placed(self, tape: Tape, A: Batch, parent: int, moves: IndexMap, seeds: Seeds) -> bool:
        """Add the adjoints of an argument as factors; return whether that was possible."""
        if parent not in self.factored or not isinstance(A, Rows | Diagonal):
            return False
        value = tape.values[parent]
        # Directions share a side, which joins them with others, where all elements come from one row.
        if isinstance(A, Diagonal) and moves.lines(value.shape).places.size > 1:
            found = of_elements(A, moves, value)
        else:
            found = of_lines(A.dense(), moves, value)
        if found is not None:
            add_to(seeds, parent, found)
        return found is not None

    def _moved_back(self, tape: Tape, A: LowRank) -> list[tuple[int, Batch]] | None:
        """Carry adjoints back in factored form; None if they must be multiplied out."""
        if not A.factors.is_finite:  # elements that are not moved are zero, but 0 times infinity is NaN
            return None
        found: list[tuple[int, Batch]] = []
        for parent, moves in self.maps:
            batch = moved_back(A.factors, moves, batch_shape(tape.values[parent]))
            if batch is None:
                return None
            moved = LowRank(A.start, batch) if isinstance(batch, Factors) else Rows(A.start, batch)
            found.append((parent, moved))
        return found


def _gathered(batch: Batch, moves: IndexMap, value: Any) -> Batch:
    """Return the tangents of a movement of one argument."""
    shape = batch_shape(value)
    run = moves.run
    if isinstance(batch, Diagonal) and run is not None and run.step == 1 and moves.complete:
        moved = real_like(batch.values.reshape(-1)[run], value)
        return Diagonal.of(moved.reshape(shape), batch.origin + run.start, batch.start, batch.stop)
    batch = batch.dense()
    rows = real_like(moves.gather(flat(batch.rows)), value)
    return Rows(batch.start, rows.reshape(len(rows), *shape))


def _gathered_together(moved: list[tuple[Rows | Diagonal, IndexMap]], value: Any) -> Rows:
    """Return the tangents of a movement that joins several arguments, written into one array."""
    start = min(batch.start for batch, _ in moved)
    stop = max(batch.stop for batch, _ in moved)
    dtype = np.result_type(*{batch.dtype for batch, _ in moved})
    rows = np.zeros((stop - start, moved[0][1].length), dtype)
    for batch, moves in moved:
        if isinstance(batch, Diagonal):
            directions = batch.origin + moves.sources
            wanted = np.flatnonzero((batch.start <= directions) & (directions < batch.stop))
            sources = moves.sources[wanted]
            rows[directions[wanted] - start, moves.targets[wanted]] = batch.values.reshape(-1)[sources]
        else:
            moves.put(flat(batch.rows), rows[batch.start - start : batch.stop - start])
    return Rows(start, real_like(rows, value).reshape(len(rows), *batch_shape(value)), owned=True)


def in_one_piece(batch: Rows) -> Rows:
    """Make directions contiguous once: each argument would copy a view, such as behind a sum, as a whole."""
    return batch._replace(rows=np.ascontiguousarray(batch.rows))


def scatter_into(seeds: Seeds, parent: int, A: Batch, moves: IndexMap, value: Any) -> None:
    """Add the adjoints of moved elements to those of the argument that they were moved from."""
    known = seeds.get(parent)
    if isinstance(known, Rows) and not known.owned and moves.block is None:
        # Others may read this array: it is copied once, then further parts are added in place.
        known = seeds[parent] = known._replace(rows=np.array(known.rows, order="C"), owned=True)
    if known is None or not _added(A, moves, known, value):
        seeds[parent] = accumulate(known, _scattered(A, moves, value))


def _added(batch: Batch, moves: IndexMap, known: Batch, value: Any) -> bool:
    """Add adjoints of moved elements to known ones in place; return whether that was possible.

    If many parts of a value are read, each would otherwise cost an addition of adjoints of the whole value.
    """
    if not isinstance(batch, Rows) or not isinstance(known, Rows) or not known.owned:
        return False
    adjoints = real_like(flat(batch.rows), value)
    fits = known.start <= batch.start and batch.stop <= known.stop and known.rows.flags.c_contiguous
    if not fits or not np.can_cast(adjoints.dtype, known.dtype):
        return False
    moves.add(adjoints, flat(known.rows)[batch.start - known.start : batch.stop - known.start])
    return True


def _scattered(batch: Batch, moves: IndexMap, value: Any) -> Batch:
    """Return the adjoints of an argument of a movement."""
    shape = batch_shape(value)
    block = moves.block
    if isinstance(batch, Diagonal) and block is not None:
        moved = real_like(batch.values.reshape(-1)[block], value)
        return Diagonal.of(moved.reshape(shape), batch.origin + block.start, batch.start, batch.stop)
    batch = batch.dense()
    rows = real_like(moves.scatter(flat(batch.rows)), value)
    return Rows(batch.start, rows.reshape(len(rows), *shape), owned=moves.block is None)
