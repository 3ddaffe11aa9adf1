"""The cache of plans: those of the last few structures, found by comparison.

Where light tapes have another structure at nearly every call, only those seen several times get a plan.
"""

import pickle
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tapesplit.changes import Changes
from tapesplit.forks import renew_after_fork
from tapesplit.planning.plan import JacobianPlan
from tapesplit.recording.overrides import vjps_of
from tapesplit.recording.tape import Tape
from tapesplit.rules import is_replaced, rules_defined
from tapesplit.shared_plans import KeptPlan, Origin, changes_of, forget_shared, share, shared
from tapesplit.structures.comparison import first_difference, without_places
from tapesplit.structures.structure import Structure, structure_of

__all__ = ["CacheInfo", "PlanCache"]


class CacheInfo(NamedTuple):
    """Statistics of the plan cache of one function.

    Attributes
    ----------
    hits
        Calls, including calls of `plan`, that reused an existing plan, its own or that of another function
        with the same code.
    misses
        Calls for whose structure there was no plan.
    currsize, maxsize
        Number of plans that are kept, and the maximum.
    last_miss
        Why there was none the last time; "" if there has been no miss.

    Examples
    --------
    >>> info = CacheInfo(hits=7, misses=1, currsize=1, maxsize=8, last_miss="first call")
    >>> info.hits / (info.hits + info.misses)
    0.875
    """

    hits: int
    misses: int
    currsize: int
    maxsize: int
    last_miss: str


_MOST_PLANS: Final = 8
"""Plans that are kept at a time."""
_SEVERAL: Final = 2
"""Indices that get plans of their own, before one plan is made that reads them from the tape."""
_CHANGING: Final = "no plan was made: the structure is another one at nearly every call"
_NEW_RULES: Final = "rules have been defined since the last call"


