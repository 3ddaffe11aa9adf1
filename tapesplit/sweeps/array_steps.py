"""Steps of array sweeps that carry stacked directions through one operation.

`map_step` has those of movements, `cluster_step` those of merged operations.

Beside each method that carries directions stands one that counts the numbers it holds for each direction,
see `memory_walk`.
"""

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from tapesplit.arrays import with_rows_in_order
from tapesplit.errors import RuleError
from tapesplit.names import display_name
from tapesplit.recording.tape import Tape, TapeEntry
from tapesplit.recording.values import batch_shape, element_count
from tapesplit.rules import (
    PRODUCTS,
    Bulk,
    IndexMap,
    Rule,
    has_local_structure,
    is_reduction,
    local_matrix,
    loop_adjoint,
    loop_tangent,
    read_once,
)
from tapesplit.rules.axes import complex_like, flat, real_like
from tapesplit.rules.low_rank import Factors, factored_rule, is_thin
from tapesplit.structures.constants import SEQUENCES
from tapesplit.sweeps.cluster_step import ClusterStep
from tapesplit.sweeps.directions import Batch, Diagonal, LowRank, Rows, Seeds, accumulate, add_to
from tapesplit.sweeps.evaluation import name_call
from tapesplit.sweeps.map_step import MapStep
from tapesplit.sweeps.memory_walk import MemoryWalk
from tapesplit.sweeps.placing import of_elements

__all__ = ["BulkStep", "Step", "bulk_step", "derivatives_of"]


