"""The dynamic program against the recurrences read literally, brute force, and the worked examples."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jcdp_strategies import CHAIN_A, chains, deterministic

from jcdp_core import (
    Action,
    ElementalJacobian,
    InfeasibleError,
    JacobianChain,
    Mode,
    Problem,
    SolverError,
    check_schedule,
    check_sequence,
    solve,
)
from jcdp_core.solvers import SOLVERS, dp_table
from jcdp_core.solvers.dp_table import MakespanTable
from jcdp_core.solvers.dynamic_programming import makespans, solve_dynamic_programming

ONE_MACHINE = """\
1: ACC TAN (4 5)    10228680 fma  [1]
2: ELI TAN (4 5 6)  10364220 fma  [1]
3: ACC ADJ (3 4)     2985336 fma  [1]
4: ELI ADJ (1 3 4)  16636212 fma  [1]
5: ELI MUL (1 4 6)   5941512 fma  [1]
6: ELI ADJ (0 1 6)   4821516 fma  [1]"""

THREE_MACHINES = """\
1: ACC TAN (4 5)    10228680 fma  [1]
2: ELI TAN (4 5 6)  10364220 fma  [1]
3: ACC ADJ (3 4)     2985336 fma  [2]
4: ELI ADJ (2 3 4)   8356392 fma  [2]
5: ACC TAN (1 2)    13263045 fma  [3]
6: ELI MUL (1 2 4)   3549960 fma  [2,3]
7: ELI ADJ (0 1 4)   1637496 fma  [2,3]
8: ELI MUL (0 4 6)   9204192 fma  [1,3]"""


def literal(problem):
    """Evaluate the paper's recurrences word by word: all eliminations, all splits of the machines."""
    links = problem.chain.links
    sizes = problem.chain.sizes

    def sweeps(i, j, k, t):
        """Eliminations of the links k+1..j by tangents and i+1..k by adjoints."""
        if all(problem.tangent_allowed(v) for v in range(k, j)):
            yield f(i, k, t) + sizes[i] * sum(link.tangent_cost for link in links[k:j])
        if problem.adjoint_allowed(i, k - 1, t or 1):
            yield f(k, j, t) + sizes[j] * sum(link.adjoint_cost for link in links[i:k])

    @cache
    def f(i, j, t):
        """Return f between the positions i and j on t machines; t = 0 stands for unlimited."""
        if j - i == 1:
            tangent = links[i].n * links[i].tangent_cost if links[i].tangent else float("inf")
            adjoint = links[i].m * links[i].adjoint_cost
            return min(tangent, adjoint if problem.adjoint_allowed(i, i, t or 1) else float("inf"))
        candidates = []
        for k in range(i + 1, j):
            together = max(f(k, j, 0), f(i, k, 0)) if t == 0 else f(k, j, t) + f(i, k, t)
            shared = [max(f(k, j, s), f(i, k, t - s)) for s in range(1, t)]
            candidates.append(sizes[j] * sizes[k] * sizes[i] + min([together, *shared]))
            if problem.matrix_free:
                candidates += sweeps(i, j, k, t)
        return min(candidates)

    return f(0, len(links), problem.machines or 0)


def check(problem, solution):
    """Prove the solution and its bound with the certificates."""
    pools = [len(task.pool) for task in solution.schedule.tasks] if problem.shared_memory else None
    check_sequence(
        problem.chain,
        solution.sequence,
        matrix_free=problem.matrix_free,
        memory_limit=problem.memory_limit,
        pool_sizes=pools,
    )
    check_schedule(solution.sequence, solution.schedule, problem.machines)
    assert solution.makespan == solution.schedule.makespan >= solution.lower_bound
    assert solution.optimal == (solution.makespan == solution.lower_bound)


@st.composite
def problems(draw):
    """Draw a problem of any of the six kinds; it may be infeasible."""
    machines = draw(st.sampled_from([None, 1, 2, 3, 4, 5, 6, 9]))
    return Problem(
        draw(chains(max_length=7, own_costs=draw(st.booleans()), modes=draw(st.booleans()))),
        machines,
        matrix_free=draw(st.booleans()),
        memory_limit=draw(st.none() | st.integers(1, 90)),
        shared_memory=draw(st.booleans()) if machines else False,
    )


@st.composite
def tied_problems(draw):
    """Draw a problem where both modes often cost the same and a memory limit decides between them."""
    return Problem(
        draw(chains(max_length=6, own_costs=draw(st.booleans()), modes=draw(st.booleans()), tied=True)),
        machines=draw(st.sampled_from([1, 2, 3, 4, 9])),
        matrix_free=draw(st.booleans()),
        memory_limit=draw(st.sampled_from([1, 2, 3, 5, 8, 16])),
        shared_memory=draw(st.booleans()),
    )


