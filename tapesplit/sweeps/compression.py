"""Compressed sweeps: directions that meet in no result share a seed.

Where every result depends on few of the seeded elements, most of what the directions of an identity carry is
zero. Directions of one color have no result in common, so that the sweep of their sum holds all derivatives,
each in a place that the sparsity pattern tells (Curtis, Powell & Reid, *On the estimation of sparse Jacobian
matrices*, 1974; Gebremedhin, Manne & Pothen, *What color is your Jacobian?*, 2005). The few
results that depend on many elements are swept from the other end (Coleman & Verma, *The efficient computation
of sparse Jacobian matrices using automatic differentiation*, 1998).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tapesplit.arrays import BoolArray, IntArray
from tapesplit.cuts.chunks import Chunk
from tapesplit.notes import note
from tapesplit.recording.tape import Tape
from tapesplit.sweeps.array_sweep import ArraySweep
from tapesplit.sweeps.coloring import color_columns
from tapesplit.sweeps.pattern import find_pattern
from tapesplit.sweeps.scalar_sweep import ScalarSweep
from tapesplit.sweeps.stages import StagedSweep

__all__ = ["FEWEST_TO_COLOR", "SPARSE_PART", "CompressedSweep", "compress", "reached_part"]


@dataclass(frozen=True, slots=True, eq=False)
class CompressedSweep:
    """A system that carries the directions of an identity in few colors.

    A result that many directions reach would need as many colors. Such results are left out, and their
    derivatives are found by a sweep in the other mode, with the same coefficients.

    Parameters
    ----------
    sweep
        The system.
    colors
        Color of each direction.
    left_out
        Numbers of the results that are left out.
    reached
        Which directions reach each of these, shape ``(left out, directions)``.
    sources, places
        Where each derivative stands in the compressed Jacobian, which has a row for each result of the
        sweep, and where in the whole one, both flat.
    """

    sweep: ScalarSweep
    colors: IntArray
    left_out: IntArray
    reached: BoolArray
    sources: IntArray
    places: IntArray

    @property
    def chunk(self) -> Chunk:
        """What is swept."""
        return self.sweep.chunk

    @property
    def count(self) -> int:
        """Directions that are carried: one for each color, and one from each result that is left out."""
        return self.color_count + self.left_out.size

    @property
    def color_count(self) -> int:
        """Number of colors."""
        return int(self.colors.max()) + 1

    @property
    def bytes_per_direction(self) -> int:
        """Memory that one color takes."""
        return self.sweep.bytes_per_direction

    @property
    def fixed_bytes(self) -> int:
        """Memory that coefficients, seeds and the compressed Jacobian take besides."""
        return self.sweep.fixed_bytes + self._ends_bytes

    @property
    def one_color_bytes(self) -> int:
        """Memory that a run takes besides its result if it carries one color at a time."""
        return self._ends_bytes + max(self.sweep.least_bytes, 8 * self.places.size)

    @property
    def least_bytes(self) -> int:
        """The same without colors, one direction at a time: there are no seeds and no compressed Jacobian."""
        return self.sweep.least_bytes

    @property
    def _ends_bytes(self) -> int:
        """Memory of the seeds, of the compressed Jacobian, and of sweeping back."""
        return 8 * self.count * (len(self.sweep.seeds) + len(self.sweep.results)) + self._back_bytes

    @property
    def _back_bytes(self) -> int:
        """Memory of sweeping back: the system once more, from its end, and its unknowns."""
        if not self.left_out.size:
            return 0
        return 8 * self.left_out.size * len(self.sweep.indptr) + 12 * len(self.sweep.indices)

    def working_bytes(self, _: int) -> int:
        """Memory that a run takes: the compressed sweep, then its derivatives and the whole Jacobian."""
        sweep, jacobian = self.sweep, 8 * self.chunk.n * self.chunk.m
        compressed, seeds = (8 * self.color_count * len(end) for end in (sweep.results, sweep.seeds))
        expanding = compressed + 8 * self.places.size + jacobian
        working = max(seeds + sweep.working_bytes(self.color_count), expanding)
        if not self.left_out.size:
            return working
        return max(working, compressed + seeds + jacobian + sweep.fixed_bytes + self._back_bytes)

    def jacobian(self, tape: Tape, most: int | None = None) -> np.ndarray:
        """Return ``F'``, ``most`` colors at a time.

        Each derivative is moved to its place; a row of the compressed Jacobian is a result.
        """
        coefficients = self.sweep.coefficients(tape)
        seeds = np.zeros((self.color_count, self.colors.size))
        seeds[self.colors, np.arange(self.colors.size)] = 1.0
        compressed = self.sweep.carry(coefficients, seeds.T, most)
        jacobian = np.zeros((self.chunk.m, self.chunk.n))
        jacobian.reshape(-1)[self.places] = compressed.take(self.sources)
        if self.left_out.size:
            by_result = jacobian.T if self.sweep.adjoint_mode else jacobian
            found = self.sweep.carry_back(coefficients, self.left_out).T
            by_result[self.left_out] = np.where(self.reached, found, 0.0)
        return jacobian


FEWEST_TO_COLOR: Final = 32
"""Directions below which there is little to save."""
_LARGEST_JACOBIAN: Final = 2**28
"""Elements (2 GB) of a Jacobian up to which finding its pattern does not ask for much more memory."""
_SAMPLE: Final = 16
"""Directions that tell whether the pattern is worth being found."""
_SPREAD: Final = (5**0.5 - 1) / 2
"""Golden ratio: consecutive samples are this share of all directions apart, so that no periodic grid lines up
with them."""
SPARSE_PART: Final = 0.25
"""Largest part of a Jacobian's elements that may be nonzero: colors are at least this part of directions."""
_WORTH_LEAVING: Final = 0.5
"""Results are left out only if at most this part of the directions is carried then."""


