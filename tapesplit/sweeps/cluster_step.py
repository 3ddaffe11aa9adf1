"""The array step of merged elementwise operations: directions are multiplied by their joint derivative."""

import functools
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from tapesplit.recording.tape import Tape
from tapesplit.recording.values import batch_shape
from tapesplit.rules import Bulk, loop_adjoint
from tapesplit.rules.axes import flat, fold, lifted, real_like
from tapesplit.structures.constants import SEQUENCES
from tapesplit.sweeps.contractions import broadcast, contracted, letters, scaled_factors
from tapesplit.sweeps.directions import Batch, Diagonal, LowRank, Rows, Seeds, accumulate, add_to
from tapesplit.sweeps.evaluation import evaluated, name_call
from tapesplit.sweeps.memory_walk import MemoryWalk
from tapesplit.sweeps.placing import of_sums
from tapesplit.sweeps.preaccumulation import Member, is_one, preaccumulate

__all__ = ["ClusterStep", "Reduction"]


_WEIGHTS: Final = -1
"""Number of the weights of a product among `ClusterStep.partials`."""


class Reduction(NamedTuple):
    """A weighted sum along axes in which merged operations end, see `Weighing`.

    ``operand`` is the entry that is summed, ``weights`` that of the weights, or None if they are constant.
    ``is_weighted`` tells whether they are an array, and not a number as for a sum or a mean.
    """

    rule: Bulk
    operand: int
    axes: tuple[int, ...]
    weights: int | None
    is_weighted: bool


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """Elementwise operations that end in one value, or in a reduction of it.

    ``members`` are the operations, the last one first; ``inputs`` are the values that they read from outside.
    ``factored`` are the inputs, matrices, whose adjoints become factors where each direction has one sum.
    """

    index: int
    members: tuple[Member, ...]
    inputs: tuple[int, ...]
    reduction: Reduction | None = None
    factored: frozenset[int] = frozenset()

    @property
    def operand(self) -> int:
        """The entry that is reduced, or the result."""
        return self.reduction.operand if self.reduction else self.index

    def reads(self, _tape: Tape) -> tuple[int, ...]:
        """Return the values that are read from outside."""
        return self.inputs

    def partials(self, tape: Tape) -> dict[int, Any]:
        """Return derivatives by each input, broadcasting to the shape of the last operation.

        Those by the weights of a product stand under `_WEIGHTS`: operations may read them as well.
        """
        behind = None if self.reduction is None else self._derivatives(tape, self.reduction)
        found = preaccumulate(self.members, functools.partial(evaluated, tape), behind)
        if self.reduction is None:
            return found
        # Only real values are reduced here, but users' formulas may be complex.
        return {number: np.real(partial) for number, partial in found.items()}

    def keeps_diagonals(self, tape: Tape, parent: int) -> bool:
        """Tell whether each element of an input goes into one of the result, in the same order."""
        if self.reduction is None:
            values = [tape.values[index] for index in (parent, self.index)]
            return batch_shape(values[0]) == batch_shape(values[1])
        _, given, kept = self.axes(tape, parent)
        return given == kept and parent != self.reduction.weights

    def tangent(self, tape: Tape, seeds: Seeds) -> Batch | None:
        """Multiply tangents by the partials, and sum them along the axes of a reduction."""
        out: Batch | None = None
        value = tape.values[self.index]
        for number, partial in self.partials(tape).items():
            parent = self.input_of(number)
            if parent in seeds:
                batch, operand = seeds[parent], tape.values[parent]
                if type(operand) in SEQUENCES:
                    batch = _of_array(batch, operand)
                if self.reduction:
                    space, given, kept = self.axes(tape, number)
                    scaled = contracted(batch, partial, space, (given, kept), np.shape(value))
                else:
                    scaled = _scaled_up(batch, partial, value)
                out = accumulate(out, scaled)
        return out

    def count_tangents(self, walk: MemoryWalk) -> None:
        """Count what `tangent` holds."""
        origin = walk.common_origin(self.inputs)
        if origin is not None and all(self.keeps_diagonals(walk.tape, index) for index in self.inputs):
            walk.keep_diagonal(self.index, origin)
            return
        size, held = walk.sizes[self.index], 0
        if self.reduction is None:
            diagonal = [index for index in self.inputs if index in walk.origins]
            spread = [walk.opened(i) for i in diagonal if not self.keeps_diagonals(walk.tape, i)]
            held = max(spread, default=0)
        # Further products are added to the first one by one, so that two are alive at most.
        walk.make(self.index, held + size * min(len(self.inputs), 2))

    def adjoint(self, tape: Tape, A: Batch, seeds: Seeds) -> None:
        """Multiply adjoints by the partials and sum them over broadcast axes."""
        for number, partial in self.partials(tape).items():
            operand = tape.values[self.input_of(number)]
            scaled: Batch | None = None
            if isinstance(A, LowRank) and not self.reduction:
                scaled = scaled_factors(A, partial, operand)
                A = A if scaled else A.dense()  # multiplied out once, also for all later inputs
            if isinstance(A, Diagonal) and number in self.factored:
                scaled = of_sums(
                    A, broadcast(partial, np.shape(operand)), along_rows=bool(self.sums_rows(tape, number))
                )
            if scaled is None:
                scaled = self.carried_back(tape, A, number, partial)
            if type(operand) in SEQUENCES:  # directions of lists are flat
                scaled = scaled.dense()
                scaled = Rows(scaled.start, flat(scaled.rows))
            add_to(seeds, self.input_of(number), scaled)

    def sums_rows(self, tape: Tape, parent: int) -> bool | None:
        """Tell whether each row of a matrix among the inputs is summed, or each column; None if neither."""
        if self.reduction is None or parent == self.reduction.weights:
            return None
        space, given, kept = self.axes(tape, parent)
        is_matrix = len(space) == len(given) == 2 and len(kept) == 1
        return kept == given[0] if is_matrix else None

    def count_adjoints(self, walk: MemoryWalk) -> None:
        """Count what `adjoint` holds, which adds the adjoints of each input as it goes."""
        origin, size = walk.origins.get(self.index), walk.sizes[self.index]
        # A diagonal behind a reduction only picks from the partial derivatives.
        opened = 0 if self.reduction else walk.opened(self.index)
        unscaled = self._unscaled()
        for parent in self.inputs:
            keeps = origin is not None and self.keeps_diagonals(walk.tape, parent)
            if origin is not None and keeps and walk.takes_diagonal(parent, origin):
                walk.keep_diagonal(parent, origin)
                continue
            own = walk.sizes[parent]
            if parent in unscaled and own == size and not opened and parent not in walk.alive:
                walk.keep(self.index, 0)  # a view, which keeps this memory
                walk.add(parent, 0)
                continue
            # A product, before it is summed over broadcast axes or in which factors are multiplied out;
            # contractions need none.
            between = 0 if own == size or self.reduction else max(size, own)
            walk.hold(opened + between + own)
            walk.add(parent, opened + between + own)
            if parent not in unscaled:
                walk.owned.add(parent)

    def _unscaled(self) -> set[int]:
        """Return the inputs whose adjoints may be those of the result, as in a sum: a view of them."""
        members = () if self.reduction else self.members
        return {term.target for member in members for term in member.terms if is_one(term.partial)}

    def carried_back(self, tape: Tape, A: Batch, number: int, partial: Any) -> Batch:
        """Multiply adjoints by the derivative by one input, by its number among the `partials`."""
        operand = tape.values[self.input_of(number)]
        if self.reduction:
            space, given, kept = self.axes(tape, number)
            return contracted(A, partial, space, (kept, given), np.shape(operand))
        return _scaled_down(A, partial, operand)

    def _derivatives(self, tape: Tape, reduction: Reduction) -> dict[int, Any]:
        """Return the derivatives of a reduction by what it sums, and by its weights."""
        entry = tape[self.index]
        try:
            found = reduction.rule.weigh(entry.value, *entry.args, **entry.kwargs)  # type: ignore[misc]
            if found is None:  # a norm of an order that autograd has no rule for: this raises
                loop_adjoint(np.ones((1, *np.shape(entry.value))), entry)
        except Exception as error:
            name_call(error, entry.primitive, self.index)
            raise
        weights = found.weights  # type: ignore[union-attr] # it covers this call
        # In double precision like the result; the number 1 is told by its type.
        derivatives = {reduction.operand: np.asarray(weights, np.float64) if np.ndim(weights) else weights}
        if reduction.weights is not None:
            derivatives[_WEIGHTS] = tape.values[reduction.operand]
        return derivatives

    def input_of(self, number: int) -> int:
        """Return the entry of an input by its number among the partials."""
        return self.reduction.weights if number == _WEIGHTS else number  # type: ignore[union-attr, return-value]

    def axes(self, tape: Tape, number: int) -> tuple[tuple[int, ...], str, str]:
        """Return the shape of what is summed, and letters for its axes that an input and the result have."""
        space = tape.shape(self.operand)
        kept = letters(space, space, self.reduction.axes if self.reduction else ())
        if number == _WEIGHTS:
            return space, "".join(i for i in letters(space, space) if i not in kept), kept
        return space, letters(tape.shape(number), space), kept


