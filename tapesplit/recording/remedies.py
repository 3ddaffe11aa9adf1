"""What to write instead of plain NumPy and Python on traced values, by the errors that these raise."""

import re
from typing import Final

__all__ = ["CONSTANTS", "remedy_for"]


def remedy_for(error: BaseException) -> str | None:
    """Return what to do about an error of NumPy, SciPy or Python that does not say so; None for others.

    Examples
    --------
    >>> remedy_for(TypeError("unsupported operand type(s) for //: 'ArrayBox' and 'float'"))
    'write np.floor(x / y) instead of x // y'
    """
    if not isinstance(error, _KINDS) and type(error).__name__ != "error":  # of SciPy's compiled solvers
        return None
    message = str(error)
    found = next((remedy for part, remedy in _REMEDIES.items() if re.search(part, message)), None)
    return _OF_PACKAGES.get(_package_of(error), found) if found in _OF_CONVERSION else found


def _package_of(error: BaseException) -> str:
    """Return the package that an error comes from, or whose call of NumPy it comes from."""
    packages, step = list[str](), error.__traceback__
    while step is not None:
        packages.append(step.tb_frame.f_globals.get("__name__", "").partition(".")[0])
        step = step.tb_next
    return next((package for package in reversed(packages) if package != "numpy"), "")


