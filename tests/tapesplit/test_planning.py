"""What the planner decides: machines, and sequences by predicted time; predicted numbers decide, no clock."""

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields
from itertools import combinations
from pathlib import Path

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from autograd.extend import defvjp, primitive
from draw_plans import two_links
from small_problems import PROBLEMS

import jcdp_core
from jcdp_core import JacobianChain, Mode, check_schedule, check_sequence, solve
from tapesplit import check_separators, parallel_jacobian, record
from tapesplit.cost import model as cost_constants
from tapesplit.cost import work as cost_work
from tapesplit.cost.stored import cost_model
from tapesplit.cost.work import work_table
from tapesplit.cuts.chunks import chunk_chain, cut_into_chunks
from tapesplit.cuts.graph import graph_of
from tapesplit.cuts.separators import Separator
from tapesplit.draw import advice, decisions
from tapesplit.errors import PlanMismatchError
from tapesplit.planning import planner
from tapesplit.planning.effort import _least_seconds, effort_for
from tapesplit.planning.plan import JacobianPlan, PlanTask, seconds_of
from tapesplit.planning.planner import _may_pay, _worth_of_machines
from tapesplit.planning.recost import recost
from tapesplit.planning.tasks import _CONTENTION, _HANDOVER, joined, scheduled, with_shared_steps
from tapesplit.structures.facts import facts_of
from tapesplit.structures.pickling import dumps
from tapesplit.structures.structure import structure_of
from tapesplit.sweeps import prediction


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
        assert (again.machines, again.method, again.lower_bound) == (machines, solution.method, 1)
        check_sequence(chain, again.sequence)
        check_schedule(again.sequence, again.schedule, machines)
        assert again.makespan == again.schedule.makespan >= max(again.sequence.costs)


MS = 1e-3


def task(seconds, machine=0, needs=(), *, releases_lock=True, form="arrays"):
    """Make a task that takes so many milliseconds alone."""
    return PlanTask(
        Mode.TANGENT, 0, 0, (0,), needs, (0,), machine, 1,
        seconds=seconds * MS, releases_lock=releases_lock, form=form,
    )  # fmt: skip


def spans(*tasks):
    """Return predicted starts and finishes in milliseconds; a hand-over takes a tenth."""
    assert round(_HANDOVER / MS, 9) == 0.1
    return [pytest.approx((t.start / MS, t.finish / MS)) for t in scheduled(tasks)]


def test_tasks_of_one_machine_follow_each_other():
    assert spans(task(2), task(3, needs=(0,)), task(1)) == [(0, 2), (2, 5), (5, 6)]
    assert seconds_of(scheduled([task(2), task(3)])) == pytest.approx(5 * MS)


def test_a_task_waits_for_the_tasks_that_it_needs():
    assert spans(task(2), task(5, 1), task(1, needs=(0, 1))) == [(0, 2), (0.1, 5.1), (5.1, 6.1)]


def test_handing_a_task_over_takes_time_on_every_machine_but_the_first():
    assert spans(task(2, 1), task(2, 1, (0,)), task(1)) == [(0.1, 2.1), (2.2, 4.2), (0, 1)]


def test_scalar_sweeps_on_two_machines_contend():
    each = 2 * _CONTENTION
    assert spans(task(2, form="system"), task(2, 1, form="system")) == [(0, each), (0.1, 0.1 + each)]
    assert spans(task(2, form="system"), task(2, 1)) == [(0, 2), (0.1, 2.1)]
    assert spans(task(2, form="system"), task(2, form="system")) == [(0, 2), (2, 4)]


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
        ([task(2, form="system"), task(2, 1, form="system")], [task(3.5)], "little"),
    ],
)
def test_several_machines_must_gain_a_fifth(parallel, serial, reason):
    assert _worth_of_machines(scheduled(parallel), scheduled(serial)) == reason


def matrix(rows, columns):
    return onp.cos(onp.arange(rows * columns, dtype=float)).reshape(rows, columns) / columns**0.5


def halves(width, narrow, layers=4):
    """Map through two halves of so many layers each, with a narrow interface between them."""

    def fun(x):
        for _ in range(layers):
            x = np.tanh(matrix(width, width) @ x)
        x = np.tanh(matrix(width, narrow) @ (matrix(narrow, width) @ x))
        for _ in range(layers):
            x = np.tanh(matrix(width, width) @ x)
        return x

    return fun, onp.linspace(-1.0, 1.0, width)


