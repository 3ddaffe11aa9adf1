"""Statistics of results files: how close the dynamic program comes to the optimum.

A results file holds one row per chain and, for each machine count t, the columns ``BnB_BnB/t/finished``,
``BnB_BnB/t``, ``BnB_List/t``, ``DP/t`` and ``DP_BnB/t``. The quantity of interest is C = optimum / makespan,
at most one. Chains whose optimum was not proved are the harder ones: leaving them out flatters C
(survivorship bias), so that "finished" and "all" are always told apart.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np

from jcdp_core.errors import ResultsError

__all__ = ["SOLVERS", "Results", "Table", "columns", "ratios_by_machines", "read_results", "summarize"]

_BELOW_ONE: Final = math.nextafter(1.0, 0.0)
SOLVERS: Final = ("BnB_BnB", "BnB_List", "DP", "DP_BnB")


def columns(length: int) -> list[str]:
    """Return the header of the results file of one chain length.

    Parameters
    ----------
    length : int
        Chain length q; the machine counts are 1, …, q.

    Returns
    -------
    list of str
        Five column names per machine count.

    Examples
    --------
    >>> columns(1)
    ['BnB_BnB/1/finished', 'BnB_BnB/1', 'BnB_List/1', 'DP/1', 'DP_BnB/1']
    """
    names = []
    for machines in range(1, length + 1):
        names.append(f"BnB_BnB/{machines}/finished")
        names.extend(f"{solver}/{machines}" for solver in SOLVERS)
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
            found stands for the optimum, and C is an upper bound.

        Returns
        -------
        ndarray of float, shape (chains,)
            The ratios; 1.0 where the solver is optimal.
        """
        rows = zip(
            self.finished[machines],
            self.makespans["BnB_BnB", machines],
            self.makespans[solver, machines],
            strict=True,
        )
        return np.array([_ratio(best, found) for done, best, found in rows if done or not finished_only])


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
        If the file cannot be read, is empty, has other columns, or has a malformed row; the message starts
        with ``file:line:``.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as lines:
            rows = list(csv.reader(lines))
    except OSError as error:
        raise ResultsError(f"{path}: cannot read the results file: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise ResultsError(f"{path}: not a CSV file; give files that jcdp-batch wrote") from None
    header = rows[0] if rows else []
    length = len(header) // (len(SOLVERS) + 1)
    if not length or header != columns(length):
        raise ResultsError(
            f"{path}:1: the header is not that of a results file; it starts {','.join(columns(1))}"
        )
    cells = [_read_row(row, len(header), f"{path}:{line}") for line, row in enumerate(rows[1:], start=2)]
    if not cells:
        raise ResultsError(f"{path}: there are no rows yet; run jcdp-batch first")
    by_name = dict(zip(header, zip(*cells, strict=True), strict=True))
    counts = range(1, length + 1)
    return Results(
        length,
        {count: tuple(map(bool, by_name[f"BnB_BnB/{count}/finished"])) for count in counts},
        {(solver, count): by_name[f"{solver}/{count}"] for solver in SOLVERS for count in counts},
    )


def _read_row(row: list[str], width: int, place: str) -> list[int]:
    """Return the cells of *row* as integers, the flags as 0 and 1."""
    if len(row) != width:
        raise ResultsError(f"{place}: {len(row)} cells instead of {width}; remove the incomplete row")
    flags = {"true": 1, "false": 0}
    cells = []
    for column, cell in enumerate(row):
        try:
            value = int(cell) if column % (len(SOLVERS) + 1) else flags[cell]
        except (KeyError, ValueError):
            raise ResultsError(f"{place}: cell {column + 1} is {cell!r}, which is no result") from None
        if value < 1 and column % (len(SOLVERS) + 1):
            raise ResultsError(f"{place}: cell {column + 1} is {cell!r}; a makespan is at least 1")
        cells.append(value)
    return cells


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Hold one table of a statistic over chain lengths (rows) and machine counts (columns).

    Parameters
    ----------
    title : str
        What the figures are, and of which chains.
    machines : tuple of int
        Machine counts, the columns.
    rows : mapping of int to tuple of str
        Printed figures by chain length; a row ends where the machine count exceeds the length.
    """

    title: str
    machines: tuple[int, ...]
    rows: Mapping[int, tuple[str, ...]]

    def __str__(self) -> str:
        lines = [self.title, "q\\m " + "".join(f"{count:>7}" for count in self.machines)]
        lines += [f"{length:<4}" + "".join(f"{cell:>7}" for cell in row) for length, row in self.rows.items()]
        return "\n".join(line.rstrip() for line in lines)

    def to_csv(self) -> str:
        """Return the table as CSV text; the title is the first line."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([[self.title], ["q", *self.machines]])
        writer.writerows([length, *row] for length, row in self.rows.items())
        return text.getvalue().rstrip("\n")

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``table`` environment with the title as its caption."""
        lines = [" & ".join(["$q \\backslash m$", *map(str, self.machines)]) + r" \\ \hline"]
        for length, row in self.rows.items():
            padding = [""] * (len(self.machines) - len(row))
            lines.append(" & ".join([str(length), *row, *padding]) + r" \\")
        title = self.title.replace("%", r"\%").replace("_", r"\_")
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{title}}}",
                rf"\begin{{tabular}}{{r|{'r' * len(self.machines)}}}",
                *lines,
                r"\end{tabular}",
                r"\end{table}",
            ]
        )


def _fraction(value: float) -> str:
    """Print a ratio as the paper does: .987, 1.00 where it only rounds to one, 1 where it is one."""
    if value == 1:
        return "1"
    text = f"{value:.3f}"
    return "1.00" if text == "1.000" else text.removeprefix("0")


def _percentage(ratios: np.ndarray) -> str:
    """Print the percentage of ratios that are one; 100 only if all are."""
    share = float(np.mean(ratios == 1))
    return "100" if share == 1 else f"{100 * share:.1f}"


_STATISTICS: Final[Mapping[str, Callable[[np.ndarray], str]]] = {
    "Average of C = optimum/{}": lambda ratios: _fraction(float(np.mean(ratios))),
    "Minimum of C = optimum/{}": lambda ratios: _fraction(float(np.min(ratios))),
    "Percentage of chains where {} is optimal": _percentage,
    "Number of chains": lambda ratios: str(len(ratios)),
}


def ratios_by_machines(
    results: Iterable[Results], solver: str = "DP", *, finished_only: bool
) -> dict[int, dict[int, np.ndarray]]:
    """Return C by chain length and machine count; results of the same length are joined.

    Parameters
    ----------
    results : iterable of Results
        Results of any lengths; those of length 1 have no machine count of interest and are left out.
    solver : str, optional
        Solver whose makespan is the denominator.
    finished_only : bool
        As in `Results.ratios`.

    Returns
    -------
    dict of int to dict of int to ndarray
        Ratios of length q and machine count m = 2, …, q, in ascending order of both.
    """
    joined: dict[int, dict[int, list[np.ndarray]]] = {}
    for result in sorted(results, key=lambda result: result.length):
        for machines in range(2, result.length + 1):
            ratios = result.ratios(machines, solver, finished_only=finished_only)
            joined.setdefault(result.length, {}).setdefault(machines, []).append(ratios)
    return {
        length: {machines: np.concatenate(parts) for machines, parts in row.items()}
        for length, row in joined.items()
    }


def summarize(results: Sequence[Results], solver: str = "DP", *, finished_only: bool) -> list[Table]:
    r"""Return the tables of average, minimum and percentage, and of the number of chains behind them.

    Parameters
    ----------
    results : sequence of Results
        Results of any lengths.
    solver : str, optional
        Solver to compare with the optimum.
    finished_only : bool
        Whether to leave out the chains whose optimum is not proved; the titles say so.

    Returns
    -------
    list of Table
        Four tables with rows q ≥ 2 and columns m = 2, …, max q.

    Notes
    -----
    The tables of Märtens & Naumann 2025 are those with ``finished_only=True``.

    Examples
    --------
    >>> makespans = {(name, m): (8, 9) if name == "BnB_BnB" else (10, 9) for name in SOLVERS for m in (1, 2)}
    >>> results = Results(2, {1: (True, True), 2: (True, False)}, makespans)
    >>> print(summarize([results], finished_only=False)[0])
    Average of C = optimum/DP (all chains; 1 solves not proved: C is an upper bound)
    q\m       2
    2       .900
    >>> print(summarize([results], finished_only=True)[0])
    Average of C = optimum/DP (finished solves only; 1 left out)
    q\m       2
    2       .800
    """
    by_length = ratios_by_machines(results, solver, finished_only=finished_only)
    unfinished = sum(
        not done
        for result in results
        for count, flags in result.finished.items()
        if count > 1
        for done in flags
    )
    scope = "all chains, every optimum proved"
    if unfinished:
        scope = (
            f"finished solves only; {unfinished} left out"
            if finished_only
            else f"all chains; {unfinished} solves not proved: C is an upper bound"
        )
    machines = tuple(range(2, max(by_length, default=1) + 1))
    return [
        Table(
            f"{title.format(solver)} ({scope})",
            machines,
            {
                length: tuple(statistic(ratios) if len(ratios) else "-" for ratios in row.values())
                for length, row in by_length.items()
            },
        )
        for title, statistic in _STATISTICS.items()
    ]
