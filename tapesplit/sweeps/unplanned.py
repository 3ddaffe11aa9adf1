"""Unplanned sweeps: a light tape is swept as it is, one operation at a time.

A plan pays if it serves several calls. If the structure differs at each call, as with masks and branches, and
the tape is short, planning takes longer than sweeping in any way.
"""

from math import prod
from typing import Final

import numpy as np

from tapesplit.cuts.chunks import Chunk
from tapesplit.notes import note
from tapesplit.recording.source_lines import note_line_without_rule
from tapesplit.recording.tape import Tape
from tapesplit.rules import (
    LOOK_UP,
    Movement,
    find_rule,
    getitem,
    index_maps,
    is_elementwise_call,
    lu_kept,
)
from tapesplit.structures.forms import is_shape
from tapesplit.structures.structure import Structure
from tapesplit.sweeps.array_steps import BulkStep, Step, bulk_step
from tapesplit.sweeps.array_sweep import ArraySweep
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.map_step import MapStep
from tapesplit.sweeps.preaccumulation import Member, Term

__all__ = ["is_light", "sweep_unplanned"]

_MOST_ENTRIES: Final = 128
"""Entries from which on steps one by one take longer than a plan and its sweeps."""
_MOST_MOVED: Final = 1_000_000
"""Elements times directions from which on a better way could save as much time as finding it takes."""


def is_light(structure: Structure) -> bool:
    """Tell whether tapes of a structure are short and small, and all their values are of float64."""
    forms, inputs = structure.forms, structure.inputs
    if structure.output is None or len(forms) > _MOST_ENTRIES or not all(map(is_shape, forms)):
        return False
    sizes = [prod(form) for form in forms]
    directions = min(sum(sizes[:inputs]), sizes[structure.output])
    return 0 < directions * sum(sizes) <= _MOST_MOVED


def sweep_unplanned(tape: Tape) -> np.ndarray:
    """Return the Jacobian of a light tape by one plain sweep, in the mode of fewer directions.

    Its shape is ``(elements of the output, elements of all inputs)``.

    Notes
    -----
    Takes about 10 µs for each operation that the output depends on.
    """
    output: int = tape.output  # type: ignore[assignment] # a light tape has one
    needed, steps = {output}, list[Step]()
    for index in range(output, tape.inputs - 1, -1):
        if index in needed:
            needed.update(tape.parents[index])
            steps.append(_step(tape, index))
    sources, entries = tuple(range(tape.inputs)), [step.index for step in reversed(steps)]
    n, m = sum(np.size(tape.values[index]) for index in sources), np.size(tape.value)
    sweep = ArraySweep(
        chunk=Chunk(sources, (output,), np.array(entries), n, m, edges=0),
        steps=tuple(reversed(steps)),
        last_use=((),) * len(steps),  # a light tape is so small that nothing need be dropped
        adjoint_mode=m <= n,
        bytes_per_direction=0,
        beside_bytes=0,
        fixed_bytes=0,
    )
    try:
        with lu_kept():
            rows = sweep.run(tape, None)
            return rows if m <= n else rows.T
    except BaseException as error:
        note_line_without_rule(error, tape)
        note(error, f"while computing the Jacobian of {tape.name}, without a plan")
        raise


def _step(tape: Tape, index: int) -> Step:
    """Return the step of one entry."""
    primitive, argnums, parents = tape.primitives[index], tape.active[index], tape.parents[index]
    rule = find_rule(primitive)
    if primitive is getitem and isinstance(rule, Movement):
        return BulkStep(index, LOOK_UP)  # an index map would be used just once
    if isinstance(rule, Movement):
        return MapStep(index, tuple(zip(parents, index_maps(tape[index]), strict=True)))
    arity = len(tape.args[index] or argnums)
    if is_elementwise_call(rule, argnums, arity, tape.kwargs[index]):
        formulas = zip(parents, [rule.partials[argnum] for argnum in argnums], strict=True)
        terms = tuple([Term(parent, formula) for parent, formula in formulas if formula is not None])
        return ClusterStep(index, (Member(index, terms),), tuple(dict.fromkeys(parents)))
    return bulk_step(index, rule)
