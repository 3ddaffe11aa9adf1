"""The exact solver and the heuristic: against exhaustive search, by symmetry, and by certificates.

A long run against exhaustive search: ``PYTHONPATH=tests python tests/jcdp_core/test_exact.py 100000``
"""

import random
import sys
from dataclasses import replace
from functools import partial
from itertools import count
from time import perf_counter

import pytest
from exhaustive import best_makespan, random_instance
from jcdp_strategies import CHAIN_A

from jcdp_core import (
    ElementalJacobian,
    InfeasibleError,
    JacobianChain,
    Problem,
    SolverError,
    check_schedule,
    check_sequence,
    solve,
)
from jcdp_core.schedulers import schedule_sequence
from jcdp_core.solvers import dp_table, exact
from jcdp_core.solvers.dynamic_programming import solve_dynamic_programming
from jcdp_core.solvers.exact import solve_exact
from jcdp_core.solvers.heuristic import solve_heuristic
from jcdp_core.solvers.search import deadline, dual_bounds, rescheduled, reversed_search
from jcdp_core.solvers.search.deadline import OutOfTimeError
from jcdp_core.solvers.search.labels import LabelTable, add_labels, label_table
from jcdp_core.solvers.search.rescheduled import rescheduled_program
from jcdp_core.solvers.search.reversed_search import ReversedSearch
from jcdp_core.solvers.search.steps import single_link_steps
from jcdp_core.solvers.search.write_down import write_down


def problem_of(instance):
    """Carry an instance of the exhaustive search over."""
    columns = zip(
        instance.sizes,
        instance.sizes[1:],
        instance.edges,
        instance.tangent_costs,
        instance.adjoint_costs,
        instance.tangent,
        instance.adjoint,
        strict=False,
    )
    chain = JacobianChain(tuple(ElementalJacobian(*column) for column in columns))
    return Problem(
        chain, instance.machines, instance.matrix_free, instance.memory_limit, instance.shared_memory
    )


def random_chain(rng, q):
    """Draw a chain like the published ones."""
    return JacobianChain.from_sizes(
        [rng.randint(5, 50) for _ in range(q + 1)], [rng.randint(1000, 10000) for _ in range(q)]
    )


def certify(problem, sequence, schedule):
    """Prove a solution valid under all constraints of its problem."""
    pools = [len(task.pool) for task in schedule.tasks] if problem.shared_memory else None
    check_sequence(
        problem.chain,
        sequence,
        matrix_free=problem.matrix_free,
        memory_limit=problem.memory_limit,
        pool_sizes=pools,
    )
    check_schedule(sequence, schedule, problem.machines)


def check_against_exhaustive_search(instance):
    """Compare both solvers with the least makespan of all trees and schedules."""
    problem, best = problem_of(instance), best_makespan(instance)
    if best is None:
        with pytest.raises(InfeasibleError):
            solve_exact(problem)
        return
    solution = solve_exact(problem)
    assert (solution.makespan, solution.lower_bound, solution.optimal) == (best, best, True), instance
    assert solution.schedule.makespan == best
    certify(problem, solution.sequence, solution.schedule)
    program = solve(
        problem.chain,
        machines=problem.machines,
        matrix_free=problem.matrix_free,
        memory_limit=problem.memory_limit,
        shared_memory=problem.shared_memory,
    )
    assert program.lower_bound <= best <= program.makespan
    for limit in (0, 3):
        quick = solve_heuristic(problem, node_limit=limit)
        assert quick.lower_bound <= best <= quick.makespan == quick.schedule.makespan
        assert quick.makespan == best or not quick.optimal
        certify(problem, quick.sequence, quick.schedule)


@pytest.mark.parametrize("seed", range(8))
def test_equal_to_exhaustive_search_up_to_four_links(seed):
    rng = random.Random(seed)
    for _ in range(250):
        check_against_exhaustive_search(random_instance(rng, 4, ties=seed % 2 == 0))


@pytest.mark.parametrize("ties", [False, True])
def test_equal_to_exhaustive_search_up_to_five_links(ties):
    rng = random.Random(2025)
    for _ in range(150):
        check_against_exhaustive_search(random_instance(rng, 5, ties=ties))