@dataclass(frozen=True, slots=True)
class BulkStep:
    """Any other primitive: its vector rule where there is one, else the loop over autograd's own rule.

    ``factored`` are the arguments whose adjoints are kept as factors, see `tapesplit.rules.low_rank`.
    """

    index: int
    rule: Bulk
    factored: frozenset[int] = frozenset()

    def reads(self, tape: Tape) -> tuple[int, ...]:
        """Return the values that are read."""
        return tape.parents[self.index]

    def tangent(self, tape: Tape, seeds: Seeds) -> Batch | None:
        """Carry tangents of each active argument."""
        entry, factor = read_once(tape[self.index], self.rule)
        out: Batch | None = None
        for argnum, parent in zip(entry.argnums, entry.parents, strict=True):
            if parent in seeds:
                try:
                    out = accumulate(out, self._tangent(entry, argnum, seeds[parent]))
                except Exception as error:
                    name_call(error, entry.primitive, self.index)
                    raise
        return None if out is None else _times(factor, out)

    def _tangent(self, entry: TapeEntry, argnum: int, T: Batch) -> Rows:
        """Carry tangents of one argument."""
        if isinstance(T, Diagonal) and (matrix := local_matrix(entry, argnum)) is not None:
            return _scaled_rows(T, matrix.T)
        T = T.dense()
        rows = _called(self.rule, "tangent", T.rows, entry, argnum)
        if rows is NotImplemented:
            rows = loop_tangent(T.rows, entry, argnum)
        return Rows(T.start, real_like(rows, entry.value))

    def count_tangents(self, walk: MemoryWalk) -> None:
        """Count what `tangent` holds."""
        size, parents = walk.sizes[self.index], self.reads(walk.tape)
        opened = [0]
        if any(index in walk.origins for index in parents):
            entry = walk.tape[self.index]
            for index, argnum in zip(parents, entry.argnums, strict=True):
                if local_matrix(entry, argnum) is None:
                    opened.append(walk.opened(index))
        largest = max([size, *(walk.sizes[index] for index in parents)])
        # Results of rules may be views: the first two are added up in a third array.
        results = size * (1 if len(parents) == 1 else 3)
        walk.make(self.index, results + max(opened) + self._inner(walk, largest, adjoint_mode=False))

    def adjoint(self, tape: Tape, A: Batch, seeds: Seeds) -> None:
        """Carry adjoints to each active argument."""
        entry, factor = read_once(tape[self.index], self.rule)
        for parent, batch in zip(entry.parents, self.adjoints(entry, _times(factor, A)), strict=True):
            add_to(seeds, parent, batch)

    def count_adjoints(self, walk: MemoryWalk) -> None:
        """Count what `adjoint` holds: the adjoints of all arguments, before it adds them to what there is."""
        parents, size, opened = self.reads(walk.tape), walk.sizes[self.index], walk.opened(self.index)
        found = sum(walk.handed(parent) for parent in parents)
        carried = max(size, found)
        if opened:
            entry = walk.tape[self.index]
            if all(local_matrix(entry, argnum) is not None for argnum in entry.argnums):
                opened = 0  # rows of the matrices times numbers
            elif self.begins_factors(entry):
                opened = carried = sum(entry.value.shape)
        walk.hold(found + opened + self._inner(walk, carried, adjoint_mode=True))
        for parent in parents:
            walk.add(parent, found)

    def _inner(self, walk: MemoryWalk, numbers: int, *, adjoint_mode: bool) -> int:
        """Count the numbers that a rule holds besides what it reads and returns.

        Some rules have a function ``held`` that says so. Of the others, sums and products hold nothing; other
        functions are taken for several products with one result in between, and those that return a tuple
        (decompositions) also hold the results for its members apart. Users' functions get a copy of what
        they read.
        """
        if self.rule.held is not None:
            entry = walk.tape[self.index]
            held = [self.rule.held(entry.args, i, adjoint_mode=adjoint_mode) for i in entry.argnums]
            walk.share(max(shared for _, shared in held))
            return max(each for each, _ in held)
        copy = numbers if not self.rule.built_in and (self.rule.tangents or self.rule.adjoints) else 0
        primitive, value = walk.tape.primitives[self.index], walk.tape.values[self.index]
        holds_nothing = has_local_structure(primitive) and self.rule.pace == 1  # unlike convolutions
        if primitive in PRODUCTS or holds_nothing or is_reduction(self.rule):
            return copy
        return copy + numbers + (walk.sizes[self.index] if isinstance(value, tuple) else 0)

    def adjoints(self, entry: TapeEntry, A: Batch) -> list[Batch]:
        """Return the adjoints of each active argument of a call by those of its result."""
        try:
            return self._adjoints(entry, A)
        except Exception as error:
            name_call(error, entry.primitive, self.index)
            raise

    def _adjoints(self, entry: TapeEntry, A: Batch) -> list[Batch]:
        """Use vector rules where there are some, and call autograd's rule once for all other arguments."""
        if isinstance(A, Diagonal) and self.begins_factors(entry):
            every = np.arange(A.values.size)
            A = of_elements(A, IndexMap.of_sources(every, every.size), entry.value) or A
        found = [self._adjoint(entry, argnum, A) for argnum in entry.argnums]
        looped = [position for position, batch in enumerate(found) if batch is None]
        if looped:
            A = A.dense()
            partial = entry._replace(argnums=tuple(entry.argnums[i] for i in looped))
            for position, rows in zip(looped, loop_adjoint(A.rows, partial), strict=True):
                found[position] = Rows(A.start, rows)
        return found  # type: ignore[return-value] # autograd has filled the gaps

    def begins_factors(self, entry: TapeEntry) -> bool:
        """Tell whether adjoints of single elements of a matrix are worth being passed on as factors."""
        known = self.rule.built_in and is_thin(1, batch_shape(entry.value))
        return known and all(factored_rule(entry.primitive, argnum) for argnum in entry.argnums)

    def _adjoint(self, entry: TapeEntry, argnum: int, A: Batch) -> Batch | None:
        """Carry adjoints to one argument; None without a vector rule."""
        if isinstance(A, Diagonal) and argnum in self.factored:
            begun = _of_elements(entry, argnum, A)
            if begun is not None:
                return begun
        if isinstance(A, Diagonal) and (matrix := local_matrix(entry, argnum)) is not None:
            scaled = _scaled_rows(A, matrix)
            return scaled._replace(rows=real_like(scaled.rows, entry.args[argnum]))
        if isinstance(A, LowRank) or argnum in self.factored:
            factored = self._factored(entry, argnum, A)
            if factored is not None:
                return factored
        A = A.dense()
        rows = _called(self.rule, "adjoint", A.rows, entry, argnum)
        return None if rows is NotImplemented else Rows(A.start, real_like(rows, entry.args[argnum]))

    def _factored(self, entry: TapeEntry, argnum: int, A: Batch) -> Batch | None:
        """Carry adjoints that are factored, or become so, to one argument; None without a rule for it."""
        rule = factored_rule(entry.primitive, argnum)
        if rule and not isinstance(A, LowRank) and not rule.rank(0, np.shape(entry.value)):
            return None  # it takes nothing but factors, which have been multiplied out before
        A = A if isinstance(A, LowRank) else A.dense()
        given = A.factors if isinstance(A, LowRank) else A.rows
        found = rule.carry(given, entry.value, *entry.args, **entry.kwargs) if rule else NotImplemented
        if found is NotImplemented:
            return None
        if not isinstance(found, Factors):
            return Rows(A.start, real_like(found, entry.args[argnum]))
        if argnum in self.factored:
            return LowRank(A.start, found)
        return Rows(A.start, real_like(found.dense(), entry.args[argnum]), owned=True)


