"""Factored adjoints: which matrices have adjoints of low rank, and what work adjoint sweeps save by that."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import Final, NamedTuple

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_wrapper import concatenate_args

from tapesplit.arrays import BoolArray, IntArray
from tapesplit.rules import Bulk, Movement, getitem
from tapesplit.rules.low_rank import MOST_PARTS, FactoredRule, factored_rule, is_thin
from tapesplit.structures.constants import ArrayKey, Constants
from tapesplit.structures.facts import CallKind, TapeFacts
from tapesplit.structures.forms import is_shape

__all__ = ["spared", "with_ranks"]


class Spared(NamedTuple):
    """Work that adjoint sweeps save by keeping adjoints factored; both arrays have shape ``(n,)``.

    ``whole`` marks the entries whose adjoints are never multiplied out to all elements, ``edges`` counts the
    scalar edges that no direction passes through.
    """

    whole: BoolArray
    edges: IntArray


def with_ranks(facts: TapeFacts) -> TapeFacts:
    """Return the facts of a tape together with the ranks of the adjoints that stay factored.

    Notes
    -----
    If the values of constants decide, as in an elementwise product of factors and a matrix, adjoints are
    assumed to be multiplied out. Takes about 1 µs for each time a matrix is read, if the tape has products
    whose adjoints can be factored.
    """
    has_rule = [any(_rule(kind, argnum) for argnum in kind.argnums) for kind in facts.kinds]
    may_be = [is_shape(form) and is_thin(1, form) for form in facts.forms]
    if not (any(has_rule) and any(may_be)):
        return facts
    read = np.flatnonzero(np.array(may_be)[facts.form[facts.parents]])
    children, parents = facts.children[read], facts.parents[read]
    if not np.array(has_rule)[facts.kind[children]].any():
        return facts
    places = read - facts.first_parent[children]
    readings: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for child, parent, place in zip(children.tolist(), parents.tolist(), places.tolist(), strict=True):
        readings[parent].append((child, place))
    found: dict[int, int] = {}
    for parent in sorted(readings, reverse=True):
        if _takes_factors(facts.kinds[facts.kind[parent]]) and parent != facts.structure.output:
            arriving = _arriving(facts, found, parent, readings[parent])
            if arriving and is_thin(arriving, facts.structure.forms[parent]):
                found[parent] = arriving
    together = facts.merged_into
    arguments = _arguments(facts, found, together)
    taken = {
        parent
        for parent in found
        if facts.elementwise[parent] and any(_takes_in(facts, child) for child, _ in readings[parent])
    }
    before = len(found) + 1
    while len(found) < before:  # adjoints that are multiplied out are passed on dense, to further entries
        before, small = len(found), _kept_small(facts, found, together, arguments, taken)
        found = {}
        for parent in sorted(small, reverse=True):
            if _arriving(facts, found, parent, readings[parent]) == small[parent]:
                found[parent] = small[parent]
    return replace(facts, ranks=found)


def _arguments(facts: TapeFacts, found: dict[int, int], together: IntArray) -> dict[int, list[int]]:
    """List the values that merged operations read from outside, by the last one: ``together[entry]``."""
    is_found = np.zeros(together.size, dtype=np.bool_)
    is_found[list(found)] = True
    read = is_found[together[facts.children]] & (together[facts.children] != together[facts.parents])
    arguments: dict[int, list[int]] = defaultdict(list)
    for result, argument in zip(together[facts.children[read]], facts.parents[read], strict=True):
        arguments[int(result)].append(int(argument))
    return arguments


def _takes_in(facts: TapeFacts, index: int) -> bool:
    """Tell whether an operation is a reduction to a vector, which can absorb elementwise operations."""
    form = facts.structure.forms[index]
    return facts.kinds[facts.kind[index]].can_be_contracted and is_shape(form) and len(form) == 1


def _kept_small(
    facts: TapeFacts,
    found: dict[int, int],
    together: IntArray,
    arguments: dict[int, list[int]],
    taken: Container[int],
) -> dict[int, int]:
    """Drop matrices whose factors would be multiplied out at once, as an argument needs all elements anyway.

    Operations in ``taken``, which a product can absorb, are dropped too unless an argument stays factored.
    """
    fits: dict[int, bool] = {}
    kept: dict[int, int] = {}
    for result, index in sorted((int(together[index]), index) for index in found):
        if result not in fits:
            kind, size = facts.kinds[facts.kind[result]], facts.sizes[result]
            picks = kind.is_elementwise or kind.primitive is anp.diag
            fits[result] = isinstance(kind.rule, Bulk) or (
                all(
                    argument in kept
                    or (picks and facts.sizes[argument] < size and not facts.is_complex[argument])
                    for argument in arguments[result]
                )
                and (result not in taken or any(argument in kept for argument in arguments[result]))
            )
        if fits[result]:
            kept[index] = found[index]
    return kept


def _arriving(
    facts: TapeFacts, found: Mapping[int, int], parent: int, readings: Iterable[tuple[int, int]]
) -> int:
    """Add up the ranks of the adjoints that operations pass to an argument; 0 if some are dense."""
    handed = [_handed(facts, found, child, place, parent) for child, place in readings]
    return sum(handed) if all(handed) else 0


def _handed(facts: TapeFacts, found: Mapping[int, int], child: int, place: int, parent: int) -> int:
    """Return the rank of the adjoints that an operation passes to an argument; 0 if they are dense."""
    given = found.get(child, 0)
    kind = facts.kinds[facts.kind[child]]
    argnum = kind.argnums[place]
    shape, of_argument = (facts.structure.forms[i] for i in (child, parent))
    if kind.partials is not None:
        by_number = not callable(kind.partials[place]) or _is_scaled(facts, child, place)
        return given if by_number and shape == of_argument else 0
    if isinstance(kind.rule, Movement):
        moves_parts = _moves_parts(kind) and len(kind.argnums) <= MOST_PARTS
        return given if moves_parts else 0
    rule = _rule(kind, argnum)
    return rule.rank(given, shape) if rule and is_shape(shape) else 0


def _is_scaled(facts: TapeFacts, index: int, place: int) -> bool:
    """Tell whether an operation multiplies an argument by a number, or divides it by one."""
    kind, parents = facts.kinds[facts.kind[index]], facts.structure.parents[index]
    argnum = kind.argnums[place]
    if kind.primitive not in _SCALE or (kind.primitive is not anp.multiply and argnum == 1):
        return False
    if len(parents) == 2:
        return bool(facts.sizes[parents[1 - place]] == 1)
    static = facts.structure.statics[index]
    key = static.positional[0] if isinstance(static, Constants) and static.positional else static
    return isinstance(key, type) or (isinstance(key, ArrayKey) and prod(key.shape) == 1)


_SCALE: Final = frozenset({anp.multiply, anp.divide})
"""Operations that scale a matrix where the other operand is a number."""


def _moves_parts(kind: CallKind) -> bool:
    """Tell whether a movement from a matrix to a matrix moves whole rows and columns."""
    along_axis = kind.arity > 2 or "axis" in kind.keywords
    return kind.primitive in _MOVE_PARTS or (kind.primitive is anp.roll and along_axis)


_MOVE_PARTS: Final = frozenset({anp.transpose, anp.swapaxes, getitem, concatenate_args})
"""Movements that move whole rows and columns if they lead from a matrix to a matrix."""


def _rule(kind: CallKind, argnum: int) -> FactoredRule | None:
    """Return the rule for factored adjoints by one argument; None if there is none, or a user replaced it."""
    is_ours = isinstance(kind.rule, Bulk) and kind.rule.built_in
    return factored_rule(kind.primitive, argnum) if is_ours else None


def _takes_factors(kind: CallKind) -> bool:
    """Tell whether calls of a kind do not need the adjoints of their result as a whole."""
    if kind.is_elementwise or isinstance(kind.rule, Movement):
        return True
    return kind.primitive is not None and all(_rule(kind, argnum) for argnum in kind.argnums)


def _largest_operand(facts: TapeFacts, index: int) -> int:
    """Count the elements of the largest array that a call reads."""
    static = facts.structure.statics[index]
    keys = static.positional if isinstance(static, Constants) else ()
    constants = (prod(key.shape) for key in keys if isinstance(key, ArrayKey))
    return max(*constants, *facts.sizes[list(facts.structure.parents[index])].tolist(), 0)


def spared(facts: TapeFacts) -> Spared:
    """Return the work that adjoint sweeps save by factored adjoints."""
    count = facts.sizes.size
    rank, numbers, edges = np.zeros((3, count), dtype=np.int64)
    if not facts.ranks:
        return Spared(rank > 0, edges)
    for index, given in facts.ranks.items():
        rank[index], numbers[index] = given, given * sum(facts.structure.forms[index])
    child, parent, sizes = facts.children, facts.parents, facts.sizes
    together = facts.merged_into
    is_whole = (rank > 0)[together]
    whole = np.flatnonzero(is_whole)
    edges[whole] = facts.edges[whole] * (sizes[whole] - numbers[together[whole]]) // sizes[whole]
    for index in whole.tolist():
        if isinstance(facts.kinds[facts.kind[index]].rule, Bulk):  # a row of a factor meets a whole operand
            least = rank[together[index]] * _largest_operand(facts, index)
            edges[index] = min(edges[index], max(0, facts.edges[index] - least))
    # A product that creates factors saves all edges to that matrix: rank times the elements of the matrix.
    makes = (rank[parent] > 0) & (rank[child] == 0)
    np.add.at(edges, child[makes], (rank * sizes)[parent[makes]])
    return Spared(is_whole, np.minimum(edges, facts.edges))
