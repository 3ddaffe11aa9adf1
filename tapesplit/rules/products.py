"""Products of arrays: linear in each of their two operands.

Most are contractions: every axis of the operands and of the result has a label, equal labels are one index,
and an index that the result lacks is summed. Swapping the roles of the three arrays gives all four
directional forms, so that one line registers a contraction.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from math import prod
from typing import Any, Final, TypeAlias

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_vjps import dot_adjoint_0, dot_adjoint_1, tensordot_adjoint_0, tensordot_adjoint_1

from tapesplit.matrix_product import multiply
from tapesplit.recording.primitives import adjusted_side
from tapesplit.rules.axes import behind, fold, lifted, of_arrays
from tapesplit.rules.contraction import AXES, FREE, contract
from tapesplit.rules.registry import Weighing, bulk

__all__ = [
    "LABELS",
    "PRODUCTS",
    "Labeled",
    "Labels",
    "dot_labels",
    "inner_labels",
    "lettered",
    "one_product",
]

Labels: TypeAlias = list[int]
Labeled: TypeAlias = tuple[Labels, Labels, Labels]
"""Labels of the axes of both operands, and of the result."""

PRODUCTS: Final = frozenset({anp.matmul, anp.dot, anp.inner, anp.outer, anp.kron, anp.einsum})
"""Products all of whose array arguments are operands, none of them an option."""


def _bilinear(
    primitive: Any,
    tangents: Sequence[Callable[..., Any]],
    adjoints: Sequence[Callable[..., Any]],
    edges: Callable[..., int],
    weigh: Callable[..., Weighing | None] | None = None,
) -> None:
    """Register a product; lists count as arrays."""
    bulk(
        primitive,
        tangents=list(map(of_arrays, tangents)),
        adjoints=list(map(of_arrays, adjoints)),
        edges=edges,
        weigh=weigh,
    )


def _contraction(primitive: Any, labels: Callable[..., Labeled]) -> None:
    """Register a contraction; ``labels(x, y, *rest, **kwargs)`` labels the axes of x, y and the result."""
    _bilinear(primitive, *_by_labels(labels))


_Functions: TypeAlias = list[Callable[..., Any]]


def _by_labels(labels: Callable[..., Labeled]) -> tuple[_Functions, _Functions, Callable[..., int]]:
    """Make tangent and adjoint functions of a contraction, and the count of its edges."""

    def edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
        """|E|: one edge for each product of two elements, for each active operand (m k n for matrices)."""
        of_x, _, of_ans = labels(*args, **kwargs)
        summed = [n for label, n in zip(of_x, np.shape(args[0]), strict=True) if label not in of_ans]
        return int(np.size(ans)) * prod(summed) * len(argnums)

    tangents, adjoints = ([_form(labels, i, adjoint=adjoint) for i in (0, 1)] for adjoint in (False, True))
    return tangents, adjoints, edges


def _form(labels: Callable[..., Labeled], argnum: int, *, adjoint: bool) -> Callable[..., Any]:
    """Make the tangent or adjoint function by one operand, a contraction of directions with the other one."""
    source, target = (2, argnum) if adjoint else (argnum, 2)
    other = 1 - argnum

    def form(X: np.ndarray, ans: Any, x: Any, y: Any, *rest: Any, **kwargs: Any) -> Any:
        known = lettered(labels(x, y, *rest, **kwargs))
        if known is None:
            return NotImplemented
        return contract((FREE[0] + known[source], known[other]), [X, (x, y)[other]], FREE[0] + known[target])

    return form


def _tensordot_labels(a_ndim: int, b_ndim: int, axes: Any) -> Labeled:
    """Label the axes of a, of b and of ``tensordot(a, b, axes)``."""
    if isinstance(axes, (int, np.integer)):
        axes = (range(a_ndim - axes, a_ndim), range(axes))
    left, right = (
        [int(i) % n for i in np.atleast_1d(x)] for x, n in zip(axes, (a_ndim, b_ndim), strict=True)
    )
    of_a = list(range(a_ndim))
    of_b = [left[right.index(i)] if i in right else a_ndim + i for i in range(b_ndim)]
    return of_a, of_b, [i for i in of_a if i not in left] + [i for i in of_b if i >= a_ndim]


def dot_labels(a_ndim: int, b_ndim: int) -> Labeled:
    """Label a dot product: last axis of a, last but one of b; a plain product if one of them is a number."""
    axes = ([a_ndim - 1], [max(b_ndim - 2, 0)]) if a_ndim and b_ndim else 0
    return _tensordot_labels(a_ndim, b_ndim, axes)


def inner_labels(a: Any, b: Any) -> Labeled:
    """Label an inner product: last axes of both."""
    return _tensordot_labels(np.ndim(a), np.ndim(b), ([-1], [-1]) if np.ndim(a) and np.ndim(b) else 0)


def lettered(labels: Labeled) -> list[str] | None:
    """Write labels as letters, as `contract` takes them; None if there are not so many letters."""
    if max(chain(*labels), default=0) >= len(AXES):
        return None
    return ["".join(AXES[label] for label in axes) for axes in labels]


def _of_left(labels: Labeled) -> Labeled:
    """Labels of the operation that takes b and the adjoint of the result to the adjoint of a."""
    of_a, of_b, of_result = labels
    return of_b, of_result, of_a


def _of_right(labels: Labeled) -> Labeled:
    """Labels of the operation that takes a and the adjoint of the result to the adjoint of b."""
    of_a, of_b, of_result = labels
    return of_a, of_result, of_b


_contraction(anp.inner, inner_labels)
LABELS: Final[dict[Any, Callable[..., Labeled]]] = {
    anp.tensordot: lambda a, b, axes=2: _tensordot_labels(np.ndim(a), np.ndim(b), axes),
    dot_adjoint_0: lambda b, g, of_a, of_b: _of_left(dot_labels(of_a[1], of_b[1])),
    dot_adjoint_1: lambda a, g, of_a, of_b: _of_right(dot_labels(of_a[1], of_b[1])),
    tensordot_adjoint_0: lambda b, g, axes, m, n: _of_left(_tensordot_labels(m, n, axes)),
    tensordot_adjoint_1: lambda a, g, axes, m, n: _of_right(_tensordot_labels(m, n, axes)),
}
"""Tensor products, and the primitives in autograd's rules for them, which are on the tape of a gradient."""
for _primitive, _labels in LABELS.items():
    _contraction(_primitive, _labels)


