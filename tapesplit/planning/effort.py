"""Effort: how hard to look for cuts, by what they could save in a call."""

from dataclasses import fields
from typing import Final, Literal, TypeAlias

import numpy as np

from tapesplit.arrays import IntArray
from tapesplit.cost.model import array_seconds, scalar_seconds, system_seconds
from tapesplit.cost.stored import cost_model
from tapesplit.cost.work import Work, WorkTable, total_work
from tapesplit.cuts.graph import TapeGraph

__all__ = ["Effort", "effort_for", "sweep_seconds"]

Effort: TypeAlias = Literal["none", "brief", "thorough"]
"""No search for cuts at all, one along the tape's order, or a comparison of cuts of all kinds."""

_VERTICES_SEARCHED_ANYWAY: Final = 250
"""Vertices up to which a search takes so little time that plans may show cuts that save little."""
_NEGLIGIBLE: Final = 0.1
"""Part of a call that cuts must be able to save."""
_RECORDED: Final = 5.0e-7
"""Seconds that recording an operation takes at least."""
_WORTH_COMPARING: Final = 1.5e-4
"""Seconds that cuts must be able to save for a comparison, which takes about ten times as long."""
_COMPARING_A_VERTEX: Final = 1.5e-6
"""Seconds that cuts must be able to save in addition, for each vertex of the graph."""


def effort_for(graph: TapeGraph, table: WorkTable) -> Effort:
    """Tell how hard to look for cuts.

    The effort is "none" if one sweep through the whole tape is within a tenth of a call of what any plan
    takes.

    Notes
    -----
    Every plan sweeps through each entry, in one direction or more, in the form that is faster there. Takes
    O(n), vectorised.
    """
    directions, ends = min(graph.input_width, graph.output_width), graph.input_width + graph.output_width
    swept = graph.entries[graph.inputs :]
    saving = plain = sweep_seconds(table, swept, directions, ends, adjoint_mode=True)
    if graph.size > _VERTICES_SEARCHED_ANYWAY:
        saving -= _least_seconds(table, swept)
        if saving < _NEGLIGIBLE * (plain + _RECORDED * table.sharing.size):
            return "none"
    return "thorough" if saving > _WORTH_COMPARING + _COMPARING_A_VERTEX * graph.size else "brief"


def _least_seconds(table: WorkTable, entries: IntArray) -> float:
    """Return a lower bound of the time of any plan: each entry is swept in one direction, by its faster form.

    Only one sweep pays the cost of starting. Calls that share formulas are either all swept by array steps,
    or pay for the formulas once.
    """
    model, each, nothing = cost_model(), Work(0, *table.lines), Work(*[0] * len(fields(Work)))
    arrays, start = (array_seconds(model, swept, 1, adjoint_mode=True) for swept in (each, nothing))
    systems, setup = (system_seconds(model, swept, 1) for swept in (each, nothing))
    arrays -= start
    faster = np.where(each.formless, arrays, np.minimum(arrays, systems - setup))
    by_arrays, by_either = (
        np.bincount(table.sharing[entries], seconds[entries], table.formulas.size)
        for seconds in (arrays, faster)
    )
    least = np.minimum(by_arrays, by_either + table.formulas * model.formula)
    return float(min(start, setup) + least.sum())


def sweep_seconds(
    table: WorkTable, entries: IntArray, directions: int, ends: int, *, adjoint_mode: bool
) -> float:
    """Predict a sweep roughly, without a look for stages.

    The form is the faster one of both. `ends` counts the elements that are seeded and those that are read.
    """
    model, total = cost_model(), total_work(table, entries)
    arrays = array_seconds(model, total, directions, adjoint_mode=adjoint_mode)
    return min(arrays, scalar_seconds(model, total, directions, ends))