@pytest.mark.parametrize("ties", [False, True])
def test_the_search_alone_finds_the_optimum(monkeypatch, ties):
    """From a useless bound on, with dual-feasible bounds at once: all the work is the search's."""
    monkeypatch.setattr(reversed_search, "_DUAL_BOUNDS_AFTER", -1)
    rng = random.Random(7)
    for _ in range(300):
        instance = random_instance(rng, 4, ties=ties)
        problem, best = problem_of(instance), best_makespan(instance)
        if best is not None:
            table = single_link_steps(problem)
            labels = LabelTable.without_labels(table)
            add_labels(labels, table, table.whole)  # critical paths only
            search = ReversedSearch(table, labels, table.horizon)
            assert search.run()
            assert search.makespan == best, instance
            sequence, schedule = write_down(problem, table, search.placements)
            assert schedule.makespan <= best
            certify(problem, sequence, schedule)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (reversed_search, "_STATES", 5),
        (reversed_search, "_ALIKE", 0),
        (reversed_search, "_DECISIONS", 1),
        (reversed_search, "_PACKED", 0),
        (reversed_search, "_PACKED", 9),
        (reversed_search, "_DUAL_BOUNDS_AFTER", -1),
        (reversed_search, "_DUAL_BOUNDS_AFTER", 10**9),
        (dual_bounds, "_GRID", 3),
    ],
)
def test_no_tuning_changes_the_optimum(monkeypatch, module, name, value):
    rng = random.Random(1)
    problems = [Problem(random_chain(rng, 7), machines) for machines in (2, 3, 4, 5) for _ in range(10)]
    expected = [solve_exact(problem).makespan for problem in problems]
    monkeypatch.setattr(module, name, value)
    assert [solve_exact(problem).makespan for problem in problems] == expected


@pytest.mark.parametrize("most", [1, 2, 5])
def test_joined_labels_stay_bounds(monkeypatch, most):
    rng = random.Random(1)
    problems = [Problem(random_chain(rng, 7), machines) for machines in (2, 3, 4, 5) for _ in range(10)]
    expected = [solve_exact(problem).makespan for problem in problems]
    joined = partial(label_table, most=most)
    monkeypatch.setattr(exact, "label_table", joined)
    assert [solve_exact(problem).makespan for problem in problems] == expected
    for problem, makespan in zip(problems, expected, strict=True):
        table = single_link_steps(problem)
        labels = joined(table)
        assert max(map(len, labels.makespans)) <= most
        assert labels.makespans[table.whole][0] <= makespan


@pytest.mark.parametrize("most", [2, 3, 6])
def test_labels_that_are_no_bounds_have_the_work_of_their_trees(most):
    rng = random.Random(2)
    for _ in range(5):
        table = single_link_steps(Problem(random_chain(rng, 12), 3))
        labels = label_table(table, most=most, bounding=False)
        whole = table.whole
        assert max(map(len, labels.makespans)) == most
        for label, work in enumerate(labels.works[whole][1:]):
            assert work == sum(step[0] for _, step, _ in labels.tree(whole, label))


def test_bounds_certificates_and_monotony_of_longer_chains():
    rng = random.Random(4)
    for q in (6, 7, 8, 9):
        for _ in range(5):
            chain = random_chain(rng, q)
            before = None
            for machines in range(1, q + 2):
                exact = solve(chain, machines=machines, method="exact")
                quick = solve(chain, machines=machines, method="heuristic")
                program = solve(chain, machines=machines)
                assert exact.optimal
                assert program.lower_bound <= quick.lower_bound <= exact.makespan
                assert exact.makespan <= quick.makespan <= program.makespan
                assert before is None or exact.makespan <= before
                for solution in (exact, quick):
                    certify(Problem(chain, machines), solution.sequence, solution.schedule)
                    assert solution.schedule.makespan == solution.makespan
                before = exact.makespan
            assert before == solve(chain, machines=None, method="exact").makespan == program.makespan


def test_reversing_the_chain_and_its_modes_keeps_the_optimum():
    rng = random.Random(5)
    for _ in range(12):
        links = [
            ElementalJacobian(link.n, link.m, link.edges, rng.randint(500, 5000), rng.randint(500, 5000))
            for link in random_chain(rng, 7).links
        ]
        mirrored = [
            ElementalJacobian(link.m, link.n, link.edges, link.adjoint_cost, link.tangent_cost)
            for link in reversed(links)
        ]
        for machines in (2, 3, 4):
            there = solve(JacobianChain(tuple(links)), machines=machines, method="exact")
            back = solve(JacobianChain(tuple(mirrored)), machines=machines, method="exact")
            assert there.makespan == back.makespan


