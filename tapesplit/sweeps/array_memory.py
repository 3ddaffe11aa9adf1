"""Memory of array sweeps: the most numbers that are alive at a time, found by a walk through the steps."""

from collections.abc import Mapping, Sequence

import numpy as np

from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.recording.values import element_count, is_complex_value, real_count
from tapesplit.sweeps.array_steps import BulkStep, Step
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.memory_walk import MemoryWalk

__all__ = ["adjoint_numbers", "number_counts", "tangent_numbers"]


def number_counts(tape: Tape, chunk: Chunk, steps: Sequence[Step]) -> dict[int, int]:
    """Count the numbers that one direction of each value takes, two for each complex number."""
    sizes = {index: real_count(tape.values[index]) for index in chunk.sources}
    return sizes | {step.index: _numbers(tape, step) for step in steps}


def _numbers(tape: Tape, step: Step) -> int:
    """Count the numbers that one direction of a result takes.

    Real results of elementwise operations and moves take as many as complex ones if they read complex
    values: their directions may be views of complex arrays.
    """
    value = tape.values[step.index]
    if isinstance(step, BulkStep) and isinstance(value, np.ndarray):
        return real_count(value)
    inside = [member.number for member in step.members] if isinstance(step, ClusterStep) else []
    values = [tape.values[i] for i in (step.index, *step.reads(tape), *inside)]
    return element_count(value) * (1 + any(map(is_complex_value, values)))


def tangent_numbers(
    tape: Tape,
    chunk: Chunk,
    steps: Sequence[Step],
    last_use: Sequence[tuple[int, ...]],
    sizes: dict[int, int],
    *,
    identity: bool,
) -> tuple[int, int, int]:
    """Count the numbers that tangents of all values that are alive at the same time take, at most.

    Returns the most numbers for each direction in steps where directions share nothing, the most in the other
    steps (merged operations, and some rules), and the numbers that all directions share there. `sizes` is
    from `number_counts`; `identity` tells whether the sweep begins with the identity.
    """
    walk = MemoryWalk(tape, sizes)
    walk.seed(chunk.sources, identity=identity)
    for step, dropped in zip(steps, last_use, strict=True):
        walk.has_shared = isinstance(step, ClusterStep)
        step.count_tangents(walk)
        for index in dropped:
            walk.drop(index)
    # What is still alive, besides the targets, are sources that no step has read.
    unread = {chunk.sources[0], chunk.sources[-1]}.difference(chunk.targets)
    return walk.collect(chunk.targets, whole=walk.alive.keys().isdisjoint(unread))


def adjoint_numbers(
    tape: Tape,
    chunk: Chunk,
    steps: Sequence[Step],
    sizes: dict[int, int],
    joined: Mapping[int, int],
    *,
    identity: bool,
    owned: bool,
) -> tuple[int, int, int]:
    """Count the numbers that adjoints of all values that are alive at the same time take, at most.

    Returns the same three numbers as `tangent_numbers`. `sizes` is from `number_counts`. `joined` has the
    sizes of adjoints that stay factored until the step of their own value, by entry. `identity` and `owned`
    tell whether the sweep begins with the identity, or with directions that it may overwrite.
    """
    walk = MemoryWalk(tape, sizes, joined)
    walk.seed(chunk.targets, identity=identity, owned=owned)
    for step in reversed(steps):
        walk.has_shared = isinstance(step, ClusterStep)
        if step.index in walk.alive:
            if step.index in joined:
                walk.write_out(step.index)
            step.count_adjoints(walk)
            walk.drop(step.index)
    for index in joined.keys() & walk.alive.keys():
        walk.write_out(index)
    return walk.collect(chunk.sources)
