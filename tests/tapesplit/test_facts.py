"""Facts of tapes: what kind of call each entry is, and what it costs."""

from dataclasses import fields

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import jacobian
from autograd.extend import defvjp, primitive
from autograd.scipy.signal import convolve

from tapesplit import parallel_jacobian
from tapesplit.cost.model import CostModel, array_seconds, scalar_seconds
from tapesplit.cost.stored import cost_model
from tapesplit.cost.work import Work, total_work, work_table
from tapesplit.recording.recorder import record
from tapesplit.recording.tape import constant_positions
from tapesplit.structures.facts import facts_of


@pytest.mark.parametrize(
    ("fun", "looped"),
    [
        (lambda x: np.add(x, x), 0),
        (lambda x: np.clip(x, a_min=0.1, a_max=2.0), 0),
        (lambda x: np.sin(x, where=onp.array([True, False, True]), out=None), 1),
    ],
)
def test_a_keyword_that_no_formula_knows_makes_a_call_a_loop(fun, looped):
    tape = record(fun, onp.ones(3))
    work = total_work(work_table(facts_of(tape)), np.array([1]))
    assert (work.looped, work.elements) == (looped, 3 * (1 - looped))


def test_adjoints_of_a_matrix_are_written_whatever_they_are_multiplied_from():
    def work(fun, shape):
        return total_work(work_table(facts_of(record(fun, onp.ones(shape)))), np.array([1]))

    by_vector = work(lambda W: W @ onp.ones(40), (30, 40))
    assert (by_vector.product_fma, by_vector.moved) == (1200, 1200 + 30)
    both = lambda W: (v := W @ onp.ones(40)) * (W @ onp.ones(40)) @ v  # noqa: E731
    table = work_table(facts_of(record(both, onp.ones((30, 40)))))
    assert [*table.line("moved")[1:3]] == [1200 + 30, 30]  # adjoints are added up before they are written
    by_matrix = work(lambda W: W @ onp.ones((40, 50)), (30, 40))
    assert (by_matrix.product_fma, by_matrix.moved) == (60_000, 1500)


def test_tangents_without_a_rule_of_autograds_pay_for_all_derivatives():
    """As many adjoints as the result has elements: a chain prefers adjoints of few results then."""
    calls = []

    @primitive
    def long(x):
        return onp.outer(onp.arange(200.0), x)

    def vjp(_ans, _x):
        def adjoint(g):
            calls.append(g)
            return onp.arange(200.0) @ g

        return adjoint

    defvjp(long, vjp)
    tape = record(long, onp.ones(2))
    work = total_work(work_table(facts_of(tape)), np.array([1]))
    assert (work.looped, work.local, work.local_loops) == (1, 1, 400)
    jac = parallel_jacobian(lambda x: long(x)[-1] * x, machines=1)
    onp.testing.assert_array_equal(jac(onp.ones(2)), 398.0 * onp.eye(2))
    assert len(calls) == 2
    (link,) = jac.plan(onp.ones(2)).chain
    assert link.tangent_cost == link.edges + 400 * 800 // 2
    adjoint, tangent = (
        array_seconds(CostModel(), work, 2, adjoint_mode=adjoint_mode) for adjoint_mode in (True, False)
    )
    assert tangent > 50 * adjoint


@pytest.mark.parametrize(
    ("fun", "steps", "block_steps"),
    [
        (np.max, 6, 1),
        (lambda x: np.cumsum(x, axis=0), 1, 0),
        (lambda x: np.linalg.norm(x, 3), 6, 4),
        (np.sum, 1, 0),
        (lambda x: np.linalg.det(np.outer(x, x)), 6, 1),
    ],
)
def test_steps_of_reductions_and_blocks(fun, steps, block_steps):
    tape = record(fun, onp.array([1.0, 2.0, 3.0]))
    work = total_work(work_table(facts_of(tape)), np.array([len(tape) - 1]))
    assert (work.steps, work.block_steps) == (steps, block_steps)


