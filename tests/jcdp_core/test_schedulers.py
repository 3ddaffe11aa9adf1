"""Schedulers of a given sequence against every schedule there is."""

import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jcdp_strategies import CHAIN_A, chains, deterministic

from jcdp_core import (
    ArgumentTypeError,
    EliminationSequence,
    InvalidSequenceError,
    JacobianChain,
    Operation,
    SolverError,
    check_schedule,
    schedule_sequence,
    solve,
)
from jcdp_core.schedulers import SCHEDULERS
from jcdp_core.schedulers.list_scheduling import start_times


def best_makespan(sequence, machines):
    """Try all schedules, waiting included: at each event start any set of the ready steps."""

    @cache
    def rest(done, running):
        """Return the least time to go, given the steps that are done and how long others still run."""
        if len(done) == len(sequence):
            return 0
        busy = {step for _, step in running}
        ready = [
            step
            for step, needed in enumerate(sequence.predecessors)
            if step not in done and step not in busy and done.issuperset(needed)
        ]
        options = []
        for chosen in range(2 ** len(ready)):
            begun = [(sequence.costs[s], s) for bit, s in enumerate(ready) if chosen >> bit & 1]
            now = sorted([*running, *begun])
            if now and len(now) <= machines:
                step_time = now[0][0]
                finished = {step for left, step in now if left == step_time}
                later = tuple((left - step_time, step) for left, step in now if left > step_time)
                options.append(step_time + rest(done | finished, later))
        return min(options)

    return rest(frozenset(), ())


def random_sequence(draw, chain):
    """Draw any sequence of a chain, good or bad."""
    steps = []

    def make(i, j):
        if j - i == 1:
            steps.append(Operation.parse(f"ACC {draw(st.sampled_from(['TAN', 'ADJ']))} ({i} {j})"))
            return
        kind, k = draw(st.sampled_from(["TAN", "ADJ", "MUL", "MUL"])), draw(st.integers(i + 1, j - 1))
        if kind != "TAN":
            make(k, j)
        if kind != "ADJ":
            make(i, k)
        steps.append(Operation.parse(f"ELI {kind} ({i} {k} {j})"))

    make(0, len(chain))
    return EliminationSequence.from_operations(chain, steps)


def path_of(sequence, step):
    """Return a step and all that wait for it."""
    steps = [step]
    while sequence.successors[steps[-1]] is not None:
        steps.append(sequence.successors[steps[-1]])
    return steps


