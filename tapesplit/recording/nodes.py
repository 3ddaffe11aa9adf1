"""Nodes of a tape: which entry a value is, in the form that autograd's general path asks for."""

from collections.abc import Callable
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd.builtins import container_take
from autograd.core import VJPNode, VSpace, primitive_vjps
from autograd.extend import SparseObject
from autograd.tracer import Box, Node, isbox, notrace_primitives
from autograd.util import func

from tapesplit.errors import NestedTraceError, StaleValueError
from tapesplit.names import display_name
from tapesplit.recording.checkpoints import SIMPLER, is_checkpoint, traced_again
from tapesplit.recording.containers import PART_FINDERS, PartFinder, Parts, same_form, taken
from tapesplit.recording.hidden import hidden_value_error, holds_box
from tapesplit.recording.overrides import are_current, original_vjps
from tapesplit.recording.source_lines import users_line
from tapesplit.recording.tape import Entries
from tapesplit.recording.triangular_systems import with_adjusted_side

__all__ = ["OF_ADD", "TapeNode"]


_FOREIGN: Final = (
    "{} combines traced values with those of a trace begun by hand; call a Jacobian function, which then "
    "leaves all to autograd"
)
_STALE: Final = (
    "traced values of two calls; what is kept from one call for the next must be a plain value "
    "(autograd.tracer.getval)"
)

_add = anp.add
OF_ADD: Final = original_vjps(anp.add)
"""autograd's VJP of sums: if it is replaced, sums of adjoints are not recorded as such."""
_SUMS: Final = frozenset({func(VSpace.add), func(VSpace.mut_add)})
"""Sums of adjoints, which are sums like any other if the adjoints are arrays."""


class TapeNode(Node):
    """Entry of a value on its tape, in the form that autograd's general path asks for.

    A container whose ``parts`` are known gets an entry only when its ``index`` is asked for: mostly its parts
    are just taken out again, and they have entries already. Until then ``_source`` is the call that made the
    container, with the nodes of its operands. A value that was taken out of a container has the node of the
    same value that was put in as its ``_source``.
    """

    __slots__ = ("_index", "_source", "entries", "parts")

    def __init__(
        self,
        value: Any,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple["TapeNode", ...],
    ) -> None:
        try:
            entries = self.entries = parents[0].entries
            is_mixed = len(parents) > 1 and any(parent.entries is not entries for parent in parents)
        except AttributeError:  # a node of autograd's
            raise NestedTraceError(_FOREIGN.format(getattr(fun, "__name__", fun))) from None
        if is_mixed:
            raise StaleValueError(f"{getattr(fun, '__name__', fun)} combines {_STALE}")
        self.parts: Parts | None = None
        self._index: int | None = None
        self._source: Any = None
        if fun in _SUMS and all(same_form(value, x) for x in args[1:]) and are_current(OF_ADD):
            fun, args, parent_argnums = _add, args[1:], tuple([argnum - 1 for argnum in parent_argnums])
        find_parts = PART_FINDERS.get(fun)
        if find_parts is not None:
            self._source = (fun, parent_argnums, parents, tuple(args), kwargs, value)
            self._find_parts(find_parts)
            return
        if not isinstance(value, _KNOWN) and type(value) in VSpace.mappings:
            raise NestedTraceError(
                f"{getattr(fun, '__name__', fun)} returned a {type(value).__name__}, whose derivatives "
                "only autograd can trace; call a Jacobian function, which then leaves all to autograd"
            )
        checkpointed = is_checkpoint(fun)
        function = fun.fun if checkpointed else SIMPLER.get(fun)  # type: ignore[attr-defined] # of autograd's
        if function is not None:
            again = traced_again(function, args, kwargs, parent_argnums, parents, entries.level)
            if type(again) is TapeNode and again.entries is entries:
                self._index = again.index
                return
            if checkpointed and isbox(value) and value._trace > entries.level:  # of a derivative inside
                raise hidden_value_error("a function under checkpoint")
        is_suspect = fun not in primitive_vjps or holds_box(value)
        if is_suspect and (name := display_name(fun)) not in entries.suspects:
            entries.suspects[name] = users_line()
        active = parent_argnums, tuple([parent.index for parent in parents])
        argnums, indices = with_adjusted_side(entries, fun, active, args, kwargs, value)
        self._index = entries.add(fun, argnums, indices, tuple(args), kwargs, value)

    def _find_parts(self, find_parts: PartFinder) -> None:
        """Find the parts of a container; record it at once if they are not known."""
        fun, argnums, parents, args, _, value = self._source
        self.parts = find_parts(value, args, dict(zip(argnums, parents, strict=True)))
        if fun is container_take and parents[0].parts:
            part = taken(parents[0].parts, *args)
            if part and (part.parts or same_form(value, part.value)):
                self.parts, self._source = part.parts, part._origin
        if not self.parts or not self.parts.nodes:
            self._record()

    @property
    def index(self) -> int:
        """Number of the entry; a container is recorded now, if it is not on the tape."""
        if self._index is None:
            self._record()
        return self._index  # type: ignore[return-value]

    @property
    def parents(self) -> Any:
        """An error: only autograd's derivatives ask, which meet values here that an earlier call has kept."""
        raise StaleValueError(f"the function combines {_STALE}")

    @property
    def value(self) -> Any:
        """The value, whether or not it is on the tape."""
        origin = self._origin
        return origin._source[-1] if origin._index is None else origin.entries.value(origin._index)

    @property
    def _origin(self) -> "TapeNode":
        """The node of this value from before it was put into a container, or else the node itself."""
        return self._source if self._index is None and type(self._source) is TapeNode else self

    def _record(self) -> None:
        """Find the entry of a part that has been taken, or record a call and all containers that it reads."""
        entries, waiting = self.entries, [self]
        while waiting:
            node = waiting[-1]
            is_part = type(node._source) is TapeNode
            read = (node._source,) if is_part else node._source[2]
            if unrecorded := [parent for parent in read if parent._index is None]:
                waiting += unrecorded
                continue
            waiting.pop()
            if is_part:
                node._index = node._source._index
            elif node._index is None:
                fun, argnums, parents, args, kwargs, value = node._source
                indices = tuple([parent._index for parent in parents])
                node._index = entries.add(fun, argnums, indices, args, kwargs, value)

    def initialize_root(self, entries: Entries, index: int) -> None:
        """Refer to a value that is on the tape already."""
        self.entries, self._index, self.parts = entries, index, None


_KNOWN: Final = (np.ndarray, float, np.generic, complex, tuple, list, dict, SparseObject, int, Box)
"""Types whose directions can be stacked, and boxes of other traces; users may give autograd further types
(`autograd.extend.VSpace`)."""

# What VJP tracing treats as constant (comparisons, argmax, shape queries, ...), recording does too.
notrace_primitives[TapeNode] = notrace_primitives[VJPNode]
