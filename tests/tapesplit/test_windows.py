"""Windows of directions: predictions count the directions that array steps carry."""

from collections import Counter

import autograd.numpy as np
import numpy as onp
import pytest
from sweep_forms import forced

from jcdp_core import Mode
from tapesplit import parallel_jacobian, record
from tapesplit.cost.windows import carried_parts
from tapesplit.cuts.chunks import cut_into_chunks
from tapesplit.cuts.graph import graph_of
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps import array_steps

GRID = onp.linspace(0.0, 1.0, 50)
WEIGHTS = onp.random.default_rng(0).standard_normal((6, 30, 20))


def parts(fun, x, *, adjoint_mode):
    """Return what is carried through each entry, in directions."""
    tape = record(fun, x)
    facts = facts_of(tape)
    (chunk,) = cut_into_chunks(graph_of(tape, facts), ())
    ends, count = (chunk.targets, chunk.m) if adjoint_mode else (chunk.sources, chunk.n)
    carried = carried_parts(facts, ends, chunk.entries.tolist(), adjoint_mode=adjoint_mode)
    names = [getattr(tape[index].primitive, "__name__", "") for index in chunk.entries]
    return [(name, round(part * count, 9)) for name, part in zip(names, carried, strict=True)]


def named(found, name):
    return [part for primitive, part in found if primitive == name]


def peaks(p):
    """Add three peaks with three parameters of their own."""
    y = 0.0 * GRID
    for k in range(3):
        height, place, width = p[3 * k : 3 * k + 3]
        y = y + height * np.exp(-((GRID - place) ** 2) / width)
    return y


def heads(x):
    return np.concatenate([np.tanh(weights @ x)[:3] for weights in WEIGHTS])


def deep_heads(x):
    return np.concatenate([(weights.T @ np.tanh(weights @ x))[:3] for weights in WEIGHTS])


def test_tangents_of_parameters_that_one_turn_of_a_loop_reads():
    found = parts(peaks, onp.ones(9), adjoint_mode=False)
    assert named(found, "exp") == [0.0] * 3  # reads nothing but what it is merged with
    assert named(found, "subtract") == [1.0] * 3
    assert named(found, "multiply") == [1.0] * 3
    assert named(found, "add")[-1] == 0.0


@pytest.mark.parametrize(
    ("pick", "size"),
    [
        (lambda x: x[4:10], 6),
        (lambda x: x[-4:], 4),
        (lambda x: x[4:10:2], 5),
        (lambda x: np.reshape(x, (4, 5))[2], 5),
        (lambda x: np.reshape(x, (4, 5))[1:3], 10),
        (lambda x: np.reshape(x, (4, 5))[-1, 1:3], 2),
        (lambda x: np.reshape(x, (4, 5))[:, 2], 20),
        (lambda x: np.reshape(x, (4, 5))[..., 2], 20),
        (lambda x: x[onp.array([1, 3])], 20),
        (lambda x: np.sin(x)[3:5] * x[10], 8),
        (lambda x: x, 1),
    ],
)
def test_tangents_of_the_elements_that_an_index_picks(pick, size):
    found = parts(lambda x: np.sum(pick(x)) * onp.ones((2, 2)) @ np.ones(2), onp.ones(20), adjoint_mode=False)
    expected = 20 if size == 1 else size
    assert named(found, "matmul") == [expected]


def test_adjoints_of_outputs_that_one_turn_of_a_loop_makes():
    found = parts(heads, onp.ones(20), adjoint_mode=True)
    assert named(found, "concatenate_args") == [18.0] * len(named(found, "concatenate_args"))
    assert named(found, "tanh") == [3.0] * 6
    assert named(found, "matmul") == [3.0] * 6


def test_adjoints_of_values_that_several_outputs_read_are_those_from_the_first_to_the_last():
    def fun(x):
        y = np.tanh(WEIGHTS[0] @ x)
        return np.array([y[0], np.sum(x), y[1], np.sum(y) * 2.0, x[0]])

    found = parts(fun, onp.ones(20), adjoint_mode=True)
    assert named(found, "tanh") == named(found, "matmul") == [4.0]


def test_values_that_the_output_does_not_read_carry_no_adjoints():
    tape = record(lambda x: (np.sin(x), np.array([x[1], np.sum(np.cos(x))]))[1], onp.ones(3))
    facts = facts_of(tape)
    entries = list(range(1, len(tape)))
    carried = carried_parts(facts, (tape.output,), entries, adjoint_mode=True)
    assert carried[0] == 0.0


def sums(x):
    parts = [x[20 * k : 20 * k + 20] for k in range(6)]
    return sum(weights.T @ np.sin(weights @ part) for weights, part in zip(WEIGHTS, parts, strict=True))


def rows_of_a_table(x):
    table = np.reshape(x, (6, 20))
    turns = [(weights, row) for weights, row in zip(WEIGHTS, table, strict=True)]
    return np.concatenate([(weights.T @ np.tanh(weights @ row + x[0]))[:2] for weights, row in turns])


@pytest.mark.parametrize("mode", ["tangent", "adjoint"])
@pytest.mark.parametrize("fun", [deep_heads, sums, rows_of_a_table])
def test_products_carry_as_many_directions_as_predicted(fun, mode, monkeypatch):
    x = onp.linspace(-1.0, 1.0, 20 if fun is deep_heads else 120)
    carried = []

    def called(rule, mode, rows, entry, argnum):
        if getattr(entry.primitive, "__name__", "") == "matmul":
            carried.append(len(rows))
        return array_steps_called(rule, mode, rows, entry, argnum)

    array_steps_called = array_steps._called
    monkeypatch.setattr(array_steps, "_called", called)
    forced(monkeypatch, "arrays")
    jac = parallel_jacobian(fun, method=mode, machines=1)
    jac(x)
    predicted = named(parts(fun, x, adjoint_mode=mode == "adjoint"), "matmul")
    assert len(carried) >= 6  # others only pick, since directions are diagonal
    assert Counter(carried) <= Counter(predicted)


def test_windows_decide_the_mode():
    """Each turn makes a few of the outputs: adjoints are carried through that turn alone."""
    rng = onp.random.default_rng(1)
    blocks = [(rng.standard_normal((4, 300)), rng.standard_normal((300, 300))) for _ in range(40)]
    jac = parallel_jacobian(
        lambda x: np.concatenate([small @ np.tanh(large @ x) for small, large in blocks]), machines=1
    )
    plan = jac.plan(rng.standard_normal(300))
    (task,) = plan.tasks
    assert (task.mode, task.form) == (Mode.ADJOINT, "arrays")
    assert task.product_fma < 0.1 * plan.fma


def test_work_that_reductions_save_is_not_weighed_apart_from_what_makes_it():
    draws = onp.random.default_rng(2).standard_normal((100, 20, 50))

    def shares(x):
        attractive = np.exp(np.reshape(x, (100, 20))[:, :, None] + draws)
        return np.mean(attractive / (1.0 + np.sum(attractive, axis=1, keepdims=True)), axis=2)

    plan = parallel_jacobian(shares, machines=1).plan(onp.zeros(2000))
    assert plan.tasks[0].form == "rows"
    assert plan.seconds > 0.0
