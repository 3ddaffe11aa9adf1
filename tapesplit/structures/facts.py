"""Facts about each entry of a tape from which plans are made, as arrays: sizes, operands, scalar edges."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from autograd.core import primitive_vjps

from tapesplit.arrays import BoolArray, IntArray, coded, first_of, follow
from tapesplit.recording.tape import Tape
from tapesplit.recording.values import element_count
from tapesplit.rules import (
    OPEN_RULES,
    Bulk,
    Elementwise,
    Movement,
    Partial,
    Rule,
    find_rule,
    has_local_structure,
    is_elementwise_call,
    usable_jvp,
)
from tapesplit.structures.call_numbers import call_numbers
from tapesplit.structures.comparison import is_look_up
from tapesplit.structures.constants import NO_CONSTANTS, Constants, are_numbers, hashable
from tapesplit.structures.forms import is_complex, is_shape, number_shape
from tapesplit.structures.row_part import RowPart
from tapesplit.structures.structure import Structure, structure_of

__all__ = ["CallKind", "TapeFacts", "call_key", "calls_by_kind", "facts_of"]


@dataclass(frozen=True)
class CallKind:
    """A kind of call: primitive, positions of active arguments, number of arguments, names of keywords."""

    primitive: Callable[..., Any] | None
    argnums: tuple[int, ...]
    arity: int
    keywords: tuple[str, ...]
    rule: Rule | None

    @cached_property
    def partials(self) -> tuple[Partial | float | None, ...] | None:
        """The partial derivatives by the active arguments if its calls are elementwise; else None."""
        if not is_elementwise_call(self.rule, self.argnums, self.arity, self.keywords):
            return None
        return tuple([self.rule.partials[argnum] for argnum in self.argnums])

    @property
    def is_elementwise(self) -> bool:
        """Whether the partials of all active arguments are known."""
        return self.partials is not None

    @property
    def has_formulas(self) -> bool:
        """Whether partial derivatives of its elementwise calls are evaluated; those of sums are numbers."""
        return any(map(callable, self.partials or ()))

    @property
    def has_scalar_form(self) -> bool:
        """Whether its calls can be part of a scalar sweep, provided that values are numbers or arrays."""
        if self.is_elementwise:
            return not self.keywords  # coefficients are formulas of positional arguments
        return self.is_local or self.can_be_block or isinstance(self.rule, Movement)

    @property
    def is_local(self) -> bool:
        """Whether its calls can have a local structure: sums and products."""
        is_open = self.primitive in OPEN_RULES and self.rule is OPEN_RULES[self.primitive]
        return has_local_structure(self.primitive) and not is_open

    @property
    def can_be_contracted(self) -> bool:
        """Whether its calls can be reductions with known weights, which can absorb elementwise operations."""
        return isinstance(self.rule, Bulk) and self.rule.weigh is not None

    @property
    def can_be_block(self) -> bool:
        """Whether its calls can be part of a scalar sweep as blocks of all derivatives, found by any rule."""
        return (self.rule is None or isinstance(self.rule, Bulk)) and self.primitive in primitive_vjps

    @property
    def is_looped(self) -> bool:
        """Whether its calls take autograd's own rule, one direction at a time."""
        return not (self.is_elementwise or isinstance(self.rule, (Movement, Bulk)))

    @property
    def needs_local_jacobian(self) -> bool:
        """Whether tangents need the whole elemental Jacobian of a call, since autograd has no JVP for it."""
        return self.is_looped and usable_jvp(self.primitive, self.keywords) is None

    @property
    def has_no_derivative(self) -> bool:
        """Whether neither autograd nor the user has a rule for its calls, in any mode."""
        return (
            self.needs_local_jacobian and self.primitive is not None and self.primitive not in primitive_vjps
        )

    @property
    def factor(self) -> int:
        """Scalar edges for each element of the result; -1 if only the rule can tell."""
        if self.primitive is None or isinstance(self.rule, Movement):
            return 0
        if self.partials is not None:
            return sum(partial is not None for partial in self.partials)
        return -1


