"""Local structures of sums and products equal autograd's own derivative."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import jacobian
from autograd.extend import defjvp, defvjp, primitive

from tapesplit import parallel_jacobian, record
from tapesplit.facts import facts_of
from tapesplit.rules import local_structure, loop_adjoint
from tapesplit.scalar_sweep import ScalarSweep
from tapesplit.structure import structure_of

A, B, V, W = (np.random.default_rng(i).standard_normal(s) for i, s in enumerate([(3, 4), (4, 2), (4,), (3,)]))
CALLS = {
    "sum": anp.sum,
    "sum axis": lambda x: anp.sum(x, axis=1),
    "sum keepdims": lambda x: anp.sum(x, axis=-2, keepdims=True),
    "sum axes": lambda x: anp.sum(x, axis=(0, 1)),
    "mean": lambda x: anp.mean(x, axis=0),
    "dot matrix": lambda x: anp.dot(x, B),
    "dot vector": lambda x: anp.dot(x, V),
    "dot left": lambda x: anp.dot(W, x),
    "dot itself": lambda x: anp.dot(x, x.T),
    "dot number": lambda x: anp.dot(x, 2.0),
    "matmul list": lambda x: x @ [1.0, -2.0, 0.5, 3.0],
    "dot integers": lambda x: anp.dot(x, np.arange(4)),
    "matmul": lambda x: x @ B,
    "matmul vector": lambda x: W @ x,
    "inner": lambda x: anp.inner(x, A),
    "tensordot": lambda x: anp.tensordot(x, A, axes=2),
    "pad": lambda x: anp.pad(x, 1, mode="constant"),
    "pad widths": lambda x: anp.pad(x, ((1, 0), (0, 2)), "constant", constant_values=2.0),
    "tensordot axes": lambda x: anp.tensordot(x, A, axes=([0], [0])),
}


@pytest.mark.parametrize("name", CALLS)
def test_edges_of_a_call_are_its_derivative(name):
    tape = record(CALLS[name], A)
    entry = tape[tape.output]
    identity = np.eye(np.size(entry.value)).reshape(-1, *np.shape(entry.value))
    for argnum, expected in zip(entry.argnums, loop_adjoint(identity, entry), strict=True):
        local = local_structure(entry, argnum)
        jacobian_of_call = np.zeros((len(identity), np.size(entry.args[argnum])))
        factor = (
            local.factor if local.positions is None else np.ravel(entry.args[local.factor])[local.positions]
        )
        np.add.at(jacobian_of_call, (local.rows, local.columns), factor)
        np.testing.assert_allclose(jacobian_of_call, expected.reshape(jacobian_of_call.shape), atol=1e-14)
        for row in range(len(identity)):
            assert sorted(local.rank[local.rows == row]) == list(range(np.sum(local.rows == row)))


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", CALLS)
def test_scalar_sweeps_take_sums_and_products(name, method):
    def f(x):
        y = CALLS[name](anp.sin(x)) * 2.0
        for _ in range(40):  # enough small operations for a scalar sweep
            y = anp.tanh(y[0] + y) if anp.ndim(y) else anp.tanh(y)
        return y

    jac = parallel_jacobian(f, method=method)
    expected = jacobian(f)(A)
    np.testing.assert_allclose(jac(A), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert isinstance(jac.plan(A).sweeps[0], ScalarSweep)


def test_products_with_partly_constant_operands_have_no_coefficients_for_the_constants():
    def f(q):
        rotation = anp.array(
            [[anp.cos(q[0]), -anp.sin(q[0]), 0.0], [anp.sin(q[0]), anp.cos(q[0]), 0.0], [0.0, 0.0, 1.0]]
        )
        return anp.dot(anp.dot(rotation, rotation), q)

    q = np.array([0.3, -0.2, 0.5])
    for method in ("tangent", "adjoint"):
        np.testing.assert_allclose(parallel_jacobian(f, method=method)(q), jacobian(f)(q), rtol=1e-14)


@pytest.mark.parametrize(
    ("fun", "form"),
    [
        (lambda x: anp.real(anp.dot(x, A.T * 1j) * 1j), "none"),
        (lambda x: anp.stack([x, x]) @ B, "block"),
        (lambda x: x @ B, "local"),
    ],
)
def test_products_of_complex_or_stacked_matrices_have_no_local_structure(fun, form):
    tape = record(fun, A)
    facts = facts_of(tape, structure_of(tape))
    (product,) = (i for i in range(len(tape)) if tape.label(i) in {"dot", "matmul"})
    assert facts.scalar[product] == (form != "none")
    assert (facts.blocks[product] > 0) == (form == "block")


@primitive
def tripled(x):
    return 3.0 * x


defvjp(tripled, lambda ans, x: lambda g: 3.0 * g)

M = np.eye(4) + 0.1 * np.random.default_rng(5).standard_normal((4, 4))
BLOCKS = {
    "norm": lambda x: x / anp.linalg.norm(x),
    "solve": lambda x: anp.linalg.solve(M + anp.outer(x, x), x),
    "inverse": lambda x: anp.linalg.inv(M + anp.diag(x)) @ x,
    "of constants, too": lambda x: anp.linalg.solve(anp.concatenate([[[1.0, 0, 0, 0]], M[1:] + x]), x),
    "twice the same": lambda x: anp.outer(x, x)[0] + anp.outer(x, 2.0 * x)[:, 1],
    "running sum": lambda x: anp.cumsum(x) / 4,
    "product": lambda x: x * anp.prod(x) + anp.max(x),
    "keywords": lambda x: anp.std(anp.outer(x, x), axis=0, ddof=1),
    "sum with a mask": lambda x: x + anp.sum(x, where=np.array([True, False, True, True])),
    "moved results": lambda x: anp.roll(anp.cumsum(x[::-1])[1:], 1)[[0, 1, 2, 0]],
    "no vector rule": lambda x: tripled(x) / 3 + tripled(x[0]),
}


RIGHT = BLOCKS | {"sum with a mask": lambda x: x + anp.sum(x[np.array([0, 2, 3])])}
"""The same where autograd is right."""


def long_loop(block, x):
    """Put enough small operations for a scalar sweep between two calls."""
    y = block(anp.sin(x))
    for _ in range(100):
        y = y + 0.01 * anp.sin(y[0] * y)
    return block(y)


@pytest.mark.parametrize("method", ["tangent", "adjoint"])
@pytest.mark.parametrize("name", BLOCKS)
def test_scalar_sweeps_take_blocks(name, method):
    x = np.linspace(0.4, 0.9, 4)
    jac = parallel_jacobian(lambda x: long_loop(BLOCKS[name], x), method=method)
    expected = jacobian(lambda x: long_loop(RIGHT[name], x))(x)
    np.testing.assert_allclose(jac(x), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    (sweep,) = jac.plan(x).sweeps
    assert isinstance(sweep, ScalarSweep)
    assert sweep.blocks


def test_primitives_without_adjoint_rule_are_no_blocks():
    @primitive
    def doubled(x):
        return 2.0 * x

    defjvp(doubled, lambda g, ans, x: 2.0 * g)
    jac = parallel_jacobian(lambda x: doubled(anp.sin(x)), method="tangent")
    np.testing.assert_allclose(jac(V), np.diag(2 * np.cos(V)))


def test_blocks_are_small():
    jac = parallel_jacobian(lambda x: long_loop(lambda y: anp.cumsum(anp.tile(y, 5))[:20], x))
    assert not any(isinstance(sweep, ScalarSweep) for sweep in jac.plan(V).sweeps)