def test_integers_of_any_size():
    """Sizes times s and edges times s² multiply every cost by s³; floats would overflow."""
    chain, scale = random_chain(random.Random(8), 6), 10**110
    huge = JacobianChain.from_sizes(
        [size * scale for size in chain.sizes], [edges * scale**2 for edges in chain.edges]
    )
    for machines in (2, 3, 4):
        solution = solve(chain, machines=machines, method="exact")
        assert solve(huge, machines=machines, method="exact").makespan == solution.makespan * scale**3


@pytest.mark.parametrize(
    ("machines", "makespan"), [(1, 50977476), (2, 30463236), (3, 29797092), (None, 29797092)]
)
def test_the_worked_example(machines, makespan):
    solution = solve(CHAIN_A, machines=machines, method="exact")
    assert (solution.makespan, solution.optimal, solution.method) == (makespan, True, "exact")
    certify(Problem(CHAIN_A, machines), solution.sequence, solution.schedule)


def test_runs_of_eliminations_are_merged():
    printed = [str(operation) for operation in solve(CHAIN_A, method="exact").sequence.operations]
    assert printed == [
        "ACC TAN (4 5)",
        "ELI TAN (4 5 6)",
        "ACC ADJ (3 4)",
        "ELI ADJ (1 3 4)",
        "ELI MUL (1 4 6)",
        "ELI ADJ (0 1 6)",
    ]


@pytest.mark.parametrize(
    ("memory_limit", "shared_memory", "printed"),
    [
        (None, False, ["ACC ADJ (2 3)", "ELI ADJ (0 2 3)"]),
        (20, False, ["ACC ADJ (2 3)", "ELI ADJ (0 2 3)"]),
        (19, False, ["ACC ADJ (2 3)", "ELI ADJ (1 2 3)", "ELI ADJ (0 1 3)"]),
        (10, True, ["ACC ADJ (2 3)", "ELI ADJ (1 2 3)", "ELI ADJ (0 1 3)"]),
        (5, True, ["ACC ADJ (2 3)", "ELI ADJ (1 2 3)", "ELI ADJ (0 1 3)"]),
    ],
)
def test_merging_respects_the_memory_limit(memory_limit, shared_memory, printed):
    chain = JacobianChain.from_sizes([40, 40, 40, 1], [10, 10, 10])
    problem = Problem(chain, 2, memory_limit=memory_limit, shared_memory=shared_memory)
    solution = solve_exact(problem)
    assert [str(operation) for operation in solution.sequence.operations] == printed
    assert solution.makespan == 30
    certify(problem, solution.sequence, solution.schedule)


def test_a_step_reserves_the_machines_whose_memory_it_uses():
    """Two tapes of two shares each do not fit into three shares at a time."""
    chain = JacobianChain.from_sizes([50, 1, 50, 1], [20, 500, 20])
    together = Problem(chain, 4, matrix_free=False, memory_limit=10, shared_memory=True)
    apart = Problem(chain, 3, matrix_free=False, memory_limit=10, shared_memory=True)
    solutions = [solve_exact(problem) for problem in (together, apart)]
    pools = [sorted(len(task.pool) for task in solution.schedule.tasks) for solution in solutions]
    assert pools == [[1, 1, 1, 2, 2]] * 2
    for problem, solution in zip((together, apart), solutions, strict=True):
        certify(problem, solution.sequence, solution.schedule)


def test_a_time_limit_gives_the_best_so_far():
    chain = random_chain(random.Random(6), 16)
    solution = solve(chain, machines=5, method="exact", time_limit=0.05)
    assert solution.lower_bound <= solution.makespan <= solve(chain, machines=5).makespan
    assert solution.optimal == (solution.lower_bound == solution.makespan)
    certify(Problem(chain, 5), solution.sequence, solution.schedule)


