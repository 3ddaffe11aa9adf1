"""The row part of a tape: where the rows of all values stay apart, as samples do that are treated alike.

Seen from the output, the adjoints of an element belong to one row of each value there. Those of all rows are
carried together, as one direction, up to what the rows share, such as the parameters of a model: a
compression whose pattern is known without a search (A. R. Curtis, M. J. D. Powell and J. K. Reid, 1974).
"""

from collections import defaultdict
from dataclasses import replace
from heapq import heappop, heappush
from math import prod
from typing import Any, Final

import numpy as np

from tapesplit.recording.tape import Tape, TapeEntry
from tapesplit.rules import Bulk, IndexMap, Movement, index_maps
from tapesplit.rules.rows import Reading, readings
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.row_part import Block, RowPart
from tapesplit.structures.structure import hashable, is_shape

__all__ = ["opened_block", "with_row_part"]


def with_row_part(tape: Tape, facts: TapeFacts) -> TapeFacts:
    """Return the facts of a tape together with its row part, if sweeping that is worth its while.

    Parameters
    ----------
    tape
        A tape of the structure.
    facts
        What is known of tapes of the structure.

    Notes
    -----
    Takes a few µs for each call of the row part, and as long as index maps take to be found.
    """
    directions = max(int(facts.sizes[facts.structure.output]), 0)
    width = int(facts.sizes[: facts.structure.inputs].sum())
    work = min(directions, width) * int(facts.edges.sum())
    if directions < _FEWEST or work < _WORTH_A_LOOK or facts.detached.any():
        return facts
    part = _Walk(tape, facts).walked()
    if part is None or part.swept + part.expanded > _LESS * directions * int(facts.edges[part.calls].sum()):
        return facts
    is_wide = any(
        facts.sizes[i] > sum(_count(facts, i, b) for b in part.blocks[i]) for i in part.calls.tolist()
    )
    return replace(facts, row_part=part) if is_wide and facts.ranks.keys().isdisjoint(part.ends) else facts


_FEWEST: Final = 16
"""Directions below which there is little to save."""
_WORTH_A_LOOK: Final = 300_000
"""Multiply-adds of a plain sweep that take longer than finding row parts in some calls."""
_LESS: Final = 0.5
"""Part of the multiply-adds of all directions that are left where a row part is worth it."""
_MOST_EACH: Final = 8
"""Directions of one row, at most."""
_MOST_BLOCKS: Final = 8
"""Blocks of directions of one value, at most."""
_MOST_CALLS: Final = 5000
"""Calls of a row part, at most: each block takes its steps in turn."""


def _count(facts: TapeFacts, index: int, block: Block) -> int:
    """Count the directions of a block of a value."""
    return int(facts.forms[facts.form[index]][0]) * block.each