TIED = JacobianChain.from_sizes([5, 1, 1], [1, 9])
"""Both modes of the second link cost 9, and the step that reads it is an adjoint one."""


@settings(deterministic, max_examples=300)
@example(Problem(TIED, memory_limit=5))
@example(Problem(TIED, machines=2, memory_limit=4, shared_memory=True))
@given(problems() | tied_problems())
def test_equals_the_literal_recurrences(problem):
    expected = literal(problem)
    if expected == float("inf"):
        with pytest.raises(InfeasibleError, match=r"link \d"):
            solve_dynamic_programming(problem)
        return
    solution = solve_dynamic_programming(problem)
    assert solution.makespan == expected
    check(problem, solution)


@st.composite
def problems_with_wide_steps(draw):
    """Draw a problem in which several steps at a time use the memory of many machines."""
    return Problem(
        draw(chains(max_length=4, max_size=5, own_costs=draw(st.booleans()), modes=draw(st.booleans()))),
        machines=draw(st.integers(2, 24)),
        matrix_free=draw(st.booleans()),
        memory_limit=draw(st.integers(2, 20)),
        shared_memory=True,
    )


@settings(deterministic, max_examples=150)
@example(Problem(TIED, memory_limit=5), None)
@example(Problem(TIED, memory_limit=5), 1e-9)
@given(tied_problems(), st.sampled_from([None, 1e-9]))
def test_all_solvers_keep_the_memory_limit(problem, time_limit):
    """Also where the time ends at once, so that the searches fall back on the dynamic program."""
    timed = replace(problem, time_limit=time_limit)
    for method in ("dp", "heuristic", "exact"):
        try:
            solution = SOLVERS[method](timed)
        except InfeasibleError:
            continue
        check(problem, solution)


@settings(deterministic, max_examples=400)
@example(Problem(JacobianChain.from_sizes([3, 1, 3], [16, 12]), 4, memory_limit=8, shared_memory=True))
@example(Problem(JacobianChain.from_sizes([3, 1, 3], [16, 12]), 3, memory_limit=8, shared_memory=True))
@given(problems_with_wide_steps())
def test_equals_the_literal_recurrences_where_machines_bring_memory(problem):
    test_equals_the_literal_recurrences.hypothesis.inner_test(problem)


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_literal_recurrences_on_longer_chains(seed):
    rng = np.random.default_rng(seed)
    chain = JacobianChain.from_sizes(rng.integers(5, 50, 15), rng.integers(1000, 10000, 14))
    for options in ({}, {"matrix_free": False}, {"memory_limit": 6000}):
        for machines in (1, 2, 3, 5, 7, 8, 14, 20, None):
            problem = Problem(chain, machines, **options)
            solution = solve_dynamic_programming(problem)
            assert solution.makespan == literal(problem)
            check(problem, solution)


@pytest.mark.parametrize(
    ("machines", "makespan", "steps"), [(1, 50977476, ONE_MACHINE), (3, 29797092, THREE_MACHINES)]
)
def test_worked_examples_step_by_step(machines, makespan, steps):
    solution = solve(CHAIN_A, machines=machines)
    assert solution.makespan == makespan
    assert solution.optimal
    head, *lines = str(solution).splitlines()
    assert head == f"dp on {machines} machine{'s' * (machines > 1)}: makespan {makespan} fma (optimal)"
    assert [line.split("  from ")[0].rstrip() for line in lines] == steps.splitlines()


@deterministic
@given(chains(max_length=4, own_costs=True, modes=True), st.none() | st.integers(20, 60), st.booleans())
def test_optimal_on_one_machine_and_on_enough(chain, memory_limit, matrix_free):
    options = {"memory_limit": memory_limit, "matrix_free": matrix_free}
    try:
        exact = {
            machines: solve(chain, machines=machines, method="brute_force", **options)
            for machines in (1, 2, 4)
        }
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            solve(chain, **options)
        return
    assert solve(chain, machines=1, **options).makespan == exact[1].makespan
    assert solve(chain, machines=4, **options).makespan == exact[4].makespan
    assert solve(chain, machines=None, **options).makespan == exact[4].makespan
    two = solve(chain, machines=2, **options)
    assert two.lower_bound <= exact[2].makespan <= two.makespan
    assert two.makespan < 2 * exact[2].makespan
    assert not two.optimal or two.makespan == exact[2].makespan


