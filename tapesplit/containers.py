"""Parts of containers: which value of the tape stands where in a tuple, list or dict.

Parameters often come as a nested list or dict of arrays. `autograd.misc.flatten` makes a vector of them, and
its inverse puts each array into a container of zeros and adds all these containers up. What is taken from the
sum is one of the arrays, so neither the sums nor the containers need a place on the tape.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Final, TypeAlias

import autograd.builtins as ab
import numpy as np
from autograd.core import VSpace, sparse_add
from autograd.util import func

__all__ = ["PART_FINDERS", "Parts", "same_form", "taken"]

Parts: TypeAlias = Mapping[Any, Any]
"""Node of each active part, by its key in the container; everything else is constant."""
Nodes: TypeAlias = Mapping[int, Any]
"""Node of each active argument of a call, by its number."""


def taken(parts: Parts, container: Any, key: Any) -> Any:
    """Return the node of the part that a key takes from a container, None if it is no active part."""
    if isinstance(key, slice):  # takes several parts
        return None
    return parts.get(range(len(container))[key] if isinstance(container, (tuple, list)) else key)


def same_form(left: Any, right: Any) -> bool:
    """Tell whether two values have the same shape and type, NumPy's numbers being arrays."""
    if type(left) is type(right) is np.ndarray:
        return left.shape == right.shape and left.dtype == right.dtype
    numbers = (np.ndarray, np.generic, float)
    if not isinstance(left, numbers) or not isinstance(right, numbers):
        return False
    return np.shape(left) == np.shape(right) and np.result_type(left) == np.result_type(right)


def _of_sequence(_value: Any, _args: tuple[Any, ...], nodes: Nodes) -> Parts:
    """Find the parts of a tuple or list of values."""
    return {argnum - 1: node for argnum, node in nodes.items()}


def _of_dict(_value: Any, args: tuple[Any, ...], nodes: Nodes) -> Parts | None:
    """Find the parts of a dict, which is made of its keys and a list of its values."""
    values = nodes[1].parts
    return values and {key: values[i] for i, key in enumerate(args[0]) if i in values}


def _of_untaken(_value: Any, args: tuple[Any, ...], nodes: Nodes) -> Parts | None:
    """Find the only part of a container of zeros that a value has been put into."""
    _, key, space = args
    if isinstance(key, slice) or set(nodes) != {0}:
        return None
    return {range(len(space.shape))[key] if isinstance(space.shape, (tuple, list)) else key: nodes[0]}


def _of_sum(value: Any, args: tuple[Any, ...], nodes: Nodes) -> Parts | None:
    """Join the parts of two containers; None is no container. Parts of both are added up."""
    joined: dict[Any, Any] = {}
    known = [nodes[i].parts if i in nodes else None for i in (1, 2) if args[i] is not None]
    if not isinstance(value, (tuple, list, dict)) or not all(known):
        return None
    for key, node in chain.from_iterable(parts.items() for parts in known if parts):
        before = joined.get(key)
        if before is not None:
            summands = (args[0].shape[key], before.value, node.value)
            node = type(node)(value[key], func(VSpace.add), summands, {}, (1, 2), (before, node))  # noqa: PLW2901
        joined[key] = node
    return joined


def _of_slice(_value: Any, args: tuple[Any, ...], nodes: Nodes) -> Parts | None:
    """Find the parts that a slice takes from a sequence."""
    container, key = args
    parts = nodes[0].parts
    if not parts or not isinstance(key, slice):
        return None
    return {new: parts[old] for new, old in enumerate(range(len(container))[key]) if old in parts}


def _of_longer(_value: Any, args: tuple[Any, ...], nodes: Nodes) -> Parts | None:
    """Find the parts of a sequence with further values behind it."""
    known = nodes[0].parts if 0 in nodes else {}
    if known is None:
        return None
    return {**known, **{len(args[0]) - 1 + i: node for i, node in nodes.items() if i}}


PART_FINDERS: Final[dict[Any, Callable[[Any, tuple[Any, ...], Nodes], Parts | None]]] = {
    ab.make_sequence: _of_sequence,
    ab._make_dict: _of_dict,  # noqa: SLF001 (autograd's dict calls it)
    ab.sequence_extend_right: _of_longer,
    ab.container_take: _of_slice,
    ab.container_untake: _of_untaken,
    sparse_add: _of_sum,
    func(VSpace.add): _of_sum,
    func(VSpace.mut_add): _of_sum,
}
"""By primitive ``find(value, args, nodes)``, with the nodes of active arguments; None if it cannot tell."""
