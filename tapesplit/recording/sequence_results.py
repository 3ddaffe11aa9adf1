"""Sequences of results that record themselves only if one of autograd's functions takes them whole."""

from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar

from autograd.builtins import SequenceBox, make_sequence
from autograd.tracer import Box, box_type_mappings, getval, isbox

from tapesplit.recording.nodes import TapeNode

__all__ = ["SplitResult", "result_like"]


class TupleResult(tuple[Any, ...]):
    """Results in a tuple. autograd's functions take it for one box, as its own primitive would return."""

    __slots__ = ()
    _form: ClassVar[type] = tuple

    @property
    def _trace(self) -> int:
        trace: int = next(part._trace for part in self if isbox(part))
        return trace

    @property
    def _value(self) -> Any:
        return self._make(map(getval, self))

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        return cls._form(values)

    @property
    def _node(self) -> TapeNode:
        """Record the sequence when it is asked for."""
        boxed = {argnum: part._node for argnum, part in enumerate(self, 1) if isbox(part)}
        args = (self._form, *map(getval, self))
        return TapeNode(self._form(args[1:]), make_sequence, args, {}, tuple(boxed), tuple(boxed.values()))


class SplitResult(TupleResult):
    """Results in a list that refuses assignments, as the box does that autograd's function returns."""

    __slots__ = ()
    _form = list

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return list(found) if type(index) is slice else found

    def __add__(self, others: Any) -> list[Any]:  # type: ignore[override] # what a list of values would do
        return [*self, *others]

    def __radd__(self, others: Any) -> list[Any]:
        return [*others, *self]


def result_like(found: tuple[Any, ...]) -> type[TupleResult]:
    """Return the class for results of a function that returns a named tuple: their value is one, too."""
    return _named(type(found))


@cache
def _named(form: Any) -> type[TupleResult]:
    """Make the class of results whose values are of this type."""

    class NamedResult(TupleResult):
        __slots__ = ()
        _make = form._make

    _register(NamedResult)
    return NamedResult


def _register(result: type[TupleResult]) -> None:
    """Make autograd treat the instances of a class as boxes of sequences."""
    Box.types.add(result)
    box_type_mappings[result] = SequenceBox


_register(TupleResult)
_register(SplitResult)
