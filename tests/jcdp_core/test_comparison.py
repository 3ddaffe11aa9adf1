"""All solvers side by side: certificates accept what they find, and better methods find no worse."""

import pytest

from jcdp_core import comparison
from jcdp_core.certify import check_schedule, check_sequence
from jcdp_core.comparison import TITLES, compare
from jcdp_core.config import Config
from jcdp_core.generator import ChainGenerator
from jcdp_core.report import chain_text
from jcdp_core.schedulers import schedule_sequence
from jcdp_core.solvers import solve

RANGES = {"length": (5,), "amount": 12, "size_range": (2, 30), "dag_size_range": (50, 900)}
VARIANTS = {
    "matrix-free": Config(**RANGES),
    "dense": Config(**RANGES, matrix_free=False),
    "limited memory": Config(**RANGES, available_memory=700),
    "separate costs": Config(**RANGES, tangent_factor_range=(1, 3), adjoint_factor_range=(2, 6)),
}


@pytest.mark.parametrize("machines", [1, 2, 3, None])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_solution_holds(variant, machines):
    config = VARIANTS[variant]
    for chain in ChainGenerator(config):
        solutions = compare(chain, config, machines)
        assert list(solutions) == list(TITLES)
        for solution in solutions.values():
            check_sequence(
                chain, solution.sequence, matrix_free=config.matrix_free, memory_limit=config.memory_limit
            )
            check_schedule(solution.sequence, solution.schedule, machines or solution.schedule.machines)
            assert solution.makespan == solution.schedule.makespan >= solution.lower_bound
            assert not solution.optimal or solution.makespan == solutions["BnB_BnB"].makespan
        found = {name: solution.makespan for name, solution in solutions.items()}
        assert solutions["BnB_BnB"].optimal
        assert found["BnB_BnB"] <= found["BnB_List"] <= found["DP"]
        assert found["BnB_BnB"] <= found["DP_BnB"] <= min(found["DP"], found["DP_List"])


def test_rescheduling_improves_where_it_can():
    config = Config(length=(6,), amount=100, size_range=(5, 50), dag_size_range=(1000, 10000))
    solutions = [compare(chain, config, 2) for chain in ChainGenerator(config)]
    improved = [found for found in solutions if found["DP_BnB"].makespan < found["DP"].makespan]
    assert improved
    assert all(found["DP_BnB"].sequence == found["DP"].sequence for found in improved)
    for found in solutions:
        for name, method in (("DP_List", "highest_level_first"), ("DP_BnB", "branch_and_bound")):
            scheduling = schedule_sequence(found["DP"].sequence, machines=2, method=method)
            assert found[name].schedule == scheduling.schedule


@pytest.mark.parametrize("best", ["DP_BnB", "BnB_List"])
def test_the_exact_solver_is_never_shown_worse_than_another(monkeypatch, best):
    """Its time may end before the proof: here it knows no more than the dynamic program."""

    def solve_by_the_program(chain, *, method, **settings):
        found = method if (method, best) == ("heuristic", "BnB_List") else "dp"
        return solve(chain, method=found, **settings)

    monkeypatch.setattr(comparison, "solve", solve_by_the_program)
    config = Config(length=(6,), amount=30, size_range=(5, 50), dag_size_range=(1000, 10000))
    solutions = [compare(chain, config, 2) for chain in ChainGenerator(config)]
    assert any(found[best].makespan < found["DP"].makespan for found in solutions)
    for found in solutions:
        assert found["BnB_BnB"].makespan == min(solution.makespan for solution in found.values())
        check_schedule(found["BnB_BnB"].sequence, found["BnB_BnB"].schedule, 2)


def test_the_report_compares_each_solver_with_the_best():
    config = Config(length=(6,), amount=100, size_range=(5, 50), dag_size_range=(1000, 10000))
    compared = ((chain, compare(chain, config, 2)) for chain in ChainGenerator(config))
    chain, found = next(pair for pair in compared if pair[1]["DP"].makespan > pair[1]["BnB_BnB"].makespan)
    report = chain_text(chain, found)
    cells = [line.split() for line in report.splitlines()]
    for name, solution in found.items():
        (row,) = [row for row in cells if row[:2] == [name, str(solution.makespan)]]
        ratio = found["BnB_BnB"].makespan / solution.makespan
        assert row[2] == f"{ratio:.3f}"
        assert (row[3] == "optimal") == (ratio == 1)
        after = report.partition(f"{name} ({TITLES[name]})")[2].splitlines()[1]
        assert (f"{solution.nodes} nodes" in after) == (solution.nodes is not None)
