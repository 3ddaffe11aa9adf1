"""Predictions: what each form of a sweep would take, and which one is the fastest."""

from dataclasses import replace
from functools import partial
from typing import Final, Literal, NamedTuple

import numpy as np

from tapesplit.arrays import FloatArray, IntArray
from tapesplit.cost.factored import are_spoiled
from tapesplit.cost.model import array_seconds, expanded_seconds, scalar_seconds, substitution_seconds
from tapesplit.cost.stored import cost_model
from tapesplit.cost.windows import carried_parts
from tapesplit.cost.work import ROW, Work, WorkTable, total_work
from tapesplit.cuts.chunks import Chunk
from tapesplit.matrix_product import SHARED_FMA, SHARED_WIDTH
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.row_part import RowPart
from tapesplit.sweeps.reach import part_kept
from tapesplit.sweeps.scalar_sweep import SHARED_STEPS, ScalarSweep
from tapesplit.sweeps.stages import find_stages, staged_seconds

__all__ = [
    "Form",
    "Prediction",
    "predict",
    "predict_arrays",
    "predict_compressed",
    "predict_reaching",
    "worth_compiling",
]

Form = Literal["arrays", "system", "stages", "rows"]
"""What a chunk is compiled to: `ArraySweep`, `ScalarSweep`, `StagedSweep`, `RowSweep`."""


class Prediction(NamedTuple):
    """What is known of a sweep before it is compiled; tasks have these fields, too.

    ``seconds`` is the predicted time of one run in the fastest form, and ``form`` is that form. ``obstacle``
    is the first entry without a scalar form. ``releases_lock`` tells whether most of the time is spent in
    compiled code that lets other threads run; ``product_fma`` are the multiply-adds of matrix products.
    ``shareable`` is the part of the seconds that several threads can share.
    """

    seconds: float
    form: Form
    obstacle: int | None = None
    releases_lock: bool = False
    product_fma: int = 0
    shareable: float = 0.0


def predict(
    facts: TapeFacts,
    table: WorkTable,
    chunk: Chunk,
    directions: int,
    *,
    adjoint_mode: bool,
    identity: bool,
) -> Prediction:
    """Predict a sweep of a chunk with this number of directions, from `tapesplit.cost.work.work_table`.

    ``identity`` tells whether the directions are those of an identity: they are carried by rows if the facts
    have a row part.
    """
    if adjoint_mode and identity and facts.row_part is not None:
        return _predict_rows(facts.row_part, table, chunk, directions)
    return _predict_whole(facts, table, chunk, directions, adjoint_mode=adjoint_mode, identity=identity)


