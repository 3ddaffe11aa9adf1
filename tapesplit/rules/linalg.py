"""Products of arrays."""

from math import prod
from typing import Any

import autograd.numpy as anp
import numpy as np

from tapesplit.rules.registry import defvector


def _product_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E| of a matrix product: m·k·n for each active operand."""
    return (
        int(np.size(ans))
        * (np.shape(args[argnums[0]])[-1] if np.ndim(args[argnums[0]]) else 1)
        * len(argnums)
    )


def _fold(X: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum a batch over the axes along which its value was broadcast to get there."""
    extra = X.ndim - 1 - len(shape)
    if extra:
        X = X.sum(axis=tuple(range(1, 1 + extra)))
    stretched = tuple(a + 1 for a, n in enumerate(shape) if n == 1 and X.shape[a + 1] != 1)
    return X.sum(axis=stretched, keepdims=True) if stretched else X


def _matmul_left_tangent(T: np.ndarray, ans: Any, a: Any, b: Any) -> np.ndarray:
    if T.ndim == 2:  # a is a vector: (k, n) @ (..., n, p)
        return T @ b if np.ndim(b) <= 2 else np.moveaxis(T @ b, -2, 0)
    return np.matmul(_room(T, np.ndim(b)), b)


def _matmul_right_tangent(T: np.ndarray, ans: Any, a: Any, b: Any) -> np.ndarray:
    if T.ndim == 2:  # b is a vector: a @ x for each x
        return T @ np.transpose(a) if np.ndim(a) <= 2 else np.moveaxis(np.matmul(a, T.T), -1, 0)
    if np.ndim(a) == 1:
        return np.matmul(a, T)
    return np.matmul(a, _room(T, np.ndim(a)))


def _room(T: np.ndarray, ndim: int) -> np.ndarray:
    """Make the value part of a batch of matrices at least ``ndim`` axes deep."""
    missing = ndim - (T.ndim - 1)
    return T.reshape(T.shape[:1] + (1,) * missing + T.shape[1:]) if missing > 0 else T


def _matmul_left_adjoint(A: np.ndarray, ans: Any, a: Any, b: Any) -> np.ndarray:
    if np.ndim(a) == 1:
        if np.ndim(b) == 1:
            return A[:, None] * b
        if np.ndim(b) == 2:
            return A @ b.T
        return _fold(np.matmul(b, A[..., None])[..., 0], np.shape(a))
    if np.ndim(b) == 1:
        return _fold(A[..., None] * b, np.shape(a))
    return _fold(np.matmul(A, np.swapaxes(b, -1, -2)), np.shape(a))


def _matmul_right_adjoint(A: np.ndarray, ans: Any, a: Any, b: Any) -> np.ndarray:
    if np.ndim(b) == 1:
        if np.ndim(a) == 1:
            return A[:, None] * a
        if np.ndim(a) == 2:
            return A @ a
        return _fold(np.matmul(A[..., None, :], a)[..., 0, :], np.shape(b))
    if np.ndim(a) == 1:
        return _fold(a[:, None] * A[..., None, :], np.shape(b))
    return _fold(np.matmul(np.swapaxes(a, -1, -2), A), np.shape(b))


defvector(
    anp.matmul,
    tangents=[_matmul_left_tangent, _matmul_right_tangent],
    adjoints=[_matmul_left_adjoint, _matmul_right_adjoint],
    edges=_product_edges,
)


def _tensordot_axes(a: Any, b: Any, axes: Any) -> tuple[list[int], list[int]]:
    """Return contracted axes of both operands as non-negative numbers."""
    if isinstance(axes, (int, np.integer)):
        left, right = list(range(np.ndim(a) - axes, np.ndim(a))), list(range(axes))
    else:
        left, right = (list(np.atleast_1d(x)) for x in axes)
    return [int(x) % np.ndim(a) for x in left], [int(x) % np.ndim(b) for x in right]


def _rest(ndim: int, contracted: list[int]) -> list[int]:
    """Axes that stay."""
    return [i for i in range(ndim) if i not in contracted]


def _tensordot_left_tangent(T: np.ndarray, ans: Any, a: Any, b: Any, axes: Any = 2) -> np.ndarray:
    left, right = _tensordot_axes(a, b, axes)
    return np.tensordot(T, b, ([x + 1 for x in left], right))


def _tensordot_right_tangent(T: np.ndarray, ans: Any, a: Any, b: Any, axes: Any = 2) -> np.ndarray:
    left, right = _tensordot_axes(a, b, axes)
    return np.moveaxis(np.tensordot(a, T, (left, [x + 1 for x in right])), np.ndim(a) - len(left), 0)


def _tensordot_left_adjoint(A: np.ndarray, ans: Any, a: Any, b: Any, axes: Any = 2) -> np.ndarray:
    left, right = _tensordot_axes(a, b, axes)
    kept_a, kept_b = _rest(np.ndim(a), left), _rest(np.ndim(b), right)
    out = np.tensordot(A, b, (list(range(1 + len(kept_a), A.ndim)), kept_b))
    # Axes of out: directions, kept axes of a, then contracted axes in the order of b.
    order = kept_a + [left[right.index(x)] for x in sorted(right)]
    return out.transpose([0, *(1 + order.index(i) for i in range(np.ndim(a)))])


