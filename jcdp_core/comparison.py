"""All solvers on one chain, under the names of reports and results files."""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from time import perf_counter
from typing import Final

from jcdp_core.chain import JacobianChain
from jcdp_core.config import Config
from jcdp_core.schedulers import SchedulerName, schedule_sequence
from jcdp_core.solvers import Solution, SolverName, solve

__all__ = ["TITLES", "compare"]

TITLES: Final[Mapping[str, str]] = {
    "DP": "dynamic program",
    "DP_List": "dynamic program, its sequence rescheduled highest level first",
    "DP_BnB": "dynamic program, its sequence rescheduled exactly",
    "BnB_List": "heuristic: search with a node cap",
    "BnB_BnB": "exact: search over all sequences and schedules",
}
"""What each solver does, by its name in reports; results files have no DP_List."""


def compare(chain: JacobianChain, config: Config, machines: int | None) -> dict[str, Solution]:
    """Solve one chain with every solver.

    The configuration has the settings of the solvers, all but the number of machines, None for no limit.

    Returns
    -------
    dict of str to Solution
        By the keys of `TITLES`. ``BnB_BnB`` is the exact solver. In the reference implementation ``BnB_List``
        is the best list schedule over all sequences; here it is the heuristic, which plays the same role:
        better than the dynamic program, cheaper than the exact solver, without proof. Where the time of the
        exact solver ends and another one is better, its steps and schedule are taken. All have the best
        lower bound of any.

    Examples
    --------
    >>> solutions = compare(JacobianChain.from_sizes([3, 2, 5], [7, 11]), Config(), machines=2)
    >>> {name: solution.makespan for name, solution in solutions.items()}
    {'DP': 47, 'DP_List': 47, 'DP_BnB': 47, 'BnB_List': 47, 'BnB_BnB': 47}
    """

    def solution(method: SolverName) -> Solution:
        """Solve with the settings of the configuration."""
        return solve(
            chain,
            machines=machines,
            method=method,
            matrix_free=config.matrix_free,
            memory_limit=config.memory_limit,
            time_limit=config.time_limit,
        )

    found = solution("dp")
    others = {
        "DP": found,
        "DP_List": _reschedule(found, "highest_level_first", config.time_limit),
        "DP_BnB": _reschedule(found, "branch_and_bound", config.time_limit),
        "BnB_List": solution("heuristic"),
    }
    exact = solution("exact")
    # Another solver is better only where the time of the exact one ended before the proof.
    best = min(exact, *others.values(), key=attrgetter("makespan"))
    found_by = others | {"BnB_BnB": replace(exact, sequence=best.sequence, schedule=best.schedule)}
    bound = max(solution.lower_bound for solution in found_by.values())
    return {name: replace(solution, lower_bound=bound) for name, solution in found_by.items()}


def _reschedule(found: Solution, scheduler: SchedulerName, time_limit: float | None) -> Solution:
    """Return the solution with its sequence scheduled anew, from time zero.

    The bound stays that of *found*: it holds for all sequences, the scheduler's only for this one.
    """
    begin = perf_counter()
    scheduling = schedule_sequence(
        found.sequence, machines=found.machines, method=scheduler, time_limit=time_limit
    )
    seconds = found.seconds + perf_counter() - begin
    return replace(
        found,
        schedule=scheduling.schedule,
        method=f"{found.method}, {scheduler}",
        seconds=seconds,
        nodes=scheduling.nodes,
    )
