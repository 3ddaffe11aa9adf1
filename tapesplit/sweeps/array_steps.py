"""Steps of array sweeps: stacked directions go through one operation, or merged elementwise ones.

`array_memory` counts what they hold: in ``_held_by_tangents`` for the methods ``tangent``, in ``_hand_back``
and ``_hand_out`` for ``adjoint``. What changes here changes there.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from tapesplit.errors import RuleError
from tapesplit.names import display_name
from tapesplit.notes import note
from tapesplit.recording.tape import VALUE, Tape, TapeEntry
from tapesplit.recording.values import batch_shape, element_count
from tapesplit.rules import CHOICE, Bulk, IndexMap, Rule, find_rule, local_matrix, loop_adjoint, loop_tangent
from tapesplit.rules.axes import complex_like, flat, fold, lifted, real_like
from tapesplit.sweeps.contractions import contracted, letters
from tapesplit.sweeps.directions import Batch, Diagonal, Rows, accumulate
from tapesplit.sweeps.preaccumulation import Member, Term, is_one, preaccumulate

__all__ = ["BulkStep", "ClusterStep", "MapStep", "Reduction", "Seeds", "Step", "bulk_step", "evaluated"]


Seeds = dict[int, Batch]


@dataclass(frozen=True, slots=True)
class MapStep:
    """Elements move: one index map for each active argument."""

    index: int
    maps: tuple[tuple[int, IndexMap], ...]

    def tangent(self, tape: Tape, seeds: Seeds) -> Batch | None:
        """Gather tangents."""
        value = tape.entries[self.index][VALUE]
        moved = [(seeds[parent], moves) for parent, moves in self.maps if parent in seeds]
        if len(moved) > 1:
            return _gathered_together(moved, value)
        return _gathered(*moved[0], value) if moved else None

    def adjoint(self, tape: Tape, A: Batch, seeds: Seeds) -> None:
        """Scatter adjoints."""
        if isinstance(A, Diagonal) and any(moves.block is None for _, moves in self.maps):
            A = A.dense()
        for parent, moves in self.maps:
            known, value = seeds.get(parent), tape.entries[parent][VALUE]
            if known is None or not _added(A, moves, known, value):
                seeds[parent] = accumulate(known, _scattered(A, moves, value))


class Reduction(NamedTuple):
    """What becomes of merged operations: they are weighed and summed along axes, see `Bulk`."""

    weigh: Callable[..., tuple[Any, Any] | None]
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """Elementwise operations that end in one value, or in a reduction of it.

    ``members`` are the operations, the last one first; ``inputs`` are the values that they read from outside.
    ``spent`` are those of the inputs, and maybe the result, whose directions nobody needs afterwards.
    """

    index: int
    members: tuple[Member, ...]
    inputs: tuple[int, ...]
    reduction: Reduction | None = None
    spent: frozenset[int] = frozenset()

    def partials(self, tape: Tape) -> dict[int, Any]:
        """Return derivatives by each input, broadcasting to the shape of the result."""
        weights = 1 if self.reduction is None else self._weights(tape, self.reduction)
        return preaccumulate(self.members, functools.partial(evaluated, tape), weights)

    def keeps_diagonals(self, tape: Tape, parent: int) -> bool:
        """Tell whether each element of an input goes into one of the result, in the same order."""
        if self.reduction is None:
            values = [tape.entries[index][VALUE] for index in (parent, self.index)]
            return batch_shape(values[0]) == batch_shape(values[1])
        _, given, kept = self._axes(tape, parent)
        return given == kept

    def tangent(self, tape: Tape, seeds: Seeds) -> Batch | None:
        """Multiply tangents by the partials, and sum them along the axes of a reduction."""
        out: Batch | None = None
        value = tape.entries[self.index][VALUE]
        for parent, partial in self.partials(tape).items():
            if parent in seeds:
                batch, operand = seeds[parent], tape.entries[parent][VALUE]
                if type(operand) in _SEQUENCES:
                    batch = _of_array(batch, operand)
                if self.reduction:
                    space, given, kept = self._axes(tape, parent)
                    scaled = contracted(batch, partial, space, (given, kept), np.shape(value))
                else:
                    scaled = _scaled_up(batch, partial, value, overwrite=parent in self.spent)
                out = accumulate(out, scaled)
        return out

    def adjoint(self, tape: Tape, A: Batch, seeds: Seeds) -> None:
        """Multiply adjoints by the partials and sum them over broadcast axes."""
        overwrite = self.index in self.spent
        for parent, partial in self.partials(tape).items():
            operand = tape.entries[parent][VALUE]
            if self.reduction:
                space, given, kept = self._axes(tape, parent)
                scaled = contracted(A, partial, space, (kept, given), np.shape(operand))
            else:
                scaled = _scaled_down(A, partial, operand, overwrite=overwrite)
            if type(operand) in _SEQUENCES:  # whose directions have one row of all elements
                scaled = Rows(scaled.start, flat(scaled.dense().rows))
            seeds[parent] = accumulate(seeds.get(parent), scaled)

    def _weights(self, tape: Tape, reduction: Reduction) -> Any:
        """Return the weights of a reduction."""
        entry = tape[self.index]
        try:
            weights, _ = reduction.weigh(entry.value, *entry.args, **entry.kwargs)  # type: ignore[misc]
        except Exception as error:
            _name_call(error, entry.primitive, self.index)
            raise
        return weights

    def _axes(self, tape: Tape, parent: int) -> tuple[tuple[int, ...], str, str]:
        """Return the shape of what is reduced, and the axes of an input and of the result in it."""
        space, operand = (np.shape(tape.entries[i][VALUE]) for i in (self.members[0].number, parent))
        return space, letters(operand, space), letters(space, space, self.reduction.axes)  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class BulkStep:
    """Any other primitive: its vector rule where there is one, else the loop over autograd's own rule."""

    index: int
    rule: Bulk

    def tangent(self, tape: Tape, seeds: Seeds) -> Batch | None:
        """Carry tangents of each active argument."""
        entry = tape[self.index]
        out: Batch | None = None
        for argnum, parent in zip(entry.argnums, entry.parents, strict=True):
            if parent in seeds:
                try:
                    out = accumulate(out, self._tangent(entry, argnum, seeds[parent]))
                except Exception as error:
                    _name_call(error, entry.primitive, self.index)
                    raise
        return out

    def _tangent(self, entry: TapeEntry, argnum: int, T: Batch) -> Rows:
        """Carry tangents of one argument."""
        matrix = local_matrix(entry, argnum) if isinstance(T, Diagonal) else None
        if matrix is not None:
            return _scaled_rows(T, matrix.T)  # type: ignore[arg-type]
        T = T.dense()
        rows = _called(self.rule, "tangent", T.rows, entry, argnum)
        if rows is NotImplemented:
            rows = loop_tangent(T.rows, entry, argnum)
        return Rows(T.start, real_like(rows, entry.value))

    def adjoint(self, tape: Tape, A: Batch, seeds: Seeds) -> None:
        """Carry adjoints to each active argument."""
        entry = tape[self.index]
        for parent, batch in zip(entry.parents, self.adjoints(entry, A), strict=True):
            seeds[parent] = accumulate(seeds.get(parent), batch)

    def adjoints(self, entry: TapeEntry, A: Batch) -> list[Rows]:
        """Return the adjoints of each active argument of a call by those of its result."""
        try:
            return self._adjoints(entry, A)
        except Exception as error:
            _name_call(error, entry.primitive, self.index)
            raise

    def _adjoints(self, entry: TapeEntry, A: Batch) -> list[Rows]:
        """Take vector rules where there are some, autograd's rule for all other arguments at once."""
        found = [self._adjoint(entry, argnum, A) for argnum in entry.argnums]
        looped = [position for position, batch in enumerate(found) if batch is None]
        if looped:
            A = A.dense()
            partial = entry._replace(argnums=tuple(entry.argnums[i] for i in looped))
            for position, rows in zip(looped, loop_adjoint(A.rows, partial), strict=True):
                found[position] = Rows(A.start, rows)
        return found  # type: ignore[return-value] # autograd has filled the gaps

    def _adjoint(self, entry: TapeEntry, argnum: int, A: Batch) -> Rows | None:
        """Carry adjoints to one argument; None without a vector rule."""
        matrix = local_matrix(entry, argnum) if isinstance(A, Diagonal) else None
        if matrix is not None:
            scaled = _scaled_rows(A, matrix)  # type: ignore[arg-type]
            return scaled._replace(rows=real_like(scaled.rows, entry.args[argnum]))
        A = A.dense()
        rows = _called(self.rule, "adjoint", A.rows, entry, argnum)
        return None if rows is NotImplemented else Rows(A.start, real_like(rows, entry.args[argnum]))


