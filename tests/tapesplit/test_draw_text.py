"""What a plan says in text: pinned, at most 100 columns wide, and true to the plan's numbers."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import autograd.numpy as np
import numpy as onp
import pytest
from autograd.extend import defvjp, primitive
from draw_plans import bottleneck, plan_of, scalars, two_links
from executors import SerialExecutor
from small_problems import PROBLEMS

from tapesplit import Callback, TaskRecord, execute, parallel_jacobian, record
from tapesplit.draw import advice, advise, decisions, report_html, text
from tapesplit.draw.numbers import bytes_text, count, seconds_text
from tapesplit.draw.rows import link_rows, step_rows

BOTTLENECK = """\
bottleneck: (12,) -> (9,), 9 × 12 Jacobian
tape of 6 operations, |E| = 270, cut at 1 separator into 2 links
dp: cut at narrow interfaces

link  elements  |E|  swept        operations
   1   12 -> 2  150  adjoint × 2  2 matmul, tanh
   2    2 -> 9  120  tangent × 2  2 matmul, tanh

step  operation        machine  start  finish  fma  needs  result
   1  ACC TAN (1 2)          1      0     240  240  -       9 × 2
   2  ACC ADJ (0 1)          1    240     540  300  -      2 × 12
   3  ELI MUL (0 1 2)        1    540     756  216  1 2    9 × 12

all tangent  3240 fma
all adjoint  2430 fma
plan          756 fma  3.21 × less than all adjoint
makespan      756 fma  on one machine
lower bound   756 fma  reached: optimal for this chain
"""


def test_the_normal_table_is_pinned():
    text, times = str(two_links()).split("sweeps  ")
    assert text == BOTTLENECK
    assert times.splitlines()[1] == "peak memory    4.5 kB  beyond the tape, predicted"


def test_the_bound_holds_for_the_cuts_that_were_chosen():
    assert "reached: optimal without cuts" in str(plan_of(np.sin, 3))
    plan = two_links()
    unproved = replace(plan, solution=replace(plan.solution, lower_bound=700))
    assert "700 fma  for every plan of this chain" in str(unproved)


def test_the_line_is_pinned():
    line = two_links().describe("line")
    assert line == "bottleneck: (12,) -> (9,), 2 links, 756 fma on one machine, 3.21 × less than all adjoint"


def test_repr_is_the_line():
    assert repr(two_links()).startswith("<JacobianPlan of bottleneck: (12,) -> (9,), 2 links")


def test_the_full_text_adds_schedule_reasons_and_advice():
    text = two_links().describe("full")
    for heading in (
        "bracketing  (F2 F1)",
        "machines over time (fma)",
        "Why this plan",
        "What would make it faster",
    ):
        assert heading in text


LAST_RUN = """\
last run: recording 2 ms, finding the plan 10 µs, sweeps 500 µs
task  machine  predicted  measured     ratio  steps
   1        1      10 µs    100 µs      10 ×  1 ACC TAN (1 2)
   2        1      20 µs     10 µs     0.5 ×  2 ACC ADJ (0 1)
   3        1          -    250 µs         -  3 ELI MUL (0 1 2)
 sum               30 µs    360 µs      12 ×
wall                 1 s    500 µs  0.0005 ×  from start to end

