"""Factored adjoints: which matrices have adjoints of low rank, and what work adjoint sweeps save by that."""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import Final, NamedTuple

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_wrapper import concatenate_args

from tapesplit.arrays import BoolArray, IntArray, reached
from tapesplit.recording.primitives import dense_untake, summed_untake
from tapesplit.rules import Bulk, Movement, getitem
from tapesplit.rules.einsum import splits
from tapesplit.rules.low_rank import MOST_PARTS, FactoredRule, factored_rule, is_thin
from tapesplit.structures.constants import ArrayKey, Constants, index_members
from tapesplit.structures.facts import CallKind, TapeFacts
from tapesplit.structures.forms import is_shape

__all__ = ["are_spoiled", "spared", "with_ranks"]


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
    is_read = _is_read(facts)
    read, children, parents = (items[is_read[children]] for items in (read, children, parents))
    ends = _ends(facts, is_read)
    places = read - facts.first_parent[children]
    readings: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for child, parent, place in zip(children.tolist(), parents.tolist(), places.tolist(), strict=True):
        readings[parent].append((child, place))
    begun = _begun(facts, ends)
    found = dict(begun)
    for parent in sorted(readings, reverse=True):
        if _takes_factors(facts.kinds[facts.kind[parent]]) and parent != facts.structure.output:
            arriving = _arriving(facts, found, ends, parent, readings[parent])
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
        found = dict(begun)
        for parent in sorted(small, reverse=True):
            if _arriving(facts, found, ends, parent, readings[parent]) == small[parent]:
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


def _is_read(facts: TapeFacts) -> BoolArray:
    """Tell which values the output is computed from; the others get no adjoints."""
    at_output = np.arange(facts.sizes.size) == facts.structure.output
    return reached(at_output, facts.children[::-1], facts.parents[::-1])


class _Ends(NamedTuple):
    """Values whose adjoints are diagonal, each direction having one element, and matrices summed to these."""

    diagonal: Container[int] = ()
    summed: Collection[int] = ()


def _ends(facts: TapeFacts, is_read: BoolArray) -> _Ends:
    """Find the values whose adjoints are diagonal, as they are at the output."""
    output, parents, sizes = facts.structure.output, facts.structure.parents, facts.sizes
    forms = facts.structure.forms
    if output is None or facts.is_complex[output]:
        return _Ends()
    readers = np.bincount(facts.parents[is_read[facts.children]], minlength=sizes.size)
    found, summed, ahead = set[int](), set[int](), [output]
    while ahead:
        index = ahead.pop()
        found.add(index)
        read = parents[index]
        kind = facts.kinds[facts.kind[index]]
        if kind.is_elementwise:
            ahead += [parent for parent in read if sizes[parent] == sizes[index] and readers[parent] == 1]
        elif kind.primitive in _KEEP_ORDER and sizes[[*read]].sum() == sizes[index]:
            ahead += [parent for parent in read if readers[parent] == 1]
        elif kind.can_be_contracted:
            alone = [parent for parent in read if readers[parent] == 1 and is_shape(forms[parent])]
            summed.update(parent for parent in alone if sizes[index] in forms[parent])
    return _Ends(found, summed)


def _begun(facts: TapeFacts, ends: _Ends) -> dict[int, int]:
    """Return the rank of the adjoints of the output, if it is a matrix from which factors are passed on."""
    output = facts.structure.output
    if output is None or output not in ends.diagonal or not is_thin(1, facts.structure.forms[output]):
        return {}
    kind = facts.kinds[facts.kind[output]]
    return {output: 1} if isinstance(kind.rule, Bulk) and _takes_factors(kind) else {}


_KEEP_ORDER: Final = frozenset(
    {anp.reshape, anp.ravel, anp.squeeze, anp.expand_dims, concatenate_args, dense_untake, summed_untake}
)
"""Movements to vectors that do not change the order of elements, if they move all of them."""


def _arriving(
    facts: TapeFacts,
    found: Mapping[int, int],
    ends: _Ends,
    parent: int,
    readings: Iterable[tuple[int, int]],
) -> int:
    """Add up the ranks of the adjoints that operations pass to an argument; 0 if some are dense."""
    arriving = 0
    for child, place in readings:
        rank = _handed(facts, found, child, place, parent) or _placed(
            facts, found, ends, child, place, parent
        )
        if not rank:
            return 0
        arriving += rank
    return arriving


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


def _placed(facts: TapeFacts, found: Container[int], ends: _Ends, child: int, place: int, parent: int) -> int:
    """Return the rank of adjoints of a matrix of which an operation moves or sums few elements; else 0."""
    kind = facts.kinds[facts.kind[child]]
    if isinstance(kind.rule, Movement):
        return 1 if child in ends.diagonal else _lines_read(facts, child, parent)
    if kind.primitive is anp.einsum and child in ends.diagonal:
        return int(_splits(facts, child, place))
    if not (kind.is_elementwise and ends.summed):
        return 0
    result, forms = int(facts.merged_into[child]), facts.structure.forms
    is_summed = result in ends.summed and result not in found
    return int(is_summed and forms[parent] == forms[result])


def _splits(facts: TapeFacts, child: int, place: int) -> bool:
    """Tell whether each element of a sum over products depends on a matrix by an outer product."""
    kind, static = facts.kinds[facts.kind[child]], facts.structure.statics[child]
    keys = static.positional if isinstance(static, Constants) else (static,)
    texts = [key[1] for key in keys if isinstance(key, tuple) and key[0] is str]
    argnum = kind.argnums[place]
    return _rule(kind, argnum) is not None and len(texts) == 1 and splits(texts[0], argnum - 1)


def _lines_read(facts: TapeFacts, child: int, parent: int) -> int:
    """Return from how many rows, or columns, of a matrix an index takes elements at most; 0 if not known."""
    shape, of = (facts.structure.forms[index] for index in (child, parent))
    if facts.kinds[facts.kind[child]].primitive is not getitem or not is_shape(shape) or not prod(shape):
        return 0
    members = index_members(facts.structure.statics[child])
    if not all(isinstance(i, int | slice) or (isinstance(i, tuple) and i[0] in _BASIC) for i in members):
        return min(*of, prod(shape))
    long = [n for n in shape if n > 1]
    return min(long) if len(long) > 1 else 1


_BASIC: Final = frozenset({int, slice, type(None), type(...)})
"""Types of indices that take a grid of rows and columns."""


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


def are_spoiled(facts: TapeFacts, targets: Iterable[int]) -> bool:
    """Tell whether a sweep that starts with other adjoints than an identity makes some dense.

    It does if it starts at a matrix whose adjoints are factored in a sweep that starts behind it.
    """
    return any(index in facts.ranks and index != facts.structure.output for index in targets)


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
