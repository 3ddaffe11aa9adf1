"""Full Jacobians for autograd code by scheduled Jacobian chaining."""

from tapesplit.execute import Callback, TaskRecord, execute
from tapesplit.jacobian import JacobianFunction, parallel_jacobian
from tapesplit.plan import JacobianPlan
from tapesplit.record import record
from tapesplit.rules.registry import defvector
from tapesplit.separators import Separator
from tapesplit.tape import Tape

__all__ = [
    "Callback",
    "JacobianFunction",
    "JacobianPlan",
    "Separator",
    "Tape",
    "TaskRecord",
    "defvector",
    "execute",
    "parallel_jacobian",
    "record",
]