Step = MapStep | ClusterStep | BulkStep


def bulk_step(index: int, rule: Rule | None) -> BulkStep:
    """Return the step of an entry that is neither elementwise nor a movement; the rule may be missing."""
    return BulkStep(index, rule if isinstance(rule, Bulk) else Bulk())


def derivatives_of(entry: TapeEntry, argnum: int, places: slice) -> Factors | None:
    """Return the derivatives of elements of a vector by a matrix as factors; None if no rule finds them."""
    rule = factored_rule(entry.primitive, argnum)
    if rule is None or rule.of_elements is None:
        return None
    found = rule.of_elements(places, entry.value, *entry.args, **entry.kwargs)
    return None if found is NotImplemented else found


def _of_elements(entry: TapeEntry, argnum: int, A: Diagonal) -> LowRank | None:
    """Carry adjoints of single elements of a vector to a matrix; None if that makes no factors.

    Nor if numbers are infinite or NaN, or if a matrix would have to take the real part of its adjoints.
    """
    found = derivatives_of(entry, argnum, A.wanted)
    if found is None:
        return None
    factors = found._replace(left=found.left * A.values.reshape(-1, 1, 1)[A.wanted])
    is_real = not any(map(np.iscomplexobj, factors))
    fits = factors.is_finite and (is_real or np.iscomplexobj(entry.args[argnum]))
    return LowRank(A.start, factors) if fits else None


def _times(factor: int, batch: Batch) -> Batch:
    """Multiply directions by the factor of a call, which mostly is 1."""
    if factor == 1:
        return batch
    batch = batch.dense()
    return Rows(batch.start, factor * batch.rows, owned=True)


def _called(rule: Bulk, mode: str, rows: np.ndarray, entry: TapeEntry, argnum: int) -> Any:
    """Call a vector rule; NotImplemented if there is none, or none for this form of the arguments."""
    function = (rule.tangents if mode == "tangent" else rule.adjoints).get(argnum)
    if function is None:
        return NotImplemented
    arg, value = entry.args[argnum], entry.value
    source, target = (arg, value) if mode == "tangent" else (value, arg)
    if not rule.built_in:
        # Users' functions may work in place, while others read the same directions.
        rows = rows.astype(complex_like(rows, source), order="C")
    opened = _shape_of_array(arg) if rule.built_in and type(arg) in SEQUENCES else None
    if mode == "tangent" and opened is not None:
        rows = rows.reshape(len(rows), *opened)
    found = function(rows, value, *entry.args, **entry.kwargs)
    if found is NotImplemented:
        return found
    if mode == "adjoint" and getattr(found, "shape", ())[1:] == opened:
        found = flat(found)
    expected = rows.shape[:1] + (target.shape if hasattr(target, "shape") else batch_shape(target))
    if getattr(found, "shape", None) != expected:
        returned = f"its shape is {found.shape}" if isinstance(found, np.ndarray) else f"it is {found!r:.60}"
        raise RuleError(
            f"the {mode} rule of {display_name(entry.primitive)} by argument {argnum} is wrong: "
            f"for {len(rows)} directions {returned} instead of {expected}; correct the function that "
            "tapesplit.defvector was given"
        )
    return found


def _shape_of_array(value: Any) -> tuple[int, ...] | None:
    """Return the shape of the array of numbers that NumPy makes of a list, None if it makes none."""
    try:
        shape = np.shape(value)
    except ValueError:
        return None
    return shape if prod(shape) == element_count(value) else None  # a list of dicts has a shape, too


def _scaled_rows(batch: Diagonal, matrix: np.ndarray) -> Rows:
    """Multiply a diagonal by a matrix: each direction is a row of the matrix times a number."""
    values, rows = batch.values.reshape(-1, 1)[batch.wanted], matrix[batch.wanted]
    is_small = rows.size < _WORTH_TRANSPOSING
    is_scaled = is_small or (values != 1.0).any()
    if is_small or (is_scaled and rows.flags.c_contiguous):
        return Rows(batch.start, np.multiply(values, rows, order="C"), owned=True)
    # NumPy is fast at transposing only where it does nothing else.
    rows = with_rows_in_order(rows, np.result_type(values, rows))
    if is_scaled:
        rows *= values
    return Rows(batch.start, rows, owned=True)


_WORTH_TRANSPOSING: Final = 2**15
"""Numbers in a matrix from which on transposing it takes longer than a few more calls of NumPy."""
