"""Recording: run a user's function once on autograd's primitives and keep the tape.

autograd's trace level is one number for the whole process, so recording holds a process-wide lock, and the
level is put back however the function ends.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from autograd.tracer import Box, box_type_mappings, isbox, trace_stack

from tapesplit.errors import InputTypeError, NestedTraceError, OutputTypeError, RecordingError
from tapesplit.names import display_name, label_of
from tapesplit.notes import note
from tapesplit.recording.argnums import check_function, positions_of
from tapesplit.recording.hidden import hidden_value_error, holds_box, holds_boxes
from tapesplit.recording.memory import NoGarbageCollection, keep_freed_memory
from tapesplit.recording.nodes import TapeNode
from tapesplit.recording.remedies import remedy_for
from tapesplit.recording.source_lines import LinedEntries, users_stack_level
from tapesplit.recording.stand_ins import BoxesInPlace
from tapesplit.recording.tape import Entries, Tape
from tapesplit.recording.tracing import tracing_lock

__all__ = ["record", "record_call"]


def record(fun: Callable[..., Any], /, *args: Any, argnum: int | Sequence[int] = 0, **kwargs: Any) -> Tape:
    """Run ``fun(*args, **kwargs)`` once and return its tape.

    Parameters
    ----------
    fun
        Function of autograd.numpy operations.
    *args, **kwargs
        Its arguments. Those at ``argnum`` must be real arrays or floating-point numbers.
    argnum
        Position of the argument with respect to which to differentiate, or several positions.

    Returns
    -------
    Tape
        Entries in the order of execution; the inputs come first. Values are kept, not copied: arrays that the
        function has read, its arguments among them, must stay as they are until the tape has served.

    Raises
    ------
    InputTypeError
        If autograd cannot differentiate with respect to the type of an argument.
    ArgumentIndexError, ArgumentTypeError, ArgumentValueError
        If ``fun`` is not a function, if there is no argument at ``argnum``, if that is not an integer or a
        sequence of integers, or if it is empty or names an argument twice.
    OutputTypeError
        If ``fun`` returns a plain tuple, list or dict, or an array of objects that hides traced values.
    RecordingError
        If operations are incomplete: ``fun`` goes on after an interrupt, or on threads without the GIL. If
        another recording waits for this thread to end.
    NestedTraceError
        If autograd is already differentiating an argument, or a value that ``fun`` closes over.
    StaleValueError
        If ``fun`` combines traced values of this call with some that it kept from another one.
    Exception
        Any exception raised by ``fun``, with a note naming the last recorded operation.

    Notes
    -----
    Beyond the time of NumPy itself, recording takes 0.4 µs for an operator, 1 µs for a common function of
    autograd.numpy and 4 µs for others. It holds a process-wide lock, since autograd's trace level belongs to
    the process.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> tape = record(lambda x: x * np.sin(x), np.ones(3))
    >>> len(tape), tape.output, tape.label(1)
    (3, 2, 'sin')
    """
    return record_call(fun, args, kwargs, argnum)


def record_call(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnum: int | Sequence[int],
    *,
    with_lines: bool = False,
    apart: bool = False,
) -> Tape:
    """Do what `record` does, with keyword arguments of any name.

    ``with_lines`` asks for the user's line of code for each entry, in ``lines`` of the tape, ``apart`` for an
    entry for each look-up, equal ones too.
    """
    entries = (LinedEntries if with_lines else Entries)(apart=apart)
    check_function(fun, "record", "record(f, x), the arguments behind it")
    began = time.perf_counter()
    keep_freed_memory()
    name = display_name(fun)
    argnums = positions_of(argnum, len(args), name)
    if any(map(isbox, (*args, *kwargs.values()))):
        raise NestedTraceError(_NESTED.format(name))
    boxed = list(args)
    with tracing_lock() as outer, BoxesInPlace(inside_trace=outer >= 0), NoGarbageCollection():
        level = entries.level = trace_stack.top = outer + 1
        for position in argnums:
            boxed[position] = _input_box(entries, args[position], level, position)
        try:
            result = fun(*boxed, **kwargs)
        except BaseException as error:
            _note_place(error, entries, len(argnums), name)
            raise
    if not entries.is_complete:
        raise RecordingError(_INCOMPLETE.format(name))
    node: Any = result._node if isbox(result) else None
    is_own = isinstance(node, TapeNode) and node.entries is entries
    output, value = (node.index, result._value) if is_own else (None, result)
    seconds = time.perf_counter() - began
    lines = tuple(entries.lines) if isinstance(entries, LinedEntries) else ()
    tape = Tape(entries, len(argnums), output, value, name, argnums, len(args), seconds, lines)
    # Boxes on the tape are those of an outer trace, whose derivatives must be traced, too.
    if level > 0 and (holds_boxes(tape) or (isbox(result) and result._trace != level)):
        raise NestedTraceError(_NESTED.format(name))
    if not is_own:
        _check_constant_result(result, name)
    return tape


def _note_place(error: BaseException, entries: Entries, inputs: int, name: str) -> None:
    """Add to an error of the user's function how many operations preceded it, and what to write instead."""
    last, *_ = entries.entry(entries.size - 1)
    count = entries.size - inputs
    note(
        error,
        f"while recording {name} for its Jacobian, after {count} operation{'s' * (count != 1)}"
        + (f", the last one {label_of(last)}" if last else ""),
    )
    if (remedy := remedy_for(error)) is not None:
        note(error, f"perhaps from plain NumPy or Python on traced values; {remedy}")


_NESTED: Final = (
    "{} depends on values that autograd is differentiating at this moment, so its tape alone does not have "
    "the whole derivative; call its Jacobian function, which then leaves all levels to autograd"
)


_INCOMPLETE: Final = (
    "operations of {} were recorded in part only: it has gone on after an interrupt (Ctrl-C, a signal) that "
    "it caught, or threads of its own have worked without Python's GIL; let interrupts pass, and do the "
    "operations on the calling thread"
)


def _check_constant_result(result: Any, name: str) -> None:
    """Warn of a result that depends on no input; refuse one that may hide that it does."""
    if isinstance(result, (tuple, list, dict)):
        raise OutputTypeError(
            f"{name} returned a {type(result).__name__}; a Jacobian needs one array: join the parts with "
            "np.concatenate or np.array"
        )
    if holds_box(result):
        raise hidden_value_error(name, result=result)
    if np.asarray(result).dtype.kind in "biufc":  # anything else has no Jacobian at all
        warnings.warn("Output seems independent of input.", UserWarning, stacklevel=users_stack_level())


def _input_box(entries: Entries, value: Any, level: int, position: int) -> Box:
    """Box one input of the tape."""
    try:
        box_type = box_type_mappings[type(value)]
    except KeyError:
        is_masked = isinstance(value, np.ma.MaskedArray)  # of which np.asarray loses the mask
        is_builtin = type(value).__module__.partition(".")[0] in {"builtins", "numpy"}
        is_object = not (is_builtin or hasattr(value, "__array__"))  # no array of another package
        may_be_self = position == 0 and (is_object or isinstance(value, type))
        raise InputTypeError(
            f"argument {position} is of type {type(value).__name__}, which autograd cannot differentiate "
            "with respect to; pass a float or an array of floats "
            + ("(x.filled(0.0) for what is masked)" if is_masked else "(np.asarray(x, dtype=float))")
            + ("; for a method, whose argument 0 is self or cls, give argnum=1" if may_be_self else "")
        ) from None
    index = entries.add(None, (), (), (), {}, value)
    return box_type(value, level, TapeNode.new_root(entries, index))
