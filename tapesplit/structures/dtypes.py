"""Result types: the dtype that ``autograd.jacobian`` returns, which depends on the structure of a tape only.

autograd's Jacobian has the type of its stacked gradients, which follows from its rules: integers stay
integers through products, some rules divide float32 by float64. Where not all values are in double precision,
one backward pass with those rules tells.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from autograd.core import add_outgrads, primitive_vjps
from autograd.extend import SparseObject, vspace
from autograd.util import toposort

from tapesplit.arrays import FLOAT64
from tapesplit.recording.tape import Tape
from tapesplit.recording.tracing import tracing_lock
from tapesplit.recording.values import derivative_dtype
from tapesplit.structures.forms import form_of
from tapesplit.structures.structure import Structure

__all__ = ["in_dtype", "result_dtypes"]

_ROUNDING: Final = 1e-12
"""How far integers may be off by rounding, relative to the largest entry."""


def result_dtypes(tape: Tape, structure: Structure) -> tuple[np.dtype, ...]:
    """Return the dtype of the Jacobian by each input, autograd's own wherever autograd has a real one.

    Plans keep them for all tapes of the structure. These have the same ones, unless a rule, the user's or
    autograd's, reads constants out of containers or objects, of which structures have the type only.
    """
    if _is_double(tape, structure):
        return (FLOAT64,) * tape.inputs
    return tuple(_autograds_dtype(tape, index) or _common_dtype(tape, index) for index in range(tape.inputs))


def in_dtype(block: np.ndarray, dtype: np.dtype, tape: Tape, index: int) -> np.ndarray:
    """Return a Jacobian by one input in the type of the result.

    Integers too large to be exact in floating point come from autograd's own arithmetic instead. Derivatives
    that are no integers stay what they are; autograd cuts their fractions off where it casts adjoints.
    """
    if dtype.kind == "f":
        return block.astype(dtype, copy=False)
    rounded, largest = np.asarray(np.rint(block)), float(np.abs(block).max(initial=0))
    if not (np.isfinite(largest) and np.allclose(block, rounded, rtol=0, atol=_ROUNDING * largest)):
        return block.astype(_common_dtype(tape, index), copy=False)
    if largest < 2.0 ** min(np.finfo(block.dtype).nmant, 52):
        return rounded.astype(np.int64).astype(dtype)
    with tracing_lock():
        rows = [_gradient(tape, index, adjoint) for adjoint in _basis(tape)]
    return np.stack(rows).reshape(block.shape)


def _is_double(tape: Tape, structure: Structure) -> bool:
    """Tell whether all values on a tape are in double precision: then so are all real derivatives."""
    forms = set(structure.forms)
    sparse = form_of(SparseObject(None, None))
    if sparse in forms:  # the form of a sparse value does not say what type the dense one has
        forms.update(form_of(value.vs.zeros()) for value in tape.values if isinstance(value, SparseObject))
    return all(_is_double_form(form) for form in forms if form != sparse)


def _is_double_form(form: Any) -> bool:
    """Tell whether the form of a value is that of numbers in double precision, or of a container of them."""
    kind = form[0] if form else None
    if kind is dict:
        return all(_is_double_form(item) for *_, item in form[1])
    if isinstance(kind, type) and issubclass(kind, (tuple, list)):
        return all(map(_is_double_form, form[1]))
    return kind in _DOUBLE_KINDS or type(kind) is int


_DOUBLE_KINDS = frozenset({None, float, np.float64, complex, np.complex128, np.dtype(np.complex128)})
"""Kinds of numbers, None for arrays of doubles; the real parts of complex numbers are doubles, too."""


def _autograds_dtype(tape: Tape, index: int) -> np.dtype | None:
    """Return the dtype of autograd's Jacobian by one input; None where autograd has no real one."""
    try:
        with tracing_lock(), np.errstate(all="ignore"):
            dtype = np.asarray(_gradient(tape, index, next(_basis(tape)))).dtype
    except Exception:  # noqa: BLE001 (a rule, or an array without elements: autograd.jacobian raises, too)
        return None
    # Stacking brings the bytes of numbers into the order of the machine.
    return dtype.newbyteorder("=") if dtype.kind in "fiub" else None


def _common_dtype(tape: Tape, index: int) -> np.dtype:
    """Return the common type of an input and the value, double precision for integers."""
    dtype = derivative_dtype(tape.values[index])
    return dtype if tape.output is None else np.result_type(dtype, derivative_dtype(tape.value))


def _basis(tape: Tape) -> Iterator[Any]:
    """Yield the adjoints of the value that autograd stacks gradients of."""
    return iter(vspace(tape.value).standard_basis())


def _gradient(tape: Tape, index: int, adjoint: Any) -> Any:
    """Pull an adjoint of the value back to one input, with autograd's rules in autograd's order."""
    reached = {index}
    for number, operands in enumerate(tape.parents):
        if not reached.isdisjoint(operands):
            reached.add(number)
    if tape.output not in reached:
        return vspace(tape.values[index]).zeros()

    def parents(number: int) -> list[int]:
        return [parent for parent in tape.parents[number] if parent in reached]

    outgrads = {tape.output: (adjoint, False)}
    for number in toposort(tape.output, parents):
        gradient, _ = outgrads.pop(number)
        if number == index:
            break
        primitive, argnums, operands, args, kwargs, value = tape[number]
        active = tuple(a for a, parent in zip(argnums, operands, strict=True) if parent in reached)
        vjp = primitive_vjps[primitive](active, value, args, dict(kwargs))
        for parent, ingrad in zip(parents(number), vjp(gradient), strict=True):
            outgrads[parent] = add_outgrads(outgrads.get(parent), ingrad)
    return gradient
