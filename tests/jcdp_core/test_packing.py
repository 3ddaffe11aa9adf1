"""Packing of accumulations: against all assignments of jobs to machines in all orders."""

import random
from itertools import permutations, product

from jcdp_core.solvers.search.packing import pack


def can_be_packed(jobs, available, end):
    """Try all orders of the jobs with all machines for each."""
    for order in permutations(jobs):
        for machines in product(range(len(available)), repeat=len(jobs)):
            free = list(available)
            for (release, duration), machine in zip(order, machines, strict=True):
                free[machine] = max(free[machine], release) + duration
            if max(free) <= end:
                return True
    return False


def test_packs_exactly_what_can_be_packed():
    rng = random.Random(3)
    packed = 0
    for _ in range(1500):
        jobs = [(rng.choice([0, 0, rng.randint(0, 6)]), rng.randint(1, 9)) for _ in range(rng.randint(1, 4))]
        jobs.sort(key=lambda job: (job[0], -job[1]))
        available = sorted(rng.randint(0, 8) for _ in range(rng.randint(1, 3)))
        end = rng.randint(4, 16)
        starts = pack(jobs, available, end)
        assert (starts is not None) == can_be_packed(jobs, available, end), (jobs, available, end)
        if starts is None:
            continue
        packed += 1
        free = list(available)
        for start, (release, duration) in sorted(zip(starts, jobs, strict=True)):
            assert release <= start <= end - duration
            machine = max((since for since in free if since <= start), default=None)
            assert machine is not None
            free.remove(machine)
            free.append(start + duration)
    assert 300 < packed < 1200
