"""Names of functions for readers, and stable ones of primitives, which find the same object in every process.

A primitive wraps a function of another module, so Python's own pickling by reference does not find it; a copy
of it would have no derivative rules.
"""

import importlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tapesplit.errors import UnnamedPrimitiveError

__all__ = ["display_name", "find_primitive", "is_from_autograd", "is_primitive", "label_of", "primitive_name"]

_PUBLIC: Final = ("autograd.numpy", "autograd.numpy.linalg", "autograd.numpy.fft", "autograd.builtins")
"""Modules whose names come first, since users know them."""


def display_name(function: Any) -> str:
    """Return the name of a function for messages and reports, without the functions that it is defined in."""
    while isinstance(function, partial) and not hasattr(function, "__name__"):
        function = function.func
    simple: str = getattr(function, "__name__", type(function).__name__)
    qualified = getattr(function, "__qualname__", simple)
    return simple if "<locals>" in qualified else qualified


def label_of(primitive: Callable[..., Any] | None) -> str:
    """Return the name by which readers know a primitive, "input" for none."""
    if primitive is None:
        return "input"
    name = getattr(primitive, "__name__", str(primitive))
    return _LABELS.get(name) or name.strip("_")


_LABELS: Final = {
    "concatenate_args": "concatenate",
    "array_from_args": "array",
    "_array_from_scalar_or_array": "array",
    "custom_where": "where",
    "adjusted_side": "side of solve",
    "dense_untake": "untake",
    "summed_untake": "untake",
    "log_abs_det": "slogdet",
    "inner_variable": "variable of a gradient",
    "singular_values": "singular values",
    "singular_vectors": "svd vectors",
    "slope_of_tanh": "slope of tanh",
    "symmetric_eigenvalues": "eigenvalues",
    "symmetric_eigenvectors": "eigenvectors",
}
"""Functions, as users know them, that call primitives of other names."""


def is_primitive(function: Any) -> bool:
    """Return whether a function is an autograd primitive; its wrappers have its attributes, but no rules."""
    wrapped = getattr(function, "__wrapped__", None)
    return getattr(function, "_is_autograd_primitive", False) is True and not is_primitive(wrapped)


def is_from_autograd(primitive: Callable[..., Any] | None) -> bool:
    """Return whether a primitive is one of autograd's own."""
    global _scanned  # noqa: PLW0603 (sys.modules belongs to the process, too)
    if primitive not in _known_names and _scanned != len(sys.modules):
        _known_names.update(_names_of_autograd())
        _scanned = len(sys.modules)
    return primitive in _known_names


def primitive_name(primitive: Callable[..., Any]) -> str:
    """Return the name under which `find_primitive` finds a primitive.

    It is ``module:path`` of a name of autograd's, else of the place where the user has defined the primitive.
    Raises `UnnamedPrimitiveError` if no name leads to it, as for a primitive that is defined inside a
    function.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> primitive_name(np.dot), find_primitive("autograd.numpy:dot") is np.dot
    ('autograd.numpy:dot', True)
    """
    if is_from_autograd(primitive):
        return _known_names[primitive]
    raw = getattr(primitive, "fun", primitive)
    name = f"{getattr(raw, '__module__', None)}:{getattr(raw, '__qualname__', None)}"
    try:
        found = find_primitive(name)
    except (ImportError, AttributeError, ValueError):
        found = None
    if found is primitive:
        return name
    raise UnnamedPrimitiveError(
        f"the primitive {name} cannot be pickled: that name does not lead to it; define it at the top level "
        "of a module"
    )


def find_primitive(name: str) -> Callable[..., Any]:
    """Return the primitive of a name.

    Raises ImportError if there is no such module, and AttributeError if the module has no such name.
    """
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    return found


_known_names: dict[Any, str] = {}
"""Names of autograd's primitives."""
_scanned = 0
"""How many modules were loaded when those of autograd were last searched for primitives."""


def _names_of_autograd() -> dict[Any, str]:
    """Collect the primitives in autograd's loaded modules and in their classes."""
    loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "autograd")
    names: dict[Any, str] = {}
    for module in dict.fromkeys((*_PUBLIC, *loaded)):
        for path, value in list(vars(importlib.import_module(module)).items()):
            if is_primitive(value):
                names.setdefault(value, f"{module}:{path}")
            elif isinstance(value, type):
                for attribute, method in vars(value).items():
                    if is_primitive(method):
                        names.setdefault(method, f"{module}:{path}.{attribute}")
    return names