def _of_array(batch: Batch, value: Any) -> Rows:
    """Give directions of a list the shape of the array that NumPy makes of it."""
    batch = batch.dense()
    return Rows(batch.start, batch.rows.reshape(len(batch.rows), *np.shape(value)))


def _scaled_diagonal(batch: Diagonal, partial: Any, value: Any) -> Diagonal:
    """Multiply a diagonal by a partial derivative; the result belongs to a value of the same shape."""
    # NumPy makes numbers of arrays without axes.
    values = np.asarray(batch.values * partial).reshape(batch.values.shape)
    return Diagonal(batch.origin, real_like(values, value), batch.start, batch.stop)


def _scaled_up(batch: Batch, partial: Any, value: Any) -> Batch:
    """Multiply tangents by a partial derivative and broadcast them to the shape of the result."""
    shape = np.shape(value)
    if isinstance(batch, Diagonal) and batch.values.shape == shape:
        return _scaled_diagonal(batch, partial, value)
    batch = batch.dense()
    rows = lifted(batch.rows, len(shape))
    one = is_one(partial)
    rows = real_like(rows if one else rows * partial, value)
    if rows.shape[1:] != shape:
        return Rows(batch.start, np.broadcast_to(rows, (len(rows), *shape)))
    return Rows(batch.start, rows, owned=not one)


def _scaled_down(batch: Batch, partial: Any, value: Any) -> Batch:
    """Multiply adjoints by a partial derivative and sum them to the shape of the argument."""
    shape = np.shape(value)
    if isinstance(batch, Diagonal) and batch.values.shape == shape:
        return _scaled_diagonal(batch, partial, value)
    batch = batch.dense()
    one = is_one(partial)
    rows = batch.rows if one else batch.rows * partial
    folded = real_like(fold(rows, shape), value)
    return Rows(batch.start, folded, owned=not one and folded is rows)