@pytest.mark.parametrize(("cores", "reason"), [(1, "core"), (4, "single")])
def test_why_only_one_machine_is_planned_for(monkeypatch, cores, reason):
    monkeypatch.setattr(planner, "usable_cores", lambda: cores)
    jac = parallel_jacobian(lambda x: np.sin(x) * x, machines=1)
    jac.cache_clear()
    plan = jac.plan(onp.ones(3))
    assert (plan.machines, plan.machines_reason) == (1, reason)


def test_two_heavy_halves_get_two_machines():
    """Though each product of theirs could be shared."""
    fun, x = halves(600, 100)
    one, two = (parallel_jacobian(fun, machines=machines).plan(x) for machines in (1, 2))
    assert one.machines == 1
    assert (two.machines, two.machines_reason) == (2, "gain")
    assert one.seconds == pytest.approx(sum(t.seconds for t in one.tasks))
    assert two.seconds < 0.8 * one.seconds
    heavy = [sum(t.seconds for t in two.tasks if t.machine == machine) for machine in (0, 1)]
    assert min(heavy) > 0.3 * one.seconds
    assert two.seconds == max(t.finish for t in two.tasks) > max(heavy)
    assert two.step_threads == one.step_threads == 1
    assert with_shared_steps(one.tasks, 2)[-1].finish > two.seconds


@pytest.mark.parametrize("machines", [1, 2, 8])
def test_large_products_are_shared_among_machines(machines):
    fun, x = halves(600, 600, layers=1)
    plan, serial = (parallel_jacobian(fun, machines=m).plan(x) for m in (machines, 1))
    assert (plan.machines, plan.step_threads) == (1, machines)
    products = cost_model().product_fma * sum(t.product_fma for t in plan.tasks)
    assert products == pytest.approx(sum(t.shareable for t in plan.tasks))
    saved = products * (1 - 1 / (1 + 0.8 * (machines - 1)))
    assert plan.seconds == pytest.approx(serial.seconds - saved)
    assert plan.seconds == pytest.approx(sum(t.seconds for t in plan.tasks))
    if machines > 1:
        assert plan.machines_reason == "steps"
        assert f"{machines} threads share each of its large steps, which gains more" in plan.describe("full")


def test_small_and_thin_products_are_not_shared():
    for width, narrow in (100, 100), (2000, 10):
        fun, x = halves(width, narrow)
        plan = parallel_jacobian(fun, machines=2).plan(x)
        assert plan.step_threads == 1
        assert not any(t.shareable for t in plan.tasks)


def test_two_light_halves_get_one_machine():
    fun, x = halves(60, 10)
    plan = parallel_jacobian(fun, machines=2).plan(x)
    assert (plan.machines, plan.machines_reason) == (1, "light")
    assert plan.seconds < 1 * MS


def test_what_cannot_be_parted_gets_one_machine(monkeypatch):
    monkeypatch.setattr(prediction, "SHARED_FMA", 10**12)
    fun, x = halves(600, 100)
    plan = parallel_jacobian(fun, machines=2, method="adjoint").plan(x)
    assert (plan.machines, plan.machines_reason) == (1, "serial")


