"""A check of vector rules, for users' own ones as well, against autograd's rules and differences."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from autograd.extend import SparseObject

from tapesplit.closeness import check_close, tolerance_of
from tapesplit.cuts.chunks import Chunk
from tapesplit.errors import ArgumentValueError, RuleError, WrongRuleError
from tapesplit.names import label_of
from tapesplit.recording.tape import Entries, Tape, TapeEntry
from tapesplit.recording.values import batch_shape, element_count, flatten, unflatten
from tapesplit.rules import Bulk, Elementwise, Movement, find_rule, loop_adjoint, loop_tangent
from tapesplit.rules.axes import flat
from tapesplit.rules.registry import Undefined, is_elementwise_call
from tapesplit.structures.facts import TapeFacts, facts_of
from tapesplit.sweeps.array_sweep import compile_array_sweep
from tapesplit.sweeps.directions import Batch, Diagonal, Rows
from tapesplit.sweeps.lowering import compile_scalar_sweep
from tapesplit.sweeps.sweep import run_sweep

__all__ = ["check_vector_rule"]


def check_vector_rule(primitive: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Check the vector rule of a primitive for one call against autograd's own rule.

    The arguments that hold floating-point numbers and that the rule covers are differentiated one by one and
    all together. Several sets of directions are carried through in both modes: random ones, the identity, and
    none at all. An object that is passed twice is one operand that is used twice.

    Parameters
    ----------
    primitive
        A function decorated with ``autograd.extend.primitive`` that has a vector rule (see
        `tapesplit.defvector`).
    *args, **kwargs
        Arguments of the call.

    Raises
    ------
    WrongRuleError
        If the rule differs from the loop over autograd's rule by more than 1e-9 of the largest element (3e-4
        in single and 3e-2 in half precision; one below 1e-3 counts as that), or (where autograd has no rule)
        from central differences by more than 1e-6, or if its two modes are not adjoint to each other:
        ``<A, tangent(T)> = <adjoint(A), T>``; or if the number of edges that it returns is impossible.
    ArgumentValueError
        If the primitive has no vector rule, or if no argument that the rule covers has floating-point type.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> check_vector_rule(np.multiply, np.ones((2, 3)), np.array([1.0, 2.0, 3.0]))
    """
    active = [i for i, arg in enumerate(args) if _is_floating(arg) and _covers(primitive, i)]
    if not active:
        has = "a vector rule, but for none of these arguments" if find_rule(primitive) else "no vector rule"
        raise ArgumentValueError(
            f"nothing to check: {label_of(primitive)} has {has}; register one with tapesplit.defvector, and "
            "pass arguments of floating-point type"
        )
    value = primitive(*args, **kwargs)
    for argnums in dict.fromkeys([*((i,) for i in active), tuple(active)]):
        call = _Call.of(TapeEntry(primitive, argnums, (), args, kwargs, value))
        call.check_partials()
        for tangents, adjoints in call.directions():
            call.check(tangents, adjoints)
        call.check_scalar_sweep()


