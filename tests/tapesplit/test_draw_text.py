"""What a plan says in text: pinned, at most 100 columns wide, and true to the plan's numbers."""

from dataclasses import replace

import autograd.numpy as np
import pytest
from autograd.extend import defvjp, primitive
from draw_plans import bottleneck, plan_of, scalars, two_links

from jcdp_core import JacobianChain, solve
from tapesplit.draw import advice, decisions
from tapesplit.draw.numbers import bytes_text, count, seconds_text
from tapesplit.draw.rows import link_rows, predicted_times, step_rows
from tapesplit.recost import recost

BOTTLENECK = """\
bottleneck: (12,) -> (9,), a 9 × 12 Jacobian
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
plan          756 fma  work of all machines together
makespan      756 fma  on one machine, 3.21 × less than all adjoint
lower bound   756 fma  reached: the plan is optimal
"""


def test_the_normal_table_is_pinned():
    text, times = str(two_links()).split("run time")
    assert text == BOTTLENECK
    assert times.splitlines()[1] == "peak memory    1.2 kB  beyond the tape, predicted"


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
    assert "all tangent  0 fma" in str(plan)


def test_long_names_are_shortened():
    def f(x):
        return np.sin(x)

    f.__qualname__ = "a_function_with_a_very_long_name" * 4
    assert max(map(len, str(plan_of(f, 3)).splitlines())) <= 100


def test_long_tables_leave_out_their_middle_only_at_the_normal_level():
    plan = plan_of(lambda x: scalars(x, 200), 4)
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


def test_predicted_times_keep_machines_and_needs_in_order():
    plan = plan_of(bottleneck, 12)
    times = predicted_times(plan)
    for task, (start, finish) in zip(plan.tasks, times, strict=True):
        assert finish - start == pytest.approx(task.seconds)
        assert all(times[need][1] <= start for need in task.needs)


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
    assert "Link 1 is swept in adjoint mode with 2 directions, as it has 2 outputs, and 12 inputs." in text
    assert "Link 2 is swept in tangent mode with 2 directions, as it has 2 inputs, and 9 outputs." in text
    assert "One machine works: all tasks are predicted to take" in text


def test_decisions_say_that_time_counted_more_than_multiply_adds():
    plan = two_links()
    tangent_only = JacobianChain(tuple(replace(link, adjoint=False) for link in plan.chain.links))
    slower = recost(solve(tangent_only), plan.chain, plan.solution.lower_bound)
    text = " ".join(decisions(replace(plan, solution=slower)))
    assert f"Another sequence has a makespan of 756 fma, this one has {slower.makespan}" in text
    assert "Another sequence" not in " ".join(decisions(plan))


def test_decisions_say_that_a_mode_was_asked_for():
    assert "Not cut: method 'tangent' was asked for." in decisions(plan_of(bottleneck, 12, method="tangent"))


def test_decisions_of_two_machines_give_the_gain(two_machines):
    assert decisions(two_machines)[-1].startswith("2 machines work: together they are predicted to take")


@pytest.fixture
def two_machines():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as executor:
        yield plan_of(bottleneck, 12, machines=2, executor=executor)


def test_advice_names_primitives_without_a_vector_rule():
    @primitive
    def bespoke(x):
        return x**2

    defvjp(bespoke, lambda ans, x: lambda g: g * 2 * x)
    text = advice(plan_of(lambda x: bespoke(bespoke(x)), 3))[0]
    assert text.startswith("No vector rule is registered for 2 bespoke: these carry one direction at a time.")


def test_advice_names_the_narrowest_interface_and_the_largest_step():
    text = " ".join(advice(two_links()))
    assert "The narrowest interface has 2 elements, inputs or outputs 9." in text
    assert "the makespan would be 378 instead of 756 fma" in text
    assert "Step 2, ACC ADJ (0 1), is 40% of the work" in text


def test_advice_for_an_interface_of_one_element():
    text = " ".join(advice(plan_of(lambda x: np.sin(np.sum(x)) * np.ones(7), 5)))
    assert "The narrowest interface has 1 element, inputs or outputs 5. It cannot be narrower." in text


def test_advice_for_one_output():
    assert (
        "There is one output: a single sweep is the cheapest"
        in advice(plan_of(lambda x: np.sum(np.sin(x)), 5))[0]
    )
