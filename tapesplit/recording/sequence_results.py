"""Sequences of results that record themselves only if one of autograd's functions takes them whole."""

from typing import Any, ClassVar

from autograd.builtins import SequenceBox, make_sequence
from autograd.tracer import Box, box_type_mappings, getval, isbox

from tapesplit.recording.nodes import TapeNode

__all__ = ["SplitResult", "TupleResult"]


class TupleResult(tuple[Any, ...]):
    """Results in a tuple. To autograd's functions they are one box, as what its own primitive returns."""

    __slots__ = ()
    _form: ClassVar[type] = tuple

    @property
    def _trace(self) -> int:
        trace: int = next(part._trace for part in self if isbox(part))
        return trace

    @property
    def _value(self) -> Any:
        return self._form(map(getval, self))

    @property
    def _node(self) -> TapeNode:
        """Record the sequence when it is asked for."""
        boxed = {argnum: part._node for argnum, part in enumerate(self, 1) if isbox(part)}
        values, args = self._value, (self._form, *map(getval, self))
        return TapeNode(values, make_sequence, args, {}, tuple(boxed), tuple(boxed.values()))


class SplitResult(TupleResult):
    """Results in a list, to which nothing can be assigned, as in the box that autograd's function returns."""

    __slots__ = ()
    _form = list

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return list(found) if type(index) is slice else found

    def __add__(self, others: Any) -> list[Any]:  # type: ignore[override] # what a list of values would do
        return [*self, *others]

    def __radd__(self, others: Any) -> list[Any]:
        return [*others, *self]


for _result in (TupleResult, SplitResult):
    Box.types.add(_result)
    box_type_mappings[_result] = SequenceBox
