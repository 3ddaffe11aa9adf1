"""Vector rules: how primitives carry many directions at once."""

from tapesplit.rules import (  # noqa: F401 (importing these modules registers their rules)
    einsum,
    elementwise,
    factorizations,
    fft,
    gradients,
    linalg,
    movement,
    products,
    reductions,
    series,
)
from tapesplit.rules.elementwise import CHOICE
from tapesplit.rules.local import (
    has_local_structure,
    is_contraction,
    local_counts,
    local_matrix,
    local_structures,
)
from tapesplit.rules.look_ups import LOOK_UP, OPEN_RULES
from tapesplit.rules.loop import loop_adjoint, loop_tangent, usable_jvp, without_vjp
from tapesplit.rules.moves import IndexMap, getitem
from tapesplit.rules.numbering import CONTROLLED, index_maps, joint_index_map
from tapesplit.rules.products import PRODUCTS
from tapesplit.rules.reductions import is_reduction
from tapesplit.rules.registry import (
    Bulk,
    Elementwise,
    Movement,
    Partial,
    Rule,
    count_edges,
    find_rule,
    is_elementwise_call,
    is_replaced,
    registered,
    rules_defined,
    rules_on_demand,
)
from tapesplit.rules.solutions import lu_bytes, lu_kept
from tapesplit.rules.stacks import as_one_call, can_be_stacked, count_slices, shares_matrix, slices_of
from tapesplit.rules.symmetric_products import read_once
from tapesplit.rules.zeros import MATRIX_BY_MATRIX, MATRIX_BY_VECTOR, NonZeros, non_zeros

# Importing SciPy's larger modules takes longer than all the rest together.
for _name in ("special", "signal", "linalg", "stats"):
    rules_on_demand(f"autograd.scipy.{_name}", f"tapesplit.rules.scipy_{_name}")

__all__ = [
    "CHOICE",
    "CONTROLLED",
    "LOOK_UP",
    "MATRIX_BY_MATRIX",
    "MATRIX_BY_VECTOR",
    "OPEN_RULES",
    "PRODUCTS",
    "Bulk",
    "Elementwise",
    "IndexMap",
    "Movement",
    "NonZeros",
    "Partial",
    "Rule",
    "as_one_call",
    "can_be_stacked",
    "count_edges",
    "count_slices",
    "find_rule",
    "getitem",
    "has_local_structure",
    "index_maps",
    "is_contraction",
    "is_elementwise_call",
    "is_reduction",
    "is_replaced",
    "joint_index_map",
    "local_counts",
    "local_matrix",
    "local_structures",
    "loop_adjoint",
    "loop_tangent",
    "lu_bytes",
    "lu_kept",
    "non_zeros",
    "read_once",
    "registered",
    "rules_defined",
    "shares_matrix",
    "slices_of",
    "usable_jvp",
    "without_vjp",
]