@dataclass(frozen=True, eq=False)
class TapeFacts:
    """Numbers for each entry of a tape.

    Parameters
    ----------
    structure
        The structure of the tape; the numbers hold for all tapes that have it.
    kinds, kind
        The different kinds of calls, and which of them each entry is.
    forms, form
        The different forms of values, see `Structure`, and which of them each value has.
    sizes
        Real elements of the value, two for each complex number; -1 for a computed value that has none
        (container, integer, complex in single precision).
    elements
        Real elements of all values, also of those whose size is -1.
    is_complex
        Whether the value is complex, in double precision.
    call
        The same number for like calls, those of equal kinds, shapes and constants; only for entries that are
        neither elementwise nor movements.
    edges
        Scalar edges |E| from the active arguments: fma per direction.
    scalar_edges
        Scalar edges in a scalar sweep. They differ from ``edges`` for sums of products: zeros of constant
        matrices have none, see `non_zeros`, and each product has one for each active argument.
    elementwise
        Whether the entry is an elementwise operation, see `CallKind`.
    scalar
        Whether the entry can be part of a scalar sweep: elementwise operations, movements, sums and small
        products in double or single precision, and blocks.
    blocks
        Elements of the elemental Jacobian by all active arguments, if the entry is a block in a scalar sweep:
        a small call that is neither elementwise nor a movement and has no local structure; else 0.
    joined
        Whether the blocks of like calls are computed together, in one call on stacks of their arguments.
    stacked
        Elements of the result and of all active arguments, if the call does the same to each of several
        slices and is not a sum; else 0.
    dense
        Whether the call is a product with so many scalar edges that it is part of a scalar sweep only if
        directions share seeds there; array steps carry more of them faster.
    local_fma
        Multiply-adds to find the elemental Jacobian once, by an adjoint for each element of the result, if
        tangents need it since autograd has no JVP; else 0.
    first_parent, parents
        The active arguments of entry i are ``parents[first_parent[i]:first_parent[i + 1]]``.
    children
        The entry that reads each of the ``parents``.
    reader
        For each entry the elementwise operation of equal size that alone reads it, so that the two can be
        merged; else itself.
    detached
        Whether the value is empty, or depends on the inputs through empty arrays only: its derivatives are
        zeros, even where partial derivatives are infinite.
    ranks
        Ranks of the adjoints that stay factored, by entry, if these have been looked for.
    row_part
        The part of the tape in which rows stay apart, if it was looked for and is worth sweeping so.
    """

    structure: Structure
    kinds: tuple[CallKind, ...]
    kind: IntArray
    forms: tuple[Any, ...]
    form: IntArray
    sizes: IntArray
    elements: IntArray
    is_complex: BoolArray
    call: IntArray
    edges: IntArray
    scalar_edges: IntArray
    elementwise: BoolArray
    scalar: BoolArray
    blocks: IntArray
    joined: BoolArray
    stacked: IntArray
    dense: BoolArray
    local_fma: IntArray
    first_parent: IntArray
    parents: IntArray
    children: IntArray
    reader: IntArray
    detached: BoolArray
    ranks: Mapping[int, int] = field(default_factory=dict)
    row_part: RowPart | None = None

    @cached_property
    def merged_into(self) -> IntArray:
        """The last operation that each entry can be merged with, following ``reader``; itself if none."""
        return follow(self.reader)

    @cached_property
    def scalar_apart(self) -> BoolArray:
        """Whether each entry can be part of a scalar sweep whose directions do not share seeds."""
        return self.scalar & ~self.dense

    @cached_property
    def is_movement(self) -> BoolArray:
        """Whether each entry is a movement."""
        return np.array([isinstance(kind.rule, Movement) for kind in self.kinds])[self.kind]

    @cached_property
    def axes(self) -> IntArray:
        """The number of axes of each value; -1 if it is no float64 array."""
        return np.array([len(form) if is_shape(form) else -1 for form in self.forms])[self.form]