def _matmul_left_tangent(T: np.ndarray, ans: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if T.ndim == 2:  # a is a vector: (k, n) @ (..., n, p)
        if b.ndim == 2:
            return multiply(T, b)
        return T @ b if b.ndim == 1 else np.moveaxis(T @ b, -2, 0)
    return one_product(T, b) if b.ndim == 2 else np.matmul(lifted(T, b.ndim), b)


def one_product(X: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply a batch of matrices by one matrix in one call of BLAS."""
    return multiply(X.reshape(prod(X.shape[:-1]), X.shape[-1]), b).reshape(*X.shape[:-1], b.shape[-1])


def _matmul_right_tangent(T: np.ndarray, ans: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if T.ndim == 2:  # b is a vector: a @ x for each x
        if a.ndim == 2:
            return multiply(T, a.T)
        return T @ a if a.ndim == 1 else np.moveaxis(np.matmul(a, T.T), -1, 0)
    if a.ndim == 1:
        return np.matmul(a, T)
    if T.ndim == 3 and a.ndim > 2:
        return np.moveaxis(np.tensordot(a, T, (-1, 1)), -2, 0)
    return _product_from_left(a, T) if T.ndim == 3 else np.matmul(a, lifted(T, a.ndim))


def _product_from_left(a: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Multiply one matrix by a batch of matrices; narrow ones in one call of BLAS, as NumPy makes many."""
    k, n, p = X.shape
    if p > 1 and (p > _NARROW or n <= _SHORT or a.size < _LARGE):
        return np.matmul(a, X)
    rows = multiply(X.swapaxes(1, 2).reshape(k * p, n), a.T)
    return np.ascontiguousarray(rows.reshape(k, p, len(a)).swapaxes(1, 2))


_NARROW: Final = 4
"""Columns of matrices up to which they are multiplied faster as rows of one matrix."""
_SHORT: Final = 40
"""Rows of these matrices up to which it takes longer to move the columns of the results."""
_LARGE: Final = 100_000
"""Elements of the other matrix from which on this is worth moving the columns, unless there is just one."""


def _transposed(x: np.ndarray) -> np.ndarray:
    """Transpose the matrices of a stack; copied, they are multiplied up to twice as fast."""
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)) if x.ndim > 2 else x.T


