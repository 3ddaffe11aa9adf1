"""Schedules: numbers and the text Gantt chart."""

import pytest
from jcdp_strategies import CHAIN_A

from jcdp_core import ArgumentTypeError, InvalidScheduleError, JacobianChain, Schedule, Task, solve


def test_makespan_and_idle_time():
    tasks = Task(0, 0, 0, 21, (0,)), Task(1, 2, 0, 30, (1, 2)), Task(2, 2, 30, 60, (0, 1, 2))
    schedule = Schedule(tasks, machines=4)
    assert schedule.makespan == 60
    assert schedule.idle == 4 * 60 - 21 - 30 - 30


def test_tasks_follow_the_steps():
    with pytest.raises(InvalidScheduleError, match=r"tasks\[0\] has index 1"):
        Schedule((Task(1, 0, 0, 21, (0,)),), machines=1)


def test_wrong_kinds_of_arguments_are_named():
    with pytest.raises(ArgumentTypeError, match=r"tasks is the int 3, where an Iterable is expected"):
        Schedule(3, machines=1)
    with pytest.raises(ArgumentTypeError, match=r"tasks\[1\] is the tuple \(1, 0\), where a Task is exp"):
        Schedule((Task(0, 0, 0, 21, (0,)), (1, 0)), machines=1)
    with pytest.raises(ArgumentTypeError, match=r"sequence is a JacobianChain, where"):
        solve(CHAIN_A).schedule.gantt(CHAIN_A)


@pytest.mark.parametrize("links", [1, 6])
def test_gantt_refuses_the_sequence_of_another_schedule(links):
    sequence = solve(CHAIN_A[:links]).sequence
    schedule = solve(CHAIN_A[:3]).schedule
    message = rf"has {len(schedule.tasks)} tasks, but the sequence {len(sequence)} steps?; give the sequence"
    with pytest.raises(InvalidScheduleError, match=message):
        schedule.gantt(sequence)


def test_a_schedule_has_tasks():
    with pytest.raises(InvalidScheduleError, match="no tasks"):
        Schedule((), machines=1)


def test_gantt_of_the_paper_example():
    solution = solve(CHAIN_A, machines=3)
    assert solution.schedule.gantt(solution.sequence, width=60).splitlines() == [
        "1 |[1 ACC TAN=========][2 ELI TAN==========][8 ELI MUL========]|",
        "2 |[3===][4 ELI ADJ=====]....[6 MUL][7=].......................|",
        "3 |[5 ACC TAN===============]..................................|",
        "   0                                                   29797092",
    ]


def test_tasks_of_less_than_a_character_are_seen():
    solution = solve(JacobianChain.from_sizes([1] * 5, [1, 1, 1, 10**6]), machines=2)
    assert solution.schedule.gantt(solution.sequence, width=20).splitlines()[1].startswith("2 ||....")


@pytest.mark.parametrize("width", [1, 7, 200])
def test_gantt_keeps_its_width(width):
    solution = solve(CHAIN_A, machines=3)
    *rows, axis = solution.schedule.gantt(solution.sequence, width).splitlines()
    assert len(rows) == 3
    assert {len(row) for row in rows} == {width + 4}
    assert axis.endswith(str(solution.makespan))


def test_the_ends_of_the_time_axis_stay_apart():
    solution = solve(CHAIN_A, machines=3)
    assert solution.schedule.gantt(solution.sequence, 9).splitlines()[-1].split() == ["0", "29797092"]


@pytest.mark.parametrize("width", [0, -5, 7.5, "80", True])
def test_a_chart_has_a_positive_width(width):
    solution = solve(CHAIN_A, machines=3)
    with pytest.raises(InvalidScheduleError, match=r"width is .*; give a number of characters, an int ≥ 1"):
        solution.schedule.gantt(solution.sequence, width)


@pytest.mark.parametrize(("machines", "label"), [(4, "4"), (5, "4-5"), (10**12, "4-1000000000000")])
def test_gantt_gives_the_machines_that_stay_idle_one_line(machines, label):
    schedule = solve(CHAIN_A, machines=3).schedule
    schedule = Schedule(schedule.tasks, machines)
    *rows, idle, _ = schedule.gantt(solve(CHAIN_A, machines=3).sequence, width=20).splitlines()
    assert [row.split(" |")[0].strip() for row in rows] == ["1", "2", "3"]
    assert idle == f"{label} |{'.' * 20}|"
    assert len({len(row) for row in (*rows, idle)}) == 1


@pytest.mark.parametrize(
    ("pool", "text"),
    [
        ((3,), "[4]"),
        ((0, 1), "[1,2]"),
        ((1, 2, 3), "[2,4]"),
        ((0, 2), "{1,3}"),
        ((0, 1, 3), "{1,2,4}"),
        ((), "{}"),
    ],
)
def test_pools_with_gaps_are_not_printed_as_ranges(pool, text):
    assert Task(0, 0, 0, 21, pool).pool_text() == text