def test_what_is_written_down_is_what_is_promised():
    """Unproved schedules may become shorter when they are written down; makespan and proof follow."""
    for seed in range(25):
        rng = random.Random(seed)
        problem = Problem(random_chain(rng, rng.randint(16, 30)), 4)
        program = solve(problem.chain, machines=4)
        solution = solve_heuristic(problem, node_limit=rng.choice([0, 50, 300]))
        certify(problem, solution.sequence, solution.schedule)
        assert solution.makespan == solution.schedule.makespan <= program.makespan
        assert program.lower_bound <= solution.lower_bound <= solution.makespan
        assert solution.optimal == (solution.lower_bound == solution.makespan)


def test_a_schedule_that_becomes_shorter_when_it_is_written_down():
    sizes = [24, 22, 16, 28, 17, 27, 17, 50, 9, 11, 38, 35, 32, 5, 34, 29]
    edges = [1012, 4296, 7537, 6202, 9667, 1300, 1068, 6368, 2692, 8043, 1706, 2219, 4410, 8289, 4139]
    problem = Problem(JacobianChain.from_sizes(sizes, edges), 4)
    solution = solve_heuristic(problem, node_limit=1000)
    assert solution.makespan == solution.schedule.makespan == 161205
    assert solution.makespan < rescheduled_program(problem).makespan


@pytest.mark.parametrize("q", [40, 60, 90, 140])
@pytest.mark.parametrize("ticks", [10, 300, 3000])
def test_time_limits_hold_on_long_chains(monkeypatch, q, ticks):
    """The clock ticks whenever somebody looks: it is looked at a few times only when the time is up."""
    looks = count()
    monkeypatch.setattr(deadline, "perf_counter", lambda: float(next(looks)))
    monkeypatch.setattr(exact, "perf_counter", lambda: 0.0)
    problem = Problem(random_chain(random.Random(6), q), 4, time_limit=ticks)
    solution = solve_exact(problem)
    assert next(looks) <= ticks + 20
    certify(problem, solution.sequence, solution.schedule)
    program = solve(problem.chain, machines=4)
    assert program.lower_bound <= solution.lower_bound <= solution.makespan <= program.makespan
    assert not solution.optimal


def test_trees_of_long_chains_come_from_labels_that_are_not_joined(monkeypatch):
    problem = Problem(random_chain(random.Random(1), 50), 4)
    solution = solve_heuristic(problem, node_limit=0)
    certify(problem, solution.sequence, solution.schedule)
    monkeypatch.setattr(exact, "_JOINED", 50)
    joined = solve_heuristic(problem, node_limit=0)
    assert solution.makespan < joined.makespan
    assert solution.lower_bound == joined.lower_bound > solve(problem.chain, machines=4).lower_bound


@pytest.mark.parametrize("machines", [1, None])
def test_a_short_time_suffices_where_the_dynamic_program_is_optimal(machines):
    chain = random_chain(random.Random(2), 60)
    solution = solve(chain, machines=machines, method="exact", time_limit=0.02)
    assert solution.optimal
    assert solution.makespan == solve(chain, machines=machines).makespan


@pytest.mark.parametrize("method", ["exact", "heuristic"])
@pytest.mark.parametrize("machines", [1, 60, 99, None])
def test_nothing_is_searched_where_the_dynamic_program_is_optimal(monkeypatch, method, machines):
    monkeypatch.delattr(exact, "single_link_steps")
    monkeypatch.delattr(exact, "label_table")
    problem = Problem(random_chain(random.Random(2), 60), machines)
    solution, program = (solve(problem.chain, machines=machines, method=name) for name in (method, "dp"))
    assert (solution.method, solution.machines, solution.nodes) == (method, machines, 0)
    assert solution.makespan == solution.lower_bound == program.makespan
    assert solution.schedule.machines == program.schedule.machines
    certify(problem, solution.sequence, solution.schedule)


def test_as_many_machines_as_the_unlimited_solution_uses_are_unlimited(monkeypatch):
    """No table has a row for each of them, and no machine more is needed for the proof."""
    chain = random_chain(random.Random(2), 60)
    unlimited = solve(chain, machines=None)
    useful = unlimited.schedule.machines
    assert 1 < useful < 60
    solved = []

    def tabulate(problem):
        solved.append(problem.machines)
        return solve_dynamic_programming(problem)

    monkeypatch.setattr(rescheduled, "solve_dynamic_programming", tabulate)
    solution = rescheduled_program(Problem(chain, useful))
    assert (solution.makespan, solution.optimal, solution.machines) == (unlimited.makespan, True, useful)
    certify(Problem(chain, useful), solution.sequence, solution.schedule)
    assert solved == [None]
    rescheduled_program(Problem(chain, useful - 1))
    assert solved == [None, None, useful - 1]