def sensors(u):
    """Step a Burgers equation, and map the values at 30 places to 1000 features."""
    for _ in range(2):
        left = np.roll(u, 1)
        u = u - 0.05 * u * (u - left) + 0.01 * (left - 2 * u + np.roll(u, -1))
    return np.tanh(matrix(1000, 30) @ u[:: len(u) // 30][:30])


def test_the_sequence_that_is_predicted_to_be_faster_is_taken():
    """A multiply-add of a stencil takes five times as long as one of a matrix product."""
    u = onp.sin(onp.linspace(0.0, 6.0, 2000))
    cheap, fast = (parallel_jacobian(sensors, machines=1, cost=cost) for cost in ("fma", "runtime"))
    cheapest, fastest = cheap.plan(u), fast.plan(u)
    assert cheapest.least_makespan is None
    assert fastest.least_makespan == cheapest.makespan < fastest.makespan
    assert fastest.seconds < 0.6 * cheapest.seconds
    assert Mode.MULTIPLY not in {t.mode for t in cheapest.tasks}
    assert fastest.tasks[-1].mode is Mode.MULTIPLY
    check_schedule(fastest.solution.sequence, fastest.solution.schedule, 1)
    onp.testing.assert_allclose(fast(u), cheap(u), rtol=1e-12, atol=1e-15)


def single_numbers(x):
    """Pass through three numbers in 2000 operations, each of which a system sweeps in no time."""
    y = [np.sum(x * k) for k in range(3)]
    z = [np.sin(y[0] * k) + y[1] * y[2] for k in range(400)]
    return np.array([z[k] * z[k - 1] for k in range(0, 400, 8)])


def test_no_cuts_are_looked_for_where_none_could_save_a_tenth_of_a_call():
    plan = parallel_jacobian(single_numbers).plan(onp.ones(50))
    assert plan.separators == ()
    assert "Not cut: cuts could save less than a tenth of the time of a call." in decisions(plan)
    assert "Sweeping in a single direction would take nearly as long" in " ".join(advice(plan))
    assert "could save less" in str(plan)


def test_cuts_are_looked_for_where_multiply_adds_count_or_machines_are_forced():
    assert parallel_jacobian(single_numbers, cost="fma").plan(onp.ones(50)).separators
    with ThreadPoolExecutor(2) as executor:
        plan = parallel_jacobian(single_numbers, machines=2, executor=executor).plan(onp.ones(50))
    assert plan.separators


def test_more_effort_for_more_that_could_be_saved():
    def strands(x, width):
        ys = [x[:width], x[width:]]
        weights = onp.eye(width)
        for _ in range(100):
            ys = [np.tanh(weights @ y) for y in ys]
        return np.concatenate([np.sum(y) * weights[0] for y in ys])

    def effort(fun, n):
        tape = record(fun, onp.ones(n))
        facts = facts_of(tape)
        return effort_for(graph_of(tape, facts), work_table(facts))

    assert effort(single_numbers, 50) == "none"
    assert effort(lambda x: strands(x, 10), 20) == "brief"
    assert effort(lambda x: strands(x, 200), 400) == "thorough"


@pytest.mark.parametrize("name", [name for name in sorted(PROBLEMS) if not name.startswith("empty")])
def test_no_plan_is_predicted_to_take_less_than_the_least(name):
    program = PROBLEMS[name]
    plan = parallel_jacobian(program.fun, machines=1, cost="fma").plan(*program.args)
    table = work_table(facts_of(record(program.fun, *program.args), plan.structure))
    swept = sum(task.seconds for task in plan.tasks if task.swept)
    assert swept >= _least_seconds(table, plan.graph.entries[plan.graph.inputs :])


@pytest.mark.parametrize("name", [name for name in sorted(PROBLEMS) if not name.startswith("empty")])
def test_no_plan_is_predicted_to_take_clearly_longer_than_a_plain_sweep(name):
    fun, args = PROBLEMS[name].fun, PROBLEMS[name].args
    plan = parallel_jacobian(fun, machines=1).plan(*args)
    plain = [parallel_jacobian(fun, machines=1, method=m).plan(*args) for m in ("tangent", "adjoint")]
    assert plan.seconds <= min(p.seconds for p in plain) + 1.5 * planner._WORTH_JOINING


def test_plans_are_pickled_by_the_names_of_their_fields():
    plan = two_links()
    restore, (made_by, data) = plan.__reduce__()
    state = pickle.loads(data)  # noqa: S301 - our own bytes
    assert state.keys() == {field.name for field in fields(JacobianPlan)}
    shuffled = dumps(dict(reversed(state.items())))
    assert str(restore(made_by, shuffled)) == str(plan)


def test_a_plan_that_another_version_pickled_is_refused(monkeypatch):
    data = pickle.dumps(two_links())
    monkeypatch.setattr(jcdp_core, "__version__", "9.9")
    with pytest.raises(
        PlanMismatchError, match=r"pickled by tapesplit \d.*, but here is tapesplit 9\.9.*make it anew"
    ):
        pickle.loads(data)  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("fun", "size", "sweep"),
    [
        (lambda x: np.tanh(x) * np.exp(-x), 10, "ScalarSweep"),
        (lambda x: np.tanh(x) * np.exp(-x), 1000, "ArraySweep"),
        (lambda x: np.sum((x.reshape(30, 1, 3) - x.reshape(1, 30, 3)) ** 2, axis=2), 90, "ArraySweep"),
        (lambda x: np.hstack([np.sum(np.split(x, 4)[i] ** 2) * x[:5] for i in range(4)]), 20, "ScalarSweep"),
        # Dense adjoints of a matrix are written and, for each direction, are nearly all zero.
        (lambda x: np.tanh(x.reshape(60, 60) @ onp.linspace(0.1, 1.0, 60)), 3600, "CompressedSweep"),
        (lambda x: np.tanh(x.reshape(80, 80) @ onp.ones((80, 7))), 6400, "RowSweep"),
    ],
)
def test_links_are_swept_in_the_way_that_suits_them(fun, size, sweep):
    plan = parallel_jacobian(fun, machines=1).plan(onp.linspace(0.1, 1.0, size))
    assert {type(task).__name__ for task in plan.sweeps if task is not None} == {sweep}


def test_a_search_that_would_not_end_returns_what_it_has_found(monkeypatch):
    monkeypatch.setattr(planner, "_LONGEST_SEARCH", 0.05)
    rng = onp.random.default_rng(0)
    layers = [rng.standard_normal((8, 60) if i % 2 == 0 else (60, 8)) / 8 for i in range(12)]

    def deep(x):
        for layer in layers:
            x = np.tanh(layer @ x)
        return x

    x = rng.standard_normal(60)
    with ThreadPoolExecutor(3) as pool:
        jac = parallel_jacobian(deep, executor=pool, machines=3, method="exact")
        onp.testing.assert_allclose(jac(x), parallel_jacobian(deep)(x), rtol=1e-9, atol=1e-12)
    plan = jac.plan(x)
    assert plan.machines > 1
    assert plan.makespan > plan.solution.lower_bound  # not proved


@pytest.mark.parametrize("method", ["auto", "tangent", "adjoint"])
def test_plans_and_plain_modes_are_counted_alike(method):
    """Tangents pay for the local Jacobian of a primitive without a JVP."""

    @primitive
    def sums(x):
        return onp.cumsum(x)

    defvjp(sums, lambda ans, x: lambda g: onp.cumsum(g[::-1])[::-1])
    plan = parallel_jacobian(lambda x: sums(np.sin(x)), method=method, machines=1).plan(onp.ones(20))
    assert plan.baselines == {"tangent": 20 * 420 + 20 * 400, "adjoint": 20 * 420}
    assert plan.makespan == plan.baselines["tangent" if method == "tangent" else "adjoint"]
    assert ("dp" in str(plan).splitlines()[2]) == (method == "auto")


@pytest.mark.parametrize(
    ("name", "narrow", "count"),
    [
        ("a_bottleneck", [8], 1),
        ("b_alternating", [60, 12, 25, 5], 4),
        ("f_wide", [], 0),
        ("g_square", [], 0),
        ("h_params", [], 0),
        ("i_pipeline", [10], 4),
        ("j_wide_halves", [100], 1),
    ],
)
def test_plans_take_no_more_than_any_cuts_chosen_by_hand(monkeypatch, name, narrow, count):
    """Behind the narrow layers of a network, or nowhere."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from benchmarks.problems import get

    f, x = get(name, "autograd")
    tape = record(f, x)
    facts = facts_of(tape)
    graph, spared = graph_of(tape, facts), work_table(facts).spared_edges
    sizes = [*map(onp.size, tape.values)]
    layers = [i for i in range(len(tape)) if tape.label(i) == "tanh" and sizes[i] in narrow]
    assert len(layers) == count
    plan = parallel_jacobian(f, machines=1, cost="fma").plan(x)
    for some in range(count + 1):
        for chosen in combinations(layers, some):
            cuts = tuple(Separator((i,), sizes[i], "cost") for i in chosen)
            check_separators(tape, cuts)
            by_hand = solve(chunk_chain(cut_into_chunks(graph, cuts), facts, spared))
            assert plan.makespan <= by_hand.makespan


def halved(x):
    """Take every second element, as multigrid does, and hand each on twice: a sparse Jacobian."""
    y = (np.sin(x) * x)[::2]
    y = y + 0.1 * (np.roll(y, 1) - 2.0 * y + np.roll(y, -1))
    return np.concatenate([y, np.cos(y)])


@pytest.mark.parametrize("size", [200, 1000])
def test_cuts_that_save_multiply_adds_but_no_time_are_dropped(size):
    x = onp.linspace(-1.0, 1.0, size)
    plan = parallel_jacobian(halved, machines=1).plan(x)
    cut = parallel_jacobian(halved, machines=1, cost="fma").plan(x)
    assert (plan.cut_reason, cut.cut_reason) == ("slower", "narrow")
    assert plan.seconds < cut.seconds
    assert plan.tasks[0].seeds
    assert "Not cut: cuts would save multiply-adds, but not time" in decisions(plan)[0]
    onp.testing.assert_allclose(parallel_jacobian(halved)(x), jacobian(halved)(x), rtol=1e-13)


def reconstruction(x):
    """Hand a reconstruction back together with its misfit."""
    code = np.tanh(ENCODER @ x)
    u = np.tanh(ENCODER.T @ code)
    return np.concatenate([u, np.array([np.sum((x - u) ** 2)])])


ENCODER = onp.cos(onp.arange(200.0)).reshape(4, 50)


@pytest.mark.parametrize("options", [{"machines": 1}, {"machines": 2}, {"cost": "fma"}])
def test_what_lies_between_two_members_of_a_separator_is_swept_on_both_sides(options):
    x = onp.linspace(-1, 1, 50)
    jac = parallel_jacobian(reconstruction, **options)
    onp.testing.assert_allclose(jac(x), jacobian(reconstruction)(x), rtol=1e-12, atol=1e-13)
    check_separators(record(reconstruction, x), jac.plan(x).separators)


def test_a_value_may_lead_to_a_member_from_the_next_separator_as_well():
    """The second separator holds the misfit again, which is computed from its other member."""

    def repeated(x):
        z = np.tanh(onp.cos(onp.arange(350.0)).reshape(7, 50) @ np.tanh(WIDEN @ np.tanh(NARROW @ x)))
        misfit = np.reshape(np.sum((x - NARROW.T[:, :1] @ z[:1]) ** 2), 1)
        return np.concatenate([z] * 17 + [misfit])

    x = onp.linspace(0, 1, 300)
    for options in ({}, {"machines": 2}, {"cost": "fma"}):
        jac = parallel_jacobian(repeated, **options)
        onp.testing.assert_allclose(jac(x), jacobian(repeated)(x), rtol=1e-11, atol=1e-12)
    chunks = jac.plan(x).chunks
    assert len(chunks) == 3
    assert {*chunks[1].entries.tolist()} <= {*chunks[0].entries.tolist()}


NARROW = onp.cos(onp.arange(600.0)).reshape(2, 300) / 300
WIDEN = onp.sin(onp.arange(100.0)).reshape(50, 2)


def test_what_two_links_compute_counts_once_for_the_tape():
    plan = parallel_jacobian(reconstruction, machines=1, cost="fma").plan(onp.ones(50))
    assert [separator.width for separator in plan.separators] == [5]
    computed = [len(chunk.entries) for chunk in plan.chunks]
    tape = record(reconstruction, onp.ones(50))
    assert sum(computed) > len(tape) - 1
    assert f"tape of {len(tape) - 1} operations" in plan.describe()
    assert "operations between two values of a separator are swept on both sides of it." in decisions(plan)[1]
    uncut = parallel_jacobian(reconstruction, method="tangent").plan(onp.ones(50))
    assert plan.baselines == uncut.baselines
    assert plan.fma < 0.5 * min(plan.baselines.values())
    assert joined(plan.chunks, (0, 1)).entries.tolist() == uncut.chunks[0].entries.tolist()


@pytest.mark.parametrize("name", ["makespan", "name", "note"])
def test_plans_are_read_only(name):
    plan = parallel_jacobian(np.sin).plan(onp.ones(3))
    with pytest.raises(FrozenInstanceError):
        setattr(plan, name, 1)


def test_a_plan_for_one_machine_is_compiled_once(monkeypatch):
    """Whatever the draft for several machines finds, one sweep through all of its cuts is the same one."""
    compiled = []
    compile_tasks = planner.compile_tasks
    monkeypatch.setattr(planner, "compile_tasks", lambda *of: compiled.append(of) or compile_tasks(*of))
    monkeypatch.setattr(planner, "_may_pay", lambda _: True)

    def neighbors(u):
        for _ in range(30):
            u = np.concatenate([u[:1], u[1:] * 0.9 + np.sin(u[:-1])])
        return u

    plan = parallel_jacobian(neighbors, machines=2).plan(onp.linspace(0.1, 1.0, 400))
    assert plan.machines == 1
    assert plan.tasks[0].seeds
    assert len(compiled) == 1


def planned(fun, x, machines=1):
    """A plan that no other function shares."""
    tape = record(fun, x)
    return planner.make_plan(
        tape, structure_of(tape), planner.PlanOptions(machines, False, "auto", "runtime", None)
    )


def test_eliminating_a_computed_matrix_takes_time(monkeypatch):
    x = onp.linspace(0.1, 1.0, 150)

    def solution(x):
        return np.linalg.solve(np.diag(x) + 5.0, x)[:2]

    before = planned(solution, x).seconds
    monkeypatch.setattr(cost_work, "_CUBE", 0.0)
    elimination = 0.08 * 150**3 * cost_model().element_direction
    assert before - planned(solution, x).seconds == pytest.approx(elimination)


def test_large_intermediate_jacobians_take_time_and_keep_machines_apart(monkeypatch):
    data, b = onp.random.default_rng(0).standard_normal((200_000, 10)), onp.ones(10)

    def scores(b):
        return data.T @ np.tanh(data @ b)

    assert planned(scores, b, machines=2).machines == 1
    monkeypatch.setattr(cost_constants, "_HANDED", 0.0)
    monkeypatch.setattr(cost_work, "_READ", 0.0)
    assert planned(scores, b, machines=2).machines == 2
