"""Primitives that only move elements: registering one takes its name, `tapesplit.rules.moves` does the rest."""

import autograd.builtins as ab
import autograd.numpy as anp
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_wrapper import _array_from_scalar_or_array, array_from_args, concatenate_args

from tapesplit.rules.registry import movement

movement(
    ArrayBox.__getitem__,
    anp.reshape,
    anp.ravel,
    anp.transpose,
    anp.swapaxes,
    anp.moveaxis,
    anp.roll,
    anp.squeeze,
    anp.expand_dims,
    anp.broadcast_to,
    concatenate_args,
    array_from_args,
    _array_from_scalar_or_array,
    ab.container_take,
    ab.make_sequence,
    ab.sequence_extend_right,
    ab.sequence_extend_left,
)
