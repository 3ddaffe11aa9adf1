"""Scalar sweeps: a chunk as one triangular sparse system over the elements of its values.

Every element that the chunk's operations compute is an unknown, every local partial derivative a coefficient
(the extended Jacobian of Griewank & Walther 2008, Sec. 9). `tapesplit.sweeps.merging` merges operations, and
`tapesplit.sweeps.lowering` finds once where the coefficients stand; a run gathers the recorded values,
evaluates the partials of all like calls at once, and substitutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from tapesplit.arrays import BoolArray, IntArray
from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import ARGS, VALUE, Tape
from tapesplit.rules import as_one_call
from tapesplit.rules.axes import flat
from tapesplit.sweeps.array_steps import BulkStep, evaluated
from tapesplit.sweeps.complex_parts import Part, part_of
from tapesplit.sweeps.directions import Batch, as_pairs
from tapesplit.sweeps.preaccumulation import Member, Term, preaccumulate
from tapesplit.sweeps.triangular import substitute, substitute_transposed

__all__ = ["Block", "Coefficients", "Operand", "Recipe", "ScalarSweep", "ValueTable", "existing"]


class Coefficients(NamedTuple):
    """Where the derivatives by one input stand; ``used`` marks those that exist, None if all do."""

    target: int
    places: IntArray
    used: BoolArray | None
    part: Part


def existing(derivatives: Any, used: BoolArray | None, part: Part) -> Any:
    """Return the derivatives that are coefficients: one part of them, by elements that are no constants."""
    derivatives = part_of(derivatives, part)
    return derivatives if used is None else np.broadcast_to(derivatives, used.shape)[used]


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Coefficients of many like calls of merged operations.

    Parameters
    ----------
    members
        What is merged, the last operation first; the operands of their terms number what is read.
    result
        Number of the last member.
    reads
        Places among the gathered values, of shape (calls, elements of a result) or (calls, 1); those of
        both parts of complex numbers along a third axis.
    coefficients
        Where the products of the partial derivatives are stored.
    calls
        Tape entries of the members, of shape (calls, members), if there are formulas of users': these are
        evaluated on each call alone, since they may ask what their arguments are.
    """

    members: tuple[Member, ...]
    result: int
    reads: tuple[IntArray, ...]
    coefficients: tuple[Coefficients, ...]
    calls: IntArray | None = None

    @property
    def numbers(self) -> int:
        """How many numbers are held meanwhile: what is read, partial derivatives, and products of these."""
        read = sum(index.size for index in self.reads)
        return read + min(len(self.members), 2) * sum(found.places.size for found in self.coefficients)

    def write(self, tape: Tape, values: np.ndarray, coefficients: np.ndarray) -> None:
        """Evaluate the coefficients for one tape, whose values are gathered."""
        read = [_read(values, index) for index in self.reads]

        def evaluate(member: int, term: Term) -> Any:
            if self.calls is not None and not term.operands:
                return _evaluated_alone(tape, self.calls[:, member], term)
            return term.partial(*[None if i is None else read[i] for i in term.operands])  # type: ignore[operator]

        derivatives = preaccumulate(self.result, self.members, evaluate)
        for target, places, used, part in self.coefficients:
            coefficients[places] = existing(derivatives[target], used, part)


def _evaluated_alone(tape: Tape, calls: IntArray, term: Term) -> np.ndarray:
    """Evaluate a formula on the arguments of each call alone; a row for each."""
    found, shape = [evaluated(tape, index, term) for index in calls.tolist()], tape.shape(calls[0])
    if shape:
        found = [np.broadcast_to(partial, shape) for partial in found]
    return np.array(found).reshape(len(found), -1)


