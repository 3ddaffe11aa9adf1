"""Functions of autograd.numpy that record themselves: the common ones, while a tape is recorded.

autograd's general path through `primitive` costs three to four microseconds a call. The functions here record
calls with boxes of one tape and plain arguments in less than one, and leave all others to that path.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

import autograd.numpy as anp
import numpy as np
from autograd.numpy import numpy_vjps
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_vspaces import ArrayVSpace
from autograd.numpy.numpy_wrapper import array_from_args
from autograd.tracer import trace_primitives_map

from tapesplit.arrays import DOUBLES, INTEGERS, SELECTORS
from tapesplit.recording.boxes import (
    FIRST,
    OUR_BOXES,
    PLAIN_OPERANDS,
    RECORDING,
    RecordingBox,
    TapeBox,
    box_of,
    is_boxed_double,
    key_of_shape,
    make_box,
    recorded,
)
from tapesplit.recording.direct_arithmetic import cross, euclidean_norm, roll, solution
from tapesplit.recording.direct_joining import (
    append,
    array,
    array_split,
    column_stack,
    concatenate,
    hsplit,
    hstack,
    split,
    stack,
    vsplit,
    vstack,
)
from tapesplit.recording.direct_operands import opened
from tapesplit.recording.overrides import are_current, is_overridden, keeps_calls, original_vjps
from tapesplit.recording.primitives import (
    dense_untake,
    log_abs_det,
    singular_values,
    singular_vectors,
    summed_untake,
    symmetric_eigenvalues,
    symmetric_eigenvectors,
)
from tapesplit.recording.sequence_results import result_like

__all__ = ["DIRECT_FFT", "DIRECT_FUNCTIONS", "DIRECT_LINALG", "direct_untake"]


def _unary(primitive: Any, ufunc: Any) -> Callable[..., Any]:
    """Make a function of one argument that records calls with one of our boxes directly."""

    def function(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        if type(x) in RECORDING and x._entries is not None and not args and not kwargs:
            return recorded(x, primitive, FIRST, (x._index,), None, ufunc(x._value))
        return primitive(x, *args, **kwargs)

    functools.update_wrapper(function, primitive)
    function.__qualname__ = primitive.__name__  # which messages name
    return function


def _direct(general: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that records calls with boxes of one tape and plain arguments directly.

    ``function`` is NumPy's, ``general`` autograd's of the same name.
    """
    primitive = trace_primitives_map[function]

    def direct(*args: Any, **kwargs: Any) -> Any:
        found = opened(args, _PLAIN_ARGUMENTS, 0)
        if found is not None:
            tape, argnums, parents, values = found
            value = function(*values, **kwargs)
            if OUR_BOXES.get(type(value)) is make_box:
                return recorded(tape, primitive, argnums, parents, tuple(values), value, kwargs)
        return general(*args, **kwargs)

    return functools.wraps(general)(direct)


def _where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """Record ``where``; autograd's function takes the two values by name as well, NumPy's does not."""
    return _general_where(condition, *args, **kwargs) if kwargs else _direct_where(condition, *args)


