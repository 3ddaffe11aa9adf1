"""The tape: what one call of a user's function computed, entry by entry.

A tape is data only. It knows nothing of autograd; a primitive is any callable with a name.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final, NamedTuple

import numpy as np

from tapesplit.names import label_of

__all__ = ["NO_KEYWORDS", "Entries", "Tape", "TapeEntry", "constant_positions"]


class TapeEntry(NamedTuple):
    """One recorded call of a primitive."""

    primitive: Callable[..., Any] | None
    """The autograd primitive, or None for an input."""
    argnums: tuple[int, ...]
    """Positions of the active arguments (those that depend on an input)."""
    parents: tuple[int, ...]
    """Tape indices of the active arguments, in the order of ``argnums``."""
    args: tuple[Any, ...]
    """All positional arguments as plain values."""
    kwargs: Mapping[str, Any]
    """Keyword arguments."""
    value: Any
    """What the primitive returned."""


class _Nothing(dict[Any, Any]):
    """A dict that forgets whatever it is given."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Do nothing."""


class Entries(list[Any]):
    """Entries of a tape that is being recorded, in one flat list, field by field.

    Taking columns apart takes a tenth of the time that it would take from a list of tuples. ``args`` are None
    where they are the values of the parents and nothing else.

    Whoever appends an entry takes ``size`` as its number, increments it and adds the fields with ``+=``,
    without a call in between: CPython switches threads only at calls and backward jumps, so that entries do
    not mix if a recorded function works on several threads.
    """

    __slots__ = ("fixed", "level", "repeats", "size", "suspects", "taken", "zeros")

    fixed: dict[tuple[int, int], int]
    """Entries that are arguments of others, but count as constants there, which is right for first
    derivatives, see `adjusted_side`: by the other entry and the number of the argument. Inner gradients read
    them, as these are differentiated once more."""
    level: int
    """Trace level of the boxes."""
    repeats: int
    """Look-ups that were not recorded since an equal one was, see ``taken``."""
    size: int
    """Number of entries; the fields of the last one may still be missing."""
    taken: dict[tuple[Any, ...], int]
    """Entries of elements and narrow slices, by the entry and the indices that they are read from: programs
    read the same ones again and again, ``y[0]`` in each turn of a loop, and each is recorded once, unless
    ``apart`` is given: then none is here."""
    suspects: dict[str, str]
    """By the name of each primitive without a VJP, or whose value hides boxes, the user's line that first
    called it. If its derivatives turn out to be needed, that is the line to change."""
    zeros: int
    """Elements of all dense adjoints of look-ups, which are mostly zeros, see `direct_functions`."""

    def __init__(self, *, apart: bool = False) -> None:
        super().__init__()
        self.level = self.repeats = self.size = self.zeros = 0
        self.fixed, self.suspects, self.taken = {}, {}, _Nothing() if apart else {}

    def add(self, primitive: Any, argnums: Any, parents: Any, args: Any, kwargs: Any, value: Any) -> int:
        """Append one entry and return its number."""
        number = self.size
        self.size = number + 1
        self += (primitive, argnums, parents, args, kwargs, value)
        return number

    def fix_solution(self, side: int, solved: int, matrix: int) -> None:
        """Note that an adjusted right-hand side reads the solution, and this the matrix."""
        self.fixed |= {(side, 2): solved, (solved, 0): matrix}

    @property
    def is_complete(self) -> bool:
        """Whether all entries that were counted are there."""
        return len(self) == _FIELDS * self.size

    def entry(self, index: int) -> list[Any]:
        """Return the fields of one entry."""
        first = _FIELDS * index
        return self[first : first + _FIELDS]

    def value(self, index: int) -> Any:
        """Return the value of one entry."""
        return self[_FIELDS * (index + 1) - 1]


NO_KEYWORDS: Final[dict[str, Any]] = {}
"""Keyword arguments of nearly all entries."""
_FIELDS: Final = len(TapeEntry._fields)
"""Number of items that each entry has in the flat list."""


def constant_positions(count: int, argnums: tuple[int, ...]) -> list[int]:
    """Return the positions of the constant ones of ``count`` arguments, in linear time."""
    active = frozenset(argnums)
    return [position for position in range(count) if position not in active]