@deterministic
@given(problems())
def test_more_machines_never_hurt_and_end_at_the_unlimited_optimum(problem):
    problem = replace(problem, machines=8, shared_memory=False)
    try:
        unlimited = solve_dynamic_programming(replace(problem, machines=None))
    except InfeasibleError:
        return
    values = makespans(problem)
    assert all(more <= fewer for fewer, more in pairwise(values))
    for machines, value in enumerate(values, start=1):
        solution = solve_dynamic_programming(replace(problem, machines=machines))
        assert solution.makespan == value
    used = sum(step.action is Action.ACCUMULATE for step in unlimited.sequence.operations)
    assert unlimited.schedule.machines == used
    assert values[min(used, 8) - 1] == unlimited.makespan == values[-1] == unlimited.lower_bound


def test_schedules_start_at_zero_on_every_used_machine():
    solution = solve(CHAIN_A, machines=None)
    first = {task.machine: task.start for task in reversed(solution.schedule.tasks)}
    assert first == {0: 0, 1: 0, 2: 0}


def test_shared_memory_lends_a_pool_the_memory_of_its_machines():
    links = ElementalJacobian(50, 1, 60, tangent=False), ElementalJacobian(1, 50, 60)
    chain = JacobianChain(links)
    with pytest.raises(
        InfeasibleError, match="link 1 has no tangent mode, and its adjoint tapes 60 edges where 30 "
    ):
        solve(chain, machines=2, memory_limit=30)
    solution = solve(chain, machines=2, memory_limit=30, shared_memory=True)
    check(Problem(chain, 2, memory_limit=30, shared_memory=True), solution)
    adjoint = next(
        t for t in solution.schedule.tasks if solution.sequence.operations[t.index].mode is Mode.ADJOINT
    )
    assert adjoint.pool == (0, 1)


def test_more_machines_than_links_are_of_use_only_for_their_memory():
    chain = JacobianChain.from_sizes([50, 1, 50], [60, 60])
    for machines in (2, 5, 6, 10**9):
        problem = Problem(chain, machines, memory_limit=11, shared_memory=True)
        solution = solve_dynamic_programming(problem)
        check(problem, solution)
        # The adjoint of the first link tapes 60 edges: that takes the memory of six machines.
        modes = {step.mode for step in solution.sequence.operations}
        assert (Mode.ADJOINT in modes) == (machines >= 6)
    assert solve(chain, machines=10**9).makespan == solve(chain, machines=2).makespan


def test_two_wide_adjoints_run_side_by_side():
    solution = solve(
        JacobianChain.from_sizes([3, 1, 3], [16, 12]), machines=3, memory_limit=8, shared_memory=True
    )
    assert solution.makespan == 25


def test_tables_that_are_too_large_are_refused():
    chain = JacobianChain.from_sizes([4] * 41, [20000] * 40)
    # Without shared memory further machines are of no use.
    assert solve(chain, machines=10**5, memory_limit=1).schedule.machines == 10**5
    with pytest.raises(SolverError, match=r"40 links and 100000 machines of use would take 3 GB; give fewer"):
        solve(chain, machines=10**5, memory_limit=1, shared_memory=True)


def test_chains_that_are_too_long_for_any_number_of_machines_are_refused(monkeypatch):
    chain = JacobianChain.from_sizes([4] * 12001, [20] * 12000)
    message = "links would take {} GB even for one machine; solve parts of the chain"
    with pytest.raises(SolverError, match="for 12000 " + message.format(4)):
        solve(chain, machines=4)
    monkeypatch.setattr(dp_table, "_MOST_CELLS", 2 * 13 * 13)
    with pytest.raises(SolverError, match="for 14 " + message.format(0)):
        solve(chain[:14], machines=4, method="exact", time_limit=1e-9)  # which falls back on one machine


def test_memory_limit_counts_all_links_of_one_elimination():
    # Adjoints are by far the cheapest; each link fits, any two do not.
    chain = JacobianChain.from_sizes([90, 90, 90, 1], [50, 50, 50])
    free, limited = solve(chain), solve(chain, memory_limit=99)
    assert [str(step) for step in free.sequence.operations] == ["ACC ADJ (2 3)", "ELI ADJ (0 2 3)"]
    assert [str(step) for step in limited.sequence.operations] == [
        "ACC ADJ (2 3)",
        "ELI ADJ (1 2 3)",
        "ELI ADJ (0 1 3)",
    ]
    assert free.makespan == limited.makespan