def reshape(a: Any, *args: Any, **kwargs: Any) -> Any:
    """Record an array in another shape, once for all turns of a loop in which an older one gets it."""
    key = key_of_shape(a, args[0]) if type(a) is TapeBox and len(args) == 1 and not kwargs else None
    if key is None:
        return _direct_reshape(a, *args, **kwargs)
    entries = a._entries
    if key in entries.taken:
        return box_of(a, entries.taken[key], a._value.reshape(args[0]))
    result = _direct_reshape(a, *args)
    if type(result) is TapeBox and result._entries is entries:
        entries.taken[key] = result._index
    return result


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Record a choice among arrays by conditions as nested ``where``; autograd takes elements one by one."""
    if not _can_be_nested(condlist, choicelist, default):
        return _general_select(condlist, choicelist, default)
    shape = condlist[0].shape
    rest, taken = np.ones(shape, bool), []
    for condition, choice in zip(condlist, choicelist, strict=True):
        if (condition & rest).any():  # the others have no part in derivatives, not even as 0 · ∞
            taken.append((condition, choice))
        rest &= ~condition
    chosen = default if rest.any() else taken.pop()[1]
    for condition, choice in reversed(taken):
        chosen = anp.where(condition, choice, chosen)
    is_traced = type(chosen) in RECORDING and np.shape(chosen._value) == shape
    return chosen if is_traced else _general_select(condlist, choicelist, default)


def _can_be_nested(condlist: Any, choicelist: Any, default: Any) -> bool:
    """Tell whether all conditions and choices are of one shape, but for plain numbers."""
    if {type(condlist), type(choicelist)} - _LISTS or len(condlist) != len(choicelist):
        return False
    if not all(type(c) is np.ndarray and c.dtype == bool and c.size for c in condlist):
        return False
    choices = [*choicelist, default]
    found, shapes = opened(choices, _CHOICES, 0), {c.shape for c in condlist}
    if found is None or len(shapes) != 1 or not are_current(_OF_SELECT):
        return False
    # Of traced numbers, the VJP of np.where in gradients inside of the function would not sum the adjoints.
    return all(
        value.shape in shapes and value.dtype == np.float64
        if type(value) is np.ndarray
        else type(choice) not in RECORDING
        for choice, value in zip(choices, found[3], strict=True)
    )


def _untake(x: Any, idx: Any, vs: Any) -> Any:
    """Record the adjoint of a look-up, as a dense array if its zeros cost little.

    autograd's sparse adjoint would keep scalar sweeps out.
    """
    idx = _without_lists(idx)
    untake = _full_untake(idx)
    known = untake is not None and type(vs) is ArrayVSpace and vs.dtype == np.float64
    if known and type(x) in DOUBLES and vs.size <= _FREE_ZEROS:  # of a linear term: others may be traced
        return untake.fun(x, idx, vs)
    if known and type(x) is TapeBox and x._entries is not None:
        value = x._value
        size = int(vs.size)  # a product, computed each time
        total = x._entries.zeros + size
        is_free = size <= _FREE_ZEROS or size <= _MOSTLY * np.size(value)
        few_zeros = is_free or (size <= _MOST_ZEROS and total <= _ZEROS_OF_A_TAPE)
        if few_zeros and type(value) in (np.ndarray, np.float64) and value.dtype == np.float64:
            x._entries.zeros = total
            result = untake.fun(value, idx, vs)
            return recorded(x, untake, FIRST, (x._index,), (value, idx, vs), result)
    return _general_untake(x, idx, vs)


def _without_lists(index: Any) -> Any:
    """Make arrays of the lists of integers in an index, as in ``x[[0, 2]]`` and ``x[:, [0, 2]]``."""
    if type(index) is list:
        return np.array(index) if index and {*map(type, index)} <= {int, *INTEGERS} else index
    if type(index) is tuple and list in map(type, index):
        return tuple([_without_lists(item) if type(item) is list else item for item in index])
    return index


def _full_untake(index: Any) -> Any:
    """Return the primitive that makes the dense adjoint of a look-up; None for indices of other types."""
    items = index if type(index) is tuple else (index,)
    arrays = [item for item in items if type(item) is np.ndarray]
    if any(type(item) not in SELECTORS for item in items if type(item) is not np.ndarray):
        return None
    kinds = {array.dtype.kind for array in arrays}
    if kinds <= {"b"}:  # masks take no element twice, either
        return dense_untake
    return summed_untake if kinds <= {"b", "i"} else None


def _slogdet(a: Any) -> Any:
    """Record the logarithm alone; a pair of values would keep scalar sweeps out. The sign is constant."""
    if not is_boxed_double(a) or a._value.ndim < 2 or keeps_calls(_general_slogdet):
        return _general_slogdet(a)
    found = np.linalg.slogdet(a._value)
    logarithm = recorded(a, log_abs_det, FIRST, (a._index,), (a._value,), found[1])
    return result_like(found)([found[0], logarithm])


def _eigh(a: Any, UPLO: Any = "L") -> Any:
    """Record eigenvalues and eigenvectors as two entries; a pair of them would keep scalar sweeps out.

    If eigenvalues are equal, eigenvectors have no derivatives: they come from autograd's function then, whose
    rule checks whether they are used. So they do in small matrices if some are close, see `_are_apart`.
    """
    if not is_boxed_double(a) or keeps_calls(_general_eigh):
        return _general_eigh(a, UPLO)
    found = np.linalg.eigh(a._value, UPLO)
    values, vectors = found

    def part(primitive: Any, value: np.ndarray, other: np.ndarray) -> Any:
        return recorded(a, primitive, FIRST, (a._index,), (a._value, UPLO, other), value)

    of_values = part(symmetric_eigenvalues, values, vectors)
    is_direct = _are_apart(values)
    of_vectors = part(symmetric_eigenvectors, vectors, values) if is_direct else _general_eigh(a, UPLO)[1]
    return result_like(found)([of_values, of_vectors])


def _svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, *others: Any, **keywords: Any) -> Any:
    """Record the three factors of a stack of matrices as three entries, if all of them have derivatives.

    That takes different singular values, none of them zero. The factors of a single matrix stay one value:
    one call carries all of them in less time than three calls. Singular values alone are recorded with their
    vectors, which sweeps need.
    """
    is_general = others or keywords or not is_boxed_double(a) or keeps_calls(_general_svd)
    if is_general or (compute_uv and (full_matrices or a._value.ndim == 2)):
        return _general_svd(a, full_matrices, compute_uv, *others, **keywords)
    found = np.linalg.svd(a._value, full_matrices=False)
    u, s, vt = found
    if compute_uv and not (_are_apart(s**2) and s.all()):
        return _general_svd(a, full_matrices)
    values = recorded(a, singular_values, FIRST, (a._index,), (a._value, u, vt), s)
    if not compute_uv:
        return values

    def vectors(factor: int, value: np.ndarray) -> Any:
        return recorded(a, singular_vectors, FIRST, (a._index,), (a._value, factor, u, s, vt), value)

    return result_like(found)([vectors(0, u), values, vectors(2, vt)])


def _are_apart(values: np.ndarray) -> bool:
    """Tell whether derivatives of the vectors that belong to these values in order may be single elements.

    They are divided by the differences of values, but many functions of vectors are smooth where values are
    equal: large elements cancel. If products of whole matrices come first they may cancel before they are
    divided, as in Hessians of the trace of `exp(A)`; scalar sweeps of small matrices add the large elements.
    """
    gaps, least = np.abs(np.diff(values)), _LEAST_GAP
    if values.shape[-1] <= _SMALL:
        least = np.maximum(
            _LEAST_RELATIVE_GAP * np.abs(values).max(axis=-1, keepdims=True, initial=0.0), least
        )
    return bool((gaps >= least).all())


def _norm(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the norms of vectors as arithmetic, any other as a call."""
    found = euclidean_norm(x, *args, **kwargs)
    return _direct_norm(x, *args, **kwargs) if found is None else found


