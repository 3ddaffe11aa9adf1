"""The options of a Jacobian function, and which of them its plans depend on."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from tapesplit.callback import Callback
from tapesplit.planning.planner import PlanOptions, usable_cores
from tapesplit.validation import Cost, Method, check_choice, check_flag, check_helpers, check_limit

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """What `parallel_jacobian` was asked for; see there."""

    argnum: int | tuple[int, ...]
    has_aux: bool
    machines: int | None
    method: Method
    cost: Cost
    memory_limit: int | None
    executor: Executor | None
    callback: Callback | None

    def __post_init__(self) -> None:
        check_choice("method", self.method, Method)
        check_choice("cost", self.cost, Cost)
        check_limit("machines", self.machines)
        check_limit("memory_limit", self.memory_limit)
        check_flag("has_aux", self.has_aux)
        check_helpers(self.executor, self.callback)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions in argnum, as a tuple."""
        return (self.argnum,) if isinstance(self.argnum, int) else self.argnum

    @property
    def for_plans(self) -> PlanOptions:
        """The options that a plan depends on."""
        forced = self.executor is not None
        machines = self.machines or usable_cores()
        return PlanOptions(machines, forced, self.method, self.cost, self.memory_limit)

    @property
    def may_do_without_plans(self) -> bool:
        """Whether none of the options needs a plan."""
        helpers = (self.memory_limit, self.executor, self.callback)
        return self.method == "auto" and self.cost == "runtime" and all(helper is None for helper in helpers)

    def packed(self, items: Sequence[Any]) -> Any:
        """Return the only item for an integer argnum, else a tuple of the items, one for each position."""
        return items[0] if isinstance(self.argnum, int) else tuple(items)