def reached_part(sweep: ArraySweep | ScalarSweep | StagedSweep, tape: Tape) -> float:
    """Estimate, from a sample of directions, which part of a Jacobian's elements is not zero.

    `sweep` is a link whose directions are those of an identity, more than a few. Systems count elements that
    the structure of the tape allows to be nonzero, array steps those that are nonzero at its values. Returns
    1 for Jacobians that are too large to be compressed.
    """
    chunk, adjoint_mode = sweep.chunk, sweep.adjoint_mode
    count, results = (chunk.m, chunk.n) if adjoint_mode else (chunk.n, chunk.m)
    if count * results > _LARGEST_JACOBIAN:
        return 1.0
    seeds = np.zeros((_SAMPLE, count))
    seeds[np.arange(_SAMPLE), (np.arange(_SAMPLE) * _SPREAD % 1.0 * count).astype(int)] = 1.0
    if isinstance(sweep, ScalarSweep):
        found = sweep.paths(seeds.T)
    else:
        try:
            with np.errstate(all="ignore"):  # the sweep itself will warn
                found = sweep.run(tape, seeds)
        except BaseException as error:
            note(error, f"while trying {_SAMPLE} directions for the plan of {tape.name}")
            raise
    reached = np.count_nonzero(found) - np.count_nonzero(np.isnan(found))  # which may be zero times infinity
    return float(reached / max(found.size, 1))


def compress(sweep: ScalarSweep, most: int) -> CompressedSweep | None:
    """Let the directions of an identity share seeds; None if these are more than ``most``.

    The pattern of the system, and so the colors, are the same for all tapes of the structure.

    Notes
    -----
    Coloring takes up to 0.3 µs for each derivative that is not always zero.
    """
    directions, results = len(sweep.seeds), len(sweep.results)
    result, direction = find_pattern(sweep)
    left_out = _fullest(np.bincount(result, minlength=results), most)
    if left_out is None:
        return None
    reached = np.zeros((left_out.size, directions), dtype=bool)
    if left_out.size:
        number = np.full(results, -1)
        number[left_out] = np.arange(left_out.size)
        left = number[result] >= 0
        reached[number[result[left]], direction[left]] = True
        result, direction = result[~left], direction[~left]
    colors = color_columns(result, direction, results, directions)
    count = int(colors.max()) + 1
    if count + left_out.size > most:
        return None
    sources = result * count + colors[direction]
    places = direction * results + result if sweep.adjoint_mode else result * directions + direction
    return CompressedSweep(sweep, colors, left_out, reached, sources, places)


def _fullest(counts: IntArray, most: int) -> IntArray | None:
    """Choose the results to leave out such that the fewest directions are carried.

    ``counts`` has how many directions reach each result. Each result left out takes one direction; the
    fullest other one takes a color for each direction that reaches it. None if that makes more than ``most``.
    """
    order = np.argsort(-counts, kind="stable")
    carried = np.arange(counts.size) + counts[order]
    best = int(np.argmin(carried))
    if carried[best] > _WORTH_LEAVING * carried[0]:
        best = 0
    return None if carried[best] > most else np.sort(order[:best])