def test_derivatives_of_a_block_take_a_direction_for_each_element_of_a_slice():
    tape = record(lambda x: np.linalg.inv(np.reshape(x, (7, 3, 3)) + 3.0 * onp.eye(3)), onp.ones(63))
    table, index = work_table(facts_of(tape)), np.array([len(tape) - 1])
    work = total_work(table, index)
    one_direction = table.line("moved")[index] + 0.08 * table.line("product_fma")[index]
    assert work.coefficients == 7 * 9 * 9
    assert work.block_moved == int(9 * one_direction[0]) > 9 * 63


def test_stacks_by_few_parameters_are_no_blocks():
    """Of each inverse all derivatives would be found, for two directions."""
    matrices = onp.random.default_rng(0).standard_normal((2, 100, 3, 3)) + 3.0 * onp.eye(3)

    def fun(x):
        return np.linalg.inv(matrices[0] * x[0] + matrices[1] * x[1])

    x = onp.array([1.0, 0.3])
    found = parallel_jacobian(fun, machines=1)
    onp.testing.assert_allclose(found(x), jacobian(fun)(x), rtol=1e-12, atol=1e-13)
    assert [task.form for task in found.plan(x).tasks] == ["arrays"]


X, W = onp.linspace(0.1, 1.0, 30), onp.ones((6, 4))


@pytest.mark.parametrize(
    ("fun", "steps", "product_fma"),
    [
        (lambda x: np.dot(W, np.reshape(x[:12], (4, 3))), 3, 72),
        (lambda x: np.einsum("i,i,i->i", x, x, x), 10, 90),
        (lambda x: convolve(x, W[0], mode="valid"), 16, 40 * 4 * 27),
        (lambda x: convolve(x, W[0]), 16, 40 * 4 * 30),
        (lambda x: convolve(W[0], x, mode="same"), 16, 40 * 4 * 4),
        (np.fft.fft, 4, 10 * 30 * 5),
        (lambda x: np.linalg.solve(W[:4] + 5.0 * onp.eye(4), x[:4]), 4, 8 * 16),
    ],
)
def test_work_of_calls_that_are_no_products_of_matrices(fun, steps, product_fma):
    """FFTs, convolutions, solutions: a multiply-add takes longer there; sums of several operands, a call."""
    tape = record(fun, X)
    work = total_work(work_table(facts_of(tape)), np.array([len(tape) - 1]))
    assert (work.steps, work.product_fma) == (steps, product_fma)


@pytest.mark.parametrize(
    ("before", "behind", "picked"),
    [
        (np.sin, np.cos, (9000, 9000)),
        (lambda x: np.reshape(x, (30, 1))[:, 0], np.negative, (9000, 9000)),
        (np.cumsum, np.cos, (0, 9000)),
        (np.sin, np.cumsum, (9000, 0)),
        (lambda x: x[:7], np.cos, (0, 2100)),
    ],
)
def test_diagonals_only_pick_from_contractions(before, behind, picked):
    """Nothing is multiplied where seeds are still diagonals: of all inputs, or of the output."""
    points = onp.linspace(0.0, 1.0, 300)[:, None]
    tape = record(lambda x: behind(np.sum(np.exp(points * before(x)), axis=1)), X)
    work = total_work(work_table(facts_of(tape)), np.arange(len(tape)))
    multiplied = 2 * 300 * before(X).size
    assert work.product_fma == multiplied
    assert (work.spared_tangents, work.spared_adjoints) == tuple(2 * n for n in picked)


@pytest.mark.parametrize(
    ("before", "behind", "picked"),
    [
        (np.sin, np.cos, (1, 1)),
        (np.cumsum, lambda y: y[::-1], (0, 1)),
        (lambda x: 2.0 * x[::-1], np.cumsum, (1, 0)),
        (lambda x: np.concatenate([x, x[:1]]), np.sum, (0, 0)),
    ],
)
def test_products_with_a_matrix_only_pick_its_rows_from_diagonals(before, behind, picked):
    size = before(X).size
    tape = record(lambda x: behind(onp.ones((40, size)) @ before(x)), X)
    work = total_work(work_table(facts_of(tape)), np.arange(len(tape)))
    assert work.product_fma == 40 * size
    assert (work.spared_tangents, work.spared_adjoints) == tuple(40 * size * n for n in picked)


