"""Full Jacobians for autograd code by scheduled Jacobian chaining."""

from tapesplit.record import record
from tapesplit.rules.registry import defvector

__all__ = ["defvector", "record"]