Step = MapStep | ClusterStep | BulkStep


def evaluated(tape: Tape, index: int, term: Term) -> Any:
    """Return the partial derivative of an elementwise operation by its formula, on its own arguments."""
    primitive, _, _, _, kwargs, value = tape.entries[index]
    given = tape.arguments(index)
    args = [_as_precise(arg, value, primitive) for arg in given]
    if primitive is CHOICE:
        args[0] = given[0]
    try:
        partial = term.partial(value, *args, **kwargs)  # type: ignore[operator]
    except Exception as error:
        _name_call(error, primitive, index)
        raise
    shape = getattr(partial, "shape", ())
    if shape and not _broadcasts(shape, np.shape(value)):
        raise RuleError(
            f"a partial derivative of {display_name(primitive)}, entry {index} of the tape, has shape "
            f"{shape} for a result of {np.shape(value)}; correct the formula that defvector was given"
        )
    return partial


def _broadcasts(shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Tell whether arrays of one shape can be broadcast to another, but for leading axes of length 1."""
    return shape == expected or all(
        a in {1, b} for a, b in zip_longest(shape[::-1], expected[::-1], fillvalue=1)
    )


def _name_call(error: Exception, primitive: Any, index: int) -> None:
    """Add to an error of a derivative rule which call of which primitive it was for."""
    note(error, f"in a derivative rule of {display_name(primitive)}, entry {index} of the tape")


def bulk_step(index: int, rule: Rule | None) -> BulkStep:
    """Return the step of an entry that is neither elementwise nor a movement; the rule may be missing."""
    return BulkStep(index, rule if isinstance(rule, Bulk) else Bulk())


def _called(rule: Bulk, mode: str, rows: np.ndarray, entry: TapeEntry, argnum: int) -> Any:
    """Call a vector rule; NotImplemented if there is none, or none for this form of the arguments."""
    function = (rule.tangents if mode == "tangent" else rule.adjoints).get(argnum)
    if function is None:
        return NotImplemented
    arg = entry.args[argnum]
    if not rule.built_in:
        # Users' functions may work in place, while others read the same directions.
        rows = rows.astype(complex_like(rows, arg if mode == "tangent" else entry.value), order="C")
    opened = _shape_of_array(arg) if rule.built_in and type(arg) in _SEQUENCES else None
    if mode == "tangent" and opened is not None:
        rows = rows.reshape(len(rows), *opened)
    found = function(rows, entry.value, *entry.args, **entry.kwargs)
    if found is NotImplemented:
        return found
    if mode == "adjoint" and getattr(found, "shape", ())[1:] == opened:
        found = flat(found)
    target = entry.value if mode == "tangent" else entry.args[argnum]
    expected = rows.shape[:1] + (target.shape if hasattr(target, "shape") else batch_shape(target))
    if getattr(found, "shape", None) != expected:
        returned = f"its shape is {found.shape}" if isinstance(found, np.ndarray) else f"it is {found!r:.60}"
        raise RuleError(
            f"the {mode} rule of {display_name(entry.primitive)} by argument {argnum} is wrong: "
            f"for {len(rows)} directions {returned} instead of {expected}; correct the function that "
            "tapesplit.defvector was given"
        )
    return found


def _of_array(batch: Batch, value: Any) -> Rows:
    """Give directions of a list the shape of the array that NumPy makes of it."""
    rows = batch.dense().rows
    return Rows(batch.start, rows.reshape(len(rows), *np.shape(value)))


def _shape_of_array(value: Any) -> tuple[int, ...] | None:
    """Return the shape of the array of numbers that NumPy makes of a list, None if it makes none."""
    try:
        shape = np.shape(value)
    except ValueError:
        return None
    return shape if prod(shape) == element_count(value) else None  # a list of dicts has a shape, too


def _scaled_rows(batch: Diagonal, matrix: np.ndarray) -> Rows:
    """Multiply a diagonal by a matrix: no product, just its rows times numbers, direction by direction."""
    values, rows = batch.values.reshape(-1, 1)[batch.wanted], matrix[batch.wanted]
    if rows.size < _LARGE:
        return Rows(batch.start, np.multiply(values, rows, order="C"), owned=True)
    # NumPy is fast at transposing only where it does nothing else.
    rows = rows.astype(np.result_type(values, rows), order="C")
    if (values != 1.0).any():
        rows *= values
    return Rows(batch.start, rows, owned=True)


_LARGE: Final = 2**15
"""Numbers of a matrix that take longer to be transposed than a few more calls of NumPy."""


def _as_precise(arg: Any, value: Any, primitive: Any) -> Any:
    """Return an operand in the type of the result: formulas of less precise ones alone lose digits.

    Derivatives of integers and truth values, whose sums and products would wrap around, are in double
    precision.
    """
    dtype, wanted = getattr(arg, "dtype", None), getattr(value, "dtype", None)
    if dtype is wanted is _DOUBLE:
        return arg
    if dtype is None and type(arg) not in _PLAIN and find_rule(primitive).built_in:  # type: ignore[union-attr]
        arg = np.asarray(arg)  # NumPy's functions take lists as operands, and what else can be an array
        dtype = arg.dtype
    elif wanted is _LONG_DOUBLE and type(arg) in {int, float}:
        return np.longdouble(arg)
    if dtype is None or wanted is None or dtype.kind not in "fiubc":
        return arg
    if dtype.kind == "c":
        return arg.astype(wanted) if wanted.kind == "c" and dtype is not wanted else arg
    if wanted.kind in "iub" or (wanted.kind == "c" and dtype.kind != "f"):
        wanted = _DOUBLE
    return arg if dtype is wanted or wanted.kind != "f" else arg.astype(wanted)


_DOUBLE = np.dtype(np.float64)
_LONG_DOUBLE = np.dtype(np.longdouble)
_PLAIN = frozenset({int, float, complex, bool, str, type(None)})
_SEQUENCES = frozenset({list, tuple})


def _scaled(rows: np.ndarray, partial: Any, *, overwrite: bool) -> np.ndarray:
    """Multiply directions by a partial derivative."""
    if overwrite and not np.iscomplexobj(partial):
        return np.multiply(rows, partial, out=rows)
    return rows * partial


def _scaled_up(batch: Batch, partial: Any, value: Any, *, overwrite: bool) -> Batch:
    """Tangents times a partial, in the shape of the result."""
    shape = np.shape(value)
    if isinstance(batch, Diagonal):
        if batch.values.shape == shape:
            values = real_like(np.broadcast_to(batch.values * partial, shape), value)
            return Diagonal(batch.origin, values, batch.start, batch.stop)
        batch = batch.dense()
    rows = lifted(batch.rows, len(shape))
    one = is_one(partial)
    rows = real_like(rows if one else _scaled(rows, partial, overwrite=overwrite), value)
    if rows.shape[1:] != shape:
        return Rows(batch.start, np.broadcast_to(rows, (len(rows), *shape)))
    return Rows(batch.start, rows, not one or overwrite)


def _scaled_down(batch: Batch, partial: Any, value: Any, *, overwrite: bool) -> Batch:
    """Adjoints times a partial, summed to the shape of the argument."""
    shape = np.shape(value)
    if isinstance(batch, Diagonal):
        if batch.values.shape == shape:
            values = real_like(np.broadcast_to(batch.values * partial, shape), value)
            return Diagonal(batch.origin, values, batch.start, batch.stop)
        batch = batch.dense()
    one = is_one(partial)
    rows = batch.rows if one else _scaled(batch.rows, partial, overwrite=overwrite)
    folded = real_like(fold(rows, shape), value)
    return Rows(batch.start, folded, not one and folded is rows)


def _gathered(batch: Batch, moves: IndexMap, value: Any) -> Batch:
    """Tangents of moved elements."""
    shape = batch_shape(value)
    if isinstance(batch, Diagonal):
        run = moves.run
        if run is not None and run.step == 1 and moves.complete:
            moved = real_like(batch.values.reshape(-1)[run], value)
            return Diagonal.of(moved.reshape(shape), batch.origin + run.start, batch.start, batch.stop)
        batch = batch.dense()
    rows = real_like(moves.gather(flat(batch.rows)), value)
    return Rows(batch.start, rows.reshape(len(rows), *shape))


def _gathered_together(moved: list[tuple[Batch, IndexMap]], value: Any) -> Rows:
    """Tangents of the moved elements of several values, written into one array."""
    start = min(batch.start for batch, _ in moved)
    stop = max(batch.stop for batch, _ in moved)
    dtype = np.result_type(*{batch.dtype for batch, _ in moved})
    rows = np.zeros((stop - start, moved[0][1].length), dtype)
    for batch, moves in moved:
        if isinstance(batch, Diagonal):
            directions = batch.origin + moves.sources
            wanted = np.flatnonzero((batch.start <= directions) & (directions < batch.stop))
            sources = moves.sources[wanted]
            rows[directions[wanted] - start, moves.targets[wanted]] = batch.values.reshape(-1)[sources]
        else:
            moves.put(flat(batch.dense().rows), rows[batch.start - start : batch.stop - start])
    return Rows(start, real_like(rows, value).reshape(len(rows), *batch_shape(value)), owned=True)


def _added(batch: Batch, moves: IndexMap, known: Batch, value: Any) -> bool:
    """Add adjoints of moved elements to those that there are, if that can be done in place.

    A value of which many parts are read would else be added up as a whole for each of them.
    """
    if not isinstance(batch, Rows) or not isinstance(known, Rows) or not known.owned:
        return False
    adjoints = real_like(flat(batch.rows), value)
    fits = known.start <= batch.start and batch.stop <= known.stop and known.rows.flags.c_contiguous
    if not fits or not np.can_cast(adjoints.dtype, known.dtype):
        return False
    moves.add(adjoints, flat(known.rows)[batch.start - known.start : batch.stop - known.start])
    return True


def _scattered(batch: Batch, moves: IndexMap, value: Any) -> Batch:
    """Adjoints of elements before they moved."""
    shape = batch_shape(value)
    if isinstance(batch, Diagonal):
        block = moves.block
        if block is not None:
            moved = real_like(batch.values.reshape(-1)[block], value)
            return Diagonal.of(moved.reshape(shape), batch.origin + block.start, batch.start, batch.stop)
        batch = batch.dense()
    rows = real_like(moves.scatter(flat(batch.rows)), value)
    return Rows(batch.start, rows.reshape(len(rows), *shape), owned=moves.block is None)
