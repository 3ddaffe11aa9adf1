"""Triangular systems, recorded so that they depend on the matrix by their right-hand side only.

That side, see `adjusted_side`, serves scalar sweeps, rows and systems as a product does, as those of other
linear systems do.
"""

from typing import Any, Final, TypeAlias

import autograd.numpy as anp
import numpy as np
from scipy.linalg import solve_triangular

from tapesplit.arrays import FLOAT64
from tapesplit.recording.overrides import are_current, keeps_calls, original_vjps
from tapesplit.recording.primitives import adjusted_side
from tapesplit.recording.tape import NO_KEYWORDS, Entries

__all__ = ["OF_SIDES", "with_adjusted_side"]

_Active: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The numbers of active arguments, and their entries."""


def with_adjusted_side(
    entries: Entries, primitive: Any, active: _Active, args: tuple[Any, ...], kwargs: Any, value: Any
) -> _Active:
    """Record the right-hand side of a triangular system with an active matrix; return it as what is active.

    Of any other call, what is active stays as it is. Only the triangle that is read has derivatives.
    """
    is_covered = getattr(primitive, "fun", None) is solve_triangular and _covers(active[0], args, kwargs)
    if not is_covered or keeps_calls(primitive) or not are_current(_OF_TRIANGLES):
        return active
    argnums, (index, *others) = active
    a, b, trans, lower = _read(*args, **kwargs)
    kept, matrix = (_tril, np.tril(a)) if lower else (_triu, np.triu(a))
    index = triangle = entries.add(kept, (0,), (index,), (a,), NO_KEYWORDS, matrix)
    if trans not in ("N", 0):
        index = entries.add(_transpose, (0,), (index,), (matrix,), NO_KEYWORDS, matrix.T)
        matrix = matrix.T
    side = entries.add(adjusted_side, argnums, (index, *others), (matrix, b, -value), NO_KEYWORDS, b)
    entries.fix_solution(side, entries.size, triangle)  # the system itself comes next
    return (1,), (side,)


def _read(a: Any, b: Any, trans: Any = 0, lower: Any = False, **_: Any) -> tuple[Any, Any, Any, Any]:
    """Name the arguments of a call."""
    return a, b, trans, lower


def _covers(argnums: tuple[int, ...], args: tuple[Any, ...], kwargs: Any) -> bool:
    """Whether the matrix of a call is active, and both operands are plain arrays of the usual form."""
    if argnums[0] != 0 or not 2 <= len(args) <= 4 or not kwargs.keys() <= _HARMLESS:
        return False
    a, b = args[:2]
    are_double = all(type(x) is np.ndarray and x.dtype == FLOAT64 for x in (a, b))
    return are_double and a.ndim == 2 and b.ndim in {1, 2}


_HARMLESS: Final = frozenset({"trans", "lower", "check_finite"})
"""Keywords of a call that change nothing, or what is read here: with others, diagonals may count as ones."""
_tril, _triu, _transpose = anp.tril, anp.triu, anp.transpose
OF_SIDES: Final = original_vjps(anp.outer, anp.matmul, anp.swapaxes, anp.negative, anp.einsum, anp.dot)
"""autograd's VJPs of what gradients of solutions are made of, by ours or by autograd's rules: if one is
replaced, solutions are recorded as they are."""
_OF_TRIANGLES: Final = OF_SIDES | original_vjps(_tril, _triu, _transpose)
"""The same with what triangles are recorded as."""