@deterministic
@given(chains(max_length=8), st.integers(1, 4), st.data())
def test_lists_go_by_the_paths_to_the_last_step(chain, machines, data):
    sequence = random_sequence(data.draw, chain)
    costs = sequence.costs
    paths = [path_of(sequence, step) for step in range(len(sequence))]
    lengths = [sum(costs[step] for step in path) for path in paths]
    steps = [(cost, 1, successor) for cost, successor in zip(costs, sequence.successors, strict=True)]
    lists = {
        "hu": [(-len(path), -cost) for path, cost in zip(paths, costs, strict=True)],
        "highest_level_first": [-length for length in lengths],
    }
    for method, priorities in lists.items():
        found = schedule_sequence(sequence, machines=machines, method=method)
        starts = start_times(steps, priorities, machines)
        assert [task.start for task in found.schedule.tasks] == starts
        assert found.lower_bound == max(*lengths, -(-sum(costs) // machines))


@settings(deterministic, max_examples=150)
@given(chains(max_length=6), st.sampled_from([1, 2, 3]), st.data())
def test_branch_and_bound_is_exact(chain, machines, data):
    sequence = random_sequence(data.draw, chain)
    scheduling = schedule_sequence(sequence, machines=machines)
    check_schedule(sequence, scheduling.schedule, machines)
    assert scheduling.optimal
    assert scheduling.schedule.makespan == scheduling.lower_bound == best_makespan(sequence, machines)


@deterministic
@given(
    chains(max_length=8), st.sampled_from([None, 1, 2, 3, 5]), st.sampled_from(sorted(SCHEDULERS)), st.data()
)
def test_all_schedulers_are_valid_and_honest(chain, machines, method, data):
    sequence = random_sequence(data.draw, chain)
    scheduling = schedule_sequence(sequence, machines=machines, method=method)
    check_schedule(sequence, scheduling.schedule, machines)
    optimum = schedule_sequence(sequence, machines=machines).schedule.makespan
    assert scheduling.lower_bound <= optimum <= scheduling.schedule.makespan
    assert not scheduling.optimal or scheduling.schedule.makespan == optimum
    # Any list schedule is within 2 - 1/m of the best (Graham 1969).
    assert machines is None or scheduling.schedule.makespan * machines <= (2 * machines - 1) * optimum


@deterministic
@given(chains(max_length=9), st.sampled_from([2, 3]), st.data())
def test_hu_is_optimal_for_equal_costs(chain, machines, data):
    steps = random_sequence(data.draw, chain).operations
    sequence = EliminationSequence(steps, (1,) * len(steps))
    by_level = schedule_sequence(sequence, machines=machines, method="hu").schedule.makespan
    assert by_level == schedule_sequence(sequence, machines=machines).schedule.makespan


def test_unlimited_machines_reach_the_longest_path():
    sequence = solve(CHAIN_A, machines=3).sequence
    for method in SCHEDULERS:
        scheduling = schedule_sequence(sequence, machines=None, method=method)
        assert scheduling.optimal
        assert scheduling.schedule.makespan == 29797092
        assert scheduling.schedule.machines == 3


def test_idle_machines_cost_nothing():
    sequence = solve(CHAIN_A, machines=3).sequence
    for method in SCHEDULERS:
        scheduling = schedule_sequence(sequence, machines=10**12, method=method)
        check_schedule(sequence, scheduling.schedule)
        assert scheduling.schedule.machines == 10**12


def test_rescheduling_improves_the_dynamic_program():
    # New start times: about a fifth of such chains improve on two machines.
    rng = np.random.default_rng(4711)
    improved = 0
    for _ in range(60):
        chain = JacobianChain.from_sizes(rng.integers(5, 51, 9), rng.integers(1000, 10001, 8))
        solution = solve(chain, machines=2)
        scheduling = schedule_sequence(solution.sequence, machines=2)
        check_schedule(solution.sequence, scheduling.schedule, 2)
        assert scheduling.schedule.makespan <= solution.makespan
        improved += scheduling.schedule.makespan < solution.makespan
    assert 6 <= improved <= 24


def test_a_time_limit_still_gives_a_schedule():
    rng = np.random.default_rng(0)
    interrupted = 0
    for _ in range(20):
        chain = JacobianChain.from_sizes(rng.integers(5, 51, 31), rng.integers(1000, 10001, 30))
        sequence = solve(chain, machines=4).sequence
        scheduling = schedule_sequence(sequence, machines=4, time_limit=1e-9)
        check_schedule(sequence, scheduling.schedule, 4)
        assert scheduling.optimal == (scheduling.schedule.makespan == scheduling.lower_bound)
        assert scheduling.lower_bound <= scheduling.schedule.makespan
        interrupted += not scheduling.optimal
    assert interrupted > 0


def test_a_full_memory_begins_anew(monkeypatch):
    module = sys.modules["jcdp_core.schedulers.branch_and_bound"]  # the package's name is the function
    chain = JacobianChain.from_sizes(
        [13, 40, 27, 8, 35, 19, 44, 22, 31], [900, 400, 700, 300, 800, 500, 600, 350]
    )
    steps = [Operation.parse(f"ACC TAN ({i} {i + 1})") for i in range(8)]
    steps += [Operation.parse(f"ELI MUL (0 {j} {j + 1})") for j in range(1, 8)]
    sequence = EliminationSequence.from_operations(chain, steps)
    expected = schedule_sequence(sequence, machines=3)
    monkeypatch.setattr(module, "_STATES", 5)
    search = module._Search(sequence, 3, 2 * expected.schedule.makespan)
    assert search.run(0, None)
    assert search.best == expected.schedule.makespan
    assert search.nodes > 20
    assert sum(map(len, search.seen.values())) <= 5


def test_a_solution_is_not_its_sequence():
    with pytest.raises(ArgumentTypeError, match=r"sequence is a Solution, where .*; give that of a solution"):
        schedule_sequence(solve(CHAIN_A), machines=2)


def test_steps_before_those_that_they_need_are_refused():
    chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    steps = map(Operation.parse, ["ELI TAN (0 1 2)", "ACC TAN (0 1)"])
    with pytest.raises(InvalidSequenceError, match=r"ELI TAN \(0 1 2\) needs a Jacobian that no step"):
        schedule_sequence(EliminationSequence.from_operations(chain, steps), machines=2)
    twice = map(Operation.parse, ["ACC TAN (0 1)", "ELI TAN (0 1 2)", "ELI TAN (0 1 2)"])
    with pytest.raises(InvalidSequenceError, match="two steps make the same Jacobian"):
        schedule_sequence(EliminationSequence.from_operations(chain, twice), machines=2)


def test_unknown_schedulers_and_numbers_of_machines():
    sequence = solve(CHAIN_A).sequence
    with pytest.raises(
        SolverError, match="no scheduler 'list'; choose one of 'branch_and_bound', 'highest_level_first'"
    ):
        schedule_sequence(sequence, method="list")
    for machines, error in ((0, SolverError), (2.5, ArgumentTypeError), (True, ArgumentTypeError)):
        with pytest.raises(error, match=f"machines is {machines}; give an int ≥ 1"):
            schedule_sequence(sequence, machines=machines)
    with pytest.raises(SolverError, match="time_limit is -1; give seconds > 0"):
        schedule_sequence(sequence, machines=2, time_limit=-1)
