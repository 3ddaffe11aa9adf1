"""What views say where directions share seeds: the work that is carried out, and no bound of the chain."""

import pickle
from dataclasses import replace

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad
from draw_plans import bottleneck, plan_of, two_links
from executors import SerialExecutor

from jcdp_core import check_schedule
from tapesplit import TaskRecord, parallel_jacobian
from tapesplit.draw import advice, decisions, report_html
from tapesplit.draw.bars import comparison_scene
from tapesplit.draw.gantt import gantt_scene
from tapesplit.draw.rows import link_rows, shared_seeds, step_rows
from tapesplit.draw.scene import Box, Label
from tapesplit.draw.split import split_scene
from tapesplit.draw.svg import to_svg


def valley(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bordered(x):
    return np.concatenate([np.sin(x[1:]) * x[:-1], np.sum(x**2)[None]])


def pooled(x):
    """Sum a long sparse part to 40 values; another part moves them to many places."""
    for _ in range(5):
        x = np.sin(x) + 0.1 * x
    sums = np.sum(x.reshape(40, -1), axis=1)
    return np.concatenate([sums * np.roll(sums, 1)] * 50)


@pytest.fixture(scope="module")
def hessian():
    return parallel_jacobian(grad(valley), machines=1).plan(onp.linspace(0.3, 1.1, 1000))


@pytest.fixture(scope="module")
def chain():
    return parallel_jacobian(pooled, machines=1, cost="fma").plan(onp.linspace(0.3, 1.1, 2000))


HESSIAN = """\
step  operation      machine  start  finish    fma  needs       result
   1  ACC TAN (0 1)        1      0   53958  53958  -      1000 × 1000

all tangent  1.8e7 fma
all adjoint  1.8e7 fma
plan         53958 fma  333 × less than all tangent
makespan     53958 fma  on one machine
compressed     3 seeds  for 1000 directions, as the Jacobian is sparse
"""


def test_the_table_counts_what_is_carried_out(hessian):
    text = str(hessian)
    assert HESSIAN in text
    assert "lower bound" not in text
    assert "17986  tangent × 3 seeds  4 power" in text
    assert max(map(len, hessian.describe("full").splitlines())) <= 100


def test_the_line_counts_what_is_carried_out(hessian):
    end = "one link, 53958 fma on one machine, 333 × less than all tangent"
    assert hessian.describe("line").endswith(end)
    assert repr(hessian).endswith(f"{end}>")
    assert end in hessian._repr_html_()


def test_attributes_count_what_is_carried_out(hessian):
    restored = pickle.loads(pickle.dumps(hessian))  # noqa: S301 (made here)
    for plan in (hessian, restored):
        assert plan.fma == plan.makespan == sum(task.fma for task in plan.tasks) == 3 * 17986
        assert plan.solution.makespan == plan.baselines["tangent"] == 1000 * 17986


def test_the_report_counts_what_is_carried_out(hessian):
    page = report_html(hessian)
    assert "Its Jacobian takes 53958 multiply-adds (fma); plain tangent" in page
    assert "<dt>work</dt><dd>53958 fma</dd>" in page
    assert "<dt>all tangent ÷ work</dt><dd>333</dd>" in page
    assert "<dt>compressed</dt><dd>3 seeds for 1000 directions</dd>" in page
    assert "lower bound" not in page
    assert "compressed" not in report_html(two_links())


def test_bars_show_what_is_carried_out_and_no_bound(hessian):
    tips = [shape.tip.split(",") for shape in comparison_scene(hessian).shapes if isinstance(shape, Box)]
    assert [tip[0] for tip in tips] == [
        "all tangent: 17986000 fma",
        "all adjoint: 17986000 fma",
        "plan",
        "plan",
    ]
    assert [tip[1] for tip in tips[2:]] == [" all work: 53958 fma", " makespan: 53958 fma"]
    assert comparison_scene(two_links()).description.endswith("; lower bound 756 fma")


def test_gantt_charts_end_with_what_is_carried_out(hessian):
    planned = gantt_scene(hessian)
    assert "53958 fma" in [shape.text for shape in planned.shapes if isinstance(shape, Label)]
    measured = gantt_scene(hessian, [TaskRecord(0, 0, 0.0, 1e-3)])
    tips = [shape.tip for shape in measured.shapes if isinstance(shape, Box)]
    assert all(tip.endswith("53958 fma planned") for tip in tips)


def test_the_picture_counts_seeds(hessian):
    svg = to_svg(split_scene(hessian))
    assert ">tangent × 3 seeds</text>" in svg
    assert "tangent × 3 seeds directions" not in svg


def test_reasons_qualify_the_costs_of_the_chain(hessian):
    text = " ".join(decisions(hessian))
    assert "with 1000 directions, 1.8e7 fma without shared seeds; adjoint mode would take 1.8e7." in text
    assert "this one has 1.8e7 without shared seeds: it" in " ".join(
        decisions(replace(hessian, least_makespan=1))
    )


def test_seeds_that_are_swept_back_count():
    plan = parallel_jacobian(bordered, machines=1).plan(onp.linspace(0.3, 1.1, 1000))
    assert shared_seeds(plan) == ("2 seeds + 1", "1000 directions")
    assert [row.sweep for row in link_rows(plan)] == ["tangent × 3 seeds"]
    assert plan.carried_out[0].total == 3 * plan.chain.links[0].edges


def test_one_of_several_sweeps_may_be_compressed(chain):
    first, second = link_rows(chain)
    assert (first.sweep, second.sweep) == ("adjoint × 2 seeds", "tangent × 2000")
    steps = step_rows(chain)
    assert [step.cost for step in steps] == [2 * first.edges, chain.solution.sequence.costs[1]]
    assert steps[-1].finish == sum(step.cost for step in steps) == chain.makespan
    text = " ".join(advice(chain))
    assert "Step 1, ACC ADJ (0 1), is 98% of the work: a sweep of 2 seeds through link 1." in text
    assert "Were it" not in text  # the chain without seeds would be compared
    assert "86160" in chain.describe("full").split("machines over time (fma)")[1].splitlines()[2]


def test_steps_of_several_machines_start_when_their_operands_are_there():
    plan = plan_of(bottleneck, 12, machines=2, executor=SerialExecutor())
    assert {task.machine for task in plan.tasks} == {0, 1}
    costs = plan.solution.sequence.costs
    tasks = [replace(task, seeds=1) if task.directions and not task.needs else task for task in plan.tasks]
    sequence, schedule = replace(plan, tasks=tuple(tasks)).carried_out
    check_schedule(sequence, schedule)
    halved = {step for task in tasks if task.seeds for step in task.steps}
    assert sequence.costs == tuple(cost // 2 if step in halved else cost for step, cost in enumerate(costs))
    assert [task.machine for task in schedule.tasks] == [
        task.machine for task in plan.solution.schedule.tasks
    ]
    assert plan.makespan / 2 <= schedule.makespan < plan.makespan


def test_plans_without_shared_seeds_are_those_of_their_solution():
    plan = two_links()
    sequence, schedule = plan.carried_out
    assert sequence is plan.solution.sequence
    assert schedule is plan.solution.schedule
    assert shared_seeds(plan) is None
