"""Which adjoints an array sweep keeps factored: those of matrices to which all readers pass factors.

The prediction in `tapesplit.cost.factored` knows forms only. Here index maps and the number of directions are
known, so that the choice can be exact.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.rules.low_rank import FEWEST_DIRECTIONS, MOST_PARTS, factored_rule, is_thin
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.forms import is_shape
from tapesplit.sweeps.array_steps import BulkStep, Step, derivatives_of
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.map_step import MapStep

__all__ = ["copied_numbers", "factored_sizes", "joined_sizes", "keeping_factors", "worth_factoring"]


def worth_factoring(facts: TapeFacts, chunk: Chunk, directions: int) -> set[int]:
    """Return the entries whose adjoints may be kept as factors; none of them if there are few directions."""
    if directions < FEWEST_DIRECTIONS:
        return set()
    least = _WORTH_FACTORING / directions
    return {index for index in facts.ranks if facts.sizes[index] >= least} - {*chunk.sources, *chunk.targets}


def factored_sizes(
    tape: Tape,
    facts: TapeFacts,
    steps: Sequence[Step],
    worth: Container[int],
    ends: Sequence[int] = (),
) -> dict[int, int]:
    """Count the numbers that one direction of each factored adjoint takes, by entry.

    The adjoints of an entry in `worth` stay factored if all its readers pass factors to it, and the step of
    the entry itself can work with them. `ends` are the values whose adjoints are the identity at first.
    """
    found = {step.index: step for step in steps if step.index in worth}
    diagonal = _diagonal(tape, steps, ends) if found and ends else set[int]()
    before = len(found) + 1
    while len(found) < before:  # dense adjoints are passed on dense, and make dense what they are added to
        before = len(found)
        for step in reversed(steps):
            if step.index not in found:
                for parent in _written(tape, step, found, diagonal):
                    del found[parent]
        for index, step in list(found.items()):
            if not _takes_factors(tape, step, found):
                del found[index]
    return {index: facts.ranks[index] * sum(tape.shape(index)) for index in found}


def copied_numbers(tape: Tape, index: int) -> int:
    """Count the numbers that a sum of given matrices copies to multiply one of two factors by all of them."""
    stacks = (arg for arg in tape.arguments(index) if isinstance(arg, np.ndarray) and arg.ndim > 2)
    return max((stack.size for stack in stacks), default=0)


_WORTH_FACTORING: Final = 2**15
"""Numbers in adjoints of all directions from which on to multiply them out takes longer than a few more
calls of NumPy."""


def _takes_factors(tape: Tape, step: Step, factored: Container[int]) -> bool:
    """Tell whether a step can carry factored adjoints of its result without multiplying them out."""
    if not isinstance(step, MapStep):
        return True
    shape = tape.shape(step.index)
    return len(step.maps) <= MOST_PARTS and all(
        moves.parts(shape, tape.shape(parent)) is not None if parent in factored else moves.is_sparse
        for parent, moves in step.maps
    )


def _diagonal(tape: Tape, steps: Sequence[Step], ends: Sequence[int]) -> set[int]:
    """Return the values whose adjoints are still diagonal, each direction having one element."""
    reads = Counter(parent for step in steps for parent in step.reads(tape))
    reads.update(ends)
    found = {index for index in ends if reads[index] == 1}
    for step in reversed(steps):
        if step.index in found:
            found.update(parent for parent in _kept_diagonal(tape, step) if reads[parent] == 1)
    return found


def _kept_diagonal(tape: Tape, step: Step) -> Iterable[int]:
    """Return the arguments to which a step passes diagonal adjoints if it gets diagonal ones."""
    if isinstance(step, MapStep):
        in_blocks = all(moves.block is not None for _, moves in step.maps)
        return [parent for parent, _ in step.maps] if in_blocks else ()
    if isinstance(step, ClusterStep):
        return [parent for parent in step.inputs if step.keeps_diagonals(tape, parent)]
    return ()


def _written(tape: Tape, step: Step, factored: Container[int], diagonal: Container[int]) -> set[int]:
    """Return the arguments in ``factored`` to which a step passes dense adjoints if it gets no factors."""
    if isinstance(step, BulkStep):
        handed = _ranks_handed(tape, step, factored, has_elements=step.index in diagonal)
    else:
        handed = _ranks_placed(tape, step, factored, diagonal)
    return {parent for parent, rank in handed if not (rank and is_thin(rank, tape.shape(parent)))}


def joined_sizes(tape: Tape, facts: TapeFacts, steps: Sequence[Step], directions: int) -> dict[int, int]:
    """Count the numbers of one direction's factors, for matrices that only products read, two or more.

    In loops over time each of these products passes outer products to the matrix. To multiply them out and
    add them one by one takes many times as long as one product of many factors, see `Summed`.
    """
    large = np.flatnonzero(facts.sizes * directions >= _WORTH_FACTORING).tolist()
    forms = facts.structure.forms
    matrices = {i for i in large if is_shape(forms[i]) and is_thin(1, forms[i]) and not facts.is_complex[i]}
    ranks: dict[int, list[int]] = defaultdict(list)
    for step in steps if matrices else ():
        for parent, rank in _ranks_handed(tape, step, matrices):
            # Of the factors of a complex product, a real matrix would need the real part of what they make.
            ranks[parent].append(0 if facts.is_complex[step.index] else rank)
    return {
        index: _numbers_held(sum(given), forms[index])
        for index, given in ranks.items()
        if len(given) > 1 and all(rank and is_thin(rank, forms[index]) for rank in given)
    }


def _numbers_held(rank: int, shape: tuple[int, int]) -> int:
    """Count the numbers that the sum of products of this rank takes before it is multiplied out."""
    numbers, product = rank * sum(shape), prod(shape)
    return numbers if numbers < product else 2 * product  # factors, and what was multiplied out before


def _ranks_handed(
    tape: Tape, step: Step, wanted: Container[int], *, has_elements: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield arguments of a step that are wanted, and the rank of their adjoints if it gets dense ones.

    `has_elements` tells whether these have one element for each direction. The rank is 0 if the step passes
    dense ones.
    """
    read = [parent for parent in step.reads(tape) if parent in wanted]
    if not read or not isinstance(step, BulkStep):
        yield from ((parent, 0) for parent in read)
        return
    entry = tape[step.index]
    for argnum, parent in zip(entry.argnums, entry.parents, strict=True):
        if parent in wanted:
            rule = factored_rule(entry.primitive, argnum) if step.rule.built_in else None
            given = int(has_elements and step.begins_factors(entry))
            rank = rule.rank(given, np.shape(entry.value)) if rule else 0
            begins = rule and has_elements and derivatives_of(entry, argnum, slice(0, 1)) is not None
            yield parent, rank or int(bool(begins))


def _ranks_placed(
    tape: Tape, step: Step, wanted: Container[int], diagonal: Container[int]
) -> Iterator[tuple[int, int]]:
    """Do what `_ranks_handed` does for all but products; `diagonal` has entries with diagonal adjoints."""
    if isinstance(step, MapStep):
        for parent, moves in step.maps:
            if parent in wanted:
                is_one = step.index in diagonal
                yield parent, 1 if is_one else moves.lines(tape.shape(parent)).places.size
    elif isinstance(step, ClusterStep):
        for parent in step.inputs:
            if parent in wanted:
                yield parent, int(step.index in diagonal and step.sums_rows(tape, parent) is not None)


def keeping_factors(tape: Tape, step: Step, factored: AbstractSet[int]) -> Step:
    """Let a step pass adjoints as factors to those arguments that are in ``factored``."""
    if not factored:
        return step
    if not isinstance(step, BulkStep):
        kept = frozenset(factored & {*step.reads(tape)})
        return replace(step, factored=kept) if kept else step
    entry = tape[step.index]
    kept = frozenset(i for i, parent in zip(entry.argnums, entry.parents, strict=True) if parent in factored)
    return replace(step, factored=kept) if kept else step
