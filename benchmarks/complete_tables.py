"""The complete tables: optimum over dynamic program for all published chains, and for longer fresh ones.

    python -m benchmarks.complete_tables solve 2 3 4 5 6 7 8 10 12    # rows go to out/complete_{q}.csv
    python -m benchmarks.complete_tables write                        # makes docs/complete_tables.md of them

Lengths 2 to 8 are the published chains (seed 4711, 9999 of each length), the others fresh ones with the same
distributions. `solve` goes on where it was interrupted; it takes about a quarter of an hour.
"""

import csv
import statistics
import sys
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from jcdp_core import ChainGenerator, makespans, read_config, solve
from jcdp_core.config import Config
from jcdp_core.solvers.problem import Problem
from jcdp_core.statistics import STATISTICS

PUBLISHED = range(2, 9)
FRESH = {10: 2000, 12: 500}
TIME_LIMIT = 10.0
OUT = Path("out")
ROOT = Path(__file__).parent.parent

PAPER = {
    "Average of C = optimum/{}": {
        2: "1",
        3: ".987 1",
        4: ".965 .993 1",
        5: ".950 .980 .998 1",
        6: ".938 .966 .992 .999 1",
        7: ".930 .953 .992 .999 1.00 1",
        8: ".923 .949 .991 .998 1.00 1.00 1",
    },
    "Minimum of C = optimum/{}": {
        2: "1",
        3: ".733 1",
        4: ".717 .733 1",
        5: ".705 .688 .770 1",
        6: ".713 .705 .735 .825 1",
        7: ".724 .720 .758 .804 .899 1",
        8: ".731 .728 .761 .802 .865 .931 1",
    },
    "Percentage of chains where {} is optimal": {
        2: "100",
        3: "83.3 100",
        4: "59.6 89.8 100",
        5: "43.5 74.3 95.6 100",
        6: "32.9 56.7 86.6 98.3 100",
        7: "25.1 43.7 84.1 96.6 99.5 100",
        8: "19.4 38.5 80.7 93.6 98.3 99.7 100",
    },
}
"""The paper's figures by length, for m = 2 … q, under the titles of `STATISTICS`."""


def published_chains(q):
    """Yield the published chains of one length; the last one that the generator made was never written."""
    config = read_config(ROOT / "examples/paper/statistics.in")
    begin = config.length.index(q) * config.amount
    return islice(ChainGenerator(config), begin, begin + config.amount - 1)


def chains(q):
    """Return the chains of one length."""
    if q in PUBLISHED:
        return published_chains(q)
    ranges = {"size_range": (5, 50), "dag_size_range": (1000, 10000)}
    return iter(ChainGenerator(Config(length=(q,), amount=FRESH[q], seed=4711, **ranges)))


def solve_all(q):
    """Append what is missing to the file of one length: see `load` for the columns, in CPU seconds."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"complete_{q}.csv"
    done = len(path.read_text().splitlines()) // (q - 1) if path.exists() else 0
    with path.open("a") as file:
        for number, chain in enumerate(islice(chains(q), done, None), start=done):
            programmed = makespans(Problem(chain, q))
            lines = []
            for machines in range(2, q + 1):
                begin = process_time()
                solution = solve(chain, machines=machines, method="exact", time_limit=TIME_LIMIT)
                seconds = process_time() - begin
                lines.append(
                    f"{number},{machines},{solution.makespan},{solution.lower_bound},"
                    f"{programmed[machines - 1]},{seconds:.6f}\n"
                )
            file.writelines(lines)


def load(q):
    """Return, for each number of machines, the list of (optimum, bound, dynamic program, seconds)."""
    rows = {machines: [] for machines in range(2, q + 1)}
    with (OUT / f"complete_{q}.csv").open() as file:
        for _, machines, best, bound, programmed, seconds in csv.reader(file):
            rows[int(machines)].append((int(best), int(bound), int(programmed), float(seconds)))
    return rows


def table(title, lengths, statistic, paper):
    """Return one table in Markdown, the paper's figures in parentheses."""

    def cell(rows):
        return statistic(np.array([best / programmed for best, _, programmed, _ in rows]))

    widest = max(lengths)
    lines = [f"### {title}", "", "| q \\ m | " + " | ".join(map(str, range(2, widest + 1))) + " |"]
    lines.append("|" + "---|" * widest)
    for q in lengths:
        rows = load(q)
        printed = paper.get(q, "").split()
        cells = [
            cell(rows[machines]) + (f" ({printed[machines - 2]})" if printed else "")
            for machines in range(2, q + 1)
        ]
        lines.append(f"| {q} | " + " | ".join(cells + [""] * (widest - q)) + " |")
    return "\n".join([*lines, ""])


def times(lengths):
    """Return the table of times and proofs in Markdown."""
    lines = [
        "### Proofs and times of the exact solver",
        "",
        "| q | chains | solves, m = 2 … q | proved | median | mean | 99 % | longest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for q in lengths:
        rows = [row for per_machines in load(q).values() for row in per_machines]
        seconds = sorted(row[3] for row in rows)
        proved = sum(best == bound for best, bound, *_ in rows)
        lines.append(
            f"| {q} | {len(rows) // (q - 1)} | {len(rows)} | {proved} "
            f"| {1e3 * statistics.median(seconds):.2f} ms | {1e3 * statistics.fmean(seconds):.2f} ms "
            f"| {1e3 * seconds[int(0.99 * len(rows))]:.1f} ms | {seconds[-1]:.2f} s |"
        )
    return "\n".join([*lines, ""])


INTRODUCTION = """# Complete tables

C = optimum / dynamic program, over all sequences and schedules, for the published random chains of Märtens &
Naumann (2025): the same seed, all 9999 chains of each length q = 2 … 8, every number of machines m, every
optimum proved. `1` means that C is 1 for every chain, `1.00` that it rounds to 1. In parentheses the paper's
figures: averages over the chains that its branch and bound finished within a time limit. The unfinished ones
(at q = 8, m = 4 more than a third) are not a random sample, so the figures differ by more than rounding
(survivorship bias).

Lengths 10 and 12 are fresh chains of the same distributions (seed 4711, at most 10 s a solve). Where an
optimum is not proved, the best makespan found is used instead. Times are those of all solves, in processor
seconds; the limits are in wall-clock seconds. They depend on the machine.

To reproduce: `python -m benchmarks.complete_tables solve 2 3 4 5 6 7 8 10 12`, then the same with `write`.

"""


def write():
    lengths = [q for q in (*PUBLISHED, *FRESH) if (OUT / f"complete_{q}.csv").exists()]
    parts = [table(title.format("DP"), lengths, STATISTICS[title], paper) for title, paper in PAPER.items()]
    (ROOT / "docs/complete_tables.md").write_text(INTRODUCTION + "\n".join([*parts, times(lengths)]))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["solve", *lengths]:
            for length in map(int, lengths):
                begin = perf_counter()
                solve_all(length)
                print(f"q = {length}: {perf_counter() - begin:.1f} s", flush=True)
        case ["write"]:
            write()
        case _:
            sys.exit(__doc__)
