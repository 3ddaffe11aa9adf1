"""Full Jacobians for autograd code by scheduled Jacobian chaining."""

from tapesplit.check import check_jacobian, check_vector_rule
from tapesplit.execute import Callback, TaskRecord, execute
from tapesplit.jacobian import JacobianFunction, parallel_jacobian
from tapesplit.memory import keep_freed_memory
from tapesplit.plan import JacobianPlan
from tapesplit.plan_cache import CacheInfo
from tapesplit.progress import progress_bar
from tapesplit.record import record
from tapesplit.rules.registry import defvector
from tapesplit.scipy_interface import fun_and_jac
from tapesplit.separators import Separator
from tapesplit.tape import Tape
from tapesplit.tape_cuts import check_separators, find_separators, profile_widths

__all__ = [
    "CacheInfo",
    "Callback",
    "JacobianFunction",
    "JacobianPlan",
    "Separator",
    "Tape",
    "TaskRecord",
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

keep_freed_memory()
