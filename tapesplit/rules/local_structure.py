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
        How many edges before it an edge has in the same row.
    factor
        The partial derivatives of all edges or of each one, if these are constants.
    factors
        Arguments by whose elements they are multiplied, and the flat positions of these, one for each edge.
    conjugated
        Whether complex numbers are conjugated.
    recurring
        Flat positions of elements of the result, and of others before them in it that are added to them.
    """

    rows: np.ndarray
    columns: np.ndarray
    rank: np.ndarray
    factor: float | np.ndarray = 1.0
    factors: tuple[tuple[int, np.ndarray], ...] = ()
    conjugated: bool = False
    recurring: tuple[np.ndarray, np.ndarray] | None = None
