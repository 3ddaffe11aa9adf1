"""What the command line names: a function in a file, and inputs as expressions or .npy files."""

import functools
import importlib.util
import inspect
import sys
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any, Final

import numpy as np

from tapesplit.errors import CommandError
from tapesplit.jacobian_function import JacobianFunction
from tapesplit.recording.auxiliary import splitting_aux

__all__ = ["load_function", "load_inputs", "undecorated"]

_OTHER_FILES: Final = (".npz", ".csv", ".txt")


def load_function(target: str) -> tuple[Callable[..., Any], Mapping[str, Any]]:
    """Load the function that a target such as ``model.py:simulate`` names.

    The target is FILE.py:FUNCTION, or FILE.py:OBJECT.METHOD. Returns the function and all names of its file.
    Raises `CommandError` if the target has another form, or there is no such file or function.
    """
    file, colon, name = target.rpartition(":")
    if not colon or not file or not name:
        raise CommandError(
            f"{target!r} does not name a function; write FILE.py:FUNCTION, for example model.py:simulate"
        )
    path = Path(file)
    if not path.is_file():
        raise CommandError(f"there is no file {file!r}; write FILE.py:FUNCTION with a path from {Path.cwd()}")
    module = _module(path)
    names = vars(module)
    try:
        fun = attrgetter(name)(module)
    except AttributeError:
        own = [key for key, value in names.items() if _is_function_of(module, value) and key[0] != "_"]
        raise CommandError(f"{file} has no {name!r}; it has {', '.join(own) or 'no functions'}") from None
    if not callable(fun):
        raise CommandError(f"{name!r} in {file} is not a function: its type is {type(fun).__name__}")
    _check_has_an_object(fun, name, module)
    return fun, names


def _check_has_an_object(fun: Any, name: str, module: ModuleType) -> None:
    """Refuse a class, and a method of one that needs an object."""
    owner, dot, method = name.rpartition(".")
    home = attrgetter(owner)(module) if dot else None
    if isinstance(home, type) and not isinstance(
        inspect.getattr_static(home, method), (staticmethod, classmethod)
    ):
        raise CommandError(
            f"{name!r} is a method of the class {owner}, which needs an object; make one in the file: "
            f"model = {owner}(...), and write FILE.py:model.{method}"
        )
    if isinstance(fun, type):
        raise CommandError(f"{name!r} is a class; write the name of a function, or of an object's method")


def _is_function_of(module: ModuleType, value: Any) -> bool:
    """Tell whether a value is a function that a module has defined, not imported."""
    return (
        callable(value)
        and not isinstance(value, type)
        and getattr(value, "__module__", "") == module.__name__
    )


def _module(path: Path) -> ModuleType:
    """Run a file as a module; it may import its neighbors, as it could when run by Python."""
    sys.path.insert(0, str(path.resolve().parent))
    name = str(path.resolve())  # as no other module is named
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is no Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def undecorated(fun: Callable[..., Any], inputs: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the function whose Jacobian is meant, and the options that it was decorated with.

    `fun` is a function, or its `JacobianFunction`, and `inputs` how many arguments are given. The returned
    function has no auxiliary result; the options are those of `parallel_jacobian`, none if it was not
    decorated.

    Examples
    --------
    >>> import autograd.numpy as anp
    >>> from tapesplit import parallel_jacobian
    >>> fun, options = undecorated(parallel_jacobian(anp.multiply, -1, machines=2), 2)
    >>> fun is anp.multiply, options["argnum"], options["machines"]
    (True, (1,), 2)
    """
    if not isinstance(fun, JacobianFunction):
        return fun, {}
    options, positions = fun._options, fun._positions_of_call  # noqa: SLF001 (of our own class, as below)
    function = functools.reduce(MethodType, fun._bound, fun.__wrapped__)  # noqa: SLF001
    return splitting_aux(function, deque(maxlen=0)) if options.has_aux else function, {
        "argnum": tuple(n + inputs if n < 0 else n for n in positions),
        **{name: getattr(options, name) for name in _KEPT_OPTIONS},
    }


_KEPT_OPTIONS: Final = ("machines", "method", "cost", "memory_limit", "executor")
"""Options that are taken over: those that say how to compute, not callbacks."""


def load_inputs(
    texts: Sequence[str], names: Mapping[str, Any], differentiated: Container[int]
) -> tuple[Any, ...]:
    """Load inputs.

    Parameters
    ----------
    texts
        Each the name of a .npy file, or a Python expression in which ``np`` is numpy.
    names
        Names that expressions may use besides.
    differentiated
        Positions of those that become arrays of float; the others stay what they are.

    Raises
    ------
    CommandError
        If a file cannot be read, an expression cannot be evaluated, or a value to differentiate by is no
        array of real numbers.

    Examples
    --------
    >>> load_inputs(["np.ones(3)", "[1, 2]", "4"], {}, differentiated=(0, 1))
    (array([1., 1., 1.]), array([1., 2.]), 4)
    """
    if not texts:
        raise CommandError(
            "no input is given; write --input 'np.ones(3)' or --input data.npy for each argument"
        )
    values = [_value(text, names) for text in texts]
    return tuple(
        _floats(text, value) if position in differentiated else value
        for position, (text, value) in enumerate(zip(texts, values, strict=True))
    )


def _value(text: str, names: Mapping[str, Any]) -> Any:
    """Read a file, or evaluate an expression."""
    if text.endswith(_OTHER_FILES):
        raise CommandError(
            f"--input {text!r} is no .npy file; load it in an expression, as in \"np.load('x.npz')['a']\" or "
            "\"np.loadtxt('x.csv', delimiter=',')\""
        )
    try:
        if text.endswith(".npy"):
            return _array_file(text)
        # the user's own words on the user's own command line, like python -c
        return eval(text, {**names, "np": np})  # noqa: S307
    except Exception as error:
        raise CommandError(
            f"--input {text!r} cannot be evaluated: {type(error).__name__}: {error}; write an expression "
            "of numpy such as 'np.ones(3)', a name in the function's file, or the name of a .npy file"
        ) from error


def _array_file(name: str) -> np.ndarray:
    """Read a file, which must not hold Python objects: reading these would run their code."""
    with Path(name).open("rb") as file:
        return np.lib.format.read_array(file)


def _floats(text: str, value: Any) -> np.ndarray:
    """Convert an input to differentiate by into an array of float."""
    advice = (
        "give real numbers, or name the inputs to differentiate by with --argnum; others stay as they are"
    )
    try:
        array = np.asarray(value)
        floats = np.asarray(array.real, dtype=float)
    except Exception as error:
        raise CommandError(
            f"--input {text!r} is not an array of numbers: {type(error).__name__}: {error}; {advice}"
        ) from error
    if np.iscomplexobj(array):
        raise CommandError(f"--input {text!r} is complex; {advice}")
    if array.dtype == object:  # None has become NaN
        raise CommandError(f"--input {text!r} is not an array of numbers, it holds objects; {advice}")
    return floats