@dataclass(frozen=True, eq=False)
class Tape:
    """The computation graph of one function call, in the order of execution.

    Parameters
    ----------
    entries
        What has been recorded; the first ``inputs`` entries are the inputs.
    inputs
        Number of inputs that derivatives are taken with respect to.
    output
        Index of the entry that is the function's value; None if the value does not depend on an input.
    value
        The function's value.
    name
        Name of the function, for messages and reports.
    argnums
        Positions of the inputs among the function's positional arguments; empty if unknown.
    arity
        Number of positional arguments.
    seconds
        Time that recording took.
    lines
        For each entry the user's line of code that made it, as "file.py:12"; empty if they were not noted.

    Attributes
    ----------
    primitives, active, parents, args, kwargs, values
        Columns, each a field of all entries; ``active`` are their ``argnums``, ``args`` are None where they
        are the values of the parents.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from tapesplit import record
    >>> tape = record(lambda x: np.sin(x[0] * x[1]), np.array([1.0, 2.0]))
    >>> print(tape)
    tape of <lambda>: 5 entries, 1 input, output entry 4
      0  input     (2,)
      1  getitem   ()    <- 0
      2  getitem   ()    <- 0
      3  multiply  ()    <- 1, 2
      4  sin       ()    <- 3
    """

    entries: Entries
    inputs: int
    output: int | None
    value: Any
    name: str = "function"
    argnums: tuple[int, ...] = ()
    arity: int = 0
    seconds: float = 0.0
    lines: tuple[str, ...] = ()
    primitives: list[Any] = field(init=False)
    active: list[tuple[int, ...]] = field(init=False)
    parents: list[tuple[int, ...]] = field(init=False)
    args: list[Any] = field(init=False)
    kwargs: list[Mapping[str, Any]] = field(init=False)
    values: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        fields = self.entries  # copied: traced values that a user keeps may append further entries later on
        vars(self).update(
            primitives=fields[0::_FIELDS],
            active=fields[1::_FIELDS],
            parents=fields[2::_FIELDS],
            args=fields[3::_FIELDS],
            kwargs=fields[4::_FIELDS],
            values=fields[5::_FIELDS],
        )

    @property
    def jacobian_shape(self) -> tuple[int, int]:
        """Rows and columns of the Jacobian as a matrix: elements of the value, and of all inputs."""
        return int(np.size(self.value)), sum(map(np.size, self.values[: self.inputs]))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> TapeEntry:
        """Return one entry by its tape index."""
        return TapeEntry(
            self.primitives[index],
            self.active[index],
            self.parents[index],
            self.arguments(index),
            self.kwargs[index],
            self.values[index],
        )

    def __iter__(self) -> Iterator[TapeEntry]:
        return map(self.__getitem__, range(len(self)))

    def arguments(self, index: int) -> tuple[Any, ...]:
        """Return all positional arguments of one entry as plain values.

        Parameters
        ----------
        index
            Tape index.

        Returns
        -------
        tuple
            Active and constant ones, as they were given.
        """
        args, values = self.args[index], self.values
        return tuple([values[parent] for parent in self.parents[index]]) if args is None else args

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of the value of one entry.

        Parameters
        ----------
        index
            Tape index.

        Returns
        -------
        tuple of int
            () for a number.
        """
        return np.shape(self.values[index])

    def label(self, index: int) -> str:
        """Return the name of the primitive of one entry.

        Parameters
        ----------
        index
            Tape index.

        Returns
        -------
        str
            "input" for an input.
        """
        return label_of(self.primitives[index])

    def __str__(self) -> str:
        head = (
            f"tape of {self.name}: {len(self)} entries, {self.inputs} input{'s' * (self.inputs != 1)}, "
            f"output entry {self.output}"
        )
        shown = range(len(self)) if len(self) <= 40 else [*range(20), *range(len(self) - 20, len(self))]
        labels = {i: self.label(i) for i in shown}
        shapes = {i: _shape_text(self.values[i]) for i in shown}
        wide, tall = max(map(len, labels.values())), max(map(len, shapes.values()))
        lines = [head]
        for i in shown:
            if len(self) > 40 and i == len(self) - 20:
                lines.append(f"  ... {len(self) - 40} entries ...")
            parents = self.parents[i]
            arrow = f" <- {', '.join(map(str, parents))}" if parents else ""
            lines.append(f"{i:>3}  {labels[i]:<{wide}}  {shapes[i]:<{tall}}{arrow}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show the listing in a notebook."""
        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        return f"<Tape of {self.name}: {len(self)} entries, output {self.output}>"


def _shape_text(value: Any) -> str:
    """Shape of an array, type name of anything else."""
    return str(value.shape).replace(" ", "") if hasattr(value, "shape") else type(value).__name__
