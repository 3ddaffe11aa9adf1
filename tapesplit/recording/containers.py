"""Parts of containers: which value of the tape stands where in a tuple, list or dict.

Parameters often come as a nested list or dict of arrays. `autograd.misc.flatten` makes a vector of them, and
its inverse puts each array into a container of zeros and adds all these containers up. What is taken from the
sum is one of the arrays, so neither the sums nor the containers need a place on the tape.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import autograd.builtins as ab
import numpy as np
from autograd.core import VSpace, sparse_add
from autograd.util import func

__all__ = ["PART_FINDERS", "PartFinder", "Parts", "same_form", "taken"]


class Parts(NamedTuple):
    """The active parts of a container, and whether all other elements of it are zero, not just constant."""

    nodes: Mapping[Any, Any]
    zero_elsewhere: bool


_Nodes: TypeAlias = Mapping[int, Any]
"""Node of each active argument of a call, by its number."""
PartFinder: TypeAlias = Callable[[Any, tuple[Any, ...], _Nodes], Parts | None]
"""``find(value, args, nodes)`` for a call of some primitive; None if the parts are not known."""


def taken(parts: Parts, container: Any, key: Any) -> Any:
    """Return the node of the part that a key takes from a container, None if it is no active part."""
    if isinstance(key, slice):  # takes several parts
        return None
    return parts.nodes.get(range(len(container))[key] if isinstance(container, (tuple, list)) else key)


def same_form(left: Any, right: Any) -> bool:
    """Tell whether two values have the same shape and type, NumPy's numbers being arrays."""
    if type(left) is type(right) is np.ndarray:
        return left.shape == right.shape and left.dtype == right.dtype
    numbers = (np.ndarray, np.generic, float)
    if not isinstance(left, numbers) or not isinstance(right, numbers):
        return False
    return np.shape(left) == np.shape(right) and np.result_type(left) == np.result_type(right)


def _of_sequence(_value: Any, args: tuple[Any, ...], nodes: _Nodes) -> Parts:
    """Find the parts of a tuple or list of values."""
    return Parts({argnum - 1: node for argnum, node in nodes.items()}, len(nodes) == len(args) - 1)


def _of_dict(_value: Any, args: tuple[Any, ...], nodes: _Nodes) -> Parts | None:
    """Find the parts of a dict, which is made of its keys and a list of its values."""
    values = nodes[1].parts
    if values is None:
        return None
    return values._replace(nodes={key: values.nodes[i] for i, key in enumerate(args[0]) if i in values.nodes})


def _of_untaken(_value: Any, args: tuple[Any, ...], nodes: _Nodes) -> Parts | None:
    """Find the only part of a container of zeros that a value has been put into."""
    _, key, space = args
    if isinstance(key, slice) or set(nodes) != {0}:
        return None
    place = range(len(space.shape))[key] if isinstance(space.shape, (tuple, list)) else key
    return Parts({place: nodes[0]}, zero_elsewhere=True)


def _of_sum(value: Any, args: tuple[Any, ...], nodes: _Nodes) -> Parts | None:
    """Join the parts of two containers, or of one if the first is None; parts at one place are added up."""
    summands = [nodes[i].parts if i in nodes else None for i in (1, 2) if args[i] is not None]
    known = [parts for parts in summands if parts]
    if not isinstance(value, (tuple, list, dict)) or len(known) < len(summands):
        return None
    joined: dict[Any, Any] = dict(known[0].nodes)
    for key, node in known[1].nodes.items() if len(known) == 2 else ():
        before = joined.get(key)
        if before:
            both = (args[0].shape[key], before.value, node.value)
            joined[key] = type(node)(value[key], _sum, both, {}, (1, 2), (before, node))
        else:
            joined[key] = node
    alone = [key for parts in known if not parts.zero_elsewhere for key in joined.keys() - parts.nodes.keys()]
    if alone:  # constants are added to them
        return None
    return Parts(joined, all(parts.zero_elsewhere for parts in known))


def _of_slice(_value: Any, args: tuple[Any, ...], nodes: _Nodes) -> Parts | None:
    """Find the parts that a slice takes from a sequence."""
    container, key = args
    parts = nodes[0].parts if isinstance(key, slice) else None  # another key may be the only active argument
    if parts is None:
        return None
    places = enumerate(range(len(container))[key])
    return parts._replace(nodes={new: parts.nodes[old] for new, old in places if old in parts.nodes})


def _of_longer(_value: Any, args: tuple[Any, ...], nodes: _Nodes) -> Parts | None:
    """Find the parts of a sequence to which values have been appended."""
    known = nodes[0].parts if 0 in nodes else Parts({}, zero_elsewhere=False)
    if known is None:
        return None
    further = {len(args[0]) - 1 + i: node for i, node in nodes.items() if i}
    return Parts({**known.nodes, **further}, known.zero_elsewhere and len(further) == len(args) - 1)


_sum = func(VSpace.add)
PART_FINDERS: Final[dict[Any, PartFinder]] = {
    ab.make_sequence: _of_sequence,
    ab._make_dict: _of_dict,  # noqa: SLF001 (autograd's dict calls it)
    ab.sequence_extend_right: _of_longer,
    ab.container_take: _of_slice,
    ab.container_untake: _of_untaken,
    sparse_add: _of_sum,
    _sum: _of_sum,
    func(VSpace.mut_add): _of_sum,
}
"""Functions that find the parts of a container, by the primitive that made it."""