def test_a_dynamic_program_with_more_machines_than_links_is_the_last_resort(monkeypatch):
    """Memory that 2000 machines share makes its table far larger than the search."""
    monkeypatch.delattr(exact, "rescheduled_program")
    chain = JacobianChain.from_sizes([4] + 20 * [1], 20 * [100])
    problem = Problem(chain, 5000, memory_limit=1, shared_memory=True)
    assert problem.useful_machines == 2000
    solution = solve_exact(problem)
    assert solution.optimal
    certify(problem, solution.sequence, solution.schedule)


def test_the_dynamic_program_is_solved_once(monkeypatch):
    """First of all on chains of more than 12 links, at last on others, which are proved without it mostly."""
    solved = []

    def count_programs(problem):
        solved.append(len(problem.chain))
        return rescheduled_program(problem)

    monkeypatch.setattr(exact, "rescheduled_program", count_programs)
    for q in (8, 16):
        solve_heuristic(Problem(random_chain(random.Random(6), q), 4), node_limit=0)
    assert solved == [8, 16]


def test_few_labels_are_better_than_none(monkeypatch):
    """The time does not suffice for all labels, but for some; without any, the dynamic program remains."""

    def tabulate(table, *, bounding=True, **settings):
        if bounding:
            raise OutOfTimeError
        return label_table(table, bounding=bounding, **settings)

    monkeypatch.setattr(exact, "label_table", tabulate)
    monkeypatch.setattr(exact, "perf_counter", lambda: 0.0)  # no time for searches
    chain = random_chain(random.Random(1), 60)
    solution = solve_exact(Problem(chain, 4, time_limit=3600))
    assert solution.makespan < 0.98 * solve(chain, machines=4).makespan


def test_the_search_does_without_a_dynamic_program_that_is_too_large():
    chain = JacobianChain.from_sizes([4, 9, 7, 5, 8, 6, 9, 4, 7], [200, 300, 400, 350, 250, 150, 450, 320])
    problem = Problem(chain, 5000, memory_limit=1, shared_memory=True)
    expected = solve_heuristic(problem, node_limit=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dp_table, "_MOST_CELLS", 1000)
        with pytest.raises(SolverError, match=r"8 links and 2420 machines of use"):
            solve_dynamic_programming(problem)
        solution = solve_heuristic(problem, node_limit=0)
    assert solution.makespan >= expected.makespan
    certify(problem, solution.sequence, solution.schedule)


def test_the_time_may_end_while_bounds_are_tabulated(monkeypatch):
    monkeypatch.setattr(reversed_search, "_DUAL_BOUNDS_AFTER", -1)
    chain = random_chain(random.Random(6), 24)

    def no_time_is_left(*_, **__):
        raise OutOfTimeError

    monkeypatch.setattr(dual_bounds, "add_labels", no_time_is_left)
    solution = solve_exact(Problem(chain, 4))
    assert not solution.optimal
    certify(Problem(chain, 4), solution.sequence, solution.schedule)


def long_chain(q):
    """Draw a chain like the large ones of the publication."""
    rng = random.Random(q)
    return JacobianChain.from_sizes(
        [rng.randint(5, 500) for _ in range(q + 1)], [rng.randint(1000, 100000) for _ in range(q)]
    )


@pytest.mark.parametrize(("q", "machines", "limit"), [(60, 4, 0.4), (100, 2, 0.8)])
def test_the_time_is_used_up_unless_the_optimum_is_proved(q, machines, limit):
    """Few labels come first, whose search may soon be at its end; it goes on with more of them."""
    problem = Problem(long_chain(q), machines, time_limit=limit)
    begin = perf_counter()
    solution = solve_exact(problem)
    assert solution.optimal or perf_counter() - begin >= limit
    certify(problem, solution.sequence, solution.schedule)


