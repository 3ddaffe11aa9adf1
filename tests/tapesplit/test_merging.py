"""Merged elementwise operations: each found once, alike ones together, and the derivative is the same."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian
from autograd.extend import defvjp, primitive
from hypothesis import given, settings
from hypothesis import strategies as st

import tapesplit
from tapesplit import record
from tapesplit.cuts.chunks import Chunk, cut_into_chunks
from tapesplit.cuts.graph import graph_of
from tapesplit.structures.facts import facts_of
from tapesplit.sweeps import merging
from tapesplit.sweeps.array_sweep import compile_array_sweep
from tapesplit.sweeps.lowering import compile_scalar_sweep
from tapesplit.sweeps.merging import merge_calls
from tapesplit.sweeps.sweep import run_sweep


@pytest.fixture(autouse=True)
def always_merge(monkeypatch):
    monkeypatch.setattr(merging, "WORTH_MERGING", 0)
    monkeypatch.setattr(merging, "_WORTH_A_LOOK", 0)


def parts(fun, x):
    """Return what sweeps of a whole recording are compiled from."""
    tape = record(fun, x)
    facts = facts_of(tape)
    (chunk,) = cut_into_chunks(graph_of(tape, facts), ())
    assert facts.scalar[chunk.entries].all()
    return tape, facts, chunk


def check(fun, x, other=None):
    """Compare scalar sweeps with autograd, for the recording and for other values of its structure."""
    tape, facts, chunk = parts(fun, x)
    for values in (x, x * 1.1 if other is None else other):
        want = jacobian(fun)(values).reshape(chunk.m, chunk.n)
        replay = record(fun, values)
        for adjoint_mode in (False, True):
            sweep = compile_scalar_sweep(tape, facts, chunk, 5, adjoint_mode=adjoint_mode)
            got = run_sweep(sweep, replay, None)
            np.testing.assert_allclose(
                got, want, rtol=0, atol=1e-13 * max(np.abs(want).max(initial=0.0), 1.0)
            )
    return sweep


def stencil(x):
    for _ in range(30):
        left, center, right = x[:-2], x[1:-1], x[2:]
        x = anp.concatenate(
            [x[:1], center + 0.1 * (right - 2.0 * center + left) - center * (right - left), x[-1:]]
        )
    return x[1:4]


def inside_and_outside(x):
    y = anp.tanh(x) * 3.0
    return anp.concatenate([y, anp.sin(y) * 2.0])


def first_one_alone(x):
    y = anp.sin(x)
    return y * anp.sum(y)


def shrinking(x):
    values = x
    while values.size > 1:
        values = anp.exp(-x[1] * 0.1) * (x[0] * values[:-1] + anp.sin(values[1:] * 2.0) * values[:-1])
    return values


def of_all_lengths(step):
    """Return a function that takes a step with the first elements of a vector, with more and more of them."""
    return lambda x: anp.concatenate([anp.ravel(step(x[:n], np.linspace(1.0, 2.0, n))) for n in range(12)])


X = np.linspace(0.2, 0.9, 12)
CASES = {
    "shrinking": shrinking,
    "lengths": of_all_lengths(lambda v, c: anp.tanh(v * c + 0.5) * v**2),
    "lengths, a number": of_all_lengths(lambda v, c: anp.exp(anp.sum(v) * 0.1) * anp.sin(v / 3.0)),
    "lengths, rows and columns": of_all_lengths(lambda v, c: anp.cos(v[:, None] - v * c) * v[:, None]),
    "lengths, a constant column": of_all_lengths(lambda v, c: anp.sin(v) * c[:3, None] + v[:1]),
    "lengths, dimensions": of_all_lengths(
        lambda v, c: anp.sin(v if v.size % 2 else anp.reshape(v, (2, -1)) * 2.0) * 3.0
    ),
    "lengths, complex": of_all_lengths(lambda v, c: anp.abs(anp.exp(1j * v) * c + v**2) + anp.real(v * 2j)),
    "lengths, complex constants": of_all_lengths(lambda v, c: anp.imag((v + 1j * c) ** 2) * v),
    "stencil": stencil,
    "chain": lambda x: anp.sin(anp.exp(-(anp.tanh(x) ** 2))),
    "repeated operand": lambda x: (x * x) * (x * x) + anp.sin(x) * anp.sin(x),
    "both ways": lambda x: x / (1.0 - x) - (2.0 - x) / x,
    "only constants differ": lambda x: anp.concatenate([c * anp.sin(x + c) for c in (1.0, 2.0, 3.0)]),
    "array constants": lambda x: anp.concatenate([X * anp.sin(x * c) for c in (X, 2 * X)]),
    "integer powers": lambda x: anp.concatenate([(x**2) ** 3, (x**3) ** 2]),
    "column and row": lambda x: anp.sin(anp.reshape(x[:3], (3, 1)) * 2.0) * anp.cos(x[3:7] ** 2),
    "number in array": lambda x: anp.exp(x[0] * 2.0) * anp.sin(x),
    "kept axis": lambda x: anp.ravel(anp.sin(anp.reshape(x, (1, 12))) + x) * 2.0,
    "where": lambda x: anp.where(x > 0.5, anp.sin(x) * 2.0, anp.exp(x)),
    "constant elements": lambda x: (
        anp.sin(anp.concatenate([x[:2], np.ones(2), x[4:]])) * anp.cos(anp.concatenate([np.ones(4), x[:8]]))
    ),
    "constant by rule": lambda x: anp.floor(x * 3.0) * x + anp.sign(x - 0.5) * 2.0,
    "sums and products": lambda x: anp.sum(anp.sin(x) * x) * anp.exp(x) + anp.dot(x, anp.cos(x) * 2.0),
    "negatives": lambda x: -(-(x + 1.0) - (x - 2.0)),
    "scalars": lambda x: anp.array([x[i] * anp.sin(x[i - 1] + x[i - 2]) ** 2 for i in range(12)]),
    "result inside": inside_and_outside,
    "first one alone": first_one_alone,
}


@pytest.mark.parametrize("name", CASES)
def test_equals_autograd(name):
    check(CASES[name], X, X + 0.04 if name in {"where", "constant by rule"} else None)


@pytest.mark.parametrize("name", CASES)
def test_every_elementwise_operation_is_found_once(name):
    tape, facts, chunk = parts(CASES[name], X)
    found = [i for calls in merge_calls(tape, facts, chunk, 1) for i in calls.members.ravel().tolist()]
    elementwise = [i for i in chunk.entries.tolist() if facts.kinds[facts.kind[i]].is_elementwise]
    assert sorted(found) == elementwise


def test_a_stencil_has_one_merged_operation_with_three_inputs():
    tape, facts, chunk = parts(stencil, X)
    (calls,) = merge_calls(tape, facts, chunk, 1)
    assert calls.members.shape == (30, 8)
    assert calls.inputs.shape == (30, 3)
    sweep = check(stencil, X)
    assert len(sweep.indptr) - 1 == 30 * 10 + 12
    assert len(sweep.indices) == 3 * 30 * 10
    assert len(sweep.recipes) == 1


def test_values_that_others_read_stay():
    def fun(x):
        y = anp.sin(x) * 2.0
        return anp.concatenate([y * x, anp.cos(y)])

    tape, facts, chunk = parts(fun, X)
    merged = {tuple(tape.label(i) for i in calls.members[0]) for calls in merge_calls(tape, facts, chunk, 1)}
    assert merged == {("sin", "multiply"), ("multiply",), ("cos",)}


def test_few_elements_are_not_worth_it(monkeypatch):
    monkeypatch.setattr(merging, "WORTH_MERGING", 10**9)
    tape, facts, chunk = parts(stencil, X)
    assert {calls.members.shape[1] for calls in merge_calls(tape, facts, chunk, 1)} == {1}
    check(stencil, X)


def test_calls_of_different_lengths_share_formulas(monkeypatch):
    def calls_of_recipes():
        return sorted(recipe.reads[0].shape for recipe in check(shrinking, X).recipes)

    assert calls_of_recipes() == [(1, 1), (1, 65), (10, 1)]  # the last step is one of numbers
    monkeypatch.setattr(merging, "_TOGETHER", 30)
    assert calls_of_recipes() == [(1, 1), (1, 9), (1, 21), (1, 35), (10, 1)]
    monkeypatch.setattr(merging, "_MOST_TO_JOIN", 0)
    assert calls_of_recipes() == [*((1, size) for size in range(1, 12)), (10, 1)]


def test_calls_of_different_lengths_in_single_precision():
    steps = of_all_lengths(lambda v, c: anp.maximum(v, np.float32(0.6)) * np.float32(0.1))
    tape, facts, chunk = parts(steps, X.astype(np.float32))
    sweep = compile_scalar_sweep(tape, facts, chunk, 12, adjoint_mode=False)
    want = jacobian(steps)(X.astype(np.float32))
    np.testing.assert_allclose(sweep.run(tape, None).T, want, rtol=1e-6)


def test_formulas_of_users_see_the_shapes_of_their_calls():
    @primitive
    def scaled(x):
        return x * x.size

    defvjp(scaled, lambda ans, x: lambda g: g * x.size)
    tapesplit.defvector(scaled, lambda ans, x: np.full(x.shape, float(x.size)))
    check(of_all_lengths(lambda v, c: scaled(v) * c), X)


def test_chunks_that_end_without_elements():
    tape = record(lambda x: anp.concatenate([anp.sin(x) * 2.0, anp.tanh(x[:0])]), X)
    assert [tape.label(i) for i in range(6)] == [
        "input", "sin", "multiply", "getitem", "tanh", "concatenate",
    ]  # fmt: skip
    facts = facts_of(tape)
    chunk = Chunk((0,), (2, 4), np.arange(1, 5), 12, 12, 24)
    for rows in (None, np.eye(12)[:5]):
        want = (np.eye(12) if rows is None else rows) * 2.0 * np.cos(X)  # which is diagonal
        for adjoint_mode in (False, True):
            for compiled in (compile_scalar_sweep, compile_array_sweep):
                sweep = compiled(tape, facts, chunk, 12, adjoint_mode=adjoint_mode)
                np.testing.assert_allclose(sweep.run(tape, rows), want, rtol=1e-13)


UNARY = [anp.sin, anp.tanh, anp.exp, anp.negative, lambda v: v**2, lambda v: 0.5 * v, lambda v: 1.0 - v]
BINARY = [anp.add, anp.multiply, anp.subtract, lambda a, b: a / (2.5 + anp.sin(b)), anp.maximum]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    steps=st.lists(st.tuples(*[st.integers(0, 30)] * 4), min_size=1, max_size=12),
    rounds=st.integers(1, 4),
    size=st.integers(1, 3),
)
def test_random_loops(steps, rounds, size):
    def fun(x):
        values = [x, x[::-1] * 0.5]
        for _ in range(rounds):
            for operation, a, b, cut in steps:
                left, right = values[-1 - a % len(values)], values[-1 - b % len(values)]
                if operation % 3 == 0:
                    value = UNARY[operation // 3 % len(UNARY)](left)
                else:
                    value = BINARY[operation // 3 % len(BINARY)](left, right)
                if cut == 0 and size > 1:
                    value = anp.concatenate([value[1:], value[:1]])
                elif cut == 1:
                    value = value[0] + right
                values.append(anp.tanh(value))
            values = values[-4:]
        return anp.concatenate(values[-2:])

    check(fun, np.linspace(0.3, 0.8, size))
