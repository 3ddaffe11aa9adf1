"""Coefficients of a scalar sweep: how partial derivatives of like calls come from the values of a tape."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from tapesplit.arrays import BoolArray, IntArray, memory_of
from tapesplit.recording.tape import Tape
from tapesplit.rules import as_one_call
from tapesplit.rules.axes import flat
from tapesplit.sweeps.array_steps import BulkStep
from tapesplit.sweeps.complex_parts import Part, part_of
from tapesplit.sweeps.directions import Batch, as_pairs
from tapesplit.sweeps.evaluation import evaluated, name_call
from tapesplit.sweeps.preaccumulation import Member, Term, preaccumulate

__all__ = ["Block", "Coefficients", "Operand", "Recipe", "ValueTable", "existing", "gathered_dimensions"]


class Coefficients(NamedTuple):
    """Places of the derivatives by one input in the system; ``used`` marks those that have one, None: all."""

    target: int
    places: IntArray
    used: BoolArray | None
    part: Part


def existing(derivatives: Any, used: BoolArray | None, part: Part) -> Any:
    """Return one (real or imaginary) part of derivatives, without those by elements that are constants."""
    derivatives = part_of(derivatives, part)
    return derivatives if used is None else np.broadcast_to(derivatives, used.shape)[used]


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """How to evaluate the coefficients of many like calls of merged operations.

    Parameters
    ----------
    members
        The merged operations, the last one first; operands of their terms are numbers of ``reads``.
    reads
        Places among the gathered values, of shape (calls, elements of a result) or (calls, 1); those of
        both parts of complex numbers along a third axis.
    calls
        Tape entries of the members, of shape (calls, members).
    coefficients
        Where the products of the partial derivatives are stored.
    """

    members: tuple[Member, ...]
    reads: tuple[IntArray, ...]
    calls: IntArray
    coefficients: tuple[Coefficients, ...] = ()

    @property
    def numbers(self) -> int:
        """How many numbers `write` holds: what is read, partial derivatives, and products of these."""
        read = sum(index.size for index in self.reads)
        return read + min(len(self.members), 2) * sum(found.places.size for found in self.coefficients)

    def write(self, tape: Tape, values: np.ndarray, coefficients: np.ndarray) -> None:
        """Evaluate the coefficients for one tape, whose values are gathered."""
        read = [_read(values, index) for index in self.reads]

        def evaluate(member: int, term: Term) -> Any:
            if not term.operands:  # a formula of the user's, which may inspect its arguments
                return _evaluated_alone(tape, self.calls[:, member], term)
            try:
                return term.partial(*[None if i is None else read[i] for i in term.operands])  # type: ignore[operator]
            except Exception as error:
                calls = self.calls[:, member]
                name_call(error, tape.primitives[calls[0]], calls[0], one_of_many=len(calls) > 1)
                raise

        derivatives = preaccumulate(self.members, evaluate)
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
    found = values.take(places)
    return found.view(np.complex128)[..., 0] if places.ndim == 3 else found


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """How to evaluate all derivatives of like calls as coefficients, by the rule that array sweeps use.

    Parameters
    ----------
    step
        The array step that carries adjoints through such a call.
    entries
        The calls; several are carried out as one, on stacks of their arguments.
    seeds
        Adjoints of the result, one direction for each real element of a slice.
    reads
        For each active argument the positions of its real elements, of shape (slices, elements of a slice).
    coefficients
        Places of the derivatives by each active argument, in the order of directions, slices and elements;
        ``-1 - number`` is the target for argument ``number``.
    """

    step: BulkStep
    entries: tuple[int, ...]
    seeds: Batch
    reads: tuple[IntArray, ...]
    coefficients: tuple[Coefficients, ...] = ()

    @property
    def numbers(self) -> int:
        """How many numbers `write` holds: seeds, adjoints, and a product inside of the rule."""
        return 3 * sum(found.places.size for found in self.coefficients)

    def write(self, tape: Tape, coefficients: np.ndarray) -> None:
        """Evaluate the derivatives for the values of one tape."""
        call = as_one_call([tape[i] for i in self.entries])
        adjoints = self.step.adjoints(call, self.seeds)
        for target, places, used, part in self.coefficients:
            found, arg = adjoints[-1 - target], call.args[call.argnums[-1 - target]]
            rows = (
                as_pairs(found, adjoint_mode=True).rows if np.iscomplexobj(arg) else flat(found.dense().rows)
            )
            derivative = rows[:, self.reads[-1 - target]].reshape(-1)
            coefficients[places] = existing(derivative, used, part)


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """One argument of many calls, ``args[position]`` of each entry, or their results if position is None.

    ``ndim`` is 0 for numbers, 1 for vectors, 2 or more for what is flattened. Complex numbers are gathered
    as pairs. Real constants of calls in single precision are rounded to it, as NumPy does: partial
    derivatives may ask whether a result is equal to one of them. Conditions become truth values first, as
    tiny numbers of higher precision would be zero as doubles. Of a matrix only the elements ``kept``, given
    by rows and columns, are gathered if there are some.
    """

    position: int | None
    entries: tuple[int, ...]
    ndim: int
    is_complex: bool = False
    is_single: bool = False
    is_condition: bool = False
    kept: tuple[IntArray, ...] | None = None

    def values(self, tape: Tape) -> list[Any]:
        """Return the operand of each call on one tape."""
        if self.position is None:
            values = tape.values
            return [values[i] for i in self.entries]
        args, position = tape.args, self.position
        constants = [args[i][position] for i in self.entries]
        if self.kept is not None:
            keys = [memory_of(matrix) for matrix in constants]  # loops read one again and again
            different = dict(zip(keys, constants, strict=True))
            found = {key: matrix[self.kept] for key, matrix in different.items()}
            constants = [found[key] for key in keys]
        if self.is_condition and self.ndim == 0:
            return np.array(constants, np.bool_).tolist()
        if self.is_condition:
            return [np.asarray(constant, np.bool_) for constant in constants]
        if not self.is_single:
            return constants
        with np.errstate(over="ignore"):
            return [np.asarray(constant, np.float32) for constant in constants]


def gathered_dimensions(shape: Sequence[int] | None) -> int:
    """Return the number of axes of a value, but at most 2: larger arrays are gathered as matrices are."""
    return min(len(shape or ()), 2)


_NOTHING: Final = np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class ValueTable:
    """Which numbers of a tape the coefficients are computed from; they are gathered in this order."""

    operands: tuple[Operand, ...]

    def gather(self, tape: Tape) -> np.ndarray:
        """Return the numbers of one tape."""
        parts: list[np.ndarray] = [_NOTHING]
        for operand in self.operands:
            values, dtype = operand.values(tape), np.complex128 if operand.is_complex else np.float64
            if operand.ndim == 0:
                parts.append(np.fromiter(values, dtype, len(values)).view(np.float64))
                continue
            vectors = values if operand.ndim == 1 else [np.asarray(value).reshape(-1) for value in values]
            parts += (
                [np.concatenate(vectors, dtype=dtype).view(np.float64)] if operand.is_complex else vectors
            )
        return np.concatenate(parts, dtype=np.float64)  # pairs are viewed as complex numbers
