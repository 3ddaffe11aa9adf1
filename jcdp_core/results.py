"""Results files: what each solver found for many chains of one length.

A file is CSV with a row per chain and, for each machine count t, the columns ``BnB_BnB/t/finished``,
``BnB_BnB/t``, ``BnB_List/t``, ``DP/t`` and ``DP_BnB/t``. The published files of Märtens & Naumann (2025) have
this format, and ``jcdp-batch`` writes it.
"""

import csv
import math
import os
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final, final

import numpy as np

from jcdp_core.arguments import expect
from jcdp_core.errors import ResultsError

__all__ = ["SOLVER_COLUMNS", "Results", "columns", "read_results", "read_row"]

_BELOW_ONE: Final = math.nextafter(1.0, 0.0)
SOLVER_COLUMNS: Final = ("BnB_BnB", "BnB_List", "DP", "DP_BnB")
"""Names of solvers in results files, in the order of their columns; the first one is exact."""
_PER_COUNT: Final = len(SOLVER_COLUMNS) + 1
"""Cells of one machine count: whether the optimum is proved, and the makespans of the solvers."""


def columns(length: int) -> list[str]:
    """Return the header of the results file of one chain length.

    There are five columns for each of the machine counts 1, …, `length`.

    Examples
    --------
    >>> columns(1)
    ['BnB_BnB/1/finished', 'BnB_BnB/1', 'BnB_List/1', 'DP/1', 'DP_BnB/1']
    """
    names = []
    for machines in range(1, length + 1):
        names.append(f"BnB_BnB/{machines}/finished")
        names.extend(f"{solver}/{machines}" for solver in SOLVER_COLUMNS)
    return names


@final
@dataclass(frozen=True, slots=True)
class Results:
    """Hold the results of many chains of one length.

    Parameters
    ----------
    length : int
        Chain length q.
    finished : mapping of int to tuple of bool
        Per machine count 1, …, q: whether the optimum of each chain is proved.
    makespans : mapping of (str, int) to tuple of int
        Per solver and machine count: the makespan of each chain in fma.
    """

    length: int
    finished: Mapping[int, tuple[bool, ...]]
    makespans: Mapping[tuple[str, int], tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.finished[1])

    def ratios(self, machines: int, solver: str = "DP", *, finished_only: bool) -> np.ndarray:
        """Return C = optimum / makespan of each chain.

        Parameters
        ----------
        machines : int
            Machine count, 1 to q.
        solver : str, optional
            Solver whose makespan is the denominator.
        finished_only : bool
            Whether to leave out the chains whose optimum is not proved. If they are kept, the best makespan
            found by any solver stands for the optimum, and C is an upper bound.

        Returns
        -------
        ndarray of float, shape (chains,)
            The ratios; 1.0 where the solver is optimal.
        """
        best = map(min, *(self.makespans[name, machines] for name in SOLVER_COLUMNS))
        rows = zip(self.finished[machines], best, self.makespans[solver, machines], strict=True)
        return np.array([_ratio(least, found) for done, least, found in rows if done or not finished_only])


def _ratio(best: int, found: int) -> float:
    """Return best / found, which is 1.0 only if they are equal, however large they are."""
    return min(best / found, _BELOW_ONE) if best < found else best / found


def read_results(path: str | Path) -> Results:
    """Read a results file, a published one or one of ``jcdp-batch``.

    Parameters
    ----------
    path : str or path
        CSV file with the columns of `columns`.

    Returns
    -------
    Results
        Its rows; the chain length is the highest machine count in the header.

    Raises
    ------
    ResultsError
        If the file is no CSV file, is empty, has other columns, or has a row that is malformed or contradicts
        itself; the message starts with ``file:line:``.
    ArgumentTypeError
        If the path is something else.
    OSError
        If it cannot be opened, such as `FileNotFoundError`.
    """
    expect(path, (str, os.PathLike), "path", "give the name of a results file")
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            lines = file.readlines()
        rows = list(csv.reader(lines))
    except (UnicodeDecodeError, csv.Error):
        raise ResultsError(f"{path}: not a CSV file; give files that jcdp-batch wrote") from None
    header = rows[0] if rows else []
    length = len(header) // _PER_COUNT
    if not length or header != columns(length):
        raise ResultsError(f"{path}:1: {_header_fault(header)}; give files that jcdp-batch wrote")
    cells = [read_row(row, len(header), f"{path}:{line}") for line, row in enumerate(rows[1:], start=2)]
    if not cells:
        raise ResultsError(f"{path}: there are no rows yet; run jcdp-batch first")
    if not lines[-1].endswith(("\r", "\n")):
        raise _damaged(f"{path}:{len(lines)}", "the line has no end, so that digits may be missing")
    by_name = dict(zip(header, zip(*cells, strict=True), strict=True))
    counts = range(1, length + 1)
    return Results(
        length,
        {count: tuple(map(bool, by_name[f"BnB_BnB/{count}/finished"])) for count in counts},
        {(solver, count): by_name[f"{solver}/{count}"] for solver in SOLVER_COLUMNS for count in counts},
    )


def _header_fault(header: list[str]) -> str:
    """Say where a header is not that of a results file."""
    expected = columns(max(1, -(-len(header) // _PER_COUNT)))
    pairs = enumerate(zip_longest(header, expected), start=1)
    number, given, wanted = next((number, *pair) for number, pair in pairs if pair[0] != pair[1])
    fault = "is missing" if given is None else f"is {reprlib.repr(given)}"
    return f"not the header of a results file: column {number} {fault} and should be {wanted!r}"


def read_row(row: list[str], width: int, place: str) -> list[int]:
    """Return the cells of a row as integers, the flags as 0 and 1.

    The flags and makespans (fma) are in the order of `columns`. `width` is the number of cells that there
    should be; `place` is file and line, for the message.

    Raises
    ------
    ResultsError
        If there are more or fewer cells, one is no flag or no makespan, or a solver is better than a proved
        optimum.

    Examples
    --------
    >>> read_row(["true", "14", "14", "14", "14"], 5, "results.csv:2")
    [1, 14, 14, 14, 14]
    """
    if len(row) != width:
        raise _damaged(place, f"{len(row)} cells instead of {width}")
    flags = {"true": 1, "false": 0}
    cells = []
    for column, cell in enumerate(row):
        try:
            value = int(cell) if column % _PER_COUNT else flags[cell]
        except (KeyError, ValueError):
            raise _damaged(place, f"cell {column + 1} is {cell!r}, which is no result") from None
        if value < 1 and column % _PER_COUNT:
            raise _damaged(place, f"cell {column + 1} is {cell!r}, and a makespan is at least 1")
        cells.append(value)
    for first in range(0, width, _PER_COUNT):
        proved, optimum, *others = cells[first : first + _PER_COUNT]
        if proved and min(others) < optimum:
            found = f"cell {first + 2} is {optimum}, a proved optimum, but {min(others)} was found"
            raise _damaged(place, found)
    return cells


def _damaged(place: str, reason: str) -> ResultsError:
    """Return the error for a damaged row; later ones must go, too, or they might count for other chains."""
    return ResultsError(f"{place}: {reason}; the row is damaged: remove it and all rows after it")