@pytest.mark.parametrize(("size", "taken_in"), [(3, False), (6, True)])
def test_operations_are_copied_into_several_reductions_for_several_directions_only(size, taken_in):
    points = onp.linspace(0.0, 1.0, 300)

    def moments(x):
        wave = np.exp(points * x[0] + np.sum(x))
        return np.array([np.sum(wave), np.mean(wave)])

    tape = record(moments, X[:size])
    table = work_table(facts_of(tape))
    wave = next(index for index in range(len(tape)) if tape.label(index) == "exp")
    calls = table.line("steps")[[*tape.parents[wave], wave]]
    assert (calls.sum() > calls.size) == taken_in


def test_edges_of_a_long_product_are_those_of_its_pairs():
    matrices = onp.ones((3, 20, 20))
    tape = record(lambda x: np.einsum("ij,jk,kl->il", x, matrices[0], matrices[1]), matrices[2])
    assert facts_of(tape).edges[-1] == 2 * 20**3


def test_partial_derivatives_of_complex_numbers_are_four_products():
    tape = record(lambda x: np.exp(np.fft.fft(x)), X)
    work = total_work(work_table(facts_of(tape)), np.array([len(tape) - 1]))
    assert work.moved == 4 * X.size


def test_merged_operations_on_complex_numbers_take_no_negative_work():
    waves = onp.exp(1j * onp.linspace(0.0, 3.0, 50))

    def response(c):
        return np.abs((c[0] + c[1] * waves + c[2] * waves**2) / (1.0 + c[1] * waves))

    tape = record(response, onp.ones(3))
    table = work_table(facts_of(tape))
    assert (table.lines >= 0).all()


def formulas_of(fun, size):
    tape = record(fun, onp.linspace(0.1, 0.9, size))
    facts = facts_of(tape)
    return total_work(work_table(facts), np.arange(1, len(tape))).formulas


@pytest.mark.parametrize(("size", "formulas"), [(100, 4), (3, 2)])
def test_formulas_are_shared_by_kind_in_merged_operations_that_are_worth_it(size, formulas):
    def fun(x):
        values = [np.sin(np.exp(x[i:])) for i in range(3)]
        return np.concatenate([*values, np.exp(np.sin(x + 1.0))])

    assert formulas_of(fun, size) == formulas


@pytest.mark.parametrize(("size", "formulas"), [(100, (60, 30)), (3, (2, 2))])
def test_calls_that_are_merged_into_one_do_not_share_formulas(size, formulas):
    """A loop whose results are read once is one merged operation: each of its steps is evaluated alone."""

    def loop(x):
        for _ in range(30):
            x = np.sin(np.exp(x))
        return x

    tape = record(loop, onp.linspace(0.1, 0.9, size))
    table = work_table(facts_of(tape))
    assert tuple(total_work(table, np.arange(1, last)).formulas for last in (61, 31)) == formulas


@pytest.mark.parametrize(("paths", "form"), [(20, "system"), (2000, "arrays")])
def test_loops_over_wide_arrays_are_no_systems(paths, form):
    """Their coefficients would pass through memory, where few inputs make few array steps."""
    noise = onp.random.default_rng(0).standard_normal((40, paths))

    def volatilities(p):
        v, s = p[3] * onp.ones(paths), onp.zeros(paths)
        for w in noise:
            root = np.sqrt(np.maximum(v, 1e-4))
            s = s - 0.5 * v * 0.02 + root * w
            v = v + p[0] * (p[1] - v) * 0.02 + p[2] * root * w[::-1]
        return s

    jac, p = parallel_jacobian(volatilities), onp.array([0.5, 1.0, 0.3, 0.1])
    assert [task.form for task in jac.plan(p).tasks] == [form]
    onp.testing.assert_allclose(jac(p)[:5], jacobian(lambda p: volatilities(p)[:5])(p), rtol=1e-12)


