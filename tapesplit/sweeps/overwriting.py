"""Overwriting: merged operations that may work in place, on directions that nobody else reads."""

from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import Final

import autograd.numpy as anp

from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.rules import PRODUCTS
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.forms import is_shape
from tapesplit.sweeps.array_steps import BulkStep, Step
from tapesplit.sweeps.cluster_step import ClusterStep

__all__ = ["overwriting"]


def overwriting(tape: Tape, facts: TapeFacts, chunk: Chunk, steps: list[Step]) -> list[Step]:
    """Let merged operations overwrite directions that a product has made for them alone."""
    forms = facts.structure.forms
    made = {
        step.index
        for step in steps
        if isinstance(step, BulkStep) and step.rule.built_in and tape.primitives[step.index] in _MADE_ANEW
    }
    if not made:
        return steps
    readings = [(index, step.index) for step in steps for index in step.reads(tape)]
    readers, last = Counter(chain(chunk.targets, [index for index, _ in readings])), dict(readings)

    def spent(step: ClusterStep) -> frozenset[int]:
        like = [index for index in step.inputs if forms[index] == forms[step.index]]
        found = {index for index in like if index in made and readers[index] == 1}
        alone = len(like) == len(step.inputs) == readers[step.index] == 1
        if alone and last.get(step.index) in made:
            found.add(step.index)
        return frozenset(found)

    return [
        replace(step, spent=found)
        if isinstance(step, ClusterStep)
        and step.reduction is None
        and all(is_shape(forms[member.number]) for member in step.members)
        and (found := spent(step))
        else step
        for step in steps
    ]


_MADE_ANEW: Final = PRODUCTS - {anp.einsum}
"""Products whose directions are new arrays; a sum over one operand may be a view of it."""
