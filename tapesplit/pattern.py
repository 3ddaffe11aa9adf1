"""The sparsity pattern of a scalar sweep: where the coefficients of its calls stand, row by row."""

from dataclasses import dataclass

import numpy as np

from tapesplit.array_steps import BulkStep
from tapesplit.graph import BoolArray, IntArray
from tapesplit.preaccumulation import Member
from tapesplit.scalar_sweep import Block, Coefficients, Recipe

__all__ = ["Calls", "Edges", "lay_out", "without_constants"]


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Coefficients by one input of many calls; ``used`` marks those that exist, None if all do."""

    target: int
    rows: IntArray
    columns: IntArray
    rank: IntArray | int
    """How many coefficients before them stand in the same rows."""
    used: BoolArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Like calls: how their coefficients come about, and where they stand.

    ``numbers`` are the coefficients that are the same for all values, by target. A call that has a ``block``
    step is alone, and ``parents`` are what it reads.
    """

    edges: tuple[Edges, ...]
    numbers: dict[int, float]
    members: tuple[Member, ...] = ()
    result: int = 0
    reads: tuple[IntArray, ...] = ()
    block: BulkStep | None = None
    parents: tuple[int, ...] = ()


def without_constants(edges: list[Edges]) -> list[Edges]:
    """Keep the coefficients by elements that are not constant; count anew how they stand in their rows."""
    used = [edge.columns >= 0 for edge in edges]
    rows = [edge.rows[of_edge] for edge, of_edge in zip(edges, used, strict=True)]
    ranks = np.split(_occurrences(np.concatenate(rows)), np.cumsum([r.size for r in rows])[:-1])
    return [
        Edges(edge.target, of_rows, edge.columns[of_edge], rank, of_edge)
        for edge, of_rows, of_edge, rank in zip(edges, rows, used, ranks, strict=True)
    ]


def _occurrences(rows: IntArray) -> IntArray:
    """For each item, how many equal ones stand before it."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts = np.diff(np.append(starts, rows.size))
    result = np.empty(rows.size, dtype=np.int64)
    result[order] = np.arange(rows.size) - np.repeat(starts, counts)
    return result


def lay_out(
    count: int, calls: list[Calls], *, adjoint_mode: bool
) -> tuple[list[Recipe], list[Block], IntArray, IntArray, np.ndarray]:
    """Lay the coefficients out row by row; return how they come about, the pattern, and the constant ones."""
    counts = np.zeros(count, dtype=np.int32)
    for edge in (edge for like in calls for edge in like.edges):
        counts[edge.rows] = edge.rank + 1  # those of one row come in the order of their ranks
    indptr = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(counts[::-1] if adjoint_mode else counts, dtype=np.int32, out=indptr[1:])
    starts = (indptr[-2::-1] if adjoint_mode else indptr).astype(np.int64)
    template = np.zeros(int(indptr[-1]))
    indices = np.zeros(template.size, dtype=np.int32)
    recipes: list[Recipe] = []
    blocks: list[Block] = []
    for like in calls:
        coefficients = []
        for edge in like.edges:
            here = starts[edge.rows]
            here += edge.rank
            indices[here] = edge.columns
            if edge.target in like.numbers:
                template[here] = like.numbers[edge.target]
            else:
                coefficients.append(Coefficients(edge.target, here, edge.used))
        if like.block is not None:
            blocks.append(Block(like.block, like.parents, tuple(coefficients)))
        elif coefficients:
            recipes.append(Recipe(like.members, like.result, like.reads, tuple(coefficients)))
    if adjoint_mode:
        np.subtract(count - 1, indices, out=indices)
    return recipes, blocks, indptr, indices, template
