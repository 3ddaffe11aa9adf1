"""Primitives that only move elements: they are just listed, `tapesplit.rules.numbering` finds what they do.

This covers ``take`` and ``flip``, too, which have no rule in autograd.
"""

from typing import Any

import autograd.builtins as ab
import autograd.numpy as anp
import numpy as np
from autograd.numpy import fft
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_wrapper import (
    _array_from_scalar_or_array,
    _astype,
    array_from_args,
    concatenate_args,
)

from tapesplit.recording.primitives import dense_untake, inner_variable
from tapesplit.recording.values import derivative_dtype
from tapesplit.rules.axes import real_like
from tapesplit.rules.registry import bulk, movement, no_edges
from tapesplit.rules.stacks import stacked

# Shape
movement(anp.reshape, anp.ravel, anp.squeeze, anp.expand_dims, anp.broadcast_to)
movement(anp.atleast_1d, anp.atleast_2d, anp.atleast_3d)
# Order
movement(anp.transpose, anp.swapaxes, anp.moveaxis, anp.rollaxis)
movement(anp.roll, anp.flip, anp.flipud, anp.fliplr, anp.rot90, fft.fftshift, fft.ifftshift)
# Choice and repetition
movement(ArrayBox.__getitem__, anp.take, anp.repeat, anp.tile, anp.full)
movement(dense_untake, anp.diag, anp.diagonal, anp.make_diagonal, anp.tril, anp.triu, fft.truncate_pad)
# Joining and splitting
movement(concatenate_args, array_from_args, _array_from_scalar_or_array)
movement(anp.split, anp.array_split, anp.vsplit, anp.hsplit, anp.dsplit)
# Containers
movement(ab.container_take, ab.make_sequence, ab.sequence_extend_right, ab.sequence_extend_left)
movement(ab._make_dict)  # noqa: SLF001 (autograd has no public name for the primitive behind its dict)
# Variables
movement(inner_variable)


def _margins(x: Any, pad_width: Any, mode: str = "constant", **keywords: Any) -> Any:
    """Widths of a padding by constants; None for other modes and a dict, which autograd does not cover."""
    if mode != "constant" or isinstance(pad_width, dict):
        return None
    return np.broadcast_to(np.asarray(pad_width), (np.ndim(x), 2))


def _pad_tangent(T: np.ndarray, ans: Any, x: Any, *args: Any, **keywords: Any) -> Any:
    margins = _margins(x, *args, **keywords)
    return NotImplemented if margins is None else np.pad(T, [(0, 0), *margins])


def _pad_adjoint(A: np.ndarray, ans: Any, x: Any, *args: Any, **keywords: Any) -> Any:
    margins = _margins(x, *args, **keywords)
    if margins is None:
        return NotImplemented
    inside = (slice(start, start + n) for start, n in zip(margins[:, 0], np.shape(x), strict=True))
    return A[(slice(None), *inside)]


bulk(anp.pad, tangents=[_pad_tangent], adjoints=[_pad_adjoint], edges=no_edges)


# Elements stay in place, but their dtype or imaginary part changes.
bulk(
    _astype,
    tangents=[lambda T, ans, x, dtype, **keywords: real_like(T, ans).astype(np.result_type(ans, np.float16))],
    adjoints=[lambda A, ans, x, dtype, **keywords: real_like(A, x).astype(derivative_dtype(x))],
    edges=no_edges,
)
bulk(
    anp.conj,
    tangents=[lambda T, ans, x: np.conj(T)],
    adjoints=[lambda A, ans, x: np.conj(A)],
    edges=no_edges,
)
for _of_elements in (_astype, anp.conj):
    stacked(_of_elements, lambda x, *args, **keywords: ())
