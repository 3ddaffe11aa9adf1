"""What to write instead of plain NumPy and Python on traced values, by the errors that these raise."""

from typing import Final

__all__ = ["remedy_for"]


def remedy_for(error: BaseException) -> str | None:
    """Return what to do about an error of NumPy, SciPy or Python that does not say so; None for others.

    Examples
    --------
    >>> remedy_for(TypeError("must be real number, not ArrayBox"))
    'functions of math, and float(), take plain numbers: write np.sin(x[0]), and x[0] instead of float(x[0])'
    """
    if not isinstance(error, (TypeError, ValueError)):
        return None
    message = str(error)
    return next((remedy for part, remedy in _REMEDIES.items() if part in message), None)


_NUMBERS: Final = (
    "functions of math, and float(), take plain numbers: write np.sin(x[0]), and x[0] instead of float(x[0])"
)
_REMEDIES: Final = {
    "setting an array element with a sequence": (
        "plain arrays cannot hold traced values: write y = np.array([np.sin(a) for a in x]), or better "
        "y = np.sin(x), instead of y[i] = np.sin(x[i])"
    ),
    "'ArrayBox' object does not support item assignment": (
        "traced values cannot be changed in place: write np.where(mask, new, x), or join the parts by "
        "np.concatenate"
    ),
    "all returned NotImplemented": (
        "write a = a + x instead of a += x, and take functions from autograd.numpy and autograd.scipy, not "
        "from NumPy and SciPy"
    ),
    "no supported conversion for types": (
        "matrices of scipy.sparse do not multiply traced values: make the product a primitive with a rule of "
        "your own, see 'Sparse matrices' in docs/how_to/vector_rule.md"
    ),
    "must be real number, not ArrayBox": _NUMBERS,
    "float() argument must be a string or a real number, not 'ArrayBox'": _NUMBERS,
}
"""By a part of the message."""
