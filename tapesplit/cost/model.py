"""The runtime cost model: predicted seconds of sweeps and products on this machine.

A fused multiply-add is not a unit of time: in a matrix product it takes a thirtieth of a nanosecond, in
a Python loop thirty microseconds. Each constant of the model is the time of one kind of work;
`tapesplit.planning.calibrate` measures them, `tapesplit.cost.stored` keeps them.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from tapesplit.cost.work import Work, moved_while_read
from tapesplit.rules.low_rank import FEWEST_DIRECTIONS

__all__ = [
    "CostModel",
    "array_seconds",
    "expanded_seconds",
    "handed_seconds",
    "product_seconds",
    "scalar_seconds",
    "substitution_seconds",
    "system_seconds",
]


@dataclass(frozen=True, slots=True)
class CostModel:
    """Constants of the cost model, in seconds.

    Parameters
    ----------
    step
        One step of an array sweep, whatever its size.
    element
        Partial derivatives of one element of an elementwise operation.
    element_direction
        One element and one direction of an array step.
    product, product_fma
        One matrix product, whatever its size, and one multiply-add in it.
    loop
        One direction through autograd's own rule.
    system, formula, number, array, inner, coefficient, coefficient_direction
        One scalar sweep, whatever its size; one formula that is evaluated for all calls of a kind; one number
        and one array that are gathered; one partial derivative inside a merged operation; one coefficient;
        one coefficient and one direction.
    """

    step: float = 5.5e-6
    element: float = 0.7e-9
    element_direction: float = 0.46e-9
    product: float = 2.3e-6
    product_fma: float = 0.035e-9
    loop: float = 3.0e-5
    system: float = 8.0e-6
    formula: float = 4.5e-6
    number: float = 4.2e-8
    array: float = 0.6e-6
    inner: float = 1.2e-9
    coefficient: float = 4.0e-9
    coefficient_direction: float = 0.27e-9


_ENDS: Final = 3
"""Steps that take as long as seeding and collecting the directions."""
_END: Final = 1.5
"""Cost of seeding an element of a system, or of reading one from it, in moved elements."""
_EXPANDED, _FRESH = 0.25, 0.75
"""Cost of a zero of the returned Jacobian, in moved elements: in memory that was used before, and in new."""
_HANDED: Final = 3.0
"""Cost of writing an element to memory and reading it again, in moved elements."""
_LARGEST_CACHED: Final = 2**18
"""Elements of the largest Jacobian that stays in the caches between two steps."""
_LARGEST_SYSTEM: Final = 2**19
"""Coefficients of the largest system that stays in the caches until it is solved."""
_LARGEST_REUSED: Final = 2**22
"""Elements of the largest array that gets memory which was freed before, see `tapesplit.recording.memory`."""


def array_seconds(model: CostModel, work: Any, directions: int, *, adjoint_mode: bool) -> Any:
    """Predict an array sweep.

    `work` is that of one part of a tape, or of many parts in arrays.

    Notes
    -----
    Merged elementwise operations cost each direction one multiplication for each input.

    Examples
    --------
    >>> product = Work(
    ...     formulas=0, steps=1, elements=0, dear=0, moved=0, unmoved=0, factored=0,
    ...     product_fma=10**6, read=0, spared_tangents=0, spared_adjoints=0, looped=0, local=0,
    ...     local_loops=0, inner=0, coefficients=10**6, numbers=0, arrays=0, block_steps=0,
    ...     block_moved=0, block_loops=0, formless=1, dense=0)
    >>> round(array_seconds(CostModel(), product, directions=100, adjoint_mode=True), 6)
    0.003522
    """
    steps, moved, multiplied = work.steps, work.moved, work.product_fma
    if not adjoint_mode:
        multiplied = multiplied - work.spared_tangents
    elif directions >= FEWEST_DIRECTIONS:
        steps = steps + work.factored
        moved, multiplied = moved - work.unmoved, multiplied - work.spared_adjoints
    each = moved * model.element_direction + multiplied * model.product_fma
    loops = directions * work.looped
    if not adjoint_mode:
        loops = directions * (work.looped - work.local) + work.local_loops
    return (
        (steps + _ENDS) * model.step
        + (work.elements + work.dear) * model.element
        + work.read * model.element_direction
        + directions * each
        + loops * model.loop
    )


def scalar_seconds(model: CostModel, work: Work, directions: int, ends: int) -> float:
    """Predict a scalar sweep.

    The time is infinite if there is no scalar form. `ends` counts the elements that are seeded and those that
    are read.
    """
    if work.formless:
        return float("inf")
    if work.coefficients > _LARGEST_SYSTEM:  # a copy for each prediction would take longer than the rest
        work = replace(work, coefficients=_passed_coefficients(work.coefficients))
    return float(system_seconds(model, work, directions) + _END * ends * directions * model.element_direction)


def _passed_coefficients(coefficients: int) -> int:
    """Count coefficients of a system; those that caches do not hold pass through memory, and count twice."""
    return coefficients + max(coefficients - _LARGEST_SYSTEM, 0)


def substitution_seconds(model: CostModel, work: Work, directions: int) -> float:
    """Predict the part of a scalar sweep that is one call of compiled code: the substitution."""
    return _passed_coefficients(work.coefficients) * model.coefficient_direction * directions


def system_seconds(model: CostModel, work: Any, directions: int) -> Any:
    """Predict systems without seeding and reading them, for one part of a tape or for many in arrays."""
    return (
        model.system
        + work.formulas * model.formula
        + work.numbers * model.number
        + work.arrays * model.array
        + work.inner * model.inner
        + work.dear * model.element
        + work.coefficients * (model.coefficient + directions * model.coefficient_direction)
        + work.block_steps * model.step
        + work.block_moved * model.element_direction
        + work.block_loops * model.loop
    )


def expanded_seconds(model: CostModel, elements: int) -> float:
    """Predict the time to return the zeros of a matrix that is mostly zero.

    `elements` counts all elements of the matrix.
    """
    each = _EXPANDED if elements < _LARGEST_REUSED else _FRESH
    return each * elements * model.element_direction


def product_seconds(model: CostModel, fma: int, elements: int, read: int) -> float:
    """Predict a product of two dense matrices.

    `fma` is the product of the three sizes. `elements` counts those of the result, `read` those of the larger
    matrix; where the matrices are thin, writing and reading them takes longer than multiplying.

    Examples
    --------
    >>> model = CostModel(product=1e-6, product_fma=1e-10, element_direction=1e-9)
    >>> round(product_seconds(model, fma=10_000, elements=1000, read=100), 9)
    3.02e-06
    """
    moved = elements + moved_while_read(read)
    return float(model.product + fma * model.product_fma + moved * model.element_direction)


def handed_seconds(model: CostModel, elements: int) -> float:
    """Predict the time to write an intermediate Jacobian to memory, and to read it in another step."""
    return _HANDED * elements * model.element_direction if elements > _LARGEST_CACHED else 0.0
