"""Checkpoints: a checkpointed function is run once more on boxes, so that its operations are recorded.

This is done directly after its call, which is when autograd traces it, too: later changes of what the
function closes over have no effect. The primitive itself cannot stay on the tape: each call of ``checkpoint``
makes a new one, so that no two tapes would have the same structure.

Other primitives that are recorded as simpler ones, see `direct_arithmetic`, are traced again likewise where
users call autograd's own function, as by a name that they have imported.
"""

from collections.abc import Callable
from typing import Any, Final

from autograd import checkpoint
from autograd.core import primitive_vjps
from autograd.tracer import Node, isbox, new_box

__all__ = ["SIMPLER", "is_checkpoint", "traced_again"]

SIMPLER: Final[dict[Any, Callable[..., Any]]] = {}
"""By primitive, functions that record a call of it as simpler ones; they return None if they cannot."""


def _maker(primitive: Any) -> Any:
    """Return the maker of VJPs that ``defvjp_argnum`` was given; None if the VJP was defined otherwise."""
    vjp = primitive_vjps.get(primitive)
    return vjp.__closure__[0].cell_contents if getattr(vjp, "__code__", None) is _BY_ARGNUM else None


_OTHER: Final = object()
"""Equals no code object: if a version of autograd makes checkpoints in another way, none is recognized."""
_probe = checkpoint(lambda x: x)
_BY_ARGNUM: Final = getattr(primitive_vjps[_probe], "__code__", _OTHER)
_CHECKPOINT: Final = getattr(_maker(_probe), "__code__", _OTHER)


def is_checkpoint(primitive: Any) -> bool:
    """Tell whether a primitive comes from `autograd.checkpoint`."""
    return getattr(_maker(primitive), "__code__", None) is _CHECKPOINT


def traced_again(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: tuple[int, ...],
    nodes: tuple[Node, ...],
    level: int,
) -> Node | None:
    """Call the function of a checkpoint, or a simpler one, on boxes; None if its value depends on none.

    `args` and `kwargs` are plain values; `argnums` are the positions of the active ones, and `nodes` their
    nodes. `level` is the trace level of the boxes. Returns the node of the value.
    """
    boxed = list(args)
    for argnum, node in zip(argnums, nodes, strict=True):
        boxed[argnum] = new_box(args[argnum], level, node)
    result = function(*boxed, **kwargs)
    return result._node if isbox(result) else None
