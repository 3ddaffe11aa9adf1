"""The exact solver against exhaustive search on many tiny instances; the tests do some two thousand of them.

Run: PYTHONPATH=tests python tests/jcdp_core/exhaustive_check.py [INSTANCES] [SEED]
Half of the instances have small numbers, so that ties abound; every twentieth has up to five links, the
others up to four. Modes, memory limits (also shared), costs, dense and matrix-free vary. It stops at the
first difference.
"""

import random
import sys
from time import perf_counter

from exhaustive import random_instance
from test_exact import check_against_exhaustive_search


def main(instances=10000, seed=0):
    rng = random.Random(seed)
    begin = perf_counter()
    for number in range(instances):
        longest = 5 if number % 20 == 0 else 4
        check_against_exhaustive_search(random_instance(rng, longest, ties=number % 2 == 0))
    print(f"{instances} instances agree ({perf_counter() - begin:.0f} s)")  # noqa: T201 - a command prints


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