def _matmul_left_adjoint(A: np.ndarray, ans: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if b.ndim == 1:
        return fold(A[..., None] * b, a.shape)
    if b.ndim == 2:
        return multiply(A, b.T) if a.ndim == 1 else one_product(A, b.T)
    if a.ndim <= 2:  # the stack of b is summed, too
        stack = range(b.ndim - 2)
        return np.tensordot(A, b, ([*(i + 1 for i in stack), -1], [*stack, -1]))
    return fold(np.matmul(A, _transposed(b)), a.shape)


def _matmul_right_adjoint(A: np.ndarray, ans: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if b.ndim == 1:
        if a.ndim == 1:
            return A[:, None] * a
        if a.ndim == 2:
            return multiply(A, a)
        return np.tensordot(A, a, a.ndim - 1)
    if a.ndim == 1:
        return fold(a[:, None] * A[..., None, :], b.shape)
    if b.ndim == 2 and a.ndim > 2:
        stack = range(a.ndim - 1)
        return np.tensordot(A, a, ([i + 1 for i in stack], stack)).mT
    if a.ndim == b.ndim == 2:
        return _product_from_left(a.T, A)
    return fold(np.matmul(_transposed(a), A), b.shape)


def _matmul_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a matrix product: m k n for each active operand."""
    return int(np.size(ans)) * np.shape(args[0])[-1] * len(argnums)


_MATMUL_TANGENTS: Final = [_matmul_left_tangent, _matmul_right_tangent]
_MATMUL_ADJOINTS: Final = [_matmul_left_adjoint, _matmul_right_adjoint]


def _by_vector(ans: Any, *operands: Any, **keywords: Any) -> Weighing | None:
    """Describe a matrix times a vector as a weighted sum along an axis; None for other products."""
    ndims = () if keywords else tuple(map(np.ndim, operands))
    if ndims == (2, 1):
        return Weighing(0, (1,), np.asarray(operands[1]))
    return Weighing(1, (0,), np.asarray(operands[0])[:, None]) if ndims == (1, 2) else None


_bilinear(anp.matmul, _MATMUL_TANGENTS, _MATMUL_ADJOINTS, _matmul_edges, _by_vector)


def _side_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of an adjusted right-hand side: the product with the matrix, and one edge for each element."""
    return int(np.size(ans)) * (np.shape(args[0])[-1] * (0 in argnums) + (1 in argnums))


bulk(
    adjusted_side,
    tangents=[lambda T, ans, a, b, y: _matmul_left_tangent(T, ans, a, y), lambda T, ans, a, b, y: T],
    adjoints=[lambda A, ans, a, b, y: _matmul_left_adjoint(A, ans, a, y), lambda A, ans, a, b, y: A],
    edges=_side_edges,
    cubic=1,  # for the system that is solved for this right-hand side
)


def _as_matmul(of_matmul: Callable[..., Any], of_dot: Callable[..., Any]) -> Callable[..., Any]:
    """Use the function of the matrix product, which is faster, for dot products of vectors and matrices."""

    def function(X: np.ndarray, ans: Any, a: np.ndarray, b: np.ndarray) -> Any:
        is_matmul = 0 < a.ndim <= 2 and 0 < b.ndim <= 2
        return (of_matmul if is_matmul else of_dot)(X, ans, a, b)

    return function


_dot_tangents, _dot_adjoints, _dot_edges = _by_labels(lambda a, b: dot_labels(np.ndim(a), np.ndim(b)))
_bilinear(
    anp.dot,
    list(map(_as_matmul, _MATMUL_TANGENTS, _dot_tangents)),
    list(map(_as_matmul, _MATMUL_ADJOINTS, _dot_adjoints)),
    _dot_edges,
    _by_vector,
)


def _pair_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a product that sums nothing."""
    return int(np.size(ans)) * len(argnums)


_bilinear(
    anp.outer,
    [
        lambda T, ans, a, b: T.reshape(len(T), np.size(a), 1) * np.ravel(b),
        lambda T, ans, a, b: np.ravel(a)[:, None] * T.reshape(len(T), 1, np.size(b)),
    ],
    [
        lambda A, ans, a, b: (A @ np.ravel(b)).reshape(len(A), *np.shape(a)),
        lambda A, ans, a, b: (np.ravel(a) @ A).reshape(len(A), *np.shape(b)),
    ],
    _pair_edges,
)


def _kron_shapes(a: Any, b: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shapes in which a and b broadcast, ``(a_1, 1, a_2, 1, ...)`` and ``(1, b_1, 1, b_2, ...)``."""
    ndim = max(np.ndim(a), np.ndim(b))
    of_a, of_b = ((1,) * (ndim - np.ndim(x)) + np.shape(x) for x in (a, b))
    return tuple(n for m in of_a for n in (m, 1)), tuple(n for m in of_b for n in (1, m))


def _kron_tangent(T: np.ndarray, ans: Any, a: Any, b: Any, argnum: int) -> np.ndarray:
    """Multiply tangents of one operand by the other."""
    shapes = _kron_shapes(a, b)
    other = np.reshape((b, a)[argnum], shapes[1 - argnum])
    return (T.reshape(len(T), *shapes[argnum]) * other).reshape(len(T), *np.shape(ans))


def _kron_adjoint(A: np.ndarray, ans: Any, a: Any, b: Any, argnum: int) -> np.ndarray:
    """Sum adjoints times one operand over its axes."""
    shapes = _kron_shapes(a, b)
    joint = [m * n for m, n in zip(*shapes, strict=True)]
    other = np.reshape((b, a)[argnum], shapes[1 - argnum][1 - argnum :: 2])
    axes = range(2 - argnum, len(joint) + 1, 2), range(other.ndim)
    return np.tensordot(A.reshape(len(A), *joint), other, axes).reshape(len(A), *np.shape((a, b)[argnum]))


_bilinear(
    anp.kron,
    [partial(_kron_tangent, argnum=argnum) for argnum in (0, 1)],
    [partial(_kron_adjoint, argnum=argnum) for argnum in (0, 1)],
    _pair_edges,
)


def _in_plane(
    X: np.ndarray, this: np.ndarray, other: np.ndarray, own: int, sign: int, *, adjoint: bool
) -> np.ndarray:
    """Carry directions through ``a_0 b_1 - a_1 b_0``; vectors lie along last axes, in X along ``own``."""
    of_first, of_second = sign * other[..., 1], -sign * other[..., 0]
    if adjoint:
        rows = np.stack([X * of_first, X * of_second], axis=-1)
        return np.moveaxis(fold(rows, this.shape), -1, behind(own))
    rows = lifted(np.moveaxis(X, behind(own), -1), other.ndim)
    return rows[..., 0] * of_first + rows[..., 1] * of_second


def _cross(argnum: int, *, adjoint: bool) -> Callable[..., Any]:
    """Make a directional form of the cross product: ``a x b . g = b x g . a = g x a . b``."""

    def function(
        X: np.ndarray,
        ans: Any,
        a: Any,
        b: Any,
        axisa: int = -1,
        axisb: int = -1,
        axisc: int = -1,
        axis: Any = None,
    ) -> Any:
        own, others, result = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
        if argnum == 1:
            own, others = others, own
        this, other = ((a, b), (b, a))[argnum]
        lengths = (np.shape(this)[own], np.shape(other)[others])
        other = np.moveaxis(other, others, -1)
        if lengths == (2, 2):
            return _in_plane(X, np.moveaxis(this, own, -1), other, own, 1 - 2 * argnum, adjoint=adjoint)
        if lengths != (3, 3):
            return NotImplemented
        source, target = (result, own) if adjoint else (own, result)
        rows = lifted(np.moveaxis(X, behind(source), -1), np.ndim(other))
        rows = np.cross(rows, other) if adjoint == (argnum == 1) else np.cross(other, rows)
        if adjoint:
            rows = fold(rows, np.moveaxis(this, own, -1).shape)
        return np.moveaxis(rows, -1, behind(target))

    return function


_bilinear(
    anp.cross,
    [_cross(0, adjoint=False), _cross(1, adjoint=False)],
    [_cross(0, adjoint=True), _cross(1, adjoint=True)],
    lambda ans, args, argnums, kwargs: 2 * int(np.size(ans)) * len(argnums),
)
