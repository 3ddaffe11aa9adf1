"""Light tapes whose structure keeps changing are swept without a plan."""

import pickle
import threading

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import grad, jacobian
from autograd.extend import defvjp, primitive
from hypothesis import assume, given
from hypothesis import strategies as st
from random_programs import expected
from small_problems import PROBLEMS

from tapesplit import Callback, parallel_jacobian, record
from tapesplit.structures.structure import structure_of
from tapesplit.sweeps.unplanned import is_light, sweep_unplanned

RANDOM = onp.random.default_rng(0)


def branches(x):
    """Take one of two branches for each element."""
    total, factor = 0.0, 1.0
    for element in x:
        if element > 0:
            total = total + np.sin(element) * factor
        else:
            factor = factor * np.cos(element) + total
    return np.array([total, factor, total * factor])


def masked(x):
    mask = x > 0.0
    return np.array([np.sum(np.sin(x[mask])), np.sum(x[~mask] ** 2) * np.sum(x)])


def strange(jac, fun, size=12, calls=20):
    """Call a function at points of a structure each; return the last one."""
    for _ in range(calls):
        x = RANDOM.standard_normal(size)
        onp.testing.assert_allclose(jac(x), jacobian(fun)(x), rtol=1e-12, atol=1e-12)
    return x


@given(st.lists(st.tuples(*[st.integers(0, 999)] * 4), min_size=1, max_size=25), st.integers(1, 6))
def test_random_programs(instructions, size):
    problem = expected(instructions, size)
    assume(problem is not None)
    program, x, want = problem
    tape = record(program, x)
    assume(tape.output is not None and is_light(structure_of(tape)))
    with onp.errstate(all="ignore"):  # as for autograd's
        got = sweep_unplanned(tape).reshape(want.shape)
    assert onp.abs(got - want).max(initial=0.0) <= 1e-11 * max(onp.abs(want).max(initial=0.0), 1e-3)


def test_small_problems():
    compared = 0
    for problem in PROBLEMS.values():
        tape = record(problem.fun, *problem.args)
        if is_light(structure_of(tape)):
            compared += 1
            want = jacobian(problem.fun)(*problem.args)
            onp.testing.assert_allclose(
                sweep_unplanned(tape).reshape(want.shape), want, rtol=1e-10, atol=1e-12, err_msg=tape.name
            )
    assert compared >= 20


@pytest.mark.parametrize(("fun", "size"), [(branches, 12), (masked, 400)])
def test_after_eight_plans_strange_structures_get_none(fun, size):
    jac = parallel_jacobian(fun)
    strange(jac, fun, size)
    info = jac.cache_info()
    assert info.currsize == 8
    assert info.hits + info.misses == 20
    assert info.last_miss == "no plan was made: the structure is another one at nearly every call"


def test_a_structure_that_is_seen_four_times_gets_its_plan():
    jac = parallel_jacobian(branches)
    x = strange(jac, branches)
    before = jac.cache_info()
    for turn in range(3):
        assert jac.cache_info().currsize == before.currsize
        assert jac.cache_info()[:2] == (before.hits, before.misses + turn)
        onp.testing.assert_allclose(jac((1.5 + turn) * x), jacobian(branches)((1.5 + turn) * x), rtol=1e-12)
    for _ in range(2):
        onp.testing.assert_allclose(jac(1.5 * x), jacobian(branches)(1.5 * x), rtol=1e-12)
    assert jac.cache_info()[:2] == (before.hits + 2, before.misses + 3)
    assert "changed from" in jac.cache_info().last_miss


def test_functions_made_anew_are_known_by_their_code():
    def made_anew():
        return parallel_jacobian(lambda x: branches(x) * 2.0)

    for _ in range(8):
        x = RANDOM.standard_normal(12)
        jac = made_anew()
        jac(x)
        assert jac.cache_info().currsize == 1
    jac = made_anew()
    x = RANDOM.standard_normal(12)
    onp.testing.assert_allclose(jac(x), jacobian(branches)(x) * 2.0, rtol=1e-12)
    assert jac.cache_info()[:3] == (0, 1, 0)
    made_anew().cache_clear()
    jac = made_anew()
    jac(x)
    assert jac.cache_info().currsize == 1


def test_hits_of_functions_made_anew_make_up_for_misses():
    def made_anew():
        return parallel_jacobian(lambda x: np.sin(x) * x)

    for size in range(1, 9):
        for _ in range(6):
            made_anew()(onp.ones(size))
    jac = made_anew()
    jac(onp.ones(20))
    assert jac.cache_info().currsize == 1


def test_a_plan_is_made_for_whoever_asks_for_it():
    jac = parallel_jacobian(branches)
    x = strange(jac, branches)
    assert jac.plan(x).makespan > 0
    misses = jac.cache_info().misses
    jac(x)
    assert jac.cache_info().misses == misses


def test_functions_that_settle_get_plans_at_once_again():
    jac = parallel_jacobian(lambda x: np.sin(x) * x)
    for size in range(1, 20):
        jac(onp.ones(size))
    for _ in range(60):
        jac(onp.ones(30))
    misses = jac.cache_info().misses
    for size in range(40, 44):
        for _ in range(2):
            jac(onp.ones(size))
    assert jac.cache_info().misses == misses + 4


