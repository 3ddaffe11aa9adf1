"""Clusters: which elementwise operations of a chunk are merged into one array step.

An operation is merged into the one that reads it, or into the reduction, such as a sum, that reads it. If
several results read it, and lead back to few values, it is merged into each of them: its derivatives are
computed for each, but with a single direction, and many directions are multiplied less often. A result that
is broadcast from smaller values is merged into several reductions if all its readers end there: no directions
ever have its size.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tapesplit.arrays import IntArray
from tapesplit.cost.contracted import WORTH_COPIES
from tapesplit.cuts.chunks import Chunk
from tapesplit.recording.tape import Tape
from tapesplit.rules import PRODUCTS
from tapesplit.structures.facts import TapeFacts
from tapesplit.structures.forms import is_shape
from tapesplit.sweeps.cluster_step import ClusterStep, Reduction
from tapesplit.sweeps.preaccumulation import Member, Term

__all__ = ["find_clusters"]


def find_clusters(
    tape: Tape,
    facts: TapeFacts,
    chunk: Chunk,
    directions: int,
    detached: Container[int],
    factored: Container[int],
) -> dict[int, ClusterStep]:
    """Merge the elementwise operations of a chunk with each other and with their reductions.

    `detached` are entries that have no directions. `factored` are those whose adjoints stay factored, so that
    products must not absorb them. Returns steps by the entry of their result; each elementwise operation is a
    member of one or more.
    """
    indices, kinds = chunk.entries.tolist(), facts.kind[chunk.entries].tolist()
    formulas = {kind: facts.kinds[kind].partials for kind in set(kinds)}
    can_be = {kind for kind in formulas if facts.kinds[kind].can_be_contracted}
    possible = [index for index, kind in zip(indices, kinds, strict=True) if kind in can_be]
    found = [(index, _reduction(tape, facts, index, directions, factored)) for index in possible]
    reductions = {index: reduction for index, reduction in found if reduction}
    broadcast = _broadcast(tape, facts, indices, directions) if reductions else set[int]()
    roots = _roots(facts, chunk.entries, directions) if directions >= _WORTH_JOINING else {}
    worth_copies = directions >= WORTH_COPIES
    finder = _Finder(tape, facts, detached, reductions, broadcast, roots, worth_copies)
    finder.homes.update((target, _ALONE) for target in chunk.targets)
    for index, kind in zip(reversed(indices), reversed(kinds), strict=True):
        partials = formulas[kind]
        if index in detached:
            continue
        if partials is not None:
            finder.place(index, partials)
        elif index in reductions:
            operand = reductions[index].operand
            finder.send([operand], frozenset([index]))
            finder.send([parent for parent in tape.parents[index] if parent != operand], _ALONE)
        else:
            finder.send(tape.parents[index], _ALONE)
    return {
        index: ClusterStep(index, tuple(cluster.members), tuple(cluster.inputs), reductions.get(index))
        for index, cluster in finder.clusters.items()
    }


_MOST_INPUTS: Final = 16
"""Values that merged operations read, at most: directions of all of them are alive at the same time."""
_WORTH_JOINING: Final = 10
"""Directions from which on operations of one size are merged into several results."""
_MOST_ROOTS: Final = 8
"""Values that these lead back to, at most."""
_MOST_DEAR: Final = 10
"""Pace of a formula that is evaluated for each of these results, at most, see `Elementwise`."""
_MOST_COPIES: Final = 4
"""Reductions that one operation is merged into, at most."""
_WORTH_CONTRACTING: Final = 3000
"""Elements times directions from which on contractions, which take time to set up, are worth it, and so is
merging an operation into several results."""
_ALONE: Final = frozenset([-1])
"""Home of values that something else reads, too: they are merged into nothing."""


def _broadcast(tape: Tape, facts: TapeFacts, indices: Sequence[int], directions: int) -> set[int]:
    """Find the elementwise operations that are made of smaller values only, maybe through others.

    Those with formulas are left out if there are few directions.
    """
    found: set[int] = set()
    for index in indices:
        has_formulas = facts.kinds[facts.kind[index]].has_formulas
        if facts.elementwise[index] and (directions >= WORTH_COPIES or not has_formulas):
            parents, size = tape.parents[index], facts.sizes[index]
            if all(parent in found or facts.sizes[parent] < size for parent in parents):
                found.add(index)
    return found


def _roots(facts: TapeFacts, entries: IntArray, directions: int) -> dict[int, frozenset[int]]:
    """Find the values that elementwise operations on arrays lead back to, through others of the same shape.

    Small ones, and those whose formulas are better not evaluated for several results, are left out.
    """
    roots: dict[int, frozenset[int]] = {}
    forms, parents, kinds = facts.structure.forms, facts.structure.parents, facts.kinds
    is_large = facts.sizes[entries] * directions >= _WORTH_CONTRACTING
    for index in entries[is_large & facts.elementwise[entries]].tolist():
        form, rule = forms[index], kinds[facts.kind[index]].rule
        if is_shape(form) and form and rule.pace <= _MOST_DEAR:
            found = frozenset[int]().union(
                *(roots[i] if i in roots and forms[i] == form else (i,) for i in parents[index])
            )
            roots[index] = found if len(found) <= _MOST_ROOTS else frozenset([index])
    return roots


@dataclass(slots=True)
class _Cluster:
    """A step in the making: its members, the last one first, and the values that these read."""

    members: list[Member] = field(default_factory=list)
    inputs: dict[int, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Finder:
    """Walks through a chunk from its end; ``homes`` has the steps, by their results, that read each value."""

    tape: Tape
    facts: TapeFacts
    detached: Container[int]
    reductions: Mapping[int, Reduction]
    broadcast: Container[int]
    roots: Mapping[int, frozenset[int]]
    worth_copies: bool
    homes: dict[int, AbstractSet[int]] = field(default_factory=dict)
    clusters: dict[int, _Cluster] = field(default_factory=dict)

    def send(self, values: Iterable[int], homes: AbstractSet[int]) -> None:
        """Note that steps with these results read some values, besides steps that were noted before."""
        for value in values:
            known = self.homes.setdefault(value, homes)
            if known is not homes and known is not _ALONE:
                joint = known | homes
                self.homes[value] = _ALONE if joint >= _ALONE or len(joint) > _MOST_COPIES else joint

    def place(self, index: int, formulas: tuple[Callable[..., Any] | float | None, ...]) -> None:
        """Merge an operation into the steps that read it, or begin a step with it."""
        parents, detached = self.tape.parents[index], self.detached
        active = dict.fromkeys(
            [parent for parent in parents if parent not in detached] if detached else parents
        )
        terms = [
            Term(parent, formula)
            for parent, formula in zip(parents, formulas, strict=True)
            if formula is not None and parent in active
        ]
        homes = self.homes.pop(index, _ALONE)
        if homes is _ALONE or not self._fits(index, active, homes):
            homes = frozenset([index])
        member = Member(index, tuple(terms))
        for home in homes:
            cluster = self.clusters.get(home)
            if cluster is None:
                cluster = self.clusters[home] = _Cluster(inputs=self._weights_of(home))
            cluster.members.append(member)
            cluster.inputs.pop(index, None)
            cluster.inputs.update(active)
        if not is_shape(self.facts.structure.forms[index]):
            self.send([parent for parent in active if self._becomes_complex(index, parent)], _ALONE)
        self.send(active, homes)

    def _fits(self, index: int, active: Collection[int], homes: AbstractSet[int]) -> bool:
        """Tell whether an operation had better be merged into all results that read it."""
        forms = self.facts.structure.forms
        is_broadcast = index in self.broadcast and (self.worth_copies or not self._are_numbers(homes))
        if len(homes) > 1 and not is_broadcast and not self._saves_products(index, homes):
            return False
        for home in homes:
            cluster = self.clusters.get(home)
            if home not in self.reductions:
                if len(homes) > 1 and is_broadcast:
                    return False
            elif not all(is_shape(forms[i]) for i in (index, *active)):
                return False
            if cluster is None:  # this operation is the operand of the reduction
                continue
            if len(cluster.inputs) + len(active) > _MOST_INPUTS:
                return False
            result = cluster.members[0].number
            if (
                len(active) > 1
                and forms[index] != forms[result]
                and self._elements(index) != self._elements(result)
            ):
                return False  # two steps make one product more, but multiply fewer elements
        return True

    def _are_numbers(self, homes: AbstractSet[int]) -> bool:
        """Tell whether all is summed: directions of a sum are numbers, so that few of them cost little."""
        return all(self.facts.sizes[home] == 1 for home in homes)

    def _saves_products(self, index: int, homes: AbstractSet[int]) -> bool:
        """Tell whether fewer products of directions are left if results of its size take an operation in."""
        forms, own = self.facts.structure.forms, self.roots.get(index)
        if own is None:
            return False
        merged = 0
        for home in homes:
            cluster = self.clusters.get(home)
            if cluster and forms[index] != forms[cluster.members[0].number]:
                return False
            inputs = cluster.inputs if cluster else self._weights_of(home)
            others = [self.roots.get(i, frozenset([i])) for i in inputs if i != index]
            merged += len(own.difference(*others))
        return merged < len(homes) + len(own)

    def _becomes_complex(self, index: int, parent: int) -> bool:
        """Whether a complex value is computed from a real one: directions lose their imaginary part there."""
        value, operand = (self.tape.values[i] for i in (index, parent))
        return np.iscomplexobj(value) and not np.iscomplexobj(operand)

    def _weights_of(self, home: int) -> dict[int, None]:
        """Return what a reduction weighs by, if that has derivatives."""
        weights = self.reductions[home].weights if home in self.reductions else None
        return {} if weights is None else {weights: None}

    def _elements(self, index: int) -> int:
        """Count the elements of a value, complex ones once."""
        return int(self.facts.sizes[index] >> self.facts.is_complex[index])


def _reduction(
    tape: Tape, facts: TapeFacts, index: int, directions: int, factored: Container[int]
) -> Reduction | None:
    """Describe a sum along axes; None if its rule does not cover this call or a contraction does not pay."""
    primitive, parents = tape.primitives[index], tape.parents[index]
    rule, forms = facts.kinds[facts.kind[index]].rule, facts.structure.forms
    is_product = primitive in PRODUCTS
    # Only elementwise operations that are large are worth absorbing; in products, only matrices.
    taken = [
        i
        for i in parents
        if facts.elementwise[i] and (not is_product or (len(forms[i]) == 2 and i not in factored))
    ]
    if not taken or not is_shape(forms[index]) or max(facts.sizes[taken]) * directions < _WORTH_CONTRACTING:
        return None
    entry = tape[index]
    with np.errstate(all="ignore"):
        found = rule.weigh(entry.value, *entry.args, **entry.kwargs)
    if found is None or found.argnum not in entry.argnums or np.size(entry.args[found.argnum]) <= 1:
        return None
    operand = parents[entry.argnums.index(found.argnum)]
    weights = [parent for parent in parents if parent != operand]
    if weights and not is_shape(forms[weights[0]]):
        return None
    is_weighted = bool(np.ndim(found.weights))
    return Reduction(rule, operand, found.axes, weights[0] if weights else None, is_weighted)
