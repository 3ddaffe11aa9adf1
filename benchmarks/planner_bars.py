"""The dynamic program against its bars: milliseconds to plan, from small chains to q = 1000.

Run: python -m benchmarks.planner_bars
Each time is the best of several runs; the solution is proved by its certificates before it is timed. The exit
status is 1 if a bar is missed. Bars are for a quiet machine.
"""

import sys
from time import perf_counter

import numpy as np

from jcdp_core import JacobianChain, check_schedule, check_sequence, solve

# links, machines, bar in ms (None: for information), runs
BARS = [
    (3, 3, None, 50),
    (8, 2, None, 50),
    (8, 8, None, 50),
    (40, 2, 2, 20),
    (50, 8, 7.3, 10),
    (200, 16, 190, 3),
    (1000, 1, 250, 2),
]


def random_chain(length):
    """Make a chain like the published ones, but larger."""
    rng = np.random.default_rng(1)
    return JacobianChain.from_sizes(rng.integers(5, 501, length + 1), rng.integers(1000, 100001, length))


def seconds(chain, machines, runs):
    """Prove one solution, then return the best time of several runs."""
    solution = solve(chain, machines=machines)
    check_sequence(chain, solution.sequence)
    check_schedule(solution.sequence, solution.schedule, machines)
    times = []
    for _ in range(runs):
        begin = perf_counter()
        solve(chain, machines=machines)
        times.append(perf_counter() - begin)
    return min(times)


def main():
    print(f"{'links':>6} {'machines':>8} {'ms':>9} {'bar':>6}")
    missed = False
    for length, machines, bar, runs in BARS:
        milliseconds = 1000 * seconds(random_chain(length), machines, runs)
        late = bar is not None and milliseconds > bar
        missed |= late
        print(
            f"{length:6} {machines:8} {milliseconds:9.2f} {bar or '':>6} {'missed' if late else ''}".rstrip()
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
