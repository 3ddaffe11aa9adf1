"""The cache of plans: those of the last few structures, found by comparison."""

import pickle
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tapesplit.forks import renew_after_fork
from tapesplit.planning.plan import JacobianPlan
from tapesplit.recording.overrides import are_current, vjps_of
from tapesplit.recording.tape import Tape
from tapesplit.rules import is_replaced, rules_defined
from tapesplit.structures.comparison import first_difference, fits, without_places
from tapesplit.structures.recognize import Recognizer, recognizer
from tapesplit.structures.structure import Structure, structure_of

__all__ = ["CacheInfo", "PlanCache"]


class CacheInfo(NamedTuple):
    """Statistics of the plan cache of one function.

    Attributes
    ----------
    hits
        Times that a plan was reused; asking for the plan counts.
    misses
        Times that a plan had to be made, or taken over from another function with the same code.
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


class _Kept(NamedTuple):
    """A plan, the VJPs of then, and what recognizes its tapes: None until the plan is used a second time."""

    plan: JacobianPlan
    vjps: dict[Any, Any]
    recognizer: Recognizer | None = None


_SEVERAL: Final = 2
"""Index arrays that get plans of their own, before one plan is made that reads them from the tape."""
_NO_PLAN: Final = "no plan yet"
_NEW_RULES: Final = "rules have been defined since the last call"


class PlanCache:
    """Plans for the structures seen last, newest use first.

    Safe for several threads: the plans stand in a tuple, which is replaced and never changed. Threads that
    plan for one structure at the same time get one plan.

    Parameters
    ----------
    maxsize
        Number of plans that are kept.
    """

    def __init__(self, maxsize: int = 8) -> None:
        self._maxsize = maxsize
        self._kept: tuple[_Kept, ...] = ()
        self._hits = 0
        self._misses = 0
        self._last_miss = _NO_PLAN
        self._why_empty = "first call"
        self._clears = 0
        self._rules = rules_defined()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what does not pickle: what recognizes tapes, and plans with local functions.

        The next use makes it again.
        """
        self._forget_old_rules()
        return vars(self) | {"_kept": tuple(filter(None, (_pickled(kept.plan) for kept in self._kept)))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the rules of this process for those that the plans were made of, but for what it replaces."""
        vars(self).update(state, _rules=rules_defined())
        plans = [pickle.loads(plan) for plan in state["_kept"]]  # noqa: S301 (part of what is being loaded)
        known = [(plan, vjps_of(plan.structure.primitives)) for plan in plans]
        self._kept = tuple(_Kept(plan, vjps) for plan, vjps in known if not any(map(is_replaced, vjps)))

    @property
    def latest(self) -> JacobianPlan | None:
        """The plan that was used last."""
        kept = self._kept
        return kept[0].plan if kept else None

    def plan_for(self, tape: Tape, make: Callable[[Structure], JacobianPlan]) -> JacobianPlan:
        """Return the plan for the structure of a tape; make it if there is none, and keep the reason why."""
        self._forget_old_rules()
        clears = self._clears
        for kept in self._kept:
            if kept.recognizer and kept.recognizer.accepts(tape):
                break
        else:
            structure = structure_of(tape)
            match = self._match(structure)
            if match is None:
                return self._made(structure, tape, make, clears)
            kept = match._replace(recognizer=recognizer(match.plan.structure, tape))
        with _lock:
            self._hits += 1
            if not self._kept or self._kept[0] is not kept:
                self._keep(kept, clears)
        return kept.plan

    def _made(
        self, structure: Structure, tape: Tape, make: Callable[[Structure], JacobianPlan], clears: int
    ) -> JacobianPlan:
        """Make a plan, unless another thread is faster; the one that was not used for the longest may go."""
        reason = self._difference(structure, tape)
        with _lock:
            self._misses += 1
            self._last_miss = reason
        plan = make(self._with_open_places(structure))
        with _lock:
            kept = self._match(structure) or _Kept(plan, vjps_of(structure.primitives))
            self._keep(kept, clears)
        return kept.plan

    def _with_open_places(self, structure: Structure) -> Structure:
        """Leave out the contents of index arrays if plans are kept for several of them."""
        several, found = 0, structure
        for kept in self._kept:
            joint = without_places(kept.plan.structure, found)
            if joint is not None:
                several, found = several + 1, joint
        return found if several >= _SEVERAL else structure

    def _forget_old_rules(self) -> None:
        """Forget all plans if rules have been defined since they were made."""
        if self._rules == rules_defined() and all(are_current(vjps) for _, vjps, _ in self._kept):
            return
        with _lock:
            self._rules = rules_defined()
            self._forget(_NEW_RULES if self._kept else self._why_empty)

    def _forget(self, reason: str) -> None:
        """Forget all plans, also those that are being made."""
        self._kept = ()
        self._why_empty = reason
        self._clears += 1

    def _keep(self, kept: _Kept, clears: int) -> None:
        """Put a plan in front, unless all plans have been forgotten since it was asked for."""
        if self._clears != clears:
            return
        others = [other for other in self._kept if other.plan is not kept.plan]
        self._kept = (kept, *others)[: self._maxsize]

    def explain_miss(self, structure: Structure, tape: Tape) -> str | None:
        """Say why no plan fits a structure; None if one does."""
        self._forget_old_rules()
        return None if self._match(structure) else self._difference(structure, tape)

    def info(self) -> CacheInfo:
        """Return how often a plan was reused, and why not the last time."""
        with _lock:
            return CacheInfo(self._hits, self._misses, len(self._kept), self._maxsize, self._last_miss)

    def clear(self) -> None:
        """Forget all plans."""
        with _lock:
            self._forget("the cache was cleared")
            self._hits = self._misses = 0
            self._last_miss = _NO_PLAN

    def _match(self, structure: Structure) -> _Kept | None:
        """Look a plan up without counting."""
        return next((kept for kept in self._kept if fits(kept.plan.structure, structure)), None)

    def _difference(self, structure: Structure, tape: Tape) -> str:
        """Compare with the plan that was used last."""
        latest = self.latest
        return first_difference(latest.structure, structure, tape) if latest else self._why_empty


def _pickled(plan: JacobianPlan) -> bytes | None:
    """Pickle a plan; None if something that it refers to has no name."""
    try:
        return pickle.dumps(plan)
    except (pickle.PicklingError, AttributeError, TypeError):  # whatever the Python version raises
        return None


# One lock for all caches, since a forked child must get a new one: nobody there could release it. Comparing
# structures may run the user's code, which may come back here.
_lock = threading.RLock()


def _renew_lock() -> None:
    """Replace the lock in a forked child."""
    global _lock  # noqa: PLW0603 (held for assignments and comparisons only)
    _lock = threading.RLock()


renew_after_fork(_renew_lock)