def test_coefficients_that_no_cache_holds_count_twice():
    def seconds(coefficients):
        work = Work(*(coefficients * (field.name == "coefficients") for field in fields(Work)))
        return scalar_seconds(CostModel(), work, directions=10, ends=0)

    assert seconds(2**20) - seconds(2**19) == pytest.approx(2 * (seconds(2**19) - seconds(0)))
    assert seconds(2**19) - seconds(2**18) == pytest.approx(seconds(2**18) - seconds(0))


def test_arguments_are_told_from_constants_in_linear_time():
    """A list of thousands of numbers, joined with as many constants."""
    assert constant_positions(30_000, tuple(range(0, 30_000, 2))) == list(range(1, 30_000, 2))
    assert constant_positions(3, (1,)) == [0, 2]


def test_local_jacobians_of_containers_are_counted():
    """Tangents through a call without a JVP take a VJP for each element of its result, a tuple's too."""

    @primitive
    def pair(x):
        return 2.0 * x, onp.arange(40)

    defvjp(pair, lambda ans, x: lambda g: 2.0 * g[0])
    jac = parallel_jacobian(lambda x: pair(x)[0][:5])
    tape = jac.tape(onp.ones(6))
    facts = facts_of(tape)
    assert (facts.elements[1], facts.local_fma[1]) == (46, 46 * facts.edges[1])
    assert total_work(work_table(facts), np.array([1])).local_loops == 46
    assert jac.plan(onp.ones(6)).tasks[0].mode.name == "ADJOINT"
    onp.testing.assert_array_equal(jac(onp.ones(6)), 2.0 * onp.eye(6)[:5])


@pytest.mark.parametrize(
    ("fun", "x", "read"),
    [
        (lambda x: onp.ones((300, 200)) @ x, onp.ones(200), 0.2 * 300 * 200),
        (lambda x: np.dot(x, onp.ones((200, 300))), onp.ones(200), 0.2 * 300 * 200),
        (lambda X: onp.ones((30, 20)) @ X, onp.ones((20, 50)), 0.2 * 30 * 20),
        (lambda x: onp.broadcast_to(1.0, (3000, 1000)) @ x, onp.ones(1000), 0.6 * 3000 * 1000),
        (lambda X: onp.ones((1800, 1800)) @ X, onp.ones((1800, 1800)), 0.6 * 1800 * 1800),
        (lambda x: np.dot(x, x), onp.ones(200), 0),
        (lambda x: np.einsum("i,ij,j->", x, onp.ones((200, 200)), x), onp.ones(200), 0),
        (lambda X: np.reshape(X, (40, 5)) @ X, onp.ones((5, 40)), 0),
    ],
)
def test_constant_matrices_of_products_are_read_once(fun, x, read):
    tape = record(fun, x)
    table = work_table(facts_of(tape))
    assert table.line("read").sum() == pytest.approx(read)
    work = total_work(table, onp.arange(len(tape)))
    once, twice = (array_seconds(CostModel(), work, k, adjoint_mode=True) for k in (0, 1))
    assert once >= work.read * CostModel().element_direction
    assert twice > once


def test_complex_products_of_matrices_count_four_times():
    rotation = onp.exp(1j * onp.arange(16.0)).reshape(4, 4)
    real, complex_ = (
        work_table(facts_of(record(fun, onp.ones(4)))).line("product_fma").sum()
        for fun in (lambda x: rotation.real @ x, lambda x: np.real(rotation @ x))
    )
    assert complex_ == 4 * real > 0


def test_products_among_elementwise_operations_are_no_diagonal():
    """Twenty times three complex elements count as 128 for 122 steps, as many as diagonals have for each."""
    turn = onp.exp(1j * onp.outer(onp.arange(64.0), onp.arange(64.0)) / 64) / 8

    def fun(x):
        y = onp.ones(64) + 0j
        for _ in range(20):
            y = turn @ (np.exp(-0.01j * x) * y)
        return np.abs(y) ** 2

    plan = parallel_jacobian(fun, method="tangent").plan(onp.linspace(0.1, 0.9, 64))
    assert plan.seconds > 64 * 20 * 4 * 64**2 * cost_model().product_fma
