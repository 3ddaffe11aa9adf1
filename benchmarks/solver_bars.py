"""The exact solver and the heuristic against their bars, on chains of the published distributions.

Run: python -m benchmarks.solver_bars [CHAINS]
CHAINS (default 1000) published chains of length 8; a fifth, a tenth and a fiftieth as many fresh ones of
length 10, 12 and 16, rounded down. All limits are 10 s a solve, and certificates prove what is found. Each
figure is printed beside its bar; the exit status is 1 if one is missed. Times are for a quiet machine.
"""

import statistics
import sys
from itertools import islice
from time import perf_counter

from benchmarks.complete_tables import PUBLISHED, published_chains
from jcdp_core import ChainGenerator, check_schedule, check_sequence, solve
from jcdp_core.config import Config

TIME_LIMIT = 10.0

# links, machines, share of CHAINS, least share proved, bars for median and mean and longest (ms)
EXACT = [
    (8, range(2, 9), 1, 1, 0.3, 6, 1300),
    (10, range(2, 7), 5, 1, None, None, 3300),
    (12, range(2, 7), 10, 0.998, 6, None, None),
    (16, range(2, 7), 50, 0.98, None, None, None),
]

# of the heuristic at length 8, by machines: bars for 1 - average C, the share that is not optimal, mean (ms)
HEURISTIC = {2: (0, 0.001, 0.9), 3: (0.0001, 0.008, 0.9), 4: (0.0002, 0.01, 0.9)}


def chains(q, amount):
    """Return published chains of one length, or fresh ones of the same distributions."""
    if q in PUBLISHED:
        return list(islice(published_chains(q), amount))
    config = Config(length=(q,), amount=amount, size_range=(5, 50), dag_size_range=(1000, 10000), seed=1)
    return list(ChainGenerator(config))


def proved(solution):
    """Return a solution that its certificates prove; an exception ends the run otherwise."""
    check_sequence(solution.chain, solution.sequence)
    check_schedule(solution.sequence, solution.schedule, solution.machines)
    return solution


def missed(text, value, bar):
    """Print one figure beside its bar; tell whether it is missed."""
    if bar is None:
        print(f"    {text:<28}{value:>10.4g}")
        return False
    print(f"    {text:<28}{value:>10.4g}   bar {bar:<8g}{'missed' if value > bar else ''}".rstrip())
    return value > bar


def exact(q, machines, amount, bars):
    """Solve all and compare; return the optima by machines, and whether a bar is missed."""
    least_proved, median, mean, longest = bars
    problems, solutions, times = chains(q, amount), {}, []
    for count in machines:
        solutions[count] = []
        for chain in problems:
            begin = perf_counter()
            solution = solve(chain, machines=count, method="exact", time_limit=TIME_LIMIT)
            times.append(1e3 * (perf_counter() - begin))
            solutions[count].append(proved(solution))
    proofs = [solution.optimal for found in solutions.values() for solution in found]
    print(f"exact, q = {q}, m = {machines[0]} … {machines[-1]}, {amount} chains each")
    misses = [
        missed("not proved (share)", proofs.count(False) / len(proofs), round(1 - least_proved, 6)),
        missed("median (ms)", statistics.median(times), median),
        missed("mean (ms)", statistics.fmean(times), mean),
        missed("longest (ms)", max(times), longest),
    ]
    return solutions, any(misses)


def heuristic(optima):
    """Compare the heuristic with the optima of length 8; return whether a bar is missed."""
    misses = []
    for machines, (loss, share, mean) in HEURISTIC.items():
        ratios, times, worse = [], [], 0
        for best in optima[machines]:
            begin = perf_counter()
            found = solve(best.chain, machines=machines, method="heuristic")
            times.append(1e3 * (perf_counter() - begin))
            ratios.append(best.makespan / proved(found).makespan)
            worse += found.makespan > solve(best.chain, machines=machines).makespan
        print(f"heuristic, q = 8, m = {machines}, {len(ratios)} chains")
        misses += [
            missed("1 - average C", 1 - statistics.fmean(ratios), loss),
            missed("not optimal (share)", statistics.fmean(ratio < 1 for ratio in ratios), share),
            missed("worse than the DP (chains)", worse, 0),
            missed("mean (ms)", statistics.fmean(times), mean),
        ]
    return any(misses)


def main(amount=1000):
    misses = []
    for q, machines, share, *bars in EXACT:
        if not amount // share:
            continue
        optima, bar_missed = exact(q, machines, amount // share, bars)
        misses.append(bar_missed)
        if q == 8:
            misses.append(heuristic(optima))
    return int(any(misses))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
