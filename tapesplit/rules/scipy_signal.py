"""Convolutions of autograd.scipy.signal: a batch of directions is one more axis that is not convolved."""

from math import prod
from typing import Any, Final

import numpy as np
from autograd.scipy.signal import convolve, flipped_idxs, parse_axes

from tapesplit.rules.registry import bulk


def _pairs(A: np.ndarray, axes: Any, dot_axes: Any) -> tuple[list[list[int]], list[list[int]]]:
    """Convolved and summed axes of both operands."""
    if axes is None:
        axes = [range(A.ndim), range(A.ndim)]
    return [list(x) for x in axes], [list(x) for x in dot_axes]


def _behind(axes: list[int]) -> list[int]:
    """Axes of a value in a batch."""
    return [axis + 1 for axis in axes]


_MOST_IN_WINDOWS: Final = 2**20
"""Elements of all windows up to which they are copied for a product of matrices."""


def _convolved(A: np.ndarray, B: np.ndarray, axes: Any, dot_axes: Any, mode: str) -> np.ndarray:
    """Convolve as autograd does, but multiply windows of one operand by the other one in one call of BLAS."""
    (conv_a, conv_b), (dot_a, dot_b) = axes, dot_axes
    sizes = [B.shape[axis] for axis in conv_b]
    if mode != "same" and prod(A.shape[axis] for axis in conv_a) < prod(sizes):
        rows = _convolved(B, A, (conv_b, conv_a), (dot_b, dot_a), mode)
        of_b, of_a = B.ndim - len(conv_b) - len(dot_b), A.ndim - len(conv_a) - len(dot_a)
        return np.transpose(rows, [*range(of_b, of_b + of_a), *range(of_b), *range(of_a + of_b, rows.ndim)])
    padded = A
    if mode != "valid":
        widths = [(0, 0)] * A.ndim
        for axis, n in zip(conv_a, sizes, strict=True):
            widths[axis] = (n - 1, n - 1) if mode == "full" else (n // 2, (n - 1) // 2)
        padded = np.pad(A, widths)
    windows = np.lib.stride_tricks.sliding_window_view(padded, sizes, axis=tuple(conv_a))
    if windows.size > _MOST_IN_WINDOWS:
        return convolve(A, B, [conv_a, conv_b], [dot_a, dot_b], mode)
    summed = [*range(A.ndim, windows.ndim), *dot_a], [*conv_b, *dot_b]
    rows = np.tensordot(windows, np.flip(B, conv_b), summed)
    rest = [axis for axis in range(A.ndim) if axis not in dot_a]
    ignored = [place for place, axis in enumerate(rest) if axis not in conv_a]
    return np.transpose(rows, [*ignored, *range(len(rest), rows.ndim), *map(rest.index, conv_a)])


def _left_tangent(
    T: np.ndarray,
    ans: Any,
    A: np.ndarray,
    B: np.ndarray,
    axes: Any = None,
    dot_axes: Any = ((), ()),
    mode: str = "full",
) -> np.ndarray:
    (conv_a, conv_b), (dot_a, dot_b) = _pairs(A, axes, dot_axes)
    return _convolved(T, B, [_behind(conv_a), conv_b], [_behind(dot_a), dot_b], mode)


def _right_tangent(
    T: np.ndarray,
    ans: Any,
    A: np.ndarray,
    B: np.ndarray,
    axes: Any = None,
    dot_axes: Any = ((), ()),
    mode: str = "full",
) -> np.ndarray:
    (conv_a, conv_b), (dot_a, dot_b) = _pairs(A, axes, dot_axes)
    rows = _convolved(A, T, [conv_a, _behind(conv_b)], [dot_a, _behind(dot_b)], mode)
    return np.moveaxis(rows, A.ndim - len(conv_a) - len(dot_a), 0)


def _adjoint(
    G: np.ndarray, A: np.ndarray, B: np.ndarray, axes: Any, dot_axes: Any, mode: str, of: str
) -> np.ndarray:
    """Correlate adjoints with the other operand."""
    other, Y = ("B", B) if of == "A" else ("A", A)
    parsed, shapes = parse_axes(A.shape, B.shape, axes, dot_axes, mode)
    result, mine, theirs = parsed["out"], parsed[of], parsed[other]
    back = (
        "full"
        if mode == "valid" and any(map(int.__gt__, shapes[of]["conv"], shapes[other]["conv"]))
        else "valid"
    )
    if mode == "same":
        widths = [(0, 0)] * G.ndim
        for axis, n in zip(result["conv"], shapes["B"]["conv"], strict=True):
            widths[axis + 1] = ((n - 1) // 2, n - 1 - (n - 1) // 2)
        G = np.pad(G, widths)
    rows = _convolved(
        G,
        Y[flipped_idxs(Y.ndim, theirs["conv"])],
        [_behind(list(result["conv"])), list(theirs["conv"])],
        [_behind(list(result[f"ignore_{other}"])), list(theirs["ignore"])],
        back,
    )
    order = np.argsort(mine["ignore"] + mine["dot"] + mine["conv"])
    return np.transpose(rows, [0, *(int(i) + 1 for i in order)])


def _edges(ans: Any, args: tuple[Any, ...], argnums: tuple[int, ...], kwargs: Any) -> int:
    """|E|: one edge for each product of elements, at most."""
    B = args[1] if len(args) > 1 else kwargs["B"]
    return int(np.size(args[0])) * int(np.size(B)) * len(argnums)


bulk(
    convolve,
    tangents=[_left_tangent, _right_tangent],
    adjoints=[
        lambda G, ans, A, B, axes=None, dot_axes=((), ()), mode="full": _adjoint(
            G, A, B, axes, dot_axes, mode, "A"
        ),
        lambda G, ans, A, B, axes=None, dot_axes=((), ()), mode="full": _adjoint(
            G, A, B, axes, dot_axes, mode, "B"
        ),
    ],
    edges=_edges,
)