class _Walk:
    """The walk from the output to the ends."""

    def __init__(self, tape: Tape, facts: TapeFacts) -> None:
        self.tape, self.facts = tape, facts
        self.times_read = np.bincount(facts.parents, minlength=facts.sizes.size)
        self.blocks: dict[int, dict[Block, None]] = defaultdict(dict)
        self.kept: dict[int, int] = defaultdict(int)
        self.ends: set[int] = set()
        self.readings: dict[int, tuple[Reading, ...]] = {}
        self.maps: dict[Any, tuple[IndexMap, ...]] = {}
        self.expanded = self.swept = 0

    def walked(self) -> RowPart | None:
        """Return the row part, None if there is none."""
        facts = self.facts
        output: int = facts.structure.output  # type: ignore[assignment] # it depends on an input
        shape = facts.forms[facts.form[output]]
        if not is_shape(shape) or not shape or prod(shape[1:]) > _MOST_EACH:
            return None
        self.blocks[output] = {Block(0, prod(shape[1:])): None}
        self.times_read[output] = 0
        calls: list[int] = []
        waiting = [-output]
        while waiting and len(calls) < _MOST_CALLS:
            index = -heappop(waiting)
            handed = self._handed(index)
            if handed is None:
                self._end(index)
                continue
            calls.append(index)
            self.swept += int(facts.edges[index]) * sum(block.each for block in self.blocks[index])
            for parent, blocks in handed:
                if blocks is None:
                    self.ends.add(parent)
                    directions = sum(_count(facts, index, block) for block in self.blocks[index])
                    self.expanded += directions * int(facts.sizes[parent])
                    continue
                if parent not in self.blocks:
                    heappush(waiting, -parent)
                self.blocks[parent].update(dict.fromkeys(blocks))
                self.kept[parent] += 1
        for index in waiting:
            self._end(-index)
        if not calls:
            return None
        of_values = {index: tuple(blocks) for index, blocks in self.blocks.items()}
        ends = tuple(sorted(self.ends))
        return RowPart(np.array(calls[::-1]), of_values, self.readings, ends, self.swept, self.expanded)

    def _end(self, index: int) -> None:
        """Let a value that rows arrive at be an end."""
        self.ends.add(index)
        directions = sum(_count(self.facts, index, block) for block in self.blocks[index])
        self.expanded += directions * int(self.facts.sizes[index])

    def _handed(self, index: int) -> list[tuple[int, list[Block] | None]] | None:
        """List the blocks that each argument gets, None for one that rows share; None if rows do not stay."""
        facts, blocks = self.facts, [*self.blocks[index]]
        is_input = index < facts.structure.inputs
        if is_input or self.kept[index] != self.times_read[index] or len(blocks) > _MOST_BLOCKS:
            return None
        first = facts.first_parent[index]
        parents = facts.parents[first : facts.first_parent[index + 1]].tolist()
        if any(facts.sizes[parent] < 0 or facts.is_complex[parent] for parent in parents):
            return None
        kind = facts.kinds[facts.kind[index]]
        if kind.is_elementwise:
            return [(p, blocks if self._is_aligned(index, p) else None) for p in parents]
        entry = self.tape[index]
        if isinstance(kind.rule, Movement):
            pairs = zip(parents, self._index_maps(index, entry), strict=True)
            moved = [self._moved(index, p, moves) for p, moves in pairs]
            return None if None in moved else [*zip(parents, moved, strict=True)]
        found = readings(entry, kind.rule) if isinstance(kind.rule, Bulk) else None
        if found is None or not all(self._shape(parent) for parent in parents):
            return None
        self.readings[index] = found
        return [(p, blocks if reading == "kept" else None) for p, reading in zip(parents, found, strict=True)]

    def _index_maps(self, index: int, entry: TapeEntry) -> tuple[IndexMap, ...]:
        """Find the index maps of a movement; equal ones share them."""
        facts = self.facts
        forms = tuple(facts.form[[index, *entry.parents]].tolist())
        key = (facts.kind[index], forms, hashable(facts.structure.statics[index]))
        if key not in self.maps:
            self.maps[key] = index_maps(entry)
        return self.maps[key]

    def _shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of a value that has rows, () for all others."""
        form = self.facts.forms[self.facts.form[index]]
        return form if is_shape(form) else ()

    def _is_aligned(self, index: int, parent: int) -> bool:
        """Tell whether an elementwise operation reads the rows of an argument as its own."""
        shape, of_parent = self._shape(index), self._shape(parent)
        return len(shape) == len(of_parent) and shape[0] == of_parent[0]

    def _moved(self, index: int, parent: int, moves: IndexMap) -> list[Block] | None:
        """Return the directions of the rows that elements come from; None if rows are mixed."""
        shape, of_parent = self._shape(index), self._shape(parent)
        if not of_parent:
            return None
        stays = self._stays(moves, shape[0]) if shape[0] == of_parent[0] else False
        found = [
            opened_block(block, moves, shape, of_parent) or (block if stays else None)
            for block in self.blocks[index]
        ]
        return None if None in found else found  # type: ignore[return-value] # there is none

    @staticmethod
    def _stays(moves: IndexMap, rows: int) -> bool:
        """Tell whether all elements stay in their row."""
        if not moves.length:
            return False
        return np.array_equal(moves.targets // (moves.length // rows), moves.sources // (moves.size // rows))


def opened_block(
    block: Block, moves: IndexMap, shape: tuple[int, ...], of_argument: tuple[int, ...]
) -> Block | None:
    """Return the directions of the rows of an argument whose elements are rows of the result; else None.

    Parameters
    ----------
    block
        Directions of the result, one for each element.
    moves
        Which elements come from the argument.
    shape, of_argument
        Shapes of the result and of the argument.

    Examples
    --------
    >>> import numpy as np
    >>> flattened = IndexMap(np.arange(2, 8), np.arange(6), 8, 6)  # behind two other elements
    >>> opened_block(Block(10, 1), flattened, (8,), (3, 2))
    Block(origin=12, each=2)
    """
    each = prod(of_argument[1:])
    if len(shape) != 1 or block.each != 1 or moves.block is None or not 0 < each <= _MOST_EACH:
        return None
    return Block(block.origin + moves.block.start, each)
