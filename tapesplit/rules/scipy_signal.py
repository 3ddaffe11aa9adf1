"""Convolutions of autograd.scipy.signal: a batch of directions is one more axis that is not convolved."""

from functools import partial
from math import prod
from string import ascii_letters
from typing import Any, Final, TypeAlias

import numpy as np
from autograd.scipy.signal import convolve, flipped_idxs, parse_axes

from tapesplit.arrays import IntArray, occurrences
from tapesplit.rules.contraction import contract
from tapesplit.rules.local import define_local
from tapesplit.rules.local_structure import LocalStructure
from tapesplit.rules.registry import bulk
from tapesplit.rules.stacks import stacked

_Axes: TypeAlias = list[list[int]]
"""Axes of both operands."""


def _read(
    A: np.ndarray, B: np.ndarray, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full"
) -> tuple[np.ndarray, np.ndarray, _Axes, _Axes, str]:
    """Return the operands of a call, their convolved axes, their summed axes, and the mode."""
    if axes is None:
        axes = [range(A.ndim), range(A.ndim)]
    return A, B, [list(x) for x in axes], [list(x) for x in dot_axes], mode


def _behind(axes: list[int]) -> list[int]:
    """Axes of a value in a batch."""
    return [axis + 1 for axis in axes]


_MOST_IN_WINDOWS: Final = 2**13
"""Elements of all windows up to which they are copied for one product: 64 kB, which plans do not count."""
_MOST_PLACES: Final = 64
"""Positions along the convolved axes of an operand up to which `_summed` loops over them."""
_BYTES_AT_ONCE: Final = 4 * 10**6
"""Bytes of an operand that fit into caches, with copies of it, while `_summed` reads it at each position."""


