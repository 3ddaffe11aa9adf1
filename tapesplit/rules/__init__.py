"""Vector rules: how primitives carry many directions at once."""

from tapesplit.rules import elementwise, linalg, movement, reductions
from tapesplit.rules.loop import loop_adjoint, loop_tangent
from tapesplit.rules.moves import IndexMap, index_map
from tapesplit.rules.registry import Bulk, Elementwise, Movement, Rule, count_edges, defvector, find_rule

__all__ = [
    "Bulk",
    "Elementwise",
    "IndexMap",
    "Movement",
    "Rule",
    "count_edges",
    "defvector",
    "elementwise",
    "find_rule",
    "index_map",
    "linalg",
    "loop_adjoint",
    "loop_tangent",
    "movement",
    "reductions",
]
