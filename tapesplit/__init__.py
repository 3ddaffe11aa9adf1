"""Full Jacobians for autograd code by scheduled Jacobian chaining."""

from typing import TYPE_CHECKING

import jcdp_core
from tapesplit.callback import Callback
from tapesplit.check import check_jacobian
from tapesplit.check_rule import check_vector_rule
from tapesplit.cuts.separators import Separator
from tapesplit.cuts.width_profile import WidthProfile
from tapesplit.decorator import JacobianFunction, parallel_jacobian
from tapesplit.errors import (
    ArgumentIndexError,
    ArgumentTypeError,
    ArgumentValueError,
    CommandError,
    InputTypeError,
    MemoryLimitError,
    MissingPackageError,
    NestedTraceError,
    NothingToPlanError,
    OutputTypeError,
    PlanMismatchError,
    RecordingError,
    RuleError,
    SeparatorError,
    StaleValueError,
    TapesplitError,
    UnnamedPrimitiveError,
    UnwritableFileError,
    WrongJacobianError,
    WrongRuleError,
)
from tapesplit.execution.coordinator import execute
from tapesplit.plan_cache import CacheInfo
from tapesplit.planning.plan import JacobianPlan
from tapesplit.planning.records import TaskRecord
from tapesplit.progress import progress_bar
from tapesplit.recording.recorder import record
from tapesplit.recording.tape import Tape
from tapesplit.rules.defvector import defvector
from tapesplit.rules.registry import rules_on_demand
from tapesplit.scipy_interface import fun_and_jac
from tapesplit.tape_cuts import check_separators, find_separators, profile_widths

__all__ = [
    "ArgumentIndexError",
    "ArgumentTypeError",
    "ArgumentValueError",
    "CacheInfo",
    "Callback",
    "CommandError",
    "InputTypeError",
    "JacobianFunction",
    "JacobianPlan",
    "MemoryLimitError",
    "MissingPackageError",
    "NestedTraceError",
    "NothingToPlanError",
    "OutputTypeError",
    "PlanMismatchError",
    "RecordingError",
    "RuleError",
    "Separator",
    "SeparatorError",
    "StaleValueError",
    "Tape",
    "TapesplitError",
    "TaskRecord",
    "UnnamedPrimitiveError",
    "UnwritableFileError",
    "WidthProfile",
    "WrongJacobianError",
    "WrongRuleError",
    "check_jacobian",
    "check_separators",
    "check_vector_rule",
    "defvector",
    "execute",
    "find_separators",
    "fun_and_jac",
    "parallel_jacobian",
    "profile_widths",
    "progress_bar",
    "record",
]

rules_on_demand("autograd.misc.fixed_points", "tapesplit.fixed_point_rule")
rules_on_demand("autograd.scipy.integrate", "tapesplit.odeint_rule")

if TYPE_CHECKING:  # else type checkers would take any name for one of ours
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """Look the version up when it is asked for: that takes milliseconds."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return jcdp_core.__version__


def __dir__() -> list[str]:
    """List what is public, for completion."""
    return [*__all__, "__version__"]