def _tensordot_right_adjoint(A: np.ndarray, ans: Any, a: Any, b: Any, axes: Any = 2) -> np.ndarray:
    left, right = _tensordot_axes(a, b, axes)
    kept_a, kept_b = _rest(np.ndim(a), left), _rest(np.ndim(b), right)
    out = np.tensordot(A, a, (list(range(1, 1 + len(kept_a))), kept_a))
    order = kept_b + [right[left.index(x)] for x in sorted(left)]
    return out.transpose([0, *(1 + order.index(i) for i in range(np.ndim(b)))])


def _tensordot_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    a, b, *rest = args
    left, _ = _tensordot_axes(a, b, rest[0] if rest else kwargs.get("axes", 2))
    return int(np.size(ans)) * prod(np.shape(a)[x] for x in left) * len(argnums)


defvector(
    anp.tensordot,
    tangents=[_tensordot_left_tangent, _tensordot_right_tangent],
    adjoints=[_tensordot_left_adjoint, _tensordot_right_adjoint],
    edges=_tensordot_edges,
)


def _dot_axes(a: Any, b: Any) -> tuple[list[int], list[int]]:
    """Axes that ``dot`` contracts: last of a, last but one of b."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return [], []
    return [np.ndim(a) - 1], [max(np.ndim(b) - 2, 0)]


defvector(
    anp.dot,
    tangents=[
        lambda T, ans, a, b: _tensordot_left_tangent(T, ans, a, b, _dot_axes(a, b)),
        lambda T, ans, a, b: _tensordot_right_tangent(T, ans, a, b, _dot_axes(a, b)),
    ],
    adjoints=[
        lambda A, ans, a, b: _tensordot_left_adjoint(A, ans, a, b, _dot_axes(a, b)),
        lambda A, ans, a, b: _tensordot_right_adjoint(A, ans, a, b, _dot_axes(a, b)),
    ],
    edges=_product_edges,
)


def _einsum_terms(args: tuple[Any, ...]) -> tuple[list[str], str]:
    """Split explicit subscripts of an einsum call with a free letter for the direction axis."""
    inputs, output, _ = anp.parse_einsum_input(*args)
    return inputs.split(","), output


def _einsum_tangent(argnum: int) -> Any:
    def tangent(T: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> np.ndarray:
        if not _plain_subscripts(args):
            return NotImplemented
        terms, output = _einsum_terms(args)
        operands = [*args[1:]]
        operands[argnum - 1] = T
        terms[argnum - 1] = "Z" + terms[argnum - 1]
        return np.einsum(",".join(terms) + "->Z" + output, *operands, optimize=len(operands) > 1)

    return tangent


def _einsum_adjoint(argnum: int) -> Any:
    def adjoint(A: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> np.ndarray:
        if not _plain_subscripts(args):
            return NotImplemented
        terms, output = _einsum_terms(args)
        target, shape = terms[argnum - 1], np.shape(args[argnum])
        others = [
            (term, x) for i, (term, x) in enumerate(zip(terms, args[1:], strict=True)) if i != argnum - 1
        ]
        # An axis that is summed away in this operand alone comes back by broadcasting a one.
        known = set(output).union(*(term for term, _ in others))
        lost = [
            (letter, np.ones(shape[target.index(letter)]))
            for letter in dict.fromkeys(target)
            if letter not in known
        ]
        operands = [("Z" + output, A), *others, *lost]
        distinct = "".join(dict.fromkeys(target))
        folded = np.einsum(
            ",".join(term for term, _ in operands) + "->Z" + distinct,
            *(x for _, x in operands),
            optimize=len(operands) > 1,
        )
        if distinct == target:
            return folded
        full = np.zeros((len(A), *shape), folded.dtype)  # repeated letters: the operand's diagonal
        np.einsum("Z" + target + "->Z" + distinct, full)[...] = folded
        return full

    return adjoint


def _einsum_edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    if not _plain_subscripts(args):
        return int(np.size(ans)) * sum(int(np.size(args[i])) for i in argnums)
    terms, _ = _einsum_terms(args)
    sizes = {
        c: n for term, x in zip(terms, args[1:], strict=True) for c, n in zip(term, np.shape(x), strict=True)
    }
    return prod(sizes.values()) * len(argnums)


def _plain_subscripts(args: tuple[Any, ...]) -> bool:
    """Tell whether the subscripts are text without an ellipsis."""
    return isinstance(args[0], str) and "..." not in args[0] and "Z" not in args[0]


defvector(
    anp.einsum,
    tangents=[None, *(_einsum_tangent(i) for i in range(1, 6))],
    adjoints=[None, *(_einsum_adjoint(i) for i in range(1, 6))],
    edges=_einsum_edges,
)
