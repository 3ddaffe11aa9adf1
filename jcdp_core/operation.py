"""One step of an elimination sequence, and its notation in the paper: `ELI TAN (4 5 6)`."""

import re
import reprlib
from dataclasses import dataclass
from enum import Enum
from typing import Final

from jcdp_core.arguments import is_integer, plain
from jcdp_core.errors import ArgumentTypeError, InvalidOperationError

__all__ = ["Action", "Mode", "Operation"]


class Action(Enum):
    """What a step does: make an elemental Jacobian, or join two neighbors into one.

    Examples
    --------
    >>> Action("ACC")
    <Action.ACCUMULATE: 'ACC'>
    """

    ACCUMULATE = "ACC"
    ELIMINATE = "ELI"


class Mode(Enum):
    """How a step is computed: by vector tangents, by vector adjoints, or by a matrix product.

    Examples
    --------
    >>> [mode.value for mode in Mode]
    ['TAN', 'ADJ', 'MUL']
    """

    TANGENT = "TAN"
    ADJOINT = "ADJ"
    MULTIPLY = "MUL"


# int() refuses more than 4300 digits, with a message that does not name the step: 999 are enough here.
_NOTATION: Final = re.compile(r"\s*(ACC|ELI)\s+(TAN|ADJ|MUL)\s*\(\s*(\d{1,999}(?:\s+\d{1,999})*)\s*\)\s*")


@dataclass(frozen=True, slots=True)
class Operation:
    """Represent one step; its operands and its result are named by positions of z in the chain.

    The step yields the Jacobian of z_j with respect to z_i. An accumulation makes it from the link j (i =
    j-1, no k). An elimination joins the Jacobians (i, k) and (k, j): by a matrix product, by tangents pushed
    through the links k+1, …, j, or by adjoints pulled through the links i+1, …, k.

    Parameters
    ----------
    action : Action
        Accumulate or eliminate.
    mode : Mode
        Tangent, adjoint, or (eliminations only) multiply.
    i, k, j : int
        First, middle and last position, 0 ≤ i < k < j; k is None for accumulations.

    Raises
    ------
    InvalidOperationError
        If the positions are out of order or do not fit the action.
    ArgumentTypeError
        If an argument has the wrong type.

    References
    ----------
    Märtens & Naumann 2025, Sec. 2.

    Examples
    --------
    >>> print(Operation(Action.ELIMINATE, Mode.TANGENT, 4, 5, 6))
    ELI TAN (4 5 6)
    >>> Operation.parse("ACC ADJ (3 4)").j
    4
    """

    action: Action
    mode: Mode
    i: int
    k: int | None
    j: int

    def __post_init__(self) -> None:
        """Check the positions against the action."""
        if not isinstance(self.action, Action) or not isinstance(self.mode, Mode):
            raise ArgumentTypeError(
                f"{self.action!r}, {self.mode!r}: these must be an Action and a Mode; "
                "or give the step as text to Operation.parse"
            )
        if not all(type(position) is int for position in self._positions):  # as those of solvers are
            if not all(map(is_integer, self._positions)):
                raise ArgumentTypeError(f"{self._positions}: these are no positions; give an int for each")
            for name in ("i", "k", "j"):
                object.__setattr__(self, name, plain(getattr(self, name)))
        if self.action is Action.ACCUMULATE:
            if self.mode is Mode.MULTIPLY:
                raise InvalidOperationError(
                    "ACC MUL: an accumulation runs tangents or adjoints; write ACC TAN or ACC ADJ"
                )
            if self.k is not None or self.j != self.i + 1 or self.i < 0:
                raise InvalidOperationError(
                    f"{self}: an accumulation makes the Jacobian of one link; write (j-1 j) with j ≥ 1"
                )
        elif self.k is None or not 0 <= self.i < self.k < self.j:
            raise InvalidOperationError(
                f"{self}: an elimination joins (i k) and (k j); write (i k j) with 0 ≤ i < k < j"
            )

    @classmethod
    def parse(cls, text: str) -> "Operation":
        """Read a step in the paper's notation.

        Parameters
        ----------
        text : str
            For example `"ELI MUL (1 4 6)"`; spaces are ignored.

        Returns
        -------
        Operation
            The step; `str` gives the text back.

        Raises
        ------
        InvalidOperationError
            If the text is not in the notation, or if its positions do not fit the action.

        Examples
        --------
        >>> Operation.parse("ELI ADJ (1 3 4)").mode
        <Mode.ADJOINT: 'ADJ'>
        """
        match = _NOTATION.fullmatch(text) if isinstance(text, str) else None
        positions = [int(word) for word in match[3].split()] if match else []
        if match is None or len(positions) not in (2, 3):
            raise InvalidOperationError(
                f"cannot read {reprlib.repr(text)} as a step; "
                "write it like 'ACC TAN (4 5)' or 'ELI MUL (1 4 6)'"
            )
        middle = positions[1] if len(positions) == 3 else None
        return cls(Action(match[1]), Mode(match[2]), positions[0], middle, positions[-1])

    def __str__(self) -> str:
        """Return the step in the paper's notation."""
        return f"{self.action.value} {self.mode.value} ({' '.join(map(str, self._positions))})"

    @property
    def _positions(self) -> tuple[int, ...]:
        """The positions that are given, from first to last."""
        return (self.i, self.j) if self.k is None else (self.i, self.k, self.j)

    @property
    def swept(self) -> range:
        """Indices (0-based) of the links whose model the step runs; empty for a product.

        Examples
        --------
        >>> list(Operation.parse("ELI ADJ (1 3 4)").swept)
        [1, 2]
        """
        if self.mode is Mode.MULTIPLY:
            return range(0)
        if self.k is None:
            return range(self.i, self.j)
        return range(self.i, self.k) if self.mode is Mode.ADJOINT else range(self.k, self.j)

    @property
    def operands(self) -> tuple[tuple[int, int], ...]:
        """The Jacobians (first position, last position) that the step consumes, the later part first.

        Examples
        --------
        >>> Operation.parse("ELI MUL (1 4 6)").operands
        ((4, 6), (1, 4))
        >>> Operation.parse("ELI TAN (4 5 6)").operands
        ((4, 5),)
        """
        if self.k is None:
            return ()
        later, earlier = (self.k, self.j), (self.i, self.k)
        if self.mode is Mode.MULTIPLY:
            return later, earlier
        return (earlier,) if self.mode is Mode.TANGENT else (later,)
