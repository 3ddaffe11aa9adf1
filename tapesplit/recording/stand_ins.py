"""Stand-ins: while a tape is recorded, autograd's modules hold functions and boxes that record themselves."""

import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

import autograd.numpy as anp
from autograd import core, differential_operators
from autograd.core import primitive_jvps, primitive_vjps
from autograd.numpy import numpy_vjps, numpy_wrapper
from autograd.tracer import box_type_mappings

from tapesplit.recording.boxes import OUR_BOXES, THEIR_BOXES
from tapesplit.recording.direct_functions import DIRECT_FFT, DIRECT_FUNCTIONS, DIRECT_LINALG, direct_untake
from tapesplit.recording.inner_gradients import DIRECT_OPERATORS
from tapesplit.recording.tracing import tracing_lock

__all__ = ["BoxesInPlace", "own_function", "traced_as_recorded"]


def own_function(function: Any) -> Any:
    """Return autograd's own function if the one given stands in for it, or else the one given."""
    return _STOOD_FOR.get(id(function), function)


def _define_vjp(function: Any, maker: Any) -> None:
    """Define the VJP of a primitive, as ``defvjp`` does, while another function may stand in for it."""
    primitive_vjps[own_function(function)] = maker


def _define_jvp(function: Any, maker: Any) -> None:
    """Define the JVP of a primitive, as ``defjvp`` does, while another function may stand in for it."""
    primitive_jvps[own_function(function)] = maker


class _Namespace:
    """A module of autograd: its own functions, ``general``, and those that stand in for them, ``direct``."""

    def __init__(self, module: Any, direct: dict[str, Callable[..., Any]]) -> None:
        self.names = vars(module)
        self.direct = direct
        self.general = {name: self.names[name] for name in direct}
        self.taken_from = operator.itemgetter(*direct)  # all at once, so that they are compared at once
        self.all_general, self.all_direct = self.taken_from(self.general), self.taken_from(direct)

    def own(self) -> dict[str, Callable[..., Any]]:
        """Return the functions that are autograd's own; those that a user has assigned are left alone."""
        if self.taken_from(self.names) == self.all_general:
            return self.general
        return {name: function for name, function in self.general.items() if self.names[name] is function}

    def restore(self, own: dict[str, Callable[..., Any]]) -> None:
        """Put autograd's own functions back, but where the user has assigned another one meanwhile."""
        if self.taken_from(self.names) != self.all_direct:
            own = {name: own[name] for name in own if self.names[name] is self.direct[name]}
        self.names.update(own)


_NAMESPACES: Final = (
    _Namespace(anp, DIRECT_FUNCTIONS),
    _Namespace(numpy_wrapper, {name: DIRECT_FUNCTIONS[name] for name in ("conj", "conjugate")}),
    _Namespace(anp.linalg, DIRECT_LINALG),
    _Namespace(anp.fft, DIRECT_FFT),
    _Namespace(numpy_vjps, {"untake": direct_untake}),
    _Namespace(differential_operators, DIRECT_OPERATORS),
    _Namespace(core, {"defvjp_argnums": _define_vjp, "defjvp_argnums": _define_jvp}),
)


_STOOD_FOR: Final = {
    id(namespace.direct[name]): own for namespace in _NAMESPACES for name, own in namespace.general.items()
}
"""autograd's own functions by the identity of those that stand in for them."""
_replaced: list[tuple[_Namespace, dict[str, Any]]] = []
"""Modules whose functions are replaced at the moment, with autograd's own functions."""


class BoxesInPlace:
    """While entered, autograd makes our boxes, and its modules hold the functions that record directly.

    They take a third of the time of autograd's own. The caller holds the tracing lock; nested uses are free.
    ``inside_trace`` says that a trace is active, so that this use may be a nested one.
    """

    __slots__ = ("_inside_trace", "_modules", "_outermost", "_rules")

    def __init__(self, *, inside_trace: bool) -> None:
        self._inside_trace = inside_trace

    def __enter__(self) -> None:
        if _replaced and not self._inside_trace:
            _put_back()  # a Ctrl-C has kept an earlier exit from it
        self._outermost = not _replaced
        self._modules, self._rules = len(sys.modules), len(primitive_vjps) + len(primitive_jvps)
        if not self._outermost:
            return
        try:
            for namespace in _NAMESPACES:
                own, direct = namespace.own(), namespace.direct
                _replaced.append((namespace, own))
                complete = own is namespace.general
                namespace.names.update(direct if complete else {name: direct[name] for name in own})
            box_type_mappings.update(OUR_BOXES)
        except BaseException:  # Ctrl-C
            _put_back()
            raise

    def __exit__(self, *exception: object) -> None:
        if self._outermost:
            _put_back()
            if len(sys.modules) > self._modules:  # new modules are the last ones
                _put_back_in(list(sys.modules.values())[self._modules :])
            if len(primitive_vjps) + len(primitive_jvps) > self._rules:
                _hand_over(primitive_vjps)
                _hand_over(primitive_jvps)


@contextmanager
def traced_as_recorded() -> Iterator[None]:
    """Let autograd take derivatives by its own tracing, but with the stand-ins that recordings use."""
    with tracing_lock() as outer, BoxesInPlace(inside_trace=outer >= 0):
        yield


def _hand_over(rules: dict[Any, Any]) -> None:
    """Move rules that a user has defined for stand-ins to autograd's own functions.

    Only a ``defvjp_argnums`` that the user has imported before defines them so; autograd's own code calls
    `_define_vjp` in its place.
    """
    for function in [function for function in rules if id(function) in _STOOD_FOR]:
        rules[own_function(function)] = rules.pop(function)


def _put_back_in(modules: Iterable[Any]) -> None:
    """Replace stand-ins by autograd's own functions in modules that were imported in the meantime."""
    for module in modules:
        if type(module) is ModuleType:  # others, such as lazy ones, may do anything when they are looked into
            names = vars(module)
            names.update({name: _STOOD_FOR[id(f)] for name, f in list(names.items()) if id(f) in _STOOD_FOR})


def _put_back() -> None:
    """Give autograd its own boxes and functions back."""
    box_type_mappings.update(THEIR_BOXES)
    while _replaced:
        namespace, own = _replaced[-1]
        namespace.restore(own)
        _replaced.pop()
