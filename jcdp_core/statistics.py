"""Statistics of results: how close the dynamic program comes to the optimum.

The quantity of interest is C = optimum / makespan, at most one. Chains whose optimum was not proved are the
harder ones: leaving them out flatters C (survivorship bias), so that "finished" and "all" are told apart.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from jcdp_core.results import Results

__all__ = ["STATISTICS", "Table", "ratios_by_machines", "scope_of", "summarize"]


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
        writer.writerows([length, *self._padded(row)] for length, row in self.rows.items())
        return text.getvalue().rstrip("\n")

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``table`` environment with the title as its caption."""
        lines = [" & ".join(["$q \\backslash m$", *map(str, self.machines)]) + r" \\ \hline"]
        for length, row in self.rows.items():
            lines.append(" & ".join([str(length), *self._padded(row)]) + r" \\")
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

    def _padded(self, row: tuple[str, ...]) -> list[str]:
        """Return a row with a cell for each column."""
        return [*row, *[""] * (len(self.machines) - len(row))]


def _fraction(ratios: np.ndarray, of: Callable[[np.ndarray], Any]) -> str:
    """Print a mean or minimum as the paper does: .987, 1.00 where it rounds to one, 1 where all are one."""
    if not len(ratios):
        return "-"
    if np.all(ratios == 1):
        return "1"
    text = f"{of(ratios):.3f}"
    return "1.00" if text == "1.000" else text.removeprefix("0")


def _percentage(ratios: np.ndarray) -> str:
    """Print the percentage of ratios that are one; 100 only if all are."""
    if not len(ratios):
        return "-"
    share = float(np.mean(ratios == 1))
    return "100" if share == 1 else f"{100 * share:.1f}"


STATISTICS: Final[Mapping[str, Callable[[np.ndarray], str]]] = {
    "Average of C = optimum/{}": lambda ratios: _fraction(ratios, np.mean),
    "Minimum of C = optimum/{}": lambda ratios: _fraction(ratios, np.min),
    "Percentage of chains where {} is optimal": _percentage,
    "Number of chains": lambda ratios: str(len(ratios)),
}
"""What is printed of ratios C, by title; {} stands for the solver."""


def ratios_by_machines(
    results: Iterable[Results], solver: str = "DP", *, finished_only: bool
) -> dict[int, dict[int, np.ndarray]]:
    """Return C by chain length and machine count; results of the same length are joined.

    The makespans of `solver` are the denominator, and `finished_only` is as in `Results.ratios`. Lengths q
    and machine counts m = 2, …, q ascend; results of length 1 have no machine count of interest and are left
    out.
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


def scope_of(results: Iterable[Results], *, finished_only: bool) -> str:
    """Say which chains the ratios count, and how many optima are not proved on two machines or more.

    Titles of tables and figures end with it. `finished_only` is as in `Results.ratios`.

    Examples
    --------
    >>> scope_of([], finished_only=False)
    'all chains, every optimum proved'
    """
    unfinished = sum(
        not done
        for result in results
        for count, flags in result.finished.items()
        if count > 1
        for done in flags
    )
    if not unfinished:
        return "all chains, every optimum proved"
    if finished_only:
        return f"finished solves only; {unfinished} left out"
    return f"all chains; {unfinished} solve{'s' * (unfinished != 1)} not proved: C is an upper bound"


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
    >>> from jcdp_core.results import SOLVER_COLUMNS
    >>> makespans = {(name, m): (10, 9) for name in SOLVER_COLUMNS for m in (1, 2)}
    >>> makespans |= {("BnB_BnB", m): (8, 9) for m in (1, 2)}
    >>> results = Results(2, {1: (True, True), 2: (True, False)}, makespans)
    >>> print(summarize([results], finished_only=False)[0])
    Average of C = optimum/DP (all chains; 1 solve not proved: C is an upper bound)
    q\m       2
    2       .900
    >>> print(summarize([results], finished_only=True)[0])
    Average of C = optimum/DP (finished solves only; 1 left out)
    q\m       2
    2       .800
    """
    by_length = ratios_by_machines(results, solver, finished_only=finished_only)
    scope = scope_of(results, finished_only=finished_only)
    machines = tuple(range(2, max(by_length, default=1) + 1))
    return [
        Table(
            f"{title.format(solver)} ({scope})",
            machines,
            {
                length: tuple(statistic(ratios) for ratios in row.values())
                for length, row in by_length.items()
            },
        )
        for title, statistic in STATISTICS.items()
    ]