class PlanCache:
    """Plans for the structures seen last by one function, newest use first.

    Safe for several threads: the plans stand in a tuple, which is replaced and never changed. Threads that
    plan for one structure at the same time get one plan. Plans of functions of the same ``origin`` are used,
    too, see `shared_plans`.
    """

    def __init__(self) -> None:
        self._kept: tuple[KeptPlan, ...] = ()
        self._hits = 0
        self._misses = 0
        self._last_miss = ""
        self._why_empty = "first call"
        self._clears = 0
        self._changes = Changes()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what does not pickle: plans with local functions."""
        self._forget_old_rules()
        plans = tuple(filter(None, (_pickled(kept.plan) for kept in self._kept)))
        return vars(self) | {"_kept": plans, "_changes": Changes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Assume that plans were made with the rules of this process; drop those whose rules are replaced."""
        vars(self).update(state)
        plans = [pickle.loads(plan) for plan in state["_kept"]]  # noqa: S301 (part of what is being loaded)
        known = [KeptPlan(plan, rules_defined(), vjps_of(plan.structure.primitives)) for plan in plans]
        self._kept = tuple(kept for kept in known if not any(map(is_replaced, kept.vjps)))

    @property
    def latest(self) -> JacobianPlan | None:
        """The plan that was used last."""
        kept = self._kept
        return kept[0].plan if kept else None

    @property
    def apart(self) -> bool:
        """Whether equal look-ups are to be recorded apart, see `Changes`."""
        return self._changes.apart

    def plan_for(
        self,
        tape: Tape,
        origin_now: Callable[[], Origin | None],
        make: Callable[[Structure], JacobianPlan],
        may_do_without: Callable[[Structure], bool] | None,
    ) -> JacobianPlan | None:
        """Return the plan for the structure of a tape; make it if there is none, and keep the reason why.

        None if structures keep changing, and this one may do without a plan.
        """
        self._forget_old_rules()
        clears, own = self._clears, self._kept
        kept = _recognized(own, tape)
        if kept is not None and kept is own[0]:  # as nearly always
            with _lock:
                self._count_hit()
            return kept.plan
        origin = origin_now()
        if origin is not None:
            with _lock:
                self._changes = changes_of(origin)
        others = self._of_others(origin)
        kept = kept or _recognized(others[:_MOST_PLANS], tape)
        if kept is None:
            structure = structure_of(tape)
            kept = _match(own + others, structure)
            if kept is None:
                is_light = self._changes.go_on and may_do_without and may_do_without(structure)
                with _lock:
                    self._changes.compare(structure, tape.entries.repeats)
                if is_light and self._is_one_of_many(structure):
                    return None
                return self._made(structure, tape, origin, make, clears)
        with _lock:
            self._count_hit()
            self._keep(kept, origin, clears)
        return kept.plan

    def _count_hit(self) -> None:
        """Count a call that reuses a plan."""
        self._hits += 1
        self._changes.count_hit()

    def _count_miss(self, reason: str) -> None:
        """Count a call for which there is no plan."""
        self._misses += 1
        self._last_miss = reason
        self._changes.count_miss()

    def _is_one_of_many(self, structure: Structure) -> bool:
        """Tell whether a structure has been seen too rarely to be worth a plan; if so, count the miss."""
        with _lock:
            is_rare = self._changes.is_rare(structure)
            if is_rare:
                self._count_miss(_CHANGING)
            return is_rare

    def _made(
        self,
        structure: Structure,
        tape: Tape,
        origin: Origin | None,
        make: Callable[[Structure], JacobianPlan],
        clears: int,
    ) -> JacobianPlan:
        """Make a plan, unless another thread is faster; the one that was not used for the longest may go."""
        reason = self._difference(structure, tape, origin)
        with _lock:
            self._count_miss(reason)
        made = KeptPlan.made(make, self._with_open_places(structure, origin))
        with _lock:
            kept = _match(self._known(origin), structure) or made
            self._keep(kept, origin, clears)
        return kept.plan

    def _with_open_places(self, structure: Structure, origin: Origin | None) -> Structure:
        """Leave open the indices, or zeros of matrices, in which several structures differ that were seen."""
        often_seen = self._changes.often_seen(structure)
        if often_seen is not None:
            return often_seen
        several, found = 0, structure  # shared plans count that this cache has dropped: shapes may take turns
        for kept in self._known(origin):
            joint = without_places(kept.plan.structure, found)
            if joint is not None:
                several, found = several + 1, joint
        return found if several >= _SEVERAL else structure

    def _forget_old_rules(self) -> None:
        """Forget all plans if rules have been defined since they were made."""
        if not all(kept.is_current for kept in self._kept):
            with _lock:
                self._forget(_NEW_RULES)

    def _forget(self, reason: str) -> None:
        """Forget all plans, also those that are being made."""
        self._kept = ()
        self._why_empty = reason
        self._clears += 1

    def _keep(self, used: KeptPlan, origin: Origin | None, clears: int) -> None:
        """Put a plan in front, unless all plans have been forgotten since it was asked for."""
        if self._clears == clears:
            self._kept = (used, *(kept for kept in self._kept if kept.plan is not used.plan))[:_MOST_PLANS]
            share(origin, used)

    def explain_miss(self, structure: Structure, tape: Tape, origin: Origin | None) -> str | None:
        """Say why no plan fits a structure; None if one does."""
        self._forget_old_rules()
        is_known = _match(self._known(origin), structure)
        return None if is_known else self._difference(structure, tape, origin)

    def info(self) -> CacheInfo:
        """Return how often a plan was reused, and why not the last time."""
        with _lock:
            return CacheInfo(self._hits, self._misses, len(self._kept), _MOST_PLANS, self._last_miss)

    def clear(self, origin: Origin | None) -> None:
        """Forget all plans, also those that are shared by functions of the origin."""
        with _lock:
            self._forget("the cache was cleared")
            forget_shared(origin)
            self._hits = self._misses = 0
            self._changes = Changes()
            self._last_miss = ""

    def _of_others(self, origin: Origin | None) -> tuple[KeptPlan, ...]:
        """Return the plans that only other functions of the origin have used."""
        own = {id(kept.plan) for kept in self._kept}
        return tuple(kept for kept in shared(origin) if id(kept.plan) not in own)

    def _known(self, origin: Origin | None) -> tuple[KeptPlan, ...]:
        """Return all plans that may be used, own ones first."""
        return self._kept + self._of_others(origin)

    def _difference(self, structure: Structure, tape: Tape, origin: Origin | None) -> str:
        """Compare with the plan that was used last, by the function or by others of the origin."""
        if self._kept:
            return first_difference(self._kept[0].plan.structure, structure, tape)
        others = self._of_others(origin)
        if not others:
            return self._why_empty
        changed = first_difference(others[0].plan.structure, structure, tape)
        return f"{self._why_empty}; compared with the last function of the same code, {changed}"


def _match(plans: tuple[KeptPlan, ...], structure: Structure) -> KeptPlan | None:
    """Find the plan that fits a structure."""
    return next((kept for kept in plans if kept.fits(structure)), None)


def _recognized(plans: tuple[KeptPlan, ...], tape: Tape) -> KeptPlan | None:
    """Find the plan whose structure a tape has, by checks that do not need the structure of the tape."""
    for kept in plans:
        # Lengths are compared first, as it takes time to make a recognizer.
        if len(kept.plan.structure.forms) == len(tape) and kept.recognizer.accepts(tape):
            return kept
    return None


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