def _predict_rows(part: RowPart, table: WorkTable, chunk: Chunk, directions: int) -> Prediction:
    """Predict a sweep whose rows are carried together."""
    model = cost_model()
    behind, before = (
        total_work(table, entries) for entries in (part.calls, np.setdiff1d(chunk.entries, part.calls))
    )
    each = max(1, round(part.swept / max(part.edges, 1)))
    calls = part.calls.tolist()
    behind = replace(behind, steps=behind.steps * sum(len(part.blocks[i]) for i in calls) // len(calls))
    moved = part.expanded + ROW * part.turned + _LOOKED_UP * part.looked_up
    seconds = (
        array_seconds(model, behind, each, adjoint_mode=True)
        + array_seconds(model, before, directions, adjoint_mode=True)
        + moved * model.element_direction
    )
    products = behind.product_fma * each + before.product_fma * directions
    busy = behind.looped + before.looped == 0 and seconds > _BUSY * (behind.steps + before.steps) * model.step
    large = _large_products(table, part.calls, each, adjoint_mode=True)
    return Prediction(seconds, "rows", releases_lock=busy, product_fma=products, shareable=large)


def _predict_whole(
    facts: TapeFacts, table: WorkTable, chunk: Chunk, directions: int, *, adjoint_mode: bool, identity: bool
) -> Prediction:
    """Predict a sweep in which each direction stands for itself."""
    model, work = cost_model(), total_work(table, chunk.entries)
    scalar = scalar_seconds(model, work, directions, chunk.n + chunk.m)
    compiled = substitution_seconds(model, work, directions)
    is_dense = adjoint_mode and not identity and are_spoiled(facts, chunk.targets)
    whole = arrays = predict_arrays(table, chunk, directions, adjoint_mode=adjoint_mode, is_dense=is_dense)
    reached = 1.0
    if identity and whole.seconds > _WORTH_A_WALK * len(chunk.entries) and not _has_savings(table, chunk):
        carried = _carried(facts, chunk, adjoint_mode=adjoint_mode)
        narrow = predict_arrays(table, chunk, directions, carried, adjoint_mode=adjoint_mode)
        if narrow.seconds < _NARROW * whole.seconds:
            arrays, reached = narrow, _mean(carried, table.line("coefficients")[chunk.entries])
    # Systems whose directions go through what they reach are found once they are compiled.
    if scalar - (1.0 - reached) * compiled + worth_compiling(work) < arrays.seconds:
        is_large = work.coefficients * directions >= SHARED_STEPS and directions >= SHARED_WIDTH
        busy = compiled > _COMPILED * scalar
        return Prediction(scalar, "system", releases_lock=busy, shareable=compiled * is_large)
    obstacle = int(chunk.entries[np.argmin(facts.scalar_apart[chunk.entries])]) if work.formless else None
    if whole.seconds > _WORTH_A_LOOK:
        stages = find_stages(facts, table, chunk, directions, adjoint_mode=adjoint_mode)
        staged = staged_seconds(stages, directions)
        if stages and staged + _COMPILING * work.formulas < _WORTH_STAGES * whole.seconds:
            shared = sum(
                _large_products(table, stage.chunk.entries, directions, adjoint_mode=adjoint_mode)
                for stage in stages
                if not stage.is_system
            )
            busy = shared > _COMPILED * staged
            return Prediction(staged, "stages", obstacle, busy, whole.product_fma, shared)
    return arrays._replace(obstacle=obstacle)


def _carried(facts: TapeFacts, chunk: Chunk, *, adjoint_mode: bool) -> FloatArray:
    """Return the part of the directions of an identity that each entry of a chunk carries."""
    ends = chunk.targets if adjoint_mode else chunk.sources
    return carried_parts(facts, ends, chunk.entries.tolist(), adjoint_mode=adjoint_mode)


def _mean(parts: FloatArray, weights: FloatArray) -> float:
    """Return the mean of some parts, with weights that are not all zero."""
    return float(parts @ weights / max(weights.sum(), 1.0))


def _has_savings(table: WorkTable, chunk: Chunk) -> bool:
    """Tell whether an entry saves work that others make: reductions, of operations that they absorb."""
    counted = (table.line(name)[chunk.entries] for name in ("moved", "product_fma"))
    return any(line.min(initial=0.0) < 0 for line in counted)


def worth_compiling(work: Work) -> float:
    """Return the seconds that a system must save on array steps: part of what compiling it takes longer."""
    return _OF_A_COEFFICIENT * (work.coefficients + work.elements)


def predict_arrays(
    table: WorkTable,
    chunk: Chunk,
    directions: int,
    carried: FloatArray | None = None,
    *,
    adjoint_mode: bool,
    is_dense: bool = False,
) -> Prediction:
    """Predict a sweep of a chunk by array steps.

    Each entry carries all directions, or the part of them that `tapesplit.cost.windows` has found.
    ``is_dense`` tells that no adjoints stay factored.
    """
    model, work = cost_model(), total_work(table, chunk.entries, carried)
    if is_dense:
        work = replace(work, unmoved=0, factored=0, spared_adjoints=0)
    seconds = partial(array_seconds, model, work, adjoint_mode=adjoint_mode)
    if len(chunk.sources) == 1 and work.elements == work.steps * chunk.n and not work.product_fma:
        # Elementwise all through: a diagonal among zeros that the system hands out.
        expected = seconds(0) + expanded_seconds(model, directions * chunk.n)
    else:
        expected = seconds(directions)
    spared = work.spared_adjoints if adjoint_mode else work.spared_tangents
    busy = work.looped == 0 and expected > _BUSY * work.steps * model.step
    large = _large_products(table, chunk.entries, directions, adjoint_mode=adjoint_mode)
    products = (work.product_fma - spared) * directions
    return Prediction(expected, "arrays", None, busy, products, large)


def _large_products(table: WorkTable, entries: IntArray, directions: int, *, adjoint_mode: bool) -> float:
    """Predict those products that are large enough to be shared by threads."""
    if directions < SHARED_WIDTH:
        return 0.0
    spared = table.line(f"spared_{'adjoints' if adjoint_mode else 'tangents'}")
    fma = (table.line("product_fma")[entries] - spared[entries]) * directions
    return float(fma[fma >= SHARED_FMA].sum()) * cost_model().product_fma


def predict_compressed(table: WorkTable, chunk: Chunk, colors: int) -> Prediction:
    """Predict a sweep of a chunk as a system whose directions share this number of seeds."""
    return _predict_few(table, chunk, colors, steps=0)


def predict_reaching(table: WorkTable, sweep: ScalarSweep) -> Prediction:
    """Predict a system whose directions, those of an identity, go through what they reach."""
    carried = max(1, round(len(sweep.seeds) * part_kept(sweep.reaches, len(sweep.indices))))
    return _predict_few(table, sweep.chunk, carried, steps=_REACH * len(sweep.reaches))


def _predict_few(table: WorkTable, chunk: Chunk, directions: int, steps: int) -> Prediction:
    """Predict a system that hands out a Jacobian, mostly zero, for so few directions and steps besides."""
    model, work = cost_model(), total_work(table, chunk.entries)
    work = replace(work, formless=work.formless - work.dense)
    seconds = scalar_seconds(model, work, directions, chunk.n + chunk.m)
    seconds += expanded_seconds(model, chunk.n * chunk.m) + steps * model.step
    compiled = substitution_seconds(model, work, directions)
    return Prediction(seconds, "system", releases_lock=compiled > _COMPILED * seconds)


_LOOKED_UP: Final = 25
"""Cost of finding the place of an element that a row takes from anywhere, in moved elements."""
_REACH: Final = 5
"""Steps that take as long as turning to the next block of directions with a system of its own."""
_BUSY: Final = 8
"""Times as long as its calls alone that a sweep by arrays takes if most of it is without Python's lock."""
_COMPILED: Final = 0.5
"""Part of a system's time that compiled code without that lock takes, at least, for threads to share it."""
_WORTH_A_WALK: Final = 2e-5
"""Seconds of array steps for each entry from which on windows are looked for, ten times what that costs."""
_NARROW: Final = 0.5
"""Part of the time of array steps, if they carried all directions everywhere, below which windows count."""
_WORTH_A_LOOK: Final = 1.5e-4
"""Seconds of array steps from which on stages could save as much as finding them takes in some calls."""
_OF_A_COEFFICIENT: Final = 1.5e-9
"""Seconds that a system must save for each coefficient, and for each element of a formula: a twentieth of
what compiling it takes longer, so that it pays within about twenty calls."""
_COMPILING: Final = 1.6e-5
"""Seconds that stages must save for each formula: a twentieth of what compiling it in systems takes."""
_WORTH_STAGES: Final = 0.8
"""Part of the time of array steps that stages are predicted to take where they are worth being compiled."""