def test_indices_of_many_counts_are_opened_one_count_after_the_other():
    """Masks with five counts: each count gets its plan, though contents never repeat."""

    def fun(x):
        mask = onp.zeros(30, bool)
        mask[RANDOM.choice(30, RANDOM.integers(1, 6), replace=False)] = True
        return np.sin(x[mask]) * np.sum(x)

    jac = parallel_jacobian(fun)
    x = RANDOM.standard_normal(30)
    for _ in range(80):
        jac(x)
    misses = jac.cache_info().misses
    for _ in range(20):
        jac(x)
    assert jac.cache_info().misses <= misses + 2


@pytest.mark.parametrize(
    "options",
    [{"method": "adjoint"}, {"cost": "fma"}, {"memory_limit": 10**6}, {"callback": Callback()}],
    ids=str,
)
def test_options_that_take_a_plan_get_one(options):
    jac = parallel_jacobian(lambda x: np.sin(x) * x, **options)
    for size in range(1, 20):
        jac(onp.ones(size))
    assert "changed from" in jac.cache_info().last_miss


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: x * 2.0, 1.0),  # a Python number
        (lambda x: x * 2.0, onp.ones(3, onp.float32)),
        (lambda x: np.real(np.exp(1j * x)), onp.ones(3)),
        (lambda x: x[:0], onp.ones(3)),
        (lambda x: sum(x[i % 3] * float(i) for i in range(200)), onp.ones(3)),
        (lambda x: np.sin(x) * x, onp.ones(2000)),
    ],
)
def test_other_tapes_are_always_planned(fun, x):
    assert not is_light(structure_of(record(fun, x)))


def test_several_inputs_and_what_is_not_needed():
    def fun(x, y):
        np.exp(y)  # leads nowhere
        return np.outer(np.tanh(x), y)[0]

    tape = record(fun, onp.ones(2), onp.arange(3.0), argnum=(0, 1))
    want = onp.hstack([jacobian(fun, i)(onp.ones(2), onp.arange(3.0)) for i in (0, 1)])
    onp.testing.assert_allclose(sweep_unplanned(tape), want, rtol=1e-14)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.concatenate([x[:0], x * 2]),
        lambda x: x[:0].sum() + np.sum(np.exp(x[:0])) + x,
        lambda x: x + onp.ones((3, 0)) @ x[:0],
        lambda x: np.einsum("ij,j->i", onp.ones((3, 0)), x[:0]) * x,
        lambda x: np.outer(x[:0], x).sum(0) * x,
        lambda x: np.prod(x[:0]) * x + np.cumsum(x[:0]).sum(),
        lambda x: np.where(x[:0] > 0, x[:0], 0.0).sum() + x,
        lambda x: np.reshape(x[:0], (0, 3)).mean(axis=1).sum() + x,
        lambda x: np.repeat(x[:0], 2).sum() + np.sort(x[:0]).sum() + x,
        lambda x: np.pad(x[:0], (3, 0), "constant") + x,
    ],
)
def test_empty_arrays(fun):
    x = onp.array([1.0, -2.0, 0.5])
    for of in (fun, grad(lambda x: np.sum(np.sin(fun(x))))):
        tape = record(of, x)
        assert is_light(structure_of(tape))
        onp.testing.assert_allclose(sweep_unplanned(tape), jacobian(of)(x), rtol=1e-14, atol=1e-15)


def test_an_input_that_is_returned():
    onp.testing.assert_array_equal(sweep_unplanned(record(lambda x: x, onp.ones(3))), onp.eye(3))


@primitive
def broken(x):
    return 2.0 * x


def _raise(_g):
    raise ZeroDivisionError("the user's rule fails")


defvjp(broken, lambda ans, x: _raise)


def test_errors_say_where_they_come_from():
    with pytest.raises(ZeroDivisionError) as caught:
        sweep_unplanned(record(lambda x: broken(x) * x, onp.ones(3)))
    assert caught.value.__notes__ == [
        "in a derivative rule of broken, entry 1 of the tape",
        "while computing the Jacobian of <lambda>, without a plan",
    ]


def test_functions_that_remember_structures_pickle_and_forget():
    jac = parallel_jacobian(branches)
    x = strange(jac, branches)
    again = pickle.loads(pickle.dumps(jac))  # noqa: S301 (our own)
    onp.testing.assert_allclose(again(x), jac(x), rtol=1e-12)
    jac.cache_clear()
    jac(x)
    assert jac.cache_info()[:3] == (0, 1, 1)


def test_threads_may_meet_strange_structures_together():
    jac, points = parallel_jacobian(branches), RANDOM.standard_normal((4, 30, 12))
    wrong = []

    def work(mine):
        wrong.extend(x for x in mine if not onp.allclose(jac(x), jacobian_of[x.tobytes()], rtol=1e-10))

    jacobian_of = {x.tobytes(): jacobian(branches)(x) for x in points.reshape(-1, 12)}
    threads = [threading.Thread(target=work, args=(mine,)) for mine in points]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sum(jac.cache_info()[:2]) == 120
