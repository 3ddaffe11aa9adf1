"""What the planner decides: machines, and sequences by predicted time; predicted numbers decide, no clock."""

import pickle
import random
from dataclasses import fields

import pytest
from draw_plans import two_links

from jcdp_core import JacobianChain, Mode, check_schedule, check_sequence, solve
from tapesplit import plan as plans
from tapesplit.errors import PlanMismatchError
from tapesplit.pickling import dumps
from tapesplit.plan import JacobianPlan, PlanTask
from tapesplit.planning import _CONTENTION, _HANDOVER, _makespan, _may_pay, _scheduled, _worth_of_machines
from tapesplit.recost import recost


def random_chain(seed, length):
    rng = random.Random(seed)
    sizes = [rng.randint(1, 40) for _ in range(length + 1)]
    return JacobianChain.from_sizes(sizes, [rng.randint(1, 2000) for _ in range(length)])


@pytest.mark.parametrize("machines", [2, 3, 4])
def test_recosted_schedules_keep_their_certificate(machines):
    for seed in range(100):
        length = 3 + seed % 6
        solution, chain = (
            solve(random_chain(seed, length), machines=machines),
            random_chain(seed + 1000, length),
        )
        again = recost(solution, chain, lower_bound=1)
        assert again.sequence.operations == solution.sequence.operations
        check_sequence(chain, again.sequence)
        check_schedule(again.sequence, again.schedule, machines)
        assert again.makespan == again.schedule.makespan >= max(again.sequence.costs)


MS = 1e-3


def task(seconds, machine=0, needs=(), *, releases_lock=True, scalar=False):
    """Make a task that takes so many milliseconds alone."""
    return PlanTask(
        Mode.TANGENT, 0, 0, (0,), needs, (0,), machine, 1,
        seconds=seconds * MS, releases_lock=releases_lock, scalar=scalar,
    )  # fmt: skip


def spans(*tasks):
    """Return predicted starts and finishes in milliseconds; a hand-over takes a tenth."""
    assert round(_HANDOVER / MS, 9) == 0.1
    return [pytest.approx((t.start / MS, t.finish / MS)) for t in _scheduled(tasks)]


def test_tasks_of_one_machine_follow_each_other():
    assert spans(task(2), task(3, needs=(0,)), task(1)) == [(0, 2), (2, 5), (5, 6)]
    assert _makespan(_scheduled([task(2), task(3)])) == pytest.approx(5 * MS)


def test_a_task_waits_for_the_tasks_that_it_needs():
    assert spans(task(2), task(5, 1), task(1, needs=(0, 1))) == [(0, 2), (0.1, 5.1), (5.1, 6.1)]


def test_handing_a_task_over_takes_time_on_every_machine_but_the_first():
    assert spans(task(2, 1), task(2, 1, (0,)), task(1)) == [(0.1, 2.1), (2.2, 4.2), (0, 1)]


def test_scalar_sweeps_on_two_machines_contend():
    each = 2 * _CONTENTION
    assert spans(task(2, scalar=True), task(2, 1, scalar=True)) == [(0, each), (0.1, 0.1 + each)]
    assert spans(task(2, scalar=True), task(2, 1)) == [(0, 2), (0.1, 2.1)]
    assert spans(task(2, scalar=True), task(2, scalar=True)) == [(0, 2), (2, 4)]


def test_tasks_under_the_interpreters_lock_run_one_at_a_time():
    assert spans(task(2, releases_lock=False), task(2, 1, releases_lock=False)) == [(0, 2), (2, 4)]
    assert spans(task(2, releases_lock=False), task(2, 1)) == [(0, 2), (0.1, 2.1)]


def test_the_lock_goes_to_the_task_that_is_ready_first():
    first, long, last = (
        task(1, releases_lock=False),
        task(5, needs=(0,)),
        task(1, needs=(1,), releases_lock=False),
    )
    other = task(1, 1, releases_lock=False)
    assert spans(first, long, last, other) == [(0, 1), (1, 6), (6, 7), (1, 2)]


def test_threads_are_considered_for_enough_work_that_releases_the_lock():
    assert _may_pay([task(0.7), task(0.7)])
    assert not _may_pay([task(0.5), task(0.5)])
    assert not _may_pay([task(0.7), task(50, releases_lock=False)])


@pytest.mark.parametrize(
    ("parallel", "serial", "reason"),
    [
        ([task(2), task(2, 1)], [task(4)], "gain"),
        ([task(2), task(2, 1)], [task(2.7)], "gain"),
        ([task(2), task(2, 1)], [task(2.6)], "little"),
        ([task(4), task(4)], [task(8)], "serial"),
        ([task(4), task(0.2, 1)], [task(8)], "uneven"),
        ([task(4), task(4, 1, releases_lock=False)], [task(8)], "uneven"),
        ([task(0.2), task(0.2, 1)], [task(8)], "uneven"),
        ([task(2, scalar=True), task(2, 1, scalar=True)], [task(3.5)], "little"),
    ],
)
def test_several_machines_must_gain_a_fifth(parallel, serial, reason):
    assert _worth_of_machines(_scheduled(parallel), _scheduled(serial)) == reason


def test_plans_are_pickled_by_the_names_of_their_fields():
    plan = two_links()
    restore, (made_by, data) = plan.__reduce__()
    state = pickle.loads(data)  # noqa: S301 - our own bytes
    assert state.keys() == {field.name for field in fields(JacobianPlan)}
    shuffled = dumps(dict(reversed(state.items())))
    assert str(restore(made_by, shuffled)) == str(plan)


def test_a_plan_that_another_version_pickled_is_refused(monkeypatch):
    data = pickle.dumps(two_links())
    monkeypatch.setattr(plans, "version", lambda _package: "9.9")
    with pytest.raises(
        PlanMismatchError, match=r"pickled by tapesplit \d.*, but here is tapesplit 9\.9.*make it anew"
    ):
        pickle.loads(data)  # noqa: S301 - our own bytes
