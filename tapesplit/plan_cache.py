"""The cache of plans: those of the last few structures, found by comparison."""

import os
import threading
from typing import NamedTuple

from tapesplit.plan import JacobianPlan
from tapesplit.structure import Structure, first_difference
from tapesplit.tape import Tape

__all__ = ["CacheInfo", "PlanCache"]


class CacheInfo(NamedTuple):
    """Statistics of the plan cache of one function.

    Attributes
    ----------
    hits
        Times that a plan was reused; asking for the plan counts.
    misses
        Times that a plan had to be made.
    currsize, maxsize
        Plans that are kept, and how many at most.
    last_miss
        Why the newest plan had to be made.
    """

    hits: int
    misses: int
    currsize: int
    maxsize: int
    last_miss: str


class PlanCache:
    """Plans for the structures seen last, newest use first.

    Safe for several threads: the plans stand in a tuple, which is replaced and never changed.

    Parameters
    ----------
    maxsize
        Number of plans that are kept.
    """

    def __init__(self, maxsize: int = 8) -> None:
        self._maxsize = maxsize
        self._plans: tuple[JacobianPlan, ...] = ()
        self._hits = 0
        self._misses = 0
        self._last_miss = "no plan yet"

    def find(self, structure: Structure, tape: Tape) -> JacobianPlan | None:
        """Return the plan for a structure; None if there is none, whose reason is then kept."""
        plan = self._match(structure)
        reason = None if plan else self._difference(structure, tape)
        with _lock:
            if plan is None:
                self._misses += 1
                self._last_miss = str(reason)
            else:
                self._hits += 1
                if self._plans[:1] != (plan,):
                    self._plans = (plan, *(other for other in self._plans if other is not plan))[
                        : self._maxsize
                    ]
        return plan

    def store(self, plan: JacobianPlan) -> None:
        """Keep a plan; the one that was not used for the longest time may go."""
        with _lock:
            self._plans = (plan, *self._plans)[: self._maxsize]

    def explain_miss(self, structure: Structure, tape: Tape) -> str | None:
        """Say why no plan fits a structure; None if one does."""
        return None if self._match(structure) else self._difference(structure, tape)

    def info(self) -> CacheInfo:
        """Return how often a plan was reused, and why not the last time."""
        with _lock:
            return CacheInfo(self._hits, self._misses, len(self._plans), self._maxsize, self._last_miss)

    def clear(self) -> None:
        """Forget all plans."""
        with _lock:
            self._plans = ()
            self._hits = self._misses = 0
            self._last_miss = "the cache was cleared"

    def _match(self, structure: Structure) -> JacobianPlan | None:
        """Look a plan up without counting."""
        return next((plan for plan in self._plans if plan.structure == structure), None)

    def _difference(self, structure: Structure, tape: Tape) -> str:
        """Compare with the plan that was used last."""
        plans = self._plans
        return first_difference(plans[0].structure, structure, tape) if plans else "first call"


# One lock for all caches, since a forked child must get a new one: nobody there could release it.
_lock = threading.Lock()


def _renew_lock_after_fork() -> None:
    """Replace the lock in a forked child."""
    global _lock  # noqa: PLW0603 (held for a few assignments only)
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock_after_fork)
