"""The sparsity pattern of a scalar sweep: where the coefficients of its calls stand, row by row."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tapesplit.arrays import BoolArray, IntArray, occurrences
from tapesplit.sweeps.coefficients import Block, Coefficients, Recipe, existing
from tapesplit.sweeps.complex_parts import Part

__all__ = ["Calls", "Edges", "lay_out", "without_constants"]


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Coefficients by one input of many calls; ``used`` marks those that exist, None if all do."""

    target: int
    rows: IntArray
    columns: IntArray
    rank: IntArray | int
    """How many coefficients come before each one in its row."""
    used: BoolArray | None = None
    part: Part = "real"


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Like calls: where their coefficients stand, and how to evaluate them.

    ``numbers`` has the coefficients that are the same for all values, by target. ``made_by`` evaluates the
    others; it gets their places from `lay_out`.
    """

    edges: tuple[Edges, ...]
    numbers: dict[int, float | np.ndarray]
    made_by: Recipe | Block


def without_constants(edges: list[Edges]) -> list[Edges]:
    """Drop the coefficients by constant elements, and recount the ranks of the others in their rows."""
    used = [edge.columns >= 0 for edge in edges]
    if all(of_edge.all() for of_edge in used):
        return edges
    rows = [edge.rows[of_edge] for edge, of_edge in zip(edges, used, strict=True)]
    ranks = np.split(occurrences(np.concatenate(rows)), np.cumsum([r.size for r in rows])[:-1])
    return [
        Edges(edge.target, of_rows, edge.columns[of_edge], rank, of_edge, edge.part)
        for edge, of_rows, of_edge, rank in zip(edges, rows, used, ranks, strict=True)
    ]


class Layout(NamedTuple):
    """The coefficients of a system: how to evaluate them, where they stand, and those that are constant."""

    made_by: list[Recipe | Block]
    indptr: IntArray
    indices: IntArray
    template: np.ndarray


def lay_out(count: int, calls: list[Calls], *, adjoint_mode: bool) -> Layout:
    """Lay the coefficients out row by row."""
    counts = np.zeros(count, dtype=np.int32)
    for edge in (edge for like in calls for edge in like.edges):
        counts[edge.rows] = edge.rank + 1  # those of one row come in the order of their ranks
    indptr = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(counts[::-1] if adjoint_mode else counts, dtype=np.int32, out=indptr[1:])
    starts = (indptr[-2::-1] if adjoint_mode else indptr).astype(np.int64)
    template = np.zeros(int(indptr[-1]))
    indices = np.zeros(template.size, dtype=np.int32)
    made: list[Recipe | Block] = []
    for like in calls:
        coefficients = []
        for edge in like.edges:
            here = starts[edge.rows]
            here += edge.rank
            indices[here] = edge.columns
            if edge.target in like.numbers:
                template[here] = existing(like.numbers[edge.target], edge.used, edge.part)
            else:
                coefficients.append(Coefficients(edge.target, here, edge.used, edge.part))
        if coefficients:
            made.append(replace(like.made_by, coefficients=tuple(coefficients)))
    if adjoint_mode:
        np.subtract(count - 1, indices, out=indices)
    return Layout(made, indptr, indices, template)
