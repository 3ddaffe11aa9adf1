"""Memory of array sweeps: which directions are alive at the same time, found by a walk through the steps.

The walk forms no derivatives. It counts the arrays that steps hold: what they read, what they return, and the
products that are added up between. Identities stay diagonals for a while, which take no memory for each
direction; seeds that are handed over belong to somebody else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.recording.values import element_count, real_count
from tapesplit.rules import PRODUCTS, has_local_structure, is_reduction, local_matrix
from tapesplit.sweeps.array_steps import BulkStep, MapStep, Step
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.preaccumulation import is_one

__all__ = ["adjoint_numbers", "number_counts", "reads", "tangent_numbers"]


def reads(tape: Tape, step: Step) -> tuple[int, ...]:
    """Return the values that a step reads."""
    return step.inputs if isinstance(step, ClusterStep) else tape.parents[step.index]


def number_counts(tape: Tape, chunk: Chunk, steps: Sequence[Step]) -> dict[int, int]:
    """Count the numbers that one direction of each value takes, two for each complex number."""
    sizes = {index: real_count(tape.values[index]) for index in chunk.sources}
    return sizes | {step.index: _numbers(tape, step) for step in steps}


def _numbers(tape: Tape, step: Step) -> int:
    """Count the numbers that one direction of a result takes.

    Where a real part is taken, it is a view of complex directions; containers have no type to go by.
    """
    value = tape.values[step.index]
    if isinstance(step, BulkStep) and isinstance(value, np.ndarray):
        return real_count(value)
    inside = [member.number for member in step.members] if isinstance(step, ClusterStep) else []
    values = [tape.values[i] for i in (step.index, *reads(tape, step), *inside)]
    arrays = [value for value in values if isinstance(value, _NUMBERS)]
    return element_count(value) * (2 if any(map(np.iscomplexobj, arrays)) else 1)


_NUMBERS: Final = (np.ndarray, np.generic, complex)
"""Types of values that may be complex; containers tell nothing."""


@dataclass(slots=True)
class _Walk:
    """Numbers that one direction of the values that are alive takes.

    ``origins`` has the values whose directions are diagonals, with the first direction of each; ``owned``
    those that further directions can be added to in place. ``peaks`` are the most numbers, and the most of
    them while there are partial derivatives of merged operations as well, which is when ``is_merged`` is set.
    """

    tape: Tape
    sizes: Mapping[int, int]
    alive: dict[int, int] = field(default_factory=dict)
    origins: dict[int, int] = field(default_factory=dict)
    owned: set[int] = field(default_factory=set)
    total: int = 0
    is_merged: bool = False
    peaks: list[int] = field(default_factory=lambda: [0, 0])

    def seed(self, indices: Sequence[int], *, identity: bool, owned: bool = False) -> None:
        """Begin with the identity, or with directions that are handed over, maybe for good."""
        start = 0
        for index in indices:
            is_complex = self.is_complex(index)
            if identity and not is_complex:
                self.origins[index] = start
            self.keep(index, self.sizes[index] if is_complex or owned else 0)
            start += real_count(self.tape.values[index])

    def hold(self, numbers: int) -> None:
        """Take note of arrays that are needed for a moment."""
        self.peaks[self.is_merged] = max(self.peaks[self.is_merged], self.total + numbers)

    def keep(self, index: int, numbers: int) -> None:
        """Let a value have directions of this size."""
        self.total += numbers - self.alive.get(index, 0)
        self.alive[index] = numbers
        self.hold(0)

    def drop(self, index: int) -> None:
        """Let go of the directions of a value."""
        self.total -= self.alive.pop(index, 0)
        self.origins.pop(index, None)

    def opened(self, index: int) -> int:
        """Count the numbers that a diagonal takes once its zeros are written out."""
        return self.sizes[index] if index in self.origins else 0

    def collect(self, indices: Sequence[int], *, whole: bool = True) -> tuple[int, int]:
        """End: directions of several values, a diagonal or part of all are joined. Return the peaks."""
        self.is_merged = False
        if len(indices) > 1 or not whole or indices[0] in self.origins or self.is_complex(indices[0]):
            self.hold(sum(self.sizes[index] for index in indices))
        return self.peaks[0], self.peaks[1]

    def is_complex(self, index: int) -> bool:
        """Tell whether a value is complex."""
        value = self.tape.values[index]
        return isinstance(value, _NUMBERS) and bool(np.iscomplexobj(value))

    def inner(self, step: BulkStep, numbers: int) -> int:
        """Count the numbers that a rule needs besides what it reads and returns.

        Sums and products need nothing. Other functions are several products, with a result between them at
        least; several factors (of a decomposition) are formed apart and then joined. Users' functions get a
        copy of what they read.
        """
        copy = numbers if not step.rule.built_in and (step.rule.tangents or step.rule.adjoints) else 0
        primitive, value = self.tape.primitives[step.index], self.tape.values[step.index]
        if primitive in PRODUCTS or has_local_structure(primitive) or is_reduction(step.rule):
            return copy
        return copy + numbers + (self.sizes[step.index] if isinstance(value, tuple) else 0)


def tangent_numbers(
    tape: Tape,
    chunk: Chunk,
    steps: Sequence[Step],
    last_use: Sequence[tuple[int, ...]],
    sizes: Mapping[int, int],
    *,
    identity: bool,
) -> tuple[int, int]:
    """Count the numbers that a tangent takes, at most, of all values that are alive at a time.

    Parameters
    ----------
    tape, chunk, steps, last_use
        An array sweep.
    sizes
        From `number_counts`.
    identity
        Whether the sweep begins with the identity.

    Returns
    -------
    int, int
        In other steps, and in those of merged operations.
    """
    walk = _Walk(tape, sizes)
    walk.seed(chunk.sources, identity=identity)
    for step, dropped in zip(steps, last_use, strict=True):
        walk.is_merged = isinstance(step, ClusterStep)
        origin = _origin_of_tangents(walk, step)
        if origin is None:
            for index in _spent(step):
                walk.drop(index)
            walk.hold(_held_by_tangents(walk, step))
            walk.keep(step.index, sizes[step.index])
        else:
            walk.keep(step.index, 0)
            walk.origins[step.index] = origin
        for index in dropped:
            walk.drop(index)
    # What is still alive, besides the targets, are sources that no step has read.
    unread = {chunk.sources[0], chunk.sources[-1]}.difference(chunk.targets)
    return walk.collect(chunk.targets, whole=walk.alive.keys().isdisjoint(unread))


def _spent(step: Step) -> frozenset[int]:
    """Return the values whose directions a step overwrites."""
    return step.spent if isinstance(step, ClusterStep) else frozenset()


def _origin_of_tangents(walk: _Walk, step: Step) -> int | None:
    """Return the first direction of the result of a step if it is a diagonal."""
    if not walk.origins:  # as in most of a long sweep
        return None
    found = {walk.origins.get(index) for index in reads(walk.tape, step)}
    origin = found.pop()
    if found or origin is None or isinstance(step, BulkStep):
        return None
    if isinstance(step, ClusterStep):
        return origin if all(step.keeps_diagonals(walk.tape, index) for index in step.inputs) else None
    moves, run = step.maps[0][1], step.maps[0][1].run
    is_part = len(step.maps) == 1 and moves.complete and run is not None and run.step == 1
    return origin + run.start if is_part and run is not None else None


def _held_by_tangents(walk: _Walk, step: Step) -> int:
    """Count the numbers that a step holds besides what is alive: its results, and what it needs for them."""
    size, parents = walk.sizes[step.index], reads(walk.tape, step)
    if isinstance(step, MapStep):
        return size + (walk.opened(parents[0]) if len(step.maps) == 1 else 0)
    if isinstance(step, ClusterStep) and step.reduction:
        return size * min(len(parents), 2)
    if isinstance(step, ClusterStep):  # the first product takes in the others, one by one
        diagonal = [index for index in parents if index in walk.origins]
        spread = [walk.opened(i) for i in diagonal if not step.keeps_diagonals(walk.tape, i)]
        return size * min(len(parents), 2) + max(spread, default=0)
    opened = [0]
    if any(index in walk.origins for index in parents):
        entry = walk.tape[step.index]
        for index, argnum in zip(parents, entry.argnums, strict=True):
            if local_matrix(entry, argnum) is None:
                opened.append(walk.opened(index))
    largest = max([size, *(walk.sizes[index] for index in parents)])
    # Results of rules may be views: the first two are added up in a third array.
    return size * (1 if len(parents) == 1 else 3) + max(opened) + walk.inner(step, largest)


def adjoint_numbers(
    tape: Tape,
    chunk: Chunk,
    steps: Sequence[Step],
    sizes: Mapping[int, int],
    *,
    identity: bool,
    owned: bool,
) -> tuple[int, int]:
    """Count the numbers that an adjoint takes, at most, of all values that are alive at a time.

    Parameters
    ----------
    tape, chunk, steps
        An array sweep.
    sizes
        From `number_counts`.
    identity, owned
        Whether the sweep begins with the identity, or with directions that are its own.

    Returns
    -------
    int, int
        In other steps, and in those of merged operations.
    """
    walk = _Walk(tape, sizes)
    walk.seed(chunk.targets, identity=identity, owned=owned)
    for step in reversed(steps):
        walk.is_merged = isinstance(step, ClusterStep)
        if step.index in walk.alive:
            if isinstance(step, BulkStep):
                _hand_out(walk, step)
            else:
                if step.index in _spent(step):
                    walk.drop(step.index)
                _hand_back(walk, step)
            walk.drop(step.index)
    return walk.collect(chunk.sources)


def _hand_out(walk: _Walk, step: BulkStep) -> None:
    """Take a step that finds the adjoints of all its arguments before it adds them to what there is."""
    parents, size, opened = reads(walk.tape, step), walk.sizes[step.index], walk.opened(step.index)
    found = sum(walk.sizes[parent] for parent in parents)
    if opened:
        entry = walk.tape[step.index]
        if all(local_matrix(entry, argnum) is not None for argnum in entry.argnums):
            opened = 0  # rows of the matrices times numbers
    walk.hold(found + opened + walk.inner(step, max(size, found)))
    for parent in parents:
        _add(walk, parent, found)


def _hand_back(walk: _Walk, step: MapStep | ClusterStep) -> None:
    """Take a step that adds the adjoints of each argument as it goes."""
    origin, opened, size = walk.origins.get(step.index), walk.opened(step.index), walk.sizes[step.index]
    if isinstance(step, ClusterStep) and step.reduction:
        opened = 0  # elements only pick from the partial derivatives
    blocks = dict(step.maps) if isinstance(step, MapStep) else {}
    unscaled = _unscaled(step)
    scattered = any(moves.block is None for moves in blocks.values())
    for parent in reads(walk.tape, step):
        known, block = walk.origins.get(parent), blocks[parent].block if blocks else None
        start = None if origin is None or scattered else origin
        if blocks and start is not None and block is not None:
            start += block.start
        elif isinstance(step, ClusterStep) and start is not None:
            start = start if step.keeps_diagonals(walk.tape, parent) else None
        if start is not None and (parent not in walk.alive or known == start):
            walk.keep(parent, 0)
            walk.origins[parent] = start
        elif blocks and block is not None and not opened:  # a view
            _add(walk, parent, 0)
        elif blocks and not opened and parent in walk.owned and blocks[parent].run is not None:
            _add(walk, parent, 0)  # in place
        else:
            # Before sums over broadcast axes, or where factors are multiplied.
            between = 0 if blocks or walk.sizes[parent] == size else max(size, walk.sizes[parent])
            walk.hold(opened + between + walk.sizes[parent])
            _add(walk, parent, opened + between + walk.sizes[parent])
            if parent not in unscaled:
                walk.owned.add(parent)


def _unscaled(step: MapStep | ClusterStep) -> set[int]:
    """Return the arguments whose adjoints may be those of the result, as in a sum: a view of them."""
    members = step.members if isinstance(step, ClusterStep) and not step.reduction else ()
    return {term.target for member in members for term in member.terms if is_one(term.partial)}


def _add(walk: _Walk, parent: int, held: int) -> None:
    """Add to the adjoints of a value while arrays of so many numbers are held."""
    size = walk.sizes[parent]
    if parent in walk.alive:
        zeros = walk.opened(parent)
        walk.hold(held + zeros + (0 if parent in walk.owned or zeros else size))
        walk.owned.add(parent)
        walk.origins.pop(parent, None)
    walk.keep(parent, size)