class _Call(NamedTuple):
    """One call of a primitive as a tape of its own."""

    entry: TapeEntry
    tape: Tape
    facts: TapeFacts
    chunk: Chunk

    @classmethod
    def of(cls, entry: TapeEntry) -> "_Call":
        """Put the active arguments and the call on a tape; arguments that are one object are one input."""
        inputs = list({id(entry.args[i]): entry.args[i] for i in entry.argnums}.values())
        parents = tuple(next(p for p, x in enumerate(inputs) if x is entry.args[i]) for i in entry.argnums)
        entry = entry._replace(parents=parents)
        last = len(inputs)
        tape = _tape_of([*(TapeEntry(None, (), (), (), {}, x) for x in inputs), entry], last, last)
        n, m = sum(map(element_count, inputs)), element_count(entry.value)
        chunk = Chunk(tuple(range(last)), (last,), np.array([last]), n, m, 1)
        try:
            facts = facts_of(tape)
        except RuleError as error:
            raise WrongRuleError(f"{error}; found by the call {_in_words(entry)}") from error
        attached = np.zeros_like(facts.detached)  # calls on empty arrays are checked as well
        return cls(entry, tape, replace(facts, detached=attached), chunk)

    @property
    def label(self) -> str:
        """The call in words."""
        return _in_words(self.entry)

    @property
    def precision(self) -> float:
        """Tolerance of comparisons, by the least precise operand."""
        values = [*self.inputs, self.entry.value, *(x for x in self.entry.args if isinstance(x, np.ndarray))]
        return tolerance_of([flatten(x) for x in values])

    @property
    def inputs(self) -> list[Any]:
        """Values of the active arguments."""
        return self.tape.values[: self.tape.inputs]

    def directions(self) -> Iterator[tuple[Sequence[Rows | Diagonal], Rows | Diagonal]]:
        """Yield tangents for the inputs with adjoints for the result: random ones, none, identities."""
        random = np.random.default_rng(0)
        for count in (3, 1, 0):
            yield (
                [Rows(0, _random(random, count, x)) for x in self.inputs],
                Rows(0, _random(random, count, self.entry.value)),
            )
        if not any(
            isinstance(x, (tuple, list, dict, SparseObject)) for x in (*self.inputs, self.entry.value)
        ):
            starts = np.cumsum([0, *(np.size(x) for x in self.inputs)]).tolist()
            tangents = [_identity(x, start) for x, start in zip(self.inputs, starts, strict=False)]
            yield tangents, _identity(self.entry.value, 0)

    def check_partials(self) -> None:
        """Check that the partial derivatives of an elementwise primitive broadcast to the result."""
        primitive, argnums, _, args, kwargs, value = self.entry
        rule = find_rule(primitive)
        if not is_elementwise_call(rule, argnums, len(args), kwargs):
            return
        for partial in (rule.partials[i] for i in argnums):
            found = partial(value, *args, **kwargs) if callable(partial) else 0
            try:
                np.broadcast_to(found, np.shape(value))
            except ValueError as error:
                raise WrongRuleError(
                    f"a partial derivative of {self.label} has shape {np.shape(found)}, which does not "
                    f"broadcast to that of the result, {np.shape(value)}"
                ) from error

    def check(self, tangents: Sequence[Rows | Diagonal], adjoints: Rows | Diagonal) -> None:
        """Compare one batch in both modes."""
        (step,) = compile_array_sweep(self.tape, self.facts, self.chunk, self.chunk.n).steps
        back: dict[int, Any] = {}
        try:
            step.adjoint(self.tape, adjoints, back)
            forward = step.tangent(self.tape, dict(enumerate(tangents)))
        except RuleError as error:
            raise WrongRuleError(f"{error}; found by the call {self.label}") from error
        count, shape = max(t.stop for t in tangents), batch_shape(self.entry.value)
        T = [_dense(t, count, batch_shape(x)) for t, x in zip(tangents, self.inputs, strict=True)]
        A = _dense(adjoints, adjoints.stop, shape)
        pushed = _dense(forward, count, shape)
        pulled = [_dense(back.get(i), len(A), batch_shape(x)) for i, x in enumerate(self.inputs)]
        try:
            expected = self._looped_tangent(T), self._looped_adjoints(A)
        except NotImplementedError:  # autograd has no rule for this call
            expected = None
        if expected is None:
            differences = self._differences(T, count)
            differs = f"the tangent rule of {self.label} differs from differences"
            check_close(pushed, differences, differs, 1e-6, least=1.0, error=WrongRuleError)
            # Both sides of ``<A, tangent(T)> = <adjoint(A), T>``, for all pairs of directions.
            left = np.real(flat(A) @ flat(pushed).T)
            right = np.real(sum(flat(a) @ flat(t).T for a, t in zip(pulled, T, strict=True)))
            self._compare(right, left, f"the modes of the rule of {self.label} are not adjoint")
            return
        self._compare(pushed, expected[0], f"the tangent rule of {self.label} differs from autograd's")
        for got, wanted in zip(pulled, expected[1], strict=True):
            self._compare(got, wanted, f"the adjoint rule of {self.label} differs from autograd's")

    def _compare(self, found: np.ndarray, expected: np.ndarray, what: str) -> None:
        """Refuse differences beyond the precision of the call."""
        check_close(found, expected, what, self.precision, error=WrongRuleError)

    def check_scalar_sweep(self) -> None:
        """Compare the rule in its scalar form, if the call has one.

        Scalar sweeps carry out like calls together, so there are two. Their operands are no inputs of the
        tape: elements of inputs count as real numbers, but operands may be complex.
        """
        first = self.tape.inputs
        tape = _tape_of([*self.tape, self.tape[first]], 0, first)
        facts = facts_of(tape)
        calls = np.array([first, first + 1])
        if not facts.scalar[calls].all():
            return
        n, m = int(facts.sizes[:first].sum()), int(facts.sizes[calls].sum())
        chunk = Chunk(tuple(range(first)), (first, first + 1), calls, n, m, 1)
        expected = run_sweep(compile_array_sweep(tape, facts, chunk, chunk.n), tape, None)
        for adjoint_mode in (False, True):
            directions = m if adjoint_mode else n
            sweep = compile_scalar_sweep(tape, facts, chunk, directions, adjoint_mode=adjoint_mode)
            found = run_sweep(sweep, tape, None)
            self._compare(found, expected, f"the scalar form of the rule of {self.label} differs")

    def _looped_tangent(self, T: Sequence[np.ndarray]) -> np.ndarray:
        """Carry tangents by autograd's rule."""
        pairs = zip(self.entry.argnums, self.entry.parents, strict=True)
        return sum(loop_tangent(T[parent], self.entry, argnum) for argnum, parent in pairs)  # type: ignore[return-value]

    def _looped_adjoints(self, A: np.ndarray) -> list[np.ndarray]:
        """Carry adjoints by autograd's rule."""
        sums = [np.zeros((len(A), *batch_shape(x))) for x in self.inputs]
        for parent, rows in zip(self.entry.parents, loop_adjoint(A, self.entry), strict=True):
            sums[parent] = sums[parent] + rows
        return sums

    def _differences(self, T: Sequence[np.ndarray], count: int) -> np.ndarray:
        """Return central differences of the primitive along tangents."""
        rows = [
            self._moved([t[i] for t in T], 1e-5) - self._moved([t[i] for t in T], -1e-5) for i in range(count)
        ]
        return np.array(rows).reshape(count, *batch_shape(self.entry.value)) / 2e-5

    def _moved(self, tangents: Sequence[np.ndarray], step: float) -> np.ndarray:
        """Evaluate the primitive a step away."""
        args = list(self.entry.args)
        for argnum, parent in zip(self.entry.argnums, self.entry.parents, strict=True):
            args[argnum] = unflatten(flatten(args[argnum]) + step * tangents[parent].ravel(), args[argnum])
        return flatten(self.entry.primitive(*args, **self.entry.kwargs))  # type: ignore[misc]