def test_more_time_goes_on_where_less_of_it_ended(monkeypatch):
    """The clock stands still: how many tables of labels are reached tells long limits from short ones."""
    problem = Problem(long_chain(50), 4, time_limit=3600)
    tables = []

    def tabulate(reached, table, *, most=64, **settings):
        tables.append(most)
        if len(tables) > reached:
            raise OutOfTimeError
        return label_table(table, most=most, **settings)

    monkeypatch.setattr(exact, "perf_counter", lambda: 0.0)
    makespans = []
    for reached in range(5):
        tables.clear()
        monkeypatch.setattr(exact, "label_table", partial(tabulate, reached))
        solution = solve_exact(problem)
        certify(problem, solution.sequence, solution.schedule)
        makespans.append(solution.makespan)
    assert tables == [4, 8, 16, 32, 64]
    assert makespans == sorted(makespans, reverse=True)
    assert makespans[-1] < makespans[0]


def test_nodes_are_shared_with_searches_by_few_labels(monkeypatch):
    """On long chains a search by all labels spends its nodes in one corner of the tree."""
    problems = [Problem(random_chain(random.Random(seed), 28), 3) for seed in range(4)]
    shared = [solve_heuristic(problem, 600) for problem in problems]
    monkeypatch.setattr(exact, "_SPREAD", 28)
    alone = [solve_heuristic(problem, 600) for problem in problems]
    for problem, solution in zip(problems, shared, strict=True):
        certify(problem, solution.sequence, solution.schedule)
        assert solution.nodes <= 601
    assert sum(solution.makespan for solution in shared) < 0.995 * sum(each.makespan for each in alone)


def test_a_long_limit_does_not_change_the_heuristic():
    problem = Problem(random_chain(random.Random(1), 50), 4)
    without, within = (solve_heuristic(replace(problem, time_limit=limit), 300) for limit in (None, 3600))
    assert (without.sequence, without.schedule, without.nodes) == (
        within.sequence,
        within.schedule,
        within.nodes,
    )


def test_a_proof_may_come_after_few_labels(monkeypatch):
    problem = Problem(random_chain(random.Random(4), 14), 3, time_limit=60)
    expected = solve_exact(problem)
    monkeypatch.setattr(exact, "_SHORT", 0)
    solution = solve_exact(problem)
    assert (solution.makespan, solution.lower_bound, solution.optimal) == (
        expected.makespan,
        expected.makespan,
        True,
    )
    certify(problem, solution.sequence, solution.schedule)


@pytest.mark.parametrize(("q", "memory_limit"), [(20, None), (20, 12_000), (40, None), (60, None)])
def test_without_time_the_steps_of_the_dynamic_program_are_rescheduled(q, memory_limit):
    improved = 0
    for machines in (2, 3, 4):
        problem = Problem(
            random_chain(random.Random(0), q), machines, memory_limit=memory_limit, time_limit=1e-9
        )
        program = solve(problem.chain, machines=machines, memory_limit=memory_limit)
        scheduling = schedule_sequence(program.sequence, machines=machines, method="highest_level_first")
        solution = solve_exact(problem)
        assert solution.makespan == min(program.makespan, scheduling.schedule.makespan)
        assert solution.lower_bound == program.lower_bound
        certify(problem, solution.sequence, solution.schedule)
        improved += solution.makespan < program.makespan
    assert improved


@pytest.mark.parametrize(("machines", "shared_memory"), [(5, False), (500, True)])
def test_an_answer_without_time_and_without_a_dynamic_program(monkeypatch, machines, shared_memory):
    """With shared memory, adjoints that no machine can tape alone are all that there is."""
    links = random_chain(random.Random(3), 12).links
    problem = Problem(
        JacobianChain(tuple(replace(link, tangent=not shared_memory) for link in links)),
        machines,
        memory_limit=3000,
        shared_memory=shared_memory,
        time_limit=1e-9,
    )
    best = solve_dynamic_programming(problem).makespan
    monkeypatch.setattr(dp_table, "_MOST_CELLS", 2 * 12 * 12)  # enough for one machine
    solution = solve_exact(problem)
    assert solution.lower_bound <= best <= solution.makespan
    assert (solution.method, solution.machines, solution.nodes) == ("exact", machines, 0)
    assert solution.schedule.machines == machines
    assert solution.makespan <= problem.useful_machines * solution.lower_bound
    certify(problem, solution.sequence, solution.schedule)


