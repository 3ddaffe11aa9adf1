"""Factored adjoints of matrices, products of two thin ones, and the rules that create and preserve them.

The adjoint of W in ``W @ x``, or of K in ``solve(K, b)``, is an outer product for each direction: 2 n numbers
instead of n^2. It stays one when multiplied by other matrices, and sums can be computed from its factors.
"""

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import autograd.numpy as anp
import numpy as np

from tapesplit.arrays import Shape
from tapesplit.recording.primitives import adjusted_side
from tapesplit.rules.axes import of_arrays
from tapesplit.rules.contraction import FREE, contract
from tapesplit.rules.moves import IndexMap
from tapesplit.rules.products import LABELS, Labeled, lettered, one_product

__all__ = [
    "FEWEST_DIRECTIONS",
    "MOST_PARTS",
    "FactoredRule",
    "Factors",
    "factored",
    "factored_rule",
    "is_thin",
    "kept",
    "moved_back",
    "summed",
]


class Factors(NamedTuple):
    """Matrices ``left[i].T @ right[i]``, one for each direction i.

    Their shapes are ``(k, rank, rows)`` and ``(k, rank, columns)``; one of them may have length one instead
    of k, and then counts for all directions.
    """

    left: np.ndarray
    right: np.ndarray

    @property
    def directions(self) -> int:
        """Number of directions k."""
        return _common([self.left, self.right])

    @property
    def rank(self) -> int:
        """Number of outer products that are added up."""
        return self.left.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrices."""
        return self.left.shape[-1], self.right.shape[-1]

    @property
    def is_thin(self) -> bool:
        """Whether the matrices are worth being kept factored."""
        return is_thin(self.rank, self.shape)

    @property
    def is_finite(self) -> bool:
        """Whether all elements are finite, so that their products with zero are zero."""
        return all(bool(np.isfinite(factor).all()) for factor in self)

    def dense(self) -> np.ndarray:
        """Multiply the factors; the result has shape ``(k, rows, columns)``."""
        return self.left.mT * self.right if self.rank == 1 else self.left.mT @ self.right

    def joined(self, other: "Factors") -> "Factors":
        """Add other matrices of the same shape, one for each direction, by joining the factors."""
        sides = []
        for pair in zip(self, other, strict=True):
            count = _common(pair)
            alike = [x if len(x) == count else np.broadcast_to(x, (count, *x.shape[1:])) for x in pair]
            sides.append(np.concatenate(alike, axis=1))
        return Factors(*sides)

    def terms(self, axes: str, direction: str, rank: str) -> tuple[list[str], list[np.ndarray]]:
        """Return both factors as operands of `contract`: their indices, and arrays without needless axes.

        `axes`, `direction` and `rank` are letters: for the axes of the matrices, for the directions and for
        the sum over the rank.
        """
        terms: list[str] = []
        operands: list[np.ndarray] = []
        for factor, axis in zip(self, axes, strict=True):
            has_directions = len(factor) != 1 or (self.directions == 1 and not terms)
            has_rank = self.rank > 1
            terms.append(direction * has_directions + rank * has_rank + axis)
            operands.append(
                factor[slice(None) if has_directions else 0][..., slice(None) if has_rank else 0, :]
            )
        return terms, operands


def _common(arrays: Iterable[np.ndarray]) -> int:
    """Return the number of directions of several arrays, some of which have one that counts for all."""
    return next((n for n in map(len, arrays) if n != 1), 1)


def is_thin(rank: int, shape: Shape) -> bool:
    """Tell whether adjoints of this rank are worth being kept factored for a value of this shape."""
    if len(shape) != 2:
        return False
    rows, columns = shape
    return rows * columns >= max(_THINNER * rank * (rows + columns), _FEWEST_ELEMENTS)


_FEWEST_ELEMENTS: Final = 200
"""Elements of the smallest matrix whose adjoints are worth being kept as factors."""
_THINNER: Final = 4
"""How many times as many elements a matrix must have as its factors."""
FEWEST_DIRECTIONS: Final = 8
"""Directions from which on factors are worth it."""
MOST_PARTS: Final = 8
"""Matrices that are joined into one, up to which factored adjoints are split among them."""


_RankRule: TypeAlias = Callable[[int, Shape], int]


class FactoredRule(NamedTuple):
    """How a primitive passes adjoints to one argument that come factored, or become so.

    ``carry(A, ans, *args, **kwargs)`` gets adjoints of the result and returns those of the argument, either
    of them `Factors` or an array; NotImplemented for a form of the arguments that it does not cover.
    ``rank(given, shape)`` predicts the rank of what it returns from the rank of A and the shape of the
    result; rank 0 stands for arrays. ``of_elements(places, ans, *args, **kwargs)`` returns the derivatives of
    elements of the result, a vector: matrices of rank one.
    """

    carry: Callable[..., Any]
    rank: _RankRule
    of_elements: Callable[..., Any] | None = None


_rules: dict[tuple[Any, int], FactoredRule] = {}


def factored(
    primitive: Any,
    argnum: int,
    carry: Callable[..., Any],
    rank: _RankRule,
    of_elements: Callable[..., Any] | None = None,
) -> None:
    """Register the rule of a primitive by one argument, see `FactoredRule`."""
    _rules[primitive, argnum] = FactoredRule(carry, rank, of_elements)


def factored_rule(primitive: Any, argnum: int) -> FactoredRule | None:
    """Return the rule of a primitive by one argument, if it has one."""
    return _rules.get((primitive, argnum))


def kept(given: int, shape: Shape) -> int:
    """Return the rank of adjoints that are multiplied by other matrices: the same."""
    return given


def summed(given: int, shape: Shape) -> int:
    """Return 0, the rank of adjoints that are summed to an array."""
    return 0


def moved_back(A: Factors, moves: IndexMap, shape: Shape) -> Factors | np.ndarray | None:
    """Carry factored adjoints of moved elements back to the argument that these were moved from.

    `moves` tells which elements of the result come from where, and `shape` is that of the argument. Returns
    factors where parts of a matrix move as a whole, or are transposed; an array ``(k, *shape)`` where few
    elements move; None where all elements of the adjoints are needed.
    """
    found = moves.parts(A.shape, shape) if is_thin(A.rank, shape) else None
    if found is not None:
        left, right = reversed(A) if found.is_transposed else A
        return Factors(_scattered(left, found.rows), _scattered(right, found.columns))
    if not moves.is_sparse:
        return None
    rows, columns = np.divmod(moves.targets, A.shape[1])
    elements = np.einsum("krt,krt->kt", A.left[..., rows], A.right[..., columns])
    return moves.packed.scatter(elements).reshape(A.directions, *shape)


def _scattered(factor: np.ndarray, moves: IndexMap) -> np.ndarray:
    """Move elements along the last axis of a factor back to their places in the argument."""
    *others, length = factor.shape
    return moves.scatter(factor.reshape(-1, length)).reshape(*others, moves.size)


def _left_of_product(A: Factors | np.ndarray, ans: Any, a: Any, b: Any, *_: Any) -> Any:
    """Adjoints of a in ``a @ b``: ``A @ b.T``, where b is a vector or thin."""
    if np.ndim(a) != 2 or np.ndim(b) not in {1, 2}:
        return NotImplemented
    if isinstance(A, Factors):
        return Factors(A.left, one_product(A.right, b.T))
    return Factors(A[:, None], b[None, None]) if b.ndim == 1 else Factors(A.mT, b.T[None])


def _right_of_product(A: Factors | np.ndarray, ans: Any, a: Any, b: Any) -> Any:
    """Adjoints of b in ``a @ b``: ``a.T @ A``, where a is a vector or thin."""
    if np.ndim(b) != 2 or np.ndim(a) not in {1, 2}:
        return NotImplemented
    if isinstance(A, Factors):
        return Factors(one_product(A.left, a), A.right)
    return Factors(a[None, None], A[:, None]) if a.ndim == 1 else Factors(a[None], A)


def _by_labels(labels: Callable[..., Labeled], argnum: int) -> Callable[..., Any]:
    """Make the function that sums factored adjoints of a contraction whose axes are labeled."""

    def rule(A: Factors, ans: Any, *args: Any, **kwargs: Any) -> Any:
        known = lettered(labels(*args, **kwargs))
        if known is None:
            return NotImplemented
        *operands, result = known
        if any(np.ndim(arg) != len(axes) for arg, axes in zip(args, operands, strict=False)):
            return NotImplemented
        terms, arrays = A.terms(result, *FREE)
        other = 1 - argnum
        return contract((*terms, operands[other]), [*arrays, args[other]], FREE[0] + operands[argnum])

    return of_arrays(rule)


for _argnum in (0, 1):
    for _primitive, _labels in {anp.outer: lambda a, b: ([0], [1], [0, 1]), **LABELS}.items():
        factored(_primitive, _argnum, _by_labels(_labels, _argnum), summed)


def _rank_on_left(given: int, shape: Shape) -> int:
    """Return the rank of adjoints of a in ``a @ b``: the columns of b, if that is no stack."""
    return given or (prod(shape[1:]) if len(shape) <= 2 else 0)


def _rank_on_right(given: int, shape: Shape) -> int:
    """Return the rank of adjoints of b in ``a @ b``: the rows of a, if that is no stack."""
    return given or (prod(shape[:-1]) if len(shape) <= 2 else 0)


for _primitive in (anp.matmul, anp.dot):
    factored(_primitive, 0, of_arrays(_left_of_product), _rank_on_left)
    factored(_primitive, 1, of_arrays(_right_of_product), _rank_on_right)
factored(adjusted_side, 0, lambda A, ans, a, b, y: _left_of_product(A, ans, a, y), _rank_on_left)
factored(adjusted_side, 1, lambda A, ans, a, b, y: A, kept)