def _tape_of(entries: Iterable[TapeEntry], inputs: int, output: int) -> Tape:
    """Return the tape of some entries."""
    found = Entries()
    for entry in entries:
        found.add(*entry)
    return Tape(found, inputs, output, entry.value)


def _in_words(entry: TapeEntry) -> str:
    """Describe a call: the primitive, its arguments, and which of them are active."""
    shapes = ", ".join(_shown(arg) for arg in entry.args)
    keywords = "".join(f", {key}={value!r}" for key, value in entry.kwargs.items())
    return f"{label_of(entry.primitive)}({shapes}{keywords}) by argument {', '.join(map(str, entry.argnums))}"


def _is_floating(arg: Any) -> bool:
    """Whether all elements of an argument are real or complex floating-point numbers."""
    if isinstance(arg, (tuple, list)):
        return bool(arg) and all(map(_is_floating, arg))
    if isinstance(arg, dict):
        return bool(arg) and all(map(_is_floating, arg.values()))
    if isinstance(arg, SparseObject):
        arg = flatten(arg)
    return (
        isinstance(arg, (float, complex, np.ndarray, np.number))
        and np.result_type(np.asarray(arg)).kind in "fc"
    )


def _covers(primitive: Callable[..., Any], argnum: int) -> bool:
    """Whether the vector rule has a form for an argument."""
    rule = find_rule(primitive)
    if isinstance(rule, Elementwise):
        return argnum < len(rule.partials) and not isinstance(rule.partials[argnum], Undefined)
    return isinstance(rule, Movement) or (
        isinstance(rule, Bulk) and argnum in {*rule.tangents, *rule.adjoints}
    )


def _random(random: np.random.Generator, count: int, value: Any) -> np.ndarray:
    """Random directions of a value, in its own precision."""
    leaves = flatten(value)
    dtype = np.result_type(leaves, np.float16)
    rows = random.normal(size=(count, leaves.size)).astype(np.real(np.ones((), dtype)).dtype)
    if dtype.kind == "c":
        rows = rows + 1j * random.normal(size=rows.shape).astype(rows.dtype)
    return rows.reshape(count, *batch_shape(value))


def _identity(value: Any, start: int) -> Diagonal:
    """One direction for each element."""
    one = np.ones(np.shape(value), np.result_type(np.asarray(value), np.float16))
    return Diagonal.of(one, start, start, start + one.size)


def _dense(batch: Batch | None, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Write all directions of a batch out."""
    if batch is None:
        return np.zeros((count, *shape))
    window = batch.dense()
    rows = np.zeros((count, *window.rows.shape[1:]), window.rows.dtype)
    rows[window.start : window.stop] = window.rows
    return rows


def _shown(arg: Any) -> str:
    """Shape of an array, anything else as it is."""
    return f"<{arg.dtype} {arg.shape}>" if isinstance(arg, np.ndarray) else repr(arg)