Why this plan
"""


def test_the_table_of_the_last_run_is_pinned():
    plan = two_links()
    predicted = (1e-5, 2e-5, 0.0)  # however long they would take alone
    plan = replace(
        plan,
        tasks=tuple(
            replace(t, start=1.0, finish=1.0 + s) for t, s in zip(plan.tasks, predicted, strict=True)
        ),
    )
    before = plan.describe("full")
    assert "last run" not in before
    spans = ((1, 1e-4, 1.1e-4), (0, 0.0, 1e-4), (2, 2.5e-4, 5e-4))  # in order of their ends
    plan.last_run.records = tuple(TaskRecord(index, 0, start, finish) for index, start, finish in spans)
    plan.last_run.recording, plan.last_run.finding = 2e-3, 1e-5
    after = plan.describe("full")
    assert LAST_RUN in after
    advised = "What would make it faster"
    assert after.replace(LAST_RUN, "Why this plan\n").partition(advised)[0] == before.partition(advised)[0]


def test_the_last_run_of_many_tasks_tells_how_well_their_order_was_predicted(monkeypatch):
    plan = two_links()
    for predicted, measured, found in (
        ((1, 2, 3), (1, 20, 90), "1.00"),
        ((1, 2, 3), (9, 4, 3), "-1.00"),
        ((1, 2, 3), (1, 4, 3), "0.50"),
        ((1, 1, 3), (4, 2, 9), "0.87"),
    ):
        tasks = [replace(t, start=0.0, finish=float(s)) for t, s in zip(plan.tasks, predicted, strict=True)]
        plan = replace(plan, tasks=tuple(tasks))
        records = [TaskRecord(i, 0, 0.0, float(seconds)) for i, seconds in enumerate(measured)]
        plan.last_run.records = tuple(records)
        assert "rank correlation" not in plan.describe("full")  # of few tasks it says little
        with monkeypatch.context() as patched:
            patched.setattr(text, "_FEWEST_TO_RANK", 3)
            assert f" s, rank correlation of times {found}\n" in plan.describe("full")
            alike = replace(plan, tasks=tuple(replace(t, start=0.0, finish=1.0) for t in plan.tasks))
            assert "rank correlation" not in alike.describe("full")


def test_a_run_leaves_its_times_in_all_copies_of_its_plan():
    runs = []
    jac = parallel_jacobian(
        bottleneck, machines=1, callback=Callback(finish=lambda plan, records: runs.append(records))
    )
    x = np.linspace(0.1, 1.0, 12)
    earlier = jac.plan(x)
    assert earlier.last_run.records == ()
    jac(x)
    assert earlier.last_run.records == jac.plan(2 * x).last_run.records == runs[-1]
    assert len(runs[-1]) == len(earlier.tasks)
    table = (
        earlier.describe("full")
        .split("first run, which also fills caches: ")[1]
        .split("\n\n")[0]
        .splitlines()
    )
    numbers = map(str, range(1, len(earlier.tasks) + 1))
    assert [line.split()[0] for line in table[2:]] == [*numbers, "sum", "wall"]
    jac(x)
    assert earlier.last_run.records == runs[-1] != runs[0]
    assert earlier.last_run.runs == jac.plan(x).last_run.runs == len(runs) == 2
    assert "\nlast run: " in earlier.describe("full")
    assert str(earlier) == str(jac.plan(x))  # the normal table is about the plan only


def test_execute_leaves_its_times_and_a_run_that_fails_does_not():
    plan, tape = two_links(), record(bottleneck, np.linspace(0.1, 1.0, 12))
    execute(plan, tape)
    records = plan.last_run.records
    assert [r.index for r in records] == [0, 1, 2]

    def stop(_plan, record):
        if record.index == 1:
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        execute(plan, tape, callback=Callback(posttask=stop))
    assert plan.last_run.records is records
    assert plan.last_run.runs == 1


def test_two_machines_leave_the_times_of_all_tasks(two_machines_run):
    plan = two_machines_run
    assert sorted(r.index for r in plan.last_run.records) == list(range(len(plan.tasks)))
    assert {r.machine for r in plan.last_run.records} == {0, 1}
    assert max(map(len, plan.describe("full").splitlines())) <= 100


def test_a_pickled_plan_has_not_run():
    plan = two_links()
    execute(plan, record(bottleneck, np.linspace(0.1, 1.0, 12)))
    restored = pickle.loads(pickle.dumps(plan))  # noqa: S301 - our own bytes
    assert plan.last_run.records
    assert restored.last_run.records == ()
    assert restored.last_run.runs == 0


def test_an_unknown_level_is_named():
    with pytest.raises(ValueError, match="'line', 'normal' or 'full', but got 'long'"):
        two_links().describe("long")


@pytest.mark.parametrize("level", ["line", "normal", "full"])
@pytest.mark.parametrize(("fun", "n"), [(bottleneck, 12), (scalars, 4)])
def test_no_line_is_wider_than_100_columns(level, fun, n):
    plan = plan_of(fun, n, machines=2)
    assert max(map(len, plan.describe(level).splitlines())) <= 100


def test_a_function_that_only_moves_data():
    plan = plan_of(lambda x: x[::-1], 3)
    assert plan.describe("line").endswith("the function only moves data")
    assert plan.baselines == {"tangent": 3, "adjoint": 3}  # chains count one edge for such a link
    assert "all tangent  3 fma" in str(plan)


def test_long_names_are_shortened():
    def f(x):
        return np.sin(x)

    f.__qualname__ = "a_function_with_a_very_long_name" * 4
    assert max(map(len, str(plan_of(f, 3)).splitlines())) <= 100


def test_long_tables_leave_out_their_middle_only_at_the_normal_level():
    plan = plan_of(lambda x: scalars(x, 200), 4, machines=2, executor=SerialExecutor())
    assert len(plan.chain) > 16
    links = len(plan.chain)
    assert f"{links - 16} more" in plan.describe("normal")
    assert "more\n" not in plan.describe("full").split("Why this plan")[0]
    assert [row.number for row in link_rows(plan)] == list(range(1, links + 1))


def test_rows_agree_with_the_plan():
    plan = plan_of(scalars, 4, machines=2)
    assert sum(row.cost for row in step_rows(plan)) == plan.fma
    assert max(row.finish for row in step_rows(plan)) == plan.makespan
    swept = sum(
        link.directions * chunk.edges for link, chunk in zip(link_rows(plan), plan.chain.links, strict=True)
    )
    assert swept == sum(row.cost for row in step_rows(plan) if row.mode.value != "MUL")


def test_the_predicted_run_time_is_the_one_that_the_planner_compared():
    plan = two_links()
    late = replace(plan, tasks=(*plan.tasks[:-1], replace(plan.tasks[-1], start=0.5, finish=1.5)))
    assert "sweeps          1.5 s  predicted" in str(late)
    assert late.seconds == 1.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count(0), "0"),
        (count(123_456), "1.23e5"),
        (count(10**30), "1e30"),
        (seconds_text(0.9999), "1000 ms"),
        (seconds_text(75.0), "75 s"),
        (bytes_text(999), "999 B"),
        (bytes_text(3.2e12), "3200 GB"),
    ],
)
def test_numbers(text, expected):
    assert text == expected


def test_decisions_name_cuts_modes_and_machines():
    text = " ".join(decisions(two_links()))
    assert "2 elements: no cut of the whole tape is narrower" in text
    assert "Link 1 is swept in adjoint mode with 2 directions, since it has 2 outputs for 12 inputs." in text
    assert "Link 2 is swept in tangent mode with 2 directions, since it has 2 inputs for 9 outputs." in text
    assert "One machine works: " in text


def test_a_mode_that_was_asked_for_is_named_as_such():
    def narrow(x):
        return np.array([np.sum(np.sin(x)), np.sum(x * x)])

    plan = parallel_jacobian(narrow, method="tangent", machines=1).plan(onp.ones(30))
    text = " ".join(plan.describe("full").split())
    assert "adjoint mode would take 300, but tangent mode was asked for." in text
    assert "reached: optimal in tangent mode, which was asked for" in text
    assert "One in adjoint mode would take 300; method='auto' chooses." in text
    assert "narrower" not in text
    for method in ("adjoint", "auto"):
        plan = parallel_jacobian(narrow, method=method, machines=1).plan(onp.ones(30))
        assert "chooses" not in " ".join(advice(plan))


def test_no_narrower_interface_is_advised_where_the_time_goes_elsewhere():
    fast = two_links()
    tasks = (replace(task, start=1e3 * task.start, finish=1e3 * task.finish) for task in fast.tasks)
    slow = replace(fast, tasks=tuple(tasks))
    runs_of_slow = ((slow, 1.0, 2, False), (slow, 3.0, 2, False), (slow, 8.0, 1, False), (slow, 8.0, 2, True))
    for plan, factor, runs, late in ((fast, 8.0, 2, False), *runs_of_slow):
        times = [task.finish - task.start for task in plan.tasks]
        times[-1] *= factor
        plan.last_run.records = tuple(TaskRecord(index, 0, 0.0, t) for index, t in enumerate(times))
        plan.last_run.runs = runs
        text = " ".join(advice(plan))
        assert (f"Task {len(times)} took 8 × its prediction in the last run." in text) == late
        assert ("interface" in text) == (not late)


def test_decisions_name_the_forms_of_sweeps_and_obstacles():
    plan = two_links()
    first, second, product = plan.tasks
    assert "Links 1 to 2 are swept as 2 sparse systems of single elements." in decisions(plan)
    tasks = (replace(first, form="arrays", obstacle=2), replace(second, form="stages", obstacle=2), product)
    text = " ".join(decisions(replace(plan, tasks=tasks)))
    assert text.count(f"entry 2 ({plan.structure.primitives[2].__name__}) has no scalar form") == 2
    assert "Link 2 is swept by array steps" in text
    assert "Link 1 is swept in stages" in text
    assert f"entry 2 ({plan.structure.primitives[2].__name__}, f.py:2) has no scalar form" in " ".join(
        decisions(replace(plan, tasks=tasks, lines=tuple(f"f.py:{entry}" for entry in range(99))))
    )
    together = [replace(task, form="arrays", obstacle=None) for task in (first, second)]
    text = " ".join(decisions(replace(plan, tasks=(*together, product))))
    assert "Links 1 to 2 are swept by array steps, one operation at a time; one system is predicted" in text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("single", "One machine works: no more were asked for."),
        ("core", "One machine works: one core is all that this process may use."),
        (
            "light",
            "tasks that release Python's lock are predicted to take 2 ms in all, too little for threads",
        ),
        ("serial", "One machine works: the best schedule for several gives all work to one."),
        ("uneven", "One machine works: no two of them would each have a task that is heavy enough"),
        ("little", "One machine works: threads were predicted to gain less than a fifth."),
    ],
)
def test_decisions_give_the_reason_of_the_planner(reason, text):
    plan = two_links()
    tasks = [
        replace(task, seconds=1e-3, releases_lock=lock)
        for task, lock in zip(plan.tasks, (True, False, True), strict=True)
    ]
    assert text in decisions(replace(plan, tasks=tuple(tasks), machines_reason=reason))[-1]


def test_decisions_say_that_time_counted_more_than_multiply_adds():
    plan = two_links()
    text = " ".join(decisions(replace(plan, least_makespan=700)))
    assert (
        "Another sequence has a makespan of 700 fma, this one has 756: it is predicted to take less" in text
    )
    assert "Another sequence" not in " ".join(decisions(plan))


def test_decisions_say_that_a_mode_was_asked_for():
    assert "Not cut: method 'tangent' was asked for." in decisions(plan_of(bottleneck, 12, method="tangent"))


def widening(x):
    """Pass 2 values, then 10: one machine gains nothing from a cut at the second interface."""
    first, second, third = (onp.cos(onp.arange(m * n)).reshape(m, n) for m, n in ((2, 40), (10, 2), (40, 10)))
    return third @ np.tanh(second @ np.tanh(first @ x))


def test_the_reason_of_a_spread_cut_says_what_it_is_good_for():
    plan = plan_of(widening, 40)
    assert not any(separator.reason == "spread" for separator in plan.separators)
    plan = plan_of(widening, 40, machines=2, executor=SerialExecutor())
    assert any(separator.reason == "spread" for separator in plan.separators)
    assert "places to share work: much of it on either side" in " ".join(decisions(plan))


def test_decisions_of_two_machines_give_the_gain(two_machines):
    plan = replace(
        two_machines,
        machines_reason="gain",
        tasks=tuple(replace(task, seconds=2e-3, start=0.0, finish=5e-3) for task in two_machines.tasks),
    )
    work = 2 * len(plan.tasks)
    text = f"together they are predicted to take 5 ms, one would take {work} ms for the same tasks."
    assert decisions(plan)[-1] == f"2 machines work: {text}"
    assert decisions(two_machines)[-1].startswith("2 machines work, since an executor was given: together")


@pytest.fixture
def two_machines():
    with ThreadPoolExecutor(2) as executor:
        yield plan_of(bottleneck, 12, machines=2, executor=executor)


@pytest.fixture
def two_machines_run():
    x = np.linspace(0.1, 1.0, 12)
    with ThreadPoolExecutor(2) as executor:
        jac = parallel_jacobian(bottleneck, machines=2, executor=executor)
        jac(x)
        yield jac.plan(x)


def test_advice_names_primitives_without_a_vector_rule():
    @primitive
    def bespoke(x):
        return x**2

    defvjp(bespoke, lambda ans, x: lambda g: g * 2 * x)
    text = advice(plan_of(lambda x: bespoke(bespoke(x)), 3))[0]
    assert text.startswith("No vector rule is registered for 2 bespoke: these carry one direction at a time.")


def test_advice_names_the_narrowest_interface_and_the_largest_step():
    text = " ".join(advice(two_links()))
    assert "The narrowest interface has 2 elements, the smaller end 9." in text
    assert "the makespan would be 378 instead of 756 fma" in text
    assert "Step 2, ACC ADJ (0 1), is 40% of the work" in text


def test_advice_names_the_links_that_the_largest_step_goes_through():
    waist = PROBLEMS["long_thin_waist"]
    text = " ".join(advice(parallel_jacobian(waist.fun, cost="fma", machines=1).plan(*waist.args)))
    assert "Step 2, ELI ADJ (0 5 6), is 58% of the work: a sweep of 1 direction through links 1 to 5." in text


def test_advice_for_an_interface_of_one_element():
    text = " ".join(advice(plan_of(lambda x: np.sin(np.sum(x)) * np.ones(7), 5)))
    assert "The narrowest interface has 1 element, the smaller end 5. It cannot be narrower." in text


def test_advice_for_one_output():
    assert (
        "There is one output: a single sweep is the cheapest"
        in advice(plan_of(lambda x: np.sum(np.sin(x)), 5))[0]
    )


def test_advice_for_an_end_of_few_elements():
    plan = plan_of(lambda x: np.sin(x) * np.sum(x), 3)
    tasks = [replace(task, finish=task.start + 1.0) for task in plan.tasks]  # one that takes long
    assert advice(replace(plan, tasks=tuple(tasks))) == (
        "The smaller end has 3 elements: no interface could be much narrower.",
    )


def test_a_plan_of_one_step_shows_no_order_of_steps():
    text = plan_of(lambda x: np.sin(x) * np.sum(x), 3).describe("full")
    assert "bracketing" not in text
    assert "machines over time" not in text
    assert "Why this plan" in text


def test_decisions_name_indices_that_are_read_from_each_tape():
    place = {}
    jac = parallel_jacobian(lambda x: np.sin(x)[place["of"]], machines=1)
    x = onp.ones(300)
    for shift in range(3):
        place["of"] = onp.roll(onp.arange(300), shift)
        jac(x)
    text = " ".join(decisions(jac.plan(x)))
    assert "(getitem, test_draw_text.py:" in text
    assert ") reads its index from each tape anew, since that changes from call to call." in text


def test_a_memory_limit_is_named_beside_the_peak_that_it_lowers():
    def fun(x):
        return np.sin(x) * np.sum(x)

    limited = parallel_jacobian(fun, memory_limit=40_000).plan(onp.ones(200))
    assert "predicted with a limit of 40 kB to a sweep\n" in limited.describe("full")
    assert "<dd>40 kB</dd>" in report_html(limited)
    free = parallel_jacobian(fun).plan(onp.ones(200))
    assert "limit" not in free.describe()
    assert limited.peak_bytes < free.peak_bytes


def test_recording_that_takes_most_of_a_call_is_the_first_advice():
    plan = two_links()
    plan.last_run.records = (TaskRecord(0, 0, 0.0, 1e-3),)
    for recording, told in (
        (4e-4, None),
        (0.9e-3, None),
        (1e-2, "91% of the last call, 10 ms for 6 operations: that is the time of the function itself"),
    ):
        plan.last_run.recording = recording
        first = advice(plan)[0]
        assert first.startswith("Recording took") == (told is not None)
        assert told is None or told in first


@pytest.mark.parametrize("size", [1, 2])
def test_long_loops_are_told_what_makes_recording_shorter(size, monkeypatch):
    monkeypatch.setattr(advise, "_SMALL_OPERATION", 1.0)  # other load may make any of them long

    def loop(x):
        y = x[0] if size == 1 else x
        for _ in range(3000):
            y = np.sin(y) * x[1]
        return y

    jac = parallel_jacobian(loop)
    for _ in range(3):
        jac(onp.ones(2))
    told = " ".join(advice(jac.plan(onp.ones(2))))
    assert "fewer operations" in told
    assert ("on arrays instead of single numbers" in told) == (size == 1)