def _convolved(A: np.ndarray, B: np.ndarray, axes: Any, dot_axes: Any, mode: str) -> np.ndarray:
    """Convolve as autograd does, but without a copy of all windows of one operand where they are many."""
    (conv_a, conv_b), (dot_a, dot_b) = axes, dot_axes
    sizes = [B.shape[axis] for axis in conv_b]
    if mode != "same" and prod(A.shape[axis] for axis in conv_a) < prod(sizes):
        rows = _convolved(B, A, (conv_b, conv_a), (dot_b, dot_a), mode)
        of_b, of_a = B.ndim - len(conv_b) - len(dot_b), A.ndim - len(conv_a) - len(dot_a)
        return np.transpose(rows, [*range(of_b, of_b + of_a), *range(of_b), *range(of_a + of_b, rows.ndim)])
    before = [{"full": n - 1, "same": n // 2, "valid": 0}[mode] for n in sizes]
    behind = [{"full": n - 1, "same": (n - 1) // 2, "valid": 0}[mode] for n in sizes]
    margins = list(zip(before, behind, strict=True))
    lengths = [
        A.shape[axis] + sum(margin) - n + 1 for axis, margin, n in zip(conv_a, margins, sizes, strict=True)
    ]
    rest = [axis for axis in range(A.ndim) if axis not in dot_a]
    others = [axis for axis in range(B.ndim) if axis not in {*conv_b, *dot_b}]
    amount = prod(lengths) * prod(A.shape[axis] for axis in rest if axis not in conv_a)
    in_windows = amount * prod(A.shape[axis] for axis in dot_a) * prod(sizes)
    in_result = amount * prod(B.shape[axis] for axis in others)
    if in_windows <= max(_MOST_IN_WINDOWS, 2 * in_result):
        padded = _padded(A, conv_a, margins)
        windows = np.lib.stride_tricks.sliding_window_view(padded, sizes, axis=tuple(conv_a))
        summed = [*range(A.ndim, windows.ndim), *dot_a], [*conv_b, *dot_b]
        rows = np.tensordot(windows, np.flip(B, conv_b), summed)
    elif prod(sizes) > _MOST_PLACES:
        return convolve(A, B, [conv_a, conv_b], [dot_a, dot_b], mode)
    else:
        rows = _summed(A, B, axes, dot_axes, lengths, before)
    ignored = [place for place, axis in enumerate(rest) if axis not in conv_a]
    return np.transpose(rows, [*ignored, *range(len(rest), rows.ndim), *map(rest.index, conv_a)])


def _padded(A: np.ndarray, axes: list[int], margins: list[tuple[int, int]]) -> np.ndarray:
    """Put zeros around an array; np.pad takes five times as long for a small one."""
    shape, inside = list(A.shape), [slice(None)] * A.ndim
    for axis, (before, behind) in zip(axes, margins, strict=True):
        inside[axis] = slice(before, before + shape[axis])
        shape[axis] += before + behind
    padded = np.zeros(shape, A.dtype)
    padded[tuple(inside)] = A
    return padded


def _summed(
    A: np.ndarray, B: np.ndarray, axes: Any, dot_axes: Any, lengths: list[int], before: list[int]
) -> np.ndarray:
    """Convolve by a loop over positions along the convolved axes of B, without windows or margins in memory.

    The axes of the result are those of A, then those of B, without the summed ones and the convolved ones of
    B; those of A that are convolved have these ``lengths`` in the result.
    """
    (conv_a, conv_b), (dot_a, dot_b) = axes, dot_axes
    factors = np.moveaxis(B, conv_b, range(len(conv_b)))
    # Both operands have the same letters for axes that are summed.
    of_a = ascii_letters[: A.ndim]
    names = dict(zip(dot_b, (of_a[axis] for axis in dot_a), strict=True))
    of_b = "".join(names.get(i, ascii_letters[A.ndim + i]) for i in range(B.ndim) if i not in conv_b)
    rest = [axis for axis in range(A.ndim) if axis not in dot_a]
    rest_b = [axis for axis in range(B.ndim) if axis not in {*conv_b, *dot_b}]
    long = dict(zip(conv_a, lengths, strict=True))
    shape = [*(long.get(axis, A.shape[axis]) for axis in rest), *(B.shape[axis] for axis in rest_b)]
    result = "".join(letter for letter in of_a + of_b if (letter in of_a) != (letter in of_b))
    total = np.zeros(shape, np.result_type(A, B))
    # Directions, images or filters, which the first axis counts, are convolved each by itself.
    if len(A) > 1 and A.nbytes > _BYTES_AT_ONCE and 0 not in {*conv_a, *dot_a}:
        each = max(1, len(A) * _BYTES_AT_ONCE // A.nbytes)
        for start in range(0, len(A), each):
            part = A[start : start + each]
            total[start : start + each] = _summed(part, B, axes, dot_axes, lengths, before)
        return total
    buffer = np.empty(0 if of_b else A.size, total.dtype)
    for place in np.ndindex(factors.shape[: len(conv_b)]):
        source, target = [slice(None)] * A.ndim, [slice(None)] * len(rest)
        for axis, j, length, margin, n in zip(
            conv_a, place, lengths, before, factors.shape, strict=False
        ):  # element i of A belongs to element i + shift of the result
            shift = j - (n - 1 - margin)
            first = max(0, -shift)
            last = max(first, min(A.shape[axis], length - shift))
            source[axis], target[rest.index(axis)] = slice(first, last), slice(first + shift, last + shift)
        part, factor = A[tuple(source)], factors[place]
        if of_b:
            total[tuple(target)] += contract((of_a, of_b), [part, factor], result)
        else:  # allocating a new large array takes longer than the multiplication
            total[tuple(target)] += np.multiply(part, factor, out=buffer[: part.size].reshape(part.shape))
    return total


def _left_tangent(T: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> np.ndarray:
    _, B, (conv_a, conv_b), (dot_a, dot_b), mode = _read(*args, **kwargs)
    return _convolved(T, B, [_behind(conv_a), conv_b], [_behind(dot_a), dot_b], mode)


def _right_tangent(T: np.ndarray, ans: Any, *args: Any, **kwargs: Any) -> np.ndarray:
    A, _, (conv_a, conv_b), (dot_a, dot_b), mode = _read(*args, **kwargs)
    rows = _convolved(A, T, [conv_a, _behind(conv_b)], [dot_a, _behind(dot_b)], mode)
    return np.moveaxis(rows, A.ndim - len(conv_a) - len(dot_a), 0)


def _adjoint(G: np.ndarray, ans: Any, *args: Any, of: str, **kwargs: Any) -> np.ndarray:
    """Correlate adjoints with the other operand."""
    A, B, axes, dot_axes, mode = _read(*args, **kwargs)
    other, Y = ("B", B) if of == "A" else ("A", A)
    parsed, shapes = parse_axes(A.shape, B.shape, axes, dot_axes, mode)
    result, mine, theirs = parsed["out"], parsed[of], parsed[other]
    larger = any(map(int.__gt__, shapes[of]["conv"], shapes[other]["conv"]))
    back = "full" if mode == "valid" and larger else "valid"
    if mode == "same":
        margins = [((n - 1) // 2, n - 1 - (n - 1) // 2) for n in shapes["B"]["conv"]]
        G = _padded(G, _behind(list(result["conv"])), margins)
    rows = _convolved(
        G,
        Y[flipped_idxs(Y.ndim, theirs["conv"])],
        [_behind(list(result["conv"])), list(theirs["conv"])],
        [_behind(list(result[f"ignore_{other}"])), list(theirs["ignore"])],
        back,
    )
    # Axes that were summed come in the order that they have in the other operand.
    summed = [own for _, own in sorted(zip(theirs["dot"], mine["dot"], strict=True))]
    order = np.argsort([*mine["ignore"], *summed, *mine["conv"]])
    return np.transpose(rows, [0, *(int(i) + 1 for i in order)])


def _edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E|: one edge for each product of elements, for each active operand.

    These are all pairs of elements, or as many as each result has in its window if these are fewer.
    """
    A, B, (conv_a, conv_b), (dot_a, _), _ = _read(*args, **kwargs)
    summed = prod(A.shape[axis] for axis in dot_a)
    window = prod(min(A.shape[a], B.shape[b]) for a, b in zip(conv_a, conv_b, strict=True))
    return int(min(A.size * B.size // max(summed, 1), ans.size * window * summed)) * len(argnums)


def _describe_local(A: Any, B: Any, /, *rest: Any, **keywords: Any) -> tuple[Any, ...] | None:
    """Describe a convolution; autograd is wrong about axes from behind, or with lengths that broadcast."""
    _, _, axes, dot_axes, mode = _read(A, B, *rest, **keywords)
    for x, conv, dot in zip((A, B), axes, dot_axes, strict=True):
        if len({*conv, *dot} & {*range(x.ndim)}) < len(conv) + len(dot):
            return None
    lengths_a, lengths_b = ([x.shape[i] for i in dot] for x, dot in zip((A, B), dot_axes, strict=True))
    return (A.shape, B.shape, axes, dot_axes, mode) if lengths_a == lengths_b else None


def _build_local(
    argnum: int, of_a: tuple[int, ...], of_b: tuple[int, ...], axes: _Axes, dot_axes: _Axes, mode: str
) -> LocalStructure:
    """Build the structure of a convolution: one edge for each product of two elements."""
    alone_a, alone_b = (
        [axis for axis in range(len(shape)) if axis not in {*conv, *dot}]
        for shape, conv, dot in zip((of_a, of_b), axes, dot_axes, strict=True)
    )
    loops = [  # an axis that one operand has alone is convolved with one of length one, behind all others
        *((a, len(of_b), "full") for a in alone_a),
        *((len(of_a), b, "full") for b in alone_b),
        *((a, b, mode) for a, b in zip(*axes, strict=True)),
        *((a, b, "sum") for a, b in zip(*dot_axes, strict=True)),
    ]
    rows = positions = others = np.zeros(1, dtype=np.int64)
    for a, b, how in loops:
        (n, *behind_a), (m, *behind_b) = (*of_a, 1)[a:], (*of_b, 1)[b:]
        length, row, place, other = _along_an_axis(n, m, how)
        rows = np.add.outer(rows * length, row).ravel()
        positions = np.add.outer(positions, place * prod(behind_a)).ravel()
        others = np.add.outer(others, other * prod(behind_b)).ravel()
    order = np.argsort(rows, kind="stable")
    rows, positions, others = rows[order], positions[order], others[order]
    if argnum:
        positions, others = others, positions
    return LocalStructure(rows, positions, occurrences(rows), factors=((1 - argnum, others),))


def _along_an_axis(n: int, m: int, how: str) -> tuple[int, IntArray, IntArray, IntArray]:
    """Return the length of a result along one axis, and the positions of each product of elements.

    The positions are those in the result, in the first and in the second operand.
    """
    if how == "sum":
        every = np.arange(n)
        return 1, np.zeros_like(every), every, every
    before, length = {
        "full": (0, n + m - 1),
        "same": ((m - 1) // 2, n),
        "valid": (min(n, m) - 1, abs(n - m) + 1),
    }[how]
    row, place = np.divmod(np.arange(length * min(n, m)), min(n, m))
    other = row + before - place
    if m < n:
        place, other = other, place
    inside = (place >= 0) & (place < n) & (other >= 0) & (other < m)
    return length, row[inside], place[inside], other[inside]


def _core_axes(*args: Any, **kwargs: Any) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Core dimensions by either operand: slices along axes of this operand alone are convolved separately."""
    A, B, (conv_a, conv_b), (dot_a, dot_b), _ = _read(*args, **kwargs)
    alone_a, alone_b = A.ndim - len(conv_a) - len(dot_a), B.ndim - len(conv_b) - len(dot_b)
    of_a, of_b, convolved = np.split(np.arange(alone_a + alone_b + len(conv_a)), [alone_a, alone_a + alone_b])
    return {0: ((*of_b, *convolved), (*conv_a, *dot_a)), 1: ((*of_a, *convolved), (*conv_b, *dot_b))}


stacked(convolve, _core_axes)
define_local(convolve, _describe_local, _build_local)
bulk(
    convolve,
    tangents=[_left_tangent, _right_tangent],
    adjoints=[partial(_adjoint, of="A"), partial(_adjoint, of="B")],
    edges=_edges,
    steps=15,
    pace=40,
)