def test_ties_are_broken_towards_tangents_and_long_eliminations():
    chain = JacobianChain.from_sizes([2, 2, 2, 2], [1, 1, 1])
    assert [str(step) for step in solve(chain).sequence.operations] == ["ACC TAN (0 1)", "ELI TAN (0 1 3)"]


def test_modes_that_are_not_available_are_avoided():
    links = (
        ElementalJacobian(1, 40, 90, tangent=False),
        ElementalJacobian(40, 40, 90),
        ElementalJacobian(40, 40, 90),
    )
    solution = solve(JacobianChain(links), machines=2)
    check(Problem(JacobianChain(links), 2), solution)
    swept = {v for step in solution.sequence.operations if step.mode is Mode.TANGENT for v in step.swept}
    assert 0 not in swept


def test_python_integers_take_over_before_int64_overflows():
    factor = 2**40
    small = JacobianChain.from_sizes([5, 9, 3, 7, 4, 6, 8], [30, 20, 50, 10, 70, 40])
    big = JacobianChain.from_sizes(
        [size * factor for size in small.sizes], [e * factor**2 for e in small.edges]
    )
    for machines in (1, 2, 3, None):
        assert MakespanTable(Problem(big, machines)).dtype == object
        assert MakespanTable(Problem(small, machines)).dtype == np.int64
        ours, reference = solve(big, machines=machines), solve(small, machines=machines)
        assert ours.makespan == reference.makespan * factor**3
        assert ours.sequence.operations == reference.sequence.operations
        assert type(ours.makespan) is type(ours.lower_bound) is int


@deterministic
@given(st.integers(2, 6), st.integers(0, 62), st.integers(0, 62), st.integers(1, 3), st.booleans())
def test_numbers_near_the_limit_of_int64(length, size_bits, edge_bits, machines, modes):
    # Whatever the bound decides, the answer equals that of exact arithmetic.
    chain = JacobianChain.from_sizes([2**size_bits + i for i in range(length + 1)], [2**edge_bits] * length)
    if modes:
        chain = JacobianChain((replace(chain.links[0], tangent=False), *chain.links[1:]))
    problem = Problem(chain, machines)
    table = MakespanTable(problem)
    assert table.value(0, length, table.machines) == literal(problem)


def test_long_chains_do_not_recurse():
    chain = JacobianChain.from_sizes([3] * 601, [1] * 600)
    problem = Problem(chain, 2, matrix_free=False)
    check(problem, solve_dynamic_programming(problem))


def test_one_link():
    chain = JacobianChain.from_sizes([3, 2], [7])
    for machines in (1, 5, None):
        solution = solve(chain, machines=machines)
        assert [str(step) for step in solution.sequence.operations] == ["ACC ADJ (0 1)"]
        assert solution.makespan == 14
        assert solution.optimal


def test_lists_of_makespans_need_a_last_number():
    with pytest.raises(SolverError, match="machines=None"):
        makespans(Problem(CHAIN_A, None))


def test_lists_of_makespans_say_which_link_needs_more_memory():
    chain = JacobianChain((ElementalJacobian(5, 4, 60, tangent=False),))
    with pytest.raises(InfeasibleError, match="link 1"):
        makespans(Problem(chain, 2, memory_limit=30, shared_memory=True))


@pytest.mark.parametrize(("scale", "fits"), [(1, True), (10**30, False)])
def test_tables_of_huge_numbers_count_three_times(monkeypatch, scale, fits):
    chain = JacobianChain.from_sizes([3 * scale, 2, 5], [7, 11])
    monkeypatch.setattr(dp_table, "_MOST_CELLS", 2 * 3 * 4)
    problem = Problem(chain, 2)
    if fits:
        assert solve_dynamic_programming(problem).makespan == 47
        return
    with pytest.raises(SolverError, match="the table of the dynamic program for 2 links and 2 machines"):
        solve_dynamic_programming(problem)


@pytest.mark.parametrize("modes", [(True, True, True), (False, True, False), (False, False, True)])
def test_numbers_next_to_the_largest_integers_are_exact(modes):
    """Sums with infeasible values are larger than these numbers, and must not overflow either."""
    for sixteenths in range(1, 64):
        cost = sixteenths * 2**57
        links = [ElementalJacobian(2, 2, 5, cost, cost + 1, mode, not mode) for mode in modes]
        chain = JacobianChain(links)
        best = solve(chain, machines=1, method="brute_force").makespan
        assert solve(chain, machines=1, method="dp").makespan == best