CONSTANTS: Final = (
    "constants must be plain NumPy arrays: write x.to_numpy() for a Series or DataFrame x, x.filled(0.0) for "
    "a masked array, np.asarray(x) for another type"
)
"""What to write instead of arrays of other packages."""
_FLOATS: Final = (
    "integers have no derivative: write 2.0 instead of 2, and np.asarray(x, dtype=float) for an array x of "
    "integers at which a Jacobian or a gradient is taken"
)
_KINDS: Final = (TypeError, ValueError, IndexError, AttributeError, SystemError, NotImplementedError)
_ARRAYS: Final = (
    "plain arrays cannot hold traced values: collect them in a list and make y = np.array(list) of it, or "
    "better write y = np.sin(x) instead of y[i] = np.sin(x[i]), and x[0] instead of np.float64(x[0])"
)
_NUMBERS: Final = (
    "functions of math, and float(), take plain numbers: write np.sin(x[0]), x[0] instead of float(x[0]), "
    "and to print '%f' take autograd.tracer.getval(x[0])"
)
_SCIPY: Final = (
    "SciPy's solvers, filters, interpolators, distances and distributions compute with plain numbers: take "
    "those of autograd.scipy, where odeint gets parameters as autograd.builtins.tuple((p,)) and not from a "
    "closure, or make the call a primitive with a rule of your own, see help(tapesplit.defvector)"
)
_SPARSE: Final = (
    "matrices of scipy.sparse do not multiply traced values: make the product a primitive with a rule of "
    "your own, help(tapesplit.defvector) has an example"
)
_IN_PLACE: Final = (
    "at changes an array in place, which is not traced: instead of np.add.at(r, index, parts) write "
    "r + B @ parts with B = numpy.arange(len(r))[:, None] == index, instead of others np.array of a list "
    "with what each place gets"
)
_PLAIN: Final = (
    "for prints, plots, indices and counts take the plain value, autograd.tracer.getval(x), which "
    "nothing is differentiated through"
)
_OF_CONVERSION: Final = frozenset({_ARRAYS, _NUMBERS})
_OF_PACKAGES: Final = {"scipy": _SCIPY, "pandas": CONSTANTS, "matplotlib": _PLAIN}
"""Advice on errors of conversion to plain numbers or arrays that were raised inside these packages."""
_FUNCTIONS: Final = (
    "take functions from autograd.numpy and autograd.scipy, not from NumPy and SciPy, and give them "
    "np.array([a, b]) instead of lists [a, b]"
)
_REMEDIES: Final = {
    "setting an array element with a sequence": _ARRAYS,
    "truth value of an array": (
        "instead of a branch on an array write np.where(x > 0, a, b), or branch on np.any(x > 0)"
    ),
    "'ArrayBox' object does not support item assignment": (
        "traced values cannot be changed in place: write np.where(mask, new, x), or join the parts by "
        "np.concatenate"
    ),
    r"w\.r\.t\. type <class 'NoneType'>": (
        "a primitive has returned None; if it changes an array in place, it has done so, but that is not "
        "traced: write np.where(mask, new, x) instead of np.put and np.copyto, and A * (1.0 - np.eye(n)) "
        "instead of np.fill_diagonal(A, 0.0)"
    ),
    r"'function' object has no attribute 'at'|<ufunc '\w+'>, 'at'": _IN_PLACE,
    r"NotImplemented from .* matrix\(|w\.r\.t\. type <class 'numpy\.matrix'>": (
        "traced values do not go together with numpy.matrix: take np.asarray(A) of the matrix A"
    ),
    "all returned NotImplemented": f"write a = a + x instead of a += x, and {_FUNCTIONS}",
    r"ufunc 'is\w+' not supported": f"{_FUNCTIONS}; for checks take the plain autograd.tracer.getval(x)",
    r"dtype\('O'\) to|ufunc '\w+' not supported for the input types|has no callable \w+ method": _FUNCTIONS,
    r"no supported conversion for types|w\.r\.t\. type <class 'scipy\.sparse": _SPARSE,
    r"w\.r\.t\. type <class '(numpy\.)?u?(int\d*|bool_?)'": _FLOATS,
    r"w\.r\.t\. type <class '(?!numpy\.(?!ma\.))\w+\.": CONSTANTS,
    r"does not have enough dimensions \(has 0": f"numbers are multiplied by *, and {_SPARSE}",
    r"complex\(\) .* not 'ArrayBox'": "write x[0] + 0j instead of complex(x[0])",
    "only integer scalar arrays can be converted to a scalar index": (
        "lists take no arrays as indices: write np.array(list)[i]"
    ),
    r"must be real number, not ArrayBox|float\(\) argument must be .* not 'ArrayBox'": _NUMBERS,
    "object arrays are not supported|input type 'object' not supported|does not support dtype object"
    "|Unsupported dtype object|supported by SuperLU|must be numpy.ndarray, not ArrayBox"
    "|not a proper array of floats|Extra arguments must be in a tuple"
    "|ArrayBox'> returned a result with an exception set": _SCIPY,
    r"ArrayBox\.__format__|int\(\) argument .* 'ArrayBox'|ArrayBox doesn't define __round__"
    "|'ArrayBox' object cannot be interpreted as an integer|integers or slices, not ArrayBox"
    "|only integers, slices .* are valid indices"
    "|ArrayBox is not JSON": _PLAIN,
    r"'(numpy\.\w+|float)' object has no attribute '_value'": (
        "variables of a gradient inside of the function are traced once: write autograd.tracer.getval(x), "
        "which is the plain value of any x, instead of x._value"
    ),
    "'ArrayBox' object has no attribute 'at'": (
        "x.at[i].set(v) is of JAX: write np.where(mask, v, x), or join the parts by np.concatenate"
    ),
    "'ArrayBox' object has no attribute": (
        "traced values have few methods of arrays: write np.dot(x, y), np.real(x), np.sort(x), np.ravel(A), "
        "A.T instead of x.dot(y), x.real, x.sort(), A.flat, A.mT, and leave x.copy() and x.item() out"
    ),
    r"(SequenceBox|NamedResult)' object has no attribute '(eigen\w+|sign|logabsdet|[USQR]|Vh)'": (
        "parts of traced results have no names: instead of np.linalg.eigh(A).eigenvalues write "
        "w, V = np.linalg.eigh(A)"
    ),
    r"'function' object has no attribute '(reduce|accumulate|reduceat|outer)'": (
        "functions of autograd.numpy are no ufuncs: write np.sum, np.cumsum and np.outer instead of "
        "np.add.reduce, np.add.accumulate and np.multiply.outer"
    ),
    r"module 'autograd\.\w+(\.\w+)*' has no attribute": (
        "it may be new to NumPy, or gone from it: write it with functions that autograd has, np.trapz(y, x) "
        "as np.sum((y[1:] + y[:-1]) * np.diff(x)) / 2, or make it a primitive with a rule of your own, see "
        "help(tapesplit.defvector)"
    ),
    r"bad operand type for unary \+: 'ArrayBox'": "write x instead of +x",
    r"for (//|divmod\(\)): .*'ArrayBox'": "write np.floor(x / y) instead of x // y",
}
"""Advice by a regular expression that is searched in the message of the error; the first match counts."""
