"""Scalar sweeps: a chunk as one triangular sparse system over the elements of its values.

Every element that the chunk's operations compute is an unknown, every local partial derivative a coefficient
(the extended Jacobian of Griewank & Walther 2008, Sec. 9). `tapesplit.sweeps.merging` merges operations, and
`tapesplit.sweeps.lowering` finds once where the coefficients stand; a run gathers the recorded values,
evaluates the partials of all like calls at once, and substitutes.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tapesplit.arrays import IntArray
from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.sharing import run_parts, shares
from tapesplit.sweeps.coefficients import Block, Recipe, ValueTable
from tapesplit.sweeps.elimination import Elimination, eliminate
from tapesplit.sweeps.reach import Reach
from tapesplit.sweeps.triangular import substitute
from tapesplit.telling import told

__all__ = ["SHARED_STEPS", "ScalarSweep"]

_CACHED: Final = 2**19
"""Numbers (4 MB) of the system that are worked on at a time."""
_FEWEST_DIRECTIONS: Final = 12
"""Directions below which a smaller block would cost more than it saves; threads gain by small blocks."""
SHARED_STEPS: Final = 4_000_000
"""Coefficients times directions from which on a system is worth being shared by threads."""
_FEWEST_TO_SHARE: Final = 8
"""Directions that each of them gets at least."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalarSweep:
    """A chunk compiled for one mode.

    Parameters
    ----------
    chunk
        What is swept.
    adjoint_mode
        Unknowns are numbered backwards and coefficients stored by column if true.
    indptr, indices
        Sparsity pattern of the system.
    template
        Coefficients that are the same for all values, before elimination; zeros elsewhere.
    recipes, blocks
        How to evaluate the other coefficients.
    values
        What the recipes read of a tape.
    seeds, results
        Unknown of each element of the values that are seeded, and of those that are read; -1 for constants.
    distinct_seeds
        Whether no unknown is seeded twice and none is a constant.
    constant_results
        Whether constants are among what is read.
    elimination
        How the coefficients of the system are found from those that are evaluated; None if they are the same.
    reaches
        Smaller systems for blocks of an identity's directions; none if these reach most of it.
    """

    chunk: Chunk
    adjoint_mode: bool
    indptr: IntArray
    indices: IntArray
    template: np.ndarray
    recipes: tuple[Recipe, ...]
    blocks: tuple[Block, ...]
    values: ValueTable
    seeds: IntArray
    results: IntArray
    distinct_seeds: bool
    constant_results: bool
    elimination: Elimination | None = None
    reaches: tuple[Reach, ...] = ()

    @property
    def bytes_per_direction(self) -> int:
        """Memory that all unknowns and results take for each direction that is carried."""
        seeds = 0 if self.distinct_seeds else len(self.seeds)
        return 8 * (len(self.indptr) + len(self.results) + seeds)

    @property
    def fixed_bytes(self) -> int:
        """Memory that the coefficients take besides."""
        return 8 * (len(self.indices) if self.elimination is None else len(self.elimination.kept))

    @property
    def least_bytes(self) -> int:
        """Memory that a run takes besides its result if it carries one direction at a time."""
        return self.fixed_bytes + max(self._formula_bytes, self.bytes_per_direction)

    @property
    def _formula_bytes(self) -> int:
        """Memory that finding the coefficients takes: what is gathered, and the largest formula or block.

        Elimination takes more coefficients, and the products of these.
        """
        reads = [index for recipe in self.recipes for index in recipe.reads]
        gathered = 1 + max((int(index.max(initial=-1)) for index in reads), default=-1)
        formula = max((recipe.numbers for recipe in self.recipes), default=0)
        if self.elimination is not None:
            formula = max(formula, self.elimination.numbers)
        found = max(gathered + formula, *(block.numbers for block in self.blocks), 0)
        return 8 * (len(self.template) + found) - self.fixed_bytes

    @property
    def _reach_bytes(self) -> int:
        """Memory that the largest of the smaller systems takes for the directions of its block."""
        return 8 * max((reach.numbers for reach in self.reaches), default=0)

    def working_bytes(self, directions: int, threads: int = 1) -> int:
        """Memory of a run: coefficients, and the larger of what evaluating and what carrying takes."""
        blocks = min(threads * self._block(-(-directions // threads)), directions)
        carried = threads * self._reach_bytes if self.reaches else self.bytes_per_direction * blocks
        carried += 8 * len(self.results) * directions
        return self.fixed_bytes + max(self._formula_bytes, carried)

    def run(self, tape: Tape, rows: np.ndarray | None, most: int | None = None) -> np.ndarray:
        """Carry directions, a row each, None for the identity, ``most`` of them at a time."""
        return self.carry(self.coefficients(tape), None if rows is None else rows.T, most).T

    def paths(self, columns: np.ndarray | None = None) -> np.ndarray:
        """Count paths from seeds to results: where there are none, derivatives are zero whatever the values.

        The columns have shape ``(seeded, k)`` and are not negative; None is the identity. The result has
        shape ``(read, k)``. Counts may overflow to infinity: only whether they are zero is of use.
        """
        return self.carry(np.ones(len(self.indices), np.float32), columns)

    def paths_back(self, results: IntArray) -> np.ndarray:
        """Count paths from all seeds to k results, which are no constants; shape ``(seeded, k)``."""
        return self.carry_back(np.ones(len(self.indices), np.float32), results)

    def carry(
        self, coefficients: np.ndarray, columns: np.ndarray | None, most: int | None = None
    ) -> np.ndarray:
        """Carry directions from seeds to results, in blocks that fit into a cache.

        The columns have shape ``(seeded, k)``; None is the identity. At most `most` directions are carried at
        a time. The result has shape ``(read, k)``.
        """
        count = len(self.seeds) if columns is None else columns.shape[1]
        if len(self.indptr) == 1:
            return np.zeros((self.results.size, count), coefficients.dtype)
        is_large = count * len(self.indices) >= SHARED_STEPS
        may_reach = most is None or self._reach_bytes <= most * self.bytes_per_direction
        if self.reaches and columns is None and may_reach:
            return self._carry_identity(coefficients, is_large=is_large)
        if not is_large and self._block(count) == count <= (most or count):
            zeros = np.zeros((len(self.indptr) - 1, count), coefficients.dtype)
            return self._solved(coefficients, columns, 0, count, zeros)
        result = np.empty((self.results.size, count), coefficients.dtype)
        parts = shares(count, count // _FEWEST_TO_SHARE) if is_large else [slice(0, count)]
        run_parts(self._carry_part, [(coefficients, columns, part, most, result) for part in parts])
        return result

    def _carry_identity(self, coefficients: np.ndarray, *, is_large: bool) -> np.ndarray:
        """Carry the directions of an identity through what they reach."""
        result = np.zeros((self.results.size, len(self.seeds)))
        parts = shares(len(self.reaches), len(self.reaches)) if is_large else [slice(None)]
        run_parts(self._carry_reaches, [(coefficients, self.reaches[part], result) for part in parts])
        return result

    def _carry_reaches(
        self, coefficients: np.ndarray, reaches: tuple[Reach, ...], result: np.ndarray
    ) -> None:
        """Carry some blocks of directions through what they reach."""
        for reach in told(reaches, len(reaches)):
            reach.write(coefficients, result, transposed=self.adjoint_mode)

    def _carry_part(
        self,
        coefficients: np.ndarray,
        columns: np.ndarray | None,
        part: slice,
        most: int | None,
        result: np.ndarray,
    ) -> None:
        """Carry some of the directions, in blocks, and write their results down."""
        unknowns, block = len(self.indptr) - 1, min(self._block(part.stop - part.start), most or part.stop)
        system = np.empty(unknowns * block, coefficients.dtype)
        starts = range(part.start, part.stop, max(block, 1))
        for start in told(starts, len(starts)):
            stop = min(start + block, part.stop)
            Y = system[: unknowns * (stop - start)].reshape(unknowns, stop - start)
            Y[:] = 0.0
            result[:, start:stop] = self._solved(coefficients, columns, start, stop, Y)

    def _solved(
        self, coefficients: np.ndarray, columns: np.ndarray | None, start: int, stop: int, zeros: np.ndarray
    ) -> np.ndarray:
        """Return the results of some directions, for which the system is solved in the memory of zeros."""
        self._seed(zeros, columns, start, stop)
        substitute(self.indptr, self.indices, coefficients, zeros, transposed=self.adjoint_mode)
        results: np.ndarray = zeros.take(self.results, axis=0)
        if self.constant_results:
            results[self.results < 0] = 0.0
        return results

    def carry_back(self, coefficients: np.ndarray, results: IntArray) -> np.ndarray:
        """Carry directions from results to seeds: the same system, transposed and from the end.

        `results` has the numbers of k results that are no constants. Their derivatives have shape
        ``(seeded, k)``.
        """
        last = len(self.indptr) - 2
        starts, targets = self.indptr[-1] - self.indptr[::-1], last - self.indices[::-1]
        Y = np.zeros((last + 1, results.size), coefficients.dtype)
        Y[last - self.results[results], np.arange(results.size)] = 1.0
        substitute(starts, targets, coefficients[::-1].copy(), Y, transposed=not self.adjoint_mode)
        derivatives = Y[np.minimum(last - self.seeds, last)]
        derivatives[self.seeds < 0] = 0.0  # constants
        return derivatives

    def _block(self, count: int) -> int:
        """Return how many of so many directions are carried at a time: blocks of about equal size."""
        blocks = max(1, min(-(-count * len(self.indptr) // _CACHED), count // _FEWEST_DIRECTIONS))
        return -(-count // blocks)

    def _seed(self, Y: np.ndarray, columns: np.ndarray | None, start: int, stop: int) -> None:
        """Write a block of directions into the zeros of the system."""
        if columns is None:
            known = np.flatnonzero(self.seeds[start:stop] >= 0)
            Y[self.seeds[start:stop][known], known] = 1.0
        elif not self.distinct_seeds:
            used = self.seeds >= 0
            np.add.at(Y, self.seeds[used], columns[used, start:stop])
        else:
            Y[self.seeds] = columns[:, start:stop]

    def coefficients(self, tape: Tape) -> np.ndarray:
        """Evaluate the coefficients for the values of one tape."""
        values = self.values.gather(tape)
        coefficients = self.template.copy()
        for recipe in self.recipes:
            recipe.write(tape, values, coefficients)
        for block in self.blocks:
            block.write(tape, coefficients)
        return coefficients if self.elimination is None else self.elimination.reduced(coefficients)

    def with_elimination(self, directions: int) -> "ScalarSweep":
        """Return a sweep with a smaller system, if so many directions are worth it."""
        if self.reaches:
            return self  # these refer to the coefficients as they are
        smaller = eliminate(self.indptr, self.indices, self.seeds, self.results, directions)
        return self if smaller is None else replace(self, **smaller._asdict())