def _read(values: np.ndarray, places: IntArray) -> np.ndarray:
    """Return the gathered values in some places, complex numbers where there are pairs of places."""
    return values.take(places).view(np.complex128)[..., 0] if places.ndim == 3 else values[places]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """All derivatives of like calls: coefficients that the rule for array sweeps finds.

    Parameters
    ----------
    step
        What carries adjoints through such a call.
    entries
        The calls; several are carried out as one, on stacks of their arguments.
    seeds
        Adjoints of the result, one direction for each real element of a slice.
    reads
        For each active argument the positions of its real elements, of shape (slices, elements of a slice).
    coefficients
        The derivatives by each active argument, by direction, slice and element; their targets are
        ``-1 - number``.
    """

    step: BulkStep
    entries: tuple[int, ...]
    seeds: Batch
    reads: tuple[IntArray, ...]
    coefficients: tuple[Coefficients, ...] = ()

    @property
    def numbers(self) -> int:
        """How many numbers are held meanwhile: seeds, adjoints, and a product inside of the rule."""
        return 3 * sum(found.places.size for found in self.coefficients)

    def write(self, tape: Tape, coefficients: np.ndarray) -> None:
        """Evaluate the derivatives for the values of one tape."""
        call = as_one_call([tape[i] for i in self.entries])
        adjoints = self.step.adjoints(call, self.seeds)
        for target, places, used, part in self.coefficients:
            found, arg = adjoints[-1 - target], call.args[call.argnums[-1 - target]]
            rows = as_pairs(found, adjoint_mode=True).rows if np.iscomplexobj(arg) else flat(found.rows)
            derivative = rows[:, self.reads[-1 - target]].reshape(-1)
            coefficients[places] = existing(derivative, used, part)


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """One argument of many calls, ``args[position]`` of each entry, or their results if position is None.

    ``ndim`` is 0 for numbers, 1 for vectors, 2 or more for what is flattened. Complex numbers are gathered
    as pairs. Real constants of calls in single precision are rounded to it, as NumPy does: partial
    derivatives may ask whether a result is equal to one of them.
    """

    position: int | None
    entries: tuple[int, ...]
    ndim: int
    is_complex: bool = False
    is_single: bool = False

    def values(self, entries: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return it for each call on one tape."""
        if self.position is None:
            return [entries[i][VALUE] for i in self.entries]
        constants = [entries[i][ARGS][self.position] for i in self.entries]
        if not self.is_single:
            return constants
        with np.errstate(over="ignore"):
            return [np.asarray(constant, np.float32) for constant in constants]


@dataclass(frozen=True, slots=True, eq=False)
class ValueTable:
    """Which numbers of a tape the coefficients are made of; they are gathered in this order."""

    operands: tuple[Operand, ...]

    def gather(self, tape: Tape) -> np.ndarray:
        """Return the numbers of one tape."""
        parts: list[np.ndarray] = [np.zeros(0)]
        for operand in self.operands:
            values, dtype = operand.values(tape.entries), np.complex128 if operand.is_complex else np.float64
            if operand.ndim == 0:
                parts.append(np.array(values, dtype).view(np.float64))
                continue
            vectors = values if operand.ndim == 1 else [np.asarray(value).reshape(-1) for value in values]
            parts += (
                [np.concatenate(vectors, dtype=dtype).view(np.float64)] if operand.is_complex else vectors
            )
        return np.concatenate(parts)


_CACHED: Final = 2**19
"""Numbers (4 MB) of the system that are worked on at a time."""
_FEWEST: Final = 16
"""Directions below which a smaller block would cost more than it saves."""


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
        Coefficients that are the same for all values; zeros elsewhere.
    recipes, blocks
        How the other coefficients come about.
    values
        The numbers that they are made of.
    seeds, results
        Unknown of each element of the values that are seeded, and of those that are read; -1 for constants.
    distinct_seeds
        Whether no unknown is seeded twice and none is a constant.
    constant_results
        Which elements of the values that are read are constants.
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
    constant_results: IntArray

    @property
    def bytes_per_direction(self) -> int:
        """Memory that all unknowns and what is read of them take for each direction that is carried."""
        seeds = 0 if self.distinct_seeds else len(self.seeds)
        return 8 * (len(self.indptr) + len(self.results) + seeds)

    @property
    def fixed_bytes(self) -> int:
        """Memory that the coefficients take besides."""
        return 8 * len(self.template)

    @property
    def least_bytes(self) -> int:
        """Memory that a run takes besides its result if it carries one direction at a time."""
        return self.fixed_bytes + max(self._formula_bytes, self.bytes_per_direction)

    @property
    def _formula_bytes(self) -> int:
        """Memory that finding the coefficients takes: what is gathered, and the largest formula or block."""
        reads = [index for recipe in self.recipes for index in recipe.reads]
        gathered = 1 + max((int(index.max(initial=-1)) for index in reads), default=-1)
        formula = max((recipe.numbers for recipe in self.recipes), default=0)
        return 8 * max(gathered + formula, *(block.numbers for block in self.blocks), 0)

    def working_bytes(self, directions: int) -> int:
        """Memory that a run takes: coefficients, then what they are made of, or a block and the results."""
        carried = self.bytes_per_direction * self._block(directions) + 8 * len(self.results) * directions
        return self.fixed_bytes + max(self._formula_bytes, carried)

    def tangent(self, tape: Tape, matrix: np.ndarray | None, most: int | None = None) -> np.ndarray:
        """Return ``F' X`` for X of shape ``(n, k)``, None for the identity, ``most`` directions at a time."""
        return self.carry(self.coefficients(tape), matrix, most)

    def adjoint(self, tape: Tape, matrix: np.ndarray | None, most: int | None = None) -> np.ndarray:
        """Return ``X F'`` for X of shape ``(k, m)``, None for the identity, ``most`` directions at a time."""
        return self.carry(self.coefficients(tape), None if matrix is None else matrix.T, most).T

    def paths(self, columns: np.ndarray | None = None) -> np.ndarray:
        """Tell where derivatives are not zero whatever the values: count paths from seeds to results.

        Parameters
        ----------
        columns
            Shape ``(seeded, k)``, not negative; None for the identity.

        Returns
        -------
        ndarray
            Shape ``(read, k)``; only whether a number is zero is of use, as it may be infinite.
        """
        return self.carry(np.ones(len(self.template), np.float32), columns)

    def carry(
        self, coefficients: np.ndarray, columns: np.ndarray | None, most: int | None = None
    ) -> np.ndarray:
        """Carry directions from seeds to results, in blocks that fit into a cache.

        Parameters
        ----------
        coefficients
            From `coefficients`.
        columns
            Shape ``(seeded, k)``; None for the identity.
        most
            Directions that are carried at a time.

        Returns
        -------
        ndarray
            Shape ``(read, k)``.
        """
        count = len(self.seeds) if columns is None else columns.shape[1]
        unknowns, block = len(self.indptr) - 1, min(self._block(count), most or count)
        if not unknowns:
            return np.zeros((self.results.size, count), coefficients.dtype)
        solve = substitute_transposed if self.adjoint_mode else substitute
        result = np.empty((self.results.size, count), coefficients.dtype)
        system = np.empty(unknowns * block, coefficients.dtype)
        for start in range(0, count, max(block, 1)):
            stop = min(start + block, count)
            Y = system[: unknowns * (stop - start)].reshape(unknowns, stop - start)
            Y[:] = 0.0
            self._seed(Y, columns, start, stop)
            solve(self.indptr, self.indices, coefficients, Y)
            result[:, start:stop] = Y[self.results]
        if self.constant_results.size:
            result[self.constant_results] = 0.0
        return result

    def carry_back(self, coefficients: np.ndarray, results: IntArray) -> np.ndarray:
        """Carry directions from results to seeds: the same system, transposed and from the end.

        Parameters
        ----------
        coefficients
            From `coefficients`.
        results
            Numbers of k results that are no constants.

        Returns
        -------
        ndarray
            The derivatives of these results, shape ``(seeded, k)``.
        """
        last, solve = len(self.indptr) - 2, substitute if self.adjoint_mode else substitute_transposed
        starts, targets = self.indptr[-1] - self.indptr[::-1], last - self.indices[::-1]
        Y = np.zeros((last + 1, results.size), coefficients.dtype)
        Y[last - self.results[results], np.arange(results.size)] = 1.0
        solve(starts, targets, coefficients[::-1].copy(), Y)
        derivatives = Y[np.minimum(last - self.seeds, last)]
        derivatives[self.seeds < 0] = 0.0  # constants
        return derivatives

    def _block(self, count: int) -> int:
        """Return how many of so many directions are carried at a time: blocks of about equal size."""
        blocks = max(1, min(-(-count * len(self.indptr) // _CACHED), count // _FEWEST))
        return -(-count // blocks)

    def _seed(self, Y: np.ndarray, columns: np.ndarray | None, start: int, stop: int) -> None:
        """Write a block of directions into the zeros of the system."""
        if not self.distinct_seeds:
            used = self.seeds >= 0
            given = np.eye(used.size, stop - start, -start) if columns is None else columns[:, start:stop]
            np.add.at(Y, self.seeds[used], given[used])
        elif columns is None:
            Y[self.seeds[start:stop], np.arange(stop - start)] = 1.0
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
        return coefficients