def test_very_many_machines_that_share_memory_are_no_excuse_to_exhaust_it(monkeypatch):
    """States with a number for each of 5000 machines count as 156 usual ones."""
    monkeypatch.setattr(reversed_search, "_STATES", 1000)
    chain = JacobianChain.from_sizes([4, 9, 7, 5, 8, 6, 9, 4, 7], [700, 600, 650, 600, 650, 600, 650, 620])
    table = single_link_steps(Problem(chain, 5000, memory_limit=1, shared_memory=True))
    search = ReversedSearch(table, label_table(table), table.horizon)
    most = 0

    def watch(nodes):
        nonlocal most
        most = max(most, sum(len(known) for known in search._memory.values()))
        return nodes < 300

    search.run(watch)
    assert 0 < most <= 8


def test_no_time_at_all_gives_the_dynamic_program():
    chain = random_chain(random.Random(6), 30)
    solution = solve(chain, machines=3, method="exact", time_limit=1e-9)
    assert (solution.method, solution.nodes) == ("exact", 0)
    assert solution.makespan == solve(chain, machines=3).makespan


def test_the_heuristic_is_deterministic_and_keeps_its_limit():
    chain = random_chain(random.Random(11), 14)
    first, second = (solve_heuristic(Problem(chain, 4), node_limit=50) for _ in range(2))
    assert (first.sequence, first.schedule, first.nodes) == (second.sequence, second.schedule, second.nodes)
    assert first.nodes <= 51
    better = solve_heuristic(Problem(chain, 4), node_limit=5000)
    assert better.makespan <= first.makespan


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("q", "machines", "edges"), [(50, 16, 1), (28, 11, 3)])
def test_limits_hold_where_many_machines_share_like_links(q, machines, edges):
    """There are far more ways to share them than there are times at which steps end."""
    chain = JacobianChain.from_sizes([1] * (q + 1), [edges] * q)
    heuristic = solve_heuristic(Problem(chain, machines))
    assert heuristic.nodes == 3001
    exact = solve_exact(Problem(chain, machines, time_limit=0.2))
    for solution in (heuristic, exact):
        certify(Problem(chain, machines), solution.sequence, solution.schedule)
        assert not solution.optimal


def test_the_heuristic_finds_most_optima():
    """The quality that it is documented with, on a sample."""
    rng, missed = random.Random(31), 0
    for _ in range(80):
        chain = random_chain(rng, 8)
        for machines in (3, 4):
            best = solve(chain, machines=machines, method="exact").makespan
            missed += solve(chain, machines=machines, method="heuristic").makespan > best
    assert missed <= 1


def test_long_chains_do_not_exhaust_the_stack():
    chain = random_chain(random.Random(12), 45)
    solution = solve_heuristic(Problem(chain, 3), node_limit=200)
    certify(Problem(chain, 3), solution.sequence, solution.schedule)
    assert solution.makespan <= solve(chain, machines=3).makespan


def test_an_interrupt_says_what_was_found(monkeypatch):
    def interrupt(_search, _on_node):
        raise KeyboardInterrupt

    monkeypatch.setattr(ReversedSearch, "run", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        solve(CHAIN_A, machines=2, method="exact")
    assert caught.value.__notes__ == [
        "while solving: the best makespan so far is 30463236, the lower bound 30463236"
    ]


def test_infeasible_links_are_named():
    chain = JacobianChain((ElementalJacobian(3, 2, 7), ElementalJacobian(2, 5, 11, tangent=False)))
    with pytest.raises(InfeasibleError, match="link 2 has no tangent mode"):
        solve(chain, machines=2, method="exact", memory_limit=10)


def many_instances(instances=10000, seed=0):
    """Half of them have small numbers, so that ties abound; every twentieth has up to five links."""
    rng = random.Random(seed)
    begin = perf_counter()
    for number in range(instances):
        longest = 5 if number % 20 == 0 else 4
        check_against_exhaustive_search(random_instance(rng, longest, ties=number % 2 == 0))
    print(f"{instances} instances agree ({perf_counter() - begin:.0f} s)")  # noqa: T201 - a command prints


if __name__ == "__main__":
    many_instances(*map(int, sys.argv[1:]))