def _solve(*args: Any, **kwargs: Any) -> Any:
    """Record a linear system by its right-hand side, see `solution`; if that does not apply, as a call."""
    general = kwargs or len(args) != 2 or is_overridden(_general_solve)
    found = None if general else solution(*args)
    return _direct_solve(*args, **kwargs) if found is None else found


def _conjugate(general: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that records no conjugates of real numbers; autograd's derivatives have many."""
    direct = _direct(general, np.conj)

    def conjugate(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        is_real = not args and not kwargs and is_boxed_double(x)
        return x if is_real and not is_overridden(general) else direct(x, *args, **kwargs)

    return functools.wraps(general)(conjugate)


_FREE_ZEROS: Final = 2048
"""Elements of a dense adjoint up to which its zeros cost little: 16 kB, and 2 µs of a call that takes 5."""
_MOST_ZEROS: Final = 2**14
"""The same while a tape has few of them."""
_ZEROS_OF_A_TAPE: Final = 2**23
"""Elements of all dense adjoints of look-ups on a tape up to which it has few: 64 MB."""
_MOSTLY: Final = 4
"""Size of a dense adjoint, relative to the value that was looked up, up to which it has few zeros."""
_PLAIN_ARGUMENTS: Final[frozenset[type]] = PLAIN_OPERANDS | {str, tuple, type(None)}


_LEAST_GAP: Final = float(np.finfo(np.float64).tiny)
"""The smallest difference of eigenvalues that derivatives of eigenvectors may be divided by."""
_LEAST_RELATIVE_GAP: Final = 1e-3
"""That in small matrices, next to the largest value: about 13 digits are right then."""
_SMALL: Final = 5
"""Size of matrices up to which scalar sweeps take all derivatives of vectors as single elements."""
_general_untake = numpy_vjps.untake
_general_where, _general_select = anp.where, anp.select
_LISTS: Final[frozenset[type]] = frozenset({list, tuple})
_CHOICES: Final[frozenset[type]] = frozenset({np.ndarray, np.float64, float, int})
_OF_SELECT: Final = original_vjps(anp.where, array_from_args, ArrayBox.__getitem__)
_general_slogdet, _general_solve = anp.linalg.slogdet, anp.linalg.solve
_general_eigh, _general_svd = anp.linalg.eigh, anp.linalg.svd
_direct_where = _direct(anp.where, np.where)
_direct_reshape = _direct(anp.reshape, np.reshape)
_direct_norm = _direct(anp.linalg.norm, np.linalg.norm)
_direct_solve = _direct(anp.linalg.solve, np.linalg.solve)

_UNARY: Final = (
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
    *("exp", "expm1", "log", "log10", "sqrt", "square"),
)
_OTHERS: Final = (
    *("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "abs", "log1p", "arctan2"),
    *("dot", "matmul", "inner", "outer", "einsum", "tensordot"),
    *("sum", "mean", "var", "std", "prod", "max", "min", "cumsum", "clip"),
    *("ravel", "transpose", "swapaxes", "expand_dims", "squeeze", "repeat", "diag"),
    *("diff", "pad", "logaddexp", "real", "imag"),
)
DIRECT_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **{name: _unary(getattr(anp, name), getattr(np, name)) for name in _UNARY},
    **{name: _direct(getattr(anp, name), getattr(np, name)) for name in _OTHERS},
    **{name: _conjugate(getattr(anp, name)) for name in ("conj", "conjugate")},
    "where": functools.wraps(anp.where)(_where),
    **{
        function.__name__: functools.wraps(getattr(anp, function.__name__))(function)
        for function in (
            *(select, reshape, roll, cross, array, stack, concatenate, append, hstack, vstack, column_stack),
            *(split, array_split, hsplit, vsplit),
        )
    },
}
"""Functions that stand in for those of autograd.numpy, by name."""
DIRECT_FUNCTIONS["row_stack"] = DIRECT_FUNCTIONS["vstack"]
direct_untake = functools.wraps(numpy_vjps.untake)(_untake)
DIRECT_LINALG: Final[dict[str, Callable[..., Any]]] = {
    **{
        name: _direct(getattr(anp.linalg, name), getattr(np.linalg, name))
        for name in ("inv", "det", "cholesky")
    },
    "norm": functools.wraps(anp.linalg.norm)(_norm),
    "solve": functools.wraps(anp.linalg.solve)(_solve),
    "slogdet": functools.wraps(anp.linalg.slogdet)(_slogdet),
    "eigh": functools.wraps(anp.linalg.eigh)(_eigh),
    "svd": functools.wraps(anp.linalg.svd)(_svd),
}
"""The same for autograd.numpy.linalg."""
DIRECT_FFT: Final[dict[str, Callable[..., Any]]] = {
    name: _direct(getattr(anp.fft, name), getattr(np.fft, name))
    for name in ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2")
}
"""The same for autograd.numpy.fft."""


def _reshape(box: Any, *args: Any, **kwargs: Any) -> Any:
    """Reshape as the method does, which takes the new shape as one argument or as several."""
    shape = (args,) if args and isinstance(args[0], int) else args
    return DIRECT_FUNCTIONS["reshape"](box, *shape, **kwargs)


def _called_by_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method that drops ``dtype=None`` and ``out=None``, which NumPy's function passes to it.

    autograd's rules do not know these keywords.
    """

    def method(box: Any, *args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs[name] for name in kwargs if kwargs[name] is not None or name not in _NO_EFFECT}
        return function(box, *args, **given)

    return method


_NO_EFFECT: Final = frozenset({"dtype", "out"})
"""Keywords of these functions that have no effect if they are None."""
_METHODS: Final = {
    method: DIRECT_FUNCTIONS[name]
    for method, function in vars(ArrayBox).items()
    for name in DIRECT_FUNCTIONS
    if function is getattr(anp, name)
} | {
    **{name: _called_by_numpy(DIRECT_FUNCTIONS[name]) for name in ("clip", "cumsum")},
    "reshape": _reshape,
    "T": property(DIRECT_FUNCTIONS["transpose"]),
    "__abs__": DIRECT_FUNCTIONS["abs"],
}
for _name, _method in _METHODS.items():
    setattr(RecordingBox, _name, _method)