def facts_of(tape: Tape, structure: Structure | None = None) -> TapeFacts:
    """Collect the facts of a tape, in about 0.3 µs per entry; its structure may be known already."""
    structure = structure or structure_of(tape)
    seen, which = coded(
        zip(structure.primitives, structure.argnums, map(type, structure.statics), strict=True)
    )
    kinds, kind = _kinds(tape, structure, seen, which)
    forms, form = coded(structure.forms)
    of_form = [(_real_size(f), is_complex(f), number_shape(f) is not None) for f in forms]
    sizes, *tests = np.array(of_form).T.take(form, axis=1)
    complex_, known_form = np.array(tests) > 0
    sizes[: tape.inputs] = [*map(element_count, tape.values[: tape.inputs])]

    of_kind = [
        (k.factor, len(k.argnums), k.has_scalar_form, k.is_elementwise, k.needs_local_jacobian) for k in kinds
    ]
    factors, counts, *tests = np.array(of_kind).T.take(kind, axis=1)
    has_scalar_form, elementwise, needs_local_jacobian = np.array(tests) > 0
    elements, edges = sizes.copy(), (sizes >> complex_) * factors
    scalar = known_form & has_scalar_form
    blocks, joined, stacked, dense, call = np.zeros((5, kind.size), dtype=np.int64)
    scalar_edges = edges.copy()
    others = np.flatnonzero((factors < 0) | (sizes < 0))
    if others.size:
        call[others], numbers = call_numbers(tape, structure, kind, form, others)
        elements[others], edges[others], scalar_edges[others], is_local_call, *of_blocks = numbers
        blocks[others], joined[others], stacked[others], dense[others] = of_blocks
        scalar[others] &= (is_local_call > 0) | (blocks[others] > 0)
    scalar &= ~elementwise | _takes_numbers(structure, seen, which, scalar & elementwise)

    first_parent, parents, children = _reads(structure, counts)
    scalar[children[~known_form[parents]]] = False  # scalar sweeps read nothing else
    if complex_.any():  # a formula of a user's may be complex whatever it reads
        users = np.array([isinstance(k.rule, Elementwise) and not k.rule.built_in for k in kinds])[kind]
        scalar &= ~(users & complex_)
        scalar[children[users[children] & complex_[parents]]] = False
    reader = _only_readers(parents, children, elementwise & scalar, 2 * sizes + complex_)
    return TapeFacts(
        structure=structure,
        kinds=kinds,
        kind=kind,
        forms=tuple(forms),
        form=form,
        sizes=sizes,
        elements=elements,
        is_complex=complex_,
        call=call,
        edges=edges,
        scalar_edges=scalar_edges,
        elementwise=elementwise,
        scalar=scalar,
        blocks=blocks,
        joined=joined > 0,
        stacked=stacked,
        dense=dense > 0,
        local_fma=np.maximum(elements, 1) * edges * needs_local_jacobian,
        first_parent=first_parent,
        parents=parents,
        children=children,
        reader=reader,
        detached=_detached(tape, structure, sizes),
    )


