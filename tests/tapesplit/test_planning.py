"""What the planner decides: machines, and sequences by predicted time; predicted numbers decide, no clock."""

import random

import pytest

from jcdp_core import JacobianChain, check_schedule, check_sequence, solve
from tapesplit.recost import recost


def random_chain(seed, length):
    rng = random.Random(seed)
    sizes = [rng.randint(1, 40) for _ in range(length + 1)]
    return JacobianChain.from_sizes(sizes, [rng.randint(1, 2000) for _ in range(length)])


@pytest.mark.parametrize("machines", [2, 3, 4])
def test_recosted_schedules_keep_their_certificate(machines):
    for seed in range(100):
        length = 3 + seed % 6
        solution, chain = (
            solve(random_chain(seed, length), machines=machines),
            random_chain(seed + 1000, length),
        )
        again = recost(solution, chain, lower_bound=1)
        assert again.sequence.operations == solution.sequence.operations
        check_sequence(chain, again.sequence)
        check_schedule(again.sequence, again.schedule, machines)
        assert again.makespan == again.schedule.makespan >= max(again.sequence.costs)
