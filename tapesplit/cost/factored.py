"""Factored adjoints: which matrices have adjoints of low rank, and what adjoint sweeps are spared by that."""

from collections import defaultdict
from typing import NamedTuple

import autograd.numpy as anp
import numpy as np

from tapesplit.arrays import BoolArray, IntArray
from tapesplit.rules import Bulk, Movement
from tapesplit.rules.low_rank import FactoredRule, factored_rule, is_thin
from tapesplit.structures.facts import CallKind, TapeFacts
from tapesplit.structures.structure import is_shape

__all__ = ["Spared", "factored_ranks", "spared"]


class Spared(NamedTuple):
    """What adjoint sweeps need not do, each of shape ``(n,)``.

    ``whole`` are the entries that multiply or move factors only, ``edges`` the scalar edges that no direction
    goes through.
    """

    whole: BoolArray
    edges: IntArray


def factored_ranks(facts: TapeFacts) -> dict[int, int]:
    """Return the ranks of the adjoints that stay factored until the operation that takes them in.

    Parameters
    ----------
    facts
        What is known of tapes of the structure, n entries.

    Notes
    -----
    Factors that would be multiplied elementwise by a matrix count for none: whether they are depends on
    constants. Takes about 1 µs for each reading of a matrix where products have some to be factored.
    """
    has_rule = [any(_rule(kind, argnum) for argnum in kind.argnums) for kind in facts.kinds]
    may_be = [is_shape(form) and is_thin(1, form) for form in facts.forms]
    if not (any(has_rule) and any(may_be)):
        return {}
    read = np.flatnonzero(np.array(may_be)[facts.form[facts.parents]])
    children, parents = facts.children[read], facts.parents[read]
    if not np.array(has_rule)[facts.kind[children]].any():
        return {}
    places = read - facts.first_parent[children]
    readings: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for child, parent, place in zip(children.tolist(), parents.tolist(), places.tolist(), strict=True):
        readings[parent].append((child, place))
    ranks: dict[int, int] = {}
    for parent in sorted(readings, reverse=True):
        found = [_rank(facts, ranks.get(child, 0), child, place, parent) for child, place in readings[parent]]
        fits = all(found) and _takes_factors(facts.kinds[facts.kind[parent]])
        if fits and is_thin(sum(found), facts.forms[facts.form[parent]]):
            ranks[parent] = sum(found)
    ranks.pop(facts.structure.output or 0, None)
    return ranks


def _rank(facts: TapeFacts, given: int, child: int, place: int, parent: int) -> int:
    """Return the rank of the adjoints that an operation hands to an argument, zero if they are no factors."""
    kind = facts.kinds[facts.kind[child]]
    argnum = kind.argnums[place]
    shape, of_argument = (facts.forms[facts.form[i]] for i in (child, parent))
    if kind.is_elementwise:
        is_constant = not callable(kind.rule.partials[argnum])
        return given if is_constant and shape == of_argument else 0
    if isinstance(kind.rule, Movement):
        return given if kind.primitive is not anp.reshape else 0
    rule = _rule(kind, argnum)
    return rule.rank(given, shape) if rule and is_shape(shape) else 0


def _rule(kind: CallKind, argnum: int) -> FactoredRule | None:
    """Return the rule of calls of a kind by one argument, if it counts."""
    is_ours = isinstance(kind.rule, Bulk) and kind.rule.built_in
    return factored_rule(kind.primitive, argnum) if is_ours else None


def _takes_factors(kind: CallKind) -> bool:
    """Tell whether calls of a kind do not need the adjoints of their result as a whole."""
    if kind.is_elementwise or isinstance(kind.rule, Movement):
        return kind.primitive is not None
    return all(_rule(kind, argnum) for argnum in kind.argnums)


def spared(facts: TapeFacts) -> Spared:
    """Return the work that adjoint sweeps do not have.

    Parameters
    ----------
    facts
        What is known of tapes of the structure, n entries.
    """
    count = facts.sizes.size
    found = Spared(np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.int64))
    ranks = factored_ranks(facts)
    if not ranks:
        return found
    rank, numbers = np.zeros((2, count), dtype=np.int64)
    for index, given in ranks.items():
        rank[index], numbers[index] = given, given * sum(facts.forms[facts.form[index]])
    child, parent, sizes = facts.children, facts.parents, facts.sizes
    found.whole[:] = rank > 0
    needs_all = facts.elementwise[child] & (sizes[parent] == sizes[child]) & (rank[parent] == 0)
    found.whole[child[needs_all]] = False
    whole = np.flatnonzero(found.whole)
    found.edges[whole] = facts.edges[whole] * (sizes[whole] - numbers[whole]) // sizes[whole]
    makes = (rank[parent] > 0) & (rank[child] == 0)
    np.add.at(found.edges, child[makes], rank[parent[makes]] * sizes[parent[makes]])
    return found
