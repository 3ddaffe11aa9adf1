"""The local structure of a call: which elements of the result depend on which of an argument, and how."""

from dataclasses import dataclass

import numpy as np

__all__ = ["LocalStructure"]


@dataclass(frozen=True, slots=True, eq=False)
class LocalStructure:
    """The scalar edges from one argument to the result of a call.

    Parameters
    ----------
    rows, columns
        Flat positions in the result and in the argument, one pair for each edge.
    rank
        How many edges come before each one in its row.
    factor
        The partial derivatives of all edges or of each one, if these are constants.
    factors
        Arguments whose elements are factors of the partial derivatives, and the flat positions of these
        elements, one for each edge.
    conjugated
        Whether the result depends on the complex conjugate of the argument.
    recurring
        Flat positions in the result of elements, and of earlier ones that are added to them (running sums).
    """

    rows: np.ndarray
    columns: np.ndarray
    rank: np.ndarray
    factor: float | np.ndarray = 1.0
    factors: tuple[tuple[int, np.ndarray], ...] = ()
    conjugated: bool = False
    recurring: tuple[np.ndarray, np.ndarray] | None = None