def _reads(structure: Structure, counts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return ``first_parent``, ``parents`` and ``children``, given how many active arguments calls have."""
    first_parent = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=first_parent[1:])
    parents = np.fromiter(chain.from_iterable(structure.parents), dtype=np.int64, count=int(first_parent[-1]))
    return first_parent, parents, np.repeat(np.arange(counts.size), counts)


def _detached(tape: Tape, structure: Structure, sizes: IntArray) -> BoolArray:
    """Tell which values depend on the inputs through empty arrays only."""
    empty = sizes == 0
    if not empty.any():
        return empty
    detached = empty.tolist()
    for index in range(tape.inputs, len(tape)):
        detached[index] = detached[index] or all(detached[parent] for parent in structure.parents[index])
    return np.array(detached)


_Seen = list[tuple[Callable[..., Any] | None, tuple[int, ...], type]]
"""Different calls as far as structures tell: primitive, active arguments, type of the constant arguments."""


def _kinds(
    tape: Tape, structure: Structure, seen: _Seen, which: IntArray
) -> tuple[tuple[CallKind, ...], IntArray]:
    """Return the different kinds of calls, and which of them each entry is."""
    simple = [(p, a, len(a) + (constants is not _NONE), (), False) for p, a, constants in seen]
    keyed = np.flatnonzero(np.array([constants is Constants for *_, constants in seen])[which])
    # Only calls of the same primitive with the same arguments share an object here, see `statics_of`.
    _, like = coded([id(structure.statics[index]) for index in keyed.tolist()])
    others = []
    for index in keyed[first_of(like)].tolist():
        primitive, argnums, _, args, kwargs, _ = tape[index]
        others.append((primitive, argnums, len(args), (*kwargs,), is_look_up(structure, index)))
    kinds, number = coded([*simple, *others])
    kind = number[which]
    kind[keyed] = number[len(seen) + like]
    rules = [OPEN_RULES[p] if is_open else find_rule(p) for p, *_, is_open in kinds]
    calls = zip(kinds, rules, strict=True)
    return tuple(CallKind(p, argnums, n, names, rule) for (p, argnums, n, names, _), rule in calls), kind


def _takes_numbers(structure: Structure, seen: _Seen, which: IntArray, asked: BoolArray) -> BoolArray:
    """Mark those of the calls in ``asked`` whose constant arguments are all numbers, or arrays of them."""
    told = [(constants in _NUMBERS, constants is Constants) for *_, constants in seen]
    found, keyed = np.array(told).T.take(which, axis=1) & asked
    places = np.flatnonzero(keyed)
    found[places] = [are_numbers(structure.statics[index]) for index in places.tolist()]
    return found


_NONE = type(NO_CONSTANTS)
"""Type of the constant arguments of calls without any; else it is `Constants`, or that of the only one."""
_NUMBERS = frozenset({_NONE, type, Constants})
"""Types of what `Structure` has for constant arguments that are, or in `Constants` may be, numbers only."""


def _only_readers(parents: IntArray, children: IntArray, elementwise: BoolArray, like: IntArray) -> IntArray:
    """Find the elementwise operation that each one can be merged with, itself if there is none.

    It is the only reader, and both have the same number in ``like``, which codes size and type of a value.
    """
    first, last = np.full((2, elementwise.size), -1)
    last[parents] = children
    first[parents[::-1]] = children[::-1]
    can = elementwise & (first == last) & (last >= 0) & elementwise[last] & (like[last] == like)
    return np.where(can, last, np.arange(elementwise.size))


def call_key(facts: TapeFacts, index: int) -> Any:
    """Return a key that is equal for calls that differ in the numbers in their arguments at most."""
    forms = tuple(facts.form[[index, *facts.structure.parents[index]]].tolist())
    return (facts.kind[index], forms, hashable(facts.structure.statics[index]))


def calls_by_kind(facts: TapeFacts, entries: IntArray) -> Iterator[tuple[CallKind, IntArray, IntArray]]:
    """Sort k entries by kind; yield each kind, its entries, and their active arguments, one row per entry."""
    kinds = facts.kind[entries]
    for code in np.flatnonzero(np.bincount(kinds)).tolist():
        kind = facts.kinds[code]
        members = entries[kinds == code]
        places = facts.first_parent[members][:, None] + np.arange(len(kind.argnums))
        yield kind, members, facts.parents[places]


def _real_size(form: Any) -> int:
    """Return the real elements of a floating-point value, -1 for anything else."""
    if is_shape(form):
        return prod(form)
    kind, shape = form
    if is_complex(form):
        return 2 * prod(shape)
    is_float = kind is float or (isinstance(kind, type) and issubclass(kind, np.floating))
    return prod(shape) if is_float or (isinstance(kind, np.dtype) and kind.kind == "f") else -1
