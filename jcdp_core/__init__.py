"""Jacobian chain dynamic programming: the cheapest way to compute the Jacobian of a chain."""

from typing import TYPE_CHECKING

from jcdp_core.certify import check_schedule, check_sequence
from jcdp_core.chain import ElementalJacobian, JacobianChain
from jcdp_core.chain_file import read_chains
from jcdp_core.config import Config, read_config
from jcdp_core.errors import (
    ArgumentTypeError,
    ConfigError,
    InfeasibleError,
    InvalidChainError,
    InvalidOperationError,
    InvalidScheduleError,
    InvalidSequenceError,
    JcdpError,
    ResultsError,
    SolverError,
)
from jcdp_core.generator import ChainGenerator, Flavour
from jcdp_core.operation import Action, Mode, Operation
from jcdp_core.schedule import Schedule, Task
from jcdp_core.schedulers import SchedulerName, Scheduling, schedule_sequence
from jcdp_core.sequence import EliminationSequence
from jcdp_core.solvers import Problem, Solution, SolverName, solve
from jcdp_core.solvers.dynamic_programming import makespans
from jcdp_core.solvers.worst_case import comb_sequence, worst_case_bound, worst_case_chain

__all__ = [
    "Action",
    "ArgumentTypeError",
    "ChainGenerator",
    "Config",
    "ConfigError",
    "ElementalJacobian",
    "EliminationSequence",
    "Flavour",
    "InfeasibleError",
    "InvalidChainError",
    "InvalidOperationError",
    "InvalidScheduleError",
    "InvalidSequenceError",
    "JacobianChain",
    "JcdpError",
    "Mode",
    "Operation",
    "Problem",
    "ResultsError",
    "Schedule",
    "SchedulerName",
    "Scheduling",
    "Solution",
    "SolverError",
    "SolverName",
    "Task",
    "check_schedule",
    "check_sequence",
    "comb_sequence",
    "makespans",
    "read_chains",
    "read_config",
    "schedule_sequence",
    "solve",
    "worst_case_bound",
    "worst_case_chain",
]

if TYPE_CHECKING:  # else type checkers would take any name for one of ours
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """Look the version up when it is asked for: that takes milliseconds."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - takes longer still

        try:
            return version("tapesplit")
        except PackageNotFoundError:  # the folder of a checkout is on the path, and nothing is installed
            return "unknown"


def __dir__() -> list[str]:
    """List what is public, for completion."""
    return [*__all__, "__version__"]
