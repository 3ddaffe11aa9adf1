"""Convolutions of autograd.scipy.signal: a batch of directions is one more axis that is not convolved."""

from typing import Any

import numpy as np
from autograd.scipy.signal import convolve, flipped_idxs, parse_axes

from tapesplit.rules.registry import defvector


def _pairs(A: np.ndarray, axes: Any, dot_axes: Any) -> tuple[list[list[int]], list[list[int]]]:
    """Convolved and summed axes of both operands."""
    if axes is None:
        axes = [range(A.ndim), range(A.ndim)]
    return [list(x) for x in axes], [list(x) for x in dot_axes]


def _behind(axes: list[int]) -> list[int]:
    """Axes of a value in a batch."""
    return [axis + 1 for axis in axes]


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
    return convolve(T, B, [_behind(conv_a), conv_b], [_behind(dot_a), dot_b], mode)


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
    rows = convolve(A, T, [conv_a, _behind(conv_b)], [dot_a, _behind(dot_b)], mode)
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
    rows = convolve(
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
    return int(np.size(args[0])) * int(np.size(args[1])) * len(argnums)


defvector(
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
