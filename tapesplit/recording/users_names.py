"""Users' modules, where names may stand for functions of autograd: ``from autograd.numpy import sin``."""

import functools
import inspect
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MethodType
from typing import Any, Final

__all__ = ["modules_of"]


def modules_of(fun: Callable[..., Any]) -> list[dict[str, Any]]:
    """Return the global names of the modules that a function, and those it calls, are written in.

    Functions that it calls are those that it reaches by a global name or closes over, or that a partial, a
    method or a decorated function stands for; attributes are not followed. Takes about 1 µs for each name in
    their code.
    """
    modules: dict[int, dict[str, Any]] = {}
    waiting: list[Any] = [fun]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        waiting += _called(function)
        if type(function) is FunctionType and not _is_of_library(function):
            modules[id(function.__globals__)] = function.__globals__
    return [*modules.values()]


def _called(function: Any) -> Iterator[Any]:
    """Yield the functions that a function calls, as far as they can be told without calling it."""
    if type(function) is MethodType:
        yield function.__func__
    elif type(function) is functools.partial:
        yield function.func
    elif type(function) is FunctionType:
        for cell in function.__closure__ or ():
            yield _content(cell)
        if not _is_of_library(function):
            names = function.__globals__
            for name in function.__code__.co_names:
                yield names.get(name)
    elif type(method := inspect.getattr_static(type(function), "__call__", None)) is FunctionType:
        yield method
        yield inspect.getattr_static(function, "__wrapped__", None)


def _content(cell: CellType) -> Any:
    """Return what a function closes over; None if it has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_of_library(function: FunctionType) -> bool:
    """Tell whether a function is written in a package that has no names to be replaced."""
    return str(function.__globals__.get("__name__")).partition(".")[0] in _LIBRARIES


_LIBRARIES: Final = frozenset({"autograd", "jcdp_core", "numpy", "scipy", "tapesplit"})
_MOST_FUNCTIONS: Final = 500
"""Functions, and other values that they reach, that are looked at."""
