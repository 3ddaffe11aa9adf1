"""Certificates accept what is right and refuse each way of being wrong, naming the place."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jcdp_strategies import CHAIN_A, chains, deterministic

from jcdp_core import (
    Action,
    ArgumentTypeError,
    ElementalJacobian,
    EliminationSequence,
    InvalidScheduleError,
    InvalidSequenceError,
    JacobianChain,
    Mode,
    Operation,
    Schedule,
    SolverError,
    Task,
    check_schedule,
    check_sequence,
    solve,
)

SOLUTION = solve(CHAIN_A, machines=3)


def sequence_of(chain, *steps):
    return EliminationSequence.from_operations(chain, [Operation.parse(step) for step in steps])


def with_task(schedule, index, **changes):
    """Change one task."""
    tasks = list(schedule.tasks)
    tasks[index] = replace(tasks[index], **changes)
    return Schedule(tuple(tasks), schedule.machines)


def test_the_paper_example_is_accepted():
    check_sequence(CHAIN_A, SOLUTION.sequence)
    check_schedule(SOLUTION.sequence, SOLUTION.schedule)
    check_schedule(SOLUTION.sequence, SOLUTION.schedule, 3)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["ACC TAN (0 1)", "ACC TAN (1 2)"], r"no step makes the Jacobian \(0 2\)"),
        (["ACC TAN (0 1)", "ELI MUL (0 1 2)"], r"step 2, ELI MUL \(0 1 2\), needs the Jacobian \(1 2\)"),
        (["ACC TAN (1 2)", "ELI TAN (0 1 2)"], r"step 2, ELI TAN \(0 1 2\), needs the Jacobian \(0 1\)"),
        (["ACC TAN (0 1)", "ELI ADJ (0 1 2)"], r"step 2, ELI ADJ \(0 1 2\), needs the Jacobian \(1 2\)"),
        (["ELI TAN (0 1 2)", "ACC TAN (0 1)"], r"step 1, .* needs the Jacobian \(0 1\)"),
        (["ACC TAN (0 1)", "ACC ADJ (0 1)", "ELI TAN (0 1 2)"], r"step 2, .* makes a Jacobian that step 1"),
        (["ACC TAN (1 2)", "ACC TAN (0 1)", "ELI TAN (0 1 2)"], r"\(1 2\), made by step 1, .* is never used"),
    ],
)
def test_broken_sequences(steps, message):
    chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    with pytest.raises(InvalidSequenceError, match=message):
        check_sequence(chain, sequence_of(chain, *steps))


def test_steps_beyond_the_chain():
    sequence = EliminationSequence((Operation.parse("ACC TAN (2 3)"),), (1,))
    with pytest.raises(InvalidSequenceError, match=r"step 1, .* beyond the chain's last position 2"):
        check_sequence(JacobianChain.from_sizes([3, 2, 5], [7, 11]), sequence)


def test_constraints():
    links = (
        ElementalJacobian(3, 2, 7),
        ElementalJacobian(2, 2, 11, tangent=False),
        ElementalJacobian(2, 1, 13),
    )
    chain = JacobianChain(links)
    adjoints = sequence_of(chain, "ACC ADJ (2 3)", "ELI ADJ (0 2 3)")
    check_sequence(chain, adjoints, memory_limit=18)
    with pytest.raises(
        InvalidSequenceError, match=r"step 2, .* tapes 18 edges, more than the memory limit of 17"
    ):
        check_sequence(chain, adjoints, memory_limit=17)
    check_sequence(chain, adjoints, memory_limit=9, pool_sizes=[2, 2])
    with pytest.raises(InvalidSequenceError, match=r"step 1, .* tapes 13 edges"):
        check_sequence(chain, adjoints, memory_limit=9, pool_sizes=[1, 2])
    with pytest.raises(InvalidSequenceError, match="1 pool sizes for 2 steps; give one each"):
        check_sequence(chain, adjoints, memory_limit=9, pool_sizes=[2])
    with pytest.raises(InvalidSequenceError, match=r"step 2, .* is matrix-free"):
        check_sequence(chain, adjoints, matrix_free=False)
    with pytest.raises(InvalidSequenceError, match=r"step 2, .* runs link 2 in a mode that is not available"):
        check_sequence(chain, sequence_of(chain, "ACC TAN (0 1)", "ELI TAN (0 1 3)"))


@deterministic
@given(chains(max_length=6), st.sampled_from([1, 2, 3]), st.data())
def test_mutated_sequences_are_refused(chain, machines, data):
    sequence = solve(chain, machines=machines).sequence
    index = data.draw(st.integers(0, len(sequence) - 1))
    operations, costs = list(sequence.operations), list(sequence.costs)
    mutation = data.draw(st.sampled_from(["drop", "repeat", "cost", "swap"]))
    if mutation == "drop":
        del operations[index], costs[index]
    elif mutation == "repeat":
        operations.insert(index, operations[index])
        costs.insert(index, costs[index])
    elif mutation == "cost":
        costs[index] += data.draw(st.sampled_from([-1, 1]))
    else:
        successor = sequence.successors[index]
        if successor is None:
            return
        operations[index], operations[successor] = operations[successor], operations[index]
        costs[index], costs[successor] = costs[successor], costs[index]
    if not operations:
        return
    with pytest.raises(InvalidSequenceError):
        check_sequence(chain, EliminationSequence(tuple(operations), tuple(costs)))


@deterministic
@given(chains(max_length=6), st.sampled_from([1, 2, 3]), st.data())
def test_mutated_schedules_are_refused(chain, machines, data):
    solution = solve(chain, machines=machines)
    sequence, schedule = solution.sequence, solution.schedule
    index = data.draw(st.integers(0, len(sequence) - 1))
    task = schedule.tasks[index]
    successor = sequence.successors[index]
    mutations = [
        {"finish": task.finish + 1},
        {"start": task.start - 1},
        {"machine": machines},
        {"machine": machines, "pool": (machines,)},
        {"start": task.start - task.finish, "finish": 0},
    ]
    if successor is not None:
        late = schedule.tasks[successor].start + 1
        mutations.append({"start": late - sequence.costs[index], "finish": late})
    changes = data.draw(st.sampled_from(mutations))
    with pytest.raises(InvalidScheduleError, match="step"):
        check_schedule(sequence, with_task(schedule, index, **changes), machines)


NUMBERS = st.one_of(
    st.integers(-3, 5),
    st.sampled_from(sorted({time for task in SOLUTION.schedule.tasks for time in (task.start, task.finish)})),
    st.integers(-128, 127).map(np.int8),
    st.integers(0, 255).map(np.uint8),
)
ANYTHING = st.one_of(
    NUMBERS,
    st.none(),
    st.booleans(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=2),
    st.lists(NUMBERS),
)
POOLS = st.one_of(st.lists(NUMBERS, max_size=4).map(tuple), st.lists(ANYTHING, max_size=3), ANYTHING)
CORRUPTION = st.fixed_dictionaries(
    {}, optional={"machine": ANYTHING, "start": ANYTHING, "finish": ANYTHING, "pool": POOLS}
)


def is_int(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_plausible(task, cost, machines):
    """Tell whether a task alone is in order, by the words of the documentation."""
    times, pool = (task.start, task.finish), task.pool
    if not isinstance(pool, (tuple, list)) or not all(map(is_int, (*times, task.machine, *pool))):
        return False
    in_pool = task.machine in pool and len(set(pool)) == len(pool) and set(pool) <= set(range(machines))
    return in_pool and 0 <= int(task.start) == int(task.finish) - cost


@settings(deterministic, max_examples=400)
@given(st.integers(0, 7), CORRUPTION)
def test_corrupt_fields_are_refused_by_name_and_only_if_they_are_wrong(index, changes):
    schedule = with_task(SOLUTION.schedule, index, **changes)
    in_order = is_plausible(schedule.tasks[index], SOLUTION.sequence.costs[index], 3)
    try:
        check_schedule(SOLUTION.sequence, schedule, 3)
        refused = None
    except InvalidScheduleError as error:
        refused = str(error)
    if refused is None:
        assert in_order
    else:
        assert "step" in refused
        # A task that is in order may still meet another one, or what it needs.
        assert not in_order or "overlap" in refused or "needs" in refused


@pytest.mark.parametrize("index", [0.0, False, "0", None, np.zeros(2)])
def test_indices_are_integers(index):
    tasks = (replace(SOLUTION.schedule.tasks[0], index=index), *SOLUTION.schedule.tasks[1:])
    with pytest.raises(InvalidScheduleError, match=r"tasks\[0\] has index .*; give the tasks in the order"):
        Schedule(tasks, 3)


def test_times_of_numpy_do_not_wrap_around():
    chain = JacobianChain.from_sizes([1, 1], [251])
    sequence = sequence_of(chain, "ACC TAN (0 1)")
    with pytest.raises(InvalidScheduleError, match="step 1 runs from 10 to 5 but costs 251 fma"):
        check_schedule(sequence, Schedule((Task(0, 0, np.uint8(10), np.uint8(5), (0,)),), 1))


@pytest.mark.parametrize("cost", [10228680.0, "10228680", None, True])
def test_costs_are_integers(cost):
    costs = (cost, *SOLUTION.sequence.costs[1:])
    with pytest.raises(InvalidSequenceError, match=r"step 1, ACC .*, has .* as its cost; give an int"):
        check_sequence(CHAIN_A, replace(SOLUTION.sequence, costs=costs))


@pytest.mark.parametrize(
    ("index", "changes", "message"),
    [
        (
            1,
            {"start": 10228679, "finish": 20592899},
            "step 2 starts at 10228679, before step 1, which it needs",
        ),
        (4, {"machine": 1, "pool": (1,)}, "steps 3 and 5 overlap in time and share machine 2"),
        (2, {"pool": (1, 2)}, "steps 3 and 5 overlap in time and share machine 3"),
        (0, {"machine": 1}, r"step 1 runs on machine 2, not in its pool \[1\]"),
        (7, {"pool": (0, 1, 2, 3)}, r"step 8 has the pool \[1,4\], but there are 3 machines"),
        (2, {"machine": 1, "pool": (1, 1)}, r"step 3 has a machine twice in its pool \{2,2\}"),
        (2, {"pool": ()}, r"the pool of step 3 is \(\); give at least the machine that runs the step"),
        (2, {"finish": 2985337}, "step 3 runs from 0 to 2985337 but costs 2985336 fma"),
    ],
)
def test_messages_name_the_place(index, changes, message):
    with pytest.raises(InvalidScheduleError, match=message):
        check_schedule(SOLUTION.sequence, with_task(SOLUTION.schedule, index, **changes), 3)


def test_a_single_machine_is_named_in_the_singular():
    with pytest.raises(InvalidScheduleError, match=r"step 3 has the pool \[2\], but there is 1 machine$"):
        check_schedule(SOLUTION.sequence, SOLUTION.schedule, 1)


def test_one_task_per_step():
    with pytest.raises(InvalidScheduleError, match=r"7 tasks for 8 steps"):
        check_schedule(SOLUTION.sequence, Schedule(SOLUTION.schedule.tasks[:7], 3))


def test_schedules_of_broken_sequences():
    chain = JacobianChain.from_sizes([3, 2, 5], [7, 11])
    sequence = sequence_of(chain, "ELI TAN (0 1 2)")
    with pytest.raises(InvalidScheduleError, match=r"step 1 needs \(0 1\), which no earlier step makes"):
        check_schedule(sequence, with_task(Schedule(SOLUTION.schedule.tasks[:1], 1), 0, start=0, finish=33))


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": 0.5, "pool": (0.5,)},
        {"machine": False, "pool": (False,)},
        {"pool": (0, 1.0)},
        {"start": 0.0},
        {"finish": 10228680.0},
        {"pool": "0"},
    ],
)
def test_times_and_machines_are_integers(changes):
    with pytest.raises(InvalidScheduleError, match=r"step 1 has .* among its times and machines; give ints"):
        check_schedule(SOLUTION.sequence, with_task(SOLUTION.schedule, 0, **changes))


def test_three_fractions_of_a_machine_are_not_three_machines():
    tasks = [replace(task, machine=task.machine / 2, pool=()) for task in SOLUTION.schedule.tasks]
    tasks = [replace(task, pool=(task.machine,)) for task in tasks]
    with pytest.raises(InvalidScheduleError, match=r"step 1 has 0\.0 among its times and machines"):
        check_schedule(SOLUTION.sequence, Schedule(tasks, 2))


def test_a_pool_is_a_tuple():
    with pytest.raises(InvalidScheduleError, match=r"the pool of step 2 is 3; give at least the machine"):
        check_schedule(SOLUTION.sequence, with_task(SOLUTION.schedule, 1, pool=3))


@pytest.mark.parametrize("given", ["2", float("inf"), 2.0, 0, True])
def test_numbers_of_machines_and_edges_are_integers(given):
    error = SolverError if given == 0 else ArgumentTypeError
    with pytest.raises(error, match=r"machines is .*; give an int ≥ 1, or None"):
        check_schedule(SOLUTION.sequence, SOLUTION.schedule, given)
    with pytest.raises(error, match=r"memory_limit is .*; give an int ≥ 1, or None"):
        check_sequence(CHAIN_A, SOLUTION.sequence, memory_limit=given)
    with pytest.raises(InvalidSequenceError, match=r"the pool size of step 2 is .*; give an int ≥ 1"):
        check_sequence(CHAIN_A, SOLUTION.sequence, pool_sizes=[1, given, *[1] * 6])
    with pytest.raises(InvalidScheduleError, match=r"machines is .*; give their number, an int ≥ 1"):
        Schedule(SOLUTION.schedule.tasks, given)


def test_numbers_of_numpy_are_welcome():
    tasks = [
        replace(
            task, machine=np.int64(task.machine), start=np.int64(task.start), pool=(*np.array(task.pool),)
        )
        for task in SOLUTION.schedule.tasks
    ]
    check_schedule(SOLUTION.sequence, Schedule(tasks, np.int8(3)), np.int8(3))
    check_sequence(CHAIN_A, SOLUTION.sequence, matrix_free=np.True_, pool_sizes=np.ones(8, int))
    # 100 · 1100 edges are more than a 16-bit integer holds.
    check_sequence(
        CHAIN_A, SOLUTION.sequence, memory_limit=np.int16(1100), pool_sizes=np.full(8, 100, np.int16)
    )


def test_numbers_of_numpy_do_not_wrap_around():
    chain = JacobianChain.from_sizes([1, 1, 1], [200, 200])
    steps = sequence_of(chain, "ACC TAN (0 1)", "ELI TAN (0 1 2)").operations
    sequence = EliminationSequence(steps, np.array([200, 200], np.uint8))
    check_sequence(chain, sequence)
    assert sequence.total == 400
    task = Task(0, np.int8(0), np.uint8(0), np.uint8(200), np.array([127], np.int8))
    assert (Schedule((task,), 3).idle, task.pool_text()) == (400, "[128]")
    step = Operation(Action.ACCUMULATE, Mode.TANGENT, np.int8(127), None, 128)
    assert step == Operation.parse("ACC TAN (127 128)")


@pytest.mark.parametrize("costs", [(251, 0), (251, -1), (251, "1"), (251, 1.0)])
def test_costs_that_no_step_has_are_refused(costs):
    steps = SOLUTION.sequence.operations[:2]
    with pytest.raises(InvalidSequenceError, match=r"step 2, .*, has .* as its cost; give an int ≥ 1"):
        EliminationSequence(steps, costs)
    with pytest.raises(ArgumentTypeError, match="operations is the int 3"):
        EliminationSequence(3, costs)


def test_wrong_kinds_of_options_are_named():
    with pytest.raises(ArgumentTypeError, match=r"matrix_free is the str 'no', where a bool is expected"):
        check_sequence(CHAIN_A, SOLUTION.sequence, matrix_free="no")
    with pytest.raises(ArgumentTypeError, match=r"pool_sizes is the int 8, where a Sequence is expected"):
        check_sequence(CHAIN_A, SOLUTION.sequence, pool_sizes=8)


def test_arguments_in_the_wrong_order_are_named():
    with pytest.raises(
        ArgumentTypeError, match=r"chain is an EliminationSequence, where .*; give the chain first"
    ):
        check_sequence(SOLUTION.sequence, SOLUTION.chain)
    with pytest.raises(ArgumentTypeError, match=r"sequence is a Solution, where .*; give that of a solution"):
        check_sequence(SOLUTION.chain, SOLUTION)
    with pytest.raises(ArgumentTypeError, match=r"sequence is a Schedule, where .*; give that of a solution"):
        check_schedule(SOLUTION.schedule, SOLUTION.sequence)
    with pytest.raises(ArgumentTypeError, match=r"schedule is the int 3, where a Schedule is expected"):
        check_schedule(SOLUTION.sequence, 3)
