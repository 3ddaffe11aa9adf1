"""Structures that change from call to call: how often they do, and those that were seen without a plan."""

from dataclasses import dataclass
from typing import Final

from tapesplit.structures.comparison import fits, without_places
from tapesplit.structures.structure import Structure

__all__ = ["Changes"]

_HITS_FOR_A_MISS: Final = 4
"""Hits that make up for a miss."""
_CHANGING_AT: Final = 32
"""Hits that would make up for the misses, from which on structures keep changing: eight misses in a row."""
_MOST_UNPLANNED: Final = 32
"""Structures that are remembered without a plan."""
_WORTH_A_PLAN: Final = 4
"""Times that such a structure is seen until it gets one, which costs as much as some sweeps save."""


@dataclass(slots=True)
class Changes:
    """How the structures of a function change from call to call; callers that modify it hold a lock.

    ``excess`` is how many hits would make up for the misses; ``unplanned`` has structures without a plan,
    newest use first, and how often each has been seen. ``missed`` is the structure of the last miss, with the
    number of its look-ups that were not recorded since an equal one was. ``apart`` tells that these are to be
    recorded, too: which ones are equal changes from call to call. ``was_apart`` tells that it did not help.
    """

    excess: int = 0
    unplanned: tuple[tuple[Structure, int], ...] = ()
    missed: tuple[Structure, int] | None = None
    apart: bool = False
    was_apart: bool = False

    def count_hit(self) -> None:
        """Count a call that reuses a plan."""
        if self.excess:
            self.excess -= 1

    def count_miss(self) -> None:
        """Count a call for which there is no plan."""
        self.excess = min(self.excess + _HITS_FOR_A_MISS, 2 * _CHANGING_AT)
        if self.apart and self.go_on:
            self.apart, self.was_apart = False, True

    def compare(self, structure: Structure, repeats: int) -> None:
        """Note the structure of a miss; if they go on since other look-ups are equal, record these apart."""
        before, self.missed = self.missed, (structure, repeats)
        if before and self.go_on and not (self.apart or self.was_apart):
            self.apart = _coincide_otherwise(*before, *self.missed)
            if self.apart:
                self.excess = 0

    @property
    def go_on(self) -> bool:
        """Whether structures keep changing."""
        return self.excess >= _CHANGING_AT

    def is_rare(self, structure: Structure) -> bool:
        """Remember a structure without a plan; tell whether it has been seen too rarely to be worth one.

        Structures count as one if they differ only in what a plan can leave open, such as indices.
        """
        times, joint, others = 1, structure, list[tuple[Structure, int]]()
        for seen in self.unplanned:
            found = without_places(seen[0], joint)
            if found is None:
                others.append(seen)
            else:
                times, joint = times + seen[1], found
        self.unplanned = ((joint, times), *others)[:_MOST_UNPLANNED]
        return times < _WORTH_A_PLAN

    def often_seen(self, structure: Structure) -> Structure | None:
        """Return the structure that was seen often without a plan and fits this one; None if none was."""
        often = (seen for seen, times in self.unplanned if times >= _WORTH_A_PLAN)
        return next((seen for seen in often if fits(seen, structure)), None)


def _coincide_otherwise(known: Structure, known_repeats: int, structure: Structure, repeats: int) -> bool:
    """Tell whether two structures of equally many calls differ since other look-ups are equal in them."""
    before, now = len(known.forms), len(structure.forms)
    if before + known_repeats != now + repeats:
        return False
    if before != now:
        return True
    are_alike = known.primitives == structure.primitives and known.forms == structure.forms
    return repeats > 0 and are_alike and known.parents != structure.parents
